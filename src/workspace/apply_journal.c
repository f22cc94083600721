/* SPDX-License-Identifier: MIT
 *
 * The journal of an apply: strings, each followed by a NUL, because paths may hold any other byte.
 * "cinch apply 1", then a keyword and its values, "end" last:
 *   root dir git undo target   one path each      time   nanoseconds     decided   done
 *   entry TYPES PATH INODE DIGEST                 index DIR ROOT STAGED ENTRIES (ENTRIES: base64)
 *   ref NAME FROM TO MESSAGE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/file.h"
#include "workspace/apply_txn.h"
#include "workspace/node.h"

#define MAGIC       "cinch apply 1"
#define JOURNAL_MAX ((size_t)1 << 30)

static void put_string(struct buf *out, const char *s, int *r, struct err *e)
{
    *r = *r < 0 ? *r : buf_append(out, str_n(s, strlen(s) + 1), e);
}

static void put_pair(struct buf *out, const char *key, const char *value, int *r, struct err *e)
{
    put_string(out, key, r, e);
    put_string(out, value, r, e);
}

int apply_journal_write(const struct apply_txn *t, const char *path, struct err *e)
{
    CLEANUP(buf) struct buf out = BUF_INIT(JOURNAL_MAX);
    CLEANUP(arena) struct arena *a = arena_new();
    int r = 0;
    put_string(&out, MAGIC, &r, e);
    put_pair(&out, "root", t->root, &r, e);
    put_pair(&out, "dir", t->dir, &r, e);
    put_pair(&out, "git", t->git_dir, &r, e);
    put_pair(&out, "undo", t->undo, &r, e);
    put_pair(&out, "target", t->target, &r, e);
    put_pair(&out, "time", arena_printf(a, "%lld", (long long)t->time), &r, e);
    if (t->decided) {
        put_string(&out, t->done ? "done" : "decided", &r, e);
    }
    for (size_t i = 0; r == 0 && i < t->len; i++) {
        const struct apply_entry *x = &t->entries[i];
        const char types[3] = { (char)x->before, (char)x->after, '\0' };
        char number[24];
        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)x->inode);
        put_pair(&out, "entry", types, &r, e);
        put_string(&out, x->path, &r, e);
        put_string(&out, number, &r, e);
        put_string(&out, x->digest, &r, e);
    }
    for (size_t i = 0; r == 0 && i < t->index_count; i++) {
        const struct apply_index *x = &t->indexes[i];
        CLEANUP(buf) struct buf text = BUF_INIT(JOURNAL_MAX);
        r = base64_write(str_n(x->entries, x->entries_len), &text, e);
        r = r < 0 ? r : buf_append_c(&text, '\0', e);
        put_pair(&out, "index", x->git_dir, &r, e);
        put_string(&out, x->root, &r, e);
        put_pair(&out, x->staged ? "1" : "0", text.ptr, &r, e);
    }
    for (size_t i = 0; r == 0 && i < t->refs.len; i++) {
        put_pair(&out, "ref", t->refs.items[i].name, &r, e);
        put_pair(&out, t->refs.items[i].from, t->refs.items[i].to, &r, e);
        put_string(&out, t->refs.items[i].message, &r, e);
    }
    put_string(&out, "end", &r, e);
    return r < 0 ? r : file_write_atomic(AT_FDCWD, path, buf_str(&out), 0600, e);
}

/* --- reading --- */

struct reader {
    struct str rest;
    struct arena *arena;
    struct apply_txn *t;
    struct err *e;
};

/* NULL at the end. */
static const char *take_string(struct reader *p)
{
    const char *end = p->rest.len == 0 ? NULL : memchr(p->rest.ptr, '\0', p->rest.len);
    if (end == NULL) {
        return NULL;
    }
    const char *s = p->rest.ptr;
    p->rest = str_slice(p->rest, (size_t)(end - s) + 1, p->rest.len);
    return s;
}

static int fail_damaged(struct reader *p, const char *what)
{
    return ERR(p->e, ERR_PARSE, "the journal of an apply is damaged: %s", what);
}

static bool is_absolute(const char *s)
{
    return s != NULL && s[0] == '/';
}

static bool is_type(char c)
{
    return c != '\0' && strchr("-fld", c) != NULL;
}

static int read_entry(struct reader *p)
{
    const char *types = take_string(p);
    const char *path = types == NULL ? NULL : take_string(p);
    const char *inode = path == NULL ? NULL : take_string(p);
    const char *digest = inode == NULL ? NULL : take_string(p);
    if (digest == NULL || strlen(types) != 2 || !is_type(types[0]) || !is_type(types[1]) ||
        path[0] == '\0' || !node_is_inner_path(path)) {
        return fail_damaged(p, "an entry");
    }
    apply_txn_add(p->t, &(struct apply_entry) { .path = path,
                                                .before = (enum apply_node)types[0],
                                                .after = (enum apply_node)types[1],
                                                .inode = strtoull(inode, NULL, 10),
                                                .digest = digest });
    return 0;
}

