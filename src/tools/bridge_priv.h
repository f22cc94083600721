/* SPDX-License-Identifier: MIT
 *
 * The parts of the bridge. bridge.c: life and list of tools; bridge_call.c: the way of a call from
 * its begin to its answer; bridge_text.c: what the model and the record get to read; bridge_mcp.c:
 * the port of the MCP server.
 *
 * A call is in the bridge's list from its begin until its handler has ended; its memory goes after
 * that from the loop, so that whoever is on the stack may still look at it.
 */
#pragma once

#include "base/arena.h"
#include "tools/bridge.h"

enum bridge_phase {
    CALL_BUSY,      /* we are in the middle of a step of it: nobody can cancel it now */
    CALL_QUEUED,    /* waits for a place */
    CALL_POLICY,    /* the guard decides */
    CALL_RUNNING,   /* the handler works */
    CALL_ENDING,    /* … and has been told to stop */
    CALL_FEEDBACK,  /* the outcome is known, the feedback is not */
    CALL_ABANDONED, /* answered, but the handler has not ended */
    CALL_LOST,      /* … and the bridge was stopped: only its memory is kept, for the handler */
    CALL_DONE,
};

struct bridge_call {
    struct tool_run run;
    struct bridge *b;
    struct bridge_call *prev, *next;
    struct arena *arena;
    struct bridge_request request; /* copied */
    enum bridge_phase phase;
    bool placed;  /* counts among BRIDGE_CALLS_MAX */
    bool working; /* the handler has begun and not ended */
    struct timer *timer;
    struct guard_check *check;
    struct feedback_round *round;
    struct txn *txn;
    struct store_txn *session;
    enum tool_failure cause; /* why it is ending */
    nsec began;
    struct bridge_record record;
    struct bridge_answer answer;
};

struct bridge_tool {
    struct tool tool;
    struct json *shown; /* as MCP lists it */
    bool offered;
};

struct bridge {
    struct bridge_opts opts;
    struct arena *arena;
    struct bridge_tool **tools;
    size_t n_tools, cap_tools;
    const char **offer; /* NULL: all */
    uint64_t version;
    struct bridge_call *calls, *last; /* the oldest first */
    struct bridge_call *lost;         /* CALL_LOST */
    size_t placed, queued;
    bool stopped, pumping, idle_posted;
    bool listed; /* a client of the MCP server has read the list */
};

/* --- bridge.c --- */
/* Also one that is not offered. */
const struct bridge_tool *bridge_look_up(const struct bridge *b, struct str name);
void bridge_link(struct bridge_call *c);
void bridge_unlink(struct bridge_call *c); /* makes room for those who wait */
void bridge_call_destroy(void *call);

/* --- bridge_call.c --- */
void bridge_call_admit(struct bridge_call *c); /* there is a place for it now */
/* Whatever it is doing, it is answered when this returns, and undone. */
void bridge_call_forget(struct bridge_call *c);
/* An abandoned one, when the bridge was stopped: nobody waits for its handler any more. */
void bridge_call_lose(struct bridge_call *c);

/* --- bridge_text.c --- */
/* Valid UTF-8 of at most BRIDGE_TEXT_MAX bytes, in the arena or borrowed. */
struct str bridge_text(struct arena *a, struct str text);
/* Content blocks of MCP with their texts cut like any other; *ret_text is all of their texts. NULL
 * with ERR_CONFIG for what are no blocks. */
int bridge_content(struct arena *a, const struct json *content, struct json **ret,
                   struct str *ret_text, struct err *e) MUST_USE;
