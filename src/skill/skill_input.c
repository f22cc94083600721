/* SPDX-License-Identifier: MIT
 *
 * Binding what the user gives to what a package declares; see skill_input.h. Copying is in
 * skill_stage.c.
 */
#include "skill/skill_input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "data/schema.h"
#include "data/zip.h"
#include "skill/skill.h"
#include "skill/skill_priv.h"

struct binding {
    struct arena *arena;
    const struct skill *skill;
    const struct skill_request *request;
    struct skill_values *values;
    struct err *e;
};

/* --- schemas --- */

static const struct json *properties_of(const struct skill *s, enum skill_schema_kind kind)
{
    const struct json *list = json_get(s->schemas[kind].tree, "properties");
    return json_is(list, JSON_OBJECT) ? list : NULL;
}

bool skill_input_is_file(const struct json *property)
{
    return !str_eqc(json_str(json_get(property, "x-input-source"), STR_EMPTY), "inline");
}

bool skill_input_required(const struct skill *s, struct str key)
{
    const struct json *list = json_get(s->schemas[SKILL_INPUT].tree, "required");
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->array.len; i++) {
        if (str_eq(json_str(list->array.items[i], STR_EMPTY), key)) {
            return true;
        }
    }
    return false;
}

/* Without a schema that lists them, a package takes whatever parameters its prompt uses. */
static bool takes_any(const struct skill *s, enum skill_schema_kind kind)
{
    const struct json *more = json_get(s->schemas[kind].tree, "additionalProperties");
    return kind == SKILL_PARAMETER && json_len(properties_of(s, kind)) == 0 &&
           json_bool(more, true);
}

/* --- names --- */

static int unknown(const struct binding *b, enum skill_schema_kind kind, struct str key)
{
    const struct json *list = properties_of(b->skill, kind);
    const char *word = skill_schema_word(kind);
    key = str_slice(key, 0, 64);
    if (json_len(list) == 0) {
        return ERR(b->e, ERR_CONFIG, "skill '%s' has no %s, so '%.*s' is not accepted",
                   b->skill->name, word, STR_ARG(key));
    }
    size_t distance = 3;
    const char *nearest = NULL;
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < list->object.len; i++) {
        struct str name = list->object.members[i].key;
        size_t d = str_distance(key, name, distance - 1);
        nearest = d < distance ? name.ptr : nearest;
        distance = d < distance ? d : distance;
        buf_addf(&names, "%s'%.*s'", i > 0 ? ", " : "", STR_ARG(str_slice(name, 0, 64)));
    }
    return nearest != NULL
               ? ERR(b->e, ERR_CONFIG, "skill '%s' has no %s '%.*s' (did you mean '%s'?)",
                     b->skill->name, word, STR_ARG(key), nearest)
               : ERR(b->e, ERR_CONFIG, "skill '%s' has no %s '%.*s'; it has %s", b->skill->name,
                     word, STR_ARG(key), names.ptr);
}

static int check_names(const struct binding *b, enum skill_schema_kind kind,
                       const struct json *given)
{
    if (given != NULL && given->type != JSON_OBJECT) {
        return ERR(b->e, ERR_CONFIG, "the %s of skill '%s' must be a map", skill_schema_word(kind),
                   b->skill->name);
    }
    for (size_t i = 0; i < json_len(given); i++) {
        struct str key = given->object.members[i].key;
        if (json_find(properties_of(b->skill, kind), key) == NULL && !takes_any(b->skill, kind)) {
            return unknown(b, kind, key);
        }
    }
    return 0;
}

/* --- files --- */

static int missing(const struct binding *b, struct str key, const char *why)
{
    return ERR(b->e, ERR_INPUT, "MissingInputError: input '%.*s' of skill '%s' %s",
               STR_ARG(str_slice(key, 0, 64)), b->skill->name, why);
}

static int check_file(const struct binding *b, struct str key, const char *path)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return ERR_SYS_AS(b->e, ERR_INPUT,
                          "MissingInputError: input '%.*s' of skill '%s': file '%s'",
                          STR_ARG(str_slice(key, 0, 64)), b->skill->name, path);
    }
    return S_ISREG(st.st_mode)
               ? 0
               : missing(b, key, arena_printf(b->arena, "is not a file: '%s'", path));
}

static const char *staged_name(const struct binding *b, struct str key, const char *path)
{
    return arena_printf(b->arena, "%.*s/%.*s", STR_ARG(key), STR_ARG(path_base(str_of(path))));
}

