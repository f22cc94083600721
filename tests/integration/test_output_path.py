#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Output directories with long or unusual paths: neither the agent's HOME nor any other path that it is told has them."""

import json
import os
import re
import subprocess
import unittest

import harness

FILE_TIMEOUT = 900
NAMES = {
    "long": "/".join(["d" * 200] * 6),
    "spaces": "two  spaces here",
    "quotes": "it's \"quoted\" `here` $HOME",
    "newline": "a\nb",
    "not ASCII": "ünï-日本-🎉",
    "not UTF-8": os.fsdecode(b"x\xff\xfey"),
    "control characters": "a\x01\x1b[31mb\x7f",
}
TELL = ('cd "$CINCH_ARTIFACTS_DIR" && echo made > made.txt; for v in "$HOME" "$CINCH_OUTPUT_DIR" "$CINCH_ARTIFACTS_DIR" '
        '"$CINCH_PROMPT_FILE" "$CINCH_CONFIG_FILE" "$(cd "$HOME" && pwd)"; do echo "$v"; done; cat "$CINCH_PROMPT_FILE"; '
        'echo x > "$HOME/file" && cat "$HOME/file"')


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = self.make_dir("tmp")
        os.chmod(self.dir, 0o755)

    def assert_clean(self):
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])

    def output_of(self, name):
        output = os.path.join(self.make_dir("o"), NAMES[name], "out")
        os.makedirs(os.path.dirname(output), exist_ok=True)
        return output


class Paths(Case):
    def check(self, r, output, resolved=True):
        self.assertEqual(r.code, 0, r.stderr)
        lines = r.bytes("stdout.log").decode().splitlines()
        for line in lines[:6 if resolved else 5]:
            self.assertRegex(line, r"^/[A-Za-z0-9/._-]{1,120}$")
        self.assertEqual(lines[6:], ["say hix"])
        self.assertEqual(r.bytes("artifacts", "made.txt"), b"made\n")
        self.assertFalse(os.path.lexists(os.path.join(output, "short-path")))
        self.assert_clean()

    def test_in_the_sandbox(self):
        for name in NAMES:
            with self.subTest(name):
                output = self.output_of(name)
                r = self.run_cinch("say hi", "--", "sh", "-c", TELL, output=output)
                self.check(r, output)
                self.assertEqual(r.manifest["warnings"], [])

    def test_without_one(self):
        """The name is a link; what it leads to can be found out."""
        for name in ("long", "quotes", "newline"):
            with self.subTest(name):
                output = self.output_of(name)
                r = self.run_cinch("--sandbox", "off", "say hi", "--", "sh", "-c", TELL.replace("$(cd \"$HOME\" && pwd)", "-"),
                                   output=output)
                lines = r.bytes("stdout.log").decode().splitlines()
                self.assertEqual(lines.pop(5), "-")
                self.assertEqual((r.code, lines[5:]), (0, ["say hix"]))
                self.assertRegex("".join(lines[:5]), r"^[A-Za-z0-9/._-]+$")
                self.assert_clean()

    def test_a_plain_path_is_used_as_it_is(self):
        r = self.run_cinch("say hi", "--", "sh", "-c", TELL)
        self.assertEqual(r.bytes("stdout.log").decode().splitlines()[0], r.path("home"))

    def test_the_home_is_kept(self):
        output = self.output_of("spaces")
        r = self.run_cinch("--keep-home", "say hi", "--", "sh", "-c", TELL, output=output)
        self.assertEqual(r.bytes("home", "file"), b"x\n")
        self.assert_clean()

    def test_killed(self):
        output = self.output_of("quotes")
        process, r = self.start("--", "sh", "-c", "touch \"$HOME/begun\"; exec sleep 600", output=output)
        harness.wait_until(lambda: os.path.exists(os.path.join(output, "home", "begun")), "the agent")
        self.assertEqual(len(os.listdir(self.env["TMPDIR"])), 1)
        process.kill()
        process.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the end of the agent")
        self.assertEqual(self.cinch("recover", output).code, 0)
        self.assert_clean()
        self.assertFalse(r.exists("short-path"))

    def test_a_note_that_is_not_ours(self):
        """An agent without a sandbox can write it: nothing but a link to this run is removed."""
        output = self.output_of("quotes")
        victim = self.make_dir("victim")
        os.symlink("/nowhere", victim + "/r")
        process, _ = self.start("--sandbox", "off", "--", "sh", "-c",
                                f"printf %s {victim} > \"$CINCH_OUTPUT_DIR/short-path\"; touch \"$HOME/begun\"; exec sleep 600",
                                output=output)
        harness.wait_until(lambda: os.path.exists(os.path.join(output, "home", "begun")), "the agent")
        process.kill()
        process.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the end of the agent")
        self.assertEqual(self.cinch("recover", output).code, 0)
        self.assertEqual(os.readlink(victim + "/r"), "/nowhere")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
    def test_as_an_ordinary_user(self):
        for name in ("long", "newline"):
            with self.subTest(name):
                output = self.output_of(name)
                for folder, _, _ in os.walk(self.dir):
                    os.chown(folder, 65534, 65534)
                line = self.command_line(["say hi", "--", "sh", "-c", TELL], output)
                done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *line], env=self.env,
                                      cwd=self.dir, capture_output=True, timeout=harness.PATIENCE, check=False)
                self.check(harness.Result(done.returncode, done.stdout, done.stderr, output), output)


class Real(Case):
    """Real programs, which fail in such paths."""

    def check(self, name, steps, kinds=NAMES, **task):
        self.env["PATH"] = os.path.dirname(self.real(name)) + ":" + self.env["PATH"]
        script = {"steps": [{"when": {"turn": n}, **step} for n, step in enumerate(steps)]}
        model = self.write("model.yaml", json.dumps(script))
        task = self.write("task.yaml", json.dumps({"prompt": "make it", **task}))
        for kind in kinds:
            with self.subTest(kind):
                r = self.run_cinch("--adapter", name, "--script", model, "--timeout", "100s", task, output=self.output_of(kind))
                self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log")[-2000:] + r.bytes("stderr.log"))
                self.assertIn(b"+made", r.bytes("diff.patch"))
                self.assertEqual([w for w in r.manifest["warnings"] if not re.search("did not end", w)], [])
                self.assert_clean()

    WRITE = {"call": {"tool": "native.write_file", "args": {"path": "made.txt", "content": "made\n"}}}

    def test_claude(self):
        self.check("claude-code", [self.WRITE, {"say": "over"}])

    def test_codex(self):
        self.check("codex", [self.WRITE, {"say": "over"}])

    def test_aider(self):
        self.check("aider", [{"say": "made.txt\n```\n<<<<<<< SEARCH\n=======\nmade\n>>>>>>> REPLACE\n```\n"}],
                   kinds=("long", "quotes", "newline"))


if __name__ == "__main__":
    harness.main()
