/* SPDX-License-Identifier: MIT
 *
 * Side requests are told from the conversation, in all formats and wherever a format puts the words
 * that tell; and a large conversation is not read for that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/macro.h"
#include "gateway/auxiliary.h"
#include "gateway/scan.h"
#include "llm/codec.h"

static const char *kind_of(const char *target, struct str body)
{
    struct llm_endpoint where = llm_endpoint_of(STR("POST"), str_of(target));
    struct auxiliary side;
    struct scan s;
    auxiliary_init(&side);
    assert_true(scan_request(body, &s));
    return auxiliary_kind(&side, &where, body, &s);
}

static void expect(const char *target, const char *body, const char *want)
{
    const char *kind = kind_of(target, str_of(body));
    if (want == NULL) {
        assert_null(kind);
    } else {
        assert_non_null(kind);
        assert_string_equal(kind, want);
    }
}

static void shapes_of_harnesses_are_known(void **state)
{
    expect("/v1/messages",
           "{\"model\":\"m\",\"max_tokens\":9,\"system\":\"You are a Title Generator.\","
           "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}",
           "title");
    expect(
        "/v1/messages",
        "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
        "\"tools\":[],\"system\":[{\"type\":\"text\",\"text\":\"Say whether this message "
        "indicates a new conversation topic.\"}]}",
        "topic");
    expect("/v1/messages",
           "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":\"user\","
           "\"content\":\"quota\"}]}",
           "quota");
    expect(
        "/v1/messages",
        "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
        "\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\","
        "\"properties\":{\"title\":{\"type\":\"string\"}}}}}}",
        "title");
    expect("/v1/chat/completions",
           "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"You are tasked with "
           "summarizing conversations.\"},{\"role\":\"user\",\"content\":\"a\"},{\"role\":"
           "\"assistant\",\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"}]}",
           "summary");
    expect("/v1/responses",
           "{\"model\":\"m\",\"input\":\"You are performing a CONTEXT CHECKPOINT COMPACTION.\"}",
           "summary");
    expect("/v1beta/models/gemini-2.5-pro:generateContent",
           "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"x\"}]}],\"systemInstruction\":"
           "{\"parts\":[{\"text\":\"Task Routing: choose\"}]}}",
           "route");
    /* Older versions of Claude Code. */
    expect(
        "/v1/messages",
        "{\"model\":\"m\",\"max_tokens\":9,\"tools\":[{\"name\":\"t\",\"input_schema\":{\"type\":"
        "\"object\"}}],\"messages\":[{\"role\":\"user\",\"content\":\"Warmup\"}]}",
        "warmup");
    expect(
        "/v1/messages",
        "{\"model\":\"m\",\"max_tokens\":9,\"tools\":[{\"name\":\"t\",\"input_schema\":{\"type\":"
        "\"object\"}}],\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":"
        "\"assistant\",\"content\":\"hello\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\","
        "\"text\":\"[SUGGESTION MODE: Suggest what the user might type next.]\"}]}]}",
        "suggestion");
    /* The same without tools. */
    expect("/v1/messages",
           "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":"
           "\"Warmup\"}]}",
           "warmup");
    expect("/v1/messages",
           "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":"
           "\"[SUGGESTION MODE: next?]\"}]}",
           "suggestion");
    expect("/v1/messages",
           "{\"model\":\"m\",\"max_tokens\":9,\"system\":\"You are an expert at analyzing git "
           "history.\",\"messages\":[{\"role\":\"user\",\"content\":\"Files modified by user:\"}]}",
           "files");
}

static void the_conversation_is_none(void **state)
{
    expect("/v1/messages",
           "{\"model\":\"m\",\"max_tokens\":9,\"system\":\"You are a title generator.\","
           "\"tools\":[{\"name\":\"t\",\"input_schema\":{\"type\":\"object\"}}],"
           "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}",
           NULL);
    expect("/v1/messages",
           "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\","
           "\"content\":\"what does \\\"title\\\" mean?\"}]}",
           NULL);
    expect("/v1/messages",
           "{\"model\":\"m\",\"max_tokens\":9,\"system\":\"You help.\",\"messages\":[{\"role\":"
           "\"user\",\"content\":\"who is a title generator?\"}]}",
           NULL);
    expect("/v1/messages",
           "{\"model\":\"m\",\"max_tokens\":2,\"messages\":[{\"role\":\"user\","
           "\"content\":\"quota\"}]}",
           NULL);
}

/* Messages of 40 KB: the words at the beginning or the end of the last one are seen. */
static void compact(struct buf *out, const char *before, const char *after)
{
    buf_adds(out, "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[");
    for (int i = 0; i < 5; i++) {
        buf_addf(out, "%s{\"role\":\"%s\",\"content\":\"%s", i > 0 ? ", " : "",
                 i % 2 == 0 ? "user" : "assistant", i == 4 ? before : "");
        for (int k = 0; k < 4000; k++) {
            buf_adds(out, "some \\\"n ");
        }
        buf_addf(out, "%s\"}", i == 4 ? after : "");
    }
    buf_adds(out, "],\"system\":\"You are an agent.\"}");
}

static void a_long_conversation_may_end_in_one(void **state)
{
    static const char wish[] = "Write a detailed summary of the conversation so far.";
    CLEANUP(buf) struct buf at_start = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf at_end = BUF_INIT(BUF_TEXT);
    CLEANUP(buf) struct buf without = BUF_INIT(BUF_TEXT);
    compact(&at_start, wish, "");
    compact(&at_end, "", wish);
    compact(&without, "", "");
    assert_string_equal(kind_of("/v1/messages", buf_str(&at_start)), "summary");
    assert_string_equal(kind_of("/v1/messages", buf_str(&at_end)), "summary");
    assert_null(kind_of("/v1/messages", buf_str(&without)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_of_harnesses_are_known),
        cmocka_unit_test(the_conversation_is_none),
        cmocka_unit_test(a_long_conversation_may_end_in_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
