/* SPDX-License-Identifier: MIT
 *
 * Aligned columns: widths from the content, the last column wrapped under itself, foreign text
 * cleaned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "cli/table.h"

static void expect(const struct table *t, size_t width, bool color, const char *expected)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    buf_adds(&out, "");
    table_write(t, width, color, &out);
    assert_string_equal(out.ptr, expected);
}

static void test_columns(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct table t = { .arena = a,
                       .indent = 1,
                       .head = true,
                       .columns = { { "name" }, { "n", .right = true }, { "detail" } } };
    expect(&t, 80, false, "");
    table_cell(&t, STYLE_PLAIN, "a");
    table_cellf(&t, STYLE_PLAIN, "%d", 5);
    table_cell(&t, STYLE_PLAIN, "some words that wrap");
    table_cell(&t, STYLE_PLAIN, "longer");
    table_cell(&t, STYLE_PLAIN, "123");
    table_cell(&t, STYLE_PLAIN, "");
    expect(&t, 80, false,
           " name      n  detail\n"
           " a         5  some words that wrap\n"
           " longer  123\n");
    /* Nothing is squeezed below twenty columns. */
    expect(&t, 10, false,
           " name      n  detail\n"
           " a         5  some words that wrap\n"
           " longer  123\n");
}

static void test_wrap_under_itself(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct table t = { .arena = a, .columns = { { "" }, { "" } } };
    table_cell(&t, STYLE_PLAIN, "key");
    table_cell(&t, STYLE_PLAIN, "one two three four five six seven");
    expect(&t, 26, false, "key  one two three four\n     five six seven\n");
}

static void test_empty_columns_vanish(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct table t = { .arena = a, .head = true, .columns = { { "a" }, { "b" }, { "c" } } };
    table_cell(&t, STYLE_PLAIN, "1");
    table_cell(&t, STYLE_PLAIN, "");
    table_cell(&t, STYLE_PLAIN, "3");
    expect(&t, 80, false, "a  c\n1  3\n");
}

static void test_foreign_text(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct table t = { .arena = a, .columns = { { "", .max = 8 }, { "" } } };
    table_cell(&t, STYLE_PLAIN, "evil\033[2Jname");
    table_cell_str(&t, STYLE_PLAIN, STR("a\nb"));
    expect(&t, 80, false, "evil\\...  a\\nb\n");
}

static void test_color(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct table t = { .arena = a, .columns = { { "" }, { "" } } };
    table_cell(&t, STYLE_GOOD, "ok");
    table_cell(&t, STYLE_PLAIN, "x");
    expect(&t, 80, true, "\033[32mok\033[0m  x\n");
    expect(&t, 80, false, "ok  x\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_wrap_under_itself),
        cmocka_unit_test(test_empty_columns_vanish),
        cmocka_unit_test(test_foreign_text),
        cmocka_unit_test(test_color),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
