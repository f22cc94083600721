/* SPDX-License-Identifier: MIT
 *
 * An MCP server over streamable HTTP: a struct mcp_transport (mcp/mcp_transport.h) on the
 * gateway's way to providers, so that TLS, proxies and plain connections are the same everywhere.
 *
 *   struct toolserver_opts o = { …, .http = mcp_link_new };
 *
 * Each message is a POST; its answer is one JSON document or a stream of events. In a session
 * (Mcp-Session-Id) a GET keeps a stream for what the server says on its own, DELETE ends it; a
 * server that has forgotten the session has ended (on_end). A request whose answer ends without
 * being one is lost. Redirects are not followed: a credential must not travel.
 *
 * A POST that is refused with a message of the protocol is that message; any other status is
 * on_lost: ERR_DENIED for 401 and 403, ERR_PROTO for the rest of 4xx, ERR_UPSTREAM else.
 */
#pragma once

#include "mcp/mcp_transport.h"

int mcp_link_new(const struct mcp_http_opts *o, struct mcp_transport **ret, struct err *e) MUST_USE;
