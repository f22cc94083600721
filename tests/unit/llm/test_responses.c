/* SPDX-License-Identifier: MIT
 *
 * OpenAI Responses: requests as Codex sends them survive reading and writing, answers are the same
 * events however complete the server's stream is, and what is written is read back.
 */
#include "wire_forms.h"

#define TARGET "/v1/responses"

/* --- requests --- */

/* The shape of what Codex 0.166 sends, with words of our own. */
static const char codex_request[] =
    "{\"model\":\"gpt-5.5\",\"stream\":true,\"input\":["
    "{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"developer\",\"content\":["
    "{\"type\":\"input_text\",\"text\":\"be brief\"},{\"type\":\"input_text\",\"text\":\"be "
    "kind\"}]},"
    "{\"type\":\"message\",\"id\":\"msg_2\",\"role\":\"user\",\"content\":["
    "{\"type\":\"input_text\",\"text\":\"go\"},"
    "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,AAAA\",\"detail\":\"high\"},"
    "{\"type\":\"input_image\",\"image_url\":\"https://example.org/a.png\"},"
    "{\"type\":\"input_image\",\"file_id\":\"file_1\"},"
    "{\"type\":\"input_file\",\"filename\":\"a.pdf\",\"file_data\":\"data:application/"
    "pdf;base64,BBBB\"},"
    "{\"type\":\"input_file\",\"file_url\":\"https://example.org/b.pdf\"},"
    "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"CCCC\",\"format\":\"wav\"}},"
    "{\"type\":\"input_hologram\",\"x\":1}]},"
    "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
    "\"hm\"}],"
    "\"content\":null,\"encrypted_content\":null},"
    "{\"type\":\"reasoning\",\"id\":\"rs_2\",\"summary\":[],\"encrypted_content\":\"SECRET\"},"
    "{\"type\":\"reasoning\",\"id\":\"rs_3\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
    "\"a\"},"
    "{\"type\":\"summary_text\",\"text\":\"b\"}],\"content\":[{\"type\":\"reasoning_text\","
    "\"text\":\"c\"}]},"
    "{\"type\":\"message\",\"id\":\"msg_3\",\"role\":\"assistant\",\"status\":\"completed\","
    "\"phase\":"
    "\"commentary\",\"content\":[{\"type\":\"output_text\",\"text\":\"I "
    "write.\",\"annotations\":[]},"
    "{\"type\":\"refusal\",\"refusal\":\"not that\"}]},"
    "{\"type\":\"custom_tool_call\",\"id\":\"ctc_1\",\"call_id\":\"call_1\",\"name\":\"apply_"
    "patch\","
    "\"input\":\"*** Begin Patch\\n\"},"
    "{\"type\":\"custom_tool_call_output\",\"id\":\"ctco_1\",\"call_id\":\"call_1\",\"output\":"
    "\"done\"},"
    "{\"type\":\"function_call\",\"id\":\"fc_1\",\"name\":\"add_note\",\"namespace\":\"mcp__tiny\","
    "\"arguments\":\"{ \\\"text\\\": \\\"n\\\" }\",\"call_id\":\"call_2\"},"
    "{\"type\":\"function_call_output\",\"id\":\"fco_1\",\"call_id\":\"call_2\",\"output\":["
    "{\"type\":\"input_text\",\"text\":\"noted\"},"
    "{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,AAAA\"}]},"
    "{\"type\":\"local_shell_call\",\"id\":\"ls_1\",\"call_id\":\"call_3\",\"status\":"
    "\"completed\","
    "\"action\":{\"type\":\"exec\",\"command\":[\"ls\"],\"env\":{}}},"
    "{\"type\":\"additional_tools\",\"role\":\"developer\",\"tools\":[{\"type\":\"function\","
    "\"name\":"
    "\"late\",\"parameters\":{\"type\":\"object\"}}]},"
    "{\"type\":\"item_reference\",\"id\":\"msg_9\"},{\"id\":\"msg_10\"},"
    "{\"role\":\"system\",\"content\":\"plain words\"},{\"role\":\"user\",\"content\":[]}],"
    "\"tools\":[{\"type\":\"function\",\"name\":\"exec\",\"description\":\"Runs\",\"strict\":false,"
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"cmd\":{\"type\":\"string\"}},"
    "\"required\":[\"cmd\"]}},"
    "{\"type\":\"function\",\"name\":\"sure\",\"strict\":true,\"parameters\":{\"type\":\"object\"}}"
    ","
    "{\"type\":\"function\",\"name\":\"bare\",\"parameters\":null},"
    "{\"type\":\"custom\",\"name\":\"apply_patch\",\"description\":\"Edits\",\"format\":{\"type\":"
    "\"grammar\","
    "\"syntax\":\"lark\",\"definition\":\"start: x\"}},"
    "{\"type\":\"namespace\",\"name\":\"mcp__tiny\",\"description\":\"Notes\",\"tools\":["
    "{\"type\":\"function\",\"name\":\"add_note\",\"parameters\":{\"type\":\"object\"}},"
    "{\"type\":\"custom\",\"name\":\"scribble\"}]},"
    "{\"type\":\"namespace\",\"name\":\"mcp__tiny\",\"tools\":[{\"type\":\"function\",\"name\":"
    "\"more\"}]},"
    "{\"type\":\"tool_search\",\"execution\":\"client\",\"description\":\"Finds\",\"parameters\":{}"
    "},"
    "{\"type\":\"web_search\",\"external_web_access\":true}],"
    "\"tool_choice\":\"auto\",\"parallel_tool_calls\":true,\"reasoning\":{\"effort\":\"medium\","
    "\"summary\":"
    "\"detailed\"},\"store\":false,\"include\":[\"reasoning.encrypted_content\"],\"prompt_cache_"
    "key\":\"k\","
    "\"text\":{\"verbosity\":\"low\",\"format\":{\"type\":\"json_schema\",\"name\":\"answer\","
    "\"strict\":true,"
    "\"description\":\"d\",\"schema\":{\"type\":\"object\"}}},\"client_metadata\":{\"turn_id\":"
    "\"t\"},"
    "\"max_output_tokens\":99,\"temperature\":0.5,\"top_p\":1,\"instructions\":\"act\","
    "\"metadata\":null}";

