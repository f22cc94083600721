/* SPDX-License-Identifier: MIT
 *
 * The words of a policy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sandbox/policy.h"

static void the_default_is_workspace_write_without_network(void **state)
{
    (void)state;
    struct sandbox_policy p;
    sandbox_policy_init(&p);
    assert_int_equal(p.mode, SANDBOX_WORKSPACE_WRITE);
    assert_int_equal(p.net, SANDBOX_NET_NONE);
    assert_false(p.allow_nested);
    assert_int_equal(p.may_lose, 0);
}

static void modes_have_words(void **state)
{
    (void)state;
    for (int m = 0; m <= SANDBOX_OFF; m++) {
        enum sandbox_mode back;
        assert_true(sandbox_mode_find(str_of(sandbox_mode_word((enum sandbox_mode)m)), &back));
        assert_int_equal(back, m);
    }
    enum sandbox_mode m;
    assert_false(sandbox_mode_find(STR("none"), &m));
    assert_false(sandbox_mode_find(STR_EMPTY, &m));
}

static void every_guarantee_has_a_word_and_a_meaning(void **state)
{
    (void)state;
    for (int g = 0; g < SANDBOX_GUARANTEE_MAX; g++) {
        assert_non_null(sandbox_guarantee_word((enum sandbox_guarantee)g));
        assert_non_null(sandbox_guarantee_meaning((enum sandbox_guarantee)g));
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t want; /* 0: refused */
    } cases[] = {
        { "1", 1 },
        { "512m", (uint64_t)512 << 20 },
        { "512M", (uint64_t)512 << 20 },
        { "2g", (uint64_t)2 << 30 },
        { "2GiB", (uint64_t)2 << 30 },
        { "2gb", (uint64_t)2 << 30 },
        { "1t", (uint64_t)1 << 40 },
        { "100b", 100 },
        { "0", 0 },
        { "", 0 },
        { "m", 0 },
        { "-1", 0 },
        { "1.5g", 0 },
        { "1x", 0 },
        { "1mm", 0 },
        { "9223372036854775807k", 0 },
        { "99999999999999999999", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t got = 0;
        bool ok = sandbox_size_parse(str_of(cases[i].text), &got);
        assert_int_equal(ok, cases[i].want != 0);
        assert_int_equal(got, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_workspace_write_without_network),
        cmocka_unit_test(modes_have_words),
        cmocka_unit_test(every_guarantee_has_a_word_and_a_meaning),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
