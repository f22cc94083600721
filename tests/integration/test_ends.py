#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How a run can end: by itself, by a deadline, by the user, by violence. In every case the processes are
gone and the record is whole."""

import os
import shlex
import signal
import subprocess
import time

import harness

PHASES = ["admit", "configure", "prepare", "context", "trust_on", "execute", "trust_off", "parse", "collect", "gate",
          "finish"]


class Deadlines(harness.Case):
    def test_total(self):
        r = self.run_command("sh", "-c", "echo started; sleep 60", options=["--timeout", "300ms"])
        self.assertEqual((r.code, r.reason), (124, "timeout"))
        self.assertEqual(r.metrics["exit_code"], 124)
        self.assertEqual(r.metrics["ext"]["timeout_kind"], "total")
        self.assertTrue(r.metrics["ext"]["timed_out"])
        self.assertEqual(r.bytes("stdout.log"), b"started\n")

    def test_timeout_in_other_exit_profiles(self):
        for profile, code in (("holon", 1), ("scylla", 124)):
            r = self.run_command("sleep", "60", options=["--timeout", "0.1", "--exit-profile", profile])
            self.assertEqual(r.code, code)

    def test_first_output(self):
        r = self.run_command("sleep", "60", options=["--first-output-timeout", "200ms"])
        self.assertEqual((r.code, r.metrics["ext"]["timeout_kind"]), (124, "first_output"))

    def test_first_output_is_met_by_stderr(self):
        r = self.run_command("sh", "-c", "echo x >&2; sleep 0.5", options=["--first-output-timeout", "300ms"])
        self.assertEqual(r.reason, "success")

    def test_idle(self):
        r = self.run_command("sh", "-c", "echo x; sleep 60", options=["--idle-timeout", "300ms"])
        self.assertEqual((r.code, r.metrics["ext"]["timeout_kind"]), (124, "idle"))

    def test_idle_is_not_reached_by_a_busy_grandchild(self):
        """Silent for longer than the limit, but working: a build must not be killed."""
        busy = "while :; do :; done"
        r = self.run_command("sh", "-c", f"timeout 2 setsid sh -c '{busy}'; exit 0",
                             options=["--idle-timeout", "500ms"])
        self.assertEqual(r.reason, "success", r.manifest.get("error"))

    def test_output_keeps_it_alive(self):
        r = self.run_command("sh", "-c", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done",
                             options=["--idle-timeout", "600ms"])
        self.assertEqual(r.reason, "success")

    def test_two_deadlines_at_once(self):
        r = self.run_command("sleep", "60", options=["--timeout", "300ms", "--first-output-timeout", "300ms",
                                                      "--idle-timeout", "300ms"])
        self.assertEqual((r.code, r.reason), (124, "timeout"))
        self.assertIn(r.metrics["ext"]["timeout_kind"], ("total", "first_output", "idle"))

    def test_a_child_that_ignores_term(self):
        r = self.run_command(harness.program("ignore_term"), options=["--timeout", "300ms", "--grace", "200ms"])
        self.assertEqual((r.code, r.metrics["ext"]["engine_exit"]["signal"]), (124, 9))

    def test_a_child_that_ends_well_on_term(self):
        r = self.run_command("sh", "-c", "trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done",
                             options=["--timeout", "300ms"])
        self.assertEqual((r.code, r.reason), (124, "timeout"))
        self.assertEqual(r.bytes("stdout.log"), b"hi\nbye\n")


class Trees(harness.Case):
    """harness.Case checks after each test that no process with its mark is left."""

    def test_grandchild_in_its_own_session_keeps_the_pipe(self):
        r = self.run_command("sh", "-c", "setsid sleep 60 & echo done", options=["--drain", "200ms"])
        self.assertEqual(r.reason, "success")
        self.assertEqual(r.bytes("stdout.log"), b"done\n")
        self.assertEqual(r.metrics["ext"]["leaked_children"], 1)
        self.assertTrue(any("outlived" in w for w in r.manifest["warnings"]))

    def test_double_forked_daemon(self):
        r = self.run_command(harness.program("daemonize"), options=["--drain", "200ms"])
        self.assertEqual(r.reason, "success")

    def test_daemon_with_closed_streams(self):
        r = self.run_command("sh", "-c", "(setsid sleep 60 </dev/null >/dev/null 2>&1 &) ; exit 0")
        self.assertEqual(r.reason, "success")
        self.assertEqual(r.metrics["ext"]["leaked_children"], 1)

    def test_timeout_takes_the_tree(self):
        r = self.run_command("sh", "-c", "setsid sh -c 'trap \"\" TERM; sleep 60 & sleep 60' & sleep 60",
                             options=["--timeout", "300ms", "--grace", "200ms"])
        self.assertEqual(r.code, 124)

    def test_exit_before_end_of_output(self):
        r = self.run_command("sh", "-c", "(sleep 0.3; echo late) & echo early", options=["--drain", "10s"])
        self.assertEqual(r.bytes("stdout.log"), b"early\nlate\n")
        self.assertEqual(r.reason, "success")

    def test_end_of_output_before_exit(self):
        r = self.run_command("sh", "-c", "echo x; exec >&- 2>&-; sleep 0.3; exit 4")
        self.assertEqual(r.metrics["exit_code"], 4)

    def test_fork_storm(self):
        r = self.run_command(harness.program("spawn_storm"), options=["--timeout", "500ms", "--grace", "100ms"])
        self.assertEqual(r.code, 124)


HIDE = """
import ctypes, os, signal, sys, threading, time
libc = ctypes.CDLL(None)
def stay():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
    time.sleep(600)
