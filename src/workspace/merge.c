/* SPDX-License-Identifier: MIT
 *
 * Staging and applying a delta. Entry number i of the delta is staged under the name "i".
 */
#include "workspace/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "workspace/links.h"

#define STAGE_NAME   "stage"
#define JOURNAL_NAME "journal"
#define CLEARED_NAME "cleared"

enum { NUMBER_LEN = 24 };

static const char *number(size_t i, char out[NUMBER_LEN])
{
    (void)snprintf(out, NUMBER_LEN, "%zu", i);
    return out;
}

/* --- the directory of an entry, kept open for its neighbours --- */

struct parent {
    int root_fd;
    int fd; /* -1: none open */
    char path[PATH_MAX];
};

static void cleanup_parent(struct parent *p)
{
    cleanup_fd(&p->fd);
}

/* The last component of path; p->fd is the directory that holds it. NULL on failure. */
static const char *enter(struct parent *p, const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    if (len >= sizeof p->path) {
        (void)ERR(e, ERR_LIMIT, "path '%.100s…' is too long", path);
        return NULL;
    }
    if (p->fd < 0 || strlen(p->path) != len || memcmp(p->path, path, len) != 0) {
        cleanup_fd(&p->fd);
        memcpy(p->path, path, len);
        p->path[len] = '\0';
        int fd = node_open_dir(p->root_fd, p->path, e);
        if (fd < 0) {
            return NULL;
        }
        p->fd = fd;
    }
    return slash == NULL ? path : slash + 1;
}

/* A program may have left its directories without write permission; they get their final mode at
 * the end. */
static bool make_room(const struct parent *p)
{
    return (errno == EACCES || errno == EPERM) && fchmodat(p->fd, ".", 0700, 0) == 0;
}

/* --- staging --- */

static int open_stage(struct merge *m, bool create, struct err *e)
{
    int at = m->inside ? m->workspace_fd : m->dir_fd;
    const char *name = m->inside ? m->stage_name : STAGE_NAME;
    if (create && mkdirat(at, name, 0700) < 0) {
        return ERR_SYS(e, "create staging directory '%s'", name);
    }
    m->stage_fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return m->stage_fd < 0 ? ERR_SYS(e, "open staging directory '%s'", name) : 0;
}

static int stage_copy(struct merge *m, struct parent *from, size_t i, struct links *links,
                      struct err *e)
{
    char to[NUMBER_LEN];
    char first_name[NUMBER_LEN];
    size_t first;
    const struct delta_entry *x = &m->delta->items[i];
    const char *name = m->fetch != NULL ? "" : enter(from, x->path, e);
    if (name == NULL) {
        return -(int)ERR_SYS;
    }
    if (links_seen(links, &x->st, i, &first)) {
        return linkat(m->stage_fd, number(first, first_name), m->stage_fd, number(i, to), 0) < 0
                   ? ERR_SYS(e, "link '%s'", x->path)
                   : 0;
    }
    struct node_at place = NODE_AT(m->stage_fd, number(i, to));
    int r = m->fetch != NULL ? m->fetch(m->arg, i, place, e)
                             : node_copy(NODE_AT(from->fd, name), &x->st, place, &m->owner, e);
    m->bytes += S_ISREG(x->st.st_mode) ? x->st.st_size : 0;
    return r < 0 ? err_wrap(e, "stage '%s'", x->path) : 0;
}

/* The entry itself is taken out of the layer: hard links stay what they are. */
static int stage_move(struct merge *m, struct parent *from, size_t i, struct err *e)
{
    char to[NUMBER_LEN];
    const struct delta_entry *x = &m->delta->items[i];
    const char *name = enter(from, x->path, e);
    if (name == NULL) {
        return -(int)ERR_SYS;
    }
    if (S_ISCHR(x->st.st_mode) || S_ISBLK(x->st.st_mode)) {
        return ERR(e, ERR_UNSUPPORTED, "'%s' is a device", x->path);
    }
    int r = node_strip_marks(from->fd, name, &x->st, m->marks, e);
    if (r < 0) {
        return r;
    }
    bool moved = renameat(from->fd, name, m->stage_fd, number(i, to)) == 0 ||
                 (make_room(from) && renameat(from->fd, name, m->stage_fd, to) == 0);
    if (!moved) {
        return ERR_SYS(e, "stage '%s'", x->path);
    }
    if (m->owner.active && x->st.st_uid == m->owner.from_uid &&
        fchownat(m->stage_fd, to, m->owner.to_uid,
                 x->st.st_gid == m->owner.from_gid ? m->owner.to_gid : x->st.st_gid,
                 AT_SYMLINK_NOFOLLOW) < 0) {
        return ERR_SYS(e, "change the owner of '%s'", x->path);
    }
    return 0;
}

