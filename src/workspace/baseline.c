/* SPDX-License-Identifier: MIT
 *
 * Scanning a tree, and comparing it with an earlier scan.
 */
#include "workspace/baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "workspace/listing.h"

static int64_t ctime_of(const struct stat *st)
{
    return (int64_t)st->st_ctim.tv_sec * NSEC_PER_SEC + st->st_ctim.tv_nsec;
}

static int add(struct baseline *b, const struct baseline_entry *x, struct err *e)
{
    if (b->len == BASELINE_MAX) {
        return ERR(e, ERR_LIMIT, "more than %d entries in the tree", BASELINE_MAX);
    }
    if (b->len == b->cap) {
        b->cap = b->cap == 0 ? 256 : b->cap * 2;
        b->items = xrealloc(b->items, b->cap * sizeof *b->items);
    }
    if (b->arena == NULL) {
        b->arena = arena_new();
    }
    b->items[b->len] = *x;
    b->items[b->len].path = arena_dup(b->arena, str_of(x->path));
    pathmap_put(&b->index, x->path, b->len);
    b->len++;
    return 0;
}

void baseline_done(struct baseline *b)
{
    free(b->items);
    pathmap_done(&b->index);
    b->arena = arena_free(b->arena);
    *b = (struct baseline) { 0 };
}

/* --- one walk for both purposes --- */

struct pass {
    struct baseline *b;
    struct delta *d; /* NULL: scan */
    const struct delta_filter *filter;
    struct arena *arena;
    struct pathmap unseen; /* directories that could not be looked into */
    bool unchanged;        /* the directory that is being entered is as it was */
    bool full;             /* the rest is left out */
    struct err *e;
};

static int walk(struct pass *p, int fd, const char *path, int depth);

/* What is in there is neither new nor gone: nobody can tell. */
static void leave_out(struct pass *p, const char *path, const char *why)
{
    pathmap_put(&p->unseen, path, 0);
    if (p->d != NULL && p->filter != NULL && p->filter->left_out != NULL) {
        p->filter->left_out(p->filter->arg, path, why);
    }
}

static int go_down(struct pass *p, int fd, const char *name, const char *path, int depth)
{
    bool lenient = p->filter != NULL && p->filter->left_out != NULL;
    if (depth >= DELTA_DEPTH_MAX || strlen(path) > PATH_MAX - NAME_MAX) {
        leave_out(p, path, "nested too deep");
        return lenient ? 0 : ERR(p->e, ERR_LIMIT, "'%.200s…' is nested too deep", path);
    }
    CLEANUP(fd)
    int inner = p->d != NULL ? delta_open_dir(p->d, p->filter, NODE_AT(fd, name), path, NULL)
                             : openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0) {
        if (!p->unchanged) {
            leave_out(p, path, strerror(errno));
        } else {
            pathmap_put(&p->unseen, path, 0);
        }
        return 0;
    }
    return walk(p, inner, path, depth + 1);
}

static int scan_entry(struct pass *p, const char *path, const struct stat *st)
{
    return add(p->b,
               &(struct baseline_entry) {
                   .path = path, .mode = st->st_mode, .ino = st->st_ino, .ctime = ctime_of(st) },
               p->e);
}

static bool is_same(const struct baseline_entry *before, const struct stat *now)
{
    return before->mode == now->st_mode && before->ino == now->st_ino &&
           before->ctime == ctime_of(now);
}

bool baseline_has(const struct baseline *b, const char *path, const struct stat *now)
{
    size_t i = 0;
    return b->len > 0 && pathmap_get(&b->index, path, &i) && is_same(&b->items[i], now);
}

/* 1 when the directory was put down tentatively: it goes again when nothing in it changed. */
static int compare_entry(struct pass *p, const char *path, const struct stat *st)
{
    size_t i = 0;
    bool known = pathmap_get(&p->b->index, path, &i);
    struct baseline_entry *before = known ? &p->b->items[i] : NULL;
    bool dir = S_ISDIR(st->st_mode);
    bool same = known && is_same(before, st);
    struct delta_entry x = { .kind = dir ? DELTA_DIR : DELTA_NODE, .path = path, .st = *st };
    x.clear = known && S_ISDIR(before->mode) != dir;
    if (known) {
        before->seen = true;
        before->is_dir_now = dir;
    }
    if (same && !dir) {
        return 0;
    }
    int r = delta_add(p->d, &x, p->e);
    return r < 0 ? r : same;
}

static int visit(struct pass *p, int fd, const char *name, const char *path, int depth)
{
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return 0; /* gone between the listing and here */
    }
    if (p->d != NULL && p->d->len >= DELTA_MAX - 2 && p->filter != NULL &&
        p->filter->left_out != NULL) {
        p->full = true;
        leave_out(p, path, "more changes than a patch can hold");
        return 0;
    }
    int r = p->d == NULL ? scan_entry(p, path, &st) : compare_entry(p, path, &st);
    if (r < 0 || !S_ISDIR(st.st_mode)) {
        return r < 0 ? r : 0;
    }
    size_t mark = p->d == NULL ? 0 : p->d->len;
    bool tentative = r > 0;
    p->unchanged = tentative;
    r = go_down(p, fd, name, path, depth);
    if (tentative && p->d->len == mark) {
        p->d->len--;
    }
    return r;
}

