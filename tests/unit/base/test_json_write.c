/* SPDX-License-Identifier: MIT
 *
 * The JSON writer: what it writes is JSON whatever the tree holds, and reads back equal.
 */
#include "base/json.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_string(struct str s, const char *want)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write_string(s, &b, NULL), 0);
    assert_string_equal(b.ptr, want);
}

static void test_only_what_must_be_escaped_is(void **state)
{
    assert_string(STR(""), "\"\"");
    assert_string((struct str) { 0 }, "\"\"");
    assert_string(STR("a/b'<>&\x7f é😀\xe2\x80\xa8"), "\"a/b'<>&\x7f é😀\xe2\x80\xa8\"");
    assert_string(STR("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
    assert_string(STR("\0\x01\x1f"), "\"\\u0000\\u0001\\u001f\"");
}

#define BAD "\xef\xbf\xbd"

/* As many replacement characters as the Unicode standard advises, which is what Python does. */
static void test_broken_utf8_becomes_replacement_characters(void **state)
{
    assert_string(STR("\xff"), "\"" BAD "\"");
    assert_string(STR("a\x80z"), "\"a" BAD "z\"");
    assert_string(STR("\xe2\x82"), "\"" BAD "\""); /* cut off */
    assert_string(STR("\xe2\x82z"), "\"" BAD "z\"");
    assert_string(STR("\xf0\x9f\x98"), "\"" BAD "\"");
    assert_string(STR("\xc0\xaf"), "\"" BAD BAD "\""); /* overlong */
    assert_string(STR("\xe0\x80\x80"), "\"" BAD BAD BAD "\"");
    assert_string(STR("\xed\xa0\x80"), "\"" BAD BAD BAD "\""); /* surrogate */
    assert_string(STR("\xf4\x90\x80\x80"), "\"" BAD BAD BAD BAD "\"");
    assert_string(STR("\xf8\x88\x80\x80\x80"), "\"" BAD BAD BAD BAD BAD "\"");
    assert_string(STR("\xc3\"\xc3\n"), "\"" BAD "\\\"" BAD "\\n\"");
}

static void assert_real(double d, const char *want)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf b = BUF_INIT(100);
    assert_int_equal(json_write(json_number(a, d), JSON_COMPACT, &b, NULL), 0);
    assert_string_equal(b.ptr, want);
}

static void test_reals_are_short_and_stay_reals(void **state)
{
    assert_real(0, "0.0");
    assert_real(-0.0, "-0.0");
    assert_real(1, "1.0");
    assert_real(0.1, "0.1");
    assert_real(0.1 + 0.2, "0.30000000000000004");
    assert_real(100, "100.0");
    assert_real(5e-324, "5e-324");
    assert_real(DBL_MAX, "1.7976931348623157e308");
    assert_real(1e300, "1e300");
    assert_real(0x1p63, "9223372036854776000.0");
    assert_real(NAN, "null");
    assert_real(INFINITY, "null");
    assert_real(-INFINITY, "null");
}

static void test_a_comma_locale_changes_nothing(void **state)
{
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (setlocale(LC_ALL, names[i]) != NULL) {
            break;
        }
    }
    assert_real(1.5, "1.5");
    (void)setlocale(LC_ALL, "C");
}

/* Random bit patterns: every finite double reads back as itself. */
static void test_reals_round_trip(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf b = BUF_INIT(100);
    uint64_t bits = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double d;
        memcpy(&d, &bits, sizeof d);
        if (!isfinite(d)) {
            continue;
        }
        struct json *again = NULL;
        buf_reset(&b);
        assert_int_equal(json_write(json_number(a, d), JSON_COMPACT, &b, NULL), 0);
        assert_int_equal(json_parse(a, buf_str(&b), NULL, &again, NULL), 0);
        assert_int_equal(again->type, JSON_REAL);
        assert_memory_equal(&again->real, &d, sizeof d);
        arena_reset(a);
    }
}

static void test_integers(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf b = BUF_INIT(100);
    struct json *list = json_array(a);
    json_push(a, list, json_integer(a, INT64_MIN));
    json_push(a, list, json_integer(a, INT64_MAX));
    json_push(a, list, json_integer(a, 0));
    assert_int_equal(json_write(list, JSON_COMPACT, &b, NULL), 0);
    assert_string_equal(b.ptr, "[-9223372036854775808,9223372036854775807,0]");
}

static void test_pretty(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct json *v = NULL;
    struct str text = STR("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[],\"e\":\"x\"}");
    assert_int_equal(json_parse(a, text, NULL, &v, NULL), 0);
    assert_int_equal(json_write(v, JSON_PRETTY, &b, NULL), 0);
    assert_string_equal(b.ptr, "{\n"
                               "  \"a\": [\n"
                               "    1,\n"
                               "    {\n"
                               "      \"b\": null\n"
                               "    }\n"
                               "  ],\n"
                               "  \"c\": {},\n"
                               "  \"d\": [],\n"
                               "  \"e\": \"x\"\n"
                               "}\n");
    buf_reset(&b);
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), 0);
    assert_true(str_eq(buf_str(&b), text));
    buf_reset(&b);
    assert_int_equal(json_write(NULL, JSON_PRETTY, &b, NULL), 0);
    assert_string_equal(b.ptr, "null\n");
}

static void test_a_full_buffer_is_left_as_it_was(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    struct str text = STR("{\"a\":[1,2.5,\"x\\ny\"],\"b\":{\"c\":true}}");
    assert_int_equal(json_parse(a, text, NULL, &v, NULL), 0);
    for (enum json_style style = JSON_COMPACT; style <= JSON_PRETTY; style++) {
        int r = -1;
        for (size_t max = 4; r < 0; max++) {
            CLEANUP(buf) struct buf b = BUF_INIT(max);
            buf_adds(&b, "here");
            struct err e = { 0 };
            r = json_write(v, style, &b, &e);
            assert_int_equal(r, r == 0 ? 0 : -(int)ERR_LIMIT);
            assert_true(r == 0 ? b.len == max : str_eqc(buf_str(&b), "here"));
            assert_int_equal(b.ptr[b.len], '\0');
        }
    }
}

static void test_a_tree_that_holds_itself_ends_at_the_limit(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf b = BUF_INIT(100000);
    struct json *v = json_array(a);
    json_push(a, v, v);
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), -(int)ERR_LIMIT);
    assert_int_equal(b.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_must_be_escaped_is),
        cmocka_unit_test(test_broken_utf8_becomes_replacement_characters),
        cmocka_unit_test(test_reals_are_short_and_stay_reals),
        cmocka_unit_test(test_a_comma_locale_changes_nothing),
        cmocka_unit_test(test_reals_round_trip),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_pretty),
        cmocka_unit_test(test_a_full_buffer_is_left_as_it_was),
        cmocka_unit_test(test_a_tree_that_holds_itself_ends_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
