/* SPDX-License-Identifier: MIT
 *
 * A client of HTTP/1.1. A link is a connection, with a call on it or idle in the list of spare
 * ones; a call has a link once it is connected.
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

struct link {
    struct http_upstream *up;
    struct link *next; /* among the idle ones */
    struct stream *stream;
    struct http *http;
    struct upstream_call *call; /* NULL: idle */
    bool reused;
    bool dirty; /* more came than the answer: nobody knows what that belongs to */
};

struct http_upstream {
    struct upstream base;
    struct loop *loop;
    struct provider provider;
    char *name;
    struct address unix_address; /* len 0: none */
    nsec connect, first_byte, idle_time;
    struct link *idle;
    size_t n_idle;
    struct upstream_call *calls; /* a list */
};

struct upstream_call {
    struct http_upstream *up;
    struct upstream_call *prev, *next;
    struct upstream_port port;
    struct link *link;
    struct resolve *resolve;
    struct dial *dial;
    struct timer *deadline;
    struct buf head;
    struct str body;
    size_t sent; /* of the body */
    bool is_head, head_sent, got_bytes, head_told, retried, paused, over;
};

static void connect_call(struct upstream_call *c);

/* --- ends --- */

static void drop_link(struct link *k)
{
    if (k != NULL && k->stream != NULL) {
        k->stream = stream_free(k->stream);
        k->http = http_free(k->http);
        loop_retire(k->up->loop, free, k);
    }
}

static void destroy_call(void *arg)
{
    struct upstream_call *c = arg;
    buf_done(&c->head);
    free(c);
}

static void end_call(struct upstream_call *c)
{
    c->over = true;
    c->deadline = timer_free(c->deadline);
    c->resolve = resolve_free(c->resolve);
    c->dial = dial_free(c->dial);
    if (c->head.ptr != NULL) {
        explicit_bzero(c->head.ptr, c->head.len); /* the key */
    }
    *(c->prev != NULL ? &c->prev->next : &c->up->calls) = c->next;
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    if (c->link != NULL) {
        c->link->call = NULL;
        drop_link(TAKE_PTR(c->link));
    }
    loop_retire(c->up->loop, destroy_call, c);
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
    struct upstream_call *c = arg;
    tell_error(c, UPSTREAM_TIMEOUT,
               c->head_told ? "nothing has come for too long" : "no answer in time");
}

