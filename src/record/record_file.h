/* SPDX-License-Identifier: MIT
 *
 * The files of a run directory, one row each: path, schema, form, what recovery does about it, and
 * for the final files the function that makes them. The directory is created, closed, recovered,
 * reclaimed and validated (tests/schema/validate.py) from this table.
 *
 * To add one: CONTRIBUTING.md, "A record file".
 */
#pragma once

#include <stdbool.h>

struct arena;
struct json;
struct redactor;
struct rundir;
struct summary;

enum record_form {
    RECORD_TEXT,  /* any bytes */
    RECORD_JSON,  /* one value, replaced as a whole */
    RECORD_LINES, /* one JSON object in each line, only grows */
};

/* What happens to the file when the record of a dead run is closed (record/recover.h). */
enum record_recovery {
    RECORD_KEEP,      /* nothing */
    RECORD_REPAIR,    /* damaged and torn lines are removed */
    RECORD_REWRITE,   /* a final file: view() makes it again */
    RECORD_WRITE_END, /* state.json: written when everything else is */
    RECORD_SET_ASIDE, /* cannot be made again: renamed to NAME.damaged if it is not valid JSON */
    RECORD_COMPLETE,  /* by a layer above (recover_port.complete) if it is missing */
};

enum record_flags {
    RECORD_AT_START = 1u << 0, /* exists, empty, as soon as the directory does */
    RECORD_UNLISTED = 1u << 1, /* not among the artifacts of manifest.json */
    RECORD_SHORTENS = 1u << 2, /* if the disk is full, written again without the final text */
};

struct record_file {
    const char *path;   /* below the run directory; `*` stands for a number */
    const char *schema; /* schema/<schema>.schema.json; NULL: none */
    enum record_form form;
    enum record_recovery recovery;
    unsigned flags;
    /* RECORD_REWRITE: its content. The redactor may be NULL. */
    struct json *(*view)(const struct summary *s, const struct rundir *d, const struct redactor *r,
                         struct arena *a);
};

/* Ends with a row whose path is NULL. Files with RECORD_AT_START are created in this order, and
 * final files are written in it. */
extern const struct record_file record_files[];

/* The row of a path without `*`; NULL: it is not in the table. */
const struct record_file *record_file_find(const char *path);
/* A file by whose name a run directory is recognised: one that every run has. */
bool record_file_is_core(const struct record_file *f);
