/* SPDX-License-Identifier: MIT
 *
 * Building the tree: shapes and keys are checked, numbers and paths given, templates compiled, and
 * everything that must be unique is. After this only parameters can go wrong.
 */
#include "prompt/section.h"

#include <stdio.h>
#include <stdlib.h>

#include "data/shape.h"
#include "prompt/section_priv.h"
#include "template/template_unicode.h"

/* Headings get a '#' per level; nobody nests by hand as deep as this. */
enum { DEEPEST = 24, MOST_SECTIONS = 10000 };

static const struct shape step_shape[] = {
    { "tool", SHAPE_STRING },
    { "description", SHAPE_STRING },
    { "input", SHAPE_ANY },
    { "output", SHAPE_ANY },
    { 0 },
};
static const struct shape example_shape[] = {
    { "key", SHAPE_STRING },
    { "title", SHAPE_STRING },
    { "objective", SHAPE_STRING },
    { "outcome", SHAPE_ANY },
    { "steps", SHAPE_LIST, .inner = step_shape },
    { 0 },
};
static const struct shape section_shape[] = {
    { "key", SHAPE_STRING },
    { "title", SHAPE_STRING },
    { "body", SHAPE_STRING },
    { "summary", SHAPE_STRING },
    { "visibility", SHAPE_STRING },
    { "enabled", SHAPE_ANY },
    { "params", SHAPE_ANY_OBJECT },
    { "tools", SHAPE_STRINGS },
    { "skills", SHAPE_STRINGS },
    { "accepts_overrides", SHAPE_BOOL },
    { "examples", SHAPE_LIST, .inner = example_shape },
    { "children", SHAPE_LIST, .inner = section_shape },
    { 0 },
};
int section_wrap(const struct section_tree *tree, const struct section *s, const char *file,
                 const struct json *at, struct err *e)
{
    char where[JSON_AT_LEN];
    (void)json_at(file == NULL ? tree->file : file, at, where);
    if (s == NULL || s->path.len == 0) {
        return err_wrap(e, "%s", where);
    }
    return err_wrap(e, "%s: section '%.*s'", where, STR_ARG(s->path));
}

int section_fail(const struct section_tree *tree, const struct section *s, const struct json *at,
                 struct err *e, const char *fmt, ...)
{
    struct err local;
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    e = e == NULL ? &local : e;
    (void)ERR(e, ERR_CONFIG, "%s", text);
    return section_wrap(tree, s, NULL, at, e);
}

struct section *section_find(const struct section_tree *tree, struct str path)
{
    for (size_t i = 0; i < tree->len; i++) {
        if (str_eq(tree->nodes[i]->path, path)) {
            return tree->nodes[i];
        }
    }
    return NULL;
}

struct section_definition *section_definition_find(const struct section_tree *tree, struct str name)
{
    for (size_t i = 0; i < tree->definitions_len; i++) {
        if (str_eq(tree->definitions[i].name, name)) {
            return &tree->definitions[i];
        }
    }
    return NULL;
}

/* --- texts --- */

/* Blanks that all lines with something on them begin with. */
static struct str common_margin(struct str text)
{
    struct str margin = { NULL, 0 };
    struct str rest = text;
    while (rest.ptr != NULL && rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        size_t n = 0;
        while (n < line.len && (line.ptr[n] == ' ' || line.ptr[n] == '\t')) {
            n++;
        }
        if (n == line.len) {
            continue;
        }
        if (margin.ptr == NULL) {
            margin = str_n(line.ptr, n);
        }
        size_t same = 0;
        while (same < margin.len && same < n && margin.ptr[same] == line.ptr[same]) {
            same++;
        }
        margin.len = same;
    }
    return margin;
}

