/* SPDX-License-Identifier: MIT
 *
 * The parts that "%" formatting and str.format() share: the text of a number without sign and
 * padding, and putting sign, padding and text together. Used by template_format.c and
 * template_brace.c only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct render;

struct layout {
    char align; /* '<' '>' '^', or '=': padding between sign and digits */
    char fill[4];
    size_t fill_len;
    int64_t width;
};

/* Longest precision and width that are honoured; who writes the format reaches them. */
enum { FORMAT_PRECISION = 4000, FORMAT_WIDTH = 1000000 };

/* Digits of |i| in base 2, 8, 10 or 16. Returns their number; out has room for 72. */
size_t tpl_format_digits(int64_t i, unsigned base, bool upper, char out[72]);
/* Digits in groups: of three with ',' or '_', of four with '_' in other bases than ten. Appends to
 * out; a point and what follows stay as they are. */
int tpl_format_grouped(struct buf *out, struct str digits, char mark, size_t size);
/* |d| as C's printf does with %e %f %g (either case). */
int tpl_format_real(struct buf *out, double d, char type, int precision, bool alt);
/* sign and body, padded. Both in code points. */
int tpl_format_place(struct render *r, struct buf *out, const struct layout *l, struct str sign,
                     struct str body);
