/* SPDX-License-Identifier: MIT
 *
 * YAML text into struct json. libfyaml is used as a parser of events only: its document tree would
 * recurse, print and resolve by itself. The tree, the anchors, the limits and the schema are ours.
 */
#include "base/yaml.h"

#include <fcntl.h>
#include <libfyaml.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json_priv.h"
#include "base/yaml_priv.h"

/* Beyond any file written by people; an insertion into the sorted table costs its length. */
enum { MAX_ANCHORS = 10000 };

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
    struct fy_diag *diag;
    struct fy_parser *parser;
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

/* libfyaml gets only text that it cannot misread: bounded, UTF-8, no NUL or other control bytes. */
static int check_text(struct reader *y, struct err *e)
{
    if (y->text.len > y->limits.max_bytes) {
        return ERR(e, ERR_LIMIT, "%s: %zu bytes of YAML; the limit is %zu", y->name, y->text.len,
                   y->limits.max_bytes);
    }
    size_t valid = str_utf8_prefix(y->text);
    for (size_t i = 0; i < valid; i++) {
        unsigned char c = (unsigned char)y->text.ptr[i];
        if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f) {
            locate(y, i);
            return FAIL(y, e, ERR_PARSE, "control character 0x%02x", c);
        }
    }
    if (valid < y->text.len) {
        locate(y, valid);
        return FAIL(y, e, ERR_PARSE, "not valid UTF-8");
    }
    return 0;
}

/* --- what libfyaml says --- */

/* Its messages are written for people who know the specification; these are for people who have a
 * file to mend. The first entry whose text is part of the message counts. */
static const struct message {
    const char *part;
    const char *instead;
    bool quote;  /* the position is behind an opening quote */
    bool opened; /* say where the innermost container began */
} messages[] = {
    { .part = "tab", .instead = "a tab is used for indentation; use spaces" },
    { .part = "double-quoted scalar without closing",
      .instead = "unclosed double quote",
      .quote = true },
    { .part = "single-quoted scalar without closing",
      .instead = "unclosed single quote",
      .quote = true },
    { .part = "sequence without a closing", .instead = "unclosed '[' or '{'", .opened = true },
    { .part = "comma in flow sequence", .instead = "missing ',' or ']'", .opened = true },
    { .part = "comma in flow mapping", .instead = "missing ',' or '}'", .opened = true },
    { .part = "mismatched flow", .instead = "wrong closing bracket", .opened = true },
    { .part = "multiline plain key",
      .instead = "a ':' is missing or the next line is indented wrongly" },
    { .part = "nested block mapping on the same line",
      .instead = "a second ': ' on one line; put the value in quotes if it contains one" },
    { .part = "invalid value after mapping", .instead = "expected 'key: value'" },
    { .part = "scalar at the end of block sequence", .instead = "expected '- ' and another item" },
    { .part = "trailing content after single-quoted",
      .instead = "text after the closing quote; inside single quotes a quote is written twice" },
    { .part = "trailing content after double-quoted",
      .instead = "text after the closing quote; inside double quotes a quote is written \\\"" },
    { .part = "plain scalar cannot start",
      .instead = "a value cannot begin with this character; put it in quotes" },
    { .part = "could not find expected ':'", .instead = "missing ':' after the key" },
    { .part = "missing ':'", .instead = "missing ':' after the key" },
    { .part = "undefined tag prefix", .instead = "unknown tag" },
    { .part = "mapping in plain multiline", .instead = "wrong indentation" },
    { .part = "indent", .instead = "wrong indentation" },
    { .part = "indend", .instead = "wrong indentation" },
};

static const struct message *readable(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        if (strstr(text, messages[i].part) != NULL) {
            return &messages[i];
        }
    }
    return NULL;
}

static void keep_silent(struct fy_diag *diag, void *user, const char *text, size_t len)
{
    (void)diag, (void)user, (void)text, (void)len;
}

/* Whether a line (the first is 1) has a tab in its indentation. libfyaml often takes such a line
 * for the continuation of the one before and complains of something else. */
static bool indented_by_tab(const struct reader *y, uint32_t line)
{
    struct str rest = y->text;
    struct str at = str_split(&rest, '\n');
    while (--line > 0 && rest.ptr != NULL) {
        at = str_split(&rest, '\n');
    }
    size_t i = 0;
    while (i < at.len && at.ptr[i] == ' ') {
        i++;
    }
    return line == 0 && i < at.len && at.ptr[i] == '\t';
}

