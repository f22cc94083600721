/* SPDX-License-Identifier: MIT
 *
 * Run directories in every condition: finished, running, abandoned, damaged, half empty, hostile.
 * Whatever is in them, the reader answers, and nothing dangerous is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/digest.h"
#include "record/rundir.h"
#include "record/state.h"

struct fixture {
    struct arena *arena;
    char dir[4096];
    int fd;
    struct digest d;
    struct err e;
    struct buf text;
};

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    const char *base = getenv("TMPDIR");
    f->arena = arena_new();
    (void)snprintf(f->dir, sizeof f->dir, "%s/digest-XXXXXX", base == NULL ? "/tmp" : base);
    assert_non_null(mkdtemp(f->dir));
    f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->d.dir_fd = -1;
    buf_init(&f->text, BUF_TEXT);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    digest_done(&f->d);
    buf_done(&f->text);
    (void)close(f->fd);
    assert_int_equal(file_remove_tree(AT_FDCWD, f->dir, NULL), 0);
    arena_free(f->arena);
    test_free(f);
    return 0;
}

static void put(struct fixture *f, const char *name, const char *content)
{
    assert_int_equal(file_write_atomic(f->fd, name, str_of(content), 0644, NULL), 0);
}

/* Reads the directory and renders it for a screen of 80 columns without colour. */
static void look(struct fixture *f)
{
    digest_done(&f->d);
    assert_int_equal(digest_read(&f->d, f->dir, f->arena, &f->e), 0);
    buf_reset(&f->text);
    digest_text(&f->d, (struct digest_style) { .width = 80, .lines = 3 }, f->arena, &f->text);
}

static void assert_line(const struct fixture *f, const char *line)
{
    if (strstr(f->text.ptr, line) == NULL) {
        fail_msg("'%s' is not in:\n%s", line, f->text.ptr);
    }
}

static void assert_no_line(const struct fixture *f, const char *line)
{
    if (strstr(f->text.ptr, line) != NULL) {
        fail_msg("'%s' is in:\n%s", line, f->text.ptr);
    }
}

#define STATE_DONE                                                                            \
    "{\"run_id\":\"0192f000-0000-7000-8000-000000000001\",\"adapter\":\"command\",\"phase\":" \
    "\"done\","                                                                               \
    "\"state\":\"failed\",\"reason\":\"timeout\",\"exit_code\":124}"
#define MANIFEST                                                                                 \
    "{\"status\":\"completed\",\"outcome\":\"failure\",\"artifacts\":[\"stdout.log\",\"diff."    \
    "patch\","                                                                                   \
    "\"artifacts/a.txt\"],\"metadata\":{\"agent\":\"command\",\"engine\":{\"name\":\"./agent\"," \
    "\"version\":\"1.2\",\"model\":\"m1\"}},\"state\":\"failed\",\"reason\":\"timeout\","        \
    "\"exit_code\":124,\"started_at\":\"2026-11-15T20:29:35.123Z\",\"warnings\":[\"low disk\"]}"
#define METRICS                                                                                \
    "{\"tokens_input\":12345,\"tokens_output\":67,\"cost_usd\":0.5,\"duration_seconds\":83.2," \
    "\"ext\":{\"phase_ms\":{\"admit\":3,\"execute\":82000},\"bytes\":{\"lost\":2048}}}"
#define RESULT                                                                                     \
    "{\"outcome\":\"failure\",\"reason\":\"timeout\",\"error\":\"total deadline of 80 s passed\"," \
    "\"passed\":false,\"text\":\"one\\ntwo\\nthree\\nfour\",\"session_id\":\"s-1\","               \
    "\"engine_exit\":{\"signal\":15}}"

static void put_finished(struct fixture *f)
{
    put(f, "state.json", STATE_DONE);
    put(f, "manifest.json", MANIFEST);
    put(f, "metrics.json", METRICS);
    put(f, "result.json", RESULT);
    put(f, "stdout.log", "0123456789");
    put(f, "stderr.log", "");
    put(f, "diff.patch", "xyz");
}

