#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Transactions on a workspace, on the real kernel: what a program did arrives as a whole or not at all.

The heart is a comparison: random work in a transaction and the same work on a plain copy must give the same tree;
after a rollback not even an inode or a time may differ. Then the same with a kill at every call of the commit.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
import treeops

FILE_TIMEOUT = 900
TXN = harness.program("txn_run")
OPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "treeops.py")
PYTHON = "/usr/bin/python3"
IS_ROOT = os.geteuid() == 0
SEEDS = 2 if harness.SANITIZED else 3


def overlay_works():
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(os.path.join(d, "ws"))
        done = subprocess.run([TXN, os.path.join(d, "ws"), os.path.join(d, "t"), "--", "true"], capture_output=True)
        return done.returncode == 0


def other_user(command):
    """The same as an ordinary user, who needs a user namespace for an overlay."""
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]


class Layout:
    """Where workspace, journals and layers lie, and how the transaction is run."""

    def __init__(self, name, options=(), rename=False, shm=False, stacked=False, user=False):
        self.name, self.options, self.rename = name, list(options), rename
        self.shm, self.stacked, self.user = shm, stacked, user


LAYOUTS = [
    Layout("plain"),
    Layout("copy", ["--copy"]),
    Layout("layers in memory", shm=True),
    Layout("second transaction open", ["--parallel"]),
]
ROOT_LAYOUTS = [
    Layout("redirect", ["--redirect"], rename=True),
    Layout("redirect, layers in memory", ["--redirect"], rename=True, shm=True),
    Layout("on an overlay", stacked=True),
    Layout("on an overlay, redirect", ["--redirect"], rename=True, stacked=True),
    Layout("ordinary user", user=True),
    Layout("ordinary user, layers in memory", user=True, shm=True),
]


class Base(harness.Case):
    @classmethod
    def setUpClass(cls):
        if not overlay_works():
            raise unittest.SkipTest("no overlay can be mounted here, not even in a user namespace")

    def txn(self, layout, ws, command, env=None, more=(), check=None):
        place = self.make_dir("txn", os.path.basename(ws))
        line = [TXN, *layout.options, *more]
        if layout.shm:
            self.shm = getattr(self, "shm", None) or tempfile.mkdtemp(dir="/dev/shm")
            self.addCleanup(shutil.rmtree, self.shm, ignore_errors=True)
            line += ["--layers", self.shm]
        line += [ws, place, *(["--", *command] if command else [])]
        if layout.user:
            for path in filter(None, (self.path("txn"), place, getattr(self, "shm", None))):
                os.chown(path, 65534, 65534)
            line = other_user(line)
        done = subprocess.run(line, env={**self.env, **(env or {})}, capture_output=True, timeout=30)
        if check is not None:
            self.assertEqual(done.returncode, check, done.stderr.decode(errors="replace"))
        if done.returncode >= 0:
            self.assertEqual(os.listdir(place), [], f"left over; {done.returncode} {done.stderr}")
            self.assertEqual(os.listdir(self.shm) if layout.shm else [], [], "left over")
            self.assertFalse([n for n in os.listdir(ws) if n.startswith(".cinch")], "left over")
        return done

    def tree(self, layout, name, seed):
        path = self.path(name)
        treeops.build(path, seed)
        if layout.user:
            os.chmod(self.dir, 0o755)
            for base, dirs, files in os.walk(path):
                for n in [base] + [os.path.join(base, x) for x in dirs + files]:
                    os.chown(n, 65534, 65534, follow_symlinks=False)
        return path


def make_program(layout, seed, count):
    return [PYTHON, OPS, "work", str(seed), str(count)] + (["rename"] if layout.rename else [])


