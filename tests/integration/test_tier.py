#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The tier of an evaluation on the real programs: its prompt, tools on and off, sub-agents on and off, as the provider
sees them in the requests. What a harness cannot do is noted, or refused where the task is strict."""

import json
import os

import harness
from provider import Provider

FILE_TIMEOUT = 1500

WORDS = "Speak as a pirate would, TIERWORD."


def names_of(tools):
    """The names in a request, whatever the format."""
    found = set()
    for tool in tools or []:
        inner = tool.get("functionDeclarations", tool.get("tools"))
        if "functionDeclarations" in tool or tool.get("type") == "namespace":
            found |= names_of(inner)
        else:
            found.add(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))
    return found


def system_of(body):
    """What the model is told as system, or as developer."""
    parts = [body.get("system"), body.get("instructions"), body.get("systemInstruction")]
    for message in body.get("messages", []) + [i for i in body.get("input", []) if isinstance(i, dict)]:
        if message.get("role") in ("system", "developer"):
            parts.append(message)
    return json.dumps(parts)


@harness.about_programs
class Agent:
    """What every harness must do; the classes below say which one."""

    program = adapter = None
    tools = ()         # that it has, some of them
    agents = ()        # those that start sub-agents
    searched = ()      # of these, those that newer versions only list, for a search
    where = "system"   # the prompt of the tier goes
    takes_tools = True  # away

    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real(self.program or self.adapter)) + ":" + self.env["PATH"]

    def ask(self, *options, task=""):
        """(result, body of the longest request: that of the conversation, not one for a title)."""
        self.write("task.yaml", "prompt: PROMPTWORD\n" + task)
        with Provider() as p:
            r = self.run_cinch("--adapter", self.adapter, "--upstream", p.url, "--timeout", "100s", *options,
                               self.path("task.yaml"))
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log")[-3000:] + r.bytes("stderr.log")[-2000:])
        return r, max((q.body for q in p.requests), key=lambda body: len(json.dumps(body)))

    def test_prompt(self):
        """Of tools nothing is said: the harness has those that it always has."""
        r, body = self.ask("--set", "eval.tier_prompt=" + WORDS, "--set", "eval.strict=true")
        self.assertEqual(json.dumps(body).count("TIERWORD"), 1)
        self.assertEqual("TIERWORD" in system_of(body), self.where == "system")
        self.assertNotIn("PROMPTWORD", system_of(body))
        self.assertIn("PROMPTWORD", json.dumps(body))
        listed = {name for name in self.searched if name in json.dumps(body)}
        self.assertLessEqual(set(self.tools) | set(self.agents), names_of(body.get("tools")) | listed)
        self.assertNotIn("eval.", str(r.manifest["warnings"]))
        self.assertEqual(r.bytes("diff.patch"), b"")

    def test_without_tools(self):
        if not self.takes_tools:
            self.cannot("tools_enabled", "false", "tools")
            return
        r, body = self.ask("--no-tools", "--set", "eval.strict=true")
        self.assertEqual(names_of(body.get("tools")), set())
        self.assertNotIn("eval.", str(r.manifest["warnings"]))

    def test_without_sub_agents(self):
        r, body = self.ask("--no-delegation", "--set", "eval.strict=true")
        names = names_of(body.get("tools"))
        self.assertEqual(set(self.agents) & names, set())
        self.assertEqual([name for name in self.searched if name in json.dumps(body)], [])
        self.assertLessEqual(set(self.tools), names)
        self.assertNotIn("eval.", str(r.manifest["warnings"]))

    def cannot(self, key, value, word):
        """Noted; refused where it matters."""
        r, _ = self.ask("--set", f"eval.{key}={value}")
        self.assertIn(key, str(r.manifest["warnings"]))
        self.assertIn(word, str(r.manifest["warnings"]))
        self.assertIn(key, str(r.events("run.warning")))
        with Provider() as p:
            r = self.run_cinch("--adapter", self.adapter, "--upstream", p.url, "--set", f"eval.{key}={value}", "--set",
                               "eval.strict=true", "do it")
            self.assertEqual(p.requests, [])
        self.assertEqual((r.code, r.reason), (65, "bad_task"), r.stderr)
        self.assertIn("eval." + key, r.result["error"])
        self.assertEqual(r.events("process.spawned"), [])


OURS = """
tools:
  - {name: note, description: Notes., input_schema: {type: object, properties: {}}, command: [sh, -c, echo noted]}
