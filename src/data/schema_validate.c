/* SPDX-License-Identifier: MIT
 *
 * Applying nodes to values. A value is first judged without collecting anything, which is the fast
 * way and all that a valid value needs; only an invalid one is gone through again for its errors.
 *
 * Recursion follows the nesting of the value times the references in the schema; run->depth bounds
 * it, run->steps bounds everything.
 */
#include "data/schema_priv.h"

#include <stdlib.h>

enum { DEFAULT_ERRORS = 20, MOST_ERRORS = 1000, DEFAULT_DEPTH = 1000 };
enum { DEFAULT_STEPS = 50 * 1000 * 1000 };

static schema_op_fn op_ref, op_dynamic_ref, op_all_of, op_any_of, op_one_of, op_not, op_if;

#define ON(type)   (1u << (type))
#define ON_ANY     (~0u)
#define ON_NUMBERS (ON(JSON_INT) | ON(JSON_REAL))

/* Which function, and for which types of values; others pass. */
static const struct {
    schema_op_fn *fn;
    unsigned applies;
} table[OP_COUNT] = {
    [OP_TYPE] = { schema_op_type, ON_ANY },
    [OP_ENUM] = { schema_op_enum, ON_ANY },
    [OP_CONST] = { schema_op_const, ON_ANY },
    [OP_MULTIPLE_OF] = { schema_op_multiple_of, ON_NUMBERS },
    [OP_MINIMUM] = { schema_op_limit, ON_NUMBERS },
    [OP_MAXIMUM] = { schema_op_limit, ON_NUMBERS },
    [OP_EXCLUSIVE_MINIMUM] = { schema_op_limit, ON_NUMBERS },
    [OP_EXCLUSIVE_MAXIMUM] = { schema_op_limit, ON_NUMBERS },
    [OP_MIN_LENGTH] = { schema_op_length, ON(JSON_STRING) },
    [OP_MAX_LENGTH] = { schema_op_length, ON(JSON_STRING) },
    [OP_PATTERN] = { schema_op_pattern, ON(JSON_STRING) },
    [OP_MIN_ITEMS] = { schema_op_item_count, ON(JSON_ARRAY) },
    [OP_MAX_ITEMS] = { schema_op_item_count, ON(JSON_ARRAY) },
    [OP_UNIQUE_ITEMS] = { schema_op_unique_items, ON(JSON_ARRAY) },
    [OP_ITEMS] = { schema_op_items, ON(JSON_ARRAY) },
    [OP_CONTAINS] = { schema_op_contains, ON(JSON_ARRAY) },
    [OP_MIN_PROPERTIES] = { schema_op_property_count, ON(JSON_OBJECT) },
    [OP_MAX_PROPERTIES] = { schema_op_property_count, ON(JSON_OBJECT) },
    [OP_OBJECT] = { schema_op_object, ON(JSON_OBJECT) },
    [OP_PROPERTY_NAMES] = { schema_op_property_names, ON(JSON_OBJECT) },
    [OP_DEPENDENT_REQUIRED] = { schema_op_dependent_required, ON(JSON_OBJECT) },
    [OP_DEPENDENT_SCHEMAS] = { schema_op_dependent_schemas, ON(JSON_OBJECT) },
    [OP_REF] = { op_ref, ON_ANY },
    [OP_DYNAMIC_REF] = { op_dynamic_ref, ON_ANY },
    [OP_ALL_OF] = { op_all_of, ON_ANY },
    [OP_ANY_OF] = { op_any_of, ON_ANY },
    [OP_ONE_OF] = { op_one_of, ON_ANY },
    [OP_NOT] = { op_not, ON_ANY },
    [OP_IF] = { op_if, ON_ANY },
    [OP_UNEVALUATED_ITEMS] = { schema_op_unevaluated_items, ON(JSON_ARRAY) },
    [OP_UNEVALUATED_PROPERTIES] = { schema_op_unevaluated_properties, ON(JSON_OBJECT) },
};

bool schema_spend(struct schema_run *r, uint64_t n)
{
    if (r->rc != 0) {
        return false;
    }
    if (r->steps < n) {
        r->rc = ERR(r->e, ERR_LIMIT, "validation takes too many steps");
        return false;
    }
    r->steps -= n;
    return true;
}

/* --- what has been evaluated --- */

