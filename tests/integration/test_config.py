#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Configuration layers with their origin, the harness' own files, and the trust lifecycle."""

import json
import os
import signal

import harness

PROFILE = """
name: fake
binary: [sh]
argv: ["{binary}", "-c", "cd $HOME && find . -type f | sort && cat .fake/settings.json .fake/config.toml .fake/extra.yaml"]
files:
  - {name: settings, path: .fake/settings.json, format: json}
  - {name: toml, path: .fake/config.toml, format: toml}
  - {name: extra, path: .fake/extra.yaml, format: yaml}
settings:
  files:
    settings: {quiet: true, drop: 1, list: [1, 2]}
    toml: {model: base, nested: {a: 1}}
enforced:
  files: {settings: {approval: never}}
"""


class Layers(harness.Case):
    def explain(self, *args):
        r = self.cinch("config", "--explain", "--format", "json", *args)
        self.assertEqual(r.code, 0, r.stderr)
        return {leaf["path"]: leaf for leaf in json.loads(r.stdout)}

    def test_origin_of_every_setting(self):
        task = self.write("task.yaml", "agent:\n  command: [x]\n  model: m\nlimits:\n  idle: 5\n")
        self.write("site/config.yaml", "limits: {idle: 1, grace: 9}\n")
        self.env["CINCH_SITE_DIR"] = self.path("site")
        found = self.explain(task, "--timeout", "90s")
        self.assertEqual((found["limits.idle"]["layer"], found["limits.idle"]["source"]), ("task", f"{task}:5:9"))
        self.assertEqual(found["limits.grace"]["layer"], "site")
        self.assertEqual((found["limits.timeout"]["layer"], found["limits.timeout"]["value"]), ("request", 90))
        self.assertEqual((found["limits.drain"]["layer"], found["limits.drain"]["value"]), ("default", 5))
        text = self.cinch("config", "--explain", task).stdout.decode()
        self.assertRegex(text, r"limits\.idle +5 +task +.*task\.yaml:5:9")

    def test_defaults_that_no_layer_sets(self):
        found = self.explain("--adapter", "command")
        for path, value in (("sandbox.mode", "workspace-write"), ("workspace.mode", "snapshot"), ("agent.auth", "gateway"),
                            ("gateway.record", True), ("limits.timeout", 3600)):
            self.assertEqual((found[path]["value"], found[path]["layer"], found[path]["source"]), (value, "default", "built in"))
        self.assertEqual((found["sandbox.disk"]["value"], found["sandbox.disk"]["source"]),
                         (None, "20G, or half of the free space if that is less"))
        self.assertNotIn("sandbox.memory", found)
        self.assertEqual(self.explain("--sandbox", "off")["sandbox.mode"]["layer"], "request")
        self.assertNotIn("sandbox", json.loads(self.cinch("config").stdout))  # the merged tree has recorded defaults only
        text = self.cinch("config", "--explain", "--idle-timeout", "5").stdout.decode()
        self.assertRegex(text, r"limits\.idle +5.0 +request +command line +--idle-timeout\n")

    def test_null_removes(self):
        task = self.write("task.yaml", "limits: {grace: null}\n")
        self.assertNotIn("limits.grace", self.explain(task))

    def test_the_record_keeps_it(self):
        r = self.run_command("true", options=["--idle-timeout", "9s"])
        leaves = {x["path"]: x for x in r.json("evidence", "config.json")}
        self.assertEqual(leaves["limits.idle"]["layer"], "request")
        self.assertEqual(leaves["limits.idle"]["source"], "command line")


