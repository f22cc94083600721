/* SPDX-License-Identifier: MIT
 *
 * Text for people: made safe, measured, cut, padded, wrapped; sizes and times in words. Pure
 * functions that append to a buf.
 *
 * Whatever comes from outside (output of an agent, file names, messages that quote them) goes
 * through text_clean() before it is printed: an agent must not be able to move the cursor, change
 * the title, hide text or fake our own output on the user's terminal. Control characters, escape
 * sequences, bytes that are no UTF-8, and invisible or direction-changing characters become
 * visible: \x1b, \n, \xff, \u202e.
 *
 * Widths are columns of a terminal: 2 for East Asian wide characters and emoji, 0 for combining
 * ones. All functions but text_clean() expect text that is clean already.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

enum text_mode {
    TEXT_LINE,  /* the result is one line: newline and tab are made visible too */
    TEXT_BLOCK, /* newlines stay; a tab becomes spaces up to the next multiple of 8 */
};

void text_clean(struct buf *out, struct str s, enum text_mode mode);

size_t text_width(struct str s);
/* The longest beginning of s that is at most `width` columns wide. */
struct str text_prefix(struct str s, size_t width);
/* s, or as much of it as fits with "..." at the end. */
void text_cut(struct buf *out, struct str s, size_t width);
void text_pad(struct buf *out, struct str s, size_t width);      /* spaces after */
void text_pad_left(struct buf *out, struct str s, size_t width); /* spaces before */
void text_repeat(struct buf *out, const char *piece, size_t count);

/* Words of s in lines of at most `width` columns. The first line begins at column `column` (the
 * caller has written that much), further ones are indented by `indent`. Line breaks in s are kept.
 * A word that is too long stays whole: a path that is cut in two cannot be copied. No newline at
 * the end. */
struct text_shape {
    size_t column, indent, width;
};
void text_wrap(struct buf *out, struct str s, struct text_shape shape);

#define TEXT_SHORT 24
/* "512 B", "1.5 KiB", "20 MiB" */
const char *text_bytes(uint64_t n, char out[TEXT_SHORT]);
/* "0.1s", "12.3s", "2m 05s", "1h 02m" */
const char *text_duration(nsec t, char out[TEXT_SHORT]);
/* "1 234 567" as "1,234,567" */
const char *text_count(int64_t n, char out[TEXT_SHORT]);
/* "$0.0123"; two places from one dollar on */
const char *text_cost(double usd, char out[TEXT_SHORT]);
