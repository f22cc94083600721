/* SPDX-License-Identifier: MIT
 *
 * Bringing an index up to date; see query_index.h. The table `sources` has what was read of each
 * run: a signature of its files, and how far its files of lines were read.
 */
#include "view/query_index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/sha256.h"
#include "view/database.h"
#include "view/query_rows.h"
#include "view/query_schema.h"

#define SUFFIX ".sqlite"
/* Of the cache. */
#define KEEP_BYTES (INT64_C(2) << 30)
#define KEEP_NSEC  (INT64_C(30) * 24 * 3600 * NSEC_PER_SEC)

/* Files whose change means that a run has changed. */
static const char *const watched[] = { "state.json",   "manifest.json",   "metrics.json",
                                       "result.json",  "task.json",       "diff.patch",
                                       "events.jsonl", "transcript.jsonl" };

static const char sources_sql[] =
    "CREATE TABLE sources (run INTEGER PRIMARY KEY, path TEXT UNIQUE, signature TEXT,"
    " events_inode INTEGER, events_offset INTEGER, events_line INTEGER,"
    " transcript_inode INTEGER, transcript_offset INTEGER, transcript_line INTEGER);"
    "CREATE TABLE full_text (last INTEGER);"
    "INSERT INTO full_text VALUES (NULL);";

struct source {
    int64_t run; /* 0: not in the index */
    char signature[SHA256_HEX];
    struct query_mark events, transcript;
};

struct index {
    struct database *db;
    struct query_rows *rows;
    struct statement *find, *store;
    size_t missing; /* runs that could not be opened */
};

/* --- the database --- */

static int read_number(struct database *db, const char *sql, int64_t *ret, struct err *e)
{
    CLEANUP(statement) struct statement *s = NULL;
    int r = database_prepare(db, str_of(sql), &s, NULL, e);
    r = r < 0 ? r : statement_next(s, e);
    *ret = r == 1 ? statement_int(s, 0) : 0;
    return r < 0 ? r : 0;
}

/* Within one transaction, so that of two programs that begin at once one makes the tables. */
static int make_tables(struct database *db, struct err *e)
{
    int64_t version;
    CLEANUP(buf) struct buf sql = BUF_INIT(BUF_TEXT);
    int r = database_execute(db,
                             "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL;"
                             "PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 4096;"
                             "PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;"
                             "BEGIN IMMEDIATE",
                             e);
    r = r < 0 ? r : read_number(db, "PRAGMA user_version", &version, e);
    if (r < 0) {
        return r;
    }
    if (version != 0 && version != QUERY_SCHEMA_VERSION) {
        return ERR(e, ERR_PARSE, "the index is of version %lld", (long long)version);
    }
    if (version == 0) {
        query_schema_create(&sql);
        buf_adds(&sql, sources_sql);
        buf_addf(&sql, "PRAGMA user_version = %d;", QUERY_SCHEMA_VERSION);
    }
    buf_adds(&sql, "COMMIT");
    return database_execute(db, sql.ptr, e);
}

static void index_close(struct index *x)
{
    x->rows = query_rows_close(x->rows);
    x->find = statement_free(x->find);
    x->store = statement_free(x->store);
    x->db = database_close(x->db);
}

static void cleanup_index(struct index *x)
{
    index_close(x);
}

/* Under a lock of the cache: SQLite does not wait for another process that is just making the same
 * database. */
static int index_open(const char *path, int cache_fd, struct index *x, struct err *e)
{
    static const char find[] = "SELECT run, signature, events_inode, events_offset, events_line,"
                               " transcript_inode, transcript_offset, transcript_line"
                               " FROM sources WHERE path = ?";
    static const char store[] =
        "INSERT OR REPLACE INTO sources (run, path, signature, events_inode, events_offset,"
        " events_line, transcript_inode, transcript_offset, transcript_line)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    (void)!flock(cache_fd, LOCK_EX);
    int r = database_open(path, DATABASE_UPDATE, &x->db, e);
    r = r < 0 ? r : make_tables(x->db, e);
    (void)!flock(cache_fd, LOCK_UN);
    r = r < 0 ? r : database_prepare(x->db, STR(find), &x->find, NULL, e);
    r = r < 0 ? r : database_prepare(x->db, STR(store), &x->store, NULL, e);
    return r < 0 ? r : query_rows_open(x->db, &x->rows, e);
}

