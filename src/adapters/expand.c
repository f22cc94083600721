/* SPDX-License-Identifier: MIT
 *
 * Filling in placeholders; see expand.h.
 */
#include "adapters/expand.h"

#include "adapters/profile.h"

/* A kernel takes about 2 MiB of arguments in all and 128 KiB each; the number is ours. */
enum { ARGV_MAX = 4096 };

const struct placeholder *placeholder_find(const struct placeholders *vars, struct str name)
{
    for (size_t i = 0; i < vars->len; i++) {
        if (str_eqc(name, vars->items[i].name)) {
            return &vars->items[i];
        }
    }
    return NULL;
}

bool placeholder_has_value(const struct placeholder *p)
{
    return p != NULL && (p->value.len > 0 || json_len(p->list) > 0);
}

struct reference {
    struct str name;
    char mark; /* '|', '?' or '}' */
    struct str text;
};

/* Length of "{name}", "{name|text}" or "{name?text}" at the start of s, or 0. */
static size_t match(struct str s, struct reference *ret)
{
    size_t i = 1;
    while (i < s.len && ((s.ptr[i] >= 'a' && s.ptr[i] <= 'z') || s.ptr[i] == '_')) {
        i++;
    }
    if (i == 1 || i >= s.len || memchr("}|?", s.ptr[i], 3) == NULL) {
        return 0;
    }
    const char *end = memchr(s.ptr + i, '}', s.len - i);
    if (end == NULL) {
        return 0;
    }
    size_t len = (size_t)(end - s.ptr);
    *ret = (struct reference) {
        .name = str_slice(s, 1, i),
        .mark = s.ptr[i],
        .text = s.ptr[i] == '}' ? STR_EMPTY : str_slice(s, i + 1, len),
    };
    return len + 1;
}

static struct str value_of(const struct placeholder *p, const struct reference *ref)
{
    if (ref->mark == '?') {
        return placeholder_has_value(p) ? ref->text : STR_EMPTY;
    }
    return p->value.len > 0 ? p->value : ref->text;
}

int expand_text(struct arena *a, struct str text, const struct placeholders *vars, bool strict,
                struct str *ret, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    size_t i = 0;
    while (i < text.len) {
        const char *brace = memchr(text.ptr + i, '{', text.len - i);
        size_t next = brace == NULL ? text.len : (size_t)(brace - text.ptr);
        buf_add(&out, str_slice(text, i, next));
        i = next;
        if (i == text.len) {
            break;
        }
        struct reference ref;
        size_t len = match(str_slice(text, i, text.len), &ref);
        const struct placeholder *p = len == 0 ? NULL : placeholder_find(vars, ref.name);
        if (p == NULL && len > 0 && strict) {
            return ERR(e, ERR_CONFIG, "unknown placeholder {%.*s}", STR_ARG(ref.name));
        }
        len = p == NULL ? 1 : len;
        buf_add(&out, p == NULL ? STR("{") : value_of(p, &ref));
        i += len;
    }
    *ret = arena_str(a, buf_str(&out));
    return 0;
}

/* A profile is read with a depth of at most 32. */
static int expand_in_place(struct arena *a, struct json *v, const struct placeholders *vars,
                           struct err *e)
{
    int r = 0;
    if (json_is(v, JSON_STRING)) {
        return expand_text(a, v->string, vars, true, &v->string, e);
    }
    for (size_t i = 0; r == 0 && json_is(v, JSON_ARRAY) && i < v->array.len; i++) {
        r = expand_in_place(a, v->array.items[i], vars, e);
    }
    for (size_t i = 0; r == 0 && json_is(v, JSON_OBJECT) && i < v->object.len; i++) {
        struct json_member *m = &v->object.members[i];
        r = expand_text(a, m->key, vars, false, &m->key, e);
        r = r < 0 ? r : expand_in_place(a, m->value, vars, e);
    }
    return r;
}

int expand_tree(struct arena *a, const struct json *tree, const struct placeholders *vars,
                struct json **ret, struct err *e)
{
    struct json *copy = json_copy(a, tree);
    int r = expand_in_place(a, copy, vars, e);
    if (r == 0) {
        *ret = copy;
    }
    return r;
}

