#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tools of a task, end to end: the adapter api-direct, a scripted model, programs in the sandbox. Each call is a
transaction; what the model is told, what the record says and what is left in the workspace."""

import http.server
import json
import os
import signal
import threading
import time

import harness
from provider import Provider, Say

WRITE = """#!/bin/sh
# Writes what it is told into a file; fails on request, after having written.
args=$(cat)
name=$(printf '%s' "$args" | sed 's/.*"name":"\\([^"]*\\)".*/\\1/')
mkdir -p made && printf 'content of %s\\n' "$name" > "made/$name"
case $args in *fail*) echo "cannot do $name" >&2; exit 3;; esac
echo "wrote $name"
"""

NOTE = """#!/bin/sh
cat > /dev/null
printf '%s' '{"message": "noted", "value": {"n": 1}, "state": [{"op": "append", "slice": "notes", "value": {"n": 1}}]}'
"""

WRITE_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "fail": {"type": "boolean"}},
                "required": ["name"]}


class Page(http.server.ThreadingHTTPServer):
    """A host with one page, on the loopback of the machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.visits += 1
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"page")

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Page.Handler)
        self.visits, self.port = 0, self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Tools(harness.Case):
    def program(self, name, text):
        path = self.write(name, text)
        os.chmod(path, 0o755)
        return path

    def tool(self, name="write", program=WRITE, **more):
        return {"name": name, "description": f"The tool {name}.", "input_schema": WRITE_SCHEMA,
                "command": [self.program(name + ".sh", program)], **more}

    def task(self, steps, tools, **more):
        task = {"agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.", "tools": tools,
                "limits": {"timeout": 60}, **more}
        if steps is not None:
            script = self.write("model.yaml", json.dumps({"side": False, "steps": steps}))
            task["gateway"] = {"script": script}
        return self.write("task.yaml", json.dumps(task))

    def run_task(self, steps, tools, **more):
        return self.run_cinch(self.task(steps, tools, **more))

    def run_agent(self, text, tools, *options, **more):
        agent = self.program("agent.py", AGENT + text)
        task = self.write("task.yaml", json.dumps({"prompt": "Do it.", "tools": tools, "limits": {"timeout": 60}, **more}))
        return self.run_cinch(task, *options, "--", agent, "{prompt_file}")

    def calls(self, r):
        return [e["context"] for e in r.lines("events.jsonl") if e["event"] == "ToolInvoked"]


