# SPDX-License-Identifier: MIT
"""A model provider for tests, foreign to cinch: Python's own HTTP server that speaks the four formats just well
enough, counts what reaches it, and fails as it is told.

    with Provider() as p:
        p.plan = [Fail(429, {"retry-after": "0"}), Say("hi", usage=(100, 20))]     # the last one stays
        ... p.url ...
        p.requests[0].body["model"]
"""

import dataclasses
import http.server
import json
import threading
import time


@dataclasses.dataclass
class Say:
    """A good answer. usage: (input, output); None tells none. calls: (tool, arguments), Anthropic's format only."""
    text: str = "hello"
    usage: tuple = (10, 5)
    cache: tuple = (0, 0)          # read, written
    gate: threading.Event = None   # answered once it is set
    calls: tuple = ()
    headers: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Fail:
    status: int
    headers: dict = dataclasses.field(default_factory=dict)
    body: dict = dataclasses.field(default_factory=lambda: {"error": {"type": "x", "message": "no"}})


@dataclasses.dataclass
class Work:
    """An answer of so many tokens, four characters each, that is billed from the moment the request is read: the
    upstream's own count is Provider.billed. It keeps to the limit of the request, for each of its responses.
    cut: breaks off after this share of the bytes; before_head: waits for it; pause: seconds before the head and after
    half of the bytes, in which a client may leave."""
    output: int = 1000
    cut: float = None
    before_head: threading.Event = None
    pause: float = 0
    silent: bool = False           # reports no usage
    shown: float = 1               # share of the output that is text; the rest are thoughts that nobody sees


@dataclasses.dataclass
class Cut:
    """The head and half an answer, then nothing."""


class Gone:
    """Reads the request and closes the connection."""


class Hang:
    """No answer at all, until the provider is closed."""


@dataclasses.dataclass
class Request:
    path: str
    headers: dict
    raw: bytes

    @property
    def body(self):
        return json.loads(self.raw)


def anthropic(say, body):
    read, written = say.cache
    usage = {"input_tokens": 0, "output_tokens": 0}
    if say.usage:
        usage = {"input_tokens": say.usage[0], "output_tokens": say.usage[1],
                 "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    stop = "tool_use" if say.calls else "end_turn"
    # Ids are of one conversation: no two of its calls share one.
    calls = [{"type": "tool_use", "id": f"toolu_{len(body['messages'])}_{i}", "name": name, "input": arguments}
             for i, (name, arguments) in enumerate(say.calls)]
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"),
             "content": [{"type": "text", "text": say.text}, *calls], "stop_reason": stop, "stop_sequence": None,
             "usage": usage}
    if not body.get("stream"):
        return whole, None
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events = [("message_start", {"message": start}),
              ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
              ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": say.text}}),
              ("content_block_stop", {"index": 0})]
    for i, call in enumerate(calls, 1):
        part = {"type": "input_json_delta", "partial_json": json.dumps(call["input"])}
        events += [("content_block_start", {"index": i, "content_block": {**call, "input": {}}}),
                   ("content_block_delta", {"index": i, "delta": part}), ("content_block_stop", {"index": i})]
    events += [("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None},
                                  "usage": {"output_tokens": usage["output_tokens"]}}),
               ("message_stop", {})]
    return None, "".join(f"event: {n}\ndata: {json.dumps({'type': n, **d})}\n\n" for n, d in events)


