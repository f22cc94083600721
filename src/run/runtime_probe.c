/* SPDX-License-Identifier: MIT
 *
 * Whether `uv run --with …` can provide what a skill's runtime.dependencies name. Asked once for a
 * set of dependencies and a version of uv; the answer "yes" is kept in the user's cache. Everything
 * that goes wrong here is a warning: the agent then runs without them.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "proc/proc.h"
#include "proc/which.h"
#include "run/run_priv.h"
#include "skill/skill_engine.h"

#define PROBE_PATIENCE (120 * NSEC_PER_SEC)
enum { VERSION_MAX = 4096 /* what "uv --version" may print */ };

struct runtime_probe {
    struct proc *proc;
    bool asking; /* for the version; else trying */
    struct buf version;
    const char *cache; /* file that says it has worked; NULL: nowhere to keep it */
};

static const char *cache_file(const struct run *run, const char *key)
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (base != NULL && base[0] == '/') {
        return arena_printf(run->arena, "%s/cinch/uv/%s", base, key);
    }
    return home == NULL || home[0] != '/'
               ? NULL
               : arena_printf(run->arena, "%s/.cache/cinch/uv/%s", home, key);
}

static void remember(const char *file)
{
    char dir[PATH_MAX];
    const char *slash = file == NULL ? NULL : strrchr(file, '/');
    if (slash == NULL || (size_t)(slash - file) >= sizeof dir) {
        return;
    }
    memcpy(dir, file, (size_t)(slash - file));
    dir[slash - file] = '\0';
    if (file_mkdirs(AT_FDCWD, dir, 0700, NULL) == 0) {
        /* A cache that cannot be written to only costs time. */
        (void)!file_write_atomic(AT_FDCWD, file, STR("ok\n"), 0600, NULL);
    }
}

static void finish(struct run *run, bool works)
{
    if (works) {
        run->prefix = skill_runtime_prefix(run->arena, run->definition.package);
    }
    /* Only now it is known what will be started. */
    struct err e;
    int r = run->cause.reason == REASON_NONE ? sandbox_session_start(run, &e) : 0;
    if (r < 0) {
        run_fail_err(run, &e);
    }
    if (r <= 0) {
        run_phase_done(run);
    }
}

static void on_output(void *arg, enum proc_stream stream, struct str bytes)
{
    struct run *run = arg;
    if (run->probe->asking && stream == PROC_STDOUT) {
        (void)!buf_append(&run->probe->version, bytes, NULL);
    }
}

static int start(struct run *run, const char *const *argv, struct err *e);

/* 0: the answer is there; 1: it is being found out. */
static int try_it(struct run *run)
{
    struct runtime_probe *p = run->probe;
    const struct skill *s = run->definition.package;
    struct err e;
    p->asking = false;
    p->cache = cache_file(
        run, skill_probe_key(run->arena, s, p->version.ptr == NULL ? "" : p->version.ptr));
    if (p->cache != NULL && file_exists(AT_FDCWD, p->cache)) {
        return 0;
    }
    int r = start(run, skill_runtime_probe(run->arena, s), &e);
    if (r < 0) {
        run_warn(run, "dependencies of skill '%s' are left out: %s", s->name, e.msg);
        return r;
    }
    return 1;
}

static void on_done(void *arg, const struct proc_result *result)
{
    struct run *run = arg;
    struct runtime_probe *p = run->probe;
    bool good = result->started && result->exit_known && !result->signaled && result->value == 0;
    p->proc = proc_free(p->proc);
    if (good && p->asking) {
        int r = try_it(run);
        if (r <= 0) {
            finish(run, r == 0);
        }
        return;
    }
    if (good) {
        remember(p->cache);
    } else if (run->cause.reason == REASON_NONE) {
        run_warn(run, "dependencies of skill '%s' cannot be provided by uv: it runs without them",
                 run->definition.package->name);
    }
    finish(run, good);
}

static int start(struct run *run, const char *const *argv, struct err *e)
{
    struct proc_opts opts = {
        .argv = argv,
        .envp = run->opts->environ,
        .cwd = run->paths.home,
        .orphans = run->opts->orphans,
        .deadline = clock_now() + PROBE_PATIENCE,
        .port = { .on_output = on_output, .on_done = on_done, .arg = run },
    };
    return proc_start(run->loop, &opts, &run->probe->proc, e);
}

int runtime_probe_start(struct run *run)
{
    static const char *const version[] = { "uv", "--version", NULL };
    const struct skill *s = run->definition.package;
    struct err e;
    if (s == NULL || skill_runtime_probe(run->arena, s) == NULL) {
        return 0;
    }
    run->probe = ARENA_NEW(run->arena, struct runtime_probe);
    *run->probe = (struct runtime_probe) { .asking = true, .version = BUF_INIT(VERSION_MAX) };
    if (start(run, version, &e) < 0) {
        run_warn(run, "skill '%s' has dependencies, and uv is not installed to provide them: %s",
                 s->name, e.msg);
        return 0;
    }
    return 1;
}

void runtime_probe_interrupt(struct run *run)
{
    if (run->probe != NULL && run->probe->proc != NULL) {
        proc_kill(run->probe->proc);
    }
}

void runtime_probe_done(struct run *run)
{
    if (run->probe != NULL) {
        run->probe->proc = proc_free(run->probe->proc);
        buf_done(&run->probe->version);
    }
}
