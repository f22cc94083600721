/* SPDX-License-Identifier: MIT
 *
 * A transcript as a conversation, for reading in a terminal:
 *
 *   > Fix the failing test
 *
 *   I will run the tests first.
 *
 *   $ npm test                                          Bash
 *     2 failing
 *
 * Shell commands look as they are typed; other tools show their name and what identifies the call
 * (a file, a pattern, an address). Long results are cut. Entries about the protocol (system events,
 * token counts) are left out unless `verbose`.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

struct json;

struct conversation_style {
    size_t width;
    bool color;
    bool verbose;
};

/* One line of transcript.jsonl; may add nothing. The text is clean (cli/text.h). */
void conversation_add(const struct json *entry, struct conversation_style style, struct buf *out);

/* The same entry on one line without a line end: "$ npm test", "Read src/a.c", "result: 2 failing".
 * Empty for entries that only `verbose` would show. */
void conversation_line(const struct json *entry, size_t width, struct buf *out);
