/* SPDX-License-Identifier: MIT
 *
 * YAML text into struct json. libyaml cuts the text into events; the tree, the anchors, the limits
 * and the core schema are ours. libyaml reads YAML 1.1, whose grammar differs from 1.2 in corners
 * only; what people notice, that "yes" is a string and 010 is ten, is a matter of the schema
 * (yaml_scalar.c). Why not a 1.2 parser: docs/adr/0005.
 */
#include "data/yaml.h"

#include <fcntl.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/file.h"
#include "base/json_reader.h"
#include "data/yaml_priv.h"

/* Beyond any file written by people; an insertion into the sorted table costs its length. */
enum { MAX_ANCHORS = 10000, MAX_DIRECTIVES = 5000 };

struct anchor {
    struct str name;
    const struct json *value;
    bool open;     /* the value is still being read: an alias to it would be a circle */
    size_t values; /* how many values an alias adds */
    size_t height; /* levels of nesting; 0 for a scalar */
};

struct frame {
    struct json *container;
    struct json_member key; /* of a mapping, while have_key */
    bool have_key;
    struct str anchor; /* ptr NULL: none */
    size_t values_before;
    size_t height; /* of the highest child */
};

struct reader {
    struct arena *arena;
    struct str text;
    const char *name;
    struct json_limits limits;
    yaml_parser_t parser;
    struct frame *frames;
    size_t depth, frames_cap;
    struct anchor *anchors; /* sorted by name */
    size_t anchors_len, anchors_cap;
    size_t values;
    unsigned documents;
    struct json *root;
    uint32_t line, column; /* of the current event */
};

/* "name:3:7: why" for the current event. */
#define FAIL(y, e, code, fmt, ...) \
    ERR((e), (code), "%s:%u:%u: " fmt, (y)->name, (y)->line, (y)->column __VA_OPT__(, ) __VA_ARGS__)

/* --- before the parser --- */

static void locate(struct reader *y, size_t offset)
{
    y->line = 1;
    y->column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (y->text.ptr[i] == '\n') {
            y->line++;
            y->column = 1;
        } else if (((unsigned char)y->text.ptr[i] & 0xc0) != 0x80) {
            y->column++;
        }
    }
}

/* libyaml gets only text that is bounded, UTF-8 and free of what it would misread. */
static int check_text(struct reader *y, struct err *e)
{
    if (y->text.len > y->limits.max_bytes) {
        return ERR(e, ERR_LIMIT, "%s: %zu bytes of YAML; the limit is %zu", y->name, y->text.len,
                   y->limits.max_bytes);
    }
    size_t valid = str_utf8_prefix(y->text);
    size_t directives = 0;
    for (size_t i = 0; i < valid; i++) {
        unsigned char c = (unsigned char)y->text.ptr[i];
        /* Each directive is compared with all before it, and they are of no use here. */
        directives += c == '%' && (i == 0 || y->text.ptr[i - 1] == '\n');
        if (directives > MAX_DIRECTIVES) {
            locate(y, i);
            return FAIL(y, e, ERR_LIMIT, "more than %d lines begin with '%%'", MAX_DIRECTIVES);
        }
        unsigned code;
        if (yaml_is_disputed(y->text, i, &code)) {
            locate(y, i);
            return FAIL(y, e, ERR_PARSE,
                        "the invisible character U+%04X; write \\u%04X in double quotes", code,
                        code);
        }
    }
    if (valid < y->text.len) {
        locate(y, valid);
        return FAIL(y, e, ERR_PARSE, "not valid UTF-8");
    }
    return 0;
}

/* --- what libyaml says --- */

/* Its problems are told in the terms of the grammar; these are for people who have a file to mend.
 */
