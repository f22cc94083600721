/* SPDX-License-Identifier: MIT
 *
 * Answers that go wrong: cut short, too large, no JSON, errors in each provider's shape. And the
 * tap, which counts the same and holds nothing.
 */
#include "digest.h"

/* --- cut short, too large --- */

static int feed(struct llm_reader_opts o, const char *answer, struct err *e)
{
    struct digest d;
    digest_init(&d);
    o.sink = (struct llm_sink) { digest_event, &d };
    int r = feed_in_steps(&o, str_of(answer), 11, e);
    assert_null(strstr(digest_text(&d), "("));
    digest_done(&d);
    return r;
}

static void test_cut(void **state)
{
    static const struct {
        enum llm_format format;
        bool stream;
        const char *answer;
        int code;
    } cases[] = {
        { LLM_ANTHROPIC, true, "", ERR_PROTO },
        { LLM_ANTHROPIC, false, "", ERR_PROTO },
        { LLM_ANTHROPIC, false, "{\"type\":\"message\"}", ERR_PROTO },
        { LLM_ANTHROPIC, false, "{\"type\":\"mess", ERR_PROTO },
        { LLM_ANTHROPIC, false, "<html>", ERR_PROTO },
        { LLM_ANTHROPIC, true, "data: {\"type\":\"message_start\",\"message\":{}}\n\n", ERR_PROTO },
        { LLM_ANTHROPIC, true, "data: nonsense\n\n", ERR_PROTO },
        { LLM_ANTHROPIC, true, "data: [1]\n\n", ERR_PROTO },
        { LLM_ANTHROPIC, true,
          "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
          ERR_PROTO },
        { LLM_ANTHROPIC, true, "data: {\"type\":\"message_stop\"}\n\n", 0 },
        { LLM_ANTHROPIC, true, "data: {\"type\":\"message_stop\"}", 0 },
        { LLM_CHAT, true, "", ERR_PROTO },
        { LLM_CHAT, true, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n", ERR_PROTO },
        { LLM_CHAT, true, "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n", 0 },
        { LLM_CHAT, true,
          "data: {\"choices\":[{\"delta\":{}}]}\n\ndata: [DONE]\n\ndata: nonsense\n\n", 0 },
        { LLM_CHAT, true, "data: [DONE]\n\n", ERR_PROTO },
        { LLM_CHAT, false, "{}", ERR_PROTO },
        { LLM_CHAT, false, "{\"choices\":[]}", ERR_PROTO },
        { LLM_CHAT, false, "{\"choices\":[{}]}", 0 },
        { LLM_CHAT, false, "null", ERR_PROTO },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct llm_reader_opts o = { .format = cases[i].format, .stream = cases[i].stream };
        struct err e = { 0 };
        int r = feed(o, cases[i].answer, &e);
        if (r != -cases[i].code) {
            fail_msg("%zu: %s gives %d: %s", i, cases[i].answer, r, e.msg);
        }
    }
}

static void test_limits(void **state)
{
    for (unsigned stream = 0; stream < 2; stream++) {
        struct llm_reader_opts o = { .format = LLM_CHAT, .stream = stream != 0, .max_bytes = 64 };
        struct err e = { 0 };
        int r = feed(o,
                     stream != 0 ? "data: {\"choices\":[{\"delta\":{\"content\":\"1234567890123456"
                                   "78901234567890\"}}]}\n\n"
                                 : "{\"choices\":[{\"message\":{\"content\":\"12345678901234567"
                                   "8901234567890\"}}]}",
                     &e);
        assert_int_equal(r, -ERR_LIMIT);
    }
}

/* More calls at once than any provider makes: an end, not a queue that grows. */
static void test_many_calls(void **state)
{
    struct llm_writer_opts o = { .format = LLM_ANTHROPIC, .stream = true };
    struct llm_writer *w = llm_writer_new(&o);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    int r = 0;
    uint32_t i = 0;
    for (; i < 1000 && r == 0; i++) {
        struct llm_event ev = { .kind = LLM_EV_CALL_BEGIN, .block = i, .name = STR("f") };
        r = llm_writer_event(w, &ev, &out, &e);
    }
    assert_int_equal(r, -ERR_LIMIT);
    assert_in_range(i, 100, 200);
    llm_writer_free(w);
}

/* --- errors --- */

static void test_errors(void **state)
{
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        for (enum llm_error_kind kind = 0; kind < LLM_ERR_MAX; kind++) {
            CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
            struct llm_error error = { .kind = kind, .message = STR("no \"luck\"") };
            struct llm_error again;
            assert_int_equal(llm_error_write(f, &error, &body, NULL), 0);
            llm_error_read(arena, f, llm_error_status(kind), buf_str(&body), &again);
            if (again.kind != kind || str_find(again.message, error.message) == again.message.len) {
                fail_msg("%s: kind %d is read as %d from %s", llm_format_name(f), (int)kind,
                         (int)again.kind, body.ptr);
            }
            assert_int_equal(again.status, llm_error_status(kind));
        }
    }
}

