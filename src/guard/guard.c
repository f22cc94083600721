/* SPDX-License-Identifier: MIT
 *
 * Policies in their order: read from the task, asked one after the other, told what succeeded. What
 * a kind of policy knows is in policy_*.c.
 */
#include "guard/guard.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard_priv.h"
#include "proc/helper_program.h"
#include "record/state_store.h"

#define POLICIES_MAX 128 /* of a task; each is asked for every call */
#define NAME_LEN     64
#define DENIED       "Denied by policy."

/* --- policies in C --- */

static enum policy_verdict callback_check(struct policy *p, struct guard_check *c)
{
    const struct guard_callback *callback = p->self;
    struct str reason = STR_EMPTY;
    if (callback->check(callback->arg, &c->call, &reason)) {
        return POLICY_ALLOWS;
    }
    c->reason = arena_str(c->arena, reason);
    return POLICY_DENIES;
}

static const struct policy_kind kind_callback = { .type = "callback", .check = callback_check };

static const struct policy_kind *const kinds[] = {
    &policy_kind_allow, &policy_kind_deny, &policy_kind_arguments, &policy_kind_sequence,
    &policy_kind_files, &policy_kind_rate, &policy_kind_program,
};

static const struct policy_kind *kind_find(struct str type)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_eqc(type, kinds[i]->type)) {
            return kinds[i];
        }
    }
    return NULL;
}

/* --- names and scopes --- */

bool policy_matches(struct str pattern, const struct guard_call *call)
{
    struct str native = STR("native:");
    if (str_starts(pattern, native)) {
        if (!call->native) {
            return false;
        }
        pattern = str_slice(pattern, native.len, pattern.len);
    }
    return str_glob(pattern, call->tool, false) ||
           (call->kind.len > 0 && str_glob(pattern, call->kind, false));
}

bool policy_names_match(const struct policy_names *names, const struct guard_call *call)
{
    for (size_t i = 0; i < names->n; i++) {
        if (policy_matches(names->items[i], call)) {
            return true;
        }
    }
    return false;
}

static bool covers(struct str section, struct str path)
{
    return str_starts(path, section) && (path.len == section.len || path.ptr[section.len] == '.' ||
                                         path.ptr[section.len] == '/');
}

bool policy_applies(const struct policy *p, const struct guard_call *call)
{
    if (p->section.len > 0 && (call->native || !covers(p->section, call->section))) {
        return false;
    }
    return p->tools.n == 0 || p->kind->lists_exceptions || policy_names_match(&p->tools, call);
}

int policy_names_read(struct policy *p, const struct json *definition, const char *key,
                      const char *const *otherwise, struct policy_names *ret, struct err *e)
{
    struct arena *a = p->guard->arena;
    const struct json *list = json_get(definition, key);
    size_t n = 0;
    *ret = (struct policy_names) { 0 };
    if (list == NULL || json_is(list, JSON_NULL)) {
        while (otherwise != NULL && otherwise[n] != NULL) {
            n++;
        }
        ret->items = arena_array(a, n + 1, sizeof ret->items[0]);
        for (; ret->n < n; ret->n++) {
            ret->items[ret->n] = str_of(otherwise[ret->n]);
        }
        return 0;
    }
    n = json_is(list, JSON_ARRAY) ? json_len(list) : 0;
    if (n == 0) {
        return ERR(e, ERR_CONFIG, "'%s' must be a list of names that is not empty", key);
    }
    ret->items = arena_array(a, n, sizeof ret->items[0]);
    for (size_t i = 0; i < n; i++) {
        struct str name = json_str(json_item(list, i), STR_EMPTY);
        if (name.len == 0) {
            return ERR(e, ERR_CONFIG, "item %zu of '%s' must be a name", i + 1, key);
        }
        ret->items[ret->n++] = arena_str(a, name);
    }
    return 0;
}

/* --- reading the task --- */

