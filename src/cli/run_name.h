/* SPDX-License-Identifier: MIT
 *
 * RUN arguments: from what a person types (a path, `last`, a part of an id) to a run directory. See
 * record/run_store.h for the forms. A failure leaves a hint that names `cinch runs`.
 */
#pragma once

#include "cli/cli.h"

/* `name` NULL means `last`. The path is in the arena of `cli`, or is `name` itself. */
int run_name_find(struct cli *cli, const char *name, const char **ret_path, struct err *e) MUST_USE;
/* How to name that run in the next command: `last`, its short id, or the path. */
const char *run_name_for(struct cli *cli, const char *path);
