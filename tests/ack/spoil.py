#!/usr/bin/python3 -IS
# SPDX-License-Identifier: MIT
"""A broken cinch for the compatibility kit. Started in place of cinch (variable CINCH) as `spoil-FAULT`, it runs the
program `cinch` that lies beside it, with one thing wrong: either the task is changed before, so that a promise is not
kept, or the record is spoiled after. What cinch guarantees whatever the agent does can only be broken here."""

import json
import os
import re
import signal
import subprocess
import sys

FAULT = os.path.basename(sys.argv[0]).removeprefix("spoil-")
REAL = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "cinch")
MARK = "CINCH_ACK_MARK"


class Record:
    """The directory that a run left."""

    def __init__(self, path):
        self.dir = path

    def path(self, name):
        return os.path.join(self.dir, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def change(self, name, function):
        """A JSON file, as the function leaves it."""
        value = json.loads(self.read(name))
        function(value)
        self.write(name, json.dumps(value))

    def lines(self, name, function):
        """JSON lines: the function gives for each what is in its place, a list."""
        out = []
        for line in self.read(name).splitlines():
            out += [json.dumps(v, separators=(",", ":")) + "\n" for v in function(json.loads(line))]
        self.write(name, "".join(out))

    def events(self, name, function):
        self.lines("events.jsonl", lambda e: function(e) if e["event"] == name else [e])

    def entries(self, kind, function):
        """Of the transcript; None: of all types."""
        fits = lambda e: e.get("entry_type") is not None and kind in (None, e["entry_type"])
        self.lines("transcript.jsonl", lambda e: function(e) if fits(e) else [e])

    def add_to_patch(self, name):
        self.write("diff.patch", self.read("diff.patch") +
                   f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n")


class Call:
    """The command line of `cinch run`."""

    def __init__(self, words):
        self.words = words
        self.record = Record(self.value("--output"))
        self.task = words[-1]
        self.replays = "--cassette" in words

    def value(self, option):
        return self.words[self.words.index(option) + 1]

    def change_task(self, function):
        with open(self.task, encoding="utf-8") as f:
            task = json.load(f)
        function(task)
        self.words[-1] = self.task + "-changed.json"
        with open(self.words[-1], "w", encoding="utf-8") as f:
            json.dump(task, f)


def put(**values):
    """A function that changes members of an object."""
    return lambda v: v.update(values)


def with_context(**values):
    """The same of an event's context, for Record.lines."""
    return lambda e: [{**e, "context": {**e["context"], **values}}]


def with_detail(**values):
    return lambda e: [{**e, "detail": {**e["detail"], **values}}]


# --- before the run ---


def double_limits(call):
    def change(task):
        task["limits"] = {k: v if k == "timeout" else v * 2 for k, v in task["limits"].items()}
    call.change_task(change)


def no_limits(call):
    call.change_task(lambda task: task["limits"].pop("tokens_input"))


def no_deadline(call):
    call.change_task(lambda task: task["limits"].pop("deadline"))


def no_policies(call):
    call.change_task(lambda task: task.pop("policies"))


def no_feedback(call):
    call.change_task(lambda task: task.pop("feedback"))


def no_completion(call):
    call.change_task(lambda task: task.pop("completion"))


def own_completion(call):
    call.change_task(put(completion={"files": ["never-there.txt"], "max_rounds": 1}))


def no_mounts(call):
    call.change_task(lambda task: task.pop("workspace"))


def open_network(call):
    site = lambda task: re.search(r"http://([0-9.:]+)/page", json.dumps(task)).group(1)
    call.change_task(lambda task: put(sandbox={"net": [site(task)]})(task))


def no_second_try(call):
    call.change_task(put(throttle={"max_attempts": 1}))


def no_environment(call):
    call.change_task(lambda task: task["env"]["set"].pop("ACK_TEST_ENV"))


def any_write(call):
    call.change_task(put(sandbox={"mode": "workspace-write", "write": [os.path.dirname(os.path.dirname(call.record.dir))]}))


def waits_for_input(_):
    sys.stdin.read()


# --- after the run ---


def touches_workspace(call):
    with open(os.path.join(call.value("--workspace"), "made.txt"), "w", encoding="utf-8") as f:
        f.write("new\n")


def touches_times(call):
    os.utime(os.path.join(call.value("--workspace"), "keep.txt"), (1, 1))


def writes_home(_):
    with open(os.path.join(os.environ["HOME"], ".cinch-state"), "w", encoding="utf-8") as f:
        f.write("x\n")


def leaves_a_process(call):
    with open(call.task, encoding="utf-8") as f:
        mark = json.load(f)["env"]["set"][MARK]
    null = subprocess.DEVNULL
    subprocess.Popen(["/bin/sleep", "3"], env={MARK: mark}, stdin=null, stdout=null, stderr=null, start_new_session=True)


def swapped_calls(call):
    text = call.record.read("transcript.jsonl").splitlines(True)
    at = [i for i, line in enumerate(text) if '"entry_type":"tool_' in line]
    text[at[0]], text[at[-1]] = text[at[-1]], text[at[0]]
    call.record.write("transcript.jsonl", "".join(text))


def remembers_failures(call):
    def add(snapshot):
        for s in snapshot["slices"]:
            if s["slice_type"] == "ToolOperationLog":
                s["items"] += [{"operation": "op_failure"}, {"operation": "op2"}]
        return [snapshot]
    call.record.lines("session/after.jsonl", add)


AFTER = {
    "other_prompt_name": lambda c: c.record.entries("assistant_message", lambda e: [{**e, "prompt_name": "another"}]),
    "other_result_name": lambda c: c.record.events("PromptExecuted", with_context(prompt_name="another")),
    "no_rendered_event": lambda c: c.record.events("PromptRendered", lambda e: []),
    "rendered_nothing": lambda c: c.record.events("PromptRendered", with_context(rendered_prompt="")),
    "executed_twice": lambda c: c.record.events("PromptExecuted", lambda e: [e, e]),
    "executed_after_all": lambda c: c.record.events("PromptRendered", lambda e: [e, {**e, "event": "PromptExecuted"}]),
    "hides_failure": lambda c: c.record.change("manifest.json", lambda m: m.update(reason="success")),
    "half_an_answer": lambda c: c.record.change("result.json", lambda r: r.update(text="HALF-AN-ANSWER one two")),
    "no_executed_event": lambda c: c.record.events("PromptExecuted", lambda e: []),
    "no_call_id": lambda c: c.record.events("ToolInvoked", with_context(call_id="")),
    "other_adapter_in_events": lambda c: c.record.events("ToolInvoked", with_context(adapter="another")),
    "other_rendering": lambda c: c.record.events("RenderedTools", with_context(render_event_id="another")),
    "no_tools_rendered": lambda c: c.record.events("RenderedTools", with_context(tools=[])),
    "no_reason_of_failure": lambda c: c.record.events("ToolInvoked", with_context(failure=None)),
    "failures_look_well": lambda c: c.record.events("ToolInvoked", with_context(success=True)),
    "no_user_message": lambda c: c.record.entries("user_message", lambda e: []),
    "no_source": lambda c: c.record.entries(None, lambda e: [{k: v for k, v in e.items() if k != "source"}]),
    "starts_at_two": lambda c: c.record.entries(None, lambda e: [{**e, "sequence_number": e["sequence_number"] + 1}]),
    "other_type": lambda c: c.record.entries("user_message", lambda e: [{**e, "entry_type": "chatter"}]),
    "other_adapter": lambda c: c.record.entries("user_message", lambda e: [{**e, "adapter": "another"}]),
    "no_stop": lambda c: c.record.lines("transcript.jsonl", lambda e: [] if e.get("event") == "transcript.stop" else [e]),
    "not_an_artifact": lambda c: c.record.change("manifest.json", lambda m: m["artifacts"].remove("transcript.jsonl")),
    "keeps_rollback": lambda c: c.record.add_to_patch("rollback.txt"),
    "keeps_mounted": lambda c: c.record.add_to_patch("data/mounted_file.txt"),
    "any_change": lambda c: c.record.add_to_patch("surprise.txt"),
    "keeps_second": lambda c: c.record.add_to_patch("second.txt"),
    "remembers_failures": remembers_failures,
    "empty_patch": lambda c: c.record.write("diff.patch", ""),
    "no_error": lambda c: c.record.change("result.json", put(error="")),
    "not_resumable": lambda c: c.record.change("manifest.json", put(resumable=False)),
    "no_throttled_event": lambda c: c.record.events("prompt.throttled", lambda e: []),
    "bytes_lost": lambda c: c.record.change("metrics.json", lambda m: m["ext"]["bytes"].update(lost=7)),
    "no_signal_in_metrics": lambda c: c.record.change("metrics.json", lambda m: m["ext"].update(engine_exit=None)),
    "output_error": lambda c: c.record.change("result.json", put(output_error="It does not fit.")),
    "no_evaluation_error": lambda c: c.record.change("result.json", put(evaluation_error=None)),
    "miscounts": lambda c: c.record.change("metrics.json", lambda m: m["ext"]["usage"]["wire"].update(input=1)),
    "denies_nothing": lambda c: c.record.change("manifest.json", lambda m: m["sandbox"].update(denied=[])),
    "denies_more": lambda c: c.record.change("manifest.json", lambda m: m["sandbox"].update(denied=["a.example:443"])),
    "lost_sandbox": lambda c: c.record.change("manifest.json", lambda m: m["sandbox"].update(lost=["files"])),
    "swapped_calls": swapped_calls,
    "touches_workspace": touches_workspace,
    "touches_times": touches_times,
    "writes_home": writes_home,
    "leaves_a_process": leaves_a_process,
    "other_reason": lambda c: c.record.change("manifest.json", put(reason="no_changes")),
    "replays_otherwise": lambda c: c.replays and c.record.events("PromptExecuted", lambda e: []),
    "replays_other_arguments": lambda c: c.replays and c.record.events("ToolInvoked", with_context(params={"a": 1})),
    "replays_other_words": lambda c: c.replays and c.record.entries("assistant_message", with_detail(text="Other words.")),
    "replays_other_changes": lambda c: c.replays and c.record.add_to_patch("surprise.txt"),
    "replays_another_answer": lambda c: c.replays and c.record.change("result.json", put(text="Another.")),
    "exits_well": lambda c: sys.exit(0),
}
BEFORE = {f.__name__: f for f in (double_limits, no_limits, no_deadline, no_policies, no_feedback, no_completion, own_completion,
                                  no_mounts, open_network, no_second_try, no_environment, any_write, waits_for_input)}


def main():
    call = Call(sys.argv[1:])
    if FAULT in BEFORE:
        BEFORE[FAULT](call)
    running = subprocess.Popen([REAL, *call.words], env={**os.environ, "CINCH": REAL})
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: running.send_signal(n))
    status = running.wait()
    if FAULT in AFTER:
        AFTER[FAULT](call)
    sys.exit(status)


main()
