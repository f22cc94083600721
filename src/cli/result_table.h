/* SPDX-License-Identifier: MIT
 *
 * The result of a query on stdout: as a table, JSON, lines of JSON, CSV (RFC 4180), or values
 * between tabs. Rows are written as they come; only a table is gathered first, for its widths.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct cli;
struct statement;

enum result_form {
    RESULT_TABLE,
    RESULT_JSON,  /* a list of objects */
    RESULT_JSONL, /* an object per line */
    RESULT_CSV,
    RESULT_TABS, /* no titles; tabs and line ends within values become spaces */
};

struct result_style {
    enum result_form form;
    bool full; /* RESULT_TABLE: do not shorten values */
};

int result_print(struct cli *cli, struct statement *s, const struct result_style *style,
                 struct err *e) MUST_USE;
