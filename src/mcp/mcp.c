/* SPDX-License-Identifier: MIT
 *
 * Life of the MCP server, its sessions, and the news that its list of tools is another one.
 */
#include "mcp/mcp.h"

#include <stdlib.h>

#include "base/id.h"
#include "base/macro.h"
#include "mcp/mcp_priv.h"

static const char *const revisions[MCP_REVISION_MAX] = {
    [MCP_2024_11_05] = "2024-11-05", [MCP_2025_03_26] = "2025-03-26",
    [MCP_2025_06_18] = "2025-06-18", [MCP_2025_11_25] = "2025-11-25",
    [MCP_2026_07_28] = "2026-07-28",
};

const char *mcp_revision_name(enum mcp_revision r)
{
    return r < MCP_REVISION_MAX ? revisions[r] : "";
}

bool mcp_revision_parse(struct str name, enum mcp_revision *ret)
{
    for (unsigned i = 0; i < MCP_REVISION_MAX; i++) {
        if (str_eqc(name, revisions[i])) {
            *ret = (enum mcp_revision)i;
            return true;
        }
    }
    return false;
}

static const char *const *copy_list(struct arena *a, const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL) {
        n++;
    }
    const char **copy = arena_array(a, n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        copy[i] = arena_dup(a, str_of(list[i]));
    }
    return copy;
}

struct mcp *mcp_new(const struct mcp_opts *opts)
{
    struct arena *a = arena_new();
    struct mcp *m = xcalloc(1, sizeof *m);
    m->arena = a;
    m->opts = *opts;
    m->opts.name = arena_dup(a, str_of(opts->name));
    m->opts.version = arena_dup(a, str_of(opts->version));
    m->opts.instructions =
        opts->instructions == NULL ? NULL : arena_dup(a, str_of(opts->instructions));
    m->opts.origins = copy_list(a, opts->origins);
    m->max_message = opts->max_message == 0 ? JSONRPC_BYTES_MAX : opts->max_message;
    return m;
}

struct mcp *mcp_free(struct mcp *m)
{
    if (m == NULL) {
        return NULL;
    }
    while (m->exchanges != NULL) {
        mcp_close(m->exchanges);
    }
    mcp_stop(m);
    while (m->batches != NULL) {
        mcp_batch_free(m->batches);
    }
    arena_free(m->arena);
    free(m);
    return NULL;
}

size_t mcp_calls(const struct mcp *m)
{
    return m->n_calls;
}

size_t mcp_sessions(const struct mcp *m)
{
    return m->n_sessions;
}

bool mcp_busy(const struct mcp *m)
{
    return m->exchanges != NULL;
}

struct json *mcp_server_info(struct mcp *m, struct arena *a)
{
    struct json *info = json_object(a);
    json_setc(a, info, "name", json_cstr(a, m->opts.name));
    json_setc(a, info, "version", json_cstr(a, m->opts.version));
    return info;
}

struct json *mcp_capabilities(struct arena *a)
{
    struct json *all = json_object(a);
    struct json *tools = json_object(a);
    json_setc(a, tools, "listChanged", json_boolean(a, true));
    json_setc(a, all, "tools", tools);
    return all;
}

/* --- sessions --- */

static bool is_at_work(const struct mcp *m, const struct mcp_session *s)
{
    for (const struct mcp_handle *h = m->calls; h != NULL; h = h->next) {
        if (h->session == s) {
            return true;
        }
    }
    return false;
}

/* A client that waits for an answer is the last to go. */
static void make_room(struct mcp *m)
{
    struct mcp_session *oldest = m->sessions;
    bool works = is_at_work(m, oldest);
    for (struct mcp_session *s = m->sessions->next; s != NULL; s = s->next) {
        bool also = is_at_work(m, s);
        if ((works && !also) || (works == also && s->used < oldest->used)) {
            oldest = s;
            works = also;
        }
    }
    mcp_session_end(m, oldest);
}

struct mcp_session *mcp_session_new(struct mcp *m, enum mcp_revision revision)
{
    char id[ID_LEN];
    if (m->n_sessions >= MCP_SESSIONS_MAX) {
        make_room(m);
    }
    struct arena *a = arena_new();
    struct mcp_session *s = ARENA_NEW(a, struct mcp_session);
    s->arena = a;
    s->id = arena_str(a, str_of(id_new(id)));
    s->revision = revision;
    s->used = m->count;
    s->announced = m->opts.tools.version(m->opts.tools.arg);
    s->next = m->sessions;
    m->sessions = s;
    m->n_sessions++;
    return s;
}

