#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The real Codex (tests/harness/packages.txt) in a dialogue, in the sandbox, with a scripted model: its own tools and
ours, policies, feedback, further turns, the deadline. What the compatibility kit tries on every adapter is not tried again."""

import json
import os

import harness

FILE_TIMEOUT = 900

USAGE = "defaults: {usage: {input: 1000, output: 50, cache_read: 20}}\n"

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


class Case(harness.Case):
    adapter = "codex"

    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real("codex")) + ":" + self.env["PATH"]

    def arguments(self, script, task, options):
        model = self.write("model.yaml", USAGE + script)
        path = self.write("task.yaml", "prompt: do it\n" + task)
        limit = () if "--timeout" in options else ("--timeout", "100s")
        return ("--adapter", self.adapter, "--script", model, *limit, *options, path)

    def codex(self, script, task="", options=()):
        return self.run_cinch(*self.arguments(script, task, options))

    def good(self, script, task="", options=(), text=None):
        r = self.codex(script, task, options)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log")[-4000:] + r.bytes("stderr.log"))
        self.assertEqual(os.listdir(self.workspace), [], "the original was touched")
        self.assertEqual(os.listdir(self.env["HOME"]), [], "the caller's home was touched")
        if text is not None:
            self.assertEqual(r.result["text"], text)
        return r

    def entries(self, r, kind=None):
        found = [e for e in r.lines("transcript.jsonl") if e["event"] == "transcript.entry"]
        return [e for e in found if kind in (None, e["entry_type"])]

    def check_usage(self, r, answers):
        """What the script sent, what the gateway counted and what Codex says are the same."""
        usage = r.metrics["ext"]["usage"]
        for of in (usage["wire"], usage["reported"]):
            self.assertEqual([of[key] for key in ("input", "output", "cache_read")],
                             [n * answers for n in (1000, 50, 20)])

    def calls(self, r):
        """(name, whether it succeeded) of every call in the record."""
        return [(e["context"]["name"], e["context"]["success"]) for e in r.events("ToolInvoked")]


class Work(Case):
    def test_text(self):
        r = self.good("turns: [{think: Hm., say: hello there}]", text="hello there")
        self.check_usage(r, 1)
        # Where there is no bubblewrap, Codex says so: it takes its own then.
        told = [e for e in self.entries(r) if e["detail"].get("subtype") != "configWarning"]
        kinds = [e["entry_type"] for e in told]
        self.assertEqual(kinds, ["user_message", "system_event", "thinking", "assistant_message", "token_usage"])
        self.assertTrue(r.result["session_id"])

    def test_its_own_tools_and_ours(self):
        """A tool of the task is a transaction: one that fails leaves nothing."""
        r = self.good("""
steps:
  - {when: {turn: 0}, call: {tool: native.write_file, args: {path: hello.txt, content: "hello\\n"}}}
  - {when: {turn: 1}, call: {tool: native.shell, args: {command: "echo more >> hello.txt; exit 3"}}}
  - {when: {turn: 2}, call: {tool: break_it}}
  - {when: {turn: 3, text: it broke}, call: {tool: add_note, args: {text: hi}}}
  - {when: {turn: 4, text: noted}, say: done}
""", TOOLS, text="done")
        patch = r.bytes("diff.patch")
        self.assertIn(b"+hello\n+more\n", patch)
        self.assertIn(b"note.json", patch)
        self.assertNotIn(b"broken.txt", patch)
        self.check_usage(r, 5)
        self.assertEqual(self.calls(r), [("codex:file_change", True), ("codex:command", False), ("break_it", False),
                                         ("add_note", True)])
        names = ["codex:file_change", "codex:command", "break_it", "add_note"]
        for kind in ("tool_use", "tool_result"):
            self.assertEqual([e["detail"]["tool_name"] for e in self.entries(r, kind)], names)
        self.assertEqual(self.entries(r, "tool_result")[1]["detail"]["exit_code"], 3)

    def test_system_prompt(self):
        self.good("""
steps:
  - {when: {text: Be kind.}, say: kind}
  - {when: {system: Be kind.}, say: kind}
  - {say: not told}
""", options=("--set", "eval.tier_prompt=Be kind."), text="kind")

    def test_a_model_that_it_does_not_know(self):
        """It gets an entry of its own: no warning, its tool for patches, a window that is said somewhere."""
        r = self.codex("""
