/* SPDX-License-Identifier: MIT
 *
 * The keywords that look at one value: type, enum, numbers, strings.
 */
#include "data/schema_priv.h"

/* So many values of an enum are named in a message. */
enum { NAMED_VALUES = 12 };

static struct arena *arena_of(const struct schema_context *c)
{
    return c->run->arena;
}

bool schema_op_type(const struct schema_context *c)
{
    return (schema_types_of(c->at->value) & c->op->types) != 0 || schema_fail_type(c);
}

static struct str value_at(const void *context, size_t i)
{
    const struct schema_values *set = context;
    return json_str(set->items[i], STR_EMPTY);
}

static bool fail_values(const struct schema_context *c, enum schema_keyword keyword)
{
    const struct schema_values *set = c->op->values;
    struct arena *a = arena_of(c);
    const char *names = "";
    const char *hint = "";
    size_t shown = set->len < NAMED_VALUES ? set->len : NAMED_VALUES;
    for (size_t i = 0; i < shown; i++) {
        names = arena_printf(a, "%s%s%s", names, i > 0 ? ", " : "", schema_show(a, set->items[i]));
    }
    if (shown < set->len) {
        names = arena_printf(a, "%s, … (%zu values)", names, set->len);
    }
    if (c->at->value->type == JSON_STRING) {
        struct schema_names choice = { value_at, NULL, set, set->len };
        hint = schema_suggest(a, c->at->value->string, &choice);
    }
    if (shown == 0) {
        return schema_fail(c, keyword, "no value is allowed here");
    }
    return schema_fail(c, keyword, "expected %s%s, got %s%s", shown > 1 ? "one of " : "", names,
                       schema_describe(a, c->at->value), hint);
}

static bool is_among(const struct schema_context *c, enum schema_keyword keyword)
{
    uint64_t cost = 0;
    bool ok = schema_values_have(c->op->values, c->at->value, &cost);
    if (!schema_spend(c->run, cost)) {
        return false;
    }
    return ok || (schema_collects(c->run) ? fail_values(c, keyword) : false);
}

bool schema_op_enum(const struct schema_context *c)
{
    return is_among(c, KW_ENUM);
}

bool schema_op_const(const struct schema_context *c)
{
    return is_among(c, KW_CONST);
}

bool schema_op_multiple_of(const struct schema_context *c)
{
    if (schema_is_multiple(c->at->value, c->op->value)) {
        return true;
    }
    if (!schema_collects(c->run)) {
        return false;
    }
    return schema_fail(c, KW_MULTIPLE_OF, "%s is not a multiple of %s",
                       schema_show(arena_of(c), c->at->value),
                       schema_show(arena_of(c), c->op->value));
}

bool schema_op_limit(const struct schema_context *c)
{
    int order = schema_number_cmp(c->at->value, c->op->value);
    enum schema_keyword keyword = KW_MINIMUM;
    const char *must = "at least";
    bool ok = order >= 0;
    if (c->op->kind == OP_MAXIMUM) {
        keyword = KW_MAXIMUM;
        must = "at most";
        ok = order <= 0;
    } else if (c->op->kind == OP_EXCLUSIVE_MINIMUM) {
        keyword = KW_EXCLUSIVE_MINIMUM;
        must = "greater than";
        ok = order > 0;
    } else if (c->op->kind == OP_EXCLUSIVE_MAXIMUM) {
        keyword = KW_EXCLUSIVE_MAXIMUM;
        must = "less than";
        ok = order < 0;
    }
    if (ok || !schema_collects(c->run)) {
        return ok;
    }
    return schema_fail(c, keyword, "expected a number %s %s, got %s", must,
                       schema_show(arena_of(c), c->op->value),
                       schema_show(arena_of(c), c->at->value));
}

bool schema_op_length(const struct schema_context *c)
{
    struct str s = c->at->value->string;
    bool is_max = c->op->kind == OP_MAX_LENGTH;
    if (!schema_spend(c->run, s.len / 64)) {
        return false;
    }
    size_t len = schema_text_len(s);
    bool ok = is_max ? len <= c->op->count : len >= c->op->count;
    if (ok || !schema_collects(c->run)) {
        return ok;
    }
    if (len == 0 && c->op->count == 1) {
        return schema_fail(c, KW_MIN_LENGTH, "the string must not be empty");
    }
    return schema_fail(
        c, is_max ? KW_MAX_LENGTH : KW_MIN_LENGTH, "%s has %zu characters, %s %zu are %s",
        schema_describe(arena_of(c), c->at->value), len, is_max ? "at most" : "at least",
        c->op->count, is_max ? "allowed" : "needed");
}

bool schema_op_pattern(const struct schema_context *c)
{
    const struct schema_pattern *p = c->op->pattern;
    int rc = regex_match_within(p->regex, c->at->value->string, &c->run->steps, c->run->e);
    if (rc < 0) {
        c->run->rc = rc;
        return false;
    }
    if (rc == 1 || !schema_collects(c->run)) {
        return rc == 1;
    }
    return schema_fail(c, KW_PATTERN, "%s does not match the pattern %s",
                       schema_describe(arena_of(c), c->at->value),
                       schema_cut(arena_of(c), p->source));
}
