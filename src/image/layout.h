/* SPDX-License-Identifier: MIT
 *
 * The JSON files of an image: which manifest of a layout is meant, and what it says. Nothing here
 * is trusted: paths and digests are checked before anything is opened by them.
 *
 *   layout_open(a, fd, &want, &image, e)   a directory that holds an OCI layout or the content of a
 *                                          docker archive
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct arena;
struct json;

/* The kernel takes 500 directories in an overlay, and engines stop at 128 layers. */
#define LAYOUT_LAYERS_MAX 512
#define LAYOUT_JSON_MAX   ((size_t)4 << 20)

struct layout_layer {
    const char *path;    /* below the layout */
    const char *digest;  /* of the file as it is; NULL: not known (docker archive) */
    const char *diff_id; /* of the tar file in it */
};

struct layout_image {
    const char *id;       /* SHA-256 of the configuration */
    const char *manifest; /* of the manifest; NULL: it has none */
    const struct json *config;
    struct layout_layer *layers; /* lowest first */
    size_t n_layers;
};

struct layout_want {
    const char *name;         /* NULL: the only one */
    const char *digest;       /* NULL: any */
    const char *architecture; /* as images call it: amd64, arm64 … */
};

/* ERR_PARSE: damaged, or other content than its digest says; ERR_INPUT: no such image in it;
 * ERR_UNSUPPORTED: for another architecture or system. */
int layout_open(struct arena *a, int dir, const struct layout_want *want, struct layout_image *ret,
                struct err *e) MUST_USE;

/* The architecture of this machine; "unknown" for one that has no name there. */
const char *layout_architecture(void);
/* Pure parts, for tests. */
int layout_take_config(struct arena *a, struct str text, const struct layout_want *want,
                       struct layout_image *ret, struct err *e) MUST_USE;
int layout_take_manifest(struct arena *a, struct str text, struct layout_image *ret,
                         const char **ret_config, struct err *e) MUST_USE;
