/* SPDX-License-Identifier: MIT
 *
 * Looking into request bodies: what is found, what is refused as ambiguous, and replacing one value
 * without touching another byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/macro.h"
#include "gateway/scan.h"

static void test_what_is_found(void **state)
{
    struct scan s;
    assert_true(scan_request(STR(" {\"model\" : \"m-1\",\"stream\":true,\n\"max_tokens\": 100, "
                                 "\"messages\":[{\"content\":\"\\\"model\\\": {\\\\\"}]} "),
                             &s));
    assert_true(str_eqc(s.model, "m-1"));
    assert_true(s.stream);
    assert_int_equal(s.max_output, 100);
    assert_true(scan_request(STR("{}"), &s));
    assert_int_equal(s.model.len, 0);
    assert_false(s.stream);
    assert_int_equal(s.max_output, 0);
    assert_true(scan_request(STR("{\"contents\":[],\"generationConfig\":{\"temperature\":1,"
                                 "\"maxOutputTokens\":7}}"),
                             &s));
    assert_int_equal(s.max_output, 7);
    assert_true(scan_request(STR("{\"input\":{\"model\":\"inner\"},\"model\":\"outer\"}"), &s));
    assert_true(str_eqc(s.model, "outer"));
    assert_true(scan_request(STR("{\"max_tokens\":null,\"stream\":false}"), &s));
    assert_int_equal(s.max_output, 0);
}

static int64_t choices_of(const char *body)
{
    struct scan s;
    assert_true(scan_request(str_of(body), &s));
    return s.choices;
}

static void test_how_many_responses_and_where(void **state)
{
    struct scan s;
    assert_int_equal(choices_of("{}"), 0);
    assert_int_equal(choices_of("{\"n\":128}"), 128);
    assert_int_equal(choices_of("{\"n\":null}"), 0);
    assert_int_equal(choices_of("{\"best_of\":5,\"n\":2}"), 5);
    assert_int_equal(choices_of("{\"n\":2,\"n\":9,\"n\":3}"), 9);
    assert_int_equal(choices_of("{\"generationConfig\":{\"candidateCount\":8}}"), 8);
    assert_int_equal(choices_of("{\"generation_config\":{\"candidate_count\":8}}"), 8);
    static const char *const unclear[] = { "{\"n\":0}",
                                           "{\"n\":-1}",
                                           "{\"n\":2.0}",
                                           "{\"n\":1e2}",
                                           "{\"n\":\"3\"}",
                                           "{\"n\":[4]}",
                                           "{\"n\":0,\"best_of\":3}" };
    for (size_t i = 0; i < ARRAY_LEN(unclear); i++) {
        assert_int_equal(choices_of(unclear[i]), -1);
    }
    assert_true(scan_request(STR("{\"background\":true}"), &s) && s.background);
    assert_true(scan_request(STR("{\"background\":\"yes\"}"), &s) && s.background);
    assert_true(scan_request(STR("{\"background\":true,\"background\":false}"), &s));
    assert_true(s.background);
    assert_true(scan_request(STR("{\"background\":false}"), &s) && !s.background);
    assert_true(scan_request(STR("{\"background\":null}"), &s) && !s.background);
}

static void test_the_ends_of_the_conversation(void **state)
{
    struct scan s;
    struct str body = STR("{\"tools\":[ ],\"messages\": [ {\"a\":[1]} , 2,\"]\" , {} ],\"b\":1}");
    assert_true(scan_request(body, &s));
    assert_false(s.tools);
    assert_true(str_eqc(str_slice(body, s.talk_at.from, s.first_to), "[ {\"a\":[1]} , 2"));
    assert_true(str_eqc(str_slice(body, s.before_from, s.last_from), "\"]\" , "));
    assert_true(str_eqc(str_slice(body, s.last_from, s.talk_at.to), "{} ]"));
    body = STR("{\"input\":\"hi\",\"tools\":[{}]}");
    assert_true(scan_request(body, &s));
    assert_true(s.tools);
    assert_true(str_eqc(str_slice(body, s.last_from, s.talk_at.to), "\"hi\""));
    assert_true(scan_request(STR("{\"contents\":[],\"tools\":null}"), &s));
    assert_false(s.tools);
    assert_int_equal(s.talk_at.to - s.talk_at.from, 2);
}

static void test_what_two_readers_could_see_differently_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "null",
        "{",
        "{\"model\"",
        "{\"model\":}",
        "{\"model\":\"a\"",
        "{\"model\":\"a\"}x",
        "{\"model\":\"a\",}",
        "{\"model\":\"a\",\"model\":\"b\"}",
        "{\"model\":1}",
        "{\"model\":null}",
        "{\"mod\\u0065l\":\"b\"}",
        "{\"model\":\"a\\u0062\"}",
        "{\"max_tokens\":1,\"max_tokens\":2}",
        "{\"max_tokens\":1,\"max_completion_tokens\":2}",
        "{\"generationConfig\":{},\"generationConfig\":{\"maxOutputTokens\":9}}",
        "{\"a\":\"unclosed}",
        "{\"a\":[1,2}",
        "{\"messages\":[1,]}",
        "{\"messages\":[1 2]}",
        "{\"messages\":[1",
        "{\"messages\":[1,",
        "{a:1}",
        "{\"N\":100}",
        "{\"Max_Tokens\":100000}",
        "{\"Model\":\"dear\",\"model\":\"cheap\"}",
        "{\"generationconfig\":{}}",
        "{\"generationConfig\":{\"MaxOutputTokens\":9}}",
        "{\"generationConfig\":{\"candidatecount\":9}}",
    };
    struct scan s;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(scan_request(str_of(bad[i]), &s));
    }
}

static void expect_model(const char *body, const char *want)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct scan s;
    assert_true(scan_request(str_of(body), &s));
    assert_int_equal(scan_set_model(str_of(body), &s, STR("new"), &out, NULL), 0);
    assert_string_equal(out.ptr, want);
}

static void expect_max(const char *body, const char *name, const char *want)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *v;
    struct scan s;
    assert_true(scan_request(str_of(body), &s));
    assert_int_equal(scan_set_max(str_of(body), &s, name, 42, &out, NULL), 0);
    assert_string_equal(out.ptr, want);
    assert_int_equal(json_parse(a, buf_str(&out), NULL, &v, NULL), 0);
    assert_true(scan_request(buf_str(&out), &s));
    assert_int_equal(s.max_output, 42);
}

static void test_replacing_leaves_the_rest(void **state)
{
    expect_model("{ \"a\": 1, \"model\" : \"old\" }", "{ \"a\": 1, \"model\" : \"new\" }");
    expect_model("{ }", "{\"model\":\"new\" }");
    expect_model("{\"a\":1}", "{\"model\":\"new\",\"a\":1}");
    expect_max("{\"max_tokens\": 100,\"a\":1}", "max_tokens", "{\"max_tokens\": 42,\"a\":1}");
    expect_max("{\"a\":1}", "max_tokens", "{\"max_tokens\":42,\"a\":1}");
    expect_max("{\"generationConfig\":{\"t\":1}}", "maxOutputTokens",
               "{\"generationConfig\":{\"maxOutputTokens\":42,\"t\":1}}");
    expect_max("{\"generationConfig\":null}", "maxOutputTokens",
               "{\"generationConfig\":{\"maxOutputTokens\":42}}");
    expect_max("{}", "maxOutputTokens", "{\"generationConfig\":{\"maxOutputTokens\":42}}");
    expect_max("{\"generationConfig\":{\"maxOutputTokens\":9}}", "maxOutputTokens",
               "{\"generationConfig\":{\"maxOutputTokens\":42}}");
}

static void test_predictions(void **state)
{
    struct scan s;
    assert_true(scan_request(STR("{\"prediction\":{\"content\":\"x\"}}"), &s) && s.prediction);
    assert_true(scan_request(STR("{\"prediction\":null}"), &s) && !s.prediction);
    assert_true(scan_request(STR("{\"metadata\":{\"N\":1},\"toolConfig\":{}}"), &s));
}

static void expect_usage(const char *body, const char *want)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct scan s;
    assert_true(scan_request(str_of(body), &s));
    assert_false(s.include_usage);
    assert_int_equal(scan_set_include_usage(str_of(body), &s, &out, NULL), 0);
    assert_string_equal(out.ptr, want);
    assert_true(scan_request(buf_str(&out), &s));
    assert_true(s.include_usage);
}

static void test_usage_is_asked_for(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct err e;
    struct scan s;
    expect_usage("{ \"a\": 1}", "{\"stream_options\":{\"include_usage\":true}, \"a\": 1}");
    expect_usage("{\"stream_options\": null }", "{\"stream_options\": {\"include_usage\":true} }");
    expect_usage("{\"stream_options\":{}}", "{\"stream_options\":{\"include_usage\":true}}");
    expect_usage("{\"stream_options\":{\"x\":1},\"b\":2}",
                 "{\"stream_options\":{\"include_usage\":true,\"x\":1},\"b\":2}");
    expect_usage("{\"stream_options\":{\"x\":1, \"include_usage\" : false}}",
                 "{\"stream_options\":{\"x\":1, \"include_usage\" : true}}");
    assert_true(scan_request(STR("{\"stream_options\":{\"include_usage\":true}}"), &s));
    assert_true(s.include_usage);
    struct str odd = STR("{\"stream_options\":7}");
    assert_true(scan_request(odd, &s));
    assert_int_equal(scan_set_include_usage(odd, &s, &out, &e), -ERR_PARSE);
    assert_false(scan_request(STR("{\"stream_options\":{},\"stream_options\":{}}"), &s));
    assert_false(scan_request(
        STR("{\"stream_options\":{\"include_usage\":true,\"include_usage\":false}}"), &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_found),
        cmocka_unit_test(test_how_many_responses_and_where),
        cmocka_unit_test(test_the_ends_of_the_conversation),
        cmocka_unit_test(test_what_two_readers_could_see_differently_is_refused),
        cmocka_unit_test(test_replacing_leaves_the_rest),
        cmocka_unit_test(test_usage_is_asked_for),
        cmocka_unit_test(test_predictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
