#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns text files into a C table: embed.py OUT.c HEADER ELEMENT_TYPE NAME FILE..."""
import os
import sys


def c_string(data: bytes) -> str:
    """The bytes as adjacent C string literals, one per line of text."""
    out = []
    for line in data.splitlines(keepends=True):
        escaped = "".join(
            chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in line)
        out.append(f'        "{escaped}"')
    return "\n".join(out) or '        ""'


def main() -> None:
    out, header, element, name, *files = sys.argv[1:]
    with open(out, "w", encoding="utf-8") as f:
        f.write(f'/* Made by scripts/embed.py. */\n#include "{header}"\n\n')
        f.write(f"const struct {element} {name}[] = {{\n")
        for path in sorted(files):
            with open(path, "rb") as g:
                data = g.read()
            f.write(f'    {{ "{os.path.basename(path)}",\n{c_string(data)},\n      {len(data)} }},\n')
        f.write(f"}};\nconst size_t {name}_len = {len(files)};\n")


main()
