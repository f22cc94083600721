/* SPDX-License-Identifier: MIT
 *
 * What the table of settings cannot say: names that must be unique, members that belong
 * together. Each layer is checked by itself, so that a message can name its file and line. Lists
 * are not merged between layers, which is why their items can be held to be complete.
 */
#include "base/path.h"
#include "config/settings_priv.h"
#include "data/schema.h"
#include "guard/guard.h"
#include "skill/skill_card.h"
#include "tools/tool_kind.h"

struct checking {
    const char *file;
    struct err *e;
};

static int wrong(const struct checking *c, const struct json *at, const char *what,
                 const char *must)
{
    char place[JSON_AT_LEN];
    return ERR(c->e, ERR_CONFIG, "%s: %s %s", json_at(c->file, at, place), what, must);
}

/* --- lists --- */

/* No two items with the same value of `key`, where they have one. */
static int check_unique(const struct checking *c, const struct json *list, const char *what,
                        const char *key)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *v = json_get(json_item(list, i), key);
        for (size_t j = 0; json_is(v, JSON_STRING) && j < i; j++) {
            char place[JSON_AT_LEN];
            const struct json *other = json_get(json_item(list, j), key);
            if (json_is(other, JSON_STRING) && str_eq(v->string, other->string)) {
                return ERR(c->e, ERR_CONFIG,
                           "%s: %s '%.*s' is there twice; the first is in line %u",
                           json_at(c->file, v, place), what, STR_ARG(str_slice(v->string, 0, 80)),
                           other->line);
            }
        }
    }
    return 0;
}

/* --- tools --- */

static bool is_description(struct str s)
{
    s = str_trim(s);
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] >= 0x80) {
            return false;
        }
    }
    return s.len >= 1 && s.len <= TOOL_DESCRIPTION_MAX;
}

/* A schema must be one before anything relies on it. */
static int check_schema(const struct checking *c, const struct json *schema, const char *what)
{
    CLEANUP(schema) struct schema *compiled = NULL;
    char place[JSON_AT_LEN];
    if (schema == NULL || json_is(schema, JSON_NULL) || json_is(schema, JSON_STRING)) {
        return 0; /* the name of a file is looked at when the file is */
    }
    int r = schema_compile(schema, NULL, &compiled, c->e);
    if (r == -ERR_LIMIT && c->e != NULL) {
        c->e->code = ERR_CONFIG;
    }
    return r < 0 ? err_wrap(c->e, "%s: %s", json_at(c->file, schema, place), what) : 0;
}

static int check_tool_examples(const struct checking *c, const struct json *tool)
{
    const struct json *list = json_get(tool, "examples");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *text = json_get(json_item(list, i), "description");
        if (!is_description(json_str(text, STR_EMPTY))) {
            return wrong(c, text == NULL ? json_item(list, i) : text,
                         "the description of an example", "must be 1 to 200 ASCII characters");
        }
    }
    return 0;
}

static int check_tool(const struct checking *c, const struct json *tool)
{
    const struct json *name = json_get(tool, "name");
    const struct json *text = json_get(tool, "description");
    const struct tool_kind *kind;
    struct err why;
    if (!tool_name_ok(json_str(name, STR_EMPTY))) {
        return wrong(c, name, "the name of a tool", "must be 1 to 64 of a-z, 0-9, _ and -");
    }
    if (guard_is_builtin(name->string)) {
        return wrong(c, name, "a tool of this name", "is built in: choose another");
    }
    if (tool_kind_of(tool, &kind, &why) < 0) {
        char place[JSON_AT_LEN];
        return ERR(c->e, ERR_CONFIG, "%s: %s", json_at(c->file, tool, place), why.msg);
    }
    if (kind->source == TOOL_SINGLE && !is_description(json_str(text, STR_EMPTY))) {
        return wrong(c, text == NULL ? tool : text, "the description of a tool",
                     "must be 1 to 200 ASCII characters");
    }
    int r = check_schema(c, json_get(tool, "input_schema"), "input_schema");
    if (r == 0) {
        r = check_schema(c, json_get(tool, "output_schema"), "output_schema");
    }
    return r < 0 ? r : check_tool_examples(c, tool);
}

static int check_tools(const struct checking *c, const struct json *tools)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(tools); i++) {
        r = check_tool(c, json_item(tools, i));
    }
    return r < 0 ? r : check_unique(c, tools, "tool", "name");
}

