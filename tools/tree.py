# SPDX-License-Identifier: MIT
"""The source tree as the checkers see it: which files belong to it, and C text without its comments."""

import os
import re
import subprocess
import sys

C_TOKEN = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.DOTALL | re.VERBOSE
)


def files(root):
    """Relative paths of the files that are, or will be, under version control; sorted."""
    git = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    # An unpacked release has no .git, and may lie inside somebody else's repository.
    if git.returncode == 0 and os.path.exists(os.path.join(root, ".git")):
        names = git.stdout.decode().split("\0")
    else:
        names = []
        for folder, folders, entries in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith("build") and f != "__pycache__"]
            names += [os.path.relpath(os.path.join(folder, e), root) for e in entries]
    return sorted(n for n in set(names) if n and os.path.isfile(os.path.join(root, n)))


def c_files(root, top="src/"):
    return [f for f in files(root) if f.startswith(top) and f.endswith((".c", ".h"))]


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as f:
        return f.read()


def is_text(root, name):
    with open(os.path.join(root, name), "rb") as f:
        return b"\0" not in f.read(8192)


def blank(text, keep_strings=False):
    """C text with comments (and the insides of literals) replaced by spaces; lines stay lines."""

    def hide(match):
        token = match.group(0)
        if token[0] in "\"'":
            if keep_strings:
                return token
            return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
        return re.sub(r"[^\n]", " ", token)

    return C_TOKEN.sub(hide, text)


def layer_of(name):
    """The layer of src/<layer>/..., or None."""
    parts = name.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "src" else None


def report(problems):
    """Prints the problems, one a line, and gives the exit status."""
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def table(path):
    """(line number, words) of a text table with # comments."""
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            words = line.split("#", 1)[0].split()
            if words:
                yield number, words
