/* SPDX-License-Identifier: MIT
 *
 * JSON text into struct json. yyjson does the reading; around it stand two passes of ours over the
 * same text. The first one counts nesting and values, so that hostile text is refused before memory
 * is spent on it. The second one walks text and yyjson's values side by side (they come in the
 * order of the text) and gives each value its line and column. None of the three recurses.
 */
#include "base/json.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "base/json_reader.h"

/* A walk over the text that knows where it is. Columns count characters, not bytes, as editors do.
 */
struct place {
    const char *at, *end;
    uint32_t line, column;
};

static struct place place_start(struct str text)
{
    return (struct place) { .at = text.ptr, .end = text.ptr + text.len, .line = 1, .column = 1 };
}

static void place_move(struct place *p, const char *to)
{
    for (; p->at < to; p->at++) {
        if (*p->at == '\n') {
            p->line++;
            p->column = 1;
        } else if (((unsigned char)*p->at & 0xc0) != 0x80) {
            p->column++;
        }
    }
}

/* What is being read, and how messages call it. */
struct source {
    struct str text;
    const char *name; /* NULL: messages say "line L, column C" */
};

static int fail(const struct source *s, uint32_t line, uint32_t column, const char *why,
                struct err *e)
{
    return s->name == NULL ? ERR(e, ERR_PARSE, "line %u, column %u: %s", line, column, why)
                           : ERR(e, ERR_PARSE, "%s:%u:%u: %s", s->name, line, column, why);
}

static int fail_at(const struct source *s, const char *at, const char *why, struct err *e)
{
    struct place p = place_start(s->text);
    place_move(&p, at);
    return fail(s, p.line, p.column, why, e);
}

static int limit_at(const struct source *s, const char *at, const char *why, struct err *e)
{
    (void)fail_at(s, at, why, e);
    if (e != NULL) {
        e->code = ERR_LIMIT;
    }
    return -ERR_LIMIT;
}

/* --- first pass: limits --- */

/* Just behind the string whose opening quote is at `p`, or `end`. */
static const char *skip_string(const char *p, const char *end)
{
    const char *start = p + 1;
    /* prompts are long strings: from quote to quote, which an odd number of backslashes escapes */
    for (p = start; p < end; p++) {
        p = memchr(p, '"', (size_t)(end - p));
        if (p == NULL) {
            break;
        }
        const char *slash = p;
        while (slash > start && slash[-1] == '\\') {
            slash--;
        }
        if ((p - slash) % 2 == 0) {
            return p + 1;
        }
    }
    return end;
}

/* Exact for valid JSON; for other text the numbers mean nothing and yyjson refuses it afterwards.
 */
static int check_limits(const struct source *s, const struct json_limits *limits, size_t *ret_depth,
                        struct err *e)
{
    size_t depth = 0;
    size_t values = 1;
    bool opened = false; /* the last token was '[' or '{' */
    const char *end = s->text.ptr + s->text.len;
    *ret_depth = 0;
    for (const char *p = s->text.ptr; p < end;) {
        char c = *p;
        if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
            p++;
            continue;
        }
        bool closes = c == ']' || c == '}';
        values += (opened && !closes) || c == ',';
        if (values > limits->max_values) {
            return limit_at(s, p, "too many values", e);
        }
        opened = c == '[' || c == '{';
        depth += opened;
        depth -= closes && depth > 0;
        if (depth > limits->max_depth) {
            return limit_at(s, p, "nested too deep", e);
        }
        *ret_depth = depth > *ret_depth ? depth : *ret_depth;
        p = c == '"' ? skip_string(p, end) : p + 1;
    }
    return 0;
}

/* --- second pass: the tree --- */

#define POOL_BYTES ((size_t)8 << 10)

struct frame {
    struct json *container;
    size_t left; /* values still to come */
};

struct build {
    const struct source *source;
    struct arena *arena;
    struct place place;
    bool no_positions;
    struct frame *frames;
    size_t depth;
};

/* White space and what stands between two tokens. */
static bool is_between(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == ':' || c == ']' ||
           c == '}';
}

