#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Views of a tree and the patch that comes of them, without a whole run: every mode, on the real kernel.

In every case the source stays as it was, to the inode and the nanosecond, and the patch applied to a copy of the
source gives what the agent left (but for what is ignored).
"""

import json
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

import harness
import treeops

FILE_TIMEOUT = 900
VIEW = harness.program("view_run")
IS_ROOT = os.geteuid() == 0
INIT = os.path.join(harness.BUILD, "src", "init", "cinch-init")
MODES = ["overlay", "copy", "clone", "in-place"]
SAFE = [["--mode", "overlay"], ["--mode", "copy"], ["--mode", "snapshot", "--no-overlay"]]


def git(where, *args, check=True, **kw):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "t",
           "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t"}
    return subprocess.run(["git", "-C", where, *args], check=check, capture_output=True, text=True, env=env, **kw)


class Base(harness.Case):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as d:
            os.mkdir(os.path.join(d, "s"))
            done = subprocess.run([VIEW, os.path.join(d, "s"), os.path.join(d, "p"), os.path.join(d, "x"), "--", "true"],
                                  capture_output=True, env={**os.environ, "CINCH_INIT": INIT})
        if done.returncode == 77:
            raise unittest.SkipTest("no overlay can be mounted here, not even in a user namespace")

    def setUp(self):
        super().setUp()
        self.env["CINCH_INIT"] = INIT
        self.src = self.make_dir("src")

    def repo(self, files=None, name="src"):
        root = self.make_dir(name)
        for path, content in (files or {"a": "one\n", "d/b": "".join(f"{i}\n" for i in range(50))}).items():
            self.write(os.path.join(name, path), content)
        git(root, "init", "-q", "-b", "main")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "first")
        return root

    def view(self, script, *options, src=None, check=0, untouched=True):
        """Runs a shell script in a view: (result, patch)."""
        src = src or self.src
        before = treeops.manifest(src, exact=True)
        place, patch = self.path("private"), self.path("p.patch")
        done = subprocess.run([VIEW, *options, src, place, patch, "--", "sh", "-ec", script], env=self.env,
                              capture_output=True, timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, check, done.stderr.decode(errors="replace"))
        if untouched:
            self.assertEqual(treeops.manifest(src, exact=True), before, "the source was touched")
        self.assertFalse(os.path.exists(place), "left over")
        if check != 0:
            return done
        with open(patch, "rb") as f:
            return json.loads(done.stdout), f.read()

    def apply(self, patch, src=None, three_way=True):
        """The patch on a copy of the source; returns the copy."""
        copy = tempfile.mkdtemp(dir=self.dir)
        subprocess.run(["cp", "-a", (src or self.src) + "/.", copy], check=True)
        if patch:
            git(copy, "update-index", "-q", "--refresh", check=False)
            if three_way:
                git(copy, "apply", "--3way", "--check", self.path("p.patch"))
            git(copy, "apply", *(["--3way"] if three_way else []), self.path("p.patch"))
        return copy

    def content(self, root):
        return {k: v for k, v in treeops.manifest(root, skip=(".git",))[0].items() if v[0] != stat.S_IFDIR}


class Contents(Base):
    """What is in a patch."""

    def check(self, script, *options, files=None, expect=None):
        self.repo(files)
        result, patch = self.view(script, *options)
        copy = self.apply(patch)
        work = tempfile.mkdtemp(dir=self.dir)
        subprocess.run(["cp", "-a", self.src + "/.", work], check=True)
        subprocess.run(["sh", "-ec", script], cwd=work, check=True, capture_output=True)
        got, wanted = self.content(copy), self.content(work)
        for entry in list(got.values()) + list(wanted.values()):
            if entry[0] == stat.S_IFREG:  # git knows one bit of a mode
                entry[3] = "x" if int(entry[3], 8) & 0o100 else "-"
        self.assertEqual(got, wanted)
        if expect is not None:
            self.assertEqual(sorted((f["status"], f["path"]) for f in result["files"]), sorted(expect))
        return result, patch

    def test_edit_add_delete(self):
        for options in SAFE:
            with self.subTest(options=options):
                shutil.rmtree(self.src)
                self.check("echo two >> a; echo new > n; mkdir e; echo x > e/x; rm d/b", *options,
                           expect=[("M", "a"), ("A", "n"), ("A", "e/x"), ("D", "d/b")])

    def test_rename(self):
        result, patch = self.check("mv d/b d/c", expect=[("R", "d/c")])
        self.assertEqual(result["files"][0]["from"], "d/b")
        self.assertIn(b"rename from d/b", patch)

    def test_mode(self):
        _, patch = self.check("chmod +x a")
        self.assertIn(b"new mode 100755", patch)

    def test_symlinks(self):
        self.check("ln -s /etc/passwd out; ln -s a inside; rm d/b; ln -s ../a d/b")

    def test_file_and_directory_change_places(self):
        self.check("rm a; mkdir a; echo x > a/x; rm -r d; echo d > d")

    def test_binary(self):
        _, patch = self.check("head -c 5000 /dev/zero | tr '\\0' '\\377' > bin; printf 'a\\0b' > a")
        self.assertIn(b"GIT binary patch", patch)

    def test_odd_names(self):
        self.check("""echo 1 > 'new
