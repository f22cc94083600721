/* SPDX-License-Identifier: MIT
 *
 * Paths compared as text: slashes at the end, common beginnings, "..".
 */
#include "base/path.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_below(void **state)
{
    assert_true(path_is_below("/a/b", "/a"));
    assert_true(path_is_below("/a/b", "/a/"));
    assert_true(path_is_below("/a", "/a"));
    assert_true(path_is_below("/a", "/a/"));
    assert_true(path_is_below("/a", "/"));
    assert_true(path_is_below("a/b", "a"));
    assert_false(path_is_below("/ab", "/a"));
    assert_false(path_is_below("/ab", "/a/"));
    assert_false(path_is_below("/", "/a"));
    assert_false(path_is_below("a", "/a"));
    assert_false(path_is_below("ab", "a"));
}

static void test_inner(void **state)
{
    assert_true(path_is_inner(STR("a")));
    assert_true(path_is_inner(STR("a/b")));
    assert_true(path_is_inner(STR("a/..b/c..")));
    assert_true(path_is_inner(STR("./a")));
    assert_false(path_is_inner(STR_EMPTY));
    assert_false(path_is_inner(STR("/a")));
    assert_false(path_is_inner(STR("..")));
    assert_false(path_is_inner(STR("../a")));
    assert_false(path_is_inner(STR("a/../b")));
    assert_false(path_is_inner(STR("a/..")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_below),
        cmocka_unit_test(test_inner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
