#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The session of a run: what is kept of it, what another run takes over, and what a kill leaves."""

import json
import os
import signal
import textwrap

import harness

TASK = """
    name: remember
    agent: {command: ["true"]}
    prompt: do it
    session:
      slices: [{name: plan}, {name: notes, policy: log}]
      reducers:
        - {event: PromptRendered, slice: seen, reducer: replace_latest}
"""


class Session(harness.Case):
    def task(self, text=TASK, name="task.yaml"):
        return self.write(name, textwrap.dedent(text))

    def slices(self, r, name="after.jsonl"):
        lines = r.lines("session", name)
        self.assertEqual(len(lines), 1)
        return {s["slice_type"]: s["items"] for s in lines[0]["slices"]}

    def snapshot(self, slices, policies=None):
        return json.dumps({"version": "1", "created_at": "2026-01-01T00:00:00.000Z", "parent_id": None, "children_ids": [],
                           "slices": [{"slice_type": k, "item_type": k, "items": v} for k, v in slices.items()],
                           "tags": {"session_id": "x"}, "policies": policies or {}}) + "\n"

    def recover(self, r):
        done = self.cinch("recover", r.output)
        self.assertEqual(done.code, 0, done.stderr)
        self.assert_valid(r)
        return r


class Kept(Session):
    def test_before_and_after(self):
        r = self.run_cinch(self.task())
        self.assertEqual(r.reason, "success")
        self.assertEqual(self.slices(r, "before.jsonl"), {})
        after = self.slices(r)
        rendered = r.events("PromptRendered")[0]["context"]
        self.assertEqual(after["PromptRendered"], [rendered])
        self.assertEqual(after["seen"], [rendered])
        self.assertEqual(after["PromptExecuted"], [r.events("PromptExecuted")[0]["context"]])
        saved = r.lines("session", "after.jsonl")[0]
        self.assertEqual(saved["tags"]["session_id"], r.manifest["run_id"])
        self.assertEqual((saved["policies"]["plan"], saved["policies"]["notes"], saved["policies"]["ToolInvoked"]),
                         ("state", "log", "log"))
        for name in ("before.jsonl", "journal.jsonl", "after.jsonl"):
            self.assertIn("session/" + name, r.manifest["artifacts"])

    def test_a_run_without_tools_has_no_files(self):
        r = self.run_command("true")
        self.assertFalse(r.exists("session"))

    def test_a_secret_stays_out(self):
        r = self.run_cinch(self.task(TASK.replace("do it", "use hunter2-hunter2 now")), "--secret", "TOKEN",
                           env={"TOKEN": "hunter2-hunter2"})
        self.assertIn("[REDACTED:TOKEN]", json.dumps(self.slices(r)))
        self.assert_not_in_tree(b"hunter2-hunter2", r.output)

    def test_a_failed_run_has_it_too(self):
        r = self.run_cinch(self.task(TASK.replace('"true"', '"false"')))
        self.assertEqual(r.reason, "failure")
        self.assertIn("PromptRendered", self.slices(r))
        self.assertNotIn("PromptExecuted", self.slices(r))


