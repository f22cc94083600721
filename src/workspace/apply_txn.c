/* SPDX-License-Identifier: MIT
 *
 * Making a change, rolling it back, and ending what a dead process left. Entry number i keeps what
 * was there before under the name i in old/; the new one is in tree/ under its own path.
 */
#include "workspace/apply_txn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "workspace/apply_refs.h"
#include "workspace/listing.h"
#include "workspace/node.h"

#define OLD_NAME  "old"
#define LOCK_NAME "index.lock"
#define LOCK_MARK "cinch apply\n"
#define INDEX_MAX ((size_t)1 << 30)
enum { OLD_LEN = 40, DIR_SLASH = 1 };

/* --- small parts --- */

static const char *old_name(size_t i, char out[OLD_LEN])
{
    (void)snprintf(out, OLD_LEN, OLD_NAME "/%zu", i);
    return out;
}

const char *apply_index_name(struct arena *a, const char *git_dir)
{
    return arena_printf(a, "%s/cinch-apply.index", git_dir);
}

/* Not by a temporary name: nothing must be left if the process dies here. */
int apply_copy_index(struct arena *a, const char *git_dir, const char *to, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(INDEX_MAX);
    const char *from = arena_printf(a, "%s/index", git_dir);
    struct stat st;
    if (stat(from, &st) < 0 && errno == ENOENT) {
        return 0;
    }
    int r = file_read(AT_FDCWD, from, INDEX_MAX, &text, e);
    CLEANUP(fd)
    int fd =
        r < 0 ? -1
              : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, st.st_mode & 0777);
    if (r == 0 && fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", to);
    }
    r = r < 0 ? r : file_write_all(fd, buf_str(&text), e);
    return r == -(int)ERR_SYS ? ERR_SYS_AS(e, ERR_OUTPUT, "write '%s'", to) : r;
}

/* A path of the tree as (directory, name). The directory is -1 when it does not exist. */
struct place {
    int fd;
    const char *name;
};

static void cleanup_place(struct place *p)
{
    cleanup_fd(&p->fd);
}

static struct place find_place(int root_fd, const char *path)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    if (len >= sizeof parent) {
        return (struct place) { -1, path };
    }
    memcpy(parent, path, len);
    parent[len] = '\0';
    return (struct place) { node_open_dir(root_fd, parent, NULL),
                            slash == NULL ? path : slash + 1 };
}

