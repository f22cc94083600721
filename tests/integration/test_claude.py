#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The real Claude Code (tests/harness/packages.txt) in a dialogue, in the sandbox, with a scripted model: its own tools
and ours, policies, further turns, the deadline. What the compatibility kit tries on every adapter is not tried again."""

import fnmatch
import json
import os
import re

import harness
from test_project_config import newest

FILE_TIMEOUT = 1500

USAGE = "defaults: {usage: {input: 1000, output: 50, cache_read: 20, cache_write: 7}}\n"


def find_tools(tree):
    """Names of all tools in requests, also in those that are kept as text."""
    if isinstance(tree, str) and tree.startswith("{"):
        try:
            tree = json.loads(tree)
        except ValueError:
            return
    if isinstance(tree, dict):
        for tool in tree.get("tools") or () if isinstance(tree.get("tools"), list) else ():
            if isinstance(tool, dict) and "name" in tool:
                yield tool["name"]
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from find_tools(item)


class Case(harness.Case):
    adapter = "claude-code"

    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real("claude-code")) + ":" + self.env["PATH"]

    def arguments(self, script, task, options):
        model = self.write("model.yaml", USAGE + script)
        path = self.write("task.yaml", "prompt: do it\n" + task)
        limit = () if "--timeout" in options else ("--timeout", "100s")
        return ("--adapter", self.adapter, "--script", model, *limit, *options, path)

    def claude(self, script, task="", options=(), **kw):
        return self.run_cinch(*self.arguments(script, task, options), **kw)

    def good(self, script, task="", options=(), text=None):
        r = self.claude(script, task, options)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log") + r.bytes("stderr.log"))
        self.assertEqual(os.listdir(self.workspace), [], "the original was touched")
        if text is not None:
            self.assertEqual(r.result["text"], text)
        return r

    def entries(self, r, kind=None, source="main"):
        found = [e for e in r.lines("transcript.jsonl") if e["event"] == "transcript.entry"]
        return [e for e in found if e["source"] == source and kind in (None, e["entry_type"])]

    def check_usage(self, r, answers):
        """What the script sent, what the gateway counted and what Claude Code says are the same."""
        usage = r.metrics["ext"]["usage"]
        for of in (usage["wire"], usage["reported"]):
            found = [of[key] for key in ("input", "output", "cache_read", "cache_write")]
            self.assertEqual(found, [n * answers for n in (1000, 50, 20, 7)])

    def calls(self, r):
        """(name, whether it succeeded) of every call in the record."""
        return [(e["context"]["name"], e["context"]["success"]) for e in r.events("ToolInvoked")]


class ToolNames(Case):
    """The profile's tool_names, by which policies are checked before a run, have every tool that the program offers."""

    def offered(self, *options):
        """Names of the tools in the requests to the model, and those that the program says it has."""
        names = set()
        r = self.good("turns: [{say: hello}]", options=("--record", *options), text="hello")
        tape = r.path("evidence", "traffic.cassette")
        for e in json.loads(self.cinch("cassette", "show", "--format", "json", tape).stdout)["exchanges"]:
            text = self.cinch("cassette", "show", "--exchange", str(e["number"]), "--format", "json", tape).stdout
            names |= set(find_tools(json.loads(text)))
        self.assertIn("Bash", names, "no request with tools was found")
        for line in r.bytes("stdout.log").splitlines():
            init = json.loads(line) if line.startswith(b"{") else {}
            names |= set(init.get("tools") or ()) if init.get("subtype") == "init" else set()
        return names

    def test_every_offered_tool_is_known(self):
        with open(os.path.join(harness.ROOT, "adapters", "claude-code.yaml"), encoding="utf-8") as f:
            known = re.search(r"^tool_names:.*\n\s+\[([^\]]*)\]", f.read(), re.MULTILINE)[1].replace('"', "").replace(",", " ").split()
        self.assertIn("Bash", known)
        for path in (self.real("claude-code"), newest("claude-code")):
            if path is None:
                continue
            with self.subTest(path):
                self.env["PATH"] = os.path.dirname(path) + ":" + self.env["PATH"]
                lacks = [n for n in sorted(self.offered()) if not any(fnmatch.fnmatchcase(n, k) for k in known)]
                self.assertEqual(lacks, [], "add them to tool_names in adapters/claude-code.yaml")


