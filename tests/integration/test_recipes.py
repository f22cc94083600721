#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The recipes of CONTRIBUTING.md. tests/recipes/<name> is a worked example of each: new files, and lines to add to others
(edits.json). All are applied to a copy of the sources, the files that they touch are compiled as the build does it, and
a program linked from them and the libraries of the build is used. (The recipe for a setting is proven by
tests/unit/config/test_settings_table.c.)"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import harness

RECIPES = os.path.join(harness.ROOT, "tests", "recipes")
FILES_MAX = 6
LISTS = re.compile(r"\b(?:COMMAND|DRIVER|TOOL_KIND)_LIST\(X\)")


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as f:
        return f.read()


def new_files(name):
    top = os.path.join(RECIPES, name)
    for base, _, names in os.walk(top):
        for file in names:
            path = os.path.relpath(os.path.join(base, file), top)
            if path != "edits.json":
                yield path


def edits(name):
    return json.loads(read(RECIPES, name, "edits.json"))


def apply(name, tree):
    """The files that the recipe touches."""
    touched = set(new_files(name))
    for path in touched:
        target = os.path.join(tree, path)
        if os.path.exists(target):
            raise AssertionError(f"{name}: {path} exists in the tree")
        shutil.copyfile(os.path.join(RECIPES, name, path), target)
    for edit in edits(name):
        path, text = edit["file"], read(tree, edit["file"])
        anchor = edit.get("after") or edit["before"]
        if text.count(anchor) != 1:
            raise AssertionError(f"{name}: {path} has {text.count(anchor)} times: {anchor!r}")
        both = anchor + edit["add"] if "after" in edit else edit["add"] + anchor
        with open(os.path.join(tree, path), "w", encoding="utf-8") as f:
            f.write(text.replace(anchor, both))
        touched.add(path)
    return touched


