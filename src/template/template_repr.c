/* SPDX-License-Identifier: MIT
 *
 * Values as text: str(), repr() and JSON, written as Python writes them.
 */
#include "template/template_value_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "template/template_render_priv.h"
#include "template/template_unicode.h"

static int add(struct render *r, struct buf *out, struct str s)
{
    return render_write(r, out, s);
}

static int add_text(struct render *r, struct buf *out, const char *s)
{
    return add(r, out, str_of(s));
}

/* --- numbers --- */

/* Digits and decimal exponent of the shortest %e form that reads back as d. */
static int shortest(double d, char digits[32])
{
    char text[48];
    /* 15 digits or fewer always come out as they went in, but for the tiny numbers, which have less
     * precision than that. */
    for (int precision = d < 0x1p-1021 ? 0 : 14; precision <= 16; precision++) {
        (void)snprintf(text, sizeof text, "%.*e", precision, d);
        if (strtod(text, NULL) == d) {
            break;
        }
    }
    size_t n = 0;
    const char *p = text;
    for (; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') {
            digits[n++] = *p;
        }
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    digits[n] = '\0';
    return (int)strtol(p + 1, NULL, 10);
}

size_t template_write_float(double d, char out[TEMPLATE_FLOAT_LEN])
{
    if (isnan(d)) {
        return (size_t)snprintf(out, TEMPLATE_FLOAT_LEN, "nan");
    }
    if (isinf(d)) {
        return (size_t)snprintf(out, TEMPLATE_FLOAT_LEN, d < 0 ? "-inf" : "inf");
    }
    const char *sign = signbit(d) ? "-" : "";
    char digits[32];
    int exp = shortest(fabs(d), digits);
    int n = (int)strlen(digits);
    if (exp < -4 || exp >= 16) {
        return (size_t)snprintf(out, TEMPLATE_FLOAT_LEN, "%s%c%s%se%c%02d", sign, digits[0],
                                n > 1 ? "." : "", digits + 1, exp < 0 ? '-' : '+', abs(exp));
    }
    if (exp < 0) {
        return (size_t)snprintf(out, TEMPLATE_FLOAT_LEN, "%s0.%.*s%s", sign, -exp - 1, "0000",
                                digits);
    }
    if (n <= exp + 1) {
        return (size_t)snprintf(out, TEMPLATE_FLOAT_LEN, "%s%s%.*s.0", sign, digits, exp + 1 - n,
                                "0000000000000000");
    }
    return (size_t)snprintf(out, TEMPLATE_FLOAT_LEN, "%s%.*s.%s", sign, exp + 1, digits,
                            digits + exp + 1);
}

static int add_float(struct render *r, struct buf *out, double d)
{
    char text[TEMPLATE_FLOAT_LEN];
    size_t n = template_write_float(d, text);
    return add(r, out, str_n(text, n));
}

