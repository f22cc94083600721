#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`cinch ack` on adapters of third parties: programs and images of the file contract, and agents of the Agent Client
Protocol that no profile knows."""

FILE_TIMEOUT = 900

import glob
import json
import os
import shutil
import signal
import subprocess
import xml.etree.ElementTree

import jsonschema

import harness
import test_image
import validate  # harness knows where it is

MODEL_ADAPTER = os.path.join(harness.ROOT, "tests", "programs", "model_adapter.py")


class Third(harness.Case):
    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = self.make_dir("tmp")

    def ack(self, *arguments, **environment):
        return subprocess.run([harness.CINCH, "ack", *arguments], env={**self.env, **environment}, cwd=self.dir,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE * 6)

    def report(self, *arguments, **environment):
        done = self.ack("--format", "json", *arguments, **environment)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        report = json.loads(done.stdout)
        jsonschema.validate(report, validate.load_schema("ack-report"))
        self.assertEqual(done.returncode, 1 if report["failed"] else 0)
        return report

    def of(self, report, status):
        return {v["scenario"]: " ".join(v["why"]) for v in report["verdicts"] if v["status"] == status}

    def adapter(self, mode):
        """A program of the file contract that breaks it in one respect."""
        return self.script(f"adapter-{mode}", f'exec {test_image.ADAPTER} {mode} "$@"\n')

    def copy(self, name):
        path = os.path.join(self.make_dir("programs"), name)
        shutil.copy(MODEL_ADAPTER, path)
        return path


class Programs(Third):
    def test_honest(self):
        """All that it declares, all of the contract, and nothing else."""
        report = self.report("--adapter-exec", self.copy("honest"))
        self.assertEqual(self.of(report, "failed"), {})
        passed = self.of(report, "passed")
        self.assertEqual(len([name for name in passed if name.startswith("contract_")]), 10)
        self.assertIn("test_returns_text_response", passed)
        self.assertIn("test_transcript_envelope_completeness", passed)
        skipped = self.of(report, "skipped")
        self.assertEqual(skipped["contract_missing_secret"], "the adapter declares no secret")
        self.assertIn("tool_invocation: the adapter does not declare it", skipped["test_bridged_tool_is_called"])
        self.assertEqual(report["adapters"][0]["version"], "1.2")
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])

    def test_liar(self):
        """What it declares and does not do is found, although it keeps the contract."""
        failed = self.of(self.report("--adapter-exec", self.copy("liar"), "--tier", "1", "--tier", "specific"), "failed")
        self.assertIn("test_returns_text_response", failed)
        self.assertEqual([name for name in failed if name.startswith("contract_")], [])

    def test_interrupted_while_the_contract_is_tried(self):
        slow = self.script("slow", f'case "$*" in *--probe*) exec {self.copy("honest")} "$@";; esac\nsleep 1000\n')
        ack = subprocess.Popen([harness.CINCH, "ack", "--adapter-exec", slow, "--read", self.path("programs"), "--scenario", "contract_*"],
                               env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        harness.wait_until(lambda: glob.glob(self.env["TMPDIR"] + "/cinch-ack-*/*/contract/runs/*"), "the first run")
        ack.terminate()
        out, err = ack.communicate(timeout=harness.PATIENCE)
        self.assertEqual(ack.returncode, 143, err)
        self.assertIn("interrupted", out)

    def test_interrupted_while_it_is_asked(self):
        """--probe, before anything is tried: the report is written, and nothing stays."""
        slow = self.script("slow", "sleep 1000\n")
        for signo, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            ack = subprocess.Popen([harness.CINCH, "ack", "--adapter-exec", slow, "--json", "r.json"], env=self.env, cwd=self.dir,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            harness.wait_until(lambda: glob.glob(self.env["TMPDIR"] + "/cinch-ack-probe-*/runs/probe/*"), "the question")
            ack.send_signal(signo)
            _, err = ack.communicate(timeout=harness.PATIENCE)
            self.assertEqual(ack.returncode, status, err)
            with open(self.path("r.json"), encoding="utf-8") as f:
                report = json.load(f)
            self.assertTrue(report["interrupted"])
            self.assertEqual({(v["status"], *v["why"]) for v in report["verdicts"]}, {("skipped", "interrupted")})
            self.assertEqual(os.listdir(self.env["TMPDIR"]), [])
            os.unlink(self.path("r.json"))

    def test_faults(self):
        """Each break of the contract is a failure of its check, and of no other."""
        for mode in ("honest", "no-summary", "wrong-exit", "leaks-file", "no-probe"):
            with self.subTest(mode):
                report = self.report("--adapter-exec", self.adapter(mode), "--secret", "ADAPTER_KEY", "--read",
                                     test_image.ADAPTER, "--scenario", "contract_*", "-t", "60")
                failed = self.of(report, "failed")
                self.assertEqual(set(failed), {"contract_" + name for name in test_image.FAULTS[mode]}, failed)
                self.assertTrue(all(failed.values()), "a failure without a reason")
                self.assertEqual(len(report["verdicts"]), 11)

    def test_declares_nothing(self):
        report = self.report("--adapter-exec", self.adapter("honest"), "--secret", "ADAPTER_KEY", "--read", test_image.ADAPTER)
        self.assertEqual(len(self.of(report, "passed")), 11)
        self.assertEqual(self.of(report, "failed"), {})
        self.assertIn("metadata.capabilities", self.of(report, "skipped")["test_returns_text_response"])

    def test_reports(self):
        """A failed check is like any failed scenario: kept, in all reports, and may be expected."""
        options = ["--adapter-exec", self.adapter("no-summary"), "--secret", "ADAPTER_KEY", "--read", test_image.ADAPTER,
                   "--scenario", "contract_*"]
        done = self.ack(*options, "--junit", "r.xml", "--html", "r.html", "--json", "r.json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("contract_required_outputs", done.stdout)
        with open(self.path("r.json"), encoding="utf-8") as f:
            kept = [v["dir"] for v in json.load(f)["verdicts"] if v["dir"] is not None]
        self.assertEqual(len(kept), 1)
        self.assertTrue(os.path.exists(os.path.join(kept[0], "runs", "work", "manifest.json")))
        suite = xml.etree.ElementTree.parse(self.path("r.xml")).getroot()
        self.assertEqual(suite.get("failures"), "1")
        with open(self.path("r.html"), encoding="utf-8") as f:
            self.assertIn("contract_required_outputs", f.read())
        self.assertEqual(self.ack(*options[:-2], "--publish-dir", "table").returncode, 1)
        with open(self.path("table", "compatibility.md"), encoding="utf-8") as f:
            self.assertIn("- contract: **failed** in 1 of 11: contract_required_outputs\n", f.read())
        known = self.write("known.yaml", "expected:\n  - {adapter: 'exec:*', scenario: contract_required_outputs, reason: known}\n")
        report = self.report(*options, "--expected-failures", known)
        self.assertEqual(set(self.of(report, "expected")), {"contract_required_outputs"})

    def test_mistakes(self):
        unknown = self.script("unknown", """
