/* SPDX-License-Identifier: MIT
 *
 * Fields that repeat a request: the server's check must take what the client writes, whatever the
 * values are; and which schemas may not ask for fields at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "mcp/mcp_fields.h"
#include "mcp/mcp_priv.h"

static const char schema_text[] =
    "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\",\"x-mcp-header\":"
    "\"Region\"},"
    "\"deep\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"x-mcp-header\":"
    "\"N\"},"
    "\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"}}},\"plain\":{\"type\":\"string\"}}}";

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v = NULL;
    assert_int_equal(json_parse(a, str_of(text), NULL, &v, NULL), 0);
    return v;
}

static void the_server_takes_what_the_client_writes(void **state)
{
    static const char *const values[] = {
        "us-west1",     "Hello, \xe4\xb8\x96", " padded ", "",
        "line1\nline2", "=?base64?literal?=",  "\t",       "a\r\nX: y"
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct http_field out[MCP_FIELDS_MAX + 1];
        struct json *schema = parse(a, schema_text);
        struct json *arguments = parse(a, "{\"deep\":{\"n\":-7,\"b\":true},\"plain\":\"p\"}");
        struct json *params =
            parse(a, "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}");
        struct err e = { 0 };
        json_setc(a, arguments, "region", json_cstr(a, values[i]));
        json_setc(a, params, "name", json_cstr(a, values[i]));
        const struct mcp_outgoing m = { .method = STR("tools/call"),
                                        .name = str_of(values[i]),
                                        .stateless = true,
                                        .schema = schema,
                                        .arguments = arguments };
        const struct jsonrpc_message sent = { .method = m.method, .params = params };
        size_t n = mcp_fields(a, &m, out);
        out[n++] = (struct http_field) { STR("MCP-Protocol-Version"), STR("2026-07-28") };
        const struct http_fields f = { out, n };
        for (size_t k = 0; k < n; k++) {
            assert_null(memchr(out[k].value.ptr, '\n', out[k].value.len));
        }
        if (values[i][0] != '\0') {
            assert_int_equal(mcp_header_check(&f, &sent, &e), 0);
        }
        assert_int_equal(mcp_header_params(&f, schema, arguments, &e), 0);
        assert_string_equal(http_find(&f, "mcp-param-n")->ptr, "-7");
        assert_string_equal(http_find(&f, "mcp-param-b")->ptr, "true");
        assert_null(http_find(&f, "mcp-param-plain"));
    }
}

static void nothing_is_repeated_in_a_session(void **state)
{
    (void)state;
    CLEANUP(arena) struct arena *a = arena_new();
    struct http_field out[MCP_FIELDS_MAX];
    const struct mcp_outgoing m = { .method = STR("tools/call"), .name = STR("x") };
    assert_int_equal(mcp_fields(a, &m, out), 0);
}

static void schemas_that_may_not_ask(void **state)
{
    static const struct {
        const char *properties, *why;
    } bad[] = {
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}", "not a valid field name" },
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A b\"}}", "not a valid field name" },
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\\r\\nX\"}}", "not a valid field name" },
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":7}}", "not a valid field name" },
        { "{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}", "a field cannot carry" },
        { "{\"a\":{\"x-mcp-header\":\"A\"}}", "a field cannot carry" },
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
          "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}",
          "twice" },
        { "{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}",
          "not reached" },
        { "{\"a\":{\"anyOf\":[{\"type\":\"string\",\"x-mcp-header\":\"A\"}]}}", "not reached" },
    };
    (void)state;
    CLEANUP(arena) struct arena *a = arena_new();
    assert_int_equal(mcp_fields_check(parse(a, schema_text), NULL), 0);
    assert_int_equal(mcp_fields_check(parse(a, "{\"type\":\"object\"}"), NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };
        struct json *schema = json_object(a);
        json_setc(a, schema, "properties", parse(a, bad[i].properties));
        assert_int_equal(mcp_fields_check(schema, &e), -ERR_CONFIG);
        assert_non_null(strstr(e.msg, bad[i].why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_takes_what_the_client_writes),
        cmocka_unit_test(nothing_is_repeated_in_a_session),
        cmocka_unit_test(schemas_that_may_not_ask),
    };
    return cmocka_run_group_tests_name("mcp_fields", tests, NULL, NULL);
}
