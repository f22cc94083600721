/* SPDX-License-Identifier: MIT
 *
 * The language of scripts: each matcher chooses, each action does what it says, in whatever format
 * the request came; a script that is wrong is refused with the place.
 */
#include "replay/script.h"

#include "script_case.h"

/* --- matchers --- */

static void turns_are_counted_by_results(void **state)
{
    struct script_case *c = *state;
    load(c, "turns:\n  - say: first\n  - say: second\n  - say: third\n");
    assert_string_equal(say(c, "go", 0), "say(first) stop:end");
    assert_string_equal(say(c, "go", 2), "say(third) stop:end");
    assert_string_equal(say(c, "go", 1), "say(second) stop:end"); /* a retry of an earlier one */
    assert_string_equal(say(c, "go", 0), "say(first) stop:end");
    assert_holds(say(c, "go", 3), "no step fits request 5 (anthropic, model 'claude-x', turn 3");
}

static void calls_made_together_are_one_turn(void **state)
{
    struct script_case *c = *state;
    static const char body[] =
        "model: m\nmessages:\n"
        "  - {role: user, content: go}\n"
        "  - role: assistant\n    tool_calls:\n"
        "      - {id: a, type: function, function: {name: x, arguments: '{}'}}\n"
        "      - {id: b, type: function, function: {name: x, arguments: '{}'}}\n"
        "  - {role: tool, tool_call_id: a, content: one}\n"
        "  - {role: tool, tool_call_id: b, content: two}\n";
    load(c, "steps:\n  - {when: {turn: 1, results: 2}, say: '${turn} ${results} ${last}'}\n");
    assert_string_equal(play(c, CHAT, body), "say(1 2 one\ntwo) stop:end");
}

static void text_regex_and_captures(void **state)
{
    struct script_case *c = *state;
    load(c, "steps:\n"
            "  - {when: {text: [alpha, beta]}, say: both}\n"
            "  - when: {regex: 'write (?<file>\\S+) with (a|b)(c)?'}\n"
            "    say: '${file} ${1} ${2} $${x} ${0}'\n"
            "  - {when: {text: alpha}, say: one}\n");
    assert_string_equal(say(c, "beta and alpha", 0), "say(both) stop:end");
    assert_string_equal(say(c, "only alpha", 0), "say(one) stop:end");
    assert_string_equal(say(c, "please write a.txt with b!", 0),
                        "say(a.txt a.txt b ${x} write a.txt with b) stop:end");
    assert_holds(say(c, "nothing", 0), "nearest is 'steps[");
    load(c, "steps: [{when: {regex: 'a(b)?'}, say: '${1}'}]");
    assert_string_equal(say(c, "ab", 0), "say(b) stop:end");
    assert_holds(say(c, "a", 0), "step 'steps[0]' (s.yaml:1:9): '${1}' has no value here");
}

static void results_are_matched_too(void **state)
{
    struct script_case *c = *state;
    load(c,
         "steps:\n  - {when: {text: result 1}, say: seen}\n  - {when: {text: go}, say: begun}\n");
    assert_string_equal(say(c, "go", 2), "say(seen) stop:end");
    assert_string_equal(say(c, "go", 0), "say(begun) stop:end");
}

static void model_format_header_and_system(void **state)
{
    struct script_case *c = *state;
    load(c, "steps:\n"
            "  - {when: {format: chat}, say: chat}\n"
            "  - {when: {header: {User-Agent: 'claude*', x-a: '*'}}, say: header}\n"
            "  - {when: {system: pirate}, say: arr}\n"
            "  - {when: {model: 'CLAUDE-?'}, say: model}\n");
    assert_string_equal(say(c, "x", 0), "say(model) stop:end");
    assert_string_equal(play(c, MESSAGES, chat(c, "x", 0, "system: be a pirate")),
                        "say(arr) stop:end");
    c->fields[0] = (struct http_field) { STR("user-agent"), STR("Claude-CLI/2") };
    c->n_fields = 1;
    assert_string_equal(say(c, "x", 0), "say(model) stop:end"); /* x-a is missing */
    c->fields[1] = (struct http_field) { STR("X-A"), STR("") };
    c->n_fields = 2;
    assert_string_equal(say(c, "x", 0), "say(header) stop:end");
    assert_string_equal(play(c, CHAT, "{model: z, messages: [{role: user, content: x}]}"),
                        "say(chat) stop:end");
}

