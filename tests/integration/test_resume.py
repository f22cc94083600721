#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A conversation goes on in another run: the record keeps what the harness needs for it, clean, and the next request of
the real harness holds what was said before."""

import json
import os

import harness

FILE_TIMEOUT = 900

SCRIPT = "steps:\n  - {say: the answer is forty-two}\n"


@harness.about_programs
class Real:
    """The classes below say which program."""

    name = None

    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real(self.name)) + ":" + self.env["PATH"]
        self.write("model.yaml", SCRIPT)

    def say(self, words, *options):
        r = self.run_cinch("--adapter", self.name, "--script", self.path("model.yaml"), "--timeout", "100s", *options,
                           words)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stdout.log")[-2000:] + r.bytes("stderr.log")[-2000:])
        return r

    def requests(self, r):
        """All that the model was asked in a run, as text."""
        cassette = r.path("evidence", "traffic.cassette")
        lines = self.cinch("cassette", "show", cassette).stdout.decode().splitlines()[1:]
        return "".join(self.cinch("cassette", "show", "-x", line.split()[0], cassette).stdout.decode() for line in lines)

    def test_it_goes_on(self):
        """Twice: what was said in the first run is in the request of the third, and only the new words are the answer."""
        first = self.say("what is the question")
        self.assertTrue(first.exists("session", "harness"))
        second = self.say("and why is that", "--resume", first.output)
        asked = self.requests(second)
        for words in ("what is the question", "the answer is forty-two", "and why is that"):
            self.assertIn(words, asked)
        self.assertEqual(second.result["text"].strip(), "the answer is forty-two")
        third = self.say("and what then", "--resume", second.output)
        asked = self.requests(third)
        for words in ("what is the question", "the answer is forty-two", "and why is that", "and what then"):
            self.assertIn(words, asked)
        self.assertEqual(third.result["text"].strip(), "the answer is forty-two")
        said = [e["detail"].get("text") for e in third.lines("transcript.jsonl") if e.get("entry_type") == "user_message"]
        self.assertEqual(said, ["and what then"])  # what was said before is in the records of those runs


class SharedHome:
    """Harnesses that need no configuration of ours: their conversations are in the user's home, and nothing else is."""

    def test_it_goes_on_in_a_shared_home(self):
        home = self.env["HOME"]
        first = self.say("what is the question", "--home", "shared")
        found = [os.path.relpath(os.path.join(base, f), home) for base, _, files in os.walk(home) for f in files]
        self.assertEqual([f.startswith(".claude/projects/") and f.endswith(".jsonl") for f in found if f != ".claude.json"], [True], found)
        second = self.say("and why is that", "--home", "shared", "--resume", first.output)
        asked = self.requests(second)
        for words in ("what is the question", "the answer is forty-two", "and why is that"):
            self.assertIn(words, asked)


class ClaudeCode(SharedHome, Real, harness.Case):
    name = "claude-code"


# Codex, Gemini CLI, OpenCode and Qwen Code: scenario resume_goes_on of the kit.


class ClaudeAcp(SharedHome, Real, harness.Case):
    name = "claude-acp"


class CodexAcp(Real, harness.Case):
    name = "codex-acp"


PROFILE = """
name: {name}
driver: oneshot
argv: ["{{command...}}", {{when: resume, args: ["{{resume}}"]}}]
home: private
session:
  files: [talk/*/s-*.txt, talk/state.bin]
  rename: {{from: s-, to: s-old-}}
{more}
output:
  format: ndjson
  rules:
    - {{when: {{/type: end}}, session_id: /id, text: /text}}
"""

# Tells what it finds of earlier conversations, adds its own.
AGENT = r"""
cd "$HOME" && mkdir -p talk/here
found=$(cat talk/*/s-old-* 2>/dev/null | tr '\n' ' ')
echo "said: $1 $TOP_SECRET" > talk/here/s-1.txt
printf 'bytes\000%s' "$BINARY" > talk/state.bin
ln -s /etc/passwd talk/here/s-link.txt
echo other > talk/here/other.txt
echo "{\"type\": \"end\", \"id\": \"c-7\", \"text\": \"$1 found: $found\"}"
"""


