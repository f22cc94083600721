/* SPDX-License-Identifier: MIT
 *
 * The strict form of OpenAI, there and back. The provider refuses a request whose schema has
 * anything that it does not know, so only what it knows is kept.
 */
#include "llm/schema_convert.h"

#include "base/json_reader.h"
#include "data/schema_keyword.h"
#include "llm/schema_convert_priv.h"

struct strict {
    struct arena *a;
    const struct json *root;
    struct err *e;
};

/* A subschema and where it stands. */
struct spot {
    const struct json *schema;
    const char *path;
    unsigned depth; /* left */
};

/* Kept as they are. */
static const char *const plain_keywords[] = {
    "type",
    "title",
    "description",
    "enum",
    "const",
    "pattern",
    "multipleOf",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "minItems",
    "maxItems",
    "exclusiveMaximum",
};

static const char *const plain_formats[] = {
    "date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
};

static int strict_schema(struct strict *s, struct spot in, struct json **ret);

static bool is_one_of(struct str word, const char *const *list, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (str_eqc(word, list[i])) {
            return true;
        }
    }
    return false;
}

static int cannot(const struct strict *s, const char *path, const char *what)
{
    return ERR(s->e, ERR_UNSUPPORTED, "schema at %s: %s has no strict form",
               path[0] == '\0' ? "its root" : path, what);
}

static struct spot below(const struct strict *s, struct spot in, const struct json *schema,
                         const char *keyword, struct str key)
{
    return (struct spot) {
        .schema = schema,
        .path = arena_printf(s->a, "%s/%s%s%.*s", in.path, keyword, key.ptr != NULL ? "/" : "",
                             STR_ARG(key)),
        .depth = in.depth - 1,
    };
}

/* --- there --- */

/* Also null: by type, by enum, or by an alternative. */
static struct json *nullable(struct strict *s, struct json *schema)
{
    struct json *any = json_get(schema, "anyOf");
    if (json_get(schema, "const") == NULL && json_get(schema, "$ref") == NULL && any == NULL &&
        schema_add_null(s->a, schema)) {
        return schema;
    }
    struct json *null_schema = json_object(s->a);
    json_setc(s->a, null_schema, "type", json_cstr(s->a, "null"));
    if (any != NULL) {
        json_push(s->a, any, null_schema);
        return schema;
    }
    struct json *outer = json_object(s->a);
    any = json_array(s->a);
    json_push(s->a, any, schema);
    json_push(s->a, any, null_schema);
    json_setc(s->a, outer, "anyOf", any);
    return outer;
}

static bool is_required(const struct json *schema, struct str name)
{
    const struct json *required = json_get(schema, "required");
    for (size_t i = 0; i < json_len(required); i++) {
        if (str_eq(json_str(json_item(required, i), STR_EMPTY), name)) {
            return true;
        }
    }
    return false;
}

static int strict_object(struct strict *s, struct spot in, struct json *out)
{
    const struct json *properties = json_get(in.schema, "properties");
    const struct json *additional = json_get(in.schema, "additionalProperties");
    if (properties != NULL && !json_is(properties, JSON_OBJECT)) {
        return cannot(s, in.path, "properties that are no object");
    }
    if (json_len(properties) == 0 && json_bool(additional, true)) {
        return cannot(s, in.path, "an object with free keys");
    }
    struct json *all = json_object(s->a);
    struct json *required = json_array(s->a);
    for (size_t i = 0; i < json_len(properties); i++) {
        const struct json_member *m = &properties->object.members[i];
        struct json *one = NULL;
        int rc = strict_schema(s, below(s, in, m->value, "properties", m->key), &one);
        if (rc != 0) {
            return rc;
        }
        bool optional = !is_required(in.schema, m->key) && !schema_takes_null(s->root, m->value);
        json_set(s->a, all, m->key, optional ? nullable(s, one) : one);
        json_push(s->a, required, json_string(s->a, m->key));
    }
    json_setc(s->a, out, "properties", all);
    json_setc(s->a, out, "required", required);
    json_setc(s->a, out, "additionalProperties", json_boolean(s->a, false));
    return 0;
}

static int strict_array(struct strict *s, struct spot in, struct json *out)
{
    const struct json *items = json_get(in.schema, "items");
    if (json_get(in.schema, "prefixItems") != NULL || json_is(items, JSON_ARRAY)) {
        return cannot(s, in.path, "a tuple");
    }
    if (items == NULL) {
        return cannot(s, in.path, "an array of anything");
    }
    struct json *one = NULL;
    int rc = strict_schema(s, below(s, in, items, "items", (struct str) { 0 }), &one);
    if (rc == 0) {
        json_setc(s->a, out, "items", one);
    }
    return rc;
}

