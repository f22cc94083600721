/* SPDX-License-Identifier: MIT
 *
 * Usage at the end of responses that no codec reads, however they come in pieces.
 */
#include "gateway/usage_tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool read_in_pieces(const char *text, size_t piece, struct llm_usage *ret)
{
    struct usage_tail t = { 0 };
    struct str rest = str_of(text);
    for (size_t at = 0; at < rest.len; at += piece) {
        usage_tail_add(&t, str_slice(rest, at, at + piece));
    }
    return usage_tail_read(&t, ret);
}

static void usage_is_found_at_the_end(void **state)
{
    static const struct {
        const char *text;
        int64_t input, output; /* -1: there is none */
    } table[] = {
        { "{\"data\":[{\"embedding\":[0.1]}],\"usage\":{\"prompt_tokens\":7,\"total_tokens\":7}}",
          7, 0 },
        { "{\"choices\":[],\"usage\" : {\"prompt_tokens\":3,\"completion_tokens\":9}}", 3, 9 },
        { "data: {\"usage\":{\"prompt_tokens\":1}}\n\ndata: {\"usage\":{\"prompt_tokens\":4,"
          "\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
          4, 2 },
        { "{\"embedding\":{},\"usageMetadata\":{\"promptTokenCount\":5}}", 5, 0 },
        { "{\"usage\":null}", -1, -1 },
        { "{\"usage\":{\"prompt_tokens\":-4}}", -1, -1 },
        { "{\"usage\":{\"prompt_tokens\":4", -1, -1 },
        { "{\"data\":[]}", -1, -1 },
        { "", -1, -1 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (size_t piece = 1; piece < 100; piece += 7) {
            struct llm_usage u = LLM_USAGE_NONE;
            assert_int_equal(read_in_pieces(table[i].text, piece, &u), table[i].input >= 0);
            assert_int_equal(u.input, table[i].input);
            assert_int_equal(u.output, table[i].output);
        }
    }
}

static void only_the_end_of_a_long_response_is_kept(void **state)
{
    struct usage_tail t = { 0 };
    struct llm_usage u;
    char vector[1000];
    memset(vector, '1', sizeof vector);
    for (int i = 0; i < 100; i++) {
        usage_tail_add(&t, str_n(vector, sizeof vector));
        assert_true(t.len <= USAGE_TAIL);
    }
    usage_tail_add(&t, STR("],\"usage\":{\"prompt_tokens\":12}}"));
    assert_true(usage_tail_read(&t, &u));
    assert_int_equal(u.input, 12);
    char *large = calloc(1, 3 * USAGE_TAIL);
    usage_tail_add(&t, str_n(large, 3 * USAGE_TAIL));
    free(large);
    assert_int_equal(t.len, USAGE_TAIL);
    assert_false(usage_tail_read(&t, &u));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_is_found_at_the_end),
        cmocka_unit_test(only_the_end_of_a_long_response_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
