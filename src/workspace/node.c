/* SPDX-License-Identifier: MIT
 *
 * Copies of single entries. Names are given to the kernel as /proc/self/fd/N/name where a call
 * takes no directory descriptor (the xattr family).
 */
#include "workspace/node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"

enum {
    NAME_BYTES = NAME_MAX + 64,
    VALUE_BYTES = 65536, /* XATTR_SIZE_MAX */
    COPY_CHUNK = 128 << 10,
};

static const char *proc_name(int fd, const char *name, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "/proc/self/fd/%d/%s", fd, name[0] == '\0' ? "." : name);
    return out;
}

static const char *marks_prefix(enum node_marks marks)
{
    return marks == NODE_MARKS_USER ? "user.overlay." : "trusted.overlay.";
}

ssize_t node_mark(int fd, const char *name, enum node_marks marks, const char *mark, char *value,
                  size_t size)
{
    char path[NAME_BYTES];
    char key[64];
    if (marks == NODE_MARKS_NONE) {
        return -1;
    }
    (void)snprintf(key, sizeof key, "%s%s", marks_prefix(marks), mark);
    ssize_t n = lgetxattr(proc_name(fd, name, path), key, value, size - 1);
    if (n >= 0) {
        value[n] = '\0';
    }
    return n;
}

int node_set_mark(struct node_at at, enum node_marks marks, const char *mark, struct str value,
                  struct err *e)
{
    char path[NAME_BYTES];
    char key[64];
    (void)snprintf(key, sizeof key, "%s%s", marks_prefix(marks), mark);
    return lsetxattr(proc_name(at.fd, at.name, path), key, value.ptr, value.len, 0) < 0
               ? ERR_SYS(e, "set attribute '%s' of '%s'", key, at.name)
               : 0;
}

/* --- lists of attribute names --- */

struct names {
    char fixed[512]; /* enough for nearly all files, most of which have none */
    char *large;
    const char *ptr;
    size_t len;
};

static void cleanup_names(struct names *n)
{
    free(n->large);
}

static void read_names(const char *path, struct names *n)
{
    n->large = NULL;
    n->ptr = n->fixed;
    ssize_t got = llistxattr(path, n->fixed, sizeof n->fixed);
    if (got < 0 && errno == ERANGE) {
        n->large = xmalloc(XATTR_LIST_MAX);
        n->ptr = n->large;
        got = llistxattr(path, n->large, XATTR_LIST_MAX);
    }
    n->len = got < 0 ? 0 : (size_t)got;
}

static bool is_kept(const char *key)
{
    return (strncmp(key, "user.", 5) == 0 && strncmp(key, "user.overlay.", 13) != 0) ||
           strncmp(key, "system.posix_acl_", 17) == 0;
}

/* user.* wants write permission on the file itself, which a read-only one does not give its owner.
 */
static bool make_writable(int fd, const char *name, mode_t mode)
{
    return errno == EACCES && !S_ISLNK(mode) &&
           fchmodat(fd, name, (mode & 07777) | S_IWUSR, 0) == 0;
}

int node_strip_marks(int fd, const char *name, const struct stat *st, enum node_marks marks,
                     struct err *e)
{
    if (marks == NODE_MARKS_NONE) {
        return 0;
    }
    char path[NAME_BYTES];
    const char *prefix = marks_prefix(marks);
    CLEANUP(names) struct names list;
    read_names(proc_name(fd, name, path), &list);
    bool opened = false;
    int r = 0;
    for (size_t at = 0; r == 0 && at < list.len; at += strlen(list.ptr + at) + 1) {
        const char *key = list.ptr + at;
        if (strncmp(key, prefix, strlen(prefix)) != 0 || lremovexattr(path, key) == 0) {
            continue;
        }
        opened = opened || make_writable(fd, name, st->st_mode);
        if (lremovexattr(path, key) < 0 && errno != ENODATA) {
            r = ERR_SYS(e, "remove attribute '%s' of '%s'", key, name);
        }
    }
    if (opened) {
        (void)!fchmodat(fd, name, st->st_mode & 07777, 0);
    }
    return r;
}

