/* SPDX-License-Identifier: MIT
 *
 * Arena memory is zeroed, aligned, disjoint and stays put; one free takes all.
 */
#include "base/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_filled(const unsigned char *p, size_t n, unsigned char with)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(p[i], with);
    }
}

/* Sizes around alignment, the block and beyond it. */
static const size_t sizes[] = { 0,    1,    7,    8,    15,   16,   17,   100,   2031,  2032,
                                2033, 4000, 8000, 8127, 8128, 8129, 8192, 20000, 100000 };

static void test_pieces_are_zeroed_aligned_and_disjoint(void **state)
{
    struct arena *a = arena_new();
    unsigned char *pieces[ARRAY_LEN(sizes) * 3];
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        size_t n = sizes[i % ARRAY_LEN(sizes)];
        pieces[i] = arena_alloc(a, n);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        assert_filled(pieces[i], n, 0);
        memset(pieces[i], (int)(i + 1), n);
    }
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        assert_filled(pieces[i], sizes[i % ARRAY_LEN(sizes)], (unsigned char)(i + 1));
    }
    assert_null(arena_free(a));
}

static void test_reset_gives_zeroed_memory_again(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    arena_reset(a);
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            unsigned char *p = arena_alloc(a, sizes[i]);
            assert_filled(p, sizes[i], 0);
            memset(p, 0xee, sizes[i]);
        }
        assert_true(arena_used(a) > 100000);
        arena_reset(a);
        assert_int_equal(arena_used(a), 0);
    }
}

static void test_strings(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    char source[] = "abc";
    char *copy = arena_dup(a, str_of(source));
    source[0] = 'X';
    assert_string_equal(copy, "abc");
    assert_string_equal(arena_dup(a, (struct str) { 0 }), "");
    struct str s = arena_str(a, STR("a\0b"));
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.ptr, "a\0b", 4);
    assert_string_equal(arena_printf(a, "%s-%d", "x", 5), "x-5");
    char big[30000];
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_string_equal(arena_printf(a, "%s", big), big);
}

static void test_free_accepts_null(void **state)
{
    assert_null(arena_free(NULL));
    CLEANUP(arena) struct arena *a = NULL;
    assert_null(a);
}

struct pair {
    int x, y;
};

static void test_arrays_and_types(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct pair *p = ARENA_NEW(a, struct pair);
    assert_int_equal(p->x + p->y, 0);
    struct pair *many = arena_array(a, 1000, sizeof *many);
    assert_int_equal(many[999].y, 0);
    assert_non_null(arena_array(a, 0, 8));
}

static void test_x_functions(void **state)
{
    CLEANUP(free) char *s = xstrdup("hello");
    assert_string_equal(s, "hello");
    s = xrealloc(s, 100);
    assert_string_equal(s, "hello");
    CLEANUP(free) int *zeros = xcalloc(10, sizeof *zeros);
    assert_int_equal(zeros[9], 0);
    CLEANUP(free) void *nothing = xmalloc(0);
    assert_non_null(nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_zeroed_aligned_and_disjoint),
        cmocka_unit_test(test_reset_gives_zeroed_memory_again),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_free_accepts_null),
        cmocka_unit_test(test_arrays_and_types),
        cmocka_unit_test(test_x_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
