/* SPDX-License-Identifier: MIT
 *
 * The methods of strings. Positions count code points; results keep the markup of their string.
 */
#include "template/template_render_priv.h"

#include "template/template_unicode.h"

static int finish(struct render *r, int rc, const struct value *self, struct value *out)
{
    *out = tpl_render_captured(r);
    out->markup = self->markup;
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

static struct value part(const struct value *self, struct str s)
{
    struct value v = value_text(s);
    v.markup = self->markup;
    return v;
}

/* --- case --- */

static int string_upper(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return tpl_text_case(r, self, UNICODE_UPPER, out);
}

static int string_lower(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return tpl_text_case(r, self, UNICODE_LOWER, out);
}

static int string_title(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return finish(r, unicode_title(tpl_render_capture(r), self->string, NULL), self, out);
}

static int string_capitalize(struct render *r, const struct value *self, const struct value *args,
                             struct value *out)
{
    return finish(r, unicode_capitalize(tpl_render_capture(r), self->string, NULL), self, out);
}

static int string_swapcase(struct render *r, const struct value *self, const struct value *args,
                           struct value *out)
{
    return finish(r, unicode_swap_case(tpl_render_capture(r), self->string, NULL), self, out);
}

/* --- edges --- */

static int string_strip(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return tpl_text_strip(r, self, &args[0], STRIP_LEFT | STRIP_RIGHT, out);
}

static int string_lstrip(struct render *r, const struct value *self, const struct value *args,
                         struct value *out)
{
    return tpl_text_strip(r, self, &args[0], STRIP_LEFT, out);
}

static int string_rstrip(struct render *r, const struct value *self, const struct value *args,
                         struct value *out)
{
    return tpl_text_strip(r, self, &args[0], STRIP_RIGHT, out);
}

static int pad(struct render *r, const struct value *self, const struct value *args, int align,
               struct value *out)
{
    int64_t width;
    struct str fill = STR(" ");
    int rc = tpl_arg_int(r, &args[0], 0, &width);
    rc =
        rc < 0 || args[1].kind == VALUE_MISSING ? rc : tpl_arg_text(r, &args[1], "the fill", &fill);
    if (rc == 0 && unicode_len(fill) != 1) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "the fill must be one character");
    }
    return rc < 0 ? rc : tpl_text_pad(r, self, width, fill, align, out);
}

static int string_ljust(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return pad(r, self, args, -1, out);
}

static int string_rjust(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return pad(r, self, args, 1, out);
}

static int string_center(struct render *r, const struct value *self, const struct value *args,
                         struct value *out)
{
    return pad(r, self, args, 0, out);
}

static int string_zfill(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    int64_t width;
    int rc = tpl_arg_int(r, &args[0], 0, &width);
    if (rc < 0) {
        return rc;
    }
    struct str s = self->string;
    bool sign = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+');
    struct value digits = part(self, str_slice(s, sign, s.len));
    struct value head = value_text(str_slice(s, 0, sign));
    rc = tpl_text_pad(r, &digits, width - sign, STR("0"), 1, out);
    digits = *out;
    head.markup = digits.markup;
    return rc < 0 ? rc : tpl_value_binary(r, OP_ADD, &head, &digits, out);
}

static int string_removeprefix(struct render *r, const struct value *self, const struct value *args,
                               struct value *out)
{
    struct str s;
    int rc = tpl_arg_text(r, &args[0], "the prefix", &s);
    bool has = rc == 0 && str_starts(self->string, s);
    *out = part(self, str_slice(self->string, has ? s.len : 0, self->string.len));
    return rc;
}

static int string_removesuffix(struct render *r, const struct value *self, const struct value *args,
                               struct value *out)
{
    struct str s;
    int rc = tpl_arg_text(r, &args[0], "the suffix", &s);
    bool has = rc == 0 && s.len > 0 && str_ends(self->string, s);
    *out = part(self, str_slice(self->string, 0, self->string.len - (has ? s.len : 0)));
    return rc;
}

/* --- looking --- */

