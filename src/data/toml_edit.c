/* SPDX-License-Identifier: MIT
 *
 * Editing a TOML text by cutting and inserting bytes at the offsets that the parser noted. The
 * edits are made so that removing what was set restores every byte: lines are inserted whole, a new
 * section brings its own blank line, and a text without a final newline keeps having none. The
 * proof is not in this code but in verify(), which parses the result and compares it with the
 * original.
 */
#include "data/toml.h"

#include <stdlib.h>

#include "data/toml_priv.h"

/* A configuration file of a user; beyond it something is wrong with the file. */
enum { TEXT_MAX = 16 << 20, VALUES_MAX = 1000000 };

struct editor {
    struct arena *arena;
    const char *name;
    struct str text;
    const struct str *path;
    size_t path_len;
    struct toml_items items;
    struct json *tree; /* tagged */
    struct str newline;
    struct err *e;
};

/* --- reading --- */

static int parse_text(struct editor *x, struct str text, struct toml_items *items,
                      struct json **ret)
{
    struct toml_opts opts = {
        .name = x->name,
        .tagged = true,
        .limits = { .max_bytes = TEXT_MAX, .max_values = VALUES_MAX },
    };
    return toml_parse_items(x->arena, text, &opts, items, ret, x->e);
}

static int editor_open(struct editor *x, const struct toml_edit *ed, struct arena *a, struct err *e)
{
    *x = (struct editor) {
        .arena = a,
        .name = ed->name == NULL ? "toml" : ed->name,
        .text = ed->text,
        .path = ed->path,
        .path_len = ed->path_len,
        .newline = STR("\n"),
        .e = e,
    };
    if (ed->path_len == 0) {
        return ERR(e, ERR_USAGE, "%s: an edit needs a path", x->name);
    }
    size_t lf = str_find(x->text, STR("\n"));
    if (lf > 0 && lf < x->text.len && x->text.ptr[lf - 1] == '\r') {
        x->newline = STR("\r\n");
    }
    return parse_text(x, x->text, &x->items, &x->tree);
}

static bool is_table(const struct json *v)
{
    return json_is(v, JSON_OBJECT) && !toml_is_tagged(v);
}

/* What the first `len` keys lead to; NULL when absent, or when a scalar or array is in the way. */
static struct json *look_up(const struct editor *x, struct json *v, size_t len)
{
    for (size_t i = 0; i < len && v != NULL; i++) {
        v = is_table(v) ? json_find(v, x->path[i]) : NULL;
    }
    return v;
}

/* The number of keys from the root to this item. */
static size_t item_path_len(const struct editor *x, const struct toml_item *item)
{
    size_t len = item->keys_len;
    for (size_t b = item->base; b != TOML_ROOT; b = x->items.at[b].base) {
        len += x->items.at[b].keys_len;
    }
    return len;
}

/* How many of the item's keys, from the root, agree with the path; stops at the first that does
 * not. */
static size_t common_len(const struct editor *x, const struct toml_item *item)
{
    size_t base_len = 0;
    if (item->base != TOML_ROOT) {
        const struct toml_item *base = &x->items.at[item->base];
        size_t want = item_path_len(x, base);
        base_len = common_len(x, base);
        if (base_len < want) {
            return base_len;
        }
    }
    size_t n = 0;
    while (n < item->keys_len && base_len + n < x->path_len &&
           str_eq(item->keys[n], x->path[base_len + n])) {
        n++;
    }
    return base_len + n;
}

/* Whether the item's path is the first `len` keys of the path, exactly. */
static bool item_is(const struct editor *x, const struct toml_item *item, size_t len)
{
    return !item->unreachable && item->kind != TOML_ITEM_ELEMENT && item_path_len(x, item) == len &&
           common_len(x, item) == len;
}

static bool is_inline_table(const struct editor *x, const struct toml_item *item)
{
    return item->kind == TOML_ITEM_VALUE && x->text.ptr[item->value_start] == '{';
}

static size_t find_item(const struct editor *x, enum toml_item_kind kind, size_t path_len)
{
    for (size_t i = 0; i < x->items.len; i++) {
        if (x->items.at[i].kind == kind && item_is(x, &x->items.at[i], path_len)) {
            return i;
        }
    }
    return TOML_ROOT;
}

