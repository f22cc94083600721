/* SPDX-License-Identifier: MIT
 *
 * From every format to every other and back: text, calls, results, usage and stop survive; what
 * does not is in the list of losses; what would change the meaning is refused.
 */
#include "digest.h"

static const struct {
    enum llm_format format;
    const char *target;
} formats[] = {
    [LLM_ANTHROPIC] = { LLM_ANTHROPIC, "/v1/messages" },
    [LLM_RESPONSES] = { LLM_RESPONSES, "/v1/responses" },
    [LLM_CHAT] = { LLM_CHAT, "/v1/chat/completions" },
    [LLM_GEMINI] = { LLM_GEMINI, "/v1beta/models/m:streamGenerateContent?alt=sse" },
};

/* --- requests --- */

/* The same conversation as a client of each format sends it. */
static const char *const conversations[] = {
    [LLM_ANTHROPIC] =
        "{'model':'m','max_tokens':100,'stream':true,'system':'be good','temperature':0.5,"
        "'messages':[{'role':'user','content':'go'},"
        "{'role':'assistant','content':[{'type':'text','text':'I write.'},"
        "{'type':'tool_use','id':'c1','name':'write','input':{'path':'a'}},"
        "{'type':'tool_use','id':'c2','name':'read','input':{}}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c1','content':'done'},"
        "{'type':'tool_result','tool_use_id':'c2','content':'words'},"
        "{'type':'text','text':'and now?'}]}],"
        "'tools':[{'name':'write','description':'Writes','input_schema':{'type':'object',"
        "'properties':{'path':{'type':'string'}},'required':['path']}},"
        "{'name':'read','description':'Reads','input_schema':{'type':'object','properties':{}}}],"
        "'tool_choice':{'type':'any'},'stop_sequences':['END'],"
        "'output_config':{'format':{'type':'json_schema','schema':{'type':'object',"
        "'properties':{'a':{'type':'string'}}}}}}",
    [LLM_RESPONSES] =
        "{'model':'m','max_output_tokens':100,'stream':true,'instructions':'be good',"
        "'temperature':0.5,'input':[{'role':'user','content':[{'type':'input_text','text':'go'}]},"
        "{'type':'message','role':'assistant','content':[{'type':'output_text','text':'I "
        "write.'}]},"
        "{'type':'function_call','call_id':'c1','name':'write','arguments':'{\\'path\\':\\'a\\'}'},"
        "{'type':'function_call','call_id':'c2','name':'read','arguments':'{}'},"
        "{'type':'function_call_output','call_id':'c1','output':'done'},"
        "{'type':'function_call_output','call_id':'c2','output':'words'},"
        "{'role':'user','content':'and now?'}],"
        "'tools':[{'type':'function','name':'write','description':'Writes','parameters':{"
        "'type':'object','properties':{'path':{'type':'string'}},'required':['path']}},"
        "{'type':'function','name':'read','description':'Reads','parameters':{'type':'object',"
        "'properties':{}}}],'tool_choice':'required',"
        "'text':{'format':{'type':'json_schema','name':'answer','schema':{'type':'object',"
        "'properties':{'a':{'type':'string'}}}}}}",
    [LLM_CHAT] =
        "{'model':'m','max_tokens':100,'stream':true,'temperature':0.5,"
        "'messages':[{'role':'system','content':'be good'},{'role':'user','content':'go'},"
        "{'role':'assistant','content':'I write.','tool_calls':[{'id':'c1','type':'function',"
        "'function':{'name':'write','arguments':'{\\'path\\':\\'a\\'}'}},{'id':'c2',"
        "'type':'function','function':{'name':'read','arguments':'{}'}}]},"
        "{'role':'tool','tool_call_id':'c1','content':'done'},"
        "{'role':'tool','tool_call_id':'c2','content':'words'},"
        "{'role':'user','content':'and now?'}],"
        "'tools':[{'type':'function','function':{'name':'write','description':'Writes',"
        "'parameters':{'type':'object','properties':{'path':{'type':'string'}},"
        "'required':['path']}}},{'type':'function','function':{'name':'read','description':'Reads',"
        "'parameters':{'type':'object','properties':{}}}}],'tool_choice':'required','stop':['END'],"
        "'response_format':{'type':'json_schema','json_schema':{'name':'answer','schema':{"
        "'type':'object','properties':{'a':{'type':'string'}}}}}}",
    [LLM_GEMINI] =
        "{'systemInstruction':{'parts':[{'text':'be good'}]},'contents':["
        "{'role':'user','parts':[{'text':'go'}]},"
        "{'role':'model','parts':[{'text':'I write.'},"
        "{'functionCall':{'name':'write','args':{'path':'a'}}},"
        "{'functionCall':{'name':'read','args':{}}}]},"
        "{'role':'user','parts':[{'functionResponse':{'name':'write','response':{'output':'done'}}}"
        ","
        "{'functionResponse':{'name':'read','response':{'output':'words'}}},"
        "{'text':'and now?'}]}],"
        "'tools':[{'functionDeclarations':[{'name':'write','description':'Writes',"
        "'parametersJsonSchema':{'type':'object','properties':{'path':{'type':'string'}},"
        "'required':['path']}},{'name':'read','description':'Reads','parametersJsonSchema':{"
        "'type':'object','properties':{}}}]}],'toolConfig':{'functionCallingConfig':{'mode':'ANY'}}"
        ","
        "'generationConfig':{'maxOutputTokens':100,'temperature':0.5,'stopSequences':['END'],"
        "'responseMimeType':'application/json','responseJsonSchema':{'type':'object',"
        "'properties':{'a':{'type':'string'}}}}}",
};

