/* SPDX-License-Identifier: MIT
 *
 * Writing streams. Bytes go straight to the descriptor while it takes them; only the rest is
 * copied. The end is always reported from the loop, never from inside writer_write() or
 * writer_close().
 */
#include "io/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "io/loop_priv.h"
#include "io/watch.h"

struct writer {
    struct loop *loop;
    struct writer_port port;
    struct watch *watch;
    int fd; /* -1 after the end */
    struct buf queue;
    size_t sent; /* of the queue; moved out in one go, not per write */
    size_t lost;
    bool closing;
    bool freed;
    bool failed;
    struct err why;
};

static void report_end(void *arg)
{
    struct writer *w = arg;
    if (!w->freed) {
        w->port.on_end(w->port.arg, w->failed ? &w->why : NULL);
    }
}

/* Closes the stream and has the end reported; what was still queued is lost. */
static void end(struct writer *w)
{
    if (w->fd < 0) {
        return;
    }
    w->lost += w->queue.len - w->sent;
    w->sent = 0;
    buf_done(&w->queue);
    w->watch = watch_free(w->watch);
    cleanup_fd(&w->fd);
    loop_post(w->loop, report_end, w);
}

/* Bytes taken, 0 when the pipe is full, -1 when the stream has ended. */
static ssize_t push(struct writer *w, struct str bytes)
{
    for (;;) {
        ssize_t n = write(w->fd, bytes.ptr, bytes.len);
        if (n >= 0) {
            return n;
        }
        if (errno == EAGAIN) {
            return 0;
        }
        if (errno != EINTR) {
            break;
        }
    }
    if (errno != EPIPE && errno != ECONNRESET) {
        w->failed = true;
        (void)ERR_SYS(&w->why, "write");
    }
    return -1;
}

static void on_writable(void *arg, unsigned events)
{
    (void)events;
    struct writer *w = arg;
    ssize_t n = push(w, str_slice(buf_str(&w->queue), w->sent, w->queue.len));
    if (n < 0) {
        end(w);
        return;
    }
    w->sent += (size_t)n;
    if (w->sent < w->queue.len) {
        watch_set(w->watch, WATCH_WRITE);
        return;
    }
    buf_reset(&w->queue);
    w->sent = 0;
    watch_set(w->watch, 0);
    if (w->closing) {
        end(w);
    } else if (w->port.on_drained != NULL) {
        w->port.on_drained(w->port.arg);
    }
}

int writer_new(struct loop *l, int fd, const struct writer_opts *opts, struct writer **ret,
               struct err *e)
{
    struct writer *w = xcalloc(1, sizeof *w);
    w->loop = l;
    w->port = opts->port;
    buf_init(&w->queue, opts->max == 0 ? (size_t)1 << 20 : opts->max);
    int rc = watch_new(l, fd, on_writable, w, &w->watch, e);
    if (rc < 0) {
        free(w);
        return rc;
    }
    w->fd = fd;
    *ret = w;
    return 0;
}

static void destroy(void *arg)
{
    struct writer *w = arg;
    buf_done(&w->queue);
    free(w);
}

struct writer *writer_free(struct writer *w)
{
    if (w != NULL) {
        w->freed = true;
        w->watch = watch_free(w->watch);
        cleanup_fd(&w->fd);
        loop_retire(w->loop, destroy, w);
    }
    return NULL;
}

int writer_write(struct writer *w, struct str bytes, struct err *e)
{
    if (w->fd < 0 || w->closing) {
        w->lost += bytes.len;
        return 0;
    }
    size_t taken = 0;
    bool idle = writer_queued(w) == 0;
    /* Decided before the first byte goes out, so that a refusal leaves nothing half-written. */
    if (bytes.len > w->queue.max || writer_queued(w) > w->queue.max - bytes.len) {
        return ERR(e, ERR_LIMIT, "%zu bytes wait to be written, %zu more are too many",
                   writer_queued(w), bytes.len);
    }
    if (idle && bytes.len > 0) {
        ssize_t n = push(w, bytes);
        if (n < 0) {
            w->lost += bytes.len;
            end(w);
            return 0;
        }
        taken = (size_t)n;
    }
    if (taken == bytes.len) {
        return 0;
    }
    buf_consume(&w->queue, w->sent);
    w->sent = 0;
    int rc = buf_append(&w->queue, str_slice(bytes, taken, bytes.len), e);
    watch_set(w->watch, WATCH_WRITE);
    return rc;
}

void writer_close(struct writer *w)
{
    w->closing = true;
    if (writer_queued(w) == 0) {
        end(w);
    }
}

bool writer_ended(const struct writer *w)
{
    return w->fd < 0;
}

size_t writer_queued(const struct writer *w)
{
    return w->queue.len - w->sent;
}

size_t writer_lost(const struct writer *w)
{
    return w->lost;
}
