/* SPDX-License-Identifier: MIT
 *
 * One client: requests in, answers out, one after the other. Requests that come before an answer is
 * complete wait in `pending`, unread. Each state has a deadline; the one function that changes the
 * state arms it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/macro.h"
#include "gateway/gateway_priv.h"
#include "io/stream.h"

enum connection_state {
    CONNECTION_IDLE,   /* not a byte of the next request has come */
    CONNECTION_HEAD,   /* a part of its head has */
    CONNECTION_TURN,   /* memory is full: the body stays in the socket for a while */
    CONNECTION_BODY,   /* the exchange gets the body */
    CONNECTION_BUSY,   /* the request is complete, the exchange answers */
    CONNECTION_DRAIN,  /* our last words are out; what the client still sends is thrown away */
    CONNECTION_TUNNEL, /* another protocol */
    CONNECTION_OVER,
};

/* Small pieces of an answer leave together, at the end of the round of the loop in which they
 * came. */
#define BATCH_MAX  ((size_t)32 << 10)
#define BATCH_KEPT ((size_t)4 << 10) /* by an idle connection */
/* What waits for a client that reads slowly: beyond the mark the upstream is held back. */
#define CONGESTION_MARK ((size_t)256 << 10)
#define QUEUE_MAX       ((size_t)8 << 20)
/* Pipelined requests wait while so much of the responses before them is unread. */
#define UNREAD_MAX ((size_t)64 << 10)
/* Of one connection in one round of the loop: what they used is released after it. */
#define PIPELINED_MAX 8
/* The first read of a request: its head, and a small body. Of a large one the rest goes where it
 * shall lie, without a copy; and while it waits for its turn there is not much in between. */
#define FIRST_READ ((size_t)4 << 10)
/* One read of the stream; reading stops while something is pending. */
#define PENDING_MAX ((size_t)1 << 20)
/* How long a refused client may go on sending before it must have read why. */
#define DRAIN_TIME  (5 * NSEC_PER_SEC)
#define BODY_TIME   (600 * NSEC_PER_SEC) /* of one request, however it drips */
#define TUNNEL_IDLE (600 * NSEC_PER_SEC)

struct connection {
    struct gateway *g;
    struct connection *prev, *next;
    struct stream *stream;
    struct http *http;
    struct timer *deadline;
    enum connection_state state;
    struct buf pending;
    struct turn turn;
    struct exchange *exchange;
    struct tunnel *tunnel;
    struct buf head;  /* of the answer, until it goes out with the first bytes */
    struct buf batch; /* of its body */
    bool flush_posted;
    bool consuming; /* consume() is running: it goes on by itself */
    bool refused;   /* the answer came before the request was complete */
    bool trusted;   /* a request on it had the token */
    bool clogged;   /* requests wait until the client has read what it asked for before */
    bool keep_alive;
    bool is_head; /* HEAD: no body in the answer */
    bool chunked;
    bool ended;   /* the last byte of the answer was given to the stream */
    int64_t left; /* of a body of known length; -1: not known */
    nsec body_until;
    size_t queued_before; /* at the last look of the deadline */
};

static void consume(struct connection *c, struct str input);

/* --- states --- */

static nsec allowed(const struct connection *c, enum connection_state s)
{
    const struct gateway_limits *l = &c->g->opts.limits;
    switch (s) {
    case CONNECTION_IDLE:
        return c->trusted ? l->idle : l->head;
    case CONNECTION_HEAD:
        return l->head;
    case CONNECTION_BODY:
    case CONNECTION_BUSY: /* looks whether the client reads what is queued */
        return l->stall;
    case CONNECTION_DRAIN:
        return DRAIN_TIME;
    case CONNECTION_TUNNEL:
        return TUNNEL_IDLE;
    case CONNECTION_TURN: /* ends by itself */
    case CONNECTION_OVER:
        break;
    }
    return 0;
}

static void enter(struct connection *c, enum connection_state s)
{
    c->state = s;
    nsec limit = allowed(c, s);
    if (limit == 0) {
        timer_cancel(c->deadline);
    } else {
        timer_arm(c->deadline, clock_now() + limit);
    }
}

static void destroy(void *arg)
{
    struct connection *c = arg;
    c->http = http_free(c->http);
    buf_done(&c->pending);
    buf_done(&c->head);
    buf_done(&c->batch);
    free(c);
}

