/* SPDX-License-Identifier: MIT
 *
 * From a delta to two sets of files: the changed paths as they were, and as they are now.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "workspace/diff_priv.h"
#include "workspace/git.h"
#include "workspace/listing.h"

static const char *join(struct arena *a, const char *dir, const char *name)
{
    return dir[0] == '\0' ? arena_dup(a, str_of(name)) : arena_printf(a, "%s/%s", dir, name);
}

static bool is_hidden(const struct diff *d, const char *path)
{
    /* The git directories of the tree and of repositories in it are none of its content. */
    if (node_has_git_part(path) || strncmp(path, ".cinch-txn-", 11) == 0) {
        return true;
    }
    for (const char *const *h = d->o->hidden; h != NULL && *h != NULL; h++) {
        if (path_is_below(path, *h)) {
            return true;
        }
    }
    return false;
}

static int put(struct diff *d, struct diff_side *side, const struct diff_entry *x)
{
    size_t i;
    if (is_hidden(d, x->path)) {
        return 0;
    }
    if (!pathmap_get(&side->index, x->path, &i)) {
        if (side->len == DELTA_MAX) {
            return ERR(d->e, ERR_LIMIT, "more than %d changed files", DELTA_MAX);
        }
        if (side->len == side->cap) {
            side->cap = side->cap == 0 ? 64 : side->cap * 2;
            side->items = xrealloc(side->items, side->cap * sizeof *side->items);
        }
        i = side->len++;
        pathmap_put(&side->index, x->path, i);
    }
    side->items[i] = *x;
    side->items[i].path = arena_dup(d->arena, str_of(x->path));
    side->items[i].where = arena_dup(d->arena, str_of(x->where));
    return 0;
}

