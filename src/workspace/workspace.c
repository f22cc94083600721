/* SPDX-License-Identifier: MIT
 *
 * Making a view, describing it, and keeping on disk what is needed to take it up again.
 */
#include "workspace/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "workspace/tree.h"
#include "workspace/workspace_priv.h"

static const char *const kind_words[] = {
    [WORKSPACE_SNAPSHOT] = "snapshot", [WORKSPACE_OVERLAY] = "overlay",   [WORKSPACE_COPY] = "copy",
    [WORKSPACE_CLONE] = "clone",       [WORKSPACE_IN_PLACE] = "in-place",
};

const char *workspace_kind_word(enum workspace_kind k)
{
    return kind_words[k];
}

/* --- the description on disk --- */

static struct json *describe(const struct workspace *w, struct arena *a)
{
    char iso[CLOCK_ISO_LEN];
    struct json *o = json_object(a);
    json_setc(a, o, "mode", json_cstr(a, kind_words[w->kind]));
    json_setc(a, o, "why_not_overlay", json_cstr(a, w->layered ? NULL : w->why_not));
    json_setc(a, o, "source", json_cstr(a, w->source));
    json_setc(a, o, "path", json_cstr(a, w->path));
    json_setc(a, o, "ref", json_cstr(a, w->ref));
    json_setc(a, o, "baseline", json_cstr(a, w->baseline_commit));
    json_setc(a, o, "git", json_boolean(a, w->has_repo));
    json_setc(a, o, "head", json_cstr(a, w->head[0] == '\0' ? NULL : w->head));
    json_setc(a, o, "branch", json_cstr(a, w->has_repo ? w->repo.branch : NULL));
    json_setc(a, o, "created_at", json_cstr(a, clock_iso(w->created, iso)));
    return o;
}

int workspace_save(const struct workspace *w, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *o = describe(w, a);
    json_setc(a, o, "base", json_cstr(a, w->base));
    json_setc(a, o, "within", json_cstr(a, w->within));
    json_setc(a, o, "inner", json_cstr(a, w->inner));
    json_setc(a, o, "tree", json_cstr(a, w->tree));
    json_setc(a, o, "created_ns", json_integer(a, w->created));
    json_setc(a, o, "marks", json_integer(a, w->marks));
    json_setc(a, o, "hidden", json_copy(a, w->hidden));
    json_setc(a, o, "placeholders", json_copy(a, w->placeholders));
    int r = json_write(o, JSON_PRETTY, &text, e);
    return r < 0 ? r : file_write_atomic(w->dir_fd, "workspace.json", buf_str(&text), 0600, e);
}

/* --- the parts --- */

const char *workspace_place(const struct workspace *w, const char *name)
{
    return arena_printf(w->arena, "%s/%s", w->dir, name);
}

static int open_source(struct workspace *w, const char *path, struct err *e)
{
    w->base_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->base_fd < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "workspace '%s'", path);
    }
    w->base = arena_dup(w->arena, str_of(path));
    return 0;
}

/* upper/ and work/, dressed as the tree below: the root of an overlay takes its attributes from the
 * upper directory. */
static int make_layer(struct workspace *w, struct err *e)
{
    struct stat st;
    int r = file_mkdirs(w->dir_fd, "layer/upper", 0700, e);
    r = r < 0 ? r : file_mkdirs(w->dir_fd, "layer/work", 0700, e);
    if (r < 0) {
        return r;
    }
    w->tree_fd = openat(w->dir_fd, "layer/upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->tree_fd < 0 || fstat(w->base_fd, &st) < 0) {
        return ERR_SYS(e, "open '%s/layer/upper'", w->dir);
    }
    w->tree = workspace_place(w, "layer/upper");
    r = node_copy_attributes(NODE_AT(w->base_fd, "."), &st, NODE_AT(w->tree_fd, "."), NULL, e);
    if (r == 0 && fchownat(w->dir_fd, "layer/work", st.st_uid, st.st_gid, 0) < 0 &&
        errno != EPERM) {
        r = ERR_SYS(e, "change the owner of '%s/layer/work'", w->dir);
    }
    return r;
}

