/* SPDX-License-Identifier: MIT
 *
 * Driver api: what it asks, what it makes of answers, and its loop of calls, without any network.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapters/driver.h"
#include "base/json.h"

struct fixture {
    struct arena *arena;
    struct buf entries, out, err;
    struct launch_spec spec;
    void *session;
    struct agent_report report;
};

static void on_entry(void *owner, const char *type, const struct json *detail, struct str raw)
{
    struct fixture *f = owner;
    buf_addf(&f->entries, "%s ", type);
    assert_int_equal(json_write(detail, JSON_COMPACT, &f->entries, NULL), 0);
    buf_adds(&f->entries, "\n");
}

static void on_output(void *owner, enum agent_stream stream, struct str bytes)
{
    struct fixture *f = owner;
    buf_add(stream == AGENT_STDOUT ? &f->out : &f->err, bytes);
}

static const struct placeholder vars[] = {
    { .name = "model", .value = { "claude-x", 8 } },
    { .name = "system_prompt", .value = { "Think first.", 12 } },
    { .name = "temperature", .value = { "0.5", 3 } },
    { .name = "max_tokens", .value = { NULL, 0 } },
};

static const struct llm_tool tools[] = {
    { .kind = LLM_TOOL_FUNCTION, .name = { "add", 3 }, .description = { "Adds", 4 } },
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture) { .arena = arena_new() };
    buf_init(&f.entries, BUF_TEXT);
    buf_init(&f.out, BUF_TEXT);
    buf_init(&f.err, BUF_TEXT);
    struct json *schema = json_object(f.arena);
    json_setc(f.arena, schema, "type", json_cstr(f.arena, "object"));
    f.spec = (struct launch_spec) {
        .output_schema = schema,
        .prompt = STR("Say hello"),
        .vars = { vars, ARRAY_LEN(vars) },
        .tools = { tools, ARRAY_LEN(tools) },
        .output = { on_output, &f },
    };
    f.session = driver_api.open(&f.spec, (struct entry_sink) { on_entry, &f });
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    driver_api.close(f->session);
    buf_done(&f->entries);
    buf_done(&f->out);
    buf_done(&f->err);
    arena_free(f->arena);
    return 0;
}

static struct json *ask(struct fixture *f)
{
    struct driver_request q;
    struct err e = { 0 };
    struct json *v = NULL;
    assert_int_equal(driver_api.model->next(f->session, &q, &e), DRIVER_REQUEST);
    assert_true(str_eqc(q.target, "/v1/messages"));
    assert_int_equal(json_parse(f->arena, q.body, NULL, &v, &e), 0);
    return v;
}

/* Piece by piece, since that is how it comes. */
static void answer(struct fixture *f, int status, const char *body)
{
    for (size_t i = 0; i < strlen(body); i += 5) {
        driver_api.model->response(f->session, status, str_slice(str_of(body), i, i + 5));
    }
    driver_api.model->response_end(f->session, status, NULL);
}

static void assert_over(struct fixture *f)
{
    struct driver_request q;
    assert_int_equal(driver_api.model->next(f->session, &q, NULL), DRIVER_DONE);
    driver_api.end(f->session, &f->report);
}

static void assert_text(const struct json *v, const char *pointer, const char *expected)
{
    struct str text = json_str(json_pointer(v, str_of(pointer)), STR("absent"));
    if (!str_eqc(text, expected)) {
        fail_msg("%s is %.*s, not %s", pointer, STR_ARG(text), expected);
    }
}

#define EV(name, rest) "event: " name "\ndata: {\"type\":\"" name "\"" rest "}\n\n"
#define START                                                           \
    EV("message_start",                                                 \
       ",\"message\":{\"id\":\"m\",\"model\":\"claude-x-1\",\"usage\":" \
       "{\"input_tokens\":10,\"output_tokens\":1,\"cache_read_input_tokens\":5}}")
#define TEXT(i, text)                                                                \
    EV("content_block_start",                                                        \
       ",\"index\":" i ",\"content_block\":{\"type\":\"text\",\"text\":\"\"}")       \
    EV("content_block_delta",                                                        \
       ",\"index\":" i ",\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}") \
    EV("content_block_stop", ",\"index\":" i)
#define CALL(i, id, name, json)                                                                    \
    EV("content_block_start",                                                                      \
       ",\"index\":" i ",\"content_block\":{\"type\":\"tool_use\",\"id\":\"" id                    \
       "\",\"name\":\"" name "\",\"input\":{}}")                                                   \
    EV("content_block_delta",                                                                      \
       ",\"index\":" i ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"}") \
    EV("content_block_stop", ",\"index\":" i)
#define STOP(why)                                                                  \
    EV("message_delta",                                                            \
       ",\"delta\":{\"stop_reason\":\"" why "\"},\"usage\":{\"output_tokens\":7}") \
    EV("message_stop", "")

static void test_text(void **state)
{
    struct fixture *f = *state;
    struct json *v = ask(f);
    assert_text(v, "/model", "claude-x");
    assert_int_equal(json_int(json_get(v, "max_tokens"), 0), 4096);
    assert_true(json_real(json_get(v, "temperature"), 0) == 0.5);
    assert_true(json_bool(json_get(v, "stream"), false));
    answer(f, 200, START TEXT("0", "Hello") STOP("end_turn"));
    assert_over(f);
    assert_true(str_eqc(f->report.text, "Hello"));
    assert_true(str_eqc(f->report.model, "claude-x-1"));
    assert_true(f->report.result_seen && !f->report.failed);
    assert_string_equal(f->out.ptr, "Hello\n");
    assert_int_equal(f->report.usage.input, 10);
    assert_int_equal(f->report.usage.cache_read, 5);
    assert_int_equal(f->report.usage.output, 7);
    assert_int_equal(f->report.usage.api_calls, 1);
    assert_int_equal(f->report.usage.turns, 1);
}

