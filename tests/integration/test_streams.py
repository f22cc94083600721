#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a child prints arrives byte for byte, at once, with bounded memory; secrets do not arrive at all."""

import base64
import hashlib
import json
import os
import re
import resource
import subprocess

import harness

FILE_TIMEOUT = 900


def peak_rss_kb(line, env):
    """Runs a command through bench/measure, which is small (the peak of a process includes what its parent had
    mapped before exec): (exit code, its peak resident set in KiB)."""
    measure = os.path.join(harness.BUILD, "bench", "measure")
    done = subprocess.run([measure, "-o", "/dev/null", "--"] + line, env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, check=True, timeout=800)
    report = json.loads(done.stdout)
    return report["status"], report["maxrss_kb"]


class Bytes(harness.Case):
    def test_binary_noise(self):
        noise = os.urandom(3 << 20)
        path = self.write("ws/noise", noise)
        r = self.run_command("sh", "-c", f"cat {path}; cat {path} >&2")
        self.assertEqual(r.bytes("stdout.log"), noise)
        self.assertEqual(r.bytes("stderr.log"), noise)

    def test_half_characters_at_chunk_borders(self):
        r = self.run_command(harness.program("split_utf8"))
        self.assertEqual(r.reason, "success")
        r.bytes("stdout.log").decode()

    def test_a_line_of_64_mib(self):
        r = self.run_command("sh", "-c", "head -c 67108864 /dev/zero | tr '\\0' x; echo")
        data = r.bytes("stdout.log")
        self.assertEqual(len(data), (64 << 20) + 1)
        self.assertEqual(data.count(b"x"), 64 << 20)
        self.assertTrue(r.result["truncated"])

    def test_a_flood_of_2_gib_in_bounded_memory(self):
        """Written and hashed on the way, with a secret registered, so that the redactor works."""
        free = os.statvfs(self.dir)
        if free.f_bavail * free.f_frsize < 6 << 30:
            self.skipTest("less than 6 GiB of disk space")
        size = 2 << 30 if not harness.SANITIZED else 64 << 20
        out = self.new_output()
        line = self.command_line(["--secret", "FLOOD_SECRET", "--", "sh", "-c",
                                  f"yes 0123456789abcdef0123456789abcdef | head -c {size}"], out)
        code, rss = peak_rss_kb(line, {**self.env, "FLOOD_SECRET": "not-in-the-flood-at-all"})
        self.assertEqual(code, 0)
        want = hashlib.sha256()
        block = b"0123456789abcdef0123456789abcdef\n" * 31775
        left = size
        while left > 0:
            want.update(block[:left])
            left -= min(left, len(block))
        got = hashlib.sha256()
        with open(os.path.join(out, "stdout.log"), "rb") as f:
            while chunk := f.read(1 << 20):
                got.update(chunk)
        self.assertEqual(got.hexdigest(), want.hexdigest())
        if not harness.SANITIZED:
            self.assertLess(rss, 16 << 10)

    def test_output_is_there_while_the_child_runs(self):
        go = self.path("ws", "go")
        process, r = self.start("--workspace-mode", "in-place", "--", "sh", "-c",
                                f"echo early; while [ ! -e {go} ]; do sleep 0.02; done; echo late")
        harness.wait_until(lambda: r.exists("stdout.log") and r.bytes("stdout.log") == b"early\n", "early output")
        self.write("ws/go", "")
        self.finish(process, r)
        self.assertEqual(r.bytes("stdout.log"), b"early\nlate\n")

    def test_closed_streams(self):
        r = self.run_command("sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 0")
        self.assertEqual(r.reason, "success")


class OwnOutput(harness.Case):
    """cinch's own stdout and stderr: the exit status is the run's, also when nobody reads the report."""

    def call(self, redirection, *command):
        output = self.new_output()
        line = self.command_line(["--", *command], output)
        done = subprocess.run(["bash", "-c", f'"$@" {redirection}; exit "${{PIPESTATUS[0]}}"', "bash", *line], env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.PATIENCE)
        r = harness.Result(done.returncode, done.stdout, done.stderr, output)
        self.assert_valid(r)
        self.assertEqual(r.state["exit_code"], r.code)
        return r

    def test_closed_full_or_not_read(self):
        for where in (">&-", ">/dev/full", "| true", "2>&-", "2>/dev/full", ">/dev/full 2>&1", ">&- 2>&-", "2>&1 | true"):
            with self.subTest(where=where):
                self.assertEqual(self.call(where, "true").code, 0)
                self.assertEqual(self.call(where, "false").code, 1)

    def test_the_lost_report_is_named(self):
        r = self.call(">/dev/full", "true")
        self.assertIn(b"cannot write to standard output: No space left on device", r.stderr)

    def test_other_commands_still_fail(self):
        """They have nothing but their output."""
        done = subprocess.run(["sh", "-c", f'"{harness.CINCH}" adapters >/dev/full'], env=self.env, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 70)


