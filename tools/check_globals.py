#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Finds writable variables that outlive a function: file-scope and static local ones.

State belongs into a struct that somebody owns. Reads the symbol tables of the layers' archives, so
nothing hides behind a macro. The few exceptions stand, with a reason, in tools/globals.txt as
"LAYER SYMBOL reason"; an exception that is no longer needed is a failure too.

  check_globals.py [--root DIR] [--build DIR] [--allowed FILE]
"""

import argparse
import os
import re
import subprocess
import sys

import tree

# Constant tables of pointers lie in .data.rel.ro; the loader writes them, the program cannot.
WRITABLE = re.compile(r"^(\.data|\.bss|\.tdata|\.tbss|\*COM\*)(?!\.rel\.ro)")
SYMBOL = re.compile(r"^[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+\s+(?:\.(?:hidden|internal|protected) )?(\S+)$")
COMPILER_MADE = re.compile(r"^(__|_GLOBAL|\.)")


def writable_symbols(archive):
    dump = subprocess.run(["objdump", "-t", archive], capture_output=True, text=True, check=False)
    if dump.returncode != 0:
        sys.exit(f"objdump -t {archive}: {dump.stderr.strip()}")
    member = "?"
    for line in dump.stdout.splitlines():
        if ":     file format" in line:
            member = os.path.basename(line.split(":     ")[0])
            continue
        match = SYMBOL.match(line)
        if match and "O" in match.group(1) and WRITABLE.match(match.group(2)):
            name = re.sub(r"\.\d+$", "", match.group(3))
            if not COMPILER_MADE.match(name):
                yield member, name


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(here))
    parser.add_argument("--build", help="default: build below the root")
    parser.add_argument("--allowed", default=os.path.join(here, "globals.txt"))
    args = parser.parse_args()
    build = args.build or os.path.join(args.root, "build")
    allowed = {(words[0], words[1]): number for number, words in tree.table(args.allowed)}
    problems, found, archives = [], set(), 0
    for folder, _, names in sorted(os.walk(os.path.join(build, "src"))):
        for name in sorted(names):
            if not (name.startswith("lib") and name.endswith(".a")):
                continue
            archives += 1
            layer = name[len("lib") : -len(".a")]
            for member, symbol in writable_symbols(os.path.join(folder, name)):
                found.add((layer, symbol))
                if (layer, symbol) not in allowed:
                    problems.append(f"{layer}: {member}: writable variable '{symbol}'")
    if archives == 0:
        problems.append(f"no archives below '{build}/src'; run make build")
    else:
        for entry, number in allowed.items():
            if entry not in found:
                problems.append(f"{args.allowed}:{number}: '{' '.join(entry)}' is not needed any more")
    return tree.report(problems)


if __name__ == "__main__":
    sys.exit(main())
