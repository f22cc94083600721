# SPDX-License-Identifier: MIT
"""Test cases and their results: read from cmocka and meson, counted, written as JUnit XML."""

import json
import re
import xml.etree.ElementTree as xml
from dataclasses import dataclass

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
SKIP_EXIT = 77

# Not the sums at the end: "1 test(s), listed below:", with the name of the group before it in newer versions.
CMOCKA = re.compile(r"^\[ *(RUN|OK|SKIPPED|FAILED) *\] (?!.*\btest\(s\))(.+)$")
# Bytes that XML 1.0 cannot hold, not even escaped; a test that prints noise may print them.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Case:
    suite: str
    name: str
    status: str
    seconds: float = 0.0
    text: str = ""  # why it failed or was skipped


def count(cases):
    """(passed, failed, skipped)"""
    return tuple(sum(c.status == s for c in cases) for s in (PASSED, FAILED, SKIPPED))


def summary(cases):
    return "{} passed, {} failed, {} skipped".format(*count(cases))


def tail(text, lines=200):
    parts = text.rstrip().split("\n")
    if len(parts) > lines:
        parts = [f"[{len(parts) - lines} lines before this are in the log]"] + parts[-lines:]
    return "\n".join(parts)


def last_line(text):
    lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    return lines[-1] if lines else ""


def from_cmocka(suite, program, output, good):
    """Cases of one cmocka program, each name once.

    A test may close its descriptors, fork or die, so that its verdict is lost: then the exit status of
    the program decides, and the list of failed tests that cmocka prints at the end.
    """
    verdicts, reasons, said = {}, {}, []
    for line in output.split("\n"):
        match = CMOCKA.match(line)
        if not match:
            said.append(line.strip())
            continue
        word, name = match.groups()
        if word == "RUN":
            verdicts.setdefault(name, None)
            said = []
        elif word == "SKIPPED":
            verdicts[name] = SKIPPED
            reasons.setdefault(name, " ".join(filter(None, said)) or "no reason given")
        elif verdicts.get(name) != FAILED:
            verdicts[name] = PASSED if word == "OK" else FAILED
    lost = PASSED if good or FAILED in verdicts.values() else FAILED
    found = []
    for name, verdict in verdicts.items():
        verdict = verdict or lost
        text = output if verdict == FAILED else reasons.get(name, "")
        found.append(Case(suite, f"{program}: {name}", verdict, 0.0, tail(text)))
    return found


def from_meson(stage, path):
    """Cases of one `meson test`, from its testlog.json (one object a line)."""
    cases = []
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            cases += from_meson_test(stage, json.loads(line))
    return cases


def from_meson_test(stage, test):
    name = test["name"].split(" / ")[-1]
    output = test.get("stdout", "") + "\n" + test.get("stderr", "")
    seconds = test.get("duration", 0.0)
    if test["result"] == "SKIP" or test.get("returncode") == SKIP_EXIT:
        return [Case(stage, name, SKIPPED, seconds, last_line(output) or "no reason given")]
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    cases = from_cmocka(stage, name, output, good)
    if cases:
        cases[0].seconds = seconds
    if not good and not any(c.status == FAILED for c in cases):
        # It died outside of a test, or so hard that its output is lost.
        verdict = f"{test['result'].lower()}, exit status {test.get('returncode')}"
        cases.append(Case(stage, name, FAILED, seconds, f"{verdict}\n{tail(output)}"))
    if not cases:
        cases.append(Case(stage, name, PASSED, seconds))
    return cases


def write_junit(path, cases):
    root = xml.Element("testsuites")
    for suite in dict.fromkeys(c.suite for c in cases):
        members = [c for c in cases if c.suite == suite]
        _, failed, skipped = count(members)
        node = xml.SubElement(
            root, "testsuite", name=suite, tests=str(len(members)), failures=str(failed), skipped=str(skipped)
        )
        for case in members:
            leaf = xml.SubElement(
                node, "testcase", classname=suite, name=case.name, time=f"{case.seconds:.3f}"
            )
            if case.status != PASSED:
                tag = "failure" if case.status == FAILED else "skipped"
                reason = xml.SubElement(leaf, tag, message=NOT_XML.sub("?", last_line(case.text))[:200])
                reason.text = NOT_XML.sub("?", case.text)
    xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
