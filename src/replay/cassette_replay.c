/* SPDX-License-Identifier: MIT
 *
 * Which recorded exchange answers a request. The run's order is the rule: of those that fit, the
 * earliest that was not played yet, so that equal requests (retries) get their answers one after
 * the other, and side requests may overtake each other. Nothing is made up: a request that fits
 * none is an error that says how it differs from the one that was due.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "data/json_diff.h"
#include "replay/cassette.h"

/* Differences that a report lists. */
enum { REPORT_MAX = 50 };

/* An exchange, and its request as a tree. */
struct unpacked {
    struct cassette_exchange exchange;
    const struct json *tree; /* NULL: not parsed yet */
};

struct cassette_replay {
    struct cassette *cassette;
    struct cassette_rules *rules;
    const struct redactor *redactor;
    bool *played;
    size_t first; /* all before it were played */
    size_t left;
    size_t asked;
    struct buf report;
    struct arena *ahead; /* the exchange that is due next, unpacked; NULL: not yet */
    size_t ahead_index;
    struct unpacked ahead_exchange;
};

int cassette_replay_new(struct cassette *c, const struct json *rules, const struct redactor *r,
                        struct cassette_replay **ret, struct err *e)
{
    CLEANUP(cassette_replay) struct cassette_replay *p = xcalloc(1, sizeof *p);
    p->cassette = c;
    p->redactor = r;
    p->left = cassette_len(c);
    p->played = xcalloc(p->left + 1, sizeof *p->played);
    buf_init(&p->report, BUF_TEXT);
    const struct json *own = rules != NULL ? rules : json_get(cassette_about(c), "volatile");
    int result = cassette_rules_new(own, &p->rules, e);
    if (result == 0) {
        *ret = TAKE_PTR(p);
    }
    return result;
}

struct cassette_replay *cassette_replay_free(struct cassette_replay *p)
{
    if (p != NULL) {
        cassette_free(p->cassette);
        cassette_rules_free(p->rules);
        arena_free(p->ahead);
        free(p->played);
        buf_done(&p->report);
        free(p);
    }
    return NULL;
}

void cassette_replay_places(struct cassette_replay *p, const struct json *places)
{
    cassette_rules_places(p->rules, json_get(cassette_about(p->cassette), "places"), places);
}

struct str cassette_replay_report(const struct cassette_replay *p)
{
    return buf_str(&p->report);
}

size_t cassette_replay_left(const struct cassette_replay *p)
{
    return p->left;
}

static void mark_played(struct cassette_replay *p, size_t i)
{
    p->played[i] = true;
    p->left--;
    while (p->first < cassette_len(p->cassette) && p->played[p->first]) {
        p->first++;
    }
}

/* --- a miss --- */

static void describe(struct cassette_replay *p, const struct cassette_request *r, const char *what,
                     const struct json_diff *d)
{
    if (p->report.len > 0) {
        return; /* the first miss is the one to look at; others follow from it */
    }
    buf_addf(&p->report, "request %zu (%.*s %.*s) %s\n", p->asked, STR_ARG(r->method),
             STR_ARG(r->target), what);
    CLEANUP(buf) struct buf lines = BUF_INIT(BUF_TEXT);
    if (d != NULL && json_diff_write(d, &lines, NULL) == 0) {
        buf_add(&p->report, buf_str(&lines));
    }
}

static int miss_none_left(struct cassette_replay *p, const struct cassette_request *r,
                          struct arena *a, struct err *e)
{
    const char *what = arena_printf(a, "is not in the cassette: all %zu recorded exchanges %s",
                                    cassette_len(p->cassette) - p->left,
                                    p->left > 0 ? "of that kind were played" : "were played");
    describe(p, r, what, NULL);
    return ERR(e, ERR_CONFIG, "replay: request %zu (%.*s %.*s) %s", p->asked, STR_ARG(r->method),
               STR_ARG(str_slice(r->target, 0, 120)), what);
}

static int miss_differs(struct cassette_replay *p, const struct cassette_request *r, size_t due,
                        const struct json_diff *d, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf first = BUF_INIT(BUF_TEXT);
    struct json_diff one = { d->changes, d->len > 0 ? 1 : 0, false };
    const char *what = arena_printf(a, "differs from exchange %" PRIu64 " of the cassette",
                                    cassette_number(p->cassette, due));
    describe(p, r, what, d);
    if (json_diff_write(&one, &first, NULL) < 0 || first.len == 0) {
        return ERR(e, ERR_CONFIG, "replay: request %zu %s", p->asked, what);
    }
    struct str line = str_trim(buf_str(&first));
    const char *more =
        d->len > 1 ? arena_printf(a, " (%s%zu more)", d->more ? "at least " : "and ", d->len - 1)
                   : "";
    return ERR(e, ERR_CONFIG, "replay: request %zu %s at %.*s%s", p->asked, what,
               STR_ARG(str_slice(line, 0, str_utf8_prefix(str_slice(line, 0, 300)))), more);
}