static void add_parts(struct buf *out, const struct llm_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct llm_part *p = &parts[i];
        switch (p->kind) {
        case LLM_PART_TEXT:
            buf_addf(out, "text %.*s\n", STR_ARG(p->text));
            break;
        case LLM_PART_CALL:
            buf_addf(out, "call %.*s %.*s\n", STR_ARG(p->call.name),
                     STR_ARG(text_of_json(p->call.input)));
            break;
        case LLM_PART_RESULT:
            buf_addf(out, "result%s\n", p->result.is_error ? " error" : "");
            if (p->result.value != NULL) {
                buf_addf(out, "text %.*s\n",
                         STR_ARG(json_str(json_get(p->result.value, "output"), STR("?"))));
            } else {
                add_parts(out, p->result.parts, p->result.n_parts);
            }
            break;
        case LLM_PART_MEDIA:
        case LLM_PART_THINKING:
        case LLM_PART_REFUSAL:
        case LLM_PART_OTHER:
            buf_addf(out, "part %d\n", (int)p->kind);
            break;
        }
    }
}

/* What a request asks, however it is cut into messages. */
static const char *request_digest(const struct llm_request *r)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    const struct llm_sampling *s = &r->sampling;
    buf_adds(&out, "system\n");
    add_parts(&out, r->system, r->n_system);
    enum llm_role last = LLM_SYSTEM;
    for (size_t i = 0; i < r->n_messages; i++) {
        if (r->messages[i].role != last) {
            last = r->messages[i].role;
            buf_addf(&out, "%s\n", last == LLM_USER ? "user" : "assistant");
        }
        add_parts(&out, r->messages[i].parts, r->messages[i].n_parts);
    }
    for (size_t i = 0; i < r->n_tools; i++) {
        buf_addf(&out, "tool %.*s %.*s %.*s\n", STR_ARG(r->tools[i].name),
                 STR_ARG(r->tools[i].description), STR_ARG(text_of_json(r->tools[i].schema)));
    }
    buf_addf(&out, "choice %d max %lld temperature %g\n", (int)r->choice, (long long)s->max_tokens,
             s->has_temperature ? s->temperature : -1);
    buf_addf(&out, "output %d %.*s\n", r->output.json, STR_ARG(text_of_json(r->output.schema)));
    return arena_dup(arena, buf_str(&out));
}

