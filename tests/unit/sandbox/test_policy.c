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
        assert_true(sandbox_mode_word((enum sandbox_mode)m)[0] != '\0');
        for (int other = 0; other < m; other++) {
            assert_string_not_equal(sandbox_mode_word((enum sandbox_mode)m),
                                    sandbox_mode_word((enum sandbox_mode)other));
        }
    }
}

static void every_guarantee_has_a_word_and_a_meaning(void **state)
{
    (void)state;
    for (int g = 0; g < SANDBOX_GUARANTEE_MAX; g++) {
        assert_non_null(sandbox_guarantee_word((enum sandbox_guarantee)g));
        assert_non_null(sandbox_guarantee_meaning((enum sandbox_guarantee)g));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_workspace_write_without_network),
        cmocka_unit_test(modes_have_words),
        cmocka_unit_test(every_guarantee_has_a_word_and_a_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