/* The stretch between two optional positions; *ret_from is where it begins in code points. */
static int stretch(struct render *r, const struct value *self, const struct value *range,
                   struct str *ret, int64_t *ret_from, bool *ret_empty)
{
    int64_t len = (int64_t)unicode_len(self->string);
    int64_t bounds[2] = { 0, len };
    for (size_t i = 0; i < 2; i++) {
        int rc = range[i].kind == VALUE_NONE ? 0 : tpl_arg_int(r, &range[i], bounds[i], &bounds[i]);
        if (rc < 0) {
            return rc;
        }
        bounds[i] += bounds[i] < 0 ? len : 0;
        bounds[i] = bounds[i] < 0 ? 0 : bounds[i];
    }
    *ret_empty = bounds[0] > len || bounds[0] > bounds[1];
    *ret_from = bounds[0];
    size_t from = unicode_offset(self->string, (size_t)bounds[0]);
    size_t to = unicode_offset(self->string, (size_t)bounds[1]);
    *ret = str_slice(self->string, from, to);
    return 0;
}

static int has_edge(struct render *r, const struct value *self, const struct value *args, bool end,
                    struct value *out)
{
    struct str s;
    int64_t from;
    bool empty;
    int rc = stretch(r, self, &args[1], &s, &from, &empty);
    struct list one = { .items = (struct value *)&args[0], .len = 1 };
    const struct list *all = args[0].kind == VALUE_TUPLE ? args[0].list : &one;
    bool found = false;
    for (size_t i = 0; i < all->len && rc == 0 && !found; i++) {
        struct str edge;
        rc = tpl_arg_text(r, &all->items[i], "the text to look for", &edge);
        found = rc == 0 && !empty && (end ? str_ends(s, edge) : str_starts(s, edge));
    }
    *out = value_bool(found);
    return rc;
}

static int string_startswith(struct render *r, const struct value *self, const struct value *args,
                             struct value *out)
{
    return has_edge(r, self, args, false, out);
}

static int string_endswith(struct render *r, const struct value *self, const struct value *args,
                           struct value *out)
{
    return has_edge(r, self, args, true, out);
}

/* Byte offset of the last occurrence; s.len + 1 when there is none. */
static size_t find_last(struct str s, struct str what)
{
    for (size_t at = s.len + 1; at > 0; at--) {
        if (str_starts(str_slice(s, at - 1, s.len), what)) {
            return at - 1;
        }
    }
    return s.len + 1;
}

static int locate(struct render *r, const struct value *self, const struct value *args, bool last,
                  int64_t *ret)
{
    struct str s;
    struct str what;
    int64_t from;
    bool empty;
    int rc = tpl_arg_text(r, &args[0], "the text to look for", &what);
    rc = rc < 0 ? rc : stretch(r, self, &args[1], &s, &from, &empty);
    *ret = -1;
    if (rc < 0 || empty) {
        return rc;
    }
    r->steps += s.len / 16;
    size_t at = last ? find_last(s, what) : str_find(s, what);
    bool found = last ? at <= s.len : what.len == 0 || at < s.len;
    if (found) {
        *ret = from + (int64_t)unicode_len(str_slice(s, 0, at));
    }
    return 0;
}

static int string_find(struct render *r, const struct value *self, const struct value *args,
                       struct value *out)
{
    int64_t at = -1;
    int rc = locate(r, self, args, false, &at);
    *out = value_int(at);
    return rc;
}

static int string_rfind(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    int64_t at = -1;
    int rc = locate(r, self, args, true, &at);
    *out = value_int(at);
    return rc;
}

static int must_find(struct render *r, int rc, const struct value *out)
{
    return rc == 0 && out->integer < 0
               ? tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "index(): the text is not there")
               : rc;
}

static int string_index(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return must_find(r, string_find(r, self, args, out), out);
}

static int string_rindex(struct render *r, const struct value *self, const struct value *args,
                         struct value *out)
{
    return must_find(r, string_rfind(r, self, args, out), out);
}