line'; echo 2 > 'quo"te\\'; echo 3 > ' space '; echo 4 > "$(printf 'not\\377utf')"; echo 5 > ':(top)x'; echo 6 > -dash""")

    def test_empty_files_and_no_newline(self):
        self.check(": > empty; printf 'no newline' > n; printf 'one' > a")

    def test_what_the_agent_committed(self):
        script = ("echo two >> a; git -c user.name=x -c user.email=x@x commit -qam agent; echo three >> a; "
                  "git checkout -qb other; echo n > n; git add n; git -c user.name=x -c user.email=x@x commit -qm n")
        for options in SAFE:
            with self.subTest(options=options):
                shutil.rmtree(self.src)
                self.check(script, *options, expect=[("M", "a"), ("A", "n")])

    def test_history_thrown_away(self):
        self.check("echo two >> a; rm -rf .git; git init -q .")

    def test_touched_but_not_changed(self):
        for script in ("touch a", "chmod 600 a", "cp a b; mv b a", "echo x > n; rm n", "mkdir empty"):
            with self.subTest(script=script):
                shutil.rmtree(self.src)
                self.repo()
                result, patch = self.view(script)
                self.assertEqual((result["no_changes"], patch), (True, b""))

    def test_nothing_happened(self):
        self.repo()
        for mode in MODES:
            with self.subTest(mode=mode):
                result, patch = self.view("true", "--mode", mode)
                self.assertEqual((result["no_changes"], patch, result["files"]), (True, b"", []))

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_directories_renamed_in_the_overlay(self):
        self.check("mv d e; mv e f; echo x > f/x; mkdir d; echo new > d/new; mv a f/a", "--redirect")

    def test_crlf_stays(self):
        self.check("printf 'x\\r\\ny\\r\\n' >> a", files={"a": "one\r\ntwo\r\n", ".gitattributes": "* -text\n"})

    def test_dirty_before(self):
        """What the user had changed already is no change of the agent, and the patch fits the tree as it is."""
        self.repo()
        self.write("src/a", "one\nuser\n")
        self.write("src/untracked", "user\n")
        result, patch = self.view("echo agent >> a; echo agent >> untracked")
        self.assertNotIn(b"+user", patch)
        copy = self.apply(patch, three_way=False)
        with open(os.path.join(copy, "a"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "one\nuser\nagent\n")

    def test_random_work(self):
        for seed in range(2 if harness.SANITIZED else 3):
            for options in (["--mode", "overlay"], ["--mode", "copy"]):
                with self.subTest(seed=seed, options=options):
                    shutil.rmtree(self.src)
                    treeops.build(self.src, seed)
                    git(self.src, "init", "-q")
                    git(self.src, "add", "-A")
                    git(self.src, "commit", "-qm", "1")
                    ops = os.path.join(os.path.dirname(os.path.abspath(__file__)), "treeops.py")
                    script = f"find . -path ./.git -prune -o -type f -exec chmod u+w {{}} +; exec /usr/bin/python3 {ops} work {seed} 40"
                    work = tempfile.mkdtemp(dir=self.dir)
                    subprocess.run(["cp", "-a", self.src + "/.", work], check=True)
                    os.rename(os.path.join(work, ".git"), work + ".git")  # the worker must not play with it
                    subprocess.run(["sh", "-ec", script], cwd=work, check=True)
                    view_script = "mv .git ../git.away 2>/dev/null || rm -rf .git; " + script
                    _, patch = self.view(view_script, *options)
                    copy = self.apply(patch, three_way=False)
                    got, wanted = self.simple(copy), self.simple(work)
                    self.assertEqual(got, wanted, {k: (got.get(k), wanted.get(k)) for k in {*got, *wanted} if got.get(k) != wanted.get(k)})
                    shutil.rmtree(self.path("git.away"), ignore_errors=True)

    def simple(self, root):
        """Path to content or link: what a patch can carry."""
        found = {}
        for path, entry in self.content(root).items():
            if entry[0] == stat.S_IFLNK:
                found[path] = entry[3]
            elif entry[0] == stat.S_IFREG:
                found[path] = (entry[-1], bool(int(entry[3], 8) & 0o100))
        return found


class LeftOut(Base):
    def test_ignored(self):
        self.repo({".gitignore": "*.o\nbuild/\n", "a": "1\n", "sub/.gitignore": "local\n", "sub/x": "1\n"})
        self.write("src/old.o", "was there")
        self.write("src/build/cache", "was there")
        for options in SAFE:
            with self.subTest(options=options):
                result, patch = self.view("echo x > new.o; rm old.o; echo y > build/cache; echo z > sub/local; "
                                          "mkdir -p deep/er; echo o > deep/er/z.o; echo 2 >> a", *options)
                self.assertEqual([f["path"] for f in result["files"]], ["a"])
                self.assertEqual(result["ignored"], 5)

    def test_tracked_although_ignored(self):
        self.repo({"kept.o": "1\n", "a": "1\n"})
        self.write("src/.gitignore", "*.o\n")
        git(self.src, "add", "-A")
        git(self.src, "commit", "-qm", "ignore")
        result, _ = self.view("echo 2 >> kept.o; echo x > new.o")
        self.assertEqual([f["path"] for f in result["files"]], ["kept.o"])

    def test_rules_of_the_user(self):
        self.repo()
        self.write("src/.git/info/exclude", "private\n")
        result, _ = self.view("echo x > private; echo y > public")
        self.assertEqual([f["path"] for f in result["files"]], ["public"])

    def test_new_rules_count(self):
        self.repo()
        result, _ = self.view("echo 'node_modules/' > .gitignore; mkdir node_modules; echo x > node_modules/x")
        self.assertEqual([f["path"] for f in result["files"]], [".gitignore"])

    def test_injected(self):
        self.repo({"a": "1\n", "CLAUDE.md": "the user's\n", "d/x": "1\n"})
        for path in ("CLAUDE.md", "d/skills/one/SKILL.md", ".claude/settings.json"):
            for options in SAFE:
                with self.subTest(path=path, options=options):
                    result, patch = self.view(f"grep -q 'from cinch' {path}; echo more >> {path}; echo 2 >> a",
                                              "--inject", path, *options)
                    self.assertEqual([f["path"] for f in result["files"]], ["a"])
                    self.assertNotIn(b"cinch", patch)

    def test_large_files(self):
        self.repo()
        result, patch = self.view("head -c 200000 /dev/zero > big; echo x > small", "--max-file", "100000")
        self.assertEqual([f["path"] for f in result["files"]], ["small"])
        self.assertEqual([(f["path"], f["bytes"]) for f in result["left_out"]], [("big", 200000)])
        self.assertFalse(result["no_changes"])

    def test_sockets_and_fifos(self):
        self.repo()
        os.mkfifo(os.path.join(self.src, "pipe"))
        for options in SAFE:
            result, _ = self.view("mkfifo new; python3 -c \"import socket;socket.socket(socket.AF_UNIX).bind('s')\"; "
                                  "test -p pipe; rm pipe; echo 2 >> a", *options)
            self.assertEqual([f["path"] for f in result["files"]], ["a"])
            self.assertEqual({f["path"] for f in result["left_out"]}, {"new", "s", "pipe"})

    def test_changed_by_the_user_meanwhile(self):
        self.repo()
        source = self.src
        if not IS_ROOT:
            self.skipTest("needs root to reach into the other mount namespace")
        script = f"nsenter --mount=/proc/{os.getpid()}/ns/mnt sh -c 'sleep 0.02; echo user >> {source}/a'; echo agent >> a"
        result, _ = self.view(script, untouched=False)
        self.assertEqual(result["source_changed"], ["a"])


class Repositories(Base):
    """Worktrees, submodules, parts of a repository, no repository at all."""

    def test_not_git(self):
        for name in ("a", "d/b", ".gitignore"):
            self.write(f"src/{name}", "1\n")
        for mode in ("overlay", "copy", "in-place"):
            with self.subTest(mode=mode):
                self.write("src/a", "1\n")
                before = treeops.manifest(self.src)
                result, patch = self.view("echo 2 >> a; rm d/b; echo n > n; mkdir __pycache__; echo x > __pycache__/y",
                                          "--mode", mode, untouched=mode != "in-place")
                self.assertEqual(sorted((f["status"], f["path"]) for f in result["files"]),
                                 [("A", "n"), ("D", "d/b"), ("M", "a")])
                self.assertFalse(os.path.exists(os.path.join(self.src, ".git")))
                if mode != "in-place":
                    copy = self.apply(patch, three_way=False)
                    self.assertEqual(sorted(os.listdir(copy)), [".gitignore", "a", "n"])
                    self.assertEqual(treeops.manifest(self.src), before)

    def test_in_place(self):
        self.repo()
        self.write("src/a", "one\ndirty\n")
        self.write("src/untracked", "u\n")
        result, patch = self.view("echo agent >> a; echo agent >> untracked; rm d/b; echo n > n; git add -A; "
                                  "git -c user.name=x -c user.email=x@x commit -qm x", "--mode", "in-place",
                                  untouched=False)
        self.assertEqual(sorted((f["status"], f["path"]) for f in result["files"]),
                         [("A", "n"), ("D", "d/b"), ("M", "a"), ("M", "untracked")])
        self.assertNotIn(b"+dirty", patch)

    def test_worktree(self):
        """Its .git is a file that leads to the user's repository: git must work in the view, and not write there."""
        main = self.repo(name="main")
        os.rmdir(self.src)
        git(main, "worktree", "add", "-q", "-b", "side", self.src)
        for options in SAFE:
            with self.subTest(options=options):
                main_before = treeops.manifest(main)
                result, patch = self.view("git status --porcelain > ../status; git log --oneline | wc -l > ../log; "
                                          "echo 2 >> a; git add -A; git -c user.name=x -c user.email=x@x commit -qm x; "
                                          "git rev-parse --abbrev-ref HEAD > ../branch", *options)
                self.assertEqual([f["path"] for f in result["files"]], ["a"])
                self.assertEqual(treeops.manifest(main), main_before, "the main repository was touched")
                for name, text in (("status", ""), ("log", "1"), ("branch", "side")):
                    with open(self.path(name), encoding="utf-8") as f:
                        self.assertEqual(f.read().strip(), text)
                self.apply(patch, three_way=False)

    def test_submodule(self):
        library = self.repo({"lib.c": "1\n"}, name="library")
        self.repo()
        git(self.src, "-c", "protocol.file.allow=always", "submodule", "-q", "add", library, "sub")
        git(self.src, "commit", "-qm", "sub")
        result, patch = self.view("echo 2 >> sub/lib.c; echo 2 >> a; git -C sub status --porcelain > ../status")
        self.assertEqual([f["path"] for f in result["files"]], ["a"])
        self.assertEqual([n["path"] for n in result["nested"]], ["sub"])
        nested = os.path.join(self.path("p.patch.nested"), result["nested"][0]["patch"])
        git(os.path.join(self.src, "sub"), "apply", "--3way", "--check", nested)
        self.apply(patch)

    def test_a_repository_that_the_agent_made(self):
        self.repo()
        result, _ = self.view("git init -q new; echo x > new/x; git -C new add -A; "
                              "git -C new -c user.name=x -c user.email=x@x commit -qm x")
        self.assertEqual([f["path"] for f in result["files"]], ["new/x"])

    def test_part_of_a_repository(self):
        self.repo({".gitignore": "*.o\n", "part/a": "1\n", "other/b": "1\n"})
        part = os.path.join(self.src, "part")
        result, patch = self.view("echo 2 >> a; echo x > x.o", src=part)
        self.assertEqual([f["path"] for f in result["files"]], ["a"])
        git(self.src, "apply", "--3way", "--check", "--directory=part", self.path("p.patch"))

    def test_ref(self):
        self.repo()
        self.write("src/a", "second\n")
        git(self.src, "commit", "-qam", "second")
        git(self.src, "tag", "v2")
        self.write("src/a", "third\n")
        git(self.src, "commit", "-qam", "third")
        self.write("src/dirty", "x\n")
        for options in (["--mode", "snapshot"], ["--mode", "clone"], ["--mode", "clone", "--no-overlay"]):
            for ref in ("v2", "HEAD~1"):
                with self.subTest(options=options, ref=ref):
                    result, patch = self.view("test \"$(cat a)\" = second; test ! -e dirty; test -z \"$(git status "
                                              "--porcelain)\"; git log --oneline | wc -l | grep -q 2; echo agent >> a",
                                              "--ref", ref, *options)
                    self.assertEqual([f["path"] for f in result["files"]], ["a"])
                    self.assertEqual(result["head"], git(self.src, "rev-parse", ref).stdout.strip())
                    work = tempfile.mkdtemp(dir=self.dir)
                    git(self.src, "worktree", "add", "-q", "--detach", work + "/w", ref)
                    git(work + "/w", "apply", "--3way", "--check", self.path("p.patch"))
                    git(self.src, "worktree", "remove", "--force", work + "/w")

    def test_bad_ref(self):
        self.repo()
        for ref in ("nowhere", "--output=x", "", "HEAD:a"):
            done = self.view("true", "--ref", ref, check=124)
            self.assertIn(b"has no commit", done.stderr)

    def test_clone_has_no_untracked_files(self):
        self.repo()
        self.write("src/untracked", "x")
        result, _ = self.view("test ! -e untracked; echo 2 >> a; echo n > n", "--mode", "clone")
        self.assertEqual(sorted(f["path"] for f in result["files"]), ["a", "n"])

    def test_unborn_head(self):
        self.write("src/a", "1\n")
        git(self.src, "init", "-q")
        result, _ = self.view("echo 2 >> a")
        self.assertEqual([f["path"] for f in result["files"]], ["a"])
        self.assertIsNone(result["head"])

    def test_sha256(self):
        self.write("src/a", "1\n")
        git(self.src, "init", "-q", "--object-format=sha256")
        git(self.src, "add", "-A")
        git(self.src, "commit", "-qm", "1")
        _, patch = self.view("echo 2 >> a")
        self.apply(patch)

    def test_taken_up_again(self):
        self.repo()
        for mode in MODES:
            with self.subTest(mode=mode):
                self.write("src/a", "one\n")
                result, _ = self.view("echo agent >> a", "--mode", mode, "--again", untouched=mode != "in-place")
                self.assertEqual([f["path"] for f in result["files"]], ["a"])


class Hostile(Base):
    """Nothing that the workspace holds is executed outside."""

    PLANT = """
mark='touch %s'
mkdir -p .git/hooks
for h in post-checkout pre-commit post-index-change reference-transaction pre-applypatch; do
  printf '#!/bin/sh\\n%%s\\n' "$mark" > .git/hooks/$h; chmod +x .git/hooks/$h
done
printf '#!/bin/sh\\n%%s\\ncat\\n' "$mark" > evil.sh; chmod +x evil.sh
git config core.fsmonitor "$PWD/evil.sh"
git config core.pager "$PWD/evil.sh"
git config diff.external "$PWD/evil.sh"
git config diff.evil.textconv "$PWD/evil.sh"
git config filter.evil.clean "$PWD/evil.sh"
git config filter.evil.smudge "$PWD/evil.sh"
git config core.sshCommand "$PWD/evil.sh"
git config include.path "$PWD/more.cfg"
printf '* filter=evil diff=evil\\n' > .gitattributes
echo x >> a
"""

    def test_planted(self):
        self.repo()
        for mode in MODES:
            with self.subTest(mode=mode):
                mark = self.path("executed")
                self.view(self.PLANT % mark + f"\nrm -f {mark}", "--mode", mode, untouched=mode != "in-place")
                self.assertFalse(os.path.exists(mark), "something planted was executed outside")

    def test_links_out_of_the_tree(self):
        self.repo()
        secret = self.write("secret", "do not read")
        os.symlink(secret, os.path.join(self.src, "old"))
        for mode in MODES:
            with self.subTest(mode=mode):
                result, patch = self.view(f"ln -sf {secret} out; rm -rf d; ln -s {self.dir} d; echo 2 >> a",
                                          "--mode", mode, untouched=mode != "in-place")
                self.assertNotIn(b"do not read", patch)


class Modes(Base):
    """The source stays as it was, whatever it holds."""

    def test_everything_in_a_tree(self):
        self.repo()
        for i in range(5):
            self.write(f"src/ro/{i}", "x", 0o444)
        os.chmod(os.path.join(self.src, "ro"), 0o555)
        os.link(os.path.join(self.src, "a"), os.path.join(self.src, "hard"))
        os.mkfifo(os.path.join(self.src, "fifo"))
        os.symlink("/etc/passwd", os.path.join(self.src, "away"))
        self.write("src/new\nline", "x")
        with open(os.path.join(self.src, "sparse"), "wb") as f:
            f.truncate(1 << 30)
        if IS_ROOT:
            os.setxattr(os.path.join(self.src, "a"), "user.x", b"1")
        for mode in ("overlay", "copy", "snapshot"):
            with self.subTest(mode=mode):
                result, _ = self.view("echo 2 > n; chmod 755 ro; rm ro/1; test -p fifo; test -L away; test -e 'new\n"
                                      "line'; test $(stat -c %s sparse) = 1073741824; test $(stat -c %h hard) -ge 1",
                                      "--mode", mode)
                self.assertEqual(sorted(f["path"] for f in result["files"]), ["n", "ro/1"])
        os.chmod(os.path.join(self.src, "ro"), 0o755)

    def test_the_copy_is_exact(self):
        os.rmdir(self.src)
        treeops.build(self.src, 5)
        os.link(os.path.join(self.src, [n for n in os.listdir(self.src) if n.startswith("f")][0]),
                os.path.join(self.src, "hl"))
        self.view("cp -a . ../copied", "--mode", "copy")
        self.assertEqual(treeops.manifest(self.path("copied")), treeops.manifest(self.src))

    def test_refused(self):
        done = self.view("true", "--mode", "clone", check=124)
        self.assertIn(b"not a git repository", done.stderr)
        done = self.view("true", "--mode", "overlay", "--no-overlay", check=124)
        self.assertIn(b"overlay cannot be mounted", done.stderr)


if __name__ == "__main__":
    harness.main()
