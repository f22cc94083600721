/* SPDX-License-Identifier: MIT
 *
 * Every word of the matchers: a value that it is true of, one that it is not, and absence.
 */
#include "../values.h"

#include "ack/matcher.h"

static const struct {
    const char *matcher;
    const char *good[4]; /* values that fit … */
    const char *bad[5];  /* … and that do not */
} cases[] = {
    { "success", { "success" }, { "successful", "true", "[success]" } },
    { "7", { "7" }, { "8", "'7'", "null" } },
    { "[a, b]", { "[a, b]" }, { "[b, a]", "[a]", "a" } },
    { "null", { "null" }, { "''", "0" } },
    { "{equals: {a: 1}}", { "{a: 1}" }, { "{a: 1, b: 2}", "{a: 2}", "1" } },
    { "{contains: part}",
      { "a part of it", "part", "[parting]" },
      { "par", "5", "[par]", "{part: 1}" } },
    { "{contains: 5}", { "[4, 5]" }, { "'5'", "5", "['5']" } },
    { "{contains: {a: 1}}", { "[{a: 1}]" }, { "[{a: 1, b: 2}]", "{a: 1}" } },
    { "{matches: '^a+$'}", { "aaa" }, { "baa", "5", "[a]" } },
    { "{starts: ab}", { "abc", "ab" }, { "a", "cab", "5" } },
    { "{ends: bc}", { "abc", "bc" }, { "c", "bcd", "5" } },
    { "{nonblank: true}", { "x", "' x '" }, { "''", "' '", "5" } },
    { "{nonblank: false}", { "''", "' '" }, { "x", "5" } },
    { "{present: true}", { "0", "''", "false" }, { "null" } },
    { "{present: false}", { "null" }, { "0", "''" } },
    { "{at_least: 2}", { "2", "2.5", "3" }, { "1", "1.9", "'2'", "null" } },
    { "{at_most: 2}", { "2", "1.5", "-3" }, { "3", "2.1", "'2'", "null" } },
    { "{len: 2}", { "ab", "[1, 2]", "{a: 1, b: 2}" }, { "abc", "[]", "2" } },
    { "{len: {at_most: 1}}", { "[]", "a" }, { "ab", "1" } },
    { "{any: {at_least: 5}}", { "[1, 5]" }, { "[1, 4]", "[]", "5" } },
    { "{each: {at_least: 5}}", { "[5, 6]" }, { "[1, 5]", "[]", "5" } },
    { "{at: {/a: 1, /b/0: x}}", { "{a: 1, b: [x]}" }, { "{a: 1, b: [y]}", "{a: 1}", "1" } },
    { "{not: {contains: x}}", { "abc", "5" }, { "x", "axa" } },
    { "{contains: a, not: {contains: b}}", { "a" }, { "ab", "b", "c" } },
};

static void test_words(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct json *m = tree(cases[i].matcher);
        struct err e;
        assert_int_equal(matcher_check(m, "f.yaml", &e), 0);
        for (size_t k = 0; k < 4 && cases[i].good[k] != NULL; k++) {
            if (!matcher_holds(arena, m, tree(cases[i].good[k]), NULL)) {
                fail_msg("%s should hold for %s", cases[i].matcher, cases[i].good[k]);
            }
        }
        for (size_t k = 0; k < 5 && cases[i].bad[k] != NULL; k++) {
            const char *why = NULL;
            if (matcher_holds(arena, m, tree(cases[i].bad[k]), &why)) {
                fail_msg("%s should not hold for %s", cases[i].matcher, cases[i].bad[k]);
            }
            assert_non_null(strstr(why, "wanted "));
        }
    }
}

/* Only two words are true of what is not there. */
static void test_absence(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *m = cases[i].matcher;
        bool absent = strcmp(m, "{present: false}") == 0 || strncmp(m, "{not:", 5) == 0;
        if (matcher_holds(arena, tree(m), NULL, NULL) != absent) {
            fail_msg("%s of nothing", m);
        }
    }
}

