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
#include "base/json_diff.h"
#include "gateway/cassette.h"

/* Differences that a report lists. */
enum { REPORT_MAX = 50 };

struct cassette_replay {
    struct cassette *cassette;
    struct cassette_rules *rules;
    const struct redactor *redactor;
    bool *played;
    size_t first; /* all before it were played */
    size_t left;
    size_t asked;
    struct buf report;
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
        free(p->played);
        buf_done(&p->report);
        free(p);
    }
    return NULL;
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

/* 1: it fits, and is in *ret; 0: it does not. */
static int try_exchange(struct cassette_replay *p, size_t i, struct str body, struct arena *a,
                        struct cassette_exchange *ret, struct err *e)
{
    struct json_diff d;
    int r = cassette_exchange(p->cassette, i, a, ret, e);
    if (r < 0 || ret->body_missing) {
        return r;
    }
    cassette_compare(p->rules, ret->body, body, 1, a, &d);
    return d.len == 0;
}

int cassette_replay_find(struct cassette_replay *p, const struct cassette_request *request,
                         struct arena *a, struct cassette_exchange *ret, struct err *e)
{
    struct cassette_request r = *request;
    size_t due = SIZE_MAX;
    p->asked++;
    r.target = cassette_clean_text(p->redactor, a, cassette_clean_target(a, r.target));
    r.body = cassette_clean_text(p->redactor, a, r.body);
    for (size_t i = p->first; i < cassette_len(p->cassette); i++) {
        if (p->played[i] || !same_kind(p, i, &r)) {
            continue;
        }
        CLEANUP(arena) struct arena *scratch = arena_new();
        due = due == SIZE_MAX ? i : due;
        /* the one that is due mostly fits, and is unpacked where it is wanted */
        int fits = try_exchange(p, i, r.body, i == due ? a : scratch, ret, e);
        if (fits < 0) {
            return fits;
        }
        if (fits > 0) {
            mark_played(p, i);
            return i == due ? 0 : cassette_exchange(p->cassette, i, a, ret, e);
        }
    }
    if (due == SIZE_MAX) {
        return miss_none_left(p, &r, a, e);
    }
    struct cassette_exchange x;
    struct json_diff d;
    int result = cassette_exchange(p->cassette, due, a, &x, e);
    if (result < 0) {
        return result;
    }
    if (x.body_missing) {
        return ERR(e, ERR_CONFIG, "replay: exchange %" PRIu64 " was too long to be recorded",
                   x.number);
    }
    cassette_compare(p->rules, x.body, r.body, REPORT_MAX, a, &d);
    return miss_differs(p, &r, due, &d, e);
}
