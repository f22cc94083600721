#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every run's own gateway: who gets which secret, what the record says about the traffic, scripts and cassettes."""

import json
import os
import subprocess
import threading

import harness
from provider import AGENT, Provider, Say, Work
from test_budget import Case

FILE_TIMEOUT = 600
KEY = "sk-real-0123456789abcdef"


class Secrets(Case):
    def routes(self, p):
        return ["--set", f'gateway.routes=[{{model: "*", upstream: "{p.url}", key: PROVIDER_KEY}}]']

    def test_the_credential_stays_with_cinch(self):
        """Not in the child's environment, even if it is asked for; not in any file; only at the provider."""
        spy = self.write("ws/spy.py", "import os, runpy, sys\nprint(dict(os.environ), file=sys.stderr)\n"
                                   "runpy.run_path(sys.argv.pop(1))\n")
        for more in ([], ["--inherit-env"], ["--env", "PROVIDER_KEY"], ["--secret", "PROVIDER_KEY"]):
            with self.subTest(more), Provider() as p:
                r = self.run_cinch(*self.routes(p), *more, "--read", self.agent, "--", "/usr/bin/python3", spy, self.agent, "1", "1",
                                   env={"PROVIDER_KEY": KEY})
                self.assertEqual(r.reason, "success", r.stderr)
                self.assertIn(KEY, (p.requests[0].headers.get("x-api-key", ""),
                                    p.requests[0].headers.get("authorization", "").replace("Bearer ", "")))
                self.assertNotIn(b"PROVIDER_KEY'", r.bytes("stderr.log"))
                for folder, _, names in os.walk(r.output):
                    for name in names:
                        with open(os.path.join(folder, name), "rb") as f:
                            self.assertNotIn(KEY.encode(), f.read(), name)

    def test_no_key_displaces_the_token(self):
        """The harness holds the run's token alone, whatever responds and however a key is given."""
        names = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
        spy = self.write("ws/spy.py", "import os\nfrom urllib.request import Request, urlopen\n"
                         f"names = {names!r}\n"
                         "print([os.environ.get(n) == os.environ['CINCH_GATEWAY_TOKEN'] for n in names])\n"
                         "urlopen(Request(os.environ['CINCH_GATEWAY_URL'] + '/v1/messages', b'{\"model\": \"m\", "
                         "\"max_tokens\": 9, \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}',\n"
                         "    {'x-api-key': os.environ['ANTHROPIC_API_KEY']}))\n")
        script = self.write("s.yaml", "steps: [{say: hello}]\n")
        config = self.write("config.json", json.dumps({"api_keys": {name: KEY for name in names}}))
        keys = {name: KEY for name in names}
        cassette = None
        with Provider() as p:
            for model in (["--script", script], ["--upstream", p.url], ["--cassette"]):
                model = [*model, cassette] if model == ["--cassette"] else model
                for given in (["--config", config], [w for n in names for w in ("--secret", n)],
                              [w for n in names for w in ("--env", n)],
                              [w for n in names for w in ("--env", f"{n}={KEY}")]):
                    with self.subTest(model=model[0], given=given[0]):
                        r = self.run_command("/usr/bin/python3", spy, options=[*model, *given], env=keys)
                        self.assertEqual(r.reason, "success", r.stderr)
                        self.assertEqual(r.bytes("stdout.log").split(b"\n")[0], b"[True, True, True]")
                        cassette = cassette or os.path.join(r.output, "evidence/traffic.cassette")
            self.assertTrue(all(KEY not in str(q.headers) for q in p.requests))

    def test_a_missing_credential(self):
        with Provider() as p:
            r = self.run_cinch(*self.routes(p), "--", "true")
        self.assertEqual((r.code, r.reason), (77, "auth"))
        self.assertIn("PROVIDER_KEY", r.result["error"])

    def test_the_token_is_needed_and_never_recorded(self):
        agent = self.write("ws/thief.py", "import os, urllib.request, urllib.error\n"
                                       "print(os.environ['CINCH_GATEWAY_TOKEN'])\n"
                                       "try:\n"
                                       "    urllib.request.urlopen(urllib.request.Request(\n"
                                       "        os.environ['CINCH_GATEWAY_URL'] + '/v1/messages', b'{}'))\n"
                                       "except urllib.error.HTTPError as e:\n"
                                       "    print(e.code)\n")
        with Provider() as p:
            r = self.run_command("/usr/bin/python3", agent, options=["--upstream", p.url])
        self.assertEqual(r.bytes("stdout.log").split()[-1], b"401")
        self.assertEqual(r.bytes("stdout.log").split()[0], b"[REDACTED:CINCH_GATEWAY_TOKEN]")
        self.assertEqual(r.events("PromptRendered")[0]["context"]["prompt_ns"], "cinch")  # no part of a token
        self.assertEqual(p.requests, [])
        self.assertEqual(r.events("gateway.refused")[0]["context"]["kind"], "token")


