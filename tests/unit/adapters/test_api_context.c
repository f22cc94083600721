/* SPDX-License-Identifier: MIT
 *
 * Keeping a conversation within the context window: what is shortened first, and what never.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/api_context.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/macro.h"

enum { TURNS = 10, RESULT = 5000, ARGUMENT = 1000 };

static struct arena *arena;
static struct llm_message messages[1 + 2 * TURNS];

static struct str long_text(size_t n, char c)
{
    char *text = arena_array(arena, n, 1);
    memset(text, c, n);
    return str_n(text, n);
}

static struct llm_part *text_part(struct str text)
{
    struct llm_part *p = ARENA_NEW(arena, struct llm_part);
    *p = (struct llm_part) { .kind = LLM_PART_TEXT, .text = text };
    return p;
}

/* A prompt, then ten times: words and a call with a long argument, its long result. */
static int setup(void **state)
{
    arena = arena_new();
    messages[0] =
        (struct llm_message) { LLM_USER, .parts = text_part(long_text(9000, 'p')), .n_parts = 1 };
    for (size_t i = 0; i < TURNS; i++) {
        struct str id = str_of(arena_printf(arena, "call-%zu", i));
        struct llm_part *said = arena_array(arena, 2, sizeof *said);
        struct json *input = json_object(arena);
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        json_setc(arena, input, "path", json_cstr(arena, "a/b.c"));
        json_setc(arena, input, "content", json_string(arena, long_text(ARGUMENT, 'c')));
        assert_int_equal(json_write(input, JSON_COMPACT, &text, NULL), 0);
        said[0] = *text_part(long_text(2000, 'w'));
        said[1] = (struct llm_part) { .kind = LLM_PART_CALL,
                                      .call = { .id = id,
                                                .name = STR("write"),
                                                .input = input,
                                                .text = arena_str(arena, buf_str(&text)) } };
        struct llm_part *result = ARENA_NEW(arena, struct llm_part);
        *result = (struct llm_part) { .kind = LLM_PART_RESULT,
                                      .result = { .call_id = id,
                                                  .is_error = i == 0,
                                                  .parts = text_part(long_text(RESULT, 'r')),
                                                  .n_parts = 1 } };
        messages[1 + 2 * i] = (struct llm_message) { LLM_ASSISTANT, .parts = said, .n_parts = 2 };
        messages[2 + 2 * i] = (struct llm_message) { LLM_USER, .parts = result, .n_parts = 1 };
    }
    return 0;
}

static int teardown(void **state)
{
    arena_free(arena);
    return 0;
}

static size_t result_len(size_t turn)
{
    return messages[2 + 2 * turn].parts[0].result.parts[0].text.len;
}

static size_t argument_len(size_t turn)
{
    return json_len(json_get(messages[1 + 2 * turn].parts[1].call.input, "content"));
}

static size_t total(void)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        for (size_t k = 0; k < messages[i].n_parts; k++) {
            const struct llm_part *p = &messages[i].parts[k];
            n += p->text.len + p->call.text.len +
                 (p->kind == LLM_PART_RESULT ? p->result.parts[0].text.len : 0);
        }
    }
    return n;
}

/* Whatever is shortened: roles, ids, words and the prompt are as they were. */
static void assert_whole(void)
{
    assert_int_equal(messages[0].parts[0].text.len, 9000);
    for (size_t i = 0; i < TURNS; i++) {
        const struct llm_part *said = messages[1 + 2 * i].parts;
        const struct llm_result *r = &messages[2 + 2 * i].parts[0].result;
        assert_int_equal(messages[1 + 2 * i].n_parts, 2);
        assert_int_equal(said[0].text.len, 2000);
        assert_true(str_eq(said[1].call.id, r->call_id));
        assert_int_equal(r->is_error, i == 0);
        assert_string_equal(json_cstring(json_get(said[1].call.input, "path"), ""), "a/b.c");
        struct json *v = NULL;
        assert_int_equal(json_parse(arena, said[1].call.text, NULL, &v, NULL), 0);
        assert_true(json_equal(v, said[1].call.input));
    }
}

static void test_old_results_first(void **state)
{
    size_t before = total();
    struct context_trim t = { .bytes = before, .target = before - 2 * RESULT };
    assert_true(context_shorten(arena, messages, ARRAY_LEN(messages), &t));
    assert_int_equal(t.results, 3);
    assert_int_equal(t.calls, 0);
    assert_int_equal(t.bytes, total());
    assert_true(t.bytes <= t.target);
    assert_true(result_len(0) < 500 && result_len(2) < 500);
    assert_int_equal(result_len(3), RESULT);
    assert_whole();
    const struct llm_part *text = messages[2].parts[0].result.parts;
    assert_true(str_find(text->text, STR("bytes of this result were removed")) < text->text.len);
}

static void test_then_arguments_then_all(void **state)
{
    struct context_trim t = { .bytes = total(), .target = total() - 4 * RESULT };
    assert_true(context_shorten(arena, messages, ARRAY_LEN(messages), &t));
    assert_true(t.calls > 0 && argument_len(0) < 500);
    assert_int_equal(argument_len(TURNS - 1), ARGUMENT);
    assert_int_equal(result_len(TURNS - 1), RESULT);
    assert_whole();

    t = (struct context_trim) { .bytes = total(), .target = 1 };
    assert_true(context_shorten(arena, messages, ARRAY_LEN(messages), &t));
    assert_true(result_len(TURNS - 2) < 500);
    assert_true(result_len(TURNS - 1) < RESULT && result_len(TURNS - 1) > 4000);
    assert_whole();

    size_t least = total(); /* what was shortened is left alone */
    t = (struct context_trim) { .bytes = least, .target = 1 };
    assert_false(context_shorten(arena, messages, ARRAY_LEN(messages), &t));
    assert_int_equal(total(), least);
}

static void test_characters_are_not_cut(void **state)
{
    char text[3000];
    for (size_t i = 0; i < sizeof text; i += 3) {
        memcpy(text + i, "\xE2\x82\xAC", 3);
    }
    for (size_t shift = 0; shift < 3; shift++) {
        (void)teardown(NULL);
        (void)setup(NULL);
        struct llm_part *p = text_part(
            str_n(arena_printf(arena, "%.*s%.*s", (int)shift, "ab", 3000, text), 3000 + shift));
        struct llm_part *result = ARENA_NEW(arena, struct llm_part);
        *result = messages[2].parts[0];
        result->result.parts = p;
        messages[2].parts = result;
        struct context_trim t = { .bytes = total(), .target = total() - 1000 };
        assert_true(context_shorten(arena, messages, ARRAY_LEN(messages), &t));
        assert_true(str_is_utf8(messages[2].parts[0].result.parts[0].text));
    }
}

static void test_overflow(void **state)
{
    assert_true(
        context_is_overflow(400, STR("prompt is too long: 210000 tokens > 200000 maximum")));
    assert_true(
        context_is_overflow(400, STR("This model's maximum Context Length is 8192 tokens")));
    assert_true(context_is_overflow(413, STR("the input token count exceeds 1048576")));
    assert_false(context_is_overflow(400, STR("max_tokens: must be positive")));
    assert_false(context_is_overflow(429, STR("context length")));
    assert_false(context_is_overflow(400, STR_EMPTY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_old_results_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_then_arguments_then_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_characters_are_not_cut, setup, teardown),
        cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