/* Everything at and below `where` in the tree before, named as if it were at `path`. */
static int put_base(struct diff *d, struct diff_side *side, const char *path, const char *where,
                    int depth)
{
    struct stat st;
    if (is_hidden(d, path) || fstatat(d->o->base_fd, where, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return 0;
    }
    if (!S_ISDIR(st.st_mode)) {
        struct diff_entry x = { .path = path, .where = where, .in_base = true, .st = st };
        return put(d, side, &x);
    }
    CLEANUP(fd) int fd = depth > DELTA_DEPTH_MAX ? -1 : node_open_dir(d->o->base_fd, where, NULL);
    CLEANUP(listing) struct listing names = { 0 };
    if (fd < 0 || listing_read(&names, fd, NULL) < 0) {
        return 0; /* what may not be read was not there for the agent either */
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < names.len; i++) {
        r = put_base(d, side, join(d->arena, path, names.items[i]),
                     join(d->arena, where, names.items[i]), depth + 1);
    }
    return r;
}

static void drop_below(struct diff_side *side, const char *path)
{
    for (size_t i = 0; i < side->len; i++) {
        side->items[i].dropped = side->items[i].dropped || path_is_below(side->items[i].path, path);
    }
}

static int add_entry(struct diff *d, const struct delta_entry *x, bool moves)
{
    int r = 0;
    bool replaces = x->kind == DELTA_REMOVE || x->clear || x->kind == DELTA_NODE;
    if (replaces) {
        r = put_base(d, &d->before, x->path, x->path, 0);
        if (moves) {
            drop_below(&d->after, x->path);
        }
    }
    if (r == 0 && x->kind == DELTA_MOVE) {
        r = put_base(d, &d->before, x->from, x->from, 0);
        r = r < 0 ? r : put_base(d, &d->after, x->path, x->from, 0);
    }
    if (r == 0 && x->kind == DELTA_NODE) {
        struct diff_entry y = { .path = x->path, .where = x->path, .st = x->st };
        r = put(d, &d->after, &y);
    }
    return r;
}

/* With a commit as the tree before, there is no directory to look into: what was there at a path
 * is asked of git later. */
static int add_from_commit(struct diff *d, const struct delta_entry *x)
{
    struct diff_entry y = { .path = x->path, .where = x->path, .st = x->st };
    return x->kind == DELTA_NODE ? put(d, &d->after, &y) : 0;
}

int diff_collect_sides(struct diff *d)
{
    int r = 0;
    bool moves = false;
    for (size_t i = 0; r == 0 && i < d->o->delta->len; i++) {
        const struct delta_entry *x = &d->o->delta->items[i];
        moves = moves || x->kind == DELTA_MOVE;
        r = d->o->base_commit != NULL ? add_from_commit(d, x) : add_entry(d, x, moves);
    }
    return r;
}

/* --- a commit as the tree before --- */

static bool is_touched(const struct pathmap *plain, const char *path)
{
    if (pathmap_has(plain, path)) {
        return true;
    }
    char part[PATH_MAX];
    size_t len = strlen(path);
    for (size_t i = len < sizeof part ? len : 0; i > 0; i--) {
        size_t whole;
        if (path[i] != '/') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        if (pathmap_get(plain, part, &whole) && whole != 0) {
            return true;
        }
    }
    return false;
}

/* "100644 blob ID\tPATH" of ls-tree. */
static int put_blob(struct diff *d, struct str line, const struct pathmap *touched)
{
    struct str path = line;
    struct str head = str_split(&path, '\t');
    struct str mode = str_split(&head, ' ');
    struct str type = str_split(&head, ' ');
    if (path.ptr == NULL || !str_eqc(type, "blob")) {
        return 0;
    }
    const char *name = arena_dup(d->arena, path);
    if (!is_touched(touched, name)) {
        return 0;
    }
    struct diff_entry x = { .path = name, .where = name, .in_base = true };
    x.st.st_mode = str_eqc(mode, "120000")   ? S_IFLNK | 0777
                   : str_eqc(mode, "100755") ? S_IFREG | 0755
                                             : S_IFREG | 0644;
    x.id = arena_dup(d->arena, head);
    return put(d, &d->before, &x);
}

/* Reading from the user's objects, without the chance to write there. */
static struct git_call reading(struct diff *d, const char *const *args)
{
    const char *git_dir = d->o->base_git != NULL ? d->o->base_git : d->git_dir;
    return (struct git_call) { .args = args, .git_dir = git_dir, .objects = d->o->objects };
}

/* "ID blob SIZE\n", the bytes, "\n", for each that was asked for. */
static int index_blobs(struct diff *d)
{
    off_t at = 0;
    for (size_t i = 0; i < d->before.len; i++) {
        struct diff_entry *x = &d->before.items[i];
        char head[REPO_ID_MAX + 64];
        int64_t size;
        ssize_t n = pread(d->blobs_fd, head, sizeof head, at);
        struct str rest = str_n(head, n < 0 ? 0 : (size_t)n);
        struct str line = str_split(&rest, '\n');
        struct str id = str_split(&line, ' ');
        struct str type = str_split(&line, ' ');
        if (rest.ptr == NULL || !str_eqc(id, x->id) || !str_eqc(type, "blob") ||
            !str_to_i64(line, &size)) {
            return ERR(d->e, ERR_SYS, "git has no content for '%s' (%s)", x->path, x->id);
        }
        x->offset = at + (rest.ptr - head);
        x->st.st_size = size;
        at = x->offset + size + 1;
    }
    return 0;
}

static int fetch_blobs(struct diff *d)
{
    static const char *const args[] = { "cat-file", "--batch", NULL };
    CLEANUP(buf) struct buf ids = BUF_INIT((size_t)128 << 20);
    for (size_t i = 0; i < d->before.len; i++) {
        buf_addf(&ids, "%s\n", d->before.items[i].id);
    }
    d->blobs_fd = open(d->o->scratch, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (d->blobs_fd < 0) {
        return ERR_SYS(d->e, "create a temporary file in '%s'", d->o->scratch);
    }
    struct git_call c = reading(d, args);
    c.input = buf_str(&ids);
    c.out_fd = &d->blobs_fd;
    int r = ids.len == 0 ? 0 : git_run(&c, d->e);
    return r < 0 ? r : index_blobs(d);
}

int diff_find_blobs(struct diff *d)
{
    CLEANUP(pathmap) struct pathmap touched = { 0 };
    CLEANUP(buf) struct buf out = BUF_INIT((size_t)512 << 20);
    if (d->o->base_commit == NULL) {
        return 0;
    }
    for (size_t i = 0; i < d->o->delta->len; i++) {
        const struct delta_entry *x = &d->o->delta->items[i];
        if (x->kind != DELTA_DIR || x->clear) {
            pathmap_put(&touched, x->path, x->kind == DELTA_REMOVE || x->clear);
        }
    }
    const char *const args[] = { "ls-tree", "-r", "-z", d->o->base_commit, NULL };
    struct git_call c = reading(d, args);
    c.out = &out;
    int r = git_run(&c, d->e);
    struct str rest = buf_str(&out);
    while (r == 0 && rest.ptr != NULL) {
        r = put_blob(d, str_split(&rest, '\0'), &touched);
    }
    return r < 0 ? r : fetch_blobs(d);
}
