/* SPDX-License-Identifier: MIT
 *
 * The life of a transaction: directories at its begin, delta and merge at its end.
 */
#include "workspace/txn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "workspace/tree.h"
#include "workspace/txn_priv.h"

static int open_place(const char *path, struct err *e)
{
    int r = file_mkdirs(AT_FDCWD, path, 0700, e);
    if (r < 0) {
        return r;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? ERR_SYS(e, "open '%s'", path) : fd;
}

int txns_open(const struct txns_opts *o, struct txns **ret, struct err *e)
{
    int r = txns_recover(o, e);
    r = r < 0 ? r : open_place(o->dir, e);
    if (r < 0) {
        return r;
    }
    struct txns *t = xcalloc(1, sizeof *t);
    t->arena = arena_new();
    t->opts = *o;
    t->opts.dir = arena_dup(t->arena, str_of(o->dir));
    t->dir_fd = r;
    t->layers_fd = o->layers_fd >= 0 ? o->layers_fd : t->dir_fd;
    *ret = t;
    return 0;
}

struct txns *txns_close(struct txns *t)
{
    if (t == NULL) {
        return NULL;
    }
    while (t->active != NULL) {
        (void)txn_rollback(t->active);
    }
    txn_log_trim(t);
    cleanup_fd(&t->dir_fd);
    arena_free(t->arena);
    free(t);
    return NULL;
}

size_t txns_active(const struct txns *t)
{
    return t->active_count;
}

/* --- begin --- */

static void unlink_active(struct txn *x)
{
    struct txns *t = x->all;
    if (x->prev != NULL) {
        x->prev->next = x->next;
    } else {
        t->active = x->next;
    }
    if (x->next != NULL) {
        x->next->prev = x->prev;
    }
    t->active_count--;
    txn_log_trim(t);
}

/* Removes everything of it but the journal's directory last, so that recovery finds the rest. */
static void discard(struct txn *x)
{
    struct txns *t = x->all;
    cleanup_fd(&x->source_fd);
    cleanup_fd(&x->dir_fd);
    if (t->layers_fd != t->dir_fd) {
        (void)!file_remove_tree(t->layers_fd, x->id, NULL);
    }
    (void)!file_remove_tree(t->dir_fd, x->id, NULL);
    unlink_active(x);
    baseline_done(&x->baseline);
    arena_free(x->arena);
    free(x);
}

static int open_inner(int at, const char *name, struct err *e)
{
    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST) {
        return ERR_SYS(e, "create '%s'", name);
    }
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? ERR_SYS(e, "open '%s'", name) : fd;
}

/* The root of a view takes its attributes from the layer, and whoever mounts it must be able to
 * use both directories. */
static int make_layers(struct txn *x, int at, struct err *e)
{
    struct stat st;
    int root = x->all->opts.workspace_fd;
    const struct node_owner *o = &x->all->opts.owner;
    const struct node_owner back = { o->active, o->to_uid, o->from_uid, o->to_gid, o->from_gid };
    int r = open_inner(at, TXN_UPPER, e);
    if (r < 0) {
        return r;
    }
    x->source_fd = r;
    CLEANUP(fd) int work = open_inner(at, TXN_WORK, e);
    if (work < 0) {
        return work;
    }
    if (fstat(root, &st) < 0) {
        return ERR_SYS(e, "look at the workspace");
    }
    r = node_copy_attributes(NODE_AT(root, "."), &st, NODE_AT(x->source_fd, "."), &back, e);
    return r < 0 ? r : node_copy_attributes(NODE_AT(root, "."), &st, NODE_AT(work, "."), &back, e);
}

static bool is_stage(void *arg, const char *path)
{
    return strncmp(path, TXN_STAGE_PREFIX, sizeof TXN_STAGE_PREFIX - 1) == 0;
}

static int make_copy(struct txn *x, struct err *e)
{
    const struct txns_opts *o = &x->all->opts;
    const struct txns *t = x->all;
    bool apart = t->layers_fd != t->dir_fd;
    CLEANUP(fd) int at = apart ? open_inner(t->layers_fd, x->id, e) : -1;
    int r = apart && at < 0 ? at : open_inner(apart ? at : x->dir_fd, TXN_COPY, e);
    if (r < 0) {
        return r;
    }
    x->source_fd = r;
    x->copy_name = arena_printf(x->arena, "%s/%s", x->id, TXN_COPY);
    x->copy = apart ? NULL : arena_printf(x->arena, "%s/%s", o->dir, x->copy_name);
    struct tree_copy_opts copy = { .skip = { is_stage, NULL } };
    r = tree_copy(o->workspace_fd, x->source_fd, &copy, NULL, e);
    return r < 0 ? r : baseline_scan(&x->baseline, x->source_fd, NULL, e);
}

static int make_places(struct txn *x, struct err *e)
{
    struct txns *t = x->all;
    int r = open_inner(t->dir_fd, x->id, e);
    if (r < 0) {
        return r;
    }
    x->dir_fd = r;
    if (!t->opts.overlay) {
        return make_copy(x, e);
    }
    CLEANUP(fd) int at = open_inner(t->layers_fd, x->id, e);
    return at < 0 ? at : make_layers(x, at, e);
}