/* --- one run --- */

static int find_source(struct index *x, const char *path, struct source *ret, struct err *e)
{
    struct statement *s = x->find;
    *ret = (struct source) { 0 };
    statement_set_bytes(s, 1, str_of(path));
    int r = statement_next(s, e);
    if (r == 1) {
        struct str signature = statement_text(s, 1);
        ret->run = statement_int(s, 0);
        (void)snprintf(ret->signature, sizeof ret->signature, "%.*s", STR_ARG(signature));
        ret->events =
            (struct query_mark) { statement_int(s, 2), statement_int(s, 3), statement_int(s, 4) };
        ret->transcript =
            (struct query_mark) { statement_int(s, 5), statement_int(s, 6), statement_int(s, 7) };
    }
    int end = r == 1 ? statement_insert(s, e) : 0;
    return r < 0 ? r : end;
}

static int store_source(struct index *x, const char *path, const struct source *o, struct err *e)
{
    const int64_t numbers[] = { o->events.inode,     o->events.offset,     o->events.line,
                                o->transcript.inode, o->transcript.offset, o->transcript.line };
    statement_set_int(x->store, 1, o->run);
    statement_set_bytes(x->store, 2, str_of(path));
    statement_set_text(x->store, 3, str_of(o->signature));
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        statement_set_int(x->store, (int)i + 4, numbers[i]);
    }
    return statement_insert(x->store, e);
}

static void sign_files(int dir_fd, char ret[SHA256_HEX])
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
        struct stat st;
        if (fstatat(dir_fd, watched[i], &st, AT_SYMLINK_NOFOLLOW) != 0) {
            st = (struct stat) { 0 };
        }
        buf_addf(&text, "%llu %lld %lld.%09ld\n", (unsigned long long)st.st_ino,
                 (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    }
    sha256_hex(buf_str(&text), ret);
}

/* Rows of one run that are written anew at each update. */
static int remove_summary(struct index *x, int64_t run, struct err *e)
{
    char sql[400];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM runs WHERE run = %1$lld; DELETE FROM changes WHERE run = %1$lld;"
                   "DELETE FROM files WHERE run = %1$lld; DELETE FROM metrics WHERE run = %1$lld;"
                   "DELETE FROM warnings WHERE run = %1$lld;"
                   "DELETE FROM problems WHERE run = %1$lld AND line IS NULL",
                   (long long)run);
    return database_execute(x->db, sql, e);
}

static int remove_lines(struct index *x, int64_t run, struct err *e)
{
    char sql[500];
    int64_t last;
    int r = read_number(x->db, "SELECT last FROM full_text", &last, e);
    if (r == 0 && last > 0) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO " QUERY_FULL_TEXT " (" QUERY_FULL_TEXT ", rowid, content)"
                       " SELECT 'delete', rowid, content FROM transcript"
                       " WHERE run = %lld AND rowid <= %lld",
                       (long long)run, (long long)last);
        r = database_execute(x->db, sql, e);
    }
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM events WHERE run = %1$lld;"
                   "DELETE FROM transcript WHERE run = %1$lld;"
                   "DELETE FROM tool_calls WHERE run = %1$lld;"
                   "DELETE FROM model_calls WHERE run = %1$lld;"
                   "DELETE FROM problems WHERE run = %1$lld",
                   (long long)run);
    return r < 0 ? r : database_execute(x->db, sql, e);
}

