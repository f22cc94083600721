/* SPDX-License-Identifier: MIT
 *
 * Binds, overlays and small files. The newer mount calls are used because they work on descriptors:
 * what was looked at is what is mounted, and attributes are set before anybody can see the mount.
 */
#include "init/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "init/idmap.h"
#include "init/plan.h"

enum { OPEN_TRIES = 1000 };

#define NOTHING_DIR  MOUNTS_OWN "/nothing"
#define NOTHING_FILE MOUNTS_OWN "/nothing.file"

static int open_how(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };
    int fd = -1;
    for (int i = 0; i < OPEN_TRIES; i++) {
        fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN) { /* something is mounted or renamed meanwhile */
            break;
        }
    }
    return fd;
}

int mounts_open(const char *path, int *ret_fd, struct err *e)
{
    *ret_fd = open_how(AT_FDCWD, path, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
    return *ret_fd < 0 ? ERR_SYS(e, "open '%s' of the view", path) : 0;
}

/* Makes the directories above the last component. */
static int make_parents(const char *path, struct err *e)
{
    char copy[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof copy) {
        return ERR(e, ERR_LIMIT, "path of %zu bytes", len);
    }
    memcpy(copy, path, len + 1);
    for (char *p = copy + 1; *p != '\0'; p++) {
        if (*p != '/') {
            continue;
        }
        *p = '\0';
        if (mkdir(copy, 0755) != 0 && errno != EEXIST) {
            return ERR_SYS(e, "make '%s' in the view", copy);
        }
        *p = '/';
    }
    return 0;
}

/* Makes the place of a mount. 1: it was made and is ours, 0: something is there. Optimistic: most
 * places are missing and their parents are not, so that one call is enough. */
static int make_target(const char *path, bool dir, struct err *e)
{
    int rc = dir ? mkdir(path, 0755) : mknod(path, S_IFREG | 0644, 0);
    if (rc != 0 && errno == ENOENT) {
        rc = make_parents(path, e);
        if (rc < 0) {
            return rc;
        }
        rc = dir ? mkdir(path, 0755) : mknod(path, S_IFREG | 0644, 0);
    }
    /* In a read-only tree the call says so before it says that the name is taken. */
    bool taken = rc != 0 && (errno == EEXIST || errno == EROFS || errno == EACCES);
    return rc == 0 ? 1 : taken ? 0 : ERR_SYS(e, "make '%s' in the view", path);
}

/* The place of a mount, made if it is missing; *ret_fd stays -1 when it was made, and the path is
 * safe to use. */
static int open_target(const char *path, bool dir, int *ret_fd, struct err *e)
{
    int rc = make_target(path, dir, e);
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    int fd = open_how(AT_FDCWD, path, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = ERR_SYS(e, "open '%s' of the view", path);
        cleanup_fd(&fd);
        return rc;
    }
    if (S_ISDIR(st.st_mode) != dir) {
        (void)close(fd);
        return ERR(e, ERR_INPUT, "'%s' cannot be put into the view: a %s is in its place", path,
                   dir ? "file" : "directory");
    }
    *ret_fd = fd;
    return 0;
}

static int attach(int tree, int target, const char *path, struct err *e)
{
    int rc = target < 0 ? move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH)
                        : move_mount(tree, "", target, "",
                                     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    return rc == 0 ? 0 : ERR_SYS(e, "mount at '%s'", path);
}

/* --- the root --- */

static int mount_tmpfs(const char *at, const struct plan_size *size, struct err *e)
{
    char options[96];
    (void)snprintf(options, sizeof options, "mode=0755,size=%llu,nr_inodes=%llu",
                   (unsigned long long)size->bytes, (unsigned long long)size->inodes);
    if (mount("tmpfs", at, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "mount a tmpfs at '%s'", at);
    }
    return 0;
}

/* A file system of its own: when a keeper takes it away nothing of it is left in sight. */
static int make_own(const struct plan_size *size, struct err *e)
{
    int rc = mkdir(MOUNTS_OWN, 0) == 0 ? mount_tmpfs(MOUNTS_OWN, size, e)
                                       : ERR_SYS(e, "make '%s'", MOUNTS_OWN);
    if (rc < 0) {
        return rc;
    }
    if (mkdir(NOTHING_DIR, 0) != 0) {
        return ERR_SYS(e, "make '%s'", NOTHING_DIR);
    }
    int fd = open(NOTHING_FILE, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) {
        return ERR_SYS(e, "make '%s'", NOTHING_FILE);
    }
    (void)close(fd);
    return 0;
}

/* Any directory that exists will do: the tmpfs leaves it again with pivot_root(), and what was
 * hidden by it is in sight below MOUNTS_HOST. */
static int mount_first(const struct plan_size *size, struct err *e)
{
    static const char *const places[] = { "/tmp", "/usr", "/proc" };
    int rc = -ERR_SYS;
    for (size_t i = 0; rc < 0 && i < ARRAY_LEN(places); i++) {
        rc = mount_tmpfs(places[i], size, e);
        if (rc == 0 && chdir(places[i]) != 0) {
            return ERR_SYS(e, "enter '%s'", places[i]);
        }
    }
    return rc;
}

static int do_root(struct mounts *m, const struct plan_record *r, struct err *e)
{
    /* Nothing that we mount shall appear outside. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "make the mounts private");
    }
    int rc = mount_first(&r->size, e);
    if (rc < 0) {
        return rc;
    }
    if (mkdir(&MOUNTS_HOST[1], 0700) != 0 || syscall(SYS_pivot_root, ".", &MOUNTS_HOST[1]) != 0 ||
        chdir("/") != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "change the root");
    }
    m->host = open(MOUNTS_HOST, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return m->host < 0 ? ERR_SYS(e, "open the host's root") : make_own(&r->size, e);
}

static int do_close_root(struct mounts *m, struct err *e)
{
    struct mount_attr fixed = { .attr_set = MOUNT_ATTR_RDONLY };
    cleanup_fd(&m->host);
    if (umount2(MOUNTS_HOST, MNT_DETACH) != 0 || rmdir(MOUNTS_HOST) != 0) {
        return ERR_SYS(e, "let go of the host's root");
    }
    if (mount_setattr(AT_FDCWD, "/", 0, &fixed, sizeof fixed) != 0) {
        return ERR_SYS(e, "make the root read-only");
    }
    return 0;
}

/* --- bind --- */

static int idmap_fd(struct mounts *m, const struct plan_paths *p, int *ret_fd, struct err *e)
{
    for (size_t i = 0; i < m->n_shifts; i++) {
        const struct mounts_shift *s = &m->shifts[i];
        if (s->uid == p->uid && s->gid == p->gid && s->host_uid == p->host_uid &&
            s->host_gid == p->host_gid) {
            *ret_fd = s->fd;
            return 0;
        }
    }
    if (m->n_shifts == MOUNTS_SHIFTS_MAX) {
        return ERR(e, ERR_LIMIT, "paths of more than %d different owners", MOUNTS_SHIFTS_MAX);
    }
    struct mounts_shift *s = &m->shifts[m->n_shifts];
    *s = (struct mounts_shift) { p->uid, p->gid, p->host_uid, p->host_gid, -1 };
    int rc = idmap_open(m->host, s, e);
    if (rc == 0) {
        m->n_shifts++;
        *ret_fd = s->fd;
    }
    return rc;
}

static int idmap_owners(struct mounts *m, int tree, const struct plan_record *r, struct err *e)
{
    int ns = -1;
    int rc = idmap_fd(m, &r->paths, &ns, e);
    if (rc < 0) {
        return rc;
    }
    struct mount_attr a = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)ns };
    /* What is mounted below may be of a kind that cannot do it; the top matters. */
    if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &a, sizeof a) != 0 &&
        mount_setattr(tree, "", AT_EMPTY_PATH, &a, sizeof a) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "show the owner of '%s' as the sandbox's user",
                          r->from);
    }
    return 0;
}

