/* SPDX-License-Identifier: MIT
 *
 * The parts of an upstream MCP server. tool_mcp.c: its life and its calls; tool_mcp_define.c: what
 * a task says of it; tool_mcp_list.c: which of its tools are offered; tool_mcp_answer.c: what an
 * answer means.
 */
#pragma once

#include "mcp/mcp_client.h"
#include "tools/tool_mcp.h"

/* All of it in one arena; values of secrets are in place. */
struct toolserver_plan {
    struct str name;
    const char *const *argv; /* NULL: over HTTP */
    const char *url;
    const struct json *env, *headers; /* NULL: none */
    bool outside;
    const struct json *tools;  /* list of names, or NULL */
    const struct json *rename; /* names to names, or NULL */
    const struct json *pin;    /* names to hashes, or NULL */
    struct str prefix;
    nsec start_timeout, timeout;
    size_t max_output;
};

typedef const char *toolserver_secret(void *arg, const char *name);

/* `secret` NULL: values are left as they are, for a check. */
int toolserver_plan(struct arena *a, const struct json *definition, toolserver_secret *secret,
                    void *arg, struct toolserver_plan *ret, struct err *e) MUST_USE;

/* A tool that is offered. */
struct served {
    struct toolserver *server;
    struct str name;     /* ours */
    struct str upstream; /* theirs */
    const struct json *schema;
    char pin[SHA256_HEX];
    const char *refused; /* why its calls are, from now on; NULL: they are not */
};

struct served_list {
    struct tool *tools; /* to be handed out */
    struct served *items;
    size_t len;
};

typedef void served_report(void *arg, enum toolserver_event ev, struct str tool, const char *text);

/* The first list of the server: what is good of it. Lives in `a`. */
void served_choose(struct arena *a, const struct toolserver_plan *plan, const struct json *list,
                   struct served_list *ret, served_report *report, void *arg);
/* A later list: tools that are described otherwise, or are gone, are refused from now on. */
void served_compare(struct arena *a, struct served_list *served, const struct json *list,
                    served_report *report, void *arg);

/* Everything is in `a` or in the answer. */
void toolserver_read(struct arena *a, const struct mcp_client_answer *answer, size_t max_output,
                     struct tool_result *ret);
