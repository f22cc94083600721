/* SPDX-License-Identifier: MIT
 *
 * What belongs into the patch: not what is ignored, too large, or no file at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "workspace/diff_priv.h"
#include "workspace/git.h"
#include "workspace/gitname.h"

#define MAX_FILE   ((int64_t)10 << 20)
#define OUTPUT_MAX ((size_t)512 << 20)
enum { IGNORE_FILE_MAX = 1 << 20 };

void diff_leave_out(struct diff *d, const char *path, const char *why, int64_t bytes)
{
    struct arena *a = d->arena;
    struct json *o = json_object(a);
    json_setc(a, o, "path", json_cstr(a, path));
    json_setc(a, o, "why", json_cstr(a, why));
    json_setc(a, o, "bytes", json_integer(a, bytes));
    json_push(a, d->result->left_out, o);
}

static struct diff_entry *find(struct diff_side *side, const char *path)
{
    size_t i;
    return pathmap_get(&side->index, path, &i) && !side->items[i].dropped ? &side->items[i] : NULL;
}

static void drop(struct diff *d, const char *path)
{
    struct diff_entry *before = find(&d->before, path);
    struct diff_entry *after = find(&d->after, path);
    if (before != NULL) {
        before->dropped = true;
    }
    if (after != NULL) {
        after->dropped = true;
    }
}

/* The bytes are in the tree that the agent wrote to; of a directory that was only renamed they are
 * still in the user's. */
static void keep_beside(struct diff *d, const struct diff_entry *x)
{
    struct diff_beside *b = &d->result->beside;
    if (x == NULL || x->in_base || x->id != NULL ||
        (!S_ISREG(x->st.st_mode) && !S_ISLNK(x->st.st_mode))) {
        return;
    }
    if (b->len == b->cap) {
        size_t cap = b->cap == 0 ? 16 : b->cap * 2;
        const char **paths = arena_array(d->arena, cap, sizeof *paths);
        const char **places = arena_array(d->arena, cap, sizeof *places);
        if (b->len > 0) {
            memcpy(paths, b->paths, b->len * sizeof *paths);
            memcpy(places, b->places, b->len * sizeof *places);
        }
        b->paths = paths;
        b->places = places;
        b->cap = cap;
    }
    b->paths[b->len] = x->path;
    b->places[b->len++] = x->where;
}

static void note_ignored(struct diff *d, const struct diff_entry *x)
{
    struct arena *a = d->arena;
    if (x == NULL || x->in_base) {
        return;
    }
    keep_beside(d, x);
    d->result->ignored_bytes += x->st.st_size;
    if (json_len(d->result->ignored_files) < DIFF_IGNORED_MAX) {
        struct json *o = json_object(a);
        json_setc(a, o, "path", json_cstr(a, x->path));
        json_setc(a, o, "bytes", json_integer(a, x->st.st_size));
        json_push(a, d->result->ignored_files, o);
    }
}

/* --- too large, no file, not readable --- */

/* Root reads everything; others may lack permission for what they own, and for what they do not. */
static bool is_readable(struct diff *d, const struct diff_entry *x)
{
    if (geteuid() == 0 || x->id != NULL ||
        ((x->st.st_mode & S_IRUSR) != 0 && x->st.st_uid == geteuid())) {
        return true;
    }
    CLEANUP(fd) int fd = diff_open(d, x, NULL);
    return fd >= 0 || (errno != EACCES && errno != EPERM);
}

static const char *reason_of(struct diff *d, const struct diff_entry *x, int64_t max)
{
    if (gitname_is_refused(x->path, S_ISLNK(x->st.st_mode))) {
        return "git refuses this name";
    }
    if (S_ISREG(x->st.st_mode)) {
        return x->st.st_size > max  ? "larger than the limit for a patch"
               : !is_readable(d, x) ? "it cannot be read: Permission denied"
                                    : NULL;
    }
    return S_ISLNK(x->st.st_mode)    ? NULL
           : S_ISFIFO(x->st.st_mode) ? "a fifo"
           : S_ISSOCK(x->st.st_mode) ? "a socket"
                                     : "a device";
}

