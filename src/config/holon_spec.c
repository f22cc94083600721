/* SPDX-License-Identifier: MIT
 *
 * From a Holon spec to the tree of a task; see holon_spec.h.
 */
#include "config/holon_spec.h"

#include <limits.h>

#include "base/buf.h"

/* Lists in hand-written specs are far shorter. */
enum { LIST_MAX = 1000, PROMPT_MAX = 16 << 20 };

struct conversion {
    struct arena *a;
    const char *file;
    const struct json *spec;
    struct json *task;
    struct json *notes;
    struct err *e;
};

static const char *place(const struct conversion *c, const struct json *v)
{
    char at[JSON_AT_LEN];
    return arena_dup(c->a, str_of(json_at(c->file, v, at)));
}

static int wrong_kind(const struct conversion *c, const struct json *v, const char *key,
                      const char *must)
{
    return ERR(c->e, ERR_CONFIG, "%s: '%s' of a Holon spec must be %s, not %s", place(c, v), key,
               must, json_type_name(v->type));
}

static bool is_given(const struct json *v)
{
    return v != NULL && !json_is(v, JSON_NULL);
}

/* The text of a scalar: an unquoted number or boolean is a text, too. */
static bool scalar_text(struct arena *a, const struct json *v, struct str *ret)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (json_is(v, JSON_STRING)) {
        *ret = v->string;
        return true;
    }
    if (json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY) || v == NULL) {
        return false;
    }
    if (!json_is(v, JSON_NULL)) {
        (void)!json_write(v, JSON_COMPACT, &out, NULL);
    }
    *ret = arena_str(a, str_trim(buf_str(&out)));
    return true;
}

static struct json *string_at(struct arena *a, struct str text, const struct json *from)
{
    struct json *v = json_string(a, text);
    v->line = from->line;
    v->column = from->column;
    return v;
}

static struct json *section_of(const struct conversion *c, const char *name)
{
    struct json *o = json_get(c->task, name);
    if (o == NULL) {
        o = json_object(c->a);
        json_setc(c->a, c->task, name, o);
    }
    return o;
}

/* --- checks --- */

static void add_note(const struct conversion *c, const char *text)
{
    json_push(c->a, c->notes, json_cstr(c->a, text));
}

/* Holon ignores keys that it does not know; so do we, but not silently. */
static void note_unknown(const struct conversion *c, const struct json *object, const char *prefix,
                         const char *const *known)
{
    for (size_t i = 0; json_is(object, JSON_OBJECT) && i < json_len(object); i++) {
        const struct json_member *m = &object->object.members[i];
        bool found = false;
        for (const char *const *k = known; *k != NULL; k++) {
            found = found || str_eqc(m->key, *k);
        }
        if (!found) {
            add_note(c,
                     arena_printf(c->a,
                                  "%s: key '%s%.*s' is not part of a Holon spec and was "
                                  "ignored",
                                  place(c, m->value), prefix, STR_ARG(str_slice(m->key, 0, 80))));
        }
    }
}

static int check_header(const struct conversion *c)
{
    const struct json *version = json_get(c->spec, "version");
    const struct json *kind = json_get(c->spec, "kind");
    struct str text;
    if (is_given(version) && (!scalar_text(c->a, version, &text) || !str_eqc(text, "v1"))) {
        return ERR(c->e, ERR_CONFIG,
                   "%s: this version of Holon specs is not supported; cinch reads 'version: v1'",
                   place(c, version));
    }
    if (is_given(kind) && !str_eqc(json_str(kind, STR_EMPTY), "Holon")) {
        return ERR(c->e, ERR_CONFIG, "%s: the kind of a Holon spec must be 'Holon'",
                   place(c, kind));
    }
    return 0;
}

/* An object, or nothing: NULL then. */
static int get_object(const struct conversion *c, const struct json *v, const char *key,
                      const struct json **ret)
{
    *ret = is_given(v) ? v : NULL;
    return *ret == NULL || json_is(v, JSON_OBJECT) ? 0 : wrong_kind(c, v, key, "a map");
}

static int get_list(const struct conversion *c, const struct json *v, const char *key,
                    const struct json **ret)
{
    *ret = is_given(v) ? v : NULL;
    if (*ret != NULL && !json_is(v, JSON_ARRAY)) {
        return wrong_kind(c, v, key, "a list");
    }
    return json_len(*ret) <= LIST_MAX ? 0
                                      : ERR(c->e, ERR_CONFIG, "%s: '%s' has more than %d entries",
                                            place(c, v), key, LIST_MAX);
}

