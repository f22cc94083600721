/* SPDX-License-Identifier: MIT
 *
 * Unpacking and reading of agent bundles; see bundle.h. The archive may come from anywhere: entries
 * are created with openat() below the new directory, no link is followed, and links may only point
 * to what is inside.
 */
#include "adapters/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/inflate.h"
#include "base/sha256.h"
#include "data/tar.h"
#include "data/zip.h"

enum { MANIFEST_MAX = 1 << 20 };
#define ARCHIVE_MAX  ((uint64_t)1 << 30)
#define UNPACKED_MAX ((uint64_t)4 << 30)

/* --- unpacking --- */

struct unpacking {
    int root_fd;
    int file_fd; /* being written; -1: none */
    struct tar_reader *tar;
    struct err *e;
    int result;
};

static int make_file(const struct unpacking *u, const struct tar_entry *entry, struct err *e)
{
    struct str base;
    CLEANUP(fd) int parent = file_open_parent(u->root_fd, entry->name, 0755, &base, e);
    if (parent < 0) {
        return parent;
    }
    mode_t mode = (entry->mode & 0111) != 0 ? 0755 : 0644;
    int fd = openat(parent, base.ptr, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    return fd < 0 ? ERR_SYS_AS(e, ERR_CONFIG, "create '%s'", entry->name.ptr) : fd;
}

static int make_dir(const struct unpacking *u, const struct tar_entry *entry, struct err *e)
{
    struct str base;
    CLEANUP(fd) int parent = file_open_parent(u->root_fd, entry->name, 0755, &base, e);
    if (parent < 0) {
        return parent;
    }
    return mkdirat(parent, base.ptr, 0755) < 0 && errno != EEXIST
               ? ERR_SYS_AS(e, ERR_CONFIG, "create '%s'", entry->name.ptr)
               : 0;
}

/* Does the target, seen from the directory of the link, stay inside? */
static bool stays_inside(struct str name, struct str target)
{
    long depth = -1;
    if (target.len == 0 || target.ptr[0] == '/') {
        return false;
    }
    while (name.ptr != NULL) {
        (void)str_split(&name, '/');
        depth++;
    }
    while (target.ptr != NULL) {
        struct str part = str_split(&target, '/');
        if (str_eqc(part, "..")) {
            depth--;
        } else if (part.len > 0 && !str_eqc(part, ".")) {
            depth++;
        }
        if (depth < 0) {
            return false;
        }
    }
    return true;
}

static int make_symlink(const struct unpacking *u, const struct tar_entry *entry, struct err *e)
{
    struct str base;
    if (!stays_inside(entry->name, entry->target)) {
        return ERR(e, ERR_CONFIG, "link '%s' leads out of the bundle", entry->name.ptr);
    }
    CLEANUP(fd) int parent = file_open_parent(u->root_fd, entry->name, 0755, &base, e);
    if (parent < 0) {
        return parent;
    }
    return symlinkat(entry->target.ptr, parent, base.ptr) < 0
               ? ERR_SYS_AS(e, ERR_CONFIG, "create '%s'", entry->name.ptr)
               : 0;
}

/* A copy: nothing else shares the file then. */
static int make_hardlink(const struct unpacking *u, const struct tar_entry *entry, struct err *e)
{
    struct str target = entry->target;
    while (str_starts(target, STR("./"))) {
        target = str_slice(target, 2, target.len);
    }
    CLEANUP(fd) int from = file_open_below(u->root_fd, target);
    struct stat st;
    if (from < 0 || fstat(from, &st) != 0 || !S_ISREG(st.st_mode)) {
        return ERR(e, ERR_CONFIG, "link '%s' names a file that the bundle does not have",
                   entry->name.ptr);
    }
    struct tar_entry file = *entry;
    file.mode = st.st_mode;
    int to = make_file(u, &file, e);
    int r = to < 0 ? to : file_copy(from, to, UNPACKED_MAX, e);
    cleanup_fd(&to);
    return r;
}

static int make_entry(struct unpacking *u, const struct tar_entry *entry, struct err *e)
{
    switch (entry->kind) {
    case TAR_DIR:
        return make_dir(u, entry, e);
    case TAR_SYMLINK:
        return make_symlink(u, entry, e);
    case TAR_HARDLINK:
        return make_hardlink(u, entry, e);
    case TAR_FILE:
        break;
    }
    int fd = make_file(u, entry, e);
    u->file_fd = fd < 0 ? -1 : fd;
    return fd < 0 ? fd : 0;
}

static int on_entry(void *ctx, const struct tar_entry *entry, struct err *e)
{
    struct unpacking *u = ctx;
    if (entry->name.len == 0) {
        return 0; /* the bundle itself */
    }
    const char *fault = zip_name_fault(entry->name);
    if (fault != NULL) {
        return ERR(e, ERR_CONFIG, "entry '%.*s' %s", STR_ARG(str_slice(entry->name, 0, 200)),
                   fault);
    }
    int r = make_entry(u, entry, e);
    if (r == -ERR_OUTPUT) { /* a parent that is a link or a file: the archive is at fault */
        e->code = ERR_CONFIG;
        r = -ERR_CONFIG;
    }
    return r;
}

static int on_data(void *ctx, struct str bytes, struct err *e)
{
    const struct unpacking *u = ctx;
    return file_write_all(u->file_fd, bytes, e);
}

static int on_done(void *ctx, struct err *e)
{
    struct unpacking *u = ctx;
    (void)e;
    cleanup_fd(&u->file_fd);
    return 0;
}

static void on_inflated(void *ctx, struct str bytes)
{
    struct unpacking *u = ctx;
    u->result = u->result < 0 ? u->result : tar_reader_feed(u->tar, bytes, u->e);
}

static int unpack(struct str archive, int root_fd, struct err *e)
{
    struct unpacking u = { .root_fd = root_fd, .file_fd = -1, .e = e };
    const struct tar_port port = { on_entry, on_data, on_done, &u };
    u.tar = tar_reader_new(&port, &(struct tar_limits) { .max_total = UNPACKED_MAX });
    struct inflate *x = inflate_new(UNPACKED_MAX, on_inflated, &u);
    int r = 0;
    while (r == 0 && u.result == 0 && archive.len > 0) {
        struct str piece = str_slice(archive, 0, 1 << 20);
        struct err damaged;
        r = inflate_feed(x, piece, &damaged);
        if (r < 0 && u.result == 0) {
            *e = damaged;
        }
        archive = str_slice(archive, piece.len, archive.len);
    }
    r = u.result < 0 ? u.result : r;
    if (r == 0 && !inflate_ended(x)) {
        r = ERR(e, ERR_PARSE, "compressed data is cut off");
    }
    r = r < 0 ? r : tar_reader_end(u.tar, e);
    cleanup_fd(&u.file_fd);
    (void)inflate_free(x);
    (void)tar_reader_free(u.tar);
    return r;
}

/* A damaged or hostile archive is wrong as a file; it is not a failure of cinch. */
static int blame_file(const char *path, int r, struct err *e)
{
    if (r == -ERR_PARSE || r == -ERR_LIMIT || r == -ERR_DENIED) {
        e->code = ERR_CONFIG;
    }
    return err_wrap(e, "agent bundle '%s'", path);
}

/* Unpacked beside its place and moved there whole: what is in the cache is complete. */
static int unpack_to(struct arena *a, struct str archive, const char *cache, const char *dir,
                     struct err *e)
{
    char *temporary = arena_dup(a, str_of(arena_printf(a, "%s/.new-XXXXXX", cache)));
    int r = file_mkdirs(AT_FDCWD, cache, 0700, e);
    if (r < 0) {
        return r;
    }
    if (mkdtemp(temporary) == NULL) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", temporary);
    }
    CLEANUP(fd) int fd = open(temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = fd < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", temporary) : unpack(archive, fd, e);
    if (r == 0 && rename(temporary, dir) < 0 && errno != EEXIST && errno != ENOTEMPTY) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", dir);
    }
    if (file_exists(AT_FDCWD, temporary)) { /* failed, or another process was faster */
        (void)!file_remove_tree(AT_FDCWD, temporary, NULL);
    }
    return r;
}

