#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The real agents of the Agent Client Protocol in a run, with a scripted model: their own tools and ours, policies,
rounds, deadlines, budgets and faults. What misbehaving agents do is in test_acp_hostile.py."""

import json
import os
import signal
import socket

import harness

FILE_TIMEOUT = 900

WORK = """
defaults: {usage: {input: 1000, output: 50}}
steps:
  - {when: {text: do the work}, say: Is there anything to do?}
turns:
  - think: A file is wanted.
    say: I will write it.
    call: {tool: native.write_file, args: {path: "HERE/hello.txt", content: "hello\\n"}}
  - call: {tool: native.shell, args: {command: "echo hi > b.txt"}}
  - call: {tool: keep, args: {text: good}}
  - call: {tool: spoil, args: {text: bad}}
  - say: written
"""

TOOLS = """
tools:
  - name: keep
    description: Keeps a note.
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    command: [ws/tool, keep]
  - name: spoil
    description: Spoils what is there.
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    command: [ws/tool, spoil]
"""

DENIED = """
steps:
  - when: {turn: 0, tool: native.shell}
    call: {tool: native.shell, args: {command: "echo no > no.txt"}}
  - say: not allowed
"""

ANSWER = """
steps:
  - {when: {turn: 0}, call: {tool: keep, args: {text: good}}}
  - {when: {turn: 1, text: mind the gap}, call: {tool: structured_output, args: {data: {answer: 42}}}}
  - {say: over}
"""

HANG = """
defaults: {usage: {input: 1000, output: 50}}
steps:
  - {when: {turn: 0}, call: {tool: native.write_file, args: {path: "HERE/hello.txt", content: "hello\\n"}}}
  - {say: "and then ", fault: {hang: 200}}
