/* SPDX-License-Identifier: MIT
 *
 * Gemini: requests survive reading and writing, answers are the same events as SSE, as a list and
 * as one body, and what is written is read back.
 */
#include "wire_forms.h"

#define TARGET "/v1beta/models/gemini-2.5-pro:generateContent"

/* --- requests --- */

/* The shape of what Gemini CLI 0.61 sends, and what else the API knows. */
static const char cli_request[] =
    "{\"contents\":[{\"parts\":[{\"text\":\"context\"},{\"text\":\"go\"},"
    "{\"inlineData\":{\"mimeType\":\"image/"
    "png\",\"data\":\"AAAA\"},\"mediaResolution\":{\"level\":\"X\"}},"
    "{\"fileData\":{\"mimeType\":\"application/pdf\",\"fileUri\":\"https://x/"
    "f\",\"displayName\":\"f\"}}],"
    "\"role\":\"user\"},"
    "{\"parts\":[{\"text\":\"hm\",\"thought\":true,\"thoughtSignature\":\"S1\"},{\"text\":\"I "
    "write.\"},"
    "{\"functionCall\":{\"id\":\"w_1\",\"args\":{\"path\":\"a\"},\"name\":\"write_file\"},"
    "\"thoughtSignature\":\"S2\"},{\"functionCall\":{\"name\":\"now\"}},"
    "{\"executableCode\":{\"language\":\"PYTHON\",\"code\":\"1\"}}],\"role\":\"model\"},"
    "{\"parts\":[{\"functionResponse\":{\"name\":\"write_file\",\"response\":{\"output\":\"done\"},"
    "\"id\":"
    "\"w_1\"}},{\"functionResponse\":{\"name\":\"now\",\"response\":{\"t\":1},\"parts\":[{"
    "\"inlineData\":"
    "{\"mimeType\":\"image/png\",\"data\":\"BBBB\"}}],\"willContinue\":false}}],\"role\":\"user\"},"
    "{\"role\":\"function\",\"parts\":[{\"functionResponse\":{\"name\":\"x\",\"response\":{}}}]},"
    "{\"parts\":[{\"text\":\"\"}]},{\"role\":\"user\"}],"
    "\"systemInstruction\":{\"parts\":[{\"text\":\"act\"},{\"text\":\"well\"}],\"role\":\"user\"},"
    "\"tools\":[{\"functionDeclarations\":[{\"name\":\"write_file\",\"description\":\"Writes\","
    "\"parametersJsonSchema\":{\"type\":\"object\",\"additionalProperties\":false}},{\"name\":"
    "\"now\"},"
    "{\"name\":\"old\",\"parameters\":{\"type\":\"OBJECT\",\"properties\":{\"n\":{\"type\":"
    "\"STRING\",\"nullable\":"
    "true,\"enum\":[\"a\"],\"maxLength\":\"5\"}},\"propertyOrdering\":[\"n\"]},\"response\":{"
    "\"type\":\"STRING\"}}],"
    "\"codeExecution\":{}},{\"googleSearch\":{}},{\"functionDeclarations\":[{\"name\":\"second\"}]}"
    "],"
    "\"toolConfig\":{\"functionCallingConfig\":{\"mode\":\"ANY\",\"allowedFunctionNames\":[\"now\"]"
    "},"
    "\"retrievalConfig\":{\"languageCode\":\"de\"}},"
    "\"safetySettings\":[{\"category\":\"C\",\"threshold\":\"T\"}],\"labels\":{\"a\":\"b\"},"
    "\"generationConfig\":{\"temperature\":1,\"topP\":0.95,\"topK\":64,\"maxOutputTokens\":100,"
    "\"seed\":7,"
    "\"candidateCount\":1,\"stopSequences\":[\"END\"],\"presencePenalty\":0.5,\"frequencyPenalty\":"
    "0.25,"
    "\"responseMimeType\":\"application/"
    "json\",\"responseSchema\":{\"type\":\"ARRAY\",\"items\":{\"type\":"
    "\"INTEGER\"}},\"thinkingConfig\":{\"includeThoughts\":true,\"thinkingBudget\":8192}}}";

