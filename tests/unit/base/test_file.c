/* SPDX-License-Identifier: MIT
 *
 * Files: bounded reads, atomic writes that leave nothing behind, removal that never follows a link,
 * and paths that are folded without looking at the disk. Each test has its own directory.
 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"

struct dir {
    char path[64];
    int fd;
};

static int set_up(void **state)
{
    struct dir *d = calloc(1, sizeof *d);
    (void)snprintf(d->path, sizeof d->path, "/tmp/cinch-test-file-XXXXXX");
    if (mkdtemp(d->path) == NULL) {
        return -1;
    }
    d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = d;
    return d->fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    struct dir *d = *state;
    int r = file_remove_tree(AT_FDCWD, d->path, NULL);
    (void)close(d->fd);
    free(d);
    return r;
}

static int at(void **state)
{
    return ((struct dir *)*state)->fd;
}

static size_t count_entries(int dirfd)
{
    DIR *d = fdopendir(openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    assert_non_null(d);
    size_t n = 0;
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n - 2;
}

static void put(int dirfd, const char *path, const char *text)
{
    assert_int_equal(file_write_atomic(dirfd, path, str_of(text), 0644, NULL), 0);
}

static void assert_content(int dirfd, const char *path, const char *want)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    assert_int_equal(file_read(dirfd, path, BUF_TEXT, &b, NULL), 0);
    assert_true(str_eqc(buf_str(&b), want));
}

static void test_write_then_read(void **state)
{
    put(at(state), "f", "one");
    assert_content(at(state), "f", "one");
    put(at(state), "f", "");
    assert_content(at(state), "f", "");
    CLEANUP(buf) struct buf big = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 20000; i++) {
        buf_addf(&big, "%d\n", i);
    }
    put(at(state), "f", big.ptr);
    assert_content(at(state), "f", big.ptr);
    assert_int_equal(count_entries(at(state)), 1); /* no temporary file left */
    struct stat st;
    assert_int_equal(fstatat(at(state), "f", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
}

static void test_read_says_what_is_wrong(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    assert_int_equal(file_read(at(state), "absent", 10, &b, &e), -(int)ERR_INPUT);
    assert_non_null(strstr(e.msg, "'absent'"));
    put(at(state), "f", "12345678901");
    assert_int_equal(file_read(at(state), "f/x", 10, &b, &e), -(int)ERR_INPUT);
    assert_int_equal(file_read(at(state), "f", 10, &b, &e), -(int)ERR_LIMIT);
    buf_reset(&b);
    assert_int_equal(file_read(at(state), "f", 11, &b, &e), 0);
    assert_int_equal(file_read(at(state), ".", 10, &b, &e), -(int)ERR_INPUT);
    assert_non_null(strstr(e.msg, "directory"));
    CLEANUP(buf) struct buf narrow = BUF_INIT(5);
    assert_int_equal(file_read(at(state), "f", 100, &narrow, &e), -(int)ERR_LIMIT);
}

static void test_read_waits_for_a_pipe_but_not_for_a_fifo_without_writer(void **state)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(mkfifoat(at(state), "fifo", 0600), 0);
    assert_int_equal(file_read(at(state), "fifo", 10, &b, NULL), 0);
    assert_int_equal(b.len, 0);

    /* A child that writes late would need a process; a full pipe and its end show the same path. */
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(file_write_all(ends[1], STR("late"), NULL), 0);
    (void)close(ends[1]);
    assert_int_equal(file_read(AT_FDCWD, name, 10, &b, NULL), 0);
    assert_string_equal(b.ptr, "late");
    (void)close(ends[0]);
}

