#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An answer that does not match the output schema is corrected by the agent, in a bounded number of turns."""

import json
import os

import harness

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


class Repair(harness.Case):
    """On api-direct; the classes below are the same for a real agent program."""

    ADAPTER = "api-direct"
    REPAIRS_ITSELF = False  # the harness asks its model again before it ends the turn

    def go(self, turns, *options, **more):
        self.write("model.yaml", json.dumps({"steps": [{"times": 1, **t} for t in turns]}))
        task = self.write("task.json", json.dumps({
            "prompt": "Count the files.", "agent": {"adapter": self.ADAPTER, "model": "m"}, "gateway": {"script": "model.yaml"},
            "output": {"schema": SCHEMA}, "limits": {"timeout": "120s"}, **more}))
        return self.run_cinch(task, *options)

    def test_the_second_answer_fits(self):
        r = self.go([{"say": "There are three."}, {"say": '{"n": 3}'}])
        self.assertEqual((r.reason, r.result["output"]), ("success", {"n": 3}), r.stderr)
        if self.REPAIRS_ITSELF:
            return
        self.assertEqual(len(r.events("structured_output.repair")), 1)
        told = [line for line in r.bytes("transcript.jsonl").decode().splitlines() if '"continuation"' in line]
        self.assertEqual(len(told), 1)
        self.assertIn("does not have the required form", told[0])
        self.assertIn("JSON Schema", told[0])


class Turns(Repair):
    """What does not depend on the adapter."""

    test_the_second_answer_fits = None

    def test_three_turns_and_no_more(self):
        wrong = {"say": "still no JSON"}
        r = self.go([wrong, wrong, wrong, {"say": '{"n": 3}'}])
        self.assertEqual((r.reason, r.result["output"]), ("success", {"n": 3}), r.stderr)
        r = self.go([wrong, wrong, wrong, wrong, {"say": '{"n": 3}'}])
        self.assertEqual((r.reason, r.result["evaluation_error"]["type"]), ("failure", "OutputParseError"), r.stderr)
        self.assertEqual(len(r.events("structured_output.repair")), 3)
        self.assertEqual(r.metrics["api_calls"], 4)

    def test_the_number_of_turns_is_a_setting(self):
        turns = [{"say": "no JSON"}, {"say": '{"n": 3}'}]
        r = self.go(turns, "--set", "output.repairs=0")
        self.assertEqual((r.reason, r.metrics["api_calls"]), ("failure", 1), r.stderr)

    def test_after_the_completion_checks(self):
        """The checks come first; turns for them and for the answer are counted apart."""
        r = self.go([{"say": "done"}, {"call": {"tool": "make"}}, {"say": "done"}, {"say": '{"n": 1}'}],
                    tools=[{"name": "make", "description": "x", "command": ["touch", "report.md"]}],
                    completion={"files": ["report.md"], "max_rounds": 1})
        self.assertEqual((r.reason, r.result["output"]), ("success", {"n": 1}), r.stderr)
        self.assertEqual((len(r.events("task_completion.incomplete")), len(r.events("structured_output.repair"))), (1, 1))

    def test_the_budget_ends_it(self):
        r = self.go([{"say": "no JSON"}, {"say": '{"n": 3}'}], "--set", "limits.calls=1")
        self.assertEqual(r.code, 1, r.stderr)
        self.assertEqual(r.metrics["api_calls"], 1)


class Program(harness.Case):
    def test_a_plain_program_is_not_run_again(self):
        schema = self.write("s.json", json.dumps(SCHEMA))
        r = self.run_command("sh", "-c", "echo run >> log; echo no JSON", options=["--output-schema", schema])
        self.assertEqual((r.reason, r.events("structured_output.repair")), ("failure", []))
        self.assertEqual(len(r.events("process.spawned")), 1)


class Claude(Repair):
    ADAPTER = "claude-code"
    REPAIRS_ITSELF = True

    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real(self.ADAPTER)) + ":" + self.env["PATH"]


class Codex(Claude):
    ADAPTER = "codex"
    REPAIRS_ITSELF = False


if __name__ == "__main__":
    harness.main()
