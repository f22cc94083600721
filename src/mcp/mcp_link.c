/* SPDX-License-Identifier: MIT
 *
 * Messages as HTTP requests; see mcp_link.h. An exchange is one request with its answer; the GET of
 * a session is one too, without a key.
 */
#include "mcp/mcp_link.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/macro.h"
#include "gateway/upstream_curl.h"
#include "io/loop.h"
#include "io/timer.h"
#include "mcp/mcp_fields.h"
#include "wire/jsonrpc.h"
#include "wire/sse.h"

#define DAY           (86400 * NSEC_PER_SEC) /* who waits has a time of its own */
#define FIELDS_MAX    (64 + MCP_FIELDS_MAX)
#define STREAMS_MAX   50                 /* how often the stream of a session is opened again … */
#define STREAM_PAUSE  (2 * NSEC_PER_SEC) /* … and after what time */
#define LEAVE_TIME    (2 * NSEC_PER_SEC)
#define SESSION_MAX   1024
#define EXCHANGES_MAX 512

enum purpose { POST, STREAM, LEAVE };

struct exchange {
    struct link *link;
    struct exchange *prev, *next;
    struct arena *arena; /* of the request */
    struct upstream_request request;
    struct upstream_call *call;
    enum purpose purpose;
    uint64_t key;
    bool is_initialize, is_initialized;
    int status;
    bool events;
    struct sse sse;
    struct buf body;
};

struct link {
    struct mcp_transport base; /* first */
    struct loop *loop;
    struct arena *arena;
    struct upstream *upstream;
    struct str target;
    struct http_field *headers;
    size_t n_headers;
    struct str version;
    struct buf session;
    struct exchange *exchanges;
    size_t n_exchanges;
    struct timer *timer; /* for the stream, or for leaving */
    int streams;
    struct mcp_transport_port port;
    bool closing, ended, freed;
};

static int open_stream(struct link *l);

static struct link *self(struct mcp_transport *t)
{
    return (struct link *)t;
}

/* --- ends --- */

static void destroy_exchange(void *arg)
{
    struct exchange *x = arg;
    sse_done(&x->sse);
    buf_done(&x->body);
    arena_free(x->arena);
    free(x);
}

/* No callback from here on. `over`: the call has ended by itself. */
static void leave(struct exchange *x, bool over)
{
    struct link *l = x->link;
    *(x->prev != NULL ? &x->prev->next : &l->exchanges) = x->next;
    if (x->next != NULL) {
        x->next->prev = x->prev;
    }
    l->n_exchanges--;
    if (!over) {
        l->upstream->ops->cancel(x->call);
    }
    x->call = NULL;
    loop_retire(l->loop, destroy_exchange, x);
}

static void end_link(struct link *l, const struct err *why)
{
    if (l->ended) {
        return;
    }
    l->ended = true;
    timer_cancel(l->timer);
    while (l->exchanges != NULL) {
        leave(l->exchanges, false);
    }
    l->port.on_end(l->port.arg, why);
}

static void lose(struct link *l, uint64_t key, const struct err *why)
{
    if (key != 0 && !l->ended && !l->closing) {
        l->port.on_lost(l->port.arg, key, why);
    }
}

static void give_up(struct exchange *x, const struct err *why)
{
    struct link *l = x->link;
    uint64_t key = x->key;
    leave(x, false);
    lose(l, key, why);
}

/* --- what an answer says --- */

static bool type_is(const struct http_fields *f, const char *type)
{
    const struct str *value = http_find(f, "content-type");
    struct str rest = value == NULL ? STR_EMPTY : *value;
    return http_name_is(str_trim(str_split(&rest, ';')), type);
}

static void on_head(void *arg, int status, const struct http_fields *fields)
{
    struct exchange *x = arg;
    struct link *l = x->link;
    const struct str *session = http_find(fields, "mcp-session-id");
    x->status = status;
    x->events = status == 200 && type_is(fields, "text/event-stream");
    if (x->is_initialize && status == 200 && session != NULL && session->len <= SESSION_MAX) {
        buf_reset(&l->session);
        buf_add(&l->session, *session);
    }
}