int txn_begin(struct txns *t, struct txn **ret, struct err *e)
{
    struct txn *x = xcalloc(1, sizeof *x);
    x->all = t;
    x->dir_fd = x->source_fd = -1;
    x->arena = arena_new();
    x->begun_at = t->commits;
    (void)id_new(x->id);
    (void)snprintf(x->stage_name, sizeof x->stage_name, "%s%s", TXN_STAGE_PREFIX, x->id);
    x->next = t->active;
    if (t->active != NULL) {
        t->active->prev = x;
    }
    t->active = x;
    t->active_count++;
    int r = make_places(x, e);
    /* After a copy, not before it: what changed while we copied is in the copy. */
    (void)clock_gettime(CLOCK_REALTIME, &x->now);
    if (r == 0 && fstat(x->source_fd, &x->root) < 0) {
        r = ERR_SYS(e, "look at the layer");
    }
    if (r < 0) {
        discard(x);
        return err_wrap(e, "begin a transaction");
    }
    *ret = x;
    return 0;
}

const char *txn_layer(const struct txn *x)
{
    return x->copy_name == NULL ? x->id : NULL;
}

const char *txn_copy(const struct txn *x)
{
    return x->copy;
}

const char *txn_copy_name(const struct txn *x)
{
    return x->copy_name;
}

/* --- end --- */

static int find_delta(struct txn *x, struct delta *d, struct err *e)
{
    const struct txns_opts *o = &x->all->opts;
    return o->overlay ? delta_of_upper(d, x->source_fd, o->workspace_fd, o->marks, NULL, e)
                      : delta_of_copy(d, x->source_fd, &x->baseline, NULL, e);
}

static void count(const struct delta *d, const struct merge *m, struct txn_report *report)
{
    report->entries = d->len;
    report->files = m->placed;
    report->bytes = m->bytes;
    for (size_t i = 0; i < d->len; i++) {
        report->removed += d->items[i].kind == DELTA_REMOVE;
    }
}

/* Only marks of the overlay itself? Anything else could be a change of the root. */
static bool has_attributes(int fd)
{
    static const char *const marks[] = { "trusted.overlay.", "user.overlay." };
    char names[4096];
    ssize_t n = flistxattr(fd, names, sizeof names);
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1) {
        if (strncmp(names + i, marks[0], strlen(marks[0])) != 0 &&
            strncmp(names + i, marks[1], strlen(marks[1])) != 0) {
            return true;
        }
    }
    return n < 0;
}

/* Programs that only look are the common case: for them nothing is staged and decided. The root is
 * always in the list. */
static bool is_nothing(const struct txn *x, const struct delta *d)
{
    const struct stat *was = &x->root, *is = &d->items[0].st;
    return d->len == 1 && d->items[0].path[0] == '\0' && !d->items[0].clear &&
           was->st_mode == is->st_mode && was->st_uid == is->st_uid && was->st_gid == is->st_gid &&
           was->st_mtim.tv_sec == is->st_mtim.tv_sec &&
           was->st_mtim.tv_nsec == is->st_mtim.tv_nsec && !has_attributes(x->source_fd);
}

static int commit(struct txn *x, struct txn_report *report, struct err *e)
{
    CLEANUP(delta) struct delta d;
    delta_init(&d);
    const struct txns_opts *o = &x->all->opts;
    struct merge m = {
        .workspace_fd = o->workspace_fd,
        .dir_fd = x->dir_fd,
        .source_fd = x->source_fd,
        .marks = o->overlay ? o->marks : NODE_MARKS_NONE,
        .owner = o->owner,
        .stage_name = x->stage_name,
        .delta = &d,
        .stage_fd = -1,
    };
    int r = find_delta(x, &d, e);
    if (r == 0 && is_nothing(x, &d)) {
        return 0;
    }
    r = r < 0 ? r : txn_check_conflict(x, &d, report, e);
    if (r < 0) {
        return r;
    }
    r = merge_stage(&m, e);
    r = r < 0 ? r : merge_decide(&m, e);
    if (r < 0) {
        merge_drop(&m);
        return r;
    }
    txn_log_commit(x, &d);
    r = merge_apply(&m, e);
    if (r == 0) {
        merge_drop(&m);
    }
    cleanup_fd(&m.stage_fd);
    count(&d, &m, report);
    return r;
}

/* A decided change that could not be applied keeps its journal: the next txns_open() tries again.
 */
static void leave(struct txn *x)
{
    cleanup_fd(&x->source_fd);
    cleanup_fd(&x->dir_fd);
    unlink_active(x);
    baseline_done(&x->baseline);
    arena_free(x->arena);
    free(x);
}

int txn_commit(struct txn *x, struct txn_report *report, struct err *e)
{
    struct txn_report own;
    nsec start = clock_now();
    report = report == NULL ? &own : report;
    *report = (struct txn_report) { 0 };
    int r = commit(x, report, e);
    bool decided = r < 0 && file_exists(x->dir_fd, "journal");
    if (decided) {
        leave(x);
    } else {
        discard(x);
    }
    report->took = clock_now() - start;
    return r < 0 ? err_wrap(e, "commit") : 0;
}

struct txn *txn_rollback(struct txn *x)
{
    if (x != NULL) {
        discard(x);
    }
    return NULL;
}