turns:
  - call: {tool: native.write_file, args: {path: hello.txt, content: "hello\\n"}}
  - say: written
""", options=("--model", "model-of-the-task"))
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log")[-3000:])
        self.assertIn(b"+hello", r.bytes("diff.patch"))
        self.assertEqual({e["context"]["model"] for e in r.events("model.call")}, {"model-of-the-task"})
        told = r.bytes("stdout.log")
        self.assertNotIn(b"Model metadata", told)
        self.assertIn(b'"modelContextWindow":190000', told)
        asked = self.cinch("cassette", "show", "-x", "1", r.path("evidence", "traffic.cassette")).stdout
        self.assertIn(b"apply_patch", asked)

    def test_a_skill(self):
        """It is where Codex looks: the model is told of it, and can read it."""
        self.write("brew-tea/SKILL.md", "---\nname: brew-tea\ndescription: How tea is made in this house.\n---\nWarm the pot.\n")
        r = self.codex("""
steps:
  - when: {turn: 0, system: How tea is made in this house}
    call: {tool: native.shell, args: {command: "cat $HOME/.codex/skills/brew-tea/SKILL.md > read.txt"}}
  - {say: done}
""", options=("--skill", self.path("brew-tea")))
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log")[-3000:])
        self.assertIn(b"+Warm the pot.", r.bytes("diff.patch"))

    def test_another_model_for_further_turns(self):
        """Codex makes a summary for the new model first."""
        r = self.good("""
steps:
  - {when: {turn: 0, text: report.md, tool: native.shell}, call: {tool: native.shell, args: {command: "echo x > report.md"}}}
  - {when: {turn: 1}, say: now it is there}
  - {say: I am done}
""", "completion: {files: [report.md], model: another-model}\n", text="now it is there")
        models = [e["context"]["model"] for e in r.events("model.call")]
        self.assertEqual((models[0], models[-1]), ("gpt-5.5", "another-model"))
        self.assertIn(b"report.md", r.bytes("diff.patch"))


class Rules(Case):
    def test_a_policy_denies_its_commands(self):
        """Also those that Codex takes for harmless; why, the model is told."""
        r = self.good("""
steps:
  - {times: 1, call: {tool: native.shell, args: {command: "touch denied"}}}
  - {times: 1, when: {text: No shells here.}, call: {tool: native.shell, args: {command: "ls -l"}}}
  - {times: 1, when: {text: No shells here.}, call: {tool: native.write_file, args: {path: allowed, content: "x\\n"}}}
  - {say: understood}
""", "policies: [{type: deny, tools: ['codex:command'], reason: No shells here.}]\n", text="understood")
        self.assertNotIn(b"denied", r.bytes("diff.patch"))
        self.assertIn(b"allowed", r.bytes("diff.patch"))
        self.assertEqual(len(r.events("tool.denied")), 2)
        self.assertEqual(self.calls(r), [("codex:command", False), ("codex:command", False),
                                         ("codex:file_change", True)])

    def test_a_policy_denies_a_file(self):
        """A patch is looked at file by file, and applied as a whole or not at all."""
        patch = ("*** Begin Patch\\n*** Add File: right.txt\\n+x\\n*** Add File: wrong.txt\\n+x\\n*** End Patch\\n")
        rule = "policies: [{type: arguments, tools: ['native:*'], rules: [{pointer: /file_path, pattern: right}]}]\n"
        r = self.good("""
steps:
  - {times: 1, call: {tool: apply_patch, input: "%s"}}
  - {times: 1, call: {tool: native.write_file, args: {path: right2.txt, content: "x\\n"}}}
  - {say: understood}
""" % patch, rule, text="understood")
        self.assertNotIn(b"wrong.txt", r.bytes("diff.patch"))
        self.assertNotIn(b"right.txt", r.bytes("diff.patch"))
        self.assertIn(b"right2.txt", r.bytes("diff.patch"))

    def test_feedback_reaches_the_model(self):
        """With the result of a tool of the task; for its own tools as words into the turn."""
        r = self.good("""
steps:
  - {when: {text: Mind the gap.}, say: heard}
  - {when: {turn: 0}, call: {tool: add_note, args: {text: hi}}}
""", TOOLS + "feedback: [{type: static, text: Mind the gap., every_n_calls: 1}]\n", text="heard")
        r = self.good("""
