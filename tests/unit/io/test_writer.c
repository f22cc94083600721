/* SPDX-License-Identifier: MIT
 *
 * Writing streams: queue, bounds, ordinary and early ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "io/loop.h"
#include "io/reader.h"
#include "io/writer.h"

struct probe {
    struct loop *loop;
    struct writer *writer;
    int out; /* read end */
    int drained;
    int ends;
    bool failed;
    bool free_on_drained;
};

static char block[1 << 20];

static void on_drained(void *arg)
{
    struct probe *p = arg;
    p->drained++;
    if (p->free_on_drained) {
        p->writer = writer_free(p->writer);
    }
    loop_stop(p->loop);
}

static void on_end(void *arg, const struct err *why)
{
    struct probe *p = arg;
    p->ends++;
    p->failed = why != NULL;
    loop_stop(p->loop);
}

static void probe_init(struct probe *p, size_t max)
{
    *p = (struct probe) { 0 };
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    (void)fcntl(fds[0], F_SETPIPE_SZ, 65536);
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    p->out = fds[0];
    assert_int_equal(loop_new(&p->loop, NULL), 0);
    struct writer_opts o = { .max = max, .port = { on_drained, on_end, p } };
    assert_int_equal(writer_new(p->loop, fds[1], &o, &p->writer, NULL), 0);
}

static void probe_done(struct probe *p)
{
    p->writer = writer_free(p->writer);
    p->loop = loop_free(p->loop);
    cleanup_fd(&p->out);
}

static size_t read_all(int fd)
{
    static char got[1 << 20];
    ssize_t n = read(fd, got, sizeof got);
    return n > 0 ? (size_t)n : 0;
}

static void small_writes_go_straight(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p, 0);
    assert_int_equal(writer_write(p.writer, STR("abc"), NULL), 0);
    assert_int_equal(writer_queued(p.writer), 0);
    assert_int_equal(read_all(p.out), 3);
    writer_close(p.writer);
    assert_int_equal(p.ends, 0); /* told from the loop, not from here */
    loop_run(p.loop);
    assert_int_equal(p.ends, 1);
    assert_true(writer_ended(p.writer));
    assert_int_equal(p.drained, 0);
    char byte;
    assert_int_equal(read(p.out, &byte, 1), 0); /* end of file */
    probe_done(&p);
}

static void count_bytes(void *arg, struct str chunk)
{
    *(size_t *)arg += chunk.len;
}

static void reader_end(void *arg, const struct err *why)
{
    (void)arg;
    assert_null(why);
}

static void rest_is_queued_and_drained(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p, 300000);
    assert_int_equal(writer_write(p.writer, str_n(block, 200000), NULL), 0);
    assert_int_equal(writer_queued(p.writer), 200000 - 65536);
    assert_int_equal(writer_write(p.writer, str_n(block, 100000), NULL), 0);
    writer_close(p.writer);
    size_t got = 0;
    struct reader *r;
    struct reader_port port = { count_bytes, reader_end, &got };
    assert_int_equal(reader_new(p.loop, TAKE_FD(p.out), &port, &r, NULL), 0);
    while (!reader_ended(r)) {
        loop_run(p.loop);
    }
    assert_int_equal(got, 300000);
    assert_int_equal(p.ends, 1);
    assert_int_equal(writer_lost(p.writer), 0);
    (void)reader_free(r);
    probe_done(&p);
}

static void limit_is_all_or_nothing(void **state)
{
    (void)state;
    struct probe p;
    struct err e;
    probe_init(&p, 100000);
    assert_int_equal(writer_write(p.writer, str_n(block, 100001), &e), -ERR_LIMIT);
    assert_int_equal(read_all(p.out), 0);
    assert_int_equal(writer_write(p.writer, str_n(block, 100000), &e), 0);
    size_t queued = writer_queued(p.writer);
    assert_int_equal(writer_write(p.writer, str_n(block, 90000), &e), -ERR_LIMIT);
    assert_int_equal(writer_queued(p.writer), queued);
    assert_int_equal(read_all(p.out), 65536);
    loop_run(p.loop);
    assert_int_equal(p.drained, 1);
    assert_int_equal(writer_queued(p.writer), 0);
    probe_done(&p);
}

static void reader_that_goes_away_is_an_ordinary_end(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p, 0);
    cleanup_fd(&p.out);
    assert_int_equal(writer_write(p.writer, STR("abc"), NULL), 0);
    loop_run(p.loop);
    assert_int_equal(p.ends, 1);
    assert_false(p.failed);
    assert_int_equal(writer_lost(p.writer), 3);
    assert_int_equal(writer_write(p.writer, STR("de"), NULL), 0);
    assert_int_equal(writer_lost(p.writer), 5);
    writer_close(p.writer);
    loop_run(p.loop);
    assert_int_equal(p.ends, 1);
    probe_done(&p);
}

static void reader_that_goes_away_while_we_wait(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p, 0);
    assert_int_equal(writer_write(p.writer, str_n(block, 200000), NULL), 0);
    cleanup_fd(&p.out);
    loop_run(p.loop);
    assert_int_equal(p.ends, 1);
    assert_false(p.failed);
    assert_int_equal(writer_lost(p.writer), 200000 - 65536);
    probe_done(&p);
}

static void freed_from_its_callback(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p, 0);
    p.free_on_drained = true;
    assert_int_equal(writer_write(p.writer, str_n(block, 100000), NULL), 0);
    assert_int_equal(read_all(p.out), 65536);
    loop_run(p.loop);
    assert_int_equal(p.drained, 1);
    assert_null(p.writer);
    loop_run(p.loop);
    assert_int_equal(p.ends, 0);
    probe_done(&p);
}

static void freed_before_its_end_is_told(void **state)
{
    (void)state;
    struct probe p;
    probe_init(&p, 0);
    writer_close(p.writer);
    p.writer = writer_free(p.writer);
    loop_run(p.loop);
    assert_int_equal(p.ends, 0);
    probe_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_writes_go_straight),
        cmocka_unit_test(rest_is_queued_and_drained),
        cmocka_unit_test(limit_is_all_or_nothing),
        cmocka_unit_test(reader_that_goes_away_is_an_ordinary_end),
        cmocka_unit_test(reader_that_goes_away_while_we_wait),
        cmocka_unit_test(freed_from_its_callback),
        cmocka_unit_test(freed_before_its_end_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
