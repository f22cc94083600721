/* SPDX-License-Identifier: MIT
 *
 * Asking a program one question, `git --version`, for doctor and the compatibility kit: started
 * with an empty standard input, its first output taken, ended if it takes too long or if we are
 * told to end (SIGINT, SIGTERM). Blocks for at most the time that is given, and not longer than the
 * program lives: what it leaves behind is not waited for. It is killed if it is still of the
 * program's process group; what has left that is left alone, as a shell would.
 */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

/* argv[0] is an absolute path. Output beyond the buffer's maximum is dropped; of standard error, if
 * anybody wants it, the end is kept. Returns the exit status (128 + n for a signal), or
 * ERR_NOTFOUND, ERR_NOEXEC, ERR_TIMEOUT, ERR_SYS. A signal takes its way when the program is gone:
 * ERR_CANCELLED if it has a handler, else there is no return. */
int probe_program(const char *const *argv, nsec timeout, struct buf *ret_output,
                  struct buf *ret_errors, struct err *e) MUST_USE;
