/* SPDX-License-Identifier: MIT
 *
 * The sandbox of a run as whoever starts programs for the agent finds it: opened early, also for an
 * adapter that starts none, with transactions on the workspace, with and without overlays.
 */
#include "run/sandbox_session.h"

#include "../../programs/refuse.h"
#include "stage.h"

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
    struct stage *t = open_stage(*state, SANDBOX_WORKSPACE_WRITE, true);
    prepare(t);
    assert_non_null(sandbox_session_sandbox(&t->run));
    check_transactions(*state, t);
    close_stage(t);
}

/* Everything is a copy, and all else is the same. Comes last: what was refused stays refused. */
static void test_no_overlay(void **state)
{
    struct scene *s = *state;
    assert_int_equal(refuse("overlay"), 0);
    struct stage *t = open_stage(s, SANDBOX_WORKSPACE_WRITE, true);
    struct json *tools = json_array(s->arena);
    json_push(s->arena, tools, json_object(s->arena));
    t->plan.settings.tools = tools;
    prepare(t);
    assert_int_equal(workspace_kind_of(t->run.workspace), WORKSPACE_OVERLAY);
    check_transactions(*state, t);
    assert_int_equal(workspace_kind_of(t->run.workspace), WORKSPACE_COPY);
    assert_int_equal(t->run.warning_count, 1);
    assert_false(sandbox_layers(sandbox_session_sandbox(&t->run)));
    close_stage(t);
}

static void test_without_a_sandbox(void **state)
{
    struct stage *t = open_stage(*state, SANDBOX_OFF, true);
    prepare(t);
    assert_null(sandbox_session_sandbox(&t->run));
    assert_null(sandbox_session_place(&t->run));
    check_transactions(*state, t);
    close_stage(t);
}

/* An adapter that starts no program has a sandbox if the task has tools, and only then. */
static void test_no_program(void **state)
{
    struct stage *t = open_stage(*state, SANDBOX_WORKSPACE_WRITE, false);
    prepare(t);
    assert_null(sandbox_session_sandbox(&t->run));
    close_stage(t);
}

static void test_no_program_but_tools(void **state)
{
    struct scene *s = *state;
    struct stage *t = open_stage(s, SANDBOX_WORKSPACE_WRITE, false);
    struct json *tools = json_array(s->arena);
    json_push(s->arena, tools, json_object(s->arena));
    t->plan.settings.tools = tools;
    prepare(t);
    assert_non_null(sandbox_session_sandbox(&t->run));
    int port;
    assert_int_equal(sandbox_session_listen(&t->run, NULL, &port, NULL),
                     0); /* it is cinch who asks */
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
