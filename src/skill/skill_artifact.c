/* SPDX-License-Identifier: MIT
 *
 * Finding the files that an output names: a walk over schema and value side by side, then a strict
 * look at the disk; see skill_artifact.h.
 */
#include "skill/skill_artifact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "data/zip.h"
#include "skill/skill.h"
#include "skill/skill_priv.h"

#define ARTIFACTS "artifacts"

/* Reached only by hostile schemas and outputs: what is beyond is not looked at, or refused. Work is
 * counted in keys that are compared: fifty million take less than a second, and an honest output of
 * a hundred thousand rows needs a few. */
enum { DEPTH_MAX = 32, WORK_MAX = 50000000, ARTIFACTS_MAX = 1000, MANIFEST_BYTES = 1 << 20 };

struct walk {
    struct arena *arena;
    const struct json *schema_root;
    const struct skill_root *root;
    struct skill_artifact_list *list;
    struct json *kept;   /* path as it was given: path of its copy */
    struct json *copies; /* paths of copies: true */
    uint64_t work;
    struct err *e;
};

/* --- fields --- */

static bool is_required(const struct json *schema, struct str key)
{
    const struct json *list = json_get(schema, "required");
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->array.len; i++) {
        if (str_eq(json_str(list->array.items[i], STR_EMPTY), key)) {
            return true;
        }
    }
    return false;
}

static struct str role_of(const struct json *schema)
{
    return json_str(json_get(schema, "x-role"), STR("output"));
}

static void add_field(struct arena *a, struct skill_artifact_fields *f,
                      const struct skill_artifact_field *field)
{
    for (size_t i = 0; i < f->len; i++) {
        if (str_eq(f->items[i].pattern, field->pattern)) {
            return;
        }
    }
    if ((f->len & (f->len - 1)) == 0) { /* full at every power of two */
        struct skill_artifact_field *items = arena_array(a, f->len * 2 + 1, sizeof *items);
        if (f->len > 0) {
            memcpy(items, f->items, f->len * sizeof *items);
        }
        f->items = items;
    }
    f->items[f->len++] = *field;
}

static void add_properties(struct arena *a, const struct json *schema,
                           struct skill_artifact_fields *f)
{
    const struct json *list = json_get(schema, "properties");
    for (size_t i = 0; json_is(list, JSON_OBJECT) && i < list->object.len; i++) {
        const struct json_member *m = &list->object.members[i];
        if (json_get(m->value, "x-type") != NULL) {
            add_field(a, f,
                      &(struct skill_artifact_field) { .role = role_of(m->value),
                                                       .pattern = m->key,
                                                       .required = is_required(schema, m->key) });
        }
    }
}

struct skill_artifact_fields skill_artifact_fields(struct arena *a, const struct skill *s)
{
    static const char *const words[] = { "oneOf", "anyOf" };
    struct skill_artifact_fields f = { 0 };
    const struct json *declared = s->manifest == NULL ? NULL : s->manifest->artifacts;
    const struct json *root = s->schemas[SKILL_OUTPUT].tree;
    for (size_t i = 0; i < json_len(declared); i++) {
        const struct json *item = declared->array.items[i];
        add_field(a, &f,
                  &(struct skill_artifact_field) {
                      .role = json_str(json_get(item, "role"), STR_EMPTY),
                      .pattern = json_str(json_get(item, "pattern"), STR_EMPTY),
                      .required = json_bool(json_get(item, "required"), false) });
    }
    if (f.len > 0) {
        return f;
    }
    add_properties(a, root, &f);
    for (size_t w = 0; w < ARRAY_LEN(words); w++) {
        const struct json *list = json_get(root, words[w]);
        for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->array.len; i++) {
            add_properties(a, skill_schema_follow(root, list->array.items[i]), &f);
        }
    }
    return f;
}

/* --- one file --- */

/* Cuts the directory off a path below it; false: it is not below it. */
static bool cut_dir(struct str *path, const char *dir)
{
    size_t len = strlen(dir);
    while (len > 0 && dir[len - 1] == '/') {
        len--;
    }
    if (!str_starts(*path, str_n(dir, len)) || path->len <= len || path->ptr[len] != '/') {
        return false;
    }
    *path = str_slice(*path, len, path->len);
    while (path->len > 0 && path->ptr[0] == '/') {
        *path = str_slice(*path, 1, path->len);
    }
    return true;
}

/* Where to look for a file. */
struct search {
    struct str path;
    bool run_dir, work_dir;
};