class Work(Case):
    def test_text(self):
        r = self.good("turns: [{think: Hm., say: hello there}]", text="hello there")
        self.check_usage(r, 1)
        kinds = [e["entry_type"] for e in self.entries(r)]
        notices = self.entries(r, "system_event")
        self.assertEqual([k for k in kinds if k != "system_event"], ["user_message", "thinking", "assistant_message",
                                                                     "token_usage"])
        self.assertEqual((kinds[1], kinds[-2]), ("system_event", "system_event"))
        subtypes = [n["detail"]["subtype"] for n in notices]
        self.assertEqual((subtypes[-2:], subtypes.count("init")), (["init", "stop"], 1))  # 2.1.326 has more of them
        self.assertTrue(r.result["session_id"])

    def test_its_own_tools(self):
        r = self.good("""
turns:
  - call: {tool: native.write_file, args: {path: hello.txt, content: "hello\\n"}}
  - call: {tool: native.shell, args: {command: "echo more >> hello.txt; exit 3"}}
  - say: done
""", text="done")
        self.assertIn(b"+hello\n+more\n", r.bytes("diff.patch"))
        self.check_usage(r, 3)
        results = self.entries(r, "tool_result")
        self.assertEqual([e["detail"]["tool_name"] for e in results], ["Write", "Bash"])
        self.assertIn("Exit code 3", results[1]["detail"]["error"])
        self.assertEqual(self.calls(r), [("Write", True), ("Bash", False)])

    def test_a_sub_agent_is_a_source_of_its_own(self):
        """Also one that works in the background (2.1.3xx) and is silent for a while: the run waits for it and for the turn
        that begins when it is done."""
        r = self.good("""
steps:
  - when: {text: SUBTASK, turn: 0}
    call: {tool: Bash, args: {command: "timeout 14 tail -f /dev/null; echo from below", description: x}}
  - {when: {text: from below, turn: 1}, say: below is done}
  - {when: {results: 0}, call: {tool: Agent, args: {description: sub, prompt: SUBTASK, subagent_type: general-purpose}}}
  - {when: {text: below is done}, say: all is done}
  - {when: {turn: 1}, say: it has begun}
""", text="all is done")
        sources = {e["source"] for e in r.lines("transcript.jsonl") if e["event"] == "transcript.entry"} - {"main"}
        self.assertEqual(len(sources), 1)
        source = sources.pop()
        self.assertTrue(source.startswith("subagent:"))
        kinds = [e["entry_type"] for e in self.entries(r, source=source)]
        self.assertEqual(kinds, ["user_message", "tool_use", "tool_result", "assistant_message", "system_event"])
        self.assertEqual([e["sequence_number"] for e in self.entries(r, source=source)], [1, 2, 3, 4, 5])
        self.check_usage(r, 5 if "is_backgrounded" in r.bytes("stdout.log").decode() else 4)

    def test_system_prompt(self):
        self.good("""
steps:
  - {when: {system: Be kind.}, say: kind}
  - {say: not told}
""", options=("--set", "eval.tier_prompt=Be kind."), text="kind")

    def test_a_skill(self):
        self.write("skills/demo/SKILL.md", "---\nname: demo\ndescription: Shows how.\n---\n\nBODY-OF-THE-SKILL\n")
        self.good("""
steps:
  - {when: {turn: 0}, call: {tool: Skill, args: {skill: demo}}}
  - {when: {turn: [0, 1], text: BODY-OF-THE-SKILL}, say: read}
""", "skills: [skills/demo]\n", text="read")

    def test_a_tier_without_tools_or_delegation(self):
        script = """
steps:
  - {when: {no_tool: [Bash, Agent]}, say: nothing}
  - {when: {no_tool: Agent}, say: alone}
  - {say: everything}
"""
        self.good(script, text="everything")
        self.good(script, options=("--set", "eval.delegation_enabled=false"), text="alone")
        self.good(script, options=("--set", "eval.tools_enabled=false"), text="nothing")

    def test_the_workspaces_own_advice_is_read(self):
        self.write("ws/CLAUDE.md", "ADVICE-OF-THE-HOUSE\n")
        r = self.claude("""
steps:
  - {when: {text: ADVICE-OF-THE-HOUSE}, say: read}
  - {say: not read}
""")
        self.assertEqual(r.result["text"], "read")


TOOLS = """
tools:
  - name: add_note
    description: Notes a text.
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    command: [sh, -c, "cat > note.json; echo noted"]
  - name: break_it
    description: Writes a file and fails.
    input_schema: {type: object, properties: {}}
    command: [sh, -c, "echo half > broken.txt; echo it broke; exit 3"]
"""


