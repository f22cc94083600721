#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Agents of the Agent Client Protocol that do not do what they should: each run ends in bounded time and says what was
wrong. The agent is a program of a few lines, started as any agent would be."""

import time

import harness

FILE_TIMEOUT = 300

AGENT = r'''
import json, os, sys, time

mode = sys.argv[1]
asked = 0


def out(m):
    sys.stdout.write((m if isinstance(m, str) else json.dumps(m)) + "\n")
    sys.stdout.flush()


def answer(m, result):
    out({"jsonrpc": "2.0", "id": m["id"], "result": result})


def update(kind, **rest):
    out({"jsonrpc": "2.0", "method": "session/update",
         "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **rest}}})


def say(text):
    update("agent_message_chunk", content={"type": "text", "text": text})


def ask(method, **params):
    """Asks the client and returns its answer."""
    global asked
    asked += 1
    out({"jsonrpc": "2.0", "id": asked, "method": method, "params": {"sessionId": "s", **params}})
    return json.loads(sys.stdin.readline())


def prompt(m):
    if mode == "silent":
        return
    if mode == "leave":
        sys.exit(0)
    if mode == "long":
        sys.stdout.write("x" * (65 << 20) + "\n")
        sys.stdout.flush()
        return
    if mode == "half":
        out('{"jsonrpc": "2.0", "id": ' + str(m["id"]))
    if mode == "ids":
        answer({"id": 999}, {"stopReason": "end_turn"})
        answer({"id": str(m["id"])}, {"stopReason": "end_turn"})
    if mode == "unknown":
        out({"jsonrpc": "2.0", "method": "_of/tomorrow", "params": {}})
        update("of_tomorrow", x=1)
        say(str(ask("terminal/create", command="ls")["error"]["code"]) + " ")
    if mode == "error":
        out({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32603, "message": "Internal error",
                                                     "data": {"details": "the model is gone"}}})
        return
    if mode == "files":
        here = os.getcwd()
        got = ask("fs/read_text_file", path=here + "/old.txt", line=2, limit=1)
        ask("fs/write_text_file", path=here + "/new.txt", content="new\n")
        bad = [ask("fs/read_text_file", path="/etc/passwd"), ask("fs/write_text_file", path="/tmp/x", content="x"),
               ask("fs/read_text_file", path=here + "/../secret")]
        say(got["result"]["content"].strip() + " " + str(["error" in b for b in bad]))
    if mode not in ("mute", "files"):
        say("fine")
    answer(m, {"stopReason": "refusal" if mode == "refuse" else "end_turn"})
    if mode == "ids":
        answer(m, {"stopReason": "refusal"})


for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        if mode == "garbage":
            out("Welcome!\n\n\x00\x01{]\n[1, 2]")
        answer(m, {"protocolVersion": 2 if mode == "version" else 1, "agentCapabilities": {}})
    elif m.get("method") == "session/new":
        answer(m, {} if mode == "nameless" else {"sessionId": "s"})
    elif m.get("method") == "session/prompt":
        prompt(m)
while mode == "hang":
    time.sleep(1)
'''


class Hostile(harness.Case):
    def talk(self, mode, *options, adapter="acp"):
        self.write("ws/agent.py", AGENT)
        started = time.monotonic()
        r = self.run_cinch("--adapter", adapter, *(options or ("--timeout", "60s")), "do it", "--", "/usr/bin/python3",
                           self.path("ws", "agent.py"), mode)
        r.took = time.monotonic() - started
        return r

    def assert_fine(self, mode, *options, adapter="acp"):
        r = self.talk(mode, *options, adapter=adapter)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertIn("fine", r.result["text"])
        return r

    def assert_fails(self, mode, words):
        r = self.talk(mode)
        self.assertEqual((r.code, r.reason), (1, "failure"), r.stderr + r.bytes("stderr.log"))
        self.assertIn(words, r.manifest["error"])
        return r

    def test_names_in_policies_that_no_tool_has(self):
        """Which tools an agent has is known when it calls them."""
        self.write("ws/agent.py", AGENT)
        task = self.write("task.yaml", "prompt: x\npolicies: [{type: deny, tools: ['native:acp:exec', 'native:x*']}]\n")
        r = self.run_cinch("--adapter", "acp", "--timeout", "60s", task, "--", "/usr/bin/python3", self.path("ws", "agent.py"),
                           "garbage")
        told, = [w for w in r.manifest["warnings"] if w.startswith("policies[0]")]
        self.assertIn("names 'native:acp:exec', but no tool of that name was offered or called", told)

    def test_garbage(self):
        self.assert_fine("garbage")

    def test_half_a_message(self):
        self.assert_fine("half")

    def test_wrong_and_repeated_ids(self):
        self.assert_fine("ids")

    def test_what_nobody_knows(self):
        r = self.assert_fine("unknown")
        self.assertEqual(r.result["text"], "-32601 fine")
        kinds = [e.get("entry_type") for e in r.lines("transcript.jsonl")]
        self.assertEqual(kinds.count("unknown"), 2)

    def test_a_line_without_end(self):
        self.assert_fails("long", "a line of more than 64 MiB")

    def test_silence(self):
        r = self.talk("silent", "--timeout", "4s")
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)

    def test_it_leaves(self):
        self.assert_fails("leave", "ended before it answered 'session/prompt'")

    def test_it_stays(self):
        r = self.assert_fine("hang")
        self.assertLess(r.took, 40)
        self.assertIn("kept running", str(r.manifest["warnings"]))

    def test_it_is_known_to_stay(self):
        """Where the profile says so, it is ended by a signal at once, and that is nothing to warn about."""
        self.write("profiles/stays.yaml", "name: stays\ndriver: acp\nargv: ['{command...}']\nhome: private\n"
                   "acp: {stays: true}\nproject_config: {}\n")
        r = self.assert_fine("hang", "--adapter-dir", self.path("profiles"), adapter="stays")
        self.assertEqual(r.manifest["warnings"], [])
        self.assertEqual([e["context"]["why"] for e in r.events("process.signal")], ["finished"])

    def test_another_version(self):
        self.assert_fails("version", "speaks version 2 of the Agent Client Protocol")

    def test_no_session(self):
        self.assert_fails("nameless", "no sessionId")

    def test_no_word(self):
        self.assert_fails("mute", "without a word")

    def test_refusal(self):
        self.assert_fails("refuse", "refused to go on")

    def test_an_error(self):
        self.assert_fails("error", "the model is gone")

    def test_files(self):
        self.write("ws/old.txt", "one\ntwo\nthree\n")
        self.write("secret", "secret\n")
        r = self.talk("files")
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.result["text"], "two [True, True, True]")
        self.assertIn(b"+new", r.bytes("diff.patch"))


if __name__ == "__main__":
    harness.main()