static int set_attributes(struct mounts *m, int tree, const struct plan_record *r, struct err *e)
{
    uint32_t f = r->paths.flags;
    struct mount_attr a = { .attr_set = MOUNT_ATTR_NOSUID };
    a.attr_set |= (f & PLAN_WRITABLE) == 0 ? MOUNT_ATTR_RDONLY : 0;
    a.attr_set |= (f & PLAN_DEVICE) == 0 ? MOUNT_ATTR_NODEV : 0;
    if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &a, sizeof a) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "set the attributes of '%s'", r->from);
    }
    if ((f & (PLAN_SHIFT | PLAN_SHIFT_TRY)) == 0) {
        return 0;
    }
    int rc = idmap_owners(m, tree, r, e);
    return (f & PLAN_SHIFT_TRY) != 0 ? 0 : rc;
}

static bool is_absent(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES;
}

static int clone_tree(int source, bool shallow)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;
    int tree = open_tree(source, "", flags | (shallow ? 0 : AT_RECURSIVE));
    /* In a user namespace a directory cannot be separated from what is mounted below it. */
    return tree < 0 && shallow && errno == EINVAL ? open_tree(source, "", flags | AT_RECURSIVE)
                                                  : tree;
}

static int bind_open(struct mounts *m, const struct plan_record *r, int source, struct err *e)
{
    struct stat st;
    CLEANUP(fd) int target = -1;
    if (fstat(source, &st) != 0) {
        return ERR_SYS(e, "look at '%s'", r->from);
    }
    int rc = open_target(r->to, S_ISDIR(st.st_mode), &target, e);
    if (rc < 0) {
        return rc;
    }
    CLEANUP(fd) int tree = clone_tree(source, (r->paths.flags & PLAN_SHALLOW) != 0);
    if (tree < 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "clone the mount of '%s'", r->from);
    }
    rc = set_attributes(m, tree, r, e);
    return rc < 0 ? rc : attach(tree, target, r->to, e);
}

