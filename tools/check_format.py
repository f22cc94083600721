#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs clang-format 14, and no other version, over all C files.

Another version formats differently, and two people with two versions would format in circles.

  check_format.py [--root DIR] [--fix]

Exit: 0 all formatted, 1 not formatted, 77 no clang-format 14 on this machine.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

import tree

VERSION = "14"
SKIP = 77


def find():
    """Path of the right clang-format, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path:
            text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            if re.search(rf"version {VERSION}\.", text):
                return path
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--fix", action="store_true", help="write the files instead of complaining")
    args = parser.parse_args()
    program = find()
    if program is None:
        print(f"clang-format {VERSION} is not installed (another version does not do: it formats differently)")
        return SKIP
    names = tree.c_files(args.root) + tree.c_files(args.root, ("tests/", "bench/"))
    if not names:
        return 0
    mode = ["-i"] if args.fix else ["--dry-run", "-Werror"]
    result = subprocess.run([program, *mode, *names], cwd=args.root, check=False)
    if result.returncode != 0:
        print("run: make format", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
