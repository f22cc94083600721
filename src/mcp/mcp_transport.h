/* SPDX-License-Identifier: MIT
 *
 * struct mcp_transport: how messages of the Model Context Protocol get to a server and back. Two
 * fill it in: a program's standard streams (mcp/mcp_stdio.h) and HTTP (mcp/mcp_link.h).
 *
 *   t->ops->send(t, &message, e)    at once, or queued; no callback from inside of it
 *       → on_message(text)*         one JSON document, of any request or of none
 *       → on_lost(key, why)         the answer to this request will not come
 *       → on_end(why)               exactly once: nothing comes any more, nothing is left running
 *   t->ops->drop(t, key)            the answer is not wanted any more
 *   t->ops->close(t)                on_end comes soon, with NULL
 *   t->ops->kill(t)                 after close(): at once. NULL: close() is as fast as it gets
 *   t->ops->free(t)                 at any time; no callback after it
 *
 * Who implements one puts `struct mcp_transport` first into a struct of its own. All callbacks come
 * from the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct json;
struct loop;
struct mcp_transport;

#define MCP_MESSAGE_MAX ((size_t)16 << 20) /* from a server; a larger one is dropped whole */

/* Borrowed until send() returns. The text says it all; the rest is for transports that repeat some
 * of it elsewhere. */
struct mcp_outgoing {
    struct str text; /* one line without its end */
    uint64_t key;    /* of a request: names it towards the transport; 0: no answer comes */
    struct str method;
    struct str name;                       /* of the tool, in tools/call */
    struct str version;                    /* of the protocol; empty: not agreed on yet */
    bool stateless;                        /* a request of 2026-07-28 */
    const struct json *schema, *arguments; /* of the tool, for x-mcp-header; may be NULL */
};

struct mcp_transport_port {
    void (*on_message)(void *arg, struct str text);
    /* ERR_LIMIT: it was too large. A key of 0: nobody knows whose answer it was. */
    void (*on_lost)(void *arg, uint64_t key, const struct err *why);
    void (*on_end)(void *arg, const struct err *why);
    void *arg;
};

struct mcp_transport_ops {
    int (*send)(struct mcp_transport *t, const struct mcp_outgoing *m, struct err *e);
    void (*drop)(struct mcp_transport *t, uint64_t key);
    void (*close)(struct mcp_transport *t);
    void (*kill)(struct mcp_transport *t);
    void (*free)(struct mcp_transport *t);
};

struct mcp_transport {
    const struct mcp_transport_ops *ops;
};

/* Opens a transport over HTTP: mcp_link_new() of mcp/mcp_link.h is one. */
struct mcp_http_opts {
    struct loop *loop;
    const char *url;
    const struct json *headers; /* names to strings, with secrets in place; NULL: none */
    struct mcp_transport_port port;
};
typedef int mcp_http_open(const struct mcp_http_opts *o, struct mcp_transport **ret, struct err *e);
