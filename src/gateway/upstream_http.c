/* SPDX-License-Identifier: MIT
 *
 * A client of HTTP/1.1. A link is a connection, or the attempt to make one, with a call on it or
 * idle in the list of spare ones. It keeps what every call needs, its timer and the room for a
 * head, so that a call on a spare link costs no more than its bytes.
 */
#include "gateway/upstream_http.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"
#include "gateway/provider.h"
#include "io/dial.h"
#include "io/loop.h"
#include "io/stream.h"
#include "io/timer.h"

#define IDLE_MAX    256                 /* links kept; the kernel's sockets are the cost */
#define SLICE       ((size_t)256 << 10) /* of a body, handed to the socket at once */
#define QUEUE_LIMIT ((size_t)4 << 20)
#define HEAD_MAX    ((size_t)1 << 20)
#define HEAD_USUAL  ((size_t)1 << 10)

struct link {
    struct http_upstream *up;
    struct link *next;     /* among the idle ones */
    struct stream *stream; /* NULL until it is connected */
    struct http *http;
    struct timer *deadline;     /* of the call; runs out unheard on an idle link */
    struct buf head;            /* of the request */
    struct upstream_call *call; /* NULL: idle */
    bool dropped;
    bool reused;
    bool dirty; /* more came than the answer: nobody knows what that belongs to */
};

struct http_upstream {
    struct upstream base;
    struct loop *loop;
    struct provider provider;
    char *name;
    struct address unix_address; /* len 0: none */
    bool send_once;              /* no connection is reused, so no request is sent again */
    nsec connect, first_byte, idle_time;
    struct link *idle;
    size_t n_idle;
    struct upstream_call *calls; /* a list */
};

struct upstream_call {
    struct http_upstream *up;
    struct upstream_call *prev, *next;
    struct upstream_port port;
    struct link *link; /* until the call is over */
    struct resolve *resolve;
    struct dial *dial;
    struct str body;
    size_t sent; /* of head and body */
    bool is_head, sent_told, got_bytes, head_told, retried, paused, over;
};

static void connect_call(struct upstream_call *c);

/* --- ends --- */

static void forget_key(struct link *k)
{
    if (k->head.ptr != NULL) {
        explicit_bzero(k->head.ptr, k->head.len);
        buf_reset(&k->head);
    }
}

static void drop_link(struct link *k)
{
    if (k != NULL && !k->dropped) {
        k->dropped = true;
        k->stream = stream_free(k->stream);
        k->http = http_free(k->http);
        k->deadline = timer_free(k->deadline);
        forget_key(k);
        buf_done(&k->head);
        loop_retire(k->up->loop, free, k);
    }
}

static void end_call(struct upstream_call *c)
{
    c->over = true;
    c->resolve = resolve_free(c->resolve);
    c->dial = dial_free(c->dial);
    *(c->prev != NULL ? &c->prev->next : &c->up->calls) = c->next;
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    if (c->link != NULL) {
        c->link->call = NULL;
        drop_link(TAKE_PTR(c->link));
    }
    loop_retire(c->up->loop, free, c);
}

static void tell_error(struct upstream_call *c, enum upstream_error_kind kind, const char *message)
{
    const struct upstream_port port = c->port;
    const struct upstream_error error = { .kind = kind, .retry_after = -1, .message = message };
    end_call(c);
    port.on_error(port.arg, &error);
}

static void on_deadline(void *arg)
{
    struct upstream_call *c = ((struct link *)arg)->call;
    if (c != NULL && !c->paused) {
        tell_error(c, UPSTREAM_TIMEOUT,
                   c->head_told ? "nothing has come for too long" : "no answer in time");
    }
}

/* It is told what it is for by its call. */
static int link_new(struct http_upstream *up, struct link **ret, struct err *e)
{
    struct link *k = xcalloc(1, sizeof *k);
    k->up = up;
    buf_init(&k->head, HEAD_MAX);
    int rc = timer_new(up->loop, on_deadline, k, &k->deadline, e);
    if (rc < 0) {
        free(k);
        return rc;
    }
    *ret = k;
    return 0;
}

