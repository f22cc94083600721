# SPDX-License-Identifier: MIT
"""Runs of the store: listed, named in every command, deleted; and what a run says at its end."""

import json
import os
import subprocess

import harness
from screen import on_terminal


class Store(harness.Case):
    def stored(self, goal, *command, options=()):
        """A run without an output directory: it goes to the store."""
        r = self.cinch("run", goal, "-w", self.workspace, "-q", *options, "--", *command)
        return r.stdout.decode().strip()

    def rows(self, *options):
        return json.loads(self.cinch("runs", "--format", "json", *options).stdout)

    def test_newest_first_with_what_happened(self):
        self.assertIn(b"no runs in ", self.cinch("runs").stdout)
        first = self.stored("change it\nplease", "sh", "-c", "echo a > a; echo b > b")
        second = self.stored("break it", "false")
        rows = self.rows()
        self.assertEqual([row["path"] for row in rows], [second, first])
        self.assertEqual([row["status"] for row in rows], ["failed", "succeeded"])
        self.assertEqual([row["task"] for row in rows], ["break it", "change it"])
        self.assertEqual((rows[1]["files_changed"], rows[1]["lines_added"], rows[1]["lines_removed"]), (2, 2, 0))
        self.assertEqual([len(self.rows("-n", "1")), len(self.rows("--outcome", "failed")),
                          len(self.rows("-a", "codex")), len(self.rows("--since", "1h"))], [1, 1, 0, 2])
        text = self.cinch("runs").stdout.decode().splitlines()
        self.assertRegex(text[0], r"^run +age +outcome +took +changes +agent +task$")
        self.assertRegex(text[2], r"^[0-9a-f]{8} +\d+[sm] +succeeded +\S+ +\+2 -0 +command +change it$")
        self.assertEqual(self.cinch("runs", "-q").stdout.decode().split(), [row["run_id"] for row in rows])

    def test_the_directory_ends_with_the_short_id(self):
        path = self.stored("x", "true")
        self.assertTrue(path.endswith(self.rows()[0]["run_id"][-8:]), path)

    def test_every_command_takes_a_name(self):
        self.stored("old", "sh", "-c", "echo old > f")
        path = self.stored("new", "sh", "-c", "echo new > f")
        id = self.rows()[0]["run_id"]
        for name in ("last", id, id[-8:], id.replace("-", "")[-12:], os.path.basename(path)):
            self.assertIn(b"+new", self.cinch("diff", name).stdout, name)
        self.assertIn(b"+old", self.cinch("diff", "last-1").stdout)
        self.assertIn(b"+new", self.cinch("diff").stdout)
        self.assertEqual(json.loads(self.cinch("show", "last", "--format", "json").stdout)["path"], path)
        self.assertEqual(json.loads(self.cinch("show", "--format", "json").stdout)["path"], path)
        self.assertEqual(self.cinch("transcript", "check", "last").code, 0)
        shown = self.cinch("transcript", "last").stdout
        self.assertIn(b"new", shown)
        self.assertEqual(self.cinch("transcript").stdout, shown)
        self.assertEqual(self.cinch("transcript", "show").stdout, shown)
        self.assertEqual(self.cinch("recover", "last").code, 0)
        self.assertEqual(self.cinch("apply", "last").code, 0)
        with open(os.path.join(self.workspace, "f")) as f:
            self.assertEqual(f.read(), "new\n")

    def test_resume_takes_a_name(self):
        r = self.cinch("run", "x", "-w", self.workspace, "--resume", "last", "--", "true")
        self.assert_failed(r, 66, "there is no 'last'")
        self.stored("old", "true")
        r = self.cinch("config", "x", "--resume", "last", "--format", "json", "--", "true")
        self.assertIn(self.rows()[0]["path"], r.stdout.decode())

    def test_names_that_do_not_exist(self):
        for command in (["show", "last"], ["diff", "nothing"], ["apply", "last-7"], ["transcript", "feed0000"]):
            self.assert_failed(self.cinch(*command), 66, "there is no", "cinch runs")

    def test_rm(self):
        kept = self.stored("work", "sh", "-c", "echo a > a")
        empty = self.stored("nothing", "true")
        r = self.cinch("rm", "--older-than", "0s", "--dry-run")
        self.assertIn(f"would delete {empty}", r.stdout.decode())
        self.assertIn("kept 1 run with changes", r.stdout.decode())
        self.assertTrue(os.path.exists(empty))
        self.assertEqual(self.cinch("rm", "--older-than", "0s").code, 0)
        self.assertEqual([row["path"] for row in self.rows()], [kept])
        self.assertEqual(self.cinch("rm", "last").code, 0)
        self.assertEqual(self.rows(), [])
        self.assert_failed(self.cinch("rm"), 64, "name the runs")
        self.assert_failed(self.cinch("rm", "last"), 66, "there is no")

    def test_a_run_in_progress_is_not_deleted(self):
        ready = self.path("ws", "ready")
        process, r = self.start("x", "--workspace-mode", "in-place", "--", "sh", "-c", f": > {ready}; sleep 1000")
        harness.wait_until(lambda: os.path.exists(ready), "the agent")
        self.assert_failed(self.cinch("rm", r.output), 73, "still running")
        self.assertTrue(r.exists("state.json"))
        self.reap(process)


