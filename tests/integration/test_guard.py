#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Policies, feedback and completion: judged before a run, kept during it, and visible at the wire."""

import json
import os
import re

import harness
from provider import Provider, Say

# Does what its arguments say: writes a file, reads one, fails, or only says its name.
TOOL = """#!/usr/bin/python3
import json, os, sys
a = json.load(sys.stdin)
if a.get("path") and "content" in a:
    open(a["path"], "w").write(a["content"])
if a.get("fail"):
    sys.exit("as told")
print("ran " + os.environ["CINCH_TOOL_NAME"] + (" " + open(a["path"]).read() if a.get("path") else ""))
"""
ARGUMENTS = {"type": "object", "properties": {
    "path": {"type": "string"}, "content": {"type": "string"}, "fail": {"type": "boolean"}}}


class Check(harness.Case):
    """cinch task check finds what makes no sense, and says where."""

    def check(self, text):
        path = self.write("task.yaml", text if re.search("^prompt:", text, re.M) else "prompt: x\n" + text)
        return self.cinch("task", "check", path, "--", "true", env={"TICKETS_KEY": "k"})

    def test_senseless(self):
        for text, words in (
                ("policies: [{type: deny, tools: [a], section: none}]", ["task.yaml:2:12", "there is no section 'none'"]),
                ("policies: [{type: arguments, rules: [{pointer: /a, pattern: '('}]}]", ["policies[0]", "pattern '('"]),
                ("policies: [{type: sequential_dependency, depends: {a: [b], b: [a]}}]", ["would wait for itself"]),
                ("policies: [{type: rate, calls: 0}]", ["'calls' must be between 1"]),
                ("feedback: [{type: budget, every_n_calls: 1, threshold: 20}]", ["feedback[0]", "a share from 0 to 1"]),
                ("feedback: [{type: static, text: x, on_file_created: ../x}]", ["not in the workspace"]),
                ("completion: {files: [../x]}", ["task.yaml:2:13", "not in the workspace"]),
                ("completion: {any: [{session: {slice: a, min: 0}}]}", ["any[0]", "this holds always"]),
                ("completion: {all: [{schema: {type: what}}]}", ["all[0]", "schema"]),
        ):
            with self.subTest(text):
                self.assert_failed(self.check(text), 65, *words)
        self.assert_failed(self.check("completion: {all: [{schema: none.json}]}"), 66, "none.json")

    def test_sections_of_any_depth(self):
        prompt = ("prompt: {ns: a, key: b, sections: [{key: guide, title: T, body: x, children: "
                  "[{key: deep, title: D, body: y}]}]}\n")
        for section in ("guide", "guide.deep", "guide/deep"):
            r = self.check(prompt + f"policies: [{{type: deny, tools: [x], section: {section}}}]\n")
            self.assertEqual(r.code, 0, r.stderr)
        self.assert_failed(self.check(prompt + "policies: [{type: deny, tools: [x], section: deep}]\n"), 65, "deep")

    def test_nobody_asks(self):
        """A program that was not made for it does not ask before it uses its own tools."""
        tools = "tools: [{name: a, description: A., command: ['true']}]\n"
        for text, words in ((tools + "policies: [{type: deny, tools: ['native:B*']}]\n", ["policies[0]", "does not ask"]),
                            ("policies: [{type: deny, tools: [x]}]\n", ["'policies'", "does not ask"])):
            path = self.write("task.yaml", "prompt: x\n" + text)
            self.assert_failed(self.run_cinch(path, "--", "true"), 69, *words)
        for text in ("policies: [{type: deny, tools: [x]}]\n", "policies: [{type: allow, tools: [a, 'native:*']}]\n"):
            path = self.write("task.yaml", "prompt: x\n" + tools + text)
            self.assertEqual(self.run_cinch(path, "--", "true").reason, "success")

    def test_the_manual(self):
        """Each example of docs/tools.md is a task."""
        with open(os.path.join(harness.ROOT, "docs", "tools.md")) as f:
            blocks = re.findall("```yaml\n(.*?)```", f.read(), re.S)
        self.assertGreater(len(blocks), 4)
        for block in blocks:
            with self.subTest(block):
                r = self.check(block)
                self.assertEqual(r.code, 0, r.stderr)


