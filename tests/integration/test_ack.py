# SPDX-License-Identifier: MIT
"""`cinch ack` as a command: what is tried, skipped, kept and told. Uses api-direct, which needs no program, and an
adapter of the user's own that breaks its word."""

FILE_TIMEOUT = 600

import glob
import json
import os
import re
import signal
import subprocess
import textwrap
import unittest
import xml.etree.ElementTree

import jsonschema
import yaml

import harness
import validate  # harness knows where it is

LIAR = """\
name: liar
driver: oneshot
binary: [liar]
argv: ["{binary}", "{prompt_file}"]
capabilities: [text_response, transcript]
lacks: {tool_invocation: it has no hands}
"""
LIES = """\
#!/bin/sh
[ "$1" = --version ] && { echo "liar 6.6.6"; exit 0; }
echo "something else <\\033[31m&>"
"""


# Checks that could not fail, or would ignore a part of what they say.
IDLE = ["text: {contains: ''}", "text: {starts: ''}", "text: {ends: ''}", "text: {len: {at_least: 0}}", "visits: {at_least: 0}",
        "request: {last: true, none: true}", "request: {number: 1, count: 99}", "request: {none: true, count: 5}",
        "request: {any: true, number: 1}", "request: {none: false}", "request: {count: {at_least: 0}}", "patch: {has: []}",
        "patch: {lacks: ['']}", "patch: {contains: ''}", "same: {runs: [a, b], what: []}", "same: {runs: [a, a], what: [text]}",
        "link: {from: {}, to: {}}"]


