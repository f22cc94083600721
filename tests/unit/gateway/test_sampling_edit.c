/* SPDX-License-Identifier: MIT
 *
 * Sampling parameters set in a body: what is written and where, what a provider would refuse, and
 * that every other byte stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/macro.h"
#include "gateway/sampling_edit.h"

static const struct str stops[] = { STR("END"), STR("S\"T") };
static const struct llm_sampling all = { .has_temperature = true,
                                         .temperature = 0.5,
                                         .has_top_p = true,
                                         .top_p = 0.9,
                                         .has_presence = true,
                                         .presence_penalty = 0.25,
                                         .has_frequency = true,
                                         .frequency_penalty = -0.5,
                                         .has_seed = true,
                                         .seed = 11,
                                         .max_tokens = 77,
                                         .stops = stops,
                                         .n_stops = 2 };

struct row {
    enum llm_format format;
    const char *model, *body, *want; /* want NULL: nothing is set; "": refused */
    const char *unsent;
};

static const char *list_of(struct arena *a, const char *const *words)
{
    const char *text = "";
    for (; *words != NULL; words++) {
        text = arena_printf(a, "%s%s ", text, *words);
    }
    return text;
}

static void check_row(const struct row *row, const struct llm_sampling *wish)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const struct sampling_target t = { .body = str_of(row->body),
                                       .format = row->format,
                                       .model = str_of(row->model) };
    struct sampling_report report;
    struct err e;
    int rc = sampling_edit(a, &t, wish, &out, &report, &e);
    if (row->want != NULL && row->want[0] == '\0') {
        assert_true(rc < 0);
        assert_int_equal(e.code, ERR_PARSE);
        return;
    }
    assert_int_equal(rc, 0);
    assert_string_equal(out.len == 0 ? "" : out.ptr, row->want == NULL ? "" : row->want);
    assert_string_equal(list_of(a, report.unsent), row->unsent);
}

