/* SPDX-License-Identifier: MIT
 *
 * Entries of transcripts, in the forms that harnesses and importers write them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "view/entry_view.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static bool read_entry(void **state, const char *text, struct entry_view *ret)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(*state, str_of(text), NULL, &v, NULL), 0);
    return entry_view_read(v, ret);
}

static void assert_text(const struct entry_view *v, const char *wanted)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    entry_view_text(v, &out);
    assert_string_equal(out.ptr, wanted);
}

static void test_call_and_result(void **state)
{
    struct entry_view v;
    CLEANUP(buf) struct buf call = BUF_INIT(BUF_TEXT);
    assert_true(read_entry(
        state,
        "{\"entry_type\":\"tool_use\",\"sequence_number\":3,\"detail\":{\"tool_name\":\"Bash\","
        "\"tool_call_id\":\"c1\",\"input\":{\"command\":\"bash -lc 'npm test'\"}}}",
        &v));
    entry_view_call(&v, &call);
    assert_string_equal(call.ptr, "$ npm test");
    assert_text(&v, "{\"command\":\"bash -lc 'npm test'\"}");
    assert_true(str_eqc(v.call_id, "c1") && str_eqc(v.tool, "Bash") && v.sequence == 3);
    assert_true(str_eqc(v.source, "main"));
    assert_true(read_entry(state,
                           "{\"entry_type\":\"tool_result\",\"source\":\"subagent:7\",\"detail\":"
                           "{\"tool_use_id\":\"c1\",\"exit_code\":2,\"output\":[{\"text\":\"one\"},"
                           "{\"text\":\"two\"}]}}",
                           &v));
    assert_text(&v, "one\ntwo");
    assert_true(v.failed && v.exit_code == 2 && str_eqc(v.call_id, "c1"));
    assert_string_equal(entry_view_role(&v), "tool");
}

static void test_messages(void **state)
{
    struct entry_view v;
    assert_true(read_entry(
        state, "{\"entry_type\":\"user_message\",\"detail\":{\"text\":\"hi\",\"result\":\"no\"}}",
        &v));
    assert_text(&v, "hi");
    assert_true(
        read_entry(state, "{\"entry_type\":\"error\",\"detail\":{\"message\":\"why\"}}", &v));
    assert_text(&v, "why");
    assert_true(read_entry(
        state, "{\"context\":{\"entry_type\":\"thinking\",\"detail\":{\"thinking\":\"hm\"}}}", &v));
    assert_text(&v, "hm");
    assert_true(read_entry(state, "{\"entry_type\":\"of next year\",\"detail\":5}", &v));
    assert_true(v.type == ENTRY_UNKNOWN && entry_view_is_protocol(&v));
    assert_null(entry_view_role(&v));
    assert_false(read_entry(state, "{\"event\":\"transcript.start\"}", &v));
    assert_false(read_entry(state, "[1]", &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_call_and_result, setup, teardown),
        cmocka_unit_test_setup_teardown(test_messages, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