static void test_request_survives(void **state)
{
    static const char *const bodies[] = {
        codex_request,
        "{\"model\":\"m\",\"input\":\"hello\"}",
        "{\"model\":\"m\",\"input\":[],\"stream\":false,\"tools\":[],\"instructions\":null}",
        "{\"model\":\"m\",\"prompt\":{\"id\":\"p\"}}",
        "{\"model\":\"m\",\"input\":\"x\",\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"},"
        "\"reasoning\":{\"effort\":\"none\"},\"text\":{\"format\":{\"type\":\"text\"}}}",
        "{\"model\":\"m\",\"input\":\"x\",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":"
        "\"required\","
        "\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]},\"reasoning\":null,"
        "\"text\":{\"format\":{\"type\":\"json_object\"}},\"temperature\":null}",
        "{\"model\":\"m\",\"input\":\"x\",\"tools\":[{\"type\":\"custom\",\"name\":\"f\"}],"
        "\"tool_choice\":{\"type\":\"custom\",\"name\":\"f\"},\"reasoning\":{\"summary\":\"auto\"}"
        "}",
        "{\"model\":\"m\",\"input\":\"x\",\"tool_choice\":{\"type\":\"web_search_preview\"},"
        "\"previous_response_id\":\"resp_1\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        assert_same(TARGET, bodies[i]);
    }
}