/* False when there is nothing. */
static bool look_at(const struct place *p, struct stat *st)
{
    return p->fd >= 0 && fstatat(p->fd, p->name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_same_time(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What is there is what old/ keeps: the same file, or one that a copy was made of. */
static bool is_old(const struct apply_txn *t, size_t i, const struct stat *now)
{
    char name[OLD_LEN];
    struct stat old;
    return fstatat(t->dir_fd, old_name(i, name), &old, AT_SYMLINK_NOFOLLOW) == 0 &&
           ((old.st_ino == now->st_ino && old.st_dev == now->st_dev) || is_same_time(&old, now));
}

static bool is_leaf(enum apply_node n)
{
    return n == APPLY_FILE || n == APPLY_LINK;
}

static void staged_name(const char *path, char out[PATH_MAX])
{
    (void)snprintf(out, PATH_MAX, APPLY_TREE_NAME "/%s", path);
}

static bool is_staged(const struct apply_txn *t, const char *path, struct stat *st)
{
    char name[PATH_MAX];
    staged_name(path, name);
    return fstatat(t->dir_fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st->st_mode);
}

/* --- signals that would end the process --- */

static void fill_signals(sigset_t *set)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    (void)sigemptyset(set);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        (void)sigaddset(set, numbers[i]);
    }
}

/* Takes one that waits; false if there is none. */
static bool take_signal(void)
{
    const struct timespec now = { 0 };
    sigset_t set;
    fill_signals(&set);
    return sigtimedwait(&set, NULL, &now) > 0;
}

/* --- starting --- */

void apply_txn_add(struct apply_txn *t, const struct apply_entry *x)
{
    if (t->len == t->cap) {
        t->cap = t->cap == 0 ? 64 : t->cap * 2;
        struct apply_entry *more = arena_array(t->arena, t->cap, sizeof *more);
        if (t->len > 0) {
            memcpy(more, t->entries, t->len * sizeof *more);
        }
        t->entries = more;
    }
    t->entries[t->len] = *x;
    t->entries[t->len].path = arena_dup(t->arena, str_of(x->path));
    t->entries[t->len].digest = arena_dup(t->arena, str_of(x->digest));
    t->len++;
}

static int lock_root(struct apply_txn *t, struct err *e)
{
    t->lock_fd = open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->lock_fd < 0) {
        return ERR_SYS_AS(e, ERR_INPUT, "open '%s'", t->root);
    }
    if (flock(t->lock_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        cleanup_fd(&t->lock_fd);
        return ERR(e, ERR_EXISTS, "another cinch apply is changing '%s': try again when it is done",
                   t->root);
    }
    return 0;
}

static int open_staging(struct apply_txn *t, struct err *e)
{
    t->dir_fd = open(t->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return t->dir_fd < 0 ? ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", t->dir) : 0;
}

/* Nobody else may write there: a journal decides what is done to files. */
static bool is_private(const char *journals)
{
    struct stat st;
    return lstat(journals, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 022) == 0;
}

int apply_txn_start(struct apply_txn *t, const char *journals, struct err *e)
{
    char id[ID_LEN];
    sigset_t held;
    t->lock_fd = t->dir_fd = -1;
    t->time = clock_wall();
    t->journal = arena_printf(t->arena, "%s/%s", journals, id_new(id));
    int r = file_mkdirs(AT_FDCWD, journals, 0700, e);
    if (r == 0 && !is_private(journals)) {
        r = ERR(e, ERR_OUTPUT, "'%s' must belong to you, and only you may write there", journals);
    }
    r = r < 0 ? r : lock_root(t, e);
    if (r < 0) {
        return r;
    }
    fill_signals(&held);
    (void)sigprocmask(SIG_BLOCK, &held, &t->signals);
    if (file_exists(AT_FDCWD, t->dir)) {
        t->journal = "";
        apply_txn_end(t);
        return ERR(e, ERR_OUTPUT,
                   "'%s' is in the way; no apply is in progress that would need it: remove it",
                   t->dir);
    }
    /* Under a lock: a temporary file without a journal is removed by recoveries. */
    CLEANUP(fd) int journals_fd = open(journals, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)!flock(journals_fd, LOCK_EX);
    r = apply_journal_write(t, t->journal, e);
    cleanup_fd(&journals_fd);
    if (r == 0 && mkdir(t->dir, 0700) < 0) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", t->dir);
    }
    r = r < 0 ? r : open_staging(t, e);
    if (r == 0 &&
        (mkdirat(t->dir_fd, OLD_NAME, 0700) < 0 || mkdirat(t->dir_fd, APPLY_TREE_NAME, 0700) < 0)) {
        r = ERR_SYS_AS(e, ERR_OUTPUT, "create directories in '%s'", t->dir);
    }
    if (r < 0) {
        apply_txn_end(t);
    }
    return r;
}

int apply_txn_lock_index(struct apply_txn *t, const char *git_dir, const char *root, struct err *e)
{
    const char *path = arena_printf(t->arena, "%s/" LOCK_NAME, git_dir);
    if (t->index_count >= APPLY_INDEXES_MAX) {
        return ERR(e, ERR_LIMIT, "there are more than %d repositories to change",
                   APPLY_INDEXES_MAX);
    }
    t->indexes[t->index_count++] =
        (struct apply_index) { .git_dir = arena_dup(t->arena, str_of(git_dir)),
                               .root = arena_dup(t->arena, str_of(root)),
                               .entries = "" };
    int r = apply_journal_write(t, t->journal, e);
    if (r < 0) {
        t->index_count--;
        return r;
    }
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        r = errno == EEXIST
                ? ERR(e, ERR_EXISTS, "'%s' exists: another git process is running there", path)
                : ERR_SYS_AS(e, ERR_OUTPUT, "create '%s'", path);
        t->index_count--;
        return r;
    }
    r = file_write_all(fd, STR(LOCK_MARK), e);
    if (r < 0) {
        (void)unlinkat(AT_FDCWD, path, 0);
        t->index_count--;
    }
    return r;
}

