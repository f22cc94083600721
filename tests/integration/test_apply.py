#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cinch apply is all or nothing: killed at any call that changes a file, interrupted, or on a full disk, the tree is as
before or has the whole change once the next cinch command has run. --check predicts, --undo takes back.
"""

import os
import random
import shutil
import signal
import subprocess
import time
import unittest

import harness
import treeops

APPLY = harness.program("apply_run")
IS_ROOT = os.geteuid() == 0
OTHER = 65534
FILE_TIMEOUT = 900

# An edit, a rename, a removed directory, a file that becomes a directory and the other way round, a link, a mode.
WORK = """
sed -i s/^25$/twentyfive/ a
mv d/b d/c
rm -r gone
rm was-file; mkdir was-file; echo 1 > was-file/x
rm -r was-dir; echo 2 > was-dir
mkdir -p new/deep; echo n > new/deep/f
ln -s a link
chmod +x run.sh
"""


class Base(harness.Case):
    uid = os.geteuid()

    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o777)
        os.chmod(os.path.dirname(self.dir), 0o755)
        self.state = self.path("state")
        self.env["XDG_STATE_HOME"] = self.state
        self.env["CINCH_INIT"] = harness.init()
        self.write("userhome/.gitconfig", "[user]\n\tname = t\n\temail = t@t\n[safe]\n\tdirectory = *\n")

    def as_user(self, *command, check=None):
        line = list(command)
        if self.uid != os.geteuid():
            line = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", *line]
        done = subprocess.run(line, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=harness.PATIENCE)
        if check is not None:
            self.assertEqual(done.returncode, check, done.stderr + done.stdout)
        return done

    def git(self, tree, *args):
        return subprocess.run(["git", "-c", "safe.directory=*", "-C", tree, *args], env=self.env, check=True,
                              capture_output=True, text=True).stdout

    def tree(self, name, repo):
        root = self.make_dir(name)
        self.write(f"{name}/a", "".join(f"{i}\n" for i in range(1, 60)))
        for path in ("d/b", "gone/x/y", "was-file", "was-dir/one", "was-dir/in/two", "run.sh", "same"):
            self.write(f"{name}/{path}", path + "\n")
        self.write(f"{name}/.gitignore", "dist\n*.bin\n")
        if repo:
            self.git(root, "init", "-q", "-b", "main")
            self.git(root, "add", "-A")
            self.git(root, "commit", "-qm", "first")
        return root

    def give(self, *paths):
        if self.uid != os.geteuid():
            subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", *paths], check=True)

    def made(self, root, script=WORK, *options, code=0):
        self.workspace = root
        r = self.run_command("sh", "-ec", script, options=options)
        self.assertEqual(r.code, code, r.stderr)
        return r

    def look(self, tree):
        """All that an apply may change, and what it must not leave."""
        skip = {".git"} if os.path.isdir(os.path.join(tree, ".git")) else set()
        seen = [treeops.manifest(tree, skip=skip)[0]]
        if skip:
            left = [n for n in os.listdir(os.path.join(tree, ".git")) if n.endswith(".lock") or "cinch" in n]
            self.assertEqual(left, [])
            seen += [self.git(tree, "ls-files", "-s"), self.git(tree, "for-each-ref"),
                     self.git(tree, "symbolic-ref", "HEAD")]
        return seen

    def journals(self):
        path = os.path.join(self.state, "cinch", "runs", ".applying")
        return [n for n in os.listdir(path)] if os.path.isdir(path) else []


class Killed(Base):
    """At the n-th call that changes a file, for every n, or every `stride`-th where git makes it slow."""

    repo, options, stride = False, (), 1

    def setUp(self):
        super().setUp()
        self.base = self.tree("base", self.repo)
        self.patch = self.made(self.base).path("diff.patch")
        shutil.copy(self.patch, self.path("p.patch"))
        os.chmod(self.path("p.patch"), 0o644)
        self.jdir, self.undo = self.path("mine", "journals"), self.path("mine", "undo")

    def fresh(self):
        for path in (self.path("tree"), self.path("mine")):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.base, self.path("tree"), symlinks=True)
        os.mkdir(self.path("mine"))
        self.give(self.path("tree"), self.path("mine"))
        return self.path("tree")

    def apply(self, *options):
        return self.as_user(APPLY, *options, *self.options, self.path("tree"), self.path("p.patch"), self.jdir, self.undo)

    def recover(self, *options):
        return self.as_user(APPLY, "--recover", *options, self.jdir, check=None if options else 0).stdout

    def states(self):
        before = self.look(self.fresh())
        done = self.apply()
        self.assertEqual(done.returncode, 0, done.stderr)
        after = self.look(self.path("tree"))
        self.assertNotEqual(before, after)
        return before, after

    def check(self, before, after, n):
        now = self.look(self.path("tree"))
        self.assertEqual(os.listdir(self.jdir) if os.path.isdir(self.jdir) else [], [], f"step {n}")
        self.assertIn(now[0].keys(), (before[0].keys(), after[0].keys()), f"half a change after step {n}")
        self.assertTrue(now in (before, after) or self.same_but_commit(now, after), f"half a change after step {n}: {now}")
        return now != before

    def same_but_commit(self, now, after):
        return now[:2] == after[:2] and now[3:] == after[3:]  # a commit has the time in its id

    def test_every_step(self):
        before, after = self.states()
        outcomes, n = [], random.Random(3).randrange(self.stride)
        while n < 1000:
            n += self.stride
            self.fresh()
            done = self.apply("--die-at", str(n))
            if done.returncode == 0:
                break
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            said = self.recover()
            outcomes.append(self.check(before, after, n))
            self.assertNotIn("stuck", said)
        self.assertIn(True, outcomes)
        self.assertIn(False, outcomes)
        self.assertEqual(outcomes, sorted(outcomes), "first all are rolled back, from the decision on all are completed")

    def test_a_recovery_that_is_killed_too(self):
        before, after = self.states()
        dice = random.Random(7)
        for _ in range(12):
            self.fresh()
            first = dice.randrange(20, 90)
            self.apply("--die-at", str(first))
            self.recover("--die-at", str(dice.randrange(1, 30)))
            self.recover()
            self.check(before, after, first)

    def test_undo_at_many_steps(self):
        before, after = self.states()
        n = 0
        while n < 1000:
            n += 3 * self.stride
            self.fresh()
            self.apply()
            done = self.as_user(APPLY, "--undo", "--die-at", str(n), self.undo, self.jdir)
            if done.returncode == 0:
                break
            self.recover()
            self.check(before, after, n)
        self.assertEqual(self.look(self.path("tree")), before)


class KilledInGit(Killed):
    repo, options, stride = True, ("--branch", "fix", "--commit", "Fix it"), 4


@unittest.skipUnless(IS_ROOT, "needs root to become another user")
class OrdinaryUserKilled(Killed):
    uid, stride = OTHER, 3


@unittest.skipUnless(IS_ROOT, "needs root to become another user")
class OrdinaryUserKilledInGit(KilledInGit):
    uid, stride = OTHER, 7


class Program(Base):
    """The program itself, with signals and kills at random moments."""

    def many(self, repo):
        root = self.tree("ws", repo)
        return root, self.made(root, WORK + "for i in $(seq 300); do echo $i > f$i; done")

    def interrupt(self, root, r, number, delay):
        p = subprocess.Popen([harness.CINCH, "apply", r.output], env=self.env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        time.sleep(delay)
        p.send_signal(number)
        out, err = p.communicate(timeout=harness.PATIENCE)
        return p.returncode, out, err

    def test_kill_and_signals(self):
        dice = random.Random(11)
        for repo in (False, True):
            root, r = self.many(repo)
            before = self.look(root)
            self.assertEqual(self.cinch("apply", r.output).code, 0)
            after = self.look(root)
            self.assertEqual(self.cinch("apply", "--undo", r.output).code, 0)
            self.assertEqual(self.look(root)[:2], before[:2])
            for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
                for _ in range(3):
                    code, _, err = self.interrupt(root, r, number, dice.random() * 0.4)
                    if number != signal.SIGKILL and code != -number:  # it had not begun
                        self.assertIn(code, (0, 130), err)
                    said = self.cinch("version").stderr
                    now = self.look(root)
                    self.assertIn(now, (before, after), said)
                    if code == 0:
                        self.assertEqual(now, after)
                    if code == 130:
                        self.assertEqual(now, before)
                    if now == after:
                        done = self.cinch("apply", "--undo", r.output)
                        if done.code != 0:  # the record does not know of it yet: a second apply does
                            self.assertIn(b"not applied", done.stderr)
                            subprocess.run(["git", "apply", "-R", *(["--index"] if repo else []), r.path("diff.patch")],
                                           cwd=root, check=True, env=self.env)
                    self.assertEqual(self.look(root), before)
            shutil.rmtree(root)

    @unittest.skipUnless(IS_ROOT, "needs root to mount a small file system")
    def test_full_disk(self):
        for repo in (False, True):
            root = self.tree("ws", repo)
            r = self.made(root, WORK + "for i in $(seq 60); do head -c 40000 /dev/urandom > f$i; done")
            size = sum(len(files) for _, _, files in os.walk(root)) * 4096
            small = self.make_dir("small")
            compare = ('cd "$1" && (cd "$0" && find . -path ./.git -prune -o -print | sort; cd "$0" && '
                       'find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 cat) | sha256sum')
            script = ('mount -t tmpfs -o size=$2 tmpfs "$0" || exit 99; cp -a "$1/." "$0"; before=$(' + compare + '); '
                      '"$3" apply --to "$0" "$4"; code=$?; "$3" version > /dev/null; after=$(' + compare + '); '
                      'ls -A "$0" "$0/.git" 2>/dev/null | grep -E "cinch|lock"; '
                      'echo "$code"; test "$before" = "$after" && echo same')
            codes = set()
            for more in (200, 900, 1800, 2700, 9000):
                done = subprocess.run(["unshare", "-m", "bash", "-c", script, small, root, str(size + more * 1024),
                                       harness.CINCH, r.output], env=self.env, capture_output=True, text=True)
                if done.returncode == 99:
                    self.skipTest("no tmpfs can be mounted here")
                said = done.stdout.split("\n")
                code = int(said[-3] if said[-2] == "same" else said[-2])
                self.assertIn(code, (0, 73), done.stderr)
                self.assertEqual("same" in said, code != 0, f"{more}: {done.stdout} {done.stderr}")
                codes.add(code)
            self.assertEqual(codes, {0, 73})
            shutil.rmtree(root)

    def test_two_at_once(self):
        root, r = self.many(True)
        before = self.look(root)
        both = [subprocess.Popen([harness.CINCH, "apply", r.output], env=self.env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE) for _ in range(2)]
        codes = sorted((p.communicate(timeout=harness.PATIENCE), p.returncode)[1] for p in both)
        self.assertIn(codes, ([0, 0], [0, 73]))
        self.assertNotEqual(self.look(root), before)
        self.assertEqual(self.journals(), [])


class Check(Base):
    """It exits as the apply does, with the same reason, and changes nothing."""

    def predict(self, root, r, *options, code):
        objects = {".git/objects"}  # git touches an object that it would write
        before = treeops.manifest(root, exact=True, skip=objects)
        said = self.cinch("apply", "--check", *options, r.output)
        self.assertEqual(treeops.manifest(root, exact=True, skip=objects), before)
        self.assertEqual(said.code, code, said.stderr)
        done = self.cinch("apply", *options, r.output)
        self.assertEqual(done.code, code, done.stderr)
        self.assertNotIn(b"\\n", done.stderr)
        if code != 0 and b"conflicts" not in done.stdout:
            self.assertEqual(done.stderr, said.stderr)
            self.assertEqual(treeops.manifest(root, skip={".git"}), treeops_without_git(before))
        return done

    def test_clean_and_again(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.predict(root, r, code=0)
        self.assertEqual(self.git(root, "diff"), "")
        again = self.predict(root, r, code=0)
        self.assertIn(b"already applied", again.stdout)

    def test_again_without_git(self):
        root = self.tree("ws", False)
        r = self.made(root)
        self.predict(root, r, code=0)
        self.assertIn(b"already applied", self.predict(root, r, code=0).stdout)

    def test_dirty_files(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.write("ws/a", "first\n" + self.read("ws/a"))
        self.predict(root, r, code=0)
        self.assertTrue(self.read("ws/a").startswith("first\n"))
        self.assertIn("twentyfive", self.read("ws/a"))
        self.assertEqual(self.git(root, "diff", "--cached", "--stat"), "", "the index would mix both changes")

    def test_dirty_file_and_commit(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.write("ws/a", "first\n" + self.read("ws/a"))
        self.assertIn(b"other changes", self.predict(root, r, "--commit", "x", code=1).stderr)

    def test_staged_changes_and_commit(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.write("ws/same", "other\n")
        self.git(root, "add", "same")
        self.assertIn(b"staged changes", self.predict(root, r, "--commit", "x", code=1).stderr)

    def test_existing_branch(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.git(root, "branch", "fix")
        self.assertIn(b"exists already", self.predict(root, r, "-b", "fix", code=1).stderr)
        self.assertIn(b"does not permit", self.predict(root, r, "-b", "fix/more", code=1).stderr)
        self.assertIn(b"not a valid name", self.predict(root, r, "-b", "..", code=64).stderr)

    def test_conflict(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.write("ws/a", self.read("ws/a").replace("\n25\n", "\nother\n"))
        for commit in (False, True):
            if commit:
                self.git(root, "commit", "-qam", "other")
            done = self.predict(root, r, code=1)
            self.assertIn(b"conflicts with changes in a", done.stderr)
            done = self.predict(root, r, "--3way", code=1)
            self.assertIn(b"1 file has conflicts: a", done.stdout)
            self.assertIn("<<<<<<<", self.read("ws/a"))
            self.assertTrue(os.path.exists(os.path.join(root, "new/deep/f")))
            self.assertEqual(self.cinch("apply", "--undo", r.output).code, 0)
            self.assertNotIn("<<<<<<<", self.read("ws/a"))
            self.assertEqual(self.git(root, "status", "--porcelain", "-uno"), "" if commit else " M a\n")

    def test_a_rename_elsewhere(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.git(root, "mv", "d/b", "elsewhere")
        self.git(root, "commit", "-qm", "other")
        self.predict(root, r, code=1)

    def test_in_the_way(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.write("ws/new/deep/f", "mine\n")
        self.predict(root, r, code=1)
        os.unlink(os.path.join(root, "new/deep/f"))
        self.write("ws/was-dir/more", "mine\n")
        self.assertIn(b"directory with other files", self.predict(root, r, code=1).stderr)
        os.unlink(os.path.join(root, "was-dir/more"))
        self.write("ws/.git/index.lock", "")
        self.assertIn(b"index.lock", self.predict(root, r, code=1).stderr)

    def test_a_link_on_the_way(self):
        root = self.tree("ws", False)
        r = self.made(root)
        outside = self.make_dir("outside")
        shutil.copy(os.path.join(root, "d/b"), self.path("outside/b"))
        shutil.rmtree(os.path.join(root, "d"))
        os.symlink(outside, os.path.join(root, "d"))
        self.predict(root, r, code=1)
        self.assertEqual(os.listdir(outside), ["b"])

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()


def treeops_without_git(manifest):
    entries = {k: v[:-3] for k, v in manifest[0].items() if k != "." and k.split("/")[0] != ".git"}
    return entries, manifest[1]


class Undo(Base):
    def test_branch_and_commit(self):
        root = self.tree("ws", True)
        r = self.made(root)
        before = self.look(root)
        self.assertEqual(self.cinch("apply", "-b", "fix", "--commit", "Fix it", r.output).code, 0)
        self.assertEqual(self.git(root, "log", "-1", "--format=%D %s").strip(), "HEAD -> fix Fix it")
        self.assertEqual(self.git(root, "status", "--porcelain"), "")
        self.assertEqual(self.cinch("apply", "--undo", "--check", r.output).code, 0)
        done = self.cinch("apply", "--undo", r.output)
        self.assertEqual(done.code, 0, done.stderr)
        self.assertEqual(self.look(root), before)
        self.assert_failed(self.cinch("apply", "--undo", r.output), 1, "nothing to undo")
        self.assertEqual(self.cinch("apply", r.output).code, 0, "and it can be applied again")

    def test_changed_since(self):
        for repo in (False, True):
            root = self.tree(f"ws{repo}", repo)
            r = self.made(root)
            self.assertEqual(self.cinch("apply", r.output).code, 0)
            self.write(f"ws{repo}/a", "mine\n")
            before = self.look(root)
            self.assert_failed(self.cinch("apply", "--undo", r.output), 1, "changed since: a")
            self.assertEqual(self.look(root), before)

    def test_commits_since(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.assertEqual(self.cinch("apply", "--commit", "x", r.output).code, 0)
        self.git(root, "commit", "-q", "--allow-empty", "-m", "more")
        self.assert_failed(self.cinch("apply", "--undo", r.output), 1, "HEAD has moved")

    def test_permissions_are_kept(self):
        root = self.tree("ws", True)
        os.chmod(os.path.join(root, "a"), 0o600)
        r = self.made(root)
        self.assertEqual(self.cinch("apply", r.output).code, 0)
        self.assertEqual(os.stat(os.path.join(root, "a")).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(os.path.join(root, "run.sh")).st_mode & 0o111, 0o111)

    def test_a_failed_run_is_reported(self):
        root = self.tree("ws", True)
        r = self.made(root, WORK + "exit 3", code=1)
        done = self.cinch("apply", r.output)
        self.assertEqual(done.code, 0)
        self.assertIn(b"did not succeed", done.stderr)

    def test_options_that_exclude_each_other(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.assert_failed(self.cinch("apply", "--undo", "--commit", "x", r.output), 64, "cannot be used together")
        self.assert_failed(self.cinch("apply", "--3way", "--to", self.make_dir("plain"), r.output), 64, "not a git")


class LeftOut(Base):
    """What is not in the patch is named and kept."""

    WORK = "mkdir dist; echo report > dist/report.html; head -c 300000 /dev/zero > big; echo two >> same"

    def run_with(self, root, *options):
        r = self.made(root, self.WORK, "--set", "workspace.max_file=200K", *options)
        said = " ".join(r.manifest["warnings"])
        self.assertIn("dist/report.html (7 bytes)", said)
        self.assertIn("big (293.0 KiB", said)
        self.assertIn("--with-ignored", said)
        return r

    def test_every_kind(self):
        for mode in ("overlay", "copy", "clone"):
            with self.subTest(mode=mode):
                root = self.tree("ws-" + mode, True)
                r = self.run_with(root, "--workspace-mode", mode)
                self.assertEqual(os.stat(r.path("work")).st_mode & 0o777, 0o700)
                self.assertEqual(r.json("evidence", "workspace.json")["ignored_files"],
                                 [{"path": "dist/report.html", "bytes": 7}])
                self.assertEqual(self.cinch("apply", r.output).code, 0)
                self.assertFalse(os.path.exists(os.path.join(root, "big")))
                done = self.cinch("apply", "--with-ignored", r.output)
                self.assertEqual(done.code, 0, done.stderr)
                with open(os.path.join(root, "dist/report.html"), encoding="utf-8") as f:
                    self.assertEqual(f.read(), "report\n")
                self.assertEqual(os.path.getsize(os.path.join(root, "big")), 300000)
                self.assertEqual(self.cinch("apply", "--undo", r.output).code, 0)
                self.assertFalse(os.path.exists(os.path.join(root, "dist")))
                with open(os.path.join(root, "same"), encoding="utf-8") as f:
                    self.assertIn("two", f.read(), "only the latest apply is taken back")

    def test_a_copy_keeps_no_more_than_that(self):
        root = self.tree("ws", True)
        r = self.run_with(root, "--workspace-mode", "copy")
        self.assertLessEqual(set(os.listdir(r.path("work"))), {"left-out", "left-out.list", "workspace.json"})
        self.assertEqual(sorted(treeops.manifest(r.path("work", "left-out"))[0]), ["big", "dist", "dist/report.html"])

    def test_a_failed_run(self):
        root = self.tree("ws", True)
        r = self.made(root, self.WORK + "; exit 3", code=1)
        self.assertEqual(self.cinch("apply", "--with-ignored", r.output).code, 0)
        self.assertTrue(os.path.exists(os.path.join(root, "dist/report.html")))

    def test_newer_files_are_not_replaced(self):
        root = self.tree("ws", True)
        self.write("ws/x.bin", "old\n")
        r = self.made(root, "echo agent > x.bin")
        self.write("ws/x.bin", "mine\n")
        self.assert_failed(self.cinch("apply", "--with-ignored", r.output), 1, "'x.bin' was changed since the run began")

    def test_nothing_was_left_out(self):
        root = self.tree("ws", True)
        r = self.made(root)
        self.assertFalse(r.exists("work"))
        self.assert_failed(self.cinch("apply", "--with-ignored", r.output), 66, "no files besides the patch")

    def test_removed_on_request(self):
        root = self.tree("ws", True)
        r = self.made(root, self.WORK, "--keep-workspace", "remove")
        self.assertFalse(r.exists("work"))


class Foreign(Base):
    """Journals are in the user's own directory: nothing that lies in a tree is obeyed."""

    def test_planted_staging_directory(self):
        root = self.tree("ws", False)
        r = self.made(root)
        self.write("ws/.cinch-apply/tree/a", "planted\n")
        done = self.cinch("apply", r.output)
        self.assert_failed(done, 73, "is in the way")
        self.assertTrue(os.path.exists(self.path("ws/.cinch-apply/tree/a")))

    def test_damaged_journal(self):
        journals = os.path.join(self.state, "cinch", "runs", ".applying")
        os.makedirs(journals, mode=0o700)
        self.write(os.path.join(journals, "x"), "cinch apply 1\0nonsense")
        done = self.cinch("runs")
        self.assertEqual(done.code, 0)
        self.assertIn(b"cannot be ended: the journal of an apply is damaged", done.stderr)

    @unittest.skipUnless(IS_ROOT, "needs root to make files of another user")
    def test_journals_of_another_user(self):
        journals = os.path.join(self.state, "cinch", "runs", ".applying")
        os.makedirs(journals, mode=0o700)
        self.write(os.path.join(journals, "x"), "cinch apply 1\0nonsense")
        os.chown(journals, OTHER, OTHER)
        self.assertEqual(self.cinch("runs").stderr, b"")
        root = self.tree("ws", False)
        self.assert_failed(self.cinch("apply", self.made(root).output), 73, "must belong to you")


if __name__ == "__main__":
    harness.main()
