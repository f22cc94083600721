#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The inside of a virtual machine of scripts/escape-kernels: boots it, tries the bounds of memory, runs the escape
suite, powers it off.

The kernel starts this file as its first process, from an initramfs that holds everything the suite needs. The
root file system is then moved to the ext4 disk, as on an ordinary machine: pivot_root and overlays do not work on
an initramfs. Results are written to the second serial port, one JSON object per line:

  {"doctor": USER, "checks": [...]}                      what `cinch doctor` reports, as root and as a user
  {"user": …, "mode": …, "attempt": …, "word": …, "detail": …, "enforced": [...]}
  {"user": …, "mode": …, "test": …, "error": …, "skipped": …}     the other tests of test_escape.py
  {"fault": TEXT}, {"done": true}

The mode is `default`, `degraded` (--allow-degraded, where doctor says that a run is refused) or `off` (without a
sandbox, where attempts must get out). The word is that of the attempt (held, escaped, not applicable), `refused`
when cinch refused the run, or `error`. `enforced` lists the guarantees that the manifest of the run claims.
"""

import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
CINCH_ROOT = os.path.dirname(os.path.dirname(HERE))
CONFIG = "/guest.json"
DISK = "/dev/vda"
NEW_ROOT = "/newroot"
RESULTS = "/dev/ttyS1"
PYTHON = "/usr/bin/python3"

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_MOVE, MS_REC, MS_SHARED = 2, 4, 8, 8192, 16384, 1 << 20
RB_AUTOBOOT = 0x01234567  # QEMU runs with -no-reboot, so this ends it, on every kernel
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
SYS_FINIT_MODULE = 313  # x86_64

libc = ctypes.CDLL(None, use_errno=True)

SYSTEM_MOUNTS = [
    ("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, ""),
    ("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, ""),
    ("devtmpfs", "/dev", MS_NOSUID, "mode=0755"),
    ("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=000"),
    ("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, ""),
    ("tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=0755"),
    ("cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, ""),
]


# --- boot --------------------------------------------------------------------------------------


def mount(kind, target, flags=0, options="", source=None):
    os.makedirs(target, exist_ok=True)
    if libc.mount((source or kind).encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags),
                  options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {kind} on {target}: {os.strerror(ctypes.get_errno())}")


def load_modules(names):
    """Loads the modules in the given order; returns those that the kernel refused, with the reason."""
    refused = {}
    for name in names:
        with open(f"/modules/{name}", "rb") as f:
            if libc.syscall(SYS_FINIT_MODULE, f.fileno(), b"", 0) != 0:
                refused[name] = os.strerror(ctypes.get_errno())
    return refused


def move_root():
    """Copies the initramfs to the disk, and makes that the root."""
    mount("ext4", NEW_ROOT, source=DISK)
    for name in os.listdir("/"):
        source, target = os.path.join("/", name), os.path.join(NEW_ROOT, name)
        if name in ("proc", "sys", "dev", "run", NEW_ROOT[1:], "modules"):
            continue
        if os.path.islink(source) or not os.path.isdir(source):
            shutil.copy2(source, target, follow_symlinks=False)
        else:
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    os.chdir(NEW_ROOT)
    mount("", "/", MS_MOVE, source=".")
    os.chroot(".")
    os.chdir("/")
    for kind, target, flags, options in SYSTEM_MOUNTS:
        mount(kind, target, flags, options)
    mount("", "/", MS_REC | MS_SHARED)  # as systemd does


def set_up_network():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def enter_cgroup():
    """A group of its own below others with all controllers, as a service of systemd has."""
    parent = "/sys/fs/cgroup"
    for name in ("system.slice", "suite.service"):
        for controller in ("cpu", "memory", "pids"):
            with open(os.path.join(parent, "cgroup.subtree_control"), "w", encoding="ascii") as f:
                f.write(f"+{controller}")
        parent = os.path.join(parent, name)
        os.mkdir(parent)
    with open(os.path.join(parent, "cgroup.procs"), "w", encoding="ascii") as f:
        f.write(str(os.getpid()))


def boot():
    mount("devtmpfs", "/dev", MS_NOSUID, "mode=0755")
    with open(CONFIG, encoding="utf-8") as f:
        config = json.load(f)
    refused = load_modules(config["modules"])
    move_root()
    os.chmod("/tmp", 0o1777)
    set_up_network()
    socket.sethostname("guest")
    with open("/dev/kmsg", "w", encoding="ascii") as f:
        f.write(config["marker"])
    return config, refused


# --- the suite ---------------------------------------------------------------------------------


class Report:
    """Writes one JSON object per line to the results."""

    def __init__(self, out):
        self.out = out

    def emit(self, **fields):
        self.out.write((json.dumps(fields) + "\n").encode())


class Verdicts(unittest.TestResult):
    """Reports the tests of test_escape.py that are no attempts."""

    def __init__(self, report, user, mode):
        super().__init__()
        self.report, self.user, self.mode = report, user, mode
        self.errors_of_test = []

    def startTest(self, test):
        super().startTest(test)
        self.errors_of_test = []

    def stopTest(self, test):
        super().stopTest(test)
        name = test.id().rpartition(".")[2]
        skipped = [reason for t, reason in self.skipped if t is test]
        if name != "attempts" or self.errors_of_test or skipped:
            self.report.emit(user=self.user, mode=self.mode, test=name, skipped=skipped[0] if skipped else None,
                             error="\n".join(self.errors_of_test) or None)

    def addError(self, test, err):
        super().addError(test, err)
        self.errors_of_test.append(self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.errors_of_test.append(self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.errors_of_test.append(f"{subtest.id()}\n{self._exc_info_to_string(err, test)}")


def bind_case(base, report, user, mode, options, texts):
    """A test case of test_escape.py whose runs have further options, with one more test: the attempts."""

    class Bound(base):
        last_output = None

        def new_output(self):
            self.last_output = super().new_output()
            return self.last_output

        def command_line(self, args, output):
            return super().command_line([*[o for o in options if o not in args], *args], output)

        def manifest(self):
            try:
                with open(os.path.join(self.last_output, "manifest.json"), encoding="utf-8") as f:
                    return json.load(f)
            except (OSError, ValueError):
                return {}

        def try_attempt(self, text, before):
            """(word, detail) of one run."""
            try:
                word, said, _ = self.attempt(text)
            except AssertionError as error:
                manifest = self.manifest()
                refused = manifest.get("reason") == "unavailable" and "sandbox" in (manifest.get("error") or "")
                return ("refused", manifest["error"]) if refused else ("error", str(error))
            changed = before is not None and self.outside() != before
            if changed:
                return "escaped", f"the files outside have changed ({said})"
            if before is not None and word == "escaped" and text.split()[0] in ("write", "remove"):
                word = "held"  # in a private copy: the comparison is the judge
            return word, said

        def attempts(self):
            for text in texts:
                before = None if mode == "off" else self.outside()
                word, detail = self.try_attempt(text, before)
                enforced = (self.manifest().get("sandbox") or {}).get("enforced") or []
                report.emit(user=user, mode=mode, attempt=text, word=word, detail=detail, enforced=enforced)

    Bound.__name__ = base.__name__
    return Bound


def doctor(report, user, uid):
    """What `cinch doctor` reports; returns the lost guarantees without which it says that no run starts."""
    line = [os.environ["CINCH"], "doctor", "--format", "json"]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, user=uid, group=uid,
                          extra_groups=[] if uid else None, env={"PATH": os.environ["PATH"], "HOME": "/tmp"})
    try:
        checks = json.loads(done.stdout)["checks"]
    except (ValueError, KeyError):
        report.emit(fault=f"cinch doctor as {user}: {done.stderr.decode(errors='replace')}")
        return []
    report.emit(doctor=user, checks=checks)
    return [c["check"].split(": ")[1] for c in checks if c["check"].startswith("sandbox: ") and c["state"] == "fail"]


def run_others(report, bound, verdicts, lost):
    """The tests of test_escape.py that are no attempts."""
    own = ("test_every_attempt_is_held", "test_attempts_succeed_without_a_sandbox")
    for name in unittest.TestLoader().getTestCaseNames(bound):
        if name in own:
            continue
        if lost:
            report.emit(user=verdicts.user, mode=verdicts.mode, test=name, error=None,
                        skipped=f"nothing is promised without {', '.join(lost)}")
        else:
            bound(name).run(verdicts)


def run_suite(report, config):
    sys.path.insert(0, os.path.join(CINCH_ROOT, "tests", "integration"))
    import test_escape

    skip = config["skip"]
    inside = [text for text, _ in test_escape.ATTEMPTS if text.split()[0] not in skip]
    outside = [text for text, gets_out in test_escape.ATTEMPTS
               if gets_out is True and text.split()[0] not in (*test_escape.NOT_OUTSIDE, *skip)]
    for user, uid, base in (("root", None, test_escape.AsRoot), ("user", 65534, test_escape.AsUser)):
        refused = doctor(report, user, uid)
        no_sandbox = [g for g in refused if g in ("files", "identity", "processes")]
        passes = [("default", config["options"], inside)]
        if refused:
            # Without any sandbox there is nothing to hold an attempt; one shows what the manifest says about it.
            passes.append(("degraded", ["--allow-degraded"], inside[:1] if no_sandbox else inside))
        if user == "root":
            passes.append(("off", ["--sandbox", "off", "--workspace-mode", "in-place"], outside))
        for mode, options, texts in passes:
            bound = bind_case(base, report, user, mode, options, texts)
            verdicts = Verdicts(report, user, mode)
            bound("attempts").run(verdicts)
            if mode == ("degraded" if refused else "default"):
                run_others(report, bound, verdicts, no_sandbox)


# --- bounds of memory ----------------------------------------------------------------------------

GROUPS = "/sys/fs/cgroup"
# Starts a program in a group, as a user.
ENTER = """
import os, sys
group, uid, line = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
with open(group + "/cgroup.procs", "w") as f:
    f.write(str(os.getpid()))