class Compiler:
    """Compiles and links files of a copy of the tree with the commands of the build."""

    def __init__(self, tree):
        self.tree = tree
        commands = json.loads(read(harness.BUILD, "compile_commands.json"))
        self.commands = {os.path.normpath(os.path.join(c["directory"], c["file"])): c for c in commands
                         if "src/" in c["file"] and ".so.p/" not in c.get("output", "")}

    def command_for(self, path):
        """Of the file itself, or of another one of its layer."""
        own = os.path.join(harness.ROOT, path)
        folder = os.path.dirname(own)
        like = own if own in self.commands else next(k for k in sorted(self.commands) if os.path.dirname(k) == folder)
        return shlex.split(self.commands[like]["command"])

    def compile(self, path):
        out = os.path.join(self.tree, path.replace("/", "_") + ".o")
        words, line = [], self.command_for(path)
        skip = 0
        for word in line:
            if skip:
                skip -= 1
            elif word in ("-o", "-c", "-MF", "-MQ"):
                skip = 1
            elif word == "-I../src":
                words.append("-I" + os.path.join(self.tree, "src"))
            elif word != "-MD":
                words.append(word)
        self.run(words + ["-o", out, "-c", os.path.join(self.tree, path)])
        return out

    def link(self, objects, out):
        commands = subprocess.run(["ninja", "-C", harness.BUILD, "-t", "commands", "src/cli/cinch"], capture_output=True,
                                  text=True, check=True).stdout.splitlines()
        words = shlex.split(commands[-1])
        at = words.index("-o")
        words[at + 1] = out
        self.run(words[:at + 2] + objects + words[at + 2:])  # before the libraries: their copies are not taken

    def run(self, words):
        done = subprocess.run(words, cwd=harness.BUILD, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise AssertionError(f"{shlex.join(words)}\n{done.stdout}{done.stderr}")


class Recipes(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tree = tempfile.mkdtemp(prefix="recipes")
        cls.addClassCleanup(shutil.rmtree, cls.tree)
        for folder in ("src", "schema", "docs", "tests/schema"):
            shutil.copytree(os.path.join(harness.ROOT, folder), os.path.join(cls.tree, folder))
        cls.touched = {name: apply(name, cls.tree) for name in sorted(os.listdir(RECIPES))}
        all_touched = set().union(*cls.touched.values())
        sources = {path for path in all_touched if path.endswith(".c")}
        for header in (path for path in all_touched if path.endswith(".h")):
            folder = os.path.dirname(header)
            sources |= {os.path.join(folder, f) for f in os.listdir(os.path.join(cls.tree, folder))
                        if f.endswith(".c") and LISTS.search(read(cls.tree, folder, f))}
        compiler = Compiler(cls.tree)
        program = os.path.join(cls.tree, "cinch")
        compiler.link([compiler.compile(path) for path in sorted(sources)], program)
        cls.original, harness.CINCH = harness.CINCH, program
        cls.addClassCleanup(setattr, harness, "CINCH", cls.original)

    def setUp(self):
        super().setUp()
        self.env["CINCH_INIT"] = harness.init()

    def test_few_files(self):
        self.assertEqual(set(self.touched), {"command", "driver", "record_file", "tool_kind"})
        for name, files in self.touched.items():
            self.assertLessEqual(len(files), FILES_MAX, (name, files))
            for path in new_files(name):
                if path.endswith(".c"):
                    self.assertIn(f"'{os.path.basename(path)}'", read(self.tree, os.path.dirname(path), "meson.build"))

    def test_the_page_describes_them(self):
        page = read(harness.ROOT, "CONTRIBUTING.md")
        for name in self.touched:
            self.assertIn(f"tests/recipes/{name}", page)

    def test_command(self):
        self.assertEqual(self.cinch("hello").stdout, b"hello\n")
        self.assertEqual(self.cinch("hello", "--loud").stdout, b"HELLO\n")
        self.assertIn(b"print a greeting", self.cinch("help", "hello").stdout)

    def test_driver(self):
        os.mkdir(self.path("adapters"))
        with open(self.path("adapters/liner.yaml"), "w", encoding="utf-8") as f:
            f.write('name: liner\ntitle: Liner\ndriver: first-line\nbinary: [printf]\nprompt: argument\n'
                    'argv: ["{binary}", "first: {prompt}\\\\nsecond\\\\n"]\n')
        r = self.run_cinch("--adapter-dir", self.path("adapters"), "--adapter", "liner", "greet", valid=False)
        self.assertEqual((r.code, r.result["text"]), (0, "first: greet"), r.stderr)

    def test_tool_kind(self):
        script = self.path("model.yaml")
        with open(script, "w", encoding="utf-8") as f:
            json.dump({"side": False, "steps": [{"when": {"turn": 0, "tool": "motto"}, "call": {"tool": "motto", "args": {}}},
                                                {"when": {"turn": 1, "text": "festina lente"}, "say": "done"}]}, f)
        task = {"agent": {"adapter": "api-direct", "model": "m"}, "prompt": "Do it.", "gateway": {"script": script},
                "tools": [{"name": "motto", "description": "The motto.", "constant": "festina lente"}]}
        with open(self.path("task.yaml"), "w", encoding="utf-8") as f:
            json.dump(task, f)
        r = self.run_cinch(self.path("task.yaml"), valid=False)
        self.assertEqual((r.reason, r.result["text"]), ("success", "done"), r.stderr)
        task["tools"][0]["command"] = ["true"]
        with open(self.path("task.yaml"), "w", encoding="utf-8") as f:
            json.dump(task, f)
        r = self.cinch("task", "check", self.path("task.yaml"))
        self.assertEqual(r.code, 65)
        self.assertIn(b"a tool needs either 'constant' or 'command' or 'mcp'", r.stderr)

    def test_record_file(self):
        r = self.run_command("true", valid=False)
        check = ["/usr/bin/python3", os.path.join(self.tree, "tests", "schema", "validate.py"), r.output]
        done = subprocess.run(check, capture_output=True, text=True, timeout=harness.PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertIn("evidence/host.json", r.manifest["artifacts"])
        with open(r.path("evidence/host.json"), "w", encoding="utf-8") as f:
            f.write('{"processors": 0}')
        done = subprocess.run(check, capture_output=True, text=True, timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("evidence/host.json: processors", done.stdout)


if __name__ == "__main__":
    harness.main()
