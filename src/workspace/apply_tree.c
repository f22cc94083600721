/* SPDX-License-Identifier: MIT
 *
 * The files of an apply: copies that git can work on, and what came of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/sha256.h"
#include "workspace/apply_priv.h"
#include "workspace/listing.h"
#include "workspace/node.h"

#define ATTRIBUTES "/.gitattributes"

/* No symbolic link on the way is followed: beyond one there is nothing. */
enum apply_node apply_type_at(int fd, const char *path, struct stat *st)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    if (len >= sizeof parent) {
        return APPLY_NONE;
    }
    memcpy(parent, path, len);
    parent[len] = '\0';
    CLEANUP(fd) int at = node_open_dir(fd, parent, NULL);
    if (at < 0 || fstatat(at, slash == NULL ? path : slash + 1, st, AT_SYMLINK_NOFOLLOW) < 0) {
        return APPLY_NONE;
    }
    return S_ISDIR(st->st_mode) ? APPLY_DIR : S_ISLNK(st->st_mode) ? APPLY_LINK : APPLY_FILE;
}

static int digest_link(int fd, const char *path, struct arena *a, const char **ret, struct err *e)
{
    char target[PATH_MAX];
    char hex[SHA256_HEX];
    ssize_t n = readlinkat(fd, path, target, sizeof target);
    if (n < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "read '%s'", path);
    }
    sha256_hex(str_n(target, (size_t)n), hex);
    *ret = arena_printf(a, "l%s", hex);
    return 0;
}

int apply_digest(int fd, const char *path, struct arena *a, const char **ret, struct err *e)
{
    enum { CHUNK = 1 << 16 };
    struct stat st;
    char hex[SHA256_HEX];
    enum apply_node type = apply_type_at(fd, path, &st);
    *ret = "";
    if (type == APPLY_LINK) {
        return digest_link(fd, path, a, ret, e);
    }
    if (type != APPLY_FILE) {
        return 0;
    }
    CLEANUP(fd) int file = file_open_below(fd, str_of(path));
    if (file < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "open '%s'", path);
    }
    struct sha256 *s = sha256_new();
    char *chunk = arena_alloc(a, CHUNK);
    ssize_t n;
    while ((n = read(file, chunk, CHUNK)) > 0 || (n < 0 && errno == EINTR)) {
        sha256_add(s, str_n(chunk, n < 0 ? 0 : (size_t)n));
    }
    (void)sha256_end(s, hex);
    if (n < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "read '%s'", path);
    }
    *ret = arena_printf(a, "%c%s", (st.st_mode & 0100) != 0 ? 'x' : 'f', hex);
    return 0;
}

/* --- copies --- */

/* `path` is neither below a link nor below a file. */
static int copy_one(struct applying *x, const char *path, bool optional)
{
    struct stat st;
    struct stat there;
    enum apply_node type = apply_type_at(x->root_fd, path, &st);
    if (type == APPLY_NONE || apply_type_at(x->tree_fd, path, &there) != APPLY_NONE) {
        return 0;
    }
    if (type == APPLY_DIR) {
        return !optional && mkdirat(x->tree_fd, path, 0700) < 0
                   ? ERR_SYS_AS(x->e, ERR_OUTPUT, "create directory '%s'", path)
                   : 0;
    }
    if (type == APPLY_FILE && !S_ISREG(st.st_mode)) {
        return optional ? 0 : apply_reject(x, "'%s' is not a file", path);
    }
    if (optional && type != APPLY_FILE) {
        return 0;
    }
    int r = node_copy(NODE_AT(x->root_fd, path), &st, NODE_AT(x->tree_fd, path), NULL, x->e);
    if (r < 0 && x->e->sys == EACCES) {
        return apply_reject(x, "%s", x->e->msg);
    }
    return r;
}

int apply_copy_in(struct applying *x, const char *path)
{
    char part[PATH_MAX];
    struct stat st;
    size_t len = strlen(path);
    int r = 0;
    if (len + sizeof ATTRIBUTES >= sizeof part) {
        return apply_reject(x, "a path is too long: '%.100s…'", path);
    }
    for (size_t i = 0; r == 0 && x->ret->fits && i < len; i++) {
        if (path[i] != '/') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        enum apply_node type = apply_type_at(x->root_fd, part, &st);
        if (type == APPLY_NONE) {
            return 0;
        }
        r = copy_one(x, part, false);
        if (type != APPLY_DIR || r < 0) {
            return r;
        }
        memcpy(part + i, ATTRIBUTES, sizeof ATTRIBUTES);
        r = copy_one(x, part, true);
    }
    return r < 0 || !x->ret->fits ? r : copy_one(x, path, false);
}

