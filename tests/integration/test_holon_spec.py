#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Holon specs as tasks: what is read, what it becomes, and what is refused with which reason."""

import json
import os
import unittest

import harness

SPEC = """version: "v1"
kind: Holon
metadata:
  name: "mend-parser"
  id: t-1
context:
  workspace: "/workspace"
  files:
    - "src/a.txt"
  env:
    GREETING: "hello"
    PORT: 5432
    DEBUG: true
goal:
  description: |
    Mend /workspace/src/a.txt, not /workspaces/b, and write {{ braces }} to /holon/output/report.json.
  issue_id: GH-123
output:
  artifacts:
    - path: "manifest.json"
      required: true
    - path: "diff.patch"
      required: true
    - path: "report.json"
      required: true
    - path: "summary.md"
      required: true
    - path: "notes.txt"
constraints:
  timeout: "1h30m"
"""

AGENT = """set -e
echo "$GREETING $PORT $DEBUG" > env.txt
echo changed > src/a.txt
echo '{}' > "$CINCH_ARTIFACTS_DIR/report.json"
echo "all mended"
"""


class Spec(harness.Case):
    def setUp(self):
        super().setUp()
        self.write("ws/src/a.txt", "before\n")

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def run_spec(self, text, agent="echo done", *options, **kw):
        spec = self.write("spec.yaml", text)
        return self.run_cinch(*options, spec, "--", "sh", "-c", agent, **kw)

    def test_a_whole_spec(self):
        r = self.run_spec(SPEC, AGENT)
        self.assertEqual(r.reason, "success", r.stderr)
        prompt = r.bytes("logs", "prompt.txt").decode()
        self.assertIn(f"Mend {self.workspace}/src/a.txt, not /workspaces/b", prompt)
        self.assertIn("write {{ braces }} to " + r.path("artifacts", "report.json"), prompt)
        self.assertIn("Issue: GH-123", prompt)
        self.assertIn("- src/a.txt\n", prompt)
        self.assertIn(r.path("artifacts", "summary.md"), prompt)
        self.assertNotIn("diff.patch", prompt)
        self.assertEqual(r.json("artifacts", "report.json"), {})
        patch = r.bytes("diff.patch").decode()
        for line in ("+changed", "+hello 5432 true"):
            self.assertIn(line, patch)
        task = r.json("task.json")
        self.assertEqual((task["name"], task["limits"]["timeout"]), ("mend-parser", 5400))
        self.assertEqual(task["metadata"]["id"], "t-1")
        self.assertEqual(self.read("ws/src/a.txt"), "before\n")

    def test_options_of_the_original(self):
        spec = self.write("spec.yaml", SPEC)
        r = self.run_cinch("--spec", spec, "--", "sh", "-c", AGENT)
        self.assertEqual((r.reason, r.json("task.json")["name"]), ("success", "mend-parser"), r.stderr)
        r = self.run_cinch("--goal", "say hello", "--", "sh", "-c", "cat {prompt_file}")
        self.assertEqual((r.reason, r.result["text"]), ("success", "say hello"), r.stderr)
        self.assert_failed(self.cinch("run", "--spec", spec, "--goal", "x", "--", "true"), 64, "--goal")

    def test_a_bare_goal(self):
        for text in ("goal: say hello\n", "goal: {description: say hello}\n", '{"goal": "say hello"}\n'):
            r = self.run_spec(text, "cat {prompt_file}")
            self.assertEqual((r.reason, r.result["text"].strip()), ("success", "say hello"), r.stderr)
        r = self.run_spec("goal: {issue: org/repo#7}\n", "cat {prompt_file}")
        self.assertIn("org/repo#7", r.result["text"])

    def test_required_artifacts(self):
        for text, code in (("echo x > notes.txt", 0), ("true", 1)):
            r = self.run_spec("goal: g\noutput: {artifacts: [{path: notes.txt, required: true}]}\n", text)
            self.assertEqual(r.code, code, r.stderr)
        self.assertIn("notes.txt", r.result["error"])
        r = self.run_spec("goal: g\noutput: {artifacts: [{path: notes.txt}, {path: ./notes.txt}]}\n")
        self.assertEqual(r.reason, "success", r.stderr)
        r = self.run_spec("goal: g\noutput: {artifacts: [{path: /holon/output/n.txt, required: true}]}\n",
                          'echo x > "$CINCH_ARTIFACTS_DIR/n.txt"')
        self.assertEqual(r.reason, "success", r.stderr)

    def test_directories_as_artifacts(self):
        text = "goal: g\noutput: {artifacts: [{path: evidence/, required: true}, {path: logs/, required: true}]}\n"
        r = self.run_spec(text, 'mkdir "$CINCH_ARTIFACTS_DIR/logs"; echo x > "$CINCH_ARTIFACTS_DIR/logs/a"')
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(self.run_spec(text).reason, "failure")

    def test_constraints_hold(self):
        r = self.run_spec("goal: g\nconstraints: {timeout: 500ms}\n", "sleep 60")
        self.assertEqual((r.code, r.reason), (124, "timeout"))
        script = self.write("model.yaml", "steps: [{call: nothing, times: 9}]\n")
        spec = self.write("spec.yaml", "goal: g\nconstraints: {max_steps: 2}\n")
        self.assertEqual(json.loads(self.cinch("config", spec, "-a", "api-direct", "--format", "json").stdout)
                         ["limits"]["calls"], 2, script)

    def test_secrets_in_env(self):
        value = "ghp_" + "a1B2" * 9
        r = self.run_spec("goal: g\ncontext: {env: {GITHUB_TOKEN: s3cr3t-value-1, PLAIN: %s}}\n" % value,
                          'echo "$GITHUB_TOKEN $PLAIN"; test -n "$PLAIN"')
        self.assertEqual(r.reason, "success", r.stderr)
        for secret in (b"s3cr3t-value-1", value.encode()):
            self.assert_not_in_tree(secret, r.output)

    def test_unknown_keys_are_reported(self):
        r = self.run_spec("goal: g\nconstraints: {max_stepz: 2}\ncolour: red\n")
        self.assertEqual(r.reason, "success", r.stderr)
        for word in ("constraints.max_stepz", "spec.yaml:3", "colour"):
            self.assertIn(word, str(r.manifest["warnings"]))

    def test_apply(self):
        r = self.run_spec(SPEC, AGENT, "--apply")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(self.read("ws/src/a.txt"), "changed\n")
        self.write("ws/src/a.txt", "before\n")
        r = self.run_spec(SPEC, "echo changed > src/a.txt", "--apply")  # it lacks report.json
        self.assertEqual(r.reason, "failure")
        self.assertEqual(self.read("ws/src/a.txt"), "before\n")

    def test_context_directory(self):
        self.write("ctx/issue.md", "it is broken\n")
        spec = self.write("spec.yaml", "goal: look at /holon/input/context/issue.md\n")
        r = self.run_cinch("--context", self.path("ctx"), spec, "--", "sh", "-c", "cat {prompt_file} ../ctx/issue.md")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertIn(self.path("ctx", "issue.md"), r.result["text"])
        self.assertIn("it is broken", r.result["text"])
        adapter = self.script("adapter", 'cat "$HOLON_INPUT_DIR/context/issue.md"')
        r = self.run_cinch("--context", self.path("ctx"), "-a", "exec:" + adapter, spec)
        self.assertEqual(r.result["text"].strip(), "it is broken", r.stderr)


