/* SPDX-License-Identifier: MIT
 *
 * Making, locking and archiving the run directory; see rundir.h.
 */
#include "record/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "record/record_file.h"

enum {
    /* Somebody else renaming or removing the directory while we lock it: look again this often. */
    CREATE_TRIES = 8,
    /* Enough for result.json with a text of usual length, metrics.json, manifest.json and
     * state.json. In memory it is cleared page by page, in every run. */
    RESERVE_BYTES = 256 << 10,
    ARCHIVE_TRIES = 100,
};

static const char *const sub_directories[] = { "logs", "evidence", "artifacts" };

void rundir_done(struct rundir *d)
{
    rundir_release_reserve(d);
    cleanup_fd(&d->dir_fd);
    free(d->path);
    free(d->archived);
    d->path = NULL;
    d->archived = NULL;
    d->locked = false;
}

void rundir_release_reserve(struct rundir *d)
{
    cleanup_fd(&d->reserve_fd);
}

/* 1: locked, 0: the file system has no locks for us, -1: somebody else has it. */
static int try_lock(int fd)
{
    for (;;) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return 1;
        }
        if (errno == EWOULDBLOCK) {
            return -1;
        }
        if (errno != EINTR) {
            return 0;
        }
    }
}

static int open_directory(struct rundir *d, const char *path, struct err *e)
{
    char absolute[PATH_MAX];
    int r = path_absolute(path, absolute, sizeof absolute, e);
    if (r < 0) {
        return r;
    }
    d->path = xstrdup(absolute);
    d->dir_fd = open(absolute, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->dir_fd < 0) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        return ERR_SYS_AS(e, absent ? ERR_INPUT : ERR_SYS, "open run directory '%s'", path);
    }
    return 0;
}

int rundir_open(struct rundir *d, const char *path, struct err *e)
{
    *d = (struct rundir)RUNDIR_INIT;
    int r = open_directory(d, path, e);
    if (r < 0) {
        rundir_done(d);
        return r;
    }
    int lock = try_lock(d->dir_fd);
    d->locked = lock > 0;
    return lock < 0 ? ERR(e, ERR_EXISTS, "run directory '%s' is in use by another run", path) : 0;
}

/* A rename under our feet would make us write the record of this run into somebody's archive. */
static bool still_there(const struct rundir *d)
{
    struct stat here;
    struct stat there;
    return fstat(d->dir_fd, &here) == 0 && stat(d->path, &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static bool holds(const char *path, const char *inner)
{
    char outer[PATH_MAX];
    char real[PATH_MAX];
    if (realpath(path, outer) == NULL || realpath(inner, real) == NULL) {
        return false;
    }
    size_t len = strlen(outer);
    return strncmp(real, outer, len) == 0 &&
           (real[len] == '\0' || real[len] == '/' || outer[len - 1] == '/');
}

/* Moving it would take away what the run is about to use. */
static int check_movable(const struct rundir *d, const struct rundir_opts *opts, struct err *e)
{
    if (holds(d->path, ".")) {
        return ERR(e, ERR_OUTPUT,
                   "cannot archive output directory '%s': it contains the current directory",
                   d->path);
    }
    for (const char *const *p = opts->keep; p != NULL && *p != NULL; p++) {
        if (holds(d->path, *p)) {
            return ERR(e, ERR_OUTPUT, "cannot archive output directory '%s': it contains '%s'",
                       d->path, *p);
        }
    }
    return 0;
}

static int archive(struct rundir *d, struct err *e)
{
    time_t now = (time_t)(clock_wall() / NSEC_PER_SEC);
    struct tm tm;
    char stamp[32];
    (void)gmtime_r(&now, &tm);
    (void)strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &tm);
    for (int i = 0; i < ARCHIVE_TRIES; i++) {
        char to[PATH_MAX];
        int n = i == 0 ? snprintf(to, sizeof to, "%s.%s", d->path, stamp)
                       : snprintf(to, sizeof to, "%s.%s.%d", d->path, stamp, i);
        if (n < 0 || (size_t)n >= sizeof to) {
            return ERR(e, ERR_OUTPUT, "cannot archive '%s': name too long", d->path);
        }
        if (renameat2(AT_FDCWD, d->path, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
            free(d->archived);
            d->archived = xstrdup(to);
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return ERR_SYS_AS(e, ERR_OUTPUT, "cannot archive '%s'", d->path);
}

/* One look at the path: 1 when it is ours and empty, 0 to look again, or an error. */
static int claim(struct rundir *d, const char *path, const struct rundir_opts *opts, struct err *e)
{
    int r = file_mkdirs(AT_FDCWD, d->path, 0700, e);
    if (r < 0) {
        return r;
    }
    d->dir_fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->dir_fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "open output directory '%s'", path);
    }
    int lock = try_lock(d->dir_fd);
    d->locked = lock > 0;
    if (lock < 0) {
        return ERR(e, ERR_OUTPUT, "output directory '%s' is in use by another run", path);
    }
    bool empty = false;
    if (still_there(d)) {
        r = file_dir_is_empty(d->dir_fd, ".", &empty, e);
        if (r < 0 || empty) {
            return r < 0 ? r : 1;
        }
        if (opts == NULL || !opts->force) {
            return ERR(
                e, ERR_OUTPUT,
                "output directory '%s' is not empty: use another one, or archive it with --force",
                path);
        }
        r = check_movable(d, opts, e);
        if (r == 0) {
            r = archive(d, e);
        }
    }
    cleanup_fd(&d->dir_fd);
    return r;
}

/* On a small disk the run needs room too: what does not fit into half of it is the text of the
 * result, which is then left out. */
static off_t reserve_size(int fd)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs) < 0) {
        return RESERVE_BYTES;
    }
    uint64_t half = (uint64_t)fs.f_bavail * fs.f_frsize / 2;
    return half < RESERVE_BYTES ? (off_t)half : RESERVE_BYTES;
}

