/* SPDX-License-Identifier: MIT
 *
 * What is made from a table of settings while a run is configured: the shape that layers are
 * checked against, the lowest layer, and the typed fields.
 */
#include <math.h>
#include <string.h>

#include "config/layers.h"
#include "config/settings.h"
#include "config/settings_table.h"
#include "data/yaml.h"

/* --- looking up --- */

const struct setting *setting_find(const struct setting *table, struct str key)
{
    for (const struct setting *s = table; s->key != NULL; s++) {
        if (str_eqc(key, s->key)) {
            return s;
        }
    }
    return NULL;
}

const char *setting_member(const struct setting *s, struct str section)
{
    struct str key = str_of(s->key);
    if (section.len > 0 && (!str_starts(key, section) || s->key[section.len] != '.')) {
        return NULL;
    }
    const char *rest = s->key + section.len + (section.len > 0 ? 1 : 0);
    return strchr(rest, '.') == NULL ? rest : NULL;
}

struct json *setting_value(const struct json *tree, const char *key)
{
    struct str path = str_of(key);
    struct json *v = NULL;
    for (const struct json *at = tree; path.ptr != NULL; at = v) {
        v = json_find(at, str_split(&path, '.'));
    }
    return v;
}

void setting_put(struct arena *a, struct json *tree, const char *key, struct json *value)
{
    struct str path = str_of(key);
    struct str part = str_split(&path, '.');
    for (; path.ptr != NULL; part = str_split(&path, '.')) {
        struct json *inner = json_find(tree, part);
        if (!json_is(inner, JSON_OBJECT)) {
            inner = json_object(a);
            json_set(a, tree, part, inner);
        }
        tree = inner;
    }
    json_set(a, tree, part, value);
}

/* --- defaults --- */

struct json *setting_default(struct arena *a, const struct setting *s)
{
    struct json *v = NULL;
    struct err e;
    if (s->fallback == NULL) {
        return NULL;
    }
    if (yaml_parse(a, str_of(s->fallback), s->key, NULL, &v, &e) < 0) {
        return NULL; /* a row that the test `settings_table` refuses */
    }
    v->line = v->column = 0;
    if (s->kind == SHAPE_DURATION) {
        nsec n = shape_duration(v, 0);
        return n % NSEC_PER_SEC == 0 ? json_integer(a, n / NSEC_PER_SEC)
                                     : json_number(a, (double)n / (double)NSEC_PER_SEC);
    }
    return v;
}

const char *setting_shown(const struct setting *s)
{
    return s->shown != NULL ? s->shown : s->fallback;
}

struct json *settings_defaults(struct arena *a, const struct setting *table)
{
    struct json *tree = json_object(a);
    for (const struct setting *s = table; s->key != NULL; s++) {
        if ((s->flags & SETTING_RECORDED) != 0) {
            setting_put(a, tree, s->key, setting_default(a, s));
        }
    }
    return tree;
}

/* Does a layer say something about the key, be it that there is no value? */
static bool is_mentioned(const struct layers *l, const char *key)
{
    for (size_t i = 0; i < l->len; i++) {
        struct str path = str_of(key);
        for (const struct json *v = l->items[i].tree; v != NULL && path.ptr != NULL;) {
            v = json_find(v, str_split(&path, '.'));
            if (v != NULL && (path.ptr == NULL || json_is(v, JSON_NULL))) {
                return true;
            }
        }
    }
    return false;
}

void settings_explain_defaults(struct arena *a, const struct setting *table,
                               const struct layers *layers, struct json *list)
{
    for (const struct setting *s = table; s->key != NULL; s++) {
        const char *shown = setting_shown(s);
        if (shown == NULL || is_mentioned(layers, s->key)) {
            continue;
        }
        struct json *value = setting_default(a, s);
        struct json *leaf = json_object(a);
        json_setc(a, leaf, "path", json_cstr(a, s->key));
        json_setc(a, leaf, "value", value == NULL ? json_null(a) : value);
        json_setc(a, leaf, "layer", json_cstr(a, SETTINGS_DEFAULT_LAYER));
        json_setc(a, leaf, "source", json_cstr(a, value == NULL ? shown : "built in"));
        json_push(a, list, leaf);
    }
}

/* --- the shape --- */

static bool may_write(const struct setting *table, const struct setting *s, unsigned writer)
{
    if (writer == 0 || (s->writers & writer) != 0) {
        return true;
    }
    for (const struct setting *m = table; s->kind == SHAPE_OBJECT && m->key != NULL; m++) {
        if (setting_member(m, str_of(s->key)) != NULL && may_write(table, m, writer)) {
            return true;
        }
    }
    return false;
}