static int read_index(struct reader *p)
{
    const char *git_dir = take_string(p);
    const char *root = git_dir == NULL ? NULL : take_string(p);
    const char *staged = root == NULL ? NULL : take_string(p);
    const char *text = staged == NULL ? NULL : take_string(p);
    if (text == NULL || !is_absolute(git_dir) || !is_absolute(root) ||
        p->t->index_count >= APPLY_INDEXES_MAX) {
        return fail_damaged(p, "an index");
    }
    CLEANUP(buf) struct buf entries = BUF_INIT(JOURNAL_MAX);
    if (base64_read(str_of(text), &entries, p->e) < 0) {
        return fail_damaged(p, "an index");
    }
    p->t->indexes[p->t->index_count++] = (struct apply_index) {
        .git_dir = arena_dup(p->arena, str_of(git_dir)),
        .root = arena_dup(p->arena, str_of(root)),
        .entries = arena_dup(p->arena, buf_str(&entries)),
        .entries_len = entries.len,
        .staged = strcmp(staged, "1") == 0,
    };
    return 0;
}

static int read_ref(struct reader *p)
{
    const char *name = take_string(p);
    const char *from = name == NULL ? NULL : take_string(p);
    const char *to = from == NULL ? NULL : take_string(p);
    const char *message = to == NULL ? NULL : take_string(p);
    bool known = name != NULL && (strcmp(name, "HEAD") == 0 || strncmp(name, "refs/", 5) == 0);
    if (message == NULL || !known || p->t->refs.len >= APPLY_REFS_MAX) {
        return fail_damaged(p, "a ref");
    }
    p->t->refs.items[p->t->refs.len++] =
        (struct apply_ref) { .name = arena_dup(p->arena, str_of(name)),
                             .from = arena_dup(p->arena, str_of(from)),
                             .to = arena_dup(p->arena, str_of(to)),
                             .message = arena_dup(p->arena, str_of(message)) };
    return 0;
}

static int read_word(struct reader *p, const char *word)
{
    struct apply_txn *t = p->t;
    const struct {
        const char *word;
        const char **place;
        bool optional;
    } paths[] = {
        { "root", &t->root, false },    { "dir", &t->dir, false },  { "git", &t->git_dir, true },
        { "target", &t->target, true }, { "undo", &t->undo, true },
    };
    if (strcmp(word, "entry") == 0) {
        return read_entry(p);
    }
    if (strcmp(word, "index") == 0) {
        return read_index(p);
    }
    if (strcmp(word, "ref") == 0) {
        return read_ref(p);
    }
    if (strcmp(word, "decided") == 0 || strcmp(word, "done") == 0) {
        t->decided = true;
        t->done = word[1] == 'o';
        return 0;
    }
    const char *value = take_string(p);
    if (value != NULL && strcmp(word, "time") == 0) {
        return str_to_i64(str_of(value), &t->time) ? 0 : fail_damaged(p, "the time");
    }
    for (size_t i = 0; value != NULL && i < ARRAY_LEN(paths); i++) {
        if (strcmp(word, paths[i].word) == 0) {
            *paths[i].place = arena_dup(p->arena, str_of(value));
            return is_absolute(value) || (paths[i].optional && value[0] == '\0')
                       ? 0
                       : fail_damaged(p, word);
        }
    }
    return fail_damaged(p, "an unknown word");
}

int apply_journal_parse(struct arena *a, struct str text, struct apply_txn *ret, struct err *e)
{
    *ret = (struct apply_txn) { .arena = a,
                                .root = "",
                                .dir = "",
                                .git_dir = "",
                                .undo = "",
                                .target = "",
                                .journal = "",
                                .lock_fd = -1,
                                .dir_fd = -1 };
    struct reader p = { .rest = text, .arena = a, .t = ret, .e = e };
    const char *word = take_string(&p);
    if (word == NULL || strcmp(word, MAGIC) != 0) {
        return fail_damaged(&p, "it was not written by this version");
    }
    int r = 0;
    for (word = take_string(&p); r == 0 && word != NULL && strcmp(word, "end") != 0;
         word = take_string(&p)) {
        r = read_word(&p, word);
    }
    if (r == 0 && (word == NULL || p.rest.len > 0)) {
        r = fail_damaged(&p, "it does not end");
    }
    if (r == 0 && (ret->root[0] == '\0' || ret->dir[0] == '\0')) {
        r = fail_damaged(&p, "it names no directory");
    }
    return r;
}

int apply_journal_read(struct arena *a, const char *path, struct apply_txn *ret, struct err *e)
{
    CLEANUP(buf) struct buf text = BUF_INIT(JOURNAL_MAX);
    int r = file_read(AT_FDCWD, path, JOURNAL_MAX, &text, e);
    r = r < 0 ? r : apply_journal_parse(a, buf_str(&text), ret, e);
    ret->journal = arena_dup(a, str_of(path));
    return r;
}