class Secrets(harness.Case):
    SECRET = "hunter2-sup3r-s3cr3t/value+with=signs"

    def check(self, r):
        secret = self.SECRET.encode()
        self.assert_not_in_tree(secret, r.output)
        self.assertNotIn(secret, r.stdout + r.stderr)

    def test_never_in_any_file(self):
        r = self.run_command(
            "sh", "-c", 'echo "$TOK"; echo "x${TOK}y" >&2; printf "%s" "$TOK" | base64 -w0; exit 3',
            options=["--secret", "TOK"], env={"TOK": self.SECRET})
        self.check(r)
        self.assertEqual(r.bytes("stdout.log").splitlines()[0], b"[REDACTED:TOK]")
        self.assertEqual(r.bytes("stderr.log"), b"x[REDACTED:TOK]y\n")
        encoded = base64.b64encode(self.SECRET.encode())
        self.assertNotIn(encoded[:40], r.bytes("stdout.log"))

    def test_split_over_two_reads(self):
        half = len(self.SECRET) // 2
        for cut in (1, half, len(self.SECRET) - 1):
            r = self.run_command(
                "sh", "-c", f'printf "a%.{cut}s" "$TOK"; sleep 0.15; printf "%sz" "${{TOK#{"?" * cut}}}"',
                options=["--secret", "TOK"], env={"TOK": self.SECRET})
            self.check(r)
            self.assertEqual(r.bytes("stdout.log"), b"a[REDACTED:TOK]z")

    def test_where_the_final_text_is_cut(self):
        """The end of the output is kept as final text; the cut goes through the secret at every possible place."""
        size = 64 << 10
        n = len(self.SECRET)
        for inside in range(1, n, 5):
            r = self.run_command("sh", "-c", f'printf "%s" "$TOK"; head -c {size - inside} /dev/zero | tr "\\0" y',
                                 options=["--secret", "TOK"], env={"TOK": self.SECRET})
            self.assertTrue(r.result["truncated"])
            for i in range(n - 3):
                self.assertNotIn(self.SECRET[i:i + 4], r.result["text"])

    def test_variables_named_like_keys(self):
        r = self.run_command("sh", "-c", 'echo "$MY_API_KEY"; echo "$OTHER"',
                             options=["--inherit-env"], env={"MY_API_KEY": self.SECRET, "OTHER": "plain-value"})
        self.check(r)
        self.assertEqual(r.bytes("stdout.log"), b"[REDACTED:MY_API_KEY]\nplain-value\n")

    def test_a_file_given_as_secret(self):
        path = self.write("cred", self.SECRET + "\n")
        r = self.run_command("cat", path, options=["--secret-file", path])
        self.check(r)
        self.assertEqual(r.bytes("stdout.log"), b"[REDACTED:cred]\n")

    def test_in_the_prompt(self):
        prompt = self.write("p.md", f"use {self.SECRET} please")
        r = self.run_command("cat", "{prompt_file}", options=["--prompt", prompt, "--secret", "TOK"],
                             env={"TOK": self.SECRET})
        self.check(r)
        self.assertEqual(r.bytes("stdout.log"), b"use [REDACTED:TOK] please")
        self.assertEqual(r.bytes("logs", "prompt.txt"), b"use [REDACTED:TOK] please")

    def test_never_in_arguments(self):
        prompt = self.write("p.md", f"use {self.SECRET} please")
        r = self.run_command("echo", "{prompt}", options=["--prompt", prompt, "--secret", "TOK"],
                             env={"TOK": self.SECRET})
        self.check(r)
        self.assertEqual(r.code, 64)
        self.assertEqual(r.events("process.spawned"), [])

    def test_in_the_name_of_a_process_left_behind(self):
        """The system cuts the name of a process: what is left of the secret is still some of it."""
        secret = "hunter2-in-a-name-that-is-long"
        leave = ('cp "$(command -v sleep)" "./$TOKEN_X"; "./$TOKEN_X" 60 & '
                 'while [ "$(cat /proc/$!/comm)" = sh ]; do :; done')
        r = self.run_command("sh", "-c", leave,
                             options=["--secret", "TOKEN_X"], env={"TOKEN_X": secret})
        self.assertEqual(r.metrics["ext"]["leaked_children"], 1)
        self.assert_not_in_tree(secret[:15].encode(), r.output)
        self.assertNotIn(secret[:15].encode(), r.stdout + r.stderr)

    def test_on_the_terminal(self):
        r = self.run_command("sh", "-c", f'echo "{self.SECRET}" >&2; exit 1',
                             options=["--env", f"X_TOKEN={self.SECRET}"])
        self.check(r)

    def test_in_a_task_file(self):
        task = self.write("t.yaml", f"agent: {{command: [env]}}\nenv: {{set: {{A_TOKEN: '{self.SECRET}'}}}}\n")
        self.check(self.run_cinch(task))
        r = self.cinch("config", task, "--explain")
        self.assertNotIn(self.SECRET.encode(), r.stdout)
        r = self.cinch("config", task)
        self.assertNotIn(self.SECRET.encode(), r.stdout)


class FullDisk(harness.Case):
    def test_a_full_disk_does_not_stop_the_run(self):
        """A file-size limit stands in for a full disk: write(2) fails in the same place."""
        out = self.new_output()
        line = self.command_line(["--", "sh", "-c", "head -c 3000000 /dev/zero; exit 0"], out)

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        done = subprocess.run(line, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True,
                              preexec_fn=limit, timeout=harness.PATIENCE)
        r = harness.Result(done.returncode, done.stdout, done.stderr, out)
        self.assert_valid(r)
        self.assertEqual(os.path.getsize(r.path("stdout.log")), 1 << 20)
        self.assertGreater(r.metrics["ext"]["bytes"]["lost"], 0)
        self.assertTrue(any(re.search("stdout.log", w) for w in r.manifest["warnings"]))

    def test_a_disk_smaller_than_the_reserve(self):
        disk = self.make_dir("disk")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("cannot mount a small disk here")
        self.addCleanup(subprocess.run, ["umount", disk])
        flood = 'head -c 3000000 /dev/zero; head -c 900000 /dev/zero > "$CINCH_OUTPUT_DIR/more"; exit 0'
        # Without the sandbox the agent can fill the disk of the record by itself.
        r = self.run_command("sh", "-c", flood, output=os.path.join(disk, "out"), options=["--sandbox", "off"])
        self.assertEqual((r.code, r.reason), (0, "success"))
        self.assertGreater(r.metrics["ext"]["bytes"]["lost"], 0)


if __name__ == "__main__":
    harness.main()
