/* SPDX-License-Identifier: MIT
 *
 * Calls of tools: from tools/call to the port, and from the port's result to one that the client's
 * revision knows and that keeps its promises.
 */
#include <stdlib.h>

#include "base/macro.h"
#include "data/schema.h"
#include "mcp/mcp_priv.h"

static struct mcp_handle *handle_of(struct mcp_call *call)
{
    return (struct mcp_handle *)call;
}

/* Out of all lists; the exchange, if it is there, stays open and is returned. */
static struct mcp_exchange *detach(struct mcp_handle *h)
{
    struct mcp_exchange *x = TAKE_PTR(h->x);
    if (x != NULL) {
        x->call = NULL;
    }
    *(h->prev != NULL ? &h->prev->next : &h->m->calls) = h->next;
    if (h->next != NULL) {
        h->next->prev = h->prev;
    }
    h->m->n_calls--;
    return x;
}

static void destroy(struct mcp_handle *h)
{
    arena_free(h->call.arena);
    free(h);
}

void mcp_call_drop(struct mcp_handle *h)
{
    const struct mcp_tools *tools = &h->m->opts.tools;
    (void)detach(h);
    tools->cancel(tools->arg, &h->call);
    destroy(h);
}

struct mcp_handle *mcp_call_find(struct mcp *m, const struct mcp_session *s, const struct json *id)
{
    for (struct mcp_handle *h = m->calls; h != NULL; h = h->next) {
        if (h->session == s && json_equal(h->id, id)) {
            return h;
        }
    }
    return NULL;
}

/* --- the request --- */

static const struct json *find_tool(const struct json *all, struct str name)
{
    for (size_t i = 0; i < json_len(all); i++) {
        const struct json *tool = json_item(all, i);
        if (str_eq(json_str(json_get(tool, "name"), STR_EMPTY), name)) {
            return tool;
        }
    }
    return NULL;
}

static struct mcp_handle *new_handle(struct mcp_exchange *x, const struct json *tool)
{
    struct mcp_handle *h = xcalloc(1, sizeof *h);
    struct arena *a = arena_new();
    const struct json *arguments = json_get(x->message.params, "arguments");
    const struct json *token = json_get(x->meta, "progressToken");
    const struct json *schema = json_get(tool, "outputSchema");
    h->m = x->m;
    h->x = x;
    h->session = x->session;
    h->id = json_copy(a, x->message.id);
    h->token = jsonrpc_id_ok(token) && x->takes_events ? json_copy(a, token) : NULL;
    h->output_schema = json_is(schema, JSON_OBJECT) ? json_copy(a, schema) : NULL;
    h->call = (struct mcp_call) {
        .name = arena_str(a, json_str(json_get(tool, "name"), STR_EMPTY)),
        .arguments = arguments == NULL ? json_object(a) : json_copy(a, arguments),
        .meta = x->meta == NULL ? NULL : json_copy(a, x->meta),
        .session = x->session == NULL ? STR_EMPTY : arena_str(a, x->session->id),
        .id = h->id,
        .revision = x->revision,
        .arena = a,
    };
    h->next = x->m->calls;
    if (h->next != NULL) {
        h->next->prev = h;
    }
    x->m->calls = h;
    x->m->n_calls++;
    x->call = h;
    return h;
}

/* NULL: it has been refused. */
static const struct json *admitted(struct mcp_exchange *x, const struct http_fields *fields)
{
    struct err e;
    const struct mcp_tools *tools = &x->m->opts.tools;
    const struct json *name = json_get(x->message.params, "name");
    const struct json *arguments = json_get(x->message.params, "arguments");
    struct json *all;
    if (!json_is(name, JSON_STRING) || name->string.len > MCP_NAME_MAX ||
        (arguments != NULL && !json_is(arguments, JSON_OBJECT))) {
        mcp_reply_error(x, 200, JSONRPC_INVALID_PARAMS, NULL,
                        "'name' must be a string and 'arguments' an object");
        return NULL;
    }
    if (x->session != NULL && mcp_call_find(x->m, x->session, x->message.id) != NULL) {
        mcp_reply_error(x, 400, JSONRPC_INVALID_REQUEST, NULL,
                        "a request with this id is under way");
        return NULL;
    }
    if (x->m->n_calls >= MCP_CALLS_MAX) {
        mcp_reply_error(x, 503, JSONRPC_INTERNAL_ERROR, NULL, "too many calls are under way");
        return NULL;
    }
    if (tools->list(tools->arg, x->arena, &all, &e) < 0) {
        mcp_reply_error(x, 200, JSONRPC_INTERNAL_ERROR, NULL, "%s", e.msg);
        return NULL;
    }
    const struct json *tool = find_tool(all, name->string);
    if (tool == NULL) {
        if (tools->unknown != NULL) {
            tools->unknown(tools->arg, name->string, arguments);
        }
        mcp_reply_error(x, 200, JSONRPC_INVALID_PARAMS, NULL, "Unknown tool: %.*s",
                        STR_ARG(name->string));
        return NULL;
    }
    if (x->revision >= MCP_2026_07_28 &&
        mcp_header_params(fields, json_get(tool, "inputSchema"), arguments, &e) < 0) {
        mcp_reply_error(x, 400, MCP_HEADER_MISMATCH, NULL, "%s", e.msg);
        return NULL;
    }
    return tool;
}

