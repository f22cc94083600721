/* SPDX-License-Identifier: MIT
 *
 * The tables, views and named queries of `cinch query`. One description of each table gives its
 * SQL, its INSERT and what `cinch query --schema` prints.
 */
#pragma once

#include "base/buf.h"

/* Changes with every change of a table: an index of another version is made anew. */
enum { QUERY_SCHEMA_VERSION = 1 };

enum query_table_id {
    QUERY_RUNS,
    QUERY_EVENTS,
    QUERY_TRANSCRIPT,
    QUERY_TOOL_CALLS,
    QUERY_MODEL_CALLS,
    QUERY_CHANGES,
    QUERY_FILES,
    QUERY_METRICS,
    QUERY_WARNINGS,
    QUERY_PROBLEMS,
    QUERY_TABLES_MAX
};

struct query_column {
    const char *name; /* NULL ends a list */
    const char *type; /* INTEGER, REAL, TEXT */
    const char *help;
};

struct query_table {
    const char *name;
    const char *help;
    const struct query_column *columns; /* the first is the key of the run, except in `runs` */
};

struct query_view {
    const char *name; /* NULL ends the list */
    const char *help;
    const char *sql;
};

struct query_named {
    const char *name; /* NULL ends the list */
    const char *help;
    const char *sql;
};

extern const struct query_table query_tables[QUERY_TABLES_MAX];
extern const struct query_view query_views[];
extern const struct query_named query_named_list[];

/* The name of the full-text table, which is made when a query first mentions it. */
#define QUERY_FULL_TEXT "transcript_fts"

size_t query_table_width(const struct query_table *t); /* columns */
/* CREATE TABLE …, CREATE INDEX …, CREATE VIEW … of everything. */
void query_schema_create(struct buf *out);
void query_schema_insert(const struct query_table *t, struct buf *out);
const struct query_named *query_named_find(const char *name);
