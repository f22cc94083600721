/* SPDX-License-Identifier: MIT
 *
 * Git directories of a tree that the agent writes to directly (a copy, or the original in place).
 * The sandbox pins the files in them that decide what git executes, see draft_protect(). It can pin
 * only what exists, so a missing one is created with content that means the same as none, and
 * removed again when the run has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/listing.h"
#include "workspace/workspace_priv.h"

enum {
    GIT_DIRS_MAX = 64,  /* pinned file by file; others as a whole: the agent cannot commit there */
    MODULES_DEPTH = 16, /* names of submodules may have slashes, and submodules be nested */
    PLACEHOLDER_SIZE = 2,
};

static const struct {
    const char *name;
    const char *content; /* NULL: a directory */
} placeholders[] = {
    { "hooks", NULL },         { "info", NULL },          { "objects/info", NULL },
    { "commondir", ".\n" }, /* git refuses an empty one */
    { "config.worktree", "" }, { "info/attributes", "" }, { "objects/info/alternates", "" },
};

static void add_pinned(struct workspace *w, const char *path)
{
    json_push(w->arena, w->pinned, json_cstr(w->arena, path));
}

static void add_git_dir(struct workspace *w, const char *path)
{
    if (json_len(w->git_dirs) < GIT_DIRS_MAX) {
        json_push(w->arena, w->git_dirs, json_cstr(w->arena, path));
    } else {
        add_pinned(w, path);
        w->read_only_repositories++;
    }
}

size_t workspace_read_only_repositories(const struct workspace *w)
{
    return w->read_only_repositories;
}

static bool is_git_dir(int fd)
{
    return file_exists(fd, "HEAD") && file_is_dir(fd, "objects");
}

static void add_modules(struct workspace *w, const char *path, int depth);

/* A directory below modules/ is a git directory, or part of the name of one. */
static void add_module(struct workspace *w, const char *path, int depth)
{
    CLEANUP(fd) int fd = node_open_dir(w->tree_fd, path, NULL);
    if (fd < 0) {
        return;
    }
    if (depth > MODULES_DEPTH) {
        add_pinned(w, path);
        return;
    }
    add_git_dir(w, path); /* either way it must not be moved away */
    add_modules(w, is_git_dir(fd) ? arena_printf(w->arena, "%s/modules", path) : path, depth + 1);
}

