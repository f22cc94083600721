/* SPDX-License-Identifier: MIT
 *
 * "{} is {name:>8.2f}".format(…): fields with attributes and elements, conversions, and the format
 * specification of strings and numbers, with one level of fields inside a specification.
 */
#include "template/template_value_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "template/template_format_priv.h"
#include "template/template_render_priv.h"
#include "template/template_unicode.h"

struct brace {
    struct render *r;
    const struct call_args *args;
    int64_t automatic; /* next number of "{}"; -1 once a field has a number */
    bool markup;       /* values are escaped */
};

struct brace_spec {
    struct layout layout;
    bool has_align, alt, zero;
    char sign; /* '-' '+' ' ' */
    char group;
    int64_t precision;
    char type;
};

static int write_format(struct brace *b, struct str format, unsigned depth, struct buf *out);

static int fail_brace(struct brace *b, const char *why)
{
    return tpl_render_fail(b->r, TEMPLATE_FAULT_VALUE, "format(): %s", why);
}

/* --- the specification --- */

static bool is_align(uint32_t c)
{
    return c == '<' || c == '>' || c == '^' || c == '=';
}

static int read_count(struct brace *b, struct str s, size_t *at, int64_t *ret)
{
    int64_t n = 0;
    size_t from = *at;
    while (*at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9') {
        n = n * 10 + (s.ptr[(*at)++] - '0');
        if (n > FORMAT_WIDTH) {
            return tpl_render_fail(b->r, TEMPLATE_FAULT_LIMIT, "a width beyond %d", FORMAT_WIDTH);
        }
    }
    *ret = *at == from ? -1 : n;
    return 0;
}

static void read_align(struct str s, size_t *at, struct brace_spec *spec)
{
    size_t second = 0;
    spec->layout.fill[0] = ' ';
    spec->layout.fill_len = 1;
    if (s.len == 0) {
        return;
    }
    (void)unicode_next(s, &second);
    if (second < s.len && is_align((unsigned char)s.ptr[second])) {
        memcpy(spec->layout.fill, s.ptr, second);
        spec->layout.fill_len = second;
        spec->layout.align = s.ptr[second];
        spec->has_align = true;
        *at = second + 1;
    } else if (is_align((unsigned char)s.ptr[0])) {
        spec->layout.align = s.ptr[0];
        spec->has_align = true;
        *at = 1;
    }
}

/* Sign, '#' and '0'. */
static void read_flags(struct str s, size_t *at, struct brace_spec *spec)
{
    if (*at < s.len && (s.ptr[*at] == '+' || s.ptr[*at] == '-' || s.ptr[*at] == ' ')) {
        spec->sign = s.ptr[(*at)++];
    }
    spec->alt = *at < s.len && s.ptr[*at] == '#';
    *at += spec->alt;
    spec->zero = *at < s.len && s.ptr[*at] == '0';
    *at += spec->zero;
    if (spec->zero && !spec->has_align) {
        spec->layout.fill[0] = '0';
        spec->layout.align = '=';
    }
}

static int parse_spec(struct brace *b, struct str s, struct brace_spec *spec)
{
    size_t at = 0;
    *spec = (struct brace_spec) { .sign = '-', .precision = -1 };
    read_align(s, &at, spec);
    read_flags(s, &at, spec);
    int rc = read_count(b, s, &at, &spec->layout.width);
    if (rc == 0 && at < s.len && (s.ptr[at] == ',' || s.ptr[at] == '_')) {
        spec->group = s.ptr[at++];
    }
    if (rc == 0 && at < s.len && s.ptr[at] == '.') {
        at++;
        rc = read_count(b, s, &at, &spec->precision);
        if (rc == 0 && (spec->precision < 0 || spec->precision > FORMAT_PRECISION)) {
            return fail_brace(b, "a precision is missing or too large");
        }
    }
    if (rc == 0 && at < s.len) {
        spec->type = s.ptr[at++];
    }
    return rc < 0 || at == s.len ? rc : fail_brace(b, "an invalid format specification");
}

static struct str sign_text(const struct brace_spec *spec, bool negative)
{
    return negative            ? STR("-")
           : spec->sign == '+' ? STR("+")
           : spec->sign == ' ' ? STR(" ")
                               : STR_EMPTY;
}