/* NULL, or why there is no such file. The working directory may be below that of the run. */
static const char *plan_search(const struct walk *w, struct str given, struct search *ret)
{
    const struct skill_work *work = w->root->work;
    struct search s = { .path = given };
    for (size_t i = 0; work != NULL && work->paths[i] != NULL && !s.work_dir; i++) {
        s.work_dir = cut_dir(&s.path, work->paths[i]);
    }
    s.run_dir = !s.work_dir && cut_dir(&s.path, w->root->path);
    if (!s.work_dir && !s.run_dir) {
        if (given.len > 0 && given.ptr[0] == '/') {
            return work == NULL ? "is outside of the run directory"
                                : "is neither in the workspace nor in the run directory";
        }
        s.run_dir = true;
        s.work_dir = work != NULL;
    }
    while (str_starts(s.path, STR("./"))) {
        s.path = str_slice(s.path, 2, s.path.len);
    }
    *ret = s;
    return zip_name_fault(s.path) == NULL ? NULL : "is not a plain path";
}

static const char *fault_of_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return "is not there";
    case ELOOP:
        return "is behind a symbolic link";
    case EISDIR:
        return "is not a file";
    default:
        return "cannot be read";
    }
}

static int add(struct walk *w, const struct skill_artifact *artifact)
{
    struct skill_artifact_list *l = w->list;
    if (l->len == ARTIFACTS_MAX) {
        return ERR(w->e, ERR_CONFIG, "the output names more than %d files", ARTIFACTS_MAX);
    }
    if (l->len == l->cap) {
        l->cap = l->cap == 0 ? 8 : l->cap * 2;
        struct skill_artifact *items = arena_array(w->arena, l->cap, sizeof *items);
        if (l->len > 0) {
            memcpy(items, l->items, l->len * sizeof *items);
        }
        l->items = items;
    }
    l->items[l->len++] = *artifact;
    l->missing += artifact->required && artifact->fault != NULL;
    return 0;
}

/* Opens the file; *ret_stays when it is below artifacts/ of the run directory. */
static int open_found(const struct walk *w, const struct search *s, bool *ret_stays)
{
    const struct skill_work *work = w->root->work;
    bool copy = json_find(w->copies, s->path) != NULL; /* of a file that has another name */
    errno = ENOENT;
    int fd = s->run_dir && !copy ? file_open_below(w->root->fd, s->path) : -1;
    *ret_stays = fd >= 0 && (work == NULL || str_starts(s->path, STR(ARTIFACTS "/")));
    int error = errno;
    if (fd < 0 && s->work_dir) {
        fd = work->open(work->self, s->path);
        error = fd < 0 && s->run_dir && errno == ENOENT ? error : errno;
    }
    errno = error;
    return fd;
}

/* Copies a file that would not stay, once. */
static int keep_copy(struct walk *w, struct str given, struct str path, int fd, const char **ret)
{
    const struct skill_work *work = w->root->work;
    const struct json *known = json_find(w->kept, given);
    if (known != NULL) {
        *ret = json_cstring(known, "");
        return 0;
    }
    struct str name = str_starts(path, STR(ARTIFACTS "/"))
                          ? str_slice(path, strlen(ARTIFACTS "/"), path.len)
                          : path;
    int r = work->keep(work->self, fd, name, ret, w->e);
    if (r == 0) {
        json_set(w->arena, w->kept, given, json_cstr(w->arena, *ret));
        json_setc(w->arena, w->copies, *ret, json_boolean(w->arena, true));
    }
    return r;
}

/* Looks at one path and lists it. *ret_fd is open when it is a file; NULL when it is not needed. */
static int look(struct walk *w, struct skill_artifact *artifact, struct str given, int *ret_fd)
{
    struct search s = { .path = given };
    bool stays = false;
    artifact->fault = plan_search(w, given, &s);
    artifact->path = arena_dup(w->arena, artifact->fault == NULL ? s.path : given);
    CLEANUP(fd) int fd = artifact->fault == NULL ? open_found(w, &s, &stays) : -1;
    struct stat st = { 0 };
    if (artifact->fault == NULL && (fd < 0 || fstat(fd, &st) < 0)) {
        artifact->fault = fault_of_errno(errno);
    }
    artifact->size = (uint64_t)st.st_size;
    int r =
        artifact->fault == NULL && !stays ? keep_copy(w, given, s.path, fd, &artifact->path) : 0;
    if (ret_fd != NULL) {
        *ret_fd = TAKE_FD(fd);
    }
    return r < 0 ? r : add(w, artifact);
}

/* --- manifests --- */

static int add_fault(struct walk *w, const struct skill_artifact *manifest, const char *fault)
{
    struct skill_artifact broken = *manifest;
    broken.fault = fault;
    return add(w, &broken);
}

static int read_all(int fd, struct buf *out)
{
    for (;;) {
        char chunk[16384];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0 || buf_append(out, str_n(chunk, (size_t)n), NULL) < 0) {
            return n == 0 ? 0 : -1;
        }
    }
}