steps:
  - {when: {text: Mind the gap.}, say: heard}
  - {when: {turn: 0}, call: {tool: native.shell, args: {command: "true"}}}
  - {say: not yet}
""", "feedback: [{type: static, text: Mind the gap., every_n_calls: 1}]\n", text="heard")
        self.assertEqual(len(self.entries(r, "user_message")), 1)


class CodeMode(Case):
    """With gpt-6, the only tool takes a program, which calls the others. Policies, ToolInvoked and the transcript are the
    same as with tools that are listed."""

    MODEL = ("--model", "gpt-6.1-sol")

    def program(self, *lines):
        """A step that runs a program, as a model would write it."""
        return json.dumps({"times": 1, "call": {"tool": "exec", "input": "\n".join(lines)}})

    def commands(self, r):
        return [(e["context"]["params"].get("command"), e["context"]["success"]) for e in r.events("ToolInvoked")
                if e["context"]["name"] == "codex:command"]

    def test_tools_of_the_task(self):
        """The script names a tool, the scripted model writes the program; RenderedTools says how the tool was offered."""
        r = self.good("""
steps:
  - {when: {turn: 0}, call: {tool: break_it}}
  - {when: {turn: 1, text: it broke}, call: {tool: add_note, args: {text: "a \\"quote\\" and ${"}}}
  - {when: {turn: 2, text: noted}, say: done}
""".replace("${", "$${"), TOOLS, self.MODEL, text="done")
        self.assertEqual(self.calls(r), [("break_it", False), ("add_note", True)])
        self.assertEqual(r.events("ToolInvoked")[1]["context"]["params"], {"text": 'a "quote" and ${'})
        self.assertIn(b"note.json", r.bytes("diff.patch"))
        self.assertNotIn(b"broken.txt", r.bytes("diff.patch"))
        offered = [t.get("offered") for e in r.events("RenderedTools") for t in e["context"]["tools"]]
        self.assertEqual(set(offered), {"deferred"})
        self.check_usage(r, 3)

    def test_one_program_with_many_calls(self):
        """Each is reported with its own arguments and result; they may run at the same time."""
        tool = TOOLS.replace("cat > note.json", "cat > $(mktemp note-XXXXXX)")
        r = self.good("steps:\n  - " + self.program(
            'const notes = await Promise.all(["a", "b", "c"].map(t => tools.add_note({text: t})));',
            'const shell = await tools.exec_command({cmd: "echo shell > shell.txt; echo SHELL-SAID"});',
            r'await tools.apply_patch("*** Begin Patch\n*** Add File: patch.txt\n+patched\n*** End Patch\n");',
            'text(notes.length + " " + JSON.stringify(shell));') + """
  - {when: {text: SHELL-SAID}, say: done}
""", tool, self.MODEL, text="done")
        names = [name for name, ok in self.calls(r) if ok]
        self.assertEqual(sorted(names), ["add_note"] * 3 + ["codex:command", "codex:file_change"])
        self.assertEqual(sorted(e["context"]["params"]["text"] for e in r.events("ToolInvoked")
                                if e["context"]["name"] == "add_note"), ["a", "b", "c"])
        for name in (b"shell.txt", b"patch.txt", b"note-"):
            self.assertIn(name, r.bytes("diff.patch"))
        uses = [e["detail"]["tool_call_id"] for e in self.entries(r, "tool_use")]
        self.assertEqual(len(set(uses)), 5)
        self.assertEqual(sorted(e["detail"]["tool_call_id"] for e in self.entries(r, "tool_result")), sorted(uses))

    def test_a_policy_denies_what_a_program_calls(self):
        """Whatever the program does about it: it catches the error, does not wait, or ends at once. The reason for the
        denial is sent into the turn, so the program is reported before it ends, and the model waits for it."""
        r = self.good("steps:\n  - " + self.program(
            'let said = "";',
            'try { await tools.exec_command({cmd: "touch denied1"}); } catch (e) { said = String(e); }',
            'tools.exec_command({cmd: "touch denied2"});',
            'await tools.add_note({text: "kept"});',
            'text("AND THEN " + said);') + "\n  - " + self.program(
                'tools.exec_command({cmd: "touch denied3"}); exit();') + """
  - {when: {regex: "cell ID ([0-9]+)"}, call: {tool: wait, args: {cell_id: "${1}"}}}
  - {when: {text: Script completed}, say: understood}
