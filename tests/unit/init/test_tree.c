/* SPDX-License-Identifier: MIT
 *
 * Process trees: found completely in both ways, killed completely, strangers and skipped ones left
 * alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/macro.h"
#include "init/process_tree.h"
#include "isolated.h"

/* Starts a test program in its own session and waits for its first output, if it says anything. */
static pid_t start(const char *program, const char *arg1, const char *arg2, bool wait_ready)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", getenv("CINCH_TEST_PROGRAMS"), program);
    char *argv[] = { path, (char *)(uintptr_t)arg1, (char *)(uintptr_t)arg2, NULL };
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    assert_int_equal(posix_spawn_file_actions_init(&fa), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&fa, fds[1], 1), 0);
    assert_int_equal(posix_spawnattr_init(&at), 0);
    assert_int_equal(posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSID), 0);
    pid_t pid = 0;
    assert_int_equal(posix_spawn(&pid, path, &fa, &at, argv, NULL), 0);
    (void)posix_spawnattr_destroy(&at);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)close(fds[1]);
    char byte;
    if (wait_ready) {
        assert_int_equal(read(fds[0], &byte, 1), 1);
    }
    (void)close(fds[0]);
    return pid;
}

static size_t kill_everything(const struct tree_filter *f)
{
    size_t rounds = 0;
    for (;;) {
        assert_int_equal(tree_kill_round(f, NULL, NULL), 0);
        rounds++;
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        siginfo_t si;
        if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD) {
            return rounds;
        }
        (void)nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    }
}

static void both_walks_see_the_same(void **state)
{
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t top = start("fork_tree", "3", "2", true); /* 1 + 2 + 4 + 8 */
    struct tree a = TREE_INIT;
    struct tree b = TREE_INIT;
    assert_int_equal(tree_walk(&a, NULL, NULL), 0);
    assert_int_equal(tree_walk_stat(&b, NULL, NULL), 0);
    assert_int_equal(a.n, 15);
    assert_int_equal(b.n, 15);
    assert_int_equal(a.procs[0].pid, top);
    for (size_t i = 0; i < a.n; i++) {
        bool found = false;
        for (size_t k = 0; k < b.n; k++) {
            found |= b.procs[k].pid == a.procs[i].pid;
        }
        assert_true(found);
        assert_true(a.procs[i].living);
        assert_string_equal(a.procs[i].comm, "fork_tree");
        /* parents come before their children */
        bool parent_seen = a.procs[i].ppid == getpid();
        for (size_t k = 0; k < i; k++) {
            parent_seen |= a.procs[k].pid == a.procs[i].ppid;
        }
        assert_true(parent_seen);
    }
    (void)kill_everything(NULL);
    assert_int_equal(tree_walk(&a, NULL, NULL), 0);
    assert_int_equal(a.n, 0);
    tree_done(&a);
    tree_done(&b);
}

static void daemons_stay_in_the_tree(void **state)
{
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t top = start("daemonize", NULL, NULL, true);
    assert_int_equal(waitpid(top, NULL, 0), top);
    while (waitpid(-1, NULL, WNOHANG) > 0) { /* the one between, if it is dead already */
    }
    struct tree t = TREE_INIT;
    assert_int_equal(tree_walk(&t, NULL, NULL), 0);
    assert_true(t.n >= 1);
    (void)kill_everything(NULL);
    tree_done(&t);
}

static void signal_reaches_all(void **state)
{
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    (void)start("fork_tree", "2", "3", true);
    assert_int_equal(tree_signal(SIGTERM, NULL, NULL), 13);
    int reaped = 0;
    int status;
    while (waitpid(-1, &status, 0) > 0) {
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        reaped++;
    }
    assert_int_equal(reaped, 13); /* all became our children when their parents died */
}

static bool skip_pid(void *arg, pid_t child)
{
    return child == *(pid_t *)arg;
}

static int dead_count;

static void count_dead(void *arg, pid_t pid, int status)
{
    (void)arg;
    (void)pid;
    (void)status;
    dead_count++;
}

