/* SPDX-License-Identifier: MIT
 *
 * Keeping a workspace as it is, and bringing that back: a plan (savepoint_plan.c), carried out as a
 * transaction whose content comes from the savepoint.
 */
#include "workspace/savepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/id.h"
#include "workspace/merge.h"
#include "workspace/savepoint_priv.h"
#include "workspace/tree.h"
#include "workspace/txn_priv.h"

#define KEPT_NAME   "tree"
#define MAKING_NAME "new"

/* --- life --- */

static bool is_ours(void *arg, const char *path)
{
    const struct savepoints *s = arg;
    const struct delta_filter *f = &s->opts.skip;
    return strncmp(path, TXN_STAGE_PREFIX, sizeof TXN_STAGE_PREFIX - 1) == 0 ||
           (f->skip != NULL && f->skip(f->arg, path));
}

static int open_dir(int at, const char *name, struct err *e)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? ERR_SYS(e, "open '%s'", name) : fd;
}

int savepoints_open(const struct savepoint_opts *o, struct savepoints **ret, struct err *e)
{
    int r = file_mkdirs(AT_FDCWD, o->dir, 0700, e);
    r = r < 0 ? r : open_dir(AT_FDCWD, o->dir, e);
    if (r < 0) {
        return r;
    }
    struct savepoints *s = xcalloc(1, sizeof *s);
    s->opts = *o;
    s->dir_fd = r;
    s->saved_fd = -1;
    s->skip = (struct delta_filter) { is_ours, s };
    *ret = s;
    return 0;
}

static void release(struct savepoints *s)
{
    baseline_done(&s->seen);
    cleanup_fd(&s->saved_fd);
    cleanup_fd(&s->dir_fd);
    free(s);
}

struct savepoints *savepoints_close(struct savepoints *s)
{
    if (s != NULL) {
        /* What was decided and could not be done is for whoever recovers. */
        if (!file_exists(s->dir_fd, SAVEPOINT_NOTE)) {
            (void)!file_remove_tree(AT_FDCWD, s->opts.dir, NULL);
        }
        release(s);
    }
    return NULL;
}

/* --- taking --- */

struct taking {
    const struct savepoints *s;
    struct err trouble; /* code ERR_OK: none */
    int64_t shared;     /* bytes that an earlier savepoint had already */
};

static int earlier(void *arg, const char *path, const struct stat *st)
{
    struct taking *t = arg;
    const struct savepoints *s = t->s;
    if (s->saved_fd < 0 || !baseline_has(&s->seen, path, st)) {
        return -1;
    }
    t->shared += S_ISREG(st->st_mode) ? st->st_size : 0;
    return s->saved_fd;
}

