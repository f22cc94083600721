/* SPDX-License-Identifier: MIT
 *
 * Files of the workspace as the agent sees them, while it works: for harnesses that ask us to read
 * and write, and for guards that want to know whether a file is there.
 *
 * Paths are absolute as the agent sees them, or relative to the workspace; nothing outside of it is
 * touched, whatever links lead where. A write is atomic: whoever looks finds the old or the new
 * content.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct run;

#define AGENT_FILE_MAX ((size_t)16 << 20)

/* From line `line` (1 is the first, 0 the same) at most `limit` lines (0: all), appended to `ret`.
 * ERR_DENIED outside of the workspace, ERR_INPUT where there is no such file, ERR_LIMIT beyond
 * AGENT_FILE_MAX. */
int agent_files_read(struct run *run, struct str path, int64_t line, int64_t limit, struct buf *ret,
                     struct err *e) MUST_USE;
/* Directories on the way are made. ERR_DENIED outside, and where the sandbox only reads. */
int agent_files_write(struct run *run, struct str path, struct str text, struct err *e) MUST_USE;
/* A directory of the workspace as the agent names it (empty: all of it), as its programs find it.
 * ERR_DENIED outside, ERR_INPUT where there is none. */
int agent_files_dir(struct run *run, struct str path, char ret[PATH_MAX], struct err *e) MUST_USE;
/* What is there below a directory of the workspace's: links are followed as long as they stay below
 * it. A descriptor, or -1 with errno. */
int agent_files_open(int root, const char *path, uint64_t flags);
bool agent_files_exist(void *run, struct str path);
/* The tree that it works in, as we reach it; -1: there is none. Stays the run's. */
int agent_files_root(struct run *run);
void agent_files_done(struct run *run); /* idempotent */
