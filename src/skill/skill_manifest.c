/* SPDX-License-Identifier: MIT
 *
 * assets/runner.json: read and checked into typed fields; see skill_manifest.h.
 */
#include "skill/skill_manifest.h"

#include <stdio.h>

#include "base/json.h"
#include "data/zip.h"
#include "skill/skill_card.h"
#include "skill/skill_priv.h"

/* Nobody needs more; a list that is longer was not written by a person. */
enum { LIST_MAX = 256, WORD_MAX = 512 };

struct reader {
    const char *file;
    struct err *e;
};

static int misfit(const struct reader *r, const struct json *v, const char *key, const char *rule)
{
    char at[JSON_AT_LEN];
    return ERR(r->e, ERR_CONFIG, "%s: '%s' %s", json_at(r->file, v, at), key, rule);
}

/* --- values; `key` is the dotted path for messages, its last part the key --- */

static struct json *value_at(const struct json *object, const char *key)
{
    const char *dot = strrchr(key, '.');
    return json_get(object, dot == NULL ? key : dot + 1);
}

static int read_object(const struct reader *r, const struct json *object, const char *key,
                       const struct json **ret)
{
    const struct json *v = value_at(object, key);
    *ret = v;
    return v == NULL || v->type == JSON_OBJECT ? 0 : misfit(r, v, key, "must be an object");
}

static bool is_word(const struct json *v)
{
    return json_is(v, JSON_STRING) && v->string.len > 0 && v->string.len <= WORD_MAX &&
           !str_has_nul(v->string);
}

static int read_string(const struct reader *r, const struct json *object, const char *key,
                       const char **ret)
{
    const struct json *v = value_at(object, key);
    *ret = NULL;
    if (v == NULL) {
        return 0;
    }
    if (!is_word(v)) {
        return misfit(r, v, key, "must be a string that is not empty");
    }
    *ret = v->string.ptr;
    return 0;
}

/* A list of strings without one twice. */
static int read_words(const struct reader *r, const struct json *object, const char *key,
                      const struct json **ret)
{
    const struct json *v = value_at(object, key);
    *ret = v;
    if (v == NULL) {
        return 0;
    }
    if (v->type != JSON_ARRAY || v->array.len > LIST_MAX) {
        return misfit(r, v, key, "must be a list of at most 256 strings");
    }
    for (size_t i = 0; i < v->array.len; i++) {
        const struct json *item = v->array.items[i];
        if (!is_word(item)) {
            return misfit(r, item, key, "must hold strings that are not empty");
        }
        for (size_t j = 0; j < i; j++) {
            if (str_eq(v->array.items[j]->string, item->string)) {
                return misfit(r, item, key, "names one thing twice");
            }
        }
    }
    return 0;
}

static bool has_word(const struct json *list, struct str word)
{
    for (size_t i = 0; i < json_len(list); i++) {
        if (str_eq(list->array.items[i]->string, word)) {
            return true;
        }
    }
    return false;
}

/* --- parts --- */

static int read_engines(const struct reader *r, struct skill_manifest *m)
{
    const struct json *old = json_get(m->all, "unsupport_engine");
    if (old != NULL) {
        return misfit(r, old, "unsupport_engine", "is now spelt 'unsupported_engines'");
    }
    int rc = read_words(r, m->all, "engines", &m->engines);
    if (rc == 0) {
        rc = read_words(r, m->all, "unsupported_engines", &m->unsupported_engines);
    }
    if (rc < 0) {
        return rc;
    }
    if (m->engines != NULL && m->engines->array.len == 0) {
        return misfit(r, m->engines, "engines", "is empty, so no engine could run the skill");
    }
    for (size_t i = 0; i < json_len(m->unsupported_engines); i++) {
        const struct json *item = m->unsupported_engines->array.items[i];
        if (has_word(m->engines, item->string)) {
            return misfit(r, item, "unsupported_engines", "names an engine that 'engines' allows");
        }
    }
    return 0;
}

