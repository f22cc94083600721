#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Endpoints beside the model calls: lists of models between all formats; files, batches and stored responses, which are
closed unless they are listed."""

import json

import gateway
import harness

LISTS = {
    "anthropic": {"data": [{"type": "model", "id": "claude-a", "display_name": "A", "created_at": "2026-01-01T00:00:00Z"},
                           {"type": "model", "id": "other", "display_name": "B", "created_at": "2026-01-01T00:00:00Z"}],
                  "has_more": False, "first_id": "claude-a", "last_id": "other"},
    "chat": {"object": "list", "data": [{"id": "claude-a", "object": "model"}, {"id": "other", "object": "model"}]},
    "responses": {"object": "list", "data": [{"id": "claude-a", "object": "model"}, {"id": "other", "object": "model"}]},
    "gemini": {"models": [{"name": "models/claude-a", "displayName": "A"}, {"name": "models/other"}]},
}
CLIENTS = {
    "anthropic": ("/v1/models", {"anthropic-version": "2023-06-01"}),
    "chat": ("/v1/models", {}),
    "gemini": ("/v1beta/models", {}),
}


class Account(gateway.Handler):
    """Lists models in the format of the server, and shows what reached the account."""

    def do_GET(self):
        up = self.server.upstream
        up.seen.append((self.command, self.path, dict(self.headers.items()), self.read_body()))
        models = self.path.startswith("/v1/models") or self.path == "/v1beta/models" or "pageSize" in self.path
        self.answer(up.status, json.dumps(up.models if models else {"id": "x"}).encode())

    do_POST = do_DELETE = do_GET


class Case(gateway.Case):
    def account(self, kind):
        up = self.upstream(Account)
        up.models = LISTS[kind]
        up.status = 200
        return up

    def names(self, answer):
        self.assertEqual(answer.status, 200, answer.body)
        data = answer.json()
        items = data["models"] if "models" in data else data["data"]
        return [i["name"].removeprefix("models/") if "name" in i else i["id"] for i in items]


class Models(Case):
    def test_every_client_of_every_upstream(self):
        for kind in LISTS:
            up = self.account(kind)
            g = self.gateway("--upstream", f"a={up.url},format={kind},key=K", env={"K": "sk-a-real-key"})
            for client, (path, fields) in CLIENTS.items():
                with self.subTest(upstream=kind, client=client):
                    answer = g.request("GET", path, fields=fields)
                    self.assertEqual(self.names(answer), ["claude-a", "other"])
                    data = answer.json()
                    if client == "anthropic":
                        self.assertEqual((data["first_id"], data["last_id"], data["has_more"]), ("claude-a", "other", False))
                        self.assertEqual(data["data"][0]["type"], "model")
                    elif client == "chat":
                        self.assertEqual((data["object"], data["data"][0]["object"]), ("list", "model"))
                    else:
                        self.assertTrue(data["models"][0]["name"].startswith("models/"))
            keys = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
            sent = {k.lower(): v for k, v in up.seen[-1][2].items()}
            self.assertIn("sk-a-real-key", sent[keys.get(kind, "authorization")])

    def test_several_routes(self):
        """Each upstream contributes what its routes would send to it; a route for one model is named by it."""
        a, b = self.account("anthropic"), self.account("chat")
        b.models = {"object": "list", "data": [{"id": "claude-b"}, {"id": "qwen3"}]}
        g = self.gateway("--upstream", f"a={a.url},format=anthropic", "--upstream", f"b={b.url},format=chat",
                         "--route", "claude-*=a", "--route", "mine=b:qwen3", "--route", "*=b")
        self.assertEqual(self.names(g.request("GET", "/v1/models")), ["claude-a", "mine", "qwen3"])

    def test_an_upstream_that_fails(self):
        a, b = self.account("anthropic"), self.account("chat")
        a.status = 500
        g = self.gateway("--upstream", f"a={a.url},format=anthropic", "--upstream", f"b={b.url},format=chat",
                         "--route", "claude-*=a", "--route", "*=b")
        self.assertEqual(self.names(g.request("GET", "/v1/models")), ["other"])
        g = self.gateway("--upstream", f"a={a.url},format=anthropic")
        answer = g.request("GET", "/v1/models")
        self.assertEqual(answer.status, 502)
        self.assertIn("Internal Server Error", answer.json()["error"]["message"])


PATHS = {
    "files": [("POST", "/v1/files"), ("GET", "/v1/files"), ("GET", "/v1/files/file-1/content"), ("DELETE", "/v1/files/file-1"),
              ("POST", "/v1/uploads"), ("POST", "/v1/uploads/u/parts")],
    "batches": [("POST", "/v1/batches"), ("GET", "/v1/batches/b"), ("POST", "/v1/batches/b/cancel")],
    "responses": [("GET", "/v1/responses/resp_1"), ("DELETE", "/v1/responses/resp_1"), ("POST", "/v1/responses/r/cancel"),
                  ("GET", "/v1/responses/r/input_items"), ("GET", "/v1/chat/completions/c"), ("POST", "/v1/conversations")],
}


class Closed(Case):
    def test_nothing_is_forwarded_unless_it_is_listed(self):
        up = self.account("responses")
        for opened in (None, *PATHS):
            g = self.gateway("--upstream", f"a={up.url},format=responses", *(["--endpoint", opened] if opened else []))
            for group, paths in PATHS.items():
                for method, path in paths:
                    with self.subTest(opened=opened, path=path):
                        before = len(up.seen)
                        answer = g.request(method, path, b"{}" if method == "POST" else None)
                        self.assertEqual(answer.status, 200 if group == opened else 404)
                        self.assertEqual(len(up.seen) - before, 1 if group == opened else 0)
                        if group != opened:
                            self.assertIn(f"add '{group}' to gateway.endpoints", answer.json()["error"]["message"])

    def test_never(self):
        up = self.account("responses")
        g = self.gateway("--upstream", f"a={up.url},format=responses", "--endpoint", "responses", "--endpoint", "files")
        for method, path in (("POST", "/v1/responses/compact"), ("PUT", "/v1/files/f"), ("GET", "/v1/organization"),
                             ("GET", "/v1/fine_tuning/jobs"), ("GET", "/v1/filesystem"), ("GET", "/v1/files/../admin")):
            self.assertIn(g.request(method, path).status, (400, 404), path)
        self.assertEqual(up.seen, [])

    def test_wrong_words(self):
        r = self.cinch("gateway", "--upstream", "http://127.0.0.1:1", "--endpoint", "fils")
        self.assertIn(b"--endpoint: 'fils' is not a group of endpoints: use files, batches or responses", r.stderr)
        task = self.write("task.yaml", json.dumps({"agent": {"adapter": "command", "command": ["true"]}, "gateway": {
            "upstream": "http://127.0.0.1:1", "endpoints": ["fils"]}}))
        r = self.run_cinch(task)
        self.assertEqual(r.reason, "bad_task", r.stderr)
        self.assertIn("gateway.endpoints: 'fils' is not a group of endpoints", r.result["error"])


class Open(Case):
    def test_bytes_and_key(self):
        up = self.account("chat")
        g = self.gateway("--upstream", f"a={up.url},format=chat,key=K", "--endpoint", "files", env={"K": "sk-a-real-key"})
        body = b"--x\r\nContent-Disposition: form-data; name=file\r\n\r\n\x00\xff\r\n--x--\r\n"
        self.assertEqual(g.request("POST", "/v1/files?a=1", body, {"Content-Type": "multipart/form-data; boundary=x"}).status, 200)
        method, path, fields, sent = up.seen[0]
        fields = {k.lower(): v for k, v in fields.items()}
        self.assertEqual((method, path, sent), ("POST", "/v1/files?a=1", body))
        self.assertEqual((fields["authorization"], fields["content-type"]),
                         ("Bearer sk-a-real-key", "multipart/form-data; boundary=x"))

    def test_the_headers_choose_the_provider(self):
        a, b, c = self.account("anthropic"), self.account("chat"), self.account("gemini")
        g = self.gateway("--upstream", f"b={b.url},format=chat", "--upstream", f"a={a.url},format=anthropic",
                         "--upstream", f"c={c.url},format=gemini", "--endpoint", "files", "--endpoint", "batches",
                         "--route", "gpt-*=b", "--route", "claude-*=a", "--route", "*=c")
        self.assertEqual(g.request("GET", "/v1/files", fields={"anthropic-version": "2023-06-01"}).status, 200)
        self.assertEqual(g.request("POST", "/v1/messages/batches", b"{}").status, 200)
        self.assertEqual([s[1] for s in a.seen], ["/v1/files", "/v1/messages/batches"])
        self.assertEqual(g.request("GET", "/v1/files").status, 200)
        self.assertEqual([s[1] for s in b.seen], ["/v1/files"])
        for path in ("/v1beta/files", "/upload/v1beta/files", "/v1beta/models/gemini-3:batchGenerateContent"):
            self.assertEqual(g.request("POST", path, b"{}").status, 200, path)
        self.assertEqual(len(c.seen), 3)

    def test_no_upstream_has_it(self):
        up = self.account("anthropic")
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--endpoint", "responses")
        answer = g.request("GET", "/v1/responses/r")
        self.assertEqual(answer.status, 404)
        self.assertIn("no upstream of this gateway has this endpoint", answer.json()["error"]["message"])

    def test_batches_under_a_budget(self):
        up = self.account("chat")
        for limit, status in ((("--max-tokens", "1000"), 400), (("--max-usd", "1"), 400), (("--max-calls", "5"), 200)):
            g = self.gateway("--upstream", f"a={up.url},format=chat", "--endpoint", "batches", *limit)
            answer = g.request("POST", "/v1/batches", b"{}")
            self.assertEqual(answer.status, status, limit)
            if status == 400:
                self.assertIn("cannot be held to the budget", answer.json()["error"]["message"])
            self.assertEqual(g.request("GET", "/v1/batches/b").status, 200)
            self.assertEqual(g.request("POST", "/v1/batches/b/cancel").status, 200)


if __name__ == "__main__":
    harness.main()
