/* SPDX-License-Identifier: MIT
 *
 * Wrapping, and null unions. See schema_strict.c for the strict form.
 */
#include "llm/schema_convert.h"

#include "data/schema_keyword.h"
#include "llm/schema_convert_priv.h"

/* References are followed this far before they count as a circle. */
enum { DEREF_STEPS = 64 };
/* Subschemas that are looked at to see whether null fits. They can be nested as deeply as this. */
enum { NULL_SEARCH = 500 };

#define ITEMS_KEY "items"
#define VALUE_KEY "value"

/* What to do with each subschema, after its own subschemas: returns it, or another in its place. */
typedef struct json *convert_fn(struct arena *a, struct json *schema, const void *context);

/* --- asking --- */

const struct json *schema_deref(const struct json *root, const struct json *schema)
{
    for (int i = 0; i < DEREF_STEPS; i++) {
        const struct json *ref = json_get(schema, "$ref");
        if (!json_is(ref, JSON_STRING)) {
            return schema;
        }
        if (!str_starts(ref->string, STR("#"))) {
            return NULL;
        }
        schema = json_pointer(root, str_slice(ref->string, 1, ref->string.len));
        if (schema == NULL) {
            return NULL;
        }
    }
    return NULL;
}

bool schema_type_allows(const struct json *schema, const char *type)
{
    const struct json *t = json_get(schema, "type");
    if (json_is(t, JSON_STRING)) {
        return str_eqc(t->string, type);
    }
    for (size_t i = 0; i < json_len(t); i++) {
        if (str_eqc(json_str(json_item(t, i), STR_EMPTY), type)) {
            return true;
        }
    }
    return t == NULL;
}

bool schema_is_object(const struct json *root, const struct json *schema)
{
    const struct json *s = schema_deref(root, schema);
    if (json_get(s, "type") == NULL) {
        return json_get(s, "properties") != NULL;
    }
    const struct json *type = json_get(s, "type");
    return schema_type_allows(s, "object") && (type->type == JSON_STRING || json_len(type) == 1);
}

/* `fuel` bounds the search: alternatives may refer to each other. */
static bool takes_null(const struct json *root, const struct json *schema, unsigned *fuel);

/* Whether any (or all) of a list of schemas take null. */
static bool list_takes_null(const struct json *root, const struct json *list, bool all,
                            unsigned *fuel)
{
    bool any = false;
    for (size_t i = 0; i < json_len(list); i++) {
        bool one = takes_null(root, json_item(list, i), fuel);
        if (all && !one) {
            return false;
        }
        any = any || one;
    }
    return all || any;
}

static bool takes_null(const struct json *root, const struct json *schema, unsigned *fuel)
{
    const struct json *s = schema_deref(root, schema);
    if (*fuel == 0 || s == NULL || s->type != JSON_OBJECT) {
        return *fuel > 0 && json_bool(s, false);
    }
    *fuel -= 1;
    const struct json *values = json_get(s, "enum");
    bool listed = values == NULL;
    for (size_t i = 0; i < json_len(values); i++) {
        listed = listed || json_is(json_item(values, i), JSON_NULL);
    }
    const struct json *constant = json_get(s, "const");
    const struct json *any = json_get(s, "anyOf");
    const struct json *one = json_get(s, "oneOf");
    return listed && schema_type_allows(s, "null") &&
           (constant == NULL || constant->type == JSON_NULL) &&
           (any == NULL || list_takes_null(root, any, false, fuel)) &&
           (one == NULL || list_takes_null(root, one, false, fuel)) &&
           list_takes_null(root, json_get(s, "allOf"), true, fuel);
}

bool schema_takes_null(const struct json *root, const struct json *schema)
{
    unsigned fuel = NULL_SEARCH;
    return takes_null(root, schema, &fuel);
}

bool schema_add_null(struct arena *a, struct json *schema)
{
    struct json *type = json_get(schema, "type");
    struct json *values = json_get(schema, "enum");
    if (json_is(values, JSON_ARRAY)) {
        json_push(a, values, json_null(a));
    }
    if (json_is(type, JSON_ARRAY)) {
        json_push(a, type, json_cstr(a, "null"));
    } else if (json_is(type, JSON_STRING)) {
        struct json *list = json_array(a);
        json_push(a, list, type);
        json_push(a, list, json_cstr(a, "null"));
        json_setc(a, schema, "type", list);
    }
    return type != NULL || values != NULL;
}

/* --- going through all subschemas --- */

static struct json *convert(struct arena *a, const struct json *schema, convert_fn *fn,
                            const void *context, unsigned depth);