static int add_int(struct render *r, struct buf *out, int64_t i)
{
    char text[24];
    char *p = text + sizeof text;
    uint64_t n = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    do { /* several times faster than printf, and templates print many integers */
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    if (i < 0) {
        *--p = '-';
    }
    return add(r, out, str_n(p, (size_t)(text + sizeof text - p)));
}

/* --- repr --- */

static int repr_char(struct render *r, struct buf *out, uint32_t c, struct str bytes, char quote)
{
    static const char escapes[] = "\\\\\nn\rr\tt";
    for (size_t i = 0; i + 1 < sizeof escapes; i += 2) {
        if (c == (unsigned char)escapes[i]) {
            return add(r, out, str_n((char[]) { '\\', escapes[i + 1] }, 2));
        }
    }
    if (c == (unsigned char)quote) {
        return add(r, out, str_n((char[]) { '\\', quote }, 2));
    }
    if (unicode_is_printable(c)) {
        return add(r, out, bytes);
    }
    char text[16];
    int n = snprintf(text, sizeof text,
                     c < 0x100     ? "\\x%02x"
                     : c < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
                     c);
    return add(r, out, str_n(text, (size_t)n));
}

static int repr_text(struct render *r, struct buf *out, const struct value *v)
{
    struct str s = v->string;
    bool single = s.len > 0 && memchr(s.ptr, '\'', s.len) != NULL;
    bool both = single && memchr(s.ptr, '"', s.len) != NULL;
    char quote = single && !both ? '"' : '\'';
    int rc = add(r, out, str_n(&quote, 1));
    for (size_t at = 0; at < s.len && rc == 0;) {
        size_t from = at;
        uint32_t c = unicode_next(s, &at);
        rc = repr_char(r, out, c, str_n(s.ptr + from, at - from), quote);
    }
    return rc < 0 ? rc : add(r, out, str_n(&quote, 1));
}

static int repr_list(struct render *r, struct buf *out, const struct value *v)
{
    const struct list *l = v->list;
    bool tuple = v->kind == VALUE_TUPLE;
    int rc = add_text(r, out, tuple ? "(" : "[");
    for (size_t i = 0; i < l->len && rc == 0; i++) {
        rc = i > 0 ? add_text(r, out, ", ") : 0;
        rc = rc < 0 ? rc : tpl_value_write_repr(r, &l->items[i], out);
    }
    rc = rc < 0 || !tuple || l->len != 1 ? rc : add_text(r, out, ",");
    return rc < 0 ? rc : add_text(r, out, tuple ? ")" : "]");
}

static int repr_dict(struct render *r, struct buf *out, const struct dict *d)
{
    int rc = add_text(r, out, "{");
    for (size_t i = 0; i < d->len && rc == 0; i++) {
        rc = i > 0 ? add_text(r, out, ", ") : 0;
        rc = rc < 0 ? rc : tpl_value_write_repr(r, &d->entries[i].key, out);
        rc = rc < 0 ? rc : add_text(r, out, ": ");
        rc = rc < 0 ? rc : tpl_value_write_repr(r, &d->entries[i].value, out);
    }
    return rc < 0 ? rc : add_text(r, out, "}");
}

static int repr_any(struct render *r, const struct value *v, struct buf *out)
{
    switch ((int)v->kind) {
    case VALUE_UNDEFINED:
        return add_text(r, out, "Undefined");
    case VALUE_NONE:
        return add_text(r, out, "None");
    case VALUE_BOOL:
        return add_text(r, out, v->boolean ? "True" : "False");
    case VALUE_INT:
        return add_int(r, out, v->integer);
    case VALUE_FLOAT:
        return add_float(r, out, v->real);
    case VALUE_STRING:
        return repr_text(r, out, v);
    case VALUE_LIST:
    case VALUE_TUPLE:
        return repr_list(r, out, v);
    case VALUE_DICT:
        return repr_dict(r, out, v->dict);
    case VALUE_ITER:
        return tpl_render_fail(
            r, TEMPLATE_FAULT_VALUE,
            "a generator cannot be printed, make it text with '|list' or '|join'");
    case VALUE_METHOD:
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "'%s' is a method: call it with '()', or write ['%s'] for a key",
                               v->bound->method->name, v->bound->method->name);
    default:
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "a %s cannot be printed",
                               tpl_value_type(v));
    }
}

int tpl_value_write_repr(struct render *r, const struct value *v, struct buf *out)
{
    int rc = render_step(r);
    rc = rc < 0 ? rc : render_enter(r);
    if (rc < 0) {
        return rc;
    }
    rc = repr_any(r, v, out);
    render_leave(r);
    return rc;
}

/* The missing else of an inline if has no name, and nothing to report. */
static int report_empty(struct render *r, const struct value *v)
{
    if (!render_is_strict(r) && v->undefined->name.len > 0) {
        r->set->undefined.report(r->set->undefined.self, v->undefined->name);
    }
    return 0;
}

