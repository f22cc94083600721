#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""House rules for C that a compiler does not know.

Banned functions, names of files, // comments, the head comment with its licence line, long lines,
printing and exiting below cli, and a corpus for each fuzz target.

  check_source.py [--root DIR]
"""

import argparse
import os
import re
import sys

import tree

# name -> what to use instead
BANNED = {
    "strcpy": "buf or snprintf",
    "stpcpy": "buf or snprintf",
    "strcat": "buf",
    "strncpy": "buf or snprintf",
    "strncat": "buf",
    "sprintf": "snprintf or buf",
    "vsprintf": "vsnprintf or buf",
    "gets": "file.h",
    "strtok": "str.h",
    "atoi": "a parser that reports errors (str.h)",
    "atol": "a parser that reports errors (str.h)",
    "atoll": "a parser that reports errors (str.h)",
    "atof": "a parser that reports errors (str.h)",
    "gmtime": "gmtime_r",
    "localtime": "localtime_r",
    "ctime": "clock.h",
    "asctime": "clock.h",
    "mktemp": "mkostemp",
    "tmpnam": "mkostemp",
    "tempnam": "mkostemp",
    "system": "proc",
    "popen": "proc",
    "signal": "sigaction, or io",
    "usleep": "a timer of io",
    "sleep": "a timer of io",
    "alloca": "arena.h",
    "setjmp": "plain returns",
    "longjmp": "plain returns",
}
# name -> (layers where it may be used, what to use elsewhere)
RESTRICTED = {
    "fork": (("init",), "proc: only the helper may run code between fork and exec"),
    "vfork": (("init",), "proc: only the helper may run code between fork and exec"),
    "exit": (("cli", "init"), "an error: libraries do not end the program"),
    "_exit": (("cli", "init"), "an error: libraries do not end the program"),
    "printf": (("cli", "init"), "an error or an event: libraries do not print"),
    "vprintf": (("cli", "init"), "an error or an event: libraries do not print"),
    "puts": (("cli", "init"), "an error or an event: libraries do not print"),
    "putchar": (("cli", "init"), "an error or an event: libraries do not print"),
    "perror": (("init",), "struct err"),
}
COLUMNS = 100
STEMS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "core"}
PRINT = re.compile(
    r"\bfputs\s*\([^;]*\b(?:stdout|stderr)\s*\)|\bv?fprintf\s*\(\s*(?:stdout|stderr)\b"
)
LAST_WORDS = re.compile(r"[^;]*;\s*abort\s*\(\s*\)")
CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def check_calls(name, text, layer):
    for match in CALL.finditer(text):
        function = match.group(1)
        line = line_of(text, match.start())
        if function in BANNED:
            yield f"{name}:{line}: {function}() is banned; use {BANNED[function]}"
        elif layer and function in RESTRICTED and layer not in RESTRICTED[function][0]:
            yield f"{name}:{line}: {function}() has no place in {layer}; use {RESTRICTED[function][1]}"
    if layer and layer not in ("cli", "init") and name != "src/base/log.c":
        for match in PRINT.finditer(text):
            # The last words before abort() are allowed: nobody is left to return an error to.
            if not LAST_WORDS.match(text, match.end()):
                line = line_of(text, match.start())
                yield f"{name}:{line}: libraries do not print (only base/log.c does)"


def check_columns(name, text):
    """clang-format leaves comments alone; tables between its off and on are as wide as they need."""
    by_hand = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() in ("/* clang-format off */", "/* clang-format on */"):
            by_hand = "off" in line
        elif len(line) > COLUMNS and not by_hand:
            yield f"{name}:{number}: {len(line)} columns; the limit is {COLUMNS}"


def check_shape(root, name):
    text = tree.read(root, name)
    if not text.startswith("/* SPDX-License-Identifier: MIT\n"):
        yield f"{name}:1: must start with '/* SPDX-License-Identifier: MIT' and a head comment"
    stem = os.path.splitext(os.path.basename(name))[0]
    if stem in STEMS:
        yield f"{name}:1: '{stem}' says nothing; name the file after its noun"
    for match in tree.C_TOKEN.finditer(text):
        if match.group(0).startswith("//"):
            yield f"{name}:{line_of(text, match.start())}: comments are /* */"
    yield from check_columns(name, text)
    yield from check_calls(name, tree.blank(text), tree.layer_of(name))


def check_fuzz(root, names):
    """Each fuzz target is listed and has something to replay."""
    listing = "tests/fuzz/meson.build"
    listed = set()
    if listing in names:
        listed = set(re.findall(r"^\s*'(\w+)':", tree.read(root, listing), re.MULTILINE))
    for name in names:
        match = re.fullmatch(r"tests/fuzz/fuzz_(\w+)\.c", name)
        if not match:
            continue
        noun = match.group(1)
        if noun not in listed:
            yield f"{name}:1: not listed in {listing}"
        if not any(n.startswith(f"tests/fuzz/corpus/{noun}/") for n in names):
            yield f"{name}:1: no corpus in tests/fuzz/corpus/{noun}/"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    args = parser.parse_args()
    problems = []
    for name in tree.c_files(args.root) + tree.c_files(args.root, ("tests/", "bench/")):
        problems += check_shape(args.root, name)
    problems += check_fuzz(args.root, tree.files(args.root))
    return tree.report(problems)


if __name__ == "__main__":
    sys.exit(main())
