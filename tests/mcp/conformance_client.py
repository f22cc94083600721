#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Our client for the official conformance suite, which starts it with the URL of its server: lists the tools and
calls them, with the arguments that the scenario wants.

    conformance_client.py TOOLSERVER_RUN URL
"""

import json
import os
import subprocess
import sys

program, url = sys.argv[1:]
context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
calls = {call["name"]: call.get("arguments", {}) for call in context.get("toolCalls", [])}
definition = {"name": "suite", "mcp": {"url": url}}
with subprocess.Popen([program, json.dumps(definition)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    waiting = None
    for line in process.stdout:
        told = json.loads(line)
        print(line.decode().rstrip(), file=sys.stderr)
        if "ready" in told:
            waiting = 0
            for name in calls or [tool["name"] for tool in told["ready"]]:
                arguments = calls.get(name, {"a": 5, "b": 3} if name == "add_numbers" else {})
                waiting += 1
                process.stdin.write(json.dumps({"call": name, "id": waiting, "arguments": arguments}).encode() + b"\n")
            process.stdin.flush()
        waiting = waiting - 1 if "done" in told else waiting
        if waiting == 0 or "failed" in told:
            process.stdin.write(b'{"stop":true}\n')
            process.stdin.flush()
            waiting = None
sys.exit(process.returncode)