/* A path that stays below the directory it is relative to, without "./" in front. */
static int get_path(const struct conversion *c, const struct json *v, const char *key,
                    struct str *ret)
{
    struct str path;
    if (!json_is(v, JSON_STRING)) {
        return ERR(c->e, ERR_CONFIG, "%s: a path in '%s' must be a string", place(c, v), key);
    }
    path = str_trim(v->string);
    while (str_starts(path, STR("./"))) {
        path = str_slice(path, 2, path.len);
    }
    *ret = path;
    struct str rest = path;
    bool escapes = path.len == 0 || path.len > PATH_MAX || path.ptr[0] == '/' || str_has_nul(path);
    while (!escapes && rest.ptr != NULL) {
        escapes = str_eqc(str_split(&rest, '/'), "..");
    }
    return escapes
               ? ERR(c->e, ERR_CONFIG,
                     "%s: path '%.*s' in '%s' must be relative and must not leave its directory",
                     place(c, v), STR_ARG(str_slice(v->string, 0, 200)), key)
               : 0;
}

/* --- metadata --- */

static int convert_skills(const struct conversion *c, const struct json *list)
{
    struct json *skills = json_array(c->a);
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *v = json_item(list, i);
        struct str path = json_str(v, STR_EMPTY);
        if (path.len == 0) {
            return ERR(c->e, ERR_CONFIG, "%s: a skill must be the path of a directory or file",
                       place(c, v));
        }
        if (str_find(path, STR("://")) < path.len) {
            return ERR(c->e, ERR_CONFIG,
                       "%s: skill '%.*s' is remote: cinch downloads no skills; fetch it and give "
                       "its path",
                       place(c, v), STR_ARG(str_slice(path, 0, 200)));
        }
        struct json *o = json_object(c->a);
        json_setc(c->a, o, "path", string_at(c->a, path, v));
        json_push(c->a, skills, o);
    }
    if (json_len(skills) > 0) {
        json_setc(c->a, c->task, "skills", skills);
    }
    return 0;
}

static int convert_metadata(const struct conversion *c)
{
    static const char *const known[] = { "name", "id", "skills", NULL };
    const struct json *m;
    const struct json *skills;
    struct str name;
    int r = get_object(c, json_get(c->spec, "metadata"), "metadata", &m);
    r = r < 0 ? r : get_list(c, json_get(m, "skills"), "metadata.skills", &skills);
    if (r < 0) {
        return r;
    }
    note_unknown(c, m, "metadata.", known);
    const struct json *given = json_get(m, "name");
    if (is_given(given) && !scalar_text(c->a, given, &name)) {
        return wrong_kind(c, given, "metadata.name", "a string");
    }
    if (is_given(given) && name.len > 0) {
        json_setc(c->a, c->task, "name", string_at(c->a, name, given));
    }
    if (m != NULL) {
        json_setc(c->a, c->task, "metadata", json_copy(c->a, m));
    }
    return convert_skills(c, skills);
}

/* --- context --- */

static int convert_env(const struct conversion *c, const struct json *env)
{
    struct json *set = json_object(c->a);
    for (size_t i = 0; i < json_len(env); i++) {
        const struct json_member *m = &env->object.members[i];
        struct str value;
        if (!scalar_text(c->a, m->value, &value)) {
            return ERR(c->e, ERR_CONFIG, "%s: variable '%.*s' in context.env must be a string",
                       place(c, m->value), STR_ARG(str_slice(m->key, 0, 80)));
        }
        json_set(c->a, set, m->key, string_at(c->a, value, m->value));
    }
    if (json_len(set) > 0) {
        json_setc(c->a, section_of(c, "env"), "set", set);
    }
    return 0;
}

/* The goal may name the workspace by the path that the spec gives it. */
static int name_workspace(const struct conversion *c, struct str *text)
{
    struct str inside =
        str_trim(json_str(json_get(json_get(c->spec, "context"), "workspace"), STR_EMPTY));
    while (inside.len > 1 && inside.ptr[inside.len - 1] == '/') {
        inside = str_slice(inside, 0, inside.len - 1);
    }
    bool usable = inside.len > 1 && inside.ptr[0] == '/';
    return usable ? holon_replace_path(c->a, inside, STR(HOLON_WORKSPACE_PATH), text, c->e) : 0;
}

