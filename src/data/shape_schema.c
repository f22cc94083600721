/* SPDX-License-Identifier: MIT
 *
 * See shape_schema.h. What is said here about a kind is what shape.c accepts.
 */
#include "data/shape_schema.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define SIZE_PATTERN "^[0-9]+[KMGT]?(i?B)?$"

struct making {
    struct arena *a;
    bool layer;
};

static struct json *make_object(const struct making *m, const struct shape *table);

/* {"type": "a"}, or with several {"type": ["a", "b"]}; "null" is added where it is allowed. */
static void put_type(const struct making *m, struct json *schema, const char *types, bool nullable)
{
    struct json *list = json_array(m->a);
    struct str rest = str_of(types);
    while (rest.ptr != NULL) {
        json_push(m->a, list, json_string(m->a, str_split(&rest, '|')));
    }
    if (nullable) {
        json_push(m->a, list, json_cstr(m->a, "null"));
    }
    json_setc(m->a, schema, "type", json_len(list) == 1 ? json_item(list, 0) : list);
}

static struct json *typed(const struct making *m, const char *types)
{
    struct json *schema = json_object(m->a);
    put_type(m, schema, types, false);
    return schema;
}

static struct json *words_of(const struct making *m, const char *words, bool nullable)
{
    struct json *list = json_array(m->a);
    struct str rest = str_of(words);
    while (rest.ptr != NULL) {
        json_push(m->a, list, json_string(m->a, str_split(&rest, '|')));
    }
    if (nullable) {
        json_push(m->a, list, json_null(m->a));
    }
    return list;
}

/* A whole number as such: 1, not 1.0. */
static struct json *number(const struct making *m, double n)
{
    return n == floor(n) && fabs(n) < 1e15 ? json_integer(m->a, (int64_t)n) : json_number(m->a, n);
}

static void put_bounds(const struct making *m, struct json *schema, const struct shape *s)
{
    bool natural = s->kind == SHAPE_INT || s->kind == SHAPE_DURATION || s->kind == SHAPE_SIZE;
    if (shape_bounded(s) || natural) {
        json_setc(m->a, schema, "minimum", number(m, s->min));
    }
    if (shape_bounded(s)) {
        json_setc(m->a, schema, "maximum", number(m, s->max));
    }
}

static struct json *strings(const struct making *m)
{
    struct json *schema = typed(m, "array");
    json_setc(m->a, schema, "items", typed(m, "string"));
    return schema;
}

static void put_choice(const struct making *m, struct json *schema, const struct shape *s,
                       bool nullable)
{
    struct json *list = json_array(m->a);
    struct json *words = json_object(m->a);
    json_setc(m->a, words, "enum", words_of(m, s->words, nullable));
    json_push(m->a, list, words);
    json_push(m->a, list, strings(m));
    json_setc(m->a, schema, "oneOf", list);
}

static void put_text_limits(const struct making *m, struct json *schema, const struct shape *s)
{
    if (s->pattern != NULL) {
        json_setc(m->a, schema, "pattern", json_cstr(m->a, s->pattern));
    }
    if (s->max_len > 0) {
        json_setc(m->a, schema, "maxLength", json_integer(m->a, s->max_len));
    }
}

static void put_inner(const struct making *m, struct json *schema, const struct shape *table)
{
    const struct json *inner = make_object(m, table);
    for (size_t i = 0; i < json_len(inner); i++) {
        if (!str_eqc(inner->object.members[i].key, "type")) {
            json_set(m->a, schema, inner->object.members[i].key, inner->object.members[i].value);
        }
    }
}

static struct json *items_of(const struct making *m, const struct shape *s)
{
    struct json *item = s->inner == NULL ? typed(m, "object") : make_object(m, s->inner);
    if (!m->layer || s->shorthand == NULL) {
        return item;
    }
    struct json *either = json_array(m->a);
    json_push(m->a, either, item);
    json_push(m->a, either, typed(m, "string"));
    struct json *schema = json_object(m->a);
    json_setc(m->a, schema, "anyOf", either);
    return schema;
}

