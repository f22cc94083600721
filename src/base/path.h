/* SPDX-License-Identifier: MIT
 *
 * Paths compared as text. Nothing is looked up: "a/../b", "a//b" and symbolic links are not
 * resolved, so resolve first where that matters.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

/* `path` is `dir` or something in it. A slash at the end of `dir` does not count. */
bool path_is_below(const char *path, const char *dir);

/* Relative, not empty and without "..": below whatever directory it is appended to. */
bool path_is_inner(struct str path);
