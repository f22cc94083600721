/* SPDX-License-Identifier: MIT
 *
 * Scalars of TOML: the token is cut out first, its shape decides the type, and only then is it
 * checked against the grammar of that type, so that a message can name what was meant.
 */
#include "data/toml_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct token {
    struct str s;
    size_t offset;
};

int toml_new(struct toml_parser *p, enum json_type type, size_t offset, struct json **ret)
{
    if (p->values_left == 0) {
        return toml_limit(p, offset, "more values than allowed");
    }
    p->values_left--;
    struct json *v = ARENA_NEW(p->arena, struct json);
    v->type = type;
    toml_position(p, offset, &v->line, &v->column);
    *ret = v;
    return 0;
}

/* The tagged form of a scalar. */
static int make_tagged(struct toml_parser *p, size_t offset, const char *type, struct str text,
                       struct json **ret)
{
    struct json *v = NULL;
    int r = toml_new(p, JSON_OBJECT, offset, &v);
    if (r < 0) {
        return r;
    }
    json_setc(p->arena, v, "type", json_cstr(p->arena, type));
    json_setc(p->arena, v, "value", json_string(p->arena, text));
    *ret = v;
    return 0;
}

int toml_make_string(struct toml_parser *p, size_t offset, struct str s, struct json **ret)
{
    if (p->tagged) {
        return make_tagged(p, offset, "string", s, ret);
    }
    int r = toml_new(p, JSON_STRING, offset, ret);
    if (r == 0) {
        (*ret)->string = s;
    }
    return r;
}

/* --- digits --- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_digit_of(char c, int base)
{
    if (base == 16) {
        return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    }
    return c >= '0' && c < '0' + base;
}

/* One digit at least; underscores only between two digits. */
static bool are_digits(struct str s, int base)
{
    for (size_t i = 0; i < s.len; i++) {
        bool between = i > 0 && i + 1 < s.len && s.ptr[i - 1] != '_' && s.ptr[i + 1] != '_';
        if (!is_digit_of(s.ptr[i], base) && (s.ptr[i] != '_' || !between)) {
            return false;
        }
    }
    return s.len > 0;
}

static bool has_leading_zero(struct str digits)
{
    return digits.len > 1 && digits.ptr[0] == '0';
}

static struct str without_sign(struct str s)
{
    bool sign = s.len > 0 && (s.ptr[0] == '+' || s.ptr[0] == '-');
    return sign ? str_slice(s, 1, s.len) : s;
}

static int not_a_number(const struct toml_parser *p, struct token t, const char *why)
{
    return toml_fail(p, t.offset, "'%.*s' is not a number: %s", (int)(t.s.len > 60 ? 60 : t.s.len),
                     t.s.ptr, why);
}

/* --- integers --- */

static int make_integer(struct toml_parser *p, size_t offset, int64_t i, struct json **ret)
{
    if (p->tagged) {
        char text[32];
        (void)snprintf(text, sizeof text, "%lld", (long long)i);
        return make_tagged(p, offset, "integer", str_of(text), ret);
    }
    int r = toml_new(p, JSON_INT, offset, ret);
    if (r == 0) {
        (*ret)->integer = i;
    }
    return r;
}

static int digit_value(char c)
{
    return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
}

static int integer(struct toml_parser *p, struct token t, int base, struct json **ret)
{
    bool negative = t.s.ptr[0] == '-';
    struct str digits = base == 10 ? without_sign(t.s) : str_slice(t.s, 2, t.s.len);
    if (!are_digits(digits, base)) {
        return not_a_number(p, t,
                            "digits are missing or not of the base, or an '_' is not between "
                            "two digits");
    }
    if (base == 10 && has_leading_zero(digits)) {
        return not_a_number(p, t, "leading zeros are not allowed");
    }
    int64_t value = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] == '_') {
            continue;
        }
        int64_t d = negative ? -digit_value(digits.ptr[i]) : digit_value(digits.ptr[i]);
        if (__builtin_mul_overflow(value, (int64_t)base, &value) ||
            __builtin_add_overflow(value, d, &value)) {
            return not_a_number(p, t, "it does not fit into 64 bits");
        }
    }
    return make_integer(p, t.offset, value, ret);
}

/* --- floats --- */