static int make_source(const struct plan_record *r, struct err *e)
{
    if (mkdir(r->from, 0755) != 0) {
        return errno == EEXIST ? 0 : ERR_SYS(e, "make '%s'", r->from);
    }
    if (r->paths.host_uid != 0 && lchown(r->from, r->paths.host_uid, r->paths.host_gid) != 0) {
        return ERR_SYS(e, "give '%s' away", r->from);
    }
    return 0;
}

static int do_bind(struct mounts *m, const struct plan_record *r, struct err *e)
{
    uint32_t f = r->paths.flags;
    bool inside = (f & PLAN_INSIDE) != 0;
    int rc = inside && (f & PLAN_MAKE_DIR) != 0 ? make_source(r, e) : 0;
    if (rc < 0) {
        return rc;
    }
    if (!inside && m->host < 0) {
        return ERR(e, ERR_PROTO, "'%s' is out of reach", r->from);
    }
    const char *path = r->from[0] == '/' ? r->from + 1 : r->from;
    CLEANUP(fd)
    int source = inside ? open_how(AT_FDCWD, r->from, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS)
                        : open_how(m->host, path[0] == '\0' ? "." : path, O_PATH,
                                   RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
    if (source < 0) {
        bool fine = (f & PLAN_OPTIONAL) != 0 && is_absent(errno);
        return fine ? 0 : ERR_SYS_AS(e, ERR_INPUT, "open '%s'", r->from);
    }
    return bind_open(m, r, source, e);
}

/* Where no group is shown (PLAN_NO_GROUP), root is not above the modes either: then what the
 * program itself can reach is opened as the program. The rest needs no mask. */
static int open_to_mask(const struct plan_record *r)
{
    int fd = open_how(AT_FDCWD, r->to, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
    if (fd >= 0 || errno != EACCES || r->paths.host_uid == 0) {
        return fd;
    }
    gid_t gid = (gid_t)setfsgid(r->paths.host_gid);
    uid_t uid = (uid_t)setfsuid(r->paths.host_uid);
    fd = open_how(AT_FDCWD, r->to, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
    int why = errno;
    (void)setfsuid(uid);
    (void)setfsgid(gid);
    errno = why;
    return fd;
}

static int do_mask(const struct plan_record *r, struct err *e)
{
    struct stat st;
    struct mount_attr a = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
    CLEANUP(fd)
    int target = open_to_mask(r);
    if (target < 0 || fstat(target, &st) != 0) {
        bool fine = (r->paths.flags & PLAN_OPTIONAL) != 0 && is_absent(errno);
        return fine ? 0 : ERR_SYS(e, "open '%s' of the view", r->to);
    }
    CLEANUP(fd)
    int tree = open_tree(AT_FDCWD, S_ISDIR(st.st_mode) ? NOTHING_DIR : NOTHING_FILE,
                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &a, sizeof a) != 0) {
        return ERR_SYS(e, "hide '%s'", r->to);
    }
    return attach(tree, target, r->to, e);
}

/* --- overlay --- */

/* "key=value" or "key". */
static int set_option(int fs, char *option, struct err *e)
{
    char *value = strchr(option, '=');
    if (value != NULL) {
        *value++ = '\0';
    }
    int rc = value == NULL ? fsconfig(fs, FSCONFIG_SET_FLAG, option, NULL, 0)
                           : fsconfig(fs, FSCONFIG_SET_STRING, option, value, 0);
    return rc == 0 ? 0 : ERR_SYS_AS(e, ERR_UNSUPPORTED, "overlay option '%s'", option);
}

static int set_options(int fs, const char *options, struct err *e)
{
    char copy[PATH_MAX];
    int rc = 0;
    if (strlen(options) >= sizeof copy) {
        return ERR(e, ERR_LIMIT, "overlay options of %zu bytes", strlen(options));
    }
    memcpy(copy, options, strlen(options) + 1);
    for (char *at = copy; rc == 0 && at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL) {
            *comma++ = '\0';
        }
        rc = set_option(fs, at, e);
        at = comma;
    }
    return rc;
}

static int do_overlay(const struct plan_record *r, struct err *e)
{
    CLEANUP(fd) int target = -1;
    CLEANUP(fd) int fs = fsopen("overlay", FSOPEN_CLOEXEC);
    if (fs < 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "overlay file system");
    }
    int rc = open_target(r->to, true, &target, e);
    rc = rc < 0 ? rc : set_options(fs, r->from, e);
    if (rc < 0) {
        return rc;
    }
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "mount an overlay at '%s'", r->to);
    }
    unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    attributes |= (r->paths.flags & PLAN_WRITABLE) == 0 ? MOUNT_ATTR_RDONLY : 0;
    CLEANUP(fd) int tree = fsmount(fs, FSMOUNT_CLOEXEC, attributes);
    if (tree < 0) {
        return ERR_SYS_AS(e, ERR_UNSUPPORTED, "mount an overlay at '%s'", r->to);
    }
    return attach(tree, target, r->to, e);
}

