/* SPDX-License-Identifier: MIT
 *
 * Patches of git: files, lines, renames, quoted names, and lines that look like headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "record/patch_stat.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static struct patch_stat read_patch(void **state, const char *text)
{
    struct patch_stat s;
    patch_stat(*state, str_of(text), &s);
    return s;
}

static void assert_str(struct str s, const char *wanted)
{
    assert_int_equal(s.len, strlen(wanted));
    assert_memory_equal(s.ptr, wanted, s.len);
}

static void test_counts(void **state)
{
    static const char first[] = "diff --git a/a b.txt b/a b.txt\n"
                                "index 1..2 100644\n"
                                "--- a/a b.txt\t\n"
                                "+++ b/a b.txt\t\n"
                                "@@ -1,2 +1,3 @@ void f(void)\n"
                                " same\n"
                                "-old\n"
                                "+new\n"
                                "+more\n";
    static const char second[] = "diff --git a/gone b/gone\n"
                                 "deleted file mode 100644\n"
                                 "--- a/gone\n"
                                 "+++ /dev/null\n"
                                 "@@ -1 +0,0 @@\n"
                                 "-x\n"
                                 "\\ No newline at end of file\n";
    char text[sizeof first + sizeof second];
    (void)snprintf(text, sizeof text, "%s%s", first, second);
    struct patch_stat s = read_patch(state, text);
    assert_int_equal(s.count, 2);
    assert_int_equal(s.added, 2);
    assert_int_equal(s.removed, 2);
    assert_str(s.files[0].path, "a b.txt");
    assert_int_equal(s.files[0].status, 'M');
    assert_int_equal(s.files[0].added, 2);
    assert_int_equal(s.files[0].removed, 1);
    assert_int_equal(s.files[0].patch.len, sizeof first - 2); /* without the last newline */
    assert_str(s.files[1].path, "gone");
    assert_int_equal(s.files[1].status, 'D');
    assert_int_equal(s.files[1].removed, 1);
}

/* A change of a patch file has lines that look like headers, inside a hunk. */
static void test_lines_that_look_like_headers(void **state)
{
    struct patch_stat s = read_patch(state, "diff --git a/x.patch b/x.patch\n"
                                            "new file mode 100644\n"
                                            "--- /dev/null\n"
                                            "+++ b/x.patch\n"
                                            "@@ -0,0 +1,4 @@\n"
                                            "+diff --git a/y b/y\n"
                                            "++++ b/y\n"
                                            "+@@ -1 +1 @@\n"
                                            "+rename to z\n"
                                            "diff --git a/q b/q\n"
                                            "old mode 100644\n"
                                            "new mode 100755\n");
    assert_int_equal(s.count, 2);
    assert_str(s.files[0].path, "x.patch");
    assert_int_equal(s.files[0].status, 'A');
    assert_int_equal(s.files[0].added, 4);
    assert_str(s.files[1].path, "q");
    assert_int_equal(s.files[1].status, 'M');
    assert_int_equal(s.files[1].added, 0);
}

static void test_names(void **state)
{
    struct patch_stat s =
        read_patch(state, "diff --git \"a/t\\303\\274r\\t\\\"x\" \"b/t\\303\\274r\\t\\\"x\"\n"
                          "new file mode 100644\n"
                          "index 0000000..1\n"
                          "GIT binary patch\n"
                          "literal 1\n"
                          "Ic${MZ\n"
                          "\n"
                          "diff --git a/old name b/new name\n"
                          "similarity index 100%\n"
                          "rename from old name\n"
                          "rename to new name\n");
    assert_int_equal(s.count, 2);
    assert_str(s.files[0].path, "t\303\274r\t\"x");
    assert_true(s.files[0].binary);
    assert_int_equal(s.files[1].status, 'R');
    assert_str(s.files[1].path, "new name");
    assert_str(s.files[1].from, "old name");
}

static void test_no_patch(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "xyz",
        "@@ -1 +1 @@\n+x\n",
        "diff --git",
        "diff --git \n",
        "diff --git \"\n",
        "diff --git a/x b/x\n@@ -99999999999999999999,1 +1\n+",
        "diff --git a/x b/x\n@@ -1,5 +1\nx",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct patch_stat s = read_patch(state, texts[i]);
        assert_true(s.count <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lines_that_look_like_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_patch, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