static int check_resources(const struct checking *c, const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        if (json_len(json_get(item, "command")) == 0 && json_get(item, "mcp") == NULL) {
            return wrong(c, item, "a resource", "needs 'command', 'mcp' or both");
        }
    }
    return check_unique(c, list, "resource", "name");
}

/* --- guardrails --- */

static const char *policy_member(const char *type)
{
    static const char *const members[][2] = {
        { "sequential_dependency", "depends" },
        { "allow", "tools" },
        { "deny", "tools" },
        { "arguments", "rules" },
        { "program", "command" },
        { "rate", "calls" },
    };
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (strcmp(members[i][0], type) == 0) {
            return members[i][1];
        }
    }
    return NULL;
}

static int check_policies(const struct checking *c, const struct json *list)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        const char *type = json_cstring(json_get(item, "type"), "");
        const char *member = policy_member(type);
        char place[JSON_AT_LEN];
        if (member != NULL && json_get(item, member) == NULL) {
            r = ERR(c->e, ERR_CONFIG, "%s: a policy of type '%s' needs '%s'",
                    json_at(c->file, item, place), type, member);
        }
    }
    return r < 0 ? r : check_unique(c, list, "policy", "name");
}

static int check_feedback(const struct checking *c, const struct json *list)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        const char *type = json_cstring(json_get(item, "type"), "");
        if (json_get(item, "every_n_calls") == NULL && json_get(item, "every_n_seconds") == NULL &&
            json_get(item, "on_file_created") == NULL) {
            r = wrong(c, item, "feedback needs a trigger:",
                      "every_n_calls, every_n_seconds or on_file_created");
        } else if (strcmp(type, "static") == 0 && json_len(json_get(item, "text")) == 0) {
            r = wrong(c, item, "static feedback", "needs a 'text'");
        } else if (strcmp(type, "program") == 0 && json_len(json_get(item, "command")) == 0) {
            r = wrong(c, item, "feedback by a program", "needs a 'command'");
        }
    }
    return r < 0 ? r : check_unique(c, list, "feedback", "name");
}

/* --- the session --- */

/* What happened is written by cinch alone: no task may give it another policy or reducer. */
static bool is_history(struct str slice)
{
    static const char *const names[] = { "PromptRendered", "RenderedTools", "ToolInvoked",
                                         "PromptExecuted", "Feedback" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eqc(slice, names[i])) {
            return true;
        }
    }
    return str_starts(slice, STR("policy:"));
}

static int check_slices(const struct checking *c, const struct json *list, const char *key)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *name = json_get(json_item(list, i), key);
        struct str text = json_str(name, STR_EMPTY);
        if (is_history(text)) {
            return wrong(c, name, "a slice of this name", "is built in: choose another");
        }
        if (str_has_nul(text)) {
            return wrong(c, name, "the name of a slice", "must not hold a NUL");
        }
    }
    return 0;
}

static int check_session(const struct checking *c, const struct json *session)
{
    const struct json *slices = json_get(session, "slices");
    const struct json *rules = json_get(session, "reducers");
    int r = check_unique(c, slices, "slice", "name");
    r = r < 0 ? r : check_slices(c, slices, "name");
    r = r < 0 ? r : check_slices(c, rules, "slice");
    for (size_t i = 0; r == 0 && i < json_len(rules); i++) {
        const struct json *item = json_item(rules, i);
        struct str key = json_str(json_get(item, "key"), STR_EMPTY);
        bool keyed = str_ends(json_str(json_get(item, "reducer"), STR_EMPTY), STR("_by"));
        if (keyed && (key.len == 0 || key.ptr[0] != '/')) {
            r = wrong(c, item, "a reducer that goes by a key",
                      "needs 'key', a JSON pointer such as /id");
        }
    }
    return r;
}

/* --- the rest --- */

static int check_names(const struct checking *c, const struct json *tree)
{
    const struct json *names = json_get(json_get(tree, "secrets"), "names");
    for (size_t i = 0; i < json_len(names); i++) {
        struct str name = json_str(json_item(names, i), STR_EMPTY);
        if (name.len == 0 || memchr(name.ptr, '=', name.len) != NULL) {
            return wrong(c, json_item(names, i), "a secret is given by the name of a variable,",
                         "never by its value");
        }
    }
    return 0;
}