struct str section_dedent(struct arena *a, struct str text)
{
    size_t margin = common_margin(text).len;
    char *out = arena_alloc(a, text.len + 1);
    size_t len = 0;
    struct str rest = text;
    while (rest.ptr != NULL) {
        struct str line = str_split(&rest, '\n');
        bool blank = str_trim(line).len == 0;
        struct str kept = blank ? STR_EMPTY : str_slice(line, margin, line.len);
        memcpy(out + len, kept.ptr, kept.len);
        len += kept.len;
        if (rest.ptr != NULL) {
            out[len++] = '\n';
        }
    }
    return str_n(out, len);
}

int section_compile(struct section_tree *tree, const struct section *s, const char *what,
                    struct section_text *text, struct err *e)
{
    struct str body = section_dedent(tree->arena, json_str(text->source, STR_EMPTY));
    /* Lines are counted from where the text begins in the task, so blank ones before it stay. */
    int r = template_parse(tree->set, what, unicode_strip(body, false, true), &text->template, e);
    return r < 0 ? section_wrap(tree, s, text->file, text->source, e) : 0;
}

/* --- keys --- */

static bool is_key(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!word && (i == 0 || (c != '.' && c != '_' && c != '-'))) {
            return false;
        }
    }
    return s.len > 0 && s.len <= 64;
}

/* Trimmed and in lower case; false when it is no key even then. */
static bool normalize_key(struct arena *a, const struct json *source, struct str *ret)
{
    struct str trimmed = str_trim(json_str(source, STR_EMPTY));
    char *copy = arena_dup(a, trimmed);
    for (size_t i = 0; i < trimmed.len; i++) {
        copy[i] = (char)(copy[i] >= 'A' && copy[i] <= 'Z' ? copy[i] | 0x20 : copy[i]);
    }
    *ret = str_n(copy, trimmed.len);
    return is_key(*ret);
}

#define KEY_RULE "letters, digits, '.', '_' and '-', at most 64, a letter or digit first"

static int prompt_word(struct section_tree *tree, const struct json *prompt, const char *name,
                       struct str *ret, struct err *e)
{
    const struct json *v = json_get(prompt, name);
    if (v == NULL || json_is(v, JSON_NULL)) {
        return section_fail(tree, NULL, prompt, e, "the prompt needs '%s'", name);
    }
    if (!normalize_key(tree->arena, v, ret)) {
        return section_fail(tree, NULL, v, e, "'%s' of the prompt must be made of " KEY_RULE, name);
    }
    return 0;
}

int section_set_key(struct section_tree *tree, struct section *s, const struct json *key,
                    struct err *e)
{
    struct str dotted = s->parent == NULL ? STR_EMPTY : s->parent->path;
    if (key == NULL || json_is(key, JSON_NULL)) {
        return section_fail(tree, s->parent, s->source, e, "a section needs a 'key'");
    }
    if (!normalize_key(tree->arena, key, &s->key)) {
        return section_fail(tree, s->parent, key, e,
                            "the key of a section must be made of " KEY_RULE);
    }
    struct str path = str_of(arena_printf(tree->arena, "%.*s%s%.*s", STR_ARG(dotted),
                                          dotted.len > 0 ? "." : "", STR_ARG(s->key)));
    const struct section *twin = section_find(tree, path);
    if (twin != NULL) {
        char first[JSON_AT_LEN];
        return section_fail(tree, NULL, key, e, "section '%.*s' is there already, see %s",
                            STR_ARG(path), json_at(tree->file, twin->source, first));
    }
    s->path = path;
    return 0;
}

/* --- one section --- */

struct section *section_add(struct section_tree *tree, struct section *parent,
                            const struct json *source)
{
    if (tree->len == tree->cap) {
        tree->cap = tree->cap == 0 ? 16 : tree->cap * 2;
        tree->nodes = xrealloc(tree->nodes, tree->cap * sizeof(struct section *));
    }
    struct section *s = ARENA_NEW(tree->arena, struct section);
    s->parent = parent;
    s->source = source;
    s->depth = parent == NULL ? 0 : parent->depth + 1;
    s->override_visibility = -1;
    s->accepts_overrides = true;
    s->enabled.constant = true;
    s->at = tree->len;
    s->end = tree->len + 1;
    tree->nodes[tree->len++] = s;
    return s;
}

