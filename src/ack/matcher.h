/* SPDX-License-Identifier: MIT
 *
 * Matchers: what a scenario says of a value. A scalar or a list stands for itself; an object says
 * more, and all that it says must hold:
 *
 *   equals: VALUE          also for objects
 *   contains: TEXT         a text has it; a list has such an item, or an item with such a text
 *   matches: PATTERN       (ECMA-262) somewhere in a text
 *   starts, ends: TEXT
 *   nonblank: true         a text with more than white space
 *   present: BOOL          it is there and not null
 *   at_least, at_most: N   a number
 *   len: MATCHER           of a text (bytes), list or object
 *   any, each: MATCHER     some or every item of a list; `each` also wants one
 *   at: {POINTER: MATCHER} values inside
 *   not: MATCHER
 *
 *   matcher_check(scenario_value, "task.yaml", e)      once, when the scenario is read
 *   if (!matcher_holds(m, value, &sentence)) …         "wanted at least 2, found 1"
 *
 * A value that is absent (NULL) fails every matcher but `present: false` and `not`.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

/* ERR_CONFIG: not the form of one, or it demands nothing: an empty map, an empty text to contain or
 * to match, a `len` that every length has. */
int matcher_check(const struct json *m, const char *file, struct err *e) MUST_USE;
/* The same for {POINTER: MATCHER}, which must say something. */
int matcher_check_pointers(const struct json *map, const char *file, struct err *e) MUST_USE;
/* Does it hold for every number from 0 on, as {at_least: 0} does? Then it demands nothing of what
 * is counted. The matcher has been checked. */
bool matcher_holds_for_counts(const struct json *m);
/* On false, *ret_why (may be NULL) says what was wanted and what was found, in the arena. */
bool matcher_holds(struct arena *a, const struct json *m, const struct json *v,
                   const char **ret_why);
/* A value in a finding: compact, cut when it is long; "nothing" for NULL. In the arena. */
const char *matcher_shown(struct arena *a, const struct json *v);