static int bind_file(struct binding *b, struct str key, const struct json *value)
{
    char path[PATH_MAX];
    char joined[PATH_MAX];
    if (value->type != JSON_STRING || value->string.len == 0 || str_has_nul(value->string)) {
        return ERR(b->e, ERR_CONFIG, "input '%.*s' of skill '%s' must be the path of a file",
                   STR_ARG(str_slice(key, 0, 64)), b->skill->name);
    }
    const char *base = b->request->base == NULL ? "" : b->request->base;
    int r = path_join(base, value->string.ptr, joined, sizeof joined, b->e);
    if (r == 0) {
        r = path_absolute(joined, path, sizeof path, b->e);
    }
    if (r == 0) {
        r = check_file(b, key, path);
    }
    if (r < 0) {
        return skill_refuse(r, b->e);
    }
    struct skill_values *v = b->values;
    struct skill_file *f = &v->files[v->files_len++];
    *f = (struct skill_file) { .key = arena_dup(b->arena, key),
                               .from = arena_dup(b->arena, str_of(path)),
                               .to = staged_name(b, key, path) };
    const char *fault = zip_name_fault(str_of(f->to));
    fault = str_find(key, STR("/")) < key.len ? "has a slash in it" : fault;
    if (fault != NULL) {
        return ERR(b->e, ERR_CONFIG, "input '%.*s' of skill '%s': the name %s",
                   STR_ARG(str_slice(key, 0, 64)), b->skill->name, fault);
    }
    json_set(b->arena, v->input, key, json_cstr(b->arena, f->from));
    return 0;
}

/* --- values --- */

/* The given value, or else the default of the schema. */
static const struct json *value_of(const struct json *given, const struct json_member *property)
{
    const struct json *v = json_find(given, property->key);
    return v != NULL ? v : json_get(property->value, "default");
}

static int bind_inputs(struct binding *b)
{
    const struct json *list = properties_of(b->skill, SKILL_INPUT);
    b->values->files = arena_array(b->arena, json_len(list), sizeof *b->values->files);
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json_member *m = &list->object.members[i];
        bool file = skill_input_is_file(m->value);
        const struct json *v =
            file ? json_find(b->request->input, m->key) : value_of(b->request->input, m);
        int r = 0;
        if (v == NULL && file && skill_input_required(b->skill, m->key)) {
            r = missing(b, m->key, "is a file and was not given");
        } else if (v != NULL && file) {
            r = bind_file(b, m->key, v);
        } else if (v != NULL) {
            json_set(b->arena, b->values->input, m->key, json_copy(b->arena, v));
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static void bind_parameters(struct binding *b)
{
    const struct json *list = properties_of(b->skill, SKILL_PARAMETER);
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json_member *m = &list->object.members[i];
        const struct json *v = value_of(b->request->parameter, m);
        if (v != NULL) {
            json_set(b->arena, b->values->parameter, m->key, json_copy(b->arena, v));
        }
    }
    const struct json *given = b->request->parameter;
    for (size_t i = 0; i < json_len(given) && takes_any(b->skill, SKILL_PARAMETER); i++) {
        const struct json_member *m = &given->object.members[i];
        json_set(b->arena, b->values->parameter, m->key, json_copy(b->arena, m->value));
    }
}

/* --- against the schema --- */

/* The text of a value that is in error, read as JSON, takes its place. A file is an absolute path,
 * which is no JSON. */
static bool convert(const struct binding *b, struct json *values, struct str pointer)
{
    (void)str_split(&pointer, '/');
    struct str key = pointer.ptr == NULL ? STR_EMPTY : str_split(&pointer, '/');
    struct json *v = json_find(values, key);
    struct json *parsed = NULL;
    if (!json_is(v, JSON_STRING) || json_parse(b->arena, v->string, NULL, &parsed, NULL) < 0 ||
        parsed->type == JSON_STRING) {
        return false;
    }
    json_set(b->arena, values, key, parsed);
    return true;
}

static int misfit(const struct binding *b, enum skill_schema_kind kind,
                  const struct schema_result *result)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    int r = schema_result_write(result, &text, b->e);
    if (r < 0) {
        return r;
    }
    struct str lines = str_trim(buf_str(&text));
    return ERR(b->e, ERR_CONFIG, "the %s of skill '%s' does not fit its schema: %.*s",
               skill_schema_word(kind), b->skill->name, STR_ARG(lines));
}

static int check_values(const struct binding *b, enum skill_schema_kind kind, struct json *values)
{
    struct schema *schema = b->skill->schemas[kind].compiled;
    if (schema == NULL) {
        return 0;
    }
    for (int round = 0;; round++) {
        struct schema_result result;
        int r = schema_validate(schema, values, NULL, b->arena, &result, b->e);
        if (r < 0) {
            return skill_refuse(r, b->e);
        }
        bool converted = false;
        for (size_t i = 0; !result.valid && round == 0 && i < result.len; i++) {
            converted = convert(b, values, result.errors[i].instance_path) || converted;
        }
        if (result.valid || !converted) {
            return result.valid ? 0 : misfit(b, kind, &result);
        }
    }
}

int skill_bind(struct arena *a, const struct skill *s, const struct skill_request *q,
               struct skill_values *ret, struct err *e)
{
    struct skill_values values = { .input = json_object(a), .parameter = json_object(a) };
    struct binding b = { .arena = a, .skill = s, .request = q, .values = &values, .e = e };
    int r = check_names(&b, SKILL_INPUT, q->input);
    if (r == 0) {
        r = check_names(&b, SKILL_PARAMETER, q->parameter);
    }
    if (r == 0) {
        r = bind_inputs(&b);
    }
    if (r == 0) {
        bind_parameters(&b);
        r = check_values(&b, SKILL_INPUT, values.input);
    }
    if (r == 0) {
        r = check_values(&b, SKILL_PARAMETER, values.parameter);
    }
    if (r == 0) {
        *ret = values;
    }
    return r;
}