struct section *section_insert(struct section_tree *tree, struct section *owner,
                               const struct json *source)
{
    size_t at = owner->end;
    struct section *s = section_add(tree, owner, source);
    for (size_t i = tree->len - 1; i > at; i--) {
        tree->nodes[i] = tree->nodes[i - 1];
        tree->nodes[i]->at = i;
        tree->nodes[i]->end++;
    }
    tree->nodes[at] = s;
    s->at = at;
    s->end = at + 1;
    for (struct section *up = owner; up != NULL; up = up->parent) {
        up->end++;
    }
    return s;
}

static bool is_expression(const struct json *v)
{
    struct str s = json_str(v, STR_EMPTY);
    return s.len > 0 && str_find(s, STR("%}")) == s.len && str_find(s, STR("}}")) == s.len;
}

static int compile_switch(struct section_tree *tree, const struct section *s,
                          struct section_switch *sw, const char *what, struct err *e)
{
    struct err local;
    struct str text = json_str(sw->source, STR_EMPTY);
    bool test = strcmp(what, "enabled") == 0;
    e = e == NULL ? &local : e;
    if (!is_expression(sw->source)) {
        return section_fail(tree, s, sw->source, e, "'%s' is not an expression", what);
    }
    const char *code = arena_printf(
        tree->arena, test ? "{%% if %.*s %%}1{%% endif %%}" : "{{ %.*s }}", STR_ARG(text));
    int r = template_parse(tree->set, what, str_of(code), &sw->expression, e);
    return r < 0 ? section_wrap(tree, s, NULL, sw->source, e) : 0;
}

static int read_switches(struct section_tree *tree, struct section *s, struct err *e)
{
    const struct json *enabled = json_get(s->source, "enabled");
    const struct json *visibility = json_get(s->source, "visibility");
    struct str word = json_str(visibility, STR("full"));
    int r = 0;
    if (json_is(enabled, JSON_BOOL)) {
        s->enabled.constant = json_bool(enabled, true);
    } else if (enabled != NULL && !json_is(enabled, JSON_NULL)) {
        s->enabled.source = enabled;
        r = compile_switch(tree, s, &s->enabled, "enabled", e);
    }
    s->visibility.constant = str_eqc(word, "summary");
    if (r == 0 && !s->visibility.constant && !str_eqc(word, "full")) {
        s->visibility.source = visibility;
        r = compile_switch(tree, s, &s->visibility, "visibility", e);
    }
    if (r == 0 && s->visibility.constant && json_get(s->source, "summary") == NULL) {
        return section_fail(tree, s, visibility, e, "visibility 'summary' needs a 'summary'");
    }
    return r;
}

static int read_texts(struct section_tree *tree, struct section *s, struct err *e)
{
    const struct json *title = json_get(s->source, "title");
    s->title = str_trim(json_str(title, STR_EMPTY));
    if (s->title.len == 0 || memchr(s->title.ptr, '\n', s->title.len) != NULL) {
        return section_fail(tree, s, title == NULL ? s->source : title, e,
                            "a section needs a 'title' of one line");
    }
    s->body.source = json_get(s->source, "body");
    s->summary.source = json_get(s->source, "summary");
    s->accepts_overrides = json_bool(json_get(s->source, "accepts_overrides"), true);
    s->params = json_get(s->source, "params");
    int r = 0;
    if (json_is(s->body.source, JSON_STRING)) {
        sha256_hex(s->body.source->string, s->hash);
        r = section_compile(tree, s, "body", &s->body, e);
    }
    if (r == 0 && json_is(s->summary.source, JSON_STRING)) {
        r = section_compile(tree, s, "summary", &s->summary, e);
    }
    return r;
}

/* --- tools and skills --- */

static bool is_tool_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) {
            return false;
        }
    }
    return s.len > 0 && s.len <= 64;
}

