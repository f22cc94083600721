#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds our TOML against Python's tomllib.

usage: toml_against_tomllib.py PEER [ROUNDS [SEED]]

Random documents in many spellings and mutated copies of them go to both sides. They must agree on what is
valid and on every value. PEER is the program made of toml_peer.c. Exit 77: this Python has no tomllib.
"""
import datetime
import json
import math
import random
import subprocess
import sys

try:
    import tomllib
except ImportError:
    print("skipped: this Python has no tomllib (3.11 or later is needed)")
    sys.exit(77)


class Peer:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, verb, payload):
        pipe = self.process
        pipe.stdin.write(b"%s %d\n" % (verb.encode(), len(payload)) + payload)
        pipe.stdin.flush()
        head = pipe.stdout.readline().split()
        if len(head) != 2:
            raise SystemExit(f"the peer died on {verb} of {payload!r}")
        body = pipe.stdout.read(int(head[1]))
        return head[0] == b"ok", body


# --- values as tagged trees ---


def tag(value):
    """A tomllib value in the tagged form, comparable by ==."""
    if isinstance(value, dict):
        return {k: tag(v) for k, v in value.items()}
    if isinstance(value, list):
        return [tag(v) for v in value]
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int):
        return ("integer", value)
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else value)
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, datetime.datetime):
        return ("datetime" if value.tzinfo else "datetime-local", value.isoformat())
    if isinstance(value, datetime.date):
        return ("date-local", value.isoformat())
    return ("time-local", value.isoformat())


def untag(value):
    """Our JSON in the same form."""
    if isinstance(value, list):
        return [untag(v) for v in value]
    if not isinstance(value.get("type"), str):
        return {k: untag(v) for k, v in value.items()}
    kind, text = value["type"], value["value"]
    if kind == "bool":
        return (kind, text == "true")
    if kind == "integer":
        return (kind, int(text))
    if kind == "float":
        number = float(text)
        return (kind, "nan" if math.isnan(number) else number)
    if kind == "string":
        return (kind, text)
    # tomllib keeps six digits of a fraction
    if "." in text:
        head, rest = text.split(".", 1)
        digits = rest
        for i, c in enumerate(rest):
            if not c.isdigit():
                digits = rest[:i]
                break
        text = head + "." + digits[:6].ljust(6, "0") + rest[len(digits):]
    parse = {
        "datetime": datetime.datetime,
        "datetime-local": datetime.datetime,
        "date-local": datetime.date,
        "time-local": datetime.time,
    }[kind]
    return (kind, parse.fromisoformat(text).isoformat())


def to_json(value):
    """A tagged tree as the JSON that `encode` takes."""
    if isinstance(value, dict):
        return {k: to_json(v) for k, v in value.items()}
    if isinstance(value, list):
        return [to_json(v) for v in value]
    kind, v = value
    if kind == "bool":
        text = "true" if v else "false"
    elif kind == "float":
        text = repr(v) if v != "nan" else "nan"
    else:
        text = str(v)
    return {"type": kind, "value": text}


# --- random documents ---

CHARS = list("abzAZ019_-.") + list(" \t\"'\\#=[]{},\n\r") + ["é", "ß", "€", "😀", "\x00", "\x1b", "\x7f", "\u2028"]
WORDS = ["a", "b", "c", "key", "a-b", "1", "3.14", "", "projects", "/home/u/x.y", "C:\\dir", "it's", 'say "x"', "two\nlines", "ü"]


def text(rng):
    if rng.random() < 0.5:
        return rng.choice(WORDS)
    return "".join(rng.choice(CHARS) for _ in range(rng.randrange(12)))


def basic(rng, s):
    out = []
    for c in s:
        o = ord(c)
        if c in '"\\':
            out.append("\\" + c)
        elif o < 0x20 or o == 0x7F:
            named = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r"}
            out.append("\\" + named[o] if o in named and rng.random() < 0.7 else "\\u%04x" % o)
        elif rng.random() < 0.1:
            out.append("\\U%08X" % o)
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def string(rng, s):
    ways = [lambda: basic(rng, s)]
    plain = all(c == "\t" or (ord(c) >= 0x20 and ord(c) != 0x7F) for c in s)
    if plain and "'" not in s:
        ways.append(lambda: "'" + s + "'")
    lines = all(c in "\t\n" or (ord(c) >= 0x20 and ord(c) != 0x7F) for c in s)
    if lines and "'''" not in s and not s.endswith("'"):
        ways.append(lambda: "'''\n" + s + "'''")
    if lines and "\\" not in s and '"""' not in s and not s.endswith('"'):
        ways.append(lambda: '"""' + ("\\\n   \n  " if rng.random() < 0.3 and s[:1] not in " \t\n" else "\n") + s + '"""')
    return rng.choice(ways)()


def key(rng, k):
    if k and all(c.isascii() and (c.isalnum() or c in "_-") for c in k) and rng.random() < 0.8:
        return k
    if all(c == "\t" or (ord(c) >= 0x20 and ord(c) != 0x7F) for c in k) and "'" not in k and rng.random() < 0.4:
        return "'" + k + "'"
    return basic(rng, k)


