/* SPDX-License-Identifier: MIT
 *
 * Sockets both ways: order, backpressure, ends; listeners; dialling.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/dial.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/stream.h"

struct probe {
    struct loop *loop;
    struct stream *stream;
    int peer;
    struct buf got;
    int ends, drained, chunks;
    bool failed;
};

static void on_bytes(void *arg, struct str chunk)
{
    struct probe *p = arg;
    p->chunks++;
    buf_add(&p->got, chunk);
}

static void on_end(void *arg, const struct err *why)
{
    struct probe *p = arg;
    p->ends++;
    p->failed = why != NULL;
    loop_stop(p->loop);
}

static void read_some(void *arg)
{
    struct probe *p = arg;
    char bytes[65536];
    ssize_t n = recv(p->peer, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) {
        buf_add(&p->got, str_n(bytes, (size_t)n));
    }
    if (p->drained == 0) {
        loop_post(p->loop, read_some, p);
    }
}

static void on_drained(void *arg)
{
    struct probe *p = arg;
    p->drained++;
    loop_stop(p->loop);
}

static void probe_init(struct probe *p, size_t max)
{
    int fds[2];
    *p = (struct probe) { .got = BUF_INIT(BUF_TEXT) };
    assert_int_equal(loop_new(&p->loop, NULL), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    p->peer = fds[1];
    const struct stream_opts o = { .max = max, .port = { on_bytes, on_end, on_drained, p } };
    assert_int_equal(stream_new(p->loop, fds[0], &o, &p->stream, NULL), 0);
}

static void probe_done(struct probe *p)
{
    p->stream = stream_free(p->stream);
    p->loop = loop_free(p->loop);
    cleanup_fd(&p->peer);
    buf_done(&p->got);
}

static void test_bytes_come_and_go(void **state)
{
    struct probe p;
    char back[16] = "";
    probe_init(&p, 0);
    assert_int_equal(write(p.peer, "hello", 5), 5);
    assert_int_equal(shutdown(p.peer, SHUT_WR), 0);
    const struct str pieces[] = { STR("one "), STR(""), STR("two") };
    assert_int_equal(stream_write(p.stream, pieces, 3, NULL), 0);
    loop_run(p.loop);
    assert_int_equal(p.ends, 1);
    assert_false(p.failed);
    assert_true(str_eqc(buf_str(&p.got), "hello"));
    assert_false(stream_dead(p.stream)); /* half closed: we may still answer */
    assert_int_equal(stream_write(p.stream, pieces, 1, NULL), 0);
    stream_finish(p.stream);
    assert_int_equal(read(p.peer, back, sizeof back), 11);
    assert_string_equal(back, "one twoone ");
    assert_int_equal(read(p.peer, back, sizeof back), 0);
    probe_done(&p);
}

/* First four bytes to the loop's buffer, then the rest to a place of the owner. */
struct placed {
    struct loop *loop;
    char rest[16];
    size_t len;
    int chunks;
};

static char *on_room(void *arg, size_t *len)
{
    struct placed *p = arg;
    *len = p->chunks == 0 ? 4 : sizeof p->rest - p->len;
    return p->chunks == 0 ? NULL : p->rest + p->len;
}

static void on_placed(void *arg, struct str chunk)
{
    struct placed *p = arg;
    if (p->chunks++ == 0) {
        assert_true(str_eqc(chunk, "head"));
        return;
    }
    assert_ptr_equal(chunk.ptr, p->rest + p->len);
    p->len += chunk.len;
}

static void on_placed_end(void *arg, const struct err *why)
{
    loop_stop(((struct placed *)arg)->loop);
}

