/* SPDX-License-Identifier: MIT
 *
 * ${name} and ${name|filter} in the strings of a script; "$${" stands for "${" itself. Filters are
 * there for tools whose input is a text with a grammar of its own: `plus` puts "+" before each line
 * (patches), `sh` quotes for a shell, `json` writes a JSON value.
 */
#include "replay/script_priv.h"

#include <inttypes.h>

#include "llm/request.h"

/* One expanded string; a capture that repeats itself could grow without end otherwise. */
#define EXPANDED_MAX ((size_t)16 << 20)
/* Of a tree of arguments: yaml_parse() reads no deeper. */
enum { DEPTH_MAX = 256 };

struct piece {
    struct str literal;
    struct str name; /* ptr NULL: the text ends with the literal */
    struct str filter;
};

/* Cuts the next literal and the name after it off *text. */
static int next_piece(struct str *text, struct piece *ret, struct err *e)
{
    *ret = (struct piece) { .literal = *text };
    size_t at = str_find(*text, STR("${"));
    if (at == text->len) {
        *text = (struct str) { NULL, 0 };
        return 0;
    }
    ret->literal = str_slice(*text, 0, at);
    struct str rest = str_slice(*text, at + 2, text->len);
    if (at > 0 && text->ptr[at - 1] == '$') { /* "$${": keep "${", drop the first dollar */
        ret->literal = str_slice(*text, 0, at - 1);
        ret->name = STR_EMPTY;
        *text = rest;
        return 0;
    }
    size_t end = str_find(rest, STR("}"));
    if (end == rest.len) {
        return ERR(e, ERR_CONFIG, "'${' without '}' (write '$${' for the characters themselves)");
    }
    struct str inner = str_slice(rest, 0, end);
    size_t bar = str_find(inner, STR("|"));
    ret->name = str_slice(inner, 0, bar);
    ret->filter = str_slice(inner, bar + (bar < inner.len), inner.len);
    *text = str_slice(rest, end + 1, rest.len);
    if (ret->name.len == 0) {
        return ERR(e, ERR_CONFIG, "'${}' names nothing");
    }
    return 0;
}

static int append_plus(struct buf *out, struct str s, struct err *e)
{
    int r = 0;
    while (r == 0 && s.ptr != NULL && s.len > 0) {
        struct str line = str_split(&s, '\n');
        r = buf_printf(out, e, "+%.*s\n", STR_ARG(line));
    }
    return r;
}

static int append_shell(struct buf *out, struct str s, struct err *e)
{
    int r = buf_append_c(out, '\'', e);
    for (size_t i = 0; r == 0 && i < s.len; i++) {
        r = s.ptr[i] == '\'' ? buf_append(out, STR("'\\''"), e) : buf_append_c(out, s.ptr[i], e);
    }
    return r < 0 ? r : buf_append_c(out, '\'', e);
}

static int append_value(struct buf *out, const struct json *v, struct str filter, struct err *e)
{
    if (str_eqc(filter, "json") || (filter.len == 0 && !json_is(v, JSON_STRING))) {
        return json_write(v, JSON_COMPACT, out, e);
    }
    if (!json_is(v, JSON_STRING)) {
        return ERR(e, ERR_CONFIG, "'|%.*s' needs a text, not %s", STR_ARG(filter),
                   json_type_name(v->type));
    }
    if (str_eqc(filter, "plus")) {
        return append_plus(out, v->string, e);
    }
    if (str_eqc(filter, "sh")) {
        return append_shell(out, v->string, e);
    }
    return buf_append(out, v->string, e);
}

static bool known_filter(struct str f)
{
    return f.len == 0 || str_eqc(f, "plus") || str_eqc(f, "sh") || str_eqc(f, "json");
}

