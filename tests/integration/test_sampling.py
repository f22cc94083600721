#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`agent.sampling` of adapters that have no way to hand it to their harness: the gateway sets it in the requests. What
arrives at the provider, what the record says about it, and what the provider would refuse."""

import json
import os
import re

import harness
from provider import AGENT, Provider, Say

FILE_TIMEOUT = 600

SAMPLING = {"temperature": 0.25, "max_tokens": 77, "top_p": 0.9, "presence_penalty": 0.25, "frequency_penalty": -0.5,
            "stop": ["END", "STOP"], "seed": 11}
FIRST = '{"model": "%s", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]'


def options_of(sampling):
    return [w for k, v in sampling.items() for w in ("--set", f"agent.sampling.{k}={json.dumps(v)}")]


class Case(harness.Case):
    def call(self, provider, sampling, body, *options):
        return self.run_command("/usr/bin/python3", self.write("ws/agent.py", AGENT), "1", "1", json.dumps(body),
                                options=["--upstream", provider.url, "--set", "throttle.max_attempts=1",
                                         *options_of(sampling), *options])


class Wire(Case):
    def test_anthropic(self):
        with Provider() as p:
            r = self.call(p, SAMPLING, {"model": "claude-sonnet-4-5"})
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(p.requests[0].raw.decode(), '{"temperature":0.25,"stop_sequences":["END","STOP"],'
                         + FIRST[1:].replace("100", "77") % "claude-sonnet-4-5" + "}")
        call = r.events("model.call")[0]["context"]
        self.assertEqual(call["edits"], ["temperature", "max_tokens", "stop"])
        self.assertEqual(call["unsent"], ["top_p", "seed", "presence_penalty", "frequency_penalty"])
        warnings = "\n".join(r.manifest["warnings"])
        self.assertIn("'agent.sampling.top_p' was not sent with every model request: this model does not take it with a "
                      "temperature", warnings)
        self.assertIn("'agent.sampling.seed' was not sent", warnings)

    def test_thinking(self):
        """Never a temperature with thinking; what else is asked for is set all the same."""
        with Provider() as p:
            r = self.call(p, {"temperature": 0.25, "max_tokens": 3000},
                          {"model": "claude-sonnet-4-5", "max_tokens": 9000,
                           "thinking": {"type": "enabled", "budget_tokens": 2000}})
        body = p.requests[0].body
        self.assertNotIn("temperature", body)
        self.assertEqual(body["max_tokens"], 3000)
        self.assertEqual(r.events("model.call")[0]["context"]["unsent"], ["temperature"])

    def test_chat(self):
        with Provider() as p:
            r = self.call(p, SAMPLING, {"kind": "chat", "model": "qwen3", "temperature": 1})
        body = p.requests[0].body
        for key in ("temperature", "max_tokens", "top_p", "presence_penalty", "frequency_penalty", "seed"):
            self.assertEqual(body[key], SAMPLING[key], key)
        self.assertEqual(body["stop"], ["END", "STOP"])
        self.assertTrue(p.requests[0].raw.decode().endswith(', "temperature": 0.25}'), "it is replaced in place")
        self.assertEqual(r.manifest["warnings"], [])

    def test_translated(self):
        """The upstream's format and model decide, not those of the client."""
        with Provider() as p:
            r = self.run_command("/usr/bin/python3", self.write("ws/agent.py", AGENT), "1", "1", "{}", options=[
                "--set", "gateway.routes=" + json.dumps([{"model": "*", "upstream": p.url, "format": "chat",
                                                          "name": "qwen3"}]), *options_of(SAMPLING)])
        body = p.requests[0].body
        for key in ("temperature", "max_tokens", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop"):
            self.assertEqual(body[key], SAMPLING[key], key)
        self.assertEqual(len(r.events("model.call")[0]["context"]["edits"]), 7)
        self.assertEqual(r.manifest["warnings"], [])

    def test_auxiliary_requests_are_left_alone(self):
        with Provider() as p:
            r = self.call(p, SAMPLING, {"system": "You are a title generator."})
        self.assertEqual(json.loads(p.requests[0].raw)["max_tokens"], 100)
        self.assertNotIn("temperature", p.requests[0].body)
        call = r.events("model.call")[0]["context"]
        self.assertEqual((call["side"], "edits" in call), ("title", False))

    def test_budget_counts_with_the_limit_that_is_set(self):
        with Provider(Say("hi", usage=(10, 5))) as p:
            r = self.call(p, {"max_tokens": 50}, {"max_tokens": 9000}, "--max-output-tokens", "60")
        self.assertEqual((r.reason, p.requests[0].body["max_tokens"]), ("success", 50), r.stderr)

    def test_strict(self):
        with Provider() as p:
            r = self.call(p, {"seed": 3}, {}, "--set", "eval.strict=true")
        self.assertEqual((r.code, r.reason, p.requests), (65, "bad_task", []), r.stderr)
        self.assertIn("'agent.sampling.seed' cannot be sent, and eval.strict demands it: anthropic requests have no such "
                      "field", r.result["error"])

    def test_replay(self):
        """A run with sampling replays with its own settings."""
        with Provider() as p:
            first = self.call(p, {"max_tokens": 50}, {})
        self.assertEqual(first.reason, "success", first.stderr)
        again = self.run_command("/usr/bin/python3", self.write("ws/agent.py", AGENT), "1", "1", "{}", options=[
            "--cassette", first.path("evidence/traffic.cassette"), "--set", "agent.sampling.max_tokens=50"])
        self.assertEqual(again.reason, "success", again.stderr)


def masked(text, run):
    """Without what differs between two runs of one task."""
    text = text.replace(run.path(), "RUN").split('"client_metadata"')[0]  # codex writes it last, in any order
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|cch=[0-9a-f]+|[0-9a-f]{32,}", "ID", text)


@harness.about_programs
class Real(harness.Case):
    """Real programs: the wire carries what the task asks for, and nothing else differs."""

    def run_real(self, name, provider, *options):
        self.env["PATH"] = os.path.dirname(self.real(name)) + ":" + self.env["PATH"]
        r = self.run_cinch("--adapter", name, "--timeout", "100s", "--upstream", provider.url, *options, "say hello")
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        return r

    def compare(self, name, model, sampling, undo):
        """Bodies with and without sampling: but for its members, which `undo` takes out, they are equal."""
        bodies = []
        for wish in ({}, sampling):
            with Provider(Say("hello")) as p:
                r = self.run_real(name, p, "--model", model, *options_of(wish))
            calls = [e["context"] for e in r.events("model.call")]
            main = [q.raw.decode() for q, call in zip(p.requests, calls) if call["side"] is None]
            self.assertEqual(len(p.requests), len(calls))
            bodies.append(masked(main[0], r))
        own = re.search(r'"max_tokens":[0-9]+', bodies[0])  # of the harness, for its model
        for new, old in undo:
            old = own.group(0) if old is None else old
            self.assertIn(new, bodies[1])
            bodies[1] = bodies[1].replace(new, old, 1)
        self.assertEqual(bodies[0], bodies[1])
        return r

    def test_claude(self):
        """It thinks, so that a temperature would be refused."""
        r = self.compare("claude-code", "claude-opus-5", {"temperature": 0.25, "max_tokens": 1234, "stop": ["XYZ"]},
                         [('{"stop_sequences":["XYZ"],', "{"), ('"max_tokens":1234', None)])
        calls = [e["context"] for e in r.events("model.call") if e["context"]["side"] is None]
        self.assertEqual((calls[0]["edits"], calls[0]["unsent"]), (["max_tokens", "stop"], ["temperature"]))
        self.assertIn("'agent.sampling.temperature' was not sent with every model request: anthropic does not take it with "
                      "thinking", r.manifest["warnings"])

    def test_codex(self):
        r = self.compare("codex", "gpt-4.1", {"temperature": 0.25, "max_tokens": 1234, "top_p": 0.5},
                         [('{"temperature":0.25,"max_output_tokens":1234,"top_p":0.5,', "{")])
        self.assertEqual(r.events("model.call")[0]["context"]["edits"], ["temperature", "max_tokens", "top_p"])
        self.assertEqual(r.manifest["warnings"], [])


if __name__ == "__main__":
    harness.main()
