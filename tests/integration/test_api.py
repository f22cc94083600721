#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Adapter api-direct: a model without a harness. What it is asked, what the record says, and every way to end."""

import json
import os
import shutil
import signal
import subprocess

import harness
from provider import Cut, Fail, Hang, Provider, Say

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
          "additionalProperties": False}


class Case(harness.Case):
    def ask(self, goal, *options, **kw):
        return self.run_cinch("--adapter", "api-direct", "--model", "m-1", *options, goal, **kw)

    def upstream(self, p):
        """A foreign provider without a key; nothing is tried twice."""
        return ["--upstream", p.url, "--set", "throttle.max_attempts=1"]


class Asks(Case):
    def test_text(self):
        with Provider(Say("Hello.", usage=(120, 30), cache=(50, 0))) as p:
            r = self.ask("Say hello", *self.upstream(p))
        self.assertEqual((r.code, r.reason), (0, "success"), r.stderr)
        self.assertEqual(r.bytes("stdout.log"), b"Hello.\n")
        self.assertEqual(r.result["text"], "Hello.")
        body = p.requests[0].body
        self.assertEqual(p.requests[0].path, "/v1/messages")
        self.assertEqual((body["model"], body["max_tokens"], body["stream"]), ("m-1", 4096, True))
        self.assertIn("Say hello", json.dumps(body["messages"]))
        self.assertNotIn("system", body)
        m = r.metrics
        self.assertEqual((m["tokens_input"], m["tokens_output"], m["api_calls"], m["exit_code"]), (170, 30, 1, 0))
        self.assertEqual(m["ext"]["tokens_source"], "wire")
        self.assertEqual(set(m["ext"]["usage"]["difference"].values()) - {None}, {0})
        kinds = [e["entry_type"] for e in r.lines("transcript.jsonl") if e["event"] == "transcript.entry"]
        self.assertEqual(kinds, ["user_message", "assistant_message", "token_usage"])

    def test_the_tier_is_the_system_prompt(self):
        """The contract of Scylla: the dictionary says tier and prompt, the exit code is the adapter's own."""
        config = self.write("tier.json", json.dumps({"tier_id": "T1", "tier_prompt": "Think step by step."}))
        with Provider() as p:
            r = self.ask("Go", *self.upstream(p), "--config", config, "--exit-profile", "scylla")
        self.assertEqual(r.code, 0, r.stderr)
        self.assertIn("Think step by step.", json.dumps(p.requests[0].body["system"]))

    def test_sampling(self):
        with Provider() as p:
            self.ask("Go", *self.upstream(p), "--set", "agent.sampling.max_tokens=77",
                     "--set", "agent.sampling.temperature=0.5")
        self.assertEqual(p.requests[0].body["max_tokens"], 77)
        self.assertEqual(p.requests[0].body["temperature"], 0.5)

    SAMPLING = {"temperature": 0.5, "max_tokens": 77, "top_p": 0.9, "presence_penalty": 0.25,
                "frequency_penalty": -0.5, "stop": ["END", "STOP"], "seed": 11}

    def sample(self, name, provider, *options):
        self.write(f"profiles/{name}.yaml", f"name: by-{name}\ndriver: api\nargv: []\ngateway: {{format: {name}}}\n")
        task = self.write("task.yaml", json.dumps({
            "agent": {"adapter": f"by-{name}", "model": "m-1", "sampling": self.SAMPLING}, "prompt": "Go",
            "gateway": {"upstream": provider.url}}))
        return self.run_cinch("--adapter-dir", self.path("profiles"), task, *options)

    def test_every_field_of_sampling_is_sent_or_reported(self):
        with Provider() as p:
            r = self.ask("Go", *self.upstream(p), *(w for k, v in self.SAMPLING.items() for w in (
                "--set", f"agent.sampling.{k}={json.dumps(v)}")))
        body = p.requests[0].body
        self.assertEqual((body["temperature"], body["max_tokens"], body["stop_sequences"]), (0.5, 77, ["END", "STOP"]))
        for key in ("seed", "presence_penalty", "frequency_penalty"):
            self.assertNotIn(key, body)
            self.assertTrue(any(f"'agent.sampling.{key}' has no effect" in w for w in r.manifest["warnings"]), key)

    def test_every_field_of_sampling_in_chat_requests(self):
        with Provider() as p:
            r = self.sample("chat", p)
        self.assertEqual((r.reason, r.manifest["warnings"]), ("success", []), r.stderr)
        body = p.requests[0].body
        for key in ("temperature", "top_p", "presence_penalty", "frequency_penalty", "stop", "seed"):
            self.assertEqual(body[key], self.SAMPLING[key], key)
        self.assertEqual(body.get("max_tokens", body.get("max_completion_tokens")), 77)

    def test_sampling_under_strict(self):
        with Provider() as p:
            r = self.sample("anthropic", p, "--set", "eval.strict=true")
        self.assertEqual((r.code, r.reason, p.requests), (65, "bad_task", []), r.stderr)
        self.assertIn("'agent.sampling.seed' cannot be sent", r.result["error"])

    def test_sampling_of_another_adapter(self):
        r = self.run_command("true", options=["--set", "agent.sampling.seed=3"])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertIn("'agent.sampling.seed' has no effect: adapter 'command' sends no requests through the gateway, which "
                      "could set it",
                      r.manifest["warnings"])

    def test_structured_output(self):
        task = self.write("task.yaml", json.dumps({
            "agent": {"adapter": "api-direct", "model": "m-1"}, "prompt": "Count", "output": {"schema": SCHEMA}}))
        with Provider(Say('{"n": 3}')) as p:
            r = self.run_cinch(*self.upstream(p), task)
        self.assertEqual((r.reason, r.result["output"]), ("success", {"n": 3}), r.stderr)
        body = p.requests[0].body
        self.assertIn("json_schema", json.dumps(body))
        # The schema goes along by itself, so that the prompt need not repeat it.
        self.assertNotIn("JSON Schema", json.dumps(body["messages"]))
        with Provider(Say("three")) as p:
            r = self.run_cinch(*self.upstream(p), task)
        self.assertEqual((r.code, r.reason), (1, "failure"))

    def test_other_formats(self):
        """The upstream speaks another format: the gateway translates."""
        with Provider(Say("Hi", usage=(11, 7))) as p:
            r = self.ask("Go", "--set", f'gateway.routes=[{{model: "*", upstream: "{p.url}", format: chat}}]')
        self.assertEqual((r.reason, r.result["text"]), ("success", "Hi"), r.stderr)
        self.assertEqual(p.requests[0].path, "/v1/chat/completions")
        self.assertEqual(r.metrics["tokens_input"], 11)

    def test_script(self):
        script = self.write("model.yaml", 'side: false\nturns:\n  - {call: [{tool: add, unchecked: true}]}\n'
                                          '  - {think: hm, say: Done.}\n')
        r = self.ask("Go", "--set", f"gateway.script={script}")
        self.assertEqual((r.reason, r.result["text"]), ("success", "Done."), r.stderr)
        self.assertEqual(r.metrics["api_calls"], 2)
        kinds = [e["entry_type"] for e in r.lines("transcript.jsonl") if e["event"] == "transcript.entry"]
        self.assertEqual(kinds, ["user_message", "tool_use", "tool_result", "thinking", "assistant_message",
                                 "token_usage"])

    def test_every_format(self):
        """A profile may ask in any of the four formats; calls, thoughts and schemas go through all of them."""
        calls = "[{tool: a, unchecked: true}, {tool: b, unchecked: true}]"
        script = self.write("model.yaml", f"side: false\nturns:\n  - {{think: hm, call: {calls}}}\n"
                                          "  - {think: so, output: {n: 4}, usage: {input: 20, output: 9}}\n")
        for name in ("anthropic", "responses", "chat", "gemini"):
            with self.subTest(name):
                self.write(f"profiles/{name}.yaml", f"name: by-{name}\ndriver: api\nargv: []\n"
                                                    f"gateway: {{format: {name}}}\n"
                                                    "output_schema: {form: wrapped, native: true}\n")
                task = self.write("task.yaml", json.dumps({
                    "agent": {"adapter": f"by-{name}", "model": "m-1"}, "prompt": "Count",
                    "gateway": {"script": script}, "output": {"schema": SCHEMA}}))
                r = self.run_cinch("--adapter-dir", self.path("profiles"), task)
                self.assertEqual((r.reason, r.result["output"]), ("success", {"n": 4}), r.stderr)
                self.assertEqual(r.metrics["api_calls"], 2)
                self.assertEqual(set(r.metrics["ext"]["usage"]["difference"].values()) - {None}, {0})
                kinds = [e["entry_type"] for e in r.lines("transcript.jsonl") if e["event"] == "transcript.entry"]
                self.assertEqual(kinds.count("tool_result"), 2)


