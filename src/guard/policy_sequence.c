/* SPDX-License-Identifier: MIT
 *
 * The policy sequential_dependency: a tool may be called once those that it depends on have
 * succeeded. Remembered are the names of tools that others wait for, each once.
 */
#include "guard/guard_priv.h"

#include <stdlib.h>

#define RULES_MAX 256
#define NAMES_MAX 256

struct rule {
    struct str pattern; /* tools that wait */
    size_t *names;      /* for these */
    size_t n;
};

struct sequence {
    struct str names[NAMES_MAX]; /* sorted: denials list them in this order */
    bool done[NAMES_MAX];
    size_t n_names;
    struct rule rules[RULES_MAX];
    size_t n_rules;
};

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static size_t find(const struct sequence *s, struct str name)
{
    for (size_t i = 0; i < s->n_names; i++) {
        if (str_eq(s->names[i], name)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static int collect(struct arena *a, const struct json_member *m, struct sequence *s, struct err *e)
{
    const struct json *list = m->value;
    if (!json_is(list, JSON_ARRAY) || json_len(list) == 0) {
        return ERR(e, ERR_CONFIG, "depends: '%.*s' needs a list of tools", STR_ARG(m->key));
    }
    for (size_t i = 0; i < json_len(list); i++) {
        struct str name = json_str(json_item(list, i), STR_EMPTY);
        if (name.len == 0 || memchr(name.ptr, '*', name.len) != NULL ||
            memchr(name.ptr, '?', name.len) != NULL) {
            return ERR(e, ERR_CONFIG, "depends: '%.*s' depends on tools by their full names",
                       STR_ARG(m->key));
        }
        if (str_eq(name, m->key)) {
            return ERR(e, ERR_CONFIG, "depends: '%.*s' depends on itself", STR_ARG(m->key));
        }
        if (find(s, name) != SIZE_MAX) {
            continue;
        }
        if (s->n_names == NAMES_MAX) {
            return ERR(e, ERR_CONFIG, "depends: more than %d names", NAMES_MAX);
        }
        s->names[s->n_names++] = arena_str(a, name);
    }
    return 0;
}

static void add_rule(struct arena *a, const struct json_member *m, struct sequence *s)
{
    struct rule *r = &s->rules[s->n_rules++];
    r->pattern = arena_str(a, m->key);
    r->names = arena_array(a, json_len(m->value), sizeof *r->names);
    for (size_t i = 0; i < json_len(m->value); i++) {
        r->names[r->n++] = find(s, json_str(json_item(m->value, i), STR_EMPTY));
    }
}

/* --- what can never happen --- */

enum { UNSEEN, OPEN, CLOSED };

/* Whether a tool, one of the names, waits for itself over any number of steps. Depth is at most
 * the number of names. */
static bool in_circle(const struct sequence *s, size_t at, unsigned char *marks)
{
    struct guard_call call = { .tool = s->names[at] };
    if (marks[at] != UNSEEN) {
        return marks[at] == OPEN;
    }
    marks[at] = OPEN;
    for (size_t i = 0; i < s->n_rules; i++) {
        const struct rule *r = &s->rules[i];
        if (!policy_matches(r->pattern, &call)) {
            continue;
        }
        for (size_t k = 0; k < r->n; k++) {
            if (r->names[k] != at && in_circle(s, r->names[k], marks)) {
                return true;
            }
        }
    }
    marks[at] = CLOSED;
    return false;
}

static int sequence_make(struct policy *p, const struct json *definition, struct err *e)
{
    struct arena *a = p->guard->arena;
    const struct json *depends = json_get(definition, "depends");
    size_t n = json_is(depends, JSON_OBJECT) ? json_len(depends) : 0;
    if (n == 0 || n > RULES_MAX) {
        return ERR(e, ERR_CONFIG, "'depends' must be a map of 1 to %d tools to lists of tools",
                   RULES_MAX);
    }
    struct sequence *s = ARENA_NEW(a, struct sequence);
    p->self = s;
    for (size_t i = 0; i < n; i++) {
        int r = collect(a, &depends->object.members[i], s, e);
        if (r < 0) {
            return r;
        }
    }
    qsort(s->names, s->n_names, sizeof s->names[0], by_name);
    for (size_t i = 0; i < n; i++) {
        add_rule(a, &depends->object.members[i], s);
    }
    unsigned char marks[NAMES_MAX] = { 0 };
    for (size_t i = 0; i < s->n_names; i++) {
        if (in_circle(s, i, marks)) {
            return ERR(e, ERR_CONFIG, "depends: '%.*s' would wait for itself, over other tools",
                       STR_ARG(s->names[i]));
        }
    }
    return 0;
}

/* --- calls --- */

/* Of a pattern that matches the tool it waits for, that tool is not meant. */
static void add_missing(const struct sequence *s, const struct rule *r, struct str tool,
                        bool missing[NAMES_MAX])
{
    for (size_t i = 0; i < r->n; i++) {
        size_t name = r->names[i];
        if (!s->done[name] && !str_eq(s->names[name], tool)) {
            missing[name] = true;
        }
    }
}

static enum policy_verdict sequence_check(struct policy *p, struct guard_check *c)
{
    const struct sequence *s = p->self;
    bool missing[NAMES_MAX] = { false };
    CLEANUP(buf) struct buf list = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < s->n_rules; i++) {
        if (policy_matches(s->rules[i].pattern, &c->call)) {
            add_missing(s, &s->rules[i], c->call.tool, missing);
        }
    }
    for (size_t i = 0; i < s->n_names; i++) {
        if (missing[i]) {
            buf_addf(&list, "%s%.*s", list.len > 0 ? ", " : "", STR_ARG(s->names[i]));
        }
    }
    return list.len == 0 ? POLICY_ALLOWS
                         : policy_deny(c, "Tool '%.*s' requires: %.*s", STR_ARG(c->call.tool),
                                       STR_ARG(buf_str(&list)));
}

static struct json *sequence_note(struct policy *p, struct arena *a, const struct guard_call *call)
{
    const struct sequence *s = p->self;
    size_t i = find(s, call->tool);
    if (i == SIZE_MAX || s->done[i]) {
        return NULL;
    }
    struct json *items = json_array(a);
    struct json *item = json_object(a);
    json_setc(a, item, "tool", json_string(a, call->tool));
    json_push(a, items, item);
    return items;
}

static void sequence_learn(struct policy *p, const struct json *item)
{
    struct sequence *s = p->self;
    size_t i = find(s, json_str(json_get(item, "tool"), STR_EMPTY));
    if (i != SIZE_MAX) {
        s->done[i] = true;
    }
}

static void sequence_forget(struct policy *p)
{
    struct sequence *s = p->self;
    memset(s->done, 0, sizeof s->done);
}

const struct policy_kind policy_kind_sequence = {
    .type = "sequential_dependency",
    .make = sequence_make,
    .check = sequence_check,
    .note = sequence_note,
    .learn = sequence_learn,
    .forget = sequence_forget,
};
