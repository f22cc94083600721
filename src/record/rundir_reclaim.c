/* SPDX-License-Identifier: MIT
 *
 * Taking the run directory back after the harness is gone; see rundir.h. A harness that cleans up
 * too well, or means ill, may have removed, moved, replaced or locked what the verdict goes into.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/record_file.h"
#include "record/rundir.h"

/* Replaced by rename, which a directory of that name would refuse. */
static bool is_replaced(const struct record_file *f)
{
    return f->form == RECORD_JSON && strchr(f->path, '/') == NULL;
}

/* The directory was removed: a new one takes the verdict. Only where nothing else stands now, or
 * we would write into a directory of somebody's choice. */
static int make_anew(struct rundir *d, struct err *e)
{
    if (mkdir(d->path, 0700) < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "the run directory '%s' was removed during the run",
                          d->path);
    }
    int fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "open run directory '%s'", d->path);
    }
    cleanup_fd(&d->dir_fd);
    d->dir_fd = fd;
    d->locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    return ERR(e, ERR_OUTPUT, "the run directory '%s' was removed during the run, with all logs",
               d->path);
}

static int tell_moved(const struct rundir *d, struct err *e)
{
    char link[64];
    char now[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", d->dir_fd);
    ssize_t n = readlink(link, now, sizeof now - 1);
    now[n < 0 ? 0 : n] = '\0';
    return ERR(e, ERR_OUTPUT, "the run directory '%s' was moved to '%s' during the run", d->path,
               now);
}

static int find_again(struct rundir *d, struct err *e)
{
    struct stat here;
    struct stat there;
    if (fstat(d->dir_fd, &here) < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "look at run directory '%s'", d->path);
    }
    if (here.st_nlink == 0) {
        return make_anew(d, e);
    }
    bool same =
        stat(d->path, &there) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
    if ((here.st_mode & S_IRWXU) != S_IRWXU) {
        (void)fchmod(d->dir_fd, (here.st_mode & ALLPERMS) | S_IRWXU);
    }
    return same ? 0 : tell_moved(d, e);
}

int rundir_reclaim(struct rundir *d, struct err *e)
{
    int r = find_again(d, e);
    for (const struct record_file *f = record_files; f->path != NULL; f++) {
        struct stat st;
        if (is_replaced(f) && fstatat(d->dir_fd, f->path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISREG(st.st_mode)) {
            rundir_move_aside(d, f->path);
        }
    }
    struct err later;
    int completed = rundir_complete(d, r < 0 ? &later : e);
    return r < 0 ? r : completed;
}