static void test_request_survives(void **state)
{
    static const char *const bodies[] = {
        cli_request,
        "{\"contents\":[],\"tools\":[],\"systemInstruction\":\"plain\"}",
        "{\"contents\":[{\"parts\":[{\"text\":\"x\"}]}],\"cachedContent\":\"c/1\",\"toolConfig\":"
        "{\"functionCallingConfig\":{\"mode\":\"VALIDATED\"}}}",
        "{\"contents\":[],\"toolConfig\":{\"functionCallingConfig\":{\"mode\":\"ANY\","
        "\"allowedFunctionNames\":"
        "[\"a\",\"b\"]}},\"generationConfig\":{\"thinkingConfig\":{\"thinkingLevel\":\"low\"}}}",
        "{\"contents\":[],\"generationConfig\":{\"thinkingConfig\":{\"thinkingLevel\":\"HIGH\","
        "\"includeThoughts\":false},\"responseMimeType\":\"application/"
        "json\",\"responseJsonSchema\":"
        "{\"type\":\"object\"}}}",
        "{\"contents\":[],\"generationConfig\":{\"thinkingConfig\":{\"thinkingBudget\":0},"
        "\"responseMimeType\":\"text/x.enum\",\"temperature\":null}}",
        "{\"contents\":[],\"generationConfig\":{\"thinkingConfig\":{\"thinkingBudget\":-1}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        assert_same(TARGET, bodies[i]);
    }
}

