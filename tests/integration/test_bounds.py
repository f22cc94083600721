#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a run may use up: disk space and memory. A bound that is reached is named as the cause, and so is a disk that is
full."""

import os
import subprocess
import unittest

import harness
from test_sandbox import Box

ROOT = os.geteuid() == 0
MIB = 1 << 20


class Disk(Box):
    def assert_ended(self, r, *words):
        self.assertEqual((r.code, r.reason), (1, "disk"), r.stderr)
        for word in words:
            self.assertIn(word, r.manifest["error"])
        self.assertEqual(r.state["reason"], "disk")
        self.assertEqual(r.metrics["ext"]["reason"], "disk")

    def test_beyond_the_limit_the_run_ends(self):
        for where in (".", "$HOME", "$CINCH_OUTPUT_DIR/artifacts"):
            with self.subTest(where=where):
                r = self.sh(f'head -c 40M /dev/zero > "{where}/big"; exec sleep 1000', "--disk", "10M")
                self.assert_ended(r, "may use 10.0 MiB", "sandbox.disk", r.output)

    def test_many_files_and_standard_output(self):
        r = self.sh("mkdir d; i=0; while [ $i -lt 3000 ]; do head -c 4000 /dev/zero > d/$i; i=$((i+1)); done; exec sleep 1000", "--disk", "5M")
        self.assert_ended(r, "may use 5.0 MiB")
        r = self.sh("head -c 30M /dev/zero; exec sleep 1000", "--disk", "10M", "--sandbox", "off")
        self.assert_ended(r, "may use 10.0 MiB")

    def test_what_was_there_does_not_count(self):
        self.put("ws/large", b"x" * (30 * MIB))
        for mode in ("overlay", "copy"):
            with self.subTest(mode=mode):
                r = self.sh("head -c 5M /dev/zero > more; sleep 1.5", "--disk", "10M", "--workspace-mode", mode)
                self.assertEqual(r.reason, "success", r.stderr)
                r = self.sh("head -c 20M /dev/zero > more; exec sleep 1000", "--disk", "10M", "--workspace-mode", mode)
                self.assert_ended(r, "may use 10.0 MiB")

    def test_space_that_others_free_does_not_hide_it(self):
        """The file system has more free space after the agent's 20 MiB than before."""
        self.put("ballast", b"x" * (60 * MIB))
        r = self.sh(f"rm {self.dir}/ballast; head -c 20M /dev/zero > more; exec sleep 1000", "--disk", "10M",
                    "--workspace-mode", "copy", "--sandbox", "off")
        self.assert_ended(r, "may use 10.0 MiB")

    def test_in_place_is_named_as_not_limited(self):
        r = self.sh("true", "--disk", "10M", "--workspace-mode", "in-place")
        self.assertEqual(r.reason, "success")
        self.assertTrue(any("sandbox.disk does not limit" in w for w in r.manifest["warnings"]), r.manifest["warnings"])

    def test_a_wrong_size(self):
        r = self.sh("true", "--disk", "lots", valid=False)
        self.assertEqual(r.code, 65, r.stderr)
        self.assertIn(b"disk", r.stderr)

    # --- small file systems ---

    def run_small(self, size, text, *options):
        """A run whose record is on a tmpfs of its own, which goes with its mount namespace; the record is copied out."""
        mount = self.make_dir("small")
        output = self.new_output()
        argv = [self.cinch_path, "run", "--env", "CINCH_TEST_MARK", "--workspace", self.workspace, "--output",
                os.path.join(mount, "o"), *options, "--", "sh", "-c", text]
        script = (f'mount -t tmpfs -o size={size},mode=777 tmpfs "$0" || exit 99; out=$1; uid=$2; shift 2; '
                  'setpriv --reuid=$uid --regid=$uid --clear-groups -- "$@"; code=$?; cp -a "$0/o" "$out"; exit $code')
        done = subprocess.run(["unshare", "-m", "bash", "-c", script, mount, output, str(self.uid), *argv], env=self.env,
                              cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.PATIENCE)
        if done.returncode == 99:
            self.skipTest("no tmpfs can be mounted here")
        return harness.Result(done.returncode, done.stdout, done.stderr, output)

    @unittest.skipUnless(ROOT, "needs root to mount a small file system")
    def test_half_of_the_free_space_is_the_default(self):
        r = self.run_small("40M", "head -c 30M /dev/zero > big; exec sleep 1000")
        self.assert_ended(r, "may use 19.", "sandbox.disk")
        self.assert_valid(r)

    @unittest.skipUnless(ROOT, "needs root to mount a small file system")
    def test_a_full_disk_is_the_cause(self):
        for name, text in (("agent", "head -c 20M /dev/zero > big"), ("output", "head -c 20M /dev/zero; exit 1"),
                           ("home", 'head -c 20M /dev/zero > "$HOME/x"; kill -9 $$')):
            with self.subTest(name=name):
                r = self.run_small("8M", text, "--disk", "1G")
                self.assert_ended(r, "is full: the agent", os.path.join(self.dir, "small", "o"))

    @unittest.skipUnless(ROOT, "needs root to mount a small file system")
    def test_no_room_for_the_patch(self):
        self.put("ws/gone", os.urandom(3 * MIB))
        r = self.run_small("4M", "rm gone; exit 0", "--disk", "1G")
        self.assert_ended(r, "is full: ")


