/* SPDX-License-Identifier: MIT
 *
 * What an adapter can and why it cannot do the rest: names are held against the table, and no
 * built-in profile is silent about one.
 */
#include "adapters/capability.h"

#include "adapters/profile.h"
#include "values.h"

static int read_set(const char *text, struct capability_set *ret, struct err *e)
{
    struct json *doc = tree(text);
    return capability_read(json_get(doc, "capabilities"), json_get(doc, "lacks"), "p.yaml", ret, e);
}

static void refuse(const char *text, const char *message)
{
    struct err e = { 0 };
    struct capability_set set;
    assert_int_equal(read_set(text, &set, &e), -ERR_CONFIG);
    if (strstr(e.msg, message) == NULL) {
        fail_msg("expected '%s' in '%s'", message, e.msg);
    }
}

static void test_the_table_is_complete(void **state)
{
    static const size_t per_tier[] = { 0, 3, 3, 4, 3, 27 };
    size_t seen[ARRAY_LEN(per_tier)] = { 0 };
    for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
        const struct capability_info *info = capability_info((enum capability)i);
        enum capability c = CAPABILITY_COUNT;
        assert_true(capability_of(str_of(info->name), &c));
        assert_int_equal(c, i);
        assert_true(strlen(info->meaning) > 20);
        seen[info->tier]++;
    }
    assert_memory_equal(seen, per_tier, sizeof seen);
    assert_string_equal(capability_tier_word(TIER_GUARDED), "4");
    assert_string_equal(capability_tier_word(TIER_SPECIFIC), "specific");
}

static void test_what_is_not_declared_is_lacking(void **state)
{
    struct capability_set set;
    struct err e;
    assert_int_equal(read_set("{\"capabilities\": [\"transcript\"],"
                              " \"lacks\": {\"tool_policies\": \"it never asks\"}}",
                              &set, &e),
                     0);
    assert_null(capability_lack(&set, CAPABILITY_TRANSCRIPT));
    assert_string_equal(capability_lack(&set, CAPABILITY_TOOL_POLICIES), "it never asks");
    assert_non_null(capability_lack(&set, CAPABILITY_TEXT_RESPONSE));
    assert_int_equal(read_set("{\"capabilities\": [], \"lacks\": {\"otherwise\": \"it sleeps\","
                              " \"transcript\": \"it is mute\"}}",
                              &set, &e),
                     0);
    assert_string_equal(capability_lack(&set, CAPABILITY_TRANSCRIPT), "it is mute");
    assert_string_equal(capability_lack(&set, CAPABILITY_RESUME), "it sleeps");
}

/* Tiers 1 to 3 unless something else is said. */
static void test_defaults(void **state)
{
    struct capability_set set;
    struct err e;
    assert_int_equal(read_set("{\"lacks\": {\"transcript\": \"it is mute\"}}", &set, &e), 0);
    assert_null(capability_lack(&set, CAPABILITY_TEXT_RESPONSE));
    assert_null(capability_lack(&set, CAPABILITY_BUDGET_ENFORCEMENT));
    assert_non_null(capability_lack(&set, CAPABILITY_TASK_COMPLETION));
    assert_non_null(capability_lack(&set, CAPABILITY_NATIVE_TOOLS));
    assert_string_equal(capability_lack(&set, CAPABILITY_TRANSCRIPT), "it is mute");
}

static void test_mistakes(void **state)
{
    refuse("{\"capabilities\": [\"flying\"]}", "'capabilities' names 'flying'");
    refuse("{\"capabilities\": [\"transcripts\"]}", "did you mean 'transcript'?");
    refuse("{\"lacks\": {\"tool_policy\": \"x\"}}", "'lacks' names 'tool_policy'");
    refuse("{\"lacks\": {\"transcript\": 3}}", "'lacks.transcript' must be the reason");
    refuse("{\"lacks\": {\"transcript\": \"\"}}", "'lacks.transcript' must be the reason");
    refuse("{\"capabilities\": [\"transcript\"], \"lacks\": {\"transcript\": \"x\"}}",
           "'transcript' is under 'capabilities', and under 'lacks'");
}

/* A report that only says "not declared" helps nobody. */
static void test_built_in_profiles_give_reasons(void **state)
{
    struct profile_list list;
    struct err e;
    assert_int_equal(profile_load_all(arena, NULL, &list, &e), 0);
    for (size_t i = 0; i < list.len; i++) {
        const struct profile *p = list.items[i];
        for (size_t c = 0; c < CAPABILITY_COUNT; c++) {
            if (!p->capabilities.has[c] && p->capabilities.lacks[c] == NULL &&
                p->capabilities.otherwise == NULL) {
                fail_msg("%s: why does it lack %s?", p->name,
                         capability_info((enum capability)c)->name);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_is_complete),
        cmocka_unit_test(test_what_is_not_declared_is_lacking),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_built_in_profiles_give_reasons),
    };
    return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
