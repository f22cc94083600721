/* SPDX-License-Identifier: MIT
 *
 * Every check on one small record: what holds, what does not, and the sentence that is told; and
 * what an author of scenarios who mistyped one is told.
 */
#include "../values.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "ack/check.h"
#include "base/file.h"

#define EVENTS                                                                    \
    "- {event: PromptRendered, context: {event_id: e1}}\n"                        \
    "- {event: ToolInvoked, context: {name: note, success: true, render: e1}}\n"  \
    "- {event: ToolInvoked, context: {name: note, success: false, render: e2}}\n" \
    "- {event: model.call, context: {status: 200, side: null}}\n"                 \
    "- {event: model.call, context: {status: 200, side: null}}\n"                 \
    "- {event: model.call, context: {status: 200, side: title}}\n"                \
    "- {event: model.call, context: {status: 500, side: null}}\n"

#define TRANSCRIPT                                                             \
    "- {entry_type: user_message, source: main, detail: {text: Call note.}}\n" \
    "- {entry_type: tool_use, source: main, detail: {tool_name: note}}\n"      \
    "- {entry_type: tool_result, source: main, detail: {tool_name: note}}\n"   \
    "- {entry_type: token_usage, source: main, detail: {}}\n"

#define METRICS                                                                         \
    "{tokens_output: 100, ext: {usage: {wire: {input: 20, output: 100, cache_read: 0}," \
    " reported: {input: 21, output: 100, cache_read: null}}}}"

#define PATCH                                                                                    \
    "diff --git a/noted.txt b/noted.txt\nnew file mode 100644\n--- /dev/null\n+++ b/noted.txt\n" \
    "@@ -0,0 +1 @@\n+x\n"

struct record {
    char dir[64];
    struct evidence runs[2];
    const char *names[2];
    struct evidence_request requests[3];
    struct findings findings;
    struct check_scene scene;
};

static struct evidence_request request(const char *text, const char *body, const char *side)
{
    return (struct evidence_request) { .target = "/v1/messages",
                                       .body = tree(body),
                                       .text = str_of(text),
                                       .side = str_of(side),
                                       .status = 200,
                                       .complete = true };
}

static void put(const struct record *r, const char *name, const char *text)
{
    const char *path = arena_printf(arena, "%s/%s", r->dir, name);
    assert_int_equal(file_write_atomic(AT_FDCWD, path, str_of(text), 0644, NULL), 0);
}

static int set_up(void **state)
{
    arena_setup(state);
    struct record *r = *state = xcalloc(1, sizeof *r);
    (void)snprintf(r->dir, sizeof r->dir, "/tmp/test_ack_check_XXXXXX");
    if (mkdtemp(r->dir) == NULL) {
        return -1;
    }
    put(r, "file.txt", "what is outside\n");
    r->requests[0] = request("Call note.", "{model: m}", "");
    r->requests[1] = request("Make a title.", "{model: small}", "title");
    r->requests[2] = request("Call note.\nNOTED", "{model: m, tools: []}", "");
    r->runs[0] = (struct evidence) {
        .dir = r->dir,
        .exit_status = 3,
        .said = STR("cinch: a line\n"),
        .manifest = tree("{reason: failure, artifacts: [result.json]}"),
        .metrics = tree(METRICS),
        .result = tree("{text: It is noted., error: it broke}"),
        .events = tree(EVENTS),
        .transcript = tree(TRANSCRIPT),
        .session = tree("{Log: [{op: a}, {op: b}]}"),
        .patch = STR(PATCH),
        .requests = r->requests,
        .requests_len = 3,
    };
    r->runs[1] = r->runs[0];
    r->names[0] = "first";
    r->names[1] = "second";
    r->findings = (struct findings) { .text = BUF_INIT(BUF_TEXT) };
    r->scene = (struct check_scene) {
        .arena = arena,
        .adapter = "mine",
        .run = &r->runs[0],
        .runs = r->runs,
        .names = r->names,
        .runs_len = 2,
        .outside = r->dir,
        .visits = 2,
        .findings = &r->findings,
    };
    return 0;
}