class Example(harness.Case):
    def test_it_runs(self):
        top = os.path.join(harness.ROOT, "examples", "holon")
        self.workspace = os.path.join(top, "project")
        r = self.run_cinch(os.path.join(top, "spec.yaml"), "--", "sh", os.path.join(top, "agent.sh"))
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.json("artifacts", "changes.json"), {"files": ["divide.sh"]})
        self.assertIn(b"+[ \"$2\" -eq 0 ]", r.bytes("diff.patch"))
        self.assertIn(b"by holon", r.bytes("summary.md"))


class Bad(harness.Case):
    """Every mistake is a bad task with its place; nothing is started."""

    CASES = {
        "version: v2\nkind: Holon\ngoal: g\n": "spec.yaml:1",
        "version: v1\nkind: Holon\n": "no goal",
        "version: v1\nkind: Holon\ngoal: {description: ''}\n": "no goal",
        "kind: Holon\ngoal: [a]\n": "'goal'",
        "kind: Holon\ngoal: {description: {a: b}}\n": "goal.description",
        "goal: g\nkind: Other\n": "kind",
        "goal: g\ncontext: {files: [../../etc/passwd]}\n": "../../etc/passwd",
        "goal: g\ncontext: {files: [/etc/passwd]}\n": "/etc/passwd",
        "goal: g\ncontext: {files: x}\n": "context.files",
        "goal: g\ncontext: {env: [A]}\n": "context.env",
        "goal: g\ncontext: {env: {A: [1]}}\n": "'A'",
        "goal: g\ncontext: {env: {'A-B': x}}\n": "A-B",
        "goal: g\noutput: {artifacts: [{path: ../x}]}\n": "../x",
        "goal: g\noutput: {artifacts: [{path: /etc/x}]}\n": "/etc/x",
        "goal: g\noutput: {artifacts: [{required: true}]}\n": "path",
        "goal: g\noutput: {artifacts: [{path: x, required: yes please}]}\n": "required",
        "goal: g\noutput: {artifacts: x}\n": "output.artifacts",
        "goal: g\nconstraints: {timeout: soon}\n": "constraints.timeout",
        "goal: g\nconstraints: {timeout: -5m}\n": "constraints.timeout",
        "goal: g\nconstraints: {max_steps: many}\n": "constraints.max_steps",
        "goal: g\nconstraints: [1]\n": "constraints",
        "goal: g\nmetadata: {skills: [https://example.org/x.zip]}\n": "remote",
        "goal: g\nmetadata: {name: {a: b}}\n": "metadata.name",
        "goal: g\n  bad: [yaml\n": "spec.yaml",
        "base_image: golang\nlog_level: progress\n": "project configuration",
    }

    def test_mistakes(self):
        for text, word in self.CASES.items():
            with self.subTest(text):
                spec = self.write("spec.yaml", text)
                output = self.new_output()
                r = self.run_cinch(spec, "--", "touch", "started", output=output, valid=False)
                self.assert_failed(r, 65, word)
                self.assertFalse(os.path.exists(self.path("ws", "started")))

    def test_binary(self):
        spec = self.write("spec.yaml", b"\x00\xff\xfe goal")
        self.assert_failed(self.run_cinch(spec, "--", "true", valid=False), 65, "spec.yaml")

    def test_missing(self):
        self.assert_failed(self.cinch("run", "nowhere.yaml", "--", "true"), 66, "nowhere.yaml")


