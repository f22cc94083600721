/* SPDX-License-Identifier: MIT
 *
 * Changed files as rows of a table: status, lines added, lines removed, path.
 *
 *   struct table t = { .arena = a, .columns = PATCH_TABLE_COLUMNS };
 *   patch_table_add(&t, &stat.files[i]);
 */
#pragma once

#include "cli/table.h"
#include "record/patch_stat.h"

#define PATCH_TABLE_COLUMNS                                   \
    {                                                         \
        { "" }, { "", .right = true }, { "", .right = true }, \
        {                                                     \
            ""                                                \
        }                                                     \
    }

void patch_table_add(struct table *t, const struct patch_file *f);
