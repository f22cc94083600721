/* SPDX-License-Identifier: MIT
 *
 * The first half of a conversation with an MCP server: which revision it speaks, and which tools it
 * has. All pages of a list are read before anybody sees one of them.
 */
#include "base/macro.h"
#include "mcp/mcp_client_priv.h"

#define CURSOR_MAX 4096

static void fail(struct mcp_client *c, enum err_code code, const char *text)
{
    struct err e = { 0 };
    (void)ERR(&e, code, "%s", text);
    mcp_client_fail(c, &e);
}

/* --- the handshake --- */

static void initialize(struct mcp_client *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *params = json_object(a);
    c->state = MCP_CLIENT_INITIALIZING;
    c->revision = MCP_2025_11_25;
    json_setc(a, params, "protocolVersion", json_cstr(a, mcp_revision_name(MCP_2025_11_25)));
    json_setc(a, params, "capabilities", json_object(a));
    json_setc(a, params, "clientInfo", mcp_client_info(c, a));
    mcp_client_ask(c, MCP_PENDING_INITIALIZE, "initialize", a, params);
}

static void discover(struct mcp_client *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    c->state = MCP_CLIENT_DISCOVERING;
    c->revision = MCP_2026_07_28;
    mcp_client_ask(c, MCP_PENDING_DISCOVER, "server/discover", a, NULL);
}

void mcp_client_start(struct mcp_client *c)
{
    if (c->state != MCP_CLIENT_NEW) {
        return;
    }
    if (c->opts.discover_first) {
        discover(c);
    } else {
        initialize(c);
    }
}

static void keep_server(struct mcp_client *c, const struct json *info)
{
    struct json *kept = json_object(c->arena);
    static const char *const names[] = { "name", "version" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct str s = json_str(json_get(info, names[i]), STR_EMPTY);
        s = str_slice(s, 0, 256);
        s = str_slice(s, 0, str_utf8_prefix(s));
        json_setc(c->arena, kept, names[i], json_string(c->arena, s));
    }
    c->server = kept;
}

static void opened(struct mcp_client *c, enum mcp_revision revision)
{
    c->revision = revision;
    c->agreed = true;
    c->state = MCP_CLIENT_OPEN;
    mcp_client_list(c);
}

/* Asked for 2025-11-25 it says which it will be. */
static void on_initialized(struct mcp_client *c, const struct json *result)
{
    struct err e = { 0 };
    enum mcp_revision r;
    const struct json *version = json_get(result, "protocolVersion");
    struct str said = json_str(version, STR_EMPTY);
    if (!mcp_revision_parse(said, &r) || r > MCP_2025_11_25) {
        (void)ERR(&e, ERR_UNSUPPORTED, "the server speaks revision '%.*s', which is not known here",
                  STR_ARG(str_slice(said, 0, 40)));
        mcp_client_fail(c, &e);
        return;
    }
    keep_server(c, json_get(result, "serverInfo"));
    c->revision = r;
    c->agreed = true;
    struct mcp_outgoing m = { .method = STR("notifications/initialized") };
    if (mcp_client_send(c, &m, NULL, NULL, &e) < 0) {
        mcp_client_fail(c, &e);
        return;
    }
    opened(c, r);
}

/* What it said the first time is what a person wants to know if the second try fails too. */
static void keep_refusal(struct mcp_client *c, const struct mcp_client_answer *a)
{
    struct str text = a->lost == NULL ? a->text : str_of(a->lost->msg);
    text = str_slice(text, 0, 200);
    c->refusal = arena_str(c->arena, str_slice(text, 0, str_utf8_prefix(text)));
}

static bool has_stateless(const struct json *versions)
{
    for (size_t i = 0; i < json_len(versions) && i < 100; i++) {
        struct str name = json_str(json_item(versions, i), STR_EMPTY);
        if (str_eqc(name, mcp_revision_name(MCP_2026_07_28))) {
            return true;
        }
    }
    return false;
}

static void on_discovered(struct mcp_client *c, const struct mcp_client_answer *a)
{
    struct err e = { 0 };
    bool found = has_stateless(json_get(a->result, "supportedVersions"));
    if (a->is_error && a->code == MCP_UNSUPPORTED_VERSION && !c->insisted &&
        has_stateless(json_get(a->data, "supported"))) {
        c->insisted = true;
        discover(c);
        return;
    }
    if (!found && c->opts.discover_first) {
        initialize(c);
        return;
    }
    if (!found) {
        (void)ERR(&e, ERR_UNSUPPORTED,
                  "the server supports no known revision of the protocol; its response to "
                  "'initialize': %.*s",
                  STR_ARG(c->refusal));
        mcp_client_fail(c, &e);
        return;
    }
    const struct json *tools = json_get(json_get(a->result, "capabilities"), "tools");
    c->listen = json_bool(json_get(tools, "listChanged"), false);
    keep_server(c, json_get(json_get(a->result, "_meta"), MCP_META_SERVER));
    opened(c, MCP_2026_07_28);
}

/* --- the list --- */

