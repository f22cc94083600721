/* SPDX-License-Identifier: MIT
 *
 * Prices: exact sums, tiers, names as they come, tables of the user's, and mistakes in them.
 */
#include "base/macro.h"
#include "gateway/price.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "gateway/price_builtin.h"
#include "llm/event.h"

#define NONE ((int64_t)-1)

static struct price_table *builtin(struct arena *a)
{
    struct price_table *t = NULL;
    struct err e = { 0 };
    assert_int_equal(price_load(a, NULL, &t, &e), 0);
    return t;
}

static struct price_match found(const struct price_table *t, const char *model)
{
    struct price_match m = { 0 };
    if (!price_find(t, str_of(model), &m)) {
        fail_msg("no price for '%s'", model);
    }
    return m;
}

static void a_call_costs_what_the_list_says(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct price_match m = found(builtin(a), "claude-opus-5-5");
    struct llm_usage u = { 1000000, 1000000, 1000000, 1000000, 5000 };
    assert_int_equal(price_cost(m.entry, &u), (4 + 20) * PICO_PER_USD + 5200 * PICO_PER_USD / 1000);
    u = (struct llm_usage) { 3, 7, NONE, NONE, NONE };
    assert_int_equal(price_cost(m.entry, &u), 3 * 4000000 + 7 * 20000000);
    assert_int_equal(price_cost(m.entry, &LLM_USAGE_NONE), 0);
    /* what is written for an hour costs twice the input; nothing is counted twice */
    u = (struct llm_usage) { 0, 0, 0, 1000000, NONE, 400000 };
    assert_int_equal(price_cost(m.entry, &u),
                     600000 * INT64_C(5000000) + 400000 * INT64_C(8000000));
    u.cache_write_long = 5000000;
    assert_int_equal(price_cost(m.entry, &u), 1000000 * INT64_C(8000000));
    assert_string_equal(m.table->file, "built in");
    assert_string_equal(m.table->version, "2026-11-15");
}

static void names_are_found_as_harnesses_write_them(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct price_table *t = builtin(a);
    static const struct {
        const char *name;
        int64_t input; /* USD per million tokens, times 1000 */
    } table[] = {
        { "claude-opus-4-5-20251101", 5000 },
        { "claude-opus-4-20250514", 15000 },
        { "claude-opus-4-1", 15000 },
        { "anthropic/claude-sonnet-4.5", 3000 },
        { "Claude-Haiku-4-5", 1000 },
        { "gpt-5", 1250 },
        { "gpt-5-2025-08-07", 1250 },
        { "gpt-5-mini-2025-08-07", 250 },
        { "gpt-5-codex", 1250 },
        { "gpt-5.1-codex-mini", 250 },
        { "gpt-5.2-codex", 1750 },
        { "gpt-4o-mini", 150 },
        { "o3", 2000 },
        { "o3-mini", 1100 },
        { "models/gemini-2.5-pro", 1250 },
        { "gemini-2.5-flash-lite", 100 },
        { "gemini-3.1-pro-preview", 2000 },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct price_match m = found(t, table[i].name);
        if (m.entry->base.input != table[i].input * 1000) {
            fail_msg("%s costs %g", table[i].name, (double)m.entry->base.input / 1e6);
        }
    }
}

static void what_is_not_listed_has_no_price(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct price_table *t = builtin(a);
    struct price_match m;
    static const struct price_table *nothing = NULL;
    char longest[400];
    memset(longest, 'a', sizeof longest);
    struct price_memo memo = { 0 };
    const char *const asked[] = { "llama-9-local", "claude-opus-5-5", "claude-opus-5-5", "",
                                  "gpt-6-x" };
    for (size_t i = 0; i < 2 * ARRAY_LEN(asked); i++) {
        struct price_match again = { 0 };
        const char *model = asked[i % ARRAY_LEN(asked)];
        bool found = price_find(t, str_of(model), &m);
        assert_int_equal(price_recall(&memo, t, str_of(model), &again), found);
        assert_true(!found || again.entry == m.entry);
    }
    assert_false(price_find(t, STR("llama-9-local"), &m));
    assert_false(price_find(t, STR(""), &m));
    assert_false(price_find(nothing, STR("gpt-5"), &m));
    assert_false(price_find(t, STR("claude-opus-5/"), &m));
    assert_false(price_find(t, str_n(longest, sizeof longest), &m));
    assert_false(price_find(t, STR("gpt-5\0x"), &m));
}

static void a_long_prompt_costs_more_as_a_whole(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct price_match m = found(builtin(a), "gemini-2.5-pro");
    struct llm_usage u = { 150000, 0, 50000, NONE, NONE };
    assert_int_equal(price_cost(m.entry, &u), 150000LL * 1250000 + 50000LL * 125000);
    u.cache_read++;
    assert_int_equal(price_cost(m.entry, &u), 150000LL * 2500000 + 50001LL * 250000);
}