static int convert_context(const struct conversion *c, struct buf *prompt)
{
    static const char *const known[] = { "workspace", "files", "env", NULL };
    const struct json *context;
    const struct json *files;
    const struct json *env;
    int r = get_object(c, json_get(c->spec, "context"), "context", &context);
    r = r < 0 ? r : get_list(c, json_get(context, "files"), "context.files", &files);
    r = r < 0 ? r : get_object(c, json_get(context, "env"), "context.env", &env);
    if (r < 0) {
        return r;
    }
    note_unknown(c, context, "context.", known);
    const struct json *workspace = json_get(context, "workspace");
    if (is_given(workspace) && !json_is(workspace, JSON_STRING)) {
        return wrong_kind(c, workspace, "context.workspace", "a string");
    }
    for (size_t i = 0; r == 0 && i < json_len(files); i++) {
        struct str path;
        r = get_path(c, json_item(files, i), "context.files", &path);
        if (r == 0) {
            buf_addf(prompt, "%s- %.*s\n", i == 0 ? "\n\nFiles to look at first:\n" : "",
                     STR_ARG(path));
        }
    }
    return r < 0 ? r : convert_env(c, env);
}

/* --- goal --- */

static int convert_goal(const struct conversion *c, struct buf *prompt, const struct json **ret)
{
    static const char *const known[] = { "description", "issue", "issue_id", NULL };
    const struct json *goal = json_get(c->spec, "goal");
    const struct json *description =
        json_is(goal, JSON_OBJECT) ? json_get(goal, "description") : goal;
    const struct json *issue = json_is(goal, JSON_OBJECT) ? json_get(goal, "issue") : NULL;
    issue = is_given(issue) || !json_is(goal, JSON_OBJECT) ? issue : json_get(goal, "issue_id");
    struct str text = STR_EMPTY;
    struct str number = STR_EMPTY;
    note_unknown(c, goal, "goal.", known);
    if (is_given(description) && !json_is(description, JSON_STRING)) {
        return wrong_kind(c, description, json_is(goal, JSON_OBJECT) ? "goal.description" : "goal",
                          "a string");
    }
    if (is_given(issue) && !scalar_text(c->a, issue, &number)) {
        return wrong_kind(c, issue, "goal.issue", "a string");
    }
    text = str_trim(json_str(description, STR_EMPTY));
    number = str_trim(number);
    if (text.len == 0 && number.len == 0) {
        return ERR(c->e, ERR_CONFIG, "%s: the spec has no goal: give goal.description",
                   place(c, is_given(goal) ? goal : c->spec));
    }
    *ret = text.len > 0 ? description : issue;
    int r = name_workspace(c, &text);
    if (r < 0) {
        return r;
    }
    buf_add(prompt, text);
    if (number.len > 0) {
        buf_addf(prompt, "%s%.*s",
                 text.len > 0 ? "\n\nIssue: " : "Resolve this issue: ", STR_ARG(number));
    }
    return 0;
}

/* --- output --- */

static bool is_listed(const struct json *list, struct str path)
{
    for (size_t i = 0; i < json_len(list); i++) {
        if (str_eq(json_str(json_get(json_item(list, i), "path"), STR_EMPTY), path)) {
            return true;
        }
    }
    return false;
}

static int convert_artifact(const struct conversion *c, const struct json *item, struct json *list)
{
    bool map = json_is(item, JSON_OBJECT);
    const struct json *given = map ? json_get(item, "path") : item;
    const struct json *required = map ? json_get(item, "required") : NULL;
    struct str path;
    if (!is_given(given)) {
        return ERR(c->e, ERR_CONFIG, "%s: an artifact needs a 'path'", place(c, item));
    }
    if (is_given(required) && !json_is(required, JSON_BOOL)) {
        return wrong_kind(c, required, "output.artifacts[].required", "true or false");
    }
    struct json *own = json_copy(c->a, given);
    if (json_is(own, JSON_STRING) && str_starts(own->string, STR(HOLON_OUTPUT_PATH "/"))) {
        own->string = str_slice(own->string, strlen(HOLON_OUTPUT_PATH "/"), own->string.len);
    }
    int r = get_path(c, own, "output.artifacts", &path);
    if (r < 0 || is_listed(list, path)) {
        return r;
    }
    struct json *o = json_object(c->a);
    json_setc(c->a, o, "path", string_at(c->a, path, given));
    json_setc(c->a, o, "required", json_boolean(c->a, map ? json_bool(required, false) : true));
    json_push(c->a, list, o);
    return 0;
}

