/* SPDX-License-Identifier: MIT
 *
 * Build-on-run: a base image and an adapter layer (image/recipe.h) become an image, made by podman
 * or buildah, and then an entry of the cache like any other. Runs in the program cinch-unpack:
 *
 *   cinch-unpack --build CACHE ENGINE REFERENCE BASE-ID ADAPTER
 *
 * with an answer as in image/unpack.h. The engine writes the image to a file; nothing is left in
 * its store. A key (image/recipe.h) is built once: other processes wait for the one that builds it.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct arena;

struct build_opts {
    const char *cache;
    const char *engine;    /* "": podman, else buildah */
    const char *reference; /* of the base */
    const char *base;      /* its id */
    const char *adapter;
};

/* *ret_new: it was not there before. ERR_UNAVAILABLE: there is no engine, or the build failed. */
int build_image(struct arena *a, const struct build_opts *o, const char **ret_id, bool *ret_new,
                struct err *e) MUST_USE;
