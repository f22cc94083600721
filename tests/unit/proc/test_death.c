/* SPDX-License-Identifier: MIT
 *
 * Nothing survives: neither the violent death of the supervisor nor that of cinch-init, nor a storm
 * of forking processes, leaves a process behind.
 *
 * These tests make their own process a subreaper. Whatever a dead supervisor fails to take along
 * becomes a child of the test and is seen by waitpid(); a marker in the environment shows what
 * would have got away even from that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "fixture.h"
#include "init/process_tree.h"
#include "io/timer.h"
#include "isolated.h"

#define MS(n) ((n)*NSEC_PER_MS)

static char mark[64];
static char *mark_env[4];

static void make_mark(void)
{
    (void)snprintf(mark, sizeof mark, "CINCH_TEST_MARK=death-%d", (int)getpid());
    static char init[4096];
    (void)snprintf(init, sizeof init, "CINCH_INIT=%s", getenv("CINCH_INIT"));
    mark_env[0] = mark;
    mark_env[1] = init;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

static void nap_us(long us)
{
    (void)nanosleep(&(struct timespec) { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 },
                    NULL);
}

/* Reaps until no child is left; false when that takes more than 15 s. */
static bool all_gone(void)
{
    nsec end = clock_now() + 15 * NSEC_PER_SEC;
    while (clock_now() < end) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno == ECHILD) {
            return true;
        }
        if (pid == 0) {
            nap_us(500);
        }
    }
    return false;
}

static pid_t spawn_supervisor(const char *program, const char *arg1, const char *arg2)
{
    static char supervise[4096];
    static char path[4096];
    const char *dir = getenv("CINCH_TEST_PROGRAMS");
    (void)snprintf(supervise, sizeof supervise, "%s/supervise", dir);
    (void)snprintf(path, sizeof path, "%s/%s", dir, program);
    char *argv[] = { supervise, path, (char *)(uintptr_t)arg1, (char *)(uintptr_t)arg2, NULL };
    posix_spawn_file_actions_t fa;
    assert_int_equal(posix_spawn_file_actions_init(&fa), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0), 0);
    pid_t pid = 0;
    assert_int_equal(posix_spawn(&pid, supervise, &fa, NULL, argv, mark_env), 0);
    (void)posix_spawn_file_actions_destroy(&fa);
    return pid;
}

/* Kills the supervisor after each of many delays, so that every moment of a start is met. */
static void kill_supervisor(const char *program, const char *arg1, const char *arg2, int rounds,
                            long step_us)
{
    make_mark();
    for (int i = 0; i < rounds; i++) {
        pid_t pid = spawn_supervisor(program, arg1, arg2);
        nap_us(i * step_us);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_true(all_gone());
        assert_int_equal(fixture_marked(mark), 0);
    }
}

static void supervisor_killed_during_start(void **state)
{
    (void)state;
    kill_supervisor("silent_sleep", NULL, NULL, 60, 100);
}

static void supervisor_killed_over_a_tree(void **state)
{
    (void)state;
    kill_supervisor("fork_tree", "3", "3", 20, 1500);
}

static void supervisor_killed_over_a_daemon(void **state)
{
    (void)state;
    kill_supervisor("daemonize", "hold", NULL, 20, 1000);
}

static void supervisor_killed_over_a_storm(void **state)
{
    (void)state;
    kill_supervisor("spawn_storm", "4", "setsid", 4, 20000);
}

static void supervisor_works_at_all(void **state)
{
    (void)state;
    make_mark();
    pid_t pid = spawn_supervisor("exit_with", "7", NULL);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_true(all_gone());
}

static void kill_init(struct fixture *f)
{
    f->react = NULL;
    assert_int_equal(kill(proc_init_pid(f->proc), SIGKILL), 0);
}

