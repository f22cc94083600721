#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How a failure is told in the terms of evaluations: kind, phase, what the harness said."""

import json
import textwrap
import time

import harness


class Errors(harness.Case):
    def failed(self, r):
        """evaluation_error, which agrees with the rest of the record."""
        error = r.result["evaluation_error"]
        self.assertEqual(error["message"], r.result["error"])
        told = r.events("prompt.error")
        if told:
            self.assertEqual((told[0]["context"]["phase"], told[0]["context"]["prompt_name"]),
                             (error["phase"], error["prompt_name"]))
        self.assertFalse(r.events("PromptExecuted"))
        return error

    def scripted(self, script, *options):
        task = self.write("task.yaml", textwrap.dedent("""
            prompt: {text: go, name: asking}
            agent: {adapter: api-direct, model: m}
            gateway: {script: model.yaml}
        """))
        self.write("model.yaml", textwrap.dedent(script))
        return self.run_cinch(task, *options)

    def test_success_has_none(self):
        self.assertIsNone(self.run_command("true").result["evaluation_error"])

    def test_a_harness_that_fails(self):
        r = self.run_command("sh", "-c", "echo why >&2; exit 3")
        error = self.failed(r)
        self.assertEqual((error["type"], error["phase"], error["details"]), ("PromptEvaluationError", "response", None))
        self.assertEqual(error["provider_payload"],
                         {"exit_code": 3, "signal": None, "stderr": "why\n", "stderr_captured": True})
        error = self.failed(self.run_command("sh", "-c", "kill -9 $$"))
        self.assertEqual(error["provider_payload"],
                         {"exit_code": None, "signal": 9, "stderr": "", "stderr_captured": False})

    def test_only_the_end_of_what_it_said(self):
        # The secret lies across the cut: half of it must not be told either.
        r = self.run_command("sh", "-c", 'printf "%s" "$TOKEN" >&2; head -c 8180 /dev/zero | tr "\\0" x >&2; exit 1',
                             options=["--secret", "TOKEN"], env={"TOKEN": "hunter2-hunter2-hunter2"})
        payload = self.failed(r)["provider_payload"]
        self.assertLessEqual(len(payload["stderr"]), 8192)
        self.assertTrue(payload["stderr"].endswith("x" * 8180))
        self.assert_not_in_tree(b"hunter2", r.output)

    def test_not_started(self):
        error = self.failed(self.run_command("/no/such/program"))
        self.assertEqual((error["type"], error["phase"], error["provider_payload"]),
                         ("PromptEvaluationError", "request", None))

    def test_a_deadline_in_the_past(self):
        """Nothing is started."""
        r = self.run_command("touch", "started", options=["--deadline", "2020-01-01T00:00:00+02:00"])
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)
        error = r.result["evaluation_error"]
        self.assertEqual((error["type"], error["details"]), ("DeadlineExceededError", {"kind": "deadline"}))
        self.assertEqual(r.events("process.spawned"), [])

    def test_a_deadline_ahead(self):
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
        r = self.run_command("sleep", "600", options=["--deadline", soon])
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)
        self.assertEqual(r.result["evaluation_error"]["details"], {"kind": "deadline"})
        r = self.run_command("true", options=["--deadline", "2199-01-01T00:00:00Z"])
        self.assertEqual(r.reason, "success", r.stderr)
        for wrong in ("tomorrow", "2026-11-31T00:00:00Z", "2026-11-18T20:30:00", "2026-11-18"):
            self.assert_failed(self.cinch("run", "--deadline", wrong, "--", "true"), 64, "deadline")

    def test_a_prompt_that_cannot_be_rendered(self):
        task = self.write("task.yaml", "prompt: {text: 'hello {{ nobody.name }}', template: true}\n")
        r = self.run_cinch(task, "--", "true")
        self.assertEqual((r.code, r.result["evaluation_error"]["type"]), (65, "PromptRenderError"), r.stderr)

    def test_out_of_time(self):
        r = self.run_command("sleep", "60", options=["--timeout", "0.2"])
        error = self.failed(r)
        self.assertEqual((error["type"], error["phase"], error["details"]),
                         ("DeadlineExceededError", "request", {"kind": "total"}))

    def test_an_answer_that_does_not_fit(self):
        schema = self.write("s.json", json.dumps({"type": "object", "required": ["a"]}))
        r = self.run_command("sh", "-c", "yes é | head -n 3000 | tr -d '\\n'", options=["--output-schema", schema])
        error = self.failed(r)
        self.assertEqual((error["type"], error["phase"]), ("OutputParseError", "response"))
        self.assertEqual(error["provider_payload"], {"raw_text": "é" * 2000})

    def test_budget(self):
        r = self.scripted("steps: [{say: hello}]\n", "--set", "limits.tokens_total=1")
        error = self.failed(r)
        self.assertEqual((error["type"], error["phase"]), ("BudgetExceededError", "budget"))
        self.assertEqual(error["details"]["exceeded_dimension"], "total_tokens")
        self.assertEqual(error["prompt_name"], "asking")

    def test_throttled(self):
        r = self.scripted("""
            steps: [{fault: {status: 429, error: {message: slow down}}}]
        """, "--set", "throttle.max_attempts=2", "--set", "throttle.base_ms=1")
        error = self.failed(r)
        self.assertEqual((error["type"], error["phase"], r.reason), ("ThrottleError", "request", "rate_limited"))
        self.assertEqual((error["details"]["kind"], error["details"]["attempts"]), ("rate_limit", 2))
        self.assertEqual(len(r.events("prompt.throttled")), 2)

    def test_wink_has_no_word_for_a_failing_server(self):
        r = self.scripted("steps: [{fault: {status: 503, error: {message: away}}}]\n",
                          "--set", "throttle.max_attempts=1")
        error = self.failed(r)
        self.assertEqual((error["type"], error["details"]["kind"]), ("ThrottleError", "unknown"))
        self.assertEqual([e["context"]["kind"] for e in r.events("prompt.throttled")], ["server_error"])

    def test_an_exhausted_quota_is_a_warning(self):
        """It waits longer than a rate limit may, and the run warns once."""
        r = self.scripted("""
            steps:
            - {times: 1, fault: {status: 429, error: {kind: quota, message: used up}}}
            - {times: 1, fault: {status: 429, error: {kind: quota, message: used up}}}
            - say: done
        """, "--set", "throttle.base_ms=1", "--set", "throttle.cap_ms=10")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual([(e["context"]["kind"], e["context"]["delay_ms"]) for e in r.events("prompt.throttled")],
                         [("quota_exhausted", 20), ("quota_exhausted", 40)])
        quota = [w for w in r.manifest["warnings"] if "quota" in str(w)]
        self.assertEqual(len(quota), 1, r.manifest["warnings"])

    def test_tools_that_cannot_be_had(self):
        script = self.write("model.yaml", "steps: [{say: never}]\n")
        task = self.write("task.yaml", json.dumps({
            "agent": {"adapter": "api-direct", "model": "m"}, "prompt": "go", "gateway": {"script": script},
            "tools": [{"name": "other", "description": "x", "mcp": {"command": ["false"]}}]}))
        error = self.failed(self.run_cinch(task))
        self.assertEqual((error["type"], error["phase"], error["provider_payload"]), ("PromptEvaluationError", "tool", None))

    def test_usage_comes_from_the_wire(self):
        r = self.scripted("steps: [{say: hello, usage: {input: 100, output: 20, cache_read: 40}}]\n")
        usage = r.events("PromptExecuted")[0]["context"]["usage"]
        self.assertEqual(usage, {"input_tokens": 100, "output_tokens": 20, "cached_tokens": 40})


if __name__ == "__main__":
    harness.main()