/* The value of one keyword, with the subschemas in it converted. */
static struct json *convert_keyword(struct arena *a, const struct json_member *m, convert_fn *fn,
                                    const void *context, unsigned depth)
{
    static const struct schema_dialect all = { SCHEMA_DRAFT_2020_12, VOCAB_ALL };
    enum schema_keyword keyword = schema_keyword_find(&all, m->key);
    enum schema_want want = keyword == KW_NONE ? WANT_ANY : schema_keywords[keyword].want;
    const struct json *v = m->value;
    bool list = (want == WANT_SCHEMA_LIST || want == WANT_SCHEMA_OR_LIST) && v->type == JSON_ARRAY;
    bool map =
        (want == WANT_SCHEMA_MAP || want == WANT_SCHEMA_OR_STRINGS_MAP) && v->type == JSON_OBJECT;
    if (list) {
        struct json *out = json_array(a);
        for (size_t i = 0; i < v->array.len; i++) {
            json_push(a, out, convert(a, v->array.items[i], fn, context, depth));
        }
        return out;
    }
    if (map) {
        struct json *out = json_object(a);
        for (size_t i = 0; i < v->object.len; i++) {
            json_set(a, out, v->object.members[i].key,
                     convert(a, v->object.members[i].value, fn, context, depth));
        }
        return out;
    }
    bool one = want == WANT_SCHEMA || want == WANT_SCHEMA_OR_LIST;
    return one ? convert(a, v, fn, context, depth) : json_copy(a, v);
}

static struct json *convert(struct arena *a, const struct json *schema, convert_fn *fn,
                            const void *context, unsigned depth)
{
    if (schema->type != JSON_OBJECT || depth == 0) {
        return json_copy(a, schema);
    }
    struct json *out = json_object(a);
    for (size_t i = 0; i < schema->object.len; i++) {
        const struct json_member *m = &schema->object.members[i];
        json_set(a, out, m->key, convert_keyword(a, m, fn, context, depth - 1));
    }
    return fn(a, out, context);
}

/* --- wrapping --- */

static bool is_definitions(struct str key)
{
    return str_eqc(key, "$defs") || str_eqc(key, "definitions");
}

static const char *wrap_key(const struct json *schema)
{
    const struct json *s = schema_deref(schema, schema);
    const struct json *type = json_get(s, "type");
    bool array = type != NULL ? type->type == JSON_STRING && str_eqc(type->string, "array")
                              : json_get(s, "items") != NULL;
    return array ? ITEMS_KEY : VALUE_KEY;
}

/* "#/items/0" becomes "#/properties/items/items/0"; definitions stay at the root. */
static struct json *move_reference(struct arena *a, struct json *schema, const void *context)
{
    struct str ref = json_str(json_get(schema, "$ref"), STR_EMPTY);
    bool moves = str_starts(ref, STR("#")) && (ref.len == 1 || ref.ptr[1] == '/') &&
                 !str_starts(ref, STR("#/$defs/")) && !str_starts(ref, STR("#/definitions/"));
    if (moves) {
        struct str rest = str_slice(ref, 1, ref.len);
        char *moved = arena_printf(a, "#/properties/%s%.*s", (const char *)context, STR_ARG(rest));
        json_setc(a, schema, "$ref", json_cstr(a, moved));
    }
    return schema;
}

struct json *schema_nest(struct arena *a, const struct json *schema, const char *key)
{
    struct json *inner = convert(a, schema, move_reference, key, CONVERT_DEPTH);
    struct json *outer = json_object(a);
    struct json *properties = json_object(a);
    struct json *required = json_array(a);
    json_push(a, required, json_cstr(a, key));
    json_setc(a, properties, key, inner);
    json_setc(a, outer, "type", json_cstr(a, "object"));
    json_setc(a, outer, "properties", properties);
    json_setc(a, outer, "required", required);
    json_setc(a, outer, "additionalProperties", json_boolean(a, false));
    for (size_t i = json_is(inner, JSON_OBJECT) ? inner->object.len : 0; i > 0; i--) {
        const struct json_member m = inner->object.members[i - 1];
        if (is_definitions(m.key) || str_eqc(m.key, "$schema") || str_eqc(m.key, "$id")) {
            (void)json_remove(inner, m.key);
            if (!str_eqc(m.key, "$id")) {
                json_set(a, outer, m.key, m.value);
            }
        }
    }
    return outer;
}

