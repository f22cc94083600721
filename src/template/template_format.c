/* SPDX-License-Identifier: MIT
 *
 * "%s is %d" % values, and the filter format: the conversions of C's printf that Python shares,
 *
 *   %[(name)][flags][width][.precision]type     flags - + 0 and blank, type s d i x X o f F e E g G
 *
 * A dict serves %(name)s; a tuple is taken apart; anything else is the one value.
 */
#include "template/template_value_priv.h"

#include <math.h>
#include <stdio.h>

#include "template/template_render_priv.h"
#include "template/template_unicode.h"

/* Reached by the author of the format. */
enum { FORMAT_MAX = 1000 };

struct format {
    struct render *r;
    struct str text;
    size_t at;
    const struct value *values;
    size_t next, count; /* of the values; named ones are not counted */
    struct buf *out;
};

struct conversion {
    char flags[8]; /* without repetitions */
    int width;
    int precision; /* -1: none */
    char type;
    struct value value;
};

static int fail_format(struct format *f, const char *why)
{
    return tpl_render_fail(f->r, TEMPLATE_FAULT_VALUE, "%s in the format '%.*s'", why,
                           (int)(f->text.len > 60 ? 60 : f->text.len), f->text.ptr);
}

static char peek(const struct format *f)
{
    return f->at < f->text.len ? f->text.ptr[f->at] : '\0';
}

static int next_value(struct format *f, struct value *ret)
{
    if (f->next >= f->count) {
        return fail_format(f, "not enough values");
    }
    bool tuple = f->values->kind == VALUE_TUPLE;
    *ret = tuple ? f->values->list->items[f->next] : *f->values;
    f->next++;
    return 0;
}

/* "(name)": the value of a dict. */
static int named_value(struct format *f, struct value *ret)
{
    struct str rest = str_slice(f->text, f->at + 1, f->text.len);
    size_t len = str_find(rest, STR(")"));
    if (f->values->kind == VALUE_UNDEFINED) {
        return tpl_render_fail_undefined(f->r, f->values);
    }
    if (len >= rest.len || f->values->kind != VALUE_DICT) {
        return fail_format(f, len >= rest.len ? "a name without ')'" : "names need a dict");
    }
    const struct value *found = tpl_dict_find_text(f->values->dict, str_slice(rest, 0, len));
    if (found == NULL) {
        return fail_format(f, "a name without a value");
    }
    *ret = *found;
    f->at += len + 2;
    f->count = 0; /* the values are not counted any more */
    return 0;
}

static int parse_number(struct format *f, int *ret)
{
    int n = 0;
    for (; peek(f) >= '0' && peek(f) <= '9'; f->at++) {
        n = n * 10 + (peek(f) - '0');
        if (n > FORMAT_MAX) {
            return tpl_render_fail(f->r, TEMPLATE_FAULT_LIMIT,
                                   "a width or precision of more than %d", FORMAT_MAX);
        }
    }
    *ret = n;
    return 0;
}

static int parse_conversion(struct format *f, struct conversion *c)
{
    *c = (struct conversion) { .precision = -1 };
    bool named = peek(f) == '(';
    int rc = named ? named_value(f, &c->value) : 0;
    for (size_t n = 0; rc == 0 && peek(f) != '\0' && strchr("-+ 0", peek(f)) != NULL; f->at++) {
        if (strchr(c->flags, peek(f)) == NULL) {
            c->flags[n++] = peek(f);
        }
    }
    rc = rc < 0 ? rc : parse_number(f, &c->width);
    if (rc == 0 && peek(f) == '.') {
        f->at++;
        rc = parse_number(f, &c->precision);
    }
    if (rc < 0) {
        return rc;
    }
    c->type = peek(f);
    if (c->type == '\0' || strchr("sdixXofFeEgG", c->type) == NULL) {
        return fail_format(f, c->type == '\0' ? "an incomplete conversion"
                                              : "a conversion that templates do not support");
    }
    f->at++;
    return named ? 0 : next_value(f, &c->value);
}