static void close_connection(struct connection *c)
{
    if (c->state == CONNECTION_OVER) {
        return;
    }
    enter(c, CONNECTION_OVER);
    queue_leave(&c->g->turns, &c->turn);
    if (c->exchange != NULL) {
        exchange_abort(TAKE_PTR(c->exchange));
    }
    if (c->tunnel != NULL) {
        tunnel_free(TAKE_PTR(c->tunnel));
    }
    c->stream = stream_free(c->stream);
    c->deadline = timer_free(c->deadline);
    *(c->prev != NULL ? &c->prev->next : &c->g->connections) = c->next;
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    gateway_connection_over(c->g);
    loop_retire(c->g->loop, destroy, c);
}

/* --- answers --- */

/* Sends the head, if it is still there, what was batched, and `more`, as one chunk; `last` ends a
 * chunked body. */
static int write_out(struct connection *c, struct str more, bool last)
{
    char size[HTTP_CHUNK_HEAD_LEN];
    struct str pieces[6];
    size_t n = 0;
    size_t len = c->batch.len + more.len;
    if (c->head.len > 0) {
        pieces[n++] = buf_str(&c->head);
    }
    if (c->chunked && len > 0) {
        pieces[n++] = http_chunk_head(len, size);
    }
    if (c->batch.len > 0) {
        pieces[n++] = buf_str(&c->batch);
    }
    if (more.len > 0) {
        pieces[n++] = more;
    }
    if (c->chunked && len > 0) {
        pieces[n++] = HTTP_CHUNK_TAIL;
    }
    if (c->chunked && last) {
        pieces[n++] = HTTP_CHUNK_LAST;
    }
    int rc = stream_write(c->stream, pieces, n, NULL);
    buf_reset(&c->head);
    buf_reset(&c->batch);
    return rc;
}

/* False: the client is too far behind, the connection was cut. */
static bool flush(struct connection *c, struct str more, bool last)
{
    if (c->state == CONNECTION_OVER) {
        return false;
    }
    if (write_out(c, more, last) < 0) {
        connection_cut(c); /* whoever produces did not stop: an answer with a hole is none */
        return false;
    }
    if (stream_queued(c->stream) > 0 && !timer_armed(c->deadline)) {
        timer_arm(c->deadline, clock_now() + c->g->opts.limits.stall);
    }
    return true;
}

static void flush_later(void *arg)
{
    struct connection *c = arg;
    c->flush_posted = false;
    if (c->head.len > 0 || c->batch.len > 0) {
        (void)flush(c, STR_EMPTY, false);
    }
}

static void post_flush(struct connection *c)
{
    if (!c->flush_posted) {
        c->flush_posted = true;
        loop_post(c->g->loop, flush_later, c);
    }
}

static bool closes(const struct connection *c)
{
    return !c->keep_alive || c->refused || c->g->stopping;
}

static int write_framing(struct connection *c, int status, int64_t length, struct err *e)
{
    struct buf *out = &c->head;
    int rc = 0;
    if (length >= 0 && status != 204) {
        rc = http_write_length((uint64_t)length, out, e);
    } else if (c->chunked) {
        rc = buf_append(out, STR("Transfer-Encoding: chunked\r\n"), e);
    }
    rc = rc < 0 || !closes(c) ? rc : buf_append(out, STR("Connection: close\r\n"), e);
    return rc < 0 ? rc : buf_append(out, STR("\r\n"), e);
}

void connection_head(struct connection *c, int status, const struct http_fields *fields,
                     int64_t length)
{
    struct err e;
    bool no_body = c->is_head || status == 204 || status == 304;
    bool old = http_head(c->http)->minor == 0; /* does not know chunks: the end is the end */
    c->refused = c->state != CONNECTION_BUSY;
    c->chunked = !no_body && length < 0 && !old;
    c->left = length;
    c->keep_alive = c->keep_alive && (no_body || length >= 0 || c->chunked);
    int rc = http_write_status(status, &c->head, &e);
    for (size_t i = 0; rc == 0 && i < fields->len; i++) {
        rc = http_write_field(fields->items[i].name, fields->items[i].value, &c->head, &e);
    }
    rc = rc < 0 ? rc : write_framing(c, status, length, &e);
    if (rc < 0) {
        LOG_DEBUG("gateway", "bad_answer_head", LOG_STR("why", e.msg));
        buf_reset(&c->head);
        connection_cut(c);
        return;
    }
    post_flush(c);
}

void connection_data(struct connection *c, struct str bytes)
{
    if (c->state == CONNECTION_OVER || bytes.len == 0 || c->is_head) {
        return;
    }
    c->left -= c->left >= 0 ? (int64_t)bytes.len : 0;
    /* what completes the answer need not wait for the upstream to say so */
    if (c->left == 0 || c->batch.len + bytes.len > BATCH_MAX) {
        (void)flush(c, bytes, false);
        return;
    }
    buf_add(&c->batch, bytes);
    post_flush(c);
}

