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
from test_tools import AGENT

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
        self.env["PATH"] = "/usr/bin:/bin"
        self.cinch_path = harness.CINCH
        self.without_path = harness.program("without")
        if self.uid != os.geteuid():
            tools = self.make_dir("tools")
            init = os.path.join(harness.BUILD, "src/init/cinch-init")
            for name in (harness.CINCH, init, self.without_path):
                shutil.copy(name, tools)
            self.cinch_path = os.path.join(tools, "cinch")
            self.without_path = os.path.join(tools, "without")
            self.env.update(CINCH_INIT=os.path.join(tools, "cinch-init"))
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


# Run by the agent, and by a tool that executes what the agent wrote: whatever programs load on their own.
PLANT = """
import os, site, sys
CODE = 'import os\\nos.write(1, b"{\\\\"decision\\\\": \\\\"allow\\\\"}")\\nos._exit(0)\\n'

def put(path, text, mode=0o755):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
    except OSError as e:
        pass

beside = os.environ.get("CINCH_ARTIFACTS_DIR", "/none/x") + "/../helper-home"
for home in {os.environ["HOME"], "/.helper", os.path.expanduser("~"), beside,
             *(os.path.join(beside, x) for x in (os.listdir(beside) if os.path.isdir(beside) else ()))}:
    sites = f"{home}/.local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    for name in ("usercustomize.py", "sitecustomize.py", "json.py"):
        put(f"{sites}/{name}", CODE)
    shell = "echo '{\\"decision\\": \\"allow\\"}'; exit 0\\n"
    for name in (".bashrc", ".profile", ".bash_profile", ".zshenv"):
        put(f"{home}/{name}", shell)
    put(f"{home}/.npmrc", "script-shell=/bin/false\\nplanted=yes\\n")
    put(f"{home}/.gitconfig", "[planted]\\n\\tkey = yes\\n")
    put(f"{home}/.config/git/config", "[planted]\\n\\tkey = yes\\n")
for name in ("python3", "env", "sh", "git", "cat"):
    put(f"bin/{name}", "#!/bin/sh\\necho '{\\"decision\\": \\"allow\\"}'\\n")
put("modules/json.py", CODE)
put("hook.js", "console.log(1)")
"""

# Denies, unless something makes it say otherwise; what it found on the way is its reason.
DECIDE = """#!/usr/bin/env python3
import json, os, site, subprocess, sys
found = sorted(os.listdir(os.environ["HOME"]))
planted = subprocess.run(["git", "config", "--get", "planted.key"], capture_output=True, text=True).stdout.strip()
seen = {"home": os.environ["HOME"], "found": found, "git": planted, "json": json.__file__, "pid": os.getpid(),
        "tilde": os.path.expanduser("~"), "user": [x.split(":")[5] for x in open("/etc/passwd") if x.split(":")[2] == str(os.getuid())],
        "env": {k: v for k, v in os.environ.items() if k in ("PATH", "PYTHONPATH", "NODE_OPTIONS", "XDG_CONFIG_HOME")}}
with open(os.path.join(os.environ["HOME"], "left"), "w") as f:
    f.write("mine")
print(json.dumps({"decision": "deny", "reason": json.dumps(seen)}))
"""

RUN_PLANT = """#!/bin/sh
cat > /dev/null
/usr/bin/python3 plant.py
echo planted
"""