static void leave_out_odd(struct diff *d, struct diff_side *side)
{
    int64_t max = d->o->max_file > 0 ? d->o->max_file : MAX_FILE;
    for (size_t i = 0; i < side->len; i++) {
        struct diff_entry *x = &side->items[i];
        const char *why = x->dropped ? NULL : reason_of(d, x, max);
        if (why == NULL) {
            continue;
        }
        diff_leave_out(d, x->path, why, x->st.st_size);
        if (S_ISREG(x->st.st_mode) || S_ISLNK(x->st.st_mode)) {
            d->result->withheld++;
            if (side == &d->after && S_ISREG(x->st.st_mode) && x->st.st_size > max) {
                keep_beside(d, x);
            }
            drop(d, x->path);
        } else { /* a file that became a fifo is at least gone */
            x->dropped = true;
        }
    }
}

/* --- ignored --- */

/* All paths of both sides, each once, for git's standard input. */
static void list_paths(struct diff *d, struct buf *out)
{
    const struct diff_side *sides[] = { &d->before, &d->after };
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < sides[k]->len; i++) {
            const struct diff_entry *x = &sides[k]->items[i];
            if (!x->dropped && (k == 0 || find(&d->before, x->path) == NULL)) {
                /* "./" keeps a name that begins with a colon from being more than a name. */
                buf_addf(out, "./%s%s%s", d->o->repo == NULL ? "" : d->o->repo->prefix,
                         d->o->repo == NULL || d->o->repo->prefix[0] == '\0' ? "" : "/", x->path);
                buf_add(out, str_n("", 1));
            }
        }
    }
}

/* Where the rules lie: a tree of nothing but .gitignore files, as they are now. */
static int copy_rules(struct diff *d, const char *dir, int rules_fd)
{
    char name[PATH_MAX];
    char target[PATH_MAX];
    CLEANUP(buf) struct buf text = BUF_INIT(IGNORE_FILE_MAX);
    const char *prefix = d->o->repo == NULL ? "" : d->o->repo->prefix;
    if (path_join(dir, ".gitignore", name, sizeof name, NULL) < 0 ||
        path_join(prefix, name, target, sizeof target, NULL) < 0) {
        return 0;
    }
    struct stat st;
    bool fresh = fstatat(d->o->new_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    int fd = fresh ? d->o->new_fd : d->o->base_fd;
    /* A whiteout in its place is no regular file: there are no rules any more. */
    if ((!fresh && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) || !S_ISREG(st.st_mode) ||
        file_read(fd, name, IGNORE_FILE_MAX, &text, NULL) < 0) {
        return 0;
    }
    char *slash = strrchr(target, '/');
    if (slash != NULL) {
        *slash = '\0';
        int r = file_mkdirs(rules_fd, target, 0700, d->e);
        if (r < 0) {
            return r;
        }
        *slash = '/';
    }
    return file_write_atomic(rules_fd, target, buf_str(&text), 0600, d->e);
}

static int copy_rules_above(struct diff *d, const char *path, struct pathmap *done, int rules_fd)
{
    char dir[PATH_MAX] = "";
    int r = 0;
    size_t len = strlen(path);
    for (size_t i = 0; r == 0 && i < len && i < sizeof dir; i++) {
        if (i != 0 && path[i] != '/') {
            continue;
        }
        memcpy(dir, path, i);
        dir[i] = '\0';
        if (!pathmap_has(done, dir)) {
            pathmap_put(done, dir, 0);
            r = copy_rules(d, dir, rules_fd);
        }
    }
    return r;
}

/* Rules of directories above the workspace, when it is only a part of a repository. */
static int copy_outer_rules(struct diff *d, int rules_fd)
{
    const struct repo *repo = d->o->repo;
    struct str rest = str_of(repo == NULL ? "" : repo->prefix);
    const char *dir = "";
    int r = 0;
    while (r == 0 && rest.len > 0) {
        CLEANUP(buf) struct buf text = BUF_INIT(IGNORE_FILE_MAX);
        const char *name =
            dir[0] == '\0' ? ".gitignore" : arena_printf(d->arena, "%s/.gitignore", dir);
        const char *full = arena_printf(d->arena, "%s/%s", repo->root, name);
        if (file_read(AT_FDCWD, full, IGNORE_FILE_MAX, &text, NULL) == 0) {
            r = dir[0] == '\0' ? 0 : file_mkdirs(rules_fd, dir, 0700, d->e);
            r = r < 0 ? r : file_write_atomic(rules_fd, name, buf_str(&text), 0600, d->e);
        }
        struct str part = str_split(&rest, '/');
        dir = dir[0] == '\0' ? arena_dup(d->arena, part)
                             : arena_printf(d->arena, "%s/%.*s", dir, STR_ARG(part));
    }
    return r;
}

static int gather_rules(struct diff *d, int rules_fd)
{
    CLEANUP(pathmap) struct pathmap done = { 0 };
    const struct diff_side *sides[] = { &d->before, &d->after };
    int r = copy_outer_rules(d, rules_fd);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; r == 0 && i < sides[k]->len; i++) {
            if (!sides[k]->items[i].dropped) {
                r = copy_rules_above(d, sides[k]->items[i].path, &done, rules_fd);
            }
        }
    }
    return r;
}

