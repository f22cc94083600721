/* SPDX-License-Identifier: MIT
 *
 * The list of profiles: compiled in, then the user's directories.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "adapters/external.h"
#include "adapters/profile.h"
#include "adapters/profile_builtin.h"
#include "adapters/version.h"
#include "base/file.h"
#include "proc/which.h"

/* Who can reach it: a user with that many profile files in one directory. */
enum { PROFILES_MAX = 512 };

static int by_name(const void *x, const void *y)
{
    const struct profile *const *a = x;
    const struct profile *const *b = y;
    return strcmp((*a)->name, (*b)->name);
}

static int put(struct profile_list *list, const struct profile *p, struct err *e)
{
    for (size_t i = 0; i < list->len; i++) {
        if (strcmp(list->items[i]->name, p->name) == 0) {
            list->items[i] = p;
            return 0;
        }
    }
    if (list->len == PROFILES_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d adapter profiles", PROFILES_MAX);
    }
    list->items[list->len++] = p;
    return 0;
}

static int parse_builtin(struct arena *a, size_t i, struct profile **ret, struct err *e)
{
    const struct builtin_profile *b = &builtin_profiles[i];
    int r = profile_parse(a, str_n(b->text, b->len), b->file, ret, e);
    if (r < 0) {
        return err_wrap(e, "built-in profile");
    }
    (*ret)->source = "built in";
    return 0;
}

static int load_builtin(struct arena *a, struct profile_list *list, struct err *e)
{
    for (size_t i = 0; i < builtin_profiles_len; i++) {
        struct profile *p;
        int r = parse_builtin(a, i, &p, e);
        r = r < 0 ? r : put(list, p, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int load_file(struct arena *a, const char *path, struct profile_list *list, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(1 << 20);
    struct profile *p;
    int r = file_read(AT_FDCWD, path, text.max, &text, e);
    r = r < 0 ? r : profile_parse(a, buf_str(&text), path, &p, e);
    if (r == -ERR_LIMIT && e != NULL) {
        e->code = ERR_CONFIG; /* too much of something is a fault of the file, not ours */
    }
    if (r < 0) {
        (void)err_wrap(e, "adapter profile");
        return r == -ERR_LIMIT ? -ERR_CONFIG : r;
    }
    return put(list, p, e);
}

static int load_dir(struct arena *a, const char *dir, struct profile_list *list, struct err *e)
{
    DIR *d = opendir(dir);
    if (d == NULL) {
        return errno == ENOENT ? 0 : ERR_SYS_AS(e, ERR_INPUT, "adapter directory '%s'", dir);
    }
    int r = 0;
    for (struct dirent *entry = readdir(d); entry != NULL && r == 0; entry = readdir(d)) {
        char path[PATH_MAX];
        struct str name = str_of(entry->d_name);
        if (!str_ends(name, STR(".yaml")) || name.ptr[0] == '.') {
            continue;
        }
        r = path_join(dir, entry->d_name, path, sizeof path, e);
        if (r == 0) {
            r = load_file(a, path, list, e);
        }
    }
    (void)closedir(d);
    return r;
}

static int load_dirs(struct arena *a, const char *const *dirs, struct profile_list *list,
                     struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && dirs != NULL && dirs[i] != NULL; i++) {
        r = load_dir(a, dirs[i], list, e);
    }
    qsort(list->items, list->len, sizeof(void *), by_name);
    return r;
}

static void init_list(struct arena *a, struct profile_list *list)
{
    *list = (struct profile_list) { .items = arena_array(a, PROFILES_MAX, sizeof(void *)),
                                    .path = getenv("PATH"),
                                    .arena = a };
}

static const struct profile *find_item(const struct profile_list *list, struct str name)
{
    for (size_t i = 0; i < list->len; i++) {
        if (str_eqc(name, list->items[i]->name)) {
            return list->items[i];
        }
    }
    return NULL;
}

/* Those in PATH; a profile of the same name is meant by the user, and stays. */
static int load_external(struct arena *a, struct profile_list *list, struct err *e)
{
    const struct json *names = external_list(a, list->path);
    const struct profile *base = find_item(list, STR("contract"));
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_len(names); i++) {
        struct str name = json_item(names, i)->string;
        const char *program = external_program(a, list->path, name);
        if (program != NULL && find_item(list, name) == NULL) {
            r = put(list, external_profile(a, base, name, program), e);
        }
    }
    qsort(list->items, list->len, sizeof(void *), by_name);
    return r;
}

int profile_load_all(struct arena *a, const char *const *dirs, struct profile_list *ret,
                     struct err *e)
{
    init_list(a, ret);
    int r = load_builtin(a, ret, e);
    r = r < 0 ? r : load_dirs(a, dirs, ret, e);
    return r < 0 ? r : load_external(a, ret, e);
}

/* --- by name --- */

struct profile_shelf {
    struct arena *arena;
    const struct profile **read; /* as builtin_profiles; NULL: not asked for yet */
};

/* The file of a built-in profile is called as the profile (tests/unit/adapters/test_profile.c). */
static struct str builtin_name(size_t i)
{
    struct str file = str_of(builtin_profiles[i].file);
    return str_slice(file, 0, file.len - strlen(".yaml"));
}

int profile_load_named(struct arena *a, const char *const *dirs, struct profile_list *ret,
                       struct err *e)
{
    init_list(a, ret);
    ret->shelf = ARENA_NEW(a, struct profile_shelf);
    *ret->shelf =
        (struct profile_shelf) { .arena = a,
                                 .read = arena_array(a, builtin_profiles_len, sizeof(void *)) };
    return load_dirs(a, dirs, ret, e);
}

static const struct profile *find_builtin(struct profile_shelf *shelf, struct str name)
{
    for (size_t i = 0; i < builtin_profiles_len; i++) {
        if (!str_eq(builtin_name(i), name)) {
            continue;
        }
        struct profile *p;
        if (shelf->read[i] == NULL && parse_builtin(shelf->arena, i, &p, NULL) == 0) {
            shelf->read[i] = p;
        }
        return shelf->read[i];
    }
    return NULL;
}

/* Other names of built-in profiles: those of WINK's adapters. */
static struct str real_name(struct str name)
{
    static const char *const aliases[][2] = {
        { "claude_agent_sdk", "claude-code" },
        { "codex_app_server", "codex" },
        { "opencode_acp", "opencode" },
        { "gemini_acp", "gemini" },
    };
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        if (str_eqc(name, aliases[i][0])) {
            return str_of(aliases[i][1]);
        }
    }
    return name;
}