static const struct shape *shape_of(struct arena *a, const struct setting *table,
                                    struct str section, unsigned writer)
{
    size_t len = 0;
    for (const struct setting *s = table; s->key != NULL; s++) {
        len += setting_member(s, section) != NULL;
    }
    struct shape *shape = arena_array(a, len + 1, sizeof *shape);
    len = 0;
    for (const struct setting *s = table; s->key != NULL; s++) {
        const char *member = setting_member(s, section);
        if (member != NULL && may_write(table, s, writer)) {
            bool is_section = s->kind == SHAPE_OBJECT && s->inner == NULL;
            shape[len++] = (struct shape) {
                .key = member,
                .kind = s->kind,
                .inner = is_section ? shape_of(a, table, str_of(s->key), writer) : s->inner,
                .words = s->words,
                .min = s->min,
                .max = s->max,
                .shorthand = s->shorthand,
                .help = s->help,
            };
        }
    }
    shape[len] = (struct shape) { .key = NULL };
    return shape;
}

const struct shape *settings_shape(struct arena *a, const struct setting *table, unsigned writer)
{
    return shape_of(a, table, STR_EMPTY, writer);
}

/* --- typed fields --- */

/* The value of a word; `otherwise` when it is none of the row. */
static int value_of_word(const struct setting *s, const struct json *v, int otherwise)
{
    struct str rest = str_of(s->words);
    for (size_t i = 0; json_is(v, JSON_STRING) && i < s->values_len && rest.ptr != NULL; i++) {
        if (str_eq(str_split(&rest, '|'), v->string)) {
            return s->values[i];
        }
    }
    return otherwise;
}

static int64_t whole_number(const struct setting *s, const struct json *v)
{
    int64_t unset = isnan(s->unset) ? 0 : (int64_t)s->unset;
    int64_t unit = s->unit == 0 ? 1 : s->unit;
    if (s->kind == SHAPE_DURATION) {
        return shape_duration(v, unset);
    }
    if (s->kind == SHAPE_SIZE) {
        return shape_size(v, unset);
    }
    int64_t n = json_int(v, unset);
    return n > INT64_MAX / unit ? INT64_MAX : n * unit;
}

/* One text is as good as a list of one. */
static const struct json *as_list(struct arena *a, const struct json *v)
{
    if (!json_is(v, JSON_STRING)) {
        return v;
    }
    struct json *list = json_array(a);
    json_push(a, list, json_string(a, v->string));
    return list;
}

static int enum_value(const struct setting *s, const struct json *v)
{
    if (s->words != NULL) {
        return value_of_word(s, v, 0);
    }
    return !json_is(v, JSON_BOOL) ? TRI_UNSET : v->boolean ? TRI_TRUE : TRI_FALSE;
}

static void store(struct arena *a, const struct setting *s, const struct json *v, void *at)
{
    switch (s->field.type) {
    case SETTING_BOOL:
        *(bool *)at = s->words != NULL ? value_of_word(s, v, 0) != 0 : json_bool(v, false);
        break;
    case SETTING_INT:
        *(int64_t *)at = whole_number(s, v);
        break;
    case SETTING_REAL:
        *(double *)at = json_real(v, s->unset);
        break;
    case SETTING_TEXT:
        *(const char **)at = json_cstring(v, NULL);
        break;
    case SETTING_STR:
        *(struct str *)at = json_is(v, JSON_STRING) ? v->string : (struct str) { 0 };
        break;
    case SETTING_JSON:
        *(const struct json **)at = s->kind == SHAPE_TEXTS ? as_list(a, v) : v;
        break;
    case SETTING_ENUM:
        *(unsigned *)at = (unsigned)enum_value(s, v);
        break;
    case SETTING_NO_FIELD:
        break;
    }
}

/* A switch with three states has no default: the code that asks decides what unset means. */
static bool has_default(const struct setting *s)
{
    bool three_states = s->kind == SHAPE_BOOL && s->field.type == SETTING_ENUM;
    return !three_states && (s->flags & SETTING_REMOVABLE) == 0;
}

void settings_read_table(struct arena *a, const struct setting *table, const struct json *tree,
                         void *container)
{
    for (const struct setting *s = table; s->key != NULL; s++) {
        const struct json *v = setting_value(tree, s->key);
        if ((v == NULL || json_is(v, JSON_NULL)) && has_default(s)) {
            v = setting_default(a, s);
        }
        if (s->field.type != SETTING_NO_FIELD) {
            store(a, s, v, (char *)container + s->field.offset);
        }
    }
}
