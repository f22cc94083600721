/* SPDX-License-Identifier: MIT
 *
 * One time type: nsec, monotonic nanoseconds. Wall time appears in records only.
 */
#pragma once

#include <stdint.h>

typedef int64_t nsec;

#define NSEC_PER_SEC ((nsec)1000000000)
#define NSEC_PER_MS  ((nsec)1000000)

nsec clock_now(void);     /* monotonic */
int64_t clock_wall(void); /* nanoseconds since 1970, UTC */

/* "2026-11-15T20:29:35.123Z" into a caller's buffer of CLOCK_ISO_LEN; returns it. */
#define CLOCK_ISO_LEN 32
char *clock_iso(int64_t wall_ns, char out[CLOCK_ISO_LEN]);