int expand_over(struct arena *a, const struct json *over, const struct placeholders *vars,
                struct json **tree, struct err *e)
{
    struct json *filled = NULL;
    int r = over == NULL ? 0 : expand_tree(a, over, vars, &filled, e);
    if (r == 0 && filled != NULL) {
        *tree = json_merge(a, *tree, filled);
    }
    return r;
}

int expand_env(struct arena *a, const struct json *vars_of_profile, const struct placeholders *vars,
               struct json *env, struct err *e)
{
    for (size_t i = 0; i < json_len(vars_of_profile); i++) {
        const struct json_member *m = &vars_of_profile->object.members[i];
        struct str value;
        int r = expand_text(a, json_str(m->value, STR_EMPTY), vars, true, &value, e);
        if (r < 0) {
            return err_wrap(e, "variable '%s'", m->key.ptr);
        }
        if (value.len == 0 && json_str(m->value, STR_EMPTY).len > 0) {
            continue; /* what has no value: the harness has a default of its own */
        }
        json_set(a, env, m->key, json_string(a, value));
    }
    return 0;
}

bool expand_uses(const struct profile *p, const char *placeholder)
{
    for (size_t i = 0; p != NULL && i < p->argv_len; i++) {
        for (size_t j = 0; j < json_len(p->argv[i].args); j++) {
            struct str arg = json_str(json_item(p->argv[i].args, j), STR_EMPTY);
            if (str_find(arg, str_of(placeholder)) < arg.len) {
                return true;
            }
        }
    }
    return false;
}

struct argv {
    struct arena *a;
    const struct placeholders *vars;
    char **items;
    size_t len, cap;
};

static int push(struct argv *v, struct str text, bool strict, struct err *e)
{
    struct str arg;
    int r = expand_text(v->a, text, v->vars, strict, &arg, e);
    if (r < 0) {
        return r;
    }
    if (str_has_nul(arg)) {
        return ERR(e, ERR_CONFIG, "argument %zu contains a NUL byte, which no program can receive",
                   v->len);
    }
    if (v->len == ARGV_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d arguments", ARGV_MAX);
    }
    if (v->len + 1 >= v->cap) { /* one place stays free for the NULL at the end */
        size_t cap = v->cap == 0 ? 16 : v->cap * 2;
        char **items = arena_array(v->a, cap, sizeof *items);
        if (v->len > 0) {
            memcpy(items, v->items, v->len * sizeof *items);
        }
        v->items = items;
        v->cap = cap;
    }
    v->items[v->len++] = (char *)arg.ptr;
    return 0;
}

/* "{args...}" -> the placeholder whose list it names; NULL when text is something else. */
static const struct placeholder *as_list(const struct argv *v, struct str text)
{
    if (!str_starts(text, STR("{")) || !str_ends(text, STR("...}"))) {
        return NULL;
    }
    return placeholder_find(v->vars, str_slice(text, 1, text.len - 4));
}

static int push_profile_arg(struct argv *v, struct str text, struct err *e)
{
    const struct placeholder *list = as_list(v, text);
    if (list == NULL) {
        return push(v, text, true, e);
    }
    for (size_t i = 0; i < json_len(list->list); i++) {
        int r = push(v, json_str(json_item(list->list, i), STR_EMPTY), false, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static bool wanted(const struct profile_args *args, const struct placeholders *vars)
{
    return (args->when == NULL ||
            placeholder_has_value(placeholder_find(vars, str_of(args->when)))) &&
           (args->unless == NULL ||
            !placeholder_has_value(placeholder_find(vars, str_of(args->unless))));
}

int expand_argv(struct arena *a, const struct profile *p, const struct placeholders *vars,
                char ***ret, struct err *e)
{
    struct argv v = { .a = a, .vars = vars };
    for (size_t i = 0; i < p->argv_len; i++) {
        const struct profile_args *args = &p->argv[i];
        if (!wanted(args, vars)) {
            continue;
        }
        for (size_t j = 0; j < json_len(args->args); j++) {
            int r = push_profile_arg(&v, json_str(json_item(args->args, j), STR_EMPTY), e);
            if (r < 0) {
                return err_wrap(e, "arguments of adapter '%s'", p->name);
            }
        }
    }
    if (v.len == 0 || v.items[0][0] == '\0') {
        return ERR(e, ERR_USAGE,
                   "adapter '%s' needs a command: give it after --, or as agent.command", p->name);
    }
    *ret = v.items;
    return 0;
}