static int refuse(const struct editor *x, const struct json *at, const char *why)
{
    char where[JSON_AT_LEN];
    return ERR(x->e, ERR_UNSUPPORTED, "%s: cannot edit: %s", json_at(x->name, at, where), why);
}

/* The way to the value must be free: only tables above it, no table in its place. */
static int check_way(const struct editor *x)
{
    for (size_t len = 1; len < x->path_len; len++) {
        const struct json *v = look_up(x, x->tree, len);
        if (v != NULL && v->type == JSON_ARRAY) {
            return refuse(x, v, "the path leads through an array");
        }
        if (v != NULL && !is_table(v)) {
            return refuse(x, v, "the path leads through a value that is not a table");
        }
    }
    const struct json *v = look_up(x, x->tree, x->path_len);
    return is_table(v) ? refuse(x, v, "the path names a table, not a value") : 0;
}

/* --- lines --- */

static size_t bom_len(const struct editor *x)
{
    return str_starts(x->text, STR("\xef\xbb\xbf")) ? 3 : 0;
}

static size_t line_start(const struct editor *x, size_t offset)
{
    while (offset > bom_len(x) && x->text.ptr[offset - 1] != '\n') {
        offset--;
    }
    return offset;
}

/* The start of the next line, or the end of the text. Only for offsets outside of a value. */
static size_t line_end(const struct editor *x, size_t offset)
{
    while (offset < x->text.len && x->text.ptr[offset] != '\n') {
        offset++;
    }
    return offset < x->text.len ? offset + 1 : offset;
}

static bool is_open_ended(const struct editor *x)
{
    return x->text.len > bom_len(x) && x->text.ptr[x->text.len - 1] != '\n';
}

/* --- writing --- */

/* The text with [from, to) replaced. */
static int splice(const struct editor *x, size_t from, size_t to, struct str with, struct buf *out)
{
    int r = buf_append(out, str_slice(x->text, 0, from), x->e);
    if (r == 0) {
        r = buf_append(out, with, x->e);
    }
    return r < 0 ? r : buf_append(out, str_slice(x->text, to, x->text.len), x->e);
}

/* Puts a whole line at `offset`, which is the start of a line or the end of the text. */
static int insert_line(const struct editor *x, size_t offset, struct str line, struct buf *out)
{
    CLEANUP(buf) struct buf with = BUF_INIT(BUF_TEXT);
    bool open_end = offset == x->text.len && is_open_ended(x);
    int r = open_end ? buf_append(&with, x->newline, x->e) : 0;
    if (r == 0) {
        r = buf_append(&with, line, x->e);
    }
    if (r == 0 && !open_end) {
        r = buf_append(&with, x->newline, x->e);
    }
    return r < 0 ? r : splice(x, offset, offset, buf_str(&with), out);
}

static int write_keys(const struct editor *x, size_t from, size_t to, struct buf *out)
{
    int r = 0;
    for (size_t i = from; i < to && r == 0; i++) {
        r = i == from ? 0 : buf_append_c(out, '.', x->e);
        if (r == 0) {
            r = toml_write_key(x->path[i], out, x->e);
        }
    }
    return r;
}

/* `a.b = value`, with the keys of the path from number `from` on. */
static int write_assignment(const struct editor *x, size_t from, struct str value, struct buf *out)
{
    int r = write_keys(x, from, x->path_len, out);
    if (r == 0) {
        r = buf_append(out, STR(" = "), x->e);
    }
    return r < 0 ? r : buf_append(out, value, x->e);
}

/* --- setting --- */

/* The last pair that stands directly in that item (a header, an inline table, or the root). */
static size_t last_pair_in(const struct editor *x, size_t base)
{
    for (size_t i = x->items.len; i > 0; i--) {
        const struct toml_item *item = &x->items.at[i - 1];
        if (item->kind == TOML_ITEM_VALUE && item->base == base) {
            return i - 1;
        }
    }
    return TOML_ROOT;
}

/* Where a first pair of the root goes: above the first header and the comment on it. */
static size_t root_insertion(const struct editor *x)
{
    size_t at = x->text.len;
    for (size_t i = 0; i < x->items.len; i++) {
        if (x->items.at[i].kind != TOML_ITEM_VALUE) {
            at = line_start(x, x->items.at[i].start);
            break;
        }
    }
    if (at == x->text.len) {
        return at;
    }
    while (at > bom_len(x)) {
        size_t above = line_start(x, at - 1);
        struct str line = str_trim(str_slice(x->text, above, at));
        if (line.len == 0 || line.ptr[0] != '#') {
            break;
        }
        at = above;
    }
    return at;
}

