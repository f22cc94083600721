/* SPDX-License-Identifier: MIT
 *
 * Dates, times and durations of RFC 3339.
 */
#include "data/schema_priv.h"

/* Exactly `digits` decimal digits, cut off *s. */
static bool take_number(struct str *s, size_t digits, int *ret)
{
    int value = 0;
    if (s->len < digits) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        char c = s->ptr[i];
        if (c < '0' || c > '9') {
            return false;
        }
        value = value * 10 + (c - '0');
    }
    *s = str_slice(*s, digits, s->len);
    *ret = value;
    return true;
}

static bool take_char(struct str *s, char c)
{
    bool there = s->len > 0 && s->ptr[0] == c;
    *s = there ? str_slice(*s, 1, s->len) : *s;
    return there;
}

static int days_in(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

static bool take_date(struct str *s)
{
    int year;
    int month;
    int day;
    return take_number(s, 4, &year) && take_char(s, '-') && take_number(s, 2, &month) &&
           take_char(s, '-') && take_number(s, 2, &day) && month >= 1 && month <= 12 && day >= 1 &&
           day <= days_in(year, month);
}

/* "Z" or "+01:30", as minutes. */
static bool take_offset(struct str *s, int *ret)
{
    int hour;
    int minute;
    *ret = 0;
    if (take_char(s, 'Z') || take_char(s, 'z')) {
        return true;
    }
    int sign = take_char(s, '-') ? -1 : take_char(s, '+') ? 1 : 0;
    if (sign == 0 || !take_number(s, 2, &hour) || !take_char(s, ':') ||
        !take_number(s, 2, &minute)) {
        return false;
    }
    *ret = sign * (hour * 60 + minute);
    return hour <= 23 && minute <= 59;
}

static bool take_fraction(struct str *s)
{
    int digit;
    size_t digits = 0;
    if (!take_char(s, '.')) {
        return true;
    }
    while (take_number(s, 1, &digit)) {
        digits++;
    }
    return digits > 0;
}

bool schema_format_time(struct str s)
{
    enum { DAY = 24 * 60 };
    int hour;
    int minute;
    int second;
    int offset;
    if (!take_number(&s, 2, &hour) || !take_char(&s, ':') || !take_number(&s, 2, &minute) ||
        !take_char(&s, ':') || !take_number(&s, 2, &second) || !take_fraction(&s) ||
        !take_offset(&s, &offset) || s.len > 0) {
        return false;
    }
    if (hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    /* a leap second is the last one of a day in UTC */
    int utc = (hour * 60 + minute - offset + 2 * DAY) % DAY;
    return second < 60 || utc == DAY - 1;
}

bool schema_format_date(struct str s)
{
    return take_date(&s) && s.len == 0;
}

bool schema_format_date_time(struct str s)
{
    return take_date(&s) && (take_char(&s, 'T') || take_char(&s, 't')) && schema_format_time(s);
}

/* Numbers with units out of `units`, in that order and without a gap; returns how many. A failure
 * leaves something in *s. */
static size_t take_units(struct str *s, const char *units)
{
    size_t count = 0;
    const char *next = NULL;
    for (;;) {
        size_t digits = 0;
        while (digits < s->len && s->ptr[digits] >= '0' && s->ptr[digits] <= '9') {
            digits++;
        }
        if (digits == 0 || digits == s->len) {
            return count;
        }
        const char *unit = s->ptr[digits] == '\0' ? NULL : strchr(units, s->ptr[digits]);
        if (unit == NULL || (next != NULL && unit != next)) {
            return count;
        }
        *s = str_slice(*s, digits + 1, s->len);
        next = unit + 1;
        count++;
    }
}

bool schema_format_duration(struct str s)
{
    if (!take_char(&s, 'P')) {
        return false;
    }
    struct str weeks = s;
    if (take_units(&weeks, "W") == 1 && weeks.len == 0) {
        return true;
    }
    size_t count = take_units(&s, "YMD");
    if (take_char(&s, 'T')) {
        size_t timed = take_units(&s, "HMS");
        if (timed == 0) {
            return false;
        }
        count += timed;
    }
    return count > 0 && s.len == 0;
}
