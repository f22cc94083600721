/* SPDX-License-Identifier: MIT
 *
 * The three trust tables as text: what they say on a directory, how an entry is added and taken
 * out. Pure: text in, text out.
 *
 * To TOML a block of lines between two comments is appended, and the same bytes are cut out again.
 * To JSON one member is added right behind the brace of its object; it is cut out wherever it is
 * found, since harnesses write their JSON anew. The text has been parsed before, so the scanner
 * below only needs to find its way; an edit that does not have the wanted effect is refused.
 */
#include "adapters/trust_text.h"

#include "base/file.h"
#include "base/json.h"
#include "data/toml.h"

enum { PATH_KEYS = 3 };

struct table {
    struct str keys[PATH_KEYS];
    size_t len;
};

static struct table path_of(const struct trust_entry *t)
{
    struct str dir = str_of(t->dir);
    switch (t->style) {
    case TRUST_CODEX:
        return (struct table) { { STR("projects"), dir, STR("trust_level") }, 3 };
    case TRUST_CLAUDE:
        return (struct table) { { STR("projects"), dir, STR("hasTrustDialogAccepted") }, 3 };
    case TRUST_GEMINI:
        break;
    }
    return (struct table) { { dir }, 1 };
}

/* In messages the name of the file is enough: callers wrap the rest around it. */
static const char *name_of(const struct trust_entry *t)
{
    return path_base(str_of(t->file)).ptr;
}

struct str trust_text_new(enum trust_style style)
{
    return style == TRUST_CODEX ? STR("") : STR("{\n}\n");
}

/* --- what it says --- */

static int parse(struct arena *a, const struct trust_entry *t, struct str text, struct json **ret,
                 struct err *e)
{
    if (t->style == TRUST_CODEX) {
        /* Tagged, since a file that holds an infinity somewhere is still a good file. */
        struct toml_opts opts = { .name = name_of(t), .tagged = true };
        return toml_parse(a, text, &opts, ret, e);
    }
    int r = json_parse(a, text, NULL, ret, e);
    return r < 0 ? err_wrap(e, "%s", name_of(t)) : 0;
}

static int unknown_value(const struct trust_entry *t, const struct json *v, struct err *e)
{
    char where[JSON_AT_LEN];
    return ERR(e, ERR_UNSUPPORTED, "%s: the trust entry of '%s' has an unknown value",
               json_at(name_of(t), v, where), t->dir);
}

static int word_state(const struct trust_entry *t, const struct json *v, enum trust_state *ret,
                      struct err *e)
{
    static const struct {
        enum trust_style style;
        const char *word;
        enum trust_state state;
    } words[] = {
        { TRUST_CODEX, "trusted", TRUST_STATE_GRANTED },
        { TRUST_CODEX, "untrusted", TRUST_STATE_REFUSED },
        { TRUST_GEMINI, "TRUST_FOLDER", TRUST_STATE_GRANTED },
        { TRUST_GEMINI, "TRUST_PARENT", TRUST_STATE_GRANTED },
        { TRUST_GEMINI, "DO_NOT_TRUST", TRUST_STATE_REFUSED },
    };
    const struct json *word = v;
    if (t->style == TRUST_CODEX) {
        bool string = str_eqc(json_str(json_get(v, "type"), STR_EMPTY), "string");
        word = string ? json_get(v, "value") : NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (words[i].style == t->style && json_is(word, JSON_STRING) &&
            str_eqc(word->string, words[i].word)) {
            *ret = words[i].state;
            return 0;
        }
    }
    return unknown_value(t, v, e);
}

int trust_text_state(const struct trust_entry *t, struct str text, enum trust_state *ret,
                     struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct table path = path_of(t);
    struct json *v = NULL;
    int r = parse(a, t, text, &v, e);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < path.len && v != NULL; i++) {
        v = json_find(v, path.keys[i]);
    }
    if (v == NULL) {
        *ret = TRUST_STATE_ABSENT;
        return 0;
    }
    if (t->style != TRUST_CLAUDE) {
        return word_state(t, v, ret, e);
    }
    if (!json_is(v, JSON_BOOL)) {
        return unknown_value(t, v, e);
    }
    /* Claude Code writes false for every directory it has been started in; it means: not asked yet.
     */
    *ret = v->boolean ? TRUST_STATE_GRANTED : TRUST_STATE_ABSENT;
    return 0;
}

