/* SPDX-License-Identifier: MIT
 *
 * The JSON reader: RFC 8259 and nothing else, exact positions, exact limits, and no input that
 * makes it slow or deep.
 */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int parse(struct str text, const struct json_limits *limits, struct err *e)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    int r = json_parse(a, text, limits, &v, e);
    assert_true((r == 0) == (v != NULL));
    return r;
}

static void assert_reads(const char *text, const char *want)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct json *v = NULL;
    struct err e = { 0 };
    if (json_parse(a, str_of(text), NULL, &v, &e) != 0) {
        fail_msg("%s: %s", text, e.msg);
    }
    assert_int_equal(e.code, ERR_OK);
    assert_int_equal(json_write(v, JSON_COMPACT, &b, NULL), 0);
    assert_string_equal(b.ptr, want);
}

static void test_values(void **state)
{
    assert_reads("null", "null");
    assert_reads(" true ", "true");
    assert_reads("\t\r\n[ ]\n", "[]");
    assert_reads("{ }", "{}");
    assert_reads("[1 , [2,{\"a\" :[]}],\"x\"]", "[1,[2,{\"a\":[]}],\"x\"]");
    assert_reads("{\"b\":1,\"a\":2}", "{\"b\":1,\"a\":2}"); /* order is kept */
    assert_reads("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"",
                 "\"\\\"\\\\/\\b\\f\\n\\r\\té😀\"");
    assert_reads("\"\\u0000\"", "\"\\u0000\"");
    assert_reads("{\"\":{\"\":0}}", "{\"\":{\"\":0}}");
}

static void assert_number(const char *text, enum json_type type, int64_t i, double d)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    assert_int_equal(json_parse(a, str_of(text), NULL, &v, NULL), 0);
    assert_int_equal(v->type, type);
    if (type == JSON_INT) {
        assert_int_equal(v->integer, i);
    } else {
        assert_true(v->real == d);
    }
}

static void test_numbers(void **state)
{
    assert_number("0", JSON_INT, 0, 0);
    assert_number("-0", JSON_INT, 0, 0);
    assert_number("9223372036854775807", JSON_INT, INT64_MAX, 0);
    assert_number("-9223372036854775808", JSON_INT, INT64_MIN, 0);
    assert_number("9223372036854775808", JSON_REAL, 0, 0x1p63);
    assert_number("18446744073709551615", JSON_REAL, 0, 0x1p64);
    assert_number("-9223372036854775809", JSON_REAL, 0, -0x1p63);
    assert_number("123456789012345678901234567890", JSON_REAL, 0, 123456789012345678901234567890.0);
    assert_number("1.0", JSON_REAL, 0, 1);
    assert_number("1e5", JSON_REAL, 0, 100000);
    assert_number("-1.5E-3", JSON_REAL, 0, -0.0015);
    assert_number("1e-999", JSON_REAL, 0, 0);
    assert_number("1.7976931348623157e308", JSON_REAL, 0, 0x1.fffffffffffffp1023);
    assert_number("4.9406564584124654e-324", JSON_REAL, 0, 0x1p-1074);
}

static void test_refusals(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "[1,]",
        "{\"a\":1,}",
        "[1 2]",
        "{\"a\" 1}",
        "{a:1}",
        "{'a':1}",
        "[1]x",
        "nul",
        "True",
        "NaN",
        "Infinity",
        "-Infinity",
        "+1",
        "01",
        "1.",
        ".5",
        "1e",
        "0x1",
        "1e999",
        "-1e999",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ude00\"",
        "\"\t\"",
        "\"\n\"",
        "[",
        "{",
        "{\"a\"",
        "{\"a\":",
        "]",
        "/* c */ 1",
        "1 // c",
        "[1,,2]",
        "{,}",
        "\xef\xbb\xbf\x31",
        "\"\x80\"",
        "\"\xed\xa0\x80\"",
        "{1:2}",
        "[\"a\":1]",
        "--1",
        "1 1",
        "\"\xc3\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };
        if (parse(str_of(bad[i]), NULL, &e) == 0) {
            fail_msg("accepted: %s", bad[i]);
        }
        assert_int_equal(e.code, ERR_PARSE);
        assert_true(str_starts(str_of(e.msg), STR("line ")));
        assert_int_equal(parse(str_of(bad[i]), NULL, NULL), -(int)ERR_PARSE);
    }
    assert_int_equal(parse(STR("1\0"), NULL, NULL), -(int)ERR_PARSE);
    assert_int_equal(parse(STR("\"\0\""), NULL, NULL), -(int)ERR_PARSE);
    assert_int_equal(parse((struct str) { 0 }, NULL, NULL), -(int)ERR_PARSE);
}

