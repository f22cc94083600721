/* SPDX-License-Identifier: MIT
 *
 * The way out of the MCP server: one JSON document or a stream of events, held back while the
 * client is slow. All that leaves goes through
 * mcp_exchange_pump(), which may be the end of the exchange.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "mcp/mcp_priv.h"
#include "wire/sse.h"

/* A piece that a slow client's queue can take: it can say "wait" after each. */
#define PIECE_MAX ((size_t)64 << 10)

struct mcp_exchange *mcp_exchange_new(struct mcp *m, const struct mcp_answer *answer)
{
    struct mcp_exchange *x = xcalloc(1, sizeof *x);
    x->m = m;
    x->answer = *answer;
    x->arena = arena_new();
    buf_init(&x->out, m->max_message + PIECE_MAX);
    x->next = m->exchanges;
    if (x->next != NULL) {
        x->next->prev = x;
    }
    m->exchanges = x;
    return x;
}

static void destroy(struct mcp_exchange *x)
{
    arena_free(x->arena);
    buf_done(&x->out);
    free(x);
}

/* Out of everybody's sight; the memory goes when nobody is inside. */
static void leave(struct mcp_exchange *x)
{
    x->gone = true;
    *(x->prev != NULL ? &x->prev->next : &x->m->exchanges) = x->next;
    if (x->next != NULL) {
        x->next->prev = x->prev;
    }
    if (x->stream != MCP_STREAM_NONE) {
        x->m->n_streams--;
    }
    if (x->call != NULL) {
        x->call->x = NULL;
        x->call = NULL;
    }
    if (x->batch != NULL) {
        mcp_batch_orphan(TAKE_PTR(x->batch));
    }
}

void mcp_exchange_pump(struct mcp_exchange *x)
{
    if (x->busy > 0) {
        return; /* who is inside goes on */
    }
    x->busy++;
    while (!x->gone && !x->paused && x->sent < x->out.len) {
        /* A copy: the callback may add to what is to be sent. */
        CLEANUP(buf) struct buf piece = BUF_INIT(PIECE_MAX);
        buf_add(&piece, str_slice(buf_str(&x->out), x->sent, x->sent + PIECE_MAX));
        x->sent += piece.len;
        x->answer.data(x->answer.arg, buf_str(&piece));
    }
    if (!x->gone && x->sent == x->out.len) {
        buf_reset(&x->out);
        x->sent = 0;
    }
    if (!x->gone && x->ended && x->out.len == 0) {
        leave(x);
        x->answer.end(x->answer.arg);
    }
    x->busy--;
    if (x->gone) {
        destroy(x);
    }
}

static void start(struct mcp_exchange *x, int status, const struct http_field *fields, size_t n)
{
    x->started = true;
    x->busy++;
    x->answer.head(x->answer.arg, status, &(struct http_fields) { fields, n });
    x->busy--;
}

void mcp_exchange_whole(struct mcp_exchange *x, int status, struct str json)
{
    struct http_field fields[4];
    char length[24];
    size_t n = 0;
    (void)snprintf(length, sizeof length, "%zu", json.len);
    fields[n++] = (struct http_field) { STR("content-length"), str_of(length) };
    if (json.len > 0) {
        fields[n++] = (struct http_field) { STR("content-type"), STR("application/json") };
    }
    if (x->session != NULL && str_eqc(x->message.method, "initialize")) {
        fields[n++] = (struct http_field) { STR("mcp-session-id"), x->session->id };
    }
    if (status == 405) {
        fields[n++] = (struct http_field) { STR("allow"), STR("POST") };
    }
    if (json.len > 0) {
        buf_add(&x->out, json);
    }
    x->ended = true;
    start(x, status, fields, n);
    mcp_exchange_pump(x);
}

void mcp_exchange_stream(struct mcp_exchange *x)
{
    static const struct http_field fields[] = {
        { { "content-type", 12 }, { "text/event-stream", 17 } },
        { { "cache-control", 13 }, { "no-cache", 8 } },
        { { "x-accel-buffering", 17 }, { "no", 2 } },
    };
    if (!x->started) {
        x->events = true;
        start(x, 200, fields, ARRAY_LEN(fields));
    }
}