/* What an agent leaves behind is looked for below two directories, and nowhere else. */
static int check_output(const struct checking *c, const struct json *output)
{
    const struct json *artifacts = json_get(output, "artifacts");
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(artifacts); i++) {
        const struct json *path = json_get(json_item(artifacts, i), "path");
        if (!path_is_inner(json_str(path, STR_EMPTY))) {
            r = wrong(c, path, "the path of an artifact", "must be relative, without '..'");
        }
    }
    r = r < 0 ? r : check_unique(c, artifacts, "artifact", "path");
    return r < 0 ? r : check_schema(c, json_get(output, "schema"), "output.schema");
}

static int check_skills(const struct checking *c, const struct json *list)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(list); i++) {
        const struct json *name = json_get(json_item(list, i), "name");
        if (name != NULL && !skill_name_ok(json_str(name, STR_EMPTY))) {
            r = wrong(c, name, "the name of a skill",
                      "must be 1 to 64 of a-z, 0-9 and single hyphens between them");
        }
    }
    return r < 0 ? r : check_unique(c, list, "skill", "name");
}

/* The ids are written with every event, so they must be few and short. */
static int check_run_context(const struct checking *c, const struct json *map)
{
    enum { IDS_MAX = 32, NAME_MAX_LEN = 64, VALUE_MAX = 256 };
    if (json_len(map) > IDS_MAX) {
        return wrong(c, map, "run_context", "has at most 32 members");
    }
    for (size_t i = 0; i < json_len(map); i++) {
        const struct json_member *m = &map->object.members[i];
        if (str_eqc(m->key, "run_id")) {
            return wrong(c, m->value, "run_context.run_id", "is set by cinch: use request_id");
        }
        int64_t attempt = json_int(m->value, 0);
        (void)str_to_i64(json_str(m->value, STR_EMPTY), &attempt);
        if (str_eqc(m->key, "attempt") && attempt < 1) {
            return wrong(c, m->value, "run_context.attempt", "must be a whole number from 1");
        }
        if (m->key.len == 0 || m->key.len > NAME_MAX_LEN ||
            json_str(m->value, STR_EMPTY).len > VALUE_MAX) {
            return wrong(c, m->value, "a member of run_context",
                         "has a name of 1 to 64 bytes and a value of at most 256");
        }
    }
    return 0;
}

/* --- a layer --- */

/* A file of a later version may mean something else by the same keys. */
static int check_version(const struct json *tree, const char *file, struct err *e)
{
    const struct json *version = json_get(tree, "version");
    char at[JSON_AT_LEN];
    return json_int(version, 1) == 1
               ? 0
               : ERR(e, ERR_CONFIG, "%s: version %lld is not known; this cinch reads version 1",
                     json_at(file, version, at), (long long)json_int(version, 1));
}

/* The shape has been checked. */
static int check_content(const struct json *tree, const char *file, struct err *e)
{
    struct err local;
    struct checking c = { file, e == NULL ? &local : e };
    int r = check_tools(&c, json_get(tree, "tools"));
    r = r < 0 ? r : check_resources(&c, json_get(tree, "resources"));
    r = r < 0 ? r : check_policies(&c, json_get(tree, "policies"));
    r = r < 0 ? r : check_feedback(&c, json_get(tree, "feedback"));
    r = r < 0 ? r
              : check_schema(&c, json_get(json_get(tree, "completion"), "schema"),
                             "completion.schema");
    r = r < 0 ? r : check_session(&c, json_get(tree, "session"));
    r = r < 0 ? r : check_names(&c, tree);
    r = r < 0 ? r : check_output(&c, json_get(tree, "output"));
    r = r < 0 ? r : check_run_context(&c, json_get(tree, "run_context"));
    return r < 0 ? r : check_skills(&c, json_get(tree, "skills"));
}

int settings_check_layer(struct arena *a, struct json *tree, const struct shape *shape,
                         const char *file, struct err *e)
{
    settings_widen(a, tree);
    int r = shape_check(tree, shape, file, e);
    r = r < 0 ? r : check_version(tree, file, e);
    return r < 0 ? r : check_content(tree, file, e);
}

int settings_check_task(struct arena *a, const struct json *task, const char *file, struct err *e)
{
    const struct shape *shape = settings_shape(a, settings_table, 0);
    return settings_check_layer(a, json_copy(a, task), shape, file, e);
}
