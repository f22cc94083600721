/* SPDX-License-Identifier: MIT
 *
 * Checks as a table, and the simple ones.
 */
#include "ack/check.h"

#include <fcntl.h>
#include <string.h>

#include "ack/check_priv.h"
#include "base/file.h"
#include "data/shape.h"
#include "validate/validator.h"

enum { FILE_MAX = 64 << 20, ALTERNATIVES_MAX = 64 << 10 };

void finding(struct findings *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    f->len++;
    /* What does not fit is still counted. */
    int r = f->text.len > 0 ? buf_append_c(&f->text, '\n', NULL) : 0;
    size_t from = f->text.len;
    r = r < 0 ? r : buf_vprintf(&f->text, NULL, fmt, ap);
    va_end(ap);
    (void)r;
    for (size_t i = from; i < f->text.len; i++) { /* what is quoted may have lines */
        f->text.ptr[i] = f->text.ptr[i] == '\n' ? ' ' : f->text.ptr[i];
    }
}

bool where_holds(struct arena *a, const struct json *where, const struct json *v,
                 const char **ret_why)
{
    for (size_t i = 0; json_is(where, JSON_OBJECT) && i < where->object.len; i++) {
        const struct json_member *m = &where->object.members[i];
        const char *why;
        if (!matcher_holds(a, m->value, json_pointer(v, m->key), &why)) {
            if (ret_why != NULL) {
                *ret_why = arena_printf(a, "%.*s: %s", STR_ARG(m->key), why);
            }
            return false;
        }
    }
    return true;
}

void check_count(const struct check_scene *s, const struct json *want, const char *of, size_t n)
{
    const struct json *count = json_get(want, "count");
    struct json *found = json_integer(s->arena, (int64_t)n);
    const char *why;
    if (count == NULL && n == 0) {
        finding(s->findings, "%s: there is none", of);
    } else if (count != NULL && !matcher_holds(s->arena, count, found, &why)) {
        finding(s->findings, "%s: count: %s", of, why);
    }
}

static void hold(const struct check_scene *s, const char *of, const struct json *want,
                 const struct json *found)
{
    const char *why;
    if (!matcher_holds(s->arena, want, found, &why)) {
        finding(s->findings, "%s: %s", of, why);
    }
}

static void hold_all(const struct check_scene *s, const char *of, const struct json *want,
                     const struct json *found)
{
    for (size_t i = 0; i < want->object.len; i++) {
        const struct json_member *m = &want->object.members[i];
        hold(s, arena_printf(s->arena, "%s%.*s", of, STR_ARG(m->key)), m->value,
             json_pointer(found, m->key));
    }
}

static void check_reason(const struct check_scene *s, const struct json *want)
{
    const struct json *found = json_get(s->run->manifest, "reason");
    for (size_t i = 0; json_is(want, JSON_ARRAY) && i < want->array.len; i++) {
        if (json_equal(want->array.items[i], found)) {
            return;
        }
    }
    const char *why;
    if (!matcher_holds(s->arena, want, found, &why)) {
        struct str error = json_str(json_get(s->run->result, "error"), STR_EMPTY);
        bool said = error.len > 0;
        finding(s->findings, "reason: %s%s%.*s%s", why, said ? " (" : "", STR_ARG(error),
                said ? ")" : "");
    }
}

static void check_exit(const struct check_scene *s, const struct json *want)
{
    hold(s, "exit", want, json_integer(s->arena, s->run->exit_status));
}

static void check_said(const struct check_scene *s, const struct json *want)
{
    hold(s, "said", want, json_string(s->arena, s->run->said));
}

static void check_visits(const struct check_scene *s, const struct json *want)
{
    hold(s, "visits", want, json_integer(s->arena, (int64_t)s->visits));
}

static void check_text(const struct check_scene *s, const struct json *want)
{
    hold(s, "text", want, json_get(s->run->result, "text"));
}

static void check_result(const struct check_scene *s, const struct json *want)
{
    hold_all(s, "result", want, s->run->result);
}

static void check_metrics(const struct check_scene *s, const struct json *want)
{
    hold_all(s, "metrics", want, s->run->metrics);
}

