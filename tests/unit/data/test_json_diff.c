/* SPDX-License-Identifier: MIT
 *
 * Differences are named by their place, one line each; what a port waves through is none.
 */
#include "data/json_diff.h"

#include "../values.h"

static void assert_diff(const char *left, const char *right, const char *want)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct json_diff d;
    json_diff(tree(left), tree(right), NULL, arena, &d);
    assert_int_equal(json_diff_write(&d, &out, NULL), 0);
    if (!str_eqc(buf_str(&out), want)) {
        fail_msg("%s against %s gives\n%.*sinstead of\n%s", left, right, STR_ARG(buf_str(&out)),
                 want);
    }
}

static void test_equal(void **state)
{
    assert_diff("{a: 1, b: [x, {c: null}]}", "{b: [x, {c: null}], a: 1.0}", "");
    assert_diff("[]", "[]", "");
    assert_diff("a", "a", "");
}

static void test_members(void **state)
{
    assert_diff("{a: 1, b: 2}", "{a: 1, b: 3}", "/b: 2 is now 3\n");
    assert_diff("{a: 1}", "{b: 1}", "/a: removed 1\n/b: added 1\n");
    assert_diff("{a: {b: {c: x}}}", "{a: {b: {c: y}}}", "/a/b/c: \"x\" is now \"y\"\n");
    assert_diff("{a/b: 1, c~d: 1}", "{a/b: 2, c~d: 2}", "/a~1b: 1 is now 2\n/c~0d: 1 is now 2\n");
    assert_diff("{a: [1]}", "{a: {b: 1}}", "/a: [1] is now {\"b\":1}\n");
    assert_diff("1", "x", "(whole): 1 is now \"x\"\n");
    assert_diff("{a: null}", "{}", "/a: removed null\n");
}

static void test_arrays(void **state)
{
    assert_diff("[1, 2, 3]", "[1, 5, 3]", "/1: 2 is now 5\n");
    assert_diff("[1, 3]", "[1, 2, 3]", "/1: added 2\n");
    assert_diff("[1, 2, 3]", "[2, 3]", "/0: removed 1\n");
    assert_diff("[a, b]", "[a, b, {c: 1}]", "/2: added {\"c\":1}\n");
    assert_diff("[1, 1]", "[1, 1, 1]", "/2: added 1\n");
    assert_diff("[]", "[1]", "/0: added 1\n");
}

static void test_long_strings_show_where(void **state)
{
    CLEANUP(buf) struct buf left = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf right = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 200; i++) {
        buf_adds(&left, "\xc3\xa4");
        buf_adds(&right, i == 150 ? "x" : "\xc3\xa4");
    }
    struct json_diff d;
    json_diff(json_string(arena, buf_str(&left)), json_string(arena, buf_str(&right)), NULL, arena,
              &d);
    assert_int_equal(d.len, 1);
    assert_int_equal(json_diff_write(&d, &out, NULL), 0);
    assert_true(str_starts(buf_str(&out), STR("(whole): at byte 300: \"…")));
    assert_true(str_find(buf_str(&out), STR("äxä")) < out.len);
    assert_true(str_is_utf8(buf_str(&out)));
    assert_true(out.len < 400);
}

static bool ignore_b(void *arg, struct str pointer, const struct json *left,
                     const struct json *right)
{
    size_t *asked = arg;
    (*asked)++;
    return str_eqc(pointer, "/b") || str_eqc(pointer, "/new");
}

static void test_ignored(void **state)
{
    size_t asked = 0;
    struct json_diff_opts opts = { .ignore = ignore_b, .arg = &asked };
    struct json_diff d;
    json_diff(tree("{a: 1, b: 2, c: 3}"), tree("{a: 1, b: 9, c: 4, new: 1}"), &opts, arena, &d);
    assert_int_equal(asked, 3); /* not for what is equal */
    assert_int_equal(d.len, 1);
    assert_true(str_eqc(d.changes[0].pointer, "/c"));
}

static void test_bounds(void **state)
{
    struct json_diff_opts opts = { .max = 2 };
    struct json_diff d;
    json_diff(tree("[1, 2, 3, 4]"), tree("[5, 6, 7, 8]"), &opts, arena, &d);
    assert_int_equal(d.len, 2);
    assert_true(d.more);
    struct json *deep = json_array(arena);
    struct json *other = json_array(arena);
    struct json *l = deep;
    struct json *r = other;
    for (int i = 0; i < 100000; i++) {
        struct json *x = json_array(arena);
        struct json *y = json_array(arena);
        json_push(arena, l, x);
        json_push(arena, r, y);
        l = x;
        r = y;
    }
    json_push(arena, r, json_integer(arena, 1));
    json_diff(deep, other, NULL, arena, &d);
    assert_int_equal(d.len, 1);
    json_diff(NULL, deep, NULL, arena, &d);
    assert_int_equal(d.changes[0].kind, JSON_ADDED);
    json_diff(NULL, NULL, NULL, arena, &d);
    assert_int_equal(d.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),   cmocka_unit_test(test_members),
        cmocka_unit_test(test_arrays),  cmocka_unit_test(test_long_strings_show_where),
        cmocka_unit_test(test_ignored), cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