/* The user's own rules of the repository; without one, what nobody wants in a patch. */
static int write_exclude(struct diff *d)
{
    CLEANUP(buf) struct buf text = BUF_INIT(IGNORE_FILE_MAX);
    const char *to = arena_printf(d->arena, "%s/info/exclude", d->git_dir);
    if (d->o->repo == NULL || d->o->repo->foreign) {
        buf_adds(&text, "__pycache__/\n*.pyc\n.DS_Store\n");
    } else {
        const char *from = arena_printf(d->arena, "%s/info/exclude", d->o->repo->common_dir);
        if (file_read(AT_FDCWD, from, IGNORE_FILE_MAX, &text, NULL) < 0) {
            return 0;
        }
    }
    return file_write_atomic(AT_FDCWD, to, buf_str(&text), 0600, d->e);
}

/* git tracks some files that its own rules would ignore; those are no news to it. */
static int keep_tracked(struct diff *d, struct pathmap *ignored)
{
    CLEANUP(buf) struct buf out = BUF_INIT(OUTPUT_MAX);
    const struct repo *repo = d->o->repo;
    bool existed = false;
    for (size_t i = 0; i < ignored->cap && !existed; i++) {
        existed =
            ignored->items[i].path != NULL && find(&d->before, ignored->items[i].path) != NULL;
    }
    if (repo == NULL || !existed) {
        return 0;
    }
    const char *const args[] = { "ls-files", "-z", "--cached", NULL };
    struct git_call c = {
        .args = args,
        .git_dir = d->git_dir,
        .index = arena_printf(d->arena, "%s/index", repo->git_dir),
        .out = &out,
    };
    c.work_tree = c.cwd = arena_printf(d->arena, "%s/rules", d->o->scratch);
    struct err why = { 0 };
    int r = git_run(&c, &why);
    if (r < 0 && why.code == ERR_SYS) { /* the agent may have damaged it: the rules alone count */
        diff_leave_out(d, ".git/index", why.msg, 0);
        return 0;
    }
    if (r < 0 && d->e != NULL) {
        *d->e = why;
    }
    struct str rest = buf_str(&out);
    size_t skip = strlen(repo->prefix) + (repo->prefix[0] != '\0');
    while (r == 0 && rest.ptr != NULL) {
        struct str path = str_split(&rest, '\0');
        if (path.len > skip && str_starts(path, str_of(repo->prefix))) {
            const char *inner = arena_dup(d->arena, str_slice(path, skip, path.len));
            if (pathmap_has(ignored, inner)) {
                pathmap_put(ignored, inner, 1); /* tracked */
            }
        }
    }
    return r;
}