int tpl_value_write_str(struct render *r, const struct value *v, struct buf *out)
{
    if (v->kind == VALUE_STRING) {
        return add(r, out, v->string);
    }
    if (v->kind == VALUE_INT) {
        return add_int(r, out, v->integer);
    }
    if (v->kind == VALUE_UNDEFINED) {
        return v->undefined->strict ? tpl_render_fail_undefined(r, v) : report_empty(r, v);
    }
    return tpl_value_write_repr(r, v, out);
}

int tpl_value_to_text(struct render *r, const struct value *v, struct value *out)
{
    if (v->kind == VALUE_STRING) {
        *out = *v;
        return 0;
    }
    int rc = tpl_value_write_str(r, v, tpl_render_capture(r));
    if (rc < 0) {
        tpl_render_drop(r);
        return rc;
    }
    *out = tpl_render_captured(r);
    return 0;
}

/* --- JSON, as htmlsafe_json_dumps(sort_keys=True) --- */

struct json_out {
    struct render *r;
    struct buf *out;
    struct str indent;
    bool pretty;
    unsigned level;
};

static int json_value(struct json_out *j, const struct value *v);

static int json_char(struct json_out *j, uint32_t c)
{
    static const char escapes[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    for (size_t i = 0; i + 1 < sizeof escapes; i += 2) {
        if (c == (unsigned char)escapes[i]) {
            return add(j->r, j->out, str_n((char[]) { '\\', escapes[i + 1] }, 2));
        }
    }
    bool html = c == '<' || c == '>' || c == '&' || c == '\'';
    if (c >= ' ' && c < 0x7f && !html) {
        char plain = (char)c;
        return add(j->r, j->out, str_n(&plain, 1));
    }
    char text[16];
    int n;
    if (c < 0x10000) {
        n = snprintf(text, sizeof text, "\\u%04x", c);
    } else {
        n = snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
    }
    return add(j->r, j->out, str_n(text, (size_t)n));
}

static int json_text(struct json_out *j, struct str s)
{
    int rc = add_text(j->r, j->out, "\"");
    for (size_t at = 0; at < s.len && rc == 0;) {
        rc = json_char(j, unicode_next(s, &at));
    }
    return rc < 0 ? rc : add_text(j->r, j->out, "\"");
}

static int json_line(struct json_out *j)
{
    int rc = j->pretty ? add_text(j->r, j->out, "\n") : 0;
    for (unsigned i = 0; i < j->level && j->pretty && rc == 0; i++) {
        rc = add(j->r, j->out, j->indent);
    }
    return rc;
}

static int json_comma(struct json_out *j, size_t i)
{
    int rc = i == 0 ? 0 : add_text(j->r, j->out, j->pretty ? "," : ", ");
    return rc < 0 ? rc : json_line(j);
}

static int json_list(struct json_out *j, const struct list *l)
{
    if (l->len == 0) {
        return add_text(j->r, j->out, "[]");
    }
    int rc = add_text(j->r, j->out, "[");
    j->level++;
    for (size_t i = 0; i < l->len && rc == 0; i++) {
        rc = json_comma(j, i);
        rc = rc < 0 ? rc : json_value(j, &l->items[i]);
    }
    j->level--;
    rc = rc < 0 ? rc : json_line(j);
    return rc < 0 ? rc : add_text(j->r, j->out, "]");
}

/* Keys that are no strings are written as their JSON text. */
static int json_key(struct json_out *j, const struct value *key)
{
    if (key->kind == VALUE_STRING) {
        return json_text(j, key->string);
    }
    if (!value_is_number(key) && key->kind != VALUE_NONE) {
        return tpl_render_fail_type(j->r, key, "a %s cannot be a key in JSON", tpl_value_type(key));
    }
    int rc = add_text(j->r, j->out, "\"");
    rc = rc < 0 ? rc : json_value(j, key);
    return rc < 0 ? rc : add_text(j->r, j->out, "\"");
}

static int json_dict(struct json_out *j, const struct dict *d)
{
    if (d->len == 0) {
        return add_text(j->r, j->out, "{}");
    }
    struct value *keys = arena_array(j->r->arena, d->len, sizeof *keys);
    struct value *values = arena_array(j->r->arena, d->len, sizeof *values);
    for (size_t i = 0; i < d->len; i++) {
        keys[i] = d->entries[i].key;
        values[i] = d->entries[i].value;
    }
    int rc = tpl_value_sort(j->r, values, keys, d->len, false);
    rc = rc < 0 ? rc : add_text(j->r, j->out, "{");
    j->level++;
    for (size_t i = 0; i < d->len && rc == 0; i++) {
        rc = json_comma(j, i);
        rc = rc < 0 ? rc : json_key(j, &keys[i]);
        rc = rc < 0 ? rc : add_text(j->r, j->out, ": ");
        rc = rc < 0 ? rc : json_value(j, &values[i]);
    }
    j->level--;
    rc = rc < 0 ? rc : json_line(j);
    return rc < 0 ? rc : add_text(j->r, j->out, "}");
}

static int json_float(struct json_out *j, double d)
{
    if (isnan(d)) {
        return add_text(j->r, j->out, "NaN");
    }
    return isinf(d) ? add_text(j->r, j->out, d < 0 ? "-Infinity" : "Infinity")
                    : add_float(j->r, j->out, d);
}

static int json_any(struct json_out *j, const struct value *v)
{
    switch ((int)v->kind) {
    case VALUE_NONE:
        return add_text(j->r, j->out, "null");
    case VALUE_BOOL:
        return add_text(j->r, j->out, v->boolean ? "true" : "false");
    case VALUE_INT:
        return add_int(j->r, j->out, v->integer);
    case VALUE_FLOAT:
        return json_float(j, v->real);
    case VALUE_STRING:
        return json_text(j, v->string);
    case VALUE_LIST:
    case VALUE_TUPLE:
        return json_list(j, v->list);
    case VALUE_DICT:
        return json_dict(j, v->dict);
    case VALUE_UNDEFINED: /* Python's json knows nothing of it: not an undefined error */
        if (v->undefined->name.len > 0) {
            return tpl_render_fail(j->r, TEMPLATE_FAULT_VALUE,
                                   "'%.*s' is undefined and cannot become JSON",
                                   STR_ARG(v->undefined->name));
        }
        return tpl_render_fail(j->r, TEMPLATE_FAULT_VALUE, "an undefined value cannot become JSON");
    default:
        return tpl_render_fail(j->r, TEMPLATE_FAULT_VALUE, "a %s cannot become JSON",
                               tpl_value_type(v));
    }
}

static int json_value(struct json_out *j, const struct value *v)
{
    int rc = render_step(j->r);
    rc = rc < 0 ? rc : render_enter(j->r);
    if (rc < 0) {
        return rc;
    }
    rc = json_any(j, v);
    render_leave(j->r);
    return rc;
}

int tpl_value_write_json(struct render *r, const struct value *v, const struct value *indent,
                         struct buf *out)
{
    struct json_out j = { .r = r, .out = out };
    if (indent->kind == VALUE_STRING) {
        j.pretty = true;
        j.indent = indent->string;
    } else if (indent->kind != VALUE_NONE && indent->kind != VALUE_MISSING) {
        int64_t n;
        int rc = tpl_arg_int(r, indent, 0, &n);
        rc = rc < 0 ? rc : tpl_render_check_size(r, n < 0 ? 0 : (uint64_t)n, 1);
        if (rc < 0) {
            return rc;
        }
        j.pretty = true;
        char *blanks = arena_alloc(r->arena, n < 0 ? 1 : (size_t)n + 1);
        memset(blanks, ' ', n < 0 ? 0 : (size_t)n);
        j.indent = str_n(blanks, n < 0 ? 0 : (size_t)n);
    }
    return json_value(&j, v);
}
