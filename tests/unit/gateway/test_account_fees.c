/* SPDX-License-Identifier: MIT
 *
 * How many web searches a request may cause, in the words of each provider.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/account_priv.h"
#include "gateway/upstream.h"

enum { USUAL = 10 };

static int64_t searches_at(const char *model, const char *body)
{
    const struct upstream upstream = { .name = "up" };
    const struct exchange_view x = { .upstream = &upstream,
                                     .upstream_model = str_of(model),
                                     .client_body = str_of(body) };
    return account_searches(&x);
}

static int64_t searches(const char *body)
{
    return searches_at("m", body);
}

static void searches_are_bounded(void **state)
{
    const char *anthropic = "{\"tools\":[{\"type\":\"web_search_20250305\",\"max_uses\":3},"
                            "{\"type\":\"web_search_20260101\",\"max_uses\":2}]}";
    assert_int_equal(searches(anthropic), 5);
    assert_int_equal(searches("{\"tools\":[{\"type\":\"web_search_20250305\"}]}"), USUAL);
    assert_int_equal(searches("{\"tools\":[{\"type\":\"web_search\"}]}"), USUAL);
    assert_int_equal(searches("{\"tools\":[{\"type\":\"web_search\"}],\"max_tool_calls\":4}"), 4);
    assert_int_equal(searches("{\"tools\":[{\"type\":\"web_search\"}],\"max_tool_calls\":40}"),
                     USUAL);
    assert_int_equal(searches("{\"web_search_options\":{}}"), USUAL);
    assert_int_equal(searches("{\"plugins\":[{\"id\":\"web\"}]}"), USUAL);
    assert_int_equal(searches_at("a/model:online", "{}"), USUAL);
    assert_int_equal(searches_at("gemini-3-pro", "{\"tools\":[{\"googleSearch\":{}}]}"), USUAL);
    assert_int_equal(searches_at("gemini-2.5-pro", "{\"tools\":[{\"google_search\":{}}]}"), 1);
}

static void a_limit_that_is_none(void **state)
{
    assert_int_equal(searches("{\"tools\":[{\"type\":\"web_search_1\",\"max_uses\":-1}]}"), USUAL);
    assert_int_equal(searches("{\"tools\":[{\"type\":\"web_search_1\",\"max_uses\":\"1\"}]}"),
                     USUAL);
    assert_int_equal(searches("{\"tools\":[{\"type\":\"web_\\u0073earch\"}]}"), USUAL);
    /* another reader may take the first list */
    assert_int_equal(searches("{\"tools\":[{\"type\":\"web_search\"}],\"tools\":[]}"), USUAL);
    assert_int_equal(searches("{\"tools\":[{\"type\":\"web_search_1\",\"max_uses\":"
                              "9223372036854775807},{\"type\":\"web_search_1\"}]}"),
                     INT64_MAX);
}

static void other_requests_search_nothing(void **state)
{
    assert_int_equal(searches("{}"), 0);
    assert_int_equal(searches("{\"messages\":[{\"content\":\"search the web\"}]}"), 0);
    assert_int_equal(searches("{\"tools\":[{\"type\":\"function\",\"name\":\"web_search\"},"
                              "{\"name\":\"web_search\",\"input_schema\":{}}]}"),
                     0);
    assert_int_equal(searches("{\"web_search_options\":null,\"tools\":null,\"plugins\":7}"), 0);
    assert_int_equal(searches("{\"tools\":[{\"functionDeclarations\":[]},7,\"web_search\"]}"), 0);
}

static void nothing_is_charged(void **state)
{
    struct upstream upstream = { .name = "up" };
    struct exchange_view x = { .upstream = &upstream,
                               .client_body = STR("{\"web_search_options\":{}}") };
    assert_int_equal(account_searches(&x), USUAL);
    x.translated = true; /* which drops them */
    assert_int_equal(account_searches(&x), 0);
    x.translated = false;
    upstream.local = true;
    assert_int_equal(account_searches(&x), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searches_are_bounded),
        cmocka_unit_test(a_limit_that_is_none),
        cmocka_unit_test(other_requests_search_nothing),
        cmocka_unit_test(nothing_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
