/* SPDX-License-Identifier: MIT
 *
 * Agent bundles of Holon: a .tar.gz with a program of the file contract (docs/images.md) and a
 * manifest.json that names its entry point. A bundle is unpacked once per content into the user's
 * cache and runs from there, read-only.
 *
 *   struct bundle b;
 *   bundle_open(arena, "agent.tar.gz", cache, &b, e);     b.entry is the program
 */
#pragma once

#include "base/json.h"

struct bundle {
    const char *dir;   /* where it is unpacked */
    const char *entry; /* absolute path of the program */
    const char *name, *version;
    const struct json *env; /* variables for it: names to strings */
};

/* The user's cache of unpacked bundles; NULL when there is no home. */
const char *bundle_cache(struct arena *a);

/* ERR_INPUT when the file is missing, ERR_CONFIG when it is not a bundle or holds anything that
 * could lead out of its directory, ERR_UNAVAILABLE when it is for another machine. */
int bundle_open(struct arena *a, const char *path, const char *cache, struct bundle *ret,
                struct err *e) MUST_USE;
