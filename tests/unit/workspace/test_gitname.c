/* SPDX-License-Identifier: MIT
 *
 * Names that git refuses, found by asking git 2.39 with core.protectNTFS and core.protectHFS.
 */
#include "workspace/gitname.h"

#include "scene.h"

static void test_refused(void **state)
{
    static const char *const names[] = {
        ".git",       ".GIT/x",       "a/.Git/config", "git~1",        "GIT~1/config",
        ".git ",      ".git.",        ".git . ./x",    ".git:x",       ".git::$INDEX_ALLOCATION",
        "a\\.git",    "a\\git~1",     "git~1 ",        "git~1::$DATA", "d/.git\\x",
        ".g\u200cit", "\ufeff.git/x", ".git\u200f",    ".gi\u206at/x", "x/.\u202agit",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!gitname_is_refused(names[i], false)) {
            fail_msg("'%s' is not refused", names[i]);
        }
    }
}

static void test_allowed(void **state)
{
    static const char *const names[] = {
        "a",        ".gitignore", ".gitmodules",  "git",    "git~2", "xgit~1",     ".gitx",
        "..git",    ".git~1",     "git~11",       "a.git",  "a/b",   ".g\u200bit", ".gi",
        "gi7eba~1", "GITMOD~1",   ".git\u00e9/x", ".g\xe2", "\xef",  "\xe2\x80",   ". git",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (gitname_is_refused(names[i], false)) {
            fail_msg("'%s' is refused", names[i]);
        }
    }
}

static void test_links(void **state)
{
    static const char *const refused[] = { ".gitmodules", "a/.GITMODULES ", "gitmod~1",
                                           "GITMOD~4.",   "gi7eba~1",       "GI7EB~10",
                                           "gi~12345",    "~1234567:x",     ".git\u200cmodules" };
    static const char *const allowed[] = { ".gitmodulesx", "gitmod~5", "gi7eba~0", "gi7ebx~1",
                                           "gi7e~123x",    "~",        "gi7eba~" };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_true(gitname_is_refused(refused[i], true));
        assert_false(gitname_is_refused(refused[i], false));
    }
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        assert_false(gitname_is_refused(allowed[i], true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
