/* SPDX-License-Identifier: MIT
 *
 * Editing JSON text: one member is added, replaced or taken out, all other bytes stay. The text has
 * been parsed strictly before, so the scanner below only needs to find its way, not to judge; and
 * as with TOML the result is parsed again and compared with the original.
 *
 * A new member goes behind the last one and copies its layout. In an empty object it goes right
 * behind the brace, so that the white space in there survives and taking it out gives the old bytes
 * back.
 */
#include "adapters/trust_priv.h"

struct member {
    size_t key, key_end;     /* with quotes */
    size_t value, value_end; /* without white space around */
};

/* An object of the text and what is known of one key in it. */
struct scan {
    size_t open; /* offset of the brace */
    size_t count;
    bool found;
    bool has_prev, has_next;
    struct member hit, prev, next, last;
};

struct editor {
    struct trust_json *req;
    struct str text;
    struct arena *arena;
    struct json *tree;
    struct err *e;
};

/* --- scanning --- */

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_white(struct str s, size_t i)
{
    while (i < s.len && is_white(s.ptr[i])) {
        i++;
    }
    return i;
}

static size_t skip_string(struct str s, size_t i)
{
    for (i++; i < s.len && s.ptr[i] != '"'; i++) {
        if (s.ptr[i] == '\\') {
            i++;
        }
    }
    return i + 1;
}

static size_t skip_value(struct str s, size_t i)
{
    size_t depth = 0;
    while (i < s.len) {
        char c = s.ptr[i];
        if (c == '"') {
            i = skip_string(s, i);
        } else if (c == '{' || c == '[') {
            depth++;
            i++;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
            i++;
        } else if (depth > 0) {
            i++;
            continue;
        } else {
            while (i < s.len && !is_white(s.ptr[i]) && strchr(",]}", s.ptr[i]) == NULL) {
                i++;
            }
        }
        if (depth == 0) {
            break;
        }
    }
    return i;
}

static bool key_is(const struct editor *x, const struct member *m, struct str key)
{
    struct json *v = NULL;
    struct str quoted = str_slice(x->text, m->key, m->key_end);
    return json_parse(x->arena, quoted, NULL, &v, NULL) == 0 && str_eq(json_str(v, STR_EMPTY), key);
}

static void note_member(const struct editor *x, struct scan *s, const struct member *m,
                        struct str key)
{
    if (!s->found && key_is(x, m, key)) {
        s->found = true;
        s->hit = *m;
        s->has_prev = s->count > 0;
        s->prev = s->last;
    } else if (s->found && !s->has_next) {
        s->has_next = true;
        s->next = *m;
    }
    s->last = *m;
    s->count++;
}

static struct scan scan_object(const struct editor *x, size_t open, struct str key)
{
    struct scan s = { .open = open };
    size_t i = skip_white(x->text, open + 1);
    while (i < x->text.len && x->text.ptr[i] == '"') {
        struct member m = { .key = i, .key_end = skip_string(x->text, i) };
        m.value = skip_white(x->text, skip_white(x->text, m.key_end) + 1);
        m.value_end = skip_value(x->text, m.value);
        note_member(x, &s, &m, key);
        i = skip_white(x->text, m.value_end);
        if (i < x->text.len && x->text.ptr[i] == ',') {
            i = skip_white(x->text, i + 1);
        }
    }
    return s;
}

/* --- reading --- */

static int parse_text(const struct editor *x, struct str text, struct json **ret)
{
    int r = json_parse(x->arena, text, NULL, ret, x->e);
    if (r < 0) {
        return err_wrap(x->e, "%s", x->req->name);
    }
    if (!json_is(*ret, JSON_OBJECT)) {
        return ERR(x->e, ERR_PARSE, "%s: must be an object, not %s", x->req->name,
                   json_type_name((*ret)->type));
    }
    return 0;
}