/* The copy of a manifest names the copies. */
static int write_manifest(struct walk *w, const char *path, const struct json *map)
{
    const struct skill_work *work = w->root->work;
    CLEANUP(buf) struct buf text = BUF_INIT(4 * MANIFEST_BYTES);
    int r = json_write(map, JSON_PRETTY, &text, w->e);
    return r < 0 ? r : work->rewrite(work->self, path, buf_str(&text), w->e);
}

/* A flat object {role: path}: every file it lists is an artifact. */
static int expand(struct walk *w, const struct skill_artifact *manifest, int fd)
{
    CLEANUP(buf) struct buf text = BUF_INIT(MANIFEST_BYTES);
    struct json *map = NULL;
    bool moved = false;
    if (lseek(fd, 0, SEEK_SET) < 0 || read_all(fd, &text) < 0 ||
        json_parse(w->arena, buf_str(&text), NULL, &map, NULL) < 0 || map->type != JSON_OBJECT) {
        return add_fault(w, manifest, "is not a JSON object of roles and paths");
    }
    for (size_t i = 0; i < map->object.len; i++) {
        struct json_member *m = &map->object.members[i];
        struct skill_artifact listed = { .field = manifest->field,
                                         .role = arena_dup(w->arena, m->key),
                                         .required = manifest->required };
        int r = m->value->type == JSON_STRING
                    ? look(w, &listed, m->value->string, NULL)
                    : add_fault(w, manifest, "lists something that is not a path");
        if (r < 0) {
            return r;
        }
        if (m->value->type == JSON_STRING && listed.fault == NULL &&
            !str_eqc(m->value->string, listed.path)) {
            m->value = json_cstr(w->arena, listed.path);
            moved = true;
        }
    }
    return moved && w->root->work != NULL ? write_manifest(w, manifest->path, map) : 0;
}

/* --- the walk --- */

static int visit(struct walk *w, const struct json *schema, struct json *value, const char *at,
                 int depth);

/* A field that is a file. Its value becomes the path below the root. */
static int visit_file(struct walk *w, const struct json *schema, struct json *value, const char *at,
                      bool required)
{
    bool manifest = str_eqc(json_str(json_get(schema, "x-type"), STR_EMPTY), "artifact-manifest");
    struct skill_artifact artifact = { .field = at,
                                       .role = arena_dup(w->arena, role_of(schema)),
                                       .required = required };
    if (value->type != JSON_STRING || value->string.len == 0) {
        artifact.path = "";
        artifact.fault = "is not given";
        return required ? add(w, &artifact) : 0;
    }
    CLEANUP(fd) int fd = -1;
    int r = look(w, &artifact, str_trim(value->string), &fd);
    if (r == 0 && artifact.fault == NULL) {
        value->string = str_of(artifact.path);
    }
    return r == 0 && manifest && fd >= 0 ? expand(w, &artifact, fd) : r;
}

/* Whether a branch could be the one that the value took: its constants agree. */
static bool could_be(const struct json *branch, const struct json *value)
{
    const struct json *list = json_get(branch, "properties");
    for (size_t i = 0; json_is(list, JSON_OBJECT) && i < list->object.len; i++) {
        const struct json_member *m = &list->object.members[i];
        const struct json *constant = json_get(m->value, "const");
        const struct json *actual = json_find(value, m->key);
        if (constant != NULL && actual != NULL && !json_equal(constant, actual)) {
            return false;
        }
    }
    return true;
}

