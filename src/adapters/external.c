/* SPDX-License-Identifier: MIT
 *
 * Finds programs that are adapters; see external.h.
 */
#include "adapters/external.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>

#include "adapters/bundle.h"
#include "base/file.h"
#include "proc/which.h"
#include "sandbox/container.h"

enum { EXTERNAL_MAX = 256, NAME_LONGEST = 64 };

#define PROGRAM_PREFIX "cinch-adapter-"
#define PATH_PREFIX    "exec:"
#define IMAGE_PREFIX   "image:"
#define BUNDLE_PREFIX  "bundle:"

/* It becomes a part of a file's name, and is printed. */
static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || (c == '.' && i > 0);
        if (!good) {
            return false;
        }
    }
    return name.len > 0 && name.len <= NAME_LONGEST;
}

const char *external_program(struct arena *a, const char *path, struct str name)
{
    char found[PATH_MAX];
    if (str_starts(name, STR(PATH_PREFIX))) {
        const char *file = arena_dup(a, str_slice(name, strlen(PATH_PREFIX), name.len));
        bool good = file[0] != '\0' && path_absolute(file, found, sizeof found, NULL) == 0;
        return good ? arena_dup(a, str_of(found)) : NULL;
    }
    const char *program =
        is_name(name) ? arena_printf(a, PROGRAM_PREFIX "%.*s", STR_ARG(name)) : NULL;
    if (program == NULL || which_find(program, path, NULL, found, NULL) < 0) {
        return NULL;
    }
    return program;
}

/* "oci-archive:PATH": the path is the caller's, the engine runs elsewhere. */
static const char *absolute_image(struct arena *a, const char *image)
{
    char path[PATH_MAX];
    struct str rest = str_of(image);
    struct str kind = str_split(&rest, ':');
    if (!container_image_is_file(image) || path_absolute(rest.ptr, path, sizeof path, NULL) < 0) {
        return image;
    }
    return arena_printf(a, "%.*s:%s", STR_ARG(kind), path);
}

const char *external_image(struct arena *a, struct str name)
{
    struct str image = str_slice(name, strlen(IMAGE_PREFIX), name.len);
    if (!str_starts(name, STR(IMAGE_PREFIX)) || image.len == 0 || image.ptr[0] == '-') {
        return NULL;
    }
    return absolute_image(a, arena_dup(a, image));
}

const struct profile *external_image_profile(struct arena *a, const struct profile *base,
                                             struct str name, const char *image)
{
    static const char *const engines[] = { "podman", "docker" };
    struct profile_args *argv = arena_array(a, 1, sizeof *argv);
    if (base == NULL) {
        return NULL;
    }
    struct profile *p = ARENA_NEW(a, struct profile);
    *p = *base;
    p->name = arena_dup(a, name);
    p->image = image;
    p->binary = json_array(a);
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        json_push(a, p->binary, json_cstr(a, engines[i]));
    }
    argv[0] = (struct profile_args) { .args = json_array(a) };
    json_push(a, argv[0].args, json_cstr(a, "{entry...}"));
    p->argv = argv;
    p->argv_len = 1;
    return p;
}

const struct profile *external_profile(struct arena *a, const struct profile *base, struct str name,
                                       const char *program)
{
    if (base == NULL) {
        return NULL;
    }
    struct profile *p = ARENA_NEW(a, struct profile);
    struct profile_args *argv = arena_array(a, 2, sizeof *argv);
    *p = *base;
    p->name = arena_dup(a, name);
    p->binary = json_array(a);
    json_push(a, p->binary, json_cstr(a, program));
    for (size_t i = 0; i < 2; i++) {
        argv[i] = (struct profile_args) { .args = json_array(a) };
        json_push(a, argv[i].args, json_cstr(a, i == 0 ? "{binary}" : "{args...}"));
    }
    p->argv = argv;
    p->argv_len = 2;
    return p;
}

const char *external_bundle(struct arena *a, struct str name)
{
    char path[PATH_MAX];
    struct str file = str_slice(name, strlen(BUNDLE_PREFIX), name.len);
    bool meant = str_starts(name, STR(BUNDLE_PREFIX)) && file.len > 0 &&
                 path_absolute(arena_dup(a, file), path, sizeof path, NULL) == 0;
    return meant ? arena_dup(a, str_of(path)) : NULL;
}

/* Variables of the bundle as a layer of settings: no placeholders are looked for in them. */
static struct json *bundle_settings(struct arena *a, const struct json *env)
{
    struct json *tree = json_object(a);
    struct json *section = json_object(a);
    json_setc(a, section, "set", json_copy(a, env));
    json_setc(a, tree, "env", section);
    return tree;
}

int external_bundle_profile(struct arena *a, const struct profile *base, struct str name,
                            const char *file, const struct profile **ret, struct err *e)
{
    struct bundle b;
    *ret = NULL;
    if (base == NULL) {
        return ERR(e, ERR_UNAVAILABLE, "there is no profile 'contract' for agent bundles");
    }
    int r = bundle_open(a, file, bundle_cache(a), &b, e);
    if (r < 0) {
        return r;
    }
    struct profile *p = ARENA_NEW(a, struct profile);
    *p = *external_profile(a, base, name, b.entry);
    p->sandbox.read = p->sandbox.read == NULL ? json_array(a) : json_copy(a, p->sandbox.read);
    json_push(a, p->sandbox.read, json_cstr(a, b.dir));
    if (json_len(b.env) > 0) {
        p->settings = json_merge(a, p->settings == NULL ? json_object(a) : p->settings,
                                 bundle_settings(a, b.env));
    }
    *ret = p;
    return 0;
}

static bool is_listed(const struct json *list, struct str name)
{
    for (size_t i = 0; i < json_len(list); i++) {
        if (str_eq(json_item(list, i)->string, name)) {
            return true;
        }
    }
    return false;
}

static void list_dir(struct arena *a, const char *dir, struct json *ret)
{
    DIR *d = opendir(dir);
    if (d == NULL) {
        return; /* PATH may name what is not there */
    }
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        struct str file = str_of(e->d_name);
        struct str name = str_slice(file, strlen(PROGRAM_PREFIX), file.len);
        if (str_starts(file, STR(PROGRAM_PREFIX)) && is_name(name) && !is_listed(ret, name) &&
            json_len(ret) < EXTERNAL_MAX) {
            json_push(a, ret, json_string(a, name));
        }
    }
    (void)closedir(d);
}

const struct json *external_list(struct arena *a, const char *path)
{
    struct json *ret = json_array(a);
    struct str rest = path == NULL ? STR_EMPTY : str_of(path);
    while (rest.len > 0) {
        struct str dir = str_split(&rest, ':');
        if (dir.len > 0) {
            list_dir(a, arena_dup(a, dir), ret);
        }
    }
    return ret;
}