int merge_stage(struct merge *m, struct err *e)
{
    CLEANUP(parent) struct parent from = { .root_fd = m->source_fd, .fd = -1 };
    CLEANUP(links) struct links links = { 0 };
    struct stat root;
    m->stage_fd = -1;
    if (fstat(m->workspace_fd, &root) < 0) {
        return ERR_SYS(e, "look at the workspace");
    }
    m->before = root.st_mtim;
    m->inside = !node_same_mount(m->workspace_fd, m->source_fd) ||
                !node_same_mount(m->workspace_fd, m->dir_fd);
    int r = open_stage(m, true, e);
    for (size_t i = 0; r == 0 && i < m->delta->len; i++) {
        if (m->delta->items[i].kind != DELTA_NODE) {
            continue;
        }
        r = m->inside || m->fetch != NULL ? stage_copy(m, &from, i, &links, e)
                                          : stage_move(m, &from, i, e);
        m->placed++;
    }
    return r;
}

/* --- the journal --- */

/* "cinch merge 1\n", then 'i' or 'o' (staged inside or outside), then per entry: kind, '!' or '.'
 * for clear, path NUL from NUL; at the end "E". */
static const char magic[] = "cinch merge 1\n";
static const char kinds[] = {
    [DELTA_REMOVE] = 'r', [DELTA_MOVE] = 'm', [DELTA_DIR] = 'd', [DELTA_NODE] = 'n'
};

int merge_decide(struct merge *m, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    int r = buf_append(&text, str_of(magic), e);
    r = r < 0 ? r : buf_append_c(&text, m->inside ? 'i' : 'o', e);
    for (size_t i = 0; r == 0 && i < m->delta->len; i++) {
        const struct delta_entry *x = &m->delta->items[i];
        const char *from = x->from == NULL ? "" : x->from;
        const char head[2] = { kinds[x->kind], x->clear ? '!' : '.' };
        r = buf_append(&text, str_n(head, sizeof head), e);
        r = r < 0 ? r : buf_append(&text, str_n(x->path, strlen(x->path) + 1), e);
        r = r < 0 ? r : buf_append(&text, str_n(from, strlen(from) + 1), e);
    }
    r = r < 0 ? r : buf_append_c(&text, 'E', e);
    return r < 0 ? r : file_write_atomic(m->dir_fd, JOURNAL_NAME, buf_str(&text), 0600, e);
}

static const char *next_string(struct str *s)
{
    const char *start = s->ptr;
    const char *end = memchr(s->ptr, '\0', s->len);
    if (end == NULL) {
        return NULL;
    }
    *s = str_slice(*s, (size_t)(end - start) + 1, s->len);
    return start;
}

static int parse_entry(struct str *s, struct delta *d, struct err *e)
{
    struct delta_entry x = { 0 };
    const char *kind = s->len < 2 ? NULL : memchr(kinds, s->ptr[0], sizeof kinds);
    if (kind == NULL || (s->ptr[1] != '!' && s->ptr[1] != '.')) {
        return ERR(e, ERR_PARSE, "journal: entry %zu is damaged", d->len);
    }
    x.kind = (enum delta_kind)(kind - kinds);
    x.clear = s->ptr[1] == '!';
    *s = str_slice(*s, 2, s->len);
    x.path = next_string(s);
    x.from = x.path == NULL ? NULL : next_string(s);
    if (x.from == NULL || !node_is_inner_path(x.path) || !node_is_inner_path(x.from) ||
        (x.path[0] == '\0' && x.kind != DELTA_DIR)) {
        return ERR(e, ERR_PARSE, "journal: entry %zu is damaged", d->len);
    }
    x.from = x.from[0] == '\0' ? NULL : x.from;
    if (x.from == NULL && x.kind == DELTA_MOVE) {
        return ERR(e, ERR_PARSE, "journal: entry %zu moves nothing", d->len);
    }
    return delta_add(d, &x, e);
}

int merge_parse_journal(struct str text, struct delta *d, bool *ret_inside, struct err *e)
{
    struct str rest = text;
    if (!str_starts(rest, str_of(magic)) || rest.len < sizeof magic) {
        return ERR(e, ERR_PARSE, "journal: not one of this version");
    }
    *ret_inside = rest.ptr[sizeof magic - 1] == 'i';
    rest = str_slice(rest, sizeof magic, rest.len);
    int r = 0;
    while (r == 0 && rest.len > 1) {
        r = parse_entry(&rest, d, e);
    }
    if (r == 0 && !str_eqc(rest, "E")) {
        return ERR(e, ERR_PARSE, "journal: the end is missing");
    }
    return r;
}

