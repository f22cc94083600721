# SPDX-License-Identifier: MIT
"""What the integration tests share: the real program, fresh directories, and the checks that hold after
every run: the record is valid, and nothing is left behind.

    class Test(harness.Case):
        def test_x(self):
            r = self.run_command("sh", "-c", "echo hi")
            self.assertEqual(r.reason, "success")
"""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CINCH_BUILD", os.path.join(ROOT, "build"))
CINCH = os.environ.get("CINCH", os.path.join(BUILD, "src", "cli", "cinch"))
PROGRAMS = os.path.join(BUILD, "tests", "programs")
SANITIZED = os.environ.get("CINCH_SANITIZED") == "1"
# For classes about what a real program makes of what it is told; how it is told is code that other tests try sanitized.
about_programs = unittest.skipIf(SANITIZED, "it is about the real program, which is the same in the plain build")
# Nothing here waits this long unless something hangs.
PATIENCE = 120

sys.path.insert(0, os.path.join(ROOT, "tests", "schema"))


def program(name):
    """A test program of tests/programs."""
    return os.path.join(PROGRAMS, name)


def init():
    """The helper of the build under test."""
    return os.path.join(BUILD, "src", "init", "cinch-init")


@functools.lru_cache(maxsize=None)
def real(name):
    """(path of a real agent program, reason why there is none); installs it into the cache if need be."""
    done = subprocess.run([os.path.join(ROOT, "scripts", "harness"), name], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=1800)
    fields = done.stdout.rstrip("\n").split("\t")
    if done.returncode != 0 or len(fields) < 2:
        return None, done.stderr.strip() or "scripts/harness said nothing"
    return (fields[1], "") if fields[1] != "-" else (None, fields[2])


def marked(mark):
    """Processes (not zombies) whose environment holds the mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def wait_until(condition, what, patience=PATIENCE):
    """Polls for an event that has no descriptor to wait on."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.01)


class Result:
    """What one call of cinch gave, and the record it left."""

    def __init__(self, returncode, stdout, stderr, output):
        self.code = returncode
        self.stdout = stdout
        self.stderr = stderr
        self.output = output

    def path(self, *names):
        return os.path.join(self.output, *names)

    def exists(self, *names):
        return os.path.lexists(self.path(*names))

    def bytes(self, *names):
        with open(self.path(*names), "rb") as f:
            return f.read()

    def json(self, *names):
        return json.loads(self.bytes(*names))

    def lines(self, *names):
        return [json.loads(line) for line in self.bytes(*names).splitlines()]

    @property
    def manifest(self):
        return self.json("manifest.json")

    @property
    def metrics(self):
        return self.json("metrics.json")

    @property
    def result(self):
        return self.json("result.json")

    @property
    def state(self):
        return self.json("state.json")

    @property
    def reason(self):
        return self.manifest["reason"]

    def events(self, name=None):
        found = self.lines("events.jsonl")
        return found if name is None else [e for e in found if e["event"] == name]


