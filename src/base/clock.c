/* SPDX-License-Identifier: MIT
 *
 * The two clocks, and the one way to print wall time.
 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

nsec clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* Before 1970 no clock is right, and 0 is no time in records. */
int64_t clock_wall(void)
{
    int64_t now = read_clock(CLOCK_REALTIME);
    return now < 1 ? 1 : now;
}

void clock_line_start(struct clock_line *c, int64_t not_before)
{
    int64_t now = clock_wall();
    c->wall = now < not_before ? not_before : now;
    c->start = read_clock(CLOCK_BOOTTIME);
}

int64_t clock_line_wall(const struct clock_line *c)
{
    return c->wall + (read_clock(CLOCK_BOOTTIME) - c->start);
}

char *clock_iso(int64_t wall_ns, char out[CLOCK_ISO_LEN])
{
    time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
    int ms = (int)(wall_ns % NSEC_PER_SEC / NSEC_PER_MS);
    struct tm tm;
    if (wall_ns < 0 || gmtime_r(&seconds, &tm) == NULL) {
        seconds = 0;
        ms = 0;
        (void)gmtime_r(&seconds, &tm);
    }
    size_t n = strftime(out, CLOCK_ISO_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out + n, CLOCK_ISO_LEN - n, ".%03dZ", ms);
    return out;
}
