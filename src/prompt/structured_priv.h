/* SPDX-License-Identifier: MIT
 *
 * Finding what may be JSON in a text; private to structured.c.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

/* A fenced block: ```json … ```. */
struct fence {
    bool json;          /* its label says so */
    struct str content; /* up to a closing fence on a line of its own, or the end of the text */
    struct str shorter; /* up to the first closing fence anywhere; may be the same */
};

/* The next fenced block at or after *at; moves *at behind it. *budget is the number of bytes that
 * may still be looked at; false when it is used up or there is no further block. */
bool scan_fence(struct str text, size_t *at, size_t *budget, struct fence *ret);

/* The next piece at or after *at that begins with a bracket or brace and ends with its partner;
 * strings are skipped as JSON writes them. Moves *at to where the piece begins. *budget as above.
 */
bool scan_balanced(struct str text, size_t *at, size_t *budget, struct str *ret);