int merge_load(struct merge *m, struct delta *d, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    m->stage_fd = -1;
    if (!file_exists(m->dir_fd, JOURNAL_NAME)) {
        return 0;
    }
    int r = file_read(m->dir_fd, JOURNAL_NAME, SIZE_MAX, &text, e);
    r = r < 0 ? r : merge_parse_journal(buf_str(&text), d, &m->inside, e);
    r = r < 0 ? r : open_stage(m, false, e);
    m->delta = d;
    return r < 0 ? r : 1;
}

/* --- applying --- */

static int remove_path(struct parent *at, const char *path, struct err *e)
{
    const char *name = enter(at, path, NULL);
    if (name == NULL) {
        return 0; /* its directory is gone already */
    }
    int r = file_remove_tree(at->fd, name, e);
    if (r < 0 && make_room(at)) {
        r = file_remove_tree(at->fd, name, e);
    }
    return r < 0 ? err_wrap(e, "remove '%s'", path) : 0;
}

static size_t depth_of(const char *path)
{
    size_t depth = 0;
    for (; *path != '\0'; path++) {
        depth += *path == '/';
    }
    return depth;
}

/* Directories that were renamed leave their old places first, the deepest before the others: the
 * name of each is still valid then. */
static int move_out(struct merge *m, struct parent *at, struct err *e)
{
    size_t deepest = 0;
    for (size_t i = 0; i < m->delta->len; i++) {
        const struct delta_entry *x = &m->delta->items[i];
        size_t depth = x->kind == DELTA_MOVE ? depth_of(x->from) + 1 : 0;
        deepest = depth > deepest ? depth : deepest;
    }
    m->moves = deepest > 0;
    for (size_t depth = deepest; depth > 0; depth--) {
        for (size_t i = 0; i < m->delta->len; i++) {
            const struct delta_entry *x = &m->delta->items[i];
            char to[NUMBER_LEN];
            if (x->kind != DELTA_MOVE || depth_of(x->from) + 1 != depth ||
                file_exists(m->stage_fd, number(i, to))) {
                continue;
            }
            const char *name = enter(at, x->from, e);
            if (name == NULL || renameat(at->fd, name, m->stage_fd, to) < 0) {
                return name == NULL ? -(int)ERR_SYS : ERR_SYS(e, "move '%s'", x->from);
            }
        }
    }
    return 0;
}

/* Where something of the tree before is, now that renamed directories have left their places:
 * below the one that was moved out with it, or where it was. */
static const struct delta_entry *carrier_of(const struct merge *m, const char *path, size_t *ret)
{
    const struct delta_entry *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < m->delta->len; i++) {
        const struct delta_entry *x = &m->delta->items[i];
        size_t len = x->kind == DELTA_MOVE ? strlen(x->from) : 0;
        if (len > longest && strncmp(path, x->from, len) == 0 && path[len] == '/') {
            best = x;
            longest = len;
            *ret = i;
        }
    }
    return best;
}

static int clear_entry(struct merge *m, const struct delta_entry *x, struct parent *workspace,
                       struct parent *stage, struct err *e)
{
    char moved[PATH_MAX];
    size_t number_of_move;
    const char *path = x->from == NULL ? x->path : x->from;
    const struct delta_entry *carrier = m->moves ? carrier_of(m, path, &number_of_move) : NULL;
    if (carrier == NULL) {
        return remove_path(workspace, path, e);
    }
    int n = snprintf(moved, sizeof moved, "%zu%s", number_of_move, path + strlen(carrier->from));
    return n < 0 || (size_t)n >= sizeof moved
               ? ERR(e, ERR_LIMIT, "path '%.100s…' is too long", path)
               : remove_path(stage, moved, e);
}

static int clear(struct merge *m, struct err *e)
{
    CLEANUP(parent) struct parent workspace = { .root_fd = m->workspace_fd, .fd = -1 };
    CLEANUP(parent) struct parent stage = { .root_fd = m->stage_fd, .fd = -1 };
    int r = move_out(m, &workspace, e);
    for (size_t i = 0; r == 0 && i < m->delta->len; i++) {
        const struct delta_entry *x = &m->delta->items[i];
        if (x->kind == DELTA_REMOVE || x->clear) {
            r = clear_entry(m, x, &workspace, &stage, e);
        }
    }
    return r < 0 ? r : file_write_atomic(m->dir_fd, CLEARED_NAME, STR_EMPTY, 0600, e);
}