printf '{"status":"completed","outcome":"success","duration":"1s","artifacts":[],"metadata":{"capabilities":["telepathy"]}}' \
    > "$HOLON_OUTPUT_DIR/manifest.json"
""")
        for code, words, arguments in [
                (69, "no-such-adapter", ["--adapter-exec", "./no-such-adapter"]),
                (65, "telepathy", ["--adapter-exec", unknown]),
                (64, "--adapter-exec or --adapter-image", ["-a", "api-direct", "--scenario", "contract_*"]),
                (64, "--command", ["-a", "api-direct", "--command", "x"]),
                (64, "--command", ["-a", "acp", "--command", " "]),
        ]:
            with self.subTest(words):
                done = self.ack(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])


class Command(Third):
    def test_agent_without_a_profile(self):
        """The generic profile on a real agent."""
        agent, why = harness.real("claude-acp")
        if agent is None:
            self.skipTest(why)
        report = self.report("-a", "acp", "--command", agent, "-j", "2", "--scenario", "test_returns_text_response",
                             "--scenario", "test_bridged_tool_is_called", "--scenario", "test_transcript_contains_*",
                             "--scenario", "test_skill_knowledge_available")
        self.assertEqual(self.of(report, "failed"), {})
        self.assertEqual(set(self.of(report, "passed")),
                         {"test_returns_text_response", "test_bridged_tool_is_called", "test_transcript_contains_user_message",
                          "test_transcript_contains_assistant_message"})
        self.assertIn("where an agent looks for skills", self.of(report, "skipped")["test_skill_knowledge_available"])

    def test_no_command(self):
        why = self.of(self.report("-a", "acp", "--scenario", "test_returns_text_response"), "skipped")
        self.assertIn("--command", why["test_returns_text_response"])
        why = self.of(self.report("-a", "acp", "--command", "no-such-agent --acp", "--scenario", "test_returns_text_response"), "skipped")
        self.assertIn("no-such-agent", why["test_returns_text_response"])


class Images(Third):
    def test_images(self):
        if test_image.why_not() is not None:
            self.skipTest(test_image.why_not())
        store = test_image.Store()
        self.addCleanup(store.remove)
        for mode in ("honest", "no-manifest"):
            with self.subTest(mode):
                name = store.image(mode).split(":", 1)[1]
                report = self.report("--adapter-image", name, "--secret", "ADAPTER_KEY", **store.env)
                self.assertEqual(report["adapters"][0]["name"], "image:" + name)
                failed = self.of(report, "failed")
                self.assertEqual(set(failed), {"contract_" + n for n in test_image.FAULTS[mode]}, failed)

    def test_image_that_is_not_here(self):
        done = self.ack("--adapter-image", "localhost/no-such-image")
        self.assertEqual(done.returncode, 69, done.stderr)


if __name__ == "__main__":
    harness.main()
