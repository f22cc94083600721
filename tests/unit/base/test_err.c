/* SPDX-License-Identifier: MIT
 *
 * What a caller relies on in struct err: the code comes back negated, the message survives wrapping
 * and overlong text, and nothing is touched without an error.
 */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_err_fills_and_returns_the_negated_code(void **state)
{
    struct err e = { 0 };
    int r = ERR(&e, ERR_PARSE, "line %d: expected %s", 3, "object");
    assert_int_equal(r, -(int)ERR_PARSE);
    assert_int_equal(e.code, ERR_PARSE);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.msg, "line 3: expected object");
    assert_non_null(strstr(e.file, "test_err.c"));
    assert_true(e.line > 0);
}

static void test_no_err_struct_is_fine(void **state)
{
    assert_int_equal(ERR(NULL, ERR_LIMIT, "x"), -(int)ERR_LIMIT);
    errno = ENOENT;
    assert_int_equal(ERR_SYS_AS(NULL, ERR_OUTPUT, "x"), -(int)ERR_OUTPUT);
    assert_true(err_wrap(NULL, "x") < 0);
}

static void test_sys_appends_the_text_of_errno(void **state)
{
    struct err e = { 0 };
    errno = ENOENT;
    assert_int_equal(ERR_SYS(&e, "open '%s'", "f"), -(int)ERR_SYS);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(e.msg, "open 'f': No such file or directory");
    errno = EACCES;
    assert_int_equal(ERR_SYS_AS(&e, ERR_OUTPUT, "create"), -(int)ERR_OUTPUT);
    assert_int_equal(e.code, ERR_OUTPUT);
    assert_int_equal(e.sys, EACCES);
}

static void test_wrap_prefixes_and_keeps_the_code(void **state)
{
    struct err e = { 0 };
    errno = EPERM;
    (void)ERR_SYS(&e, "mount");
    assert_int_equal(err_wrap(&e, "adapter '%s'", "codex"), -(int)ERR_SYS);
    assert_int_equal(e.sys, EPERM);
    assert_string_equal(e.msg, "adapter 'codex': mount: Operation not permitted");
}

static void test_arguments_may_point_into_the_message(void **state)
{
    struct err e = { 0 };
    (void)ERR(&e, ERR_PARSE, "inner");
    (void)ERR(&e, ERR_CONFIG, "outer (%s)", e.msg);
    assert_string_equal(e.msg, "outer (inner)");
}

static void test_a_long_message_is_cut_not_overrun(void **state)
{
    struct err e = { 0 };
    char big[2000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    (void)ERR(&e, ERR_PARSE, "start %s", big);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    (void)err_wrap(&e, "context");
    assert_memory_equal(e.msg, "context: start xxx", 18);
    (void)err_wrap(&e, "%s", big);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
}

static void test_every_code_has_a_word_and_an_exit_status(void **state)
{
    for (int c = ERR_OK; c < ERR_CODE_MAX; c++) {
        assert_true(err_word((enum err_code)c)[0] != '\0');
        assert_true(err_meaning((enum err_code)c)[0] != '\0');
        int status = err_exit_status((enum err_code)c);
        assert_true(c == ERR_OK ? status == 0 : status > 0 && status < 256);
        for (int d = ERR_OK; d < c; d++) {
            assert_string_not_equal(err_word((enum err_code)c), err_word((enum err_code)d));
        }
    }
    assert_string_equal(err_word((enum err_code)999), "internal");
    assert_int_equal(err_exit_status((enum err_code) - 1), err_exit_status(ERR_BUG));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_err_fills_and_returns_the_negated_code),
        cmocka_unit_test(test_no_err_struct_is_fine),
        cmocka_unit_test(test_sys_appends_the_text_of_errno),
        cmocka_unit_test(test_wrap_prefixes_and_keeps_the_code),
        cmocka_unit_test(test_arguments_may_point_into_the_message),
        cmocka_unit_test(test_a_long_message_is_cut_not_overrun),
        cmocka_unit_test(test_every_code_has_a_word_and_an_exit_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
