#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A budget holds whatever is in flight; a refusal ends the run with reason budget; nothing is spent beyond it."""

import json
import os
import threading

import harness
from provider import AGENT, LEAVER, Provider, Say, Work

FILE_TIMEOUT = 600


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.agent = self.write("ws/agent.py", AGENT)

    def call(self, provider, *options, calls=1, parallel=1, how=None, **kw):
        """An agent that makes so many calls through the gateway."""
        line = ["/usr/bin/python3", self.agent, str(calls), str(parallel), json.dumps(how or {})]
        r = self.run_command(*line, options=["--upstream", provider.url, *options], **kw)
        said = r.bytes("stdout.log")
        r.said = json.loads(said) if said.startswith(b"{") else None
        return r


class Calls(Case):
    def test_32_at_once_with_a_budget_for_10(self):
        gate = threading.Event()
        with Provider(Say(gate=gate)) as p:
            opener = threading.Thread(target=lambda: (harness.wait_until(
                lambda: len(p.requests) >= 10, "ten calls"), gate.set()))
            opener.start()
            r = self.call(p, "--max-calls", "10", calls=32, parallel=32)
            opener.join()
        self.assertEqual(r.said["statuses"].count(200), 10)
        self.assertEqual(r.said["statuses"].count(400), 22)
        self.assertEqual(len(p.requests), 10)
        self.assertEqual((r.code, r.reason), (78, "budget"))
        self.assertEqual(r.metrics["api_calls"], 10)
        self.assertEqual(r.metrics["ext"]["calls"]["refused"], 22)
        self.assertEqual(len(r.events("gateway.refused")), 22)
        self.assertEqual(len(r.events("model.call")), 10)

    def test_enough_is_enough(self):
        with Provider() as p:
            r = self.call(p, "--max-calls", "3", calls=3)
        self.assertEqual((r.code, r.reason), (0, "success"))

    def test_the_refusal_is_one_that_nobody_retries(self):
        with Provider() as p:
            r = self.call(p, "--max-calls", "1", calls=2)
        body = json.loads(r.said["last"])
        self.assertEqual(body["type"], "error")
        self.assertIn("all 1 calls are used", body["error"]["message"])
        self.assertEqual(r.said["refused"]["x-cinch-reason"], "budget")
        self.assertEqual(r.said["refused"]["x-cinch-limit"], "calls")
        self.assertEqual(r.said["refused"]["x-should-retry"], "false")

    def test_a_harness_that_does_not_stop_is_stopped(self):
        agent = self.write("ws/stubborn.py", AGENT.replace("sys.exit(0", "import time\ntime.sleep(600)\nsys.exit(0"))
        with Provider() as p:
            r = self.run_command("/usr/bin/python3", agent, "2", "1", options=[
                "--upstream", p.url, "--max-calls", "1", "--grace", "1s"])
        self.assertEqual((r.code, r.reason), (78, "budget"))


class Tokens(Case):
    def test_what_is_left_can_be_used_and_no_more(self):
        """Each call may write 1000 tokens; the last one is cut down to what is left."""
        with Provider(Say(usage=(10, 900))) as p:
            r = self.call(p, "--max-output-tokens", "2000", calls=5, how={"max_tokens": 1000})
        limits = [q.body["max_tokens"] for q in p.requests]
        self.assertEqual(limits, [1000, 1000, 200])
        self.assertEqual(r.reason, "budget")

    def test_calls_wait_for_what_others_give_back(self):
        """Room for one call's reservation at a time; all pass, one after the other."""
        with Provider(Say(usage=(10, 10))) as p:
            r = self.call(p, "--max-tokens", "3000", calls=8, parallel=8, how={"max_tokens": 2000})
        self.assertEqual(r.said["statuses"], [200] * 8)
        self.assertEqual((r.code, r.reason), (0, "success"))
        self.assertEqual(r.metrics["tokens_total"], 160)

    def test_input(self):
        """The prompt is estimated before and counted after, caches included."""
        with Provider(Say(usage=(3, 5), cache=(4, 1))) as p:  # what "hello" costs
            r = self.call(p, "--max-input-tokens", "50", calls=10)
        wire = r.metrics["ext"]["usage"]["wire"]
        used = wire["input"] + wire["cache_read"] + wire["cache_write"]
        self.assertLessEqual(used, 50)
        self.assertEqual(used, 8 * len(p.requests))
        self.assertGreater(used, 16)
        self.assertEqual(r.said["statuses"][-1], 400)
        self.assertEqual(r.code, 78)