static int read_modes(const struct reader *r, struct skill_manifest *m)
{
    const struct json *list = NULL;
    int rc = read_words(r, m->all, "execution_modes", &list);
    if (rc < 0) {
        return rc;
    }
    if (list == NULL) {
        m->modes = SKILL_AUTO; /* packages from before there were modes */
        return 0;
    }
    if (list->array.len == 0) {
        return misfit(r, list, "execution_modes",
                      "must be a list with 'auto', 'interactive' or both");
    }
    for (size_t i = 0; i < list->array.len; i++) {
        const struct json *item = list->array.items[i];
        if (str_eqc(item->string, "auto")) {
            m->modes |= SKILL_AUTO;
        } else if (str_eqc(item->string, "interactive")) {
            m->modes |= SKILL_INTERACTIVE;
        } else {
            return misfit(r, item, "execution_modes", "knows 'auto' and 'interactive' only");
        }
    }
    return 0;
}

static int read_version(const struct reader *r, struct skill_manifest *m)
{
    int rc = read_string(r, m->all, "version", &m->version);
    if (rc < 0 || m->version == NULL) {
        return rc;
    }
    bool digit = false;
    for (const char *p = m->version; *p != '\0'; p++) {
        if ((*p < '0' || *p > '9') && (*p != '.' || !digit)) {
            digit = false;
            break;
        }
        digit = *p != '.';
    }
    return digit ? 0
                 : misfit(r, json_get(m->all, "version"), "version",
                          "must be numbers with dots between them, such as 1.2.0");
}

static int read_identity(const struct reader *r, struct skill_manifest *m)
{
    int rc = read_string(r, m->all, "id", &m->id);
    if (rc < 0) {
        return rc;
    }
    if (m->id == NULL) {
        return misfit(r, m->all, "id", "is missing");
    }
    if (!skill_name_ok(str_of(m->id))) {
        return misfit(r, json_get(m->all, "id"), "id",
                      "must be the name of the skill: 1 to 64 of a-z, 0-9 and single hyphens");
    }
    return read_version(r, m);
}

static int read_attempts(const struct reader *r, struct skill_manifest *m)
{
    const struct json *v = json_get(m->all, "max_attempt");
    m->max_attempt = json_int(v, 0);
    return v == NULL || (v->type == JSON_INT && v->integer >= 1)
               ? 0
               : misfit(r, v, "max_attempt", "must be a whole number from 1");
}

/* A path of the package. That it exists is looked at by whoever needs it. */
static int check_path(const struct reader *r, const struct json *v, const char *key)
{
    const char *fault = zip_name_fault(v->string);
    char rule[120];
    (void)snprintf(rule, sizeof rule, "must be a path inside the package: it %s",
                   fault == NULL ? "" : fault);
    return fault == NULL ? 0 : misfit(r, v, key, rule);
}

static int read_schemas(const struct reader *r, struct skill_manifest *m)
{
    const struct json *schemas = NULL;
    int rc = read_object(r, m->all, "schemas", &schemas);
    for (int kind = 0; rc == 0 && kind < SKILL_SCHEMA_MAX; kind++) {
        char key[32];
        (void)snprintf(key, sizeof key, "schemas.%s",
                       skill_schema_word((enum skill_schema_kind)kind));
        rc = read_string(r, schemas, key, &m->schemas[kind]);
        if (rc == 0 && m->schemas[kind] != NULL) {
            rc = check_path(r, value_at(schemas, key), key);
        }
    }
    return rc;
}

static int read_configs(const struct reader *r, struct skill_manifest *m)
{
    int rc = read_object(r, m->all, "engine_configs", &m->engine_configs);
    for (size_t i = 0; rc == 0 && i < json_len(m->engine_configs); i++) {
        const struct json *v = m->engine_configs->object.members[i].value;
        rc = is_word(v) ? check_path(r, v, "engine_configs")
                        : misfit(r, v, "engine_configs", "must map engines to paths");
    }
    return rc;
}