static void assert_error(const char *text, const char *want)
{
    struct err e = { 0 };
    assert_true(parse(str_of(text), NULL, &e) < 0);
    if (!str_starts(str_of(e.msg), str_of(want))) {
        fail_msg("'%s' instead of '%s'", e.msg, want);
    }
}

static void test_error_positions(void **state)
{
    assert_error("[1,\n 2,\n x]", "line 3, column 2: ");
    assert_error("{\"é€😀\": tru}", "line 1, column 9: "); /* characters, not bytes */
    assert_error("[1", "line 1, column 3: ");
    assert_error("{\n  \"a\": 1,\n  \"b\": {\"a\": 2},\n  \"a\": 3\n}",
                 "line 4, column 3: duplicate key 'a' (first on line 2)");
    assert_error("{\"\\u0061\":1,\"a\":2}", "line 1, column 13: duplicate key 'a'");
    assert_error("{\"x\\u001b\":1,\"x\\u001b\":2}", "line 1, column 14: duplicate key 'x?'");
    assert_error("[{\"k\":[{\"a\":1,\"a\":2}]}]", "line 1, column 15: duplicate key 'a'");
}

static void test_value_positions(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    struct str text = STR("\n{ \"é\" : [ 1, -2.5,\n\t\"]},:\\\"\" ,{\"k\":null} ],\r\n\"b\":true}");
    assert_int_equal(json_parse(a, text, NULL, &v, NULL), 0);
    struct json *list = json_get(v, "é");
    const struct json *const values[] = {
        v,
        list,
        json_item(list, 0),
        json_item(list, 1),
        json_item(list, 2),
        json_item(list, 3),
        json_get(json_item(list, 3), "k"),
        json_get(v, "b"),
    };
    static const uint32_t want[][2] = { { 2, 1 }, { 2, 9 },  { 2, 11 }, { 2, 14 },
                                        { 3, 2 }, { 3, 12 }, { 3, 17 }, { 4, 5 } };
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        assert_int_equal(values[i]->line, want[i][0]);
        assert_int_equal(values[i]->column, want[i][1]);
    }
    assert_int_equal(v->object.members[0].column, 3);
    assert_int_equal(v->object.members[1].line, 4);
    assert_int_equal(v->object.members[1].column, 1);
    assert_int_equal(json_item(list, 3)->object.members[0].column, 13);
}

static void test_limits_are_exact(void **state)
{
    struct json_limits l = { .max_depth = 3 };
    assert_int_equal(parse(STR("[[[1]],{\"a\":[]}]"), &l, NULL), 0);
    assert_int_equal(parse(STR("[[[[]]]]"), &l, NULL), -(int)ERR_LIMIT);
    assert_int_equal(parse(STR("\"[[[[[[\""), &l, NULL), 0); /* brackets in a string are text */
    assert_int_equal(parse(STR("\"\\\"[[[[[\""), &l, NULL), 0);

    l = (struct json_limits) { .max_values = 4 };
    assert_int_equal(parse(STR("[1,2,3]"), &l, NULL), 0);
    assert_int_equal(parse(STR("[1,2,3,4]"), &l, NULL), -(int)ERR_LIMIT);
    assert_int_equal(parse(STR("{\"a\":[],\"b\":{},\"c\":\",,,,[[\"}"), &l, NULL), 0);
    assert_int_equal(parse(STR("[[],[],[],[]]"), &l, NULL), -(int)ERR_LIMIT);

    l = (struct json_limits) { .max_bytes = 4 };
    assert_int_equal(parse(STR("1234"), &l, NULL), 0);
    struct err e = { 0 };
    assert_int_equal(parse(STR("12345"), &l, &e), -(int)ERR_LIMIT);
    assert_int_equal(e.code, ERR_LIMIT);
}

static void test_the_default_depth(void **state)
{
    char text[600];
    memset(text, '[', 300);
    memset(text + 300, ']', 300);
    assert_int_equal(parse(str_n(text + 300 - 256, 512), NULL, NULL), 0);
    assert_int_equal(parse(str_n(text + 300 - 257, 514), NULL, NULL), -(int)ERR_LIMIT);
    struct json_limits l = { .max_depth = 300 };
    assert_int_equal(parse(str_n(text, 600), &l, NULL), 0);
}

