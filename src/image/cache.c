/* SPDX-License-Identifier: MIT
 *
 * Entries, references, locks.
 */
#include "image/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "image/store.h"

#define ENTRY "sha256-"
enum { ABOUT_MAX = 8 << 20 };

const char *image_cache_dir(struct arena *a)
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (base != NULL && base[0] == '/') {
        return arena_printf(a, "%s/cinch/images", base);
    }
    return home == NULL || home[0] != '/' ? NULL : arena_printf(a, "%s/.cache/cinch/images", home);
}

static const struct json *read_json(struct arena *a, const char *path)
{
    CLEANUP(buf) struct buf text = BUF_INIT(ABOUT_MAX);
    struct json *v = NULL;
    return file_read(AT_FDCWD, path, ABOUT_MAX, &text, NULL) < 0 ||
                   json_parse(a, buf_str(&text), NULL, &v, NULL) < 0
               ? NULL
               : v;
}

int image_open(struct arena *a, const char *cache, const char *id, struct image *ret, struct err *e)
{
    const char *dir = arena_printf(a, "%s/" ENTRY "%s", cache, id);
    *ret = (struct image) { .id = id,
                            .root = arena_printf(a, "%s/root", dir),
                            .about = read_json(a, arena_printf(a, "%s/image.json", dir)) };
    return ret->about != NULL && file_is_dir(AT_FDCWD, ret->root)
               ? 0
               : ERR(e, ERR_INPUT, "image sha256:%s is not in '%s'", id, cache);
}

/* --- references --- */

static const char *ref_file(struct arena *a, const char *cache, const struct image_ref *ref)
{
    char hash[SHA256_HEX];
    sha256_hex(str_of(arena_printf(a, "%d %s %s", (int)ref->kind, ref->path,
                                   ref->name == NULL ? "" : ref->name)),
               hash);
    return arena_printf(a, "%s/refs/%s.json", cache, hash);
}