static bool is_inner(void *arg, const char *path)
{
    const struct workspace *w = arg;
    return w->inner != NULL && strcmp(path, w->inner) == 0;
}

static void on_left_out(void *arg, const char *path, const char *why)
{
    struct workspace *w = arg;
    workspace_note_left_out(w->arena, w->not_copied, path, why);
}

static int make_copy(struct workspace *w, struct err *e)
{
    int r = file_mkdirs(w->dir_fd, "tree", 0700, e);
    if (r < 0) {
        return r;
    }
    w->tree_fd = openat(w->dir_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->tree_fd < 0) {
        return ERR_SYS(e, "open '%s/tree'", w->dir);
    }
    w->tree = workspace_place(w, "tree");
    struct tree_copy_opts o = { .skip = { is_inner, w }, .left_out = on_left_out, .arg = w };
    r = tree_copy(w->base_fd, w->tree_fd, &o, &w->copied, e);
    r = r < 0 ? r : workspace_graft_git(w, e);
    return r < 0 ? r : workspace_note_baseline(w, e);
}

/* What cannot be looked at now is reported when the tree is compared. */
static void ignore_left_out(void *arg, const char *path, const char *why)
{
    (void)arg;
    (void)path;
    (void)why;
}

static void note_nested(struct workspace *w, const struct baseline *b)
{
    const struct str name = STR("/.git");
    for (size_t i = 0; i < b->len; i++) {
        struct str path = str_of(b->items[i].path);
        if (str_ends(path, name)) {
            struct str above = str_slice(path, 0, path.len - name.len);
            json_push(w->arena, w->nested, json_string(w->arena, above));
        }
    }
}

int workspace_note_baseline(struct workspace *w, struct err *e)
{
    CLEANUP(baseline) struct baseline b = { 0 };
    CLEANUP(buf) struct buf text = BUF_INIT(SIZE_MAX);
    struct delta_filter own = { workspace_skip, w, ignore_left_out, .unlock = false };
    int r = baseline_scan(&b, w->tree_fd, &own, e);
    w->has_files = b.len > 0;
    note_nested(w, &b);
    r = r < 0 ? r : baseline_write(&b, &text, e);
    return r < 0 ? r : file_write_atomic(w->dir_fd, "baseline", buf_str(&text), 0600, e);
}

/* --- which kind --- */

/* The private directory may lie inside the source (cinch run --output out): it is no part of the
 * view then. */
static void find_inner(struct workspace *w)
{
    size_t len = strlen(w->source);
    if (strncmp(w->dir, w->source, len) == 0 && w->dir[len] == '/') {
        const char *rest = w->dir + len + 1;
        const char *slash = strrchr(rest, '/');
        size_t whole = slash == NULL ? strlen(rest) : (size_t)(slash - rest);
        w->inner = arena_dup(w->arena, str_n(rest, whole));
        workspace_hide(w, w->inner);
    }
}

static int choose(struct workspace *w, const struct workspace_opts *o, struct err *e)
{
    w->kind = o->kind;
    if ((o->kind == WORKSPACE_CLONE || o->ref != NULL) && !w->has_repo && w->repo.foreign) {
        return ERR(
            e, ERR_CONFIG,
            "the git repository of '%s' belongs to another user, so it is not used: to trust "
            "it, run `git config --global --add safe.directory %s`",
            w->source, w->repo.root);
    }
    if ((o->kind == WORKSPACE_CLONE || o->ref != NULL) && !w->has_repo) {
        return ERR(e, ERR_CONFIG, "'%s' is not a git repository, so there is no %s", w->source,
                   o->ref != NULL ? "ref to check out" : "clone of it");
    }
    if (o->kind == WORKSPACE_IN_PLACE && o->ref != NULL) {
        return ERR(e, ERR_CONFIG, "a ref cannot be checked out in place; use another mode");
    }
    if (o->kind == WORKSPACE_OVERLAY && !o->overlay) {
        return ERR(e, ERR_UNSUPPORTED,
                   "an overlay cannot be mounted here; --workspace-mode copy works everywhere");
    }
    if (o->kind == WORKSPACE_SNAPSHOT) {
        w->kind = o->overlay       ? WORKSPACE_OVERLAY
                  : o->ref != NULL ? WORKSPACE_CLONE
                                   : WORKSPACE_COPY;
    }
    w->layered = o->overlay && w->kind != WORKSPACE_IN_PLACE && w->kind != WORKSPACE_COPY;
    return 0;
}