static int tear_down(void **state)
{
    struct record *r = *state;
    int result = file_remove_tree(AT_FDCWD, r->dir, NULL);
    buf_done(&r->findings.text);
    free(r);
    arena_teardown(state);
    return result;
}

/* What is found of one check, all in one; "" when it holds. */
static const char *found(struct record *r, const char *check)
{
    const struct json *list = tree(arena_printf(arena, "[%s]", check));
    struct err e = { 0 };
    if (checks_read(list, "f.yaml", &e) < 0) {
        fail_msg("%s: %s", check, e.msg);
    }
    buf_reset(&r->findings.text);
    r->findings.len = 0;
    checks_apply(list, &r->scene);
    const char *text = arena_dup(arena, buf_str(&r->findings.text));
    assert_int_equal(r->findings.len == 0, text[0] == '\0');
    return text;
}

static const struct {
    const char *check;
    const char *finding; /* NULL: it holds */
} cases[] = {
    { "{reason: failure}", NULL },
    { "{reason: [success, failure]}", NULL },
    { "{reason: success}", "reason: wanted \"success\", found \"failure\" (it broke)" },
    { "{reason: [success, timeout]}", "reason: wanted [\"success\",\"timeout\"]" },
    { "{exit: 3}", NULL },
    { "{exit: 0}", "exit: wanted 0, found 3" },
    { "{said: {contains: a line}}", NULL },
    { "{said: ''}", "said: wanted \"\", found \"cinch: a line\\n\"" },
    { "{visits: 2}", NULL },
    { "{visits: 0}", "visits: wanted 0, found 2" },
    { "{text: {ends: noted.}}", NULL },
    { "{text: {contains: other}}",
      "text: wanted {\"contains\":\"other\"}, found \"It is noted.\"" },
    { "{result: {/error: it broke, /output: {present: false}}}", NULL },
    { "{result: {/error: {present: false}}}", "result/error: wanted" },
    { "{metrics: {/tokens_output: {at_least: 100}}}", NULL },
    { "{metrics: {/tokens_output: {at_most: 99}}}", "metrics/tokens_output: wanted" },
    { "{manifest: {/artifacts: {contains: result.json}}}", NULL },
    { "{manifest: {/artifacts: {contains: diff.patch}}}", "manifest/artifacts: wanted" },
    { "{outside: {file.txt: {contains: what}, none.txt: null}}", NULL },
    { "{outside: {file.txt: other}}", "outside file.txt: wanted \"other\", found \"what is" },
    { "{outside: {file.txt: null}}", "outside file.txt: it must not be there, and is" },
    { "{outside: {none.txt: x}}", "outside none.txt: wanted \"x\", found nothing" },
    { "{record: {file.txt: {starts: what}}}", NULL },
    { "{record: {file.txt: {starts: x}}}", "record file.txt: wanted" },
    { "{event: {name: ToolInvoked}}", NULL },
    { "{event: {name: ToolInvoked, count: 2, each: {/context/name: note}}}", NULL },
    { "{event: {name: ToolInvoked, where: {/context/success: true}, count: 1}}", NULL },
    { "{event: {name: Nothing, count: 0}}", NULL },
    { "{event: {name: Nothing, count: {at_least: 0}, each: {/context/name: note}}}", NULL },
    { "{request: {any: true}}", NULL },
    { "{request: {none: true}}", "request: 2 fit, and none should" },
    { "{event: {name: Nothing}}", "event Nothing: there is none" },
    { "{event: {name: ToolInvoked, count: 1}}", "event ToolInvoked: count: wanted 1, found 2" },
    { "{event: {name: ToolInvoked, each: {/context/success: true}}}",
      "event ToolInvoked, the 2.: /context/success: wanted true, found false" },
    { "{entry: {type: tool_use, source: main, where: {/detail/tool_name: note}}}", NULL },
    { "{entry: {each: {/source: main}, count: 4}}", NULL },
    { "{entry: {type: thinking}}", "transcript entry thinking: there is none" },
    { "{entry: {source: agent-1}}", "transcript entry of any type: there is none" },
    { "{entry: {type: tool_use, each: {/detail/tool_name: other}}}",
      "transcript entry tool_use, the 1.: /detail/tool_name: wanted" },
    { "{order: [{type: tool_use}, {type: tool_result}]}", NULL },
    { "{order: [{type: tool_result}, {type: tool_use}]}",
      "order: entry 2 of the transcript should come after entry 3" },
    { "{order: [{type: tool_use}, {type: thinking}]}",
      "order: the transcript has no entry like the 2. of the list" },
    { "{request: {number: 1, text: {contains: Call note}}}", NULL },
    { "{request: {number: 2, text: {contains: NOTED}, where: {/tools: {len: 0}}}}", NULL },
    { "{request: {last: true, text: {contains: NOTED}}}", NULL },
    { "{request: {any: true, text: {contains: NOTED}}}", NULL },
    { "{request: {count: 2, text: {contains: Call}}}", NULL },
    { "{request: {none: true, text: {contains: title}}}", NULL }, /* side requests do not count */
    { "{request: {number: 1, text: {contains: NOTED}}}", "request 1: wanted" },
    { "{request: {number: 2, where: {/model: other}}}", "request 2: /model: wanted \"other\"" },
    { "{request: {number: 3, text: {nonblank: true}}}", "request 3: there were only 2" },
    { "{request: {last: true, text: {contains: title}}}", "request 2: wanted" },
    { "{request: {any: true, text: {contains: title}}}", "requests that fit: there is none" },
    { "{request: {count: 1, text: {contains: Call}}}",
      "requests that fit: count: wanted 1, found 2" },
    { "{request: {none: true, text: {contains: NOTED}}}", "request: 1 fit, and none should" },
    { "{patch: {has: [noted.txt], lacks: [other.txt, oted.txt], contains: '+x', empty: false}}",
      NULL },
    { "{patch: {has: [other.txt]}}", "patch: other.txt was not changed" },
    { "{patch: {lacks: [noted.txt]}}", "patch: noted.txt was changed" },
    { "{patch: {contains: '-x'}}", "patch: it does not contain '-x'" },
    { "{patch: {empty: true}}", "patch: it is not empty" },
    { "{session: {slice: Log, count: 2, any: {at: {/op: b}}, each: {at: {/op: {len: 1}}}}}", NULL },
    { "{session: {slice: Other}}", "session, slice Other: there is none" },
    { "{session: {slice: Log, count: 1}}", "session, slice Log: count: wanted 1, found 2" },
    { "{session: {slice: Log, any: {at: {/op: c}}}}", "session, slice Log: no item fits" },
    { "{session: {slice: Log, each: {at: {/op: a}}}}", "session, slice Log, item 1: wanted" },
    { "{usage: {output: 50}}", NULL },
    { "{usage: {output: 51}}", "usage, output: 2 answers used 102, counted were 100" },
    { "{usage: {cache_read: 0}}", "usage, cache_read: the harness does not tell" },
    { "{usage: {input: 10}}", "usage, input: the wire had 20, the harness says 21" },
    { "{link: {from: {name: PromptRendered, at: /context/event_id}, "
      "to: {name: ToolInvoked, at: /context/render}}}",
      NULL },
    { "{link: {from: {name: PromptRendered, at: /context/event_id}, "
      "to: {name: ToolInvoked, at: /context/name}}}",
      "link: 'e1' and 'note' are not the same" },
    { "{link: {from: {name: None, at: /a}, to: {name: None, at: /b}}}",
      "link: 'nothing' and 'nothing' are not the same" },
    { "{any_of: [[{exit: 0}], [{exit: 3}, {visits: 2}]]}", NULL },
    { "{any_of: [[{exit: 0}, {visits: 1}], [{exit: 3}, {visits: 1}]]}",
      "any_of: exit: wanted 0, found 3 visits: wanted 1, found 2; or visits: wanted 1, found 2" },
    { "{same: {runs: [first, second], what: [events, transcript, patch, text]}}", NULL },
    { "{same: {runs: [first, third], what: [text]}}", "same: a run that it names was not made" },
};

