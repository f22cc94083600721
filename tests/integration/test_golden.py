#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Records and cassettes of every released version can still be read (tests/golden/, docs/versioning.md)."""

import glob
import json
import os
import shutil

import harness
import validate

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")
VERSIONS = sorted(os.path.basename(d) for d in glob.glob(os.path.join(GOLDEN, "[0-9]*")))
FINISHED = {"fix": "success", "tools": "success", "edit": "success", "failed": "failure"}


class Golden(harness.Case):
    def copy(self, version, name):
        """A record as it was written; git does not keep empty directories."""
        target = self.path(f"{version}-{name}")
        shutil.copytree(os.path.join(GOLDEN, version, name), target)
        for folder in validate.DIRECTORIES:
            os.makedirs(os.path.join(target, folder), exist_ok=True)
        return target

    def each(self, *names):
        self.assertTrue(VERSIONS)
        for version in VERSIONS:
            for name in names or FINISHED:
                yield version, self.copy(version, name)

    def test_schemas_accept_old_records(self):
        for _, record in self.each():
            self.assertEqual(validate.check(record), [])

    def test_show(self):
        for _, record in self.each():
            shown = self.cinch("show", "--format", "json", record)
            self.assertEqual(shown.code, 0, shown.stderr)
            self.assertEqual(json.loads(shown.stdout)["reason"], FINISHED[record.rsplit("-", 1)[1]])
            self.assertEqual(self.cinch("show", record).code, 0)

    def test_transcript(self):
        for _, record in self.each():
            self.assertEqual(self.cinch("transcript", "check", record).code, 0)
            shown = self.cinch("transcript", "show", record)
            self.assertEqual((shown.code, shown.stderr), (0, b""))
            self.assertEqual(shown.stdout.startswith(b"> "), record.endswith(("fix", "tools")), record)
            self.assertIn("assistant" if record.endswith(("fix", "tools")) else "user",
                          self.cinch("transcript", "show", record, "--format", "json").stdout.decode())

    def test_patch_applies(self):
        for version, record in self.each("edit"):
            tree = self.copy(version, "tree")
            applied = self.cinch("apply", "--to", tree, record)
            self.assertEqual(applied.code, 0, applied.stderr)
            with open(os.path.join(tree, "bin.dat"), "rb") as f:
                self.assertEqual(f.read(), b"\0\1")
            self.assertFalse(os.path.exists(os.path.join(tree, "test.sh")))

    def test_killed_run_is_recovered(self):
        for _, record in self.each("killed"):
            self.assertEqual(self.cinch("recover", record).code, 0)
            self.assertEqual(validate.check(record), [])
            self.assertEqual(self.cinch("transcript", "check", record).code, 0)

    def test_cassette_replays(self):
        for version, record in self.each("fix"):
            cassette = os.path.join(record, "evidence", "traffic.cassette")
            shown = self.cinch("cassette", "show", cassette)
            self.assertEqual(shown.code, 0, shown.stderr)
            self.workspace = self.copy(version, "tree")
            again = self.run_cinch(os.path.join(self.workspace, "task.yaml"), "--cassette", cassette,
                                   "--set", "gateway.script=null")
            self.assertEqual(again.code, 0, again.stderr)
            with open(os.path.join(record, "result.json"), encoding="utf-8") as f:
                self.assertEqual(again.result["output"], json.load(f)["output"])


if __name__ == "__main__":
    harness.main()