/* The answer is complete: the link may carry another call. */
static void complete(struct upstream_call *c)
{
    const struct upstream_port port = c->port;
    struct link *k = c->link;
    struct http_upstream *up = c->up;
    bool reusable = http_head(k->http)->keep_alive && c->sent == c->body.len && !k->dirty &&
                    stream_queued(k->stream) == 0 && up->n_idle < IDLE_MAX;
    if (reusable) {
        c->link = NULL;
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
    timer_arm(c->deadline, clock_now() + c->up->idle_time);
    while (!c->over && (event = http_next(k->http, &in, &body, &e)) > HTTP_EV_MORE) {
        k->dirty = in.len > 0;
        take_event(c, event, body);
    }
    if (!c->over && event < 0) {
        tell_error(c, UPSTREAM_BROKEN, e.msg);
    }
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
    if (k->reused && !c->got_bytes && !c->retried) {
        c->retried = true;
        c->link = NULL;
        k->call = NULL;
        drop_link(k);
        connect_call(c);
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
    while (!c->over && stream_queued(c->link->stream) == 0 && c->sent < c->body.len) {
        size_t n = c->body.len - c->sent < SLICE ? c->body.len - c->sent : SLICE;
        const struct str pieces[] = { c->head_sent ? STR_EMPTY : buf_str(&c->head),
                                      str_slice(c->body, c->sent, c->sent + n) };
        if (stream_write(c->link->stream, pieces, 2, NULL) < 0) {
            break;
        }
        c->head_sent = true;
        c->sent += n;
    }
    if (!c->head_sent) {
        const struct str head = buf_str(&c->head);
        c->head_sent = stream_write(c->link->stream, &head, 1, NULL) == 0;
    }
}

static void on_drained(void *arg)
{
    struct link *k = arg;
    if (k->call != NULL) {
        send_more(k->call);
    }
}

static void use_link(struct upstream_call *c, struct link *k)
{
    c->link = k;
    k->call = c;
    c->sent = 0;
    c->head_sent = false;
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
    struct err e;
    if (why != NULL) {
        tell_error(c, why->code == ERR_TIMEOUT ? UPSTREAM_TIMEOUT : UPSTREAM_CONNECT, why->msg);
        return;
    }
    struct link *k = xcalloc(1, sizeof *k);
    const struct stream_opts o = { .max = QUEUE_LIMIT,
                                   .port = { on_bytes, on_end, on_drained, k } };
    k->up = c->up;
    if (stream_new(c->up->loop, fd, &o, &k->stream, &e) < 0) {
        cleanup_fd(&fd);
        free(k);
        tell_error(c, UPSTREAM_CONNECT, e.msg);
        return;
    }
    k->http = http_new(HTTP_RESPONSES);
    use_link(c, k);
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

static int write_head(struct upstream_call *c, const struct upstream_request *r, struct err *e)
{
    const struct provider *p = &c->up->provider;
    CLEANUP(buf) struct buf target = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf key = BUF_INIT(BUF_TEXT);
    enum llm_format format =
        r->endpoint.call == LLM_CALL_NONE ? c->up->base.format : r->endpoint.format;
    struct str name;
    provider_target(p, r->target, &target);
    int rc = http_write_request(r->method, buf_str(&target), &c->head, e);
    rc = rc < 0 ? rc : http_write_field(STR("Host"), str_of(p->authority), &c->head, e);
    for (size_t i = 0; rc == 0 && i < r->fields.len; i++) {
        rc = http_write_field(r->fields.items[i].name, r->fields.items[i].value, &c->head, e);
    }
    if (rc == 0 && provider_key_field(p, format, &name, &key)) {
        rc = http_write_field(name, buf_str(&key), &c->head, e);
        explicit_bzero(key.ptr, key.len);
    }
    rc = rc < 0 ? rc : buf_append(&c->head, STR("Accept-Encoding: identity\r\n"), e);
    if (rc == 0 && (r->body.len > 0 || str_eqc(r->method, "POST"))) {
        rc = buf_printf(&c->head, e, "Content-Length: %zu\r\n", r->body.len);
    }
    return rc < 0 ? rc : buf_append(&c->head, STR("\r\n"), e);
}

static int start(struct upstream *base, const struct upstream_request *r,
                 const struct upstream_port *port, struct upstream_call **ret, struct err *e)
{
    struct http_upstream *up = CONTAINER_OF(base, struct http_upstream, base);
    struct upstream_call *c = xcalloc(1, sizeof *c);
    c->up = up;
    c->port = *port;
    c->body = r->body;
    c->is_head = str_eqc(r->method, "HEAD");
    buf_init(&c->head, (size_t)1 << 20);
    int rc = write_head(c, r, e);
    rc = rc < 0 ? rc : timer_new(up->loop, on_deadline, c, &c->deadline, e);
    if (rc < 0) {
        destroy_call(c);
        return rc;
    }
    c->next = up->calls;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    up->calls = c;
    timer_arm(c->deadline, clock_now() + up->first_byte);
    struct link *k = up->idle;
    if (k != NULL) {
        up->idle = k->next;
        up->n_idle--;
        k->next = NULL;
        use_link(c, k);
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
    if (c->over || c->link == NULL) {
        return;
    }
    if (paused) {
        stream_pause(c->link->stream);
        timer_cancel(c->deadline); /* it is we who keep it waiting */
    } else {
        stream_resume(c->link->stream);
        timer_arm(c->deadline, clock_now() + c->up->idle_time);
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
    up->name = xstrdup(o->name);
    up->connect = o->connect != 0 ? o->connect : 15 * NSEC_PER_SEC;
    up->first_byte = o->first_byte != 0 ? o->first_byte : 600 * NSEC_PER_SEC;
    up->idle_time = o->idle != 0 ? o->idle : 300 * NSEC_PER_SEC;
    up->base = (struct upstream) { .ops = &http_ops,
                                   .name = up->name,
                                   .format = o->format,
                                   .formats = o->formats,
                                   .any_format = o->any_format };
    *ret = &up->base;
    return 0;
}