/* The answer is complete: the link may carry another call. */
static void complete(struct upstream_call *c)
{
    const struct upstream_port port = c->port;
    struct link *k = c->link;
    struct http_upstream *up = c->up;
    bool reusable = http_head(k->http)->keep_alive && c->sent == k->head.len + c->body.len &&
                    !k->dirty && !up->send_once && up->n_idle < IDLE_MAX;
    if (reusable) {
        c->link = NULL;
        forget_key(k);
        k->call = NULL;
        k->reused = true;
        k->next = up->idle;
        up->idle = k;
        up->n_idle++;
        stream_resume(k->stream);
    }
    end_call(c);
    port.on_end(port.arg);
}

/* --- the answer --- */

static void take_event(struct upstream_call *c, int event, struct str body)
{
    const struct http_head *head = http_head(c->link->http);
    if (event == HTTP_EV_HEAD && head->status >= 200) {
        c->head_told = true;
        c->port.on_head(c->port.arg, head->status, &head->fields);
    } else if (event == HTTP_EV_BODY && c->head_told) {
        c->port.on_data(c->port.arg, body);
    } else if (event == HTTP_EV_END && c->head_told) {
        complete(c);
    } else if (event == HTTP_EV_END && c->is_head) {
        http_expect_no_body(c->link->http); /* 100 Continue: the real answer is still to come */
    }
}

static void forget_idle(struct link *k)
{
    struct link **at = &k->up->idle;
    while (*at != NULL && *at != k) {
        at = &(*at)->next;
    }
    if (*at == k) {
        *at = k->next;
        k->up->n_idle--;
    }
    drop_link(k);
}

static void on_bytes(void *arg, struct str in)
{
    struct link *k = arg;
    struct upstream_call *c = k->call;
    struct str body;
    struct err e;
    int event = HTTP_EV_MORE;
    if (c == NULL) {
        forget_idle(k); /* a server that talks unasked: the next call must not get that */
        return;
    }
    c->got_bytes = true;
    timer_arm(k->deadline, clock_now() + c->up->idle_time);
    while (!c->over && (event = http_next(k->http, &in, &body, &e)) > HTTP_EV_MORE) {
        k->dirty = in.len > 0;
        take_event(c, event, body);
    }
    if (!c->over && event < 0) {
        tell_error(c, UPSTREAM_BROKEN, e.msg);
    }
}

/* A spare link may have been closed just when it was used: a fresh one gets the same request. */
static bool again(struct upstream_call *c)
{
    struct link *old = c->link;
    struct link *k;
    c->retried = true;
    if (link_new(c->up, &k, NULL) < 0) {
        return false;
    }
    k->head = old->head;
    buf_init(&old->head, HEAD_MAX);
    old->call = NULL;
    drop_link(old);
    c->link = k;
    k->call = c;
    timer_arm(k->deadline, clock_now() + c->up->first_byte);
    connect_call(c);
    return true;
}

static void on_end(void *arg, const struct err *why)
{
    struct link *k = arg;
    struct upstream_call *c = k->call;
    struct err e;
    if (c == NULL) {
        forget_idle(k);
        return;
    }
    if (k->reused && !c->got_bytes && !c->retried && again(c)) {
        return;
    }
    int rc = why == NULL ? http_end(k->http, &e) : -1;
    if (rc == 1 && c->head_told) {
        complete(c);
    } else {
        tell_error(c, UPSTREAM_CUT, "it closed the connection before the answer was complete");
    }
}

/* --- the request --- */

static void send_more(struct upstream_call *c)
{
    struct str head = buf_str(&c->link->head);
    size_t total = head.len + c->body.len;
    while (!c->over && c->sent < total) {
        size_t from = c->sent < head.len ? 0 : c->sent - head.len;
        const struct str pieces[] = { str_slice(head, c->sent, head.len),
                                      str_slice(c->body, from, from + SLICE) };
        size_t taken = stream_offer(c->link->stream, pieces, 2);
        c->sent += taken;
        if (taken < pieces[0].len + pieces[1].len) {
            break; /* on_drained() goes on */
        }
    }
    if (c->sent == total && !c->sent_told && c->port.on_sent != NULL) {
        c->sent_told = true;
        c->port.on_sent(c->port.arg);
    }
}

static void on_drained(void *arg)
{
    struct link *k = arg;
    if (k->call != NULL) {
        send_more(k->call);
    }
}