static void check_manifest(const struct check_scene *s, const struct json *want)
{
    hold_all(s, "manifest", want, s->run->manifest);
}

/* Files below a directory, held as text; null: there must be none of that name. */
static void hold_files(const struct check_scene *s, const char *of, const char *dir,
                       const struct json *want)
{
    for (size_t i = 0; i < want->object.len; i++) {
        const struct json_member *m = &want->object.members[i];
        if (!check_leads_down(m->key)) { /* what was filled in leads out */
            finding(s->findings, "%s %.*s: " CHECK_LEADS_DOWN, of, STR_ARG(m->key));
            continue;
        }
        CLEANUP(buf) struct buf text = BUF_INIT(FILE_MAX);
        const char *path = arena_printf(s->arena, "%s/%.*s", dir, STR_ARG(m->key));
        const char *name = arena_printf(s->arena, "%s %.*s", of, STR_ARG(m->key));
        bool there = file_exists(AT_FDCWD, path);
        struct err e = { 0 };
        if (json_is(m->value, JSON_NULL)) {
            if (there) {
                finding(s->findings, "%s: it must not be there, and is", name);
            }
        } else if (there && file_read(AT_FDCWD, path, FILE_MAX, &text, &e) < 0) {
            finding(s->findings, "%s: %s", name, e.msg);
        } else {
            hold(s, name, m->value, there ? json_string(s->arena, buf_str(&text)) : NULL);
        }
    }
}

static void check_outside(const struct check_scene *s, const struct json *want)
{
    hold_files(s, "outside", s->outside, want);
}

static void check_record(const struct check_scene *s, const struct json *want)
{
    hold_files(s, "record", s->run->dir, want);
}

static void check_any_of(const struct check_scene *s, const struct json *want)
{
    CLEANUP(buf) struct buf all = BUF_INIT(ALTERNATIVES_MAX);
    for (size_t i = 0; i < json_len(want); i++) {
        struct findings here = { .text = BUF_INIT(ALTERNATIVES_MAX) };
        struct check_scene scene = *s;
        scene.findings = &here;
        checks_apply(json_item(want, i), &scene);
        int r =
            buf_printf(&all, NULL, "%s%.*s", i == 0 ? "" : "; or ", STR_ARG(buf_str(&here.text)));
        (void)r;
        buf_done(&here.text);
        if (here.len == 0) {
            return;
        }
    }
    finding(s->findings, "any_of: %.*s", STR_ARG(buf_str(&all)));
}

/* --- what each check wants to be told, for reading time --- */

static const struct shape event_shape[] = {
    { "name", SHAPE_STRING },
    { "where", SHAPE_ANY_OBJECT },
    { "count", SHAPE_ANY },
    { "each", SHAPE_ANY_OBJECT },
    { 0 },
};

static const struct shape entry_shape[] = {
    { "type", SHAPE_STRING }, { "source", SHAPE_STRING },   { "where", SHAPE_ANY_OBJECT },
    { "count", SHAPE_ANY },   { "each", SHAPE_ANY_OBJECT }, { 0 },
};

static const struct shape order_shape[] = {
    { "type", SHAPE_STRING },
    { "source", SHAPE_STRING },
    { "where", SHAPE_ANY_OBJECT },
    { 0 },
};

static const struct shape request_shape[] = {
    { "number", SHAPE_INT }, { "any", SHAPE_BOOL },
    { "none", SHAPE_BOOL },  { "last", SHAPE_BOOL },
    { "text", SHAPE_ANY },   { "where", SHAPE_ANY_OBJECT },
    { "count", SHAPE_ANY },  { 0 },
};

static const struct shape patch_shape[] = {
    { "has", SHAPE_STRINGS },
    { "lacks", SHAPE_STRINGS },
    { "contains", SHAPE_STRING },
    { "empty", SHAPE_BOOL },
    { 0 },
};

static const struct shape session_shape[] = {
    { "slice", SHAPE_STRING },
    { "count", SHAPE_ANY },
    { "any", SHAPE_ANY_OBJECT },
    { "each", SHAPE_ANY_OBJECT },
    { 0 },
};

