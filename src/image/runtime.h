/* SPDX-License-Identifier: MIT
 *
 * A program of the host inside the root of an image: what has to be mounted beside the image, and
 * how the program is started then. The image needs no interpreter, no libraries and no loader.
 *
 *   runtime_begin(a, &(struct runtime_opts){ .root = …, .dir = … }, &rt, e)
 *   runtime_add(rt, "/usr/bin/node", e)      further programs that others will start
 *   runtime_program(rt, "/home/me/.local/bin/agent", path, &argv, e)
 *                                            what is started in its place: { interpreter, script }
 *
 * The host's /usr and the like are at SANDBOX_RUNTIME "/usr" …; other installations are at their
 * own paths, and the caller makes them visible (sandbox/toolchain_paths.h, rt->programs). Programs
 * that need a loader are covered by copies that name ours (image/loader.h). Where the image has no
 * loader of that name at all, ours takes its place, so that every program of the host works.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "sandbox/policy.h"

struct arena;

#define RUNTIME_MOUNTS_MAX   48
#define RUNTIME_PROGRAMS_MAX 16

struct runtime {
    struct arena *a;
    const char *root; /* of the image */
    const char *dir;  /* below the cache */
    struct sandbox_mount mounts[RUNTIME_MOUNTS_MAX];
    size_t n_mounts;
    /* Programs of the host outside its system directories, whose installations must be visible. */
    const char *programs[RUNTIME_PROGRAMS_MAX + 1];
    size_t n_programs;
    const char *loader; /* that was brought along; NULL: none */
    bool everywhere;    /* it is the image's, too: no copies are needed */
};

struct runtime_opts {
    const char *root;
    const char *dir; /* made if it is missing */
};

void runtime_begin(struct arena *a, const struct runtime_opts *o, struct runtime *ret);
/* A program that shall work inside, and its path there. */
int runtime_add(struct runtime *rt, const char *program, const char **ret_inside,
                struct err *e) MUST_USE;
/* `path`: where interpreters are looked for on the host. *ret: NULL-terminated; the first is what
 * is executed. */
int runtime_program(struct runtime *rt, const char *program, const char *path,
                    const char *const **ret, struct err *e) MUST_USE;
/* Is there a file of this path in the image, as its programs would find it? */
bool runtime_image_has(const char *root, const char *path);
/* The interpreter of a script's first line, with `env` taken away; NULL: it is no script. Words
 * are NULL-terminated. Pure. */
const char *const *runtime_shebang(struct arena *a, struct str head);