bool connection_congested(const struct connection *c)
{
    return c->state != CONNECTION_OVER && stream_queued(c->stream) + c->batch.len > CONGESTION_MARK;
}

static void go_on_reading(struct connection *c)
{
    struct buf input = c->pending;
    buf_init(&c->pending, PENDING_MAX);
    stream_resume(c->stream);
    consume(c, buf_str(&input));
    buf_done(&input);
}

static void resume_requests(void *arg)
{
    struct connection *c = arg;
    if (c->state == CONNECTION_IDLE && !c->consuming) {
        go_on_reading(c);
    }
}

bool connection_last(struct connection *c)
{
    if (!c->ended && flush(c, STR_EMPTY, true)) {
        c->ended = true;
    }
    return c->ended;
}

void connection_end(struct connection *c)
{
    if (c->state == CONNECTION_OVER || !connection_last(c)) {
        return;
    }
    c->exchange = NULL;
    if (c->batch.cap > BATCH_KEPT) {
        buf_done(&c->batch);
    }
    if (closes(c)) {
        stream_finish(c->stream);
        stream_resume(c->stream);
        enter(c, CONNECTION_DRAIN);
        return;
    }
    enter(c, CONNECTION_IDLE);
    if (!c->consuming) {
        loop_post(c->g->loop, resume_requests, c);
    }
}

void connection_cut(struct connection *c)
{
    if (c->exchange != NULL) {
        struct exchange *x = TAKE_PTR(c->exchange);
        if (x->state != EXCHANGE_OVER) {
            exchange_abort(x);
        }
    }
    if (c->state != CONNECTION_OVER) {
        (void)!write_out(c, STR_EMPTY, false); /* the client shall see what there was */
    }
    close_connection(c);
}

/* --- requests --- */

static int status_of(const struct err *e)
{
    return e->code == ERR_LIMIT ? 431 : e->code == ERR_UNSUPPORTED ? 501 : 400;
}

/* Nothing can be trusted about where a message that does not parse ends: last words, then close. */
static void refuse_bytes(struct connection *c, int status, const char *why)
{
    const struct refusal r = { .status = status, .kind = LLM_ERR_INVALID, .message = str_of(why) };
    c->keep_alive = false;
    c->g->metrics.refused++;
    gateway_tell(c->g,
                 &(struct gateway_event) { .kind = GATEWAY_REFUSED, .status = status, .why = why });
    if (c->exchange != NULL) {
        exchange_abort(TAKE_PTR(c->exchange));
    }
    respond_error(c, LLM_CHAT, &r);
}

static void begin_body(struct connection *c)
{
    const struct http_head *head = http_head(c->http);
    const struct str *expect = http_find(&head->fields, "expect");
    c->body_until = clock_now() + BODY_TIME;
    enter(c, CONNECTION_BODY);
    exchange_expect(c->exchange);
    if (expect != NULL && http_name_is(*expect, "100-continue")) {
        const struct str go_on = STR("HTTP/1.1 100 Continue\r\n\r\n");
        (void)!stream_write(c->stream, &go_on, 1, NULL);
    }
}

static void on_turn(void *arg)
{
    struct connection *c = arg;
    begin_body(c);
    go_on_reading(c);
}

static void on_head(struct connection *c)
{
    const struct http_head *head = http_head(c->http);
    c->keep_alive = head->keep_alive;
    c->is_head = str_eqc(head->method, "HEAD");
    c->chunked = c->refused = c->ended = false;
    enter(c, CONNECTION_BODY);
    c->exchange = exchange_new(c, c->g, head);
    c->trusted = c->trusted || exchange_trusted(c->exchange);
    bool has_body = head->chunked || head->length > 0;
    if (has_body && (!exchange_wanted(c->exchange) || !exchange_trusted(c->exchange))) {
        exchange_start(c->exchange); /* says why not, or what needs no body */
    } else if (head->length > 0 && queue_join(&c->g->turns, &c->turn, (size_t)head->length)) {
        enter(c, CONNECTION_TURN);
        stream_pause(c->stream);
    } else if (has_body) {
        begin_body(c);
    }
}

static void on_body(struct connection *c, struct str bytes)
{
    exchange_body(c->exchange, bytes);
    if (c->state == CONNECTION_BODY && clock_now() < c->body_until) {
        enter(c, CONNECTION_BODY); /* there was progress: the deadline moves, up to a point */
    }
}