if uid:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
os.execv(line[0], line)
"""
EAT = "x = b'x' * (int(__import__('sys').argv[1]) << 20); print(len(x))"


class Memory(unittest.TestCase):
    """Limits of memory in a delegated group of version 2, which machines with other versions cannot show."""

    uid = 0

    def setUp(self):
        self.slice = os.path.join(GROUPS, f"bounds-{self.uid}.slice")
        leaf = os.path.join(self.slice, "session.scope")
        os.makedirs(self.slice, exist_ok=True)
        with open(os.path.join(self.slice, "cgroup.subtree_control"), "w", encoding="ascii") as f:
            f.write("+memory +pids +cpu")
        os.makedirs(leaf, exist_ok=True)
        for path in (self.slice, leaf):  # as systemd delegates it
            os.setxattr(path, "trusted.delegate", b"1")
            for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
                os.chown(os.path.join(path, name), self.uid, self.uid)
        self.leaf = leaf
        self.dir = f"/tmp/bounds-{self.uid}-{self._testMethodName}"
        for path in (self.dir, self.dir + "/ws"):
            os.mkdir(path)
            os.chown(path, self.uid, self.uid)

    def line(self, *args):
        return [PYTHON, "-c", ENTER, self.leaf, str(self.uid), os.environ["CINCH"], "run", "--workspace", self.dir + "/ws",
                "--output", self.dir + "/out", *args]

    def manifest(self):
        with open(self.dir + "/out/manifest.json", encoding="utf-8") as f:
            manifest = json.load(f)
        if manifest["reason"] == "unavailable":
            self.skipTest(manifest["error"])
        return manifest

    def bounds(self):
        """memory.max of the groups that cinch has made."""
        found = []
        for base, dirs, files in os.walk(self.slice):
            if base not in (self.slice, self.leaf) and "memory.max" in files:
                with open(os.path.join(base, "memory.max"), encoding="ascii") as f:
                    found.append(f.read().strip())
        return found

    def test_the_default_memory_bound(self):
        """Three quarters of the machine's memory, and the group is gone after the run."""
        process = subprocess.Popen(self.line("--", "/bin/sh", "-c", "echo ready; sleep 20"), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen = []
        while process.poll() is None and not seen:
            seen = [x for x in self.bounds() if x != "max"]
            time.sleep(0.05)
        process.wait()
        manifest = self.manifest()
        page = os.sysconf("SC_PAGE_SIZE")
        want = os.sysconf("SC_PHYS_PAGES") * page // 4 * 3 // page * page
        self.assertEqual(seen, [str(want)])
        self.assertIn("memory", manifest["sandbox"]["enforced"])
        self.assertEqual((manifest["reason"], self.bounds()), ("success", []))

    def test_a_memory_limit(self):
        subprocess.run(self.line("--memory", "64M", "--", PYTHON, "-c", EAT, "200"), stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=600)
        manifest = self.manifest()
        self.assertEqual(manifest["reason"], "failure", manifest)
        self.assertIn("out of memory (1 killed, limit 64 MiB)", manifest["error"])
        self.assertIn("memory", manifest["sandbox"]["enforced"])
        shutil.rmtree(self.dir + "/out")
        subprocess.run(self.line("--memory", "64M", "--", PYTHON, "-c", EAT, "8"), stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=600)
        self.assertEqual(self.manifest()["reason"], "success")


class MemoryOfAUser(Memory):
    uid = 65534


def run_memory(report):
    for user, case in (("root", Memory), ("user", MemoryOfAUser)):
        verdicts = Verdicts(report, user, "default")
        for name in unittest.TestLoader().getTestCaseNames(case):
            case(name).run(verdicts)


def run_child(results, config):
    """The suite in a process of its own; what it writes besides its results goes to the console."""
    enter_cgroup()
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LC_ALL="C.UTF-8",
                      CINCH_BUILD=os.path.join(CINCH_ROOT, "build"),
                      CINCH=os.path.join(CINCH_ROOT, "build", "src", "cli", "cinch"))
    report = Report(results)
    try:
        run_memory(report)
        if not config["only_memory"]:
            run_suite(report, config)
        report.emit(done=True)
    except BaseException:  # whatever it was: the host has to hear of it
        report.emit(fault=traceback.format_exc())


def main():
    try:
        config, refused = boot()
        with open(RESULTS, "wb", buffering=0) as results:
            Report(results).emit(kernel=os.uname().release, modules_refused=refused)
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                run_child(results, config)
                os._exit(0)
            pid = code = 0
            while pid != child:  # the first process also reaps what others left
                pid, code = os.wait()
            Report(results).emit(exit_status=code)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os.sync()
    libc.reboot(RB_AUTOBOOT)


if __name__ == "__main__":
    if os.getpid() != 1:
        sys.exit("guest.py: this is the first process of a virtual machine; see scripts/escape-kernels")
    main()
