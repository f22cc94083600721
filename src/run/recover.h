/* SPDX-License-Identifier: MIT
 *
 * Closing the record of a run whose cinch died: the files of the record (record/recover.h), and
 * what lies beside them, the private home of the dead run.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* *ret_closed tells whether there was anything to close; may be NULL. ERR_EXISTS while the owner
 * lives, ERR_INPUT when there is no such directory. */
int run_recover(const char *dir, bool *ret_closed, struct err *e) MUST_USE;
