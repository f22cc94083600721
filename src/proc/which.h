/* SPDX-License-Identifier: MIT
 *
 * Where is a program? As execvp() looks for it, but before anything is started, with the PATH and
 * the working directory that the child will have, and with a reason when there is none.
 */
#pragma once

#include <limits.h>

#include "base/err.h"

/* A name with a slash is taken as a path (relative to cwd), any other is searched along `path`
 * ("/usr/bin:/bin"; NULL or empty: the system's default path). cwd NULL: our own.
 *   ERR_NOTFOUND  no such file (in any directory of the path)
 *   ERR_NOEXEC    found, but it is a directory, not a regular file, or not executable
 * The result is absolute when cwd and the entries of the path are. */
int which_find(const char *name, const char *path, const char *cwd, char out[PATH_MAX],
               struct err *e) MUST_USE;

/* The same in another root file system, whose links lead nowhere outside: `out` is the path there.
 * A name with a slash has to be absolute. */
int which_find_in(const char *root, const char *name, const char *path, char out[PATH_MAX],
                  struct err *e) MUST_USE;

/* PATH of an environment, a NULL-terminated list of "NAME=value"; NULL: it has none. */
const char *which_path(const char *const *envp);
