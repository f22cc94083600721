/* SPDX-License-Identifier: MIT
 *
 * Whole-file reads and writes, directories, and the few path operations; see file.h.
 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/id.h"

/* A file is opened without blocking, since a workspace may hold a FIFO that nobody writes to. A
 * pipe that is meant (/dev/stdin, <(command)) gets this long to deliver; then it is an error, so
 * that whoever planted it cannot hold us. */
enum { PIPE_PATIENCE_MS = 10000 };

enum { OPEN_TRIES = 1000 }; /* of openat2() that answers EAGAIN */
enum { LINKS_MAX = 40 };    /* as the kernel */

static int wait_for_data(int fd, const char *path, struct err *e)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    int n = poll(&p, 1, PIPE_PATIENCE_MS);
    if (n < 0 && errno != EINTR) {
        return ERR_SYS(e, "read '%s'", path);
    }
    return n == 0
               ? ERR(e, ERR_TIMEOUT, "read '%s': no data for %d s", path, PIPE_PATIENCE_MS / 1000)
               : 0;
}

int file_read_fd(int fd, const char *name, size_t max, struct buf *ret, struct err *e)
{
    for (;;) {
        char chunk[16384];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            int r = wait_for_data(fd, name, e);
            if (r < 0) {
                return r;
            }
            continue;
        }
        if (n < 0) {
            return ERR_SYS(e, "read '%s'", name);
        }
        if (n == 0) {
            return 0;
        }
        if (ret->len + (size_t)n > max || buf_append(ret, str_n(chunk, (size_t)n), NULL) < 0) {
            return ERR(e, ERR_LIMIT, "read '%s': larger than %zu bytes", name, max);
        }
    }
}

int file_read(int dirfd, const char *path, size_t max, struct buf *ret, struct err *e)
{
    CLEANUP(fd) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        return ERR_SYS_AS(e, absent ? ERR_INPUT : ERR_SYS, "read '%s'", path);
    }
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return ERR_SYS(e, "read '%s'", path);
    }
    if (S_ISDIR(st.st_mode)) {
        return ERR(e, ERR_INPUT, "read '%s': it is a directory", path);
    }
    return file_read_fd(fd, path, max, ret, e);
}

enum err_code file_fault(enum err_code code)
{
    return code == ERR_LIMIT ? ERR_CONFIG : code == ERR_SYS ? ERR_INPUT : code;
}

int file_write_all(int fd, struct str content, struct err *e)
{
    while (content.len > 0) {
        ssize_t n = write(fd, content.ptr, content.len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return ERR_SYS(e, "write");
        }
        content.ptr += n;
        content.len -= (size_t)n;
    }
    return 0;
}

/* Returns a descriptor. The temporary name must stay in the same directory: rename does not cross
 * file systems. */
static int open_temp(int dirfd, const char *path, mode_t mode, char temp[PATH_MAX], struct err *e)
{
    char id[ID_LEN];
    int n = snprintf(temp, PATH_MAX, "%s.%s.tmp", path, id_new(id));
    if (n < 0 || n >= PATH_MAX) {
        return ERR(e, ERR_LIMIT, "write '%s': name too long", path);
    }
    int fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    return fd < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", path) : fd;
}

int file_write_atomic(int dirfd, const char *path, struct str content, mode_t mode, struct err *e)
{
    char temp[PATH_MAX];
    CLEANUP(fd) int fd = open_temp(dirfd, path, mode, temp, e);
    if (fd < 0) {
        return fd;
    }
    int r = file_write_all(fd, content, NULL);
    if (r < 0) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "write '%s'", path);
    } else if (renameat(dirfd, temp, dirfd, path) < 0) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "replace '%s'", path);
    }
    if (r < 0) {
        (void)unlinkat(dirfd, temp, 0);
    }
    return r;
}

/* --- files that the user named --- */

/* Our standard output or error, if the path means that one: it must go on where it is, also when it
 * is a regular file. -1: it does not. */
static int find_stream(const char *path)
{
    struct stat named;
    struct stat ours;
    for (int fd = STDOUT_FILENO; stat(path, &named) == 0 && fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &ours) == 0 && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino) {
            return fd;
        }
    }
    return -1;
}