""", TOOLS + "policies: [{type: deny, tools: ['codex:command'], reason: No shells here.}]\n", self.MODEL, text="understood")
        self.assertNotIn(b"denied", r.bytes("diff.patch"))
        self.assertIn(b"note.json", r.bytes("diff.patch"))
        self.assertIn(("codex:command", False), self.calls(r))
        self.assertNotIn(("codex:command", True), self.calls(r))
        self.assertGreaterEqual(len(r.events("tool.denied")), 1)
        asked = b"".join(self.cinch("cassette", "show", "-x", str(n), r.path("evidence", "traffic.cassette")).stdout for n in (2, 3))
        self.assertIn(b"No shells here.", asked)

    def test_a_policy_denies_a_file_of_a_program(self):
        patch = r"*** Begin Patch\n*** Add File: %s.txt\n+x\n*** End Patch\n"
        rule = "policies: [{type: arguments, tools: ['native:*'], rules: [{pointer: /file_path, pattern: right}]}]\n"
        r = self.good("steps:\n  - " + self.program(
            f'try {{ await tools.apply_patch("{patch % "wrong"}"); }} catch (e) {{ text(String(e)); }}',
            f'await tools.apply_patch("{patch % "right"}");') + """
  - {say: understood}
""", rule, self.MODEL, text="understood")
        self.assertNotIn(b"wrong.txt", r.bytes("diff.patch"))
        self.assertIn(b"right.txt", r.bytes("diff.patch"))

    def test_a_shell_that_runs_takes_no_further_commands(self):
        """Codex does not ask before it types into a terminal, so there is none if policies apply: an allowed command is no
        way around them."""
        rule = ("policies: [{type: arguments, tools: ['codex:command'], reason: Not that., "
                "rules: [{pointer: /command, pattern: '(-lc /bin/sh|true)$'}]}]\n")
        r = self.good("steps:\n  - " + self.program(
            'try {',
            '  const s = await tools.exec_command({cmd: "/bin/sh", tty: true, yield_time_ms: 500});',
            '  text(await tools.write_stdin({session_id: s.session_id, chars: "touch denied\\nexit\\n", yield_time_ms: 1000}));',
            '} catch (e) { text("TRIED " + e); }',
            'text(await tools.exec_command({cmd: "true"}));') + """
  - {when: {text: exit_code}, say: understood}
""", rule, self.MODEL, text="understood")
        self.assertNotIn(b"denied", r.bytes("diff.patch"))
        self.assertNotIn(b"terminalInteraction", r.bytes("stdout.log"))
        self.assertIn(("codex:command", True), self.calls(r))


class Ends(Case):
    SLOW = """
turns:
  - call: {tool: native.write_file, args: {path: kept.txt, content: "kept\\n"}}
  - call: {tool: native.shell, args: {command: "sleep 1000"}}
  - {say: "and then ", fault: {hang: 200}}
"""

    def test_the_deadline_interrupts(self):
        """By the protocol, not by a signal: what it cost until then is known."""
        r = self.codex(self.SLOW, options=("--timeout", "8s"))
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)
        self.assertIn(b"+kept", r.bytes("diff.patch"))
        self.assertIn(b'"status":"interrupted"', r.bytes("stdout.log"), "it was not interrupted")
        self.assertGreaterEqual(r.metrics["tokens_input"], 1000)
        self.assertNotIn("deadline", [e["context"]["why"] for e in r.events("process.signal")])

    def test_a_refusal(self):
        """Of the provider, in its own words."""
        r = self.codex("steps: [{fault: {status: 400, body: '{\"error\": {\"message\": \"no such thing\"}}'}}]")
        self.assertEqual(r.result["outcome"], "failure")
        self.assertIn("no such thing", r.manifest["error"])
        self.assertEqual(len([e for e in self.entries(r, "error") if "notification" in e["detail"]]), 1)


class Exec(Case):
    """One prompt per process."""

    adapter = "codex-exec"

    def test_its_own_tools(self):
        r = self.good("""
steps:
  - {when: {turn: 0}, call: {tool: native.write_file, args: {path: hello.txt, content: "hello\\n"}}}
  - {when: {turn: 1}, call: {tool: native.shell, args: {command: "echo more >> hello.txt"}}}
  - {when: {turn: 2}, say: done}
""", options=("--model", "gpt-5.5"), text="done")
        self.assertIn(b"+hello\n+more\n", r.bytes("diff.patch"))


if __name__ == "__main__":
    harness.main()
