/* SPDX-License-Identifier: MIT
 *
 * The cache of unpacked images, below $XDG_CACHE_HOME/cinch/images (or ~/.cache/…):
 *
 *   sha256-ID/root       the root file system; nothing changes it
 *   sha256-ID/image.json what it is (struct image)
 *   refs/HASH.json       which image a file or a directory holds, and what the file was like then
 *   builds/KEY.json      which image a build made (image/recipe.h)
 *   builds/KEY.log       what the engine printed; 16 digits of the key are enough
 *   layers/HASH          content of a layer whose files are in this state
 *   locks/HASH           one process unpacks at a time
 *   tmp/…                being unpacked; what is left of a dead process is swept by the next one
 *
 *  1. image_find(a, cache, &ref, &image, e)   0: it is there; 1: it has to be unpacked
 *  2. cinch-unpack (image_unpack.h) does that, in a process of its own
 *  3. image_find() again
 *
 * An entry appears by rename(): it is whole, or it is not there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "image/reference.h"

struct arena;
struct json;

struct image {
    const char *id;   /* SHA-256 of the configuration; NULL: a root file system without one */
    const char *root; /* absolute */
    /* The file image.json: id, manifest, reference, architecture, config (Env, WorkingDir, User,
     * Entrypoint, Cmd, Labels), layers, bytes, files; of a build also build {adapter, package,
     * version, base, key}. NULL: a root without one. */
    const struct json *about;
};

/* NULL: neither XDG_CACHE_HOME nor HOME is set. */
const char *image_cache_dir(struct arena *a);

/* ERR_UNAVAILABLE: no engine's store has it. `engine`: as sandbox.engine, or NULL. */
int image_find(struct arena *a, const char *cache, const struct image_ref *ref, struct image *ret,
               struct err *e) MUST_USE;
/* The entry with this id; ERR_INPUT when there is none. */
int image_open(struct arena *a, const char *cache, const char *id, struct image *ret,
               struct err *e) MUST_USE;
/* Notes which image the reference names now. */
int image_remember(struct arena *a, const char *cache, const struct image_ref *ref, const char *id,
                   struct err *e) MUST_USE;
/* An exclusive lock for as long as the descriptor is open. */
int image_lock(struct arena *a, const char *cache, const char *what, int *ret_fd,
               struct err *e) MUST_USE;

/* A directory of its own below tmp/, which a dead process leaves to the next caller. */
struct image_scratch {
    const char *path;
    int fd;   /* the directory; -1: there is none */
    int lock; /* held for as long as a process works in it */
};

int image_scratch_open(struct arena *a, const char *cache, struct image_scratch *ret,
                       struct err *e) MUST_USE;
void image_scratch_close(struct image_scratch *s);

/* --- builds --- */

/* Keys are 64 hexadecimal digits. 1: it has to be built. */
int image_build_find(struct arena *a, const char *cache, const char *key,
                     struct image *ret) MUST_USE;
int image_build_remember(struct arena *a, const char *cache, const char *key, const char *id,
                         struct err *e) MUST_USE;
/* Where the output of the engine goes. */
const char *image_build_log(struct arena *a, const char *cache, const char *key);
/* Removes what belongs to images that are gone, and logs that were written before `before`. */
int image_prune_builds(struct arena *a, const char *cache, nsec before, struct err *e) MUST_USE;

/* --- list --- */

struct image_item {
    struct image image;
    const char *name; /* of the entry in the cache */
    int64_t bytes;    /* on disk */
    nsec used;        /* last time that a run had it; wall clock */
    bool busy;        /* a run has it now */
};

/* All entries, newest use first; what is no entry is passed over. */
int image_list(struct arena *a, const char *cache, struct image_item **ret, size_t *ret_n,
               struct err *e) MUST_USE;
/* Takes an entry away. 1: a run has it, nothing was done. */
int image_remove(struct arena *a, const char *cache, const struct image_item *item,
                 struct err *e) MUST_USE;
/* Removes copies of programs and loaders (image/runtime.h) that were last used before `before`, and
 * none of the last hour: a run may be about to mount it. */
int image_prune_runtime(struct arena *a, const char *cache, nsec before, struct err *e) MUST_USE;
/* Marks an entry as used, and keeps it from being removed while the descriptor is open. -1: it is
 * not of the cache. */
int image_hold(struct arena *a, const struct image *image, int *ret_fd, struct err *e) MUST_USE;