/* Follows links to what is not there yet, which realpath() does not. */
static int follow_links(const char *path, char target[PATH_MAX], struct err *e)
{
    char link[PATH_MAX];
    char at[PATH_MAX];
    int r = path_join("", path, target, PATH_MAX, e);
    for (int i = 0; r == 0 && i < LINKS_MAX; i++) {
        ssize_t len = readlink(target, link, sizeof link - 1);
        if (len < 0) {
            break;
        }
        link[len] = '\0';
        struct str whole = str_of(target);
        size_t dir = whole.len - path_base(whole).len;
        (void)snprintf(at, sizeof at, "%.*s", (int)dir, target);
        r = path_join(dir > 1 ? at : "", link, target, PATH_MAX, e);
    }
    return r;
}

/* The regular file that is meant, there already or not. Returns 1 where it is something else, which
 * cannot be replaced. */
static int find_output(const char *path, char target[PATH_MAX], struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return follow_links(path, target, e);
    }
    if (!S_ISREG(st.st_mode)) {
        return 1;
    }
    return realpath(path, target) == NULL ? ERR_SYS_AS(e, ERR_OUTPUT, "find '%s'", path) : 0;
}

/* To a pipe that nobody reads, opening waits, as it does in a shell. */
static int write_device(const char *path, struct str content, struct err *e)
{
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 || file_write_all(fd, content, NULL) < 0
               ? ERR_SYS_AS(e, ERR_OUTPUT, "write '%s'", path)
               : 0;
}

int file_write_output(const char *path, struct str content, mode_t mode, struct err *e)
{
    char target[PATH_MAX];
    int stream = find_stream(path);
    if (stream >= 0) {
        return file_write_all(stream, content, NULL) < 0
                   ? ERR_SYS_AS(e, ERR_OUTPUT, "write '%s'", path)
                   : 0;
    }
    int r = find_output(path, target, e);
    if (r == 0) {
        return file_write_atomic(AT_FDCWD, target, content, mode, e);
    }
    return r < 0 ? r : write_device(path, content, e);
}

/* A name that all paths to the same place have in common: also of a file that is not there yet, by
 * links to it and in a directory that has links before it. */
static bool resolve_output(const char *path, char out[PATH_MAX])
{
    char whole[PATH_MAX];
    char target[PATH_MAX];
    char dir[PATH_MAX];
    char parent[PATH_MAX];
    if (realpath(path, out) != NULL) {
        return true;
    }
    if (path_absolute(path, whole, sizeof whole, NULL) < 0 ||
        follow_links(whole, target, NULL) < 0) {
        return false;
    }
    struct str base = path_base(str_of(target));
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(strlen(target) - base.len), target);
    return realpath(dir, parent) != NULL && path_join(parent, base.ptr, out, PATH_MAX, NULL) == 0;
}

bool file_same_output(const char *one, const char *other)
{
    char a[PATH_MAX];
    char b[PATH_MAX];
    return resolve_output(one, a) && resolve_output(other, b) && strcmp(a, b) == 0;
}

int file_check_output(const char *path, struct err *e)
{
    char target[PATH_MAX];
    char temp[PATH_MAX];
    int r = find_stream(path) >= 0 ? 1 : find_output(path, target, e);
    if (r < 0) {
        return r;
    }
    if (r > 0) {
        errno = file_is_dir(AT_FDCWD, path) ? EISDIR : access(path, W_OK) == 0 ? 0 : errno;
        return errno != 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "write '%s'", path) : 0;
    }
    CLEANUP(fd) int fd = open_temp(AT_FDCWD, target, 0600, temp, e);
    if (fd >= 0) {
        (void)unlink(temp);
    }
    return fd < 0 ? fd : 0;
}

int file_mkdirs(int dirfd, const char *path, mode_t mode, struct err *e)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof part) {
        return ERR(e, ERR_LIMIT, "create directory '%s': empty or too long a name", path);
    }
    /* Mostly all but the last part is there, or all of it. */
    if (mkdirat(dirfd, path, mode) == 0 || (errno == EEXIST && file_is_dir(dirfd, path))) {
        return 0;
    }
    memcpy(part, path, len + 1);
    for (size_t i = 1; i <= len; i++) {
        if (part[i] != '/' && part[i] != '\0') {
            continue;
        }
        char saved = part[i];
        part[i] = '\0';
        if (mkdirat(dirfd, part, mode) < 0 && (errno != EEXIST || !file_is_dir(dirfd, part))) {
            return ERR_SYS_AS(e, ERR_OUTPUT, "create directory '%s'", part);
        }
        part[i] = saved;
    }
    return 0;
}

