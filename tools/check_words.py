#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Text that does not belong in the tree: marks of unfinished work, paths of one machine, stray blanks, and phrases that
docs/glossary.md retires.

Retired phrases are looked for where people read them: in Markdown (code is left out), in public headers, in string
literals below src/, and in the texts of profiles, scenarios and schemas. Files that are not converted yet are listed
with their count in tools/words.txt. That list may only shrink: a count that could be lower is a failure, and --prune
lowers it.

  check_words.py [--root DIR] [--list FILE] [--prune]
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

# Only phrases that are wrong wherever they occur; words that are also ordinary English are a matter of review.
RETIRED = {
    r"(?:is|are|was|were|be|been) told": "reported, printed, recorded",
    r"whoever": "a process or caller that",
    r"(?:no|some)body(?:'s)?": "no program, another process, a person",
    r"(?<!there\s)is none(?! of\b)": "is missing, is not valid",
    r"be had": "be available",
    r"(?:comes?|came) of it": "results from it",
    r"of its makers": "of the vendor",
    r"order of chance": "random order",
    r"errands?": "helper",
}
PHRASE = re.compile(r"\b(" + "|".join(f"({p})" for p in RETIRED).replace(" ", r"\s+") + r")\b", re.IGNORECASE)
# The glossary names the phrases.
EXEMPT = ("docs/glossary.md",)
# A user name of Unix, alone in its literal.
USER_NAME = re.compile(r'"nobody"')
LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')
MARKDOWN_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`|\]\([^)\n]*\)", re.MULTILINE | re.DOTALL)


def check(name, text):
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}:{number}"
        match = UNFINISHED.search(line)
        if match:
            yield f"{where}: '{match.group(0)}': finish it, or write it into an issue"
        match = MACHINE.search(line)
        if match:
            yield f"{where}: path of one machine: {match.group(0)}"
        if CONFLICT.match(line):
            yield f"{where}: merge conflict"
        if line != line.rstrip() and not name.endswith((".md", ".patch", ".diff")):
            yield f"{where}: blanks at the end of the line"
    if text and not text.endswith("\n"):
        yield f"{name}: no newline at the end of the file"


def keep(text, parts, inside):
    """`text` with everything inside (or outside) of the matches `parts` blanked; lines stay lines."""
    out, at = [], 0
    blank = lambda t: re.sub(r"[^\n]", " ", t)  # noqa: E731
    for match in parts:
        between, part = text[at : match.start()], match.group(0)
        out += [blank(between), part] if inside else [between, blank(part)]
        at = match.end()
    out.append(blank(text[at:]) if inside else text[at:])
    return "".join(out)


def prose(name, text):
    """What a person reads of a file, in place; None if that is nothing."""
    if name.endswith(".md"):
        return keep(text, MARKDOWN_CODE.finditer(text), inside=False)
    if name.startswith("include/") or name.startswith(("adapters/", "ack/", "schema/")):
        return text
    if name.startswith("src/") and name.endswith((".c", ".h")):
        text = tree.blank(text, keep_strings=True)
        text = re.sub(r"^[ \t]*#[ \t]*include.*", "", text, flags=re.MULTILINE)
        text = USER_NAME.sub('"      "', text)
        # Literals that the compiler joins are one text.
        return keep(text, LITERALS.finditer(text), inside=True).replace('"', " ")
    return None


def retired(name, text):
    """A line about each retired phrase of a file."""
    text = None if name in EXEMPT else prose(name, text)
    for match in PHRASE.finditer(text or ""):
        number = text.count("\n", 0, match.start()) + 1
        better = list(RETIRED.values())[next(i for i, g in enumerate(match.groups()[1:]) if g)]
        words = " ".join(match.group(0).split())
        yield f"{name}:{number}: '{words}' is retired (docs/glossary.md): {better}"


def read_list(path):
    """name -> (line number, count) of the files that are not converted yet."""
    entries = {}
    if os.path.exists(path):
        for number, words in tree.table(path):
            if len(words) != 2 or not words[1].isdigit():
                sys.exit(f"{path}:{number}: expected PATH COUNT")
            entries[words[0]] = (number, int(words[1]))
    return entries


def prune(path, found):
    """Lowers the counts of the list to what was found; never raises one, never adds one."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    for name, (number, count) in read_list(path).items():
        now = min(count, len(found.get(name, [])))
        lines[number - 1] = f"{name} {now}" if now else None
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(line for line in lines if line is not None))


def check_list(path, found):
    entries = read_list(path)
    for name, problems in found.items():
        number, allowed = entries.pop(name, (None, 0))
        if len(problems) > allowed:
            yield from problems
            if number:
                yield f"{path}:{number}: {name} has {len(problems)} retired phrases, at most {allowed}"
        elif len(problems) < allowed:
            yield f"{path}:{number}: can be lowered to {len(problems)} (--prune): {name}"
    for name, (number, _) in entries.items():
        yield f"{path}:{number}: not needed any more, remove it (--prune): {name}"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(here))
    parser.add_argument("--list", default=os.path.join(here, "words.txt"))
    parser.add_argument("--prune", action="store_true", help="lower the counts of the list where that is possible")
    args = parser.parse_args()
    problems, found = [], {}
    for name in tree.files(args.root):
        if not name.startswith(FOREIGN) and tree.is_text(args.root, name):
            text = tree.read(args.root, name)
            problems += check(name, text)
            phrases = list(retired(name, text))
            if phrases:
                found[name] = phrases
    if args.prune:
        prune(args.list, found)
    problems += check_list(args.list, found)
    return tree.report(problems)


if __name__ == "__main__":
    sys.exit(main())