/* --- what came of them --- */

/* git makes files anew; owner and permissions of the old one are kept. */
static void keep_attributes(struct applying *x, const char *path, const struct stat *old,
                            const struct stat *new)
{
    mode_t mode = old->st_mode & 0666;
    if ((new->st_mode & 0100) != 0) {
        mode |= (mode & 0444) >> 2;
    }
    if (old->st_uid != new->st_uid || old->st_gid != new->st_gid) {
        (void)!fchownat(x->tree_fd, path, old->st_uid, old->st_gid, AT_SYMLINK_NOFOLLOW);
    }
    (void)!fchmodat(x->tree_fd, path, mode, 0);
}

static int add_entry(struct applying *x, const char *path, enum apply_node before,
                     enum apply_node after)
{
    struct stat st;
    struct apply_entry one = { .path = path, .before = before, .after = after, .digest = "" };
    if (after == APPLY_FILE || after == APPLY_LINK) {
        int r = apply_digest(x->tree_fd, path, x->a, &one.digest, x->e);
        if (r < 0 || apply_type_at(x->tree_fd, path, &st) == APPLY_NONE) {
            return r;
        }
        one.inode = st.st_ino;
    }
    apply_txn_add(x->txn, &one);
    pathmap_put(&x->seen, x->txn->entries[x->txn->len - 1].path, x->txn->len - 1);
    return 0;
}

int apply_note_path(struct applying *x, const char *path)
{
    struct stat old;
    struct stat new;
    const char *was = "";
    const char *is = "";
    if (pathmap_has(&x->seen, path)) {
        return 0;
    }
    enum apply_node before = apply_type_at(x->root_fd, path, &old);
    enum apply_node after = apply_type_at(x->tree_fd, path, &new);
    if (before == after && (before == APPLY_NONE || before == APPLY_DIR)) {
        return 0;
    }
    if (before == APPLY_DIR && after == APPLY_NONE) {
        return 0; /* apply_note_dirs() finds out whether it is empty */
    }
    if (before == after) {
        int r = apply_digest(x->root_fd, path, x->a, &was, x->e);
        r = r < 0 ? r : apply_digest(x->tree_fd, path, x->a, &is, x->e);
        if (r < 0 || strcmp(was, is) == 0) {
            return r;
        }
    }
    if (before == APPLY_FILE && after == APPLY_FILE) {
        keep_attributes(x, path, &old, &new);
    }
    return add_entry(x, path, before, after);
}

static const struct apply_entry *find_entry(struct applying *x, const char *path)
{
    size_t i;
    return pathmap_get(&x->seen, path, &i) ? &x->txn->entries[i] : NULL;
}

/* NULL for the root. */
static const char *parent_of(struct applying *x, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? NULL : arena_dup(x->a, str_n(path, (size_t)(slash - path)));
}

/* Every entry of it goes. */
static bool is_emptied(struct applying *x, const char *path)
{
    CLEANUP(listing) struct listing names = { 0 };
    CLEANUP(fd) int fd = node_open_dir(x->root_fd, path, NULL);
    if (fd < 0 || listing_read(&names, fd, NULL) < 0) {
        return false;
    }
    for (size_t i = 0; i < names.len; i++) {
        const struct apply_entry *one =
            find_entry(x, arena_printf(x->a, "%s/%s", path, names.items[i]));
        if (one == NULL || one->after != APPLY_NONE) {
            return false;
        }
    }
    return true;
}

/* `used` are the directories that something is put into. */
static int note_new_dirs(struct applying *x, const char *path, struct pathmap *used)
{
    struct stat st;
    int r = 0;
    for (const char *dir = parent_of(x, path); r == 0 && dir != NULL && !pathmap_has(used, dir);
         dir = parent_of(x, dir)) {
        pathmap_put(used, dir, 0);
        enum apply_node before = apply_type_at(x->root_fd, dir, &st);
        if (before == APPLY_DIR || pathmap_has(&x->seen, dir)) {
            continue;
        }
        if (before != APPLY_NONE) {
            return apply_reject(x, "'%s' is not a directory", dir);
        }
        r = add_entry(x, dir, APPLY_NONE, APPLY_DIR);
    }
    return r;
}

