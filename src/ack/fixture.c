/* SPDX-License-Identifier: MIT
 *
 * Laying out the place of a trial, and looking at it afterwards.
 */
#include "ack/fixture.h"

#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/sha256.h"
#include "workspace/git.h"

enum { STAGE_FILE_MAX = 64 << 20, KEY_LONGEST = 40 };

/* --- placeholders --- */

/* N of "fill:N"; -1: it is no number, or out of bounds. */
static int64_t fill_size(struct str name)
{
    int64_t n = 0;
    bool good = str_to_i64(str_slice(name, 5, name.len), &n) && n >= 1 && n <= STAGE_FILL_MAX;
    return good ? n : -1;
}

static int fill_words(struct buf *out, struct str name, struct err *e)
{
    static const char words[] = "all work and no play ";
    const int64_t whole = sizeof words - 1;
    int64_t n = fill_size(name);
    int r = n < 0 ? ERR(e, ERR_CONFIG, "%%{fill:N} has a number from 1 to %d", STAGE_FILL_MAX) : 0;
    for (; r == 0 && n > 0; n -= whole) {
        r = buf_append(out, str_n(words, (size_t)(n < whole ? n : whole)), e);
    }
    return r;
}

/* The adapter's name as a part of other names, whatever it is ("exec:/x/y"). */
static int fill_key(struct buf *out, const char *name, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && name[i] != '\0' && i < KEY_LONGEST; i++) {
        char c = name[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_';
        r = buf_append_c(out, good ? c : '_', e);
    }
    return r;
}

enum value { VALUE_WORKSPACE, VALUE_OUTSIDE, VALUE_DIR, VALUE_ADAPTER, VALUE_SITE, VALUE_KEY };

static const char *const value_names[] = {
    [VALUE_WORKSPACE] = "workspace", [VALUE_OUTSIDE] = "outside", [VALUE_DIR] = "dir",
    [VALUE_ADAPTER] = "adapter",     [VALUE_SITE] = "site",       [VALUE_KEY] = "key",
};

/* Its number, or how many there are. */
static size_t value_find(struct str name)
{
    size_t i = 0;
    while (i < ARRAY_LEN(value_names) && !str_eqc(name, value_names[i])) {
        i++;
    }
    return i;
}

static const char *value_of(const struct fixture *st, size_t value)
{
    const char *const all[] = {
        [VALUE_WORKSPACE] = st->workspace, [VALUE_OUTSIDE] = st->outside, [VALUE_DIR] = st->dir,
        [VALUE_ADAPTER] = st->adapter,     [VALUE_SITE] = st->site,       [VALUE_KEY] = st->adapter
    };
    return all[value];
}

static int fill_one(const struct fixture *st, struct str name, struct buf *out, struct err *e)
{
    if (str_starts(name, STR("fill:"))) {
        return fill_words(out, name, e);
    }
    size_t value = value_find(name);
    if (value == ARRAY_LEN(value_names)) {
        return buf_printf(out, e, "%%{%.*s}", STR_ARG(name));
    }
    return value == VALUE_KEY ? fill_key(out, st->adapter, e)
                              : buf_append(out, str_of(value_of(st, value)), e);
}

/* Takes what stands before the next placeholder off the text, and then the placeholder; false:
 * there is no more, and all of the text is `before`. */
static bool next_placeholder(struct str *text, struct str *before, struct str *name)
{
    size_t at = str_find(*text, STR("%{"));
    struct str rest = str_slice(*text, at, text->len);
    size_t end = str_find(rest, STR("}"));
    bool found = end < rest.len;
    *before = found ? str_slice(*text, 0, at) : *text;
    *name = found ? str_slice(rest, 2, end) : STR_EMPTY;
    *text = found ? str_slice(rest, end + 1, rest.len) : STR_EMPTY;
    return found;
}

int64_t fixture_fill_cost(struct str text)
{
    struct str before, name;
    int64_t sum = 0;
    while (next_placeholder(&text, &before, &name)) {
        bool fill = str_starts(name, STR("fill:"));
        int64_t n = fill ? fill_size(name) : STAGE_VALUE_MAX;
        if (n < 0) {
            return -1;
        }
        sum += fill || value_find(name) < ARRAY_LEN(value_names) ? n : 0;
    }
    return sum;
}

