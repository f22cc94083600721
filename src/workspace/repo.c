/* SPDX-License-Identifier: MIT
 *
 * Reading .git, HEAD, refs and the one line of the configuration that matters.
 */
#include "workspace/repo.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "workspace/git.h"
#include "workspace/listing.h"

enum {
    SMALL_MAX = 64 << 10,
    PACKED_MAX = 64 << 20, /* half a million refs */
    SYMREF_DEPTH = 5,
    ALTERNATES_MAX = 16,
};

static bool is_id(struct str s)
{
    if (s.len != 40 && s.len != 64) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        bool digit = (s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f');
        if (!digit) {
            return false;
        }
    }
    return true;
}

/* A ref names a file below the git directory: it must not lead out of it. */
static bool is_ref(struct str s)
{
    return str_starts(s, STR("refs/")) && !str_has_nul(s) && s.len < 1024 &&
           str_find(s, STR("..")) == s.len;
}

static bool read_small(const char *dir, const char *name, struct buf *out)
{
    char path[PATH_MAX];
    struct stat st;
    buf_reset(out);
    return path_join(dir, name, path, sizeof path, NULL) == 0 && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode) && file_read(AT_FDCWD, path, SMALL_MAX, out, NULL) == 0;
}

static bool find_packed(const char *common_dir, struct str ref, char out[REPO_ID_MAX])
{
    char path[PATH_MAX];
    CLEANUP(buf) struct buf text = BUF_INIT(PACKED_MAX);
    if (path_join(common_dir, "packed-refs", path, sizeof path, NULL) < 0 ||
        file_read(AT_FDCWD, path, PACKED_MAX, &text, NULL) < 0) {
        return false;
    }
    struct str rest = buf_str(&text);
    while (rest.ptr != NULL) {
        struct str line = str_split(&rest, '\n');
        struct str name = line;
        struct str id = str_split(&name, ' ');
        if (name.ptr != NULL && str_eq(name, ref) && is_id(id)) {
            (void)snprintf(out, REPO_ID_MAX, "%.*s", STR_ARG(id));
            return true;
        }
    }
    return false;
}

bool repo_head(const char *git_dir, const char *common_dir, char out[REPO_ID_MAX])
{
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    char name[1100] = "HEAD";
    out[0] = '\0';
    for (int i = 0; i < SYMREF_DEPTH; i++) {
        if (!read_small(git_dir, name, &text) && !read_small(common_dir, name, &text)) {
            return find_packed(common_dir, str_of(name), out);
        }
        struct str s = str_trim(buf_str(&text));
        if (is_id(s)) {
            (void)snprintf(out, REPO_ID_MAX, "%.*s", STR_ARG(s));
            return true;
        }
        if (!str_starts(s, STR("ref:"))) {
            return false;
        }
        s = str_trim(str_slice(s, 4, s.len));
        if (!is_ref(s)) {
            return false;
        }
        (void)snprintf(name, sizeof name, "%.*s", STR_ARG(s));
    }
    return false;
}

static const char *read_branch(struct arena *a, const char *git_dir)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    if (!read_small(git_dir, "HEAD", &text)) {
        return NULL;
    }
    struct str s = str_trim(buf_str(&text));
    s = str_starts(s, STR("ref:")) ? str_trim(str_slice(s, 4, s.len)) : STR_EMPTY;
    return is_ref(s) ? arena_dup(a, s) : NULL;
}

/* [extensions] objectformat = sha256 */
static bool is_sha256(const char *common_dir)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    bool inside = false;
    if (!read_small(common_dir, "config", &text)) {
        return false;
    }
    struct str rest = buf_str(&text);
    while (rest.ptr != NULL) {
        struct str line = str_trim(str_split(&rest, '\n'));
        if (line.len > 0 && line.ptr[0] == '[') {
            inside = line.len >= 11 && strncasecmp(line.ptr, "[extensions", 11) == 0;
        } else if (inside && line.len > 12 && strncasecmp(line.ptr, "objectformat", 12) == 0) {
            struct str value = line;
            (void)str_split(&value, '=');
            return str_eqc(str_trim(value), "sha256");
        }
    }
    return false;
}

/* "gitdir: PATH" in a file called .git, relative to where it stands. */
static const char *follow_file(struct arena *a, const char *dir)
{
    char joined[PATH_MAX];
    char absolute[PATH_MAX];
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    if (!read_small(dir, ".git", &text) || !str_starts(buf_str(&text), STR("gitdir:"))) {
        return NULL;
    }
    struct str target = str_trim(str_slice(buf_str(&text), 7, text.len));
    const char *path = arena_dup(a, target);
    bool good = target.len > 0 && path_join(dir, path, joined, sizeof joined, NULL) == 0 &&
                path_absolute(joined, absolute, sizeof absolute, NULL) == 0;
    return good ? arena_dup(a, str_of(absolute)) : NULL;
}

