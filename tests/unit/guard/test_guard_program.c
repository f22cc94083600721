/* SPDX-License-Identifier: MIT
 *
 * Policies that are programs: asked in their place of the order, and whatever goes wrong is a
 * denial.
 */
#include "guard_case.h"

static struct guard_check *begin(struct told *t, const struct guard_call *call)
{
    struct guard_check *c;
    *t = (struct told) { 0 };
    guard_check(guard, call, on_decided, t, &c);
    assert_non_null(c);
    assert_int_equal(t->times, 0);
    return c;
}

static void a_program_decides(void **state)
{
    policies("[{type: program, command: [/bin/decide, -x], timeout: 3s, reason: R}]");
    struct told t;
    struct guard_call call = call_of("w", "{path: a}");
    call.section = STR("guide");
    begin(&t, &call);
    call.arguments = NULL; /* it was copied */
    assert_string_equal(helpers[0].opts.argv[0], "/bin/decide");
    assert_string_equal(helpers[0].opts.argv[1], "-x");
    assert_true(helpers[0].opts.timeout == 3 * NSEC_PER_SEC && !helpers[0].opts.outside);
    assert_true(json_equal(helper_input(0), tree("{tool: w, arguments: {path: a}, call_id: c1,"
                                                 " native: false, section: guide}")));
    helper_prints(0, "{\"decision\": \"allow\", \"reason\": \"fine\"}\n");
    assert_true(t.times == 1 && t.allowed);
    begin(&t, &call);
    helper_prints(1, "{\"decision\": \"deny\", \"reason\": \"not today\"}");
    assert_true(t.times == 1 && !t.allowed);
    assert_string_equal(t.reason, "not today");
    assert_string_equal(t.policy, "program");
    begin(&t, &call);
    helper_prints(2, "{\"decision\": \"deny\"}");
    assert_string_equal(t.reason, "R");
    assert_string_equal(t.detail, "");
    assert_null(problem); /* it said no, and that is no problem */
}

static void whatever_a_program_does_wrong_is_a_denial(void **state)
{
    static const struct {
        enum helper_end end;
        int value;
        const char *out;
    } rows[] = {
        { HELPER_EXITED, 1, "{\"decision\": \"allow\"}" },
        { HELPER_SIGNALLED, 11, "{\"decision\": \"allow\"}" },
        { HELPER_TIMEOUT, 0, "{\"decision\": \"allow\"}" },
        { HELPER_FLOOD, 0, "{\"decision\": \"allow\"}" },
        { HELPER_NOT_STARTED, 0, "" },
        { HELPER_EXITED, 0, "" },
        { HELPER_EXITED, 0, "allow" },
        { HELPER_EXITED, 0, "{\"decision\": \"allow\"" },
        { HELPER_EXITED, 0, "{\"decision\": \"allow\"} {}" },
        { HELPER_EXITED, 0, "{\"decision\": \"ALLOW\"}" },
        { HELPER_EXITED, 0, "{\"decision\": true}" },
        { HELPER_EXITED, 0, "[\"allow\"]" },
        { HELPER_EXITED, 0, "{\"decision\": \"allow\", \"reason\": 7}" },
    };
    policies("[{type: program, command: [p]}]");
    struct guard_call call = call_of("w", NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct told t;
        begin(&t, &call);
        helper_ends(i, rows[i].end, rows[i].value, rows[i].out, "");
        assert_int_equal(t.times, 1);
        assert_false(t.allowed);
        assert_string_equal(t.reason, "Denied by policy.");
        assert_true(strlen(t.detail) > 0);
        assert_string_equal(problem, arena_printf(arena, "policy 'program': %s", t.detail));
    }
}

static void a_program_that_cannot_run_is_a_denial(void **state)
{
    policies("[{type: program, command: [p]}]");
    errands_refused = true;
    struct told t = ask("w", NULL);
    assert_false(t.allowed);
    assert_string_equal(t.detail, "no such program");
    struct guard_opts o = { .policies = tree("[{type: program, command: [p]}]") };
    guard = guard_free(guard);
    assert_int_equal(guard_new(&o, &guard, NULL), 0);
    assert_false(ask("w", NULL).allowed);
}

static void a_long_reason_is_cut(void **state)
{
    policies("[{type: program, command: [p]}]");
    struct guard_call call = call_of("w", NULL);
    struct told t;
    char out[5000] = "{\"decision\":\"deny\",\"reason\":\"";
    size_t at = strlen(out);
    for (size_t i = 0; i < 2000; i++) {
        memcpy(out + at + 2 * i, "\303\244", 2);
    }
    memcpy(out + at + 4000, "\"}", 3);
    begin(&t, &call);
    helper_prints(0, out);
    assert_true(strlen(t.reason) <= 2000 && strlen(t.reason) > 1900);
    assert_true(str_is_utf8(str_of(t.reason)));
}

static void a_program_stands_in_its_place_of_the_order(void **state)
{
    policies("[{type: program, command: [p]}, {type: deny, tools: [w], name: after},"
             " {type: program, command: [q]}]");
    struct guard_call call = call_of("w", NULL);
    struct told t;
    begin(&t, &call);
    helper_prints(0, "{\"decision\": \"allow\"}");
    assert_int_equal(n_helpers, 1); /* the second was not asked */
    assert_string_equal(t.policy, "after");
    call.tool = STR("x");
    begin(&t, &call);
    helper_prints(1, "{\"decision\": \"allow\"}");
    assert_int_equal(t.times, 0);
    helper_prints(2, "{\"decision\": \"allow\"}");
    assert_true(t.times == 1 && t.allowed);
}

/* Two calls wait for their programs; the rate allows one of them. */
static void what_was_taken_meanwhile_is_gone(void **state)
{
    policies("[{type: rate, calls: 1}, {type: program, command: [p]}]");
    struct guard_call call = call_of("w", NULL);
    struct told one;
    struct told two;
    begin(&one, &call);
    begin(&two, &call);
    helper_prints(1, "{\"decision\": \"allow\"}");
    helper_prints(0, "{\"decision\": \"allow\"}");
    assert_true(two.allowed && one.times == 1 && !one.allowed);
    assert_string_equal(one.policy, "rate");
}

static void a_cancelled_check_is_silent(void **state)
{
    policies("[{type: program, command: [p]}]");
    struct guard_call call = call_of("w", NULL);
    struct told one;
    struct told two;
    struct told three;
    struct guard_check *c = begin(&one, &call);
    begin(&two, &call);
    begin(&three, &call);
    guard_cancel(c);
    assert_true(helpers[0].cancelled && !helpers[1].cancelled);
    helper_ends(0, HELPER_CANCELLED, 0, "", "");
    helper_prints(1, "{\"decision\": \"allow\"}");
    assert_true(one.times == 0 && two.times == 1);
    guard = guard_free(guard);
    assert_true(helpers[2].cancelled);
    helper_prints(2, "{\"decision\": \"allow\"}"); /* too late: nobody is left */
    assert_int_equal(three.times, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_program_decides),
        CASE(whatever_a_program_does_wrong_is_a_denial),
        CASE(a_program_that_cannot_run_is_a_denial),
        CASE(a_long_reason_is_cut),
        CASE(a_program_stands_in_its_place_of_the_order),
        CASE(what_was_taken_meanwhile_is_gone),
        CASE(a_cancelled_check_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