class Following(harness.Case):
    def begin(self):
        ready = self.path("ws", "ready")
        process, r = self.start("look around", "--workspace-mode", "in-place", "--", "sh", "-c",
                                f"trap 'exit 9' TERM; : > {ready}; while :; do sleep 0.1; done")
        harness.wait_until(lambda: os.path.exists(ready), "the agent")
        return process, r

    def test_tail_and_cancel(self):
        process, r = self.begin()
        self.assertRegex(self.cinch("tail", r.output).stdout.decode(), r"^\d\d:\d\d:\d\d > look around\n$")
        self.assertEqual(self.cinch("tail", "-n", "0", r.output).stdout, b"")
        follower = subprocess.Popen([harness.CINCH, "tail", "-f", "--format", "json", r.output], env=self.env,
                                    stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.assertEqual(json.loads(follower.stdout.readline())["entry_type"], "user_message")
        done = self.cinch("cancel", r.output)
        self.assertEqual((done.code, done.stdout.decode()), (0, f"canceled {r.output}\n"), done.stderr)
        rest = [json.loads(line)["entry_type"] for line in follower.stdout]
        self.assertEqual(follower.wait(harness.PATIENCE), 0)
        follower.stdout.close()
        self.finish(process, r)
        self.assertEqual((process.returncode, r.reason), (130, "interrupted"))
        self.assertNotIn("user_message", rest)
        self.assert_failed(self.cinch("cancel", r.output), 1, "is not in progress")

    def test_what_cannot_be_followed(self):
        self.assert_failed(self.cinch("tail", "nothing"), 66, "there is no run 'nothing'")
        self.assert_failed(self.cinch("tail", self.workspace), 66, "transcript.jsonl")
        self.assert_failed(self.cinch("cancel", self.workspace), 66, "state.json")
        os.mkfifo(self.path("ws", "transcript.jsonl"))
        self.assertEqual(self.cinch("tail", self.workspace).stdout, b"")


class Reading(harness.Case):
    def test_show_is_one_screen(self):
        r = self.run_command("sh", "-c", "seq 5 > new; echo '" + "x" * 300 + "' > f; echo the answer")
        text = self.cinch("show", r.output).stdout.decode()
        self.assertRegex(text, r"(?m)^outcome +succeeded in ")
        self.assertRegex(text, r"(?m)^changes +2 files, \+6 -0$")
        self.assertIn("\nChanged files\n  A  +1  -0  f\n  A  +5  -0  new\n", text)
        self.assertIn("\nFinal answer\n  the answer\n", text)
        self.assertLess(len(text.splitlines()), 24)
        self.assertNotIn("trust_on", text)
        self.assertIn("trust_on", self.cinch("show", "-v", r.output).stdout.decode())

    def test_a_failure_shows_stderr(self):
        r = self.run_command("sh", "-c", "seq 20 >&2; exit 1")
        self.assertIn("\nstderr.log (last lines)\n  16\n  17\n  18\n  19\n  20\n",
                      self.cinch("show", r.output).stdout.decode())

    def test_diff(self):
        self.write("ws/old", "1\n2\n3\n")
        r = self.run_command("sh", "-c", "echo 4 >> old; mv old new; head -c 300 /dev/zero > bin")
        self.assertEqual(self.cinch("diff", "--stat", r.output).stdout.decode().splitlines()[-1], "2 files changed, +1 -0")
        env = {**self.env, "TERM": "xterm", "CINCH_PAGER": "sed s/^/P:/"}
        code, text = on_terminal(["diff", r.output], env, columns=80)
        self.assertEqual(code, 0)
        self.assertRegex(text, rb"P:\x1b\[[0-9;]*m\+4\x1b\[")
        self.assertIn(b"(binary file)", text)
        self.assertNotIn(b"P:index ", text)
        self.assertEqual(self.cinch("diff", r.output).stdout, r.bytes("diff.patch"))

    def test_denied_hosts_come_with_advice(self):
        r = self.run_command("sh", "-c", "for i in 1 2; do curl -s https://registry.invalid/; done; true",
                             options=["--net", "other.invalid"])
        self.assertRegex(self.cinch("show", r.output).stdout.decode(),
                         r"\nDenied\n  connect to registry.invalid:443, 2 times; to allow it: --net registry.invalid\n")


class End(harness.Case):
    def test_success(self):
        r = self.run_command("sh", "-c", "echo 1 > 'a b'; seq 1 9; echo done")
        lines = r.stdout.decode().splitlines()
        self.assertRegex(lines[0], r"^success in ")
        self.assertEqual(lines[1:5], ["  7", "  8", "  9", "  done"])
        self.assertEqual(lines[5], "changes: 1 file, +1 -0: a b")
        self.assertEqual(lines[6], f"record: {r.output}")
        self.assertEqual(lines[7], f"next: cinch diff {r.output}, cinch apply {r.output}")
        self.assertEqual(len(lines), 8)

    def test_the_whole_answer(self):
        r = self.run_command("seq", "1", "50", options=["--answer", "full"])
        self.assertEqual(r.stdout.decode().splitlines()[1:51], [f"  {n}" for n in range(1, 51)])

    def test_failure_shows_the_end_of_stderr(self):
        r = self.run_command("sh", "-c", "for i in 1 2 3 4 5 6; do echo line $i >&2; done; exit 4")
        text = r.stdout.decode()
        self.assertRegex(text, r"^failed after .*: the agent exited with 4")
        self.assertIn("stderr:\n  line 3\n  line 4\n  line 5\n  line 6\nrecord: ", text)
        self.assertIn(f"next: cinch show {r.output}, cinch transcript {r.output}\n", text)

    def test_json(self):
        r = self.run_command("sh", "-c", "echo x > x; echo answer", options=["--format", "json"])
        end = json.loads(r.stdout)
        self.assertEqual(end["text"], "answer")
        self.assertEqual(end["changes"], {"files": 1, "added": 1, "removed": 0})
        self.assertEqual(end["usage"]["api_calls"], 0)
        self.assertEqual(end["warnings"], [])

    def test_nothing_of_the_agent_reaches_the_terminal(self):
        r = self.run_command("sh", "-c", "printf '\\033[2Jx\\n'; : > \"$(printf 'a\\033b')\"")
        self.assertNotIn(b"\x1b", r.stdout)

    def test_counts_are_those_of_git(self):
        names = ["plain", "with space", "q\"uote", "täb\tname", "x.patch"]
        for name in names[:3]:
            self.write(f"ws/{name}", "".join(f"{n}\n" for n in range(20)))
        script = "import os,random\nrandom.seed(7)\n" \
                 "for n in ['plain','with space']:\n" \
                 "    t=open(n).read().splitlines()\n    t[3]='--- a/x'; t[9:12]=['+++ b/y','@@ -1 +1 @@']\n" \
                 "    open(n,'w').write('\\n'.join(t))\n" \
                 "os.remove('q\"uote')\nopen('täb\\tname','w').write('diff --git a/z b/z\\n')\n" \
                 "open('x.patch','wb').write(bytes(range(256)))\nos.mkdir('d'); os.rename('plain','d/moved')\n"
        r = self.run_command("/usr/bin/python3", "-c", script, options=["--format", "json"])
        self.assertEqual(r.code, 0, r.stdout)
        stat = subprocess.run(["git", "apply", "--numstat", r.path("diff.patch")], cwd=self.dir, capture_output=True)
        self.assertEqual((stat.returncode, stat.stderr), (0, b""))
        rows = [line.split("\t") for line in stat.stdout.decode().splitlines()]
        changes = json.loads(r.stdout)["changes"]
        self.assertEqual(changes["files"], len(rows))
        self.assertEqual(changes["added"], sum(int(row[0]) for row in rows if row[0] != "-"))
        self.assertEqual(changes["removed"], sum(int(row[1]) for row in rows if row[1] != "-"))


if __name__ == "__main__":
    harness.main()