class Calls(Tools):
    def test_a_call(self):
        r = self.run_task([
            {"when": {"turn": 0, "tool": "write"}, "call": {"tool": "write", "args": {"name": "a.txt"}}},
            {"when": {"turn": 1, "text": "wrote a.txt"}, "say": "done"}], [self.tool()])
        self.assertEqual((r.reason, r.result["text"]), ("success", "done"), r.stderr)
        call, = self.calls(r)
        self.assertEqual((call["name"], call["params"], call["result"]["success"]), ("write", {"name": "a.txt"}, True))
        self.assertIn("wrote a.txt", call["rendered_output"])
        self.assertTrue(call["call_id"])
        self.assertIn(b"+content of a.txt", r.bytes("diff.patch"))
        self.assertFalse(os.path.exists(os.path.join(self.workspace, "made")))

    def test_a_failed_call_leaves_nothing(self):
        r = self.run_task([
            {"when": {"turn": 0}, "call": {"tool": "write", "args": {"name": "a.txt", "fail": True}}},
            {"when": {"turn": 1, "text": "cannot do a.txt"},
             "call": {"tool": "write", "args": {"name": "b.txt"}}},
            {"when": {"turn": 2}, "say": "done"}], [self.tool()])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual([c["result"]["success"] for c in self.calls(r)], [False, True])
        self.assertEqual(r.metrics["ext"]["tool_calls"], {"total": 2, "failed": 1})
        self.assertIn("2 calls, 1 failed", self.cinch("show", r.path()).stdout.decode())
        patch = r.bytes("diff.patch")
        self.assertIn(b"b.txt", patch)
        self.assertNotIn(b"a.txt", patch)

    def test_arguments_that_do_not_fit(self):
        for args in ({}, {"name": 5}, {"name": "x", "more": 1}):
            r = self.run_task([
                {"when": {"turn": 0}, "call": {"tool": "write", "args": args}},
                {"when": {"turn": 1}, "say": "done"}], [self.tool()])
            self.assertEqual(r.reason, "success", r.stderr)
            call, = self.calls(r)
            self.assertEqual((call["result"]["success"], call["failure"]), (False, "invalid"))
            self.assertEqual(r.bytes("diff.patch"), b"")

    def test_a_tool_that_is_not_there(self):
        with Provider(Say(calls=(("nothing", {}),)), Say("done")) as p:
            r = self.run_cinch("--upstream", p.url, self.task(None, [self.tool()]))
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual([c["failure"] for c in self.calls(r)], ["unknown"])
        self.assertIn("nothing", json.dumps(p.requests[1].body["messages"][-1]))

    def test_state(self):
        r = self.run_task([
            {"when": {"turn": 0}, "call": {"tool": "note", "args": {"name": "x"}}},
            {"when": {"turn": 1}, "call": {"tool": "note", "args": {"name": "y"}}},
            {"when": {"turn": 2}, "say": "done"}], [self.tool("note", NOTE)])
        self.assertEqual(r.reason, "success", r.stderr)
        after = json.loads(r.bytes("session/after.jsonl"))
        slices = {s["slice_type"]: s["items"] for s in after["slices"]}
        self.assertEqual(len(slices["notes"]), 2)

    def test_a_tool_beside_the_sandbox(self):
        """It is trusted, but the user's tree is not where it works."""
        r = self.run_task([
            {"when": {"turn": 0}, "call": {"tool": "write", "args": {"name": "a.txt"}}},
            {"when": {"turn": 1, "text": "wrote"}, "say": "done"}], [self.tool(sandbox=False)])
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.workspace, "made")))
        self.assertTrue(os.path.exists(r.path("artifacts", "made", "a.txt")))

    def test_programs_of_the_system(self):
        """By whatever name: /bin is a link on most machines."""
        tool = {"name": "greet", "description": "Greets.", "command": ["/bin/sh", "-c", "echo hello"]}
        r = self.run_task([
            {"when": {"turn": 0}, "call": {"tool": "greet", "args": {}}},
            {"when": {"turn": 1, "text": "hello"}, "say": "done"}], [tool], completion={"command": ["/bin/true"]})
        self.assertEqual((r.reason, r.result["text"]), ("success", "done"), r.stderr)

    def test_without_a_sandbox(self):
        r = self.run_cinch(self.task([
            {"when": {"turn": 0}, "call": {"tool": "write", "args": {"name": "a.txt"}}},
            {"when": {"turn": 1}, "call": {"tool": "write", "args": {"name": "b.txt", "fail": True}}},
            {"when": {"turn": 2}, "say": "done"}], [self.tool()]), "--sandbox", "off", "--workspace-mode", "copy")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertIn(b"a.txt", r.bytes("diff.patch"))
        self.assertNotIn(b"b.txt", r.bytes("diff.patch"))


class Disclosure(Tools):
    SECTIONS = {"ns": "demo", "key": "disclose", "sections": [
        {"key": "intro", "title": "Introduction", "body": "Do it."},
        {"key": "deep", "title": "Deep", "summary": "There is more.", "visibility": "summary",
         "body": "The secret word is xyzzy.", "tools": ["write"]},
        {"key": "text", "title": "Text", "summary": "Only text.", "visibility": "summary", "body": "Only plugh."}]}

    def test_opening_brings_the_tools(self):
        r = self.run_task([
            {"when": {"turn": 0, "tool": "open_sections"},
             "call": {"tool": "open_sections", "args": {"section_keys": ["deep"], "reason": "why not"}}},
            {"when": {"turn": 1, "text": "xyzzy", "tool": "write"},
             "call": {"tool": "write", "args": {"name": "a.txt"}}},
            {"when": {"turn": 2, "text": "wrote"},
             "call": {"tool": "read_section", "args": {"section_key": "text"}}},
            {"when": {"turn": 3, "text": "plugh"}, "say": "done"}], [self.tool()], prompt=self.SECTIONS)
        self.assertEqual((r.reason, r.result["text"]), ("success", "done"), r.stderr)
        self.assertIn(b"a.txt", r.bytes("diff.patch"))

    def test_a_closed_section_has_no_tools(self):
        with Provider(Say(calls=(("write", {"name": "a.txt"}),)), Say("done")) as p:
            r = self.run_cinch("--upstream", p.url, self.task(None, [self.tool()], prompt=self.SECTIONS))
        self.assertEqual([c["failure"] for c in self.calls(r)], ["unknown"], r.stderr)
        self.assertNotIn("write", [t["name"] for t in p.requests[0].body["tools"]])
        self.assertEqual(r.bytes("diff.patch"), b"")