static int make_float(struct toml_parser *p, struct token t, double d, struct json **ret)
{
    if (p->tagged) {
        char text[40];
        (void)snprintf(text, sizeof text, "%.17g", d);
        return make_tagged(p, t.offset, "float", str_of(isnan(d) ? "nan" : text), ret);
    }
    if (!isfinite(d)) {
        return toml_fail(p, t.offset, "'%.*s': a number that is not finite cannot be used here",
                         (int)(t.s.len > 60 ? 60 : t.s.len), t.s.ptr);
    }
    int r = toml_new(p, JSON_REAL, t.offset, ret);
    if (r == 0) {
        (*ret)->real = d;
    }
    return r;
}

static bool is_special_float(struct str s)
{
    struct str word = without_sign(s);
    return str_eqc(word, "inf") || str_eqc(word, "nan");
}

/* [sign] digits [. digits] [e [sign] digits]; NULL, or what is wrong. */
static const char *float_fault(struct str s)
{
    struct str rest = without_sign(s);
    size_t e = 0;
    while (e < rest.len && rest.ptr[e] != 'e' && rest.ptr[e] != 'E') {
        e++;
    }
    struct str mantissa = str_slice(rest, 0, e);
    size_t dot = str_find(mantissa, STR("."));
    struct str whole = str_slice(mantissa, 0, dot);
    if (!are_digits(whole, 10)) {
        return "digits are needed before the point or exponent";
    }
    if (has_leading_zero(whole)) {
        return "leading zeros are not allowed";
    }
    if (dot < mantissa.len && !are_digits(str_slice(mantissa, dot + 1, mantissa.len), 10)) {
        return "digits are needed behind the point";
    }
    if (e < rest.len && !are_digits(without_sign(str_slice(rest, e + 1, rest.len)), 10)) {
        return "digits are needed in the exponent";
    }
    return NULL;
}

static int floating(struct toml_parser *p, struct token t, struct json **ret)
{
    if (is_special_float(t.s)) {
        bool negative = t.s.ptr[0] == '-';
        double d = str_ends(t.s, STR("nan")) ? (double)NAN : (double)INFINITY;
        return make_float(p, t, negative ? -d : d, ret);
    }
    const char *fault = float_fault(t.s);
    if (fault != NULL) {
        return not_a_number(p, t, fault);
    }
    buf_reset(&p->scratch);
    for (size_t i = 0; i < t.s.len; i++) {
        int r = t.s.ptr[i] == '_' ? 0 : buf_append_c(&p->scratch, t.s.ptr[i], p->e);
        if (r < 0) {
            return r;
        }
    }
    return make_float(p, t, strtod(p->scratch.ptr, NULL), ret);
}

/* --- dates and times --- */

/* Two or four digits at `i`, or -1. */
static int fixed_digits(struct str s, size_t i, size_t n)
{
    int value = 0;
    for (size_t k = i; k < i + n; k++) {
        if (k >= s.len || !is_digit(s.ptr[k])) {
            return -1;
        }
        value = value * 10 + (s.ptr[k] - '0');
    }
    return value;
}

static bool byte_is(struct str s, size_t i, char c)
{
    return i < s.len && s.ptr[i] == c;
}

static bool is_date(struct str s)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int year = fixed_digits(s, 0, 4);
    int month = fixed_digits(s, 5, 2);
    int day = fixed_digits(s, 8, 2);
    if (s.len != 10 || year < 0 || s.ptr[4] != '-' || s.ptr[7] != '-' || month < 1 || month > 12) {
        return false;
    }
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day >= 1 && day <= days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* HH:MM:SS[.digits] */
static bool is_time(struct str s)
{
    int hour = fixed_digits(s, 0, 2);
    int minute = fixed_digits(s, 3, 2);
    int second = fixed_digits(s, 6, 2);
    bool shape = byte_is(s, 2, ':') && byte_is(s, 5, ':');
    if (!shape || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
        return false;
    }
    if (s.len == 8) {
        return true;
    }
    if (s.ptr[8] != '.' || s.len == 9) {
        return false;
    }
    for (size_t i = 9; i < s.len; i++) {
        if (!is_digit(s.ptr[i])) {
            return false;
        }
    }
    return true;
}

/* Length of the zone at the end: 1 for Z, 6 for +HH:MM, 0 for none; -1 when it is out of range. */
static int zone_len(struct str s)
{
    if (s.len > 0 && (s.ptr[s.len - 1] == 'Z' || s.ptr[s.len - 1] == 'z')) {
        return 1;
    }
    if (s.len < 6 || (s.ptr[s.len - 6] != '+' && s.ptr[s.len - 6] != '-')) {
        return 0;
    }
    struct str zone = str_slice(s, s.len - 5, s.len);
    int hour = fixed_digits(zone, 0, 2);
    int minute = fixed_digits(zone, 3, 2);
    bool good = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && zone.ptr[2] == ':';
    return good ? 6 : -1;
}

