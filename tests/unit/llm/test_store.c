/* SPDX-License-Identifier: MIT
 *
 * The store: what was put is found, the oldest goes first, and it survives being written.
 */
#include "llm/store.h"

#include <stdlib.h>

#include "wire_forms.h"

static void test_put_and_get(void **state)
{
    struct llm_store *s = llm_store_new(0);
    assert_int_equal(llm_store_get(s, STR("a")).len, 0);
    assert_int_equal(llm_store_get(NULL, STR("a")).len, 0);
    llm_store_put(s, STR("a"), STR("1"));
    llm_store_put(s, STR("b"), STR("2"));
    llm_store_put(s, STR("a"), STR("3"));
    assert_true(str_eqc(llm_store_get(s, STR("a")), "3"));
    assert_true(str_eqc(llm_store_get(s, STR("b")), "2"));
    assert_int_equal(llm_store_count(s), 2);
    llm_store_put(s, STR("b"), STR_EMPTY);
    assert_int_equal(llm_store_count(s), 1);
    s = llm_store_free(s);
    assert_null(llm_store_free(NULL));
}

static void test_bounds(void **state)
{
    struct llm_store *s = llm_store_new(64 << 10);
    char value[1000];
    memset(value, 'x', sizeof value);
    for (int i = 0; i < 5000; i++) {
        llm_store_put(s, str_of(arena_printf(arena, "key%d", i)), str_n(value, sizeof value));
    }
    assert_in_range(llm_store_count(s), 32, 64);
    assert_int_equal(llm_store_get(s, STR("key0")).len, 0);
    assert_int_equal(llm_store_get(s, STR("key4999")).len, sizeof value);
    /* Larger than anything it keeps. */
    char *large = xcalloc(1, LLM_STORE_ENTRY_MAX + 1);
    llm_store_put(s, STR("large"), str_n(large, LLM_STORE_ENTRY_MAX + 1));
    assert_int_equal(llm_store_get(s, STR("large")).len, 0);
    free(large);
    llm_store_free(s);
}

static void test_written_and_loaded(void **state)
{
    struct llm_store *s = llm_store_new(0), *again = llm_store_new(0);
    llm_store_put(s, STR("call:1"), STR("{\"from\":\"gemini\"}"));
    llm_store_put(s, STR("item:2"), STR("Gr\u00fc\u00dfe"));
    struct json *v = parse(text_of_json(llm_store_json(s, arena)));
    assert_int_equal(llm_store_load(again, v, NULL), 0);
    assert_true(str_eqc(llm_store_get(again, STR("item:2")), "Gr\u00fc\u00dfe"));
    assert_int_equal(llm_store_count(again), 2);
    static const char *const bad[] = { "{}", "[1]", "[[\"a\"]]", "[[\"a\",1]]", "[null]" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };
        assert_int_equal(llm_store_load(again, parse(str_of(bad[i])), &e), -ERR_PARSE);
        assert_true(e.msg[0] != '\0');
    }
    llm_store_free(s);
    llm_store_free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_and_get, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_bounds, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_written_and_loaded, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