/* The tier's prompt is the system prompt; the contract goes along as such. */
static void test_head(void **state)
{
    struct fixture *f = *state;
    struct json *v = ask(f);
    CLEANUP(buf) struct buf system = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(json_get(v, "system"), JSON_COMPACT, &system, NULL), 0);
    assert_non_null(strstr(system.ptr, "Think first."));
    CLEANUP(buf) struct buf all = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(v, JSON_COMPACT, &all, NULL), 0);
    assert_non_null(strstr(all.ptr, "json_schema"));
    assert_text(v, "/tools/0/name", "add");
}

static void test_loop_of_calls(void **state)
{
    struct fixture *f = *state;
    struct driver_request q;
    (void)ask(f);
    answer(f, 200,
           START TEXT("0", "I add.") CALL("1", "t1", "add", "{\\\"a\\\":1}")
               CALL("2", "t2", "unknown", "{}") CALL("3", "t3", "add", "") STOP("tool_use"));
    assert_int_equal(driver_api.model->next(f->session, &q, NULL), DRIVER_TOOL_CALL);
    assert_true(str_eqc(q.call->name, "add"));
    assert_int_equal(json_int(json_get(q.call->input, "a"), 0), 1);
    driver_api.model->tool_result(f->session, STR("2"), false);
    /* What nobody offered is the run's, too: it tells the record. */
    assert_int_equal(driver_api.model->next(f->session, &q, NULL), DRIVER_TOOL_CALL);
    assert_true(str_eqc(q.call->id, "t2"));
    driver_api.model->tool_result(f->session, STR("no such tool"), true);
    assert_int_equal(driver_api.model->next(f->session, &q, NULL), DRIVER_TOOL_CALL);
    assert_true(str_eqc(q.call->id, "t3"));
    driver_api.model->tool_result(f->session, STR("bad"), true);
    struct json *v = ask(f);
    assert_text(v, "/messages/1/content/1/name", "add");
    assert_text(v, "/messages/2/content/0/tool_use_id", "t1");
    assert_text(v, "/messages/2/content/1/tool_use_id", "t2");
    assert_true(json_bool(json_pointer(v, STR("/messages/2/content/1/is_error")), false));
    assert_text(v, "/messages/2/content/2/tool_use_id", "t3");
    answer(f, 200, START TEXT("0", "3") STOP("end_turn"));
    assert_over(f);
    assert_true(str_eqc(f->report.text, "3"));
    assert_int_equal(f->report.usage.api_calls, 2);
    assert_int_equal(f->report.usage.output, 14);
    assert_string_equal(
        f->entries.ptr,
        "assistant_message {\"text\":\"I add.\"}\n"
        "tool_use {\"tool_name\":\"add\",\"tool_call_id\":\"t1\",\"input\":{\"a\":1}}\n"
        "tool_use {\"tool_name\":\"unknown\",\"tool_call_id\":\"t2\",\"input\":{}}\n"
        "tool_use {\"tool_name\":\"add\",\"tool_call_id\":\"t3\",\"input\":{}}\n"
        "tool_result {\"tool_name\":\"add\",\"tool_call_id\":\"t1\",\"output\":\"2\"}\n"
        "tool_result {\"tool_name\":\"unknown\",\"tool_call_id\":\"t2\",\"error\":\"no such "
        "tool\"}\n"
        "tool_result {\"tool_name\":\"add\",\"tool_call_id\":\"t3\",\"error\":\"bad\"}\n");
}

static void test_failures(void **state)
{
    static const struct {
        int status;
        const char *body, *cut, *error;
    } cases[] = {
        { 429,
          "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow "
          "down\"}}",
          NULL, "HTTP status 429: slow down" },
        { 502, "<html>", NULL, "HTTP status 502: <html>" },
        { 200, START TEXT("0", "Hel"), NULL, "the response was cut short" },
        { 200, START, "connection lost", "connection lost" },
        { 200, START EV("error", ",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}"),
          NULL, "the model's answer failed: busy" },
        { 200, START TEXT("0", "Hel") STOP("max_tokens"), NULL,
          "the answer was cut at 4096 tokens: raise sampling.max_tokens" },
        { 200, START STOP("refusal"), NULL, "the model refused to answer" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture *f = *state;
        (void)ask(f);
        if (cases[i].cut == NULL) {
            answer(f, cases[i].status, cases[i].body);
        } else {
            driver_api.model->response(f->session, cases[i].status, str_of(cases[i].body));
            driver_api.model->response_end(f->session, cases[i].status, cases[i].cut);
        }
        assert_over(f);
        assert_true(f->report.failed && !f->report.result_seen);
        assert_int_equal(strncmp(f->err.ptr, cases[i].error, strlen(cases[i].error)), 0);
        teardown(state);
        setup(state);
    }
}

/* A model that calls for ever comes to an end. */
static void test_endless_calls(void **state)
{
    struct fixture *f = *state;
    struct driver_request q;
    int turns = 0;
    int step;
    while ((step = driver_api.model->next(f->session, &q, NULL)) != DRIVER_DONE && turns < 1000) {
        if (step == DRIVER_TOOL_CALL) {
            driver_api.model->tool_result(f->session, STR("no such tool"), true);
            continue;
        }
        answer(f, 200, START CALL("0", "t", "unknown", "{}") STOP("tool_use"));
        turns++;
    }
    assert_int_equal(turns, 200);
    driver_api.end(f->session, &f->report);
    assert_true(f->report.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(test_text), T(test_head), T(test_loop_of_calls), T(test_failures), T(test_endless_calls),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
