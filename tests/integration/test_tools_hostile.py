#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tools that misbehave in every way a program can: each is bounded and reported, leaves nothing behind, and the run goes
on: a second call works, and only what that one wrote is in the patch."""

import json
import os
import unittest

import harness

GOOD = """#!/bin/sh
cat > /dev/null
test "$(cat kept.txt)" = kept || { echo "the workspace is damaged"; exit 1; }
echo good > good.txt
echo all is well
"""


class Hostile(harness.Case):
    def setUp(self):
        super().setUp()
        self.write("ws/kept.txt", "kept\n")
        self.write("ws/deep/below/kept.txt", "kept\n")

    def tool(self, name, text, **more):
        path = self.write(name + ".sh", text if text.startswith("#!") else "#!/bin/sh\n" + text, 0o755)
        return {"name": name, "description": f"The tool {name}.", "command": [path], **more}

    def task(self, text, tool, task):
        script = self.write("model.yaml", json.dumps({"side": False, "steps": [
            {"when": {"turn": 0}, "call": {"tool": "bad", "args": {}}},
            {"when": {"turn": 1}, "call": {"tool": "good", "args": {}}},
            {"when": {"turn": 2, "text": "all is well"}, "say": "done"},
            {"say": "the second tool failed", "name": "otherwise"}]}))
        return self.write("task.yaml", json.dumps({
            "agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.",
            "tools": [self.tool("bad", text, **tool), self.tool("good", GOOD)],
            "gateway": {"script": script}, "limits": {"timeout": 100}, **task}))

    options = ()

    def provoke(self, text, failure, says="", tool=None, task=None):
        """A run with that tool; ToolInvoked of the bad call."""
        # Every one of them writes first: if it fails, that must be gone.
        r = self.run_cinch(self.task("echo trace > trace.txt\nrm kept.txt\n" + text if failure else text,
                                     {"timeout": "20s", **(tool or {})}, task or {}), *self.options)
        self.assertEqual((r.reason, r.result["text"]), ("success", "done"), (r.stderr, r.events("ToolInvoked")))
        bad, good = [e["context"] for e in r.events("ToolInvoked")]
        self.assertEqual((good["name"], good["success"], good["failure"]), ("good", True, None))
        self.assertEqual((bad["name"], bad["success"], bad["failure"]), ("bad", failure is None, failure))
        self.assertIn(says, bad["rendered_output"])
        self.assertLessEqual(len(bad["rendered_output"]), 1000)
        self.assertIsNotNone(bad["duration_ms"])
        patch = r.bytes("diff.patch").decode()
        if failure:
            self.assertEqual([line for line in patch.splitlines() if line.startswith(("+++", "---"))],
                             ["--- /dev/null", "+++ b/good.txt"], patch)
        with open(os.path.join(self.workspace, "kept.txt")) as f:
            self.assertEqual(f.read(), "kept\n")
        self.done = r
        return bad


class Output(Hostile):
    def test_flood(self):
        self.provoke("yes", "flood", "more than 1048576 bytes")

    def test_flood_of_stderr(self):
        bad = self.provoke("head -c 20000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1", "failed")
        self.assertTrue(bad["result"]["message"].endswith("the end"))
        self.assertLess(len(json.dumps(bad)), 100000)

    def test_half_an_answer(self):
        self.provoke("printf '{\"message\": \"fine\", \"value\": {\"a\": [1, 2'", "bad_output", "no usable answer")

    def test_a_value_of_50_mb(self):
        bad = self.provoke("printf '{\"value\": \"'; head -c 50000000 /dev/zero | tr '\\0' x; printf '\"}'", "flood")
        self.assertIsNone(bad["result"]["value"])
        self.assertLess(os.path.getsize(self.done.path("events.jsonl")), 1 << 20)

    def test_an_answer_that_is_too_deep(self):
        self.provoke("printf '{\"value\": '; head -c 5000 /dev/zero | tr '\\0' '['; printf 1; "
                     "head -c 5000 /dev/zero | tr '\\0' ']'; printf '}'", "bad_output")

    def test_no_text_at_all(self):
        # Neither UTF-8 nor without zeros; the record stays valid.
        bad = self.provoke("printf 'a\\000b\\377\\376c'; exit 1", "failed")
        self.assertIn("a\0b\ufffd", bad["rendered_output"])

    def test_state_that_makes_no_sense(self):
        self.provoke("echo '{\"value\": 1, \"state\": [{\"op\": \"explode\", \"slice\": \"x\"}]}'", "bad_output")
        self.assertNotIn("x", [s["slice_type"] for s in self.done.lines("session", "after.jsonl")[0]["slices"]])


class Ends(Hostile):
    def test_never(self):
        self.provoke("trap '' TERM INT HUP; while :; do sleep 60; done", "timeout", "0.5 seconds", tool={"timeout": "0.5s"})

    def test_by_a_signal(self):
        self.provoke("echo '{\"message\": \"fine\"}'; kill -SEGV $$", "crashed", "signal 11")
        self.provoke("kill -KILL $$", "crashed", "signal 9")

    def test_with_a_code(self):
        self.provoke("echo '{\"success\": true, \"message\": \"fine\"}'; exit 9", "failed", "fine")

    def test_does_not_begin(self):
        r = self.run_cinch(self.task("#!/no/such/interpreter\n", {}, {}))
        self.assertEqual(r.reason, "success", r.stderr)
        bad = r.events("ToolInvoked")[0]["context"]
        self.assertEqual(bad["failure"], "internal")


class Processes(Hostile):
    def test_forks_away(self):
        bad = self.provoke("setsid sh -c 'trap \"\" TERM HUP; exec > /dev/null 2>&1 < /dev/null; sleep 30; echo late > late.txt' &\n"
                           "echo answered", None, "answered")
        self.assertEqual(bad["leaked"], 2)  # the shell and its sleep
        self.assertNotIn(b"late", self.done.bytes("diff.patch"))

    def test_holds_its_pipes(self):
        bad = self.provoke("sh -c 'trap \"\" TERM; sleep 60; echo late > late.txt; echo more' &\necho answered", None, "answered")
        self.assertGreaterEqual(bad["leaked"], 1)
        self.assertEqual(bad["rendered_output"], "answered")
        self.assertNotIn(b"late", self.done.bytes("diff.patch"))

    def test_changes_files_after_it_answered(self):
        # Its answer is complete and its output closed, but it goes on: that is still the call.
        bad = self.provoke("echo '{\"message\": \"answered\"}'; exec >&- 2>&-\necho after > after.txt; exit 1", "failed", "answered")
        self.assertEqual(bad["leaked"], 0)

    def test_a_storm(self):
        # Not a shell: one that may not fork any more ends by itself, and the call with it.
        storm = ("import os, signal\n"
                 "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
                 "def fork():\n"
                 "    try: return os.fork()\n"
                 "    except OSError: return -1\n"
                 "fork(); fork()\n"
                 "while True:\n"
                 "    if fork() == 0: os._exit(0)\n")
        self.provoke(f"exec /usr/bin/python3 -c '{storm}'", "timeout",
                     tool={"timeout": "1s"}, task={"sandbox": {"pids": 100}})


class Files(Hostile):
    def test_writes_outside(self):
        outside = self.make_dir("outside")
        home = self.env["HOME"]
        bad = self.provoke(f"for d in {outside} {home} {self.dir} / /usr /etc; do echo x > $d/planted; done\n"
                           "ln -s / root; echo x > root/usr/planted\n"
                           f"echo x > ../planted; test -e {outside} && echo seen; exit 0\n", None)
        self.assertNotIn("seen", bad["rendered_output"])
        for path in (outside, home, self.dir, "/", "/usr", "/etc"):
            self.assertFalse(os.path.exists(os.path.join(path, "planted")), path)

    def test_deletes_the_workspace(self):
        self.provoke("rm -rf -- \"$PWD\" ./* ./.[!.]*; exit 1", "failed")

    def test_deletes_the_workspace_and_calls_it_a_success(self):
        # Nobody can tell that it was not meant; it is in the patch, and the user's own files are not touched.
        r = self.run_cinch(self.task("rm -rf ./*; echo cleaned\n", {}, {}))
        self.assertEqual((r.reason, r.result["text"]), ("success", "the second tool failed"), r.stderr)
        self.assertIn(b"-kept", r.bytes("diff.patch"))
        self.assertTrue(os.path.exists(os.path.join(self.workspace, "deep", "below", "kept.txt")))

    def test_makes_what_cannot_be_undone(self):
        self.provoke("mkdir locked; echo x > locked/file; chmod 000 locked; mkfifo pipe; ln -s /etc/passwd link\n"
                     "chmod 000 deep; exit 1", "failed")

    def test_fills_the_disk(self):
        self.provoke("head -c 300000000 /dev/zero > huge; exit 1", "failed")


class WithoutSandbox(Hostile):
    """No namespaces, no overlay: copies and process trees must do."""
    options = ("--sandbox", "off", "--workspace-mode", "copy")

    def test_deletes_the_workspace(self):
        self.provoke("rm -rf -- \"$PWD\" ./* ./.[!.]*; exit 1", "failed")

    def test_never_ends(self):
        self.provoke("trap '' TERM INT HUP; while :; do sleep 60; done", "timeout", tool={"timeout": "0.5s"})

    def test_forks_away(self):
        bad = self.provoke("setsid sh -c 'trap \"\" TERM HUP; exec > /dev/null 2>&1 < /dev/null; sleep 30; echo late > late.txt' &\n"
                           "echo answered", None, "answered")
        self.assertEqual(bad["leaked"], 2)
        self.assertNotIn(b"late", self.done.bytes("diff.patch"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount without a sandbox")
    def test_mounts(self):
        place = self.make_dir("place")
        self.provoke(f"mount -t tmpfs none {place} && echo mounted", None, "mounted")
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            self.assertNotIn(place, f.read())


if __name__ == "__main__":
    harness.main()