struct json *schema_wrap(struct arena *a, const struct json *schema)
{
    return schema_is_object(schema, schema) ? json_copy(a, schema)
                                            : schema_nest(a, schema, wrap_key(schema));
}

const struct json *schema_unwrap(const struct json *schema, const struct json *value)
{
    if (schema_is_object(schema, schema) || json_len(value) != 1) {
        return value;
    }
    const struct json *inner = json_get(value, wrap_key(schema));
    return inner != NULL ? inner : value;
}

/* --- null unions --- */

static bool is_null_schema(const struct json *s)
{
    return json_len(s) == 1 && str_eqc(json_str(json_get(s, "type"), STR_EMPTY), "null");
}

/* Of two alternatives, the one that is not just null; NULL when the list is not of that form. */
static const struct json *null_partner(const struct json *list)
{
    if (!json_is(list, JSON_ARRAY) || list->array.len != 2) {
        return NULL;
    }
    const struct json *first = list->array.items[0];
    const struct json *second = list->array.items[1];
    if (is_null_schema(first) == is_null_schema(second)) {
        return NULL;
    }
    return is_null_schema(first) ? second : first;
}

static bool is_annotation(struct str key)
{
    static const char *const words[] = { "title", "description", "default", "examples" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eqc(key, words[i])) {
            return true;
        }
    }
    return false;
}

/* Whether the members of `inner` can stand beside those of `outer`. */
static bool can_merge(const struct json *outer, const struct json *inner)
{
    if (json_get(inner, "type") == NULL || json_get(inner, "const") != NULL) {
        return false;
    }
    for (size_t i = 0; i < inner->object.len; i++) {
        struct str key = inner->object.members[i].key;
        if (json_find(outer, key) != NULL && !is_annotation(key)) {
            return false;
        }
    }
    return true;
}

static struct json *fold(struct arena *a, struct json *schema, const void *context)
{
    static const char *const unions[] = { "anyOf", "oneOf" };
    (void)context;
    for (size_t i = 0; i < ARRAY_LEN(unions); i++) {
        const struct json *partner = null_partner(json_get(schema, unions[i]));
        if (!json_is(partner, JSON_OBJECT) || !can_merge(schema, partner)) {
            continue;
        }
        (void)json_remove(schema, str_of(unions[i]));
        for (size_t k = 0; k < partner->object.len; k++) {
            const struct json_member *m = &partner->object.members[k];
            if (json_find(schema, m->key) == NULL) {
                json_set(a, schema, m->key, m->value);
            }
        }
        if (!schema_type_allows(schema, "null")) {
            (void)schema_add_null(a, schema);
        }
    }
    return schema;
}

struct json *schema_fold_null(struct arena *a, const struct json *schema)
{
    return convert(a, schema, fold, NULL, CONVERT_DEPTH);
}

/* --- what a strict validator of draft 07 takes --- */

/* Inline flags such as (?i) are PCRE's; JavaScript knows groups and assertions only. */
static bool is_portable_pattern(struct str pattern)
{
    for (size_t i = 0; i + 2 < pattern.len; i++) {
        bool special = pattern.ptr[i] == '(' && pattern.ptr[i + 1] == '?';
        if (special && strchr(":=!<", pattern.ptr[i + 2]) == NULL) {
            return false;
        }
    }
    return true;
}

static bool is_draft_07(const struct json_member *m)
{
    static const struct schema_dialect dialect = { SCHEMA_DRAFT_07, VOCAB_ALL };
    enum schema_keyword keyword = schema_keyword_find(&dialect, m->key);
    if (keyword == KW_PATTERN) {
        return is_portable_pattern(json_str(m->value, STR_EMPTY));
    }
    return is_annotation(m->key) ||
           (keyword != KW_NONE && keyword != KW_SCHEMA && keyword != KW_FORMAT);
}

static struct json *strip(struct arena *a, struct json *schema, const void *context)
{
    (void)a;
    (void)context;
    for (size_t i = schema->object.len; i > 0; i--) {
        const struct json_member *m = &schema->object.members[i - 1];
        if (!is_draft_07(m)) {
            (void)json_remove(schema, m->key);
        }
    }
    return schema;
}

struct json *schema_to_draft_07(struct arena *a, const struct json *schema)
{
    return convert(a, schema, strip, NULL, CONVERT_DEPTH);
}

/* --- alternatives of objects as one object --- */

/* Alternatives within alternatives; more are wrapped. */
enum { JOIN_DEPTH = 8, JOIN_BRANCHES = 64 };

