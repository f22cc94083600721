#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""json_parse() and json_write() against Python's json: the same values, the same refusals.

  oracle_json.py DUMP
"""

import json
import math
import random
import subprocess
import sys

# Fixed, so that a failure can be repeated; another number tries other texts.
SEED = 20250101
COUNT = 4000

STRINGS = ["", "a", "key", "é", "😀", "\u2028", "\0", "\x1f", "\x7f", '"', "\\", "/", "\n\t\r\b\f", "\ufffd", "a" * 50]
NUMBERS = [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**63) - 1, 10**30, 0.1, -0.5, 1.5e300,
           5e-324, 1.7976931348623157e308, 1e22, 1e21, 123456789.125, -0.0]


def value(rng, depth):
    kind = rng.randrange(9 if depth > 0 else 7)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind in (1, 2):
        return rng.choice(NUMBERS)
    if kind == 3:
        return rng.choice([rng.uniform(-1e6, 1e6), rng.random() * 10 ** rng.randint(-300, 300), rng.randint(-10**12, 10**12)])
    if kind in (4, 5, 6):
        return "".join(rng.choice(STRINGS) for _ in range(rng.randrange(4)))
    if kind == 7:
        return [value(rng, depth - 1) for _ in range(rng.randrange(5))]
    return {rng.choice(STRINGS) + str(rng.randrange(20)): value(rng, depth - 1) for _ in range(rng.randrange(5))}


def texts(rng):
    """Valid texts in several spellings, and damaged ones."""
    for _ in range(COUNT):
        v = value(rng, 4)
        text = json.dumps(v, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, None, 1, "\t"]))
        yield text
        chars = list(text)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(chars) + 1)
            chars[at:at + rng.randrange(2)] = rng.choice(['"', "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", "x", " ", "\n", "\\u12", "\\ud800", "tru", "NaN", ""])
        yield "".join(chars)


def refuse(_):
    raise ValueError("not in RFC 8259")


def finite(text):
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("too large")
    return number


def integer(text):
    number = int(text)
    return number if -(2**63) <= number < 2**63 else finite(text)


def unique(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("duplicate key")
    return dict(pairs)


def has_surrogate(v):
    """Python lets a lone \\ud800 through; we refuse it, as it has no UTF-8."""
    if isinstance(v, str):
        return any(0xD800 <= ord(c) < 0xE000 for c in v)
    if isinstance(v, list):
        return any(has_surrogate(x) for x in v)
    return isinstance(v, dict) and any(has_surrogate(k) or has_surrogate(x) for k, x in v.items())


def reference(text):
    """(accepted, value)"""
    try:
        v = json.loads(text, parse_constant=refuse, parse_float=finite, parse_int=integer, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        return False, None
    return not has_surrogate(v), v


def same(a, b):
    """Equal with type, order and sign: what was read is what was written."""
    return json.dumps(a) == json.dumps(b) and repr(a) == repr(b)


def main():
    rng = random.Random(SEED)
    inputs = [t for t in texts(rng) if "\0" not in t]
    sent = "\0".join(inputs).encode()
    answers = subprocess.run([sys.argv[1], "json"], input=sent, stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
    assert len(answers) == len(inputs) + 1, f"{len(answers)} answers to {len(inputs)} texts"
    accepted = 0
    for text, answer in zip(inputs, answers):
        ok, want = reference(text)
        if ok != (not answer.startswith("error: ")):
            sys.exit(f"Python {'accepts' if ok else 'refuses'} {text!r}, but: {answer}")
        if ok:
            accepted += 1
            got = json.loads(answer, parse_int=integer)
            if not same(got, want):
                sys.exit(f"{text!r} became {answer}")
    print(f"{len(inputs)} texts, {accepted} of them valid: no difference")
    assert accepted > COUNT, "the generator went blind"


main()