static void times_request_and_otherwise(void **state)
{
    struct script_case *c = *state;
    load(c, "steps:\n"
            "  - {times: 2, say: twice}\n"
            "  - {when: {request: [4]}, say: fourth}\n"
            "otherwise: {say: 'request ${request}'}\n");
    assert_string_equal(say(c, "x", 0), "say(twice) stop:end");
    assert_string_equal(say(c, "x", 0), "say(twice) stop:end");
    assert_string_equal(say(c, "x", 0), "say(request 3) stop:end");
    assert_true(str_eqc(script_unplayed(c->script, c->arena), "'steps[1]' (3:5)"));
    assert_string_equal(say(c, "x", 0), "say(fourth) stop:end");
    assert_int_equal(script_unplayed(c->script, c->arena).len, 0);
    script_reset(c->script);
    assert_string_equal(say(c, "x", 0), "say(twice) stop:end");
}

static void strict_and_not(void **state)
{
    struct script_case *c = *state;
    load(c, "name: demo\nsteps:\n  - {name: a, when: {turn: 7, text: x}, say: a}\n"
            "  - {name: b, when: {text: [go, x]}, times: 1, say: b}\n");
    const char *why = say(c, "go on", 0);
    assert_holds(why, "script 'demo': no step fits request 1");
    assert_holds(why, "last message 'go on'");
    assert_holds(why, "nearest is 'b' (s.yaml:4:5), which wants text: [\"go\",\"x\"]");
    assert_string_equal(say(c, "go x", 0), "say(b) stop:end");
    assert_holds(say(c, "go x", 0), "nearest is");
    load(c, "strict: false\nsteps:\n  - {when: {turn: 7}, say: a}\n");
    assert_string_equal(say(c, "x", 0), "say(Done.) stop:end");
    load(c, "steps: [{times: 1, say: x}]");
    assert_string_equal(say(c, "x", 0), "say(x) stop:end");
    assert_holds(say(c, "x", 0), "which was played 1 times already");
}

/* --- tools --- */

#define TOOLS_CLAUDE                                                                              \
    "tools: [{name: Write, input_schema: {type: object}}, {name: Bash, input_schema: {}}, "       \
    "{name: mcp__tiny__add_note, input_schema: {}}, {name: mcp__other__slow, input_schema: {}}, " \
    "{name: mcp__tiny__slow, input_schema: {}}]"
#define TOOLS_CODEX                                                                    \
    "tools: [{type: custom, name: apply_patch}, {type: function, name: exec_command, " \
    "parameters: {}}, {type: namespace, name: mcp__tiny, tools: "                      \
    "[{type: function, name: add_note, parameters: {}}]}, {type: web_search}]"
#define CODEX_BODY "model: m\ninput: [{role: user, content: go}]\n" TOOLS_CODEX
#define GEMINI_BODY                                                                  \
    "contents: [{role: user, parts: [{text: go}]}]\ntools: [{functionDeclarations: " \
    "[{name: write_file}, {name: mcp_tiny_add_note}]}]"
#define OPENCODE_BODY                                                                      \
    "model: m\nmessages: [{role: user, content: go}]\ntools: [{type: function, function: " \
    "{name: write, parameters: {}}}, {type: function, function: {name: tiny_add_note, "    \
    "parameters: "                                                                         \
    "{}}}]"

static void exact_and_bridged_names(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{call: {tool: add_note, args: {text: 'say ${last}'}}}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)),
                        "call mcp__tiny__add_note({\"text\":\"say hi\"}) stop:tool");
    assert_string_equal(play(c, RESPONSES, CODEX_BODY),
                        "call mcp__tiny.add_note({\"text\":\"say go\"}) stop:tool");
    assert_string_equal(play(c, GEMINI, GEMINI_BODY),
                        "call mcp_tiny_add_note({\"text\":\"say go\"}) stop:tool");
    assert_string_equal(play(c, CHAT, OPENCODE_BODY),
                        "call tiny_add_note({\"text\":\"say go\"}) stop:tool");
    load(c, "steps: [{call: slow}]");
    assert_holds(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)),
                 "tool 'slow' is offered by several servers: name one by 'server'");
    load(c, "steps: [{call: {tool: slow, server: other}}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)),
                        "call mcp__other__slow({}) stop:tool");
    load(c, "steps: [{call: [Write, mcp__tiny__slow]}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)),
                        "call Write({}) call mcp__tiny__slow({}) stop:tool");
}

