/* SPDX-License-Identifier: MIT
 *
 * Reading a patch of git: which files it changes, and by how many lines. Pure.
 *
 *   struct patch_stat stat;
 *   patch_stat(arena, text, &stat);
 *
 * Counts are those of `git apply --numstat`. Text that is no patch of git is skipped, so a damaged
 * patch gives the files that can be recognised. Paths point into the text, or into the arena where
 * git had quoted them; they are foreign and must be cleaned before they are printed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

struct patch_file {
    struct str path;  /* after the change; of a deleted file, before it */
    struct str from;  /* of a renamed or copied file; empty otherwise */
    char status;      /* A, M, D, R, C as in `git diff --name-status` */
    bool binary;      /* lines are not counted */
    int64_t added;    /* lines */
    int64_t removed;  /* lines */
    struct str patch; /* its part of the text, from "diff --git" on */
};

struct patch_stat {
    struct patch_file *files;
    size_t count;
    int64_t added, removed; /* sums */
};

void patch_stat(struct arena *a, struct str text, struct patch_stat *ret);
