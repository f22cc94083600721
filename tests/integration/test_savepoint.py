#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Savepoints: a turn that fails leaves no trace in the workspace and the session, and the record keeps what it had
made. First the primitive on the real kernel, by comparison and with a kill at every call; then whole runs: one-shot
programs, a model without a harness, and the real Claude Code and Codex."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import harness
import treeops

FILE_TIMEOUT = 900
RUN = harness.program("savepoint_run")
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
IS_ROOT = os.geteuid() == 0
SEEDS = 2 if harness.SANITIZED else 3

# The tree with times, but not with inodes: what is brought back is another file.
LOOK = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import treeops
entries, groups = treeops.manifest(".")
times = {path: os.lstat(path).st_mtime_ns for path in [".", *entries]}
print(json.dumps([{k: repr(v) for k, v in entries.items()}, times, groups]))
"""


def overlay_works():
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(os.path.join(d, "ws"))
        return subprocess.run([RUN, os.path.join(d, "ws"), os.path.join(d, "p"), "true"],
                              capture_output=True).returncode == 0


def work(seed, count=40, rename=False):
    return f"{PYTHON} {HERE}/treeops.py work {seed} {count}{' rename' if rename else ''}"


class Primitive(harness.Case):
    user = False

    def setUp(self):
        super().setUp()
        self.look = self.write("look.py", LOOK)
        os.chmod(self.dir, 0o755)

    def steps(self, name, *steps, copy=False, die_at=None, check=0):
        line = [RUN, *(["--copy"] if copy else []), *(["--die-at", str(die_at)] if die_at else []),
                self.path(name), self.path(name + ".private"), *steps]
        if self.user:
            os.makedirs(self.path(name + ".private"), exist_ok=True)
            for base, dirs, files in os.walk(self.dir):
                for path in [base, *(os.path.join(base, n) for n in dirs + files)]:
                    if not os.path.islink(path) and os.lstat(path).st_uid == 0:
                        os.chown(path, 65534, 65534)
            line = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *line]
        done = subprocess.run(line, env=self.env, capture_output=True, timeout=60)
        if check is not None:
            self.assertEqual(done.returncode, check, done.stderr.decode(errors="replace"))
        return done

    def seen(self, name):
        return f"{PYTHON} {self.look} {HERE} > {self.path(name)}"

    def manifest(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return json.load(f)

    def check_same(self, before, after, what):
        a, b = self.manifest(before), self.manifest(after)
        if self.user:  # which names belong to one file, an overlay with userxattr does not tell before it is mounted anew
            a, b = a[:2], b[:2]
        for x, y in zip(a, b):
            keys = [] if isinstance(x, list) else [k for k in sorted({*x, *y}) if x.get(k) != y.get(k)]
            self.assertEqual(x, y, f"{what}: {keys[:5]}")


class Differential(Primitive):
    """Random work, a savepoint, more random work: bringing it back gives the tree of the savepoint."""

    def compare(self, seed, copy, rename):
        name = f"ws{seed}{copy}"
        treeops.build(self.path(name), seed)
        self.steps(name, "take", work(seed, rename=rename), "take", work(seed + 1, 10, rename=rename), "take",
                   self.seen("before"), work(seed + 2, rename=rename), "restore", self.seen("after"),
                   work(seed + 3, rename=rename), "restore", self.seen("again"), copy=copy)
        self.check_same("before", "after", f"seed {seed}")
        self.check_same("before", "again", f"seed {seed}, a second time")
        self.assertEqual(os.listdir(self.path(name + ".private", "txn")), [])
        self.assertFalse(os.path.exists(self.path(name + ".private", "savepoint")))

    def test_overlay(self):
        if not overlay_works():
            self.skipTest("no overlay can be mounted here")
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                self.compare(seed * 10, False, IS_ROOT)

    def test_copy(self):
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                self.compare(seed * 10 + 5, True, True)

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_ordinary_user(self):
        self.user = True
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                self.compare(seed * 10 + 7, False, False)

    def test_the_cost_follows_the_change(self):
        if not overlay_works():
            self.skipTest("no overlay can be mounted here")
        for i in range(300):
            self.write(f"ws/d{i % 10}/f{i}", "x" * 1000)
        self.write("ws/large", "y" * 100000)
        done = self.steps("ws", "echo 1 >> large", "take", "echo 2 > d1/f1", "take", "echo 3 > d2/f2; rm d3/f3",
                          "restore")
        first, second, back = [dict(zip(line.split()[1::2], line.split()[2::2]))
                               for line in done.stdout.decode().splitlines()]
        self.assertEqual((first["files"], first["bytes"]), ("1", "100002"))
        self.assertEqual((second["files"], second["bytes"]), ("2", "2"), "what did not change is shared")
        self.assertEqual((back["files"], back["entries"]), ("2", "5"))


class Crash(Primitive):
    """Killed at every call of bringing back: recovery finishes it, also when that is killed, too."""

    FIRST = "echo more >> a; rm -r swap; echo file > swap; mkdir -p f/g; echo x > f/g/x; ln f/g/x f/y; rm gone"
    SECOND = ("echo again >> a; rm swap; mkdir swap; echo 1 > swap/1; rm -r f; echo gone > gone; mkdir new; "
              "echo n > new/n; rm -r other; ln -s nowhere link; chmod 700 e")

    def kill_everywhere(self, copy):
        for n in range(1, 300):
            name = f"ws{n}"
            for path in ("a", "gone", "swap/2", "other/o", "e/e"):
                self.write(os.path.join(name, path), path * 10)
            done = self.steps(name, self.FIRST, "take", self.seen("before"), self.SECOND, "restore", copy=copy,
                              die_at=n, check=None)
            if done.returncode == 0:
                self.assertGreater(n, 10)
                return
            self.assertEqual(done.returncode, -9, done.stderr)
            self.steps(name, "recover", copy=copy, die_at=n % 13 + 1, check=None)
            self.steps(name, "recover", self.seen("after"), copy=copy)
            self.check_same("before", "after", f"killed at call {n}")
            shutil.rmtree(self.path(name))
            shutil.rmtree(self.path(name + ".private"))
        self.fail("it never came to its end")

    def test_overlay(self):
        if not overlay_works():
            self.skipTest("no overlay can be mounted here")
        self.kill_everywhere(False)

    def test_copy(self):
        self.kill_everywhere(True)


ADD = """#!/bin/sh
cat > /dev/null
echo called >> calls.txt
printf '%s' '{"message": "noted", "state": [{"op": "append", "slice": "notes", "value": 1}]}'
"""


class Runs(harness.Case):
    def setUp(self):
        super().setUp()
        self.write("ws/a", "old\n")
        self.write("ws/d/b", "b\n")
        self.write("ws/.gitignore", "*.o\n")

    def turn(self, r, number):
        return r.json("savepoints", f"turn-{number}.json")

    def patch(self, r, number):
        return r.bytes("savepoints", f"turn-{number}.patch")

    def check_taken_back(self, r, turn, *made):
        """The turn is not in diff.patch, but in its own; and the record says so."""
        told = self.turn(r, turn)
        self.assertEqual((told["outcome"], told["restored"]), ("failed", True), r.stderr)
        restored = [e["context"] for e in r.events("SavepointRestored")]
        self.assertEqual([c["turn"] for c in restored], [turn])
        self.assertEqual(restored[0]["patch"], f"savepoints/turn-{turn}.patch")
        for text in made:
            self.assertIn(text, self.patch(r, turn))
            self.assertNotIn(text, r.bytes("diff.patch"))
        if turn > 1:
            self.assertEqual(r.bytes("diff.patch"), self.patch(r, turn - 1))
        self.assertFalse(r.exists("work", "savepoint"))


class OneShot(Runs):
    WORK = "echo x >> a; rm -r d; mkdir e; echo e > e/e; echo o > e/e.o; "
    VIEWS = [(), ("--workspace-mode", "copy"), ("--sandbox", "off")]

    def test_a_program_that_fails(self):
        for view in self.VIEWS:
            with self.subTest(view=view):
                r = self.run_command("sh", "-c", self.WORK + "exit 3",
                                     options=("--savepoint", "turn", "--keep-workspace", "keep", *view))
                self.assertEqual(r.code, 1, r.stderr)
                self.check_taken_back(r, 1, b"+x", b"+e", b"-b")
                self.assertEqual(r.bytes("diff.patch"), b"")
                self.assertEqual(r.manifest["no_changes"], True)
                self.assertEqual(self.turn(r, 1)["why"], "the program ended with exit code 3")
                self.assertEqual(self.turn(r, 1)["ignored"], 1)
                if view:
                    self.assertEqual(treeops.manifest(r.path("work", "tree"))[0].keys(),
                                     treeops.manifest(self.workspace)[0].keys(), "ignored files stayed")

    def test_a_program_that_ends_well(self):
        r = self.run_command("sh", "-c", self.WORK, options=("--savepoint", "turn"))
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(r.bytes("diff.patch"), self.patch(r, 1))
        self.assertEqual((self.turn(r, 1)["outcome"], self.turn(r, 1)["restored"]), ("completed", False))
        self.assertEqual(r.events("SavepointRestored"), [])

    def test_off_leaves_nothing(self):
        for options in ((), ("--savepoint", "none")):
            r = self.run_command("sh", "-c", self.WORK + "exit 3", options=options)
            self.assertIn(b"+x", r.bytes("diff.patch"))
            self.assertFalse(r.exists("savepoints"))
            self.assertEqual(r.events("SavepointTaken"), [])

    def test_in_place(self):
        before = treeops.manifest(self.workspace)
        r = self.run_command("sh", "-c", self.WORK + "exit 3",
                             options=("--savepoint", "turn", "--workspace-mode", "in-place"))
        self.check_taken_back(r, 1, b"+x")
        self.assertEqual(treeops.manifest(self.workspace), before)

    def test_the_run_directory_within_the_workspace(self):
        for view in self.VIEWS:
            with self.subTest(view=view):
                output = self.path("ws", f"out{len(view)}{view[-1:]}")
                r = self.run_command("sh", "-c", self.WORK + "exit 3", output=output,
                                     options=("--savepoint", "turn", *view))
                self.check_taken_back(r, 1, b"+x")

    def test_killed_by_its_deadline(self):
        r = self.run_command("sh", "-c", self.WORK + "sleep 1000",
                             options=("--savepoint", "turn", "--timeout", "1s", "--grace", "1s"))
        self.assertEqual(r.reason, "timeout")
        self.check_taken_back(r, 1, b"+x")
        self.assertIn("timeout", self.turn(r, 1)["why"])

    def test_the_turn_before_stands(self):
        """The checks want more, and the second turn fails: the first one is what is left."""
        task = self.write("task.yaml", "prompt: do it\nworkspace: {savepoint: turn}\n"
                                       "completion: {files: [report], max_rounds: 3}\n")
        agent = "if [ -e first ]; then echo second >> a; rm first; exit 4; fi; echo first > first; echo 1 >> a"
        for view in self.VIEWS:
            with self.subTest(view=view):
                r = self.run_cinch(task, *view, "--", "sh", "-c", agent)
                self.check_taken_back(r, 2, b"+second")
                self.assertIn(b"+first", r.bytes("diff.patch"))
                self.assertEqual(self.turn(r, 1)["outcome"], "completed")

    def test_work_that_is_not_enough_stays(self):
        task = self.write("task.yaml", "prompt: do it\nworkspace: {savepoint: turn}\n"
                                       "completion: {files: [report], max_rounds: 1}\n")
        r = self.run_cinch(task, "--", "sh", "-c", "echo more >> a")
        self.assertEqual(r.code, 1)
        self.assertIn(b"+more\n+more\n", r.bytes("diff.patch"))
        self.assertEqual(r.events("SavepointRestored"), [])

    def test_a_secret_stays_out(self):
        r = self.run_command("sh", "-c", "echo $TOKEN > a; exit 1", env={"TOKEN": "hunter2-hunter2"},
                             options=("--savepoint", "turn", "--secret", "TOKEN"))
        self.assertIn(b"REDACTED", self.patch(r, 1))
        self.assert_not_in_tree(b"hunter2-hunter2", r.path("savepoints"))

    def test_nested_repository(self):
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C"]
        for path in (self.workspace, self.make_dir("ws", "inner")):
            subprocess.run([*git, path, "init", "-q"], check=True, env=self.env)
        self.write("ws/inner/f", "f\n")
        subprocess.run([*git, self.path("ws", "inner"), "add", "."], check=True, env=self.env)
        subprocess.run([*git, self.path("ws", "inner"), "commit", "-qm", "1"], check=True, env=self.env)
        r = self.run_command("sh", "-c", "echo more >> inner/f; git init -q made; exit 1",
                             options=("--savepoint", "turn", "--keep-workspace", "keep", "--workspace-mode", "copy"))
        self.check_taken_back(r, 1)
        nested = self.turn(r, 1)["nested"]
        self.assertEqual(nested[0]["path"], "inner")
        self.assertIn(b"+more", r.bytes("savepoints", "turn-1.nested", nested[0]["patch"]))
        self.assertFalse(r.exists("work", "tree", "made"))


class Commands(Runs):
    def setUp(self):
        super().setUp()
        self.failed = self.run_command("sh", "-c", "echo lost >> a; exit 1", options=("--savepoint", "turn"))

    def test_diff(self):
        done = self.cinch("diff", "--turn", "1", self.failed.output)
        self.assertIn(b"+lost", done.stdout)
        self.assertEqual(self.cinch("diff", self.failed.output).stdout, b"")
        self.assertEqual(self.cinch("diff", "--files", "--turn", "1", self.failed.output).stdout, b"M a\n")
        told = json.loads(self.cinch("diff", "--format", "json", "--turn", "1", self.failed.output).stdout)
        self.assertEqual(told["outcome"], "failed")

    def test_apply(self):
        self.assertIn(b"no changes", self.cinch("apply", self.failed.output).stdout)
        self.assertEqual(self.cinch("apply", "--turn", "1", self.failed.output).code, 0)
        with open(self.path("ws", "a"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "old\nlost\n")

    def test_a_turn_that_there_was_not(self):
        for command in ("diff", "apply"):
            for turn in ("0", "2"):
                done = self.cinch(command, "--turn", turn, self.failed.output)
                self.assertEqual(done.code, 66)
                self.assertIn(f"has no turn {turn}".encode(), done.stderr)
                self.assertIn(b"--savepoint turn", done.stderr)


class Killed(Runs):
    """kill -9 when it was decided that the turn goes, and nothing of that was done."""

    def kill(self, *options):
        tool = self.write("add.sh", ADD, 0o755)
        script = self.write("model.yaml", json.dumps({"side": False, "steps": [
            {"when": {"turn": 0}, "call": {"tool": "add", "args": {}}}, {"fault": {"status": 400}}]}))
        task = {"agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.",
                "tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}, "command": [tool]}],
                "session": {"slices": [{"name": "notes"}]}, "gateway": {"script": script},
                "workspace": {"savepoint": "turn"}}
        process, r = self.start(self.write("task.yaml", json.dumps(task)), *options, env={"CINCH_STOP_AT": "restore"})
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGKILL)
        process.wait()
        return r

    def test_recover(self):
        for view in OneShot.VIEWS:
            with self.subTest(view=view):
                r = self.kill(*view)
                self.assertIn(b"+called", self.patch(r, 1))
                self.assertEqual(self.turn(r, 1)["restored"], False)
                done = self.cinch("recover", r.output)
                self.assertEqual(done.code, 0, done.stderr)
                self.assert_valid(r)
                self.assertEqual(self.turn(r, 1)["restored"], True)
                self.assertEqual(self.cinch("diff", r.output).stdout, b"")
                after = r.lines("session", "after.jsonl")[0]["slices"]
                kinds = {s["slice_type"] for s in after}
                self.assertNotIn("notes", kinds)
                self.assertIn("ToolInvoked", kinds, "history stays")
                self.assertFalse(r.exists("work", "savepoint"))


class Model(Runs):
    """api-direct: what tools of ours changed, and what they remembered, goes with the turn."""

    def direct(self, steps, **more):
        tool = self.write("add.sh", ADD, 0o755)
        script = self.write("model.yaml", json.dumps({"side": False, "steps": steps}))
        task = {"agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.",
                "tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}, "command": [tool]}],
                "session": {"slices": [{"name": "notes"}]}, "gateway": {"script": script},
                "workspace": {"savepoint": "turn"}, **more}
        return self.run_cinch(self.write("task.yaml", json.dumps(task)))

    def notes(self, r):
        slices = r.lines("session", "after.jsonl")[0]["slices"]
        return [s["items"] for s in slices if s["slice_type"] == "notes"]

    def test_a_turn_that_fails(self):
        r = self.direct([{"when": {"turn": 0}, "call": {"tool": "add", "args": {}}}, {"fault": {"status": 400}}])
        self.assertNotEqual(r.code, 0)
        self.check_taken_back(r, 1, b"+called")
        self.assertEqual(self.notes(r), [])
        self.assertEqual(len(r.events("ToolInvoked")), 1)

    def test_the_turn_before_stands(self):
        r = self.direct([{"times": 1, "call": {"tool": "add", "args": {}}}, {"times": 1, "say": "done"},
                         {"times": 1, "call": {"tool": "add", "args": {}}}, {"fault": {"status": 400}}],
                        completion={"files": ["report"], "max_rounds": 3})
        self.check_taken_back(r, 2)
        self.assertEqual(r.bytes("diff.patch").count(b"+called"), 1)
        self.assertEqual(self.patch(r, 2).count(b"+called"), 2)
        self.assertEqual(self.notes(r), [[1]])

    def test_a_turn_that_ends_well(self):
        r = self.direct([{"when": {"turn": 0}, "call": {"tool": "add", "args": {}}}, {"say": "done"}])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(self.notes(r), [[1]])
        self.assertIn(b"+called", r.bytes("diff.patch"))


class Harness(Runs):
    """Native tools of real harnesses, in a dialogue."""

    def agent(self, adapter, script, task="", *options):
        self.env["PATH"] = os.path.dirname(self.real(adapter)) + ":" + self.env["PATH"]
        model = self.write("model.yaml", script)
        path = self.write("task.yaml", "prompt: do it\nworkspace: {savepoint: turn}\n"
                                       "throttle: {max_attempts: 1}\n" + task)
        return self.run_cinch("--adapter", adapter, "--script", model, "--timeout", "60s", *options, path)

    FAILS = """