/* A line at the end of a section: `section` is the index of its header, or TOML_ROOT. */
static int set_in_section(const struct editor *x, size_t section, size_t from, struct str value,
                          struct buf *out)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    size_t pair = last_pair_in(x, section);
    size_t at = 0;
    int r = 0;
    if (pair != TOML_ROOT) {
        const struct toml_item *item = &x->items.at[pair];
        size_t indent = line_start(x, item->start);
        r = buf_append(&line, str_slice(x->text, indent, item->start), x->e);
        at = line_end(x, item->end);
    } else {
        at = section == TOML_ROOT ? root_insertion(x) : line_end(x, x->items.at[section].end);
    }
    if (r == 0) {
        r = write_assignment(x, from, value, &line);
    }
    return r < 0 ? r : insert_line(x, at, buf_str(&line), out);
}

/* Into the inline table: behind its last pair, or right behind the brace. */
static int set_in_braces(const struct editor *x, size_t table, size_t from, struct str value,
                         struct buf *out)
{
    CLEANUP(buf) struct buf with = BUF_INIT(BUF_TEXT);
    size_t pair = last_pair_in(x, table);
    size_t at = pair != TOML_ROOT ? x->items.at[pair].end : x->items.at[table].value_start + 1;
    int r = pair != TOML_ROOT ? buf_append(&with, STR(", "), x->e) : 0;
    if (r == 0) {
        r = write_assignment(x, from, value, &with);
    }
    return r < 0 ? r : splice(x, at, at, buf_str(&with), out);
}

/* A section of its own at the end of the text, set off by a blank line. */
static int set_in_new_section(const struct editor *x, struct str value, struct buf *out)
{
    CLEANUP(buf) struct buf with = BUF_INIT(BUF_TEXT);
    bool open_end = is_open_ended(x);
    int r = open_end ? buf_append(&with, x->newline, x->e) : 0;
    if (r == 0 && x->text.len > bom_len(x)) {
        r = buf_append(&with, x->newline, x->e);
    }
    if (r == 0) {
        r = buf_append_c(&with, '[', x->e);
    }
    if (r == 0) {
        r = write_keys(x, 0, x->path_len - 1, &with);
    }
    if (r == 0) {
        r = buf_printf(&with, x->e, "]%s", x->newline.ptr);
    }
    if (r == 0) {
        r = write_assignment(x, x->path_len - 1, value, &with);
    }
    if (r == 0 && !open_end) {
        r = buf_append(&with, x->newline, x->e);
    }
    return r < 0 ? r : splice(x, x->text.len, x->text.len, buf_str(&with), out);
}

/* The deepest inline table on the way: nothing outside of its braces can add to it. */
static size_t find_braces(const struct editor *x)
{
    size_t best = TOML_ROOT;
    size_t best_len = 0;
    for (size_t i = 0; i < x->items.len; i++) {
        const struct toml_item *item = &x->items.at[i];
        size_t len = item_path_len(x, item);
        if (len > best_len && len < x->path_len && item_is(x, item, len) &&
            is_inline_table(x, item)) {
            best = i;
            best_len = len;
        }
    }
    return best;
}

/* A pair whose dotted key made a table on the way. Such a table has no header and may not get one,
 * so the new key joins it in the same section; unless a header leads on from there, since a dotted
 * key may not add to what has a header. False when there is no such place. */
static bool find_dotted(const struct editor *x, size_t *ret_section, size_t *ret_from)
{
    size_t best = 0;
    size_t by_header = 0;
    for (size_t i = 0; i < x->items.len; i++) {
        const struct toml_item *item = &x->items.at[i];
        if (item->kind != TOML_ITEM_VALUE) {
            size_t common = common_len(x, item);
            by_header = common > by_header ? common : by_header;
        }
        if (item->kind != TOML_ITEM_VALUE || item->unreachable) {
            continue;
        }
        size_t len = item_path_len(x, item);
        size_t own = len - item->keys_len;
        size_t common = common_len(x, item);
        if (common > own && common < len && common > best) {
            best = common;
            *ret_section = item->base;
            *ret_from = own;
        }
    }
    return best > 0 && by_header <= best;
}