static void test_request_is_understood(void **state)
{
    struct llm_request r = read_request(TARGET, codex_request);
    assert_int_equal(r.n_messages, 16);
    assert_true(r.messages[0].developer);
    assert_int_equal(r.messages[0].role, LLM_SYSTEM);
    const struct llm_part *user = r.messages[1].parts;
    assert_true(str_eqc(user[1].media.data, "AAAA"));
    assert_true(str_eqc(user[2].media.url, "https://example.org/a.png"));
    assert_int_equal(user[3].kind, LLM_PART_OTHER);
    assert_int_equal(user[4].media.kind, LLM_MEDIA_DOCUMENT);
    assert_true(str_eqc(user[6].media.mime, "audio/wav"));
    assert_true(str_eqc(r.messages[2].parts[0].text, "hm"));
    assert_true(r.messages[3].parts[0].redacted);
    assert_true(str_eqc(r.messages[4].parts[0].text, "a\n\nb"));
    assert_int_equal(r.messages[5].parts[1].kind, LLM_PART_REFUSAL);
    assert_true(r.messages[6].parts[0].call.custom);
    assert_int_equal(r.messages[7].role, LLM_USER);
    assert_true(str_eqc(r.messages[8].parts[0].call.ns, "mcp__tiny"));
    assert_json(r.messages[8].parts[0].call.input, "/text", "\"n\"");
    assert_int_equal(r.messages[9].parts[0].result.n_parts, 2);
    /* Tools that come with an item are offered like all others. */
    assert_non_null(llm_tool_find(&r, STR("late")));
    assert_non_null(llm_tool_find(&r, STR("mcp__tiny__more")));
    assert_int_equal(llm_tool_find(&r, STR("apply_patch"))->kind, LLM_TOOL_CUSTOM);
    assert_true(r.output.json && r.output.strict && r.reasoning.summary && r.parallel);
    assert_int_equal(r.sampling.max_tokens, 99);
    assert_int_equal(r.choice, LLM_CHOICE_AUTO);
}

static void test_bad_requests(void **state)
{
    assert_bad(TARGET, "{\"input\":1}", "input: must be");
    assert_bad(TARGET, "{\"input\":[1]}", "input[0]: must be an object");
    assert_bad(TARGET, "{\"input\":[{\"role\":\"king\",\"content\":\"\"}]}", "input[0].role");
    assert_bad(TARGET, "{\"input\":[{\"role\":\"user\"}]}", "input[0].content");
    assert_bad(TARGET, "{\"input\":[{\"role\":\"user\",\"content\":[\"x\"]}]}",
               "must hold objects");
    assert_bad(TARGET, "{\"input\":[{\"type\":\"function_call\",\"name\":\"f\"}]}", ".arguments");
    assert_bad(TARGET, "{\"input\":[{\"type\":\"function_call\",\"arguments\":\"\"}]}", ".name");
    assert_bad(TARGET, "{\"input\":[{\"type\":\"function_call_output\",\"output\":\"\"}]}",
               ".call_id");
    assert_bad(TARGET, "{\"input\":\"x\",\"tools\":[{}]}", "tools: must hold");
    assert_bad(TARGET, "{\"input\":\"x\",\"tools\":[{\"type\":\"namespace\",\"name\":\"n\"}]}",
               "a namespace must");
    assert_bad(TARGET, "{\"input\":\"x\",\"tools\":[{\"type\":\"function\"}]}", "a name");
}

/* --- answers --- */

#define EV(type, rest) "event: " type "\ndata: {\"type\":\"" type "\"" rest "}\n\n"
#define MESSAGE                                                                               \
    "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\"," \
    "\"content\":"                                                                            \
    "[{\"type\":\"output_text\",\"text\":\"Hello, world\",\"annotations\":[]}]}"
#define REASONING                                                                               \
    "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":" \
    "\"one\"},"                                                                                 \
    "{\"type\":\"summary_text\",\"text\":\"two\"}],\"encrypted_content\":\"SIG\"}"
#define CALL                                                                               \
    "{\"id\":\"fc_1\",\"type\":\"function_call\",\"call_id\":\"call_1\",\"name\":\"add\"," \
    "\"namespace\":\"ns\","                                                                \
    "\"arguments\":\"{\\\"a\\\":1}\",\"status\":\"completed\"}"
#define CUSTOM                                                                                   \
    "{\"id\":\"ctc_1\",\"type\":\"custom_tool_call\",\"call_id\":\"call_2\",\"name\":\"patch\"," \
    "\"input\":\"*** x\"}"
#define USAGE                                                                                   \
    "\"usage\":{\"input_tokens\":1000,\"input_tokens_details\":{\"cached_tokens\":300},"        \
    "\"output_tokens\":50,\"output_tokens_details\":{\"reasoning_tokens\":7},\"total_tokens\":" \
    "1050}"
#define RESPONSE(status, output)                                              \
    ",\"response\":{\"id\":\"resp_1\",\"model\":\"gpt\",\"status\":\"" status \
    "\",\"output\":[" output "]," USAGE "}"
