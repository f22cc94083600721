/* SPDX-License-Identifier: MIT
 *
 * Patterns: what ECMA-262 means by them, what is refused, and that none of them runs away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "data/regex.h"

static int match(const char *pattern, struct str subject)
{
    CLEANUP(regex) struct regex *r = NULL;
    struct err e = { 0 };
    if (regex_compile(str_of(pattern), 0, &r, &e) != 0) {
        print_message("'%s' does not compile: %s\n", pattern, e.msg);
        return -1;
    }
    return regex_match(r, subject, &e);
}

struct example {
    const char *pattern, *subject;
    int expected;
};

static void check_examples(const struct example *list, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        int got = match(list[i].pattern, str_of(list[i].subject));
        if (got != list[i].expected) {
            fail_msg("pattern '%s' on '%s': %d", list[i].pattern, list[i].subject, got);
        }
    }
}

static void test_syntax(void **state)
{
    (void)state;
    static const struct example list[] = {
        { "^a.c$", "abc", 1 },
        { "b", "abc", 1 }, /* matches anywhere */
        { "^b", "abc", 0 },
        { "^$", "", 1 },
        { "^abc$", "abc\n", 0 }, /* the end is the end */
        { "^a.b$", "a\nb", 0 },
        { "^a.b$",
          "a\xe2\x80\xa8"
          "b",
          0 }, /* U+2028 ends a line as well */
        { "^[^x]$", "\n", 1 },
        { "a{2,3}b", "aab", 1 },
        { "^a{,3}$", "a{,3}", 1 }, /* not a quantifier, so it stands for itself */
        { "^{}$", "{}", 1 },
        { "^x{1$", "x{1", 1 },
        { "^a]$", "a]", 1 },
        { "^(?:a|b)+?c$", "abac", 1 },
        { "^(a)(b)\\2\\1$", "abba", 1 },
        { "^(?<x>a|b)-\\k<x>$", "b-b", 1 },
        { "^\\k<x>(?<x>a)$", "a", 1 }, /* a group that has not matched yet is empty */
        { "foo(?=bar)", "foobar", 1 },
        { "foo(?!bar)", "foobar", 0 },
        { "(?<=\\$)\\d+", "costs $42", 1 },
        { "(?<!\\$)\\b42", "costs $42", 0 },
        { "^\\/\\-\\_\\@$", "/-_@", 1 },
        { "\\bfoo\\b", "a foo b", 1 },
        { "\\Boo", "foo", 1 },
        { "^(?:)$", "", 1 },
        { "a||b", "x", 1 },
    };
    check_examples(list, ARRAY_LEN(list));
}

static void test_classes(void **state)
{
    (void)state;
    static const struct example list[] = {
        { "^[a-c]+$", "abc", 1 },
        { "^[-a]+$", "-a", 1 },
        { "^[a-]+$", "a-", 1 },
        { "^[\\w-.]+$", "a-.", 1 }, /* no range: the hyphen stands for itself */
        { "^[\\d\\-x]+$", "1-x", 1 },
        { "^[\\b]$", "\b", 1 },
        { "^[^\\d]$", "1", 0 },
        { "^[\\D]$", "a", 1 },
        { "^[\\S]+$", "ab", 1 },
        { "^[\\S]+$", "a b", 0 },
        { "^[\\W]$", "\xc3\xa9", 1 },
        { "[]", "a", 0 }, /* nothing is in the empty class */
        { "^[^]$", "\n", 1 },
        { "^[[:alpha:]]$", ":]", 1 }, /* no POSIX class: one of the letters, then ] */
        { "^[[:alpha:]]$", "a", 0 },
        { "^[\\]\\\\]+$", "]\\", 1 },
        { "^[.*+?(){}|$^]+$", "$^.*", 1 },
        { "^[\xc3\xa0-\xc3\xbc]$", "\xc3\xa9", 1 },
        { "^[\\u{1F600}-\\u{1F64F}]$", "\xf0\x9f\x98\x80", 1 },
    };
    check_examples(list, ARRAY_LEN(list));
}