/* Quotas by project make rename() fail between directories of one mount. */
static int place_by_copy(struct merge *m, const struct parent *at, const char *from,
                         const char *name, struct err *e)
{
    struct stat st;
    if (fstatat(m->stage_fd, from, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return ERR_SYS(e, "look at what was staged");
    }
    (void)unlinkat(at->fd, m->stage_name, 0);
    int r = node_copy(NODE_AT(m->stage_fd, from), &st, NODE_AT(at->fd, m->stage_name), NULL, e);
    if (r == 0 && renameat(at->fd, m->stage_name, at->fd, name) < 0) {
        r = ERR_SYS(e, "place '%s'", name);
        (void)unlinkat(at->fd, m->stage_name, 0);
    }
    return r;
}

static int place(struct merge *m, struct parent *at, size_t i, struct err *e)
{
    char from[NUMBER_LEN];
    const struct delta_entry *x = &m->delta->items[i];
    const char *name = enter(at, x->path, e);
    if (name == NULL) {
        return -(int)ERR_SYS;
    }
    if (renameat(m->stage_fd, number(i, from), at->fd, name) == 0 || errno == ENOENT) {
        return 0; /* ENOENT: an earlier try has done it */
    }
    if (errno == EXDEV && x->kind == DELTA_NODE) {
        return place_by_copy(m, at, from, name, e);
    }
    if (make_room(at) && renameat(m->stage_fd, from, at->fd, name) == 0) {
        return 0;
    }
    return ERR_SYS(e, "place '%s'", x->path);
}

static int make_dir(struct parent *at, const char *path, struct err *e)
{
    const char *name = path[0] == '\0' ? NULL : enter(at, path, e);
    if (name == NULL) {
        return path[0] == '\0' ? 0 : -(int)ERR_SYS;
    }
    if (mkdirat(at->fd, name, 0700) == 0 || errno == EEXIST ||
        (make_room(at) && mkdirat(at->fd, name, 0700) == 0)) {
        return 0;
    }
    return ERR_SYS(e, "create directory '%s'", path);
}

/* Last of all, and children before parents: making entries changes the times of their directory. */
static int set_attributes(struct merge *m, struct err *e)
{
    if (m->source_fd < 0) {
        return 0; /* recovery, and the layer was lost with the memory that it lay in */
    }
    for (size_t i = m->delta->len; i-- > 0;) {
        const struct delta_entry *x = &m->delta->items[i];
        struct stat st;
        if (x->kind != DELTA_DIR) {
            continue;
        }
        CLEANUP(fd) int from = node_open_dir(m->source_fd, x->path, e);
        CLEANUP(fd) int to = from < 0 ? -1 : node_open_dir(m->workspace_fd, x->path, e);
        if (to < 0) {
            return from < 0 ? from : to;
        }
        if (fstat(from, &st) < 0) {
            return ERR_SYS(e, "look at '%s'", x->path);
        }
        int r = node_copy_attributes(NODE_AT(from, "."), &st, NODE_AT(to, "."), &m->owner, e);
        if (r < 0) {
            return err_wrap(e, "directory '%s'", x->path);
        }
    }
    return 0;
}

int merge_apply(struct merge *m, struct err *e)
{
    CLEANUP(parent) struct parent at = { .root_fd = m->workspace_fd, .fd = -1 };
    int r = file_exists(m->dir_fd, CLEARED_NAME) ? 0 : clear(m, e);
    for (size_t i = 0; r == 0 && i < m->delta->len; i++) {
        const struct delta_entry *x = &m->delta->items[i];
        if (x->kind == DELTA_DIR) {
            r = make_dir(&at, x->path, e);
        } else if (x->kind != DELTA_REMOVE) {
            r = place(m, &at, i, e);
        }
    }
    r = r < 0 ? r : set_attributes(m, e);
    m->applied = r == 0;
    return r;
}

void merge_drop(struct merge *m)
{
    struct stat root;
    cleanup_fd(&m->stage_fd);
    /* First of all: with a journal and without what it speaks of, recovery would be at a loss. */
    (void)unlinkat(m->dir_fd, JOURNAL_NAME, 0);
    if (m->inside && file_exists(m->workspace_fd, m->stage_name) &&
        fstat(m->workspace_fd, &root) == 0) {
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                           m->applied ? root.st_mtim : m->before };
        (void)!file_remove_tree(m->workspace_fd, m->stage_name, NULL);
        /* Who looks at the workspace must not see that we were there. */
        (void)utimensat(m->workspace_fd, ".", times, AT_SYMLINK_NOFOLLOW);
    }
    (void)!file_remove_tree(m->dir_fd, STAGE_NAME, NULL);
}
