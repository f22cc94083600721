/* SPDX-License-Identifier: MIT
 *
 * A run as far as phase prepare, without a task, and programs that are started in it as tools are.
 */
#pragma once

#include "run/run_priv.h"
#include "run/sandbox_session.h"

#include "../workspace/scene.h"
#include "io/loop.h"
#include "workspace/txn.h"
#include "workspace/workspace.h"

struct stage {
    struct run run;
    struct run_opts opts;
    struct run_plan plan;
    struct profile profile;
    struct driver driver;
    struct txns *txns;
    struct txn *txn;
    struct proc *proc;
    const char *script;
    int status;
};

static inline struct stage *stage_of(struct run *run)
{
    return (struct stage *)run;
}

/* As far as phase prepare, without a task. */
static inline struct stage *open_stage(struct scene *s, enum sandbox_mode mode, bool starts)
{
    struct stage *t = xcalloc(1, sizeof *t);
    struct run *run = &t->run;
    struct err e = { 0 };
    put(s, "ws/kept", "as it was\n");
    put(s, "ws/gone", "to be removed\n");
    t->driver.kind = starts ? DRIVER_PIPE : DRIVER_MODEL_LOOP;
    run->opts = &t->opts;
    run->arena = arena_new();
    run->files_fd = run->confine.spare_fd = run->confine.copies_fd = -1;
    run->plan = run->draft = &t->plan;
    t->plan.driver = &t->driver;
    t->plan.settings.profile = &t->profile;
    t->plan.settings.sandbox.mode = mode;
    t->plan.settings.workspace = run->paths.view = at(s, "ws");
    assert_ok(loop_new(&run->loop, &e), &e);
    assert_ok(record_open(&run->record,
                          &(struct record_opts) { .path = at(s, "out"), .adapter = "test" }, &e),
              &e);
    make_dir(s, "out/home");
    run->paths.home = at(s, "out/home");
    run->paths.artifacts = at(s, "out/artifacts");
    return t;
}

static inline void prepare(struct stage *t)
{
    struct err e = { 0 };
    assert_ok(sandbox_session_admit(&t->run, &e), &e);
    assert_ok(run_open_workspace(&t->run, &e), &e);
    int r = sandbox_session_start(&t->run, &e);
    assert_ok(r, &e);
    assert_int_equal(r, 0);
}

static inline void on_closed(struct run *run)
{
    loop_stop(run->loop);
}

static inline void close_stage(struct stage *t)
{
    struct run *run = &t->run;
    t->txns = txns_close(t->txns);
    assert_false(sandbox_session_close(run, on_closed)); /* nobody is inside any more */
    assert_null(sandbox_session_sandbox(run));
    if (sandbox_session_wait(run, on_closed)) {
        loop_run(run->loop);
    }
    assert_false(sandbox_session_wait(run, on_closed));
    run->workspace = workspace_close(run->workspace, false);
    record_done(&run->record);
    run->loop = loop_free(run->loop);
    arena_free(run->arena);
    free(t);
}

static inline void on_done(void *arg, const struct proc_result *r)
{
    struct stage *t = arg;
    t->status = r->exit_known && !r->signaled ? r->value : -1;
    t->proc = proc_free(t->proc);
    loop_stop(t->run.loop);
}

static inline void begin(struct run *run)
{
    struct stage *t = stage_of(run);
    struct err e = { 0 };
    static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const char *const argv[] = { "sh", "-ec", t->script, NULL };
    if (t->txns == NULL) {
        assert_ok(run_txns_open(run, &t->txns, &e), &e);
    }
    assert_ok(txn_begin(t->txns, &t->txn, &e), &e);
    const char *layer = run_txn_layer(run, run->arena, t->txn);
    struct proc_place inside = { 0 };
    if (layer != NULL) {
        inside = sandbox_place(sandbox_session_sandbox(run), layer);
    }
    const struct proc_place *place = layer != NULL ? &inside : NULL;
    struct proc_opts o = {
        .path = "/bin/sh",
        .argv = argv,
        .envp = env,
        .cwd = place != NULL ? run->paths.view : txn_copy(t->txn),
        .place = place,
        .port = { .on_done = on_done, .arg = t },
    };
    assert_int_equal(place != NULL, sandbox_session_sandbox(run) != NULL);
    assert_ok(proc_start(run->loop, &o, &t->proc, &e), &e);
}

/* Runs the script in a transaction, which stays open. */
static inline int work(struct stage *t, const char *script)
{
    t->script = script;
    t->status = -1;
    sandbox_session_await(&t->run, SANDBOX_SESSION_MOUNTED, begin);
    loop_run(t->run.loop);
    assert_int_equal(t->run.cause.reason, REASON_NONE);
    return t->status;
}

/* The same, and commits it, or rolls it back when it fails. */
static inline int transact(struct stage *t, const char *script)
{
    struct err e = { 0 };
    if (work(t, script) == 0) {
        assert_ok(txn_commit(t->txn, NULL, &e), &e);
    } else {
        (void)txn_rollback(t->txn);
    }
    t->txn = NULL;
    return t->status;
}
