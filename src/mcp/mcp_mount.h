/* SPDX-License-Identifier: MIT
 *
 * The MCP server (mcp/mcp.h) on the gateway's door: a struct upstream for a gateway_mount, behind
 * the gateway's token and its check of Host.
 *
 *   mcp_mount_new(loop, &opts, &up, e);
 *   struct gateway_mount mount = { .path = "/mcp", .upstream = up };
 *   … gateway_open(…); mcp_mount_changed(up) when the list of tools is another one …
 *   mcp_mount_stop(up)     before gateway_stop(): open streams end well, calls are cancelled
 *   gateway_free(g); up->ops->free(up);
 */
#pragma once

#include "base/err.h"
#include "gateway/upstream.h"
#include "mcp/mcp.h"

struct loop;

int mcp_mount_new(struct loop *l, const struct mcp_opts *opts, struct upstream **ret,
                  struct err *e) MUST_USE;
void mcp_mount_changed(struct upstream *up);
void mcp_mount_stop(struct upstream *up);
