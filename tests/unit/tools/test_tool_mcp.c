/* SPDX-License-Identifier: MIT
 *
 * Upstream MCP servers without any: which definitions are right, which tools of a list are offered,
 * what an answer means, and that a pin is of what was said and of nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "tools/tool_mcp_priv.h"

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(a, str_of(text), NULL, &v, NULL), 0);
    return v;
}

static void definitions(void **state)
{
    static const struct {
        const char *mcp, *why; /* NULL: it is right */
    } cases[] = {
        { "{\"command\":[\"x\",\"-y\"]}", NULL },
        { "{\"url\":\"https://example.org/mcp\",\"headers\":{\"X-Key\":\"$KEY\"}}", NULL },
        { "{\"command\":[\"x\"],\"rename\":{\"a\":\"b\"},\"prefix\":\"p_\"}", NULL },
        { "{}", "one of 'command'" },
        { "{\"command\":[],\"tools\":[]}", "one of 'command'" },
        { "{\"command\":[\"x\"],\"url\":\"http://x\"}", "one of 'command'" },
        { "{\"command\":\"x\"}", "command" },
        { "{\"command\":[\"\"]}", "command[0]" },
        { "{\"url\":\"ftp://x\"}", "not an http://" },
        { "{\"url\":\"http://x/\\u0001\"}", "not an http://" },
        { "{\"url\":\"http://x\",\"headers\":{\"A b\":\"c\"}}", "'A b' cannot be set" },
        { "{\"url\":\"http://x\",\"headers\":{\"A\":\"c\\r\\nX: y\"}}", "'A' cannot be set" },
        { "{\"url\":\"http://x\",\"headers\":{\"Mcp-Session-Id\":\"c\"}}", "cannot be set" },
        { "{\"command\":[\"x\"],\"pin\":{\"a\":\"123\"}}", "pin.a must be 64" },
        { "{\"command\":[\"x\"],\"rename\":{\"a\":\"B c\"}}", "'B c' is not a valid name" },
        { "{\"command\":[\"x\"],\"prefix\":\"A.\"}", "prefix" },
        { "{\"comand\":[\"x\"]}", "did you mean 'command'" },
        { "[]", "must be an object" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct err e = { 0 };
        struct json *d = parse(a, "{\"name\":\"other\"}");
        json_setc(a, d, "mcp", parse(a, cases[i].mcp));
        int rc = toolserver_check(d, &e);
        assert_int_equal(rc, cases[i].why == NULL ? 0 : -ERR_CONFIG);
        if (cases[i].why != NULL && strstr(e.msg, cases[i].why) == NULL) {
            fail_msg("%s: %s", cases[i].mcp, e.msg);
        }
    }
}

static void the_order_of_keys_is_no_change(void **state)
{
    (void)state;
    CLEANUP(arena) struct arena *a = arena_new();
    char one[SHA256_HEX], two[SHA256_HEX], three[SHA256_HEX];
    mcp_pin(parse(a,
                  "{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\",\"x\":[{\"b\":1,\"a\":2}]},"
                  "\"description\":\"d\"}"),
            one);
    mcp_pin(
        parse(a,
              "{\"description\":\"d\",\"title\":\"t\",\"inputSchema\":{\"x\":[{\"a\":2,\"b\":1}],"
              "\"type\":\"object\"},\"name\":\"a\"}"),
        two);
    mcp_pin(parse(a, "{\"description\":\"d.\",\"inputSchema\":{\"x\":[{\"a\":2,\"b\":1}],"
                     "\"type\":\"object\"},\"name\":\"a\"}"),
            three);
    assert_string_equal(one, two);
    assert_string_not_equal(one, three);
    /* As any other tool has it: the text below through sha256sum. */
    char plain[SHA256_HEX];
    sha256_hex(STR("{\"description\":\"d\",\"inputSchema\":{\"type\":\"object\",\"x\":[{\"a\":2,"
                   "\"b\":1}]},"
                   "\"name\":\"a\"}"),
               plain);
    assert_string_equal(one, plain);
}

static void on_report(void *arg, enum toolserver_event ev, struct str tool, const char *text)
{
    char *out = arg;
    (void)text;
    (void)snprintf(out + strlen(out), 200 - strlen(out), "%s %.*s;", toolserver_event_word(ev),
                   STR_ARG(tool));
}

static void schemas_that_hide_something(void **state)
{
    (void)state;
    CLEANUP(arena) struct arena *a = arena_new();
    char told[200] = "";
    struct served_list l;
    const struct toolserver_plan plan = { .name = STR("s") };
    served_choose(
        a, &plan,
        parse(a,
              "[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\",\"description\":\"\\u202e\"}},"
              "{\"name\":\"b\",\"inputSchema\":{\"type\":\"object\",\"\\u001b\":1}},"
              "{\"name\":\"c\",\"inputSchema\":{\"type\":\"object\",\"description\":"
              "\"\\\\u0041 \\u26a0\\ufe0f\"}}]"),
        &l, on_report, told);
    assert_string_equal(told, "refused a;refused b;");
    assert_int_equal(l.len, 1);
    tool_free(&l.tools[0]);
}

static void answers(void **state)
{
    static const struct {
        const char *result;
        enum tool_failure failure;
        const char *message;
    } cases[] = {
        { "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}",
          TOOL_OK, "a\nb" },
        { "{\"structuredContent\":{\"n\":1}}", TOOL_OK, "" },
        { "{\"content\":[],\"isError\":true}", TOOL_FAILED,
          "the tool failed and does not say why" },
        { "{\"content\":[{\"type\":\"image\",\"data\":\"x\"}]}", TOOL_BAD_OUTPUT, NULL },
        { "{\"content\":[{\"type\":\"image\",\"data\":\"x\",\"mimeType\":\"image/png\"}]}", TOOL_OK,
          "" },
        { "{\"content\":{}}", TOOL_BAD_OUTPUT, NULL },
        { "{}", TOOL_BAD_OUTPUT, NULL },
        { "7", TOOL_BAD_OUTPUT, NULL },
        { "{\"resultType\":\"input_required\"}", TOOL_FAILED, NULL },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct tool_result r;
        const struct mcp_client_answer answer = { .result = parse(a, cases[i].result),
                                                  .bytes = 10 };
        toolserver_read(a, &answer, 100, &r);
        assert_int_equal(r.failure, cases[i].failure);
        if (cases[i].message != NULL) {
            assert_string_equal(r.message.ptr, cases[i].message);
        }
    }
    CLEANUP(arena) struct arena *a = arena_new();
    struct tool_result r;
    toolserver_read(a, &(struct mcp_client_answer) { .result = json_object(a), .bytes = 101 }, 100,
                    &r);
    assert_int_equal(r.failure, TOOL_FLOOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definitions),
        cmocka_unit_test(the_order_of_keys_is_no_change),
        cmocka_unit_test(schemas_that_hide_something),
        cmocka_unit_test(answers),
    };
    return cmocka_run_group_tests_name("tool_mcp", tests, NULL, NULL);
}
