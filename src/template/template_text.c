/* SPDX-License-Identifier: MIT
 *
 * Operations on text that filters and string methods share, by code points as Python's str.
 */
#include "template/template_render_priv.h"

#include "template/template_unicode.h"

static int finish(struct render *r, int rc, struct value *out)
{
    *out = tpl_render_captured(r);
    return rc < 0 ? tpl_render_fail_output(r) : 0;
}

static bool in_set(uint32_t c, struct str chars)
{
    for (size_t at = 0; at < chars.len;) {
        if (unicode_next(chars, &at) == c) {
            return true;
        }
    }
    return false;
}

static struct str strip_chars(struct str s, struct str chars, unsigned sides)
{
    size_t from = 0;
    while ((sides & STRIP_LEFT) && from < s.len) {
        size_t next = from;
        if (!in_set(unicode_next(s, &next), chars)) {
            break;
        }
        from = next;
    }
    size_t to = s.len;
    while ((sides & STRIP_RIGHT) && to > from) {
        size_t last = unicode_back(s, to);
        size_t next = last;
        if (!in_set(unicode_next(s, &next), chars)) {
            break;
        }
        to = last;
    }
    return str_n(s.ptr + from, to - from);
}

int tpl_text_strip(struct render *r, const struct value *s, const struct value *chars,
                   unsigned sides, struct value *out)
{
    struct str result;
    if (chars->kind == VALUE_MISSING || chars->kind == VALUE_NONE) {
        result = unicode_strip(s->string, sides & STRIP_LEFT, sides & STRIP_RIGHT);
    } else {
        struct str set;
        int rc = tpl_arg_text(r, chars, "the set of characters to strip", &set);
        if (rc < 0) {
            return rc;
        }
        r->steps += s->string.len * (set.len + 1) / 64;
        result = strip_chars(s->string, set, sides);
    }
    *out = value_text(result);
    return 0;
}

/* An empty `old` stands before each character and at the end. */
static int replace_empty(struct buf *b, struct str s, struct str new, int64_t count)
{
    int rc = 0;
    for (size_t at = 0; rc == 0; count--) {
        rc = count == 0 ? 0 : buf_append(b, new, NULL);
        if (rc < 0 || count == 0) {
            return rc < 0 ? rc : buf_append(b, str_slice(s, at, s.len), NULL);
        }
        if (at >= s.len) {
            return 0;
        }
        size_t from = at;
        (void)unicode_next(s, &at);
        rc = buf_append(b, str_slice(s, from, at), NULL);
    }
    return rc;
}

int tpl_text_replace(struct render *r, struct str s, struct str old, struct str new, int64_t count,
                     struct value *out)
{
    struct buf *b = tpl_render_capture(r);
    if (old.len == 0) {
        return finish(r, replace_empty(b, s, new, count), out);
    }
    int rc = 0;
    while (count != 0 && rc == 0) {
        size_t at = str_find(s, old);
        if (at >= s.len) {
            break;
        }
        rc = buf_append(b, str_slice(s, 0, at), NULL);
        rc = rc < 0 ? rc : buf_append(b, new, NULL);
        s = str_slice(s, at + old.len, s.len);
        count--;
        r->steps++;
    }
    rc = rc < 0 ? rc : buf_append(b, s, NULL);
    return finish(r, rc, out);
}

bool tpl_text_next_line(struct str *rest, bool with_end, struct str *ret)
{
    if (rest->len == 0) {
        return false;
    }
    size_t at = 0;
    size_t end = rest->len;
    while (at < rest->len) {
        size_t from = at;
        uint32_t c = unicode_next(*rest, &at);
        if (unicode_is_line_end(c)) {
            end = from;
            if (c == '\r' && at < rest->len && rest->ptr[at] == '\n') {
                at++;
            }
            break;
        }
    }
    *ret = str_slice(*rest, 0, with_end ? at : end);
    *rest = str_slice(*rest, at, rest->len);
    return true;
}

int tpl_text_join(struct render *r, const struct value *items, struct str sep, struct value *out)
{
    /* Items first: a generator may capture text of its own. */
    struct list *l;
    int rc = tpl_value_to_list(r, items, &l);
    if (rc < 0) {
        return rc;
    }
    struct buf *b = tpl_render_capture(r);
    for (size_t i = 0; i < l->len && rc == 0; i++) {
        rc = i == 0 ? 0 : buf_append(b, sep, NULL);
        rc = rc < 0 ? tpl_render_fail_output(r) : tpl_value_write_str(r, &l->items[i], b);
    }
    *out = tpl_render_captured(r);
    return rc;
}