static int fill_text(const struct fixture *st, struct str s, struct str *ret, struct err *e)
{
    *ret = s;
    if (str_find(s, STR("%{")) == s.len) {
        return 0;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct str before, name;
    int r = 0;
    bool more = true;
    while (r == 0 && more) {
        more = next_placeholder(&s, &before, &name);
        r = buf_append(&out, before, e);
        r = r < 0 || !more ? r : fill_one(st, name, &out, e);
    }
    if (r == 0) {
        *ret = arena_str(st->arena, buf_str(&out));
    }
    return r;
}

/* The same where nobody could be told: what cannot be filled in stays. */
static struct str fill_or_leave(const struct fixture *st, struct str s)
{
    struct str filled;
    return fill_text(st, s, &filled, NULL) < 0 ? s : filled;
}

/* Recursion is bounded by the depth limit of the parser. */
struct json *fixture_fill(const struct fixture *st, const struct json *v)
{
    struct arena *a = st->arena;
    if (v == NULL) {
        return NULL;
    }
    if (v->type == JSON_STRING) {
        return json_string(a, fill_or_leave(st, v->string));
    }
    if (v->type == JSON_ARRAY) {
        struct json *list = json_array(a);
        for (size_t i = 0; i < v->array.len; i++) {
            json_push(a, list, fixture_fill(st, v->array.items[i]));
        }
        return list;
    }
    if (v->type == JSON_OBJECT) {
        struct json *map = json_object(a);
        for (size_t i = 0; i < v->object.len; i++) {
            const struct json_member *m = &v->object.members[i];
            json_set(a, map, fill_or_leave(st, m->key), fixture_fill(st, m->value));
        }
        return map;
    }
    return json_copy(a, v);
}

/* --- laying out --- */

static int put_file(const struct fixture *st, const char *dir, const struct json_member *m,
                    struct err *e)
{
    struct str name, text;
    int r = fill_text(st, m->key, &name, e);
    r = r < 0 ? r : fill_text(st, json_str(m->value, STR_EMPTY), &text, e);
    if (r == 0 && !check_leads_down(name)) {
        r = ERR(e, ERR_CONFIG, "'%.*s' became '%.*s': " CHECK_LEADS_DOWN, STR_ARG(m->key),
                STR_ARG(name));
    }
    if (r < 0) {
        return r;
    }
    const char *path = arena_printf(st->arena, "%s/%.*s", dir, STR_ARG(name));
    char *parent = arena_dup(st->arena, str_of(path));
    char *slash = strrchr(parent, '/');
    *slash = '\0';
    r = file_mkdirs(AT_FDCWD, parent, 0755, e);
    return r < 0 ? r : file_write_atomic(AT_FDCWD, path, text, 0644, e);
}

static int put_files(const struct fixture *st, const char *dir, const struct json *files,
                     struct err *e)
{
    int r = file_mkdirs(AT_FDCWD, dir, 0755, e);
    for (size_t i = 0; r == 0 && json_is(files, JSON_OBJECT) && i < files->object.len; i++) {
        r = put_file(st, dir, &files->object.members[i], e);
    }
    return r;
}

static int commit(const struct fixture *st, struct err *e)
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
static int list(const struct fixture *st, struct str *ret, struct err *e)
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

/* The bound of what is filled in counts on it. */
static int check_values(const struct fixture *st, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(value_names); i++) {
        if (strlen(value_of(st, i)) > STAGE_VALUE_MAX) {
            return ERR(e, ERR_LIMIT, "%%{%s} has more than %d bytes", value_names[i],
                       STAGE_VALUE_MAX);
        }
    }
    return 0;
}

int fixture_set(struct fixture *st, const struct scenario *s, struct err *e)
{
    st->workspace = arena_printf(st->arena, "%s/workspace", st->dir);
    st->outside = arena_printf(st->arena, "%s/outside", st->dir);
    st->home = arena_printf(st->arena, "%s/home", st->dir);
    st->runs = arena_printf(st->arena, "%s/runs", st->dir);
    int r = check_values(st, e);
    r = r < 0 ? r : put_files(st, st->workspace, s->workspace, e);
    r = r < 0 ? r : put_files(st, st->outside, s->outside, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, st->home, 0700, e);
    r = r < 0 ? r : file_mkdirs(AT_FDCWD, st->runs, 0755, e);
    r = r < 0 || !s->git ? r : commit(st, e);
    return r < 0 ? r : list(st, &st->before, e);
}

void fixture_inspect(const struct fixture *st, struct findings *f)
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
