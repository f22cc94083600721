/* SPDX-License-Identifier: MIT
 *
 * How supervised programs end: in every order, willingly and not, and with nothing left over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "fixture.h"
#include "io/timer.h"
#include "isolated.h"

#define MS(n) ((n)*NSEC_PER_MS)

/* Unique, for the same tests may run elsewhere on the machine at the same time. */
static char mark[64];
static const char *const marked_env[] = { mark, NULL };

static void nap(long ms)
{
    (void)nanosleep(&(struct timespec) { .tv_nsec = ms * 1000000 }, NULL);
}

static void exit_code(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { 0 }, "exit_with", "7", NULL);
    assert_string_equal(f.order, "sxd");
    assert_true(f.result.exit_known);
    assert_false(f.result.signaled);
    assert_int_equal(f.result.value, 7);
    assert_int_equal(f.result.leaked, 0);
    assert_int_equal(f.result.error.code, ERR_OK);
    assert_false(f.result.stopped);
    assert_int_equal(f.pid, f.result.pid);
    fixture_done(&f);
}

static void exit_signal(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { 0 }, "exit_with", "signal", "11");
    assert_true(f.result.signaled);
    assert_int_equal(f.result.value, 11);
    fixture_done(&f);
}

static void exit_before_eof(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { 0 }, "hold_pipe", "150", NULL);
    assert_int_equal(f.result.value, 3);
    assert_non_null(strstr(f.order, "xod")); /* output after the exit, and before done */
    assert_string_equal(fixture_out(&f, PROC_STDOUT), "early\nlate\n");
    assert_int_equal(f.result.leaked, 0);
    fixture_done(&f);
}

static void eof_before_exit(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { 0 }, "close_stdout_early", "7", NULL);
    assert_string_equal(f.order, "soxd");
    assert_int_equal(f.result.value, 7);
    fixture_done(&f);
}

static void grandchild_holds_the_pipe(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct proc_opts o = { .drain = MS(200), .envp = marked_env };
    fixture_go(&f, o, "hold_pipe", "0", NULL);
    assert_int_equal(f.result.value, 3);
    assert_true(f.done_at - f.exit_at >= MS(200));
    assert_int_equal(f.result.leaked, 1);
    assert_int_equal(f.result.n_names, 1);
    assert_string_equal(f.result.names[0], "hold_pipe");
    assert_string_equal(fixture_out(&f, PROC_STDOUT), "early\n");
    assert_int_equal(fixture_marked(mark), 0);
    fixture_done(&f);
}

static void stop_on_ready(struct fixture *f)
{
    f->react = NULL;
    proc_stop(f->proc, MS(100));
}

static void ignores_term(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.react = stop_on_ready;
    fixture_go(&f, (struct proc_opts) { 0 }, "ignore_term", NULL, NULL);
    assert_true(f.result.signaled);
    assert_int_equal(f.result.value, SIGKILL);
    assert_true(f.result.stopped);
    assert_true(f.result.killed);
    fixture_done(&f);
}

static void stop_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    /* Still in the state "starting": the order of commands sees to it that the program gets it. */
    assert_int_equal(fixture_start(&f, (struct proc_opts) { 0 }, "silent_sleep", NULL, NULL), 0);
    proc_stop(f.proc, -1);
    loop_run(f.loop);
    assert_string_equal(f.order, "sxd");
    assert_int_equal(f.result.value, SIGTERM);
    assert_true(f.result.stopped);
    assert_false(f.result.killed);
    fixture_done(&f);
}

static void other_stop_signal(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct proc_opts o = { .stop_signal = SIGINT };
    assert_int_equal(fixture_start(&f, o, "silent_sleep", NULL, NULL), 0);
    proc_stop(f.proc, -1);
    loop_run(f.loop);
    assert_int_equal(f.result.value, SIGINT);
    fixture_done(&f);
}

