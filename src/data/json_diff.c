/* SPDX-License-Identifier: MIT
 *
 * Walks two trees side by side; see json_diff.h.
 */
#include "data/json_diff.h"

#include <stdio.h>

/* Deeper parts are compared as a whole; json_parse() reads no deeper by default. */
enum { DEPTH_MAX = 256 };
/* Of a value in a line of json_diff_write(). */
enum { SHOWN = 160, CONTEXT = 60 };

struct walk {
    const struct json_diff_opts *opts;
    struct arena *arena;
    struct buf path;
    struct json_diff *diff;
    size_t cap, max;
};

static void note(struct walk *w, enum json_change_kind kind, const struct json *left,
                 const struct json *right)
{
    struct str pointer = buf_str(&w->path);
    if (w->opts->ignore != NULL && w->opts->ignore(w->opts->arg, pointer, left, right)) {
        return;
    }
    struct json_diff *d = w->diff;
    if (d->len == w->max) {
        d->more = true;
        return;
    }
    if (d->len == w->cap) {
        w->cap = w->cap == 0 ? 8 : w->cap * 2;
        struct json_change *bigger = arena_array(w->arena, w->cap, sizeof *bigger);
        if (d->len > 0) {
            memcpy(bigger, d->changes, d->len * sizeof *bigger);
        }
        d->changes = bigger;
    }
    d->changes[d->len++] = (struct json_change) { kind, arena_str(w->arena, pointer), left, right };
}

/* Appends "/key"; the caller sets the length back. A path beyond the buffer's limit stays cut. */
static void enter(struct walk *w, struct str key)
{
    if (buf_append_c(&w->path, '/', NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < key.len; i++) {
        struct str c = key.ptr[i] == '~'   ? STR("~0")
                       : key.ptr[i] == '/' ? STR("~1")
                                           : str_slice(key, i, i + 1);
        if (buf_append(&w->path, c, NULL) < 0) {
            return;
        }
    }
}

static void leave(struct walk *w, size_t len)
{
    w->path.len = len;
}

static void enter_index(struct walk *w, size_t i)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%zu", i);
    enter(w, str_of(text));
}

static void compare(struct walk *w, const struct json *left, const struct json *right,
                    unsigned depth);

static void compare_arrays(struct walk *w, const struct json *left, const struct json *right,
                           unsigned depth)
{
    size_t n = left->array.len;
    size_t m = right->array.len;
    size_t len = w->path.len;
    size_t same = 0; /* at the end */
    size_t head = 0;
    size_t least = n < m ? n : m;
    while (n != m && head < least &&
           json_equal(left->array.items[head], right->array.items[head])) {
        head++;
    }
    while (n != m && same < least - head &&
           json_equal(left->array.items[n - 1 - same], right->array.items[m - 1 - same])) {
        same++;
    }
    for (size_t i = head; i < n - same || i < m - same; i++) {
        enter_index(w, i);
        if (i < n - same && i < m - same) {
            compare(w, left->array.items[i], right->array.items[i], depth + 1);
        } else if (i < n - same) {
            note(w, JSON_REMOVED, left->array.items[i], NULL);
        } else {
            note(w, JSON_ADDED, NULL, right->array.items[i]);
        }
        leave(w, len);
    }
}

/* The member of that key, first tried at the same place: objects of one writer keep their order. */
static struct json *counterpart(const struct json *object, struct str key, size_t at)
{
    if (at < object->object.len && str_eq(object->object.members[at].key, key)) {
        return object->object.members[at].value;
    }
    return json_find(object, key);
}

static void compare_objects(struct walk *w, const struct json *left, const struct json *right,
                            unsigned depth)
{
    size_t len = w->path.len;
    for (size_t i = 0; i < left->object.len; i++) {
        const struct json_member *m = &left->object.members[i];
        const struct json *other = counterpart(right, m->key, i);
        enter(w, m->key);
        if (other == NULL) {
            note(w, JSON_REMOVED, m->value, NULL);
        } else {
            compare(w, m->value, other, depth + 1);
        }
        leave(w, len);
    }
    for (size_t i = 0; i < right->object.len; i++) {
        const struct json_member *m = &right->object.members[i];
        if (counterpart(left, m->key, i) == NULL) {
            enter(w, m->key);
            note(w, JSON_ADDED, NULL, m->value);
            leave(w, len);
        }
    }
}

