/* SPDX-License-Identifier: MIT
 *
 * Opening a skill: where it comes from, what it is called, and that its parts agree; see skill.h.
 */
#include "skill/skill.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "data/schema.h"
#include "data/toml.h"
#include "data/yaml.h"
#include "data/zip.h"
#include "skill/package.h"
#include "skill/skill_engine.h"
#include "skill/skill_priv.h"

static const char card_file[] = "SKILL.md";
static const char manifest_file[] = "assets/runner.json";

const char *skill_file_label(const struct skill *s, const char *file)
{
    struct str path = str_of(s->path);
    while (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    return s->single ? s->path : arena_printf(s->arena, "%.*s/%s", STR_ARG(path), file);
}

void skill_warn(struct skill *s, const char *text)
{
    json_push(s->arena, s->warnings, json_cstr(s->arena, text));
}

/* --- where it comes from --- */

/* The last part of the path, with "." and ".." folded away. */
static int base_of(struct skill *s, struct str *ret, struct err *e)
{
    char full[PATH_MAX];
    int r = path_absolute(s->path, full, sizeof full, e);
    if (r == 0) {
        *ret = arena_str(s->arena, path_base(str_of(full)));
    }
    return r;
}

static int read_dir(struct skill *s, struct str *ret_name, struct err *e)
{
    CLEANUP(fd) int fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "skill '%s'", s->path);
    }
    struct package_limits limits = { .max_total = SKILL_PACKAGE_MAX };
    struct package *p = NULL;
    int r = package_read_dir(s->arena, fd, s->path, &limits, &p, e);
    s->package = p;
    return r < 0 ? r : base_of(s, ret_name, e);
}

static int read_zip(struct skill *s, struct str bytes, struct str *ret_name, struct err *e)
{
    struct package_limits limits = { .max_total = SKILL_PACKAGE_MAX };
    struct package *p = NULL;
    int r = package_read_zip(s->arena, bytes, s->path, &limits, &p, e);
    if (r == 0) {
        s->package = p;
        *ret_name = str_of(p->top);
    }
    return r;
}

/* The name of a single file is its stem; a file called SKILL.md has no say. */
static int read_single(struct skill *s, struct str text, struct str *ret_name, struct err *e)
{
    struct str base;
    int r = base_of(s, &base, e);
    if (r < 0) {
        return r;
    }
    if (!str_ends(base, STR(".md"))) {
        return ERR(e, ERR_CONFIG, "skill '%s': neither a directory, a .md file nor a zip archive",
                   s->path);
    }
    if (text.len > SKILL_TEXT_MAX) {
        return ERR(e, ERR_CONFIG, "%s: larger than %d bytes", s->path, SKILL_TEXT_MAX);
    }
    s->single = true;
    s->package = package_of_file(s->arena, str_of(card_file), text);
    *ret_name = str_eqc(base, card_file) ? STR_EMPTY : str_slice(base, 0, base.len - 3);
    return 0;
}

static int read_source(struct skill *s, struct str *ret_name, struct err *e)
{
    struct stat st;
    if (stat(s->path, &st) < 0) {
        return ERR_SYS_AS(e, errno == ENOENT || errno == ENOTDIR ? ERR_INPUT : ERR_SYS,
                          "skill '%s'", s->path);
    }
    if (S_ISDIR(st.st_mode)) {
        return read_dir(s, ret_name, e);
    }
    if (!S_ISREG(st.st_mode)) {
        return ERR(e, ERR_CONFIG, "skill '%s': neither a file nor a directory", s->path);
    }
    CLEANUP(buf) struct buf bytes = BUF_INIT(SKILL_ARCHIVE_MAX + 1);
    int r = skill_refuse(file_read(AT_FDCWD, s->path, SKILL_ARCHIVE_MAX, &bytes, e), e);
    if (r < 0) {
        return r;
    }
    return zip_archive_is(buf_str(&bytes)) ? read_zip(s, buf_str(&bytes), ret_name, e)
                                           : read_single(s, buf_str(&bytes), ret_name, e);
}

/* --- what it is --- */

static int read_card(struct skill *s, struct err *e)
{
    const char *label = skill_file_label(s, card_file);
    const struct package_file *f = package_find(s->package, str_of(card_file));
    if (f == NULL || f->dir) {
        return ERR(e, ERR_CONFIG, "%s is missing: '%s' is not a skill", label, s->path);
    }
    return skill_card_parse(s->arena, f->content, label, &s->card, e);
}

