/* SPDX-License-Identifier: MIT
 *
 * What an overlay's upper layer says about the tree below it.
 */
#include "workspace/delta.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "workspace/layer.h"
#include "workspace/listing.h"

void delta_init(struct delta *d)
{
    *d = (struct delta) { .arena = arena_new() };
}

void delta_done(struct delta *d)
{
    free(d->items);
    free(d->unlocked);
    d->arena = arena_free(d->arena);
    *d = (struct delta) { 0 };
}

int delta_add(struct delta *d, const struct delta_entry *entry, struct err *e)
{
    if (d->len == DELTA_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d changed entries", DELTA_MAX);
    }
    if (d->len == d->cap) {
        d->cap = d->cap == 0 ? 32 : d->cap * 2;
        d->items = xrealloc(d->items, d->cap * sizeof *d->items);
    }
    struct delta_entry *item = &d->items[d->len++];
    *item = *entry;
    item->path = arena_dup(d->arena, str_of(entry->path));
    item->from = entry->from == NULL ? NULL : arena_dup(d->arena, str_of(entry->from));
    return 0;
}

/* --- directories without permissions --- */

static void note_unlocked(struct delta *d, const char *path, mode_t mode)
{
    if (d->unlocked_len == d->unlocked_cap) {
        d->unlocked_cap = d->unlocked_cap == 0 ? 16 : d->unlocked_cap * 2;
        d->unlocked = xrealloc(d->unlocked, d->unlocked_cap * sizeof *d->unlocked);
    }
    d->unlocked[d->unlocked_len++] =
        (struct delta_unlocked) { arena_dup(d->arena, str_of(path)), mode };
}