class Guards(Tools):
    def test_denied(self):
        """The handler does not run, and the model is told why."""
        r = self.run_task([
            {"when": {"turn": 0}, "call": {"tool": "write", "args": {"name": "a.txt"}}},
            {"when": {"turn": 1, "text": "not today"}, "say": "done"}], [self.tool()],
            policies=[{"type": "deny", "tools": ["write"], "reason": "not today"}])
        self.assertEqual((r.reason, r.result["text"]), ("success", "done"), r.stderr)
        self.assertEqual([c["failure"] for c in self.calls(r)], ["denied"])
        self.assertEqual(r.bytes("diff.patch"), b"")

    def test_feedback(self):
        r = self.run_task([
            {"when": {"turn": 0}, "call": {"tool": "write", "args": {"name": "a.txt"}}},
            {"when": {"turn": 1, "text": "mind the gap"}, "say": "done"}], [self.tool()],
            feedback=[{"type": "static", "text": "mind the gap", "every_n_calls": 1}])
        self.assertEqual((r.reason, r.result["text"]), ("success", "done"), r.stderr)

    def test_completion(self):
        r = self.run_task([
            {"when": {"text": "wrote"}, "say": "really done"},
            {"when": {"text": "made/a.txt"}, "call": {"tool": "write", "args": {"name": "a.txt"}}},
            {"say": "I am done."}], [self.tool()],
            completion={"files": ["made/a.txt"]})
        self.assertEqual((r.reason, r.result["text"]), ("success", "really done"), r.stderr)
        said = [e["detail"]["text"] for e in r.lines("transcript.jsonl")
                if e["event"] == "transcript.entry" and e["entry_type"] == "user_message"]
        self.assertEqual(len(said), 2)
        self.assertIn("made/a.txt", said[1])

    def test_completion_is_given_up(self):
        r = self.run_task([{"say": "I am done."}], [self.tool()], completion={"files": ["never"], "max_rounds": 2})
        self.assertEqual((r.code, r.reason), (1, "failure"), r.stderr)
        self.assertIn("not complete", r.result["error"]["message"] if isinstance(r.result["error"], dict) else r.result["error"])


AGENT = """#!/usr/bin/python3
import json, os, sys, urllib.error, urllib.request

class Server:
    def __init__(self):
        self.session, self.n = None, 0
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "agent", "version": "1"}})

    def ask(self, method, params):
        self.n += 1
        headers = {"Authorization": "Bearer " + os.environ["CINCH_MCP_TOKEN"], "Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        body = json.dumps({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}).encode()
        with urllib.request.urlopen(urllib.request.Request(os.environ["CINCH_MCP_URL"], body, headers)) as r:
            self.session = r.headers.get("Mcp-Session-Id") or self.session
            text = r.read().decode()
        lines = [l[5:] for l in text.splitlines() if l.startswith("data:") and '"id"' in l]
        return json.loads(lines[0] if lines else text)["result"]

    def call(self, tool, **arguments):
        r = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return ("error: " if r.get("isError") else "") + r["content"][0]["text"]

server = Server()
names = [t["name"] for t in server.ask("tools/list", {})["tools"]]
"""


