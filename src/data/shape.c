/* SPDX-License-Identifier: MIT
 *
 * Walks a value and a table of allowed keys together; see shape.h.
 */
#include "data/shape.h"

#include <math.h>
#include <stdio.h>

/* Deep enough for every format of ours; a table cannot be recursive. */
enum { PATH_LEN = 160 };

struct walk {
    const char *file;
    char path[PATH_LEN]; /* dotted path of the value under check */
    struct err *e;
};

static bool is_duration(const struct json *v)
{
    int64_t ns;
    switch (v->type) {
    case JSON_INT:
    case JSON_REAL:
        return json_real(v, -1) >= 0 && json_real(v, 0) <= 3650.0 * 86400;
    case JSON_STRING:
        return str_to_duration(v->string, &ns);
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return false;
}

int64_t shape_duration(const struct json *v, int64_t otherwise)
{
    int64_t ns = otherwise;
    if (json_is(v, JSON_STRING)) {
        return str_to_duration(v->string, &ns) ? ns : otherwise;
    }
    if (json_is(v, JSON_INT) || json_is(v, JSON_REAL)) {
        return (int64_t)(json_real(v, 0) * 1e9 + 0.5);
    }
    return otherwise;
}

/* "512M": digits and K, M, G or T, which count in steps of 1024, with or without "B" or "iB". */
static bool text_size(struct str s, int64_t *ret)
{
    static const char units[] = "KMGT";
    size_t digits = 0;
    while (digits < s.len && s.ptr[digits] >= '0' && s.ptr[digits] <= '9') {
        digits++;
    }
    int64_t n;
    struct str unit = str_slice(s, digits, s.len);
    if (!str_to_i64(str_slice(s, 0, digits), &n)) {
        return false;
    }
    const char *step = unit.len == 0 ? NULL : memchr(units, unit.ptr[0], sizeof units - 1);
    int shift = step == NULL ? 0 : (int)(step - units + 1) * 10;
    unit = step == NULL ? unit : str_slice(unit, 1, unit.len);
    bool plain = unit.len == 0 || str_eqc(unit, "B") || (step != NULL && str_eqc(unit, "iB"));
    if (!plain || n > (INT64_MAX >> shift)) {
        return false;
    }
    *ret = n << shift;
    return true;
}

int64_t shape_size(const struct json *v, int64_t otherwise)
{
    int64_t n;
    if (json_is(v, JSON_STRING)) {
        return text_size(v->string, &n) ? n : otherwise;
    }
    return json_int(v, otherwise);
}

static bool is_size(const struct json *v)
{
    int64_t n;
    return json_is(v, JSON_STRING) ? text_size(v->string, &n)
                                   : json_is(v, JSON_INT) && v->integer >= 0;
}

static bool all_items(const struct json *v, bool (*ok)(const struct json *))
{
    for (size_t i = 0; i < json_len(v); i++) {
        const struct json *item =
            v->type == JSON_ARRAY ? v->array.items[i] : v->object.members[i].value;
        if (!ok(item)) {
            return false;
        }
    }
    return true;
}

static bool is_string(const struct json *v)
{
    return json_is(v, JSON_STRING);
}

static bool is_scalar(const struct json *v)
{
    return !json_is(v, JSON_ARRAY) && !json_is(v, JSON_OBJECT);
}

static bool is_word(const struct json *v, const char *words)
{
    struct str rest = str_of(words);
    while (json_is(v, JSON_STRING) && rest.ptr != NULL) {
        if (str_eq(str_split(&rest, '|'), v->string)) {
            return true;
        }
    }
    return false;
}

static bool is_strings(const struct json *v)
{
    return json_is(v, JSON_ARRAY) && all_items(v, is_string);
}

static bool fits(const struct json *v, const struct shape *s)
{
    switch (s->kind) {
    case SHAPE_STRING:
    case SHAPE_PATH:
        return is_string(v) && !str_has_nul(v->string);
    case SHAPE_WORD:
        return is_word(v, s->words);
    case SHAPE_BOOL:
        return json_is(v, JSON_BOOL);
    case SHAPE_INT:
        return json_is(v, JSON_INT) && v->integer >= 0;
    case SHAPE_DURATION:
        return is_duration(v);
    case SHAPE_STRINGS:
    case SHAPE_PATHS:
    case SHAPE_COMMAND:
        return is_strings(v);
    case SHAPE_NUMBER:
        return json_is(v, JSON_INT) || json_is(v, JSON_REAL);
    case SHAPE_SIZE:
        return is_size(v);
    case SHAPE_TEXTS:
        return is_string(v) || is_strings(v);
    case SHAPE_CHOICE:
        return is_word(v, s->words) || is_strings(v);
    case SHAPE_SOURCE:
        return is_string(v) || json_is(v, JSON_OBJECT);
    case SHAPE_MAP:
        return json_is(v, JSON_OBJECT) && all_items(v, is_scalar);
    case SHAPE_ANY_OBJECT:
    case SHAPE_OBJECT:
        return json_is(v, JSON_OBJECT);
    case SHAPE_LIST:
        return json_is(v, JSON_ARRAY);
    case SHAPE_ANY:
    case SHAPE_END:
    case SHAPE_KIND_MAX:
        break;
    }
    return true;
}

static const char *wanted(enum shape_kind kind)
{
    switch (kind) {
    case SHAPE_STRING:
    case SHAPE_PATH:
        return "a string";
    case SHAPE_BOOL:
        return "true or false";
    case SHAPE_INT:
        return "a whole number, 0 or more";
    case SHAPE_DURATION:
        return "a duration such as 600, 90s or 10m";
    case SHAPE_NUMBER:
        return "a number";
    case SHAPE_SIZE:
        return "a size such as 1048576, 512M or 2G";
    case SHAPE_STRINGS:
    case SHAPE_PATHS:
    case SHAPE_COMMAND:
        return "a list of strings";
    case SHAPE_TEXTS:
        return "a string or a list of strings";
    case SHAPE_SOURCE:
        return "a map, or the name of a file that holds one";
    case SHAPE_MAP:
        return "a map of names to plain values";
    case SHAPE_ANY_OBJECT:
    case SHAPE_OBJECT:
        return "a map";
    case SHAPE_LIST:
        return "a list of maps";
    case SHAPE_WORD:
    case SHAPE_CHOICE:
    case SHAPE_ANY:
    case SHAPE_END:
    case SHAPE_KIND_MAX:
        break;
    }
    return "something else";
}

static bool is_list_of_strings(enum shape_kind kind)
{
    return kind == SHAPE_STRINGS || kind == SHAPE_TEXTS || kind == SHAPE_PATHS ||
           kind == SHAPE_COMMAND;
}

static int misfit(struct walk *w, const struct json *v, const struct shape *s)
{
    char at[JSON_AT_LEN];
    const char *where = json_at(w->file, v, at);
    if (s->kind == SHAPE_CHOICE) {
        return ERR(w->e, ERR_CONFIG, "%s: '%s' must be one of %s, or a list of strings", where,
                   w->path, s->words);
    }
    if (s->kind == SHAPE_WORD && json_is(v, JSON_STRING)) {
        return ERR(w->e, ERR_CONFIG, "%s: '%s' must be one of %s, not '%.*s'", where, w->path,
                   s->words, STR_ARG(v->string));
    }
    if (s->kind == SHAPE_WORD) {
        return ERR(w->e, ERR_CONFIG, "%s: '%s' must be one of %s", where, w->path, s->words);
    }
    for (size_t i = 0; json_is(v, JSON_ARRAY) && i < v->array.len; i++) {
        const struct json *item = v->array.items[i];
        if (is_list_of_strings(s->kind) && !is_string(item)) {
            return ERR(w->e, ERR_CONFIG,
                       "%s: '%s' must be %s, but item %zu is %s; put it in quotes",
                       json_at(w->file, item, at), w->path, wanted(s->kind), i + 1,
                       json_type_name(item->type));
        }
    }
    if (json_is(v, JSON_STRING) && str_has_nul(v->string)) {
        return ERR(w->e, ERR_CONFIG, "%s: '%s' has a NUL character in it", where, w->path);
    }
    if (json_is(v, JSON_STRING)) {
        return ERR(w->e, ERR_CONFIG, "%s: '%s' must be %s, not '%.*s'", where, w->path,
                   wanted(s->kind), STR_ARG(str_slice(v->string, 0, 80)));
    }
    if (s->kind == SHAPE_INT && json_is(v, JSON_INT)) {
        return ERR(w->e, ERR_CONFIG, "%s: '%s' must be %s, not %lld", where, w->path,
                   wanted(s->kind), (long long)v->integer);
    }
    return ERR(w->e, ERR_CONFIG, "%s: '%s' must be %s, not %s", where, w->path, wanted(s->kind),
               json_type_name(v->type));
}

static int unknown_key(struct walk *w, const struct json_member *m, const struct shape *table)
{
    char at[JSON_AT_LEN];
    struct json where = { .line = m->line, .column = m->column };
    const struct shape *best = NULL;
    size_t best_distance = 3;
    for (const struct shape *s = table; s->kind != SHAPE_END; s++) {
        size_t d = str_distance(m->key, str_of(s->key), best_distance - 1);
        if (d < best_distance) {
            best = s;
            best_distance = d;
        }
    }
    const char *prefix = w->path[0] == '\0' ? "" : ".";
    if (best != NULL) {
        return ERR(w->e, ERR_CONFIG, "%s: unknown key '%s%s%.*s' (did you mean '%s'?)",
                   json_at(w->file, &where, at), w->path, prefix, STR_ARG(str_slice(m->key, 0, 64)),
                   best->key);
    }
    return ERR(w->e, ERR_CONFIG, "%s: unknown key '%s%s%.*s'", json_at(w->file, &where, at),
               w->path, prefix, STR_ARG(str_slice(m->key, 0, 64)));
}

static int check_object(struct walk *w, const struct json *v, const struct shape *table);

static int check_list(struct walk *w, const struct json *v, const struct shape *s)
{
    size_t len = strlen(w->path);
    int r = 0;
    for (size_t i = 0; r == 0 && i < v->array.len; i++) {
        const struct json *item = v->array.items[i];
        (void)snprintf(w->path + len, sizeof w->path - len, "[%zu]", i);
        if (!json_is(item, JSON_OBJECT)) {
            r = misfit(w, item, &(struct shape) { "", SHAPE_OBJECT });
        } else if (s->inner != NULL) {
            r = check_object(w, item, s->inner);
        }
        w->path[len] = '\0';
    }
    return r;
}

bool shape_bounded(const struct shape *s)
{
    return s->min != 0 || s->max != 0;
}

static int check_bounds(struct walk *w, const struct json *v, const struct shape *s)
{
    double n = json_real(v, NAN);
    if (!shape_bounded(s) || (n >= s->min && n <= s->max)) {
        return 0;
    }
    char at[JSON_AT_LEN];
    return ERR(w->e, ERR_CONFIG, "%s: '%s' must be between %.10g and %.10g",
               json_at(w->file, v, at), w->path, s->min, s->max);
}

static int check_value(struct walk *w, const struct json *v, const struct shape *s)
{
    if (json_is(v, JSON_NULL)) {
        return 0;
    }
    if (!fits(v, s)) {
        return misfit(w, v, s);
    }
    if (s->kind == SHAPE_OBJECT) {
        return check_object(w, v, s->inner);
    }
    return s->kind == SHAPE_LIST ? check_list(w, v, s) : check_bounds(w, v, s);
}

const struct shape *shape_find(const struct shape *table, struct str key)
{
    for (const struct shape *s = table; s != NULL && s->kind != SHAPE_END; s++) {
        if (str_eqc(key, s->key)) {
            return s;
        }
    }
    return NULL;
}

static int check_required(struct walk *w, const struct json *v, const struct shape *table)
{
    for (const struct shape *s = table; s->kind != SHAPE_END; s++) {
        const struct json *m = s->required ? json_get(v, s->key) : NULL;
        bool missing =
            m == NULL || json_is(m, JSON_NULL) || (json_is(m, JSON_STRING) && m->string.len == 0);
        if (s->required && missing) {
            char at[JSON_AT_LEN];
            return ERR(w->e, ERR_CONFIG, "%s: %s needs a '%s'", json_at(w->file, v, at), w->path,
                       s->key);
        }
    }
    return 0;
}

static int check_object(struct walk *w, const struct json *v, const struct shape *table)
{
    size_t len = strlen(w->path);
    for (size_t i = 0; i < v->object.len; i++) {
        const struct json_member *m = &v->object.members[i];
        const struct shape *s = shape_find(table, m->key);
        if (s == NULL) {
            return unknown_key(w, m, table);
        }
        (void)snprintf(w->path + len, sizeof w->path - len, "%s%s", len > 0 ? "." : "", s->key);
        int r = check_value(w, m->value, s);
        w->path[len] = '\0';
        if (r < 0) {
            return r;
        }
    }
    return check_required(w, v, table);
}

int shape_check(const struct json *v, const struct shape *table, const char *file, struct err *e)
{
    struct walk w = { .file = file, .e = e };
    if (!json_is(v, JSON_OBJECT)) {
        char at[JSON_AT_LEN];
        return ERR(e, ERR_CONFIG, "%s: expected a map at the top, not %s", json_at(file, v, at),
                   v == NULL ? "nothing" : json_type_name(v->type));
    }
    return check_object(&w, v, table);
}