/* What cinch writes itself, whatever the agent does. */
static bool is_record_file(struct str path)
{
    return str_eqc(path, "manifest.json") || str_eqc(path, "diff.patch") ||
           str_starts(path, STR("evidence"));
}

/* An agent that is not an adapter of Holon's knows nothing about its output directory. */
static void announce_artifacts(const struct json *list, struct buf *prompt)
{
    bool first = true;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        struct str path = json_get(item, "path")->string;
        if (is_record_file(path)) {
            continue;
        }
        buf_addf(prompt, "%s- " HOLON_OUTPUT_PATH "/%.*s%s%s\n",
                 first ? "\n\nWrite these files:\n" : "", STR_ARG(path),
                 str_eqc(path, "summary.md") ? ": a short report of what you did, in Markdown" : "",
                 json_bool(json_get(item, "required"), true) ? "" : " (optional)");
        first = false;
    }
}

static int convert_output(const struct conversion *c, struct buf *prompt)
{
    static const char *const known[] = { "artifacts", NULL };
    const struct json *output;
    const struct json *given;
    struct json *list = json_array(c->a);
    int r = get_object(c, json_get(c->spec, "output"), "output", &output);
    r = r < 0 ? r : get_list(c, json_get(output, "artifacts"), "output.artifacts", &given);
    if (r < 0) {
        return r;
    }
    note_unknown(c, output, "output.", known);
    for (size_t i = 0; r == 0 && i < json_len(given); i++) {
        r = convert_artifact(c, json_item(given, i), list);
    }
    if (r == 0 && json_len(list) > 0) {
        json_setc(c->a, section_of(c, "output"), "artifacts", list);
        announce_artifacts(list, prompt);
    }
    return r;
}

/* --- constraints --- */

/* "1h30m", "90s", "1.5h", "500ms": what Go calls a duration, without a sign. */
static bool read_duration(struct str text, double *ret_seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 },
                  { "s", 1 },     { "m", 60 },    { "h", 3600 } };
    double sum = 0;
    text = str_trim(text);
    while (text.len > 0) {
        size_t digits = 0;
        size_t word = 0;
        double n;
        while (digits < text.len &&
               (text.ptr[digits] == '.' || (text.ptr[digits] >= '0' && text.ptr[digits] <= '9'))) {
            digits++;
        }
        while (digits + word < text.len && text.ptr[digits + word] >= 'a' &&
               text.ptr[digits + word] <= 'z') {
            word++;
        }
        struct str unit = str_slice(text, digits, digits + word);
        double factor = unit.len == 0 && digits == text.len && sum == 0 ? 1 : 0;
        for (size_t i = 0; i < ARRAY_LEN(units); i++) {
            factor = str_eqc(unit, units[i].unit) ? units[i].seconds : factor;
        }
        if (digits == 0 || factor == 0 || !str_to_double(str_slice(text, 0, digits), &n)) {
            return false;
        }
        sum += n * factor;
        text = str_slice(text, digits + word, text.len);
    }
    *ret_seconds = sum;
    return true;
}

static int convert_timeout(const struct conversion *c, const struct json *v)
{
    struct str text;
    double seconds = 0;
    if (!is_given(v)) {
        return 0;
    }
    if (!scalar_text(c->a, v, &text) || !read_duration(text, &seconds) || seconds > 1e9) {
        return ERR(c->e, ERR_CONFIG,
                   "%s: 'constraints.timeout' must be a duration such as 10m or 1h30m",
                   place(c, v));
    }
    if (seconds > 0) { /* 0 or nothing: no limit of its own */
        struct json *n = json_number(c->a, seconds);
        n->line = v->line;
        n->column = v->column;
        json_setc(c->a, section_of(c, "limits"), "timeout", n);
    }
    return 0;
}

