#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Recording through the real gateway and playing it again: the same bytes, no credential, and the first
difference told by its place. The file is read by the zstd program and a foreign JSON Schema validator."""

import json
import os
import shutil
import signal
import subprocess
import unittest

import gateway
import harness

SCRIPT = """
steps:
  - {when: {text: slow}, say: a slow answer, chunk: 3, pace: 20ms}
  - {when: {text: busy}, fault: {status: 429, retry_after: 3}}
  - {when: {text: cut}, say: hello world, fault: {cut: 200}}
  - {say: 'you said ${last}'}
"""
KEY = "very-secret-key-4711"
SHAPED = "sk" + "-proj-" + "A1b2C3d4" * 4  # as a provider shapes its keys


def body(text, **more):
    return json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}],
                       **more}).encode()


class Case(gateway.Case):
    def record(self, *texts, name="c.cassette", script=SCRIPT):
        g = self.gateway("--script", self.write("s.yaml", script), "--record-to", self.path(name), "--no-retries")
        answers = [self.ask(g, text) for text in texts]
        self.stop(g)
        return answers

    def ask(self, g, text, **more):
        """(status, fields that matter, body, whether it was cut)."""
        with g.connect() as s:
            data = body(text, **more)
            s.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                      b"Content-Type: application/json\r\nx-api-key: " + g.token.encode() +
                      b"\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
            answer = gateway.read_all(s)
        head, _, rest = answer.partition(b"\r\n\r\n")
        return gateway.status_of(head), b"retry-after: 3" in head.lower(), rest

    def lines(self, name="c.cassette"):
        if shutil.which("zstd") is None:
            self.skipTest("the zstd program is not installed")
        done = subprocess.run(["zstd", "-dc", self.path(name)], capture_output=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def replay(self, *args, name="c.cassette"):
        return self.gateway("--cassette", self.path(name), *args)

    def end_of(self, g):
        g.process.terminate()
        _, stderr = g.process.communicate(timeout=harness.PATIENCE)
        return g.process.returncode, stderr.decode()


class Replays(Case):
    def test_the_same_bytes(self):
        texts = ["hi", "slow", "busy", "hi", "cut"]
        first = self.record(*texts)
        self.assertEqual([a[0] for a in first], [200, 200, 429, 200, 200])
        g = self.replay()
        again = [self.ask(g, text) for text in texts]
        self.assertEqual(again, first)
        self.assertEqual(self.end_of(g)[0], 0)

    def test_a_difference_is_named_and_ends_with_65(self):
        self.record("hi", "ho")
        g = self.replay()
        self.assertEqual(self.ask(g, "hi")[0], 200)
        status, _, answer = self.ask(g, "hu", temperature=1)
        self.assertEqual(status, 400)
        self.assertIn('differs from exchange 2 of the cassette at /messages/0/content: \\"ho\\" is now \\"hu\\"',
                      answer.decode())
        code, text = self.end_of(g)
        self.assertEqual(code, 65)
        self.assertIn("/temperature: added 1", text)

    def test_the_difference_of_long_texts_reaches_the_client(self):
        common = "the same words " * 40
        self.record(common + "here")
        g = self.replay()
        status, _, answer = self.ask(g, common + "there")
        self.assertEqual(status, 400)
        message = json.loads(answer)["error"]["message"]
        self.assertIn("words here", message)
        self.assertIn("words there", message)
        self.assertEqual(self.end_of(g)[0], 65)

    def test_fields_and_patterns_that_a_replay_ignores(self):
        self.record("job 4711")
        g = self.replay("--volatile-field", "/model", "--volatile-pattern", "job [0-9]+")
        self.assertEqual(self.ask(g, "job 12", model="another")[0], 200)
        self.assertEqual(self.end_of(g)[0], 0)
        for wrong in (["--volatile-field", "model"], ["--volatile-pattern", "("]):
            done = subprocess.run([harness.CINCH, "gateway", "--cassette", self.path("c.cassette"), *wrong],
                                  env=self.env, capture_output=True, check=False)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn(b"volatile", done.stderr)

    def test_the_whole_report_is_for_people(self):
        self.record("hi")
        process = subprocess.Popen([harness.CINCH, "gateway", "--cassette", self.path("c.cassette"), "--token",
                                    gateway.TOKEN], env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.reap, process)
        url = process.stdout.readline().decode().split("'")[1]
        g = gateway.Gateway(process, {"url": url, "token": gateway.TOKEN, "socket": None})
        self.ask(g, "hi", **{f"field{i}": "x" * 100 for i in range(20)})
        code, text = self.end_of(g)
        self.assertEqual(code, 65)
        for i in range(20):
            self.assertIn(f"/field{i}: added", text)

    def test_as_fast_as_recorded(self):
        self.record("slow")
        g = self.replay("--replay-speed", "1")
        self.assertEqual(self.ask(g, "slow")[0], 200)
        self.assertEqual(self.end_of(g)[0], 0)
        self.assert_failed(self.cinch("gateway", "--cassette", self.path("c.cassette"), "--replay-speed", "x"), 64)

    def test_all_played(self):
        self.record("hi")
        g = self.replay()
        self.assertEqual(self.ask(g, "hi")[0], 200)
        self.assertEqual(self.ask(g, "hi")[0], 400)
        code, text = self.end_of(g)
        self.assertEqual(code, 65)
        self.assertIn("all 1 recorded exchanges were played", text)

    def test_killed_while_recording(self):
        g = self.gateway("--script", self.write("s.yaml", SCRIPT + "  - {when: {text: x}, say: x}\n"),
                         "--record-to", self.path("c.cassette"))
        first = [self.ask(g, "hi"), self.ask(g, "ho")]
        harness.wait_until(lambda: len(self.lines()) >= 11, "two exchanges in the file")
        g.process.send_signal(signal.SIGKILL)
        g.process.communicate()
        g = self.replay()
        self.assertEqual([self.ask(g, "hi"), self.ask(g, "ho")], first)
        self.assertEqual(self.end_of(g)[0], 0)

    def test_never_over_another(self):
        self.record("hi")
        r = self.cinch("gateway", "--script", self.path("s.yaml"), "--record-to", self.path("c.cassette"))
        self.assert_failed(r, 73, "is there already")


class Contents(Case):
    def test_no_credential_and_valid_lines(self):
        up = self.upstream(Provider)
        g = self.gateway("--upstream", f"anthropic={up.url},format=anthropic,key=PROVIDER_KEY", "--record-to",
                         self.path("c.cassette"), env={"PROVIDER_KEY": KEY})
        self.assertEqual(self.ask(g, "my key is " + SHAPED)[0], 200)
        self.stop(g)
        self.assertEqual(up.seen, [KEY])
        text = json.dumps(self.lines())
        for secret in (KEY, g.token, SHAPED, "x-api-key", "set-cookie", "session=1"):
            self.assertNotIn(secret, text)
        self.assert_schema(self.lines())
        self.assertEqual([line["type"] for line in self.lines()][:4], ["cassette", "exchange", "request", "head"])
        self.assertEqual(self.lines()[-1]["usage"]["input"], 4)

    def assert_schema(self, lines):
        program = ("import json,sys,jsonschema\n"
                   "schema=json.load(open(sys.argv[1]))\n"
                   "jsonschema.Draft202012Validator.check_schema(schema)\n"
                   "v=jsonschema.Draft202012Validator(schema)\n"
                   "[v.validate(line) for line in json.load(sys.stdin)]\n")
        done = subprocess.run(["/usr/bin/python3", "-c", program,
                               os.path.join(harness.ROOT, "schema", "cassette.schema.json")],
                              input=json.dumps(lines), capture_output=True, text=True)
        if "ModuleNotFoundError" in done.stderr:
            self.skipTest("python3-jsonschema is not installed")
        self.assertEqual(done.returncode, 0, done.stderr)


class Provider(gateway.Handler):
    """Says back what it must not, in a field and in the body."""

    def do_POST(self):
        self.read_body()
        key = self.headers.get("x-api-key")
        self.server.upstream.seen.append(key)
        self.answer(200, json.dumps({
            "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "your key is " + key}],
            "usage": {"input_tokens": 4, "output_tokens": 2}}).encode(), [("Set-Cookie", "session=1")])


class Command(Case):
    def test_show_diff_and_redact(self):
        self.record("hi", "secret word tulip-4711")
        self.record("hi", "another word", name="d.cassette")
        r = self.cinch("cassette", "show", "--format", "json", self.path("c.cassette"))
        shown = json.loads(r.stdout)
        self.assertEqual([x["status"] for x in shown["exchanges"]], [200, 200])
        r = self.cinch("cassette", "show", "-x", "2", self.path("c.cassette"))
        self.assertIn(b"you said secret word", r.stdout)
        self.assertEqual(self.cinch("cassette", "diff", self.path("c.cassette"), self.path("c.cassette")).code, 0)
        r = self.cinch("cassette", "diff", self.path("c.cassette"), self.path("d.cassette"))
        self.assertEqual(r.code, 65)
        self.assertIn(b"exchange 2, POST /v1/messages", r.stdout)
        self.assertIn(b"request /messages/0/content: ", r.stdout)
        r = self.cinch("cassette", "redact", "-s", "WORD", self.path("c.cassette"), self.path("clean"),
                       env={"WORD": "tulip-4711"})
        self.assertEqual(r.code, 0, r.stderr)
        self.assertNotIn("tulip", json.dumps(self.lines("clean")))
        self.assertIn("[REDACTED:WORD]", json.dumps(self.lines("clean")))

    def test_bad_files(self):
        self.assert_failed(self.cinch("cassette", "show", self.write("x", "hello")), 65, "no zstd")
        self.assert_failed(self.cinch("cassette", "show", self.path("none")), 66, "none")
        self.assert_failed(self.cinch("cassette", "shw", "x"), 64, "use show, diff or redact")
        self.assert_failed(self.cinch("cassette", "diff", self.write("x", "")), 64, "two files")
        self.assert_failed(self.cinch("cassette", "redact", "-s", "NOPE", "a", "b"), 77, "NOPE")


if __name__ == "__main__":
    unittest.main(verbosity=2)
