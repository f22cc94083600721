/* SPDX-License-Identifier: MIT
 *
 * Tool kinds: every row is complete, and a definition selects exactly one.
 */
#include "tools/tool_kind.h"

#include "../values.h"

static const struct json *parse(struct arena *a, const char *text)
{
    struct json *v;
    struct err e;
    assert_int_equal(json_parse(a, str_of(text), NULL, &v, &e), 0);
    return v;
}

static void test_rows_are_complete(void **state)
{
    const struct tool_kind *k;
    for (size_t i = 0; (k = tool_kind_at(i)) != NULL; i++) {
        assert_non_null(k->name);
        assert_non_null(k->key);
        assert_non_null(k->command);
        assert_non_null(k->check);
        assert_non_null(k->bind);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(k->key, tool_kind_at(j)->key);
            assert_string_not_equal(k->name, tool_kind_at(j)->name);
        }
    }
    assert_ptr_equal(tool_kind_at(0), &tool_kind_program);
}

static void test_one_key_selects_the_kind(void **state)
{
    static const struct {
        const char *definition;
        const struct tool_kind *kind; /* NULL: refused */
    } cases[] = {
        { "{\"command\":[\"ls\"]}", &tool_kind_program },
        { "{\"mcp\":{\"url\":\"http://x/\"}}", &tool_kind_mcp },
        { "{\"mcp\":{},\"command\":[]}", &tool_kind_mcp },
        { "{\"mcp\":{},\"command\":[\"ls\"]}", NULL },
        { "{\"command\":[]}", NULL },
        { "{\"name\":\"x\"}", NULL },
        { "[]", NULL },
    };
    CLEANUP(arena) struct arena *a = arena_new();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct tool_kind *k = NULL;
        struct err e;
        int r = tool_kind_of(parse(a, cases[i].definition), &k, &e);
        if (cases[i].kind != NULL) {
            assert_int_equal(r, 0);
            assert_ptr_equal(k, cases[i].kind);
        } else {
            assert_int_equal(r, -ERR_CONFIG);
            assert_string_equal(e.msg, "a tool needs either 'command' or 'mcp'");
        }
    }
}

static void test_commands_are_found(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    const struct json *c = tool_kind_command(parse(a, "{\"command\":[\"ls\",\"-l\"]}"));
    assert_int_equal(json_len(c), 2);
    c = tool_kind_command(parse(a, "{\"mcp\":{\"command\":[\"server\"]}}"));
    assert_string_equal(json_cstring(json_item(c, 0), ""), "server");
    assert_null(tool_kind_command(parse(a, "{\"mcp\":{\"url\":\"http://x/\"}}")));
    assert_null(tool_kind_command(parse(a, "{}")));
}

static void test_definitions_are_checked(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct err e;
    const struct json *good = parse(a, "{\"name\":\"x\",\"command\":[\"ls\"]}");
    assert_int_equal(tool_kind_program.check(good, &e), 0);
    assert_int_equal(tool_kind_program.check(parse(a, "{\"name\":\"x\",\"command\":[\"\"]}"), &e),
                     -ERR_CONFIG);
    assert_int_equal(tool_kind_mcp.check(parse(a, "{\"name\":\"x\",\"mcp\":{}}"), &e), -ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_one_key_selects_the_kind),
        cmocka_unit_test(test_commands_are_found),
        cmocka_unit_test(test_definitions_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
