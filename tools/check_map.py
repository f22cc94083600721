#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Keeps the table of layers in ARCHITECTURE.md equal to tools/layers.txt.

Every layer of the table in tools/layers.txt has one row, from the top layer down, and the column
"lines" is its size. The check allows the size to drift by a tenth, so that not every commit has to
touch the page.

  check_map.py [--root DIR] [--fix]

--fix writes the sizes.
"""

import argparse
import os
import re
import sys

import check_layers
import tree

ROW = re.compile(r"^\| `(\w+)` \| *([\d,]*) *\|(.*)$")
DRIFT = 0.1


def sizes(root):
    """layer -> lines of its .c and .h files."""
    found = {}
    for name in tree.c_files(root):
        layer = tree.layer_of(name)
        found[layer] = found.get(layer, 0) + tree.read(root, name).count("\n")
    return found


def order_problems(rows, uses):
    """A layer stands above all that it uses."""
    place = {layer: number for number, layer in enumerate(rows)}
    problems = [f"no row for layer '{l}'" for l in uses if l not in place]
    problems += [f"'{l}' is not a layer of tools/layers.txt" for l in rows if l not in uses]
    for layer, used in uses.items():
        for below in used:
            if layer in place and below in place and place[below] < place[layer]:
                problems.append(f"'{layer}' uses '{below}', so its row belongs above")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--fix", action="store_true")
    args = parser.parse_args()
    page = os.path.join(args.root, "ARCHITECTURE.md")
    uses = check_layers.Table(os.path.join(args.root, "tools", "layers.txt")).uses
    now = sizes(args.root)
    uses = {layer: used for layer, used in uses.items() if layer in now}  # some have no code yet
    with open(page, encoding="utf-8") as f:
        lines = f.read().split("\n")
    rows, problems = [], []
    for number, line in enumerate(lines):
        match = ROW.match(line)
        if not match:
            continue
        layer, size = match[1], int(match[2].replace(",", "") or 0)
        rows.append(layer)
        if args.fix:
            lines[number] = f"| `{layer}` | {now.get(layer, 0):,} |{match[3]}"
        elif abs(size - now.get(layer, 0)) > DRIFT * now.get(layer, 0):
            problems.append(
                f"layer '{layer}' has {now.get(layer, 0):,} lines, not {size:,}; run: tools/check_map.py --fix"
            )
    problems += order_problems(rows, {l: [u for u in used if u in uses] for l, used in uses.items()})
    if args.fix:
        with open(page, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
    for problem in problems:
        print(f"ARCHITECTURE.md: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
