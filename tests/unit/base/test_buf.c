/* SPDX-License-Identifier: MIT
 *
 * A buffer never passes its maximum, is unchanged by an append that would, and always ends in a
 * NUL.
 */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_the_maximum_is_exact(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(4);
    struct err e = { 0 };
    assert_int_equal(buf_append(&b, STR("abcd"), &e), 0);
    assert_int_equal(buf_append(&b, STR(""), &e), 0);
    assert_int_equal(e.code, ERR_OK);
    assert_int_equal(buf_append_c(&b, 'e', &e), -(int)ERR_LIMIT);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_string_equal(b.ptr, "abcd");
    assert_int_equal(buf_printf(&b, &e, "%d", 1), -(int)ERR_LIMIT);
    assert_string_equal(b.ptr, "abcd");
    assert_int_equal(buf_append(&b, str_n("x", SIZE_MAX), &e), -(int)ERR_LIMIT);
    assert_int_equal(b.len, 4);
}

static void test_every_small_maximum(void **state)
{
    for (size_t max = 0; max < 200; max++) {
        CLEANUP(buf) struct buf b = BUF_INIT(max);
        size_t n = 0;
        while (buf_append_c(&b, 'x', NULL) == 0) {
            n++;
            assert_int_equal(b.ptr[n], '\0');
        }
        assert_int_equal(n, max);
        assert_int_equal(b.len, max);
    }
}

static void test_a_huge_maximum_allocates_little(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(SIZE_MAX / 2);
    assert_int_equal(buf_append(&b, STR("abc"), NULL), 0);
    assert_true(b.cap < 4096);
    assert_string_equal(b.ptr, "abc");
}

static void test_printf_and_bytes(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    assert_int_equal(buf_printf(&b, NULL, "%s-%05d", "a", 42), 0);
    assert_int_equal(buf_append(&b, STR("\0z"), NULL), 0);
    assert_int_equal(b.len, 9);
    assert_memory_equal(b.ptr, "a-00042\0z", 10);
    assert_true(str_eq(buf_str(&b), STR("a-00042\0z")));
}

static void test_own_text(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    assert_int_equal(buf_str(&b).len, 0);
    assert_non_null(buf_str(&b).ptr);
    buf_add(&b, STR("a"));
    buf_adds(&b, "b");
    buf_addf(&b, "%c", 'c');
    assert_string_equal(b.ptr, "abc");
}

static void test_reserve_and_commit(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(10);
    char *to = NULL;
    assert_int_equal(buf_append(&b, STR("ab"), NULL), 0);
    assert_int_equal(buf_reserve(&b, 9, &to, NULL), -(int)ERR_LIMIT);
    assert_int_equal(buf_reserve(&b, 8, &to, NULL), 0);
    memcpy(to, "cdefghij", 8);
    buf_commit(&b, 3);
    assert_string_equal(b.ptr, "abcde");
}

static void test_consume_and_reset(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(100);
    buf_consume(&b, 5); /* empty, never allocated */
    buf_reset(&b);
    buf_adds(&b, "hello world");
    buf_consume(&b, 0);
    buf_consume(&b, 6);
    assert_string_equal(b.ptr, "world");
    buf_consume(&b, 99);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.ptr, "");
    buf_adds(&b, "again");
    assert_string_equal(b.ptr, "again");
    buf_reset(&b);
    assert_int_equal(b.len, 0);
}

static void test_take_hands_over(void **state)
{
    struct buf b = BUF_INIT(100);
    size_t len = 9;
    char *empty = buf_take(&b, &len);
    assert_string_equal(empty, "");
    assert_int_equal(len, 0);
    free(empty);
    buf_adds(&b, "mine");
    char *text = buf_take(&b, &len);
    assert_string_equal(text, "mine");
    assert_int_equal(len, 4);
    assert_null(b.ptr);
    assert_int_equal(b.max, 100); /* still bounded */
    free(text);
    buf_done(&b);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_maximum_is_exact),
        cmocka_unit_test(test_every_small_maximum),
        cmocka_unit_test(test_a_huge_maximum_allocates_little),
        cmocka_unit_test(test_printf_and_bytes),
        cmocka_unit_test(test_own_text),
        cmocka_unit_test(test_reserve_and_commit),
        cmocka_unit_test(test_consume_and_reset),
        cmocka_unit_test(test_take_hands_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
