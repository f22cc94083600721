/* SPDX-License-Identifier: MIT
 *
 * Taking back an apply: its journal, read backwards, with the files that were kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "workspace/apply_priv.h"
#include "workspace/apply_refs.h"
#include "workspace/git.h"
#include "workspace/node.h"

#define INDEX_MAX ((size_t)1 << 30)
enum { NAMED = 5 };

struct undoing {
    struct applying x; /* root_fd, tree_fd, txn, ret: as for an apply */
    struct apply_txn *made;
    int undo_fd;
};

static bool is_leaf(enum apply_node n)
{
    return n == APPLY_FILE || n == APPLY_LINK;
}

/* --- may it be taken back? --- */

static bool is_as_applied(struct undoing *u, const struct apply_entry *one)
{
    struct stat st;
    const char *digest;
    enum apply_node now = apply_type_at(u->x.root_fd, one->path, &st);
    if (!is_leaf(one->after)) {
        return one->after == APPLY_DIR ? now == APPLY_DIR
                                       : now == APPLY_NONE || one->before == APPLY_DIR;
    }
    return apply_digest(u->x.root_fd, one->path, u->x.a, &digest, NULL) == 0 &&
           strcmp(digest, one->digest) == 0;
}

static void check_files(struct undoing *u)
{
    CLEANUP(buf) struct buf names = BUF_INIT(BUF_TEXT);
    size_t n = 0;
    for (size_t i = 0; i < u->made->len; i++) {
        if (is_as_applied(u, &u->made->entries[i])) {
            continue;
        }
        if (n++ < NAMED) {
            buf_addf(&names, "%s%s", n == 1 ? "" : ", ", u->made->entries[i].path);
        }
    }
    if (n > NAMED) {
        buf_addf(&names, " and %zu more", n - NAMED);
    }
    if (n > 0) {
        (void)apply_reject(&u->x, "changed since: %.*s", STR_ARG(buf_str(&names)));
    }
}

static int check_refs(struct undoing *u)
{
    for (size_t i = 0; i < u->made->refs.len; i++) {
        const struct apply_ref *ref = &u->made->refs.items[i];
        if (!apply_ref_is(u->made, ref, ref->to)) {
            return apply_reject(&u->x, "%s has moved since: use git to take the commit back",
                                ref->name);
        }
    }
    return 0;
}

/* --- the way back --- */

static int stage_old(struct undoing *u, size_t i)
{
    const struct apply_entry *one = &u->made->entries[i];
    char name[24];
    struct stat st;
    struct str base;
    (void)snprintf(name, sizeof name, "%zu", i);
    if (fstatat(u->undo_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return ERR_SYS_AS(u->x.e, ERR_INPUT, "the earlier content of '%s'", one->path);
    }
    CLEANUP(fd)
    int at = file_open_parent(u->x.tree_fd, str_of(one->path), 0700, &base, u->x.e);
    return at < 0 ? at
                  : node_copy(NODE_AT(u->undo_fd, name), &st, NODE_AT(at, base.ptr), NULL, u->x.e);
}

static int plan_entries(struct undoing *u)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < u->made->len; i++) {
        const struct apply_entry *one = &u->made->entries[i];
        struct apply_entry back = {
            .path = one->path, .before = one->after, .after = one->before, .digest = ""
        };
        struct stat st;
        if (is_leaf(one->before)) {
            r = stage_old(u, i);
            back.inode =
                r == 0 && apply_type_at(u->x.tree_fd, one->path, &st) != APPLY_NONE ? st.st_ino : 0;
        }
        apply_txn_add(u->x.txn, &back);
    }
    return r;
}

static int run_in(struct undoing *u, const struct apply_index *one, const char *const *args,
                  struct str input)
{
    struct git_call c = {
        .args = args,
        .cwd = one->root,
        .git_dir = one->git_dir,
        .work_tree = one->root,
        .index = apply_index_name(u->x.a, one->git_dir),
        .user_config = true,
        .input = input,
    };
    return git_run(&c, u->x.e);
}

