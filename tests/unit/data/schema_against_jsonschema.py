#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Holds our JSON Schema validator against python3-jsonschema.

usage: schema_against_jsonschema.py PEER [ROUNDS [SEED]]

Random schemas (drafts 2020-12 and 07) and random values, many of them made to fit a part of the schema. Both
sides must give the same verdict. PEER is the program made of schema_peer.c. What the other side gets
wrong or leaves open is not asked: decimal fractions in multipleOf, unevaluated..., formats, 1 beside true. Exit 77: this
Python has no jsonschema.
"""
import json
import random
import subprocess
import sys

try:
    from jsonschema import Draft7Validator, Draft202012Validator
except ImportError:
    print("skipped: this Python has no jsonschema (Debian: python3-jsonschema)")
    sys.exit(77)

NAMES = ["a", "b", "ab", "c", "name", "x-1"]
PATTERNS = ["^a", "b$", "^x-", "[0-9]", "^.{2}$", "a|b", "^$", "(ab)+", "[^a]"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
# Neither 0 nor 1: to Python they equal False and True, and the other side forgets that inside of arrays.
SCALARS = [None, True, False, 4, -1, 2, 3, 2.0, 0.5, 10, 1e3, "", "a", "ab", "b", "abc", "x-1", "é", "1"]


class Maker:
    """Schemas and values out of one random source."""

    def __init__(self, rng, draft):
        self.rng = rng
        self.draft = draft
        self.defs = "$defs" if draft == "2020-12" else "definitions"
        self.targets = []

    def chance(self, p):
        return self.rng.random() < p

    def value(self, depth=3):
        kind = self.rng.random()
        if depth == 0 or kind < 0.55:
            return self.rng.choice(SCALARS)
        if kind < 0.78:
            return [self.value(depth - 1) for _ in range(self.rng.randint(0, 4))]
        return {self.rng.choice(NAMES): self.value(depth - 1) for _ in range(self.rng.randint(0, 4))}

    def names(self):
        return self.rng.sample(NAMES, self.rng.randint(0, 3))

    def schemas(self, depth):
        return [self.schema(depth - 1) for _ in range(self.rng.randint(1, 3))]

    def schema(self, depth=3):
        if depth == 0 or self.chance(0.08):
            return self.rng.choice([True, False, {}, {"type": self.rng.choice(TYPES)}])
        out = {}
        for _ in range(self.rng.randint(1, 3)):
            self.rng.choice(
                [self.add_value, self.add_number, self.add_string, self.add_array, self.add_object,
                 self.add_combination, self.add_reference])(out, depth)
        return out

    def add_value(self, out, _depth):
        kind = self.rng.randint(0, 3)
        if kind == 0:
            out["type"] = self.rng.choice(TYPES)
        elif kind == 1:
            out["type"] = self.rng.sample(TYPES, self.rng.randint(1, 3))
        elif kind == 2:
            out["enum"] = [self.value(2) for _ in range(self.rng.randint(1, 10))]
        else:
            out["const"] = self.value(2)

    def add_number(self, out, _depth):
        key = self.rng.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
        out[key] = self.rng.choice([1, 2, 3, 0.5]) if key == "multipleOf" else self.rng.choice([-1, 0, 1, 1.5, 3])

    def add_string(self, out, _depth):
        key = self.rng.choice(["minLength", "maxLength", "pattern"])
        out[key] = self.rng.choice(PATTERNS) if key == "pattern" else self.rng.randint(0, 3)

    def add_array(self, out, depth):
        key = self.rng.choice(["items", "tuple", "contains", "uniqueItems", "minItems", "maxItems"])
        if key == "items":
            out["items"] = self.schema(depth - 1)
        elif key == "tuple":
            new = self.draft == "2020-12"
            out["prefixItems" if new else "items"] = self.schemas(depth)
            if self.chance(0.5):
                out["items" if new else "additionalItems"] = self.schema(depth - 1)
        elif key == "contains":
            out["contains"] = self.schema(depth - 1)
            if self.draft == "2020-12" and self.chance(0.5):
                out[self.rng.choice(["minContains", "maxContains"])] = self.rng.randint(0, 2)
        else:
            out[key] = True if key == "uniqueItems" else self.rng.randint(0, 3)

    def add_object(self, out, depth):
        key = self.rng.choice(["properties", "properties", "patternProperties", "additionalProperties", "required",
                               "propertyNames", "minProperties", "maxProperties", "dependencies"])
        if key == "properties":
            out[key] = {name: self.schema(depth - 1) for name in self.names()}
        elif key == "patternProperties":
            out[key] = {self.rng.choice(PATTERNS): self.schema(depth - 1) for _ in range(self.rng.randint(1, 2))}
        elif key in ("additionalProperties", "propertyNames"):
            out[key] = self.schema(depth - 1)
        elif key == "required":
            out[key] = self.names()
        elif key == "dependencies" and self.draft == "2020-12":
            out["dependentSchemas"] = {self.rng.choice(NAMES): self.schema(depth - 1)}
            out["dependentRequired"] = {self.rng.choice(NAMES): self.names()}
        elif key == "dependencies":
            out[key] = {self.rng.choice(NAMES): self.rng.choice([self.names(), self.schema(depth - 1)])}
        else:
            out[key] = self.rng.randint(0, 3)

    def add_combination(self, out, depth):
        key = self.rng.choice(["allOf", "anyOf", "oneOf", "not", "if"])
        if key == "not":
            out[key] = self.schema(depth - 1)
        elif key == "if":
            out["if"] = self.schema(depth - 1)
            for branch in ("then", "else"):
                if self.chance(0.7):
                    out[branch] = self.schema(depth - 1)
        else:
            out[key] = self.schemas(depth)

    def add_reference(self, out, _depth):
        if self.targets:
            out["$ref"] = f"#/{self.defs}/{self.rng.choice(self.targets)}"

    def document(self):
        """A schema with definitions, each of which refers to earlier ones only; the root may recurse below items
        and properties."""
        defs = {}
        for name in ("p", "q", "r"):
            defs[name] = self.schema(2)
            self.targets.append(name)
        root = self.schema()
        if not isinstance(root, dict):
            root = {"not": root}
        if self.chance(0.2):
            root.setdefault("properties", {})["next"] = {"$ref": "#"}
        if self.draft == "07":
            root["$schema"] = "http://json-schema.org/draft-07/schema#"
        root[self.defs] = defs
        return root

    def fitting(self, schema, depth=4):
        """A value that has a good chance to fit the obvious parts of the schema."""
        if not isinstance(schema, dict) or depth == 0 or self.chance(0.15):
            return self.value()
        if "const" in schema:
            return schema["const"]
        if schema.get("enum") and self.chance(0.8):
            return self.rng.choice(schema["enum"])
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema and self.chance(0.5):
                return self.fitting(self.rng.choice(schema[key]), depth - 1)
        if "properties" in schema or "required" in schema or "patternProperties" in schema:
            out = {n: self.fitting(s, depth - 1) for n, s in schema.get("properties", {}).items()}
            for name in schema.get("required", []):
                out.setdefault(name, self.value(1))
            return out
        items = schema.get("prefixItems", schema.get("items"))
        if isinstance(items, list):
            return [self.fitting(s, depth - 1) for s in items] + [self.value(1)] * self.rng.randint(0, 1)
        if items is not None or "contains" in schema:
            inner = items if items is not None else schema["contains"]
            return [self.fitting(inner, depth - 1) for _ in range(self.rng.randint(0, 3))]
        return self.value()


class Peer:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, schema, value):
        texts = [json.dumps(t).encode() for t in (schema, value)]
        self.process.stdin.write(b"%d %d\n" % (len(texts[0]), len(texts[1])) + texts[0] + texts[1])
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode().strip()
        if not line:
            raise SystemExit(f"the peer died on {texts[0]} and {texts[1]}")
        return line


def main():
    peer = Peer(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    counts = {"valid": 0, "invalid": 0}
    for i in range(rounds):
        rng = random.Random(f"{seed} {i}")
        draft, validator_class = rng.choice([("2020-12", Draft202012Validator), ("07", Draft7Validator)])
        maker = Maker(rng, draft)
        schema = maker.document()
        validator_class.check_schema(schema)
        validator = validator_class(schema)
        for _ in range(10):
            value = maker.fitting(schema) if rng.random() < 0.7 else maker.value()
            try:
                theirs = "valid" if validator.is_valid(value) else "invalid"
            except TypeError:  # it sorts what cannot be sorted, for a message that nobody asked for
                continue
            mine = peer.ask(schema, value)
            if mine != theirs:
                print(f"round {i} of seed {seed}: {mine} here, {theirs} there\n{json.dumps(schema)}\n{json.dumps(value)}")
                sys.exit(1)
            counts[mine] += 1
    print(f"same verdict on {counts['valid']} valid and {counts['invalid']} invalid values")
    if min(counts.values()) < sum(counts.values()) / 20:
        raise SystemExit("too few of one kind to mean anything")


main()