static void reserve(struct rundir *d)
{
    int fd = openat(d->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 && fallocate(fd, 0, 0, reserve_size(fd)) < 0) {
        cleanup_fd(&fd); /* no such calls here, or no room: then there is nothing to keep aside */
    }
    d->reserve_fd = fd;
}

/* Whether it is there; what has its name and is something else is moved aside. */
static bool is_there(const struct rundir *d, const char *name, mode_t kind)
{
    struct stat st;
    if (fstatat(d->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return false;
    }
    if ((st.st_mode & S_IFMT) != kind) {
        rundir_move_aside(d, name);
        return false;
    }
    return true;
}

int rundir_complete(const struct rundir *d, struct err *e)
{
    /* Files first: from the first of them on, recovery knows the directory for a record. */
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        if ((f->flags & RECORD_AT_START) == 0 || is_there(d, f->path, S_IFREG)) {
            continue;
        }
        CLEANUP(fd) int fd = rundir_open_append(d, f->path, e);
        if (fd < 0) {
            return fd;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(sub_directories); i++) {
        if (!is_there(d, sub_directories[i], S_IFDIR) &&
            mkdirat(d->dir_fd, sub_directories[i], 0700) < 0 && errno != EEXIST) {
            return ERR_SYS_AS(e, ERR_OUTPUT, "create directory '%s'", sub_directories[i]);
        }
    }
    return 0;
}

int rundir_create(struct rundir *d, const char *path, const struct rundir_opts *opts, struct err *e)
{
    *d = (struct rundir)RUNDIR_INIT;
    char absolute[PATH_MAX];
    int r = path_absolute(path, absolute, sizeof absolute, e);
    if (r < 0) {
        return r;
    }
    d->path = xstrdup(absolute);
    r = 0;
    for (int i = 0; r == 0 && i < CREATE_TRIES; i++) {
        r = claim(d, path, opts, e);
    }
    if (r == 0) {
        r = ERR(e, ERR_OUTPUT, "output directory '%s' keeps changing", path);
    }
    if (r > 0) {
        r = rundir_complete(d, e);
    }
    if (r == 0) {
        reserve(d);
    }
    if (r < 0) {
        rundir_done(d);
    }
    return r;
}
