/* SPDX-License-Identifier: MIT
 *
 * Program lookup: what is found, and why what is not found is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "proc/which.h"

/* a/tool (executable), b/tool (plain), b/dir (directory), c/ (empty) below a fresh directory. */
static char root[64];

static void put(const char *name, mode_t mode)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(file_write_atomic(AT_FDCWD, path, STR("#!/bin/sh\n"), mode, NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static int set_up(void **state)
{
    (void)state;
    char path[128];
    static const char *const dirs[] = { "a", "b", "b/dir", "c" };
    (void)snprintf(root, sizeof root, "/tmp/cinch-test-XXXXXX");
    if (mkdtemp(root) == NULL) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", root, dirs[i]);
        (void)mkdir(path, 0755);
    }
    put("a/tool", 0755);
    put("b/tool", 0644);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(AT_FDCWD, root, NULL);
}

static int find(const char *name, const char *dirs, char out[PATH_MAX], struct err *e)
{
    CLEANUP(buf) struct buf path = BUF_INIT(BUF_TEXT);
    buf_adds(&path, "");
    for (const char *d = dirs; *d != '\0'; d++) {
        buf_addf(&path, "%s%s/%c", path.len == 0 ? "" : ":", root, *d);
    }
    return which_find(name, path.ptr, NULL, out, e);
}

static void first_executable_wins(void **state)
{
    (void)state;
    char out[PATH_MAX];
    char want[128];
    (void)snprintf(want, sizeof want, "%s/a/tool", root);
    assert_int_equal(find("tool", "ca", out, NULL), 0);
    assert_string_equal(out, want);
    assert_int_equal(find("tool", "ba", out, NULL), 0); /* the plain file does not end the search */
    assert_string_equal(out, want);
}

static void reasons(void **state)
{
    (void)state;
    char out[PATH_MAX];
    struct err e;
    assert_int_equal(find("tool", "c", out, &e), -ERR_NOTFOUND);
    assert_non_null(strstr(e.msg, "'tool' not found in PATH"));
    assert_int_equal(find("tool", "bc", out, &e), -ERR_NOEXEC);
    assert_non_null(strstr(e.msg, "b/tool' is not executable"));
    assert_int_equal(find("dir", "bc", out, &e), -ERR_NOEXEC);
    assert_non_null(strstr(e.msg, "is a directory"));
    assert_int_equal(find("", "a", out, &e), -ERR_NOTFOUND);
    assert_int_equal(which_find("/dev/null", NULL, NULL, out, &e), -ERR_NOEXEC);
    assert_non_null(strstr(e.msg, "not a regular file"));
    assert_int_equal(which_find("/etc/passwd/x", NULL, NULL, out, &e), -ERR_NOTFOUND);
}

static void slash_means_path(void **state)
{
    (void)state;
    char out[PATH_MAX];
    struct err e;
    char want[128];
    (void)snprintf(want, sizeof want, "%s/a/tool", root);
    assert_int_equal(which_find("a/tool", "/nowhere", root, out, &e), 0);
    assert_string_equal(out, want);
    assert_int_equal(which_find(want, "/nowhere", "/", out, &e), 0);
    assert_string_equal(out, want);
    assert_int_equal(which_find("./tool", root, root, out, &e), -ERR_NOTFOUND);
}

static void relative_entries_are_relative_to_the_child(void **state)
{
    (void)state;
    char out[PATH_MAX];
    char want[128];
    (void)snprintf(want, sizeof want, "%s/a/tool", root);
    assert_int_equal(which_find("tool", "a", root, out, NULL), 0);
    assert_string_equal(out, want);
    char dir[128];
    (void)snprintf(dir, sizeof dir, "%s/a", root);
    assert_int_equal(which_find("tool", "/nowhere::/else", dir, out, NULL), 0); /* empty: here */
    (void)snprintf(want, sizeof want, "%s/a/./tool", root);
    assert_string_equal(out, want);
}

static void default_path(void **state)
{
    (void)state;
    char out[PATH_MAX];
    assert_int_equal(which_find("sh", NULL, NULL, out, NULL), 0);
    assert_int_equal(out[0], '/');
    assert_int_equal(which_find("sh", "", NULL, out, NULL), 0);
}

static void overlong_entries_are_passed_over(void **state)
{
    (void)state;
    char out[PATH_MAX];
    char *path = malloc(3 * PATH_MAX);
    assert_non_null(path);
    memset(path, 'x', 2 * PATH_MAX);
    (void)snprintf(path + 2 * PATH_MAX, PATH_MAX, ":%s/a", root);
    assert_int_equal(which_find("tool", path, NULL, out, NULL), 0);
    path[2 * PATH_MAX] = '\0';
    assert_int_equal(which_find("tool", path, NULL, out, NULL), -ERR_NOTFOUND);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_executable_wins),
        cmocka_unit_test(reasons),
        cmocka_unit_test(slash_means_path),
        cmocka_unit_test(relative_entries_are_relative_to_the_child),
        cmocka_unit_test(default_path),
        cmocka_unit_test(overlong_entries_are_passed_over),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
