/* SPDX-License-Identifier: MIT
 *
 * Operations of a plan after NO_LINKS: none of them passes a link, wherever it is on the way, and
 * what the link leads to is untouched. Nothing is mounted: all is refused before that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "init/mounts.h"
#include "init/plan.h"

static char view[64], outside[64];

static const char *in_view(const char *name)
{
    static char path[4][PATH_MAX];
    static unsigned n;
    char *p = path[n++ % 4];
    (void)snprintf(p, PATH_MAX, "%s/%s", view, name);
    return p;
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(view, sizeof view, "/tmp/cinch-view-XXXXXX");
    (void)snprintf(outside, sizeof outside, "/tmp/cinch-outside-XXXXXX");
    return mkdtemp(view) == NULL || mkdtemp(outside) == NULL || mkdir(in_view("dir"), 0755) != 0 ||
                   symlink(outside, in_view("link")) != 0 ||
                   symlink("../link", in_view("dir/relative")) != 0 ||
                   symlink("/nonexistent/place", in_view("dangling")) != 0
               ? -1
               : 0;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(AT_FDCWD, view, NULL) < 0 ||
                   file_remove_tree(AT_FDCWD, outside, NULL) < 0
               ? -1
               : 0;
}

static bool is_empty(const char *path)
{
    size_t n = 0;
    DIR *d = opendir(path);
    while (d != NULL && readdir(d) != NULL) {
        n++;
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return n == 2;
}

static void add(struct buf *b, enum plan_op op, const char *to)
{
    const struct plan_paths paths = { .mode = 0755 };
    const struct plan_size size = { .bytes = 4096 };
    int r;
    if (op == PLAN_OP_FILE) {
        r = plan_add_file(b, to, 0644, STR("content"), NULL);
    } else if (op == PLAN_OP_TMPFS) {
        r = plan_add_size(b, op, &size, to, NULL);
    } else {
        r = plan_add_paths(b, op, &paths, "/from", to, NULL);
    }
    assert_int_equal(r, 0);
}

/* As view.c does it. */
static int carry_out(enum plan_op op, const char *to, struct err *e)
{
    CLEANUP(buf) struct buf b = BUF_INIT(PLAN_MAX);
    struct mounts m = MOUNTS_INIT;
    struct plan_record r;
    struct plan p;
    int rc = 0;
    assert_int_equal(plan_begin(&b, PLAN_VIEW, NULL), 0);
    assert_int_equal(plan_add_number(&b, PLAN_OP_NO_LINKS, 1, NULL), 0);
    add(&b, op, to);
    assert_int_equal(plan_end(&b, NULL), 0);
    assert_int_equal(plan_open(buf_str(&b), PLAN_VIEW, &p, NULL), 0);
    while (rc == 0 && plan_next(&p, &r)) {
        m.no_links = m.no_links || r.op == PLAN_OP_NO_LINKS;
        rc = mounts_knows(&r) ? mounts_do(&m, &r, e) : 0;
    }
    mounts_done(&m);
    return rc;
}

static void assert_refused(enum plan_op op, const char *to)
{
    struct err e = { 0 };
    int rc = carry_out(op, to, &e);
    if (rc >= 0 || strstr(e.msg, "cannot be put into the view") == NULL) {
        fail_msg("operation %d on '%s': %d %s", (int)op, to, rc, e.msg);
    }
    assert_true(is_empty(outside));
}

static const enum plan_op all[] = { PLAN_OP_TMPFS, PLAN_OP_DIR,     PLAN_OP_SYMLINK, PLAN_OP_FILE,
                                    PLAN_OP_BIND,  PLAN_OP_OVERLAY, PLAN_OP_DEVPTS };

static void links_on_the_way(void **state)
{
    static const char *const paths[] = { "link/x",           "link/x/y/z",   "dir/relative/x",
                                         "dir/relative/x/y", "dangling/x/y", "dir/../link/x" };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
            assert_refused(all[i], in_view(paths[k]));
        }
    }
}

static void links_in_the_place(void **state)
{
    static const char *const paths[] = { "link", "dir/relative", "dangling" };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        for (size_t k = 0; all[i] != PLAN_OP_SYMLINK && k < ARRAY_LEN(paths); k++) {
            assert_refused(all[i], in_view(paths[k]));
        }
    }
    /* A link is made where none is, and never changed. */
    assert_int_equal(carry_out(PLAN_OP_SYMLINK, in_view("link"), NULL), 0);
    char target[PATH_MAX] = "";
    assert_true(readlink(in_view("link"), target, sizeof target - 1) > 0);
    assert_string_equal(target, outside);
}

/* Directly below the root, as /var of an image may be. Nothing would be written if it were
 * followed: the file exists. */
static void links_at_the_top(void **state)
{
    struct stat st;
    (void)state;
    if (lstat("/bin", &st) != 0 || !S_ISLNK(st.st_mode)) {
        skip();
    }
    assert_refused(PLAN_OP_FILE, "/bin/cat");
}

static void files_on_the_way(void **state)
{
    (void)state;
    assert_int_equal(carry_out(PLAN_OP_FILE, in_view("file"), NULL), 0);
    assert_refused(PLAN_OP_DIR, in_view("file/x"));
    assert_refused(PLAN_OP_FILE, in_view("file/x/y"));
}

static void what_is_missing_is_made(void **state)
{
    struct stat st;
    (void)state;
    assert_int_equal(carry_out(PLAN_OP_DIR, in_view("new/a/b"), NULL), 0);
    assert_int_equal(carry_out(PLAN_OP_FILE, in_view("dir/c/file"), NULL), 0);
    assert_int_equal(lstat(in_view("new/a/b"), &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(lstat(in_view("dir/c/file"), &st), 0);
    assert_int_equal(st.st_size, 7);
}

static void long_paths(void **state)
{
    char path[PATH_MAX + 100];
    struct err e = { 0 };
    (void)state;
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    struct mounts m = { .host = -1, .no_links = true };
    struct plan_record r = { .op = PLAN_OP_DIR, .to = path };
    assert_int_equal(mounts_do(&m, &r, &e), -ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(links_on_the_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_in_the_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_at_the_top, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_on_the_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_missing_is_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_paths, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
