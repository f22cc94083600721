/* SPDX-License-Identifier: MIT
 *
 * The MCP client: its life, requests that wait for an answer, and what comes in.
 */
#include "mcp/mcp_client.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/macro.h"
#include "mcp/mcp_client_priv.h"

#define OUT_MAX     JSONRPC_BYTES_MAX
#define MESSAGE_MAX 4096 /* of a progress message */

struct mcp_client *mcp_client_new(const struct mcp_client_opts *o)
{
    struct mcp_client *c = xcalloc(1, sizeof *c);
    c->arena = arena_new();
    c->opts = *o;
    c->opts.name = arena_dup(c->arena, str_of(o->name));
    c->opts.version = arena_dup(c->arena, str_of(o->version));
    c->revision = MCP_2025_11_25;
    return c;
}

struct mcp_client *mcp_client_free(struct mcp_client *c)
{
    if (c == NULL) {
        return NULL;
    }
    while (c->pending != NULL) {
        struct mcp_pending *p = c->pending;
        c->pending = p->next;
        free(p);
    }
    arena_free(c->list_arena);
    arena_free(c->next_arena);
    arena_free(c->arena);
    free(c);
    return NULL;
}

const char *mcp_client_version(const struct mcp_client *c)
{
    return c->agreed ? mcp_revision_name(c->revision) : "";
}

const struct json *mcp_client_server(const struct mcp_client *c)
{
    return c->server;
}

struct mcp_client_stats mcp_client_stats(const struct mcp_client *c)
{
    return c->stats;
}

bool mcp_client_ready(const struct mcp_client *c)
{
    return c->state == MCP_CLIENT_OPEN && c->list != NULL && !c->stale && !c->listing;
}

/* --- out --- */

struct json *mcp_client_info(struct mcp_client *c, struct arena *a)
{
    struct json *info = json_object(a);
    json_setc(a, info, "name", json_cstr(a, c->opts.name));
    json_setc(a, info, "version", json_cstr(a, c->opts.version));
    return info;
}

void mcp_client_meta(struct mcp_client *c, struct arena *a, struct json *params)
{
    struct json *meta = json_get(params, "_meta");
    if (c->revision < MCP_2026_07_28) {
        return;
    }
    if (!json_is(meta, JSON_OBJECT)) {
        meta = json_object(a);
        json_setc(a, params, "_meta", meta);
    }
    json_setc(a, meta, MCP_META_VERSION, json_cstr(a, mcp_revision_name(c->revision)));
    json_setc(a, meta, MCP_META_CLIENT, mcp_client_info(c, a));
    json_setc(a, meta, MCP_META_CAPABILITIES, json_object(a));
}

/* Text and version are filled in; what else the transport may want is the caller's. */
int mcp_client_send(struct mcp_client *c, struct mcp_outgoing *m, const struct json *id,
                    const struct json *params, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(OUT_MAX);
    int rc = jsonrpc_write_request(id, m->method, params, &out, e);
    if (rc < 0) {
        return rc;
    }
    m->text = buf_str(&out);
    m->stateless = c->revision >= MCP_2026_07_28;
    m->version = c->agreed || m->stateless ? str_of(mcp_revision_name(c->revision)) : STR_EMPTY;
    return c->opts.port.send(c->opts.port.arg, m, e);
}

static struct mcp_pending *add_pending(struct mcp_client *c, enum mcp_pending_kind kind)
{
    struct mcp_pending *p = xcalloc(1, sizeof *p);
    p->key = ++c->last_key;
    p->kind = kind;
    p->next = c->pending;
    c->pending = p;
    c->n_pending++;
    return p;
}

/* NULL: there is none of this key. */
static struct mcp_pending *take_pending(struct mcp_client *c, uint64_t key)
{
    for (struct mcp_pending **at = &c->pending; *at != NULL; at = &(*at)->next) {
        struct mcp_pending *p = *at;
        if (p->key == key) {
            *at = p->next;
            c->n_pending--;
            return p;
        }
    }
    return NULL;
}

static struct mcp_pending *find_pending(struct mcp_client *c, uint64_t key)
{
    for (struct mcp_pending *p = c->pending; p != NULL; p = p->next) {
        if (p->key == key) {
            return p;
        }
    }
    return NULL;
}

void mcp_client_ask(struct mcp_client *c, enum mcp_pending_kind kind, const char *method,
                    struct arena *a, struct json *params)
{
    struct err e = { 0 };
    struct mcp_pending *p = add_pending(c, kind);
    struct mcp_outgoing m = { .key = p->key, .method = str_of(method) };
    params = params == NULL ? json_object(a) : params;
    mcp_client_meta(c, a, params);
    struct json *id = json_integer(a, (int64_t)p->key);
    if (mcp_client_send(c, &m, id, params, &e) < 0) {
        mcp_client_fail(c, &e);
    }
}