static void test_a_failed_write_leaves_nothing(void **state)
{
    struct err e = { 0 };
    assert_int_equal(mkdirat(at(state), "d", 0755), 0);
    assert_int_equal(mkdirat(at(state), "d/sub", 0755), 0);
    assert_int_equal(file_write_atomic(at(state), "d", STR("x"), 0644, &e), -(int)ERR_OUTPUT);
    assert_non_null(strstr(e.msg, "'d'"));
    assert_int_equal(file_write_atomic(at(state), "d", STR("x"), 0644, NULL), -(int)ERR_OUTPUT);
    assert_int_equal(file_write_atomic(at(state), "no/f", STR("x"), 0644, &e), -(int)ERR_OUTPUT);
    assert_int_equal(e.sys, ENOENT);
    assert_int_equal(count_entries(at(state)), 1);
    char longest[PATH_MAX + 10];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(file_write_atomic(at(state), longest, STR("x"), 0644, &e), -(int)ERR_LIMIT);
}

static void test_a_write_replaces_a_link_and_not_its_target(void **state)
{
    put(at(state), "target", "old");
    assert_int_equal(symlinkat("target", at(state), "link"), 0);
    put(at(state), "link", "new");
    assert_content(at(state), "target", "old");
    assert_content(at(state), "link", "new");
}

/* The path of a file in the test's directory. */
static const char *full(void **state, const char *name)
{
    static char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", ((struct dir *)*state)->path, name);
    return path;
}

static void write_output(void **state, const char *name, const char *text)
{
    assert_int_equal(file_check_output(full(state, name), NULL), 0);
    assert_int_equal(file_write_output(full(state, name), str_of(text), 0644, NULL), 0);
}

