/* SPDX-License-Identifier: MIT
 *
 * Naming runs: paths, last, parts of ids, directories here, and what is ambiguous or missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/run_store.h"

struct fixture {
    struct arena *arena;
    char root[PATH_MAX]; /* the current directory of the test */
    char before[PATH_MAX];
    struct err e;
};

static void put_run(const char *name, const char *run_id, const char *started)
{
    char path[PATH_MAX];
    char text[512];
    (void)snprintf(path, sizeof path, "store/%s", name);
    assert_int_equal(file_mkdirs(AT_FDCWD, path, 0700, NULL), 0);
    (void)snprintf(path, sizeof path, "store/%s/state.json", name);
    (void)snprintf(text, sizeof text,
                   "{\"run_id\":\"%s\",\"adapter\":\"command\",\"state\":\"succeeded\","
                   "\"started_at\":\"%s\"}",
                   run_id, started);
    assert_int_equal(file_write_atomic(AT_FDCWD, path, str_of(text), 0600, NULL), 0);
}

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    const char *base = getenv("TMPDIR");
    f->arena = arena_new();
    (void)snprintf(f->root, sizeof f->root, "%s/runstore-XXXXXX", base == NULL ? "/tmp" : base);
    assert_non_null(mkdtemp(f->root));
    assert_non_null(getcwd(f->before, sizeof f->before));
    assert_int_equal(chdir(f->root), 0);
    put_run("old", "01900000-0000-7000-8000-0000aaaa1111", "2026-11-01T10:00:00.000Z");
    put_run("new", "01900000-0000-7000-8000-0000bbbb2222", "2026-11-03T10:00:00.000Z");
    put_run("mid", "01900000-0000-7000-8000-0000cccc1111", "2026-11-02T10:00:00.000Z");
    assert_int_equal(file_mkdirs(AT_FDCWD, "store/not-a-run", 0700, NULL), 0);
    assert_int_equal(file_mkdirs(AT_FDCWD, "out", 0700, NULL), 0);
    assert_int_equal(file_mkdirs(AT_FDCWD, "bbbb2222", 0700, NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(chdir(f->before), 0);
    assert_int_equal(file_remove_tree(AT_FDCWD, f->root, NULL), 0);
    arena_free(f->arena);
    test_free(f);
    return 0;
}

static void test_list(void **state)
{
    struct fixture *f = *state;
    struct run_list l;
    assert_int_equal(run_store_list(f->arena, "store", &l, &f->e), 0);
    assert_int_equal(l.count, 3);
    assert_string_equal(l.runs[0].name, "new");
    assert_string_equal(l.runs[1].name, "mid");
    assert_string_equal(l.runs[2].name, "old");
    assert_string_equal(run_short_id(l.runs[2].run_id), "aaaa1111");
    assert_int_equal(run_store_list(f->arena, "missing", &l, &f->e), 0);
    assert_int_equal(l.count, 0);
}

static void test_find(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name, *end; /* of the path */
    } cases[] = {
        { "last", "/store/new" },
        { "last-0", "/store/new" },
        { "last-2", "/store/old" },
        { "aaaa1111", "/store/old" },
        { "AAAA1111", "/store/old" },
        { "2222", "/store/new" },
        { "mid", "/store/mid" },
        { "01900000-0000-7000-8000-0000cccc1111", "/store/mid" },
        { "01900000000070008000", NULL }, /* all begin like this */
        { "1111", NULL },
        { "out", "out" },
        { "./bbbb2222", "./bbbb2222" },
        { ".", "." },
        { "bbbb2222", NULL }, /* here and in the store */
        { "last-3", NULL },
        { "last-x", NULL },
        { "111", NULL }, /* too short */
        { "nothing", NULL },
        { "not-a-run", NULL },
        { "../else/where", "../else/where" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = NULL;
        int r = run_store_find(f->arena, "store", cases[i].name, &path, &f->e);
        if (cases[i].end == NULL) {
            assert_true(r < 0);
        } else {
            assert_int_equal(r, 0);
            assert_true(str_ends(str_of(path), str_of(cases[i].end)));
        }
    }
}

static void test_messages(void **state)
{
    struct fixture *f = *state;
    const char *path;
    assert_int_equal(run_store_find(f->arena, "store", "1111", &path, &f->e), -ERR_USAGE);
    assert_string_equal(f->e.msg, "'1111' matches 2 runs: 01900000-0000-7000-8000-0000cccc1111, "
                                  "01900000-0000-7000-8000-0000aaaa1111");
    assert_int_equal(run_store_find(f->arena, "missing", "last", &path, &f->e), -ERR_INPUT);
    assert_string_equal(f->e.msg, "there is no 'last': the run store is empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_find, setup, teardown),
        cmocka_unit_test_setup_teardown(test_messages, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
