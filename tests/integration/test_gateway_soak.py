#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Many mixed requests, of clients that read all, abort, send garbage or have no token: the gateway does not grow, keeps
no descriptor, and its totals are those that the provider counted itself. `make soak` sends 20,000 of them."""

import json
import os
import random
import socket
import threading

import gateway
import harness

FILE_TIMEOUT = 1800
REQUESTS = int(os.environ.get("CINCH_SOAK", "600"))
CLIENTS = 8
GROWTH = 3 << 20  # bytes: allocators keep some


class Counting(gateway.Handler):
    """Bills each request by its own count, whether its response is read or not."""

    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        with self.server.upstream.lock:
            self.server.upstream.open.append(self.connection)

    def do_POST(self):
        body = json.loads(self.read_body())
        up = self.server.upstream
        if body["max_tokens"] == 13:
            with up.lock:
                up.rejected += 1
            self.answer(400, b'{"type":"error","error":{"type":"invalid_request_error","message":"13 is not accepted"}}')
            return
        used = (len(json.dumps(body["messages"])) // 4, 5 + body["max_tokens"] % 40)
        with up.lock:
            up.calls += 1
            up.input += used[0]
            up.output += used[1]
        chat = self.path.endswith("/chat/completions")
        if not body.get("stream"):
            self.answer(200, json.dumps(self.whole(chat, *used)).encode())
            return
        self.start_stream()
        for event in self.events(chat, *used):
            try:
                self.chunk(event)
            except OSError:
                up.broken += 1
                raise
        self.end_stream()

    def whole(self, chat, read, written):
        if chat:
            return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
                {"index": 0, "message": {"role": "assistant", "content": "word " * written}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}}
        return {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "word " * written}],
                "usage": {"input_tokens": read, "output_tokens": written}}

    def events(self, chat, read, written):
        if chat:
            for _ in range(written):
                yield self.chat_event({"choices": [{"index": 0, "delta": {"content": "word "}}]})
            yield self.chat_event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            yield self.chat_event({"choices": [], "usage": {"prompt_tokens": read, "completion_tokens": written}})
            yield b"data: [DONE]\n\n"
            return
        yield self.event("message_start", message={"id": "m", "type": "message", "role": "assistant", "model": "m",
                                                   "content": [], "usage": {"input_tokens": read, "output_tokens": 1}})
        yield self.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for _ in range(written):
            yield self.event("content_block_delta", index=0, delta={"type": "text_delta", "text": "word "})
        yield self.event("content_block_stop", index=0)
        yield self.event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": written})
        yield self.event("message_stop")

    def event(self, kind, **fields):
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    def chat_event(self, fields):
        return b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "model": "m", **fields}).encode() + b"\n\n"


class Soak(gateway.Case):
    def send(self, g, rng):
        """One request of a kind by chance, on a connection of its own."""
        kind = rng.choice(("read", "read", "read", "cut", "leave", "token", "garbage", "rejected"))
        path, model = rng.choice((("/v1/messages", "claude-x"), ("/v1/chat/completions", "chat-x"),
                                  ("/v1/chat/completions", "claude-x"), ("/v1/messages", "chat-x")))
        stream = rng.random() < 0.6 or kind == "cut"
        body = {"model": model, "max_tokens": 13 if kind == "rejected" else rng.randrange(20, 400),
                "messages": [{"role": "user", "content": "x" * rng.choice((10, 1000, 60000))}]}
        if stream:
            body["stream"] = True
            if path.endswith("completions"):
                body["stream_options"] = {"include_usage": True}
        data = json.dumps(body).encode()
        if kind == "garbage":
            data = data[:-2]
        token = "wrong-token" if kind == "token" else g.token
        with socket.create_connection(("127.0.0.1", g.port), timeout=harness.PATIENCE) as s:
            s.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
            if kind == "leave":
                return
            if kind == "cut":
                s.recv(rng.randrange(1, 600))
                return
            status = gateway.status_of(gateway.read_all(s))
        expected = {"read": 200, "token": 401, "garbage": 400, "rejected": 400}[kind]
        if status != expected:
            self.wrong.append((kind, path, model, stream, status))

    def phase(self, g, count, seed):
        def work(number):
            rng = random.Random(seed * 1000 + number)
            for _ in range(count // CLIENTS):
                try:
                    self.send(g, rng)
                except OSError as e:
                    self.wrong.append(repr(e))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(CLIENTS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        harness.wait_until(lambda: self.at_rest(g), "the end of all calls")
        return g.rss()

    def at_rest(self, g):
        m = g.metrics()
        return m["cinch_calls_in_flight"] == 0 and m["cinch_calls_draining"] == 0 and m["cinch_connections"] == 1

    def descriptors(self, g):
        return len(os.listdir(f"/proc/{g.process.pid}/fd"))

    def test_many_mixed_requests(self):
        self.wrong = []
        up = self.upstream(Counting)
        up.lock, up.open = threading.Lock(), []
        up.calls = up.input = up.output = up.rejected = up.broken = 0
        ledger = self.path("ledger.json")
        g = self.gateway("--upstream", f"claude={up.url},format=anthropic", "--upstream", f"chat={up.url}/v1,format=chat",
                         "--route", "claude-*=claude", "--route", "chat-*=chat", "--ledger", ledger)
        reader = threading.Thread(target=g.process.stdout.read)  # of its events
        reader.start()
        g.metrics()
        before = self.descriptors(g)
        warm = self.phase(g, max(REQUESTS // 4, CLIENTS), 1)
        end = self.phase(g, REQUESTS - REQUESTS // 4, 2)
        for connection in up.open:  # the gateway keeps connections to its upstreams as long as these do
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        harness.wait_until(lambda: self.descriptors(g) <= before, "the descriptors to be closed")
        g.process.terminate()
        g.process.wait(harness.PATIENCE)
        reader.join()
        self.assertEqual((g.process.returncode, self.wrong[:5]), (0, []))
        with open(ledger, encoding="utf-8") as f:
            wire = json.load(f)["wire"]
        self.assertEqual((wire["calls"], wire["input"], wire["output"], wire["estimated"]),
                         (up.calls + up.rejected, up.input, up.output, 0))
        self.assertEqual(up.broken, 0)
        if not harness.SANITIZED:
            self.assertLess(end - warm, GROWTH)
            self.assertLess(end, 20 << 20)


if __name__ == "__main__":
    harness.main()