/* --- finding --- */

static bool same_kind(const struct cassette_replay *p, size_t i, const struct cassette_request *r)
{
    return str_eq(cassette_method(p->cassette, i), r->method) &&
           str_eq(cassette_target(p->cassette, i), r->target);
}

/* Unpacks an exchange into an arena of its own, or takes the one that was prepared. */
static int take_exchange(struct cassette_replay *p, size_t i, struct arena **ret_arena,
                         struct unpacked *ret, struct err *e)
{
    if (p->ahead != NULL && p->ahead_index == i) {
        *ret_arena = TAKE_PTR(p->ahead);
        *ret = p->ahead_exchange;
        return 0;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    ret->tree = NULL;
    int r = cassette_exchange(p->cassette, i, a, &ret->exchange, e);
    if (r == 0) {
        *ret_arena = TAKE_PTR(a);
    }
    return r;
}

void cassette_replay_prepare(struct cassette_replay *p)
{
    if (p->first == cassette_len(p->cassette) || (p->ahead != NULL && p->ahead_index == p->first)) {
        return;
    }
    struct arena *a = NULL;
    struct unpacked x;
    if (take_exchange(p, p->first, &a, &x, NULL) == 0) { /* else it is told when it is wanted */
        arena_free(p->ahead);
        p->ahead = a;
        p->ahead_index = p->first;
        p->ahead_exchange = x;
    }
}

/* A request, and its body as a tree once that was needed. */
struct question {
    struct cassette_request request;
    struct arena *arena;
    struct json *tree;
};

/* Equal bytes need no parsing, and no cleaning, which costs as much. */
static void compare(const struct cassette_replay *p, struct question *q, struct unpacked *x,
                    size_t max, struct json_diff *ret)
{
    *ret = (struct json_diff) { 0 };
    if (str_eq(x->exchange.body, q->request.body) ||
        cassette_same_text(p->rules, p->redactor, x->exchange.body, q->request.body)) {
        return;
    }
    if (q->tree == NULL) {
        struct str body = cassette_clean_text(p->redactor, q->arena, q->request.body);
        q->tree = cassette_body_tree(q->arena, body);
    }
    if (x->tree == NULL) {
        x->tree = cassette_body_tree(q->arena, x->exchange.body);
    }
    cassette_compare(p->rules, x->tree, q->tree, max, q->arena, ret);
}

static int tell_difference(struct cassette_replay *p, struct question *q, size_t due, struct err *e)
{
    CLEANUP(arena) struct arena *a = NULL;
    struct unpacked x;
    struct json_diff d;
    int result = take_exchange(p, due, &a, &x, e);
    if (result < 0) {
        return result;
    }
    if (x.exchange.body_missing) {
        return ERR(e, ERR_CONFIG, "replay: exchange %" PRIu64 " was too long to be recorded",
                   x.exchange.number);
    }
    compare(p, q, &x, REPORT_MAX, &d);
    cassette_show_differences(p->rules, q->arena, &d);
    return miss_differs(p, &q->request, due, &d, e);
}

int cassette_replay_find(struct cassette_replay *p, const struct cassette_request *request,
                         struct arena **ret_arena, struct cassette_exchange *ret, struct err *e)
{
    CLEANUP(arena) struct arena *scratch = arena_new();
    struct question q = { .request = *request, .arena = scratch };
    struct str target = cassette_clean_target(scratch, request->target);
    size_t due = SIZE_MAX;
    q.request.target = cassette_clean_text(p->redactor, scratch, target);
    p->asked++;
    for (size_t i = p->first; i < cassette_len(p->cassette); i++) {
        CLEANUP(arena) struct arena *a = NULL;
        struct unpacked x;
        struct json_diff d;
        if (p->played[i] || !same_kind(p, i, &q.request)) {
            continue;
        }
        due = due == SIZE_MAX ? i : due;
        int result = take_exchange(p, i, &a, &x, e);
        if (result < 0) {
            return result;
        }
        compare(p, &q, &x, 1, &d);
        if (d.len == 0 && !x.exchange.body_missing) {
            mark_played(p, i);
            *ret = x.exchange;
            *ret_arena = TAKE_PTR(a);
            return 0;
        }
    }
    return due == SIZE_MAX ? miss_none_left(p, &q.request, scratch, e)
                           : tell_difference(p, &q, due, e);
}