/* The supervisor is this process. */
static void init_killed_over(const char *program, const char *arg1, const char *arg2)
{
    make_mark();
    struct fixture f;
    fixture_init(&f);
    f.react = kill_init;
    const char *const env[] = { mark, NULL };
    fixture_go(&f, (struct proc_opts) { .envp = env }, program, arg1, arg2);
    assert_non_null(strstr(f.order, "xd"));
    assert_true(f.result.exit_known);
    assert_true(f.result.signaled);
    assert_int_equal(f.result.value, SIGKILL);
    assert_int_equal(f.result.stuck, 0);
    assert_int_equal(f.result.error.code, ERR_SYS);
    assert_non_null(strstr(f.result.error.msg, "cinch-init ended unexpectedly (signal 9)"));
    assert_int_equal(fixture_marked(mark), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie either */
    assert_int_equal(errno, ECHILD);
    fixture_done(&f);
}

static void init_killed(void **state)
{
    (void)state;
    init_killed_over("ignore_term", NULL, NULL);
}

static void init_killed_over_a_tree(void **state)
{
    (void)state;
    init_killed_over("fork_tree", "3", "3");
}

static void init_killed_over_a_storm(void **state)
{
    (void)state;
    init_killed_over("spawn_storm", "3", "setsid");
}

static pid_t spawn_sleep(bool own_session)
{
    char *argv[] = { (char *)(uintptr_t) "sleep", (char *)(uintptr_t) "1000", NULL };
    pid_t pid = 0;
    posix_spawnattr_t at;
    assert_int_equal(posix_spawnattr_init(&at), 0);
    short flags = own_session ? POSIX_SPAWN_SETSID : 0;
    assert_int_equal(posix_spawnattr_setflags(&at, flags), 0);
    assert_int_equal(posix_spawn(&pid, "/bin/sleep", NULL, &at, argv, NULL), 0);
    (void)posix_spawnattr_destroy(&at);
    return pid;
}

static void assert_runs_then_end(pid_t pid)
{
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The other program on the same loop, a child of our session, and a child that was here before (in
 * a session of its own, as an orphan would be) are not killed. */
static void init_killed_beside_others(void **state)
{
    (void)state;
    struct fixture a;
    struct fixture b;
    pid_t older = spawn_sleep(true);
    fixture_init(&a);
    fixture_init(&b);
    (void)loop_free(b.loop);
    b.loop = a.loop;
    pid_t own = spawn_sleep(false);
    a.react = kill_init;
    assert_int_equal(fixture_start(&a, (struct proc_opts) { 0 }, "fork_tree", "2", "2"), 0);
    assert_int_equal(fixture_start(&b, (struct proc_opts) { 0 }, "silent_sleep", "0.5", NULL), 0);
    while (a.proc != NULL || b.proc != NULL) {
        loop_run(a.loop);
    }
    assert_int_equal(a.result.value, SIGKILL);
    assert_false(b.result.signaled);
    assert_int_equal(b.result.value, 0);
    assert_runs_then_end(own);
    assert_runs_then_end(older);
    buf_done(&b.out[0]);
    buf_done(&b.out[1]);
    b.orphans = orphans_free(b.orphans);
    fixture_done(&a);
}

/* Without struct orphans, as in a library, no child of the host is killed, and the host does not
 * become a subreaper. */
static void init_killed_in_a_library(void **state)
{
    (void)state;
    struct fixture f;
    int subreaper = -1;
    fixture_init(&f);
    f.orphans = orphans_free(f.orphans);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    pid_t host_child = spawn_sleep(true);
    f.react = kill_init;
    fixture_go(&f, (struct proc_opts) { 0 }, "ignore_term", NULL, NULL);
    assert_true(f.result.abandoned);
    assert_int_equal(f.result.stuck, 0);
    assert_non_null(strstr(f.result.error.msg, "cinch-init ended unexpectedly (signal 9)"));
    assert_int_equal(prctl(PR_GET_CHILD_SUBREAPER, &subreaper), 0);
    assert_int_equal(subreaper, 0);
    assert_runs_then_end(host_child);
    fixture_done(&f);
}

static void init_killed_during_start(void **state)
{
    (void)state;
    make_mark();
    const char *const env[] = { mark, NULL };
    for (int i = 0; i < 40; i++) {
        struct fixture f;
        fixture_init(&f);
        struct proc_opts o = { .envp = env };
        assert_int_equal(fixture_start(&f, o, "ignore_term", NULL, NULL), 0);
        nap_us(i * 50);
        assert_int_equal(kill(proc_init_pid(f.proc), SIGKILL), 0);
        loop_run(f.loop);
        /* Whether it got as far as starting the program or not: the report is complete. */
        assert_non_null(strchr(f.order, 'd'));
        assert_true(strchr(f.order, 's') != NULL ? strchr(f.order, 'x') != NULL
                                                 : strchr(f.order, 'f') != NULL);
        assert_int_equal(fixture_marked(mark), 0);
        fixture_done(&f);
    }
}

static void stop_init(struct fixture *f)
{
    f->react = NULL;
    assert_int_equal(kill(proc_init_pid(f->proc), SIGSTOP), 0);
    proc_kill(f->proc);
}

static void init_stopped(void **state)
{
    (void)state;
    make_mark();
    struct fixture f;
    fixture_init(&f);
    f.react = stop_init;
    const char *const env[] = { mark, NULL };
    fixture_go(&f, (struct proc_opts) { .envp = env, .patience = MS(200) }, "fork_tree", "2", "2");
    assert_int_equal(f.result.value, SIGKILL);
    assert_int_equal(fixture_marked(mark), 0);
    fixture_done(&f);
}

static void init_ignores_signals(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(fixture_start(&f, (struct proc_opts) { 0 }, "silent_sleep", "0.3", NULL), 0);
    nap_us(50000); /* it has set itself up by then; before, it has the default dispositions */
    static const int signals[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                   SIGUSR1, SIGPIPE, SIGALRM, SIGTSTP };
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        assert_int_equal(kill(proc_init_pid(f.proc), signals[i]), 0);
    }
    loop_run(f.loop);
    assert_false(f.result.signaled);
    assert_int_equal(f.result.value, 0);
    assert_int_equal(f.result.error.code, ERR_OK);
    fixture_done(&f);
}

static void end_on_ready(struct fixture *f)
{
    f->react = NULL;
    proc_kill(f->proc);
}

static void storm_is_killed(const char *how)
{
    make_mark();
    struct fixture f;
    fixture_init(&f);
    f.react = end_on_ready;
    const char *const env[] = { mark, NULL };
    nsec start = clock_now();
    fixture_go(&f, (struct proc_opts) { .envp = env }, "spawn_storm", "6", how);
    assert_int_equal(f.result.value, SIGKILL);
    assert_int_equal(f.result.stuck, 0);
    assert_int_equal(fixture_marked(mark), 0);
    (void)fprintf(stderr, "storm over after %lld ms\n",
                  (long long)((clock_now() - start) / NSEC_PER_MS));
    fixture_done(&f);
}

static void fork_storm(void **state)
{
    (void)state;
    storm_is_killed(NULL);
}

static void fork_storm_with_sessions(void **state)
{
    (void)state;
    storm_is_killed("setsid");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(supervisor_works_at_all),
        cmocka_unit_test(supervisor_killed_during_start),
        cmocka_unit_test(supervisor_killed_over_a_tree),
        cmocka_unit_test(supervisor_killed_over_a_daemon),
        cmocka_unit_test(supervisor_killed_over_a_storm),
        cmocka_unit_test(init_killed),
        cmocka_unit_test(init_killed_over_a_tree),
        cmocka_unit_test(init_killed_over_a_storm),
        cmocka_unit_test(init_killed_beside_others),
        cmocka_unit_test(init_killed_in_a_library),
        cmocka_unit_test(init_killed_during_start),
        cmocka_unit_test(init_stopped),
        cmocka_unit_test(init_ignores_signals),
        cmocka_unit_test(fork_storm),
        cmocka_unit_test(fork_storm_with_sessions),
    };
    return isolated_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