/* --- TOML --- */

#define BLOCK_BEGIN "# cinch: trusted while a run uses it\n"
#define BLOCK_END   "\n# cinch: end"

/* The lines that codex itself would write, and with `marked` the comments around them; without a
 * final newline. */
static int write_block(const struct trust_entry *t, bool marked, struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *doc = json_object(a);
    struct json *projects = json_object(a);
    struct json *project = json_object(a);
    json_setc(a, project, "trust_level", json_cstr(a, "trusted"));
    json_set(a, projects, str_of(t->dir), project);
    json_setc(a, doc, "projects", projects);
    CLEANUP(buf) struct buf lines = BUF_INIT(BUF_TEXT);
    int r = toml_write(doc, NULL, &lines, e);
    if (r < 0) {
        return r;
    }
    return buf_printf(out, e, "%s%.*s%s", marked ? BLOCK_BEGIN : "",
                      STR_ARG(str_trim(buf_str(&lines))), marked ? BLOCK_END : "");
}

/* A text with a final newline gets whole lines; to one without, the newline comes first. */
static int add_toml(const struct trust_entry *t, struct str text, struct buf *out, struct err *e)
{
    bool whole = text.len == 0 || text.ptr[text.len - 1] == '\n';
    int r = buf_append(out, text, e);
    r = r < 0 || whole ? r : buf_append_c(out, '\n', e);
    r = r < 0 ? r : write_block(t, true, out, e);
    return r < 0 || !whole ? r : buf_append_c(out, '\n', e);
}

static int remove_toml(const struct trust_entry *t, struct str text, struct buf *out, struct err *e)
{
    CLEANUP(buf) struct buf block = BUF_INIT(BUF_TEXT);
    size_t from = text.len;
    for (int marked = 1; marked >= 0 && from == text.len; marked--) {
        buf_reset(&block);
        int r = write_block(t, marked != 0, &block, e);
        if (r < 0) {
            return r;
        }
        from = str_find(text, buf_str(&block));
    }
    if (from == text.len) {
        return ERR(e, ERR_UNSUPPORTED,
                   "%s: the entry of '%s' was rewritten by another program: remove it by hand",
                   name_of(t), t->dir);
    }
    size_t to = from + block.len;
    if (to < text.len && text.ptr[to] == '\n') {
        to++;
    } else if (from > 0 && text.ptr[from - 1] == '\n') {
        from--;
    }
    int r = buf_append(out, str_slice(text, 0, from), e);
    return r < 0 ? r : buf_append(out, str_slice(text, to, text.len), e);
}

/* --- JSON --- */

static size_t skip_white(struct str s, size_t i)
{
    while (i < s.len && strchr(" \t\n\r", s.ptr[i]) != NULL && s.ptr[i] != '\0') {
        i++;
    }
    return i;
}

static size_t skip_string(struct str s, size_t i)
{
    for (i++; i < s.len && s.ptr[i] != '"'; i++) {
        i += s.ptr[i] == '\\';
    }
    return i + 1;
}

static size_t skip_value(struct str s, size_t i)
{
    size_t depth = 0;
    do {
        if (s.ptr[i] == '"') {
            i = skip_string(s, i);
            continue;
        }
        depth += s.ptr[i] == '{' || s.ptr[i] == '[';
        depth -= s.ptr[i] == '}' || s.ptr[i] == ']';
        i++;
    } while (i < s.len &&
             (depth > 0 || (strchr(" \t\n\r,]}", s.ptr[i]) == NULL && s.ptr[i] != '"')));
    return i;
}