static void test_hostile_nesting_is_refused_early(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    char *to;
    size_t n = (size_t)4 << 20;
    assert_int_equal(buf_reserve(&b, n, &to, NULL), 0);
    memset(to, '[', n);
    buf_commit(&b, n);
    struct err e = { 0 };
    assert_int_equal(parse(buf_str(&b), NULL, &e), -(int)ERR_LIMIT);
    assert_string_equal(e.msg, "line 1, column 257: nested too deep");
}

/* With a comparison of all pairs these would take minutes; the test's timeout would end them. */
static void test_many_keys(void **state)
{
    enum { COUNT = 300000 };
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    buf_adds(&b, "{");
    for (int i = 0; i < COUNT; i++) {
        buf_addf(&b, "%s\"key %d\":%d", i == 0 ? "" : ",\n", i, i);
    }
    size_t len = b.len;
    buf_adds(&b, "}");
    struct json *v = NULL;
    assert_int_equal(json_parse(a, buf_str(&b), NULL, &v, NULL), 0);
    assert_int_equal(json_len(v), COUNT);
    assert_int_equal(json_int(json_get(v, "key 299999"), -1), 299999);
    assert_true(json_equal(v, json_copy(a, v)));

    buf_consume(&b, 0);
    b.len = len;
    buf_adds(&b, ",\n\"key 7\":1,\n\"key 3\":1}");
    struct err e = { 0 };
    assert_int_equal(json_parse(a, buf_str(&b), NULL, &v, &e), -(int)ERR_PARSE);
    assert_string_equal(e.msg, "line 300001, column 1: duplicate key 'key 7' (first on line 8)");
}

static void test_without_positions(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json_limits limits = { .no_positions = true };
    struct json *v = NULL;
    struct json *w = NULL;
    struct err e = { 0 };
    struct str text = STR("{\"a\":[1,{\"b\\\\\":\"x\\\"y\"}],\"c\":null}");
    assert_int_equal(json_parse(a, text, &limits, &v, &e), 0);
    assert_int_equal(json_parse(a, text, NULL, &w, &e), 0);
    assert_true(json_equal(v, w));
    assert_int_equal(v->line, 0);
    assert_int_equal(v->object.members[0].line, 0);
    /* but what is wrong is told as ever */
    assert_int_equal(json_parse(a, STR("{\"a\":1,\n\"a\":2}"), &limits, &v, &e), -(int)ERR_PARSE);
    assert_string_equal(e.msg, "line 2, column 1: duplicate key 'a' (first on line 1)");
    assert_int_equal(json_parse(a, STR("[1,\n x]"), &limits, &v, &e), -(int)ERR_PARSE);
    assert_non_null(strstr(e.msg, "line 2, column 2"));
}

/* Small texts are read in room of fixed size: the densest ones must fit as well. */
static void test_dense_texts_of_every_length(void **state)
{
    static const char *const items[] = { "1,", "[],", "{},", "\"\",", "[[]],", "\n\"a\"," };
    for (size_t i = 0; i < ARRAY_LEN(items); i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        buf_adds(&text, "[");
        for (size_t n = 1; text.len < 2000; n++) {
            CLEANUP(arena) struct arena *a = arena_new();
            struct json *v = NULL;
            buf_adds(&text, items[i]);
            text.ptr[text.len - 1] = ']';
            assert_int_equal(json_parse(a, buf_str(&text), NULL, &v, NULL), 0);
            assert_int_equal(json_len(v), n);
            text.ptr[text.len - 1] = ',';
        }
    }
}

static void test_strings_are_copies(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    char text[] = "{\"key\":\"value\"}";
    struct json *v = NULL;
    assert_int_equal(json_parse(a, str_of(text), NULL, &v, NULL), 0);
    memset(text, '#', sizeof text - 1);
    assert_string_equal(v->object.members[0].key.ptr, "key");
    assert_string_equal(json_cstring(json_get(v, "key"), ""), "value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_error_positions),
        cmocka_unit_test(test_value_positions),
        cmocka_unit_test(test_limits_are_exact),
        cmocka_unit_test(test_the_default_depth),
        cmocka_unit_test(test_hostile_nesting_is_refused_early),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_without_positions),
        cmocka_unit_test(test_dense_texts_of_every_length),
        cmocka_unit_test(test_strings_are_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