static int ask_git(struct diff *d, struct pathmap *ignored)
{
    CLEANUP(buf) struct buf paths = BUF_INIT(OUTPUT_MAX);
    CLEANUP(buf) struct buf out = BUF_INIT(OUTPUT_MAX);
    const char *rules = arena_printf(d->arena, "%s/rules", d->o->scratch);
    list_paths(d, &paths);
    const char *const args[] = { "check-ignore", "-z", "--stdin", "--no-index", NULL };
    struct git_call c = {
        .args = args, .git_dir = d->git_dir, .work_tree = rules, .cwd = rules, .out = &out
    };
    c.input = buf_str(&paths);
    c.ok_status = 1; /* nothing is ignored */
    int r = paths.len == 0 ? 0 : git_run(&c, d->e);
    struct str rest = buf_str(&out);
    const char *prefix = d->o->repo == NULL ? "" : d->o->repo->prefix;
    size_t skip = 2 + strlen(prefix) + (prefix[0] != '\0');
    while (r >= 0 && rest.ptr != NULL) {
        struct str path = str_split(&rest, '\0');
        if (path.len > skip) {
            pathmap_put(ignored, arena_dup(d->arena, str_slice(path, skip, path.len)), 0);
        }
    }
    return r < 0 ? r : 0;
}

static int leave_out_ignored(struct diff *d)
{
    CLEANUP(pathmap) struct pathmap ignored = { 0 };
    const char *rules = arena_printf(d->arena, "%s/rules", d->o->scratch);
    int r = file_mkdirs(AT_FDCWD, rules, 0700, d->e);
    CLEANUP(fd) int fd = r < 0 ? r : open(rules, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return r < 0 ? r : ERR_SYS(d->e, "open '%s'", rules);
    }
    r = gather_rules(d, fd);
    r = r < 0 ? r : write_exclude(d);
    r = r < 0 ? r : ask_git(d, &ignored);
    r = r < 0 ? r : keep_tracked(d, &ignored);
    for (size_t i = 0; r == 0 && i < ignored.cap; i++) {
        if (ignored.items[i].path != NULL && ignored.items[i].value == 0) {
            note_ignored(d, find(&d->after, ignored.items[i].path));
            drop(d, ignored.items[i].path);
            d->result->ignored++;
        }
    }
    return r;
}

/* --- changed by somebody else meanwhile --- */

static void note_changed(struct diff *d)
{
    for (size_t i = 0; i < d->before.len && d->o->changed_since > 0; i++) {
        const struct diff_entry *x = &d->before.items[i];
        int64_t when = (int64_t)x->st.st_ctim.tv_sec * NSEC_PER_SEC + x->st.st_ctim.tv_nsec;
        if (!x->dropped && x->id == NULL && when > d->o->changed_since) {
            json_push(d->arena, d->result->source_changed, json_cstr(d->arena, x->path));
        }
    }
}

int diff_select(struct diff *d)
{
    leave_out_odd(d, &d->before);
    leave_out_odd(d, &d->after);
    int r = leave_out_ignored(d);
    if (r == 0) {
        note_changed(d);
    }
    return r;
}

const char *diff_home_of(struct diff *d, const char *path)
{
    const char *home = "";
    size_t len = strlen(path);
    for (size_t i = 0; i < len; i++) {
        struct stat st;
        if (path[i] != '/') {
            continue;
        }
        const char *dir = arena_dup(d->arena, str_n(path, i));
        if (d->o->base_fd >= 0 && fstatat(d->o->base_fd, arena_printf(d->arena, "%s/.git", dir),
                                          &st, AT_SYMLINK_NOFOLLOW) == 0) {
            home = dir;
        }
    }
    return home;
}
