/* SPDX-License-Identifier: MIT
 *
 * From tree and parameters to text. A pass holds what one walk needs: the parameters as template
 * variables, merged with the defaults of sections that have some.
 */
#include "prompt/section_priv.h"

#include <stdlib.h>

#include "template/template_unicode.h"

/* Of one prompt; a model takes far less. Reached through loops over parameters. */
enum { PROMPT_BYTES = 64 << 20 };

/* Variables of a section with defaults of its own, or of its nearest ancestor that has. */
struct scope_vars {
    struct scope_vars *next;
    const struct section *owner;
    struct template_vars *vars;
};

struct section_pass {
    struct section_tree *tree;
    const struct section_request *request;
    struct arena *arena;
    struct template_vars *bound;
    struct scope_vars *scopes;
    struct buf text; /* of the section being rendered */
};

int section_pass_new(struct section_tree *tree, const struct section_request *request,
                     struct section_pass **ret, struct err *e)
{
    const struct json *params = request->params;
    if (params != NULL && !json_is(params, JSON_OBJECT) && !json_is(params, JSON_NULL)) {
        return section_fail(tree, NULL, params, e, "the parameters of a prompt are an object");
    }
    struct section_pass *pass = xcalloc(1, sizeof *pass);
    pass->tree = tree;
    pass->request = request;
    pass->arena = arena_new();
    pass->bound = template_vars_new(params);
    buf_init(&pass->text, PROMPT_BYTES);
    *ret = pass;
    return 0;
}

struct section_pass *section_pass_free(struct section_pass *pass)
{
    if (pass != NULL) {
        for (struct scope_vars *v = pass->scopes; v != NULL; v = v->next) {
            (void)template_vars_free(v->vars);
        }
        (void)template_vars_free(pass->bound);
        buf_done(&pass->text);
        (void)arena_free(pass->arena);
        free(pass);
    }
    return NULL;
}

static void set_all(struct section_pass *pass, struct json *to, const struct json *from)
{
    for (size_t i = 0; json_is(from, JSON_OBJECT) && i < from->object.len; i++) {
        json_set(pass->arena, to, from->object.members[i].key, from->object.members[i].value);
    }
}

/* Defaults from the outermost section inwards. */
static void set_defaults(struct section_pass *pass, struct json *to, const struct section *s)
{
    if (s != NULL) {
        set_defaults(pass, to, s->parent);
        set_all(pass, to, s->params);
    }
}

static struct template_vars *vars_of(struct section_pass *pass, const struct section *s)
{
    while (s != NULL && json_len(s->params) == 0) {
        s = s->parent;
    }
    if (s == NULL) {
        return pass->bound;
    }
    for (struct scope_vars *v = pass->scopes; v != NULL; v = v->next) {
        if (v->owner == s) {
            return v->vars;
        }
    }
    struct json *all = json_object(pass->arena);
    set_defaults(pass, all, s);
    set_all(pass, all, pass->request->params);
    struct scope_vars *v = ARENA_NEW(pass->arena, struct scope_vars);
    v->owner = s;
    v->vars = template_vars_new(all);
    v->next = pass->scopes;
    pass->scopes = v;
    return v->vars;
}

/* Renders into pass->text and gives it trimmed, valid until the next call. */
static int render(struct section_pass *pass, const struct section *s, const struct template *t,
                  struct str *ret, struct err *e)
{
    buf_reset(&pass->text);
    int r = template_render(t, vars_of(pass, s), &pass->text, e);
    *ret = unicode_strip(buf_str(&pass->text), true, true);
    return r;
}

int section_pass_enabled(struct section_pass *pass, const struct section *s, bool *ret,
                         struct err *e)
{
    *ret = s->enabled.constant && !(s->example != NULL && s->example->removed);
    if (s->enabled.expression == NULL) {
        return 0;
    }
    struct str text;
    int r = render(pass, s, s->enabled.expression, &text, e);
    *ret = r == 0 && text.len > 0;
    return r < 0 ? section_wrap(pass->tree, s, NULL, s->enabled.source, e) : 0;
}

