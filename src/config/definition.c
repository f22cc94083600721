/* SPDX-License-Identifier: MIT
 *
 * The prompt and the output contract of a task; skills are in definition_skill.c.
 */
#include "config/definition.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "adapters/expand.h"
#include "base/file.h"
#include "config/definition_priv.h"
#include "data/schema.h"
#include "data/yaml.h"
#include "llm/schema_convert.h"

void definition_warn(struct definition *d, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_push(d->arena, d->warnings, json_cstr(d->arena, text));
}

/* A limit that a task reaches is a fault of the task, not of cinch. */
static int as_config(int r, struct err *e)
{
    if (r == -ERR_LIMIT || r == -ERR_DENIED) {
        e->code = ERR_CONFIG;
        return -ERR_CONFIG;
    }
    return r;
}

/* --- sections --- */

/* Includes are found beside the file that says the prompt. */
static int open_dir(struct definition *d, const char *key, struct err *e)
{
    struct settings_origin from = settings_origin(d->settings, d->arena, "prompt", key);
    d->dir_fd = open(from.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return d->dir_fd < 0 ? ERR_SYS_AS(e, ERR_INPUT, "directory '%s'", from.dir) : 0;
}

static int apply_overrides(struct definition *d, struct err *e)
{
    const struct json *where = json_get(d->settings->prompt, "overrides");
    const char *tag = json_cstring(json_get(where, "tag"), "latest");
    struct section_overrides found;
    if (where == NULL) {
        return 0;
    }
    int r = section_overrides_load(d->sections, json_cstring(json_get(where, "dir"), NULL), tag,
                                   d->arena, &found, e);
    if (r < 0 || found.content == NULL) {
        return r;
    }
    r = section_tree_override(d->sections, found.content, found.path, tag, e);
    size_t len = 0;
    const struct section_dropped *dropped = r < 0 ? NULL : section_tree_dropped(d->sections, &len);
    for (size_t i = 0; i < len; i++) {
        definition_warn(d, "%s: the override of %.*s is left out: %s", found.path,
                        STR_ARG(dropped[i].what), dropped[i].reason);
    }
    return r;
}

static int open_sections(struct definition *d, struct err *e)
{
    const struct settings *s = d->settings;
    if (json_get(s->prompt, "sections") == NULL) {
        return 0;
    }
    if (s->prompt_text.ptr != NULL || s->prompt_file != NULL) {
        return ERR(e, ERR_USAGE, "the prompt is given twice: as sections by %s and as %s",
                   settings_origin(s, d->arena, "prompt", "sections").file,
                   s->prompt_file != NULL ? "a file" : "text");
    }
    int r = open_dir(d, "sections", e);
    if (r < 0) {
        return r;
    }
    /* A prompt needs names; a task may leave them to us. */
    struct json *prompt = json_copy(d->arena, s->prompt);
    if (json_get(prompt, "ns") == NULL) {
        json_setc(d->arena, prompt, "ns", json_cstr(d->arena, "cinch"));
    }
    if (json_get(prompt, "key") == NULL) {
        json_setc(d->arena, prompt, "key", json_cstr(d->arena, "task"));
    }
    struct template_dir *dir = ARENA_NEW(d->arena, struct template_dir);
    template_dir_init(dir, d->dir_fd);
    struct section_opts opts = {
        .file = settings_origin(s, d->arena, "prompt", "sections").file,
        .tools = s->tools == NULL ? json_array(d->arena) : s->tools,
        .loader = dir->loader,
        .limits = d->limits,
    };
    r = section_tree_new(prompt, &opts, &d->sections, e);
    return as_config(r < 0 ? r : apply_overrides(d, e), e);
}

/* --- output contract --- */

static int compile_contract(struct definition *d, const char *file, struct err *e)
{
    int r = as_config(schema_compile(d->contract, NULL, &d->schema, e), e);
    return r < 0 ? err_wrap(e, "%s: output.schema", file) : 0;
}

static int open_contract(struct definition *d, struct err *e)
{
    static const struct json_limits limits = { .max_bytes = 4 << 20, .max_depth = 128 };
    const struct json *schema = d->settings->output_schema;
    const char *file = settings_origin(d->settings, d->arena, "output", "schema").file;
    if (schema == NULL) {
        return 0;
    }
    d->contract = schema;
    if (json_is(schema, JSON_STRING)) {
        struct json *tree;
        file = json_cstring(schema, "");
        int r = as_config(yaml_load(d->arena, file, &limits, &tree, e), e);
        if (r < 0) {
            return err_wrap(e, "output.schema");
        }
        d->contract = tree;
    }
    return compile_contract(d, file, e);
}

int definition_open(struct definition *d, struct arena *a, struct settings *s, struct err *e)
{
    return definition_open_limited(d, a, s, &(struct template_limits) { 0 }, e);
}

int definition_open_limited(struct definition *d, struct arena *a, struct settings *s,
                            const struct template_limits *limits, struct err *e)
{
    *d = (struct definition) {
        .arena = a,
        .settings = s,
        .limits = *limits,
        .dir_fd = -1,
        .warnings = json_array(a),
        .tools = json_array(a),
    };
    int r = open_sections(d, e);
    if (r == 0) {
        r = open_contract(d, e);
    }
    r = r < 0 ? r : definition_check_guards(d, e);
    return as_config(r < 0 ? r : definition_open_skills(d, e), e);
}

void definition_done(struct definition *d)
{
    if (d->arena == NULL) {
        return; /* never opened */
    }
    d->sections = section_tree_free(d->sections);
    d->schema = schema_free(d->schema);
    for (size_t i = 0; i < d->skills_len; i++) {
        d->skills[i].skill = skill_free(d->skills[i].skill);
    }
    d->skills_len = 0;
    d->package = NULL;
    cleanup_fd(&d->dir_fd);
}

/* --- rendering --- */

/* Text is a template where somebody says so, or where there is something to put into it; else every
 * brace in it is a brace. */
static bool is_template(const struct settings *s)
{
    const struct json *said = json_get(s->prompt, "template");
    return json_is(said, JSON_BOOL) ? said->boolean : json_len(s->params) > 0;
}

static int render_text(struct definition *d, struct str text, const char *name, struct err *e)
{
    struct template_dir dir;
    int r = open_dir(d, d->settings->prompt_file != NULL ? "file" : "text", e);
    if (r < 0) {
        return r;
    }
    template_dir_init(&dir, d->dir_fd);
    struct template_limits limits = d->limits;
    limits.max_source = DEFINITION_PROMPT_MAX;
    CLEANUP(template_set)
    struct template_set *set =
        template_set_new(&(struct template_opts) { .loader = dir.loader, .limits = limits });
    CLEANUP(template_vars) struct template_vars *vars = template_vars_new(d->settings->params);
    CLEANUP(buf) struct buf out = BUF_INIT(DEFINITION_PROMPT_MAX);
    const struct template *t;
    r = template_parse(set, name, text, &t, e);
    if (r == 0) {
        r = template_render(t, vars, &out, e);
    }
    if (r == 0) {
        d->goal = arena_str(d->arena, buf_str(&out));
    }
    return as_config(r, e);
}

static int read_goal(struct definition *d, struct err *e)
{
    const struct settings *s = d->settings;
    CLEANUP(buf) struct buf text = BUF_INIT(DEFINITION_PROMPT_MAX);
    if (s->prompt_file == NULL) {
        d->goal = s->prompt_text;
        return s->prompt_text.ptr != NULL && s->prompt_text.len == 0
                   ? ERR(e, ERR_INPUT, "the prompt is empty")
                   : 0;
    }
    int r = file_read(AT_FDCWD, s->prompt_file, DEFINITION_PROMPT_MAX, &text, e);
    if (r == -ERR_LIMIT) {
        e->code = ERR_INPUT; /* what is wrong is the file, not cinch */
    }
    if (r < 0) {
        return err_wrap(e, "prompt");
    }
    d->goal = arena_str(d->arena, buf_str(&text));
    return text.len == 0 ? ERR(e, ERR_INPUT, "prompt file '%s' is empty", s->prompt_file) : 0;
}

static int bind_text(struct definition *d, struct err *e)
{
    const struct settings *s = d->settings;
    int r = read_goal(d, e);
    if (r < 0 || d->goal.ptr == NULL || !is_template(s)) {
        return r;
    }
    char at[JSON_AT_LEN];
    const char *name = s->prompt_file;
    if (name == NULL) {
        const char *file = settings_origin(s, d->arena, "prompt", "text").file;
        name = arena_printf(d->arena, "%s: prompt", json_at(file, json_get(s->prompt, "text"), at));
    }
    return render_text(d, d->goal, name, e);
}

bool definition_mentioned(const struct definition *d, const char *key, struct str name)
{
    /* The tree was checked, so its depth is bounded by the reader; the stack holds one path. */
    enum { DEPTH = 64 };
    struct {
        const struct json *list;
        size_t next;
    } stack[DEPTH] = { { json_get(d->settings->prompt, "sections"), 0 } };
    for (size_t depth = 1; depth > 0;) {
        if (stack[depth - 1].next >= json_len(stack[depth - 1].list)) {
            depth--;
            continue;
        }
        const struct json *section = json_item(stack[depth - 1].list, stack[depth - 1].next++);
        const struct json *names = json_get(section, key);
        for (size_t i = 0; i < json_len(names); i++) {
            if (str_eq(json_str(json_item(names, i), STR_EMPTY), name)) {
                return true;
            }
        }
        if (json_len(json_get(section, "children")) > 0 && depth < DEPTH) {
            stack[depth].list = json_get(section, "children");
            stack[depth++].next = 0;
        }
    }
    return false;
}

static void offer(struct definition *d, const struct json *tool)
{
    struct arena *a = d->arena;
    struct json *shown = json_object(a);
    struct json *parameters = json_get(tool, "input_schema");
    json_setc(a, shown, "name", json_get(tool, "name"));
    json_setc(a, shown, "description", json_get(tool, "description"));
    if (parameters == NULL) {
        parameters = json_object(a);
        json_setc(a, parameters, "type", json_cstr(a, "object"));
        json_setc(a, parameters, "properties", json_object(a));
    }
    json_setc(a, shown, "parameters", parameters);
    json_push(a, d->tools, shown);
}

/* Tools that no section names belong to the whole prompt. */
static void offer_tools(struct definition *d)
{
    const struct json *all = d->settings->tools;
    for (size_t i = 0; i < json_len(all); i++) {
        const struct json *tool = json_item(all, i);
        if (!definition_mentioned(d, "tools", json_str(json_get(tool, "name"), STR_EMPTY))) {
            offer(d, tool);
        }
    }
    for (size_t i = 0; i < d->rendering.tools_len; i++) {
        if (d->rendering.tools[i].definition != NULL) {
            offer(d, d->rendering.tools[i].definition);
        }
    }
}

/* The contract in the harness' dialect. */
static void convert_contract(struct definition *d)
{
    const struct profile *p = d->settings->profile;
    enum schema_form form = p == NULL ? SCHEMA_FORM_PLAIN : p->schema_form;
    struct json *strict;
    struct err why;
    d->asked = d->contract;
    if (d->contract == NULL || form == SCHEMA_FORM_PLAIN) {
        return;
    }
    struct json *wrapped = schema_wrap(d->arena, d->contract);
    d->asked = wrapped;
    if (form == SCHEMA_FORM_CLAUDE) {
        wrapped = schema_join(d->arena, d->contract);
        d->asked = schema_to_draft_07(d->arena, schema_fold_null(d->arena, wrapped));
    } else if (form == SCHEMA_FORM_OPENAI &&
               schema_to_strict(d->arena, wrapped, &strict, &why) == 0) {
        d->asked = strict;
        d->strict = wrapped;
    } else if (form == SCHEMA_FORM_OPENAI) {
        definition_warn(d, "output.schema is not sent in the strict form: %s", why.msg);
    }
}

int definition_bind(struct definition *d, struct err *e)
{
    int r;
    if (d->sections != NULL) {
        struct section_request request = { .params = d->settings->params };
        r = as_config(section_tree_render(d->sections, &request, d->arena, &d->rendering, e), e);
        d->goal = r < 0 ? d->goal : d->rendering.text;
    } else {
        r = bind_text(d, e);
    }
    if (r < 0) {
        return r;
    }
    offer_tools(d);
    r = as_config(definition_bind_skills(d, e), e);
    if (r == 0 && d->schema == NULL && d->contract != NULL) {
        r = compile_contract(d, d->package->name, e);
    }
    if (r == 0) {
        convert_contract(d);
    }
    return r;
}

/* --- what the agent is asked --- */

bool definition_native_schema(const struct profile *p)
{
    return p != NULL && (p->schema_native || expand_uses(p, "{output_schema"));
}

/* A package says it in its SKILL.md. */
static int add_contract(struct definition *d, struct buf *out, struct err *e)
{
    if (d->contract == NULL || d->package != NULL ||
        definition_native_schema(d->settings->profile)) {
        return 0;
    }
    int r = buf_append(out,
                       STR("\n\nAnswer with one JSON value that fits the JSON Schema below, and "
                           "with nothing else.\n\n```json\n"),
                       e);
    if (r == 0) {
        r = json_write(d->contract, JSON_PRETTY, out, e);
    }
    return r < 0 ? r : buf_append(out, STR("```\n"), e);
}

int definition_prompt(struct definition *d, const struct definition_place *place, struct str *ret,
                      struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(DEFINITION_PROMPT_MAX);
    int r = 0;
    if (d->package != NULL) {
        r = definition_package_prompt(d, place, &out, e);
    } else if (d->goal.ptr != NULL) {
        r = buf_append(&out, d->goal, e);
    }
    if (r == 0) {
        r = add_contract(d, &out, e);
    }
    *ret = arena_str(d->arena, buf_str(&out));
    return as_config(r, e);
}