static int read_entrypoint(const struct reader *r, struct skill_manifest *m)
{
    const struct json *entry = NULL;
    int rc = read_object(r, m->all, "entrypoint", &entry);
    if (rc == 0) {
        rc = read_object(r, entry, "entrypoint.prompts", &m->prompts);
    }
    for (size_t i = 0; rc == 0 && i < json_len(m->prompts); i++) {
        const struct json *v = m->prompts->object.members[i].value;
        rc = v->type == JSON_STRING ? 0
                                    : misfit(r, v, "entrypoint.prompts",
                                             "must map engines to templates, which are strings");
    }
    if (rc == 0) {
        rc = read_string(r, entry, "entrypoint.result_json_filename", &m->result_json_filename);
    }
    return rc;
}

/* Each becomes an argument of another program, which must not take it for an option. */
static int check_dependencies(const struct reader *r, const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *v = list->array.items[i];
        bool control = false;
        for (size_t j = 0; j < v->string.len; j++) {
            control = control || (unsigned char)v->string.ptr[j] < ' ';
        }
        if (control || v->string.ptr[0] == '-') {
            return misfit(r, v, "runtime.dependencies",
                          control ? "has a control character in it" : "must not begin with '-'");
        }
    }
    return 0;
}

static int read_runtime(const struct reader *r, struct skill_manifest *m)
{
    const struct json *runtime = NULL;
    const struct json *mcp = NULL;
    int rc = read_object(r, m->all, "runtime", &runtime);
    if (rc == 0) {
        rc = read_words(r, runtime, "runtime.dependencies", &m->dependencies);
    }
    if (rc == 0) {
        rc = check_dependencies(r, m->dependencies);
    }
    if (rc == 0) {
        rc = read_object(r, runtime, "runtime.default_options", &m->default_options);
    }
    if (rc == 0) {
        rc = read_object(r, m->all, "mcp", &mcp);
    }
    if (rc == 0) {
        rc = read_words(r, mcp, "mcp.required_servers", &m->required_servers);
    }
    return rc;
}

static int read_artifacts(const struct reader *r, struct skill_manifest *m)
{
    m->artifacts = json_get(m->all, "artifacts");
    if (m->artifacts == NULL) {
        return 0;
    }
    if (m->artifacts->type != JSON_ARRAY || m->artifacts->array.len > LIST_MAX) {
        return misfit(r, m->artifacts, "artifacts", "must be a list of at most 256 objects");
    }
    for (size_t i = 0; i < m->artifacts->array.len; i++) {
        const struct json *item = m->artifacts->array.items[i];
        const struct json *required = json_get(item, "required");
        if (!is_word(json_get(item, "role")) || !is_word(json_get(item, "pattern"))) {
            return misfit(r, item, "artifacts", "must hold objects with 'role' and 'pattern'");
        }
        if (required != NULL && required->type != JSON_BOOL) {
            return misfit(r, required, "artifacts.required", "must be true or false");
        }
    }
    return 0;
}

int skill_manifest_parse(struct arena *a, struct str text, const char *file,
                         struct skill_manifest *ret, struct err *e)
{
    static int (*const parts[])(const struct reader *, struct skill_manifest *) = {
        read_identity, read_modes,      read_engines, read_attempts,  read_schemas,
        read_configs,  read_entrypoint, read_runtime, read_artifacts,
    };
    struct reader r = { .file = file, .e = e };
    struct skill_manifest m = { 0 };
    struct json *root = NULL;
    int rc = skill_json_parse(a, text, file, &root, e);
    if (rc < 0) {
        return rc;
    }
    if (root->type != JSON_OBJECT) {
        return ERR(e, ERR_CONFIG, "%s:1:1: must be an object", file);
    }
    m.all = root;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        rc = parts[i](&r, &m);
        if (rc < 0) {
            return rc;
        }
    }
    *ret = m;
    return 0;
}

bool skill_manifest_allows(const struct skill_manifest *m, struct str engine)
{
    return (m->engines == NULL || has_word(m->engines, engine)) &&
           !has_word(m->unsupported_engines, engine);
}

const char *skill_schema_word(enum skill_schema_kind kind)
{
    static const char *const words[] = { "input", "parameter", "output" };
    return (size_t)kind < ARRAY_LEN(words) ? words[kind] : "schema";
}

const char *skill_mode_word(enum skill_mode mode)
{
    return mode == SKILL_INTERACTIVE ? "interactive" : "auto";
}