struct joining {
    struct arena *arena;
    const struct json *root; /* of the document that the branch is in */
    struct json *properties, *required, *definitions;
    int branches;
    bool failed; /* something that one object cannot stand for */
};

static void join_property(struct joining *j, const struct json_member *m)
{
    struct json *old = json_find(j->properties, m->key);
    if (old == NULL) {
        json_set(j->arena, j->properties, m->key, json_copy(j->arena, m->value));
        return;
    }
    struct json *list = json_get(old, "anyOf");
    if (json_equal(old, m->value)) {
        return;
    }
    if (old->type != JSON_OBJECT || old->object.len != 1 || list == NULL) {
        list = json_array(j->arena);
        json_push(j->arena, list, old);
        struct json *both = json_object(j->arena);
        json_setc(j->arena, both, "anyOf", list);
        json_set(j->arena, j->properties, m->key, both);
    }
    json_push(j->arena, list, json_copy(j->arena, m->value));
}

static bool has_text(const struct json *list, struct str text)
{
    for (size_t i = 0; i < json_len(list); i++) {
        if (str_eq(json_str(json_item(list, i), STR_EMPTY), text)) {
            return true;
        }
    }
    return false;
}

/* What one branch requires and the others do not is not required of all. */
static void join_required(struct joining *j, const struct json *list)
{
    struct json *both = json_array(j->arena);
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->array.len; i++) {
        struct str key = json_str(json_item(list, i), STR_EMPTY);
        if (j->branches == 0 || has_text(j->required, key)) {
            json_push(j->arena, both, json_string(j->arena, key));
        }
    }
    j->required = both;
}

static void join_definitions(struct joining *j, const struct json *schema)
{
    static const char *const words[] = { "$defs", "definitions" };
    for (size_t n = 0; n < ARRAY_LEN(words); n++) {
        const struct json *from = json_get(schema, words[n]);
        struct json *to = json_get(j->definitions, words[n]);
        if (!json_is(from, JSON_OBJECT)) {
            continue;
        }
        if (to == NULL) {
            to = json_object(j->arena);
            json_setc(j->arena, j->definitions, words[n], to);
        }
        for (size_t i = 0; i < from->object.len; i++) {
            const struct json_member *m = &from->object.members[i];
            const struct json *old = json_find(to, m->key);
            j->failed = j->failed || (old != NULL && !json_equal(old, m->value));
            json_set(j->arena, to, m->key, json_copy(j->arena, m->value));
        }
    }
}

static void join_branch(struct joining *j, const struct json *schema, int depth)
{
    /* A branch with a name of its own is a document of its own. */
    const struct json *outer = j->root;
    j->root = json_get(schema, "$id") != NULL ? schema : j->root;
    join_definitions(j, schema);
    const struct json *s = schema_deref(j->root, schema);
    const struct json *any = json_get(s, "anyOf");
    const struct json *list = json_is(any, JSON_ARRAY) ? any : json_get(s, "oneOf");
    const struct json *properties = json_get(s, "properties");
    if (s == NULL || depth > JOIN_DEPTH || j->branches > JOIN_BRANCHES ||
        json_get(s, "allOf") != NULL || json_get(s, "if") != NULL) {
        j->failed = true;
    } else if (json_is(list, JSON_ARRAY) && properties == NULL) {
        for (size_t i = 0; i < list->array.len && !j->failed; i++) {
            join_branch(j, list->array.items[i], depth + 1);
        }
    } else if (list == NULL && schema_is_object(j->root, s)) {
        for (size_t i = 0; json_is(properties, JSON_OBJECT) && i < properties->object.len; i++) {
            join_property(j, &properties->object.members[i]);
        }
        join_required(j, json_get(s, "required"));
        j->branches++;
    } else {
        j->failed = true;
    }
    j->root = outer;
}

struct json *schema_join(struct arena *a, const struct json *schema)
{
    struct joining j = { .arena = a,
                         .root = schema,
                         .properties = json_object(a),
                         .required = json_array(a),
                         .definitions = json_object(a) };
    if (!schema_is_object(schema, schema)) {
        join_branch(&j, schema, 0);
    }
    if (j.failed || j.branches == 0) {
        return schema_wrap(a, schema);
    }
    struct json *out = json_object(a);
    json_setc(a, out, "type", json_cstr(a, "object"));
    json_setc(a, out, "properties", j.properties);
    json_setc(a, out, "required", j.required);
    for (size_t i = 0; i < j.definitions->object.len; i++) {
        const struct json_member *m = &j.definitions->object.members[i];
        json_set(a, out, m->key, m->value);
    }
    return out;
}