#define CREATED \
    EV("response.created", ",\"response\":{\"id\":\"resp_1\",\"model\":\"gpt\",\"output\":[]}")
#define AT(n)     ",\"output_index\":" #n
#define DELTA(s)  ",\"delta\":\"" s "\""
#define ALL_ITEMS REASONING "," MESSAGE "," CALL "," CUSTOM

static const char full_stream[] = CREATED EV("response.in_progress", "") EV(
    "response.output_item.added",
    AT(0) ",\"item\":{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}")
    EV("response.reasoning_summary_part.added", AT(0) ",\"summary_index\":0") EV(
        "response.reasoning_summary_text.delta",
        AT(0) ",\"summary_index\":0" DELTA(
            "o")) EV("response.reasoning_summary_text.delta",
                     AT(0) ",\"summary_index\":0" DELTA(
                         "ne")) EV("response.reasoning_summary_text.done",
                                   AT(0) ",\"summary_index\":0,\"text\":\"one\"")
        EV("response.reasoning_summary_text.delta", AT(0) ",\"summary_index\":1" DELTA("two")) EV(
            "response.reasoning_summary_text.done", AT(0) ",\"summary_index\":1,\"text\":\"two\"")
            EV("response.output_item.done", AT(0) ",\"item\":" REASONING) EV(
                "response.output_item.added",
                AT(1) ",\"item\":{\"type\":\"message\",\"content\":[]}")
                EV("response.content_part.added", AT(1) ",\"content_index\":0") EV(
                    "response.output_text.delta", AT(1) ",\"content_index\":0" DELTA("Hello"))
                    EV("response.output_text.delta",
                       AT(1) ",\"content_index\":0" DELTA(
                           ", world")) EV("response.output_text.done",
                                          AT(1) ",\"content_index\":0,\"text\":\"Hello, world\"")
                        EV("response.output_item.done", AT(1) ",\"item\":" MESSAGE) EV(
                            "response.output_item.added",
                            AT(2) ",\"item\":{\"type\":\"function_call\",\"call_id\":\"call_1\","
                                  "\"name\":\"add\",\"namespace\":\"ns\",\"arguments\":\"\"}")
                            EV("response.function_call_arguments.delta", AT(2) DELTA("{\\\"a\\\""))
                                EV("response.function_call_arguments.delta", AT(2) DELTA(":1}"))
                                    EV("response.function_call_arguments.done",
                                       AT(2) ",\"arguments\":\"{\\\"a\\\":1}\"")
                                        EV("response.output_item.done", AT(2) ",\"item\":" CALL)
                                            EV("response.output_item.added",
                                               AT(3) ",\"item\":{\"type\":\"custom_tool_call\","
                                                     "\"call_id\":\"call_2\","
                                                     "\"name\":\"patch\",\"input\":\"\"}")
                                                EV("response.custom_tool_call_input.delta",
                                                   AT(3) DELTA("*** x"))
                                                    EV("response.custom_tool_call_input.done",
                                                       AT(3) ",\"input\":\"*** x\"")
                                                        EV("response.output_item.done",
                                                           AT(3) ",\"item\":" CUSTOM)
                                                            EV("response.completed",
                                                               RESPONSE("completed", ALL_ITEMS));

static const char all_events[] =
    "\nstart resp_1 gpt\nthinking0 one\n\ntwo\nsignature0 SIG"
    "\ntext1 Hello, world\ncall2 call_1 ns/add\ndata2 {\"a\":1}\ncall_end2"
    "\ncall3 call_2 patch custom\ndata3 *** x\ncall_end3"
    "\nusage 700+300/-1>50/7\nstop tool \nend";

static void test_stream(void **state)
{
    assert_events(LLM_RESPONSES, true, full_stream, all_events);
}