/* To the next token that is a value or a key. The text is known to be valid, so everything between
 * two of them can be skipped unread. */
static void to_next_token(struct place *p)
{
    const char *to = p->at;
    while (to < p->end && is_between(*to)) {
        to++;
    }
    place_move(p, to);
}

static void over_token(struct place *p)
{
    const char *to = p->at;
    if (*to == '"') {
        to = skip_string(to, p->end);
    } else if (*to == '[' || *to == '{') {
        to++;
    } else {
        while (to < p->end && !is_between(*to)) {
            to++;
        }
    }
    place_move(p, to);
}

static struct json *make_container(struct arena *a, yyjson_val *val)
{
    size_t n = unsafe_yyjson_get_len(val);
    struct json *v = yyjson_is_arr(val) ? json_array(a) : json_object(a);
    if (v->type == JSON_ARRAY && n > 0) {
        v->array.items = arena_array(a, n, sizeof(struct json *));
        v->array.cap = n;
    } else if (n > 0) {
        v->object.members = arena_array(a, n, sizeof(struct json_member));
        v->object.cap = n;
    }
    return v;
}

static struct json *convert(struct arena *a, yyjson_val *val)
{
    switch (yyjson_get_type(val)) {
    case YYJSON_TYPE_BOOL:
        return json_boolean(a, yyjson_get_bool(val));
    case YYJSON_TYPE_NUM:
        if (yyjson_is_real(val)) {
            return json_number(a, yyjson_get_real(val));
        }
        if (yyjson_is_uint(val) && yyjson_get_uint(val) > INT64_MAX) {
            return json_number(a, (double)yyjson_get_uint(val));
        }
        return json_integer(a, yyjson_get_sint(val));
    case YYJSON_TYPE_STR:
        return json_string(a, str_n(yyjson_get_str(val), yyjson_get_len(val)));
    case YYJSON_TYPE_ARR:
    case YYJSON_TYPE_OBJ:
        return make_container(a, val);
    default:
        return json_null(a);
    }
}

static int close_object(const struct source *s, const struct json *object, struct err *e)
{
    const struct json_member *first;
    const struct json_member *again = json_duplicate(object, &first);
    if (again == NULL) {
        return 0;
    }
    char name[JSON_SHOW_LEN];
    char why[JSON_SHOW_LEN + 64];
    (void)snprintf(why, sizeof why, "duplicate key '%s' (first on line %u)",
                   json_show(again->key, name), first->line);
    return fail(s, again->line, again->column, why, e);
}

