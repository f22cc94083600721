#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that speak Claude Code's protocol badly: garbage, half a line, a huge one, silence, no result, a result and
then no end, ids that nobody gave out. Each run ends in bounded time, with the right reason and a whole record."""

import harness

PROFILE = """
name: fake
driver: claude-stream
binary: [fake-claude]
argv: ["{binary}"]
home: private
"""

HEAD = """#!/usr/bin/python3
import json, signal, sys, time
def say(**m):
    print(json.dumps(m), flush=True)
def result(text="fine"):
    say(type="result", subtype="success", is_error=False, result=text, session_id="s-1",
        usage={"input_tokens": 3, "output_tokens": 4}, total_cost_usd=0.5, num_turns=1)
first = json.loads(sys.stdin.readline())
assert first["request"]["subtype"] == "initialize", first
say(type="control_response", response={"subtype": "success", "request_id": first["request_id"], "response": {}})
prompt = json.loads(sys.stdin.readline())
"""

TAIL = """
sys.stdin.read()
"""


class Fake(harness.Case):
    def fake(self, body, *options, tail=TAIL, task=""):
        self.write("bin/fake-claude", HEAD + body + tail, 0o755)
        self.write("profiles/fake.yaml", PROFILE)
        self.env["PATH"] = self.path("bin") + ":" + self.env["PATH"]
        limit = () if "--timeout" in options else ("--timeout", "60s")
        path = self.write("task.yaml", "prompt: do it\n" + task)
        return self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", "fake", *limit, *options, path)

    def good(self, body, *options, **kw):
        r = self.fake(body, *options, **kw)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.result["text"], "fine")
        self.assertEqual(r.result["session_id"], "s-1")
        return r

    def failed(self, body, **kw):
        r = self.fake(body, **kw)
        self.assertEqual(r.result["outcome"], "failure", r.stderr)
        self.assertNotEqual(r.reason, "timeout", r.stderr)
        return r

    def test_the_prompt_arrives(self):
        self.good('assert prompt["message"]["content"] == "do it", prompt\nresult()')

    def test_garbage(self):
        self.good("for i in range(5000): print('garbage', i)\nresult()")

    def test_half_a_line(self):
        self.failed("sys.stdout.write('{\"type\": \"resu'); sys.stdout.flush()", tail="")

    def test_a_huge_line(self):
        r = self.good("for i in range(64): sys.stdout.write('x' * (1 << 20))\nprint()\nresult()")
        self.assertEqual(len(r.bytes("stdout.log")) >> 20, 64)

    def test_silence(self):
        r = self.fake("time.sleep(1000)", "--timeout", "2s")
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)

    def test_no_result(self):
        self.failed("say(type='system', subtype='init', session_id='s-1')", tail="")

    def test_a_crash_in_the_middle(self):
        self.failed("say(type='assistant', message={'content': [{'type': 'text', 'text': 'half'}]})\nsys.exit(7)")

    def test_a_result_and_then_no_end(self):
        self.good("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nresult()\n", "--set", "limits.grace=1",
                  tail="time.sleep(1000)\n")

    def test_ids_that_nobody_gave_out(self):
        self.good("""
say(type="control_response", response={"subtype": "success", "request_id": "nobody"})
say(type="control_cancel_request", request_id="nobody")
say(type="control_request", request_id="a", request={"subtype": "hook_callback", "callback_id": "nobody"})
assert json.loads(sys.stdin.readline())["response"]["subtype"] == "error"
say(type="control_request", request_id="a", request={"subtype": "bogus"})
assert json.loads(sys.stdin.readline())["response"]["request_id"] == "a"
say(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "nobody", "content": "x"}]})
result()
""")

    def test_what_nobody_knows(self):
        r = self.good("""
say(type="novelty", x=1)
say(type="system", subtype="novelty")
say(no="type")
result()
""")
        kinds = [e["entry_type"] for e in r.lines("transcript.jsonl") if e["event"] == "transcript.entry"]
        self.assertEqual(kinds.count("unknown"), 2)

    def test_results_that_contradict_themselves(self):
        r = self.fake('say(type="result", subtype="success", is_error=True, result="API Error: 500")')
        self.assertEqual(r.result["outcome"], "failure", r.stderr)
        self.assertIn("API Error: 500", r.manifest["error"])

    def test_a_question_before_the_end_of_input(self):
        """It asks when nobody answers any more; that is no reason to wait for ever."""
        self.good("""
result()
sys.stdin.read()
say(type="control_request", request_id="late", request={"subtype": "can_use_tool", "tool_name": "Bash", "input": {}})
""", "--set", "limits.grace=1", tail="time.sleep(1000)\n")


if __name__ == "__main__":
    harness.main()
