#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The helper program cinch-init: neither the agent nor an upgrade of cinch during a run takes it away."""

import os
import shutil
import subprocess
import unittest

import harness
from test_sandbox import Box

ROOT = os.geteuid() == 0


class FirstProcess(Box):
    """Process 1 of the agent's namespace is cinch-init, which has the agent's user."""

    def test_its_limits_and_priorities_are_not_the_agents(self):
        commands = ("prlimit --pid 1 --nofile=0:0", "prlimit --pid 1 --nproc=0:0", "prlimit --pid 1 --stack=1:1",
                    "prlimit --pid 1 --cpu=1:1", "renice -n 19 -p 1", "renice -n 19 -u $(id -u)", "taskset -p 1 1",
                    "chrt --idle -p 0 1", "ionice -c 3 -p 1")
        r = self.sh("\n".join(f"{c} && echo 'done: {c}'" for c in commands) + "\nsleep 0.3; exit 7")
        self.assertEqual((r.code, r.reason), (1, "failure"), r.stderr)
        self.assertIn("the agent exited with 7", r.manifest["error"])
        self.assertNotIn(b"done: ", r.bytes("stdout.log"))

    def test_its_limits_can_be_read_and_those_of_others_set(self):
        r = self.sh("prlimit --pid 1 --nofile >/dev/null && sleep 60 & p=$!; sleep 0.1; prlimit --pid $p --nofile=50:50 && "
                    "prlimit --pid $$ --nofile=60:60 && renice -n 5 -p $p && kill $p && ulimit -n")
        self.assertEqual(r.reason, "success", r.bytes("stderr.log"))
        self.assertTrue(r.bytes("stdout.log").endswith(b"\n60\n"), r.bytes("stdout.log"))


@unittest.skipUnless(ROOT, "needs root to become another user")
class OrdinaryUserFirstProcess(FirstProcess):
    uid = 65534


class Replaced(Box):
    """An upgrade puts another program in its place, or none, while a run is going on."""

    def setUp(self):
        super().setUp()
        self.bin = self.give(self.make_dir("bin"))
        for path in (self.cinch_path, self.env.pop("CINCH_INIT")):
            shutil.copy(path, self.bin)
        self.helper = os.path.join(self.bin, "cinch-init")

    def run_and(self, change, *options):
        self.put("ws/old", "old\n")
        signs = self.give(self.make_dir("signs"))
        output = self.new_output()
        line = [os.path.join(self.bin, "cinch"), "run", "--env", "CINCH_TEST_MARK", "--workspace", self.workspace, "--read", signs,
                "--output", output, *options, "--", "sh", "-c",
                f"echo ready; while [ ! -e {signs}/go ]; do sleep 0.02; done; echo new > new; rm old"]
        process = subprocess.Popen(line, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, user=self.uid, group=self.uid, extra_groups=[] if ROOT else None)
        self.addCleanup(self.reap, process)
        r = harness.Result(None, b"", b"", output)
        harness.wait_until(lambda: process.poll() is not None or (r.exists("stdout.log") and r.bytes("stdout.log")), "the agent")
        change()
        self.write("signs/go", "")
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (0, "success"), r.stderr)
        patch = r.bytes("diff.patch").decode()
        self.assertIn("+new", patch)
        self.assertIn("-old", patch)

    def replace(self):
        self.write("bin/another", "#!/bin/sh\nexit 9\n", 0o755)
        os.rename(self.path("bin", "another"), self.helper)

    def test_replaced(self):
        self.run_and(self.replace)

    def test_removed(self):
        self.run_and(lambda: os.unlink(self.helper))

    def test_removed_without_a_sandbox(self):
        self.run_and(lambda: os.unlink(self.helper), "--sandbox", "off")

    def test_missing_from_the_start(self):
        os.unlink(self.helper)
        done = subprocess.run([os.path.join(self.bin, "cinch"), "run", "-w", self.workspace, "-o", self.new_output(), "--", "true"],
                              env=self.env, capture_output=True, timeout=60, user=self.uid, group=self.uid)
        if done.returncode == 0:
            self.skipTest("cinch is installed on this machine")
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn(b"cinch-init is neither near", done.stdout + done.stderr)


@unittest.skipUnless(ROOT, "needs root to become another user")
class OrdinaryUserReplaced(Replaced):
    uid = 65534


if __name__ == "__main__":
    harness.main()