static const struct message {
    const char *problem;
    const char *context; /* NULL: any */
    const char *text;
    bool begin;  /* the place to look at is where the context began */
    bool opened; /* say where that was */
} messages[] = {
    { "unexpected end of stream", "quoted scalar", "unclosed quote", .begin = true },
    { "unexpected document indicator", "quoted scalar", "unclosed quote", .begin = true },
    { "expected ',' or ']'", NULL, "missing ',' or ']'", .opened = true },
    { "expected ',' or '}'", NULL, "missing ',' or '}'", .opened = true },
    { "mapping values are not allowed", NULL,
      "':' is not allowed here; is a line indented wrongly, or does a value that contains ': ' "
      "need "
      "quotes?" },
    { "could not find expected ':'", NULL, "missing ':' after the key", .begin = true },
    { "did not find expected key", NULL,
      "expected 'key: value' here; is a line indented wrongly, or a quote or bracket missing "
      "before "
      "this?" },
    { "expected '-' indicator", NULL,
      "expected '- ' and another item; is a line indented wrongly?" },
    { "expected <document start>", NULL, "text after the end of the document" },
    { "block sequence entries", NULL, "'- ' is not allowed here; begin a new line with it" },
    { "mapping keys are not allowed", NULL, "'? ' is not allowed here" },
    { "expected node content", NULL, "a value is missing here" },
    { "undefined tag handle", NULL, "unknown tag" },
    { "tab character", NULL, "a tab is used for indentation; use spaces" },
    { "incompatible YAML document", NULL, "only %YAML 1.2 is supported" },
};

static const struct message *find_message(const char *problem, const char *context)
{
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        const struct message *m = &messages[i];
        if (strstr(problem, m->problem) != NULL &&
            (m->context == NULL || strstr(context, m->context) != NULL)) {
            return m;
        }
    }
    return NULL;
}

static void put_mark(struct reader *y, yaml_mark_t mark)
{
    y->line = (uint32_t)mark.line + 1;
    y->column = (uint32_t)mark.column + 1;
}

/* The byte at a mark, whose index counts characters. */
static char byte_at(const struct reader *y, yaml_mark_t mark)
{
    size_t left = mark.index;
    size_t i = 0;
    while (i < y->text.len && left > 0) {
        i++;
        left -= i == y->text.len || ((unsigned char)y->text.ptr[i] & 0xc0) != 0x80;
    }
    return i < y->text.len ? y->text.ptr[i] : '\0';
}

/* "found character that cannot start any token" */
static int refused_character(struct reader *y, char c, struct err *e)
{
    if (c == '\t') {
        return FAIL(y, e, ERR_PARSE, "a tab is used for indentation; use spaces");
    }
    return FAIL(y, e, ERR_PARSE, "a value cannot begin with '%c'; put it in quotes", c);
}

static int refused(struct reader *y, struct err *e)
{
    const yaml_parser_t *p = &y->parser;
    const char *problem = p->problem != NULL ? p->problem : "not valid YAML";
    const char *context = p->context != NULL ? p->context : "";
    if (p->error == YAML_MEMORY_ERROR) {
        return ERR(e, ERR_LIMIT, "%s: not enough memory", y->name);
    }
    if (p->error == YAML_READER_ERROR) {
        locate(y, p->problem_offset < y->text.len ? p->problem_offset : y->text.len);
        return FAIL(y, e, ERR_PARSE, "%s", problem);
    }
    const struct message *m = find_message(problem, context);
    put_mark(y, m != NULL && m->begin ? p->context_mark : p->problem_mark);
    if (strstr(problem, "cannot start any token") != NULL) {
        return refused_character(y, byte_at(y, p->problem_mark), e);
    }
    if (m != NULL && m->opened) {
        return FAIL(y, e, ERR_PARSE, "%s (opened on line %zu)", m->text, p->context_mark.line + 1);
    }
    return FAIL(y, e, ERR_PARSE, "%s", m != NULL ? m->text : problem);
}

/* --- anchors --- */

/* Where the name is, or would have to be inserted. */
static size_t anchor_slot(const struct reader *y, struct str name, bool *ret_found)
{
    size_t low = 0;
    size_t high = y->anchors_len;
    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = str_cmp(y->anchors[middle].name, name);
        if (c == 0) {
            *ret_found = true;
            return middle;
        }
        low = c < 0 ? middle + 1 : low;
        high = c < 0 ? high : middle;
    }
    return low;
}

