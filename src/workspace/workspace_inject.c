/* SPDX-License-Identifier: MIT
 *
 * Files of ours in the view: instructions, skills, context. They go into the layer that is written
 * to, and their paths into the list of what no patch may hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
        return ERR(e, ERR_CONFIG, "'%s' of the workspace is no directory", path);
    }
    if (mkdirat(w->tree_fd, path, 0755) < 0) {
        struct stat here;
        bool dir = errno == EEXIST && fstatat(w->tree_fd, path, &here, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISDIR(here.st_mode);
        return dir ? 0 : ERR(e, ERR_CONFIG, "'%s' of the workspace is no directory", path);
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
        return ERR(e, ERR_CONFIG, "'%s' is no path within the workspace", path);
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
