/* SPDX-License-Identifier: MIT
 *
 * Files of ours in the view: instructions, skills, context. They go into the layer that is written
 * to, and their paths into the list of what no patch may hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/workspace_priv.h"

void workspace_hide(struct workspace *w, const char *path)
{
    json_push(w->arena, w->hidden, json_cstr(w->arena, path));
}

/* A directory of the layer that stands over one of the tree below must look like it. */
static int make_level(struct workspace *w, const char *path, struct err *e)
{
    struct stat st;
    bool below = w->layered && fstatat(w->base_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (below && !S_ISDIR(st.st_mode)) {
        return ERR(e, ERR_CONFIG, "'%s' of the workspace is not a directory", path);
    }
    if (mkdirat(w->tree_fd, path, 0755) < 0) {
        struct stat here;
        bool dir = errno == EEXIST && fstatat(w->tree_fd, path, &here, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISDIR(here.st_mode);
        return dir ? 0 : ERR(e, ERR_CONFIG, "'%s' of the workspace is not a directory", path);
    }
    return below ? node_copy_attributes(NODE_AT(w->base_fd, path), &st, NODE_AT(w->tree_fd, path),
                                        NULL, e)
                 : 0;
}

static int make_way(struct workspace *w, const char *path, struct err *e)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    int r = 0;
    for (size_t i = 1; r == 0 && i < len && i < sizeof part; i++) {
        if (path[i] == '/') {
            memcpy(part, path, i);
            part[i] = '\0';
            r = make_level(w, part, e);
        }
    }
    return r;
}

int workspace_inject(struct workspace *w, const char *path, struct str content, mode_t mode,
                     struct err *e)
{
    struct stat st;
    if (path[0] == '\0' || !node_is_inner_path(path) || strlen(path) > PATH_MAX - NAME_MAX) {
        return ERR(e, ERR_CONFIG, "'%s' is not a path inside of the workspace", path);
    }
    if (w->kind == WORKSPACE_IN_PLACE && fstatat(w->tree_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        return ERR(e, ERR_EXISTS, "'%s' exists, and in place it would be overwritten", path);
    }
    int r = make_way(w, path, e);
    char dir[PATH_MAX] = "";
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        memcpy(dir, path, (size_t)(slash - path));
        dir[slash - path] = '\0';
    }
    CLEANUP(fd) int at = r < 0 ? r : node_open_dir(w->tree_fd, dir, e);
    if (at < 0) {
        return at;
    }
    r = file_write_atomic(at, slash == NULL ? path : slash + 1, content, mode, e);
    if (r < 0) {
        return r;
    }
    if (w->layered && fstat(w->base_fd, &st) == 0 && (st.st_uid != 0 || st.st_gid != 0)) {
        (void)!fchownat(at, slash == NULL ? path : slash + 1, st.st_uid, st.st_gid,
                        AT_SYMLINK_NOFOLLOW);
    }
    workspace_hide(w, path);
    return workspace_save(w, e);
}

/* Does the upper layer hide what is below it at `path`, or somewhere on the way there? */
static bool is_covered(const struct workspace *w, const char *path)
{
    char part[PATH_MAX];
    char value[8];
    size_t len = strlen(path);
    for (size_t i = 1; i <= len && i < sizeof part; i++) {
        struct stat st;
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        if (fstatat(w->tree_fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            return false; /* from here on everything shows through */
        }
        const char *slash = strrchr(part, '/');
        const char *name = slash == NULL ? part : slash + 1;
        char dir[PATH_MAX] = "";
        memcpy(dir, part, slash == NULL ? 0 : (size_t)(slash - part));
        CLEANUP(fd) int fd = node_open_dir(w->tree_fd, dir, NULL);
        if (!S_ISDIR(st.st_mode) || fd < 0 ||
            node_mark(fd, name, w->marks, "opaque", value, sizeof value) > 0 ||
            node_mark(fd, name, w->marks, "redirect", value, sizeof value) >= 0) {
            return true;
        }
    }
    return false;
}

/* The path as it is called in the tree, whose directory the agent's may be below. */
static bool full_path(const struct workspace *w, struct str path, char ret[PATH_MAX])
{
    bool deeper = w->within != NULL && w->within[0] != '\0';
    int n = deeper ? snprintf(ret, PATH_MAX, "%s/%.*s", w->within, STR_ARG(path))
                   : snprintf(ret, PATH_MAX, "%.*s", STR_ARG(path));
    errno = ENOENT;
    return n >= 0 && n < PATH_MAX && node_is_inner_path(ret);
}

int workspace_leave_out(struct workspace *w, const char *path, struct err *e)
{
    char full[PATH_MAX];
    if (!full_path(w, str_of(path), full)) {
        return ERR(e, ERR_CONFIG, "'%s' is not a path within the workspace", path);
    }
    workspace_hide(w, arena_dup(w->arena, str_of(full)));
    return workspace_save(w, e);
}

int workspace_open_file(const struct workspace *w, struct str path)
{
    char full[PATH_MAX];
    if (!full_path(w, path, full)) {
        return -1;
    }
    int fd = file_open_below(w->tree_fd, str_of(full));
    return fd >= 0 || !w->layered || is_covered(w, full)
               ? fd
               : file_open_below(w->base_fd, str_of(full));
}

int workspace_open_dir(const struct workspace *w, struct str path)
{
    char full[PATH_MAX];
    if (!full_path(w, path, full)) {
        return -1;
    }
    CLEANUP(fd) int at = fcntl(w->tree_fd, F_DUPFD_CLOEXEC, 0);
    for (struct str rest = str_of(full); at >= 0 && rest.len > 0;) {
        struct str part = str_split(&rest, '/');
        char name[NAME_MAX + 1];
        (void)snprintf(name, sizeof name, "%.*s", STR_ARG(part));
        int next = part.len == 0
                       ? fcntl(at, F_DUPFD_CLOEXEC, 0)
                       : openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    return TAKE_FD(at);
}