class Fails(Case):
    def test_refusals(self):
        for status, code, reason in ((401, 77, "auth"), (429, 75, "rate_limited"), (400, 1, "failure"),
                                     (500, 75, "provider_unavailable")):
            with self.subTest(status), Provider(Fail(status)) as p:
                r = self.ask("Go", *self.upstream(p))
                self.assertEqual((r.code, r.reason), (code, reason), r.stderr)
                self.assertIn(str(status).encode(), r.bytes("stderr.log"))

    def test_a_cut_answer(self):
        with Provider(Cut()) as p:
            r = self.ask("Go", *self.upstream(p))
        self.assertEqual((r.code, r.reason), (1, "failure"), r.stderr)
        self.assertEqual(r.metrics["exit_code"], 1)

    def test_no_prompt(self):
        r = self.run_cinch("--adapter", "api-direct", "--upstream", "http://127.0.0.1:9")
        self.assertEqual((r.code, r.reason), (66, "missing_input"))

    def test_no_key(self):
        r = self.ask("Go")
        self.assertEqual((r.code, r.reason), (77, "auth"))
        self.assertIn("ANTHROPIC_API_KEY", r.result["error"])

    def test_budget(self):
        script = self.write("model.yaml", "side: false\notherwise: {call: [{tool: x, unchecked: true}]}\n")
        r = self.ask("Go", "--set", f"gateway.script={script}", "--set", "limits.calls=3")
        self.assertEqual((r.code, r.reason), (78, "budget"), r.stderr)
        self.assertEqual(r.metrics["ext"]["calls"]["total"], 3)


