/* SPDX-License-Identifier: MIT
 *
 * An MCP server that is a program: messages are lines on its standard streams, its standard error
 * is kept for people. A struct mcp_transport (mcp/mcp_transport.h).
 *
 *   mcp_stdio_new(&(struct mcp_stdio_opts){ .host = host, .argv = argv, .port = { … } }, &t, e);
 *   t->ops->send(t, &message, e);  …  t->ops->close(t);  … on_end …  t->ops->free(t);
 *
 * close() ends its input; who does not leave within MCP_STDIO_LEAVE is killed, with all it started.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "mcp/mcp_transport.h"

struct helper_host;
struct json;

#define MCP_STDIO_LEAVE      (2 * NSEC_PER_SEC)
#define MCP_STDIO_QUEUE      ((size_t)32 << 20) /* for a server that does not read */
#define MCP_STDIO_STDERR_MAX 8192               /* the last bytes of it are kept */

struct mcp_stdio_opts {
    const struct helper_host *host;
    const char *const *argv; /* as in struct helper_opts, like the next two */
    const struct json *env;
    bool outside;
    struct mcp_transport_port port;
};

/* Fails for what can be known at once; else on_end says how it ended. */
int mcp_stdio_new(const struct mcp_stdio_opts *o, struct mcp_transport **ret,
                  struct err *e) MUST_USE;
struct str mcp_stdio_stderr(const struct mcp_transport *t);
