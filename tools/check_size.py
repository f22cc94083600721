#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Limits on size: lines a file and a function, parameters, complexity, members of a struct, functions of a private header.

Exceptions stand with a reason in tools/ratchet.txt. That list may only shrink: an entry that is no
longer needed, or whose value could be lower, is a failure.

Members and functions of a private header change often and by few: their exceptions are in steps of five, and may stay
while the value is less than five below.

Functions are found by their shape, which clang-format guarantees: a signature from column 0, then
"{" and "}" alone in column 0. Complexity is pmccabe's modified McCabe number (a switch counts one).

  check_size.py [--root DIR] [--ratchet FILE]
"""

import argparse
import os
import re
import subprocess
import sys

import tree

LIMITS = {"file": 800, "lines": 80, "params": 6, "complexity": 20, "members": 20, "functions": 25}
STEP = {"members": 5, "functions": 5}  # granularity of exceptions; otherwise 1
UNIT = {
    "file": "lines in the file",
    "lines": "lines in the function",
    "params": "parameters",
    "complexity": "complexity",
    "members": "members of the struct",
    "functions": "functions in the private header",
}
NAME = re.compile(r"\b([a-z_]\w*)\s*\(")
STRUCT = re.compile(r"^struct (\w+) \{$", re.MULTILINE)
DECLARATION = re.compile(r"^[a-z_][\w *]*?\b[a-z_]\w*\(", re.MULTILINE)
COMPLEXITY = re.compile(r"^(\d+)\t\d+\t\d+\t(\d+)\t\d+\t(.+)\(\d+\): (\w+)$")


def parameters(signature):
    """(name, number of parameters) of a function's signature."""
    match = NAME.search(signature)
    if not match or match.group(1) == "__attribute__":
        return None, 0
    depth, commas, text = 0, 0, ""
    for char in signature[match.end() - 1 :]:
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                break
        elif char == "," and depth == 1:
            commas += 1
        if depth:
            text += char
    empty = text.strip("( \n") in ("", "void")
    variadic = text.rstrip().endswith("...")  # of a printf-like function; not one to remember
    return match.group(1), 0 if empty else commas + 1 - variadic


def functions(text):
    """(name, first line, lines from signature to end, parameters) of each function definition."""
    lines = tree.blank(text).split("\n")
    for at, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        first = at
        while first > 0 and lines[first - 1].strip() and not re.match(r"^[}#]|.*;\s*$", lines[first - 1]):
            first -= 1
        name, count = parameters("\n".join(lines[first:at]))
        if name is None:
            continue
        last = next((i for i in range(at, len(lines)) if lines[i].rstrip() == "}"), len(lines) - 1)
        yield name, first + 1, last - first + 1, count


def structs(text):
    """(name, number of members) of each struct defined in column 0; a nested struct is one member."""
    blank = tree.blank(text)
    for match in STRUCT.finditer(blank):
        braces, parentheses, members, names = 1, 0, 0, 1
        for char in blank[match.end() :]:
            braces += (char == "{") - (char == "}")
            parentheses += (char == "(") - (char == ")")
            if braces == 0:
                break
            if braces == 1 and not parentheses:
                names += char == ","
                members, names = (members + names, 1) if char == ";" else (members, names)
        yield match.group(1), members


def complexities(root, names):
    """(file, function, complexity) as pmccabe sees them."""
    if not names:
        return
    result = subprocess.run(
        ["pmccabe", *names], cwd=root, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        sys.exit(f"pmccabe: {result.stderr.strip()}")
    for line in result.stdout.splitlines():
        match = COMPLEXITY.match(line)
        if match:
            yield match.group(3), match.group(4), int(match.group(1))


def measure(root):
    """(kind, where, value) of everything that has a limit."""
    names = tree.c_files(root, ("src/", "tests/", "bench/"))
    for name in names:
        text = tree.read(root, name)
        yield "file", name, text.count("\n")
        if name.startswith("src/"):
            for struct, count in structs(text):
                yield "members", f"{name}:{struct}", count
        if name.endswith("_priv.h"):
            yield "functions", name, len(DECLARATION.findall(tree.blank(text)))
        if not name.endswith(".c"):
            continue
        for function, _, lines, count in functions(text):
            yield "lines", f"{name}:{function}", lines
            yield "params", f"{name}:{function}", count
    for name, function, value in complexities(root, [n for n in names if n.endswith(".c")]):
        yield "complexity", f"{name}:{function}", value


def allowed_for(kind, value):
    step = STEP.get(kind, 1)
    return -(-value // step) * step


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(here))
    parser.add_argument("--ratchet", default=os.path.join(here, "ratchet.txt"))
    args = parser.parse_args()
    problems, exceptions = [], {}
    for number, words in tree.table(args.ratchet):
        if len(words) < 4 or words[0] not in LIMITS or not words[2].isdigit():
            sys.exit(f"{args.ratchet}:{number}: expected KIND PATH[:NAME] VALUE reason")
        exceptions[words[0], words[1]] = (number, int(words[2]))
    for kind, where, value in measure(args.root):
        number, allowed = exceptions.pop((kind, where), (None, LIMITS[kind]))
        if value > allowed:
            problems.append(f"{where}: {value} {UNIT[kind]}, at most {allowed}")
        elif number and value <= LIMITS[kind]:
            problems.append(f"{args.ratchet}:{number}: not needed any more, remove it: {where}")
        elif number and value <= allowed - STEP.get(kind, 1):
            problems.append(f"{args.ratchet}:{number}: can be lowered to {allowed_for(kind, value)}: {where}")
    for (kind, where), (number, _) in exceptions.items():
        problems.append(f"{args.ratchet}:{number}: nothing to except ({kind}): {where}")
    return tree.report(problems)


if __name__ == "__main__":
    sys.exit(main())
