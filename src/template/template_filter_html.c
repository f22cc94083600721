/* SPDX-License-Identifier: MIT
 *
 * Filters for HTML and URLs.
 */
#include "template/template_render_priv.h"

#include <stdio.h>

#include "template/template_unicode.h"

static int filter_escape(struct render *r, const struct value *in, const struct value *args,
                         struct value *out)
{
    return tpl_value_escape(r, in, out);
}

static int filter_forceescape(struct render *r, const struct value *in, const struct value *args,
                              struct value *out)
{
    struct value s;
    int rc = tpl_value_to_text(r, in, &s);
    s.markup = false;
    return rc < 0 ? rc : tpl_value_escape(r, &s, out);
}

static int filter_safe(struct render *r, const struct value *in, const struct value *args,
                       struct value *out)
{
    int rc = tpl_value_to_text(r, in, out);
    out->markup = true;
    return rc;
}

/* Removes what is between `open` and the next `close`, both included. */
static int drop_between(struct render *r, struct str s, struct str open, struct str close,
                        struct value *out)
{
    struct buf *b = tpl_render_capture(r);
    int rc = 0;
    while (rc == 0 && s.len > 0) {
        size_t from = str_find(s, open);
        struct str tail = str_slice(s, from + open.len, s.len);
        size_t to = from < s.len ? str_find(tail, close) : tail.len;
        if (from >= s.len || to >= tail.len) {
            break;
        }
        rc = buf_append(b, str_slice(s, 0, from), NULL);
        s = str_slice(tail, to + close.len, tail.len);
    }
    rc = rc < 0 ? rc : buf_append(b, s, NULL);
    *out = tpl_render_captured(r);
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

/* The code point of the entity at s ("&#65;", "&amp;" …) and its length; 0 when there is none. */
static size_t numeric_entity(struct str s, uint32_t *ret)
{
    if (s.len < 4 || s.ptr[1] != '#') {
        return 0;
    }
    int base = (s.ptr[2] | 0x20) == 'x' ? 16 : 10;
    size_t start = base == 16 ? 3 : 2;
    size_t n = start;
    uint32_t code = 0;
    while (n < s.len && n < start + 7 && unicode_digit_value(s.ptr[n]) < base) {
        code = code * (uint32_t)base + (uint32_t)unicode_digit_value(s.ptr[n++]);
    }
    *ret = code > 0 && unicode_is_scalar(code) ? code : 0xfffd;
    return n == start ? 0 : n + (n < s.len && s.ptr[n] == ';');
}

static size_t entity_at(struct str s, uint32_t *ret)
{
    static const struct {
        const char *text;
        uint32_t code;
    } named[] = { { "&amp;", '&' },  { "&lt;", '<' },    { "&gt;", '>' },
                  { "&quot;", '"' }, { "&apos;", '\'' }, { "&nbsp;", 0xa0 } };
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        if (str_starts(s, str_of(named[i].text))) {
            *ret = named[i].code;
            return strlen(named[i].text);
        }
    }
    return numeric_entity(s, ret);
}

static int filter_striptags(struct render *r, const struct value *in, const struct value *args,
                            struct value *out)
{
    struct value s;
    int rc = tpl_value_to_text(r, in, &s);
    rc = rc < 0 ? rc : drop_between(r, s.string, STR("<!--"), STR("-->"), &s);
    rc = rc < 0 ? rc : drop_between(r, s.string, STR("<"), STR(">"), &s);
    if (rc < 0) {
        return rc;
    }
    struct str text = unicode_strip(s.string, true, true);
    struct buf *b = tpl_render_capture(r);
    bool blank = false;
    for (size_t at = 0; at < text.len && rc == 0;) {
        size_t from = at;
        uint32_t c = unicode_next(text, &at);
        if (unicode_is_space(c)) {
            rc = blank ? 0 : buf_append_c(b, ' ', NULL);
            blank = true;
            continue;
        }
        blank = false;
        size_t n = c == '&' ? entity_at(str_slice(text, from, text.len), &c) : 0;
        char bytes[4];
        at = n > 0 ? from + n : at;
        rc = buf_append(b, str_n(bytes, unicode_encode(c, bytes)), NULL);
    }
    *out = tpl_render_captured(r);
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

static int quote_to(struct render *r, struct buf *b, const struct value *v, bool query)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~";
    struct value text;
    int rc = tpl_value_to_text(r, v, &text);
    for (size_t i = 0; rc == 0 && i < text.string.len; i++) {
        char c = text.string.ptr[i];
        char hex[4];
        (void)snprintf(hex, sizeof hex, "%%%02X", (unsigned char)c);
        bool as_is = (c != '\0' && strchr(plain, c) != NULL) || (c == '/' && !query);
        rc = as_is               ? buf_append_c(b, c, NULL)
             : c == ' ' && query ? buf_append_c(b, '+', NULL)
                                 : buf_append(b, str_of(hex), NULL);
        rc = rc < 0 ? tpl_render_fail_output(r) : 0;
    }
    return rc;
}