class Names(harness.Case):
    """A policy about a tool that does not exist restrains nothing."""

    def run_task(self, adapter, text, *options):
        path = self.write("task.yaml", "prompt: x\ntools: [{name: a, description: A., command: ['true']}]\n" + text)
        script = self.write("model.yaml", "turns: [{say: over}]\n")
        return self.run_cinch("--adapter", adapter, "--model", "m-1", "--script", script, *options, path)

    def test_where_all_tools_are_known(self):
        for names, missing in (("[a, structured_output]", None), ("['b*', 'native:*']", None), ("[a, A]", "A"),
                               ("['native:a']", "native:a")):
            with self.subTest(names):
                r = self.run_task("api-direct", f"policies: [{{type: allow, tools: ['*']}}, {{type: deny, tools: {names}}}]\n")
                if missing is None:
                    self.assertEqual((r.reason, r.manifest["warnings"]), ("success", []), r.stderr)
                else:
                    self.assertEqual(r.code, 65, r.stderr)
                    self.assertIn("task.yaml", r.result["error"])
                    self.assertIn(f"policies[1]: neither the task nor the agent has a tool '{missing}'", r.result["error"])
                    self.assertEqual(r.events("process.spawned"), [])

    def test_tools_of_the_harness(self):
        """Claude Code and Codex: the profile lists them."""
        self.write("bin/claude", "#!/bin/sh\necho not started > started\n", 0o755)
        self.write("bin/codex", "#!/bin/sh\necho not started > started\n", 0o755)
        self.env["PATH"] = self.path("bin") + ":" + self.env["PATH"]
        for adapter, name in (("claude-code", "native:bash"), ("claude-code", "bash"), ("codex", "native:Bash"), ("codex", "command")):
            with self.subTest(adapter=adapter, name=name):
                r = self.run_task(adapter, f"policies: [{{type: deny, tools: ['{name}']}}]\n")
                self.assertEqual(r.code, 65, r.stderr)
                self.assertIn(f"has a tool '{name}'", r.result["error"])


class Run(harness.Case):
    """Runs of api-direct against a foreign provider, which sees what the model sees."""

    def tools(self, *names):
        path = self.write("tool.py", TOOL, 0o755)
        return [{"name": n, "description": f"The tool {n}.", "command": [path], "input_schema": ARGUMENTS}
                for n in names]

    def run_plan(self, plan, options=(), **task):
        """A run in which the model says what the plan says; its requests are in self.requests."""
        path = self.write("task.yaml", json.dumps({
            "agent": {"adapter": "api-direct", "model": "m-1"}, "prompt": "Do it.", "throttle": {"max_attempts": 1},
            **task}))
        with Provider(*plan) as p:
            r = self.run_cinch("--upstream", p.url, *options, path)
        self.requests = [x.body for x in p.requests]
        return r

    def call(self, *calls):
        return Say("", calls=[(name, arguments) for name, arguments in calls])

    def results(self, i):
        """Results of tools in the i-th request: (is_error, text)."""
        found = []
        for part in self.requests[i]["messages"][-1]["content"]:
            if part["type"] == "tool_result":
                content = part["content"]
                text = content if isinstance(content, str) else "\n".join(c["text"] for c in content)
                found.append((part.get("is_error", False), text))
        return found

    def said(self, i):
        """The words of the user that end the i-th request."""
        last = self.requests[i]["messages"][-1]
        self.assertEqual(last["role"], "user")
        content = last["content"]
        return content if isinstance(content, str) else "".join(c.get("text", "") for c in content)

    def invoked(self, r):
        return [e["context"] for e in r.events("ToolInvoked")]

    def slices(self, r):
        after = json.loads(r.bytes("session", "after.jsonl"))
        return {s["slice_type"]: s["items"] for s in after["slices"]}

    def named(self, r, name):
        return [e for e in r.events() if e["event"] == name]


