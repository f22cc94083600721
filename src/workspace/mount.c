/* SPDX-License-Identifier: MIT
 *
 * Walks the host path and injects what the rules let through.
 */
#include "workspace/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/listing.h"
#include "workspace/workspace.h"

/* A single file; what is larger belongs into the workspace itself. */
#define FILE_BYTES ((size_t)1 << 30)
enum { DEPTH_MAX = 64 };

struct mounting {
    struct workspace *w;
    const struct mount *m;
    struct arena *a;
    const char *root; /* host path, resolved */
    const char *target;
    struct mount_report *report;
    struct err *e;
};

static bool is_within(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/') {
        len--;
    }
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0' || len == 1);
}

static bool matches(const char *const *patterns, const char *path)
{
    for (; patterns != NULL && *patterns != NULL; patterns++) {
        if (fnmatch(*patterns, path, 0) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct mount *m, const char *path)
{
    bool all = m->include == NULL || m->include[0] == NULL;
    return !matches(m->exclude, path) && (all || matches(m->include, path));
}

static int inject(struct mounting *x, const char *full, const char *relative, mode_t mode)
{
    CLEANUP(buf) struct buf text = BUF_INIT(FILE_BYTES);
    const char *to =
        relative[0] == '\0' ? x->target : arena_printf(x->a, "%s/%s", x->target, relative);
    int r = file_read(AT_FDCWD, full, FILE_BYTES, &text, x->e);
    if (r < 0) {
        return r;
    }
    x->report->files++;
    x->report->bytes += (int64_t)text.len;
    if (x->m->max_bytes > 0 && x->report->bytes > x->m->max_bytes) {
        return ERR(x->e, ERR_LIMIT, "mount '%s' is larger than its budget of %lld bytes",
                   x->m->host_path, (long long)x->m->max_bytes);
    }
    if (json_len(x->report->preview) < MOUNT_PREVIEW) {
        json_push(x->a, x->report->preview, json_cstr(x->a, to));
    }
    return workspace_inject(x->w, to, buf_str(&text), mode & 0777, x->e);
}

static int walk(struct mounting *x, const char *dir, const char *relative, int depth);

static int visit(struct mounting *x, const char *full, const char *relative, int depth)
{
    struct stat st;
    char real[PATH_MAX];
    if (lstat(full, &st) < 0) {
        return 0;
    }
    if (S_ISLNK(st.st_mode)) {
        bool good = x->m->follow_symlinks && realpath(full, real) != NULL &&
                    is_within(real, x->root) && stat(real, &st) == 0 && S_ISREG(st.st_mode);
        if (!good) {
            return 0;
        }
        full = arena_dup(x->a, str_of(real));
    }
    if (S_ISDIR(st.st_mode)) {
        return walk(x, full, relative, depth + 1);
    }
    return S_ISREG(st.st_mode) && is_wanted(x->m, relative) ? inject(x, full, relative, st.st_mode)
                                                            : 0;
}

static int walk(struct mounting *x, const char *dir, const char *relative, int depth)
{
    CLEANUP(fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(listing) struct listing names = { 0 };
    if (depth > DEPTH_MAX) {
        return ERR(x->e, ERR_LIMIT, "mount '%s' is nested too deep", x->m->host_path);
    }
    int r =
        fd < 0 ? ERR_SYS_AS(x->e, ERR_INPUT, "mount '%s'", dir) : listing_read(&names, fd, x->e);
    for (size_t i = 0; r == 0 && i < names.len; i++) {
        const char *full = arena_printf(x->a, "%s/%s", dir, names.items[i]);
        const char *inner = relative[0] == '\0'
                                ? arena_dup(x->a, str_of(names.items[i]))
                                : arena_printf(x->a, "%s/%s", relative, names.items[i]);
        r = visit(x, full, inner, depth);
    }
    return r;
}

static int check(const struct mount *m, const char *const *roots, char real[PATH_MAX],
                 struct stat *st, struct err *e)
{
    if (lstat(m->host_path, st) < 0 || realpath(m->host_path, real) == NULL) {
        return ERR_SYS_AS(e, ERR_INPUT, "mount '%s'", m->host_path);
    }
    bool link = S_ISLNK(st->st_mode);
    if (stat(real, st) < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "mount '%s'", m->host_path);
    }
    if (link && !S_ISDIR(st->st_mode)) {
        return ERR(e, ERR_DENIED, "mount '%s' is a symbolic link to a file", m->host_path);
    }
    bool allowed = roots == NULL || roots[0] == NULL;
    for (size_t i = 0; !allowed && roots[i] != NULL; i++) {
        char root[PATH_MAX];
        allowed = realpath(roots[i], root) != NULL && is_within(real, root);
    }
    return allowed ? 0
                   : ERR(e, ERR_DENIED, "mount '%s' is outside of the allowed roots", m->host_path);
}

int mount_copy(struct workspace *w, const struct mount *m, const char *const *roots,
               struct arena *a, struct mount_report *ret, struct err *e)
{
    char real[PATH_MAX];
    struct stat st;
    *ret = (struct mount_report) { .preview = json_array(a) };
    int r = check(m, roots, real, &st, e);
    if (r < 0) {
        return r;
    }
    const char *target = m->mount_path;
    if (target == NULL || target[0] == '\0') {
        target = arena_dup(a, path_base(str_of(real)));
    }
    if (!node_is_inner_path(target) || strcmp(target, ".git") == 0 ||
        strncmp(target, ".git/", 5) == 0) {
        return ERR(e, ERR_CONFIG, "mount path '%s' is not inside of the workspace", target);
    }
    struct mounting x = {
        .w = w, .m = m, .a = a, .root = real, .target = target, .report = ret, .e = e
    };
    r = S_ISDIR(st.st_mode) ? walk(&x, real, "", 0) : inject(&x, real, "", st.st_mode);
    return r < 0 ? err_wrap(e, "mount '%s'", m->host_path) : 0;
}
