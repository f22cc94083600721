#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Translation in a run: what is dropped is reported, and what a provider signed comes back to it, also in the run that
continues the conversation."""

import json

import gateway
import providers

FILE_TIMEOUT = 300

PROFILE = """
name: talker
driver: oneshot
argv: ["{command...}", {when: resume, args: ["{resume}"]}]
home: private
gateway:
  env: {BASE: "{gateway_url}", KEY: "{gateway_token}"}
session:
  anywhere: true
  files: [talk/*.json]
output:
  format: ndjson
  rules:
    - {when: {/type: end}, session_id: /id, text: /text}
"""

# One turn of a conversation in Anthropic's format; it forgets thoughts, as some clients do.
AGENT = r"""
import json, os, urllib.request
os.makedirs(os.path.expanduser("~/talk"), exist_ok=True)
path = os.path.expanduser("~/talk/messages.json")
messages = [{"role": "user", "content": "iVBORw0KGgo"}]
if os.path.exists(path):
    messages = json.load(open(path))
body = {"model": "m-x", "max_tokens": 900, "messages": messages, "metadata": {"user_id": "u"}, "top_k": 7,
        "tools": [{"name": n, "input_schema": {"type": "object"}} for n in ("get_weather", "get_time")]
                 + [{"type": "web_search_20250305", "name": "web_search"}]}
request = urllib.request.Request(os.environ["BASE"] + "/v1/messages", json.dumps(body).encode(),
                                 {"x-api-key": os.environ["KEY"], "Content-Type": "application/json"})
response = urllib.request.urlopen(request)
answer = json.load(response)
content = [b for b in answer["content"] if "thinking" not in b["type"]]
messages.append({"role": "assistant", "content": content})
calls = [b for b in content if b["type"] == "tool_use"]
messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": b["id"], "content": "sunny"}
                                             for b in calls] or "more"})
json.dump(messages, open(path, "w"))
print(json.dumps({"type": "end", "id": "c-7", "text": "%s %d" % (response.headers["x-cinch-dropped"], len(calls))}))
"""


class Translated(gateway.Case):
    def setUp(self):
        super().setUp()
        self.write("profiles/talker.yaml", PROFILE)
        self.agent = self.write("ws/agent.py", AGENT)
        self.up = self.upstream(providers.Provider)

    def talk(self, format, *options):
        r = self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", "talker", "--set",
                           f'gateway.routes=[{{model: "*", upstream: "{self.up.url}", format: {format}, key: UP_KEY}}]',
                           *options, "do it", "--", "/usr/bin/python3", self.agent, env={"UP_KEY": "k" * 20})
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        return r

    def test_dropped_fields_are_reported(self):
        """In the response, in the event, and once per kind as a warning."""
        r = self.talk("chat")
        self.assertIn("tools[]: web_search_20250305", r.result["text"])
        dropped = r.events("model.call")[0]["context"]["dropped"]
        for name in ("metadata.user_id", "top_k", "tools[]: web_search_20250305"):
            self.assertIn(name, dropped)
            self.assertEqual(len([w for w in r.manifest["warnings"] if f": {name} was dropped" in w]), 1, name)

    def test_nothing_is_dropped_on_the_way_to_the_same_format(self):
        r = self.talk("anthropic")
        self.assertIn("None", r.result["text"])
        self.assertEqual(r.events("model.call")[0]["context"]["dropped"], [])
        self.assertFalse([w for w in r.manifest["warnings"] if "dropped" in w])

    def test_signatures_survive_a_continuation(self):
        for format in ("gemini", "responses", "chat"):
            with self.subTest(format):
                self.up.seen.clear()
                first = self.talk(format)
                self.assertTrue(json.loads(first.bytes("evidence", "signatures.json")))
                second = self.talk(format, "--resume", first.output)
                third = self.talk(format, "--resume", second.output)
                self.assertTrue(third.result["text"].endswith(" 0"), third.result["text"])
                last = json.dumps(self.up.seen[-1][1])
                self.assertEqual(last.count(providers.SIGNATURE), 2, last)
                self.assertNotIn("skip_thought_signature_validator", last)


if __name__ == "__main__":
    import unittest
    unittest.main()
