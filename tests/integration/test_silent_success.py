#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An agent that ends well and did nothing, or did it out of sight: no model call, tools that never reached the model, an
answer that no rule found, a version that nobody tested. Each is a warning; a failure if the task relies on it. The agent
is a program of a few lines that speaks the Agent Client Protocol and starts MCP servers as the official SDKs do."""

import json
import os
import subprocess

import harness

FILE_TIMEOUT = 300

AGENT = r'''
import json, os, subprocess, sys, time, urllib.request

modes = sys.argv[1].split(",")
server = None


def out(m):
    sys.stdout.write(json.dumps(m) + "\n")
    sys.stdout.flush()


def connect(spec):
    """As the official MCP SDKs: six variables are inherited, the rest is stated."""
    env = {k: os.environ[k] for k in ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER") if k in os.environ}
    env.update({v["name"]: v["value"] for v in spec["env"]})
    p = subprocess.Popen([spec["command"], *spec["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)

    def call(method, **params):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
        p.stdin.flush()
        return json.loads(p.stdout.readline())
    call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
    return call


def ask_model(tools):
    body = {"model": "m", "messages": [{"role": "user", "content": "use shout, please"}]}
    if tools:
        body["tools"] = tools
    r = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
                               {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    return json.load(urllib.request.urlopen(r))["choices"][0]["message"]["content"]


def tool(name, description):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {"type": "object"}}}


def prompt(m):
    text = "fine"
    listed = []
    if server and "never" not in modes:
        listed = [t["name"] for t in server("tools/list")["result"]["tools"]]
    if "direct" in modes:
        text = ask_model([tool("cinch_" + name, "x") for name in listed])
    if "deferred" in modes:
        text = ask_model([tool("run_code", "A program may call: " + ", ".join(listed))])
    if "hidden" in modes:
        text = ask_model([tool("own", "x")])
    if "called" in modes:
        server("tools/call", name="shout", arguments={})
    out({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
    out({"jsonrpc": "2.0", "id": m["id"], "result": {"stopReason": "end_turn"}})


for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == modes[0]:
        if "gone" in modes:
            sys.stderr.write("this agent is no longer maintained\n\033[31mset AGENT_KEY\033[0m\n")
            sys.exit(1)
        time.sleep(1000)
    if m["method"] == "initialize":
        out({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": 1, "agentCapabilities": {},
                                                       "agentInfo": {"name": "t", "version": "2.5.0"}}})
    elif m["method"] == "session/new":
        servers = m["params"]["mcpServers"]
        server = connect(servers[0]) if servers else None
        out({"jsonrpc": "2.0", "id": m["id"], "result": {"sessionId": "s"}})
    elif m["method"] == "session/prompt":
        prompt(m)
'''

PROFILE = """
name: mine
driver: acp
binary: [%s]
argv: ["{binary}", "%s"]
gateway:
  format: chat
  env: {OPENAI_BASE_URL: "{gateway_url}/v1", OPENAI_API_KEY: "{gateway_token}"}
mcp: {prefix: cinch_}
acp: {model: none, initialize_ms: 2000, session_ms: 2000}
%s
"""

PRINTS = r'''
import json, os, sys, urllib.request
body = {"model": "m", "messages": [{"role": "user", "content": "do it"}]}
r = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
                           {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
text = json.load(urllib.request.urlopen(r))["choices"][0]["message"]["content"]
print(json.dumps({"text": text, "in": 100, "out": int(sys.argv[1])}))
'''

PRINTED = """
output: {format: json, rules: [{text: /text, usage: {input: /in, output: /out}}]}
capabilities: [text_response%s]
gateway:
  format: chat
  env: {OPENAI_BASE_URL: "{gateway_url}/v1", OPENAI_API_KEY: "{gateway_token}"}
"""

TOOL = """
tools:
  - {name: shout, description: Shouts., input_schema: {type: object}, command: [/bin/echo, ho]}
