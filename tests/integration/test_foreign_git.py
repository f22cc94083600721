#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a repository configures is not executed outside the sandbox: repositories of another user, programs named in
.git/config, and objects that git would have to fetch. Each case runs as root and as an ordinary user."""

import os
import shutil
import subprocess
import unittest

import harness

FILE_TIMEOUT = 900
USER = 61234
STRANGER = 61235
EDIT = "echo two >> a"


class Case(harness.Case):
    """cinch and git as the user of the class."""

    uid = os.geteuid()

    def setUp(self):
        super().setUp()
        self.proof = self.path("proof", "ran")
        self.make_dir("proof")
        os.chmod(self.path("proof"), 0o777)
        if self.uid != os.geteuid():
            os.chmod(self.dir, 0o755)
            self.give(self.dir, self.uid)
            if self.call(harness.CINCH, "version").returncode != 0:
                self.skipTest("another user cannot execute cinch here")

    @property
    def other(self):
        """A user that is not the one of the class."""
        return STRANGER if self.uid != STRANGER else USER

    def give(self, path, uid):
        for base, dirs, files in os.walk(path):
            for name in [base] + [os.path.join(base, f) for f in files + dirs]:
                os.chown(name, uid, uid, follow_symlinks=False)

    def call(self, *argv, env=None, uid=None, cwd=None):
        who = self.uid if uid is None else uid
        kw = {} if who == os.geteuid() else {"user": who, "group": who, "extra_groups": []}
        return subprocess.run(argv, env={**self.env, **(env or {})}, cwd=cwd or self.dir, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=harness.PATIENCE, **kw)

    def git(self, where, *args, uid=None, check=True):
        names = {f"GIT_{x}_{y}": "t@t" for x in ("AUTHOR", "COMMITTER") for y in ("NAME", "EMAIL")}
        done = self.call("git", "-c", "safe.directory=*", "-C", where, *args, env={**names, "GIT_CONFIG_NOSYSTEM": "1"}, uid=uid)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def repo(self, name="ws", files=None, owner=None):
        for path, text in (files or {"a": "one\n", "d/b": "b\n"}).items():
            self.write(os.path.join(name, path), text)
        self.give(self.path(name), self.uid)
        self.git(self.path(name), "init", "-q", "-b", "main")
        self.git(self.path(name), "add", "-A")
        self.git(self.path(name), "commit", "-qm", "first")
        if owner is not None:
            self.give(self.path(name), owner)
        return self.path(name)

    def program(self):
        """A program that leaves a proof, for a configuration to name."""
        path = self.script("planted.sh", f'id >> {self.proof}\ncat "$@"\n')
        os.chmod(path, 0o755)
        return path

    def configure(self, git_dir, text):
        with open(os.path.join(git_dir, "config"), "a", encoding="utf-8") as f:
            f.write(text)

    def plant_filter(self, git_dir):
        """Every file passes through a program, by attributes that are not part of the tree."""
        self.configure(git_dir, f'[filter "x"]\n\tclean = {self.program()}\n\tsmudge = {self.program()}\n')
        os.makedirs(os.path.join(git_dir, "info"), exist_ok=True)
        with open(os.path.join(git_dir, "info", "attributes"), "w", encoding="utf-8") as f:
            f.write("* filter=x\n")

    def run_agent(self, script, *options, workspace=None, env=None):
        output = self.new_output()
        done = self.call(harness.CINCH, "run", "--env", "CINCH_TEST_MARK", "-w", workspace or self.workspace, "-o", output,
                         *options, "--", "sh", "-ec", script, env=env)
        return harness.Result(done.returncode, done.stdout.encode(), done.stderr.encode(), output)

    def apply(self, result, *options, env=None):
        return self.call(harness.CINCH, "apply", *options, result.output, env=env)

    def assert_nothing_ran(self):
        self.assertFalse(os.path.exists(self.proof), "a program of the repository was executed")

    def patched(self, result):
        with open(result.path("diff.patch"), encoding="utf-8") as f:
            return [line[6:].rstrip("\n") for line in f if line.startswith("+++ b/")]


@unittest.skipUnless(os.geteuid() == 0, "needs root to make files of another user")
class Foreign(Case):
    def setUp(self):
        super().setUp()
        self.trust = {"HOME": self.make_dir("trusting")}
        self.write("trusting/.gitconfig", f"[safe]\n\tdirectory = {self.workspace}\n")
        self.give(self.path("trusting"), self.uid)

    def test_a_repository_above_the_tree(self):
        """As in a shared directory where anybody can make a .git."""
        above = self.repo("shared", {"a": "one\n"}, self.other)
        self.plant_filter(os.path.join(above, ".git"))
        self.write("shared/.gitignore", "*\n")
        inner = self.write("shared/inner/a", "one\n")
        self.give(os.path.dirname(inner), self.uid)
        r = self.run_agent(EDIT, workspace=os.path.dirname(inner))
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual(self.patched(r), ["a"], "rules of another user above the workspace were obeyed")
        for options in (["--check"], []):
            done = self.apply(r, *options)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn("git config --global --add safe.directory " + above, done.stderr)
        with open(inner, encoding="utf-8") as f:
            self.assertEqual(f.read(), "one\n")
        self.assert_nothing_ran()

    def test_a_foreign_tree_can_be_read(self):
        """Every mode works on it; what it configures has no effect."""
        self.repo(owner=self.other)
        self.plant_filter(os.path.join(self.workspace, ".git"))
        self.configure(os.path.join(self.workspace, ".git"), f"[core]\n\tfsmonitor = {self.program()}\n")
        self.give(os.path.join(self.workspace, ".git"), self.other)
        modes = [["--workspace-mode", m] for m in ("overlay", "copy", "clone")] + [["--ref", "main"]]
        for options in modes:
            with self.subTest(options=options):
                if self.uid != 0 and "clone" not in options and "--ref" not in options:
                    script = "echo new > n"  # the files are not this user's to write
                    os.chmod(self.workspace, 0o777)
                else:
                    script = EDIT
                r = self.run_agent(script, *options)
                self.assertEqual(r.code, 0, r.stderr)
                self.assertEqual(self.patched(r), ["a" if script == EDIT else "n"])
                self.assertEqual(self.apply(r, "--check").returncode, 65)
        self.assert_nothing_ran()

    def test_links_of_a_foreign_repository_lead_nowhere(self):
        """Its refs and objects could be links to what only the user of this run may read."""
        self.repo(owner=self.other)
        secret = self.write("secret/key", "TOP-SECRET\n")
        os.chmod(os.path.dirname(secret), 0o700)
        self.give(os.path.dirname(secret), self.uid)
        where = os.path.join(self.workspace, ".git")
        os.symlink(secret, os.path.join(where, "packed-refs"))
        os.symlink(os.path.dirname(secret), os.path.join(where, "refs", "tags", "x"))
        os.symlink(os.path.dirname(secret), os.path.join(where, "objects", "ff"))
        r = self.run_agent("! grep -rs TOP-SECRET .git/ && git log --oneline", "--workspace-mode", "clone")
        self.assertEqual(r.code, 0, r.stderr)
        shutil.rmtree(os.path.join(where, "refs"))
        os.symlink(os.path.dirname(secret), os.path.join(where, "refs"))
        r = self.run_agent("! grep -rs TOP-SECRET .git/", "--workspace-mode", "clone")
        self.assertNotIn(b"TOP-SECRET", r.stdout)

    def test_a_foreign_git_file_is_not_followed(self):
        """It could name any repository of the user of this run."""
        private = self.repo("private", {"key": "TOP-SECRET\n"})
        self.write("ws/a", "one\n")
        self.write("ws/.git", f"gitdir: {private}/.git\n")
        self.give(self.workspace, self.other)
        os.chmod(self.workspace, 0o777)
        r = self.run_agent(f"! git log && ! ls {private}/.git/objects && echo new > n")
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual(self.patched(r), ["n"])
        self.assertEqual(self.run_agent("true", "--ref", "main").code, 65)
        self.assertEqual(self.apply(r, "--check").returncode, 65)

    def test_safe_directory(self):
        self.repo(owner=self.other)
        self.plant_filter(os.path.join(self.workspace, ".git"))
        self.give(os.path.join(self.workspace, ".git"), self.other)
        r = self.run_agent("echo new > n", "--workspace-mode", "clone", env=self.trust)
        self.assertEqual(r.code, 0, r.stderr)
        done = self.apply(r, "--check", env=self.trust)
        self.assertEqual(done.returncode, 0, done.stderr)
        for value, wanted in (("*", 0), (f"{self.dir}/*", 0), (self.workspace + "x", 65), ("*\n\tdirectory =", 65)):
            with self.subTest(value=value):
                self.write("trusting/.gitconfig", f"[safe]\n\tdirectory = {value}\n")
                got = self.apply(r, "--check", env=self.trust).returncode
                self.assertIn(got, (0, 65))
                if value != f"{self.dir}/*":  # git 2.46 and later
                    self.assertEqual(got, wanted)
        # The repository itself cannot say that it is safe.
        self.configure(os.path.join(self.workspace, ".git"), "[safe]\n\tdirectory = *\n")
        self.assertEqual(self.apply(r, "--check").returncode, 65)
        self.assert_nothing_ran()

    def test_a_project_file(self):
        evil = self.script("evil.sh", f"id > {self.proof}\n")
        self.write("ws/a", "one\n")
        self.write(".cinch/config.yaml", f"agent: {{adapter: 'exec:{evil}'}}\nlimits: {{max_turns: 3}}\n")
        self.give(self.workspace, self.uid)
        self.give(self.path(".cinch"), self.other)
        r = self.run_agent("true")
        self.assertEqual(r.code, 0, r.stderr)
        self.assertTrue([w for w in r.manifest["warnings"] if ".cinch/config.yaml" in w and "another user" in w])
        done = self.call(harness.CINCH, "run", "--sandbox", "off", "-w", self.workspace, "-o", self.new_output(), "x")
        self.assertNotEqual(done.returncode, 0)
        self.assert_nothing_ran()
        # A link of the other user to a file of this one decides no more than a file would.
        os.rename(self.path(".cinch/config.yaml"), self.path("mine.yaml"))
        self.give(self.path("mine.yaml"), self.uid)
        os.chown(self.path("mine.yaml"), self.uid, self.uid)
        os.symlink(self.path("mine.yaml"), self.path(".cinch/config.yaml"))
        os.chown(self.path(".cinch/config.yaml"), self.other, self.other, follow_symlinks=False)
        r = self.run_agent("true")
        self.assertTrue([w for w in r.manifest["warnings"] if "another user" in w])

    def test_sudo(self):
        """Files of the user that called sudo are obeyed, as git does, and only for root."""
        self.repo(owner=self.other)
        sudo = {"SUDO_UID": str(self.other)}
        os.chmod(self.workspace, 0o777)
        r = self.run_agent("echo new > n", env=sudo)
        self.assertEqual(self.apply(r, "--check", env=sudo).returncode, 0 if self.uid == 0 else 65)
        self.assertEqual(self.apply(r, "--check", env={"SUDO_UID": str(self.other) + "x"}).returncode, 65)


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class ForeignForUser(Foreign):
    uid = USER


class Configured(Case):
    """Programs that the user's own repository configures, as if it had been unpacked from somewhere."""

    def setUp(self):
        super().setUp()
        self.repo()
        self.own = os.path.join(self.workspace, ".git")

    def all_modes(self):
        return [["--workspace-mode", m] for m in ("overlay", "copy", "clone", "in-place")] + [["--ref", "main"]]

    def plant_transport(self):
        """A promisor remote whose transport is a program: a missing object would be fetched."""
        with open(os.path.join(self.own, "config"), encoding="utf-8") as f:
            text = f.read()
        with open(os.path.join(self.own, "config"), "w", encoding="utf-8") as f:
            f.write(text.replace("version = 0", "version = 1"))
        self.configure(self.own, f"[core]\n\tsshCommand = {self.program()}\n\tgitProxy = {self.program()}\n"
                       f'[remote "origin"]\n\turl = ssh://example.org/x\n\tpromisor = true\n\tuploadpack = {self.program()}\n'
                       "[extensions]\n\tpartialClone = origin\n[protocol]\n\tallow = always\n"
                       '[protocol "ssh"]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n')

    def lose(self, name):
        """Removes the object that a file's content is stored in."""
        oid = self.git(self.workspace, "rev-parse", name).stdout.strip()
        os.unlink(os.path.join(self.own, "objects", oid[:2], oid[2:]))

    def test_missing_objects_are_not_fetched(self):
        """A ref, HEAD, a tree or a file that is not there."""
        self.plant_transport()
        self.write("ws/.git/refs/heads/gone", "1" * 40 + "\n")
        for url in ("ssh://example.org/x", f"ext::{self.program()}", self.path("no-such"), "git://localhost:1/x"):
            self.git(self.workspace, "config", "remote.origin.url", url)
            r = self.run_agent("true", "--ref", "gone")
            self.assertEqual(r.code, 66, r.stderr)
            self.assert_nothing_ran()
        self.lose("HEAD:a")
        for options in self.all_modes():
            with self.subTest(options=options):
                self.run_agent("echo three >> a; git status; git log -1", *options)
                self.assert_nothing_ran()
        self.write("ws/.git/HEAD", "1" * 40 + "\n")
        self.run_agent("true", "--workspace-mode", "clone")
        self.assert_nothing_ran()

    def test_apply_fetches_nothing(self):
        r = self.run_agent(EDIT)
        self.plant_transport()
        self.lose("HEAD:a")
        self.write("ws/a", "zero\none\n")  # a three-way merge would need the object
        for options in (["--check"], []):
            self.assertNotEqual(self.apply(r, *options).returncode, 0)
        self.assert_nothing_ran()

    def test_programs_of_the_configuration(self):
        """In every mode, and when the patch is applied to the tree."""
        self.write("ws/.gitattributes", "* filter=x diff=x merge=x\n")
        self.git(self.workspace, "add", "-A")
        self.git(self.workspace, "commit", "-qm", "second")
        p = self.program()
        included = self.write("included", f'[filter "x"]\n\tprocess = {p}\n\trequired = true\n[merge "x"]\n\tdriver = {p}\n')
        self.configure(self.own, f"[core]\n\tfsmonitor = {p}\n\tpager = {p}\n\thooksPath = {self.path('hooks')}\n"
                       f"\teditor = {p}\n[gpg]\n\tprogram = {p}\n[commit]\n\tgpgSign = true\n[include]\n\tpath = {included}\n"
                       f'[filter "x"]\n\tclean = {p}\n\tsmudge = {p}\n[diff "x"]\n\ttextconv = {p}\n\tcommand = {p}\n'
                       f"[diff]\n\texternal = {p}\n[credential]\n\thelper = {p}\n")
        for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change", "prepare-commit-msg"):
            self.script(f"hooks/{name}", f"id >> {self.proof}\n")
            shutil.copy(self.path("hooks", name), os.path.join(self.own, "hooks", name))
        self.give(self.workspace, self.uid)
        os.utime(os.path.join(self.workspace, "a"))  # the index does not know it as unchanged
        for options in self.all_modes():
            with self.subTest(options=options):
                r = self.run_agent("echo two >> a" if "in-place" not in options else "echo new > n", *options)
                self.assertEqual(r.code, 0, r.stderr)
        r = self.run_agent(EDIT)
        done = self.apply(r, "-m", "x")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("filter", done.stderr)
        for options in (["--check"], ["-b", "other"]):
            done = self.apply(r, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.workspace, "a"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "one\ntwo\n")
        self.assert_nothing_ran()

    def test_a_merge_driver(self):
        self.write("ws/.gitattributes", "* merge=x\n")
        self.write("ws/a", "".join(f"{i}\n" for i in range(30)))
        self.git(self.workspace, "add", "-A")
        self.git(self.workspace, "commit", "-qm", "second")
        r = self.run_agent("sed -i s/^25$/other/ a")
        self.write("ws/a", "".join(f"{i}\n" for i in range(-30, 30)).replace("\n22\n", "\nchanged\n"))
        self.git(self.workspace, "commit", "-qam", "third")
        self.configure(self.own, f'[merge "x"]\n\tdriver = {self.program()}\n')
        self.give(self.workspace, self.uid)
        self.assertEqual(self.apply(r, "--check").returncode, 1)
        self.apply(r)
        self.assert_nothing_ran()

    def test_a_driver_with_an_odd_name(self):
        """`git -c` would end the key at the equals sign."""
        self.write("ws/.gitattributes", "* filter=a=b\n")
        self.configure(self.own, f'[filter "a=b"]\n\tclean = {self.program()}\n')
        r = self.run_agent(EDIT)
        self.assertEqual(self.apply(r, "--check").returncode, 65)
        self.assert_nothing_ran()

    def test_a_submodule(self):
        """git looks into a submodule by starting git there, with the submodule's configuration."""
        other = self.repo("other")
        self.git(self.workspace, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub")
        self.git(self.workspace, "commit", "-qm", "second")
        self.plant_filter(os.path.join(self.own, "modules", "sub"))
        self.configure(os.path.join(self.own, "modules", "sub"), f"[core]\n\tfsmonitor = {self.program()}\n")
        os.utime(os.path.join(self.workspace, "sub", "a"))
        for options in self.all_modes():
            with self.subTest(options=options):
                r = self.run_agent("echo new > n; test ! -d sub/d || echo two >> sub/d/b", *options)
                self.assertEqual(r.code, 0, r.stderr)
                self.assert_nothing_ran()
                self.apply(r, "--check")
                self.assert_nothing_ran()
        self.apply(r, "-b", "other", "-m", "third")
        self.assert_nothing_ran()

    def test_a_nested_repository(self):
        nested = self.repo(os.path.join("ws", "nested"))
        self.git(self.workspace, "add", "nested")
        self.git(self.workspace, "commit", "-qm", "second")
        self.plant_filter(os.path.join(nested, ".git"))
        os.utime(os.path.join(nested, "a"))
        for options in self.all_modes():
            with self.subTest(options=options):
                self.assertEqual(self.run_agent("echo new > n", *options).code, 0)
                self.assert_nothing_ran()

    def test_a_directory_that_looks_like_a_repository(self):
        """A bare repository needs no .git: HEAD, objects and refs in a directory are enough for git."""
        plain = self.make_dir("plain")
        self.write("plain/a", "one\n")
        self.give(plain, self.uid)
        self.git(self.dir, "init", "-q", "--bare", plain)
        self.plant_filter(plain)
        self.configure(plain, f"[core]\n\tbare = false\n\tworktree = {plain}\n\tfsmonitor = {self.program()}\n")
        self.give(plain, self.uid)
        r = self.run_agent(EDIT, workspace=plain)
        self.assertEqual(r.code, 0, r.stderr)
        for options in (["--check"], []):
            done = self.apply(r, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_nothing_ran()
        # .git is there, and no repository in git's eyes: git would go on and find the other one.
        self.make_dir("plain/.git/objects")
        self.apply(self.run_agent(EDIT, workspace=plain))
        self.assert_nothing_ran()

    def test_another_work_tree(self):
        """core.worktree of the repository does not lead `apply` elsewhere."""
        self.make_dir("elsewhere")
        shutil.copy(os.path.join(self.workspace, "a"), self.path("elsewhere/a"))
        self.give(self.path("elsewhere"), self.uid)
        r = self.run_agent(EDIT)
        self.configure(self.own, f"[core]\n\tworktree = {self.path('elsewhere')}\n")
        self.assertEqual(self.apply(r).returncode, 0)
        with open(self.path("elsewhere/a"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "one\n")

    def test_paths_that_a_repository_names(self):
        """The agent sees directories that .git refers to only if they hold git objects and nothing else."""
        private = self.make_dir("private")
        self.write("private/key", "TOP-SECRET\n")
        self.write("ws/.git/objects/info/alternates", private + "\n")
        self.give(self.workspace, self.uid)
        look = f"! cat {private}/key"
        self.assertEqual(self.run_agent(look).code, 0)
        shutil.move(self.own, self.path("real"))
        shutil.rmtree(self.path("real/objects"))
        os.symlink(private, self.path("real/objects"))
        self.write("ws/.git", f"gitdir: {self.path('real')}\n")
        self.give(self.workspace, self.uid)
        self.assertEqual(self.run_agent(look).code, 0)

    def test_shared_objects_still_work(self):
        """A clone that borrows its objects, as `git clone --shared` makes it."""
        clone = self.path("clone")
        self.git(self.dir, "-c", "protocol.file.allow=always", "clone", "-q", "--shared", self.workspace, clone)
        for options in (["--workspace-mode", "overlay"], ["--workspace-mode", "clone"], ["--ref", "HEAD"]):
            with self.subTest(options=options):
                r = self.run_agent("git log --oneline | grep first; git status --short; " + EDIT, *options, workspace=clone)
                self.assertEqual((r.code, self.patched(r)), (0, ["a"]), r.stderr)
        self.assertEqual(self.apply(r).returncode, 0)

    def test_names_of_commits(self):
        """All that `git rev-parse` understands."""
        self.write("ws/a", "two\n")
        self.git(self.workspace, "commit", "-qam", "second")
        self.git(self.workspace, "tag", "-am", "x", "v1")
        for ref in ("main", "HEAD~1", "v1", "main@{1}", "refs/tags/v1^{}", "HEAD^{/first}"):
            with self.subTest(ref=ref):
                want = self.git(self.workspace, "rev-parse", ref + "^{commit}").stdout.strip()
                r = self.run_agent(f"test $(git rev-parse HEAD) = {want}", "--ref", ref)
                self.assertEqual(r.code, 0, r.stderr)


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class ConfiguredForUser(Configured):
    uid = USER


class Planted(Case):
    """What an agent writes into .git of a tree that stays: in place, and in a copy that is kept."""

    # Each makes git run a program at the next `git status`, if it can be written.
    CONFIG = 'mkdir -p {x}; cp -r {git}/objects {git}/refs {git}/HEAD {x}/; (cat {git}/config; echo "[core]"; ' \
             'echo "fsmonitor = \\"{program}; false\\"") > {x}/config'

    def setUp(self):
        super().setUp()
        self.repo()
        self.own = os.path.join(self.workspace, ".git")

    def attempts(self, git_dir=".git"):
        x = self.path("x")
        os.makedirs(x, exist_ok=True)
        os.chmod(x, 0o777)
        make = self.CONFIG.format(x="x.d", git=git_dir, program=self.program())
        up = "../" * (git_dir.count("/") + 1)
        return {
            "commondir": f"{make}; echo {up}x.d > {git_dir}/commondir",
            "commondir moved into place": f"{make}; echo {up}x.d > c; mv c {git_dir}/commondir",
            "commondir removed first": f"{make}; rm -f {git_dir}/commondir; echo {up}x.d > {git_dir}/commondir",
            "config": f"printf '[core]\\nfsmonitor = {self.program()}' >> {git_dir}/config",
            "config.worktree": f"printf '[core]\\nfsmonitor = {self.program()}' > {git_dir}/config.worktree",
            "hooks": f"mkdir -p {git_dir}/hooks; cp {self.program()} {git_dir}/hooks/post-index-change",
            "hooks replaced": f"mv {git_dir}/hooks {git_dir}/h; mkdir {git_dir}/hooks; cp {self.program()} {git_dir}/hooks/post-index-change",
            "attributes": f"mkdir -p {git_dir}/info; echo '* filter=global' > {git_dir}/info/attributes",
            "info replaced": f"mv {git_dir}/info {git_dir}/i; mkdir {git_dir}/info; echo '* filter=global' > {git_dir}/info/attributes",
            "alternates": f"mkdir -p {git_dir}/objects/info; echo /etc > {git_dir}/objects/info/alternates",
            "objects replaced": f"mv {git_dir}/objects {git_dir}/o; mkdir -p {git_dir}/objects/info; echo /etc > {git_dir}/objects/info/alternates",
            "all of it": f"mv {git_dir} {git_dir}2",
        }

    def snapshot(self, git_dir):
        """What decides in a git directory; None for what is not there."""
        found = {}
        for name in ("commondir", "config", "config.worktree", "info/attributes", "objects/info/alternates"):
            path = os.path.join(git_dir, name)
            found[name] = None
            if os.path.lexists(path):
                with open(path, "rb") as f:
                    found[name] = f.read()
        found["hooks"] = sorted(os.listdir(os.path.join(git_dir, "hooks"))) if os.path.isdir(os.path.join(git_dir, "hooks")) else None
        return found

    def check(self, git_dir=".git", workspace=None):
        workspace = workspace or self.workspace
        for mode in ("in-place", "copy"):
            for name, script in self.attempts(git_dir).items():
                with self.subTest(mode=mode, attempt=name):
                    before = self.snapshot(os.path.join(workspace, git_dir))
                    r = self.run_agent(f"({script}) || true; echo new > n", "--workspace-mode", mode, "--keep-workspace", "keep",
                                       workspace=workspace)
                    self.assertEqual(r.code, 0, r.stderr)
                    tree = workspace if mode == "in-place" else r.path("work", "tree")
                    self.assertEqual(self.snapshot(os.path.join(tree, git_dir)), before)
                    self.call("git", "-C", tree, "status")
                    self.call("git", "-C", os.path.join(tree, os.path.dirname(git_dir)), "status")
                    self.assert_nothing_ran()
                    subprocess.run(["rm", "-rf", os.path.join(workspace, "x.d")], check=True)

    def test_a_repository(self):
        self.check()

    def test_without_hooks_and_info(self):
        for name in ("hooks", "info", "objects/info"):
            shutil.rmtree(os.path.join(self.own, name))
        self.check()

    def test_a_nested_repository(self):
        self.repo("ws/nested")
        self.git(self.workspace, "add", "nested")
        self.git(self.workspace, "commit", "-qm", "nested")
        self.check("nested/.git")

    def test_many_repositories(self):
        """All of them are protected, however many there are, and the run says which cannot be written to."""
        many = 700
        for n in range(many):
            for name in ("objects", "refs", "hooks"):
                os.makedirs(os.path.join(self.workspace, f"n{n}", ".git", name))
            for name, text in (("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n")):
                self.write(f"ws/n{n}/.git/{name}", text)
        for folder, _, files in os.walk(self.workspace):
            for name in [".", *files]:
                os.lchown(os.path.join(folder, name), self.uid, self.uid)
        script = "for d in n*; do (echo x >> $d/.git/config) 2>/dev/null && echo $d; mv $d/.git $d/g 2>/dev/null && echo $d; done; echo made > n"
        r = self.run_agent(script, "--workspace-mode", "in-place")
        self.assertEqual((r.code, r.bytes("stdout.log")), (0, b""), r.stderr)
        self.assertIn("git directories of the workspace are read-only", str(r.manifest["warnings"]))

    def test_a_submodule(self):
        """Its git directory is in the one of the repository, its .git is a file."""
        other = self.repo("other")
        self.git(self.workspace, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "libs/sub")
        self.git(self.workspace, "commit", "-qm", "second")
        self.check(".git/modules/libs/sub")
        pointer = os.path.join(self.workspace, "libs/sub/.git")
        with open(pointer, encoding="utf-8") as f:
            before = f.read()
        for script in ("echo gitdir: /tmp > libs/sub/.git", "mv libs/sub/.git x", "rm libs/sub/.git", "mv .git/modules x",
                       "mv .git/modules/libs .git/modules/l"):
            r = self.run_agent(f"! ({script})", "--workspace-mode", "in-place")
            self.assertEqual(r.code, 0, r.stderr)
            with open(pointer, encoding="utf-8") as f:
                self.assertEqual(f.read(), before)

    def test_other_worktrees(self):
        """A worktree elsewhere reads its part of the git directory."""
        self.git(self.workspace, "worktree", "add", "-q", self.path("tree2"))
        name = os.path.join(self.own, "worktrees", "tree2", "commondir")
        with open(name, encoding="utf-8") as f:
            before = f.read()
        for script in ("echo /tmp > .git/worktrees/tree2/commondir", "mv .git/worktrees/tree2 .git/worktrees/t",
                       "mv .git/worktrees .git/w"):
            r = self.run_agent(f"! ({script})", "--workspace-mode", "in-place")
            self.assertEqual(r.code, 0, r.stderr)
            with open(name, encoding="utf-8") as f:
                self.assertEqual(f.read(), before)
        # One that the agent makes works as ever.
        r = self.run_agent("git worktree add -q wt && cd wt && git status", "--workspace-mode", "in-place")
        self.assertEqual(r.code, 0, r.stderr)

    def test_a_worktree_in_place(self):
        tree = self.path("tree2")
        self.git(self.workspace, "worktree", "add", "-q", tree)
        with open(os.path.join(tree, ".git"), encoding="utf-8") as f:
            before = f.read()
        for script in ("echo gitdir: /tmp > .git", "mv .git x", "rm .git"):
            r = self.run_agent(f"! ({script})", "--workspace-mode", "in-place", workspace=tree)
            self.assertEqual(r.code, 0, r.stderr)
        with open(os.path.join(tree, ".git"), encoding="utf-8") as f:
            self.assertEqual(f.read(), before)

    def test_git_works_for_the_agent(self):
        """Commits, branches, packs, stashes, worktrees; nothing is left in .git that was not there."""
        script = """
            git config --get user.name || export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t
            echo two >> a; git add -A; git commit -qm x; git checkout -qb other; git mv a c; git commit -qm y
            echo z >> c; git stash -q; git stash pop -q; git gc -q; git repack -qad; git commit-graph write
            echo rule > .git/info/exclude; test "$(git rev-list --count HEAD)" = 3; git fsck --no-progress; git status"""
        for mode in ("in-place", "copy", "clone", "overlay"):
            with self.subTest(mode=mode):
                self.git(self.workspace, "checkout", "-qf", "main")
                self.git(self.workspace, "reset", "-q", "--hard", "main")
                before = sorted(os.listdir(self.own))
                r = self.run_agent(script if mode != "in-place" else "git status; git log", "--workspace-mode", mode)
                self.assertEqual(r.code, 0, r.stderr)
                self.assertEqual(sorted(os.listdir(self.own)), before)
        r = self.run_agent(script, "--workspace-mode", "in-place")
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual(self.git(self.workspace, "rev-parse", "--abbrev-ref", "HEAD").stdout, "other\n")
        self.assertEqual(self.git(self.workspace, "rev-parse", "--git-common-dir").stdout, ".git\n")

    def test_a_repository_that_the_agent_makes(self):
        """It cannot be pinned; the user is warned."""
        r = self.run_agent("git init -q sub", "--workspace-mode", "in-place")
        self.assertEqual(r.code, 0, r.stderr)
        self.assertTrue([x for x in r.manifest["warnings"] if "'sub'" in x and ".git/config" in x], r.manifest["warnings"])
        r = self.run_agent("git status", "--workspace-mode", "in-place")
        self.assertEqual(r.manifest["warnings"], [])

    def test_killed(self):
        """What was made for the pins goes when the run is recovered."""
        before = self.snapshot(self.own)
        output = self.new_output()
        process = subprocess.Popen([harness.CINCH, "run", "--env", "CINCH_TEST_MARK", "-w", self.workspace, "-o", output,
                                    "--workspace-mode", "in-place", "--", "sh", "-c", "touch begun; exec sleep 600"],
                                   env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   **({} if self.uid == os.geteuid() else {"user": self.uid, "group": self.uid, "extra_groups": []}))
        harness.wait_until(lambda: os.path.exists(os.path.join(self.workspace, "begun")), "the agent")
        process.kill()
        process.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the end of the agent")
        self.git(self.workspace, "status")
        done = self.call(harness.CINCH, "recover", output)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.snapshot(self.own), before)


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class PlantedForUser(Planted):
    uid = USER


if __name__ == "__main__":
    harness.main()