static struct llm_request translate(const struct llm_request *r, enum llm_format to,
                                    struct llm_losses *losses)
{
    struct llm_endpoint where = llm_endpoint_of(STR("POST"), str_of(formats[to].target));
    struct llm_request again;
    struct err e = { 0 };
    struct str body = text_of_json(write_request(to, r, losses));
    if (llm_request_read(arena, &where, body, &again, &e) < 0) {
        fail_msg("%s: %s in %.*s", llm_format_name(to), e.msg, STR_ARG(body));
    }
    return again;
}

/* Every result names a call that is there, in order. */
static void assert_answered(const struct llm_request *r)
{
    const char *names[] = { "write", "read" };
    size_t n = 0;
    for (size_t i = 0; i < r->n_messages; i++) {
        for (size_t j = 0; j < r->messages[i].n_parts; j++) {
            const struct llm_part *p = &r->messages[i].parts[j];
            if (p->kind == LLM_PART_RESULT) {
                const struct llm_call *c = llm_call_find(r, p->result.call_id);
                struct str name = c != NULL ? c->name : p->result.name;
                assert_true(n < ARRAY_LEN(names));
                assert_true(str_eqc(name, names[n++]));
            }
        }
    }
    assert_int_equal(n, 2);
}

static void test_conversations(void **state)
{
    const char *want = NULL;
    for (enum llm_format from = 0; from < LLM_FORMAT_MAX; from++) {
        struct llm_request r = read_request(formats[from].target, quoted(conversations[from]));
        want = want == NULL ? request_digest(&r) : want;
        assert_int_equal(llm_turn(&r), 1);
        for (enum llm_format to = 0; to < LLM_FORMAT_MAX; to++) {
            struct llm_losses losses;
            llm_losses_init(&losses, arena);
            struct llm_request there = translate(&r, to, &losses);
            struct llm_request back = translate(&there, from, &losses);
            if (from == LLM_CHAT) { /* whose system text is a message */
                back = translate(&back, LLM_ANTHROPIC, &losses);
            }
            const char *got = request_digest(&back);
            if (strcmp(got, want) != 0) {
                fail_msg("%s to %s and back: should be\n%sis\n%s", llm_format_name(from),
                         llm_format_name(to), want, got);
            }
            assert_answered(&there);
            assert_answered(&back);
            assert_true(there.stream);
        }
    }
}

/* --- answers --- */

static void say(struct llm_writer *w, struct buf *out, struct llm_event ev)
{
    struct err e = { 0 };
    if (llm_writer_event(w, &ev, out, &e) < 0) {
        fail_msg("%s", e.msg);
    }
}

static struct str an_answer(enum llm_format f, bool stream)
{
    struct llm_writer_opts o = {
        .format = f, .stream = stream, .model = STR("m"), .include_usage = true
    };
    struct llm_writer *w = llm_writer_new(&o);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    struct llm_usage u = {
        .input = 700, .cache_read = 300, .cache_write = -1, .output = 50, .reasoning = 10
    };
    say(w, &out, (struct llm_event) { .kind = LLM_EV_START, .id = STR("r1"), .model = STR("m") });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_THINKING, .text = STR("hm") });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_TEXT, .block = 1, .text = STR("Gr\u00fc") });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_TEXT, .block = 1, .text = STR("\u00dfe\n") });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_PING });
    for (uint32_t i = 2; i < 4; i++) { /* begun together: the data interleave */
        say(w, &out,
            (struct llm_event) { .kind = LLM_EV_CALL_BEGIN,
                                 .block = i,
                                 .id = i == 2 ? STR("c1") : STR("c2"),
                                 .name = i == 2 ? STR("write") : STR("read") });
    }
    say(w, &out,
        (struct llm_event) { .kind = LLM_EV_CALL_DATA, .block = 2, .text = STR("{\"path\":") });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_CALL_DATA, .block = 3, .text = STR("{}") });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_CALL_DATA, .block = 2, .text = STR("1}") });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_CALL_END, .block = 3 });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_CALL_END, .block = 2 });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_USAGE, .usage = u });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_STOP, .stop = LLM_STOP_TOOL });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_END });
    llm_writer_free(w);
    return arena_str(arena, buf_str(&out));
}

