/* SPDX-License-Identifier: MIT
 *
 * Which HTTP requests the MCP server admits, and which revision of the protocol each of them
 * speaks.
 */
#include <strings.h>

#include "base/macro.h"
#include "mcp/mcp_priv.h"

/* --- fields --- */

static struct str field(const struct http_fields *f, const char *name)
{
    const struct str *value = http_find(f, name);
    return value == NULL ? STR_EMPTY : str_trim(*value);
}

static bool starts_like(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && strncasecmp(s.ptr, prefix, n) == 0;
}

/* The type or a range that has it; parameters are ignored. No field at all: everything. */
static bool accepts(const struct http_fields *f, const char *type, const char *range)
{
    bool any = false;
    for (size_t i = 0; i < f->len; i++) {
        struct str rest = f->items[i].value;
        if (!http_name_is(f->items[i].name, "accept")) {
            continue;
        }
        any = true;
        while (rest.ptr != NULL && rest.len > 0) {
            struct str item = str_split(&rest, ',');
            struct str word = str_trim(str_split(&item, ';'));
            if (http_name_is(word, type) || http_name_is(word, range) || str_eqc(word, "*/*")) {
                return true;
            }
        }
    }
    return !any;
}

/* A page of this machine: http://localhost:1234. */
static bool is_loopback(struct str origin)
{
    static const char *const hosts[] = { "localhost", "127.0.0.1", "[::1]" };
    struct str rest = origin;
    if (starts_like(rest, "http://")) {
        rest = str_slice(rest, 7, rest.len);
    } else if (starts_like(rest, "https://")) {
        rest = str_slice(rest, 8, rest.len);
    } else {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        size_t n = strlen(hosts[i]);
        struct str port = str_slice(rest, n + 1, rest.len);
        int64_t number;
        if (starts_like(rest, hosts[i]) &&
            (rest.len == n || (rest.ptr[n] == ':' && str_to_i64(port, &number)))) {
            return true;
        }
    }
    return false;
}

static bool origin_ok(const struct mcp *m, const struct http_fields *f)
{
    struct str origin = field(f, "origin");
    if (http_find(f, "origin") == NULL || is_loopback(origin)) {
        return true;
    }
    for (size_t i = 0; m->opts.origins[i] != NULL; i++) {
        if (http_name_is(origin, m->opts.origins[i])) {
            return true;
        }
    }
    return false;
}

/* --- revisions --- */

static struct json *supported(struct arena *a, struct str requested)
{
    struct json *data = json_object(a);
    struct json *list = json_array(a);
    for (int i = MCP_REVISION_MAX - 1; i >= 0; i--) {
        json_push(a, list, json_cstr(a, mcp_revision_name((enum mcp_revision)i)));
    }
    json_setc(a, data, "supported", list);
    json_setc(a, data, "requested", json_string(a, requested));
    return data;
}

static bool is_legacy(struct str version)
{
    enum mcp_revision r;
    return mcp_revision_parse(version, &r) && r < MCP_2026_07_28;
}

/* Without state: the request says itself which revision it is of. */
static bool is_stateless(const struct mcp_exchange *x, const struct http_fields *f)
{
    struct str version = field(f, "mcp-protocol-version");
    if (json_get(x->meta, MCP_META_VERSION) != NULL) {
        return true;
    }
    if (str_eqc(x->message.method, "initialize")) {
        return false;
    }
    return http_find(f, "mcp-session-id") == NULL && version.len > 0 && !is_legacy(version);
}