/* A member of the object at `open`, found by its key. */
struct member {
    bool found;
    size_t before; /* the brace or comma before it */
    size_t value, value_end;
};

static struct member find_member(struct str s, size_t open, struct str key)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct member m = { .before = open };
    for (size_t i = skip_white(s, open + 1); i < s.len && s.ptr[i] == '"';) {
        size_t key_end = skip_string(s, i);
        struct json *name = NULL;
        m.value = skip_white(s, skip_white(s, key_end) + 1);
        m.value_end = skip_value(s, m.value);
        m.found = json_parse(a, str_slice(s, i, key_end), NULL, &name, NULL) == 0 &&
                  str_eq(json_str(name, STR_EMPTY), key);
        size_t behind = skip_white(s, m.value_end);
        if (m.found || behind >= s.len || s.ptr[behind] != ',') {
            return m;
        }
        m.before = behind;
        i = skip_white(s, behind + 1);
    }
    return m;
}

static int splice(struct str text, size_t from, size_t to, struct str with, struct buf *out,
                  struct err *e)
{
    int r = buf_append(out, str_slice(text, 0, from), e);
    r = r < 0 ? r : buf_append(out, with, e);
    return r < 0 ? r : buf_append(out, str_slice(text, to, text.len), e);
}

struct keys {
    const struct str *keys;
    size_t len;
};

/* The member for the keys that are missing, with the layout of the members that are there. */
static int insert_member(const struct keys *missing, struct str text, size_t open,
                         const char *value, struct buf *out, struct err *e)
{
    CLEANUP(buf) struct buf with = BUF_INIT(BUF_TEXT);
    size_t first = skip_white(text, open + 1);
    struct str inside = str_slice(text, open + 1, first);
    bool empty = first < text.len && text.ptr[first] == '}';
    bool lines = str_find(inside, STR("\n")) < inside.len;
    buf_add(&with, !empty ? inside : lines ? STR("\n  ") : STR_EMPTY);
    int r = 0;
    for (size_t i = 0; i < missing->len && r == 0; i++) {
        r = json_write_string(missing->keys[i], &with, e);
        buf_adds(&with, i + 1 < missing->len ? ": {" : ": ");
    }
    buf_adds(&with, value);
    for (size_t i = 0; i + 1 < missing->len; i++) {
        buf_adds(&with, "}");
    }
    buf_adds(&with, empty ? "" : ",");
    return r < 0 ? r : splice(text, open + 1, open + 1, buf_str(&with), out, e);
}

static int set_json(const struct trust_entry *t, struct str text, const char *value,
                    struct trust_mark *ret, struct buf *out, struct err *e)
{
    struct table path = path_of(t);
    size_t open = skip_white(text, 0);
    for (size_t i = 0; i < path.len; i++) {
        if (open >= text.len || text.ptr[open] != '{') {
            return ERR(e, ERR_UNSUPPORTED, "%s: '%.*s' is not an object", name_of(t),
                       STR_ARG(i == 0 ? str_of(name_of(t)) : path.keys[i - 1]));
        }
        struct member m = find_member(text, open, path.keys[i]);
        if (!m.found) {
            *ret = (struct trust_mark) { .made = path.len - 1 - i };
            return insert_member(&(struct keys) { path.keys + i, path.len - i }, text, open, value,
                                 out, e);
        }
        if (i + 1 == path.len) { /* only false can be there: other values are refused before */
            *ret = (struct trust_mark) { .was_false = true };
            return splice(text, m.value, m.value_end, str_of(value), out, e);
        }
        open = m.value;
    }
    return 0;
}

/* The level of the member to cut: up from the leaf while the object above was made by us and holds
 * nothing else. */
static size_t cut_level(const struct table *path, struct json *tree, size_t made)
{
    struct json *objects[PATH_KEYS];
    size_t level = path->len - 1;
    for (size_t i = 0; i < path->len; i++) {
        objects[i] = tree;
        tree = json_find(tree, path->keys[i]);
    }
    for (; level > 0 && made > 0 && json_len(objects[level]) == 1; made--) {
        level--;
    }
    return level;
}