static void kill_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(fixture_start(&f, (struct proc_opts) { 0 }, "silent_sleep", NULL, NULL), 0);
    proc_kill(f.proc);
    proc_kill(f.proc);
    proc_stop(f.proc, 0);
    loop_run(f.loop);
    assert_string_equal(f.order, "sxd");
    assert_int_equal(f.result.value, SIGKILL);
    assert_true(f.result.killed);
    fixture_done(&f);
}

static void deadline_stops_and_kills(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    nsec start = clock_now();
    struct proc_opts o = { .deadline = start + MS(150), .grace = MS(100) };
    fixture_go(&f, o, "ignore_term", NULL, NULL);
    assert_true(f.result.killed);
    assert_true(f.exit_at - start >= MS(250));
    fixture_done(&f);
}

static void kill_on_ready(struct fixture *f)
{
    f->react = NULL;
    proc_kill(f->proc);
}

static void whole_tree_is_killed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.react = kill_on_ready;
    fixture_go(&f, (struct proc_opts) { .envp = marked_env }, "fork_tree", "3", "3");
    assert_int_equal(f.result.value, SIGKILL);
    assert_int_equal(fixture_marked(mark), 0);
    fixture_done(&f);
}

static void whole_tree_gets_the_signal(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.react = stop_on_ready;
    fixture_go(&f, (struct proc_opts) { .envp = marked_env }, "fork_tree", "3", "3");
    assert_int_equal(f.result.value, SIGTERM);
    assert_int_equal(f.result.leaked, 0); /* told to end is not leaked */
    assert_int_equal(fixture_marked(mark), 0);
    fixture_done(&f);
}

static void stopped_processes_hear_the_signal(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(fixture_start(&f, (struct proc_opts) { 0 }, "silent_sleep", NULL, NULL), 0);
    proc_signal(f.proc, SIGSTOP);
    proc_stop(f.proc, 30 * NSEC_PER_SEC);
    loop_run(f.loop);
    assert_int_equal(f.result.value, SIGTERM);
    fixture_done(&f);
}

static void daemon_is_gone(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { .envp = marked_env }, "daemonize", NULL, NULL);
    assert_false(f.result.signaled);
    assert_int_equal(f.result.value, 0);
    assert_int_equal(f.result.leaked, 1);
    assert_string_equal(f.result.names[0], "daemonize");
    long daemon = strtol(fixture_out(&f, PROC_STDOUT), NULL, 10);
    assert_true(daemon > 1);
    assert_int_equal(kill((pid_t)daemon, 0), -1);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(fixture_marked(mark), 0);
    fixture_done(&f);
}

static void daemon_with_pipes_is_gone(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct proc_opts o = { .envp = marked_env, .drain = MS(100) };
    fixture_go(&f, o, "daemonize", "hold", NULL);
    assert_int_equal(f.result.leaked, 1);
    assert_int_equal(fixture_marked(mark), 0);
    fixture_done(&f);
}

static void two_at_once(void **state)
{
    (void)state;
    struct fixture a;
    struct fixture b;
    fixture_init(&a);
    memset(&b, 0, sizeof b);
    b.loop = a.loop;
    b.keep = true;
    b.out[0].max = BUF_TEXT;
    b.out[1].max = BUF_TEXT;
    assert_int_equal(fixture_start(&a, (struct proc_opts) { 0 }, "close_stdout_early", "5", NULL),
                     0);
    assert_int_equal(fixture_start(&b, (struct proc_opts) { 0 }, "hold_pipe", "50", NULL), 0);
    while (a.proc != NULL || b.proc != NULL) {
        loop_run(a.loop);
    }
    assert_int_equal(a.result.value, 5);
    assert_int_equal(b.result.value, 3);
    assert_string_equal(fixture_out(&a, PROC_STDOUT), "bye\n");
    assert_string_equal(fixture_out(&b, PROC_STDOUT), "early\nlate\n");
    buf_done(&b.out[0]);
    buf_done(&b.out[1]);
    fixture_done(&a);
}

