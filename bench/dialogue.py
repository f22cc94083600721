# SPDX-License-Identifier: MIT
"""Driving a harness with nothing around it: the least that a client must say to have one prompt worked on, per
protocol. What bench/adapters holds cinch against."""

import json
import signal
import subprocess
import sys
import time

PATIENCE = 3  # seconds for going after the last word


class Bare:
    """One process and its lines of JSON. The clock runs from its start until it is gone."""

    def __init__(self, argv, env, cwd):
        self.start = time.perf_counter()
        self.process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.ids = 0

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def lines(self):
        for line in self.process.stdout:
            try:
                yield json.loads(line)
            except ValueError:
                continue
        sys.exit(f"{self.process.args[0]} went away")

    def end(self):
        """Seconds; and whether it went by itself."""
        self.process.stdin.close()
        said = time.perf_counter() - self.start
        try:
            self.process.wait(PATIENCE)
            return time.perf_counter() - self.start, True
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            return said, False  # it would have to be killed: the clock stops at its last word


def claude(bare, prompt, **_):
    bare.send({"type": "user", "message": {"role": "user", "content": prompt}})
    for m in bare.lines():
        if m.get("type") == "result":
            if m.get("is_error"):
                sys.exit(f"claude: {m}")
            return bare.end()


def request(bare, method, params, on_other):
    """Asks and waits for the answer; whatever else comes goes to on_other."""
    bare.ids += 1
    bare.send({"jsonrpc": "2.0", "id": bare.ids, "method": method, "params": params})
    for m in bare.lines():
        if "method" in m:
            if on_other(m):
                return m
        elif m.get("id") == bare.ids:
            if "error" in m:
                sys.exit(f"{method}: {m['error']}")
            return m["result"]


def codex(bare, prompt, cwd=None, tool=None, **_):
    def other(m):
        if m["method"] == "item/tool/call":
            done = subprocess.run(tool["command"], capture_output=True, text=True, check=True)
            bare.send({"id": m["id"], "result": {"success": True,
                                                 "contentItems": [{"type": "inputText", "text": done.stdout}]}})
        return m["method"] == "turn/completed"

    request(bare, "initialize", {"clientInfo": {"name": "bench", "title": "bench", "version": "1"},
                                 "capabilities": {"experimentalApi": True}}, other)
    bare.send({"method": "initialized"})
    offered = {"type": "function", "name": tool["name"], "description": tool["description"],
               "inputSchema": tool["input_schema"]}
    thread = request(bare, "thread/start", {"cwd": cwd, "approvalPolicy": "never", "sandbox": "danger-full-access",
                                            "dynamicTools": [offered]}, other)["thread"]["id"]
    begun = request(bare, "turn/start", {"threadId": thread, "input": [{"type": "text", "text": prompt}]}, other)
    if begun.get("method") != "turn/completed":
        for m in bare.lines():
            if "method" in m and other(m):
                break
    return bare.end()


def acp(bare, prompt, cwd=None, mcp=None, **_):
    def other(m):
        if m["method"] == "session/request_permission":
            once = [o for o in m["params"]["options"] if o["kind"] == "allow_once"][0]
            bare.send({"jsonrpc": "2.0", "id": m["id"],
                       "result": {"outcome": {"outcome": "selected", "optionId": once["optionId"]}}})
        return False

    request(bare, "initialize", {"protocolVersion": 1, "clientInfo": {"name": "bench", "version": "1"},
                                 "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}}}, other)
    servers = [] if mcp is None else [{"type": "http", "name": "cinch", "url": mcp, "headers": []}]
    session = request(bare, "session/new", {"cwd": cwd, "mcpServers": servers}, other)["sessionId"]
    request(bare, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]}, other)
    return bare.end()