"""


class Dialogue(Agent):
    """Those that get tools of the task, which stay."""

    def test_without_tools(self):
        r, body = self.ask("--no-tools", "--set", "eval.strict=true", task=OURS)
        names = names_of(body.get("tools"))
        self.assertEqual([n for n in names if not n.endswith("note")], [])
        self.assertEqual(len(names), 1, names)
        self.assertNotIn("eval.", str(r.manifest["warnings"]))


class ClaudeCode(Dialogue, harness.Case):
    adapter = "claude-code"
    tools, agents, searched = ("Bash", "Write"), ("Agent", "Workflow", "SendMessage"), ("SendMessage", "ListAgents")


class ClaudePrint(Agent, harness.Case):
    program, adapter = "claude-code", "claude-code-print"
    tools, agents, searched = ("Bash", "Write"), ("Agent", "Workflow", "SendMessage"), ("SendMessage", "ListAgents")


class ClaudeAcp(Dialogue, harness.Case):
    adapter = "claude-acp"
    tools, agents, where = ("Bash", "Write"), ("Agent",), "prompt"


class Codex(Dialogue, harness.Case):
    adapter = "codex"
    tools, agents = ("exec_command", "apply_patch"), ("tool_search",)  # which finds them

    def test_without_tools_for_a_model_that_it_does_not_know(self):
        """Such a model gets a catalog of its own, with an editing tool; not here."""
        _, body = self.ask("--no-tools", "--set", "eval.strict=true", "-m", "my-local-model")
        self.assertEqual(names_of(body.get("tools")), set())
        _, body = self.ask("-m", "my-local-model")
        self.assertIn("apply_patch", names_of(body.get("tools")))


class CodexExec(Agent, harness.Case):
    program, adapter = "codex", "codex-exec"
    tools = ("exec_command",)


class CodexAcp(Agent, harness.Case):
    adapter = "codex-acp"
    tools, takes_tools = ("exec_command",), False


class Gemini(Dialogue, harness.Case):
    adapter = "gemini"
    tools, agents = ("run_shell_command", "write_file"), ("invoke_agent",)


class GeminiPrint(Agent, harness.Case):
    program, adapter = "gemini", "gemini-print"
    tools, agents = ("run_shell_command", "write_file"), ("invoke_agent",)


class OpenCode(Dialogue, harness.Case):
    adapter = "opencode"
    tools, agents = ("bash", "write"), ("task",)


class Qwen(Dialogue, harness.Case):
    adapter = "qwen"
    tools, agents = ("run_shell_command", "write_file"), ("agent",)


class Aider(Agent, harness.Case):
    adapter = "aider"
    where = "prompt"

    def test_it_has_none(self):
        self.cannot("tools_enabled", "true", "tools")
        self.cannot("delegation_enabled", "true", "sub-agents")


class Any(harness.Case):
    """Programs without a profile of their own are told."""

    def test_told(self):
        r = self.run_command("sh", "-c", "echo $TOOLS_ENABLED $DELEGATION_ENABLED",
                             options=["--no-tools", "--delegation", "--set", "eval.tier_prompt=x", "--set", "eval.strict=true"])
        self.assertEqual(r.bytes("stdout.log"), b"false true\n")
        self.assertNotIn("eval.", str(r.manifest["warnings"]))

    def test_profiles_of_users(self):
        """Arguments for it are as good as a word."""
        for argv, code in (([{"when": "tools_off", "args": ["x"]}], 0), ([], 65)):
            self.write("adapters/mine.yaml", json.dumps({"name": "mine", "argv": ["{command...}", *argv]}))
            r = self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "mine", "--no-tools", "--set",
                               "eval.strict=true", "--", "true")
            self.assertEqual(r.code, code, r.stderr)

    def test_a_home_that_is_shared(self):
        """Files of the user's are not written, so what needs them cannot be had."""
        self.write("adapters/mine.yaml", json.dumps({
            "name": "mine", "argv": ["{command...}"], "files": [{"name": "config", "path": "c.json"}],
            "tier": {"prompt": "system", "prompt_file": "x.md", "tools": "switch", "tools_off": {"config": {"a": 1}}}}))
        line = ("--adapter-dir", self.path("adapters"), "--adapter", "mine", "--no-tools", "--set", "eval.tier_prompt=x")
        r = self.run_cinch(*line, "--home", "shared", "--sandbox", "off", "--", "true")
        self.assertEqual(len(r.manifest["warnings"]), 2, r.manifest["warnings"])
        r = self.run_cinch(*line, "--", "sh", "-c", "cat $HOME/x.md $HOME/c.json")
        self.assertEqual(r.bytes("stdout.log"), b'x{\n  "a": 1\n}\n')
        self.assertEqual(os.listdir(self.env["HOME"]), [])


if __name__ == "__main__":
    harness.main()
