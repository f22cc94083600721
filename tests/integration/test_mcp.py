# SPDX-License-Identifier: MIT
"""The MCP server as others see it: the official client, the official conformance suite, and raw HTTP."""

import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys

import yaml

import gateway
import harness

FILE_TIMEOUT = 600

MCP = os.path.join(harness.ROOT, "tests", "mcp")
SERVER = harness.program("mcp_server")
# Scenarios of the suite for a server that has tools only; the others are of prompts, resources, sampling, tasks …
SCENARIOS = """server-initialize server-session-lifecycle server-stateless ping tools-list tools-call-simple-text
    tools-call-image tools-call-audio tools-call-embedded-resource tools-call-mixed-content tools-call-error
    tools-call-with-progress json-schema-2020-12 server-sse-polling server-sse-multiple-streams
    dns-rebinding-protection caching http-header-validation http-custom-header-server-validation""".split()


def expected():
    with open(os.path.join(MCP, "expected-failures.txt"), encoding="utf-8") as f:
        return {line.split()[0] for line in f if line.strip() and not line.startswith("#")}


class Case(gateway.Case):
    def server(self, *args):
        process = subprocess.Popen([SERVER, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd=self.dir)
        self.addCleanup(self.reap, process)
        told = json.loads(process.stdout.readline())
        return gateway.Gateway(process, {"url": told["url"], "token": gateway.TOKEN, "socket": None})


class Foreign(Case):
    def test_the_official_client(self):
        self.official_client()

    def test_the_official_client_on_standard_streams(self):
        self.official_client(harness.CINCH)

    def official_client(self, *cinch):
        directory, why = harness.real("mcp-sdk")
        if directory is None or shutil.which("node") is None:
            self.skipTest(f"mcp-sdk: {why}")
        s = self.server(gateway.TOKEN)
        done = subprocess.run(["node", os.path.join(MCP, "client.mjs"), directory, s.url, s.token, *cinch],
                              cwd=self.dir, capture_output=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        seen = json.loads(done.stdout)
        self.assertEqual(seen["server"], "cinch-test")
        self.assertIn("test_never", seen["names"])
        self.assertEqual(seen["after"], len(seen["names"]) + 1)
        self.assertEqual(seen["image"], "image/png")
        self.assertEqual((seen["failed"], seen["lying"]), (True, True))
        self.assertEqual(seen["structured"], [{"sum": 3}, '{"sum":3}'])
        self.assertEqual(seen["large"], 10000000)
        self.assertEqual(seen["meta"], "00-1-2-01")
        # On standard streams the SDK forgets who wanted progress when the answer is in the same piece of input.
        self.assertEqual(seen["progress"], [0, 50, 100][:len(seen["progress"]) if cinch else 3])
        self.assertIn(50, seen["progress"])
        self.assertEqual(seen["unknown"], -32602)
        self.assertEqual((seen["never"], seen["cancelled"]), ("stopped", "1"))
        self.stop(s)

    def test_the_official_suite(self):
        program, why = harness.real("mcp-conformance")
        node, why_not = harness.real("node")
        if program is None or node is None:
            self.skipTest(f"mcp-conformance: {why or why_not}")
        s = self.server()
        failed = set()
        for scenario in SCENARIOS:
            out = self.path(scenario)
            subprocess.run([node, program, "server", "--url", s.url, "--scenario", scenario, "-o", out],
                           cwd=self.dir, capture_output=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE)
            found = glob.glob(os.path.join(out, "**", "checks.json"), recursive=True)
            self.assertTrue(found, scenario)
            with open(found[0], encoding="utf-8") as f:
                failed |= {check["id"] for check in json.load(f) if check["status"] == "FAILURE"}
        self.assertEqual(failed, expected())
        self.stop(s)


class Shim(Case):
    """`cinch mcp`: lines in, lines out."""

    INITIALIZE = {"jsonrpc": "2.0", "id": "first", "method": "initialize",
                  "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                             "clientInfo": {"name": "test", "version": "1"}}}

    def shim(self, url, *messages, token=gateway.TOKEN):
        """What it prints for some lines at once, and its exit status."""
        text = "".join((m if isinstance(m, str) else json.dumps(m)) + "\n" for m in messages)
        done = subprocess.run([harness.CINCH, "mcp"], input=text.encode(), capture_output=True, cwd=self.dir,
                              env={**os.environ, "CINCH_MCP_URL": url, "CINCH_MCP_TOKEN": token},
                              timeout=harness.PATIENCE)
        return [json.loads(line) for line in done.stdout.splitlines()], done

    def test_a_session(self):
        s = self.server(gateway.TOKEN)
        process = subprocess.Popen([harness.CINCH, "mcp", "--url", s.url, "--token-env", "MY_TOKEN"], cwd=self.dir,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, "MY_TOKEN": s.token})
        self.addCleanup(self.reap, process)

        def ask(**message):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()

        def hear():
            return json.loads(process.stdout.readline())

        ask(**self.INITIALIZE)
        self.assertEqual(hear()["result"]["protocolVersion"], "2025-06-18")
        ask(method="notifications/initialized")
        ask(id=1, method="tools/call", params={"name": "test_tool_with_progress", "_meta": {"progressToken": "p"}})
        heard = [hear() for _ in range(4)]
        self.assertEqual([m["params"]["progress"] for m in heard[:3]], [0, 50, 100])
        self.assertEqual(heard[3]["id"], 1)

        def count(tool):
            ask(id=3, method="tools/call", params={"name": tool})
            heard = hear()
            self.assertEqual(heard["id"], 3)
            return heard["result"]["content"][0]["text"]

        ask(id=2, method="tools/call", params={"name": "test_never"})
        harness.wait_until(lambda: count("test_waiting") == "1", "the call's beginning")
        ask(method="notifications/cancelled", params={"requestId": 2})
        harness.wait_until(lambda: count("test_waiting") == "0", "the call's end")
        self.assertEqual(count("test_cancelled"), "1")
        ask(id=4, method="tools/call", params={"name": "test_trigger_tool_change"})
        heard = [hear(), hear()]
        self.assertIn("notifications/tools/list_changed", [m.get("method") for m in heard])
        out, err = process.communicate(timeout=harness.PATIENCE)
        self.assertEqual((process.returncode, out, err), (0, b"", b""))
        self.stop(s)

    def test_without_state(self):
        s = self.server(gateway.TOKEN)
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "test_simple_text", "arguments": {}, "_meta": meta}}
        heard, done = self.shim(s.url, call)
        self.assertEqual(heard[0]["result"]["resultType"], "complete")
        self.assertEqual(done.returncode, 0)
        self.stop(s)

    def test_what_cannot_be_posted_is_answered(self):
        s = self.server(gateway.TOKEN)
        heard, done = self.shim(s.url, "no JSON", {"jsonrpc": "2.0", "id": 7}, {"id": 8, "method": "ping"})
        self.assertEqual([m["error"]["code"] for m in heard], [-32700, -32600, -32600])
        self.assertEqual([m.get("id") for m in heard], [None, 7, 8])
        heard, done = self.shim(s.url, self.INITIALIZE, token="wrong")
        self.assertIn("401", heard[0]["error"]["message"])
        self.assertEqual(heard[0]["id"], "first")
        self.assertEqual(done.returncode, 0)
        self.stop(s)
        heard, done = self.shim(s.url, self.INITIALIZE)
        self.assertIn("not reached", heard[0]["error"]["message"])

    def test_no_address(self):
        done = self.cinch("mcp", env={"CINCH_MCP_URL": ""}, stdin=b"")
        self.assertEqual(done.code, 64)
        self.assertIn("no server is given", done.stderr.decode())


