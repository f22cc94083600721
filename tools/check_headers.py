#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compiles each header alone, included twice: it must bring what it needs and guard itself.

  check_headers.py [--root DIR]
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys

import tree

FLAGS = (
    "-std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers "
    "-Wstrict-prototypes -Werror -fsyntax-only -x c -"
).split()


def check(root, name):
    include = f'#include "{name[len("src/"):]}"\n'
    result = subprocess.run(
        ["gcc", "-I", os.path.join(root, "src"), "-I", os.path.join(root, "include"), *FLAGS],
        input=include * 2 + "int header_stands_alone;\n",
        capture_output=True,
        text=True,
        check=False,
    )
    problems = []
    if result.returncode != 0:
        problems.append(f"{name}: does not compile alone:\n{result.stderr.rstrip()}")
    if "#pragma once" not in tree.read(root, name):
        problems.append(f"{name}:1: no #pragma once")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    args = parser.parse_args()
    headers = [f for f in tree.c_files(args.root) if f.endswith(".h")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda name: check(args.root, name), headers))
    return tree.report([problem for problems in results for problem in problems])


if __name__ == "__main__":
    sys.exit(main())
