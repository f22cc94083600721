# SPDX-License-Identifier: MIT
"""The gateway against a foreign server: bytes pass unchanged, formats are translated, keys are swapped,
routes are followed, the proxy goes where it may and nowhere else."""

import base64
import http.client
import json
import os
import socket
import subprocess
import threading

import gateway
import harness
from provider import Fail, Provider, Say


class Echo(gateway.Handler):
    """Keeps what it was sent; answers in the format of the path, as a stream when asked to."""

    def do_POST(self):
        body = self.read_body()
        up = self.server.upstream
        up.seen.append((self.command, self.path, dict(self.headers), body))
        if self.path.startswith("/v1/chat"):
            self.answer(200, json.dumps({
                "id": "c1", "object": "chat.completion", "created": 1, "model": "chat-test",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "from chat"},
                             "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}).encode())
            return
        if b'"stream": true' in body or b'"stream":true' in body:
            self.start_stream()
            sent = b""
            for data in gateway.anthropic_events([f"word {i} " for i in range(50)]):
                self.chunk(data)
                sent += data
            self.end_stream()
            up.sent = sent
            return
        up.sent = json.dumps({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test",
            "content": [{"type": "text", "text": "h\u00e9llo"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 11, "output_tokens": 7}, "unknown": {"kept": [1, 2.50, None]}},
            indent=3).encode()
        self.answer(200, up.sent, [("request-id", "req_1"), ("anthropic-ratelimit-requests-limit", "50")])

    def do_GET(self):
        self.server.upstream.seen.append((self.command, self.path, dict(self.headers), b""))
        self.answer(200, b'{"data":[{"id":"claude-test","type":"model"}],"has_more":false}')


class Hangup(gateway.Handler):
    """The first request gets an answer; each later one is read, and its connection closed."""

    def do_POST(self):
        self.read_body()
        up = self.server.upstream
        up.seen.append(self.path)
        if len(up.seen) == 1:
            self.answer(200, b'{"type":"message","usage":{"input_tokens":1,"output_tokens":1}}')
        else:
            self.close_connection = True


class Failing(gateway.Handler):
    """The first `bad` requests get a 529, the next ones an answer."""

    bad = 2

    def do_POST(self):
        self.read_body()
        up = self.server.upstream
        up.seen.append(self.path)
        if len(up.seen) <= self.bad:
            self.answer(529, b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}',
                        [("retry-after", "0")])
        else:
            self.answer(200, b'{"id":"m","type":"message","role":"assistant","model":"x","content":[],'
                             b'"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}')


class Patient(gateway.Handler):
    """The first half of a stream; the second once the client has left."""

    def do_POST(self):
        self.read_body()
        up = self.server.upstream
        events = list(gateway.anthropic_events(["some", "words"]))
        if up.before_head:
            up.seen.append(self.path)
            up.left.wait(harness.PATIENCE)
        self.start_stream()
        for data in events[:3]:
            self.chunk(data)
        up.left.wait(harness.PATIENCE)
        for data in events[3:]:
            self.chunk(data)
        self.end_stream()


def leave_and_be_counted(case, up, g, before_head=False):
    """A client that leaves in the midst of a stream: the rest is read, and counted."""
    up.left = threading.Event()
    up.before_head = before_head
    c = g.client()
    c.request("POST", "/v1/messages", json.dumps({**MESSAGE, "stream": True}), {"x-api-key": g.token})
    if before_head:
        harness.wait_until(lambda: up.seen, "the request")
    else:
        c.getresponse().read(10)
    c.close()
    harness.wait_until(lambda: g.metrics()["cinch_calls_draining"] == 1, "the gateway to notice")
    up.left.set()
    harness.wait_until(lambda: g.metrics()["cinch_calls_in_flight"] == 0, "the end of the call")
    m = g.metrics()
    case.assertEqual(m['cinch_tokens_total{kind="input"}'], 11)
    case.assertEqual(m['cinch_tokens_total{kind="output"}'], 7)
    case.assertEqual(m["cinch_calls_draining"], 0)


MESSAGE = {"model": "claude-test", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
ODD = (b'{ "model":"claude-test",\n\t"max_tokens" : 1e2, "x-unknown": {"z": [1.0, 1e400, "\\u00e9"]},\n'
       b'"messages":[{"role":"user","content":"\xc3\xa9\\n"}]   }\n')


class PassThrough(gateway.Case):
    def start_one(self):
        up = self.upstream(Echo)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic,key=REAL_KEY",
                         env={"REAL_KEY": "sk-real-key"})
        return up, g

    def test_bodies_pass_byte_for_byte(self):
        up, g = self.start_one()
        a = g.request("POST", "/v1/messages?beta=true", ODD, {
            "anthropic-version": "2023-06-01", "anthropic-beta": "b1,b2", "x-custom": "kept",
            "Connection": "keep-alive, X-Hop", "X-Hop": "1", "Accept-Encoding": "gzip, br",
            "Cookie": "c=1"})
        self.assertEqual(a.status, 200)
        method, path, fields, body = up.seen[0]
        self.assertEqual((method, path), ("POST", "/v1/messages?beta=true"))
        self.assertEqual(gateway.sha(body), gateway.sha(ODD))
        self.assertEqual(gateway.sha(a.body), gateway.sha(up.sent))
        fields = {k.lower(): v for k, v in fields.items()}
        self.assertEqual(fields["anthropic-beta"], "b1,b2")
        self.assertEqual(fields["x-custom"], "kept")
        self.assertEqual(fields["x-api-key"], "sk-real-key")
        self.assertEqual(fields["accept-encoding"], "identity")
        self.assertEqual(fields["host"], f"127.0.0.1:{up.port}")
        for gone in ("authorization", "x-hop", "connection", "cookie"):
            self.assertNotIn(gone, fields)
        self.assertNotIn(g.token, json.dumps(fields))
        self.assertEqual(a.fields["request-id"], "req_1")
        self.assertEqual(a.fields["anthropic-ratelimit-requests-limit"], "50")
        self.stop(g)

    def test_a_stream_passes_byte_for_byte_and_is_metered(self):
        up, g = self.start_one()
        body = json.dumps({**MESSAGE, "stream": True}).encode()
        a = g.request("POST", "/v1/messages", body)
        self.assertEqual(a.fields["content-type"], "text/event-stream")
        self.assertEqual(gateway.sha(a.body), gateway.sha(up.sent))
        m = g.metrics()
        self.assertEqual(m['cinch_tokens_total{kind="input"}'], 11)
        self.assertEqual(m['cinch_tokens_total{kind="output"}'], 7)
        self.assertEqual(m['cinch_requests_total{format="anthropic",status="2xx"}'], 1)
        self.stop(g)

    def test_a_provider_that_tells_the_key_is_not_heard(self):
        key = "sk-real-0123456789abcdef"

        class Chatty(gateway.Handler):
            def do_POST(self):
                self.read_body()
                given = self.headers["x-api-key"]
                if "stream" in self.path:
                    self.start_stream()
                    self.chunk(b"data: " + given[:9].encode())
                    self.chunk(given[9:].encode() + b"\n\n")
                    self.end_stream()
                else:
                    self.answer(401, f'{{"error":"bad key {given}"}}'.encode(), [("x-echo", "was " + given)])

        up = self.upstream(Chatty)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic,key=REAL_KEY", "--no-retries",
                         env={"REAL_KEY": key})
        answer = g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode())
        self.assertEqual(answer.status, 401)
        self.assertEqual(answer.body.decode(), f'{{"error":"bad key {"*" * len(key)}"}}')
        self.assertEqual(answer.fields["x-echo"], "was " + "*" * len(key))
        answer = g.request("POST", "/v1/messages?stream", json.dumps(MESSAGE).encode())
        self.assertEqual(answer.body.decode(), f"data: {'*' * len(key)}\n\n")
        self.stop(g)

    def test_paths_that_another_server_could_read_otherwise(self):
        """Dot segments, encoded dots and slashes never leave, and no key with them."""
        up, g = self.start_one()
        body = json.dumps(MESSAGE).encode()
        for path in ("/v1/models/../files", "/v1/models/..%2ffiles", "/v1/models/%2e%2e/files",
                     "/v1/models/%2E%2E/files", "/v1/models/x/../../files", "/v1/./models", "/v1/models/..;/files",
                     "/v1/models/%252e%252e/files", "/v1/models//files", "/v1/models/x%00", "/v1/models/x%5c..%5cy",
                     "/v1beta/models/../files", "/v1%2fmodels", "/v1/models%2fx"):
            a = g.request("GET", path)
            self.assertEqual(a.status, 400, path)
            self.assertIn("the path has", a.json()["error"]["message"])
        for path in ("/v1/messages/../files", "/v1/messages%2fbatches", "/v1/messages/count_tokens/../batches",
                     "/v1beta/models/x/../../tunedModels/y:generateContent",
                     "/v1beta/models/..%2f..%2fv1beta%2ffiles:generateContent",
                     "/v1beta/models/x:generateContent/../../files", f"/-/{g.token}/../v1/files",
                     f"/-/{g.token}/v1/messages/%2e%2e/files"):
            self.assertEqual(g.request("POST", path, body).status, 400, path)
        for path in ("/v1/files", "/v1/messages/batches", "/v1beta/files/models/x:generateContent", "/v1/batches"):
            self.assertEqual(g.request("POST", path, body).status, 404, path)
        self.assertEqual(up.seen, [])
        for path, sent in (("/v1/models/openai%2Fgpt-4", "/v1/models/openai%2Fgpt-4"),
                           ("/v1/models/openai/gpt-4", "/v1/models/openai%2Fgpt-4"), ("/v1/models/", "/v1/models")):
            self.assertEqual(g.request("GET", path, fields={"anthropic-version": "2023-06-01"}).status, 200)
            self.assertEqual(up.seen.pop()[1], sent)
        self.assertEqual(g.request("POST", "/v1/messages/", body).status, 200)
        self.assertEqual(up.seen.pop()[1], "/v1/messages")
        self.stop(g)

    def test_a_client_chooses_neither_method_nor_account(self):
        up, g = self.start_one()
        a = g.request("POST", "/v1/messages?access_token=x&beta=true&%61pi_key=y&$httpMethod=DELETE",
                      json.dumps(MESSAGE).encode(), {
                          "X-HTTP-Method-Override": "DELETE", "X-HTTP-Method": "DELETE", "X-Method-Override": "DELETE",
                          "X-Original-URL": "/v1/files", "X-Rewrite-URL": "/v1/files", "OpenAI-Organization": "org-x",
                          "openai-project": "p", "x-goog-user-project": "p", "x-kept": "1"})
        self.assertEqual(a.status, 200)
        method, path, fields, _ = up.seen[0]
        self.assertEqual((method, path), ("POST", "/v1/messages?beta=true"))
        fields = {k.lower() for k in fields}
        self.assertIn("x-kept", fields)
        self.assertEqual(fields & {"x-http-method-override", "x-http-method", "x-method-override", "x-original-url",
                                   "x-rewrite-url", "openai-organization", "openai-project", "x-goog-user-project"},
                         set())
        self.stop(g)

    def test_every_way_to_show_the_token(self):
        up, g = self.start_one()
        for fields in ({"Authorization": "Bearer " + g.token}, {"x-api-key": g.token},
                       {"x-goog-api-key": g.token}):
            a = g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode(), fields, token=False)
            self.assertEqual(a.status, 200)
        a = g.request("POST", f"/v1/messages?key={g.token}&beta=true", json.dumps(MESSAGE).encode(),
                      token=False)
        self.assertEqual(a.status, 200)
        self.assertEqual(up.seen[-1][1], "/v1/messages?beta=true")
        self.stop(g)

    def test_one_connection_carries_many_requests(self):
        up, g = self.start_one()
        c = g.client()
        for _ in range(20):
            c.request("POST", "/v1/messages", json.dumps(MESSAGE), {"x-api-key": g.token})
            self.assertEqual(gateway.sha(c.getresponse().read()), gateway.sha(up.sent))
        c.close()
        self.assertLessEqual(g.metrics()["cinch_connections_total"], 2)
        self.stop(g)

    def test_models_and_counts_are_asked_of_the_provider(self):
        up, g = self.start_one()
        a = g.request("GET", "/v1/models", fields={"anthropic-version": "2023-06-01"})
        self.assertEqual(a.json()["data"][0]["id"], "claude-test")
        g.request("POST", "/v1/messages/count_tokens", json.dumps(MESSAGE).encode())
        self.assertEqual(up.seen[-1][1], "/v1/messages/count_tokens")
        self.stop(g)

    def test_a_large_body_passes(self):
        up, g = self.start_one()
        body = json.dumps({**MESSAGE, "pad": "x" * (20 << 20)}).encode()
        self.assertEqual(g.request("POST", "/v1/messages", body).status, 200)
        self.assertEqual(gateway.sha(up.seen[0][3]), gateway.sha(body))
        self.stop(g)