class Policies(Run):
    def denials(self, policies):
        """The texts that the model gets for calls that must not happen: one tool for each policy."""
        names = [f"t{i}" for i in range(len(policies))]
        r = self.run_plan([self.call(*((n, {"path": "made.txt", "content": "x"}) for n in names)), Say("done")],
                          tools=self.tools(*names), policies=[{"tools": [n], **p} for n, p in zip(names, policies)])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(len(self.requests), 2)
        results = self.results(1)
        self.assertEqual([is_error for is_error, _ in results], [True] * len(names))
        calls = {c["name"]: c["result"] for c in self.invoked(r)}
        for n in names:
            self.assertEqual((calls[n]["success"], calls[n]["failure"]), (False, "denied"))
        self.assertEqual(r.bytes("diff.patch"), b"")
        self.warnings = json.dumps([e["context"] for e in r.events("run.warning")])
        return [text for _, text in results]

    def test_the_handler_does_not_run_and_the_model_hears_why(self):
        self.assertEqual(self.denials([
            {"type": "deny", "tools": ["t0", "x*"]},
            {"type": "deny", "reason": "Not here."},
            {"type": "arguments", "rules": [{"pointer": "/path", "pattern": "^src/"}]},
            {"type": "sequential_dependency", "depends": {"t3": ["t1", "t0"]}},
            {"type": "allow", "tools": ["t0", "t1", "t2", "t3"], "reason": "Only those."},
        ]), ["Denied by policy.", "Not here.", "Tool 't2': argument '/path' must match the pattern ^src/",
             "Tool 't3' requires: t0, t1", "Only those."])
        self.assertEqual(self.warnings, "[]")

    def test_a_section_has_policies_of_its_own(self):
        sections = {"ns": "demo", "key": "s", "sections": [
            {"key": "free", "title": "Free", "body": "x", "tools": ["one"]},
            {"key": "guarded", "title": "Guarded", "body": "y", "children": [
                {"key": "deep", "title": "Deep", "body": "z", "tools": ["two"]}]}]}
        r = self.run_plan([self.call(("one", {}), ("two", {})), Say("done")], tools=self.tools("one", "two"), prompt=sections,
                          policies=[{"type": "deny", "tools": ["*"], "reason": "Prompt.", "name": "late"},
                                    {"type": "deny", "tools": ["*"], "section": "guarded", "reason": "Section."}])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(self.results(1), [(True, "Prompt."), (True, "Section.")])

    def test_only_what_succeeded_counts(self):
        r = self.run_plan([self.call(("build", {"fail": True})), self.call(("deploy", {})), self.call(("build", {})),
                           self.call(("deploy", {})), Say("done")],
                          tools=self.tools("build", "deploy"),
                          policies=[{"type": "sequential_dependency", "depends": {"deploy": ["build"]}}])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual([c["result"]["success"] for c in self.invoked(r)], [False, False, True, True])
        self.assertEqual(self.results(2), [(True, "Tool 'deploy' requires: build")])
        self.assertIn("ran deploy", self.results(4)[0][1])
        self.assertEqual([i["tool"] for i in self.slices(r)["policy:sequential_dependency"]], ["build"])

    def test_read_before_write(self):
        self.write("ws/old.txt", "old")
        path = os.path.join(self.workspace, "old.txt")
        new = {"path": "new.txt", "content": "n"}
        r = self.run_plan([self.call(("write_file", {"path": "old.txt", "content": "1"})),
                           self.call(("write_file", new)), self.call(("write_file", new)),
                           self.call(("read_file", {"path": "./old.txt"})),
                           self.call(("write_file", {"path": path, "content": "2"})), Say("done")],
                          tools=self.tools("read_file", "write_file"), policies=[{"type": "read_before_write"}])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(self.results(1), [(True, "File 'old.txt' must be read before overwriting.")])
        self.assertEqual([c["result"]["success"] for c in self.invoked(r)], [False, True, True, True, True])
        self.assertIn(b"+2", r.bytes("diff.patch"))

    def test_rate(self):
        r = self.run_plan([self.call(("a", {}), ("a", {}), ("a", {})), Say("done")], tools=self.tools("a"),
                          policies=[{"type": "rate", "calls": 2, "per": "1h"}])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(sorted(e for e, _ in self.results(1)), [False, False, True])

    def decide(self, text, **more):
        self.decider = getattr(self, "decider", 0) + 1
        return {"type": "program", "command": [self.script(f"decide{self.decider}.sh", text)], **more}

    def test_a_program_decides(self):
        seen = "read line; case $line in *made.txt*) printf '%s' '{\"decision\": \"deny\", \"reason\": \"I saw it.\"}';; esac\n"
        self.assertEqual(self.denials([self.decide(seen)]), ["I saw it."])
        r = self.run_plan([self.call(("a", {})), Say("done")], tools=self.tools("a"),
                          policies=[self.decide("echo '{\"decision\": \"allow\"}'\n")])
        self.assertEqual(self.results(1)[0][0], False, r.stderr)

    def test_a_program_is_in_the_sandbox_unless_told_otherwise(self):
        witness = self.write("elsewhere/witness", "x")
        text = f"test -e {witness} && echo '{{\"decision\": \"allow\"}}' || echo '{{\"decision\": \"deny\"}}'\n"
        self.denials([self.decide(text)])
        r = self.run_plan([self.call(("a", {})), Say("done")], tools=self.tools("a"),
                          policies=[self.decide(text, sandbox=False)])
        self.assertEqual(self.results(1)[0][0], False, r.stderr)

    def test_a_program_that_fails_denies(self):
        allow = "echo '{\"decision\": \"allow\"}'; "
        texts = (allow + "exit 1", allow + "kill -SEGV $$", "echo yes", "echo '{\"decision\": \"allow\"'", "exit 0",
                 allow + "yes allow", "exec /nonexistent/program")
        policies = [self.decide(text + "\n", name=f"p{i}") for i, text in enumerate(texts)]
        policies += [{"type": "program", "command": ["no-such-program-anywhere"], "name": "p7"},
                     self.decide(allow + "sleep 600\n", timeout="0.3s", reason="Too slow.", name="p8")]
        self.assertEqual(self.denials(policies), ["Denied by policy."] * 8 + ["Too slow."])
        for i in range(9):
            self.assertIn(f"policy 'p{i}'", self.warnings)


