/* SPDX-License-Identifier: MIT
 *
 * Changes of the session that a tool asks for: each operation, each way to get one wrong.
 */
#include "tools/tool_state.h"

#include "../values.h"
#include "base/macro.h"
#include "record/state_store.h"

static struct state_store *session;

static int setup(void **state)
{
    session = store_new(&(struct store_opts) { .id = STR("s"), .journal_fd = -1 });
    return arena_setup(state);
}

static int teardown(void **state)
{
    session = store_free(session);
    return arena_teardown(state);
}

static int apply(const char *yaml, struct err *e)
{
    struct store_txn *t = store_begin(session);
    int r = tool_state_apply(t, yaml == NULL ? NULL : tree(yaml), e);
    assert_int_equal(r < 0 ? store_abort(t, NULL) : store_commit(t, NULL), 0);
    return r;
}

static void change(const char *yaml)
{
    struct err e;
    if (apply(yaml, &e) < 0) {
        fail_msg("%s", e.msg);
    }
}

static void assert_slice(const char *slice, const char *yaml)
{
    const struct json *wanted = tree(yaml);
    assert_int_equal(store_len(session, NULL, str_of(slice)), json_len(wanted));
    for (size_t i = 0; i < json_len(wanted); i++) {
        assert_true(json_equal(store_item(session, NULL, str_of(slice), i), json_item(wanted, i)));
    }
}

static void test_operations(void **state)
{
    struct store_rule rule = { STR("StepDone"), STR("steps"), REDUCE_UPSERT_BY, STR("/id") };
    assert_int_equal(store_reduce(session, &rule, NULL), 0);
    change(NULL);
    change("null");
    change("[]");
    change("[{op: append, slice: plan, value: {id: 1}}, {op: extend, slice: plan, value: [{id: 2}, "
           "3]}]");
    assert_slice("plan", "[{id: 1}, {id: 2}, 3]");
    change("[{op: clear, slice: plan, key: /id, value: 2}]");
    assert_slice("plan", "[{id: 1}, 3]");
    change("[{op: replace, slice: plan, value: [4]}, {op: append, slice: plan, value: null}]");
    assert_slice("plan", "[4, null]");
    change("[{op: clear, slice: plan}]");
    assert_slice("plan", "[]");
    change("[{op: dispatch, event: StepDone, value: {id: 1, n: 1}}, {op: dispatch, event: "
           "StepDone, value: {id: 1, n: 2}}, {op: dispatch, event: Other, value: 5}]");
    assert_slice("steps", "[{id: 1, n: 2}]");
    assert_slice("Other", "[5]");
}

static void test_what_is_wrong(void **state)
{
    static const char *const cases[][2] = {
        { "{op: append}", "state: must be a list" },
        { "[1]", "state: change 1: must be an object" },
        { "[{op: clear, slice: a}, {}]", "state: change 2: 'op' must be" },
        { "[{op: pop, slice: a}]", "'op' must be" },
        { "[{op: append, slice: a, value: 1, extra: 1}]", "append has no member 'extra'" },
        { "[{op: append, event: a, value: 1}]", "append has no member 'event'" },
        { "[{op: dispatch, slice: a, value: 1}]", "dispatch has no member 'slice'" },
        { "[{op: append, slice: a, value: 1, key: /a}]", "append has no member 'key'" },
        { "[{op: append, value: 1}]", "append needs 'slice'" },
        { "[{op: append, slice: '', value: 1}]", "append needs 'slice'" },
        { "[{op: append, slice: 5, value: 1}]", "append needs 'slice'" },
        { "[{op: append, slice: \"a\\0b\", value: 1}]", "append needs 'slice'" },
        { "[{op: append, slice: a}]", "append needs a 'value'" },
        { "[{op: extend, slice: a, value: 1}]", "extend needs a 'value' that is a list" },
        { "[{op: replace, slice: a}]", "replace needs a 'value' that is a list" },
        { "[{op: dispatch, event: a}]", "dispatch needs a 'value'" },
        { "[{op: clear, slice: a, key: /a}]", "'key' and 'value', or neither" },
        { "[{op: clear, slice: a, value: 1}]", "'key' and 'value', or neither" },
        { "[{op: clear, slice: a, key: a, value: 1}]", "must be a JSON Pointer" },
        { "[{op: clear, slice: 'policy:sequence'}]", "is not a tool's to change" },
        { "[{op: dispatch, event: ToolInvoked, value: {}}]", "is not a tool's to change" },
        { "[{op: append, slice: VisibilityOverrides, value: {}}]", "is not a tool's to change" },
    };
    change("[{op: append, slice: a, value: 1}]");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        assert_int_equal(apply(cases[i][0], &e), -ERR_CONFIG);
        if (strstr(e.msg, cases[i][1]) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i][1], e.msg);
        }
        assert_slice("a", "[1]");
    }
}

static void test_bounds(void **state)
{
    struct err e;
    struct json *many = json_array(arena), *one = tree("{op: clear, slice: a}");
    for (int i = 0; i <= TOOL_STATE_OPS_MAX; i++) {
        json_push(arena, many, one);
    }
    assert_int_equal(tool_state_check(many, &e), -ERR_LIMIT);
    many->array.len--;
    assert_int_equal(tool_state_check(many, &e), 0);
    struct json *items = json_array(arena);
    for (int i = 0; i <= TOOL_STATE_ITEMS_MAX; i++) {
        json_push(arena, items, one);
    }
    struct json *extend = tree("{op: extend, slice: a}");
    json_setc(arena, extend, "value", items);
    struct json *list = json_array(arena);
    json_push(arena, list, extend);
    assert_int_equal(tool_state_check(list, &e), -ERR_LIMIT);
    items->array.len--;
    assert_int_equal(tool_state_check(list, &e), 0);
    /* slices are not made without end either */
    struct store_txn *t = store_begin(session);
    int r = 0, n = 0;
    while (r == 0 && n++ <= SESSION_SLICES_MAX) {
        r = tool_state_apply(
            t, tree(arena_printf(arena, "[{op: append, slice: s%d, value: 1}]", n)), &e);
    }
    assert_int_equal(r, -ERR_LIMIT);
    assert_int_equal(store_abort(t, NULL), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_operations),
        TEST(test_what_is_wrong),
        TEST(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
