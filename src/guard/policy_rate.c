/* SPDX-License-Identifier: MIT
 *
 * The policy rate: at most so many calls of each tool within a time, or within the run. Counted is
 * what was let through, when it was: also calls that fail, and calls that the session has forgotten
 * since. The slice holds the calls that succeeded, so that a session that is taken up by another
 * run does not begin with a fresh account.
 */
#include "guard/guard_priv.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/id.h"
#include "data/pathmap.h"
#include "data/shape.h"

#define CALLS_MAX 100000 /* moments are kept for so many calls of a tool */
#define TOOLS_MAX 1024   /* names; a harness that invents more is denied */

/* The moments of the last calls of one tool, oldest at `first`; at most `calls` of them. */
struct account {
    nsec *moments;
    size_t first, len, cap;
};

struct rate {
    size_t calls;
    nsec per; /* 0: the whole run */
    struct pathmap names;
    struct account *accounts;
    char self[ID_LEN]; /* marks the items of this process: those are counted already */
    size_t at, high;   /* items since the last forget(), and most of them ever */
};

static int rate_make(struct policy *p, const struct json *definition, struct err *e)
{
    struct rate *r = ARENA_NEW(p->guard->arena, struct rate);
    p->self = r;
    int64_t calls = json_int(json_get(definition, "calls"), 0);
    const struct json *per = json_get(definition, "per");
    if (calls < 1 || calls > CALLS_MAX) {
        return ERR(e, ERR_CONFIG, "'calls' must be between 1 and %d; 'deny' allows none",
                   CALLS_MAX);
    }
    r->calls = (size_t)calls;
    r->per = shape_duration(per, 0);
    if (per != NULL && !json_is(per, JSON_NULL) && r->per <= 0) {
        return ERR(e, ERR_CONFIG, "'per' must be greater than 0");
    }
    (void)id_new(r->self);
    return 0;
}

/* --- accounts --- */

static struct account *account_find(const struct rate *r, struct arena *a, struct str tool)
{
    size_t i;
    return pathmap_get(&r->names, arena_dup(a, tool), &i) ? &r->accounts[i] : NULL;
}

static struct account *account_open(struct rate *r, struct arena *a, struct str tool)
{
    struct account *found = account_find(r, a, tool);
    if (found != NULL || r->names.len == TOOLS_MAX) {
        return found;
    }
    size_t n = r->names.len;
    r->accounts = xrealloc(r->accounts, (n + 1) * sizeof *r->accounts);
    r->accounts[n] = (struct account) { 0 };
    pathmap_put(&r->names, arena_dup(a, tool), n);
    return &r->accounts[n];
}

static void account_grow(struct account *x, size_t calls)
{
    size_t cap = x->cap == 0 ? 8 : x->cap * 2;
    cap = cap < calls ? cap : calls;
    nsec *moments = xcalloc(cap, sizeof *moments);
    for (size_t i = 0; i < x->len; i++) {
        moments[i] = x->moments[(x->first + i) % x->cap];
    }
    free(x->moments);
    x->moments = moments;
    x->first = 0;
    x->cap = cap;
}

static void account_add(struct account *x, size_t calls, nsec moment)
{
    if (x->len == x->cap && x->cap < calls) {
        account_grow(x, calls);
    }
    if (x->len == x->cap) {
        x->first = (x->first + 1) % x->cap;
        x->len--;
    }
    x->moments[(x->first + x->len++) % x->cap] = moment;
}

/* --- calls --- */

static enum policy_verdict rate_check(struct policy *p, struct guard_check *c)
{
    const struct rate *r = p->self;
    if (str_has_nul(c->call.tool)) {
        return policy_broken(c, "a name with NUL");
    }
    const struct account *x = account_find(r, c->arena, c->call.tool);
    if (x == NULL) {
        return r->names.len < TOOLS_MAX ? POLICY_ALLOWS
                                        : policy_broken(c, "more than %d tools", TOOLS_MAX);
    }
    if (x->len < r->calls) {
        return POLICY_ALLOWS;
    }
    if (r->per == 0) {
        return policy_deny(c, "Tool '%.*s' may be called %zu times, and was.",
                           STR_ARG(c->call.tool), r->calls);
    }
    nsec wait = x->moments[x->first] + r->per - guard_now(p->guard);
    int64_t seconds = (wait + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
    if (wait <= 0) {
        return POLICY_ALLOWS;
    }
    return policy_deny(c,
                       "Tool '%.*s' may be called %zu times in %.6g seconds. Try again in %" PRId64
                       " second%s.",
                       STR_ARG(c->call.tool), r->calls, (double)r->per / (double)NSEC_PER_SEC,
                       seconds, seconds == 1 ? "" : "s");
}

static void count(struct policy *p, struct str tool, nsec moment)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct rate *r = p->self;
    struct account *x = str_has_nul(tool) ? NULL : account_open(r, a, tool);
    if (x != NULL) {
        account_add(x, r->calls, moment);
    }
}

static void rate_take(struct policy *p, const struct guard_call *call)
{
    count(p, call->tool, guard_now(p->guard));
}

static struct json *rate_note(struct policy *p, struct arena *a, const struct guard_call *call)
{
    const struct rate *r = p->self;
    if (!policy_applies(p, call)) {
        return NULL;
    }
    struct json *items = json_array(a);
    struct json *item = json_object(a);
    json_setc(a, item, "tool", json_string(a, call->tool));
    json_setc(a, item, "at_ms", json_integer(a, clock_wall() / NSEC_PER_MS));
    json_setc(a, item, "by", json_cstr(a, r->self));
    json_push(a, items, item);
    return items;
}

static void rate_learn(struct policy *p, const struct json *item)
{
    struct rate *r = p->self;
    if (++r->at <= r->high) {
        return;
    }
    r->high = r->at;
    const struct json *at = json_get(item, "at_ms");
    if (json_is(at, JSON_INT) && !str_eqc(json_str(json_get(item, "by"), STR_EMPTY), r->self)) {
        int64_t age = clock_wall() / NSEC_PER_MS - at->integer;
        age = age < 0 ? 0 : age;
        age = age > INT64_MAX / NSEC_PER_MS / 4 ? INT64_MAX / NSEC_PER_MS / 4 : age;
        count(p, json_str(json_get(item, "tool"), STR_EMPTY),
              guard_now(p->guard) - age * NSEC_PER_MS);
    }
}

static void rate_forget(struct policy *p)
{
    struct rate *r = p->self;
    r->at = 0;
}

static void rate_free(struct policy *p)
{
    struct rate *r = p->self;
    for (size_t i = 0; i < r->names.len; i++) {
        free(r->accounts[i].moments);
    }
    free(r->accounts);
    pathmap_done(&r->names);
}

const struct policy_kind policy_kind_rate = {
    .type = "rate",
    .make = rate_make,
    .check = rate_check,
    .take = rate_take,
    .note = rate_note,
    .learn = rate_learn,
    .forget = rate_forget,
    .free = rate_free,
};