static int string_count(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    struct str s;
    struct str what;
    int64_t from;
    bool empty;
    int rc = tpl_arg_text(r, &args[0], "the text to count", &what);
    rc = rc < 0 ? rc : stretch(r, self, &args[1], &s, &from, &empty);
    int64_t n = 0;
    if (rc == 0 && !empty && what.len == 0) {
        n = (int64_t)unicode_len(s) + 1;
    }
    while (rc == 0 && !empty && what.len > 0) {
        size_t at = str_find(s, what);
        if (at >= s.len) {
            break;
        }
        n++;
        s = str_slice(s, at + what.len, s.len);
        rc = render_step(r);
    }
    *out = value_int(n);
    return rc;
}

static int all_are(const struct value *self, bool (*is)(uint32_t c), struct value *out)
{
    bool all = self->string.len > 0;
    for (size_t at = 0; at < self->string.len && all;) {
        all = is(unicode_next(self->string, &at));
    }
    *out = value_bool(all);
    return 0;
}

static int string_isdigit(struct render *r, const struct value *self, const struct value *args,
                          struct value *out)
{
    return all_are(self, unicode_is_digit, out);
}

static int string_isalpha(struct render *r, const struct value *self, const struct value *args,
                          struct value *out)
{
    return all_are(self, unicode_is_alpha, out);
}

static int string_isalnum(struct render *r, const struct value *self, const struct value *args,
                          struct value *out)
{
    return all_are(self, unicode_is_alnum, out);
}

static int string_isspace(struct render *r, const struct value *self, const struct value *args,
                          struct value *out)
{
    return all_are(self, unicode_is_space, out);
}

static int has_case(struct render *r, const struct value *self, const char *test, struct value *out)
{
    static const struct call_args none = { 0 };
    bool holds = false;
    int rc = tpl_predicate_apply(r, tpl_predicate_find(str_of(test)), self, &none, &holds);
    *out = value_bool(holds);
    return rc;
}

static int string_isupper(struct render *r, const struct value *self, const struct value *args,
                          struct value *out)
{
    return has_case(r, self, "upper", out);
}

static int string_islower(struct render *r, const struct value *self, const struct value *args,
                          struct value *out)
{
    return has_case(r, self, "lower", out);
}

/* --- cutting --- */

static void add_part(struct render *r, struct list *l, const struct value *self, struct str s)
{
    struct value v = part(self, s);
    tpl_list_add(r->arena, l, &v);
    r->steps++;
}

static void split_blanks(struct render *r, const struct value *self, int64_t max, struct list *l)
{
    struct str s = unicode_strip(self->string, true, false);
    while (s.len > 0) {
        size_t end = 0;
        while (end < s.len) {
            size_t next = end;
            if (unicode_is_space(unicode_next(s, &next))) {
                break;
            }
            end = next;
        }
        if (max == 0) {
            add_part(r, l, self, s);
            return;
        }
        add_part(r, l, self, str_slice(s, 0, end));
        s = unicode_strip(str_slice(s, end, s.len), true, false);
        max--;
    }
}

/* From the right; the list comes out in reverse. */
static void rsplit_blanks(struct render *r, const struct value *self, int64_t max, struct list *l)
{
    struct str s = unicode_strip(self->string, false, true);
    while (s.len > 0) {
        size_t start = s.len;
        while (start > 0) {
            size_t before = unicode_back(s, start);
            size_t next = before;
            if (unicode_is_space(unicode_next(s, &next))) {
                break;
            }
            start = before;
        }
        if (max == 0) {
            add_part(r, l, self, s);
            return;
        }
        add_part(r, l, self, str_slice(s, start, s.len));
        s = unicode_strip(str_slice(s, 0, start), false, true);
        max--;
    }
}

static void split_at(struct render *r, const struct value *self, struct str sep, int64_t max,
                     struct list *l)
{
    struct str s = self->string;
    for (; max != 0; max--) {
        size_t at = str_find(s, sep);
        if (at >= s.len) {
            break;
        }
        add_part(r, l, self, str_slice(s, 0, at));
        s = str_slice(s, at + sep.len, s.len);
    }
    add_part(r, l, self, s);
}

static void rsplit_at(struct render *r, const struct value *self, struct str sep, int64_t max,
                      struct list *l)
{
    struct str s = self->string;
    for (; max != 0; max--) {
        size_t at = find_last(s, sep);
        if (at > s.len) {
            break;
        }
        add_part(r, l, self, str_slice(s, at + sep.len, s.len));
        s = str_slice(s, 0, at);
    }
    add_part(r, l, self, s);
}

