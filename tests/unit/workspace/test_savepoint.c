/* SPDX-License-Identifier: MIT
 *
 * Savepoints of a tree, without a kernel's help. Overlays, random work and kills are in
 * tests/integration/test_savepoint.py.
 */
#include "workspace/savepoint.h"

#include "scene.h"

struct space {
    struct scene *s;
    struct savepoints *points;
    struct savepoint_opts opts;
    struct savepoint_report report;
    struct err e;
};

static bool skip_private(void *arg, const char *path)
{
    return strcmp(path, "mine") == 0;
}

static void open_space(struct space *p, struct scene *s)
{
    int fd = open_dir(s, "ws");
    *p = (struct space) { .s = s };
    p->opts = (struct savepoint_opts) { .workspace_fd = fd,
                                        .tree_fd = fd,
                                        .base_fd = -1,
                                        .dir = at(s, "private/savepoint"),
                                        .txn_dir = at(s, "private/txn"),
                                        .skip = { skip_private, NULL } };
    assert_ok(savepoints_open(&p->opts, &p->points, &p->e), &p->e);
}

static void take(struct space *p)
{
    assert_ok(savepoint_take(p->points, &p->report, &p->e), &p->e);
}

static void restore(struct space *p)
{
    assert_ok(savepoint_decide(p->points, STR("{}"), &p->e), &p->e);
    assert_ok(savepoint_restore(p->points, &p->report, &p->e), &p->e);
    assert_false(there(p->s, "private/savepoint/" SAVEPOINT_NOTE));
}

static void close_space(struct space *p)
{
    bool empty = true;
    p->points = savepoints_close(p->points);
    assert_false(there(p->s, "private/savepoint"));
    if (there(p->s, "private/txn")) {
        assert_int_equal(file_dir_is_empty(AT_FDCWD, at(p->s, "private/txn"), &empty, NULL), 0);
    }
    assert_true(empty);
    (void)close(p->opts.tree_fd);
}

static struct stat look(struct scene *s, const char *name)
{
    struct stat st;
    assert_int_equal(lstat(at(s, name), &st), 0);
    return st;
}

static void test_everything_comes_back(void **state)
{
    struct scene *s = *state;
    struct space p;
    put(s, "ws/a", "1");
    put(s, "ws/d/gone", "x");
    put(s, "ws/same", "s");
    make_dir(s, "ws/empty");
    assert_int_equal(symlink("nowhere", at(s, "ws/link")), 0);
    assert_int_equal(link(at(s, "ws/a"), at(s, "ws/a2")), 0);
    assert_int_equal(chmod(at(s, "ws/d"), 0750), 0);
    struct stat file = look(s, "ws/a");
    struct stat dir = look(s, "ws/d");
    struct stat same = look(s, "ws/same");
    open_space(&p, s);
    take(&p);

    put(s, "ws/a", "changed");
    assert_int_equal(file_remove_tree(AT_FDCWD, at(s, "ws/d"), NULL), 0);
    put(s, "ws/d", "a file");
    assert_int_equal(rmdir(at(s, "ws/empty")), 0);
    assert_int_equal(unlink(at(s, "ws/link")), 0);
    put(s, "ws/link/deep/new", "n");
    put(s, "ws/new", "n");
    restore(&p);

    assert_string_equal(text_of(s, "ws/a"), "1");
    assert_int_equal(look(s, "ws/a").st_mtim.tv_nsec, file.st_mtim.tv_nsec);
    assert_int_equal(look(s, "ws/a").st_ino, look(s, "ws/a2").st_ino);
    assert_string_equal(text_of(s, "ws/d/gone"), "x");
    assert_int_equal(look(s, "ws/d").st_mode, dir.st_mode);
    assert_int_equal(look(s, "ws/d").st_mtim.tv_nsec, dir.st_mtim.tv_nsec);
    assert_true(there(s, "ws/empty"));
    assert_true(S_ISLNK(look(s, "ws/link").st_mode));
    assert_false(there(s, "ws/new"));
    assert_int_equal(look(s, "ws/same").st_ino, same.st_ino); /* was not touched */
    assert_int_equal(p.report.removed, 1);
    close_space(&p);
}

static void test_the_last_one_counts(void **state)
{
    struct scene *s = *state;
    struct space p;
    put(s, "ws/a", "one");
    put(s, "ws/large", "a lot of text that is copied once");
    open_space(&p, s);
    take(&p);
    put(s, "ws/a", "two");
    take(&p);
    assert_int_equal(p.report.bytes, 3); /* the rest is shared with the one before */
    put(s, "ws/a", "three");
    put(s, "ws/large", "");
    restore(&p);
    assert_string_equal(text_of(s, "ws/a"), "two");
    assert_string_equal(text_of(s, "ws/large"), "a lot of text that is copied once");
    restore(&p); /* once more changes nothing */
    assert_string_equal(text_of(s, "ws/a"), "two");
    close_space(&p);
}

static void test_what_is_not_ours_stays(void **state)
{
    struct scene *s = *state;
    struct space p;
    put(s, "ws/mine/a", "1");
    open_space(&p, s);
    take(&p);
    assert_false(there(s, "private/savepoint/tree/mine"));
    put(s, "ws/mine/a", "2");
    restore(&p);
    assert_int_equal(p.report.entries, 0);
    assert_string_equal(text_of(s, "ws/mine/a"), "2");
    close_space(&p);
}

static void test_without_a_savepoint(void **state)
{
    struct scene *s = *state;
    struct space p;
    put(s, "ws/a", "1");
    open_space(&p, s);
    assert_int_equal(savepoint_restore(p.points, &p.report, &p.e), -ERR_BUG);
    assert_string_equal(text_of(s, "ws/a"), "1");
    close_space(&p);
}

/* Decided, and then the process died. */
static void test_recover(void **state)
{
    struct scene *s = *state;
    struct space p;
    put(s, "ws/a", "1");
    open_space(&p, s);
    p.points = savepoints_close(p.points);
    assert_int_equal(savepoints_recover(&p.opts, &p.e), 0);
    assert_ok(savepoints_open(&p.opts, &p.points, &p.e), &p.e);
    take(&p);
    put(s, "ws/a", "2");
    put(s, "ws/b", "2");
    assert_ok(savepoint_decide(p.points, STR("{\"turn\":1}"), &p.e), &p.e);
    p.points = savepoints_close(p.points); /* keeps what was decided */
    assert_int_equal(savepoints_recover(&p.opts, &p.e), 1);
    assert_string_equal(text_of(s, "ws/a"), "1");
    assert_false(there(s, "ws/b"));
    assert_int_equal(savepoints_recover(&p.opts, &p.e), 0);
    close_space(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(test_everything_comes_back),
        SCENE_TEST(test_the_last_one_counts),
        SCENE_TEST(test_what_is_not_ours_stays),
        SCENE_TEST(test_without_a_savepoint),
        SCENE_TEST(test_recover),
    };
    return cmocka_run_group_tests_name("savepoint", tests, NULL, NULL);
}
