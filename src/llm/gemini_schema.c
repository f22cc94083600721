/* SPDX-License-Identifier: MIT
 *
 * Schemas in Gemini's older dialect as JSON Schema. The way back is not needed: the API takes JSON
 * Schema under another name (parametersJsonSchema, responseJsonSchema).
 */
#include <ctype.h>

#include "llm/gemini_priv.h"

static struct json *lower(struct arena *a, struct str word)
{
    struct json *v = json_string(a, word);
    char *copy = arena_dup(a, word);
    for (size_t i = 0; i < word.len; i++) {
        copy[i] = (char)tolower((unsigned char)copy[i]);
    }
    v->string.ptr = copy;
    return v;
}

/* 64-bit integers are strings in protobuf JSON. */
static struct json *number(struct arena *a, struct json *v)
{
    int64_t n;
    return json_is(v, JSON_STRING) && str_to_i64(v->string, &n) ? json_integer(a, n) : v;
}

static struct json *convert(struct arena *a, struct json *v);

static struct json *each(struct arena *a, const struct json *v)
{
    struct json *out = json_is(v, JSON_ARRAY) ? json_array(a) : json_object(a);
    for (size_t i = 0; json_is(v, JSON_ARRAY) && i < v->array.len; i++) {
        json_push(a, out, convert(a, v->array.items[i]));
    }
    for (size_t i = 0; json_is(v, JSON_OBJECT) && i < v->object.len; i++) {
        json_set(a, out, v->object.members[i].key, convert(a, v->object.members[i].value));
    }
    return out;
}

static void convert_member(struct arena *a, const struct json_member *m, struct json *out)
{
    static const char *const numbers[] = { "minItems",  "maxItems",      "minLength",
                                           "maxLength", "minProperties", "maxProperties",
                                           NULL };
    static const char *const hints[] = { "nullable", "propertyOrdering", "property_ordering",
                                         NULL };
    static const char *const inner[] = { "properties", "anyOf", "any_of", NULL };
    struct str key = str_eqc(m->key, "any_of") ? STR("anyOf") : m->key;
    if (llm_word_in(m->key, hints)) {
        return;
    }
    if (str_eqc(key, "type") && json_is(m->value, JSON_STRING)) {
        json_set(a, out, key, lower(a, m->value->string));
    } else if (llm_word_in(m->key, inner)) {
        json_set(a, out, key, each(a, m->value));
    } else if (str_eqc(key, "items")) {
        json_set(a, out, key, convert(a, m->value));
    } else {
        json_set(a, out, key, llm_word_in(key, numbers) ? number(a, m->value) : m->value);
    }
}

static void allow_null(struct arena *a, struct json *out)
{
    struct json *type = json_get(out, "type");
    struct json *list = json_array(a);
    if (!json_is(type, JSON_STRING)) {
        return;
    }
    json_push(a, list, type);
    json_push(a, list, json_cstr(a, "null"));
    json_setc(a, out, "type", list);
    if (json_is(json_get(out, "enum"), JSON_ARRAY)) {
        struct json *values = json_copy(a, json_get(out, "enum"));
        json_push(a, values, json_null(a));
        json_setc(a, out, "enum", values);
    }
}

/* As deep as json_parse() reads. */
static struct json *convert(struct arena *a, struct json *v)
{
    if (!json_is(v, JSON_OBJECT)) {
        return v;
    }
    struct json *out = json_object(a);
    for (size_t i = 0; i < v->object.len; i++) {
        convert_member(a, &v->object.members[i], out);
    }
    if (json_bool(json_get(v, "nullable"), false)) {
        allow_null(a, out);
    }
    return out;
}

struct json *gemini_schema_read(struct arena *a, const struct json *schema)
{
    return schema == NULL ? NULL : convert(a, json_copy(a, schema));
}