class Harness(Tools):
    """Tools for a program that speaks MCP itself, over the gateway's door in its own network."""

    def test_calls(self):
        r = self.run_agent("""
print(names, server.call("write", name="a.txt"), server.call("write", name="b.txt", fail=True))
print(os.path.exists("made/a.txt"), os.path.exists("made/b.txt"))
""", [self.tool()])
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        out = r.bytes("stdout.log").decode().splitlines()
        self.assertEqual(out[0], "['write'] wrote a.txt error: cannot do b.txt")
        self.assertEqual(out[1], "True False")  # the agent sees what was committed, and only that
        self.assertEqual([c["success"] for c in self.calls(r)], [True, False])
        self.assertIn(b"a.txt", r.bytes("diff.patch"))
        # A program that prints text reports no calls by itself; the transcript has them all the same.
        entries = [e for e in r.lines("transcript.jsonl") if e.get("entry_type") in ("tool_use", "tool_result")]
        self.assertEqual([e["entry_type"] for e in entries], ["tool_use", "tool_result"] * 2)
        self.assertEqual({e["detail"]["tool_name"] for e in entries}, {"write"})
        self.assertEqual(entries[0]["detail"]["input"], {"name": "a.txt"})
        self.assertEqual([entries[1]["detail"].get("output"), entries[3]["detail"].get("error")],
                         ["wrote a.txt", "cannot do b.txt"])

    def test_a_profile_with_a_server_but_no_prefix_reaches_tools(self):
        """Some harnesses offer the tools of a server under their own names: ask_human is one of the tools, too."""
        agent = self.program("my-agent", AGENT + 'print(names, json.load(open(os.path.expanduser("~/mcp.json"))))')
        self.write("profiles/my-agent.yaml", json.dumps({
            "name": "my-agent", "binary": [agent], "argv": ["{binary}", "{prompt}"], "prompt": "argument",
            "files": [{"name": "servers", "path": "mcp.json", "format": "json"}],
            "mcp": {"files": {"servers": {"tools": "cinch"}}}}))
        task = self.write("task.yaml", json.dumps({"prompt": "Do it.", "agent": {"ask": True}, "limits": {"timeout": 60}}))
        r = self.run_cinch(task, "--adapter-dir", os.path.join(self.dir, "profiles"), "-a", "my-agent")
        self.assertEqual(r.bytes("stdout.log"), b"['ask_human'] {'tools': 'cinch'}\n", r.stderr + r.bytes("stderr.log"))

    def test_the_token_is_needed(self):
        r = self.run_agent("""
os.environ["CINCH_MCP_TOKEN"] = "wrong"
try:
    Server()
except urllib.error.HTTPError as e:
    print(e.code)
""", [self.tool()])
        self.assertEqual(r.bytes("stdout.log"), b"401\n", r.stderr)

    def test_opened_sections_come_with_a_restart(self):
        r = self.run_agent("""
text = open(sys.argv[1]).read()
if "write" in names:
    print("second", "xyzzy" in text, server.call("write", name="a.txt"))
else:
    print("first", "xyzzy" in text, "xyzzy" in server.call("open_sections", section_keys=["deep"], reason="go"))
""", [self.tool()], prompt=Disclosure.SECTIONS)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.bytes("stdout.log"), b"first False True\nsecond True wrote a.txt\n")
        self.assertEqual(len(r.events("prompt.restarted")), 1)

    def test_completion_of_a_program(self):
        r = self.run_agent("""
print("again" if "made/a.txt" in open(sys.argv[1]).read() else "first")
if "made/a.txt" in open(sys.argv[1]).read():
    server.call("write", name="a.txt")
""", [self.tool()], completion={"files": ["made/a.txt"]})
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertEqual(r.bytes("stdout.log"), b"first\nagain\n")

    def test_by_standard_input(self):
        """`cinch mcp` brings the same tools to who can only start programs."""
        r = self.run_agent("""
import subprocess
p = subprocess.Popen([os.environ["SHIM"], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(n, method, params):
    p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}) + "\\n")
    p.stdin.flush()
    while True:
        m = json.loads(p.stdout.readline())
        if m.get("id") == n:
            return m["result"]
ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}})
print([t["name"] for t in ask(2, "tools/list", {})["tools"]])
print(ask(3, "tools/call", {"name": "write", "arguments": {"name": "c.txt"}})["content"][0]["text"])
p.stdin.close()
print(p.wait(10))
""", [self.tool()], "--set", f"env.set={{SHIM: {harness.CINCH}}}")
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.bytes("stdout.log"), b"['write']\nwrote c.txt\n0\n")

    def test_a_server_of_others(self):
        server = self.program("server.py", """#!/usr/bin/python3
import json, sys
TOOL = {"name": "shout", "description": "Says it loud.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    r = {"initialize": lambda: {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "s", "version": "1"}},
         "tools/list": lambda: {"tools": [TOOL]},
         "tools/call": lambda: {"content": [{"type": "text", "text": m["params"]["arguments"]["text"].upper()}]},
         }.get(m["method"], lambda: {})()
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
""")
        r = self.run_agent("""
print(names, server.call("loud", text="hello"), server.call("loud", text=5))
""", [{"name": "other", "mcp": {"command": [server], "rename": {"shout": "loud"}}}])
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertTrue(r.bytes("stdout.log").startswith(b"['loud'] HELLO error: "), r.bytes("stdout.log"))