steps:
  - when: {turn: 0}
    call: {tool: native.shell, args: {command: "echo native > made.txt; rm -r d"}}
  - fault: {status: 400, body: '{"error": {"message": "no such thing"}}'}
"""
    SECOND = """
steps:
  - {times: 1, call: {tool: native.shell, args: {command: "echo first > first.txt"}}}
  - {times: 1, say: done}
  - {times: 1, call: {tool: native.shell, args: {command: "echo second > second.txt; rm first.txt"}}}
  - fault: {status: 400, body: '{"error": {"message": "no such thing"}}'}
"""
    COMPLETION = "completion: {files: [report.md], max_rounds: 2}\n"

    def check_one(self, adapter):
        r = self.agent(adapter, self.FAILS)
        self.assertNotEqual(r.code, 0)
        self.check_taken_back(r, 1, b"+native", b"-b")
        self.assertEqual(r.bytes("diff.patch"), b"")

    def check_second(self, adapter):
        r = self.agent(adapter, self.SECOND, self.COMPLETION)
        self.assertNotEqual(r.code, 0)
        self.check_taken_back(r, 2, b"+second")
        self.assertIn(b"+first", r.bytes("diff.patch"))

    def check_deadline(self, adapter):
        r = self.agent(adapter, "turns:\n  - call: {tool: native.shell, args: {command: 'echo x > x; sleep 100'}}\n",
                       "", "--set", "limits.timeout=15", "--grace", "2s")
        self.assertEqual(r.reason, "timeout", r.stderr)
        self.check_taken_back(r, 1, b"+x")

    def test_claude_code(self):
        self.check_one("claude-code")

    def test_claude_code_second_turn(self):
        self.check_second("claude-code")

    def test_claude_code_deadline(self):
        self.check_deadline("claude-code")

    def test_codex(self):
        self.check_one("codex")

    def test_codex_second_turn(self):
        self.check_second("codex")

    def test_opencode(self):
        self.check_one("opencode")


if __name__ == "__main__":
    harness.main()
