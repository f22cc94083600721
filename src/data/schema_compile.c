/* SPDX-License-Identifier: MIT
 *
 * From subschemas to operations. Each subschema's keywords are put in a table by name, their shapes
 * are checked, and then the operations are listed in a fixed order: cheap and telling ones first,
 * unevaluated… last, because they depend on all others. Keywords that only make sense together
 * (properties and additionalProperties, items and prefixItems, if and then) become one operation.
 */
#include "data/schema_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The keywords of one subschema. */
struct parts {
    struct schema_loader *l;
    struct schema_node *n;
    const struct json *kw[KW_COUNT];
    struct schema_op ops[OP_COUNT + 2]; /* "dependencies" can add two that are there already */
    size_t len;
};

static struct schema_op *op_add(struct parts *p, enum schema_op_kind kind)
{
    struct schema_op *op = &p->ops[p->len++];
    *op = (struct schema_op) { .kind = kind };
    return op;
}

/* --- shapes --- */

static int bad_shape(struct parts *p, const struct schema_keyword_row *row, const char *wanted)
{
    return schema_bad(p->l->e, p->n, row->name, "must be %s", wanted);
}

static bool is_number(const struct json *v)
{
    return v->type == JSON_INT || v->type == JSON_REAL;
}

static bool is_strings(const struct json *v)
{
    if (v->type != JSON_ARRAY) {
        return false;
    }
    for (size_t i = 0; i < v->array.len; i++) {
        if (v->array.items[i]->type != JSON_STRING) {
            return false;
        }
    }
    return true;
}

static bool is_strings_map(const struct json *v, bool only_lists)
{
    if (v->type != JSON_OBJECT) {
        return false;
    }
    for (size_t i = 0; i < v->object.len; i++) {
        const struct json *m = v->object.members[i].value;
        if ((only_lists || m->type == JSON_ARRAY) && !is_strings(m)) {
            return false;
        }
    }
    return true;
}

static bool is_count(const struct json *v)
{
    return is_number(v) && schema_is_integer(v) && json_real(v, -1) >= 0;
}

/* NULL when the value has the shape, else what it must be. */
static const char *missing_shape(enum schema_want want, const struct json *v)
{
    switch (want) {
    case WANT_STRING:
        return v->type == JSON_STRING ? NULL : "a string";
    case WANT_BOOL:
        return v->type == JSON_BOOL ? NULL : "true or false";
    case WANT_NUMBER:
        return is_number(v) ? NULL : "a number";
    case WANT_POSITIVE:
        return is_number(v) && json_real(v, 0) > 0 ? NULL : "a number greater than 0";
    case WANT_LIMIT:
        return is_number(v) || v->type == JSON_BOOL ? NULL : "a number";
    case WANT_COUNT:
        return is_count(v) ? NULL : "an integer that is not negative";
    case WANT_LIST:
        return v->type == JSON_ARRAY ? NULL : "an array";
    case WANT_STRINGS:
        return is_strings(v) ? NULL : "an array of strings";
    case WANT_STRINGS_MAP:
        return is_strings_map(v, true) ? NULL : "an object of arrays of strings";
    case WANT_SCHEMA_OR_STRINGS_MAP:
        return is_strings_map(v, false) ? NULL : "an object of schemas or arrays of strings";
    case WANT_OBJECT:
    case WANT_SCHEMA_MAP:
        return v->type == JSON_OBJECT ? NULL : "an object";
    case WANT_SCHEMA_LIST:
        return v->type == JSON_ARRAY && v->array.len > 0 ? NULL : "an array of schemas, not empty";
    case WANT_ANY:
    case WANT_TYPE:
    case WANT_SCHEMA:
    case WANT_SCHEMA_OR_LIST:
        return NULL; /* checked where they are read */
    }
    return NULL;
}

static int gather(struct parts *p)
{
    for (size_t i = 0; i < p->n->json->object.len; i++) {
        const struct json_member *m = &p->n->json->object.members[i];
        enum schema_keyword keyword = schema_keyword_find(&p->n->resource->dialect, m->key);
        if (str_eqc(m->key, "$recursiveRef")) {
            return schema_bad(p->l->e, p->n, "$recursiveRef",
                              "is not supported; use $dynamicRef of 2020-12");
        }
        if (keyword == KW_NONE) {
            continue;
        }
        const struct schema_keyword_row *row = &schema_keywords[keyword];
        const char *missing = missing_shape(row->want, m->value);
        if (missing != NULL) {
            return bad_shape(p, row, missing);
        }
        p->kw[keyword] = m->value;
    }
    if (p->kw[KW_REF] != NULL && p->n->resource->dialect.draft == SCHEMA_DRAFT_07) {
        const struct json *ref = p->kw[KW_REF];
        memset(p->kw, 0, sizeof p->kw);
        p->kw[KW_REF] = ref; /* keywords beside $ref are ignored in this draft */
    }
    return 0;
}

