/* SPDX-License-Identifier: MIT
 *
 * The grammar of TOML above the tokens: headers, pairs, arrays, inline tables, and the rules on who
 * may add to which table. A table's origin lives in the parser's index (toml_map.c), not in the
 * tree.
 */
#include "data/toml_priv.h"

#include <stdio.h>

enum { DEFAULT_BYTES = 64 << 20, DEFAULT_DEPTH = 256, DEFAULT_VALUES = 4000000 };

#define SHOWN_LEN 64

/* A key for a message: shortened, control characters masked. */
static const char *shown(struct str key, char out[SHOWN_LEN])
{
    size_t n = 0;
    for (size_t i = 0; i < key.len && n + 4 < SHOWN_LEN; i++) {
        char c = key.ptr[i];
        out[n++] = (char)((unsigned char)c < 0x20 || c == 0x7f ? '?' : c);
    }
    if (n < key.len) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    out[n] = '\0';
    return out;
}

/* --- the tree --- */

static void append_member(struct toml_parser *p, struct json *table, struct json_member m)
{
    if (table->object.len == table->object.cap) {
        size_t cap = table->object.cap == 0 ? 4 : table->object.cap * 2;
        struct json_member *grown = arena_array(p->arena, cap, sizeof *grown);
        if (table->object.len > 0) {
            memcpy(grown, table->object.members, table->object.len * sizeof *grown);
        }
        table->object.members = grown;
        table->object.cap = cap;
    }
    table->object.members[table->object.len++] = m;
}

static void add_value(struct toml_parser *p, struct json *table, struct json_member m,
                      enum toml_origin origin)
{
    append_member(p, table, m);
    toml_map_add(&p->map, &(struct toml_slot) {
                              .parent = table, .key = m.key, .value = m.value, .origin = origin });
}

static int check_depth(const struct toml_parser *p, size_t depth, size_t offset)
{
    if (depth > p->max_depth) {
        return toml_limit(p, offset, "nested deeper than %zu levels", p->max_depth);
    }
    return 0;
}

/* Makes the table named by part `i` of the key inside *table and steps into it. */
static int add_table(struct toml_parser *p, const struct toml_key *k, size_t i,
                     enum toml_origin origin, struct json **table, size_t *depth)
{
    int r = check_depth(p, *depth + 1, k->starts[i]);
    if (r < 0) {
        return r;
    }
    struct json *made = NULL;
    r = toml_new(p, JSON_OBJECT, k->starts[i], &made);
    if (r < 0) {
        return r;
    }
    struct json_member m = { k->parts[i], made, made->line, made->column };
    add_value(p, *table, m, origin);
    *table = made;
    (*depth)++;
    return 0;
}

static const char *origin_text(const struct toml_slot *s)
{
    switch (s->origin) {
    case TOML_IMPLICIT:
    case TOML_EXPLICIT:
        return "a table with a header";
    case TOML_DOTTED:
        return "a table made by dotted keys";
    case TOML_ELEMENTS:
        return "an array of tables";
    case TOML_FIXED:
        break;
    }
    if (s->value->type == JSON_ARRAY) {
        return "an array";
    }
    return s->value->type == JSON_OBJECT && !toml_is_tagged(s->value) ? "an inline table"
                                                                      : "a value";
}

static int clash(const struct toml_parser *p, const struct toml_key *k, size_t i,
                 const struct toml_slot *s)
{
    char name[SHOWN_LEN];
    return toml_fail(p, k->starts[i], "'%s' is already %s, since line %u", shown(k->parts[i], name),
                     origin_text(s), s->value->line);
}

/* --- values --- */

static int value(struct toml_parser *p, size_t depth, struct json **ret);
static int pair(struct toml_parser *p, struct json *table, size_t depth);

/* Behind an element: 1 when another follows, 0 when the bracket closed. */
static int next_element(struct toml_parser *p, char closing, size_t opened)
{
    int c = toml_peek(p);
    if (c == ',' || c == closing) {
        p->at++;
        return c == ',';
    }
    char found[TOML_FOUND_LEN];
    if (c < 0) {
        return toml_fail(p, opened, "this '%c' is not closed", closing == ']' ? '[' : '{');
    }
    return toml_fail(p, p->at, "expected ',' or '%c', found %s%s", closing, toml_found(p, found),
                     closing == '}' ? " (an inline table stands on one line)" : "");
}

