/* SPDX-License-Identifier: MIT
 *
 * struct mcp_client: the client's side of the Model Context Protocol, as far as tools go. A pure
 * protocol machine: messages go in and out as text, by whatever transport; no sockets, no loop, no
 * clock.
 *
 *  1. mcp_client_new(&opts); mcp_client_start(c): the handshake, then the list of tools
 *  2. mcp_client_feed(c, text) for each message of the server; mcp_client_lost() for an answer that
 *     will not come, mcp_client_end() when the server is gone
 *  3. `listed` comes: the server is ready. mcp_client_call(c, &call, &key, e), mcp_client_cancel()
 *  4. `changed` comes when the server says that its list is another one; mcp_client_list() asks for
 *     it, and `listed` comes again
 *  5. mcp_client_free(c), not from a callback
 *
 * Revisions: `initialize` with 2025-11-25, and whatever known revision the server answers with. A
 * server that refuses it is asked with `server/discover` whether it speaks 2026-07-28, in which
 * each request says for itself what it is. `discover_first` turns that round, as the protocol wants
 * it over HTTP; a program of an older revision may be struck dumb by a question before its
 * handshake, so there it is the last resort.
 *
 * A server is not trusted. What it asks is refused, but for `ping`. Answers to nothing, answers
 * that come twice and messages that are none are dropped and counted. All is bounded: pages, tools
 * and bytes of a list, calls under way, and what comes between two answers. Past a bound the client
 * has failed: `failed` comes once, after the calls under way were told. Nothing comes after it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "mcp/mcp.h"
#include "mcp/mcp_transport.h"

struct mcp_client;

#define MCP_CLIENT_CALLS_MAX  256
#define MCP_CLIENT_PAGES_MAX  100
#define MCP_CLIENT_TOOLS_MAX  1024
#define MCP_CLIENT_LIST_MAX   ((size_t)8 << 20)   /* bytes of all pages */
#define MCP_CLIENT_NOISE_MAX  100000              /* messages between two answers … */
#define MCP_CLIENT_NOISE_SIZE ((size_t)256 << 20) /* … and their bytes */

struct mcp_client_stats {
    uint64_t messages;
    uint64_t strays;   /* answers to nothing: wrong, doubled or late */
    uint64_t broken;   /* no JSON, or no message */
    uint64_t refused;  /* requests of the server */
    uint64_t notified; /* notifications */
};

/* What came of a call. Borrowed until `done` returns. */
struct mcp_client_answer {
    const struct json *result; /* what the server says; NULL: there is none */
    size_t bytes;              /* of its message */
    bool is_error;             /* a JSON-RPC error of the server: code, text, data (or NULL) */
    int64_t code;
    struct str text;
    const struct json *data;
    const struct err *lost; /* neither came: why */
};

struct mcp_client_call {
    struct str name;
    const struct json *arguments; /* an object */
    const struct json *schema;    /* inputSchema, for transports; may be NULL */
    const struct json *meta;      /* what goes into `_meta` besides our own; may be NULL */
    /* Exactly once, unless the call is cancelled; never from inside of mcp_client_call(). */
    void (*done)(void *arg, const struct mcp_client_answer *a);
    void (*progress)(void *arg, double progress, double total, struct str message); /* or NULL */
    void *arg;
};

struct mcp_client_port {
    /* To the transport; must not call back from inside. */
    int (*send)(void *arg, const struct mcp_outgoing *m, struct err *e);
    void (*drop)(void *arg, uint64_t key);
    /* All pages: an array of objects as they came, valid until the next one. */
    void (*listed)(void *arg, const struct json *tools);
    void (*changed)(void *arg); /* once until the list has been asked for */
    void (*failed)(void *arg, const struct err *why);
    void *arg;
};

struct mcp_client_opts {
    const char *name, *version; /* of this client */
    bool discover_first;
    struct mcp_client_port port;
};

struct mcp_client *mcp_client_new(const struct mcp_client_opts *o);
struct mcp_client *mcp_client_free(struct mcp_client *c); /* accepts NULL, returns NULL */

void mcp_client_start(struct mcp_client *c);
void mcp_client_feed(struct mcp_client *c, struct str text);
/* The request of this key; 0: nobody knows which, so all that wait. */
void mcp_client_lost(struct mcp_client *c, uint64_t key, const struct err *why);
void mcp_client_end(struct mcp_client *c, const struct err *why);

bool mcp_client_ready(const struct mcp_client *c); /* the list is there and no other is known */
void mcp_client_list(struct mcp_client *c);        /* nothing while one is on its way */
int mcp_client_call(struct mcp_client *c, const struct mcp_client_call *call, uint64_t *ret_key,
                    struct err *e) MUST_USE;
/* `done` does not come any more; the server is told. A key that is gone is fine. */
void mcp_client_cancel(struct mcp_client *c, uint64_t key, const char *reason);

const char *mcp_client_version(const struct mcp_client *c); /* agreed on; "" before */
/* {name, version} as the server says; NULL: not said. */
const struct json *mcp_client_server(const struct mcp_client *c);
struct mcp_client_stats mcp_client_stats(const struct mcp_client *c);