static int note_empty_dirs(struct applying *x, const char *path, const struct pathmap *used)
{
    int r = 0;
    for (const char *dir = parent_of(x, path); r == 0 && dir != NULL; dir = parent_of(x, dir)) {
        if (pathmap_has(&x->seen, dir) || pathmap_has(used, dir) || strcmp(dir, x->keep) == 0 ||
            !is_emptied(x, dir)) {
            return 0;
        }
        r = add_entry(x, dir, APPLY_DIR, APPLY_NONE);
    }
    return r;
}

int apply_note_dirs(struct applying *x)
{
    CLEANUP(pathmap) struct pathmap used = { 0 };
    size_t n = x->txn->len;
    int r = 0;
    for (size_t i = 0; r == 0 && x->ret->fits && i < n; i++) {
        const struct apply_entry one = x->txn->entries[i];
        if (one.after != APPLY_NONE) {
            r = note_new_dirs(x, one.path, &used);
        }
    }
    for (size_t i = 0; r == 0 && x->ret->fits && i < n; i++) {
        const struct apply_entry one = x->txn->entries[i];
        if (one.after == APPLY_NONE) {
            r = note_empty_dirs(x, one.path, &used);
        }
    }
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct apply_entry *one = &x->txn->entries[i];
        if (one->before == APPLY_DIR && one->after != APPLY_NONE && !is_emptied(x, one->path)) {
            return apply_reject(x, "'%s' is a directory with other files", one->path);
        }
    }
    return r;
}

/* --- files that no patch holds --- */

static int add_file(struct applying *x, int from_fd, const char *name, const char *path)
{
    struct stat st;
    struct stat old;
    struct str base;
    enum apply_node type = apply_type_at(from_fd, name, &st);
    if (!node_is_inner_path(name) || node_has_git_part(name) || type == APPLY_NONE ||
        type == APPLY_DIR || (type == APPLY_FILE && !S_ISREG(st.st_mode))) {
        return 0;
    }
    enum apply_node before = apply_type_at(x->root_fd, path, &old);
    if (before == APPLY_DIR) {
        return apply_reject(x, "'%s' is a directory", path);
    }
    CLEANUP(fd) int at = file_open_parent(x->tree_fd, str_of(path), 0700, &base, x->e);
    if (at < 0) {
        return at;
    }
    (void)unlinkat(at, base.ptr, 0);
    int r = node_copy(NODE_AT(from_fd, name), &st, NODE_AT(at, base.ptr), NULL, x->e);
    if (r == 0 && type == APPLY_FILE) {
        (void)!fchownat(at, base.ptr, geteuid(), getegid(), AT_SYMLINK_NOFOLLOW);
        (void)!fchmodat(at, base.ptr, (st.st_mode & 0100) != 0 ? 0755 : 0644, 0);
    }
    size_t had = x->txn->len;
    r = r < 0 ? r : apply_note_path(x, path);
    int64_t changed =
        before == APPLY_NONE ? 0 : old.st_mtim.tv_sec * NSEC_PER_SEC + old.st_mtim.tv_nsec;
    if (r == 0 && x->txn->len > had && changed > x->o->files.since) {
        return apply_reject(x, "'%s' was changed since the run began", path);
    }
    x->ret->files += x->txn->len > had;
    return r;
}

int apply_add_files(struct applying *x, const char *prefix)
{
    const struct apply_files *f = &x->o->files;
    if (f->dir == NULL) {
        return 0;
    }
    CLEANUP(fd) int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return ERR_SYS_AS(x->e, ERR_INPUT, "open '%s'", f->dir);
    }
    int r = 0;
    for (size_t i = 0; r == 0 && x->ret->fits && f->paths[i] != NULL; i++) {
        const char *path =
            prefix[0] == '\0' ? f->paths[i] : arena_printf(x->a, "%s/%s", prefix, f->paths[i]);
        r = add_file(x, fd, f->places[i], path);
    }
    return r;
}
