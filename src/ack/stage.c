/* SPDX-License-Identifier: MIT
 *
 * Laying out the place of a trial, and looking at it afterwards.
 */
#include "ack/stage.h"

#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/sha256.h"
#include "workspace/git.h"

enum { FILL_MAX = 16 << 20, STAGE_FILE_MAX = 64 << 20, KEY_LONGEST = 40 };

/* --- placeholders --- */

static void fill_words(struct buf *out, struct str count)
{
    static const char words[] = "all work and no play ";
    int64_t n = 0;
    if (!str_to_i64(count, &n) || n < 0 || n > FILL_MAX) {
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        buf_add(out, str_n(&words[i % (int64_t)(sizeof words - 1)], 1));
    }
}

/* The adapter's name as a part of other names, whatever it is ("exec:/x/y"). */
static void fill_key(struct buf *out, const char *name)
{
    size_t n = 0;
    for (const char *p = name; *p != '\0' && n < KEY_LONGEST; p++, n++) {
        bool good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '-' || *p == '_';
        buf_add(out, good ? str_n(p, 1) : STR("_"));
    }
}

static void fill_one(const struct stage *st, struct str name, struct buf *out)
{
    if (str_starts(name, STR("fill:"))) {
        fill_words(out, str_slice(name, 5, name.len));
        return;
    }
    if (str_eqc(name, "key")) {
        fill_key(out, st->adapter);
        return;
    }
    const struct {
        const char *name, *value;
    } known[] = { { "workspace", st->workspace },
                  { "outside", st->outside },
                  { "dir", st->dir },
                  { "adapter", st->adapter },
                  { "site", st->site } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (str_eqc(name, known[i].name)) {
            buf_adds(out, known[i].value);
            return;
        }
    }
    buf_addf(out, "%%{%.*s}", STR_ARG(name));
}

static struct str fill_text(const struct stage *st, struct str s)
{
    if (str_find(s, STR("%{")) == s.len) {
        return s;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    while (s.len > 0) {
        size_t at = str_find(s, STR("%{"));
        buf_add(&out, str_slice(s, 0, at));
        s = str_slice(s, at, s.len);
        size_t end = str_find(s, STR("}"));
        if (end == s.len) {
            buf_add(&out, s);
            break;
        }
        fill_one(st, str_slice(s, 2, end), &out);
        s = str_slice(s, end + 1, s.len);
    }
    return arena_str(st->arena, buf_str(&out));
}

/* Recursion is bounded by the depth limit of the parser. */
struct json *stage_fill(const struct stage *st, const struct json *v)
{
    struct arena *a = st->arena;
    if (v == NULL) {
        return NULL;
    }
    if (v->type == JSON_STRING) {
        return json_string(a, fill_text(st, v->string));
    }
    if (v->type == JSON_ARRAY) {
        struct json *list = json_array(a);
        for (size_t i = 0; i < v->array.len; i++) {
            json_push(a, list, stage_fill(st, v->array.items[i]));
        }
        return list;
    }
    if (v->type == JSON_OBJECT) {
        struct json *map = json_object(a);
        for (size_t i = 0; i < v->object.len; i++) {
            const struct json_member *m = &v->object.members[i];
            json_set(a, map, fill_text(st, m->key), stage_fill(st, m->value));
        }
        return map;
    }
    return json_copy(a, v);
}

/* --- laying out --- */

static int put_file(const struct stage *st, const char *dir, const struct json_member *m,
                    struct err *e)
{
    const char *path = arena_printf(st->arena, "%s/%.*s", dir, STR_ARG(m->key));
    char *parent = arena_dup(st->arena, str_of(path));
    char *slash = strrchr(parent, '/');
    *slash = '\0';
    int r = file_mkdirs(AT_FDCWD, parent, 0755, e);
    return r < 0 ? r
                 : file_write_atomic(AT_FDCWD, path, fill_text(st, json_str(m->value, STR_EMPTY)),
                                     0644, e);
}

static int put_files(const struct stage *st, const char *dir, const struct json *files,
                     struct err *e)
{
    int r = file_mkdirs(AT_FDCWD, dir, 0755, e);
    for (size_t i = 0; r == 0 && json_is(files, JSON_OBJECT) && i < files->object.len; i++) {
        r = put_file(st, dir, &files->object.members[i], e);
    }
    return r;
}

static int commit(const struct stage *st, struct err *e)
{
    static const char *const init[] = { "init", "-q", "-b", "main", ".", NULL };
    static const char *const add[] = { "add", "-A", NULL };
    static const char *const save[] = {
        "-c", "user.name=ack", "-c", "user.email=ack@localhost", "commit", "-q", "--allow-empty",
        "-m", "given",         NULL
    };
    static const char *const *const calls[] = { init, add, save };
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof calls / sizeof *calls; i++) {
        struct git_call c = { .args = calls[i], .cwd = st->workspace };
        r = git_run(&c, e);
    }
    return r;
}

