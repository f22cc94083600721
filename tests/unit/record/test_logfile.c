/* SPDX-License-Identifier: MIT
 *
 * Logs and files of lines: bytes arrive at once and unchanged, a full disk costs bytes but not the
 * run.
 */
#include "record/logfile.h"

#include <signal.h>
#include <sys/resource.h>

#include "record/jsonl.h"
#include "record/rundir.h"
#include "record/write_errors.h"
#include "scratch.h"

/* Everything beyond `bytes` in one file fails with EFBIG, as on a full disk: part of a write is
 * taken. */
static void limit_file_size(rlim_t bytes)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void bytes_appear_as_they_come(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("KEY"), STR("sesame-open"), NULL), 0);
    redactor_compile(r);
    struct loss loss = { 0 };
    struct logfile log;
    assert_int_equal(logfile_init(&log, &d, "stdout.log", r, &loss, NULL), 0);
    logfile_write(&log, STR("first line\n\xff\xfe\x00 binary"));
    assert_int_equal(scratch_read(s, "out/stdout.log").len, 21);
    logfile_write(&log, STR(" sesame-"));
    assert_int_equal(scratch_read(s, "out/stdout.log").len, 22);
    logfile_write(&log, STR("open!"));
    logfile_write(&log, STR("ses"));
    logfile_flush(&log);
    struct str text = scratch_read(s, "out/stdout.log");
    struct str expected = STR("first line\n\xff\xfe\x00 binary [REDACTED:KEY]!ses");
    assert_true(str_eq(text, expected));
    assert_int_equal(log.received, 37);
    assert_int_equal(log.written, expected.len);
    assert_int_equal(loss.times, 0);
    logfile_done(&log);
}

/* More replacements than one writev takes. */
static void many_secrets_in_one_read(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("K"), STR("sesame-open"), NULL), 0);
    redactor_compile(r);
    struct loss loss = { 0 };
    struct logfile log;
    assert_int_equal(logfile_init(&log, &d, "stdout.log", r, &loss, NULL), 0);
    CLEANUP(buf) struct buf in = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf expected = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 500; i++) {
        buf_addf(&in, "%d sesame-open\n", i);
        buf_addf(&expected, "%d [REDACTED:K]\n", i);
    }
    logfile_write(&log, buf_str(&in));
    assert_true(str_eq(scratch_read(s, "out/stdout.log"), buf_str(&expected)));
    assert_int_equal(log.stream.removed, 500);
    logfile_done(&log);
}

/* The linker sends writev() here (--wrap): the kernel may always take less than it was given. */
static size_t bytes_per_call;
ssize_t __real_writev(int fd, const struct iovec *pieces, int count);

ssize_t __wrap_writev(int fd, const struct iovec *pieces, int count)
{
    if (bytes_per_call == 0) {
        return __real_writev(fd, pieces, count);
    }
    size_t len = pieces[0].iov_len < bytes_per_call ? pieces[0].iov_len : bytes_per_call;
    return write(fd, pieces[0].iov_base, len);
}

static void short_writes_are_continued(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("K"), STR("sesame-open"), NULL), 0);
    redactor_compile(r);
    struct loss loss = { 0 };
    struct logfile log;
    assert_int_equal(logfile_init(&log, &d, "stdout.log", r, &loss, NULL), 0);
    bytes_per_call = 3;
    logfile_write(&log, STR("one sesame-open two sesame-open three\n"));
    bytes_per_call = 0;
    assert_str_eq(scratch_read(s, "out/stdout.log"), "one [REDACTED:K] two [REDACTED:K] three\n");
    assert_int_equal(loss.times, 0);
    logfile_done(&log);
}

static void a_full_disk_costs_bytes_not_the_run(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    struct loss loss = { 0 };
    struct logfile log;
    assert_int_equal(logfile_init(&log, &d, "stdout.log", NULL, &loss, NULL), 0);
    limit_file_size(10);
    logfile_write(&log, STR("0123456"));
    logfile_write(&log, STR("789abc"));
    logfile_write(&log, STR("def"));
    limit_file_size(RLIM_INFINITY);
    logfile_write(&log, STR("more"));
    assert_str_eq(scratch_read(s, "out/stdout.log"), "0123456789more");
    assert_int_equal(loss.times, 2);
    assert_int_equal(loss.bytes, 6);
    assert_string_equal(loss.file, "stdout.log");
    assert_non_null(strstr(loss.first.msg, "stdout.log"));
    assert_int_equal(log.received, 20);
    assert_int_equal(log.written, 14);
    logfile_done(&log);
}

static void lines_are_written_whole_or_not_at_all(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    struct loss loss = { 0 };
    struct jsonl lines;
    assert_int_equal(jsonl_init(&lines, &d, "events.jsonl", &loss, NULL), 0);
    struct json *v = scratch_json(s, STR("{\"a\":1}"));
    assert_int_equal(jsonl_append(&lines, v), JSONL_WRITTEN);
    limit_file_size(12);
    assert_int_equal(jsonl_append(&lines, v), JSONL_LOST);
    limit_file_size(RLIM_INFINITY);
    assert_int_equal(jsonl_append(&lines, v), JSONL_WRITTEN);
    assert_str_eq(scratch_read(s, "out/events.jsonl"), "{\"a\":1}\n{\"a\":1}\n");
    assert_int_equal(loss.lines, 1);
    jsonl_done(&lines);
}

static void a_line_beyond_the_limit_is_told_not_written(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    struct loss loss = { 0 };
    struct jsonl lines;
    assert_int_equal(jsonl_init(&lines, &d, "events.jsonl", &loss, NULL), 0);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    while (text.len < JSONL_LINE_MAX) {
        buf_adds(&text, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    }
    struct json *huge = json_object(s->arena);
    json_setc(s->arena, huge, "text", json_string(s->arena, buf_str(&text)));
    assert_int_equal(jsonl_append(&lines, huge), JSONL_TOO_LONG);
    assert_int_equal(jsonl_append(&lines, json_object(s->arena)), JSONL_WRITTEN);
    assert_str_eq(scratch_read(s, "out/events.jsonl"), "{}\n");
    assert_int_equal(loss.times, 0);
    jsonl_done(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(bytes_appear_as_they_come),
        SCRATCH_TEST(many_secrets_in_one_read),
        SCRATCH_TEST(short_writes_are_continued),
        SCRATCH_TEST(a_full_disk_costs_bytes_not_the_run),
        SCRATCH_TEST(lines_are_written_whole_or_not_at_all),
        SCRATCH_TEST(a_line_beyond_the_limit_is_told_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