static int strict_union(struct strict *s, struct spot in, const char *keyword, struct json *out)
{
    const struct json *list = json_get(in.schema, keyword);
    if (list == NULL) {
        return 0;
    }
    if (json_get(out, "anyOf") != NULL) {
        return cannot(s, in.path, "anyOf beside oneOf");
    }
    struct json *any = json_array(s->a);
    for (size_t i = 0; i < json_len(list); i++) {
        struct json *one = NULL;
        struct str index = str_of(arena_printf(s->a, "%zu", i));
        int rc = strict_schema(s, below(s, in, json_item(list, i), keyword, index), &one);
        if (rc != 0) {
            return rc;
        }
        json_push(s->a, any, one);
    }
    json_setc(s->a, out, "anyOf", any);
    return 0;
}

static int strict_definitions(struct strict *s, struct spot in, const char *keyword,
                              struct json *out)
{
    const struct json *map = json_get(in.schema, keyword);
    struct json *all = json_object(s->a);
    for (size_t i = 0; i < (json_is(map, JSON_OBJECT) ? map->object.len : 0); i++) {
        const struct json_member *m = &map->object.members[i];
        struct json *one = NULL;
        int rc = strict_schema(s, below(s, in, m->value, keyword, m->key), &one);
        if (rc != 0) {
            return rc;
        }
        json_set(s->a, all, m->key, one);
    }
    if (map != NULL) {
        json_setc(s->a, out, keyword, all);
    }
    return 0;
}

/* allOf of one schema is that schema with the members beside it. */
static int unfold_all_of(struct strict *s, struct spot *in)
{
    const struct json *all = json_get(in->schema, "allOf");
    if (all == NULL) {
        return 0;
    }
    const struct json *only = json_item(all, 0);
    if (json_len(all) != 1 || !json_is(only, JSON_OBJECT)) {
        return cannot(s, in->path, "allOf of several schemas");
    }
    struct json *merged = json_copy(s->a, in->schema);
    (void)json_remove(merged, STR("allOf"));
    for (size_t i = 0; i < only->object.len; i++) {
        const struct json_member *m = &only->object.members[i];
        if (json_find(merged, m->key) == NULL) {
            json_set(s->a, merged, m->key, m->value);
        }
    }
    in->schema = merged;
    return 0;
}

static void keep_plain(struct strict *s, const struct json *schema, struct json *out)
{
    for (size_t i = 0; i < schema->object.len; i++) {
        const struct json_member *m = &schema->object.members[i];
        struct str format = json_str(m->value, STR_EMPTY);
        bool known_format =
            str_eqc(m->key, "format") && is_one_of(format, plain_formats, ARRAY_LEN(plain_formats));
        if (known_format || is_one_of(m->key, plain_keywords, ARRAY_LEN(plain_keywords))) {
            json_set(s->a, out, m->key, json_copy(s->a, m->value));
        }
    }
}

static int strict_reference(struct strict *s, struct spot in, struct json **ret)
{
    const struct json *ref = json_get(in.schema, "$ref");
    if (schema_deref(s->root, in.schema) == NULL) {
        return cannot(s, in.path, "a reference to another document or to nothing");
    }
    *ret = json_object(s->a); /* nothing may stand beside it */
    json_setc(s->a, *ret, "$ref", json_copy(s->a, ref));
    return 0;
}

static int strict_body(struct strict *s, struct spot in, struct json *out)
{
    bool typed = json_get(in.schema, "type") != NULL;
    bool object = (typed && schema_type_allows(in.schema, "object")) ||
                  json_get(in.schema, "properties") != NULL;
    bool array =
        (typed && schema_type_allows(in.schema, "array")) || json_get(in.schema, "items") != NULL;
    keep_plain(s, in.schema, out);
    int rc = strict_union(s, in, "anyOf", out);
    if (rc == 0) {
        rc = strict_union(s, in, "oneOf", out);
    }
    bool said = typed || json_get(out, "enum") != NULL || json_get(out, "const") != NULL ||
                json_get(out, "anyOf") != NULL;
    if (rc == 0 && !said && !object && !array) {
        return cannot(s, in.path, "a value of anything");
    }
    if (rc == 0 && !said) {
        json_setc(s->a, out, "type", json_cstr(s->a, object ? "object" : "array"));
    }
    if (rc == 0 && object) {
        rc = strict_object(s, in, out);
    }
    return rc == 0 && array ? strict_array(s, in, out) : rc;
}

static int strict_schema(struct strict *s, struct spot in, struct json **ret)
{
    if (in.depth == 0) {
        return cannot(s, in.path, "nesting that deep");
    }
    if (!json_is(in.schema, JSON_OBJECT)) {
        return cannot(s, in.path, "true or false as a schema");
    }
    int rc = unfold_all_of(s, &in);
    if (rc != 0) {
        return rc;
    }
    if (json_get(in.schema, "$ref") != NULL) {
        return strict_reference(s, in, ret);
    }
    struct json *out = json_object(s->a);
    rc = strict_body(s, in, out);
    if (rc == 0) {
        rc = strict_definitions(s, in, "$defs", out);
    }
    if (rc == 0) {
        rc = strict_definitions(s, in, "definitions", out);
    }
    *ret = out;
    return rc;
}

