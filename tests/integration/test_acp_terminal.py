#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that an agent of the Agent Client Protocol has cinch run: in the sandbox, in the workspace, under policies,
and all gone when the run has ended."""

import json
import os

import harness

FILE_TIMEOUT = 300

PROFILE = """
name: terminals
driver: acp
argv: ["{command...}"]
home: private
acp: {terminal: true}
"""

AGENT = r'''
import json, os, sys, time

asked = 0


def out(m):
    sys.stdout.write(json.dumps(m) + "\n")
    sys.stdout.flush()


def call(method, **params):
    """Asks the client and returns its answer."""
    global asked
    asked += 1
    out({"jsonrpc": "2.0", "id": asked, "method": "terminal/" + method, "params": {"sessionId": "s", **params}})
    answer = json.loads(sys.stdin.readline())
    assert answer["id"] == asked, answer
    return answer


def run(command, *args, **more):
    """A program from its start to its end: its output and how it ended."""
    made = call("create", command=command, args=list(args), **more)
    if "error" in made:
        return made["error"]["message"]
    name = made["result"]["terminalId"]
    ended = call("wait_for_exit", terminalId=name)
    shown = call("output", terminalId=name)["result"] if "result" in ended else ended
    call("release", terminalId=name)
    return shown


def work():
    here = os.getcwd()
    told = {}
    told["write"] = run("sh", "-c", "echo made > made.txt; cat old.txt; echo problem >&2; exit 3", cwd=here)
    told["line"] = run("echo $WORD | tr a-z A-Z", env=[{"name": "WORD", "value": "hello"}])
    told["below"] = run("pwd", cwd=here + "/sub")
    told["outside"] = run("pwd", cwd="/etc")
    told["link"] = run("pwd", cwd=here + "/link")
    told["absent"] = run("no-such-program-at-all")
    told["cut"] = run("sh", "-c", "printf 'aaaaaaaa\\303\\251bcd'", outputByteLimit=4)
    told["secrets"] = run("sh", "-c", "env | grep -c -i -e gateway -e token")
    server = call("create", command="sleep", args=["1000"])["result"]["terminalId"]
    told["alive"] = call("output", terminalId=server)["result"]
    call("kill", terminalId=server)
    told["killed"] = call("wait_for_exit", terminalId=server)["result"]
    call("create", command="sh", args=["-c", "setsid sleep 2000 & sleep 1000"])
    return json.dumps(told)


for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        assert m["params"]["clientCapabilities"]["terminal"] is True
        out({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    elif m.get("method") == "session/new":
        out({"jsonrpc": "2.0", "id": m["id"], "result": {"sessionId": "s"}})
    elif m.get("method") == "session/prompt":
        if sys.argv[1] == "work":
            text = work()
        elif sys.argv[1] == "denied":
            text = json.dumps([run("ls"), run("pwd")])
        else:
            name = call("create", command="sleep", args=["1000"])["result"]["terminalId"]
            call("wait_for_exit", terminalId=name)
            text = "never"
        out({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
        out({"jsonrpc": "2.0", "id": m["id"], "result": {"stopReason": "end_turn"}})
'''


class Terminals(harness.Case):
    def talk(self, mode, *options, task="version: 1\nprompt: do it\n"):
        self.write("profiles/terminals.yaml", PROFILE)
        self.write("ws/agent.py", AGENT)
        self.write("task.yaml", task)
        return self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", "terminals", *options,
                              self.path("task.yaml"), "--", "/usr/bin/python3", self.path("ws", "agent.py"), mode)

    def assert_work(self, *options):
        self.write("ws/old.txt", "old\n")
        self.write("ws/sub/x", "x\n")
        os.symlink("/etc", self.path("ws", "link"))
        r = self.talk("work", *options)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        told = json.loads(r.result["text"])
        self.assertEqual(told["write"]["exitStatus"], {"exitCode": 3, "signal": None})
        self.assertEqual(sorted(told["write"]["output"].split()), ["old", "problem"])
        self.assertEqual(told["line"]["output"], "HELLO\n")
        self.assertTrue(told["below"]["output"].endswith("/sub\n"), told)
        self.assertIn("outside of the workspace", told["outside"])
        self.assertIn("points outside of the workspace", told["link"])
        self.assertIn("no-such-program-at-all", str(told["absent"]))
        self.assertEqual((told["cut"]["output"], told["cut"]["truncated"]), ("bcd", True))
        self.assertEqual(told["secrets"]["output"], "0\n")
        self.assertEqual(told["alive"], {"output": "", "truncated": False})
        self.assertEqual(told["killed"], {"exitCode": None, "signal": "SIGTERM"})
        return r

    def test_in_the_sandbox(self):
        """What they write is in the patch and not in the tree; the last one is ended with the run."""
        r = self.assert_work()
        self.assertIn(b"+made", r.bytes("diff.patch"))
        self.assertFalse(os.path.exists(self.path("ws", "made.txt")))
        self.assertIn("terminal", [e["detail"].get("subtype") for e in r.lines("transcript.jsonl") if "detail" in e])

    def test_without_a_sandbox(self):
        self.assert_work("--sandbox", "off")

    def test_policy(self):
        r = self.talk("denied", task="version: 1\nprompt: do it\npolicies:\n"
                      "  - {type: arguments, tools: ['acp:terminal'], rules: [{pointer: /command, pattern: ^pwd$}]}\n")
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        refused, shown = json.loads(r.result["text"])
        self.assertIn("/command", refused)
        self.assertIn("/ws", shown["output"])

    def test_deadline(self):
        """Who waits for a program that does not end is not idle; the deadline ends both."""
        r = self.talk("wait", task="version: 1\nprompt: do it\nlimits: {timeout: 5s, idle: 2s}\n")
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)
        self.assertIn("total", r.manifest["error"])


if __name__ == "__main__":
    harness.main()