@unittest.skipUnless(os.environ.get("CINCH_CORPUS"), "CINCH_CORPUS names no directory with specs of other projects")
class Corpus(harness.Case):
    """All specs of a directory, unchanged, on an agent that writes what they require."""

    def specs(self):
        top = os.path.join(os.environ["CINCH_CORPUS"], "holon")
        return sorted(os.path.join(top, n) for n in os.listdir(top) if n.endswith((".yaml", ".yml")))

    def test_specs(self):
        taken, refused = [], {}
        for spec in self.specs():
            agent = 'grep -o "/[^ ]*artifacts/[A-Za-z0-9_./-]*" {prompt_file} | while read -r f; do echo {} > "$f"; done'
            r = self.run_cinch(spec, "--", "sh", "-c", agent, valid=False)
            if r.code == 0:
                taken.append(spec)
            else:
                refused[spec] = r.stderr.decode() + r.stdout.decode()
        configs = [s for s in refused if "project configuration" in refused[s]]
        print(f"{len(taken)} of {len(taken) + len(refused) - len(configs)} specs ran")
        for spec, why in refused.items():
            print(f"{os.path.basename(spec)}: {why.strip()}")
        self.assertGreaterEqual(len(taken), 0.95 * (len(taken) + len(refused) - len(configs)))


class Headless(harness.Case):
    def test_claude_code_asks_nothing_at_its_first_start(self):
        """Its onboarding is done, the permission mode is accepted, and updates are off by more than one switch."""
        self.script("bin/claude", 'cat "$HOME/.claude.json" >&2\n'
                    'echo "{\\"type\\":\\"result\\",\\"is_error\\":false,\\"result\\":\\"off: $DISABLE_AUTOUPDATER\\"}"\n')
        self.env["PATH"] = self.path("bin") + ":" + self.env["PATH"]
        script = self.write("model.yaml", "steps: [{say: never}]\n")
        r = self.run_cinch("-a", "claude-code-print", "--script", script, "hello")
        self.assertEqual(json.loads(r.bytes("stderr.log")),
                         {"hasCompletedOnboarding": True, "bypassPermissionsModeAccepted": True, "autoUpdates": False})
        self.assertEqual(r.result["text"], "off: 1")


if __name__ == "__main__":
    harness.main()
