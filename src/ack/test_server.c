/* SPDX-License-Identifier: MIT
 *
 * Every connection is one visit: whatever is asked, the page is the answer, and the end.
 */
#include "ack/test_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/watch.h"

enum { VISITORS_MAX = 64 };

struct visitor {
    struct test_server *site;
    struct watch *watch;
    int fd;
};

struct test_server {
    struct loop *loop;
    struct listener *listener;
    struct visitor visitors[VISITORS_MAX];
    size_t visits;
    char address[32];
};

static void leave(struct visitor *v)
{
    v->watch = watch_free(v->watch);
    (void)close(v->fd);
}

static void on_request(void *arg, unsigned events)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                 "Connection: close\r\n\r\n" SITE_PAGE;
    struct visitor *v = arg;
    char request[4096];
    (void)events;
    ssize_t n = recv(v->fd, request, sizeof request, MSG_DONTWAIT);
    if (n > 0) {
        v->site->visits++;
        /* So few bytes fit into any socket. */
        (void)!send(v->fd, answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)shutdown(v->fd, SHUT_WR);
    }
    leave(v);
}

static void on_visitor(void *arg, int fd)
{
    struct test_server *s = arg;
    for (size_t i = 0; i < VISITORS_MAX; i++) {
        struct visitor *v = &s->visitors[i];
        if (v->watch == NULL) {
            *v = (struct visitor) { .site = s, .fd = fd };
            if (watch_new(s->loop, fd, on_request, v, &v->watch, NULL) == 0) {
                watch_set(v->watch, WATCH_READ);
                return;
            }
            break;
        }
    }
    (void)close(fd);
}

int test_server_open(struct loop *l, struct test_server **ret, struct err *e)
{
    int fd;
    int port;
    int r = listener_bind_tcp("127.0.0.2", 0, &fd, &port, e);
    if (r < 0) {
        return r;
    }
    struct test_server *s = xcalloc(1, sizeof *s);
    s->loop = l;
    (void)snprintf(s->address, sizeof s->address, "127.0.0.2:%d", port);
    r = listener_new(l, fd, on_visitor, s, &s->listener, e);
    if (r < 0) {
        (void)close(fd);
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

static void destroy(void *arg)
{
    free(arg);
}

struct test_server *test_server_free(struct test_server *s)
{
    if (s == NULL) {
        return NULL;
    }
    s->listener = listener_free(s->listener);
    for (size_t i = 0; i < VISITORS_MAX; i++) {
        if (s->visitors[i].watch != NULL) {
            leave(&s->visitors[i]);
        }
    }
    loop_retire(s->loop, destroy, s);
    return NULL;
}

const char *test_server_address(const struct test_server *s)
{
    return s->address;
}

size_t test_server_visits(const struct test_server *s)
{
    return s->visits;
}