/* Without it the savepoint would be one that removes what it does not know. */
static void on_left_out(void *arg, const char *path, const char *why)
{
    struct taking *t = arg;
    struct stat st;
    bool gone = fstatat(t->s->opts.tree_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0;
    if (!gone && t->trouble.code == ERR_OK) {
        (void)ERR(&t->trouble, ERR_UNSUPPORTED, "'%s' cannot be kept: %s", path, why);
    }
}

static int copy_tree(struct savepoints *s, struct savepoint_report *ret, struct err *e)
{
    struct taking t = { .s = s };
    struct tree_stats stats = { 0 };
    struct tree_copy_opts o = { .skip = s->skip,
                                .marks = s->opts.marks,
                                .earlier = earlier,
                                .left_out = on_left_out,
                                .arg = &t };
    int r = file_remove_tree(s->dir_fd, MAKING_NAME, e);
    if (r == 0 && mkdirat(s->dir_fd, MAKING_NAME, 0700) < 0) {
        r = ERR_SYS(e, "create '%s/%s'", s->opts.dir, MAKING_NAME);
    }
    CLEANUP(fd) int to = r < 0 ? r : open_dir(s->dir_fd, MAKING_NAME, e);
    r = to < 0 ? to : tree_copy(s->opts.tree_fd, to, &o, &stats, e);
    if (r == 0 && t.trouble.code != ERR_OK) {
        *e = t.trouble;
        r = -(int)t.trouble.code;
    }
    ret->files = (size_t)stats.files;
    ret->entries = (size_t)(stats.files + stats.dirs + stats.links);
    ret->bytes = stats.bytes - t.shared;
    return r;
}

static int replace_kept(struct savepoints *s, struct err *e)
{
    cleanup_fd(&s->saved_fd);
    int r = file_remove_tree(s->dir_fd, KEPT_NAME, e);
    if (r == 0 && renameat(s->dir_fd, MAKING_NAME, s->dir_fd, KEPT_NAME) < 0) {
        r = ERR_SYS(e, "rename '%s/%s'", s->opts.dir, MAKING_NAME);
    }
    r = r < 0 ? r : open_dir(s->dir_fd, KEPT_NAME, e);
    s->saved_fd = r < 0 ? -1 : r;
    return r < 0 ? r : 0;
}

int savepoint_take(struct savepoints *s, struct savepoint_report *ret, struct err *e)
{
    struct baseline seen = { 0 };
    nsec start = clock_now();
    *ret = (struct savepoint_report) { 0 };
    /* Looked at before it is copied: what changes in between is copied, and known to differ. */
    int r = baseline_scan(&seen, s->opts.tree_fd, &s->skip, e);
    r = r < 0 ? r : copy_tree(s, ret, e);
    if (r < 0) {
        (void)!file_remove_tree(s->dir_fd, MAKING_NAME, NULL);
        baseline_done(&seen);
        return err_wrap(e, "savepoint");
    }
    r = replace_kept(s, e);
    baseline_done(&s->seen);
    s->seen = seen;
    ret->took = clock_now() - start;
    return r < 0 ? err_wrap(e, "savepoint") : 0;
}

int savepoint_decide(struct savepoints *s, struct str text, struct err *e)
{
    return file_write_atomic(s->dir_fd, SAVEPOINT_NOTE, text, 0600, e);
}

/* --- bringing back --- */

struct restoring {
    struct savepoint_plan plan;
    struct node_owner owner; /* from the disk to the view */
    char id[ID_LEN];
    char stage_name[sizeof TXN_STAGE_PREFIX + ID_LEN];
    int all_fd, dir_fd, source_fd;
};

static void cleanup_restoring(struct restoring *x)
{
    savepoint_plan_done(&x->plan);
    cleanup_fd(&x->source_fd);
    cleanup_fd(&x->dir_fd);
    cleanup_fd(&x->all_fd);
}

/* Mounts of the view may show another owner than the disk has (sandbox.h): the roots of both tell
 * which. */
static int find_owner(struct restoring *x, struct err *e)
{
    const struct savepoint_opts *o = &x->plan.s->opts;
    struct stat disk;
    struct stat view;
    if (fstat(o->tree_fd, &disk) < 0 || fstat(o->workspace_fd, &view) < 0) {
        return ERR_SYS(e, "look at the workspace");
    }
    x->owner = (struct node_owner) { .active = disk.st_uid != view.st_uid,
                                     .from_uid = disk.st_uid,
                                     .to_uid = view.st_uid,
                                     .from_gid = disk.st_gid,
                                     .to_gid = view.st_gid };
    return 0;
}

static int fetch(void *arg, size_t i, struct node_at to, struct err *e)
{
    const struct restoring *x = arg;
    const struct savepoint_plan *p = &x->plan;
    const char *path = p->origins[i].path;
    const char *slash = strrchr(path, '/');
    const char *dir = slash == NULL ? "" : arena_dup(p->arena, str_n(path, (size_t)(slash - path)));
    CLEANUP(fd) int fd = node_open_dir(savepoint_plan_root(p, i), dir, e);
    return fd < 0 ? fd
                  : node_copy(NODE_AT(fd, slash == NULL ? path : slash + 1), &p->delta.items[i].st,
                              to, &x->owner, e);
}

static int make_dirs(struct restoring *x, struct err *e)
{
    const struct savepoint_plan *p = &x->plan;
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->delta.len; i++) {
        const struct delta_entry *y = &p->delta.items[i];
        if (y->kind == DELTA_DIR && y->path[0] != '\0') {
            r = file_mkdirs(x->source_fd, y->path, 0700, e);
        }
    }
    /* Children first: their mode may forbid to go there. */
    for (size_t i = p->delta.len; r == 0 && i-- > 0;) {
        const struct delta_entry *y = &p->delta.items[i];
        if (y->kind != DELTA_DIR) {
            continue;
        }
        CLEANUP(fd) int from = node_open_dir(savepoint_plan_root(p, i), p->origins[i].path, e);
        CLEANUP(fd) int to = from < 0 ? -1 : node_open_dir(x->source_fd, y->path, e);
        r = from < 0 ? from : to < 0 ? to : 0;
        r = r < 0
                ? r
                : node_copy_attributes(NODE_AT(from, "."), &y->st, NODE_AT(to, "."), &x->owner, e);
    }
    return r;
}