"""


class Agent:
    """What every agent must do; the classes below say which one."""

    name = None
    shell = "acp:execute"  # what it calls the tool that runs commands
    here = "."  # the workspace, in the names of files
    model_name = "model-of-the-task"
    usual = ()  # options of every run
    calls = 6  # of the model in test_work

    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real(self.name)) + ":" + self.env["PATH"]
        self.write("ws/old.txt", "old\n")

    def model(self, script):
        return self.write("model.yaml", script.replace("HERE", self.here))

    def run_agent(self, script, *options, task="", prompt="do the work", **kw):
        """A run of the agent with a scripted model."""
        self.write("task.yaml", f"version: 1\nprompt: {prompt}\n" + task)
        return self.run_cinch("--adapter", self.name, "--script", self.model(script),
                              *(() if "--model" in options else self.usual),
                              *(options or ("--timeout", "100s")), self.path("task.yaml"), **kw)

    def assert_success(self, r):
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log")[-3000:] + r.bytes("stderr.log"))

    def entries(self, r, kind):
        return [e["detail"] for e in r.lines("transcript.jsonl") if e.get("entry_type") == kind]

    def test_work(self):
        """Told that it is not done, it works with its tools and ours, one of which fails: all is told, all is counted,
        nothing is touched outside."""
        self.write("ws/tool", '#!/bin/sh\ncat > "$1.json"\n[ "$1" = keep ] && echo kept\n', 0o755)
        r = self.run_agent(WORK, task=TOOLS + "completion: {files: [hello.txt]}\n")
        self.assert_success(r)
        self.assertEqual(r.result["text"].strip(), "written")
        patch = r.bytes("diff.patch").decode()
        for name in ("hello.txt", "b.txt", "keep.json"):
            self.assertIn(f"+++ b/{name}", patch)
        self.assertNotIn("spoil.json", patch)  # rolled back
        self.assertEqual(sorted(os.listdir(self.workspace)), ["old.txt", "tool"])
        self.assertEqual(os.listdir(self.env["HOME"]), [])
        wire = r.metrics["ext"]["usage"]["wire"]
        calls = [e["context"] for e in r.events("model.call") if e["context"]["side"] is None]  # some ask for a title, too
        self.assertEqual((sum(c["input_tokens"] for c in calls), sum(c["output_tokens"] for c in calls)),
                         (1000 * self.calls, 50 * self.calls))
        self.assertEqual((r.metrics["tokens_input"], r.metrics["tokens_output"]), (wire["input"], wire["output"]))
        invoked = [e["context"]["name"] for e in r.events("ToolInvoked")]
        self.assertEqual(invoked[1:], [self.shell, "keep", "spoil"])  # none twice
        self.assertTrue(invoked[0].startswith("acp:"), invoked)
        self.assertIn("A file is wanted.", str(self.entries(r, "thinking")))
        self.assertEqual(len(self.entries(r, "tool_use")), 4)
        self.assertEqual(len(self.entries(r, "tool_result")), 4)
        said = self.entries(r, "user_message")
        self.assertEqual(len(said), 2, said)
        self.assertIn("hello.txt", said[1]["text"])
        self.assertTrue(r.result["session_id"])

    def test_model(self):
        """The model of the task is the one that is asked."""
        r = self.run_agent("steps: [{say: fine}]\n", "--timeout", "100s", "--model", self.model_name)
        self.assert_success(r)
        self.assertEqual({e["context"]["model"] for e in r.events("model.call")}, {self.model_name})
        self.assertEqual(r.manifest["metadata"]["engine"]["model"], self.model_name)

    def test_denial(self):
        r = self.run_agent(DENIED, task=f"policies: [{{type: deny, tools: ['{self.shell}'], reason: no commands}}]\n")
        self.assertNotIn(b"no.txt", r.bytes("diff.patch"))
        invoked = [e["context"] for e in r.events("ToolInvoked") if e["context"]["name"] == self.shell]
        self.assertEqual(len(invoked), 1, r.stderr)


class Alone:
    """More, of agents on which the compatibility kit is not tried: it has all of this."""

    def closed_port(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def test_answer(self):
        """Feedback reaches the model with the result of a tool; the answer fits its schema."""
        self.write("ws/tool", "#!/bin/sh\necho kept\n", 0o755)
        r = self.run_agent(ANSWER, task=TOOLS + "feedback: [{type: static, text: mind the gap, every_n_calls: 1}]\n"
                           "output: {schema: {type: object, properties: {answer: {type: integer}}, required: [answer]}}\n")
        self.assert_success(r)
        self.assertEqual(r.result["output"], {"answer": 42})

    def test_budget(self):
        r = self.run_agent(HANG, "--max-calls", "1")
        self.assertEqual((r.code, r.reason), (78, "budget"), r.stderr + r.bytes("stderr.log"))
        self.assertEqual(len(r.events("model.call")), 1)

    def test_signal(self):
        """Who stops cinch gets what was done until then, and nobody is left."""
        self.write("task.yaml", "version: 1\nprompt: do the work\n")
        process, r = self.start("--adapter", self.name, "--timeout", "100s", "--script",
                                self.model(HANG), self.path("task.yaml"))
        harness.wait_until(lambda: r.exists("transcript.jsonl") and
                           b"tool_result" in r.bytes("transcript.jsonl"), "the first call")
        process.send_signal(signal.SIGTERM)
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (143, "terminated"), r.stderr)
        self.assertIn(b"+hello", r.bytes("diff.patch"))

    def test_a_limit_that_passes(self):
        r = self.run_agent("steps:\n"
                           "  - {times: 1, fault: {status: 429, retry_after: 1}}\n"
                           "  - {say: fine}\n")
        self.assert_success(r)
        self.assertEqual(r.result["text"].strip(), "fine")

    def test_errors_that_stay(self):
        r = self.run_agent("steps: [{fault: {status: 500}}]\n", task="throttle: {max_attempts: 2, base_ms: 10}\n")
        self.assertEqual((r.code, r.reason), (75, "provider_unavailable"), r.stderr)

    def test_an_answer_that_breaks_off(self):
        r = self.run_agent("steps:\n  - {times: 1, say: 'one two three', chunk: 1, fault: {cut: 300}}\n  - {say: fine}\n",
                           "--timeout", "40s")
        self.assert_success(r)
        self.assertEqual(r.result["text"].strip(), "fine")

    def test_nobody_there(self):
        self.write("task.yaml", f"version: 1\nprompt: do the work\ngateway: http://127.0.0.1:{self.closed_port()}\n"
                   "throttle: {max_attempts: 2, base_ms: 10}\n")
        r = self.run_cinch("--adapter", self.name, "--timeout", "60s", self.path("task.yaml"))
        self.assertEqual((r.code, r.reason), (75, "provider_unavailable"), r.stderr)

    def test_deadline(self):
        """Interrupted by the protocol: the turn ends well, and what it cost is known."""
        # The first deadline can pass before the agent is up on a busy machine: that is another case, so later then.
        for limit in ("12s", "80s"):
            r = self.run_agent(HANG, "--timeout", limit)
            self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)
            if self.entries(r, "tool_result"):
                break
        self.assertIn(b"+hello", r.bytes("diff.patch"))
        self.assertGreaterEqual(r.metrics["tokens_input"], 1000)
        stopped = [e["context"]["why"] for e in r.events("process.signal")]
        self.assertNotIn("deadline", stopped)  # no signal ended the turn; at most it did not go afterwards


class ClaudeAcp(Agent, Alone, harness.Case):
    name = "claude-acp"
    shell = "acp:Bash"


@harness.about_programs
class CodexAcp(Agent, Alone, harness.Case):
    name = "codex-acp"
    calls = 9  # one is for the title of the session, two search for tools

    def test_tools_behind_its_search(self):
        """A model that it knows gets the tools of the task through a search only; RenderedTools says so."""
        task = "tools: [{name: shout, description: Shouts., input_schema: {type: object}, command: [/bin/echo, HO]}]\n"
        script = "steps: [{when: {turn: 0}, say: now, call: {tool: shout}}, {when: {turn: 1, text: HO}, say: fine}]\n"
        for model, how, searches in ((("--model", "gpt-5.5"), "deferred", 1), (("--model", "model-of-the-task"), "direct", 0),
                                     (("--model", "gpt-6.1-sol"), "deferred", 0)):
            r = self.run_agent(script, *model, "--timeout", "100s", task=task)
            self.assert_success(r)
            self.assertEqual([t["offered"] for e in r.events("RenderedTools") for t in e["context"]["tools"]], [how])
            self.assertEqual([e["context"]["name"] for e in r.events("ToolInvoked")], ["shout"])
            cassette = r.path("evidence", "traffic.cassette")
            numbers = [x["number"] for x in json.loads(self.cinch("cassette", "show", "--format", "json", cassette).stdout)["exchanges"]]
            asked = [self.cinch("cassette", "show", "-x", str(n), cassette).stdout for n in numbers]
            self.assertEqual(max(text.count(b"tool_search_output") for text in asked), searches)

    def test_end(self):
        """It stays when its input ends: a signal ends it at once, which is nothing to warn about."""
        r = self.run_agent("steps: [{say: fine}]\n")
        self.assert_success(r)
        self.assertEqual(r.manifest["warnings"], [])
        self.assertEqual([e["context"]["why"] for e in r.events("process.signal")], ["finished"])


@harness.about_programs
class Gemini(Agent, harness.Case):
    name = "gemini"
    shell = "acp:run_shell_command"


@harness.about_programs
class OpenCode(Agent, harness.Case):
    name = "opencode"
    shell = "acp:bash"


@harness.about_programs
class Qwen(Agent, harness.Case):
    name = "qwen"
    shell = "acp:run_shell_command"
    here = "${cwd}"  # it takes no others

    def test_denial_by_kind(self):
        """0.24 names its tools, 0.15 did not; policies that name the kind of tool still apply."""
        r = self.run_agent(DENIED, task="policies: [{type: deny, tools: ['acp:execute'], reason: no commands}]\n")
        self.assertNotIn(b"no.txt", r.bytes("diff.patch"))
        invoked = [e["context"]["success"] for e in r.events("ToolInvoked") if e["context"]["name"] == self.shell]
        self.assertEqual(invoked, [False], r.stderr)


if __name__ == "__main__":
    harness.main()
