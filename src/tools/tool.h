/* SPDX-License-Identifier: MIT
 *
 * struct tool: something that a model may call, and struct tool_handler: what carries the call out.
 * The bridge (tools/bridge.h) stands between the two: a handler sees only calls that are allowed
 * and fit the schema, works in a transaction of its own, and says what came of it.
 *
 * Kinds of handlers: a program (tools/tool_program.h), a server of the Model Context Protocol
 * (tools/tool_mcp.h), a C function (tools/tool_callback.h), cinch itself (tools/tool_builtin.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

struct helper_host;
struct schema;
struct store_txn;
struct tool_handler;

#define TOOL_NAME_MAX        64  /* a-z, 0-9, _ and - */
#define TOOL_DESCRIPTION_MAX 200 /* ASCII, after trimming */
#define TOOL_TIME            (60 * NSEC_PER_SEC)
#define TOOL_OUTPUT          (1u << 20) /* bytes */

/* Everything lives in the arena it was made in. */
struct tool {
    struct str name;
    struct str description;
    struct str title;                 /* empty: none */
    const struct json *input_schema;  /* an object, never NULL: as it is offered and recorded */
    const struct json *output_schema; /* of the value; NULL: anything */
    struct schema *input, *output;    /* compiled; output may be NULL */
    struct str section;               /* path of the section that offers it; empty: the prompt */
    nsec timeout;                     /* of one call */
    size_t max_output;
    bool reads_only; /* changes no files: needs no transaction on them */
    bool quiet;      /* no feedback goes with its result */
    const struct tool_handler *handler;
    void *self; /* the handler's */
};

/* Why a call came to nothing. */
enum tool_failure {
    TOOL_OK,
    TOOL_UNKNOWN,    /* no tool of that name */
    TOOL_INVALID,    /* the arguments do not fit */
    TOOL_DENIED,     /* by a policy */
    TOOL_DEADLINE,   /* no time is left */
    TOOL_BUDGET,     /* no budget is left */
    TOOL_FAILED,     /* the handler says so */
    TOOL_CRASHED,    /* it died */
    TOOL_TIMEOUT,    /* it took too long */
    TOOL_FLOOD,      /* it said too much */
    TOOL_BAD_OUTPUT, /* what it said is no answer, or does not fit the output schema */
    TOOL_CONFLICT,   /* somebody else changed the same file meanwhile */
    TOOL_CANCELLED,
    TOOL_INTERNAL, /* cinch could not carry it out */
};
const char *tool_failure_word(enum tool_failure f); /* "ok", "unknown", … */

/* What a handler says. Borrowed until tool_run_done() returns. */
struct tool_result {
    enum tool_failure failure;
    struct str message;         /* for the model; empty with a value that speaks for itself */
    const struct json *value;   /* NULL: none */
    bool exclude_value;         /* the model gets the message only */
    const struct json *state;   /* list of changes to the session; NULL: none. See tool_state.h */
    const struct json *content; /* content blocks of MCP in place of a rendered value; NULL: none */
    uint32_t leaked;            /* processes that outlived it and were killed */
};

/* One execution, as a handler sees it. */
struct tool_run {
    const struct tool *tool;
    struct str call_id;
    const struct json *arguments; /* an object that fits the schema */
    const struct json *meta;      /* `_meta` of the request (trace context); or NULL */
    const struct helper_host *host;
    const char *layer; /* of the transaction, for helpers; NULL: none */
    const char *cwd;   /* where the workspace is for this call; NULL: the host's */
    struct store_txn *session;
    nsec timeout;        /* what this call may take: the tool's, or what is left of the run's */
    struct arena *arena; /* lives as long as the call */
    void *user;          /* the handler's */
};

struct tool_handler {
    const char *kind; /* "program", "mcp", "callback", "builtin" */
    /* tool_run_done() comes exactly once, at once or later, also after cancel(); nothing that the
     * call started is running by then. */
    void (*start)(void *self, struct tool_run *run);
    void (*cancel)(void *self, struct tool_run *run); /* NULL: cannot be hurried */
    void (*free)(void *self);                         /* NULL: nothing to free */
    bool is_foreign;                                  /* what it does is not undone by a rollback */
};

/* Called by handlers; in bridge.c. */
void tool_run_done(struct tool_run *run, const struct tool_result *result);
/* total < 0: unknown. */
void tool_run_progress(struct tool_run *run, double progress, double total, struct str message);

/* Name, description and schemas from a task's definition; ERR_CONFIG says what is wrong. The input
 * schema gets `type: object` and `additionalProperties: false` where it says nothing about it; no
 * schema at all is an object without members. */
int tool_define(struct arena *a, const struct json *definition, struct tool *ret,
                struct err *e) MUST_USE;
/* {name, title?, description, inputSchema, outputSchema?, annotations?} of MCP. */
struct json *tool_mcp_json(struct arena *a, const struct tool *t);
/* What goes with a result as structuredContent: the value, wrapped in {result: …} where the output
 * schema is not of an object (outputSchema is then, too). NULL: the tool has no output schema. */
struct json *tool_structured(struct arena *a, const struct tool *t, const struct json *value);
/* The text that a model gets for a value: strings as they are, nothing for null,
 * anything else compact JSON. */
struct str tool_render(struct arena *a, const struct json *value);
/* ERR_LIMIT beyond `max` bytes. */
int tool_render_bounded(struct arena *a, const struct json *value, size_t max, struct str *ret,
                        struct err *e) MUST_USE;
bool tool_name_ok(struct str name);
void tool_free(struct tool *t); /* compiled schemas and the handler */
