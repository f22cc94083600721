/* SPDX-License-Identifier: MIT
 *
 * The parts of the MCP client. mcp_client.c: life, calls, what comes in; mcp_client_open.c: the
 * handshake and the list.
 */
#pragma once

#include "base/buf.h"
#include "mcp/mcp_client.h"
#include "mcp/mcp_priv.h"
#include "wire/jsonrpc.h"

#define MCP_META_CLIENT "io.modelcontextprotocol/clientInfo"

enum mcp_client_state {
    MCP_CLIENT_NEW,
    MCP_CLIENT_INITIALIZING,
    MCP_CLIENT_DISCOVERING,
    MCP_CLIENT_OPEN,
    MCP_CLIENT_FAILED,
};

enum mcp_pending_kind {
    MCP_PENDING_INITIALIZE,
    MCP_PENDING_DISCOVER,
    MCP_PENDING_LIST,
    MCP_PENDING_LISTEN,
    MCP_PENDING_CALL,
};

/* A request that waits for its answer. */
struct mcp_pending {
    struct mcp_pending *next;
    uint64_t key; /* also its id and its progress token */
    enum mcp_pending_kind kind;
    void (*done)(void *arg, const struct mcp_client_answer *a);
    void (*progress)(void *arg, double progress, double total, struct str message);
    void *arg;
    bool has_progress;
    double last;
};

struct mcp_client {
    struct arena *arena;
    struct mcp_client_opts opts;
    enum mcp_client_state state;
    enum mcp_revision revision;
    bool agreed;
    const struct json *server;
    struct str refusal; /* what it said to `initialize` */
    bool insisted;      /* it refused a version that it has, and was asked again */
    struct mcp_pending *pending;
    size_t n_pending;
    uint64_t last_key;

    struct arena *list_arena; /* of the complete list */
    struct json *list;
    struct arena *next_arena; /* of the one that comes in */
    struct json *next;
    struct str cursor;
    size_t pages, list_bytes;
    bool listing;
    bool stale;  /* the server has another one */
    bool listen; /* 2026-07-28: it tells of changes to who asks */

    size_t noise, noise_size;
    struct mcp_client_stats stats;
};

/* --- mcp_client.c --- */
/* Fails the client: calls are told, then the port. */
void mcp_client_fail(struct mcp_client *c, const struct err *why);
/* A request of our own; what cannot be sent fails the client. `params` may be NULL. */
void mcp_client_ask(struct mcp_client *c, enum mcp_pending_kind kind, const char *method,
                    struct arena *a, struct json *params);
int mcp_client_send(struct mcp_client *c, struct mcp_outgoing *m, const struct json *id,
                    const struct json *params, struct err *e) MUST_USE;
/* Adds what each request of 2026-07-28 says of itself. */
void mcp_client_meta(struct mcp_client *c, struct arena *a, struct json *params);
struct json *mcp_client_info(struct mcp_client *c, struct arena *a);

/* --- mcp_client_open.c --- */
/* The answer to a request that is no call. */
void mcp_client_opened(struct mcp_client *c, enum mcp_pending_kind kind,
                       const struct mcp_client_answer *a);