/* Servers that send less say the same. */
static void test_sparse_streams(void **state)
{
    static const char items_only[] =
        CREATED EV("response.output_item.done", AT(0) ",\"item\":" REASONING)
            EV("response.output_item.done", AT(1) ",\"item\":" MESSAGE)
                EV("response.output_item.done", AT(2) ",\"item\":" CALL)
                    EV("response.output_item.done", AT(3) ",\"item\":" CUSTOM)
                        EV("response.completed", RESPONSE("completed", ""));
    static const char end_only[] = EV("response.completed", RESPONSE("completed", ALL_ITEMS));
    static const char done_only[] = CREATED EV("response.reasoning_summary_text.done",
                                               AT(0) ",\"summary_index\":0,\"text\":\"one\"")
        EV("response.reasoning_summary_text.done", AT(0) ",\"summary_index\":1,\"text\":\"two\"")
            EV("response.output_item.done", AT(0) ",\"item\":" REASONING) EV(
                "response.output_text.done", AT(1) ",\"content_index\":0,\"text\":\"Hello, world\"")
                EV("response.output_item.added",
                   AT(2) ",\"item\":{\"type\":\"function_call\",\"call_id\":\"call_1\","
                         "\"name\":\"add\",\"namespace\":\"ns\"}")
                    EV("response.function_call_arguments.done",
                       AT(2) ",\"arguments\":\"{\\\"a\\\":1}\"")
                        EV("response.output_item.done", AT(2) ",\"item\":" CALL)
                            EV("response.output_item.done", AT(3) ",\"item\":" CUSTOM)
                                EV("response.completed",
                                   RESPONSE("completed", ALL_ITEMS)) "data: [DONE]\n\n";
    assert_string_equal(list_answer(LLM_RESPONSES, true, STR(items_only), 7), all_events);
    assert_string_equal(list_answer(LLM_RESPONSES, true, STR(end_only), 7), all_events);
    assert_string_equal(list_answer(LLM_RESPONSES, true, STR(done_only), 7), all_events);
}

static void test_body(void **state)
{
    static const char body[] = "{\"id\":\"resp_1\",\"object\":\"response\",\"model\":\"gpt\","
                               "\"status\":\"completed\",\"error\":null,"
                               "\"output\":[" ALL_ITEMS "]," USAGE "}";
    assert_events(LLM_RESPONSES, false, body, all_events);
    assert_string_equal(list_answer(LLM_RESPONSES, false, STR("{\"x\":1}"), 9),
                        "\nfailed: a response without output");
}

