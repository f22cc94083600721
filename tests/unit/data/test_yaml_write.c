/* SPDX-License-Identifier: MIT
 *
 * What yaml_write() writes reads back equal, whatever strings the tree holds.
 */
#include "data/yaml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_survives(struct arena *a, const struct json *v)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    struct json *again = NULL;
    assert_int_equal(yaml_write(v, &b, &e), 0);
    if (yaml_parse(a, buf_str(&b), "again", NULL, &again, &e) != 0) {
        fail_msg("%s: %s", b.ptr, e.msg);
    }
    if (!json_equal(v, again)) {
        fail_msg("not the same: %s", b.ptr);
    }
}

static void test_awkward_strings(void **state)
{
    static const struct str awkward[] = {
        { "", 0 },
        { " ", 1 },
        { "true", 4 },
        { "True", 4 },
        { "null", 4 },
        { "~", 1 },
        { "12", 2 },
        { "1e5", 3 },
        { "0x1f", 4 },
        { "0o17", 4 },
        { "1.5", 3 },
        { ".5", 2 },
        { ".inf", 4 },
        { ".nan", 4 },
        { "yes", 3 },
        { "N", 1 },
        { "a: b", 4 },
        { "a #b", 4 },
        { "- a", 3 },
        { "?", 1 },
        { "*x", 2 },
        { "&x", 2 },
        { "!x", 2 },
        { "%x", 2 },
        { "@x", 2 },
        { "`", 1 },
        { "'", 1 },
        { "\"", 1 },
        { "a\nb", 3 },
        { "a\n", 2 },
        { "\ta", 2 },
        { "a\\b", 3 },
        { "---", 3 },
        { "...", 3 },
        { "<<", 2 },
        { "a\0b", 3 },
        { "\x1b[0m", 4 },
        { "\x7f", 1 },
        { "\xc2\x85", 2 },
        { "\xc2\x80", 2 },
        { "\xe2\x80\xa8", 3 },
        { "\xe2\x80\xa9", 3 },
        { "\xef\xbb\xbf", 3 },
        { "\xef\xbf\xbe", 3 },
        { "\xef\xbf\xbf", 3 },
        { "é😀", 6 },
        { "[x]", 3 },
        { "{x}", 3 },
        { "x,y", 3 },
        { "x:", 2 },
        { "-", 1 },
        { "2001-12-14", 10 },
        { "1_000", 5 },
        { "=", 1 },
        { "a b", 3 },
    };
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *list = json_array(a);
    struct json *map = json_object(a);
    for (size_t i = 0; i < ARRAY_LEN(awkward); i++) {
        struct json *s = json_string(a, awkward[i]);
        assert_survives(a, s);
        json_push(a, list, s);
        json_set(a, map, awkward[i], s);
    }
    assert_survives(a, list);
    assert_survives(a, map);
}

static void test_every_scalar_and_nesting(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v = NULL;
    struct str text = STR("{\"a\":[[],{},[[1,[2]],{\"b\":[{\"c\":{}}]}],null,true,-5,1.5,1e300],"
                          "\"b\":{\"c\":{\"d\":{\"e\":\"f\"}}},\"g\":\"\"}");
    assert_int_equal(json_parse(a, text, NULL, &v, NULL), 0);
    assert_survives(a, v);
    assert_survives(a, json_get(v, "a"));
    assert_survives(a, json_object(a));
    assert_survives(a, json_array(a));
    assert_survives(a, json_null(a));
    assert_survives(a, json_number(a, 0.1));
}

static void test_a_key_longer_than_readers_like(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    char key[5000];
    memset(key, 'k', sizeof key);
    struct json *v = json_object(a);
    json_set(a, v, str_n(key, 1030), json_integer(a, 1));
    json_set(a, v, str_n(key, sizeof key), json_array(a));
    struct json *inner = json_object(a);
    json_set(a, inner, str_n(key, sizeof key), json_copy(a, v));
    json_setc(a, v, "inner", inner);
    assert_survives(a, v);
}

static void test_for_people(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct json *v = NULL;
    struct str text = STR("{\"model\":\"gpt-5\",\"turns\":3,\"tools\":[\"a\",\"b c\"],\"env\":{}}");
    assert_int_equal(json_parse(a, text, NULL, &v, NULL), 0);
    assert_int_equal(yaml_write(v, &b, NULL), 0);
    assert_string_equal(b.ptr, "model: gpt-5\nturns: 3\ntools:\n  - a\n  - \"b c\"\nenv: {}\n");
}

static void test_limits(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf small = BUF_INIT(10);
    assert_int_equal(yaml_write(json_cstr(a, "a long string"), &small, NULL), -(int)ERR_LIMIT);
    struct json *v = json_array(a);
    for (int i = 0; i < 100000; i++) {
        struct json *outer = json_array(a);
        json_push(a, outer, v);
        v = outer;
    }
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    assert_int_equal(yaml_write(v, &b, NULL), -(int)ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_awkward_strings),
        cmocka_unit_test(test_every_scalar_and_nesting),
        cmocka_unit_test(test_a_key_longer_than_readers_like),
        cmocka_unit_test(test_for_people),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
