/* SPDX-License-Identifier: MIT
 *
 * The adapter layer of a build-on-run: what is added to a base image so that an agent is in it.
 * Most adapters have one that is built in (images/layers.txt: an npm package, installed by
 * images/install.sh). A directory of the user, $XDG_CONFIG_HOME/cinch/layers/ADAPTER, adds to it or
 * replaces it:
 *
 *   install.sh   used instead of ours: sh install.sh PACKAGE VERSION, as root, in the base image
 *   layer.txt    PACKAGE VERSION, instead of ours
 *   vendor/…     what install.sh takes instead of a network, which the build then has not
 *
 *   struct recipe r;
 *   recipe_find(a, cache, "claude-code", &r, e)          1: there is none
 *   const char *key = recipe_key(a, base_id, &r)         what a build is known by
 *   recipe_containerfile(a, base, &r, &out)
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/sha256.h"
#include "base/str.h"

struct arena;
struct buf;
struct json;

struct recipe {
    const char *adapter;
    const char *package, *version; /* "": install.sh knows */
    const char *dir;               /* of the user; NULL: none */
    bool own_script;               /* the directory has an install.sh */
    bool vendored;                 /* it has vendor/: the build has no network */
    char content[SHA256_HEX];      /* of all files */
};

/* Where the user's layer of an adapter is, or would be; NULL: there is no home. */
const char *recipe_dir(struct arena *a, const char *adapter);
/* `cache`: remembers the hash of large directories there. ERR_CONFIG for a damaged layer. */
int recipe_find(struct arena *a, const char *cache, const char *adapter, struct recipe *ret,
                struct err *e) MUST_USE;
/* 64 hexadecimal digits. Pure. */
const char *recipe_key(struct arena *a, const char *base, const struct recipe *r);
/* {adapter, package, version, base, key}, for image.json. */
struct json *recipe_describe(struct arena *a, const struct recipe *r, const char *base,
                             const char *key);
/* What install.sh says; see struct recipe for when it is not used. */
struct str recipe_script(void);

/* Where the directory with our script, and that of the user, are during the build. */
#define RECIPE_BUILD "/tmp/.cinch-build"
#define RECIPE_LAYER "/tmp/.cinch-layer"
/* `base`: its id. Pure. */
void recipe_containerfile(const char *base, const struct recipe *r, struct buf *out);

/* Pure parts, for tests: a line of layers.txt for the adapter; false: there is none. */
bool recipe_row(struct arena *a, struct str table, const char *adapter, struct recipe *ret);
/* A word that may be in a Containerfile. */
bool recipe_word_is_plain(const char *word);
