#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Policies on the tools of real harnesses: what is denied does not happen, whatever the harness calls its tool; what
is allowed does. The model is a script."""

import json
import os

import harness

FILE_TIMEOUT = 900


class Native(harness.Case):
    def check(self, name, goes_on=True):
        """Files may be written, but only one of that name. Some agents end their turn when they are denied a tool."""
        self.env["PATH"] = os.path.dirname(self.real(name)) + ":" + self.env["PATH"]

        def write(turn, file):
            path = os.path.join(self.workspace, file)
            return {"when": {"turn": turn}, "call": {"tool": "native.write_file", "args": {"path": path, "content": "x\n"}}}

        script = self.write("model.yaml", json.dumps({"steps": [
            write(0, "wrong.txt"), write(1, "right.txt"), {"when": {"turn": 2}, "say": "over"}]}))
        rule = {"type": "arguments", "tools": ["native:*"], "rules": [{"pointer": "/file_path", "pattern": "right"}]}
        task = self.write("task.yaml", json.dumps({
            "agent": {"adapter": name}, "prompt": "Write.", "gateway": {"script": script}, "policies": [rule],
            "limits": {"timeout": 100}}))
        r = self.run_cinch(task)
        if r.code == 69 and "does not ask" in r.result["error"]:
            self.skipTest(f"{name} does not ask about its tools")
        self.assertEqual((r.reason, r.result["text"].strip()), ("success", "over" if goes_on else ""),
                         r.stderr + r.bytes("stderr.log"))
        patch = r.bytes("diff.patch")
        self.assertEqual(b"right.txt" in patch, goes_on)
        self.assertNotIn(b"wrong.txt", patch)
        denied, = r.events("tool.denied")
        self.assertEqual(denied["context"]["policy"], "arguments")
        calls = [e["context"] for e in r.events("ToolInvoked")]
        self.assertEqual({os.path.basename(c["params"]["file_path"]): c["success"] for c in calls},
                         {"wrong.txt": False, **({"right.txt": True} if goes_on else {})})

    def test_claude(self):
        self.check("claude-code")

    def test_claude_over_acp(self):
        self.check("claude-acp")

    def test_qwen(self):
        self.check("qwen", goes_on=False)  # 0.15 did


class Memory(harness.Case):
    def test_what_came_before_counts(self):
        """A policy that looks back knows of the harness' own calls."""
        name = "claude-code"
        self.env["PATH"] = os.path.dirname(self.real(name)) + ":" + self.env["PATH"]
        shell = {"tool": "Bash", "args": {"command": "cat note.txt", "description": "look"}}
        script = self.write("model.yaml", json.dumps({"steps": [
            {"when": {"turn": 0}, "call": shell},
            {"when": {"turn": 1, "text": "requires: Write"},
             "call": {"tool": "native.write_file", "args": {"path": "note.txt", "content": "hello\n"}}},
            {"when": {"turn": 2}, "call": shell},
            {"when": {"turn": 3, "text": "hello"}, "say": "over"}]}))
        task = self.write("task.yaml", json.dumps({
            "agent": {"adapter": name}, "prompt": "Write.", "gateway": {"script": script}, "limits": {"timeout": 100},
            "policies": [{"type": "sequential_dependency", "depends": {"Bash": ["Write"]}}]}))
        r = self.run_cinch(task)
        self.assertEqual((r.reason, r.result["text"]), ("success", "over"), r.stderr + r.bytes("stderr.log"))
        self.assertEqual([(e["context"]["name"], e["context"]["success"]) for e in r.events("ToolInvoked")],
                         [("Bash", False), ("Write", True), ("Bash", True)])


if __name__ == "__main__":
    harness.main()