bool file_exists(int dirfd, const char *path)
{
    struct stat st;
    return fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool file_is_dir(int dirfd, const char *path)
{
    struct stat st;
    return fstatat(dirfd, path, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void cleanup_dir(DIR **d)
{
    if (*d != NULL) {
        (void)closedir(*d);
    }
}

static int open_dir(int dirfd, const char *path, int flags, DIR **ret, struct err *e)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (fd < 0) {
        return ERR_SYS(e, "open directory '%s'", path);
    }
    *ret = fdopendir(fd);
    if (*ret == NULL) {
        (void)close(fd);
        return ERR_SYS(e, "open directory '%s'", path);
    }
    return 0;
}

int file_dir_is_empty(int dirfd, const char *path, bool *ret, struct err *e)
{
    CLEANUP(dir) DIR *d = NULL;
    int r = open_dir(dirfd, path, 0, &d, e);
    if (r < 0) {
        return r;
    }
    *ret = true;
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        if (!is_dot(entry->d_name)) {
            *ret = false;
            break;
        }
    }
    return 0;
}

/* Recursion is bounded so that a hostile tree cannot exhaust the stack or the descriptors: what
 * lies deeper is moved up beside the root of the removal and removed afterwards, in a round of its
 * own. */
enum { REMOVE_DEPTH = 64 };

struct deep {
    struct deep *next;
    char name[]; /* "<path>.<id>.deep", in the directory that holds the root */
};

struct removal {
    int top;          /* directory that holds the root of the removal */
    const char *path; /* the root's name there */
    struct deep *deep;
};

static int remove_at(struct removal *m, int at, const char *name, int depth, struct err *e);

static int move_up(struct removal *m, int at, const char *name, struct err *e)
{
    char id[ID_LEN];
    size_t size = strlen(m->path) + ID_LEN + sizeof "..deep";
    struct deep *d = xmalloc(sizeof *d + size);
    (void)snprintf(d->name, size, "%s.%s.deep", m->path, id_new(id));
    if (renameat(at, name, m->top, d->name) < 0) {
        free(d);
        return ERR_SYS(e, "remove '%s', which is nested too deep", name);
    }
    d->next = m->deep;
    m->deep = d;
    return 0;
}

/* An agent may have taken away the permissions of a directory that is ours. Never through a
 * symbolic link: O_PATH pins what was found, and /proc gives it back to chmod(). */
static void make_readable(int at, const char *name)
{
    char path[64];
    CLEANUP(fd) int fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        (void)!chmod(path, 0700);
    }
}

static int remove_children(struct removal *m, int at, const char *name, int depth, struct err *e)
{
    CLEANUP(dir) DIR *d = NULL;
    int r = open_dir(at, name, O_NOFOLLOW, &d, NULL);
    if (r < 0) {
        make_readable(at, name);
        r = open_dir(at, name, O_NOFOLLOW, &d, e);
    }
    if (r < 0) {
        return r;
    }
    (void)fchmod(dirfd(d), 0700);
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        if (is_dot(entry->d_name)) {
            continue;
        }
        r = remove_at(m, dirfd(d), entry->d_name, depth + 1, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int remove_at(struct removal *m, int at, const char *name, int depth, struct err *e)
{
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT) {
        return 0;
    }
    if (errno != EISDIR && errno != EPERM) {
        return ERR_SYS(e, "remove '%s'", name);
    }
    if (depth > REMOVE_DEPTH) {
        return move_up(m, at, name, e);
    }
    int r = remove_children(m, at, name, depth, e);
    if (r < 0) {
        return r;
    }
    if (unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
        return ERR_SYS(e, "remove directory '%s'", name);
    }
    return 0;
}
int file_remove_tree(int dirfd, const char *path, struct err *e)
{
    struct removal m = { .top = dirfd, .path = path };
    int r = remove_at(&m, dirfd, path, 0, e);
    while (m.deep != NULL) {
        struct deep *d = m.deep;
        m.deep = d->next;
        if (r == 0) {
            r = remove_at(&m, dirfd, d->name, 0, e);
        }
        free(d);
    }
    return r;
}

bool file_owner_is_trusted(uid_t uid)
{
    int64_t caller;
    uid_t self = geteuid();
    const char *sudo = self == 0 ? getenv("SUDO_UID") : NULL;
    return uid == self || (sudo != NULL && str_to_i64(str_of(sudo), &caller) && caller >= 0 &&
                           caller < UINT32_MAX && uid == (uid_t)caller);
}

int file_open_how(int dir, const char *path, const struct open_how *how)
{
    int fd = -1;
    for (int i = 0; i < OPEN_TRIES; i++) {
        fd = (int)syscall(SYS_openat2, dir, path, how, sizeof *how);
        if (fd >= 0 || errno != EAGAIN) {
            break;
        }
    }
    return fd;
}

int file_open_below(int dirfd, struct str path)
{
    CLEANUP(fd) int at = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
    while (at >= 0) {
        struct str part = str_split(&path, '/');
        char base[NAME_MAX + 1];
        if (part.len >= sizeof base || str_eqc(part, "..")) {
            errno = part.len == 2 ? EXDEV : ENAMETOOLONG;
            return -1;
        }
        memcpy(base, part.ptr, part.len);
        base[part.len] = '\0';
        bool last = path.ptr == NULL;
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
        int next = openat(at, base, last ? flags : flags | O_DIRECTORY);
        if (!last || next < 0) {
            (void)close(at);
            at = next;
            continue;
        }
        struct stat st;
        if (fstat(next, &st) < 0 || !S_ISREG(st.st_mode)) {
            (void)close(next);
            errno = EISDIR;
            return -1;
        }
        return next;
    }
    return -1;
}

int file_open_parent(int dirfd, struct str path, mode_t mode, struct str *ret_base, struct err *e)
{
    CLEANUP(fd) int at = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
    for (;;) {
        char name[NAME_MAX + 1];
        struct str part = str_split(&path, '/');
        if (at < 0 || part.len >= sizeof name || str_eqc(part, "..")) {
            return at < 0 ? ERR_SYS(e, "duplicate a descriptor")
                          : ERR(e, ERR_OUTPUT, "'%.*s' cannot be created",
                                STR_ARG(str_slice(part, 0, 80)));
        }
        if (path.ptr == NULL) {
            *ret_base = part;
            return TAKE_FD(at);
        }
        memcpy(name, part.ptr, part.len);
        name[part.len] = '\0';
        if (part.len == 0) {
            continue;
        }
        if (mkdirat(at, name, mode) < 0 && errno != EEXIST) {
            return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", name);
        }
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) {
            return ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", name);
        }
        cleanup_fd(&at);
        at = next;
    }
}