class ProjectFile(harness.Case):
    """A repository may adjust a run, but not choose what runs or what protects the user."""

    def refused(self, text, *words):
        self.write("ws/.cinch/config.yaml", text)
        for options in ((), ("--sandbox", "off")):
            r = self.run_cinch(*options, "fix it", cwd=self.workspace, valid=False)
            self.assertEqual(r.code, 65, r.stderr)
            for word in (self.workspace + "/.cinch/config.yaml:1:", *words):
                self.assertIn(word, r.stderr.decode())
            self.assertFalse(os.path.exists(self.path("ran")))

    def test_chooses_no_program(self):
        evil = self.write("ws/evil.sh", f"#!/bin/sh\ntouch {self.path('ran')}\n")
        os.chmod(evil, 0o755)
        for name in ("exec:evil.sh", f"exec:{evil}", "exec:./evil.sh", "image:oci-archive:evil.tar", "contract"):
            self.refused(f'agent: {{adapter: "{name}"}}\n', "'agent.adapter'", name)
        self.refused("agent: {adapter: command, command: [./evil.sh]}\n", "'agent.command'")

    def test_chooses_no_program_beside_it(self):
        os.symlink("/bin/true", self.path("ws", "cinch-adapter-evil"))
        self.env["PATH"] = ".:" + self.env["PATH"]
        self.refused("agent: {adapter: evil}\n", "'agent.adapter'")

    def test_opens_nothing(self):
        for text, key in (("sandbox: off\n", "sandbox"), ("gateway: {upstream: 'http://127.0.0.1:1'}\n", "gateway"),
                          ("agent: {auth: env}\n", "agent.auth"), ("home: shared\n", "home"),
                          ("output: {dir: x}\n", "output"), ("env: {inherit: true}\n", "env"),
                          ("limits: {usd: 1000}\n", "limits.usd"), ("limits: null\n", "limits"),
                          ("eval: {strict: false}\n", "eval.strict"),
                          ("eval: {tools_enabled: true}\n", "eval.tools_enabled"),
                          ("completion: {command: [./evil.sh]}\n", "completion")):
            self.refused(text, f"'{key}'")

    def test_is_no_link(self):
        """A message about it would quote a file that the repository does not have."""
        secret = self.write("secret.yaml", "root-of-all: x\n")
        os.makedirs(self.path("ws", ".cinch"))
        os.symlink(secret, self.path("ws", ".cinch", "config.yaml"))
        r = self.run_cinch("fix it", cwd=self.workspace, valid=False)
        self.assertEqual(r.code, 65, r.stderr)
        self.assertIn("config.yaml' is a symbolic link", r.stderr.decode())
        self.assertNotIn("root-of-all", r.stderr.decode())

    def test_a_model_is_no_option(self):
        self.refused("agent: {model: --yolo}\n", "'agent.model' must not begin with '-'")

    def test_adjusts_a_run(self):
        self.write("adapters/own.yaml", "name: own\nbinary: [sh]\nargv: ['{binary}', -c, 'echo model={model}']\n")
        self.write("ws/.cinch/config.yaml", "agent: {adapter: own, model: m1}\nlimits: {timeout: 77}\n")
        r = self.run_cinch("--adapter-dir", self.path("adapters"), "go", cwd=self.workspace)
        self.assertEqual((r.code, r.bytes("stdout.log")), (0, b"model=m1\n"), r.stderr)
        self.assertEqual({x["path"]: x for x in r.json("evidence", "config.json")}["limits.timeout"]["layer"], "project")


class HarnessFiles(harness.Case):
    def test_written_below_the_runs_home_only(self):
        self.write("adapters/fake.yaml", PROFILE)
        task = self.write("t.yaml", "agent: {adapter: fake}\nprompt: x\n"
                          "files:\n  settings: {drop: null, list: [3], approval: always}\n"
                          "  toml: {nested: {b: two}}\n  extra: {k: [true, null, 1.5, 'yes']}\n")
        r = self.run_cinch("--adapter-dir", self.path("adapters"), task)
        self.assertEqual(r.code, 0, r.bytes("stderr.log"))
        text = r.bytes("stdout.log").decode()
        for name in ("./.fake/settings.json", "./.fake/config.toml", "./.fake/extra.yaml"):
            self.assertIn(name + "\n", text)
        settings = text[text.index("{"):text.index("}") + 1]
        self.assertEqual(json.loads(settings), {"quiet": True, "list": [3], "approval": "never"})
        self.assertIn('model = "base"', text)
        self.assertRegex(text, r"\[nested\]\na = 1\nb = \"two\"")
        self.assertIn('k:\n  - true\n  - null\n  - 1.5\n  - "yes"\n', text)
        self.assertEqual(os.listdir(self.env["HOME"]), [])
        self.assertEqual(os.listdir(self.workspace), [])


CODEX = """# my settings, do not touch
model = "gpt"   # the good one

[projects."/elsewhere"]
trust_level = "untrusted"

[tools]
web = true
"""


