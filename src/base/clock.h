/* SPDX-License-Identifier: MIT
 *
 * One time type: nsec, monotonic nanoseconds. Wall time appears in records only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef int64_t nsec;

#define NSEC_PER_SEC ((nsec)1000000000)
#define NSEC_PER_MS  ((nsec)1000000)

nsec clock_now(void);     /* monotonic */
int64_t clock_wall(void); /* nanoseconds since 1970, UTC */

/* Wall time that never goes back: that of the start, and the time since then, also asleep. A clock
 * that is set during a run does not change the order of what the run records. */
struct clock_line {
    int64_t wall;
    int64_t start; /* on a clock that is never set */
};

void clock_line_start(struct clock_line *c, int64_t not_before);
int64_t clock_line_wall(const struct clock_line *c);

/* "2026-11-15T20:29:35.123Z" into a caller's buffer of CLOCK_ISO_LEN; returns it. */
#define CLOCK_ISO_LEN 32
char *clock_iso(int64_t wall_ns, char out[CLOCK_ISO_LEN]);
/* "2026-11-15T20:29:35.5Z" or with an offset such as +02:00 (RFC 3339) to nanoseconds since 1970.
 * */
bool clock_parse(struct str s, int64_t *ret_wall);