static void aliases_follow_what_is_offered(void **state)
{
    struct script_case *c = *state;
    load(c,
         "steps: [{call: {tool: native.write_file, args: {path: a.txt, content: \"x\\ny\\n\"}}}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)),
                        "call Write({\"file_path\":\"a.txt\",\"content\":\"x\\ny\\n\"}) stop:tool");
    assert_string_equal(
        play(c, GEMINI, GEMINI_BODY),
        "call write_file({\"file_path\":\"a.txt\",\"content\":\"x\\ny\\n\"}) stop:tool");
    assert_string_equal(play(c, CHAT, OPENCODE_BODY),
                        "call write({\"filePath\":\"a.txt\",\"content\":\"x\\ny\\n\"}) stop:tool");
    assert_string_equal(play(c, RESPONSES, CODEX_BODY),
                        "custom apply_patch(*** Begin Patch\n*** Add File: a.txt\n+x\n+y\n*** End "
                        "Patch\n) stop:tool");
    load(c, "steps: [{call: {tool: native.shell, args: {command: \"it's\"}}}]");
    assert_string_equal(play(c, RESPONSES, CODEX_BODY),
                        "call exec_command({\"cmd\":\"it's\"}) stop:tool");
    assert_holds(play(c, CHAT, OPENCODE_BODY),
                 "tool 'native.shell' is not offered by this request (there are: write, ");
    load(c, "steps: [{call: {tool: native.write_file, args: {path: \"it's\"}}}]");
    assert_string_equal(play(c, GEMINI, GEMINI_BODY),
                        "call write_file({\"file_path\":\"it's\"}) stop:tool");
}

static void aliases_of_the_profile_and_of_the_script(void **state)
{
    struct script_case *c = *state;
    struct json *profile = NULL;
    assert_int_equal(yaml_parse(c->arena,
                                STR("native.shell: [{tool: Bash, args: {run: '${command|sh}'}}]"),
                                "p", NULL, &profile, NULL),
                     0);
    c->aliases = profile;
    load(c, "steps: [{call: {tool: native.shell, args: {command: \"a'b\"}}}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)),
                        "call Bash({\"run\":\"'a'\\\\''b'\"}) stop:tool");
    load(c, "aliases: {native.shell: [{tool: Bash, args: {own: {deep: ['${command}', 1]}}}]}\n"
            "steps: [{call: {tool: native.shell, args: {command: [1, 2]}}}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)),
                        "call Bash({\"own\":{\"deep\":[[1,2],1]}}) stop:tool");
}

static void tools_as_matchers(void **state)
{
    struct script_case *c = *state;
    load(c, "steps:\n"
            "  - {when: {tool: [native.write_file, add_note], no_tool: Bash}, say: no shell}\n"
            "  - {when: {tool: Bash}, say: shell}\n"
            "otherwise: {say: neither}\n");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)), "say(shell) stop:end");
    assert_string_equal(play(c, GEMINI, GEMINI_BODY), "say(no shell) stop:end");
    assert_string_equal(say(c, "hi", 0), "say(neither) stop:end");
}

static void tools_that_are_not_offered(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{call: {tool: Nope, unchecked: true, args: {a: 1}}}]");
    assert_string_equal(say(c, "hi", 0), "call Nope({\"a\":1}) stop:tool");
    load(c, "steps: [{call: {tool: add_note, namespace: mcp__tiny}}]");
    assert_string_equal(say(c, "hi", 0), "call mcp__tiny.add_note({}) stop:tool");
    load(c, "steps: [{call: Nope}]");
    assert_holds(say(c, "hi", 0), "tool 'Nope' is not offered by this request (there are: none)");
    load(c, "steps: [{call: {tool: apply_patch, args: {a: 1}}}]");
    assert_holds(play(c, RESPONSES, CODEX_BODY), "tool 'apply_patch' takes text: give 'input'");
    load(c, "steps: [{call: {tool: Bash, input: x}}]");
    assert_holds(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)), "takes arguments");
}