static void the_ceiling_is_never_below_the_cost(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct price_match m = found(builtin(a), "claude-opus-5");
    struct llm_usage u = { 10, 500, 20, 1000, NONE };
    assert_true(price_ceiling(m.entry, 1030, 500) >= price_cost(m.entry, &u));
    int64_t money = price_ceiling(m.entry, 1030, 500);
    assert_int_equal(price_affordable(m.entry, 1030, money), 500);
    assert_int_equal(price_affordable(m.entry, 1030, money - 1), 499);
    assert_int_equal(price_affordable(m.entry, 1030, 1), 0);
}

static void absurd_counts_saturate(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct price_match m = found(builtin(a), "claude-opus-5");
    struct llm_usage u = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
    assert_int_equal(price_cost(m.entry, &u), INT64_MAX);
    assert_int_equal(price_ceiling(m.entry, INT64_MAX, INT64_MAX), INT64_MAX);
    assert_int_equal(price_pico(-1), 0);
    assert_int_equal(price_pico(1e30), INT64_MAX);
    assert_int_equal(price_pico(0.1), PICO_PER_USD / 10);
}

static void a_table_of_the_users_is_asked_first(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    char path[] = "/tmp/cinch-prices-XXXXXX";
    int fd = mkstemp(path);
    const char *text = "version: mine\nsource: a contract\nmodels:\n"
                       "  - {match: [gpt-5, local-*], input: 1, output: 2}\n";
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    struct price_table *t;
    struct err e = { 0 };
    assert_int_equal(price_load(a, path, &t, &e), 0);
    unlink(path);
    struct price_match m = found(t, "gpt-5");
    assert_string_equal(m.table->version, "mine");
    assert_string_equal(m.table->file, path);
    assert_int_equal(m.entry->base.cache_read, m.entry->base.input);
    (void)found(t, "local-llama");
    assert_string_equal(found(t, "gpt-5-mini").table->file, "built in");
}

static void the_built_in_table_is_read_when_it_is_needed(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct price_table *t = builtin(a);
    struct price_match m;
    assert_false(t->later->read);
    assert_false(price_find(t, STR(""), &m)); /* no name: nothing to look up */
    assert_false(t->later->read);
    m = found(t, "gpt-5");
    assert_true(t->later->read);
    assert_string_equal(m.table->file, "built in");
    assert_string_equal(m.table->version, "2026-11-15");
    const struct price_table *read = t->later->table;
    assert_ptr_equal(found(t, "gpt-5-mini").table, m.table);
    assert_ptr_equal(t->later->table, read); /* once */
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } table[] = {
        { "models: []", "needs 'version'" },
        { "version: a\nmodels: [{input: 1, output: 1}]", "p.yaml:2:10: an entry needs 'match'" },
        { "version: a\nmodels: [{match: [x], output: 1}]", "p.yaml:2:10: a price needs 'input'" },
        { "version: a\nmodels: [{match: [x], input: 1}]", "a price needs 'output'" },
        { "version: a\nmodels: [{match: [x], input: -1, output: 1}]", "US dollars per million" },
        { "version: a\nmodels: [{match: [x], input: free, output: 1}]", "US dollars per million" },
        { "version: a\nmodels: [{match: [x], input: 1, output: 1, above: {input: 2, output: 2}}]",
          "'above' needs 'tokens'" },
        { "version: a\nmodels: [{match: [x], input: 1, output: 1, cache_reed: 1}]",
          "did you mean 'cache_read'" },
        { "version: 1\nmodels: []", "'version' must be" },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct price_table *t;
        struct err e = { 0 };
        assert_int_equal(price_parse(a, str_of(table[i].text), "p.yaml", &t, &e), -ERR_CONFIG);
        if (strstr(e.msg, table[i].says) == NULL) {
            fail_msg("'%s' does not say '%s'", e.msg, table[i].says);
        }
    }
    CLEANUP(arena) struct arena *a = arena_new();
    struct price_table *t;
    struct err e = { 0 };
    assert_int_equal(price_load(a, "/nonexistent/prices.yaml", &t, &e), -ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_costs_what_the_list_says),
        cmocka_unit_test(names_are_found_as_harnesses_write_them),
        cmocka_unit_test(what_is_not_listed_has_no_price),
        cmocka_unit_test(a_long_prompt_costs_more_as_a_whole),
        cmocka_unit_test(the_ceiling_is_never_below_the_cost),
        cmocka_unit_test(absurd_counts_saturate),
        cmocka_unit_test(a_table_of_the_users_is_asked_first),
        cmocka_unit_test(the_built_in_table_is_read_when_it_is_needed),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