static void post_stateless(struct mcp_exchange *x, const struct http_fields *f)
{
    struct err e;
    const struct json *version = json_get(x->meta, MCP_META_VERSION);
    struct str asked = json_str(version, field(f, "mcp-protocol-version"));
    struct str said = field(f, "mcp-protocol-version");
    x->revision = MCP_2026_07_28;
    if (x->message.kind == JSONRPC_NOTIFICATION) {
        mcp_exchange_whole(x, 202, STR_EMPTY);
    } else if (json_is(version, JSON_STRING) && !str_eq(said, asked)) {
        mcp_reply_error(x, 400, MCP_HEADER_MISMATCH, NULL,
                        "Header mismatch: MCP-Protocol-Version is '%.*s', the body has '%.*s'",
                        STR_ARG(str_slice(said, 0, 100)), STR_ARG(str_slice(asked, 0, 100)));
    } else if (!str_eqc(asked, mcp_revision_name(MCP_2026_07_28))) {
        mcp_reply_error(x, 400, MCP_UNSUPPORTED_VERSION, supported(x->arena, asked),
                        "Unsupported protocol version");
    } else if (!json_is(version, JSON_STRING) ||
               !json_is(json_get(x->meta, MCP_META_CAPABILITIES), JSON_OBJECT)) {
        mcp_reply_error(x, 400, JSONRPC_INVALID_PARAMS, NULL,
                        "_meta must have '%s' (a string) and '%s' (an object)", MCP_META_VERSION,
                        MCP_META_CAPABILITIES);
    } else if (mcp_header_check(f, &x->message, &e) < 0) {
        mcp_reply_error(x, 400, MCP_HEADER_MISMATCH, NULL, "%s", e.msg);
    } else {
        mcp_method(x, f);
    }
}

/* --- sessions --- */

/* False: it has been refused. */
static bool enter_session(struct mcp_exchange *x, const struct http_fields *f)
{
    struct str version = field(f, "mcp-protocol-version");
    struct str id = field(f, "mcp-session-id");
    if (version.len > 0 && !is_legacy(version)) {
        mcp_reply_error(x, 400, JSONRPC_INVALID_REQUEST, NULL,
                        "MCP-Protocol-Version '%.*s' is not supported in a session",
                        STR_ARG(str_slice(version, 0, 100)));
        return false;
    }
    if (id.len == 0) {
        mcp_reply_error(x, 400, JSONRPC_INVALID_REQUEST, NULL,
                        "Mcp-Session-Id is missing: begin with initialize");
        return false;
    }
    x->session = mcp_session_find(x->m, id);
    if (x->session == NULL) {
        mcp_reply_error(x, 404, MCP_SESSION_NOT_FOUND, NULL,
                        "Session not found: begin again with initialize");
        return false;
    }
    x->revision = x->session->revision;
    return true;
}

static void post_session(struct mcp_exchange *x, const struct http_fields *f)
{
    bool first = str_eqc(x->message.method, "initialize") && x->message.kind == JSONRPC_REQUEST;
    if (!first && !enter_session(x, f)) {
        return;
    }
    if (x->message.kind == JSONRPC_REQUEST) {
        mcp_method(x, f);
    } else if (x->message.kind == JSONRPC_NOTIFICATION) {
        mcp_method_notification(x);
    } else { /* we ask nothing, so it answers nothing */
        mcp_exchange_whole(x, 202, STR_EMPTY);
    }
}

/* True: it was one, and is dealt with. Other revisions than 2025-03-26 have none. */
static bool post_batch(struct mcp_exchange *x, const struct mcp_request *r)
{
    static const struct json_limits limits = { .max_bytes = JSONRPC_BYTES_MAX,
                                               .max_depth = JSONRPC_DEPTH_MAX,
                                               .no_positions = true };
    struct json *v;
    struct str body = str_trim(r->body);
    if (body.len == 0 || body.ptr[0] != '[' || json_parse(x->arena, body, &limits, &v, NULL) < 0) {
        return false;
    }
    if (http_find(&r->fields, "mcp-session-id") == NULL) {
        return false;
    }
    if (enter_session(x, &r->fields)) {
        if (x->revision == MCP_2025_03_26) {
            mcp_batch_begin(x, v, &r->fields);
        } else {
            mcp_reply_error(x, 400, JSONRPC_INVALID_REQUEST, NULL,
                            "batches are of revision 2025-03-26 only: send one message at a time");
        }
    }
    return true;
}