static void test_all_of_it(void **state)
{
    static const struct row rows[] = {
        { LLM_CHAT, "qwen3", "{}",
          "{\"temperature\":0.5,\"max_tokens\":77,\"top_p\":0.9,\"stop\":[\"END\",\"S\\\"T\"],"
          "\"seed\":11,\"presence_penalty\":0.25,\"frequency_penalty\":-0.5}",
          "" },
        { LLM_CHAT, "gpt-5", " { \"max_completion_tokens\" : 1 , \"stop\":\"END\" } ",
          " {\"seed\":11, \"max_completion_tokens\" : 77 , \"stop\":\"END\" } ",
          "temperature top_p stop presence_penalty frequency_penalty " },
        { LLM_CHAT, "gpt-5.2",
          "{\"reasoning_effort\":\"none\",\"stop\":null,\"seed\":1,\"top_p\":1,"
          "\"presence_penalty\":0,\"frequency_penalty\":0,\"temperature\":1}",
          "{\"max_completion_tokens\":77,\"reasoning_effort\":\"none\",\"stop\":[\"END\","
          "\"S\\\"T\"],"
          "\"seed\":11,\"top_p\":0.9,\"presence_penalty\":0.25,\"frequency_penalty\":-0.5,"
          "\"temperature\":0.5}",
          "" },
        { LLM_GEMINI, "gemini-3-pro", "{\"contents\":[]}",
          "{\"generationConfig\":{\"temperature\":0.5,\"maxOutputTokens\":77,\"topP\":0.9,"
          "\"stopSequences\":[\"END\",\"S\\\"T\"],\"seed\":11,\"presencePenalty\":0.25,"
          "\"frequencyPenalty\":-0.5},\"contents\":[]}",
          "" },
        { LLM_GEMINI, "gemini-3-pro", "{\"generationConfig\":null}",
          "{\"generationConfig\":{\"temperature\":0.5,\"maxOutputTokens\":77,\"topP\":0.9,"
          "\"stopSequences\":[\"END\",\"S\\\"T\"],\"seed\":11,\"presencePenalty\":0.25,"
          "\"frequencyPenalty\":-0.5}}",
          "" },
        { LLM_RESPONSES, "gpt-4.1", "{\"input\":\"x\"}",
          "{\"temperature\":0.5,\"max_output_tokens\":77,\"top_p\":0.9,\"input\":\"x\"}",
          "stop seed presence_penalty frequency_penalty " },
        { LLM_RESPONSES, "gpt-5.5", "{\"max_output_tokens\":5,\"temperature\":1}",
          "{\"max_output_tokens\":77,\"temperature\":1}",
          "temperature top_p stop seed presence_penalty frequency_penalty " },
        { LLM_CHAT, "m", "{\"temperature\":1,\"temperature\":2}", "", "" },
        { LLM_CHAT, "m", "[1]", "", "" },
        { LLM_CHAT, "m", "{\"a\":", "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(&rows[i], &all);
    }
}

static void test_members_of_gemini_are_replaced_in_place(void **state)
{
    static const struct row row = {
        LLM_GEMINI, "gemini-3-pro",
        "{\"generation_config\": {\"top_p\": 1, \"seed\":0,\"stop_sequences\":[\"A\", \"END\"],"
        "\"temperature\":2, \"max_output_tokens\":9,\"presence_penalty\":1,\"frequencyPenalty\":1},"
        "\"temperature\":3}",
        "{\"generation_config\": {\"top_p\": 0.9, \"seed\":11,\"stop_sequences\":[\"A\",\"END\","
        "\"S\\\"T\"],\"temperature\":0.5, \"max_output_tokens\":77,\"presence_penalty\":0.25,"
        "\"frequencyPenalty\":-0.5},\"temperature\":3}",
        ""
    };
    check_row(&row, &all);
}

static void test_what_anthropic_takes(void **state)
{
    static const struct llm_sampling wish = { .has_temperature = true,
                                              .temperature = 0.5,
                                              .max_tokens = 100 };
    static const struct row rows[] = {
        { LLM_ANTHROPIC, "claude-sonnet-4-5", "{\"max_tokens\":1}",
          "{\"temperature\":0.5,\"max_tokens\":100}", "" },
        { LLM_ANTHROPIC, "claude-sonnet-4-5",
          "{\"thinking\":{\"type\":\"adaptive\"},\"max_tokens\":1}",
          "{\"thinking\":{\"type\":\"adaptive\"},\"max_tokens\":100}", "temperature " },
        { LLM_ANTHROPIC, "claude-sonnet-4-5",
          "{\"thinking\":{\"type\":\"disabled\"},\"max_tokens\":1}",
          "{\"temperature\":0.5,\"thinking\":{\"type\":\"disabled\"},\"max_tokens\":100}", "" },
        { LLM_ANTHROPIC, "claude-sonnet-4-5",
          "{\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":100},\"max_tokens\":1}", NULL,
          "temperature max_tokens " },
        { LLM_ANTHROPIC, "claude-sonnet-4-5", "{\"top_p\":0.9,\"max_tokens\":1}",
          "{\"top_p\":0.9,\"max_tokens\":100}", "temperature " },
        { LLM_ANTHROPIC, "claude-opus-5", "{\"temperature\":1,\"max_tokens\":1}",
          "{\"temperature\":1,\"max_tokens\":100}", "temperature " },
        { LLM_ANTHROPIC, "deepseek-v4", "{\"top_p\":0.9}",
          "{\"temperature\":0.5,\"max_tokens\":100,\"top_p\":0.9}", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(&rows[i], &wish);
    }
}

static void test_versions_and_services(void **state)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const struct llm_sampling wish = { .has_temperature = true, .temperature = 1 };
    struct sampling_target t = { .body = STR("{}"),
                                 .format = LLM_ANTHROPIC,
                                 .model = STR("claude-opus-5"),
                                 .version = STR("2026-10-21") };
    struct sampling_report report;
    assert_int_equal(sampling_edit(a, &t, &wish, &out, &report, NULL), 0);
    assert_int_equal(report.n_unsent, 1);
    t.version = STR("2023-06-01");
    assert_int_equal(sampling_edit(a, &t, &wish, &out, &report, NULL), 0);
    assert_string_equal(out.ptr, "{\"temperature\":1.0}");
    t.refused = sampling_refusal("chatgpt.com");
    assert_non_null(t.refused);
    assert_null(sampling_refusal("api.openai.com"));
    assert_int_equal(sampling_edit(a, &t, &wish, &out, &report, NULL), 0);
    assert_string_equal(report.why[0], t.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_of_it),
        cmocka_unit_test(test_members_of_gemini_are_replaced_in_place),
        cmocka_unit_test(test_what_anthropic_takes),
        cmocka_unit_test(test_versions_and_services),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