/* --- ends --- */

static void tell(struct mcp_client *c, struct mcp_pending *p, const struct mcp_client_answer *a)
{
    if (p->kind == MCP_PENDING_CALL) {
        p->done(p->arg, a);
    } else if (c->state != MCP_CLIENT_FAILED) {
        mcp_client_opened(c, p->kind, a);
    }
    free(p);
}

void mcp_client_fail(struct mcp_client *c, const struct err *why)
{
    if (c->state == MCP_CLIENT_FAILED) {
        return;
    }
    const struct err reason = *why; /* may lie in what goes away */
    c->state = MCP_CLIENT_FAILED;
    while (c->pending != NULL) {
        struct mcp_pending *p = take_pending(c, c->pending->key);
        tell(c, p, &(struct mcp_client_answer) { .lost = &reason });
    }
    c->opts.port.failed(c->opts.port.arg, &reason);
}

void mcp_client_end(struct mcp_client *c, const struct err *why)
{
    mcp_client_fail(c, why);
}

void mcp_client_lost(struct mcp_client *c, uint64_t key, const struct err *why)
{
    uint64_t newest = c->last_key; /* what is asked meanwhile is not lost */
    struct mcp_pending *p = NULL;
    const struct mcp_client_answer a = { .lost = why };
    if (key != 0) {
        p = take_pending(c, key);
        if (p != NULL) {
            tell(c, p, &a);
        }
        return;
    }
    do {
        p = c->pending;
        while (p != NULL && (p->key > newest || p->kind == MCP_PENDING_LISTEN)) {
            p = p->next;
        }
        if (p != NULL) {
            tell(c, take_pending(c, p->key), &a);
        }
    } while (p != NULL);
}

/* --- calls --- */

int mcp_client_call(struct mcp_client *c, const struct mcp_client_call *call, uint64_t *ret_key,
                    struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    if (c->state != MCP_CLIENT_OPEN) {
        return ERR(e, ERR_UNAVAILABLE, "the server is not running");
    }
    if (c->n_pending >= MCP_CLIENT_CALLS_MAX) {
        return ERR(e, ERR_LIMIT, "%d calls are under way", MCP_CLIENT_CALLS_MAX);
    }
    struct mcp_pending *p = add_pending(c, MCP_PENDING_CALL);
    p->done = call->done;
    p->progress = call->progress;
    p->arg = call->arg;
    struct json *params = json_object(a);
    struct json *meta = call->meta == NULL ? json_object(a) : json_copy(a, call->meta);
    struct json *id = json_integer(a, (int64_t)p->key);
    if (call->progress != NULL) {
        json_setc(a, meta, "progressToken", id);
    } else {
        (void)json_remove(meta, STR("progressToken")); /* somebody else's */
    }
    json_setc(a, params, "name", json_string(a, call->name));
    json_setc(a, params, "arguments", json_copy(a, call->arguments));
    if (json_len(meta) > 0) {
        json_setc(a, params, "_meta", meta);
    }
    mcp_client_meta(c, a, params);
    struct mcp_outgoing m = { .key = p->key,
                              .method = STR("tools/call"),
                              .name = call->name,
                              .schema = call->schema,
                              .arguments = call->arguments };
    int rc = mcp_client_send(c, &m, id, params, e);
    if (rc < 0) {
        free(take_pending(c, p->key));
        return rc;
    }
    *ret_key = p->key;
    return 0;
}

void mcp_client_cancel(struct mcp_client *c, uint64_t key, const char *reason)
{
    struct mcp_pending *p = take_pending(c, key);
    if (p == NULL) {
        return;
    }
    free(p);
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *params = json_object(a);
    struct mcp_outgoing m = { .method = STR("notifications/cancelled") };
    json_setc(a, params, "requestId", json_integer(a, (int64_t)key));
    json_setc(a, params, "reason", json_cstr(a, reason));
    (void)!mcp_client_send(c, &m, NULL, params, NULL); /* a courtesy: nobody waits any more */
    c->opts.port.drop(c->opts.port.arg, key);
}

/* --- in --- */

static bool key_of(const struct json *id, uint64_t *ret)
{
    if (!json_is(id, JSON_INT) || id->integer <= 0) {
        return false;
    }
    *ret = (uint64_t)id->integer;
    return true;
}

static void on_answer(struct mcp_client *c, const struct jsonrpc_message *m, size_t bytes)
{
    uint64_t key;
    struct mcp_pending *p = key_of(m->id, &key) ? take_pending(c, key) : NULL;
    if (p == NULL) {
        c->stats.strays++;
        return;
    }
    c->noise = c->noise_size = 0;
    tell(c, p,
         &(struct mcp_client_answer) { .result = m->result,
                                       .bytes = bytes,
                                       .is_error = m->kind == JSONRPC_ERROR,
                                       .code = m->code,
                                       .text = m->text,
                                       .data = m->data });
}

