#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Trees that are hard to read: files and directories without permissions, very deep ones, names that git refuses. The
run keeps its verdict, the patch applies, and what is not in it is named. As root and as an ordinary user."""

import os
import stat
import subprocess
import unittest

import harness
from test_foreign_git import USER, Case

FILE_TIMEOUT = 900
MODES = ("overlay", "copy", "in-place")

# Makes DEPTH directories below each other, with a file in the last one, and a file at the top.
DEEP = """
import os, sys
open('top', 'w').write('x\\n')
fd = os.open('.', os.O_RDONLY)
for i in range(int(sys.argv[1])):
    os.mkdir('q', dir_fd=fd)
    inner = os.open('q', os.O_RDONLY, dir_fd=fd)
    os.close(fd)
    fd = inner
os.write(os.open('leaf', os.O_CREAT | os.O_WRONLY, dir_fd=fd), b'x')
"""


class Odd(Case):
    def setUp(self):
        super().setUp()
        self.repo(files={"a": "one\n", "d/b": "b\n", "d/c": "c\n", "e/f": "f\n"})
        self.deep = self.write("deep.py", DEEP)
        os.chmod(self.deep, 0o644)

    def tearDown(self):
        # Python's rmtree gives up on what is too deep.
        subprocess.run(["chmod", "-R", "u+rwx", self.dir], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", self.dir], check=False, capture_output=True)

    def fresh(self):
        subprocess.run(["chmod", "-R", "u+rwx", self.workspace], check=True)
        self.git(self.workspace, "reset", "-q", "--hard")
        self.git(self.workspace, "clean", "-qfdx")

    def agent(self, script, *options):
        r = self.run_agent(script, *options)
        self.assertEqual(r.code, 0, r.stderr)
        self.assertTrue(r.exists("diff.patch"))
        if "--keep-workspace" not in options:  # the validator looks at every file
            self.assert_valid(r)
        return r

    def left_out(self, r):
        found = r.json("evidence", "workspace.json")["left_out"]
        if found:  # the user hears of it, not only the record
            self.assertTrue([w for w in r.manifest["warnings"] if found[0]["path"] in w], r.manifest["warnings"])
            self.assertIs(r.manifest["no_changes"], False)
        return {x["path"]: x["why"] for x in found}

    def applied(self, r, *config):
        """A copy of the workspace as it was, with the patch; contents by path."""
        copy = self.path("copy")
        subprocess.run(["rm", "-rf", copy], check=True)
        self.git(self.dir, "-c", "protocol.file.allow=always", "clone", "-q", self.workspace, copy)
        if os.path.getsize(r.path("diff.patch")):
            self.git(copy, *config, "apply", "--index", r.path("diff.patch"))
        found = {}
        for base, dirs, files in os.walk(copy):
            dirs[:] = [d for d in dirs if d != ".git"]
            for name in files:
                with open(os.path.join(base, name), encoding="utf-8") as f:
                    found[os.path.relpath(os.path.join(base, name), copy)] = f.read()
        return found

    def test_a_file_of_mode_0(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.fresh()
                r = self.agent("echo y >> a; echo x > f; chmod 0 f; echo z > d/b; chmod 0 d/b", "--workspace-mode", mode,
                               "--keep-workspace", "keep")
                left, files = self.left_out(r), self.applied(r)
                self.assertEqual(files["a"], "one\ny\n")
                if mode == "in-place" and self.uid != 0:  # files of the user's own tree are left as they are
                    self.assertEqual(sorted(left), ["d/b", "f"])
                    self.assertIn("Permission denied", left["f"])
                    self.assertEqual(files["d/b"], "b\n")
                else:
                    self.assertEqual((left, files["f"], files["d/b"]), ({}, "x\n", "z\n"))
                where = {"overlay": "work/layer/upper", "copy": "work/tree"}.get(mode)
                tree = self.workspace if where is None else r.path(where)
                self.assertEqual(stat.S_IMODE(os.lstat(os.path.join(tree, "f")).st_mode), 0)

    def test_a_file_that_could_not_be_read_before(self):
        os.chmod(os.path.join(self.workspace, "d/b"), 0)
        r = self.agent("chmod 644 d/b; echo more >> d/b; echo y >> a")
        files = self.applied_outside_git(r)
        if self.uid == 0:
            self.assertEqual((self.left_out(r), files["d/b"]), ({}, "b\nmore\n"))
        else:
            self.assertEqual(list(self.left_out(r)), ["d/b"])
        self.assertEqual(files["a"], "one\ny\n")

    def applied_outside_git(self, r):
        os.chmod(os.path.join(self.workspace, "d/b"), 0o644)
        return self.applied(r)

    def test_directories_without_permissions(self):
        for permissions in ("0", "0400", "0100", "0200", "0600"):
            for mode in MODES:
                with self.subTest(permissions=permissions, mode=mode):
                    self.fresh()
                    script = (f"echo y >> a; mkdir -p n/m; echo x > n/f; echo x > n/m/g; chmod {permissions} n/m n; "
                              f"echo z >> d/b; rm d/c; chmod {permissions} d")
                    r = self.agent(script, "--workspace-mode", mode, "--keep-workspace", "keep")
                    left, files = self.left_out(r), self.applied(r)
                    self.assertEqual(files["a"], "one\ny\n")
                    if mode == "in-place" and self.uid != 0:
                        self.assertEqual(sorted(left), ["d", "n"])
                        self.assertEqual((files["d/b"], files["d/c"]), ("b\n", "c\n"), "it is not gone, only closed")
                    else:
                        self.assertEqual((left, files["n/f"], files["n/m/g"], files["d/b"]), ({}, "x\n", "x\n", "b\nz\n"))
                        self.assertNotIn("d/c", files)
                    where = {"overlay": "work/layer/upper", "copy": "work/tree"}.get(mode)
                    tree = self.workspace if where is None else r.path(where)
                    self.assertEqual(stat.S_IMODE(os.lstat(os.path.join(tree, "n")).st_mode), int(permissions, 8))
                    done = self.call(harness.CINCH, "clean", r.output)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertFalse(r.exists("work"))

    def test_a_deep_tree(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                depth = 10000 if mode == "overlay" else 1000  # the disk is slow with so many directories
                r = self.agent(f"echo y >> a; /usr/bin/python3 {self.deep} {depth}", "--read", self.deep, "--workspace-mode", mode,
                               "--keep-workspace", "keep")
                left, files = self.left_out(r), self.applied(r)
                self.assertEqual(len(left), 1, left)
                self.assertIn("nested too deep", list(left.values()))
                self.assertEqual((files["a"], files["top"]), ("one\ny\n", "x\n"))
                done = self.call(harness.CINCH, "clean", "--records", r.output)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertFalse(os.path.exists(r.output))
                if mode == "in-place":
                    self.git(self.workspace, "checkout", "-q", "a")

    def test_a_source_that_is_deep(self):
        """It was there before: every mode works, and says what it could not look into."""
        self.call("python3", self.deep, "1000", cwd=self.workspace)
        for mode in MODES:
            with self.subTest(mode=mode):
                r = self.agent("echo y >> d/b", "--workspace-mode", mode)
                self.assertEqual(self.applied(r)["d/b"], "b\ny\n")
                if mode == "copy":
                    self.assertTrue([w for w in r.manifest["warnings"] if "could not be copied" in w])

    NAMES = [".GIT/x", ".Git", "git~1/config", "GIT~1", "s/.giT/config", ".git ", ".git.", ".git:x", "a\\\\.git", ".g\u200cit/x"]

    def test_names_that_git_refuses(self):
        make = "; ".join(f"mkdir -p \"$(dirname '{n}')\"; echo x > '{n}'" for n in self.NAMES if "\\" not in n)
        make += r"; echo x > 'a\.git'; ln -s a .gitmodules; ln -s a 'gitmod~1'"
        wanted = sorted([n for n in self.NAMES if "\\" not in n] + ["a\\.git", ".gitmodules", "gitmod~1"])
        for mode in MODES:
            with self.subTest(mode=mode):
                r = self.agent(f"echo y >> a; echo x > .gitattributes; {make}", "--workspace-mode", mode)
                left = self.left_out(r)
                self.assertEqual(sorted(left), wanted)
                self.assertEqual(set(left.values()), {"git refuses this name"})
                files = self.applied(r, "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true")
                self.assertEqual((files["a"], files[".gitattributes"]), ("one\ny\n", "x\n"))
                if mode == "overlay":
                    done = self.apply(r, "--check")
                    self.assertEqual(done.returncode, 0, done.stderr)
                subprocess.run(["git", "-c", "safe.directory=*", "checkout", "-q", "a"], cwd=self.workspace, check=True)

    def test_nothing_but_such_a_name(self):
        r = self.agent("mkdir .GIT; echo x > .GIT/x")
        self.assertEqual(list(self.left_out(r)), [".GIT/x"])
        self.assertEqual(os.path.getsize(r.path("diff.patch")), 0)

    def test_a_damaged_index(self):
        """In place the agent can write it; the patch does not depend on it."""
        self.write("ws/.gitignore", "*.o\n")
        self.write("ws/x.o", "x\n")
        self.give(self.workspace, self.uid)
        self.git(self.workspace, "add", "-f", "x.o")
        self.git(self.workspace, "commit", "-qm", "tracked although ignored")
        r = self.agent("echo garbage > .git/index; echo y >> a; echo y >> x.o", "--workspace-mode", "in-place")
        self.assertEqual(self.patched(r), ["a"])
        self.assertEqual(list(self.left_out(r)), [".git/index"])


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class OddForUser(Odd):
    uid = USER


class Nested(Case):
    """The record may come from somebody else: paths in it do not lead out of the tree."""

    def test_paths_of_a_record(self):
        import json
        self.repo(files={"a": "one\n"})
        self.repo("ws/sub", files={"a": "one\n"})
        self.repo("victim", files={"a": "one\n"})
        os.symlink(self.path("victim"), os.path.join(self.workspace, "link"))
        r = self.run_agent("echo two >> sub/a")
        self.assertEqual(r.code, 0, r.stderr)
        name = r.path("evidence", "workspace.json")
        good = r.json("evidence", "workspace.json")
        self.assertEqual([n["path"] for n in good["nested"]], ["sub"])
        for path in ("../victim", self.path("victim"), "sub/../../victim", "link", "", ".", ".git", "sub/.git", "..", "sub/"):
            with self.subTest(path=path):
                bad = {**good, "nested": [{**good["nested"][0], "path": path}]}
                with open(name, "w", encoding="utf-8") as f:
                    json.dump(bad, f)
                for options in (["--check"], []):
                    done = self.apply(r, *options)
                    self.assertEqual(done.returncode, 66, (done.stdout, done.stderr))
                with open(self.path("victim", "a"), encoding="utf-8") as f:
                    self.assertEqual(f.read(), "one\n")
        outside = self.write("outside.patch", r.bytes("evidence", "nested", "1.patch"))
        for patch in ("../../../outside.patch", outside, "x/../1.patch", "", "2.patch"):
            with self.subTest(patch=patch):
                bad = {**good, "nested": [{**good["nested"][0], "patch": patch}]}
                with open(name, "w", encoding="utf-8") as f:
                    json.dump(bad, f)
                self.assertEqual(self.apply(r).returncode, 66)
                with open(os.path.join(self.workspace, "sub", "a"), encoding="utf-8") as f:
                    self.assertEqual(f.read(), "one\n")
        with open(name, "w", encoding="utf-8") as f:
            json.dump(good, f)
        done = self.apply(r)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.workspace, "sub", "a"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "one\ntwo\n")


if __name__ == "__main__":
    harness.main()
