/* SPDX-License-Identifier: MIT
 *
 * Chat servers that differ from OpenAI's: what they send means the same, streamed and whole, and no
 * client sees a word of theirs that its own format does not have.
 */
#include "digest.h"

#define ID             "'id':'x','model':'m'"
#define CHUNK(d, rest) "data: {" ID ",'choices':[{'index':0,'delta':" d rest "}]}\n\n"
#define DELTA(d)       CHUNK(d, ",'finish_reason':null")
#define FINISH(word)   CHUNK("{}", ",'finish_reason':'" word "'")
#define COUNTS         "'usage':{'prompt_tokens':10,'completion_tokens':5}"
#define USAGE          "data: {" ID ",'choices':[]," COUNTS "}\n\n"
#define DONE           "data: [DONE]\n\n"
#define CALL(index, id, name, args) \
    "{'tool_calls':[{" index id "'type':'function','function':{" name "'arguments':" args "}}]}"
#define HELLO "start x m\ntext Hello\nusage "

static void assert_stream(const char *what, const char *stream, const char *expected)
{
    struct str text = str_of(quoted(stream));
    for (size_t step = 1; step <= text.len; step += step < 20 ? 1 : 37) {
        const char *got = digest_answer(LLM_CHAT, true, text, step);
        if (strcmp(got, quoted(expected)) != 0) {
            fail_msg("%s, in pieces of %zu:\n%sshould be\n%s", what, step, got, quoted(expected));
        }
    }
}

static void assert_body(const char *what, const char *message, const char *finish,
                        const char *expected)
{
    const char *body = arena_printf(arena,
                                    "{'id':'x','model':'m','choices':[{'index':0,'message':%s,"
                                    "'finish_reason':%s}]}",
                                    message, finish);
    const char *got = digest_answer(LLM_CHAT, false, str_of(quoted(body)), 64);
    if (strcmp(got, quoted(expected)) != 0) {
        fail_msg("%s:\n%sshould be\n%s", what, got, quoted(expected));
    }
}

#define NO_USAGE "usage -1+-1/-1>-1/-1\n"
#define TWO_CALLS                                                                         \
    "start x m\ncall c1 weather {'city':'A'}\ncall c2 time {'tz':'U'}\n" NO_USAGE "stop " \
    "tool\nend\n"
#define ONE_CALL "start x m\ncall c1 weather {'city':'A'}\n" NO_USAGE "stop tool\nend\n"

struct odd_case {
    const char *what, *stream, *expected;
};