/* Only if it is ours. An empty one can be that of a process that died when it made it. */
static void unlock_index(const struct apply_txn *t, const char *git_dir)
{
    CLEANUP(buf) struct buf text = BUF_INIT(sizeof LOCK_MARK);
    const char *path = arena_printf(t->arena, "%s/" LOCK_NAME, git_dir);
    if (file_read(AT_FDCWD, path, sizeof LOCK_MARK, &text, NULL) == 0 &&
        str_eqc(buf_str(&text), LOCK_MARK)) {
        (void)unlinkat(AT_FDCWD, path, 0);
    }
}

/* --- the steps --- */

static int compare_paths(const void *a, const void *b)
{
    const struct apply_entry *x = a;
    const struct apply_entry *y = b;
    return strcmp(x->path, y->path);
}

/* A hard link where possible: it takes no room, and rolling back restores the very same file. */
static int keep_old(struct apply_txn *t, size_t i, struct err *e)
{
    const struct apply_entry *x = &t->entries[i];
    char name[OLD_LEN];
    struct stat st;
    CLEANUP(place) struct place at = find_place(t->lock_fd, x->path);
    if (!look_at(&at, &st)) {
        return ERR(e, ERR_EXISTS, "'%s' was changed at the same time", x->path);
    }
    if (linkat(at.fd, at.name, t->dir_fd, old_name(i, name), 0) == 0) {
        return 0;
    }
    int r = node_copy(NODE_AT(at.fd, at.name), &st, NODE_AT(t->dir_fd, name), NULL, e);
    return r < 0 ? err_wrap(e, "keep a copy of '%s'", x->path) : 0;
}

static int fail_changed(const struct apply_entry *x, struct err *e)
{
    return ERR(e, ERR_EXISTS, "'%s' was changed at the same time", x->path);
}

static int fail_write(const struct apply_entry *x, const char *what, struct err *e)
{
    return ERR_SYS_AS(e, ERR_OUTPUT, "%s '%s'", what, x->path);
}

static bool is_empty_dir(const struct place *at)
{
    bool empty = false;
    return file_dir_is_empty(at->fd, at->name, &empty, NULL) == 0 && empty;
}

/* What makes room: children come before their directory. */
static int clear_entry(struct apply_txn *t, size_t i, struct err *e)
{
    const struct apply_entry *x = &t->entries[i];
    char name[OLD_LEN];
    struct stat st;
    bool goes = x->before != APPLY_NONE &&
                (x->after == APPLY_NONE || (x->before == APPLY_DIR) != (x->after == APPLY_DIR));
    CLEANUP(place) struct place at = { -1, NULL };
    if (!goes) {
        return 0;
    }
    at = find_place(t->lock_fd, x->path);
    if (!look_at(&at, &st)) {
        return 0; /* an earlier try has done it */
    }
    if (x->before == APPLY_DIR) {
        if (!S_ISDIR(st.st_mode)) {
            return 0; /* the new file is there already */
        }
        if (!is_empty_dir(&at)) { /* of no importance unless a file takes its place */
            return x->after == APPLY_NONE ? 0 : fail_changed(x, e);
        }
        return renameat(at.fd, at.name, t->dir_fd, old_name(i, name)) < 0
                   ? fail_write(x, "remove", e)
                   : 0;
    }
    if (x->after == APPLY_DIR && S_ISDIR(st.st_mode)) {
        return 0;
    }
    if (!is_old(t, i, &st)) {
        return fail_changed(x, e);
    }
    return unlinkat(at.fd, at.name, 0) < 0 ? fail_write(x, "remove", e) : 0;
}

static int place_entry(struct apply_txn *t, size_t i, struct err *e)
{
    const struct apply_entry *x = &t->entries[i];
    char name[PATH_MAX];
    struct stat st;
    struct stat now;
    if (x->after == APPLY_NONE || (x->after == APPLY_DIR && x->before == APPLY_DIR)) {
        return 0;
    }
    if (is_leaf(x->after) && !is_staged(t, x->path, &st)) {
        return 0; /* an earlier try has done it */
    }
    CLEANUP(place) struct place at = find_place(t->lock_fd, x->path);
    if (at.fd < 0) {
        return ERR(e, ERR_EXISTS, "the directory of '%s' was changed at the same time", x->path);
    }
    bool exists = look_at(&at, &now);
    if (x->after == APPLY_DIR) {
        return exists && S_ISDIR(now.st_mode)      ? 0
               : mkdirat(at.fd, at.name, 0777) < 0 ? fail_write(x, "create directory", e)
                                                   : 0;
    }
    if (exists && !(is_leaf(x->before) && is_old(t, i, &now))) {
        return fail_changed(x, e);
    }
    staged_name(x->path, name);
    return renameat(t->dir_fd, name, at.fd, at.name) < 0 ? fail_write(x, "write", e) : 0;
}