static int visit_branches(struct walk *w, const struct json *schema, struct json *value,
                          const char *at, int depth)
{
    static const char *const words[] = { "allOf", "oneOf", "anyOf" };
    for (size_t n = 0; n < ARRAY_LEN(words); n++) {
        const struct json *list = json_get(schema, words[n]);
        for (size_t i = 0; json_is(list, JSON_ARRAY) && i < list->array.len; i++) {
            const struct json *branch = skill_schema_follow(w->schema_root, list->array.items[i]);
            w->work += 1 + (uint64_t)json_len(json_get(branch, "properties")) * json_len(value);
            int r = w->work > WORK_MAX || could_be(branch, value)
                        ? visit(w, branch, value, at, depth + 1)
                        : 0;
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

static bool listed(const struct walk *w, const char *at)
{
    for (size_t i = 0; i < w->list->len; i++) {
        if (strcmp(w->list->items[i].field, at) == 0) {
            return true;
        }
    }
    return false;
}

static int visit_object(struct walk *w, const struct json *schema, struct json *value,
                        const char *at, int depth)
{
    for (size_t i = 0; i < value->object.len; i++) {
        struct json_member *m = &value->object.members[i];
        const struct json *property = json_find(json_get(schema, "properties"), m->key);
        const char *below = arena_printf(w->arena, "%s/%.*s", at, STR_ARG(m->key));
        int r = 0;
        if (json_get(property, "x-type") != NULL) {
            r = listed(w, below)
                    ? 0
                    : visit_file(w, property, m->value, below, is_required(schema, m->key));
        } else if (property != NULL) {
            r = visit(w, property, m->value, below, depth + 1);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int visit_array(struct walk *w, const struct json *schema, struct json *value,
                       const char *at, int depth)
{
    const struct json *items = skill_schema_follow(w->schema_root, json_get(schema, "items"));
    for (size_t i = 0; items != NULL && i < value->array.len; i++) {
        const char *below = arena_printf(w->arena, "%s/%zu", at, i);
        int r = json_get(items, "x-type") != NULL
                    ? visit_file(w, items, value->array.items[i], below, true)
                    : visit(w, items, value->array.items[i], below, depth + 1);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int visit(struct walk *w, const struct json *schema, struct json *value, const char *at,
                 int depth)
{
    schema = skill_schema_follow(w->schema_root, schema);
    if (!json_is(schema, JSON_OBJECT) || depth > DEPTH_MAX) {
        return 0;
    }
    w->work += 1 + (uint64_t)json_len(json_get(schema, "properties")) * json_len(value);
    if (w->work > WORK_MAX) {
        return ERR(w->e, ERR_CONFIG, "the output is too large to look for files in it");
    }
    int r = 0;
    if (value->type == JSON_OBJECT) {
        r = visit_object(w, schema, value, at, depth);
    } else if (value->type == JSON_ARRAY) {
        r = visit_array(w, schema, value, at, depth);
    }
    return r < 0 ? r : visit_branches(w, schema, value, at, depth);
}

/* --- the older list of the manifest --- */

/* The names in a directory that match; takes the descriptor. */
static int match_names(struct walk *w, const struct skill_artifact *artifact, int fd,
                       const char *dir, const char *glob)
{
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;
    if (d == NULL) {
        cleanup_fd(&fd);
        return 0;
    }
    for (struct dirent *entry = readdir(d); r == 0 && entry != NULL; entry = readdir(d)) {
        const char *path = arena_printf(w->arena, "%s%s", dir, entry->d_name);
        if (fnmatch(glob, entry->d_name, FNM_PERIOD) == 0 &&
            json_find(w->kept, str_of(path)) == NULL) {
            struct skill_artifact found = *artifact;
            r = look(w, &found, str_of(path), NULL);
        }
    }
    (void)closedir(d);
    return r;
}

/* Files of artifacts/ whose names match; the pattern may have wildcards in its last part. */
static int match_pattern(struct walk *w, struct skill_artifact *artifact, struct str pattern)
{
    const struct skill_work *work = w->root->work;
    struct str base = path_base(pattern);
    struct str above = str_slice(pattern, 0, pattern.len - base.len);
    const char *dir = arena_printf(w->arena, ARTIFACTS "/%.*s", STR_ARG(above));
    const char *glob = arena_dup(w->arena, base);
    size_t before = w->list->len;
    int r = match_names(w, artifact,
                        openat(w->root->fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
                        dir, glob);
    if (r == 0 && work != NULL && w->list->len == before) {
        r = match_names(w, artifact, work->open_dir(work->self, str_n(dir, strlen(dir) - 1)), dir,
                        glob);
    }
    if (r == 0 && w->list->len == before) {
        artifact->path = arena_printf(w->arena, "%s%s", dir, glob);
        artifact->fault = "is not there";
        r = add(w, artifact);
    }
    return r;
}

static int visit_declared(struct walk *w, const struct skill *s)
{
    const struct json *list = s->manifest == NULL ? NULL : s->manifest->artifacts;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = list->array.items[i];
        struct str pattern = json_str(json_get(item, "pattern"), STR_EMPTY);
        struct skill_artifact artifact = {
            .field = "artifacts",
            .role = json_cstring(json_get(item, "role"), "output"),
            .required = json_bool(json_get(item, "required"), false),
        };
        if (zip_name_fault(pattern) != NULL) {
            artifact.path = arena_dup(w->arena, pattern);
            artifact.fault = "is not a plain path";
        }
        int r = artifact.fault != NULL ? add(w, &artifact) : match_pattern(w, &artifact, pattern);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int skill_artifacts(struct arena *a, const struct skill *s, const struct json *output,
                    const struct skill_root *root, struct skill_artifact_list *ret, struct err *e)
{
    struct skill_artifact_list list = { .output = json_copy(a, output) };
    const struct json *schema = s->schemas[SKILL_OUTPUT].tree;
    struct walk w = { .arena = a,
                      .schema_root = schema,
                      .root = root,
                      .list = &list,
                      .kept = json_object(a),
                      .copies = json_object(a),
                      .e = e };
    int r = output == NULL || schema == NULL ? 0 : visit(&w, schema, list.output, "", 0);
    if (r == 0) {
        r = visit_declared(&w, s);
    }
    if (r == 0) {
        *ret = list;
    }
    return r;
}