int delta_open_dir(struct delta *d, const struct delta_filter *filter, struct node_at at,
                   const char *path, struct err *e)
{
    enum { FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    int fd = openat(at.fd, at.name, FLAGS);
    bool closed = fd < 0 ? errno == EACCES : faccessat(fd, ".", X_OK, AT_EACCESS) < 0;
    if (!closed) {
        return fd < 0 ? ERR_SYS(e, "open directory '%s'", path) : fd;
    }
    struct stat st;
    cleanup_fd(&fd);
    if (filter != NULL && filter->unlock &&
        fstatat(at.fd, at.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
        fchmodat(at.fd, at.name, (st.st_mode & 07777) | S_IRWXU, 0) == 0) {
        note_unlocked(d, path, st.st_mode & 07777);
        fd = openat(at.fd, at.name, FLAGS);
    }
    errno = EACCES;
    return fd < 0 ? ERR_SYS(e, "open directory '%s'", path) : fd;
}

void delta_lock(struct delta *d, int fd)
{
    for (size_t i = d->unlocked_len; i > 0; i--) { /* inner ones first */
        const struct delta_unlocked *x = &d->unlocked[i - 1];
        CLEANUP(fd) int dir = node_open_dir(fd, x->path, NULL);
        if (dir >= 0) {
            (void)!fchmod(dir, x->mode);
        }
    }
    d->unlocked_len = 0;
}

/* --- the walk --- */

struct walk {
    struct delta *d;
    int base_fd;
    enum node_marks marks;
    const struct delta_filter *filter;
    struct arena *arena; /* names on the way */
    bool full;           /* the rest is left out */
    struct err *e;
};

/* A directory of the layer that is being read. */
struct place {
    int fd;
    const char *path; /* here, in the merged tree */
    const char *base; /* of the directory below it, or NULL when nothing shows through */
    int depth;
};

static const char *join(struct arena *a, const char *dir, const char *name)
{
    return dir[0] == '\0' ? arena_dup(a, str_of(name)) : arena_printf(a, "%s/%s", dir, name);
}

static bool base_stat(const struct walk *w, const char *path, struct stat *st)
{
    return path != NULL && fstatat(w->base_fd, path, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int walk_dir(struct walk *w, const struct place *p);

/* Reported, if anybody wants to know; else `failure` stands. */
static int leave_out(struct walk *w, const char *path, const char *why, int failure)
{
    if (w->filter == NULL || w->filter->left_out == NULL) {
        return failure;
    }
    w->filter->left_out(w->filter->arg, path, why);
    return 0;
}

static int add_removal(struct walk *w, const char *path, const char *base)
{
    return delta_add(
        w->d, &(struct delta_entry) { .kind = DELTA_REMOVE, .path = path, .from = base }, w->e);
}

static int add_move(struct walk *w, const char *path, const char *base, const char *from)
{
    struct stat source;
    struct stat here;
    if (!base_stat(w, from, &source) || !S_ISDIR(source.st_mode)) {
        return ERR(w->e, ERR_SYS, "'%s' was moved to '%s', but it is not a directory", from, path);
    }
    int r = base_stat(w, base, &here) ? add_removal(w, path, base) : 0;
    struct delta_entry move = { .kind = DELTA_MOVE, .path = path, .from = from };
    return r < 0 ? r : delta_add(w->d, &move, w->e);
}

static int add_directory(struct walk *w, const struct place *p, const char *name,
                         const struct stat *st)
{
    struct stat below;
    const char *path = join(w->arena, p->path, name);
    const char *base = p->base == NULL ? NULL : join(w->arena, p->base, name);
    const char *from = layer_redirect(w->arena, NODE_AT(p->fd, name), w->marks, p->base);
    bool there = base_stat(w, base, &below);
    bool merges = there && S_ISDIR(below.st_mode) && from == NULL &&
                  !layer_is_opaque(NODE_AT(p->fd, name), w->marks);
    if (p->depth >= DELTA_DEPTH_MAX || strlen(path) > PATH_MAX - NAME_MAX) {
        return leave_out(w, path, "nested too deep",
                         ERR(w->e, ERR_LIMIT, "'%.200s…' is nested too deep", path));
    }
    int r = from == NULL ? 0 : add_move(w, path, base, from);
    if (r == 0) {
        struct delta_entry entry = { .kind = DELTA_DIR, .path = path, .from = base, .st = *st };
        entry.clear = there && !merges && from == NULL;
        r = delta_add(w->d, &entry, w->e);
    }
    CLEANUP(fd)
    int fd = r < 0 ? r : delta_open_dir(w->d, w->filter, NODE_AT(p->fd, name), path, w->e);
    if (fd < 0) {
        return r < 0 ? r : leave_out(w, path, strerror(errno), fd);
    }
    struct place inner = { fd, path, from != NULL ? from : merges ? base : NULL, p->depth + 1 };
    return walk_dir(w, &inner);
}

static int add_node(struct walk *w, const struct place *p, const char *name, const struct stat *st)
{
    char value[8];
    struct stat below;
    const char *base = p->base == NULL ? NULL : join(w->arena, p->base, name);
    struct delta_entry entry = { .kind = DELTA_NODE, .from = base, .st = *st };
    entry.path = join(w->arena, p->path, name);
    if (node_mark(p->fd, name, w->marks, "metacopy", value, sizeof value) >= 0) {
        return ERR(w->e, ERR_UNSUPPORTED,
                   "'%s' was copied up without its content; mount the overlay with metacopy=off",
                   entry.path);
    }
    entry.clear = base_stat(w, base, &below) && S_ISDIR(below.st_mode);
    return delta_add(w->d, &entry, w->e);
}

static int add_entry(struct walk *w, const struct place *p, const char *name)
{
    struct stat st;
    struct stat below;
    const char *path = join(w->arena, p->path, name);
    if (w->filter != NULL && w->filter->skip != NULL && w->filter->skip(w->filter->arg, path)) {
        return 0;
    }
    if (fstatat(p->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return ERR_SYS(w->e, "look at '%s'", path);
    }
    if (w->d->len >= DELTA_MAX - 2 && w->filter != NULL && w->filter->left_out != NULL) {
        w->full = true;
        return leave_out(w, path, "more changes than a patch can hold", 0);
    }
    if (layer_is_whiteout(NODE_AT(p->fd, name), &st, w->marks)) {
        const char *base = p->base == NULL ? NULL : join(w->arena, p->base, name);
        return base_stat(w, base, &below) ? add_removal(w, path, base) : 0;
    }
    return S_ISDIR(st.st_mode) ? add_directory(w, p, name, &st) : add_node(w, p, name, &st);
}

static int walk_dir(struct walk *w, const struct place *p)
{
    CLEANUP(listing) struct listing names;
    int r = listing_read(&names, p->fd, w->e);
    for (size_t i = 0; r == 0 && !w->full && i < names.len; i++) {
        r = add_entry(w, p, names.items[i]);
    }
    return r;
}

int delta_of_upper(struct delta *d, int upper_fd, int base_fd, enum node_marks marks,
                   const struct delta_filter *filter, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct walk w = {
        .d = d, .base_fd = base_fd, .marks = marks, .filter = filter, .arena = a, .e = e
    };
    struct delta_entry root = { .kind = DELTA_DIR, .path = "" };
    if (fstat(upper_fd, &root.st) < 0) {
        return ERR_SYS(e, "look at the upper layer");
    }
    int r = delta_add(d, &root, e);
    struct place top = { upper_fd, "", "", 0 };
    return r < 0 ? r : walk_dir(&w, &top);
}