static void test_foreign_errors(void **state)
{
    static const struct {
        enum llm_format format;
        int status;
        const char *body;
        enum llm_error_kind kind;
        const char *message;
    } cases[] = {
        { LLM_ANTHROPIC, 529,
          "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":"
          "\"Overloaded\"},\"request_id\":\"r\"}",
          LLM_ERR_OVERLOADED, "Overloaded" },
        { LLM_ANTHROPIC, 400,
          "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
          "\"prompt is too long: 210000 tokens > 200000 maximum\"}}",
          LLM_ERR_CONTEXT, "prompt is too long" },
        { LLM_ANTHROPIC, 502, "<html>Bad Gateway</html>", LLM_ERR_SERVER, "<html>Bad Gateway" },
        { LLM_ANTHROPIC, 503, "", LLM_ERR_OVERLOADED, "HTTP status 503" },
        { LLM_CHAT, 400,
          "{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens\",\"type\":"
          "\"invalid_request_error\",\"param\":\"messages\",\"code\":\"context_length_exceeded\"}}",
          LLM_ERR_CONTEXT, "maximum context length" },
        { LLM_CHAT, 429, "{\"error\":{\"message\":\"quota\",\"type\":\"insufficient_quota\"}}",
          LLM_ERR_QUOTA, "quota" },
        { LLM_CHAT, 429, "{\"error\":{\"message\":\"slow\",\"code\":\"rate_limit_exceeded\"}}",
          LLM_ERR_RATE, "slow" },
        { LLM_CHAT, 404, "{\"error\":\"model 'x' not found\"}", LLM_ERR_NOT_FOUND, "model 'x'" },
        { LLM_CHAT, 422, "{\"detail\":\"bad field\"}", LLM_ERR_INVALID, "bad field" },
        { LLM_CHAT, 401, "{\"message\":\"who?\"}", LLM_ERR_AUTH, "who?" },
        { LLM_CHAT, 500, "[1,2]", LLM_ERR_SERVER, "[1,2]" },
        { LLM_CHAT, 402, "{}", LLM_ERR_QUOTA, "{}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct llm_error got;
        llm_error_read(arena, cases[i].format, cases[i].status, str_of(cases[i].body), &got);
        if (got.kind != cases[i].kind ||
            !str_starts(str_slice(got.message, str_find(got.message, str_of(cases[i].message)),
                                  got.message.len),
                        str_of(cases[i].message))) {
            fail_msg("%zu: kind %d message %.*s", i, (int)got.kind, STR_ARG(got.message));
        }
        assert_int_equal(got.status, cases[i].status);
    }
}

/* An error in the midst of a stream, in every format; and as the whole answer. */
static void test_late_errors(void **state)
{
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        for (unsigned i = 0; i < 4; i++) {
            CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
            struct llm_writer_opts o = { .format = f, .stream = i % 2 == 0 };
            struct llm_writer *w = llm_writer_new(&o);
            struct llm_event text = { .kind = LLM_EV_TEXT, .text = STR("par") };
            struct llm_event error = {
                .kind = LLM_EV_ERROR,
                .error = { .kind = LLM_ERR_OVERLOADED, .status = 503, .message = STR("full") }
            };
            if (i < 2) {
                assert_int_equal(llm_writer_event(w, &text, &out, NULL), 0);
            }
            assert_int_equal(llm_writer_event(w, &error, &out, NULL), 0);
            size_t len = out.len;
            assert_int_equal(llm_writer_event(w, &text, &out, NULL), 0);
            assert_int_equal(out.len, len);
            llm_writer_free(w);
            const char *got = digest_answer(f, o.stream, buf_str(&out), 5);
            if (strstr(got, "full\nend\n") == NULL || strstr(got, "error 9") == NULL) {
                fail_msg("%s %u: %s from %s", llm_format_name(f), i, got, out.ptr);
            }
        }
    }
}

/* --- ids --- */

static struct str some_call(enum llm_format f, uint64_t seed)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct llm_writer_opts o = { .format = f, .stream = true, .seed = seed };
    struct llm_writer *w = llm_writer_new(&o);
    static const struct llm_event events[] = {
        { .kind = LLM_EV_CALL_BEGIN, .name = { "f", 1 } },
        { .kind = LLM_EV_CALL_END },
        { .kind = LLM_EV_STOP, .stop = LLM_STOP_TOOL },
        { .kind = LLM_EV_END },
    };
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        assert_int_equal(llm_writer_event(w, &events[i], &out, NULL), 0);
    }
    llm_writer_free(w);
    return arena_str(arena, buf_str(&out));
}

static void test_ids(void **state)
{
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        assert_true(str_eq(some_call(f, 7), some_call(f, 7)));
        if (f != LLM_GEMINI) { /* which needs none */
            assert_false(str_eq(some_call(f, 7), some_call(f, 8)));
        }
    }
}

/* --- the tap --- */

