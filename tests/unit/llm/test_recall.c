/* SPDX-License-Identifier: MIT
 *
 * Second turns: what a provider signed comes back to it, whatever the client's format is and
 * whether the client sends thoughts back or only calls; what another provider signed does not.
 */
#include "digest.h"
#include "llm/store.h"

static struct llm_store *store;

static int store_setup(void **state)
{
    store = llm_store_new(0);
    return arena_setup(state);
}

static int store_teardown(void **state)
{
    store = llm_store_free(store);
    return arena_teardown(state);
}

static const char *const targets[] = {
    [LLM_ANTHROPIC] = "/v1/messages",
    [LLM_RESPONSES] = "/v1/responses",
    [LLM_CHAT] = "/v1/chat/completions",
    [LLM_GEMINI] = "/v1beta/models/m:generateContent",
};

/* A thought, a text and two calls, as each provider signs them. */
static const char *const responses[] = {
    [LLM_ANTHROPIC] =
        "{'type':'message','id':'m','model':'m','content':[{'type':'thinking','thinking':'hm',"
        "'signature':'SIG+A='},{'type':'text','text':'I look.'},{'type':'tool_use','id':'c1',"
        "'name':'f','input':{'a':1}},{'type':'tool_use','id':'c2','name':'g','input':{}}],"
        "'stop_reason':'tool_use'}",
    [LLM_RESPONSES] =
        "{'id':'resp','model':'m','status':'completed','output':[{'type':'reasoning','id':'rs_1',"
        "'summary':[{'type':'summary_text','text':'hm'}],'encrypted_content':'SIG+A='},"
        "{'type':'message','role':'assistant','content':[{'type':'output_text','text':'I look.'}]},"
        "{'type':'function_call','call_id':'c1','name':'f','arguments':'{\\'a\\':1}'},"
        "{'type':'function_call','call_id':'c2','name':'g','arguments':'{}'}]}",
    [LLM_CHAT] =
        "{'id':'x','model':'m','choices':[{'message':{'content':'I look.','reasoning':'hm',"
        "'reasoning_details':[{'type':'reasoning.text','text':'hm','signature':'SIG+A='}],"
        "'tool_calls':[{'id':'c1','type':'function','function':{'name':'f','arguments':"
        "'{\\'a\\':1}'}},{'id':'c2','type':'function','function':{'name':'g','arguments':'{}'}}]},"
        "'finish_reason':'tool_calls'}]}",
    [LLM_GEMINI] =
        "{'candidates':[{'content':{'parts':[{'text':'hm','thought':true},"
        "{'text':'I look.'},{'functionCall':{'id':'c1','name':'f','args':{'a':1}},"
        "'thoughtSignature':'SIG+A='},{'functionCall':{'id':'c2','name':'g','args':{}}}]},"
        "'finishReason':'STOP'}]}",
};

/* Where the next request must have the signature, and what stands around it. */
static const struct {
    const char *pointer, *expected;
} signatures[] = {
    [LLM_ANTHROPIC] = { "/messages/1/content/0",
                        "{'type':'thinking','thinking':'hm','signature':'SIG+A='}" },
    [LLM_RESPONSES] = { "/input/1",
                        "{'type':'reasoning','id':'rs_1','summary':[{'type':'summary_text',"
                        "'text':'hm'}],'encrypted_content':'SIG+A='}" },
    [LLM_CHAT] = { "/messages/1/reasoning_details",
                   "[{'type':'reasoning.text','signature':'SIG+A=','text':'hm'}]" },
    [LLM_GEMINI] = { "/contents/1/parts/1", "{'functionCall':{'id':'c1','name':'f','args':{'a':1}},"
                                            "'thoughtSignature':'SIG+A='}" },
};

