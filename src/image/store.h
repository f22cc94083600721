/* SPDX-License-Identifier: MIT
 *
 * Names in podman's store, read from its table: no engine is started. The table is images.json of
 * containers-storage: an array of {id, digest, names}.
 */
#pragma once

#include "base/err.h"
#include "image/reference.h"

struct arena;
struct json;

/* *ret: the id; NULL: there is no such store, ask the engine. ERR_UNAVAILABLE: the store exists and
 * has no such image, or several; then *ret is NULL as well when docker may have it. */
int store_find(struct arena *a, const struct image_ref *ref, const char **ret,
               struct err *e) MUST_USE;
/* The pure part: which entry of a table is meant; NULL: none. ERR_UNAVAILABLE: several. */
int store_choose(struct arena *a, const struct json *table, const struct image_ref *ref,
                 const char **ret, struct err *e) MUST_USE;
