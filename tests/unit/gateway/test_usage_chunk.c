/* SPDX-License-Identifier: MIT
 *
 * The usage chunk of a stream is removed, and nothing else, however the bytes come in pieces.
 */
#include "gateway/usage_chunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"

static void remove_in_pieces(struct str text, size_t piece, struct buf *out)
{
    struct usage_chunk *u = usage_chunk_new();
    for (size_t at = 0; at < text.len; at += piece) {
        usage_chunk_feed(u, str_slice(text, at, at + piece), out);
    }
    usage_chunk_end(u, out);
    u = usage_chunk_free(u);
}

#define WORDS "data: {\"choices\":[{\"delta\":{\"content\":\"the usage\"}}],\"usage\":null}"
#define USAGE "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}"
#define DONE  "data: [DONE]"

static void only_the_usage_chunk_is_removed(void **state)
{
    static const struct {
        const char *text, *want;
    } table[] = {
        { "", "" },
        { WORDS "\n\n" USAGE "\n\n" DONE "\n\n", WORDS "\n\n" DONE "\n\n" },
        { WORDS "\r\n\r\n" USAGE "\r\n\r\n" DONE "\r\n\r\n", WORDS "\r\n\r\n" DONE "\r\n\r\n" },
        { WORDS "\r\r" USAGE "\r\r" DONE "\r\r", WORDS "\r\r" DONE "\r\r" },
        { WORDS "\n\n" USAGE, WORDS "\n\n" },
        { WORDS "\n\n" USAGE "\n", WORDS "\n\n" },
        { ": ping\n\n\n" USAGE "\n\n" DONE, ": ping\n\n\n" DONE },
        { "data: {\"choices\":[],\ndata: \"usage\":{}}\n\n", "" },
        /* the first chunk of Azure, chunks with both, and what is not JSON */
        { "data: {\"choices\":[],\"prompt_filter_results\":[],\"usage\":null}\n\n",
          "data: {\"choices\":[],\"prompt_filter_results\":[],\"usage\":null}\n\n" },
        { "data: {\"choices\":[{}],\"usage\":{}}\n\n",
          "data: {\"choices\":[{}],\"usage\":{}}\n\n" },
        { "data: {\"usage\":{}}\n\n", "data: {\"usage\":{}}\n\n" },
        { "data: usage\n\ndata: {\"usage\n\n", "data: usage\n\ndata: {\"usage\n\n" },
        { "data: [\"usage\"]\n\n", "data: [\"usage\"]\n\n" },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        for (size_t piece = 1; piece < 150; piece += piece < 10 ? 1 : 13) {
            CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
            remove_in_pieces(str_of(table[i].text), piece, &out);
            buf_adds(&out, "");
            assert_string_equal(out.ptr, table[i].want);
        }
    }
}

static void large_events_pass(void **state)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf want = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "data: {\"choices\":[],\"usage\":{\"x\":\"");
    for (int i = 0; i < USAGE_CHUNK_MAX; i++) {
        buf_adds(&text, "y");
    }
    buf_adds(&text, "\"}}\n\n");
    buf_add(&want, buf_str(&text));
    buf_adds(&text, USAGE "\n\n" DONE "\n\n");
    buf_adds(&want, DONE "\n\n");
    for (size_t piece = 1; piece < 40000; piece = piece * 7 + 1) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        remove_in_pieces(buf_str(&text), piece, &out);
        assert_true(str_eq(buf_str(&out), buf_str(&want)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_usage_chunk_is_removed),
        cmocka_unit_test(large_events_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
