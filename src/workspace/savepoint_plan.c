/* SPDX-License-Identifier: MIT
 *
 * What differs between a workspace and its savepoint. Both are a layer over the same tree below (or
 * whole trees over nothing); the two layers are walked side by side, and what neither of them
 * mentions is the same in both.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "workspace/layer.h"
#include "workspace/listing.h"
#include "workspace/savepoint_priv.h"

/* A directory as the workspace has it, or as the savepoint has it. */
struct side {
    int fd;           /* in the layer; -1: the layer does not have it */
    const char *base; /* the directory below that shows through; NULL: none */
    int depth;
};

enum what { ABSENT, NODE, DIRECTORY };

struct found {
    enum what what;
    bool in_layer;
    const char *base; /* a directory: what shows through; a node that is not in the layer: it */
    struct stat st;
};

struct names {
    const char **items;
    size_t len, cap;
};

static const char *join(struct arena *a, const char *dir, const char *name)
{
    return dir[0] == '\0' ? arena_dup(a, str_of(name)) : arena_printf(a, "%s/%s", dir, name);
}

int savepoint_plan_root(const struct savepoint_plan *p, size_t i)
{
    return p->origins[i].saved ? p->s->saved_fd : p->s->opts.base_fd;
}

void savepoint_plan_done(struct savepoint_plan *p)
{
    free(p->origins);
    delta_done(&p->delta);
    p->arena = arena_free(p->arena);
}

static int add(struct savepoint_plan *p, const struct delta_entry *x, struct origin from,
               struct err *e)
{
    if (p->delta.len == p->cap) {
        p->cap = p->cap == 0 ? 64 : p->cap * 2;
        p->origins = xrealloc(p->origins, p->cap * sizeof *p->origins);
    }
    p->origins[p->delta.len] = from;
    return delta_add(&p->delta, x, e);
}

/* --- one entry of one side --- */

static enum what what_of(const struct stat *st)
{
    return S_ISDIR(st->st_mode) ? DIRECTORY : NODE;
}