class Tls(gateway.Case):
    """Over TLS the way leads through libcurl."""

    def start_one(self, handler=Echo, trusted=True, *args):
        tls = self.certificate()
        up = self.upstream(handler, tls)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic,key=REAL_KEY", *args,
                         env={"REAL_KEY": "sk-real-key", **({"SSL_CERT_FILE": tls[0]} if trusted else {})})
        return up, g

    def test_bodies_and_streams_pass_byte_for_byte(self):
        up, g = self.start_one()
        for body in (ODD, json.dumps({**MESSAGE, "stream": True}).encode(),
                     json.dumps({**MESSAGE, "pad": "x" * (5 << 20)}).encode()):
            a = g.request("POST", "/v1/messages?beta=true", body, {"anthropic-beta": "b", "x-empty": ""})
            self.assertEqual(a.status, 200)
            _, path, fields, sent = up.seen[-1]
            fields = {k.lower(): v for k, v in fields.items()}
            self.assertEqual(path, "/v1/messages?beta=true")
            self.assertEqual(gateway.sha(sent), gateway.sha(body))
            self.assertEqual(gateway.sha(a.body), gateway.sha(up.sent))
            self.assertEqual((fields["anthropic-beta"], fields["x-empty"]), ("b", ""))
            self.assertEqual(fields["x-api-key"], "sk-real-key")
            self.assertEqual(fields["accept-encoding"], "identity")
            self.assertNotIn("authorization", fields)
        self.stop(g)

    def test_many_at_once(self):
        up, g = self.start_one()
        good = []

        def ask():
            body = json.dumps({**MESSAGE, "stream": True}).encode()
            good.append(gateway.sha(g.request("POST", "/v1/messages", body).body) == gateway.sha(up.sent))

        threads = [threading.Thread(target=ask) for _ in range(24)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(good, [True] * 24)
        self.stop(g)

    def test_without_retries_nothing_is_sent_twice(self):
        up, g = self.start_one(Hangup, True, "--no-retries")
        statuses = [g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode()).status for _ in range(3)]
        self.assertEqual((statuses, len(up.seen)), ([200, 502, 502], 3))
        self.stop(g)

    def test_a_certificate_that_nobody_vouches_for(self):
        up, g = self.start_one(Echo, False, "--no-retries")
        a = g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode())
        self.assertEqual(a.status, 502)
        self.assertIn("certificate", a.json()["error"]["message"])
        self.assertEqual(up.seen, [])
        self.stop(g)

    def test_a_slow_client_holds_the_upstream_back(self):
        class Large(gateway.Handler):
            def do_POST(self):
                self.read_body()
                self.start_stream()
                for i in range(400):
                    self.chunk(b"data: " + b"x" * 65528 + b"\n\n")
                    self.server.upstream.sent = i
                self.end_stream()

        up, g = self.start_one(Large)
        up.sent = 0
        c = g.client()
        c.request("POST", "/v1/messages", json.dumps(MESSAGE), {"x-api-key": g.token})
        response = c.getresponse()
        total = len(response.read(1000))
        harness.wait_until(lambda: up.sent > 0, "the stream to begin")
        self.assertLess(g.rss(), (1200 if harness.SANITIZED else 40) << 20)
        while True:
            piece = response.read(1 << 20)
            if not piece:
                break
            total += len(piece)
        self.assertEqual(total, 400 * 65536)
        c.close()
        self.stop(g)

    def test_an_answer_that_breaks_off(self):
        class Cut(gateway.Handler):
            def do_POST(self):
                self.read_body()
                self.start_stream()
                self.chunk(b"data: part\n\n")
                self.close_connection = True

        _, g = self.start_one(Cut, True, "--no-retries")
        c = g.client()
        c.request("POST", "/v1/messages", json.dumps(MESSAGE), {"x-api-key": g.token})
        with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
            c.getresponse().read()
        c.close()
        self.stop(g)

    def test_a_client_that_leaves(self):
        up, g = self.start_one(Patient)
        leave_and_be_counted(self, up, g)
        self.stop(g)


