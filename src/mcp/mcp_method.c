/* SPDX-License-Identifier: MIT
 *
 * What the MCP server answers to each method but tools/call.
 */
#include <stdio.h>

#include "base/macro.h"
#include "mcp/mcp_priv.h"

static void initialize(struct mcp_exchange *x)
{
    struct arena *a = x->arena;
    const struct json *asked = json_get(x->message.params, "protocolVersion");
    if (!json_is(asked, JSON_STRING)) {
        mcp_reply_error(x, 400, JSONRPC_INVALID_PARAMS, NULL, "'protocolVersion' must be a string");
        return;
    }
    /* The newest that has this handshake, unless the client knows an older one. */
    enum mcp_revision r = MCP_2025_11_25;
    if (!mcp_revision_parse(asked->string, &r) || r > MCP_2025_11_25) {
        r = MCP_2025_11_25;
    }
    x->revision = r;
    x->session = mcp_session_new(x->m, r);
    struct json *result = json_object(a);
    json_setc(a, result, "protocolVersion", json_cstr(a, mcp_revision_name(r)));
    json_setc(a, result, "capabilities", mcp_capabilities(a));
    json_setc(a, result, "serverInfo", mcp_server_info(x->m, a));
    if (x->m->opts.instructions != NULL) {
        json_setc(a, result, "instructions", json_cstr(a, x->m->opts.instructions));
    }
    x->takes_json = true; /* the id of the session is a field of its head */
    mcp_reply_result(x, result);
}

/* Hints for caches: the list may be another one after any call of a tool. */
static void set_cache(struct mcp_exchange *x, struct json *result)
{
    if (x->revision >= MCP_2026_07_28) {
        json_setc(x->arena, result, "ttlMs", json_integer(x->arena, 0));
        json_setc(x->arena, result, "cacheScope", json_cstr(x->arena, "private"));
    }
}

static void discover(struct mcp_exchange *x)
{
    struct arena *a = x->arena;
    struct json *result = json_object(a);
    struct json *versions = json_array(a);
    for (int i = MCP_REVISION_MAX - 1; i >= 0; i--) {
        json_push(a, versions, json_cstr(a, mcp_revision_name((enum mcp_revision)i)));
    }
    json_setc(a, result, "supportedVersions", versions);
    json_setc(a, result, "capabilities", mcp_capabilities(a));
    if (x->m->opts.instructions != NULL) {
        json_setc(a, result, "instructions", json_cstr(a, x->m->opts.instructions));
    }
    set_cache(x, result);
    mcp_reply_result(x, result);
}

/* "VERSION.OFFSET": a page of a list that is another one now would skip or repeat tools. */
static bool read_cursor(struct str cursor, uint64_t version, size_t *ret)
{
    int64_t of, offset;
    struct str rest = cursor;
    struct str first = str_split(&rest, '.');
    if (!str_to_i64(first, &of) || rest.ptr == NULL || !str_to_i64(rest, &offset) || offset < 0 ||
        (uint64_t)of != (version & INT64_MAX)) {
        return false;
    }
    *ret = (size_t)offset;
    return true;
}

/* What a client of an older revision does not know is left out. */
static struct json *shown(struct mcp_exchange *x, const struct json *tool)
{
    struct json *copy = json_copy(x->arena, tool);
    if (x->revision < MCP_2025_06_18) {
        (void)json_remove(copy, STR("outputSchema"));
    }
    return copy;
}

