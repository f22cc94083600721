/* SPDX-License-Identifier: MIT
 *
 * Transactions without a kernel's help: the copies are written to directly, and upper layers are
 * made as an overlay would make them. What needs real mounts is in
 * tests/integration/test_transaction.py.
 */
#include "workspace/txn.h"

#include <sys/xattr.h>

#include "scene.h"
#include "workspace/merge.h"

struct space {
    struct scene *s;
    struct txns *t;
    int fd;
    struct err e;
};

static void open_space(struct space *p, struct scene *s, bool overlay)
{
    p->s = s;
    p->fd = open_dir(s, "ws");
    struct txns_opts o = { .workspace_fd = p->fd,
                           .dir = at(s, "private"),
                           .layers_fd = -1,
                           .overlay = overlay,
                           .marks = NODE_MARKS_USER };
    assert_ok(txns_open(&o, &p->t, &p->e), &p->e);
}

static void close_space(struct space *p)
{
    txns_close(p->t);
    (void)close(p->fd);
    bool empty = false;
    assert_int_equal(file_dir_is_empty(AT_FDCWD, at(p->s, "private"), &empty, NULL), 0);
    assert_true(empty);
}

static struct txn *begin(struct space *p)
{
    struct txn *x = NULL;
    assert_ok(txn_begin(p->t, &x, &p->e), &p->e);
    return x;
}

static const char *inside(struct space *p, const struct txn *x, const char *name)
{
    return txn_copy(x) != NULL ? arena_printf(p->s->arena, "%s/%s", txn_copy(x), name)
                               : arena_printf(p->s->arena, "%s/private/%s/upper/%s", p->s->path,
                                              txn_layer(x), name);
}

static void test_commit_and_rollback(void **state)
{
    struct scene *s = *state;
    struct space p;
    struct txn_report report;
    put(s, "ws/a", "1");
    put(s, "ws/d/gone", "x");
    open_space(&p, s, false);
    struct txn *x = begin(&p);
    put(s, inside(&p, x, "a"), "2");
    put(s, inside(&p, x, "n/new"), "3");
    assert_int_equal(unlink(inside(&p, x, "d/gone")), 0);
    struct txn *y = begin(&p);
    assert_string_equal(text_of(s, inside(&p, y, "a")), "1");
    assert_ok(txn_commit(x, &report, &p.e), &p.e);
    assert_int_equal(report.files, 2);
    assert_int_equal(report.removed, 1);
    put(s, inside(&p, y, "a"), "never");
    txn_rollback(y);
    assert_string_equal(text_of(s, "ws/a"), "2");
    assert_string_equal(text_of(s, "ws/n/new"), "3");
    assert_false(there(s, "ws/d/gone"));
    assert_true(there(s, "ws/d"));
    close_space(&p);
}