static int convert_constraints(const struct conversion *c)
{
    static const char *const known[] = { "timeout", "max_steps", NULL };
    const struct json *constraints;
    int r = get_object(c, json_get(c->spec, "constraints"), "constraints", &constraints);
    r = r < 0 ? r : convert_timeout(c, json_get(constraints, "timeout"));
    const struct json *steps = r < 0 ? NULL : json_get(constraints, "max_steps");
    if (r < 0 || !is_given(steps)) {
        note_unknown(c, r < 0 ? NULL : constraints, "constraints.", known);
        return r;
    }
    note_unknown(c, constraints, "constraints.", known);
    if (!json_is(steps, JSON_INT) || steps->integer < 0) {
        return ERR(c->e, ERR_CONFIG, "%s: 'constraints.max_steps' must be a whole number",
                   place(c, steps));
    }
    if (steps->integer > 0) {
        json_setc(c->a, section_of(c, "limits"), "calls", json_copy(c->a, steps));
    }
    return 0;
}

/* --- the whole --- */

bool holon_spec_recognise(const struct task_source *src)
{
    const struct json *kind = json_get(src->tree, "kind");
    return json_is(src->tree, JSON_OBJECT) &&
           (str_eqc(json_str(kind, STR_EMPTY), "Holon") ||
            (json_get(src->tree, "goal") != NULL && json_get(src->tree, "prompt") == NULL));
}

int holon_spec_load(struct arena *a, const struct task_source *src, struct json *notes,
                    struct json **ret, struct err *e)
{
    static const char *const known[] = { "version", "kind",   "metadata",    "context",
                                         "goal",    "output", "constraints", NULL };
    struct conversion c = {
        .a = a, .file = src->path, .spec = src->tree, .task = json_object(a), .notes = notes, .e = e
    };
    CLEANUP(buf) struct buf prompt = BUF_INIT(BUF_TEXT);
    const struct json *from = NULL;
    note_unknown(&c, c.spec, "", known);
    int r = check_header(&c);
    r = r < 0 ? r : convert_metadata(&c);
    r = r < 0 ? r : convert_goal(&c, &prompt, &from);
    r = r < 0 ? r : convert_context(&c, &prompt);
    r = r < 0 ? r : convert_output(&c, &prompt);
    r = r < 0 ? r : convert_constraints(&c);
    if (r < 0) {
        return r;
    }
    struct json *text = section_of(&c, "prompt");
    json_setc(a, text, "text", string_at(a, str_trim(buf_str(&prompt)), from));
    json_setc(a, text, "template", json_boolean(a, false));
    *ret = c.task;
    return 0;
}

bool holon_config_recognise(const struct task_source *src)
{
    return json_is(src->tree, JSON_OBJECT) && json_get(src->tree, "base_image") != NULL &&
           json_get(src->tree, "prompt") == NULL;
}

int holon_config_load(struct arena *a, const struct task_source *src, struct json *notes,
                      struct json **ret, struct err *e)
{
    (void)a, (void)notes, (void)ret;
    return ERR(e, ERR_CONFIG,
               "%s: this is a project configuration of Holon (base_image, agent, log_level), not a "
               "spec: give a file with a 'goal'",
               src->path);
}

/* --- paths in goals --- */

static bool continues_name(char ch)
{
    return ch == '_' || ch == '-' || (ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') ||
           (ch >= 'a' && ch <= 'z');
}

int holon_replace_path(struct arena *a, struct str from, struct str to, struct str *text,
                       struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(PROMPT_MAX);
    bool replaced = false;
    int r = 0;
    for (size_t at = 0; r == 0 && from.len > 0 && at < text->len;) {
        struct str rest = str_slice(*text, at, text->len);
        size_t found = str_find(rest, from);
        size_t end = found + from.len;
        char before = at + found == 0 ? ' ' : text->ptr[at + found - 1];
        bool whole = found < rest.len && !continues_name(before) && before != '/' &&
                     before != '.' && (end == rest.len || !continues_name(rest.ptr[end]));
        r = buf_append(&out, str_slice(rest, 0, whole ? found : end), e);
        r = r < 0 || !whole ? r : buf_append(&out, to, e);
        replaced = replaced || whole;
        at += end;
    }
    if (r == 0 && replaced) {
        *text = arena_str(a, buf_str(&out));
    }
    return r == -ERR_LIMIT
               ? ERR(e, ERR_CONFIG, "the prompt is larger than %d MiB", PROMPT_MAX >> 20)
               : r;
}
