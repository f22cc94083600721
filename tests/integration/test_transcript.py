#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cinch transcript: transcripts of whatever adapter are clean, and a fault in one is found where it is. (That every
record of every other test is clean, but for calls that its program made up, is held by harness.py.)"""

import json
import os

import harness

MODEL = """
turns:
  - {think: Hm., say: first I look, call: {tool: shout, args: {text: hello}}}
  - call: {tool: shout, args: {text: again}}
  - say: done
"""
TASK = """
prompt: do it
tools:
  - name: shout
    description: Shouts.
    input_schema: {type: object, properties: {text: {type: string}}}
    command: [./shout]
"""


class Case(harness.Case):
    def converse(self, adapter, *options):
        """A conversation with two calls of our tool."""
        self.write("ws/shout", "#!/bin/sh\ncat > /dev/null\necho LOUD\n", 0o755)
        r = self.run_cinch("--adapter", adapter, "--script", self.write("model.yaml", MODEL), "--timeout", "100s",
                           *options, self.write("task.yaml", TASK))
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log") + r.bytes("stderr.log"))
        return r

    def check(self, *args):
        return self.cinch("transcript", "check", *args)


class Clean(Case):
    def assert_clean(self, r, adapter):
        self.assert_transcript(r, "--adapter", adapter, "--tool", "shout")
        done = self.check(r.path("transcript.jsonl"), "--format", "json")
        said = json.loads(done.stdout)
        self.assertEqual((done.code, said["clean"], said["findings"]), (0, True, []))
        types = said["summary"]["entries_by_type"]
        self.assertEqual((types["tool_use"], types["tool_result"], types["thinking"]), (2, 2, 1))
        self.assertEqual(said["summary"]["adapter"], adapter)

    def real_one(self, adapter):
        program = self.real(adapter)
        self.env["PATH"] = os.path.dirname(program) + ":" + self.env["PATH"]
        r = self.converse(adapter)
        self.assert_clean(r, adapter)
        # What it says of itself, and where it was installed.
        self.assertIn(f"/{adapter}-{r.manifest['metadata']['engine']['version']}/", program)

    def test_api_direct(self):
        self.assert_clean(self.converse("api-direct", "--model", "m"), "api-direct")

    def test_claude_code(self):
        self.real_one("claude-code")

    def test_codex(self):
        self.real_one("codex")

    def test_an_acp_agent(self):
        self.real_one("claude-acp")

    def test_a_run_that_was_refused(self):
        r = self.run_cinch("--adapter", "api-direct", "--model", "m", "--script", self.path("none.yaml"), "do it")
        self.assertNotEqual(r.code, 0)
        self.assertEqual(r.bytes("transcript.jsonl"), b"")
        self.assert_transcript(r, "--adapter", "api-direct")
        alone = self.check(r.path("transcript.jsonl"))  # which does not say that the run was refused
        self.assertEqual(alone.code, 1)
        self.assertIn(b"transcript.jsonl: bracketing: empty: there is no transcript.start", alone.stdout)

    def test_a_killed_run_when_it_is_closed(self):
        process, r = self.start("--", "sh", "-c", "exit 0", env={"CINCH_STOP_AT": "collect"})
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.kill()
        process.wait()
        done = self.check(r.output)
        self.assertEqual(done.code, 1)
        self.assertIn(b"transcript.jsonl:1: bracketing: this conversation has no stop\n", done.stdout)
        self.assertIn(b"manifest.json: bundle: missing", done.stdout)
        self.assertEqual(self.cinch("recover", r.output).code, 0)
        self.assert_transcript(r, "--adapter", "command")


class Faults(Case):
    def setUp(self):
        super().setUp()
        self.r = self.converse("api-direct", "--model", "m")
        self.lines = self.r.lines("transcript.jsonl")

    def expect(self, lines, *findings, options=()):
        """What check says of these lines in place of the run's own."""
        with open(self.r.path("transcript.jsonl"), "w", encoding="utf-8") as f:
            f.writelines((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        done = self.check(self.r.output, *options)
        expected = [f"{self.r.output}/{finding}" for finding in findings] or ["clean: 9 entries in 1 conversation"]
        self.assertEqual(done.stdout.decode().splitlines(), expected)
        self.assertEqual(done.code, 1 if findings else 0)

    def changed(self, n, **fields):
        """The lines, with some fields of line n (from 1) changed; None removes."""
        line = {k: v for k, v in {**self.lines[n - 1], **fields}.items() if v is not None}
        return self.lines[:n - 1] + [line] + self.lines[n:]

    def test_expectation_that_no_check_looks_at(self):
        """Not silently: it would look as if the tool had been called."""
        for options, check in ((("--only", "sequence", "--tool", "shout"), "causal_order"), (("--only", "envelope", "-a", "codex"), "adapter_label"),
                               (("--only", "causal_order", "-a", "codex", "--tool", "shout"), "adapter_label")):
            with self.subTest(options):
                self.assert_failed(self.check(*options, self.r.output), 64, "add --only " + check)
        self.assertEqual(self.check("--only", "causal_order", "--tool", "shout", self.r.output).code, 0)
        self.assertEqual(self.check("--only", "causal_order", "--tool", "nosuch", self.r.output).code, 1)
        self.assertEqual(self.check("--only", "sequence", "--only", "adapter_label", "-a", "codex", self.r.output).code, 1)

    def test_each_check_finds_its_fault(self):
        kinds = [line.get("entry_type", line["event"]) for line in self.lines]
        self.assertEqual(kinds[:6], ["transcript.start", "user_message", "thinking", "assistant_message", "tool_use",
                                     "tool_result"])
        only = ("--only",)
        self.expect(self.lines)
        self.expect(self.changed(3, source=None), "transcript.jsonl:3: envelope: 'source' is missing",
                    options=(*only, "envelope"))
        self.expect(self.changed(3, entry_type="musing"),
                    "transcript.jsonl:3: canonical_types: 'musing' is not an entry type",
                    options=(*only, "canonical_types"))
        self.expect(self.changed(4, sequence_number=7), "transcript.jsonl:4: sequence: number 7 of 'main' follows 2",
                    "transcript.jsonl:5: sequence: number 4 of 'main' follows 7", options=(*only, "sequence"))
        self.expect(self.changed(3, adapter="codex"),
                    "transcript.jsonl:3: adapter_label: adapter is 'codex', not 'api-direct'")
        call = self.lines[4]["detail"]["tool_call_id"]
        times = [dict(self.lines[i], timestamp=self.lines[3]["timestamp"]) for i in (5, 4)]
        self.expect(self.lines[:4] + times + self.lines[6:],
                    f"transcript.jsonl:5: causal_order: result of call '{call}', which does not exist",
                    f"transcript.jsonl:6: causal_order: call '{call}' comes after its result in line 5",
                    options=(*only, "causal_order"))
        self.expect(self.lines[:-1], "transcript.jsonl:1: bracketing: this conversation has no stop")
        self.expect(self.changed(len(self.lines), total_entries=1),
                    f"transcript.jsonl:{len(self.lines)}: bracketing: total_entries is 1, but there are 9")

    def test_the_record_around_it(self):
        """An entry that is gone without a trace in the transcript itself is missed by agent.log and events.jsonl."""
        stop = dict(self.lines[-1], total_entries=1, entries_by_source={"main": 1}, entries_by_type={"user_message": 1})
        self.expect(self.lines[:2] + [stop], "agent.log:3: bundle: 'main #2 thinking' is not in the transcript")

    def test_what_is_no_transcript(self):
        for path, code in ((self.write("x", "hello\n"), 65), (self.r.path("events.jsonl"), 65),
                           (self.r.path("manifest.json"), 65), (self.path("none"), 66), (self.dir, 66)):
            done = self.check(path)
            self.assertEqual(done.code, code, path)
            self.assertEqual(done.stdout, b"")
        self.assertEqual(self.check("--only", "order", self.r.output).code, 64)
        self.assertEqual(self.check("--only", "bundle", self.r.path("transcript.jsonl")).code, 64)

    def test_show_reads_like_a_conversation(self):
        done = self.cinch("transcript", "show", self.r.output)
        self.assertEqual(done.code, 0)
        self.assertRegex(done.stdout.decode(), r"^> do it\n\n\(thinking\) Hm.\n\nfirst I look\n\nshout \{\"text\":\"hello\"\}\n  ")
        self.assertEqual(self.cinch("transcript", self.r.output).stdout, done.stdout)
        self.assertNotIn(b"token_usage", done.stdout)
        self.assertIn(b"token_usage", self.cinch("transcript", "-v", self.r.output).stdout)
        said = json.loads(self.cinch("transcript", "show", self.r.output, "--format", "json").stdout)
        self.assertEqual([e["sequence_number"] for e in said["entries"]], list(range(1, 10)))


if __name__ == "__main__":
    harness.main()
