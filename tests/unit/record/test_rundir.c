/* SPDX-License-Identifier: MIT
 *
 * The run directory: what is accepted, what is refused, who owns it, what is never followed.
 */
#include "record/rundir.h"

#include <sys/stat.h>

#include "scratch.h"

static void makes_the_layout(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "a/b/out"), NULL, NULL), 0);
    static const char *const files[] = { "stdout.log", "stderr.log", "agent.log",
                                         "transcript.jsonl", "events.jsonl" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        assert_true(file_exists(d.dir_fd, files[i]));
    }
    assert_true(file_is_dir(d.dir_fd, "logs"));
    assert_true(file_is_dir(d.dir_fd, "evidence"));
    assert_true(file_is_dir(d.dir_fd, "artifacts"));
    assert_null(d.archived);
    assert_true(d.locked);
}

static void takes_an_empty_directory_and_refuses_others(void **state)
{
    struct scratch *s = *state;
    struct err e;
    struct rundir d;
    const char *out = scratch_path(s, "out");
    assert_int_equal(mkdir(out, 0755), 0);
    assert_int_equal(rundir_create(&d, out, NULL, NULL), 0);
    rundir_done(&d);
    assert_int_equal(rundir_create(&d, out, NULL, &e), -ERR_OUTPUT);
    assert_non_null(strstr(e.msg, "is not empty"));
    assert_non_null(strstr(e.msg, "--force"));
    scratch_write(s, "file", STR("x"));
    assert_int_equal(rundir_create(&d, scratch_path(s, "file"), NULL, &e), -ERR_OUTPUT);
    assert_int_equal(d.dir_fd, -1);
}

static void force_moves_the_old_one_aside(void **state)
{
    struct scratch *s = *state;
    const char *out = scratch_path(s, "out");
    struct rundir_opts force = { .force = true };
    assert_int_equal(mkdir(out, 0755), 0);
    scratch_write(s, "out/old", STR("old content"));
    char *first = NULL;
    for (int i = 0; i < 3; i++) { /* within one second: the names must differ all the same */
        CLEANUP(rundir) struct rundir d;
        assert_int_equal(rundir_create(&d, out, &force, NULL), 0);
        assert_non_null(d.archived);
        assert_memory_equal(d.archived, out, strlen(out));
        assert_true(file_is_dir(AT_FDCWD, d.archived));
        assert_false(file_exists(d.dir_fd, "old"));
        first = first == NULL ? arena_dup(s->arena, str_of(d.archived)) : first;
    }
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_int_equal(file_read(AT_FDCWD, arena_printf(s->arena, "%s/old", first), 100, &text, NULL),
                     0);
    assert_string_equal(text.ptr, "old content");
}

static void force_never_moves_the_current_directory(void **state)
{
    struct scratch *s = *state;
    struct err e;
    struct rundir d;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(mkdir(scratch_path(s, "project"), 0755), 0);
    assert_int_equal(mkdir(scratch_path(s, "project/sub"), 0755), 0);
    assert_int_equal(chdir(scratch_path(s, "project/sub")), 0);
    int r =
        rundir_create(&d, scratch_path(s, "project"), &(struct rundir_opts) { .force = true }, &e);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(r, -ERR_OUTPUT);
    assert_true(file_is_dir(AT_FDCWD, scratch_path(s, "project/sub")));
}

static void a_living_owner_is_respected(void **state)
{
    struct scratch *s = *state;
    struct err e;
    const char *out = scratch_path(s, "out");
    struct rundir owner;
    assert_int_equal(rundir_create(&owner, out, NULL, NULL), 0);
    struct rundir other;
    assert_int_equal(rundir_create(&other, out, &(struct rundir_opts) { .force = true }, &e),
                     -ERR_OUTPUT);
    assert_non_null(strstr(e.msg, "is in use by another run"));
    assert_int_equal(rundir_open(&other, out, &e), -ERR_EXISTS);
    assert_false(other.locked);
    rundir_done(&other);
    rundir_done(&owner);
    assert_int_equal(rundir_open(&other, out, &e), 0);
    assert_true(other.locked);
    rundir_done(&other);
    assert_int_equal(rundir_open(&other, scratch_path(s, "nothing"), &e), -ERR_INPUT);
}

static void never_follows_what_the_harness_planted(void **state)
{
    struct scratch *s = *state;
    struct err e;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    scratch_write(s, "precious", STR("keep me"));
    assert_int_equal(symlinkat("../precious", d.dir_fd, "link"), 0);
    assert_int_equal(mkfifoat(d.dir_fd, "fifo", 0644), 0);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_true(rundir_open_append(&d, "link", &e) < 0);
    assert_true(rundir_open_append(&d, "fifo", &e) < 0);
    assert_true(rundir_read(&d, "link", 100, &text, &e) < 0);
    assert_int_equal(rundir_read(&d, "fifo", 100, &text, &e), -ERR_INPUT);
    assert_int_equal(rundir_size(&d, "link"), 0);
    assert_int_equal(rundir_write_text(&d, "link", STR("new"), &e), 0);
    assert_str_eq(scratch_read(s, "precious"), "keep me");
    assert_str_eq(scratch_read(s, "out/link"), "new");
}

static void lists_what_is_there(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    assert_int_equal(mkdirat(d.dir_fd, "home", 0755), 0);
    assert_int_equal(mkdirat(d.dir_fd, "artifacts/deep", 0755), 0);
    scratch_write(s, "out/home/cache", STR("x"));
    scratch_write(s, "out/artifacts/deep/a.txt", STR("x"));
    scratch_write(s, "out/state.json", STR("{}"));
    scratch_write(s, "out/manifest.json", STR("{}"));
    assert_int_equal(symlinkat("/etc", d.dir_fd, "artifacts/etc"), 0);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(rundir_list(&d, s->arena), JSON_COMPACT, &text, NULL), 0);
    assert_string_equal(text.ptr, "[\"agent.log\",\"artifacts/deep/a.txt\",\"events.jsonl\","
                                  "\"stderr.log\",\"stdout.log\",\"transcript.jsonl\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(makes_the_layout),
        SCRATCH_TEST(takes_an_empty_directory_and_refuses_others),
        SCRATCH_TEST(force_moves_the_old_one_aside),
        SCRATCH_TEST(force_never_moves_the_current_directory),
        SCRATCH_TEST(a_living_owner_is_respected),
        SCRATCH_TEST(never_follows_what_the_harness_planted),
        SCRATCH_TEST(lists_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
