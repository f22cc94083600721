#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Puts what a command prints between the two marks of a file, which is written by hand otherwise.

  splice.py [--check] FILE COMMAND...

The marks are the lines `<!-- generated: … -->` and `<!-- end of generated -->`. --check changes nothing, and fails with
the difference when the file is stale."""

import difflib
import subprocess
import sys

BEGIN, END = "<!-- generated: ", "<!-- end of generated -->\n"


def spliced(lines, new, name):
    begins = [i for i, line in enumerate(lines) if line.startswith(BEGIN)]
    ends = [i for i, line in enumerate(lines) if line == END]
    if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        sys.exit(f"{name}: the marks '{BEGIN}…' and '{END.strip()}' must be there once, in this order")
    return lines[:begins[0] + 1] + new + lines[ends[0]:]


def main(args):
    check = args[:1] == ["--check"]
    name, *command = args[check:]
    with open(name, encoding="utf-8") as f:
        before = f.readlines()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    after = spliced(before, done.stdout.splitlines(keepends=True), name)
    if check:
        sys.stdout.writelines(difflib.unified_diff(before, after, name, "generated"))
        return "stale: ninja docs-update" if before != after else 0
    with open(name, "w", encoding="utf-8") as f:
        f.writelines(after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
