/* SPDX-License-Identifier: MIT
 *
 * struct mcp: a server of the Model Context Protocol that has tools and nothing else. A pure
 * protocol machine: HTTP requests go in as values, answers come out by a port; no sockets, no loop,
 * no clock. mcp/mcp_mount.h puts it on the gateway's door.
 *
 *  1. mcp_new(&opts): opts.tools is the port to whoever has the tools
 *  2. mcp_begin(m, &request, &answer) for each HTTP request; the answer comes by the port, at once
 *     or later; mcp_close(x) when the client has gone, mcp_pause(x, …) when it reads slowly
 *  3. mcp_tick(m) about every MCP_TICK: keeps quiet streams alive
 *  4. mcp_tools_changed(m) when the list of tools is another one
 *  5. mcp_stop(m): calls are cancelled, streams are ended; mcp_free(m)
 *
 * Revisions: 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25 begin with `initialize` and live in
 * a session (Mcp-Session-Id, GET for a stream of notifications, DELETE); 2026-07-28 has no state:
 * each request says in `_meta` what it is, which must agree with its header fields. Both are served
 * at once; a request shows which it is.
 *
 * A call of a tool, as the port sees it:
 *
 *   tools.call(arg, call)              call->name is one of the list; at once or later, exactly one
 *       → mcp_call_progress(call, …)*  goes out if the client asked for it, else it is nothing
 *       → mcp_call_done(call, result)  a CallToolResult: content, structuredContent, isError, _meta
 *       or mcp_call_fail(call, why)    the server's own failure (a JSON-RPC error); a tool that
 *                                      failed is a result with isError
 *   tools.cancel(arg, call)            the client does not want it any more; no answer is expected
 *
 * The call and what it points to are gone after each of the last three. Arguments are an object but
 * are not checked against the schema: that is the port's part, so that a model gets a result it can
 * learn from. A result is checked: one without the structuredContent that an outputSchema promises
 * becomes a result with isError.
 *
 * Bounded: sessions, calls, streams, sizes of messages. Who is too slow loses progress, never
 * results. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "wire/http.h"

struct mcp;
struct mcp_exchange;

#define MCP_TICK         (15 * NSEC_PER_SEC)
#define MCP_SESSIONS_MAX 64  /* the one unused for longest makes room: its client begins again */
#define MCP_CALLS_MAX    256 /* under way at the same time */
#define MCP_STREAMS_MAX  64  /* of notifications */
#define MCP_TOOLS_MAX    4096
#define MCP_NAME_MAX     256

/* The oldest first. */
enum mcp_revision {
    MCP_2024_11_05,
    MCP_2025_03_26,
    MCP_2025_06_18,
    MCP_2025_11_25,
    MCP_2026_07_28,
    MCP_REVISION_MAX
};

const char *mcp_revision_name(enum mcp_revision r);
bool mcp_revision_parse(struct str name, enum mcp_revision *ret);

struct mcp_call {
    struct str name;
    const struct json *arguments; /* an object */
    const struct json *meta;      /* `_meta` of the request: trace context and what else; or NULL */
    struct str session;           /* id of its session; empty without one */
    const struct json *id;        /* of the request: a number or a string */
    enum mcp_revision revision;
    struct arena *arena; /* lives as long as the call */
    void *user;          /* the port's */
};

struct mcp_tools {
    /* An array of Tool objects (name, inputSchema, …) in a fixed order, made in `a`; unique names.
     * On failure the client gets an error of the server. */
    int (*list)(void *arg, struct arena *a, struct json **ret, struct err *e);
    /* Another number, another list. */
    uint64_t (*version)(void *arg);
    void (*call)(void *arg, struct mcp_call *call);
    void (*cancel)(void *arg, struct mcp_call *call);
    void *arg;
    /* A call of what is not in the list, which the client is told by itself; for the record. Also
     * NULL. */
    void (*unknown)(void *arg, struct str name, const struct json *arguments);
};

struct mcp_opts {
    struct mcp_tools tools;
    const char *name, *version; /* of this server */
    const char *instructions;   /* for the model; may be NULL */
    const char *const *origins; /* besides those of this machine; NULL-terminated or NULL */
    size_t page;                /* tools in a page of the list; 0: all in one */
    size_t max_message;         /* of an answer; 0: 64 MiB */
};

/* Strings are copied, but for the port. */
struct mcp *mcp_new(const struct mcp_opts *opts);
struct mcp *mcp_free(struct mcp *m); /* accepts NULL, returns NULL; not from a callback */
void mcp_tools_changed(struct mcp *m);
void mcp_tick(struct mcp *m);
void mcp_stop(struct mcp *m); /* what comes after it is refused */
size_t mcp_calls(const struct mcp *m);
size_t mcp_sessions(const struct mcp *m);
bool mcp_busy(const struct mcp *m); /* an exchange is open: mcp_tick() has something to do */

/* --- HTTP --- */

/* The authentication has happened, and so has the check of Host. Borrowed until mcp_begin()
 * returns. */
struct mcp_request {
    struct str method; /* "POST" */
    struct http_fields fields;
    struct str body;
};

/* head once, then data any number of times, then end; nothing after it. */
struct mcp_answer {
    void (*head)(void *arg, int status, const struct http_fields *fields);
    void (*data)(void *arg, struct str bytes);
    void (*end)(void *arg);
    void *arg;
};

/* Callbacks may come from inside of it: NULL when the answer has ended there. The exchange is gone
 * after `end` and after mcp_close(). */
struct mcp_exchange *mcp_begin(struct mcp *m, const struct mcp_request *r,
                               const struct mcp_answer *answer);
/* The client is gone. In 2026-07-28 that cancels the call; before, the call goes on and its result
 * is dropped. */
void mcp_close(struct mcp_exchange *x);
void mcp_pause(struct mcp_exchange *x, bool paused);

/* --- the answer of a tool --- */

/* Values that do not grow are left out, as the protocol demands; total < 0: unknown; message may be
 * empty. */
void mcp_call_progress(struct mcp_call *call, double progress, double total, struct str message);
void mcp_call_done(struct mcp_call *call, const struct json *result);
void mcp_call_fail(struct mcp_call *call, struct str why);
