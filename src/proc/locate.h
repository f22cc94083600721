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
/* The program `cinch` itself: $CINCH, or what is running now if it is called so. ERR_UNAVAILABLE in
 * a program that only uses the library. */
int locate_cinch(char out[PATH_MAX], struct err *e) MUST_USE;