static void test_request_is_understood(void **state)
{
    struct llm_request r = read_request(TARGET, cli_request);
    assert_true(str_eqc(r.model, "gemini-2.5-pro"));
    assert_false(r.stream);
    assert_int_equal(r.n_system, 2);
    assert_int_equal(r.n_messages, 6);
    assert_int_equal(r.messages[0].parts[2].media.kind, LLM_MEDIA_IMAGE);
    assert_true(str_eqc(r.messages[0].parts[3].media.url, "https://x/f"));
    const struct llm_part *model = r.messages[1].parts;
    assert_int_equal(model[0].kind, LLM_PART_THINKING);
    assert_true(str_eqc(model[0].signature, "S1"));
    assert_true(str_eqc(model[2].call.id, "w_1"));
    assert_true(str_eqc(model[2].call.text, "{\"path\":\"a\"}"));
    assert_int_equal(model[4].kind, LLM_PART_OTHER);
    assert_json(r.messages[2].parts[0].result.value, "/output", "\"done\"");
    assert_int_equal(r.n_tools, 6);
    assert_int_equal(r.tools[3].kind, LLM_TOOL_HOSTED);
    assert_json(
        llm_tool_find(&r, STR("old"))->schema, "",
        "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":[\"string\",\"null\"],\"enum\":"
        "[\"a\",null],\"maxLength\":5}}}");
    assert_int_equal(r.choice, LLM_CHOICE_TOOL);
    assert_true(str_eqc(r.choice_name, "now"));
    assert_int_equal(r.reasoning.budget, 8192);
    assert_true(r.reasoning.summary && r.output.json);
    assert_json(r.output.schema, "", "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}");
    assert_int_equal(r.sampling.top_k, 64);
    assert_int_equal(r.sampling.n_stops, 1);
}

/* Protobuf JSON takes both spellings; what is written is the usual one. */
static void test_snake_case(void **state)
{
    struct llm_request r = read_request(
        TARGET,
        "{\"system_instruction\":{\"parts\":[{\"text\":\"s\"}]},\"contents\":[{\"role\":\"model\","
        "\"parts\":["
        "{\"function_call\":{\"name\":\"f\",\"args\":{}},\"thought_signature\":\"S\"}]},{\"parts\":"
        "["
        "{\"function_response\":{\"name\":\"f\",\"response\":{}}},{\"inline_data\":{\"mime_type\":"
        "\"image/png\","
        "\"data\":\"A\"}},{\"file_data\":{\"mime_type\":\"image/png\",\"file_uri\":\"u\"}}]}],"
        "\"tools\":[{\"function_declarations\":[{\"name\":\"f\",\"parameters_json_schema\":{}}]}],"
        "\"tool_config\":{\"function_calling_config\":{\"mode\":\"NONE\"}},\"generation_config\":{"
        "\"max_output_tokens\":3,\"stop_sequences\":[\"x\"],\"response_mime_type\":\"application/"
        "json\","
        "\"thinking_config\":{\"thinking_budget\":5}}}");
    struct json *v = write_request(LLM_GEMINI, &r, NULL);
    assert_json(v, "/systemInstruction/parts/0/text", "\"s\"");
    assert_json(v, "/contents/0/parts/0/thoughtSignature", "\"S\"");
    assert_json(v, "/contents/1/parts/0/functionResponse/name", "\"f\"");
    assert_json(v, "/contents/1/parts/1/inlineData/mimeType", "\"image/png\"");
    assert_json(v, "/contents/1/parts/2/fileData/fileUri", "\"u\"");
    assert_json(v, "/tools/0/functionDeclarations/0/parametersJsonSchema", "{}");
    assert_json(v, "/toolConfig/functionCallingConfig/mode", "\"NONE\"");
    assert_json(v, "/generationConfig",
                "{\"maxOutputTokens\":3,\"stopSequences\":[\"x\"],\"responseMimeType\":"
                "\"application/json\","
                "\"thinkingConfig\":{\"thinkingBudget\":5}}");
}

static void test_bad_requests(void **state)
{
    assert_bad(TARGET, "{}", "contents: must be a list");
    assert_bad(TARGET, "{\"contents\":[1]}", "contents[0]: must be an object");
    assert_bad(TARGET, "{\"contents\":[{\"role\":\"king\"}]}", "contents[0].role");
    assert_bad(TARGET, "{\"contents\":[{\"parts\":1}]}", "contents[0].parts: must be a list");
    assert_bad(TARGET, "{\"contents\":[{\"parts\":[1]}]}", "contents[0].parts[0]");
    assert_bad(TARGET, "{\"contents\":[],\"tools\":[1]}", "tools[0]");
    assert_bad(TARGET, "{\"contents\":[],\"tools\":[{\"functionDeclarations\":[{}]}]}",
               "tools[0].functionDeclarations");
}

static void test_endpoints(void **state)
{
    static const struct {
        const char *target;
        enum llm_call_kind call;
        bool stream, list;
        const char *model;
    } cases[] = {
        { "/v1beta/models/g:generateContent", LLM_CALL_GENERATE, false, false, "g" },
        { "/v1beta/models/g:streamGenerateContent?alt=sse", LLM_CALL_GENERATE, true, false, "g" },
        { "/v1beta/models/g:streamGenerateContent?key=k&alt=sse", LLM_CALL_GENERATE, true, false,
          "g" },
        { "/v1beta/models/g:streamGenerateContent", LLM_CALL_GENERATE, true, true, "g" },
        { "/v1/models/g:countTokens", LLM_CALL_COUNT, false, false, "g" },
        { "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
          LLM_CALL_GENERATE, false, false, "g" },
        { "/v1beta/models/g:embedContent", LLM_CALL_EMBED, false, false, "g" },
        { "/v1beta/models/:generateContent", LLM_CALL_NONE, false, false, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct llm_endpoint ep = llm_endpoint_of(STR("POST"), str_of(cases[i].target));
        assert_int_equal(ep.call, cases[i].call);
        assert_int_equal(ep.stream, cases[i].stream);
        assert_int_equal(ep.list, cases[i].list);
        assert_true(str_eqc(ep.model, cases[i].model));
        if (ep.call != LLM_CALL_NONE) {
            assert_int_equal(ep.format, LLM_GEMINI);
        }
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    assert_int_equal(llm_path(LLM_GEMINI, STR("a b/c"), true, &out, NULL), 0);
    assert_string_equal(out.ptr, "/v1beta/models/a%20b%2Fc:streamGenerateContent?alt=sse");
    struct llm_request r = read_request(out.ptr, "{\"contents\":[]}");
    assert_true(str_eqc(r.model, "a b/c") && r.stream);
}

static void test_count_tokens(void **state)
{
    struct llm_request plain = read_request("/v1beta/models/g:countTokens",
                                            "{\"contents\":[{\"parts\":[{\"text\":\"abc\"}]}]}");
    struct llm_request whole = read_request(
        "/v1beta/models/g:countTokens", "{\"generateContentRequest\":{\"model\":\"models/"
                                        "g\",\"contents\":[{\"parts\":[{\"text\":\"abc\"}]}]}}");
    assert_int_equal(plain.n_messages, 1);
    assert_int_equal(whole.n_messages, 1);
    assert_int_equal(llm_estimate_tokens(&plain), llm_estimate_tokens(&whole));
}

/* --- answers --- */

#define CHUNK(parts, rest)                                                                      \
    "{\"candidates\":[{\"content\":{\"parts\":[" parts "],\"role\":\"model\"},\"index\":0" rest \
    "],\"modelVersion\":\"g\",\"responseId\":\"r_1\""
#define USAGE                                                                        \
    ",\"usageMetadata\":{\"promptTokenCount\":1000,\"cachedContentTokenCount\":300," \
    "\"candidatesTokenCount\":40,\"thoughtsTokenCount\":10,\"totalTokenCount\":1050}"
#define C1 CHUNK("{\"text\":\"h\",\"thought\":true}", "}") "}"
#define C2 CHUNK("{\"text\":\"m\",\"thought\":true},{\"text\":\"Hello\"}", "}") "}"
#define C3                                                                                 \
    CHUNK("{\"text\":\", "                                                                 \
          "world\"},{\"functionCall\":{\"name\":\"f\",\"args\":{\"a\":1},\"id\":\"c_1\"}," \
          "\"thoughtSignature\":\"S\"},{\"functionCall\":{\"name\":\"f\",\"args\":{}}}",   \
          "}")                                                                             \
    "}"
#define C4 CHUNK("{\"text\":\"\"}", ",\"finishReason\":\"STOP\"}") USAGE "}"

static const char sse[] =
    "data: " C1 "\r\n\r\ndata: " C2 "\r\n\r\ndata: " C3 "\r\n\r\ndata: " C4 "\r\n\r\n";
static const char list[] = "[" C1 "\n,\r\n" C2 "," C3 "," C4 "]";
static const char all_events[] = "\nstart r_1 g\nthinking0 hm\ntext1 Hello, world\ncall2 c_1 f"
                                 "\ndata2 {\"a\":1}\nsignature2 S\ncall_end2\ncall3  f\ndata3 {}"
                                 "\ncall_end3\nusage 700+300/-1>50/10\nstop tool \nend";

static void test_stream(void **state)
{
    assert_events(LLM_GEMINI, true, sse, all_events);
    assert_events(LLM_GEMINI, true, list, all_events);
}

static void test_body(void **state)
{
    static const char body[] = CHUNK("{\"text\":\"hm\",\"thought\":true},{\"text\":\"Hello, "
                                     "world\"},{\"functionCall\":{\"name\":\"f\","
                                     "\"args\":{\"a\":1},\"id\":\"c_1\"},\"thoughtSignature\":"
                                     "\"S\"},{\"functionCall\":{\"name\":\"f\"}}",
                                     ",\"finishReason\":\"STOP\"}") USAGE "}";
    assert_events(LLM_GEMINI, false, body, all_events);
    assert_string_equal(list_answer(LLM_GEMINI, false, STR("{}"), 9),
                        "\nfailed: an answer without candidates");
}

static void test_ends(void **state)
{
    static const struct {
        const char *answer, *events;
    } cases[] = {
        { CHUNK("{\"text\":\"x\"}", ",\"finishReason\":\"MAX_TOKENS\"}") "}",
          "\nstart r_1 g\ntext0 x\nstop length \nend" },
        { "{\"candidates\":[{\"finishReason\":\"SAFETY\"}]}",
          "\nstart  \nstop refusal SAFETY\nend" },
        { "{\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\"}]}",
          "\nstart  \nstop other MALFORMED_FUNCTION_CALL\nend" },
        { "{\"candidates\":[{\"finishReason\":\"NEVER_SEEN\"}]}",
          "\nstart  \nstop other NEVER_SEEN\nend" },
        { "{\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"}}",
          "\nstart  \nstop refusal PROHIBITED_CONTENT\nend" },
        { CHUNK("{\"inlineData\":{\"data\":\"A\"}}", ",\"finishReason\":\"STOP\"}") "}",
          "\nstart r_1 g\nother0 {\"inlineData\":{\"data\":\"A\"}}\nstop end \nend" },
        { CHUNK("{\"text\":\"x\"}", "}") "}",
          "\nstart r_1 g\ntext0 x\nfailed: the response was cut short" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(list_answer(LLM_GEMINI, false, str_of(cases[i].answer), 1000),
                            cases[i].events);
        const char *event = arena_printf(arena, "data: %s\n\n", cases[i].answer);
        assert_string_equal(list_answer(LLM_GEMINI, true, str_of(event), 1000), cases[i].events);
    }
}

static void test_errors(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum llm_error_kind kind;
    } cases[] = {
        { 429, "{\"error\":{\"code\":429,\"message\":\"slow\",\"status\":\"RESOURCE_EXHAUSTED\"}}",
          LLM_ERR_RATE },
        { 429,
          "[{\"error\":{\"code\":429,\"message\":\"gone\",\"status\":\"RESOURCE_EXHAUSTED\","
          "\"details\":[{\"@type\":"
          "\"type.googleapis.com/google.rpc.QuotaFailure\",\"violations\":[{\"quotaId\":"
          "\"GenerateRequestsPerDay\"}]}]}}]",
          LLM_ERR_QUOTA },
        { 400,
          "{\"error\":{\"code\":400,\"message\":\"API key not "
          "valid\",\"status\":\"INVALID_ARGUMENT\",\"details\":"
          "[{\"reason\":\"API_KEY_INVALID\"}]}}",
          LLM_ERR_AUTH },
        { 400,
          "{\"error\":{\"code\":400,\"message\":\"The input token count exceeds the maximum number "
          "of tokens "
          "allowed (5).\"}}",
          LLM_ERR_CONTEXT },
        { 503, "{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}", LLM_ERR_OVERLOADED },
        { 500, "<html>", LLM_ERR_SERVER },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct llm_error error;
        llm_error_read(arena, LLM_GEMINI, cases[i].status, str_of(cases[i].body), &error);
        assert_int_equal(error.kind, cases[i].kind);
    }
    /* Every kind comes back as what it was. */
    for (enum llm_error_kind kind = 0; kind < LLM_ERR_MAX; kind++) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        struct llm_error error = { .kind = kind, .message = STR("m") };
        assert_int_equal(llm_error_write(LLM_GEMINI, &error, &out, NULL), 0);
        llm_error_read(arena, LLM_GEMINI, llm_error_status(kind), buf_str(&out), &error);
        assert_int_equal(error.kind, kind);
    }
    assert_string_equal(
        list_answer(
            LLM_GEMINI, true,
            STR("data: "
                "{\"error\":{\"code\":503,\"message\":\"busy\",\"status\":\"UNAVAILABLE\"}}\n\n"),
            9),
        "\nerror 9 : busy\nend");
}

