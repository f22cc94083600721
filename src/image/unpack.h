/* SPDX-License-Identifier: MIT
 *
 * From a reference to an entry of the cache. Runs in the program cinch-unpack, which reads foreign
 * archives in a process of its own: it can be killed at any time, and cinch links no libarchive.
 *
 *   cinch-unpack CACHE ENGINE REFERENCE [MAX-BYTES]
 *
 * ENGINE is the program that exports images of its store; "" for podman, else docker. Standard
 * output is one line of JSON: {"id": …, "unpacked": true}, or {"code": …, "error": …} with exit
 * status 1, `code` as in base/err.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct arena;

struct json;

struct unpack_opts {
    const char *cache;
    const char *engine; /* "": podman, else docker */
    const char *reference;
    uint64_t max_bytes; /* of all files; 0: 64 GiB */
    /* Of an image that was built here (image/build.h): what image.json says of that, and the
     * reference that people know it by. The file itself is not remembered. NULL: it was not. */
    const struct json *build;
    const char *title;
};

/* *ret_new: it was not there before. */
int unpack_image(struct arena *a, const struct unpack_opts *o, const char **ret_id, bool *ret_new,
                 struct err *e) MUST_USE;
