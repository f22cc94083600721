#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An agent that works against its own record: it removes, moves, replaces or locks the run directory. The
verdict is written all the same, nothing outside is touched, and a lost record is never called a success."""

import os
import subprocess
import unittest

import harness

VERDICT = ("manifest.json", "metrics.json", "result.json")


class RunDirectory(harness.Case):
    def attack(self, text, **kw):
        """In the sandbox none of this reaches the record; without it the record defends itself."""
        return self.run_command("sh", "-c", text, valid=False, options=["--sandbox", "off"], **kw)

    def test_removed(self):
        r = self.attack('rm -rf "$CINCH_OUTPUT_DIR"')
        self.assert_failed(r, 73, "removed during the run")
        self.assertEqual(r.reason, "cannot_write_output")
        self.assertIn("removed during the run", r.manifest["error"])
        self.assertEqual(r.metrics["ext"]["contract_exit"], 73)
        self.assertEqual(r.state["reason"], "cannot_write_output")

    def test_emptied(self):
        """What is left when a `rm -rf` of the directory meets a file that cinch has just made in it."""
        for code in (0, 1):
            with self.subTest(code=code):
                r = self.attack(f'rm -rf "$CINCH_OUTPUT_DIR"/*; exit {code}')
                self.assert_failed(r, 73, "removed during the run")
                self.assertEqual(r.reason, "cannot_write_output")
                self.assertEqual(r.state["exit_code"], 73)

    def test_parts_removed(self):
        for name in ("stdout.log", "events.jsonl", "work"):
            with self.subTest(name=name):
                r = self.attack(f'rm -rf "$CINCH_OUTPUT_DIR/{name}"; echo hi')
                self.assert_failed(r, 73, f"'{name}' was removed during the run")
                self.assertEqual(r.reason, "cannot_write_output")

    def test_moved_away(self):
        r = self.attack('mv "$CINCH_OUTPUT_DIR" "$CINCH_OUTPUT_DIR.moved"')
        self.assert_failed(r, 73, "was moved to", r.output + ".moved")
        r.output += ".moved"
        self.assert_valid(r)
        self.assertEqual(r.reason, "cannot_write_output")

    def test_replaced_by_a_link_to_something_precious(self):
        precious = self.write("victim/home/file", "precious")
        victim = self.path("victim")
        r = self.attack(f'rm -rf "$CINCH_OUTPUT_DIR"; ln -s {victim} "$CINCH_OUTPUT_DIR"')
        self.assertEqual(r.code, 73)
        with open(precious, encoding="ascii") as f:
            self.assertEqual(f.read(), "precious")
        self.assertEqual(os.listdir(victim), ["home"])

    def test_moved_and_replaced_by_a_link(self):
        precious = self.write("victim/home/file", "precious")
        victim = self.path("victim")
        r = self.attack(f'mv "$CINCH_OUTPUT_DIR" "$CINCH_OUTPUT_DIR.x"; ln -s {victim} "$CINCH_OUTPUT_DIR"')
        self.assertEqual(r.code, 73)
        self.assertTrue(os.path.exists(precious))
        self.assertEqual(os.listdir(victim), ["home"])

    def test_directories_in_the_place_of_files(self):
        names = " ".join(VERDICT)
        r = self.attack(f'cd "$CINCH_OUTPUT_DIR"; for f in {names}; do mkdir -p $f/x; done; echo hi')
        self.assertEqual(r.code, 0, r.stderr)
        self.assert_valid(r)
        self.assertEqual(r.bytes("stdout.log"), b"hi\n")

    def test_links_in_the_place_of_files(self):
        victim = self.write("victim", "precious")
        names = " ".join(VERDICT + ("state.json", "stdout.log", "logs", "evidence"))
        self.attack(f'cd "$CINCH_OUTPUT_DIR"; rm -rf {names}; for f in {names}; do ln -s {victim} $f; done; echo hi')
        with open(victim, encoding="ascii") as f:
            self.assertEqual(f.read(), "precious")

    def test_files_that_cannot_be_written_are_no_success(self):
        # A directory in the way, and no place to move it to.
        r = self.attack('cd "$CINCH_OUTPUT_DIR"; mkdir -p manifest.json/x manifest.json.damaged/x')
        self.assert_failed(r, 73, "manifest.json")
        self.assertEqual(r.state["reason"], "cannot_write_output")
        self.assertEqual(r.metrics["ext"]["reason"], "cannot_write_output")

    def test_a_file_size_limit_costs_the_text_only(self):
        limited = ["sh", "-c", 'ulimit -f 32; exec "$@"', "sh"]
        output = self.new_output()
        line = self.command_line(["--", "head", "-c", "100000", "/dev/zero"], output)
        done = subprocess.run(limited + line, env=self.env, capture_output=True, timeout=harness.PATIENCE)
        r = harness.Result(done.returncode, done.stdout, done.stderr, output)
        self.assert_valid(r)
        self.assertEqual((r.code, r.reason), (0, "success"))
        self.assertTrue(r.result["truncated"])
        self.assertTrue(r.manifest["warnings"])


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class OrdinaryUser(harness.Case):
    def test_a_locked_directory(self):
        os.chmod(self.dir, 0o777)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        output = self.new_output()
        line = self.command_line(["--sandbox", "off", "--", "sh", "-c", 'echo hi; chmod 000 "$HOME" "$CINCH_OUTPUT_DIR"'], output)
        probe = subprocess.run(nobody + [harness.CINCH, "version"], env=self.env, capture_output=True, timeout=60)
        if probe.returncode != 0:
            self.skipTest("another user cannot execute cinch here")
        done = subprocess.run(nobody + line, env=self.env, capture_output=True, timeout=harness.PATIENCE)
        r = harness.Result(done.returncode, done.stdout, done.stderr, output)
        self.assertEqual(r.code, 0, r.stderr)
        self.assert_valid(r)
        self.assertFalse(r.exists("home"))


if __name__ == "__main__":
    harness.main()