/* False: the exchange is gone. */
static bool read_events(struct exchange *x, struct str bytes)
{
    struct link *l = x->link;
    struct sse_event ev;
    struct err e = { 0 };
    int rc;
    sse_feed(&x->sse, bytes);
    while ((rc = sse_next(&x->sse, &ev, &e)) > 0) {
        /* An event without data is there for its id, which is of no use here. */
        if (str_trim(ev.data).len > 0 && (ev.name.len == 0 || str_eqc(ev.name, "message"))) {
            l->port.on_message(l->port.arg, ev.data);
        }
        if (l->freed || l->ended || x->call == NULL) {
            return false;
        }
    }
    if (rc < 0) {
        give_up(x, &e);
    }
    return rc == 0;
}

static void on_data(void *arg, struct str bytes)
{
    struct exchange *x = arg;
    struct err e = { 0 };
    if (x->events) {
        (void)read_events(x, bytes);
    } else if (buf_append(&x->body, bytes, &e) < 0) {
        (void)ERR(&e, ERR_LIMIT, "the server sent a message of more than %zu bytes",
                  MCP_MESSAGE_MAX);
        give_up(x, &e);
    }
}

/* A refusal that is a message of the protocol is reported as such. One with another id, such as
 * "server-error" of the Python SDK, is no more than its status. */
static bool is_answer(struct str body, uint64_t key)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct jsonrpc_message m;
    return jsonrpc_read(a, body, NULL, &m, NULL) == 0 && m.kind == JSONRPC_ERROR &&
           json_is(m.id, JSON_INT) && json_int(m.id, 0) == (int64_t)key;
}

static void refuse(struct link *l, int status, uint64_t key, struct str body)
{
    struct err e = { 0 };
    enum err_code code = status == 401 || status == 403  ? ERR_DENIED
                         : status >= 400 && status < 500 ? ERR_PROTO
                                                         : ERR_UPSTREAM;
    struct str text = str_trim(str_slice(body, 0, 120));
    text = str_slice(text, 0, str_find(text, STR("\n")));
    (void)ERR(&e, code, "the server answers with status %d%s%.*s", status, text.len > 0 ? ": " : "",
              STR_ARG(text));
    if (status == 404 && l->session.len > 0) {
        (void)ERR(&e, ERR_UPSTREAM, "the server no longer knows its session");
        end_link(l, &e);
        return;
    }
    lose(l, key, &e);
}

static void after_post(struct link *l, const struct exchange *x, struct str body)
{
    struct err e = { 0 };
    bool good = x->status >= 200 && x->status < 300;
    if (!good && (x->key == 0 || !is_answer(body, x->key))) {
        refuse(l, x->status, x->key, body);
        return;
    }
    if (x->is_initialized && good) {
        (void)open_stream(l);
    }
    if (str_trim(body).len > 0 && !x->events && x->key != 0) {
        l->port.on_message(l->port.arg, body);
    }
    if (!l->freed) { /* nothing, if it was answered */
        (void)ERR(&e, ERR_UPSTREAM, "the server ended its answer before it was one");
        lose(l, x->key, &e);
    }
}

/* The server may end the stream when it likes, and need not have one. */
static void after_stream(struct link *l, int status)
{
    if (status == 200 && l->streams < STREAMS_MAX && !l->closing) {
        timer_arm(l->timer, clock_now() + STREAM_PAUSE);
    }
}

static void on_end(void *arg)
{
    struct exchange *x = arg;
    struct link *l = x->link;
    struct sse_event ev;
    if (x->events && sse_end(&x->sse, &ev) && str_trim(ev.data).len > 0) {
        l->port.on_message(l->port.arg, ev.data);
        if (l->freed || l->ended || x->call == NULL) {
            return;
        }
    }
    leave(x, true); /* its memory stays for this round */
    if (x->purpose == LEAVE) {
        end_link(l, NULL);
    } else if (x->purpose == STREAM) {
        after_stream(l, x->status);
    } else {
        after_post(l, x, buf_str(&x->body));
    }
}

