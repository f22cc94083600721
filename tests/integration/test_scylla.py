#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Scylla contract: what its tools find in the record, whatever happened."""

import os
import subprocess

import harness


class Record(harness.Case):
    """`--exit-profile scylla`, and -o: a record in every case."""

    def scylla(self, *args, **kw):
        return self.run_cinch("--exit-profile", "scylla", *args, **kw)

    def test_timeout(self):
        r = self.scylla("-t", "1", "--", "sleep", "600")
        self.assertEqual((r.code, r.reason), (124, "timeout"))
        self.assertEqual((r.metrics["error"], r.metrics["exit_code"]), ("Execution timeout", 124))
        lines = r.bytes("stderr.log").decode().splitlines()
        self.assertEqual(lines[0], "Timeout after 1 seconds")
        self.assertIn("phase execute (timeout): total deadline of 1 s passed", lines[1])
        # Other contracts keep the agent's stderr as it is.
        r = self.run_cinch("-t", "1", "--", "sleep", "600")
        self.assertEqual((r.bytes("stderr.log"), r.metrics["error"]), (b"", "total deadline of 1 s passed"))

    def test_why_is_in_stderr_log(self):
        r = self.scylla("--", "./no-such-agent")
        self.assertEqual(r.code, 1)
        self.assertIn("phase admit (not_found)", r.bytes("stderr.log").decode())
        r = self.scylla("-p", "none.md", "--", "true")
        self.assertIn("none.md", r.bytes("stderr.log").decode())
        r = self.scylla("--", "sh", "-c", "echo own >&2; exit 3")
        self.assertEqual(r.code, 3)
        self.assertTrue(r.bytes("stderr.log").decode().startswith("own\ncinch: error in phase"), r.bytes("stderr.log"))
        self.assertEqual(self.scylla("--", "true").bytes("stderr.log"), b"")

    def test_a_wrong_file_is_a_record(self):
        """…with the exit code of the contract, and nothing is started."""
        for name, text, word in (("c.json", '{"tools_enabled": "maybe"}', "tools_enabled"), ("c.yaml", "a: [", "c.yaml:2:1"),
                                 ("c.yaml", "- 1", "map")):
            with self.subTest(text=text):
                config = self.write(name, text)
                r = self.scylla("-c", config, "--", "touch", self.path("ws", "started"))
                self.assertEqual((r.code, r.reason, r.metrics["exit_code"]), (1, "bad_task", 1), r.stderr)
                self.assertIn(word, r.manifest["error"])
                self.assertIn(word, r.bytes("stderr.log").decode())
                self.assertIn(word, r.stderr.decode())
                self.assertFalse(os.path.exists(self.path("ws", "started")))
        r = self.run_cinch("--exit-profile", "holon", self.write("t.yaml", "nonsense: 1\n"), "--", "true")
        self.assertEqual((r.code, r.reason), (1, "bad_task"))
        r = self.run_cinch(self.write("t.yaml", "nonsense: 1\n"), "--", "true")
        self.assertEqual((r.code, r.reason), (65, "bad_task"))

    def test_a_secret_of_a_wrong_file_is_not_recorded(self):
        config = self.write("c.json", '{"api_keys": {"K": "sesame-open-4711"}, "tier_name": ["sesame-open-4711"]}')
        r = self.scylla("-c", config, "--", "true")
        self.assertEqual(r.reason, "bad_task")
        for base, _, names in os.walk(r.output):
            for name in names:
                self.assertNotIn(b"sesame-open", open(os.path.join(base, name), "rb").read(), name)

    def test_nothing_is_overwritten_by_a_refusal(self):
        first = self.run_cinch("--", "true")
        config = self.write("c.yaml", "a: [")
        for options in ((), ("--force",)):
            r = self.run_cinch("-c", config, *options, "--", "true", output=first.output, valid=False)
            self.assertEqual(r.code, 65)
            self.assertEqual(r.manifest["outcome"], "success")

    def test_without_a_directory_a_refusal_leaves_nothing(self):
        state = self.make_dir("state")
        for args in (("-p", "none.md", "--", "true"), ("-c", "none.json", "--", "true"), ("--", "./no-such-agent"),
                     ("-s", "NO_SUCH_SECRET", "--", "true")):
            r = self.cinch("run", "-w", self.workspace, *args, env={"XDG_STATE_HOME": state})
            self.assertNotEqual(r.code, 0)
            self.assertNotIn(b"record:", r.stdout)
            found = [os.path.join(base, name) for base, dirs, names in os.walk(state) for name in names]
            self.assertEqual(found, [], args)
        # A run that was started is a record, also when it fails.
        r = self.cinch("run", "-w", self.workspace, "--", "false", env={"XDG_STATE_HOME": state})
        self.assertIn(b"record:", r.stdout)

    def test_strict_needs_model_and_tier(self):
        strict = ("--set", "eval.strict=true")
        for options, word in ((("-m", "M"), "tier"), (("--tier", "T1"), "model")):
            r = self.scylla(*strict, *options, "--", "true")
            self.assertEqual((r.code, r.reason), (1, "bad_task"), r.stderr)
            self.assertIn(word, r.manifest["error"])
        self.assertEqual(self.scylla(*strict, "-m", "M", "--tier", "T1", "--", "true").code, 0)
        self.assertEqual(self.run_cinch(*strict, "--", "true").code, 0)


