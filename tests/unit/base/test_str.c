/* SPDX-License-Identifier: MIT
 *
 * Borrowed strings: comparing and cutting at the edges, and strictness of every conversion.
 */
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/macro.h"

static const struct str none = { NULL, 0 };

static void assert_str(struct str got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr, want, got.len);
}

static void test_equality_and_order(void **state)
{
    assert_true(str_eq(STR("a\0b"), STR("a\0b")));
    assert_false(str_eq(STR("a\0b"), STR("a\0c")));
    assert_true(str_eq(none, STR("")));
    assert_true(str_eqc(STR("abc"), "abc"));
    assert_false(str_eqc(STR("abc"), "ab"));
    assert_true(str_eqc(none, NULL));
    assert_true(str_cmp(STR("a"), STR("b")) < 0);
    assert_true(str_cmp(STR("ab"), STR("a")) > 0);
    assert_true(str_cmp(STR("\x7f"), STR("\x80")) < 0); /* bytes are unsigned */
    assert_int_equal(str_cmp(none, STR("")), 0);
}

static void test_prefix_and_suffix(void **state)
{
    assert_true(str_starts(STR("abc"), STR("ab")));
    assert_true(str_starts(STR("abc"), STR("")));
    assert_false(str_starts(STR("ab"), STR("abc")));
    assert_true(str_ends(STR("a.json"), STR(".json")));
    assert_false(str_ends(STR("json"), STR(".json")));
    assert_true(str_ends(none, none));
}

static void test_cutting(void **state)
{
    assert_str(str_trim(STR(" \t\r\n\v\fa b \n")), "a b");
    assert_str(str_trim(STR(" \n ")), "");
    assert_str(str_slice(STR("hello"), 1, 3), "el");
    assert_str(str_slice(STR("hello"), 3, 99), "lo");
    assert_str(str_slice(STR("hello"), 9, 2), "");
    assert_int_equal(str_slice(none, 0, 5).len, 0);
    assert_int_equal(str_find(STR("a,b,c"), STR("b,")), 2);
    assert_int_equal(str_find(STR("abc"), STR("x")), 3);
    assert_int_equal(str_find(STR("ab"), STR("abc")), 2);
    assert_int_equal(str_find(STR("x\0y"), STR("\0y")), 1);
    assert_true(str_has_nul(STR("a\0b")));
    assert_false(str_has_nul(STR("ab")));
    assert_false(str_has_nul(none));
}

static void test_split_tells_the_last_part_from_no_part(void **state)
{
    struct str rest = STR("a,,b,");
    assert_str(str_split(&rest, ','), "a");
    assert_str(str_split(&rest, ','), "");
    assert_str(str_split(&rest, ','), "b");
    assert_non_null(rest.ptr); /* one empty part is left behind the final separator */
    assert_str(str_split(&rest, ','), "");
    assert_null(rest.ptr);
    rest = STR("abc");
    assert_str(str_split(&rest, ','), "abc");
    assert_null(rest.ptr);
    rest = STR("");
    assert_int_equal(str_split(&rest, ',').len, 0);
    assert_null(rest.ptr);
}