static const struct odd_case odd_calls[] = {
    { "all calls at index 0",
      DELTA(CALL("'index':0,", "'id':'c1',", "'name':'weather',", "'{\\'city\\':\\'A\\'}'"))
          DELTA(CALL("'index':0,", "'id':'c2',", "'name':'time',", "'{\\'tz\\':\\'U\\'}'"))
              FINISH("tool_calls") DONE,
      TWO_CALLS },
    { "no index",
      DELTA(CALL("", "'id':'c1',", "'name':'weather',", "'{\\'city\\':'"))
          DELTA(CALL("", "'id':'c1',", "'name':'weather',", "'\\'A\\'}'"))
              DELTA(CALL("", "'id':'c2',", "'name':'time',", "'{\\'tz\\':\\'U\\'}'"))
                  FINISH("tool_calls") DONE,
      TWO_CALLS },
    { "arguments as an object",
      DELTA(CALL("'index':0,", "'id':'c1',", "'name':'weather',", "{'city':'A'}"))
          FINISH("tool_calls") DONE,
      ONE_CALL },
    { "the name in each delta",
      DELTA(CALL("'index':0,", "'id':'c1',", "'name':'weather',", "'{\\'ci'"))
          DELTA(CALL("'index':0,", "'id':'c1',", "'name':'weather',", "'ty\\':\\'A\\'}'"))
              DELTA(CALL("'index':0,", "'id':'c1',", "'name':'weather',", "''"))
                  FINISH("tool_calls") DONE,
      ONE_CALL },
    { "empty name and id in later deltas",
      DELTA(CALL("'index':0,", "'id':'c1',", "'name':'weather',", "'{\\'ci'"))
          DELTA(CALL("'index':0,", "'id':'',", "'name':'',", "'ty\\':\\'A\\'}'"))
              FINISH("tool_calls") DONE,
      ONE_CALL },
    { "id first, name later",
      DELTA(CALL("'index':0,", "'id':'c1',", "", "''"))
          DELTA(CALL("'index':0,", "", "'name':'weather',", "'{\\'city\\':\\'A\\'}'"))
              FINISH("tool_calls") DONE,
      ONE_CALL },
    { "a placeholder before the arguments",
      DELTA(CALL("'index':0,", "'id':'c1',", "'name':'weather',", "'{}'"))
          DELTA(CALL("'index':0,", "", "", "'{\\'city\\':\\'A\\'}'")) FINISH("tool_calls") DONE,
      ONE_CALL },
    { "interleaved",
      DELTA(CALL("'index':0,", "'id':'c1',", "'name':'weather',", "'{\\'city\\':'"))
          DELTA(CALL("'index':1,", "'id':'c2',", "'name':'time',", "'{\\'tz\\':'"))
              DELTA(CALL("'index':0,", "", "", "'\\'A\\'}'"))
                  DELTA(CALL("'index':1,", "", "", "'\\'U\\'}'")) FINISH("stop") DONE,
      TWO_CALLS },
    { "no ids, no index: two in one delta",
      DELTA("{'tool_calls':[{'function':{'name':'weather','arguments':{'city':'A'}}},"
            "{'function':{'name':'weather','arguments':{'city':'A'}}}]}") FINISH("tool_calls") DONE,
      "start x m\ncall  weather {'city':'A'}\ncall  weather {'city':'A'}\n" NO_USAGE
      "stop tool\nend\n" },
    { "no ids, the same index",
      DELTA(CALL("'index':0,", "", "'name':'weather',", "'{\\'city\\':\\'A\\'}'"))
          DELTA(CALL("'index':0,", "", "'name':'time',", "'{}'")) FINISH("tool_calls") DONE,
      "start x m\ncall  weather {'city':'A'}\ncall  time {}\n" NO_USAGE "stop tool\nend\n" },
    { "the same id for every call",
      DELTA(CALL("'index':0,", "'id':'c1',", "'name':'weather',", "'{\\'city\\':\\'A\\'}'")) DELTA(
          CALL("'index':1,", "'id':'c1',", "'name':'time',", "'{}'")) FINISH("tool_calls") DONE,
      "start x m\ncall c1 weather {'city':'A'}\ncall  time {}\n" NO_USAGE "stop tool\nend\n" },
    { "empty arguments",
      DELTA(CALL("'index':0,", "'id':'c1',", "'name':'time',", "''")) FINISH("tool_calls") DONE,
      "start x m\ncall c1 time {}\n" NO_USAGE "stop tool\nend\n" },
    { "cut by the output limit",
      DELTA("{'content':'Hello'}") DELTA(CALL("'index':0,", "'id':'c1',", "'name':'time',", "'{}'"))
          DELTA(CALL("'index':1,", "'id':'c2',", "'name':'weather',", "'{\\'city\\':\\'A'"))
              FINISH("length") DONE,
      "start x m\ntext Hello\ncall c1 time {}\n" NO_USAGE "stop length\nend\n" },
    { "only a cut call",
      DELTA(CALL("'index':0,", "'id':'c2',", "'name':'weather',", "'{\\'city\\':\\'A'"))
          FINISH("length") DONE,
      "start x m\n" NO_USAGE "stop length\nend\n" },
    { "the old way to call",
      DELTA("{'function_call':{'name':'weather','arguments':'{\\'city\\':'}}")
          DELTA("{'function_call':{'arguments':'\\'A\\'}'}}") FINISH("function_call") DONE,
      "start x m\ncall  weather {'city':'A'}\n" NO_USAGE "stop tool\nend\n" },
    { "tool_calls without calls", DELTA("{'content':'Hello'}") FINISH("tool_calls") DONE,
      "start x m\ntext Hello\n" NO_USAGE "stop end\nend\n" },
};