/* --- small things --- */

static int give(const struct plan_record *r, struct err *e)
{
    bool ours = r->paths.host_uid == 0 && r->paths.host_gid == 0;
    return ours || lchown(r->to, r->paths.host_uid, r->paths.host_gid) == 0
               ? 0
               : ERR_SYS(e, "give '%s' away", r->to);
}

/* Tries, and once more when only the directories above were missing. */
static int with_parents(const struct plan_record *r, int (*make)(const struct plan_record *r),
                        struct err *e)
{
    int rc = make(r);
    if (rc < 0 && errno == ENOENT) {
        int made = make_parents(r->to, e);
        if (made < 0) {
            return made;
        }
        rc = make(r);
    }
    return rc < 0 && errno != EEXIST ? ERR_SYS(e, "make '%s' in the view", r->to) : 0;
}

static int make_dir(const struct plan_record *r)
{
    return mkdir(r->to, 0755);
}

static int make_symlink(const struct plan_record *r)
{
    return symlink(r->from, r->to);
}

static int do_dir(const struct plan_record *r, struct err *e)
{
    int rc = with_parents(r, make_dir, e);
    rc = rc < 0 ? rc : give(r, e);
    if (rc == 0 && chmod(r->to, r->paths.mode) != 0) {
        rc = ERR_SYS(e, "set the mode of '%s'", r->to);
    }
    return rc;
}

static int do_symlink(const struct plan_record *r, struct err *e)
{
    return with_parents(r, make_symlink, e);
}

static int write_file(int fd, const struct plan_record *r, struct err *e)
{
    for (size_t at = 0; at < r->bytes.len;) {
        ssize_t n = write(fd, r->bytes.ptr + at, r->bytes.len - at);
        if (n < 0) {
            return ERR_SYS(e, "write '%s' in the view", r->to);
        }
        at += (size_t)n;
    }
    return give(r, e);
}

