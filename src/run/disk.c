/* SPDX-License-Identifier: MIT
 *
 * Free space, and walks when it falls; see disk.h.
 */
#include "run/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "run/run_priv.h"
#include "workspace/workspace.h"

/* Counting a million files takes a second, in which nothing else happens. */
#define ENTRIES_MAX 200000
/* Each level holds a descriptor. */
#define DEPTH_MAX 64
/* No program that needs to write a file gets along with less. */
#define FULL_BELOW (64u << 10)
/* Between two walks while free space does not fall: other programs may free as much as the run
 * writes. A large tree is walked less often, so that walks take at most a hundredth of the time. */
#define WALK_EVERY (5 * NSEC_PER_SEC)
#define WALK_SHARE 100

/* --- usage --- */

struct usage {
    uint64_t bytes;
    size_t entries;
    dev_t dev;
    bool cut;
};

static void add_tree(struct usage *u, int fd, int depth);

static void add_entry(struct usage *u, int dir_fd, const char *name, int depth)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_dev != u->dev) {
        return; /* removed meanwhile, or of another file system */
    }
    u->entries++;
    /* A file with several names counts once, if they are all here. */
    uint64_t names = S_ISDIR(st.st_mode) || st.st_nlink == 0 ? 1 : st.st_nlink;
    u->bytes += (uint64_t)st.st_blocks * 512 / names;
    if (!S_ISDIR(st.st_mode)) {
        return;
    }
    if (depth == DEPTH_MAX) {
        u->cut = true;
        return;
    }
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        add_tree(u, fd, depth + 1);
    }
}

/* Takes the descriptor. */
static void add_tree(struct usage *u, int fd, int depth)
{
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        (void)close(fd);
        return;
    }
    for (const struct dirent *i = readdir(d); i != NULL && !u->cut; i = readdir(d)) {
        if (u->entries >= ENTRIES_MAX) {
            u->cut = true;
        } else if (strcmp(i->d_name, ".") != 0 && strcmp(i->d_name, "..") != 0) {
            add_entry(u, dirfd(d), i->d_name, depth);
        }
    }
    (void)closedir(d);
}

bool disk_usage(int dir_fd, uint64_t *ret)
{
    struct stat st;
    struct usage u = { 0 };
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret = 0;
    if (fd < 0 || fstat(fd, &st) != 0) {
        cleanup_fd(&fd);
        return false;
    }
    u.dev = st.st_dev;
    add_tree(&u, fd, 0);
    *ret = u.bytes;
    return !u.cut;
}

/* --- the limit --- */

static bool free_space(const struct run *run, uint64_t *ret)
{
    struct statvfs fs;
    bool known = fstatvfs(run->record.dir.dir_fd, &fs) == 0 && fs.f_blocks > 0;
    *ret = known ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
    return known;
}

uint64_t disk_limit(uint64_t wanted, uint64_t free_space)
{
    uint64_t half = free_space / 2;
    return wanted > 0 ? wanted : half < DISK_DEFAULT ? half : DISK_DEFAULT;
}

/* The next walk is due when half of what is left to `used` may have been written, or after a time
 * that follows from how long this one `took`. */
static void plan_walk(struct run_disk *d, uint64_t used, uint64_t free_now, nsec took)
{
    nsec pause = took * WALK_SHARE > WALK_EVERY ? took * WALK_SHARE : WALK_EVERY;
    uint64_t left = d->limit > used ? d->limit - used : 0;
    uint64_t step = left / 2 > d->limit / 64 ? left / 2 : d->limit / 64;
    d->walk_below = free_now > step ? free_now - step : 0;
    d->walk_at = clock_now() + pause;
}

/* A copy of the workspace was made by us; in the other modes next to nothing is there yet. */
static bool is_copy(const struct run *run)
{
    return run->workspace != NULL && workspace_dir(run->workspace) != NULL &&
           run->plan->settings.view.mode != WORKSPACE_IN_PLACE;
}

