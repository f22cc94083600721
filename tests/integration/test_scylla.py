#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Scylla contract: what its tools find in the record, whatever happened."""

import os

import harness


class Record(harness.Case):
    """`--exit-profile scylla`, and -o: a record in every case."""

    def scylla(self, *args, **kw):
        return self.run_cinch("--exit-profile", "scylla", *args, **kw)

    def test_timeout(self):
        r = self.scylla("-t", "1", "--", "sleep", "600")
        self.assertEqual((r.code, r.reason), (124, "timeout"))
        self.assertEqual((r.metrics["error"], r.metrics["exit_code"]), ("Execution timeout", 124))
        lines = r.bytes("stderr.log").decode().splitlines()
        self.assertEqual(lines[0], "Timeout after 1 seconds")
        self.assertIn("phase execute (timeout): total deadline of 1 s passed", lines[1])
        # Other contracts keep the agent's stderr as it is.
        r = self.run_cinch("-t", "1", "--", "sleep", "600")
        self.assertEqual((r.bytes("stderr.log"), r.metrics["error"]), (b"", "total deadline of 1 s passed"))

    def test_why_is_in_stderr_log(self):
        r = self.scylla("--", "./no-such-agent")
        self.assertEqual(r.code, 1)
        self.assertIn("phase admit (not_found)", r.bytes("stderr.log").decode())
        r = self.scylla("-p", "none.md", "--", "true")
        self.assertIn("none.md", r.bytes("stderr.log").decode())
        r = self.scylla("--", "sh", "-c", "echo own >&2; exit 3")
        self.assertEqual(r.code, 3)
        self.assertTrue(r.bytes("stderr.log").decode().startswith("own\ncinch: error in phase"), r.bytes("stderr.log"))
        self.assertEqual(self.scylla("--", "true").bytes("stderr.log"), b"")

    def test_a_wrong_file_is_a_record(self):
        """…with the exit code of the contract, and nothing is started."""
        for name, text, word in (("c.json", '{"tools_enabled": "maybe"}', "tools_enabled"), ("c.yaml", "a: [", "c.yaml:2:1"),
                                 ("c.yaml", "- 1", "map")):
            with self.subTest(text=text):
                config = self.write(name, text)
                r = self.scylla("-c", config, "--", "touch", self.path("ws", "started"))
                self.assertEqual((r.code, r.reason, r.metrics["exit_code"]), (1, "bad_task", 1), r.stderr)
                self.assertIn(word, r.manifest["error"])
                self.assertIn(word, r.bytes("stderr.log").decode())
                self.assertIn(word, r.stderr.decode())
                self.assertFalse(os.path.exists(self.path("ws", "started")))
        r = self.run_cinch("--exit-profile", "holon", self.write("t.yaml", "nonsense: 1\n"), "--", "true")
        self.assertEqual((r.code, r.reason), (1, "bad_task"))
        r = self.run_cinch(self.write("t.yaml", "nonsense: 1\n"), "--", "true")
        self.assertEqual((r.code, r.reason), (65, "bad_task"))

    def test_a_secret_of_a_wrong_file_is_not_recorded(self):
        config = self.write("c.json", '{"api_keys": {"K": "sesame-open-4711"}, "tier_name": ["sesame-open-4711"]}')
        r = self.scylla("-c", config, "--", "true")
        self.assertEqual(r.reason, "bad_task")
        for base, _, names in os.walk(r.output):
            for name in names:
                self.assertNotIn(b"sesame-open", open(os.path.join(base, name), "rb").read(), name)

    def test_nothing_is_overwritten_by_a_refusal(self):
        first = self.run_cinch("--", "true")
        config = self.write("c.yaml", "a: [")
        for options in ((), ("--force",)):
            r = self.run_cinch("-c", config, *options, "--", "true", output=first.output, valid=False)
            self.assertEqual(r.code, 65)
            self.assertEqual(r.manifest["outcome"], "success")

    def test_without_a_directory_a_refusal_leaves_nothing(self):
        state = self.make_dir("state")
        for args in (("-p", "none.md", "--", "true"), ("-c", "none.json", "--", "true"), ("--", "./no-such-agent"),
                     ("-s", "NO_SUCH_SECRET", "--", "true")):
            r = self.cinch("run", "-w", self.workspace, *args, env={"XDG_STATE_HOME": state})
            self.assertNotEqual(r.code, 0)
            self.assertNotIn(b"record:", r.stdout)
            found = [os.path.join(base, name) for base, dirs, names in os.walk(state) for name in names]
            self.assertEqual(found, [], args)
        # A run that was started is a record, also when it fails.
        r = self.cinch("run", "-w", self.workspace, "--", "false", env={"XDG_STATE_HOME": state})
        self.assertIn(b"record:", r.stdout)

    def test_strict_needs_model_and_tier(self):
        strict = ("--set", "eval.strict=true")
        for options, word in ((("-m", "M"), "tier"), (("--tier", "T1"), "model")):
            r = self.scylla(*strict, *options, "--", "true")
            self.assertEqual((r.code, r.reason), (1, "bad_task"), r.stderr)
            self.assertIn(word, r.manifest["error"])
        self.assertEqual(self.scylla(*strict, "-m", "M", "--tier", "T1", "--", "true").code, 0)
        self.assertEqual(self.run_cinch(*strict, "--", "true").code, 0)


if __name__ == "__main__":
    harness.main()
