/* SPDX-License-Identifier: MIT
 *
 * Forms of timestamps and ids; see stamp.h.
 */
#include "record/stamp.h"

#include <time.h>

#include "base/clock.h"

/* In the form, '0' stands for a digit, 'x' for a lower-case hexadecimal digit, anything else for
 * itself. */
static bool has_form(struct str s, const char *form)
{
    if (s.len != strlen(form)) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool digit = c >= '0' && c <= '9';
        bool fits = form[i] == '0'   ? digit
                    : form[i] == 'x' ? digit || (c >= 'a' && c <= 'f')
                                     : c == form[i];
        if (!fits) {
            return false;
        }
    }
    return true;
}

static int number(struct str s, size_t at, size_t len)
{
    int n = 0;
    for (size_t i = at; i < at + len; i++) {
        n = n * 10 + (s.ptr[i] - '0');
    }
    return n;
}

bool stamp_parse(struct str s, int64_t *ret_wall)
{
    if (!has_form(s, "0000-00-00T00:00:00.000Z")) {
        return false;
    }
    struct tm tm = {
        .tm_year = number(s, 0, 4) - 1900,
        .tm_mon = number(s, 5, 2) - 1,
        .tm_mday = number(s, 8, 2),
        .tm_hour = number(s, 11, 2),
        .tm_min = number(s, 14, 2),
        .tm_sec = number(s, 17, 2),
    };
    struct tm given = tm;
    /* Normalises what is out of range: then it differs from what was given. */
    time_t seconds = timegm(&tm);
    if (seconds < 0 || given.tm_year >= 300 || tm.tm_mon != given.tm_mon ||
        tm.tm_mday != given.tm_mday || tm.tm_hour != given.tm_hour || tm.tm_min != given.tm_min ||
        tm.tm_sec != given.tm_sec) {
        return false;
    }
    if (ret_wall != NULL) {
        *ret_wall = (int64_t)seconds * NSEC_PER_SEC + number(s, 20, 3) * NSEC_PER_MS;
    }
    return true;
}

bool stamp_is_id(struct str s)
{
    return has_form(s, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
}
