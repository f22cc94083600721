# SPDX-License-Identifier: MIT
"""The command line as its users meet it: streams, terminals, errors, the generated page."""

import json
import os
import re
import shutil
import signal
import subprocess
import unittest

import harness
from screen import on_terminal


class Help(harness.Case):
    def test_fits_one_screen(self):
        r = self.cinch("--help")
        self.assertEqual((r.code, r.stderr), (0, b""))
        lines = r.stdout.decode().splitlines()
        self.assertLessEqual(len(lines), 23)
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_every_command_has_one_page(self):
        overview = self.cinch("help").stdout.decode()
        main, others = overview.split("Commands:\n")[1].split("\n\n")[0].split("\n  also ")
        names = [line.split()[0] for line in main.splitlines()] + others.replace(",", "").split()
        self.assertIn("show", names)
        self.assertIn("version", names)
        for name in names:
            page = self.cinch("help", name)
            self.assertEqual(page.code, 0)
            self.assertEqual(page.stdout, self.cinch(name, "--help").stdout)
            self.assertIn(f"Usage: cinch {name}".encode(), page.stdout)

    def test_nothing_to_do(self):
        r = self.cinch()
        self.assertEqual((r.code, r.stdout), (64, b""))
        self.assertEqual(r.stderr, self.cinch("--help").stdout)


class Streams(harness.Case):
    def test_full_disk_is_noticed(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([harness.CINCH, "--help"], stdout=full, stderr=subprocess.PIPE, env=self.env, check=False)
        self.assertEqual(done.returncode, 70)
        self.assertEqual(done.stderr, b"cinch: cannot write to standard output: No space left on device\n")

    def test_closed_stdout_is_noticed(self):
        line = ["sh", "-c", 'exec "$0" --help >&-', harness.CINCH]
        done = subprocess.run(line, stderr=subprocess.PIPE, env=self.env, check=False)
        self.assertEqual(done.returncode, 70)
        self.assertIn(b"cannot write to standard output", done.stderr)

    def test_closed_descriptors_are_not_reused(self):
        """With stdout and stderr closed, messages must not land in a file that is opened later."""
        line = ["sh", "-c", 'exec "$0" show "$1" <&- >&- 2>&-', harness.CINCH, self.workspace]
        self.assertEqual(subprocess.run(line, env=self.env, check=False).returncode, 66)
        self.assertEqual(os.listdir(self.workspace), [])

    def test_reader_that_goes_away(self):
        line = ["bash", "-c", '"$0" help --markdown | head -c 1 > /dev/null; echo ${PIPESTATUS[0]}', harness.CINCH]
        done = subprocess.run(line, capture_output=True, env=self.env, check=False,
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        self.assertEqual(done.stderr, b"")


class Terminal(harness.Case):
    def screen(self, *args, **env):
        code, text = on_terminal(args, {**self.env, "TERM": "xterm", **env})
        self.assertEqual(code, 0)
        return text

    def test_color(self):
        self.assertIn(b"\x1b[1m", self.screen("--help"))
        self.assertNotIn(b"\x1b", self.screen("--help", NO_COLOR="1"))
        self.assertNotIn(b"\x1b", self.screen("--help", TERM="dumb"))
        self.assertNotIn(b"\x1b", self.screen("help", "--no-color"))
        self.assertNotIn(b"\x1b", self.cinch("--help").stdout)
        self.assertIn(b"\x1b", self.cinch("help", "--color").stdout)

    def test_width_follows_the_window(self):
        for columns in (40, 60, 80, 100):
            _, text = on_terminal(["help", "show"], {**self.env, "TERM": "xterm", "NO_COLOR": "1"}, columns)
            prose = text.decode().split("Examples:")[0].replace("\r\n", "\n").split("Options:")[0]
            self.assertLessEqual(max(map(len, prose.splitlines())), columns)


class Errors(harness.Case):
    def test_text(self):
        r = self.cinch("shwo")
        self.assertEqual((r.code, r.stdout), (64, b""))
        self.assertEqual(r.stderr, b"cinch: unknown command 'shwo'; did you mean show?\nhint: see 'cinch --help'\n")

    def test_json(self):
        for args in (["shwo", "--format", "json"], ["show", "--format=json"], ["show", "-x", "--format=json"],
                     ["show", "/nonexistent", "--format", "json"]):
            r = self.cinch(*args)
            error = json.loads(r.stderr)["error"]
            self.assertEqual(r.stdout, b"")
            self.assertEqual(error["exit"], r.code)
            self.assertTrue(error["code"] and error["message"])

    def test_escape_sequences_stay_visible(self):
        r = self.cinch("show", "\x1b[2J\x1b]0;owned\x07")
        self.assertEqual(r.code, 66)
        self.assertNotIn(b"\x1b", r.stderr)
        self.assertIn(b"\\x1b[2J", r.stderr)


class Page(harness.Case):
    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_man_page_is_clean(self):
        page = self.write("cinch.1", self.cinch("help", "--man").stdout)
        done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout + done.stderr, done.returncode), ("", 0))

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_man_page_reads_well(self):
        page = self.write("cinch.1", self.cinch("help", "--man").stdout)
        text = subprocess.run(["mandoc", "-Tascii", page], capture_output=True, check=True).stdout
        text = re.sub(".\b", "", text.decode())  # overstruck for bold and underlined
        for heading in ("NAME", "SYNOPSIS", "COMMANDS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES"):
            self.assertIn(f"\n{heading}\n", text)
        self.assertIn("--format text|json|quiet", text)
        self.assertRegex(text, r"\n\s+124\s+a deadline passed")


if __name__ == "__main__":
    harness.main()
