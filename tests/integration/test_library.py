#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""libcinch as it is installed: header, library and pkg-config file are enough to build the examples, and they do
what their comments say."""

import json
import os
import shutil
import subprocess

import harness

EXAMPLES = os.path.join(harness.ROOT, "examples", "c")


MISUSE = r"""
#include <cinch.h>
#include <assert.h>
#include <stdint.h>
#include <stdio.h>

static void note(void *arg, struct cinch_call *call)
{
    struct cinch_result *r;
    assert(cinch_run(arg, NULL, &r) == -CINCH_EUSAGE && r == NULL);
    assert(cinch_call_answer(NULL, "{}") == -CINCH_EUSAGE);
    assert(cinch_call_answer(call, NULL) == -CINCH_EUSAGE);
    assert(cinch_call_answer(call, "[]") == -CINCH_EUSAGE);
    assert(cinch_call_answer(call, "{") == -CINCH_EUSAGE);
    assert(cinch_call_answer(call, "{\"message\": \"noted\"}") == 0);
    assert(cinch_call_answer(call, "{\"message\": \"again\"}") == -CINCH_EUSAGE);
    cinch_task_free(arg);
}

int main(int argc, char **argv)
{
    char task[4096];
    struct cinch_result *r;
    struct cinch_task *t = cinch_task_new();
    struct cinch_tool tool = { SIZE_MAX, "{\"name\": \"note\", \"description\": \"Notes.\"}", note, t };
    struct cinch_options options = { .size = 0 };
    assert(cinch_run(NULL, NULL, &r) == -CINCH_EUSAGE && cinch_run(t, NULL, NULL) == -CINCH_EUSAGE);
    assert(cinch_run(t, &options, &r) == -CINCH_EUSAGE && cinch_task_error(t)[0] != 0);
    assert(cinch_task_load(NULL, "x") == -CINCH_EUSAGE && cinch_task_load(t, NULL) == -CINCH_EUSAGE);
    assert(cinch_task_merge(NULL, "{}") == -CINCH_EUSAGE && cinch_task_merge(t, NULL) == -CINCH_EUSAGE);
    assert(cinch_task_add_tool(NULL, &tool) == -CINCH_EUSAGE && cinch_task_add_tool(t, NULL) == -CINCH_EUSAGE);
    assert(cinch_task_add_policy(t, NULL) == -CINCH_EUSAGE && cinch_task_add_feedback(t, NULL) == -CINCH_EUSAGE);
    assert(cinch_task_add_completion(t, NULL) == -CINCH_EUSAGE && cinch_task_add_tool(t, &tool) == -CINCH_EUSAGE);
    assert(cinch_task_error(NULL)[0] == 0);
    tool.size = sizeof tool;
    snprintf(task, sizeof task,
             "{\"agent\": {\"adapter\": \"api-direct\", \"model\": \"m\"}, \"prompt\": \"Do it.\","
             " \"gateway\": {\"script\": \"%s\"}, \"limits\": {\"timeout\": 30}}", argv[1]);
    assert(cinch_task_add_tool(t, &tool) == 0 && cinch_task_merge(t, task) == 0);
    assert(cinch_run(t, NULL, &r) == 0);
    puts(cinch_result_reason(r));
    cinch_result_free(r);
    return 0;
}
"""


class Library(harness.Case):
    def installed(self):
        """What `meson install` puts somewhere, as a compiler finds it."""
        if harness.SANITIZED:
            self.skipTest("a sanitized library needs a sanitized program")
        place = self.path("installed")
        subprocess.run(["meson", "install", "-C", harness.BUILD, "--no-rebuild", "--quiet", "--destdir", place],
                       check=True, capture_output=True)
        found = [os.path.join(d, "cinch.pc") for d, _, files in os.walk(place) if "cinch.pc" in files]
        self.assertEqual(len(found), 1)
        self.lib = os.path.dirname(os.path.dirname(found[0]))
        return {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(found[0]), "PKG_CONFIG_SYSROOT_DIR": place}

    def build(self, name, env, place=EXAMPLES):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "cinch"], env=env, check=True,
                               capture_output=True, text=True).stdout.split()
        program = self.path(name)
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
                        os.path.join(place, name + ".c"), *flags, "-o", program], check=True)
        return program

    def run_example(self, name, *files):
        env = self.installed()
        program = self.build(name, env)
        for f in files:
            shutil.copy(os.path.join(EXAMPLES, f), self.path(f))
        done = subprocess.run([program, self.path(files[0])], cwd=self.workspace, capture_output=True, text=True,
                              env={**self.env, "LD_LIBRARY_PATH": self.lib, "CINCH_INIT": harness.init(),
                                   "XDG_STATE_HOME": self.path("state")})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_lookup(self):
        out = self.run_example("lookup", "lookup.yaml", "lookup-model.yaml")
        self.assertEqual(out.count("a tool was called"), 2)
        self.assertIn("success after 2 calls", out)

    def test_guarded(self):
        out = self.run_example("guarded", "guarded-model.yaml")
        first, _, rest = out.partition("\n")
        self.assertEqual(first, "success: 2 noted, 2 denied, 2 checks")
        self.assertEqual(json.loads(rest)["reason"], "success")

    def test_misuse(self):
        """Calls that make no sense are refused, and a callback can do no harm to the run it is part of."""
        env = self.installed()
        self.write("misuse.c", MISUSE)
        model = self.write("model.yaml", json.dumps({"side": False, "steps": [
            {"when": {"turn": 0}, "call": {"tool": "note", "args": {}}}, {"when": {"turn": 1}, "say": "done"}]}))
        done = subprocess.run([self.build("misuse", env, self.dir), model], cwd=self.workspace, capture_output=True,
                              text=True, env={**self.env, "LD_LIBRARY_PATH": self.lib, "CINCH_INIT": harness.init(),
                                              "XDG_STATE_HOME": self.path("state")})
        self.assertEqual((done.returncode, done.stdout), (0, "success\n"), done.stderr)

    def test_only_what_is_promised_is_visible(self):
        self.installed()
        names = subprocess.run(["nm", "-D", "--defined-only", os.path.join(self.lib, "libcinch.so.0")], check=True,
                               capture_output=True, text=True).stdout.split("\n")
        visible = {line.split()[-1] for line in names if line}
        self.assertEqual({n for n in visible if not n.startswith("cinch_")}, set())
        with open(os.path.join(harness.ROOT, "include", "cinch.h")) as f:
            header = f.read()
        self.assertEqual({n for n in visible if n + "(" not in header}, set())


if __name__ == "__main__":
    harness.main()