/* A server may ask whether we live; all else it asks is nothing that we have offered. */
static void on_request(struct mcp_client *c, const struct jsonrpc_message *m)
{
    CLEANUP(buf) struct buf out = BUF_INIT(OUT_MAX);
    struct err e = { 0 };
    bool ping = str_eqc(m->method, "ping");
    int rc =
        ping ? jsonrpc_write_result(m->id, NULL, &out, &e)
             : jsonrpc_write_error(m->id, JSONRPC_METHOD_NOT_FOUND,
                                   STR("this client offers nothing to servers"), NULL, &out, &e);
    c->stats.refused += ping ? 0 : 1;
    if (rc == 0) {
        const struct mcp_outgoing answer = { .text = buf_str(&out),
                                             .version = str_of(mcp_client_version(c)) };
        rc = c->opts.port.send(c->opts.port.arg, &answer, &e);
    }
    if (rc < 0) {
        mcp_client_fail(c, &e);
    }
}

static void on_progress(struct mcp_client *c, const struct json *params)
{
    uint64_t key;
    const struct json *value = json_get(params, "progress");
    bool number = json_is(value, JSON_INT) || json_is(value, JSON_REAL);
    bool known = key_of(json_get(params, "progressToken"), &key);
    struct mcp_pending *p = known && number ? find_pending(c, key) : NULL;
    if (p == NULL || p->progress == NULL) {
        c->stats.strays++;
        return;
    }
    double now = json_real(value, 0);
    if (p->has_progress && !(now > p->last)) {
        return; /* must grow */
    }
    p->has_progress = true;
    p->last = now;
    struct str text = json_str(json_get(params, "message"), STR_EMPTY);
    text = str_slice(text, 0, MESSAGE_MAX);
    p->progress(p->arg, now, json_real(json_get(params, "total"), -1),
                str_slice(text, 0, str_utf8_prefix(text)));
}

static void on_notification(struct mcp_client *c, const struct jsonrpc_message *m)
{
    c->stats.notified++;
    if (str_eqc(m->method, "notifications/progress")) {
        on_progress(c, m->params);
    } else if (str_eqc(m->method, "notifications/tools/list_changed") &&
               c->state == MCP_CLIENT_OPEN && !c->stale) {
        c->stale = true;
        if (c->list != NULL && !c->listing) {
            c->opts.port.changed(c->opts.port.arg);
        }
    }
}

/* Whatever is not an answer that somebody waits for is noise; some is usual. */
static void check_noise(struct mcp_client *c)
{
    struct err e = { 0 };
    if (c->noise > MCP_CLIENT_NOISE_MAX || c->noise_size > MCP_CLIENT_NOISE_SIZE) {
        (void)ERR(&e, ERR_LIMIT,
                  "the server sent %zu messages (%zu bytes) without any response to a request",
                  c->noise, c->noise_size);
        mcp_client_fail(c, &e);
    }
}

static void on_value(struct mcp_client *c, const struct json *v, size_t bytes)
{
    struct jsonrpc_message m;
    c->stats.messages++;
    c->noise++;
    if (jsonrpc_read_value(v, &m, NULL) < 0) {
        c->stats.broken++;
    } else if (m.kind == JSONRPC_REQUEST) {
        on_request(c, &m);
    } else if (m.kind == JSONRPC_NOTIFICATION) {
        on_notification(c, &m);
    } else {
        on_answer(c, &m, bytes);
    }
    check_noise(c);
}

void mcp_client_feed(struct mcp_client *c, struct str text)
{
    static const struct json_limits limits = { .max_bytes = MCP_MESSAGE_MAX,
                                               .max_depth = JSONRPC_DEPTH_MAX,
                                               .max_values = 1000000,
                                               .no_positions = true };
    struct json *v;
    if (c->state == MCP_CLIENT_FAILED || str_trim(text).len == 0) {
        return;
    }
    c->noise_size += text.len;
    CLEANUP(arena) struct arena *a = arena_new();
    if (json_parse(a, text, &limits, &v, NULL) < 0) {
        c->stats.broken++;
        c->noise++;
        check_noise(c);
        return;
    }
    /* Servers of 2025-03-26 may send several messages as one. */
    bool batch = json_is(v, JSON_ARRAY) && c->revision == MCP_2025_03_26;
    for (size_t i = 0; batch && i < json_len(v) && c->state != MCP_CLIENT_FAILED; i++) {
        on_value(c, json_item(v, i), text.len);
    }
    if (!batch) {
        on_value(c, v, text.len);
    }
}