static void skipped_children_are_left_alone(void **state)
{
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t spared = start("fork_tree", "1", "2", true);
    (void)start("fork_tree", "1", "2", true);
    struct tree_filter f = { skip_pid, &spared };
    size_t living = 0;
    assert_int_equal(tree_kill_round(&f, &living, NULL), 0);
    assert_int_equal(living, 3);
    int empty = 0;
    bool certain = true;
    while (empty == 0) {
        empty = tree_reap(&f, count_dead, &certain, NULL);
    }
    assert_int_equal(empty, 1);
    assert_int_equal(dead_count, 3);
    assert_false(certain); /* there is still the spared one */
    struct tree t = TREE_INIT;
    assert_int_equal(tree_walk(&t, NULL, NULL), 0);
    assert_int_equal(t.n, 3);
    assert_int_equal(t.procs[0].pid, spared);
    for (size_t i = 0; i < t.n; i++) {
        assert_null(strchr("TtZX", t.procs[i].state)); /* neither stopped nor dead */
    }
    tree_done(&t);
    (void)kill_everything(NULL);
}

/* A process in our own session must never be hit by way of its group: that group is ours. */
static void own_group_survives(void **state)
{
    (void)state;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/silent_sleep", getenv("CINCH_TEST_PROGRAMS"));
    char *argv[] = { path, NULL };
    pid_t pid = 0;
    assert_int_equal(posix_spawn(&pid, path, NULL, NULL, argv, NULL), 0);
    assert_int_equal(getpgid(pid), getpgid(0));
    (void)kill_everything(NULL);
    /* still here */
}

static void cpu_counts_the_living_and_the_dead(void **state)
{
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    struct tree_use before;
    struct tree_use during;
    struct tree_use after;
    assert_int_equal(tree_cpu(&before, NULL), 0);
    assert_int_equal(before.living, 0);
    assert_int_equal(before.memory, 0);
    (void)start("burn_cpu", "200", NULL, true);
    assert_int_equal(tree_cpu(&during, NULL), 0);
    assert_true(during.cpu_ns - before.cpu_ns >= 190 * 1000000);
    assert_in_range(during.memory, 0, 64 << 20); /* small ones may count as none */
    (void)kill_everything(NULL);
    assert_int_equal(tree_cpu(&after, NULL), 0);
    assert_true(after.cpu_ns - before.cpu_ns >= 190 * 1000000);
    assert_int_equal(after.living, 0);
    assert_int_equal(after.memory, 0);
}

static bool parse(const char *text, struct tree_proc *p)
{
    return tree_parse_stat(str_of(text), p);
}

static void stat_lines(void **state)
{
    (void)state;
    struct tree_proc p;
    static const char tail[] = " 10 20 30 0 -1 4194560 1 2 3 4 100 50 7 3 20 0 1 0 4242 5 6";
    char text[256];
    (void)snprintf(text, sizeof text, "77 (a b) S%s", tail);
    assert_true(parse(text, &p));
    assert_int_equal(p.pid, 77);
    assert_int_equal(p.ppid, 10);
    assert_int_equal(p.pgid, 20);
    assert_int_equal(p.sid, 30);
    assert_int_equal(p.cpu_ticks, 160);
    assert_int_equal(p.start, 4242);
    assert_string_equal(p.comm, "a b");
    assert_true(p.living);
    /* A name that tries to look like the rest of the line. */
    (void)snprintf(text, sizeof text, "77 (x) Z 1 1 1 (y) S%s", tail);
    assert_true(parse(text, &p));
    assert_int_equal(p.ppid, 10);
    assert_int_equal(p.state, 'S');
    (void)snprintf(text, sizeof text, "77 (dead) Z%s", tail);
    assert_true(parse(text, &p));
    assert_false(p.living);
    (void)snprintf(text, sizeof text,
                   "77 (threads) Z 10 20 30 0 -1 0 1 2 3 4 0 0 0 0 20 0 3 0 9 5 6");
    assert_true(parse(text, &p));
    assert_true(p.living);
    static const char *const bad[] = {
        "", "77", "77 (", "77 ()", "77 () S", "x (y) S 1 2 3", ") (", "77 (a) S 1 2 3 4"
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(parse(bad[i], &p));
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_walks_see_the_same),
        cmocka_unit_test(daemons_stay_in_the_tree),
        cmocka_unit_test(signal_reaches_all),
        cmocka_unit_test(skipped_children_are_left_alone),
        cmocka_unit_test(own_group_survives),
        cmocka_unit_test(cpu_counts_the_living_and_the_dead),
        cmocka_unit_test(stat_lines),
    };
    return isolated_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
