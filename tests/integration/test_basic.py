#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Adapter basic, the built-in agent: its tools one by one, a whole fix, the sandbox, trimming, and which provider serves a model."""

import json
import os
import subprocess
import time

import harness
from provider import Provider, Say

TOOLS = os.path.join(harness.BUILD, "src/tools/cinch-tools")


class Tools(harness.Case):
    """The program cinch-tools alone: what a model gets for good and bad calls."""

    def call(self, name, env=None, **arguments):
        done = subprocess.run([TOOLS, name], input=json.dumps(arguments).encode(), cwd=self.workspace, capture_output=True,
                              env={**os.environ, **(env or {})}, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(set(answer), {"message", "success"})
        self.assertLess(len(done.stdout), 200_000)
        return answer["success"], answer["message"]

    def put(self, name, content):
        path = os.path.join(self.workspace, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def content(self, name):
        with open(os.path.join(self.workspace, name), "rb") as f:
            return f.read()

    def fails(self, words, name, **arguments):
        ok, text = self.call(name, **arguments)
        self.assertFalse(ok, text)
        self.assertIn(words, text)

    def works(self, words, name, **arguments):
        ok, text = self.call(name, **arguments)
        self.assertTrue(ok, text)
        self.assertIn(words, text)
        return text

    def test_read(self):
        self.put("a.txt", "one\ntwo\nthree")
        self.assertEqual(self.call("read", path="a.txt"), (True, "one\ntwo\nthree\n"))
        self.assertEqual(self.call("read", path=os.path.join(self.workspace, "a.txt"), offset=2, limit=1),
                         (True, "two\n[lines 2 to 2 of 3; continue with offset 3]\n"))
        self.fails("has only 3 lines", "read", path="a.txt", offset=4)
        self.put("empty", "")
        self.works("[the file is empty]", "read", path="empty")

    def test_read_of_what_cannot_be_read(self):
        self.put("binary", b"\x7fELF\0\0\1")
        os.mkfifo(os.path.join(self.workspace, "pipe"))
        self.fails("'none/x' does not exist. Use list or search", "read", path="none/x")
        self.fails("is a directory: use list", "read", path=".")
        self.fails("this is a binary file", "read", path="binary")
        self.fails("is not a regular file", "read", path="pipe")
        self.fails("is not a regular file", "read", path="/dev/zero")
        self.fails("a part of the path 'binary/x' is a file", "read", path="binary/x")
        self.fails("'path' must be a path", "read", path="")
        self.fails("'path' must be a path", "read", path="a\0b")
        self.fails("'path' must be a path", "read", path="x" * 5000)

    def test_read_is_bounded(self):
        self.put("long", "".join(f"line {i}\n" for i in range(100_000)))
        text = self.works("[lines 1 to 2000 of 100000; continue with offset 2001]", "read", path="long")
        self.assertLess(len(text), 60_000)
        self.works("line 99999", "read", path="long", offset=99_999)
        self.put("wide", "x" * 5_000_000 + "\nend\n")
        text = self.works("[line cut:", "read", path="wide")
        self.assertLess(len(text), 3000)
        self.assertIn("\nend\n", text)
        self.put("many", ("y" * 1500 + "\n") * 500)
        self.assertLess(len(self.works("continue with offset", "read", path="many")), 60_000)

    def test_read_of_invalid_utf8(self):
        self.put("latin1", "grün\n".encode("latin-1"))
        text = self.works("[1 bytes are not valid UTF-8", "read", path="latin1")
        self.assertTrue(text.startswith("gr\ufffdn\n"))

    def test_write(self):
        self.works("Created 'new/dir/f.txt': 3 bytes, 1 line.", "write", path="new/dir/f.txt", content="hi\n")
        os.chmod(os.path.join(self.workspace, "new/dir/f.txt"), 0o755)
        self.works("Replaced the content of", "write", path="new/dir/f.txt", content="")
        self.assertEqual(os.stat(os.path.join(self.workspace, "new/dir/f.txt")).st_mode & 0o777, 0o755)
        self.assertEqual(self.content("new/dir/f.txt"), b"")
        os.symlink("target", os.path.join(self.workspace, "link"))
        self.works("link", "write", path="link", content="through\n")
        self.assertEqual(self.content("target"), b"through\n")
        os.mkfifo(os.path.join(self.workspace, "pipe"))
        self.fails("is not a regular file", "write", path="pipe", content="x")
        self.fails("is a directory", "write", path="new", content="x")
        self.fails("cannot be made", "write", path="target/below/x", content="x")

    def test_edit(self):
        self.put("f", "a = 1\nb = 2\nb = 2\n")
        self.works("Replaced 1 occurrence", "edit", path="f", old_text="a = 1", new_text="a = 3")
        self.fails("2 times (lines 2, 3): add lines around it", "edit", path="f", old_text="b = 2", new_text="c")
        self.fails("is not in 'f'", "edit", path="f", old_text="zzz", new_text="c")
        self.fails("line 2 and those after it differ only in white space", "edit", path="f", old_text="  b = 2", new_text="c")
        self.fails("'old_text' is empty", "edit", path="f", old_text="", new_text="c")
        self.fails("are the same", "edit", path="f", old_text="b", new_text="b")
        self.fails("does not exist", "edit", path="none", old_text="b", new_text="c")
        self.assertEqual(self.content("f"), b"a = 3\nb = 2\nb = 2\n")
        self.works("Replaced 2 occurrences", "edit", path="f", old_text="b = 2", new_text="c", replace_all=True)
        self.assertEqual(self.content("f"), b"a = 3\nc\nc\n")

    def test_edit_keeps_bytes(self):
        self.put("latin1", b"gr\xfcn\nblau\n")
        self.works("Replaced", "edit", path="latin1", old_text="blau", new_text="rot")
        self.assertEqual(self.content("latin1"), b"gr\xfcn\nrot\n")
        self.put("crlf", b"one\r\ntwo\r\n")
        self.works("Replaced", "edit", path="crlf", old_text="one\ntwo", new_text="1\n2")
        self.assertEqual(self.content("crlf"), b"1\r\n2\r\n")
        self.put("binary", b"a\0b")
        self.fails("is a binary file", "edit", path="binary", old_text="a", new_text="c")
        self.put("huge", b"a" * (17 << 20))
        self.fails("more than 16 MiB", "edit", path="huge", old_text="a", new_text="c")

    def test_list(self):
        self.put("b.txt", "12345")
        self.put("a/deep/x", "")
        self.put("node_modules/y/z", "")
        os.symlink("b.txt", os.path.join(self.workspace, "l"))
        self.assertEqual(self.call("list"), (True, "a/\nb.txt  5\nl -> b.txt\nnode_modules/\n"))
        text = self.works("a/deep/x  0", "list", depth=3)
        self.assertNotIn("node_modules/y", text)
        self.works("node_modules/y/", "list", path="node_modules")
        self.fails("is not a directory", "list", path="b.txt")
        self.fails("cannot be opened: No such file", "list", path="none")
        os.mkdir(os.path.join(self.workspace, "void"))
        self.works("[the directory is empty]", "list", path="void")
        for i in range(600):
            self.put(f"many/{i:03}", "")
        self.works("only the first 500 entries", "list", path="many")

    def test_search(self):
        self.put("a.py", "def one():\n    return 1\n")
        self.put("sub/b.c", "int one(void);\n")
        self.put("binary", b"one\0")
        self.put("node_modules/n.py", "one\n")
        text = self.works("a.py:1: def one():", "search", pattern=r"\bone\b")
        self.assertIn("sub/b.c:1: int one(void);", text)
        self.assertIn("[not searched: 1 binary", text)
        self.assertNotIn("node_modules", text)
        self.assertNotIn("b.c", self.call("search", pattern="one", glob="*.py")[1])
        self.works("sub/b.c:1:", "search", pattern="ONE(", literal=True, ignore_case=True, path="sub")
        self.works("[no match in 2 files]", "search", pattern="zzz")
        self.works("a.py:2:", "search", pattern=r"return \d", path="a.py")
        self.fails("is not a POSIX extended regular expression", "search", pattern="a(")
        self.fails("1 to 1000 characters", "search", pattern="")
        self.put("many", "one\n" * 500)
        self.works("only the first 100 matches", "search", pattern="one", path="many")

    def test_shell(self):
        self.assertEqual(self.call("shell", command="echo out; echo err >&2"), (True, "out\nerr\n"))
        self.assertEqual(self.call("shell", command="true"), (True, "[exit status 0, no output]\n"))
        self.assertEqual(self.call("shell", command="printf x; exit 3"),
                         (False, "x\n[exit status 3. Its changes to files of the workspace were undone]\n"))
        self.assertEqual(self.call("shell", command="exit 3", keep_changes=True), (True, "[exit status 3]\n"))
        self.fails("[ended by signal 9 (Killed)", "shell", command="kill -9 $$")
        self.fails("'command' must be a command line", "shell", command=" ")
        self.assertEqual(self.call("shell", command="cat; pwd")[1], os.path.realpath(self.workspace) + "\n")
        self.works("gr\ufffdn", "shell", command=r"printf 'gr\374n'")

    def test_shell_is_bounded(self):
        text = self.works("bytes left out", "shell", command="seq 1 1000000")
        self.assertLess(len(text), 60_000)
        self.assertTrue(text.startswith("1\n2\n") and text.endswith("1000000\n"))
        began = time.monotonic()
        self.fails("[timed out after 1 s and was killed. Its changes", "shell", command="echo begun; sleep 1000", timeout_seconds=1)
        self.works("started", "shell", command="sleep 1000 & echo started")
        ok, text = self.call("shell", env={"CINCH_TOOL_TIMEOUT_MS": "2000"}, command="echo begun; sleep 1000")
        self.assertFalse(ok)
        self.assertTrue(text.startswith("begun\n[timed out after 1 s"), text)
        self.assertLess(time.monotonic() - began, 300)

    def test_arguments_that_are_none(self):
        done = subprocess.run([TOOLS, "read"], input=b"{", capture_output=True, cwd=self.workspace)
        self.assertFalse(json.loads(done.stdout)["success"])
        self.assertEqual(subprocess.run([TOOLS], input=b"{}").returncode, 64)
        self.assertEqual(subprocess.run([TOOLS, "remove"], input=b"{}").returncode, 64)


def step(turn, tool, **args):
    return {"when": {"turn": turn}, "call": {"tool": tool, "args": args}}


class Case(harness.Case):
    def script(self, *steps, last="Done."):
        steps = [*steps, {"when": {"turn": len(steps)}, "say": last}]
        return self.write("script.json", json.dumps({"steps": steps}))

    def results(self, r):
        return [e["detail"] for e in r.lines("transcript.jsonl") if e.get("entry_type") == "tool_result"]


class Runs(Case):
    def test_it_is_the_default_and_fixes_a_repository(self):
        self.write("ws/calc.sh", "echo $(($1 - $2))\n")
        self.write("ws/test.sh", "test $(sh calc.sh 2 3) = 5\n")
        script = self.script(step(0, "shell", command="touch junk; sh test.sh"), step(1, "read", path="calc.sh"),
                             step(2, "edit", path="calc.sh", old_text="-", new_text="+"),
                             step(3, "shell", command="test ! -e junk && sh test.sh && echo passed"), last="It was a minus sign.")
        r = self.run_cinch("--script", script, "Fix the failing test")
        self.assertEqual((r.code, r.reason), (0, "success"), r.stderr)
        self.assertEqual(r.json("task.json")["agent"]["adapter"], "basic")
        first, _, _, last = self.results(r)
        self.assertIn("[exit status 1. Its changes", first["error"])
        self.assertIn("passed", last["output"])  # and junk of the failed call is gone
        self.assertIn(b"+echo $(($1 + $2))", r.bytes("diff.patch"))
        self.assertNotIn(b"junk", r.bytes("diff.patch"))
        invoked = [e["context"] for e in r.lines("events.jsonl") if e["event"] == "ToolInvoked"]
        self.assertEqual([(c["name"], c["success"]) for c in invoked],
                         [("shell", False), ("read", True), ("edit", True), ("shell", True)])

    def test_the_sandbox_holds_its_tools(self):
        outside = self.write("outside/secret.txt", "PRECIOUS\n")
        script = self.script(step(0, "read", path=outside), step(1, "write", path=os.path.dirname(outside) + "/planted", content="x"),
                             step(2, "shell", command=f"cat {outside}; env"))
        r = self.run_cinch("--script", script, "--secret", "CINCH_TEST_KEY", "Go",
                           env={"CINCH_TEST_KEY": "a-secret-of-the-test", "ANTHROPIC_API_KEY": "another-secret-of-it"})
        self.assertEqual(r.code, 0, r.stderr)
        self.assertNotIn("PRECIOUS", json.dumps(self.results(r)))
        self.assertNotIn("another-secret-of-it", json.dumps(self.results(r)))
        self.assertEqual(os.listdir(os.path.dirname(outside)), ["secret.txt"])

    def test_policies_and_tools_of_the_task(self):
        task = self.write("task.yaml", json.dumps({
            "prompt": "Go", "gateway": {"script": self.script(step(0, "shell", command="echo x"), step(1, "list", path="."))},
            "tools": [{"name": "list", "description": "Another one.", "command": ["echo", "MINE"],
                       "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}],
            "policies": [{"type": "deny", "tools": ["shell"], "reason": "not here"}]}))
        r = self.run_cinch(task)
        self.assertEqual(r.code, 0, r.stderr)
        denied, mine = self.results(r)
        self.assertIn("not here", denied["error"])
        self.assertEqual(mine["output"], "MINE")

    def test_read_only(self):
        r = self.run_cinch("--sandbox", "read-only", "--script",
                           self.script(step(0, "write", path="x", content="x"), step(1, "shell", command="echo x > y; ls")), "Look")
        self.assertEqual(r.code, 0, r.stderr)
        self.assertIn("the sandbox or the permissions do not allow it", self.results(r)[0]["error"])
        self.assertEqual(r.bytes("diff.patch"), b"")

    def test_a_tier_takes_the_tools_away(self):
        with Provider(Say("Hello.")) as p:
            r = self.run_cinch("-m", "x", "--upstream", p.url + "/v1", "--set", "eval.tools_enabled=false", "Go")
        self.assertEqual(r.code, 0, r.stderr)
        self.assertNotIn("tools", p.requests[0].body)


class Providers(Case):
    def test_model_and_server(self):
        """Without an upstream the model decides; a server that is not known gets Chat Completions."""
        for model, key in (("claude-x", "ANTHROPIC_API_KEY"), ("gpt-x", "OPENAI_API_KEY"), ("gemini-x", "GEMINI_API_KEY"),
                           ("vendor/x", "OPENROUTER_API_KEY")):
            r = self.run_cinch("-m", model, "Go", env={k: "" for k in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")})
            self.assertEqual((r.code, r.reason), (77, "auth"), r.stderr)
            self.assertIn(f"export {key}=", json.dumps(r.manifest, ensure_ascii=False))
        for words, options in (("no model: name one with --model", []), ("no provider is known for model 'llama'", ["-m", "llama"])):
            r = self.run_cinch(*options, "Go")
            self.assertEqual(r.code, 64)
            self.assertIn(words.encode(), r.stdout + r.stderr)

    def test_local_server(self):
        with Provider(Say("Hello.")) as p:
            r = self.run_cinch("-m", "gpt-oss", "--upstream", p.url + "/v1", "Say hello")
        self.assertEqual(r.code, 0, r.stderr)
        self.assertEqual(p.requests[0].path, "/v1/chat/completions")
        self.assertEqual([t["function"]["name"] for t in p.requests[0].body["tools"]], ["shell", "read", "write", "edit", "list", "search"])
        self.assertIn("careful software engineer", json.dumps(p.requests[0].body["messages"][0]))


class FirstContact(Case):
    def test_init_writes_a_valid_task(self):
        for name, command in ((None, None), ("Makefile", ["make", "test"]), ("package.json", ["npm", "test"])):
            place = self.make_dir(f"repo-{name}")
            if name is not None:
                self.write(f"repo-{name}/{name}", "")
            r = self.cinch("init", cwd=place)
            self.assertEqual(r.code, 0, r.stderr)
            self.assertIn(b"wrote task.yaml", r.stdout)
            r = self.cinch("config", "task.yaml", "--format", "json", cwd=place)
            self.assertEqual(r.code, 0, r.stderr)
            text = open(os.path.join(place, "task.yaml"), encoding="utf-8").read()
            self.assertIn(f"\ncompletion: {{command: [{', '.join(command)}]}}" if command else "\n# completion:", text)
            self.assertEqual(self.cinch("init", cwd=place).code, 73)

    def test_adapters_name_the_command_that_installs_them(self):
        r = self.cinch("adapters", "--format", "json", env={"PATH": "/nonexistent"})
        listed = {a["name"]: a for a in json.loads(r.stdout)["adapters"]}
        self.assertEqual(listed["claude-code"]["install"], "npm install -g @anthropic-ai/claude-code")
        self.assertIn("npm install -g @openai/codex", listed["codex"]["why_not"])
        self.assertTrue(listed["basic"]["available"])


class Context(Case):
    def test_old_results_are_shortened_and_reported(self):
        self.write("ws/big.txt", "".join(f"{i} {'x' * 60}\n" for i in range(600)))
        steps = [step(i, "read", path=os.path.join(self.workspace, "big.txt"), offset=1 + i) for i in range(12)]
        r = self.run_cinch("--script", self.script(*steps), "--set", "agent.context=60000", "Read it often")
        self.assertEqual(r.code, 0, r.stderr)
        trims = [e["context"] for e in r.lines("events.jsonl") if e["event"] == "prompt.context_trimmed"]
        self.assertTrue(trims)
        for t in trims:
            self.assertGreater(t["results"], 0)
            self.assertLess(t["bytes_after"], t["bytes_before"])
            self.assertLess(t["bytes_after"], 60000 * 8)
        plain = self.run_cinch("--script", self.script(*steps), "--set", "agent.context=1000000", "Read it often")
        self.assertFalse([e for e in plain.lines("events.jsonl") if e["event"] == "prompt.context_trimmed"])


if __name__ == "__main__":
    harness.main()