static const struct profile *find_known(const struct profile_list *list, struct str name)
{
    const struct profile *p = find_item(list, name);
    p = p != NULL ? p : find_item(list, real_name(name));
    return p != NULL || list->shelf == NULL ? p : find_builtin(list->shelf, real_name(name));
}

const struct profile *profile_installed(const struct profile_list *list, struct str name)
{
    return find_known(list, name);
}

const char *profile_program(struct arena *a, const struct profile *p, const char *path)
{
    char found[PATH_MAX];
    for (size_t i = 0; p->image == NULL && i < json_len(p->binary); i++) {
        if (which_find(json_cstring(json_item(p->binary, i), ""), path, NULL, found, NULL) == 0) {
            return arena_dup(a, str_of(found));
        }
    }
    return NULL;
}

/* With the parts for the version that is installed. */
static const struct profile *fit_version(const struct profile_list *list, const struct profile *p)
{
    struct arena *a = list->arena;
    const char *program =
        p == NULL || p->versions == NULL ? NULL : profile_program(a, p, list->path);
    return program == NULL ? p : profile_variant(a, p, version_of_program(a, p, program));
}

const struct profile *profile_find(const struct profile_list *list, struct str name)
{
    const struct profile *p = fit_version(list, find_known(list, name));
    const char *image = p == NULL ? external_image(list->arena, name) : NULL;
    const char *program = p == NULL ? external_program(list->arena, list->path, name) : NULL;
    const struct profile *base = find_known(list, STR("contract"));
    const char *bundle = p == NULL ? external_bundle(list->arena, name) : NULL;
    if (bundle != NULL) {
        (void)!external_bundle_profile(list->arena, base, name, bundle, &p, NULL);
        return p;
    }
    if (image != NULL) {
        return external_image_profile(list->arena, base, name, image);
    }
    return program == NULL ? p : external_profile(list->arena, base, name, program);
}

/* The known name that is nearest, if it is near enough to be meant. */
static struct str nearest(const struct profile_list *list, struct str name)
{
    struct str best = STR_EMPTY;
    size_t best_distance = 4;
    size_t shelved = list->shelf == NULL ? 0 : builtin_profiles_len;
    for (size_t i = 0; i < list->len + shelved; i++) {
        struct str known =
            i < list->len ? str_of(list->items[i]->name) : builtin_name(i - list->len);
        size_t d = str_distance(name, known, best_distance - 1);
        if (d < best_distance) {
            best = known;
            best_distance = d;
        }
    }
    return best;
}

int profile_require(const struct profile_list *list, struct str name, const struct profile **ret,
                    struct err *e)
{
    *ret = profile_find(list, name);
    if (*ret != NULL) {
        return 0;
    }
    const char *bundle = external_bundle(list->arena, name);
    if (bundle != NULL) { /* why it cannot be used */
        return external_bundle_profile(list->arena, find_known(list, STR("contract")), name, bundle,
                                       ret, e);
    }
    struct str best = nearest(list, name);
    if (best.len > 0) {
        return ERR(e, ERR_UNAVAILABLE, "unknown adapter '%.*s' (did you mean '%.*s'?)",
                   STR_ARG(name), STR_ARG(best));
    }
    return ERR(e, ERR_UNAVAILABLE, "unknown adapter '%.*s'; 'cinch adapters' lists the known ones",
               STR_ARG(name));
}