static void test_ends(void **state)
{
    static const struct {
        const char *answer, *events;
    } cases[] = {
        { EV("response.incomplete", ",\"response\":{\"status\":\"incomplete\",\"incomplete_"
                                    "details\":{\"reason\":\"max_output_tokens\"},"
                                    "\"output\":[]}"),
          "\nstart  \nstop length \nend" },
        { EV("response.incomplete", ",\"response\":{\"status\":\"incomplete\",\"incomplete_"
                                    "details\":{\"reason\":\"content_filter\"}}"),
          "\nstart  \nstop refusal content_filter\nend" },
        { EV("response.refusal.delta", AT(0) DELTA("no"))
              EV("response.completed", ",\"response\":{\"status\":\"completed\",\"output\":[]}"),
          "\nstart  \nrefusal0 no\nstop refusal \nend" },
        { EV("response.output_item.done",
             AT(0) ",\"item\":{\"type\":\"web_search_call\",\"id\":\"ws\"}")
              EV("response.completed", ",\"response\":{\"status\":\"completed\"}"),
          "\nstart  \nother0 {\"type\":\"web_search_call\",\"id\":\"ws\"}\nstop end \nend" },
        { CREATED, "\nstart resp_1 gpt\nfailed: the response was cut short" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(list_answer(LLM_RESPONSES, true, str_of(cases[i].answer), 1000),
                            cases[i].events);
    }
}

static enum llm_error_kind kind_of_failure(const char *answer)
{
    int kind = -1;
    const char *listed = list_answer(LLM_RESPONSES, true, str_of(answer), 1000);
    const char *at = strstr(listed, "error ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "error %d", &kind), 1);
    assert_non_null(strstr(listed, "\nend"));
    return (enum llm_error_kind)kind;
}

/* The codes that Codex tells apart. */
static void test_failures(void **state)
{
    static const struct {
        const char *code;
        enum llm_error_kind kind;
    } codes[] = {
        { "context_length_exceeded", LLM_ERR_CONTEXT },
        { "rate_limit_exceeded", LLM_ERR_RATE },
        { "insufficient_quota", LLM_ERR_QUOTA },
        { "server_is_overloaded", LLM_ERR_OVERLOADED },
        { "server_error", LLM_ERR_SERVER },
    };
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        const char *failed = arena_printf(
            arena,
            EV("response.failed", ",\"response\":{\"error\":{\"code\":\"%s\",\"message\":\"m\"}}"),
            codes[i].code);
        assert_int_equal(kind_of_failure(failed), codes[i].kind);
        const char *event = arena_printf(
            arena, EV("error", ",\"code\":\"%s\",\"message\":\"m\",\"param\":null"), codes[i].code);
        assert_int_equal(kind_of_failure(event), codes[i].kind);
        /* … and that it must be told: the event that we write says the same. */
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        struct llm_writer *w =
            llm_writer_new(&(struct llm_writer_opts) { .format = LLM_RESPONSES, .stream = true });
        struct llm_event ev = { .kind = LLM_EV_ERROR,
                                .error = { .kind = codes[i].kind, .message = STR("m") } };
        assert_int_equal(llm_writer_event(w, &ev, &out, NULL), 0);
        llm_writer_free(w);
        assert_int_equal(kind_of_failure(out.ptr), codes[i].kind);
        assert_non_null(strstr(out.ptr, "event: response.failed\n"));
    }
}

static void test_written_stream_is_read(void **state)
{
    struct llm_reader_opts from = { .format = LLM_RESPONSES, .stream = true };
    struct llm_writer_opts to = { .format = LLM_RESPONSES, .stream = true, .created = 1700000000 };
    struct str text = rewrite_answer(&from, &to, STR(full_stream));
    assert_string_equal(list_answer(LLM_RESPONSES, true, text, 1000), all_events);
    /* Every event has its number. */
    struct str rest = text;
    int64_t number = 0;
    while (rest.len > 0) {
        struct str line = str_split(&rest, '\n');
        if (str_starts(line, STR("data: "))) {
            struct json *v = parse(str_slice(line, 6, line.len));
            assert_int_equal(json_int(json_get(v, "sequence_number"), -1), number++);
        }
    }
    assert_true(number > 20);
    to.stream = false;
    text = rewrite_answer(&from, &to, STR(full_stream));
    assert_string_equal(list_answer(LLM_RESPONSES, false, text, 1000), all_events);
    assert_json(parse(text), "/usage/input_tokens", "1000");
    assert_json(parse(text), "/output/1/content/0/text", "\"Hello, world\"");
}

/* A client that asked for names of its own gets them back, whatever the upstream was told. */
static void test_names_come_back(void **state)
{
    struct llm_request request = read_request(TARGET, codex_request);
    static const char chunk[] =
        "{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"apply_patch\","
        "\"args\":"
        "{\"input\":\"*** "
        "x\"}}},{\"functionCall\":{\"name\":\"mcp__tiny__add_note\",\"args\":{\"text\":\"n\"}}}]},"
        "\"finishReason\":\"STOP\"}]}";
    struct llm_reader_opts from = { .format = LLM_GEMINI };
    struct llm_writer_opts to = { .format = LLM_RESPONSES, .request = &request };
    struct json *v = parse(rewrite_answer(&from, &to, STR(chunk)));
    assert_json(v, "/output/0/type", "\"custom_tool_call\"");
    assert_json(v, "/output/0/input", "\"*** x\"");
    assert_json(v, "/output/1/namespace", "\"mcp__tiny\"");
    assert_json(v, "/output/1/name", "\"add_note\"");
    assert_true(
        str_starts(json_str(json_pointer(v, STR("/output/1/call_id")), STR_EMPTY), STR("call_")));
}

static void test_tap(void **state)
{
    struct listing l = { .out = BUF_INIT(BUF_TEXT), .last = LLM_EV_END };
    struct llm_tap *t = llm_tap_new(&(struct llm_reader_opts) {
        .format = LLM_RESPONSES, .stream = true, .sink = { list_event, &l } });
    for (size_t i = 0; i < strlen(full_stream); i += 3) {
        llm_tap_feed(t, str_slice(STR(full_stream), i, i + 3));
    }
    llm_tap_end(t);
    llm_tap_free(t);
    assert_string_equal(l.out.ptr, "\nstart resp_1 gpt\ncall2  ns/add\ncall3  patch"
                                   "\nusage 700+300/-1>50/7\nstop tool \nend");
    buf_done(&l.out);
}

/* --- other formats --- */

static void test_server_state_is_refused(void **state)
{
    static const char *const bodies[] = {
        "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}",
        "{\"model\":\"m\",\"input\":\"x\",\"conversation\":\"conv_1\"}",
        "{\"model\":\"m\",\"prompt\":{\"id\":\"p\"}}",
        "{\"model\":\"m\",\"input\":[{\"type\":\"item_reference\",\"id\":\"msg_1\"}]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct llm_request r = read_request(TARGET, bodies[i]);
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        struct err e = { 0 };
        for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
            int expected = f == LLM_RESPONSES ? 0 : -ERR_UNSUPPORTED;
            assert_int_equal(llm_request_write(arena, f, &r, NULL, &out, &e), expected);
        }
    }
}