static int put_text(struct brace *b, struct brace_spec *spec, struct str s, struct buf *out)
{
    bool ok = (spec->type == '\0' || spec->type == 's') && spec->group == '\0' && !spec->alt &&
              spec->sign == '-' && (spec->layout.align != '=' || !spec->has_align);
    if (!ok) {
        return fail_brace(b, "a specification that does not fit a string");
    }
    if (spec->precision >= 0) {
        s.len = unicode_offset(s, (size_t)spec->precision);
    }
    if (!spec->has_align) {
        spec->layout.align = '<';
    }
    return tpl_format_place(b->r, out, &spec->layout, STR_EMPTY, s);
}

static int put_number(struct brace *b, struct brace_spec *spec, struct str sign, struct str digits,
                      struct buf *out)
{
    CLEANUP(buf) struct buf body = BUF_INIT(2 * FORMAT_PRECISION + 2000);
    size_t size = spec->type == 'b' || spec->type == 'o' || (spec->type | 0x20) == 'x' ? 4 : 3;
    int rc = spec->group != '\0' ? tpl_format_grouped(&body, digits, spec->group, size)
                                 : buf_append(&body, digits, NULL);
    if (spec->layout.align == '\0') {
        spec->layout.align = '>';
    }
    return rc < 0 ? tpl_render_fail_output(b->r)
                  : tpl_format_place(b->r, out, &spec->layout, sign, buf_str(&body));
}

/* General format without a type: as str(), or %g with a precision, but with a point. */
static int general_real(struct buf *out, double d, int64_t precision)
{
    if (precision < 0) {
        char text[TEMPLATE_FLOAT_LEN];
        size_t n = template_write_float(fabs(d), text);
        return buf_append(out, str_n(text, n), NULL);
    }
    int digits = precision == 0 ? 1 : (int)precision;
    char probe[FORMAT_PRECISION + 40];
    (void)snprintf(probe, sizeof probe, "%.*e", digits - 1, fabs(d));
    const char *mark = strchr(probe, 'e');
    int exp = mark == NULL ? 0 : (int)strtol(mark + 1, NULL, 10);
    int rc = tpl_format_real(out, d, 'g', digits, false);
    bool plain = isfinite(d) && exp >= -4 && exp < digits;
    /* %g drops ".0"; Python keeps one digit after the point where it fits. */
    if (rc == 0 && plain && memchr(out->ptr, '.', out->len) == NULL) {
        if (exp + 1 < digits) {
            return buf_append(out, STR(".0"), NULL);
        }
        buf_reset(out);
        (void)snprintf(probe, sizeof probe, "%.*e", digits - 1, fabs(d));
        char *e = strchr(probe, 'e');
        while (e > probe + 1 && e[-1] == '0' && memchr(probe, '.', (size_t)(e - probe)) != NULL) {
            memmove(e - 1, e, strlen(e) + 1);
            e--;
        }
        if (e[-1] == '.') {
            memmove(e - 1, e, strlen(e) + 1);
        }
        return buf_append(out, str_of(probe), NULL);
    }
    return rc;
}

static int put_real(struct brace *b, struct brace_spec *spec, double d, struct buf *out)
{
    char type = spec->type == 'n' ? 'g' : spec->type;
    CLEANUP(buf) struct buf body = BUF_INIT(FORMAT_PRECISION + 500);
    int rc = 0;
    if (type == '\0') {
        rc = general_real(&body, d, spec->precision);
    } else if (strchr("eEfFgG%", type) == NULL) {
        return fail_brace(b, "an unknown type for a float");
    } else {
        int precision = spec->precision < 0 ? 6 : (int)spec->precision;
        bool percent = type == '%';
        rc = tpl_format_real(&body, percent ? d * 100 : d, percent ? 'f' : type, precision,
                             spec->alt);
        rc = rc < 0 || !percent ? rc : buf_append_c(&body, '%', NULL);
    }
    if (rc < 0) {
        return tpl_render_fail_output(b->r);
    }
    return put_number(b, spec, sign_text(spec, signbit(d) && !isnan(d)), buf_str(&body), out);
}

static int put_char(struct brace *b, struct brace_spec *spec, int64_t i, struct buf *out)
{
    char bytes[4];
    if (!unicode_is_scalar(i)) {
        return fail_brace(b, "no character has this number");
    }
    struct str c = str_n(bytes, unicode_encode((uint32_t)i, bytes));
    spec->layout.align = spec->layout.align == '\0' ? '<' : spec->layout.align;
    return tpl_format_place(b->r, out, &spec->layout, STR_EMPTY, c);
}