static void test_finished(void **state)
{
    struct fixture *f = *state;
    put_finished(f);
    look(f);
    assert_int_equal(f->d.status, RUN_STATUS_FAILED);
    assert_int_equal(f->d.reason, REASON_TIMEOUT);
    assert_int_equal(f->d.problem_count, 0);
    static const char *const lines[] = {
        "run      0192f000-0000-7000-8000-000000000001\n",
        "outcome  failed after 1m 23s: total deadline of 80 s passed (reason: timeout)\n",
        "passed   no\n",
        "agent    command (./agent 1.2), model m1\n",
        "started  2026-11-15T20:29:35.123Z\n",
        "exit     124; the program was killed by signal 15 SIGTERM\n",
        "output   stdout 10 B, stderr 0 B; lost: 2.0 KiB\n",
        "model    12,345 tokens in, 67 out, $0.5000\n",
        "time     execute 1m 22s\n",
        "\nArtifacts\n  missing  artifacts/a.txt\n",
        "\nWarnings\n  low disk\n",
        "\nFinal answer (last lines)\n  two\n  three\n  four\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_line(f, lines[i]);
    }
    assert_no_line(f, "Problems");
    assert_no_line(f, "s-1"); /* only if verbose */
}

static void test_running(void **state)
{
    struct fixture *f = *state;
    struct rundir dir = { .dir_fd = f->fd, .reserve_fd = -1 };
    struct state s = { .adapter = "command", .phase = "execute", .started_wall = clock_wall() };
    owner_self(&s.owner);
    assert_int_equal(state_write(&s, &dir, NULL), 0);
    put(f, "stdout.log", "so far\n");
    look(f);
    assert_int_equal(f->d.status, RUN_STATUS_RUNNING);
    assert_int_equal(f->d.pid, getpid());
    assert_int_equal(f->d.problem_count, 0); /* the other files come at the end */
    assert_line(f, ", phase execute, process ");
    assert_line(f, "outcome  running for 0.");
    assert_line(f, "\nstdout.log\n  so far\n");
}

static void test_abandoned(void **state)
{
    struct fixture *f = *state;
    put(f, "state.json",
        "{\"phase\":\"execute\",\"state\":\"running\",\"reason\":null,\"pid\":1,\"pid_start\":1,"
        "\"boot_id\":\"00000000-0000-0000-0000-000000000000\"}");
    look(f);
    assert_int_equal(f->d.status, RUN_STATUS_ABANDONED);
    assert_line(f, "outcome  abandoned in phase execute: the process no longer exists\n");
    assert_line(f, "'cinch recover'");
}

static void test_half_missing(void **state)
{
    struct fixture *f = *state;
    put(f, "manifest.json", MANIFEST);
    look(f);
    assert_int_equal(f->d.status, RUN_STATUS_FAILED);
    assert_int_equal(f->d.reason, REASON_TIMEOUT);
    assert_line(f, "\nProblems\n  state.json    missing\n  metrics.json  missing\n"
                   "  result.json   missing\n");
    assert_line(f, "agent    command (./agent 1.2), model m1\n");

    put_finished(f);
    assert_int_equal(unlinkat(f->fd, "manifest.json", 0), 0);
    look(f);
    assert_int_equal(f->d.status, RUN_STATUS_FAILED);
    assert_line(f, "\nProblems\n  manifest.json  missing\n");

    /* Only output is left: something ran here, nobody knows what. */
    assert_int_equal(unlinkat(f->fd, "state.json", 0), 0);
    assert_int_equal(unlinkat(f->fd, "metrics.json", 0), 0);
    assert_int_equal(unlinkat(f->fd, "result.json", 0), 0);
    look(f);
    assert_int_equal(f->d.status, RUN_STATUS_UNKNOWN);
    assert_int_equal(f->d.reason, REASON_NONE);
}