void mcp_exchange_event(struct mcp_exchange *x, struct str json)
{
    mcp_exchange_stream(x);
    if (sse_write(STR("message"), json, &x->out, NULL) < 0) {
        x->ended = true; /* a stream with a hole is none: it ends here */
    }
    mcp_exchange_pump(x);
}

void mcp_exchange_comment(struct mcp_exchange *x)
{
    if (x->out.len == 0 && buf_append(&x->out, STR(":\n\n"), NULL) == 0) {
        mcp_exchange_pump(x);
    }
}

void mcp_exchange_end(struct mcp_exchange *x)
{
    mcp_exchange_stream(x);
    x->ended = true;
    mcp_exchange_pump(x);
}

void mcp_pause(struct mcp_exchange *x, bool paused)
{
    x->paused = paused;
    if (paused) {
        return;
    }
    if (x->stream != MCP_STREAM_NONE) {
        x->busy++;
        mcp_announce(x); /* what was news meanwhile */
        x->busy--;
    }
    mcp_exchange_pump(x);
}

void mcp_close(struct mcp_exchange *x)
{
    struct mcp_handle *h = x->call;
    if (x->gone) {
        return;
    }
    bool cancels = h != NULL && x->revision >= MCP_2026_07_28;
    leave(x);
    if (cancels) {
        mcp_call_drop(h);
    }
    if (x->busy == 0) {
        destroy(x);
    }
}

/* --- JSON-RPC --- */

void mcp_reply_text(struct mcp_exchange *x, int status, struct str json)
{
    bool events = x->events || (!x->takes_json && x->takes_events && status == 200);
    if (!events) {
        mcp_exchange_whole(x, status, json);
        return;
    }
    x->busy++;
    mcp_exchange_event(x, json);
    x->busy--;
    mcp_exchange_end(x);
}

void mcp_reply_error(struct mcp_exchange *x, int status, int code, const struct json *data,
                     const char *fmt, ...)
{
    CLEANUP(buf) struct buf text = BUF_INIT((size_t)64 << 10);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    va_list ap;
    va_start(ap, fmt);
    int rc = buf_vprintf(&text, NULL, fmt, ap);
    va_end(ap);
    struct str why = rc < 0 ? STR("the error is too long to be told") : buf_str(&text);
    if (jsonrpc_write_error(x->message.id, code, why, data, &out, NULL) == 0) {
        mcp_reply_text(x, status, buf_str(&out));
    }
}

void mcp_reply_result(struct mcp_exchange *x, struct json *result)
{
    CLEANUP(buf) struct buf out = BUF_INIT(x->m->max_message);
    if (x->revision >= MCP_2026_07_28) {
        struct json *meta = json_get(result, "_meta");
        if (!json_is(meta, JSON_OBJECT)) {
            meta = json_object(x->arena);
        }
        if (json_get(result, "resultType") == NULL) {
            json_setc(x->arena, result, "resultType", json_cstr(x->arena, "complete"));
        }
        json_setc(x->arena, meta, MCP_META_SERVER, mcp_server_info(x->m, x->arena));
        json_setc(x->arena, result, "_meta", meta);
    }
    if (jsonrpc_write_result(x->message.id, result, &out, NULL) < 0) {
        mcp_reply_error(x, 200, JSONRPC_INTERNAL_ERROR, NULL, "the answer is larger than %zu bytes",
                        x->m->max_message);
        return;
    }
    mcp_reply_text(x, 200, buf_str(&out));
}

void mcp_notify(struct mcp_exchange *x, const char *method, const struct json *params)
{
    CLEANUP(buf) struct buf out = BUF_INIT(PIECE_MAX);
    if (jsonrpc_write_notification(str_of(method), params, &out, NULL) == 0) {
        mcp_exchange_event(x, buf_str(&out));
    }
}
