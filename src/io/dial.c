/* SPDX-License-Identifier: MIT
 *
 * Resolving names and connecting.
 */
#include "io/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "io/loop_priv.h"
#include "io/timer.h"
#include "io/watch.h"

/* --- names --- */

struct resolve {
    uv_getaddrinfo_t request;
    resolve_fn *fn; /* NULL once freed */
    void *arg;
    bool running;
    char name[256];
};

static void report_addresses(struct resolve *r, const struct addrinfo *list)
{
    struct address found[RESOLVE_MAX];
    size_t n = 0;
    for (; list != NULL && n < RESOLVE_MAX; list = list->ai_next) {
        if (list->ai_addrlen <= sizeof found[n].addr) {
            memset(&found[n], 0, sizeof found[n]);
            memcpy(&found[n].addr, list->ai_addr, list->ai_addrlen);
            found[n++].len = list->ai_addrlen;
        }
    }
    r->fn(r->arg, found, n, NULL);
}

static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct resolve *r = CONTAINER_OF(request, struct resolve, request);
    r->running = false;
    if (r->fn == NULL) {
        uv_freeaddrinfo(list);
        free(r);
        return;
    }
    if (status == 0) {
        report_addresses(r, list);
    } else {
        struct err why;
        (void)ERR(&why, ERR_UNAVAILABLE, "look up '%s': %s", r->name, uv_strerror(status));
        r->fn(r->arg, NULL, 0, &why);
    }
    uv_freeaddrinfo(list);
}

int resolve_start(struct loop *l, const char *host, int port, resolve_fn *fn, void *arg,
                  struct resolve **ret)
{
    struct resolve *r = xcalloc(1, sizeof *r);
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    char service[8];
    r->fn = fn;
    r->arg = arg;
    (void)snprintf(r->name, sizeof r->name, "%s", host);
    (void)snprintf(service, sizeof service, "%u", (unsigned)port & 0xffffu);
    int rc = strlen(host) >= sizeof r->name
                 ? UV_EINVAL
                 : uv_getaddrinfo(&l->uv, &r->request, on_addresses, host, service, &hints);
    if (rc < 0) {
        free(r);
        return -ERR_UNAVAILABLE;
    }
    r->running = true;
    *ret = r;
    return 0;
}

struct resolve *resolve_free(struct resolve *r)
{
    if (r != NULL && r->running) {
        r->fn = NULL; /* the thread may have begun: on_addresses() frees */
        (void)uv_cancel((uv_req_t *)&r->request);
    } else {
        free(r);
    }
    return NULL;
}

/* --- connections --- */

struct dial {
    struct loop *loop;
    dial_fn *fn;
    void *arg;
    struct watch *watch;
    struct timer *deadline;
    int fd;
    bool over;
    struct err why;
};

static void report(struct dial *d, bool good)
{
    d->over = true;
    d->watch = watch_free(d->watch);
    d->deadline = timer_free(d->deadline);
    if (!good) {
        cleanup_fd(&d->fd);
    }
    d->fn(d->arg, TAKE_FD(d->fd), good ? NULL : &d->why);
}

static void on_connected(void *arg, unsigned events)
{
    (void)events;
    struct dial *d = arg;
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    errno = error;
    if (error != 0) {
        (void)ERR_SYS_AS(&d->why, ERR_UNAVAILABLE, "connect");
    }
    report(d, error == 0);
}

static void on_deadline(void *arg)
{
    struct dial *d = arg;
    (void)ERR(&d->why, ERR_TIMEOUT, "connect: no answer in time");
    report(d, false);
}

int dial_start(struct loop *l, const struct dial_opts *o, struct dial **ret, struct err *e)
{
    struct dial *d = xcalloc(1, sizeof *d);
    int on = 1;
    d->loop = l;
    d->fn = o->fn;
    d->arg = o->arg;
    d->fd = socket(o->to.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = d->fd < 0 ? ERR_SYS(e, "create a socket") : 0;
    if (rc == 0) {
        (void)setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connect(d->fd, (const struct sockaddr *)&o->to.addr, o->to.len) != 0 &&
            errno != EINPROGRESS) {
            rc = ERR_SYS_AS(e, ERR_UNAVAILABLE, "connect");
        }
    }
    rc = rc < 0 ? rc : watch_new(l, d->fd, on_connected, d, &d->watch, e);
    rc = rc < 0 || o->deadline == 0 ? rc : timer_new(l, on_deadline, d, &d->deadline, e);
    if (rc < 0) {
        (void)dial_free(d);
        return rc;
    }
    watch_set(d->watch, WATCH_WRITE);
    if (d->deadline != NULL) {
        timer_arm(d->deadline, o->deadline);
    }
    *ret = d;
    return 0;
}

struct dial *dial_free(struct dial *d)
{
    if (d != NULL) {
        d->watch = watch_free(d->watch);
        d->deadline = timer_free(d->deadline);
        cleanup_fd(&d->fd);
        loop_retire(d->loop, free, d);
    }
    return NULL;
}

const char *address_text(const struct address *a, char out[ADDRESS_TEXT_LEN])
{
    const void *raw = a->addr.ss_family == AF_INET
                          ? (const void *)&((const struct sockaddr_in *)&a->addr)->sin_addr
                          : (const void *)&((const struct sockaddr_in6 *)&a->addr)->sin6_addr;
    if (inet_ntop(a->addr.ss_family, raw, out, ADDRESS_TEXT_LEN) == NULL) {
        (void)snprintf(out, ADDRESS_TEXT_LEN, "unknown");
    }
    return out;
}