static void test_calls(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(odd_calls); i++) {
        assert_stream(odd_calls[i].what, odd_calls[i].stream, odd_calls[i].expected);
    }
    assert_body("arguments as an object",
                "{'content':null,'tool_calls':[{'id':'c1','type':'function','function':{"
                "'name':'weather','arguments':{'city':'A'}}}]}",
                "'tool_calls'", ONE_CALL);
    assert_body("cut",
                "{'content':null,'tool_calls':[{'id':'c1','type':'function','function':{"
                "'name':'weather','arguments':'{\\'city\\''}}]}",
                "'length'", "start x m\n" NO_USAGE "stop length\nend\n");
    assert_body("no finish reason",
                "{'tool_calls':[{'id':'c1','function':{'name':'weather','arguments':"
                "'{\\'city\\':\\'A\\'}'}}]}",
                "null", ONE_CALL);
    assert_body("no ids",
                "{'tool_calls':[{'function':{'name':'weather','arguments':{'city':'A'}}},"
                "{'id':'','function':{'name':'time','arguments':''}}]}",
                "'tool_calls'",
                "start x m\ncall  weather {'city':'A'}\ncall  time {}\n" NO_USAGE
                "stop tool\nend\n");
    assert_body("the old way to call",
                "{'content':null,'function_call':{'name':'weather','arguments':"
                "'{\\'city\\':\\'A\\'}'}}",
                "'function_call'",
                "start x m\ncall  weather {'city':'A'}\n" NO_USAGE "stop tool\nend\n");
    assert_body("stop although it calls",
                "{'content':'','tool_calls':[{'id':'c1','function':{'name':'weather','arguments':"
                "'{\\'city\\':\\'A\\'}'}}]}",
                "'stop'", ONE_CALL);
}

