#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What programs written for WINK rely on: correlation ids, results of tools."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import harness


class RunContext(harness.Case):
    def test_every_event_carries_the_ids_of_the_caller(self):
        task = self.write("task.yaml", json.dumps({
            "prompt": "go", "agent": {"adapter": "api-direct", "model": "m"},
            "gateway": {"script": self.write("model.yaml", "steps: [{say: done}]\n")},
            "run_context": {"request_id": "req-7", "attempt": 3, "trace_id": "4bf92f35", "tenant": "blue"}}))
        r = self.run_cinch(task, "--run-context", "span_id=00f067aa", "--run-context", "attempt=4")
        self.assertEqual(r.reason, "success", r.stderr)
        ids = {"request_id": "req-7", "attempt": 4, "trace_id": "4bf92f35", "tenant": "blue", "span_id": "00f067aa"}
        events = r.events()
        self.assertGreater(len(events), 10)
        for event in events:
            context = event["run_context"]
            self.assertEqual(context["run_id"], event["run_id"])
            self.assertLessEqual(ids.items(), context.items(), event["event"])
            self.assertIn("worker_id", context)
        for name in ("PromptRendered", "PromptExecuted"):
            self.assertEqual(r.events(name)[0]["context"]["run_context"], events[0]["run_context"])
        with open(f"{r.output}/task.json", encoding="utf-8") as f:
            self.assertEqual(json.load(f)["run_context"], {**ids, "attempt": "4"})

    def test_without_ids_of_the_caller_lines_are_as_before(self):
        r = self.run_command("true")
        self.assertFalse([e for e in r.events() if "run_context" in e])

    def test_a_secret_among_the_ids_is_redacted(self):
        r = self.run_command("true", options=["--secret", "TOKEN", "--run-context", "request_id=x-hunter2-hunter2-x"],
                             env={"TOKEN": "hunter2-hunter2"})
        self.assertEqual(r.reason, "success", r.stderr)
        self.assert_not_in_tree(b"hunter2", r.output)

    def test_ids_that_cannot_be(self):
        for wrong, words in (("{run_id: x}", "set by cinch"), ("{attempt: 0}", "whole number from 1"),
                             ("{trace: {a: 1}}", "plain values"), ("[1]", "map"),
                             ("{a: %s}" % ("x" * 300), "256")):
            task = self.write("task.yaml", f"prompt: go\nrun_context: {wrong}\n")
            self.assert_failed(self.cinch("run", task, "--", "true"), 65, words)


class ToolResults(harness.Case):
    def test_the_message_and_the_value_reach_the_model(self):
        """Both, in this order; a value that is excluded does not."""
        script = self.write("model.yaml", """
turns:
- call: {tool: both}
- call: {tool: hidden}
- say: done
""")
        tools = [
            {"name": "both", "description": "x", "command": ["echo", '{"message": "looked up", "value": {"answer": 42}}']},
            {"name": "hidden", "description": "x", "command": [
                "echo", '{"message": "only this", "value": {"n": 1}, "exclude_value_from_context": true}']},
        ]
        task = self.write("task.yaml", json.dumps({
            "prompt": "go", "agent": {"adapter": "api-direct", "model": "m"}, "gateway": {"script": script}, "tools": tools}))
        r = self.run_cinch(task)
        self.assertEqual(r.reason, "success", r.stderr)
        invoked = [e["context"] for e in r.events("ToolInvoked")]
        self.assertEqual([i["rendered_output"] for i in invoked], ['looked up\n{"answer":42}', "only this"])
        self.assertEqual(invoked[0]["result"]["value"], {"answer": 42})


class PythonAdapter(harness.Case):
    """examples/python: tools are functions of the caller, guards are programs."""

    def setUp(self):
        super().setUp()
        self.example = self.path("python")
        shutil.copytree(os.path.join(harness.ROOT, "examples", "python"), self.example)
        os.chmod(self.path(), 0o755)

    def python(self, *command):
        environment = {**os.environ, "CINCH": harness.CINCH, "TMPDIR": self.path(), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, *command], cwd=self.example, env=environment, capture_output=True, text=True)

    def test_the_demo(self):
        done = self.python("demo.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary, record = done.stdout.splitlines()
        self.assertRegex(summary, r"^count_words \{'words': 3\} \{'input_tokens': \d+, 'output_tokens': \d+\} \['three short words'\]$")
        with open(os.path.join(record, "events.jsonl"), encoding="utf-8") as f:
            events = [json.loads(line) for line in f]
        self.assertEqual({e["run_context"]["request_id"] for e in events}, {"demo-1"})
        calls = [e["context"] for e in events if e["event"] == "ToolInvoked"]
        self.assertEqual([(c["success"], c["policy"]) for c in calls], [(False, "house-rules"), (True, None)])
        self.assertEqual(calls[1]["rendered_output"], 'Counted.\n{"words": 3}')

    def test_an_error_is_raised_with_its_type(self):
        self.write("python/late.py", textwrap.dedent("""
            import datetime
            from wink_adapter import Prompt, PromptEvaluationError, evaluate
            prompt = Prompt("demo", "late", [{"key": "task", "title": "Task", "body": "Say hello."}])
            try:
                evaluate(prompt, adapter="api-direct", deadline=datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc),
                         settings={"gateway": {"script": "model.yaml"}})
            except PromptEvaluationError as e:
                print(e.type, e.phase)
        """))
        done = self.python("late.py")
        self.assertEqual(done.stdout, "DeadlineExceededError request\n", done.stderr)

    def test_it_is_short(self):
        with open(os.path.join(self.example, "wink_adapter.py"), encoding="utf-8") as f:
            self.assertLess(len(f.readlines()), 150)


if __name__ == "__main__":
    harness.main()
