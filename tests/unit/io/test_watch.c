/* SPDX-License-Identifier: MIT
 *
 * Readiness: on, off, hang-ups, and frees in the middle of a batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "io/loop.h"
#include "io/watch.h"

struct probe {
    struct loop *loop;
    struct watch *watch;
    struct probe *other; /* freed from our callback */
    int fds[2];
    int calls;
    unsigned events;
};

static void on_ready(void *arg, unsigned events)
{
    struct probe *p = arg;
    p->calls++;
    p->events = events;
    if (p->other != NULL) {
        p->other->watch = watch_free(p->other->watch);
    }
    if (p->watch != NULL) {
        watch_set(p->watch, 0);
    }
}

static void probe_init(struct probe *p, struct loop *l, int end)
{
    *p = (struct probe) { .loop = l };
    assert_int_equal(pipe2(p->fds, O_CLOEXEC), 0);
    assert_int_equal(watch_new(l, p->fds[end], on_ready, p, &p->watch, NULL), 0);
}

static void probe_done(struct probe *p)
{
    p->watch = watch_free(p->watch);
    (void)close(p->fds[0]);
    (void)close(p->fds[1]);
}

static void readable_when_there_are_bytes(void **state)
{
    (void)state;
    struct loop *l;
    struct probe p;
    assert_int_equal(loop_new(&l, NULL), 0);
    probe_init(&p, l, 0);
    assert_int_equal(write(p.fds[1], "x", 1), 1);
    loop_run(l); /* nothing is watched yet: returns at once */
    assert_int_equal(p.calls, 0);
    watch_set(p.watch, WATCH_READ);
    loop_run(l);
    assert_int_equal(p.calls, 1);
    assert_int_equal(p.events, WATCH_READ);
    watch_set(p.watch, WATCH_READ); /* the byte is still there */
    loop_run(l);
    assert_int_equal(p.calls, 2);
    probe_done(&p);
    (void)loop_free(l);
}

static void hang_up_is_readable(void **state)
{
    (void)state;
    struct loop *l;
    struct probe p;
    assert_int_equal(loop_new(&l, NULL), 0);
    probe_init(&p, l, 0);
    (void)close(p.fds[1]);
    p.fds[1] = -1;
    watch_set(p.watch, WATCH_READ);
    loop_run(l);
    assert_int_equal(p.events, WATCH_READ);
    probe_done(&p);
    (void)loop_free(l);
}

static void lost_reader_is_writable(void **state)
{
    (void)state;
    struct loop *l;
    struct probe p;
    assert_int_equal(loop_new(&l, NULL), 0);
    probe_init(&p, l, 1);
    (void)close(p.fds[0]);
    p.fds[0] = -1;
    watch_set(p.watch, WATCH_WRITE);
    loop_run(l);
    assert_int_equal(p.events, WATCH_WRITE);
    assert_int_equal(write(p.fds[1], "x", 1), -1); /* SIGPIPE is ignored since loop_new() */
    assert_int_equal(errno, EPIPE);
    probe_done(&p);
    (void)loop_free(l);
}

static void freed_by_another_in_the_same_batch(void **state)
{
    (void)state;
    struct loop *l;
    struct probe a;
    struct probe b;
    assert_int_equal(loop_new(&l, NULL), 0);
    probe_init(&a, l, 0);
    probe_init(&b, l, 0);
    a.other = &b;
    b.other = &a;
    assert_int_equal(write(a.fds[1], "x", 1), 1);
    assert_int_equal(write(b.fds[1], "x", 1), 1);
    watch_set(a.watch, WATCH_READ);
    watch_set(b.watch, WATCH_READ);
    loop_run(l);
    assert_int_equal(a.calls + b.calls, 1); /* whoever was first silenced the other */
    probe_done(&a);
    probe_done(&b);
    (void)loop_free(l);
}

static void regular_files_are_refused(void **state)
{
    (void)state;
    struct loop *l;
    struct watch *w = NULL;
    struct err e;
    assert_int_equal(loop_new(&l, NULL), 0);
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(watch_new(l, fd, on_ready, NULL, &w, &e), -ERR_SYS);
    assert_int_equal(e.sys, EPERM);
    assert_null(w);
    assert_int_equal(close(fd), 0);
    (void)loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readable_when_there_are_bytes),
        cmocka_unit_test(hang_up_is_readable),
        cmocka_unit_test(lost_reader_is_writable),
        cmocka_unit_test(freed_by_another_in_the_same_batch),
        cmocka_unit_test(regular_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
