# SPDX-License-Identifier: MIT
"""show, adapters and doctor on real runs, and the progress of a run on a terminal and elsewhere."""

import json
import subprocess
import os
import signal

import harness
from screen import on_terminal


class Show(harness.Case):
    def test_a_finished_run(self):
        r = self.run_command("sh", "-c", "echo hello; printf '\\033[2J'; exit 3")
        shown = self.cinch("show", r.output)
        text = shown.stdout.decode()
        self.assertEqual((shown.code, shown.stderr), (0, b""))
        self.assertNotIn("\x1b", text)
        self.assertRegex(text, r"(?m)^outcome +failed after .*: the agent exited with 3")
        self.assertIn("the program exited with 3\n", text)
        self.assertNotIn("Problems", text)
        summary = json.loads(self.cinch("show", "--format", "json", r.output).stdout)
        self.assertEqual(summary["status"], "failed")
        self.assertEqual(summary["manifest"], r.manifest)
        self.assertEqual(summary["metrics"], r.metrics)
        self.assertEqual(summary["problems"], [])
        self.assertEqual(self.cinch("show", "-q", r.output).stdout, b"failed\n")

    def test_while_it_runs_and_after_a_kill(self):
        ready = self.path("ws", "ready")
        process, r = self.start("x", "--workspace-mode", "in-place", "--", "sh", "-c",
                                f"echo working; : > {ready}; sleep 1000")
        harness.wait_until(lambda: os.path.exists(ready) and r.bytes("stdout.log"), "the agent's first line")
        before = sorted(os.listdir(r.output))
        text = self.cinch("show", r.output).stdout.decode()
        self.assertRegex(text, rf"(?m)^outcome +running for .*, phase execute, process {process.pid}$")
        self.assertIn("\nstdout.log\n  working\n", text)
        self.assertNotIn("Problems", text)
        self.assertEqual(sorted(os.listdir(r.output)), before)

        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertEqual(self.cinch("show", "-q", r.output).stdout, b"abandoned\n")
        self.assertEqual(self.cinch("recover", r.output).code, 0)
        text = self.cinch("show", r.output).stdout.decode()
        self.assertIn("(reason: interrupted)", text)
        self.assertNotIn("Problems", text)

    def test_no_run_directory(self):
        self.assert_failed(self.cinch("show", self.workspace), 66, "is not a run directory")
        self.assert_failed(self.cinch("show", self.path("nothing")), 66, "No such file")
        self.assert_failed(self.cinch("show"), 66, "run store is empty")


class Adapters(harness.Case):
    PROFILE = "name: mine\ntitle: My own\ndriver: oneshot\nbinary: [no-such-program]\n" \
              "argv: [\"{binary}\"]\nprompt: file\nhome: private\noutput: {format: text}\ncapabilities: []\n"

    def test_list(self):
        text = self.cinch("adapters").stdout.decode()
        self.assertRegex(text, r"(?m)^adapter +title +driver +tested +installed +detail$")
        self.assertRegex(text, r"(?m)^command +Any program +oneshot +- +yes +runs the command after --$")
        self.assertIn("command", self.cinch("adapters", "--format", "quiet").stdout.decode().split())

    def test_of_a_user(self):
        where = os.path.dirname(self.write("mine/mine.yaml", self.PROFILE))
        text = self.cinch("adapters", "--adapter-dir", where).stdout.decode()
        self.assertRegex(text, r"(?m)^mine +My own +oneshot +- +no +not in PATH: no-such-program$")
        found = json.loads(self.cinch("adapters", "--adapter-dir", where, "--format", "json").stdout)["adapters"]
        mine = next(a for a in found if a["name"] == "mine")
        self.assertFalse(mine["available"])
        self.assertEqual(mine["source"], os.path.join(where, "mine.yaml"))
        shown = self.cinch("adapters", "show", "mine", "--adapter-dir", where)
        self.assertEqual(shown.stdout.decode(), self.PROFILE)

    def test_unverified(self):
        """Who uses a profile that nobody could try is told, and why nobody could."""
        where = os.path.dirname(self.write("mine/mine.yaml", self.PROFILE.replace("no-such-program", "sh")
                                           .replace('"{binary}"', '"{binary}", -c, "echo hi"')
                                           + "unverified: it wants a login\n"))
        text = self.cinch("adapters", "--adapter-dir", where).stdout.decode()
        self.assertRegex(text, r"(?m)^mine +My own +oneshot +unverified +yes ")
        shown = json.loads(self.cinch("adapters", "show", "mine", "--adapter-dir", where, "--format", "json").stdout)
        self.assertEqual(shown["unverified"], "it wants a login")
        r = self.run_cinch("do it", "--adapter-dir", where, "--adapter", "mine")
        self.assertEqual(r.reason, "success", r.stderr)
        self.assertIn(b"adapter 'mine' is unverified: it wants a login", r.stderr)

    def test_what_is_shown_can_be_used(self):
        self.write("copies/command.yaml", self.cinch("adapters", "show", "command").stdout)
        r = self.run_command("echo", "hi", options=["--adapter-dir", self.path("copies")])
        self.assertEqual(r.reason, "success")

    def test_mistakes(self):
        self.assert_failed(self.cinch("adapters", "show", "comand"), 69, "comand", "command", "hint:")
        self.assert_failed(self.cinch("adapters", "show"), 64, "'show' needs the NAME of an adapter")
        self.assert_failed(self.cinch("adapters", "list"), 64, "unknown action 'list'")