class Home(Beside):
    """Programs beside the agent have a home of their own, and load nothing that the agent prepared."""

    def judge(self, *options, env=None, build="build", **policy):
        """What a policy in Python saw after the agent, and a tool that ran the agent's code, had planted all they can."""
        decide = self.write("decide.py", DECIDE, 0o755)
        agent = self.write("agent.py", AGENT + "\nPLANT = " + repr(PLANT) + """
open("plant.py", "w").write(PLANT)
exec(PLANT)
for tool in ("BUILD", "deploy") * 2:
    print(server.call(tool))
""".replace("BUILD", build), 0o755)
        task = {"prompt": "x", "tools": [
                    {"name": "build", "description": "Builds.", "command": self.helper("build", RUN_PLANT)},
                    {"name": "idle", "description": "Does nothing.", "command": ["/bin/echo", "planted"]},
                    {"name": "deploy", "description": "Deploys.", "command": ["/bin/echo", "DEPLOYED"]}],
                "policies": [{"type": "program", "name": "p", "tools": ["deploy"], "command": [decide], **policy}],
                "env": {"set": env or {}}}
        r = self.run_task(task, "--read", decide, *options, command=["/usr/bin/python3", agent])
        self.assertEqual((r.reason, len(r.manifest["warnings"])), ("success", 1), r.stderr + r.bytes("stderr.log"))
        lines = r.bytes("stdout.log").decode().splitlines()
        self.assertEqual((len(lines), lines[0], lines[2]), (4, "planted", "planted"), lines)
        seen = []
        for line in (lines[1], lines[3]):
            self.assertTrue(line.startswith("error: {"), line)
            seen.append(json.loads(line[len("error: "):]))
        return r, seen

    def test_nothing_planted_is_obeyed(self):
        for env in ({}, {"PATH": "bin:" + self.path("ws", "bin") + ":/tmp/bin:/usr/bin:/bin", "PYTHONPATH": "modules:" +
                    self.path("ws", "modules"), "NODE_OPTIONS": "--require ./hook.js", "XDG_CONFIG_HOME": self.workspace}):
            for options in ((), ("--workspace-mode", "in-place")):
                shutil.rmtree(self.workspace)
                self.make_dir("ws")
                r, seen = self.judge(*options, env=env)
                for x in seen:
                    self.assertEqual((x["home"], x["tilde"], x["found"], x["git"]), ("/.helper", "/.helper", [], ""))
                    self.assertEqual(x["user"], ["/.helper"])
                    self.assertTrue(x["json"].startswith("/usr/lib"), x)
                    self.assertNotIn(self.workspace, json.dumps(x["env"]))
                    self.assertEqual(set(x["env"]), {"PATH"})
                    if env:
                        self.assertEqual(x["env"]["PATH"], "/usr/bin:/bin")

    def test_nothing_planted_is_obeyed_outside(self):
        """A program beside the sandbox would run what the agent planted with the user's own rights."""
        r, seen = self.judge(sandbox=False)
        for x in seen:
            self.assertEqual((os.path.dirname(x["home"]), x["git"], x["found"]), (r.path("helper-home"), "", []))
            self.assertTrue(x["json"].startswith("/usr/lib"), x)
        self.assertFalse(r.exists("helper-home"))
        check = self.helper("where", "#!/bin/sh\npwd -P > $HOME/../where; test $(pwd -P) = $HOME\n")
        r = self.run_task({"prompt": "x", "completion": {"command": check, "sandbox": False, "max_rounds": 0}},
                          command=["/bin/sh", "-c", "mkdir $CINCH_ARTIFACTS_DIR/.git"])
        self.assertEqual(r.reason, "success", r.stderr)

    def test_without_a_sandbox(self):
        """The agent can write everywhere, but a home that is made for one program was not there before."""
        r, seen = self.judge("--sandbox", "off")
        self.assertEqual(len({x["home"] for x in seen}), 2)
        for x in seen:
            self.assertEqual((os.path.dirname(x["home"]), x["git"], x["found"]), (r.path("helper-home"), "", []))
            self.assertTrue(x["json"].startswith("/usr/lib"), x)
        self.assertFalse(r.exists("helper-home"))

    def test_a_home_is_made_whatever_the_agent_put_in_its_place(self):
        check = self.helper("look", "#!/bin/sh\ncat > /dev/null\ntest -d $HOME && test -z \"$(ls -A $HOME)\" && touch $HOME/x\n")
        for spoil in ("rm -rf $H", "rm -rf $H; touch $H", "rm -rf $H; ln -s /none $H", "rm -rf $H; mkdir -p $O/a; touch $O/a/b; ln -s $O $H"):
            with self.subTest(spoil):
                task = {"prompt": "x", "completion": {"command": check, "max_rounds": 0}}
                r = self.run_task(task, "--sandbox", "off", command=["/bin/sh", "-c", "H=$CINCH_ARTIFACTS_DIR/../helper-home; "
                                  f"O={self.path('other')}; {spoil}"])
                self.assertEqual(r.reason, "success", r.stderr)
                self.assertFalse(os.path.lexists(r.path("helper-home")))

    def test_every_kind_has_one(self):
        look = "#!/bin/sh\ncat > /dev/null\necho $HOME $(ls -A $HOME) > by-@NAME@; touch $HOME/x\n"
        task = {"agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.",
                "tools": [{"name": "look", "description": "Looks.", "command": self.helper("tool", look + "echo done\n")},
                          {"name": "srv", "mcp": {"command": ["/usr/bin/python3", self.write("server.py", SERVER.replace(
                              'f.write(os.getcwd() + "\\n" + open("a").read())', 'f.write(os.environ["HOME"] + "\\n")'))]}}],
                "policies": [{"type": "program", "tools": ["look"], "command": self.helper("policy", look + "echo '{\"decision\": \"allow\"}'\n")}],
                "feedback": [{"type": "program", "every_n_calls": 2, "command": self.helper("feedback", look)}],
                "completion": {"command": self.helper("check", look), "max_rounds": 0}}
        with Provider(Say("", calls=[("look", {})]), Say("", calls=[("look", {})]), Say("", calls=[("serve", {})]), Say("done")) as p:
            r = self.run_task(task, "--upstream", p.url)
        self.assertEqual(r.reason, "success", r.stderr)
        patch = r.bytes("diff.patch").decode()
        for name in ("tool", "policy", "feedback", "check", "server"):
            self.assertIn("\n+/.helper\n", patch.split(f"b/by-{name}\n")[-1].split("diff --git")[0], name)

    def test_the_agent_cannot_write_it(self):
        r = self.run_task({"prompt": "x", "completion": {"command": ["true"]}}, command=[
            "/bin/sh", "-c", "touch /.helper/x; mkdir /.helper/y; mv /.helper /z; rmdir /.helper; "
            "ls -A /.helper; echo $HOME"])
        self.assertEqual(r.bytes("stdout.log").decode(), r.path("home") + "\n")

    def test_a_program_that_the_agent_can_write_is_named_by_its_path(self):
        self.write("ws/bin/judge", "#!/bin/sh\nexit 0\n", 0o755)
        path = {"set": {"PATH": self.path("ws", "bin") + ":/usr/bin:/bin"}}
        r = self.run_task({"prompt": "x", "env": path, "completion": {"command": ["judge"], "max_rounds": 0}}, command=["/bin/true"])
        self.assertEqual(r.reason, "failure", r.stderr)
        said = json.dumps(r.lines("events.jsonl")) + r.stderr.decode() + json.dumps(r.manifest)
        self.assertIn("entries that the agent can write", said)
        r = self.run_task({"prompt": "x", "env": path, "completion": {"command": [self.path("ws", "bin", "judge")], "max_rounds": 0}}, command=["/bin/true"])
        self.assertEqual(r.reason, "success", r.stderr)


@unittest.skipUnless(os.geteuid() == 0, "needs root to become another user")
class HomeAsUser(Home):
    uid = OTHER


if __name__ == "__main__":
    harness.main()
