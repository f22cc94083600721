/* SPDX-License-Identifier: MIT
 *
 * Bodies in memory and in files: the same bytes either way, a bound that holds, nothing left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "gateway/body.h"

static char pattern[100000];

static void fill_pattern(void)
{
    for (size_t i = 0; i < sizeof pattern; i++) {
        pattern[i] = (char)(i * 7 % 251);
    }
}

static void feed(struct body *b, size_t len, size_t step)
{
    for (size_t at = 0; at < len; at += step) {
        size_t n = len - at < step ? len - at : step;
        assert_int_equal(body_add(b, str_n(pattern + at, n), NULL), 0);
    }
    assert_int_equal(body_close(b, NULL), 0);
    assert_int_equal(body_str(b).len, len);
    assert_memory_equal(body_str(b).ptr, pattern, len);
}

static size_t entries(const char *dir)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n;
}

static void what_memory_has_no_room_for_goes_to_a_file(void **state)
{
    char dir[] = "body-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct body_room room = { .bound = 150000, .dir = dir };
    struct body bodies[4];
    for (size_t i = 0; i < 4; i++) {
        body_init(&bodies[i], &room, sizeof pattern);
        body_expect(&bodies[i], sizeof pattern);
        feed(&bodies[i], sizeof pattern, 1000 + 700 * i);
        assert_true(room.held <= room.bound);
    }
    assert_int_equal(room.spilled, 3);
    assert_int_equal(room.held, sizeof pattern);
    assert_int_equal(entries(dir), 2);
    for (size_t i = 0; i < 4; i++) {
        body_rest(&bodies[i]); /* the bytes are still there for another attempt */
        assert_memory_equal(body_str(&bodies[i]).ptr, pattern, sizeof pattern);
        assert_int_equal(body_add(&bodies[i], STR("x"), NULL), -ERR_LIMIT);
        body_done(&bodies[i]);
        assert_int_equal(body_str(&bodies[i]).len, 0);
        body_done(&bodies[i]);
    }
    assert_int_equal(room.held, 0);
    assert_int_equal(rmdir(dir), 0);
}

static void small_ones_stay_in_memory(void **state)
{
    struct body_room room = { .bound = 10, .dir = "." };
    struct body b;
    body_init(&b, &room, sizeof pattern);
    feed(&b, 10000, 3000);
    assert_int_equal(room.spilled, 0);
    assert_int_equal(room.held, 10000);
    body_done(&b);
    assert_int_equal(room.held, 0);
}

static void without_a_place_for_files_memory_is_used(void **state)
{
    struct body_room room = { .bound = 10, .dir = "/nonexistent/place" };
    struct body b;
    body_init(&b, &room, sizeof pattern);
    feed(&b, 50000, 20000);
    assert_int_equal(room.spilled, 0);
    assert_null(room.dir);
    body_done(&b);
}

static void what_was_made_in_memory_is_taken_over(void **state)
{
    struct body_room room = { .bound = 60000, .dir = "." };
    struct body a, b;
    for (int i = 0; i < 2; i++) {
        struct buf made = BUF_INIT(sizeof pattern);
        struct body *to = i == 0 ? &a : &b;
        body_init(to, &room, sizeof pattern);
        buf_add(&made, str_n(pattern, 50000));
        assert_int_equal(body_adopt(to, &made, NULL), 0);
        assert_null(made.ptr);
        assert_memory_equal(body_str(to).ptr, pattern, 50000);
    }
    assert_int_equal(room.spilled, 1);
    assert_int_equal(room.held, 50000);
    body_done(&a);
    body_done(&b);
    assert_int_equal(room.held, 0);
}

static void count_freed(void *arg, nsec held)
{
    assert_true(held >= 0);
    (*(int *)arg)++;
}

static void what_is_expected_has_its_place(void **state)
{
    int freed = 0;
    size_t n;
    struct body_room room = { .bound = 60000, .dir = ".", .freed = count_freed, .arg = &freed };
    struct body a, b;
    body_init(&a, &room, sizeof pattern);
    body_init(&b, &room, sizeof pattern);
    assert_null(body_space(&a, &n));
    assert_true(body_fits(&room, 50000));
    body_expect(&a, 50000);
    assert_int_equal(room.held, 50000); /* before a byte of it has come */
    assert_false(body_fits(&room, 50000));
    assert_true(body_fits(&room, 1000));
    assert_int_equal(body_add(&a, str_n(pattern, 1000), NULL), 0);
    char *place = body_space(&a, &n);
    assert_int_equal(n, 49000);
    for (size_t at = 1000; at < 50000; at += 7000) {
        assert_ptr_equal(body_space(&a, &n), place + at - 1000);
        memcpy(place + at - 1000, pattern + at, 7000);
        assert_int_equal(body_add(&a, str_n(place + at - 1000, 7000), NULL), 0);
    }
    assert_null(body_space(&a, &n));
    assert_ptr_equal(body_str(&a).ptr, place - 1000);
    assert_memory_equal(body_str(&a).ptr, pattern, 50000);
    body_expect(&b, 50000); /* no room: to a file, and none to read to */
    assert_null(body_space(&b, &n));
    feed(&b, 50000, 5000);
    assert_int_equal(room.spilled, 1);
    assert_int_equal(freed, 0);
    body_done(&a);
    body_done(&b);
    assert_int_equal(freed, 1);
    assert_int_equal(room.held, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_memory_has_no_room_for_goes_to_a_file),
        cmocka_unit_test(small_ones_stay_in_memory),
        cmocka_unit_test(without_a_place_for_files_memory_is_used),
        cmocka_unit_test(what_was_made_in_memory_is_taken_over),
        cmocka_unit_test(what_is_expected_has_its_place),
    };
    fill_pattern();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