void mcp_call_begin(struct mcp_exchange *x, const struct http_fields *fields)
{
    const struct json *tool = admitted(x, fields);
    if (tool != NULL) {
        const struct mcp_tools *tools = &x->m->opts.tools;
        struct mcp_handle *h = new_handle(x, tool);
        tools->call(tools->arg, &h->call); /* may be over when it returns */
    }
}

/* --- the answer --- */

void mcp_call_progress(struct mcp_call *call, double progress, double total, struct str message)
{
    struct mcp_handle *h = handle_of(call);
    bool grows = !h->has_progress || progress > h->progress;
    if (h->token == NULL || h->x == NULL || h->x->paused || !grows) {
        return;
    }
    h->has_progress = true;
    h->progress = progress;
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *params = json_object(a);
    json_setc(a, params, "progressToken", json_copy(a, h->token));
    json_setc(a, params, "progress", json_number(a, progress));
    if (!(total < 0)) {
        json_setc(a, params, "total", json_number(a, total));
    }
    /* The field is there since 2025-03-26. */
    if (message.len > 0 && call->revision >= MCP_2025_03_26) {
        json_setc(a, params, "message", json_string(a, str_slice(message, 0, 4096)));
    }
    mcp_notify(h->x, "notifications/progress", params);
}

static struct json *text_block(struct arena *a, struct str text)
{
    struct json *block = json_object(a);
    json_setc(a, block, "type", json_cstr(a, "text"));
    json_setc(a, block, "text", json_string(a, text));
    return block;
}

static struct json *broken(struct arena *a, struct str why)
{
    struct json *result = json_object(a);
    struct json *content = json_array(a);
    json_push(a, content, text_block(a, why));
    json_setc(a, result, "content", content);
    json_setc(a, result, "isError", json_boolean(a, true));
    return result;
}

/* 0 when the value is what the tool's outputSchema promises. */
static int check_output(const struct mcp_handle *h, const struct json *value, struct buf *why)
{
    struct err e;
    CLEANUP(schema) struct schema *s = NULL;
    struct schema_result r;
    if (value == NULL) {
        buf_adds(why, "the tool gave no structured result");
        return -1;
    }
    int rc = schema_compile(h->output_schema, NULL, &s, &e);
    rc = rc < 0 ? rc : schema_validate(s, value, NULL, h->call.arena, &r, &e);
    if (rc < 0) {
        buf_addf(why, "the result could not be checked: %s", e.msg);
        return -1;
    }
    if (!r.valid) {
        buf_adds(why, "the result of the tool does not fit its schema:\n");
        (void)!schema_result_write(&r, why, NULL); /* at most shortened */
        return -1;
    }
    return 0;
}

/* Text for those who cannot read structuredContent. */
static void complete_content(struct arena *a, struct json *result)
{
    const struct json *value = json_get(result, "structuredContent");
    struct json *content = json_get(result, "content");
    if (!json_is(content, JSON_ARRAY)) {
        content = json_array(a);
        json_setc(a, result, "content", content);
    }
    CLEANUP(buf) struct buf text = BUF_INIT(JSONRPC_BYTES_MAX);
    if (value != NULL && json_len(content) == 0 &&
        json_write(value, JSON_COMPACT, &text, NULL) == 0) {
        json_push(a, content, text_block(a, buf_str(&text)));
    }
}

static struct json *finished(const struct mcp_handle *h, struct arena *a, const struct json *result)
{
    CLEANUP(buf) struct buf why = BUF_INIT(BUF_TEXT);
    struct json *copy = json_is(result, JSON_OBJECT) ? json_copy(a, result)
                                                     : broken(a, STR("the tool gave no result"));
    bool failed = json_bool(json_get(copy, "isError"), false);
    const struct json *value = json_get(copy, "structuredContent");
    if (!failed && h->output_schema != NULL && check_output(h, value, &why) < 0) {
        return broken(a, buf_str(&why));
    }
    complete_content(a, copy);
    /* Structured results came with 2025-06-18, as objects; other values later. */
    bool known = h->call.revision >= MCP_2026_07_28 ||
                 (h->call.revision >= MCP_2025_06_18 && json_is(value, JSON_OBJECT));
    if (!known) {
        (void)json_remove(copy, STR("structuredContent"));
    }
    return copy;
}

void mcp_call_done(struct mcp_call *call, const struct json *result)
{
    struct mcp_handle *h = handle_of(call);
    struct mcp_exchange *x = detach(h);
    struct json *answer = x == NULL ? NULL : finished(h, x->arena, result);
    destroy(h);
    if (x != NULL) {
        mcp_reply_result(x, answer);
    }
}

void mcp_call_fail(struct mcp_call *call, struct str why)
{
    struct mcp_handle *h = handle_of(call);
    struct mcp_exchange *x = detach(h);
    struct arena *keep = x == NULL ? NULL : x->arena;
    struct str text = keep == NULL ? why : arena_str(keep, why);
    destroy(h);
    if (x != NULL) {
        mcp_reply_error(x, 200, JSONRPC_INTERNAL_ERROR, NULL, "%.*s", STR_ARG(text));
    }
}