class Case(unittest.TestCase):
    """A directory of its own, cleaned up; no process of the test may outlive it."""

    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="cinch-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.workspace = self.make_dir("ws")
        self.mark = "CINCH_TEST_MARK=" + uuid.uuid4().hex
        self.env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.make_dir("userhome"),
            "CINCH_SITE_DIR": os.path.join(self.dir, "no-site"),
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
            "CINCH_TEST_MARK": self.mark.split("=")[1],
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "LANG", "LC_ALL"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.outputs = 0
        self.addCleanup(self.check_nothing_left)

    def check_nothing_left(self):
        """Runs after the test itself; gives a dying process a moment, then names what is left."""
        deadline = time.monotonic() + 10
        while marked(self.mark) and time.monotonic() < deadline:
            time.sleep(0.02)
        left = marked(self.mark)
        names = []
        for pid in left:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    names.append(f.read().replace(b"\0", b" ").decode(errors="replace"))
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        self.assertEqual(names, [], "processes outlived the test")

    def real(self, name):
        """The path of a real agent program; the test is skipped where it cannot be had."""
        # What they make our side do is done by the test programs too, in a fraction of the time.
        if SANITIZED:
            self.skipTest("real agent programs are run with the plain build")
        path, why = real(name)
        if path is None:
            self.skipTest(f"{name} cannot be installed: {why}")
        return path

    # --- files ---

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def make_dir(self, *names):
        path = self.path(*names)
        os.makedirs(path, exist_ok=True)
        return path

    def write(self, name, content, mode=None):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode()
        with open(path, "wb") as f:
            f.write(data)
        if mode is not None:
            os.chmod(path, mode)
        return path

    def script(self, name, text):
        return self.write(name, "#!/bin/sh\n" + text, 0o755)

    # --- running ---

    def new_output(self):
        self.outputs += 1
        return self.path(f"out{self.outputs}")

    def command_line(self, args, output):
        args = list(args)
        options = ["--env", "CINCH_TEST_MARK", "--workspace", self.workspace, "--output", output]
        return [CINCH, "run"] + options + args

    def cinch(self, *args, env=None, cwd=None, stdin=None, timeout=PATIENCE):
        """Any cinch command."""
        done = subprocess.run([CINCH, *args], env={**self.env, **(env or {})}, cwd=cwd or self.dir,
                              stdin=subprocess.DEVNULL if stdin is None else None, input=stdin,
                              capture_output=True, timeout=timeout)
        return Result(done.returncode, done.stdout, done.stderr, None)

    def run_cinch(self, *args, env=None, output=None, cwd=None, stdin=None, valid=True,
                  timeout=PATIENCE):
        """cinch run with a fresh output directory; the record is checked against the schemas."""
        output = output or self.new_output()
        line = self.command_line(args, output)
        done = subprocess.run(line, env={**self.env, **(env or {})}, cwd=cwd or self.dir,
                              stdin=subprocess.DEVNULL if stdin is None else None, input=stdin,
                              capture_output=True, timeout=timeout)
        result = Result(done.returncode, done.stdout, done.stderr, output)
        if valid:
            self.assert_valid(result)
        return result

    def run_command(self, *command, options=(), **kw):
        """cinch run … -- command."""
        return self.run_cinch(*options, "--", *command, **kw)

    def start(self, *args, env=None, output=None, **kw):
        """cinch run in the background: (process, result to be read later)."""
        output = output or self.new_output()
        line = self.command_line(args, output)
        process = subprocess.Popen(line, env={**self.env, **(env or {})}, cwd=self.dir,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **kw)
        self.addCleanup(self.reap, process)
        return process, Result(None, b"", b"", output)

    def reap(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def finish(self, process, result, valid=True):
        """Waits for a started run and completes its result."""
        result.stdout, result.stderr = process.communicate(timeout=PATIENCE)
        result.code = process.returncode
        if valid:
            self.assert_valid(result)
        return result

    # --- checks ---

    def assert_valid(self, result):
        """Every file of the record agrees with its schema; a foreign validator says so."""
        self.assertTrue(os.path.isdir(result.output),
                        f"no record at all; cinch said: {result.stderr.decode(errors='replace')}")
        done = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema", "validate.py"),
                               result.output], capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode == 77:
            self.skipTest("python3-jsonschema is not installed")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr +
                         result.stderr.decode(errors="replace"))
        self.assert_transcript(result)

    def assert_transcript(self, result, *options):
        """The transcript keeps its promises. Without options all but the order of calls, which some tests have
        their programs break."""
        checks = options or [f"--check={name}" for name in
                             ("envelope", "canonical_types", "sequence", "adapter_label", "bracketing", "bundle")]
        done = subprocess.run([CINCH, "transcript", "check", *checks, result.output], env=self.env,
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def assert_not_in_tree(self, needle, directory):
        """The bytes appear in no file below the directory, nor in a file's name."""
        for base, dirs, files in os.walk(directory):
            for name in dirs + files:
                self.assertNotIn(needle, os.fsencode(name))
            for name in files:
                with open(os.path.join(base, name), "rb") as f:
                    self.assertNotIn(needle, f.read(), os.path.join(base, name))

    def assert_failed(self, result, code, *words):
        """The exit code, and one message on one line that has all the words."""
        text = result.stderr.decode(errors="replace")
        self.assertEqual(result.code, code, text)
        for word in words:
            self.assertIn(word, text + result.stdout.decode(errors="replace"))


def main():
    unittest.main(verbosity=2)