static const char *plain_digest(enum llm_format f, bool stream, struct str answer)
{
    struct digest d;
    struct err e = { 0 };
    digest_init(&d);
    d.plain = true;
    struct llm_reader_opts o = { .format = f, .stream = stream, .sink = { digest_event, &d } };
    if (feed_in_steps(&o, answer, 7, &e) < 0) {
        fail_msg("%s: %s in %.*s", llm_format_name(f), e.msg, STR_ARG(answer));
    }
    const char *text = digest_text(&d);
    digest_done(&d);
    return text;
}

static void check_pair(enum llm_format from, enum llm_format to, bool stream_from, bool stream_to)
{
    static const char want[] = "text Gr\u00fc\u00dfe\n\n"
                               "call c1 write {\"path\":1}\n"
                               "call c2 read {}\n"
                               "usage 1000 50\n"
                               "stop tool\n"
                               "end\n";
    struct llm_reader_opts reader = { .format = from, .stream = stream_from };
    struct llm_writer_opts writer = {
        .format = to, .stream = stream_to, .include_usage = true, .model = STR("m")
    };
    struct str there = rewrite_answer(&reader, &writer, an_answer(from, stream_from));
    const char *got = plain_digest(to, stream_to, there);
    if (strcmp(got, want) != 0) {
        fail_msg("%s (%d) to %s (%d):\n%sshould be\n%s", llm_format_name(from), stream_from,
                 llm_format_name(to), stream_to, got, want);
    }
    reader = (struct llm_reader_opts) { .format = to, .stream = stream_to };
    writer.format = from;
    writer.stream = stream_from;
    got = plain_digest(from, stream_from, rewrite_answer(&reader, &writer, there));
    assert_string_equal(got, want);
}

static void test_answers(void **state)
{
    for (enum llm_format from = 0; from < LLM_FORMAT_MAX; from++) {
        for (enum llm_format to = 0; to < LLM_FORMAT_MAX; to++) {
            for (unsigned streams = 0; streams < 4; streams++) {
                check_pair(from, to, (streams & 1) != 0, (streams & 2) != 0);
            }
        }
    }
}

static void test_stops(void **state)
{
    static const enum llm_stop stops[] = { LLM_STOP_END, LLM_STOP_LENGTH, LLM_STOP_REFUSAL };
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        for (size_t i = 0; i < ARRAY_LEN(stops) * 2; i++) {
            struct llm_writer_opts o = { .format = f, .stream = i % 2 == 0 };
            struct llm_writer *w = llm_writer_new(&o);
            CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
            say(w, &out, (struct llm_event) { .kind = LLM_EV_START });
            say(w, &out, (struct llm_event) { .kind = LLM_EV_TEXT, .text = STR("x") });
            say(w, &out, (struct llm_event) { .kind = LLM_EV_STOP, .stop = stops[i / 2] });
            say(w, &out, (struct llm_event) { .kind = LLM_EV_END });
            llm_writer_free(w);
            const char *got = plain_digest(f, o.stream, buf_str(&out));
            if (strstr(got, arena_printf(arena, "stop %s", stop_words[stops[i / 2]])) == NULL) {
                fail_msg("%s: %s is %s", llm_format_name(f), stop_words[stops[i / 2]], got);
            }
        }
    }
}

/* --- what only one format has --- */