static int array_elements(struct toml_parser *p, struct json *array, size_t depth)
{
    size_t opened = p->at++;
    for (int more = 1; more > 0;) {
        int r = toml_skip_blank(p);
        if (r < 0) {
            return r;
        }
        if (toml_peek(p) == ']') { /* empty, or behind a trailing comma */
            p->at++;
            return 0;
        }
        if (toml_peek(p) < 0) {
            return next_element(p, ']', opened);
        }
        struct json *v = NULL;
        r = value(p, depth, &v);
        if (r == 0) {
            json_push(p->arena, array, v);
            r = toml_skip_blank(p);
        }
        more = r < 0 ? r : next_element(p, ']', opened);
        if (more < 0) {
            return more;
        }
    }
    return 0;
}

static int array_value(struct toml_parser *p, size_t depth, struct json **ret)
{
    struct json *array = NULL;
    int r = toml_new(p, JSON_ARRAY, p->at, &array);
    if (r < 0) {
        return r;
    }
    r = array_elements(p, array, depth);
    *ret = array;
    return r;
}

static int inline_table(struct toml_parser *p, size_t depth, struct json **ret)
{
    struct json *table = NULL;
    int r = toml_new(p, JSON_OBJECT, p->at, &table);
    if (r < 0) {
        return r;
    }
    size_t opened = p->at++;
    *ret = table;
    toml_skip_space(p);
    if (toml_peek(p) == '}') {
        p->at++;
        return 0;
    }
    for (int more = 1; more > 0;) {
        r = pair(p, table, depth);
        if (r < 0) {
            return r;
        }
        toml_skip_space(p);
        more = next_element(p, '}', opened);
        if (more < 0) {
            return more;
        }
    }
    return 0;
}

/* `depth` is that of the container the value goes into. */
static int value(struct toml_parser *p, size_t depth, struct json **ret)
{
    size_t offset = p->at;
    int c = toml_peek(p);
    if (c == '[' || c == '{') {
        int r = check_depth(p, depth + 1, offset);
        if (r < 0) {
            return r;
        }
        return c == '[' ? array_value(p, depth + 1, ret) : inline_table(p, depth + 1, ret);
    }
    if (c == '"' || c == '\'') {
        struct str s;
        int r = toml_string(p, &s);
        return r < 0 ? r : toml_make_string(p, offset, s, ret);
    }
    return toml_scalar(p, ret);
}

/* --- pairs --- */

/* Into the tables that the leading parts of a dotted key name. */
static int walk_dotted(struct toml_parser *p, const struct toml_key *k, struct json **table,
                       size_t *depth)
{
    for (size_t i = 0; i + 1 < k->len; i++) {
        struct toml_slot *s = toml_map_find(&p->map, *table, k->parts[i]);
        if (s == NULL) {
            int r = add_table(p, k, i, TOML_DOTTED, table, depth);
            if (r < 0) {
                return r;
            }
            continue;
        }
        if (s->origin != TOML_DOTTED && s->origin != TOML_IMPLICIT) {
            return clash(p, k, i, s);
        }
        s->origin = TOML_DOTTED;
        *table = s->value;
        (*depth)++;
    }
    return 0;
}

static int equals_sign(struct toml_parser *p)
{
    if (toml_peek(p) != '=') {
        char found[TOML_FOUND_LEN];
        return toml_fail(p, p->at, "expected '=' behind the key, found %s", toml_found(p, found));
    }
    p->at++;
    toml_skip_space(p);
    return 0;
}

static int pair(struct toml_parser *p, struct json *table, size_t depth)
{
    struct toml_key k;
    int r = toml_key(p, &k);
    if (r < 0) {
        return r;
    }
    r = walk_dotted(p, &k, &table, &depth);
    if (r < 0) {
        return r;
    }
    size_t last = k.len - 1;
    const struct toml_slot *twice = toml_map_find(&p->map, table, k.parts[last]);
    if (twice != NULL) {
        return clash(p, &k, last, twice);
    }
    struct json_member m = { .key = k.parts[last] };
    toml_position(p, k.starts[last], &m.line, &m.column);
    r = equals_sign(p);
    if (r < 0) {
        return r;
    }
    r = value(p, depth, &m.value);
    if (r < 0) {
        return r;
    }
    add_value(p, table, m, TOML_FIXED);
    return 0;
}

/* --- headers --- */

/* Into the super-tables of a header; from an array of tables into its last element. */
static int walk_header(struct toml_parser *p, const struct toml_key *k)
{
    for (size_t i = 0; i + 1 < k->len; i++) {
        struct toml_slot *s = toml_map_find(&p->map, p->table, k->parts[i]);
        if (s == NULL) {
            int r = add_table(p, k, i, TOML_IMPLICIT, &p->table, &p->depth);
            if (r < 0) {
                return r;
            }
        } else if (s->origin == TOML_FIXED) {
            return clash(p, k, i, s);
        } else if (s->origin == TOML_ELEMENTS) {
            p->table = s->value->array.items[s->value->array.len - 1];
            p->depth += 2;
        } else {
            p->table = s->value;
            p->depth++;
        }
    }
    return 0;
}

