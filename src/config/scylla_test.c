/* SPDX-License-Identifier: MIT
 *
 * Reading test directories of ProjectScylla; see scylla_test.h.
 */
#include "config/scylla_test.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/file.h"
#include "config/scylla_config.h"
#include "config/task_format.h"
#include "data/yaml.h"
#include "data/zip.h"

/* Tests are at most so deep below the directory that holds tiers and models. */
enum { LEVELS = 4, COMMIT_LEN = 40 };

static const struct json_limits limits = { .max_bytes = 1 << 20,
                                           .max_depth = 32,
                                           .max_values = 20000 };

/* The table of the adapter contract, for tests without a tiers.yaml. */
static const char built_in[] =
    "tiers:\n"
    "  T0: {name: Vanilla}\n"
    "  T1: {name: Prompted, tools_enabled: false, delegation_enabled: false}\n"
    "  T2: {name: Skills, tools_enabled: false, delegation_enabled: false}\n"
    "  T3: {name: Tooling, tools_enabled: true, delegation_enabled: true}\n"
    "  T4: {name: Delegation, tools_enabled: true, delegation_enabled: true}\n"
    "  T5: {name: Hierarchy, tools_enabled: true, delegation_enabled: true}\n"
    "  T6: {name: Hybrid, tools_enabled: true, delegation_enabled: true}\n";

static const char *below(struct arena *a, const char *dir, const char *name)
{
    size_t len = strlen(dir);
    return arena_printf(a, "%s%s%s", dir, len > 0 && dir[len - 1] == '/' ? "" : "/", name);
}

const char *scylla_test_file(struct arena *a, const char *dir)
{
    return below(a, dir, "test.yaml");
}

bool scylla_test_recognise(const struct task_source *src)
{
    CLEANUP(fd) int dir = src->is_dir ? open(src->path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    bool is_file = !src->is_dir && str_eqc(path_base(str_of(src->path)), "test.yaml") &&
                   json_get(src->tree, "id") != NULL &&
                   json_is(json_get(src->tree, "task"), JSON_OBJECT);
    return is_file || (dir >= 0 && file_exists(dir, "test.yaml"));
}

static int load(struct arena *a, const char *file, struct json **ret, struct err *e)
{
    int r = yaml_load(a, file, &limits, ret, e);
    if (r == -ERR_LIMIT) {
        e->code = ERR_CONFIG;
        r = -ERR_CONFIG;
    }
    if (r == 0 && !json_is(*ret, JSON_OBJECT)) {
        r = ERR(e, ERR_CONFIG, "%s: expected a map", file);
    }
    return r;
}

/* --- test.yaml --- */

struct reading {
    struct arena *a;
    const char *file;
    const struct json *test;
    struct err *e;
};

static int wrong(const struct reading *r, const struct json *v, const char *key, const char *rule)
{
    char at[JSON_AT_LEN];
    return ERR(r->e, ERR_CONFIG, "%s: '%s' %s", json_at(r->file, v == NULL ? r->test : v, at), key,
               rule);
}

/* A string that must be there. */
static int need_text(const struct reading *r, const struct json *v, const char *key)
{
    return json_is(v, JSON_STRING) && v->string.len > 0 && !str_has_nul(v->string)
               ? 0
               : wrong(r, v, key, "must be a string that is not empty");
}

static bool is_commit(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (strchr("0123456789abcdef", s.ptr[i]) == NULL) {
            return false;
        }
    }
    return s.len == COMMIT_LEN;
}

static int check_source(const struct reading *r, const struct json *source)
{
    if (source == NULL) {
        return 0;
    }
    const struct json *hash = json_get(source, "hash");
    int rc = need_text(r, json_get(source, "repo"), "source.repo");
    rc = rc < 0 ? rc : need_text(r, hash, "source.hash");
    return rc < 0 || is_commit(hash->string)
               ? rc
               : wrong(r, hash, "source.hash", "must be a commit of 40 hexadecimal digits");
}

static int check_prompt(const struct reading *r, const struct json *file)
{
    int rc = need_text(r, file, "task.prompt_file");
    struct str name = rc < 0 ? STR_EMPTY : file->string;
    while (str_starts(name, STR("./"))) {
        name = str_slice(name, 2, name.len);
    }
    return rc < 0 || zip_name_fault(name) == NULL
               ? rc
               : wrong(r, file, "task.prompt_file", "must be a path below the test directory");
}

static struct json *section(struct arena *a, struct json *tree, const char *name)
{
    struct json *s = json_object(a);
    json_setc(a, tree, name, s);
    return s;
}

/* What cinch does not use itself stays with the run. */
static void put_metadata(struct arena *a, const struct json *test, struct json *tree)
{
    static const char *const keys[] = { "language", "source", "validation",
                                        "tiers",    "models", "tags" };
    struct json *kept = section(a, section(a, tree, "metadata"), "scylla");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct json *v = json_get(test, keys[i]);
        if (v != NULL) {
            json_setc(a, kept, keys[i], v);
        }
    }
}

