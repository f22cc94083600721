#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What every record has whatever the adapter: files that count as artifacts, a summary, and a way to ask for a human."""

import json
import os

import harness
import jsonschema

# What readers of Holon's manifests rely on.
MANIFEST = {
    "type": "object",
    "required": ["status", "outcome", "duration", "artifacts"],
    "properties": {
        "status": {"enum": ["completed", "failed", "running"]},
        "outcome": {"enum": ["success", "failure", "needs_human"]},
        "duration": {"type": "string", "pattern": r"^\d+(\.\d+)?s$"},
        "artifacts": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "error": {"type": "string"},
        "metadata": {
            "type": "object",
            "properties": {
                "agent": {"type": "string"},
                "version": {"type": "string", "pattern": r"^v?\d+\.\d+\.\d+.*"},
                "mode": {"type": "string"},
                "engine": {"type": "object", "properties": {"model": {"type": "string"}, "version": {"type": "string"}}},
            },
        },
    },
}

TASK = """name: mend
prompt: "mend it"
output: {artifacts: [manifest.json, diff.patch, summary.md, evidence/]}
"""


class Ask(harness.Case):
    """`agent.ask`; on the real agent programs: scenario ask_human of the kit."""

    def ask(self, *options, steps=None, **task):
        self.write("model.yaml", json.dumps({"steps": steps or [
            {"times": 1, "call": {"tool": "ask_human", "args": {"question": "Which branch?"}}}, {"say": "I asked."}]}))
        path = self.write("task.json", json.dumps({"prompt": "go", "gateway": {"script": "model.yaml"}, **task,
                                                   "agent": {"adapter": "api-direct", "model": "m", "ask": True}}))
        return self.run_cinch(path, *options)

    def test_a_question_ends_the_run(self):
        r = self.ask()
        self.assertEqual((r.code, r.reason, r.result["error"]), (2, "needs_human", "Which branch?"), r.stderr)

    def test_it_comes_before_the_schema_and_the_checks(self):
        r = self.ask(output={"schema": {"type": "object", "required": ["n"]}}, completion={"files": ["never"]})
        self.assertEqual((r.code, r.reason, r.metrics["api_calls"]), (2, "needs_human", 2), r.stderr)

    def test_it_is_not_offered_by_itself(self):
        r = self.ask("--no-ask", steps=[{"say": "done"}])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(r.events("RenderedTools")[0]["context"]["tools"], [])

    def test_no_question_at_all(self):
        r = self.ask(steps=[{"times": 1, "call": {"tool": "ask_human", "args": {"question": "  "}}}, {"say": "done"}])
        self.assertEqual((r.reason, r.events("ToolInvoked")[0]["context"]["failure"]), ("success", "invalid"), r.stderr)

    def test_the_secret_in_a_question(self):
        self.env["TOKEN"] = "hunter2-hunter2"
        r = self.ask("-s", "TOKEN", steps=[
            {"times": 1, "call": {"tool": "ask_human", "args": {"question": "is it hunter2-hunter2?"}}}, {"say": "x"}])
        self.assertEqual(r.reason, "needs_human", r.stderr)
        self.assert_not_in_tree(b"hunter2", r.output)

    def test_an_agent_without_tools_uses_the_file(self):
        r = self.run_command("sh", "-c", 'echo "Which branch?" > "$CINCH_ARTIFACTS_DIR/needs-human.md"', options=["--ask"])
        self.assertEqual((r.code, r.reason, r.result["error"]), (2, "needs_human", "Which branch?"), r.stderr)


