#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Links each layer's whole archive against the archives of the layers it may use, and nothing else.

The include check misses a hand-written `extern`; an upward call that came in so is an undefined
symbol here. Also checks that cinch-init needs no library but libc.

  check_link.py [--root DIR] [--build DIR] [--table FILE]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import check_layers
import tree


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def package_flags(packages):
    if not packages:
        return []
    answer = run(["pkg-config", "--libs", *packages])
    if answer.returncode != 0:
        sys.exit(f"pkg-config --libs {' '.join(packages)}: {answer.stderr.strip()}")
    return answer.stdout.split()


def archive(build, layer):
    return os.path.join(build, "src", layer, f"lib{layer}.a")


def check_layer(build, table, layer, scratch):
    below = [b for b in table.below(layer) if os.path.exists(archive(build, b))]
    packages = sorted({p for p, _, home, _ in table.libraries if home in [layer, *below]})
    result = run(
        ["gcc", "-shared", "-o", os.path.join(scratch, f"{layer}.so"), "-Wl,--no-undefined"]
        + ["-Wl,--whole-archive", archive(build, layer), "-Wl,--no-whole-archive"]
        + ["-Wl,--start-group", *[archive(build, b) for b in below], "-Wl,--end-group"]
        + package_flags(packages)
        + ["-lm"]  # the C library's other half
    )
    if result.returncode == 0:
        return []
    symbols = sorted(set(re.findall(r"undefined reference to `([^']+)'", result.stderr)))
    if not symbols:
        return [f"layer {layer} does not link:\n{result.stderr.strip()}"]
    return [f"layer {layer} uses '{s}', which no layer below it defines" for s in symbols]


def check_program(path):
    """cinch-init runs between the fork and the agent: every library is code that can go wrong there."""
    result = run(["readelf", "-d", path])
    needed = re.findall(r"\(NEEDED\).*\[([^\]]+)\]", result.stdout)
    return [
        f"{path} needs {n}; it may need libc only"
        for n in needed
        if not n.startswith(("libc.so", "ld-linux"))
    ]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(here))
    parser.add_argument("--build", help="default: build below the root")
    parser.add_argument("--table", default=os.path.join(here, "layers.txt"))
    args = parser.parse_args()
    build = args.build or os.path.join(args.root, "build")
    table = check_layers.Table(args.table)
    present = [
        layer
        for layer in sorted({tree.layer_of(f) for f in tree.c_files(args.root)} - {None})
        if layer in table.uses
    ]
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        for layer in present:
            if os.path.exists(archive(build, layer)):
                problems += check_layer(build, table, layer, scratch)
            elif layer != "cli":  # a program rather than a library, if it so chooses
                problems.append(f"layer {layer}: no archive '{archive(build, layer)}'; run make build")
    helper = os.path.join(build, "src", "init", "cinch-init")
    if os.path.exists(helper):
        problems += check_program(helper)
    return tree.report(problems)


if __name__ == "__main__":
    sys.exit(main())
