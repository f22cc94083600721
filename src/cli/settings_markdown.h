/* SPDX-License-Identifier: MIT
 *
 * The reference of all settings in docs/task.md, from the table of settings.
 */
#pragma once

#include "base/buf.h"
#include "config/settings_table.h"

/* One table for each section, with the members of lists. */
void settings_markdown(const struct setting *table, struct buf *out);
