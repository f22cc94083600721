# SPDX-License-Identifier: MIT
"""What the tests of the gateway share: a gateway in the background, a foreign upstream, and raw sockets.

    class Test(gateway.Case):
        def test_x(self):
            up = self.upstream(gateway.Echo)
            g = self.gateway("--upstream", f"anthropic={up.url},format=anthropic")
            answer = g.request("POST", "/v1/messages", b"{}")
"""

import hashlib
import http.client
import http.server
import json
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.parse

import harness

TOKEN = "token-of-the-test"


class Answer:
    """A response as it came: status, fields (lower case), body."""

    def __init__(self, response):
        self.status = response.status
        self.fields = {k.lower(): v for k, v in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def events(self):
        """The data of server-sent events."""
        found = []
        for block in self.body.decode().replace("\r\n", "\n").split("\n\n"):
            data = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
            if data:
                found.append("\n".join(data))
        return found


class Gateway:
    def __init__(self, process, told):
        self.process = process
        self.told = told
        self.url = told["url"]
        self.token = told["token"]
        self.socket = told["socket"]
        self.port = urllib.parse.urlsplit(self.url).port

    def connect(self, timeout=harness.PATIENCE):
        """A raw connection."""
        if self.socket:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(timeout)
            s.connect(self.socket)
            return s
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def client(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port or 80, timeout=harness.PATIENCE)
        if self.socket:
            c.sock = self.connect()
        return c

    def request(self, method, path, body=None, fields=None, token=True):
        c = self.client()
        try:
            headers = dict(fields or {})
            if token:
                headers.setdefault("Authorization", "Bearer " + self.token)
            c.request(method, path, body, headers)
            return Answer(c.getresponse())
        finally:
            c.close()

    def raw(self, data, timeout=harness.PATIENCE):
        """Sends bytes, returns all that comes until the end of the connection."""
        with self.connect(timeout) as s:
            s.sendall(data)
            return read_all(s)

    def rss(self):
        """Resident memory in bytes, now."""
        with open(f"/proc/{self.process.pid}/status") as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def metrics(self):
        answer = self.request("GET", "/metrics")
        found = {}
        for line in answer.body.decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                found[name] = float(value)
        return found


def read_all(s):
    data = b""
    while True:
        try:
            piece = s.recv(65536)
        except ConnectionResetError:
            return data
        if not piece:
            return data
        data += piece


def read_head(s):
    """The head of an answer and what came behind it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = s.recv(65536)
        if not piece:
            break
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def status_of(data):
    """The status of raw bytes; 0 when there is none."""
    return int(data.split(b" ")[1]) if data.startswith(b"HTTP/1.1 ") else 0


class Handler(http.server.BaseHTTPRequestHandler):
    """A foreign server: Python's own."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # whole answers in one go, as real servers do

    def log_message(self, *args):
        pass

    def read_body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, body, fields=(), type="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def start_stream(self, type="text/event-stream"):
        self.send_response(200)
        self.send_header("Content-Type", type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")
        self.wfile.flush()

    def end_stream(self):
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


def anthropic_events(texts, tokens_in=11, tokens_out=7):
    """A stream as Anthropic sends it."""
    def event(name, **data):
        return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()

    yield event("message_start", message={
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": [],
        "stop_reason": None, "usage": {"input_tokens": tokens_in, "output_tokens": 1}})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for text in texts:
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
    yield event("content_block_stop", index=0)
    yield event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": tokens_out})
    yield event("message_stop")


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512

    def handle_error(self, request, client_address):
        """Clients that leave are what is tested."""


class Upstream:
    def __init__(self, handler, tls=None):
        self.seen = []
        self.server = Server(("127.0.0.1", 0), handler)
        self.server.upstream = self
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"https://localhost:{self.port}" if tls else f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Case(harness.Case):
    def upstream(self, handler, tls=None):
        up = Upstream(handler, tls)
        self.addCleanup(up.close)
        return up

    def gateway(self, *args, env=None, token=TOKEN):
        line = [harness.CINCH, "--format", "json", "gateway", *args]
        if token is not None:
            line += ["--token", token]
        process = subprocess.Popen(line, env={**self.env, **(env or {})}, cwd=self.dir,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.reap, process)
        told = process.stdout.readline()
        if not told:
            self.fail("no gateway: " + process.stderr.read().decode(errors="replace"))
        return Gateway(process, json.loads(told))

    def certificate(self):
        """A certificate for localhost that only its owner trusts: (certificate, key)."""
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed")
        cert, key = self.path("cert.pem"), self.path("key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-days", "2", "-keyout", key, "-out", cert], check=True, capture_output=True)
        return cert, key

    def stop(self, g):
        """Asks it to end, and expects that it does so well (a sanitizer would say otherwise)."""
        g.process.terminate()
        self.ends(g)

    def ends(self, g):
        """The same where it was asked before: a second signal would be an order to hurry."""
        _, err = g.process.communicate(timeout=harness.PATIENCE)
        self.assertEqual(g.process.returncode, 0, err.decode(errors="replace"))
        self.assertEqual(err, b"")


def sha(data):
    return hashlib.sha256(data).hexdigest()
