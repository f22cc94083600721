/* SPDX-License-Identifier: MIT
 *
 * Which call a path is, what the model is to answer to, which turn it is, what it costs; malformed
 * requests; and the requests of real harnesses, where their captures are at hand.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "base/file.h"
#include "wire/lines.h"
#include "wire_forms.h"

/* --- endpoints --- */

static void test_endpoints(void **state)
{
    static const struct {
        const char *method, *target;
        enum llm_call_kind call;
        enum llm_format format;
        bool stream;
        const char *model;
    } cases[] = {
        { "POST", "/v1/messages?beta=true", LLM_CALL_GENERATE, LLM_ANTHROPIC, false, "" },
        { "POST", "/messages", LLM_CALL_GENERATE, LLM_ANTHROPIC, false, "" },
        { "POST", "/v1/messages/", LLM_CALL_GENERATE, LLM_ANTHROPIC, false, "" },
        { "POST", "/v1/messages/count_tokens?beta=true", LLM_CALL_COUNT, LLM_ANTHROPIC, false, "" },
        { "POST", "/v1/chat/completions", LLM_CALL_GENERATE, LLM_CHAT, false, "" },
        { "POST", "/chat/completions", LLM_CALL_GENERATE, LLM_CHAT, false, "" },
        { "POST", "/v1/responses", LLM_CALL_GENERATE, LLM_RESPONSES, false, "" },
        { "POST", "/v1beta/models/g-2:generateContent", LLM_CALL_GENERATE, LLM_GEMINI, false,
          "g-2" },
        { "POST", "/v1beta/models/g-2:streamGenerateContent?alt=sse", LLM_CALL_GENERATE, LLM_GEMINI,
          true, "g-2" },
        { "POST", "/v1beta/models/g-2:countTokens", LLM_CALL_COUNT, LLM_GEMINI, false, "g-2" },
        { "GET", "/v1/models", LLM_CALL_MODELS, LLM_CHAT, false, "" },
        { "GET", "/v1/models/m%2F1?x=y", LLM_CALL_MODELS, LLM_CHAT, false, "m%2F1" },
        { "GET", "/v1beta/models?pageSize=1", LLM_CALL_MODELS, LLM_GEMINI, false, "" },
        { "GET", "/v1beta/models/g", LLM_CALL_MODELS, LLM_GEMINI, false, "g" },
        { "GET", "/v1/messages", LLM_CALL_NONE, 0, false, "" },
        { "GET", "/v1/modelsX", LLM_CALL_NONE, 0, false, "" },
        { "POST", "/v1/messages/batches", LLM_CALL_BATCHES, LLM_ANTHROPIC, false, "" },
        { "POST", "/v1beta/batches/b:cancel", LLM_CALL_BATCHES, LLM_GEMINI, false, "" },
        { "POST", "/v1beta/models/m:batchGenerateContent", LLM_CALL_BATCHES, LLM_GEMINI, false,
          "" },
        { "GET", "/v1/files/f/content", LLM_CALL_FILES, LLM_CHAT, false, "" },
        { "POST", "/upload/v1beta/files", LLM_CALL_FILES, LLM_GEMINI, false, "" },
        { "GET", "/v1/responses/r", LLM_CALL_STORED, LLM_RESPONSES, false, "" },
        { "POST", "/v1/responses/compact", LLM_CALL_NONE, 0, false, "" },
        { "PUT", "/v1/files/f", LLM_CALL_NONE, 0, false, "" },
        { "POST", "/v1beta/files/models/m:generateContent", LLM_CALL_NONE, 0, false, "" },
        { "POST", "/v1/v1/messages", LLM_CALL_NONE, 0, false, "" },
        { "POST", "/", LLM_CALL_NONE, 0, false, "" },
        { "POST", "", LLM_CALL_NONE, 0, false, "" },
        { "HEAD", "/", LLM_CALL_NONE, 0, false, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct llm_endpoint ep = llm_endpoint_of(str_of(cases[i].method), str_of(cases[i].target));
        if (ep.call != cases[i].call ||
            (ep.call != LLM_CALL_NONE &&
             (ep.format != cases[i].format || ep.stream != cases[i].stream ||
              !str_eqc(ep.model, cases[i].model)))) {
            fail_msg("%s %s: call %d format %d stream %d model %.*s", cases[i].method,
                     cases[i].target, (int)ep.call, (int)ep.format, ep.stream, STR_ARG(ep.model));
        }
    }
}

static void test_paths(void **state)
{
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        for (unsigned stream = 0; stream < 2; stream++) {
            CLEANUP(buf) struct buf path = BUF_INIT(1000);
            assert_int_equal(llm_path(f, STR("m"), stream != 0, &path, NULL), 0);
            struct llm_endpoint ep = llm_endpoint_of(STR("POST"), buf_str(&path));
            assert_int_equal(ep.call, LLM_CALL_GENERATE);
            assert_int_equal(ep.format, f);
            assert_int_equal(ep.stream, f == LLM_GEMINI && stream != 0);
        }
        enum llm_format again;
        assert_true(llm_format_parse(str_of(llm_format_name(f)), &again));
        assert_int_equal(again, f);
    }
    enum llm_format unknown;
    assert_false(llm_format_parse(STR("openai"), &unknown));
}