/* `name` now names v; a later anchor of the same name wins. `anchor` NULL is none. */
static int set_anchor(struct reader *y, const yaml_char_t *anchor, const struct json *v, bool open,
                      struct err *e)
{
    if (anchor == NULL) {
        return 0;
    }
    struct str name = str_of((const char *)anchor);
    bool found;
    size_t slot = anchor_slot(y, name, &found);
    if (!found) {
        if (y->anchors_len == MAX_ANCHORS) {
            return FAIL(y, e, ERR_LIMIT, "more than %d anchors", MAX_ANCHORS);
        }
        if (y->anchors_len == y->anchors_cap) {
            y->anchors_cap = y->anchors_cap == 0 ? 16 : y->anchors_cap * 2;
            y->anchors = xrealloc(y->anchors, y->anchors_cap * sizeof *y->anchors);
        }
        memmove(y->anchors + slot + 1, y->anchors + slot,
                (y->anchors_len - slot) * sizeof *y->anchors);
        y->anchors_len++;
        y->anchors[slot].name = arena_str(y->arena, name);
    }
    struct anchor *a = &y->anchors[slot];
    *a = (struct anchor) { .name = a->name, .value = v, .open = open, .values = 1 };
    return 0;
}

/* --- the tree --- */

static void put_position(const struct reader *y, struct json *v)
{
    v->line = y->line;
    v->column = y->column;
}

/* Hangs v, which stands for so many values and levels, where the current event stands. */
static int attach(struct reader *y, struct json *v, size_t values, size_t height, struct err *e)
{
    if (values > y->limits.max_values - y->values) {
        return FAIL(y, e, ERR_LIMIT, "too many values (aliases count each time)");
    }
    if (height > y->limits.max_depth - y->depth) {
        return FAIL(y, e, ERR_LIMIT, "nested too deep");
    }
    y->values += values;
    put_position(y, v);
    if (y->depth == 0) {
        y->root = v;
        return 0;
    }
    struct frame *top = &y->frames[y->depth - 1];
    top->height = height > top->height ? height : top->height;
    if (top->container->type == JSON_ARRAY) {
        json_push(y->arena, top->container, v);
    } else {
        struct json_member *m = json_append(y->arena, top->container, top->key.key, v);
        m->line = top->key.line;
        m->column = top->key.column;
        top->have_key = false;
    }
    return 0;
}

static bool at_key(const struct reader *y)
{
    const struct frame *top = y->depth > 0 ? &y->frames[y->depth - 1] : NULL;
    return top != NULL && top->container->type == JSON_OBJECT && !top->have_key;
}

static int find_tag(struct reader *y, const yaml_char_t *name, enum yaml_tag *ret, struct err *e)
{
    struct str tag = str_of((const char *)name);
    *ret = YAML_TAG_NONE;
    if (tag.len == 0 || yaml_tag_parse(tag, ret)) {
        return 0;
    }
    char shown[JSON_SHOW_LEN];
    return FAIL(y, e, ERR_PARSE, "unknown tag '%s'", json_show(tag, shown));
}

static void push_frame(struct reader *y, struct frame frame)
{
    if (y->depth == y->frames_cap) {
        y->frames_cap = y->frames_cap == 0 ? 16 : y->frames_cap * 2;
        y->frames = xrealloc(y->frames, y->frames_cap * sizeof *y->frames);
    }
    y->frames[y->depth++] = frame;
}

/* Mappings and sequences begin alike; v is the empty container. */
static int on_container(struct reader *y, struct json *v, const yaml_char_t *anchor,
                        const yaml_char_t *tag_name, struct err *e)
{
    bool is_map = v->type == JSON_OBJECT;
    if (at_key(y)) {
        return FAIL(y, e, ERR_PARSE,
                    "a key must be text; put a value that begins with '%c' in quotes",
                    is_map ? '{' : '[');
    }
    enum yaml_tag tag;
    int r = find_tag(y, tag_name, &tag, e);
    if (r < 0) {
        return r;
    }
    if (tag != YAML_TAG_NONE && tag != YAML_TAG_ANY &&
        tag != (is_map ? YAML_TAG_MAP : YAML_TAG_SEQ)) {
        return FAIL(y, e, ERR_PARSE, "a %s cannot have the tag '%s'",
                    is_map ? "mapping" : "sequence", yaml_tag_name(tag));
    }
    size_t values_before = y->values;
    r = attach(y, v, 1, 1, e);
    r = r == 0 ? set_anchor(y, anchor, v, true, e) : r;
    if (r == 0) {
        struct str name =
            anchor == NULL ? (struct str) { 0 } : arena_str(y->arena, str_of((const char *)anchor));
        push_frame(
            y, (struct frame) { .container = v, .anchor = name, .values_before = values_before });
    }
    return r;
}