static void add_modules(struct workspace *w, const char *path, int depth)
{
    CLEANUP(fd) int fd = node_open_dir(w->tree_fd, path, NULL);
    CLEANUP(listing) struct listing names = { 0 };
    if (fd < 0 || listing_read(&names, fd, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < names.len; i++) {
        add_module(w, arena_printf(w->arena, "%s/%s", path, names.items[i]), depth);
    }
}

/* What belongs to worktrees elsewhere is read by a git that runs there. */
static void add_worktrees(struct workspace *w, const char *git_dir)
{
    const char *path = arena_printf(w->arena, "%s/worktrees", git_dir);
    CLEANUP(fd) int fd = node_open_dir(w->tree_fd, path, NULL);
    CLEANUP(listing) struct listing names = { 0 };
    if (fd < 0 || listing_read(&names, fd, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < names.len; i++) {
        add_pinned(w, arena_printf(w->arena, "%s/%s", path, names.items[i]));
    }
}

static void find_git_dirs(struct workspace *w)
{
    w->had_git = file_exists(w->tree_fd, ".git");
    add_git_dir(w, ".git");
    add_modules(w, ".git/modules", 0);
    add_worktrees(w, ".git");
    for (size_t i = 0; i < json_len(w->nested); i++) {
        const char *path =
            arena_printf(w->arena, "%s/.git", json_cstring(json_item(w->nested, i), ""));
        add_git_dir(w, path);
        add_worktrees(w, path);
    }
}

/* The directory that `path` is in, and its last part. */
static int open_above(const struct workspace *w, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    const char *dir = slash == NULL ? "" : arena_dup(w->arena, str_n(path, (size_t)(slash - path)));
    *ret_name = slash == NULL ? path : slash + 1;
    return node_open_dir(w->tree_fd, dir, NULL);
}

static void make_placeholder(const struct workspace *w, const char *path, const char *content)
{
    const char *name;
    CLEANUP(fd) int at = open_above(w, path, &name);
    if (at < 0) {
        return;
    }
    if (content == NULL) {
        (void)mkdirat(at, name, 0755);
        return;
    }
    CLEANUP(fd)
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0) {
        (void)!file_write_all(fd, str_of(content), NULL);
    }
}

/* What is missing is on disk in workspace.json before it is made, for workspace_reopen(). A
 * directory that this user may not write to is not the agent's to write either. */
int workspace_pin(struct workspace *w, struct err *e)
{
    struct arena *a = w->arena;
    find_git_dirs(w);
    for (size_t i = 0; i < json_len(w->git_dirs); i++) {
        const char *git_dir = json_cstring(json_item(w->git_dirs, i), "");
        CLEANUP(fd) int fd = node_open_dir(w->tree_fd, git_dir, NULL);
        for (size_t k = 0; fd >= 0 && is_git_dir(fd) && k < ARRAY_LEN(placeholders); k++) {
            if (!file_exists(fd, placeholders[k].name)) {
                struct json *o = json_object(a);
                const char *path = arena_printf(a, "%s/%s", git_dir, placeholders[k].name);
                json_setc(a, o, "path", json_cstr(a, path));
                json_setc(a, o, "content", json_cstr(a, placeholders[k].content));
                json_push(a, w->placeholders, o);
            }
        }
    }
    int r = workspace_save(w, e);
    for (size_t i = 0; r == 0 && i < json_len(w->placeholders); i++) {
        const struct json *o = json_item(w->placeholders, i);
        make_placeholder(w, json_cstring(json_get(o, "path"), ""),
                         json_cstring(json_get(o, "content"), NULL));
    }
    return r;
}

static bool is_known(const struct workspace *w, struct str dir)
{
    for (size_t i = 0; i < json_len(w->nested); i++) {
        if (str_eq(json_str(json_item(w->nested, i), STR_EMPTY), dir)) {
            return true;
        }
    }
    return false;
}

void workspace_note_new_repositories(const struct workspace *w, const struct delta *d,
                                     struct arena *a, struct json *list)
{
    if (w->git_dirs == NULL || json_len(w->git_dirs) == 0) {
        return; /* nothing is pinned: there is no sandbox, or it is an overlay */
    }
    if (!w->had_git && file_exists(w->tree_fd, ".git")) {
        json_push(a, list, json_cstr(a, "."));
    }
    for (size_t i = 0; i < d->len; i++) {
        struct str path = str_of(d->items[i].path);
        struct str dir = str_slice(path, 0, path.len < 5 ? 0 : path.len - 5);
        if (d->items[i].kind != DELTA_REMOVE && str_ends(path, STR("/.git")) && !is_known(w, dir)) {
            json_push(a, list, json_string(a, dir));
        }
    }
}

static void remove_placeholder(const struct workspace *w, const char *path, bool dir)
{
    const char *name;
    struct stat st;
    CLEANUP(fd) int at = node_is_inner_path(path) ? open_above(w, path, &name) : -1;
    if (at < 0) {
        return;
    }
    if (dir) {
        (void)unlinkat(at, name, AT_REMOVEDIR); /* unless something is in it by now */
    } else if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
               st.st_size <= PLACEHOLDER_SIZE) {
        (void)unlinkat(at, name, 0);
    }
}

void workspace_unpin(struct workspace *w)
{
    for (size_t i = json_len(w->placeholders); w->tree_fd >= 0 && i > 0; i--) {
        const struct json *o = json_item(w->placeholders, i - 1);
        remove_placeholder(w, json_cstring(json_get(o, "path"), ""),
                           json_cstring(json_get(o, "content"), NULL) == NULL);
    }
    w->placeholders = json_array(w->arena);
}