/* The root must be an object in place: a reference there is replaced by what it points to. */
static struct json *inline_root(struct strict *s, const struct json *schema)
{
    struct json *copy = json_copy(s->a, schema_deref(schema, schema));
    static const char *const kept[] = { "$defs", "definitions" };
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        const struct json *map = json_get(schema, kept[i]);
        if (map != NULL) {
            json_setc(s->a, copy, kept[i], json_copy(s->a, map));
        }
    }
    return copy;
}

int schema_to_strict(struct arena *a, const struct json *schema, struct json **ret, struct err *e)
{
    struct strict s = { .a = a, .root = schema, .e = e };
    if (!schema_is_object(schema, schema)) {
        return cannot(&s, "", "a root that is no object");
    }
    struct spot root = { .schema = inline_root(&s, schema), .path = "", .depth = CONVERT_DEPTH };
    return strict_schema(&s, root, ret);
}

/* --- and back --- */

static struct json *prune(struct strict *s, const struct json *schema, const struct json *value,
                          unsigned depth);

static const struct json *property_of(const struct json *schema, struct str name)
{
    return json_find(json_get(schema, "properties"), name);
}

/* Whether an alternative is the one that the value was made by: in the strict form an object has
 * exactly the properties of its alternative, and constants tell the variants apart. */
static bool fits(const struct strict *s, const struct json *schema, const struct json *value)
{
    const struct json *one = schema_deref(s->root, schema);
    const char *type = json_type_name(value->type);
    bool number = value->type == JSON_INT || value->type == JSON_REAL;
    if (!schema_type_allows(one, type) && !(number && schema_type_allows(one, "number"))) {
        return false;
    }
    if (value->type != JSON_OBJECT) {
        return true;
    }
    if (json_len(json_get(one, "properties")) != value->object.len) {
        return false;
    }
    for (size_t i = 0; i < value->object.len; i++) {
        const struct json_member *m = &value->object.members[i];
        const struct json *property = schema_deref(s->root, property_of(one, m->key));
        const struct json *constant = json_get(property, "const");
        if (property == NULL || (constant != NULL && !json_equal(constant, m->value))) {
            return false;
        }
    }
    return true;
}

/* The schema that says what the value's parts are: behind references, allOf and alternatives. */
static const struct json *effective(struct strict *s, const struct json *schema,
                                    const struct json *value)
{
    static const char *const unions[] = { "anyOf", "oneOf" };
    const struct json *one = schema_deref(s->root, schema);
    if (json_get(one, "properties") != NULL || json_get(one, "items") != NULL) {
        return one;
    }
    const struct json *all = json_get(one, "allOf");
    if (json_len(all) == 1) {
        return schema_deref(s->root, json_item(all, 0));
    }
    for (size_t i = 0; i < ARRAY_LEN(unions); i++) {
        const struct json *list = json_get(one, unions[i]);
        for (size_t k = 0; k < json_len(list); k++) {
            if (fits(s, json_item(list, k), value)) {
                return schema_deref(s->root, json_item(list, k));
            }
        }
    }
    return one;
}

static struct json *prune_object(struct strict *s, const struct json *schema,
                                 const struct json *value, unsigned depth)
{
    struct json *out = json_object(s->a);
    for (size_t i = 0; i < value->object.len; i++) {
        const struct json_member *m = &value->object.members[i];
        const struct json *property = property_of(schema, m->key);
        bool absent = m->value->type == JSON_NULL && property != NULL &&
                      !is_required(schema, m->key) && !schema_takes_null(s->root, property);
        if (!absent) {
            /* the keys of a value differ already: no search among thousands */
            (void)json_append(s->a, out, arena_str(s->a, m->key),
                              prune(s, property, m->value, depth));
        }
    }
    return out;
}

static struct json *prune(struct strict *s, const struct json *schema, const struct json *value,
                          unsigned depth)
{
    bool container = value->type == JSON_OBJECT || value->type == JSON_ARRAY;
    if (schema == NULL || depth == 0 || !container) {
        return json_copy(s->a, value);
    }
    const struct json *one = effective(s, schema, value);
    if (value->type == JSON_OBJECT) {
        return prune_object(s, one, value, depth - 1);
    }
    struct json *out = json_array(s->a);
    for (size_t i = 0; i < value->array.len; i++) {
        json_push(s->a, out, prune(s, json_get(one, "items"), value->array.items[i], depth - 1));
    }
    return out;
}

struct json *schema_from_strict(struct arena *a, const struct json *schema,
                                const struct json *value)
{
    struct strict s = { .a = a, .root = schema };
    return prune(&s, schema, value, CONVERT_DEPTH);
}
