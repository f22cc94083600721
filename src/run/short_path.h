/* SPDX-License-Identifier: MIT
 *
 * The run's directory as the agent is told. Harnesses fail in long paths and in those with unusual
 * characters: their HOME and their configuration are below it, sockets have at most 107 bytes, and
 * some quote or split what they should not. If the path is such a one, the agent gets another name
 * for the directory: DIR/r, a link in a private temporary directory.
 *
 *   short_path_make(run, e)     sets run->paths.dir, which all paths for the agent begin with
 *   short_path_remove(run)
 *   short_path_recover(dir)     removes what a dead run left
 *
 * In the sandbox the parts of the directory that the agent sees are mounted below that name, so
 * that nothing there resolves to the other one. Without a sandbox it is a link and no more.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct run;

/* Is it short, and made of characters that need no quoting? */
bool short_path_is_plain(const char *path);
/* Without a temporary directory the path is used as it is, with a warning. */
int short_path_make(struct run *run, struct err *e) MUST_USE;
void short_path_remove(struct run *run); /* idempotent */
/* `dir` is the absolute path of the run's directory. */
void short_path_recover(const char *dir);
