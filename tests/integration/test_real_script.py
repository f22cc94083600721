#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One script for all harnesses: a file is written by whatever tool the real program offers for it, in whatever
format it speaks; and the run is played again from the recording that the first one left."""

import os

import harness

FILE_TIMEOUT = 900

# Of adapters that are not called as their program is.
PROGRAMS = {"gemini-print": "gemini", "opencode-run": "opencode"}

SCRIPT = """
steps:
  - when: {turn: 0, tool: native.write_file}
    think: A file is wanted.
    say: I will write it.
    call: {tool: native.write_file, args: {path: hello.txt, content: "hello\\n"}}
  - {when: {turn: 1}, say: written}
"""


@harness.about_programs
class Real(harness.Case):
    def run_real(self, name, *options):
        self.env["PATH"] = os.path.dirname(self.real(PROGRAMS.get(name, name))) + ":" + self.env["PATH"]
        return self.run_cinch("--adapter", name, "--timeout", "100s", *options, "write hello.txt")

    def check_written(self, r):
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log") + r.bytes("stderr.log"))
        self.assertEqual(r.result["text"].strip().splitlines()[-1], "written")
        self.assertFalse(os.path.exists(os.path.join(self.workspace, "hello.txt")))
        self.assertIn(b"+hello", r.bytes("diff.patch"))

    def check(self, name):
        """The second run has its home elsewhere, and another session: the same conversation."""
        first = self.run_real(name, "--script", self.write("model.yaml", SCRIPT))
        self.check_written(first)
        again = self.run_real(name, "--cassette", first.path("evidence", "traffic.cassette"))
        self.check_written(again)

    def test_claude(self):
        self.check("claude-code")

    def test_codex(self):
        self.check("codex")

    def test_gemini(self):
        self.check("gemini-print")

    def test_opencode(self):
        self.check("opencode-run")


if __name__ == "__main__":
    harness.main()