class Record(Case):
    def test_the_wire_counts(self):
        with Provider(Say(usage=(100, 20), cache=(1000, 50))) as p:
            r = self.call(p, calls=2)
        m = r.metrics
        self.assertEqual((m["api_calls"], m["tokens_input"], m["tokens_output"]), (2, 2200, 40))
        ext = m["ext"]
        self.assertEqual(ext["tokens_source"], "wire")
        self.assertEqual(ext["tokens"], {"input": 200, "output": 40, "cache_read": 2000, "cache_creation": 100,
                                         "reasoning": 0})
        # claude-opus-5: 5, 25, 0.5 and 6.25 dollars a million
        want = (200 * 5 + 40 * 25 + 2000 * 0.5 + 100 * 6.25) / 1e6
        self.assertAlmostEqual(m["cost_usd"], want, places=9)
        self.assertEqual(ext["cost_source"], "table")
        self.assertRegex(ext["prices"]["version"], r"^20\d\d-\d\d-\d\d$")
        self.assertIsInstance(ext["ttft_ms"], int)
        self.assertEqual(ext["usage"]["wire"]["calls"], 2)
        self.assertIsNone(ext["usage"]["reported"])
        self.assertEqual(r.json("evidence", "ledger.json")["models"][0]["model"], "claude-opus-5")
        call = r.events("model.call")[1]["context"]
        self.assertEqual((call["exchange"], call["model"], call["format"]), (2, "claude-opus-5", "anthropic"))

    def test_what_the_harness_tells_stands_beside_it(self):
        self.write("adapters/teller.yaml", json.dumps({
            "name": "teller", "argv": ["{command...}"],
            "gateway": {"env": {"ANTHROPIC_BASE_URL": "{gateway_url}", "ANTHROPIC_API_KEY": "{gateway_token}"}},
            "output": {"format": "ndjson", "rules": [
                {"when": {"/type": "result"}, "text": "/text",
                 "usage": {"input": "/in", "output": "/out", "cost_usd": "/usd"}}]}}))
        told = json.dumps({"type": "result", "text": "done", "in": 60, "out": 20, "usd": 0.25})
        with Provider(Say(usage=(50, 10))) as p:
            r = self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "teller", "--upstream", p.url,
                               "--read", self.agent, "--", "sh", "-c", f"/usr/bin/python3 {self.agent} 3 1 '{{}}' >&2; echo '{told}'")
        usage = r.metrics["ext"]["usage"]
        self.assertEqual((usage["wire"]["input"], usage["reported"]["input"], usage["difference"]["input"]),
                         (150, 60, 90))
        self.assertEqual(usage["difference"]["output"], 10)
        self.assertEqual(r.metrics["tokens_input"], 150)
        self.assertEqual(r.metrics["ext"]["tokens_source"], "wire")

    def test_an_answer_that_tells_no_usage_is_estimated(self):
        with Provider(Say(usage=None)) as p:
            r = self.call(p, how={"kind": "chat", "model": "gpt-5", "stream": True})
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(r.metrics["ext"]["calls"]["estimated"], 1)
        self.assertGreater(r.metrics["tokens_output"], 0)
        self.assertTrue(r.events("model.call")[0]["context"]["estimated"])

    def test_a_killed_run_keeps_what_was_counted(self):
        """kill -9 of cinch: the calls that were told are in the metrics of the recovered record."""
        agent = self.write("ws/slow.py", AGENT.replace("sys.exit(0", "print(flush=True)\nimport time\ntime.sleep(600)\nsys.exit(0"))
        with Provider(Say(usage=(100, 20))) as p:
            process, r = self.start("--upstream", p.url, "--", "/usr/bin/python3", agent, "3", "1", "{}")
            harness.wait_until(lambda: r.exists("events.jsonl") and len(r.events("model.call")) == 3, "three calls")
            process.kill()
            process.wait()
        self.cinch("recover", r.output)
        self.assert_valid(r)
        m = r.metrics
        self.assertEqual((m["api_calls"], m["tokens_input"], m["tokens_output"]), (3, 300, 60))
        self.assertAlmostEqual(m["cost_usd"], (300 * 5 + 60 * 25) / 1e6)
        self.assertEqual(m["ext"]["tokens_source"], "wire")
        ledger = r.json("evidence", "ledger.json")
        self.assertEqual((ledger["wire"]["calls"], ledger["wire"]["input"], ledger["wire"]["output"]), (3, 300, 60))
        self.assertAlmostEqual(ledger["wire"]["cost_usd"], m["cost_usd"])
        self.assertEqual([(x["model"], x["calls"]) for x in ledger["models"]], [("claude-opus-5", 3)])
        self.assertEqual(m["ext"]["usage"]["wire"], ledger["wire"])

    def test_a_killed_run_charges_the_calls_under_way(self):
        """kill -9 of cinch with one call answered and two that the provider works on: the record charges at least what the
        provider bills."""
        gate = threading.Event()
        with Provider(Say(usage=(100, 20)), Work(output=300, before_head=gate), Work(output=500, before_head=gate)) as p:
            agent = self.write("ws/slow.py", AGENT.replace(
                "with concurrent", "call(0)\nopen('one', 'w').close()\nwith concurrent"))
            process, r = self.start("--max-output-tokens", "50000", "--upstream", p.url, "--",
                                    "/usr/bin/python3", agent, "2", "2", '{"max_tokens": 700}')
            try:
                harness.wait_until(lambda: len(p.billed) == 2 and len(r.events("model.call")) == 1, "two calls under way")
                self.assertTrue(r.exists("evidence/open-calls.jsonl"))
                process.kill()
                process.wait()
            finally:
                gate.set()
        self.cinch("recover", r.output)
        self.assert_valid(r)
        billed = (100 + p.spent()[0], 20 + p.spent()[1])
        m, ledger = r.metrics, r.json("evidence", "ledger.json")
        self.assertFalse(r.exists("evidence/open-calls.jsonl"))
        self.assertEqual((m["api_calls"], ledger["wire"]["calls"], ledger["wire"]["estimated"]), (3, 3, 2))
        self.assertGreaterEqual(m["tokens_input"], billed[0])
        self.assertEqual(m["tokens_output"], 20 + 2 * 700)
        self.assertEqual((m["tokens_input"], m["tokens_output"]), (ledger["wire"]["input"], ledger["wire"]["output"]))
        calls = [e["context"] for e in r.events("model.call")]
        self.assertEqual([(c["exchange"], c["estimated"], c["complete"], c["status"]) for c in calls],
                         [(1, False, True, 200), (2, True, False, None), (3, True, False, None)])
        self.assertEqual([e["seq"] for e in r.events()], list(range(1, len(r.events()) + 1)))
        before = (r.bytes("events.jsonl"), r.bytes("evidence/ledger.json"))
        self.cinch("recover", r.output)
        self.assertEqual((r.bytes("events.jsonl"), r.bytes("evidence/ledger.json")), before)

    def test_a_finished_run_has_no_list_of_open_calls(self):
        with Provider(Say(usage=(100, 20))) as p:
            r = self.call(p, calls=3, parallel=3)
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertFalse(r.exists("evidence/open-calls.jsonl"))

    def test_no_gateway_without_a_wish(self):
        r = self.run_command("sh", "-c", "env")
        self.assertNotIn(b"GATEWAY", r.bytes("stdout.log"))
        self.assertIsNone(r.metrics["ext"]["usage"])
        self.assertEqual(r.events("gateway.opened"), [])
        r = self.run_command("true", options=["--max-calls", "3"])
        self.assertEqual(r.code, 69)
        for wrong in (("--max-usd", "cheap"), ("--max-calls", "0"), ("--replay-speed", "-1")):
            r = self.cinch("run", f"{wrong[0]}={wrong[1]}", "--", "true")
            self.assertEqual(r.code, 64, wrong)
            self.assertIn(wrong[0].encode(), r.stderr)


