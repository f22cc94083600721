/* SPDX-License-Identifier: MIT
 *
 * JSON-RPC: what is a message and what is none, with the code and the id of the answer; writing and
 * reading back; bounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "wire/jsonrpc.h"

static int read_text(struct arena *a, const char *text, struct jsonrpc_message *m, struct err *e)
{
    return jsonrpc_read(a, str_of(text), NULL, m, e);
}

static void kinds(void **state)
{
    (void)state;
    CLEANUP(arena) struct arena *a = arena_new();
    struct jsonrpc_message m;
    struct err e;
    assert_int_equal(read_text(a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", &m, &e), 0);
    assert_int_equal(m.kind, JSONRPC_REQUEST);
    assert_true(str_eqc(m.method, "m"));
    assert_null(m.params);
    assert_int_equal(
        read_text(a, "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"a\":[]}}", &m, &e), 0);
    assert_int_equal(m.kind, JSONRPC_NOTIFICATION);
    assert_non_null(json_get(m.params, "a"));
    assert_int_equal(read_text(a, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}", &m, &e), 0);
    assert_int_equal(m.kind, JSONRPC_RESULT);
    assert_int_equal(read_text(a,
                               "{\"jsonrpc\":\"2.0\",\"id\":null,"
                               "\"error\":{\"code\":-1,\"message\":\"no\",\"data\":7}}",
                               &m, &e),
                     0);
    assert_int_equal(m.kind, JSONRPC_ERROR);
    assert_int_equal(m.code, -1);
    assert_int_equal(json_int(m.data, 0), 7);
    assert_null(m.id);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        bool has_id;
    } cases[] = {
        { "", -32700, false },
        { "{", -32700, false },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"m\"}", -32700, false },
        { "[]", -32600, false },
        { "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]", -32600, false },
        { "7", -32600, false },
        { "null", -32600, false },
        { "{}", -32600, false },
        { "{\"id\":1,\"method\":\"m\"}", -32600, true },
        { "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}", -32600, true },
        { "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"m\"}", -32600, true },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", -32600, false },
        { "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"m\"}", -32600, false },
        { "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"m\"}", -32600, false },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", -32600, true },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", -32600, true },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}", -32600, true },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[]}", -32600, true },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":null}", -32600, true },
        { "{\"jsonrpc\":\"2.0\",\"id\":1}", -32600, true },
        { "{\"jsonrpc\":\"2.0\",\"result\":{}}", -32600, false },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", -32600, true },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"x\",\"message\":\"y\"}}", -32600,
          true },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":5}", -32600, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena) struct arena *a = arena_new();
        struct jsonrpc_message m;
        struct err e = { 0 };
        assert_true(read_text(a, cases[i].text, &m, &e) < 0);
        assert_int_equal(jsonrpc_code_of(&e), cases[i].code);
        assert_int_equal(m.id != NULL, cases[i].has_id);
    }
}

static void bounds(void **state)
{
    (void)state;
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct jsonrpc_message m;
    struct err e;
    buf_adds(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":");
    for (int i = 0; i < 200; i++) {
        buf_adds(&text, "[");
    }
    for (int i = 0; i < 200; i++) {
        buf_adds(&text, "]");
    }
    buf_adds(&text, "}}");
    assert_int_equal(jsonrpc_read(a, buf_str(&text), NULL, &m, &e), -ERR_LIMIT);
    buf_reset(&text);
    buf_addf(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"%0*d\"}", JSONRPC_METHOD_MAX + 1, 0);
    assert_int_equal(jsonrpc_read(a, buf_str(&text), NULL, &m, &e), -ERR_PROTO);
    buf_reset(&text);
    buf_addf(&text, "{\"jsonrpc\":\"2.0\",\"id\":\"%0*d\",\"method\":\"m\"}", JSONRPC_ID_MAX + 1,
             0);
    assert_int_equal(jsonrpc_read(a, buf_str(&text), NULL, &m, &e), -ERR_PROTO);
    struct json_limits small = { .max_bytes = 10 };
    assert_int_equal(jsonrpc_read(a, buf_str(&text), &small, &m, &e), -ERR_LIMIT);
}

static void writing(void **state)
{
    (void)state;
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct json *id = json_string(a, STR("a\"b"));
    struct json *o = json_object(a);
    json_setc(a, o, "k", json_integer(a, 1));
    assert_int_equal(jsonrpc_write_request(id, STR("m"), o, &out, NULL), 0);
    assert_string_equal(
        out.ptr, "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"method\":\"m\",\"params\":{\"k\":1}}");
    buf_reset(&out);
    assert_int_equal(jsonrpc_write_notification(STR("n"), NULL, &out, NULL), 0);
    assert_string_equal(out.ptr, "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}");
    buf_reset(&out);
    assert_int_equal(jsonrpc_write_result(json_integer(a, 3), NULL, &out, NULL), 0);
    assert_string_equal(out.ptr, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}");
    buf_reset(&out);
    assert_int_equal(jsonrpc_write_error(NULL, -32700, STR("bad"), o, &out, NULL), 0);
    assert_string_equal(out.ptr, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
                                 "\"message\":\"bad\",\"data\":{\"k\":1}}}");
}

static void whole_or_not_there(void **state)
{
    (void)state;
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(40);
    struct json *o = json_object(a);
    json_setc(a, o, "long", json_cstr(a, "0123456789012345678901234567890123456789"));
    assert_int_equal(buf_append(&out, STR("x"), NULL), 0);
    assert_int_equal(jsonrpc_write_result(json_integer(a, 3), o, &out, NULL), -ERR_LIMIT);
    assert_int_equal(out.len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),   cmocka_unit_test(refusals),           cmocka_unit_test(bounds),
        cmocka_unit_test(writing), cmocka_unit_test(whole_or_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