#define HEAD "// @exec: {\"yield_time_ms\": 300000}\n"
#define CODE_BODY                                                                                  \
    "model: m\ninput:\n  - type: additional_tools\n    tools: [{type: namespace, name: "           \
    "functions, "                                                                                  \
    "tools: [{type: custom, name: exec, description: \"Runs JavaScript.\\ndeclare const tools: { " \
    "apply_patch(input: string): Promise<unknown>; };\\ndeclare const tools: { add_note(args: { "  \
    "text: string; }): Promise<unknown>; };\\ndeclare const tools: { mcp__tiny__slow(args: {}): "  \
    "Promise<unknown>; };\\ndeclare const tools: { broken\"}, "                                    \
    "{type: function, name: wait, parameters: {}}]}]\n  - {role: user, content: go}\n"

static void tools_behind_a_program(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{call: {tool: add_note, args: {text: 'it\"s'}}}]");
    assert_string_equal(play(c, RESPONSES, CODE_BODY),
                        "custom functions.exec(" HEAD
                        "text(await tools.add_note({\"text\":\"it\\\"s\"}));) stop:tool");
    load(c,
         "steps: [{call: [slow, {tool: native.write_file, args: {path: a, content: \"x\\n\"}}]}]");
    assert_string_equal(play(c, RESPONSES, CODE_BODY),
                        "custom functions.exec(" HEAD "text(await tools.mcp__tiny__slow({}));) "
                        "custom functions.exec(" HEAD "text(await tools.apply_patch(\"*** Begin "
                        "Patch\\n*** Add File: a\\n+x\\n*** End Patch\\n\"));) stop:tool");
    load(c, "steps: [{when: {tool: [slow, exec, wait], no_tool: broken}, say: all of them}]");
    assert_string_equal(play(c, RESPONSES, CODE_BODY), "say(all of them) stop:end");
    load(c, "steps: [{call: broken}]");
    assert_holds(play(c, RESPONSES, CODE_BODY), "tool 'broken' is not offered");
    load(c, "steps: [{call: {tool: add_note, input: x}}]");
    assert_holds(play(c, RESPONSES, CODE_BODY), "takes arguments");
}

#define SEARCH(server)                                                                         \
    "model: m\ntools: [{type: tool_search, execution: client, description: \"Sources: " server \
    "\", parameters: {}}]\ninput:\n  - {role: user, content: go}\n"
#define FOUND(query, tools)                                                                  \
    "  - {type: tool_search_call, call_id: c1, execution: client, arguments: {query: " query \
    "}}\n"                                                                                   \
    "  - {type: tool_search_output, call_id: c1, execution: client, tools: [" tools "]}\n"
#define ADD_NOTE                                                                                \
    "{type: namespace, name: mcp__cinch, tools: [{type: function, name: add_note, parameters: " \
    "{}}]}"

/* The step is played when the tool was found; until then nothing of it happens. */
static void tools_behind_a_search(void **state)
{
    struct script_case *c = *state;
    load(c, "steps:\n"
            "  - {when: {turn: 0, tool: add_note}, times: 1, say: now, call: add_note}\n"
            "  - {when: {request: 2}, say: there is none}\n"
            "  - {when: {no_tool: add_note}, say: none}\n");
    assert_string_equal(play(c, RESPONSES, SEARCH("cinch")),
                        "tool_search_call(add_note) stop:tool");
    assert_string_equal(play(c, RESPONSES, SEARCH("cinch") FOUND("add_note", ADD_NOTE)),
                        "say(now) call mcp__cinch.add_note({}) stop:tool");
    /* found nothing: the request does not offer it */
    assert_string_equal(play(c, RESPONSES, SEARCH("cinch") FOUND("add_note", "")),
                        "say(there is none) stop:end");
    assert_string_equal(play(c, RESPONSES, SEARCH("others")), "say(none) stop:end");
    load(c, "steps: [{call: add_note}]");
    assert_holds(play(c, RESPONSES, SEARCH("cinch") FOUND("add_note", "")), "is not offered");
    assert_holds(play(c, RESPONSES, SEARCH("others")), "is not offered");
    /* after further words of the user there may be others */
    assert_string_equal(play(c, RESPONSES,
                             SEARCH("cinch")
                                 FOUND("add_note", "") "  - {role: user, content: again}\n"),
                        "tool_search_call(add_note) stop:tool");
    load(c, "steps: [{call: {tool: slow, server: tiny}}, {output: {a: 1}}]");
    assert_string_equal(play(c, RESPONSES, SEARCH("tiny")), "tool_search_call(slow) stop:tool");
    load(c, "steps: [{output: {a: 1}}]");
    assert_string_equal(play(c, RESPONSES, SEARCH("cinch")),
                        "tool_search_call(structured_output) stop:tool");
    assert_string_equal(play(c, RESPONSES, SEARCH("tiny")), "say({\"a\":1}) stop:end");
    load(c, "steps: [{call: {tool: native.shell, args: {command: x}}}]");
    assert_holds(play(c, RESPONSES, SEARCH("cinch")), "'native.shell' is not offered");
}

