# SPDX-License-Identifier: MIT
"""Scenarios whose every assertion wants what an honest agent does not give.

Each check is taken apart into what it asserts: a value, a count, a path, a pointer. For each of these there is a variant
of the check that differs in that one place, and must fail. A variant stands in an `any_of` beside a check that fails
in any case and names it, so that the findings of one run tell of every variant whether it failed.
"""

NOWHERE = "NOWHERE-TO-BE-FOUND"
HUGE = 10**12


def mark(number):
    return f"VARIANT-{number}."


# --- matchers ---


def matchers(want):
    """Variants of a matcher: each part of it in turn wants something else."""
    if not isinstance(want, dict):
        yield NOWHERE
        return
    for key, value in want.items():
        for other in parts(key, value):
            yield {**{k: v for k, v in want.items() if k != key}, **other}


def parts(key, value):
    if key in ("contains", "starts", "ends", "equals", "matches"):
        yield {key: NOWHERE}
    elif key in ("at_least", "at_most"):
        yield {key: HUGE if key == "at_least" else -HUGE}
    elif key in ("nonblank", "present"):
        yield {key: not value}
    elif key == "not":
        yield value
    elif key == "at":
        yield from ({key: other} for other in pointers(value))
    else: # len, any, each
        yield from ({key: other} for other in matchers(value))


def pointers(want):
    """The same for {POINTER: MATCHER}: of one pointer alone, the others are variants of their own."""
    for pointer, matcher in want.items():
        yield from ({pointer: other} for other in matchers(matcher))


def instead(want, key, others):
    return ({**want, key: other} for other in others)


# --- checks ---


def of_items(want):
    """event, entry"""
    alone = {k: v for k, v in want.items() if k != "each"}
    for key in ("name", "type", "source"):
        if key in want and not wants_none(want):
            yield {**alone, key: NOWHERE}
    if not wants_none(want):
        yield from ({**alone, "where": {**want["where"], **other}} for other in pointers(want.get("where", {})))
    yield from instead(alone, "count", matchers(want["count"]) if "count" in want else [0])
    yield from instead(want, "each", pointers(want.get("each", {})))


def wants_none(want):
    """Nothing else is found by looking elsewhere."""
    return want.get("count") == 0 or want.get("none", False)


def of_request(want):
    if want.get("none"):
        yield {**{k: v for k, v in want.items() if k != "none"}, "any": True}
        return
    if "number" in want:
        yield {**want, "number": 1000}
    yield from instead(want, "text", matchers(want["text"]) if "text" in want else [])
    yield from ({**want, "where": {**want["where"], **other}} for other in pointers(want.get("where", {})))
    yield from instead(want, "count", matchers(want["count"]) if "count" in want else [])


def of_patch(want):
    yield from ({"has": [NOWHERE]} for _ in want.get("has", []))
    yield from ({"has": [path]} for path in want.get("lacks", []))
    if "contains" in want:
        yield {"contains": NOWHERE}
    if "empty" in want:
        yield {"empty": not want["empty"]}


def of_session(want):
    yield {**want, "slice": NOWHERE}
    for key in ("count", "any", "each"):
        if key in want:
            yield from instead(want, key, matchers(want[key]))


def of_files(want):
    for path, matcher in want.items():
        yield from ({path: other} for other in ([{"present": True}] if matcher is None else matchers(matcher)))


def of_order(want):
    for i, item in enumerate(want):
        yield want[:i] + [{**item, "where": {"/entry_type": NOWHERE}}] + want[i + 1:]
    yield want[::-1]


def of_link(want):
    yield {**want, "from": {**want["from"], "at": "/nowhere"}}
    yield {**want, "to": {**want["to"], "at": "/nowhere"}}


def of_any(want):
    """All of the lists are variants, else another one would hold."""
    yield [[next(variants(check)) for check in checks] for checks in want]


KINDS = {
    "result": pointers, "metrics": pointers, "manifest": pointers, "event": of_items, "entry": of_items, "request": of_request,
    "patch": of_patch, "session": of_session, "outside": of_files, "record": of_files, "order": of_order, "link": of_link,
    "any_of": of_any,
    "usage": lambda want: ({name: n + 1} for name, n in want.items()),
    "same": lambda want: iter([{**want, "runs": [want["runs"][0], NOWHERE]}]),
    "transcript": lambda want: iter([]), # who says only a name has no variant: see FAULTS of test_ack_mutation.py
    "reason": lambda want: iter([NOWHERE]),
}


def variants(check):
    (kind, want), = check.items()
    return ({kind: other} for other in KINDS.get(kind, matchers)(want))


def invert(holder, told):
    """Puts the variants of its checks in the place of those of a scenario or a run, and adds them to `told`."""
    for key in ("expect", "expect_script"):
        found = [other for check in holder.get(key, []) for other in variants(check)]
        if found:
            holder[key] = [{"any_of": [[other], [{"text": mark(len(told) + i)}]]} for i, other in enumerate(found)]
            told += found
    for run in holder.get("runs", []):
        invert(run, told)