class Config(harness.Case):
    """`-c FILE`: nothing that its author relies on is dropped in silence."""

    def config(self, text, *options, **kw):
        return self.run_cinch("-c", self.write("config.yaml", text), *options, "--", "true", **kw)

    def test_limits_are_limits(self):
        r = self.config("timeout_seconds: 7200\nmax_cost_usd: 5.0\n", "-u", "http://127.0.0.1:9")
        self.assertEqual(r.code, 0, r.stderr)
        limits = r.json("task.json")["limits"]
        self.assertEqual((limits["timeout"], limits["usd"]), (7200, 5.0))
        self.assertEqual(r.manifest["warnings"], [])
        r = self.run_cinch("-c", self.write("c.yaml", "timeout_seconds: 1\n"), "--", "sleep", "600")
        self.assertEqual(r.reason, "timeout")
        # A cap that nobody could keep is refused.
        self.assertEqual(self.config("max_cost_usd: 5.0\n").reason, "unavailable")
        self.assertEqual(self.config("timeout_seconds: null\nmax_cost_usd: null\n").json("task.json")["limits"]["timeout"], 3600)

    def test_settings_are_settings(self):
        r = self.config("tier_id: T1\nlimits: {timeout: 55}\nname: mine\n")
        task = r.json("task.json")
        self.assertEqual((task["eval"]["tier"], task["limits"]["timeout"], task["name"]), ("T1", 55, "mine"))

    def test_near_misses(self):
        for key, meant in (("tier_idd", "tier_id"), ("timeout_second", "timeout_seconds"), ("max_costs_usd", "max_cost_usd"),
                           ("tools_enable", "tools_enabled"), ("limit", "limits")):
            r = self.config(f"a: 1\n{key}: 1\n")
            self.assertEqual((r.code, r.reason), (65, "bad_task"))
            self.assertIn("config.yaml:2:", r.manifest["error"])
            self.assertIn(f"unknown key '{key}' (did you mean '{meant}'?)", r.manifest["error"])

    def test_others_are_passed_on_with_a_warning(self):
        r = self.config("my_own: {deep: 1}\nanother: 2\n")
        self.assertEqual(r.json("task.json")["config"], {"my_own": {"deep": 1}, "another": 2})
        self.assertEqual(len([w for w in r.manifest["warnings"] if "'my_own', 'another'" in w]), 1)

    def test_an_empty_key(self):
        r = self.config("api_keys: {OPENAI_API_KEY: ''}\n")
        self.assertEqual((r.code, r.reason), (65, "bad_task"))
        self.assertIn("config.yaml:1:", r.manifest["error"])
        self.assertIn("OPENAI_API_KEY", r.manifest["error"])


