/* SPDX-License-Identifier: MIT
 *
 * Arithmetic, concatenation and repetition, as Python has them but with 64-bit integers: what does
 * not fit is a limit error, never a wrapped number.
 */
#include "template/template_value_priv.h"

#include <math.h>

#include "template/template_render_priv.h"

static int fail_overflow(struct render *r)
{
    return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "the result has more than 64 bits");
}

static int fail_zero(struct render *r)
{
    return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "division by zero");
}

static int power_int(struct render *r, int64_t base, int64_t exp, struct value *out)
{
    int64_t result = 1;
    while (exp > 0) {
        if ((exp & 1) && __builtin_mul_overflow(result, base, &result)) {
            return fail_overflow(r);
        }
        exp >>= 1;
        if (exp > 0 && __builtin_mul_overflow(base, base, &base)) {
            return fail_overflow(r);
        }
    }
    *out = value_int(result);
    return 0;
}

static int power_float(struct render *r, double base, double exp, struct value *out)
{
    if (base == 0 && exp < 0) {
        return fail_zero(r);
    }
    if (base < 0 && isfinite(base) && isfinite(exp) && exp != floor(exp)) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "a negative number to a fractional power is no real number");
    }
    double d = pow(base, exp);
    if (isinf(d) && isfinite(base) && isfinite(exp)) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "the result is too large for a float");
    }
    *out = value_float(d);
    return 0;
}

static int divide_int(struct render *r, enum binary_op op, int64_t a, int64_t b, struct value *out)
{
    if (b == 0) {
        return fail_zero(r);
    }
    if (op == OP_DIV) {
        *out = value_float((double)((long double)a / (long double)b));
        return 0;
    }
    if (b == -1) { /* the one quotient that overflows */
        int64_t negated;
        if (op == OP_FLOORDIV && __builtin_sub_overflow((int64_t)0, a, &negated)) {
            return fail_overflow(r);
        }
        *out = value_int(op == OP_MOD ? 0 : negated);
        return 0;
    }
    int64_t q = a / b;
    int64_t m = a % b;
    if (m != 0 && (m < 0) != (b < 0)) { /* Python rounds down, C towards zero */
        q--;
        m += b;
    }
    *out = value_int(op == OP_MOD ? m : q);
    return 0;
}

static int binary_int(struct render *r, enum binary_op op, int64_t a, int64_t b, struct value *out)
{
    int64_t result = 0;
    bool over = false;
    switch (op) {
    case OP_ADD:
        over = __builtin_add_overflow(a, b, &result);
        break;
    case OP_SUB:
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case OP_MUL:
        over = __builtin_mul_overflow(a, b, &result);
        break;
    case OP_POW:
        return b < 0 ? power_float(r, (double)a, (double)b, out) : power_int(r, a, b, out);
    case OP_DIV:
    case OP_FLOORDIV:
    case OP_MOD:
        return divide_int(r, op, a, b, out);
    }
    *out = value_int(result);
    return over ? fail_overflow(r) : 0;
}

/* Remainder with the sign of the divisor, and the matching quotient; float_divmod in CPython. */
static double float_modulo(double a, double b, double *ret_floor)
{
    double mod = fmod(a, b);
    double div = (a - mod) / b;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1.0;
        }
    } else {
        mod = copysign(0.0, b);
    }
    double down;
    if (div != 0) {
        down = floor(div);
        if (div - down > 0.5) {
            down += 1.0;
        }
    } else {
        down = copysign(0.0, a / b);
    }
    *ret_floor = down;
    return mod;
}

static int binary_float(struct render *r, enum binary_op op, double a, double b, struct value *out)
{
    double down = 0;
    if (b == 0 && (op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD)) {
        return fail_zero(r);
    }
    switch (op) {
    case OP_ADD:
        *out = value_float(a + b);
        break;
    case OP_SUB:
        *out = value_float(a - b);
        break;
    case OP_MUL:
        *out = value_float(a * b);
        break;
    case OP_DIV:
        *out = value_float(a / b);
        break;
    case OP_MOD:
        *out = value_float(float_modulo(a, b, &down));
        break;
    case OP_FLOORDIV:
        (void)float_modulo(a, b, &down);
        *out = value_float(down);
        break;
    case OP_POW:
        return power_float(r, a, b, out);
    }
    return 0;
}

static int concat(struct render *r, const struct value *a, const struct value *b, struct value *out)
{
    size_t len = a->string.len + b->string.len;
    int rc = tpl_render_check_size(r, len, 1);
    if (rc < 0) {
        return rc;
    }
    char *p = arena_alloc(r->arena, len + 1);
    memcpy(p, a->string.ptr, a->string.len);
    memcpy(p + a->string.len, b->string.ptr, b->string.len);
    *out = value_text(str_n(p, len));
    return 0;
}