static void test_unicode(void **state)
{
    (void)state;
    static const struct example list[] = {
        { "^.$", "\xf0\x9f\x98\x80", 1 }, /* a code point, not bytes or UTF-16 units */
        { "^\\d$", "\xdf\x80", 0 },       /* ASCII only */
        { "^\\w$", "\xc3\xa9", 0 },
        { "^\\s$", "\xc2\xa0", 1 },
        { "^\\s$", "\xef\xbb\xbf", 1 },
        { "^\\s$", "\xe2\x80\x8b", 0 }, /* zero width space is none */
        { "^\\u0041\\x42\\u{43}$", "ABC", 1 },
        { "^\\uD83D\\uDE00$", "\xf0\x9f\x98\x80", 1 },
        { "\\ud83d", "\xf0\x9f\x98\x80", 0 }, /* half a pair is in no text */
        { "^\\cC\\cj$", "\x03\n", 1 },
        { "^\\t\\n\\v\\f\\r$", "\t\n\v\f\r", 1 },
        { "^\\p{L}\\p{Lu}\\p{Letter}$", "\xc3\xa9\xc3\x89z", 1 },
        { "^\\p{gc=Decimal_Number}\\p{Nd}\\p{digit}$",
          "1\xe0\xa7\xaa"
          "2",
          1 },
        { "^\\p{Script=Greek}\\p{sc=Grek}\\p{scx=Greek}$", "\xce\xb1\xce\xb2\xce\xb3", 1 },
        { "^\\P{Script=Greek}$", "\xce\xb1", 0 },
        { "^\\p{ASCII}\\p{Alphabetic}\\p{Any}$", "aaa", 1 },
        { "^[\\p{Lu}\\p{Nd}]+$", "A1", 1 },
        { "^\\p{Assigned}$", "a", 1 },
    };
    check_examples(list, ARRAY_LEN(list));
    assert_int_equal(match("^a\\0b$", str_n("a\0b", 3)), 1);
    assert_int_equal(match("^a$", str_n("a\0", 2)), 0);
    assert_int_equal(match(".", STR("\xff\xfe")), 0); /* not UTF-8: matches nothing */
    assert_int_equal(match("^$", (struct str) { 0 }), 1);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "(",
        "a)",
        "[a",
        "a**",
        "*a",
        "a{2}{3}",
        "a++",
        "(?i)a",
        "(?P<n>a)",
        "(?#x)",
        "(?>a)",
        "\\Z",
        "\\A",
        "\\a",
        "\\",
        "\\k<x>",
        "\\1",
        "(a)\\2",
        "[b-a]",
        "a{3,2}",
        "\\u12",
        "\\xg0",
        "\\c1",
        "\\p{}",
        "\\pL",
        "\\08",
        "(?<n>a)(?<n>b)",
        "(?<1>a)",
        "a{70000}",
        "(?=a)*",
        "^*",
        "\\u{110000}",
        "\\p{foo=bar}",
        "\\p{Nonsense}",
        "(*UTF8)a",
        "(?|a|b)",
        "\\Qa\\E",
        "\\R",
        "\\X",
        "\\h",
        "\\G",
        "(?&n)",
        "(?1)",
        "(?R)",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };
        struct regex *r = NULL;
        if (regex_compile(str_of(bad[i]), 0, &r, &e) == 0) {
            regex_free(r);
            fail_msg("'%s' was accepted", bad[i]);
        }
        assert_int_equal(e.code, ERR_PARSE);
        assert_null(r);
        assert_int_not_equal(regex_check(str_of(bad[i]), NULL), 0);
    }
    assert_int_not_equal(regex_check(STR("\xff"), NULL), 0);
}

static void test_errors_say_where(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct regex *r = NULL;
    assert_int_equal(regex_compile(STR("ab(?i)c"), 0, &r, &e), -ERR_PARSE);
    assert_string_equal(e.msg, "pattern 'ab(?i)c' at offset 2: not a group that ECMA-262 knows");
    assert_int_equal(regex_compile(STR("^a+\\Z"), 0, &r, &e), -ERR_PARSE);
    assert_string_equal(e.msg,
                        "pattern '^a+\\Z' at offset 3: unknown escape (patterns follow ECMA-262)");
}

static void test_lookbehind(void **state)
{
    (void)state;
    struct regex *r = NULL;
    struct err e = { 0 };
    /* good ECMA-262, but not for PCRE2 */
    assert_int_equal(regex_check(STR("(?<=a+)b"), NULL), 0);
    assert_int_equal(regex_compile(STR("(?<=a+)b"), 0, &r, &e), -ERR_PARSE);
}

static void test_find(void **state)
{
    (void)state;
    CLEANUP(regex) struct regex *r = NULL;
    struct regex_span g[4];
    assert_int_equal(regex_compile(STR("v(\\d+)(\\.\\d+)?"), 0, &r, NULL), 0);
    assert_int_equal(regex_find(r, STR("codex v42 here"), g, 4, NULL), 1);
    assert_int_equal(g[0].from, 6);
    assert_int_equal(g[0].to, 9);
    assert_int_equal(g[1].from, 7);
    assert_int_equal(g[1].to, 9);
    assert_true(g[2].from == REGEX_UNSET); /* took no part */
    assert_true(g[3].from == REGEX_UNSET); /* no such group */
    assert_int_equal(regex_find(r, STR("none"), g, 4, NULL), 0);
}