static int make_date(struct toml_parser *p, struct token t, const char *type, struct json **ret)
{
    char *text = arena_dup(p->arena, t.s);
    if (t.s.len > 10 && text[2] != ':') {
        text[10] = 'T'; /* 't' and a space mean the same */
    }
    if (text[t.s.len - 1] == 'z') {
        text[t.s.len - 1] = 'Z';
    }
    struct str s = str_n(text, t.s.len);
    return p->tagged ? make_tagged(p, t.offset, type, s, ret)
                     : toml_make_string(p, t.offset, s, ret);
}

static int date_or_time(struct toml_parser *p, struct token t, struct json **ret)
{
    if (byte_is(t.s, 2, ':') && is_time(t.s)) {
        return make_date(p, t, "time-local", ret);
    }
    if (t.s.len == 10 && is_date(t.s)) {
        return make_date(p, t, "date-local", ret);
    }
    struct str rest = str_slice(t.s, 11, t.s.len);
    int zone = zone_len(rest);
    bool sep = byte_is(t.s, 10, 'T') || byte_is(t.s, 10, 't') || byte_is(t.s, 10, ' ');
    if (sep && zone >= 0 && is_date(str_slice(t.s, 0, 10)) &&
        is_time(str_slice(rest, 0, rest.len - (size_t)zone))) {
        return make_date(p, t, zone > 0 ? "datetime" : "datetime-local", ret);
    }
    return toml_fail(p, t.offset, "'%.*s' is not a date or time (as 1979-05-27T07:32:00Z)",
                     (int)(t.s.len > 60 ? 60 : t.s.len), t.s.ptr);
}

/* --- telling them apart --- */

static bool is_token(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '.' || c == ':';
}

static void skip_token(struct toml_parser *p)
{
    while (is_token(toml_peek(p))) {
        p->at++;
    }
}

static bool looks_like_date(struct str s)
{
    return (fixed_digits(s, 0, 4) >= 0 && byte_is(s, 4, '-')) ||
           (fixed_digits(s, 0, 2) >= 0 && byte_is(s, 2, ':'));
}

static struct token cut_token(struct toml_parser *p)
{
    size_t start = p->at;
    skip_token(p);
    struct str s = str_n(p->text.ptr + start, p->at - start);
    /* A date and a time may be joined by one space. */
    if (is_date(s) && toml_peek(p) == ' ' && fixed_digits(p->text, p->at + 1, 2) >= 0 &&
        byte_is(p->text, p->at + 3, ':')) {
        p->at++;
        skip_token(p);
    }
    return (struct token) { str_n(p->text.ptr + start, p->at - start), start };
}

static int make_bool(struct toml_parser *p, struct token t, struct json **ret)
{
    if (p->tagged) {
        return make_tagged(p, t.offset, "bool", t.s, ret);
    }
    int r = toml_new(p, JSON_BOOL, t.offset, ret);
    if (r == 0) {
        (*ret)->boolean = t.s.ptr[0] == 't';
    }
    return r;
}

static int number_base(struct str s)
{
    if (s.len < 2 || s.ptr[0] != '0') {
        return 10;
    }
    switch (s.ptr[1]) {
    case 'x':
        return 16;
    case 'o':
        return 8;
    case 'b':
        return 2;
    default:
        return 10;
    }
}

int toml_scalar(struct toml_parser *p, struct json **ret)
{
    struct token t = cut_token(p);
    if (t.s.len == 0) {
        char found[TOML_FOUND_LEN];
        return toml_fail(p, t.offset, "expected a value, found %s", toml_found(p, found));
    }
    if (str_eqc(t.s, "true") || str_eqc(t.s, "false")) {
        return make_bool(p, t, ret);
    }
    if (is_special_float(t.s)) {
        return floating(p, t, ret);
    }
    struct str body = without_sign(t.s);
    if (body.len == 0 || !is_digit(body.ptr[0])) {
        return toml_fail(p, t.offset, "'%.*s' is not a value (a string needs quotes)",
                         (int)(t.s.len > 60 ? 60 : t.s.len), t.s.ptr);
    }
    if (looks_like_date(t.s)) {
        return date_or_time(p, t, ret);
    }
    int base = number_base(t.s);
    bool decimal_point = str_find(t.s, STR(".")) < t.s.len;
    bool exponent = str_find(t.s, STR("e")) < t.s.len || str_find(t.s, STR("E")) < t.s.len;
    return base == 10 && (decimal_point || exponent) ? floating(p, t, ret)
                                                     : integer(p, t, base, ret);
}