static void test_written_answer_is_read(void **state)
{
    static const struct {
        bool stream, list;
    } ways[] = { { true, false }, { true, true }, { false, false } };
    struct llm_reader_opts from = { .format = LLM_GEMINI, .stream = true };
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct llm_writer_opts to = { .format = LLM_GEMINI,
                                      .stream = ways[i].stream,
                                      .list = ways[i].list };
        struct str text = rewrite_answer(&from, &to, STR(sse));
        assert_string_equal(list_answer(LLM_GEMINI, ways[i].stream, text, 1000), all_events);
        if (ways[i].list) {
            assert_int_equal(json_len(parse(text)), 7);
        }
    }
}

static void test_tap(void **state)
{
    static const char *const answers[] = { sse, list };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct listing l = { .out = BUF_INIT(BUF_TEXT), .last = LLM_EV_END };
        struct llm_tap *t = llm_tap_new(&(struct llm_reader_opts) {
            .format = LLM_GEMINI, .stream = true, .sink = { list_event, &l } });
        for (size_t at = 0; at < strlen(answers[i]); at += 3) {
            llm_tap_feed(t, str_slice(str_of(answers[i]), at, at + 3));
        }
        llm_tap_end(t);
        llm_tap_free(t);
        assert_non_null(strstr(l.out.ptr, "\nusage 700+300/-1>50/10\nstop tool \nend"));
        assert_null(strstr(l.out.ptr, "world"));
        buf_done(&l.out);
    }
}

