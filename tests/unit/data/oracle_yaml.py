#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""yaml_parse() against PyYAML, in the subset where YAML 1.1 and the 1.2 core schema agree.

Trees written by PyYAML in all its styles must be read as they were; scrambled text must be read alike wherever
both readers accept it.

  oracle_yaml.py DUMP
"""

import json
import random
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml is not installed")
    sys.exit(77)

SEED = 20250101
TREES = 1500
SCRAMBLES = 8000

WORDS = ["", "a", "some words", "é", "😀", "it's", 'say "x"', "a: b", "a #b", "# no comment", "- x", "-", "?", "? x", "*a",
         "&a", "!t", "%d", "@x", "`x`", "[x]", "{x}", "x,y", "trailing ", " leading", "tab\tinside", "line\nbreak",
         "two\n\nbreaks", "end\n", "ends\n\n", "\n", "  indented\nless", "true", "null", "~", "12", "1.5", "---", "...", "<<",
         "http://x/y?z#w", "back\\slash", "''''", '""', "long " * 30, "para one\n\n  - item\n  - item\n\npara two\n", "x\n\n"]
FRAGMENTS = ["'", "''", '"', "a", "b c", " ", "  ", "\n", "\n ", "\n  ", "\n\n", "- ", "k: ", ": ", ":", "? ", "#", " #x", "\\n",
             "\\\\", '\\"', "\\\n", "\\ ", "\\x41", "|\n  ", ">\n  ", "|-\n  ", ">+\n  ", "|2\n", "[", "]", "{", "}", ",", ", ", "é",
             "&x ", "*x", "-", "x: y\n", "- z\n", "\r\n", '"q"', "'q'", '"k": ']


def tree(rng, depth):
    kind = rng.randrange(8 if depth > 0 else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice([0, -1, 12345, 2**40, -(2**63)])
    if kind == 2:
        return rng.choice([0.5, -1.25, 1e20, 1.5e-7])
    if kind < 6:
        return rng.choice(WORDS)
    if kind == 6:
        return [tree(rng, depth - 1) for _ in range(rng.randrange(5))]
    return {rng.choice(WORDS): tree(rng, depth - 1) for _ in range(rng.randrange(5))}


def written(rng):
    """(text, tree it was made from)"""
    for _ in range(TREES):
        v = tree(rng, 4)
        yield yaml.safe_dump(v, default_flow_style=rng.choice([None, True, False]), default_style=rng.choice([None, None, "'", '"', "|", ">"]),
                             allow_unicode=rng.random() < 0.7, width=rng.choice([20, 80, 1000]), indent=rng.choice([2, 4]),
                             sort_keys=False, line_break=rng.choice(["\n", "\r\n"])), v


def scrambled(rng):
    for _ in range(SCRAMBLES):
        body = "".join(rng.choice(FRAGMENTS) for _ in range(rng.randint(1, 12)))
        yield rng.choice(["{}", '"{}"', "'{}'", "k: {}", "- {}", "k: |\n  {}", "k: >\n  {}"]).replace("{}", body) + "\n"


class Strings(yaml.SafeLoader):
    """No schema: scalars stay text, so that only the grammar is compared."""

    yaml_implicit_resolvers = {}


def unresolved(v):
    """Our answer with the same blindness: null was an empty or '~' scalar."""
    if isinstance(v, list):
        return [unresolved(x) for x in v]
    if isinstance(v, dict):
        return {k: unresolved(x) for k, x in v.items()}
    return "" if v is None else v


def ask(dump, inputs):
    answers = subprocess.run([dump, "yaml"], input="\0".join(inputs).encode(), stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
    assert len(answers) == len(inputs) + 1, f"{len(answers)} answers to {len(inputs)} texts"
    return answers[:-1]


def compare_written(dump, rng):
    pairs = list(written(rng))
    for (text, want), answer in zip(pairs, ask(dump, [t for t, _ in pairs])):
        # "!!null" and the like appear where a style was forced on a scalar; all are core tags.
        if answer.startswith("error: "):
            sys.exit(f"{text!r} was made from {want!r}, but: {answer}")
        if repr(json.loads(answer)) != repr(want):
            sys.exit(f"{text!r} was made from {want!r}, but became {answer}")
    return len(pairs)


def compare_scrambled(dump, rng):
    inputs = list(scrambled(rng))
    alike = 0
    for text, answer in zip(inputs, ask(dump, inputs)):
        try:
            want = yaml.load(text, Loader=Strings)
        except (yaml.YAMLError, ValueError):
            continue
        if answer.startswith("error: "):
            continue  # duplicate keys, aliases as keys and the like: we are stricter
        if unresolved(json.loads(answer)) != unresolved(want):
            sys.exit(f"{text!r}: PyYAML reads {want!r}, we {answer}")
        alike += 1
    assert alike > SCRAMBLES // 3, "the generator went blind"
    return alike


def main():
    rng = random.Random(SEED)
    trees = compare_written(sys.argv[1], rng)
    alike = compare_scrambled(sys.argv[1], rng)
    print(f"{trees} trees and {alike} scrambled texts: no difference")


main()