static int set_absent(struct editor *x, struct str value, struct buf *out, bool *ret_made)
{
    size_t braces = find_braces(x);
    if (braces != TOML_ROOT) {
        return set_in_braces(x, braces, item_path_len(x, &x->items.at[braces]), value, out);
    }
    size_t last = x->path_len - 1;
    if (last == 0) {
        return set_in_section(x, TOML_ROOT, 0, value, out);
    }
    size_t section = find_item(x, TOML_ITEM_TABLE, last);
    if (section != TOML_ROOT) {
        return set_in_section(x, section, last, value, out);
    }
    size_t from = 0;
    if (find_dotted(x, &section, &from)) {
        return set_in_section(x, section, from, value, out);
    }
    *ret_made = true;
    return set_in_new_section(x, value, out);
}

/* --- the proof --- */

/* Drops the tables on the path that hold nothing: they come and go with their only key. */
static void prune(const struct editor *x, struct json *tree, size_t len)
{
    for (; len > 0; len--) {
        const struct json *table = look_up(x, tree, len);
        if (table == NULL) {
            continue;
        }
        if (!is_table(table) || table->object.len > 0) {
            return;
        }
        (void)json_remove(look_up(x, tree, len - 1), x->path[len - 1]);
    }
}

static void put_at_path(const struct editor *x, struct json *tree, struct json *value)
{
    for (size_t i = 0; i + 1 < x->path_len; i++) {
        struct json *next = json_find(tree, x->path[i]);
        if (next == NULL) {
            next = json_object(x->arena);
            json_set(x->arena, tree, x->path[i], next);
        }
        tree = next;
    }
    json_set(x->arena, tree, x->path[x->path_len - 1], value);
}

/* The new text must say what the old one said, but for the value at the path (NULL: gone). */
static int verify(struct editor *x, struct str text, struct json *value)
{
    struct json *got = NULL;
    struct err why = { 0 };
    struct editor quiet = *x;
    quiet.e = &why;
    if (parse_text(&quiet, text, NULL, &got) < 0) {
        return ERR(x->e, ERR_BUG, "%s: the edited text would not parse; nothing was done (%s)",
                   x->name, why.msg);
    }
    struct json *want = json_copy(x->arena, x->tree);
    if (value != NULL) {
        put_at_path(x, want, value);
    } else {
        struct json *table = look_up(x, want, x->path_len - 1);
        if (table != NULL) {
            (void)json_remove(table, x->path[x->path_len - 1]);
        }
        prune(x, want, x->path_len - 1);
        prune(x, got, x->path_len - 1);
    }
    if (!json_equal(want, got)) {
        return ERR(x->e, ERR_BUG, "%s: the edit would change more than one value; nothing was done",
                   x->name);
    }
    return 0;
}

/* The value as TOML text, and read back in the tagged form for the comparison. */
static int render_value(struct editor *x, const struct json *value, struct buf *text,
                        struct json **ret)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    int r = toml_write_inline(value, text, x->e);
    if (r == 0) {
        r = buf_append(&line, STR("value = "), x->e);
    }
    if (r == 0) {
        r = buf_append(&line, buf_str(text), x->e);
    }
    if (r < 0) {
        return r;
    }
    struct json *doc = NULL;
    r = parse_text(x, buf_str(&line), NULL, &doc);
    if (r == 0) {
        *ret = json_get(doc, "value");
    }
    return r;
}

static int set_value(struct editor *x, const struct json *value, struct buf *out, bool *ret_made)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *tagged = NULL;
    int r = render_value(x, value, &text, &tagged);
    if (r == 0) {
        r = check_way(x);
    }
    if (r < 0) {
        return r;
    }
    struct json *old = look_up(x, x->tree, x->path_len);
    if (old != NULL && json_equal(old, tagged)) {
        return buf_append(out, x->text, x->e);
    }
    if (old != NULL) {
        size_t i = find_item(x, TOML_ITEM_VALUE, x->path_len);
        if (i == TOML_ROOT) {
            return refuse(x, old, "the value has no place of its own");
        }
        r = splice(x, x->items.at[i].value_start, x->items.at[i].end, buf_str(&text), out);
    } else {
        r = set_absent(x, buf_str(&text), out, ret_made);
    }
    return r < 0 ? r : verify(x, buf_str(out), tagged);
}