class Pins(Case):
    """`cinch mcp tools`: what to paste into a task."""

    def test_a_program(self):
        hostile = os.path.join(MCP, "hostile.py")
        done = self.cinch("mcp", "tools", "--name", "other", "--", sys.executable, hostile, "names")
        self.assertEqual(done.code, 0, done.stderr.decode())
        [definition] = yaml.safe_load(done.stdout)
        self.assertEqual(definition["name"], "other")
        self.assertEqual(definition["mcp"]["command"], [sys.executable, hostile, "names"])
        self.assertEqual(list(definition["mcp"]["pin"]), ["getUser", "admin.tools", "hidden"])
        self.assertIn("refused 'a?b': ", done.stderr.decode())

    def test_a_server_over_http(self):
        s = self.server(gateway.TOKEN)
        done = self.cinch("mcp", "tools", "--format", "json", "--url", s.url, "-H", "Authorization=Bearer $TOKEN_X",
                          env={"TOKEN_X": s.token})
        self.assertEqual(done.code, 0, done.stderr.decode())
        told = json.loads(done.stdout)
        self.assertEqual(told["definition"]["mcp"]["headers"], {"Authorization": "Bearer $TOKEN_X"})
        self.assertNotIn(s.token.encode(), done.stdout)
        self.assertIn("test_simple_text", told["definition"]["mcp"]["pin"])
        self.stop(s)

    def test_a_server_that_does_not_start(self):
        done = self.cinch("mcp", "tools", "--", sys.executable, os.path.join(MCP, "hostile.py"), "gone")
        self.assertEqual(done.code, 75)
        self.assertIn("exited with code 4: no licence", done.stderr.decode())


class Door(Case):
    FIELDS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def test_nobody_without_the_token(self):
        s = self.server(gateway.TOKEN)
        for method in ("POST", "GET", "DELETE"):
            self.assertEqual(s.request(method, "/mcp", b"{}", self.FIELDS, token=False).status, 401)
        self.stop(s)

    def test_no_page_of_another_site(self):
        s = self.server(gateway.TOKEN)
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        for origin, status in (("http://evil.example", 403), ("null", 403), ("http://localhost.evil.example", 403),
                               ("http://localhost:1", 400)):
            with self.subTest(origin):
                answer = s.request("POST", "/mcp", body, {**self.FIELDS, "Origin": origin})
                self.assertEqual(answer.status, status)
        self.stop(s)

    def test_a_client_that_leaves_cancels_its_call(self):
        s = self.server(gateway.TOKEN)

        def post(tool):
            meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {}}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                               "params": {"name": tool, "_meta": meta}})
            c = s.client()
            c.request("POST", "/mcp", body, {**self.FIELDS, "Authorization": "Bearer " + s.token, "Mcp-Name": tool,
                                             "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"})
            return c

        def count(tool):
            with contextlib.closing(post(tool)) as c:
                return json.loads(c.getresponse().read())["result"]["content"][0]["text"]

        # Who leaves before the call begins is not served at all: nothing is cancelled then.
        never = post("test_never")
        harness.wait_until(lambda: count("test_waiting") == "1", "the call's beginning")
        never.close()
        harness.wait_until(lambda: count("test_waiting") == "0", "the call's end")
        self.assertEqual(count("test_cancelled"), "1")
        self.stop(s)


if __name__ == "__main__":
    import unittest
    unittest.main()