static void test_checks(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *text = found(*state, cases[i].check);
        const char *wanted = cases[i].finding;
        if (wanted == NULL ? text[0] != '\0' : strncmp(text, wanted, strlen(wanted)) != 0) {
            fail_msg("%s: found '%s' instead of '%s'", cases[i].check, text, wanted);
        }
        assert_null(strchr(text, '\n'));
    }
}

/* What a placeholder became must not lead out, whatever the file said. */
static void test_filled_paths(void **state)
{
    struct record *r = *state;
    checks_apply(tree("[{outside: {../x: null, '/etc/passwd': {contains: root}}}]"), &r->scene);
    assert_int_equal(r->findings.len, 2);
    assert_non_null(strstr(r->findings.text.ptr, "outside ../x: the path of a file is relative"));
}

/* Without a session, traffic or a patch, checks of them fail; nothing is taken for granted. */
static void test_empty_record(void **state)
{
    struct record *r = *state;
    r->runs[0] = (struct evidence) { .dir = r->dir };
    r->findings.len = 0;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (strstr(cases[i].check, "same:") == NULL) {
            (void)found(r, cases[i].check);
        }
    }
    assert_string_equal(found(r, "{request: {last: true, text: {nonblank: true}}}"),
                        "request: there was none");
    assert_string_not_equal(found(r, "{session: {slice: Log, any: {at: {/op: a}}}}"), "");
    assert_string_not_equal(found(r, "{usage: {input: 1}}"), "");
    assert_string_not_equal(found(r, "{reason: success}"), "");
    assert_string_not_equal(found(r, "{event: {name: ToolInvoked}}"), "");
    assert_string_equal(found(r, "{patch: {empty: false}}"), "patch: it is empty");
    assert_string_not_equal(found(r, "{transcript: [envelope]}"), "");
}