static struct schema_seen seen_push(struct schema_run *r, const struct json *v)
{
    bool container = v->type == JSON_ARRAY || v->type == JSON_OBJECT;
    struct schema_seen seen = { r->bits_len, container ? (json_len(v) + 63) / 64 : 0 };
    if (r->bits_cap - r->bits_len < seen.words) {
        r->bits_cap = 2 * (r->bits_len + seen.words);
        r->bits = xrealloc(r->bits, r->bits_cap * sizeof *r->bits);
    }
    if (seen.words > 0) {
        memset(r->bits + seen.offset, 0, seen.words * sizeof *r->bits);
    }
    r->bits_len += seen.words;
    (void)schema_spend(r, seen.words);
    return seen;
}

/* Forgets the account, after adding it to another one if there is one. */
static void seen_pop(struct schema_run *r, const struct schema_seen *seen,
                     const struct schema_seen *into)
{
    for (size_t i = 0; into != NULL && i < seen->words; i++) {
        r->bits[into->offset + i] |= r->bits[seen->offset + i];
    }
    r->bits_len = seen->offset;
}

void schema_mark(struct schema_run *r, const struct schema_seen *seen, size_t i)
{
    if (seen != NULL) {
        r->bits[seen->offset + i / 64] |= (uint64_t)1 << i % 64;
    }
}

void schema_mark_all(struct schema_run *r, const struct schema_seen *seen, size_t n)
{
    for (size_t i = 0; seen != NULL && i < n; i++) {
        schema_mark(r, seen, i);
    }
}

bool schema_marked(const struct schema_run *r, const struct schema_seen *seen, size_t i)
{
    return (r->bits[seen->offset + i / 64] >> i % 64 & 1) != 0;
}

/* --- nodes --- */

static bool apply_ops(struct schema_run *r, const struct schema_node *n,
                      const struct schema_place *at, struct schema_seen *seen)
{
    bool ok = true;
    unsigned bit = 1u << at->value->type;
    for (size_t i = 0; i < n->op_count && r->rc == 0; i++) {
        const struct schema_op *op = &n->ops[i];
        bool last_word = op->kind == OP_UNEVALUATED_ITEMS || op->kind == OP_UNEVALUATED_PROPERTIES;
        /* after a failure too little is marked, and all would look unevaluated */
        if ((table[op->kind].applies & bit) == 0 || (last_word && !ok)) {
            continue;
        }
        struct schema_context c = { r, n, op, at, seen };
        if (!table[op->kind].fn(&c)) {
            ok = false;
            if (!schema_collects(r)) {
                break;
            }
        }
    }
    return ok;
}

static bool apply_tracking(struct schema_run *r, const struct schema_node *n,
                           const struct schema_place *at, struct schema_seen *outer)
{
    struct schema_seen own = seen_push(r, at->value);
    bool ok = apply_ops(r, n, at, &own);
    seen_pop(r, &own, ok ? outer : NULL);
    return ok;
}

bool schema_apply(struct schema_run *r, const struct schema_node *n, const struct schema_place *at,
                  struct schema_seen *seen)
{
    if (!schema_spend(r, 1 + n->op_count)) {
        return false;
    }
    if (n->never) {
        return schema_fail_never(r, n, at);
    }
    if (r->depth == 0) {
        r->rc = ERR(r->e, ERR_LIMIT,
                    "validation goes too deep, the schema or the value is nested "
                    "too deeply");
        return false;
    }
    struct schema_scope scope = { r->scope, n->resource };
    bool enters = r->scope == NULL || r->scope->resource != n->resource;
    if (enters) {
        r->scope = &scope;
    }
    r->depth--;
    bool ok = n->tracks ? apply_tracking(r, n, at, seen) : apply_ops(r, n, at, seen);
    r->depth++;
    if (enters) {
        r->scope = scope.up;
    }
    return ok && r->rc == 0;
}

bool schema_try(struct schema_run *r, const struct schema_node *n, const struct schema_place *at,
                struct schema_seen *seen)
{
    struct schema_sink *sink = r->sink;
    r->sink = NULL;
    bool ok;
    if (seen == NULL) {
        ok = schema_apply(r, n, at, NULL);
    } else {
        /* what a failing schema has marked must not count */
        struct schema_seen own = seen_push(r, at->value);
        ok = schema_apply(r, n, at, &own);
        seen_pop(r, &own, ok ? seen : NULL);
    }
    r->sink = sink;
    return ok;
}

/* --- references and combinations --- */

static bool op_ref(const struct schema_context *c)
{
    return schema_apply(c->run, c->op->node, c->at, c->seen);
}