/* The changed paths get the entries that they had, or none. */
static int write_entries(struct undoing *u, const struct apply_index *one, struct buf *out)
{
    struct str root = str_of(u->made->root);
    const char *below = strlen(one->root) > root.len ? one->root + root.len + 1 : "";
    size_t skip = strlen(below);
    int r = 0;
    for (size_t i = 0; r == 0 && i < u->made->len; i++) {
        const struct apply_entry *x = &u->made->entries[i];
        if (strncmp(x->path, below, skip) != 0 || (skip > 0 && x->path[skip] != '/') ||
            (!is_leaf(x->before) && !is_leaf(x->after))) {
            continue;
        }
        r = buf_printf(out, u->x.e, "0 0000000000000000000000000000000000000000\t%s",
                       x->path + (skip > 0 ? skip + 1 : 0));
        r = r < 0 ? r : buf_append_c(out, '\0', u->x.e);
    }
    return r < 0 ? r : buf_append(out, str_n(one->entries, one->entries_len), u->x.e);
}

static int plan_index(struct undoing *u, const struct apply_index *one)
{
    static const char *const args[] = { "update-index", "-z", "--index-info", NULL };
    CLEANUP(buf) struct buf lines = BUF_INIT(INDEX_MAX);
    if (!one->staged) {
        return 0;
    }
    int r = apply_txn_lock_index(u->x.txn, one->git_dir, one->root, u->x.e);
    r = r < 0 ? r
              : apply_copy_index(u->x.a, one->git_dir, apply_index_name(u->x.a, one->git_dir),
                                 u->x.e);
    r = r < 0 ? r : write_entries(u, one, &lines);
    r = r < 0 ? r : run_in(u, one, args, buf_str(&lines));
    if (r == 0) {
        u->x.txn->indexes[u->x.txn->index_count - 1].staged = true;
    }
    return r;
}

static void plan_refs(struct undoing *u)
{
    for (size_t i = u->made->refs.len; i-- > 0;) {
        const struct apply_ref *ref = &u->made->refs.items[i];
        u->x.txn->refs.items[u->x.txn->refs.len++] =
            (struct apply_ref) { ref->name, ref->to, ref->from, "cinch apply --undo" };
    }
}

static int go_back(struct undoing *u, const char *journals)
{
    struct apply_txn *t = u->x.txn;
    int r = apply_txn_start(t, journals, u->x.e);
    if (r < 0) {
        return r;
    }
    u->x.tree_fd = openat(t->dir_fd, APPLY_TREE_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = u->x.tree_fd < 0 ? ERR_SYS(u->x.e, "open '%s'", t->dir) : plan_entries(u);
    for (size_t i = 0; r == 0 && i < u->made->index_count; i++) {
        r = plan_index(u, &u->made->indexes[i]);
    }
    plan_refs(u);
    r = r < 0 ? r : apply_txn_commit(t, u->x.e);
    apply_txn_end(t);
    return r;
}

int apply_undo(struct arena *a, const struct apply_undo_opts *o, struct apply_result *ret,
               struct err *e)
{
    struct err own = { 0 };
    struct apply_opts opts = { .check = o->check };
    struct apply_txn *made = ARENA_NEW(a, struct apply_txn);
    struct apply_txn *t = ARENA_NEW(a, struct apply_txn);
    struct undoing u = { .x = { .a = a, .o = &opts, .ret = ret, .root_fd = -1, .tree_fd = -1 },
                         .made = made,
                         .undo_fd = -1 };
    u.x.e = e == NULL ? &own : e;
    u.x.txn = t;
    *ret = (struct apply_result) { .fits = true, .conflicts = json_array(a) };
    int r = apply_journal_read(a, arena_printf(a, "%s/journal", o->undo), made, u.x.e);
    if (r < 0) {
        return r;
    }
    *t = (struct apply_txn) { .arena = a,
                              .root = made->root,
                              .dir = made->dir,
                              .git_dir = made->git_dir,
                              .journal = "",
                              .undo = "",
                              .target = made->target,
                              .lock_fd = -1,
                              .dir_fd = -1 };
    u.x.root_fd = open(made->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    u.undo_fd = open(o->undo, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (u.x.root_fd < 0 || u.undo_fd < 0) {
        r = ERR_SYS_AS(u.x.e, ERR_INPUT, "open '%s'", u.x.root_fd < 0 ? made->root : o->undo);
    }
    if (r == 0) {
        check_files(&u);
        r = check_refs(&u);
    }
    ret->files = made->len;
    if (r == 0 && ret->fits && !o->check) {
        r = go_back(&u, o->journals);
        if (r == 0) {
            r = file_remove_tree(AT_FDCWD, o->undo, u.x.e);
        }
    }
    cleanup_fd(&u.x.root_fd);
    cleanup_fd(&u.x.tree_fd);
    cleanup_fd(&u.undo_fd);
    return r;
}
