#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What every record has whatever the adapter: files that count as artifacts, a summary, and a way to ask for a human."""

import os

import harness
import jsonschema

# What readers of Holon's manifests rely on.
MANIFEST = {
    "type": "object",
    "required": ["status", "outcome", "duration", "artifacts"],
    "properties": {
        "status": {"enum": ["completed", "failed", "running"]},
        "outcome": {"enum": ["success", "failure", "needs_human"]},
        "duration": {"type": "string", "pattern": r"^\d+(\.\d+)?s$"},
        "artifacts": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "error": {"type": "string"},
        "metadata": {
            "type": "object",
            "properties": {
                "agent": {"type": "string"},
                "version": {"type": "string", "pattern": r"^v?\d+\.\d+\.\d+.*"},
                "mode": {"type": "string"},
                "engine": {"type": "object", "properties": {"model": {"type": "string"}, "version": {"type": "string"}}},
            },
        },
    },
}

TASK = """name: mend
prompt: "mend it"
output: {artifacts: [manifest.json, diff.patch, summary.md, evidence/]}
"""


class Record(harness.Case):
    def check(self, r, reason="success"):
        self.assertEqual(r.reason, reason, r.stderr)
        jsonschema.validate(r.manifest, MANIFEST)
        self.assertIn("summary.md", r.manifest["artifacts"])
        return r.bytes("summary.md").decode()

    def test_any_program(self):
        r = self.run_cinch(self.write("task.yaml", TASK), "--", "sh", "-c", "echo made > new.txt; echo 'Done.'")
        text = self.check(r)
        self.assertEqual(text.split("\n")[:3], ["# mend", "", "Done."])
        for line in ("mend it", "- A `new.txt`", "- required artifact diff.patch: present", "- outcome: success"):
            self.assertIn(line, text)

    def test_model(self):
        script = self.write("model.yaml", "steps: [{say: Nothing to do., usage: {input: 7, output: 3}}]\n")
        r = self.run_cinch("-a", "api-direct", "-m", "m", "--script", script, self.write("task.yaml", TASK))
        text = self.check(r)
        for line in ("Nothing to do.", "None.", "7 input, 3 output, 1 model calls", "api-direct, model m"):
            self.assertIn(line, text)

    def test_adapter_program(self):
        adapter = self.script("adapter", "echo working; echo made > new.txt")
        self.assertIn("working", self.check(self.run_cinch("-a", "exec:" + adapter, self.write("task.yaml", TASK))))

    def test_failures(self):
        """Also of runs that never started."""
        self.assertIn("**Error:**", self.check(self.run_command("sh", "-c", "exit 3"), "failure"))
        self.assertIn("**Error:**", self.check(self.run_command("no-such-program"), "not_found"))

    def test_the_agents_own(self):
        for where in ('"$CINCH_ARTIFACTS_DIR/summary.md"', "summary.md"):
            r = self.run_cinch(self.write("task.yaml", TASK), "--", "sh", "-c", f"echo '# Mine' > {where}")
            self.assertEqual(self.check(r), "# Mine\n")

    def test_files_of_the_tree_are_not_the_records(self):
        self.write("ws/summary.md", "of the tree\n")
        self.write("ws/manifest.json", "{}\n")
        r = self.run_cinch(self.write("task.yaml", TASK), "--", "echo", "hello")
        self.assertIn("hello", self.check(r))
        self.assertFalse(os.listdir(r.path("artifacts")))

    def test_no_secret_and_no_link(self):
        self.env["MY_TOKEN"] = "s3cr3t-" + "x" * 20
        r = self.run_cinch("-s", "MY_TOKEN", self.write("task.yaml", TASK), "--", "sh", "-c",
                           'echo "$MY_TOKEN" > "$CINCH_ARTIFACTS_DIR/summary.md"; echo "$MY_TOKEN" > "$MY_TOKEN.txt"')
        self.check(r)
        self.assert_not_in_tree(self.env["MY_TOKEN"].encode(), r.output)
        r = self.run_cinch(self.write("task.yaml", TASK), "--", "ln", "-s", "/etc/passwd", "{output_dir}/artifacts/summary.md")
        self.assertNotIn("root:", self.check(r))

    def test_still_required(self):
        task = self.write("task.yaml", "prompt: x\noutput: {artifacts: [report.md]}\n")
        r = self.run_cinch(task, "--", "true")
        self.assertIn("required artifact report.md: missing", self.check(r, "failure"))


class Question(harness.Case):
    ASK = 'printf "Postgres\\nor SQLite?" > "$CINCH_ARTIFACTS_DIR/needs-human.md"'

    def asked(self, r):
        self.assertEqual((r.code, r.reason, r.manifest["outcome"]), (2, "needs_human", "needs_human"), r.stderr)
        self.assertIn("Postgres", r.result["error"])

    def test_any_program(self):
        self.asked(self.run_command("sh", "-c", self.ASK))
        self.asked(self.run_command("sh", "-c", self.ASK, options=["--exit-profile", "holon"]))

    def test_before_what_is_missing(self):
        task = self.write("task.yaml", "prompt: x\noutput: {artifacts: [report.md]}\ncompletion: {files: [report.md]}\n")
        r = self.run_cinch(task, "--", "sh", "-c", self.ASK)
        self.asked(r)
        self.assertEqual([e for e in r.events() if e["event"] == "task_completion.incomplete"], [])

    def test_adapter_program(self):
        adapter = self.script("adapter", 'echo Postgres? > "$HOLON_OUTPUT_DIR/needs-human.md"')
        self.asked(self.run_cinch("-a", "exec:" + adapter, "x"))

    def test_a_failure_is_no_question(self):
        r = self.run_command("sh", "-c", self.ASK + "; exit 1")
        self.assertEqual((r.code, r.reason), (1, "failure"))

    def test_no_link_is_followed(self):
        r = self.run_command("sh", "-c", 'ln -s /etc/passwd "$CINCH_ARTIFACTS_DIR/needs-human.md"')
        self.assertEqual(r.reason, "success")


if __name__ == "__main__":
    harness.main()
