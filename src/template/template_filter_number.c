/* SPDX-License-Identifier: MIT
 *
 * Filters on numbers, and text to numbers as Python's int() and float() read it.
 */
#include "template/template_render_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "template/template_unicode.h"

static int filter_abs(struct render *r, const struct value *in, const struct value *args,
                      struct value *out)
{
    if (in->kind == VALUE_FLOAT) {
        *out = value_float(fabs(in->real));
        return 0;
    }
    if (!value_is_integral(in)) { /* TypeError in Python, also for an undefined value */
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "filter 'abs' needs a number, not a %s",
                               tpl_value_type(in));
    }
    struct value n = value_int(value_integer(in));
    *out = n;
    return n.integer < 0 ? tpl_value_negate(r, &n, out) : 0;
}

/* --- reading --- */

/* Copies s without blanks around and single underscores between digits; false when misplaced. */
static bool plain_number(struct str s, char *out, size_t size)
{
    s = unicode_strip(s, true, true);
    size_t n = 0;
    if (s.len == 0 || s.len >= size) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != '_') {
            out[n++] = s.ptr[i];
            continue;
        }
        bool between = i > 0 && i + 1 < s.len && unicode_digit_value(s.ptr[i - 1]) < 99 &&
                       unicode_digit_value(s.ptr[i + 1]) < 99;
        if (!between) {
            return false;
        }
    }
    out[n] = '\0';
    return memchr(out, '\0', n) == NULL;
}

static bool read_float(struct str s, double *ret)
{
    char text[400];
    if (!plain_number(s, text, sizeof text)) {
        return false;
    }
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    static const char *const words[] = { "inf", "infinity", "nan" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasecmp(digits, words[i]) == 0) {
            *ret = i == 2 ? NAN : text[0] == '-' ? -INFINITY : INFINITY;
            return true;
        }
    }
    if (strspn(digits, "0123456789.eE+-") != strlen(digits)) {
        return false; /* strtod also knows hexadecimal */
    }
    char *end;
    *ret = strtod(text, &end);
    return *end == '\0' && end != text;
}

enum reading { READ_OK, READ_NO_NUMBER, READ_TOO_LARGE };

/* Moves behind a prefix like 0x that goes with the base; false when base 0 finds "012". */
static bool read_prefix(const char **p, int64_t *base)
{
    char mark = (*p)[0] == '0' ? (char)((*p)[1] | 0x20) : '\0';
    int prefixed = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (prefixed != 0 && (*base == 0 || *base == prefixed)) {
        *p += 2;
        *base = prefixed;
        return true;
    }
    if (*base != 0) {
        return true;
    }
    *base = 10;
    return (*p)[0] != '0' || strspn(*p, "0") == strlen(*p);
}

/* int(text, base); base 0 and prefixes as in Python. */
static enum reading read_int(struct str s, int64_t base, int64_t *ret)
{
    char text[200];
    if (!plain_number(s, text, sizeof text) || base < 0 || base == 1 || base > 36) {
        return READ_NO_NUMBER;
    }
    const char *p = text;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    if (!read_prefix(&p, &base) || *p == '\0') {
        return READ_NO_NUMBER;
    }
    int64_t n = 0;
    bool over = false;
    for (; *p != '\0'; p++) {
        int digit = unicode_digit_value(*p);
        if (digit >= base) {
            return READ_NO_NUMBER;
        }
        over = over || __builtin_mul_overflow(n, base, &n) ||
               __builtin_add_overflow(n, negative ? -digit : digit, &n);
    }
    *ret = n;
    return over ? READ_TOO_LARGE : READ_OK;
}

static int fail_large(struct render *r)
{
    return tpl_render_fail(r, TEMPLATE_FAULT_LIMIT, "the number has more than 64 bits");
}

/* int(float): towards zero. *ret_nan: Python's ValueError, for which a default stands in. */
static int truncate_float(struct render *r, double d, bool *ret_nan, struct value *out)
{
    *ret_nan = isnan(d);
    if (isnan(d)) {
        return 0;
    }
    if (isinf(d)) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "infinity is no integer");
    }
    if (d >= 0x1p63 || d < -0x1p63) {
        return fail_large(r);
    }
    *out = value_int((int64_t)d);
    return 0;
}

