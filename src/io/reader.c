/* SPDX-License-Identifier: MIT
 *
 * Reading streams.
 */
#include "io/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "io/loop_priv.h"
#include "io/watch.h"

struct reader {
    struct loop *loop;
    struct reader_port port;
    struct watch *watch;
    int fd; /* -1 after the end */
};

static void close_stream(struct reader *r)
{
    r->watch = watch_free(r->watch);
    cleanup_fd(&r->fd);
}

static void on_readable(void *arg, unsigned events)
{
    (void)events;
    struct reader *r = arg;
    char *scratch = loop_scratch(r->loop);
    ssize_t n = read(r->fd, scratch, LOOP_SCRATCH);
    if (n > 0) {
        r->port.on_bytes(r->port.arg, str_n(scratch, (size_t)n));
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    struct err why;
    if (n < 0) {
        (void)ERR_SYS(&why, "read");
    }
    close_stream(r);
    r->port.on_end(r->port.arg, n < 0 ? &why : NULL);
}

int reader_new(struct loop *l, int fd, const struct reader_port *port, struct reader **ret,
               struct err *e)
{
    struct reader *r = xcalloc(1, sizeof *r);
    r->loop = l;
    r->port = *port;
    int rc = watch_new(l, fd, on_readable, r, &r->watch, e);
    if (rc < 0) {
        free(r);
        return rc;
    }
    r->fd = fd;
    watch_set(r->watch, WATCH_READ);
    *ret = r;
    return 0;
}

struct reader *reader_free(struct reader *r)
{
    if (r != NULL) {
        close_stream(r);
        loop_retire(r->loop, free, r);
    }
    return NULL;
}

void reader_pause(struct reader *r)
{
    if (r->watch != NULL) {
        watch_set(r->watch, 0);
    }
}

void reader_resume(struct reader *r)
{
    if (r->watch != NULL) {
        watch_set(r->watch, WATCH_READ);
    }
}

bool reader_ended(const struct reader *r)
{
    return r->fd < 0;
}