class Routing(gateway.Case):
    def test_routes_choose_upstream_format_and_model(self):
        first, second = self.upstream(Echo), self.upstream(Echo)
        g = self.gateway("--upstream", f"one={first.url},format=anthropic",
                         "--upstream", f"two={second.url}/v1,format=chat",
                         "--route", "claude-*=one", "--route", "small=one:claude-renamed",
                         "--route", "gpt-*=two")
        a = g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode())
        self.assertEqual(a.status, 200)
        body = b'{ "model" : "small", "keep": [1.0], "messages":[] }'
        g.request("POST", "/v1/messages", body)
        self.assertEqual(first.seen[-1][3], body.replace(b'"small"', b'"claude-renamed"'))
        a = g.request("POST", "/v1/messages", json.dumps({**MESSAGE, "model": "gpt-5"}).encode())
        self.assertEqual(a.json()["content"][0]["text"], "from chat")
        self.assertEqual(a.json()["type"], "message")
        self.assertEqual(second.seen[-1][1], "/v1/chat/completions")
        self.assertEqual(json.loads(second.seen[-1][3])["model"], "gpt-5")
        a = g.request("POST", "/v1/messages", json.dumps({**MESSAGE, "model": "other"}).encode())
        self.assertEqual(a.status, 404)
        self.assertEqual(a.json()["error"]["type"], "not_found_error")
        a = g.request("GET", "/v1/models", fields={"anthropic-version": "1"})
        self.assertEqual([m["id"] for m in a.json()["data"]], ["claude-test", "small"])
        self.stop(g)

    def test_routes_from_a_file(self):
        a, b = self.upstream(Echo), self.upstream(Echo)
        config = self.write("gateway.yaml", f"""
gateway:
  routes:
    - {{model: "small-*", upstream: "{a.url}", format: anthropic, key: KEY_A}}
    - {{model: "big-*", upstream: "{a.url}", format: anthropic, key: KEY_A, name: other}}
  upstream: "{b.url}"
""")
        g = self.gateway("--config", config, env={"KEY_A": "key-of-a-0001"})
        for model, up, sent in (("small-1", a, "small-1"), ("big-1", a, "other"), ("x", b, "x")):
            body = json.dumps({**MESSAGE, "model": model}).encode()
            self.assertEqual(g.request("POST", "/v1/messages", body).status, 200)
            self.assertEqual(json.loads(up.seen[-1][3])["model"], sent)
        self.stop(g)

    def test_a_stream_is_translated_as_it_comes(self):
        up = self.upstream(Echo)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic")
        a = g.request("POST", "/v1/chat/completions", json.dumps({
            "model": "m", "stream": True, "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": "hi"}]}).encode())
        events = a.events()
        self.assertEqual(events[-1], "[DONE]")
        chunks = [json.loads(e) for e in events[:-1]]
        text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
        self.assertEqual(text, "".join(f"word {i} " for i in range(50)))
        self.assertEqual(chunks[-1]["usage"]["prompt_tokens"], 11)
        self.assertEqual(json.loads(up.seen[0][3])["messages"][0]["role"], "user")
        self.stop(g)

    def test_a_busy_provider_is_tried_again_unseen(self):
        up = self.upstream(Failing)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic")
        a = g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode())
        self.assertEqual((a.status, len(up.seen)), (200, 3))
        self.assertEqual(g.metrics()["cinch_retries_total"], 2)
        self.stop(g)

    def test_without_retries_nothing_is_sent_twice(self):
        up = self.upstream(Hangup)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--no-retries")
        statuses = [g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode()).status for _ in range(3)]
        self.assertEqual((statuses, len(up.seen)), ([200, 502, 502], 3))
        self.stop(g)

    def test_without_retries_the_error_is_passed_on_as_it_is(self):
        up = self.upstream(Failing)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--no-retries")
        a = g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode())
        self.assertEqual(a.status, 529)
        self.assertEqual(a.json()["error"]["message"], "busy")
        self.stop(g)

    def test_a_budget_of_ten_calls_lets_ten_of_thirty_two_through(self):
        up = self.upstream(Echo)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--max-calls", "10")
        answers = []

        def ask():
            answers.append(g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode()))

        threads = [threading.Thread(target=ask) for _ in range(32)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        good = [a for a in answers if a.status == 200]
        self.assertEqual((len(good), len(up.seen)), (10, 10))
        refused = [a for a in answers if a.status != 200]
        self.assertTrue(all(a.fields.get("x-should-retry") == "false" for a in refused))
        self.assertTrue(all(a.json()["type"] == "error" for a in refused))
        self.stop(g)


class Shared(gateway.Case):
    """A gateway as the budget of many runs: limits, ledger, events, status line."""

    ASK = {"model": "claude-opus-5", "max_tokens": 1000, "messages": [{"role": "user", "content": "hi"}]}

    def ask(self, g, **more):
        return g.request("POST", "/v1/messages", json.dumps({**self.ASK, **more}).encode())

    def test_each_limit(self):
        up = self.upstream(Echo)
        for options, limit, words in (
                (["--max-usd", "0.0001"], "usd", "the next call could cost up to $0.02"),
                (["--max-input-tokens", "5"], "input_tokens", "of 5 input tokens are left"),
                (["--max-output-tokens", "10"], "output_tokens", "at least 16 output tokens; 10 of 10 are left"),
                (["--max-tokens", "20"], "total_tokens", "20 of 20 are left"),
                (["--max-calls", "1"], "calls", "all 1 calls are used")):
            with self.subTest(limit):
                g = self.gateway("--upstream", f"a={up.url},format=anthropic", *options)
                if limit == "calls":
                    self.assertEqual(self.ask(g).status, 200)
                a = self.ask(g)
                self.assertEqual((a.status, a.fields["x-cinch-reason"], a.fields["x-cinch-limit"]),
                                 (400, "budget", limit))
                message = a.json()["error"]["message"]
                self.assertIn(words, message)
                self.assertNotIn("this run", message)
                self.stop(g)

    def test_fees_of_web_searches_are_reserved(self):
        up = self.upstream(Echo)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--max-usd", "0.08")
        search = {"type": "web_search_20250305", "name": "web_search"}
        a = self.ask(g, tools=[search])
        self.assertEqual((a.status, a.fields["x-cinch-limit"], up.seen), (400, "usd", []))
        self.assertIn("of which $0.10 for web searches; $0.08 of $0.08 is left", a.json()["error"]["message"])
        self.assertEqual(self.ask(g, tools=[{**search, "max_uses": 2}]).status, 200)
        self.assertEqual(self.ask(g, tools=[{"name": "web_search", "input_schema": {"type": "object"}}]).status, 200)
        self.stop(g)

    def test_a_model_without_a_price(self):
        up = self.upstream(Echo)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--max-usd", "1")
        a = self.ask(g, model="not-listed")
        self.assertIn("model 'not-listed' has no price", a.json()["error"]["message"])
        self.assertEqual(up.seen, [])
        self.stop(g)

    def test_wrong_amounts(self):
        for amount in ("0", "-1", "much", "nan"):
            done = subprocess.run([harness.CINCH, "gateway", "--upstream", "http://127.0.0.1:9", "--max-usd", amount],
                                  env=self.env, capture_output=True, check=False)
            self.assertEqual(done.returncode, 64, done.stderr)

    def test_ledger_and_events(self):
        up = self.upstream(Echo)
        ledger = self.path("ledger.json")
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--ledger", ledger, "--max-calls", "2")
        with open(ledger, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["wire"]["calls"], 0)
        for _ in range(3):
            self.ask(g)
        g.request("POST", "/v1/messages", b"{}", {"x-api-key": "wrong"}, token=False)
        g.process.terminate()
        out, err = g.process.communicate(timeout=harness.PATIENCE)
        self.assertEqual((g.process.returncode, err), (0, b""))
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(e["event"], e["seq"]) for e in events],
                         [("model.call", 1), ("model.call", 2), ("gateway.refused", 3), ("gateway.refused", 4)])
        self.assertEqual((events[0]["context"]["input_tokens"], events[0]["context"]["upstream"]), (11, "a"))
        self.assertEqual([e["context"]["kind"] for e in events[2:]], ["calls", "token"])
        with open(ledger, encoding="utf-8") as f:
            kept = json.load(f)
        self.assertEqual((kept["wire"]["calls"], kept["wire"]["input"], kept["reported"]), (2, 22, None))
        self.assertEqual(os.stat(ledger).st_mode & 0o777, 0o600)
        self.assertNotIn(g.token.encode(), out)

    def test_estimated_tokens_are_in_the_metrics(self):
        class Silent(gateway.Handler):
            def do_POST(self):
                self.read_body()
                self.start_stream()
                self.chunk(b'data: {"choices":[{"index":0,"delta":{"content":"hello"}}]}\n\ndata: [DONE]\n\n')
                self.end_stream()

        up = self.upstream(Silent)
        g = self.gateway("--upstream", f"a={up.url},format=chat", "--max-tokens", "5000")
        a = g.request("POST", "/v1/chat/completions", json.dumps(
            {"model": "m", "stream": True, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}).encode())
        self.assertEqual(a.status, 200)
        m = g.metrics()
        self.assertEqual(m['cinch_tokens_total{kind="output"}'], 100)
        self.assertEqual(m['cinch_tokens_estimated_total{kind="output"}'], 100)
        self.assertEqual(m['cinch_tokens_total{kind="input"}'], m['cinch_tokens_estimated_total{kind="input"}'])
        self.stop(g)

    def test_a_ledger_that_cannot_be_written(self):
        done = subprocess.run([harness.CINCH, "gateway", "--upstream", "http://127.0.0.1:9", "--ledger",
                               self.path("missing/ledger.json")], env=self.env, capture_output=True, check=False)
        self.assertEqual(done.returncode, 73, done.stderr)

    def test_a_reader_of_events_that_does_not_read(self):
        """More events than a pipe takes, and nobody reads them: the gateway works on and ends well."""
        up = self.upstream(Echo)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic")
        client = g.client()
        for _ in range(400):
            client.request("POST", "/v1/messages", json.dumps(self.ASK), {"x-api-key": g.token})
            self.assertEqual(gateway.Answer(client.getresponse()).status, 200)
        client.close()
        g.process.terminate()
        out, _ = g.process.communicate(timeout=harness.PATIENCE)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([e["seq"] for e in lines], list(range(1, 401)))

    def test_a_reader_of_events_that_reads_again(self):
        """Lines that do not fit in the 1 MiB that waits for the reader are dropped; their numbers are skipped."""
        calls = 2500
        with open(self.path("script.yaml"), "w", encoding="utf-8") as f:
            f.write("steps: [{say: hello}]\n")
        g = self.gateway("--script", self.path("script.yaml"))
        client = g.client()

        def call():
            client.request("POST", "/v1/messages", json.dumps(self.ASK), {"x-api-key": g.token})
            self.assertEqual(gateway.Answer(client.getresponse()).status, 200)

        for _ in range(calls):
            call()
        lines = [json.loads(g.process.stdout.readline()) for _ in range(300)]
        call()  # there is room again
        client.close()
        g.process.terminate()
        out = g.process.stdout.read()  # communicate() would leave out what is buffered
        lines += [json.loads(line) for line in out.splitlines()]
        seen = [e["seq"] for e in lines]
        self.assertEqual(seen, [e["context"]["exchange"] for e in lines])
        self.assertEqual((seen[:1000], seen[-1]), (list(range(1, 1001)), calls + 1))
        self.assertEqual(seen, sorted(set(seen)))
        self.assertLess(len(seen), calls)

    def test_the_status_line(self):
        up = self.upstream(Echo)
        reader, writer = os.openpty()
        line = [harness.CINCH, "gateway", "--upstream", f"a={up.url},format=anthropic", "--token", gateway.TOKEN,
                "--max-usd", "5"]
        process = subprocess.Popen(line, env={**self.env, "TERM": "xterm"}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=writer)
        self.addCleanup(self.reap, process)
        os.close(writer)
        url = process.stdout.readline().decode().split("'")[1]
        g = gateway.Gateway(process, {"url": url, "token": gateway.TOKEN, "socket": None})
        self.assertEqual(self.ask(g).status, 200)
        shown = b""
        while b"1 calls  11 tokens in, 7 out" not in shown:
            shown += os.read(reader, 4096)
        self.assertIn(b"of $5.00", shown)
        process.terminate()
        process.communicate(timeout=harness.PATIENCE)
        os.close(reader)

    def test_a_refused_run_names_the_limit(self):
        up = self.upstream(Echo)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--max-usd", "0.0001")
        agent = self.write("agent.py", "import json, os, urllib.request\n"
                           f"body = {json.dumps(self.ASK)!r}.encode()\n"
                           "request = urllib.request.Request(os.environ['CINCH_GATEWAY_URL'] + '/v1/messages', body,\n"
                           "    {'x-api-key': os.environ['CINCH_GATEWAY_TOKEN']})\n"
                           "urllib.request.urlopen(request)\n")
        routes = [{"model": "*", "upstream": g.url, "key": "UPPER"}]
        r = self.run_command("/usr/bin/python3", agent, options=[
            "--read", agent, "--set", f"gateway.routes={json.dumps(routes)}"], env={"UPPER": g.token})
        self.assertEqual((r.code, r.reason), (78, "budget"), r.stderr)
        self.assertEqual(r.result["evaluation_error"]["details"]["exceeded_dimension"], "usd")
        self.assertIn("the next call could cost up to", r.result["error"])
        self.stop(g)


