/* SPDX-License-Identifier: MIT
 *
 * Has anybody changed what this transaction is about to change?
 *
 * Commits are compared by path: each delta lists every directory on the way to a change, so two
 * that collide have a path in common, and only two mere directories at one path get along. What the
 * agent did by itself is seen by the time of the last change (ctime), which no program can set.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "workspace/listing.h"
#include "workspace/txn_priv.h"

static bool is_mere_dir(const struct delta_entry *x)
{
    return x->kind == DELTA_DIR && !x->clear;
}

static int collide(const char *path, const char *how, struct txn_report *report, struct err *e)
{
    (void)snprintf(report->conflict, sizeof report->conflict, "%s", path);
    return ERR(e, ERR_EXISTS, "'%s' was changed %s since this transaction began", path, how);
}

static int check_path(const struct txn *x, const char *path, bool mere, struct txn_report *report,
                      struct err *e)
{
    for (const struct txn_commit_log *l = x->all->log; l != NULL && l->number > x->begun_at;
         l = l->next) {
        size_t changed;
        if (pathmap_get(&l->paths, path, &changed) && (changed != 0 || !mere)) {
            return collide(path, "by another transaction", report, e);
        }
    }
    return 0;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* A directory that goes as a whole must not hold anything new. Bounded by what removal costs. */
static int check_below(const struct txn *x, int fd, const char *path, int depth,
                       struct txn_report *report, struct err *e)
{
    CLEANUP(listing) struct listing names;
    int r = listing_read(&names, fd, e);
    for (size_t i = 0; r == 0 && i < names.len; i++) {
        struct stat st;
        if (fstatat(fd, names.items[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
            continue;
        }
        if (is_later(&st.st_ctim, &x->now)) {
            return collide(path, "by the agent", report, e);
        }
        CLEANUP(fd)
        int inner = S_ISDIR(st.st_mode) && depth < DELTA_DEPTH_MAX
                        ? node_open_dir(fd, names.items[i], NULL)
                        : -1;
        r = inner < 0 ? 0 : check_below(x, inner, path, depth + 1, report, e);
    }
    return r;
}

static int check_disk(const struct txn *x, const char *path, struct txn_report *report,
                      struct err *e)
{
    struct stat st;
    int root = x->all->opts.workspace_fd;
    if (fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return 0;
    }
    if (is_later(&st.st_ctim, &x->now)) {
        return collide(path, "by the agent", report, e);
    }
    CLEANUP(fd) int fd = S_ISDIR(st.st_mode) ? node_open_dir(root, path, NULL) : -1;
    return fd < 0 ? 0 : check_below(x, fd, path, 0, report, e);
}

int txn_check_conflict(const struct txn *x, const struct delta *d, struct txn_report *report,
                       struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < d->len; i++) {
        const struct delta_entry *y = &d->items[i];
        bool mere = is_mere_dir(y);
        r = check_path(x, y->path, mere, report, e);
        if (r == 0 && y->kind == DELTA_MOVE) {
            r = check_path(x, y->from, false, report, e);
        }
        if (r == 0 && !mere) {
            r = check_disk(x, y->from == NULL ? y->path : y->from, report, e);
        }
    }
    return r;
}

void txn_log_commit(struct txn *x, const struct delta *d)
{
    struct txns *t = x->all;
    struct txn_commit_log *l = xcalloc(1, sizeof *l);
    l->number = ++t->commits;
    l->next = t->log;
    t->log = l;
    for (size_t i = 0; i < d->len; i++) {
        const struct delta_entry *y = &d->items[i];
        size_t before = 0;
        (void)pathmap_get(&l->paths, y->path, &before);
        pathmap_put(&l->paths, y->path, before != 0 || !is_mere_dir(y));
        if (y->kind == DELTA_MOVE) {
            pathmap_put(&l->paths, y->from, 1);
        }
    }
}

void txn_log_trim(struct txns *t)
{
    uint64_t oldest = t->commits;
    for (const struct txn *x = t->active; x != NULL; x = x->next) {
        oldest = x->begun_at < oldest ? x->begun_at : oldest;
    }
    struct txn_commit_log **at = &t->log;
    while (*at != NULL && (*at)->number > oldest) {
        at = &(*at)->next;
    }
    struct txn_commit_log *old = *at;
    *at = NULL;
    while (old != NULL) {
        struct txn_commit_log *next = old->next;
        pathmap_done(&old->paths);
        free(old);
        old = next;
    }
}
