/* SPDX-License-Identifier: MIT
 *
 * Paths as agents write them: with or without the place of the workspace in front, with "." and
 * "..", and sometimes leading out of it.
 *
 *   wspath_fold(arena, STR("/workspace"), STR("/workspace/b/../a"), &path)      "a"
 *
 * Only the text is looked at: a link that lies in the workspace is a file like others.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

#define WSPATH_ROOT "/workspace" /* where nobody says where the workspace is */

/* Relative to `root` (absolute; empty: WSPATH_ROOT), in the arena; "." for the workspace itself.
 * false: it leads out of the workspace, or is no path: empty, longer than a path can be, or with a
 * NUL. */
bool wspath_fold(struct arena *a, struct str root, struct str path, const char **ret);
