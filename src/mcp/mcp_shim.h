/* SPDX-License-Identifier: MIT
 *
 * struct mcp_shim: an MCP server over HTTP for a client that can only talk to a program: lines of
 * JSON come in, are posted (mcp/mcp_link.h), and answers and notifications go out as lines.
 *
 *   mcp_shim_new(&(struct mcp_shim_opts){ .loop = l, .url = url, .token = token, .in = 0, .out = 1,
 *                                         .ended = on_ended, .arg = me }, &s, e);
 *   loop_run(l); … mcp_shim_free(s);
 *
 * `ended` comes once: the client has closed its end and what it asked was answered (or took longer
 * than MCP_SHIM_LINGER), it does not read any more, or the server is gone (why). What cannot be
 * posted is answered with a JSON-RPC error, so that nobody waits for nothing.
 *
 * The messages are not changed, and nothing is known of methods but what HTTP needs: the version
 * that `initialize` agreed on, the fields of 2026-07-28 (of which x-mcp-header needs the schemas of
 * tools/list), and that a cancelled request has no answer. The members of a batch are sent one by
 * one.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"

struct loop;
struct mcp_shim;

#define MCP_SHIM_LINGER NSEC_PER_SEC
#define MCP_SHIM_QUEUE  ((size_t)256 << 20) /* for a client that does not read */
#define MCP_SHIM_ASKED  256                 /* requests under way */

struct mcp_shim_opts {
    struct loop *loop;
    const char *url;
    const char *token; /* goes as "Authorization: Bearer …"; NULL: none */
    /* Become the shim's, also on failure. Pipes, sockets and terminals do not block from then on,
     * which whoever shares them will notice. */
    int in, out;
    void (*ended)(void *arg, const struct err *why);
    void *arg;
};

int mcp_shim_new(const struct mcp_shim_opts *o, struct mcp_shim **ret, struct err *e) MUST_USE;
struct mcp_shim *mcp_shim_free(struct mcp_shim *s); /* accepts NULL, returns NULL */