int toml_edit_set(struct toml_edit *ed, const struct json *value, struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf result = BUF_INIT(BUF_TEXT);
    struct editor x;
    bool made = false;
    int r = editor_open(&x, ed, a, e);
    if (r == 0) {
        r = set_value(&x, value, &result, &made);
    }
    if (r == 0) {
        r = buf_append(out, buf_str(&result), e);
    }
    if (r == 0) {
        ed->made_table = made;
    }
    return r;
}

/* --- removing --- */

/* The pair out of its inline table, with the comma on its left, or on its right if it is the first.
 */
static int cut_from_braces(const struct editor *x, size_t item, struct buf *out)
{
    const struct toml_item *cut = &x->items.at[item];
    size_t from = cut->start;
    size_t to = cut->end;
    for (size_t i = 0; i < x->items.len; i++) {
        const struct toml_item *other = &x->items.at[i];
        if (other->kind != TOML_ITEM_VALUE || other->base != cut->base || i == item) {
            continue;
        }
        if (i < item) {
            from = other->end; /* the last one before it wins */
        } else {
            to = from == cut->start ? other->start : to;
            break;
        }
    }
    return splice(x, from, to, STR_EMPTY, out);
}

/* Whether the header at `section` holds nothing but that pair, and no comment that would be lost.
 */
static bool is_only_pair(const struct editor *x, size_t section, size_t item)
{
    for (size_t i = 0; i < x->items.len; i++) {
        if (i != item && x->items.at[i].kind == TOML_ITEM_VALUE && x->items.at[i].base == section) {
            return false;
        }
    }
    size_t end = x->items.at[section].end;
    return str_trim(str_slice(x->text, end, line_end(x, end))).len == 0;
}

/* The blank line above a header, if there is one: the new start of the cut. */
static size_t with_blank_line(const struct editor *x, size_t start)
{
    if (start == bom_len(x)) {
        return start;
    }
    size_t above = line_start(x, start - 1);
    struct str line = str_slice(x->text, above, start);
    return str_eqc(line, "\n") || str_eqc(line, "\r\n") ? above : start;
}

/* Cutting the last line of a text without a final newline takes the newline above it along. */
static size_t with_newline_above(const struct editor *x, size_t start)
{
    if (start > bom_len(x) && x->text.ptr[start - 1] == '\n') {
        start--;
        if (start > bom_len(x) && x->text.ptr[start - 1] == '\r') {
            start--;
        }
    }
    return start;
}

static int cut_lines(const struct editor *x, size_t item, bool drop_table, struct buf *out)
{
    const struct toml_item *pair = &x->items.at[item];
    size_t from = line_start(x, pair->start);
    size_t to = line_end(x, pair->end);
    size_t header_from = from; /* an empty cut */
    size_t header_to = from;
    if (drop_table && pair->base != TOML_ROOT && is_only_pair(x, pair->base, item)) {
        const struct toml_item *header = &x->items.at[pair->base];
        header_from = with_blank_line(x, line_start(x, header->start));
        header_to = line_end(x, header->end);
    }
    bool joined = header_to == from;
    if (joined) {
        from = header_from;
    }
    if (to == x->text.len && is_open_ended(x)) {
        from = with_newline_above(x, from);
    }
    if (joined) {
        return splice(x, from, to, STR_EMPTY, out);
    }
    return splice(x, header_from, to, str_slice(x->text, header_to, from), out);
}

static int remove_value(struct editor *x, bool drop_table, struct buf *out)
{
    int r = check_way(x);
    if (r < 0) {
        return r;
    }
    const struct json *old = look_up(x, x->tree, x->path_len);
    if (old == NULL) {
        return buf_append(out, x->text, x->e);
    }
    size_t item = find_item(x, TOML_ITEM_VALUE, x->path_len);
    if (item == TOML_ROOT) {
        return refuse(x, old, "the value has no place of its own");
    }
    size_t base = x->items.at[item].base;
    bool braces = base != TOML_ROOT && x->items.at[base].kind == TOML_ITEM_VALUE;
    r = braces ? cut_from_braces(x, item, out) : cut_lines(x, item, drop_table, out);
    return r < 0 ? r : verify(x, buf_str(out), NULL);
}

int toml_edit_remove(const struct toml_edit *ed, struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf result = BUF_INIT(BUF_TEXT);
    struct editor x;
    int r = editor_open(&x, ed, a, e);
    if (r == 0) {
        r = remove_value(&x, ed->drop_table, &result);
    }
    return r < 0 ? r : buf_append(out, buf_str(&result), e);
}