static void on_error(void *arg, const struct upstream_error *error)
{
    struct exchange *x = arg;
    struct link *l = x->link;
    struct err e = { 0 };
    leave(x, true);
    if (x->purpose == LEAVE) {
        end_link(l, NULL);
    } else if (x->purpose == STREAM) {
        after_stream(l, x->status);
    } else {
        (void)ERR(&e, ERR_UPSTREAM, "the server is not reached: %s", error->message);
        lose(l, x->key, &e);
    }
}

/* --- requests --- */

struct fields {
    struct http_field *items;
    size_t len;
};

static void add(struct fields *f, struct str name, struct str value)
{
    if (f->len < FIELDS_MAX) {
        f->items[f->len++] = (struct http_field) { name, value };
    }
}

static struct exchange *new_exchange(struct link *l, enum purpose purpose, const char *method,
                                     struct fields *f)
{
    struct exchange *x = xcalloc(1, sizeof *x);
    x->link = l;
    x->arena = arena_new();
    x->purpose = purpose;
    sse_init(&x->sse, MCP_MESSAGE_MAX);
    buf_init(&x->body, MCP_MESSAGE_MAX);
    x->request.method = str_of(method);
    x->request.target = l->target;
    f->items = arena_array(x->arena, FIELDS_MAX, sizeof *f->items);
    f->len = 0;
    add(f, STR("Accept"),
        purpose == STREAM ? STR("text/event-stream") : STR("application/json, text/event-stream"));
    if (l->session.len > 0) {
        add(f, STR("Mcp-Session-Id"), arena_str(x->arena, buf_str(&l->session)));
    }
    for (size_t i = 0; i < l->n_headers; i++) {
        add(f, l->headers[i].name, l->headers[i].value);
    }
    return x;
}

/* On failure the exchange is gone. */
static int begin(struct exchange *x, const struct fields *f, struct err *e)
{
    struct link *l = x->link;
    const struct upstream_port port = {
        .on_head = on_head, .on_data = on_data, .on_end = on_end, .on_error = on_error, .arg = x
    };
    x->request.fields = (struct http_fields) { f->items, f->len };
    int rc = l->upstream->ops->start(l->upstream, &x->request, &port, &x->call, e);
    if (rc < 0) {
        destroy_exchange(x);
        return rc;
    }
    x->next = l->exchanges;
    if (x->next != NULL) {
        x->next->prev = x;
    }
    l->exchanges = x;
    l->n_exchanges++;
    return 0;
}

static int send_message(struct mcp_transport *t, const struct mcp_outgoing *m, struct err *e)
{
    struct link *l = self(t);
    struct fields f;
    struct http_field more[MCP_FIELDS_MAX];
    if (l->closing || l->ended) {
        return ERR(e, ERR_UNAVAILABLE, "the connection is being ended");
    }
    if (l->n_exchanges >= EXCHANGES_MAX) {
        return ERR(e, ERR_LIMIT, "%d requests are under way", EXCHANGES_MAX);
    }
    if (m->stateless && str_eqc(m->method, "notifications/cancelled")) {
        return 0; /* to close the request is to cancel it: drop() */
    }
    struct exchange *x = new_exchange(l, POST, "POST", &f);
    x->key = m->key;
    x->is_initialize = str_eqc(m->method, "initialize");
    x->is_initialized = str_eqc(m->method, "notifications/initialized");
    x->request.body = arena_str(x->arena, m->text);
    add(&f, STR("Content-Type"), STR("application/json"));
    if (m->version.len > 0) {
        add(&f, STR("MCP-Protocol-Version"), arena_str(x->arena, m->version));
        l->version = str_eq(l->version, m->version) ? l->version : arena_str(l->arena, m->version);
    }
    size_t n = mcp_fields(x->arena, m, more);
    for (size_t i = 0; i < n; i++) {
        add(&f, more[i].name, more[i].value);
    }
    return begin(x, &f, e);
}

static int open_stream(struct link *l)
{
    struct fields f;
    if (l->closing || l->ended || l->streams >= STREAMS_MAX) {
        return 0;
    }
    l->streams++;
    struct exchange *x = new_exchange(l, STREAM, "GET", &f);
    add(&f, STR("MCP-Protocol-Version"), l->version);
    return begin(x, &f, NULL);
}