static bool name_taken(const struct guard *g, struct str name)
{
    for (size_t i = 0; i < g->n; i++) {
        if (str_eq(g->policies[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* "rate", "rate-2" …; names that the task gives are there already. */
static struct str name_make(struct guard *g, const char *type)
{
    const char *name = type;
    for (size_t i = 2; name_taken(g, str_of(name)); i++) {
        name = arena_printf(g->arena, "%s-%zu", type, i);
    }
    return str_of(name);
}

static int read_section(struct policy *p, const struct json *definition, struct err *e)
{
    const struct guard_opts *o = &p->guard->opts;
    struct str section = json_str(json_get(definition, "section"), STR_EMPTY);
    char *path = arena_dup(p->guard->arena, section);
    for (char *c = path; *c != '\0'; c++) {
        *c = *c == '/' ? '.' : *c;
    }
    p->section = str_n(path, section.len);
    if (section.len > 0 && o->section != NULL && !o->section(o->arg, p->section)) {
        return ERR(e, ERR_CONFIG, "there is no section '%.*s'", STR_ARG(section));
    }
    return 0;
}

static int read_policy(struct policy *p, const struct json *definition, struct err *e)
{
    struct str type = json_str(json_get(definition, "type"), STR_EMPTY);
    p->kind = kind_find(type);
    if (p->kind == NULL) {
        return ERR(e, ERR_CONFIG, "unknown type of policy '%.*s'", STR_ARG(str_slice(type, 0, 80)));
    }
    p->reason = arena_str(p->guard->arena, json_str(json_get(definition, "reason"), STR_EMPTY));
    int r = read_section(p, definition, e);
    r = r < 0 ? r : policy_names_read(p, definition, "tools", NULL, &p->tools, e);
    return r < 0 || p->kind->make == NULL ? r : p->kind->make(p, definition, e);
}

static int read_name(struct policy *p, const struct json *definition, struct err *e)
{
    struct str name = json_str(json_get(definition, "name"), STR_EMPTY);
    if (name.len == 0) {
        return 0;
    }
    if (name.len > NAME_LEN || str_has_nul(name)) {
        return ERR(e, ERR_CONFIG, "the name of a policy has at most %d bytes", NAME_LEN);
    }
    if (name_taken(p->guard, name)) {
        return ERR(e, ERR_CONFIG, "policy '%.*s' is there twice", STR_ARG(name));
    }
    p->name = arena_str(p->guard->arena, name);
    return 0;
}

static int at_policy(const struct guard *g, const struct json *definition, size_t i, struct err *e)
{
    char place[JSON_AT_LEN];
    return g->opts.file == NULL
               ? err_wrap(e, "policies[%zu]", i)
               : err_wrap(e, "%s: policies[%zu]", json_at(g->opts.file, definition, place), i);
}

/* Those of sections come first, each group in the order of the task. */
static int read_policies(struct guard *g, struct err *e)
{
    const struct json *list = g->opts.policies;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *definition = json_item(list, i);
        struct policy *p = &g->policies[g->n++];
        p->guard = g;
        int r = read_name(p, definition, e);
        r = r < 0 ? r : read_policy(p, definition, e);
        if (r < 0) {
            if (e != NULL && e->code != ERR_CONFIG) {
                e->code =
                    ERR_CONFIG; /* a pattern that does not parse, a schema beyond its limits */
            }
            (void)at_policy(g, definition, i, e);
            return -ERR_CONFIG;
        }
    }
    return 0;
}

static void add_callbacks(struct guard *g)
{
    for (size_t i = 0; i < g->opts.n_callbacks; i++) {
        g->policies[g->n++] = (struct policy) {
            .kind = &kind_callback,
            .guard = g,
            .self = (void *)&g->opts.callbacks[i],
        };
    }
}

static void put_in_order(struct guard *g)
{
    struct policy *sorted = arena_array(g->arena, g->n + 1, sizeof *sorted);
    size_t n = 0;
    for (int of_sections = 1; of_sections >= 0; of_sections--) {
        for (size_t i = 0; i < g->n; i++) {
            if ((g->policies[i].section.len > 0) == (of_sections == 1)) {
                sorted[n++] = g->policies[i];
            }
        }
    }
    g->policies = sorted;
}

static const char *made_up(const struct policy *p)
{
    const struct guard_callback *callback = p->self;
    bool named = p->kind == &kind_callback && callback->name != NULL;
    return named ? callback->name : p->kind->type;
}

static int prepare(struct guard *g, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < g->n; i++) {
        struct policy *p = &g->policies[i];
        if (p->name.len == 0) {
            p->name = name_make(g, made_up(p));
        }
        p->slice = str_of(arena_printf(g->arena, "policy:%.*s", STR_ARG(p->name)));
        if (p->kind->note != NULL && g->opts.session != NULL) {
            r = store_declare(g->opts.session, p->slice, SLICE_STATE, e);
        }
    }
    return r;
}

int guard_new(const struct guard_opts *o, struct guard **ret, struct err *e)
{
    size_t n = json_len(o->policies) + o->n_callbacks;
    if (n > POLICIES_MAX) {
        return ERR(e, ERR_CONFIG, "policies: more than %d", POLICIES_MAX);
    }
    struct guard *g = xcalloc(1, sizeof *g);
    g->arena = arena_new();
    g->opts = *o;
    g->policies = arena_array(g->arena, n + 1, sizeof *g->policies);
    int r = read_policies(g, e);
    if (r == 0) {
        guard_names_read(g);
        add_callbacks(g);
        put_in_order(g);
        r = prepare(g, e);
    }
    if (r < 0) {
        (void)guard_free(g);
        return r;
    }
    *ret = g;
    return 0;
}

void guard_stop(struct guard *g)
{
    while (g->checks != NULL) {
        guard_cancel(g->checks);
    }
}

struct guard *guard_free(struct guard *g)
{
    if (g == NULL) {
        return NULL;
    }
    guard_stop(g);
    for (size_t i = 0; i < g->n; i++) {
        struct policy *p = &g->policies[i];
        if (p->kind != NULL && p->kind->free != NULL && p->self != NULL) {
            p->kind->free(p);
        }
    }
    g->arena = arena_free(g->arena);
    free(g);
    return NULL;
}

size_t guard_len(const struct guard *g)
{
    return g->n;
}

nsec guard_now(const struct guard *g)
{
    return g->opts.now == NULL ? clock_now() : g->opts.now(g->opts.arg);
}

/* --- what a policy remembers --- */

/* An item is known by its place and its address: values are never moved or changed, and what is
 * dropped in front of one moves it to another place. */
static void recall(struct policy *p)
{
    const struct state_store *s = p->guard->opts.session;
    if (p->kind->learn == NULL || s == NULL) {
        return;
    }
    size_t n = store_len(s, NULL, p->slice);
    if (p->learnt > n ||
        (p->learnt > 0 && store_item(s, NULL, p->slice, p->learnt - 1) != p->last)) {
        p->kind->forget(p);
        p->learnt = 0;
    }
    for (; p->learnt < n; p->learnt++) {
        p->last = store_item(s, NULL, p->slice, p->learnt);
        p->kind->learn(p, p->last);
    }
}

int guard_note(struct guard *g, const struct guard_call *call, struct store_txn *t, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    for (size_t i = 0; i < g->n && g->opts.session != NULL; i++) {
        struct policy *p = &g->policies[i];
        if (p->kind->note == NULL) {
            continue;
        }
        recall(p);
        struct store_change c = {
            .kind = CHANGE_EXTEND,
            .slice = p->slice,
            .value = p->kind->note(p, a, call),
        };
        if (json_len(c.value) == 0) {
            continue;
        }
        int r = t == NULL ? store_apply(g->opts.session, &c, e) : store_txn_apply(t, &c, e);
        if (r < 0) {
            return err_wrap(e, "policy '%.*s'", STR_ARG(p->name));
        }
    }
    return 0;
}

/* --- asking --- */

enum policy_verdict policy_deny(struct guard_check *c, const char *fmt, ...)
{
    const struct policy *p = &c->guard->policies[c->at];
    if (p->reason.len == 0) {
        char text[1024];
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        struct str s = str_of(text);
        c->reason = arena_str(c->arena, str_slice(s, 0, str_utf8_prefix(s)));
    }
    return POLICY_DENIES;
}

enum policy_verdict policy_broken(struct guard_check *c, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->detail = arena_str(c->arena, str_of(text));
    return POLICY_DENIES;
}

/* Asks those that take something once more, since others may have taken it while a program was
 * thinking; then takes from all of them, or from none. */
static enum policy_verdict admit(struct guard_check *c)
{
    struct guard *g = c->guard;
    for (c->at = 0; c->at < g->n; c->at++) {
        struct policy *p = &g->policies[c->at];
        if (p->kind->take != NULL && policy_applies(p, &c->call) &&
            p->kind->check(p, c) != POLICY_ALLOWS) {
            return POLICY_DENIES;
        }
    }
    for (size_t i = 0; i < g->n; i++) {
        struct policy *p = &g->policies[i];
        if (p->kind->take != NULL && policy_applies(p, &c->call)) {
            p->kind->take(p, &c->call);
        }
    }
    return POLICY_ALLOWS;
}

static enum policy_verdict ask(struct guard_check *c)
{
    struct guard *g = c->guard;
    for (; c->at < g->n; c->at++) {
        struct policy *p = &g->policies[c->at];
        if (!policy_applies(p, &c->call)) {
            continue;
        }
        recall(p);
        enum policy_verdict v = p->kind->check(p, c);
        if (v != POLICY_ALLOWS) {
            return v;
        }
    }
    return admit(c);
}

static void check_free(struct guard_check *c)
{
    c->arena = arena_free(c->arena);
    free(c);
}

static void check_unlink(struct guard_check *c)
{
    if (c->copied) {
        *(c->prev == NULL ? &c->guard->checks : &c->prev->next) = c->next;
        if (c->next != NULL) {
            c->next->prev = c->prev;
        }
    }
    c->guard = NULL;
}

static void tell_problem(const struct guard_check *c)
{
    const struct guard_opts *o = &c->guard->opts;
    if (o->problem != NULL && c->detail.len > 0) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        buf_addf(&text, "policy '%.*s': %.*s", STR_ARG(c->guard->policies[c->at].name),
                 STR_ARG(c->detail));
        o->problem(o->arg, buf_str(&text));
    }
}

static void decide(struct guard_check *c, enum policy_verdict v)
{
    struct guard_decision d = { .allowed = v == POLICY_ALLOWS };
    if (!d.allowed) {
        const struct policy *p = &c->guard->policies[c->at];
        d.policy = arena_str(c->arena, p->name);
        d.reason = c->reason.len > 0 ? c->reason : arena_str(c->arena, p->reason);
        d.reason = d.reason.len > 0 ? d.reason : STR(DENIED);
        d.detail = c->detail;
        tell_problem(c);
    }
    check_unlink(c);
    c->decided(c->arg, &d);
    check_free(c);
}

/* The caller's values end with his call of ours. */
static void keep(struct guard_check *c)
{
    struct guard *g = c->guard;
    struct guard_call *call = &c->call;
    call->tool = arena_str(c->arena, call->tool);
    call->kind = arena_str(c->arena, call->kind);
    call->section = arena_str(c->arena, call->section);
    call->call_id = arena_str(c->arena, call->call_id);
    call->arguments = call->arguments == NULL ? NULL : json_copy(c->arena, call->arguments);
    c->copied = true;
    c->next = g->checks;
    if (c->next != NULL) {
        c->next->prev = c;
    }
    g->checks = c;
}

void guard_check(struct guard *g, const struct guard_call *call,
                 void (*decided)(void *arg, const struct guard_decision *d), void *arg,
                 struct guard_check **ret)
{
    struct guard_check *c = xcalloc(1, sizeof *c);
    *c = (struct guard_check) {
        .guard = g,
        .arena = arena_new(),
        .call = *call,
        .decided = decided,
        .arg = arg,
    };
    *ret = NULL;
    guard_names_see(g, call);
    enum policy_verdict v = ask(c);
    if (v == POLICY_LATER) {
        keep(c);
        *ret = c;
        return;
    }
    decide(c, v);
}

void guard_check_resume(struct guard_check *c, enum policy_verdict verdict)
{
    c->helper = NULL;
    if (c->guard == NULL) {
        check_free(c);
        return;
    }
    if (verdict == POLICY_ALLOWS) {
        c->at++;
        verdict = ask(c);
    }
    if (verdict != POLICY_LATER) {
        decide(c, verdict);
    }
}

void guard_cancel(struct guard_check *c)
{
    check_unlink(c);
    helper_cancel(c->helper); /* it is freed when the program is gone */
}
