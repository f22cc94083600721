#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The workspace of a run: the original is as it was, whatever the agent and whatever kills it; what changed is in
diff.patch, and cinch apply brings it back."""

import os
import shutil
import signal
import subprocess
import unittest

import harness
import treeops
from test_diff import git

FILE_TIMEOUT = 900


class Base(harness.Case):
    def setUp(self):
        super().setUp()
        self.write("ws/a", "one\n")
        self.write("ws/d/b", "".join(f"{i}\n" for i in range(50)))
        self.write("ws/.gitignore", "*.o\n")
        git(self.workspace, "init", "-q", "-b", "main")
        git(self.workspace, "add", "-A")
        git(self.workspace, "commit", "-qm", "first")
        self.before = treeops.manifest(self.workspace, exact=True)

    def assert_untouched(self):
        self.assertEqual(treeops.manifest(self.workspace, exact=True), self.before, "the workspace was touched")

    def agent(self, script, *options, **kw):
        return self.run_command("sh", "-ec", script, options=options, **kw)

    def description(self, result):
        return result.json("evidence", "workspace.json")

    def changed(self, result):
        return sorted((f["status"], f["path"]) for f in self.description(result)["files"])

    def mounts(self):
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
            return [line for line in f if self.dir in line]


EDIT = "echo two >> a; echo new > n; rm d/b; echo x > x.o"
EDITED = [("A", "n"), ("D", "d/b"), ("M", "a")]
MODES = ["snapshot", "overlay", "copy", "clone"]


class Original(Base):
    """As it was, to the inode and the nanosecond."""

    def test_every_mode(self):
        for mode in MODES:
            for sandbox in ("workspace-write", "off"):
                if (mode, sandbox) == ("overlay", "off"):
                    continue
                with self.subTest(mode=mode, sandbox=sandbox):
                    r = self.agent(EDIT, "--workspace-mode", mode, "--sandbox", sandbox)
                    self.assertEqual(r.reason, "success", r.bytes("stderr.log"))
                    self.assertEqual(self.changed(r), EDITED)
                    self.assertIs(r.manifest["no_changes"], False)
                    self.assertTrue(r.exists("work", "left-out.list"), "x.o is not in the patch, so it is kept")
                    self.assertFalse(r.exists("work", "tree"), "a success keeps nothing else")
                    self.assert_untouched()
                    copy = self.path("copy", mode + sandbox)
                    shutil.copytree(self.workspace, copy, symlinks=True)
                    git(copy, "update-index", "-q", "--refresh")
                    git(copy, "apply", "--3way", "--check", r.path("diff.patch"))
        self.assertEqual(self.mounts(), [])

    def test_the_default_protects_it(self):
        r = self.agent("rm -rf a d .git/refs .git/objects; echo gone > z")
        self.assertEqual(r.reason, "success", r.bytes("stderr.log"))
        self.assert_untouched()

    def test_nothing_changed(self):
        r = self.agent("cat a; git status > /dev/null; echo object > x.o")
        self.assertIs(r.manifest["no_changes"], True)
        self.assertEqual(r.bytes("diff.patch"), b"")

    def test_a_failing_agent(self):
        r = self.agent(EDIT + "; exit 3")
        self.assertEqual((r.reason, self.changed(r)), ("failure", EDITED))
        self.assertTrue(self.description(r)["kept"] and r.exists("work"))
        self.assert_untouched()

    def test_a_timeout(self):
        r = self.agent(EDIT + "; sleep 60", "--timeout", "700ms")
        self.assertEqual((r.reason, self.changed(r)), ("timeout", EDITED))
        self.assert_untouched()

    def test_killed(self):
        """kill -9 of cinch, in every phase that has a view; then recovery."""
        for mode in MODES:
            for phase in ("context", "execute", "parse", "collect", "gate"):
                with self.subTest(mode=mode, phase=phase):
                    process, r = self.start("--workspace-mode", mode, "--", "sh", "-ec", EDIT,
                                            env={"CINCH_STOP_AT": phase})
                    harness.wait_until(lambda: self.is_stopped(process), f"phase {phase}")
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    self.assert_untouched()
                    self.assertEqual(self.cinch("recover", r.output).code, 0)
                    self.assert_valid(r)
                    self.assert_untouched()
                    self.assertEqual(self.mounts(), [])
                    if phase in ("parse", "collect"):  # the agent was through, but nobody looked
                        made = self.cinch("diff", r.output)
                        self.assertIn(b"+two", made.stdout, made.stderr)
                    self.assertEqual(self.cinch("clean", r.output).code, 0)
                    self.assertFalse(r.exists("work") or r.exists("home"))

    def test_killed_while_the_agent_works(self):
        process, r = self.start("--", "sh", "-ec", EDIT + "; touch ready; sleep 60")
        harness.wait_until(lambda: os.path.exists(r.path("work", "layer", "upper", "ready")), "the agent")
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assert_untouched()
        self.assertEqual(self.cinch("recover", r.output).code, 0)
        self.assertIn(b"+two", self.cinch("diff", r.output).stdout)
        self.assertEqual(self.mounts(), [])

    def is_stopped(self, process):
        with open(f"/proc/{process.pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"


class Recover(Base):
    """What a killed run leaves is found by any path to it, and nothing stays behind."""

    def killed(self, *options):
        """A run with an open savepoint whose cinch was killed while the agent worked."""
        process, r = self.start("--savepoint", "turn", *options, "--", "sh", "-ec", EDIT + "; touch ready; sleep 60")
        harness.wait_until(lambda: os.path.exists(r.path("work", "layer", "upper", "ready")), "the agent")
        process.send_signal(signal.SIGKILL)
        process.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the end of the agent")
        self.assertTrue(r.exists("work", "savepoint"))
        return process.pid, r

    def test_relative_paths(self):
        for command in ("recover", "clean"):
            for where, prefix in ((self.dir, ""), (self.dir, "./"), (self.make_dir("a/b"), "../../")):
                with self.subTest(command=command, prefix=prefix):
                    _, r = self.killed()
                    done = self.cinch(command, prefix + os.path.basename(r.output), cwd=where)
                    self.assertEqual(done.code, 0, done.stderr)
                    self.assert_valid(r)
                    self.assert_untouched()
                    self.assertEqual(r.exists("work"), command == "recover")
                    # A second time there is nothing to do, by the other kind of path too.
                    self.assertEqual(self.cinch("recover", r.output).code, 0)

    def groups(self, pid):
        found = []
        for base, dirs, _ in os.walk("/sys/fs/cgroup"):
            found += [os.path.join(base, d) for d in dirs if d.startswith(f"cinch-{pid}-")]
        return found

    def test_control_groups(self):
        pid, r = self.killed("--memory", "2G", "--pids", "100")
        if not self.groups(pid):
            self.skipTest("no control group can be made here")
        self.assertEqual(self.cinch("recover", r.output).code, 0)
        self.assertEqual(self.groups(pid), [])

    def test_half_written_files(self):
        _, r = self.killed()
        run_id = r.state["run_id"]
        for name in ("session/before.jsonl", "savepoints/turn-1.json", "work/workspace.json", "state.json", "evidence/x"):
            self.write(os.path.join(r.output, f"{name}.{run_id}.tmp"), "{")
        self.assertEqual(self.cinch("recover", r.output).code, 0)
        left = [f for _, _, files in os.walk(r.output) for f in files if f.endswith(".tmp")]
        self.assertEqual(left, [])
        self.assert_valid(r)


class Views(Base):
    def test_in_place_is_in_place(self):
        r = self.agent(EDIT, "--workspace-mode", "in-place")
        self.assertEqual(self.changed(r), EDITED)
        with open(os.path.join(self.workspace, "a"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "one\ntwo\n")

    def test_ref(self):
        self.write("ws/a", "second\n")
        git(self.workspace, "commit", "-qam", "second")
        self.before = treeops.manifest(self.workspace, exact=True)
        r = self.agent("test \"$(cat a)\" = one; git log --oneline | grep -c . ; echo agent >> a", "--ref", "HEAD~1")
        self.assertEqual(r.reason, "success", r.bytes("stderr.log"))
        self.assertEqual(self.changed(r), [("M", "a")])
        self.assert_untouched()

    def test_bad_ref(self):
        r = self.agent("true", "--ref", "nowhere")
        self.assertEqual((r.code, r.reason), (66, "missing_input"))
        self.assertFalse(r.exists("work"))

    def test_output_inside_the_workspace(self):
        for mode in ("snapshot", "copy", "in-place"):
            with self.subTest(mode=mode):
                output = os.path.join(self.workspace, "out-" + mode)
                r = self.agent("echo two >> a", "--workspace-mode", mode, output=output)
                self.assertEqual(self.changed(r), [("M", "a")])

    def test_a_worktree(self):
        side = self.path("side")
        git(self.workspace, "worktree", "add", "-q", "-b", "side", side)
        refs = git(self.workspace, "for-each-ref").stdout
        self.workspace, main = side, self.workspace
        r = self.agent("git status --porcelain; echo two >> a; git add -A; git -c user.name=x -c user.email=x@x commit -qm x; "
                       "git log --oneline | grep -c .")
        self.assertEqual(r.reason, "success", r.bytes("stderr.log"))
        self.assertEqual(r.bytes("stdout.log"), b"2\n")
        self.assertEqual(self.changed(r), [("M", "a")])
        self.assertEqual(git(main, "for-each-ref").stdout, refs)

    def test_secrets_are_not_in_the_patch(self):
        r = self.agent("echo $TOKEN > leaked; echo two >> a", "--secret", "TOKEN", env={"TOKEN": "s3cr3t-value-xyz"})
        self.assertEqual(r.reason, "success", r.bytes("stderr.log"))
        self.assert_not_in_tree(b"s3cr3t-value-xyz", r.output)

    def test_mounts(self):
        self.write("docs/guide.md", "read me\n")
        self.write("docs/skip.bin", "x")
        os.symlink("/etc/passwd", self.path("docs", "link.md"))
        self.write("task.yaml", "workspace:\n  path: ws\n  mounts:\n    - {source: docs, target: given, "
                   "include: ['*.md'], max_bytes: 100}\n")
        r = self.run_cinch(self.path("task.yaml"), "--", "sh", "-ec", "cat given/guide.md; ls given; echo more >> given/guide.md")
        self.assertEqual(r.reason, "success", r.manifest.get("error"))
        self.assertEqual(r.bytes("stdout.log"), b"read me\nguide.md\n")
        self.assertIs(r.manifest["no_changes"], True)
        self.write("task.yaml", "workspace:\n  path: ws\n  mounts:\n    - {source: docs, target: given, max_bytes: 3}\n")
        r = self.run_cinch(self.path("task.yaml"), "--", "true")
        self.assertIn("budget", r.manifest["error"])

    def test_keep(self):
        for keep, status, there in (("keep", 0, True), ("keep-on-failure", 0, False), ("keep-on-failure", 1, True),
                                    ("remove", 1, False)):
            with self.subTest(keep=keep, status=status):
                r = self.agent(f"echo two >> a; exit {status}", "--keep-workspace", keep)
                self.assertEqual((r.exists("work"), self.description(r)["kept"]), (there, there))


@unittest.skipUnless(os.geteuid() == 0, "mounts need root")
class Stacked(Base):
    def test_no_further_overlay(self):
        """The tree lies on two overlays, and the kernel takes no third: snapshot is a copy then."""
        self.make_dir("stack", "2")
        script = f"""