int file_copy(int from, int to, uint64_t max, struct err *e)
{
    uint64_t copied = 0;
    for (;;) {
        char chunk[65536];
        ssize_t n = read(from, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? ERR_SYS(e, "read") : 0;
        }
        copied += (uint64_t)n;
        if (max > 0 && copied > max) {
            return ERR(e, ERR_LIMIT, "it is larger than %llu bytes", (unsigned long long)max);
        }
        int r = file_write_all(to, str_n(chunk, (size_t)n), e);
        if (r < 0) {
            return r;
        }
    }
}

int path_join(const char *a, const char *b, char *out, size_t size, struct err *e)
{
    int n = b[0] == '/' || a[0] == '\0' ? snprintf(out, size, "%s", b)
                                        : snprintf(out, size, "%s/%s", a, b);
    if (n < 0 || (size_t)n >= size) {
        return ERR(e, ERR_LIMIT, "path '%s/%s' is too long", a, b);
    }
    return 0;
}

int path_absolute(const char *path, char *out, size_t size, struct err *e)
{
    char full[PATH_MAX * 2];
    char cwd[PATH_MAX] = "";
    if (path[0] != '/' && getcwd(cwd, sizeof cwd) == NULL) {
        return ERR_SYS(e, "find the current directory");
    }
    int r = path_join(cwd, path, full, sizeof full, e);
    if (r < 0) {
        return r;
    }
    if (size < sizeof "/") {
        return ERR(e, ERR_LIMIT, "path '%s' is too long", path);
    }
    size_t len = 0;
    struct str rest = str_of(full);
    while (rest.ptr != NULL) {
        struct str part = str_split(&rest, '/');
        if (part.len == 0 || str_eqc(part, ".")) {
            continue;
        }
        if (str_eqc(part, "..")) {
            while (len > 0 && out[--len] != '/') {
            }
            continue;
        }
        if (len + 1 + part.len + 1 > size) {
            return ERR(e, ERR_LIMIT, "path '%s' is too long", path);
        }
        out[len++] = '/';
        memcpy(out + len, part.ptr, part.len);
        len += part.len;
    }
    if (len == 0) {
        out[len++] = '/';
    }
    out[len] = '\0';
    return 0;
}

struct str path_base(struct str path)
{
    while (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    size_t start = path.len;
    while (start > 0 && path.ptr[start - 1] != '/') {
        start--;
    }
    return start == path.len ? path : str_slice(path, start, path.len);
}
