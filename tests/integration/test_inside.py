# SPDX-License-Identifier: MIT
"""Real programs work inside the default sandbox: version control, interpreters, compilers, package managers, and the
agent programs themselves."""

import os
import shutil
import subprocess
import unittest

import harness

AGENTS = ("claude-code", "codex", "gemini", "opencode", "qwen", "aider")


class Inside(harness.Case):
    def shell(self, text, *needs, options=()):
        """Runs a shell text inside and returns its output; skipped where a program is missing."""
        for name in needs:
            if shutil.which(name, path=self.env["PATH"]) is None:
                self.skipTest(f"{name} is not installed")
        r = self.run_command("/bin/sh", "-ec", text, options=options)
        self.assertEqual(r.reason, "success", r.bytes("stderr.log").decode(errors="replace"))
        return r.bytes("stdout.log").decode()

    def test_git(self):
        subprocess.run(["git", "init", "-q", self.workspace], check=True)
        said = self.shell("git config --get core.bare; echo x > f; git add f;"
                          "git -c user.name=a -c user.email=a@b commit -qm one; git log --format=%s; git status --short",
                          "git")
        self.assertEqual(said.split(), ["false", "one"])
        self.assertFalse(os.path.exists(os.path.join(self.workspace, "f")))

    def test_python(self):
        self.assertEqual(self.shell("/usr/bin/python3 -c 'import ssl, sqlite3, subprocess; "
                                    "print(subprocess.check_output([\"echo\", \"42\"]).decode())'").strip(), "42")

    def test_node(self):
        said = self.shell("node -e 'const s = require(\"net\").createServer().listen(0, \"127.0.0.1\", () => {"
                          "console.log(typeof s.address().port); s.close() })'", "node")
        self.assertEqual(said.strip(), "number")

    def test_npm_offline(self):
        self.write("ws/dep/package.json", '{"name": "dep", "version": "1.0.0"}')
        self.write("ws/package.json", '{"name": "top", "version": "1.0.0", "dependencies": {"dep": "file:dep"}}')
        said = self.shell("npm install --offline --no-audit --no-fund --loglevel=error >&2;"
                          "node -p 'require(\"dep/package.json\").version'", "npm", "node")
        self.assertEqual(said.strip(), "1.0.0")

    def test_gcc(self):
        self.write("ws/a.c", "#include <stdio.h>\nint main(void) { return puts(\"built\") < 0; }\n")
        self.assertEqual(self.shell("gcc -o a a.c && ./a", "gcc").strip(), "built")

    def test_pipes_and_temporary_files(self):
        self.assertEqual(self.shell("t=$(mktemp); seq 1000 | sort -n | tail -1 > $t; cat $t; test -c /dev/null;"
                                    "test -w \"$HOME\"; id -u >/dev/null").strip(), "1000")


def version_test(name):
    def test(self):
        path = self.real(name)
        r = self.run_command(path, "--version", options=("--timeout", "120s"))
        self.assertEqual(r.reason, "success", r.bytes("stderr.log").decode(errors="replace"))
        self.assertRegex(r.bytes("stdout.log").decode(), r"\d+\.\d+")
    return test


for agent in AGENTS:
    setattr(Inside, "test_version_of_" + agent.replace("-", "_"), version_test(agent))


if __name__ == "__main__":
    unittest.main(verbosity=2)
