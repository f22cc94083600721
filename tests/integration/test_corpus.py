#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files that other projects ship, unchanged, on four adapters with a scripted model. CINCH_CORPUS names a directory with
`holon/`, `scylla/` and `skill-runner/`; without it there is nothing to try. At least 95 of 100 are taken (the agent is
started), and each refusal has its reason."""

import json
import os

import harness

FILE_TIMEOUT = 3600
REFUSED = {"usage", "bad_task", "missing_input", "unavailable"}


@harness.about_programs
class Corpus:
    """The classes below say which adapter."""

    adapter = None
    options = ()

    def setUp(self):
        super().setUp()
        self.root = os.environ.get("CINCH_CORPUS", "")
        if not os.path.isdir(self.root):
            self.skipTest("CINCH_CORPUS names no directory")
        self.model = self.write("model.yaml", "steps: [{say: '{}'}]\n")

    def take(self, what, artefacts):
        """Runs each of {name: options}."""
        refused = {}
        for name, options in artefacts.items():
            r = self.run_cinch(*options, "--timeout", "100s", *self.options)
            if r.reason in REFUSED:
                refused[name] = r.result["error"]
            elif not r.events("process.spawned") and r.metrics["api_calls"] == 0:
                refused[name] = None  # neither started nor refused
        total = len(artefacts)
        print(f"{what} on {self.adapter}: {total - len(refused)} of {total} taken", *(f"{k}: {v}" for k, v in refused.items()), sep="\n")
        self.assertTrue(total > 0 and all(refused.values()), refused)
        self.assertGreaterEqual((total - len(refused)) / total, 0.95, refused)

    def below(self, *names):
        top = os.path.join(self.root, *names)
        return {n: os.path.join(top, n) for n in sorted(os.listdir(top))}

    def test_holon(self):
        # Files of the project that are no specs are not tasks.
        self.take("Holon specs", {n: [p] for n, p in self.below("holon").items() if n.endswith(".yaml") and "config" not in n})

    def test_scylla(self):
        free = ("--set", "workspace.ref=null", "--set", "limits.usd=null")
        self.take("Scylla tests", {f"{n} {tier}": [p, "--tier", tier, *free] for n, p in self.below("scylla", "tests").items()
                                   for tier in ("T0", "T1", "T3")})

    def test_skill_packages(self):
        packages = {}
        for name, path in self.below("skill-runner").items():
            packages[name] = ["--skill", path]
            schema = os.path.join(path, "assets", "input.schema.json")
            if os.path.exists(schema):
                with open(schema, encoding="utf-8") as f:
                    schema = json.load(f)
                for key in schema.get("required", []):
                    inline = schema["properties"].get(key, {}).get("x-input-source") == "inline"
                    packages[name] += ["--input", f"{key}={'x' if inline else self.write('input.txt', '1')}"]
            packages[name] += self.parameters(os.path.join(path, "assets", "parameter.schema.json"))
        self.take("skill packages", packages)

    def parameters(self, path):
        """A value for each parameter that a package requires."""
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as f:
            schema = json.load(f)
        values = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
        options = []
        for key in schema.get("required", []):
            member = schema["properties"].get(key, {})
            value = member.get("default", member.get("enum", [values.get(member.get("type"), "x")])[0])
            options += ["--set", f"params.{key}={json.dumps(value)}"]
        return options


class Command(Corpus, harness.Case):
    adapter = "command"
    options = ("--", "true")


class Direct(Corpus, harness.Case):
    adapter = "api-direct"

    def setUp(self):
        super().setUp()
        self.options = ("-a", self.adapter, "-m", "m", "--script", self.model)


class ClaudeCode(Direct):
    adapter = "claude-code"

    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.path.dirname(self.real(self.adapter)) + ":" + self.env["PATH"]


class Codex(ClaudeCode):
    adapter = "codex"


if __name__ == "__main__":
    harness.main()
