/* SPDX-License-Identifier: MIT
 *
 * Text of the built-in tools: lines, excerpts, replacements, patterns.
 */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/builtin.h"

static void assert_line(const char *bytes, size_t len, size_t max, const char *wanted, size_t bad)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(builtin_add_line(&out, str_n(bytes, len), max), bad);
    assert_true(str_eqc(buf_str(&out), wanted));
    assert_true(str_is_utf8(buf_str(&out)));
}

static void test_lines(void **state)
{
    assert_line("", 0, 10, "", 0);
    assert_line("plain", 5, 10, "plain", 0);
    assert_line("plain", 5, 3, "pla … [line cut: 5 bytes]", 0);
    assert_line("a\xFF\xFE"
                "b",
                4, 10,
                "a\xEF\xBF\xBD\xEF\xBF\xBD"
                "b",
                2);
    assert_line("x\xC3\xA4y", 4, 2, "x … [line cut: 4 bytes]", 0); /* not inside of the a umlaut */
    assert_line("\x80\x80\x80\x80", 4, 2, "\xEF\xBF\xBD\xEF\xBF\xBD … [line cut: 4 bytes]", 2);
    assert_true(builtin_is_binary(str_n("a\0b", 3)));
    assert_false(builtin_is_binary(STR("text")));
}

static void add_bytes(struct builtin_excerpt *x, size_t n, char c)
{
    char chunk[1000];
    memset(chunk, c, sizeof chunk);
    for (; n > 0; n -= n < sizeof chunk ? n : sizeof chunk) {
        builtin_excerpt_add(x, str_n(chunk, n < sizeof chunk ? n : sizeof chunk));
    }
}

static void test_excerpts(void **state)
{
    static struct builtin_excerpt x;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    builtin_excerpt_write(&x, &out);
    assert_int_equal(out.len, 0);
    builtin_excerpt_add(&x, STR("begin\n"));
    builtin_excerpt_write(&x, &out);
    assert_true(str_eqc(buf_str(&out), "begin\n"));

    add_bytes(&x, 40000, 'm'); /* beyond the head, nothing is missing yet */
    buf_reset(&out);
    builtin_excerpt_write(&x, &out);
    assert_int_equal(out.len, 40006);

    add_bytes(&x, 1000000, 'n');
    builtin_excerpt_add(&x, STR("end\n"));
    buf_reset(&out);
    builtin_excerpt_write(&x, &out);
    assert_true(out.len < 50000);
    assert_true(str_starts(buf_str(&out), STR("begin\nm")));
    assert_true(str_ends(buf_str(&out), STR("nnnend\n")));
    assert_true(str_find(buf_str(&out), STR("[… 990858 bytes left out …]")) < out.len);
}

static size_t replaced(const char *text, const char *from, const char *to, bool all,
                       const char *wanted)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    size_t n = builtin_replace_text(
        &(struct builtin_replace) {
            .text = str_of(text), .from = str_of(from), .to = str_of(to), .all = all },
        &out);
    assert_true(str_eqc(buf_str(&out), wanted));
    return n;
}

static void test_replacements(void **state)
{
    assert_int_equal(replaced("a b c", "b", "x", false, "a x c"), 1);
    assert_int_equal(replaced("a b b", "b", "x", false, ""), 2);
    assert_int_equal(replaced("a b b", "b", "xx", true, "a xx xx"), 2);
    assert_int_equal(replaced("abc", "z", "x", true, ""), 0);
    assert_int_equal(replaced("abc", "", "x", true, ""), 0);
    assert_int_equal(replaced("aaa", "aa", "b", true, "ba"), 1); /* without overlaps */
    assert_int_equal(replaced("abc", "abc", "", false, ""), 1);
    assert_int_equal(replaced("one\r\ntwo\r\n", "one\ntwo", "1\n2", false, "1\r\n2\r\n"), 1);
    CLEANUP(buf) struct buf huge = BUF_INIT(BUF_TEXT);
    char *room;
    assert_int_equal(buf_reserve(&huge, 1 << 20, &room, NULL), 0);
    memset(room, 'a', 1 << 20);
    buf_commit(&huge, 1 << 20);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_true(builtin_replace_text(&(struct builtin_replace) { .text = buf_str(&huge),
                                                                 .from = STR("a"),
                                                                 .to = buf_str(&huge),
                                                                 .all = true },
                                     &out) == SIZE_MAX);
    assert_int_equal(out.len, 0);
}

static void test_near_matches(void **state)
{
    struct str text = STR("if x:\n    y()\n\tz()\n");
    assert_int_equal(builtin_near_match(text, STR("y()\nz()")), 2);
    assert_int_equal(builtin_near_match(text, STR("\n  y()")), 2);
    assert_int_equal(builtin_near_match(text, STR("y()\nw()")), 0);
    assert_int_equal(builtin_near_match(text, STR("z()\nmore")), 0);
    assert_int_equal(builtin_near_match(text, STR(" \n \n")), 0);
    assert_int_equal(builtin_near_match(STR_EMPTY, STR("a")), 0);
    assert_int_equal(builtin_line_of(text, 6), 2);
}

static bool matches(const char *pattern, bool literal, const char *text)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    regex_t r;
    builtin_pattern(str_of(pattern), literal, &out);
    char *compiled = buf_take(&out, NULL);
    assert_int_equal(regcomp(&r, compiled, REG_EXTENDED | REG_NOSUB), 0);
    bool found = regexec(&r, text, 0, NULL, 0) == 0;
    regfree(&r);
    free(compiled);
    return found;
}

static void test_patterns(void **state)
{
    assert_true(matches("a\\d+b", false, "a12b"));
    assert_false(matches("a\\d+b", false, "axb"));
    assert_true(matches("^[\\d-]+$", false, "1-2"));
    assert_true(matches("\\D", false, "x"));
    assert_true(matches("\\\\d", false, "\\d"));
    assert_true(matches("def \\w+\\(", false, "def f("));
    assert_true(matches("f(x)*[y].{2}|$^+?\\", true, "f(x)*[y].{2}|$^+?\\"));
    assert_false(matches("a.b", true, "axb"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_excerpts),
        cmocka_unit_test(test_replacements), cmocka_unit_test(test_near_matches),
        cmocka_unit_test(test_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