static int split(struct render *r, const struct value *self, const struct value *args, bool right,
                 struct value *out)
{
    int64_t max;
    struct str sep = STR_EMPTY;
    struct list *l = tpl_list_new(r->arena, 4);
    bool blanks = args[0].kind == VALUE_MISSING || args[0].kind == VALUE_NONE;
    int rc = blanks ? 0 : tpl_arg_text(r, &args[0], "the separator", &sep);
    rc = rc < 0 ? rc : tpl_arg_int(r, &args[1], -1, &max);
    if (rc == 0 && !blanks && sep.len == 0) {
        return tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "the separator is empty");
    }
    if (rc < 0) {
        return rc;
    }
    if (blanks) {
        (right ? rsplit_blanks : split_blanks)(r, self, max, l);
    } else {
        (right ? rsplit_at : split_at)(r, self, sep, max, l);
    }
    for (size_t i = 0; right && i < l->len / 2; i++) {
        struct value swap = l->items[i];
        l->items[i] = l->items[l->len - 1 - i];
        l->items[l->len - 1 - i] = swap;
    }
    *out = value_list(l);
    return 0;
}

static int string_split(struct render *r, const struct value *self, const struct value *args,
                        struct value *out)
{
    return split(r, self, args, false, out);
}

static int string_rsplit(struct render *r, const struct value *self, const struct value *args,
                         struct value *out)
{
    return split(r, self, args, true, out);
}

static int string_splitlines(struct render *r, const struct value *self, const struct value *args,
                             struct value *out)
{
    bool keep;
    int rc = tpl_arg_bool(r, &args[0], false, &keep);
    struct list *l = tpl_list_new(r->arena, 4);
    struct str rest = self->string;
    struct str line;
    while (rc == 0 && tpl_text_next_line(&rest, keep, &line)) {
        add_part(r, l, self, line);
    }
    *out = value_list(l);
    return rc;
}

static int partition(struct render *r, const struct value *self, const struct value *args,
                     bool right, struct value *out)
{
    struct str sep;
    struct str s = self->string;
    struct list *l = tpl_list_new(r->arena, 3);
    int rc = tpl_arg_text(r, &args[0], "the separator", &sep);
    if (rc < 0 || sep.len == 0) {
        return rc < 0 ? rc : tpl_render_fail(r, TEMPLATE_FAULT_VALUE, "the separator is empty");
    }
    size_t at = right ? find_last(s, sep) : str_find(s, sep);
    bool found = at < s.len;
    size_t cut = found ? at : right ? 0 : s.len;
    size_t behind = found ? at + sep.len : cut;
    add_part(r, l, self, str_slice(s, 0, cut));
    add_part(r, l, self, str_slice(s, cut, behind));
    add_part(r, l, self, str_slice(s, behind, s.len));
    *out = value_tuple(l);
    return 0;
}

static int string_partition(struct render *r, const struct value *self, const struct value *args,
                            struct value *out)
{
    return partition(r, self, args, false, out);
}

static int string_rpartition(struct render *r, const struct value *self, const struct value *args,
                             struct value *out)
{
    return partition(r, self, args, true, out);
}

/* --- making --- */

/* Plain text becomes markup when it meets markup. */
static int adapt(struct render *r, const struct value *self, const struct value *v,
                 struct value *out)
{
    *out = *v;
    return self->markup ? tpl_value_escape(r, v, out) : 0;
}

static int string_replace(struct render *r, const struct value *self, const struct value *args,
                          struct value *out)
{
    struct value old;
    struct value new;
    struct str check;
    int64_t count;
    int rc = tpl_arg_text(r, &args[0], "the old text", &check);
    rc = rc < 0 ? rc : tpl_arg_text(r, &args[1], "the new text", &check);
    rc = rc < 0 ? rc : tpl_arg_int(r, &args[2], -1, &count);
    rc = rc < 0 ? rc : adapt(r, self, &args[0], &old);
    rc = rc < 0 ? rc : adapt(r, self, &args[1], &new);
    rc = rc < 0 ? rc : tpl_text_replace(r, self->string, old.string, new.string, count, out);
    out->markup = self->markup;
    return rc;
}