class Leaving(Case):
    """Clients and providers that break off: what the provider bills never exceeds the budget, and the record never
    shows less than what is billed."""

    MESSAGES = {"model": "claude-opus-5", "messages": [{"role": "user", "content": "hello"}]}
    PATHS = {
        "anthropic": ("/v1/messages", {**MESSAGES, "max_tokens": 2000}),
        "chat": ("/v1/chat/completions", {**MESSAGES, "max_tokens": 2000}),
        "responses": ("/v1/responses", {"model": "claude-opus-5", "input": "hello", "max_output_tokens": 2000}),
        "gemini": ("/v1beta/models/claude-opus-5:streamGenerateContent?alt=sse",
                   {"contents": [{"role": "user", "parts": [{"text": "hello"}]}],
                    "generationConfig": {"maxOutputTokens": 2000}}),
    }

    def setUp(self):
        super().setUp()
        self.leaver = self.write("ws/leaver.py", LEAVER)

    def leave(self, provider, *options, calls=12, read=None, path=None, body=None):
        r = self.run_command("/usr/bin/python3", self.leaver, str(calls), path, json.dumps(read), json.dumps(body),
                             options=["--upstream", provider.url, *options])
        said = r.bytes("stdout.log")
        r.said = json.loads(said) if said.startswith(b"{") else None
        return r

    def check(self, r, provider, limit):
        """The provider's own count is within the limit and within what the record shows."""
        billed_in, billed_out = provider.spent()
        wire = r.metrics["ext"]["usage"]["wire"]
        self.assertLessEqual(billed_out, limit)
        self.assertLessEqual(billed_out, wire["output"])
        self.assertLessEqual(billed_in, wire["input"])
        ledger = json.loads(r.bytes("evidence/ledger.json"))["wire"]
        self.assertEqual((ledger["input"], ledger["output"]), (wire["input"], wire["output"]))

    def test_streams_that_the_client_cuts(self):
        """Read to the end all the same: the count is exact."""
        for name, (path, body) in self.PATHS.items():
            with self.subTest(format=name), Provider(Work(output=1500, pause=0.1)) as p:
                r = self.leave(p, "--max-output-tokens", "10000", read=2000, path=path,
                               body={**body, "stream": True, **({"stream_options": {"include_usage": True}}
                                                               if name == "chat" else {})})
                self.check(r, p, 10000)
                self.assertEqual(p.spent()[1], r.metrics["ext"]["usage"]["wire"]["output"])
                self.assertEqual(r.reason, "budget")

    def test_streams_that_do_not_ask_for_their_usage(self):
        """The gateway asks for it, charges what is reported, and keeps the additional chunk to itself."""
        path, body = self.PATHS["chat"]
        for more in ({}, {"stream_options": None}, {"stream_options": {"include_usage": False, "x": 1}}):
            with self.subTest(more=more), Provider(Work(output=500)) as p:
                r = self.leave(p, "--max-output-tokens", "10000", calls=6, path=path, body={**body, "stream": True, **more})
                self.assertEqual(r.said["statuses"], [200] * 6)
                self.assertEqual(r.reason, "success")
                self.check(r, p, 10000)
                wire = r.metrics["ext"]["usage"]["wire"]
                self.assertEqual((p.spent()[1], wire["estimated"]), (wire["output"], 0))
                for q in p.requests:
                    self.assertTrue(q.body["stream_options"]["include_usage"])
                    self.assertEqual({k: v for k, v in q.body.items() if k != "stream_options"}, {**body, "stream": True})
                self.assertEqual([e["context"]["edits"] for e in r.events("model.call")],
                                 [["stream_options.include_usage"]] * 6)
                self.assertIn("[DONE]", r.said["last"])
                self.assertIn('"finish_reason": "stop"', r.said["last"])
                self.assertNotIn("usage", r.said["last"])

    def test_what_a_server_may_read_differently(self):
        """Names that matter in another case, and predicted outputs, whose rejected part is billed beyond the limit."""
        path, body = self.PATHS["chat"]
        for more in ({"N": 50}, {"Max_Tokens": 90000}, {"prediction": {"type": "content", "content": "x" * 9000}}):
            with self.subTest(more=list(more)), Provider(Work(output=500)) as p:
                r = self.leave(p, "--max-output-tokens", "10000", calls=1, path=path, body={**body, **more})
                self.assertEqual((r.said["statuses"], p.requests), ([400], []))
        with Provider(Work(output=500)) as p:  # without a limit nothing of it matters
            r = self.leave(p, calls=1, path=path, body={**body, "prediction": {"type": "content", "content": "x"}})
            self.assertEqual(r.said["statuses"], [200])

    def test_prompts_of_token_ids(self):
        """Two bytes each: more tokens than text of that length has."""
        self.leaver = self.write("ws/leaver.py", LEAVER.replace("json.dumps(body)", "json.dumps(body, separators=(',', ':'))"))
        for path, name in (("/v1/embeddings", "input"), ("/v1/completions", "prompt")):
            body = {"model": "claude-opus-5", name: [1] * 700, "max_tokens": 20}
            self.assertLess(len(json.dumps(body, separators=(",", ":"))) // 3, 600)
            with self.subTest(path=path), Provider() as p:
                r = self.leave(p, "--max-input-tokens", "600", calls=1, path=path, body=body)
                self.assertEqual((r.said["statuses"], p.requests, r.reason), ([400], [], "budget"))

    def test_nothing_is_asked_for_without_a_limit(self):
        """Byte for byte as the client sent it, and as the provider answered."""
        path, body = self.PATHS["chat"]
        for more, options in (({}, ()), ({"stream_options": {"include_usage": True}}, ("--max-output-tokens", "10000"))):
            sent = {**body, "stream": True, **more}
            with self.subTest(more=more), Provider(Work(output=500)) as p:
                r = self.leave(p, *options, calls=1, path=path, body=sent)
                self.assertEqual(p.requests[0].raw, json.dumps(sent).encode())
                self.assertNotIn("edits", r.events("model.call")[0]["context"])
                self.assertEqual("usage" in r.said["last"], bool(more))

    def test_clients_that_leave_before_the_head(self):
        with Provider(Work(output=1500, pause=0.3)) as p:
            path, body = self.PATHS["anthropic"]
            r = self.leave(p, "--max-tokens", "20000", calls=31, read=0, path=path, body=body)
        self.check(r, p, 20000)
        self.assertEqual(p.spent()[1], r.metrics["ext"]["usage"]["wire"]["output"])

    def test_streams_that_the_provider_cuts(self):
        """Nobody knows what was generated: all that was reserved is charged."""
        for name, (path, body) in self.PATHS.items():
            with self.subTest(format=name), Provider(Work(output=1500, cut=0.9)) as p:
                r = self.leave(p, "--max-output-tokens", "10000", path=path, body={**body, "stream": True})
                self.check(r, p, 10000)
                self.assertEqual(r.metrics["ext"]["usage"]["wire"]["output"], 10000)
                self.assertEqual(r.metrics["ext"]["usage"]["wire"]["estimated"], len(p.billed))

    def test_each_response_of_a_request_is_reserved(self):
        for name, more in (("chat", {"n": 128}), ("chat", {"best_of": 64, "n": 1}),
                           ("gemini", {"generationConfig": {"maxOutputTokens": 2000, "candidateCount": 8}})):
            path, body = self.PATHS[name]
            with self.subTest(format=name), Provider(Work(output=2000)) as p:
                r = self.leave(p, "--max-tokens", "20000", calls=3, path=path, body={**body, **more})
                self.check(r, p, 20000)
        with Provider() as p:
            path, body = self.PATHS["chat"]
            r = self.leave(p, "--max-tokens", "20000", calls=1, path=path, body={**body, "n": "many"})
            self.assertEqual((r.said["statuses"], p.requests), ([400], []))

    def test_a_response_in_the_background(self):
        path, body = self.PATHS["responses"]
        with Provider() as p:
            r = self.leave(p, "--max-tokens", "20000", calls=2, path=path, body={**body, "background": True, "store": True})
            self.assertEqual((r.said["statuses"], p.requests), ([400, 400], []))
            self.assertIn("background", r.said["last"])
            self.assertEqual(r.reason, "success")  # the budget is not used up
            self.leave(p, calls=1, path=path, body={**body, "background": True})
            self.assertEqual(len(p.requests), 1)

    def test_a_stream_without_usage(self):
        """Its text says nothing about hidden thoughts."""
        path, body = self.PATHS["chat"]
        with Provider(Work(output=1500, silent=True, shown=0.1)) as p:
            r = self.leave(p, "--max-output-tokens", "10000", path=path, body={**body, "stream": True})
        self.check(r, p, 10000)
        self.assertEqual(r.metrics["ext"]["usage"]["wire"]["output"], 10000)

    def leave_under_way(self, provider, *options):
        """A run whose agent has ended while the provider still works on its call."""
        path, body = self.PATHS["anthropic"]
        process, r = self.start("--upstream", provider.url, *options, "--", "/usr/bin/python3", self.leaver, "1", path,
                                "0", json.dumps(body))
        harness.wait_until(lambda: provider.billed and self.agent_has_ended(r), "the end of the agent")
        return process, r

    def agent_has_ended(self, r):
        try:
            return any(e["event"] == "process.exited" for e in r.events())
        except (OSError, ValueError):
            return False  # it is being written

    def test_the_run_waits_for_what_it_left_under_way(self):
        gate = threading.Event()
        with Provider(Work(output=1500, before_head=gate)) as p:
            process, r = self.leave_under_way(p)
            self.assertIsNone(process.poll())
            gate.set()
            self.finish(process, r)
        self.assertEqual((r.code, r.reason), (0, "success"))
        wire = r.metrics["ext"]["usage"]["wire"]
        self.assertEqual((wire["output"], wire["estimated"]), (1500, 0))
        self.assertEqual(len(r.events("model.call")), 1)

    def test_a_run_that_is_killed_meanwhile_charges_the_reservation(self):
        with Provider(Work(output=1500, before_head=threading.Event())) as p:
            process, r = self.leave_under_way(p)
            process.terminate()
            self.finish(process, r)
        wire = json.loads(r.bytes("evidence/ledger.json"))["wire"]
        self.assertEqual((wire["output"], wire["estimated"], wire["calls"]), (2000, 1, 1))
        self.assertGreaterEqual(wire["input"], p.spent()[0])


class Dollars(Case):
    PRICES = "version: test-1\nsource: a test\nmodels:\n  - {match: [claude-opus-5], input: 1000, output: 1000}\n"

    def test_the_last_cent(self):
        prices = self.write("prices.yaml", self.PRICES)
        with Provider(Say(usage=(8, 100))) as p:  # 0.108 each
            r = self.call(p, "--max-usd", "0.5", "--set", f"gateway.prices={prices}", calls=6)
        self.assertEqual(r.code, 78)
        self.assertLessEqual(r.metrics["cost_usd"], 0.5)
        self.assertGreater(r.metrics["cost_usd"], 0.38)
        self.assertEqual(r.metrics["ext"]["cost_source"], "table")
        self.assertEqual(r.metrics["ext"]["prices"], {"version": "test-1", "source": "a test"})

    def test_a_model_without_a_price(self):
        with Provider() as p:
            r = self.call(p, "--max-usd", "1", how={"model": "nobody-knows"})
        self.assertEqual((r.code, len(p.requests)), (78, 0))
        self.assertIn("no price", r.result["error"])


    def test_a_model_of_the_task_without_a_price(self):
        """Nothing starts: the task names the model, so the mistake is known before."""
        with Provider() as p:
            for options in (["--model", "nobody-knows"],
                            ["--set", f'gateway.routes=[{{model: "*", name: nobody-knows, upstream: "{p.url}"}}]']):
                r = self.run_command("touch", self.path("started"), options=["--upstream", p.url, "--max-usd", "1", *options])
                self.assertEqual((r.code, r.reason), (65, "bad_task"), r.stderr)
                self.assertIn("model 'nobody-knows' has no price, so the limit of 1 dollars cannot be enforced",
                              r.result["error"])
        self.assertFalse(os.path.exists(self.path("started")))
        self.assertEqual(p.requests, [])


class Above(Case):
    """A gateway behind a gateway: the inner run's upstream is the outer run's gateway. The outer run
    has no sandbox, because the inner one makes its own."""

    def test_the_budget_above_holds_for_both(self):
        inner_out = self.path("inner")
        inner = [harness.CINCH, "run", "--env", "CINCH_TEST_MARK", "--workspace", self.workspace,
                 "--output", inner_out, "--set",
                 'gateway.routes=[{model: "*", upstream: "URL", key: CINCH_GATEWAY_TOKEN}]', "--",
                 "/usr/bin/python3", self.agent, "5", "1", "{}"]
        text = "\n".join(["import os, subprocess, sys", f"line = {inner!r}",
                          "line = [w.replace('URL', os.environ['CINCH_GATEWAY_URL']) for w in line]",
                          "sys.exit(subprocess.run(line).returncode)"])
        outer = self.write("ws/outer.py", text)
        with Provider(Say(usage=(10, 5))) as p:
            r = self.run_command("/usr/bin/python3", outer, options=["--upstream", p.url, "--max-calls", "3", "--sandbox", "off"])
        inside = harness.Result(None, b"", b"", inner_out)
        self.assert_valid(inside)
        self.assertEqual(len(p.requests), 3)
        self.assertEqual((r.reason, inside.reason), ("budget", "budget"))
        self.assertEqual(r.metrics["tokens_total"], 45)
        self.assertEqual(inside.metrics["tokens_total"], 45)
        self.assertEqual([e["context"]["kind"] for e in inside.events("gateway.refused")], ["above"] * 2)
        self.assertIn("all 3 calls are used", inside.result["error"])


if __name__ == "__main__":
    harness.main()
