/* SPDX-License-Identifier: MIT
 *
 * The sandbox of a run as whoever starts programs for the agent finds it: opened early, also for an
 * adapter that starts none, with transactions on the workspace, with and without overlays.
 */
#include "run/confine.h"
#include "run/run_priv.h"

#include "../../programs/refuse.h"
#include "../workspace/scene.h"
#include "io/loop.h"
#include "workspace/txn.h"
#include "workspace/workspace.h"

struct stage {
    struct run run;
    struct run_opts opts;
    struct profile profile;
    struct driver driver;
    struct txns *txns;
    struct txn *txn;
    struct proc *proc;
    const char *script;
    int status;
};

static int no_plan(struct arena *a, const struct launch_spec *spec, struct launch *ret,
                   struct err *e)
{
    return 0;
}

static struct stage *stage_of(struct run *run)
{
    return (struct stage *)run;
}

/* As far as phase prepare, without a task. */
static struct stage *open_stage(struct scene *s, enum settings_sandbox_mode mode, bool starts)
{
    struct stage *t = xcalloc(1, sizeof *t);
    struct run *run = &t->run;
    struct err e = { 0 };
    put(s, "ws/kept", "as it was\n");
    put(s, "ws/gone", "to be removed\n");
    t->driver.plan = starts ? no_plan : NULL;
    run->opts = &t->opts;
    run->arena = arena_new();
    run->driver = &t->driver;
    run->settings.profile = &t->profile;
    run->settings.sandbox.mode = mode;
    run->settings.workspace = at(s, "ws");
    assert_ok(loop_new(&run->loop, &e), &e);
    assert_ok(record_open(&run->record,
                          &(struct record_opts) { .path = at(s, "out"), .adapter = "test" }, &e),
              &e);
    make_dir(s, "out/home");
    run->paths.home = at(s, "out/home");
    run->paths.artifacts = at(s, "out/artifacts");
    return t;
}

static void prepare(struct stage *t)
{
    struct err e = { 0 };
    assert_ok(confine_admit(&t->run, &e), &e);
    assert_ok(run_open_workspace(&t->run, &e), &e);
    int r = confine_start(&t->run, &e);
    assert_ok(r, &e);
    assert_int_equal(r, 0);
}

static void on_closed(struct run *run)
{
    loop_stop(run->loop);
}

static void close_stage(struct stage *t)
{
    struct run *run = &t->run;
    t->txns = txns_close(t->txns);
    assert_false(confine_close(run, on_closed)); /* nobody is inside any more */
    assert_null(confine_sandbox(run));
    if (confine_wait(run, on_closed)) {
        loop_run(run->loop);
    }
    assert_false(confine_wait(run, on_closed));
    run->workspace = workspace_close(run->workspace, false);
    record_done(&run->record);
    run->loop = loop_free(run->loop);
    arena_free(run->arena);
    free(t);
}

static void on_done(void *arg, const struct proc_result *r)
{
    struct stage *t = arg;
    t->status = r->exit_known && !r->signaled ? r->value : -1;
    t->proc = proc_free(t->proc);
    loop_stop(t->run.loop);
}

static void begin(struct run *run)
{
    struct stage *t = stage_of(run);
    struct err e = { 0 };
    static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const char *const argv[] = { "sh", "-ec", t->script, NULL };
    if (t->txns == NULL) {
        assert_ok(run_txns_open(run, &t->txns, &e), &e);
    }
    assert_ok(txn_begin(t->txns, &t->txn, &e), &e);
    const struct proc_place *place = run_txn_place(run, t->txn);
    struct proc_opts o = {
        .path = "/bin/sh",
        .argv = argv,
        .envp = env,
        .cwd = place != NULL ? run->settings.workspace : txn_copy(t->txn),
        .place = place,
        .port = { .on_done = on_done, .arg = t },
    };
    assert_int_equal(place != NULL, confine_sandbox(run) != NULL);
    assert_ok(proc_start(run->loop, &o, &t->proc, &e), &e);
}

