# SPDX-License-Identifier: MIT
"""Foreign clients: the vendors' own SDKs run streaming, tools, structured output and errors against a scripted
model, directly and through a gateway that translates, for every pair of formats. What they see is the same."""

import functools
import json
import os
import shutil
import subprocess

import gateway
import harness

FILE_TIMEOUT = 600

SDK = os.path.join(harness.ROOT, "tests", "sdk")
# format -> the package that speaks it
CLIENTS = {"anthropic": "anthropic-sdk", "responses": "openai-sdk", "chat": "openai-sdk", "gemini": "genai-sdk"}
TURNS = [
    {"text": "I look.", "stop": "tool",
     "calls": [["get_weather", {"city": 'Zürich "West"', "days": 2}], ["get_time", {}]]},
    {"text": "It is sunny\n12:00.", "stop": "end", "calls": []},
]


@functools.lru_cache(maxsize=None)
def client(name):
    """(directory of the SDK, reason why there is none)."""
    if shutil.which("node") is None:
        return None, "there is no node"
    return harness.real(CLIENTS[name])


class Matrix(gateway.Case):
    def script(self):
        return self.gateway("--script", os.path.join(SDK, "script.yaml"), "--no-retries")

    def between(self, upstream, format):
        """A gateway that asks `upstream` in `format`, whatever its clients speak."""
        return self.gateway("--upstream", f"up={upstream.url},format={format},key=UP_KEY", "--no-retries",
                            env={"UP_KEY": upstream.token})

    def run_sdk(self, name, g):
        directory, why = client(name)
        if directory is None:
            self.skipTest(f"{CLIENTS[name]}: {why}")
        done = subprocess.run(["node", os.path.join(SDK, "main.mjs"), name, directory, g.url, g.token],
                              env={**self.env, "NODE_NO_WARNINGS": "1"}, cwd=self.dir, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return json.loads(done.stdout)

    def check_words(self, got, streamed):
        for key in ("text", "stream"):
            with self.subTest(key):
                answer = got[key]
                self.assertNotIn("thrown", answer)
                self.assertEqual(answer["text"], "Grüße, Welt \U0001f30d")
                self.assertEqual(answer["thinking"], "let me think")
                self.assertEqual(answer["stop"], "end")
                self.assertEqual((answer["input"], answer["cached"], answer["output"]), (1000, 300, 50))
        if streamed:
            self.assertGreater(got["stream"]["pieces"], 2, "a stream came in one piece")

    def check_work(self, got):
        for suffix in ("", "_stream"):
            with self.subTest("tools" + suffix):
                self.assertEqual(got["tools" + suffix], TURNS)
            with self.subTest("structured" + suffix):
                self.assertEqual(got["structured" + suffix], {"answer": 42, "words": ["one", "two"]})
            with self.subTest("length" + suffix):
                self.assertEqual(got["length" + suffix], "length")

    def check_lists(self, name, got):
        self.assertIsInstance(got["models"], list, got["models"])
        if name in ("anthropic", "gemini"):  # the others have no such call
            self.assertGreater(got["count"], 5)

    def check_errors(self, got):
        for key, status, error in (("server", 500, "InternalServerError"), ("context", 400, "BadRequestError"),
                                   ("rate", 429, "RateLimitError"), ("rate_stream", 429, "RateLimitError")):
            with self.subTest(key):
                self.assertEqual(got[key].get("status"), status, got[key])
                self.assertIn(got[key]["error"], (error, "ApiError"))
        with self.subTest("context"):
            self.assertIn("too long", got["context"]["message"])
        with self.subTest("late"):
            self.assertIn("too many guests", got["late"].get("message", ""), got["late"])

    def check_all(self, name, g):
        got = self.run_sdk(name, g)
        self.check_words(got, streamed=True)
        self.check_work(got)
        self.check_lists(name, got)
        self.check_errors(got)


def add(name, upstream):
    def direct(self):
        model = self.script()
        self.check_all(name, model)
        self.stop(model)

    def through(self):
        model = self.script()
        door = self.between(model, upstream)
        self.check_all(name, door)
        self.stop(door)
        self.stop(model)

    suffix = f"to_{upstream}" if upstream else "direct"
    setattr(Matrix, f"test_{name}_{suffix}", through if upstream else direct)


for each in CLIENTS:
    add(each, None)
    for other in CLIENTS:
        add(each, other)


if __name__ == "__main__":
    import unittest
    unittest.main()
