/* SPDX-License-Identifier: MIT
 *
 * Signals as events.
 */
#include "io/sigwatch.h"

#include <signal.h>
#include <stdlib.h>

#include "base/arena.h"
#include "io/loop_priv.h"

struct sigwatch {
    uv_signal_t handle;
    void (*fn)(void *arg, int signo);
    void *arg;
};

static void on_uv_signal(uv_signal_t *h, int signo)
{
    struct sigwatch *w = h->data;
    w->fn(w->arg, signo);
}

int sigwatch_new(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg,
                 struct sigwatch **ret, struct err *e)
{
    struct sigwatch *w = xcalloc(1, sizeof *w);
    int rc = uv_signal_init(&l->uv, &w->handle);
    if (rc < 0) {
        free(w);
        return loop_error(rc, "watch signals", e);
    }
    w->handle.data = w;
    w->fn = fn;
    w->arg = arg;
    rc = uv_signal_start(&w->handle, on_uv_signal, signo);
    if (rc < 0) {
        loop_close_and_free((uv_handle_t *)&w->handle);
        return loop_error(rc, strsignal(signo), e);
    }
    uv_unref((uv_handle_t *)&w->handle);
    *ret = w;
    return 0;
}

struct sigwatch *sigwatch_free(struct sigwatch *w)
{
    if (w != NULL) {
        loop_close_and_free((uv_handle_t *)&w->handle);
    }
    return NULL;
}
