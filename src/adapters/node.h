/* SPDX-License-Identifier: MIT
 *
 * The node that an agent runs on. Agents are often installed on a machine whose first node in PATH
 * is older than what they need; a profile says so with `node`, and another one of PATH is taken.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* The first node of `path` that is `wanted` ("22.19") or newer: the directory that must come first
 * in the agent's PATH, or NULL if the first one of `path` is good. Starts `node --version`.
 * ERR_UNAVAILABLE names what was found instead. ERR_CANCELLED as in proc/probe.h. */
int node_find(struct arena *a, const char *wanted, const char *path, const char **ret_dir,
              struct err *e) MUST_USE;
