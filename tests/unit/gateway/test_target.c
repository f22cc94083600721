/* SPDX-License-Identifier: MIT
 *
 * Request targets: what is refused, and what goes to an upstream.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "gateway/target.h"
#include "llm/codec.h"

static void test_paths_with_two_readings_are_refused(void **state)
{
    static const char *const bad[] = {
        "/v1/models/../files",
        "/v1/models/..",
        "/v1/./models",
        "/v1/models/.",
        "/v1/models/x/../../files",
        "/v1/models/%2e%2e/files",
        "/v1/models/%2E%2e/files",
        "/v1/models/.%2E/files",
        "/v1/models/gemini-2%2e5",
        "/v1/models/..%2ffiles",
        "/v1/models/x%2F..%2Ffiles",
        "/v1/models/..;/files",
        "/v1/models/..;x=y/files",
        "/v1/models/%252e%252e/files",
        "/v1/models/..\\files",
        "/v1/models/x%5c..%5cfiles",
        "/v1/models/x%00",
        "/v1/models/x%0d%0aX:%20y",
        "/v1/models/x%7f",
        "/v1/models/x#y",
        "/v1/models/x%23y",
        "/v1/models/%zz",
        "/v1/models/x%2",
        "/v1/models/x%",
        "//v1/models",
        "/v1//models",
        "/v1/models//files",
        "/v1beta/models/x:generateContent/../../files",
        "/..?x",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (target_fault(str_of(bad[i])) == NULL) {
            fail_msg("'%s' passes", bad[i]);
        }
    }
    static const char *const good[] = {
        "/",
        "/v1/messages?beta=true",
        "/v1/messages/",
        "/v1/models/x?a=../b",
        "/v1/models/openai%2Fgpt-4o",
        "/v1/models/a...b",
        "/v1/models/...",
        "/v1/models/.hidden",
        "/v1beta/models/gemini-2.5-pro:generateContent?alt=sse",
        "/v1/models/ft:gpt-4o%3Amy",
        "/v1/models/m%C3%A9",
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_null(target_fault(str_of(good[i])));
    }
}

static void test_an_encoded_slash_belongs_into_a_model(void **state)
{
    struct str t = STR("/v1beta/models/a%2fb:generateContent?x=%2f");
    assert_false(target_has_slash(t, llm_endpoint_of(STR("POST"), t).model));
    t = STR("/v1/models/a%2Fb/");
    assert_false(target_has_slash(t, llm_endpoint_of(STR("GET"), t).model));
    assert_true(target_has_slash(STR("/v1%2fmessages"), STR_EMPTY));
    assert_true(target_has_slash(STR("/v1/messages%2Fbatches"), STR_EMPTY));
    assert_false(target_has_slash(STR("/v1/messages?a=%2f"), STR_EMPTY));
}

static void assert_sent(const char *method, const char *target, const char *name, const char *sent)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct str t = str_of(target);
    target_for_upstream(t, llm_endpoint_of(str_of(method), t).model, name, &out);
    assert_string_equal(out.ptr, sent);
}

static void test_what_goes_out(void **state)
{
    assert_sent("POST", "/v1/messages?beta=true", NULL, "/v1/messages?beta=true");
    assert_sent("POST", "/v1/messages/?beta=true&", NULL, "/v1/messages?beta=true");
    assert_sent("POST", "/v1/messages?key=tok", NULL, "/v1/messages");
    assert_sent("POST", "/v1/messages?a=b&access_token=y&c=d&%61ccess_token=z&Api_Key=1", NULL,
                "/v1/messages?a=b&c=d");
    assert_sent("POST", "/v1/messages?$key=1&%24httpMethod=DELETE&userProject=p&keys=2", NULL,
                "/v1/messages?keys=2");
    assert_sent("GET", "/v1/models/a/b/c", NULL, "/v1/models/a%2Fb%2Fc");
    assert_sent("GET", "/v1/models", NULL, "/v1/models");
    assert_sent("POST", "/v1beta/models/a/b:generateContent?alt=sse", NULL,
                "/v1beta/models/a%2Fb:generateContent?alt=sse");
    assert_sent("POST", "/v1beta/models/a:generateContent", "x/y",
                "/v1beta/models/x%2Fy:generateContent");
}

static void test_only_documented_places_of_models(void **state)
{
    struct str good = STR("/v1/projects/p/locations/l/publishers/google/models/m:generateContent");
    assert_int_equal(llm_endpoint_of(STR("POST"), good).call, LLM_CALL_GENERATE);
    static const char *const bad[] = {
        "/v1beta/files/models/m:generateContent",
        "/v1beta/tunedModels/m/models/x:generateContent",
        "/v1/projects/p/locations/l/models/m:generateContent",
        "/v1/projects/p/locations/l/publishers/models/m:generateContent",
        "/v1/projects/p/locations/l/publishers/g/x/models/m:generateContent",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(llm_endpoint_of(STR("POST"), str_of(bad[i])).call, LLM_CALL_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_with_two_readings_are_refused),
        cmocka_unit_test(test_an_encoded_slash_belongs_into_a_model),
        cmocka_unit_test(test_what_goes_out),
        cmocka_unit_test(test_only_documented_places_of_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
