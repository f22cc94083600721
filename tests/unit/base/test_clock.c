/* SPDX-License-Identifier: MIT
 *
 * Monotonic time does not go back; wall time prints as the record's schema demands.
 */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void test_monotonic_never_goes_back(void **state)
{
    nsec before = clock_now();
    assert_true(before > 0);
    for (int i = 0; i < 10000; i++) {
        nsec now = clock_now();
        assert_true(now >= before);
        before = now;
    }
}

static void test_wall_is_the_time_of_day(void **state)
{
    int64_t wall = clock_wall();
    time_t now = time(NULL);
    assert_true(wall / NSEC_PER_SEC >= now - 5 && wall / NSEC_PER_SEC <= now + 5);
}

static void assert_iso(int64_t ns, const char *want)
{
    char out[CLOCK_ISO_LEN];
    assert_ptr_equal(clock_iso(ns, out), out);
    assert_string_equal(out, want);
}

static void test_iso_form(void **state)
{
    assert_iso(0, "1970-01-01T00:00:00.000Z");
    assert_iso(999999, "1970-01-01T00:00:00.000Z");
    assert_iso(1000000, "1970-01-01T00:00:00.001Z");
    assert_iso(INT64_C(951782399999000000), "2000-02-28T23:59:59.999Z");
    assert_iso(INT64_C(951782400000000000), "2000-02-29T00:00:00.000Z"); /* a leap day */
    assert_iso(INT64_C(1794774575123456789), "2026-11-15T20:29:35.123Z");
    assert_iso(INT64_MAX, "2262-04-11T23:47:16.854Z");
    /* A broken clock must not break a record. */
    assert_iso(-1, "1970-01-01T00:00:00.000Z");
    assert_iso(-86400 * NSEC_PER_SEC, "1970-01-01T00:00:00.000Z");
}

static void assert_time(const char *text, int64_t want)
{
    int64_t wall = -1;
    assert_true(clock_parse(str_of(text), &wall));
    assert_int_equal(wall, want);
}

static void test_times_are_read(void **state)
{
    static const char *const wrong[] = { "",
                                         "2026",
                                         "2026-11-18",
                                         "2026-11-18T20:30:00",
                                         "2026-11-31T00:00:00Z",
                                         "2026-02-29T00:00:00Z",
                                         "2026-13-01T00:00:00Z",
                                         "2026-11-18T24:00:00Z",
                                         "2026-11-18T20:30:60Z",
                                         "2026-11-18T20:30:00.Z",
                                         "2026-11-18T20:30:00+1:00",
                                         "2026-11-18T20:30:00Zz",
                                         "1969-12-31T23:59:59Z" };
    int64_t wall;
    assert_time("1970-01-01T00:00:00Z", 0);
    assert_time("2024-02-29 12:00:00.25z", 1709208000 * NSEC_PER_SEC + 250 * NSEC_PER_MS);
    assert_time("2026-11-18T20:30:00+02:30", 1795024800 * NSEC_PER_SEC);
    assert_time("2026-11-18T15:30:00-02:30", 1795024800 * NSEC_PER_SEC);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(clock_parse(str_of(wrong[i]), &wall));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monotonic_never_goes_back),
        cmocka_unit_test(test_wall_is_the_time_of_day),
        cmocka_unit_test(test_iso_form),
        cmocka_unit_test(test_times_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