/* --- assertions --- */

static struct str type_name_at(const void *context, size_t i)
{
    (void)context;
    return str_of(schema_type_names[i]);
}

static int add_type_name(struct parts *p, const struct json *name, unsigned *types)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (json_is(name, JSON_STRING) && str_eqc(name->string, schema_type_names[i])) {
            *types |= 1u << i;
            return 0;
        }
    }
    if (!json_is(name, JSON_STRING)) {
        return schema_bad(p->l->e, p->n, "type", "must be the name of a type, not %s",
                          json_type_name(name->type));
    }
    struct str got = name->string;
    struct schema_names known = { .at = type_name_at, .count = TYPE_COUNT };
    return schema_bad(p->l->e, p->n, "type", "unknown type '%.*s'%s", STR_ARG(got),
                      schema_suggest(p->l->scratch, got, &known));
}

static int compile_type(struct parts *p)
{
    const struct json *v = p->kw[KW_TYPE];
    if (v == NULL) {
        return 0;
    }
    struct schema_op *op = op_add(p, OP_TYPE);
    if (v->type != JSON_ARRAY) {
        return add_type_name(p, v, &op->types);
    }
    int rc = v->array.len > 0 ? 0 : schema_bad(p->l->e, p->n, "type", "must not be empty");
    for (size_t i = 0; i < v->array.len && rc == 0; i++) {
        rc = add_type_name(p, v->array.items[i], &op->types);
    }
    return rc;
}

static void compile_values(struct parts *p)
{
    struct json *const *constant = (struct json *const *)&p->kw[KW_CONST];
    if (p->kw[KW_ENUM] != NULL) {
        const struct json *list = p->kw[KW_ENUM];
        op_add(p, OP_ENUM)->values =
            schema_values_new(p->l->arena, list->array.items, list->array.len);
    }
    if (*constant != NULL) {
        struct json **kept = ARENA_NEW(p->l->arena, struct json *);
        *kept = *constant;
        op_add(p, OP_CONST)->values = schema_values_new(p->l->arena, kept, 1);
    }
}

/* minimum and exclusiveMinimum, where the latter may be the boolean of older drafts. */
static void compile_limit(struct parts *p, enum schema_keyword plain, enum schema_op_kind plain_op,
                          enum schema_keyword exclusive, enum schema_op_kind exclusive_op)
{
    const struct json *limit = p->kw[plain];
    const struct json *strict = p->kw[exclusive];
    if (limit != NULL) {
        op_add(p, json_bool(strict, false) ? exclusive_op : plain_op)->value = limit;
    }
    if (strict != NULL && is_number(strict)) {
        op_add(p, exclusive_op)->value = strict;
    }
}

static void compile_numbers(struct parts *p)
{
    if (p->kw[KW_MULTIPLE_OF] != NULL) {
        op_add(p, OP_MULTIPLE_OF)->value = p->kw[KW_MULTIPLE_OF];
    }
    compile_limit(p, KW_MINIMUM, OP_MINIMUM, KW_EXCLUSIVE_MINIMUM, OP_EXCLUSIVE_MINIMUM);
    compile_limit(p, KW_MAXIMUM, OP_MAXIMUM, KW_EXCLUSIVE_MAXIMUM, OP_EXCLUSIVE_MAXIMUM);
}

static size_t count_of(const struct json *v, size_t otherwise)
{
    if (v == NULL) {
        return otherwise;
    }
    return json_real(v, 0) >= 0x1p63 ? SIZE_MAX : (size_t)json_int(v, 0);
}

static void compile_count(struct parts *p, enum schema_keyword keyword, enum schema_op_kind kind)
{
    if (p->kw[keyword] != NULL) {
        op_add(p, kind)->count = count_of(p->kw[keyword], 0);
    }
}