static void test_damaged(void **state)
{
    struct fixture *f = *state;
    put_finished(f);
    put(f, "manifest.json", "{\"status\":\"compl");
    put(f, "metrics.json", "[]");
    assert_int_equal(unlinkat(f->fd, "result.json", 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", f->fd, "result.json"), 0);
    look(f);
    assert_int_equal(f->d.status, RUN_STATUS_FAILED);
    assert_line(f, "  manifest.json  damaged: line 1, column ");
    assert_line(f, "  metrics.json   damaged: not a JSON object\n");
    assert_line(f, "  result.json    is a symbolic link\n");
}

/* A pipe in place of a file must not block, a directory must not be read. */
static void test_strange_files(void **state)
{
    struct fixture *f = *state;
    put_finished(f);
    assert_int_equal(unlinkat(f->fd, "stdout.log", 0), 0);
    assert_int_equal(unlinkat(f->fd, "result.json", 0), 0);
    assert_int_equal(unlinkat(f->fd, "metrics.json", 0), 0);
    assert_int_equal(mkfifoat(f->fd, "stdout.log", 0600), 0);
    assert_int_equal(mkfifoat(f->fd, "result.json", 0600), 0);
    assert_int_equal(mkdirat(f->fd, "metrics.json", 0700), 0);
    look(f);
    assert_line(f,
                "  metrics.json  is not a regular file\n  result.json   is not a regular file\n");
}

/* Fields of wrong types are as good as missing ones. */
static void test_wrong_types(void **state)
{
    struct fixture *f = *state;
    put(f, "state.json", "{\"run_id\":7,\"phase\":[],\"state\":{},\"reason\":true,\"pid\":\"x\"}");
    put(f, "manifest.json",
        "{\"artifacts\":{\"a\":1},\"metadata\":[],\"warnings\":[1,null],"
        "\"exit_code\":\"x\",\"outcome\":3,\"started_at\":\"yesterday\"}");
    put(f, "metrics.json",
        "{\"tokens_input\":-5,\"cost_usd\":\"free\",\"duration_seconds\":1e300,"
        "\"ext\":{\"phase_ms\":{\"a\":9223372036854775807,\"b\":-1,\"c\":\"x\"},"
        "\"bytes\":[]}}");
    put(f, "result.json", "{\"text\":{},\"engine_exit\":{\"code\":\"x\"},\"passed\":\"maybe\"}");
    look(f);
    assert_int_equal(f->d.status, RUN_STATUS_UNKNOWN);
    assert_line(f, "started  yesterday\n");
}

static void test_hostile_text(void **state)
{
    struct fixture *f = *state;
    put(f, "state.json", STATE_DONE);
    put(f, "manifest.json",
        "{\"artifacts\":[\"a\\u001b[2Jb\"],\"metadata\":{\"agent\":\"x\\u001b]0;t\\u0007\"},"
        "\"warnings\":[\"w\\u009b\\u202e\"],\"error\":\"e\\r\\n\\u001b\"}");
    put(f, "metrics.json", "{\"ext\":{\"phase_ms\":{\"p\\u001b[0m\":5}}}");
    put(f, "result.json", "{\"text\":\"\\u001b[31mred\\u001b[0m\\u0000\",\"reason\":\"\\u001b\"}");
    look(f);
    for (size_t i = 0; i < f->text.len; i++) {
        unsigned char c = (unsigned char)f->text.ptr[i];
        assert_true(c == '\n' || (c >= 0x20 && c != 0x7f));
    }
    assert_line(f, "\\x1b[31mred");
    assert_line(f, "w\\u009b\\u202e");
}

static void test_long_lines(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf) struct buf log = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 40000; i++) {
        buf_adds(&log, "word ");
    }
    put(f, "stdout.log", log.ptr);
    put(f, "state.json", STATE_DONE);
    look(f);
    assert_true(f->text.len < 4096);
    assert_line(f, "\n  word word ");
    assert_line(f, "...\n");
}

static void test_not_a_run(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(digest_read(&f->d, f->dir, f->arena, &f->e), -ERR_INPUT);
    assert_non_null(strstr(f->e.msg, "is not a run directory"));
    assert_int_equal(f->d.dir_fd, -1);
    assert_int_equal(digest_read(&f->d, "/nonexistent", f->arena, &f->e), -ERR_INPUT);
    assert_int_equal(digest_read(&f->d, "/etc/passwd", f->arena, &f->e), -ERR_INPUT);
    assert_string_equal(f->e.msg, "'/etc/passwd' is a file, not a run directory");
}

static void test_json(void **state)
{
    struct fixture *f = *state;
    put_finished(f);
    put(f, "metrics.json", "nonsense");
    look(f);
    const struct json *o = digest_json(&f->d, f->arena);
    assert_string_equal(json_cstring(json_get(o, "status"), ""), "failed");
    assert_string_equal(json_cstring(json_get(o, "reason"), ""), "timeout");
    assert_string_equal(json_cstring(json_get(o, "path"), ""), f->dir);
    assert_true(json_is(json_get(o, "metrics"), JSON_NULL));
    assert_true(json_is(json_get(o, "manifest"), JSON_OBJECT));
    assert_int_equal(json_len(json_get(o, "problems")), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_finished, setup, teardown),
        cmocka_unit_test_setup_teardown(test_running, setup, teardown),
        cmocka_unit_test_setup_teardown(test_abandoned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_half_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strange_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_types, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_a_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