@unittest.skipUnless(ROOT, "needs root to become another user")
class OrdinaryUserDisk(Disk):
    uid = 65534


EAT = "import sys, time; x = bytearray(int(sys.argv[1]) << 20); print(len(x), flush=True); time.sleep(float(sys.argv[2]))"


def eat(mib, seconds=0):
    return f"/usr/bin/python3 -c '{EAT}' {mib} {seconds}"


class Memory(Box):
    """With a control group, which root has here."""

    def limited(self, text, *options, memory="100M"):
        r = self.sh(text, "--memory", memory, *options)
        if r.code == 69:
            self.skipTest("no writable control group: " + r.manifest["error"])
        self.assertIn("memory", r.manifest["sandbox"]["enforced"])
        return r

    def warnings(self, r):
        return [w for w in r.manifest["warnings"] if "out of memory" in w]

    def test_an_agent_that_is_killed(self):
        r = self.limited("exec " + eat(300))
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("out of memory (1 killed, limit 100 MiB): the agent was killed by signal 9", r.manifest["error"])
        self.assertEqual(len(self.warnings(r)), 1)
        (event,) = r.events("process.oom")
        self.assertEqual(event["context"], {"count": 1, "limit_bytes": 100 * MIB})

    def test_a_child_is_killed_and_the_agent_succeeds(self):
        r = self.limited(f"{eat(300)}; {eat(300)}; {eat(10)}; exit 0")
        self.assertEqual((r.code, r.reason), (0, "success"))
        (text,) = self.warnings(r)
        self.assertIn("2 processes of the run were killed", text)
        self.assertIn("sandbox.memory", text)
        self.assertEqual(r.events("process.oom")[0]["context"]["count"], 2)

    def test_a_child_is_killed_and_the_agent_fails(self):
        r = self.limited(f"{eat(300)} || exit 3")
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("the agent exited with 3", r.manifest["error"])
        self.assertIn("out of memory", r.manifest["error"])

    def test_below_the_limit_nothing_is_said(self):
        r = self.limited(eat(20))
        self.assertEqual((r.code, r.reason), (0, "success"))
        self.assertEqual((self.warnings(r), r.events("process.oom")), ([], []))

    def test_reserved_memory_does_not_count(self):
        text = "import mmap; m = mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000); print(len(m))"
        r = self.limited(f"/usr/bin/python3 -c '{text}'")
        self.assertEqual((r.code, r.bytes("stdout.log")), (0, b"8589934592\n"), r.bytes("stderr.log"))

    def test_claude_code_starts(self):
        r = self.run_box([self.real("claude-code"), "--version"], "--memory", "300M")
        if r.code == 69:
            self.skipTest("no writable control group: " + r.manifest["error"])
        self.assertEqual(r.code, 0, r.bytes("stderr.log"))
        self.assertIn(b"Claude Code", r.bytes("stdout.log"))


class MemoryWithoutGroups(Box):
    """The memory in use is looked at, and what cannot be promised is named."""

    def test_without_a_sandbox(self):
        r = self.sh(eat(300, 1000), "--memory", "100M", "--sandbox", "off")
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("out of memory: the agent used", r.manifest["error"])
        self.assertIn("may use 100 MiB", r.manifest["error"])
        self.assertEqual(r.events("process.oom")[0]["context"], {"count": 0, "limit_bytes": 100 * MIB})
        self.assertIn("no control group limits the memory of the run", r.manifest["warnings"][0])

    def test_the_sum_of_a_tree(self):
        r = self.sh(f"{eat(40, 1000)} & {eat(40, 1000)} & {eat(40, 1000)} & wait", "--memory", "100M", "--sandbox", "off")
        self.assertIn("out of memory", r.manifest["error"])

    def test_below_the_limit(self):
        r = self.sh(eat(20, 0.5), "--memory", "200M", "--sandbox", "off")
        self.assertEqual((r.code, r.reason), (0, "success"))


@unittest.skipUnless(ROOT, "needs root to become another user")
class OrdinaryUserMemoryWithoutGroups(MemoryWithoutGroups):
    uid = 65534

    def test_in_a_sandbox(self):
        r = self.sh("true", "--memory", "100M")
        if r.code == 0:
            self.skipTest("this user has control groups")
        self.assertEqual((r.code, r.reason), (69, "unavailable"))
        self.assertIn("only checked ten times a second", r.manifest["error"])
        r = self.sh(eat(300, 1000), "--memory", "100M", "--allow-degraded")
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("out of memory: the agent used", r.manifest["error"])
        self.assertNotIn("memory", r.manifest["sandbox"]["enforced"])


if __name__ == "__main__":
    harness.main()