static int write_run(struct index *x, const char *path, int dir_fd, struct source *o, struct err *e)
{
    enum run_status status = RUN_STATUS_UNKNOWN;
    int r = 0;
    if (o->run == 0) {
        r = read_number(x->db, "SELECT coalesce(max(run), 0) + 1 FROM sources", &o->run, e);
    } else {
        r = remove_summary(x, o->run, e);
        if (r == 0 && (!query_mark_holds(&o->events, dir_fd, "events.jsonl") ||
                       !query_mark_holds(&o->transcript, dir_fd, "transcript.jsonl"))) {
            r = remove_lines(x, o->run, e);
            o->events = o->transcript = (struct query_mark) { 0 };
        }
    }
    r = r < 0 ? r : query_rows_add_run(x->rows, o->run, dir_fd, path, &status, e);
    r = r < 0 ? r : query_rows_add_events(x->rows, o->run, dir_fd, &o->events, e);
    r = r < 0 ? r : query_rows_add_transcript(x->rows, o->run, dir_fd, &o->transcript, e);
    if (r == 0 && status == RUN_STATUS_RUNNING) {
        o->signature[0] = '\0'; /* its end may change no file */
    }
    return r < 0 ? r : store_source(x, path, o, e);
}

static int update_run(struct index *x, const char *path, struct err *e)
{
    struct source o;
    char signature[SHA256_HEX];
    CLEANUP(fd) int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        x->missing++;
        return 0;
    }
    sign_files(dir_fd, signature);
    int r = find_source(x, path, &o, e);
    if (r < 0 || strcmp(o.signature, signature) == 0) {
        return r;
    }
    r = database_execute(x->db, "BEGIN IMMEDIATE", e);
    r = r < 0 ? r : find_source(x, path, &o, e); /* another cinch may have done it */
    if (r < 0) {
        return r;
    }
    memcpy(o.signature, signature, sizeof signature);
    r = write_run(x, path, dir_fd, &o, e);
    return r < 0 ? r : database_execute(x->db, "COMMIT", e);
}

/* --- runs that are gone --- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int remove_run(struct index *x, int64_t run, struct err *e)
{
    char sql[80];
    (void)snprintf(sql, sizeof sql, "DELETE FROM sources WHERE run = %lld; COMMIT", (long long)run);
    int r = database_execute(x->db, "BEGIN IMMEDIATE", e);
    r = r < 0 ? r : remove_summary(x, run, e);
    r = r < 0 ? r : remove_lines(x, run, e);
    return r < 0 ? r : database_execute(x->db, sql, e);
}

static int remove_others(struct index *x, const struct query_selection *s, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(statement) struct statement *all = NULL;
    const char **sorted = arena_array(a, s->count + 1, sizeof *sorted);
    size_t gone = 0;
    int64_t known;
    int r = read_number(x->db, "SELECT count(*) FROM sources", &known, e);
    if (r < 0 || (size_t)known <= s->count - x->missing) {
        return r; /* every run of the selection is there, so no other can be */
    }
    int64_t *runs = arena_array(a, (size_t)known, sizeof *runs);
    memcpy(sorted, s->runs, s->count * sizeof *sorted);
    qsort(sorted, s->count, sizeof *sorted, by_text);
    r = database_prepare(x->db, STR("SELECT run, path FROM sources"), &all, NULL, e);
    r = r < 0 ? r : statement_next(all, e);
    for (; r == 1; r = statement_next(all, e)) {
        const char *path = arena_dup(a, statement_text(all, 1));
        bool wanted = bsearch(&path, sorted, s->count, sizeof *sorted, by_text) != NULL;
        if ((!wanted || !file_is_dir(AT_FDCWD, path)) && gone < (size_t)known) {
            runs[gone++] = statement_int(all, 0);
        }
    }
    all = statement_free(all);
    for (size_t i = 0; r == 0 && i < gone; i++) {
        r = remove_run(x, runs[i], e);
    }
    return r;
}

/* --- full text --- */

static int update_full_text(struct database *db, struct err *e)
{
    return database_execute(
        db,
        "BEGIN IMMEDIATE;"
        "CREATE VIRTUAL TABLE IF NOT EXISTS " QUERY_FULL_TEXT
        " USING fts5(content, content='transcript', content_rowid='rowid');"
        "INSERT INTO " QUERY_FULL_TEXT " (rowid, content) SELECT rowid, content FROM transcript"
        " WHERE rowid > coalesce((SELECT last FROM full_text), 0);"
        "UPDATE full_text SET last = (SELECT coalesce(max(rowid), 0) FROM transcript);"
        "COMMIT",
        e);
}