static void test_output_follows_links(void **state)
{
    int dir = at(state);
    struct stat st;
    put(dir, "target", "kept");
    assert_int_equal(linkat(dir, "target", dir, "other", 0), 0);
    assert_int_equal(symlinkat("target", dir, "link"), 0);
    assert_int_equal(mkdirat(dir, "d", 0755), 0);
    assert_int_equal(symlinkat("../new", dir, "d/further"), 0);
    assert_int_equal(symlinkat("d/further", dir, "dangling"), 0);
    write_output(state, "link", "one");
    assert_content(dir, "target", "one");
    assert_content(dir, "other", "kept"); /* replaced, not written over */
    write_output(state, "dangling", "two");
    assert_content(dir, "new", "two");
    write_output(state, "plain", "three");
    assert_content(dir, "plain", "three");
    assert_int_equal(fstatat(dir, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(count_entries(dir), 7); /* checks left nothing */
}

static void test_output_does_not_replace_devices(void **state)
{
    struct stat st;
    struct err e = { 0 };
    char text[16] = "";
    assert_int_equal(mkfifoat(at(state), "fifo", 0600), 0);
    CLEANUP(fd) int end = openat(at(state), "fifo", O_RDWR | O_CLOEXEC);
    write_output(state, "fifo", "through");
    assert_int_equal(read(end, text, sizeof text), 7);
    assert_string_equal(text, "through");
    assert_int_equal(fstatat(at(state), "fifo", &st, 0), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(file_check_output("/dev/full", NULL), 0);
    assert_int_equal(file_write_output("/dev/full", STR("x"), 0644, &e), -(int)ERR_OUTPUT);
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

/* `cinch ack --json /dev/stderr 2>log`: what was said before stays, and what follows follows. */
static void test_output_goes_on_where_a_stream_is(void **state)
{
    CLEANUP(fd) int saved = dup(STDERR_FILENO);
    CLEANUP(fd) int log = openat(at(state), "log", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(dup2(log, STDERR_FILENO) >= 0);
    int before = file_write_all(STDERR_FILENO, STR("a"), NULL);
    int check = file_check_output("/dev/stderr", NULL);
    int there = file_write_output("/dev/stderr", STR("b"), 0644, NULL);
    int after = file_write_all(STDERR_FILENO, STR("c"), NULL);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    assert_true(before == 0 && check == 0 && there == 0 && after == 0);
    assert_content(at(state), "log", "abc");
}

static void test_output_is_checked(void **state)
{
    struct err e = { 0 };
    assert_int_equal(file_check_output(full(state, "no/f"), &e), -(int)ERR_OUTPUT);
    assert_non_null(strstr(e.msg, "no/f"));
    assert_int_equal(file_check_output(full(state, ""), &e), -(int)ERR_OUTPUT);
    assert_int_equal(file_check_output("/proc/nothing", &e), -(int)ERR_OUTPUT);
    assert_int_equal(symlinkat("loop", at(state), "loop"), 0);
    assert_int_equal(file_check_output(full(state, "loop/x"), &e), -(int)ERR_OUTPUT);
}

static bool same(void **state, const char *one, const char *other)
{
    char first[PATH_MAX];
    (void)snprintf(first, sizeof first, "%s", full(state, one));
    return file_same_output(first, full(state, other));
}

static void test_outputs_that_are_the_same(void **state)
{
    int dir = at(state);
    put(dir, "there", "x");
    assert_int_equal(linkat(dir, "there", dir, "other", 0), 0);
    assert_int_equal(mkdirat(dir, "d", 0755), 0);
    assert_int_equal(symlinkat("d", dir, "e"), 0);
    assert_int_equal(symlinkat("../new", dir, "d/further"), 0);
    assert_true(same(state, "there", "d/../there"));
    assert_true(same(state, "new", "./new"));
    assert_true(same(state, "d/new", "e/new"));
    assert_true(same(state, "new", "e/further"));
    assert_true(file_same_output("/dev/null", "/dev/../dev/null"));
    assert_false(same(state, "there", "other")); /* each would be replaced by a file of its own */
    assert_false(same(state, "d/new", "new"));
    assert_false(same(state, "none/f", "none/f")); /* neither can be written */
}

static void test_write_all_reports_a_closed_pipe(void **state)
{
    struct err e = { 0 };
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(file_write_all(full, STR("x"), &e), -(int)ERR_SYS);
    assert_int_equal(e.sys, ENOSPC);
    assert_int_equal(file_write_all(full, STR(""), &e), 0);
    (void)close(full);
    assert_int_equal(file_write_all(-1, STR("x"), &e), -(int)ERR_SYS);
}

static void test_directories(void **state)
{
    struct err e = { 0 };
    bool empty = false;
    assert_int_equal(file_mkdirs(at(state), "a/b//c/", 0755, &e), 0);
    assert_int_equal(file_mkdirs(at(state), "a/b/c", 0755, &e), 0); /* again is fine */
    assert_true(file_is_dir(at(state), "a/b/c"));
    assert_int_equal(file_dir_is_empty(at(state), "a/b/c", &empty, &e), 0);
    assert_true(empty);
    put(at(state), "a/b/c/f", "");
    assert_int_equal(file_dir_is_empty(at(state), "a/b/c", &empty, &e), 0);
    assert_false(empty);
    assert_true(file_dir_is_empty(at(state), "absent", &empty, &e) < 0);
    assert_int_equal(file_mkdirs(at(state), "a/b/c/f/g", 0755, &e), -(int)ERR_OUTPUT);
    assert_int_equal(file_mkdirs(at(state), "a/b/c/f", 0755, &e), -(int)ERR_OUTPUT);
    assert_true(file_mkdirs(at(state), "", 0755, &e) < 0);
    assert_int_equal(file_mkdirs(AT_FDCWD, "/", 0755, &e), 0);
    assert_int_equal(symlinkat("nowhere", at(state), "dangling"), 0);
    assert_true(file_exists(at(state), "dangling")); /* the link itself */
    assert_false(file_is_dir(at(state), "dangling"));
    assert_false(file_exists(at(state), "absent"));
}

static void test_remove_does_not_follow_links(void **state)
{
    assert_int_equal(file_mkdirs(at(state), "outside/deep", 0755, NULL), 0);
    put(at(state), "outside/deep/keep", "x");
    assert_int_equal(file_mkdirs(at(state), "tree/sub", 0755, NULL), 0);
    put(at(state), "tree/sub/f", "x");
    assert_int_equal(symlinkat("../outside", at(state), "tree/link"), 0);
    assert_int_equal(symlinkat("../../outside/deep/keep", at(state), "tree/sub/link"), 0);
    assert_int_equal(mkfifoat(at(state), "tree/fifo", 0600), 0);
    assert_int_equal(fchmodat(at(state), "tree/sub", 0500, 0), 0);
    assert_int_equal(file_remove_tree(at(state), "tree", NULL), 0);
    assert_false(file_exists(at(state), "tree"));
    assert_content(at(state), "outside/deep/keep", "x");

    assert_int_equal(symlinkat("outside", at(state), "root-link"), 0);
    assert_int_equal(file_remove_tree(at(state), "root-link", NULL), 0);
    assert_false(file_exists(at(state), "root-link"));
    assert_content(at(state), "outside/deep/keep", "x");
    assert_int_equal(file_remove_tree(at(state), "absent", NULL), 0);
    assert_int_equal(file_remove_tree(at(state), "outside/deep/keep", NULL), 0);
    assert_int_equal(file_remove_tree(at(state), "outside/", NULL), 0);
    assert_int_equal(count_entries(at(state)), 0);
}

/* Deeper than any path name, as a hostile program can make it. */
static void test_remove_any_depth(void **state)
{
    static const char name[] = "a-directory-whose-name-is-forty-chars-long";
    int here = dup(at(state));
    for (int i = 0; i < 200; i++) {
        assert_int_equal(mkdirat(here, name, 0755), 0);
        int next = openat(here, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        (void)close(here);
        here = next;
    }
    (void)close(here);
    assert_int_equal(file_remove_tree(at(state), name, NULL), 0);
    assert_int_equal(count_entries(at(state)), 0);
}

static unsigned mode_at(int dirfd, const char *path)
{
    struct stat st;
    assert_int_equal(fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static void test_setid_bits_are_dropped(void **state)
{
    int fd = at(state);
    assert_int_equal(file_mkdirs(fd, "tree/sub/deep", 0755, NULL), 0);
    assert_int_equal(file_mkdirs(fd, "tree/plain", 0755, NULL), 0);
    put(fd, "outside", "x");
    put(fd, "tree/suid", "x");
    put(fd, "tree/sub/deep/sgid", "x");
    assert_int_equal(symlinkat("../outside", fd, "tree/link"), 0);
    assert_int_equal(fchmodat(fd, "outside", 06755, 0), 0);
    assert_int_equal(fchmodat(fd, "tree/suid", 04711, 0), 0);
    assert_int_equal(fchmodat(fd, "tree/sub/deep/sgid", 02755, 0), 0);
    assert_int_equal(fchmodat(fd, "tree/sub", 02000, 0), 0);
    assert_int_equal(fchmodat(fd, "tree/plain", 01777, 0), 0);
    assert_int_equal(file_drop_setid(fd, "tree", NULL), 0);
    assert_int_equal(mode_at(fd, "tree/suid"), 0711);
    assert_int_equal(mode_at(fd, "tree/plain"), 01777);
    assert_int_equal(mode_at(fd, "tree/sub"), 0);
    assert_int_equal(fchmodat(fd, "tree/sub", 0700, 0), 0);
    assert_int_equal(mode_at(fd, "tree/sub/deep/sgid"), 0755);
    assert_int_equal(mode_at(fd, "outside"), 06755);
    assert_int_equal(file_drop_setid(fd, "outside", NULL), 0);
    assert_int_equal(mode_at(fd, "outside"), 0755);
    assert_int_equal(file_drop_setid(fd, "absent", NULL), 0);
    assert_int_equal(file_drop_setid(fd, "tree/link", NULL), 0);
}

static void test_setid_bits_at_any_depth(void **state)
{
    static const char name[] = "a-directory-whose-name-is-forty-chars-long";
    int here = dup(at(state));
    for (int i = 0; i < 300; i++) {
        assert_int_equal(mkdirat(here, name, 0755), 0);
        int next = openat(here, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        (void)close(here);
        here = next;
    }
    put(here, "file", "x");
    assert_int_equal(fchmodat(here, "file", 06755, 0), 0);
    assert_int_equal(file_drop_setid(at(state), name, NULL), 0);
    assert_int_equal(mode_at(here, "file"), 0755);
    (void)close(here);
}

static void test_join(void **state)
{
    char out[16];
    struct err e = { 0 };
    assert_int_equal(path_join("a", "b", out, sizeof out, &e), 0);
    assert_string_equal(out, "a/b");
    assert_int_equal(path_join("a", "/b", out, sizeof out, &e), 0);
    assert_string_equal(out, "/b");
    assert_int_equal(path_join("", "b", out, sizeof out, &e), 0);
    assert_string_equal(out, "b");
    assert_int_equal(path_join("1234567", "1234567", out, sizeof out, &e), 0);
    assert_int_equal(path_join("1234567", "12345678", out, sizeof out, &e), -(int)ERR_LIMIT);
}

static void assert_absolute(const char *path, const char *want)
{
    char out[PATH_MAX];
    assert_int_equal(path_absolute(path, out, sizeof out, NULL), 0);
    assert_string_equal(out, want);
}

static void test_absolute(void **state)
{
    assert_absolute("/", "/");
    assert_absolute("/a/b", "/a/b");
    assert_absolute("/a/../b/./c//d/", "/b/c/d");
    assert_absolute("/..", "/");
    assert_absolute("/../../x", "/x");
    assert_absolute("/a/b/../..", "/");
    assert_absolute("/a/..b/...", "/a/..b/...");

    struct dir *d = *state;
    char cwd[PATH_MAX];
    char want[PATH_MAX];
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(fchdir(d->fd), 0);
    assert_absolute("", d->path);
    assert_absolute(".", d->path);
    (void)snprintf(want, sizeof want, "%s/not/there", d->path);
    assert_absolute("x/../not/there", want);
    assert_absolute("../../etc", "/etc");
    assert_int_equal(chdir(cwd), 0);
}

static void test_absolute_in_a_small_buffer(void **state)
{
    for (size_t size = 0; size < 6; size++) {
        char out[8] = "#######";
        int r = path_absolute("/abc", out, size, NULL);
        assert_int_equal(r, size >= 5 ? 0 : -(int)ERR_LIMIT);
        assert_int_equal(out[size], '#'); /* not a byte too far */
        char root[8] = "#######";
        r = path_absolute("/", root, size, NULL);
        assert_int_equal(r, size >= 2 ? 0 : -(int)ERR_LIMIT);
        assert_int_equal(root[size], '#');
    }
}

static void test_base(void **state)
{
    static const struct {
        const char *path, *base;
    } cases[] = { { "a/b.c", "b.c" }, { "b", "b" }, { "/x/y/", "y" },
                  { "/", "/" },       { "", "" },   { "a//", "a" } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_true(str_eqc(path_base(str_of(cases[i].path)), cases[i].base));
    }
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(test_write_then_read),
        IN_DIR(test_read_says_what_is_wrong),
        IN_DIR(test_read_waits_for_a_pipe_but_not_for_a_fifo_without_writer),
        IN_DIR(test_a_failed_write_leaves_nothing),
        IN_DIR(test_a_write_replaces_a_link_and_not_its_target),
        IN_DIR(test_output_follows_links),
        IN_DIR(test_output_does_not_replace_devices),
        IN_DIR(test_output_goes_on_where_a_stream_is),
        IN_DIR(test_output_is_checked),
        IN_DIR(test_outputs_that_are_the_same),
        IN_DIR(test_write_all_reports_a_closed_pipe),
        IN_DIR(test_directories),
        IN_DIR(test_remove_does_not_follow_links),
        IN_DIR(test_remove_any_depth),
        IN_DIR(test_absolute),
        IN_DIR(test_setid_bits_are_dropped),
        IN_DIR(test_setid_bits_at_any_depth),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_absolute_in_a_small_buffer),
        cmocka_unit_test(test_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