def scalar(rng):
    return rng.choice([
        lambda: string(rng, text(rng)),
        lambda: str(rng.randrange(-(2**63), 2**63)),
        lambda: rng.choice(["0", "+7", "-0", "1_000", "0xdead_BEEF", "0o17", "0b1_0", "-9223372036854775808"]),
        lambda: repr(rng.uniform(-1e9, 1e9)),
        lambda: rng.choice(["1e3", "-0.0", "6.02_2E+2_3", "5e-324", "1e400", "inf", "-inf", "+nan", "1.5e0_1"]),
        lambda: rng.choice(["true", "false"]),
        lambda: "%04d-%02d-%02d" % (rng.randrange(1, 10000), rng.randrange(1, 13), rng.randrange(1, 29)),
        lambda: "2024-02-29%s23:59:%02d%s%s" % (rng.choice("Tt "), rng.randrange(60), rng.choice(["", ".5", ".123456789"]),
                                                  rng.choice(["", "Z", "z", "+00:00", "-12:34", "+23:59"])),
        lambda: rng.choice(["07:32:00", "00:00:00.1", "23:59:59.999999"]),
    ])()


def space(rng):
    return rng.choice(["", "", " ", "  ", "\t"])


def value(rng, depth):
    r = rng.random()
    if depth > 0 and r < 0.12:
        items = [value(rng, depth - 1) for _ in range(rng.randrange(4))]
        gap = rng.choice([" ", "\n  ", " # c\n", ""])
        return "[" + gap + ("," + gap).join(items) + ("," if items and rng.random() < 0.3 else "") + gap + "]"
    if depth > 0 and r < 0.25:
        pairs = [dotted(rng) + " = " + value(rng, depth - 1) for _ in range(rng.randrange(3))]
        return "{" + space(rng) + ", ".join(pairs) + space(rng) + "}"
    return scalar(rng)


def dotted(rng):
    dot = rng.choice([".", ".", " . "])
    return dot.join(key(rng, text(rng)) for _ in range(rng.choice([1, 1, 1, 2, 3])))


def document(rng):
    """Often valid; clashes of names make some invalid, which is wanted."""
    lines = []
    for _ in range(rng.randrange(10)):
        r = rng.random()
        comment = " # comment" if rng.random() < 0.2 else ""
        if r < 0.2:
            lines.append(space(rng) + "[" + space(rng) + dotted(rng) + space(rng) + "]" + comment)
        elif r < 0.27:
            lines.append("[[" + dotted(rng) + "]]" + comment)
        elif r < 0.37:
            lines.append(rng.choice(["", "# a comment", "   "]))
        else:
            lines.append(space(rng) + dotted(rng) + space(rng) + "=" + space(rng) + value(rng, 2) + comment)
    doc = "\n".join(lines) + ("\n" if rng.random() < 0.8 else "")
    return doc.replace("\n", "\r\n") if rng.random() < 0.2 else doc


def mutate(rng, doc):
    data = bytearray(doc.encode())
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        r = rng.random()
        if r < 0.4:
            del data[at:at + rng.randrange(1, 4)]
        elif r < 0.8:
            data[at:at] = rng.choice([b"=", b"[", b"]", b"{", b"}", b",", b".", b'"', b"'", b"\\", b"#", b"\n", b"\r", b"0", b"_",
                                      b"-", b":", b"e", b"T", b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"""'])
        else:
            end = min(len(data), at + rng.randrange(8))
            data[at:at] = data[at:end]
    return bytes(data)


# --- the checks ---

BEYOND_64_BITS = "does not fit into 64 bits"


def foreign_load(data):
    """(valid, tagged tree). tomllib takes text, so bad UTF-8 is refused here; a BOM is ours to skip."""
    try:
        doc = data.decode("utf-8")
        if doc.startswith("\ufeff"):
            doc = doc[1:]
        return True, tag(tomllib.loads(doc))
    except (ValueError, RecursionError):
        return False, None


def check_decode(peer, data):
    valid, want = foreign_load(data)
    good, body = peer.ask("decode", data)
    if not good and valid and BEYOND_64_BITS in body.decode(errors="replace"):
        return valid  # Python's integers have no bound
    if not valid and good and b"0000-" in data:
        return valid  # Python's calendar has no year 0; RFC 3339 has
    if valid != good:
        raise SystemExit(f"tomllib says {'valid' if valid else 'invalid'}, we say {body!r} for\n{data!r}")
    if good and untag(json.loads(body)) != want:
        raise SystemExit(f"values differ for\n{data!r}\ntomllib: {want}\nours: {untag(json.loads(body))}")
    return valid


def check_encode(peer, data):
    _, want = foreign_load(data)
    good, body = peer.ask("encode", json.dumps(to_json(want)).encode())
    if not good:
        raise SystemExit(f"could not write {want}: {body!r}")
    valid, got = foreign_load(body)
    if not valid or got != want:
        raise SystemExit(f"written wrongly: {want}\nas {body!r}\nwhich reads as {got}")


def main():
    peer = Peer(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20261115
    rng = random.Random(seed)
    count = {True: 0, False: 0}
    for _ in range(rounds):
        doc = document(rng)
        valid = check_decode(peer, doc.encode())
        count[valid] += 1
        if valid:
            check_encode(peer, doc.encode())
        count[check_decode(peer, mutate(rng, doc))] += 1
    print(f"seed {seed}: {count[True]} valid and {count[False]} invalid documents, no difference")
    if min(count.values()) < rounds // 10:
        raise SystemExit("the generator lost its balance: too few documents of one kind")


main()
