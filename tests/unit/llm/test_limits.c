/* SPDX-License-Identifier: MIT
 *
 * What a translation must not write, because the provider refuses it; what it drops and reports;
 * and what it refuses itself, because the meaning would change.
 */
#include "digest.h"

#define CHAT   "/v1/chat/completions"
#define GEMINI "/v1beta/models/m:generateContent"
#define SAID   "'messages':[{'role':'user','content':'hi'}]"

static struct json *translate(const char *target, const char *body, enum llm_format to,
                              struct llm_losses *dropped)
{
    struct llm_request r = read_request(target, quoted(body));
    llm_losses_init(dropped, arena);
    return write_request(to, &r, dropped);
}

/* --- sampling and thinking at Anthropic --- */

static void test_sampling(void **state)
{
    struct llm_losses d;
    struct json *v = translate(GEMINI,
                               "{'contents':[{'role':'user','parts':[{'text':'hi'}]}],"
                               "'generationConfig':{'temperature':0,'topP':0.95,'topK':64,"
                               "'thinkingConfig':{'thinkingBudget':8192}}}",
                               LLM_ANTHROPIC, &d);
    assert_json(v, "/thinking", quoted("{'type':'enabled','budget_tokens':8192}"));
    assert_null(json_get(v, "temperature"));
    assert_null(json_get(v, "top_p"));
    assert_null(json_get(v, "top_k"));
    assert_true(has_loss(&d, "temperature") && has_loss(&d, "top_p") && has_loss(&d, "top_k"));

    v = translate(CHAT,
                  "{'model':'claude-opus-5','temperature':0.2,'top_p':0.9,"
                  "'reasoning_effort':'high'," SAID "}",
                  LLM_ANTHROPIC, &d);
    assert_json(v, "/thinking/type", "\"adaptive\"");
    assert_null(json_get(v, "temperature"));
    assert_null(json_get(v, "top_p"));

    static const struct {
        const char *model;
        bool both;
    } models[] = {
        { "claude-opus-4-1", false },      { "claude-sonnet-4-5", false },
        { "claude-opus-4-6", false },      { "anthropic/claude-haiku-4-5", false },
        { "claude-3-7-sonnet", true },     { "claude-sonnet-4-20250514", true },
        { "claude-opus-4-0", true },       { "kimi-k2", true },
        { "us.anthropic.claude-3", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        const char *body =
            filled("{'model':'@','temperature':0.2,'top_p':0.9," SAID "}", str_of(models[i].model));
        v = translate(CHAT, body, LLM_ANTHROPIC, &d);
        assert_json(v, "/temperature", "0.2");
        if ((json_get(v, "top_p") != NULL) != models[i].both ||
            has_loss(&d, "top_p") == models[i].both) {
            fail_msg("%s", models[i].model);
        }
    }
    v = translate(CHAT, "{'model':'claude-opus-5','temperature':0.2,'top_p':0.9," SAID "}",
                  LLM_ANTHROPIC, &d);
    assert_true(json_get(v, "temperature") == NULL && json_get(v, "top_p") == NULL);
    assert_true(has_loss(&d, "temperature") && has_loss(&d, "top_p"));
}

/* OpenAI's reasoning models refuse them, unless they do not reason. */
static void test_sampling_of_reasoning_models(void **state)
{
    static const struct {
        enum llm_format to;
        const char *model, *reasoning;
        bool sent;
    } rows[] = {
        { LLM_RESPONSES, "gpt-5.5", "", false },
        { LLM_RESPONSES, "gpt-4.1", "", true },
        { LLM_CHAT, "o3", "", false },
        { LLM_CHAT, "qwen3", "", true },
        { LLM_CHAT, "gpt-5.2", "'thinking':{'type':'disabled'},", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct llm_losses d;
        CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
        buf_addf(&body, "{'model':'%s',%s'max_tokens':9,'temperature':0.2," SAID "}", rows[i].model,
                 rows[i].reasoning);
        struct json *v = translate("/v1/messages", body.ptr, rows[i].to, &d);
        if ((json_get(v, "temperature") != NULL) != rows[i].sent ||
            has_loss(&d, "temperature") == rows[i].sent) {
            fail_msg("%s", rows[i].model);
        }
    }
}

/* Thinking models that refuse calls without the thoughts before them get these; others do not. */
static void test_thoughts_of_chat_servers(void **state)
{
    static const char body[] =
        "{'model':'@','max_tokens':9,'messages':[{'role':'user','content':'hi'},"
        "{'role':'assistant','content':[{'type':'thinking','thinking':'first ','signature':''},"
        "{'type':'tool_use','id':'c1','name':'f','input':{}}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c1','content':'x'}]},"
        "{'role':'assistant','content':[{'type':'tool_use','id':'c2','name':'f','input':{}}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c2','content':'x'}]},"
        "{'role':'assistant','content':[{'type':'thinking','thinking':'last','signature':''},"
        "{'type':'text','text':'done'}]},{'role':'user','content':'again'}]}";
    static const struct {
        const char *model;
        bool wants;
    } rows[] = {
        { "deepseek-v4-pro", true },
        { "deepseek/deepseek-v3.2", true },
        { "kimi-k2-thinking", true },
        { "moonshotai/Kimi-K2.6", true },
        { "glm-4.7", true },
        { "mimo-v2-flash", true },
        { "kimi-k2-instruct-0905", false },
        { "gpt-4.1", false },
        { "mistral-large", false },
        { "qwen3", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct llm_losses d;
        struct json *v =
            translate("/v1/messages", filled(body, str_of(rows[i].model)), LLM_CHAT, &d);
        if (rows[i].wants) {
            assert_json(v, "/messages/1/reasoning_content", "\"first \"");
            assert_json(v, "/messages/3/reasoning_content", "\"\"");
        } else {
            assert_null(json_pointer(v, STR("/messages/1/reasoning_content")));
            assert_null(json_pointer(v, STR("/messages/3/reasoning_content")));
        }
        assert_null(json_pointer(v, STR("/messages/5/reasoning_content")));
        assert_true(has_loss(&d, "messages[]: thinking"));
    }
}

/* A budget for thinking needs the thought before the calls whose results are sent. */
static void test_thinking_in_a_tool_turn(void **state)
{
    static const char body[] =
        "{'contents':[{'role':'user','parts':[{'text':'hi'}]},"
        "{'role':'model','parts':[{'functionCall':{'name':'f','args':{}}}]},"
        "{'role':'user','parts':[{'functionResponse':{'name':'f','response':{'output':'r'}}}]}@],"
        "'generationConfig':{'temperature':0.5,'thinkingConfig':{'thinkingBudget':8192}}}";
    struct llm_losses d;
    struct json *v = translate(GEMINI, filled(body, STR_EMPTY), LLM_ANTHROPIC, &d);
    assert_null(json_get(v, "thinking"));
    assert_json(v, "/temperature", "0.5");
    assert_true(has_loss(&d, "reasoning"));
    v = translate(GEMINI,
                  filled(body, STR(",{'role':'model','parts':[{'text':'Done.'}]},"
                                   "{'role':'user','parts':[{'text':'more'}]}")),
                  LLM_ANTHROPIC, &d);
    assert_json(v, "/thinking/type", "\"enabled\"");
}

static void test_effort(void **state)
{
    struct llm_losses d;
    static const char body[] = "{'model':'@','max_tokens':9000,'thinking':{'type':'adaptive'},"
                               "'output_config':{'effort':'high'}," SAID "}";
    struct json *v = translate("/v1/messages", filled(body, STR("gemini-3-pro")), LLM_GEMINI, &d);
    assert_json(v, "/generationConfig/thinkingConfig/thinkingLevel", "\"HIGH\"");
    assert_null(json_pointer(v, STR("/generationConfig/thinkingConfig/thinkingBudget")));
    v = translate("/v1/messages", filled(body, STR("gemini-2.5-pro")), LLM_GEMINI, &d);
    assert_json(v, "/generationConfig/thinkingConfig/thinkingBudget", "24576");
    assert_null(json_pointer(v, STR("/generationConfig/thinkingConfig/thinkingLevel")));
    /* OpenAI hands its reasoning out only when it is asked to. */
    v = translate("/v1/messages", filled(body, STR("gpt-6")), LLM_RESPONSES, &d);
    assert_json(v, "/include", "[\"reasoning.encrypted_content\"]");
    v = translate(CHAT, "{'model':'gpt-4.1'," SAID "}", LLM_RESPONSES, &d);
    assert_null(json_get(v, "include"));
}

/* --- carried over in another way --- */

static void test_json_mode(void **state)
{
    struct llm_losses d;
    struct json *v = translate(
        CHAT, "{'model':'m','response_format':{'type':'json_object'}," SAID "}", LLM_ANTHROPIC, &d);
    struct str text = json_str(json_pointer(v, STR("/system/0/text")), STR_EMPTY);
    assert_true(str_find(text, STR("JSON object")) < text.len);
    assert_int_equal(d.n, 0);
}

static void test_response_beside_parts(void **state)
{
    static const char body[] =
        "{'contents':[{'role':'user','parts':[{'text':'hi'}]},"
        "{'role':'model','parts':[{'functionCall':{'id':'c','name':'f','args':{}}}]},"
        "{'role':'user','parts':[{'functionResponse':{'id':'c','name':'f','response':{"
        "'output':'IMPORTANT'},'parts':[{'inlineData':{'mimeType':'image/png','data':'AAAA'}}]}}]}"
        "]}";
    struct llm_losses d;
    struct json *v = translate(GEMINI, body, LLM_CHAT, &d);
    assert_json(v, "/messages/2/content", "\"IMPORTANT\"");
    assert_json(v, "/messages/3/content/0/image_url/url", "\"data:image/png;base64,AAAA\"");
    v = translate(GEMINI, body, LLM_ANTHROPIC, &d);
    assert_json(v, "/messages/2/content/0/content/0/text", "\"IMPORTANT\"");
    assert_json(v, "/messages/2/content/0/content/1/source/data", "\"AAAA\"");
    v = translate(GEMINI, body, LLM_RESPONSES, &d);
    assert_json(v, "/input/2/output/0/text", "\"IMPORTANT\"");
    assert_json(v, "/input/2/output/1/image_url", "\"data:image/png;base64,AAAA\"");
}

static void test_images_in_responses(void **state)
{
    struct str answer =
        str_of(quoted("{'candidates':[{'content':{'parts':[{'inlineData':{'mimeType':'image/png',"
                      "'data':'AAAA'}}]},'finishReason':'STOP'}]}"));
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        for (int i = 0; f != LLM_GEMINI && i < 2; i++) {
            struct llm_losses d;
            llm_losses_init(&d, arena);
            struct llm_reader_opts from = { .format = LLM_GEMINI };
            struct llm_writer_opts to = { .format = f, .stream = i == 0, .losses = &d };
            struct str got = rewrite_answer(&from, &to, answer);
            assert_true(str_find(got, STR("image/png omitted")) < got.len);
            assert_int_equal(d.n, 1);
        }
    }
}

static void test_refusals_of_models(void **state)
{
    struct str chat = str_of(quoted("{'choices':[{'message':{'content':null,'refusal':'No.'},"
                                    "'finish_reason':'stop'}]}"));
    static const char *const expected[] = {
        [LLM_ANTHROPIC] = "'stop_reason':'refusal'",
        [LLM_RESPONSES] = "'refusal':'No.'",
        [LLM_CHAT] = "'refusal':'No.'",
        [LLM_GEMINI] = "'finishReason':'SAFETY'",
    };
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        struct llm_reader_opts from = { .format = LLM_CHAT };
        struct llm_writer_opts to = { .format = f };
        struct str got = rewrite_answer(&from, &to, chat);
        if (str_find(got, str_of(quoted(expected[f]))) == got.len ||
            str_find(got, STR("No.")) == got.len) {
            fail_msg("%s: %.*s", llm_format_name(f), STR_ARG(got));
        }
    }
}

/* --- refused --- */

#define RESPONSES "/v1/responses"
#define MESSAGES  "/v1/messages"
#define ASK       "{'model':'m','max_tokens':9,"
#define PART(p)   ASK "'messages':[{'role':'user','content':[" p ",{'type':'text','text':'x'}]}]}"
#define CONFIG(c) "{'contents':[{'role':'user','parts':[{'text':'x'}]}],'generationConfig':{" c "}}"

static const struct {
    const char *target, *body, *why;
} refused[] = {
    { MESSAGES, PART("{'type':'document','source':{'type':'file','file_id':'file_1'}}"), "a file" },
    { MESSAGES,
      ASK "'messages':[{'role':'user','content':[{'type':'tool_result','tool_use_id':'c',"
          "'content':[{'type':'image','source':{'type':'file','file_id':'f'}}]}]}]}",
      "a file" },
    { CHAT, PART("{'type':'file','file':{'file_id':'file-1'}}"), "a file" },
    { RESPONSES,
      "{'model':'m','input':[{'role':'user','content':[{'type':'input_file','file_id':'f'}]}]}",
      "a file" },
    { RESPONSES,
      "{'model':'m','input':[{'role':'user','content':[{'type':'input_image','file_id':'f'}]}]}",
      "a file" },
    { GEMINI,
      "{'contents':[{'role':'user','parts':[{'fileData':{'mimeType':'image/png','fileUri':"
      "'https://generativelanguage.googleapis.com/v1beta/files/a'}}]}]}",
      "a file" },
    { CHAT, ASK "'n':2," SAID "}", "n: several" },
    { GEMINI, CONFIG("'candidateCount':2"), "candidateCount" },
    { CHAT, ASK "'logprobs':true," SAID "}", "logprobs" },
    { RESPONSES, "{'model':'m','input':'x','top_logprobs':3}", "logprobs" },
    { RESPONSES, "{'model':'m','input':'x','include':['message.output_text.logprobs']}",
      "logprobs" },
    { GEMINI, CONFIG("'responseLogprobs':true"), "responseLogprobs" },
    { CHAT, ASK "'modalities':['text','audio'],'audio':{'voice':'a'}," SAID "}", "modalities" },
    { GEMINI, CONFIG("'responseModalities':['TEXT','IMAGE']"), "responseModalities" },
    { RESPONSES, "{'model':'m','input':'x','background':true}", "background" },
    { RESPONSES, "{'model':'m','input':[]}", "no message" },
    { CHAT, ASK "'messages':[]}", "no message" },
    { MESSAGES, ASK "'messages':[]}", "no message" },
    { GEMINI, "{'contents':[]}", "no message" },
    { RESPONSES,
      "{'model':'m','input':'x','tools':[{'type':'web_search'}],'tool_choice':'required'}",
      "web_search" },
    { RESPONSES,
      "{'model':'m','input':'x','tools':[{'type':'file_search','vector_store_ids':['v']}],"
      "'tool_choice':{'type':'file_search'}}",
      "file_search" },
    { MESSAGES,
      ASK "'tools':[{'type':'web_search_20250305','name':'web_search'}],"
          "'tool_choice':{'type':'tool','name':'web_search'}," SAID "}",
      "web_search" },
};

static void test_refused(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct llm_request r = read_request(refused[i].target, quoted(refused[i].body));
        for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
            CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
            struct err e = { 0 };
            int result = llm_request_write(arena, f, &r, NULL, &out, &e);
            if (f == r.format) {
                assert_int_equal(result, 0);
            } else if (result != -ERR_UNSUPPORTED || strstr(e.msg, refused[i].why) == NULL) {
                fail_msg("%s to %s: %d %s", refused[i].body, llm_format_name(f), result, e.msg);
            }
        }
    }
}