/* --- other formats --- */

static void test_from_responses(void **state)
{
    struct llm_losses losses;
    llm_losses_init(&losses, arena);
    struct llm_request r = read_request(
        "/v1/responses",
        "{\"model\":\"m\",\"instructions\":\"act\",\"input\":[{\"role\":\"developer\",\"content\":"
        "\"brief\"},"
        "{\"role\":\"user\",\"content\":\"go\"},"
        "{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
        "\"hm\"}]},"
        "{\"role\":\"assistant\",\"content\":\"ok\"},"
        "{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"note\",\"namespace\":\"mcp__t\","
        "\"arguments\":\"{}\"},"
        "{\"type\":\"custom_tool_call\",\"call_id\":\"c2\",\"name\":\"patch\",\"input\":\"***\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":[{\"type\":\"input_"
        "text\",\"text\":\"t\"},"
        "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,AAAA\"}]},"
        "{\"type\":\"custom_tool_call_output\",\"call_id\":\"c2\",\"output\":\"done\"},"
        "{\"role\":\"developer\",\"content\":\"hurry\"}],"
        "\"tools\":[{\"type\":\"namespace\",\"name\":\"mcp__t\",\"tools\":[{\"type\":\"function\","
        "\"name\":\"note\","
        "\"parameters\":{\"type\":\"object\",\"$defs\":{}}}]},{\"type\":\"custom\",\"name\":"
        "\"patch\"},"
        "{\"type\":\"web_search\"}],\"parallel_tool_calls\":false,\"reasoning\":{\"effort\":"
        "\"xhigh\",\"summary\":"
        "\"auto\"},\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{"
        "\"type\":\"object\"}}},"
        "\"tool_choice\":{\"type\":\"custom\",\"name\":\"patch\"},\"max_output_tokens\":9}");
    struct json *v = write_request(LLM_GEMINI, &r, &losses);
    assert_json(v, "/systemInstruction/parts", "[{\"text\":\"act\"},{\"text\":\"brief\"}]");
    assert_json(v, "/contents/0", "{\"role\":\"user\",\"parts\":[{\"text\":\"go\"}]}");
    assert_json(v, "/contents/1",
                "{\"role\":\"model\",\"parts\":[{\"text\":\"ok\"},{\"functionCall\":{\"id\":\"c1\","
                "\"name\":"
                "\"mcp__t__note\",\"args\":{}},\"thoughtSignature\":\"skip_thought_signature_"
                "validator\"},{\"functionCall\":{\"id\":\"c2\",\"name\":"
                "\"patch\",\"args\":"
                "{\"input\":\"***\"}}}]}");
    assert_json(v, "/contents/2",
                "{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"id\":\"c1\",\"name\":\"mcp_"
                "_t__note\","
                "\"response\":{\"output\":\"t\"}}},{\"inlineData\":{\"mimeType\":\"image/"
                "png\",\"data\":\"AAAA\"}},"
                "{\"functionResponse\":{\"id\":\"c2\",\"name\":\"patch\",\"response\":{\"output\":"
                "\"done\"}}},"
                "{\"text\":\"hurry\"}]}");
    assert_int_equal(json_len(json_get(v, "contents")), 3);
    assert_json(v, "/tools/0/functionDeclarations/0/parametersJsonSchema",
                "{\"type\":\"object\",\"$defs\":{}}");
    assert_json(v, "/tools/0/functionDeclarations/1/parametersJsonSchema/required", "[\"input\"]");
    assert_json(v, "/toolConfig/functionCallingConfig",
                "{\"mode\":\"ANY\",\"allowedFunctionNames\":[\"patch\"]}");
    assert_json(
        v, "/generationConfig",
        "{\"maxOutputTokens\":9,\"thinkingConfig\":{\"includeThoughts\":true,\"thinkingLevel\":"
        "\"HIGH\"},"
        "\"responseMimeType\":\"application/json\",\"responseJsonSchema\":{\"type\":\"object\"}}");
    assert_true(has_loss(&losses, "thinking"));
    assert_true(has_loss(&losses, "web_search"));
    assert_true(has_loss(&losses, "parallel"));
    assert_true(has_loss(&losses, "system"));
}

/* An answer of the one as an answer of the other, streaming and not. */
static void test_to_responses_and_back(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        bool stream_in = (i & 1) != 0, stream_out = (i & 2) != 0;
        struct llm_reader_opts from = { .format = LLM_GEMINI, .stream = true };
        struct llm_writer_opts to = { .format = LLM_RESPONSES, .stream = stream_in };
        struct str middle = rewrite_answer(&from, &to, STR(sse));
        from = (struct llm_reader_opts) { .format = LLM_RESPONSES, .stream = stream_in };
        to = (struct llm_writer_opts) { .format = LLM_GEMINI, .stream = stream_out };
        const char *events =
            list_answer(LLM_GEMINI, stream_out, rewrite_answer(&from, &to, middle), 100);
        assert_non_null(
            strstr(events, "\nthinking0 hm\ntext1 Hello, world\ncall2 c_1 f\ndata2 {\"a\":1}"));
        assert_non_null(strstr(events, "\nusage 700+300/-1>50/10\nstop tool \nend"));
    }
}

static void test_cached_content_is_refused(void **state)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct err e = { 0 };
    struct llm_request r = read_request(TARGET, "{\"contents\":[],\"cachedContent\":\"c/1\"}");
    assert_int_equal(llm_request_write(arena, LLM_RESPONSES, &r, NULL, &out, &e), -ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "cachedContent"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, arena_setup, arena_teardown)
        T(test_request_survives),
        T(test_request_is_understood),
        T(test_snake_case),
        T(test_bad_requests),
        T(test_endpoints),
        T(test_count_tokens),
        T(test_stream),
        T(test_body),
        T(test_ends),
        T(test_errors),
        T(test_written_answer_is_read),
        T(test_tap),
        T(test_from_responses),
        T(test_to_responses_and_back),
        T(test_cached_content_is_refused),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