static void list(struct mcp_exchange *x)
{
    struct err e;
    struct arena *a = x->arena;
    const struct mcp_tools *tools = &x->m->opts.tools;
    const struct json *cursor = json_get(x->message.params, "cursor");
    struct json *all;
    size_t from = 0;
    uint64_t version = tools->version(tools->arg);
    if (tools->list(tools->arg, a, &all, &e) < 0) {
        mcp_reply_error(x, 200, JSONRPC_INTERNAL_ERROR, NULL, "%s", e.msg);
        return;
    }
    size_t n = json_len(all) < MCP_TOOLS_MAX ? json_len(all) : MCP_TOOLS_MAX;
    bool good = cursor == NULL || (json_is(cursor, JSON_STRING) &&
                                   read_cursor(cursor->string, version, &from) && from < n);
    if (!good) {
        mcp_reply_error(x, 200, JSONRPC_INVALID_PARAMS, NULL,
                        "the cursor is not of this list: begin again without one");
        return;
    }
    size_t page = x->m->opts.page == 0 ? n : x->m->opts.page;
    size_t to = n - from < page ? n : from + page;
    struct json *result = json_object(a);
    struct json *some = json_array(a);
    for (size_t i = from; i < to; i++) {
        json_push(a, some, shown(x, json_item(all, i)));
    }
    json_setc(a, result, "tools", some);
    if (to < n) {
        const char *next =
            arena_printf(a, "%llu.%zu", (unsigned long long)(version & INT64_MAX), to);
        json_setc(a, result, "nextCursor", json_cstr(a, next));
    }
    set_cache(x, result);
    mcp_reply_result(x, result);
}

static void listen(struct mcp_exchange *x)
{
    struct arena *a = x->arena;
    const struct json *filter = json_get(x->message.params, "notifications");
    if (!json_is(filter, JSON_OBJECT)) {
        mcp_reply_error(x, 200, JSONRPC_INVALID_PARAMS, NULL, "'notifications' must be an object");
        return;
    }
    if (!x->takes_events) {
        mcp_reply_error(x, 406, JSONRPC_INVALID_REQUEST, NULL,
                        "Accept must have text/event-stream");
        return;
    }
    if (x->m->n_streams >= MCP_STREAMS_MAX) {
        mcp_reply_error(x, 503, JSONRPC_INTERNAL_ERROR, NULL, "too many streams are open");
        return;
    }
    x->stream = MCP_STREAM_LISTEN;
    x->m->n_streams++;
    x->wants_changes = json_bool(json_get(filter, "toolsListChanged"), false);
    x->announced = x->m->opts.tools.version(x->m->opts.tools.arg);
    struct json *params = json_object(a);
    struct json *meta = json_object(a);
    struct json *granted = json_object(a);
    if (x->wants_changes) {
        json_setc(a, granted, "toolsListChanged", json_boolean(a, true));
    }
    json_setc(a, meta, MCP_META_SUBSCRIPTION, json_copy(a, x->message.id));
    json_setc(a, params, "_meta", meta);
    json_setc(a, params, "notifications", granted);
    mcp_notify(x, "notifications/subscriptions/acknowledged", params);
}

void mcp_method(struct mcp_exchange *x, const struct http_fields *fields)
{
    bool stateless = x->revision >= MCP_2026_07_28;
    struct str method = x->message.method;
    if (str_eqc(method, "tools/call")) {
        mcp_call_begin(x, fields);
    } else if (str_eqc(method, "tools/list")) {
        list(x);
    } else if (str_eqc(method, "initialize") && !stateless) {
        initialize(x);
    } else if (str_eqc(method, "ping") && !stateless) {
        mcp_reply_result(x, json_object(x->arena));
    } else if (str_eqc(method, "server/discover") && stateless) {
        discover(x);
    } else if (str_eqc(method, "subscriptions/listen") && stateless) {
        listen(x);
    } else {
        mcp_reply_error(x, stateless ? 404 : 200, JSONRPC_METHOD_NOT_FOUND, NULL,
                        "Method not found: %.*s", STR_ARG(method));
    }
}

void mcp_method_notification(struct mcp_exchange *x)
{
    const struct json *id = json_get(x->message.params, "requestId");
    if (str_eqc(x->message.method, "notifications/cancelled") && jsonrpc_id_ok(id)) {
        struct mcp_handle *h = mcp_call_find(x->m, x->session, id);
        struct mcp_exchange *waiting = h != NULL ? h->x : NULL;
        if (h != NULL) {
            mcp_call_drop(h);
        }
        if (waiting != NULL) {
            mcp_exchange_end(waiting); /* there is no answer to what was cancelled */
        }
    }
    mcp_exchange_whole(x, 202, STR_EMPTY);
}