static void drop(struct mcp_transport *t, uint64_t key)
{
    struct link *l = self(t);
    for (struct exchange *x = l->exchanges; x != NULL; x = x->next) {
        if (x->key == key && x->purpose == POST) {
            leave(x, false);
            return;
        }
    }
}

/* --- life --- */

static void on_timer(void *arg)
{
    struct link *l = arg;
    if (l->closing) {
        end_link(l, NULL);
    } else {
        (void)open_stream(l);
    }
}

static void close_link(struct mcp_transport *t)
{
    struct link *l = self(t);
    struct fields f;
    if (l->closing || l->ended) {
        return;
    }
    l->closing = true;
    while (l->exchanges != NULL) {
        leave(l->exchanges, false);
    }
    bool waits = false;
    if (l->session.len > 0) {
        struct exchange *x = new_exchange(l, LEAVE, "DELETE", &f);
        add(&f, STR("MCP-Protocol-Version"), l->version);
        waits = begin(x, &f, NULL) == 0;
    }
    timer_arm(l->timer, clock_now() + (waits ? LEAVE_TIME : 0));
}

static void destroy(void *arg)
{
    struct link *l = arg;
    for (size_t i = 0; i < l->n_headers; i++) {
        explicit_bzero((char *)l->headers[i].value.ptr, l->headers[i].value.len);
    }
    buf_done(&l->session);
    arena_free(l->arena);
    free(l);
}

static void free_link(struct mcp_transport *t)
{
    struct link *l = self(t);
    l->freed = l->ended = true;
    while (l->exchanges != NULL) {
        leave(l->exchanges, false);
    }
    l->timer = timer_free(l->timer);
    l->upstream->ops->free(TAKE_PTR(l->upstream));
    loop_retire(l->loop, destroy, l);
}

static const struct mcp_transport_ops ops = {
    .send = send_message,
    .drop = drop,
    .close = close_link,
    .free = free_link,
};

static void copy_headers(struct link *l, const struct json *headers)
{
    size_t n = json_is(headers, JSON_OBJECT) ? headers->object.len : 0;
    l->headers = arena_array(l->arena, n + 1, sizeof *l->headers);
    for (size_t i = 0; i < n; i++) {
        const struct json_member *m = &headers->object.members[i];
        l->headers[l->n_headers++] =
            (struct http_field) { arena_str(l->arena, m->key),
                                  arena_str(l->arena, json_str(m->value, STR_EMPTY)) };
    }
}

int mcp_link_new(const struct mcp_http_opts *o, struct mcp_transport **ret, struct err *e)
{
    struct link *l = xcalloc(1, sizeof *l);
    struct str url = str_of(o->url);
    size_t host = str_find(url, STR("://")) + 3;
    struct str rest = str_slice(url, host, url.len);
    size_t path = host;
    while (path < url.len && url.ptr[path] != '/' && url.ptr[path] != '?') {
        path++;
    }
    l->base.ops = &ops;
    l->loop = o->loop;
    l->port = o->port;
    l->arena = arena_new();
    l->version = STR_EMPTY;
    struct str target = str_slice(url, path, url.len);
    bool rooted = target.len > 0 && target.ptr[0] == '/';
    l->target = str_of(arena_printf(l->arena, "%s%.*s", rooted ? "" : "/", STR_ARG(target)));
    buf_init(&l->session, SESSION_MAX);
    copy_headers(l, o->headers);
    const struct upstream_curl_opts u = { .name = "mcp",
                                          .url = arena_dup(l->arena, str_slice(url, 0, path)),
                                          .any_format = true,
                                          .first_byte = DAY,
                                          .idle = DAY };
    int rc = rest.len == 0 ? ERR(e, ERR_CONFIG, "'%.100s' is not an address", o->url)
                           : upstream_curl_new(l->loop, &u, &l->upstream, e);
    rc = rc < 0 ? rc : timer_new(l->loop, on_timer, l, &l->timer, e);
    if (rc < 0) {
        if (l->upstream != NULL) {
            l->upstream->ops->free(l->upstream);
        }
        destroy(l);
        return rc;
    }
    *ret = &l->base;
    return 0;
}