class Ack(harness.Case):
    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = self.make_dir("tmp")

    def ack(self, *arguments, **environment):
        done = subprocess.run([harness.CINCH, "ack", *arguments], env={**self.env, **environment}, cwd=self.dir,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE * 2)
        return done

    def report(self, *arguments, **environment):
        done = self.ack("--format", "json", *arguments, **environment)
        report = json.loads(done.stdout)
        jsonschema.validate(report, validate.load_schema("ack-report"))
        self.assertEqual(done.returncode, 1 if report["failed"] else 0)
        return report

    def add_liar(self):
        profiles, programs = self.make_dir("profiles"), self.make_dir("bin")
        with open(os.path.join(profiles, "liar.yaml"), "w", encoding="utf-8") as f:
            f.write(LIAR)
        path = os.path.join(programs, "liar")
        with open(path, "w", encoding="utf-8") as f:
            f.write(LIES)
        os.chmod(path, 0o755)
        self.env["PATH"] = programs + ":" + self.env["PATH"]
        return ["--adapter-dir", "profiles", "--adapter", "liar"]

    def left(self):
        return sorted(os.path.relpath(p, self.env["TMPDIR"]) for p in glob.glob(self.env["TMPDIR"] + "/cinch-ack-*/*/*"))

    # --- what is tried ---

    def test_list(self):
        text = self.ack("--list")
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertRegex(text.stdout, r"(?m)^test_returns_text_response +1 +text_response +\S")
        every = json.loads(self.ack("--list", "--format", "json").stdout)["scenarios"]
        self.assertGreaterEqual(len(every), 41)
        contract = [s for s in every if s["name"].startswith("contract_")] # these are of adapters, not of what they can
        self.assertEqual(len(contract), 11)
        self.assertTrue(all(s["summary"] and (s["capabilities"] or s in contract) for s in every))
        some = self.ack("--list", "--quiet", "--tier", "4", "--capability", "task_completion", "--scenario", "*early*")
        self.assertEqual(some.stdout, "test_task_completion_blocks_early_stop\n")

    def test_list_in_any_terminal(self):
        names = self.ack("--list", "--quiet").stdout.split()
        for columns in (60, 80, 125, 135, 200):
            with self.subTest(columns=columns):
                text = self.ack("--list", COLUMNS=str(columns)).stdout
                self.assertLessEqual(max(len(line) for line in text.splitlines()), columns)
                self.assertEqual(sorted(set(text.split()) & set(names)), sorted(names))
                self.assertIn("The answer of the model is the text of the", " ".join(text.split()))

    def test_any_number_of_profile_directories(self):
        many = [word for i in range(400) for word in ("--adapter-dir", self.make_dir(f"profiles{i}"))]
        done = self.ack("-a", "api-direct", "--scenario", "test_returns_text_response", *many)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_passes(self):
        report = self.report("-a", "api-direct", "--scenario", "test_returns_text_response", "--scenario", "test_tool_result*")
        self.assertEqual([(v["scenario"], v["status"]) for v in report["verdicts"]],
                         [("test_returns_text_response", "passed"), ("test_tool_result_is_correct", "passed")])
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])

    def test_text(self):
        done = self.ack("-a", "api-direct", "--scenario", "test_returns_text_response")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^api-direct +\S+ +1/1$")
        self.assertRegex(done.stdout, r"(?m)^1 passed in ")
        self.assertRegex(done.stderr, r"(?m)^passed +api-direct +test_returns_text_response ")

    def test_skips_say_why(self):
        report = self.report("-a", "api-direct", "-a", "qwen", "--scenario", "test_native_tool*", PATH="/nonexistent")
        first, second = report["verdicts"]
        self.assertEqual((first["status"], first["why"]),
                         ("skipped", ["native_tools: there is no harness that could have tools of its own"]))
        self.assertEqual((second["status"], second["why"]), ("skipped", ["not in PATH: qwen"]))

    def test_adapters_by_environment(self):
        chosen = ["--scenario", "test_native_tool_emits_tool_invoked"]
        report = self.report(*chosen, ACK_ADAPTERS="api-direct, codex", PATH="/nonexistent")
        self.assertEqual([a["name"] for a in report["adapters"]], ["api-direct", "codex"])
        report = self.report(*chosen, ACK_ADAPTERS="", PATH="/nonexistent")
        names = [a["name"] for a in report["adapters"]]
        self.assertIn("claude-code", names)
        self.assertFalse({"command", "contract", "acp"} & set(names))

    def test_shuffle(self):
        chosen = ["-a", "api-direct", "-a", "qwen", "--jobs", "1", "--scenario", "test_native_tool*", "--scenario", "test_workspace_*", "--scenario", "test_sandbox_*"]  # all are skipped
        names = lambda seed: [tuple(line.split()[1:3]) for line in
                              self.ack(*chosen, *seed, PATH="/nonexistent").stderr.splitlines() if line.startswith("skipped")]
        table = names([])
        orders = [names(["--shuffle", str(seed)]) for seed in (1, 1, 2, 3)]
        self.assertGreater(len(table), 4)
        self.assertEqual(orders[0], orders[1])
        self.assertTrue(all(sorted(o) == sorted(table) for o in orders))
        self.assertTrue(any(o != table for o in orders) and orders[0] != orders[2])
        report = self.report(*chosen, "--shuffle", "1", PATH="/nonexistent")
        self.assertEqual([(v["adapter"], v["scenario"]) for v in report["verdicts"]], table)

    def test_scenarios_of_ones_own(self):
        self.write("mine.yaml", textwrap.dedent("""\
            bases: {polite: {task: {prompt: Say good day.}, script: {turns: [{say: Good day.}]}}}
            scenarios:
              - {name: says_good_day, summary: It greets., capability: text_response, base: polite, expect: [{text: Good day.}]}
              - {name: says_good_night, summary: It does not., capability: text_response, base: polite, expect: [{text: Good night.}]}
            """))
        chosen = ["--scenario-file", "mine.yaml", "--scenario", "says_*"]
        report = self.report("-a", "api-direct", *chosen)
        self.assertEqual([(v["scenario"], v["status"]) for v in report["verdicts"]],
                         [("says_good_day", "passed"), ("says_good_night", "failed")])
        self.assertEqual(self.ack("--list", "--quiet", *chosen).stdout, "says_good_day\nsays_good_night\n")

    def test_model_by_environment(self):
        variables = {"CODEX_APP_SERVER_TEST_MODEL": "m1", "ACK_MODEL_API_DIRECT": "m2", "ACK_MODEL_CODEX": "no"}
        report = self.report("-a", "codex", "-a", "api-direct", "-a", "qwen", "--scenario", "test_native_tool_emits*",
                             PATH="/nonexistent", **variables)
        self.assertEqual([a["model"] for a in report["adapters"]], ["m1", "m2", None])

    # --- failures ---

    def test_failure_is_told_and_kept(self):
        liar = self.add_liar()
        done = self.ack(*liar, "--scenario", "test_returns_text_response", "--json", "r.json", "--junit", "r.xml", "--html", "r.html")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("something else", " ".join(done.stdout.split()))
        self.assertNotIn("\033", done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^liar +6\.6\.6 +0/1$")
        kept = [line.split("kept: ")[1] for line in done.stdout.splitlines() if "kept: " in line]
        self.assertEqual(len(kept), 1)
        self.assertTrue(os.listdir(kept[0]))
        with open(os.path.join(self.dir, "r.json"), encoding="utf-8") as f:
            report = json.load(f)
        self.assertEqual(report["verdicts"][0]["dir"], kept[0])
        suite = xml.etree.ElementTree.parse(os.path.join(self.dir, "r.xml")).getroot()
        self.assertEqual(suite.get("failures"), "1")
        self.assertEqual(suite.find(".//failure").get("message"), "failed: " + report["verdicts"][0]["why"][0])
        with open(os.path.join(self.dir, "r.html"), encoding="utf-8") as f:
            self.assertIn('class="failed"', f.read())

    def test_expected_failures(self):
        liar = self.add_liar()
        with open(os.path.join(self.dir, "known.yaml"), "w", encoding="utf-8") as f:
            f.write("expected:\n"
                    "  - {adapter: 'l*', scenario: test_returns_text_response, reason: it lies}\n"
                    "  - {adapter: api-direct, scenario: test_returns_text_response, reason: wrong}\n"
                    "  - {adapter: liar, scenario: 'all_*', reason: not asked for}\n")
        arguments = ["--expected-failures", "known.yaml", "--scenario", "test_returns_text_response"]
        report = self.report(*liar, *arguments)
        self.assertEqual(report["verdicts"][0]["status"], "expected")
        self.assertEqual(len(report["unmatched"]), 2)
        self.assertEqual(self.left(), [])
        report = self.report(*liar, "-a", "api-direct", *arguments)
        self.assertEqual([v["status"] for v in report["verdicts"]], ["expected", "stale"])
        self.assertTrue(report["failed"])

    def test_expected_failures_of_no_scenario(self):
        self.write("known.yaml", "expected:\n  - {adapter: '*', scenario: test_gone, reason: long ago}\n"
                                 "  - {adapter: qwen, scenario: 'contract_*', reason: not asked for}\n"
                                 "  - {adapter: qwen, scenario: mine, reason: not asked for}\n")
        self.write("mine.yaml", "scenarios: [{name: mine, summary: x, capability: replay, task: {}, expect: [{reason: success}]}]\n")
        done = self.quick("--expected-failures", "known.yaml", "--scenario-file", "mine.yaml", "--junit", "r.xml", "--html", "r.html")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^stale +known.yaml:2:5: \*, test_gone: there is no such scenario$")
        self.assertEqual(len(re.findall(r"(?m)^not run +known.yaml:", done.stdout)), 2)
        suites = xml.etree.ElementTree.parse(os.path.join(self.dir, "r.xml")).getroot()
        self.assertEqual((suites.get("failures"), len(suites.findall(".//failure"))), ("1", 1))
        with open(os.path.join(self.dir, "r.html"), encoding="utf-8") as f:
            page = f.read()
        self.assertIn("1 expected, and not there", page)
        self.assertIn("known.yaml:2:5: *, test_gone: there is no such scenario", page)

    def test_keep_and_dir(self):
        told = self.ack("-a", "api-direct", "--scenario", "test_returns_text_response", "--output", "mine", "--keep").stdout
        self.assertEqual(told.splitlines()[-1], "kept in " + os.path.join(self.dir, "mine"))
        self.assertNotIn("kept", self.quick("--keep").stdout)
        self.assertTrue(os.listdir(os.path.join(self.dir, "mine/api-direct/test_returns_text_response")))
        again = self.ack("-a", "api-direct", "--scenario", "test_returns_text_response", "--output", "mine")
        self.assertEqual(again.returncode, 73)
        self.assertIn("is not empty", again.stderr)

    def interrupt(self, signo, sign, *arguments):
        """Started, and sent the signal when a line of its standard error begins so; returns the exit status and stdout."""
        ack = subprocess.Popen([harness.CINCH, "ack", *arguments], env=self.env, cwd=self.dir,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in ack.stderr:
            if line.startswith(sign):
                ack.send_signal(signo)
                break
        out, _ = ack.communicate(timeout=harness.PATIENCE)
        return ack.returncode, out

    def test_interrupt(self):
        for signo, status in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            code, out = self.interrupt(signo, "passed", "-a", "api-direct", "--tier", "1", "--tier", "2", "-j", "1", "--json", "r.json")
            self.assertEqual(code, status)
            self.assertIn("interrupted", out)
            with open(os.path.join(self.dir, "r.json"), encoding="utf-8") as f:
                report = json.load(f)
            self.assertTrue(report["interrupted"])
            self.assertIn(["interrupted"], [v["why"] for v in report["verdicts"]])
            self.assertEqual(os.listdir(self.env["TMPDIR"]), [])

    def test_interrupt_while_a_version_is_awaited(self):
        liar = self.add_liar()
        self.write("bin/liar", f"#!/bin/sh\nsleep 1000 &\necho $$ $! > {self.dir}/pids.new\nmv {self.dir}/pids.new {self.dir}/pids\nwait\n", 0o755)
        for signo, status in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
            ack = subprocess.Popen([harness.CINCH, "ack", *liar, "-a", "api-direct", "--tier", "1", "--json", "r.json"], env=self.env,
                                   cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            harness.wait_until(lambda: os.path.exists(self.path("pids")), "the question for the version")
            ack.send_signal(signo)
            self.assertEqual(ack.wait(harness.PATIENCE), status)
            with open(self.path("pids"), encoding="utf-8") as f:
                pids = f.read().split()
            harness.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "the end of all processes")
            with open(self.path("r.json"), encoding="utf-8") as f:
                report = json.load(f)
            jsonschema.validate(report, validate.load_schema("ack-report"))
            self.assertTrue(report["interrupted"])
            self.assertEqual({v["adapter"] for v in report["verdicts"]}, {"liar", "api-direct"})
            self.assertEqual({(v["status"], *v["why"]) for v in report["verdicts"]}, {("skipped", "interrupted")})
            self.assertEqual(os.listdir(self.env["TMPDIR"]), [])
            os.unlink(self.path("pids"))
            os.unlink(self.path("r.json"))

    def test_version_that_fails(self):
        liar = self.add_liar()
        self.write("bin/liar", "#!/bin/sh\necho 'node: not found <&>' >&2\nexit 127\n", 0o755)
        verdict = self.report(*liar, "--scenario", "test_returns_text_response")["verdicts"][0]
        self.assertEqual(verdict["status"], "skipped")
        self.assertRegex(verdict["why"][0], r"liar' cannot be started \(status 127: node: not found <&>\)$")

    # --- versions ---

    def add_versions(self, *versions):
        """The liar's profile, and a program of each version in a directory of its own; the text for --matrix."""
        self.write("profiles/liar.yaml", LIAR + "tested: {since: '1.0', until: '2.9'}\n"
                   "versions: [{since: '2.0', lacks: {transcript: it forgets}}]\n")
        rows = []
        for version in versions:
            self.write(f"v{version}/liar", LIES, 0o755)
            self.write(f"v{version}/package.json", json.dumps({"name": "liar", "version": version, "bin": "liar"}))
            rows.append(f"liar\t{version}\t{self.path('v' + version)}")
        return "# a comment\n\n" + "\n".join(rows) + "\n"

    def test_a_matrix_of_versions(self):
        """Each has a row with what its part of the profile declares; the table has a column for each."""
        self.write("matrix.txt", self.add_versions("1.5", "2.5"))
        command = ("--adapter-dir", "profiles", "--matrix", "matrix.txt", "--require", "--publish-dir", "table")
        for _ in range(2):  # rows are replaced, not added
            report = self.report(*command)
        self.assertEqual([(x["name"], x["version"], x["untested"]) for x in report["adapters"]],
                         [("liar", "1.5", None), ("liar", "2.5", None)])
        verdicts = [v for v in report["verdicts"] if v["scenario"] == "test_returns_text_response"]
        self.assertEqual([v["status"] for v in verdicts], ["failed", "failed"])
        with open(self.path("table/compatibility.json"), encoding="utf-8") as f:
            rows = {row["version"]: row["capabilities"] for row in json.load(f)["rows"]}
        self.assertEqual(sorted(rows), ["1.5", "2.5"])
        self.assertNotEqual(rows["1.5"]["transcript"]["state"], "skipped")
        self.assertEqual(rows["2.5"]["transcript"], {"state": "skipped", "reason": "it forgets"})
        with open(self.path("table/compatibility.md"), encoding="utf-8") as f:
            self.assertIn("| capability | 2.5 | 1.5 |", f.read())

    def test_a_matrix_that_is_not_one(self):
        self.add_versions()
        for text, error in (("liar 1.0 /x\n", "matrix.txt:1: a line needs"), ("liar\t1.0\trelative\n", "a line needs"),
                            ("# none\n", "no line names an adapter"), ("nobody\t1\t/x\n", "'nobody'")):
            with self.subTest(text):
                self.write("matrix.txt", text)
                done = self.ack("--adapter-dir", "profiles", "--matrix", "matrix.txt")
                self.assertIn(error, done.stderr)
                self.assertIn(done.returncode, (65, 69))

    def test_nothing_tested_is_an_error_if_that_is_required(self):
        self.assertEqual(self.quick().returncode, 0)
        done = self.quick("--require")
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("nothing was tested on adapter 'qwen': not in PATH", done.stderr)

    def test_a_version_that_was_never_tested(self):
        self.write("matrix.txt", self.add_versions("2.9.9", "3.0"))
        done = self.ack("--adapter-dir", "profiles", "--matrix", "matrix.txt", "--scenario", "test_returns_text_response")
        self.assertIn("warning: liar 3.0 is not among the tested versions of its profile (1.0 to 2.9)\n", done.stdout)
        self.assertEqual(done.stdout.count("warning"), 1)

    # --- where reports go ---

    QUICK = ["-a", "qwen", "--scenario", "test_native_tool_emits*"]  # skipped at once: PATH is empty

    def quick(self, *arguments):
        return self.ack(*self.QUICK, *arguments, PATH="/nonexistent")

    def test_reports_follow_links(self):
        self.write("target.json", "old")
        os.symlink("target.json", os.path.join(self.dir, "link.json"))
        self.assertEqual(self.quick("--json", "link.json").returncode, 0)
        self.assertTrue(os.path.islink(os.path.join(self.dir, "link.json")))
        with open(os.path.join(self.dir, "target.json"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["count"]["skipped"], 1)

    def test_reports_into_pipes_and_devices(self):
        fifo = os.path.join(self.dir, "fifo")
        os.mkfifo(fifo)
        end = os.open(fifo, os.O_RDWR)
        self.addCleanup(os.close, end)
        self.assertEqual(self.quick("--json", "fifo").returncode, 0)
        self.assertEqual(json.loads(os.read(end, 65536))["count"]["skipped"], 1)
        full = self.quick("--junit", "/dev/full")
        self.assertEqual((full.returncode, os.path.exists("/dev/full")), (73, True), full.stderr)
        self.assertIn("/dev/full", full.stderr)

    def test_report_on_standard_output(self):
        for path in ("-", "/dev/stdout"):
            done = self.quick("--json", path)
            self.assertEqual(json.loads(done.stdout)["count"]["skipped"], 1)
            self.assertIn("1 skipped in ", done.stderr)
        with open(os.path.join(self.dir, "out"), "w", encoding="utf-8") as out:
            subprocess.run([harness.CINCH, "ack", *self.QUICK, "--junit", "/dev/stdout"], env={**self.env, "PATH": "/nonexistent"},
                           cwd=self.dir, stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
        self.assertEqual(xml.etree.ElementTree.parse(os.path.join(self.dir, "out")).getroot().get("skipped"), "1")

    def test_reports_that_cannot_be(self):
        self.write("file", "")
        self.write("broken/compatibility.json", "hello")
        os.makedirs(os.path.join(self.dir, "table"))
        os.symlink("table", os.path.join(self.dir, "same"))
        os.symlink("r", os.path.join(self.dir, "link"))
        for code, words, arguments in [
                (64, "--json and --junit name the same file", ["--json", "table/r", "--junit", "same/r"]),
                (64, "--json and --html name the same file", ["--json", "r", "--html", "link"]),
                (64, "--json names a file that --publish writes", ["--publish-dir", "table", "--json", "same/compatibility.json"]),
                (65, "--publish-dir: broken/compatibility.json", ["--publish-dir", "broken"]),
                (64, "--json and --html name the same file", ["--json", "r", "--html", "./r"]),
                (64, "--json and --junit name the same file", ["--json", "-", "--junit", "/dev/stdout"]),
                (64, "already used by --format json", ["--html", "-", "--format", "json"]),
                (73, "--junit: create 'none/r.xml'", ["--junit", "none/r.xml"]),
                (73, "--html: write '.'", ["--html", "."]),
                (73, "--json: create '/proc/r.json'", ["--json", "/proc/r.json"]),
                (73, "--publish-dir: create directory 'file'", ["--publish-dir", "file"]),
        ]:
            with self.subTest(words=words):
                chosen = self.QUICK if "--publish-dir" not in arguments else self.QUICK[:2]
                done = self.ack(*chosen, *arguments, PATH="/nonexistent")
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertNotIn("skipped", done.stderr)  # before the first trial
        self.assertFalse({"r", "none"} & set(os.listdir(self.dir)))
        self.assertEqual(os.listdir(os.path.join(self.dir, "table")), [])

    def test_one_report_that_fails_takes_no_other_along(self):
        done = self.quick("--json", "/dev/full", "--html", "page.html")
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertIn("write '/dev/full'", done.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.dir, "page.html")))

    # --- the table ---

    def test_publish(self):
        profiles = self.add_liar()
        done = self.ack(*profiles, "--publish-dir", "table", PATH="/nonexistent")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.dir, "table/compatibility.json"), encoding="utf-8") as f:
            rows = json.load(f)["rows"]
        self.assertEqual(rows[0]["capabilities"]["transcript"], {"state": "skipped", "reason": "not in PATH: liar"})
        with open(os.path.join(self.dir, "table/compatibility.json"), "w", encoding="utf-8") as f:
            f.write("[]")
        done = self.ack(*profiles, "--publish-dir", "table", PATH="/nonexistent")
        self.assertEqual(done.returncode, 65)
        self.assertIn("table/compatibility.json", done.stderr)

    # --- the short proof ---

    def probe(self, *arguments, **environment):
        return subprocess.run([harness.CINCH, "adapters", "--probe", *arguments], env={**self.env, **environment}, cwd=self.dir,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE * 2)

    def test_probe(self):
        done = self.probe("api-direct")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^api-direct +\S+ +passed +21/21")
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])

    def test_probe_fails(self):
        liar = self.add_liar()
        done = self.probe("--format", "json", *liar[:2], "liar")
        self.assertEqual(done.returncode, 1, done.stderr)
        told = json.loads(done.stdout)
        self.assertTrue(told["failed"])
        liar = told["adapters"][0]
        self.assertEqual((liar["name"], liar["version"], liar["verdict"]), ("liar", "6.6.6", "failed"))
        self.assertIn("something else", liar["why"])

    def test_probe_of_what_is_not_here(self):
        done = self.probe("qwen", PATH="/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^qwen +not installed +not in PATH: qwen")
        self.assertEqual(self.probe("qwenn").returncode, 69)

    def test_adapters_of_no_directory(self):
        for words in (["--probe", "api-direct"], [], ["show", "api-direct"]):
            done = subprocess.run([harness.CINCH, "adapters", *words, "--adapter-dir", "none"], env=self.env, cwd=self.dir,
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE)
            self.assertEqual(done.returncode, 66)
            self.assertIn("--adapter-dir: 'none' is not a directory", done.stderr)

    # --- a real model, played by a gateway of our own ---

    def live(self, adapter, *scenarios, options=(), **environment):
        """Live mode: the adapter's provider is a gateway that stands alone and plays the model."""
        model = {"steps": [
            {"when": {"text": "HELLO"}, "say": "The tool returned HELLO"},
            {"when": {"text": "Call uppercase_text"}, "call": {"tool": "uppercase_text", "args": {"text": "hello"}}},
            {"when": {"text": "ACK-POLICY-SAYS-NO"}, "say": "It was denied."},
            {"when": {"text": "Call ack_write_file"}, "call": {"tool": "ack_write_file"}},
            {"when": {"text": "Greet the world"}, "say": "Good morning to the world!"},
            {"say": "I was not told."}]}
        with open(os.path.join(self.dir, "model.json"), "w", encoding="utf-8") as f:
            json.dump(model, f)
        provider = subprocess.Popen([harness.CINCH, "--format", "json", "gateway", "--script", "model.json", "--token", "live-key"],
                                    env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(provider.stdout.close)
        self.addCleanup(provider.wait, harness.PATIENCE)
        self.addCleanup(provider.terminate)
        url = json.loads(provider.stdout.readline())["url"]
        profile = subprocess.run([harness.CINCH, "adapters", "show", adapter], env=self.env, capture_output=True, text=True, check=True).stdout
        with open(os.path.join(self.make_dir("live"), adapter + ".yaml"), "w", encoding="utf-8") as f:
            f.write(profile.replace("https://api.anthropic.com", url))
        chosen = [word for name in scenarios for word in ("--scenario", name)]
        return self.report("--live", "--adapter-dir", "live", "-a", adapter, *chosen, *options,
                           ANTHROPIC_API_KEY="live-key", **environment)

    LIVE = ["test_returns_text_response", "test_bridged_tool_is_called", "test_tool_result_is_correct",
            "test_transcript_contains_assistant_message", "test_tool_policy_denies_call"]

    def check_live(self, report):
        self.maxDiff = None
        self.assertEqual({v["scenario"]: (v["status"], v["why"]) for v in report["verdicts"]},
                         {name: ("passed", []) for name in self.LIVE})

    def test_live(self):
        self.check_live(self.live("api-direct", *self.LIVE, ACK_MODEL_API_DIRECT="m"))

    def test_live_within_a_limit(self):
        report = self.live("api-direct", *self.LIVE, options=["--max-usd", "5"], ACK_MODEL_API_DIRECT="claude-opus-5")
        self.check_live(report)
        self.assertEqual(report["max_usd"], 5)
        self.assertGreater(report["cost_usd"], 0)
        self.assertLess(report["cost_usd"], 5)
        # enough for the first scenario, whose output limit is lowered to what is left
        limit = report["cost_usd"] / len(self.LIVE) * 1.5
        report = self.live("api-direct", *self.LIVE, options=["--max-usd", f"{limit:.6f}"], ACK_MODEL_API_DIRECT="claude-opus-5")
        found = {v["status"]: v["why"] for v in report["verdicts"]}
        self.assertLessEqual(report["cost_usd"], limit)
        self.assertIn("--max-usd", str(found["skipped"]))
        self.assertNotIn("failed", found)

    def test_live_with_no_money_left(self):
        report = self.live("api-direct", *self.LIVE, options=["--max-usd", "0.000001"], ACK_MODEL_API_DIRECT="claude-opus-5")
        self.assertEqual({v["status"] for v in report["verdicts"]}, {"skipped"})
        self.assertIn("not enough of --max-usd was left", str(report["verdicts"][0]["why"]))
        self.assertEqual(report["cost_usd"], 0)
        for words, code in ((["--max-usd", "1"], 64), (["--live", "--max-usd", "none"], 64), (["--live", "--max-usd", "0"], 64)):
            done = subprocess.run([harness.CINCH, "ack", "-a", "api-direct", *words], env=self.env, cwd=self.dir,
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("--max-usd", done.stderr)

    def test_live_has_a_table_of_its_own(self):
        """Without a key nothing runs; the table of scripted models is left alone."""
        out = self.make_dir("tables")
        self.report("--live", "-a", "api-direct", "--publish-dir", out)
        self.assertEqual(sorted(os.listdir(out)), ["compatibility-live.json", "compatibility-live.md"])
        with open(os.path.join(out, "compatibility-live.json"), encoding="utf-8") as f:
            self.assertEqual({row["mode"] for row in json.load(f)["rows"]}, {"live"})
        with open(os.path.join(out, "compatibility-live.md"), encoding="utf-8") as f:
            self.assertIn("# Compatibility with real models\n", f.read())

    def test_live_with_a_real_harness(self):
        programs = os.path.dirname(self.real("claude-code")) + ":" + os.path.dirname(self.real("node"))
        self.check_live(self.live("claude-code", *self.LIVE, PATH=programs + ":" + self.env["PATH"]))

    def test_live_finds_a_model_that_does_not_obey(self):
        report = self.live("api-direct", "all_characters", "test_two_level*", "test_invalid_tool_params*", ACK_MODEL_API_DIRECT="m")
        found = {v["scenario"]: v for v in report["verdicts"]}
        self.assertEqual(found["test_two_level_hierarchy_expansion"]["status"], "failed")
        self.assertEqual(found["test_invalid_tool_params_returns_error"]["why"], ["holds for a scripted model only"])

    def test_live_needs_a_key(self):
        report = self.report("--live", "-a", "api-direct", "--scenario", "test_returns_text_response")
        self.assertEqual(report["verdicts"][0]["why"], ["ANTHROPIC_API_KEY is not set: a real model needs it"])

    # --- the manual ---

    def test_manual_has_every_name(self):
        with open(os.path.join(harness.ROOT, "docs", "ack.md"), encoding="utf-8") as f:
            manual = f.read()
        every = json.loads(self.ack("--list", "--format", "json").stdout)["scenarios"]
        names = {c for s in every for c in s["capabilities"]}
        for source, pattern in [("check.c", r'\{ "(\w+)", WANT_'), ("matcher.c", r'\{ "(\w+)", OPERAND_'),
                                ("scenario.c", r'\{ "(\w+)", SHAPE_')]:
            with open(os.path.join(harness.ROOT, "src", "ack", source), encoding="utf-8") as f:
                found = set(re.findall(pattern, f.read()))
            self.assertGreater(len(found), 5)
            names |= found
        missing = sorted(n for n in names if not re.search(rf"[`{{ ]{n}[`:,}} ]", manual))
        self.assertEqual(missing, [])

    def words(self, source, pattern):
        with open(os.path.join(harness.ROOT, "src", source), encoding="utf-8") as f:
            found = re.findall(pattern, f.read())
        self.assertGreater(len(found), 5)
        return set(found)

    def test_schema_for_editors(self):
        schema = validate.load_schema("ack-scenario")
        parts = schema["$defs"]
        for beside in ("task-file", "script"):  # it refers to them
            parts[beside] = validate.load_schema(beside)
        check = jsonschema.Draft202012Validator(schema)
        for path in glob.glob(os.path.join(harness.ROOT, "ack", "*.yaml")):
            with open(path, encoding="utf-8") as f:
                check.validate(yaml.safe_load(f))
        self.assertEqual(set(parts["check"]["properties"]), self.words("ack/check.c", r'\{ "(\w+)", WANT_'))
        self.assertEqual(set(parts["matcher"]["anyOf"][1]["properties"]), self.words("ack/matcher.c", r'\{ "(\w+)", OPERAND_'))
        self.assertEqual(set(parts["capability"]["enum"]),
                         {c for s in json.loads(self.ack("--list", "--format", "json").stdout)["scenarios"] for c in s["capabilities"]})
        keys = {"bases", "scenarios"}.union(*(parts[p]["properties"] for p in ("base", "scenario", "run", "signal")))
        self.assertEqual(keys, self.words("ack/scenario.c", r'\{ "(\w+)", SHAPE_'))
        good = "name: a, summary: It is., capability: replay, task: {}"
        for text in ("name: A, summary: x, capability: replay", good + ", expct: []", good + ", expect: [{reson: x}]",
                     good + ", expect: [{text: {}}]", good + ", expect: [{result: {status: x}}]", good + ", copies: 17",
                     good + ", workspace: {../x: y}", good + ", outside: {/x: y}", good + ", copies: 2, runs: [{name: b}]",
                     good + ", expect: [{record: {/etc/x: y}}]", good + ", expect: [{outside: {a/../x: y}}]",
                     good + ", runs: []", good + ", live: {promt: x}", good + ", script: {turns: []}",
                     good + ", expect: [{reason: x, text: y}]", good + ", signal: {name: HUP}",
                     good + ", timeout: 0", "name: contract_a, summary: x, capability: replay, task: {}, expect: [{reason: success}]",
                     *(good + f", expect: [{{{check}}}]" for check in IDLE)):
            with self.subTest(refused=text):
                self.write("bad.yaml", f"scenarios: [{{{text}}}]\n")
                self.assertFalse(check.is_valid(yaml.safe_load(f"scenarios: [{{{text}}}]")))
                self.assertEqual(self.ack("--list", "--scenario-file", "bad.yaml").returncode, 65)

    # --- mistakes ---

    def test_mistakes(self):
        self.write("bad.yaml", "expectd: []\n")
        self.write("twice.yaml", "scenarios: [{name: test_returns_text_response, summary: x, capability: replay, task: {},"
                                 " expect: [{reason: success}]}]\n")
        self.write("deep.yaml", "scenarios: " + "[" * 600 + "]" * 600 + "\n")
        self.write("large.yaml", "# " + "x" * (5 << 20) + "\n")
        self.write("laughs.yaml", "a: &a [x]\n" + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi")))
        self.write("long.yaml", "expected:\n" + "  - {adapter: a, scenario: b, reason: c}\n" * 5000)
        os.symlink("loop.yaml", os.path.join(self.dir, "loop.yaml"))
        for code, words, arguments, environment in [
                (65, "long.yaml: more than", ["-a", "api-direct", "--expected-failures", "long.yaml"], {}),
                (66, "loop.yaml", ["-a", "api-direct", "--expected-failures", "loop.yaml"], {}),
                (66, "loop.yaml", ["--list", "--scenario-file", "loop.yaml"], {}),
                (73, "bad.yaml' is not a directory", ["-a", "api-direct", "--output", "bad.yaml"], {}),
                (64, "--timeout must be at least 2 s", ["-a", "api-direct", "--timeout", "1"], {}),
                (64, "ACK_TIMEOUT must be at least 2 s", ["-a", "api-direct"], {"ACK_TIMEOUT": "0.5"}),
                (64, "ACK_ADAPTERS: no adapter name in ' ,'", [], {"ACK_ADAPTERS": " ,"}),
                (64, "--secret takes the name of a variable, not 'A=B'", ["-a", "api-direct", "--secret", "A=B"], {}),
                (64, "--secret takes the name of a variable, not ''", ["-a", "api-direct", "--secret", ""], {}),
                (65, "nested too deep", ["--list", "--scenario-file", "deep.yaml"], {}),
                (65, "large.yaml", ["--list", "--scenario-file", "large.yaml"], {}),
                (65, "too many values", ["--list", "--scenario-file", "laughs.yaml"], {}),
                (64, "no scenario matches 'test_nothing'", ["--scenario", "test_nothing"], {}),
                (64, "no scenario matches 'telepathy'", ["--capability", "telepathy"], {}),
                (64, "no scenario matches all the given options", ["--tier", "1", "--capability", "transcript"], {}),
                (64, "ACK_TIMEOUT", ["-a", "api-direct"], {"ACK_TIMEOUT": "soon"}),
                (64, "--publish needs all scenarios: remove --tier", ["--publish", "--tier", "1"], {}),
                (64, "--tier", ["--tier", "5"], {}),
                (69, "api-direkt", ["-a", "api-direkt"], {}),
                (69, "api-direkt", [], {"ACK_ADAPTERS": "api-direkt"}),
                (65, "bad.yaml:1:1: unknown key 'expectd'", ["-a", "api-direct", "--expected-failures", "bad.yaml"], {}),
                (66, "none.yaml", ["-a", "api-direct", "--expected-failures", "none.yaml"], {}),
                (65, "bad.yaml:1:1: unknown key 'expectd'", ["--list", "--scenario-file", "bad.yaml"], {}),
                (65, "twice.yaml:1:13: there is another scenario of this name: 'test_returns_text_response'", ["--list", "--scenario-file", "twice.yaml"], {}),
                (66, "none.yaml", ["--list", "--scenario-file", "none.yaml"], {}),
                (66, "--adapter-dir: 'none' is not a directory", ["-a", "api-direct", "--adapter-dir", "none"], {}),
                (65, "adapter profile: ", ["-a", "api-direct", "--adapter-dir", "."], {}),
        ]:
            with self.subTest(words=words):
                done = self.ack(*arguments, **environment)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual("'cinch ack --list' lists all" in done.stderr, "no scenario matches '" in words)
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])


if __name__ == "__main__":
    unittest.main()