class Trust(harness.Case):
    def setUp(self):
        super().setUp()
        home = self.env["HOME"]
        self.codex = self.write("userhome/.codex/config.toml", CODEX)
        self.gemini = self.write("userhome/.gemini/trustedFolders.json", '{\n  "/a": "TRUST_FOLDER"\n}\n')
        for name, file in (("codex", ".codex/config.toml"), ("gemini", ".gemini/trustedFolders.json")):
            self.write(f"adapters/{name}.yaml", f"""
name: fake-{name}
binary: [sh]
argv: ["{{binary}}", "{{args...}}"]
home: shared
trust: {{style: {name}, file: {file}}}
""")
        self.assertEqual(os.path.commonpath([home, self.codex]), home)

    def read(self, path):
        with open(path, "rb") as f:
            return f.read()

    def trusting(self, style, script, *options, **kw):
        return self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", f"fake-{style}", "--trust-project", *options, "go",
                              "--", "-c", script, **kw)

    def test_registered_during_and_removed_after(self):
        for style, path in (("codex", self.codex), ("gemini", self.gemini)):
            before = self.read(path)
            for script, code in ((f"cat {path}", 0), (f"cat {path}; exit 1", 1)):
                r = self.trusting(style, script)
                self.assertEqual(r.code, code)
                seen = r.bytes("stdout.log")
                self.assertIn(os.path.realpath(self.workspace).encode(), seen.replace(b"\\/", b"/"))
                for line in before.splitlines():
                    self.assertIn(line.rstrip(b",").strip(), seen)
                self.assertEqual(self.read(path), before)

    def test_removed_after_a_timeout(self):
        before = self.read(self.codex)
        r = self.trusting("codex", "sleep 60", "--timeout", "0.2")
        self.assertEqual(r.code, 124)
        self.assertEqual(self.read(self.codex), before)

    def test_a_corrupt_file_is_refused_and_left_alone(self):
        bad = self.write("userhome/.codex/config.toml", "this = is = not toml\n")
        r = self.trusting("codex", "true")
        self.assertNotEqual(r.code, 0)
        self.assertIn("config.toml:1:", r.manifest["error"])
        self.assertEqual(r.events("process.spawned"), [])
        self.assertEqual(self.read(bad), b"this = is = not toml\n")

    def test_what_a_killed_run_left_is_swept(self):
        before = self.read(self.codex)
        process, r = self.start("--adapter-dir", self.path("adapters"), "--adapter", "fake-codex", "--trust-project", "go", "--",
                                "-c", "true", env={"CINCH_STOP_AT": "execute"})
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        self.assertNotEqual(self.read(self.codex), before)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = self.cinch("doctor", "--sweep", "--adapter-dir", self.path("adapters"))
        self.assertEqual(self.read(self.codex), before, done.stdout + done.stderr)

    def test_the_next_run_sweeps(self):
        """Any run of the harness removes the entry of one that was killed, also with a home of its own."""
        before = self.read(self.codex)
        process, r = self.start("--adapter-dir", self.path("adapters"), "--adapter", "fake-codex", "--trust-project", "go", "--",
                                "-c", "true", env={"CINCH_STOP_AT": "execute"})
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertNotEqual(self.read(self.codex), before)
        r = self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "fake-codex", "--home", "private", "go", "--", "-c", "true")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(self.read(self.codex), before)

    def test_built_in_profiles(self):
        """Gemini CLI with a shared home works in a trusted folder only if the project is trusted."""
        before = self.read(self.gemini)
        self.script("bin/gemini", f"cat {self.gemini} >&2; echo '{{\"response\": \"hello\"}}'\n")
        self.env["PATH"] = self.path("bin") + ":" + self.env["PATH"]
        script = self.write("model.yaml", "steps: [{say: never}]\n")
        for options, trusted in (((), False), (("--trust-project",), True)):
            r = self.run_cinch("-a", "gemini-print", "-m", "gemini-3-pro", "--home", "shared", "--script", script, *options, "hi")
            self.assertEqual(r.result["text"], "hello", r.stderr)
            seen = r.bytes("stderr.log").replace(b"\\/", b"/")
            self.assertEqual(os.path.realpath(self.workspace).encode() in seen, trusted)
            self.assertEqual(self.read(self.gemini), before)

    def test_clean_up_failure_does_not_change_the_outcome(self):
        before = self.read(self.codex)
        r = self.trusting("codex", f"echo '= broken' >> {self.codex}")
        self.assertEqual((r.code, r.manifest["warnings"]), (0, []))  # a sandbox keeps the agent from doing it
        self.assertEqual(self.read(self.codex), before)
        r = self.trusting("codex", f"echo '= broken' >> {self.codex}", "--sandbox", "off")
        self.assertEqual((r.code, r.reason), (0, "success"))
        self.assertTrue(any("trust" in w for w in r.manifest["warnings"]), r.manifest["warnings"])

    def test_parallel_runs_in_one_directory(self):
        before = self.read(self.codex)
        runs = [self.start("--adapter-dir", self.path("adapters"), "--adapter", "fake-codex", "--trust-project", "go", "--", "-c",
                           f"sleep 0.{i}; grep -q trusted {self.codex}") for i in range(1, 6)]
        for process, r in runs:
            self.finish(process, r)
            self.assertEqual(r.code, 0, r.manifest)
        self.assertEqual(self.read(self.codex), before)

    def test_only_a_trusted_project_is_registered(self):
        before = self.read(self.codex)
        r = self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "fake-codex", "go", "--", "-c", f"cat {self.codex}")
        self.assertEqual(r.bytes("stdout.log"), before)

    def test_a_private_home_needs_no_trust(self):
        before = self.read(self.codex)
        r = self.trusting("codex", f"cat {self.codex}", "--home", "private", "--read", self.codex)
        self.assertEqual(r.bytes("stdout.log"), before)


if __name__ == "__main__":
    harness.main()