/* --- dropped and reported --- */

static void test_server_tools(void **state)
{
    static const struct {
        const char *target, *body, *what;
    } cases[] = {
        { RESPONSES,
          "{'model':'m','input':'x','tools':[{'type':'function','name':'f','parameters':{}},"
          "{'type':'web_search'}],'tool_choice':'required'}",
          "web_search" },
        { RESPONSES, "{'model':'m','input':'x','tools':[{'type':'web_search'}]}", "web_search" },
        { RESPONSES,
          "{'model':'m','input':'x','tools':[{'type':'code_interpreter','container':{}}]}",
          "code_interpreter" },
        { MESSAGES, ASK "'tools':[{'type':'web_search_20250305','name':'web_search'}]," SAID "}",
          "web_search" },
        { GEMINI,
          "{'contents':[{'role':'user','parts':[{'text':'x'}]}],'tools':[{'googleSearch':{}},"
          "{'codeExecution':{}}]}",
          "codeExecution" },
        { CHAT, ASK "'web_search_options':{}," SAID "}", "web_search_options" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct llm_request r = read_request(cases[i].target, quoted(cases[i].body));
        for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
            struct llm_losses d;
            llm_losses_init(&d, arena);
            (void)write_request(f, &r, &d);
            if (has_loss(&d, cases[i].what) != (f != r.format)) {
                fail_msg("%s to %s", cases[i].body, llm_format_name(f));
            }
        }
    }
}

static void test_line(void **state)
{
    struct llm_losses d;
    llm_losses_init(&d, arena);
    assert_int_equal(llm_losses_line(arena, &d).len, 0);
    llm_lost(&d, STR("top_k"), "why");
    llm_lost(&d, STR("tools[]: f\u00fc\r\nX: y"), "why");
    assert_string_equal(llm_losses_line(arena, &d).ptr, "top_k, tools[]: f????X: y");
    for (int i = 0; i < 100; i++) {
        llm_lost(&d, str_of(arena_printf(arena, "a_member_with_a_long_name_%d", i)), "why");
    }
    struct str line = llm_losses_line(arena, &d);
    assert_in_range(line.len, 900, 1300);
    assert_true(str_ends(line, STR(" more")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sampling, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_sampling_of_reasoning_models, arena_setup,
                                        arena_teardown),
        cmocka_unit_test_setup_teardown(test_thinking_in_a_tool_turn, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_thoughts_of_chat_servers, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_effort, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_json_mode, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_response_beside_parts, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_images_in_responses, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_refusals_of_models, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_refused, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_server_tools, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_line, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