static int refused(struct reader *y, struct err *e)
{
    void *at = NULL;
    const struct fy_diag_error *why = fy_diag_errors_iterate(y->diag, &at);
    while (why != NULL && why->type != FYET_ERROR) {
        why = fy_diag_errors_iterate(y->diag, &at);
    }
    if (why == NULL) {
        return FAIL(y, e, ERR_PARSE, "not valid YAML from here on");
    }
    const struct message *m = readable(why->msg);
    bool quote = m != NULL && m->quote && why->column > 1;
    y->line = why->line > 0 ? (uint32_t)why->line : 1;
    y->column = why->column > 0 ? (uint32_t)why->column - quote : 1;
    for (uint32_t line = y->line; !quote && line <= y->line + 1; line++) {
        if (indented_by_tab(y, line)) {
            y->line = line;
            y->column = 1;
            return FAIL(y, e, ERR_PARSE, "%s", messages[0].instead);
        }
    }
    if (m != NULL && m->opened && y->depth > 0) {
        const struct json *open = y->frames[y->depth - 1].container;
        return FAIL(y, e, ERR_PARSE, "%s (opened on line %u)", m->instead, open->line);
    }
    return FAIL(y, e, ERR_PARSE, "%s", m != NULL ? m->instead : why->msg);
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

static struct str event_anchor(struct reader *y, struct fy_event *event)
{
    struct fy_token *token = fy_event_get_anchor_token(event);
    size_t len = 0;
    const char *ptr = token == NULL ? NULL : fy_token_get_text(token, &len);
    return ptr == NULL ? (struct str) { 0 } : arena_str(y->arena, str_n(ptr, len));
}

/* `name` now names v; a later anchor of the same name wins. A name without ptr is no anchor. */
static int set_anchor(struct reader *y, struct str name, const struct json *v, bool open,
                      struct err *e)
{
    if (name.ptr == NULL) {
        return 0;
    }
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
        y->anchors[slot].name = name;
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

static int event_tag(struct reader *y, struct fy_event *event, enum yaml_tag *ret, struct err *e)
{
    struct fy_token *token = fy_event_get_tag_token(event);
    *ret = YAML_TAG_NONE;
    if (token == NULL) {
        return 0;
    }
    size_t len = 0;
    const char *ptr = fy_token_get_text(token, &len);
    if (len == 1 && ptr[0] == '!') {
        /* The non-specific tag: whatever a scalar looks like, it is text. */
        *ret = event->type == FYET_SCALAR ? YAML_TAG_STR : YAML_TAG_NONE;
        return 0;
    }
    if (!yaml_tag_parse(str_n(ptr, len), ret)) {
        const struct fy_mark *mark = fy_token_start_mark(token);
        y->line = mark != NULL ? (uint32_t)mark->line + 1 : y->line;
        y->column = mark != NULL ? (uint32_t)mark->column + 1 : y->column;
        char shown[JSON_SHOW_LEN];
        return FAIL(y, e, ERR_PARSE, "unknown tag '%s'", json_show(str_n(ptr, len), shown));
    }
    return 0;
}

static int on_container(struct reader *y, struct fy_event *event, struct err *e)
{
    bool is_map = event->type == FYET_MAPPING_START;
    if (at_key(y)) {
        return FAIL(y, e, ERR_PARSE,
                    "a key must be text; put a value that begins with '%c' in quotes",
                    is_map ? '{' : '[');
    }
    enum yaml_tag tag;
    int r = event_tag(y, event, &tag, e);
    if (r < 0) {
        return r;
    }
    if (tag != YAML_TAG_NONE && tag != (is_map ? YAML_TAG_MAP : YAML_TAG_SEQ)) {
        return FAIL(y, e, ERR_PARSE, "a %s cannot have the tag '%s'",
                    is_map ? "mapping" : "sequence", yaml_tag_name(tag));
    }
    size_t values_before = y->values;
    struct json *v = is_map ? json_object(y->arena) : json_array(y->arena);
    r = attach(y, v, 1, 1, e);
    struct str anchor = event_anchor(y, event);
    r = r == 0 ? set_anchor(y, anchor, v, true, e) : r;
    if (r < 0) {
        return r;
    }
    if (y->depth == y->frames_cap) {
        y->frames_cap = y->frames_cap == 0 ? 16 : y->frames_cap * 2;
        y->frames = xrealloc(y->frames, y->frames_cap * sizeof *y->frames);
    }
    y->frames[y->depth++] =
        (struct frame) { .container = v, .anchor = anchor, .values_before = values_before };
    return 0;
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
    if (tag != YAML_TAG_NONE && tag != YAML_TAG_STR) {
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

static int on_scalar(struct reader *y, struct fy_event *event, struct err *e)
{
    size_t len = 0;
    const char *ptr = fy_token_get_text(event->scalar.value, &len);
    struct str text = ptr == NULL ? STR_EMPTY : str_n(ptr, len);
    bool plain =
        event->scalar.value == NULL || fy_scalar_token_get_style(event->scalar.value) == FYSS_PLAIN;
    enum yaml_tag tag;
    int r = event_tag(y, event, &tag, e);
    if (r < 0) {
        return r;
    }
    struct json *v;
    const char *why = "";
    bool key = at_key(y);
    enum yaml_tag resolve_as = tag == YAML_TAG_NONE && (key || !plain) ? YAML_TAG_STR : tag;
    if (!yaml_resolve(y->arena, text, resolve_as, &v, &why)) {
        char shown[JSON_SHOW_LEN];
        return FAIL(y, e, ERR_PARSE, "'%s' %s", json_show(text, shown), why);
    }
    put_position(y, v);
    r = set_anchor(y, event_anchor(y, event), v, false, e);
    if (r < 0) {
        return r;
    }
    return key ? on_key(y, text, plain, tag, e) : attach(y, v, 1, 0, e);
}

static int on_alias(struct reader *y, struct fy_event *event, struct err *e)
{
    size_t len = 0;
    const char *ptr = fy_token_get_text(event->alias.anchor, &len);
    struct str name = ptr == NULL ? STR_EMPTY : str_n(ptr, len);
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

static int on_document(struct reader *y, struct fy_event *event, struct err *e)
{
    if (++y->documents > 1) {
        return FAIL(y, e, ERR_PARSE, "a second document begins here; only one is allowed");
    }
    struct fy_document_state *state = event->document_start.document_state;
    const struct fy_version *v = fy_document_state_version(state);
    if (fy_document_state_version_explicit(state) && v != NULL &&
        (v->major != 1 || v->minor != 2)) {
        return FAIL(y, e, ERR_PARSE, "%%YAML %d.%d is not supported, only 1.2", v->major, v->minor);
    }
    return 0;
}

/* Empty values have no mark; they are where the event before them was. Marks of quoted scalars and
 * of aliases stand behind the quote and the star. */
static void note_position(struct reader *y, struct fy_event *event)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (mark == NULL || mark->line < 0 || mark->column < 0) {
        return;
    }
    bool quoted = false;
    if (event->type == FYET_SCALAR && event->scalar.value != NULL) {
        enum fy_scalar_style style = fy_scalar_token_get_style(event->scalar.value);
        quoted = style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
    }
    bool behind = quoted || event->type == FYET_ALIAS;
    y->line = (uint32_t)mark->line + 1;
    y->column = (uint32_t)mark->column + (behind && mark->column > 0 ? 0 : 1);
}

static int on_event(struct reader *y, struct fy_event *event, struct err *e)
{
    note_position(y, event);
    switch (event->type) {
    case FYET_DOCUMENT_START:
        return on_document(y, event, e);
    case FYET_MAPPING_START:
    case FYET_SEQUENCE_START:
        return on_container(y, event, e);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        return on_container_end(y, e);
    case FYET_SCALAR:
        return on_scalar(y, event, e);
    case FYET_ALIAS:
        return on_alias(y, event, e);
    case FYET_NONE:
    case FYET_STREAM_START:
    case FYET_STREAM_END:
    case FYET_DOCUMENT_END:
        break;
    }
    return 0;
}

static int read_events(struct reader *y, struct err *e)
{
    for (;;) {
        struct fy_event *event = fy_parser_parse(y->parser);
        if (event == NULL) {
            return fy_parser_get_stream_error(y->parser) ? refused(y, e) : 0;
        }
        int r = on_event(y, event, e);
        fy_parser_event_free(y->parser, event);
        if (r < 0) {
            return r;
        }
    }
}

static int open_parser(struct reader *y, struct err *e)
{
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    diag_cfg.output_fn = keep_silent;
    diag_cfg.colorize = false;
    y->diag = fy_diag_create(&diag_cfg);
    if (y->diag == NULL) {
        return ERR(e, ERR_BUG, "cannot create a YAML parser");
    }
    fy_diag_set_collect_errors(y->diag, true);
    /* Sloppy: a closing bracket in column 1 is against the letter of YAML and in every second file.
     */
    y->parser = fy_parser_create(&(struct fy_parse_cfg) {
        .flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE | FYPCF_SLOPPY_FLOW_INDENTATION,
        .diag = y->diag,
    });
    if (y->parser == NULL || fy_parser_set_string(y->parser, y->text.ptr, y->text.len) != 0) {
        return ERR(e, ERR_BUG, "cannot create a YAML parser");
    }
    return 0;
}

static void cleanup_reader(struct reader *y)
{
    fy_parser_destroy(y->parser);
    fy_diag_destroy(y->diag);
    free(y->frames);
    free(y->anchors);
}

int yaml_parse(struct arena *a, struct str text, const char *name, const struct json_limits *limits,
               struct json **ret, struct err *e)
{
    if (str_starts(text, STR("\xef\xbb\xbf"))) {
        text = str_slice(text, 3, text.len); /* a byte order mark */
    }
    CLEANUP(reader)
    struct reader y = { .arena = a, .text = text, .name = name, .line = 1, .column = 1 };
    y.limits = json_limits_of(limits);
    int r = check_text(&y, e);
    if (r == 0 && text.len > 0) {
        r = open_parser(&y, e);
        r = r == 0 ? read_events(&y, e) : r;
    }
    if (r == 0) {
        *ret = y.root != NULL ? y.root : json_null(a);
    }
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
