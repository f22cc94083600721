#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the integration tests: each tests/integration/**/test_*.py in a process of its own.

  scripts/run_integration.py [--build DIR] [--jobs N] [--match TEXT] [FILE...]

The files hold unittest cases. Their environment has CINCH (the program), CINCH_BUILD (the build
directory), CINCH_SANITIZED=1 in a sanitizer build, and a TMPDIR of their own that is removed
afterwards. A file has 300 s, or FILE_TIMEOUT = <seconds> if it says so on a line of its own; then its whole
process tree is killed and what had not finished counts as failed.
"""

import argparse
import concurrent.futures
import faulthandler
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True

import cases as results  # noqa: E402
from cases import FAILED, PASSED, SKIPPED, Case  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESTS = os.path.join(ROOT, "tests", "integration")
DEFAULT_TIMEOUT = 300
# Half of the time they wait for something: two for each processor.
JOBS = 2 * (os.cpu_count() or 1)
OWN_TIMEOUT = re.compile(r"^FILE_TIMEOUT = (\d+)", re.MULTILINE)


# --- the child: one test file ------------------------------------------------------------------


class Recorder(unittest.TestResult):
    """Writes each verdict as one line of JSON at once, so that a killed file leaves what it knew."""

    def __init__(self, out):
        super().__init__()
        self.out = out
        self.started = 0.0
        self.verdicts = []

    def emit(self, **fields):
        self.out.write(json.dumps(fields) + "\n")
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()
        self.verdicts = []
        self.emit(started=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        seconds = time.monotonic() - self.started
        failed = [text for status, text in self.verdicts if status == FAILED]
        skipped = [text for status, text in self.verdicts if status == SKIPPED]
        if failed:
            self.emit(name=test.id(), status=FAILED, seconds=seconds, text="\n".join(failed))
        elif skipped:
            self.emit(name=test.id(), status=SKIPPED, seconds=seconds, text="; ".join(skipped))
        else:
            self.emit(name=test.id(), status=PASSED, seconds=seconds, text="")

    def note(self, test, status, text):
        # Fixtures of a class or module fail and skip outside of any test.
        if isinstance(test, unittest.suite._ErrorHolder):
            self.emit(name=test.id(), status=status, seconds=0.0, text=text)
        else:
            self.verdicts.append((status, text))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, FAILED, self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, FAILED, self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            text = (self.failures + self.errors)[-1][1]
            self.verdicts.append((FAILED, f"{subtest.id()}\n{text}"))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, SKIPPED, reason)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.verdicts.append((FAILED, "passed, but was expected to fail"))


def run_child(path, report, match, timeout):
    """In the process of one file: run its cases, write the verdicts to report."""
    faulthandler.enable()
    # Shows where it hangs, just before the parent loses patience.
    faulthandler.dump_traceback_later(max(1, timeout - 2), exit=False)
    sys.path[:0] = [os.path.dirname(path), TESTS]
    name = os.path.splitext(os.path.basename(path))[0]
    with open(report, "w", encoding="utf-8") as out:
        recorder = Recorder(out)
        try:
            spec = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
        except unittest.SkipTest as reason:
            recorder.emit(name=name, status=SKIPPED, seconds=0.0, text=str(reason))
            recorder.emit(done=True)
            return 0
        loader = unittest.TestLoader()
        if match:
            loader.testNamePatterns = [f"*{match}*"]
        loader.loadTestsFromModule(module).run(recorder)
        recorder.emit(done=True)
    return 0 if recorder.wasSuccessful() else 1


# --- the parent --------------------------------------------------------------------------------


def descendants(pid):
    """Processes below pid, found by parent; those in sessions of their own too."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
        except (OSError, ValueError, IndexError):
            continue  # gone meanwhile
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def kill_tree(process):
    for pid in [*descendants(process.pid), process.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def read_report(suite, stem, report):
    """(cases, tests that started without a verdict, file came to its end)"""
    found, open_tests, done = [], [], False
    if os.path.exists(report):
        with open(report, encoding="utf-8") as f:
            for line in f:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # cut off by the kill
                if "started" in entry:
                    open_tests.append(entry["started"])
                elif "done" in entry:
                    done = True
                else:
                    if entry["name"] in open_tests:
                        open_tests.remove(entry["name"])
                    name = entry["name"] if entry["name"].startswith(stem) else f"{stem}: {entry['name']}"
                    found.append(Case(suite, name, entry["status"], entry["seconds"], entry["text"]))
    return found, open_tests, done


def timeout_of(path):
    with open(path, encoding="utf-8") as f:
        own = OWN_TIMEOUT.search(f.read())
    return int(own.group(1)) if own else DEFAULT_TIMEOUT


def run_file(path, suite, env, logs, match=None):
    """Runs one file, gives its cases."""
    timeout = timeout_of(path)
    stem = os.path.splitext(os.path.basename(path))[0]
    log = os.path.join(logs, f"{suite}-{stem}.log".replace(" ", "-"))
    report = log + ".jsonl"
    if os.path.exists(report):
        os.unlink(report)
    scratch = tempfile.mkdtemp(prefix=f"cinch-{stem}-")
    os.chmod(scratch, 0o711)  # some tests become another user
    command = [sys.executable, "-B", os.path.abspath(__file__), "--child", path, "--report", report]
    command += ["--timeout", str(timeout)] + (["--match", match] if match else [])
    why = ""
    try:
        with open(log, "wb") as out:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**env, "TMPDIR": scratch, "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                why = f"not done after {timeout} s, killed"
                kill_tree(process)
                process.wait()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    found, open_tests, done = read_report(suite, stem, report)
    with open(log, encoding="utf-8", errors="replace") as f:
        output = results.tail(f.read(), 60)
    if not done:
        why = why or f"the test process ended early, exit status {process.returncode}"
        for name in open_tests or [stem]:
            found.append(Case(suite, name, FAILED, 0.0, f"{why}\n{output}"))
    elif not found and not match:
        found.append(Case(suite, stem, FAILED, 0.0, "the file has no tests"))
    return found


def environment(build):
    """What the tests see; also for the unit tests."""
    env = dict(os.environ)
    env["CINCH"] = os.path.join(build, "src", "cli", "cinch")
    env["CINCH_BUILD"] = build
    env["CINCH_SOURCE"] = ROOT
    options = os.path.join(build, "meson-info", "intro-buildoptions.json")
    if os.path.exists(options):
        with open(options, encoding="utf-8") as f:
            sanitize = [o["value"] for o in json.load(f) if o["name"] == "b_sanitize"]
        if sanitize and sanitize[0] != "none":
            env["CINCH_SANITIZED"] = "1"
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
    return env


def discover():
    found = []
    for folder, folders, names in os.walk(TESTS):
        folders.sort()
        found += [os.path.join(folder, n) for n in sorted(names) if re.fullmatch(r"test_\w+\.py", n)]
    return found


def run(build, suite, logs, files=None, jobs=JOBS, match=None):
    """Runs the files (default: all), at most `jobs` at once; gives all cases."""
    os.makedirs(logs, exist_ok=True)
    env = environment(build)
    # Those that may take long begin first: nothing waits for the last of them alone.
    ordered = sorted(files or discover(), key=timeout_of, reverse=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        groups = pool.map(lambda f: run_file(f, suite, env, logs, match), ordered)
        return [case for group in groups for case in group]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--match", help="only tests whose name contains this")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--report", help=argparse.SUPPRESS)
    parser.add_argument("--timeout", type=int, default=DEFAULT_TIMEOUT, help=argparse.SUPPRESS)
    parser.add_argument("file", nargs="*")
    args = parser.parse_args()
    if args.child:
        return run_child(args.child, args.report, args.match, args.timeout)
    build = os.path.abspath(args.build)
    files = [os.path.abspath(f) for f in args.file]
    found = run(build, "integration", os.path.join(build, "logs"), files, args.jobs, args.match)
    for case in found:
        print(f"{case.status:<8} {case.seconds:6.1f} s  {case.name}")
        if case.text:
            print("    " + case.text.rstrip().replace("\n", "\n    "))
    print(results.summary(found))
    passed, failed, skipped = results.count(found)
    return 1 if failed or passed + skipped == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
