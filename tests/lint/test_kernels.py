#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""scripts/escape-kernels tells the truth: what gets out, contradicts doctor or breaks off is a failure, and what
cannot be had is skipped with the reason."""

import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "escape-kernels")
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True

loader = importlib.machinery.SourceFileLoader("escape_kernels", SCRIPT)
kernels = importlib.util.module_from_spec(importlib.util.spec_from_loader("escape_kernels", loader))
loader.exec_module(kernels)

ALL = ["files", "identity", "processes", "network", "ipc", "system_calls", "landlock", "pids"]
DONE = [{"done": True}]


def attempt(word, mode="default", text="read /etc/shadow root", enforced=()):
    return {"user": "root", "mode": mode, "attempt": text, "word": word, "detail": "why", "enforced": list(enforced)}


def doctor(*lost):
    checks = [{"check": f"sandbox: {g}", "state": "fail" if g in lost else "ok", "detail": "d"} for g in ALL]
    checks.append({"check": "landlock", "state": "fail", "detail": "no guarantee, so it says nothing about runs"})
    return {"doctor": "root", "checks": checks}


class Judged(unittest.TestCase):
    def statuses(self, *entries, console="", why="", done=True):
        judge = kernels.Judge("5.10")
        judge.finish([*entries, *(DONE if done else [])], console, why)
        return [case.status for case in judge.cases if case.name not in kernels.SKIP]

    def test_held_is_passed(self):
        self.assertEqual(self.statuses(doctor(), attempt("held", enforced=ALL)), ["passed"])

    def test_escape_fails_whatever_is_lost(self):
        self.assertEqual(self.statuses(doctor(), attempt("escaped")), ["failed"])
        self.assertEqual(self.statuses(doctor("files"), attempt("escaped")), ["failed"])

    def test_refused_run_needs_a_doctor_that_agrees(self):
        self.assertEqual(self.statuses(doctor("landlock"), attempt("refused")), ["passed"])
        self.assertEqual(self.statuses(doctor(), attempt("refused")), ["failed"])

    def test_run_that_doctor_says_is_refused(self):
        self.assertEqual(self.statuses(doctor("landlock"), attempt("held", enforced=ALL)), ["failed"])

    def test_no_doctor_at_all(self):
        self.assertEqual(self.statuses(attempt("refused")), ["failed"])

    def test_degraded_run(self):
        """What is enforced must hold; what is lost is not judged; what is lost must not be claimed."""
        left = [g for g in ALL if g != "landlock"]
        self.assertEqual(self.statuses(doctor("landlock"), attempt("held", "degraded", enforced=left)), ["passed"])
        self.assertEqual(self.statuses(doctor("landlock"), attempt("escaped", "degraded", enforced=left)), ["failed"])
        self.assertEqual(self.statuses(doctor("landlock"), attempt("held", "degraded", enforced=ALL)), ["failed"])
        self.assertEqual(self.statuses(doctor("files"), attempt("escaped", "degraded")), ["skipped"])
        self.assertEqual(self.statuses(doctor("landlock"), attempt("refused", "degraded", enforced=left)), ["failed"])
        self.assertEqual(self.statuses(doctor("files"), attempt("error", "degraded")), ["failed"])

    def test_attempt_that_proves_nothing(self):
        self.assertEqual(self.statuses(doctor(), attempt("escaped", "off")), ["passed"])
        self.assertEqual(self.statuses(doctor(), attempt("held", "off")), ["failed"])

    def test_other_tests(self):
        entry = {"user": "root", "mode": "default", "test": "test_x", "error": None, "skipped": None}
        self.assertEqual(self.statuses(entry), ["passed"])
        self.assertEqual(self.statuses({**entry, "error": "no"}), ["failed"])
        self.assertEqual(self.statuses({**entry, "skipped": "why"}), ["skipped"])

    def test_guest_that_breaks_off(self):
        self.assertEqual(self.statuses(done=False), ["failed"])
        self.assertEqual(self.statuses(why="not done after 1 s"), ["failed"])
        self.assertEqual(self.statuses({"fault": "Traceback"}), ["failed"])

    def test_kernel_that_complains(self):
        complaint = "[   9.0] BUG: kernel NULL pointer dereference\n"
        self.assertEqual(self.statuses(console=complaint + kernels.MARKER), [])
        self.assertEqual(self.statuses(console=kernels.MARKER + complaint), ["failed"])

    def test_every_attempt_has_guarantees(self):
        """A new attempt that no guarantee is named for counts as one of system calls: those that are."""
        calls = {"userns", "userns_clone", "userns_clone3", "fsopen", "io_uring", "keyring", "bpf", "perf",
                 "userfaultfd", "i386", "x32", "family", "disk"}
        with open(os.path.join(ROOT, "tests", "integration", "test_escape.py"), encoding="utf-8") as f:
            table = f.read().partition("ATTEMPTS = [")[2].partition("]")[0]
        names = {line.split('("')[1].split()[0].split('"')[0] for line in table.split("\n") if '("' in line}
        self.assertGreater(len(names), 30)
        self.assertEqual(names - calls - set(kernels.HELD_BY), set())


class Parts(unittest.TestCase):
    def test_modules_come_after_what_they_need(self):
        with tempfile.TemporaryDirectory() as folder:
            needs = {"virtio_pci": "virtio-ring", "virtio-ring": "", "virtio_blk": "", "crc32c_generic": "",
                     "ext4": "jbd2", "jbd2": "", "overlay": "", "unrelated": ""}
            for name, depends in needs.items():
                with open(os.path.join(folder, name + ".ko"), "wb") as f:
                    f.write(b"\0license=GPL\0depends=" + depends.encode() + b"\0")
            found = kernels.ordered_modules(folder, kernels.ESSENTIAL + kernels.REACHABLE)
            names = [os.path.basename(path) for path in found]
            self.assertLess(names.index("virtio-ring.ko"), names.index("virtio_pci.ko"))
            self.assertLess(names.index("jbd2.ko"), names.index("ext4.ko"))
            self.assertNotIn("unrelated.ko", names)
            os.unlink(os.path.join(folder, "ext4.ko"))
            with self.assertRaises(kernels.Unavailable):
                kernels.ordered_modules(folder, kernels.ESSENTIAL)

    def test_initramfs(self):
        """Parents come first, each path once, and everything is aligned as the kernel wants it."""
        out = io.BytesIO()
        archive = kernels.Initramfs(out)
        archive.text("/etc/hosts", "abc")
        archive.text("/etc/hosts", "again")
        archive.text("/etc/passwd", "", 0o600)
        archive.close()
        data, at, names = out.getvalue(), 0, []
        while at < len(data):
            self.assertEqual((at % 4, data[at : at + 6]), (0, b"070701"))
            field = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
            names.append((data[at + 110 : at + 110 + field[11] - 1].decode(), field[1]))
            at += (110 + field[11] + 3) // 4 * 4
            at += (field[6] + 3) // 4 * 4
        self.assertEqual(names, [("etc", 0o40755), ("etc/hosts", 0o100644), ("etc/passwd", 0o100600),
                                 ("TRAILER!!!", 0)])

    def test_without_qemu_it_is_skipped(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, SCRIPT, "--build", folder], env={"PATH": folder, "HOME": folder},
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("qemu-system-x86_64 is not installed; run: scripts/setup kernels", done.stdout)
        self.assertIn(f"0 passed, 0 failed, {len(kernels.KERNELS)} skipped", done.stdout)


if __name__ == "__main__":
    unittest.main()