/* --- what is there --- */

static int list_entry(struct buf *out, const FTSENT *f, size_t skip, struct err *e)
{
    const struct stat *st = f->fts_statp;
    char hash[SHA256_HEX] = "";
    if (f->fts_info == FTS_F) {
        CLEANUP(buf) struct buf text = BUF_INIT(STAGE_FILE_MAX);
        int r = file_read(AT_FDCWD, f->fts_accpath, STAGE_FILE_MAX, &text, e);
        if (r < 0) {
            return r;
        }
        sha256_hex(buf_str(&text), hash);
    }
    return buf_printf(out, e, "%s mode %o, %lld bytes %s, changed at %lld.%09ld\n",
                      f->fts_path + skip, st->st_mode, (long long)st->st_size, hash,
                      (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Names, modes, times and bytes of everything that must stay, a line each. */
static int list(const struct stage *st, struct str *ret, struct err *e)
{
    char *const roots[] = { (char *)(uintptr_t)st->workspace, (char *)(uintptr_t)st->outside,
                            NULL };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    if (walk == NULL) {
        return ERR_SYS(e, "cannot walk %s", st->dir);
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    int r = 0;
    FTSENT *f;
    while (r == 0 && (f = fts_read(walk)) != NULL) {
        if (f->fts_info != FTS_DP) {
            r = list_entry(&out, f, strlen(st->dir) + 1, e);
        }
    }
    fts_close(walk);
    *ret = arena_str(st->arena, buf_str(&out));
    return r;
}

int stage_set(struct stage *st, const struct scenario *s, struct err *e)
{
    st->workspace = arena_printf(st->arena, "%s/workspace", st->dir);
    st->outside = arena_printf(st->arena, "%s/outside", st->dir);
    st->home = arena_printf(st->arena, "%s/home", st->dir);
    st->runs = arena_printf(st->arena, "%s/runs", st->dir);
    int r = put_files(st, st->workspace, s->workspace, e);
    r = r < 0 ? r : put_files(st, st->outside, s->outside, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, st->home, 0700, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, st->runs, 0755, e);
    r = r < 0 || !s->git ? r : commit(st, e);
    return r < 0 ? r : list(st, &st->before, e);
}

void stage_inspect(const struct stage *st, struct findings *f)
{
    struct str before = st->before;
    struct str after;
    struct err e = { 0 };
    if (list(st, &after, &e) < 0) {
        finding(f, "what was given cannot be read any more: %s", e.msg);
        return;
    }
    while (before.len > 0 || after.len > 0) {
        struct str was = str_split(&before, '\n');
        struct str is = str_split(&after, '\n');
        if (!str_eq(was, is)) {
            finding(f, "what was given was touched; before: %.*s; after: %.*s", STR_ARG(was),
                    STR_ARG(is));
            break;
        }
    }
    bool empty = true;
    if (file_dir_is_empty(AT_FDCWD, st->home, &empty, &e) < 0 || !empty) {
        finding(f, "something was written into the home of who called cinch: %s", st->home);
    }
}