static void test_losses(void **state)
{
    static const char body[] =
        "{'model':'m','max_tokens':9,'metadata':{'user_id':'u'},'top_k':3,"
        "'messages':[{'role':'user','content':[{'type':'text','text':'x','cache_control':{}}]},"
        "{'role':'assistant','content':[{'type':'thinking','thinking':'hm','signature':'s'},"
        "{'type':'redacted_thinking','data':'r'},"
        "{'type':'server_tool_use','id':'i','name':'web_search','input':{}},"
        "{'type':'tool_use','id':'c','name':'f','input':{}}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c','is_error':true}]}],"
        "'tools':[{'type':'web_search_20250305','name':'web_search'}]}";
    struct llm_request r = read_request("/v1/messages", quoted(body));
    struct llm_losses losses;
    llm_losses_init(&losses, arena);
    struct json *v = write_request(LLM_CHAT, &r, &losses);
    assert_true(has_loss(&losses, "metadata"));
    assert_true(has_loss(&losses, "cache_control"));
    assert_true(has_loss(&losses, "signature"));
    assert_true(has_loss(&losses, "thinking"));
    assert_true(has_loss(&losses, "server_tool_use"));
    assert_true(has_loss(&losses, "web_search_20250305"));
    assert_true(has_loss(&losses, "is_error"));
    assert_true(has_loss(&losses, "top_k"));
    assert_null(json_get(v, "tools"));
    assert_null(json_get(v, "metadata"));
    assert_int_equal(json_len(json_get(v, "messages")), 3);
    /* What one provider signed means nothing to another. */
    struct str gemini = text_of_json(write_request(LLM_GEMINI, &r, NULL));
    assert_true(str_find(gemini, STR("\"s\"")) == gemini.len);
    /* A body without anything special loses nothing. */
    r = read_request("/v1/messages", quoted("{'model':'m','max_tokens':9,'stream':false,"
                                            "'messages':[{'role':'user','content':'x'}]}"));
    llm_losses_init(&losses, arena);
    (void)write_request(LLM_CHAT, &r, &losses);
    assert_int_equal(losses.n, 0);
}

static void test_refused(void **state)
{
    static const struct {
        const char *target, *body;
        enum llm_format to;
    } cases[] = {
        { "/v1/responses", "{'model':'m','input':'x','previous_response_id':'r'}", LLM_CHAT },
        { "/v1/messages",
          "{'model':'m','max_tokens':9,'messages':[],'tools':[{'type':'web_search_20250305',"
          "'name':'web_search'}],'tool_choice':{'type':'tool','name':'web_search'}}",
          LLM_RESPONSES },
        { "/v1/chat/completions",
          "{'model':'m','messages':[{'role':'user','content':[{'type':'input_audio',"
          "'input_audio':{'data':'AAAA','format':'wav'}}]}]}",
          LLM_ANTHROPIC },
        { "/v1/messages",
          "{'model':'m','max_tokens':9,'messages':[{'role':'user','content':[{'type':'document',"
          "'source':{'type':'url','url':'https://example.org/a.pdf'}}]}]}",
          LLM_CHAT },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
        struct llm_request r = read_request(cases[i].target, quoted(cases[i].body));
        struct err e = { 0 };
        assert_int_equal(llm_request_write(arena, cases[i].to, &r, NULL, &out, &e),
                         -ERR_UNSUPPORTED);
        assert_int_equal(out.len, 0);
    }
}

