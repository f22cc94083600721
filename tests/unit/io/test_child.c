/* SPDX-License-Identifier: MIT
 *
 * Plain children: status, descriptors, signals, no zombies.
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

#include "io/child.h"
#include "io/loop.h"
#include "io/timer.h"
#include "isolated.h"

struct probe {
    struct loop *loop;
    struct child *child;
    int calls;
    int status;
};

static void on_exit_status(void *arg, int status)
{
    struct probe *p = arg;
    p->calls++;
    p->status = status;
    assert_true(child_exited(p->child));
}

static void start(struct probe *p, const int *fds, size_t n_fds, const char *program,
                  const char *arg)
{
    static char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", getenv("CINCH_TEST_PROGRAMS"), program);
    char *argv[] = { path, (char *)(uintptr_t)arg, NULL };
    struct child_opts o = {
        .path = path, .argv = argv, .fds = fds, .n_fds = n_fds, .on_exit = on_exit_status, .arg = p
    };
    assert_int_equal(child_start(p->loop, &o, &p->child, NULL), 0);
}

static void status_comes_once(void **state)
{
    (void)state;
    struct probe p = { 0 };
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    start(&p, NULL, 0, "exit_with", "42");
    assert_true(child_known(p.loop, child_pid(p.child)));
    pid_t pid = child_pid(p.child);
    loop_run(p.loop);
    assert_int_equal(p.calls, 1);
    assert_true(WIFEXITED(p.status));
    assert_int_equal(WEXITSTATUS(p.status), 42);
    assert_false(child_known(p.loop, pid));
    child_kill(p.child, SIGKILL); /* harmless now */
    p.child = child_free(p.child);
    (void)loop_free(p.loop);
}

static void killed_child(void **state)
{
    (void)state;
    struct probe p = { 0 };
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    start(&p, NULL, 0, "silent_sleep", NULL);
    child_kill(p.child, SIGKILL);
    loop_run(p.loop);
    assert_true(WIFSIGNALED(p.status));
    assert_int_equal(WTERMSIG(p.status), SIGKILL);
    p.child = child_free(p.child);
    (void)loop_free(p.loop);
}

static void descriptors_land_where_they_should(void **state)
{
    (void)state;
    struct probe p = { 0 };
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    int out[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    /* The worst case: the source of one is the target of another. */
    int low = fcntl(out[1], F_DUPFD_CLOEXEC, 3);
    assert_true(low >= 3);
    assert_int_equal(dup3(out[1], 0, O_CLOEXEC), 0);
    const int fds[] = { -1, 0, -1, low };
    start(&p, fds, 4, "print_env", NULL);
    (void)close(low);
    (void)close(out[1]);
    (void)close(0);
    loop_run(p.loop);
    char text[4096];
    size_t len = 0;
    ssize_t n;
    while ((n = read(out[0], text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
    assert_non_null(strstr(text, "fd 0 /dev/null"));
    assert_non_null(strstr(text, "fd 1 pipe:"));
    assert_non_null(strstr(text, "fd 2 /dev/null"));
    assert_non_null(strstr(text, "fd 3 pipe:"));
    assert_null(strstr(text, "fd 4"));
    assert_null(strstr(text, "env "));
    assert_non_null(strstr(text, "session 1"));
    (void)close(out[0]);
    p.child = child_free(p.child);
    (void)loop_free(p.loop);
}

static void stop(void *arg)
{
    loop_stop(arg);
}

static void freed_child_leaves_no_zombie(void **state)
{
    (void)state;
    struct probe p = { 0 };
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    start(&p, NULL, 0, "exit_with", "0");
    p.child = child_free(p.child);
    struct timer *t;
    assert_int_equal(timer_new(p.loop, stop, p.loop, &t, NULL), 0);
    for (int i = 0;
         i < 2000 && waitid(P_ALL, 0, &(siginfo_t) { 0 }, WEXITED | WNOHANG | WNOWAIT) == 0; i++) {
        timer_arm(t, clock_now() + 5 * NSEC_PER_MS);
        loop_run(p.loop);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(p.calls, 0);
    (void)timer_free(t);
    (void)loop_free(p.loop);
}

static void loop_can_go_before_its_children(void **state)
{
    (void)state;
    struct probe p = { 0 };
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    start(&p, NULL, 0, "silent_sleep", NULL);
    pid_t pid = child_pid(p.child);
    p.child = child_free(p.child);
    (void)loop_free(p.loop);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void missing_program(void **state)
{
    (void)state;
    struct probe p = { 0 };
    struct err e;
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    char name[] = "x";
    char *argv[] = { name, NULL };
    struct child_opts o = {
        .path = "/no/such/program", .argv = argv, .on_exit = on_exit_status, .arg = &p
    };
    assert_int_equal(child_start(p.loop, &o, &p.child, &e), -ERR_NOTFOUND);
    assert_non_null(strstr(e.msg, "/no/such/program"));
    assert_null(p.child);
    (void)loop_free(p.loop);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_comes_once),
        cmocka_unit_test(killed_child),
        cmocka_unit_test(descriptors_land_where_they_should),
        cmocka_unit_test(freed_child_leaves_no_zombie),
        cmocka_unit_test(loop_can_go_before_its_children),
        cmocka_unit_test(missing_program),
    };
    return isolated_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