static int encode_pair(struct render *r, struct buf *b, const struct value *pair)
{
    struct list *l;
    int rc = tpl_value_to_list(r, pair, &l);
    if (rc == 0 && l->len != 2) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "filter 'urlencode' needs pairs");
    }
    rc = rc < 0 || b->len == 0 ? rc : buf_append_c(b, '&', NULL);
    rc = rc < 0 ? rc : quote_to(r, b, &l->items[0], true);
    rc = rc < 0 ? rc : buf_append_c(b, '=', NULL);
    return rc < 0 ? rc : quote_to(r, b, &l->items[1], true);
}

static int filter_urlencode(struct render *r, const struct value *in, const struct value *args,
                            struct value *out)
{
    int rc = 0;
    if (in->kind == VALUE_STRING || (in->kind != VALUE_UNDEFINED && !tpl_value_is_iterable(in))) {
        rc = quote_to(r, tpl_render_capture(r), in, false);
        *out = tpl_render_captured(r);
        return rc;
    }
    struct value pairs = *in;
    struct view view = { in->dict, VIEW_ITEMS };
    if (in->kind == VALUE_DICT) {
        pairs = (struct value) { .kind = VALUE_VIEW, .view = &view };
    }
    struct list *l;
    rc = tpl_value_to_list(r, &pairs, &l);
    if (rc < 0) {
        return rc;
    }
    struct buf *b = tpl_render_capture(r);
    for (size_t i = 0; i < l->len && rc == 0; i++) {
        rc = encode_pair(r, b, &l->items[i]);
    }
    *out = tpl_render_captured(r);
    return rc;
}

static int attribute_to(struct render *r, struct buf *b, const struct dict_entry *entry)
{
    struct value key;
    struct value value;
    if (entry->key.kind != VALUE_STRING ||
        strcspn(arena_dup(r->arena, entry->key.string), " \t\n\r\f\v/>=") < entry->key.string.len) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "not the name of an attribute in 'xmlattr'");
    }
    int rc = tpl_value_escape(r, &entry->key, &key);
    rc = rc < 0 ? rc : tpl_value_escape(r, &entry->value, &value);
    if (rc < 0) {
        return rc;
    }
    rc = buf_printf(b, NULL, "%s%.*s=\"", b->len > 0 ? " " : "", STR_ARG(key.string));
    rc = rc < 0 ? rc : buf_append(b, value.string, NULL);
    rc = rc < 0 ? rc : buf_append_c(b, '"', NULL);
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

static int filter_xmlattr(struct render *r, const struct value *in, const struct value *args,
                          struct value *out)
{
    bool space;
    int rc = tpl_arg_bool(r, &args[0], true, &space);
    if (rc < 0 || in->kind != VALUE_DICT) {
        return rc < 0 ? rc
                      : tpl_render_fail_type(r, in, "filter 'xmlattr' needs a dict, not a %s",
                                             tpl_value_type(in));
    }
    CLEANUP(buf) struct buf b = BUF_INIT(r->set->limits.max_output);
    for (size_t i = 0; i < in->dict->len && rc == 0; i++) {
        const struct dict_entry *entry = &in->dict->entries[i];
        if (entry->value.kind != VALUE_NONE && entry->value.kind != VALUE_UNDEFINED) {
            rc = attribute_to(r, &b, entry);
        }
    }
    *out = value_text(STR_EMPTY);
    if (b.len > 0) {
        struct value blank = value_text(space ? STR(" ") : STR_EMPTY);
        struct value text = value_text(buf_str(&b));
        rc = rc < 0 ? rc : tpl_value_binary(r, OP_ADD, &blank, &text, out);
    }
    return rc;
}

const struct filter tpl_filters_html[] = {
    { .name = "escape", .run = filter_escape },
    { .name = "e", .run = filter_escape },
    { .name = "forceescape", .run = filter_forceescape },
    { .name = "safe", .run = filter_safe },
    { .name = "striptags", .run = filter_striptags },
    { .name = "urlencode", .run = filter_urlencode },
    { .name = "xmlattr", .run = filter_xmlattr, .params = { { "autospace" }, 1, 0 } },
};
const size_t tpl_filters_html_len = ARRAY_LEN(tpl_filters_html);
