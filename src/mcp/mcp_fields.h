/* SPDX-License-Identifier: MIT
 *
 * Header fields of a request of 2026-07-28 that repeat what its body says: Mcp-Method, Mcp-Name,
 * and Mcp-Param-… of tools whose schema has x-mcp-header. The client's side; the server's is
 * mcp_header.c.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "mcp/mcp_transport.h"
#include "wire/http.h"

#define MCP_FIELDS_MAX 32 /* of a message; what a schema wants beyond is left out */

/* Returns how many; values are in `a`, encoded where a field could not hold them. */
size_t mcp_fields(struct arena *a, const struct mcp_outgoing *m,
                  struct http_field out[MCP_FIELDS_MAX]);
/* Whether each x-mcp-header of an input schema is one; ERR_CONFIG says why not. */
int mcp_fields_check(const struct json *schema, struct err *e) MUST_USE;