static int compile_regex(struct parts *p, const char *keyword, struct str source,
                         struct schema_pattern *ret)
{
    struct err why = { 0 };
    if (regex_compile(source, 0, &ret->regex, &why) != 0) {
        return schema_bad(p->l->e, p->n, keyword, "%s", why.msg);
    }
    struct schema_regexes *entry = ARENA_NEW(p->l->arena, struct schema_regexes);
    *entry = (struct schema_regexes) { ret->regex, p->l->schema->regexes };
    p->l->schema->regexes = entry;
    ret->source = source;
    return 0;
}

static int compile_strings(struct parts *p)
{
    compile_count(p, KW_MIN_LENGTH, OP_MIN_LENGTH);
    compile_count(p, KW_MAX_LENGTH, OP_MAX_LENGTH);
    if (p->kw[KW_PATTERN] == NULL) {
        return 0;
    }
    struct schema_pattern *pattern = ARENA_NEW(p->l->arena, struct schema_pattern);
    op_add(p, OP_PATTERN)->pattern = pattern;
    return compile_regex(p, "pattern", p->kw[KW_PATTERN]->string, pattern);
}

/* --- containers --- */

static struct schema_node *sub(const struct parts *p, const struct json *tree)
{
    return tree == NULL ? NULL : schema_node_of(p->l, tree);
}

static struct schema_nodes sub_list(const struct parts *p, const struct json *list)
{
    struct schema_nodes nodes = { 0 };
    if (list != NULL) {
        nodes.len = list->array.len;
        nodes.items = arena_array(p->l->arena, nodes.len + 1, sizeof(struct schema_node *));
        for (size_t i = 0; i < nodes.len; i++) {
            nodes.items[i] = sub(p, list->array.items[i]);
        }
    }
    return nodes;
}

static void compile_items(struct parts *p)
{
    const struct json *prefix = p->kw[KW_PREFIX_ITEMS];
    const struct json *items = p->kw[KW_ITEMS];
    struct schema_items list = { .prefix_keyword = KW_PREFIX_ITEMS, .rest_keyword = KW_ITEMS };
    if (prefix == NULL && json_is(items, JSON_ARRAY)) {
        prefix = items;
        items = p->kw[KW_ADDITIONAL_ITEMS];
        list.prefix_keyword = KW_ITEMS;
        list.rest_keyword = KW_ADDITIONAL_ITEMS;
    }
    list.prefix = sub_list(p, prefix);
    list.rest = json_is(items, JSON_ARRAY) ? NULL : sub(p, items);
    if (list.prefix.len > 0 || list.rest != NULL) {
        struct schema_items *kept = ARENA_NEW(p->l->arena, struct schema_items);
        *kept = list;
        op_add(p, OP_ITEMS)->items = kept;
    }
}

static void compile_arrays(struct parts *p)
{
    compile_count(p, KW_MIN_ITEMS, OP_MIN_ITEMS);
    compile_count(p, KW_MAX_ITEMS, OP_MAX_ITEMS);
    compile_items(p);
    if (p->kw[KW_CONTAINS] != NULL) {
        struct schema_contains *c = ARENA_NEW(p->l->arena, struct schema_contains);
        c->node = sub(p, p->kw[KW_CONTAINS]);
        c->min = count_of(p->kw[KW_MIN_CONTAINS], 1);
        c->max = count_of(p->kw[KW_MAX_CONTAINS], SIZE_MAX);
        op_add(p, OP_CONTAINS)->contains = c;
    }
    if (json_bool(p->kw[KW_UNIQUE_ITEMS], false)) {
        (void)op_add(p, OP_UNIQUE_ITEMS);
    }
}

static struct schema_property *property_at(struct parts *p, struct schema_object *o,
                                           struct str name)
{
    struct schema_property *known = schema_map_find(&o->by_name, name);
    if (known != NULL) {
        return known;
    }
    struct schema_property *fresh = &o->properties[o->len++];
    fresh->name = name;
    schema_map_set(p->l->arena, &o->by_name, name, fresh);
    return fresh;
}