SCRIPT = """
turns:
  - say: first
  - say: second
"""


class Scripted(Case):
    def script_run(self, *options, calls=1):
        line = ["/usr/bin/python3", self.agent, str(calls), "1", "{}"]
        r = self.run_command(*line, options=list(options))
        r.said = json.loads(r.bytes("stdout.log"))
        return r

    def test_a_scripted_model(self):
        script = self.write("model.yaml", SCRIPT)
        r = self.script_run("--script", script)
        self.assertEqual((r.reason, r.said["statuses"]), ("success", [200]), r.stderr)
        self.assertIn("first", r.said["last"])
        self.assertTrue(r.json("evidence", "ledger.json")["simulated"])
        self.assertEqual(r.metrics["ext"]["cost_source"], "simulated")
        self.assertGreater(r.metrics["cost_usd"], 0)
        shown = subprocess.run([harness.CINCH, "show", r.output], env=self.env, capture_output=True, text=True, check=True)
        self.assertIn("(simulated)", shown.stdout)

    def test_simulated_costs_are_not_added_to_real_ones(self):
        script = self.write("model.yaml", SCRIPT)
        with Provider(Say(usage=(1000, 100))) as p:
            routes = [{"model": "scripted", "upstream": f"script:{script}"}, {"model": "*", "upstream": p.url}]
            prices = self.write("prices.yaml", "version: t\nsource: t\nmodels: [{match: ['*'], input: 1, output: 1}]\n")
            agent = self.write("ws/both.py", "import subprocess, sys\nfor how in ('{}', '{\"model\": \"scripted\"}'):\n"
                               "    subprocess.run([*sys.argv[1:], how], check=True)\n")
            r = self.run_command("/usr/bin/python3", agent, "/usr/bin/python3", self.agent, "1", "1", options=[
                "--read", self.agent, "--set", f"gateway.routes={json.dumps(routes)}", "--set", f"gateway.prices={prices}"])
        self.assertEqual((r.reason, r.metrics["api_calls"]), ("success", 2), r.stderr)
        self.assertEqual(r.metrics["ext"]["cost_source"], "table")
        self.assertAlmostEqual(r.metrics["cost_usd"], 0.0011)

    def test_two_models_are_one_too_many(self):
        self.write("model.yaml", SCRIPT)
        task = self.write("task.yaml", "agent: {command: ['true']}\ngateway: {script: model.yaml}\n")
        for options in (["--cassette", "tape"], ["--upstream", "http://127.0.0.1:9"]):
            r = self.run_cinch(task, *options)
            self.assert_failed(r, 64, "given twice", "gateway.script", "task.yaml:2", "command line")
            self.assertEqual(r.reason, "usage")
        task = self.write("task.yaml", "agent: {command: ['true']}\ngateway: {upstream: 'http://127.0.0.1:9'}\n")
        self.assertEqual(self.run_cinch(task, "--script", "model.yaml").reason, "success")

    def test_recorded_and_replayed(self):
        tape = self.path("tape")
        with Provider(Say("once"), Say("twice")) as p:
            r = self.call(p, calls=2)
        self.assertTrue(r.exists("evidence", "traffic.cassette"))
        os.rename(r.path("evidence", "traffic.cassette"), tape)
        again = self.script_run("--cassette", tape, calls=2)
        self.assertEqual(again.reason, "success", again.stderr)
        self.assertEqual(again.said["last"], r.said["last"])
        self.assertEqual(again.metrics["tokens_total"], r.metrics["tokens_total"])
        other = self.script_run("--cassette", tape, calls=3)
        self.assertEqual((other.code, other.reason), (65, "bad_task"))
        self.assertNotIn("\n", other.result["error"])
        self.assertNotIn(b"\\n", other.stdout, "an escaped end of line")


if __name__ == "__main__":
    harness.main()
