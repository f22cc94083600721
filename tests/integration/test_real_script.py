#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One script for all harnesses: a file is written by whatever tool the real program offers for it, in whatever
format it speaks; and the run is played again from the recording that the first one left."""

import json
import os

import harness
from test_real_gateway import CLAUDE, CODEX, OPENCODE

FILE_TIMEOUT = 900

SCRIPT = """
steps:
  - when: {turn: 0, tool: native.write_file}
    think: A file is wanted.
    say: I will write it.
    call: {tool: native.write_file, args: {path: hello.txt, content: "hello\\n"}}
  - {when: {turn: 1}, say: written}
"""


class Real(harness.Case):
    def run_real(self, name, profile, *options):
        program = self.real(name)
        self.write("adapters/x.yaml", json.dumps({**profile, "binary": [program]}))
        return self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "x", "--timeout", "100s",
                              *options, "write hello.txt")

    def check_written(self, r):
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log") + r.bytes("stderr.log"))
        self.assertEqual(r.result["text"].strip().splitlines()[-1], "written")
        path = os.path.join(self.workspace, "hello.txt")
        if os.path.exists(path):  # the agent worked in the tree itself
            with open(path) as f:
                self.assertEqual(f.read(), "hello\n")
            os.unlink(path)
        else:
            self.assertIn(b"+hello", r.bytes("diff.patch"))

    def check(self, name, profile):
        """The second run has its home elsewhere, and another session: the same conversation."""
        first = self.run_real(name, profile, "--script", self.write("model.yaml", SCRIPT))
        self.check_written(first)
        again = self.run_real(name, profile, "--cassette", first.path("evidence", "traffic.cassette"))
        self.check_written(again)

    def test_claude(self):
        self.check("claude-code", CLAUDE)

    def test_codex(self):
        self.check("codex", CODEX)

    def test_opencode(self):
        self.check("opencode", OPENCODE)


if __name__ == "__main__":
    harness.main()
