#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that are adapters themselves: found by name, told by environment, heard by files, events and exit code."""

import json
import os

import harness
from provider import Fail, Provider, Say

METRICS = {"tokens_input": 45230, "tokens_output": 12456, "tokens_total": 57686, "cost_usd": 1.23, "api_calls": 15,
           "duration_seconds": 847.2, "exit_code": 0, "error": None, "started_at": "2024-01-15T14:30:00Z",
           "ended_at": "2024-01-15T14:44:07Z"}


class Contract(harness.Case):
    def adapter(self, text):
        """A program cinch-adapter-mine in PATH."""
        path = self.script("bin/cinch-adapter-mine", text)
        self.env["PATH"] = os.path.dirname(path) + ":" + self.env["PATH"]
        return path

    def run_mine(self, text, *options):
        self.adapter(text)
        return self.run_cinch("--adapter", "mine", "--model", "m1", *options, "do it")

    def metrics(self, **values):
        return f"""cat > "$CINCH_OUTPUT_DIR/metrics.json" <<'E'\n{json.dumps({**METRICS, **values})}\nE\n"""

    def failed(self, r, *words):
        self.assertEqual(r.result["outcome"], "failure", r.stderr)
        self.assertNotEqual(r.code, 0)
        for word in words:
            self.assertIn(word, str(r.result["error"]))

    def test_files(self):
        r = self.run_mine('echo "$MODEL $(cat "$CINCH_PROMPT_FILE")"; echo made > made.txt\n'
                          'echo "called a tool" > "$CINCH_OUTPUT_DIR/agent.log"\n' + self.metrics())
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.result["text"], "m1 do it")
        self.assertIn(b"+made", r.bytes("diff.patch"))
        m = r.metrics
        self.assertEqual((m["tokens_input"], m["tokens_output"], m["cost_usd"], m["api_calls"]), (45230, 12456, 1.23, 15))
        self.assertIn("called a tool", str(r.lines("transcript.jsonl")))

    def test_events(self):
        r = self.run_mine("""say() { echo "$1" >&"$CINCH_EVENTS_FD"; }
            echo plain words
            say '{"event": "tool_use", "name": "edit"}'
            say '{"event": "token_usage", "input": 10, "output": 1}'
            say '{"event": "token_usage", "input": 5, "output": 1}'
            say '{"event": "result", "text": "the answer", "session_id": "s1"}'
            """)
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual((r.result["text"], r.result["session_id"]), ("the answer", "s1"))
        self.assertEqual((r.metrics["tokens_input"], r.metrics["tokens_output"]), (15, 2))
        kinds = [e["entry_type"] for e in r.lines("transcript.jsonl") if "entry_type" in e]
        self.assertIn("tool_use", kinds)

    def test_nothing_but_an_exit_code(self):
        """Success without any sign of work is none; the exit status of `command` is enough (test_run.py)."""
        r = self.run_mine("echo starting >&2; echo 'no key, nothing to do' >&2; exit 0")
        self.assertEqual((r.code, r.reason, r.manifest["outcome"]), (1, "no_result", "failure"))
        self.assertIn("starting | no key, nothing to do", r.manifest["error"])
        for work in ("echo hi", "echo x > new.txt", 'echo x > "$CINCH_ARTIFACTS_DIR/a.txt"', self.metrics(),
                     'echo did it > "$CINCH_OUTPUT_DIR/agent.log"'):
            r = self.run_mine(work)
            self.assertEqual(r.reason, "success", (work, r.stderr))
        r = self.run_mine("exit 3")
        self.failed(r)
        self.assertEqual(r.result["engine_exit"], {"code": 3})

    def test_metrics_tell_a_failure(self):
        self.failed(self.run_mine(self.metrics(error="the agent gave up")), "the agent gave up")
        self.failed(self.run_mine(self.metrics(exit_code=2)))

    def test_bad_files(self):
        """None of them is followed, believed or waited for."""
        self.failed(self.run_mine('echo "{" > "$CINCH_OUTPUT_DIR/metrics.json"'), "metrics.json")
        self.failed(self.run_mine('echo "[]" > "$CINCH_OUTPUT_DIR/metrics.json"'), "metrics.json")
        outside = self.write("outside.json", json.dumps(METRICS))
        for text in (f'ln -s {outside} "$CINCH_OUTPUT_DIR/metrics.json"',
                     f'rm -r "$CINCH_OUTPUT_DIR"; ln -s {self.dir} "$CINCH_OUTPUT_DIR"',
                     'mkfifo "$CINCH_OUTPUT_DIR/metrics.json"', 'mkdir "$CINCH_OUTPUT_DIR/metrics.json"',
                     'head -c 20000000 /dev/zero > "$CINCH_OUTPUT_DIR/metrics.json"'):
            r = self.run_mine(text + "; echo done")
            self.assertEqual(r.reason, "success", r.stderr)
            self.assertEqual(r.metrics["tokens_input"], 0, text)
        r = self.run_mine(self.metrics(tokens_input=-5, tokens_output="x", cost_usd=-1, api_calls=1e300, error=7))
        self.assertEqual((r.reason, r.metrics["tokens_input"]), ("success", 0))

    def test_another_round(self):
        """What the first one left is counted once."""
        self.adapter("if [ -e once ]; then echo x > done.txt; else echo x > once\n" + self.metrics() + "fi")
        task = self.write("task.yaml", "version: 1\nprompt: do it\ncompletion: {files: [done.txt]}\n")
        r = self.run_cinch("--adapter", "mine", task)
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertIn(b"+++ b/done.txt", r.bytes("diff.patch"))
        self.assertEqual(r.metrics["tokens_input"], 45230)

    def manifest(self, **values):
        whole = {"status": "completed", "outcome": "success", "duration": "1.0s", "artifacts": [], **values}
        return f"""cat > "$HOLON_OUTPUT_DIR/manifest.json" <<'E'\n{json.dumps(whole)}\nE\n"""

    def test_manifest(self):
        """Adapters of the other contract: its inputs, its outputs, its exit codes."""
        self.write("issue.md", "it is broken")
        task = self.write("task.yaml", "name: mend\nprompt: {text: do it}\nagent: {adapter: mine}\n"
                          "workspace: {context: [issue.md]}\noutput: {artifacts: [{path: report/r.txt}]}\n")
        self.adapter('cat "$HOLON_INPUT_DIR/spec.yaml" "$HOLON_INPUT_DIR/context/issue.md" && echo x >> '
                     '"$HOLON_INPUT_DIR/spec.yaml"; mkdir -p "$HOLON_OUTPUT_DIR/report" "$HOLON_OUTPUT_DIR/evidence"\n'
                     'echo "sum" > "$HOLON_OUTPUT_DIR/summary.md"; echo r > "$HOLON_OUTPUT_DIR/report/r.txt"\n'
                     'ln -s /etc/passwd "$HOLON_OUTPUT_DIR/evidence/link"; echo l > "$HOLON_OUTPUT_DIR/evidence/log"\n'
                     """echo '{"event": "tool_use", "name": "edit"}' > "$HOLON_OUTPUT_DIR/transcript.jsonl"\n"""
                     + self.manifest())
        r = self.run_cinch(task)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        # It owns what it reads only where an ordinary user started the run.
        refused = b"Permission denied" if os.geteuid() == 0 else b"Read-only file system"
        self.assertIn(b"adapter-input/spec.yaml: " + refused, r.bytes("stderr.log"))
        for word in (b"kind: Holon", b"name: mend", b"do it", b"report/r.txt", b"it is broken"):
            self.assertIn(word, r.bytes("stdout.log"))
        self.assertEqual((r.bytes("summary.md"), r.bytes("artifacts", "report", "r.txt")), (b"sum\n", b"r\n"))
        self.assertEqual(sorted(os.listdir(r.path("evidence", "adapter", "evidence"))), ["log"])
        self.assertIn("tool_use", [e.get("entry_type") for e in r.lines("transcript.jsonl")])
        self.assertFalse(r.exists("adapter-input"))
        self.assertNotIn("changed its inputs", str(r.manifest["warnings"]))

    def test_manifest_says_how_it_ended(self):
        r = self.run_mine(self.manifest(outcome="needs_human", error="which one?") + "exit 2")
        self.assertEqual((r.code, r.reason), (2, "needs_human"))
        self.assertIn("which one?", str(r.result["error"]))
        self.assertEqual(self.run_mine(self.manifest() + "exit 2").reason, "needs_human")
        self.failed(self.run_mine(self.manifest(status="failed", outcome="failure", error="no key") + "exit 1"), "no key")
        self.failed(self.run_mine(self.manifest(outcome="failure") + "exit 0"))
        self.failed(self.run_mine(self.manifest(outcome="perfect")), "manifest.json")
        r = self.run_mine("echo which one? ; exit 2")
        self.assertEqual((r.code, r.reason), (2, "needs_human"))
        self.failed(self.run_mine(self.metrics() + "exit 2"))  # the other contract: its own exit code is no question

    def test_summary_is_the_text(self):
        r = self.run_mine("echo progress; echo '# Done' > \"$HOLON_OUTPUT_DIR/summary.md\"\n" + self.manifest())
        self.assertEqual((r.result["text"], r.bytes("summary.md")), ("# Done\n", b"# Done\n"), r.stderr)
        r = self.run_mine("""echo '{"event": "result", "text": "the answer"}'
            echo '# Done' > "$HOLON_OUTPUT_DIR/summary.md"\n""" + self.manifest())
        self.assertEqual((r.result["text"], r.bytes("summary.md")), ("the answer", b"# Done\n"), r.stderr)

    def test_directories_of_the_contract(self):
        r = self.run_mine("""for d in "$HOLON_STATE_DIR" "$HOLON_AGENT_HOME" "$HOLON_OUTPUT_DIR"; do
            test -d "$d" && echo x > "$d/probe" || exit 1; rm "$d/probe"; done; echo "$HOLON_MODE"\n""" + self.manifest())
        self.assertEqual((r.reason, r.result["text"]), ("success", "solve"), r.stderr)
        r = self.run_mine('echo "$HOLON_MODE"', "--set", "env.set.HOLON_MODE=pr-fix")
        self.assertEqual((r.result["text"], r.manifest["metadata"]["mode"]), ("pr-fix", "pr-fix"), r.stderr)

    def test_nothing_at_all_is_suspicious(self):
        r = self.run_mine("exit 0")
        self.assertIn("may not have done anything", str(r.manifest["warnings"]))
        for text in ("echo hi", "echo hi >&2", 'echo x > "$HOLON_OUTPUT_DIR/x"'):
            self.assertNotIn("done anything", str(self.run_mine(text).manifest["warnings"]), text)

    def test_all_model_calls_failed(self):
        """A program that claims success although no model ever answered it."""
        work = """/usr/bin/python3 - <<'E'
import json, os, urllib.error, urllib.request
body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()
for _ in range(2):
    try:
        urllib.request.urlopen(urllib.request.Request(os.environ["CINCH_GATEWAY_URL"] + "/v1/messages", body, {
            "content-type": "application/json", "x-api-key": os.environ["CINCH_GATEWAY_TOKEN"]})).read()
    except urllib.error.HTTPError:
        pass
print("all done")
E
"""
        doubt = "the adapter program reports success, but all of its model calls failed (upstream '"

        def run(plan, *options):
            with Provider(*plan) as p:
                return self.run_mine(work, "--upstream", p.url, "--set", "throttle.max_attempts=1", *options)
        strict = ("--set", "strict=true")
        r = run([Fail(400)])
        self.assertEqual((r.reason, r.result["text"]), ("success", "all done"), r.stderr)
        self.assertIn(doubt, str(r.manifest["warnings"]))
        for options in (strict, ("--max-calls", "9")):
            r = run([Fail(400)], *options)
            self.failed(r, doubt)
            self.assertEqual(r.reason, "failure")
        r = run([Fail(401)], *strict)
        self.assertEqual((r.code, r.reason), (77, "auth"), r.stderr)
        r = run([Fail(400), Say()], *strict)
        self.assertEqual((r.reason, str(r.manifest["warnings"]).count("model call")), ("success", 0), r.stderr)

    def test_by_path(self):
        path = self.script("else/where", "echo hi $1")
        r = self.run_cinch("--adapter", "exec:" + path, "--set", "agent.args=[there]", "do it")
        self.assertEqual((r.reason, r.result["text"]), ("success", "hi there"), r.stderr)
        r = self.run_cinch("--adapter", "exec:else/where", "do it")
        self.assertEqual((r.reason, r.result["text"]), ("success", "hi"), r.stderr)
        r = self.run_cinch("--adapter", "contract", "--prompt", self.write("p.md", "do it"), "--", path, "you")
        self.assertEqual((r.reason, r.result["text"]), ("success", "hi you"), r.stderr)
        r = self.run_cinch("--adapter", "exec:" + self.path("nowhere"), "do it")
        self.assertNotEqual(r.code, 0)

    def test_list(self):
        self.adapter("")
        self.script("bin/cinch-adapter-api-direct", "")  # a built-in one stays
        self.write("bin/cinch-adapter-plain", "no program", 0o644)
        listed = {a["name"]: a for a in json.loads(self.cinch("adapters", "--format", "json").stdout)["adapters"]}
        self.assertEqual((listed["mine"]["driver"], listed["mine"]["program"]),
                         ("contract", self.path("bin", "cinch-adapter-mine")))
        self.assertEqual(listed["api-direct"]["driver"], "api")
        self.assertNotIn("plain", listed)
        self.assertIn(b"driver: contract", self.cinch("adapters", "show", "mine").stdout)
        self.assert_failed(self.cinch("adapters", "show", "../mine"), 69, "unknown adapter")


if __name__ == "__main__":
    harness.main()
