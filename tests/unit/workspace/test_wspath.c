/* SPDX-License-Identifier: MIT
 *
 * Paths of agents: many spellings of one file, and ways out.
 */
#include "../values.h"

#include <limits.h>
#include <string.h>

#include "workspace/wspath.h"

static void spellings_of_one_file(void **state)
{
    static const char *const rows[][3] = {
        { "/workspace", "a", "a" },
        { "/workspace", "./a", "a" },
        { "/workspace", "/workspace/a", "a" },
        { "/workspace/", "//workspace///a/", "a" },
        { "/workspace", "b/../a", "a" },
        { "/workspace", "../workspace/a", "a" },
        { "/workspace", "/../workspace/./a", "a" },
        { "/srv/./x/../ws", "/srv/ws/a/b", "a/b" },
        { "", "/workspace/a", "a" },
        { "/", "/a/../b", "b" },
        { "/workspace", "..a/...", "..a/..." },
        { "/workspace", ".", "." },
        { "/workspace", "/workspace", "." },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *path = NULL;
        assert_true(wspath_fold(arena, str_of(rows[i][0]), str_of(rows[i][1]), &path));
        assert_string_equal(path, rows[i][2]);
    }
}

static void ways_out(void **state)
{
    static const char *const rows[] = { "", "..", "../x", "a/../../x", "/", "/workspaces/a", "/x" };
    const char *path;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_false(wspath_fold(arena, STR_EMPTY, str_of(rows[i]), &path));
    }
    assert_false(wspath_fold(arena, STR_EMPTY, STR("a\0b"), &path));
    static char big[PATH_MAX + 10];
    memset(big, 'a', sizeof big - 1);
    assert_false(wspath_fold(arena, STR_EMPTY, str_of(big), &path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spellings_of_one_file, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(ways_out, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