static int read_manifest(struct skill *s, struct err *e)
{
    const struct package_file *f = package_find(s->package, str_of(manifest_file));
    if (f == NULL || f->dir) {
        return 0;
    }
    struct skill_manifest *m = ARENA_NEW(s->arena, struct skill_manifest);
    int r = skill_manifest_parse(s->arena, f->content, skill_file_label(s, manifest_file), m, e);
    if (r == 0) {
        s->manifest = m;
    }
    return r;
}

/* Directory, front matter and manifest must call it the same, or it would be found under one name
 * and invoked by another. `given` is the name of its directory or file. */
static int check_identity(struct skill *s, struct str given, const char *wanted, struct err *e)
{
    if (!s->single && !str_eqc(given, s->card.name)) {
        return ERR(e, ERR_CONFIG, "%s: the skill is named '%s', but its directory '%.*s'",
                   skill_file_label(s, card_file), s->card.name, STR_ARG(given));
    }
    if (s->manifest != NULL && strcmp(s->manifest->id, s->card.name) != 0) {
        return ERR(e, ERR_CONFIG, "%s: 'id' is '%s', but the name in SKILL.md is '%s'",
                   skill_file_label(s, manifest_file), s->manifest->id, s->card.name);
    }
    struct str name = wanted != NULL ? str_of(wanted) : given;
    if (name.len == 0) {
        name = str_of(s->card.name);
    }
    if (!skill_name_ok(name)) {
        return ERR(e, ERR_CONFIG,
                   "skill '%s': the name '%.*s' must be 1 to 64 of a-z, 0-9 and single hyphens",
                   s->path, STR_ARG(str_slice(name, 0, 80)));
    }
    s->name = arena_dup(s->arena, name);
    return 0;
}

static int check_size(const struct skill *s, struct err *e)
{
    if (s->manifest == NULL && s->package->total > SKILL_PLAIN_MAX) {
        return ERR(e, ERR_CONFIG, "skill '%s': holds more than %d bytes", s->path, SKILL_PLAIN_MAX);
    }
    return 0;
}

static void warn_of_gaps(struct skill *s)
{
    if (s->package->skipped > 0) {
        skill_warn(s, arena_printf(s->arena, "%s: %zu symbolic links or devices are not installed",
                                   s->path, s->package->skipped));
    }
    const struct json *configs = s->manifest == NULL ? NULL : s->manifest->engine_configs;
    for (size_t i = 0; i < json_len(configs); i++) {
        const struct json_member *m = &configs->object.members[i];
        if (package_find(s->package, m->value->string) == NULL) {
            skill_warn(s, arena_printf(s->arena,
                                       "%s: the configuration '%s' of engine '%s' is missing",
                                       skill_file_label(s, manifest_file), m->value->string.ptr,
                                       m->key.ptr));
        }
    }
}

static struct skill *skill_new(const char *path)
{
    struct arena *a = arena_new();
    struct skill *s = ARENA_NEW(a, struct skill);
    s->arena = a;
    s->path = arena_dup(a, str_of(path));
    s->warnings = json_array(a);
    return s;
}

/* Everything that follows from the files. */
static int load(struct skill *s, struct str given, const char *name, struct err *e)
{
    int r = read_card(s, e);
    if (r == 0) {
        r = read_manifest(s, e);
    }
    if (r == 0) {
        r = check_identity(s, given, name, e);
    }
    if (r == 0) {
        r = check_size(s, e);
    }
    if (r == 0 && s->manifest != NULL) {
        r = skill_schemas_load(s, e);
    }
    if (r == 0) {
        warn_of_gaps(s);
    }
    return r;
}

int skill_open(const char *path, const char *name, struct skill **ret, struct err *e)
{
    CLEANUP(skill) struct skill *s = skill_new(path);
    struct str given = STR_EMPTY;
    int r = read_source(s, &given, e);
    if (r == 0) {
        r = load(s, given, name, e);
    }
    if (r == 0) {
        *ret = TAKE_PTR(s);
    }
    return r;
}

int skill_open_package(const struct package *p, const char *name, struct skill **ret, struct err *e)
{
    CLEANUP(skill) struct skill *s = skill_new(name);
    s->package = p;
    int r = load(s, str_of(name), NULL, e);
    if (r == 0) {
        *ret = TAKE_PTR(s);
    }
    return r;
}