/* --- content --- */

static void blocks_and_stops(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{think: hm, say: ok, call: Bash}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)),
                        "think(hm) say(ok) call Bash({}) stop:tool");
    load(c, "steps: [{blocks: [{say: a}, {call: Bash}, {think: b}, {say: c}]}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, TOOLS_CLAUDE)),
                        "say(a) call Bash({}) think(b) say(c) stop:tool");
    load(c, "steps: [{refuse: no}]");
    assert_string_equal(say(c, "hi", 0), "refuse(no) stop:refusal");
    load(c, "steps: [{say: long, stop: length}]");
    assert_string_equal(say(c, "hi", 0), "say(long) stop:length");
}

static void structured_output(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{output: {answer: 42, of: '${last}'}}]");
    assert_string_equal(say(c, "hi", 0), "say({\"answer\":42,\"of\":\"hi\"}) stop:end");
    assert_string_equal(
        play(c, MESSAGES,
             chat(c, "hi", 0, "tools: [{name: StructuredOutput, input_schema: {type: object}}]")),
        "call StructuredOutput({\"answer\":42,\"of\":\"hi\"}) stop:tool");
    assert_string_equal(
        play(c, MESSAGES,
             chat(c, "hi", 0, "tools: [{name: mcp__cinch__structured_output, input_schema: {}}]")),
        "call mcp__cinch__structured_output({\"data\":{\"answer\":42,\"of\":\"hi\"}}) stop:tool");
    assert_string_equal(
        play(c, RESPONSES,
             "model: m\ninput: hi\ntext: {format: {type: json_schema, name: a, schema: {type: "
             "object}}}\ntools: [{type: function, name: structured_output, parameters: {}}]"),
        "say({\"answer\":42,\"of\":\"hi\"}) stop:end");
}

static void chunks_do_not_cut_characters(void **state)
{
    struct script_case *c = *state;
    load(c, "defaults: {chunk: 2, pace: 5ms}\nsteps: [{say: 'aäöb', delay: 1}]");
    struct llm_request r = read_request(c, MESSAGES, chat(c, "hi", 0, NULL));
    struct script_answer a;
    assert_int_equal(answer(c, &r, &a, NULL), 0);
    assert_int_equal(a.delay, NSEC_PER_SEC);
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < a.n_events; i++) {
        if (a.events[i].wait > 0) {
            buf_addf(&out, "%lldms ", (long long)(a.events[i].wait / NSEC_PER_MS));
        }
        describe_event(&a.events[i].event, &out);
    }
    assert_string_equal(out.ptr, "say(aä) 5ms say(ö) 5ms say(b) stop:end");
}

static void usage_is_as_the_script_says(void **state)
{
    struct script_case *c = *state;
    load(c,
         "defaults: {usage: {input: 10, cache_read: 5}}\n"
         "steps: [{when: {text: a}, say: x, usage: {output: 7, reasoning: 2}}, {say: '12345678'}]");
    struct llm_request r = read_request(c, MESSAGES, chat(c, "a", 0, NULL));
    struct script_answer a;
    assert_int_equal(answer(c, &r, &a, NULL), 0);
    assert_int_equal(a.usage.input, 10);
    assert_int_equal(a.usage.output, 7);
    assert_int_equal(a.usage.cache_read, 5);
    assert_int_equal(a.usage.cache_write, -1);
    assert_int_equal(a.usage.reasoning, 2);
}

