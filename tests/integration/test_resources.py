#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Resources of a task: opened in order before the first model call, rolled back and closed in reverse order when the
result of the run is known, however it ends."""

import json
import os
import signal

import harness

PROGRAM = """#!/usr/bin/python3
import json, os, sys, time
request = json.load(sys.stdin)
log, name = sys.argv[1], request["resource"]
with open(log, "a") as f:
    f.write(json.dumps({k: request.get(k) for k in ("action", "resource", "opened", "reason", "state")}) + "\\n")
fault = os.environ.get("FAULT", "")
if fault == "hang-" + request["action"]:
    open(log + ".hangs", "w").close()
    time.sleep(600)
if fault == "fail-" + request["action"]:
    sys.exit("the disk of " + name + " is full")
if fault == "garbage":
    print("[1")
elif request["action"] == "open":
    print(json.dumps({"env": {name.upper() + "_URL": "db://" + name}, "state": {"id": name + "-7"}}))
"""

SERVER = """#!/usr/bin/python3
import json, sys
open(sys.argv[1], "a").write('{"action": "start", "resource": "server"}\\n')
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    result = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
              "tools/list": {"tools": [{"name": "peek", "description": "Looks.", "inputSchema": {"type": "object"}}]},
              "tools/call": {"content": [{"type": "text", "text": "seen"}]}}.get(m["method"])
    reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **reply}), flush=True)
