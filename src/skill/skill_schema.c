/* SPDX-License-Identifier: MIT
 *
 * The three schemas of a skill package: found, checked for what the runner needs beyond JSON Schema
 * (where an input comes from, which outputs are files), and compiled.
 */
#include "data/schema.h"

#include <stdio.h>

#include "skill/package.h"
#include "skill/skill.h"
#include "skill/skill_priv.h"

/* A schema with more was not written by a person; looking for one costs their number. */
enum { FOLLOW_MAX = 16, PROPERTIES_MAX = 1000, BRANCHES_MAX = 100 };

const struct json *skill_schema_follow(const struct json *root, const struct json *schema)
{
    for (int i = 0; i < FOLLOW_MAX; i++) {
        const struct json *ref = json_get(schema, "$ref");
        if (!json_is(ref, JSON_STRING)) {
            return schema;
        }
        if (!str_starts(ref->string, STR("#"))) {
            return NULL;
        }
        schema = json_pointer(root, str_slice(ref->string, 1, ref->string.len));
    }
    return NULL;
}

static int misfit(const char *file, const struct json *v, struct str property, const char *rule,
                  struct err *e)
{
    char at[JSON_AT_LEN];
    return ERR(e, ERR_CONFIG, "%s: property '%.*s' %s", json_at(file, v, at),
               STR_ARG(str_slice(property, 0, 64)), rule);
}

static int check_input(const char *file, const struct json_member *m, struct err *e)
{
    const struct json *source = json_get(m->value, "x-input-source");
    if (source == NULL || (source->type == JSON_STRING && (str_eqc(source->string, "file") ||
                                                           str_eqc(source->string, "inline")))) {
        return 0;
    }
    return misfit(file, source, m->key, "has an 'x-input-source' other than 'file' and 'inline'",
                  e);
}

static int check_output(const char *file, const struct json_member *m, struct err *e)
{
    const struct json *type = json_get(m->value, "x-type");
    const struct json *role = json_get(m->value, "x-role");
    if (type == NULL) {
        return 0;
    }
    struct str word = json_str(type, STR_EMPTY);
    bool is_manifest = str_eqc(word, "artifact-manifest");
    bool needs_role = is_manifest || str_eqc(word, "artifact");
    if (!needs_role && !str_eqc(word, "file")) {
        return misfit(file, type, m->key,
                      "has an 'x-type' other than 'artifact', 'artifact-manifest' and 'file'", e);
    }
    if ((role == NULL && needs_role) || (role != NULL && json_len(role) == 0) ||
        (role != NULL && role->type != JSON_STRING)) {
        return misfit(file, m->value, m->key, "needs an 'x-role' that is not empty", e);
    }
    struct str kind = json_str(json_get(m->value, "type"), STR_EMPTY);
    return !is_manifest || kind.len == 0 || str_eqc(kind, "string")
               ? 0
               : misfit(file, m->value, m->key, "is an artifact-manifest, so of type string", e);
}

static int check_properties(const char *file, const struct json *schema,
                            enum skill_schema_kind kind, struct err *e)
{
    const struct json *list = json_get(schema, "properties");
    if (json_len(list) > PROPERTIES_MAX) {
        char at[JSON_AT_LEN];
        return ERR(e, ERR_CONFIG, "%s: more than %d properties", json_at(file, list, at),
                   PROPERTIES_MAX);
    }
    for (size_t i = 0; json_is(list, JSON_OBJECT) && i < list->object.len; i++) {
        const struct json_member *m = &list->object.members[i];
        int r = 0;
        if (m->value->type != JSON_OBJECT) {
            r = kind == SKILL_OUTPUT ? 0 : misfit(file, m->value, m->key, "must be an object", e);
        } else if (kind == SKILL_INPUT) {
            r = check_input(file, m, e);
        } else if (kind == SKILL_OUTPUT) {
            r = check_output(file, m, e);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* An output may be one of several objects. */
static int check_branches(const char *file, const struct json *root, struct err *e)
{
    static const char *const words[] = { "oneOf", "anyOf" };
    for (size_t w = 0; w < ARRAY_LEN(words); w++) {
        const struct json *list = json_get(root, words[w]);
        if (json_len(list) > BRANCHES_MAX) {
            char at[JSON_AT_LEN];
            return ERR(e, ERR_CONFIG, "%s: '%s' has more than %d branches", json_at(file, list, at),
                       words[w], BRANCHES_MAX);
        }
        for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->array.len; i++) {
            const struct json *branch = skill_schema_follow(root, list->array.items[i]);
            int r = check_properties(file, branch, SKILL_OUTPUT, e);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

static int check_schema(const char *file, const struct json *root, enum skill_schema_kind kind,
                        struct err *e)
{
    bool branches = kind == SKILL_OUTPUT &&
                    (json_get(root, "oneOf") != NULL || json_get(root, "anyOf") != NULL);
    const struct json *type = json_get(root, "type");
    bool object = type == NULL ? branches : str_eqc(json_str(type, STR_EMPTY), "object");
    if (!json_is(root, JSON_OBJECT) || !object) {
        char at[JSON_AT_LEN];
        return ERR(e, ERR_CONFIG, "%s: the %s schema must be of type 'object'",
                   json_at(file, type == NULL ? root : type, at), skill_schema_word(kind));
    }
    int r = check_properties(file, root, kind, e);
    return r < 0 || !branches ? r : check_branches(file, root, e);
}

/* The declared path, else the usual one. A declaration that leads nowhere is a warning, as long as
 * the schema can be done without. */
static const struct package_file *locate(struct skill *s, enum skill_schema_kind kind)
{
    const char *declared = s->manifest->schemas[kind];
    char usual[48];
    (void)snprintf(usual, sizeof usual, "assets/%s.schema.json", skill_schema_word(kind));
    const struct package_file *f =
        declared == NULL ? NULL : package_find(s->package, str_of(declared));
    if (f != NULL && !f->dir) {
        return f;
    }
    f = package_find(s->package, str_of(usual));
    f = f != NULL && f->dir ? NULL : f;
    if (declared != NULL) {
        skill_warn(s,
                   arena_printf(s->arena, "%s: the %s schema '%s' is missing%s%s",
                                skill_file_label(s, "assets/runner.json"), skill_schema_word(kind),
                                declared, f == NULL ? "" : "; taken: ", f == NULL ? "" : usual));
    }
    return f;
}

static int load(struct skill *s, enum skill_schema_kind kind, struct err *e)
{
    const struct package_file *f = locate(s, kind);
    if (f == NULL && kind == SKILL_OUTPUT) {
        return ERR(e, ERR_CONFIG, "%s is missing: a skill package must declare its output",
                   skill_file_label(s, "assets/output.schema.json"));
    }
    if (f == NULL) {
        return 0;
    }
    struct skill_schema *schema = &s->schemas[kind];
    struct json *tree = NULL;
    const char *file = skill_file_label(s, f->name.ptr);
    int r = skill_json_parse(s->arena, f->content, file, &tree, e);
    if (r == 0) {
        r = check_schema(file, tree, kind, e);
    }
    if (r < 0) {
        return r;
    }
    r = schema_compile(tree, NULL, &schema->compiled, e);
    if (r < 0) {
        (void)err_wrap(e, "%s", file);
        return skill_refuse(r, e);
    }
    schema->file = file;
    schema->tree = tree;
    return 0;
}

int skill_schemas_load(struct skill *s, struct err *e)
{
    for (int kind = 0; kind < SKILL_SCHEMA_MAX; kind++) {
        int r = load(s, (enum skill_schema_kind)kind, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}
