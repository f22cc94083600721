#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""All gates, stage by stage, with one line each; the last line is `N passed, N failed, N skipped`.

  scripts/run_tests.py [--quick]        started by scripts/test, which does the set-up first

--quick leaves out integration, sanitizers, clang and fuzzing. Full output of every stage is in
build/logs, the results for machines in build/junit.xml.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True

import cases as results  # noqa: E402
import run_integration  # noqa: E402
from cases import FAILED, PASSED, SKIPPED, Case  # noqa: E402

ROOT = run_integration.ROOT
LOGS = os.path.join(ROOT, "build", "logs")
FUZZ_SECONDS = 5
SKIP = 77
# Agents wait as often as they work: one more than there are processors.
ACK_JOBS = str((os.cpu_count() or 2) + 1)


def run(stage, command, env=None):
    """Runs one command with its output in the stage's log; gives (exit status, output)."""
    path = os.path.join(LOGS, stage.replace(" ", "-") + ".log")
    with open(path, "wb") as log:
        log.write(f"$ {' '.join(command)}\n".encode())
        log.flush()
        code = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env, check=False
        ).returncode
    with open(path, encoding="utf-8", errors="replace") as log:
        return code, log.read()


def build(stage, kind):
    """A build is no test case: it counts only when it fails."""
    code, output = run(stage, ["scripts/build", kind])
    if code == 0:
        return []
    error = re.search(r"^(FAILED: |.*ERROR: )", output, re.MULTILINE)
    return [Case(stage, kind, FAILED, 0.0, results.tail(output[error.start() if error else 0 :], 100))]


def lint(stage):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        _, output = run(stage, ["scripts/lint", "--json", report.name])
        text = report.read()
    if not text:
        return [Case(stage, "lint", FAILED, 0.0, output)]
    return [Case(stage, r["name"], r["status"], r["seconds"], r["text"]) for r in json.loads(text)]


def lint_tests(stage):
    """The tests of the gates themselves."""
    folder = os.path.join(ROOT, "tests", "lint")
    files = [os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.startswith("test_")]
    return run_integration.run(os.path.join(ROOT, "build"), stage, LOGS, files)