void disk_begin(struct run *run)
{
    struct run_disk *d = &run->disk;
    uint64_t wanted = (uint64_t)run->plan->settings.sandbox.disk;
    *d = (struct run_disk) { 0 };
    if (!free_space(run, &d->free_start)) {
        if (wanted > 0) {
            run_warn(run,
                     "the disk space of the run is not limited: the file system of '%s' does "
                     "not report its free space",
                     run->record.dir.path);
        }
        return;
    }
    if (wanted > 0 && run->plan->settings.view.mode == WORKSPACE_IN_PLACE) {
        run_warn(run,
                 "sandbox.disk does not limit what the agent writes to the workspace, which it "
                 "changes in place");
    }
    d->limit = disk_limit(wanted, d->free_start);
    if (is_copy(run) && !disk_usage(run->record.dir.dir_fd, &d->before)) {
        d->before = 0; /* too large to be counted: then free space is all that is looked at */
    }
    plan_walk(d, 0, d->free_start, 0);
}

static void note_full(struct run_disk *d, uint64_t free_now)
{
    d->full = d->full || free_now < FULL_BELOW;
}

const char *disk_size_text(struct arena *a, uint64_t bytes)
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    size_t unit = 0;
    double n = (double)bytes;
    for (; n >= 1024 && unit + 1 < ARRAY_LEN(units); unit++) {
        n /= 1024;
    }
    return arena_printf(a, unit == 0 ? "%.0f %s" : "%.1f %s", n, units[unit]);
}

bool disk_exceeded(struct run *run, char *text, size_t size)
{
    struct run_disk *d = &run->disk;
    uint64_t now;
    uint64_t used;
    if (d->limit == 0 || !free_space(run, &now)) {
        return false;
    }
    note_full(d, now);
    nsec start = clock_now();
    if (now > d->walk_below && start < d->walk_at) {
        return false;
    }
    bool counted = disk_usage(run->record.dir.dir_fd, &used);
    used = used > d->before ? used - d->before : 0;
    if (!counted && d->free_start > now && d->free_start - now > used) {
        used = d->free_start - now; /* the best guess */
    }
    plan_walk(d, used, now, clock_now() - start);
    if (used <= d->limit) {
        return false;
    }
    (void)snprintf(text, size,
                   "the run used %s of disk space in '%s' and may use %s: raise the limit with "
                   "sandbox.disk (--disk)",
                   disk_size_text(run->arena, used), run->record.dir.path,
                   disk_size_text(run->arena, d->limit));
    return true;
}

/* --- a full disk --- */

/* Of our own calls, of programs that we started, of harnesses that print the name of the error. */
static bool says_full(struct str text)
{
    const char *const words[] = { strerrordesc_np(ENOSPC), strerrordesc_np(EDQUOT), "ENOSPC",
                                  "Out of diskspace" /* git */ };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_find(text, str_of(words[i])) < text.len) {
            return true;
        }
    }
    return false;
}

void disk_look(struct run *run)
{
    uint64_t now;
    if (free_space(run, &now)) {
        note_full(&run->disk, now);
    }
}

/* Where the agent works in the user's own tree, that may be the file system that is full. */
static bool workspace_is_full(const struct run *run)
{
    struct statvfs fs;
    return run->plan->settings.view.mode == WORKSPACE_IN_PLACE && run->paths.view != NULL &&
           statvfs(run->paths.view, &fs) == 0 && fs.f_blocks > 0 &&
           (uint64_t)fs.f_bavail * fs.f_frsize < FULL_BELOW;
}

void disk_judge(struct run *run)
{
    int lost = run->record.loss.times > 0 ? run->record.loss.first.sys : 0;
    const char *where = run->record.dir.path;
    bool full =
        run->disk.full || lost == ENOSPC || lost == EDQUOT || says_full(str_of(run->cause.message));
    if (!full && workspace_is_full(run)) {
        full = true;
        where = run->paths.view;
    }
    if (full) {
        run_blame(run, REASON_DISK, "the disk of '%s' is full", where);
    }
}