/* The next request of a client that sends back what it got: all of it, or no thoughts. */
static const char *next_request(enum llm_format f, struct str response, bool thoughts)
{
    const struct json *v = parse(response);
    struct json *kept = json_array(arena);
    static const char *const lists[] = {
        [LLM_ANTHROPIC] = "/content",
        [LLM_RESPONSES] = "/output",
        [LLM_CHAT] = "/choices/0/message",
        [LLM_GEMINI] = "/candidates/0/content/parts",
    };
    struct json *list = json_pointer(v, str_of(lists[f]));
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        struct json *item = json_item(list, i);
        struct str type = json_str(json_get(item, "type"), STR_EMPTY);
        bool thought = str_ends(type, STR("thinking")) || str_eqc(type, "reasoning") ||
                       json_bool(json_get(item, "thought"), false);
        if (thoughts || !thought) {
            json_push(arena, kept, item);
        }
    }
    struct str back = text_of_json(json_is(list, JSON_ARRAY) ? kept : list);
    static const char *const bodies[] = {
        [LLM_ANTHROPIC] =
            "{'model':'m','max_tokens':9000,'messages':[{'role':'user','content':'hi'},"
            "{'role':'assistant','content':@},{'role':'user','content':["
            "{'type':'tool_result','tool_use_id':'c1','content':'r1'},"
            "{'type':'tool_result','tool_use_id':'c2','content':'r2'}]}]}",
        [LLM_RESPONSES] = "{'model':'m','input':[{'role':'user','content':'hi'},@,"
                          "{'type':'function_call_output','call_id':'c1','output':'r1'},"
                          "{'type':'function_call_output','call_id':'c2','output':'r2'}]}",
        [LLM_CHAT] = "{'model':'m','messages':[{'role':'user','content':'hi'},@,"
                     "{'role':'tool','tool_call_id':'c1','content':'r1'},"
                     "{'role':'tool','tool_call_id':'c2','content':'r2'}]}",
        [LLM_GEMINI] = "{'contents':[{'role':'user','parts':[{'text':'hi'}]},"
                       "{'role':'model','parts':@},{'role':'user','parts':["
                       "{'functionResponse':{'id':'c1','name':'f','response':{'output':'r1'}}},"
                       "{'functionResponse':{'id':'c2','name':'g','response':{'output':'r2'}}}]}]}",
    };
    if (f == LLM_RESPONSES) { /* without the brackets */
        back = str_slice(back, 1, back.len - 1);
    }
    return filled(bodies[f], back);
}

static struct str translated(enum llm_format from, enum llm_format to, bool stream)
{
    struct llm_reader_opts r = { .format = from };
    struct llm_writer_opts w = {
        .format = to,
        .stream = stream,
        .translated = true,
        .from = from,
        .store = store,
        .model = STR("m"),
        .seed = 7,
    };
    return rewrite_answer(&r, &w, str_of(quoted(responses[from])));
}

static void check_pair(enum llm_format upstream, enum llm_format client, bool thoughts)
{
    struct llm_losses dropped;
    const char *body = next_request(client, translated(upstream, client, false), thoughts);
    struct llm_request r = read_request(targets[client], body);
    r.store = store;
    llm_losses_init(&dropped, arena);
    struct json *v = write_request(upstream, &r, &dropped);
    assert_json(v, signatures[upstream].pointer, quoted(signatures[upstream].expected));
    struct str text = text_of_json(v);
    assert_true(str_find(text, STR("Y2luY2gx")) == text.len);
    if (upstream != LLM_GEMINI && dropped.n > 0) { /* of Gemini's thought only the text is lost */
        fail_msg("%s on %s: dropped %s", llm_format_name(client), llm_format_name(upstream),
                 dropped.items[0].what);
    }
}

static void test_round_trips(void **state)
{
    for (enum llm_format up = 0; up < LLM_FORMAT_MAX; up++) {
        for (enum llm_format client = 0; client < LLM_FORMAT_MAX; client++) {
            if (up != client) {
                check_pair(up, client, true);
                check_pair(up, client, false);
            }
        }
    }
}