static void variables(void **state)
{
    struct script_case *c = *state;
    load(c, "vars: {dir: /tmp, n: 3}\nsteps: [{say: '${dir}/x ${n} ${model}'}]");
    assert_string_equal(say(c, "hi", 0), "say(/tmp/x 3 claude-x) stop:end");
    assert_int_equal(script_set(c->script, STR("dir"), STR("/w"), NULL), 0);
    assert_string_equal(say(c, "hi", 0), "say(/w/x 3 claude-x) stop:end");
    assert_int_equal(script_set(c->script, STR("nope"), STR("x"), NULL), -(int)ERR_CONFIG);
    load(c, "steps: [{say: '${cwd}'}]");
    assert_string_equal(
        play(c, MESSAGES, chat(c, "hi", 0, "system: \"x\\nWorking directory: /w s\\ny\"")),
        "say(/w s) stop:end");
    assert_string_equal(say(c, "<cwd>/repo</cwd>", 0), "say(/repo) stop:end");
    assert_holds(say(c, "hi", 0), "'${cwd}' has no value here");
}

/* --- side requests --- */

static void side_requests_get_a_stock_answer(void **state)
{
    struct script_case *c = *state;
    static const char title[] = "system: You are a title generator. You output ONLY a title.";
    static const char schema[] =
        "output_config: {format: {type: json_schema, schema: {type: object, "
        "properties: {title: {type: string}}}}}";
    load(c, "steps: [{when: {turn: 0}, times: 1, say: main}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, title)), "say(Task) stop:end");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, schema)),
                        "say({\"title\":\"Task\"}) stop:end");
    static const char bent[] = "output_config: {format: {type: json_schema, schema: {type: object, "
                               "properties: {title: {type: object, properties: a text}}}}}";
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, bent)), "say({\"title\":{}}) stop:end");
    struct llm_request r = read_request(c, MESSAGES, chat(c, "hi", 0, title));
    struct script_answer a;
    assert_int_equal(answer(c, &r, &a, NULL), 0);
    assert_string_equal(a.side, "title");
    assert_string_equal(a.step, "side");
    assert_string_equal(say(c, "hi", 0), "say(main) stop:end"); /* not used up by the others */
    load(c, "side: Own title\nsteps: [{say: main}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, title)), "say(Own title) stop:end");
    load(c, "side: false\nsteps: [{say: main}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, title)), "say(main) stop:end");
    load(c, "steps: [{when: {side: title}, say: T}, {say: main}]");
    assert_string_equal(play(c, MESSAGES, chat(c, "hi", 0, title)), "say(T) stop:end");
    assert_string_equal(say(c, "hi", 0), "say(main) stop:end");
}

static void ordinary_requests_are_none(void **state)
{
    struct script_case *c = *state;
    load(c, "steps: [{say: main}]");
    assert_string_equal(say(c, "write a summary of the file, and a title", 0),
                        "say(main) stop:end");
    assert_string_equal(
        play(c, MESSAGES,
             chat(c, "summarize the conversation", 0, "system: you code\n" TOOLS_CLAUDE)),
        "say(main) stop:end");
}

/* --- what is wrong --- */

static void refused(const char *yaml, const char *want)
{
    CLEANUP(arena) struct arena *a = arena_new();
    /* what stands in strings only we know */
    bool in_a_string = strstr(yaml, "${") != NULL || strstr(yaml, "regex") != NULL ||
                       strstr(yaml, "blocks") != NULL;
    if (!in_a_string && fits_schema(a, yaml) != 0) {
        fail_msg("the schema accepts\n%s", yaml);
    }
    struct err e = { 0 };
    CLEANUP(script) struct script *s = NULL;
    int r = script_parse(str_of(yaml), "s.yaml", &s, &e);
    if (r == 0 || strstr(e.msg, want) != e.msg) {
        fail_msg("%s\ngives '%s'\nnot  '%s'", yaml, e.msg, want);
    }
}

static void mistakes_are_told_with_their_place(void **state)
{
    refused("", "s.yaml");
    refused("{}", "s.yaml:1:1: a script needs 'steps', 'turns' or 'otherwise'");
    refused("stebs: []", "s.yaml:1:1: unknown key 'stebs' (did you mean 'steps'?)");
    refused("steps:\n  - sai: x", "s.yaml:2:5: unknown key 'steps[0].sai' (did you mean 'say'?)");
    refused("steps:\n  - when: {trun: 1}\n    say: x", "s.yaml:2:12: unknown key");
    refused("steps: [{when: {turn: -1}, say: x}]", "s.yaml:1:23: 'when.turn' must be a whole");
    refused("steps: [{when: {turn: []}, say: x}]", "s.yaml:1:23: 'when.turn' must be a whole");
    refused("steps: [{when: {text: 1}, say: x}]", "s.yaml:1:23: 'when.text' must be a string");
    refused("steps: [{when: {regex: '('}, say: x}]", "s.yaml:1:24: pattern '('");
    refused("steps: [{when: {format: soap}, say: x}]", "s.yaml:1:25: 'steps[0].when.format'");
    refused("steps: [{when: {side: 3}, say: x}]", "s.yaml:1:23: 'when.side'");
    refused("steps: [{when: {turn: 1}}]", "s.yaml:1:9: a step must say");
    refused("steps: [{say: '${nope}'}]", "s.yaml:1:15: '${nope}' is neither a group");
    refused("steps: [{say: '${1}'}]", "s.yaml:1:15: '${1}' is neither a group");
    refused("steps: [{when: {regex: '(a)(?:b)'}, say: '${2}'}]", "s.yaml:1:42: '${2}'");
    refused("steps: [{say: '${x'}]", "s.yaml:1:15: '${' without '}'");
    refused("steps: [{say: '${last|rot13}'}]", "s.yaml:1:15: unknown filter 'rot13'");
    refused("steps: [{call: {tool: a, args: {b: ['${q}']}}}]", "s.yaml:1:37: '${q}'");
    refused("steps: [{call: {args: {}}}]", "s.yaml:1:16: 'call' needs 'tool'");
    refused("steps: [{call: 3}]", "s.yaml:1:16: 'call' must be");
    refused("steps: [{call: {tool: a, args: {}, input: b}}]",
            "s.yaml:1:16: 'call' takes 'args' or");
    refused("steps: [{say: a, blocks: [{say: b}]}]", "s.yaml:1:26: 'blocks' stands for");
    refused("steps: [{fault: {}}]", "s.yaml:1:17: 'fault' says nothing");
    refused("steps: [{fault: {status: 200}}]", "s.yaml:1:26: 'fault.status' must be");
    refused("steps: [{fault: {cut: soon}}]", "s.yaml:1:23: 'fault.cut' must be a number");
    refused("steps: [{fault: {garbage: head}}]", "s.yaml:1:27: 'fault.garbage' must be a number");
    refused("steps: [{fault: {body: x}}]", "s.yaml:1:17: 'fault.body' and");
    refused("steps: [{fault: {drip: {bytes: 0}}}]", "s.yaml:1:24: 'fault.drip.bytes'");
    refused("aliases: {x: {tool: a}}\nsteps: [{say: a}]", "s.yaml:1:14: alias 'x' must be a list");
    refused("aliases: {x: [{args: {}}]}\nsteps: [{say: a}]", "s.yaml:1:15: alias 'x' needs 'tool'");
    refused("side: 3\nsteps: [{say: a}]", "s.yaml:1:7: 'side' must be");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_TEST(turns_are_counted_by_results),
        CASE_TEST(calls_made_together_are_one_turn),
        CASE_TEST(text_regex_and_captures),
        CASE_TEST(results_are_matched_too),
        CASE_TEST(model_format_header_and_system),
        CASE_TEST(times_request_and_otherwise),
        CASE_TEST(strict_and_not),
        CASE_TEST(exact_and_bridged_names),
        CASE_TEST(aliases_follow_what_is_offered),
        CASE_TEST(aliases_of_the_profile_and_of_the_script),
        CASE_TEST(tools_as_matchers),
        CASE_TEST(tools_that_are_not_offered),
        CASE_TEST(tools_behind_a_program),
        CASE_TEST(tools_behind_a_search),
        CASE_TEST(blocks_and_stops),
        CASE_TEST(structured_output),
        CASE_TEST(chunks_do_not_cut_characters),
        CASE_TEST(usage_is_as_the_script_says),
        CASE_TEST(variables),
        CASE_TEST(side_requests_get_a_stock_answer),
        CASE_TEST(ordinary_requests_are_none),
        CASE_TEST(mistakes_are_told_with_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
