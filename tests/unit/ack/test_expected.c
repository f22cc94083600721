/* SPDX-License-Identifier: MIT
 *
 * The file of expected failures: what it says, and what a person who mistyped it is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ack/expected.h"

static void test_entries(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct expected x;
    struct err e;
    struct str text = STR("expected:\n"
                          "  - {adapter: codex, scenario: test_a, reason: issue 12}\n"
                          "  - {adapter: '*', scenario: test_b, reason: nobody can}\n"
                          "flaky:\n"
                          "  - {adapter: 'gem*', scenario: test_b, reason: slow}\n");
    assert_int_equal(expected_parse(a, text, "f.yaml", &x, &e), 0);
    assert_int_equal(x.len, 3);
    const struct expected_entry *hit = expected_find(&x, "codex", "test_a");
    assert_non_null(hit);
    assert_false(hit->flaky);
    assert_string_equal(hit->reason, "issue 12");
    assert_string_equal(hit->at, "f.yaml:2:5");
    assert_null(expected_find(&x, "codex-exec", "test_a"));
    assert_null(expected_find(&x, "codex", "test_a2"));
    hit = expected_find(&x, "gemini", "test_b"); /* both match: flaky is asked first */
    assert_true(hit->flaky);
    assert_false(expected_find(&x, "codex", "test_b")->flaky);
}

static void test_patterns(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct expected x;
    struct err e;
    struct str text = STR("expected: [{adapter: codex, scenario: 'test_?_*', reason: x}]\n");
    assert_int_equal(expected_parse(a, text, "f.yaml", &x, &e), 0);
    assert_non_null(expected_find(&x, "codex", "test_a_long"));
    assert_null(expected_find(&x, "codex", "test_ab_long"));
    assert_null(expected_find(&x, "gemini", "test_a_long"));
    assert_true(expected_names(&x.items[0], "test_a_long")); /* whatever the adapter */
    assert_false(expected_names(&x.items[0], "test_a"));
}

static void test_empty(void **state)
{
    static const char *const texts[] = { "", "# nothing\n", "expected: []\n", "flaky: null\n" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct expected x;
        struct err e;
        assert_int_equal(expected_parse(a, str_of(texts[i]), "f.yaml", &x, &e), 0);
        assert_int_equal(x.len, 0);
        assert_null(expected_find(&x, "codex", "test_a"));
    }
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "expectd: []\n", "f.yaml:1:1: unknown key 'expectd' (did you mean 'expected'?)" },
        { "expected:\n  - {adapter: a, scenaro: b, reason: c}\n",
          "f.yaml:2:18: unknown key 'expected[0].scenaro' (did you mean 'scenario'?)" },
        { "expected:\n  - {adapter: a, scenario: b}\n", "f.yaml:2:5: 'reason' is missing" },
        { "expected:\n  - {adapter: a, scenario: b, reason: ' '}\n", "'reason' is missing" },
        { "flaky:\n  - {scenario: b, reason: c}\n", "f.yaml:2:5: 'adapter' is missing" },
        { "expected: codex\n", "f.yaml:1:11: 'expected' must be a list" },
        { "expected: [\n", "f.yaml:" },
        { "- a\n", "f.yaml" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct expected x;
        struct err e;
        assert_true(expected_parse(a, str_of(cases[i].text), "f.yaml", &x, &e) < 0);
        if (strstr(e.msg, cases[i].message) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i].message, e.msg);
        }
    }
}

static void test_missing_file(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct expected x;
    struct err e;
    assert_int_equal(expected_load(a, "/nonexistent/f.yaml", &x, &e), -ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),      cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_empty),        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