open(sys.argv[1], "a").write('{"action": "end", "resource": "server"}\\n')
"""


class Resources(harness.Case):
    def setUp(self):
        super().setUp()
        self.log = self.path("log")
        self.program = self.write("resource.py", PROGRAM, 0o755)

    def task(self, *faults, **more):
        """A task with resources one, two, …, each with its fault."""
        names = ["one", "two", "three"][:max(2, len(faults))]
        faults = list(faults) + [""] * len(names)
        resources = [{"name": n, "command": [self.program, self.log], "env": {"FAULT": f}, "timeout": "20s"}
                     for n, f in zip(names, faults)]
        return self.write("task.json", json.dumps({"prompt": "x", "resources": resources, **more}))

    def calls(self):
        if not os.path.exists(self.log):
            return []
        return [json.loads(line) for line in open(self.log)]

    def order(self):
        return [f"{c['action']} {c['resource']}" for c in self.calls()]

    OPENED = ["open one", "open two"]
    UNDONE = ["rollback two", "close two", "rollback one", "close one"]

    def test_opened_in_order_and_closed_in_reverse(self):
        r = self.run_cinch(self.task(), "--", "sh", "-c", 'echo "$ONE_URL $TWO_URL"')
        self.assertEqual((r.code, r.bytes("stdout.log")), (0, b"db://one db://two\n"), r.stderr)
        self.assertEqual(self.order(), self.OPENED + ["close two", "close one"])
        closed = self.calls()[2]
        self.assertEqual((closed["state"], closed["reason"], closed["opened"]), ({"id": "two-7"}, "success", True))
        names = [e["event"] for e in r.events() if e["event"].startswith(("resource.", "process.spawned"))]
        self.assertEqual(names, ["resource.open", "resource.open", "process.spawned", "resource.close", "resource.close"])
        self.assertFalse(r.exists("helper-home"))

    def test_before_the_first_model_call(self):
        script = self.write("model.yaml", "turns:\n  - say: done\n")
        r = self.run_cinch(self.task(), "-a", "api-direct", "-m", "m", "--script", script)
        self.assertEqual(r.code, 0, r.stderr)
        names = [e["event"] for e in r.events() if e["event"] in ("resource.open", "model.call", "resource.close")]
        self.assertEqual(names, ["resource.open"] * 2 + ["model.call"] + ["resource.close"] * 2)

    def test_a_failed_run_is_rolled_back(self):
        r = self.run_cinch(self.task(), "--", "false")
        self.assertEqual((r.code, r.reason), (1, "failure"), r.stderr)
        self.assertEqual(self.order(), self.OPENED + self.UNDONE)
        self.assertEqual({c["reason"] for c in self.calls()[2:]}, {"failure"})

    def test_a_result_that_is_refused_is_rolled_back(self):
        """The agent itself ends well: only the check of its result fails."""
        r = self.run_cinch(self.task(output={"artifacts": [{"path": "missing.txt", "required": True}]}), "--", "true")
        self.assertEqual(r.reason, "failure", r.stderr)
        self.assertEqual(self.order(), self.OPENED + self.UNDONE)

    def test_timeout(self):
        r = self.run_cinch(self.task(), "--timeout", "2s", "--", "sleep", "600")
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)
        self.assertEqual(self.order(), self.OPENED + self.UNDONE)

    def test_cancelled_and_killed(self):
        for signals, grace, reason in (([signal.SIGTERM], "1s", "terminated"), ([signal.SIGINT, signal.SIGINT], "60s", "killed")):
            with self.subTest(reason=reason):
                if os.path.exists(self.log):
                    os.remove(self.log)
                process, r = self.start(self.task(), "--grace", grace, "--", "sh", "-c", "trap '' TERM INT; echo up; while :; do sleep 1; done")
                harness.wait_until(lambda: r.exists("stdout.log") and r.bytes("stdout.log"), "the agent")
                for n, number in enumerate(signals, 1):
                    process.send_signal(number)
                    harness.wait_until(lambda: len(r.events("run.signal")) == n or process.poll() is not None, "the signal")
                self.finish(process, r)
                self.assertEqual((r.reason, self.order()), (reason, self.OPENED + self.UNDONE))

    def test_failure_to_open(self):
        r = self.run_cinch(self.task("", "fail-open", ""), "--", "touch", "started")
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stderr)
        self.assertIn("resource 'two' could not be opened", r.manifest["error"])
        self.assertIn("the disk of two is full", r.manifest["error"])
        self.assertEqual(self.order(), self.OPENED + self.UNDONE)
        self.assertEqual([c["opened"] for c in self.calls()[2:]], [False, False, True, True])
        self.assertEqual(r.events("process.spawned"), [])

    def test_bad_answers_and_programs(self):
        r = self.run_cinch(self.task("garbage"), "--", "true")
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stderr)
        self.assertIn("resource 'one' could not be opened: its output is not a JSON object", r.manifest["error"])
        task = self.write("task.json", json.dumps({"prompt": "x", "resources": [{"name": "a", "command": ["/nonexistent/x"]}]}))
        r = self.run_cinch(task, "--", "true")
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stderr)
        self.assertIn("/nonexistent/x", r.manifest["error"])

    def test_wrong_definitions(self):
        for resources, word in (([{"name": "a"}], "needs 'command', 'mcp' or both"), ([{"command": ["true"]}], "name"),
                                ([{"name": "a", "command": ["true"]}] * 2, "twice"), ([{"name": "a", "comand": ["x"]}], "comand")):
            r = self.run_cinch(self.write("task.json", json.dumps({"prompt": "x", "resources": resources})), "--", "true")
            self.assertEqual(r.code, 65, r.stderr)
            self.assertIn(word, r.stderr.decode())

    def test_interrupted_while_opening(self):
        process, r = self.start(self.task("", "hang-open"), "--", "touch", "started")
        harness.wait_until(lambda: os.path.exists(self.log + ".hangs"), "the open that hangs")
        process.terminate()
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (143, "terminated"), r.stderr)
        self.assertEqual(self.order(), self.OPENED + self.UNDONE)
        self.assertEqual(r.events("process.spawned"), [])

    def test_out_of_time_while_opening(self):
        r = self.run_cinch(self.task("hang-open"), "--timeout", "1s", "--", "true")
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)
        self.assertEqual(self.order(), ["open one", "rollback one", "close one"])

    def test_failures_to_close_are_warnings(self):
        r = self.run_cinch(self.task("", "fail-close"), "--", "true")
        self.assertEqual((r.code, r.reason), (0, "success"), r.stderr)
        self.assertIn("resource 'two': close failed", r.manifest["warnings"][0])
        self.assertEqual(self.order(), self.OPENED + ["close two", "close one"])
        os.remove(self.log)
        r = self.run_cinch(self.task("fail-rollback", "fail-rollback"), "--", "false")
        self.assertEqual((r.code, len(r.manifest["warnings"])), (1, 2), r.manifest["warnings"])
        self.assertEqual(self.order(), self.OPENED + self.UNDONE)

    def test_a_server_is_opened_after_its_program_and_closed_before_it(self):
        server = self.write("server.py", SERVER, 0o755)
        resources = [{"name": "tickets", "command": [self.program, self.log], "env": {"FAULT": ""},
                      "mcp": {"command": [server, self.log], "sandbox": False}}]
        task = self.write("task.json", json.dumps({"prompt": "x", "resources": resources}))
        script = self.write("model.yaml", json.dumps({"turns": [{"call": {"tool": "peek", "args": {}}}, {"say": "done"}]}))
        r = self.run_cinch(task, "-a", "api-direct", "-m", "m", "--script", script)
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual(self.order(), ["open tickets", "start server", "end server", "close tickets"])
        self.assertEqual(len(r.events("ToolInvoked")), 1)


if __name__ == "__main__":
    harness.main()