/* --- malformed --- */

static void test_malformed(void **state)
{
    static const char *const targets[] = { "/v1/messages", "/v1/chat/completions" };
    static const struct {
        const char *body, *message;
    } cases[] = {
        { "", "request" },
        { "[]", "must be an object" },
        { "{\"model\":\"m\"", "line 1" },
        { "{\"messages\":[]}", "model" },
        { "{\"model\":1,\"messages\":[]}", "model" },
        { "{\"model\":\"m\"}", "messages: must be a list" },
        { "{\"model\":\"m\",\"messages\":{}}", "messages: must be a list" },
        { "{\"model\":\"m\",\"messages\":[1]}", "messages[0]: must be an object" },
        { "{\"model\":\"m\",\"messages\":[{\"role\":\"king\",\"content\":\"\"}]}",
          "messages[0].role" },
        { "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":1}]}",
          "messages[0].content: must be a string or a list" },
        { "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[1]}]}",
          "messages[0].content[0]: must be an object" },
        { "{\"model\":\"m\",\"messages\":[],\"tools\":[1]}", "tools[0]: must be an object" },
    };
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        for (size_t j = 0; j < ARRAY_LEN(cases); j++) {
            assert_bad(targets[i], cases[j].body, cases[j].message);
        }
    }
}

/* --- what the model is to answer to --- */

static const char chat_head[] = "{\"model\":\"m\",\"messages\":[";
static const char call_two[] =
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
    "{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
    "{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},";

static struct llm_request chat(const char *messages)
{
    return read_request("/v1/chat/completions", arena_printf(arena, "%s%s]}", chat_head, messages));
}

