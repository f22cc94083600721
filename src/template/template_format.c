/* SPDX-License-Identifier: MIT
 *
 * "%s is %d" % values: printf as Python has it, for the operator % and the filter format. An
 * argument that can be subscripted serves %(name)s; a tuple is taken apart; anything else is the
 * one argument.
 */
#include "template/template_value_priv.h"

#include <math.h>
#include <stdio.h>

#include "template/template_format_priv.h"
#include "template/template_render_priv.h"
#include "template/template_unicode.h"

size_t tpl_format_digits(int64_t i, unsigned base, bool upper, char out[72])
{
    const char *symbols = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    uint64_t n = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    char reversed[72];
    size_t len = 0;
    do {
        reversed[len++] = symbols[n % base];
        n /= base;
    } while (n > 0);
    for (size_t k = 0; k < len; k++) {
        out[k] = reversed[len - 1 - k];
    }
    return len;
}

int tpl_format_grouped(struct buf *out, struct str digits, char mark, size_t size)
{
    size_t whole = 0;
    while (whole < digits.len && digits.ptr[whole] != '.' && digits.ptr[whole] != 'e') {
        whole++;
    }
    int rc = 0;
    for (size_t i = 0; i < whole && rc == 0; i++) {
        bool border = i > 0 && (whole - i) % size == 0;
        rc = border ? buf_append_c(out, mark, NULL) : 0;
        rc = rc < 0 ? rc : buf_append_c(out, digits.ptr[i], NULL);
    }
    return rc < 0 ? rc : buf_append(out, str_slice(digits, whole, digits.len), NULL);
}

int tpl_format_real(struct buf *out, double d, char type, int precision, bool alt)
{
    const char *const specs[] = { "%.*e", "%#.*e", "%.*E", "%#.*E", "%.*f", "%#.*f",
                                  "%.*F", "%#.*F", "%.*g", "%#.*g", "%.*G", "%#.*G" };
    static const char types[] = "eEfFgG";
    const char *at = strchr(types, type);
    size_t which = at == NULL ? 0 : (size_t)(at - types);
    char text[FORMAT_PRECISION + 400];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int n = snprintf(text, sizeof text, specs[which * 2 + alt], precision, fabs(d));
#pragma GCC diagnostic pop
    return buf_append(out, str_n(text, (size_t)n), NULL);
}

static int add_fill(struct buf *out, const struct layout *l, int64_t count)
{
    int rc = 0;
    for (int64_t i = 0; i < count && rc == 0; i++) {
        rc = buf_append(out, str_n(l->fill, l->fill_len), NULL);
    }
    return rc;
}

