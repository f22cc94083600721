#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tools that are programs, behind the bridge, in a real sandbox: whatever they do, a call that fails leaves nothing
behind, the next one works, and the user's own tree is never touched. Also without a sandbox, in private copies."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse

import harness

FILE_TIMEOUT = 600
SERVER = harness.program("bridge_server")
ANY = {"type": "object", "additionalProperties": True}


def tool(name, script, **more):
    return {"name": name, "description": name, "input_schema": ANY, "command": ["/bin/sh", "-c", script], **more}


# What the workspace holds, as a program sees it.
LOOK = tool("look", "find . -type f | sort | xargs -r tail -vn +1")

# name, script, what came of it, more of the definition
HOSTILE = [
    ("flood", "echo x > f; yes", "flood", {"max_output": 100000}),
    ("never_ends", "echo x > f; sleep 1000", "timeout", {"timeout": 0.5}),
    ("ignores_signals", "trap '' TERM INT HUP; echo x > f; while :; do sleep 1; done", "timeout", {"timeout": 0.5}),
    ("half_json", "echo x > f; printf '{\"message\": '", "bad_output", {}),
    ("signal", "echo x > f; kill -9 $$", "crashed", {}),
    ("large_value", "echo x > f; printf '{\"value\":\"'; head -c 50000000 /dev/zero | tr '\\0' x; printf '\"}'",
     "flood", {}),
    ("deep_value", "echo x > f; printf '{\"value\":'; yes [ | head -n 5000 | tr -d '\\n'", "bad_output", {}),
    ("no_workspace", "rm -rf ./* ./.[!.]*; exit 1", "failed", {}),
    ("says_no", "echo x > f; echo '{\"success\": false, \"message\": \"no\"}'", "failed", {}),
    ("wrong_output", "echo x > f; echo '{\"value\": {\"n\": \"1\"}}'", "bad_output",
     {"output_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}),
    ("wrong_state", "echo x > f; echo '{\"message\": \"m\", \"state\": [{\"op\": \"append\", \"slice\": \"policy:x\", "
     "\"value\": 1}]}'", "bad_output", {}),
    ("chmod_all", "chmod 000 a d .; echo x > d/b; exit 1", "failed", {}),
]


class Server:
    def __init__(self, case, tools, *options):
        case.write("ws/a", "one\n")
        case.write("ws/d/b", "two\n")
        path = case.write("tools.json", json.dumps([LOOK, *tools]))
        env = {**case.env, "CINCH_INIT": harness.init()}
        self.process = subprocess.Popen([SERVER, *options, case.workspace, case.path("private"), path], env=env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        case.addCleanup(case.reap, self.process)
        line = self.process.stdout.readline()
        if not line:
            case.skipTest(self.process.communicate()[1].decode(errors="replace"))
        self.url = urllib.parse.urlsplit(json.loads(line)["url"])
        self.records = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.count = 0
        self.post("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                 "clientInfo": {"name": "t", "version": "1"}})

    def read(self):
        for line in self.process.stdout:
            self.records.append(json.loads(line))

    def post(self, method, params, notification=False):
        self.count += 1
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notification:
            message["id"] = self.count
        c = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=harness.PATIENCE)
        try:
            c.request("POST", self.url.path, json.dumps(message), self.headers)
            answer = c.getresponse()
            session = answer.getheader("mcp-session-id")
            if session:
                self.headers["Mcp-Session-Id"] = session
            text = answer.read()
            return json.loads(text) if text else None
        finally:
            c.close()

    def record(self, name):
        """What it said about the last call of the tool."""
        deadline = time.monotonic() + harness.PATIENCE
        while time.monotonic() < deadline:
            found = [r for r in list(self.records) if r.get("name") == name]
            if found:
                return found[-1]
            time.sleep(0.01)
        raise AssertionError(f"no record of {name}")

    def call(self, name, **arguments):
        """(text, whether it is an error)"""
        result = self.post("tools/call", {"name": name, "arguments": arguments})["result"]
        return result["content"][0]["text"], result["isError"]

    def stop(self):
        """What it says at its end: transactions that are open, and the session."""
        self.process.send_signal(signal.SIGTERM)
        self.reader.join(harness.PATIENCE)
        self.process.wait(harness.PATIENCE)
        return self.records[-1]


class Case(harness.Case):
    options = ()

    def server(self, tools):
        return Server(self, tools, *self.options)

    def check_end(self, s, calls):
        end = s.stop()
        self.assertEqual(s.process.returncode, 0, s.process.stderr.read())
        self.assertEqual(end["active"], 0)
        log = [x for x in end["session"]["slices"] if x["slice_type"] == "ToolInvoked"][0]["items"]
        self.assertEqual(len(log), calls)
        self.assertEqual([r["name"] for r in s.records[:-1]], [r["name"] for r in log])
        self.assertEqual(os.listdir(self.path("private", "txn")), [])
        # the user's own tree
        self.assertEqual(sorted(os.listdir(self.workspace)), ["a", "d"])
        with open(os.path.join(self.workspace, "a"), encoding="ascii") as f:
            self.assertEqual(f.read(), "one\n")
        return {x["slice_type"]: x["items"] for x in end["session"]["slices"]}


class Tools(Case):
    def test_hostile_tools(self):
        s = self.server([tool(name, script, **more) for name, script, _, more in HOSTILE])
        before, failed = s.call("look")
        self.assertFalse(failed, before)
        self.assertIn("==> ./d/b <==\ntwo", before)
        for name, _, word, _ in HOSTILE:
            with self.subTest(name):
                text, failed = s.call(name)
                self.assertTrue(failed, text)
                self.assertLess(len(text), 300 * 1024)
                record = s.record(name)
                self.assertEqual(record["result"]["failure"], word, text)
                self.assertFalse(record["result"]["success"])
                self.assertEqual(record["files"], 0)
                self.assertEqual(s.call("look"), (before, False))
        self.check_end(s, 1 + 2 * len(HOSTILE))

    def test_a_call_that_succeeds(self):
        s = self.server([
            tool("change", "echo two > a; rm -r d; mkdir -p n/m; echo new > n/m/f; echo '{\"message\": \"m\", "
                           "\"value\": {\"n\": 1}, \"state\": [{\"op\": \"append\", \"slice\": \"plan\", \"value\": 7}]}'"),
            tool("echo", "cat"),
        ])
        self.assertEqual(s.call("change"), ('m\n{"n":1}', False))
        self.assertEqual(s.call("look"), ("==> ./a <==\ntwo\n\n==> ./n/m/f <==\nnew", False))
        self.assertEqual(s.call("echo", message="hello", success=True), ("hello", False))
        slices = self.check_end(s, 3)
        self.assertEqual(slices["plan"], [7])
        self.assertEqual(slices["ToolInvoked"][0]["files"], 3)

    def test_what_goes_on_after_the_answer(self):
        """A process that outlives the tool is killed before the commit: what it wanted to write is never there."""
        s = self.server([tool("leaves", "(setsid sh -c 'sleep 5; echo late > late' >/dev/null 2>&1 &); echo x > f; "
                                        "echo done")])
        self.assertEqual(s.call("leaves"), ("done", False))
        self.assertFalse(self.running())
        text, _ = s.call("look")
        self.assertIn("./f", text)
        self.assertNotIn("late", text)
        self.check_end(s, 2)

    def test_output_that_is_no_text(self):
        s = self.server([tool("bytes", "printf 'a\\377b\\000c'")])
        text, failed = s.call("bytes")
        self.assertFalse(failed)
        self.assertEqual(text, "a\ufffdb\0c")
        self.check_end(s, 1)

    def test_input_that_nobody_reads(self):
        s = self.server([tool("deaf", "exec <&-; echo heard nothing")])
        self.assertEqual(s.call("deaf", text="x" * 1000000), ("heard nothing", False))
        self.check_end(s, 1)

    def parallel(self, s, *calls):
        answers = [None] * len(calls)

        def one(i):
            answers[i] = s.call(*calls[i])
        threads = [threading.Thread(target=one, args=(i,)) for i in range(len(calls))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return answers

    def test_parallel_calls(self):
        # Each goes on when the other has begun; programs share their /tmp.
        place = "/tmp/cinch-meet-" + self.mark.split("=")[1]
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        meet = (f"echo {{0}} > {{0}}; ls; mkdir -p {place}; touch {place}/{{0}};"
                f"until [ -e {place}/{{1}} ]; do sleep 0.01; done;")
        s = self.server([tool("p", meet.format("p", "q")), tool("q", meet.format("q", "p")),
                         tool("m", meet.format("m", "n") + "echo m >> a"),
                         tool("n", meet.format("n", "m") + "echo n >> a")])
        for text, failed in self.parallel(s, ("p",), ("q",)):
            self.assertFalse(failed, text)
            self.assertIn(text.split(), (["a", "d", "p"], ["a", "d", "q"]))  # never both
        answers = self.parallel(s, ("m",), ("n",))
        self.assertEqual(sorted(failed for _, failed in answers), [False, True], answers)
        text = [text for text, failed in answers if failed][0]
        self.assertIn("'a' was changed by something else", text)
        self.assertIn("try again", text)
        loser = "mn"[[failed for _, failed in answers].index(True)]
        seen, _ = s.call("look")
        self.assertNotIn(f"./{loser} <==", seen)
        self.check_end(s, 5)

    def test_cancelled_calls(self):
        s = self.server([tool("long", "echo x > f; sleep 1000")])
        thread = threading.Thread(target=lambda: self.swallow(s), daemon=True)
        thread.start()
        deadline = time.monotonic() + harness.PATIENCE
        while not self.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        s.post("notifications/cancelled", {"requestId": 2}, notification=True)
        self.assertEqual(s.record("long")["result"]["failure"], "cancelled")
        self.assertNotIn("./f", s.call("look")[0])
        self.check_end(s, 2)

    def swallow(self, s):
        try:
            s.call("long")
        except (OSError, http.client.HTTPException, TypeError, KeyError):
            pass

    def running(self):
        for pid in harness.marked(self.mark):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if f.read().startswith(b"sleep\0"):
                        return True
            except OSError:
                continue
        return False

    def interrupted(self, how):
        s = self.server([tool("long", "echo x > f; sleep 1000")])
        threading.Thread(target=lambda: self.swallow(s), daemon=True).start()
        deadline = time.monotonic() + harness.PATIENCE
        while not self.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertTrue(self.running())
        s.process.send_signal(how)
        s.process.wait(harness.PATIENCE)
        s.reader.join(harness.PATIENCE)
        return s

    def test_stopped_in_the_middle(self):
        s = self.interrupted(signal.SIGTERM)
        self.assertEqual(s.process.returncode, 0)
        self.assertEqual(s.records[0]["result"]["failure"], "cancelled")
        self.assertEqual(s.records[-1]["active"], 0)

    def test_killed_in_the_middle(self):
        self.interrupted(signal.SIGKILL)  # the harness looks for what is left


class Sandboxed(Case):
    def test_writing_outside(self):
        outside = self.path("outside")
        s = self.server([tool("escape", f"echo x > f; echo x > {outside} || exit 1; echo escaped"),
                         tool("etc", "echo x > f; echo x >> /etc/passwd || exit 1")])
        for name in ("escape", "etc"):
            text, failed = s.call(name)
            self.assertTrue(failed, text)
            self.assertNotIn("./f", s.call("look")[0])
        self.assertFalse(os.path.exists(outside))
        self.check_end(s, 4)

    def test_no_workspace_left(self):
        """Deleting everything may be what was wanted; the user's tree stays."""
        s = self.server([tool("clear", "rm -rf ./* ./.[!.]*; echo gone")])
        self.assertEqual(s.call("clear"), ("gone", False))
        self.assertEqual(s.call("look"), ("", False))
        self.check_end(s, 2)


class Copies(Tools):
    """Without a sandbox: the same, in private copies."""

    options = ("--no-sandbox",)


if __name__ == "__main__":
    harness.main()