static int convert(const struct reading *r, struct json *tree)
{
    const struct json *test = r->test;
    const struct json *task = json_get(test, "task");
    const struct json *source = json_get(test, "source");
    struct json *timeout = json_get(task, "timeout_seconds");
    int rc = need_text(r, json_get(test, "id"), "id");
    rc = rc < 0 ? rc : check_prompt(r, json_get(task, "prompt_file"));
    rc = rc < 0 ? rc : check_source(r, source);
    if (rc < 0) {
        return rc;
    }
    struct json *eval = section(r->a, tree, "eval");
    json_setc(r->a, tree, "name", json_get(test, "id"));
    json_setc(r->a, eval, "test_id", json_get(test, "id"));
    if (json_is(json_get(test, "description"), JSON_STRING)) {
        json_setc(r->a, eval, "task_description", json_get(test, "description"));
    }
    json_setc(r->a, section(r->a, tree, "prompt"), "file", json_get(task, "prompt_file"));
    if (timeout != NULL && timeout->type != JSON_NULL) {
        json_setc(r->a, section(r->a, tree, "limits"), "timeout", timeout);
    }
    if (source != NULL) {
        json_setc(r->a, section(r->a, tree, "workspace"), "ref", json_get(source, "hash"));
    }
    put_metadata(r->a, test, tree);
    return 0;
}

int scylla_test_layer(struct arena *a, const struct json *test, const char *file, struct json **ret,
                      struct err *e)
{
    struct reading reading = { a, file, test, e };
    *ret = json_object(a);
    return json_is(test, JSON_OBJECT) ? convert(&reading, *ret)
                                      : ERR(e, ERR_CONFIG, "%s: expected a map", file);
}

int scylla_test_load(struct arena *a, const struct task_source *src, struct json *notes,
                     struct json **ret, struct err *e)
{
    struct json *tree = NULL;
    struct json *test = NULL;
    struct str base = src->is_dir ? STR_EMPTY : path_base(str_of(src->path));
    const char *dir = arena_dup(a, str_n(src->path, strlen(src->path) - base.len));
    dir = dir[0] == '\0' ? "." : dir;
    const char *file = scylla_test_file(a, dir);
    int r = load(a, file, &test, e);
    r = r < 0 ? r : scylla_test_layer(a, test, file, &tree, e);
    *ret = tree;
    file = below(a, dir, "config.yaml");
    if (r < 0 || !file_exists(AT_FDCWD, file)) {
        return r;
    }
    struct json *dict = NULL;
    struct scylla_config config;
    r = load(a, file, &dict, e);
    r = r < 0 ? r : scylla_config_read(a, dict, file, &config, e);
    if (r == 0) {
        *ret = json_merge(a, tree, config.tree);
    }
    if (r == 0 && config.warning != NULL) {
        json_push(a, notes, json_cstr(a, config.warning));
    }
    return r;
}

/* --- around it --- */

/* The n-th directory above; false: there is none. */
static bool cut_levels(char *dir, int n)
{
    for (; n > 0; n--) {
        char *slash = strrchr(dir, '/');
        if (slash == NULL || slash == dir) {
            return false;
        }
        *slash = '\0';
    }
    return true;
}

/* The nearest of the files above the test; or NULL. */
static const char *find_above(struct arena *a, const char *dir, const char *const *names,
                              size_t len)
{
    char path[PATH_MAX];
    for (int level = 1; level <= LEVELS; level++) {
        if (path_absolute(dir, path, sizeof path, NULL) < 0 || !cut_levels(path, level)) {
            return NULL;
        }
        for (size_t i = 0; i < len; i++) {
            const char *file = below(a, path, names[i]);
            if (file_exists(AT_FDCWD, file)) {
                return file;
            }
        }
    }
    return NULL;
}

const char *scylla_test_subtests(struct arena *a, const char *dir)
{
    static const char *const names[] = { "subtests", "shared/subtests" };
    const char *own = below(a, dir, "subtests");
    return file_is_dir(AT_FDCWD, own) ? own : find_above(a, dir, names, ARRAY_LEN(names));
}

const char *scylla_test_mirror(struct arena *a, const char *mirror, const char *repo)
{
    struct str name = path_base(str_of(repo));
    name = str_ends(name, STR(".git")) ? str_slice(name, 0, name.len - 4) : name;
    if (name.len == 0 || zip_name_fault(name) != NULL) {
        return NULL;
    }
    const char *dir = arena_printf(a, "%s/%.*s", mirror, STR_ARG(name));
    return file_is_dir(AT_FDCWD, dir) ? dir : NULL;
}

const char *scylla_test_tier_model(const struct json *models, const char *tier)
{
    const struct json *v =
        json_is(models, JSON_OBJECT) && tier != NULL ? json_get(models, tier) : models;
    if (json_is(v, JSON_ARRAY) && json_len(v) == 1) {
        v = json_item(v, 0);
    }
    return json_cstring(v, NULL);
}

int scylla_test_tier(struct arena *a, const char *dir, const char *tier, struct json **ret,
                     const char **ret_source, struct err *e)
{
    static const char *const names[] = { "tiers.yaml", "shared/tiers.yaml" };
    const char *file = find_above(a, dir, names, ARRAY_LEN(names));
    struct json *table = NULL;
    *ret_source = file == NULL ? "built in" : file;
    int r = file == NULL ? yaml_parse(a, STR(built_in), "built in", &limits, &table, e)
                         : load(a, file, &table, e);
    const struct json *found = r < 0 ? NULL : json_get(json_get(table, "tiers"), tier);
    *ret = json_is(found, JSON_OBJECT) ? scylla_tier_layer(a, found) : NULL;
    return r;
}

const char *scylla_test_model_file(struct arena *a, const char *dir, const char *model)
{
    if (zip_name_fault(str_of(model)) != NULL) {
        return NULL;
    }
    const char *const names[] = {
        arena_printf(a, "models/%s.yaml", model),
        arena_printf(a, "config/models/%s.yaml", model),
    };
    return find_above(a, dir, names, ARRAY_LEN(names));
}