int tpl_format_place(struct render *r, struct buf *out, const struct layout *l, struct str sign,
                     struct str body)
{
    int64_t len = (int64_t)(unicode_len(sign) + unicode_len(body));
    int64_t pad = l->width > len ? l->width - len : 0;
    int64_t left = l->align == '>' ? pad : l->align == '^' ? pad / 2 : 0;
    int64_t inner = l->align == '=' ? pad : 0;
    int rc = add_fill(out, l, left);
    rc = rc < 0 ? rc : buf_append(out, sign, NULL);
    rc = rc < 0 ? rc : add_fill(out, l, inner);
    rc = rc < 0 ? rc : buf_append(out, body, NULL);
    rc = rc < 0 ? rc : add_fill(out, l, pad - left - inner);
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

/* --- the percent language --- */

struct percent {
    struct render *r;
    struct str format;
    size_t at;
    const struct value *values;
    struct value single; /* the argument that is not a tuple */
    int64_t next, count; /* CPython's argidx and arglen */
    bool mapping, markup;
    struct buf *out;
};

struct percent_spec {
    bool left, plus, blank, alt, zero;
    int64_t width;
    int64_t precision; /* -1: none */
    char type;
};

static int fail_percent(struct percent *p, const char *why)
{
    return tpl_render_fail(p->r, TEMPLATE_FAULT_VALUE, "%s in the format '%.*s'", why,
                           (int)(p->format.len > 60 ? 60 : p->format.len), p->format.ptr);
}

static int next_value(struct percent *p, struct value *ret)
{
    if (p->next >= p->count) {
        return fail_percent(p, "not enough values");
    }
    *ret = p->count < 0 ? p->single : p->values->list->items[p->next];
    p->next++;
    return 0;
}

static char peek(const struct percent *p)
{
    return p->at < p->format.len ? p->format.ptr[p->at] : '\0';
}

static int parse_key(struct percent *p)
{
    if (peek(p) != '(') {
        return 0;
    }
    if (!p->mapping) {
        return fail_percent(p, "named values need a dict");
    }
    size_t from = ++p->at;
    unsigned depth = 1;
    while (p->at < p->format.len && depth > 0) {
        depth += p->format.ptr[p->at] == '(';
        depth -= p->format.ptr[p->at] == ')';
        p->at++;
    }
    if (depth > 0) {
        return fail_percent(p, "a name is not closed");
    }
    struct value key = value_text(str_slice(p->format, from, p->at - 1));
    const struct value *found = NULL;
    if (p->values->kind == VALUE_UNDEFINED) {
        return tpl_render_fail_undefined(p->r, p->values);
    }
    if (p->values->kind == VALUE_DICT) {
        found = tpl_dict_find_text(p->values->dict, key.string);
    }
    if (found == NULL) {
        return fail_percent(p, "a name without value");
    }
    p->single = *found;
    p->next = -2;
    p->count = -1;
    return 0;
}

/* A number, or '*' for the next value. */
static int parse_number(struct percent *p, int64_t *ret)
{
    if (peek(p) == '*') {
        struct value v;
        p->at++;
        int rc = next_value(p, &v);
        rc = rc < 0 ? rc : tpl_arg_int(p->r, &v, 0, ret);
        return rc < 0 || (*ret <= FORMAT_WIDTH && *ret >= -FORMAT_WIDTH)
                   ? rc
                   : tpl_render_fail(p->r, TEMPLATE_FAULT_LIMIT, "a width beyond %d", FORMAT_WIDTH);
    }
    int64_t n = 0;
    while (peek(p) >= '0' && peek(p) <= '9') {
        n = n * 10 + (peek(p) - '0');
        p->at++;
        if (n > FORMAT_WIDTH) {
            return tpl_render_fail(p->r, TEMPLATE_FAULT_LIMIT, "a width beyond %d", FORMAT_WIDTH);
        }
    }
    *ret = n;
    return 0;
}

static int parse_spec(struct percent *p, struct percent_spec *s)
{
    *s = (struct percent_spec) { .precision = -1 };
    int rc = parse_key(p);
    for (bool more = true; more && rc == 0; p->at += more) {
        char c = peek(p);
        s->left |= c == '-';
        s->plus |= c == '+';
        s->blank |= c == ' ';
        s->alt |= c == '#';
        s->zero |= c == '0';
        more = c != '\0' && strchr("-+ #0", c) != NULL;
    }
    rc = rc < 0 ? rc : parse_number(p, &s->width);
    if (s->width < 0) {
        s->left = true;
        s->width = -s->width;
    }
    if (rc == 0 && peek(p) == '.') {
        p->at++;
        rc = parse_number(p, &s->precision);
        s->precision = s->precision < 0 ? 0 : s->precision;
        if (rc == 0 && s->precision > FORMAT_PRECISION) {
            return tpl_render_fail(p->r, TEMPLATE_FAULT_LIMIT, "a precision beyond %d",
                                   FORMAT_PRECISION);
        }
    }
    if (peek(p) == 'h' || peek(p) == 'l' || peek(p) == 'L') {
        p->at++;
    }
    if (rc == 0 && p->at >= p->format.len) {
        return fail_percent(p, "an incomplete conversion");
    }
    s->type = peek(p);
    p->at++;
    return rc;
}

static struct layout layout_of(const struct percent_spec *s, bool number)
{
    bool zero = s->zero && number && !s->left;
    return (struct layout) { .align = s->left ? '<'
                                      : zero  ? '='
                                              : '>',
                             .fill = { zero ? '0' : ' ' },
                             .fill_len = 1,
                             .width = s->width };
}

static struct str sign_of(const struct percent_spec *s, bool negative)
{
    return negative ? STR("-") : s->plus ? STR("+") : s->blank ? STR(" ") : STR_EMPTY;
}

static int put_text(struct percent *p, const struct percent_spec *s, const struct value *v)
{
    struct value text;
    int rc = 0;
    if (s->type == 's') {
        rc = tpl_value_to_text(p->r, v, &text);
    } else {
        rc = tpl_value_write_repr(p->r, v, tpl_render_capture(p->r));
        text = tpl_render_captured(p->r);
    }
    if (rc == 0 && p->markup) {
        struct value plain = text;
        plain.markup = s->type == 's' && text.markup;
        rc = tpl_value_escape(p->r, &plain, &text);
    }
    if (rc < 0) {
        return rc;
    }
    struct str body = text.string;
    if (s->precision >= 0) {
        body.len = unicode_offset(body, (size_t)s->precision);
    }
    struct layout l = layout_of(s, false);
    return tpl_format_place(p->r, p->out, &l, STR_EMPTY, body);
}

static int to_integer(struct percent *p, const struct percent_spec *s, const struct value *v,
                      int64_t *ret)
{
    bool decimal = s->type == 'd' || s->type == 'i' || s->type == 'u';
    if (v->kind == VALUE_FLOAT && decimal) {
        if (!isfinite(v->real)) {
            return fail_percent(p, "no finite number for an integer");
        }
        if (v->real >= 0x1p63 || v->real < -0x1p63) {
            return tpl_render_fail(p->r, TEMPLATE_FAULT_LIMIT, "the number has more than 64 bits");
        }
        *ret = (int64_t)v->real;
        return 0;
    }
    if (!value_is_integral(v)) {
        if (v->kind == VALUE_UNDEFINED && decimal) {
            return tpl_render_fail_undefined(p->r, v);
        }
        return fail_percent(p, "no integer where one is needed");
    }
    *ret = value_integer(v);
    return 0;
}

static int put_integer(struct percent *p, const struct percent_spec *s, const struct value *v)
{
    int64_t i = 0;
    int rc = to_integer(p, s, v, &i);
    if (rc < 0) {
        return rc;
    }
    unsigned base = s->type == 'o' ? 8 : (s->type | 0x20) == 'x' ? 16 : 10;
    char sign[8];
    const char *prefix = !s->alt || base == 10 ? ""
                         : base == 8           ? "0o"
                         : s->type == 'X'      ? "0X"
                                               : "0x";
    struct str mark = sign_of(s, i < 0);
    (void)snprintf(sign, sizeof sign, "%.*s%s", STR_ARG(mark), prefix);
    char digits[72];
    size_t n = tpl_format_digits(i, base, s->type == 'X', digits);
    CLEANUP(buf) struct buf body = BUF_INIT(FORMAT_PRECISION + 100);
    for (int64_t k = (int64_t)n; k < s->precision && rc == 0; k++) {
        rc = buf_append_c(&body, '0', NULL);
    }
    rc = rc < 0 ? rc : buf_append(&body, str_n(digits, n), NULL);
    struct layout l = layout_of(s, true);
    return rc < 0 ? tpl_render_fail_output(p->r)
                  : tpl_format_place(p->r, p->out, &l, str_of(sign), buf_str(&body));
}

static int put_real(struct percent *p, const struct percent_spec *s, const struct value *v)
{
    if (!value_is_number(v)) {
        return v->kind == VALUE_UNDEFINED ? tpl_render_fail_undefined(p->r, v)
                                          : fail_percent(p, "no number where one is needed");
    }
    double d = value_real(v);
    int precision = s->precision < 0 ? 6 : (int)s->precision;
    CLEANUP(buf) struct buf body = BUF_INIT(FORMAT_PRECISION + 400);
    int rc = tpl_format_real(&body, d, s->type, precision, s->alt);
    struct layout l = layout_of(s, true);
    return rc < 0 ? tpl_render_fail_output(p->r)
                  : tpl_format_place(p->r, p->out, &l, sign_of(s, signbit(d) && !isnan(d)),
                                     buf_str(&body));
}

static int put_char(struct percent *p, const struct percent_spec *s, const struct value *v)
{
    char bytes[4];
    struct str body;
    if (v->kind == VALUE_STRING && unicode_len(v->string) == 1) {
        body = v->string;
    } else if (value_is_integral(v) && value_integer(v) >= 0 && value_integer(v) < 0x110000 &&
               !(value_integer(v) >= 0xd800 && value_integer(v) < 0xe000)) {
        body = str_n(bytes, unicode_encode((uint32_t)value_integer(v), bytes));
    } else {
        return fail_percent(p, "no character where one is needed");
    }
    struct layout l = layout_of(s, false);
    return tpl_format_place(p->r, p->out, &l, STR_EMPTY, body);
}

static int put_one(struct percent *p)
{
    struct percent_spec s;
    struct value v;
    if (peek(p) == '%') {
        p->at++;
        return buf_append_c(p->out, '%', NULL) < 0 ? tpl_render_fail_output(p->r) : 0;
    }
    int rc = parse_spec(p, &s);
    rc = rc < 0 ? rc : next_value(p, &v);
    if (rc < 0) {
        return rc;
    }
    switch (s.type) {
    case 's':
    case 'r':
        return put_text(p, &s, &v);
    case 'c':
        return put_char(p, &s, &v);
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        return put_integer(p, &s, &v);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        return put_real(p, &s, &v);
    default:
        return fail_percent(p, "an unknown conversion");
    }
}

int tpl_value_percent(struct render *r, const struct value *format, const struct value *values,
                      struct value *out)
{
    struct percent p = { .r = r, .format = format->string, .values = values, .single = *values };
    bool tuple = values->kind == VALUE_TUPLE;
    p.count = tuple ? (int64_t)values->list->len : -1;
    p.next = tuple ? 0 : -2;
    p.mapping = values->kind == VALUE_DICT || values->kind == VALUE_LIST ||
                values->kind == VALUE_RANGE || values->kind == VALUE_UNDEFINED;
    p.markup = format->markup;
    p.out = tpl_render_capture(r);
    int rc = 0;
    while (rc == 0 && p.at < p.format.len) {
        const char *mark = memchr(p.format.ptr + p.at, '%', p.format.len - p.at);
        size_t to = mark == NULL ? p.format.len : (size_t)(mark - p.format.ptr);
        if (buf_append(p.out, str_slice(p.format, p.at, to), NULL) < 0) {
            rc = tpl_render_fail_output(r);
        }
        p.at = to + 1;
        rc = rc < 0 || mark == NULL ? rc : put_one(&p);
        rc = rc < 0 ? rc : render_step(r);
    }
    if (rc == 0 && p.next < p.count && !p.mapping) {
        rc = fail_percent(&p, "more values than conversions");
    }
    *out = tpl_render_captured(r);
    out->markup = p.markup;
    return rc;
}