static void test_finish_of_bodies(void **state)
{
    static const struct {
        const char *finish, *stop;
    } cases[] = {
        { "''", "end" },           { "'eos'", "end" },
        { "null", "end" },         { "'MAX_TOKENS'", "length" },
        { "'tool_calls'", "end" }, { "'tired'", "other tired" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_body(cases[i].finish, "{'content':'Hello'}", cases[i].finish,
                    arena_printf(arena, "start x m\ntext Hello\n" NO_USAGE "stop %s\nend\n",
                                 cases[i].stop));
    }
    assert_body("a refusal in words", "{'content':null,'refusal':'No.'}", "'stop'",
                "start x m\nrefusal No.\n" NO_USAGE "stop refusal\nend\n");
}

static void test_ends(void **state)
{
    static const struct {
        const char *what, *stream, *expected;
    } cases[] = {
        { "an empty reason in each chunk",
          CHUNK("{'content':'Hel'}", ",'finish_reason':''")
              CHUNK("{'content':'lo'}", ",'finish_reason':''") FINISH("stop") USAGE DONE,
          HELLO "10+-1/-1>5/-1\nstop end\nend\n" },
        { "no [DONE]", DELTA("{'content':'Hello'}") FINISH("stop") USAGE,
          HELLO "10+-1/-1>5/-1\nstop end\nend\n" },
        { "no reason", DELTA("{'content':'Hello'}") DONE,
          "start x m\ntext Hello\n" NO_USAGE "stop end\nend\n" },
        { "only [DONE]", DONE,
          NO_USAGE "failed: invalid response: the stream ended without any content\n" },
        { "no choice at all", USAGE DONE,
          "start x m\nusage 10+-1/-1>5/-1\nfailed: invalid response: the stream ended without any "
          "content\n" },
        { "neither", DELTA("{'content':'Hello'}"),
          "start x m\ntext Hello\n" NO_USAGE "failed: the response was cut short\n" },
        { "not a stream at all", "this is a page of a proxy\n\n",
          NO_USAGE "failed: invalid response: it is not in the expected format\n" },
        { "usage in each chunk",
          CHUNK("{'content':'Hel'}", "}],'usage':{'prompt_tokens':10,'completion_tokens':1},'x':[{")
              CHUNK("{'content':'lo'}",
                    "}],'usage':{'prompt_tokens':10,'completion_tokens':2},'x':[{") FINISH("stop")
                  USAGE DONE,
          HELLO "10+-1/-1>5/-1\nstop end\nend\n" },
        { "an error object",
          DELTA("{'content':'Hel'}") "data: {'error':{'message':'boom','code':502}}\n\n" DONE,
          "start x m\ntext Hel\n" NO_USAGE "error 8 502 boom\nend\n" },
        { "a reason that is an error", DELTA("{'content':'Hel'}") FINISH("error") DONE,
          "start x m\ntext Hel\n" NO_USAGE
          "error 8 502 the server gave up: finish_reason error\nend\n" },
        { "a first chunk without choices",
          "data: {'id':'','model':'','choices':[],'prompt_filter_results':[{}]}\n\n" DELTA(
              "{'content':'Hello'}") FINISH("stop") DONE,
          "start x m\ntext Hello\n" NO_USAGE "stop end\nend\n" },
        { "delta null", DELTA("{'content':'Hello'}") CHUNK("null", ",'finish_reason':'stop'") DONE,
          "start x m\ntext Hello\n" NO_USAGE "stop end\nend\n" },
        { "eos", DELTA("{'content':'Hello'}") FINISH("eos") DONE,
          "start x m\ntext Hello\n" NO_USAGE "stop end\nend\n" },
        { "another case", DELTA("{'content':'Hello'}") FINISH("MAX_TOKENS") DONE,
          "start x m\ntext Hello\n" NO_USAGE "stop length\nend\n" },
        { "unknown", DELTA("{'content':'Hello'}") FINISH("tired") DONE,
          "start x m\ntext Hello\n" NO_USAGE "stop other tired\nend\n" },
        { "a refusal in words", DELTA("{'refusal':'No.'}") FINISH("stop") DONE,
          "start x m\nrefusal No.\n" NO_USAGE "stop refusal\nend\n" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_stream(cases[i].what, cases[i].stream, cases[i].expected);
    }
    assert_stream("comments and CRLF",
                  ": OPENROUTER PROCESSING\r\n\r\n"
                  "data: {" ID ",'choices':[{'index':0,'delta':{'content':'Hello'},"
                  "'finish_reason':'stop'}]}\r\n\r\ndata: [DONE]\r\n\r\n",
                  "start x m\ntext Hello\n" NO_USAGE "stop end\nend\n");
}

#define THOUGHT "start x m\nthinking hm\ntext Hello\n" NO_USAGE "stop end\nend\n"

static void test_content(void **state)
{
    static const struct {
        const char *what, *stream, *expected;
    } cases[] = {
        { "a list of parts",
          DELTA("{'content':[{'type':'thinking','thinking':[{'type':'text','text':'hm'}]}]}")
              DELTA("{'content':[{'type':'text','text':'Hello'}]}") FINISH("stop") DONE,
          THOUGHT },
        { "details beside the reasoning",
          DELTA("{'reasoning':'hm','reasoning_details':[{'type':'reasoning.text','text':'hm'}]}")
              DELTA("{'content':'Hello'}") FINISH("stop") DONE,
          THOUGHT },
        { "details alone, signed",
          DELTA("{'reasoning_details':[{'type':'reasoning.text','text':'hm'}]}")
              DELTA("{'reasoning_details':[{'type':'reasoning.text','signature':'S','index':0}]}")
                  DELTA("{'content':'Hello'}") FINISH("stop") DONE,
          "start x m\nthinking hm signed {'type':'reasoning.text','signature':'S','index':0}\n"
          "text Hello\n" NO_USAGE "stop end\nend\n" },
        { "tags", DELTA("{'content':'<think>hm</think>\\n\\nHello'}") FINISH("stop") DONE,
          THOUGHT },
        { "tags in pieces",
          DELTA("{'content':'\\n<th'}") DELTA("{'content':'ink>h'}") DELTA("{'content':'m</thi'}")
              DELTA("{'content':'nk>'}") DELTA("{'content':'\\n'}") DELTA("{'content':'Hello'}")
                  FINISH("stop") DONE,
          THOUGHT },
        { "no tag after all",
          DELTA("{'content':'<thi'}") DELTA("{'content':'ng>'}") FINISH("stop") DONE,
          "start x m\ntext <thing>\n" NO_USAGE "stop end\nend\n" },
        { "the beginning of a tag at the end", DELTA("{'content':'<thi'}") FINISH("stop") DONE,
          "start x m\ntext <thi\n" NO_USAGE "stop end\nend\n" },
        { "never closed", DELTA("{'content':'<think>hm </thin'}") FINISH("length") DONE,
          "start x m\nthinking hm </thin\n" NO_USAGE "stop length\nend\n" },
        { "tags in the middle are text", DELTA("{'content':'Hello <think>'}") FINISH("stop") DONE,
          "start x m\ntext Hello <think>\n" NO_USAGE "stop end\nend\n" },
        { "tags after reasoning are text",
          DELTA("{'reasoning_content':'hm'}") DELTA("{'content':'<think>'}") FINISH("stop") DONE,
          "start x m\nthinking hm\ntext <think>\n" NO_USAGE "stop end\nend\n" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_stream(cases[i].what, cases[i].stream, cases[i].expected);
    }
    assert_body("a list of parts",
                "{'content':[{'type':'thinking','thinking':[{'type':'text','text':'hm'}]},"
                "{'type':'text','text':'Hello'}]}",
                "'stop'", THOUGHT);
    assert_body("tags", "{'content':'<think>hm</think>Hello'}", "'stop'", THOUGHT);
    assert_body("details", "{'content':'Hello','reasoning_details':[{'text':'hm'}]}", "'stop'",
                THOUGHT);
}

/* No word of another format reaches a client. */
static void test_words(void **state)
{
    static const char *const sets[LLM_FORMAT_MAX] = {
        [LLM_ANTHROPIC] = "'stop_reason':'end_turn'",
        [LLM_RESPONSES] = "'status':'completed'",
        [LLM_CHAT] = "'finish_reason':'stop'",
        [LLM_GEMINI] = "'finishReason':'OTHER'",
    };
    struct str stream = str_of(quoted(DELTA("{'content':'Hello'}") FINISH("tired") DONE));
    for (enum llm_format f = 0; f < LLM_FORMAT_MAX; f++) {
        for (int i = 0; i < 2; i++) {
            struct llm_reader_opts from = { .format = LLM_CHAT, .stream = true };
            struct llm_writer_opts to = { .format = f, .stream = i == 0 };
            struct str got = rewrite_answer(&from, &to, stream);
            assert_true(str_find(got, STR("tired")) == got.len);
            if (str_find(got, str_of(quoted(sets[f]))) == got.len) {
                fail_msg("%s: no %s in %.*s", llm_format_name(f), sets[f], STR_ARG(got));
            }
        }
    }
    /* Gemini's, too. */
    struct str answer =
        str_of(quoted("{'candidates':[{'content':{'parts':[{'functionCall':{"
                      "'name':'f','args':{}}}]},'finishReason':'FUNCTION_CALL'}]}"));
    struct llm_reader_opts from = { .format = LLM_GEMINI };
    struct llm_writer_opts to = { .format = LLM_ANTHROPIC };
    struct str got = rewrite_answer(&from, &to, answer);
    assert_true(str_find(got, STR("\"stop_reason\":\"tool_use\"")) < got.len);
}

/* A long input that is held back does not look like a dead connection. */
static void test_pings(void **state)
{
    CLEANUP(buf) struct buf stream = BUF_INIT(BUF_TEXT);
    buf_adds(&stream,
             quoted(DELTA(CALL("'index':0,", "'id':'c1',", "'name':'w',", "'{\\'a\\':\\''"))));
    for (int i = 0; i < 64; i++) {
        buf_adds(&stream,
                 quoted(DELTA(CALL("'index':0,", "", "",
                                   "'0123456789012345678901234567890123456789012345678'"))));
    }
    buf_adds(&stream,
             quoted(DELTA(CALL("'index':0,", "", "", "'\\'}'")) FINISH("tool_calls") DONE));
    struct llm_reader_opts from = { .format = LLM_CHAT, .stream = true };
    struct llm_writer_opts to = { .format = LLM_ANTHROPIC, .stream = true };
    struct str got = rewrite_answer(&from, &to, buf_str(&stream));
    assert_true(str_find(got, STR("event: ping")) < str_find(got, STR("tool_use")));
    to.format = LLM_RESPONSES;
    got = rewrite_answer(&from, &to, buf_str(&stream));
    assert_true(str_find(got, STR("function_call")) < got.len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_finish_of_bodies, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_ends, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_content, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_words, arena_setup, arena_teardown),
        cmocka_unit_test_setup_teardown(test_pings, arena_setup, arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
