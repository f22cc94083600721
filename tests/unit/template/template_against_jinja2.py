#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Holds the template engine against the real Jinja2.

  template_against_jinja2.py PEER CASES [--seed N] [--random N] [--show]

PEER is the program template_peer, CASES the file of hand-written cases. Each template is rendered by both; the
text must be the same, or the class of the error. Then N random templates, the same for the same seed.
Exit 77 where Jinja2 is not installed.
"""

import argparse
import json
import re
import subprocess
import sys
import warnings

import template_generator

try:
    import jinja2
    import jinja2.sandbox
except ImportError:
    print("skipped: python3-jinja2 is not installed")
    sys.exit(77)

MARK = re.compile(r"@(context|files|options|limits|expect|template) (.*)")
ADDRESS = re.compile(r" at 0x[0-9a-f]+>")
# What CPython or Jinja2's sandbox reports when our limits would have stopped earlier.
EXHAUSTED = (RecursionError, MemoryError, OverflowError)


def read_cases(path):
    """The cases of a file as dicts; see the head of template_cases.txt."""
    default, case, lines = {}, None, []
    cases = []

    def finish():
        if case is None:
            return
        while lines and lines[-1] == "":
            lines.pop()
        case.setdefault("template", "\n".join(lines))
        if case["name"] == "default":
            default.update(case["context"])
        case.setdefault("context", dict(default))
        cases.append(case)

    with open(path, encoding="utf-8", newline="\n") as f:
        for line in f.read().split("\n"):
            mark = MARK.fullmatch(line)
            if line.startswith("=== "):
                finish()
                case, lines = {"name": line[4:]}, []
            elif case is None:
                continue
            elif mark and not lines:
                value = mark.group(2)
                case[mark.group(1)] = value if mark.group(1) == "expect" else json.loads(value)
            else:
                lines.append(line)
    finish()
    names = [c["name"] for c in cases]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        sys.exit(f"{path}: cases with the same name: {', '.join(sorted(twice))}")
    return cases


def plain(function):
    """The filter, returning str where it would return Markup."""

    def call(value, *args, **kwargs):
        return str(function(value, *args, **kwargs))

    @jinja2.pass_eval_context
    def call_with_context(context, value, *args, **kwargs):
        return str(function(context, value, *args, **kwargs))

    return call_with_context if getattr(function, "jinja_pass_arg", None) else call


def reference(case):
    """What Jinja2 makes of a case: {"text": …} or {"error": class, "message": …}."""
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        loader=jinja2.DictLoader(case.get("files", {})),
        # Folding constants reports errors of code that never runs; where a random template has two errors, it
        # would matter which comes first.
        optimized=not case["name"].startswith("random"),
        **case.get("options", {}),
    )
    del env.globals["lipsum"]
    # Our text carries no mark of being escaped: the filters that would set it return plain strings.
    for name in ("e", "escape", "forceescape", "safe", "tojson"):
        env.filters[name] = plain(env.filters[name])
    context = json.loads(json.dumps(case.get("context", {})))  # [1]|indent changes its list
    try:
        return {"text": env.from_string(case["template"]).render(context)}
    except (jinja2.TemplateSyntaxError, SyntaxError) as e:
        return {"error": "syntax", "message": str(e)}
    except jinja2.UndefinedError as e:
        return {"error": "undefined", "message": str(e)}
    except jinja2.exceptions.SecurityError as e:
        return {"error": "unsafe", "message": str(e)}
    except jinja2.TemplateNotFound as e:
        return {"error": "missing", "message": str(e)}
    except EXHAUSTED as e:
        return {"error": "exhausted", "message": repr(e)}
    except Exception as e:  # pylint: disable=broad-except
        return {"error": "value", "message": repr(e)}


def ours(peer, cases):
    """What our engine makes of all cases, in order."""
    lines = "".join(json.dumps({k: v for k, v in c.items() if k != "name"}) + "\n" for c in cases)
    done = subprocess.run([peer], input=lines, capture_output=True, text=True, encoding="utf-8", check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or len(answers) != len(cases):
        at = cases[len(answers)] if len(answers) < len(cases) else None
        sys.exit(f"{peer} ended with {done.returncode} at {at}\n{done.stderr[-3000:]}")
    return answers


def agree(case, mine, theirs):
    """Same text, or same class of error; differences by design as src/template/template.h lists them."""
    if "expect" in case:
        return mine.get("error") == case["expect"]
    if "text" in theirs and ADDRESS.search(theirs["text"]):
        return mine.get("error") == "value"  # nobody wants to print a memory address
    if "fractional power" in mine.get("message", ""):
        return True  # a complex number
    if case["name"].startswith("random") and "there is no " in mine.get("message", ""):
        return True  # a damaged name of a filter, which Jinja2 misses where it folds constants
    if theirs.get("error") == "exhausted":
        return mine.get("error") in ("value", "limit")
    if "text" in theirs or "text" in mine:
        return mine.get("text") == theirs.get("text")
    return mine["error"] == theirs["error"]


def compare(peer, cases, show):
    """Number of disagreements, and of limits where Jinja2 went on."""
    failed = limits = 0
    for case, mine in zip(cases, ours(peer, cases)):
        theirs = reference(case)
        if "expect" not in case and mine.get("error") == "limit" and case["name"].startswith("random"):
            limits += 1  # arithmetic beyond 64 bits, mostly
            continue
        if agree(case, mine, theirs):
            continue
        failed += 1
        if failed <= show:
            print(f"--- {case['name']}\n{case['template']!r}")
            for key in ("files", "options"):
                if key in case:
                    print(f"  {key}: {case[key]}")
            print(f"  jinja2: {theirs}\n  ours:   {mine}")
    return failed, limits


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("peer")
    parser.add_argument("cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=3000)
    parser.add_argument("--show", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of Python about odd but legal constants
    cases = read_cases(args.cases)
    if len(cases) < 300:
        sys.exit(f"{args.cases}: only {len(cases)} cases")
    failed, _ = compare(args.peer, cases, args.show)
    print(f"cases: {len(cases)}, {failed} differ")
    random_cases = template_generator.cases(args.seed, args.random)
    differ, limits = compare(args.peer, random_cases, args.show)
    print(f"random: {len(random_cases)} from seed {args.seed}, {differ} differ, {limits} beyond limits")
    good = failed == 0 and differ == 0 and limits * 20 <= len(random_cases)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