class Files(harness.Case):
    """Model and tier files in Scylla's words, in the site's directory."""

    def setUp(self):
        super().setUp()
        self.env["CINCH_SITE_DIR"] = self.make_dir("site")

    def test_tier_file(self):
        self.write("site/tiers/t1.yaml", 'tier: "t1"\nname: "Prompted"\ndescription: "d"\nsystem_prompt: "Think."\n'
                   "uses_tools: false\nuses_delegation: false\nuses_hierarchy: false\n")
        r = self.run_cinch("--tier", "T1", "--", "sh", "-c", "env")
        self.assertEqual(r.code, 0, r.stderr)
        env = r.bytes("stdout.log").decode().splitlines()
        for line in ("TIER=T1", "TIER_NAME=Prompted", "TOOLS_ENABLED=false", "DELEGATION_ENABLED=false"):
            self.assertIn(line, env)
        self.assertEqual(r.json("task.json")["eval"]["tier_prompt"], "Think.")
        self.write("site/tiers/t0.yaml", "tier: t0\nname: Vanilla\nsystem_prompt: null\n")
        r = self.run_cinch("--tier", "T0", "--", "sh", "-c", "env")
        self.assertNotIn("TOOLS_ENABLED", r.bytes("stdout.log").decode())

    def test_model_file(self):
        self.write("site/models/my-model.yaml", 'model_id: "my-model"\nname: "Mine"\nprovider: "block"\nadapter: "my_agent"\n'
                   "temperature: 0.5\nmax_tokens: 4096\ncost_per_1k_input: 0.01\ncost_per_1k_output: 0.03\n"
                   "timeout_seconds: 1234\nmax_cost_usd: null\n")
        profiles = self.make_dir("profiles")
        self.write("profiles/my-agent.yaml", "name: my-agent\nbinary: ['true']\nargv: ['{binary}']\n")
        r = self.run_cinch("--adapter-dir", profiles, "-m", "my-model", "do it")
        self.assertEqual(r.code, 0, r.stderr)
        task = r.json("task.json")
        self.assertEqual((task["agent"]["adapter"], task["agent"]["model"], task["limits"]["timeout"]), ("my-agent", "my-model", 1234))
        self.assertEqual(task["agent"]["sampling"], {"temperature": 0.5, "max_tokens": 4096})
        # The command line wins.
        r = self.run_cinch("-m", "my-model", "-t", "9", "--", "true")
        self.assertEqual((r.json("task.json")["agent"]["adapter"], r.json("task.json")["limits"]["timeout"]), ("command", 9))