static void test_from_gemini(void **state)
{
    struct llm_losses losses;
    llm_losses_init(&losses, arena);
    struct llm_request r = read_request(
        "/v1beta/models/g:generateContent",
        "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"go\"}]},"
        "{\"role\":\"model\",\"parts\":[{\"text\":\"hm\",\"thought\":true},{\"text\":\"ok\"},"
        "{\"functionCall\":{\"name\":\"f\",\"args\":{\"a\":1}}},{\"functionCall\":{\"name\":\"f\","
        "\"args\":{}}}]},"
        "{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"f\",\"response\":{"
        "\"output\":\"1\"}}},"
        "{\"functionResponse\":{\"name\":\"f\",\"response\":{\"error\":\"no\"}}}]}],"
        "\"systemInstruction\":{\"parts\":[{\"text\":\"s\"}]},"
        "\"tools\":[{\"functionDeclarations\":[{\"name\":\"f\",\"parameters\":{\"type\":\"OBJECT\","
        "\"properties\":{\"a\":{\"type\":\"INTEGER\",\"nullable\":true}}}}]},{\"googleSearch\":{}}]"
        ","
        "\"generationConfig\":{\"maxOutputTokens\":5,\"topK\":3,\"thinkingConfig\":{"
        "\"thinkingBudget\":9000}}}");
    struct json *v = write_request(LLM_RESPONSES, &r, &losses);
    assert_json(v, "/model", "\"g\"");
    assert_json(v, "/store", "false");
    assert_json(v, "/instructions", "\"s\"");
    assert_json(v, "/max_output_tokens", "5");
    assert_json(v, "/reasoning/effort", "\"medium\"");
    assert_json(v, "/input/1/content", "\"ok\"");
    assert_json(v, "/input/2/arguments", "\"{\\\"a\\\":1}\"");
    assert_json(v, "/input/4/output", "\"1\"");
    /* Calls and results without ids find each other. */
    struct json *first = json_pointer(v, STR("/input/2/call_id"));
    assert_true(json_equal(first, json_pointer(v, STR("/input/4/call_id"))));
    assert_true(json_equal(json_pointer(v, STR("/input/3/call_id")),
                           json_pointer(v, STR("/input/5/call_id"))));
    assert_json(v, "/tools/0/parameters/properties/a/type", "[\"integer\",\"null\"]");
    assert_json(v, "/tools/0/strict", "false");
    assert_int_equal(json_len(json_get(v, "tools")), 1);
    assert_true(has_loss(&losses, "googleSearch"));
    assert_true(has_loss(&losses, "thinking"));
    assert_true(has_loss(&losses, "top_k"));
    assert_true(has_loss(&losses, "is_error"));
    assert_false(has_loss(&losses, "parameters"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, arena_setup, arena_teardown)
        T(test_request_survives),
        T(test_request_is_understood),
        T(test_bad_requests),
        T(test_stream),
        T(test_sparse_streams),
        T(test_body),
        T(test_ends),
        T(test_failures),
        T(test_written_stream_is_read),
        T(test_names_come_back),
        T(test_tap),
        T(test_server_state_is_refused),
        T(test_from_gemini),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
