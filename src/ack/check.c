/* SPDX-License-Identifier: MIT
 *
 * Checks as a table, and the simple ones.
 */
#include "ack/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "ack/check_priv.h"
#include "base/file.h"

enum { FILE_MAX = 64 << 20, ALTERNATIVES_MAX = 64 << 10 };

void finding(struct findings *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    f->len++;
    /* What does not fit is still counted. */
    int r = f->text.len > 0 ? buf_append_c(&f->text, '\n', NULL) : 0;
    r = r < 0 ? r : buf_vprintf(&f->text, NULL, fmt, ap);
    va_end(ap);
    (void)r;
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
        finding(s->findings, "reason: %s (%.*s)", why, STR_ARG(error));
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

/* What a check wants to be told, for reading time: keys that are no matchers. */
enum want_kind { WANT_MATCHER, WANT_POINTERS, WANT_LIST, WANT_KEYS, WANT_LINK, WANT_LISTS };

static const struct check {
    const char *name;
    enum want_kind kind;
    const char *keys; /* of WANT_KEYS: "|name|where|" */
    check_fn *apply;
} checks[] = {
    { "reason", WANT_MATCHER, NULL, check_reason },
    { "exit", WANT_MATCHER, NULL, check_exit },
    { "visits", WANT_MATCHER, NULL, check_visits },
    { "said", WANT_MATCHER, NULL, check_said },
    { "text", WANT_MATCHER, NULL, check_text },
    { "result", WANT_POINTERS, NULL, check_result },
    { "metrics", WANT_POINTERS, NULL, check_metrics },
    { "manifest", WANT_POINTERS, NULL, check_manifest },
    { "outside", WANT_POINTERS, NULL, check_outside },
    { "record", WANT_POINTERS, NULL, check_record },
    { "usage", WANT_POINTERS, NULL, check_usage },
    { "event", WANT_KEYS, "|name|where|count|each|", check_event },
    { "entry", WANT_KEYS, "|type|source|where|count|each|", check_entry },
    { "order", WANT_LIST, NULL, check_order },
    { "transcript", WANT_LIST, NULL, check_transcript },
    { "request", WANT_KEYS, "|number|any|none|last|text|where|count|", check_request },
    { "patch", WANT_KEYS, "|has|lacks|contains|empty|", check_patch },
    { "session", WANT_KEYS, "|slice|count|any|each|", check_session },
    { "any_of", WANT_LISTS, NULL, check_any_of },
    { "link", WANT_LINK, NULL, check_link },
    { "same", WANT_KEYS, "|runs|what|", check_same },
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

static int read_pointers(const struct json *want, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(want, JSON_OBJECT) || want->object.len == 0) {
        return ERR(e, ERR_CONFIG, "%s: a map of names and matchers belongs here",
                   json_at(file, want, at));
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < want->object.len; i++) {
        r = matcher_check(want->object.members[i].value, file, e);
    }
    return r;
}

static int read_keys(const struct check *c, const struct json *want, const char *file,
                     struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(want, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "%s: '%s' wants a map", json_at(file, want, at), c->name);
    }
    for (size_t i = 0; i < want->object.len; i++) {
        const struct json_member *m = &want->object.members[i];
        char key[64];
        (void)snprintf(key, sizeof key, "|%.*s|", STR_ARG(m->key));
        if (strstr(c->keys, key) == NULL) {
            return ERR(e, ERR_CONFIG, "%s: '%s' has no key '%.*s'", json_at(file, m->value, at),
                       c->name, STR_ARG(m->key));
        }
        bool pointers = str_eqc(m->key, "where") || (str_eqc(m->key, "each") && c->keys[1] != 's');
        int r = pointers ? read_pointers(m->value, file, e) : matcher_check(m->value, file, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_lists(const struct json *lists, const char *file, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(lists); i++) {
        r = checks_read(json_item(lists, i), file, e);
    }
    return r;
}

static int read_check(const struct json *item, const char *file, struct err *e)
{
    char at[JSON_AT_LEN];
    if (!json_is(item, JSON_OBJECT) || item->object.len != 1) {
        return ERR(e, ERR_CONFIG, "%s: a check is a map with one key", json_at(file, item, at));
    }
    const struct json_member *m = &item->object.members[0];
    const struct check *c = check_find(m->key);
    if (c == NULL) {
        return ERR(e, ERR_CONFIG, "%s: no check is called '%.*s'", json_at(file, item, at),
                   STR_ARG(m->key));
    }
    switch (c->kind) {
    case WANT_MATCHER:
        return matcher_check(m->value, file, e);
    case WANT_POINTERS:
        return read_pointers(m->value, file, e);
    case WANT_KEYS:
        return read_keys(c, m->value, file, e);
    case WANT_LINK:
        return json_get(m->value, "from") != NULL && json_get(m->value, "to") != NULL
                   ? 0
                   : ERR(e, ERR_CONFIG, "%s: 'link' wants from and to", json_at(file, item, at));
    case WANT_LISTS:
        return read_lists(m->value, file, e);
    case WANT_LIST:
        break;
    }
    return json_is(m->value, JSON_ARRAY) && m->value->array.len > 0
               ? 0
               : ERR(e, ERR_CONFIG, "%s: '%s' wants a list", json_at(file, m->value, at), c->name);
}

int checks_read(const struct json *list, const char *file, struct err *e)
{
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