/* Without the store, where the client's format has a place for signatures of thoughts. */
static void test_without_store(void **state)
{
    static const enum llm_format formats[] = { LLM_ANTHROPIC, LLM_RESPONSES, LLM_GEMINI };
    for (size_t i = 0; i < ARRAY_LEN(formats) * ARRAY_LEN(formats); i++) {
        enum llm_format up = formats[i / 3], client = formats[i % 3];
        if (up == client || up == LLM_GEMINI) {
            continue;
        }
        struct llm_store *kept = store;
        store = NULL;
        check_pair(up, client, true);
        store = kept;
    }
}

/* A client of Gemini that gathers a stream has a thought in pieces. */
static void test_pieces(void **state)
{
    struct str stream = translated(LLM_ANTHROPIC, LLM_GEMINI, true);
    struct json *parts = json_array(arena);
    while (stream.len > 0) {
        struct str line = str_trim(str_split(&stream, '\n'));
        if (!str_starts(line, STR("data: "))) {
            continue;
        }
        const struct json *list =
            json_pointer(parse(str_slice(line, 6, line.len)), STR("/candidates/0/content/parts"));
        for (size_t i = 0; i < json_len(list); i++) {
            json_push(arena, parts, json_item(list, i));
        }
    }
    llm_store_put(store, STR("call:c1"), STR_EMPTY); /* only what the client has */
    const char *body =
        filled("{'contents':[{'role':'user','parts':[{'text':'hi'}]},{'role':'model',"
               "'parts':@},{'role':'user','parts':[{'text':'go'}]}]}",
               text_of_json(parts));
    struct llm_request r = read_request(targets[LLM_GEMINI], body);
    r.store = store;
    assert_json(write_request(LLM_ANTHROPIC, &r, NULL), "/messages/1/content/0",
                quoted(signatures[LLM_ANTHROPIC].expected));
}

/* What one provider signed is not sent to another, and Gemini is told that its own is unknown. */
static void test_lost(void **state)
{
    struct llm_losses dropped;
    const char *body =
        next_request(LLM_ANTHROPIC, translated(LLM_RESPONSES, LLM_ANTHROPIC, false), true);
    struct llm_request r = read_request(targets[LLM_ANTHROPIC], body);
    r.store = store;
    llm_losses_init(&dropped, arena);
    struct json *v = write_request(LLM_GEMINI, &r, &dropped);
    assert_true(has_loss(&dropped, "signature"));
    assert_json(v, "/contents/1/parts/1/thoughtSignature", "\"skip_thought_signature_validator\"");
    assert_null(json_pointer(v, STR("/contents/1/parts/2/thoughtSignature")));
    struct str text = text_of_json(v);
    assert_true(str_find(text, STR("SIG+A=")) == text.len);
    r.model = STR("gemini-2.5-pro"); /* which knows no such word */
    v = write_request(LLM_GEMINI, &r, NULL);
    assert_null(json_pointer(v, STR("/contents/1/parts/1/thoughtSignature")));
}

/* Gemini signs the last text of a response, too. */
static void test_signed_text(void **state)
{
    struct llm_reader_opts from = { .format = LLM_GEMINI };
    struct llm_writer_opts to = {
        .format = LLM_CHAT,
        .translated = true,
        .from = LLM_GEMINI,
        .store = store,
    };
    (void)rewrite_answer(&from, &to,
                         str_of(quoted("{'candidates':[{'content':{'parts':[{'text':'Hel'},"
                                       "{'text':'lo','thoughtSignature':'SIG'}]},"
                                       "'finishReason':'STOP'}]}")));
    struct llm_request r = read_request(
        targets[LLM_CHAT], quoted("{'model':'m','messages':[{'role':'user','content':'hi'},"
                                  "{'role':'assistant','content':'Hello'},"
                                  "{'role':'user','content':'more'}]}"));
    r.store = store;
    assert_json(write_request(LLM_GEMINI, &r, NULL), "/contents/1/parts",
                quoted("[{'text':'Hello','thoughtSignature':'SIG'}]"));
}

