# SPDX-License-Identifier: MIT
"""A provider adapter in the style of WINK on top of cinch, in one file without dependencies.

evaluate() writes a task file, serves the tools of the caller as an MCP server on loopback, starts `cinch run` and turns the
record into a response or an error. Handlers are functions of this process; guards are programs. See demo.py.
"""

import json
import os
import secrets
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Tool:
    name: str
    description: str
    handler: callable  # gets the arguments as a dict; returns the value, or (message, value)
    parameters: dict = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass
class Prompt:
    ns: str
    key: str
    sections: list  # of {key, title, body, …}: docs/prompt.md
    name: str = None
    params: dict = field(default_factory=dict)
    tools: list = field(default_factory=list)
    policies: list = field(default_factory=list)  # docs/tools.md: {type: program, command: […]} and others
    feedback: list = field(default_factory=list)
    completion: dict = None
    output_schema: dict = None


@dataclass
class PromptResponse:
    prompt_name: str
    text: str
    output: object
    usage: dict
    record: str  # directory of the run


class PromptEvaluationError(RuntimeError):
    """Any failure; `type` is WINK's class (ThrottleError, DeadlineExceededError, BudgetExceededError, …)."""

    def __init__(self, error, record):
        super().__init__(error["message"])
        self.type, self.phase, self.details, self.record = error["type"], error["phase"], error["details"], record


class ToolServer:
    """The tools of the caller, as an MCP server (streamable HTTP, one JSON response per request)."""

    def __init__(self, tools):
        self.tools = {t.name: t for t in tools}
        self.token = secrets.token_urlsafe(24)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                known = secrets.compare_digest(self.headers.get("Authorization", ""), f"Bearer {server.token}")
                answer = server.respond(body) if known else None
                data = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(401 if not known else 202 if answer is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/mcp"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def respond(self, m):
        if "id" not in m:
            return None  # a notification
        methods = {"initialize": self.initialize, "tools/list": self.list, "tools/call": self.call}
        method = methods.get(m["method"], lambda _: {})
        return {"jsonrpc": "2.0", "id": m["id"], "result": method(m.get("params", {}))}

    def initialize(self, params):
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "wink", "version": "1"}}

    def list(self, _):
        return {"tools": [{"name": t.name, "description": t.description, "inputSchema": t.parameters}
                          for t in self.tools.values()]}

    def call(self, params):
        try:
            result = self.tools[params["name"]].handler(params.get("arguments", {}))
        except Exception as e:  # a failed call is told to the model; it never ends the run
            return {"isError": True, "content": [{"type": "text", "text": f"{type(e).__name__}: {e}"}]}
        message, value = result if isinstance(result, tuple) else (None, result)
        texts = [t for t in (message, value if isinstance(value, str) else json.dumps(value)) if t is not None]
        return {"content": [{"type": "text", "text": t} for t in texts]}


def evaluate(prompt, *, adapter="claude_agent_sdk", model=None, workspace=".", deadline=None, budget=None,
             run_context=None, settings=None, cinch=os.environ.get("CINCH", "cinch")):
    """budget: {tokens_total, tokens_input, tokens_output, usd, calls}; deadline: aware datetime; settings: keys of a task."""
    directory = tempfile.mkdtemp(prefix="wink-")
    record = os.path.join(directory, "run")
    with ToolServer(prompt.tools) as server:
        task = {
            "prompt": {"ns": prompt.ns, "key": prompt.key, "name": prompt.name, "sections": prompt.sections},
            "params": prompt.params, "agent": {"adapter": adapter, "model": model},
            "workspace": {"path": os.path.abspath(workspace)},
            "policies": prompt.policies, "feedback": prompt.feedback, "completion": prompt.completion,
            "limits": {**(budget or {}), "deadline": deadline and deadline.isoformat()},
            "output": {"dir": record, "schema": prompt.output_schema}, "run_context": run_context,
            "secrets": {"names": ["WINK_TOOLS_TOKEN"]}, **(settings or {}),
        }
        if prompt.tools:
            task["tools"] = [{"name": "wink", "mcp": {"url": server.url,
                                                      "headers": {"Authorization": "Bearer $WINK_TOOLS_TOKEN"}}}]
        path = os.path.join(directory, "task.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(task, f)
        done = subprocess.run([cinch, "run", path], env={**os.environ, "WINK_TOOLS_TOKEN": server.token},
                              capture_output=True, text=True)
    if not os.path.exists(os.path.join(record, "result.json")):
        raise PromptEvaluationError({"type": "PromptValidationError", "phase": "request", "details": None,
                                     "message": done.stderr.strip()}, None)
    with open(os.path.join(record, "result.json")) as f, open(os.path.join(record, "metrics.json")) as g:
        result, metrics = json.load(f), json.load(g)
    if result["evaluation_error"] is not None:
        raise PromptEvaluationError(result["evaluation_error"], record)
    usage = {"input_tokens": metrics["tokens_input"], "output_tokens": metrics["tokens_output"]}
    return PromptResponse(prompt.name or f"{prompt.ns}:{prompt.key}", result["text"], result["output"], usage, record)
