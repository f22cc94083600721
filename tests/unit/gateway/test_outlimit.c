/* SPDX-License-Identifier: MIT
 *
 * Lowering a limit changes the limit and nothing else.
 */
#include "gateway/outlimit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void the_limit_is_changed_in_place(void **state)
{
    static const struct {
        enum llm_format format;
        const char *model, *before, *after;
    } table[] = {
        { LLM_ANTHROPIC, "m",
          "{\"a\" : [1, {\"max_tokens\":5}], \"max_tokens\" : 32000 ,\"b\":\"é\\n\"}\n",
          "{\"a\" : [1, {\"max_tokens\":5}], \"max_tokens\" : 900 ,\"b\":\"é\\n\"}\n" },
        { LLM_ANTHROPIC, "m", "{\"s\":\"}\\\"max_tokens\\\":1\",\"max_tokens\":2}",
          "{\"s\":\"}\\\"max_tokens\\\":1\",\"max_tokens\":900}" },
        { LLM_RESPONSES, "m", "{\"model\":\"x\"}", "{\"max_output_tokens\":900,\"model\":\"x\"}" },
        { LLM_RESPONSES, "m", " {\"max_output_tokens\":null}", " {\"max_output_tokens\":900}" },
        { LLM_CHAT, "m", "{\"max_tokens\":1e5}", "{\"max_tokens\":900}" },
        { LLM_CHAT, "m", "{\"max_completion_tokens\":7}", "{\"max_completion_tokens\":900}" },
        { LLM_CHAT, "llama", "{}", "{\"max_tokens\":900}" },
        { LLM_CHAT, "gpt-5-mini", "{ }", "{\"max_completion_tokens\":900 }" },
        { LLM_GEMINI, "m", "{\"generationConfig\":{\"topP\":1,\"maxOutputTokens\":8}}",
          "{\"generationConfig\":{\"topP\":1,\"maxOutputTokens\":900}}" },
        { LLM_GEMINI, "m", "{\"generationConfig\":{}}",
          "{\"generationConfig\":{\"maxOutputTokens\":900}}" },
        { LLM_GEMINI, "m", "{\"generationConfig\":null,\"x\":1}",
          "{\"generationConfig\":{\"maxOutputTokens\":900},\"x\":1}" },
        { LLM_GEMINI, "m", "{\"contents\":[]}",
          "{\"generationConfig\":{\"maxOutputTokens\":900},\"contents\":[]}" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        CLEANUP(buf) struct buf out = BUF_INIT(4096);
        struct err e = { 0 };
        assert_int_equal(outlimit_write(table[i].format, str_of(table[i].model),
                                        str_of(table[i].before), 900, &out, &e),
                         0);
        assert_string_equal(out.ptr, table[i].after);
    }
}

static void what_could_hide_a_limit_is_refused(void **state)
{
    static const char *const table[] = {
        "",
        "[]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":\"",
        "{\"max_tokens\":1,\"max_tokens\":2}",
        "{\"max\\u005ftokens\":1}",
        "{\"a\":\"\\",
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        CLEANUP(buf) struct buf out = BUF_INIT(4096);
        struct err e = { 0 };
        assert_int_equal(outlimit_write(LLM_ANTHROPIC, STR("m"), str_of(table[i]), 9, &out, &e),
                         -ERR_PARSE);
        assert_int_equal(out.len, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_changed_in_place),
        cmocka_unit_test(what_could_hide_a_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
