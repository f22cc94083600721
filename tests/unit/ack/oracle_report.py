#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Reports of the kit against foreign readers: expat, Python's json and html.parser, a JSON Schema validator.

Findings quote what agents wrote. Whatever bytes they are, the report must be read, and have the structure it has with
harmless ones.

  oracle_report.py DUMP SCHEMA
"""

import html.parser
import json
import random
import subprocess
import sys
import xml.etree.ElementTree

SEED = 20261116
ROUNDS = 60

PIECES = [b"<", b">", b"&", b"&amp;", b"]]>", b"<!--", b"-->", b"</failure>", b"</pre></article>", b"<script>", b'"', b"'", b"\n", b"\t",
          b"\r", b"\x1b[31m", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xc3", b"\xc3\xa9", b"\xed\xa0\x80", b"\xef\xbf\xbe",
          b"\xef\xbf\xbf", b"\xf0\x9f\x98\x80", b"\xf4\x90\x80\x80", b"\xc2\x85", b"wanted 1", b" ", b"|", b"`", b"<?xml?>", b"\xf0\x9f"]


def ask(dump, form, why):
    return subprocess.run([dump, form], input=why, stdout=subprocess.PIPE, check=True).stdout


def check_junit(text, why):
    suites = xml.etree.ElementTree.fromstring(text)
    assert suites.tag == "testsuites" and suites.get("tests") == "12", suites.attrib
    one, two = suites
    assert [c.get("name") for c in one.iter("testcase")] == ["test_" + c for c in "abcdef"]
    kinds = [[child.tag for child in case] for case in one.iter("testcase")]
    assert kinds == [[], ["failure"], ["skipped"], ["skipped"], ["failure"], ["skipped"]], kinds
    assert (one.get("failures"), one.get("skipped"), two.get("skipped")) == ("2", "3", "6")
    failure = one.find("testcase/failure")
    assert failure.get("message").startswith("failed")
    assert failure.text.endswith("kept: /tmp/kept <here>")
    if all(32 <= c < 127 or c == 10 for c in why):
        assert failure.text.startswith(why.decode() + "\n"), failure.text
        first = why.decode().split("\n")[0]
        assert failure.get("message") == ("failed: " + first if first else "failed"), failure.attrib


def check_json(text, why, validator):
    report = json.loads(text)
    assert [v["status"] for v in report["verdicts"][:6]] == ["passed", "failed", "skipped", "expected", "stale", "flaky"]
    assert report["failed"] is True
    assert report["count"]["skipped"] == 7
    if all(32 <= c < 127 or c == 10 for c in why):
        assert report["verdicts"][1]["why"] == [line for line in why.decode().split("\n") if line]
    if validator is not None:
        validator.validate(report)


class Structure(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, [name for name, _ in attrs]))

    def handle_endtag(self, tag):
        self.tags.append("/" + tag)


def structure(text):
    parser = Structure()
    parser.feed(text.decode())
    parser.close()
    return parser.tags


def main():
    dump, schema = sys.argv[1:]
    try:
        import jsonschema
        with open(schema, encoding="utf-8") as file:
            validator = jsonschema.Draft202012Validator(json.load(file))
    except ImportError:
        validator = None
    rng = random.Random(SEED)
    plain = structure(ask(dump, "html", b"wanted 1, found 2"))
    lines = ask(dump, "markdown", b"x").count(b"\n")
    assert len(plain) > 100
    for i in range(ROUNDS):
        why = b"wanted 1\nfound <2>" if i == 0 else b"".join(rng.choices(PIECES, k=rng.randrange(1, 30)))
        check_junit(ask(dump, "junit", why), why)
        check_json(ask(dump, "json", why), why, validator)
        assert structure(ask(dump, "html", why)) == plain, why
        markdown = ask(dump, "markdown", why)
        assert markdown.decode().count("\n") == lines, why
    print(f"{ROUNDS} reports read by foreign readers")


if __name__ == "__main__":
    main()
