/* SPDX-License-Identifier: MIT
 *
 * Where is cinch-init? The first that exists of:
 *   $CINCH_INIT                              whoever sets it knows better
 *   ../libexec/cinch/cinch-init              beside the running program's directory (installed)
 *   ./cinch-init, ../init/cinch-init         build tree
 *   <libexecdir>/cinch/cinch-init            as configured
 */
#pragma once

#include <limits.h>

#include "base/err.h"

/* ERR_UNAVAILABLE with all places tried when there is none. */
int locate_init(char out[PATH_MAX], struct err *e) MUST_USE;
/* The same, to be executed: a path that stays the same program as long as this process lives, also
 * when the file is replaced or removed. The first call opens it, and it stays open (close-on-exec);
 * another value of CINCH_INIT is another program. Where there is no /proc, or the helper is a
 * script, it is the plain path. */
int locate_init_kept(char out[PATH_MAX], struct err *e) MUST_USE;
/* The program cinch-unpack in the same way; its variable is CINCH_UNPACK. */
int locate_unpack(char out[PATH_MAX], struct err *e) MUST_USE;
/* cinch-tools, the tools of the built-in agent; its variable is CINCH_TOOLS. */
int locate_tools(char out[PATH_MAX], struct err *e) MUST_USE;
/* The program `cinch` itself: $CINCH, or what is running now if it is called so. ERR_UNAVAILABLE in
 * a program that only uses the library. */
int locate_cinch(char out[PATH_MAX], struct err *e) MUST_USE;
