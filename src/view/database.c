/* SPDX-License-Identifier: MIT
 *
 * SQLite, loaded at run time; see database.h.
 */
#include "view/database.h"

#include <dlfcn.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define SQLITE_LIBRARY "libsqlite3.so.0"

/* Another cinch may be writing the same index. */
enum { BUSY_MS = 60000 };
/* A statement of a user: a page of SQL, and nothing that exhausts the stack of the parser. */
enum { SQL_MAX = 1 << 20 };

#define SQLITE_CALLS(X) \
    X(open_v2)          \
    X(close_v2)         \
    X(exec)             \
    X(prepare_v2)       \
    X(step)             \
    X(reset)            \
    X(finalize)         \
    X(clear_bindings)   \
    X(bind_int64)       \
    X(bind_double)      \
    X(bind_text)        \
    X(bind_blob)        \
    X(bind_null)        \
    X(column_count)     \
    X(column_name)      \
    X(column_type)      \
    X(column_int64)     \
    X(column_double)    \
    X(column_blob)      \
    X(column_bytes)     \
    X(errmsg)           \
    X(errstr)           \
    X(errcode)          \
    X(busy_timeout)     \
    X(set_authorizer)   \
    X(limit)            \
    X(db_config)

struct sqlite_calls {
#define X(call) typeof(sqlite3_##call) *call;
    SQLITE_CALLS(X)
#undef X
};

struct database {
    struct sqlite_calls lib;
    sqlite3 *handle;
    enum database_mode mode;
    bool denied; /* by the authorizer, since the last statement was prepared */
};

struct statement {
    struct database *database;
    sqlite3_stmt *handle;
};

/* --- errors --- */

static enum err_code code_of(int result)
{
    switch (result & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return ERR_PARSE;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return ERR_OUTPUT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_UNAVAILABLE;
    case SQLITE_ERROR:
    case SQLITE_AUTH:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
        return ERR_USAGE;
    default:
        return ERR_BUG;
    }
}

static int fail(struct database *d, int result, struct err *e)
{
    if (d->denied) {
        d->denied = false;
        return ERR(e, ERR_USAGE, "a query may only read: use SELECT");
    }
    return ERR(e, code_of(result), "%s",
               d->handle == NULL ? d->lib.errstr(result) : d->lib.errmsg(d->handle));
}

/* --- opening --- */