static const struct section *owner_of(const struct section_tree *tree, struct str name, bool tool)
{
    for (size_t i = 0; i < tree->len; i++) {
        const struct section *s = tree->nodes[i];
        for (size_t k = 0; k < (tool ? s->tools_len : s->skills_len); k++) {
            if (str_eq((tool ? s->tools : s->skills)[k], name)) {
                return s;
            }
        }
    }
    return NULL;
}

static int check_name(struct section_tree *tree, const struct section *s, const struct json *at,
                      bool tool, struct err *e)
{
    struct str name = json_str(at, STR_EMPTY);
    const char *what = tool ? "tool" : "skill";
    if (!is_tool_name(name)) {
        return section_fail(tree, s, at, e,
                            "the name of a %s must be made of lower-case letters, digits, '_' and "
                            "'-', at most 64",
                            what);
    }
    const struct section *other = owner_of(tree, name, tool);
    if (other != NULL) {
        return section_fail(tree, s, at, e, "%s '%.*s' is offered by section '%.*s' already", what,
                            STR_ARG(name), STR_ARG(other->path));
    }
    if (tool && (str_eqc(name, "open_sections") || str_eqc(name, "read_section"))) {
        return section_fail(tree, s, at, e, "tool '%.*s' is built in", STR_ARG(name));
    }
    if (tool && tree->has_definitions && section_definition_find(tree, name) == NULL) {
        return section_fail(tree, s, at, e, "there is no tool '%.*s'", STR_ARG(name));
    }
    return 0;
}

static int read_names(struct section_tree *tree, struct section *s, bool tool, struct err *e)
{
    const struct json *list = json_get(s->source, tool ? "tools" : "skills");
    struct str *names = arena_array(tree->arena, json_len(list), sizeof *names);
    if (tool) {
        s->tools = names;
    } else {
        s->skills = names;
    }
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *at = json_item(list, i);
        int r = check_name(tree, s, at, tool, e);
        if (r < 0) {
            return r;
        }
        names[i] = at->string;
        *(tool ? &s->tools_len : &s->skills_len) = i + 1;
    }
    return 0;
}

static int read_definitions(struct section_tree *tree, const struct json *tools, struct err *e)
{
    tree->has_definitions = json_is(tools, JSON_ARRAY);
    tree->definitions = arena_array(tree->arena, json_len(tools), sizeof *tree->definitions);
    for (size_t i = 0; tree->has_definitions && i < json_len(tools); i++) {
        const struct json *source = json_item(tools, i);
        struct str name = json_str(json_get(source, "name"), STR_EMPTY);
        if (section_definition_find(tree, name) != NULL) {
            return section_fail(tree, NULL, source, e, "tool '%.*s' is defined twice",
                                STR_ARG(name));
        }
        struct section_definition *d = &tree->definitions[tree->definitions_len++];
        d->name = name;
        d->source = d->effective = source;
        d->accepts_overrides = json_bool(json_get(source, "accepts_overrides"), true);
    }
    return 0;
}

/* --- the tree --- */

static int add_section(struct section_tree *tree, struct section *parent, const struct json *source,
                       struct err *e)
{
    if (parent != NULL && parent->depth + 1 >= DEEPEST) {
        (void)ERR(e, ERR_LIMIT, "sections nest deeper than %d", DEEPEST);
        return section_wrap(tree, parent, NULL, source, e);
    }
    if (tree->len >= MOST_SECTIONS) {
        (void)ERR(e, ERR_LIMIT, "more than %d sections", MOST_SECTIONS);
        return section_wrap(tree, parent, NULL, source, e);
    }
    struct section *s = section_add(tree, parent, source);
    int r = section_set_key(tree, s, json_get(source, "key"), e);
    r = r < 0 ? r : read_texts(tree, s, e);
    r = r < 0 ? r : read_switches(tree, s, e);
    r = r < 0 ? r : read_names(tree, s, true, e);
    r = r < 0 ? r : read_names(tree, s, false, e);
    r = r < 0 ? r : section_examples_new(tree, s, json_get(source, "examples"), e);
    const struct json *children = json_get(source, "children");
    for (size_t i = 0; i < json_len(children) && r == 0; i++) {
        r = add_section(tree, s, json_item(children, i), e);
    }
    s->end = tree->len;
    return r;
}

