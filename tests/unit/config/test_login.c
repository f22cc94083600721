/* SPDX-License-Identifier: MIT
 *
 * Files of logins: both forms, when they end, what renews them, what is secret in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/buf.h"
#include "config/login.h"

static int begin(void **state)
{
    *state = arena_new();
    return 0;
}

static int end(void **state)
{
    (void)arena_free(*state);
    return 0;
}

static void test_forms(void **state)
{
    struct json *tree = login_read(*state, STR("{\"a\": {\"b\": \"c\"}}"));
    assert_true(str_eqc(json_str(json_pointer(tree, STR("/a/b")), STR_EMPTY), "c"));
    tree =
        login_read(*state, STR("# mine\n\nexport A=\"b c\"\r\nB = 'd'\nC=e=f\nnot this: x\nD=\n"));
    assert_int_equal(json_len(tree), 4);
    assert_string_equal(json_cstring(json_get(tree, "A"), ""), "b c");
    assert_string_equal(json_cstring(json_get(tree, "B"), ""), "d");
    assert_string_equal(json_cstring(json_get(tree, "C"), ""), "e=f");
    assert_string_equal(json_cstring(json_get(tree, "D"), "x"), "");
    static const char *const none[] = { "", "[]", "null", "\"text\"", "words", "{\"a\":", "=x" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_null(login_read(*state, str_of(none[i])));
    }
    assert_null(login_read(*state, str_n("{}\0{}", 5)));
}

static int64_t ends(struct arena *a, struct json *v)
{
    int64_t when = -1;
    return login_expires(a, v, &when) ? when : -1;
}

static void test_ends(void **state)
{
    struct arena *a = *state;
    assert_int_equal(ends(a, json_integer(a, 1763270000)), 1763270000);
    assert_int_equal(ends(a, json_integer(a, INT64_C(1763270000123))), 1763270000);
    assert_int_equal(ends(a, json_cstr(a, "1763270000")), 1763270000);
    /* {"alg":"RS256"} . {"exp":1763270000} . signature */
    assert_int_equal(ends(a, json_cstr(a, "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjE3NjMyNzAwMDB9.c2ln")),
                     1763270000);
    static const char *const none[] = { "",
                                        "never",
                                        "a.b.c",
                                        "..",
                                        "a.eyJleHAiOjE3NjMyNzAwMDB9",
                                        "sk-ant-oat01",
                                        "a.eyJleHAiOjE3NjMyNzAwMDB9.c.d" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(ends(a, json_cstr(a, none[i])), -1);
    }
    assert_int_equal(ends(a, json_integer(a, 0)), -1);
    assert_int_equal(ends(a, NULL), -1);
    assert_int_equal(ends(a, json_null(a)), -1);
}

static void add(void *arg, struct str value)
{
    buf_addf(arg, "%.*s|", STR_ARG(value));
}

static void test_secrets(void **state)
{
    CLEANUP(buf) struct buf found = BUF_INIT(BUF_TEXT);
    struct json *tree = login_read(
        *state,
        STR("{\"accessToken\":\"12345678\",\"api_key\":\"short\",\"plan\":\"max\",\"list\":["
            "{\"id\":\"a-long-text-without-spaces\"},\"some words that say something\"],"
            "\"scopes\":[\"user:sessions:something_long\"],\"expires\":1763270000}"));
    login_secrets(tree, add, &found);
    assert_string_equal(found.ptr, "12345678|a-long-text-without-spaces|");
}

static void test_renewed(void **state)
{
    static const struct {
        const char *before, *after;
        bool renews;
    } cases[] = {
        { "{\"a\":{\"t\":\"1\",\"e\":1,\"s\":[\"x\"]}}",
          "{\"a\":{\"t\":\"2\",\"e\":2,\"s\":[\"y\",\"z\"]}}", true },
        { "{\"key\":null,\"t\":\"1\"}", "{\"t\":\"2\",\"key\":\"k\"}", true },
        { "{\"a\":{\"t\":\"1\"},\"b\":1}", "{\"a\":{\"t\":\"2\"}}", true },
        { "{\"t\":\"1\"}", "{\"t\":\"2\",\"url\":\"http://x\"}", false },
        { "{\"a\":{\"t\":\"1\"}}", "{\"a\":{\"t\":\"2\",\"url\":\"x\"}}", false },
        { "{\"t\":\"1\"}", "{\"t\":{\"url\":\"x\"}}", false },
        { "{\"t\":\"1\"}", "{\"t\":[\"x\"]}", false },
        { "{\"s\":[\"1\"]}", "{\"s\":[{\"url\":\"x\"}]}", false },
        { "{\"t\":\"1\"}", "{\"t\\u0000x\":\"2\"}", false },
        { "{\"t\":\"1\"}", "[]", false },
        { "{\"t\":\"1\"}", "T=1", false },
        { "T=1", "{\"T\":\"1\"}", false },
        { "KEY=1", "KEY=2", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(login_renews(*state, str_of(cases[i].before), str_of(cases[i].after)),
                         cases[i].renews);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forms, begin, end),
        cmocka_unit_test_setup_teardown(test_ends, begin, end),
        cmocka_unit_test_setup_teardown(test_secrets, begin, end),
        cmocka_unit_test_setup_teardown(test_renewed, begin, end),
    };
    return cmocka_run_group_tests_name("login", tests, NULL, NULL);
}