class Test(harness.Case):
    """cinch run TEST/: a test directory as it is."""

    EXAMPLE = os.path.join(harness.ROOT, "examples", "scylla")
    AGENT = ("sh", "-c", 'echo "Hello, world!" > hello.txt; env')

    def test_example(self):
        r = self.run_cinch(os.path.join(self.EXAMPLE, "tests", "hello"), "--tier", "T1", "--", *self.AGENT)
        self.assertEqual(r.code, 0, r.stderr)
        self.assertIn(b"+Hello, world!", r.bytes("diff.patch"))
        self.assertIn(b"Write a file", r.bytes("logs", "prompt.txt"))
        env = r.bytes("stdout.log").decode().splitlines()
        for line in ("TEST_ID=hello", "TIER=T1", "TIER_NAME=Prompted", "TOOLS_ENABLED=false"):
            self.assertIn(line, env)
        task = r.json("task.json")
        self.assertEqual((task["limits"]["timeout"], task["eval"]["tier_prompt"]), (120, "Think step by step."))
        self.assertEqual(task["metadata"]["scylla"]["language"], "python")

    def test_model_file_above_the_test(self):
        r = self.run_cinch(os.path.join(self.EXAMPLE, "tests", "hello"), "-m", "demo", "--", *self.AGENT)
        self.assertEqual(r.json("task.json")["agent"]["sampling"]["max_tokens"], 8192)

    def make(self, text, **files):
        for name, content in {"test.yaml": text, "prompt.md": "Do it.\n", **files}.items():
            self.write(f"tests/t/{name}", content)
        return self.path("tests", "t")

    def test_pinned_commit(self):
        """The agent gets the commit that the test names, of the clone that the user has."""
        self.write("ws/a", "old\n")
        for words in (("init", "-q", "."), ("add", "-A"), ("commit", "-qm", "first")):
            self.git(*words)
        commit = self.git("rev-parse", "HEAD")
        self.write("ws/a", "new\n")
        self.git("commit", "-qam", "second")
        test = self.make(f"id: t\nname: T t\nlanguage: mojo\nsource: {{repo: 'https://host.invalid/r', hash: {commit}}}\n"
                         "task: {prompt_file: prompt.md, timeout_seconds: 60}\n"
                         "validation: {criteria_file: expected/criteria.md, rubric_file: expected/rubric.yaml}\ntiers: [T0]\n")
        r = self.run_cinch(test, "--", "cat", "a")
        self.assertEqual((r.code, r.bytes("stdout.log")), (0, b"old\n"), r.stderr)
        self.assertEqual(r.json("task.json")["metadata"]["scylla"]["source"]["repo"], "https://host.invalid/r")

    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=u", "-c", "user.email=u@localhost", *words], cwd=self.workspace,
                              check=True, capture_output=True, text=True).stdout.strip()

    def test_built_in_tiers(self):
        test = self.make("id: t\ntask: {prompt_file: prompt.md}\n")
        for tier, tools in (("T0", None), ("T1", False), ("T2", False), ("T3", True), ("T6", True)):
            r = self.run_cinch(test, "--tier", tier, "--", "true")
            self.assertEqual(r.json("task.json")["eval"].get("tools_enabled"), tools, tier)
        # A table beside the tests wins.
        self.write("tests/tiers.yaml", "tiers: {T1: {name: Mine, tools_enabled: true}}\n")
        r = self.run_cinch(test, "--tier", "T1", "--", "true")
        self.assertEqual((r.json("task.json")["eval"]["tools_enabled"], r.json("task.json")["eval"]["tier_name"]), (True, "Mine"))

    def test_as_others_write_it(self):
        """Odd but legal: the file instead of its directory, ./ before a path, CR LF, a byte order mark, JSON in YAML."""
        for text in ("id: t\ntask: {prompt_file: ./prompt.md}\n", "\ufeffid: t\r\ntask:\r\n  prompt_file: prompt.md\r\n",
                     '{"id": "t", "task": {"prompt_file": "prompt.md"}}', "---\nid: 'ü'\ntask: {prompt_file: prompt.md}\n...\n"):
            test = self.make(text, **{"config.yaml": "timeout_seconds: 77\r\n"})
            for path in (test, test + "/", os.path.join(test, "test.yaml")):
                with self.subTest(text=text, path=path):
                    r = self.run_cinch(path, "--tier", "T1", "--", "true")
                    self.assertEqual((r.code, r.json("task.json")["limits"]["timeout"]), (0, 77), r.stderr)
        r = self.run_cinch("test.yaml", "--", "true", cwd=test)
        self.assertEqual(r.code, 0, r.stderr)

    def test_wrong(self):
        """Right reason, right code, a record, and nothing started."""
        witness = self.path("ws", "started")
        good = "id: t\ntask: {prompt_file: prompt.md}\n"
        for text, files, code, words in (
                ("id: [", {}, 65, ["test.yaml:"]), ("- 1\n", {}, 65, ["test.yaml", "map"]),
                ("id: t\n", {}, 65, ["task.prompt_file"]), ("task: {prompt_file: p.md}\n", {}, 65, ["'id'"]),
                ("id: t\ntask: {prompt_file: ../../etc/passwd}\n", {}, 65, ["test.yaml:2:", "below the test"]),
                ("id: t\ntask: {prompt_file: /etc/passwd}\n", {}, 65, ["test.yaml:2:", "below the test"]),
                ("id: t\ntask: {prompt_file: gone.md}\n", {}, 66, ["gone.md"]),
                (good + "source: {repo: r, hash: main}\n", {}, 65, ["test.yaml:3:", "source.hash"]),
                ("id: t\ntask: {prompt_file: prompt.md, timeout_seconds: soon}\n", {}, 65, ["test.yaml:2:", "timeout"]),
                (good, {"config.yaml": "max_cost_us: 5\n"}, 65, ["config.yaml:1:", "did you mean 'max_cost_usd'"]),
                (good, {"config.yaml": "["}, 65, ["config.yaml:"])):
            with self.subTest(text=text, files=files):
                self.write("tests/t/config.yaml", "")
                os.remove(self.path("tests", "t", "config.yaml"))
                r = self.run_cinch(self.make(text, **files), "--", "touch", witness)
                self.assert_failed(r, code, *words)
                self.assertEqual(r.reason, "missing_input" if code == 66 else "bad_task")
                self.assertFalse(os.path.exists(witness))


