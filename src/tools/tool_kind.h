/* SPDX-License-Identifier: MIT
 *
 * The kinds of tools that a task can define. The member of a definition that is named by `key`
 * selects the kind:
 *
 *   tools:
 *     - {name: lint, description: Runs the linter., command: [./lint.sh]}    program
 *     - {name: tickets, mcp: {url: https://tickets.example/mcp}}             mcp
 *
 * A kind is used in this order:
 *
 *  1. check(definition)          before anything starts; also by `cinch task check`
 *  2. bind(definition, &tool)    TOOL_SINGLE: gives a defined tool its handler (tools/tool.h)
 *     toolserver_open()          TOOL_SERVER: the tools are those that the server lists
 *
 * To add one: CONTRIBUTING.md, "A tool kind".
 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "tools/tool.h"

/* Each NAME is a `const struct tool_kind tool_kind_NAME`. */
#define TOOL_KIND_LIST(X) \
    X(program)            \
    X(mcp)

enum tool_source {
    TOOL_SINGLE, /* the definition is one tool, with a description and schemas */
    TOOL_SERVER, /* the definition is a server (tools/tool_mcp.h) */
};

struct tool_kind {
    const char *name; /* as in tool_handler.kind */
    const char *key;
    enum tool_source source;
    const char *command; /* JSON Pointer to the program that it starts; "": it starts none */
    int (*check)(const struct json *definition, struct err *e);
    int (*bind)(struct arena *a, const struct json *definition, struct tool *t, struct err *e);
};

#define X(name) extern const struct tool_kind tool_kind_##name;
TOOL_KIND_LIST(X)
#undef X

const struct tool_kind *tool_kind_at(size_t i); /* NULL after the last one */
/* The kind of a definition. ERR_CONFIG names the keys unless there is exactly one. */
int tool_kind_of(const struct json *definition, const struct tool_kind **ret,
                 struct err *e) MUST_USE;
/* Program and arguments that a tool of this definition is started with; NULL: none. */
const struct json *tool_kind_command(const struct json *definition);