class Differential(Base):
    """Commit against a plain copy; rollback against before."""

    def compare(self, layout, seed):
        ws, plain = self.tree(layout, f"ws{seed}", seed), self.tree(layout, f"plain{seed}", seed)
        if layout.stacked:
            ws = self.mount_over(ws, seed)
        before = treeops.manifest(ws, exact=True)
        program = make_program(layout, seed, 50)
        self.txn(layout, ws, program, env={"TREEOPS_STATUS": "9"}, check=9)
        self.assertEqual(treeops.manifest(ws, exact=True), before, f"rollback, seed {seed}")
        subprocess.run(other_user(program) if layout.user else program, cwd=plain, check=True)
        self.txn(layout, ws, program, check=0)
        got, wanted = treeops.manifest(ws), treeops.manifest(plain)
        self.assertEqual(got, wanted, f"commit, seed {seed}: " + treeops.difference(got, wanted))

    def mount_over(self, lower, seed):
        """The workspace is itself an overlay, as an agent's is; this process has a mount namespace of its own."""
        paths = [self.make_dir(f"{name}{seed}") for name in ("upper", "work", "merged")]
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                        f"lowerdir={lower},upperdir={paths[0]},workdir={paths[1]},redirect_dir=on", paths[2]],
                       check=True)
        self.addCleanup(subprocess.run, ["umount", paths[2]])
        return paths[2]

    def test_layouts(self):
        for layout in LAYOUTS:
            for seed in range(SEEDS):
                with self.subTest(layout=layout.name, seed=seed):
                    self.compare(layout, seed + 100 * LAYOUTS.index(layout))

    @unittest.skipUnless(IS_ROOT, "mounts made by root, and other users, need root")
    def test_layouts_of_root(self):
        for layout in ROOT_LAYOUTS:
            if layout.stacked and os.environ.get("CINCH_TEST_UNSHARED") != "1":
                continue  # see test_stacked
            for seed in range(SEEDS):
                with self.subTest(layout=layout.name, seed=seed):
                    self.compare(layout, seed + 1000 * (1 + ROOT_LAYOUTS.index(layout)))

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_stacked(self):
        """The layouts on an overlay, in a mount namespace of their own: nothing is left mounted, whatever happens."""
        if os.environ.get("CINCH_TEST_UNSHARED") == "1":
            self.skipTest("is the inner one")
        done = subprocess.run(["unshare", "--mount", sys.executable, os.path.abspath(__file__),
                               "Differential.test_layouts_of_root"],
                              env={**os.environ, "CINCH_TEST_UNSHARED": "1"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])


class Crash(Base):
    """Killed at every call of the commit that changes a file: afterwards all of it, or nothing."""

    SCRIPT = ("echo more >> a; echo new > n; rm d/gone; mv d/moved e/moved; mkdir f; echo x > f/x; ln f/x f/y; "
              "rm -r swap; echo file > swap; rm other; mkdir other; echo o > other/o; rm -r opaque; mkdir opaque; "
              "echo 1 > opaque/1; chmod 700 e; ln -s /nowhere link")

    def build(self, name):
        root = self.make_dir(name)
        for path in ("a", "d/gone", "d/moved", "d/stays", "e/e", "swap/1", "swap/deep/2", "other", "opaque/old"):
            self.write(os.path.join(name, path), path * 10)
        return root

    def kill_everywhere(self, layout):
        wanted_after = self.build("after")
        self.txn(layout, wanted_after, ["sh", "-c", self.SCRIPT], check=0)
        after = treeops.manifest(wanted_after)
        before = treeops.manifest(self.build("before"))
        self.assertNotEqual(before, after)
        outcomes = set()
        for n in range(1, 400):
            ws = self.build(f"ws{n}")
            done = self.txn(layout, ws, ["sh", "-c", self.SCRIPT], more=["--die-at", str(n)])
            if done.returncode == 0:
                self.assertEqual(treeops.manifest(ws), after)
                self.assertEqual(outcomes, {"before", "after"})
                return
            self.assertEqual(done.returncode, -9, done.stderr)
            # Recovery may be killed, too.
            self.txn(layout, ws, None, more=["--recover", "--die-at", str(n % 17 + 1)])
            done = self.txn(layout, ws, None, more=["--recover"], check=0)
            got = treeops.manifest(ws)
            self.assertIn(got, (before, after), f"killed at call {n}: " + treeops.difference(got, after))
            outcomes.add("before" if got == before else "after")
            shutil.rmtree(ws)
        self.fail("the commit never came to its end")

    def test_plain(self):
        self.kill_everywhere(LAYOUTS[0])

    def test_across_file_systems(self):
        self.kill_everywhere(LAYOUTS[2])

    def test_without_overlay(self):
        self.kill_everywhere(LAYOUTS[1])

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_moved_directories(self):
        layout = Layout("redirect", ["--redirect"])
        self.SCRIPT = self.SCRIPT + "; mv d d2; mv e d2/e3; mv d2/stays s"
        self.kill_everywhere(layout)