static void use_link(struct upstream_call *c)
{
    struct link *k = c->link;
    c->sent = 0;
    if (c->is_head) {
        http_expect_no_body(k->http);
    }
    if (c->paused) {
        stream_pause(k->stream);
    }
    send_more(c);
}

static void on_dialled(void *arg, int fd, const struct err *why)
{
    struct upstream_call *c = arg;
    struct link *k = c->link;
    struct err e;
    if (why != NULL) {
        tell_error(c, why->code == ERR_TIMEOUT ? UPSTREAM_TIMEOUT : UPSTREAM_CONNECT, why->msg);
        return;
    }
    const struct stream_opts o = { .max = QUEUE_LIMIT,
                                   .port = { on_bytes, on_end, on_drained, k } };
    if (stream_new(c->up->loop, fd, &o, &k->stream, &e) < 0) {
        cleanup_fd(&fd);
        tell_error(c, UPSTREAM_CONNECT, e.msg);
        return;
    }
    k->http = http_new(HTTP_RESPONSES);
    use_link(c);
}

static void dial_address(struct upstream_call *c, const struct address *to)
{
    struct err e;
    const struct dial_opts o = {
        .to = *to, .deadline = clock_now() + c->up->connect, .fn = on_dialled, .arg = c
    };
    c->dial = dial_free(c->dial);
    if (dial_start(c->up->loop, &o, &c->dial, &e) < 0) {
        tell_error(c, UPSTREAM_CONNECT, e.msg);
    }
}

static void on_resolved(void *arg, const struct address *found, size_t n, const struct err *why)
{
    struct upstream_call *c = arg;
    if (n == 0) {
        tell_error(c, UPSTREAM_CONNECT, why == NULL ? "the name has no address" : why->msg);
        return;
    }
    dial_address(c, &found[0]);
}

static bool numeric_address(const struct provider *p, struct address *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&ret->addr;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&ret->addr;
    *ret = (struct address) { 0 };
    if (inet_pton(AF_INET, p->host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)p->port);
        ret->len = sizeof *v4;
        return true;
    }
    if (inet_pton(AF_INET6, p->host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)p->port);
        ret->len = sizeof *v6;
        return true;
    }
    return false;
}

static void connect_posted(void *arg)
{
    struct upstream_call *c = arg;
    struct http_upstream *up = c->up;
    struct address to;
    if (c->over) {
        return;
    }
    if (up->unix_address.len > 0) {
        dial_address(c, &up->unix_address);
    } else if (numeric_address(&up->provider, &to)) {
        dial_address(c, &to);
    } else if (resolve_start(up->loop, up->provider.host, up->provider.port, on_resolved, c,
                             &c->resolve) < 0) {
        tell_error(c, UPSTREAM_CONNECT, "the name cannot be looked up");
    }
}

static void connect_call(struct upstream_call *c)
{
    loop_post(c->up->loop, connect_posted, c); /* no callback from inside of start() */
}

static int write_head(struct link *k, const struct upstream_request *r, struct err *e)
{
    const struct provider *p = &k->up->provider;
    CLEANUP(buf) struct buf target = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf key = BUF_INIT(BUF_TEXT);
    enum llm_format format =
        r->endpoint.call == LLM_CALL_NONE ? k->up->base.format : r->endpoint.format;
    struct str name;
    char *room;
    provider_target(p, r->target, &target);
    int rc = buf_reserve(&k->head, HEAD_USUAL, &room, e);
    rc = rc < 0 ? rc : http_write_request(r->method, buf_str(&target), &k->head, e);
    rc = rc < 0 ? rc : http_write_field(STR("Host"), str_of(p->authority), &k->head, e);
    for (size_t i = 0; rc == 0 && i < r->fields.len; i++) {
        rc = http_write_field(r->fields.items[i].name, r->fields.items[i].value, &k->head, e);
    }
    if (rc == 0 && provider_key_field(p, format, &name, &key)) {
        rc = http_write_field(name, buf_str(&key), &k->head, e);
        explicit_bzero(key.ptr, key.len);
    }
    rc = rc < 0 ? rc : buf_append(&k->head, STR("Accept-Encoding: identity\r\n"), e);
    if (rc == 0 && (r->body.len > 0 || str_eqc(r->method, "POST"))) {
        rc = http_write_length(r->body.len, &k->head, e);
    }
    return rc < 0 ? rc : buf_append(&k->head, STR("\r\n"), e);
}

