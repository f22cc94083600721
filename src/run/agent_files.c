/* SPDX-License-Identifier: MIT
 *
 * The workspace from outside: through the sandbox' own descriptor where there is one, since an
 * overlay is mounted only in there.
 */
#include "run/agent_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/file.h"
#include "base/id.h"
#include "run/run_priv.h"

int agent_files_root(struct run *run)
{
    int inside = run->confine.box == NULL ? -1 : sandbox_workspace(run->confine.box);
    if (inside >= 0) {
        return inside;
    }
    if (run->files_fd < 0) {
        run->files_fd = open(run->paths.view, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return run->files_fd;
}

void agent_files_done(struct run *run)
{
    cleanup_fd(&run->files_fd);
}

/* The path below the root: no ".." in it, nothing before it. */
static int inner_path(const struct run *run, struct str path, char out[PATH_MAX], struct err *e)
{
    struct str root = str_of(run->paths.view);
    if (path.len > 0 && path.ptr[0] == '/') {
        bool below = str_starts(path, root) && (path.len == root.len || path.ptr[root.len] == '/');
        if (!below) {
            return ERR(e, ERR_DENIED, "'%.*s' is outside of the workspace", STR_ARG(path));
        }
        path = str_slice(path, root.len, path.len);
    }
    size_t n = 0;
    for (struct str rest = path; rest.ptr != NULL && rest.len > 0;) {
        struct str part = str_split(&rest, '/');
        if (part.len == 0 || str_eqc(part, ".")) {
            continue;
        }
        if (str_eqc(part, "..") || memchr(part.ptr, '\0', part.len) != NULL) {
            return ERR(e, ERR_DENIED, "'%.*s' is outside of the workspace", STR_ARG(path));
        }
        int len = snprintf(out + n, PATH_MAX - n, "%s%.*s", n == 0 ? "" : "/", STR_ARG(part));
        n += (size_t)len;
        if (n >= PATH_MAX) {
            return ERR(e, ERR_LIMIT, "the path is too long");
        }
    }
    return n == 0 ? ERR(e, ERR_INPUT, "'%.*s' is not a file", STR_ARG(path)) : 0;
}

static int open_below(int root, const char *path, uint64_t flags, mode_t mode)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    return file_open_how(root, path, &how);
}

int agent_files_open(int root, const char *path, uint64_t flags)
{
    return open_below(root, path, flags, 0);
}

bool agent_files_exist(void *arg, struct str path)
{
    struct run *run = arg;
    char inner[PATH_MAX];
    int root = agent_files_root(run);
    if (root < 0 || inner_path(run, path, inner, NULL) < 0) {
        return false;
    }
    CLEANUP(fd) int fd = open_below(root, inner, O_PATH, 0);
    return fd >= 0;
}

int agent_files_dir(struct run *run, struct str path, char ret[PATH_MAX], struct err *e)
{
    char inner[PATH_MAX] = ".";
    struct err why = { 0 };
    struct stat st;
    int root = agent_files_root(run);
    int r = root < 0 ? ERR(e, ERR_INPUT, "there is no workspace") : 0;
    if (r == 0 && inner_path(run, path, inner, &why) < 0 && why.code != ERR_INPUT) {
        return ERR(e, why.code, "%s", why.msg); /* ERR_INPUT: it is the workspace itself */
    }
    CLEANUP(fd) int fd = r < 0 ? -1 : open_below(root, inner, O_PATH | O_DIRECTORY, 0);
    if (r == 0 && (fd < 0 || fstat(fd, &st) < 0)) {
        r = errno == EXDEV ? ERR(e, ERR_DENIED, "'%s' points outside of the workspace", inner)
                           : ERR_SYS_AS(e, ERR_INPUT, "open '%s'", inner);
    }
    return r < 0 ? r : path_join(run->paths.view, inner, ret, PATH_MAX, e);
}

/* --- reading --- */

/* Lines `line` to `line + limit`, with their ends. */
static struct str lines_of(struct str text, int64_t line, int64_t limit)
{
    size_t at = 0;
    size_t end;
    for (int64_t n = 1; n < line && at < text.len; n++) {
        at += str_find(str_slice(text, at, text.len), STR("\n")) + 1;
    }
    at = at > text.len ? text.len : at;
    end = limit <= 0 ? text.len : at;
    for (int64_t n = 0; n < limit && end < text.len; n++) {
        end += str_find(str_slice(text, end, text.len), STR("\n")) + 1;
    }
    return str_slice(text, at, end > text.len ? text.len : end);
}

int agent_files_read(struct run *run, struct str path, int64_t line, int64_t limit, struct buf *ret,
                     struct err *e)
{
    char inner[PATH_MAX];
    struct stat st;
    CLEANUP(buf) struct buf text = BUF_INIT(AGENT_FILE_MAX);
    int root = agent_files_root(run);
    int r = root < 0 ? ERR(e, ERR_INPUT, "there is no workspace") : inner_path(run, path, inner, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd) int fd = open_below(root, inner, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0 || fstat(fd, &st) < 0) {
        return errno == EXDEV ? ERR(e, ERR_DENIED, "'%s' points outside of the workspace", inner)
                              : ERR_SYS_AS(e, ERR_INPUT, "open '%s'", inner);
    }
    if (!S_ISREG(st.st_mode)) {
        return ERR(e, ERR_INPUT, "'%s' is not a file", inner);
    }
    r = file_read_fd(fd, inner, AGENT_FILE_MAX, &text, e);
    return r < 0 ? r : buf_append(ret, lines_of(buf_str(&text), line, limit), e);
}

/* --- writing --- */

/* What the agent's own programs would own. */
static void give_away(struct run *run, int fd)
{
    uid_t uid;
    gid_t gid;
    if (run->confine.box != NULL) {
        sandbox_owner(run->confine.box, &uid, &gid);
        (void)!fchown(fd, uid, gid);
    }
}

/* The directory of the file, made if it is missing; `name` is what is left of the path. */
static int open_parent(struct run *run, int root, char *inner, const char **name, struct err *e)
{
    char *slash = strrchr(inner, '/');
    *name = slash == NULL ? inner : slash + 1;
    int at = open_below(root, ".", O_RDONLY | O_DIRECTORY, 0);
    if (slash == NULL) {
        return at < 0 ? ERR_SYS(e, "open the workspace") : at;
    }
    *slash = '\0';
    for (char *p = inner; at >= 0 && p != NULL;) {
        char *end = strchr(p, '/');
        if (end != NULL) {
            *end = '\0';
        }
        bool made = mkdirat(at, p, 0755) == 0;
        int next = open_below(at, p, O_RDONLY | O_DIRECTORY, 0);
        if (next >= 0 && made) {
            give_away(run, next);
        }
        int why = errno;
        (void)close(at);
        errno = why;
        at = next;
        p = end == NULL ? NULL : end + 1;
    }
    return at < 0 ? ERR_SYS_AS(e, ERR_DENIED, "open the directory of '%s'", *name) : at;
}

int agent_files_write(struct run *run, struct str path, struct str text, struct err *e)
{
    char inner[PATH_MAX];
    char id[ID_LEN];
    const char *name;
    struct stat st = { .st_mode = 0644 };
    int root = agent_files_root(run);
    if (run->confine.policy.mode == SANDBOX_READ_ONLY) {
        return ERR(e, ERR_DENIED, "the sandbox is read-only");
    }
    int r = root < 0 ? ERR(e, ERR_INPUT, "there is no workspace") : inner_path(run, path, inner, e);
    if (r < 0) {
        return r;
    }
    if (str_starts(str_of(inner), STR(".git/"))) {
        return ERR(e, ERR_DENIED, "'%s' belongs to git", inner);
    }
    CLEANUP(fd) int dir = open_parent(run, root, inner, &name, e);
    if (dir < 0) {
        return dir;
    }
    (void)fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
    (void)id_new(id);
    const char *temporary = arena_printf(run->arena, ".%s.tmp", id);
    CLEANUP(fd)
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    S_ISREG(st.st_mode) ? st.st_mode & 0777 : 0644);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_DENIED, "create a file beside '%s'", name);
    }
    give_away(run, fd);
    r = file_write_all(fd, text, e);
    if (r == 0 && renameat(dir, temporary, dir, name) < 0) {
        r = ERR_SYS(e, "replace '%s'", name);
    }
    if (r < 0) {
        (void)unlinkat(dir, temporary, 0);
    }
    return r;
}
