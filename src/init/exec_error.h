/* SPDX-License-Identifier: MIT
 *
 * Why a program could not be executed, in words. execve() answers ENOENT for a missing file and for
 * a missing interpreter, EACCES for a directory and for a missing x bit; a user needs to know
 * which.
 */
#pragma once

#include "base/err.h"

/* Called right after execve(path) failed with `sys`, in the same directory. Fills e and returns
 * -code: ERR_NOTFOUND (no such file), ERR_NOEXEC (there, but not to be executed: directory,
 * permission, no "#!" line, foreign machine, missing interpreter), ERR_LIMIT (arguments too long),
 * else ERR_SYS. */
int exec_error(const char *path, int sys, struct err *e);
