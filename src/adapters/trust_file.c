/* SPDX-License-Identifier: MIT
 *
 * The user's file as an object that is locked, read and replaced. One fixed name for the temporary
 * file is enough, since only the holder of the lock writes it; what a killed process left there is
 * overwritten by the next one.
 */
#include "adapters/trust_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define LOCK_WAIT    (10 * NSEC_PER_SEC)
#define HARNESS_WAIT (2 * NSEC_PER_SEC)
#define STEP         (2 * NSEC_PER_MS)

static void pause_for(nsec ns)
{
    struct timespec t = { .tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC };
    (void)nanosleep(&t, NULL);
}

/* --- names --- */

struct split {
    char parent[PATH_MAX];
    char base[NAME_MAX + 1];
};

/* "/a/b" into "/a" and "b". */
static int split_path(const char *file, struct split *ret, struct err *e)
{
    int r = path_absolute(file, ret->parent, sizeof ret->parent, e);
    if (r < 0) {
        return r;
    }
    char *slash = strrchr(ret->parent, '/');
    size_t len = slash == NULL ? 0 : strlen(slash + 1);
    if (len == 0 || len > NAME_MAX) {
        return ERR(e, ERR_CONFIG, "trust file '%s': no usable file name", file);
    }
    memcpy(ret->base, slash + 1, len + 1);
    slash[slash == ret->parent ? 1 : 0] = '\0';
    return 0;
}

static int resolve(struct trust_file *f, const char *file, const struct split *at, struct err *e)
{
    if (realpath(file, f->path) != NULL) {
        return 0;
    }
    if (errno != ENOENT) {
        return ERR_SYS(e, "trust file '%s'", file);
    }
    struct stat st; /* a plain file: made by another run just now */
    if (lstat(file, &st) == 0 && S_ISLNK(st.st_mode)) {
        return ERR(e, ERR_CONFIG, "trust file '%s': a symbolic link to nothing", file);
    }
    char real[PATH_MAX];
    if (realpath(at->parent, real) == NULL) {
        return ERR_SYS(e, "trust file '%s'", file);
    }
    return path_join(real, at->base, f->path, sizeof f->path, e);
}

static int beside(const struct trust_file *f, const char *suffix, char out[PATH_MAX], struct err *e)
{
    int n = snprintf(out, PATH_MAX, "%s%s", f->path, suffix);
    if (n < 0 || n >= PATH_MAX) {
        return ERR(e, ERR_LIMIT, "trust file '%s': name too long", f->path);
    }
    return 0;
}

/* --- locking --- */

/* A lock on a file that has been removed meanwhile locks nobody out. */
static bool is_current(int fd, const char *path)
{
    struct stat mine;
    struct stat there;
    return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

static int take_lock(const char *path, int *ret, struct err *e)
{
    nsec deadline = clock_now() + LOCK_WAIT;
    for (;;) {
        CLEANUP(fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
            return ERR_SYS(e, "lock '%s'", path);
        }
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            if (is_current(fd, path)) {
                *ret = TAKE_FD(fd);
                return 0;
            }
        } else if (errno != EWOULDBLOCK && errno != EINTR) {
            return ERR_SYS(e, "lock '%s'", path);
        }
        if (clock_now() > deadline) {
            return ERR(e, ERR_TIMEOUT, "lock '%s': another process holds it for too long", path);
        }
        pause_for(STEP);
    }
}

/* Harnesses built on proper-lockfile hold a directory <file>.lock while they write, and keep its
 * time of change fresh. We wait for it but do not take it: left behind by a killed cinch it could
 * hang the harness. */
static bool harness_is_writing(const struct trust_file *f)
{
    char path[PATH_MAX];
    struct stat st;
    if (beside(f, ".lock", path, NULL) < 0 || lstat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
        return false;
    }
    int64_t age = clock_wall() / NSEC_PER_SEC - st.st_mtim.tv_sec;
    return age >= 0 && age < 10;
}