/* --- the cache --- */

const char *query_cache_dir(struct arena *a)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (cache != NULL && cache[0] == '/') {
        return arena_printf(a, "%s/cinch/query", cache);
    }
    return home == NULL || home[0] != '/' ? NULL : arena_printf(a, "%s/.cache/cinch/query", home);
}

static void remove_index(int dir_fd, const char *name)
{
    static const char *const parts[] = { "", "-wal", "-shm" };
    char part[NAME_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        (void)snprintf(part, sizeof part, "%.200s%s", name, parts[i]);
        (void)unlinkat(dir_fd, part, 0);
    }
}

struct cached {
    const char *name;
    int64_t size, used;
};

static int by_use(const void *a, const void *b)
{
    const struct cached *x = a;
    const struct cached *y = b;
    return (y->used > x->used) - (y->used < x->used);
}

enum { CACHED_MAX = 4096 };

static size_t list_cache(DIR *d, struct cached *list, struct arena *a)
{
    size_t n = 0;
    for (const struct dirent *i = readdir(d); i != NULL && n < CACHED_MAX; i = readdir(d)) {
        struct stat st;
        if (str_ends(str_of(i->d_name), STR(SUFFIX)) &&
            fstatat(dirfd(d), i->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            list[n++] = (struct cached) { arena_dup(a, str_of(i->d_name)), (int64_t)st.st_size,
                                          st.st_mtim.tv_sec * NSEC_PER_SEC };
        }
    }
    qsort(list, n, sizeof *list, by_use);
    return n;
}

/* Never the one that is in use now. */
static void prune_cache(const char *dir, const char *current)
{
    CLEANUP(arena) struct arena *a = arena_new();
    DIR *d = opendir(dir);
    if (d == NULL) {
        return;
    }
    struct cached *list = arena_array(a, CACHED_MAX, sizeof *list);
    size_t n = list_cache(d, list, a);
    int64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += list[i].size;
        bool old = clock_wall() - list[i].used > KEEP_NSEC || total > KEEP_BYTES;
        if (old && strcmp(list[i].name, current) != 0) {
            remove_index(dirfd(d), list[i].name);
        }
    }
    (void)closedir(d);
}

/* --- --- */

static int update_index(const char *path, int cache_fd, const struct query_selection *s,
                        bool full_text, struct err *e)
{
    CLEANUP(index) struct index x = { 0 };
    int r = index_open(path, cache_fd, &x, e);
    for (size_t i = 0; r == 0 && i < s->count; i++) {
        r = update_run(&x, s->runs[i], e);
    }
    r = r < 0 ? r : remove_others(&x, s, e);
    return r == 0 && full_text ? update_full_text(x.db, e) : r;
}

int query_index_open(const char *cache_dir, const struct query_selection *selection, bool full_text,
                     struct database **ret, struct err *e)
{
    char hash[SHA256_HEX];
    char name[SHA256_HEX + sizeof SUFFIX];
    char path[PATH_MAX];
    sha256_hex(str_of(selection->key), hash);
    (void)snprintf(name, sizeof name, "%s%s", hash, SUFFIX);
    int r = file_mkdirs(AT_FDCWD, cache_dir, 0700, e);
    r = r < 0 ? r : path_join(cache_dir, name, path, sizeof path, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd) int cache_fd = open(cache_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache_fd < 0) {
        return ERR_SYS_AS(e, ERR_OUTPUT, "open '%s'", cache_dir);
    }
    r = update_index(path, cache_fd, selection, full_text, e);
    if (r == -ERR_PARSE) {
        remove_index(AT_FDCWD, path);
        r = update_index(path, cache_fd, selection, full_text, e);
    }
    if (r == 0) {
        (void)utimensat(AT_FDCWD, path, NULL, 0);
        prune_cache(cache_dir, name);
        r = database_open(path, DATABASE_READ, ret, e);
    }
    return r < 0 ? err_wrap(e, "index '%s'", path) : 0;
}
