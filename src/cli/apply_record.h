/* SPDX-License-Identifier: MIT
 *
 * What `cinch apply DIR` does, for `cinch run --apply`: brings the changes of a finished run into
 * the tree that it was started for.
 */
#pragma once

#include "base/err.h"

struct cli;

/* Prints what was done unless the format is JSON. ERR_DENIED when the changes do not apply. A run
 * that worked in place has changed the tree already. */
int apply_record(struct cli *cli, const char *dir, struct err *e) MUST_USE;

/* Completes or rolls back what `cinch apply` left when it was killed, and says so on stderr. Every
 * command does that first. */
void apply_recover(struct cli *cli);
