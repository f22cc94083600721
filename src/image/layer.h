/* SPDX-License-Identifier: MIT
 *
 * Layers of an image onto a directory, one after the other, with distrust: libarchive reads them,
 * and what is written stays below the directory whatever names and links say.
 *
 *   layer_begin(&l, root_fd);
 *   layer_apply(&l, fd, "layer 1", digest, diff_id, e);  …
 *   layer_end(&l);
 *
 * Whiteouts remove what lower layers had (`.wh.NAME`; `.wh..wh..opq`: everything in a directory).
 * All files belong to the caller, whoever owned them in the image; setuid, setgid and extended
 * attributes are dropped, and the caller can read all files and enter all directories. Devices,
 * FIFOs and sockets are left out: a sandbox has its own. Absolute names are below the root; names
 * with ".." are refused.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct layer_limits {
    uint64_t bytes;   /* of all files; 0: 64 GiB */
    uint64_t entries; /* 0: 4 million */
};

struct layers {
    int root; /* borrowed */
    struct layer_limits limits;
    uint64_t bytes;
    uint64_t entries;
    uint64_t skipped;    /* devices and the like */
    struct ino_set *now; /* what the current layer has written */
};

void layer_begin(struct layers *l, int root, const struct layer_limits *limits);
void layer_end(struct layers *l);
/* `digest` (of the file as it is) and `diff_id` (of the tar file in it) may be NULL. ERR_PARSE: it
 * is damaged, refused, or its content has another digest; ERR_LIMIT. */
int layer_apply(struct layers *l, int fd, const char *what, const char *digest, const char *diff_id,
                struct err *e) MUST_USE;
/* The content of an archive of blobs and JSON files below `dir`: plain files, directories and
 * links that cannot lead out when they are opened with RESOLVE_BENEATH. */
int layer_extract(int dir, int fd, uint64_t max, struct err *e) MUST_USE;
