/* SPDX-License-Identifier: MIT
 *
 * The two clocks, and the one way to print wall time.
 */
#include "base/clock.h"

#include <string.h>
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

/* The last digits of `n`, and the character behind them. Returns where to continue. */
static char *put_digits(char *to, unsigned n, int digits, char behind)
{
    for (int i = digits; i-- > 0; n /= 10) {
        to[i] = (char)('0' + n % 10);
    }
    to[digits] = behind;
    return to + digits + 1;
}

/* Written for every event of a record, and so without strftime() and printf(). Nanoseconds in 64
 * bits end in the year 2262: four digits are enough. */
char *clock_iso(int64_t wall_ns, char out[CLOCK_ISO_LEN])
{
    time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
    unsigned ms = (unsigned)(wall_ns % NSEC_PER_SEC / NSEC_PER_MS);
    struct tm tm;
    if (wall_ns < 0 || gmtime_r(&seconds, &tm) == NULL) {
        seconds = 0;
        ms = 0;
        (void)gmtime_r(&seconds, &tm);
    }
    char *to = put_digits(out, (unsigned)tm.tm_year + 1900, 4, '-');
    to = put_digits(to, (unsigned)tm.tm_mon + 1, 2, '-');
    to = put_digits(to, (unsigned)tm.tm_mday, 2, 'T');
    to = put_digits(to, (unsigned)tm.tm_hour, 2, ':');
    to = put_digits(to, (unsigned)tm.tm_min, 2, ':');
    to = put_digits(to, (unsigned)tm.tm_sec, 2, '.');
    to = put_digits(to, ms, 3, 'Z');
    *to = '\0';
    return out;
}

static bool read_digits(struct str *s, size_t count, int *ret)
{
    int n = 0;
    for (size_t i = 0; i < count; i++) {
        if (i >= s->len || s->ptr[i] < '0' || s->ptr[i] > '9') {
            return false;
        }
        n = n * 10 + (s->ptr[i] - '0');
    }
    *s = str_slice(*s, count, s->len);
    *ret = n;
    return true;
}

static bool read_char(struct str *s, const char *any)
{
    bool found = s->len > 0 && s->ptr[0] != '\0' && strchr(any, s->ptr[0]) != NULL;
    *s = found ? str_slice(*s, 1, s->len) : *s;
    return found;
}

/* ".123" to nanoseconds; digits beyond the ninth do not matter. */
static bool read_fraction(struct str *s, int64_t *ret)
{
    int64_t unit = NSEC_PER_SEC;
    int digit;
    *ret = 0;
    if (!read_char(s, ".")) {
        return true;
    }
    bool any = false;
    while (read_digits(s, 1, &digit)) {
        unit /= 10;
        *ret += digit * unit;
        any = true;
    }
    return any;
}

static bool read_offset(struct str *s, int64_t *ret_seconds)
{
    int hours;
    int minutes;
    *ret_seconds = 0;
    if (read_char(s, "Zz")) {
        return true;
    }
    int sign = s->len > 0 && s->ptr[0] == '-' ? -1 : 1;
    if (!read_char(s, "+-") || !read_digits(s, 2, &hours) || !read_char(s, ":") ||
        !read_digits(s, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool read_date(struct str *s, struct tm *tm)
{
    bool good = read_digits(s, 4, &tm->tm_year) && read_char(s, "-") &&
                read_digits(s, 2, &tm->tm_mon) && read_char(s, "-") &&
                read_digits(s, 2, &tm->tm_mday);
    return good && tm->tm_year >= 1970 && tm->tm_year <= 2200 && tm->tm_mon >= 1 &&
           tm->tm_mon <= 12 && tm->tm_mday >= 1 && tm->tm_mday <= 31;
}

static bool read_time(struct str *s, struct tm *tm)
{
    bool good = read_digits(s, 2, &tm->tm_hour) && read_char(s, ":") &&
                read_digits(s, 2, &tm->tm_min) && read_char(s, ":") &&
                read_digits(s, 2, &tm->tm_sec);
    return good && tm->tm_hour <= 23 && tm->tm_min <= 59 && tm->tm_sec <= 59;
}

bool clock_parse(struct str s, int64_t *ret_wall)
{
    struct tm tm = { 0 };
    int64_t fraction;
    int64_t offset;
    if (!read_date(&s, &tm) || !read_char(&s, "Tt ") || !read_time(&s, &tm) ||
        !read_fraction(&s, &fraction) || !read_offset(&s, &offset) || s.len != 0) {
        return false;
    }
    int day = tm.tm_mday;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t seconds = (int64_t)timegm(&tm);
    *ret_wall = (seconds - offset) * NSEC_PER_SEC + fraction;
    return tm.tm_mday == day; /* there is no 31st of April */
}