def unit(stage, folder, suites):
    """Unit tests and the replay of the fuzz corpora, through meson."""
    path = os.path.join(ROOT, folder)
    log = os.path.join(path, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    command = ["meson", "test", "-C", path, "--no-rebuild", "--timeout-multiplier", "3"]
    for suite in suites:
        command += ["--suite", suite]
    env = run_integration.environment(path)
    code, output = run(stage, command, env)
    found = results.from_meson(stage, log) if os.path.exists(log) else []
    if not found or (code != 0 and results.count(found)[1] == 0):
        found.append(Case(stage, "meson test", FAILED, 0.0, results.tail(output, 50)))
    return found


def integration(stage, folder):
    files = run_integration.discover()
    if not files:
        return [Case(stage, "integration", FAILED, 0.0, "there is no tests/integration/test_*.py")]
    program = run_integration.environment(os.path.join(ROOT, folder))["CINCH"]
    if not os.path.exists(program):
        return [Case(stage, "integration", FAILED, 0.0, f"the build has no '{program}'")]
    return run_integration.run(os.path.join(ROOT, folder), stage, LOGS, files)


def fuzz(stage):
    """Each libFuzzer target for a few seconds; prints one line a target."""
    code, output = run(stage, ["scripts/fuzz", "--smoke", str(FUZZ_SECONDS)])
    return fuzz_cases(stage, code, output)


def fuzz_cases(stage, code, output):
    """A target that failed is followed by the end of its log."""
    found = [Case(stage, m[1], m[2], 0.0, "\n".join(output[m.start():].split("\n")[:61]))
             for m in re.finditer(r"(?m)^fuzz: (\w+) (passed|failed)\b", output)]
    if not found or (code != 0 and results.count(found)[1] == 0):
        found.append(Case(stage, "fuzz", FAILED, 0.0, results.tail(output, 60)))
    return found


def instructions(stage):
    """Instruction counts of fixed pieces of work, against the accepted ones."""
    code, output = run(stage, ["scripts/instructions"])
    status = {0: PASSED, SKIP: SKIPPED}.get(code, FAILED)
    return [Case(stage, stage, status, 0.0, results.tail(output, 10))]


def ack(stage, part, *options):
    """The compatibility kit on the real agent programs: every capability that a profile declares on five adapters, and
    levels 1 and 2 on the others (`make compat` tests all of them, and several versions)."""
    path = os.path.join(LOGS, f"ack{part}.json")
    if os.path.exists(path):
        os.unlink(path)
    seed = str(random.randrange(1000000)) # the order does not matter, so each time it is another
    code, output = run(stage, ["scripts/ack", part, "--jobs", ACK_JOBS, "--shuffle", seed, "--json", path, *options])
    if not os.path.exists(path):
        return [Case(stage, "ack", FAILED, 0.0, results.tail(output, 60))]
    with open(path, encoding="utf-8") as f:
        verdicts = json.load(f)["verdicts"]
    words = {"passed": PASSED, "skipped": SKIPPED}
    found = [
        Case(stage, f"{v['adapter']}.{v['scenario']}", words.get(v["status"], FAILED), v["took_ms"] / 1000,
             "\n".join(v["why"] + ([f"(with --shuffle {seed})"] if v["status"] not in words else [])))
        for v in verdicts
    ]
    if code != 0 and results.count(found)[1] == 0:
        found.append(Case(stage, "ack", FAILED, 0.0, results.tail(output, 60)))
    return found


def install(stage):
    """`make install` below a DESTDIR gives a program that runs, and finds its parts there."""
    with tempfile.TemporaryDirectory() as scratch:
        code, output = run(stage, ["make", "-s", "install"], {**os.environ, "DESTDIR": scratch})
        program = os.path.join(scratch, "usr", "local", "bin", "cinch")
        if code == 0 and not os.path.exists(program):
            code, output = 1, output + f"'{program}' was not installed"
        if code == 0:
            code, output = run_installed(stage, scratch, program)
    return [Case(stage, "install", PASSED if code == 0 else FAILED, 0.0, results.tail(output, 60))]


def run_installed(stage, scratch, program):
    task, out = os.path.join(scratch, "task.md"), os.path.join(scratch, "out")
    with open(task, "w", encoding="utf-8") as f:
        f.write("say hello\n")
    command = [program, "run", "--adapter", "command", "--prompt", task, "--workspace", scratch]
    command += ["--output", out, "--timeout", "60", "--", "/bin/cat", "{prompt_file}"]
    code, output = run(stage + " run", command)
    if code == 0:
        with open(os.path.join(out, "stdout.log"), encoding="utf-8") as f:
            answer = f.read()
        if "say hello" not in answer or not os.path.exists(os.path.join(out, "manifest.json")):
            return 1, f"{output}\nstdout.log has: {answer!r}"
    return code, output


def stages(quick):
    """(title, name of the stage whose success it needs, function)"""
    yield "build", None, lambda s: build(s, "plain")
    yield "lint", "build", lint
    yield "lint tests", None, lint_tests
    yield "unit", "build", lambda s: unit(s, "build", ["unit", "fuzz"])
    yield "instructions", "build", instructions
    if quick:
        return
    yield "integration", "build", lambda s: integration(s, "build")
    yield "ack", "build", lambda s: ack(s, "--full", "--publish-dir", LOGS)
    yield "ack others", "build", lambda s: ack(s, "--others")
    yield "install", "build", install
    yield "clang build", None, lambda s: build(s, "clang")
    yield "clang unit", "clang build", lambda s: unit(s, "build-clang", ["unit"])
    yield "clang integration", "clang build", lambda s: integration(s, "build-clang")
    yield "fuzz smoke", "clang build", fuzz


def show_stage(title, found, seconds):
    passed, failed, skipped = results.count(found)
    verdict = "FAILED" if failed else "ok" if passed or not skipped else "skipped"
    words = ((passed, "passed"), (failed, "failed"), (skipped, "skipped"))
    counts = ", ".join(f"{n} {word}" for n, word in words if n)
    print(f"{verdict:<8} {counts:<36} {seconds:6.1f} s", flush=True)
    for case in found:
        if case.status == FAILED:
            print(f"  failed: {case.name}")
            if case.text:
                print("    | " + case.text.rstrip().replace("\n", "\n    | "), flush=True)


def run_stages(quick):
    everything, good = [], {}
    for title, needs, function in stages(quick):
        print(f"{title:<18}", end="", flush=True)
        start = time.monotonic()
        if needs and not good[needs]:
            found = [Case(title, "all", SKIPPED, 0.0, f"not run, because '{needs}' failed")]
        else:
            try:
                found = function(title)
            except Exception:  # a bug in the runner must not hide the other stages
                found = [Case(title, title, FAILED, 0.0, traceback.format_exc())]
        good[title] = all(c.status != FAILED for c in found)
        show_stage(title, found, time.monotonic() - start)
        everything += found
    return everything


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    os.makedirs(LOGS, exist_ok=True)
    everything = run_stages(args.quick)
    results.write_junit(os.path.join(ROOT, "build", "junit.xml"), everything)
    passed, failed, skipped = results.count(everything)
    if skipped:
        print("skipped:")
        for case in everything:
            if case.status == SKIPPED:
                print(f"  {case.suite}: {case.name}: {results.last_line(case.text)}")
    if failed:
        print("failed:")
        for case in everything:
            if case.status == FAILED:
                print(f"  {case.suite}: {case.name}: {results.last_line(case.text)}")
        print("full output: build/logs")
    print(results.summary(everything))
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