static bool below(const struct savepoint_plan *p, const char *path, struct stat *st)
{
    return path != NULL && fstatat(p->s->opts.base_fd, path, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void look_below(const struct savepoint_plan *p, const char *path, struct found *ret)
{
    *ret = (struct found) { .base = path };
    ret->what = below(p, path, &ret->st) ? what_of(&ret->st) : ABSENT;
}

static void look(const struct savepoint_plan *p, const struct side *in, const char *name,
                 struct found *ret)
{
    enum node_marks marks = p->s->opts.marks;
    struct node_at at = NODE_AT(in->fd, name);
    struct stat st;
    const char *base = in->base == NULL ? NULL : join(p->arena, in->base, name);
    if (in->fd < 0 || fstatat(in->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        look_below(p, base, ret);
        return;
    }
    *ret = (struct found) { .what = what_of(&st), .in_layer = true, .st = st };
    if (marks == NODE_MARKS_NONE) {
        return;
    }
    if (layer_is_whiteout(at, &st, marks)) {
        ret->what = ABSENT;
    } else if (ret->what == DIRECTORY && !layer_is_opaque(at, marks)) {
        struct stat under;
        const char *from = layer_redirect(p->arena, at, marks, in->base);
        from = from == NULL ? base : from;
        ret->base = below(p, from, &under) && S_ISDIR(under.st_mode) ? from : NULL;
    }
}

static int enter(const struct savepoint_plan *p, const struct side *in, const char *name,
                 const struct found *f, struct side *ret, struct err *e)
{
    *ret = (struct side) { .fd = -1, .base = f->base, .depth = in->depth + 1 };
    if (ret->depth >= DELTA_DEPTH_MAX) {
        return ERR(e, ERR_LIMIT, "'%.200s' is nested too deep", name);
    }
    if (!f->in_layer) {
        return 0;
    }
    /* A layer is ours, and may be made readable; a tree is not. */
    ret->fd = p->s->opts.marks != NODE_MARKS_NONE
                  ? listing_open(in->fd, name, e)
                  : openat(in->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return ret->fd < 0 ? ERR_SYS(e, "open directory '%s'", name) : 0;
}

/* --- names --- */

static void add_name(struct arena *a, struct names *n, const char *name)
{
    if (n->len == n->cap) {
        size_t cap = n->cap == 0 ? 32 : n->cap * 2;
        const char **more = arena_array(a, cap, sizeof *more);
        if (n->len > 0) {
            memcpy(more, n->items, n->len * sizeof *more);
        }
        n->items = more;
        n->cap = cap;
    }
    n->items[n->len++] = arena_dup(a, str_of(name));
}

static int add_names(struct arena *a, struct names *n, int fd, struct err *e)
{
    CLEANUP(listing) struct listing list = { 0 };
    int r = listing_read(&list, fd, e);
    for (size_t i = 0; r == 0 && i < list.len; i++) {
        add_name(a, n, list.items[i]);
    }
    return r;
}

static int add_base_names(const struct savepoint_plan *p, struct names *n, const char *base,
                          struct err *e)
{
    if (base == NULL) {
        return 0;
    }
    CLEANUP(fd) int fd = node_open_dir(p->s->opts.base_fd, base, e);
    return fd < 0 ? fd : add_names(p->arena, n, fd, e);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_names(struct names *n)
{
    size_t kept = 0;
    if (n->len > 1) {
        qsort((void *)n->items, n->len, sizeof *n->items, by_name);
    }
    for (size_t i = 0; i < n->len; i++) {
        if (kept == 0 || strcmp(n->items[kept - 1], n->items[i]) != 0) {
            n->items[kept++] = n->items[i];
        }
    }
    n->len = kept;
}

static bool is_skipped(const struct savepoint_plan *p, const char *path)
{
    return p->s->skip.skip(p->s->skip.arg, path);
}

/* --- what the savepoint has and the workspace has not --- */

static int bring(struct savepoint_plan *p, const struct side *in, const char *path,
                 const struct found *f, bool clear, struct err *e);

static int bring_content(struct savepoint_plan *p, const struct side *in, const char *path,
                         struct err *e)
{
    struct names n = { 0 };
    int r = in->fd < 0 ? 0 : add_names(p->arena, &n, in->fd, e);
    r = r < 0 ? r : add_base_names(p, &n, in->base, e);
    sort_names(&n);
    for (size_t i = 0; r == 0 && i < n.len; i++) {
        struct found f;
        const char *inner = join(p->arena, path, n.items[i]);
        look(p, in, n.items[i], &f);
        if (f.what != ABSENT && !is_skipped(p, inner)) {
            r = bring(p, in, inner, &f, false, e);
        }
    }
    return r;
}

static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static int note(struct savepoint_plan *p, const char *path, const struct found *f, bool clear,
                struct err *e)
{
    struct delta_entry x = { .path = path, .st = f->st, .clear = clear };
    x.kind = f->what == DIRECTORY ? DELTA_DIR : DELTA_NODE;
    return add(p, &x, (struct origin) { f->in_layer, f->in_layer ? path : f->base }, e);
}

static int bring(struct savepoint_plan *p, const struct side *in, const char *path,
                 const struct found *f, bool clear, struct err *e)
{
    struct side inner;
    int r = note(p, path, f, clear, e);
    if (r < 0 || f->what != DIRECTORY) {
        return r;
    }
    r = enter(p, in, last_of(path), f, &inner, e);
    r = r < 0 ? r : bring_content(p, &inner, path, e);
    cleanup_fd(&inner.fd);
    return r;
}

/* --- both --- */

/* Nobody has touched what is in the layer since the savepoint was made. */
static bool is_untouched(const struct savepoint_plan *p, const char *path, const struct stat *st)
{
    return baseline_has(&p->s->seen, path, st);
}

static bool is_same(const struct savepoint_plan *p, const char *path, const struct found *now,
                    const struct found *then)
{
    if (now->in_layer != then->in_layer) {
        return false;
    }
    return now->in_layer ? is_untouched(p, path, &now->st) : strcmp(now->base, then->base) == 0;
}

static bool same_base(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static int compare(struct savepoint_plan *p, const struct side *now, const struct side *then,
                   const char *path, struct err *e);

static int compare_dirs(struct savepoint_plan *p, const struct side *now, const struct side *then,
                        const char *path, const struct found both[2], struct err *e)
{
    struct side a = { .fd = -1 };
    struct side b = { .fd = -1 };
    bool same = is_same(p, path, &both[0], &both[1]);
    if (same && !both[0].in_layer) {
        return 0;
    }
    int r = note(p, path, &both[1], false, e); /* goes again when there is no reason for it */
    size_t mark = p->delta.len;
    r = r < 0 ? r : enter(p, now, last_of(path), &both[0], &a, e);
    r = r < 0 ? r : enter(p, then, last_of(path), &both[1], &b, e);
    r = r < 0 ? r : compare(p, &a, &b, path, e);
    cleanup_fd(&a.fd);
    cleanup_fd(&b.fd);
    if (r == 0 && same && p->delta.len == mark) {
        p->delta.len--;
    }
    return r;
}

static int compare_entry(struct savepoint_plan *p, const struct side *now, const struct side *then,
                         const char *path, struct err *e)
{
    struct found both[2];
    look(p, now, last_of(path), &both[0]);
    look(p, then, last_of(path), &both[1]);
    bool there = both[0].what != ABSENT;
    if (both[1].what == ABSENT) {
        struct delta_entry gone = { .kind = DELTA_REMOVE, .path = path };
        return there ? add(p, &gone, (struct origin) { 0 }, e) : 0;
    }
    if (both[0].what != both[1].what) {
        return bring(p, then, path, &both[1], there, e);
    }
    if (both[0].what == DIRECTORY) {
        return compare_dirs(p, now, then, path, both, e);
    }
    return is_same(p, path, &both[0], &both[1]) ? 0 : note(p, path, &both[1], false, e);
}

static int compare(struct savepoint_plan *p, const struct side *now, const struct side *then,
                   const char *path, struct err *e)
{
    struct names n = { 0 };
    int r = now->fd < 0 ? 0 : add_names(p->arena, &n, now->fd, e);
    r = r < 0 || then->fd < 0 ? r : add_names(p->arena, &n, then->fd, e);
    if (r == 0 && !same_base(now->base, then->base)) {
        r = add_base_names(p, &n, now->base, e);
        r = r < 0 ? r : add_base_names(p, &n, then->base, e);
    }
    sort_names(&n);
    for (size_t i = 0; r == 0 && i < n.len; i++) {
        const char *inner = join(p->arena, path, n.items[i]);
        r = is_skipped(p, inner) ? 0 : compare_entry(p, now, then, inner, e);
    }
    return r;
}

int savepoint_plan_make(struct savepoint_plan *p, const struct savepoints *s, struct err *e)
{
    const char *base = s->opts.base_fd < 0 ? NULL : "";
    struct found root = { .what = DIRECTORY, .in_layer = true };
    *p = (struct savepoint_plan) { .s = s, .arena = arena_new() };
    delta_init(&p->delta);
    if (fstat(s->saved_fd, &root.st) < 0) {
        return ERR_SYS(e, "look at the savepoint");
    }
    int r = note(p, "", &root, false, e);
    struct side now = { s->opts.tree_fd, base, 0 };
    struct side then = { s->saved_fd, base, 0 };
    r = r < 0 ? r : compare(p, &now, &then, "", e);
    if (r == 0 && p->delta.len == 1) {
        p->delta.len = 0; /* times of the root alone are no change */
    }
    return r;
}