ASK = """#!/usr/bin/python3
# Asks a listed host and another by the proxy, and the model with the proxy's token; prints what came of each.
import os, re, urllib.error, urllib.request

def ask(opener, url, **more):
    try:
        return opener.open(urllib.request.Request(url, **more), timeout=30).read().decode()
    except urllib.error.HTTPError as e:
        return str(e.code)
    except OSError as e:
        return type(e).__name__

for name in ("no_proxy", "NO_PROXY"):
    os.environ.pop(name, None)
by_proxy, directly = urllib.request.build_opener(), urllib.request.build_opener(urllib.request.ProxyHandler({}))
token, gateway = re.fullmatch("http://cinch:([^@]+)@(.*)", os.environ["http_proxy"]).groups()
print(ask(by_proxy, "http://localhost:PORT/"), ask(by_proxy, "http://other.example/"), ask(directly, "http://localhost:PORT/"),
      *(ask(directly, f"http://{gateway}{path}", data=b"{}", headers={"x-api-key": token}) for path in ("/v1/messages", "/mcp")))
"""


class Network(Tools):
    """Tools reach listed hosts, by a token that opens nothing else."""

    def ask(self, run, door):
        page = Page()
        self.addCleanup(page.close)
        r = run([self.tool("ask", ASK.replace("PORT", str(page.port)))], {"net": [f"localhost:{page.port}"]})
        self.assertEqual(r.reason, "success", r.stderr)
        call, = self.calls(r)
        self.assertEqual(call["rendered_output"].split(), ["page", "403", "URLError", "401", door])
        self.assertEqual(page.visits, 1)
        self.assertIn("connect to other.example:80", r.manifest["sandbox"]["denied"])

    def test_of_our_own_loop(self):
        steps = [{"when": {"turn": 0}, "call": {"tool": "ask", "args": {"name": "x"}}}, {"when": {"turn": 1}, "say": "done"}]
        self.ask(lambda tools, sandbox: self.run_task(steps, tools, sandbox=sandbox), "404") # nobody needs one

    def test_of_a_program(self):
        self.ask(lambda tools, sandbox: self.run_agent('server.call("ask", name="x")\n', tools, sandbox=sandbox), "401")

    def test_beside_the_sandbox_is_no_proxy(self):
        """Its address is one inside: who is not there would reach nothing at all."""
        show = '#!/bin/sh\ncat > /dev/null; echo proxies: $(env | grep -ci proxy)\n'
        r = self.run_task([{"when": {"turn": 0}, "call": {"tool": "show", "args": {"name": "x"}}},
                           {"when": {"turn": 1}, "say": "done"}], [self.tool("show", show, sandbox=False)],
                          sandbox={"net": ["listed.example"]})
        call, = self.calls(r)
        self.assertEqual(call["rendered_output"].strip(), "proxies: 0")

    def test_no_list_no_proxy(self):
        show = '#!/bin/sh\ncat > /dev/null; env | grep -ci proxy; curl -sS -m 5 http://127.0.0.1:9 2>&1; true\n'
        r = self.run_task([{"when": {"turn": 0}, "call": {"tool": "show", "args": {"name": "x"}}},
                           {"when": {"turn": 1}, "say": "done"}], [self.tool("show", show)])
        call, = self.calls(r)
        self.assertEqual(call["rendered_output"].split()[0], "0")
        self.assertIn("Couldn't connect", call["rendered_output"])


class Programs(Tools):
    def test_a_program_that_is_another_for_everybody(self):
        for options in ((), ("--sandbox", "off")):
            tool = {"name": "odd", "description": "Odd.", "input_schema": {"type": "object"}, "command": ["/proc/self/exe"]}
            r = self.run_cinch(self.task([{"say": "done"}], [tool]), *options)
            self.assertEqual(r.code, 65)
            self.assertIn("name the program by its own path", r.manifest["error"])


