/* SPDX-License-Identifier: MIT
 *
 * Turns in the record of a run with savepoints, for the commands that take --turn.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct arena;
struct cli;

/* "savepoints/turn-3" with a suffix: ".json", ".patch" or ".nested". */
const char *turn_file(struct arena *a, int64_t turn, const char *suffix);
/* ERR_INPUT, with what to do about it. */
int turn_missing(struct cli *cli, const char *dir, int64_t turn, struct err *e);