static int remove_json(const struct trust_entry *t, struct str text, size_t made, struct buf *out,
                       struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *tree = NULL;
    int r = parse(a, t, text, &tree, e);
    if (r < 0) {
        return r;
    }
    struct table path = path_of(t);
    size_t level = cut_level(&path, tree, made);
    struct member m = { .value = skip_white(text, 0) };
    for (size_t i = 0; i <= level; i++) {
        m = find_member(text, m.value, path.keys[i]);
    }
    /* With the comma behind it, or the one before it if it is the last. */
    size_t behind = skip_white(text, m.value_end);
    bool comma = behind < text.len && text.ptr[behind] == ',';
    bool first = text.ptr[m.before] == '{';
    return splice(text, m.before + (comma || first ? 1 : 0), comma ? behind + 1 : m.value_end,
                  STR_EMPTY, out, e);
}

/* --- adding and taking out --- */

/* Without the entry, and without the objects around it that are empty then. */
static void drop_entry(const struct table *path, struct json *tree)
{
    struct json *objects[PATH_KEYS];
    for (size_t i = 0; i < path->len; i++) {
        objects[i] = tree;
        tree = json_find(tree, path->keys[i]);
    }
    for (size_t i = path->len; i > 0; i--) {
        if (objects[i - 1] != NULL && (i == path->len || json_len(objects[i]) == 0)) {
            (void)json_remove(objects[i - 1], path->keys[i - 1]);
        }
    }
}

/* Moves the edited text to `out` if it says the wanted thing on the directory and the same as
 * before on everything else. */
static int deliver(const struct trust_entry *t, struct str text, struct str edited,
                   enum trust_state want, struct buf *out, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    enum trust_state state = TRUST_STATE_REFUSED;
    struct table path = path_of(t);
    struct json *before = NULL;
    struct json *after = NULL;
    struct err why = { 0 };
    int r = trust_text_state(t, edited, &state, &why);
    r = r < 0 ? r : parse(a, t, text, &before, &why);
    r = r < 0 ? r : parse(a, t, edited, &after, &why);
    if (r == 0) {
        drop_entry(&path, before);
        drop_entry(&path, after);
    }
    if (r < 0 || state != want || !json_equal(before, after)) {
        return ERR(e, ERR_UNSUPPORTED,
                   "%s: the entry of '%s' cannot be %s without changing others%s%s", name_of(t),
                   t->dir, want == TRUST_STATE_GRANTED ? "added" : "removed", r < 0 ? ": " : "",
                   r < 0 ? why.msg : "");
    }
    return buf_append(out, edited, e);
}

int trust_text_add(const struct trust_entry *t, struct str text, struct trust_mark *ret,
                   struct buf *out, struct err *e)
{
    CLEANUP(buf) struct buf edited = BUF_INIT(TRUST_TEXT_MAX);
    const char *value = t->style == TRUST_GEMINI ? "\"TRUST_FOLDER\"" : "true";
    *ret = (struct trust_mark) { 0 };
    int r = t->style == TRUST_CODEX ? add_toml(t, text, &edited, e)
                                    : set_json(t, text, value, ret, &edited, e);
    return r < 0 ? r : deliver(t, text, buf_str(&edited), TRUST_STATE_GRANTED, out, e);
}

int trust_text_remove(const struct trust_entry *t, struct str text, const struct trust_mark *mark,
                      struct buf *out, struct err *e)
{
    CLEANUP(buf) struct buf edited = BUF_INIT(TRUST_TEXT_MAX);
    struct trust_mark unused;
    int r = t->style == TRUST_CODEX ? remove_toml(t, text, &edited, e)
            : mark->was_false       ? set_json(t, text, "false", &unused, &edited, e)
                                    : remove_json(t, text, mark->made, &edited, e);
    return r < 0 ? r : deliver(t, text, buf_str(&edited), TRUST_STATE_ABSENT, out, e);
}
