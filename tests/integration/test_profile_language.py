#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Rules of profiles that need a program to show them: the node that an agent runs on, and `agent.acp`, which says of an
agent without a profile what a profile would say."""

import json
import os

import harness

AGENT = r'''#!/usr/bin/python3
import json, sys
method = None
for line in sys.stdin:
    m = json.loads(line)
    result = {}
    if m.get("method") == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"http": True}},
                  "authMethods": [{"id": "api-key", "name": "API key"}, {"id": "browser", "name": "Browser"}]}
    elif m.get("method") == "authenticate":
        method = m["params"]["methodId"]
    elif m.get("method") == "session/new":
        if method is None:
            print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32000, "message": "Authentication required"}}), flush=True)
            continue
        servers = ["stdio" if "command" in s else s.get("type") for s in m["params"]["mcpServers"]]
        result = {"sessionId": "s"}
    elif m.get("method") == "session/prompt":
        text = json.dumps([method, servers])
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}}), flush=True)
        result = {"stopReason": "end_turn"}
    if "id" in m and "method" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
'''

TOOL = """
tools: [{name: note, description: Notes., input_schema: {type: object, properties: {}}, command: [sh, -c, echo noted]}]
"""


class Node(harness.Case):
    def setUp(self):
        super().setUp()
        self.folders = {}
        for name, version in (("old", "v18.20.1"), ("new", "v24.1.0")):
            self.folders[name] = os.path.dirname(self.write(f"{name}/node", f"#!/bin/sh\necho {version}\n", 0o755))
        self.write("bin/agent", "#!/bin/sh\nnode --version\n", 0o755)

    def agent(self, node, *folders):
        self.write("profiles/agent.yaml", json.dumps({"name": "agent", "binary": ["agent"], "argv": ["{binary}"], "node": node}))
        path = ":".join([self.folders[f] for f in folders] + [self.path("bin"), self.env["PATH"]])
        return self.run_cinch("--adapter-dir", self.path("profiles"), "-a", "agent", "--sandbox", "off", "do it", env={"PATH": path})

    def test_the_first_that_is_new_enough(self):
        for node, folders, used in (("22.19", ("old", "new"), "v24.1.0"), ("18", ("old", "new"), "v18.20.1"),
                                    ("24.1.0", ("new", "old"), "v24.1.0")):
            with self.subTest(node):
                r = self.agent(node, *folders)
                self.assertEqual((r.reason, r.result["text"]), ("success", used), r.stderr)

    def test_none_is(self):
        r = self.agent("99", "old", "new")
        self.assertEqual((r.code, r.reason), (69, "unavailable"), r.stderr)
        self.assertIn("needs node 99 or newer; PATH has 18.20.1 (" + self.folders["old"], r.result["error"])
        self.assertIn("24.1.0 (", r.result["error"])
        self.assertEqual(r.events("process.spawned"), [])

    def test_not_a_version(self):
        r = self.agent("newest", "new")
        self.assertIn("'node' must be a version", r.stderr.decode())


class BeforeLogin(harness.Case):
    """Files that an agent reads before it logs in: the profile brings them, and the token of the gateway in them."""

    PROFILE = {"name": "agent", "driver": "acp", "binary": ["agent"], "argv": ["{binary}"], "home": "private",
               "acp": {"auth": "api-key", "model": "none"},
               "gateway": {"format": "chat", "files": {"settings": {"key": "{gateway_token}", "url": "{gateway_url}"}}},
               "files": [{"name": "settings", "path": ".agent/settings.json", "format": "json"}],
               "settings": {"files": {"settings": {"telemetry": False}}}}

    def run_agent(self, **changes):
        needs = AGENT.replace("import json, sys\n", "import json, os, sys\ntry:\n"
                              "    settings = json.load(open(os.path.expanduser('~/.agent/settings.json')))\n"
                              "except OSError as e:\n    sys.exit('first run: no settings')\n")
        needs = needs.replace("json.dumps([method, servers])", "json.dumps([method, settings['telemetry'], settings['url'][:7]])")
        self.write("bin/agent", needs, 0o755)
        self.write("profiles/agent.yaml", json.dumps({**self.PROFILE, **changes}))
        model = self.write("model.yaml", "steps: [{say: x}]\n")
        return self.run_cinch("--adapter-dir", self.path("profiles"), "-a", "agent", "--script", model, "do it",
                              env={"PATH": self.path("bin") + ":" + self.env["PATH"]})

    def test_files(self):
        r = self.run_agent()
        self.assertEqual(json.loads(r.result["text"]), ["api-key", False, "http://"], r.stderr)
        r = self.run_agent(files=[], settings={}, gateway={"format": "chat"})
        self.assertEqual(r.result["outcome"], "failure")
        self.assertIn("ended before it answered 'initialize'; its last output: first run: no settings", r.result["error"])


class Acp(harness.Case):
    def agent(self, *options, task=TOOL):
        program = self.write("agent", AGENT, 0o755)
        path = self.write("task.yaml", "prompt: do it\n" + task)
        return self.run_cinch("-a", "acp", *options, path, "--", program)

    def test_options(self):
        """Without them the agent refuses the session; `mcp_transport` chooses between HTTP and the shim."""
        r = self.agent()
        self.assertEqual(r.result["outcome"], "failure")
        for transport, seen in (("auto", "http"), ("stdio", "stdio")):
            r = self.agent("--set", "agent.acp.auth=api-key", "--set", f"agent.acp.mcp_transport={transport}", task=TOOL +
                           "strict: false\n")
            self.assertEqual(json.loads(r.result["text"]), ["api-key", [seen]], r.stderr)

    def test_in_a_task(self):
        r = self.agent(task="agent: {acp: {auth: browser}}\n")
        self.assertEqual(json.loads(r.result["text"]), ["browser", []], r.stderr)

    def test_mistakes(self):
        r = self.agent("--set", "agent.acp.nothing=1")
        self.assertEqual(r.code, 65)
        self.assertIn("unknown key 'acp.nothing'", r.stderr.decode())
        r = self.run_cinch("-a", "command", "--set", "agent.acp.auth=x", "--", "true")
        self.assertEqual(r.code, 65)
        self.assertIn("adapter 'command' does not use the Agent Client Protocol", r.stderr.decode())


if __name__ == "__main__":
    harness.main()
