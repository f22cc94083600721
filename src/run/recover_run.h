/* SPDX-License-Identifier: MIT
 *
 * Closing the record of a run whose cinch died: the files of the record (record/recover.h), and
 * what lies beside them: transactions that were decided and not finished (workspace/txn.h), the
 * private home of the dead run. A workspace that is an overlay is mounted for that once more, in a
 * sandbox of its own, in which nothing is started.
 */
#pragma once

#include "base/err.h"
#include "record/reason.h"

/* *ret_reason is the reason that the record was closed with, REASON_NONE when there was nothing to
 * close; may be NULL. ERR_EXISTS while the owner
 * lives, ERR_INPUT when there is no such directory. */
int run_recover(const char *dir, enum reason *ret_reason, struct err *e) MUST_USE;