def chat(say, body):
    usage = say.usage and {"prompt_tokens": say.usage[0], "completion_tokens": say.usage[1],
                           "total_tokens": sum(say.usage),
                           "prompt_tokens_details": {"cached_tokens": say.cache[0]}}
    base = {"id": "c1", "created": 1, "model": body.get("model")}
    message = {"role": "assistant", "content": say.text}
    if not body.get("stream"):
        whole = {**base, "object": "chat.completion",
                 "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return ({**whole, "usage": usage} if usage else whole), None
    chunk = {**base, "object": "chat.completion.chunk"}
    lines = [{**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
             {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    if usage and body.get("stream_options", {}).get("include_usage"):
        lines.append({**chunk, "choices": [], "usage": usage})
    return None, "".join(f"data: {json.dumps(x)}\n\n" for x in lines) + "data: [DONE]\n\n"


def responses(say, body):
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": say.text, "annotations": []}]}
    usage = say.usage and {"input_tokens": say.usage[0], "output_tokens": say.usage[1], "total_tokens": sum(say.usage),
                           "input_tokens_details": {"cached_tokens": say.cache[0]},
                           "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": body.get("model"), "status": "completed",
             "output": [item], "usage": usage}
    if not body.get("stream"):
        return whole, None
    events = [("response.created", {"response": {**whole, "status": "in_progress", "output": [], "usage": None}}),
              ("response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}),
              ("response.output_text.delta", {"item_id": "msg_1", "output_index": 0, "content_index": 0,
                                              "delta": say.text}),
              ("response.output_item.done", {"output_index": 0, "item": item}),
              ("response.completed", {"response": whole})]
    return None, "".join(f"event: {n}\ndata: {json.dumps({'type': n, 'sequence_number': i, **d})}\n\n"
                         for i, (n, d) in enumerate(events))


def gemini(say, body):
    whole = {"candidates": [{"content": {"role": "model", "parts": [{"text": say.text}]}, "finishReason": "STOP",
                             "index": 0}], "modelVersion": "gemini-test"}
    if say.usage:
        whole["usageMetadata"] = {"promptTokenCount": say.usage[0], "candidatesTokenCount": say.usage[1],
                                  "totalTokenCount": sum(say.usage)}
    return whole, f"data: {json.dumps(whole)}\n\n"


def format_of(path):
    path = path.split("?")[0]
    if ":" in path:
        return gemini
    return {"messages": anthropic, "responses": responses}.get(path.rsplit("/", 1)[-1], chat)


def limit_of(body):
    """Of the output of one response; None: the request names none."""
    config = body.get("generationConfig", {})
    return (body.get("max_completion_tokens") or body.get("max_tokens") or body.get("max_output_tokens")
            or config.get("maxOutputTokens"))


def choices_of(body):
    return max(body.get("n") or 1, body.get("best_of") or 1, body.get("generationConfig", {}).get("candidateCount") or 1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.reply(404, b"{}", "application/json")

    def do_POST(self):
        owner = self.server.owner
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, raw)
        step = owner.take(request)
        if isinstance(step, Hang):
            owner.closing.wait()
            self.close_connection = True
        elif isinstance(step, Gone):
            self.close_connection = True
        elif isinstance(step, Fail):
            self.reply(step.status, json.dumps(step.body).encode(), "application/json", step.headers)
        elif isinstance(step, Cut):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", "100000")
            self.end_headers()
            self.wfile.write(b"data: {\n\n")
            self.close_connection = True
        elif isinstance(step, Work):
            self.work(step, request)
        else:
            self.say(step, request)

    def work(self, step, request):
        each = min(step.output, limit_of(request.body) or step.output)
        # Less than the gateway's estimate, as every tokenizer counts; never more than the prompt has bytes.
        usage = (len(request.raw) // 4, each * choices_of(request.body))
        with self.server.owner.lock:
            self.server.owner.billed.append(usage)
        if step.before_head is not None:
            step.before_head.wait(60)
        time.sleep(step.pause)
        whole, stream = format_of(request.path)(Say("word" * int(each * step.shown), None if step.silent else usage), request.body)
        streams = stream is not None and ":generateContent" not in request.path
        data = stream.encode() if streams else json.dumps(whole).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streams else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        end = len(data) if step.cut is None else int(len(data) * step.cut)
        try:
            self.wfile.write(data[:end // 2])
            self.wfile.flush()
            time.sleep(step.pause)
            self.wfile.write(data[end // 2:end])
        except OSError:
            pass
        self.close_connection = self.close_connection or end < len(data)

    def say(self, step, request):
        if step.gate is not None:
            step.gate.wait(60)
        speak = format_of(request.path)
        limit = request.body.get("max_completion_tokens") or request.body.get("max_tokens")
        if step.usage and limit:  # a provider keeps to it
            step = dataclasses.replace(step, usage=(step.usage[0], min(step.usage[1], limit)))
        whole, stream = speak(step, request.body)
        if stream is None or ":generateContent" in request.path:
            self.reply(200, json.dumps(whole).encode(), "application/json", step.headers)
        else:
            self.reply(200, stream.encode(), "text/event-stream", step.headers)

    def reply(self, status, body, kind, headers=None):
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class Provider:
    def __init__(self, *plan):
        self.plan = list(plan) or [Say()]
        self.requests = []
        self.billed = []  # (input, output) of each Work
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.owner = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, request):
        with self.lock:
            self.requests.append(request)
            return self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]

    def spent(self):
        """What the provider bills: input, output."""
        with self.lock:
            return sum(b[0] for b in self.billed), sum(b[1] for b in self.billed)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


# A harness that leaves: calls one after the other, each over a connection of its own that it closes after so many bytes
# of the answer; 0: before the first, None: never. Prints the statuses; 0 where it did not wait for one.
LEAVER = r'''
import json, os, socket, sys, time, urllib.parse
calls, path, read, body = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
at = urllib.parse.urlsplit(os.environ["CINCH_GATEWAY_URL"])
statuses = []
for i in range(calls):
    data = json.dumps(body).encode()
    with socket.create_connection((at.hostname, at.port), timeout=100) as s:
        s.sendall((f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {os.environ['CINCH_GATEWAY_TOKEN']}\r\n"
                   f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n").encode() + data)
        got = b""
        time.sleep(0.05 if read == 0 else 0)  # most requests have reached the provider by then
        while read is None or len(got) < read:
            piece = s.recv(min(65536, 65536 if read is None else read - len(got)))
            if not piece:
                break
            got += piece
    statuses.append(int(got.split(b" ")[1]) if got else 0)
print(json.dumps({"statuses": statuses, "last": got.decode(errors="replace")[-2000:]}))
'''

# A harness of a few lines: so many calls, so many at a time; prints the statuses and the last body.
AGENT = r'''
import concurrent.futures, json, os, sys, urllib.error, urllib.request
calls, parallel, how = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3] if len(sys.argv) > 3 else "{}")
kind = how.pop("kind", "anthropic")
stop = how.pop("stop", True)
base = os.environ["ANTHROPIC_BASE_URL"] if kind == "anthropic" else os.environ["OPENAI_BASE_URL"]
path = {"anthropic": "/v1/messages", "chat": "/chat/completions"}[kind]
key = os.environ["ANTHROPIC_API_KEY"]
fields = {"content-type": "application/json", "x-api-key": key, "authorization": "Bearer " + key}
body = {"model": "claude-opus-5", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}], **how}
body = {k: v for k, v in body.items() if v is not None}

def call(i):
    request = urllib.request.Request(base + path, json.dumps(body).encode(), fields, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=100) as r:
            return r.status, r.read().decode(), dict(r.headers)
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode(), {k.lower(): v for k, v in e.headers.items()}
    except (urllib.error.URLError, OSError, ValueError) as e:
        return 0, str(e), {}

with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
    results = list(pool.map(call, range(calls)))
print(json.dumps({"statuses": [r[0] for r in results], "last": results[-1][1], "headers": results[-1][2],
                  "refused": next((r[2] for r in results if r[0] == 400), None)}))
sys.exit(0 if all(r[0] == 200 for r in results) else 1)
'''