class Record(harness.Case):
    def check(self, r, reason="success"):
        self.assertEqual(r.reason, reason, r.stderr)
        jsonschema.validate(r.manifest, MANIFEST)
        self.assertIn("summary.md", r.manifest["artifacts"])
        return r.bytes("summary.md").decode()

    def test_any_program(self):
        r = self.run_cinch(self.write("task.yaml", TASK), "--", "sh", "-c", "echo made > new.txt; echo 'Done.'")
        text = self.check(r)
        self.assertEqual(text.split("\n")[:3], ["# mend", "", "Done."])
        for line in ("mend it", "- A `new.txt`", "- required artifact diff.patch: present", "- outcome: success"):
            self.assertIn(line, text)

    def test_model(self):
        script = self.write("model.yaml", "steps: [{say: Nothing to do., usage: {input: 7, output: 3}}]\n")
        r = self.run_cinch("-a", "api-direct", "-m", "m", "--script", script, self.write("task.yaml", TASK))
        text = self.check(r)
        for line in ("Nothing to do.", "None.", "7 input, 3 output, 1 model calls", "api-direct, model m"):
            self.assertIn(line, text)

    def test_adapter_program(self):
        adapter = self.script("adapter", "echo working; echo made > new.txt")
        self.assertIn("working", self.check(self.run_cinch("-a", "exec:" + adapter, self.write("task.yaml", TASK))))

    def test_failures(self):
        """Also of runs that never started."""
        self.assertIn("**Error:**", self.check(self.run_command("sh", "-c", "exit 3"), "failure"))
        self.assertIn("**Error:**", self.check(self.run_command("no-such-program"), "not_found"))

    def test_the_agents_own(self):
        for where in ('"$CINCH_ARTIFACTS_DIR/summary.md"', "summary.md"):
            r = self.run_cinch(self.write("task.yaml", TASK), "--", "sh", "-c", f"echo '# Mine' > {where}")
            self.assertEqual(self.check(r), "# Mine\n")

    def test_files_of_the_tree_are_not_the_records(self):
        self.write("ws/summary.md", "of the tree\n")
        self.write("ws/manifest.json", "{}\n")
        r = self.run_cinch(self.write("task.yaml", TASK), "--", "echo", "hello")
        self.assertIn("hello", self.check(r))
        self.assertFalse(os.listdir(r.path("artifacts")))

    def test_no_secret_and_no_link(self):
        self.env["MY_TOKEN"] = "s3cr3t-" + "x" * 20
        r = self.run_cinch("-s", "MY_TOKEN", self.write("task.yaml", TASK), "--", "sh", "-c",
                           'echo "$MY_TOKEN" > "$CINCH_ARTIFACTS_DIR/summary.md"; echo "$MY_TOKEN" > "$MY_TOKEN.txt"')
        self.check(r)
        self.assert_not_in_tree(self.env["MY_TOKEN"].encode(), r.output)
        r = self.run_cinch(self.write("task.yaml", TASK), "--", "ln", "-s", "/etc/passwd", "{output_dir}/artifacts/summary.md")
        self.assertNotIn("root:", self.check(r))

    def test_still_required(self):
        task = self.write("task.yaml", "prompt: x\noutput: {artifacts: [report.md]}\n")
        r = self.run_cinch(task, "--", "true")
        self.assertIn("required artifact report.md: missing", self.check(r, "failure"))


class Question(harness.Case):
    ASK = 'printf "Postgres\\nor SQLite?" > "$CINCH_ARTIFACTS_DIR/needs-human.md"'

    def asked(self, r):
        self.assertEqual((r.code, r.reason, r.manifest["outcome"]), (2, "needs_human", "needs_human"), r.stderr)
        self.assertIn("Postgres", r.result["error"])

    def test_any_program(self):
        self.asked(self.run_command("sh", "-c", self.ASK))
        self.asked(self.run_command("sh", "-c", self.ASK, options=["--exit-profile", "holon"]))

    def test_before_what_is_missing(self):
        task = self.write("task.yaml", "prompt: x\noutput: {artifacts: [report.md]}\ncompletion: {files: [report.md]}\n")
        r = self.run_cinch(task, "--", "sh", "-c", self.ASK)
        self.asked(r)
        self.assertEqual([e for e in r.events() if e["event"] == "task_completion.incomplete"], [])

    def test_adapter_program(self):
        adapter = self.script("adapter", 'echo Postgres? > "$HOLON_OUTPUT_DIR/needs-human.md"')
        self.asked(self.run_cinch("-a", "exec:" + adapter, "x"))

    def test_a_failure_is_no_question(self):
        r = self.run_command("sh", "-c", self.ASK + "; exit 1")
        self.assertEqual((r.code, r.reason), (1, "failure"))

    def test_no_link_is_followed(self):
        r = self.run_command("sh", "-c", 'ln -s /etc/passwd "$CINCH_ARTIFACTS_DIR/needs-human.md"')
        self.assertEqual(r.reason, "success")


if __name__ == "__main__":
    harness.main()