static void test_icase(void **state)
{
    (void)state;
    CLEANUP(regex) struct regex *r = NULL;
    assert_int_equal(regex_compile(STR("^stra\xc3\x9f"
                                       "e$"),
                                   REGEX_ICASE, &r, NULL),
                     0);
    assert_int_equal(regex_match(r,
                                 STR("STRA\xc3\x9f"
                                     "E"),
                                 NULL),
                     1);
    assert_int_equal(match("^a$", STR("A")), 0);
}

static char *repeat(char c, size_t n)
{
    char *s = xmalloc(n + 1);
    memset(s, c, n);
    s[n] = '\0';
    return s;
}

/* Exponential and cubic patterns end with ERR_LIMIT instead of running for years. */
static void test_runaway(void **state)
{
    (void)state;
    static const char *const patterns[] = { "^(a+)+$", "^(a|a)*$", "^(.*a){30}$", "(x+x+)+y",
                                            "^(([a-z])+.)+[A-Z]([a-z])+$" };
    CLEANUP(free) char *subject = repeat('a', 200);
    subject[199] = '!';
    CLEANUP(free) char *crosses = repeat('x', 200);
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        CLEANUP(regex) struct regex *r = NULL;
        struct err e = { 0 };
        assert_int_equal(regex_compile(str_of(patterns[i]), 0, &r, NULL), 0);
        int rc = regex_match(r, str_of(patterns[i][0] == '(' ? crosses : subject), &e);
        assert_true(rc == -ERR_LIMIT || rc == 0); /* PCRE2 sees through some of them */
        if (i == 0) {
            assert_int_equal(rc, -ERR_LIMIT);
            assert_non_null(strstr(e.msg, "backtracks too much"));
        }
    }
}

/* A long text alone is no reason to fail. */
static void test_long_subject(void **state)
{
    (void)state;
    enum { LEN = 4 << 20, GROUPED = 200 * 1000 };
    CLEANUP(free) char *text = repeat('a', LEN);
    static const char *const plain[] = { "^a*$", "a$", "^[^b]*$", "^.*$", "a{60000}" };
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        assert_int_equal(match(plain[i], str_n(text, LEN)), 1);
    }
    static const char *const grouped[] = { "^(?:a|b)*$", "^(ab?)*$", "^(?:a(?=a|$))*$" };
    for (size_t i = 0; i < ARRAY_LEN(grouped); i++) {
        assert_int_equal(match(grouped[i], str_n(text, GROUPED)), 1);
    }
}

static void test_budget(void **state)
{
    (void)state;
    CLEANUP(regex) struct regex *r = NULL;
    struct err e = { 0 };
    uint64_t budget = 1000;
    assert_int_equal(regex_compile(STR("^a+$"), 0, &r, NULL), 0);
    assert_int_equal(regex_match_within(r, STR("aaaa"), &budget, &e), 1);
    assert_in_range(budget, 990, 999); /* cheap, but not free */
    CLEANUP(regex) struct regex *evil = NULL;
    CLEANUP(free) char *subject = repeat('a', 100);
    subject[99] = '!';
    assert_int_equal(regex_compile(STR("^(a+)+$"), 0, &evil, NULL), 0);
    /* it would take more than what is left, so it is not even begun */
    assert_int_equal(regex_match_within(evil, str_of(subject), &budget, &e), -ERR_LIMIT);
    assert_int_equal(budget, 0);
}

static void test_limits_of_patterns(void **state)
{
    (void)state;
    struct regex *r = NULL;
    CLEANUP(free) char *deep = repeat('(', 1000);
    CLEANUP(free) char *long_one = repeat('a', 70 * 1000);
    assert_int_equal(regex_compile(str_of(deep), 0, &r, NULL), -ERR_PARSE);
    assert_int_equal(regex_compile(str_of(long_one), 0, &r, NULL), -ERR_PARSE);
    assert_int_equal(regex_compile(STR("(((a{1000}){1000}){1000}){1000}"), 0, &r, NULL),
                     -ERR_PARSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_unicode),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_errors_say_where),
        cmocka_unit_test(test_lookbehind),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_icase),
        cmocka_unit_test(test_runaway),
        cmocka_unit_test(test_long_subject),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_limits_of_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