struct skill *skill_free(struct skill *s)
{
    if (s != NULL) {
        for (int i = 0; i < SKILL_SCHEMA_MAX; i++) {
            schema_free(s->schemas[i].compiled);
        }
        arena_free(s->arena);
    }
    return NULL;
}

int skill_check_names(const struct skill *const *list, size_t len, struct err *e)
{
    for (size_t i = 0; i < len; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(list[i]->name, list[j]->name) == 0) {
                return ERR(e, ERR_CONFIG, "two skills are named '%s': '%s' and '%s'", list[i]->name,
                           list[j]->path, list[i]->path);
            }
        }
    }
    return 0;
}

/* --- engines --- */

static const char *words_of(struct arena *a, const struct json *list)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < json_len(list); i++) {
        buf_addf(&text, "%s%s", i > 0 ? ", " : "", list->array.items[i]->string.ptr);
    }
    return arena_dup(a, buf_str(&text));
}

int skill_admit(const struct skill *s, const char *engine, unsigned mode, enum skill_mode *ret,
                struct err *e)
{
    const struct skill_manifest *m = s->manifest;
    unsigned modes = m == NULL ? SKILL_AUTO | SKILL_INTERACTIVE : m->modes;
    if (m != NULL && !skill_manifest_allows(m, str_of(engine))) {
        bool listed = m->engines != NULL;
        return ERR(e, ERR_UNAVAILABLE, "skill '%s' does not support engine '%s'; it %s: %s",
                   s->name, engine, listed ? "supports" : "excludes",
                   words_of(s->arena, listed ? m->engines : m->unsupported_engines));
    }
    if (mode == 0) {
        mode = (modes & SKILL_AUTO) != 0 ? SKILL_AUTO : SKILL_INTERACTIVE;
    }
    if ((modes & mode) == 0) {
        return ERR(e, ERR_UNAVAILABLE, "skill '%s' cannot be run in mode '%s'", s->name,
                   skill_mode_word((enum skill_mode)mode));
    }
    *ret = (enum skill_mode)mode;
    return 0;
}

static int parse_config(struct arena *a, const struct package_file *f, const char *label,
                        struct json **ret, struct err *e)
{
    int r;
    if (str_ends(f->name, STR(".toml"))) {
        r = toml_parse(a, f->content, &(struct toml_opts) { .name = label }, ret, e);
    } else if (str_ends(f->name, STR(".json"))) {
        r = skill_json_parse(a, f->content, label, ret, e);
    } else if (str_ends(f->name, STR(".yaml")) || str_ends(f->name, STR(".yml"))) {
        r = yaml_parse(a, f->content, label, NULL, ret, e);
    } else {
        return ERR(e, ERR_CONFIG, "%s: configuration must be .json, .toml or .yaml", label);
    }
    if (r == 0 && (*ret)->type != JSON_OBJECT) {
        return ERR(e, ERR_CONFIG, "%s:1:1: configuration must be a map", label);
    }
    return skill_refuse(r, e);
}

/* The file that the manifest names, else the first of the usual ones that is there. */
static const struct package_file *find_config(const struct skill *s,
                                              const struct skill_engine *engine)
{
    const struct json *declared = json_get(s->manifest->engine_configs, engine->name);
    const struct package_file *f =
        declared == NULL ? NULL : package_find(s->package, declared->string);
    for (size_t i = 0; (f == NULL || f->dir) && i < json_len(engine->configs); i++) {
        f = package_find(s->package, json_str(json_item(engine->configs, i), STR_EMPTY));
    }
    return f == NULL || f->dir ? NULL : f;
}

int skill_engine_config(struct arena *a, const struct skill *s, const struct skill_engine *engine,
                        struct json **ret, const char **ret_source, struct err *e)
{
    *ret = NULL;
    *ret_source = NULL;
    if (s->manifest == NULL) {
        return 0;
    }
    const struct package_file *f = find_config(s, engine);
    if (f == NULL) {
        return 0;
    }
    const char *label = arena_dup(a, str_of(skill_file_label(s, f->name.ptr)));
    struct json *tree = NULL;
    int r = parse_config(a, f, label, &tree, e);
    if (r == 0) {
        *ret = tree;
        *ret_source = label;
    }
    return r;
}