static int editor_open(struct editor *x, struct trust_json *req, struct arena *a, struct err *e)
{
    *x = (struct editor) { .req = req, .text = req->text, .arena = a, .e = e };
    return parse_text(x, req->text, &x->tree);
}

/* Where the path ends: at the leaf (found), or at the object that lacks the next key. */
static int walk(const struct editor *x, struct scan *ret, size_t *ret_level)
{
    size_t open = skip_white(x->text, 0);
    for (size_t i = 0;; i++) {
        *ret = scan_object(x, open, x->req->path[i]);
        *ret_level = i;
        if (!ret->found || i + 1 == x->req->path_len) {
            return 0;
        }
        open = ret->hit.value;
        if (x->text.ptr[open] != '{') {
            return ERR(x->e, ERR_UNSUPPORTED, "%s: '%.*s' is not an object", x->req->name,
                       STR_ARG(x->req->path[i]));
        }
    }
}

/* --- the proof --- */

static void put_at_path(const struct editor *x, struct json *tree, struct json *value)
{
    for (size_t i = 0; i + 1 < x->req->path_len; i++) {
        struct json *next = json_find(tree, x->req->path[i]);
        if (next == NULL) {
            next = json_object(x->arena);
            json_set(x->arena, tree, x->req->path[i], next);
        }
        tree = next;
    }
    json_set(x->arena, tree, x->req->path[x->req->path_len - 1], value);
}

static void take_from_path(const struct editor *x, struct json *tree, size_t level)
{
    for (size_t i = 0; i < level; i++) {
        tree = json_find(tree, x->req->path[i]);
    }
    (void)json_remove(tree, x->req->path[level]);
}

static int verify(const struct editor *x, const struct json *want, struct str text)
{
    struct json *got = NULL;
    if (json_parse(x->arena, text, NULL, &got, NULL) < 0 || !json_equal(want, got)) {
        return ERR(x->e, ERR_BUG, "%s: the edit would change more than one value; nothing was done",
                   x->req->name);
    }
    return 0;
}

/* --- writing --- */

static int splice(const struct editor *x, size_t from, size_t to, struct str with, struct buf *out)
{
    int r = buf_append(out, str_slice(x->text, 0, from), x->e);
    if (r == 0) {
        r = buf_append(out, with, x->e);
    }
    return r < 0 ? r : buf_append(out, str_slice(x->text, to, x->text.len), x->e);
}

/* What goes before the key: a copy of what stands before the last key, or the brace's own
 * indentation and two more. */
static void lead_in(const struct editor *x, const struct scan *s, struct buf *out)
{
    if (s->count > 0) {
        size_t from = s->last.key;
        while (is_white(x->text.ptr[from - 1])) {
            from--;
        }
        buf_adds(out, ",");
        buf_add(out, str_slice(x->text, from, s->last.key));
        return;
    }
    struct str inside = str_slice(x->text, s->open + 1, skip_white(x->text, s->open + 1));
    size_t newline = str_find(inside, STR("\n"));
    if (newline == inside.len) {
        return;
    }
    size_t last = inside.len;
    while (inside.ptr[last - 1] != '\n') {
        last--;
    }
    buf_adds(out, newline > 0 && inside.ptr[newline - 1] == '\r' ? "\r\n" : "\n");
    buf_add(out, str_slice(inside, last, inside.len));
    buf_adds(out, "  ");
}

static int insert_member(const struct editor *x, const struct scan *s, size_t level,
                         struct str value, struct buf *out)
{
    CLEANUP(buf) struct buf with = BUF_INIT(BUF_TEXT);
    struct str colon = STR(": ");
    if (s->count > 0) {
        colon = str_slice(x->text, s->last.key_end, s->last.value);
    }
    lead_in(x, s, &with);
    for (size_t i = level; i < x->req->path_len; i++) {
        int r = json_write_string(x->req->path[i], &with, x->e);
        if (r < 0) {
            return r;
        }
        buf_add(&with, colon);
        buf_adds(&with, i + 1 < x->req->path_len ? "{" : "");
    }
    buf_add(&with, value);
    for (size_t i = level; i + 1 < x->req->path_len; i++) {
        buf_adds(&with, "}");
    }
    size_t at = s->count > 0 ? s->last.value_end : s->open + 1;
    return splice(x, at, at, buf_str(&with), out);
}