static int walk(struct pass *p, int fd, const char *path, int depth)
{
    CLEANUP(listing) struct listing names;
    int r = listing_read(&names, fd, p->e);
    for (size_t i = 0; r == 0 && !p->full && i < names.len; i++) {
        const char *name = names.items[i];
        const char *inner = path[0] == '\0' ? arena_dup(p->arena, str_of(name))
                                            : arena_printf(p->arena, "%s/%s", path, name);
        if (p->filter == NULL || p->filter->skip == NULL ||
            !p->filter->skip(p->filter->arg, inner)) {
            r = visit(p, fd, name, inner, depth);
        }
    }
    return r;
}

int baseline_scan(struct baseline *b, int fd, const struct delta_filter *filter, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct pass p = { .b = b, .filter = filter, .arena = a, .e = e };
    int r = walk(&p, fd, "", 0);
    pathmap_done(&p.unseen);
    return r;
}

/* --- what is gone --- */

static bool parent_is_there(const struct baseline *b, const char *path, struct arena *a)
{
    size_t i;
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return true;
    }
    const char *dir = arena_dup(a, str_n(path, (size_t)(slash - path)));
    return pathmap_get(&b->index, dir, &i) && b->items[i].is_dir_now;
}

/* Below a directory that could not be looked into? */
static bool is_unseen(const struct pass *p, const char *path, struct arena *a)
{
    for (const char *s = strchr(path, '/'); s != NULL && p->unseen.len > 0;
         s = strchr(s + 1, '/')) {
        arena_reset(a);
        if (pathmap_has(&p->unseen, arena_dup(a, str_n(path, (size_t)(s - path))))) {
            return true;
        }
    }
    return false;
}

int delta_of_copy(struct delta *d, int fd, struct baseline *b, const struct delta_filter *filter,
                  struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct pass p = { .b = b, .d = d, .filter = filter, .arena = a, .e = e };
    struct delta_entry root = { .kind = DELTA_DIR, .path = "" };
    if (fstat(fd, &root.st) < 0) {
        return ERR_SYS(e, "look at the tree");
    }
    for (size_t i = 0; i < b->len; i++) {
        b->items[i].seen = b->items[i].is_dir_now = false;
    }
    int r = delta_add(d, &root, e);
    r = r < 0 ? r : walk(&p, fd, "", 0);
    for (size_t i = 0; r == 0 && !p.full && i < b->len; i++) {
        const struct baseline_entry *x = &b->items[i];
        if (!x->seen && parent_is_there(b, x->path, a) && !is_unseen(&p, x->path, a)) {
            r = delta_add(d, &(struct delta_entry) { .kind = DELTA_REMOVE, .path = x->path }, e);
        }
    }
    pathmap_done(&p.unseen);
    return r;
}

/* --- on disk --- */

static const char magic[] = "cinch baseline 1\n";

struct fixed {
    uint64_t ino;
    int64_t ctime;
    uint32_t mode;
    uint32_t length; /* of the path that follows */
};

int baseline_write(const struct baseline *b, struct buf *out, struct err *e)
{
    int r = buf_append(out, str_of(magic), e);
    for (size_t i = 0; r == 0 && i < b->len; i++) {
        const struct baseline_entry *x = &b->items[i];
        struct fixed f = { x->ino, x->ctime, x->mode, (uint32_t)strlen(x->path) };
        r = buf_append(out, str_n(&f, sizeof f), e);
        r = r < 0 ? r : buf_append(out, str_of(x->path), e);
    }
    return r < 0 ? r : buf_append(out, STR("E"), e);
}

int baseline_parse(struct baseline *b, struct str text, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    if (!str_starts(text, str_of(magic))) {
        return ERR(e, ERR_PARSE, "baseline: not one of this version");
    }
    struct str rest = str_slice(text, sizeof magic - 1, text.len);
    while (rest.len > 1) {
        struct fixed f;
        if (rest.len < sizeof f) {
            return ERR(e, ERR_PARSE, "baseline: entry %zu is cut", b->len);
        }
        memcpy(&f, rest.ptr, sizeof f);
        rest = str_slice(rest, sizeof f, rest.len);
        struct str path = str_slice(rest, 0, f.length);
        if (path.len != f.length || path.len == 0 || path.len >= PATH_MAX || str_has_nul(path)) {
            return ERR(e, ERR_PARSE, "baseline: entry %zu is damaged", b->len);
        }
        rest = str_slice(rest, f.length, rest.len);
        arena_reset(a);
        struct baseline_entry x = {
            .path = arena_dup(a, path), .mode = f.mode, .ino = f.ino, .ctime = f.ctime
        };
        int r = node_is_inner_path(x.path)
                    ? add(b, &x, e)
                    : ERR(e, ERR_PARSE, "baseline: entry %zu is damaged", b->len);
        if (r < 0) {
            return r;
        }
    }
    return str_eqc(rest, "E") ? 0 : ERR(e, ERR_PARSE, "baseline: the end is missing");
}