"""


class SilentSuccess(harness.Case):
    def setUp(self):
        super().setUp()
        self.script = self.write("model.yaml", "steps: [{say: fine}]\n")

    def talk(self, modes, task="", more="", options=()):
        program = self.write("bin/agent", "#!/usr/bin/python3\n" + AGENT, 0o755)
        self.write("profiles/mine.yaml", PROFILE % (program, modes, more))
        self.write("task.yaml", "version: 1\nprompt: do it\n" + task)
        return self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", "mine", "--script", self.script,
                              "--timeout", "60s", *options, self.path("task.yaml"))

    def offered(self, r):
        return [{t["name"]: t.get("offered") for t in e["context"]["tools"]} for e in r.events("RenderedTools")]

    def assert_reason(self, r, reason):
        self.assertEqual(r.reason, reason, r.stderr + r.bytes("stderr.log"))

    def warnings(self, r):
        return " ".join(r.manifest.get("warnings") or [])

    def test_tools_reach_a_client_that_inherits_six_variables(self):
        r = self.talk("direct,called", TOOL)
        self.assert_reason(r, "success")
        self.assertEqual([e["context"]["name"] for e in r.events("ToolInvoked")], ["shout"])
        self.assertEqual(self.offered(r), [{"shout": "direct"}])
        names = [e["event"] for e in r.events()]
        self.assertLess(names.index("RenderedTools"), names.index("ToolInvoked"))
        self.assertLess(names.index("PromptRendered"), names.index("RenderedTools"))

    def test_deferred_tools(self):
        r = self.talk("deferred", TOOL)
        self.assert_reason(r, "success")
        self.assertEqual(self.offered(r), [{"shout": "deferred"}])

    def test_tools_that_are_not_offered(self):
        """Although the prompt names the tool, which the request therefore contains."""
        r = self.talk("hidden", TOOL)
        self.assert_reason(r, "failure")
        self.assertIn("not offered to the model (shout): the agent listed them", r.manifest["error"])
        self.assertEqual(self.offered(r), [{"shout": "hidden"}])
        r = self.talk("hidden,never", TOOL)
        self.assertIn("never asked the tool server for its list", r.manifest["error"])

    def test_a_script_that_calls_a_tool_which_is_not_offered(self):
        self.write("model.yaml", "steps: [{call: {tool: shout}}]\n")
        r = self.talk("hidden", TOOL)
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("tool not offered: the agent's request does not contain the tool 'shout'", r.manifest["error"])
        self.write("model.yaml", "steps: [{call: {tool: whisper}}]\n")
        self.assert_reason(self.talk("hidden", TOOL), "bad_task")  # that one is the script's

    def test_no_model_call(self):
        r = self.talk("idle")
        self.assert_reason(r, "success")
        self.assertIn("made no model call", self.warnings(r))
        for task in (TOOL, "policies: [{type: deny, tools: [x]}]\n", "limits: {calls: 5}\n", "eval: {strict: true}\n",
                     "completion: {files: [a.txt]}\n"):
            self.write("ws/a.txt", "a\n")
            r = self.talk("idle", task)
            self.assert_reason(r, "failure")
            self.assertIn("made no model call", r.manifest["error"], task)
        r = self.talk("direct")
        self.assert_reason(r, "success")
        self.assertNotIn("model call", self.warnings(r))

    def test_deadlines_before_the_first_turn(self):
        for method in ("initialize", "session/new"):
            r = self.talk(method)
            self.assert_reason(r, "failure")
            self.assertIn(f"the agent did not answer '{method}' within 2 s", r.manifest["error"])

    def test_why_an_agent_ended(self):
        for method in ("initialize", "session/new", "session/prompt"):
            r = self.talk(method + ",gone")
            self.assert_reason(r, "failure")
            self.assertIn(f"the agent ended before it answered '{method}'; its last output: this agent is no longer "
                          "maintained | set AGENT_KEY", r.manifest["error"])

    def test_a_version_that_was_not_tested(self):
        """By the package of the program, else as the agent says."""
        r = self.talk("direct", more="tested: {since: 1.0.0, until: 2.0.0}\n")
        self.assertIn("mine 2.5.0 has not been tested with this adapter (tested: 1.0.0 to 2.0.0); to test it: "
                      "cinch ack -a mine --tier 1 --tier 2", self.warnings(r))
        r = self.talk("direct", more="tested: {since: 1.0.0, until: 2.5.0}\n")
        self.assertNotIn("tested", self.warnings(r))
        self.write("bin/package.json", json.dumps({"name": "mine", "version": "3.0.0", "bin": "agent"}))
        r = self.talk("direct", more="tested: {since: 1.0.0, until: 2.0.0}\n")
        self.assertIn("mine 3.0.0 has not been tested", self.warnings(r))
        self.assertEqual(self.warnings(r).count("has not been tested"), 1)
        done = self.cinch("adapters", "--adapter-dir", self.path("profiles"))
        self.assertIn("warning: mine 3.0.0 has not been tested", done.stdout)
        done = self.cinch("doctor", "--adapter-dir", self.path("profiles"))
        self.assertIn("mine 3.0.0 was not tested (tested: 1.0.0 to 2.0.0)", " ".join(done.stdout.split()))

    def test_parts_of_a_profile_for_a_version(self):
        parts = 'env: {MODE: new}\nversions: [{until: "2.9", env: {MODE: old}}]\n'
        for version, mode in (("2.0.0", "old"), ("3.0.0", "new")):
            self.write("bin/package.json", json.dumps({"name": "mine", "version": version, "bin": "agent"}))
            r = self.talk("direct", more=parts)
            self.assert_reason(r, "success")
            names = r.json("evidence", "environment.json")
            self.assertIn("MODE", json.dumps(names))
            self.assertEqual(r.manifest["metadata"]["engine"]["version"], "2.5.0")  # what it says counts
            self.assertEqual(self.environment_of(parts), mode)

    def environment_of(self, parts):
        program = self.write("bin/agent", '#!/bin/sh\necho "$MODE"\n', 0o755)
        self.write("profiles/mine.yaml", f"name: mine\nbinary: [{program}]\nargv: ['{{binary}}']\n{parts}")
        r = self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", "mine", "do it")
        return r.result["text"]

    def test_an_answer_that_no_rule_finds(self):
        program = self.write("bin/print", "#!/bin/sh\necho '[{\"content\": \"here\"}]'\n", 0o755)

        def answer(rule, task=""):
            self.write("profiles/mine.yaml", f"name: mine\nbinary: [{program}]\nargv: ['{{binary}}']\n"
                       f"output: {{format: json, rules: [{{text: '{rule}'}}]}}\n")
            self.write("task.yaml", "version: 1\nprompt: do it\n" + task)
            return self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", "mine", self.path("task.yaml"))
        r = answer("/[last]/content")
        self.assertEqual((r.reason, r.result["text"]), ("success", "here"))
        self.assertNotIn("final answer", self.warnings(r))
        r = answer("/result")
        self.assert_reason(r, "success")
        self.assertIn("no final answer where the profile looks for it", self.warnings(r))
        self.assert_reason(answer("/result", "eval: {strict: true}\n"), "failure")

    def test_more_usage_than_the_wire_saw(self):
        """The agent may have reached a model by another way."""
        program = self.write("bin/print", "#!/usr/bin/python3\n" + PRINTS, 0o755)
        self.write("model.yaml", "steps: [{say: fine, usage: {input: 100, output: 50}}]\n")

        def report(output, task="", truth=", usage_truth"):
            self.write("profiles/mine.yaml", f"name: mine\nbinary: [{program}]\nargv: ['{{binary}}', '{output}']\n" + PRINTED % truth)
            self.write("task.yaml", "version: 1\nprompt: do it\n" + task)
            return self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", "mine", "--script", self.script,
                                  self.path("task.yaml"))
        for output in (49, 50):
            r = report(output, "strict: true\n")
            self.assert_reason(r, "success")
            self.assertNotIn("usage", self.warnings(r))
        r = report(51)
        self.assert_reason(r, "success")
        self.assertIn("reports more usage than the gateway saw (51 output tokens, 50 on the wire)", self.warnings(r))
        for task in ("strict: true\n", "limits: {calls: 5}\n"):
            r = report(51, task)
            self.assert_reason(r, "failure")
            self.assertIn("reports more usage", r.manifest["error"])
        self.assert_reason(report(51, "strict: true\n", truth=""), "success")  # it does not claim to be exact

    def test_the_exit_code_of_a_command_decides(self):
        self.assert_reason(self.run_cinch("--script", self.script, "do it", "--", "true"), "success")

    def cinch(self, *words):
        return subprocess.run([harness.CINCH, *words], env={**self.env, "PATH": self.path("bin") + ":" + os.environ["PATH"]},
                              capture_output=True, text=True, cwd=self.dir, stdin=subprocess.DEVNULL, timeout=60)


if __name__ == "__main__":
    harness.main()
