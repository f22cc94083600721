#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that speak the protocol of Codex' app-server badly: garbage, half a line, one without end, silence, wrong and
repeated ids, another version, leaving, staying. Each run ends in bounded time, with the right reason and a whole
record."""

import harness

PROFILE = """
name: fake
driver: codex-app-server
binary: [fake-codex]
argv: ["{binary}"]
home: private
"""

HEAD = """#!/usr/bin/python3
import json, signal, sys, time
def out(**m):
    print(json.dumps(m), flush=True)
def read(method=None):
    m = json.loads(sys.stdin.readline())
    assert method is None or m.get("method") == method, m
    return m
def tell(method, **params):
    out(method=method, params={"threadId": "t-1", "turnId": "u-1", **params})
def say(text):
    tell("item/completed", item={"type": "agentMessage", "id": "m", "text": text})
def over(status="completed", **rest):
    tell("turn/completed", turn={"id": "u-1", "status": status, **rest})
def hello(**result):
    out(id=read("initialize")["id"], result=result or {"userAgent": "fake/1", "codexHome": "/none"})
    read("initialized")
def begin():
    hello()
    out(id=read("thread/start")["id"], result={"thread": {"id": "t-1"}, "model": "m"})
    turn = read("turn/start")
    out(id=turn["id"], result={"turn": {"id": "u-1"}})
    return turn
"""

TAIL = """
sys.stdin.read()
"""


class Fake(harness.Case):
    def fake(self, body, *options, tail=TAIL, task=""):
        self.write("bin/fake-codex", HEAD + body + tail, 0o755)
        self.write("profiles/fake.yaml", PROFILE)
        self.env["PATH"] = self.path("bin") + ":" + self.env["PATH"]
        limit = () if "--timeout" in options else ("--timeout", "60s")
        path = self.write("task.yaml", "prompt: do it\n" + task)
        return self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", "fake", *limit, *options, path)

    def good(self, body, *options, **kw):
        r = self.fake(body, *options, **kw)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.result["text"], "fine")
        self.assertEqual(r.result["session_id"], "t-1")
        return r

    def failed(self, body, words="", **kw):
        r = self.fake(body, **kw)
        self.assertEqual(r.result["outcome"], "failure", r.stderr)
        self.assertNotEqual(r.reason, "timeout", r.stderr)
        self.assertIn(words, r.manifest["error"])
        return r

    def test_the_prompt_arrives(self):
        self.good('turn = begin()\nassert turn["params"]["input"][-1]["text"] == "do it", turn\nsay("fine")\nover()')

    def test_garbage(self):
        self.good('for i in range(5000): print("garbage", i)\nbegin()\nprint("[1, 2]\\n{]")\nsay("fine")\nover()')

    def test_half_a_line(self):
        self.failed("begin()\nsys.stdout.write('{\"method\": \"turn/comp'); sys.stdout.flush()", tail="")

    def test_a_long_line(self):
        self.good("begin()\ntell('x', pad='x' * (60 << 20))\nsay('fine')\nover()")

    def test_a_line_without_end(self):
        self.failed("begin()\nfor i in range(65): sys.stdout.write('x' * (1 << 20))\nprint(flush=True)", "64 MiB")

    def test_silence(self):
        r = self.fake("begin()\ntime.sleep(1000)", "--timeout", "2s")
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)

    def test_silence_from_the_beginning(self):
        r = self.fake("time.sleep(1000)", "--timeout", "2s")
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)

    def test_it_leaves(self):
        self.failed("begin()", "turn/start", tail="")
        self.failed("hello()", "thread/start", tail="")

    def test_it_crashes(self):
        self.failed("begin()\nsay('half')\nsys.exit(7)")

    def test_it_stays(self):
        self.good("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nbegin()\nsay('fine')\nover()\n", "--set",
                  "limits.grace=1", tail="time.sleep(1000)\n")

    def test_another_version(self):
        self.failed('out(id=read("initialize")["id"], result={"protocolVersion": 2})', "no version of Codex")

    def test_refusals(self):
        self.failed('out(id=read("initialize")["id"], error={"code": -32600, "message": "not you"})', "not you")
        self.failed('hello()\nout(id=read("thread/start")["id"], error={"code": -32600, "message": "no room"})', "no room")

    def test_wrong_and_repeated_ids(self):
        self.good("""
begin()
out(id=999, result={})
out(id=3, error={"code": 1, "message": "again"})
tell("turn/completed", turn={"id": "u-9", "status": "failed"})
out(method="turn/completed", params={"threadId": "t-9", "turn": {"id": "u-1", "status": "failed"}})
say("fine")
over()
over("failed")
""")

    def test_what_nobody_knows(self):
        r = self.good("""
begin()
tell("item/of/tomorrow", x=1)
tell("tomorrow/begins")
out(id="a", method="tomorrow/ask", params={})
assert read()["error"]["code"] == -32601
say("fine")
over()
""")
        kinds = [e["entry_type"] for e in r.lines("transcript.jsonl") if e["event"] == "transcript.entry"]
        self.assertEqual(kinds.count("unknown"), 1)

    def test_a_patch_that_nobody_has_seen(self):
        """What cannot be judged is denied."""
        self.good("""
hello()
for i in range(2):
    out(id=read()["id"], result={})
out(id=read("thread/start")["id"], result={"thread": {"id": "t-1"}})
out(id=read("turn/start")["id"], result={"turn": {"id": "u-1"}})
out(id=0, method="item/fileChange/requestApproval", params={"threadId": "t-1", "itemId": "nobody"})
say({"decline": "fine"}[read()["result"]["decision"]])
over()
""", task="policies: [{type: deny, tools: ['codex:command'], reason: no}]\n")

    def test_a_failure_has_its_words(self):
        self.failed("""
begin()
over("failed", error={"message": "No quota.", "codexErrorInfo": "usageLimitExceeded"})
""", "No quota. (usageLimitExceeded)")


if __name__ == "__main__":
    harness.main()
