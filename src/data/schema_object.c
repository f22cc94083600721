/* SPDX-License-Identifier: MIT
 *
 * The keywords of objects. The members of the value are gone through once, each looked up by hash
 * among the properties of the schema, so that neither a wide value nor a wide schema costs its
 * square.
 */
#include "data/schema_priv.h"

bool schema_op_property_count(const struct schema_context *c)
{
    size_t len = c->at->value->object.len;
    bool is_max = c->op->kind == OP_MAX_PROPERTIES;
    bool ok = is_max ? len <= c->op->count : len >= c->op->count;
    if (ok || !schema_collects(c->run)) {
        return ok;
    }
    return schema_fail(c, is_max ? KW_MAX_PROPERTIES : KW_MIN_PROPERTIES,
                       "the object has %zu %s, %s %zu %s", len,
                       len == 1 ? "property" : "properties", is_max ? "at most" : "at least",
                       c->op->count, is_max ? "are allowed" : "are needed");
}

static bool apply_member(const struct schema_context *c, const struct schema_node *n,
                         const struct json_member *m)
{
    struct schema_place at = { .up = c->at, .value = m->value, .key = m->key };
    return schema_apply(c->run, n, &at, NULL);
}

static struct str property_name_at(const void *context, size_t i)
{
    const struct schema_context *c = context;
    return c->op->object->properties[i].name;
}

static bool property_is_there(const void *context, struct str name)
{
    const struct schema_context *c = context;
    return json_find(c->at->value, name) != NULL;
}

static bool fail_unknown(const struct schema_context *c, struct str name)
{
    if (!schema_collects(c->run)) {
        return false;
    }
    struct schema_names known = { property_name_at, property_is_there, c, c->op->object->len };
    return schema_fail(c, KW_ADDITIONAL_PROPERTIES, "unknown property '%s'%s",
                       schema_cut(c->run->arena, name),
                       schema_suggest(c->run->arena, name, &known));
}

/* The patterns that a name matches; *ret_any tells whether there were any. */
static bool apply_patterns(const struct schema_context *c, const struct json_member *m,
                           bool *ret_any)
{
    const struct schema_object *o = c->op->object;
    bool ok = true;
    for (size_t i = 0; i < o->pattern_len; i++) {
        int rc = regex_match_within(o->patterns[i].regex, m->key, &c->run->steps, c->run->e);
        if (rc < 0) {
            c->run->rc = rc;
            return false;
        }
        if (rc == 1) {
            *ret_any = true;
            ok = apply_member(c, o->patterns[i].node, m) && ok;
        }
    }
    return ok;
}

static bool apply_to_member(const struct schema_context *c, size_t i, size_t *required)
{
    const struct schema_object *o = c->op->object;
    const struct json_member *m = &c->at->value->object.members[i];
    const struct schema_property *p = schema_map_find(&o->by_name, m->key);
    bool known = p != NULL && p->node != NULL;
    bool ok = true;
    *required += p != NULL && p->required ? 1 : 0;
    if (known) {
        ok = apply_member(c, p->node, m);
    }
    ok = apply_patterns(c, m, &known) && ok;
    if (!known && o->additional != NULL) {
        known = true;
        ok = o->additional->never ? fail_unknown(c, m->key) : apply_member(c, o->additional, m);
    }
    if (known) {
        schema_mark(c->run, c->seen, i);
    }
    return ok;
}

static bool fail_missing(const struct schema_context *c, size_t missing)
{
    const struct schema_object *o = c->op->object;
    for (size_t i = 0; missing > 0 && schema_collects(c->run); i++) {
        const struct schema_property *p = &o->properties[i];
        (void)schema_spend(c->run, 1 + c->at->value->object.len / 8);
        if (p->required && json_find(c->at->value, p->name) == NULL) {
            (void)schema_fail(c, KW_REQUIRED, "missing property '%.*s'", STR_ARG(p->name));
            missing--;
        }
    }
    return false;
}

bool schema_op_object(const struct schema_context *c)
{
    const struct schema_object *o = c->op->object;
    size_t required = 0;
    bool ok = true;
    if (c->at->value->object.len < o->required && !schema_collects(c->run)) {
        return false;
    }
    for (size_t i = 0; i < c->at->value->object.len; i++) {
        ok = apply_to_member(c, i, &required) && ok;
        if (c->run->rc != 0 || (!ok && !schema_collects(c->run))) {
            return false;
        }
    }
    return required == o->required ? ok : fail_missing(c, o->required - required);
}

bool schema_op_property_names(const struct schema_context *c)
{
    bool ok = true;
    for (size_t i = 0; i < c->at->value->object.len && (ok || schema_collects(c->run)); i++) {
        struct str key = c->at->value->object.members[i].key;
        struct json name = { .type = JSON_STRING, .string = key };
        struct schema_place at = { .up = c->at, .value = &name, .key = key, .is_name = true };
        ok = schema_apply(c->run, c->op->node, &at, NULL) && ok;
    }
    return ok;
}

bool schema_op_dependent_required(const struct schema_context *c)
{
    const struct schema_dependencies *d = c->op->dependencies;
    bool ok = true;
    for (size_t i = 0; i < d->len && (ok || schema_collects(c->run)); i++) {
        const struct schema_dependency *one = &d->items[i];
        if (!schema_spend(c->run, 1 + c->at->value->object.len / 8)) {
            return false;
        }
        if (json_find(c->at->value, one->name) == NULL) {
            continue;
        }
        for (size_t k = 0; k < one->needs->array.len; k++) {
            struct str needed = one->needs->array.items[k]->string;
            if (!schema_spend(c->run, 1 + c->at->value->object.len / 8)) {
                return false;
            }
            if (json_find(c->at->value, needed) == NULL) {
                ok = schema_fail(c, d->keyword, "missing property '%.*s', needed beside '%.*s'",
                                 STR_ARG(needed), STR_ARG(one->name));
            }
        }
    }
    return ok;
}

bool schema_op_dependent_schemas(const struct schema_context *c)
{
    const struct schema_dependencies *d = c->op->dependencies;
    bool ok = true;
    for (size_t i = 0; i < d->len && (ok || schema_collects(c->run)); i++) {
        if (!schema_spend(c->run, 1 + c->at->value->object.len / 8)) {
            return false;
        }
        if (json_find(c->at->value, d->items[i].name) != NULL) {
            ok = schema_apply(c->run, d->items[i].node, c->at, c->seen) && ok;
        }
    }
    return ok;
}

static bool fail_unevaluated(const struct schema_context *c, struct str name)
{
    return schema_collects(c->run) &&
           schema_fail(c, KW_UNEVALUATED_PROPERTIES, "unknown property '%s'",
                       schema_cut(c->run->arena, name));
}

bool schema_op_unevaluated_properties(const struct schema_context *c)
{
    bool ok = true;
    for (size_t i = 0; i < c->at->value->object.len && (ok || schema_collects(c->run)); i++) {
        const struct json_member *m = &c->at->value->object.members[i];
        if (schema_marked(c->run, c->seen, i)) {
            continue;
        }
        if (c->op->node->never) {
            ok = fail_unevaluated(c, m->key);
        } else {
            ok = apply_member(c, c->op->node, m) && ok;
        }
    }
    schema_mark_all(c->run, c->seen, c->at->value->object.len);
    return ok;
}