class Ends(Tools):
    """A run ends when it is told to, or when its time is up, also while only programs of cinch's own are at work."""

    def stubborn(self, name):
        """Says that it is there, and cannot be asked to go."""
        self.there = os.path.join(self.make_dir("flags"), "there")
        return self.program(name, f"#!/bin/sh\ntrap '' TERM INT\ntouch {self.there}\nwhile :; do sleep 1; done\n")

    def options(self, **more):
        return {"sandbox": {"write": [self.make_dir("flags")]}, **more}

    def check(self):
        return {"command": [self.stubborn("check.sh")], "timeout": "100s"}

    def server(self):
        return {"name": "other", "mcp": {"command": [self.stubborn("server.sh")], "start_timeout": "100s"}}

    def interrupted(self, tools, agent=True, **more):
        if agent:
            task = self.write("task.yaml", json.dumps({"prompt": "Do it.", "tools": tools, **self.options(**more)}))
            process, r = self.start(task, "--", self.program("agent.sh", "#!/bin/sh\n"))
        else:
            process, r = self.start(self.task([{"say": "done"}], tools, **self.options(**more)))
        harness.wait_until(lambda: os.path.exists(self.there) or process.poll() is not None, "the program", 30)
        process.send_signal(signal.SIGINT)
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (130, "interrupted"), r.stderr)

    def test_interrupted_in_a_check(self):
        self.interrupted([self.tool()], agent=False, completion=self.check())

    def test_interrupted_in_a_check_after_the_agent(self):
        self.interrupted([self.tool()], completion=self.check())

    def test_interrupted_while_a_server_starts(self):
        self.interrupted([self.server()])

    STAYS = """#!/usr/bin/python3
import json, os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m:
        r = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "s", "version": "1"}}, "tools/list": {"tools": []}}
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r.get(m["method"], {})}), flush=True)
open("FLAGS/asked", "w").close()
time.sleep(1.5)
open("FLAGS/stayed", "w").close()
time.sleep(1000)
"""

    def interrupt_twice(self):
        """Seconds between the server's being asked to go and the second signal; whether it was still there later."""
        flags = self.make_dir("flags")
        for name in os.listdir(flags):
            os.unlink(os.path.join(flags, name))
        server = self.program("server.py", self.STAYS.replace("FLAGS", flags))
        task = self.write("task.yaml", json.dumps({"prompt": "Do it.", "sandbox": {"write": [flags]},
                                                   "tools": [{"name": "other", "mcp": {"command": [server]}}]}))
        agent = self.program("agent.sh", f"#!/bin/sh\ntouch {flags}/begun\nexec sleep 1000\n")
        process, r = self.start(task, "--", agent)
        for name in ("begun", "asked"):
            path = os.path.join(flags, name)
            harness.wait_until(lambda: os.path.exists(path) or process.poll() is not None, name, 60)
            process.send_signal(signal.SIGINT)
        late = time.time() - os.stat(os.path.join(flags, "asked")).st_mtime
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (130, "killed"), r.stderr)
        return late, os.path.exists(os.path.join(flags, "stayed"))

    def test_a_second_interrupt_waits_for_no_server(self):
        for _ in range(5):
            late, stayed = self.interrupt_twice()
            if late < 0.5:  # else the machine is too busy to tell
                self.assertFalse(stayed)
                return
        self.skipTest("the machine is too busy")

    def test_the_deadline_holds_for_checks(self):
        r = self.run_agent("", [self.tool()], **self.options(completion=self.check(), limits={"timeout": 3}))
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)

    def test_the_deadline_holds_for_servers_that_start(self):
        r = self.run_agent("", [self.server()], **self.options(limits={"timeout": 2}))
        self.assertEqual((r.code, r.reason), (124, "timeout"), r.stderr)

    def test_a_check_is_no_idleness(self):
        r = self.run_task([{"say": "done"}], [self.tool()], completion={"command": ["sleep", "3"]},
                          limits={"timeout": 60, "idle": 2})
        self.assertEqual((r.code, r.reason), (0, "success"), r.stderr)


if __name__ == "__main__":
    harness.main()
