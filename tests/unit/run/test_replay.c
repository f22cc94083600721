/* SPDX-License-Identifier: MIT
 *
 * cinch is killed in the middle of a commit, at each call that changes a file, and the run is
 * recovered: everything of the transaction is there then, or nothing.
 */
#include "run/recover_run.h"

#include <signal.h>
#include <sys/wait.h>

#include "countdown.h"
#include "stage.h"

COUNTED_RENAMEAT
COUNTED_MKDIRAT
COUNTED_UNLINKAT
COUNTED_UTIMENSAT

static const char script[] = "rm gone; mkdir sub; echo made > sub/new; echo more >> kept";

/* Does the work and commits it; dies at the n-th call of the commit. */
static void live(struct scene *s, enum sandbox_mode mode, long n)
{
    struct err e = { 0 };
    struct stage *t = open_stage(s, mode, true);
    prepare(t);
    bool done = work(t, script) == 0;
    countdown = n;
    done = done && txn_commit(t->txn, NULL, &e) == 0;
    countdown = -1;
    _exit(done ? 0 : 1);
}

/* True: it was killed. */
static bool kill_at(struct scene *s, enum sandbox_mode mode, long n)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        live(s, mode, n);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static bool is_empty(struct scene *s, const char *name)
{
    return !there(s, name) || rmdir(at(s, name)) == 0;
}

/* 1: everything is there, 0: nothing. */
static int outcome(struct scene *s, const char *tree)
{
    bool made = there(s, arena_printf(s->arena, "%s/sub/new", tree));
    const char *kept = arena_printf(s->arena, "%s/kept", tree);
    bool more = there(s, kept) && strstr(text_of(s, kept), "more") != NULL;
    assert_int_equal(made, more);
    if (made) {
        assert_string_equal(text_of(s, arena_printf(s->arena, "%s/sub/new", tree)), "made\n");
    }
    return made;
}

static void check(struct scene *s, enum sandbox_mode mode, const char *tree)
{
    int count[2] = { 0, 0 };
    bool killed = true;
    for (long n = 1; killed; n++) {
        struct err e = { 0 };
        enum reason reason;
        killed = kill_at(s, mode, n);
        assert_ok(run_recover(at(s, "out"), &reason, &e), &e);
        assert_true(reason != REASON_NONE);
        count[outcome(s, tree)]++;
        assert_true(is_empty(s, "out/work/txn"));
        assert_int_equal(file_exists(AT_FDCWD, at(s, "out/home")), false);
        /* Once more finds nothing to do. */
        assert_ok(run_recover(at(s, "out"), &reason, &e), &e);
        assert_int_equal(reason, REASON_NONE);
        assert_ok(file_remove_tree(AT_FDCWD, at(s, "out"), &e), &e);
        assert_string_equal(text_of(s, "ws/kept"), "as it was\n");
        assert_string_equal(text_of(s, "ws/gone"), "to be removed\n");
    }
    assert_true(count[0] > 2 && count[1] > 2);
}

static void test_overlay(void **state)
{
    check(*state, SANDBOX_WORKSPACE_WRITE, "out/work/layer/upper");
}

static void test_copy(void **state)
{
    check(*state, SANDBOX_OFF, "out/work/tree");
}

int main(void)
{
    const struct CMUnitTest tests[] = { SCENE_TEST(test_overlay), SCENE_TEST(test_copy) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
