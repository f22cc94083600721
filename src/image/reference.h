/* SPDX-License-Identifier: MIT
 *
 * What names an image: a file, a directory, or a name in an engine's store.
 *
 *   golang:1.22, localhost/base:1, 3f9c1b2a…   of podman's store, else of docker
 *   docker-archive:FILE[:NAME]                 what `docker save` and `podman save` write
 *   oci-archive:FILE[:NAME], oci:DIR[:NAME]    an OCI layout, as one file or as a directory
 *   dir:DIR                                    a root file system; it is used where it is
 *   /…, ./…, ../…                              a path: a file is an archive of either kind; a
 *                                              directory is a layout if it has a file oci-layout,
 *                                              else a root file system
 *
 * Each may end in @sha256:DIGEST, of the manifest or of the configuration (which is the image's
 * id): another image is then refused.
 */
#pragma once

#include "base/err.h"

struct arena;

enum image_kind {
    IMAGE_STORE,   /* a name that an engine knows */
    IMAGE_ARCHIVE, /* one file, OCI or docker: its content says which */
    IMAGE_LAYOUT,  /* directory */
    IMAGE_ROOT,    /* directory that is a root file system */
};

struct image_ref {
    const char *text; /* as it was given */
    enum image_kind kind;
    const char *path;   /* absolute; NULL: a name in a store */
    const char *name;   /* in the store, or in an archive with several images; NULL: any */
    const char *digest; /* 64 hexadecimal digits; NULL: any */
};

/* Relative paths are relative to `dir`. ERR_USAGE for what is no reference, ERR_INPUT for a path
 * that does not exist or is of the wrong kind. */
int image_ref_parse(struct arena *a, const char *text, const char *dir, struct image_ref *ret,
                    struct err *e) MUST_USE;
