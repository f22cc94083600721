/* SPDX-License-Identifier: MIT
 *
 * The formats in which a task can be given: a task file of cinch, or what other projects have. Each
 * format is one row of the table in task_format.c:
 *
 *   recognise  does this file or directory have the format? Looks at names and keys only, so that a
 *              mistake inside is reported as a mistake in that format.
 *   load       turns it into the tree of a task file (docs/task.md). Values keep the positions that
 *              they have in the source, so that later messages name the right line.
 *
 * The first row that recognises the source loads it. A file that no row recognises is a task file
 * of cinch; a directory that no row recognises is not a task.
 *
 * To add a format, write recognise and load in a module of their own and add a row.
 */
#pragma once

#include "base/json.h"

/* What the user named. */
struct task_source {
    const char *path;
    bool is_dir;
    struct json *tree; /* content of the file; NULL for a directory */
};

struct task_format {
    const char *name; /* "holon" */
    bool (*recognise)(const struct task_source *src);
    /* `notes` is a list that collects warnings for the user. ERR_CONFIG for a mistake in the
     * source, ERR_INPUT for a file that it names and that is missing. */
    int (*load)(struct arena *a, const struct task_source *src, struct json *notes,
                struct json **ret, struct err *e);
};

struct task_loaded {
    struct json *tree;
    const char *dir;    /* relative paths of the tree start here */
    const char *format; /* name of the row; NULL: a task file of cinch */
    struct json *notes; /* warnings; never NULL */
};

/* Reads the file or directory and converts it. `limits` may be NULL. */
int task_load(struct arena *a, const char *path, const struct json_limits *limits,
              struct task_loaded *ret, struct err *e) MUST_USE;

/* Is this a directory that one of the formats recognises? */
bool task_is_directory(const char *path);