class Embedding(gateway.Handler):
    """Endpoints that no codec reads."""

    REPLIES = {
        "/v1/embeddings": {"object": "list", "data": [{"embedding": [0.25] * 3000}], "model": "m",
                           "usage": {"prompt_tokens": 8, "total_tokens": 8}},
        "/v1/completions": {"choices": [{"text": " there"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
        "/v1beta/models/m:embedContent": {"embedding": {"values": [0.5]}},
        "/v1beta/models/m:batchEmbedContents": {"embeddings": [], "usageMetadata": {"promptTokenCount": 6}},
        "/v1/responses/input_tokens": {"object": "response.input_tokens", "input_tokens": 5},
    }

    def do_POST(self):
        body = self.read_body()
        self.server.upstream.seen.append((self.path, body))
        self.answer(200, json.dumps(self.REPLIES[self.path]).encode(), [("x-request-id", "r1")])


class MoreEndpoints(gateway.Case):
    REQUESTS = (("chat", "/v1/embeddings", b'{"input":  "hi", "model": "m"}', (8, 0)),
                ("responses", "/v1/embeddings", b'{"input":  "hi", "model": "m"}', (8, 0)),
                ("chat", "/v1/completions", b'{"prompt": "hi", "model": "m", "max_tokens": 9}', (3, 2)),
                ("gemini", "/v1beta/models/m:embedContent", b'{"content": {"parts": [{"text": "hi"}]}}', None),
                ("gemini", "/v1beta/models/m:batchEmbedContents", b'{"requests": []}', (6, 0)),
                ("responses", "/v1/responses/input_tokens", b'{"model": "m", "input": "hi"}', (0, 0)))

    def test_they_pass_unchanged_and_are_metered(self):
        for form, path, body, used in self.REQUESTS:
            with self.subTest(path=path, format=form):
                up = self.upstream(Embedding)
                g = self.gateway("--upstream", f"a={up.url},format={form}", "--max-tokens", "500")
                a = g.request("POST", path, body)
                self.assertEqual((a.status, a.json()), (200, Embedding.REPLIES[path]))
                self.assertEqual((up.seen, a.fields["x-request-id"]), ([(path, body)], "r1"))
                m = g.metrics()
                counted = (m['cinch_tokens_total{kind="input"}'], m['cinch_tokens_total{kind="output"}'])
                if used is None:  # nothing is reported: the prompt is estimated
                    self.assertGreater(counted[0], 0)
                    self.assertEqual(counted[1], 0)
                else:
                    self.assertEqual(counted, used)
                self.stop(g)

    def test_the_budget_holds_for_them(self):
        up = self.upstream(Embedding)
        g = self.gateway("--upstream", f"a={up.url},format=chat", "--max-tokens", "24")
        body = b'{"model": "m", "input": "hi"}'
        statuses = [g.request("POST", "/v1/embeddings", body).status for _ in range(4)]
        self.assertEqual((statuses, len(up.seen)), ([200, 200, 400, 400], 2))
        self.stop(g)

    def test_another_format_has_no_such_endpoint(self):
        up = self.upstream(Embedding)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic")
        a = g.request("POST", "/v1/embeddings", b'{"model": "m", "input": "hi"}')
        self.assertEqual((a.status, up.seen), (400, []))
        self.assertIn("upstream 'a' has another format and no such endpoint", a.json()["error"]["message"])
        counted = g.request("POST", "/v1/responses/input_tokens", b'{"model": "m", "input": "hello there"}').json()
        self.assertEqual(counted["object"], "response.input_tokens")
        self.assertGreater(counted["input_tokens"], 0)
        self.stop(g)


class Translated(gateway.Case):
    def test_ids_and_rate_limits(self):
        """The provider's id of a request and its rate limits reach the client; its cookies and account do not."""
        headers = {"x-request-id": "req-7", "x-ratelimit-remaining-tokens": "99", "anthropic-ratelimit-requests-limit": "5",
                   "Set-Cookie": "c=1", "openai-organization": "org-1"}
        with Provider(Say("hi", headers=headers), Fail(400, {**headers, "retry-after": "3"})) as p:
            g = self.gateway("--upstream", f"a={p.url},format=chat")
            for stream in (False, True):
                p.plan = [Say("hi", headers=headers)]
                a = g.request("POST", "/v1/messages", json.dumps({**MESSAGE, "stream": stream}))
                self.assertEqual((a.status, a.fields["x-request-id"]), (200, "req-7"))
                self.assertEqual(a.fields["x-ratelimit-remaining-tokens"], "99")
                self.assertEqual(a.fields["anthropic-ratelimit-requests-limit"], "5")
                self.assertFalse({"set-cookie", "openai-organization"} & set(a.fields))
            p.plan = [Fail(400, {**headers, "retry-after": "3"})]
            a = g.request("POST", "/v1/messages", json.dumps(MESSAGE))
            self.assertEqual((a.status, a.fields["x-request-id"], a.fields["retry-after"]), (400, "req-7", "3"))


class Chain(gateway.Case):
    def test_a_gateway_behind_a_gateway_shares_its_budget(self):
        up = self.upstream(Echo)
        above = self.gateway("--upstream", f"a={up.url},format=anthropic", "--max-calls", "3",
                             token="token-of-the-upper-one")
        below = [self.gateway("--upstream", f"up={above.url},key=UPPER", env={"UPPER": above.token})
                 for _ in range(2)]
        body = json.dumps(MESSAGE).encode()
        statuses = [below[i % 2].request("POST", "/v1/messages", body).status for i in range(5)]
        self.assertEqual((statuses[:3], len(up.seen)), ([200] * 3, 3))
        self.assertTrue(all(s >= 400 for s in statuses[3:]))
        self.assertEqual(gateway.sha(up.seen[0][3]), gateway.sha(body))
        refused = below[0].request("POST", "/v1/messages", body)
        self.assertEqual(refused.fields["x-cinch-reason"], "budget")
        for g in (*below, above):
            self.stop(g)

    def test_other_formats_pass_the_chain_to_be_translated_above(self):
        up = self.upstream(Echo)
        above = self.gateway("--upstream", f"a={up.url},format=anthropic")
        below = self.gateway("--upstream", f"up={above.url},key=UPPER", env={"UPPER": above.token})
        a = below.request("POST", "/v1beta/models/m:generateContent", json.dumps(
            {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode())
        self.assertEqual(a.json()["candidates"][0]["content"]["parts"][0]["text"], "h\u00e9llo")
        a = below.request("POST", "/v1/responses", json.dumps({"model": "m", "input": "hi"}).encode())
        self.assertEqual(a.json()["output"][-1]["content"][0]["text"], "h\u00e9llo")
        for g in (below, above):
            self.stop(g)


class Errors(gateway.Case):
    SHAPES = {
        "/v1/messages": lambda e: e["error"]["type"],
        "/v1/chat/completions": lambda e: e["error"]["type"],
        "/v1/responses": lambda e: e["error"]["type"],
        "/v1beta/models/m:generateContent": lambda e: e["error"]["status"],
    }

    def test_refusals_have_the_shape_of_the_format(self):
        g = self.gateway("--upstream", "a=http://127.0.0.1:9,format=anthropic", "--no-retries")
        for path, kind in self.SHAPES.items():
            a = g.request("POST", path, b"{}", token=False)
            self.assertEqual(a.status, 401, path)
            self.assertTrue(kind(a.json()), path)
        a = g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode())
        self.assertEqual(a.status, 502)
        self.assertEqual(a.json()["error"]["type"], "api_error")
        self.stop(g)

    def test_unknown_paths_and_health(self):
        g = self.gateway("--upstream", "a=http://127.0.0.1:9,format=anthropic")
        self.assertEqual(g.request("HEAD", "/", token=False).status, 404)
        self.assertEqual(g.request("GET", "/nowhere", token=False).status, 404)
        self.assertEqual(g.request("GET", "/healthz", token=False).json(), {"status": "ok"})
        self.assertEqual(g.request("GET", "/metrics", token=False).status, 401)
        self.assertEqual(g.request("GET", "/metrics").status, 200)
        self.stop(g)

    def test_start_that_cannot_be(self):
        for args, words in ((["--upstream", "ftp://x"], "address"),
                            ([], "upstream"),
                            (["--script", "missing.yaml"], "missing.yaml"),
                            (["--upstream", "http://127.0.0.1:9", "--route", "x=nobody"], "nobody"),
                            (["--upstream", "http://127.0.0.1:9", "--listen", "0.0.0.0:0"], "loopback"),
                            (["--upstream", "https://api.anthropic.com"], "ANTHROPIC_API_KEY"),
                            (["--upstream", "a=http://127.0.0.1:9", "--upstream", "b=http://127.0.0.1:8"],
                             "no --route selects one"),
                            (["--config", "none.yaml"], "none.yaml"),
                            (["--config", self.write("c.yaml", "gateway: {upstrem: x}\n")], "did you mean 'upstream'"),
                            (["--config", self.write("d.yaml", "name: x\n")], "the key 'gateway' is missing"),
                            (["--upstream", "http://127.0.0.1:9", "--allow", "a b"], "a b")):
            r = self.cinch("gateway", *args)
            self.assertNotEqual(r.code, 0)
            self.assertIn(words, r.stderr.decode())


class Life(gateway.Case):
    def test_a_unix_socket_and_its_end(self):
        up = self.upstream(Echo)
        path = os.path.join(self.dir, "g.sock")
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--socket", path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(g.request("POST", "/v1/messages", json.dumps(MESSAGE).encode()).status, 200)
        self.stop(g)
        self.assertFalse(os.path.exists(path))

    def test_a_socket_where_there_is_no_directory(self):
        path = os.path.join(self.dir, "none", "g.sock")
        r = self.cinch("gateway", "--upstream", "a=http://127.0.0.1:9", "--socket", path)
        self.assertEqual(r.code, 73, r.stderr)
        self.assertIn(path, r.stderr.decode())

    def test_variables_for_an_agent(self):
        g = self.gateway("--upstream", "a=http://127.0.0.1:9", "--print-env", "command")
        env = g.told["env"]
        self.assertEqual(env["ANTHROPIC_BASE_URL"], g.url)
        self.assertEqual(env["OPENAI_BASE_URL"], g.url + "/v1")
        self.assertEqual(env["ANTHROPIC_API_KEY"], g.token)
        self.stop(g)

    def test_variables_for_every_adapter(self):
        """Whatever a profile writes about its gateway can be filled in without a task."""
        listed = subprocess.run([harness.CINCH, "--quiet", "adapters"], env=self.env, capture_output=True, text=True,
                                check=True, stdin=subprocess.DEVNULL).stdout.split()
        self.assertIn("codex", listed)
        for adapter in listed:
            shown = subprocess.run([harness.CINCH, "adapters", "show", adapter], env=self.env, capture_output=True,
                                   text=True, check=True, stdin=subprocess.DEVNULL).stdout
            if "{gateway_url}" not in shown:
                continue
            with self.subTest(adapter):
                g = self.gateway("--upstream", "a=http://127.0.0.1:9", "--print-env", adapter)
                env = {k: v for k, v in g.told["env"].items() if not k.startswith("CINCH_")}
                self.assertIn(g.url, json.dumps([env, g.told.get("files")]))
                self.stop(g)

    def test_an_agent_that_is_led_by_a_file(self):
        g = self.gateway("--upstream", "a=http://127.0.0.1:9", "--print-env", "opencode")
        provider = g.told["files"]["config"]["provider"]["cinch"]
        self.assertEqual(provider["options"], {"baseURL": g.url + "/v1", "apiKey": "{env:OPENAI_API_KEY}"})
        self.assertEqual(g.told["env"]["OPENAI_API_KEY"], g.token)
        self.assertEqual(provider["models"]["default"]["id"], "default")  # no task, so no model of one
        self.stop(g)
        for adapter, words in (("opencode", '#         "baseURL": "http://127.0.0.1:'), ("codex", "# [model_providers")):
            process = subprocess.Popen([harness.CINCH, "gateway", "--upstream", "a=http://127.0.0.1:9", "--print-env", adapter],
                                       env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            self.addCleanup(self.reap, process)
            text = ""
            while words[2:].strip() not in text:
                line = process.stdout.readline().decode()
                self.assertTrue(line, text)
                text += line
            process.terminate()

    def test_a_stop_lets_answers_finish(self):
        release = threading.Event()

        class Slow(gateway.Handler):
            def do_POST(self):
                self.read_body()
                self.start_stream()
                self.chunk(b"data: one\n\n")
                release.wait(harness.PATIENCE)
                self.chunk(b"data: two\n\n")
                self.end_stream()

        up = self.upstream(Slow)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic")
        c = g.client()
        c.request("POST", "/v1/messages", json.dumps(MESSAGE), {"x-api-key": g.token})
        response = c.getresponse()
        self.assertEqual(response.read(11), b"data: one\n\n")
        g.process.terminate()
        harness.wait_until(lambda: refuses(g), "the listener to close")
        release.set()
        self.assertEqual(response.read(), b"data: two\n\n")
        c.close()
        self.ends(g)

    def test_a_client_that_leaves_is_counted_all_the_same(self):
        up = self.upstream(Patient)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic")
        leave_and_be_counted(self, up, g)
        self.stop(g)

    def test_a_client_that_leaves_before_the_head_is_counted_all_the_same(self):
        up = self.upstream(Patient)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic")
        leave_and_be_counted(self, up, g, before_head=True)
        self.stop(g)

    def test_a_stream_without_end_does_not_keep_the_gateway_from_stopping(self):
        class Endless(gateway.Handler):
            def do_POST(self):
                self.read_body()
                self.start_stream()
                try:
                    while not self.server.upstream.gone.wait(0.01):
                        self.chunk(b"data: more\n\n")
                except OSError:
                    self.server.upstream.gone.set()

        up = self.upstream(Endless)
        up.gone = threading.Event()
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--grace", "1s")
        c = g.client()
        c.request("POST", "/v1/messages", json.dumps(MESSAGE), {"x-api-key": g.token})
        c.getresponse().read(10)
        c.close()
        self.stop(g)
        self.assertTrue(up.gone.wait(harness.PATIENCE))


def refuses(g):
    try:
        g.connect(1).close()
        return False
    except OSError:
        return True


class Proxy(gateway.Case):
    def auth(self, g):
        return "Basic " + base64.b64encode(b"any:" + g.token.encode()).decode()

    def test_absolute_form_to_a_listed_host(self):
        up = self.upstream(Echo)
        g = self.gateway("--upstream", "a=http://127.0.0.1:9", "--allow", f"localhost:{up.port}")
        c = g.client()
        c.request("POST", f"http://localhost:{up.port}/v1/x?y", b"body", {"Proxy-Authorization": self.auth(g)})
        a = gateway.Answer(c.getresponse())
        self.assertEqual(a.status, 200)
        method, path, fields, body = up.seen[0]
        self.assertEqual((method, path, body), ("POST", "/v1/x?y", b"body"))
        self.assertNotIn("Proxy-Authorization", fields)
        c.close()
        self.stop(g)

    def test_connect_to_a_listed_host(self):
        up = self.upstream(Echo)
        g = self.gateway("--upstream", "a=http://127.0.0.1:9", "--allow", f"127.0.0.1:{up.port}")
        s = g.connect()
        s.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\nProxy-Authorization: %s\r\n\r\n"
                  % (up.port, self.auth(g).encode()))
        head, _ = gateway.read_head(s)
        self.assertEqual(gateway.status_of(head), 200)
        c = http.client.HTTPConnection("x")
        c.sock = s
        for _ in range(3):
            c.request("GET", "/through", headers={"Host": "x"})
            self.assertEqual(c.getresponse().read()[:8], b'{"data":')
        c.close()
        self.stop(g)

    def test_the_gateway_by_the_proxy(self):
        """Some clients ask their proxy for everything, whatever they are told."""
        up = self.upstream(Echo)
        g = self.gateway("--upstream", f"a={up.url},format=anthropic", "--allow", "example.test")
        fields = {"Host": f"127.0.0.1:{g.port}", "x-api-key": g.token}
        s = g.connect()
        # The request behind it in the same packet is not lost.
        s.sendall(b"CONNECT localhost:%d HTTP/1.1\r\nHost: x\r\nProxy-Authorization: %s\r\n\r\n"
                  b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" % (g.port, self.auth(g).encode()))
        head, rest = gateway.read_head(s)
        self.assertEqual(gateway.status_of(head), 200)
        while not rest.endswith(b'\r\n\r\n{"status":"ok"}\n'):
            rest += s.recv(4096) or self.fail(rest)
        self.assertEqual(gateway.status_of(rest), 200)
        c = http.client.HTTPConnection("x")
        c.sock = s
        for _ in range(2):
            c.request("POST", "/v1/messages", json.dumps(MESSAGE), fields)
            self.assertEqual(gateway.Answer(c.getresponse()).status, 200)
        c.request("POST", "/v1/messages", json.dumps(MESSAGE), {**fields, "x-api-key": "wrong"})
        self.assertEqual(gateway.Answer(c.getresponse()).status, 401)
        c.close()
        c = g.client()
        c.request("POST", f"http://127.0.0.1:{g.port}/v1/messages", json.dumps(MESSAGE), fields)
        self.assertEqual(gateway.Answer(c.getresponse()).status, 200)
        c.request("POST", f"http://127.0.0.1:{g.port}/v1/messages", json.dumps(MESSAGE), {"Host": fields["Host"]})
        self.assertEqual(gateway.Answer(c.getresponse()).status, 401)
        c.close()
        self.assertEqual([path for _, path, _, _ in up.seen], ["/v1/messages"] * 3)
        answer = g.raw(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % g.port)
        self.assertEqual(gateway.status_of(answer), 407)
        self.stop(g)

    def test_everything_else_is_refused(self):
        up = self.upstream(Echo)
        g = self.gateway("--upstream", "a=http://127.0.0.1:9", "--allow", "example.test",
                         "--allow", f"localhost.test:{up.port}")
        auth = b"Proxy-Authorization: " + self.auth(g).encode() + b"\r\n"
        for line, status in (
                (b"CONNECT 127.0.0.1:%d HTTP/1.1" % up.port, 403),
                (b"CONNECT 169.254.169.254:80 HTTP/1.1", 403),
                (b"CONNECT [::1]:%d HTTP/1.1" % up.port, 403),
                (b"CONNECT example.test:22 HTTP/1.1", 403),
                (b"CONNECT other.test:443 HTTP/1.1", 403),
                (b"CONNECT example.test HTTP/1.1", 400),
                (b"CONNECT user@example.test:443 HTTP/1.1", 400),
                (b"GET http://127.0.0.1:%d/ HTTP/1.1" % up.port, 403),
                (b"GET http://2130706433/ HTTP/1.1", 403),
                (b"GET http://127.1/ HTTP/1.1", 403),
                (b"GET https://example.test/ HTTP/1.1", 400)):
            answer = g.raw(line + b"\r\nHost: x\r\nConnection: close\r\n" + auth + b"\r\n")
            self.assertEqual(gateway.status_of(answer), status, line)
        answer = g.raw(b"CONNECT example.test:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertEqual(gateway.status_of(answer), 407)
        self.assertEqual(up.seen, [])
        self.assertEqual(g.metrics()["cinch_egress_denied_total"], 8)
        self.stop(g)

    def test_a_name_that_points_at_this_machine_is_refused(self):
        up = self.upstream(Echo)
        try:
            socket.getaddrinfo("localhost", up.port)
        except OSError:
            self.skipTest("no name resolves to this machine here")
        # Allowed by name, on this port; but only names of the world may lead anywhere.
        g = self.gateway("--upstream", "a=http://127.0.0.1:9", "--allow", f"*.localhost:{up.port}")
        answer = g.raw(b"CONNECT rebind.localhost:%d HTTP/1.1\r\nHost: x\r\nProxy-Authorization: %s\r\n\r\n"
                       % (up.port, self.auth(g).encode()))
        self.assertIn(gateway.status_of(answer), (403, 502))  # 502: it does not resolve here
        self.assertEqual(up.seen, [])
        self.stop(g)


if __name__ == "__main__":
    harness.main()