class Restored(Session):
    RESTORE = TASK + "      restore: old/after.jsonl\n"

    def restore(self, content, valid=True):
        self.write("old/after.jsonl", content)
        return self.run_cinch(self.task(self.RESTORE), valid=valid)

    def test_state_comes_back_and_history_does_not(self):
        r = self.restore(self.snapshot({"plan": [{"id": 1}], "notes": ["old"], "ToolInvoked": [{"name": "x"}], "gone": [1],
                                        "policy:order": [{"a": 1}]}, {"gone": "log"}))
        self.assertEqual(r.reason, "success", r.stderr)
        before = self.slices(r, "before.jsonl")
        self.assertEqual(before, {"plan": [{"id": 1}], "policy:order": [{"a": 1}]})
        self.assertEqual(self.slices(r)["plan"], [{"id": 1}])

    def test_from_the_record_of_a_run(self):
        first = self.restore(self.snapshot({"plan": ["a", "b"]}))
        with open(first.path("session", "after.jsonl")) as f:
            second = self.restore(f.read())
        self.assertEqual(self.slices(second)["plan"], ["a", "b"])
        self.assertEqual(len(self.slices(second)["PromptRendered"]), 1)

    def test_slices_that_nobody_declares_are_refused(self):
        r = self.restore(self.snapshot({"plan": [], "a": [1], "b": [2]}))
        self.assert_failed(r, 65, "slice types not registered: a, b", "session.restore")
        self.assertFalse(r.events("process.spawned"))

    def test_what_is_no_snapshot(self):
        for content, words in (("", "session.restore"), ("{}", "version"), ('{"version": "2", "slices": []}', "version"),
                               ('{"version": "1", "slices": {}}', "slices"), ("[1", "session.restore"),
                               ('{"version": "1", "slices": [{"slice_type": "plan", "items": 3}]}', "items")):
            self.assert_failed(self.restore(content), 65, words)
        os.unlink(self.path("old", "after.jsonl"))
        self.assert_failed(self.run_cinch(self.task(self.RESTORE)), 66, "old/after.jsonl")


class Tools(Session):
    """What tools remember: through the bridge, with a scripted model."""

    def program(self, name, text):
        return {"name": name, "description": f"The tool {name}.", "command": [self.script(name + ".sh", text)],
                "input_schema": {"type": "object", "additionalProperties": True}}

    def answer(self, name, exit_code=0, **members):
        return self.program(name, f"cat <<'EOF'\n{json.dumps(members)}\nEOF\nexit {exit_code}\n")

    def session_task(self, calls, tools, session=None):
        steps = [{"when": {"turn": i}, "call": {"tool": name, "args": {}}} for i, name in enumerate(calls)]
        script = self.write("model.yaml", json.dumps({"side": False, "steps": steps + [{"say": "done"}]}))
        return self.write("task.yaml", json.dumps({
            "agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.", "tools": tools,
            "gateway": {"script": script}, "session": session or {}}))

    def test_operations(self):
        def op(kind, **more):
            return [{"op": kind, "slice": "plan", **more}]
        tools = [self.answer("add", message="m", state=op("append", value={"id": 1})),
                 self.answer("more", message="m", state=op("extend", value=[{"id": 2}, {"id": 3}])),
                 self.answer("drop", message="m", state=op("clear", key="/id", value=2)),
                 self.answer("fail", 1, message="m", state=op("append", value={"id": 9})),
                 self.answer("deny", message="m", success=False, state=op("replace", value=[]))]
        r = self.run_cinch(self.session_task(["add", "more", "fail", "drop", "deny", "add"], tools))
        self.assertEqual(r.reason, "success", r.stderr)
        after = self.slices(r)
        self.assertEqual(after["plan"], [{"id": 1}, {"id": 3}, {"id": 1}])
        self.assertEqual([(c["name"], c["result"]["success"]) for c in after["ToolInvoked"]],
                         [("add", True), ("more", True), ("fail", False), ("drop", True), ("deny", False), ("add", True)])
        self.assertEqual([c["call_id"] for c in after["ToolInvoked"]],
                         [e["context"]["call_id"] for e in r.events("ToolInvoked")])

    def test_reducers_look_at_calls_and_values(self):
        session = {"slices": [{"name": "names", "policy": "log"}], "reducers": [
            {"event": "ToolInvoked", "slice": "last", "reducer": "replace_latest"},
            {"event": "ToolInvoked", "slice": "names", "reducer": "upsert_by", "key": "/name"},
            {"event": "measure", "slice": "figures", "reducer": "append_all"}]}
        tools = [self.answer("measure", value={"lines": 3}), self.answer("other", value={"x": 1}),
                 self.answer("broken", 1, value={"lines": 5})]
        r = self.run_cinch(self.session_task(["measure", "other", "measure", "broken"], tools, session))
        after = self.slices(r)
        self.assertEqual(after["figures"], [{"lines": 3}, {"lines": 3}])
        self.assertEqual([c["name"] for c in after["last"]], ["measure"])  # rolled back with the failed call
        self.assertEqual([c["name"] for c in after["names"]], ["other", "measure", "broken"])
        self.assertNotIn("other", after)

    def test_killed_in_a_call(self):
        hang = self.program("hang", "echo '{\"message\":\"m\",\"state\":[{\"op\":\"append\",\"slice\":\"plan\",\"value\":9}]}'\n"
                            "touch started; sleep 60\n")
        tools = [self.answer("add", message="m", state=[{"op": "append", "slice": "plan", "value": 1},
                                                        {"op": "append", "slice": "other", "value": 2}]), hang]
        process, r = self.start(self.session_task(["add", "hang"], tools))
        harness.wait_until(lambda: r.exists("session", "journal.jsonl") and b'"ToolInvoked"' in r.bytes("session", "journal.jsonl"),
                           "the first call")
        process.kill()
        process.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the tree to be gone")
        self.recover(r)
        after = self.slices(r)
        self.assertEqual((after["plan"], after["other"]), ([1], [2]))
        self.assertEqual([c["name"] for c in after["ToolInvoked"]], ["add"])

    def test_another_run_goes_on(self):
        tools = [self.answer("add", message="m", state=[{"op": "append", "slice": "plan", "value": 1}])]
        first = self.run_cinch(self.session_task(["add"], tools))
        session = {"slices": [{"name": "plan"}], "restore": first.path("session", "after.jsonl")}
        second = self.run_cinch(self.session_task(["add"], tools, session))
        self.assertEqual(self.slices(second)["plan"], [1, 1])
        self.assertEqual(len(self.slices(second)["ToolInvoked"]), 1)