class Feedback(Run):
    def test_it_comes_with_the_result(self):
        r = self.run_plan([self.call(("a", {})), self.call(("a", {})), Say("done")], tools=self.tools("a"),
                          feedback=[{"type": "static", "text": "Mind the </feedback> gap.", "every_n_calls": 2}])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertNotIn("feedback", self.results(1)[0][1])
        text = self.results(2)[0][1]
        self.assertIn("ran a", text)
        self.assertIn("<feedback provider='Static'>\nMind the &lt;/feedback> gap.\n</feedback>", text)
        said, = self.slices(r)["Feedback"]
        self.assertEqual((said["provider_name"], said["call_index"], said["severity"]), ("Static", 2, "info"))
        # The record of the call is what the tool said, and no more.
        self.assertNotIn("feedback", self.invoked(r)[1]["rendered_output"])

    def test_time_and_budget(self):
        r = self.run_plan([self.call(("a", {})), Say("done")], tools=self.tools("a"),
                          limits={"timeout": 90, "tokens_total": 10000},
                          feedback=[{"type": "deadline", "every_n_seconds": 600}, {"type": "budget", "every_n_calls": 1}])
        self.assertEqual(r.reason, "success", r.stderr)
        text = self.results(1)[0][1]
        self.assertRegex(text, "<feedback provider='Deadline'>\nOnly 1 minute left until the deadline, after [0-9]+ second")
        self.assertRegex(text, "<feedback provider='Budget'>\n(100|99)% of the budget is left")

    def test_a_file_is_told_of_once(self):
        new = {"path": "flag", "content": "x"}
        r = self.run_plan([self.call(("a", {})), self.call(("a", new)), self.call(("a", {})), Say("done")], tools=self.tools("a"),
                          feedback=[{"type": "static", "text": "There it is.", "on_file_created": "flag"}])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(["There it is." in self.results(i)[0][1] for i in (1, 2, 3)], [False, True, False])

    def test_programs(self):
        good = self.script("good.sh", "cat > /dev/null\necho '{\"summary\": \"Hm.\", \"suggestions\": [\"Stop.\"]}'\n")
        bad = self.script("bad.sh", "echo no; exit 1\n")
        r = self.run_plan([self.call(("a", {})), Say("done")], tools=self.tools("a"),
                          feedback=[{"type": "program", "command": [bad], "every_n_calls": 1, "name": "bad"},
                                    {"type": "program", "command": [good], "every_n_calls": 1, "name": "good"}])
        self.assertEqual(r.reason, "success", r.stderr)
        is_error, text = self.results(1)[0]
        self.assertFalse(is_error)
        self.assertIn("<feedback provider='good'>\nHm.\n\n→ Stop.\n</feedback>", text)
        self.assertNotIn("bad", text)
        self.assertIn("feedback 'bad'", json.dumps([e["context"] for e in r.events("run.warning")]))