static int check_keys(struct reader *y, const struct json *object, struct err *e)
{
    const struct json_member *first;
    const struct json_member *again = json_duplicate(object, &first);
    if (again == NULL) {
        return 0;
    }
    char shown[JSON_SHOW_LEN];
    y->line = again->line;
    y->column = again->column;
    return FAIL(y, e, ERR_PARSE, "duplicate key '%s' (first on line %u)",
                json_show(again->key, shown), first->line);
}

/* From here on aliases to the finished container are allowed, unless its name went to another value
 * inside it. */
static void close_anchor(struct reader *y, const struct frame *done)
{
    bool found = false;
    size_t slot = done->anchor.ptr == NULL ? 0 : anchor_slot(y, done->anchor, &found);
    if (found && y->anchors[slot].value == done->container) {
        struct anchor *a = &y->anchors[slot];
        a->open = false;
        a->values = y->values - done->values_before;
        a->height = done->height + 1;
    }
}

static int on_container_end(struct reader *y, struct err *e)
{
    if (y->depth == 0) {
        return FAIL(y, e, ERR_BUG, "the YAML parser ended a container that it did not begin");
    }
    struct frame done = y->frames[--y->depth];
    size_t height = done.height + 1;
    if (y->depth > 0 && y->frames[y->depth - 1].height < height) {
        y->frames[y->depth - 1].height = height;
    }
    close_anchor(y, &done);
    return done.container->type == JSON_OBJECT ? check_keys(y, done.container, e) : 0;
}

static int on_key(struct reader *y, struct str text, bool plain, enum yaml_tag tag, struct err *e)
{
    if (plain && str_eqc(text, "<<")) {
        return FAIL(y, e, ERR_PARSE, "merge keys ('<<') are not supported; write the keys out");
    }
    if (plain && text.len == 0) {
        return FAIL(y, e, ERR_PARSE, "a key is missing before ':'");
    }
    if (tag != YAML_TAG_NONE && tag != YAML_TAG_STR && tag != YAML_TAG_ANY) {
        return FAIL(y, e, ERR_PARSE, "a key is text and cannot have the tag '%s'",
                    yaml_tag_name(tag));
    }
    struct frame *top = &y->frames[y->depth - 1];
    top->key = (struct json_member) { .key = arena_str(y->arena, text),
                                      .line = y->line,
                                      .column = y->column };
    top->have_key = true;
    return 0;
}

static int on_scalar(struct reader *y, const yaml_event_t *event, struct err *e)
{
    struct str text = str_n(event->data.scalar.value, event->data.scalar.length);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    bool key = at_key(y);
    enum yaml_tag tag;
    int r = find_tag(y, event->data.scalar.tag, &tag, e);
    if (r < 0) {
        return r;
    }
    struct json *v;
    const char *why = "";
    enum yaml_tag resolve_as = tag == YAML_TAG_NONE && (key || !plain) ? YAML_TAG_STR : tag;
    if (!yaml_resolve(y->arena, text, resolve_as, &v, &why)) {
        char shown[JSON_SHOW_LEN];
        return FAIL(y, e, ERR_PARSE, "'%s' %s", json_show(text, shown), why);
    }
    put_position(y, v);
    r = set_anchor(y, event->data.scalar.anchor, v, false, e);
    if (r < 0) {
        return r;
    }
    return key ? on_key(y, text, plain, tag, e) : attach(y, v, 1, 0, e);
}

