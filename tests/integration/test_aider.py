#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The real aider with a scripted model: its edits are the patch, its words the text, its end the truth; it makes no
commit, and nothing is left outside of the run."""

import os
import signal
import subprocess

import harness

FILE_TIMEOUT = 900

EDIT = """
defaults: {usage: {input: 1000, output: 50}}
turns:
  - say: |
      I change the first line.

      old.txt
      ```
      <<<<<<< SEARCH
      old
      =======
      new
      >>>>>>> REPLACE
      ```

      sub/made.txt
      ```
      <<<<<<< SEARCH
      =======
      made
      >>>>>>> REPLACE
      ```
"""
# The first answer names a line that is not there; it is told so, and tries again.
MISSED = """
defaults: {usage: {input: 1000, output: 50}}
steps:
  - times: 1
    say: "old.txt\\n```\\n<<<<<<< SEARCH\\nnot there\\n=======\\nnew\\n>>>>>>> REPLACE\\n```\\n"
  - when: {text: failed to match}
    say: "Again.\\n\\nold.txt\\n```\\n<<<<<<< SEARCH\\nold\\n=======\\nnew\\n>>>>>>> REPLACE\\n```\\n"
"""
LONG = "word " * 60 + "end"


@harness.about_programs
class Aider(harness.Case):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real("aider")) + ":" + self.env["PATH"]
        self.write("ws/old.txt", "old\n")

    def line(self, script, *options):
        return ("--adapter", "aider", "--timeout", "100s", "--script", self.write("model.yaml", script), *options,
                "change old to new")

    def run_aider(self, script, *options):
        return self.run_cinch(*self.line(script, *options))

    def assert_success(self, r):
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log") + r.bytes("stderr.log"))

    def assert_usage(self, r, calls):
        wire = r.metrics["ext"]["usage"]["wire"]
        self.assertEqual((wire["input"], wire["output"], wire["calls"]), (1000 * calls, 50 * calls, calls))
        self.assertEqual((r.metrics["tokens_input"], r.metrics["tokens_output"]), (1000 * calls, 50 * calls))

    def assert_nothing_outside(self, *names):
        self.assertEqual(sorted(os.listdir(self.workspace)), sorted(names))
        with open(os.path.join(self.workspace, "old.txt"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "old\n")
        self.assertEqual(os.listdir(self.env["HOME"]), [])

    def test_text(self):
        """Its own words around the answer are not the answer, and long lines stay whole."""
        r = self.run_aider(f"turns: [{{say: '{LONG}'}}]", "--model", "some-model")
        self.assert_success(r)
        self.assertEqual(r.result["text"], LONG)
        self.assertEqual(r.bytes("diff.patch"), b"")
        self.assertEqual([e["context"]["model"] for e in r.events("model.call")], ["some-model"])

    def test_edit(self):
        r = self.run_aider(EDIT)
        self.assert_success(r)
        patch = r.bytes("diff.patch").decode()
        self.assertIn("-old\n+new\n", patch)
        self.assertEqual([line for line in patch.splitlines() if line.startswith("+++ ")],
                         ["+++ b/old.txt", "+++ b/sub/made.txt"])
        self.assertTrue(r.result["text"].startswith("I change the first line."), r.result["text"])
        self.assert_usage(r, 1)
        self.assert_nothing_outside("old.txt")

    def test_edit_in_a_repository(self):
        """It sees the files by version control, and leaves that as it is."""
        git = ["git", "-C", self.workspace, "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", "one"], check=True)
        self.write("ws/untracked.txt", "mine\n")
        r = self.run_aider(EDIT)
        self.assert_success(r)
        self.assertIn(b"Git repo: .git with 1 files", r.bytes("stdout.log"))
        patch = r.bytes("diff.patch").decode()
        self.assertEqual([line for line in patch.splitlines() if line.startswith("+++ ")],
                         ["+++ b/old.txt", "+++ b/sub/made.txt"])
        log = subprocess.run([*git, "log", "--format=%s"], check=True, capture_output=True, text=True)
        self.assertEqual(log.stdout.split(), ["one"])
        self.assert_nothing_outside(".git", "old.txt", "untracked.txt")

    def test_an_edit_that_does_not_fit_is_made_again(self):
        r = self.run_aider(MISSED)
        self.assert_success(r)
        self.assertIn(b"+new", r.bytes("diff.patch"))
        self.assertIn("Again.", r.result["text"])
        self.assert_usage(r, 2)

    def test_busy_once(self):
        r = self.run_aider("defaults: {usage: {input: 1000, output: 50}}\n"
                           "steps: [{times: 1, fault: {status: 429, retry_after: 1}}, {say: done}]")
        self.assert_success(r)
        self.assertEqual(r.result["text"], "done")
        self.assertEqual((r.metrics["tokens_input"], r.metrics["tokens_output"]), (1000, 50))

    def test_a_refused_request_is_a_failure(self):
        """Aider itself ends with 0."""
        r = self.run_aider("steps: [{fault: {status: 400}}]")
        self.assertEqual(r.result["outcome"], "failure", r.bytes("stdout.log"))
        self.assertNotEqual(r.code, 0)
        self.assertEqual(r.result["engine_exit"], {"code": 0})
        self.assertIn("litellm.BadRequestError", str(r.result["error"]))

    def test_budget(self):
        r = self.run_aider(MISSED, "--max-calls", "1")
        self.assertEqual((r.code, r.reason), (78, "budget"), r.stderr + r.bytes("stdout.log"))
        self.assertEqual(len(r.events("model.call")), 1)

    def test_terminate(self):
        """Who stops cinch while the model thinks gets a record, and nobody is left."""
        process, r = self.start(*self.line("steps: [{fault: {hang: head}}]"))
        harness.wait_until(lambda: r.exists("stdout.log") and b"Repo-map" in r.bytes("stdout.log"), "aider's start")
        process.send_signal(signal.SIGTERM)
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (143, "terminated"), r.stderr)
        self.assert_nothing_outside("old.txt")

    def test_it_looks_for_nobody_else(self):
        """Neither for a list of models or versions nor for who counts its users, nor for what the workspace says: each
        would be a name to look up."""
        self.write("ws/.env", "AIDER_ANALYTICS=true\nOPENAI_API_BASE=http://example.com/v1\n"
                   "OPENAI_API_KEY=of-the-workspace\n")
        spy = self.write("spy/sitecustomize.py", "import socket\n_real = socket.getaddrinfo\n"
                         "def spy(host, *a, **k):\n"
                         "    open('names.txt', 'a').write(str(host) + '\\n')\n"
                         "    return _real(host, *a, **k)\n"
                         "socket.getaddrinfo = spy\n")
        r = self.run_aider("turns: [{say: done}]", "--env", "PYTHONPATH=" + os.path.dirname(spy),
                           "--read", os.path.dirname(spy))
        self.assert_success(r)
        names = {line[1:] for line in r.bytes("diff.patch").decode().splitlines()
                 if line.startswith("+") and not line.startswith("+++")}
        self.assertEqual(names, {"127.0.0.1"})


if __name__ == "__main__":
    harness.main()
