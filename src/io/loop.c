/* SPDX-License-Identifier: MIT
 *
 * The loop: libuv's, plus a queue of posted calls and a watchdog. Posted calls run after the poll
 * phase of each iteration, so never inside another callback.
 */
#include "io/loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "io/loop_priv.h"

static void run_calls(struct loop *l)
{
    /* Only those that are there now; what they post has its turn after the next poll, so that a
     * chain of posts cannot starve the descriptors. */
    size_t n = l->n_calls;
    for (size_t i = 0; i < n; i++) {
        struct loop_call c = l->calls[i];
        c.fn(c.arg);
    }
    l->n_calls -= n;
    for (size_t i = 0; i < l->n_calls; i++) {
        l->calls[i] = l->calls[n + i];
    }
    if (l->n_calls == 0) {
        (void)uv_idle_stop(&l->hurry);
    }
}

/* Busy time of an iteration = time since the last poll returned. libuv notes that time, in
 * milliseconds; its own metric of idle time would cost a second epoll_wait() for each. */
static void watch_over(struct loop *l)
{
    nsec busy = clock_now() - l->woke;
    if (l->woke != 0) {
        l->stats.iterations++;
        l->stats.longest = busy > l->stats.longest ? busy : l->stats.longest;
        if (busy > LOOP_SLOW) {
            l->stats.slow++;
            LOG_DEBUG("io", "slow_iteration", LOG_INT("busy_ms", busy / NSEC_PER_MS));
        }
    }
}

static void on_before_poll(uv_prepare_t *h)
{
    watch_over(h->data);
}

static void on_after_poll(uv_check_t *h)
{
    struct loop *l = h->data;
    l->woke = (nsec)uv_now(&l->uv) * NSEC_PER_MS;
    run_calls(l);
}

static void on_hurry(uv_idle_t *h)
{
    (void)h; /* an active idle handle is enough */
}

static void init_handles(struct loop *l)
{
    (void)uv_prepare_init(&l->uv, &l->before_poll);
    (void)uv_check_init(&l->uv, &l->after_poll);
    (void)uv_idle_init(&l->uv, &l->hurry);
    l->before_poll.data = l;
    l->after_poll.data = l;
    l->hurry.data = l;
    (void)uv_prepare_start(&l->before_poll, on_before_poll);
    (void)uv_check_start(&l->after_poll, on_after_poll);
    uv_unref((uv_handle_t *)&l->before_poll);
    uv_unref((uv_handle_t *)&l->after_poll);
}

static int fill_stdio(struct err *e)
{
    for (;;) {
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd < 0) {
            return ERR_SYS(e, "open '/dev/null'");
        }
        if (fd > STDERR_FILENO) {
            (void)close(fd);
            return 0;
        }
        (void)fcntl(fd, F_SETFD, 0);
    }
}

void loop_ignore_signal(int signo)
{
    struct sigaction now;
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    if (sigaction(signo, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
        now.sa_handler == SIG_DFL) {
        (void)sigaction(signo, &ignore, NULL);
    }
}

int loop_new(struct loop **ret, struct err *e)
{
    int rc = fill_stdio(e);
    if (rc < 0) {
        return rc;
    }
    struct loop *l = xcalloc(1, sizeof *l);
    rc = uv_loop_init(&l->uv);
    if (rc < 0) {
        free(l);
        return loop_error(rc, "create the event loop", e);
    }
    init_handles(l);
    loop_ignore_signal(SIGPIPE);
    *ret = l;
    return 0;
}

static void close_left_over(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h)) {
        uv_close(h, NULL);
    }
}

struct loop *loop_free(struct loop *l)
{
    if (l == NULL) {
        return NULL;
    }
    while (l->n_calls > 0) {
        run_calls(l);
    }
    child_abandon_all(l);
    /* Our own three handles, and whatever an owner forgot: its memory leaks, which the leak checker
     * shows, but the loop can close. */
    uv_walk(&l->uv, close_left_over, NULL);
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    int rc = uv_loop_close(&l->uv);
    assert(rc == 0);
    (void)rc;
    free(l->calls);
    free(l->scratch);
    free(l);
    return NULL;
}

void loop_run(struct loop *l)
{
    l->woke = 0;
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    watch_over(l); /* what the last iteration did; libuv from 1.45 on runs timers after the poll */
}

void loop_stop(struct loop *l)
{
    uv_stop(&l->uv);
}

void loop_post(struct loop *l, void (*fn)(void *arg), void *arg)
{
    if (l->n_calls == l->cap_calls) {
        l->cap_calls = l->cap_calls == 0 ? 16 : l->cap_calls * 2;
        l->calls = xrealloc(l->calls, l->cap_calls * sizeof *l->calls);
    }
    l->calls[l->n_calls++] = (struct loop_call) { fn, arg };
    (void)uv_idle_start(&l->hurry, on_hurry);
}

void loop_retire(struct loop *l, void (*destroy)(void *arg), void *arg)
{
    loop_post(l, destroy, arg);
}

struct loop_stats loop_stats(const struct loop *l)
{
    return l->stats;
}

char *loop_scratch(struct loop *l)
{
    const size_t page = 4096;
    if (l->scratch == NULL) {
        l->scratch = xmalloc(LOOP_SCRATCH + page);
    }
    return (char *)l->scratch + (page - (uintptr_t)l->scratch % page) % page;
}

int loop_error(int rc, const char *what, struct err *e)
{
    errno = -rc;
    return ERR_SYS(e, "%s", what);
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void loop_close_and_free(uv_handle_t *h)
{
    uv_close(h, on_closed);
}