/* What was checked out is worked on as it is. */
static int use_base(struct workspace *w, struct err *e)
{
    w->tree = w->base;
    w->tree_fd = fcntl(w->base_fd, F_DUPFD_CLOEXEC, 3);
    return workspace_note_baseline(w, e);
}

/* A fresh tree from git first, where one is wanted; then the layer, the copy, or nothing. */
static int make_view(struct workspace *w, struct err *e)
{
    int r = 0;
    bool fresh = w->kind == WORKSPACE_CLONE || w->ref != NULL;
    if (fresh) {
        r = workspace_checkout(w, e);
        if (r == 0 && !w->layered) {
            return use_base(w, e);
        }
    } else {
        r = open_source(w, w->source, e);
    }
    if (r < 0) {
        return r;
    }
    if (w->kind == WORKSPACE_IN_PLACE) {
        w->tree = w->base;
        w->tree_fd = fcntl(w->base_fd, F_DUPFD_CLOEXEC, 3);
        r = workspace_note_baseline(w, e);
        return r < 0 ? r : workspace_keep_contents(w, e);
    }
    r = w->layered ? make_layer(w, e) : make_copy(w, e);
    return r < 0 || !w->layered ? r : workspace_graft_git(w, e);
}

static const char *const *strings_of(struct workspace *w, const struct json *list)
{
    const char **items = arena_array(w->arena, json_len(list) + 1, sizeof *items);
    for (size_t i = 0; i < json_len(list); i++) {
        items[i] = json_cstring(json_item(list, i), "");
    }
    return items;
}

static void fill_view(struct workspace *w)
{
    if (w->layered) {
        w->lowers[0] = w->base;
        w->view = (struct sandbox_view) { .path = w->path,
                                          .lower = w->lowers,
                                          .layer = workspace_place(w, "layer"),
                                          .is_volatile = true };
    } else {
        w->view = (struct sandbox_view) { .path = w->path,
                                          .bind = w->tree,
                                          .git_dirs = strings_of(w, w->git_dirs),
                                          .read_only = strings_of(w, w->pinned) };
    }
    w->view.scratch = w->dir;
}

/* --- life --- */

static struct workspace *make(const char *dir)
{
    struct workspace *w = xcalloc(1, sizeof *w);
    w->arena = arena_new();
    w->dir = arena_dup(w->arena, str_of(dir));
    w->dir_fd = w->base_fd = w->tree_fd = -1;
    w->hidden = json_array(w->arena);
    w->nested = json_array(w->arena);
    w->not_copied = json_array(w->arena);
    w->git_dirs = json_array(w->arena);
    w->pinned = json_array(w->arena);
    w->placeholders = json_array(w->arena);
    return w;
}

static void release(struct workspace *w)
{
    cleanup_fd(&w->dir_fd);
    cleanup_fd(&w->base_fd);
    cleanup_fd(&w->tree_fd);
    arena_free(w->arena);
    free(w);
}

/* Of another user's repository only the content of its own top directory is read: one above the
 * workspace decides nothing, and a .git file may lead anywhere. */
static void find_repo(struct workspace *w)
{
    w->has_repo = repo_find(w->arena, w->source, &w->repo) > 0;
    if (w->has_repo && w->repo.foreign && (w->repo.linked || w->repo.prefix[0] != '\0')) {
        w->has_repo = false;
    }
}