static int put_integer(struct brace *b, struct brace_spec *spec, int64_t i, struct buf *out)
{
    static const struct {
        char type;
        unsigned base;
        const char *prefix;
    } bases[] = {
        { 'd', 10, "" }, { 'x', 16, "0x" }, { 'X', 16, "0X" }, { 'o', 8, "0o" }, { 'b', 2, "0b" }
    };
    char type = spec->type == '\0' || spec->type == 'n' ? 'd' : spec->type;
    if (strchr("eEfFgG%", type) != NULL) {
        return put_real(b, spec, (double)i, out);
    }
    size_t at = 0;
    while (at < ARRAY_LEN(bases) && bases[at].type != type) {
        at++;
    }
    bool known = type == 'c' || at < ARRAY_LEN(bases);
    if (!known || spec->precision >= 0 || (spec->group == ',' && type != 'd')) {
        return fail_brace(b, "a specification that does not fit an integer");
    }
    if (type == 'c') {
        return put_char(b, spec, i, out);
    }
    char sign[8];
    struct str mark = sign_text(spec, i < 0);
    (void)snprintf(sign, sizeof sign, "%.*s%s", STR_ARG(mark), spec->alt ? bases[at].prefix : "");
    char digits[72];
    size_t n = tpl_format_digits(i, bases[at].base, type == 'X', digits);
    return put_number(b, spec, str_of(sign), str_n(digits, n), out);
}

static int put_value(struct brace *b, const struct value *v, struct str spec_text, struct buf *out)
{
    struct brace_spec spec;
    if (spec_text.len == 0) {
        return tpl_value_write_str(b->r, v, out);
    }
    int rc = parse_spec(b, spec_text, &spec);
    if (rc < 0) {
        return rc;
    }
    if (v->kind == VALUE_STRING) {
        return put_text(b, &spec, v->string, out);
    }
    if (value_is_integral(v)) {
        return put_integer(b, &spec, value_integer(v), out);
    }
    if (v->kind == VALUE_FLOAT) {
        return put_real(b, &spec, v->real, out);
    }
    /* TypeError in Python, also for an undefined value */
    return tpl_render_fail(b->r, TEMPLATE_FAULT_VALUE, "a %s takes no format specification",
                           tpl_value_type(v));
}

/* In markup, what comes from outside is escaped. */
static int put_escaped(struct brace *b, const struct value *v, struct str spec, struct buf *out)
{
    if (!b->markup || (v->kind == VALUE_STRING && v->markup && spec.len == 0)) {
        return put_value(b, v, spec, out);
    }
    int rc = put_value(b, v, spec, tpl_render_capture(b->r));
    struct value text = tpl_render_captured(b->r);
    struct value escaped;
    rc = rc < 0 ? rc : tpl_value_escape(b->r, &text, &escaped);
    return rc < 0 ? rc : tpl_value_write_str(b->r, &escaped, out);
}

/* --- fields --- */

static int first_value(struct brace *b, struct str name, struct value *ret)
{
    int64_t n;
    bool number = name.len > 0 && name.ptr[0] != '-' && str_to_i64(name, &n);
    if (name.len > 0 && !number) {
        for (size_t i = 0; i < b->args->named_len; i++) {
            if (str_eq(b->args->named[i].name, name)) {
                *ret = b->args->named[i].value;
                return 0;
            }
        }
        return fail_brace(b, "a name without value");
    }
    if ((number && b->automatic > 0) || (!number && b->automatic < 0)) {
        return fail_brace(b, "fields with and without numbers are mixed");
    }
    if (!number) {
        n = b->automatic++;
    } else {
        b->automatic = -1;
    }
    if ((uint64_t)n >= b->args->plain_len) {
        return fail_brace(b, "not enough values");
    }
    *ret = b->args->plain[n];
    return 0;
}

