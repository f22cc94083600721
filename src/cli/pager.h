/* SPDX-License-Identifier: MIT
 *
 * Long output on a terminal, shown by the user's pager: $CINCH_PAGER, $PAGER, or less. As git does
 * it: LESS is set to FRX unless it is set, so output that fits the screen is printed and stays
 * there. The value "cat" or an empty one means no pager.
 */
#pragma once

#include "cli/cli.h"

/* Writes to stdout, through the pager if stdout is a terminal. A pager that cannot be started, or
 * that is quit early, is no error. */
void pager_print(struct cli *cli, const struct buf *text);