static int set_up(struct workspace *w, const struct workspace_opts *o, struct err *e)
{
    char real[PATH_MAX];
    if (realpath(o->source, real) == NULL) {
        return ERR_SYS_AS(e, ERR_INPUT, "workspace '%s'", o->source);
    }
    w->source = arena_dup(w->arena, str_of(real));
    w->path = w->source;
    w->ref = o->ref == NULL ? NULL : arena_dup(w->arena, str_of(o->ref));
    w->marks = o->marks;
    bool asked = o->kind != WORKSPACE_SNAPSHOT;
    w->why_not = asked || o->why_not == NULL ? NULL : arena_dup(w->arena, str_of(o->why_not));
    w->created = clock_wall();
    find_repo(w);
    if (w->has_repo) {
        memcpy(w->head, w->repo.head, sizeof w->head);
    }
    find_inner(w);
    int r = choose(w, o, e);
    r = r < 0 ? r : make_view(w, e);
    if (r == 0) {
        r = o->pin && !w->layered ? workspace_pin(w, e) : workspace_save(w, e);
        fill_view(w);
    }
    return r;
}

int workspace_open(const struct workspace_opts *o, struct workspace **ret, struct err *e)
{
    struct workspace *w = make(o->dir);
    if (mkdir(o->dir, 0700) < 0) {
        int r = ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", o->dir);
        release(w);
        return r;
    }
    w->dir_fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = w->dir_fd < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", o->dir) : set_up(w, o, e);
    if (r < 0) {
        (void)workspace_close(w, false);
        return r;
    }
    *ret = w;
    return 0;
}

static int read_back(struct workspace *w, const struct json *o, struct err *e)
{
    struct arena *a = w->arena;
    struct str mode = json_str(json_get(o, "mode"), STR_EMPTY);
    bool known = false;
    for (size_t i = 0; i < ARRAY_LEN(kind_words); i++) {
        if (str_eqc(mode, kind_words[i])) {
            w->kind = (enum workspace_kind)i;
            known = true;
        }
    }
    const char *source = json_cstring(json_get(o, "source"), NULL);
    const char *base = json_cstring(json_get(o, "base"), NULL);
    const char *tree = json_cstring(json_get(o, "tree"), NULL);
    if (!known || source == NULL || base == NULL || tree == NULL) {
        return ERR(e, ERR_PARSE, "'%s/workspace.json' is damaged", w->dir);
    }
    w->source = arena_dup(a, str_of(source));
    w->path = arena_dup(a, str_of(json_cstring(json_get(o, "path"), source)));
    w->base = arena_dup(a, str_of(base));
    w->tree = arena_dup(a, str_of(tree));
    w->ref = json_cstring(json_get(o, "ref"), NULL);
    w->baseline_commit = json_cstring(json_get(o, "baseline"), NULL);
    w->within = json_cstring(json_get(o, "within"), NULL);
    w->inner = json_cstring(json_get(o, "inner"), NULL);
    w->created = json_int(json_get(o, "created_ns"), 0);
    int64_t marks = json_int(json_get(o, "marks"), 0);
    w->marks = marks == NODE_MARKS_USER      ? NODE_MARKS_USER
               : marks == NODE_MARKS_TRUSTED ? NODE_MARKS_TRUSTED
                                             : NODE_MARKS_NONE;
    w->hidden = json_is(json_get(o, "hidden"), JSON_ARRAY) ? json_get(o, "hidden") : w->hidden;
    if (json_is(json_get(o, "placeholders"), JSON_ARRAY)) {
        w->placeholders = json_get(o, "placeholders");
    }
    w->layered = file_is_dir(w->dir_fd, "layer/upper");
    find_repo(w);
    if (w->within != NULL) {
        w->repo.prefix = "";
    }
    struct str head = json_str(json_get(o, "head"), STR_EMPTY);
    if (head.len < sizeof w->head) {
        memcpy(w->head, head.ptr, head.len);
    }
    return 0;
}