/* A file that was written to, or another one in its place, is another. */
static const char *state_of(struct arena *a, const struct image_ref *ref)
{
    struct stat st;
    const char *path =
        ref->kind == IMAGE_LAYOUT ? arena_printf(a, "%s/index.json", ref->path) : ref->path;
    return stat(path, &st) != 0
               ? ""
               : arena_printf(a, "%llu %llu %lld %lld.%09ld %lld.%09ld",
                              (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
                              (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                              st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

int image_remember(struct arena *a, const char *cache, const struct image_ref *ref, const char *id,
                   struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (ref->path == NULL) {
        return 0; /* the store knows */
    }
    struct json *o = json_object(a);
    json_setc(a, o, "reference", json_cstr(a, ref->text));
    json_setc(a, o, "state", json_cstr(a, state_of(a, ref)));
    json_setc(a, o, "id", json_cstr(a, id));
    int r = json_write(o, JSON_PRETTY, &text, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, arena_printf(a, "%s/refs", cache), 0700, e);
    return r < 0 ? r
                 : file_write_atomic(AT_FDCWD, ref_file(a, cache, ref), buf_str(&text), 0600, e);
}

static bool fits(const struct image *image, const char *digest)
{
    return digest == NULL || strcmp(image->id, digest) == 0 ||
           strcmp(json_cstring(json_get(image->about, "manifest"), ""), digest) == 0;
}

static bool find_remembered(struct arena *a, const char *cache, const struct image_ref *ref,
                            struct image *ret)
{
    const struct json *known = read_json(a, ref_file(a, cache, ref));
    const char *id = json_cstring(json_get(known, "id"), "");
    return sha256_is_hex(str_of(id)) &&
           strcmp(json_cstring(json_get(known, "state"), "?"), state_of(a, ref)) == 0 &&
           image_open(a, cache, id, ret, NULL) == 0 && fits(ret, ref->digest);
}

int image_find(struct arena *a, const char *cache, const struct image_ref *ref, struct image *ret,
               struct err *e)
{
    if (ref->kind == IMAGE_ROOT) {
        *ret = (struct image) { .root = ref->path };
        return ref->digest == NULL
                   ? 0
                   : ERR(e, ERR_USAGE, "image '%s': a directory has no digest", ref->text);
    }
    if (ref->kind != IMAGE_STORE) {
        return find_remembered(a, cache, ref, ret) ? 0 : 1;
    }
    const char *id = NULL;
    int r = store_find(a, ref, &id, e);
    if (r < 0) {
        return r;
    }
    return id != NULL && image_open(a, cache, id, ret, NULL) == 0 ? 0 : 1;
}

/* --- locks --- */

int image_lock(struct arena *a, const char *cache, const char *what, int *ret_fd, struct err *e)
{
    char hash[SHA256_HEX];
    const char *dir = arena_printf(a, "%s/locks", cache);
    sha256_hex(str_of(what), hash);
    const char *path = arena_printf(a, "%s/%s", dir, hash);
    int r = file_mkdirs(AT_FDCWD, dir, 0700, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", path);
    }
    while (flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR) {
            return ERR_SYS(e, "lock '%s'", path);
        }
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int image_hold(struct arena *a, const struct image *image, int *ret_fd, struct err *e)
{
    *ret_fd = -1;
    if (image->id == NULL) {
        return 0;
    }
    const char *about =
        arena_printf(a, "%.*s/image.json", (int)(strlen(image->root) - 5), image->root);
    CLEANUP(fd) int fd = open(about, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) != 0) {
        return ERR_SYS_AS(e, ERR_UNAVAILABLE, "image sha256:%s is being removed", image->id);
    }
    (void)futimens(fd, NULL); /* when it was used last; only `cinch images` looks at it */
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* --- scratch directories --- */

/* What processes left that were killed. */
static void sweep(struct arena *a, const char *tmp)
{
    DIR *d = opendir(tmp);
    for (const struct dirent *i = d == NULL ? NULL : readdir(d); i != NULL; i = readdir(d)) {
        if (i->d_name[0] == '.') {
            continue;
        }
        const char *path = arena_printf(a, "%s/lock", i->d_name);
        CLEANUP(fd) int fd = openat(dirfd(d), path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        bool dead =
            fd >= 0 ? flock(fd, LOCK_EX | LOCK_NB) == 0 : strncmp(i->d_name, "removed-", 8) == 0;
        if (dead) {
            (void)!file_remove_tree(dirfd(d), i->d_name, NULL);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

int image_scratch_open(struct arena *a, const char *cache, struct image_scratch *ret, struct err *e)
{
    const char *tmp = arena_printf(a, "%s/tmp", cache);
    char *dir = arena_printf(a, "%s/XXXXXX", tmp);
    *ret = (struct image_scratch) { .fd = -1, .lock = -1 };
    int r = file_mkdirs(AT_FDCWD, tmp, 0700, e);
    if (r < 0) {
        return r;
    }
    sweep(a, tmp);
    if (mkdtemp(dir) == NULL) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "make a directory in '%s'", tmp);
    }
    ret->path = dir;
    ret->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ret->lock = ret->fd < 0 ? -1 : openat(ret->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return ret->lock < 0 || flock(ret->lock, LOCK_EX) != 0
               ? ERR_SYS_AS(e, ERR_OUTPUT, "use '%s'", dir)
               : 0;
}

void image_scratch_close(struct image_scratch *s)
{
    if (s->path != NULL) {
        (void)!file_remove_tree(AT_FDCWD, s->path, NULL);
    }
    cleanup_fd(&s->fd);
    cleanup_fd(&s->lock);
}

/* --- builds --- */

#define BUILDS "builds"

const char *image_build_log(struct arena *a, const char *cache, const char *key)
{
    return arena_printf(a, "%s/" BUILDS "/%.16s.log", cache, key);
}

static const char *build_file(struct arena *a, const char *cache, const char *key)
{
    return arena_printf(a, "%s/" BUILDS "/%s.json", cache, key);
}

int image_build_find(struct arena *a, const char *cache, const char *key, struct image *ret)
{
    const struct json *known = read_json(a, build_file(a, cache, key));
    const char *id = json_cstring(json_get(known, "id"), "");
    return sha256_is_hex(str_of(id)) && image_open(a, cache, id, ret, NULL) == 0 ? 0 : 1;
}

int image_build_remember(struct arena *a, const char *cache, const char *key, const char *id,
                         struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *o = json_object(a);
    json_setc(a, o, "id", json_cstr(a, id));
    int r = json_write(o, JSON_PRETTY, &text, e);
    return r < 0 ? r
                 : file_write_atomic(AT_FDCWD, build_file(a, cache, key), buf_str(&text), 0600, e);
}

/* Whether a file of builds/ is of no use any more. */
static bool is_stale(struct arena *a, const char *cache, const char *name, nsec written,
                     nsec before)
{
    struct str key = str_of(name);
    struct image image;
    if (str_ends(key, STR(".json"))) {
        return image_build_find(a, cache, arena_dup(a, str_slice(key, 0, key.len - 5)), &image) > 0;
    }
    return written < before;
}

int image_prune_builds(struct arena *a, const char *cache, nsec before, struct err *e)
{
    const char *path = arena_printf(a, "%s/" BUILDS, cache);
    nsec hour_ago = clock_wall() - 3600 * NSEC_PER_SEC; /* a build may be under way */
    DIR *d = opendir(path);
    int r = d == NULL && errno != ENOENT ? ERR_SYS_AS(e, ERR_INPUT, "open '%s'", path) : 0;
    for (const struct dirent *i = d == NULL ? NULL : readdir(d); r == 0 && i != NULL;
         i = readdir(d)) {
        struct stat st;
        if (i->d_name[0] != '.' && fstatat(dirfd(d), i->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            is_stale(a, cache, i->d_name, (nsec)st.st_mtim.tv_sec * NSEC_PER_SEC,
                     before < hour_ago ? before : hour_ago)) {
            r = file_remove_tree(dirfd(d), i->d_name, e);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return r;
}

/* --- list --- */

static int by_use(const void *a, const void *b)
{
    nsec x = ((const struct image_item *)a)->used;
    nsec y = ((const struct image_item *)b)->used;
    return x < y ? 1 : x > y ? -1 : 0;
}

static bool look_at(struct arena *a, const char *cache, const char *name, struct image_item *ret)
{
    struct stat st;
    const char *id = name + strlen(ENTRY);
    const char *about = arena_printf(a, "%s/%s/image.json", cache, name);
    *ret = (struct image_item) { .name = arena_dup(a, str_of(name)) };
    if (strncmp(name, ENTRY, strlen(ENTRY)) != 0 || !sha256_is_hex(str_of(id)) ||
        image_open(a, cache, arena_dup(a, str_of(id)), &ret->image, NULL) < 0 ||
        stat(about, &st) != 0) {
        return false;
    }
    ret->used = (nsec)st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
    ret->bytes = json_int(json_get(ret->image.about, "bytes"), 0);
    CLEANUP(fd) int fd = open(about, O_RDONLY | O_CLOEXEC);
    ret->busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
    return true;
}

int image_list(struct arena *a, const char *cache, struct image_item **ret, size_t *ret_n,
               struct err *e)
{
    enum { MOST = 10000 };
    DIR *d = opendir(cache);
    *ret_n = 0;
    *ret = NULL;
    if (d == NULL) {
        return errno == ENOENT ? 0 : ERR_SYS_AS(e, ERR_INPUT, "open '%s'", cache);
    }
    struct image_item *list = arena_array(a, MOST, sizeof *list);
    size_t n = 0;
    for (const struct dirent *i = readdir(d); i != NULL && n < MOST; i = readdir(d)) {
        n += look_at(a, cache, i->d_name, &list[n]) ? 1 : 0;
    }
    (void)closedir(d);
    if (n > 0) {
        qsort(list, n, sizeof *list, by_use);
    }
    *ret = list;
    *ret_n = n;
    return 0;
}

int image_remove(struct arena *a, const char *cache, const struct image_item *item, struct err *e)
{
    const char *dir = arena_printf(a, "%s/%s", cache, item->name);
    const char *gone = arena_printf(a, "%s/tmp/removed-%s", cache, item->name);
    CLEANUP(fd)
    int fd = open(arena_printf(a, "%s/image.json", dir), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return 1;
    }
    int r = file_mkdirs(AT_FDCWD, arena_printf(a, "%s/tmp", cache), 0700, e);
    r = r < 0 ? r : file_remove_tree(AT_FDCWD, gone, e);
    if (r == 0 && rename(dir, gone) != 0) { /* no run finds half of it */
        r = errno == ENOENT ? 0 : ERR_SYS(e, "remove '%s'", dir);
    }
    return r < 0 ? r : file_remove_tree(AT_FDCWD, gone, e);
}

int image_prune_runtime(struct arena *a, const char *cache, nsec before, struct err *e)
{
    const char *path = arena_printf(a, "%s/runtime", cache);
    nsec hour_ago = clock_wall() - 3600 * NSEC_PER_SEC;
    nsec limit = before < hour_ago ? before : hour_ago;
    DIR *d = opendir(path);
    int r = d == NULL && errno != ENOENT ? ERR_SYS_AS(e, ERR_INPUT, "open '%s'", path) : 0;
    for (const struct dirent *i = d == NULL ? NULL : readdir(d); r == 0 && i != NULL;
         i = readdir(d)) {
        struct stat st;
        if (i->d_name[0] != '.' && fstatat(dirfd(d), i->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (nsec)st.st_mtim.tv_sec * NSEC_PER_SEC < limit) {
            r = file_remove_tree(dirfd(d), i->d_name, e);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return r;
}
