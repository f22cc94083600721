/* SPDX-License-Identifier: MIT
 *
 * Sockets. Bytes go straight to the socket while it takes them; only the rest is copied.
 */
#include "io/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "io/loop_priv.h"
#include "io/watch.h"

#define QUEUE_DEFAULT ((size_t)1 << 20)

struct stream {
    struct loop *loop;
    struct stream_port port;
    struct watch *watch;
    int fd; /* -1 once dead */
    struct buf queue;
    size_t sent; /* of the queue */
    size_t max;
    bool paused;
    bool read_ended; /* no more to read: end of file, or dead */
    bool end_told;
    bool finishing;
    bool refused; /* a part of an offer: the owner waits until the socket takes more */
    bool freed;
    struct err why;
};

static void update_watch(struct stream *s)
{
    if (s->watch != NULL) {
        watch_set(s->watch, (s->paused || s->read_ended ? 0u : (unsigned)WATCH_READ) |
                                (s->refused || stream_queued(s) > 0 ? (unsigned)WATCH_WRITE : 0u));
    }
}

static void tell_end(void *arg)
{
    struct stream *s = arg;
    if (!s->freed && !s->end_told) {
        s->end_told = true;
        s->port.on_end(s->port.arg, &s->why);
    }
}

/* The connection is broken. Told from the loop, never from inside of a call of the owner. */
static void die(struct stream *s, const char *what)
{
    (void)ERR_SYS(&s->why, "%s", what);
    s->watch = watch_free(s->watch);
    cleanup_fd(&s->fd);
    s->read_ended = true;
    s->refused = false;
    s->sent = 0;
    buf_done(&s->queue);
    loop_post(s->loop, tell_end, s);
}

/* True: the owner's room was filled, there may be more. */
static bool read_some(struct stream *s)
{
    size_t len = LOOP_SCRATCH;
    char *to = s->port.on_room == NULL ? NULL : s->port.on_room(s->port.arg, &len);
    if (to == NULL) {
        to = loop_scratch(s->loop);
        len = len < LOOP_SCRATCH ? len : LOOP_SCRATCH;
    }
    ssize_t n = read(s->fd, to, len);
    if (n > 0) {
        s->port.on_bytes(s->port.arg, str_n(to, (size_t)n));
        return (size_t)n == len && s->port.on_room != NULL;
    }
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            die(s, "read");
        }
        return false;
    }
    s->read_ended = true;
    update_watch(s);
    if (!s->end_told) {
        s->end_told = true;
        s->port.on_end(s->port.arg, NULL);
    }
    return false;
}

static bool reads(const struct stream *s)
{
    return !s->freed && !s->paused && !s->read_ended;
}

static void on_readable(struct stream *s)
{
    if (reads(s) && read_some(s) && reads(s)) {
        (void)read_some(s);
    }
}

/* Bytes taken, or -1 when the stream died of it. */
static ssize_t push(struct stream *s, const struct iovec *iov, size_t n)
{
    struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
    for (;;) {
        ssize_t taken = sendmsg(s->fd, &m, MSG_NOSIGNAL);
        if (taken >= 0) {
            return taken;
        }
        if (errno == EAGAIN) {
            return 0;
        }
        if (errno != EINTR) {
            die(s, "write");
            return -1;
        }
    }
}

static void finish_now(struct stream *s)
{
    if (s->fd >= 0) {
        (void)shutdown(s->fd, SHUT_WR);
    }
}

static void on_writable(struct stream *s)
{
    if (stream_queued(s) == 0) {
        s->refused = false;
        update_watch(s);
        s->port.on_drained(s->port.arg);
        return;
    }
    struct iovec iov = { s->queue.ptr + s->sent, s->queue.len - s->sent };
    ssize_t n = push(s, &iov, 1);
    if (n < 0) {
        return;
    }
    s->sent += (size_t)n;
    if (s->sent < s->queue.len) {
        return;
    }
    buf_done(&s->queue); /* a burst must not keep its memory for the life of an idle connection */
    s->sent = 0;
    s->refused = false;
    update_watch(s);
    if (s->finishing) {
        finish_now(s);
    } else if (s->port.on_drained != NULL) {
        s->port.on_drained(s->port.arg);
    }
}