static void test_the_owner_says_where_to_read(void **state)
{
    int fds[2];
    struct stream *s;
    struct placed p = { 0 };
    const struct stream_opts o = { .port = { on_placed, on_placed_end, NULL, &p, on_room } };
    assert_int_equal(loop_new(&p.loop, NULL), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(stream_new(p.loop, fds[0], &o, &s, NULL), 0);
    assert_int_equal(write(fds[1], "headbody", 8), 8);
    assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
    loop_run(p.loop);
    assert_int_equal(p.chunks, 2);
    assert_memory_equal(p.rest, "body", 4);
    s = stream_free(s);
    p.loop = loop_free(p.loop);
    cleanup_fd(&fds[1]);
}

static void test_a_full_queue_refuses_and_drains_in_order(void **state)
{
    struct probe p;
    CLEANUP(buf) struct buf sent = BUF_INIT(BUF_TEXT);
    probe_init(&p, 4096);
    int rc = 0;
    for (int i = 0; rc == 0; i++) {
        char line[64];
        int n = snprintf(line, sizeof line, "line %d of what the peer does not read yet\n", i);
        rc = stream_write(p.stream, &(struct str) { line, (size_t)n }, 1, NULL);
        if (rc == 0) {
            buf_add(&sent, str_n(line, (size_t)n));
        }
    }
    assert_int_equal(rc, -ERR_LIMIT);
    assert_true(stream_queued(p.stream) >= 4096 && stream_queued(p.stream) < 4096 + 64);
    loop_post(p.loop, read_some, &p);
    loop_run(p.loop);
    assert_int_equal(p.drained, 1);
    assert_int_equal(stream_queued(p.stream), 0);
    read_some(&p);
    for (ssize_t n = 1; n > 0;) {
        char bytes[65536];
        n = recv(p.peer, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n > 0) {
            buf_add(&p.got, str_n(bytes, (size_t)n));
        }
    }
    assert_true(str_eq(buf_str(&p.got), buf_str(&sent)));
    probe_done(&p);
}

static void stop(void *arg)
{
    loop_stop(((struct probe *)arg)->loop);
}

/* What was not taken is offered again by its owner, when the stream says so. */
static void test_an_offer_is_taken_in_part_and_never_copied(void **state)
{
    struct probe p;
    static char bytes[8 << 20];
    size_t sent = 0;
    int rounds = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)(i * 31 >> 3);
    }
    probe_init(&p, 4096);
    buf_done(&p.got);
    buf_init(&p.got, sizeof bytes);
    while (sent < sizeof bytes) {
        const struct str pieces[] = { str_n(bytes + sent, (sizeof bytes - sent) / 2),
                                      str_n(bytes + sent + (sizeof bytes - sent) / 2,
                                            sizeof bytes - sent - (sizeof bytes - sent) / 2) };
        sent += stream_offer(p.stream, pieces, 2);
        assert_int_equal(stream_queued(p.stream), 0);
        if (sent < sizeof bytes) {
            rounds++;
            p.drained = 0;
            loop_post(p.loop, read_some, &p);
            loop_run(p.loop);
            assert_int_equal(p.drained, 1);
        }
    }
    assert_true(rounds > 1);
    while (p.got.len < sizeof bytes) {
        p.drained = 1;
        read_some(&p);
    }
    assert_memory_equal(p.got.ptr, bytes, sizeof bytes);
    (void)close(p.peer);
    p.peer = -1;
    loop_run(p.loop);
    const struct str piece = STR("x");
    assert_int_equal(stream_offer(p.stream, &piece, 1), 1); /* a dead one takes all */
    assert_true(stream_dead(p.stream));
    assert_int_equal(stream_offer(p.stream, &piece, 1), 1);
    probe_done(&p);
}

static void test_a_paused_stream_reads_nothing(void **state)
{
    struct probe p;
    probe_init(&p, 0);
    stream_pause(p.stream);
    assert_int_equal(write(p.peer, "x", 1), 1);
    loop_post(p.loop, stop, &p);
    loop_run(p.loop);
    assert_int_equal(p.chunks, 0);
    stream_resume(p.stream);
    assert_int_equal(shutdown(p.peer, SHUT_WR), 0);
    loop_run(p.loop);
    assert_int_equal(p.chunks, 1);
    assert_int_equal(p.ends, 1);
    probe_done(&p);
}

static void test_a_peer_that_left_is_told_once(void **state)
{
    struct probe p;
    probe_init(&p, 0);
    stream_pause(p.stream);
    cleanup_fd(&p.peer);
    const struct str piece = STR("nobody reads this");
    assert_int_equal(stream_write(p.stream, &piece, 1, NULL), 0);
    assert_int_equal(p.ends, 0); /* never from inside of our own call */
    loop_run(p.loop);
    assert_int_equal(p.ends, 1);
    assert_true(p.failed);
    assert_true(stream_dead(p.stream));
    assert_int_equal(stream_write(p.stream, &piece, 1, NULL), 0);
    assert_int_equal(stream_queued(p.stream), 0);
    probe_done(&p);
}

/* --- listeners and dialling --- */

struct meeting {
    struct loop *loop;
    struct dial *dial;
    struct resolve *resolve;
    struct address address;
    int server, client, both;
    bool failed;
    size_t n_found;
};