class Tools(Case):
    def test_a_tool_of_the_task_is_a_transaction(self):
        r = self.good("""
steps:
  - {when: {turn: 0}, call: {tool: break_it}}
  - {when: {turn: 1, text: it broke}, call: {tool: add_note, args: {text: hi}}}
  - {when: {turn: 2, text: noted}, say: done}
""", TOOLS, text="done")
        patch = r.bytes("diff.patch")
        self.assertIn(b"note.json", patch)
        self.assertNotIn(b"broken.txt", patch)
        self.assertEqual(self.calls(r), [("break_it", False), ("add_note", True)])
        spawned = r.events("process.spawned")[0]
        self.assertNotIn("Bearer", str(spawned))
        names = [e["detail"]["tool_name"] for e in self.entries(r, "tool_use")]
        self.assertEqual(names, ["mcp__cinch__break_it", "mcp__cinch__add_note"])

    def test_opened_sections_bring_tools(self):
        """It is started again with the new prompt and the same conversation, and its tools are there."""
        task = TOOLS + """prompt:
  ns: demo
  key: open
  sections:
    - {key: intro, title: Introduction, body: Begin.}
    - {key: deep, title: Deep, summary: There is more., visibility: summary, body: The word is xyzzy.,
       tools: [add_note]}
"""
        script = self.write("model.yaml", USAGE + """
steps:
  - {when: {turn: 1, text: noted}, say: done}
  - {when: {text: The word is xyzzy, tool: add_note}, call: {tool: add_note, args: {text: hi}}}
  - {when: {text: The word is xyzzy}, say: opened}
  - {when: {tool: open_sections}, call: {tool: open_sections, args: {section_keys: [deep], reason: why not}}}
""")
        path = self.write("task.yaml", task)
        r = self.run_cinch("--adapter", self.adapter, "--script", script, "--timeout", "100s", path)
        self.assertEqual((r.reason, r.result["text"]), ("success", "done"), r.stderr + r.bytes("stdout.log"))
        self.assertIn(b"note.json", r.bytes("diff.patch"))
        self.assertEqual(len(r.events("prompt.restarted")), 1)
        self.assertIn("--resume", str(r.events("process.spawned")[1]))

    def test_a_policy_denies_its_own_tools(self):
        r = self.good("""
steps:
  - {when: {turn: 0}, call: {tool: Bash, args: {command: "touch denied", description: x}}}
  - {when: {turn: 1, text: No shells here.}, call: {tool: native.write_file, args: {path: allowed, content: "x\\n"}}}
  - {when: {turn: 2}, say: understood}
""", 'policies: [{type: deny, tools: ["native:Bash"], reason: No shells here.}]\n', text="understood")
        self.assertNotIn(b"denied", r.bytes("diff.patch"))
        self.assertIn(b"allowed", r.bytes("diff.patch"))

    def test_another_model_for_further_turns(self):
        r = self.good("""
steps:
  - {when: {turn: 0, text: report.md}, call: {tool: native.write_file, args: {path: report.md, content: "x\\n"}}}
  - {when: {turn: 1}, say: now it is there}
  - {say: I am done}
""", "completion: {files: [report.md], model: claude-sonnet-4-5}\n", text="now it is there")
        models = [e["context"]["model"] for e in r.events("model.call")]
        self.assertNotEqual(models[0], "claude-sonnet-4-5")
        self.assertEqual(set(models[1:]), {"claude-sonnet-4-5"})


class Ends(Case):
    SLOW = """
turns:
  - call: {tool: native.write_file, args: {path: kept.txt, content: "kept\\n"}}
  - call: {tool: native.shell, args: {command: "tail -f /dev/null"}}
"""

    def test_the_deadline_interrupts(self):
        r = self.claude(self.SLOW, options=("--timeout", "20s"))
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)
        self.assertIn(b"+kept", r.bytes("diff.patch"))
        self.check_usage(r, 2)
        self.assertIn(b'"subtype":"error_during_execution"', r.bytes("stdout.log"), "it was not interrupted")

    def test_always_cut(self):
        r = self.claude("steps: [{say: half of it and more, fault: {cut: 400}}]")
        self.assertEqual(r.result["outcome"], "failure")


class Print(Case):
    """The one-shot mode."""

    adapter = "claude-code-print"

    def test_structured_output(self):
        r = self.good("turns: [{output: {answer: '42'}}]", """
output: {schema: {type: object, properties: {answer: {type: string}}, required: [answer]}}
""")
        self.assertEqual(r.result["output"], {"answer": "42"})
        self.check_usage(r, 1)

    def test_another_round_goes_on_with_the_conversation(self):
        r = self.good("""
steps:
  - {when: {turn: 0, text: report.md}, call: {tool: native.write_file, args: {path: report.md, content: "x\\n"}}}
  - {when: {turn: 1}, say: now it is there}
  - {say: I am done}
""", "completion: {files: [report.md]}\n", text="now it is there")
        self.assertIn(b"report.md", r.bytes("diff.patch"))
        self.assertEqual(len({e["context"]["pid"] for e in r.events("process.spawned")}), 2)


if __name__ == "__main__":
    harness.main()
