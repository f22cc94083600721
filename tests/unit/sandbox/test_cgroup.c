/* SPDX-License-Identifier: MIT
 *
 * Counters of both versions of control groups, and a policy that needs none.
 */
#include "sandbox/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_counters(void **state)
{
    assert_int_equal(cgroup_parse_oom(STR("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n"
                                          "oom_group_kill 0\n")),
                     2);
    assert_int_equal(cgroup_parse_oom(STR("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n")), 7);
    /* Kernels before 4.13 do not count, and what cannot be read is not 0. */
    assert_int_equal(cgroup_parse_oom(STR("oom_kill_disable 0\nunder_oom 0\n")), -1);
    assert_int_equal(cgroup_parse_oom(STR_EMPTY), -1);
    assert_int_equal(cgroup_parse_oom(STR("oom_kill\n")), -1);
    assert_int_equal(cgroup_parse_oom(STR("oom_kill x")), -1);
    assert_int_equal(cgroup_parse_oom(STR("oom_kill 5")), 5);
}

static void test_nothing_asked_for(void **state)
{
    struct sandbox_policy p;
    struct sandbox_report report = { 0 };
    struct cgroup *g;
    sandbox_policy_init(&p);
    assert_int_equal(cgroup_open(&p, &g, &report, NULL), 0);
    assert_null(g);
    assert_int_equal(report.memory, 0);
    assert_int_equal(report.n_lost, 0);
    assert_int_equal(cgroup_oom_kills(NULL), -1);
}

/* It is in force, or it is not: then nothing is lost, since nobody asked for it. */
static void test_a_default_is_no_guarantee(void **state)
{
    struct sandbox_policy p;
    struct sandbox_report report = { 0 };
    struct cgroup *g;
    sandbox_policy_init(&p);
    p.memory_default = (uint64_t)1 << 40;
    assert_int_equal(cgroup_open(&p, &g, &report, NULL), 0);
    assert_int_equal(report.n_lost, 0);
    assert_int_equal(report.memory, g == NULL ? 0 : p.memory_default);
    assert_int_equal((report.requested & (1u << SANDBOX_MEMORY)) != 0, g != NULL);
    assert_int_equal(cgroup_oom_kills(g), g == NULL ? -1 : 0);
    g = cgroup_free(g);
    assert_null(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_nothing_asked_for),
        cmocka_unit_test(test_a_default_is_no_guarantee),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