class Killed(Session):
    def kill_at(self, phase):
        process, r = self.start(self.task(), env={"CINCH_STOP_AT": phase})
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGKILL)
        process.wait()
        return r

    def test_what_was_committed_is_there(self):
        r = self.kill_at("execute")
        self.assertFalse(r.exists("session", "after.jsonl"))
        rendered = r.events("PromptRendered")[0]["context"]
        self.recover(r)
        self.assertEqual(self.slices(r)["PromptRendered"], [rendered])
        self.assertEqual(self.slices(r)["seen"], [rendered])
        saved = r.lines("session", "after.jsonl")[0]
        self.assertEqual((saved["tags"]["session_id"], saved["policies"]["notes"]), (r.manifest["run_id"], "log"))
        self.assertIn("session/after.jsonl", r.manifest["artifacts"])

    def test_in_every_phase(self):
        for phase in ("admit", "configure", "prepare", "context", "parse", "collect", "gate", "finish"):
            r = self.recover(self.kill_at(phase))
            self.assertEqual(r.exists("session", "after.jsonl"), phase != "admit", phase)
            if phase in ("collect", "gate", "finish"):
                self.assertIn("PromptExecuted", self.slices(r), phase)

    def test_a_torn_journal(self):
        r = self.kill_at("parse")
        journal = r.path("session", "journal.jsonl")
        with open(journal, "ab") as f:
            f.write(b'[{"slice":"plan","policy":"state","op":"append","value":1},{"sl')
        self.recover(r)
        self.assertNotIn("plan", self.slices(r))
        self.assertIn("PromptRendered", self.slices(r))

    def test_a_damaged_journal(self):
        r = self.kill_at("parse")
        journal = r.path("session", "journal.jsonl")
        with open(journal, "rb+") as f:
            lines = f.read().splitlines(keepends=True)
            f.seek(0)
            f.write(lines[0] + b"garbage\n" + b"".join(lines[1:]))
        self.recover(r)
        self.assertIn("PromptRendered", self.slices(r))
        self.assertTrue(r.exists("session", "journal.jsonl.damaged"))

    def test_a_directory_that_is_not_ours(self):
        r = self.kill_at("parse")
        outside = self.make_dir("outside")
        os.rename(r.path("session"), self.path("moved"))
        os.symlink(outside, r.path("session"))
        done = self.cinch("recover", r.output)
        self.assertEqual(done.code, 0, done.stderr)
        self.assertEqual(os.listdir(outside), [])


if __name__ == "__main__":
    harness.main()