class Facts(Base):
    def setUp(self):
        super().setUp()
        self.ws = self.make_dir("w")

    def run_in(self, script, layout=LAYOUTS[0], **kw):
        return self.txn(layout, self.ws, ["sh", "-c", script], **kw)

    def test_a_failing_program_changes_nothing(self):
        self.write("w/a", "1")
        before = treeops.manifest(self.ws, exact=True)
        self.run_in("echo 2 > a; mkdir x; exit 3", check=3)
        self.assertEqual(treeops.manifest(self.ws, exact=True), before)

    def test_ignored_files_and_nested_repositories_survive_a_rollback(self):
        self.write("w/.gitignore", "build/\n")
        self.write("w/build/out.o", "object")
        self.make_dir("w", "empty")
        subprocess.run(["git", "init", "-q", self.make_dir("w", "nested")], check=True)
        before = treeops.manifest(self.ws, exact=True)
        self.run_in("rm -rf build empty nested; exit 1", check=1)
        self.assertEqual(treeops.manifest(self.ws, exact=True), before)

    def test_times_are_those_of_the_program(self):
        self.write("w/a", "1")
        self.run_in("touch -d 2001-02-03T04:05:06.789Z a n", check=0)
        for name in ("a", "n"):
            self.assertEqual(os.stat(os.path.join(self.ws, name)).st_mtime_ns, 981173106789000000)

    def test_no_marks_of_the_overlay_are_left(self):
        self.write("w/d/a", "1")
        self.run_in("rm -r d; mkdir d; echo 2 > d/b", check=0)
        done = subprocess.run(["getfattr", "-R", "-d", "-m", "-", self.ws], capture_output=True, text=True) \
            if shutil.which("getfattr") else None
        for base, dirs, files in os.walk(self.ws):
            for name in dirs + files:
                self.assertEqual(os.listxattr(os.path.join(base, name)), [])
        self.assertTrue(done is None or "overlay" not in done.stdout)

    def test_a_planted_mark_means_nothing(self):
        """A program can set user.overlay.* where the overlay keeps its marks in trusted.*: still an ordinary file."""
        self.write("w/a", "content")
        self.write("w/d/inner", "kept")
        self.run_in("setfattr -n user.overlay.opaque -v y d 2>/dev/null; setfattr -n user.overlay.whiteout -v y a "
                    "2>/dev/null; : > z; setfattr -n user.overlay.whiteout -v y z 2>/dev/null; echo > d/new; true",
                    check=0)
        if IS_ROOT:
            self.assertEqual(sorted(os.listdir(self.ws)), ["a", "d", "z"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.ws, "d"))), ["inner", "new"])

    def test_a_link_in_the_workspace_leads_nowhere(self):
        """The program sees a directory; outside somebody puts a link to elsewhere in its place."""
        outside = self.make_dir("outside")
        self.make_dir("w", "d")
        self.write("w/d/keep", "1")
        swap = f"mv {self.ws}/d {self.ws}/old && ln -s {outside} {self.ws}/d"
        script = self.script("swap.sh", f"nsenter --mount=/proc/$1/ns/mnt sh -c '{swap}'\n")
        if not IS_ROOT:
            self.skipTest("needs root to reach into the other mount namespace")
        done = self.run_in(f"echo evil > d/evil; sh {script} {os.getpid()}")
        self.assertEqual(os.listdir(outside), [], done.stderr)

    def test_a_deep_tree(self):
        self.run_in("i=0; while [ $i -lt 150 ]; do mkdir x; cd x; i=$((i+1)); done; echo deep > bottom", check=0)
        self.assertTrue(os.path.exists(os.path.join(self.ws, *["x"] * 150, "bottom")))

    def test_too_deep_a_tree_is_refused_and_nothing_is_left(self):
        self.write("w/a", "1")
        before = treeops.manifest(self.ws, exact=True)
        done = self.run_in("i=0; while [ $i -lt 400 ]; do mkdir x; cd x; i=$((i+1)); done; echo 2 > bottom",
                           check=124)
        self.assertIn(b"nested too deep", done.stderr)
        self.assertEqual(treeops.manifest(self.ws, exact=True), before)

    def test_a_huge_sparse_file_stays_sparse(self):
        for layout in (LAYOUTS[0], LAYOUTS[2]):
            self.run_in("truncate -s 300G big; echo x | dd of=big bs=1 seek=1000000000 conv=notrunc 2>/dev/null",
                        layout, check=0)
            s = os.stat(os.path.join(self.ws, "big"))
            self.assertEqual(s.st_size, 300 << 30)
            self.assertLess(s.st_blocks * 512, 1 << 20)
            os.unlink(os.path.join(self.ws, "big"))

    def test_read_only_directories(self):
        self.write("w/d/a", "1")
        os.chmod(os.path.join(self.ws, "d"), 0o555)
        self.run_in("chmod 755 d; echo 2 > d/a; echo 3 > d/b; mkdir d/e; chmod 555 d d/e", check=0)
        self.assertEqual(os.stat(os.path.join(self.ws, "d")).st_mode & 0o7777, 0o555)
        self.assertEqual(sorted(os.listdir(os.path.join(self.ws, "d"))), ["a", "b", "e"])
        os.chmod(os.path.join(self.ws, "d"), 0o755)

    @unittest.skipUnless(IS_ROOT, "other owners need root")
    def test_another_owner_of_the_layer(self):
        """The program runs as somebody else; what it made belongs to the workspace's owner."""
        os.chmod(self.dir, 0o755)
        os.chmod(self.ws, 0o777)
        self.write("w/a", "1", 0o666)
        self.run_in("echo 2 >> a; mkdir d; echo 3 > d/n; ln -s x l", more=["--owner", "12345"], check=0)
        owners = {os.lstat(os.path.join(self.ws, n)).st_uid for n in ("a", "d", "d/n", "l")}
        self.assertEqual(owners, {0})


if __name__ == "__main__":
    harness.main()
