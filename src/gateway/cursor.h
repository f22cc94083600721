/* SPDX-License-Identifier: MIT
 *
 * struct cursor: a place in JSON text, for those who look into it without building a tree. It
 * knows strings, nesting and nothing else; brackets are counted, not matched, since whoever reads
 * the text validates.
 *
 *   struct cursor c = { .text = body };
 *   while (cursor_peek(&c) …) cursor_skip_value(&c);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct cursor {
    struct str text;
    size_t at;
};

int cursor_peek(struct cursor *c); /* behind white space: the byte there, or -1 at the end */
bool cursor_skip_string(struct cursor *c); /* at a quote: moves behind the closing one */
bool cursor_skip_value(struct cursor *c);  /* at a value: moves behind it */
/* At a string: its content. False when it is none, or has escapes. */
bool cursor_plain_string(struct cursor *c, struct str *ret);
/* At an object: calls fn with the cursor at the value of each member, behind which fn must move it.
 * False when fn says so, when it is no object, or when a name has escapes. */
typedef bool cursor_member_fn(struct cursor *c, struct str key, void *arg);
bool cursor_each_member(struct cursor *c, cursor_member_fn *fn, void *arg);
