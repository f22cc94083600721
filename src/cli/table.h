/* SPDX-License-Identifier: MIT
 *
 * struct table: rows in aligned columns, for `show`, `adapters`, `doctor` and lists in help.
 *
 *   struct table t = { .arena = a, .indent = 2,
 *                      .columns = { { "check" }, { "state" }, { "detail" } } };
 *   table_cell(&t, STYLE_NAME, "kernel");
 *   table_cell(&t, STYLE_GOOD, "ok");
 *   table_cell(&t, STYLE_PLAIN, "6.1.0");
 *   table_write(&t, width, color, &out);
 *
 * Cells are filled row by row, from the left. Text is cleaned when it comes in, so foreign bytes
 * may be given as they are. The last column takes the room that is left and is wrapped under
 * itself; the others are as wide as their widest cell, cut at .max. Columns that are empty in all
 * rows disappear.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "cli/terminal.h"

struct arena;
struct table_line;

enum { TABLE_COLUMNS = 32 };

struct table {
    struct arena *arena; /* cells live here */
    size_t indent;
    bool head;     /* write the titles */
    bool cut_last; /* one line per row: the last column is cut, not wrapped */
    struct {
        const char *title; /* NULL ends the columns */
        size_t max;        /* cut at this width; 0: whole */
        bool right;        /* numbers */
    } columns[TABLE_COLUMNS];
    /* private: */
    struct table_line *first, *last;
    size_t filled; /* cells of the last line */
};

void table_cell(struct table *t, enum style style, const char *text);
void table_cell_str(struct table *t, enum style style, struct str text);
void table_cellf(struct table *t, enum style style, const char *fmt, ...) PRINTF_LIKE(3, 4);
void table_write(const struct table *t, size_t width, bool color, struct buf *out);
