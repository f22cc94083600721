#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The file that says when the agent last gave a sign of life."""

import datetime
import json
import os

import harness


class Heartbeat(harness.Case):
    def beat(self, r):
        """The time in the file; None: there is none so far."""
        try:
            text = r.bytes("heartbeat").decode()
        except FileNotFoundError:
            return None
        self.assertRegex(text, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\n$")
        return datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))

    def beats_on(self, r, process, times=3):
        """It changes again and again while the run goes on."""
        seen = set()

        def more():
            self.assertIsNone(process.poll(), "the run has ended")
            seen.add(self.beat(r))
            return len(seen - {None}) >= times
        harness.wait_until(more, "more beats")

    def stop(self, r, process):
        process.terminate()
        self.finish(process, r)

    def test_output(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        process, r = self.start("--sandbox", "off", "--", "sh", "-c", f"echo one; cat {fifo} > /dev/null; echo two")
        harness.wait_until(lambda: self.beat(r), "the first beat")
        before = self.beat(r)
        with open(fifo, "w"):
            pass
        self.finish(process, r)
        self.assertEqual(r.reason, "success")
        self.assertGreaterEqual(self.beat(r), before)
        self.assertNotIn("heartbeat", r.manifest["artifacts"])

    def test_silent_work_is_life(self):
        process, r = self.start("--", harness.program("burn_cpu"), "60000")
        self.beats_on(r, process)
        self.stop(r, process)

    def test_a_tool_that_takes_its_time(self):
        script = self.write("model.yaml", json.dumps({"side": False, "steps": [
            {"when": {"turn": 0}, "call": {"tool": "slow", "args": {}}}, {"say": "done"}]}))
        tool = {"name": "slow", "description": "Waits.", "command": [self.script("slow.sh", "sleep 60\n")]}
        task = self.write("task.yaml", json.dumps({"agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.",
                                                   "tools": [tool], "gateway": {"script": script},
                                                   "limits": {"idle": "1.5s"}}))
        # Neither output nor work, and an idle deadline: but the call is under way, and that has its own limit.
        process, r = self.start(task)
        self.beats_on(r, process, times=5)
        self.stop(r, process)
        self.assertEqual(r.reason, "terminated")

    def test_nothing_planted_is_followed(self):
        victim = self.write("victim", "precious")
        r = self.run_command("sh", "-c", 'ln -sf "$0" "$CINCH_OUTPUT_DIR/heartbeat"; echo one', victim,
                             options=["--sandbox", "off"])
        self.assertEqual(r.reason, "success")
        with open(victim) as f:
            self.assertEqual(f.read(), "precious")


if __name__ == "__main__":
    harness.main()
