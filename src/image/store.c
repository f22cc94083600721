/* SPDX-License-Identifier: MIT
 *
 * Where the store is, and what a short name stands for.
 */
#include "image/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"

enum { TABLE_MAX = 32 << 20, SETTINGS_MAX = 1 << 20 };

static const char *const drivers[] = { "overlay", "vfs", "btrfs", "zfs" };

/* graphroot of storage.conf; the file is TOML, and this is the one key that matters. */
static const char *graph_root(struct arena *a, const char *file)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SETTINGS_MAX);
    const char *key = geteuid() == 0 ? "graphroot" : "rootless_storage_path";
    const char *found = NULL;
    if (file == NULL || file_read(AT_FDCWD, file, SETTINGS_MAX, &text, NULL) < 0) {
        return NULL;
    }
    struct str rest = buf_str(&text);
    while (rest.ptr != NULL) {
        struct str value = str_split(&rest, '\n');
        struct str name = str_trim(str_split(&value, '='));
        value = str_trim(value);
        bool quoted = value.ptr != NULL && value.len > 2 && value.ptr[0] == '"';
        if (quoted && (str_eqc(name, key) || str_eqc(name, "graphroot"))) {
            struct str path = str_slice(value, 1, value.len);
            path = str_split(&path, '"');
            bool own = str_eqc(name, key) || getenv("CONTAINERS_STORAGE_CONF") != NULL;
            found = own && path.len > 0 && path.ptr[0] == '/' ? arena_dup(a, path) : found;
        }
    }
    return found;
}

static const char *const *roots(struct arena *a)
{
    const char *home = getenv("HOME");
    const char *data = getenv("XDG_DATA_HOME");
    const char **list = arena_array(a, 5, sizeof *list);
    size_t n = 0;
    const char *given = graph_root(a, getenv("CONTAINERS_STORAGE_CONF"));
    const char *of_user =
        home == NULL ? NULL
                     : graph_root(a, arena_printf(a, "%s/.config/containers/storage.conf", home));
    const char *of_system = graph_root(a, "/etc/containers/storage.conf");
    if (given != NULL) {
        list[n++] = given;
        return list;
    }
    if (of_user != NULL && geteuid() != 0) {
        list[n++] = of_user;
    }
    if (of_system != NULL) {
        list[n++] = of_system;
    }
    if (geteuid() == 0) {
        list[n++] = "/var/lib/containers/storage";
    } else if (data != NULL && data[0] == '/') {
        list[n++] = arena_printf(a, "%s/containers/storage", data);
    } else if (home != NULL) {
        list[n++] = arena_printf(a, "%s/.local/share/containers/storage", home);
    }
    return list;
}

/* --- names --- */

/* How good a name of the table is for the one that was given: "golang" is docker.io/library/golang
 * or localhost/golang, with any registry if only one has it. */
static int rate(struct arena *a, const char *name, const char *want)
{
    const char *slash = strrchr(want, '/');
    bool tagged = strchr(slash == NULL ? want : slash, ':') != NULL;
    const char *full = tagged ? want : arena_printf(a, "%s:latest", want);
    if (strcmp(name, full) == 0) {
        return 4;
    }
    if (strcmp(name, arena_printf(a, "localhost/%s", full)) == 0) {
        return 3;
    }
    if (strcmp(name, arena_printf(a, "docker.io/library/%s", full)) == 0 ||
        strcmp(name, arena_printf(a, "docker.io/%s", full)) == 0) {
        return 2;
    }
    return str_ends(str_of(name), str_of(arena_printf(a, "/%s", full))) ? 1 : 0;
}

static bool is_id(const char *id, const char *want)
{
    size_t len = strlen(want);
    for (size_t i = 0; i < len; i++) {
        if (strchr("0123456789abcdef", want[i]) == NULL) {
            return false;
        }
    }
    return len >= 12 && strncmp(id, want, len) == 0;
}

static int rate_entry(struct arena *a, const struct json *entry, const struct image_ref *ref)
{
    const char *id = json_cstring(json_get(entry, "id"), "");
    const char *digest = json_cstring(json_get(entry, "digest"), "");
    const struct json *names = json_get(entry, "names");
    int best = is_id(id, ref->name) ? 4 : 0;
    bool is_digest = ref->digest == NULL || strcmp(id, ref->digest) == 0 ||
                     (strncmp(digest, "sha256:", 7) == 0 && strcmp(digest + 7, ref->digest) == 0);
    for (size_t i = 0; i < json_len(names); i++) {
        int rating = rate(a, json_cstring(json_item(names, i), ""), ref->name);
        best = rating > best ? rating : best;
    }
    /* A digest says more than a tag, and an image may have lost its names. */
    bool bare = ref->digest != NULL && is_digest && json_len(names) == 0;
    return !is_digest || !sha256_is_hex(str_of(id)) ? 0 : best == 0 && bare ? 1 : best;
}

int store_choose(struct arena *a, const struct json *table, const struct image_ref *ref,
                 const char **ret, struct err *e)
{
    int best = 0;
    size_t n = 0;
    *ret = NULL;
    for (size_t i = 0; i < json_len(table); i++) {
        const struct json *entry = json_item(table, i);
        int rating = rate_entry(a, entry, ref);
        n = rating > best ? 1 : n + (rating > 0 && rating == best ? 1 : 0);
        *ret = rating > best ? json_cstring(json_get(entry, "id"), NULL) : *ret;
        best = rating > best ? rating : best;
    }
    return n < 2 ? 0
                 : ERR(e, ERR_UNAVAILABLE,
                       "image '%s': podman has %zu images with that name: give the whole name, "
                       "with its registry",
                       ref->text, n);
}

int store_find(struct arena *a, const struct image_ref *ref, const char **ret, struct err *e)
{
    const char *const *list = roots(a);
    *ret = NULL;
    for (; *list != NULL; list++) {
        for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
            CLEANUP(buf) struct buf text = BUF_INIT(TABLE_MAX);
            struct json *table = NULL;
            const char *file = arena_printf(a, "%s/%s-images/images.json", *list, drivers[i]);
            if (file_read(AT_FDCWD, file, TABLE_MAX, &text, NULL) < 0 ||
                json_parse(a, buf_str(&text), NULL, &table, NULL) < 0) {
                continue;
            }
            int r = store_choose(a, table, ref, ret, e);
            if (r < 0 || *ret != NULL) {
                return r;
            }
        }
    }
    return 0;
}