static const char *common_of(struct arena *a, const char *git_dir)
{
    char joined[PATH_MAX];
    char absolute[PATH_MAX];
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    if (!read_small(git_dir, "commondir", &text)) {
        return git_dir;
    }
    const char *path = arena_dup(a, str_trim(buf_str(&text)));
    bool good = path_join(git_dir, path, joined, sizeof joined, NULL) == 0 &&
                path_absolute(joined, absolute, sizeof absolute, NULL) == 0;
    return good ? arena_dup(a, str_of(absolute)) : git_dir;
}

static bool is_owned(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && file_owner_is_trusted(st.st_uid);
}

/* Asks git about safe.directory only where the owners leave it open. */
static void judge_owner(struct repo *r, bool owned)
{
    r->listed = !owned && git_lists_as_safe(r->root);
    r->foreign = !owned && !r->listed;
}

/* Whether there is one: .git is a directory, or a file that leads to one. */
static bool find_git_dir(struct arena *a, struct repo *r)
{
    struct stat st;
    char path[PATH_MAX];
    if (path_join(r->root, ".git", path, sizeof path, NULL) < 0 || lstat(path, &st) < 0 ||
        (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
        return false;
    }
    bool owned = file_owner_is_trusted(st.st_uid) && is_owned(r->root);
    r->linked = S_ISREG(st.st_mode);
    if (!r->linked) {
        r->git_dir = arena_dup(a, str_of(path));
        judge_owner(r, owned);
        return true;
    }
    judge_owner(r, owned);
    if (r->foreign) {
        return true; /* it may name any directory of this user's */
    }
    r->git_dir = follow_file(a, r->root);
    if (r->git_dir != NULL && !r->listed) {
        judge_owner(r, is_owned(r->git_dir));
    }
    return r->git_dir != NULL;
}

int repo_open(struct arena *a, const char *dir, struct repo *ret)
{
    char path[PATH_MAX];
    *ret = (struct repo) { .root = arena_dup(a, str_of(dir)), .prefix = "" };
    if (!find_git_dir(a, ret)) {
        return 0;
    }
    if (ret->git_dir == NULL || (ret->foreign && ret->linked)) {
        ret->git_dir = ret->common_dir = NULL;
        return 1;
    }
    ret->common_dir = ret->foreign ? ret->git_dir : common_of(a, ret->git_dir);
    if (path_join(ret->common_dir, "objects", path, sizeof path, NULL) < 0 ||
        !file_is_dir(AT_FDCWD, path)) {
        return 0;
    }
    (void)repo_head(ret->git_dir, ret->common_dir, ret->head);
    ret->branch = read_branch(a, ret->git_dir);
    ret->sha256 = is_sha256(ret->common_dir);
    return 1;
}

int repo_find(struct arena *a, const char *dir, struct repo *ret)
{
    char path[PATH_MAX];
    if (path_absolute(dir, path, sizeof path, NULL) < 0) {
        return 0;
    }
    size_t full = strlen(path);
    const char *whole = arena_dup(a, str_of(path));
    for (;;) {
        if (repo_open(a, path, ret) > 0) {
            size_t len = strlen(path);
            ret->prefix = len == full ? "" : whole + len + (len > 1);
            return 1;
        }
        char *slash = strrchr(path, '/');
        if (slash == NULL || path[1] == '\0') {
            return 0;
        }
        slash[slash == path ? 1 : 0] = '\0';
    }
}

static bool is_object_entry(struct str name)
{
    static const char hex[] = "0123456789abcdef";
    return (name.len == 2 && memchr(hex, name.ptr[0], 16) && memchr(hex, name.ptr[1], 16)) ||
           str_eqc(name, "pack") || str_eqc(name, "info") || str_starts(name, STR("tmp_")) ||
           str_starts(name, STR("incoming-")) || str_ends(name, STR(".lock"));
}

bool repo_is_object_dir(const char *dir)
{
    CLEANUP(fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(listing) struct listing names = { 0 };
    bool good = fd >= 0 && file_is_dir(fd, "pack") && listing_read(&names, fd, NULL) == 0;
    for (size_t i = 0; good && i < names.len; i++) {
        good = is_object_entry(str_of(names.items[i]));
    }
    return good;
}

const char *const *repo_alternates(struct arena *a, const struct repo *r)
{
    const char **list = arena_array(a, ALTERNATES_MAX + 1, sizeof *list);
    size_t len = 0;
    CLEANUP(buf) struct buf text = BUF_INIT(SMALL_MAX);
    const char *objects = r->foreign ? NULL : arena_printf(a, "%s/objects", r->common_dir);
    if (objects == NULL || !read_small(objects, "info/alternates", &text)) {
        return list;
    }
    struct str rest = buf_str(&text);
    while (rest.ptr != NULL && len < ALTERNATES_MAX) {
        char joined[PATH_MAX];
        char absolute[PATH_MAX];
        struct str line = str_trim(str_split(&rest, '\n'));
        if (line.len == 0 || line.ptr[0] == '#' || line.len >= PATH_MAX) {
            continue;
        }
        if (path_join(objects, arena_dup(a, line), joined, sizeof joined, NULL) == 0 &&
            path_absolute(joined, absolute, sizeof absolute, NULL) == 0 &&
            repo_is_object_dir(absolute)) {
            list[len++] = arena_dup(a, str_of(absolute));
        }
    }
    return list;
}