static int string_join(struct render *r, const struct value *self, const struct value *args,
                       struct value *out)
{
    struct list *l = NULL;
    struct str check;
    int rc = tpl_value_to_list(r, &args[0], &l);
    for (size_t i = 0; rc == 0 && i < l->len; i++) {
        struct value item = l->items[i];
        /* TypeError in Python, also for an undefined item */
        rc = item.kind == VALUE_UNDEFINED
                 ? tpl_render_fail(r, TEMPLATE_FAULT_VALUE,
                                   "join() needs strings, not undefined values")
                 : tpl_arg_text(r, &item, "each item of join()", &check);
        rc = rc < 0 ? rc : adapt(r, self, &item, &l->items[i]);
    }
    if (rc < 0) {
        return rc;
    }
    struct value items = value_list(l);
    rc = tpl_text_join(r, &items, self->string, out);
    out->markup = self->markup;
    return rc;
}

static int string_format(struct render *r, const struct value *self, const struct call_args *args,
                         struct value *out)
{
    return tpl_value_brace_format(r, self, args, out);
}

#define EDGES                                   \
    {                                           \
        { "a text", "a start", "an end" }, 3, 1 \
    }

const struct method tpl_methods_string[] = {
    { .name = "upper", .run = string_upper },
    { .name = "lower", .run = string_lower },
    { .name = "title", .run = string_title },
    { .name = "capitalize", .run = string_capitalize },
    { .name = "swapcase", .run = string_swapcase },
    { .name = "strip", .run = string_strip, .params = { { "a set" }, 1, 0 } },
    { .name = "lstrip", .run = string_lstrip, .params = { { "a set" }, 1, 0 } },
    { .name = "rstrip", .run = string_rstrip, .params = { { "a set" }, 1, 0 } },
    { .name = "ljust", .run = string_ljust, .params = { { "a width", "a fill" }, 2, 1 } },
    { .name = "rjust", .run = string_rjust, .params = { { "a width", "a fill" }, 2, 1 } },
    { .name = "center", .run = string_center, .params = { { "a width", "a fill" }, 2, 1 } },
    { .name = "zfill", .run = string_zfill, .params = { { "a width" }, 1, 1 } },
    { .name = "removeprefix", .run = string_removeprefix, .params = { { "a text" }, 1, 1 } },
    { .name = "removesuffix", .run = string_removesuffix, .params = { { "a text" }, 1, 1 } },
    { .name = "startswith", .run = string_startswith, .params = EDGES },
    { .name = "endswith", .run = string_endswith, .params = EDGES },
    { .name = "find", .run = string_find, .params = EDGES },
    { .name = "rfind", .run = string_rfind, .params = EDGES },
    { .name = "index", .run = string_index, .params = EDGES },
    { .name = "rindex", .run = string_rindex, .params = EDGES },
    { .name = "count", .run = string_count, .params = EDGES },
    { .name = "isdigit", .run = string_isdigit },
    { .name = "isalpha", .run = string_isalpha },
    { .name = "isalnum", .run = string_isalnum },
    { .name = "isspace", .run = string_isspace },
    { .name = "isupper", .run = string_isupper },
    { .name = "islower", .run = string_islower },
    { .name = "split", .run = string_split, .params = { { "sep", "maxsplit" }, 2, 0 } },
    { .name = "rsplit", .run = string_rsplit, .params = { { "sep", "maxsplit" }, 2, 0 } },
    { .name = "splitlines", .run = string_splitlines, .params = { { "keepends" }, 1, 0 } },
    { .name = "partition", .run = string_partition, .params = { { "a separator" }, 1, 1 } },
    { .name = "rpartition", .run = string_rpartition, .params = { { "a separator" }, 1, 1 } },
    { .name = "replace",
      .run = string_replace,
      .params = { { "an old text", "a new text", "a count" }, 3, 2 } },
    { .name = "join", .run = string_join, .params = { { "the items" }, 1, 1 } },
    { .name = "format", .raw = string_format },
};
const size_t tpl_methods_string_len = ARRAY_LEN(tpl_methods_string);