static void test_sentence(void **state)
{
    const char *why = NULL;
    assert_false(matcher_holds(arena, tree("{at_least: 2}"), tree("1"), &why));
    assert_string_equal(why, "wanted {\"at_least\":2}, found 1");
    assert_false(matcher_holds(arena, tree("x"), NULL, &why));
    assert_string_equal(why, "wanted \"x\", found nothing");
    char text[1000];
    memset(text, 'y', sizeof text);
    struct json *many = json_string(arena, str_n(text, sizeof text));
    assert_false(matcher_holds(arena, tree("x"), many, &why));
    assert_true(strlen(why) < 400);
    assert_non_null(strstr(why, "yyy…"));
    /* A character is not cut in two. */
    memcpy(text + 298, "\xc3\xa4\xc3\xa4", 4);
    assert_false(matcher_holds(arena, tree("x"), many, &why));
    assert_true(str_is_utf8(str_of(why)));
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *matcher, *message;
    } wrong[] = {
        { "{}", "f.yaml:1:1: an empty matcher holds always" },
        { "{contians: x}", "f.yaml:1:12: no matcher is called 'contians'" },
        { "{starts: 5}", "f.yaml:1:10: 'starts' must be a text" },
        { "{ends: [a]}", "'ends' must be a text" },
        { "{matches: 5}", "f.yaml:1:11: 'matches' must be a pattern" },
        { "{matches: 'a('}", "f.yaml:1:11: " },
        { "{at_least: many}", "'at_least' must be a number" },
        { "{at_most: '2'}", "'at_most' must be a number" },
        { "{nonblank: 1}", "'nonblank' must be true or false" },
        { "{present: x}", "'present' must be true or false" },
        { "{len: {at_leats: 1}}", "f.yaml:1:18: no matcher is called 'at_leats'" },
        { "{not: {any: {}}}", "an empty matcher" },
        { "{at: x}", "f.yaml:1:6: expected a map of JSON Pointers to matchers" },
        { "{at: {}}", "expected a map of JSON Pointers to matchers" },
        { "{at: {name: x}}", "f.yaml:1:13: 'name' is not a JSON Pointer: it must start with '/'" },
        { "{at: {/name: {}}}", "an empty matcher" },
        { "{each: {}}", "an empty matcher" },
        /* What every text has. */
        { "{contains: ''}", "f.yaml:1:12: 'contains' of an empty text holds always" },
        { "{starts: ''}", "'starts' of an empty text holds always" },
        { "{ends: ''}", "'ends' of an empty text holds always" },
        { "{matches: ''}", "'matches' of an empty text holds always" },
        { "{not: {any: {contains: ''}}}", "'contains' of an empty text holds always" },
        { "{len: {at_least: 0}}", "f.yaml:1:7: this holds for every length" },
        { "{len: {not: {at_most: -1}}}", "this holds for every length" },
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err e = { 0 };
        assert_int_equal(matcher_check(tree(wrong[i].matcher), "f.yaml", &e), -ERR_CONFIG);
        if (strstr(e.msg, wrong[i].message) == NULL) {
            fail_msg("'%s' is not in '%s'", wrong[i].message, e.msg);
        }
    }
}

/* What is counted is 0 or more: some matchers demand nothing of that. */
static void test_counts(void **state)
{
    static const char *const idle[] = {
        "{at_least: 0}",
        "{at_least: -0.5}",
        "{at_most: 10000000000}",
        "{present: true}",
        "{not: x}",
        "{not: -1}",
        "{not: 0.5}",
        "{not: {equals: 5, at_least: 6}}",
        "{not: {contains: 5}}",
        "{at_least: 0, not: {at_most: -3}}",
    };
    static const char *const good[] = {
        "0",
        "3",
        "x",
        "{equals: 0}",
        "{at_least: 1}",
        "{at_least: 0.5}",
        "{at_most: 0}",
        "{at_most: 999}",
        "{not: 0}",
        "{not: 7}",
        "{not: {at_least: 5, at_most: 5}}",
        "{at_least: 0, at_most: 7}",
        "{at_least: 10000000000}",
        "{present: false}",
        "{contains: 5}",
    };
    for (size_t i = 0; i < ARRAY_LEN(idle); i++) {
        if (!matcher_holds_for_counts(tree(idle[i]))) {
            fail_msg("%s holds for all", idle[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        if (matcher_holds_for_counts(tree(good[i]))) {
            fail_msg("%s does not hold for all", good[i]);
        }
    }
}

#define VALUE_TEST(f) cmocka_unit_test_setup_teardown(f, arena_setup, arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VALUE_TEST(test_words),    VALUE_TEST(test_absence), VALUE_TEST(test_sentence),
        VALUE_TEST(test_mistakes), VALUE_TEST(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