static void meet(struct meeting *m)
{
    if (++m->both == 2) {
        loop_stop(m->loop);
    }
}

static void on_accepted(void *arg, int fd)
{
    struct meeting *m = arg;
    m->server = fd;
    meet(m);
}

static void on_dialled(void *arg, int fd, const struct err *why)
{
    struct meeting *m = arg;
    m->client = fd;
    m->failed = why != NULL;
    meet(m);
    if (m->failed) {
        loop_stop(m->loop);
    }
}

static void on_resolved(void *arg, const struct address *found, size_t n, const struct err *why)
{
    struct meeting *m = arg;
    m->n_found = n;
    m->failed = why != NULL;
    if (n > 0) {
        m->address = found[0];
    }
    loop_stop(m->loop);
}

static void test_a_listener_meets_a_dialler(void **state)
{
    struct meeting m = { .server = -1, .client = -1 };
    struct listener *l;
    int fd, port;
    char text[ADDRESS_TEXT_LEN];
    assert_int_equal(loop_new(&m.loop, NULL), 0);
    assert_int_equal(listener_bind_tcp("127.0.0.1", 0, &fd, &port, NULL), 0);
    assert_int_equal(listener_new(m.loop, fd, on_accepted, &m, &l, NULL), 0);
    assert_int_equal(resolve_start(m.loop, "127.0.0.1", port, on_resolved, &m, &m.resolve), 0);
    loop_run(m.loop);
    assert_int_equal(m.n_found, 1);
    assert_string_equal(address_text(&m.address, text), "127.0.0.1");
    const struct dial_opts o = { .to = m.address, .fn = on_dialled, .arg = &m };
    assert_int_equal(dial_start(m.loop, &o, &m.dial, NULL), 0);
    loop_run(m.loop);
    assert_false(m.failed);
    assert_int_equal(write(m.client, "x", 1), 1);
    char c = 0;
    assert_int_equal(fcntl(m.server, F_SETFL, 0), 0);
    assert_int_equal(read(m.server, &c, 1), 1);
    assert_true((fcntl(m.server, F_GETFD) & FD_CLOEXEC) != 0);
    m.resolve = resolve_free(m.resolve);
    m.dial = dial_free(m.dial);
    l = listener_free(l);
    /* Nobody listens there now. */
    assert_int_equal(dial_start(m.loop, &o, &m.dial, NULL), 0);
    loop_run(m.loop);
    assert_true(m.failed);
    m.dial = dial_free(m.dial);
    m.loop = loop_free(m.loop);
    cleanup_fd(&m.server);
}

static void test_freeing_cancels_a_lookup(void **state)
{
    struct meeting m = { 0 };
    assert_int_equal(loop_new(&m.loop, NULL), 0);
    assert_int_equal(resolve_start(m.loop, "127.0.0.1", 1, on_resolved, &m, &m.resolve), 0);
    m.resolve = resolve_free(m.resolve);
    loop_run(m.loop);
    assert_int_equal(m.n_found, 0);
    m.loop = loop_free(m.loop);
}

static void test_a_unix_socket_is_private_and_replaced_when_stale(void **state)
{
    char dir[] = "/tmp/cinch-test-XXXXXX", path[64];
    struct stat st;
    struct err e;
    int fd, second;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/s", dir);
    assert_int_equal(listener_bind_unix(path, &fd, NULL), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(listener_bind_unix(path, &second, &e), -ERR_EXISTS);
    cleanup_fd(&fd);
    assert_int_equal(listener_bind_unix(path, &fd, NULL), 0);
    cleanup_fd(&fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(listener_bind_unix(path, &fd, &e), -ERR_EXISTS);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0);
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(listener_bind_unix(longer, &fd, &e), -ERR_CONFIG);
    assert_int_equal(listener_bind_tcp("localhost", 0, &fd, &second, &e), -ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_come_and_go),
        cmocka_unit_test(test_the_owner_says_where_to_read),
        cmocka_unit_test(test_a_full_queue_refuses_and_drains_in_order),
        cmocka_unit_test(test_an_offer_is_taken_in_part_and_never_copied),
        cmocka_unit_test(test_a_paused_stream_reads_nothing),
        cmocka_unit_test(test_a_peer_that_left_is_told_once),
        cmocka_unit_test(test_a_listener_meets_a_dialler),
        cmocka_unit_test(test_freeing_cancels_a_lookup),
        cmocka_unit_test(test_a_unix_socket_is_private_and_replaced_when_stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