/* The part of the schema that depends on the kind. */
static void put_kind(const struct making *m, struct json *schema, const struct shape *s,
                     bool nullable)
{
    static const char *const types[] = {
        [SHAPE_STRING] = "string",
        [SHAPE_PATH] = "string",
        [SHAPE_BOOL] = "boolean",
        [SHAPE_INT] = "integer",
        [SHAPE_NUMBER] = "number",
        [SHAPE_SIZE] = "integer|string",
        [SHAPE_DURATION] = "number|string",
        [SHAPE_STRINGS] = "array",
        [SHAPE_PATHS] = "array",
        [SHAPE_COMMAND] = "array",
        [SHAPE_TEXTS] = "string|array",
        [SHAPE_SOURCE] = "object|string",
        [SHAPE_MAP] = "object",
        [SHAPE_ANY_OBJECT] = "object",
        [SHAPE_OBJECT] = "object",
        [SHAPE_LIST] = "array",
        [SHAPE_KIND_MAX] = NULL,
    };
    if (types[s->kind] != NULL) {
        put_type(m, schema, types[s->kind], nullable);
    }
    switch (s->kind) {
    case SHAPE_WORD:
        json_setc(m->a, schema, "enum", words_of(m, s->words, nullable));
        break;
    case SHAPE_CHOICE:
        put_choice(m, schema, s, nullable);
        break;
    case SHAPE_SIZE:
        json_setc(m->a, schema, "pattern", json_cstr(m->a, SIZE_PATTERN));
        break;
    case SHAPE_STRINGS:
    case SHAPE_PATHS:
    case SHAPE_COMMAND:
    case SHAPE_TEXTS:
        json_setc(m->a, schema, "items", typed(m, "string"));
        break;
    case SHAPE_MAP:
        json_setc(m->a, schema, "additionalProperties", typed(m, "string|number|boolean|null"));
        break;
    case SHAPE_OBJECT:
        put_inner(m, schema, s->inner);
        break;
    case SHAPE_LIST:
        json_setc(m->a, schema, "items", items_of(m, s));
        break;
    case SHAPE_STRING:
    case SHAPE_PATH:
        put_text_limits(m, schema, s);
        break;
    case SHAPE_BOOL:
    case SHAPE_INT:
    case SHAPE_NUMBER:
    case SHAPE_DURATION:
    case SHAPE_SOURCE:
    case SHAPE_ANY:
    case SHAPE_ANY_OBJECT:
    case SHAPE_END:
    case SHAPE_KIND_MAX:
        break;
    }
    put_bounds(m, schema, s);
}

/* "stop the run after TIME" -> "Stop the run after TIME." */
static const char *sentence(struct arena *a, const char *help)
{
    char *text = arena_printf(a, "%s.", help);
    text[0] = (char)toupper((unsigned char)text[0]);
    return text;
}

/* `prompt: text` for `prompt: {text: text}`: the section, or the value of one of these members. */
static struct json *with_shorthands(const struct making *m, struct json *full,
                                    const struct shape *s)
{
    struct json *either = json_array(m->a);
    struct str rest = str_of(s->shorthand);
    json_push(m->a, either, full);
    while (rest.ptr != NULL) {
        struct json *plain = json_object(m->a);
        put_kind(m, plain, shape_find(s->inner, str_split(&rest, '|')), false);
        json_push(m->a, either, plain);
    }
    struct json *schema = json_object(m->a);
    json_setc(m->a, schema, "anyOf", either);
    return schema;
}

static struct json *make_member(const struct making *m, const struct shape *s)
{
    struct json *full = json_object(m->a);
    bool shorthand = m->layer && s->kind == SHAPE_OBJECT && s->shorthand != NULL;
    struct json *schema = json_object(m->a);
    if (s->help != NULL) {
        json_setc(m->a, schema, "description", json_cstr(m->a, sentence(m->a, s->help)));
    }
    put_kind(m, full, s, m->layer && !s->required);
    if (shorthand) {
        full = with_shorthands(m, full, s);
    }
    for (size_t i = 0; i < json_len(full); i++) {
        json_set(m->a, schema, full->object.members[i].key, full->object.members[i].value);
    }
    return schema;
}

static struct json *make_object(const struct making *m, const struct shape *table)
{
    struct json *schema = typed(m, "object");
    struct json *members = json_object(m->a);
    struct json *required = json_array(m->a);
    for (const struct shape *s = table; s->kind != SHAPE_END; s++) {
        json_setc(m->a, members, s->key, make_member(m, s));
        if (s->required) {
            json_push(m->a, required, json_cstr(m->a, s->key));
        }
    }
    json_setc(m->a, schema, "properties", members);
    json_setc(m->a, schema, "required", required);
    json_setc(m->a, schema, "additionalProperties", json_boolean(m->a, false));
    return schema;
}

struct json *shape_schema(struct arena *a, const struct shape *table, bool layer)
{
    return make_object(&(struct making) { a, layer }, table);
}