void section_tree_number(struct section_tree *tree)
{
    unsigned counts[DEEPEST + 2] = { 0 };
    char marks[DEEPEST + 4];
    memset(marks, '#', sizeof marks);
    for (size_t i = 0; i < tree->len; i++) {
        struct section *s = tree->nodes[i];
        counts[s->depth]++;
        counts[s->depth + 1] = 0;
        struct str before = s->parent == NULL ? STR_EMPTY : s->parent->number;
        s->number = str_of(arena_printf(tree->arena, "%.*s%s%u", STR_ARG(before),
                                        before.len > 0 ? "." : "", counts[s->depth]));
        s->heading =
            str_of(arena_printf(tree->arena, "%.*s %.*s. %.*s (%.*s)", (int)s->depth + 2, marks,
                                STR_ARG(s->number), STR_ARG(s->title), STR_ARG(s->path)));
    }
    for (size_t i = tree->len; i > 0; i--) {
        struct section *s = tree->nodes[i - 1];
        s->active |= s->tools_len > 0 || s->skills_len > 0;
        if (s->parent != NULL) {
            s->parent->active |= s->active;
        }
    }
}

static int build(struct section_tree *tree, const struct json *prompt, const struct json *tools,
                 struct err *e)
{
    if (!json_is(prompt, JSON_OBJECT)) {
        return section_fail(tree, NULL, prompt, e,
                            "a prompt is an object with ns, key and sections");
    }
    int r = prompt_word(tree, prompt, "ns", &tree->ns, e);
    r = r < 0 ? r : prompt_word(tree, prompt, "key", &tree->key, e);
    r = r < 0 ? r : read_definitions(tree, tools, e);
    const struct json *sections = json_get(prompt, "sections");
    if (r == 0 && (!json_is(sections, JSON_ARRAY) || json_len(sections) == 0)) {
        return section_fail(tree, NULL, sections == NULL ? prompt : sections, e,
                            "a prompt needs 'sections', a list of at least one");
    }
    for (size_t i = 0; i < json_len(sections) && r == 0; i++) {
        const struct json *source = json_item(sections, i);
        r = shape_check(source, section_shape, tree->file, e);
        r = r < 0 ? r : add_section(tree, NULL, source, e);
    }
    tree->name = json_str(json_get(prompt, "name"), tree->key);
    section_tree_number(tree);
    return r;
}

int section_tree_new(const struct json *prompt, const struct section_opts *opts,
                     struct section_tree **ret, struct err *e)
{
    struct err local;
    struct section_tree *tree = xcalloc(1, sizeof *tree);
    tree->arena = arena_new();
    tree->file = opts->file == NULL ? "prompt" : arena_dup(tree->arena, str_of(opts->file));
    tree->set = template_set_new(
        &(struct template_opts) { .loader = opts->loader, .limits = opts->limits });
    int r = build(tree, prompt, opts->tools, e == NULL ? &local : e);
    if (r < 0) {
        (void)section_tree_free(tree);
        return r;
    }
    *ret = tree;
    return 0;
}

struct section_tree *section_tree_free(struct section_tree *tree)
{
    if (tree != NULL) {
        (void)template_set_free(tree->set);
        (void)arena_free(tree->arena);
        free(tree->nodes);
        free(tree);
    }
    return NULL;
}

struct str section_tree_ns(const struct section_tree *tree)
{
    return tree->ns;
}

struct str section_tree_key(const struct section_tree *tree)
{
    return tree->key;
}

struct str section_tree_name(const struct section_tree *tree)
{
    return tree->name;
}