static void test_media(void **state)
{
    static const char body[] =
        "{'model':'m','max_tokens':9,'messages':[{'role':'user','content':["
        "{'type':'image','source':{'type':'base64','media_type':'image/png','data':'AAAA'}},"
        "{'type':'image','source':{'type':'url','url':'https://example.org/a.png'}},"
        "{'type':'document','source':{'type':'base64','media_type':'application/pdf',"
        "'data':'BBBB'},'title':'p.pdf'},"
        "{'type':'document','source':{'type':'text','media_type':'text/plain','data':'words'}}]},"
        "{'role':'assistant','content':[{'type':'tool_use','id':'c','name':'f','input':{}}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c','content':["
        "{'type':'text','text':'see'},{'type':'image','source':{'type':'base64',"
        "'media_type':'image/png','data':'CCCC'}}]}]}]}";
    struct llm_request r = read_request("/v1/messages", quoted(body));
    struct json *v = write_request(LLM_CHAT, &r, NULL);
    assert_json(v, "/messages/0/content/0/image_url/url", "\"data:image/png;base64,AAAA\"");
    assert_json(v, "/messages/0/content/1/image_url/url", "\"https://example.org/a.png\"");
    assert_json(v, "/messages/0/content/2/file",
                quoted("{'filename':'p.pdf','file_data':'data:application/pdf;base64,BBBB'}"));
    assert_json(v, "/messages/0/content/3", quoted("{'type':'text','text':'words'}"));
    assert_json(v, "/messages/2", quoted("{'role':'tool','tool_call_id':'c','content':'see'}"));
    assert_json(v, "/messages/3/content/0/image_url/url", "\"data:image/png;base64,CCCC\"");
    struct llm_request chat = read_request("/v1/chat/completions", text_of_json(v).ptr);
    v = write_request(LLM_ANTHROPIC, &chat, NULL);
    assert_json(v, "/messages/0/content/0",
                quoted("{'type':'image','source':{'type':'base64','media_type':'image/png',"
                       "'data':'AAAA'}}"));
    /* The result stands first, as the provider demands. */
    assert_json(v, "/messages/2/content/0/type", "\"tool_result\"");
    assert_json(v, "/messages/2/content/1/source/data", "\"CCCC\"");
}

/* Compatible servers know one system message, no developer, and the old name of the limit. */
static void test_compatible(void **state)
{
    struct llm_request r = read_request(
        "/v1/responses",
        quoted("{'model':'qwen','instructions':'a','max_output_tokens':7,'input':["
               "{'role':'developer','content':'b'},{'role':'developer','content':[{'type':"
               "'input_text','text':'c'}]},{'role':'user','content':'x'},"
               "{'role':'developer','content':'d'}]}"));
    struct json *v = write_request(LLM_CHAT, &r, NULL);
    assert_json(v, "/messages",
                quoted("[{'role':'system','content':'a\\n\\nb\\n\\nc'},"
                       "{'role':'user','content':'x'},{'role':'system','content':'d'}]"));
    assert_json(v, "/max_tokens", "7");
    r.model = STR("gpt-5.5");
    assert_json(write_request(LLM_CHAT, &r, NULL), "/max_completion_tokens", "7");
    r.model = STR("o3");
    assert_json(write_request(LLM_CHAT, &r, NULL), "/max_completion_tokens", "7");
    r.model = STR("gpt-4o");
    assert_json(write_request(LLM_CHAT, &r, NULL), "/max_tokens", "7");
}

/* Items of Responses are one message of the assistant here: all results must follow it. */
static void test_parallel_items(void **state)
{
    static const char body[] =
        "{'model':'m','input':[{'role':'user','content':'hi'},"
        "{'type':'reasoning','id':'rs','summary':[{'type':'summary_text','text':'hm'}]},"
        "{'type':'message','role':'assistant','content':[{'type':'output_text','text':'I look.'}]},"
        "{'type':'function_call','call_id':'c1','name':'f','arguments':'{}'},"
        "{'type':'reasoning','id':'rs2','summary':[]},"
        "{'type':'function_call','call_id':'c2','name':'g','arguments':'{}'},"
        "{'role':'developer','content':'hurry'},"
        "{'type':'function_call_output','call_id':'c1','output':'r1'},"
        "{'type':'function_call_output','call_id':'c2','output':[{'type':'input_text','text':'r2'},"
        "{'type':'input_image','image_url':'data:image/png;base64,AAAA'}]},"
        "{'type':'reasoning','id':'rs3','summary':[]},{'role':'user','content':'and?'}]}";
    struct llm_request r = read_request("/v1/responses", quoted(body));
    struct json *v = write_request(LLM_CHAT, &r, NULL);
    assert_json(v, "/messages",
                quoted("[{'role':'user','content':'hi'},"
                       "{'role':'assistant','content':'I look.','tool_calls':["
                       "{'id':'c1','type':'function','function':{'name':'f','arguments':'{}'}},"
                       "{'id':'c2','type':'function','function':{'name':'g','arguments':'{}'}}]},"
                       "{'role':'tool','tool_call_id':'c1','content':'r1'},"
                       "{'role':'tool','tool_call_id':'c2','content':'r2'},"
                       "{'role':'system','content':'hurry'},"
                       "{'role':'user','content':[{'type':'image_url','image_url':{"
                       "'url':'data:image/png;base64,AAAA'}}]},"
                       "{'role':'user','content':'and?'}]"));
}