static int unpack_once(struct arena *a, const char *path, const char *cache, const char **ret,
                       struct err *e)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    char hash[SHA256_HEX];
    if (fd < 0 || fstat(fd, &st) < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "agent bundle '%s'", path);
    }
    if (!S_ISREG(st.st_mode) || st.st_size == 0 || (uint64_t)st.st_size > ARCHIVE_MAX) {
        return ERR(e, ERR_CONFIG, "agent bundle '%s' is not a .tar.gz file", path);
    }
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        return ERR_SYS_AS(e, ERR_INPUT, "agent bundle '%s'", path);
    }
    struct str archive = str_n(bytes, (size_t)st.st_size);
    sha256_hex(archive, hash);
    *ret = arena_printf(a, "%s/%s", cache, hash);
    int r = file_is_dir(AT_FDCWD, *ret) ? 0 : unpack_to(a, archive, cache, *ret, e);
    (void)munmap(bytes, (size_t)st.st_size);
    return r < 0 ? blame_file(path, r, e) : 0;
}

/* --- the manifest --- */

/* Names of one architecture, as Go, Node and the kernel call it. */
static bool is_this_machine(struct str arch)
{
    static const char *const same[][3] = { { "amd64", "x64", "x86_64" },
                                           { "arm64", "arm64", "aarch64" } };
    struct utsname u;
    if (arch.len == 0 || uname(&u) < 0 || str_eqc(arch, u.machine)) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        bool named = false;
        bool here = false;
        for (size_t k = 0; k < ARRAY_LEN(same[i]); k++) {
            named = named || str_eqc(arch, same[i][k]);
            here = here || strcmp(u.machine, same[i][k]) == 0;
        }
        if (named) {
            return here;
        }
    }
    return false;
}