static int compile_patterns(struct parts *p, struct schema_object *o)
{
    const struct json *map = p->kw[KW_PATTERN_PROPERTIES];
    o->pattern_len = json_len(map);
    o->patterns = arena_array(p->l->arena, o->pattern_len + 1, sizeof *o->patterns);
    for (size_t i = 0; i < o->pattern_len; i++) {
        const struct json_member *m = &map->object.members[i];
        o->patterns[i].node = sub(p, m->value);
        int rc = compile_regex(p, "patternProperties", m->key, &o->patterns[i]);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int compile_object(struct parts *p)
{
    const struct json *properties = p->kw[KW_PROPERTIES];
    const struct json *required = p->kw[KW_REQUIRED];
    if (properties == NULL && required == NULL && p->kw[KW_PATTERN_PROPERTIES] == NULL &&
        p->kw[KW_ADDITIONAL_PROPERTIES] == NULL) {
        return 0;
    }
    struct schema_object *o = ARENA_NEW(p->l->arena, struct schema_object);
    size_t most = json_len(properties) + json_len(required);
    o->properties = arena_array(p->l->arena, most + 1, sizeof *o->properties);
    for (size_t i = 0; i < json_len(properties); i++) {
        const struct json_member *m = &properties->object.members[i];
        property_at(p, o, m->key)->node = sub(p, m->value);
    }
    for (size_t i = 0; i < json_len(required); i++) {
        struct schema_property *needed = property_at(p, o, required->array.items[i]->string);
        o->required += needed->required ? 0 : 1;
        needed->required = true;
    }
    o->additional = sub(p, p->kw[KW_ADDITIONAL_PROPERTIES]);
    op_add(p, OP_OBJECT)->object = o;
    return compile_patterns(p, o);
}

/* The members of dependentRequired, dependentSchemas or dependencies that are lists (or not). */
static void compile_dependencies(struct parts *p, enum schema_keyword keyword, bool lists)
{
    const struct json *map = p->kw[keyword];
    struct schema_dependencies *d = ARENA_NEW(p->l->arena, struct schema_dependencies);
    d->items = arena_array(p->l->arena, json_len(map) + 1, sizeof *d->items);
    d->keyword = keyword;
    for (size_t i = 0; i < json_len(map); i++) {
        const struct json_member *m = &map->object.members[i];
        if ((m->value->type == JSON_ARRAY) == lists) {
            d->items[d->len++] = (struct schema_dependency) {
                .name = m->key,
                .needs = m->value,
                .node = lists ? NULL : sub(p, m->value),
            };
        }
    }
    if (d->len > 0) {
        op_add(p, lists ? OP_DEPENDENT_REQUIRED : OP_DEPENDENT_SCHEMAS)->dependencies = d;
    }
}

static int compile_objects(struct parts *p)
{
    compile_count(p, KW_MIN_PROPERTIES, OP_MIN_PROPERTIES);
    compile_count(p, KW_MAX_PROPERTIES, OP_MAX_PROPERTIES);
    int rc = compile_object(p);
    if (p->kw[KW_PROPERTY_NAMES] != NULL) {
        op_add(p, OP_PROPERTY_NAMES)->node = sub(p, p->kw[KW_PROPERTY_NAMES]);
    }
    compile_dependencies(p, KW_DEPENDENT_REQUIRED, true);
    compile_dependencies(p, KW_DEPENDENCIES, true);
    compile_dependencies(p, KW_DEPENDENT_SCHEMAS, false);
    compile_dependencies(p, KW_DEPENDENCIES, false);
    return rc;
}

/* --- references and combinations --- */

static int compile_dynamic(struct parts *p)
{
    struct schema_dynamic *d = ARENA_NEW(p->l->arena, struct schema_dynamic);
    int rc = schema_resolve(p->l, p->n, "$dynamicRef", p->kw[KW_DYNAMIC_REF]->string, &d->node,
                            &d->anchor);
    if (rc != 0) {
        return rc;
    }
    d->moves = d->anchor.len > 0 &&
               schema_map_find(&d->node->resource->dynamic_anchors, d->anchor) == d->node;
    op_add(p, OP_DYNAMIC_REF)->dynamic = d;
    return 0;
}

static int compile_references(struct parts *p)
{
    int rc = 0;
    struct str anchor;
    if (p->kw[KW_REF] != NULL) {
        rc = schema_resolve(p->l, p->n, "$ref", p->kw[KW_REF]->string, &op_add(p, OP_REF)->node,
                            &anchor);
    }
    if (rc == 0 && p->kw[KW_DYNAMIC_REF] != NULL) {
        rc = compile_dynamic(p);
    }
    return rc;
}

static void compile_combinations(struct parts *p)
{
    static const struct {
        enum schema_keyword keyword;
        enum schema_op_kind kind;
    } lists[] = { { KW_ALL_OF, OP_ALL_OF }, { KW_ANY_OF, OP_ANY_OF }, { KW_ONE_OF, OP_ONE_OF } };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (p->kw[lists[i].keyword] != NULL) {
            op_add(p, lists[i].kind)->nodes = sub_list(p, p->kw[lists[i].keyword]);
        }
    }
    if (p->kw[KW_NOT] != NULL) {
        op_add(p, OP_NOT)->node = sub(p, p->kw[KW_NOT]);
    }
    if (p->kw[KW_IF] != NULL) {
        struct schema_branch *b = ARENA_NEW(p->l->arena, struct schema_branch);
        b->condition = sub(p, p->kw[KW_IF]);
        b->yes = sub(p, p->kw[KW_THEN]);
        b->no = sub(p, p->kw[KW_ELSE]);
        op_add(p, OP_IF)->branch = b;
    }
}

static void compile_unevaluated(struct parts *p)
{
    if (p->kw[KW_UNEVALUATED_ITEMS] != NULL) {
        op_add(p, OP_UNEVALUATED_ITEMS)->node = sub(p, p->kw[KW_UNEVALUATED_ITEMS]);
        p->n->tracks = true;
    }
    if (p->kw[KW_UNEVALUATED_PROPERTIES] != NULL) {
        op_add(p, OP_UNEVALUATED_PROPERTIES)->node = sub(p, p->kw[KW_UNEVALUATED_PROPERTIES]);
        p->n->tracks = true;
    }
}

int schema_compile_node(struct schema_loader *l, struct schema_node *n)
{
    if (n->json->type == JSON_BOOL) {
        n->never = !n->json->boolean;
        return 0;
    }
    struct parts p = { .l = l, .n = n };
    int rc = gather(&p);
    if (rc == 0) {
        rc = compile_type(&p);
    }
    if (rc == 0) {
        compile_values(&p);
        compile_numbers(&p);
        rc = compile_strings(&p);
    }
    if (rc == 0) {
        compile_arrays(&p);
        rc = compile_objects(&p);
    }
    if (rc == 0) {
        rc = compile_references(&p);
    }
    if (rc != 0) {
        return rc;
    }
    compile_combinations(&p);
    compile_unevaluated(&p);
    n->op_count = p.len;
    n->ops = arena_array(l->arena, p.len + 1, sizeof *n->ops);
    memcpy(n->ops, p.ops, p.len * sizeof *n->ops);
    return 0;
}

/* --- the whole --- */

int schema_bad(struct err *e, const struct schema_node *n, const char *keyword, const char *fmt,
               ...)
{
    char why[360];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    CLEANUP(arena) struct arena *a = arena_new();
    struct str path = schema_node_path(a, n, keyword);
    const struct json *v = keyword != NULL ? json_get(n->json, keyword) : NULL;
    v = v != NULL && v->line != 0 ? v : n->json;
    char line[32] = "";
    if (v->line != 0) {
        (void)snprintf(line, sizeof line, " (line %u)", (unsigned)v->line);
    }
    return ERR(e, ERR_CONFIG, "schema at %s%.*s%s: %s", path.len == 0 ? "its root" : "",
               (int)(path.len < 200 ? path.len : 200), path.ptr, line, why);
}

static int compile_all(struct schema_loader *l, const struct json *root)
{
    struct str uri = l->options->uri.ptr != NULL ? l->options->uri : STR_EMPTY;
    struct str base = schema_uri_resolve(l->scratch, STR_EMPTY, uri);
    int rc = schema_load(l, base, root, &l->schema->root);
    /* references add nodes at the end while this goes on */
    for (size_t i = 0; i < l->len && rc == 0; i++) {
        rc = schema_compile_node(l, l->all[i]);
    }
    return rc != 0 ? rc : schema_refuse_cycles(l);
}

int schema_compile(const struct json *root, const struct schema_options *options,
                   struct schema **ret, struct err *e)
{
    static const struct schema_options none = { 0 };
    struct schema *s = xcalloc(1, sizeof *s);
    s->arena = arena_new();
    CLEANUP(arena) struct arena *scratch = arena_new();
    struct schema_loader l = {
        .schema = s,
        .options = options != NULL ? options : &none,
        .arena = s->arena,
        .scratch = scratch,
        .e = e,
    };
    int rc = root != NULL ? compile_all(&l, root) : ERR(e, ERR_CONFIG, "schema: there is none");
    if (rc != 0) {
        schema_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

struct schema *schema_free(struct schema *s)
{
    if (s != NULL) {
        for (struct schema_regexes *r = s->regexes; r != NULL; r = r->next) {
            regex_free(r->regex);
        }
        arena_free(s->arena);
        free(s);
    }
    return NULL;
}