class Completion(Run):
    WRITE = ("write", {"path": "report.md", "content": "x"})

    def test_a_missing_file_and_a_second_round(self):
        r = self.run_plan([Say("I am done."), self.call(self.WRITE), Say("Now I am.")], tools=self.tools("write"),
                          completion={"files": ["report.md"]})
        self.assertEqual((r.reason, r.result["text"]), ("success", "Now I am."), r.stderr)
        self.assertEqual(len(self.requests), 3)
        self.assertEqual(self.said(1), "<blocker>\n1 required file is missing: report.md.\n</blocker>")
        self.assertIn(b"report.md", r.bytes("diff.patch"))
        # Each continuation is in the transcript.
        users = [e for e in r.lines("transcript.jsonl") if e.get("entry_type") == "user_message"]
        self.assertIn("report.md", json.dumps(users[1]))
        self.assertEqual(len(self.named(r, "task_completion.complete")), 1)

    def test_done_at_once(self):
        self.write("ws/report.md", "there")
        self.run_plan([Say("Done.")], completion={"files": ["report.md"]})
        self.assertEqual(len(self.requests), 1)

    def test_a_model_that_cannot_change(self):
        r = self.run_plan([Say("Done.")], completion={"files": ["report.md"], "model": "another"})
        self.assertEqual((r.reason, len(self.requests)), ("unavailable", 0), r.stderr)
        self.assertIn("'completion.model' cannot be kept", r.manifest["error"])

    def test_rounds_are_bounded(self):
        r = self.run_plan([Say("Done.")], completion={"files": ["never"], "max_rounds": 2})
        self.assertEqual((r.reason, len(self.requests), r.result["text"]), ("failure", 3, "Done."))
        self.assertIn("not complete", r.manifest["error"])
        self.assertEqual(len(self.named(r, "task_completion.incomplete")), 2)
        self.assertEqual(self.named(r, "task_completion.given_up")[0]["context"]["why"], "files")
        self.run_plan([Say("Done.")], completion={"files": ["never"], "max_rounds": 0})
        self.assertEqual(len(self.requests), 1)
        self.run_plan([Say("Done.")], completion={"files": ["never"]})
        self.assertEqual(len(self.requests), 11)

    def test_not_without_a_budget(self):
        r = self.run_plan([Say("Done.")], completion={"files": ["never"]}, limits={"calls": 1})
        self.assertEqual((len(self.requests), r.result["text"]), (1, "Done."))
        self.assertEqual(len(self.named(r, "task_completion.budget_exhausted")), 1)
        self.assertEqual(self.named(r, "task_completion.incomplete"), [])

    def test_a_command(self):
        check = self.script("check.sh", "test -e report.md && exit 0\necho 'there is no report'; exit 4\n")
        for rules in ({"command": [check]}, {"all": [{"any": [{"command": [check]}]}]}):
            r = self.run_plan([Say("Done."), self.call(self.WRITE), Say("Now.")], tools=self.tools("write"), completion=rules)
            self.assertEqual((r.reason, len(self.requests)), ("success", 3), r.stderr)
            self.assertIn("there is no report", self.said(1))
            self.assertIn("does not pass", self.said(1))

    def test_any_and_all(self):
        rules = {"any": [{"files": ["a", "b"]}, {"all": [{"files": ["report.md"]}, {"schema": {"required": ["n"]}}]}]}
        r = self.run_plan([Say("Done."), self.call(self.WRITE), Say("Now."), Say('{"n": 1}')],
                          tools=self.tools("write"), completion=rules)
        self.assertEqual((r.reason, len(self.requests)), ("success", 4), r.stderr)
        self.assertIn("missing: a, b. 1 required file is missing: report.md.", self.said(1))
        self.assertIn("does not fit its schema", self.said(3))

    def test_the_session(self):
        note = self.script("note.sh", "cat > /dev/null; echo '{\"message\": \"ok\", \"state\": "
                           "[{\"op\": \"append\", \"slice\": \"plan\", \"value\": {\"status\": \"done\"}}]}'\n")
        tools = [{"name": "note", "description": "Notes.", "command": [note]}]
        r = self.run_plan([Say("Done."), self.call(("note", {})), Say("Now.")], tools=tools,
                          completion={"session": {"slice": "plan", "where": {"/status": "done"}, "every": True}})
        self.assertEqual((r.reason, len(self.requests)), ("success", 3), r.stderr)
        self.assertIn("'plan'", self.said(1))


if __name__ == "__main__":
    harness.main()