static void freed_early(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(
        fixture_start(&f, (struct proc_opts) { .envp = marked_env }, "ignore_term", NULL, NULL), 0);
    f.react = NULL;
    while (f.bytes[0] == 0) {
        struct timer *t;
        assert_int_equal(timer_new(f.loop, (void (*)(void *))loop_stop, f.loop, &t, NULL), 0);
        timer_arm(t, clock_now() + MS(5));
        loop_run(f.loop);
        (void)timer_free(t);
    }
    assert_int_equal(fixture_marked(mark), 1);
    f.proc = proc_free(f.proc);
    for (int i = 0; i < 500 && fixture_marked(mark) > 0; i++) {
        nap(10);
    }
    assert_int_equal(fixture_marked(mark), 0);
    assert_string_equal(f.order, "so"); /* silence after proc_free() */
    fixture_done(&f);
    while (waitpid(-1, NULL, 0) > 0) {
    }
}

static void free_on_output(struct fixture *f)
{
    f->proc = proc_free(f->proc);
    loop_stop(f->loop);
}

static void freed_in_a_callback(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    f.react = free_on_output;
    fixture_go(&f, (struct proc_opts) { 0 }, "flood", "100000000", NULL);
    assert_null(strchr(f.order, 'd'));
    fixture_done(&f);
    while (waitpid(-1, NULL, 0) > 0) { /* cinch-init goes by itself */
    }
}

static void usage_is_plausible(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    fixture_go(&f, (struct proc_opts) { 0 }, "burn_cpu", "200", "child");
    int64_t cpu = f.result.usage.user_ns + f.result.usage.system_ns;
    assert_true(cpu >= MS(200));
    assert_true(cpu < MS(20000));
    assert_in_range(f.result.usage.max_rss_kib, 100, 1000000);
    fixture_done(&f);
}

struct cpu_watch {
    struct fixture f;
    nsec first;
    int answers;
};

static void ask_cpu(struct fixture *f)
{
    proc_refresh_cpu(f->proc);
    proc_refresh_cpu(f->proc); /* one question at a time */
}

static void on_cpu(void *arg, nsec cpu)
{
    struct cpu_watch *w = CONTAINER_OF(arg, struct cpu_watch, f);
    w->first = cpu;
    w->answers++;
    assert_int_equal(proc_cpu(w->f.proc), cpu);
    proc_close_stdin(w->f.proc);
}

static void cpu_of_the_tree(void **state)
{
    (void)state;
    struct cpu_watch w = { .answers = 0 };
    fixture_init(&w.f);
    w.f.react = ask_cpu;
    struct proc_opts o = { .stdin_mode = PROC_STDIN_PIPE, .port = { .on_cpu = on_cpu } };
    fixture_go(&w.f, o, "burn_cpu", "300", "child"); /* the burner is dead and reaped when we ask */
    assert_int_equal(w.answers, 1);
    assert_true(w.first >= MS(280));
    fixture_done(&w.f);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_code),
        cmocka_unit_test(exit_signal),
        cmocka_unit_test(exit_before_eof),
        cmocka_unit_test(eof_before_exit),
        cmocka_unit_test(grandchild_holds_the_pipe),
        cmocka_unit_test(ignores_term),
        cmocka_unit_test(stop_at_once),
        cmocka_unit_test(other_stop_signal),
        cmocka_unit_test(kill_at_once),
        cmocka_unit_test(deadline_stops_and_kills),
        cmocka_unit_test(whole_tree_is_killed),
        cmocka_unit_test(whole_tree_gets_the_signal),
        cmocka_unit_test(stopped_processes_hear_the_signal),
        cmocka_unit_test(daemon_is_gone),
        cmocka_unit_test(daemon_with_pipes_is_gone),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(freed_early),
        cmocka_unit_test(freed_in_a_callback),
        cmocka_unit_test(usage_is_plausible),
        cmocka_unit_test(cpu_of_the_tree),
    };
    (void)snprintf(mark, sizeof mark, "CINCH_TEST_MARK=ends-%d", (int)getpid());
    return isolated_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