/* What two runs must have in common, and what they need not. */
static void test_same(void **state)
{
    struct record *r = *state;
    static const struct {
        const char *what, *events, *transcript, *finding;
    } differ[] = {
        { "events", "[{event: PromptRendered, context: {event_id: e9}}]", TRANSCRIPT,
          "same: the events of two runs differ: "
          "{\"name\":\"note\",\"success\":true,\"event\":\"ToolInvoked\"} and nothing" },
        { "events",
          "[{event: PromptRendered}, {event: ToolInvoked, context: {name: note, "
          "success: true, params: {a: 1}}}]",
          TRANSCRIPT,
          "same: the events of two runs differ: "
          "{\"name\":\"note\",\"success\":true,\"event\":\"ToolInvoked\"} and "
          "{\"name\":\"note\",\"params\":{\"a\":1},\"success\":true,\"event\":\"ToolInvoked\"}" },
        { "transcript", EVENTS, "[{entry_type: user_message, detail: {text: Call none.}}]",
          "same: the transcript of two runs differ: "
          "{\"text\":\"Call note.\",\"entry_type\":\"user_message\"} and "
          "{\"text\":\"Call none.\",\"entry_type\":\"user_message\"}" },
        { "patch", EVENTS, TRANSCRIPT,
          "same: the patch of two runs differ: "
          "\"diff --git a/noted.txt b/noted.txt\" and \"other\"" },
        { "text", EVENTS, TRANSCRIPT,
          "same: the text of two runs differ: \"It is noted.\" and \"Other.\"" },
    };
    r->runs[1].patch = STR("other");
    r->runs[1].result = tree("{text: Other.}");
    for (size_t i = 0; i < ARRAY_LEN(differ); i++) {
        r->runs[1].events = tree(differ[i].events);
        r->runs[1].transcript = tree(differ[i].transcript);
        assert_string_equal(
            found(r, arena_printf(arena, "{same: {runs: [first, second], what: [%s]}}",
                                  differ[i].what)),
            differ[i].finding);
        assert_int_equal(r->findings.len, 1);
    }
}

