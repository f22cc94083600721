/* SPDX-License-Identifier: MIT
 *
 * Several messages in one request, as 2025-03-26 has it and no other revision: each is an exchange
 * of its own whose answer is kept until all are there. They go out as one array, so there is no
 * progress on the way.
 */
#include <stdlib.h>

#include "base/macro.h"
#include "mcp/mcp_priv.h"

struct part {
    struct mcp_batch *batch;
    struct buf body;
};

struct mcp_batch {
    struct mcp *m;
    struct mcp_batch *prev, *next;
    struct mcp_exchange *x; /* NULL: the client is gone */
    struct part *parts;
    size_t n_parts;
    size_t waiting;
};

void mcp_batch_free(struct mcp_batch *b)
{
    *(b->prev != NULL ? &b->prev->next : &b->m->batches) = b->next;
    if (b->next != NULL) {
        b->next->prev = b->prev;
    }
    for (size_t i = 0; i < b->n_parts; i++) {
        buf_done(&b->parts[i].body);
    }
    free(b->parts);
    free(b);
}

void mcp_batch_orphan(struct mcp_batch *b)
{
    b->x = NULL;
}

static int collect(const struct mcp_batch *b, struct buf *out)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < b->n_parts; i++) {
        const struct buf *body = &b->parts[i].body;
        if (body->len > 0) {
            rc = buf_append(out, out->len == 0 ? STR("[") : STR(","), NULL);
            rc = rc < 0 ? rc : buf_append(out, buf_str(body), NULL);
        }
    }
    return rc < 0 || out->len == 0 ? rc : buf_append(out, STR("]"), NULL);
}

/* One less to wait for. */
static void settle(struct mcp_batch *b)
{
    if (--b->waiting > 0) {
        return;
    }
    struct mcp_exchange *x = TAKE_PTR(b->x);
    CLEANUP(buf) struct buf out = BUF_INIT(b->m->max_message);
    int rc = collect(b, &out);
    mcp_batch_free(b);
    if (x == NULL) {
        return;
    }
    x->batch = NULL;
    if (rc < 0) {
        mcp_reply_error(x, 200, JSONRPC_INTERNAL_ERROR, NULL, "the answers are too large");
    } else if (out.len == 0) {
        mcp_exchange_whole(x, 202, STR_EMPTY);
    } else {
        mcp_reply_text(x, 200, buf_str(&out));
    }
}

static void on_head(void *arg, int status, const struct http_fields *fields)
{
    (void)arg;
    (void)status;
    (void)fields;
}

static void on_data(void *arg, struct str bytes)
{
    struct part *p = arg;
    (void)!buf_append(&p->body, bytes, NULL); /* of the size of an answer */
}

static void on_end(void *arg)
{
    settle(((struct part *)arg)->batch);
}

static void dispatch(struct mcp_exchange *p, const struct json *value,
                     const struct http_fields *fields)
{
    struct err e;
    if (jsonrpc_read_value(json_copy(p->arena, value), &p->message, &e) < 0) {
        mcp_reply_error(p, 200, jsonrpc_code_of(&e), NULL, "%s", e.msg);
        return;
    }
    const struct json *meta = json_get(p->message.params, "_meta");
    p->meta = json_is(meta, JSON_OBJECT) ? meta : NULL;
    if (p->message.kind == JSONRPC_NOTIFICATION) {
        mcp_method_notification(p);
    } else if (p->message.kind != JSONRPC_REQUEST) {
        mcp_exchange_whole(p, 202, STR_EMPTY);
    } else if (str_eqc(p->message.method, "initialize")) {
        mcp_reply_error(p, 200, JSONRPC_INVALID_REQUEST, NULL, "initialize stands alone");
    } else {
        mcp_method(p, fields);
    }
}

static void begin_part(struct mcp_batch *b, size_t i, const struct json *value,
                       const struct http_fields *fields)
{
    const struct mcp_answer answer = { on_head, on_data, on_end, &b->parts[i] };
    struct mcp_exchange *p = mcp_exchange_new(b->m, &answer);
    p->session = b->x->session;
    p->revision = b->x->revision;
    p->takes_json = true;
    p->busy++;
    dispatch(p, value, fields);
    p->busy--;
    mcp_exchange_pump(p);
}

void mcp_batch_begin(struct mcp_exchange *x, const struct json *messages,
                     const struct http_fields *fields)
{
    size_t n = json_len(messages);
    if (n == 0 || n > MCP_BATCH_MAX) {
        mcp_reply_error(x, 400, JSONRPC_INVALID_REQUEST, NULL, "a batch is 1 to %d messages",
                        MCP_BATCH_MAX);
        return;
    }
    struct mcp_batch *b = xcalloc(1, sizeof *b);
    b->m = x->m;
    b->x = x;
    b->parts = xcalloc(n, sizeof *b->parts);
    b->n_parts = n;
    b->waiting = n + 1; /* one for us */
    b->next = x->m->batches;
    if (b->next != NULL) {
        b->next->prev = b;
    }
    x->m->batches = b;
    x->batch = b;
    for (size_t i = 0; i < n; i++) {
        b->parts[i].batch = b;
        buf_init(&b->parts[i].body, x->m->max_message);
    }
    for (size_t i = 0; i < n; i++) {
        if (b->x != NULL && b->x->session != NULL) {
            begin_part(b, i, json_item(messages, i), fields);
        } else { /* a part of it has ended the session, or the server */
            settle(b);
        }
    }
    settle(b);
}
