#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A program runs under the contract: what it gets, and what comes out."""

import json
import os
import socket
import stat
import subprocess

import harness


class Contract(harness.Case):
    def test_a_simple_run(self):
        r = self.run_command("sh", "-c", "echo out; echo err >&2", options=["--name", "simple"])
        self.assertEqual(r.code, 0)
        self.assertEqual(r.bytes("stdout.log"), b"out\n")
        self.assertEqual(r.bytes("stderr.log"), b"err\n")
        self.assertEqual((r.manifest["status"], r.manifest["outcome"], r.reason),
                         ("completed", "success", "success"))
        self.assertEqual(r.metrics["exit_code"], 0)
        self.assertIsNone(r.metrics["error"])
        self.assertEqual(r.result["text"], "out")

    def test_all_files_of_the_record(self):
        r = self.run_command("true")
        for name in ("stdout.log", "stderr.log", "agent.log", "metrics.json", "manifest.json", "result.json",
                     "transcript.jsonl", "events.jsonl", "state.json", "task.json", "logs/prompt.txt",
                     "evidence/config.json", "evidence/environment.json"):
            self.assertTrue(r.exists(name), name)

    def test_seed_fields_come_first_and_in_order(self):
        r = self.run_command("true")
        names = list(json.loads(r.bytes("metrics.json")))
        self.assertEqual(names, ["tokens_input", "tokens_output", "tokens_total", "cost_usd", "api_calls",
                                 "duration_seconds", "exit_code", "error", "started_at", "ended_at", "ext"])

    def test_variables_of_the_evaluation_contract(self):
        r = self.run_command("env", options=["--model", "m-1", "--tier", "T2", "--run-number", "7", "--test-id",
                                             "t-1", "--timeout", "600", "--tools", "--no-delegation"])
        env = dict(line.split("=", 1) for line in r.bytes("stdout.log").decode().splitlines())
        self.assertEqual({k: env.get(k) for k in ("MODEL", "TIER", "RUN_NUMBER", "TEST_ID", "TIMEOUT",
                                                  "TOOLS_ENABLED", "DELEGATION_ENABLED")},
                         {"MODEL": "m-1", "TIER": "T2", "RUN_NUMBER": "07", "TEST_ID": "t-1", "TIMEOUT": "600",
                          "TOOLS_ENABLED": "true", "DELEGATION_ENABLED": "false"})
        self.assertEqual(env["TERM"], "dumb")
        self.assertEqual(env["GIT_TERMINAL_PROMPT"], "0")
        self.assertNotIn("TOOLS", env)

    def test_the_environment_is_clean(self):
        r = self.run_command("env", options=["--env", "WANTED", "--env", "SET=a=b"],
                             env={"WANTED": "1", "UNWANTED": "1"})
        env = dict(line.split("=", 1) for line in r.bytes("stdout.log").decode().splitlines())
        self.assertEqual((env["WANTED"], env["SET"]), ("1", "a=b"))
        self.assertNotIn("UNWANTED", env)
        self.assertEqual(env["HOME"], r.path("home"))
        r = self.run_command("env", options=["--inherit-env"], env={"UNWANTED": "1"})
        self.assertIn(b"UNWANTED=1\n", r.bytes("stdout.log"))

    def test_standard_input_is_empty_and_no_terminal(self):
        r = self.run_command("sh", "-c", "cat; test -t 0 || echo none; (: </dev/tty) 2>/dev/null || echo no tty")
        self.assertEqual(r.bytes("stdout.log"), b"none\nno tty\n")

    def test_only_three_descriptors(self):
        r = self.run_command("sh", "-c", "ls /proc/self/fd")
        self.assertEqual(r.bytes("stdout.log").split(), [b"0", b"1", b"2", b"3"])  # 3 is ls' own

    def test_working_directory(self):
        r = self.run_command("pwd")
        self.assertEqual(r.bytes("stdout.log").decode().strip(), os.path.realpath(self.workspace))

    def test_the_home_is_private_and_gone_afterwards(self):
        r = self.run_command("sh", "-c", 'stat -c %a "$HOME"; echo x > "$HOME/left"')
        self.assertEqual(r.bytes("stdout.log"), b"700\n")
        self.assertFalse(r.exists("home"))
        self.assertEqual(os.listdir(self.env["HOME"]), [])
        r = self.run_command("sh", "-c", 'echo x > "$HOME/left"', options=["--keep-home"])
        self.assertTrue(r.exists("home", "left"))
        r = self.run_command("sh", "-c", 'echo "$HOME"', options=["--home", "shared"])
        self.assertEqual(r.bytes("stdout.log").decode().strip(), self.env["HOME"])

    def test_usage_of_the_tree_is_measured(self):
        r = self.run_command("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
        self.assertGreater(r.metrics["ext"]["rusage"]["utime_s"], 0)
        self.assertGreater(r.metrics["ext"]["rusage"]["maxrss_kb"], 100)

    def test_transcript_is_bracketed_and_gapless(self):
        r = self.run_command("echo", "hi", options=["--prompt", self.write("p.md", "do it")])
        lines = r.lines("transcript.jsonl")
        self.assertEqual([x["event"] for x in lines],
                         ["transcript.start", "transcript.entry", "transcript.entry", "transcript.stop"])
        self.assertEqual([x["entry_type"] for x in lines[1:3]], ["user_message", "assistant_message"])
        self.assertEqual([x["sequence_number"] for x in lines[1:3]], [1, 2])
        self.assertEqual(lines[1]["detail"]["text"], "do it")
        self.assertEqual(lines[3]["total_entries"], 2)

    def test_events_tell_the_story(self):
        r = self.run_command("true")
        phases = [e["context"]["to"] for e in r.events() if e["event"] == "run.phase"]
        self.assertEqual(phases, ["admit", "configure", "prepare", "context", "trust_on", "execute", "trust_off",
                                  "parse", "collect", "gate", "finish"])
        self.assertEqual([e["seq"] for e in r.events()], list(range(1, len(r.events()) + 1)))
        for name in ("PromptRendered", "RenderedTools", "PromptExecuted", "prompt.call.start",
                     "prompt.call.complete"):
            self.assertEqual(len(r.events(name)), 1, name)

    def test_non_zero_exit_is_a_failure(self):
        r = self.run_command("sh", "-c", "exit 2")
        self.assertEqual((r.code, r.reason, r.metrics["exit_code"]), (1, "failure", 2))
        self.assertIn("exited with 2", r.manifest["error"])

    def test_exit_profiles(self):
        for profile, command, code in (("native", "exit 2", 1), ("holon", "exit 2", 1), ("scylla", "exit 2", 2),
                                       ("scylla", "exit 0", 0), ("holon", "exit 0", 0), ("scylla", "kill -9 $$", 137)):
            r = self.run_command("sh", "-c", command, options=["--exit-profile", profile])
            self.assertEqual(r.code, code, (profile, command))

    def test_death_by_signal(self):
        r = self.run_command("sh", "-c", "kill -SEGV $$")
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("signal 11", r.manifest["error"])
        self.assertEqual(r.metrics["ext"]["engine_exit"]["signal"], 11)


class Prompt(harness.Case):
    TEXT = "Line one\nünïcödé {model} \"quotes\" 'single'\n"

    def test_delivery_by_file(self):
        p = self.write("p.md", self.TEXT)
        r = self.run_command("cat", "{prompt_file}", options=["--prompt", p])
        self.assertEqual(r.bytes("stdout.log").decode(), self.TEXT)
        r = self.run_command("sh", "-c", 'cat "$CINCH_PROMPT_FILE"', options=["--prompt", p])
        self.assertEqual(r.bytes("stdout.log").decode(), self.TEXT)
        self.assertEqual(r.bytes("logs", "prompt.txt").decode(), self.TEXT)

    def test_delivery_by_argument(self):
        p = self.write("p.md", self.TEXT)
        r = self.run_command("printf", "%s", "{prompt}", options=["--prompt", p])
        self.assertEqual(r.bytes("stdout.log").decode(), self.TEXT)

    def test_delivery_by_standard_input(self):
        p = self.write("p.md", self.TEXT * 20000)
        r = self.run_command("cat", options=["--prompt", p, "--prompt-via", "stdin"])
        self.assertEqual(r.bytes("stdout.log").decode(), self.TEXT * 20000)

    def test_a_program_that_does_not_read_its_prompt(self):
        p = self.write("p.md", "x" * (8 << 20))
        r = self.run_command("true", options=["--prompt", p, "--prompt-via", "stdin"])
        self.assertEqual(r.reason, "success")

    def test_a_goal_on_the_command_line(self):
        r = self.run_cinch("Fix the failing test", "--", "cat", "{prompt_file}")
        self.assertEqual(r.bytes("stdout.log"), b"Fix the failing test")

    def test_prompt_from_a_pipe(self):
        r = self.run_cinch("--prompt", "-", "--", "cat", "{prompt_file}", stdin=b"piped")
        self.assertEqual(r.bytes("stdout.log"), b"piped")

    def test_prompt_from_a_socket_that_takes_its_time(self):
        ours, theirs = socket.socketpair()
        output = self.new_output()
        process = subprocess.Popen(self.command_line(["--prompt", "-", "--", "cat", "{prompt_file}"], output),
                                   env=self.env, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.reap, process)
        theirs.close()
        for part in (b"from ", b"a ", b"socket"):
            ours.sendall(part)
        ours.close()
        r = self.finish(process, harness.Result(None, b"", b"", output))
        self.assertEqual((r.code, r.bytes("stdout.log")), (0, b"from a socket"), r.stderr)

    def test_an_empty_prompt_is_a_mistake(self):
        r = self.run_cinch("--prompt", self.write("p.md", ""), "--", "true")
        self.assert_failed(r, 66, "p.md", "empty")
        r = self.run_cinch("--prompt", "-", "--", "true", stdin=b"")
        self.assert_failed(r, 66, "empty")

    def test_a_prompt_too_long_for_an_argument(self):
        p = self.write("p.md", "x" * 200000)
        r = self.run_command("echo", "{prompt}", options=["--prompt", p])
        self.assertEqual((r.code, r.reason), (65, "bad_task"))
        self.assertIn("--prompt-via file", r.manifest["error"])
        self.assertEqual(r.events("process.spawned"), [])


class Task(harness.Case):
    def test_a_task_file(self):
        self.write("job/agent.sh", '#!/bin/sh\necho "$1|$MODEL|$TIER"; cat "$2"; pwd\n', 0o755)
        self.write("job/task.md", "the prompt")
        self.make_dir("job/ws")
        task = self.write("job/task.yaml", "name: demo\nagent:\n  model: m\n  command: [./agent.sh, '{timeout}', "
                          "'{prompt_file}']\nprompt: {file: task.md}\nlimits: {timeout: 90s}\neval: {tier: T0}\n")
        r = self.run_cinch(task)
        self.assertEqual(r.bytes("stdout.log").decode(),
                         "90|m|T0\nthe prompt" + os.path.realpath(self.workspace) + "\n")
        self.assertEqual(r.json("task.json")["name"], "demo")

    def test_json_task(self):
        task = self.write("t.json", json.dumps({"agent": {"command": ["echo", "{model}"], "model": "x"}}))
        self.assertEqual(self.run_cinch(task).bytes("stdout.log"), b"x\n")

    def test_scylla_dictionary(self):
        secret = "key-value-of-the-dictionary"
        config = self.write("c.json", json.dumps({
            "tier_id": "T1", "tier_name": "Prompted", "tier_prompt": "Think", "tools_enabled": False,
            "delegation_enabled": None, "test_id": "just-1", "api_keys": {"ANTHROPIC_API_KEY": secret}, "x": {"y": 1}}))
        r = self.run_command("sh", "-c", 'echo "$TIER $TEST_ID $TOOLS_ENABLED ${DELEGATION_ENABLED-unset}"; '
                             'echo ${#ANTHROPIC_API_KEY} {system_prompt}; echo "$ANTHROPIC_API_KEY"',
                             options=["--config", config])
        self.assertEqual(r.bytes("stdout.log").decode(),
                         f"T1 just-1 false unset\n{len(secret)} Think\n[REDACTED:ANTHROPIC_API_KEY]\n")
        self.assert_not_in_tree(secret.encode(), r.output)
        self.assertEqual(r.json("task.json")["config"], {"x": {"y": 1}})

    def test_output_mapping_of_a_profile(self):
        self.write("adapters/fake.yaml", """
name: fake
binary: [sh]
argv: ["{binary}", -c, "cat $CINCH_PROMPT_FILE", "{args...}"]
output:
  format: ndjson
  rules:
    - {when: {/type: done}, text: /text, session_id: /sid, model: /m, failed: /bad, error: /why,
       structured: /data, usage: {input: /u/i, output: /u/o, cost_usd: /cost, api_calls: /calls}}
    - {when: {/type: tool}, entry: tool_use}
""")
        doc = {"type": "done", "text": "final", "sid": "s-9", "m": "real-model", "bad": False, "data": {"a": [1]},
               "u": {"i": 120, "o": 30}, "cost": 0.25, "calls": 3}
        prompt = '{"type":"tool","tool_name":"x"}\nnoise\n' + json.dumps(doc) + "\n"
        r = self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "fake", "--prompt",
                           self.write("p", prompt))
        self.assertEqual(r.result["text"], "final")
        self.assertEqual(r.result["session_id"], "s-9")
        self.assertEqual(r.result["output"], {"a": [1]})
        m = r.metrics
        self.assertEqual((m["tokens_input"], m["tokens_output"], m["tokens_total"], m["cost_usd"], m["api_calls"]),
                         (120, 30, 150, 0.25, 3))
        self.assertEqual(r.manifest["metadata"]["engine"]["model"], "real-model")
        self.assertIn("tool_use", [x.get("entry_type") for x in r.lines("transcript.jsonl")])
        doc.update(bad=True, why="no credit")
        r = self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "fake", "--prompt",
                           self.write("p", json.dumps(doc)))
        self.assertEqual((r.code, r.reason), (1, "failure"))
        self.assertIn("no credit", r.manifest["error"])