class Kept(harness.Case):
    def setUp(self):
        super().setUp()
        for name in ("talker", "other"):
            self.write(f"profiles/{name}.yaml", PROFILE.format(name=name, more="  anywhere: true"))
        self.script("ws/agent", AGENT)
        self.env["TOP_SECRET"] = "hunter2-hunter2"

    def talk(self, *options, adapter="talker", env=None):
        return self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", adapter, "-s", "TOP_SECRET", "-e",
                              "BINARY", *options, "do it", "--", self.path("ws", "agent"), env=env)

    def test_what_is_kept(self):
        """Files of the patterns, without secrets and links; they come back under their new names."""
        first = self.talk()
        self.assertEqual(first.reason, "success", first.stderr + first.bytes("stderr.log"))
        kept = sorted(os.path.relpath(os.path.join(base, f), first.path("session", "harness"))
                      for base, _, files in os.walk(first.path("session", "harness")) for f in files)
        self.assertEqual(kept, ["talk/here/s-1.txt", "talk/state.bin"])
        self.assert_not_in_tree(b"hunter2", first.output)
        self.assertEqual(json.loads(first.bytes("session", "harness.json"))["session_id"], "c-7")
        second = self.talk("--resume", first.output)
        self.assertEqual(second.reason, "success", second.stderr + second.bytes("stderr.log"))
        self.assertIn("c-7 found: said:  [REDACTED:TOP_SECRET]", second.result["text"])

    def test_bytes_that_hold_a_secret(self):
        r = self.talk(env={"BINARY": "hunter2-hunter2"})
        self.assertFalse(r.exists("session", "harness", "talk", "state.bin"))
        self.assertIn("'talk/state.bin' of the conversation holds a secret", str(r.manifest["warnings"]))
        self.assert_not_in_tree(b"hunter2", r.output)

    def test_what_cannot_go_on(self):
        first = self.talk()
        r = self.talk("--resume", first.output, adapter="other")
        self.assertEqual((r.code, r.reason), (65, "bad_task"), r.stderr)
        self.assertIn("a conversation of adapter 'talker', not of 'other'", r.manifest["error"])
        r = self.talk("--resume", self.path("ws"))
        self.assertEqual((r.code, r.reason), (66, "missing_input"), r.stderr)
        self.assertIn("is not a record of a conversation", r.manifest["error"])
        r = self.run_cinch("--resume", first.output, "do it", "--", "/bin/true")
        self.assertEqual((r.code, r.reason), (65, "bad_task"), r.stderr)
        self.assertIn("cannot go on with an earlier conversation", r.manifest["error"])

    def test_another_directory(self):
        """A harness that goes by directory would begin anew without a word."""
        self.write("profiles/talker.yaml", PROFILE.format(name="talker", more=""))
        first = self.talk()
        self.make_dir("elsewhere")
        self.write("elsewhere/agent", b"#!/bin/sh\n" + AGENT.encode(), 0o755)
        self.workspace = self.path("elsewhere")
        r = self.talk("--resume", first.output)
        self.assertEqual((r.code, r.reason), (65, "bad_task"), r.stderr)
        self.assertIn("continues only in the same directory", r.manifest["error"])


# Writes down what was said after its answer, bit by bit; if it is told to end before that, it does not.
LATE = """#!/usr/bin/python3
import json, os, select, sys
def say(message):
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
def line():
    text = b""
    while not text.endswith(b"\\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(0)
        text += byte
    return json.loads(text)
while True:
    m = line()
    answer = {"initialize": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True},
                             "agentInfo": {"name": "late", "version": "7.1"}},
              "session/new": {"sessionId": "s-1"}}.get(m["method"], {"stopReason": "end_turn"})
    if m["method"] == "session/prompt":
        with open(os.environ["HOME"] + "/talk.txt", "w") as f:
            f.write("asked\\n")
        say({"method": "session/update", "params": {"sessionId": "s-1", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "done"}}}})
    say({"id": m["id"], "result": answer})
    for word in ("heard: done", "said: done") if m["method"] == "session/prompt" else ():
        if select.select([0], [], [], 0.2)[0]:
            break
        with open(os.environ["HOME"] + "/talk.txt", "a") as f:
            f.write(word + "\\n")
"""


class Late(harness.Case):
    def test_what_is_written_after_the_answer(self):
        self.write("profiles/late.yaml", "name: late\ndriver: acp\nargv: [\"{command...}\"]\nhome: private\n"
                   "session: {files: [talk.txt], written_ms: 60000, written_as: said}\n")
        agent = self.write("ws/agent", LATE, 0o755)
        r = self.run_cinch("--adapter-dir", self.path("profiles"), "--adapter", "late", "do it", "--", agent)
        self.assertEqual(r.reason, "success", r.stderr + r.bytes("stderr.log"))
        self.assertEqual(r.bytes("session", "harness", "talk.txt"), b"asked\nheard: done\nsaid: done\n")
        self.assertEqual(r.manifest["metadata"]["engine"]["version"], "7.1")


if __name__ == "__main__":
    harness.main()
