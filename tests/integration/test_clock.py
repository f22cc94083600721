#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A wall clock that is set while a run is going on: durations are right, the order of the record stays, and our own
checks accept it."""

import os
import shutil
import subprocess
import unittest

import harness

SHIFT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real(id, ts);
    const char *path = getenv("CLOCK_SHIFT");
    int fd = id == CLOCK_REALTIME && path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        char text[32] = "";
        (void)!read(fd, text, sizeof text - 1);
        (void)close(fd);
        ts->tv_sec += strtoll(text, NULL, 10);
    }
    return rc;
}
"""
DAY = 86400
YEAR = 365 * DAY


@unittest.skipIf(harness.SANITIZED, "a preloaded library has to come before the sanitizer's")
@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class Set(harness.Case):
    def setUp(self):
        super().setUp()
        source = self.write("shift.c", SHIFT)
        library = self.path("shift.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=60)
        self.file = self.write("seconds", "0")
        self.shifted = {"LD_PRELOAD": library, "CLOCK_SHIFT": self.file}
        self.go = self.make_dir("signs")

    def set(self, seconds):
        self.write("seconds", str(seconds))

    def begin(self):
        process, r = self.start("--read", self.go, "--", "sh", "-c",
                                f"echo ready; while [ ! -e {self.go}/go ]; do sleep 0.02; done; echo done", env=self.shifted)
        harness.wait_until(lambda: r.exists("stdout.log") and r.bytes("stdout.log"), "the agent")
        return process, r

    def check(self, r):
        done = self.cinch("transcript", "check", r.output)
        self.assertEqual(done.code, 0, done.stdout + done.stderr)
        times = [line["timestamp"] for line in r.events()]
        self.assertEqual(times, sorted(times))
        self.assertLess(r.metrics["ext"]["duration_ms"], 60000) if "duration_ms" in r.metrics["ext"] else None

    def test_during_the_run(self):
        for seconds in (DAY, -DAY, -20 * YEAR, -80 * YEAR, 80 * YEAR):
            with self.subTest(seconds=seconds):
                self.set(0)
                if os.path.exists(self.path("signs", "go")):
                    os.unlink(self.path("signs", "go"))
                process, r = self.begin()
                self.set(seconds)
                self.write("signs/go", "")
                self.finish(process, r)
                self.assertEqual(r.reason, "success", r.stderr)
                self.check(r)

    def test_before_1970_from_the_start(self):
        self.set(-80 * YEAR)
        r = self.run_command("echo", "hi", env=self.shifted)
        self.assertEqual(r.reason, "success", r.stderr)
        self.check(r)

    def test_before_a_recovery(self):
        process, r = self.begin()
        process.kill()
        process.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the end of everything", 10)
        self.set(-DAY)
        done = self.cinch("recover", r.output, env=self.shifted)
        self.assertEqual(done.code, 0, done.stderr)
        self.assert_valid(r)
        self.check(r)


if __name__ == "__main__":
    harness.main()
