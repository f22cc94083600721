/* SPDX-License-Identifier: MIT
 *
 * Readiness of descriptors, level-triggered.
 */
#include "io/watch.h"

#include <stdlib.h>

#include "base/arena.h"
#include "io/loop_priv.h"

struct watch {
    uv_poll_t handle;
    void (*fn)(void *arg, unsigned events);
    void *arg;
    unsigned events; /* wanted */
};

static void on_uv_poll(uv_poll_t *h, int status, int events)
{
    struct watch *w = h->data;
    unsigned ready = 0;
    if (status < 0) {
        /* libuv turns POLLERR into an error and stops watching. That a pipe has lost its reader is
         * better learnt from write(). */
        ready = w->events;
        w->events = 0;
    } else {
        ready |= (events & UV_READABLE) != 0 ? (unsigned)WATCH_READ : 0u;
        ready |= (events & UV_WRITABLE) != 0 ? (unsigned)WATCH_WRITE : 0u;
    }
    w->fn(w->arg, ready);
}

int watch_new(struct loop *l, int fd, void (*fn)(void *arg, unsigned events), void *arg,
              struct watch **ret, struct err *e)
{
    struct watch *w = xcalloc(1, sizeof *w);
    int rc = uv_poll_init(&l->uv, &w->handle, fd);
    if (rc < 0) {
        free(w);
        return loop_error(rc, "watch a descriptor", e);
    }
    w->handle.data = w;
    w->fn = fn;
    w->arg = arg;
    *ret = w;
    return 0;
}

struct watch *watch_free(struct watch *w)
{
    if (w != NULL) {
        loop_close_and_free((uv_handle_t *)&w->handle);
    }
    return NULL;
}

void watch_set(struct watch *w, unsigned events)
{
    if (events == w->events) {
        return;
    }
    w->events = events;
    if (events == 0) {
        (void)uv_poll_stop(&w->handle);
        return;
    }
    int flags = ((events & WATCH_READ) != 0 ? UV_READABLE : 0) |
                ((events & WATCH_WRITE) != 0 ? UV_WRITABLE : 0);
    (void)uv_poll_start(&w->handle, flags, on_uv_poll);
}

void watch_unref(struct watch *w)
{
    uv_unref((uv_handle_t *)&w->handle);
}