mount -t tmpfs none {self.path('stack')}; cd {self.path('stack')}
mkdir 1 2 u1 w1 u2 w2 out
mount -t overlay o -o lowerdir={self.workspace},upperdir=u1,workdir=w1 1
mount -t overlay o -o lowerdir=1,upperdir=u2,workdir=w2 2
{harness.CINCH} run --workspace-mode $MODE --workspace 2 --output out/r -- sh -ec 'echo two >> a'
status=$?
cp -a out/r {self.path('')}/$MODE
exit $status"""
        for mode, code, kind in (("snapshot", 0, "copy"), ("overlay", 69, None)):
            with self.subTest(mode=mode):
                done = subprocess.run(["unshare", "--mount", "sh", "-c", script], env={**self.env, "MODE": mode},
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode == 0, code == 0, done.stderr)
                r = harness.Result(0, b"", b"", self.path(mode))
                if kind is not None:
                    self.assertEqual((self.description(r)["mode"], self.changed(r)), (kind, [("M", "a")]))
        self.assert_untouched()


class Apply(Base):
    def made(self, script=EDIT):
        return self.agent(script)

    def text(self, name):
        with open(os.path.join(self.workspace, name), encoding="utf-8") as f:
            return f.read()

    def test_check_changes_nothing(self):
        r = self.made()
        self.assertEqual(self.cinch("apply", "--check", r.output).code, 0)
        self.assert_untouched()

    def test_apply(self):
        r = self.made()
        done = self.cinch("apply", r.output)
        self.assertEqual(done.code, 0, done.stderr)
        self.assertEqual(self.text("a"), "one\ntwo\n")
        self.assertFalse(os.path.exists(os.path.join(self.workspace, "d", "b")))

    def test_branch_and_commit(self):
        r = self.made()
        hook = self.script("ws/.git/hooks/pre-commit", f"touch {self.path('hooked')}\n")
        self.assertTrue(os.access(hook, os.X_OK))
        env = {"GIT_AUTHOR_NAME": "t", "HOME": self.env["HOME"]}
        self.write("userhome/.gitconfig", "[user]\n\tname = t\n\temail = t@t\n")
        done = self.cinch("apply", "--branch", "fix", "--commit", "Fix it", r.output, env=env)
        self.assertEqual(done.code, 0, done.stderr)
        self.assertEqual(git(self.workspace, "log", "-1", "--format=%D %s").stdout.strip(), "HEAD -> fix Fix it")
        self.assertEqual(git(self.workspace, "status", "--porcelain").stdout, "")
        self.assertFalse(os.path.exists(self.path("hooked")))

    def test_it_does_not_fit(self):
        r = self.made()
        self.write("ws/a", "completely\ndifferent\n")
        git(self.workspace, "commit", "-qam", "other")
        os.unlink(os.path.join(self.workspace, "d", "b"))
        before = treeops.manifest(self.workspace)
        done = self.cinch("apply", r.output)
        self.assert_failed(done, 1, "does not apply")
        self.assertEqual(treeops.manifest(self.workspace), before)

    def test_over_other_changes(self):
        r = self.made("echo two >> d/b")
        self.write("ws/d/b", "user\n" + self.text("d/b"))
        done = self.cinch("apply", r.output)
        self.assertEqual(done.code, 0, done.stderr)
        self.assertTrue(self.text("d/b").startswith("user\n0\n") and self.text("d/b").endswith("two\n"))

    def test_no_git(self):
        self.workspace = self.make_dir("plain")
        self.write("plain/a", "one\n")
        r = self.made("echo two >> a; echo n > n")
        self.assertEqual(self.cinch("apply", r.output).code, 0)
        self.assertEqual((self.text("a"), sorted(os.listdir(self.workspace))), ("one\ntwo\n", ["a", "n"]))
        self.assert_failed(self.cinch("apply", "--commit", "x", r.output), 64, "not a git repository")

    def test_nothing_to_apply(self):
        r = self.made("true")
        done = self.cinch("apply", r.output)
        self.assertEqual((done.code, done.stdout), (0, b"no changes\n"))

    def test_diff_prints_the_patch(self):
        r = self.made()
        self.assertEqual(self.cinch("diff", r.output).stdout, r.bytes("diff.patch"))
        self.assertEqual(self.cinch("diff", "--files", r.output).stdout, b"M a\nD d/b\nA n\n")


class Clean(Base):
    def test_accounts_and_removes(self):
        kept = self.agent("head -c 300000 /dev/urandom > big; exit 1")
        good = self.agent("true")
        listed = self.cinch("clean", "--dry-run", "--format", "json", kept.output, good.output)
        runs = {r["path"]: r for r in __import__("json").loads(listed.stdout)["runs"]}
        self.assertGreater(runs[kept.output]["freed_bytes"], 300000)
        self.assertEqual(runs[good.output]["workspace_bytes"], 0)
        self.assertTrue(kept.exists("work"))
        self.assertEqual(self.cinch("clean", kept.output, good.output).code, 0)
        self.assertFalse(kept.exists("work"))
        self.assert_valid(kept)
        self.assertEqual(self.cinch("clean", "--records", kept.output).code, 0)
        self.assertFalse(os.path.exists(kept.output))
        self.assertTrue(os.path.exists(good.output))

    def test_young_runs_stay(self):
        kept = self.agent("exit 1")
        self.assertEqual(self.cinch("clean", "--older-than", "1h", kept.output).code, 0)
        self.assertTrue(kept.exists("work"))

    def test_a_living_run_is_left_alone(self):
        process, r = self.start("--", "sleep", "60")
        harness.wait_until(lambda: r.exists("work", "workspace.json"), "the view")
        done = self.cinch("clean", "--records", r.output)
        self.assertEqual((done.code, r.exists("work")), (0, True), done.stderr)
        process.send_signal(signal.SIGTERM)
        self.finish(process, r)

    def test_not_a_run(self):
        self.assert_failed(self.cinch("clean", "--records", self.workspace), 66, "holds no run")
        self.assert_untouched()


@unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a file system")
class Clones(harness.Case):
    """A copy on a file system that can share blocks between files takes none of its own."""

    SIZE = 64 << 20

    def on(self, kind, *options):
        if shutil.which("mkfs." + kind, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            self.skipTest(f"there is no mkfs.{kind}")
        image = self.path(kind + ".img")
        place = self.make_dir(kind)
        with open(image, "wb") as f:
            f.truncate(512 << 20)
        subprocess.run(["mkfs." + kind, "-q", *options, image], check=True, capture_output=True,
                       env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
        mounted = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount a {kind} here: {mounted.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=True)
        return place

    def check(self, place):
        tree = os.path.join(place, "tree")
        os.mkdir(tree)
        with open(os.path.join(tree, "large"), "wb") as f:
            f.write(os.urandom(1 << 20) * (self.SIZE >> 20))
        os.sync()

        def used():
            os.sync()
            at = os.statvfs(place)
            return (at.f_blocks - at.f_bfree) * at.f_frsize
        before = used()
        output = os.path.join(place, "out")
        done = self.cinch("run", "-w", tree, "-o", output, "--workspace-mode", "copy", "--keep-workspace", "keep", "--",
                          "sh", "-c", "wc -c < large; echo x >> large")
        self.assertEqual(done.code, 0, done.stderr)
        with open(os.path.join(output, "stdout.log"), encoding="ascii") as f:
            self.assertEqual(int(f.read()), self.SIZE)
        copy = os.path.join(output, "work", "tree", "large")
        self.assertEqual(os.path.getsize(copy), self.SIZE + 2)
        self.assertEqual(os.path.getsize(os.path.join(tree, "large")), self.SIZE)
        self.assertLess(used() - before, self.SIZE // 2)

    def test_btrfs(self):
        self.check(self.on("btrfs"))

    def test_xfs(self):
        self.check(self.on("xfs", "-m", "reflink=1"))


if __name__ == "__main__":
    harness.main()
