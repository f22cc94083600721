/* SPDX-License-Identifier: MIT
 *
 * Filters on text.
 */
#include "template/template_render_priv.h"

#include <stdio.h>

#include "template/template_unicode.h"

static int finish(struct render *r, int rc, struct value *out)
{
    *out = tpl_render_captured(r);
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

static int convert_case(struct render *r, const struct value *in, enum unicode_case first,
                        enum unicode_case rest, struct value *out)
{
    struct value s;
    int rc = tpl_value_to_text(r, in, &s);
    if (rc < 0) {
        return rc;
    }
    rc = unicode_convert(tpl_render_capture(r), s.string, first, rest, NULL);
    return finish(r, rc, out);
}

static int filter_upper(struct render *r, const struct value *in, const struct value *args,
                        struct value *out)
{
    return convert_case(r, in, UNICODE_UPPER, UNICODE_UPPER, out);
}

static int filter_lower(struct render *r, const struct value *in, const struct value *args,
                        struct value *out)
{
    return convert_case(r, in, UNICODE_LOWER, UNICODE_LOWER, out);
}

static int filter_capitalize(struct render *r, const struct value *in, const struct value *args,
                             struct value *out)
{
    return convert_case(r, in, UNICODE_TITLE, UNICODE_LOWER, out);
}

/* Words begin after blanks and opening brackets; the rest of a word becomes lower case. */
static int filter_title(struct render *r, const struct value *in, const struct value *args,
                        struct value *out)
{
    struct value text;
    int rc = tpl_value_to_text(r, in, &text);
    if (rc < 0) {
        return rc;
    }
    struct str s = text.string;
    struct buf *b = tpl_render_capture(r);
    for (size_t at = 0; at < s.len && rc == 0;) {
        size_t from = at;
        bool sep = false;
        size_t end = at;
        while (end < s.len) { /* a run of separators, or a word */
            size_t next = end;
            uint32_t c = unicode_next(s, &next);
            bool is_sep = unicode_is_space(c) || (c < 0x80 && strchr("-({[<", (int)c) && c != 0);
            if (end == from) {
                sep = is_sep;
            } else if (is_sep != sep) {
                break;
            }
            end = next;
        }
        rc = unicode_convert(b, str_slice(s, at, end), UNICODE_UPPER, UNICODE_LOWER, NULL);
        at = end;
    }
    return finish(r, rc, out);
}

static int filter_trim(struct render *r, const struct value *in, const struct value *args,
                       struct value *out)
{
    struct value s;
    int rc = tpl_value_to_text(r, in, &s);
    return rc < 0 ? rc : tpl_text_strip(r, &s, &args[0], STRIP_LEFT | STRIP_RIGHT, out);
}

static int filter_center(struct render *r, const struct value *in, const struct value *args,
                         struct value *out)
{
    struct value s;
    int64_t width;
    int rc = tpl_value_to_text(r, in, &s);
    rc = rc < 0 ? rc : tpl_arg_int(r, &args[0], 80, &width);
    int64_t len = rc < 0 ? 0 : (int64_t)unicode_len(s.string);
    int64_t pad = rc < 0 || width <= len ? 0 : width - len;
    rc = rc < 0 ? rc : tpl_render_check_size(r, (uint64_t)pad + s.string.len, 1);
    if (rc < 0) {
        return rc;
    }
    int64_t left = pad / 2 + (pad & width & 1); /* as Python rounds */
    struct buf *b = tpl_render_capture(r);
    rc = buf_printf(b, NULL, "%*s", (int)left, "");
    rc = rc < 0 ? rc : buf_append(b, s.string, NULL);
    rc = rc < 0 ? rc : buf_printf(b, NULL, "%*s", (int)(pad - left), "");
    return finish(r, rc, out);
}

static int filter_string(struct render *r, const struct value *in, const struct value *args,
                         struct value *out)
{
    return tpl_value_to_text(r, in, out);
}

static int filter_replace(struct render *r, const struct value *in, const struct value *args,
                          struct value *out)
{
    struct value s;
    struct value old;
    struct value new;
    int64_t count = -1;
    int rc = tpl_value_to_text(r, in, &s);
    rc = rc < 0 ? rc : tpl_value_to_text(r, &args[0], &old);
    rc = rc < 0 ? rc : tpl_value_to_text(r, &args[1], &new);
    if (rc == 0 && args[2].kind != VALUE_NONE) {
        rc = tpl_arg_int(r, &args[2], -1, &count);
    }
    return rc < 0 ? rc : tpl_text_replace(r, s.string, old.string, new.string, count, out);
}

static int filter_join(struct render *r, const struct value *in, const struct value *args,
                       struct value *out)
{
    struct value sep = value_text(STR_EMPTY);
    struct value items = *in;
    int rc = args[0].kind == VALUE_MISSING ? 0 : tpl_value_to_text(r, &args[0], &sep);
    if (rc == 0 && args[1].kind != VALUE_MISSING && args[1].kind != VALUE_NONE) {
        struct list *l;
        rc = tpl_value_to_list(r, in, &l);
        for (size_t i = 0; rc == 0 && i < l->len; i++) {
            struct value item = l->items[i];
            rc = tpl_value_path(r, &item, &args[1], &VALUE_OF_NONE, &l->items[i]);
        }
        items = value_list(l);
    }
    return rc < 0 ? rc : tpl_text_join(r, &items, sep.string, out);
}

static int filter_indent(struct render *r, const struct value *in, const struct value *args,
                         struct value *out)
{
    struct str s;
    struct value indent = value_text(STR("    "));
    bool first;
    bool blank;
    int rc = tpl_arg_text(r, in, "what is indented", &s);
    if (rc == 0 && args[0].kind == VALUE_STRING) {
        indent = args[0];
    } else if (rc == 0 && args[0].kind != VALUE_MISSING) {
        struct value one = value_text(STR(" "));
        rc = tpl_value_binary(r, OP_MUL, &one, &args[0], &indent);
    }
    rc = rc < 0 ? rc : tpl_arg_bool(r, &args[1], false, &first);
    rc = rc < 0 ? rc : tpl_arg_bool(r, &args[2], false, &blank);
    if (rc < 0) {
        return rc;
    }
    /* With one more newline an empty last line counts as a line. */
    struct value newline = value_text(STR("\n"));
    struct value whole = value_text(s);
    rc = tpl_value_binary(r, OP_ADD, &whole, &newline, &whole);
    if (rc < 0) {
        return rc;
    }
    struct buf *b = tpl_render_capture(r);
    struct str line;
    for (bool head = true; rc == 0 && tpl_text_next_line(&whole.string, false, &line);
         head = false) {
        bool indented = head ? first : line.len > 0 || blank;
        rc = head ? 0 : buf_append_c(b, '\n', NULL);
        rc = rc < 0 || !indented ? rc : buf_append(b, indent.string, NULL);
        rc = rc < 0 ? rc : buf_append(b, line, NULL);
    }
    return finish(r, rc, out);
}

static int filter_truncate(struct render *r, const struct value *in, const struct value *args,
                           struct value *out)
{
    int64_t length;
    int64_t leeway;
    bool kill;
    struct str end = STR("...");
    size_t len;
    int rc = tpl_arg_int(r, &args[0], 255, &length);
    rc = rc < 0 ? rc : tpl_arg_bool(r, &args[1], false, &kill);
    rc = rc < 0 || args[2].kind == VALUE_MISSING ? rc : tpl_arg_text(r, &args[2], "the end", &end);
    rc = rc < 0                       ? rc
         : args[3].kind == VALUE_NONE ? tpl_arg_int(r, &(struct value) { 0 }, 5, &leeway)
                                      : tpl_arg_int(r, &args[3], 5, &leeway);
    if (rc < 0) {
        return rc;
    }
    int64_t end_len = (int64_t)unicode_len(end);
    if (length < end_len || leeway < 0) {
        return tpl_render_fail(
            r, TEMPLATE_FAULT_VALUE,
            "filter 'truncate' needs a length of at least %lld and no negative leeway",
            (long long)end_len);
    }
    rc = tpl_value_len(r, in, &len);
    if (rc < 0 || (uint64_t)len <= (uint64_t)length + (uint64_t)leeway) {
        *out = *in;
        return rc;
    }
    struct str s;
    rc = tpl_arg_text(r, in, "what is truncated", &s);
    if (rc < 0) {
        return rc;
    }
    s.len = unicode_offset(s, (size_t)(length - end_len));
    for (size_t i = s.len; !kill && i > 0; i--) {
        if (s.ptr[i - 1] == ' ') {
            s.len = i - 1;
            break;
        }
    }
    struct buf *b = tpl_render_capture(r);
    rc = buf_append(b, s, NULL);
    rc = rc < 0 ? rc : buf_append(b, end, NULL);
    return finish(r, rc, out);
}

static int filter_wordcount(struct render *r, const struct value *in, const struct value *args,
                            struct value *out)
{
    struct value s;
    int rc = tpl_value_to_text(r, in, &s);
    int64_t n = 0;
    bool inside = false;
    for (size_t at = 0; rc == 0 && at < s.string.len;) {
        bool word = unicode_is_word(unicode_next(s.string, &at));
        n += word && !inside;
        inside = word;
    }
    *out = value_int(n);
    return rc;
}

static int filter_format(struct render *r, const struct value *in, const struct call_args *args,
                         struct value *out)
{
    struct value s;
    int rc = tpl_value_to_text(r, in, &s);
    if (rc < 0) {
        return rc;
    }
    if (args->plain_len > 0 && args->named_len > 0) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                               "filter 'format' takes plain or named values, not both");
    }
    if (args->named_len > 0) {
        struct dict *d = tpl_dict_new(r->arena);
        for (size_t i = 0; i < args->named_len; i++) {
            tpl_dict_set_text(r->arena, d, args->named[i].name, &args->named[i].value);
        }
        struct value values = value_dict(d);
        return tpl_value_percent(r, &s, &values, out);
    }
    struct list *l = tpl_list_new(r->arena, args->plain_len);
    for (size_t i = 0; i < args->plain_len; i++) {
        tpl_list_add(r->arena, l, &args->plain[i]);
    }
    struct value values = value_tuple(l);
    return tpl_value_percent(r, &s, &values, out);
}