/* --- names that other formats cannot write --- */

static void test_namespaces(void **state)
{
    static const char body[] =
        "{'model':'m','input':[{'role':'user','content':'x'},"
        "{'type':'function_call','call_id':'c','name':'add','namespace':'mcp__tiny',"
        "'arguments':'{}'},{'type':'function_call_output','call_id':'c','output':'ok'},"
        "{'type':'custom_tool_call','call_id':'d','name':'patch','input':'*** x'},"
        "{'type':'custom_tool_call_output','call_id':'d','output':'ok'}],"
        "'tools':[{'type':'namespace','name':'mcp__tiny','tools':[{'type':'function','name':'add',"
        "'parameters':{'type':'object'}}]},{'type':'custom','name':'patch','format':{"
        "'type':'grammar','syntax':'lark','definition':'start: x'}}]}";
    struct llm_request r = read_request("/v1/responses", quoted(body));
    struct json *v = write_request(LLM_ANTHROPIC, &r, NULL);
    assert_json(v, "/tools/0/name", "\"mcp__tiny__add\"");
    assert_json(v, "/tools/1/name", "\"patch\"");
    assert_json(v, "/tools/1/input_schema/required", "[\"input\"]");
    assert_json(v, "/messages/1/content/0/name", "\"mcp__tiny__add\"");
    assert_json(v, "/messages/3/content/0/input", "{\"input\":\"*** x\"}");

    /* The model answers in the flat names; the client hears its own. */
    struct llm_writer_opts o = { .format = LLM_ANTHROPIC, .stream = true };
    struct llm_writer *w = llm_writer_new(&o);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    static const struct {
        struct str name, data;
    } calls[] = { { STR("mcp__tiny__add"), STR("{\"a\":1}") },
                  { STR("patch"), STR("{\"input\":\"*** Begin\\n\"}") } };
    for (uint32_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct str data = calls[i].data;
        say(w, &out,
            (struct llm_event) {
                .kind = LLM_EV_CALL_BEGIN, .block = i, .id = STR("c"), .name = calls[i].name });
        say(w, &out,
            (struct llm_event) {
                .kind = LLM_EV_CALL_DATA, .block = i, .text = str_slice(data, 0, 4) });
        say(w, &out,
            (struct llm_event) {
                .kind = LLM_EV_CALL_DATA, .block = i, .text = str_slice(data, 4, data.len) });
        say(w, &out, (struct llm_event) { .kind = LLM_EV_CALL_END, .block = i });
    }
    say(w, &out, (struct llm_event) { .kind = LLM_EV_STOP, .stop = LLM_STOP_TOOL });
    say(w, &out, (struct llm_event) { .kind = LLM_EV_END });
    llm_writer_free(w);
    struct llm_reader_opts reader = { .format = LLM_ANTHROPIC, .stream = true };
    struct llm_writer_opts writer = { .format = LLM_RESPONSES, .stream = true, .request = &r };
    struct str there = rewrite_answer(&reader, &writer, buf_str(&out));
    const char *got = plain_digest(LLM_RESPONSES, true, there);
    assert_non_null(strstr(got, "call c mcp__tiny/add {\"a\":1}\n"));
    assert_non_null(strstr(got, "call c patch custom *** Begin\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_conversations, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_answers, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_stops, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_losses, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_refused, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_media, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_compatible, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_parallel_items, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_namespaces, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