static void test_turns(void **state)
{
    const char *results =
        arena_printf(arena,
                     "{\"role\":\"user\",\"content\":\"one\"},%s"
                     "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"ra\"},"
                     "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":[{\"type\":\"text\","
                     "\"text\":\"rb\"}]}",
                     call_two);
    struct llm_request r = chat("");
    assert_int_equal(llm_results(&r) + llm_turn(&r), 0);
    assert_int_equal(llm_last_text(arena, &r).len, 0);

    r = chat("{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":["
             "{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"text\",\"text\":\"two\"}]}");
    assert_true(str_eqc(llm_last_text(arena, &r), "one\ntwo"));

    /* Parallel calls: two results, one step. */
    r = chat(results);
    assert_int_equal(llm_results(&r), 2);
    assert_int_equal(llm_turn(&r), 1);
    assert_true(str_eqc(llm_last_text(arena, &r), "ra\nrb"));

    /* A reminder in a message of its own is no new turn, and does not hide the results. */
    r = chat(arena_printf(arena, "%s,{\"role\":\"user\",\"content\":\"<reminder>\"}", results));
    assert_int_equal(llm_results(&r), 2);
    assert_int_equal(llm_turn(&r), 1);
    assert_true(str_eqc(llm_last_text(arena, &r), "ra\nrb\n<reminder>"));

    /* One after the prompt does not hide the prompt. */
    const char *prompt = "{\"role\":\"user\",\"content\":\"context\"},"
                         "{\"role\":\"user\",\"content\":\"go\"}";
    r = chat(prompt);
    assert_true(str_eqc(llm_last_text(arena, &r), "go"));
    r = chat(
        arena_printf(arena, "%s,{\"role\":\"user\",\"content\":\"<note>x</note>\\n\"}", prompt));
    assert_int_equal(llm_turn(&r), 0);
    assert_true(str_eqc(llm_last_text(arena, &r), "go\n<note>x</note>\n"));

    /* New words of the user start anew. */
    r = chat(arena_printf(arena,
                          "%s,{\"role\":\"assistant\",\"content\":\"done\"},"
                          "{\"role\":\"user\",\"content\":\"next\"}",
                          results));
    assert_int_equal(llm_results(&r), 0);
    assert_int_equal(llm_turn(&r), 0);
    assert_true(str_eqc(llm_last_text(arena, &r), "next"));
    assert_true(str_eqc(llm_call_find(&r, STR("b"))->name, "f"));
    assert_null(llm_call_find(&r, STR("c")));
}

/* Claude Code puts reminders beside results and system messages after the user's. */
static void test_reminders(void **state)
{
    struct llm_request r = read_request(
        "/v1/messages",
        "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"go\"},"
        "{\"role\":\"system\",\"content\":\"agents\"},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\","
        "\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
        "\"tool_use_id\":\"a\",\"content\":\"ok\"},{\"type\":\"text\",\"text\":\"<reminder>\"}]},"
        "{\"role\":\"system\",\"content\":\"agents\"}]}");
    assert_int_equal(llm_turn(&r), 1);
    assert_true(str_eqc(llm_last_text(arena, &r), "ok\n<reminder>"));
    r.n_messages = 2;
    assert_int_equal(llm_turn(&r), 0);
    assert_true(str_eqc(llm_last_text(arena, &r), "go"));
}

/* Results that are objects: the text is what the tool said. */
static void test_values(void **state)
{
    struct llm_request r =
        read_request("/v1beta/models/m:generateContent",
                     "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"go\"}]},{\"role\":"
                     "\"model\",\"parts\":[{"
                     "\"functionCall\":{\"name\":\"f\",\"args\":{}}},{\"functionCall\":{\"name\":"
                     "\"g\",\"args\":{}}}]},"
                     "{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"f\","
                     "\"response\":{\"output\":\"ok\"}}},"
                     "{\"functionResponse\":{\"name\":\"g\",\"response\":{\"a\":1}}}]}]}");
    assert_true(str_eqc(llm_last_text(arena, &r), "ok\n{\"a\":1}"));
    assert_int_equal(llm_turn(&r), 1);
}

static void test_tools(void **state)
{
    struct llm_request r = read_request(
        "/v1/responses", "{\"model\":\"m\",\"input\":\"x\",\"tools\":[{\"type\":\"namespace\","
                         "\"name\":\"mcp__tiny\",\"tools\":[{\"type\":\"function\",\"name\":"
                         "\"add\"}]},{\"type\":\"function\",\"name\":\"run\"}]}");
    assert_true(str_eqc(llm_tool_find(&r, STR("run"))->name, "run"));
    assert_true(str_eqc(llm_tool_find(&r, STR("mcp__tiny__add"))->name, "add"));
    assert_true(str_eqc(llm_tool_find(&r, STR("add"))->ns, "mcp__tiny"));
    assert_null(llm_tool_find(&r, STR("mcp__tiny_add")));
    assert_null(llm_tool_find(&r, STR("tiny")));
}

/* --- what it costs --- */

static int64_t tokens_of(const char *text)
{
    struct json *s = json_string(arena, str_of(text));
    struct llm_request r =
        chat(arena_printf(arena, "{\"role\":\"user\",\"content\":%s}", text_of_json(s).ptr));
    return llm_estimate_tokens(&r);
}

static void test_estimate(void **state)
{
    int64_t nothing = tokens_of("");
    /* 44 characters, 9 tokens; the estimate may be above, not below, and not absurd. */
    int64_t fox = tokens_of("The quick brown fox jumps over the lazy dog.") - nothing;
    assert_in_range((uintmax_t)fox, 9, 20);
    int64_t hanzi = tokens_of("\u4f60\u597d\u4e16\u754c") - nothing;
    assert_in_range((uintmax_t)hanzi, 4, 12);
    /* An image costs what images cost, not what its bytes are. */
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    buf_adds(&body,
             "{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
             "\"data:image/png;base64,");
    for (size_t i = 0; i < 100000; i++) {
        buf_adds(&body, "AAAA");
    }
    buf_adds(&body, "\"}}]}");
    struct llm_request r = chat(buf_str(&body).ptr);
    assert_in_range((uintmax_t)llm_estimate_tokens(&r), 1000, 3000);
    /* Tools cost, too. */
    r = read_request(
        "/v1/chat/completions",
        "{\"model\":\"m\",\"messages\":[],\"tools\":[{\"type\":\"function\",\"function\":{"
        "\"name\":\"f\",\"description\":\"one two three four five\",\"parameters\":{"
        "\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}}}}]}");
    assert_true(llm_estimate_tokens(&r) > 25);
}

/* --- real harnesses --- */

static bool check_capture(const struct json *line)
{
    const struct json *body = json_get(line, "body");
    struct str method = json_str(json_get(line, "method"), STR_EMPTY);
    struct str target = json_str(json_get(line, "path"), STR_EMPTY);
    struct llm_endpoint where = llm_endpoint_of(method, target);
    if (!json_is(body, JSON_OBJECT) || where.call != LLM_CALL_GENERATE) {
        return false;
    }
    const char *text = text_of_json(body).ptr;
    assert_same(arena_dup(arena, target), text);
    struct llm_request r = read_request(arena_dup(arena, target), text);
    assert_true(r.n_messages > 0 && r.n_tools > 0 && r.stream);
    assert_true(llm_last_text(arena, &r).len > 0);
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        struct llm_losses losses;
        llm_losses_init(&losses, arena);
        assert_true(json_len(write_request(f, &r, &losses)) > 2);
        if (f == r.format) {
            assert_int_equal(losses.n, 0);
        }
    }
    return true;
}

static void test_captures(void **state)
{
    static const char *const names[] = { "claude", "opencode", "codex", "gemini" };
    const char *dir = getenv("CINCH_CAPTURES");
    dir = dir != NULL ? dir : CAPTURES_DIR;
    if (!file_is_dir(AT_FDCWD, dir)) {
        print_message("no captures of harnesses in %s\n", dir);
        skip();
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
        struct lines l;
        struct str line;
        struct err e = { 0 };
        size_t n = 0;
        const char *path = arena_printf(arena, "%s/%s-http.jsonl", dir, names[i]);
        if (file_read(AT_FDCWD, path, BUF_TEXT, &b, &e) < 0) {
            fail_msg("%s", e.msg);
        }
        lines_init(&l, BUF_TEXT);
        lines_feed(&l, buf_str(&b));
        while (lines_next(&l, &line)) {
            n += check_capture(parse(line));
        }
        lines_done(&l);
        assert_int_equal(n, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_endpoints, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_paths, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_malformed, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_turns, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_reminders, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_values, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_tools, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_estimate, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_captures, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