class Doctor(harness.Case):
    def test_a_sound_machine(self):
        r = self.cinch("doctor", "--format", "json")
        found = {c["check"]: c for c in json.loads(r.stdout)["checks"]}
        for name in ("kernel", "pidfd", "subreaper", "cinch-init"):
            self.assertEqual(found[name]["state"], "ok", found[name])
        for check in found.values():
            self.assertEqual(check["advice"] is None, check["state"] == "ok", check)

    def test_the_sandbox_is_tried(self):
        """Every guarantee is named; where namespaces cannot be made (inside a sandbox) they are lost, with advice."""
        r = self.cinch("doctor", "--format", "json")
        found = {c["check"]: c for c in json.loads(r.stdout)["checks"] if c["check"].startswith("sandbox: ")}
        self.assertGreaterEqual(set(found), {"sandbox: files", "sandbox: network", "sandbox: processes"})
        if any(c["state"] == "fail" for c in found.values()):
            self.skipTest("this machine cannot make sandboxes: " + str(found))
        inside = subprocess.run([harness.program("inside"), "--read", harness.BUILD, "--", harness.CINCH, "doctor",
                                 "--format", "json"], env={**self.env, "CINCH_INIT": harness.init()},
                                capture_output=True, timeout=harness.PATIENCE, check=False)
        lost = {c["check"]: c for c in json.loads(inside.stdout)["checks"]}
        self.assertEqual(lost["sandbox: files"]["state"], "fail", lost)
        self.assertIn("not enforced: ", lost["sandbox: files"]["detail"])
        self.assertEqual(inside.returncode, 69)

    def test_a_broken_helper(self):
        for helper in ("/nonexistent", "/bin/true", "/bin/false"):
            r = self.cinch("doctor", env={"CINCH_INIT": helper})
            self.assertEqual(r.code, 69)
            self.assertRegex(r.stdout.decode(), r"(?m)^cinch-init +fail .*\n(?:.*\n)*? +-> reinstall cinch")


class Progress(harness.Case):
    SLOW = ["sh", "-c", "echo one; sleep 0.5; echo two"]

    def test_live_on_a_terminal(self):
        line = self.command_line(["x", "--", *self.SLOW], self.new_output())[1:]
        code, text = on_terminal(line, {**self.env, "TERM": "xterm", "NO_COLOR": "1"}, columns=50)
        self.assertEqual(code, 0)
        live, _, rest = text.rpartition(b"\r\x1b[K")
        self.assertIn(b"\rexecute", live)
        self.assertRegex(live, rb"\d\d:\d\d > x\r\n")
        for drawn in live.replace(b"\r\n", b"\n").split(b"\r")[1:]:
            if drawn.endswith(b"\x1b[K"):
                self.assertLess(len(drawn.removesuffix(b"\x1b[K")), 50)
                self.assertNotIn(b"\n", drawn)
        self.assertTrue(rest.startswith(b"success in "), rest)

    def test_plain_lines_elsewhere(self):
        r = self.run_command(*self.SLOW, options=["--progress", "plain"])
        lines = r.stderr.decode().splitlines()
        self.assertTrue(all(line.startswith("[") and "s] " in line for line in lines), lines)
        self.assertEqual(sum("] execute" in line for line in lines), 1)
        self.assertNotIn(b"\r", r.stderr)

    def test_nothing_elsewhere_unless_asked_for(self):
        self.assertEqual(self.run_command(*self.SLOW).stderr, b"")
        r = self.run_cinch("x", "--progress", "lines", "--", *self.SLOW)
        self.assertRegex(r.stderr.decode(), r"^\d\d:\d\d > x\n")

    def test_nothing_when_quiet(self):
        r = self.run_command(*self.SLOW, options=["-q"])
        self.assertEqual(r.stderr, b"")
        self.assertEqual(r.stdout.decode(), r.output + "\n")


if __name__ == "__main__":
    harness.main()