/* <txn_dir>/<id>/copy: where txns_recover() looks for the attributes of directories. */
static int make_places(struct restoring *x, struct err *e)
{
    const char *txn_dir = x->plan.s->opts.txn_dir;
    (void)id_new(x->id);
    (void)snprintf(x->stage_name, sizeof x->stage_name, "%s%s", TXN_STAGE_PREFIX, x->id);
    int r = file_mkdirs(AT_FDCWD, txn_dir, 0700, e);
    x->all_fd = r < 0 ? -1 : open_dir(AT_FDCWD, txn_dir, e);
    r = x->all_fd < 0 ? -(int)ERR_SYS : file_mkdirs(x->all_fd, x->id, 0700, e);
    x->dir_fd = r < 0 ? -1 : open_dir(x->all_fd, x->id, e);
    r = x->dir_fd < 0 ? -(int)ERR_SYS : file_mkdirs(x->dir_fd, TXN_COPY, 0700, e);
    x->source_fd = r < 0 ? -1 : open_dir(x->dir_fd, TXN_COPY, e);
    return x->source_fd < 0 ? -(int)ERR_SYS : make_dirs(x, e);
}

static int carry_out(struct restoring *x, struct savepoint_report *ret, struct err *e)
{
    struct merge m = {
        .workspace_fd = x->plan.s->opts.workspace_fd,
        .dir_fd = x->dir_fd,
        .source_fd = x->source_fd,
        .stage_name = x->stage_name,
        .delta = &x->plan.delta,
        .fetch = fetch,
        .arg = x,
        .stage_fd = -1,
    };
    int r = merge_stage(&m, e);
    r = r < 0 ? r : merge_decide(&m, e);
    if (r < 0) {
        merge_drop(&m);
        return r;
    }
    r = merge_apply(&m, e);
    if (r == 0) {
        merge_drop(&m);
    }
    cleanup_fd(&m.stage_fd);
    ret->files = m.placed;
    ret->bytes = m.bytes;
    return r;
}

static int restore(struct savepoints *s, struct savepoint_report *ret, struct err *e)
{
    CLEANUP(restoring) struct restoring x = { .all_fd = -1, .dir_fd = -1, .source_fd = -1 };
    int r = savepoint_plan_make(&x.plan, s, e);
    const struct delta *d = &x.plan.delta;
    if (r < 0 || d->len == 0) {
        return r;
    }
    r = find_owner(&x, e);
    r = r < 0 ? r : make_places(&x, e);
    r = r < 0 ? r : carry_out(&x, ret, e);
    ret->entries = d->len;
    for (size_t i = 0; i < d->len; i++) {
        ret->removed += d->items[i].kind == DELTA_REMOVE;
    }
    /* A decided change that could not be applied keeps its journal. */
    if (x.dir_fd >= 0 && (r == 0 || !file_exists(x.dir_fd, "journal"))) {
        (void)!file_remove_tree(x.all_fd, x.id, NULL);
    }
    return r;
}

int savepoint_restore(struct savepoints *s, struct savepoint_report *ret, struct err *e)
{
    nsec start = clock_now();
    *ret = (struct savepoint_report) { 0 };
    if (s->saved_fd < 0 || s->opts.workspace_fd < 0) {
        return ERR(e, ERR_BUG, "there is no savepoint, or no view to restore it in");
    }
    int r = restore(s, ret, e);
    if (r == 0) {
        (void)unlinkat(s->dir_fd, SAVEPOINT_NOTE, 0);
    }
    ret->took = clock_now() - start;
    return r < 0 ? err_wrap(e, "bring back the savepoint") : 0;
}

int savepoints_recover(const struct savepoint_opts *o, struct err *e)
{
    struct savepoints *s;
    struct savepoint_report report;
    if (!file_is_dir(AT_FDCWD, o->dir)) {
        return 0; /* there never was one */
    }
    int r = savepoints_open(o, &s, e);
    if (r < 0) {
        return r;
    }
    bool decided = file_exists(s->dir_fd, SAVEPOINT_NOTE);
    if (decided) {
        s->saved_fd = open_dir(s->dir_fd, KEPT_NAME, e);
        r = s->saved_fd < 0 ? -(int)ERR_SYS : savepoint_restore(s, &report, e);
    }
    (void)savepoints_close(s);
    return r < 0 ? r : decided;
}
