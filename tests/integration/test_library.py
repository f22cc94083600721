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


# What a host sees of a run: HOST task-json [other-task-json]. Prints a line of JSON.
HOST = r"""
#define _GNU_SOURCE
#include <cinch.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const *environment;

static void on_pipe(int signo) { (void)signo; }

static int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void *run(void *task)
{
    struct cinch_options o = { .size = sizeof o, .environment = environment };
    struct cinch_result *r = NULL;
    struct cinch_task *t = cinch_task_new();
    char *text = NULL;
    if (cinch_task_merge(t, task) < 0 || cinch_run(t, &o, &r) < 0)
        asprintf(&text, "\"error: %s\"", cinch_task_error(t));
    else
        asprintf(&text, "{\"dir\": \"%s\", \"reason\": \"%s\"}", cinch_result_dir(r), cinch_result_reason(r));
    cinch_result_free(r);
    cinch_task_free(t);
    return text;
}

int main(int argc, char **argv)
{
    char here[4096], there[4096];
    pthread_t thread;
    void *other = NULL;
    int subreaper = -1, before = 0, after[2];
    const char *wanted[] = { getenv("HOST_PATH"), NULL };
    environment = wanted[0] != NULL ? wanted : NULL;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        for (;;)
            pause();
    }
    signal(SIGPIPE, on_pipe);
    umask(027);
    getcwd(here, sizeof here);
    before = descriptors();
    if (argc > 2)
        pthread_create(&thread, NULL, run, argv[2]);
    char *first = run(argv[1]);
    if (getenv("HOST_OVER") != NULL)
        close(creat(getenv("HOST_OVER"), 0600));
    if (argc > 2)
        pthread_join(thread, &other);
    after[0] = descriptors();
    free(run("{\"agent\": {\"command\": [\"true\"]}, \"sandbox\": \"off\"}"));
    after[1] = descriptors();
    getcwd(there, sizeof there);
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    printf("{\"child\": %s, \"subreaper\": %d, \"umask\": %d, \"cwd\": %s, \"sigpipe\": %s, \"fds\": [%d, %d, %d], "
           "\"result\": %s, \"other\": %s}\n",
           waitpid(child, NULL, WNOHANG) == 0 ? "true" : "false", subreaper, umask(0),
           strcmp(here, there) == 0 ? "true" : "false", signal(SIGPIPE, SIG_DFL) == on_pipe ? "true" : "false",
           before, after[0], after[1], first, other == NULL ? "null" : (char *)other);
    free(first);
    free(other);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
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

    def host(self, *tasks, **env):
        """What a program sees that runs the tasks, each in a thread of its own, beside a child of its own."""
        flags = self.installed()
        self.write("host.c", HOST)
        done = subprocess.run([self.build("host", flags, self.dir), *map(json.dumps, tasks)], cwd=self.workspace,
                              capture_output=True, text=True, timeout=harness.PATIENCE,
                              env={**self.env, "LD_LIBRARY_PATH": self.lib, "CINCH_INIT": harness.init(),
                                   "XDG_STATE_HOME": self.path("state"), **env})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def task(self, script, **more):
        return {"agent": {"adapter": "command", "command": ["sh", "-c", script]}, "sandbox": {"mode": "off"},
                "workspace": {"mode": "in-place"}, "limits": {"drain": 1, "timeout": 60}, **more}

    def test_a_child_of_the_host_survives_an_agent_that_kills_its_supervisor(self):
        seen = self.host(self.task("kill -9 $PPID; sleep 1"))
        self.assertTrue(seen["child"], "libcinch killed a process that it had not started")
        self.assertEqual(seen["subreaper"], 0)
        self.assertEqual(seen["result"]["reason"], "internal")
        with open(os.path.join(seen["result"]["dir"], "manifest.json")) as f:
            self.assertTrue([w for w in json.load(f)["warnings"] if "may still run" in w])

    def test_what_it_does_to_the_process(self):
        seen = self.host(self.task("true"))
        self.assertEqual(seen["result"]["reason"], "success")
        self.assertEqual((seen["umask"], seen["cwd"], seen["sigpipe"], seen["subreaper"]), (0o27, True, True, 0))
        before, once, twice = seen["fds"]
        self.assertLessEqual(once, before + 3)
        self.assertEqual(once, twice)

    def test_a_run_in_one_thread_does_not_end_that_of_another(self):
        """The first kills its supervisor when both run; the second ends when cinch_run() of the first has returned."""
        wait = "while [ ! -e %s ]; do sleep 0.02; done"
        over = self.path("over")
        first = self.task(wait % "begun" + "; kill -9 $PPID; sleep 1")
        second = self.task("touch begun; " + wait % over)
        seen = self.host(first, second, HOST_OVER=over)
        self.assertEqual(seen["result"]["reason"], "internal")
        self.assertEqual(seen["other"]["reason"], "success", seen["other"])

    def test_programs_are_searched_in_the_path_that_the_caller_gave(self):
        self.script("mine/tool", "echo mine")
        self.script("other/tool", "echo other")
        self.script("mine/cinch-adapter-own", "echo adapter; exit 0")
        path = "/usr/bin:/bin"
        task = {"agent": {"adapter": "command", "command": ["tool"]}, "sandbox": {"mode": "off"}}
        for given, said in ((f"PATH={self.path('mine')}:{path}", "mine"), (None, "other")):
            env = {"HOST_PATH": given} if given else {}
            seen = self.host(task, PATH=f"{self.path('other')}:{path}", **env)
            self.assertEqual(seen["result"]["reason"], "success")
            with open(os.path.join(seen["result"]["dir"], "stdout.log")) as f:
                self.assertEqual(f.read(), said + "\n")
        own = {"agent": {"adapter": "own"}, "prompt": "x", "sandbox": {"mode": "off"}}
        self.assertEqual(self.host(own)["result"]["reason"], "unavailable")
        self.assertNotEqual(self.host(own, HOST_PATH=f"PATH={self.path('mine')}:{path}")["result"]["reason"],
                            "unavailable")

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