/* ".name" or "[key]" at s; moves s behind it. */
static int field_step(struct brace *b, struct str *s, struct value *v)
{
    struct value from = *v;
    bool bracket = s->ptr[0] == '[';
    size_t end = 1;
    while (end < s->len &&
           (bracket ? s->ptr[end] != ']' : s->ptr[end] != '.' && s->ptr[end] != '[')) {
        end++;
    }
    struct str name = str_slice(*s, 1, end);
    if ((!bracket && s->ptr[0] != '.') || name.len == 0 || (bracket && end == s->len)) {
        return fail_brace(b, "an invalid field name");
    }
    *s = str_slice(*s, end + bracket, s->len);
    if (!bracket) {
        return tpl_value_attribute(b->r, &from, name, v);
    }
    int64_t n;
    struct value key = str_to_i64(name, &n) && n >= 0 ? value_int(n) : value_text(name);
    return tpl_value_item(b->r, &from, &key, v);
}

static int field_value(struct brace *b, struct str name, struct value *ret)
{
    size_t end = 0;
    while (end < name.len && name.ptr[end] != '.' && name.ptr[end] != '[') {
        end++;
    }
    int rc = first_value(b, str_slice(name, 0, end), ret);
    struct str rest = str_slice(name, end, name.len);
    while (rc == 0 && rest.len > 0) {
        rc = field_step(b, &rest, ret);
    }
    return rc;
}

static int convert(struct brace *b, char how, struct value *v)
{
    if (how == 's') {
        struct value from = *v;
        return tpl_value_to_text(b->r, &from, v);
    }
    if (how != 'r') {
        return fail_brace(b, "an unknown conversion");
    }
    int rc = tpl_value_write_repr(b->r, v, tpl_render_capture(b->r));
    *v = tpl_render_captured(b->r);
    return rc;
}

/* One field without its braces: name, "!r", ":spec". */
static int write_field(struct brace *b, struct str field, unsigned depth, struct buf *out)
{
    size_t end = 0;
    bool bracket = false;
    while (end < field.len && (bracket || (field.ptr[end] != '!' && field.ptr[end] != ':'))) {
        bracket = field.ptr[end] == '[' || (bracket && field.ptr[end] != ']');
        end++;
    }
    struct value v;
    struct str spec = str_slice(field, end, field.len);
    int rc = field_value(b, str_slice(field, 0, end), &v);
    if (rc == 0 && spec.len > 0 && spec.ptr[0] == '!') {
        if (spec.len < 2 || (spec.len > 2 && spec.ptr[2] != ':')) {
            return fail_brace(b, "an invalid conversion");
        }
        rc = convert(b, spec.ptr[1], &v);
        spec = str_slice(spec, 2, spec.len);
    }
    if (rc < 0) {
        return rc;
    }
    spec = str_slice(spec, 1, spec.len);
    struct buf *made = tpl_render_capture(b->r);
    rc = write_format(b, spec, depth + 1, made);
    struct value made_spec = tpl_render_captured(b->r);
    return rc < 0 ? rc : put_escaped(b, &v, made_spec.string, out);
}

/* End of the field that begins at `at`, behind its brace. */
static size_t field_end(struct str s, size_t at)
{
    unsigned depth = 1;
    for (; at < s.len; at++) {
        depth += s.ptr[at] == '{';
        depth -= s.ptr[at] == '}';
        if (depth == 0) {
            break;
        }
    }
    return at;
}

static int write_format(struct brace *b, struct str format, unsigned depth, struct buf *out)
{
    if (depth > 2) {
        return fail_brace(b, "fields nest too deep");
    }
    int rc = 0;
    for (size_t at = 0; at < format.len && rc == 0; at++) {
        char c = format.ptr[at];
        bool twice = at + 1 < format.len && format.ptr[at + 1] == c;
        if (c == '{' && !(twice && depth == 0)) {
            size_t end = field_end(format, at + 1);
            if (end >= format.len) {
                return fail_brace(b, "a '{' is not closed");
            }
            rc = write_field(b, str_slice(format, at + 1, end), depth, out);
            at = end;
        } else if (c == '}' && !twice) {
            return fail_brace(b, "a '}' was not opened");
        } else {
            at += c == '{' || c == '}';
            rc = buf_append_c(out, c, NULL) < 0 ? tpl_render_fail_output(b->r) : 0;
        }
        rc = rc < 0 ? rc : render_step(b->r);
    }
    return rc;
}

int tpl_value_brace_format(struct render *r, const struct value *format,
                           const struct call_args *args, struct value *out)
{
    struct brace b = { .r = r, .args = args, .markup = format->markup };
    int rc = write_format(&b, format->string, 0, tpl_render_capture(r));
    *out = tpl_render_captured(r);
    out->markup = format->markup;
    return rc;
}
