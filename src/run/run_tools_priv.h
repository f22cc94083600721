/* SPDX-License-Identifier: MIT
 *
 * struct run_tools: the tools of one run. Shared by run_tools.c (its life), run_tools_call.c (what
 * happens while the agent works), run_tools_server.c (servers of others), run_tools_child.c (what
 * the harness gets) and continuations.c.
 */
#pragma once

#include "gateway/gateway.h"
#include "proc/helper_program.h"
#include "run/run_priv.h"
#include "tools/bridge.h"

struct completion;
struct completion_check;
struct feedback;
struct guard;
struct offered;
struct terminal;
struct tool_output;
struct tool_sections;
struct toolserver;

struct run_tools {
    struct section_rendering at_start; /* what the agent knew before it opened sections */
    struct helper_host host;           /* of programs beside the agent */
    /* Of programs that the agent has us start: in its own home. Neither has the agent's token. */
    struct helper_host agent_host;
    struct environment agent_environment;
    struct guard *guard;       /* NULL: no policies */
    struct feedback *feedback; /* NULL: none */
    struct completion *completion;
    struct completion_check *checking; /* NULL: nothing is being checked */
    struct agent_report reviewed;      /* what it judges; borrows from the driver */
    struct bridge *bridge;             /* NULL: nothing is offered */
    struct txns *txns;

    struct terminal *terminals; /* programs that run for the agent; agent_terminals.c */

    struct gateway_mount door; /* upstream NULL: nothing is mounted */
    struct toolserver **servers;
    size_t n_servers;
    size_t waiting; /* for servers that connect, or that end */
    size_t helpers; /* programs of ours that are not gone yet, whoever waits for them */

    struct offered *offered;        /* what of it the model gets; NULL: not begun */
    struct tool_sections *sections; /* NULL: nothing can be opened */
    struct tool_output *answer;     /* NULL: the answer does not come by a tool */
    struct tool_ask *ask;           /* NULL: it is not offered */
    struct driver_tools offer;      /* for drivers that run the loop themselves */

    void (*opened)(struct run *run); /* waits for tools_open() */
    void (*closed)(struct run *run); /* waits for tools_close() */
    bool ending;                     /* servers are told to end */
    bool hurry;                      /* they have no time for that */
};

/* Servers (run_tools_server.c): tools_go_on_opened() follows when all have answered, or failed. */
int servers_open(struct run *run, struct err *e) MUST_USE;
void servers_stop(struct run *run); /* tools_finish_close() follows; idempotent */
void servers_kill(struct run *run); /* now, or as soon as they are told to end */
void servers_free(struct run *run);
void tools_go_on_opened(void *run);
void tools_finish_close(void *run);

/* The tools as they are offered now, into bridge, door and driver. */
void tools_offer(struct run *run);
/* Names and values of guards and hosts that the life needs (run_tools_call.c). */
void tools_began(void *run, struct str name, struct str call_id);
void tools_invoked(void *run, const struct bridge_record *r);
void tools_opened_sections(void *run, const struct json *visibility, struct str reason);
/* cinch-tools, as programs of the agent see it; NULL with *e: it is not there. */
const char *tools_builtin_program(struct run *run, struct err *e);