int script_each_name(struct str text, int (*fn)(void *arg, struct str name, struct err *e),
                     void *arg, struct err *e)
{
    while (text.ptr != NULL) {
        struct piece p;
        int r = next_piece(&text, &p, e);
        if (r == 0 && !known_filter(p.filter)) {
            r = ERR(e, ERR_CONFIG, "unknown filter '%.*s' (there are plus, sh and json)",
                    STR_ARG(p.filter));
        }
        if (r == 0 && p.name.len > 0) {
            r = fn(arg, p.name, e);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int script_expand(struct arena *a, struct str text, struct script_names names, struct str *ret,
                  struct err *e)
{
    if (str_find(text, STR("${")) == text.len) {
        *ret = text;
        return 0;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(EXPANDED_MAX);
    while (text.ptr != NULL) {
        struct piece p;
        int r = next_piece(&text, &p, e);
        r = r < 0 ? r : buf_append(&out, p.literal, e);
        if (r == 0 && p.name.ptr != NULL && p.name.len == 0) {
            r = buf_append(&out, STR("${"), e);
        } else if (r == 0 && p.name.ptr != NULL) {
            const struct json *v = names.lookup(names.context, a, p.name);
            r = v == NULL ? ERR(e, ERR_CONFIG, "'${%.*s}' has no value here", STR_ARG(p.name))
                          : append_value(&out, v, p.filter, e);
        }
        if (r < 0) {
            return r;
        }
    }
    *ret = arena_str(a, buf_str(&out));
    return 0;
}

/* "${name}" alone keeps the type of its value; anything else gives a string. */
static int expand_string(struct arena *a, struct str s, struct script_names names,
                         struct json **ret, struct err *e)
{
    struct str rest = s;
    struct piece p;
    int r = next_piece(&rest, &p, e);
    if (r == 0 && p.literal.len == 0 && p.name.len > 0 && p.filter.len == 0 && rest.len == 0) {
        const struct json *v = names.lookup(names.context, a, p.name);
        *ret = v == NULL ? NULL : json_copy(a, v);
        return v == NULL ? ERR(e, ERR_CONFIG, "'${%.*s}' has no value here", STR_ARG(p.name)) : 0;
    }
    struct str text;
    r = r < 0 ? r : script_expand(a, s, names, &text, e);
    if (r == 0) {
        *ret = json_string(a, text);
    }
    return r;
}

static int expand_at(struct arena *a, const struct json *v, struct script_names names,
                     unsigned depth, struct json **ret, struct err *e)
{
    if (depth > DEPTH_MAX) {
        return ERR(e, ERR_LIMIT, "a value deeper than %d", DEPTH_MAX);
    }
    int r = 0;
    if (json_is(v, JSON_STRING)) {
        return expand_string(a, v->string, names, ret, e);
    }
    if (json_is(v, JSON_ARRAY)) {
        *ret = json_array(a);
        for (size_t i = 0; r == 0 && i < v->array.len; i++) {
            struct json *item = NULL;
            r = expand_at(a, v->array.items[i], names, depth + 1, &item, e);
            json_push(a, *ret, item);
        }
        return r;
    }
    if (json_is(v, JSON_OBJECT)) {
        *ret = json_object(a);
        for (size_t i = 0; r == 0 && i < v->object.len; i++) {
            struct json *item = NULL;
            r = expand_at(a, v->object.members[i].value, names, depth + 1, &item, e);
            json_set(a, *ret, v->object.members[i].key, item);
        }
        return r;
    }
    *ret = json_copy(a, v);
    return 0;
}

int script_expand_tree(struct arena *a, const struct json *v, struct script_names names,
                       struct json **ret, struct err *e)
{
    return expand_at(a, v, names, 0, ret, e);
}

/* --- the names of a scene --- */

/* Where harnesses tell the model its working directory: "Working directory: /x" (claude, opencode),
 * "<cwd>/x</cwd>" (codex), "I'm currently working in the directory: /x" (gemini). */
static const char *const cwd_marks[] = {
    "orking directory: ",
    "<cwd>",
    "orking in the directory: ",
    "orkspace Directories:**\n  - ",
};

static struct str cwd_in(struct str text)
{
    for (size_t i = 0; i < ARRAY_LEN(cwd_marks); i++) {
        size_t at = str_find(text, str_of(cwd_marks[i]));
        if (at == text.len) {
            continue;
        }
        struct str path = str_slice(text, at + strlen(cwd_marks[i]), text.len);
        size_t n = 0;
        while (n < path.len && strchr("\n\r<\"", path.ptr[n]) == NULL) {
            n++;
        }
        path = str_trim(str_slice(path, 0, n));
        if (path.len > 0 && path.ptr[0] == '/') {
            return path;
        }
    }
    return STR_EMPTY;
}

static struct str scene_cwd(const struct script_scene *c)
{
    struct str found = cwd_in(c->system);
    const struct llm_request *r = c->request->llm;
    for (size_t i = 0; found.len == 0 && i < r->n_messages; i++) {
        for (size_t k = 0; found.len == 0 && k < r->messages[i].n_parts; k++) {
            found = cwd_in(r->messages[i].parts[k].text);
        }
    }
    return found;
}

static const struct json *group_value(const struct script_scene *c, struct arena *a, size_t i)
{
    if (c->step == NULL || i >= c->step->when.n_spans || c->spans[i].from == REGEX_UNSET) {
        return NULL;
    }
    return json_string(a, str_slice(c->last, c->spans[i].from, c->spans[i].to));
}

static const struct json *scene_lookup(const void *context, struct arena *a, struct str name)
{
    const struct script_scene *c = context;
    int64_t number = 0;
    if (str_to_i64(name, &number)) {
        return group_value(c, a, (size_t)number);
    }
    for (size_t i = 0; c->step != NULL && i < c->step->when.n_groups; i++) {
        if (str_eq(c->step->when.groups[i].name, name)) {
            return group_value(c, a, c->step->when.groups[i].index);
        }
    }
    const struct json *v = json_find(c->script->vars, name);
    if (v != NULL) {
        return json_is(v, JSON_NULL) ? NULL : v;
    }
    if (str_eqc(name, "turn")) {
        return json_integer(a, (int64_t)c->turn);
    }
    if (str_eqc(name, "results")) {
        return json_integer(a, (int64_t)c->results);
    }
    if (str_eqc(name, "request")) {
        return json_integer(a, c->number);
    }
    if (str_eqc(name, "model")) {
        return json_string(a, c->request->llm->model);
    }
    if (str_eqc(name, "last")) {
        return json_string(a, c->last);
    }
    if (str_eqc(name, "cwd")) {
        struct str cwd = scene_cwd(c);
        return cwd.len > 0 ? json_string(a, cwd) : NULL;
    }
    return NULL;
}

struct script_names script_scene_names(const struct script_scene *c)
{
    return (struct script_names) { .lookup = scene_lookup, .context = c };
}

bool script_name_known(const struct script *s, const struct script_when *w, struct str name)
{
    static const char *const words[] = { "turn", "results", "request", "model", "last", "cwd" };
    int64_t number = 0;
    if (str_to_i64(name, &number)) {
        return number >= 0 && (uint64_t)number < w->n_spans;
    }
    for (size_t i = 0; i < w->n_groups; i++) {
        if (str_eq(w->groups[i].name, name)) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eqc(name, words[i])) {
            return true;
        }
    }
    return json_find(s->vars, name) != NULL;
}