static int filter_int(struct render *r, const struct value *in, const struct value *args,
                      struct value *out)
{
    int64_t base;
    bool nan = false;
    double d;
    int rc = tpl_arg_int(r, &args[1], 10, &base);
    if (rc < 0 || in->kind == VALUE_UNDEFINED) {
        return rc < 0 ? rc : tpl_render_fail_undefined(r, in);
    }
    if (value_is_integral(in)) {
        *out = value_int(value_integer(in));
        return 0;
    }
    if (in->kind == VALUE_FLOAT) {
        rc = truncate_float(r, in->real, &nan, out);
        if (rc < 0 || !nan) {
            return rc;
        }
    }
    if (in->kind == VALUE_STRING) {
        int64_t n = 0;
        enum reading how = read_int(in->string, base, &n);
        if (how != READ_NO_NUMBER) {
            *out = value_int(n);
            return how == READ_OK ? 0 : fail_large(r);
        }
        if (read_float(in->string, &d)) {
            rc = truncate_float(r, d, &nan, out);
            if (rc < 0 || !nan) {
                return rc;
            }
        }
    }
    *out = args[0].kind == VALUE_MISSING ? value_int(0) : args[0];
    return 0;
}

static int filter_float(struct render *r, const struct value *in, const struct value *args,
                        struct value *out)
{
    double d;
    if (in->kind == VALUE_UNDEFINED) {
        return tpl_render_fail_undefined(r, in);
    }
    if (value_is_number(in)) {
        *out = value_float(value_real(in));
    } else if (in->kind == VALUE_STRING && read_float(in->string, &d)) {
        *out = value_float(d);
    } else {
        *out = args[0].kind == VALUE_MISSING ? value_float(0) : args[0];
    }
    return 0;
}

/* --- rounding --- */

/* Half to even on the exact decimal value, as Python's round(); printf is exact too. */
static double round_float(double d, int64_t digits)
{
    if (!isfinite(d) || digits > 320) {
        return d;
    }
    char text[700];
    (void)snprintf(text, sizeof text, "%.*f", (int)digits, d);
    return strtod(text, NULL);
}

static int round_towards(struct render *r, const struct value *in, const struct value *precision,
                         bool up, struct value *out)
{
    struct value ten = value_int(10);
    struct value scale;
    struct value scaled;
    int rc = tpl_value_binary(r, OP_POW, &ten, precision, &scale);
    rc = rc < 0 ? rc : tpl_value_binary(r, OP_MUL, in, &scale, &scaled);
    if (rc < 0) {
        return rc;
    }
    if (!value_is_number(&scaled)) {
        return tpl_render_fail_type(r, in, "filter 'round' needs a number, not a %s",
                                    tpl_value_type(in));
    }
    struct value whole = scaled;
    if (scaled.kind == VALUE_FLOAT) {
        bool nan;
        rc = truncate_float(r, up ? ceil(scaled.real) : floor(scaled.real), &nan, &whole);
        if (rc == 0 && nan) {
            return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "not a number cannot be rounded");
        }
    }
    return rc < 0 ? rc : tpl_value_binary(r, OP_DIV, &whole, &scale, out);
}

static int filter_round(struct render *r, const struct value *in, const struct value *args,
                        struct value *out)
{
    struct str method = STR("common");
    struct value precision = args[0].kind == VALUE_MISSING ? value_int(0) : args[0];
    int rc = args[1].kind == VALUE_MISSING ? 0 : tpl_arg_text(r, &args[1], "the method", &method);
    if (rc < 0) {
        return rc;
    }
    if (str_eqc(method, "ceil") || str_eqc(method, "floor")) {
        return round_towards(r, in, &precision, str_eqc(method, "ceil"), out);
    }
    if (!str_eqc(method, "common")) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "filter 'round' knows the methods common, ceil and floor");
    }
    if (!value_is_number(in)) { /* TypeError in Python, also for an undefined value */
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "filter 'round' needs a number, not a %s",
                               tpl_value_type(in));
    }
    if (precision.kind == VALUE_NONE) { /* round(x): an integer */
        bool nan = false;
        double d = value_real(in);
        *out = value_int(in->kind == VALUE_FLOAT ? 0 : value_integer(in));
        rc = in->kind == VALUE_FLOAT ? truncate_float(r, round_float(d, 0), &nan, out) : 0;
        return rc == 0 && nan
                   ? tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "not a number has no integer")
                   : rc;
    }
    if (!value_is_integral(&precision)) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "the precision must be an integer");
    }
    int64_t digits = value_integer(&precision);
    if (digits < 0) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "filter 'round' needs a precision of 0 or more");
    }
    *out = in->kind == VALUE_FLOAT ? value_float(round_float(in->real, digits))
                                   : value_int(value_integer(in));
    return 0;
}

const struct filter tpl_filters_number[] = {
    { .name = "abs", .run = filter_abs },
    { .name = "int", .run = filter_int, .params = { { "default", "base" }, 2, 0 } },
    { .name = "float", .run = filter_float, .params = { { "default" }, 1, 0 } },
    { .name = "round", .run = filter_round, .params = { { "precision", "method" }, 2, 0 } },
};
const size_t tpl_filters_number_len = ARRAY_LEN(tpl_filters_number);