static bool op_dynamic_ref(const struct schema_context *c)
{
    const struct schema_dynamic *d = c->op->dynamic;
    const struct schema_node *target = d->node;
    for (const struct schema_scope *s = c->run->scope; s != NULL && d->moves; s = s->up) {
        const struct schema_node *outer = schema_map_find(&s->resource->dynamic_anchors, d->anchor);
        target = outer != NULL ? outer : target;
        (void)schema_spend(c->run, 1);
    }
    return schema_apply(c->run, target, c->at, c->seen);
}

static bool op_all_of(const struct schema_context *c)
{
    bool ok = true;
    for (size_t i = 0; i < c->op->nodes.len; i++) {
        ok = schema_apply(c->run, c->op->nodes.items[i], c->at, c->seen) && ok;
        if (!ok && !schema_collects(c->run)) {
            return false;
        }
    }
    return ok;
}

static bool op_any_of(const struct schema_context *c)
{
    bool ok = false;
    /* when evaluated parts are counted, all branches that fit contribute */
    for (size_t i = 0; i < c->op->nodes.len && (!ok || c->seen != NULL); i++) {
        ok = schema_try(c->run, c->op->nodes.items[i], c->at, c->seen) || ok;
    }
    return ok || schema_fail_branches(c, KW_ANY_OF);
}

static bool op_one_of(const struct schema_context *c)
{
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < c->op->nodes.len; i++) {
        if (!schema_try(c->run, c->op->nodes.items[i], c->at, c->seen)) {
            continue;
        }
        if (first != SIZE_MAX) {
            return schema_fail(c, KW_ONE_OF,
                               "fits alternatives %zu and %zu of oneOf, but must fit exactly one",
                               first + 1, i + 1);
        }
        first = i;
    }
    return first != SIZE_MAX || schema_fail_branches(c, KW_ONE_OF);
}

static bool op_not(const struct schema_context *c)
{
    if (!schema_try(c->run, c->op->node, c->at, NULL)) {
        return c->run->rc == 0;
    }
    return schema_fail(c, KW_NOT, "%s fits the schema that it must not fit",
                       schema_collects(c->run) ? schema_describe(c->run->arena, c->at->value) : "");
}

static bool op_if(const struct schema_context *c)
{
    const struct schema_branch *b = c->op->branch;
    bool yes = schema_try(c->run, b->condition, c->at, c->seen);
    const struct schema_node *next = yes ? b->yes : b->no;
    return c->run->rc == 0 && (next == NULL || schema_apply(c->run, next, c->at, c->seen));
}

/* --- the whole --- */

static struct schema_run run_new(const struct schema_limits *limits, struct err *e)
{
    struct schema_limits l = limits != NULL ? *limits : (struct schema_limits) { 0 };
    return (struct schema_run) {
        .steps = l.max_steps != 0 ? l.max_steps : DEFAULT_STEPS,
        .depth = l.max_depth != 0 ? l.max_depth : DEFAULT_DEPTH,
        .e = e,
    };
}

int schema_check(struct schema *s, const struct json *value, const struct schema_limits *limits,
                 struct err *e)
{
    struct schema_run r = run_new(limits, e);
    struct schema_place root = { .value = value };
    bool ok = schema_apply(&r, s->root, &root, NULL);
    free(r.bits);
    return r.rc != 0 ? r.rc : ok;
}

int schema_validate(struct schema *s, const struct json *value, const struct schema_limits *limits,
                    struct arena *a, struct schema_result *ret, struct err *e)
{
    int ok = schema_check(s, value, limits, e);
    if (ok < 0) {
        return ok;
    }
    *ret = (struct schema_result) { .valid = ok == 1 };
    if (ret->valid) {
        return 0;
    }
    size_t most = limits != NULL && limits->max_errors != 0 ? limits->max_errors : DEFAULT_ERRORS;
    most = most < MOST_ERRORS ? most : MOST_ERRORS;
    struct schema_sink sink = { .max = most + 1 };
    struct schema_run r = run_new(limits, NULL);
    struct schema_place root = { .value = value };
    r.arena = a;
    r.sink = &sink;
    (void)schema_apply(&r, s->root, &root, NULL);
    free(r.bits);
    /* The verdict stands. If explaining it took too long, what was found so far must do. */
    schema_result_fill(&sink, r.rc != 0, s->root, &root, a, ret);
    return 0;
}