static int do_file(const struct plan_record *r, struct err *e)
{
    const int flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW;
    CLEANUP(fd) int fd = open(r->to, flags, r->paths.mode);
    if (fd < 0 && errno == ENOENT) {
        int rc = make_parents(r->to, e);
        if (rc < 0) {
            return rc;
        }
        fd = open(r->to, flags, r->paths.mode);
    }
    return fd < 0 ? ERR_SYS(e, "make '%s' in the view", r->to) : write_file(fd, r, e);
}

static int do_devpts(const struct plan_record *r, struct err *e)
{
    int rc = with_parents(r, make_dir, e);
    if (rc == 0 && mount("devpts", r->to, "devpts", MS_NOSUID | MS_NOEXEC,
                         "newinstance,ptmxmode=0666,mode=0620") != 0) {
        rc = ERR_SYS_AS(e, ERR_UNSUPPORTED, "mount terminals at '%s'", r->to);
    }
    return rc;
}

static int do_tmpfs(const struct plan_record *r, struct err *e)
{
    int rc = with_parents(r, make_dir, e);
    return rc < 0 ? rc : mount_tmpfs(r->to, &r->size, e);
}

bool mounts_knows(const struct plan_record *r)
{
    return r->op >= PLAN_OP_ROOT && r->op <= PLAN_OP_CLOSE_ROOT;
}

/* These open what is there without following a link, and pass over it where there is one. */
static bool follows_no_link(const struct plan_record *r)
{
    bool pin = r->op == PLAN_OP_BIND && (r->paths.flags & PLAN_INSIDE) != 0 &&
               (r->paths.flags & PLAN_MAKE_DIR) == 0 && strcmp(r->from, r->to) == 0;
    return pin || r->op == PLAN_OP_MASK;
}

/* Links of an image are resolved in the new root, where MOUNTS_HOST still shows the host: an
 * operation on a path that leads through one could change files outside. Nobody else works in this
 * view yet, so a check beforehand is enough. */
static int refuse_links(const char *path, bool last, struct err *e)
{
    char above[PATH_MAX];
    struct stat st;
    size_t len = strlen(path);
    if (len >= sizeof above) {
        return ERR(e, ERR_LIMIT, "path of %zu bytes", len);
    }
    memcpy(above, path, len + 1);
    int why = ENOENT;
    for (char *slash = strrchr(above, '/'); why == ENOENT && slash != NULL && slash != above;
         slash = strrchr(above, '/')) {
        *slash = '\0';
        CLEANUP(fd) int fd = open_how(AT_FDCWD, above, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
        why = fd < 0 ? errno : 0;
    }
    if (why != 0 && why != ENOENT) { /* what is missing will be made */
        errno = why;
        return ERR_SYS_AS(e, ERR_INPUT, "'%s' cannot be put into the view: open '%s'", path, above);
    }
    if (last && lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        return ERR(e, ERR_INPUT, "'%s' cannot be put into the view: a link is in its place", path);
    }
    return 0;
}

/* -Wswitch-enum wants all of them named; these are those of the table that are about files. */
int mounts_do(struct mounts *m, const struct plan_record *r, struct err *e)
{
    if (m->no_links && r->to != NULL && !follows_no_link(r)) {
        int rc = refuse_links(r->to, r->op != PLAN_OP_SYMLINK, e);
        if (rc < 0) {
            return rc;
        }
    }
    if (r->op == PLAN_OP_ROOT) {
        return do_root(m, r, e);
    }
    if (r->op == PLAN_OP_CLOSE_ROOT) {
        return do_close_root(m, e);
    }
    if (r->op == PLAN_OP_BIND) {
        return do_bind(m, r, e);
    }
    static int (*const plain[PLAN_OP_MAX])(const struct plan_record *r, struct err *e) = {
        [PLAN_OP_TMPFS] = do_tmpfs,     [PLAN_OP_DIR] = do_dir,
        [PLAN_OP_SYMLINK] = do_symlink, [PLAN_OP_FILE] = do_file,
        [PLAN_OP_OVERLAY] = do_overlay, [PLAN_OP_MASK] = do_mask,
        [PLAN_OP_DEVPTS] = do_devpts,
    };
    return plain[r->op] == NULL ? 0 : plain[r->op](r, e);
}

void mounts_done(struct mounts *m)
{
    cleanup_fd(&m->host);
    for (size_t i = 0; i < m->n_shifts; i++) {
        cleanup_fd(&m->shifts[i].fd);
    }
    m->n_shifts = 0;
}
