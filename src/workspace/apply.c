/* SPDX-License-Identifier: MIT
 *
 * Plan in a private directory, then put in place as a whole.
 */
#include "workspace/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/apply_priv.h"

#define INDEX_MAX ((size_t)1 << 30)

enum { TEXT_MAX = 1 << 20 };

/* --- which trees --- */

/* 0: there is nothing in it. */
static int has_changes(const char *patch, struct err *e)
{
    CLEANUP(buf) struct buf head = BUF_INIT(TEXT_MAX);
    int r = file_read(AT_FDCWD, patch, TEXT_MAX, &head, e);
    return r == -(int)ERR_LIMIT ? 1 : r < 0 ? r : str_trim(buf_str(&head)).len > 0;
}

static int find_root(struct applying *x, struct apply_part *p, const char *dir)
{
    char real[PATH_MAX];
    if (!file_is_dir(AT_FDCWD, dir) || realpath(dir, real) == NULL) {
        return ERR(x->e, ERR_INPUT, "'%s' is not a directory", dir);
    }
    p->has_repo = repo_find(x->a, real, &p->repo) > 0;
    p->root = p->has_repo ? p->repo.root : arena_dup(x->a, str_of(real));
    if (p->has_repo && p->repo.foreign) {
        return ERR(x->e, ERR_CONFIG,
                   "the git repository '%s' belongs to another user, so its configuration is not "
                   "obeyed: to trust it, run `git config --global --add safe.directory %s`",
                   p->root, p->root);
    }
    if (p->has_repo && p->repo.prefix[0] != '\0') {
        p->directory = arena_printf(x->a, "--directory=%s", p->repo.prefix);
    }
    return 0;
}

static int find_parts(struct applying *x)
{
    const struct apply_opts *o = x->o;
    x->parts = arena_array(x->a, o->patch_count + 1, sizeof *x->parts);
    int r = find_root(x, &x->parts[0], o->target);
    x->parts[0].below = "";
    x->part_count = 1;
    struct str top = str_of(x->parts[0].root);
    for (size_t i = 0; r == 0 && i < o->patch_count; i++) {
        const char *path = o->patches[i].path;
        struct apply_part *p = path[0] == '\0' ? &x->parts[0] : &x->parts[x->part_count];
        int some = has_changes(o->patches[i].patch, x->e);
        if (some <= 0) {
            r = some;
            continue;
        }
        if (path[0] != '\0') {
            r = find_root(x, p, arena_printf(x->a, "%s/%s", o->target, path));
            bool within = r == 0 && str_starts(str_of(p->root), top);
            p->below = !within                      ? ""
                       : strlen(p->root) == top.len ? ""
                                                    : p->root + top.len + (top.len > 1);
            x->part_count++;
        }
        p->patch = o->patches[i].patch;
    }
    if (r == 0 && !x->parts[0].has_repo && (o->branch != NULL || o->commit != NULL)) {
        return ERR(x->e, ERR_USAGE,
                   "'%s' is not a git repository: no branch or commit can be made there",
                   o->target);
    }
    if (r == 0 && !x->parts[0].has_repo && o->three_way) {
        return ERR(x->e, ERR_USAGE, "'%s' is not a git repository: --3way needs one", o->target);
    }
    return r;
}

/* --- the private directory --- */

/* Renames must be possible from there into the tree. */
static const char *staging_dir(struct applying *x)
{
    const struct apply_part *top = &x->parts[0];
    struct stat root;
    struct stat git;
    if (top->has_repo && stat(top->root, &root) == 0 && stat(top->repo.git_dir, &git) == 0 &&
        root.st_dev == git.st_dev) {
        return arena_printf(x->a, "%s/cinch-apply", top->repo.git_dir);
    }
    return arena_printf(x->a, "%s/.cinch-apply", top->root);
}

static int make_trial_dir(struct applying *x)
{
    const char *const places[] = { getenv("TMPDIR"), "/tmp", "/dev/shm" };
    char *dir = NULL;
    for (size_t i = 0; x->scratch == NULL && i < ARRAY_LEN(places); i++) {
        if (places[i] != NULL) {
            dir = arena_printf(x->a, "%s/cinch-apply-XXXXXX", places[i]);
            x->scratch = mkdtemp(dir);
        }
    }
    if (x->scratch == NULL) {
        return ERR_SYS_AS(x->e, ERR_OUTPUT, "create '%s'", dir);
    }
    return file_mkdirs(AT_FDCWD, arena_printf(x->a, "%s/" APPLY_TREE_NAME, dir), 0700, x->e);
}

