#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Text that has no place in any file: marks of unfinished work, paths of one machine, stray blanks.

  check_words.py [--root DIR]
"""

import argparse
import os
import re
import sys

import tree

# Written in pieces, so that this file passes its own check.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
MACHINE = re.compile(r"(?<![\w.-])/(work|tmp/wt|ro" + r"ot|Users)/[\w.]")
CONFLICT = re.compile(r"^(<{7}|>{7}) ")
# Inputs of tests are bytes, not prose of ours.
FOREIGN = ("tests/fuzz/corpus/", "tests/golden/")


def check(name, text):
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}:{number}"
        match = UNFINISHED.search(line)
        if match:
            yield f"{where}: '{match.group(0)}': finish it, or write it into an issue"
        match = MACHINE.search(line)
        if match:
            yield f"{where}: path of somebody's machine: {match.group(0)}"
        if CONFLICT.match(line):
            yield f"{where}: merge conflict"
        if line != line.rstrip() and not name.endswith((".md", ".patch", ".diff")):
            yield f"{where}: blanks at the end of the line"
    if text and not text.endswith("\n"):
        yield f"{name}: no newline at the end of the file"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    args = parser.parse_args()
    problems = []
    for name in tree.files(args.root):
        if not name.startswith(FOREIGN) and tree.is_text(args.root, name):
            problems += check(name, tree.read(args.root, name))
    return tree.report(problems)


if __name__ == "__main__":
    sys.exit(main())