static void post(struct mcp_exchange *x, const struct mcp_request *r)
{
    struct err e;
    struct str type = field(&r->fields, "content-type");
    type = str_trim(str_split(&type, ';'));
    if (!http_name_is(type, "application/json")) {
        mcp_reply_error(x, 415, JSONRPC_INVALID_REQUEST, NULL,
                        "Content-Type must be application/json");
        return;
    }
    if (!x->takes_json && !x->takes_events) {
        mcp_reply_error(x, 406, JSONRPC_INVALID_REQUEST, NULL,
                        "Accept must have application/json and text/event-stream");
        return;
    }
    if (post_batch(x, r)) {
        return;
    }
    if (jsonrpc_read(x->arena, r->body, NULL, &x->message, &e) < 0) {
        mcp_reply_error(x, 400, jsonrpc_code_of(&e), NULL, "%s", e.msg);
        return;
    }
    const struct json *meta = json_get(x->message.params, "_meta");
    x->meta = json_is(meta, JSON_OBJECT) ? meta : NULL;
    bool answer = x->message.kind == JSONRPC_RESULT || x->message.kind == JSONRPC_ERROR;
    if (!is_stateless(x, &r->fields)) {
        post_session(x, &r->fields);
    } else if (answer) {
        mcp_reply_error(x, 400, JSONRPC_INVALID_REQUEST, NULL, "this server asks nothing");
    } else {
        post_stateless(x, &r->fields);
    }
}

/* GET and DELETE are of sessions only. */
static bool is_foreign(const struct http_fields *f)
{
    struct str version = field(f, "mcp-protocol-version");
    return http_find(f, "mcp-session-id") == NULL && !is_legacy(version);
}

static void get(struct mcp_exchange *x, const struct http_fields *f)
{
    if (!x->takes_events) {
        mcp_reply_error(x, 406, JSONRPC_INVALID_REQUEST, NULL,
                        "Accept must have text/event-stream");
        return;
    }
    if (!enter_session(x, f)) {
        return;
    }
    if (x->m->n_streams >= MCP_STREAMS_MAX) {
        mcp_reply_error(x, 409, JSONRPC_INVALID_REQUEST, NULL, "too many streams are open");
        return;
    }
    x->stream = MCP_STREAM_GET;
    x->m->n_streams++;
    x->busy++;
    mcp_exchange_stream(x);
    mcp_announce(x);
    x->busy--;
    mcp_exchange_pump(x);
}

static void end_session(struct mcp_exchange *x, const struct http_fields *f)
{
    if (enter_session(x, f)) {
        struct mcp_session *s = TAKE_PTR(x->session);
        mcp_session_end(x->m, s);
        mcp_exchange_whole(x, 204, STR_EMPTY);
    }
}

static void admit(struct mcp_exchange *x, const struct mcp_request *r)
{
    if (!origin_ok(x->m, &r->fields)) {
        mcp_reply_error(x, 403, JSONRPC_INVALID_REQUEST, NULL, "this Origin is not served here");
    } else if (x->m->stopped) {
        mcp_reply_error(x, 503, JSONRPC_INTERNAL_ERROR, NULL, "the server is going down");
    } else if (str_eqc(r->method, "POST")) {
        post(x, r);
    } else if (str_eqc(r->method, "GET") && !is_foreign(&r->fields)) {
        get(x, &r->fields);
    } else if (str_eqc(r->method, "DELETE") && !is_foreign(&r->fields)) {
        end_session(x, &r->fields);
    } else {
        mcp_reply_error(x, 405, JSONRPC_INVALID_REQUEST, NULL, "use POST");
    }
}

struct mcp_exchange *mcp_begin(struct mcp *m, const struct mcp_request *r,
                               const struct mcp_answer *answer)
{
    struct mcp_exchange *x = mcp_exchange_new(m, answer);
    m->count++;
    x->takes_json = accepts(&r->fields, "application/json", "application/*");
    x->takes_events = accepts(&r->fields, "text/event-stream", "text/*");
    x->busy++; /* what is sent on the way leaves at the end, so that x stays */
    admit(x, r);
    x->busy--;
    bool open = !x->ended && !x->gone;
    mcp_exchange_pump(x);
    return open ? x : NULL;
}
