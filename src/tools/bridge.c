/* SPDX-License-Identifier: MIT
 *
 * The bridge's life and its list of tools. The way of a call is in bridge_call.c.
 */
#include "tools/bridge.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "io/loop.h"
#include "io/timer.h"
#include "record/state_store.h"
#include "tools/bridge_priv.h"

struct bridge *bridge_new(const struct bridge_opts *o)
{
    struct bridge *b = xcalloc(1, sizeof *b);
    b->opts = *o;
    b->arena = arena_new();
    b->version = 1;
    /* Fails only when the task has one of that name with another policy: then it is the task's. */
    (void)!store_declare(o->session, STR("ToolInvoked"), SLICE_LOG, NULL);
    return b;
}

void bridge_set_txns(struct bridge *b, struct txns *txns)
{
    b->opts.txns = txns;
}

static void destroy(void *bridge)
{
    struct bridge *b = bridge;
    free(b->tools);
    arena_free(b->arena);
    free(b);
}

struct bridge *bridge_free(struct bridge *b)
{
    if (b == NULL) {
        return NULL;
    }
    b->opts.idle = NULL;
    bridge_stop(b);
    while (b->calls != NULL) {
        bridge_call_forget(b->calls);
    }
    while (b->lost != NULL) {
        struct bridge_call *c = b->lost;
        b->lost = c->next;
        bridge_call_destroy(c);
    }
    for (size_t i = 0; i < b->n_tools; i++) {
        tool_free(&b->tools[i]->tool);
    }
    loop_retire(b->opts.loop, destroy, b); /* something may be posted for it */
    return NULL;
}

/* --- tools --- */

static bool is_offered(const struct bridge *b, struct str name)
{
    if (b->offer == NULL) {
        return true;
    }
    for (size_t i = 0; b->offer[i] != NULL; i++) {
        if (str_eqc(name, b->offer[i])) {
            return true;
        }
    }
    return false;
}

const struct bridge_tool *bridge_look_up(const struct bridge *b, struct str name)
{
    for (size_t i = 0; i < b->n_tools; i++) {
        if (str_eq(b->tools[i]->tool.name, name)) {
            return b->tools[i];
        }
    }
    return NULL;
}

int bridge_add(struct bridge *b, const struct tool *t, struct err *e)
{
    struct arena *a = b->arena;
    if (bridge_look_up(b, t->name) != NULL) {
        return ERR(e, ERR_EXISTS, "there are two tools '%.*s'", STR_ARG(t->name));
    }
    if (b->n_tools == MCP_TOOLS_MAX) {
        return ERR(e, ERR_LIMIT, "tool '%.*s': there are %d already", STR_ARG(t->name),
                   MCP_TOOLS_MAX);
    }
    if (b->n_tools == b->cap_tools) {
        b->cap_tools = b->cap_tools == 0 ? 16 : b->cap_tools * 2;
        b->tools = xrealloc(b->tools, b->cap_tools * sizeof *b->tools);
    }
    struct bridge_tool *own = ARENA_NEW(a, struct bridge_tool);
    own->tool = *t;
    own->tool.name = arena_str(a, t->name);
    own->tool.description = arena_str(a, t->description);
    own->tool.title = arena_str(a, t->title);
    own->tool.section = arena_str(a, t->section);
    own->tool.input_schema = json_copy(a, t->input_schema);
    own->tool.output_schema = t->output_schema == NULL ? NULL : json_copy(a, t->output_schema);
    own->shown = tool_mcp_json(a, &own->tool);
    own->offered = is_offered(b, t->name);
    b->tools[b->n_tools++] = own;
    b->version++;
    return 0;
}

void bridge_offer(struct bridge *b, const char *const *names)
{
    size_t n = 0;
    while (names != NULL && names[n] != NULL) {
        n++;
    }
    b->offer = names == NULL ? NULL : arena_array(b->arena, n + 1, sizeof *b->offer);
    for (size_t i = 0; i < n; i++) {
        b->offer[i] = arena_dup(b->arena, str_of(names[i]));
    }
    for (size_t i = 0; i < b->n_tools; i++) {
        b->tools[i]->offered = is_offered(b, b->tools[i]->tool.name);
    }
    b->version++;
}

size_t bridge_tools_len(const struct bridge *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_tools; i++) {
        n += b->tools[i]->offered;
    }
    return n;
}

const struct tool *bridge_tool(const struct bridge *b, size_t i)
{
    for (size_t k = 0; k < b->n_tools; k++) {
        if (b->tools[k]->offered && i-- == 0) {
            return &b->tools[k]->tool;
        }
    }
    return NULL;
}

const struct tool *bridge_find(const struct bridge *b, struct str name)
{
    const struct bridge_tool *t = bridge_look_up(b, name);
    return t != NULL && t->offered ? &t->tool : NULL;
}

uint64_t bridge_version(const struct bridge *b)
{
    return b->version;
}

/* --- calls --- */

void bridge_link(struct bridge_call *c)
{
    struct bridge *b = c->b;
    c->prev = b->last;
    *(b->last != NULL ? &b->last->next : &b->calls) = c;
    b->last = c;
}

static void tell_idle(void *arg)
{
    struct bridge *b = arg;
    if (b->opts.idle != NULL) {
        b->opts.idle(b->opts.arg); /* may free it */
    }
}

static void look_for_idle(struct bridge *b)
{
    if (b->stopped && b->calls == NULL && !b->idle_posted && b->opts.idle != NULL) {
        b->idle_posted = true;
        loop_post(b->opts.loop, tell_idle, b);
    }
}

/* From the loop, so that a row of calls that answer at once does not pile up on the stack. */
static void pump(void *arg)
{
    struct bridge *b = arg;
    struct bridge_call *c = b->calls;
    b->pumping = false;
    while (c != NULL && b->placed < BRIDGE_CALLS_MAX) {
        if (c->phase != CALL_QUEUED) {
            c = c->next;
            continue;
        }
        b->queued--;
        b->placed++;
        c->placed = true;
        bridge_call_admit(c);
        c = b->calls; /* anything may have happened to the list */
    }
}

void bridge_unlink(struct bridge_call *c)
{
    struct bridge *b = c->b;
    *(c->prev != NULL ? &c->prev->next : &b->calls) = c->next;
    *(c->next != NULL ? &c->next->prev : &b->last) = c->prev;
    b->placed -= c->placed;
    c->placed = false;
    if (b->queued > 0 && !b->pumping && !b->stopped) {
        b->pumping = true;
        loop_post(b->opts.loop, pump, b);
    }
    look_for_idle(b);
}

void bridge_call_destroy(void *call)
{
    struct bridge_call *c = call;
    timer_free(c->timer);
    arena_free(c->arena);
    free(c);
}

bool bridge_busy(const struct bridge *b)
{
    return b->calls != NULL;
}

void bridge_stop(struct bridge *b)
{
    b->stopped = true;
    /* An answer may end others: begin again after each, until none is left that can be hurried. */
    for (struct bridge_call *c = b->calls; c != NULL;) {
        enum bridge_phase before = c->phase;
        if (before == CALL_ABANDONED) {
            bridge_call_lose(c);
        } else {
            bridge_cancel(c);
        }
        c = c->phase == before ? c->next : b->calls;
    }
    look_for_idle(b);
}
