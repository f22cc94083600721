#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Policies, feedback and completion: judged before a run, kept during it, and visible at the wire."""

import os
import re

import harness


class Check(harness.Case):
    """cinch task check finds what makes no sense, and says where."""

    def check(self, text):
        path = self.write("task.yaml", text if re.search("^prompt:", text, re.M) else "prompt: x\n" + text)
        return self.cinch("task", "check", path, "--", "true", env={"TICKETS_KEY": "k"})

    def test_senseless(self):
        for text, words in (
                ("policies: [{type: deny, tools: [a], section: none}]", ["task.yaml:2:12", "there is no section 'none'"]),
                ("policies: [{type: arguments, rules: [{pointer: /a, pattern: '('}]}]", ["policies[0]", "pattern '('"]),
                ("policies: [{type: sequential_dependency, depends: {a: [b], b: [a]}}]", ["would wait for itself"]),
                ("policies: [{type: rate, calls: 0}]", ["'calls' must be between 1"]),
                ("feedback: [{type: budget, every_n_calls: 1, threshold: 20}]", ["feedback[0]", "a share from 0 to 1"]),
                ("feedback: [{type: static, text: x, on_file_created: ../x}]", ["not in the workspace"]),
                ("completion: {files: [../x]}", ["task.yaml:2:13", "not in the workspace"]),
                ("completion: {any: [{session: {slice: a, min: 0}}]}", ["any[0]", "this holds always"]),
                ("completion: {all: [{schema: {type: what}}]}", ["all[0]", "schema"]),
        ):
            with self.subTest(text):
                self.assert_failed(self.check(text), 65, *words)
        self.assert_failed(self.check("completion: {all: [{schema: none.json}]}"), 66, "none.json")

    def test_sections_of_any_depth(self):
        prompt = ("prompt: {ns: a, key: b, sections: [{key: guide, title: T, body: x, children: "
                  "[{key: deep, title: D, body: y}]}]}\n")
        for section in ("guide", "guide.deep", "guide/deep"):
            r = self.check(prompt + f"policies: [{{type: deny, tools: [x], section: {section}}}]\n")
            self.assertEqual(r.code, 0, r.stderr)
        self.assert_failed(self.check(prompt + "policies: [{type: deny, tools: [x], section: deep}]\n"), 65, "deep")

    def test_the_manual(self):
        """Each example of docs/tools.md is a task."""
        with open(os.path.join(harness.ROOT, "docs", "tools.md")) as f:
            blocks = re.findall("```yaml\n(.*?)```", f.read(), re.S)
        self.assertGreater(len(blocks), 4)
        for block in blocks:
            with self.subTest(block):
                r = self.check(block)
                self.assertEqual(r.code, 0, r.stderr)


if __name__ == "__main__":
    harness.main()