class SubTest(harness.Case):
    """--subtest: what it names is installed into the run's home, never into the workspace."""

    HELLO = os.path.join(harness.ROOT, "examples", "scylla", "tests", "hello")

    def test_blocks_of_instructions(self):
        """In front of the prompt for a program that has no file for them."""
        r = self.run_cinch(self.HELLO, "--tier", "T0", "--subtest", "02", "--", "true")
        self.assertEqual(r.code, 0, r.stderr)
        prompt = r.bytes("logs", "prompt.txt").decode()
        self.assertTrue(prompt.startswith("# Rules\n\nGreetings end with an exclamation mark.\n\n# Safety\n\nNever push.\n\n"), prompt)
        self.assertIn("Write a file", prompt)
        self.assertEqual([os.path.basename(p) for p in r.json("task.json")["instructions"]], ["B01-rules.md", "B02-safety.md"])

    def test_by_number_and_by_name(self):
        for name in ("01", "01-quality", "quality"):
            r = self.cinch("config", self.HELLO, "--tier", "T1", "--subtest", name, "-w", self.workspace, "-a", "claude-code")
            self.assertEqual(r.code, 0, r.stderr)
            self.assertIn(b"tidy", r.stdout)

    def test_servers_and_tools(self):
        self.write("lib/tests/t/test.yaml", "id: t\ntask: {prompt_file: prompt.md}\n")
        self.write("lib/tests/t/prompt.md", "Do it.\n")
        self.write("lib/shared/subtests/t2/03-mcp.yaml", "resources: {mcp_servers: [{name: File-System, source: vendor}, "
                   "{name: own, command: [./server]}], tools: {enabled: [Read, Grep]}}\nagent_teams: true\n")
        r = self.cinch("config", self.path("lib", "tests", "t"), "--tier", "T2", "--subtest", "mcp", "-a", "claude-code", "-w", self.workspace)
        self.assertEqual(r.code, 0, r.stderr)
        for words in ("npx", "@vendor/File-System", "t2/server", "file-system_*", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"):
            self.assertIn(words, r.stdout.decode())

    def test_bad(self):
        """Right reason, right code, a record, and nothing started."""
        witness = self.path("ws", "started")
        self.write("lib/tests/t/test.yaml", "id: t\ntask: {prompt_file: prompt.md}\n")
        self.write("lib/tests/t/prompt.md", "Do it.\n")
        for text, code, words in (
                ("resources: {claude_md: {blocks: [B99]}}\n", 66, ["9.yaml:1:", "B99", "blocks"]),
                ("resources: {skills: {categories: [none]}}\n", 66, ["9.yaml:1:", "skills"]),
                ("resources: {skills: {names: [../../etc]}}\n", 65, ["9.yaml:1:", "list of names"]),
                ("resources: {agents: {names: [/etc/passwd]}}\n", 65, ["9.yaml:1:", "list of names"]),
                ("resources: {agents: {levels: x}}\n", 65, ["9.yaml:1:", "list of names"]),
                ("resources: [1]\n", 65, ["9.yaml:1:", "resources"]), ("- 1\n", 65, ["map"]), ("resources: [", 65, ["9.yaml:"]),
                ("system_prompt_mode: odd\n", 65, ["9.yaml:1:", "system_prompt_mode"]),
                ("inherit_best_from: [T0]\n", 69, ["9.yaml:1:", "inherit_best_from"])):
            with self.subTest(text):
                self.write("lib/subtests/t1/9.yaml", text)
                r = self.run_cinch(self.path("lib", "tests", "t"), "--tier", "T1", "--subtest", "9", "--", "touch", witness)
                self.assert_failed(r, code, *words)
                self.assertEqual(r.reason, {65: "bad_task", 66: "missing_input", 69: "unavailable"}[code])
                self.assertFalse(os.path.exists(witness))
        for options, code in ((("--tier", "T1", "--subtest", "77"), 66), (("--subtest", "9"), 64), (("--tier", "T1", "--subtest", "../9"), 64)):
            r = self.run_cinch(self.path("lib", "tests", "t"), *options, "--", "touch", witness)
            self.assert_failed(r, code)

    def test_what_an_adapter_cannot_take(self):
        model = ("--script", self.write("model.yaml", "steps: [{say: never}]\n"))
        r = self.run_cinch(self.HELLO, "--tier", "T3", "--subtest", "01", "-a", "codex", *model)
        self.assert_failed(r, 69, "sub-agents")
        r = self.run_cinch(self.HELLO, "--tier", "T0", "--subtest", "00", "-a", "codex", *model)
        self.assert_failed(r, 69, "system prompt")

    def test_a_clone_in_a_mirror(self):
        self.write("mirror/hello/a.txt", "text\n")
        self.write("lib/t/test.yaml", "id: t\nsource: {repo: 'https://host.invalid/x/hello.git', hash: " + "a" * 40 + "}\n"
                   "task: {prompt_file: prompt.md}\nmodels: {T1: cheap, T2: [dear]}\n")
        self.write("lib/t/prompt.md", "Do it.\n")
        options = (self.path("lib", "t"), "--set", "workspace.ref=null", "--mirror", self.path("mirror"))
        r = self.run_cinch(*options, "--", "cat", "a.txt")
        self.assertEqual((r.code, r.bytes("stdout.log")), (0, b"text\n"), r.stderr)
        for tier, model in (("T1", "cheap"), ("T2", "dear"), ("T3", None)):
            r = self.run_cinch(*options, "--tier", tier, "--", "true")
            self.assertEqual(r.json("task.json").get("agent", {}).get("model"), model)
        r = self.run_cinch(*options, "--tier", "T1", "-m", "mine", "--", "true")
        self.assertEqual(r.json("task.json")["agent"]["model"], "mine")
        os.rename(self.path("mirror", "hello"), self.path("mirror", "other"))
        self.assert_failed(self.run_cinch(*options, "--", "true"), 66, "clone")


class SubTestOnClaude(harness.Case):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real("claude-code")) + ":" + self.env["PATH"]
        self.model = self.write("model.yaml", "steps: [{say: done}]\n")

    def request(self, tier, subtest):
        r = self.run_cinch(SubTest.HELLO, "--tier", tier, "--subtest", subtest, "-a", "claude-code", "-m", "claude-opus-4-8",
                           "--script", self.model, "--set", "limits.usd=null", "--set", "eval.tools_enabled=null",
                           "--set", "eval.delegation_enabled=null", "--set", "eval.tier_prompt=null")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(r.bytes("diff.patch"), b"")
        cassette = r.path("evidence", "traffic.cassette")
        lines = self.cinch("cassette", "show", cassette).stdout.decode().splitlines()[1:]
        return "".join(self.cinch("cassette", "show", "-x", line.split()[0], cassette).stdout.decode() for line in lines)

    def test_instructions_skills_agents_and_no_system_prompt(self):
        self.assertIn("Greetings end with an exclamation mark.", self.request("T0", "02"))
        self.assertIn("Tidies text files.", self.request("T1", "01"))
        self.assertIn("Reviews changes.", self.request("T3", "01"))
        usual, empty = self.request("T1", "01"), self.request("T0", "00")
        words = "user-selected permission mode"  # part of its own system prompt
        self.assertIn(words, usual)
        self.assertNotIn(words, empty)


class SharedHome(harness.Case):
    """A harness that would go past the gateway or the tools of the task is refused, at once."""

    def test_refused(self):
        script = self.write("s.yaml", "turns: [{say: hi}]\n")
        for adapter in ("codex", "codex-exec", "opencode"):
            r = self.run_cinch("-a", adapter, "--home", "shared", "--script", script, "hi")
            self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stderr)
            self.assertIn("--home private", r.manifest["error"])
        task = self.write("t.yaml", "tools:\n  - {name: note, description: Notes., command: [sh, -c, echo noted]}\n")
        r = self.run_cinch("-a", "claude-code", "--home", "shared", "--script", script, task, "-p", self.write("p.md", "hi"))
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stderr)
        self.assertIn("tools of the task", r.manifest["error"])
        self.assertEqual(os.listdir(self.path("userhome")), [])


if __name__ == "__main__":
    harness.main()