static bool reads(const struct connection *c)
{
    return c->state == CONNECTION_IDLE || c->state == CONNECTION_HEAD ||
           c->state == CONNECTION_BODY;
}

static void step(struct connection *c, int event, struct str body)
{
    switch (event) {
    case HTTP_EV_HEAD:
        on_head(c);
        break;
    case HTTP_EV_BODY:
        on_body(c, body);
        break;
    case HTTP_EV_END:
        enter(c, CONNECTION_BUSY);
        exchange_start(c->exchange);
        break;
    default:
        break;
    }
}

static void keep_pending(struct connection *c, struct str bytes)
{
    if (bytes.len > 0) {
        stream_pause(c->stream);
        if (buf_append(&c->pending, bytes, NULL) < 0) {
            close_connection(c);
        }
    }
}

/* A client that sends requests and reads no responses. */
static bool is_clogged(const struct connection *c)
{
    return c->state == CONNECTION_IDLE && stream_queued(c->stream) > UNREAD_MAX;
}

static void consume(struct connection *c, struct str input)
{
    int answered = 0;
    c->consuming = true;
    while (reads(c) && !is_clogged(c) && answered < PIPELINED_MAX) {
        struct str body;
        struct err e;
        int event = http_next(c->http, &input, &body, &e);
        if (event < 0) {
            refuse_bytes(c, status_of(&e), e.msg);
        } else if (event > HTTP_EV_MORE) {
            step(c, event, body);
            answered += event == HTTP_EV_END ? 1 : 0;
        } else {
            if (c->state == CONNECTION_IDLE && !http_idle(c->http)) {
                enter(c, CONNECTION_HEAD);
            }
            break;
        }
    }
    c->consuming = false;
    if (c->state == CONNECTION_BUSY || c->state == CONNECTION_TURN || is_clogged(c)) {
        c->clogged = c->state == CONNECTION_IDLE;
        keep_pending(c, input);
    } else if (c->state == CONNECTION_IDLE && input.len > 0) {
        keep_pending(c, input);
        loop_post(c->g->loop, resume_requests, c);
    } else if (c->state == CONNECTION_TUNNEL && input.len > 0) {
        tunnel_from_client(c->tunnel, input);
    }
}

/* --- the stream --- */

static char *on_room(void *arg, size_t *len)
{
    struct connection *c = arg;
    if (c->state == CONNECTION_BODY) {
        return exchange_space(c->exchange, len);
    }
    if (c->state == CONNECTION_IDLE || c->state == CONNECTION_HEAD) {
        *len = FIRST_READ;
    }
    return NULL;
}

static void on_bytes(void *arg, struct str chunk)
{
    struct connection *c = arg;
    switch (c->state) {
    case CONNECTION_IDLE:
    case CONNECTION_HEAD:
    case CONNECTION_BODY:
        consume(c, chunk);
        break;
    case CONNECTION_TURN:
    case CONNECTION_BUSY:
        keep_pending(c, chunk);
        break;
    case CONNECTION_TUNNEL:
        tunnel_from_client(c->tunnel, chunk);
        break;
    case CONNECTION_DRAIN:
    case CONNECTION_OVER:
        break;
    }
}

static void on_end(void *arg, const struct err *why)
{
    struct connection *c = arg;
    if (c->state == CONNECTION_TUNNEL && why == NULL) {
        tunnel_client_ended(c->tunnel);
        return;
    }
    close_connection(c);
}

static void on_drained(void *arg)
{
    struct connection *c = arg;
    if (c->state == CONNECTION_TUNNEL) {
        tunnel_client_drained(c->tunnel);
    } else if (c->clogged) {
        c->clogged = false;
        loop_post(c->g->loop, resume_requests, c);
    } else if (c->exchange != NULL) {
        exchange_drained(c->exchange);
    }
}

static void on_deadline(void *arg)
{
    struct connection *c = arg;
    size_t queued = stream_queued(c->stream);
    switch (c->state) {
    case CONNECTION_HEAD:
        refuse_bytes(c, 408, "the head of the request took too long");
        return;
    case CONNECTION_BODY:
        refuse_bytes(c, 408, "the body of the request took too long");
        return;
    case CONNECTION_BUSY:
        if (queued > 0 && queued == c->queued_before) {
            break; /* the client does not read */
        }
        c->queued_before = queued;
        enter(c, CONNECTION_BUSY);
        return;
    case CONNECTION_TUNNEL:
        if (!tunnel_moved(c->tunnel)) {
            break;
        }
        enter(c, CONNECTION_TUNNEL);
        return;
    case CONNECTION_TURN:
    case CONNECTION_IDLE:
    case CONNECTION_DRAIN:
    case CONNECTION_OVER:
        break;
    }
    close_connection(c);
}