static int place_index(struct apply_txn *t, const struct apply_index *x, struct err *e)
{
    const char *from = apply_index_name(t->arena, x->git_dir);
    const char *to = arena_printf(t->arena, "%s/index", x->git_dir);
    char old[OLD_LEN];
    struct stat st;
    if (!x->staged || lstat(from, &st) < 0) {
        return 0; /* nothing to do, or done by an earlier try */
    }
    (void)snprintf(old, sizeof old, OLD_NAME "/index%zu", (size_t)(x - t->indexes));
    if (linkat(AT_FDCWD, to, t->dir_fd, old, 0) < 0 && errno != EEXIST && errno != ENOENT) {
        CLEANUP(buf) struct buf text = BUF_INIT(INDEX_MAX);
        int r = file_read(AT_FDCWD, to, INDEX_MAX, &text, e);
        r = r < 0 ? r : file_write_atomic(t->dir_fd, old, buf_str(&text), 0600, e);
        if (r < 0) {
            return err_wrap(e, "keep a copy of '%s'", to);
        }
    }
    return renameat(AT_FDCWD, from, AT_FDCWD, to) < 0
               ? ERR_SYS_AS(e, ERR_OUTPUT, "replace '%s'", to)
               : 0;
}

/* `again`: an earlier try may have done everything, and the user may have gone on since. */
static int go_forward(struct apply_txn *t, bool again, struct err *e)
{
    int r = 0;
    for (size_t i = t->len; r == 0 && i-- > 0;) {
        r = clear_entry(t, i, e);
    }
    for (size_t i = 0; r == 0 && i < t->len; i++) {
        r = place_entry(t, i, e);
    }
    for (size_t i = 0; r == 0 && i < t->index_count; i++) {
        apply_refresh_index(t, &t->indexes[i]);
        r = place_index(t, &t->indexes[i], e);
    }
    for (size_t i = 0; r == 0 && i < t->refs.len; i++) {
        r = apply_ref_move(t, &t->refs.items[i], true, e);
        r = r == -(int)ERR_EXISTS && again ? 0 : r;
    }
    return r;
}

/* --- rolling back --- */

static void leave_alone(struct apply_txn *t, const struct apply_entry *x)
{
    if (t->kept_away[0] == '\0') {
        (void)snprintf(t->kept_away, sizeof t->kept_away, "%s", x->path);
    }
}

/* Takes away what was put there; somebody else's file stays. */
static int unplace_entry(struct apply_txn *t, size_t i, struct err *e)
{
    const struct apply_entry *x = &t->entries[i];
    struct stat now;
    CLEANUP(place) struct place at = find_place(t->lock_fd, x->path);
    if (x->after == APPLY_NONE || x->after == x->before || !look_at(&at, &now)) {
        return 0;
    }
    if (x->after == APPLY_DIR) {
        if (S_ISDIR(now.st_mode) && unlinkat(at.fd, at.name, AT_REMOVEDIR) < 0 &&
            errno != ENOTEMPTY) {
            return fail_write(x, "remove directory", e);
        }
        return 0;
    }
    if (is_leaf(x->before) || now.st_ino != x->inode || S_ISDIR(now.st_mode)) {
        return 0; /* replaced below, or not ours */
    }
    return unlinkat(at.fd, at.name, 0) < 0 ? fail_write(x, "remove", e) : 0;
}

static int restore_entry(struct apply_txn *t, size_t i, struct err *e)
{
    const struct apply_entry *x = &t->entries[i];
    char name[OLD_LEN];
    struct stat now;
    struct stat old;
    if (x->before == APPLY_NONE ||
        fstatat(t->dir_fd, old_name(i, name), &old, AT_SYMLINK_NOFOLLOW) < 0) {
        return 0;
    }
    CLEANUP(place) struct place at = find_place(t->lock_fd, x->path);
    bool exists = look_at(&at, &now);
    if (at.fd < 0 || (exists && now.st_ino != x->inode && now.st_ino != old.st_ino)) {
        if (!exists || !is_same_time(&now, &old)) {
            leave_alone(t, x);
        }
        return 0;
    }
    return renameat(t->dir_fd, name, at.fd, at.name) < 0 ? fail_write(x, "restore", e) : 0;
}