static void drop_others(const char *from, const char *to)
{
    CLEANUP(names) struct names list;
    read_names(to, &list);
    for (size_t at = 0; at < list.len; at += strlen(list.ptr + at) + 1) {
        const char *key = list.ptr + at;
        if (is_kept(key) && lgetxattr(from, key, NULL, 0) < 0 && errno == ENODATA) {
            (void)lremovexattr(to, key);
        }
    }
}

static int copy_xattrs(const char *from, const char *to, const char *name, struct err *e)
{
    CLEANUP(names) struct names list;
    CLEANUP(free) char *value = NULL;
    read_names(from, &list);
    drop_others(from, to);
    for (size_t at = 0; at < list.len; at += strlen(list.ptr + at) + 1) {
        const char *key = list.ptr + at;
        if (!is_kept(key)) {
            continue;
        }
        if (value == NULL) {
            value = xmalloc(VALUE_BYTES);
        }
        ssize_t n = lgetxattr(from, key, value, VALUE_BYTES);
        if (n >= 0 && lsetxattr(to, key, value, (size_t)n, 0) < 0 && errno != EOPNOTSUPP) {
            return ERR_SYS(e, "set attribute '%s' of '%s'", key, name);
        }
    }
    return 0;
}

static uid_t owner_uid(const struct node_owner *o, uid_t uid)
{
    return o != NULL && o->active && uid == o->from_uid ? o->to_uid : uid;
}

static gid_t owner_gid(const struct node_owner *o, gid_t gid)
{
    return o != NULL && o->active && gid == o->from_gid ? o->to_gid : gid;
}

int node_copy_attributes(struct node_at from, const struct stat *st, struct node_at to,
                         const struct node_owner *owner, struct err *e)
{
    char source[NAME_BYTES];
    char target[NAME_BYTES];
    bool link = S_ISLNK(st->st_mode);
    /* Only root may give files away; the group may be ours to give. */
    if (fchownat(to.fd, to.name, owner_uid(owner, st->st_uid), owner_gid(owner, st->st_gid),
                 AT_SYMLINK_NOFOLLOW) < 0 &&
        errno != EPERM && errno != EINVAL) {
        return ERR_SYS(e, "change the owner of '%s'", to.name);
    }
    if (!link) {
        (void)!fchmodat(to.fd, to.name, (st->st_mode & 07777) | S_IRWXU, 0);
        int r = copy_xattrs(proc_name(from.fd, from.name, source),
                            proc_name(to.fd, to.name, target), to.name, e);
        if (r < 0) {
            return r;
        }
        if (fchmodat(to.fd, to.name, st->st_mode & 07777, 0) < 0) {
            return ERR_SYS(e, "change the mode of '%s'", to.name);
        }
    }
    const struct timespec times[2] = { st->st_atim, st->st_mtim };
    if (utimensat(to.fd, to.name, times, AT_SYMLINK_NOFOLLOW) < 0) {
        return ERR_SYS(e, "set the times of '%s'", to.name);
    }
    return 0;
}

/* --- content --- */

static int copy_plain(int in, int out, off_t from, off_t len)
{
    CLEANUP(free) char *chunk = xmalloc(COPY_CHUNK);
    while (len > 0) {
        size_t want = len > COPY_CHUNK ? COPY_CHUNK : (size_t)len;
        ssize_t n = pread(in, chunk, want, from);
        if (n <= 0) {
            return n == 0 ? 0 : -1; /* it has shrunk under our hands */
        }
        n = pwrite(out, chunk, (size_t)n, from);
        if (n < 0) {
            return -1;
        }
        from += n; /* a disk that becomes full takes a part; the rest says why */
        len -= n;
    }
    return 0;
}

static int copy_range(int in, int out, off_t from, off_t len)
{
    while (len > 0) {
        off_t in_at = from;
        off_t out_at = from;
        ssize_t n = copy_file_range(in, &in_at, out, &out_at, (size_t)len, 0);
        if (n <= 0) {
            bool other_way = n == 0 || errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP ||
                             errno == ENOSYS || errno == EPERM;
            return other_way ? copy_plain(in, out, from, len) : -1;
        }
        from += n;
        len -= n;
    }
    return 0;
}