static int filter_tojson(struct render *r, const struct value *in, const struct value *args,
                         struct value *out)
{
    int rc = tpl_value_write_json(r, in, &args[0], tpl_render_capture(r));
    *out = tpl_render_captured(r);
    return rc;
}

static int filter_escape(struct render *r, const struct value *in, const struct value *args,
                         struct value *out)
{
    static const struct {
        char from;
        const char *to;
    } entities[] = {
        { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&#34;" }, { '\'', "&#39;" },
    };
    struct value text;
    int rc = tpl_value_to_text(r, in, &text);
    if (rc < 0) {
        return rc;
    }
    struct buf *b = tpl_render_capture(r);
    for (size_t i = 0; i < text.string.len && rc == 0; i++) {
        size_t k = 0;
        while (k < ARRAY_LEN(entities) && entities[k].from != text.string.ptr[i]) {
            k++;
        }
        rc = k < ARRAY_LEN(entities) ? buf_append(b, str_of(entities[k].to), NULL)
                                     : buf_append_c(b, text.string.ptr[i], NULL);
    }
    return finish(r, rc, out);
}

/* A query escapes slashes, and blanks become plus signs. */
static int quote_to(struct render *r, struct buf *b, const struct value *v, bool query)
{
    struct value text;
    int rc = tpl_value_to_text(r, v, &text);
    for (size_t i = 0; rc == 0 && i < text.string.len; i++) {
        char c = text.string.ptr[i];
        bool as_is = unicode_digit_value(c) < 99 || (c != '\0' && strchr("_.-~", c) != NULL) ||
                     (c == '/' && !query);
        rc = as_is               ? buf_append_c(b, c, NULL)
             : c == ' ' && query ? buf_append_c(b, '+', NULL)
                                 : buf_printf(b, NULL, "%%%02X", (unsigned char)c);
        rc = rc < 0 ? tpl_render_fail_output(r) : 0;
    }
    return rc;
}

static int filter_urlencode(struct render *r, const struct value *in, const struct value *args,
                            struct value *out)
{
    struct value pairs = *in;
    bool dict = in->kind == VALUE_DICT;
    int rc = dict ? tpl_dict_list(r, in->dict, DICT_ITEMS, &pairs) : 0;
    struct buf *b = tpl_render_capture(r);
    if (!dict) {
        rc = value_is_sequence(in)
                 ? tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                                   "filter 'urlencode' needs a string, a number or a dict")
                 : quote_to(r, b, in, false);
    }
    for (size_t i = 0; dict && rc == 0 && i < pairs.list->len; i++) {
        const struct list *pair = pairs.list->items[i].list;
        rc = b->len == 0 ? 0 : render_write(r, b, STR("&"));
        rc = rc < 0 ? rc : quote_to(r, b, &pair->items[0], true);
        rc = rc < 0 ? rc : render_write(r, b, STR("="));
        rc = rc < 0 ? rc : quote_to(r, b, &pair->items[1], true);
    }
    *out = tpl_render_captured(r);
    return rc;
}

