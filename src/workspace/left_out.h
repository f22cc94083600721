/* SPDX-License-Identifier: MIT
 *
 * Files that an agent made or changed and that are not in the patch: ignored by git, or too large.
 * left-out.list in the private directory of a workspace names them. They are where the agent wrote
 * them (in the layer, or in the tree), or moved to left-out/ if that is all that is kept.
 *
 * The list: "cinch left-out 1", the time when the run began, then path and place of each file, each
 * followed by a NUL.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct left_out {
    const char *dir;           /* absolute */
    const char *const *paths;  /* in the workspace; NULL-terminated */
    const char *const *places; /* below `dir` */
    int64_t since;             /* wall clock */
};

/* 1, or 0 if nothing is kept. ERR_PARSE for a damaged list. */
int left_out_open(struct arena *a, const char *dir, struct left_out *ret, struct err *e) MUST_USE;
/* Exposed for its fuzzer. */
int left_out_parse(struct arena *a, struct str text, struct left_out *ret, struct err *e) MUST_USE;
int left_out_write(int dir_fd, const struct left_out *list, struct err *e) MUST_USE;
/* Moves the files from tree_fd to left-out/ in dir_fd, and writes the list. */
int left_out_move(int dir_fd, int tree_fd, const struct left_out *list, struct err *e) MUST_USE;