static int set_value(struct editor *x, struct str value, struct buf *out, size_t *ret_made)
{
    struct scan s;
    size_t level = 0;
    struct json *v = NULL;
    int r = walk(x, &s, &level);
    if (r == 0) {
        r = json_parse(x->arena, value, NULL, &v, x->e);
    }
    if (r < 0) {
        return r;
    }
    if (s.found) {
        r = splice(x, s.hit.value, s.hit.value_end, value, out);
    } else {
        *ret_made = x->req->path_len - 1 - level;
        r = insert_member(x, &s, level, value, out);
    }
    if (r < 0) {
        return r;
    }
    struct json *want = json_copy(x->arena, x->tree);
    put_at_path(x, want, v);
    return verify(x, want, buf_str(out));
}

int trust_json_set(struct trust_json *ed, struct str value, struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf result = BUF_INIT(BUF_TEXT);
    struct editor x;
    size_t made = 0;
    for (size_t i = 0; i < ed->path_len; i++) {
        if (!str_is_utf8(ed->path[i])) {
            return ERR(e, ERR_UNSUPPORTED, "%s: a key that is not UTF-8", ed->name);
        }
    }
    int r = editor_open(&x, ed, a, e);
    if (r == 0) {
        r = set_value(&x, value, &result, &made);
    }
    if (r == 0) {
        r = buf_append(out, buf_str(&result), e);
    }
    if (r == 0) {
        ed->made = made;
    }
    return r;
}

/* --- removing --- */

/* The outermost member to cut: up from the leaf as long as the object above was made by us and
 * holds nothing else. */
static size_t cut_level(const struct editor *x)
{
    struct json *objects[64];
    size_t level = x->req->path_len - 1;
    size_t made = x->req->made;
    struct json *v = x->tree;
    if (x->req->path_len > ARRAY_LEN(objects)) {
        return level;
    }
    for (size_t i = 0; i < x->req->path_len; i++) {
        objects[i] = v;
        v = json_find(v, x->req->path[i]);
    }
    while (level > 0 && made > 0 && json_len(objects[level]) == 1) {
        level--;
        made--;
    }
    return level;
}

static struct scan scan_at(const struct editor *x, size_t level)
{
    struct scan s = scan_object(x, skip_white(x->text, 0), x->req->path[0]);
    for (size_t i = 1; i <= level; i++) {
        s = scan_object(x, s.hit.value, x->req->path[i]);
    }
    return s;
}

static int remove_value(struct editor *x, struct buf *out)
{
    struct scan s;
    size_t level = 0;
    int r = walk(x, &s, &level);
    if (r < 0) {
        return r;
    }
    if (!s.found) {
        return buf_append(out, x->text, x->e);
    }
    level = cut_level(x);
    s = scan_at(x, level);
    if (s.has_prev) {
        r = splice(x, s.prev.value_end, s.hit.value_end, STR_EMPTY, out);
    } else if (s.has_next) {
        r = splice(x, s.hit.key, s.next.key, STR_EMPTY, out);
    } else {
        r = splice(x, s.open + 1, s.hit.value_end, STR_EMPTY, out);
    }
    if (r < 0) {
        return r;
    }
    struct json *want = json_copy(x->arena, x->tree);
    take_from_path(x, want, level);
    return verify(x, want, buf_str(out));
}

int trust_json_remove(const struct trust_json *ed, struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf result = BUF_INIT(BUF_TEXT);
    struct trust_json copy = *ed;
    struct editor x;
    int r = editor_open(&x, &copy, a, e);
    if (r == 0) {
        r = remove_value(&x, &result);
    }
    return r < 0 ? r : buf_append(out, buf_str(&result), e);
}
