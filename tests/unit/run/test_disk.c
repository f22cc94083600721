/* SPDX-License-Identifier: MIT
 *
 * The default limit, and what is counted as disk usage.
 */
#include "run/disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "values.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void test_limit(void **state)
{
    assert_int_equal(disk_limit(0, 100 * GIB), 20 * GIB);
    assert_int_equal(disk_limit(0, 40 * GIB), 20 * GIB);
    assert_int_equal(disk_limit(0, 10 * GIB), 5 * GIB);
    assert_int_equal(disk_limit(0, 0), 0);
    assert_int_equal(disk_limit(7, 100 * GIB), 7);
    assert_int_equal(disk_limit(50 * GIB, 10 * GIB), 50 * GIB);
}

static int make_dir(char path[32])
{
    (void)snprintf(path, 32, "/tmp/cinch-disk-XXXXXX");
    assert_non_null(mkdtemp(path));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void put(int dir, const char *name, size_t size)
{
    char *zeros = calloc(1, size);
    assert_int_equal(file_write_atomic(dir, name, str_n(zeros, size), 0600, NULL), 0);
    free(zeros);
}

static void test_usage(void **state)
{
    char path[32];
    uint64_t used;
    int dir = make_dir(path);
    assert_true(disk_usage(dir, &used));
    assert_int_equal(used, 0);
    assert_int_equal(mkdirat(dir, "a", 0700), 0);
    put(dir, "a/one", 2 * MIB);
    put(dir, "two", MIB);
    /* Neither a link nor a second name nor a hole takes space. */
    assert_int_equal(symlinkat("/usr", dir, "link"), 0);
    assert_int_equal(linkat(dir, "two", dir, "again", 0), 0);
    int hole = openat(dir, "hole", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(hole, 64 << 20), 0);
    (void)close(hole);
    assert_true(disk_usage(dir, &used));
    assert_in_range(used, 3 * MIB, 3 * MIB + (64 << 10));
    (void)close(dir);
    assert_int_equal(file_remove_tree(AT_FDCWD, path, NULL), 0);
}

static void test_too_deep(void **state)
{
    char path[32];
    uint64_t used;
    int top = make_dir(path);
    int at = dup(top);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    put(at, "x", MIB);
    (void)close(at);
    assert_false(disk_usage(top, &used));
    assert_true(used < MIB);
    (void)close(top);
    assert_int_equal(file_remove_tree(AT_FDCWD, path, NULL), 0);
}

static void test_no_directory(void **state)
{
    uint64_t used;
    assert_false(disk_usage(-1, &used));
    assert_int_equal(used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_too_deep),
        cmocka_unit_test(test_no_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