static int start(struct applying *x)
{
    const struct apply_part *top = &x->parts[0];
    struct apply_txn *t = x->txn;
    t->root = top->root;
    t->git_dir = top->has_repo ? top->repo.git_dir : "";
    t->undo = x->o->undo == NULL ? "" : x->o->undo;
    t->target = x->o->target;
    int r;
    if (x->o->check) {
        r = make_trial_dir(x);
    } else {
        t->dir = x->scratch = staging_dir(x);
        r = apply_txn_start(t, x->o->journals, x->e);
    }
    if (r < 0) {
        return r;
    }
    const char *tree = arena_printf(x->a, "%s/" APPLY_TREE_NAME, x->scratch);
    x->root_fd = open(top->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    x->tree_fd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return x->root_fd < 0 || x->tree_fd < 0 ? ERR_SYS(x->e, "open '%s'", tree) : 0;
}

static int copy_index(struct applying *x, struct apply_part *p, size_t number)
{
    const char *lock = arena_printf(x->a, "%s/index.lock", p->repo.git_dir);
    for (size_t i = 0; i < number; i++) { /* two patches for one repository */
        if (x->parts[i].index != NULL && strcmp(x->parts[i].repo.git_dir, p->repo.git_dir) == 0) {
            p->index = x->parts[i].index;
            return 0;
        }
    }
    if (file_exists(AT_FDCWD, lock)) {
        return apply_reject(x,
                            "'%s' exists: another git process is running there, or has died (then "
                            "remove the file)",
                            lock);
    }
    p->index = x->o->check ? arena_printf(x->a, "%s/index%zu", x->scratch, number)
                           : apply_index_name(x->a, p->repo.git_dir);
    int r = x->o->check ? 0 : apply_txn_lock_index(x->txn, p->repo.git_dir, p->root, x->e);
    return r < 0 ? r : apply_copy_index(x->a, p->repo.git_dir, p->index, x->e);
}

static const char *below_top(struct applying *x, const struct apply_part *p, const char *path)
{
    return p->below[0] == '\0' ? path : arena_printf(x->a, "%s/%s", p->below, path);
}

/* --- one patch --- */

static void note_index(struct applying *x, struct apply_part *p, const struct buf *entries)
{
    for (size_t i = 0; i < x->txn->index_count; i++) {
        struct apply_index *one = &x->txn->indexes[i];
        if (strcmp(one->git_dir, p->repo.git_dir) == 0) {
            one->staged = one->staged || p->staged;
            one->entries = arena_dup(x->a, buf_str(entries));
            one->entries_len = entries->len;
        }
    }
}

/* The directories that git works in, and the copy of the index. */
static int prepare_part(struct applying *x, size_t number)
{
    struct apply_part *p = &x->parts[number];
    p->work = p->below[0] == '\0'
                  ? arena_printf(x->a, "%s/" APPLY_TREE_NAME, x->scratch)
                  : arena_printf(x->a, "%s/" APPLY_TREE_NAME "/%s", x->scratch, p->below);
    int r = file_mkdirs(AT_FDCWD, p->work, 0700, x->e);
    if (r == 0 && p->has_repo) {
        p->objects = arena_printf(x->a, "%s/objects%zu", x->scratch, number);
        r = file_mkdirs(AT_FDCWD, p->objects, 0700, x->e);
    }
    r = r < 0 || !p->has_repo ? r : apply_override_drivers(x, p);
    return r < 0 || !p->has_repo ? r : copy_index(x, p, number);
}

/* The index before the patch is in it. */
static int read_index(struct applying *x, struct apply_part *p, struct buf *entries)
{
    int r = p->has_repo ? apply_read_entries(x, p, entries) : 0;
    if (r == 0 && p == &x->parts[0] && x->o->commit != NULL) {
        r = apply_has_staged(x, p);
        x->had_staged = r > 0;
    }
    return r < 0 ? r : 0;
}

static int plan_part(struct applying *x, size_t number)
{
    struct apply_part *p = &x->parts[number];
    CLEANUP(buf) struct buf entries = BUF_INIT(INDEX_MAX);
    int r = prepare_part(x, number);
    if (r < 0 || !x->ret->fits || p->patch == NULL) {
        return r;
    }
    r = apply_list_paths(x, p);
    for (size_t i = 0; r == 0 && x->ret->fits && i < p->path_count; i++) {
        r = apply_copy_in(x, below_top(x, p, p->paths[i]));
    }
    r = r < 0 || !x->ret->fits ? r : read_index(x, p, &entries);
    r = r < 0 || !x->ret->fits ? r : apply_try(x, p);
    for (size_t i = 0; r == 0 && x->ret->fits && i < p->path_count; i++) {
        r = apply_note_path(x, below_top(x, p, p->paths[i]));
    }
    if (r == 0 && x->ret->fits && p->has_repo) {
        note_index(x, p, &entries);
        x->ret->staged = x->ret->staged || p->staged;
    }
    return r;
}

static int plan(struct applying *x)
{
    struct apply_part *top = &x->parts[0];
    int r = 0;
    size_t already = 0;
    size_t patches = 0;
    for (size_t i = 0; r == 0 && x->ret->fits && i < x->part_count; i++) {
        x->ret->already = false;
        r = r < 0 ? r : plan_part(x, i);
        already += x->ret->already;
        patches += x->parts[i].patch != NULL;
    }
    if (r < 0 || !x->ret->fits) {
        return r;
    }
    x->ret->nothing = patches == 0;
    x->ret->already = patches > 0 && already == patches;
    r = apply_add_files(x, top->has_repo ? top->repo.prefix : "");
    x->ret->nothing = x->ret->nothing && x->txn->len == 0;
    x->ret->already = x->ret->already && x->txn->len == 0;
    r = r < 0 || !x->ret->fits ? r : apply_note_dirs(x);
    bool wanted = x->o->branch != NULL || x->o->commit != NULL;
    return r < 0 || !x->ret->fits || !wanted || x->ret->nothing ? r : apply_plan_refs(x);
}

static void finish(struct applying *x)
{
    cleanup_fd(&x->root_fd);
    cleanup_fd(&x->tree_fd);
    pathmap_done(&x->seen);
    if (x->o->check) {
        if (x->scratch != NULL) {
            (void)!file_remove_tree(AT_FDCWD, x->scratch, NULL);
        }
    } else {
        apply_txn_end(x->txn);
        x->ret->undoable = x->txn->decided && x->txn->undo[0] != '\0';
    }
}

int apply_run(struct arena *a, const struct apply_opts *o, struct apply_result *ret, struct err *e)
{
    struct err own = { 0 };
    struct apply_txn *t = ARENA_NEW(a, struct apply_txn);
    *t = (struct apply_txn) { .arena = a, .lock_fd = -1, .dir_fd = -1, .journal = "", .undo = "" };
    struct applying x = {
        .a = a,
        .o = o,
        .ret = ret,
        .txn = t,
        .root_fd = -1,
        .tree_fd = -1,
        .keep = "",
        .e = e == NULL ? &own : e,
    };
    *ret = (struct apply_result) { .fits = true, .conflicts = json_array(a) };
    int r = find_parts(&x);
    if (r < 0) {
        return r;
    }
    x.keep = x.parts[0].has_repo ? x.parts[0].repo.prefix : "";
    r = start(&x);
    r = r < 0 ? r : plan(&x);
    bool changes = t->len > 0 || t->refs.len > 0;
    if (r == 0 && ret->fits && changes && !o->check) {
        for (size_t i = 0; r == 0 && i < x.part_count; i++) {
            r = apply_move_objects(&x, &x.parts[i]);
        }
        r = r < 0 ? r : apply_txn_commit(t, x.e);
    }
    finish(&x);
    if (r == -(int)ERR_SYS && (x.e->sys == ENOSPC || x.e->sys == EDQUOT || x.e->sys == EROFS ||
                               x.e->sys == EACCES || x.e->sys == EPERM)) {
        x.e->code = ERR_OUTPUT; /* the user's tree, not a fault of ours */
        r = -(int)ERR_OUTPUT;
    }
    return r;
}