/* Ids that the gateway makes are unique across requests with seeds in a row. */
static void test_ids(void **state)
{
    CLEANUP(buf) struct buf seen = BUF_INIT(BUF_TEXT);
    for (uint64_t seed = 1; seed < 40; seed++) {
        struct llm_reader_opts from = { .format = LLM_GEMINI };
        struct llm_writer_opts to = { .format = LLM_CHAT, .translated = true, .seed = seed };
        struct json *v = parse(rewrite_answer(
            &from, &to,
            str_of(quoted("{'candidates':[{'content':{'parts':[{'functionCall':{'name':'f'}},"
                          "{'functionCall':{'name':'f'}}]},'finishReason':'STOP'}]}"))));
        for (int i = 0; i < 2; i++) {
            struct str id = json_str(
                json_pointer(v,
                             str_of(arena_printf(arena, "/choices/0/message/tool_calls/%d/id", i))),
                STR_EMPTY);
            assert_true(id.len > 10 && str_find(buf_str(&seen), id) == seen.len);
            buf_add(&seen, id);
        }
    }
}

/* --- references --- */

static void test_references(void **state)
{
    struct llm_request asked =
        read_request(targets[LLM_RESPONSES], "{\"input\":\"hi\",\"model\":\"m\"}");
    struct llm_reader_opts from = { .format = LLM_ANTHROPIC };
    struct llm_writer_opts to = { .format = LLM_RESPONSES,
                                  .translated = true,
                                  .from = LLM_ANTHROPIC,
                                  .store = store,
                                  .request = &asked,
                                  .seed = 3 };
    struct json *v = parse(rewrite_answer(&from, &to, str_of(quoted(responses[LLM_ANTHROPIC]))));
    CLEANUP(buf) struct buf body = BUF_INIT(BUF_TEXT);
    buf_adds(&body, quoted("{'model':'m','input':[{'role':'user','content':'hi'}"));
    const struct json *output = json_get(v, "output");
    assert_int_equal(json_len(output), 4);
    for (size_t i = 0; i < json_len(output); i++) {
        struct str id = json_str(json_get(json_item(output, i), "id"), STR_EMPTY);
        buf_addf(&body, ",{\"type\":\"item_reference\",\"id\":\"%.*s\"}", STR_ARG(id));
    }
    buf_adds(&body, quoted(",{'type':'function_call_output','call_id':'c1','output':'r1'},"
                           "{'type':'function_call_output','call_id':'c2','output':'r2'}]}"));
    struct llm_request r = read_request(targets[LLM_RESPONSES], body.ptr);
    r.store = store;
    struct json *w = write_request(LLM_ANTHROPIC, &r, NULL);
    assert_json(w, "/messages/1/content",
                quoted("[{'type':'thinking','thinking':'hm','signature':'SIG+A='},"
                       "{'type':'text','text':'I look.'},"
                       "{'type':'tool_use','id':'c1','name':'f','input':{'a':1}},"
                       "{'type':'tool_use','id':'c2','name':'g','input':{}}]"));
    /* Unknown ones are refused with what helps; and nothing is stored for a client that stores. */
    struct err e = { 0 };
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    r.store = NULL;
    assert_int_equal(llm_request_write(arena, LLM_ANTHROPIC, &r, NULL, &out, &e), -ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "store: false"));
    asked =
        read_request(targets[LLM_RESPONSES], "{\"input\":\"hi\",\"model\":\"m\",\"store\":false}");
    size_t before = llm_store_count(store);
    to.seed = 4;
    (void)rewrite_answer(&from, &to, str_of(quoted(responses[LLM_ANTHROPIC])));
    assert_int_equal(llm_store_count(store), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trips, store_setup, store_teardown),
        cmocka_unit_test_setup_teardown(test_without_store, store_setup, store_teardown),
        cmocka_unit_test_setup_teardown(test_pieces, store_setup, store_teardown),
        cmocka_unit_test_setup_teardown(test_lost, store_setup, store_teardown),
        cmocka_unit_test_setup_teardown(test_signed_text, store_setup, store_teardown),
        cmocka_unit_test_setup_teardown(test_ids, store_setup, store_teardown),
        cmocka_unit_test_setup_teardown(test_references, store_setup, store_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