static int load_library(struct sqlite_calls *ret, struct err *e)
{
    void *library = dlopen(SQLITE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return ERR(e, ERR_UNAVAILABLE, "queries need SQLite: %s; install libsqlite3", dlerror());
    }
#define X(call)                                                                                \
    *(void **)&ret->call = dlsym(library, "sqlite3_" #call);                                   \
    if (ret->call == NULL) {                                                                   \
        return ERR(e, ERR_UNAVAILABLE, SQLITE_LIBRARY " has no sqlite3_" #call "; update it"); \
    }
    SQLITE_CALLS(X)
#undef X
    return 0;
}

static int allow_reading(void *arg, int action, const char *one, const char *two,
                         const char *database, const char *trigger)
{
    struct database *d = arg;
    (void)database;
    (void)trigger;
    bool loads = action == SQLITE_FUNCTION && two != NULL &&
                 (strcasecmp(two, "load_extension") == 0 || strcasecmp(two, "fts3_tokenizer") == 0);
    bool reads = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ||
                 action == SQLITE_RECURSIVE;
    /* What SQLite itself does when it opens a full-text table; the schema cannot be written in this
     * mode, whatever is allowed here. */
    bool opens = (action == SQLITE_PRAGMA && strcmp(one, "data_version") == 0) ||
                 (action == SQLITE_UPDATE && strcmp(one, "sqlite_master") == 0);
    if ((reads && !loads) || opens) {
        return SQLITE_OK;
    }
    d->denied = true;
    return SQLITE_DENY;
}

static void restrict_reader(struct database *d)
{
    (void)d->lib.limit(d->handle, SQLITE_LIMIT_ATTACHED, 0);
    (void)d->lib.limit(d->handle, SQLITE_LIMIT_SQL_LENGTH, SQL_MAX);
    (void)d->lib.db_config(d->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    (void)d->lib.set_authorizer(d->handle, allow_reading, d);
}

int database_open(const char *path, enum database_mode mode, struct database **ret, struct err *e)
{
    CLEANUP(database) struct database *d = xcalloc(1, sizeof *d);
    d->mode = mode;
    int r = load_library(&d->lib, e);
    if (r < 0) {
        return r;
    }
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW;
    flags |=
        mode == DATABASE_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int result = d->lib.open_v2(path, &d->handle, flags, NULL);
    if (result != SQLITE_OK) {
        (void)fail(d, result, e);
        return err_wrap(e, "cannot open '%s'", path);
    }
    (void)d->lib.busy_timeout(d->handle, BUSY_MS);
    if (mode == DATABASE_READ) {
        restrict_reader(d);
    }
    *ret = TAKE_PTR(d);
    return 0;
}

struct database *database_close(struct database *d)
{
    if (d != NULL) {
        if (d->handle != NULL) {
            (void)d->lib.close_v2(d->handle);
        }
        free(d);
    }
    return NULL;
}

int database_execute(struct database *d, const char *sql, struct err *e)
{
    int result = d->lib.exec(d->handle, sql, NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : fail(d, result, e);
}

int database_prepare(struct database *d, struct str sql, struct statement **ret,
                     struct str *ret_rest, struct err *e)
{
    const char *rest = NULL;
    sqlite3_stmt *handle = NULL;
    *ret = NULL;
    d->denied = false;
    if (sql.len > INT_MAX) {
        return ERR(e, ERR_USAGE, "the query is too long");
    }
    int result = d->lib.prepare_v2(d->handle, sql.ptr, (int)sql.len, &handle, &rest);
    if (result != SQLITE_OK) {
        return fail(d, result, e);
    }
    if (ret_rest != NULL) {
        *ret_rest = str_slice(sql, (size_t)(rest - sql.ptr), sql.len);
    }
    if (handle != NULL) {
        *ret = xmalloc(sizeof **ret);
        **ret = (struct statement) { d, handle };
    }
    return 0;
}

/* --- statements --- */

struct statement *statement_free(struct statement *s)
{
    if (s != NULL) {
        (void)s->database->lib.finalize(s->handle);
        free(s);
    }
    return NULL;
}

void statement_set_null(struct statement *s, int i)
{
    (void)s->database->lib.bind_null(s->handle, i);
}

void statement_set_int(struct statement *s, int i, int64_t value)
{
    (void)s->database->lib.bind_int64(s->handle, i, value);
}

void statement_set_real(struct statement *s, int i, double value)
{
    (void)s->database->lib.bind_double(s->handle, i, value);
}

static int bound_len(struct str value)
{
    return value.len > INT_MAX ? INT_MAX : (int)value.len;
}

void statement_set_text(struct statement *s, int i, struct str value)
{
    const struct sqlite_calls *lib = &s->database->lib;
    (void)lib->bind_text(s->handle, i, value.ptr, bound_len(value), SQLITE_STATIC);
}

void statement_set_bytes(struct statement *s, int i, struct str value)
{
    const struct sqlite_calls *lib = &s->database->lib;
    if (str_is_utf8(value)) {
        statement_set_text(s, i, value);
    } else {
        (void)lib->bind_blob(s->handle, i, value.ptr, bound_len(value), SQLITE_STATIC);
    }
}

int statement_next(struct statement *s, struct err *e)
{
    struct database *d = s->database;
    int result = d->lib.step(s->handle);
    return result == SQLITE_ROW ? 1 : result == SQLITE_DONE ? 0 : fail(d, result, e);
}

int statement_insert(struct statement *s, struct err *e)
{
    const struct sqlite_calls *lib = &s->database->lib;
    int r = statement_next(s, e);
    (void)lib->reset(s->handle);
    (void)lib->clear_bindings(s->handle);
    return r < 0 ? r : 0;
}

int statement_columns(const struct statement *s)
{
    return s->database->lib.column_count(s->handle);
}

const char *statement_name(const struct statement *s, int column)
{
    return s->database->lib.column_name(s->handle, column);
}

enum column_type statement_type(const struct statement *s, int column)
{
    switch (s->database->lib.column_type(s->handle, column)) {
    case SQLITE_INTEGER:
        return COLUMN_INT;
    case SQLITE_FLOAT:
        return COLUMN_REAL;
    case SQLITE_TEXT:
        return COLUMN_TEXT;
    case SQLITE_BLOB:
        return COLUMN_BLOB;
    default:
        return COLUMN_NULL;
    }
}

int64_t statement_int(const struct statement *s, int column)
{
    return s->database->lib.column_int64(s->handle, column);
}

double statement_real(const struct statement *s, int column)
{
    return s->database->lib.column_double(s->handle, column);
}

struct str statement_text(const struct statement *s, int column)
{
    const struct sqlite_calls *lib = &s->database->lib;
    /* In this order: column_bytes() is the length of what column_blob() made. */
    const void *ptr = lib->column_blob(s->handle, column);
    int len = lib->column_bytes(s->handle, column);
    return ptr == NULL ? STR_EMPTY : str_n(ptr, (size_t)len);
}