/* Nothing is written for a program that only looked; what it did to the root itself counts. */
static void test_nothing_changed(void **state)
{
    struct scene *s = *state;
    struct txn_report report;
    struct stat st;
    for (int overlay = 0; overlay < 2; overlay++) {
        struct space p;
        const struct timespec long_ago[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
        put(s, "ws/a", "1");
        assert_int_equal(chmod(at(s, "ws"), 0755), 0);
        assert_int_equal(utimensat(AT_FDCWD, at(s, "ws"), long_ago, 0), 0);
        open_space(&p, s, overlay == 1);
        struct txn *x = begin(&p);
        assert_ok(txn_commit(x, &report, &p.e), &p.e);
        assert_int_equal(report.entries, 0);
        assert_int_equal(stat(at(s, "ws"), &st), 0);
        assert_int_equal(st.st_mtime, 1);
        x = begin(&p);
        assert_int_equal(chmod(inside(&p, x, "."), 0700), 0);
        assert_ok(txn_commit(x, &report, &p.e), &p.e);
        assert_int_equal(stat(at(s, "ws"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        x = begin(&p);
        assert_int_equal(setxattr(inside(&p, x, "."), "user.note", "1", 1, 0), 0);
        assert_ok(txn_commit(x, &report, &p.e), &p.e);
        assert_int_equal(getxattr(at(s, "ws"), "user.note", NULL, 0), 1);
        assert_int_equal(removexattr(at(s, "ws"), "user.note"), 0);
        close_space(&p);
    }
}

static void test_parallel_on_different_files(void **state)
{
    struct scene *s = *state;
    struct space p;
    put(s, "ws/d/a", "1");
    put(s, "ws/d/b", "1");
    open_space(&p, s, false);
    struct txn *x = begin(&p);
    struct txn *y = begin(&p);
    assert_int_equal(txns_active(p.t), 2);
    put(s, inside(&p, x, "d/a"), "x");
    put(s, inside(&p, y, "d/b"), "y");
    put(s, inside(&p, x, "same/x"), "x"); /* both make the directory */
    put(s, inside(&p, y, "same/y"), "y");
    assert_ok(txn_commit(x, NULL, &p.e), &p.e);
    assert_ok(txn_commit(y, NULL, &p.e), &p.e);
    assert_string_equal(text_of(s, "ws/d/a"), "x");
    assert_string_equal(text_of(s, "ws/d/b"), "y");
    assert_true(there(s, "ws/same/x") && there(s, "ws/same/y"));
    close_space(&p);
}

/* What one transaction did to "d" and another to "d" collides, in either order. */
static void collide(struct scene *s, void (*first)(struct space *, const struct txn *),
                    void (*second)(struct space *, const struct txn *), const char *path)
{
    struct space p;
    struct txn_report report;
    put(s, "ws/d/a", "1");
    put(s, "ws/d/deep/b", "1");
    open_space(&p, s, false);
    struct txn *x = begin(&p);
    struct txn *y = begin(&p);
    first(&p, x);
    second(&p, y);
    assert_ok(txn_commit(x, NULL, &p.e), &p.e);
    assert_int_equal(txn_commit(y, &report, &p.e), -ERR_EXISTS);
    assert_string_equal(report.conflict, path);
    assert_int_equal(txns_active(p.t), 0);
    close_space(&p);
    assert_int_equal(file_remove_tree(AT_FDCWD, at(s, "ws"), NULL), 0);
}

static void edit(struct space *p, const struct txn *x)
{
    put(p->s, inside(p, x, "d/deep/b"), "edited");
}

static void remove_dir(struct space *p, const struct txn *x)
{
    assert_int_equal(file_remove_tree(AT_FDCWD, inside(p, x, "d"), NULL), 0);
}

static void make_file_of_dir(struct space *p, const struct txn *x)
{
    remove_dir(p, x);
    put(p->s, inside(p, x, "d"), "a file now");
}

static void remove_file(struct space *p, const struct txn *x)
{
    assert_int_equal(unlink(inside(p, x, "d/deep/b")), 0);
}

static void test_conflicts(void **state)
{
    struct scene *s = *state;
    collide(s, edit, edit, "d/deep/b");
    collide(s, edit, remove_file, "d/deep/b");
    collide(s, remove_file, edit, "d/deep/b");
    collide(s, edit, remove_dir, "d");
    collide(s, remove_dir, edit, "d");
    collide(s, edit, make_file_of_dir, "d");
    collide(s, make_file_of_dir, edit, "d");
}

/* After the first commit a new transaction sees the new state, and there is nothing to collide. */
static void test_one_after_the_other(void **state)
{
    struct scene *s = *state;
    struct space p;
    put(s, "ws/a", "1");
    open_space(&p, s, false);
    for (int i = 0; i < 5; i++) {
        struct txn *x = begin(&p);
        put(s, inside(&p, x, "a"), i % 2 == 0 ? "even" : "odd");
        assert_ok(txn_commit(x, NULL, &p.e), &p.e);
    }
    assert_string_equal(text_of(s, "ws/a"), "even");
    close_space(&p);
}

/* The agent writes by itself while a tool runs. */
static void test_conflict_with_the_agent(void **state)
{
    struct scene *s = *state;
    struct space p;
    struct txn_report report;
    struct stat now;
    put(s, "ws/a", "1");
    put(s, "ws/d/b", "1");
    open_space(&p, s, false);
    struct txn *x = begin(&p);
    struct txn *y = begin(&p);
    put(s, inside(&p, x, "a"), "tool");
    remove_dir(&p, y);
    int64_t begun = clock_wall();
    do { /* the clock of the file system moves in steps of milliseconds */
        put(s, "ws/a", "agent");
        put(s, "ws/d/b", "agent");
        assert_int_equal(stat(at(s, "ws/a"), &now), 0);
    } while ((int64_t)now.st_ctim.tv_sec * NSEC_PER_SEC + now.st_ctim.tv_nsec <= begun);
    assert_int_equal(txn_commit(x, &report, &p.e), -ERR_EXISTS);
    assert_string_equal(report.conflict, "a");
    assert_string_equal(text_of(s, "ws/a"), "agent");
    assert_int_equal(txn_commit(y, &report, &p.e), -ERR_EXISTS);
    assert_string_equal(report.conflict, "d");
    close_space(&p);
}

/* --- upper layers --- */

static void test_upper_layer(void **state)
{
    struct scene *s = *state;
    struct space p;
    put(s, "ws/keep", "1");
    put(s, "ws/gone", "1");
    put(s, "ws/d/keep", "1");
    put(s, "ws/d/gone/deep", "1");
    put(s, "ws/becomes_dir", "1");
    put(s, "ws/becomes_file/x", "1");
    open_space(&p, s, true);
    struct txn *x = begin(&p);
    whiteout(s, inside(&p, x, "gone"));
    make_dir(s, inside(&p, x, "d"));
    whiteout(s, inside(&p, x, "d/gone"));
    put(s, inside(&p, x, "d/new"), "2");
    put(s, inside(&p, x, "becomes_dir/in"), "3");
    put(s, inside(&p, x, "becomes_file"), "4");
    assert_ok(txn_commit(x, NULL, &p.e), &p.e);
    assert_false(there(s, "ws/gone") || there(s, "ws/d/gone"));
    assert_true(there(s, "ws/keep") && there(s, "ws/d/keep"));
    assert_string_equal(text_of(s, "ws/d/new"), "2");
    assert_string_equal(text_of(s, "ws/becomes_dir/in"), "3");
    assert_string_equal(text_of(s, "ws/becomes_file"), "4");
    close_space(&p);
}

/* The change cannot be staged: nothing has happened, and the next transaction works. */
static void test_a_commit_that_cannot_be_staged(void **state)
{
    struct scene *s = *state;
    struct space p;
    put(s, "ws/a", "1");
    open_space(&p, s, true);
    struct txn *x = begin(&p);
    put(s, inside(&p, x, "a"), "2");
    if (mknod(inside(&p, x, "device"), S_IFCHR | 0600, makedev(1, 3)) < 0) {
        txn_rollback(x);
        close_space(&p);
        skip(); /* only root may make one */
    }
    assert_true(txn_commit(x, NULL, &p.e) < 0);
    assert_string_equal(text_of(s, "ws/a"), "1");
    x = begin(&p);
    put(s, inside(&p, x, "a"), "3");
    assert_ok(txn_commit(x, NULL, &p.e), &p.e);
    assert_string_equal(text_of(s, "ws/a"), "3");
    close_space(&p);
}

static void test_a_damaged_journal_is_told(void **state)
{
    struct scene *s = *state;
    struct err e = { 0 };
    CLEANUP(fd) int fd = open_dir(s, "ws");
    struct txns_opts o = {
        .workspace_fd = fd, .dir = at(s, "private"), .layers_fd = -1, .overlay = true
    };
    put(s, "private/01a1e1ad-3bdc-7ffb-b9ec-261a7faac50c/journal", "cinch merge 1\noXX");
    make_dir(s, "private/01a1e1ad-3bdc-7ffb-b9ec-261a7faac50c/stage");
    make_dir(s, "private/01a1e1ad-3bdc-7ffb-b9ec-261a7faac50c/upper");
    assert_int_equal(txns_recover(&o, &e), -ERR_PARSE);
    assert_non_null(strstr(e.msg, "journal"));
}

static void test_journal_paths_stay_inside(void **state)
{
    static const char *const bad[] = { "cinch merge 1\nor.../../etc\0\0E",
                                       "cinch merge 1\nor./etc\0\0E", "cinch merge 1\nor.a//b\0\0E",
                                       "cinch merge 1\nom.a\0\0E", "cinch merge 1\nor.\0\0E" };
    static const size_t len[] = { 27, 23, 23, 20, 19 };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct delta d;
        bool in;
        delta_init(&d);
        assert_int_equal(merge_parse_journal(str_n(bad[i], len[i]), &d, &in, NULL), -ERR_PARSE);
        delta_done(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(test_commit_and_rollback),
        SCENE_TEST(test_nothing_changed),
        SCENE_TEST(test_parallel_on_different_files),
        SCENE_TEST(test_conflicts),
        SCENE_TEST(test_one_after_the_other),
        SCENE_TEST(test_conflict_with_the_agent),
        SCENE_TEST(test_upper_layer),
        SCENE_TEST(test_a_commit_that_cannot_be_staged),
        SCENE_TEST(test_a_damaged_journal_is_told),
        SCENE_TEST(test_journal_paths_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