static int on_alias(struct reader *y, const yaml_event_t *event, struct err *e)
{
    struct str name = str_of((const char *)event->data.alias.anchor);
    char shown[JSON_SHOW_LEN];
    (void)json_show(name, shown);
    if (at_key(y)) {
        return FAIL(y, e, ERR_PARSE, "the alias '*%s' cannot be a key", shown);
    }
    bool found;
    size_t slot = anchor_slot(y, name, &found);
    if (!found) {
        return FAIL(y, e, ERR_PARSE, "the alias '*%s' has no anchor '&%s' before it", shown, shown);
    }
    const struct anchor *a = &y->anchors[slot];
    if (a->open) {
        return FAIL(y, e, ERR_PARSE, "the alias '*%s' stands inside the value that it names",
                    shown);
    }
    /* The limits first: the copy is what they are there to prevent. */
    struct json *holder = json_null(y->arena);
    int r = attach(y, holder, a->values, a->height, e);
    if (r < 0) {
        return r;
    }
    *holder = *json_copy(y->arena, a->value);
    put_position(y, holder);
    return 0;
}

static int on_document(struct reader *y, const yaml_event_t *event, struct err *e)
{
    if (++y->documents > 1) {
        return FAIL(y, e, ERR_PARSE, "a second document begins here; only one is allowed");
    }
    const yaml_version_directive_t *v = event->data.document_start.version_directive;
    if (v != NULL && (v->major != 1 || v->minor != 2)) {
        return FAIL(y, e, ERR_PARSE, "%%YAML %d.%d is not supported, only 1.2", v->major, v->minor);
    }
    return 0;
}

static int on_event(struct reader *y, const yaml_event_t *event, struct err *e)
{
    put_mark(y, event->start_mark);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return on_document(y, event, e);
    case YAML_MAPPING_START_EVENT:
        return on_container(y, json_object(y->arena), event->data.mapping_start.anchor,
                            event->data.mapping_start.tag, e);
    case YAML_SEQUENCE_START_EVENT:
        return on_container(y, json_array(y->arena), event->data.sequence_start.anchor,
                            event->data.sequence_start.tag, e);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return on_container_end(y, e);
    case YAML_SCALAR_EVENT:
        return on_scalar(y, event, e);
    case YAML_ALIAS_EVENT:
        return on_alias(y, event, e);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return 0;
}

static int read_events(struct reader *y, struct err *e)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&y->parser, &event)) {
            return refused(y, e);
        }
        bool last = event.type == YAML_STREAM_END_EVENT;
        int r = on_event(y, &event, e);
        yaml_event_delete(&event);
        if (r < 0 || last) {
            return r;
        }
    }
}

int yaml_parse(struct arena *a, struct str text, const char *name, const struct json_limits *limits,
               struct json **ret, struct err *e)
{
    if (str_starts(text, STR("\xef\xbb\xbf"))) {
        text = str_slice(text, 3, text.len); /* a byte order mark */
    }
    struct reader y = { .arena = a, .text = text, .name = name, .line = 1, .column = 1 };
    y.limits = json_limits_of(limits);
    int r = check_text(&y, e);
    if (r < 0) {
        return r;
    }
    if (!yaml_parser_initialize(&y.parser)) {
        return ERR(e, ERR_LIMIT, "%s: not enough memory", name);
    }
    yaml_parser_set_encoding(&y.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)text.ptr, text.len);
    r = read_events(&y, e);
    if (r == 0) {
        *ret = y.root != NULL ? y.root : json_null(a);
    }
    yaml_parser_delete(&y.parser);
    free(y.frames);
    free(y.anchors);
    return r;
}

int yaml_load(struct arena *a, const char *path, const struct json_limits *limits,
              struct json **ret, struct err *e)
{
    size_t max = json_limits_of(limits).max_bytes;
    CLEANUP(buf) struct buf text = BUF_INIT(max);
    int r = file_read(AT_FDCWD, path, max, &text, e);
    if (r < 0) {
        return r;
    }
    return str_ends(str_of(path), STR(".json"))
               ? json_parse_named(a, buf_str(&text), path, limits, ret, e)
               : yaml_parse(a, buf_str(&text), path, limits, ret, e);
}