/* Leaves the containers that are complete. */
static int close_full(struct build *b, struct err *e)
{
    while (b->depth > 0 && b->frames[b->depth - 1].left == 0) {
        const struct json *done = b->frames[--b->depth].container;
        int r = done->type == JSON_OBJECT ? close_object(b->source, done, e) : 0;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* Where the value belongs: behind the key in an object, at the end of an array. */
static void attach(struct build *b, struct json *v, const struct json_member *key)
{
    if (b->depth == 0) {
        return;
    }
    struct frame *top = &b->frames[b->depth - 1];
    top->left--;
    if (top->container->type == JSON_ARRAY) {
        json_push(b->arena, top->container, v);
    } else {
        struct json_member *m = json_append(b->arena, top->container, key->key, v);
        m->line = key->line;
        m->column = key->column;
    }
}

static int build_tree(struct build *b, yyjson_doc *doc, struct json **ret, struct err *e)
{
    yyjson_val *val = yyjson_doc_get_root(doc);
    size_t n = yyjson_doc_get_val_count(doc);
    struct json_member key = { 0 };
    bool have_key = false;
    for (size_t i = 0; i < n; i++, val++) {
        int r = close_full(b, e);
        if (r < 0) {
            return r;
        }
        uint32_t line = 0;
        uint32_t column = 0;
        if (!b->no_positions) {
            to_next_token(&b->place);
            line = b->place.line;
            column = b->place.column;
            over_token(&b->place);
        }
        bool in_object = b->depth > 0 && b->frames[b->depth - 1].container->type == JSON_OBJECT;
        if (in_object && !have_key) {
            key.key = arena_str(b->arena, str_n(yyjson_get_str(val), yyjson_get_len(val)));
            key.line = line;
            key.column = column;
            have_key = true;
            continue;
        }
        have_key = false;
        struct json *v = convert(b->arena, val);
        v->line = line;
        v->column = column;
        *ret = i == 0 ? v : *ret;
        attach(b, v, &key);
        if (yyjson_is_ctn(val)) {
            b->frames[b->depth++] = (struct frame) { v, unsafe_yyjson_get_len(val) };
        }
    }
    return close_full(b, e);
}

static int refuse(const struct source *s, const yyjson_read_err *why, struct err *e)
{
    if (why->code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) {
        return ERR(e, ERR_LIMIT, "not enough memory for %zu bytes of JSON", s->text.len);
    }
    if (why->code == YYJSON_READ_ERROR_EMPTY_CONTENT) {
        return fail(s, 1, 1, "a JSON value is missing, the text is empty", e);
    }
    size_t offset = why->pos < s->text.len ? why->pos : s->text.len;
    return fail_at(s, s->text.ptr + offset, why->msg, e);
}

static int parse(struct arena *a, const struct source *s, size_t depth, bool no_positions,
                 struct json **ret, struct err *e)
{
    /* An event of a stream and a short answer are read without malloc(). */
    alignas(max_align_t) char room[POOL_BYTES];
    yyjson_alc pool;
    bool is_small = yyjson_read_max_memory_usage(s->text.len, YYJSON_READ_NOFLAG) <= sizeof room &&
                    yyjson_alc_pool_init(&pool, room, sizeof room);
    yyjson_read_err why = { 0 };
    /* Not modified: YYJSON_READ_INSITU is off. */
    yyjson_doc *doc = yyjson_read_opts((char *)s->text.ptr, s->text.len, YYJSON_READ_NOFLAG,
                                       is_small ? &pool : NULL, &why);
    if (doc == NULL) {
        return refuse(s, &why, e);
    }
    struct build b = {
        .source = s, .arena = a, .place = place_start(s->text), .no_positions = no_positions
    };
    b.frames = xcalloc(depth, sizeof *b.frames);
    struct json *tree = NULL;
    int r = build_tree(&b, doc, &tree, e);
    if (r == 0) {
        *ret = tree;
    }
    free(b.frames);
    yyjson_doc_free(doc);
    return r;
}

int json_parse_named(struct arena *a, struct str text, const char *name,
                     const struct json_limits *limits, struct json **ret, struct err *e)
{
    struct json_limits bound = json_limits_of(limits);
    struct source s = { .text = text, .name = name };
    if (text.len > bound.max_bytes) {
        return ERR(e, ERR_LIMIT, "%s%s%zu bytes of JSON; the limit is %zu",
                   name != NULL ? name : "", name != NULL ? ": " : "", text.len, bound.max_bytes);
    }
    if (text.len == 0) {
        return refuse(&s, &(yyjson_read_err) { .code = YYJSON_READ_ERROR_EMPTY_CONTENT }, e);
    }
    size_t depth;
    int r = check_limits(&s, &bound, &depth, e);
    if (r < 0) {
        return r;
    }
    r = parse(a, &s, depth, bound.no_positions, ret, e);
    /* a duplicate key: once more, for a message that says where */
    return r < 0 && bound.no_positions ? parse(a, &s, depth, false, ret, e) : r;
}

int json_parse(struct arena *a, struct str text, const struct json_limits *limits,
               struct json **ret, struct err *e)
{
    return json_parse_named(a, text, NULL, limits, ret, e);
}

const char *json_format_real(double d, char out[JSON_REAL_LEN])
{
    yyjson_val val = { 0 };
    (void)yyjson_set_real(&val, d);
    size_t len = 0;
    char *text = yyjson_val_write_opts(&val, YYJSON_WRITE_NOFLAG, NULL, &len, NULL);
    if (text != NULL && len < JSON_REAL_LEN) {
        memcpy(out, text, len + 1);
    } else {
        (void)snprintf(out, JSON_REAL_LEN, "null");
    }
    free(text);
    return out;
}