/* The word "full" or "summary"; anything else is an error at `at`. */
static int visibility_of(struct section_pass *pass, const struct section *s, struct str word,
                         const struct json *at, enum section_visibility *ret, struct err *e)
{
    *ret = str_eqc(word, "summary") ? SECTION_SUMMARY : SECTION_FULL;
    if (*ret == SECTION_FULL && !str_eqc(word, "full")) {
        return section_fail(pass->tree, s, at, e,
                            "visibility must be 'full' or 'summary', not '%.*s'",
                            (int)(word.len > 60 ? 60 : word.len), word.ptr);
    }
    return 0;
}

static int decide(struct section_pass *pass, const struct section *s, enum section_visibility *ret,
                  struct err *e)
{
    if (pass->request->everything) {
        *ret = SECTION_FULL;
        return 0;
    }
    const struct json *asked = json_find(pass->request->visibility, s->path);
    if (json_is(asked, JSON_STRING)) {
        return visibility_of(pass, s, asked->string, asked, ret, e);
    }
    *ret = s->visibility.constant ? SECTION_SUMMARY : SECTION_FULL;
    if (s->override_visibility >= 0) {
        *ret = (enum section_visibility)s->override_visibility;
        return 0;
    }
    if (s->visibility.expression == NULL) {
        return 0;
    }
    struct str text;
    int r = render(pass, s, s->visibility.expression, &text, e);
    if (r < 0) {
        return section_wrap(pass->tree, s, NULL, s->visibility.source, e);
    }
    return visibility_of(pass, s, text, s->visibility.source, ret, e);
}

int section_pass_visibility(struct section_pass *pass, const struct section *s,
                            enum section_visibility *ret, struct err *e)
{
    int r = decide(pass, s, ret, e);
    if (r == 0 && *ret == SECTION_SUMMARY && s->summary.template == NULL) {
        return section_fail(pass->tree, s, s->source, e,
                            "visibility 'summary' was asked for, but there is no 'summary'");
    }
    return r;
}

/* How to see what a summary leaves out. */
static void write_suffix(struct buf *out, const struct section_tree *tree, const struct section *s)
{
    const char *tool = s->active ? "open_sections" : "read_section";
    bool first = true;
    buf_adds(out, "\n\n---\n[This section is summarized. ");
    for (size_t i = s->at + 1; i < s->end; i = tree->nodes[i]->end) {
        const struct section *child = tree->nodes[i];
        if (child->example != NULL && child->example->removed) {
            continue;
        }
        if (first) {
            buf_addf(out,
                     "Call `%s` with key \"%.*s\" to view full content including subsections: ",
                     tool, STR_ARG(s->path));
        }
        buf_addf(out, "%s%.*s", first ? "" : ", ", STR_ARG(child->key));
        first = false;
    }
    if (first) {
        buf_addf(out, "To view full content, call `%s` with key \"%.*s\"", tool, STR_ARG(s->path));
    }
    buf_adds(out, ".]");
}

static int write_body(struct section_pass *pass, const struct section *s,
                      enum section_visibility visibility, struct buf *out, struct err *e)
{
    bool summary = visibility == SECTION_SUMMARY;
    const struct section_text *t = summary ? &s->summary : &s->body;
    if (s->example != NULL) {
        buf_adds(out, "\n\n");
        section_example_write(out, s->example);
        return 0;
    }
    if (t->template == NULL) {
        return 0;
    }
    struct str text;
    int r = render(pass, s, t->template, &text, e);
    if (r < 0) {
        return section_wrap(pass->tree, s, t->file, t->source, e);
    }
    if (text.len > 0) {
        buf_adds(out, "\n\n");
        buf_add(out, text);
    }
    return 0;
}

int section_pass_write(struct section_pass *pass, const struct section *s,
                       enum section_visibility visibility, struct buf *out, struct err *e)
{
    if (out->len > 0) {
        buf_add(out, STR("\n\n"));
    }
    buf_add(out, s->heading);
    int r = write_body(pass, s, visibility, out, e);
    if (r < 0) {
        return r;
    }
    if (visibility == SECTION_SUMMARY) {
        write_suffix(out, pass->tree, s);
    } else {
        size_t before = out->len;
        buf_adds(out, "\n\n");
        section_tools_write(out, pass->tree, s);
        if (out->len == before + 2) {
            out->len = before;
            out->ptr[before] = '\0';
        }
    }
    if (out->len > PROMPT_BYTES) {
        (void)ERR(e, ERR_LIMIT, "the prompt is longer than %d bytes", PROMPT_BYTES);
        return section_wrap(pass->tree, s, NULL, s->source, e);
    }
    return 0;
}