static void test_transcript(void **state)
{
    struct record *r = *state;
    put(r, "transcript.jsonl", "{\"event\": \"transcript.start\"}\nnot JSON\n");
    put(r, "manifest.json", "{}");
    const char *text = found(r, "{transcript: [envelope]}");
    assert_non_null(strstr(text, "transcript, envelope, line 1: "));
    assert_non_null(strstr(text, "transcript: it has no entry"));
}

static void test_findings_are_counted_when_full(void **state)
{
    struct findings f = { .text = BUF_INIT(16) };
    finding(&f, "short");
    finding(&f, "%s", "a sentence that is longer than the room that is left");
    finding(&f, "two\nlines");
    assert_int_equal(f.len, 3);
    buf_done(&f.text);
}

static void expect_refusal(const char *check, const char *message)
{
    struct err e = { 0 };
    const struct json *list = tree(arena_printf(arena, "- %s", check));
    if (checks_read(list, "f.yaml", &e) != -ERR_CONFIG) {
        fail_msg("it was read: %s", check);
    }
    if (strstr(e.msg, message) == NULL) {
        fail_msg("'%s' is not in '%s'", message, e.msg);
    }
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *check, *message;
    } wrong[] = {
        { "reson: success", "f.yaml:1:3: no check is called 'reson'" },
        { "{reason: a, exit: 1}", "f.yaml:1:3: a check is a map with one key" },
        { "just words", "f.yaml:1:3: a check is a map with one key" },
        { "text: {}", "an empty matcher holds always" },
        { "result: {}", "expected a map of JSON Pointers to matchers" },
        { "result: {output: x}", "'output' is not a JSON Pointer" },
        { "metrics: 5", "f.yaml:1:12: expected a map of JSON Pointers" },
        { "outside: x", "a map of names and matchers belongs here" },
        { "outside: {../x: y}", "f.yaml:1:19: the path of a file is relative and leads down" },
        { "outside: {a/./x: y}", "the path of a file is relative and leads down" },
        { "record: {/etc/passwd: {contains: root}}", "the path of a file is relative and leads" },
        { "record: {a/..: y}", "the path of a file is relative and leads down" },
        { "record: {a//b: y}", "the path of a file is relative and leads down" },
        { "usage: {input: {at_least: 1}}", "f.yaml:1:18: a whole number belongs here" },
        { "event: ToolInvoked", "f.yaml:1:10: 'event' must be a map that is not empty" },
        { "event: {count: 1}", "'event' needs 'name'" },
        { "event: {name: {contains: x}}", "'name' must be" },
        { "event: {name: x, were: {}}", "unknown key 'were' (did you mean 'where'?)" },
        { "event: {name: x, where: {context: 1}}", "'context' is not a JSON Pointer" },
        { "event: {name: x, each: {}}", "a map of JSON Pointers" },
        { "event: {name: x, count: {at_leest: 1}}", "no matcher is called 'at_leest'" },
        { "entry: {}", "'entry' must be a map that is not empty" },
        { "order: {type: x}", "'order' must be a list" },
        { "order: [x]", "'order' must be a map that is not empty" },
        { "transcript: [envelop]", "f.yaml:1:16: no check of transcripts has this name" },
        { "transcript: []", "'transcript' must be a list" },
        { "request: {number: 0}", "requests are counted from 1" },
        { "request: {none: x}", "'none' must be" },
        { "patch: {has: made.txt}", "'has' must be" },
        { "patch: {contains: [x]}", "'contains' must be" },
        { "patch: {}", "'patch' must be a map that is not empty" },
        { "session: {count: 1}", "'session' needs 'slice'" },
        { "link: {from: {name: x, at: /a}}", "'link' needs 'to'" },
        { "link: {from: x, to: y}", "'from' must be" },
        { "same: {runs: [a, b]}", "'same' needs 'what'" },
        { "same: {runs: [a], what: [text]}", "it takes two runs to be the same" },
        { "same: {runs: [a, b], what: [txet]}", "what can be the same" },
        { "any_of: words", "'any_of' must be a list" },
        { "any_of: [[]]", "a list of checks belongs here" },
        { "any_of: [[reson: x]]", "no check is called 'reson'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        expect_refusal(wrong[i].check, wrong[i].message);
    }
    struct err e = { 0 };
    assert_int_equal(checks_read(tree("{reason: x}"), "f.yaml", &e), -ERR_CONFIG);
    assert_int_equal(checks_read(tree("5"), "f.yaml", &e), -ERR_CONFIG);
    assert_int_equal(checks_read(NULL, "f.yaml", &e), 0);
}