static void test_utf8_is_strict(void **state)
{
    static const struct {
        struct str s;
        size_t good; /* bytes before the first bad one */
    } cases[] = {
        { { "", 0 }, 0 },
        { { "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10 }, 10 },
        { { "\0", 1 }, 1 },
        { { "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", 10 }, 10 }, /* at the borders */
        { { "a\x80", 2 }, 1 },                                      /* stray continuation */
        { { "\xc0\xaf", 2 }, 0 },                                   /* overlong */
        { { "\xc1\xbf", 2 }, 0 },                                   /* overlong */
        { { "\xe0\x9f\xbf", 3 }, 0 },                               /* overlong */
        { { "\xf0\x8f\xbf\xbf", 4 }, 0 },                           /* overlong */
        { { "\xed\xa0\x80", 3 }, 0 },                               /* surrogate */
        { { "\xf4\x90\x80\x80", 4 }, 0 },                           /* beyond U+10FFFF */
        { { "\xf5\x80\x80\x80", 4 }, 0 },
        { { "ab\xe2\x82", 4 }, 2 }, /* cut off */
        { { "\xc3(", 2 }, 0 },
        { { "\xff", 1 }, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(str_utf8_prefix(cases[i].s), cases[i].good);
        assert_int_equal(str_is_utf8(cases[i].s), cases[i].good == cases[i].s.len);
    }
    assert_true(str_is_utf8(none));
}

static void test_integers(void **state)
{
    int64_t i = 7;
    assert_true(str_to_i64(STR("0"), &i) && i == 0);
    assert_true(str_to_i64(STR("-12"), &i) && i == -12);
    assert_true(str_to_i64(STR("007"), &i) && i == 7);
    assert_true(str_to_i64(STR("9223372036854775807"), &i) && i == INT64_MAX);
    assert_true(str_to_i64(STR("-9223372036854775808"), &i) && i == INT64_MIN);
    static const struct str bad[] = {
        { "", 0 },
        { "-", 1 },
        { "+1", 2 },
        { " 1", 2 },
        { "1 ", 2 },
        { "1x", 2 },
        { "0x1", 3 },
        { "1.0", 3 },
        { "--1", 3 },
        { "1\0", 2 },
        { NULL, 0 },
        { "9223372036854775808", 19 },
        { "-9223372036854775809", 20 },
        { "99999999999999999999", 20 },
    };
    for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
        i = 7;
        assert_false(str_to_i64(bad[k], &i));
        assert_int_equal(i, 7);
    }
}

static void test_doubles(void **state)
{
    double d = 7;
    assert_true(str_to_double(STR("1.5"), &d) && d == 1.5);
    assert_true(str_to_double(STR("-2e3"), &d) && d == -2000.0);
    assert_true(str_to_double(STR("600"), &d) && d == 600.0);
    static const struct str bad[] = {
        { "", 0 },     { ".", 1 },    { "1e", 2 },    { "nan", 3 }, { "inf", 3 },
        { "-inf", 4 }, { "0x10", 4 }, { "1e999", 5 }, { " 1", 2 },  { "1 ", 2 },
        { "1,5", 3 },  { "1\0", 2 },  { NULL, 0 },
    };
    for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
        assert_false(str_to_double(bad[k], &d));
    }
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        { "0", 0 },
        { "600", 600000 },
        { "1.5", 1500 },
        { ".5", 500 },
        { "90s", 90000 },
        { "10m", 600000 },
        { "2h", 7200000 },
        { "1h30m", 5400000 },
        { "250ms", 250 },
        { "1m0.5s", 60500 },
        { "1d", 86400000 },
        { "0s", 0 },
        { "1d2h3m4s5ms", 93784005 },
        { "3650d", 315360000000 },
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t ns = -1;
        assert_true(str_to_duration(str_of(good[i].text), &ns));
        assert_int_equal(ns, good[i].ms * 1000000);
    }
}

static void test_bad_durations(void **state)
{
    static const char *const bad[] = {
        "",     "-1",   "-1s",   "1e3",   "s",
        "ms",   "1x",   "1h30",  "1h5.",  "10 m",
        " 10m", "10m ", "1.2.3", "1h-5m", "nan",
        "inf",  "+5",   "0x10",  "3651d", "99999999999999999999h",
        "1hh",  "h1",   "1.h.",  "1h.",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t ns = -1;
        if (str_to_duration(str_of(bad[i]), &ns)) {
            fail_msg("'%s' was taken for %lld ns", bad[i], (long long)ns);
        }
        assert_int_equal(ns, -1);
    }
    int64_t ns;
    assert_false(str_to_duration(none, &ns));
    assert_false(str_to_duration(STR("1s\0"), &ns));
}

static void test_distance(void **state)
{
    assert_int_equal(str_distance(STR("timeout"), STR("timexout"), 3), 1);
    assert_int_equal(str_distance(STR("abc"), STR("abc"), 3), 0);
    assert_int_equal(str_distance(STR(""), STR("abc"), 3), 3);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 3), 3);
    assert_int_equal(str_distance(STR("abc"), STR("xyz"), 2), 3); /* capped: max + 1 */
    char big[200];
    memset(big, 'a', sizeof big);
    assert_int_equal(str_distance(str_n(big, sizeof big), STR("a"), 2), 3);
}

static void test_globs(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool yes;
    } rows[] = {
        { "", "", true },       { "", "a", false },        { "*", "", true },
        { "a*", "abc", true },  { "*c", "abc", true },     { "a?c", "abc", true },
        { "a?c", "ac", false }, { "*b*b*", "abab", true }, { "*b*b*", "aba", false },
        { "ab", "abc", false }, { "**a", "a", true },      { "A", "a", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(str_glob(str_of(rows[i].pattern), str_of(rows[i].text), false),
                         rows[i].yes);
    }
    assert_true(str_glob(STR("Ab*"), STR("aBc"), true));
    assert_true(str_glob(STR("a?c"), STR("a\0c"), false));
}

static void test_printing(void **state)
{
    char out[32];
    (void)snprintf(out, sizeof out, "<%.*s><%.*s>", STR_ARG(STR("abc")), STR_ARG(none));
    assert_string_equal(out, "<abc><>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equality_and_order),
        cmocka_unit_test(test_prefix_and_suffix),
        cmocka_unit_test(test_cutting),
        cmocka_unit_test(test_split_tells_the_last_part_from_no_part),
        cmocka_unit_test(test_utf8_is_strict),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_bad_durations),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_globs),
        cmocka_unit_test(test_printing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
