#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs beside the agent (policies, feedback, completion checks, tools, tool servers): they work on the agent's
view of the workspace, whatever the sandbox and the workspace mode."""

import json
import os
import shutil
import subprocess
import unittest

import harness
from provider import Provider, Say
from test_sandbox import OTHER, run_as

# Each kind of program leaves a file with its working directory and what it saw of the file `a`.
LOOK = """#!/bin/sh
cat > /dev/null
{ pwd -P; cat a 2>/dev/null || echo gone; } > by-@NAME@
"""

TOOL = LOOK + "echo done\n"
POLICY = LOOK + "echo '{\"decision\": \"allow\"}'\n"
FEEDBACK = LOOK + "echo noted\n"
CHECK = LOOK


class Beside(harness.Case):
    uid = os.geteuid()

    def setUp(self):
        super().setUp()
        self.cinch_path = harness.CINCH
        self.without_path = harness.program("without")
        if self.uid != os.geteuid():
            tools = self.make_dir("tools")
            init = os.path.join(harness.BUILD, "src/init/cinch-init")
            for name in (harness.CINCH, init, self.without_path):
                shutil.copy(name, tools)
            self.cinch_path = os.path.join(tools, "cinch")
            self.without_path = os.path.join(tools, "without")
            self.env.update(CINCH_INIT=os.path.join(tools, "cinch-init"), PATH="/usr/bin:/bin")
            os.chmod(self.dir, 0o755)

    def helper(self, name, text):
        return [self.write(f"{name}.sh", text.replace("@NAME@", name), 0o755)]

    def give_all(self):
        """Every file of the test belongs to the user of the class."""
        if self.uid != os.geteuid():
            for base, _, files in os.walk(self.dir):
                for name in (base, *(os.path.join(base, f) for f in files)):
                    os.chown(name, self.uid, self.uid, follow_symlinks=False)

    def run_task(self, task, *options, command=(), without=None):
        """cinch run as the user of the class."""
        path = self.write("task.yaml", json.dumps({"limits": {"timeout": 60}, **task}))
        self.give_all()
        output = self.new_output()
        argv = [*([self.without_path, without] if without else []), self.cinch_path, "run", "--env", "CINCH_TEST_MARK",
                "--workspace", self.workspace, "--output", output, *options, path, *(["--", *command] if command else [])]
        done = run_as(self.uid, argv, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True,
                      timeout=harness.PATIENCE)
        r = harness.Result(done.returncode, done.stdout, done.stderr, output)
        self.assert_valid(r)
        return r

    def content(self, *names):
        with open(os.path.join(self.workspace, *names), encoding="utf-8") as f:
            return f.read()


class View(Beside):
    """What they see and where they write."""

    # options, and whether the agent works on the user's own tree
    PLACES = {
        "overlay": ((), False),
        "copy": (("--workspace-mode", "copy"), False),
        "snapshot": (("--workspace-mode", "snapshot"), False),
        "clone": (("--workspace-mode", "clone"), False),
        "off, clone": (("--sandbox", "off", "--workspace-mode", "clone"), False),
        "off": (("--sandbox", "off"), False),
        "off, copy": (("--sandbox", "off", "--workspace-mode", "copy"), False),
        "in place": (("--workspace-mode", "in-place"), True),
        "off, in place": (("--sandbox", "off", "--workspace-mode", "in-place"), True),
    }

    def make_repository(self):
        if not os.path.exists(self.path("ws", ".git")):
            self.give_all()
            for args in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
                run_as(self.uid, ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", self.workspace, *args],
                       check=True, env=self.env)

    def check(self, options, own_tree, without=None):
        """The agent's edit is what every program sees, and what they write is in the patch and nowhere else."""
        self.write("ws/a", "before\n")
        if "clone" in options:
            self.make_repository()
        server = self.write("server.py", SERVER, 0o755)
        task = {
            "agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.",
            "tools": [{"name": "edit", "description": "Edits.", "command": self.helper("edit", EDIT)},
                      {"name": "look", "description": "Looks.", "command": self.helper("tool", TOOL)},
                      {"name": "srv", "mcp": {"command": ["/usr/bin/python3", server]}}],
            "policies": [{"type": "program", "tools": ["look"], "command": self.helper("policy", POLICY)}],
            "feedback": [{"type": "program", "every_n_calls": 2, "command": self.helper("feedback", FEEDBACK)}],
            "completion": {"all": [{"command": self.helper("check", CHECK)}, {"files": ["made"]}], "max_rounds": 0},
            "workspace": {"keep": "keep"},
        }
        with Provider(Say("", calls=[("edit", {})]), Say("", calls=[("look", {})]), Say("", calls=[("serve", {})]),
                      Say("done")) as p:
            r = self.run_task(task, "--upstream", p.url, *options, without=without)
        self.assertEqual(r.reason, "success", (options, r.stderr))
        patch = r.bytes("diff.patch").decode()
        for name in ("tool", "policy", "feedback", "check", "server"):
            made = os.path.exists(os.path.join(self.workspace, "by-" + name))
            self.assertEqual(made, own_tree, (options, name))
            block = patch.split(f"b/by-{name}\n")[-1].split("diff --git")[0]
            self.assertIn("\n+after\n", block, (options, name))
        self.assertEqual(self.content("a"), "after\n" if own_tree else "before\n")
        if own_tree:
            for name in ("tool", "policy", "feedback", "check", "server", "made"):
                os.unlink(os.path.join(self.workspace, *(["by-" + name] if name != "made" else [name])))

    def test_every_kind_of_program_in_every_place(self):
        for name, (options, own_tree) in self.PLACES.items():
            with self.subTest(name):
                self.check(options, own_tree)

    def test_degraded(self):
        self.check(("--allow-degraded",), False, without="user,mount")

    def test_the_verdict_is_about_the_agents_files(self):
        for option in ((), ("--sandbox", "off"), ("--sandbox", "off", "--workspace-mode", "copy"),
                       ("--allow-degraded", "--workspace-mode", "copy")):
            self.write("ws/a", "a\n")
            for rule in ({"all": [{"command": ["test", "-f", "a"]}]}, {"files": ["a"]},
                         {"files": [os.path.join(self.workspace, "a")]}):
                task = {"prompt": "x", "completion": {**rule, "max_rounds": 0}}
                r = self.run_task(task, *option, command=["rm", "a"])
                self.assertEqual(r.reason, "failure", (option, rule))
                r = self.run_task(task, *option, command=["touch", "a"])
                self.assertEqual(r.reason, "success", (option, rule, r.stderr))
            self.assertEqual(self.content("a"), "a\n")

    def test_paths_of_the_view_are_in_the_workspace(self):
        """read_before_write knows the agent's own paths, also where its view is another directory."""
        self.write("ws/a", "a\n")
        task = {"agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.",
                "tools": [{"name": n, "description": "A tool.", "command": self.helper(n, "#!/bin/sh\ncat\n"),
                           "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
                          for n in ("read_file", "write_file")],
                "policies": [{"type": "read_before_write"}]}
        output = os.path.join(self.dir, "fixed")
        for path, seen in ((os.path.join(output, "work", "tree", "a"), True), (os.path.join(self.workspace, "a"), False)):
            shutil.rmtree(output, ignore_errors=True)
            with Provider(Say("", calls=[("read_file", {"path": "a"})]), Say("", calls=[("write_file", {"path": path})]),
                          Say("done")) as p:
                self.new_output = lambda: output
                r = self.run_task(task, "--upstream", p.url, "--sandbox", "off", "--workspace-mode", "copy")
            calls = [e["context"]["result"]["success"] for e in r.events("ToolInvoked")]
            self.assertEqual(calls, [True, seen], r.stderr)


EDIT = """#!/bin/sh
cat > /dev/null
echo after > a
echo made > made
"""

SERVER = """
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    method, result = m.get("method"), {}
    if "id" not in m:
        continue
    if method == "initialize":
        result = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "serve", "description": "Serves.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        with open("by-server", "w") as f:
            f.write(os.getcwd() + "\\n" + open("a").read())
        result = {"content": [{"type": "text", "text": "served"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class ViewAsUser(View):
    uid = OTHER


if __name__ == "__main__":
    harness.main()