int trust_file_open(struct trust_file *f, const char *file, bool make, bool *ret_absent,
                    struct err *e)
{
    char lock[PATH_MAX];
    struct split at;
    int r = split_path(file, &at, e);
    if (r < 0) {
        return r;
    }
    *ret_absent = !file_is_dir(AT_FDCWD, at.parent);
    if (*ret_absent && !make) {
        return 0;
    }
    r = *ret_absent ? file_mkdirs(AT_FDCWD, at.parent, 0700, e) : 0;
    *ret_absent = false;
    if (r == 0) {
        r = resolve(f, file, &at, e);
    }
    if (r == 0) {
        r = beside(f, ".cinch.json", f->ledger, e);
    }
    if (r == 0) {
        r = beside(f, ".cinch.tmp", f->temp, e);
    }
    if (r == 0) {
        r = beside(f, ".cinch.lock", lock, e);
    }
    if (r < 0) {
        return r;
    }
    if (!make && !file_exists(AT_FDCWD, f->ledger)) {
        *ret_absent = true;
        return 0;
    }
    return take_lock(lock, &f->lock_fd, e);
}

void trust_file_close(struct trust_file *f)
{
    cleanup_fd(&f->lock_fd);
}

/* --- reading and replacing --- */

int trust_file_load(const struct trust_file *f, struct buf *ret, struct stat *ret_st, struct err *e)
{
    nsec deadline = clock_now() + HARNESS_WAIT;
    while (harness_is_writing(f) && clock_now() < deadline) {
        pause_for(STEP);
    }
    *ret_st = (struct stat) { 0 };
    if (stat(f->path, ret_st) < 0) {
        *ret_st = (struct stat) { 0 };
        return errno == ENOENT ? 0 : ERR_SYS(e, "trust file '%s'", f->path);
    }
    if (!S_ISREG(ret_st->st_mode)) {
        return ERR(e, ERR_CONFIG, "trust file '%s' is not a regular file", f->path);
    }
    return file_read(AT_FDCWD, f->path, TRUST_TEXT_MAX, ret, e);
}

static bool is_unchanged(const struct trust_file *f, const struct stat *st)
{
    struct stat now;
    if (stat(f->path, &now) < 0) {
        return errno == ENOENT && st->st_nlink == 0;
    }
    return st->st_nlink > 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino &&
           now.st_size == st->st_size && now.st_mtim.tv_sec == st->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

static int keep_owner(int fd, const struct trust_file *f, const struct stat *st, struct err *e)
{
    struct stat made;
    if (fstat(fd, &made) < 0) {
        return ERR_SYS(e, "'%s'", f->temp);
    }
    bool same = made.st_uid == st->st_uid && made.st_gid == st->st_gid;
    if (!same && fchown(fd, st->st_uid, st->st_gid) < 0) {
        return ERR_SYS(e, "keep the owner of '%s'", f->path);
    }
    if (fchmod(fd, st->st_mode & 07777) < 0) {
        return ERR_SYS(e, "keep the mode of '%s'", f->path);
    }
    return 0;
}

static int write_temp(const struct trust_file *f, struct str text, const struct stat *st,
                      struct err *e)
{
    (void)unlink(f->temp);
    CLEANUP(fd)
    int fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return ERR_SYS(e, "create '%s'", f->temp);
    }
    int r = file_write_all(fd, text, e);
    if (r < 0) {
        return err_wrap(e, "'%s'", f->temp);
    }
    r = st->st_nlink > 0 ? keep_owner(fd, f, st, e) : 0;
    if (r < 0) {
        return r;
    }
    /* Other than our records, this file belongs to the user: it must not be empty after a power
     * cut. */
    return fsync(fd) < 0 ? ERR_SYS(e, "write '%s'", f->temp) : 0;
}

int trust_file_replace(const struct trust_file *f, struct str text, const struct stat *st,
                       struct err *e)
{
    int r = write_temp(f, text, st, e);
    if (r == 0 && !is_unchanged(f, st)) {
        (void)unlink(f->temp);
        return 0;
    }
    if (r == 0 && rename(f->temp, f->path) < 0) {
        r = ERR_SYS(e, "replace '%s'", f->path);
    }
    if (r < 0) {
        (void)unlink(f->temp);
        return r;
    }
    return 1;
}

int trust_file_unlink(const struct trust_file *f, const struct stat *st, struct err *e)
{
    if (!is_unchanged(f, st)) {
        return 0;
    }
    if (unlink(f->path) < 0) {
        return ERR_SYS(e, "remove '%s'", f->path);
    }
    return 1;
}