const struct filter tpl_filters_text[] = {
    { .name = "upper", .run = filter_upper },
    { .name = "lower", .run = filter_lower },
    { .name = "capitalize", .run = filter_capitalize },
    { .name = "title", .run = filter_title },
    { .name = "trim", .run = filter_trim, .params = { { "chars" }, 1, 0 } },
    { .name = "center", .run = filter_center, .params = { { "width" }, 1, 0 } },
    { .name = "string", .run = filter_string },
    { .name = "replace", .run = filter_replace, .params = { { "old", "new", "count" }, 3, 2 } },
    { .name = "join", .run = filter_join, .params = { { "d", "attribute" }, 2, 0 } },
    { .name = "indent", .run = filter_indent, .params = { { "width", "first", "blank" }, 3, 0 } },
    { .name = "truncate",
      .run = filter_truncate,
      .params = { { "length", "killwords", "end", "leeway" }, 4, 0 } },
    { .name = "wordcount", .run = filter_wordcount },
    { .name = "format", .raw = filter_format },
    { .name = "tojson", .run = filter_tojson, .params = { { "indent" }, 1, 0 } },
    { .name = "escape", .run = filter_escape },
    { .name = "e", .run = filter_escape },
    { .name = "forceescape", .run = filter_escape },
    { .name = "safe", .run = filter_string },
    { .name = "urlencode", .run = filter_urlencode },
};
const size_t tpl_filters_text_len = ARRAY_LEN(tpl_filters_text);
