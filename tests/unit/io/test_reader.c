/* SPDX-License-Identifier: MIT
 *
 * Reading streams: chunks, one end, pauses, frees from callbacks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/loop.h"
#include "io/reader.h"
#include "io/timer.h"

struct probe {
    struct loop *loop;
    struct reader *reader;
    int in; /* write end */
    struct buf got;
    size_t largest;
    int chunks;
    int ends;
    bool failed;
    bool free_on_bytes;
    bool pause_on_bytes;
};

static void on_bytes(void *arg, struct str chunk)
{
    struct probe *p = arg;
    p->chunks++;
    p->largest = chunk.len > p->largest ? chunk.len : p->largest;
    buf_add(&p->got, chunk);
    if (p->free_on_bytes) {
        p->reader = reader_free(p->reader);
    }
    if (p->pause_on_bytes) {
        reader_pause(p->reader);
    }
}

static void on_end(void *arg, const struct err *why)
{
    struct probe *p = arg;
    p->ends++;
    p->failed = why != NULL;
    assert_true(reader_ended(p->reader));
}

static void probe_init(struct probe *p)
{
    *p = (struct probe) { .got = BUF_INIT(BUF_TEXT) };
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    (void)fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
    p->in = fds[1];
    assert_int_equal(loop_new(&p->loop, NULL), 0);
    struct reader_port port = { on_bytes, on_end, p };
    assert_int_equal(reader_new(p->loop, fds[0], &port, &p->reader, NULL), 0);
}

static void probe_done(struct probe *p)
{
    p->reader = reader_free(p->reader);
    p->loop = loop_free(p->loop);
    cleanup_fd(&p->in);
    buf_done(&p->got);
}

static void bytes_then_one_end(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p);
    assert_int_equal(write(p.in, "hello", 5), 5);
    cleanup_fd(&p.in);
    loop_run(p.loop);
    assert_string_equal(p.got.ptr, "hello");
    assert_int_equal(p.ends, 1);
    assert_false(p.failed);
    loop_run(p.loop);
    assert_int_equal(p.ends, 1);
    reader_resume(p.reader); /* harmless after the end */
    reader_pause(p.reader);
    loop_run(p.loop);
    probe_done(&p);
}

static void chunks_are_bounded(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p);
    static char block[900000];
    assert_int_equal(write(p.in, block, sizeof block), sizeof block);
    cleanup_fd(&p.in);
    loop_run(p.loop);
    assert_int_equal(p.got.len, sizeof block);
    assert_true(p.largest <= 256 << 10);
    assert_true(p.chunks >= 4);
    probe_done(&p);
}

static void resume(void *arg)
{
    struct probe *p = arg;
    assert_int_equal(p->ends, 0); /* the end is not seen while paused */
    p->pause_on_bytes = false;
    reader_resume(p->reader);
}

static void pause_and_resume(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p);
    struct timer *t;
    assert_int_equal(timer_new(p.loop, resume, &p, &t, NULL), 0);
    timer_arm(t, clock_now() + 30 * NSEC_PER_MS);
    p.pause_on_bytes = true;
    assert_int_equal(write(p.in, "abc", 3), 3);
    cleanup_fd(&p.in);
    loop_run(p.loop);
    assert_string_equal(p.got.ptr, "abc");
    assert_int_equal(p.ends, 1);
    (void)timer_free(t);
    probe_done(&p);
}

static void freed_from_its_callback(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p);
    p.free_on_bytes = true;
    assert_int_equal(write(p.in, "abc", 3), 3);
    loop_run(p.loop);
    assert_int_equal(p.chunks, 1);
    assert_int_equal(p.ends, 0);
    assert_null(p.reader);
    probe_done(&p);
}

static void refused_descriptor_stays_ours(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p);
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    struct reader *r = NULL;
    struct reader_port port = { on_bytes, on_end, &p };
    assert_int_equal(reader_new(p.loop, fd, &port, &r, NULL), -ERR_SYS);
    assert_null(r);
    assert_int_equal(close(fd), 0);
    probe_done(&p);
}

static void read_errors_are_told(void **state)
{
    (void)state;
    struct loop *l;
    struct probe p = { .got = BUF_INIT(BUF_TEXT) };
    assert_int_equal(loop_new(&l, NULL), 0);
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    /* The write end is no place to read from: EBADF. */
    struct reader_port port = { on_bytes, on_end, &p };
    assert_int_equal(reader_new(l, fds[1], &port, &p.reader, NULL), 0);
    (void)close(fds[0]);
    loop_run(l);
    assert_int_equal(p.ends, 1);
    assert_true(p.failed);
    p.reader = reader_free(p.reader);
    (void)loop_free(l);
    buf_done(&p.got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_then_one_end),
        cmocka_unit_test(chunks_are_bounded),
        cmocka_unit_test(pause_and_resume),
        cmocka_unit_test(freed_from_its_callback),
        cmocka_unit_test(refused_descriptor_stays_ours),
        cmocka_unit_test(read_errors_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
