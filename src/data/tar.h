/* SPDX-License-Identifier: MIT
 *
 * struct tar_reader: reads a tar stream piece by piece, with distrust. Nothing is written here; the
 * port decides what to do with the entries.
 *
 *   struct tar_reader *t = tar_reader_new(&port, NULL);
 *   tar_reader_feed(t, bytes, e);  …  tar_reader_end(t, e);  tar_reader_free(t);
 *
 * Formats: ustar, GNU (long names, base-256 sizes) and pax (path, linkpath, size); other pax
 * records are skipped. Reported are regular files, directories, symbolic and hard links; devices,
 * fifos, sparse files and anything else are refused. Names are reported as they are, but for "./"
 * in front and "/" at the end: whether they can be trusted is for the port to say
 * (zip_name_fault()).
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum tar_kind { TAR_FILE, TAR_DIR, TAR_SYMLINK, TAR_HARDLINK };

struct tar_entry {
    enum tar_kind kind;
    struct str name;   /* NUL-terminated; empty: the directory that all others are in */
    struct str target; /* of a link; NUL-terminated */
    uint64_t size;     /* of a file */
    unsigned mode;     /* permission bits */
};

/* A negative result ends the reading and is returned by tar_reader_feed(). */
struct tar_port {
    int (*entry)(void *ctx, const struct tar_entry *entry, struct err *e);
    int (*data)(void *ctx, struct str bytes, struct err *e); /* of the file before */
    int (*done)(void *ctx, struct err *e);                   /* the file is complete */
    void *ctx;
};

struct tar_limits {
    uint64_t max_entries; /* 0: 200000 */
    uint64_t max_total;   /* 0: 4 GiB of content */
};

struct tar_reader;

struct tar_reader *tar_reader_new(const struct tar_port *port, const struct tar_limits *limits);
struct tar_reader *tar_reader_free(struct tar_reader *t); /* accepts NULL, returns NULL */

/* ERR_PARSE when the data is damaged or has an entry that is refused, ERR_LIMIT. */
int tar_reader_feed(struct tar_reader *t, struct str bytes, struct err *e) MUST_USE;
/* The stream has ended: ERR_PARSE when it ended within an entry, or there was none at all. */
int tar_reader_end(struct tar_reader *t, struct err *e) MUST_USE;