static void on_ready(void *arg, unsigned events)
{
    struct stream *s = arg;
    if ((events & WATCH_WRITE) != 0 && (s->refused || stream_queued(s) > 0)) {
        on_writable(s);
    }
    if ((events & WATCH_READ) != 0) {
        on_readable(s);
    }
    /* libuv stops watching when the kernel reports an error: the read or write above told it. */
    if (!s->freed) {
        update_watch(s);
    }
}

int stream_new(struct loop *l, int fd, const struct stream_opts *opts, struct stream **ret,
               struct err *e)
{
    struct stream *s = xcalloc(1, sizeof *s);
    s->loop = l;
    s->port = opts->port;
    s->max = opts->max == 0 ? QUEUE_DEFAULT : opts->max;
    buf_init(&s->queue, SIZE_MAX / 2); /* stream_write() holds the bound */
    int rc = watch_new(l, fd, on_ready, s, &s->watch, e);
    if (rc < 0) {
        free(s);
        return rc;
    }
    s->fd = fd;
    update_watch(s);
    *ret = s;
    return 0;
}

static void destroy(void *arg)
{
    struct stream *s = arg;
    buf_done(&s->queue);
    free(s);
}

struct stream *stream_free(struct stream *s)
{
    if (s != NULL) {
        s->freed = true;
        s->watch = watch_free(s->watch);
        cleanup_fd(&s->fd);
        loop_retire(s->loop, destroy, s);
    }
    return NULL;
}

static void enqueue(struct stream *s, const struct str *pieces, size_t n, size_t taken)
{
    if (s->sent > 0) {
        buf_consume(&s->queue, s->sent);
        s->sent = 0;
    }
    for (size_t i = 0; i < n; i++) {
        struct str rest = str_slice(pieces[i], taken, pieces[i].len);
        taken -= taken < pieces[i].len ? taken : pieces[i].len;
        if (rest.len > 0) {
            buf_add(&s->queue, rest);
        }
    }
    update_watch(s);
}

/* Their number of bytes. */
static size_t vectors(const struct str *pieces, size_t n, struct iovec iov[STREAM_PIECES_MAX])
{
    size_t total = 0;
    assert(n <= STREAM_PIECES_MAX);
    for (size_t i = 0; i < n; i++) {
        iov[i] = (struct iovec) { (void *)pieces[i].ptr, pieces[i].len };
        total += pieces[i].len;
    }
    return total;
}

size_t stream_offer(struct stream *s, const struct str *pieces, size_t n)
{
    struct iovec iov[STREAM_PIECES_MAX];
    size_t total = vectors(pieces, n, iov);
    assert(s->port.on_drained != NULL);
    if (s->fd < 0 || s->finishing || total == 0) {
        return total;
    }
    ssize_t taken = stream_queued(s) > 0 ? 0 : push(s, iov, n);
    if (taken < 0) {
        return total;
    }
    s->refused = (size_t)taken < total;
    update_watch(s);
    return (size_t)taken;
}

int stream_write(struct stream *s, const struct str *pieces, size_t n, struct err *e)
{
    struct iovec iov[STREAM_PIECES_MAX];
    size_t total = vectors(pieces, n, iov);
    if (s->fd < 0 || s->finishing || total == 0) {
        return 0;
    }
    if (stream_queued(s) >= s->max) {
        return ERR(e, ERR_LIMIT, "%zu bytes wait to be sent", stream_queued(s));
    }
    ssize_t taken = stream_queued(s) > 0 ? 0 : push(s, iov, n);
    if (taken >= 0 && (size_t)taken < total) {
        enqueue(s, pieces, n, (size_t)taken);
    }
    return 0;
}

void stream_finish(struct stream *s)
{
    s->finishing = true;
    if (stream_queued(s) == 0) {
        finish_now(s);
    }
}

void stream_pause(struct stream *s)
{
    s->paused = true;
    update_watch(s);
}

void stream_resume(struct stream *s)
{
    s->paused = false;
    update_watch(s);
}

size_t stream_queued(const struct stream *s)
{
    return s->queue.len - s->sent;
}

bool stream_dead(const struct stream *s)
{
    return s->fd < 0;
}