/* Holes stay holes: a sparse file of a terabyte must not become a full one. */
static int copy_data(int in, int out, off_t size)
{
    if (size == 0 || ioctl(out, FICLONE, in) == 0) {
        return 0;
    }
    off_t at = 0;
    while (at < size) {
        off_t data = lseek(in, at, SEEK_DATA);
        if (data < 0) {
            if (errno != ENXIO) {
                return copy_range(in, out, at, size - at);
            }
            break;
        }
        off_t hole = lseek(in, data, SEEK_HOLE);
        if (hole < 0 || hole > size) {
            hole = size;
        }
        if (hole > data && copy_range(in, out, data, hole - data) < 0) {
            return -1;
        }
        at = hole;
    }
    return ftruncate(out, size);
}

static int copy_regular(struct node_at from, struct node_at to, struct err *e)
{
    CLEANUP(fd)
    int in = openat(from.fd, from.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (in < 0) {
        return ERR_SYS(e, "read '%s'", from.name);
    }
    struct stat now;
    if (fstat(in, &now) < 0 || !S_ISREG(now.st_mode)) {
        return ERR(e, ERR_SYS, "read '%s': it has become something else", from.name);
    }
    CLEANUP(fd)
    int out = openat(to.fd, to.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0) {
        return ERR_SYS(e, "create '%s'", to.name);
    }
    return copy_data(in, out, now.st_size) < 0 ? ERR_SYS(e, "copy '%s'", from.name) : 0;
}

static int copy_link(struct node_at from, struct node_at to, struct err *e)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from.fd, from.name, target, sizeof target - 1);
    if (n < 0) {
        return ERR_SYS(e, "read link '%s'", from.name);
    }
    target[n] = '\0';
    return symlinkat(target, to.fd, to.name) < 0 ? ERR_SYS(e, "create link '%s'", to.name) : 0;
}

int node_copy(struct node_at from, const struct stat *st, struct node_at to,
              const struct node_owner *owner, struct err *e)
{
    struct err own = { 0 };
    int r;
    e = e == NULL ? &own : e;
    e->sys = 0;
    if (S_ISREG(st->st_mode)) {
        r = copy_regular(from, to, e);
    } else if (S_ISLNK(st->st_mode)) {
        r = copy_link(from, to, e);
    } else if (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode)) {
        r = mknodat(to.fd, to.name, (st->st_mode & S_IFMT) | 0600, 0) < 0
                ? ERR_SYS(e, "create '%s'", to.name)
                : 0;
    } else {
        return ERR(e, ERR_UNSUPPORTED, "'%s' is a device", from.name);
    }
    if (r == 0) {
        r = node_copy_attributes(from, st, to, owner, e);
    }
    if (r < 0 && e->sys != EEXIST) {
        (void)unlinkat(to.fd, to.name, 0);
    }
    return r;
}

int node_open_dir(int fd, const char *path, struct err *e)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    const char *name = path[0] == '\0' ? "." : path;
    int r = (int)syscall(SYS_openat2, fd, name, &how, sizeof how);
    if (r < 0 && errno == EACCES) { /* not readable, but perhaps good enough to go through */
        how.flags |= O_PATH;
        r = (int)syscall(SYS_openat2, fd, name, &how, sizeof how);
    }
    return r < 0 ? ERR_SYS(e, "open directory '%s'", name) : r;
}

bool node_same_mount(int a_fd, int b_fd)
{
    struct statx a;
    struct statx b;
    unsigned want = STATX_MNT_ID;
    return statx(a_fd, "", AT_EMPTY_PATH, want, &a) == 0 &&
           statx(b_fd, "", AT_EMPTY_PATH, want, &b) == 0 && (a.stx_mask & want) != 0 &&
           (b.stx_mask & want) != 0 && a.stx_mnt_id == b.stx_mnt_id &&
           a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor;
}

bool node_is_inner_path(const char *path)
{
    struct str rest = str_of(path);
    while (rest.ptr != NULL && path[0] != '\0') {
        struct str part = str_split(&rest, '/');
        if (part.len == 0 || str_eqc(part, ".") || str_eqc(part, "..")) {
            return false;
        }
    }
    return true;
}

bool node_has_git_part(const char *path)
{
    struct str rest = str_of(path);
    while (rest.ptr != NULL) {
        if (str_eqc(str_split(&rest, '/'), ".git")) {
            return true;
        }
    }
    return false;
}
