/* SPDX-License-Identifier: MIT
 *
 * Drivers: every one has the complete tables of its kind and no other, so that callers need to look
 * at the kind alone.
 */
#include "adapters/driver.h"

#include "values.h"

static bool is_complete(const struct driver_dialogue_ops *d)
{
    return d->begin != NULL && d->reply != NULL && d->prompt != NULL && d->interrupt != NULL &&
           d->finish != NULL && d->offer != NULL && d->pending != NULL && d->resume != NULL &&
           d->set_option != NULL;
}

static bool is_complete_loop(const struct driver_model_ops *m)
{
    return m->next != NULL && m->response != NULL && m->response_end != NULL &&
           m->tool_result != NULL && m->offer != NULL && m->prompt != NULL;
}

static void test_tables_follow_the_kind(void **state)
{
    const struct driver *d;
    unsigned kinds = 0;
    for (size_t i = 0; (d = driver_at(i)) != NULL; i++) {
        kinds |= 1u << d->kind;
        assert_ptr_equal(driver_find(d->name), d);
        assert_non_null(d->open);
        assert_non_null(d->end);
        assert_non_null(d->close);
        assert_int_equal(d->program != NULL, d->kind != DRIVER_MODEL_LOOP);
        assert_int_equal(d->dialogue != NULL, d->kind == DRIVER_DIALOGUE);
        assert_int_equal(d->model != NULL, d->kind == DRIVER_MODEL_LOOP);
        assert_int_equal(d->contract != NULL, d->kind == DRIVER_CONTRACT);
        if (d->program != NULL) {
            assert_non_null(d->program->plan);
            assert_non_null(d->program->feed);
        }
        assert_true(d->dialogue == NULL || is_complete(d->dialogue));
        assert_true(d->model == NULL || is_complete_loop(d->model));
        assert_true(d->contract == NULL ||
                    (d->contract->files != NULL && d->contract->files[0] != NULL &&
                     d->contract->take_file != NULL));
    }
    assert_int_equal(kinds, 1u << DRIVER_PIPE | 1u << DRIVER_DIALOGUE | 1u << DRIVER_MODEL_LOOP |
                                1u << DRIVER_CONTRACT);
}

static void test_a_profile_has_the_kind_of_its_driver(void **state)
{
    struct profile p = { .driver = "api" };
    assert_true(driver_is_kind(&p, DRIVER_MODEL_LOOP));
    assert_false(driver_is_kind(&p, DRIVER_PIPE));
    p.driver = "no such driver";
    assert_false(driver_is_kind(&p, DRIVER_PIPE)); /* although PIPE is 0 */
    assert_null(driver_find(p.driver));
}

static void test_an_unknown_name_is_refused_with_the_list(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct err e;
    assert_int_equal(driver_check(NULL, "p.yaml", &e), 0);
    assert_int_equal(driver_check(json_cstr(a, "oneshot"), "p.yaml", &e), 0);
    assert_int_equal(driver_check(json_cstr(a, "telepathy"), "p.yaml", &e), -ERR_CONFIG);
    assert_non_null(strstr(e.msg, "'driver' must be one of acp|api|claude-stream|"));
    assert_non_null(strstr(e.msg, "|oneshot, not 'telepathy'"));
}

/* --- offering tools --- */

static size_t offered;

static void take_tools(void *self, struct driver_tools tools)
{
    offered += tools.len;
}

static void test_tools_are_offered_by_kind(void **state)
{
    const struct driver_dialogue_ops dialogue = { .offer = take_tools };
    const struct driver_model_ops model = { .offer = take_tools };
    const struct driver talks = { .kind = DRIVER_DIALOGUE, .dialogue = &dialogue };
    const struct driver loops = { .kind = DRIVER_MODEL_LOOP, .model = &model };
    const struct driver pipe = { .kind = DRIVER_PIPE };
    const struct driver files = { .kind = DRIVER_CONTRACT };
    const struct driver_tools tools = { .len = 3 };
    driver_offer(&pipe, NULL, tools);
    driver_offer(&files, NULL, tools);
    assert_int_equal(offered, 0);
    driver_offer(&talks, NULL, tools);
    assert_int_equal(offered, 3);
    driver_offer(&loops, NULL, tools);
    assert_int_equal(offered, 6);
}

static void test_operations_that_a_protocol_lacks(void **state)
{
    driver_ignores_tools(NULL, (struct driver_tools) { 0 });
    driver_never_paused(NULL);
    assert_null(driver_nothing_pending(NULL).method);
    assert_false(driver_sets_nothing(NULL, DRIVER_OPTION_MODEL, STR("m")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_follow_the_kind),
        cmocka_unit_test(test_a_profile_has_the_kind_of_its_driver),
        cmocka_unit_test(test_an_unknown_name_is_refused_with_the_list),
        cmocka_unit_test(test_tools_are_offered_by_kind),
        cmocka_unit_test(test_operations_that_a_protocol_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