class Output(harness.Case):
    def test_a_used_directory_is_refused(self):
        out = self.make_dir("used")
        self.write("used/precious", "mine")
        r = self.run_cinch("--", "true", output=out, valid=False)
        self.assert_failed(r, 73, "not empty", "--force")
        self.assertEqual(os.listdir(out), ["precious"])

    def test_force_archives_it(self):
        out = self.make_dir("used")
        self.write("used/precious", "mine")
        r = self.run_cinch("--force", "--", "true", output=out)
        self.assertEqual(r.code, 0)
        self.assertFalse(r.exists("precious"))
        others = [n for n in os.listdir(self.dir) if n.startswith("used.")]
        self.assertEqual(len(others), 1)
        self.assertEqual(os.listdir(self.path(others[0])), ["precious"])

    def test_force_moves_neither_the_workspace_nor_the_prompt(self):
        self.write("project/sub/file", "mine")
        prompt = self.write("project/prompt.md", "do it")
        os.symlink(self.path("project", "sub"), self.path("link"))
        out = self.path("project")
        for args in (["--set", f"workspace={out}"], ["--set", f"workspace={out}/sub"],
                     ["--set", f"workspace={self.path('link')}"], ["--prompt", prompt]):
            r = self.run_cinch("--force", *args, "--", "true", output=out, valid=False)
            self.assert_failed(r, 73, "cannot archive output directory")
            self.assertEqual(sorted(os.listdir(out)), ["prompt.md", "sub"])

    def test_an_empty_directory_is_fine(self):
        self.assertEqual(self.run_cinch("--", "true", output=self.make_dir("empty")).code, 0)

    def test_without_output_a_directory_is_made_in_the_users_state(self):
        r = self.cinch("run", "--format", "quiet", "--workspace", self.workspace, "--", "true")
        self.assertEqual(r.code, 0, r.stderr)
        made = r.stdout.decode().strip()
        self.assertTrue(made.startswith(os.path.join(self.env["HOME"], ".local/state/cinch/runs/")), made)
        self.assertTrue(os.path.exists(os.path.join(made, "manifest.json")))
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(made)).st_mode), 0o700)

    def test_json_summary(self):
        r = self.run_cinch("--format", "json", "--", "sh", "-c", "exit 3")
        o = json.loads(r.stdout)
        self.assertEqual((o["reason"], o["exit_status"], o["output_dir"]), ("failure", 1, r.output))


if __name__ == "__main__":
    harness.main()