class Ends(Case):
    def test_deadlines(self):
        for limit in ("timeout", "idle", "first_output"):
            with self.subTest(limit), Provider(Hang()) as p:
                r = self.ask("Go", *self.upstream(p), "--set", f"limits.{limit}=0.3")
                self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)
                self.assertEqual(len(p.requests), 1)

    def test_interrupt(self):
        for sent, reason in ((signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")):
            with self.subTest(sent), Provider(Hang()) as p:
                process, r = self.start("--adapter", "api-direct", "--model", "m", *self.upstream(p), "Go")
                harness.wait_until(lambda: p.requests, "the question")
                process.send_signal(sent)
                self.finish(process, r)
                self.assertEqual((r.code, r.reason), (128 + sent, reason), r.stderr)


class Demo(Case):
    def test_demo(self):
        """Nothing is needed but git and sh; nothing is left unless a place is named."""
        before = set(os.listdir(self.env["TMPDIR"]))
        r = self.cinch("demo", env={"PATH": "/usr/bin:/bin"})
        self.assertEqual(r.code, 0, r.stderr)
        text = r.stdout.decode()
        self.assertLess(text.index("not ok: 1900"), text.index("ok: 4 years"))
        self.assertIn(": 5 model calls, ", text)
        self.assertIn("+if [ $(($1 % 4)) -eq 0 ] && ", text)
        self.assertFalse([n for n in set(os.listdir(self.env["TMPDIR"])) - before if n.startswith("cinch-demo")])
        place = self.path("demo")
        self.assertEqual(self.cinch("demo", place).code, 0)
        done = subprocess.run(["sh", "./test.sh"], cwd=os.path.join(place, "repository"), capture_output=True)
        self.assertEqual(done.stdout, b"ok: 4 years\n")
        self.assert_valid(harness.Result(0, b"", b"", os.path.join(place, "run")))
        r = self.cinch("demo", "--format", "json")
        self.assertEqual(json.loads(r.stdout), {"passed": True, "repository": None, "record": None})
        r = self.cinch("demo", place)
        self.assertEqual(r.code, 73)
        self.assertIn(b"not empty", r.stderr)

    def test_the_example_is_a_task(self):
        shutil.copytree(os.path.join(harness.ROOT, "examples", "fix"), self.workspace, dirs_exist_ok=True)
        r = self.run_cinch(os.path.join(self.workspace, "task.yaml"))
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertIn(b"a/leap.sh", r.bytes("diff.patch"))


if __name__ == "__main__":
    harness.main()
