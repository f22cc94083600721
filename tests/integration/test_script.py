#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A scripted model behind the real gateway, asked by foreign clients: curl and Python's own."""

import json
import shutil
import subprocess
import unittest
import urllib.error
import urllib.request

import gateway
import harness

MESSAGES = "/v1/messages"
CHAT = "/v1/chat/completions"

TOOLS = [{"name": "Write", "input_schema": {"type": "object"}},
         {"name": "mcp__tiny__add_note", "input_schema": {"type": "object"}}]


def message(text, **more):
    return json.dumps({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": text}],
                       **more}).encode()


class Case(gateway.Case):
    def scripted(self, text, *args):
        return self.gateway("--script", self.write("s.yaml", text), *args)

    def urlopen(self, g, path, body):
        """(status, fields, body), by Python's client."""
        request = urllib.request.Request(g.url + path, body, {
            "Authorization": "Bearer " + g.token, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=harness.PATIENCE) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def curl(self, g, path, body, *args):
        if shutil.which("curl") is None:
            self.skipTest("curl is not installed")
        return subprocess.run(["curl", "-sS", "-N", *args, "-H", "x-api-key: " + g.token, "--data-binary",
                               "@-", g.url + path], input=body, capture_output=True, timeout=harness.PATIENCE)


class Answers(Case):
    def test_urllib_gets_text_and_marks(self):
        g = self.scripted("steps: [{name: greet, when: {regex: 'I am (?<who>.+)'}, say: 'hello ${who}',"
                          " usage: {input: 7, output: 3}}]")
        status, fields, body = self.urlopen(g, CHAT, message("I am Joe"))
        self.assertEqual(status, 200)
        self.assertEqual(fields["x-cinch-step"], "greet")
        answer = json.loads(body)
        self.assertEqual(answer["choices"][0]["message"]["content"], "hello Joe")
        self.assertEqual(answer["usage"]["prompt_tokens"], 7)
        self.assertEqual(answer["usage"]["completion_tokens"], 3)

    def test_gemini_without_events_is_one_list(self):
        """A stream that was not asked for as events is a JSON list of chunks."""
        g = self.scripted("turns: [{say: hello}]")
        status, fields, body = self.urlopen(g, "/v1beta/models/m:streamGenerateContent",
                                            b'{"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}')
        self.assertEqual((status, fields["content-type"]), (200, "application/json"))
        chunks = json.loads(body)
        self.assertEqual(chunks[0]["candidates"][0]["content"]["parts"], [{"text": "hello"}])
        self.assertEqual(chunks[-1]["candidates"][0]["finishReason"], "STOP")

    def test_curl_streams_a_tool_call_and_the_next_turn(self):
        g = self.scripted("turns:\n  - {say: now, call: {tool: add_note, args: {text: x}}}\n  - say: done\n")
        done = self.curl(g, MESSAGES, message("go", stream=True, tools=TOOLS))
        self.assertEqual(done.returncode, 0, done.stderr)
        events = [json.loads(line[6:]) for line in done.stdout.decode().splitlines() if line.startswith("data: ")]
        self.assertEqual(events[0]["type"], "message_start")
        self.assertEqual(events[-1]["type"], "message_stop")
        blocks = [e["content_block"] for e in events if e["type"] == "content_block_start"]
        self.assertEqual([b["type"] for b in blocks], ["text", "tool_use"])
        self.assertEqual(blocks[1]["name"], "mcp__tiny__add_note")
        history = [{"role": "user", "content": "go"},
                   {"role": "assistant", "content": [{"type": "tool_use", "id": blocks[1]["id"],
                                                      "name": blocks[1]["name"], "input": {"text": "x"}}]},
                   {"role": "user", "content": [{"type": "tool_result", "tool_use_id": blocks[1]["id"],
                                                 "content": "ok"}]}]
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": history, "tools": TOOLS}).encode()
        answer = json.loads(self.curl(g, MESSAGES, body).stdout)
        self.assertEqual(answer["content"], [{"type": "text", "text": "done"}])

    def test_the_same_bytes_from_two_gateways(self):
        text = "steps: [{think: hm, say: hello, call: {tool: Write, args: {a: 1}}, chunk: 2}]"
        bodies = []
        for _ in range(2):
            g = self.scripted(text)
            bodies.append([self.curl(g, MESSAGES, message("go", stream=s, tools=TOOLS)).stdout
                           for s in (True, False)])
            self.stop(g)
        self.assertEqual(bodies[0], bodies[1])
        self.assertIn(b"thinking_delta", bodies[0][0])

    def test_titles_are_side_traffic(self):
        g = self.scripted("turns: [{say: main}]")
        status, fields, body = self.urlopen(g, MESSAGES, message("x", system="You are a title generator."))
        self.assertEqual((status, fields["x-cinch-side"]), (200, "title"))
        self.assertEqual(json.loads(body)["content"][0]["text"], "Task")


class Faults(Case):
    def test_status_retry_after_and_shape(self):
        g = self.scripted("steps: [{fault: {status: 429, retry_after: 7, error: {message: slow}}}]", "--no-retries")
        status, fields, body = self.urlopen(g, MESSAGES, message("x"))
        self.assertEqual((status, fields["retry-after"]), (429, "7"))
        error = json.loads(body)["error"]
        self.assertEqual((error["type"], error["message"]), ("rate_limit_error", "slow"))

    def test_a_retry_of_the_gateway_hides_a_passing_fault(self):
        g = self.scripted("steps: [{times: 1, fault: {status: 503}}, {say: well}]")
        status, _, body = self.urlopen(g, CHAT, message("x"))
        self.assertEqual(status, 200, body)

    def test_a_cut_stream_is_seen_as_cut(self):
        g = self.scripted("steps: [{say: hello world, fault: {cut: 300}}]", "--no-retries")
        done = self.curl(g, MESSAGES, message("x", stream=True))
        self.assertEqual(done.returncode, 18, done.stderr)  # transfer closed with outstanding data
        self.assertEqual(len(done.stdout), 300)

    def test_a_hang_lasts_until_the_client_leaves(self):
        g = self.scripted("steps: [{when: {text: hang}, say: x, fault: {hang: 50}}, {say: fine}]")
        done = self.curl(g, MESSAGES, message("hang", stream=True), "--max-time", "1")
        self.assertEqual(done.returncode, 28, done.stderr)  # timed out
        self.assertEqual(len(done.stdout), 50)
        self.assertEqual(self.urlopen(g, MESSAGES, message("x"))[0], 200)

    def test_garbage(self):
        g = self.scripted("steps: [{say: x, fault: {garbage: 0, garbage_text: '<html>'}}]", "--no-retries")
        self.assertEqual(self.curl(g, MESSAGES, message("x", stream=True)).stdout, b"<html>")


class Strict(Case):
    def test_a_miss_is_an_error_that_names_the_nearest_step(self):
        g = self.scripted("name: demo\nsteps:\n  - {name: one, when: {text: alpha, turn: 0}, say: a}\n")
        status, _, body = self.urlopen(g, MESSAGES, message("beta"))
        self.assertEqual(status, 400)
        text = json.loads(body)["error"]["message"]
        self.assertIn("no step fits request 1", text)
        self.assertIn("nearest is 'one'", text)
        g.process.terminate()
        _, stderr = g.process.communicate(timeout=harness.PATIENCE)
        self.assertEqual(g.process.returncode, 65, stderr)
        self.assertIn(b"nearest is 'one'", stderr)

    def test_a_wrong_script_is_refused_with_its_place(self):
        path = self.write("s.yaml", "steps:\n  - {sai: x}\n")
        r = self.cinch("gateway", "--script", path)
        self.assert_failed(r, 65, "s.yaml:2:6: unknown key 'steps[0].sai' (did you mean 'say'?)")
        self.assert_failed(self.cinch("gateway", "--script", self.path("none.yaml")), 66, "none.yaml")


if __name__ == "__main__":
    unittest.main(verbosity=2)