static int restore_index(struct apply_txn *t, size_t i, struct err *e)
{
    char old[OLD_LEN];
    const char *to = arena_printf(t->arena, "%s/index", t->indexes[i].git_dir);
    (void)snprintf(old, sizeof old, OLD_NAME "/index%zu", i);
    if (renameat(t->dir_fd, old, AT_FDCWD, to) < 0 && errno != ENOENT) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "restore '%s'", to);
    }
    return 0;
}

static int roll_back(struct apply_txn *t, struct err *e)
{
    int r = 0;
    for (size_t i = t->refs.len; r == 0 && i-- > 0;) {
        r = apply_ref_move(t, &t->refs.items[i], false, e);
    }
    for (size_t i = 0; r == 0 && i < t->index_count; i++) {
        r = restore_index(t, i, e);
    }
    for (size_t i = t->len; r == 0 && i-- > 0;) {
        r = unplace_entry(t, i, e);
    }
    for (size_t i = 0; r == 0 && i < t->len; i++) {
        r = restore_entry(t, i, e);
    }
    return r;
}

/* --- the whole --- */

int apply_txn_commit(struct apply_txn *t, struct err *e)
{
    int r = 0;
    qsort(t->entries, t->len, sizeof *t->entries, compare_paths);
    for (size_t i = 0; r == 0 && i < t->len; i++) {
        r = is_leaf(t->entries[i].before) ? keep_old(t, i, e) : 0;
    }
    if (r == 0 && take_signal()) {
        r = ERR(e, ERR_CANCELLED, "interrupted: nothing was changed");
    }
    if (r < 0) {
        return r;
    }
    t->decided = true;
    r = apply_journal_write(t, t->journal, e);
    if (r < 0) {
        t->decided = false;
    } else {
        r = go_forward(t, false, e);
        if (r == 0) { /* from here on, what changes is not ours; a failure to say so is harmless */
            t->done = true;
            (void)!apply_journal_write(t, t->journal, NULL);
        }
    }
    if (r < 0 && t->decided) {
        struct err why = { 0 };
        if (roll_back(t, &why) == 0) {
            t->decided = false;
        } else { /* the journal stays: the next command tries again */
            t->journal = t->undo = "";
            r = ERR(e, ERR_OUTPUT, "%s; and it cannot be rolled back: %s", e->msg, why.msg);
        }
    }
    return r;
}

