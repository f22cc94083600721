/* SPDX-License-Identifier: MIT
 *
 * struct database: an SQLite file, for the index of `cinch query`. SQLite is loaded when the first
 * database is opened: no other command needs it.
 *
 *   database_open("index.sqlite", DATABASE_UPDATE, &db, e);
 *   database_execute(db, "CREATE TABLE t (a, b)", e);
 *   database_prepare(db, STR("INSERT INTO t VALUES (?, ?)"), &st, NULL, e);
 *   statement_set_int(st, 1, 3);
 *   statement_set_text(st, 2, STR("three"));
 *   statement_insert(st, e);
 *
 * Parameters are numbered from 1 and columns from 0, as in SQLite. Text that is bound must stay as
 * it is until the statement was executed.
 *
 * A database that was opened with DATABASE_READ executes nothing that could write, attach another
 * file, load code or change a setting: its SQL may come from anybody.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct database;
struct statement;

enum database_mode {
    DATABASE_UPDATE, /* made if it does not exist */
    DATABASE_READ,
};

/* ERR_UNAVAILABLE without SQLite; ERR_PARSE if the file is no database or damaged, then and later;
 * ERR_OUTPUT if there is no room. */
int database_open(const char *path, enum database_mode mode, struct database **ret,
                  struct err *e) MUST_USE;
struct database *database_close(struct database *d); /* accepts NULL, returns NULL */
/* Any number of statements without results. */
int database_execute(struct database *d, const char *sql, struct err *e) MUST_USE;
/* The first statement of `sql`; *ret_rest is what follows it (may be NULL). *ret is NULL if there
 * is only white space or a comment. ERR_USAGE if it cannot be understood or is not allowed. */
int database_prepare(struct database *d, struct str sql, struct statement **ret,
                     struct str *ret_rest, struct err *e) MUST_USE;

struct statement *statement_free(struct statement *s); /* accepts NULL, returns NULL */
void statement_set_null(struct statement *s, int i);
void statement_set_int(struct statement *s, int i, int64_t value);
void statement_set_real(struct statement *s, int i, double value);
/* Must be UTF-8, as everything is that came from JSON. A text without a pointer is NULL. */
void statement_set_text(struct statement *s, int i, struct str value);
/* A text, or a blob where it is not UTF-8. */
void statement_set_bytes(struct statement *s, int i, struct str value);
/* 1: there is a row; 0: there are no more; negative: failed. */
int statement_next(struct statement *s, struct err *e) MUST_USE;
/* Executes it to the end and makes it ready for the next values; all parameters are NULL again. */
int statement_insert(struct statement *s, struct err *e) MUST_USE;

enum column_type { COLUMN_NULL, COLUMN_INT, COLUMN_REAL, COLUMN_TEXT, COLUMN_BLOB };

int statement_columns(const struct statement *s);
const char *statement_name(const struct statement *s, int column);
enum column_type statement_type(const struct statement *s, int column);
int64_t statement_int(const struct statement *s, int column);
double statement_real(const struct statement *s, int column);
/* Valid until the next call for this statement. */
struct str statement_text(const struct statement *s, int column);

static inline void cleanup_database(struct database **d)
{
    *d = database_close(*d);
}
static inline void cleanup_statement(struct statement **s)
{
    *s = statement_free(*s);
}
