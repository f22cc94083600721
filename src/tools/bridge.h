/* SPDX-License-Identifier: MIT
 *
 * struct bridge: carries out tools on behalf of any harness, each call a transaction.
 *
 *  1. bridge_new(&opts); bridge_add(b, &tool, e) for each tool, in the order they are offered
 *  2. bridge_port(b) goes to the MCP server (mcp/mcp.h); drivers with a loop of their own use
 *     bridge_call() directly
 *  3. bridge_stop(b): calls are cancelled and rolled back; bridge_free(b) when bridge_busy() is
 *     false (bridge_opts.idle tells)
 *
 * A call: look-up → arguments against the schema → policies → deadline and budget → transaction on
 * files and session → handler → changes to the session → value against the output schema → commit,
 * or roll back → tell the observer (always, whatever happened) → feedback → answer. Nothing is
 * begun for a call that is not allowed. What fails leaves no file and no state behind; LOG slices
 * keep what happened.
 *
 * Calls run side by side and do not see each other's work before it is committed. One thread.
 *
 * Time: a call may take as long as its tool says, or as is left of the run, whatever is less. A
 * handler that does not end then is told to stop; one that does not stop either is left behind: the
 * model gets its answer, nothing of it is committed, and it keeps one of the places until it ends
 * or bridge_stop() forgets it. So a bridge that was stopped is idle soon, whatever its handlers do.
 *
 * The session remembers every call in its LOG slice "ToolInvoked". What a tool gives is not
 * dispatched by itself: its `state` says what happens to the session (tools/tool_state.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "mcp/mcp.h"
#include "tools/tool.h"

struct bridge;
struct bridge_call;
struct helper_host;
struct feedback;
struct guard;
struct loop;
struct state_store;
struct txn;
struct txns;

#define BRIDGE_CALLS_MAX 64  /* at the same time; more wait their turn */
#define BRIDGE_QUEUE_MAX 256 /* … and beyond these are refused */
#define BRIDGE_GRACE     (5 * NSEC_PER_SEC)
#define BRIDGE_TEXT_MAX  (256u << 10) /* of an answer to the model; more is cut and says so */

/* What the observer is told, once per call. */
struct bridge_record {
    const struct tool *tool; /* NULL: there is none of that name */
    struct str name, call_id;
    const struct json *arguments;
    enum tool_failure failure;
    struct str message;       /* of the handler, or why it came to nothing */
    const struct json *value; /* NULL: none */
    struct str text;          /* as the model gets it, without feedback */
    bool exclude_value;       /* the model got the message only */
    struct str policy;        /* that denied it */
    nsec took;
    size_t files;    /* changed and committed */
    uint32_t leaked; /* processes that outlived the call and were killed */
};

struct bridge_opts {
    struct loop *loop;
    const struct helper_host *host;
    struct state_store *session;
    struct txns *txns;                 /* NULL: files are not part of the transaction */
    struct guard *guard;               /* NULL: no policies */
    struct feedback *feedback;         /* NULL: none */
    const char *prompt_name, *adapter; /* for what the session remembers; NULL: unknown */
    nsec grace;                        /* for a handler to end that was told to; 0: BRIDGE_GRACE */
    /* Deadline and budget: ERR_TIMEOUT or ERR_BUDGET when nothing is left; else `ret_left` is the
     * time until the deadline (INT64_MAX: none). */
    int (*admit)(void *arg, nsec *ret_left, struct err *e);
    /* The layer by which helper_host.place() shows the transaction to programs, made in `a`. NULL:
     * that of its overlay; without one, programs run in its private copy. */
    const char *(*layer)(void *arg, struct arena *a, const struct txn *x);
    void (*began)(void *arg, struct str name, struct str call_id); /* may be NULL */
    void (*invoked)(void *arg, const struct bridge_record *r);     /* may be NULL */
    /* After bridge_stop(): the last call is over. From the loop; bridge_free() is fine here. May be
     * NULL. */
    void (*idle)(void *arg);
    void *arg;
};

/* What the model gets. Borrowed until `done` returns. */
struct bridge_answer {
    bool is_error;
    struct str text;               /* rendered value or message */
    struct str feedback;           /* empty: none */
    const struct json *structured; /* structuredContent; NULL: none */
    const struct json *content;    /* blocks in place of the text; NULL: none */
    enum tool_failure failure;
};

struct bridge_request {
    struct str name;
    const struct json *arguments;
    struct str call_id;      /* empty: one is made up */
    const struct json *meta; /* or NULL */
    void (*done)(void *arg, const struct bridge_answer *a);
    void (*progress)(void *arg, double progress, double total, struct str message); /* or NULL */
    void *arg;
};

/* All in the options must outlive the bridge. */
struct bridge *bridge_new(const struct bridge_opts *o);
/* Before the first call: where a view of the workspace stands only later. */
void bridge_set_txns(struct bridge *b, struct txns *txns);
/* Accepts NULL, returns NULL. A call whose handler has still not ended is forgotten: it must not
 * say anything any more. Before txns_close() and store_free(). */
struct bridge *bridge_free(struct bridge *b);
/* Copied; the handler and the compiled schemas become the bridge's, unless it fails. ERR_EXISTS for
 * a name that is there, ERR_LIMIT beyond MCP_TOOLS_MAX. */
int bridge_add(struct bridge *b, const struct tool *t, struct err *e) MUST_USE;
/* Which tools are offered: a NULL-terminated list of names, copied, also of tools that are added
 * later; NULL: all. Others are not found by a call. */
void bridge_offer(struct bridge *b, const char *const *names);
size_t bridge_tools_len(const struct bridge *b);
const struct tool *bridge_tool(const struct bridge *b, size_t i); /* offered ones */
const struct tool *bridge_find(const struct bridge *b, struct str name);
uint64_t bridge_version(const struct bridge *b); /* of the list */

/* Copied; `done` comes exactly once, at once (then *ret is NULL) or later. */
void bridge_call(struct bridge *b, const struct bridge_request *r, struct bridge_call **ret);
void bridge_cancel(struct bridge_call *c); /* rolled back; `done` comes, as cancelled */
void bridge_stop(struct bridge *b);
bool bridge_busy(const struct bridge *b);

struct mcp_tools bridge_port(struct bridge *b);
bool bridge_listed(const struct bridge *b); /* a client of that server has read the list */

/* {message, value, success, exclude_value_from_context, failure?, policy?}: the result as telemetry
 * has it, with a value that is too large left out. */
struct json *bridge_record_result(struct arena *a, const struct bridge_record *r);
/* The whole as the session remembers it: {name, params, result, created_at, rendered_output,
 * call_id, event_id, duration_ms, files}. */
struct json *bridge_record_json(struct arena *a, const struct bridge_record *r);
