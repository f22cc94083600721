/* SPDX-License-Identifier: MIT
 *
 * Prompts of skills: which template, which variables, and the body where there is no template; see
 * skill_prompt.h.
 */
#include "skill/skill_prompt.h"

#include <string.h>

#include "base/json.h"
#include "skill/package.h"
#include "skill/skill.h"
#include "skill/skill_engine.h"
#include "skill/skill_input.h"
#include "skill/skill_priv.h"
#include "template/template.h"

/* --- variables --- */

static struct json *skill_value(struct arena *a, const struct skill *s, const char *skill_dir)
{
    struct json *v = s->manifest == NULL ? json_object(a) : json_copy(a, s->manifest->all);
    json_setc(a, v, "id", json_cstr(a, s->card.name));
    if (json_get(v, "name") == NULL) {
        json_setc(a, v, "name", json_cstr(a, s->card.name));
    }
    if (json_get(v, "description") == NULL) {
        json_setc(a, v, "description", json_cstr(a, s->card.description));
    }
    if (json_get(v, "version") == NULL) {
        json_setc(a, v, "version", json_null(a));
    }
    json_setc(a, v, "path", json_cstr(a, skill_dir));
    return v;
}

static int variables(struct arena *a, const struct skill *s, const struct skill_prompt_opts *o,
                     struct json **ret, struct err *e)
{
    struct json *input = o->values == NULL ? json_object(a) : o->values->input;
    struct json *parameter = o->values == NULL ? json_object(a) : o->values->parameter;
    struct json *both = json_object(a);
    json_setc(a, both, "input", input);
    json_setc(a, both, "parameter", parameter);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int r = json_write(both, JSON_PRETTY, &text, e);
    if (r < 0) {
        return r;
    }
    struct json *v = json_object(a);
    json_setc(a, v, "skill", skill_value(a, s, o->skill_dir));
    json_setc(a, v, "skill_id", json_cstr(a, s->card.name));
    json_setc(a, v, "input", input);
    json_setc(a, v, "parameter", parameter);
    json_setc(a, v, "params_json", json_string(a, str_trim(buf_str(&text))));
    json_setc(a, v, "input_file", json_cstr(a, "input.json"));
    json_setc(a, v, "run_dir", json_cstr(a, o->run_dir));
    json_setc(a, v, "skill_dir", json_cstr(a, o->skill_dir));
    *ret = v;
    return 0;
}

/* --- bodies --- */

static int write_list(struct buf *out, const char *title, const struct json *values, struct err *e)
{
    int r = buf_printf(out, e, "# %s\n", title);
    for (size_t i = 0; r == 0 && i < json_len(values); i++) {
        const struct json_member *m = &values->object.members[i];
        r = buf_printf(out, e, "- %.*s: ", STR_ARG(m->key));
        if (r == 0) {
            r = m->value->type == JSON_STRING ? buf_append(out, m->value->string, e)
                                              : json_write(m->value, JSON_COMPACT, out, e);
        }
        if (r == 0) {
            r = buf_append_c(out, '\n', e);
        }
    }
    return r < 0 ? r : buf_append_c(out, '\n', e);
}

static int write_default(const struct json *vars, struct buf *out, struct err *e)
{
    int r = write_list(out, "Inputs", json_get(vars, "input"), e);
    if (r == 0) {
        r = write_list(out, "Parameters", json_get(vars, "parameter"), e);
    }
    return r < 0
               ? r
               : buf_append(out, STR("Task: run the skill with these inputs and parameters.\n"), e);
}

static int read_included(void *self, const char *name, struct buf *ret, struct err *e)
{
    const struct skill *s = self;
    const struct package_file *f = package_find(s->package, str_of(name));
    if (f == NULL || f->dir) {
        return ERR(e, ERR_INPUT, "the package has no file '%s'", name);
    }
    return buf_append(ret, f->content, e);
}

static void ignore_undefined(void *self, struct str name)
{
    (void)self;
    (void)name;
}

struct body_template {
    const char *key; /* under which it stands in the manifest */
    struct str text;
};

static int write_template(const struct skill *s, const struct skill_prompt_opts *o,
                          const struct body_template *body, const struct json *vars,
                          struct buf *out, struct err *e)
{
    struct template_opts opts = {
        .loader = { .read = read_included, .self = (void *)(uintptr_t)s },
        .undefined = o->undefined,
    };
    if (opts.undefined.report == NULL) {
        opts.undefined.report = ignore_undefined;
    }
    CLEANUP(template_set) struct template_set *set = template_set_new(&opts);
    CLEANUP(template_vars) struct template_vars *v = template_vars_new(vars);
    const struct template *t = NULL;
    CLEANUP(arena) struct arena *a = arena_new();
    const char *name =
        arena_printf(a, "%s, prompts.%s", skill_file_label(s, "assets/runner.json"), body->key);
    int r = template_parse(set, name, body->text, &t, e);
    if (r == 0) {
        r = template_render(t, v, out, e);
    }
    return skill_refuse(r == -ERR_INPUT || r == -ERR_DENIED ? -ERR_PARSE : r, e);
}

/* The template for the engine and the key it stands under; NULL: none. */
static const struct json *find_template(const struct skill *s, const char *engine,
                                        const char **ret_key)
{
    const char *const keys[] = { engine, "common" };
    for (size_t i = 0; s->manifest != NULL && i < ARRAY_LEN(keys); i++) {
        const struct json *v = json_get(s->manifest->prompts, keys[i]);
        if (json_len(v) > 0) {
            *ret_key = keys[i];
            return v;
        }
    }
    return NULL;
}

static int write_body(const struct skill *s, const struct skill_prompt_opts *o, struct buf *out,
                      struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const char *key = NULL;
    const struct json *text = find_template(s, o->engine->name, &key);
    struct json *vars = NULL;
    if (s->manifest == NULL) {
        return 0;
    }
    int r = variables(a, s, o, &vars, e);
    if (r < 0) {
        return r;
    }
    return text == NULL
               ? write_default(vars, out, e)
               : write_template(s, o, &(struct body_template) { key, text->string }, vars, out, e);
}

static int write_skill(const struct skill *s, const struct skill_prompt_opts *o, struct buf *out,
                       struct err *e)
{
    return buf_printf(out, e,
                      "Do what the skill '%s' below says. Its files are in %s.\n\n<skill>\n%.*s\n"
                      "</skill>\n",
                      s->name, o->skill_dir, STR_ARG(str_trim(o->text)));
}

int skill_prompt(const struct skill *s, const struct skill_prompt_opts *o, struct buf *out,
                 struct err *e)
{
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf all = BUF_INIT(BUF_TEXT);
    int r = o->text.len > 0 ? write_skill(s, o, &all, e)
                            : skill_engine_invoke(o->engine, s->name, o->skill_dir, &all, e);
    if (r == 0) {
        r = write_body(s, o, &body, e);
    }
    struct str text = buf_str(&body);
    while (text.len > 0 && text.ptr[0] == '\n') {
        text = str_slice(text, 1, text.len);
    }
    struct str goal = str_trim(o->goal);
    if (r == 0 && str_trim(text).len > 0) {
        r = buf_printf(&all, e, "\n%.*s", STR_ARG(text));
    }
    if (r == 0 && goal.len > 0) {
        r = buf_printf(&all, e, "%s\n%.*s", all.ptr[all.len - 1] == '\n' ? "" : "\n",
                       STR_ARG(goal));
    }
    return r < 0 ? r : buf_append(out, buf_str(&all), e);
}
