#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Fallbacks of a route: which failures lead to the next upstream, what is recorded and charged, and what is refused as
wrong input."""

import json
import socket

import gateway
import harness
from provider import AGENT, Cut, Fail, Gone, Provider, Say

PRICES = """
version: "1"
source: test
models:
  - {match: [cheap], input: 1, output: 1}
  - {match: [dear], input: 1000, output: 1000}
"""


class Case(harness.Case):
    def call(self, routes, *options, calls=1, how=None):
        agent = self.write("ws/agent.py", AGENT)
        r = self.run_command("/usr/bin/python3", agent, str(calls), "1", json.dumps(how or {}), options=[
            "--set", "gateway.routes=" + json.dumps(routes), "--set", "throttle.base_ms=10", *options])
        said = r.bytes("stdout.log")
        r.said = json.loads(said) if said.startswith(b"{") else None
        r.calls = [e["context"] for e in r.events("model.call")]
        return r

    def route(self, first, second, **how):
        return [{"model": "*", "upstream": first.url, "fallback": [{"upstream": second.url, **how}]}]


def name_of(provider):
    return provider.url.split("//")[1]


class Runs(Case):
    def test_server_errors(self):
        """Two attempts at the first, then the second serves, in its own format and with its own model."""
        with Provider(Fail(500)) as a, Provider(Say("hi", usage=(20, 5))) as b:
            r = self.call(self.route(a, b, format="chat", name="qwen3"))
        self.assertEqual((r.reason, r.said["statuses"]), ("success", [200]), r.stderr)
        self.assertEqual((len(a.requests), len(b.requests)), (2, 1))
        self.assertEqual((b.requests[0].path, b.requests[0].body["model"]), ("/v1/chat/completions", "qwen3"))
        self.assertEqual(json.loads(r.said["last"])["content"][0]["text"], "hi")
        call = r.calls[0]
        self.assertEqual((call["upstream"], call["fallback_from"], call["model"]), (name_of(b), [name_of(a)], "qwen3"))
        self.assertEqual((call["attempts"], call["translated"], call["status"]), (3, True, 200))
        self.assertIn(f"model calls were sent to the fallback '{name_of(b)}', because '{name_of(a)}' failed: "
                      "Internal Server Error", r.manifest["warnings"])
        rows = {row["upstream"]: row for row in r.json("evidence/ledger.json")["models"]}
        self.assertEqual((rows[name_of(a)]["calls"], rows[name_of(a)]["attempts"]), (0, 2))
        self.assertEqual((rows[name_of(b)]["calls"], rows[name_of(b)]["attempts"]), (1, 1))

    def test_failures_of_the_upstream(self):
        for status in (401, 403, 404, 402):
            with self.subTest(status), Provider(Fail(status)) as a, Provider() as b:
                r = self.call(self.route(a, b))
                self.assertEqual((r.said["statuses"], len(a.requests), len(b.requests)), ([200], 1, 1))

    def test_a_long_pause(self):
        with Provider(Fail(429, {"retry-after": "20"})) as a, Provider() as b:
            r = self.call(self.route(a, b))
        self.assertEqual((r.said["statuses"], len(a.requests)), ([200], 1))

    def test_nobody_listens(self):
        with socket.socket() as s, Provider() as b:
            s.bind(("127.0.0.1", 0))
            r = self.call([{"model": "*", "upstream": f"http://127.0.0.1:{s.getsockname()[1]}", "fallback": [{"upstream": b.url}]}])
        self.assertEqual((r.said["statuses"], len(b.requests)), ([200], 1))
        self.assertEqual(r.calls[0]["upstream"], name_of(b))

    def test_a_request_that_is_wrong_stays_wrong(self):
        with Provider(Fail(400)) as a, Provider() as b:
            r = self.call(self.route(a, b))
        self.assertEqual((r.said["statuses"], len(a.requests), len(b.requests)), ([400], 1, 0))
        self.assertNotIn("fallback_from", r.calls[0])

    def test_not_after_the_first_byte(self):
        with Provider(Cut()) as a, Provider() as b:
            r = self.call(self.route(a, b), how={"stream": True})
        self.assertEqual((len(a.requests), len(b.requests)), (1, 0), r.stderr)

    def test_all_fail(self):
        with Provider(Fail(500)) as a, Provider(Fail(503)) as b:
            r = self.call(self.route(a, b), "--set", "throttle.max_attempts=2")
        self.assertEqual((r.reason, r.said["statuses"]), ("provider_unavailable", [503]), r.stderr)
        self.assertEqual((len(a.requests), len(b.requests)), (2, 2))
        self.assertEqual((r.calls[0]["upstream"], r.calls[0]["fallback_from"]), (name_of(b), [name_of(a)]))

    def test_replay(self):
        with Provider(Fail(500)) as a, Provider(Say("hi")) as b:
            first = self.call(self.route(a, b, format="chat", name="qwen3"))
        again = self.run_command("/usr/bin/python3", self.path("ws/agent.py"), "1", "1", "{}",
                                 options=["--cassette", first.path("evidence/traffic.cassette")])
        self.assertEqual(again.reason, "success", again.stderr)
        self.assertEqual(json.loads(json.loads(again.bytes("stdout.log"))["last"])["content"][0]["text"], "hi")

    def test_sampling_follows_the_upstream_that_serves(self):
        with Provider(Fail(500)) as a, Provider() as b:
            r = self.call(self.route(a, b, format="chat", name="qwen3"), "--set", "agent.sampling.seed=3")
        self.assertEqual((b.requests[0].body["seed"], r.calls[0]["edits"]), (3, ["seed"]))
        self.assertNotIn("seed", a.requests[0].body)


class Budget(Case):
    def test_one_call_is_one_call(self):
        with Provider(Fail(500)) as a, Provider() as b:
            r = self.call(self.route(a, b), "--max-calls", "1")
        self.assertEqual((r.reason, r.metrics["api_calls"]), ("success", 1), r.stderr)

    def priced(self, first, second, *options, plan=None):
        prices = self.write("prices.yaml", PRICES)
        with Provider(plan or Fail(500)) as a, Provider(Say("hi", usage=(10, 5))) as b:
            r = self.call([{"model": "*", "upstream": a.url, "name": first,
                            "fallback": [{"upstream": b.url, "name": second}]}],
                          "--set", f"gateway.prices={prices}", *options)
        return r, a, b

    def test_each_has_its_price(self):
        r, _, _ = self.priced("dear", "cheap", "--max-usd", "1")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertAlmostEqual(r.metrics["cost_usd"], 15e-6)

    def test_each_is_reserved_for_itself(self):
        """There is room for the cheap model, not for the dear one: nothing is sent to it."""
        r, a, b = self.priced("cheap", "dear", "--max-usd", "0.01")
        self.assertEqual((r.reason, len(a.requests), len(b.requests)), ("budget", 2, 0), r.stderr)
        self.assertEqual(r.metrics["cost_usd"], 0)

    def test_an_attempt_that_got_lost_is_charged_at_its_own_price(self):
        """The first closes the connection after it has read the request: it may bill for it."""
        r, a, b = self.priced("dear", "cheap", "--max-usd", "1", plan=Gone())
        self.assertEqual(r.reason, "success", r.stderr)
        rows = {row["model"]: row for row in r.json("evidence/ledger.json")["models"]}
        self.assertGreater(rows["dear"]["cost_usd"], 0.1)
        self.assertAlmostEqual(rows["cheap"]["cost_usd"], 15e-6)
        self.assertLess(r.metrics["cost_usd"], 1)
        self.assertEqual(r.metrics["api_calls"], 1)

    def test_no_price(self):
        with Provider() as a, Provider() as b:
            r = self.call([{"model": "*", "upstream": a.url, "name": "claude-opus-5",
                            "fallback": [{"upstream": b.url, "name": "nameless"}]}], "--max-usd", "1")
        self.assertEqual((r.reason, a.requests), ("bad_task", []))
        self.assertIn("model 'nameless' has no price", r.result["error"])


class Wrong(Case):
    def refuse(self, fallback, *texts):
        task = self.write("task.yaml", json.dumps({"agent": {"adapter": "command", "command": ["true"]}, "gateway": {
            "routes": [{"model": "*", "upstream": "http://127.0.0.1:1", "fallback": fallback}]}}))
        r = self.run_cinch(task)
        self.assertEqual(r.code, 65, r.stderr)
        for text in texts:
            self.assertIn(text, r.result["error"])

    def test_wrong_input(self):
        self.refuse([{"name": "x"}], "upstream")
        self.refuse([{"upstream": "http://127.0.0.1:1", "modle": "x"}], "modle")
        self.refuse([{"upstream": "ftp://x"}], "'ftp://x' is not an address")
        self.refuse([{"upstream": "http://127.0.0.1:1", "format": "xml"}], "format")
        self.refuse([{"upstream": "http://127.0.0.1:1"}] * 9, "more than 8 upstreams")


class Standalone(gateway.Case):
    def test_routes(self):
        with Provider(Fail(401)) as a, Provider(Say("hi")) as b:
            g = self.gateway("--upstream", f"a={a.url}", "--upstream", f"b={b.url},format=chat", "--route", "*=a,b:qwen3")
            answer = g.request("POST", "/v1/messages", json.dumps(
                {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}))
            self.assertEqual((answer.status, answer.json()["content"][0]["text"]), (200, "hi"))
            self.assertEqual(b.requests[0].body["model"], "qwen3")
            self.assertIn(b"cinch_fallbacks_total 1", g.request("GET", "/metrics").body)

    def test_an_unknown_name(self):
        r = self.cinch("gateway", "--upstream", "a=http://127.0.0.1:1", "--route", "*=a,b")
        self.assertIn(b"fallback 'b': there is no upstream 'b'", r.stderr)


if __name__ == "__main__":
    harness.main()