static void count_text(void *arg, const struct llm_event *ev)
{
    struct llm_usage *u = arg;
    if (ev->kind == LLM_EV_USAGE) {
        llm_usage_update(u, &ev->usage);
    }
}

/* A body with a text of many megabytes is metered, though nothing of it is held. */
static void test_tap_body(void **state)
{
    struct llm_usage got = LLM_USAGE_NONE;
    struct llm_reader_opts o = { .format = LLM_CHAT, .sink = { count_text, &got } };
    struct llm_tap *t = llm_tap_new(&o);
    CLEANUP(buf) struct buf piece = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < 4096; i++) {
        buf_adds(&piece, "0123456789 \\\" \\u00e9");
    }
    llm_tap_feed(t, STR("{\"id\":\"x\",\"choices\":[{\"index\":0,\"message\":{\"content\":\""));
    for (size_t i = 0; i < 100; i++) {
        llm_tap_feed(t, buf_str(&piece));
    }
    llm_tap_feed(t, STR("\\\\\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7,"));
    llm_tap_feed(t, STR("\"completion_tokens\":9}}"));
    llm_tap_end(t);
    llm_tap_free(t);
    assert_int_equal(got.input, 7);
    assert_int_equal(got.output, 9);
}

/* Whatever comes, it does not fail; what can be read after it is counted. */
static void test_tap_garbage(void **state)
{
    struct llm_usage got = LLM_USAGE_NONE;
    struct llm_reader_opts o = { .format = LLM_CHAT, .stream = true, .sink = { count_text, &got } };
    struct llm_tap *t = llm_tap_new(&o);
    llm_tap_feed(t, STR("event: error\ndata: {broken\n\n\xff\xfe: x\n\ndata: \"usage\": {\n\n"));
    llm_tap_feed(t, STR("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n"));
    llm_tap_end(t);
    llm_tap_feed(t, STR("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4}}\n\n"));
    llm_tap_free(t);
    assert_int_equal(got.input, 3);
}

/* Web searches by the provider, in streams and bodies, each as the format reports them. */
static void test_searches(void **state)
{
    static const struct {
        enum llm_format format;
        const char *body;
        int64_t searches;
    } rows[] = {
        { LLM_ANTHROPIC,
          "{'type':'message','content':[],'usage':{'input_tokens':1,'output_tokens':1,"
          "'server_tool_use':{'web_search_requests':3}}}",
          3 },
        { LLM_CHAT,
          "{'choices':[{'index':0,'message':{'content':'x'},'finish_reason':'stop'}],'usage':{'"
          "prompt_tokens':1,'server_tool_use':{'web_search_requests':2}}}",
          2 },
        { LLM_CHAT,
          "{'choices':[{'index':0,'message':{'content':'x'},'finish_reason':'stop'}],'usage':{'"
          "prompt_tokens':1,'num_search_queries':4}}",
          4 },
        { LLM_RESPONSES,
          "{'object':'response','status':'completed','output':[{'type':'web_search_call'},"
          "{'type':'web_search_call','action':{'type':'open_page'}},"
          "{'type':'web_search_call','action':{'type':'search'}}],'usage':{'input_tokens':1}}",
          2 },
        { LLM_GEMINI,
          "{'candidates':[{'finishReason':'STOP','groundingMetadata':{'webSearchQueries':['a','b']}"
          "}],"
          "'modelVersion':'gemini-3-pro','usageMetadata':{'promptTokenCount':1}}",
          2 },
        { LLM_GEMINI,
          "{'candidates':[{'finishReason':'STOP','groundingMetadata':{'webSearchQueries':['a','b']}"
          "}],"
          "'modelVersion':'gemini-2.5-pro','usageMetadata':{'promptTokenCount':1}}",
          1 },
        { LLM_CHAT,
          "{'choices':[{'index':0,'message':{'content':'x'},'finish_reason':'stop'}],'usage':{'"
          "prompt_tokens':1}}",
          -1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct llm_usage got = LLM_USAGE_NONE;
        struct llm_tap *t = llm_tap_new(
            &(struct llm_reader_opts) { .format = rows[i].format, .sink = { count_text, &got } });
        llm_tap_feed(t, str_of(quoted(rows[i].body)));
        llm_tap_end(t);
        assert_null(llm_tap_free(t));
        assert_int_equal(got.searches, rows[i].searches);
    }
}

static void test_usage(void **state)
{
    struct llm_usage u = LLM_USAGE_NONE;
    assert_int_equal(llm_usage_total(&u), 0);
    llm_usage_update(&u, &(struct llm_usage) { 10, -1, 5, -1, -1 });
    llm_usage_update(&u, &(struct llm_usage) { -1, 7, -1, 2, 3 });
    assert_int_equal(llm_usage_total(&u), 24);
    assert_int_equal(u.reasoning, 3);
    u.input = INT64_MAX;
    assert_true(llm_usage_total(&u) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cut, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_limits, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_many_calls, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_errors, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_foreign_errors, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_late_errors, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_ids, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_tap_body, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_tap_garbage, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_searches, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_usage, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
