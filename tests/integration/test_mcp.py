# SPDX-License-Identifier: MIT
"""The MCP server as others see it: the official client, the official conformance suite, and raw HTTP."""

import glob
import json
import os
import shutil
import subprocess

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
        directory, why = harness.real("mcp-sdk")
        if directory is None or shutil.which("node") is None:
            self.skipTest(f"mcp-sdk: {why}")
        s = self.server(gateway.TOKEN)
        done = subprocess.run(["node", os.path.join(MCP, "client.mjs"), directory, s.url, s.token], cwd=self.dir,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE)
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
        self.assertEqual(seen["progress"], [0, 50, 100])
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

        post("test_never").close()
        count = "0"
        while count == "0":  # the end of a connection has no answer: ask until it was seen
            c = post("test_cancelled")
            count = json.loads(c.getresponse().read())["result"]["content"][0]["text"]
            c.close()
        self.assertEqual(count, "1")
        self.stop(s)


if __name__ == "__main__":
    import unittest
    unittest.main()
