/* SPDX-License-Identifier: MIT
 *
 * Ids are well-formed UUIDs of version 7, differ, and sort by the time of their birth.
 */
#include "base/id.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static void test_form(void **state)
{
    for (int round = 0; round < 100; round++) {
        char id[ID_LEN];
        assert_ptr_equal(id_new(id), id);
        assert_int_equal(strlen(id), 36);
        for (int i = 0; i < 36; i++) {
            bool dash = i == 8 || i == 13 || i == 18 || i == 23;
            assert_true(dash ? id[i] == '-' : isdigit(id[i]) || (id[i] >= 'a' && id[i] <= 'f'));
        }
        assert_int_equal(id[14], '7');
        assert_non_null(strchr("89ab", id[19]));
    }
}

static uint64_t milliseconds(const char *id)
{
    char hex[13];
    memcpy(hex, id, 8);
    memcpy(hex + 8, id + 9, 4);
    hex[12] = '\0';
    return strtoull(hex, NULL, 16);
}

static void test_the_time_is_inside(void **state)
{
    char id[ID_LEN];
    uint64_t before = (uint64_t)(clock_wall() / NSEC_PER_MS);
    (void)id_new(id);
    uint64_t after = (uint64_t)(clock_wall() / NSEC_PER_MS);
    assert_true(milliseconds(id) >= before && milliseconds(id) <= after);
}

static void test_ids_of_later_milliseconds_sort_later(void **state)
{
    char early[ID_LEN];
    char late[ID_LEN];
    (void)id_new(early);
    do {
        (void)id_new(late);
    } while (milliseconds(late) == milliseconds(early));
    assert_true(strcmp(early, late) < 0);
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void test_ten_thousand_differ(void **state)
{
    enum { COUNT = 10000 };
    char(*ids)[ID_LEN] = calloc(COUNT, ID_LEN);
    assert_non_null(ids);
    for (int i = 0; i < COUNT; i++) {
        (void)id_new(ids[i]);
    }
    qsort(ids, COUNT, ID_LEN, compare);
    for (int i = 1; i < COUNT; i++) {
        assert_string_not_equal(ids[i - 1], ids[i]);
    }
    free(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_the_time_is_inside),
        cmocka_unit_test(test_ids_of_later_milliseconds_sort_later),
        cmocka_unit_test(test_ten_thousand_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
