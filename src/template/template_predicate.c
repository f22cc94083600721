/* SPDX-License-Identifier: MIT
 *
 * Tests: what may follow `is`.
 */
#include "template/template_render_priv.h"

#include "template/template_unicode.h"

static int remainder_is(struct render *r, const struct value *in, const struct value *divisor,
                        int64_t wanted, bool *ret)
{
    struct value rest;
    struct value want = value_int(wanted);
    int rc = tpl_value_binary(r, OP_MOD, in, divisor, &rest);
    return rc < 0 ? rc : tpl_value_equal(r, &rest, &want, ret);
}

static int is_odd(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    struct value two = value_int(2);
    return remainder_is(r, in, &two, 1, ret);
}

static int is_even(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    struct value two = value_int(2);
    return remainder_is(r, in, &two, 0, ret);
}

static int is_divisible(struct render *r, const struct value *in, const struct value *arg,
                        bool *ret)
{
    return remainder_is(r, in, arg, 0, ret);
}

static int is_true(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_BOOL && in->boolean;
    return 0;
}

static int is_false(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_BOOL && !in->boolean;
    return 0;
}

/* Anything with a length and elements by key: also a dict. */
static int is_sequence(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_STRING || value_is_sequence(in) || in->kind == VALUE_DICT ||
           (in->kind == VALUE_UNDEFINED && !in->undefined->strict);
    return 0;
}

static int is_iterable(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    if (in->kind == VALUE_UNDEFINED && in->undefined->strict) {
        return tpl_render_fail_undefined(r, in);
    }
    *ret = in->kind == VALUE_UNDEFINED || tpl_value_is_iterable(in);
    return 0;
}

/* All cased letters are of one case, and there is one. */
static int has_case(struct render *r, const struct value *in, bool upper, bool *ret)
{
    struct value text;
    int rc = tpl_value_to_text(r, in, &text);
    bool any = false;
    *ret = false;
    for (size_t at = 0; rc == 0 && at < text.string.len;) {
        uint32_t c = unicode_next(text.string, &at);
        bool right = upper ? unicode_is_upper(c) : unicode_is_lower(c);
        if (!right && (unicode_is_lower(c) || unicode_is_upper(c) || unicode_is_title(c))) {
            return 0;
        }
        any |= right;
    }
    *ret = any;
    return rc;
}

static int is_lower(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    return has_case(r, in, false, ret);
}

static int is_upper(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    return has_case(r, in, true, ret);
}

static int is_same(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = tpl_value_same(in, arg);
    return 0;
}

static int is_filter(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    uint64_t hash;
    int rc = tpl_value_hash(r, in, &hash); /* Python looks it up in a dict */
    *ret = in->kind == VALUE_STRING && tpl_filter_find(in->string) != NULL;
    return rc;
}

static int is_test(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    uint64_t hash;
    int rc = tpl_value_hash(r, in, &hash);
    *ret = in->kind == VALUE_STRING && tpl_predicate_find(in->string) != NULL;
    return rc;
}

#define KIND(k) (1u << VALUE_##k)

static const struct predicate predicates[] = {
    { "defined", .kinds = ~KIND(UNDEFINED) },
    { "undefined", .kinds = KIND(UNDEFINED) },
    { "none", .kinds = KIND(NONE) },
    { "boolean", .kinds = KIND(BOOL) },
    { "integer", .kinds = KIND(INT) },
    { "float", .kinds = KIND(FLOAT) },
    { "number", .kinds = KIND(BOOL) | KIND(INT) | KIND(FLOAT) },
    { "string", .kinds = KIND(STRING) },
    { "mapping", .kinds = KIND(DICT) },
    { "callable", .kinds = KIND(UNDEFINED) | KIND(MACRO) | KIND(METHOD) | KIND(FUNCTION) |
                           KIND(JOINER) | KIND(LOOP) },
    { "true", is_true },
    { "false", is_false },
    { "odd", is_odd },
    { "even", is_even },
    { "divisibleby", is_divisible, .args = 1, .param = "num" },
    { "lower", is_lower },
    { "upper", is_upper },
    { "sequence", is_sequence },
    { "iterable", is_iterable },
    { "sameas", is_same, .args = 1, .param = "other" },
    { "filter", is_filter },
    { "test", is_test },
    { "in", .args = 1, .param = "seq", .compare = CMP_IN },
    { "==", .args = 1, .compare = CMP_EQ },
    { "eq", .args = 1, .compare = CMP_EQ },
    { "equalto", .args = 1, .compare = CMP_EQ },
    { "!=", .args = 1, .compare = CMP_NE },
    { "ne", .args = 1, .compare = CMP_NE },
    { ">", .args = 1, .compare = CMP_GT },
    { "gt", .args = 1, .compare = CMP_GT },
    { "greaterthan", .args = 1, .compare = CMP_GT },
    { ">=", .args = 1, .compare = CMP_GE },
    { "ge", .args = 1, .compare = CMP_GE },
    { "<", .args = 1, .compare = CMP_LT },
    { "lt", .args = 1, .compare = CMP_LT },
    { "lessthan", .args = 1, .compare = CMP_LT },
    { "<=", .args = 1, .compare = CMP_LE },
    { "le", .args = 1, .compare = CMP_LE },
};

const struct predicate *tpl_predicate_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(predicates); i++) {
        if (str_eqc(name, predicates[i].name)) {
            return &predicates[i];
        }
    }
    return NULL;
}

int tpl_predicate_apply(struct render *r, const struct predicate *p, const struct value *in,
                        const struct call_args *args, bool *ret)
{
    size_t named = p->param == NULL ? 0 : args->named_len;
    if (args->plain_len + args->named_len != p->args ||
        (named == 1 && !str_eqc(args->named[0].name, p->param)) || named != args->named_len) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "test '%s' takes %u argument%s", p->name,
                               p->args, p->args == 1 ? "" : "s");
    }
    const struct value *arg = args->plain_len == 1   ? &args->plain[0]
                              : args->named_len == 1 ? &args->named[0].value
                                                     : NULL;
    if (p->run != NULL) {
        return p->run(r, in, arg, ret);
    }
    if (p->args == 1) {
        return tpl_value_compare_op(r, in, arg, (int)p->compare, ret);
    }
    *ret = (p->kinds >> in->kind & 1) != 0;
    return 0;
}
