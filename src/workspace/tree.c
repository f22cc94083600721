/* SPDX-License-Identifier: MIT
 *
 * Copying and measuring trees, by descriptors, depth bounded.
 */
#include "workspace/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "workspace/layer.h"
#include "workspace/links.h"
#include "workspace/listing.h"

struct copying {
    const struct tree_copy_opts *o;
    struct tree_stats stats;
    struct links links;
    struct arena *arena;
    const char **linked; /* paths of files with several names, by number */
    size_t linked_len, linked_cap;
    int to_root;
    struct err *e;
};

struct level {
    int from, to;
    const char *path;
    int depth;
};

static const char *join(struct arena *a, const char *dir, const char *name)
{
    return dir[0] == '\0' ? arena_dup(a, str_of(name)) : arena_printf(a, "%s/%s", dir, name);
}

static void leave_out(struct copying *c, const char *path, const char *why)
{
    c->stats.left_out++;
    if (c->o->left_out != NULL) {
        c->o->left_out(c->o->arg, path, why);
    }
}

static void count(struct tree_stats *s, const struct stat *st)
{
    s->files += S_ISREG(st->st_mode);
    s->dirs += S_ISDIR(st->st_mode);
    s->links += S_ISLNK(st->st_mode);
    s->bytes += S_ISREG(st->st_mode) ? st->st_size : 0;
    s->disk += (int64_t)st->st_blocks * 512;
}

static void remember(struct copying *c, const char *path)
{
    if (c->linked_len == c->linked_cap) {
        size_t cap = c->linked_cap == 0 ? 64 : c->linked_cap * 2;
        const char **more = arena_array(c->arena, cap, sizeof *more);
        if (c->linked_len > 0) {
            memcpy(more, c->linked, c->linked_len * sizeof *more);
        }
        c->linked = more;
        c->linked_cap = cap;
    }
    c->linked[c->linked_len++] = path;
}

static int copy_level(struct copying *c, const struct level *l);

static int copy_dir(struct copying *c, const struct level *l, const char *name, const char *path,
                    const struct stat *st)
{
    if (l->depth >= DELTA_DEPTH_MAX || strlen(path) > PATH_MAX - NAME_MAX) {
        leave_out(c, path, "nested too deep");
        return 0;
    }
    if (mkdirat(l->to, name, 0700) < 0) {
        return ERR_SYS(c->e, "create directory '%s'", path);
    }
    CLEANUP(fd) int to = openat(l->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(fd)
    int from = c->o->marks != NODE_MARKS_NONE
                   ? listing_open(l->from, name, NULL)
                   : openat(l->from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0) {
        return ERR_SYS(c->e, "open directory '%s'", path);
    }
    int r = 0;
    if (from < 0) {
        leave_out(c, path, strerror(errno));
    } else {
        r = copy_level(c, &(struct level) { from, to, path, l->depth + 1 });
    }
    r = r < 0 ? r
              : layer_copy_marks(NODE_AT(l->from, name), NODE_AT(l->to, name), c->o->marks, c->e);
    return r < 0 ? r
                 : node_copy_attributes(NODE_AT(l->from, name), st, NODE_AT(l->to, name),
                                        c->o->owner, c->e);
}

static bool link_to_earlier(struct copying *c, const struct level *l, const char *name,
                            const char *path, const struct stat *st)
{
    int root = c->o->earlier == NULL ? -1 : c->o->earlier(c->o->arg, path, st);
    return root >= 0 && linkat(root, path, l->to, name, 0) == 0;
}

static int copy_file(struct copying *c, const struct level *l, const char *name, const char *path,
                     const struct stat *st)
{
    size_t first;
    if (c->o->marks != NODE_MARKS_NONE &&
        layer_is_whiteout(NODE_AT(l->from, name), st, c->o->marks)) {
        return layer_put_whiteout(NODE_AT(l->to, name), c->e);
    }
    if (link_to_earlier(c, l, name, path, st)) {
        return 0;
    }
    if (links_seen(&c->links, st, c->linked_len, &first)) {
        if (linkat(c->to_root, c->linked[first], l->to, name, 0) < 0 && errno != ENOENT) {
            return ERR_SYS(c->e, "link '%s'", path);
        }
        return 0;
    }
    if (st->st_nlink > 1) {
        remember(c, path);
    }
    struct err why = { 0 };
    int r = node_copy(NODE_AT(l->from, name), st, NODE_AT(l->to, name), c->o->owner, &why);
    if (r < 0 && (why.code == ERR_UNSUPPORTED || why.sys == EACCES || why.sys == EPERM ||
                  why.sys == ENOENT)) {
        leave_out(c, path, why.msg);
        return 0;
    }
    if (r < 0 && c->e != NULL) {
        *c->e = why;
    }
    return r < 0 ? err_wrap(c->e, "copy '%s'", path) : 0;
}

static int copy_level(struct copying *c, const struct level *l)
{
    CLEANUP(listing) struct listing names;
    int r = listing_read(&names, l->from, c->e);
    for (size_t i = 0; r == 0 && i < names.len; i++) {
        struct stat st;
        const char *name = names.items[i];
        const char *path = join(c->arena, l->path, name);
        if (c->o->skip.skip != NULL && c->o->skip.skip(c->o->skip.arg, path)) {
            continue;
        }
        if (fstatat(l->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            continue; /* gone since the listing */
        }
        count(&c->stats, &st);
        r = S_ISDIR(st.st_mode) ? copy_dir(c, l, name, path, &st)
                                : copy_file(c, l, name, path, &st);
    }
    return r;
}

int tree_copy(int from_fd, int to_fd, const struct tree_copy_opts *o, struct tree_stats *ret,
              struct err *e)
{
    static const struct tree_copy_opts plain = { 0 };
    CLEANUP(arena) struct arena *a = arena_new();
    struct copying c = { .o = o == NULL ? &plain : o, .arena = a, .to_root = to_fd, .e = e };
    struct stat root;
    if (fstat(from_fd, &root) < 0) {
        return ERR_SYS(e, "look at the tree");
    }
    int r = copy_level(&c, &(struct level) { from_fd, to_fd, "", 0 });
    links_done(&c.links);
    r = r < 0 ? r
              : node_copy_attributes(NODE_AT(from_fd, "."), &root, NODE_AT(to_fd, "."), c.o->owner,
                                     e);
    if (ret != NULL) {
        *ret = c.stats;
    }
    return r;
}

/* --- measuring --- */

static int measure(int fd, struct tree_stats *s, struct links *links, int depth, struct err *e)
{
    CLEANUP(listing) struct listing names;
    int r = listing_read(&names, fd, e);
    for (size_t i = 0; r == 0 && i < names.len; i++) {
        struct stat st;
        size_t first;
        if (fstatat(fd, names.items[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            links_seen(links, &st, 0, &first)) {
            continue;
        }
        count(s, &st);
        CLEANUP(fd)
        int inner =
            S_ISDIR(st.st_mode) && depth < DELTA_DEPTH_MAX
                ? openat(fd, names.items[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                : -1;
        r = inner < 0 ? 0 : measure(inner, s, links, depth + 1, e);
    }
    return r;
}

int tree_measure(int fd, struct tree_stats *ret, struct err *e)
{
    CLEANUP(links) struct links links = { 0 };
    *ret = (struct tree_stats) { 0 };
    return measure(fd, ret, &links, 0, e);
}