static int open_table(struct toml_parser *p, const struct toml_key *k)
{
    size_t last = k->len - 1;
    struct toml_slot *s = toml_map_find(&p->map, p->table, k->parts[last]);
    if (s == NULL) {
        return add_table(p, k, last, TOML_EXPLICIT, &p->table, &p->depth);
    }
    if (s->origin != TOML_IMPLICIT) {
        return clash(p, k, last, s);
    }
    s->origin = TOML_EXPLICIT;
    p->table = s->value;
    p->depth++;
    return 0;
}

static int open_element(struct toml_parser *p, const struct toml_key *k)
{
    size_t last = k->len - 1;
    size_t offset = k->starts[last];
    int r = check_depth(p, p->depth + 2, offset);
    if (r < 0) {
        return r;
    }
    struct json *array = NULL;
    const struct toml_slot *s = toml_map_find(&p->map, p->table, k->parts[last]);
    if (s != NULL && s->origin != TOML_ELEMENTS) {
        return clash(p, k, last, s);
    }
    if (s != NULL) {
        array = s->value;
    } else {
        r = toml_new(p, JSON_ARRAY, offset, &array);
        if (r < 0) {
            return r;
        }
        struct json_member m = { k->parts[last], array, array->line, array->column };
        add_value(p, p->table, m, TOML_ELEMENTS);
    }
    struct json *element = NULL;
    r = toml_new(p, JSON_OBJECT, offset, &element);
    if (r < 0) {
        return r;
    }
    json_push(p->arena, array, element);
    p->table = element;
    p->depth += 2;
    return 0;
}

static int header(struct toml_parser *p)
{
    bool element = toml_looking_at(p, "[[");
    const char *closing = element ? "]]" : "]";
    p->at += strlen(closing);
    struct toml_key k;
    int r = toml_key(p, &k);
    if (r < 0) {
        return r;
    }
    if (!toml_looking_at(p, closing)) {
        char found[TOML_FOUND_LEN];
        return toml_fail(p, p->at, "expected '%s' at the end of the header, found %s", closing,
                         toml_found(p, found));
    }
    p->at += strlen(closing);
    p->table = p->root;
    p->depth = 0;
    r = walk_header(p, &k);
    if (r < 0) {
        return r;
    }
    return element ? open_element(p, &k) : open_table(p, &k);
}

/* --- the document --- */

static int document(struct toml_parser *p)
{
    int r = toml_check_utf8(p);
    if (r < 0) {
        return r;
    }
    r = toml_new(p, JSON_OBJECT, p->begin, &p->root);
    p->table = p->root;
    while (r == 0) {
        r = toml_skip_blank(p);
        if (r < 0 || toml_peek(p) < 0) {
            break;
        }
        r = toml_peek(p) == '[' ? header(p) : pair(p, p->table, p->depth);
        if (r == 0) {
            r = toml_line_end(p);
        }
    }
    return r;
}

int toml_parse(struct arena *a, struct str text, const struct toml_opts *opts, struct json **ret,
               struct err *e)
{
    struct toml_opts defaults = { 0 };
    if (opts == NULL) {
        opts = &defaults;
    }
    const struct json_limits *l = &opts->limits;
    size_t max_bytes = l->max_bytes == 0 ? DEFAULT_BYTES : l->max_bytes;
    struct toml_parser p = {
        .arena = a,
        .name = opts->name == NULL ? "toml" : opts->name,
        .text = text,
        .max_depth = l->max_depth == 0 ? DEFAULT_DEPTH : l->max_depth,
        .values_left = l->max_values == 0 ? DEFAULT_VALUES : l->max_values,
        .tagged = opts->tagged,
        .scratch = BUF_INIT(text.len + 1),
        .e = e,
    };
    if (text.len > max_bytes) {
        return ERR(e, ERR_LIMIT, "%s: larger than %zu bytes", p.name, max_bytes);
    }
    p.begin = str_starts(text, STR("\xef\xbb\xbf")) ? 3 : 0;
    p.at = p.begin;
    p.mark.offset = p.begin;
    p.mark.line = 1;
    p.mark.column = 1;
    int r = document(&p);
    buf_done(&p.scratch);
    toml_map_done(&p.map);
    if (r == 0) {
        *ret = p.root;
    }
    return r;
}
