#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The real agent programs behind the gateway of a run, with a scripted model: a used-up budget ends them at once, and
what they report stands beside what the wire says. Their built-in profiles are all they get."""

import os

import harness

FILE_TIMEOUT = 900

# Of adapters that are not called as their program is.
PROGRAMS = {"gemini-print": "gemini", "opencode-run": "opencode"}

SCRIPT = """
defaults: {usage: {input: 1000, output: 50}}
turns:
  - call: {tool: native.shell, args: {command: "echo hi"}}
  - say: done
"""


@harness.about_programs
class Real(harness.Case):
    def run_real(self, name, *options):
        self.env["PATH"] = os.path.dirname(self.real(PROGRAMS.get(name, name))) + ":" + self.env["PATH"]
        return self.run_cinch("--adapter", name, "--timeout", "100s", "--script", self.write("model.yaml", SCRIPT),
                              *options, "run echo hi")

    def check_budget(self, name):
        r = self.run_real(name, "--max-calls", "1")
        self.assertEqual((r.code, r.reason), (78, "budget"), r.stderr + r.bytes("stderr.log"))
        self.assertEqual(len(r.events("model.call")), 1)
        self.assertEqual(len(r.events("gateway.refused")), 1, "it tried again")
        self.assertEqual(r.events("process.signal"), [], "it had to be stopped")
        return r

    def check_success(self, name, *options):
        r = self.run_real(name, *options)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.result["text"].strip(), "done")
        wire = r.metrics["ext"]["usage"]["wire"]
        self.assertEqual((wire["input"], wire["output"], wire["calls"]), (2000, 100, 2))
        return r

    def test_claude_stops(self):
        self.check_budget("claude-code")

    def test_codex_stops(self):
        self.check_budget("codex")

    def test_gemini_stops(self):
        self.check_budget("gemini-print")

    def test_opencode_stops(self):
        self.check_budget("opencode-run")

    def test_claude_tells_the_same_as_the_wire(self):
        r = self.check_success("claude-code", "--model", "claude-opus-5")
        difference = r.metrics["ext"]["usage"]["difference"]
        self.assertEqual((difference["input"], difference["output"]), (0, 0))
        self.assertAlmostEqual(difference["cost_usd"], 0, places=6)  # its price list and ours agree

    def test_codex_tells_the_same_as_the_wire(self):
        difference = self.check_success("codex").metrics["ext"]["usage"]["difference"]
        self.assertEqual((difference["input"], difference["output"]), (0, 0))

    def test_gemini(self):
        self.check_success("gemini-print")

    def test_opencode(self):
        self.check_success("opencode-run")


if __name__ == "__main__":
    harness.main()
