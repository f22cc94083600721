# SPDX-License-Identifier: MIT
"""Completion as the shells do it: bash and fish are asked for real, zsh reads the script."""

import os
import shutil
import subprocess
import unittest

import harness

ASK_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_cinch
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Bash(harness.Case):
    def setUp(self):
        super().setUp()
        self.script_path = self.write("cinch.bash", self.cinch("completion", "bash").stdout)
        # The script asks `cinch` for the names of adapters.
        os.symlink(harness.CINCH, self.path("cinch"))

    def complete(self, *words):
        """What bash offers for the last word."""
        env = {**self.env, "PATH": self.dir + ":" + self.env["PATH"]}
        done = subprocess.run(["bash", "--norc", "-c", ASK_BASH, "bash", self.script_path, *words], env=env,
                              cwd=self.workspace, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_commands(self):
        self.assertEqual(self.complete("cinch", "sh"), ["show"])
        self.assertIn("doctor", self.complete("cinch", ""))
        self.assertEqual(self.complete("cinch", "--format", "json", "doc"), ["doctor"])

    def test_options(self):
        self.assertEqual(self.complete("cinch", "show", "--li"), ["--lines"])
        self.assertIn("--no-color", self.complete("cinch", "show", "--"))
        self.assertNotIn("--lines", self.complete("cinch", "doctor", "--"))

    def test_values(self):
        self.assertEqual(self.complete("cinch", "show", "--format", ""), ["text", "json", "quiet"])
        # '=' is a word of its own for bash
        self.assertEqual(self.complete("cinch", "show", "--format", "=", "j"), ["json"])
        self.assertEqual(self.complete("cinch", "show", "--format", "="), ["text", "json", "quiet"])
        self.assertEqual(self.complete("cinch", "show", "--format=q"), ["--format=quiet"])
        self.assertEqual(self.complete("cinch", "show", "--lines", ""), [])

    def test_arguments(self):
        os.mkdir(os.path.join(self.workspace, "run-1"))
        with open(os.path.join(self.workspace, "run-notes"), "w", encoding="utf-8"):
            pass
        self.assertEqual(self.complete("cinch", "show", "ru"), ["run-1"])
        self.assertEqual(self.complete("cinch", "show", "--format", "json", "ru"), ["run-1"])
        self.assertEqual(self.complete("cinch", "completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.complete("cinch", "help", "comp"), ["completion"])
        self.assertEqual(self.complete("cinch", "completion", "bash", ""), [])

    def test_adapters(self):
        self.assertEqual(self.complete("cinch", "adapters", "show", "com"), ["command"])

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_shellcheck(self):
        # 2207: mapfile is used; 2034: bash reads COMPREPLY
        done = subprocess.run(["shellcheck", "-s", "bash", self.script_path], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "")


class Zsh(harness.Case):
    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_syntax(self):
        script = self.write("_cinch", self.cinch("completion", "zsh").stdout)
        done = subprocess.run(["zsh", "-f", "-n", script], capture_output=True, text=True, check=False)
        self.assertEqual((done.stderr, done.returncode), ("", 0))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_is_registered(self):
        script = self.write("_cinch", self.cinch("completion", "zsh").stdout)
        line = 'autoload -U compinit && compinit -D && source "$1" && print -r -- ${_comps[cinch]}'
        done = subprocess.run(["zsh", "-f", "-c", line, "zsh", script], env=self.env, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.stdout.strip(), "_cinch", done.stderr)


@unittest.skipUnless(shutil.which("fish"), "fish is not installed")
class Fish(harness.Case):
    def complete(self, line):
        """The words that fish offers for a command line."""
        script = self.write("cinch.fish", self.cinch("completion", "fish").stdout)
        os.makedirs(self.path("bin"), exist_ok=True)
        if not os.path.lexists(self.path("bin", "cinch")):
            os.symlink(harness.CINCH, self.path("bin", "cinch"))
        env = {**self.env, "PATH": self.path("bin") + ":" + self.env["PATH"]}
        done = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line],
                              env=env, cwd=self.workspace, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return [entry.split("\t")[0] for entry in done.stdout.splitlines()]

    def test_words(self):
        self.assertEqual(self.complete("cinch sho"), ["show"])
        self.assertIn("--lines", self.complete("cinch show --l"))
        self.assertEqual(sorted(self.complete("cinch show --format ")), ["json", "quiet", "text"])
        self.assertEqual(self.complete("cinch adapters show com"), ["command"])


if __name__ == "__main__":
    harness.main()
