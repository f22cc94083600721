# SPDX-License-Identifier: MIT
"""The escape suite: small attempts to get out (tests/escape), each run inside the default sandbox and judged
twice: by the attempt itself, from inside, and by this test, from outside.

An attempt proves nothing where it cannot succeed; so each also runs with --sandbox off, as root, where it must get
out. Everything runs as root and as an ordinary user.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest
import uuid

import harness

NEEDLE = "needle-7f3a91"
PROGRAM = os.path.join(harness.BUILD, "tests", "escape", "escape")

# Odd socket families: AF_PACKET, AF_ALG, AF_VSOCK, AF_KEY, AF_TIPC, AF_BLUETOOTH, AF_CAN, AF_XDP.
FAMILIES = (17, 38, 40, 15, 30, 31, 29, 44)

# (attempt, does it get out without a sandbox, as root). What the kernel of a machine does not have at all is
# reported as held there too; those are marked None.
ATTEMPTS = [
    ("read /etc/shadow root", True),
    ("read {home}/.ssh/id_ed25519 {needle}", True),
    ("read {home}/.aws/credentials {needle}", True),
    ("read {outside}/file {needle}", True),
    ("read {other}/result.json {needle}", True),
    ("entries {outside} file", True),
    ("entries {output} manifest.json", None),  # not written yet when the attempt runs
    ("write {outside}/file", True),
    ("write {outside}/new", True),
    ("write {srv}/new", True),
    ("write {output}/result.json", True),
    ("remove {outside}/file2", True),
    ("hardlink {srv}/file link", None),  # another file system without a sandbox, perhaps
    ("device", True),
    ("setuid {setuid}", None),  # root has nothing to gain
    ("handle /", True),
    ("environ {secret}", True),
    ("root {srv}/file {needle}", True),
    ("ptrace {pid}", True),
    ("vm {pid}", True),
    ("mem {pid}", True),
    ("signal {pid}", True),
    ("pidfd {pid}", True),
    ("fds", None),  # closed without a sandbox too
    ("tiocsti", None),  # depends on dev.tty.legacy_tiocsti
    ("core", None),  # no core without a sandbox either
    ("userns", True),
    ("userns_clone", True),
    ("userns_clone3", True),
    ("mount", True),
    ("fsopen", True),
    ("io_uring", None),
    ("keyring", None),
    ("bpf", True),
    ("perf", None),
    ("userfaultfd", None),
    ("i386", None),
    ("x32", None),
    ("sysctl", True),
    ("hostname escaped-host", None),  # would rename the machine
    ("cgroup", None),
    ("tcp 127.0.0.1 {port}", True),
    ("mptcp 127.0.0.1 {port}", None),
    ("fastopen 127.0.0.1 {port}", None),
    ("udp 127.0.0.1 {udp}", True),
    ("abstract {abstract}", True),
    ("unix {socket}", True),
    ("raw", True),
    ("loopback", None),
    ("disk /tmp/fill 4096", None),
] + [(f"family {n}", None) for n in FAMILIES]

# Attempts that would do harm, or nothing at all, without a sandbox.
NOT_OUTSIDE = ("hostname", "disk", "loopback")


class Servers:
    """Listeners of the host: TCP, UDP, abstract and named."""

    def __init__(self, directory):
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.abstract_name = "cinch-escape-" + uuid.uuid4().hex
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind("\0" + self.abstract_name)
        self.abstract.listen()
        self.path = os.path.join(directory, "host.sock")
        self.named = socket.socket(socket.AF_UNIX)
        self.named.bind(self.path)
        os.chmod(self.path, 0o777)
        self.named.listen()
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self):
        while True:
            try:
                _, peer = self.udp.recvfrom(512)
                self.udp.sendto(b"x", peer)
            except OSError:
                return

    def close(self):
        for s in (self.tcp, self.udp, self.abstract, self.named):
            s.close()


class Escape(harness.Case):
    user = None

    def setUp(self):
        super().setUp()
        if not os.path.exists(PROGRAM):
            self.skipTest("the escape program was not built")
        if os.geteuid() != 0:
            self.skipTest("needs root, to play root and an ordinary user")
        os.chmod(self.dir, 0o755)
        self.srv = tempfile.mkdtemp(prefix="cinch-escape-", dir="/var/lib")
        self.addCleanup(shutil.rmtree, self.srv, ignore_errors=True)
        os.chmod(self.srv, 0o755)
        self.home = self.env["HOME"]
        for name in ("userhome/.ssh/id_ed25519", "userhome/.aws/credentials", "outside/file", "outside/file2",
                     "other/result.json"):
            self.write(name, NEEDLE + "\n")
        with open(os.path.join(self.srv, "file"), "w", encoding="utf-8") as f:
            f.write(NEEDLE + "\n")
        shutil.copy(PROGRAM, os.path.join(self.workspace, "escape"))
        self.setuid = os.path.join(self.srv, "setuid")
        shutil.copy(PROGRAM, self.setuid)
        os.chmod(self.setuid, 0o4755)
        self.servers = Servers(self.make_dir("sockets"))
        self.addCleanup(self.servers.close)
        self.bystander = subprocess.Popen(["sleep", "600"], env={"SECRET": NEEDLE + "-environ"}, stdin=subprocess.PIPE,
                                          user=self.user)
        self.addCleanup(self.reap, self.bystander)
        self.own_everything()

    def own_everything(self):
        """The directories belong to the user that the run is started by."""
        if self.user is None:
            return
        for base, dirs, files in os.walk(self.dir):
            for name in [base] + [os.path.join(base, n) for n in dirs + files]:
                os.lchown(name, self.user, self.user)

    def tools(self):
        """cinch and its helper where any user may execute them."""
        directory = self.make_dir("bin")
        for path in (harness.CINCH, os.path.join(harness.BUILD, "src", "init", "cinch-init")):
            target = os.path.join(directory, os.path.basename(path))
            if not os.path.exists(target):
                shutil.copy(path, target)
                os.chmod(target, 0o755)
        return os.path.join(directory, "cinch")

    def attempt(self, text, options=(), may_end=False):
        """One run; returns (word, line, result). With may_end it need not live to see the outcome."""
        output = self.new_output()
        args = text.format(home=self.home, needle=NEEDLE, outside=self.path("outside"), other=self.path("other"),
                           output=output, srv=self.srv, setuid=self.setuid, secret=NEEDLE + "-environ",
                           pid=self.bystander.pid, port=self.servers.tcp.getsockname()[1],
                           udp=self.servers.udp.getsockname()[1], abstract=self.servers.abstract_name,
                           socket=self.servers.path).split()
        line = [self.tools()] + self.command_line(options, output)[1:] + ["--", "./escape"] + args
        done = subprocess.run(line, env=self.env, cwd=self.workspace, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=harness.PATIENCE, user=self.user, group=self.user, extra_groups=[] if self.user
                              else None)
        result = harness.Result(done.returncode, done.stdout, done.stderr, output)
        said = result.bytes("stdout.log").decode() if result.exists("stdout.log") else ""
        if may_end and ":" not in said:
            return "held", result.manifest["error"], result
        self.assertIn(":", said, f"{text}: no verdict; cinch said {done.stderr.decode(errors='replace')}")
        return said.split(":")[0], said.strip(), result

    def outside(self):
        """Everything an attempt could have changed, as it is now."""
        found = {}
        for top in (self.path("outside"), self.path("other"), self.srv, self.home):
            for base, _, files in os.walk(top):
                for name in files:
                    path = os.path.join(base, name)
                    with open(path, "rb") as f:
                        found[path] = (os.lstat(path).st_mtime_ns, os.lstat(path).st_nlink, f.read())
        found["hostname"] = socket.gethostname()
        return found

    def test_every_attempt_is_held(self):
        before = self.outside()
        for text, _ in ATTEMPTS:
            with self.subTest(attempt=text):
                word, said, _ = self.attempt(text)
                if word == "escaped" and text.split()[0] in ("write", "remove"):
                    word = "held"  # a private copy; the comparison below is the judge
                self.assertIn(word, ("held", "not applicable"), said)
                self.assertEqual(self.outside(), before)

    def test_result_of_another_writer_stays(self):
        """The record is written by cinch alone: an attempt to plant a result does not reach it."""
        _, _, result = self.attempt("write {output}/result.json")
        self.assertNotIn(b"planted", result.bytes("result.json"))

    def test_fork_bomb(self):
        word, said, _ = self.attempt("fork 100", ("--pids", "100", "--allow-degraded"))
        self.assertEqual(word, "held", said)

    def test_memory_bomb(self):
        # A user without a delegated control group has no bound for what is faster than a look at the memory in use; the
        # run is refused then, or the record says that nothing was bounded.
        word, said, r = self.attempt("memory 256", ("--memory", "256M", "--allow-degraded"), may_end=True)
        if "memory" in r.manifest["sandbox"]["enforced"]:
            self.assertEqual(word, "held", said)
            self.assertTrue(any("out of memory" in w for w in r.manifest["warnings"]), r.manifest["warnings"])
        else:
            self.assertTrue(any(lost.startswith("memory: ") for lost in r.manifest["sandbox"]["lost"]))

    def test_daemon_ends_with_the_run(self):
        """What daemonised is dead when cinch has returned: its heartbeat has stopped."""
        self.attempt("daemon beat", ("--workspace-mode", "in-place"))
        path = os.path.join(self.workspace, "beat")
        size = os.path.getsize(path) if os.path.exists(path) else 0
        threading.Event().wait(0.5)
        self.assertEqual(os.path.getsize(path) if os.path.exists(path) else 0, size)

    def test_links_that_swap(self):
        """Somebody who swaps a directory and a link to the outside, also while the run is collected."""
        before = self.outside()
        _, _, result = self.attempt("swap trap " + self.path("outside"))
        self.assertEqual(self.outside(), before)
        if result.exists("diff.patch"):
            self.assertNotIn(NEEDLE.encode(), result.bytes("diff.patch"))

    def test_planted_links_are_not_followed(self):
        """A link out of the workspace is recorded as a link, never as what it points to."""
        output = self.new_output()
        line = [self.tools()] + self.command_line((), output)[1:] + [
            "--", "/bin/sh", "-c", f"ln -s {self.srv}/file stolen; rm -rf d; ln -s {self.path('outside')} d"]
        subprocess.run(line, env=self.env, cwd=self.workspace, stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=harness.PATIENCE, user=self.user, group=self.user,
                       extra_groups=[] if self.user else None, check=True)
        with open(os.path.join(output, "diff.patch"), "rb") as f:
            patch = f.read()
        self.assertIn(b"new file mode 120000", patch)
        self.assertNotIn(NEEDLE.encode(), patch)

    def test_git_cannot_be_planted(self):
        """Hooks and configuration of the repository stay as they were, and cannot be changed from inside."""
        subprocess.run(["git", "init", "-q", self.workspace], check=True, user=self.user,
                       env={"PATH": os.environ["PATH"], "HOME": self.home})
        config = os.path.join(self.workspace, ".git", "config")
        with open(config, "rb") as f:
            before = f.read()
        for target in (".git/hooks/post-checkout", ".git/config"):
            with self.subTest(target=target):
                self.attempt("write " + target)
                self.assertFalse(os.path.exists(os.path.join(self.workspace, ".git/hooks/post-checkout")))
                with open(config, "rb") as f:
                    self.assertEqual(f.read(), before)


class AsRoot(Escape):
    def test_attempts_succeed_without_a_sandbox(self):
        """The suite can fail: without a sandbox the attempts get out."""
        for text, gets_out in ATTEMPTS:
            if gets_out is not True or text.split()[0] in NOT_OUTSIDE:
                continue
            with self.subTest(attempt=text):
                word, said, _ = self.attempt(text, ("--sandbox", "off", "--workspace-mode", "in-place"))
                self.assertEqual(word, "escaped", said)

    def test_the_program_is_not_host_root(self):
        """From outside: the process inside has no host uid 0 and no capability."""
        process, _ = self.start("--", "/bin/sleep", "600")
        found = []

        def look():
            for pid in harness.marked(self.mark):
                try:
                    with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                        if f.read().strip() == "sleep":
                            found.append(pid)
                except OSError:
                    continue
            return found

        harness.wait_until(look, "the program")
        with open(f"/proc/{found[0]}/status", encoding="utf-8") as f:
            status = dict(line.split(":", 1) for line in f)
        self.assertNotIn("0", status["Uid"].split())
        self.assertNotIn("0", status["Gid"].split())
        self.assertEqual(int(status["CapEff"], 16), 0)
        self.assertEqual(int(status["CapBnd"], 16), 0)
        self.assertEqual(status["NoNewPrivs"].strip(), "1")
        self.assertEqual(status["Seccomp"].strip(), "2")
        process.terminate()
        process.communicate(timeout=harness.PATIENCE)


class AsUser(Escape):
    def setUp(self):
        self.user = pwd.getpwnam("nobody").pw_uid
        super().setUp()


del Escape  # only its children are tests


if __name__ == "__main__":
    unittest.main(verbosity=2)