static int take_link(struct http_upstream *up, struct link **ret, struct err *e)
{
    struct link *k = up->idle;
    if (k == NULL) {
        return link_new(up, ret, e);
    }
    up->idle = k->next;
    up->n_idle--;
    k->next = NULL;
    *ret = k;
    return 0;
}

static int start(struct upstream *base, const struct upstream_request *r,
                 const struct upstream_port *port, struct upstream_call **ret, struct err *e)
{
    struct http_upstream *up = CONTAINER_OF(base, struct http_upstream, base);
    struct link *k = NULL;
    int rc = take_link(up, &k, e);
    rc = rc < 0 ? rc : write_head(k, r, e);
    if (rc < 0) {
        drop_link(k);
        return rc;
    }
    struct upstream_call *c = xcalloc(1, sizeof *c);
    c->up = up;
    c->port = *port;
    c->body = r->body;
    c->is_head = str_eqc(r->method, "HEAD");
    c->link = k;
    k->call = c;
    c->next = up->calls;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    up->calls = c;
    timer_arm(k->deadline, clock_now() + up->first_byte);
    if (k->stream != NULL) {
        use_link(c);
    } else {
        connect_call(c);
    }
    *ret = c;
    return 0;
}

static void cancel(struct upstream_call *c)
{
    if (!c->over) {
        end_call(c);
    }
}

static void pause_call(struct upstream_call *c, bool paused)
{
    c->paused = paused;
    if (c->over || c->link->stream == NULL) {
        return;
    }
    if (paused) {
        stream_pause(c->link->stream); /* the deadline waits: it is we who keep it waiting */
    } else {
        stream_resume(c->link->stream);
        timer_arm(c->link->deadline, clock_now() + c->up->idle_time);
    }
}

/* --- life --- */

static void destroy(void *arg)
{
    struct http_upstream *up = arg;
    provider_done(&up->provider);
    free(up->name);
    free(up);
}

static void free_upstream(struct upstream *base)
{
    struct http_upstream *up = CONTAINER_OF(base, struct http_upstream, base);
    while (up->calls != NULL) {
        cancel(up->calls);
    }
    while (up->idle != NULL) {
        struct link *k = up->idle;
        up->idle = k->next;
        drop_link(k);
    }
    loop_retire(up->loop, destroy, up);
}

static const struct upstream_ops http_ops = {
    .start = start,
    .cancel = cancel,
    .pause = pause_call,
    .free = free_upstream,
};

static int take_socket(struct http_upstream *up, const char *path, struct err *e)
{
    struct sockaddr_un *addr = (struct sockaddr_un *)&up->unix_address.addr;
    if (path == NULL) {
        return 0;
    }
    if (strlen(path) >= sizeof addr->sun_path) {
        return ERR(e, ERR_CONFIG, "the path of a socket is too long: '%.60s…'", path);
    }
    addr->sun_family = AF_UNIX;
    memcpy(addr->sun_path, path, strlen(path) + 1);
    up->unix_address.len = sizeof *addr;
    return 0;
}

int upstream_http_new(struct loop *l, const struct upstream_curl_opts *o, struct upstream **ret,
                      struct err *e)
{
    struct http_upstream *up = xcalloc(1, sizeof *up);
    int rc = provider_init(&up->provider, o->url, o->key, e);
    rc = rc < 0 ? rc : take_socket(up, o->unix_socket, e);
    if (rc < 0) {
        provider_done(&up->provider);
        free(up);
        return rc;
    }
    up->loop = l;
    up->send_once = o->send_once;
    up->name = xstrdup(o->name);
    up->connect = o->connect != 0 ? o->connect : 15 * NSEC_PER_SEC;
    up->first_byte = o->first_byte != 0 ? o->first_byte : 600 * NSEC_PER_SEC;
    up->idle_time = o->idle != 0 ? o->idle : 300 * NSEC_PER_SEC;
    up->base = (struct upstream) { .ops = &http_ops,
                                   .name = up->name,
                                   .format = o->format,
                                   .formats = o->formats,
                                   .any_format = o->any_format,
                                   .secret = str_of(up->provider.key) };
    *ret = &up->base;
    return 0;
}
