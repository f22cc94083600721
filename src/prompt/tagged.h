/* SPDX-License-Identifier: MIT
 *
 * Text of others inside a tag of ours, as models get it: <feedback …> and <blocker>. Whatever the
 * text says, it does not end the tag.
 *
 *   tagged_add(&out, "feedback", text, 4096);
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* At most `max` bytes of the text, cut between characters, and a word about it if it was cut. '<'
 * becomes "&lt;" where it would begin an opening or closing `tag`; bytes that are no UTF-8 become
 * U+FFFD, control characters but newline and tab are left out. */
void tagged_add(struct buf *out, const char *tag, struct str text, size_t max);

/* The last bytes, at most `max`, from the beginning of a line where there is one; for output of
 * programs, which say at the end what went wrong. */
struct str tagged_tail(struct str text, size_t max);