/* A check must be able to fail, and mean all that it says. */
static void test_idle_checks(void **state)
{
    static const struct {
        const char *check, *message;
    } idle[] = {
        /* What would be ignored. */
        { "request: {last: true, none: true}", "f.yaml:1:31: one of 'number', 'last', 'any'" },
        { "request: {number: 1, none: true}", "another would be ignored" },
        { "request: {number: 1, count: 99}", "f.yaml:1:31: one of 'number', 'last', 'any'" },
        { "request: {last: true, count: 1}", "another would be ignored" },
        { "request: {none: true, count: 5}", "another would be ignored" },
        { "request: {any: true, count: 0}", "another would be ignored" },
        { "request: {any: true, none: true}", "another would be ignored" },
        { "request: {none: false}", "f.yaml:1:19: 'last', 'any' and 'none' are true, or are left" },
        { "request: {any: false, text: x}", "are true, or are left out" },
        { "request: {last: false}", "are true, or are left out" },
        { "request: {none: true, text: null}", "f.yaml:1:31: 'text' is null" },
        { "patch: {empty: null}", "'empty' is null" },
        /* What could not fail. */
        { "request: {count: {at_least: 0}}", "f.yaml:1:20: this holds for every number from 0" },
        { "event: {name: x, count: {at_least: 0}}", "this holds for every number from 0" },
        { "entry: {type: x, count: {at_least: -1}}", "this holds for every number from 0" },
        { "session: {slice: x, count: {at_least: 0}}", "this holds for every number from 0" },
        { "session: {slice: x, any: {}}", "an empty matcher holds always" },
        { "visits: {at_least: 0}", "f.yaml:1:11: this holds for every number from 0" },
        { "exit: {at_least: 0}", "this holds for every number from 0" },
        { "patch: {has: []}", "f.yaml:1:16: an empty list of paths holds always" },
        { "patch: {lacks: []}", "an empty list of paths holds always" },
        { "patch: {has: [a, '']}", "f.yaml:1:20: the path of a file is relative and leads down" },
        { "patch: {lacks: ['']}", "the path of a file is relative and leads down" },
        { "patch: {lacks: [../a]}", "the path of a file is relative and leads down" },
        { "patch: {contains: ''}", "f.yaml:1:21: every patch contains an empty text" },
        { "record: {\"a\\0b\": null}", "the path of a file is relative and leads down" },
        { "same: {runs: [a, b], what: []}", "f.yaml:1:30: what can be the same" },
        { "same: {runs: [a, b, a], what: [text]}", "f.yaml:1:23: a run is always the same as" },
        { "link: {from: {}, to: {}}", "f.yaml:1:16: a place is the 'name' of an event" },
        { "link: {from: {name: x, at: /a}, to: {name: x}}", "a place is the 'name' of an event" },
        { "link: {from: {name: x, at: /a}, to: {at: /a}}", "a place is the 'name' of an event" },
        { "link: {from: {name: x, at: a}, to: {name: x, at: /a}}", "a place is the 'name'" },
        { "link: {from: {name: x, at: /a}, to: {at: /a, name: x}}", "these are one" },
    };
    for (size_t i = 0; i < ARRAY_LEN(idle); i++) {
        expect_refusal(idle[i].check, idle[i].message);
    }
}

#define RECORD_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORD_TEST(test_checks),       RECORD_TEST(test_filled_paths),
        RECORD_TEST(test_empty_record), RECORD_TEST(test_same),
        RECORD_TEST(test_transcript),   RECORD_TEST(test_findings_are_counted_when_full),
        RECORD_TEST(test_mistakes),     RECORD_TEST(test_idle_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
