# SPDX-License-Identifier: MIT
"""Agents that others wrote, in loops of three turns through a gateway that translates, for every pair of formats: two
parallel calls, thinking, an image, a tool that fails. The providers behind it refuse what the real ones refuse,
and every request that they got is judged by the vendors' own types and by Mistral's validator."""

import json
import os
import shutil
import subprocess

import gateway
import harness
import providers

FILE_TIMEOUT = 900

SDK = os.path.join(harness.ROOT, "tests", "sdk")


class Loops(gateway.Case):
    def start(self):
        """One gateway per format of the upstream."""
        self.up = self.upstream(providers.Provider)
        self.doors = {f: self.gateway("--upstream", f"up={self.up.url},format={f},key=UP_KEY", "--no-retries",
                                      env={"UP_KEY": "key"}) for f in providers.FORMATS}

    def run_loops(self, *command):
        given = {"token": gateway.TOKEN, "gateways": {f: g.url for f, g in self.doors.items()}}
        done = subprocess.run(command, input=json.dumps(given).encode(), capture_output=True, cwd=self.dir,
                              env={**self.env, "NODE_NO_WARNINGS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                                   "LANGSMITH_TRACING": "false"},
                              timeout=harness.PATIENCE * 4)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return json.loads(done.stdout)

    def check_loops(self, found, pairs):
        self.assertEqual(len(found), pairs)
        for key, turns in found.items():
            with self.subTest(key):
                self.assertEqual(turns, providers.TURNS)

    def check_content(self):
        """Nothing was lost on the way: the image, and the results of the tools."""
        for format, body in self.up.seen:
            text = json.dumps(body)
            with self.subTest(format):
                self.assertIn("iVBORw0KGgo", text, "no image")
                if "c1aaaaaaa" in text or text.count("get_weather") > 1:
                    self.assertIn("sunny", text)
                    self.assertIn("no clock", text)

    def judge(self, python):
        requests = [{"format": f, "body": b} for f, b in self.up.seen]
        done = subprocess.run([python, os.path.join(SDK, "judge.py")], input=json.dumps(requests).encode(),
                              capture_output=True, cwd=self.dir, env=self.env, timeout=harness.PATIENCE * 4)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        for request, verdict in zip(requests, json.loads(done.stdout), strict=True):
            with self.subTest(request["format"]):
                self.assertIsNone(verdict, json.dumps(request["body"])[:2000])

    def finish(self):
        for g in self.doors.values():
            self.stop(g)

    def check_python(self, kind):
        python = self.real("python-sdks")
        self.start()
        self.check_loops(self.run_loops(python, os.path.join(SDK, "loops.py"), kind), 32)
        self.check_content()
        return python

    def test_official_sdks(self):
        self.judge(self.check_python("sdk"))
        self.finish()

    def test_langchain(self):
        self.check_python("langchain")  # not judged: some requests are its own, passed on as they are
        self.finish()

    def test_vercel(self):
        if shutil.which("node") is None:
            self.skipTest("there is no node")
        directory = self.real("ai-sdk")
        self.start()
        self.check_loops(self.run_loops("node", os.path.join(SDK, "vercel.mjs"), directory), 32)
        self.check_content()
        self.finish()


if __name__ == "__main__":
    import unittest
    unittest.main()
