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
    u.searches = 3;
    struct price_entry searching = *m.entry;
    searching.search = 7;
    assert_int_equal(price_cost(&searching, &u) - price_cost(m.entry, &u),
                     3 * (7 - m.entry->search));
    u.searches = -1;
    u.cache_write_long = 5000000;
    assert_int_equal(price_cost(m.entry, &u), 1000000 * INT64_C(8000000));
    assert_string_equal(m.table->file, "built in");
    assert_int_equal(strlen(m.table->version), strlen("2026-11-18"));
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
        { "claude-mythos-preview", 10000 },
        { "gpt-6-astra", 10000 },
        { "gpt-6.1-sol-2027-01-02", 2000 },
        { "gpt-5.6", 4000 },
        { "gpt-5.5-cyber", 12500 },
        { "gemini-4-argon", 2000 },
        { "gemini-3.7-flash", 750 },
        { "gemini-flash-latest", 750 },
        { "deepseek/deepseek-chat", 280 },
        { "qwen/qwen3-max", 1200 },
        { "moonshotai/kimi-k3", 3000 },
        { "z-ai/glm-5", 1000 },
        { "x-ai/grok-4.7", 2000 },
        { "mistral-large-latest", 500 },
        { "us.anthropic.claude-opus-5-v1:0", 5500 },
        { "anthropic.claude-opus-5", 5000 },
        { "claude-opus-5@20261001", 5000 },
        { "claude-opus-4-1", 15000 },
        { "codex-mini-latest", 1500 },
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
    /* variants may cost anything: the price of their family is not taken */
    static const char *const variants[] = {
        "gpt-5.5-unheard-of", "claude-opus-5-mini", "gpt-6-x", "qwen3:8b", "-v1:0", ":0", "us.",
        "-20250101"
    };
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        assert_false(price_find(t, str_of(variants[i]), &m));
    }
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

static void every_line_of_the_built_in_table_is_found(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct price_table *t = builtin(a);
    struct str rest = t->builtin->text;
    size_t n = 0;
    while (rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        struct str name = str_split(&line, ' ');
        struct price_match m;
        struct price_entry entry;
        if (str_eqc(name, "#")) {
            continue;
        }
        n++;
        if (!price_find(t, name, &m) || !price_text_read(a, line, &entry)) {
            fail_msg("%.*s is not readable", STR_ARG(name));
        }
        assert_memory_equal(&entry.base, &m.entry->base, sizeof entry.base);
    }
    assert_true(n > 900);
    assert_true(price_builtin_date() > 1763424000);                     /* 18 Nov 2025 */
    assert_ptr_equal(found(t, "gpt-5").entry, found(t, "gpt-5").entry); /* read once */
}

static void a_broken_line_has_no_price(void **state)
{
    static const char *const lines[] = { "",
                                         "=",
                                         "=1",
                                         "=1,",
                                         "=,1",
                                         "=1,2,3,4,5,6",
                                         "=-1,2",
                                         "=1,x",
                                         "flex=1,2",
                                         "=1,2 >0=1,2",
                                         "=1,2 >x=1,2",
                                         "=1,2 rush=1,2",
                                         "=1,2 fast=2",
                                         "=1,2 fast=x0",
                                         "=1,2 search=x",
                                         "=1,2 junk",
                                         "=1,2 >2=1,2 >1=1,2",
                                         "=1,2 >1=1,2 >2=1,2 >3=1,2 >4=1,2" };
    CLEANUP(arena) struct arena *a = arena_new();
    struct price_entry entry;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        if (price_text_read(a, str_of(lines[i]), &entry)) {
            fail_msg("'%s' was read", lines[i]);
        }
    }
    struct str words;
    assert_false(price_text_find(STR(""), STR("a"), &words));
    assert_false(price_text_find(STR("a"), STR("a"), &words));
    assert_true(price_text_find(STR("a =1,2"), STR("a"), &words));
    assert_true(price_text_find(STR("# x\na =1,2\nab =1,3\nb =1,4\n"), STR("ab"), &words));
    assert_true(str_eqc(words, "=1,3"));
}

static void urgent_calls_have_their_own_price(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct price_match m = found(builtin(a), "gpt-5.5");
    struct llm_usage u = { 1000, 0, 0, 0, 0 };
    static const struct {
        struct price_terms terms;
        int64_t prompt, nano; /* dollars for a prompt of so many tokens, times 10^9 */
    } table[] = {
        { { PRICE_STANDARD }, 1000, 5000000 },
        { { PRICE_FLEX }, 1000, 2500000 },
        { { PRICE_PRIORITY }, 1000, 12500000 },
        { { PRICE_ULTRAFAST }, 1000, 5000000 }, /* not listed */
        { { PRICE_FLEX }, 300000, 1500000000 },
        { { PRICE_STANDARD, .fast = true, .us = true }, 1000, 5000000 }, /* not listed */
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct price_entry on = price_on(m.entry, &table[i].terms);
        u.input = table[i].prompt;
        assert_int_equal(price_cost(&on, &u), table[i].nano * 1000);
    }
    m = found(builtin(a), "claude-opus-5-5");
    u = (struct llm_usage) { 1000, 1000, 0, 0, 0 };
    struct price_entry on = price_on(m.entry, &(struct price_terms) { .fast = true });
    assert_int_equal(price_cost(&on, &u), 2 * price_cost(m.entry, &u));
    on = price_on(m.entry, &(struct price_terms) { .fast = true, .us = true });
    assert_int_equal(price_cost(&on, &u), price_cost(m.entry, &u) * 22 / 10);
    assert_int_equal(m.entry->search, PICO_PER_USD / 100);
}

static void prices_rise_in_steps(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct price_match m = found(builtin(a), "qwen3-max");
    struct llm_usage u = { 32000, 0, 0, 0, 0 };
    assert_int_equal(price_cost(m.entry, &u), 32000 * INT64_C(1200000));
    u.input = 32001;
    assert_int_equal(price_cost(m.entry, &u), 32001 * INT64_C(2400000));
    u.input = 200000;
    assert_int_equal(price_cost(m.entry, &u), 200000 * INT64_C(3000000));
}

static void exact_names_win_in_tables_of_the_users(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct price_table *t;
    struct err e = { 0 };
    assert_int_equal(price_parse(a,
                                 STR("version: a\nmodels:\n"
                                     "  - {match: [gpt-5*], input: 1, output: 2}\n"
                                     "  - {match: [gpt-5.5-cyber], input: 3, output: 4, "
                                     "search: 0.02, tiers: {flex: {input: 2, output: 3}}}\n"),
                                 "p.yaml", &t, &e),
                     0);
    struct price_match m = found(t, "gpt-5.5-cyber");
    assert_int_equal(m.entry->base.input, 3000000);
    assert_int_equal(m.entry->search, PICO_PER_USD / 50);
    struct price_entry on = price_on(m.entry, &(struct price_terms) { PRICE_FLEX });
    assert_int_equal(on.base.input, 2000000);
    assert_int_equal(found(t, "gpt-5.5").entry->base.input, 1000000);
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
        cmocka_unit_test(every_line_of_the_built_in_table_is_found),
        cmocka_unit_test(a_broken_line_has_no_price),
        cmocka_unit_test(urgent_calls_have_their_own_price),
        cmocka_unit_test(prices_rise_in_steps),
        cmocka_unit_test(exact_names_win_in_tables_of_the_users),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