static const struct shape place_shape[] = {
    { "name", SHAPE_STRING },
    { "at", SHAPE_STRING },
    { 0 },
};

static const struct shape link_shape[] = {
    { "from", SHAPE_OBJECT, .inner = place_shape },
    { "to", SHAPE_OBJECT, .inner = place_shape },
    { 0 },
};

static const struct shape same_shape[] = {
    { "runs", SHAPE_STRINGS },
    { "what", SHAPE_STRINGS },
    { 0 },
};

enum want_kind {
    WANT_MATCHER,
    WANT_POINTERS, /* {POINTER: MATCHER} */
    WANT_FILES,    /* {PATH: MATCHER} */
    WANT_NUMBERS,  /* {NAME: N} */
    WANT_SHAPE,
    WANT_SHAPES, /* a list of them */
    WANT_ORACLE, /* names of the validator's checks */
    WANT_LISTS,  /* of checks */
};

static const struct check {
    const char *name;
    enum want_kind kind;
    check_fn *apply;
    const struct shape *shape;
    const char *needs[2]; /* keys that must be there */
    check_rule *rule;     /* what holds of the keys together; NULL: nothing */
} checks[] = {
    { "reason", WANT_MATCHER, check_reason },
    { "exit", WANT_MATCHER, check_exit },
    { "visits", WANT_MATCHER, check_visits },
    { "said", WANT_MATCHER, check_said },
    { "text", WANT_MATCHER, check_text },
    { "result", WANT_POINTERS, check_result },
    { "metrics", WANT_POINTERS, check_metrics },
    { "manifest", WANT_POINTERS, check_manifest },
    { "outside", WANT_FILES, check_outside },
    { "record", WANT_FILES, check_record },
    { "usage", WANT_NUMBERS, check_usage },
    { "event", WANT_SHAPE, check_event, event_shape, { "name" }, rule_counted },
    { "entry", WANT_SHAPE, check_entry, entry_shape, { NULL }, rule_counted },
    { "order", WANT_SHAPES, check_order, order_shape },
    { "transcript", WANT_ORACLE, check_transcript },
    { "request", WANT_SHAPE, check_request, request_shape, { NULL }, rule_request },
    { "patch", WANT_SHAPE, check_patch, patch_shape, { NULL }, rule_patch },
    { "session", WANT_SHAPE, check_session, session_shape, { "slice" }, rule_counted },
    { "any_of", WANT_LISTS, check_any_of },
    { "link", WANT_SHAPE, check_link, link_shape, { "from", "to" }, rule_link },
    { "same", WANT_SHAPE, check_same, same_shape, { "runs", "what" }, rule_same },
};

static const struct check *check_find(struct str name)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (str_eqc(name, checks[i].name)) {
            return &checks[i];
        }
    }
    return NULL;
}

bool check_leads_down(struct str path)
{
    bool down = str_find(path, str_n("", 1)) == path.len; /* a NUL would be its end */
    do {
        struct str part = str_split(&path, '/');
        down = down && part.len > 0 && !str_eqc(part, ".") && !str_eqc(part, "..");
    } while (path.ptr != NULL);
    return down;
}

/* What wants nothing would always hold. */
static int read_map(const struct check *c, const struct json *want, const char *file, struct err *e)
{
    if (!json_is(want, JSON_OBJECT) || want->object.len == 0) {
        return check_refuse(want, file, "a map of names and matchers belongs here", e);
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < want->object.len; i++) {
        const struct json *v = want->object.members[i].value;
        if (c->kind == WANT_FILES) {
            bool down = check_leads_down(want->object.members[i].key);
            r = down ? matcher_check(v, file, e) : check_refuse(v, file, CHECK_LEADS_DOWN, e);
        } else if (!json_is(v, JSON_INT)) {
            r = check_refuse(v, file, "a whole number belongs here", e);
        }
    }
    return r;
}