static int join_lists(struct render *r, const struct value *a, const struct value *b,
                      struct value *out)
{
    size_t len = a->list->len + b->list->len;
    int rc = tpl_render_check_size(r, len, sizeof(struct value));
    if (rc < 0) {
        return rc;
    }
    struct list *l = tpl_list_new(r->arena, len);
    for (size_t i = 0; i < len; i++) {
        bool first = i < a->list->len;
        tpl_list_add(r->arena, l, first ? &a->list->items[i] : &b->list->items[i - a->list->len]);
    }
    *out = a->kind == VALUE_TUPLE ? value_tuple(l) : value_list(l);
    return 0;
}

static int repeat_text(struct render *r, const struct value *v, uint64_t times, struct value *out)
{
    size_t len = v->string.len;
    if (len == 0 || times == 0) {
        *out = value_text(STR_EMPTY);
        return 0;
    }
    int rc = times > SIZE_MAX / len ? tpl_render_check_size(r, UINT64_MAX, 1)
                                    : tpl_render_check_size(r, len * times, 1);
    if (rc < 0) {
        return rc;
    }
    char *p = arena_alloc(r->arena, len * times + 1);
    for (uint64_t i = 0; i < times; i++) {
        memcpy(p + i * len, v->string.ptr, len);
    }
    *out = value_text(str_n(p, len * times));
    return 0;
}

static int repeat_list(struct render *r, const struct value *v, uint64_t times, struct value *out)
{
    size_t len = v->list->len;
    times = len == 0 ? 0 : times;
    int rc = len > 0 && times > SIZE_MAX / sizeof(struct value) / len
                 ? tpl_render_check_size(r, UINT64_MAX, 1)
                 : tpl_render_check_size(r, len * times, sizeof(struct value));
    if (rc < 0) {
        return rc;
    }
    struct list *l = tpl_list_new(r->arena, len * times);
    for (uint64_t i = 0; i < times; i++) {
        for (size_t k = 0; k < len; k++) {
            tpl_list_add(r->arena, l, &v->list->items[k]);
        }
    }
    *out = v->kind == VALUE_TUPLE ? value_tuple(l) : value_list(l);
    return 0;
}

static int repeat(struct render *r, const struct value *v, const struct value *count,
                  struct value *out)
{
    int64_t n = value_integer(count);
    uint64_t times = n < 0 ? 0 : (uint64_t)n;
    return v->kind == VALUE_STRING ? repeat_text(r, v, times, out) : repeat_list(r, v, times, out);
}

static bool can_repeat(const struct value *v)
{
    return v->kind == VALUE_STRING || value_is_sequence(v);
}

int tpl_value_binary(struct render *r, enum binary_op op, const struct value *a,
                     const struct value *b, struct value *out)
{
    if (value_is_number(a) && value_is_number(b)) {
        bool real = a->kind == VALUE_FLOAT || b->kind == VALUE_FLOAT;
        return real ? binary_float(r, op, value_real(a), value_real(b), out)
                    : binary_int(r, op, value_integer(a), value_integer(b), out);
    }
    if (op == OP_MOD && a->kind == VALUE_STRING) {
        return tpl_value_percent(r, a, b, out);
    }
    if (a->kind == VALUE_UNDEFINED || b->kind == VALUE_UNDEFINED) {
        return tpl_render_fail_undefined(r, a->kind == VALUE_UNDEFINED ? a : b);
    }
    if (op == OP_ADD && a->kind == b->kind) {
        if (a->kind == VALUE_STRING) {
            return concat(r, a, b, out);
        }
        if (value_is_sequence(a)) {
            return join_lists(r, a, b, out);
        }
    }
    if (op == OP_MUL && can_repeat(a) && value_is_integral(b)) {
        return repeat(r, a, b, out);
    }
    if (op == OP_MUL && can_repeat(b) && value_is_integral(a)) {
        return repeat(r, b, a, out);
    }
    static const char *const signs[] = { "+", "-", "*", "/", "//", "%", "**" };
    return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "'%s' does not work on a %s and a %s",
                           signs[op], tpl_value_type(a), tpl_value_type(b));
}

int tpl_value_negate(struct render *r, const struct value *v, struct value *out)
{
    if (v->kind == VALUE_FLOAT) {
        *out = value_float(-v->real);
        return 0;
    }
    if (!value_is_integral(v)) {
        return tpl_render_fail_type(r, v, "'-' does not work on a %s", tpl_value_type(v));
    }
    int64_t n = 0;
    if (__builtin_sub_overflow((int64_t)0, value_integer(v), &n)) {
        return fail_overflow(r);
    }
    *out = value_int(n);
    return 0;
}

int tpl_value_positive(struct render *r, const struct value *v, struct value *out)
{
    if (!value_is_number(v)) {
        return tpl_render_fail_type(r, v, "'+' does not work on a %s", tpl_value_type(v));
    }
    *out = v->kind == VALUE_FLOAT ? *v : value_int(value_integer(v));
    return 0;
}