def fork(work):
    if os.fork() == 0:
        os.setsid()
        work()
        os._exit(0)
def hop():
    for _ in range(1000000):
        if os.fork():
            os._exit(0)
        os.setsid()
def hops():
    for _ in range(8):
        fork(hop)
def subreaper():
    libc.prctl(36, 1, 0, 0, 0)
    fork(lambda: fork(stay))
    stay()
def thread():
    threading.Thread(target=lambda: (fork(stay), stay())).start()
    time.sleep(600)
def clone_parent():
    if libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0:
        os.setsid()
        stay()
def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)
def traced():
    pid = os.fork()
    if pid == 0:
        libc.ptrace(0, 0, 0, 0)
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
    stay()
def headless():
    threading.Thread(target=lambda: (fork(stay), stay())).start()
    time.sleep(0.1)
    libc.syscall(60, 0)
null = os.open("/dev/null", os.O_RDWR)
for fd in (1, 2):
    os.dup2(null, fd)
for way in (stay, lambda: fork(stay), hops, subreaper, thread, lambda: fork(clone_parent), stopped, traced, headless):
    fork(way)
time.sleep(0.3)
if sys.argv[1:]:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)
"""


class Sweep(harness.Case):
    """An agent without a sandbox kills the cinch-init that supervises it."""

    def started(self, shell, *command):
        """Starts processes with a shell that then becomes cinch; those write their pids into `older`."""
        output = self.new_output()
        line = self.command_line(["--sandbox", "off", "--", *command], output)
        older = self.path("older")
        env = {**self.env, "OLDER": older, "LINE": " ".join(map(shlex.quote, line))}
        done = subprocess.run(["sh", "-c", shell + '; eval exec "$LINE"'], env=env, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=harness.PATIENCE)
        with open(older) as f:
            pids = [int(word) for word in f.read().split()]
        alive = [pid for pid in pids if self.is_alive(pid)]
        for pid in alive:
            os.kill(pid, signal.SIGKILL)
        return harness.Result(done.returncode, done.stdout, done.stderr, output), pids, alive

    def is_alive(self, pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def test_daemons_of_the_agent_are_killed(self):
        for how in ("setsid sleep 1000 >/dev/null 2>&1 &", "(setsid sh -c 'sleep 1000 & sleep 1001' >/dev/null 2>&1 &) &"):
            for end in ("exit 0", "kill -9 $PPID; sleep 1000"):
                r = self.run_command("sh", "-c", how + " " + end, options=["--sandbox", "off"])
                self.assertEqual(r.reason, "success" if end == "exit 0" else "internal")
                self.assertEqual(harness.marked(self.mark), [])

    def test_ways_to_hide_are_no_way_out(self):
        """Double forks, hops from process to process, subreapers, threads that fork, clones beside the parent, stopped and
        traced processes, a process whose first thread has ended: with and without the supervisor, nothing is left."""
        agent = self.write("hide.py", HIDE)
        for end in ((), ("kill",)):
            with self.subTest(end=end):
                r = self.run_command("/usr/bin/python3", agent, *end, options=["--sandbox", "off"])
                self.assertEqual(r.reason, "internal" if end else "success", r.stderr)
                self.assertEqual(harness.marked(self.mark), [])

    def test_children_that_cinch_had_before_stay(self):
        older = ("setsid sleep 1000 >/dev/null 2>&1 & echo $! > $OLDER; sleep 1001 >/dev/null 2>&1 & echo $! >> $OLDER; "
                 "setsid sh -c 'sleep 1002 & echo $! >> $OLDER; exec sleep 1003' >/dev/null 2>&1 & echo $! >> $OLDER; "
                 "while [ $(wc -l < $OLDER) -lt 4 ]; do sleep 0.01; done")
        agent = "setsid sleep 1004 >/dev/null 2>&1 & kill -9 $PPID; sleep 1005"
        r, pids, alive = self.started(older, "sh", "-c", agent)
        self.assertEqual(r.reason, "internal")
        self.assertEqual(sorted(alive), sorted(pids), "cinch killed processes that were there before the run")
        harness.wait_until(lambda: harness.marked(self.mark) == [], "nothing of the agent is left")


class Interrupt(harness.Case):
    def start_sleeping(self, *options, command=("sh", "-c", "echo ready; sleep 60")):
        process, r = self.start(*options, "--", *command)
        harness.wait_until(lambda: r.exists("stdout.log") and b"ready" in r.bytes("stdout.log"), "the agent")
        return process, r

    def test_ctrl_c(self):
        process, r = self.start_sleeping()
        process.send_signal(signal.SIGINT)
        self.finish(process, r)
        self.assertEqual((r.code, r.reason, r.manifest["resumable"]), (130, "interrupted", True))
        self.assertEqual(r.state["state"], "canceled")

    def test_term(self):
        process, r = self.start_sleeping()
        process.send_signal(signal.SIGTERM)
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (143, "terminated"))

    def test_when_signals_were_blocked_at_the_start(self):
        everything = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            process, r = self.start("--", "sh", "-c", "echo ready; sleep 60")
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, everything)
        harness.wait_until(lambda: r.exists("stdout.log") and b"ready" in r.bytes("stdout.log"), "the agent")
        process.send_signal(signal.SIGINT)
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (130, "interrupted"))

    def test_nohup(self):
        process, r = self.start("--workspace-mode", "in-place", "--", "sh", "-c",
                                "echo ready; until [ -e stop ]; do sleep 0.01; done; echo end",
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        harness.wait_until(lambda: r.exists("stdout.log") and b"ready" in r.bytes("stdout.log"), "the agent")
        process.send_signal(signal.SIGHUP)
        self.write("ws/stop", "")
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (0, "success"))
        self.assertEqual(r.bytes("stdout.log"), b"ready\nend\n")

    def test_second_ctrl_c_kills(self):
        process, r = self.start_sleeping("--grace", "60s", command=("sh", "-c", "trap '' TERM; echo ready; sleep 60"))
        process.send_signal(signal.SIGINT)
        harness.wait_until(lambda: r.events("process.signal"), "SIGTERM to be sent")
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (130, "killed"))

    def test_in_every_phase(self):
        for phase in PHASES:
            process, r = self.start("--", "sh", "-c", "sleep 60" if phase == "execute" else "exit 0",
                                    env={"CINCH_STOP_AT": phase})
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGCONT)
            self.finish(process, r)
            if phase == "finish":
                self.assertIn(r.reason, ("success", "interrupted"), phase)
            else:
                self.assertEqual((r.reason, r.code), ("interrupted", 130), phase)
            self.assertEqual(r.state["phase"], "done")


class Killed(harness.Case):
    """kill -9 of cinch: nothing survives, and the record can be closed."""

    def recover(self, r):
        again = self.cinch("recover", r.output)
        self.assertEqual(again.code, 0, again.stderr)
        self.assert_valid(r)
        return r

    def test_in_every_phase(self):
        for phase in PHASES:
            process, r = self.start("--", "sh", "-c", "exit 0", env={"CINCH_STOP_AT": phase})
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            process.kill()
            process.wait()
            self.recover(r)
            self.assertEqual((r.reason, r.manifest["resumable"]), ("interrupted", True), phase)
            self.assertFalse(r.exists("home"), phase)
            self.assertEqual(self.cinch("recover", r.output).code, 0)

    def test_while_the_agent_works(self):
        process, r = self.start("--", "sh", "-c", "setsid sleep 60 & echo partial; sleep 60")
        harness.wait_until(lambda: r.exists("stdout.log") and b"partial" in r.bytes("stdout.log"), "the agent")
        process.kill()
        process.wait()
        harness.wait_until(lambda: not harness.marked(self.mark), "the tree to be gone")
        self.recover(r)
        self.assertEqual(r.bytes("stdout.log"), b"partial\n")
        self.assertEqual(r.reason, "interrupted")

    def test_at_random_moments(self):
        for i in range(12 if not harness.SANITIZED else 4):
            process, r = self.start("--", "sh", "-c", "sh -c 'sleep 60' & sleep 60")
            time.sleep(0.003 * i)
            process.kill()
            process.wait()
            harness.wait_until(lambda: not harness.marked(self.mark), "the tree to be gone")
            if any(not n.endswith(".tmp") for _, _, names in os.walk(r.output) for n in names):
                self.recover(r)  # else it was killed before the record began: at most empty directories

    def test_the_keeper_is_killed(self):
        process, r = self.start("--", "sh", "-c", "setsid sleep 60 & echo ready; sleep 60")
        harness.wait_until(lambda: r.exists("stdout.log") and b"ready" in r.bytes("stdout.log"), "the agent")
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as f:
            keeper = int(f.read().split()[0])
        os.kill(keeper, signal.SIGKILL)
        self.finish(process, r)
        self.assertEqual((r.code, r.reason), (70, "internal"))

    def test_the_next_start_closes_it(self):
        process, r = self.start("--", "true", env={"CINCH_STOP_AT": "prepare"})
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.kill()
        process.wait()
        again = self.run_cinch("--", "true", output=r.output)
        self.assertEqual(again.code, 73)
        self.assertEqual(r.reason, "interrupted")
        again = self.run_cinch("--force", "--", "true", output=r.output)
        self.assertEqual(again.reason, "success")

    def test_a_living_run_is_not_recovered(self):
        process, r = self.start("--", "sh", "-c", "echo ready; sleep 60")
        harness.wait_until(lambda: r.exists("stdout.log") and b"ready" in r.bytes("stdout.log"), "the agent")
        again = self.cinch("recover", r.output)
        self.assertNotEqual(again.code, 0)
        again = self.run_cinch("--force", "--", "true", output=r.output, valid=False)
        self.assertEqual(again.code, 73)
        process.send_signal(signal.SIGINT)
        self.finish(process, r)
        self.assertEqual(r.reason, "interrupted")

    def test_a_verdict_that_stands_is_told(self):
        r = self.run_command("sh", "-c", "exit 3")
        os.unlink(r.path("result.json"))
        done = self.cinch("recover", r.output)
        self.assertIn(b"closed, reason failure", done.stdout)
        self.assert_valid(r)
        self.assertEqual((r.reason, r.state["reason"], r.result["reason"]), ("failure",) * 3)

    def test_a_finished_record_is_not_touched(self):
        r = self.run_command("true")
        before = {n: r.bytes(n) for n in ("manifest.json", "metrics.json", "result.json", "state.json", "events.jsonl")}
        self.assertEqual(self.cinch("recover", r.output).code, 0)
        self.assertEqual(before, {n: r.bytes(n) for n in before})


if __name__ == "__main__":
    harness.main()