/* Keys that say more than their shape does. */
static int read_member(const struct check *c, const struct json_member *m, const char *file,
                       struct err *e)
{
    char at[JSON_AT_LEN];
    bool each = str_eqc(m->key, "each");
    if (json_is(m->value, JSON_NULL)) {
        return ERR(e, ERR_CONFIG, "%s: '%.*s' is null", json_at(file, m->value, at),
                   STR_ARG(m->key));
    }
    if (str_eqc(m->key, "where") || (each && c->shape != session_shape)) {
        return matcher_check_pointers(m->value, file, e);
    }
    if (each || str_eqc(m->key, "text") || str_eqc(m->key, "count") || str_eqc(m->key, "any")) {
        return matcher_check(m->value, file, e);
    }
    return 0;
}

static int read_shape(const struct check *c, const struct json *want, const char *file,
                      struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(want, JSON_OBJECT) || want->object.len == 0) {
        return ERR(e, ERR_CONFIG, "%s: '%s' must be a map that is not empty",
                   json_at(file, want, at), c->name);
    }
    int r = shape_check(want, c->shape, file, e);
    for (size_t i = 0; r == 0 && i < sizeof c->needs / sizeof *c->needs; i++) {
        if (c->needs[i] != NULL && json_get(want, c->needs[i]) == NULL) {
            return ERR(e, ERR_CONFIG, "%s: '%s' needs '%s'", json_at(file, want, at), c->name,
                       c->needs[i]);
        }
    }
    for (size_t i = 0; r == 0 && i < want->object.len; i++) {
        r = read_member(c, &want->object.members[i], file, e);
    }
    return r < 0 || c->rule == NULL ? r : c->rule(want, file, e);
}

static int read_list_item(const struct check *c, const struct json *v, const char *file,
                          struct err *e)
{
    enum validator_check found;
    if (c->kind == WANT_SHAPES) {
        return read_shape(c, v, file, e);
    }
    if (c->kind == WANT_LISTS) {
        return json_len(v) > 0 ? checks_read(v, file, e)
                               : check_refuse(v, file, "a list of checks belongs here", e);
    }
    return validator_check_find(json_str(v, STR_EMPTY), &found)
               ? 0
               : check_refuse(v, file, "no check of transcripts has this name", e);
}

static int read_list(const struct check *c, const struct json *want, const char *file,
                     struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(want, JSON_ARRAY) || want->array.len == 0) {
        return ERR(e, ERR_CONFIG, "%s: '%s' must be a list", json_at(file, want, at), c->name);
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < want->array.len; i++) {
        r = read_list_item(c, want->array.items[i], file, e);
    }
    return r;
}

/* Exit status and visits are numbers from 0 on, like what is counted. */
static int read_matcher(const struct check *c, const struct json *want, const char *file,
                        struct err *e)
{
    bool number = c->apply == check_exit || c->apply == check_visits;
    int r = matcher_check(want, file, e);
    return r < 0 || !number ? r : check_refuse_idle(want, file, e);
}

static int read_check(const struct json *item, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(item, JSON_OBJECT) || item->object.len != 1) {
        return check_refuse(item, file, "a check is a map with one key", e);
    }
    const struct json_member *m = &item->object.members[0];
    const struct check *c = check_find(m->key);
    if (c == NULL) {
        return ERR(e, ERR_CONFIG, "%s: no check is called '%.*s'", json_at(file, item, at),
                   STR_ARG(m->key));
    }
    switch (c->kind) {
    case WANT_MATCHER:
        return read_matcher(c, m->value, file, e);
    case WANT_POINTERS:
        return matcher_check_pointers(m->value, file, e);
    case WANT_FILES:
    case WANT_NUMBERS:
        return read_map(c, m->value, file, e);
    case WANT_SHAPE:
        return read_shape(c, m->value, file, e);
    case WANT_SHAPES:
    case WANT_ORACLE:
    case WANT_LISTS:
        break;
    }
    return read_list(c, m->value, file, e);
}

int checks_read(const struct json *list, const char *file, struct err *e)
{
    if (list != NULL && !json_is(list, JSON_ARRAY)) {
        return check_refuse(list, file, "a list of checks belongs here", e);
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        r = read_check(json_item(list, i), file, e);
    }
    return r;
}

void checks_apply(const struct json *list, const struct check_scene *scene)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json_member *m = &json_item(list, i)->object.members[0];
        check_find(m->key)->apply(scene, m->value);
    }
}
