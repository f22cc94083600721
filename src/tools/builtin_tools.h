/* SPDX-License-Identifier: MIT
 *
 * The tools of the built-in agent, for the bridge: names, schemas and limits, as builtin_tools.yaml
 * defines them. cinch-tools carries them out (tools/builtin.h), as a program of the agent: in its
 * sandbox, with its home and its environment, in the transaction of the call.
 *
 *   builtin_tools_load(a, &list, e);
 *   builtin_tool(a, json_item(list, i), "/usr/libexec/cinch/cinch-tools", host, &tool, e);
 *   bridge_add(b, &tool, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "tools/tool.h"

struct helper_host;

/* Made from builtin_tools.yaml by scripts/embed.py. */
struct builtin_table {
    const char *file;
    const char *text;
    size_t len;
};
extern const struct builtin_table builtin_tables[];
extern const size_t builtin_tables_len;

int builtin_tools_load(struct arena *a, const struct json **ret, struct err *e) MUST_USE;
/* `program` as programs of the agent see it; `host` must outlive the tool. */
int builtin_tool(struct arena *a, const struct json *entry, const char *program,
                 const struct helper_host *host, struct tool *ret, struct err *e) MUST_USE;