static void compare(struct walk *w, const struct json *left, const struct json *right,
                    unsigned depth)
{
    bool same_type = left->type == right->type;
    if (depth < DEPTH_MAX && same_type && left->type == JSON_ARRAY) {
        compare_arrays(w, left, right, depth);
    } else if (depth < DEPTH_MAX && same_type && left->type == JSON_OBJECT) {
        compare_objects(w, left, right, depth);
    } else if (!json_equal(left, right)) {
        note(w, JSON_CHANGED, left, right);
    }
}

void json_diff(const struct json *left, const struct json *right, const struct json_diff_opts *opts,
               struct arena *a, struct json_diff *ret)
{
    static const struct json_diff_opts none = { 0 };
    struct walk w = {
        .opts = opts != NULL ? opts : &none,
        .arena = a,
        .path = BUF_INIT(64 << 10),
        .diff = ret,
        .max = opts != NULL && opts->max > 0 ? opts->max : 100,
    };
    *ret = (struct json_diff) { 0 };
    if (left != NULL && right != NULL) {
        compare(&w, left, right, 0);
    } else if (left != right) {
        note(&w, left != NULL ? JSON_REMOVED : JSON_ADDED, left, right);
    }
    buf_done(&w.path);
}

/* --- text --- */

/* [from, to) of the text, moved outwards to whole characters. */
static struct str window(struct str s, size_t from, size_t to)
{
    to = to < s.len ? to : s.len;
    while (from > 0 && ((unsigned char)s.ptr[from] & 0xc0) == 0x80) {
        from--;
    }
    while (to < s.len && ((unsigned char)s.ptr[to] & 0xc0) == 0x80) {
        to++;
    }
    return str_slice(s, from, to);
}

static int write_cut(struct str s, size_t from, size_t to, struct buf *out, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(1024);
    struct str part = window(s, from, to);
    int r = part.ptr != s.ptr ? buf_append(&text, STR("…"), e) : 0;
    r = r < 0 ? r : buf_append(&text, part, e);
    if (r == 0 && part.ptr + part.len != s.ptr + s.len) {
        r = buf_append(&text, STR("…"), e);
    }
    return r < 0 ? r : json_write_string(buf_str(&text), out, e);
}

static int write_value(const struct json *v, struct buf *out, struct err *e)
{
    if (json_is(v, JSON_STRING)) {
        return write_cut(v->string, 0, SHOWN, out, e);
    }
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int r = json_write(v, JSON_COMPACT, &text, e);
    struct str s = buf_str(&text);
    struct str part = s.len > SHOWN ? window(s, 0, SHOWN) : s;
    return r < 0 ? r : buf_printf(out, e, "%.*s%s", STR_ARG(part), part.len < s.len ? "…" : "");
}

static int write_strings(struct str left, struct str right, struct buf *out, struct err *e)
{
    size_t at = 0;
    while (at < left.len && at < right.len && left.ptr[at] == right.ptr[at]) {
        at++;
    }
    size_t from = at > CONTEXT ? at - CONTEXT : 0;
    int r = buf_printf(out, e, "at byte %zu: ", at);
    r = r < 0 ? r : write_cut(left, from, at + CONTEXT, out, e);
    r = r < 0 ? r : buf_append(out, STR(" is now "), e);
    return r < 0 ? r : write_cut(right, from, at + CONTEXT, out, e);
}

static int write_change(const struct json_change *c, struct buf *out, struct err *e)
{
    int r = buf_printf(out, e, "%.*s: ", STR_ARG(c->pointer.len > 0 ? c->pointer : STR("(whole)")));
    if (r < 0) {
        return r;
    }
    switch (c->kind) {
    case JSON_ADDED:
        r = buf_append(out, STR("added "), e);
        return r < 0 ? r : write_value(c->right, out, e);
    case JSON_REMOVED:
        r = buf_append(out, STR("removed "), e);
        return r < 0 ? r : write_value(c->left, out, e);
    case JSON_CHANGED:
        break;
    }
    if (json_is(c->left, JSON_STRING) && json_is(c->right, JSON_STRING) &&
        (json_len(c->left) > SHOWN / 2 || json_len(c->right) > SHOWN / 2)) {
        return write_strings(c->left->string, c->right->string, out, e);
    }
    r = write_value(c->left, out, e);
    r = r < 0 ? r : buf_append(out, STR(" is now "), e);
    return r < 0 ? r : write_value(c->right, out, e);
}

int json_diff_write(const struct json_diff *d, struct buf *out, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < d->len; i++) {
        r = write_change(&d->changes[i], out, e);
        r = r < 0 ? r : buf_append_c(out, '\n', e);
    }
    return r == 0 && d->more ? buf_append(out, STR("… and more\n"), e) : r;
}