int workspace_reopen(const char *dir, struct workspace **ret, struct err *e)
{
    enum { STATE_MAX = 1 << 20 };
    CLEANUP(buf) struct buf text = BUF_INIT(STATE_MAX);
    struct workspace *w = make(dir);
    struct json *o = NULL;
    int r = 0;
    w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (w->dir_fd < 0) {
        r = ERR_SYS_AS(e, ERR_INPUT, "open '%s'", dir);
    }
    r = r < 0 ? r : file_read(w->dir_fd, "workspace.json", STATE_MAX, &text, e);
    r = r < 0 ? r : json_parse(w->arena, buf_str(&text), NULL, &o, e);
    r = r < 0 ? r : read_back(w, o, e);
    if (r == 0) {
        w->base_fd = open(w->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        w->tree_fd = open(w->tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (w->base_fd < 0 || w->tree_fd < 0) {
            r = ERR_SYS_AS(e, ERR_INPUT, "open the parts of '%s'", dir);
        }
    }
    if (r < 0) {
        release(w);
        return r;
    }
    fill_view(w);
    *ret = w;
    return 0;
}

struct workspace *workspace_close(struct workspace *w, bool keep)
{
    if (w == NULL) {
        return NULL;
    }
    if (json_len(w->placeholders) > 0 && (keep || w->kind == WORKSPACE_IN_PLACE)) {
        workspace_unpin(w);
        (void)!workspace_save(w, NULL);
    }
    if (!keep) {
        (void)!file_remove_tree(AT_FDCWD, w->dir, NULL);
    }
    release(w);
    return NULL;
}

/* --- questions --- */

enum workspace_kind workspace_kind_of(const struct workspace *w)
{
    return w->kind;
}

const struct sandbox_view *workspace_view(const struct workspace *w)
{
    return &w->view;
}

const char *workspace_path(const struct workspace *w)
{
    return w->source;
}

const char *workspace_dir(const struct workspace *w)
{
    if (w->layered) {
        return NULL;
    }
    return w->within == NULL || w->within[0] == '\0'
               ? w->tree
               : arena_printf(w->arena, "%s/%s", w->tree, w->within);
}

const char *workspace_source(const struct workspace *w)
{
    return w->source;
}

int workspace_fd(const struct workspace *w)
{
    return w->layered ? -1 : w->tree_fd;
}

const char *workspace_txn_dir(const struct workspace *w)
{
    return workspace_place(w, "txn");
}

void workspace_savepoints(struct workspace *w, struct savepoint_opts *ret)
{
    *ret = (struct savepoint_opts) {
        .workspace_fd = workspace_fd(w),
        .tree_fd = w->tree_fd,
        .base_fd = w->layered ? w->base_fd : -1,
        .marks = w->layered ? w->marks : NODE_MARKS_NONE,
        .dir = workspace_place(w, "savepoint"),
        .txn_dir = workspace_txn_dir(w),
        .skip = { is_inner, w },
    };
}

const struct json *workspace_not_copied(const struct workspace *w)
{
    return w->not_copied;
}

int64_t workspace_disk(const struct workspace *w)
{
    struct tree_stats s;
    return tree_measure(w->dir_fd, &s, NULL) < 0 ? 0 : s.disk;
}

const char *const *workspace_also_read(const struct workspace *w)
{
    const char *const *more = w->has_repo ? repo_alternates(w->arena, &w->repo) : NULL;
    size_t n = 0;
    while (more != NULL && more[n] != NULL) {
        n++;
    }
    const char **list = arena_array(w->arena, n + 2, sizeof *list);
    size_t len = 0;
    const char *objects = w->has_repo && w->repo.linked /* they are elsewhere */
                              ? arena_printf(w->arena, "%s/objects", w->repo.common_dir)
                              : NULL;
    if (objects != NULL && repo_is_object_dir(objects)) {
        list[len++] = objects;
    }
    for (size_t i = 0; i < n; i++) {
        list[len++] = more[i];
    }
    return list;
}

struct json *workspace_json(const struct workspace *w, struct arena *a)
{
    struct json *o = describe(w, a);
    json_setc(a, o, "disk_bytes", json_integer(a, workspace_disk(w)));
    return o;
}
