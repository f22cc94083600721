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

/* The tests that only look at the kind. */
static int is_defined(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind != VALUE_UNDEFINED;
    return 0;
}

static int is_undefined(struct render *r, const struct value *in, const struct value *arg,
                        bool *ret)
{
    *ret = in->kind == VALUE_UNDEFINED;
    return 0;
}

static int is_none(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_NONE;
    return 0;
}

static int is_boolean(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_BOOL;
    return 0;
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

static int is_integer(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_INT;
    return 0;
}

static int is_float(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_FLOAT;
    return 0;
}

static int is_number(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = value_is_number(in);
    return 0;
}

static int is_string(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_STRING;
    return 0;
}

static int is_mapping(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_DICT;
    return 0;
}

/* Anything with a length and elements by key: also a dict. */
static int is_sequence(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_STRING || value_is_sequence(in) || in->kind == VALUE_DICT ||
           in->kind == VALUE_RANGE || (in->kind == VALUE_UNDEFINED && !in->undefined->strict);
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

static int is_callable(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_UNDEFINED || in->kind == VALUE_MACRO || in->kind == VALUE_METHOD ||
           in->kind == VALUE_FUNCTION || in->kind == VALUE_JOINER || in->kind == VALUE_LOOP;
    return 0;
}

static int is_escaped(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    *ret = in->kind == VALUE_STRING && in->markup;
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
        if (!right && unicode_is_cased(c)) {
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

static int is_in(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    return tpl_value_contains(r, arg, in, ret);
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

static int is_eq(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    return tpl_value_compare_op(r, in, arg, CMP_EQ, ret);
}

static int is_ne(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    return tpl_value_compare_op(r, in, arg, CMP_NE, ret);
}

static int is_lt(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    return tpl_value_compare_op(r, in, arg, CMP_LT, ret);
}

static int is_le(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    return tpl_value_compare_op(r, in, arg, CMP_LE, ret);
}

static int is_gt(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    return tpl_value_compare_op(r, in, arg, CMP_GT, ret);
}

static int is_ge(struct render *r, const struct value *in, const struct value *arg, bool *ret)
{
    return tpl_value_compare_op(r, in, arg, CMP_GE, ret);
}

static const struct predicate predicates[] = {
    { "odd", is_odd, 0, NULL },
    { "even", is_even, 0, NULL },
    { "divisibleby", is_divisible, 1, "num" },
    { "defined", is_defined, 0, NULL },
    { "undefined", is_undefined, 0, NULL },
    { "filter", is_filter, 0, NULL },
    { "test", is_test, 0, NULL },
    { "none", is_none, 0, NULL },
    { "boolean", is_boolean, 0, NULL },
    { "false", is_false, 0, NULL },
    { "true", is_true, 0, NULL },
    { "integer", is_integer, 0, NULL },
    { "float", is_float, 0, NULL },
    { "lower", is_lower, 0, NULL },
    { "upper", is_upper, 0, NULL },
    { "string", is_string, 0, NULL },
    { "mapping", is_mapping, 0, NULL },
    { "number", is_number, 0, NULL },
    { "sequence", is_sequence, 0, NULL },
    { "iterable", is_iterable, 0, NULL },
    { "callable", is_callable, 0, NULL },
    { "sameas", is_same, 1, "other" },
    { "escaped", is_escaped, 0, NULL },
    { "in", is_in, 1, "seq" },
    { "==", is_eq, 1, NULL },
    { "eq", is_eq, 1, NULL },
    { "equalto", is_eq, 1, NULL },
    { "!=", is_ne, 1, NULL },
    { "ne", is_ne, 1, NULL },
    { ">", is_gt, 1, NULL },
    { "gt", is_gt, 1, NULL },
    { "greaterthan", is_gt, 1, NULL },
    { ">=", is_ge, 1, NULL },
    { "ge", is_ge, 1, NULL },
    { "<", is_lt, 1, NULL },
    { "lt", is_lt, 1, NULL },
    { "lessthan", is_lt, 1, NULL },
    { "<=", is_le, 1, NULL },
    { "le", is_le, 1, NULL },
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
    return p->run(r, in, arg, ret);
}