static int put_text(struct format *f, const struct conversion *c)
{
    struct value text;
    int rc = tpl_value_to_text(f->r, &c->value, &text);
    if (rc < 0) {
        return rc;
    }
    struct str s = text.string;
    if (c->precision >= 0) {
        s.len = unicode_offset(s, (size_t)c->precision);
    }
    int len = (int)(s.len > FORMAT_MAX * 4 ? FORMAT_MAX : unicode_len(s));
    int blanks = c->width > len ? c->width - len : 0;
    bool left = strchr(c->flags, '-') != NULL;
    rc = left ? 0 : buf_printf(f->out, NULL, "%*s", blanks, "");
    rc = rc < 0 ? rc : buf_append(f->out, s, NULL);
    rc = rc < 0 || !left ? rc : buf_printf(f->out, NULL, "%*s", blanks, "");
    return rc < 0 ? tpl_render_fail_output(f->r) : 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static int put_integer(struct format *f, const struct conversion *c)
{
    const struct value *v = &c->value;
    bool decimal = c->type == 'd' || c->type == 'i';
    if (v->kind == VALUE_UNDEFINED && decimal) {
        return tpl_render_fail_undefined(f->r, v);
    }
    bool real = v->kind == VALUE_FLOAT && decimal && v->real >= -0x1p63 && v->real < 0x1p63;
    if (!value_is_integral(v) && !real) {
        return fail_format(f, "a value that is no integer of 64 bits");
    }
    long long n = real ? (long long)v->real : value_integer(v);
    if (n < 0 && !decimal) {
        return fail_format(f, "a negative number for %x or %o");
    }
    char spec[24];
    (void)snprintf(spec, sizeof spec, "%%%s*.*ll%c", c->flags, c->type);
    int rc = buf_printf(f->out, NULL, spec, c->width, c->precision, n);
    return rc < 0 ? tpl_render_fail_output(f->r) : 0;
}

static int put_real(struct format *f, const struct conversion *c)
{
    if (!value_is_number(&c->value)) {
        return c->value.kind == VALUE_UNDEFINED ? tpl_render_fail_undefined(f->r, &c->value)
                                                : fail_format(f, "a value that is no number");
    }
    char spec[24];
    (void)snprintf(spec, sizeof spec, "%%%s*.*%c", c->flags, c->type);
    int rc = buf_printf(f->out, NULL, spec, c->width, c->precision, value_real(&c->value));
    return rc < 0 ? tpl_render_fail_output(f->r) : 0;
}

#pragma GCC diagnostic pop

/* What follows a '%'. */
static int put_conversion(struct format *f)
{
    if (peek(f) == '%') {
        f->at++;
        return buf_append_c(f->out, '%', NULL) < 0 ? tpl_render_fail_output(f->r) : 0;
    }
    struct conversion c;
    int rc = parse_conversion(f, &c);
    if (rc < 0) {
        return rc;
    }
    return c.type == 's'                     ? put_text(f, &c)
           : strchr("dixXo", c.type) != NULL ? put_integer(f, &c)
                                             : put_real(f, &c);
}

static int write_format(struct format *f)
{
    int rc = 0;
    while (rc == 0 && f->at < f->text.len) {
        struct str rest = str_slice(f->text, f->at, f->text.len);
        size_t len = str_find(rest, STR("%"));
        rc = render_write(f->r, f->out, str_slice(rest, 0, len));
        f->at += len + 1;
        rc = rc < 0 || len >= rest.len ? rc : put_conversion(f);
        rc = rc < 0 ? rc : render_step(f->r);
    }
    /* Python lets a value be that could have been subscripted by name. */
    bool optional = f->values->kind == VALUE_DICT || f->values->kind == VALUE_LIST ||
                    f->values->kind == VALUE_UNDEFINED;
    return rc == 0 && f->next < f->count && !optional
               ? fail_format(f, "more values than conversions")
               : rc;
}

int tpl_value_percent(struct render *r, const struct value *format, const struct value *values,
                      struct value *out)
{
    bool tuple = values->kind == VALUE_TUPLE;
    struct format f = { .r = r, .text = format->string, .values = values };
    f.count = tuple ? values->list->len : 1;
    f.out = tpl_render_capture(r);
    int rc = write_format(&f);
    *out = tpl_render_captured(r);
    return rc;
}