struct mcp_session *mcp_session_find(struct mcp *m, struct str id)
{
    for (struct mcp_session *s = m->sessions; s != NULL; s = s->next) {
        if (str_eq(s->id, id)) {
            s->used = m->count;
            return s;
        }
    }
    return NULL;
}

/* The first exchange of the session (of anybody: NULL), for loops in which exchanges vanish. */
static struct mcp_exchange *exchange_of(struct mcp *m, const struct mcp_session *s)
{
    for (struct mcp_exchange *x = m->exchanges; x != NULL; x = x->next) {
        if ((s == NULL || x->session == s) && !x->ended) {
            return x;
        }
    }
    return NULL;
}

static struct mcp_handle *call_of(struct mcp *m, const struct mcp_session *s)
{
    for (struct mcp_handle *h = m->calls; h != NULL; h = h->next) {
        if (s == NULL || h->session == s) {
            return h;
        }
    }
    return NULL;
}

static void finish(struct mcp_exchange *x)
{
    if (x->stream != MCP_STREAM_LISTEN) {
        mcp_exchange_end(x);
        return;
    }
    struct json *result = json_object(x->arena);
    struct json *meta = json_object(x->arena);
    json_setc(x->arena, meta, MCP_META_SUBSCRIPTION, json_copy(x->arena, x->message.id));
    json_setc(x->arena, result, "_meta", meta);
    mcp_reply_result(x, result);
}

static void end_all(struct mcp *m, struct mcp_session *s)
{
    struct mcp_handle *h;
    struct mcp_exchange *x;
    while ((h = call_of(m, s)) != NULL) {
        mcp_call_drop(h);
    }
    while ((x = exchange_of(m, s)) != NULL) {
        finish(x);
    }
    for (x = m->exchanges; x != NULL; x = x->next) { /* those that still have to be read */
        x->session = s == NULL || x->session == s ? NULL : x->session;
    }
}

void mcp_session_end(struct mcp *m, struct mcp_session *s)
{
    end_all(m, s);
    for (struct mcp_session **at = &m->sessions; *at != NULL; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    m->n_sessions--;
    arena_free(s->arena);
}

void mcp_stop(struct mcp *m)
{
    m->stopped = true;
    end_all(m, NULL);
    while (m->sessions != NULL) {
        mcp_session_end(m, m->sessions);
    }
}

/* --- news --- */

void mcp_announce(struct mcp_exchange *x)
{
    uint64_t now = x->m->opts.tools.version(x->m->opts.tools.arg);
    bool wanted = x->stream == MCP_STREAM_GET ? x->session != NULL : x->wants_changes;
    if (x->ended || x->paused || !wanted) {
        return;
    }
    uint64_t *announced = x->stream == MCP_STREAM_GET ? &x->session->announced : &x->announced;
    if (*announced == now) {
        return;
    }
    *announced = now;
    struct json *params = NULL;
    if (x->stream == MCP_STREAM_LISTEN) {
        struct json *meta = json_object(x->arena);
        params = json_object(x->arena);
        json_setc(x->arena, meta, MCP_META_SUBSCRIPTION, json_copy(x->arena, x->message.id));
        json_setc(x->arena, params, "_meta", meta);
    }
    mcp_notify(x, "notifications/tools/list_changed", params);
}

/* Visits all exchanges, though some may vanish meanwhile: being busy keeps them, and holds back
 * what they send until their turn is over. */
static void for_all(struct mcp *m, void (*fn)(struct mcp_exchange *x))
{
    size_t n = 0;
    for (struct mcp_exchange *x = m->exchanges; x != NULL; x = x->next) {
        n++;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    struct mcp_exchange **all = arena_array(a, n + 1, sizeof(struct mcp_exchange *));
    n = 0;
    for (struct mcp_exchange *x = m->exchanges; x != NULL; x = x->next) {
        all[n++] = x;
        x->busy++;
    }
    for (size_t i = 0; i < n; i++) {
        if (!all[i]->gone) {
            fn(all[i]);
        }
        all[i]->busy--;
        mcp_exchange_pump(all[i]);
    }
}

static void announce_to(struct mcp_exchange *x)
{
    if (x->stream != MCP_STREAM_NONE) {
        mcp_announce(x);
    }
}

void mcp_tools_changed(struct mcp *m)
{
    for_all(m, announce_to);
}

static void keep_alive(struct mcp_exchange *x)
{
    if (!x->ended && x->takes_events) {
        mcp_exchange_stream(x);
        mcp_exchange_comment(x);
    }
}

void mcp_tick(struct mcp *m)
{
    for_all(m, keep_alive);
}