/* --- the whole prompt --- */

static struct str copy(struct arena *a, struct str s)
{
    return arena_str(a, s);
}

static void collect(const struct section_tree *tree, const struct section *s, struct arena *a,
                    struct section_rendering *ret)
{
    for (size_t i = 0; i < s->tools_len; i++) {
        const struct section_definition *d = section_definition_find(tree, s->tools[i]);
        ret->tools[ret->tools_len++] = (struct section_tool) {
            .name = copy(a, s->tools[i]),
            .path = copy(a, s->path),
            .definition = d == NULL ? NULL : json_copy(a, d->effective),
        };
    }
    for (size_t i = 0; i < s->skills_len; i++) {
        ret->skills[ret->skills_len++] =
            (struct section_skill) { copy(a, s->skills[i]), copy(a, s->path) };
    }
}

static void add_builtin(struct arena *a, struct section_rendering *ret, bool open)
{
    struct json *definition = section_builtin(a, open);
    ret->tools[ret->tools_len++] = (struct section_tool) {
        .name = json_str(json_get(definition, "name"), STR_EMPTY),
        .path = STR_EMPTY,
        .definition = definition,
    };
}

static void add_view(struct arena *a, struct section_rendering *ret, const struct section *s,
                     enum section_visibility visibility)
{
    struct section_view *view = &ret->sections[ret->sections_len++];
    *view = (struct section_view) {
        .path = copy(a, s->path),
        .number = copy(a, s->number),
        .title = copy(a, s->title),
        .visibility = visibility,
        .overridden = s->overridden,
    };
    memcpy(view->hash, s->hash, sizeof view->hash);
}

static void make_room(const struct section_tree *tree, struct arena *a,
                      struct section_rendering *ret)
{
    size_t tools = 2;
    size_t skills = 0;
    for (size_t i = 0; i < tree->len; i++) {
        tools += tree->nodes[i]->tools_len;
        skills += tree->nodes[i]->skills_len;
    }
    *ret = (struct section_rendering) { .text = STR_EMPTY };
    ret->sections = arena_array(a, tree->len, sizeof *ret->sections);
    ret->tools = arena_array(a, tools, sizeof *ret->tools);
    ret->skills = arena_array(a, skills, sizeof *ret->skills);
}

static int walk(struct section_pass *pass, struct arena *a, struct buf *out,
                struct section_rendering *ret, struct err *e)
{
    const struct section_tree *tree = pass->tree;
    bool needs[2] = { false, false }; /* read_section, open_sections */
    for (size_t i = 0; i < tree->len;) {
        const struct section *s = tree->nodes[i];
        enum section_visibility visibility;
        bool enabled;
        int r = section_pass_enabled(pass, s, &enabled, e);
        if (r < 0 || !enabled) {
            i = s->end;
            if (r < 0) {
                return r;
            }
            continue;
        }
        r = section_pass_visibility(pass, s, &visibility, e);
        r = r < 0 ? r : section_pass_write(pass, s, visibility, out, e);
        if (r < 0) {
            return r;
        }
        add_view(a, ret, s, visibility);
        if (visibility == SECTION_SUMMARY) {
            needs[s->active] = true;
            i = s->end;
        } else {
            collect(tree, s, a, ret);
            i++;
        }
    }
    if (needs[true]) {
        add_builtin(a, ret, true);
    }
    if (needs[false]) {
        add_builtin(a, ret, false);
    }
    return 0;
}

int section_tree_render(struct section_tree *tree, const struct section_request *request,
                        struct arena *a, struct section_rendering *ret, struct err *e)
{
    struct err local;
    struct section_pass *pass = NULL;
    e = e == NULL ? &local : e;
    int r = section_pass_new(tree, request, &pass, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(buf) struct buf out = BUF_INIT((size_t)1 << 30);
    make_room(tree, a, ret);
    r = walk(pass, a, &out, ret, e);
    if (r == 0) {
        ret->text = arena_str(a, buf_str(&out));
    }
    (void)section_pass_free(pass);
    return r;
}
