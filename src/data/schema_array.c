/* SPDX-License-Identifier: MIT
 *
 * The keywords of arrays.
 */
#include "data/schema_priv.h"

bool schema_op_item_count(const struct schema_context *c)
{
    size_t len = c->at->value->array.len;
    bool is_max = c->op->kind == OP_MAX_ITEMS;
    bool ok = is_max ? len <= c->op->count : len >= c->op->count;
    if (ok || !schema_collects(c->run)) {
        return ok;
    }
    return schema_fail(c, is_max ? KW_MAX_ITEMS : KW_MIN_ITEMS,
                       "the array has %zu item%s, %s %zu %s", len, len == 1 ? "" : "s",
                       is_max ? "at most" : "at least", c->op->count,
                       is_max ? "are allowed" : "are needed");
}

bool schema_op_unique_items(const struct schema_context *c)
{
    uint64_t cost = 0;
    size_t first = 0;
    size_t second = 0;
    bool twice = schema_find_equal(c->at->value, c->run->steps, &cost, &first, &second);
    if (!schema_spend(c->run, cost)) {
        return false;
    }
    return !twice || schema_fail(c, KW_UNIQUE_ITEMS,
                                 "items %zu and %zu are equal, but all must differ", first, second);
}

static bool apply_item(const struct schema_context *c, const struct schema_node *n, size_t i)
{
    struct schema_place at = { .up = c->at, .value = c->at->value->array.items[i], .index = i };
    return schema_apply(c->run, n, &at, NULL);
}

bool schema_op_items(const struct schema_context *c)
{
    const struct schema_items *items = c->op->items;
    size_t len = c->at->value->array.len;
    size_t prefix = items->prefix.len < len ? items->prefix.len : len;
    bool ok = true;
    if (items->rest != NULL && items->rest->never && len > prefix) {
        ok = schema_fail(c, items->rest_keyword, "the array has %zu items, at most %zu are allowed",
                         len, items->prefix.len);
        len = prefix;
    }
    for (size_t i = 0; i < len && (ok || schema_collects(c->run)); i++) {
        const struct schema_node *n = i < prefix ? items->prefix.items[i] : items->rest;
        if (n == NULL) {
            break;
        }
        ok = apply_item(c, n, i) && ok;
    }
    schema_mark_all(c->run, c->seen, items->rest != NULL ? c->at->value->array.len : prefix);
    return ok;
}

bool schema_op_contains(const struct schema_context *c)
{
    const struct schema_contains *want = c->op->contains;
    size_t len = c->at->value->array.len;
    size_t found = 0;
    bool marks = c->seen != NULL;
    /* beyond the maximum no further item matters, and below it none once the minimum is there */
    for (size_t i = 0; i < len && c->run->rc == 0; i++) {
        if (!marks && (found > want->max || (want->max == SIZE_MAX && found >= want->min))) {
            break;
        }
        struct schema_place at = { .up = c->at, .value = c->at->value->array.items[i], .index = i };
        if (schema_try(c->run, want->node, &at, NULL)) {
            found++;
            schema_mark(c->run, c->seen, i);
        }
    }
    if (found > want->max) {
        return schema_fail(c, KW_MAX_CONTAINS, "more than %zu items fit the schema in contains",
                           want->max);
    }
    if (found >= want->min) {
        return true;
    }
    if (want->min == 1) {
        return schema_fail(c, KW_CONTAINS, "no item fits the schema in contains");
    }
    return schema_fail(c, KW_MIN_CONTAINS, "%zu items fit the schema in contains, %zu are needed",
                       found, want->min);
}

bool schema_op_unevaluated_items(const struct schema_context *c)
{
    bool ok = true;
    for (size_t i = 0; i < c->at->value->array.len && (ok || schema_collects(c->run)); i++) {
        if (schema_marked(c->run, c->seen, i)) {
            continue;
        }
        if (c->op->node->never) {
            ok = schema_fail(c, KW_UNEVALUATED_ITEMS, "item %zu is not allowed", i);
        } else {
            ok = apply_item(c, c->op->node, i) && ok;
        }
    }
    schema_mark_all(c->run, c->seen, c->at->value->array.len);
    return ok;
}