static void ask_page(struct mcp_client *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *params = json_object(a);
    if (c->cursor.len > 0) {
        json_setc(a, params, "cursor", json_string(a, c->cursor));
    }
    mcp_client_ask(c, MCP_PENDING_LIST, "tools/list", a, params);
}

void mcp_client_list(struct mcp_client *c)
{
    if (c->state != MCP_CLIENT_OPEN || c->listing) {
        return;
    }
    c->listing = true;
    c->stale = false;
    c->pages = c->list_bytes = 0;
    c->cursor = STR_EMPTY;
    arena_free(c->next_arena);
    c->next_arena = arena_new();
    c->next = json_array(c->next_arena);
    ask_page(c);
}

/* In 2026-07-28 nobody is told of another list who has not asked to be. */
static void subscribe(struct mcp_client *c)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *params = json_object(a);
    struct json *filter = json_object(a);
    c->listen = false;
    json_setc(a, filter, "toolsListChanged", json_boolean(a, true));
    json_setc(a, params, "notifications", filter);
    mcp_client_ask(c, MCP_PENDING_LISTEN, "subscriptions/listen", a, params);
}

static void complete(struct mcp_client *c)
{
    arena_free(c->list_arena);
    c->list_arena = TAKE_PTR(c->next_arena);
    c->list = TAKE_PTR(c->next);
    c->listing = false;
    if (c->listen) {
        subscribe(c);
    }
    if (c->state == MCP_CLIENT_FAILED) {
        return;
    }
    bool stale = c->stale; /* it changed while it was read */
    c->opts.port.listed(c->opts.port.arg, c->list);
    if (stale && c->stale && c->state == MCP_CLIENT_OPEN && !c->listing) {
        c->opts.port.changed(c->opts.port.arg);
    }
}

static void on_page(struct mcp_client *c, const struct mcp_client_answer *a)
{
    const struct json *tools = json_get(a->result, "tools");
    const struct json *cursor = json_get(a->result, "nextCursor");
    if (!json_is(tools, JSON_ARRAY)) {
        fail(c, ERR_PROTO, "the server's answer to tools/list has no 'tools'");
        return;
    }
    c->pages++;
    c->list_bytes += a->bytes;
    if (c->pages > MCP_CLIENT_PAGES_MAX || c->list_bytes > MCP_CLIENT_LIST_MAX ||
        json_len(c->next) + json_len(tools) > MCP_CLIENT_TOOLS_MAX) {
        struct err e = { 0 };
        (void)ERR(&e, ERR_LIMIT,
                  "the server's list of tools is too long: after %zu pages there are %zu tools in "
                  "%zu bytes (at most %d, %d and %zu)",
                  c->pages, json_len(c->next) + json_len(tools), c->list_bytes,
                  MCP_CLIENT_PAGES_MAX, MCP_CLIENT_TOOLS_MAX, MCP_CLIENT_LIST_MAX);
        mcp_client_fail(c, &e);
        return;
    }
    for (size_t i = 0; i < json_len(tools); i++) {
        json_push(c->next_arena, c->next, json_copy(c->next_arena, json_item(tools, i)));
    }
    struct str next = json_str(cursor, STR_EMPTY);
    if (next.len == 0) {
        complete(c);
        return;
    }
    if (next.len > CURSOR_MAX || str_eq(next, c->cursor)) {
        fail(c, ERR_PROTO, "the server's list of tools repeats, or its cursor is too long");
        return;
    }
    c->cursor = arena_str(c->next_arena, next);
    ask_page(c);
}

/* --- */

static void refused(struct mcp_client *c, const char *method, const struct mcp_client_answer *a)
{
    struct err e = { 0 };
    if (a->lost != NULL) {
        e = *a->lost;
        (void)err_wrap(&e, "%s", method);
    } else {
        (void)ERR(&e, ERR_PROTO, "%s: the server answered: %.*s (%lld)", method,
                  STR_ARG(str_slice(a->text, 0, 200)), (long long)a->code);
    }
    mcp_client_fail(c, &e);
}

void mcp_client_opened(struct mcp_client *c, enum mcp_pending_kind kind,
                       const struct mcp_client_answer *a)
{
    bool good = a->lost == NULL && !a->is_error;
    /* A status without a message is a refusal too, a server that is gone is not. */
    bool answered = a->lost == NULL || a->lost->code == ERR_PROTO;
    switch (kind) {
    case MCP_PENDING_INITIALIZE:
        if (good) {
            on_initialized(c, a->result);
        } else if (answered && !c->opts.discover_first) {
            keep_refusal(c, a);
            discover(c);
        } else {
            refused(c, "initialize", a);
        }
        break;
    case MCP_PENDING_DISCOVER:
        if (answered || c->opts.discover_first) {
            on_discovered(c, a);
        } else {
            refused(c, "server/discover", a);
        }
        break;
    case MCP_PENDING_LIST:
        if (good) {
            on_page(c, a);
        } else {
            refused(c, "tools/list", a);
        }
        break;
    case MCP_PENDING_LISTEN: /* it has ended, or is not to be had: then nothing is told */
    case MCP_PENDING_CALL:
        break;
    }
}
