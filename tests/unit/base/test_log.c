/* SPDX-License-Identifier: MIT
 *
 * One record is one line whatever is in its fields, and JSON records are JSON. stderr is redirected
 * into a file around each call.
 */
#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"

static int begin_capture(int *saved)
{
    int fd = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(fd >= 0);
    *saved = dup(STDERR_FILENO);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    return fd;
}

static void end_capture(int fd, int saved, struct buf *ret)
{
    char chunk[4096];
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n <= 0) {
            break;
        }
        buf_add(ret, str_n(chunk, (size_t)n));
    }
    (void)close(fd);
}

static size_t count_lines(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        n += s.ptr[i] == '\n';
    }
    return n;
}

static void write_awkward(void)
{
    LOG_DEBUG("proc", "spawned", LOG_INT("pid", -5), LOG_STR("argv0", "a b\n\"c\"\x01\xff"));
    LOG_WARN("run", "no fields");
}

static void test_json_lines(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    CLEANUP(arena) struct arena *a = arena_new();
    int saved;
    log_init(LOG_LEVEL_DEBUG, true);
    int fd = begin_capture(&saved);
    write_awkward();
    end_capture(fd, saved, &out);
    assert_int_equal(count_lines(buf_str(&out)), 2);

    struct str rest = buf_str(&out);
    struct json *v = NULL;
    assert_int_equal(json_parse(a, str_split(&rest, '\n'), NULL, &v, NULL), 0);
    assert_string_equal(json_cstring(json_get(v, "level"), ""), "debug");
    assert_string_equal(json_cstring(json_get(v, "logger"), ""), "proc");
    assert_string_equal(json_cstring(json_get(v, "event"), ""), "spawned");
    assert_non_null(json_get(v, "message"));
    assert_int_equal(strlen(json_cstring(json_get(v, "timestamp"), "")), 24);
    struct json *context = json_get(v, "context");
    assert_int_equal(json_int(json_get(context, "pid"), 0), -5);
    assert_string_equal(json_cstring(json_get(context, "argv0"), ""), "a b\n\"c\"\x01\xef\xbf\xbd");
    assert_int_equal(json_parse(a, str_split(&rest, '\n'), NULL, &v, NULL), 0);
    assert_string_equal(json_cstring(json_get(v, "level"), ""), "warn");
    assert_int_equal(json_len(json_get(v, "context")), 0);
}

static void test_text_lines(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    int saved;
    log_init(LOG_LEVEL_DEBUG, false);
    int fd = begin_capture(&saved);
    write_awkward();
    LOG_DEBUG("a", "b", LOG_STR("plain", "x-1"));
    LOG_DEBUG("a", "b", LOG_STR("line", "x\ny"), LOG_STR("none", ""));
    end_capture(fd, saved, &out);
    assert_int_equal(count_lines(buf_str(&out)), 4); /* a line break in a value is not one here */
    assert_non_null(strstr(out.ptr, " debug proc spawned pid=-5 argv0="));
    assert_null(memchr(out.ptr, 1, out.len)); /* nothing that moves a terminal's cursor */
    assert_non_null(strstr(out.ptr, "debug a b plain=x-1\n"));
    assert_non_null(strstr(out.ptr, "debug a b line=\"x\\ny\" none=\"\"\n"));
}

static void test_levels(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    int saved;
    log_init(LOG_LEVEL_WARN, false);
    assert_false(log_enabled(LOG_LEVEL_DEBUG));
    assert_true(log_enabled(LOG_LEVEL_WARN));
    assert_true(log_enabled(LOG_LEVEL_ERROR));
    int fd = begin_capture(&saved);
    write_awkward();
    log_init(LOG_LEVEL_OFF, false);
    LOG_AT(LOG_LEVEL_ERROR, "x", "y");
    end_capture(fd, saved, &out);
    assert_int_equal(count_lines(buf_str(&out)), 1);
    assert_false(log_enabled(LOG_LEVEL_ERROR));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_lines),
        cmocka_unit_test(test_text_lines),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