static int check_env(const struct json *env, struct err *e)
{
    if (env != NULL && !json_is(env, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "manifest.json: 'env' must be a map");
    }
    for (size_t i = 0; i < json_len(env); i++) {
        const struct json_member *m = &env->object.members[i];
        if (!json_is(m->value, JSON_STRING) || str_has_nul(m->value->string)) {
            return ERR(e, ERR_CONFIG, "manifest.json: variable '%.*s' must be a string",
                       STR_ARG(str_slice(m->key, 0, 80)));
        }
    }
    return 0;
}

static int check_manifest(const struct json *m, struct err *e)
{
    const struct json *version = json_get(m, "bundleVersion");
    struct str platform = json_str(json_get(m, "platform"), STR_EMPTY);
    struct str arch = json_str(json_get(m, "arch"), STR_EMPTY);
    if (!json_is(m, JSON_OBJECT)) {
        return ERR(e, ERR_CONFIG, "manifest.json must be a JSON object");
    }
    if (!str_eqc(json_str(version, STR_EMPTY), "1")) {
        return ERR(e, ERR_CONFIG, "manifest.json: cinch reads bundleVersion \"1\"");
    }
    if ((platform.len > 0 && !str_eqc(platform, "linux")) || !is_this_machine(arch)) {
        return ERR(e, ERR_UNAVAILABLE, "it is for %.*s/%.*s, not for this machine",
                   STR_ARG(str_slice(platform, 0, 40)), STR_ARG(str_slice(arch, 0, 40)));
    }
    return check_env(json_get(m, "env"), e);
}

static int find_entry(struct arena *a, int dir_fd, const struct json *m, struct bundle *b,
                      struct err *e)
{
    struct str entry = json_str(json_get(m, "entry"), STR("bin/agent"));
    struct stat st;
    if (zip_name_fault(entry) != NULL) {
        return ERR(e, ERR_CONFIG, "manifest.json: entry '%.*s' is not a path inside the bundle",
                   STR_ARG(str_slice(entry, 0, 200)));
    }
    CLEANUP(fd) int fd = file_open_below(dir_fd, entry);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return ERR(e, ERR_CONFIG, "its entry point '%.*s' is missing", STR_ARG(entry));
    }
    if ((st.st_mode & 0100) == 0) {
        return ERR(e, ERR_CONFIG, "its entry point '%.*s' is not executable", STR_ARG(entry));
    }
    b->entry = arena_printf(a, "%s/%.*s", b->dir, STR_ARG(entry));
    return 0;
}

static int read_manifest(struct arena *a, struct bundle *b, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(MANIFEST_MAX);
    CLEANUP(fd) int dir = open(b->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(fd) int fd = dir < 0 ? -1 : file_open_below(dir, STR("manifest.json"));
    struct json *m;
    if (fd < 0 || file_read_fd(fd, "manifest.json", MANIFEST_MAX, &text, NULL) < 0) {
        return ERR(e, ERR_CONFIG, "it has no manifest.json");
    }
    if (json_parse(a, buf_str(&text), NULL, &m, e) < 0) {
        return err_wrap(e, "manifest.json");
    }
    int r = check_manifest(m, e);
    b->name = json_cstring(json_get(m, "name"), "agent");
    b->version = json_cstring(json_get(m, "version"), NULL);
    b->env = json_get(m, "env");
    return r < 0 ? r : find_entry(a, dir, m, b, e);
}

/* --- both --- */

const char *bundle_cache(struct arena *a)
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (base != NULL && base[0] == '/') {
        return arena_printf(a, "%s/cinch/bundles", base);
    }
    return home == NULL || home[0] != '/' ? NULL : arena_printf(a, "%s/.cache/cinch/bundles", home);
}

int bundle_open(struct arena *a, const char *path, const char *cache, struct bundle *ret,
                struct err *e)
{
    struct err unused;
    e = e == NULL ? &unused : e;
    *ret = (struct bundle) { 0 };
    if (cache == NULL) {
        return ERR(e, ERR_UNAVAILABLE,
                   "agent bundle '%s': there is no home directory to unpack it "
                   "in: set HOME or XDG_CACHE_HOME",
                   path);
    }
    int r = unpack_once(a, path, cache, &ret->dir, e);
    if (r < 0) {
        return r;
    }
    r = read_manifest(a, ret, e);
    return r < 0 ? blame_file(path, r, e) : 0;
}
