/* SPDX-License-Identifier: MIT
 *
 * The parts of an apply that git does: moving refs, and noting the state of files in a new index.
 */
#pragma once

#include "workspace/apply_txn.h"

/* From `from` to `to`, or back. Nothing happens if that is done already. A lock that a killed git
 * left is removed if it holds what this call would write. */
int apply_ref_move(struct apply_txn *t, const struct apply_ref *ref, bool forward,
                   struct err *e) MUST_USE;
/* Whether it has this value now; "": it does not exist. */
bool apply_ref_is(const struct apply_txn *t, const struct apply_ref *ref, const char *value);
/* So that `git status` need not read the new files; of no importance otherwise. */
void apply_refresh_index(const struct apply_txn *t, const struct apply_index *x);
