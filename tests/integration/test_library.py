#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""libcinch as it is installed: header, library and pkg-config file are enough to build the examples, and they do
what their comments say."""

import json
import os
import shutil
import subprocess

import harness

EXAMPLES = os.path.join(harness.ROOT, "examples", "c")


class Library(harness.Case):
    def installed(self):
        """What `meson install` puts somewhere, as a compiler finds it."""
        if harness.SANITIZED:
            self.skipTest("a sanitized library needs a sanitized program")
        place = self.path("installed")
        subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--quiet", "--destdir", place],
                       check=True, capture_output=True)
        found = [os.path.join(d, "cinch.pc") for d, _, files in os.walk(place) if "cinch.pc" in files]
        self.assertEqual(len(found), 1)
        self.lib = os.path.dirname(os.path.dirname(found[0]))
        return {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(found[0]), "PKG_CONFIG_SYSROOT_DIR": place}

    def build(self, name, env):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "cinch"], env=env, check=True,
                               capture_output=True, text=True).stdout.split()
        program = self.path(name)
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
                        os.path.join(EXAMPLES, name + ".c"), *flags, "-o", program], check=True)
        return program

    def run_example(self, name, *files):
        env = self.installed()
        program = self.build(name, env)
        for f in files:
            shutil.copy(os.path.join(EXAMPLES, f), self.path(f))
        done = subprocess.run([program, self.path(files[0])], cwd=self.workspace, capture_output=True, text=True,
                              env={**self.env, "LD_LIBRARY_PATH": self.lib, "CINCH_INIT": harness.init(),
                                   "XDG_STATE_HOME": self.path("state")})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_lookup(self):
        out = self.run_example("lookup", "lookup.yaml", "lookup-model.yaml")
        self.assertEqual(out.count("a tool was called"), 2)
        self.assertIn("success after 2 calls", out)

    def test_guarded(self):
        out = self.run_example("guarded", "guarded-model.yaml")
        first, _, rest = out.partition("\n")
        self.assertEqual(first, "success: 2 noted, 2 denied, 2 checks")
        self.assertEqual(json.loads(rest)["reason"], "success")

    def test_only_what_is_promised_is_visible(self):
        self.installed()
        names = subprocess.run(["nm", "-D", "--defined-only", os.path.join(self.lib, "libcinch.so.0")], check=True,
                               capture_output=True, text=True).stdout.split("\n")
        visible = {line.split()[-1] for line in names if line}
        self.assertEqual({n for n in visible if not n.startswith("cinch_")}, set())
        with open(os.path.join(harness.ROOT, "include", "cinch.h")) as f:
            header = f.read()
        self.assertEqual({n for n in visible if n + "(" not in header}, set())


if __name__ == "__main__":
    harness.main()