/* Runs the script in a transaction and commits it, or rolls it back when it fails. */
static int transact(struct stage *t, const char *script)
{
    struct err e = { 0 };
    t->script = script;
    t->status = -1;
    confine_await(&t->run, CONFINE_STANDS, begin);
    loop_run(t->run.loop);
    assert_int_equal(t->run.cause.reason, REASON_NONE);
    if (t->status == 0) {
        assert_ok(txn_commit(t->txn, NULL, &e), &e);
    } else {
        (void)txn_rollback(t->txn);
    }
    t->txn = NULL;
    return t->status;
}

/* What one program leaves, the next finds; what fails leaves nothing; the source has no part. */
static void check_transactions(struct scene *s, struct stage *t)
{
    assert_int_equal(
        transact(t, "test -e kept; rm gone; mkdir sub; echo made > sub/new; echo more >> kept"), 0);
    assert_int_equal(transact(t, "test ! -e gone; grep -q made sub/new; grep -q more kept;"
                                 "echo bad > kept; rm -r sub; exit 3"),
                     3);
    assert_int_equal(transact(t, "test ! -e gone; grep -q made sub/new; grep -q more kept"), 0);
    assert_string_equal(text_of(s, "ws/kept"), "as it was\n");
    assert_string_equal(text_of(s, "ws/gone"), "to be removed\n");
}

static void test_layers(void **state)
{
    struct stage *t = open_stage(*state, SANDBOX_MODE_UNSET, true);
    prepare(t);
    assert_non_null(confine_sandbox(&t->run));
    check_transactions(*state, t);
    close_stage(t);
}

/* Everything is a copy, and all else is the same. Comes last: what was refused stays refused. */
static void test_no_overlay(void **state)
{
    struct scene *s = *state;
    assert_int_equal(refuse("overlay"), 0);
    struct stage *t = open_stage(s, SANDBOX_MODE_UNSET, true);
    struct json *tools = json_array(s->arena);
    json_push(s->arena, tools, json_object(s->arena));
    t->run.settings.tools = tools;
    prepare(t);
    assert_int_equal(workspace_kind_of(t->run.workspace), WORKSPACE_OVERLAY);
    check_transactions(*state, t);
    assert_int_equal(workspace_kind_of(t->run.workspace), WORKSPACE_COPY);
    assert_int_equal(t->run.warning_count, 1);
    assert_false(sandbox_layers(confine_sandbox(&t->run)));
    close_stage(t);
}

static void test_without_a_sandbox(void **state)
{
    struct stage *t = open_stage(*state, SANDBOX_MODE_OFF, true);
    prepare(t);
    assert_null(confine_sandbox(&t->run));
    assert_null(confine_place(&t->run));
    check_transactions(*state, t);
    close_stage(t);
}

/* An adapter that starts no program has a sandbox if the task has tools, and only then. */
static void test_no_program(void **state)
{
    struct stage *t = open_stage(*state, SANDBOX_MODE_UNSET, false);
    prepare(t);
    assert_null(confine_sandbox(&t->run));
    close_stage(t);
}

static void test_no_program_but_tools(void **state)
{
    struct scene *s = *state;
    struct stage *t = open_stage(s, SANDBOX_MODE_UNSET, false);
    struct json *tools = json_array(s->arena);
    json_push(s->arena, tools, json_object(s->arena));
    t->run.settings.tools = tools;
    prepare(t);
    assert_non_null(confine_sandbox(&t->run));
    int port;
    assert_int_equal(confine_listen(&t->run, NULL, &port, NULL), 0); /* it is cinch who asks */
    check_transactions(s, t);
    close_stage(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(test_layers),

        SCENE_TEST(test_no_program),
        SCENE_TEST(test_no_program_but_tools),
        SCENE_TEST(test_without_a_sandbox),
        SCENE_TEST(test_no_overlay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
