/* SPDX-License-Identifier: MIT
 */
#include "cli/patch_table.h"

void patch_table_add(struct table *t, const struct patch_file *f)
{
    table_cellf(t, STYLE_NAME, "%c", f->status);
    if (f->binary) {
        table_cell(t, STYLE_DIM, "binary");
        table_cell(t, STYLE_PLAIN, "");
    } else {
        table_cellf(t, STYLE_GOOD, "+%lld", (long long)f->added);
        table_cellf(t, STYLE_BAD, "-%lld", (long long)f->removed);
    }
    if (f->from.len > 0) {
        table_cellf(t, STYLE_PLAIN, "%.*s -> %.*s", STR_ARG(f->from), STR_ARG(f->path));
    } else {
        table_cell_str(t, STYLE_PLAIN, f->path);
    }
}
