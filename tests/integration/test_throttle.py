#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a provider fails for a while, the harness does not see; what it fails for good, the run tells as its reason."""

import json
import time

import harness
from provider import Cut, Fail, Provider, Say
from test_budget import Case

FILE_TIMEOUT = 600
QUICK = ["--set", "throttle.base_ms=10", "--set", "throttle.cap_ms=40"]


class Transparent(Case):
    def test_a_rate_limit_that_passes(self):
        with Provider(Fail(429, {"retry-after": "1"}), Fail(529), Say("fine")) as p:
            began = time.monotonic()
            r = self.call(p, *QUICK)
            took = time.monotonic() - began
        self.assertEqual((r.code, r.said["statuses"]), (0, [200]))
        self.assertEqual(len(p.requests), 3)
        self.assertGreaterEqual(took, 1)
        told = [e["context"] for e in r.events("prompt.throttled")]
        self.assertEqual([(t["kind"], t["attempt"], t["retry_safe"]) for t in told],
                         [("rate_limit", 1, True), ("server_error", 2, True)])
        self.assertEqual(told[0]["retry_after_ms"], 1000)
        self.assertGreaterEqual(told[0]["delay_ms"], 1000)
        call = r.events("model.call")[0]["context"]
        self.assertEqual((call["attempts"], call["status"]), (3, 200))
        self.assertEqual(r.metrics["api_calls"], 1)

    def test_a_stream_too(self):
        with Provider(Fail(500), Say("fine")) as p:
            r = self.call(p, *QUICK, how={"stream": True})
        self.assertEqual(r.said["statuses"], [200])
        self.assertIn("message_stop", r.said["last"])
        self.assertEqual(len(p.requests), 2)

    def test_nobody_there(self):
        with Provider() as p:
            url = p.url
        agent = ["/usr/bin/python3", self.agent, "1", "1", "{}"]
        r = self.run_command(*agent, options=["--upstream", url, *QUICK])
        self.assertEqual((r.code, r.reason), (75, "provider_unavailable"))
        self.assertIn("cannot be reached", r.result["error"])
        self.assertIn("upstream '127.0.0.1", r.result["error"])
        self.assertEqual([e["context"]["kind"] for e in r.events("prompt.throttled")], ["timeout"] * 5)
        last = r.events("prompt.throttled")[-1]["context"]
        self.assertEqual((last["delay_ms"], last["retry_safe"]), (None, False))


class Final(Case):
    def test_a_rate_limit_that_stays(self):
        with Provider(Fail(429)) as p:
            r = self.call(p, *QUICK)
        self.assertEqual(len(p.requests), 5)
        self.assertEqual(r.said["statuses"], [429])
        self.assertEqual((r.code, r.reason), (75, "rate_limited"))

    def test_a_longer_pause_than_anybody_waits(self):
        with Provider(Fail(429, {"retry-after": "3600"})) as p:
            r = self.call(p, *QUICK, calls=3)
        self.assertEqual(len(p.requests), 1)
        self.assertEqual(r.said["statuses"], [429] * 3)
        self.assertEqual(r.code, 75)

    def test_a_credential_that_is_not_accepted(self):
        with Provider(Fail(401, body={"error": {"type": "authentication_error", "message": "no"}})) as p:
            r = self.call(p, *QUICK)
        self.assertEqual(len(p.requests), 1)
        self.assertEqual((r.code, r.reason), (77, "auth"))
        self.assertIn("no key is configured", r.result["error"])

    def test_a_key_that_is_not_accepted(self):
        """The message names the variable of the route that failed, not of another one."""
        with Provider(Fail(401)) as p, Provider() as other:
            routes = [{"model": "other-*", "upstream": other.url, "key": "OTHER_KEY"},
                      {"model": "*", "upstream": p.url, "key": "BAD_KEY"}]
            r = self.run_command("/usr/bin/python3", self.agent, "1", "1", "{}",
                                 options=["--set", f"gateway.routes={json.dumps(routes)}", *QUICK],
                                 env={"BAD_KEY": "not-accepted-key", "OTHER_KEY": "some-other-key"})
        self.assertEqual((r.code, r.reason), (77, "auth"), r.stderr)
        self.assertIn("export BAD_KEY=", r.result["error"])

    def test_a_bad_request_is_passed_on_at_once(self):
        body = {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}}
        with Provider(Fail(400, body=body)) as p:
            r = self.call(p, *QUICK)
        self.assertEqual((len(p.requests), r.said["statuses"], r.reason), (1, [400], "failure"))

    def test_a_cut_answer_is_not_repeated_behind_the_back(self):
        """The harness has seen its head: only it can decide."""
        with Provider(Cut()) as p:
            r = self.call(p, *QUICK, how={"stream": True})
        self.assertEqual(len(p.requests), 1)
        self.assertEqual(r.reason, "failure")
        self.assertFalse(r.events("model.call")[0]["context"]["complete"])

    def test_the_agent_may_succeed_all_the_same(self):
        """A failure that the harness survived is none of the run."""
        agent = self.write("ws/brave.py", "import subprocess, sys\nsubprocess.run(sys.argv[1:])\n")
        with Provider(Fail(401), Say()) as p:
            r = self.run_command("/usr/bin/python3", agent, "/usr/bin/python3", self.agent, "2", "1", "{}",
                                 options=["--upstream", p.url])
        self.assertEqual(r.reason, "success")


class Limits(Case):
    def test_only_so_many_at_a_time(self):
        with Provider() as p:
            peak, now = [0], [0]
            take = p.take

            def count(request):
                with p.lock:
                    now[0] += 1
                    peak[0] = max(peak[0], now[0])
                time.sleep(0.02)  # long enough for the others to come in, were they let in
                with p.lock:
                    now[0] -= 1
                return take(request)

            p.take = count
            r = self.call(p, "--set", "throttle.concurrency=2", calls=12, parallel=12)
        self.assertEqual(r.said["statuses"], [200] * 12)
        self.assertLessEqual(peak[0], 2)


if __name__ == "__main__":
    harness.main()