static int save_entry(struct apply_txn *t, int undo_fd, size_t i, struct err *e)
{
    char name[OLD_LEN];
    struct stat st;
    if (!is_leaf(t->entries[i].before) || t->dir_fd < 0 ||
        fstatat(t->dir_fd, old_name(i, name), &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return 0;
    }
    const char *to = name + strlen(OLD_NAME) + DIR_SLASH;
    if (renameat(t->dir_fd, name, undo_fd, to) == 0) {
        return 0;
    }
    (void)unlinkat(undo_fd, to, 0); /* of an earlier try */
    return node_copy(NODE_AT(t->dir_fd, name), &st, NODE_AT(undo_fd, to), NULL, e);
}

/* The journal comes last: without it there is nothing to undo. */
static void save_for_undo(struct apply_txn *t)
{
    const char *journal = arena_printf(t->arena, "%s/journal", t->undo);
    if (file_exists(AT_FDCWD, journal)) {
        return; /* an earlier try has done it */
    }
    int r = file_mkdirs(AT_FDCWD, t->undo, 0700, NULL);
    CLEANUP(fd) int fd = r < 0 ? -1 : open(t->undo, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; fd >= 0 && r == 0 && i < t->len; i++) {
        r = save_entry(t, fd, i, NULL);
    }
    r = fd < 0 || r < 0 ? -1 : apply_journal_write(t, journal, NULL);
    if (r < 0) {
        (void)!file_remove_tree(AT_FDCWD, t->undo, NULL);
        t->undo = "";
    }
}

void apply_txn_end(struct apply_txn *t)
{
    if (t->lock_fd < 0) {
        return;
    }
    bool stuck = t->decided && t->journal[0] == '\0';
    if (!stuck) {
        if (t->decided && t->undo[0] != '\0') {
            save_for_undo(t);
        }
        for (size_t i = 0; i < t->index_count; i++) {
            (void)unlinkat(AT_FDCWD, apply_index_name(t->arena, t->indexes[i].git_dir), 0);
            (void)unlinkat(AT_FDCWD,
                           arena_printf(t->arena, "%s.lock",
                                        apply_index_name(t->arena, t->indexes[i].git_dir)),
                           0);
            unlock_index(t, t->indexes[i].git_dir);
        }
        if (t->journal[0] != '\0') {
            (void)!file_remove_tree(AT_FDCWD, t->dir, NULL);
            (void)unlinkat(AT_FDCWD, t->journal, 0);
        }
    }
    cleanup_fd(&t->dir_fd);
    cleanup_fd(&t->lock_fd);
    while (t->decided && take_signal()) {
        continue; /* it came too late */
    }
    (void)sigprocmask(SIG_SETMASK, &t->signals, NULL);
}

/* --- recovery --- */

static void recover_one(const char *path, const struct apply_recover_port *port)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct apply_txn *t = ARENA_NEW(a, struct apply_txn);
    struct err e = { 0 };
    enum apply_recovery what = APPLY_ROLLED_BACK;
    int r = apply_journal_read(a, path, t, &e);
    if (r == -(int)ERR_INPUT) {
        return; /* its owner has just ended */
    }
    if (r == 0) {
        r = lock_root(t, &e);
        if (r == -(int)ERR_EXISTS) {
            return; /* its owner is alive */
        }
    }
    sigset_t held;
    fill_signals(&held);
    (void)sigprocmask(SIG_BLOCK, &held, &t->signals);
    if (r == 0 && !file_exists(AT_FDCWD, path)) { /* its owner ended just before the lock */
        cleanup_fd(&t->lock_fd);
        (void)sigprocmask(SIG_SETMASK, &t->signals, NULL);
        return;
    }
    if (r == 0 && t->done) {
        (void)!open_staging(t, NULL); /* it may be gone already */
        what = APPLY_COMPLETED;
    } else if (r == 0 && t->decided) {
        r = open_staging(t, &e);
        r = r < 0 ? r : go_forward(t, true, &e);
        what = APPLY_COMPLETED;
        if (r < 0 && t->dir_fd >= 0) {
            what = APPLY_ROLLED_BACK;
            r = roll_back(t, &e);
            t->decided = r < 0;
        }
    }
    port->recovered(port->arg, t, r < 0 ? APPLY_STUCK : what, e.msg);
    if (r < 0) { /* for the next time */
        cleanup_fd(&t->dir_fd);
        cleanup_fd(&t->lock_fd);
        (void)sigprocmask(SIG_SETMASK, &t->signals, NULL);
        return;
    }
    apply_txn_end(t);
}

/* Writes that were interrupted. If there is a journal, its owner is at work. */
static void remove_temporary(int fd, const struct listing *names)
{
    bool locked = false;
    for (size_t i = 0; i < names->len; i++) {
        const char *dot = strchr(names->items[i], '.');
        char journal[ID_LEN];
        if (dot == NULL || dot - names->items[i] != ID_LEN - 1) {
            continue;
        }
        memcpy(journal, names->items[i], ID_LEN - 1);
        journal[ID_LEN - 1] = '\0';
        locked = locked || flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (locked && !file_exists(fd, journal)) {
            (void)unlinkat(fd, names->items[i], 0);
        }
    }
}

void apply_txn_recover(const char *journals, const struct apply_recover_port *port)
{
    CLEANUP(fd) int fd = open(journals, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(listing) struct listing names = { 0 };
    if (fd < 0 || !is_private(journals) || listing_read(&names, fd, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < names.len; i++) {
        char path[PATH_MAX];
        if (strchr(names.items[i], '.') == NULL && /* no temporary file */
            path_join(journals, names.items[i], path, sizeof path, NULL) == 0) {
            recover_one(path, port);
        }
    }
    remove_temporary(fd, &names);
}
