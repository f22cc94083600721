/* SPDX-License-Identifier: MIT
 *
 * From the files of one run to rows of the tables in query_schema.h.
 *
 *   query_rows_open(db, &rows, e);
 *   query_rows_add_run(rows, key, dir_fd, "/path/of/the/run", &status, e);
 *   query_rows_add_events(rows, key, dir_fd, &mark, e);       what was added since the last time
 *   query_rows_add_transcript(rows, key, dir_fd, &mark, e);
 *   query_rows_close(rows);
 *
 * What cannot be read becomes a row of `problems`, never a failure: failures are those of the
 * database.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "view/run_files.h"

struct database;
struct query_rows;

/* How far a file of lines was read. A file that is a different one now is read from the start: its
 * earlier rows must be removed first (query_mark_holds()). */
struct query_mark {
    int64_t inode;
    int64_t offset; /* after the last whole line */
    int64_t line;   /* lines before that */
};

/* Whether what was read of this file still stands in it; also if there was and is none. */
bool query_mark_holds(const struct query_mark *m, int dir_fd, const char *name);

int query_rows_open(struct database *db, struct query_rows **ret, struct err *e) MUST_USE;
struct query_rows *query_rows_close(struct query_rows *q);
/* Everything but events and transcript. */
int query_rows_add_run(struct query_rows *q, int64_t run, int dir_fd, const char *path,
                       enum run_status *ret_status, struct err *e) MUST_USE;
int query_rows_add_events(struct query_rows *q, int64_t run, int dir_fd, struct query_mark *mark,
                          struct err *e) MUST_USE;
int query_rows_add_transcript(struct query_rows *q, int64_t run, int dir_fd,
                              struct query_mark *mark, struct err *e) MUST_USE;

static inline void cleanup_query_rows(struct query_rows **q)
{
    *q = query_rows_close(*q);
}