/* --- life --- */

void connection_start(struct gateway *g, int fd)
{
    struct connection *c = xcalloc(1, sizeof *c);
    struct err e;
    const struct stream_opts o = { .max = QUEUE_MAX,
                                   .port = { on_bytes, on_end, on_drained, c, on_room } };
    c->g = g;
    c->turn = (struct turn) { .fn = on_turn, .arg = c };
    buf_init(&c->pending, PENDING_MAX);
    buf_init(&c->head, BUF_TEXT);
    buf_init(&c->batch, BUF_TEXT);
    int rc = timer_new(g->loop, on_deadline, c, &c->deadline, &e);
    rc = rc < 0 ? rc : stream_new(g->loop, fd, &o, &c->stream, &e);
    if (rc < 0) {
        LOG_DEBUG("gateway", "no_connection", LOG_STR("why", e.msg));
        cleanup_fd(&fd);
        c->deadline = timer_free(c->deadline);
        free(c);
        return;
    }
    c->http = http_new(HTTP_REQUESTS);
    c->next = g->connections;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    g->connections = c;
    g->n_connections++;
    enter(c, CONNECTION_IDLE);
}

/* A connection on which nothing is under way, with or without trust. */
static bool is_spare(const struct connection *c, bool trusted)
{
    return c->trusted == trusted && (c->state == CONNECTION_IDLE || c->state == CONNECTION_HEAD ||
                                     c->state == CONNECTION_DRAIN);
}

bool connection_make_room(struct gateway *g)
{
    struct connection *oldest[2] = { NULL, NULL }; /* without and with trust */
    for (struct connection *c = g->connections; c != NULL; c = c->next) {
        for (int trusted = 0; trusted < 2; trusted++) { /* the list begins with the newest */
            oldest[trusted] = is_spare(c, trusted != 0) ? c : oldest[trusted];
        }
    }
    struct connection *victim = oldest[0] != NULL ? oldest[0] : oldest[1];
    if (victim != NULL) {
        close_connection(victim);
    }
    return victim != NULL;
}

void connection_free_all(struct gateway *g)
{
    while (g->connections != NULL) {
        close_connection(g->connections);
    }
}

/* Those that carry nothing but model calls, finished or not. */
void connection_close_models(struct gateway *g)
{
    for (struct connection *c = g->connections, *next; c != NULL; c = next) {
        next = c->next;
        if (c->exchange == NULL || c->exchange->kind != EXCHANGE_MOUNT) {
            close_connection(c);
        }
    }
}

struct http *connection_take_parser(struct connection *c)
{
    return TAKE_PTR(c->http);
}

void connection_close_idle(struct gateway *g)
{
    for (struct connection *c = g->connections, *next; c != NULL; c = next) {
        next = c->next;
        if (c->state == CONNECTION_IDLE || c->state == CONNECTION_HEAD ||
            c->state == CONNECTION_DRAIN || c->state == CONNECTION_TUNNEL) {
            close_connection(c);
        }
    }
}

/* --- tunnels --- */

void connection_start_over(struct connection *c)
{
    c->exchange = NULL;
    c->http = http_free(c->http);
    c->http = http_new(HTTP_REQUESTS); /* behind a CONNECT the parser reads nothing */
    if (connection_raw(c, CONNECTED) < 0) {
        close_connection(c);
        return;
    }
    enter(c, CONNECTION_IDLE);
    if (!c->consuming) {
        loop_post(c->g->loop, resume_requests, c);
    }
}

void connection_become_tunnel(struct connection *c, struct tunnel *t)
{
    c->exchange = NULL;
    c->tunnel = t;
    enter(c, CONNECTION_TUNNEL);
    stream_resume(c->stream);
    if (c->pending.len > 0 && !c->consuming) {
        struct buf input = c->pending;
        buf_init(&c->pending, PENDING_MAX);
        tunnel_from_client(t, buf_str(&input));
        buf_done(&input);
    }
}

int connection_raw(struct connection *c, struct str bytes)
{
    return stream_write(c->stream, &bytes, 1, NULL);
}

void connection_hold(struct connection *c, bool hold)
{
    if (hold) {
        stream_pause(c->stream);
    } else {
        stream_resume(c->stream);
    }
}

void connection_raw_end(struct connection *c, bool cut)
{
    if (cut) {
        close_connection(c);
    } else {
        stream_finish(c->stream);
    }
}
