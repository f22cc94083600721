/* SPDX-License-Identifier: MIT
 *
 * The validator on transcripts with one fault each: the check that is named for it finds it, in the
 * right line, and no other check does. What the record itself writes is clean.
 */
#include "validate/validator.h"

#include <sys/stat.h>

#include "../record/scratch.h"
#include "base/sha256.h"
#include "record/logfile.h"
#include "record/redact.h"
#include "record/rundir.h"
#include "record/write_errors.h"

#define AT(s) "\"timestamp\":\"2026-11-15T20:29:" s "Z\""
#define HEAD(event, name) \
    "{\"event\":\"transcript." event "\",\"prompt_name\":\"" name "\",\"adapter\":\"a\","
#define START                      HEAD("start", "p") AT("35.000") "}\n"
#define ENTRY(type, n, time, more) SOURCE("main", type, n, time, more)
#define SOURCE(source, type, n, time, more)                                                     \
    HEAD("entry", "p")                                                                          \
    "\"entry_type\":\"" type "\",\"sequence_number\":" n ",\"source\":\"" source "\"," AT(time) \
        more "}\n"
#define USE(n, time, id)       \
    ENTRY("tool_use", n, time, \
          ",\"detail\":{\"tool_name\":\"mcp__x_add\",\"tool_call_id\":\"" id "\"}")
#define RESULT(n, time, id) \
    ENTRY("tool_result", n, time, ",\"detail\":{\"tool_call_id\":\"" id "\"}")
#define STOP(total, sources, types)                                                                \
    HEAD("stop", "p")                                                                              \
    AT("39.000")                                                                                   \
    ",\"total_entries\":" total ",\"entries_by_source\":{" sources "},\"entries_by_type\":{" types \
    "}}\n"

static const char good[] =
    START ENTRY("user_message", "1", "35.000", ",\"detail\":{\"text\":\"go\"}")
        USE("2", "35.100", "c1") SOURCE("subagent:7", "thinking", "1", "35.200", "")
            RESULT("3", "35.300", "c1") STOP("4", "\"main\":3,\"subagent:7\":1",
                                             "\"user_message\":1,\"tool_use\":1,\"thinking\":1,"
                                             "\"tool_result\":1");

struct found {
    struct validator *validator;
    const struct validator_report *report;
};

/* In pieces of an odd size: lines do not depend on them. */
static struct found ask(struct str text, const struct validator_opts *opts)
{
    enum { PIECE = 37 };
    struct validator *o = validator_new(opts);
    for (size_t i = 0; i < text.len; i += PIECE) {
        validator_feed(o, str_slice(text, i, i + PIECE));
    }
    validator_end(o);
    return (struct found) { o, validator_report(o) };
}

static const char *told(struct scratch *s, const struct validator_report *r)
{
    const char *all = "";
    for (size_t i = 0; i < r->n_findings; i++) {
        const struct validator_finding *f = &r->findings[i];
        all = arena_printf(s->arena, "%s%s%s%zu: %s: %s\n", all, f->file != NULL ? f->file : "",
                           f->file != NULL ? ":" : "", f->line, validator_check_word(f->check),
                           f->sentence);
    }
    return all;
}

static const char *changed(struct scratch *s, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (at == NULL) {
        fail_msg("'%s' is not in it", from);
    }
    return arena_printf(s->arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void a_good_one_is_clean(void **state)
{
    struct scratch *s = *state;
    struct validator_opts opts = { .adapter = "a", .tool = "add" };
    struct found f = ask(STR(good), &opts);
    assert_string_equal(told(s, f.report), "");
    assert_true(f.report->is_transcript);
    const struct validator_summary *sum = &f.report->summary;
    assert_int_equal(sum->entries, 4);
    assert_int_equal(sum->conversations, 1);
    assert_int_equal(sum->by_type[ENTRY_TOOL_USE], 1);
    assert_int_equal(json_int(json_get(sum->by_source, "main"), 0), 3);
    assert_string_equal(sum->adapter, "a");
    assert_string_equal(sum->prompt_name, "p");
    assert_string_equal(sum->first, "2026-11-15T20:29:35.000Z");
    assert_string_equal(sum->last, "2026-11-15T20:29:35.300Z");
    validator_free(f.validator);
}

/* Two conversations: numbers, calls and counts begin anew. */
static void a_second_conversation_begins_anew(void **state)
{
    struct scratch *s = *state;
    const char *later = good;
    while (strstr(later, "20:29:") != NULL) {
        later = changed(s, later, "20:29:", "20:30:");
    }
    const char *both = arena_printf(s->arena, "%s%s", good, later);
    struct found f = ask(str_of(both), &(struct validator_opts) { 0 });
    assert_string_equal(told(s, f.report), "");
    assert_int_equal(f.report->summary.conversations, 2);
    assert_int_equal(f.report->summary.entries, 8);
    validator_free(f.validator);
}

struct fault {
    const char *from, *to, *expected;
};

static const struct fault faults[] = {
    /* envelope */
    { "\"main\",", "\"main\",\"x\":1,", "2: envelope: 'x' is not allowed here\n" },
    { "{\"text\":\"go\"}", "[]", "2: envelope: 'detail' is of type array, not object\n" },
    { ",\"source\":\"subagent:7\"", ",\"source\":\"subagent\"",
      "4: envelope: source is 'subagent', not main or subagent:<id>\n"
      "6: bracketing: entries_by_source.subagent:7 is 1, but there are 0\n"
      "6: bracketing: entries_by_source omits 1 of 2 sources\n" },
    { "29:35.200Z", "29:35.200",
      "4: envelope: timestamp '2026-11-15T20:29:35.200' is not a time in UTC\n" },
    { ",\"timestamp\":\"2026-11-15T20:29:35.200Z\"", "", "4: envelope: 'timestamp' is missing\n" },
    { "\"thinking\":1,", "\"thinking\":1,\"error\":0,",
      "6: envelope: 'entries_by_type' has no count for 'error'\n" },
    { "}\n{\"event\":\"transcript.stop\"", "}\n\n{\"event\":\"transcript.stop\"",
      "6: envelope: empty line\n" },
    { "}\n{\"event\":\"transcript.stop\"", "}\n[1]\n{\"event\":\"transcript.stop\"",
      "6: envelope: not an object: the type is array\n" },
    { "}\n{\"event\":\"transcript.stop\"", "}\n{\"event\":\"run\"}\n{\"event\":\"transcript.stop\"",
      "6: envelope: event 'run' is not a transcript event\n" },
    { "\"tool_result\":1}}\n", "\"tool_result\":1}}",
      "6: envelope: the last line has no newline\n" },
    /* canonical_types */
    { "\"entry_type\":\"thinking\"", "\"entry_type\":\"musing\"",
      "4: canonical_types: 'musing' is not an entry type\n"
      "6: bracketing: entries_by_type.thinking is 1, but there are 0\n" },
    { "\"thinking\":1,", "\"thinking\":1,\"musing\":1,",
      "6: canonical_types: the stop counts 'musing', which is not a type\n" },
    /* sequence */
    { "\"sequence_number\":3", "\"sequence_number\":4",
      "5: sequence: number 4 of 'main' follows 2\n" },
    { "\"sequence_number\":3", "\"sequence_number\":2",
      "5: sequence: number 2 of 'main' occurs twice\n" },
    { "\"sequence_number\":1,\"source\":\"sub", "\"sequence_number\":3,\"source\":\"sub",
      "4: sequence: the first entry of 'subagent:7' has number 3, not 1\n" },
    /* adapter_label */
    { "\"adapter\":\"a\",\"entry_type\":\"thinking\"",
      "\"adapter\":\"b\",\"entry_type\":\"thinking\"",
      "4: adapter_label: adapter is 'b', not 'a'\n" },
    { "\"adapter\":\"a\",\"entry_type\":\"thinking\"",
      "\"adapter\":\"\",\"entry_type\":\"thinking\"", "4: adapter_label: no adapter name\n" },
    /* causal_order */
    { "{\"tool_call_id\":\"c1\"}", "{\"tool_call_id\":\"c2\"}",
      "5: causal_order: result of call 'c2', which does not exist\n" },
    { "35.200", "34.200", "4: causal_order: the timestamp is before that of line 3\n" },
    /* bracketing */
    { START, "",
      "1: bracketing: entry outside of a start and its stop\n"
      "5: bracketing: stop without a start\n" },
    { "}\n{\"event\":\"transcript.stop\"", "}\n" START "{\"event\":\"transcript.stop\"",
      "6: causal_order: the timestamp is before that of line 5\n"
      "6: bracketing: start, but the conversation of line 1 has no stop\n"
      "7: bracketing: total_entries is 4, but there are 0\n"
      "7: bracketing: entries_by_source.main is 3, but there are 0\n"
      "7: bracketing: entries_by_source.subagent:7 is 1, but there are 0\n"
      "7: bracketing: entries_by_type.user_message is 1, but there are 0\n"
      "7: bracketing: entries_by_type.tool_use is 1, but there are 0\n"
      "7: bracketing: entries_by_type.tool_result is 1, but there are 0\n"
      "7: bracketing: entries_by_type.thinking is 1, but there are 0\n" },
    { "\"total_entries\":4", "\"total_entries\":5",
      "6: bracketing: total_entries is 5, but there are 4\n" },
    { "\"main\":3,", "\"main\":2,",
      "6: bracketing: entries_by_source.main is 2, but there are 3\n" },
    { "\"main\":3,", "", "6: bracketing: entries_by_source omits 1 of 2 sources\n" },
    { "\"tool_use\":1,", "", "6: bracketing: the stop has no 'entries_by_type.tool_use'\n" },
    { "\"prompt_name\":\"p\",\"adapter\":\"a\",\"entry_type\":\"thinking\"",
      "\"prompt_name\":\"q\",\"adapter\":\"a\",\"entry_type\":\"thinking\"",
      "4: bracketing: the prompt is 'q', but line 1 starts 'p'\n" },
};

static void each_fault_is_found_where_it_is(void **state)
{
    struct scratch *s = *state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        const char *text = changed(s, good, faults[i].from, faults[i].to);
        struct found f = ask(str_of(text), &(struct validator_opts) { 0 });
        const char *all = told(s, f.report);
        if (strcmp(all, faults[i].expected) != 0) {
            fail_msg("fault %zu: expected\n%sfound\n%s", i, faults[i].expected, all);
        }
        validator_free(f.validator);
    }
}

/* Only what was asked for is answered. */
static void a_check_can_be_asked_for_alone(void **state)
{
    struct scratch *s = *state;
    const char *text = changed(s, good, "\"sequence_number\":3", "\"sequence_number\":9");
    text = changed(s, text, "\"total_entries\":4", "\"total_entries\":5");
    for (size_t i = 0; i < VALIDATOR_CHECK_MAX; i++) {
        struct found f = ask(str_of(text), &(struct validator_opts) { .checks = 1u << i });
        bool is_its = i == VALIDATOR_SEQUENCE || i == VALIDATOR_BRACKETING;
        assert_int_equal(f.report->n_findings, is_its ? 1 : 0);
        validator_free(f.validator);
    }
    enum validator_check check;
    assert_true(validator_check_find(STR("causal_order"), &check) &&
                check == VALIDATOR_CAUSAL_ORDER);
    assert_false(validator_check_find(STR("order"), &check));
}

static void expect(struct scratch *s, const char *text, const struct validator_opts *opts,
                   const char *expected)
{
    struct found f = ask(str_of(text), opts);
    const char *all = told(s, f.report);
    if (strcmp(all, expected) != 0) {
        fail_msg("expected\n%sfound\n%sin\n%s", expected, all, text);
    }
    validator_free(f.validator);
}

#define ANONYMOUS(type, n) ENTRY(type, n, "35.000", ",\"detail\":{\"name\":\"add\"}")

static void calls_and_results_belong_together(void **state)
{
    struct scratch *s = *state;
    struct validator_opts causal = { .checks = 1u << VALIDATOR_CAUSAL_ORDER };
    expect(s, RESULT("1", "35.000", "c") USE("2", "35.000", "c"), &causal,
           "1: causal_order: result of call 'c', which does not exist\n"
           "2: causal_order: call 'c' comes after its result in line 1\n");
    expect(s, USE("1", "35.000", "c") USE("2", "35.000", "c"), &causal,
           "2: causal_order: call 'c' is already in line 1\n");
    expect(s, USE("1", "35.000", "c") RESULT("2", "35.000", "c") RESULT("3", "35.000", "c"),
           &causal, "3: causal_order: call 'c' already has a result in line 2\n");
    expect(s,
           USE("1", "35.000", "c") SOURCE("subagent:1", "tool_result", "1", "35.000",
                                          ",\"detail\":{\"tool_call_id\":\"c\"}"),
           &causal, "2: causal_order: result of call 'c', which belongs to 'main'\n");
    /* Programs that name no calls: as many results as calls, never more. */
    expect(s,
           ANONYMOUS("tool_use", "1") ANONYMOUS("tool_use", "2") ANONYMOUS("tool_result", "3")
               ANONYMOUS("tool_result", "4"),
           &causal, "");
    expect(s,
           ANONYMOUS("tool_use", "1") ANONYMOUS("tool_result", "2") ANONYMOUS("tool_result", "3"),
           &causal, "3: causal_order: result, but no call of 'main' is open\n");
    expect(s, ANONYMOUS("tool_result", "1"), &causal,
           "1: causal_order: result, but no call of 'main' is open\n");
}

static void a_tool_must_have_been_called_and_answered(void **state)
{
    struct scratch *s = *state;
    struct validator_opts opts = { .checks = 1u << VALIDATOR_CAUSAL_ORDER, .tool = "add" };
    expect(s, good, &opts, "");
    expect(s, USE("1", "35.000", "c"), &opts,
           "1: causal_order: this call of 'add' has no result\n");
    opts.tool = "dd";
    expect(s, good, &opts, "0: causal_order: 'dd' was never called\n");
    opts.tool = "subtract";
    expect(s, good, &opts, "0: causal_order: 'subtract' was never called\n");
}

static void the_adapter_may_be_given(void **state)
{
    struct validator_opts opts = { .checks = 1u << VALIDATOR_ADAPTER_LABEL, .adapter = "codex" };
    struct found f = ask(STR(good), &opts);
    assert_int_equal(f.report->n_findings, 6); /* each line */
    validator_free(f.validator);
}

/* --- log records --- */

#define LOG(event, context)                                                                     \
    "{\"timestamp\":\"2026-11-15T20:29:35.123456+00:00\",\"level\":\"DEBUG\",\"logger\":\"t\"," \
    "\"event\":\"" event "\",\"message\":\"m\",\"context\":{" context "}}\n"
#define LABEL "\"component\":\"transcript\",\"prompt_name\":\"p\",\"adapter\":\"a\""
#define LOG_ENTRY(n)                                                                    \
    LOG("transcript.entry", LABEL ",\"entry_type\":\"thinking\",\"sequence_number\":" n \
                                  ",\"source\":\"main\",\"timestamp\":"                 \
                                  "\"2026-11-15T22:29:35.123456+02:00\"")

static void log_records_are_read_too(void **state)
{
    struct scratch *s = *state;
    struct validator_opts all = { 0 };
    const char *stop =
        LOG("transcript.stop", LABEL ",\"total_entries\":2,\"entries_by_source\":"
                                     "{\"main\":2},\"entries_by_type\":{\"thinking\":2}");
    const char *whole = arena_printf(
        s->arena, "%s%s%s%s%s%s", LOG("hook.stop", ""), LOG("transcript.start", LABEL),
        LOG_ENTRY("1"), LOG("transcript.error", "\"error\":\"x\""), LOG_ENTRY("2"), stop);
    expect(s, whole, &all, "");
    /* Entries alone, of two conversations: the rest was filtered out. */
    expect(s, LOG_ENTRY("1") LOG_ENTRY("2") LOG_ENTRY("1"), &all, "");
    expect(s, LOG_ENTRY("1") LOG_ENTRY("3"), &all, "2: sequence: number 3 of 'main' follows 1\n");
    /* A whole log must have them. */
    expect(s, LOG("hook.stop", "") LOG_ENTRY("1"), &all,
           "0: bracketing: the log has no transcript.start\n");
    expect(s, changed(s, LOG_ENTRY("1"), "+02:00", "+2"), &all,
           "1: envelope: timestamp '2026-11-15T22:29:35.123456+2' is not a time in UTC\n");
}

/* --- what is none --- */

static void other_files_are_no_transcripts(void **state)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {
        { "", true }, /* of a run that was refused */
        { "\n", true },
        { "hello\n", false },
        { "{}\n", false },
        { "{\"event\":\"run.started\",\"context\":{}}\n", false },
        { "hello\n" START, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct found f = ask(str_of(cases[i].text), &(struct validator_opts) { 0 });
        assert_int_equal(f.report->is_transcript, cases[i].is);
        validator_free(f.validator);
    }
}

static void findings_have_a_bound(void **state)
{
    struct scratch *s = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < VALIDATOR_FINDINGS_MAX + 5; i++) {
        buf_adds(&text, "x\n");
    }
    struct found f = ask(buf_str(&text), &(struct validator_opts) { 0 });
    assert_int_equal(f.report->n_findings, VALIDATOR_FINDINGS_MAX);
    assert_int_equal(f.report->left_out, 5);
    assert_int_equal(f.report->findings[VALIDATOR_FINDINGS_MAX - 1].line, VALIDATOR_FINDINGS_MAX);
    validator_free(f.validator);
    buf_reset(&text);
    for (size_t i = 0; i < (17u << 10); i++) { /* beyond JSONL_LINE_MAX */
        char *to;
        assert_int_equal(buf_reserve(&text, 1024, &to, NULL), 0);
        memset(to, 'x', 1024);
        buf_commit(&text, 1024);
    }
    buf_adds(&text, "\nx\n");
    f = ask(buf_str(&text), &(struct validator_opts) { 0 });
    assert_non_null(strstr(told(s, f.report), "1: envelope: longer than 16777216 bytes\n2: "));
    validator_free(f.validator);
}

/* --- directories --- */

static const char manifest[] = "{\"status\":\"completed\",\"artifacts\":[\"agent.log\","
                               "\"transcript.jsonl\"],\"metadata\":{\"agent\":\"a\"}}";
static const char events[] =
    "{\"event\":\"PromptRendered\",\"context\":{\"adapter\":\"a\",\"prompt_name\":\"p\"}}\n"
    "{\"event\":\"ToolInvoked\",\"context\":{\"adapter\":\"a\",\"prompt_name\":\"p\","
    "\"name\":\"add\",\"call_id\":\"c1\"}}\n";
static const char agent_log[] = "20:29:35.000 main #1 user_message\n    go\n"
                                "20:29:35.100 main #2 tool_use mcp__x_add\n    main #9 error\n"
                                "20:29:35.200 subagent:7 #1 thinking\n"
                                "20:29:35.300 main #3 tool_result\n";

static void write_run(struct scratch *s)
{
    (void)mkdir(scratch_path(s, "run"), 0700);
    scratch_write(s, "run/transcript.jsonl", STR(good));
    scratch_write(s, "run/manifest.json", STR(manifest));
    scratch_write(s, "run/events.jsonl", STR(events));
    scratch_write(s, "run/agent.log", STR(agent_log));
}

static void look(struct scratch *s, const char *expected)
{
    struct err e = { 0 };
    CLEANUP(validator) struct validator *o = NULL;
    if (validator_look(scratch_path(s, "run"), &(struct validator_opts) { 0 }, &o, &e) < 0) {
        fail_msg("%s", e.msg);
    }
    const char *all = told(s, validator_report(o));
    if (strcmp(all, expected) != 0) {
        fail_msg("expected\n%sfound\n%s", expected, all);
    }
}

static void the_record_tells_of_the_same_transcript(void **state)
{
    struct scratch *s = *state;
    static const struct {
        const char *file, *content, *from, *to, *expected;
    } cases[] = {
        { "run/manifest.json", manifest, ",\"transcript.jsonl\"", "",
          "manifest.json:0: bundle: it does not list transcript.jsonl\n" },
        { "run/manifest.json", manifest, "completed", "running",
          "manifest.json:0: bundle: the run has not ended ('cinch recover' closes the record of a "
          "killed run)\n" },
        { "run/manifest.json", manifest, "{\"status\"", "\"status\"",
          "manifest.json:0: bundle: missing or damaged ('cinch recover' closes the record of a "
          "killed run)\n" },
        /* A call that the harness gave no id to is known by its name, as often as it is there. */
        { "run/events.jsonl", events, "\"c1\"", "\"c2\"", "" },
        { "run/events.jsonl", events, "\"add\",\"call_id\":\"c1\"", "\"sub\",\"call_id\":\"c2\"",
          "events.jsonl:2: bundle: the transcript does not contain call 'c2' of 'sub'\n" },
        { "run/events.jsonl", events, "\"call_id\":\"c1\"}}\n",
          "\"call_id\":\"c2\"}}\n{\"event\":\"ToolInvoked\",\"context\":{\"name\":\"add\","
          "\"call_id\":\"c3\"}}\n",
          "events.jsonl:3: bundle: the transcript does not contain call 'c3' of 'add'\n" },
        { "run/events.jsonl", events, "\"adapter\":\"a\"", "\"adapter\":\"b\"",
          "events.jsonl:1: bundle: adapter is 'b', but 'a' in the transcript\n" },
        { "run/events.jsonl", events, "\"p\"", "\"q\"",
          "events.jsonl:1: bundle: prompt_name is 'q', but 'p' in the transcript\n" },
        { "run/events.jsonl", events, "\"p\"", "\"[REDACTED:K]\"", "" },
        { "run/events.jsonl", events, "PromptRendered", "other",
          "events.jsonl:0: bundle: a conversation was started, but no prompt was rendered\n" },
        { "run/agent.log", agent_log, "#2 tool_use", "#2 error",
          "agent.log:3: bundle: 'main #2 error mcp__x_add' does not match 'main #2 tool_use' in "
          "the "
          "transcript\n" },
        { "run/agent.log", agent_log, "20:29:35.300 main #3 tool_result\n", "",
          "agent.log:5: bundle: the log ends before 'main #3 tool_result' of the transcript\n" },
        { "run/agent.log", agent_log, "#3 tool_result\n",
          "#3 tool_result\n20:29:36.000 main #4 error\n",
          "agent.log:7: bundle: 'main #4 error' is not in the transcript\n" },
    };
    write_run(s);
    look(s, "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_run(s);
        scratch_write(s, cases[i].file,
                      str_of(changed(s, cases[i].content, cases[i].from, cases[i].to)));
        look(s, cases[i].expected);
    }
    /* What lost lines says so, and is not held to more. */
    write_run(s);
    scratch_write(s, "run/agent.log", STR_EMPTY);
    scratch_write(s, "run/manifest.json",
                  str_of(changed(s, manifest, "{", "{\"recovered\":true,")));
    look(s, "");
    scratch_write(s, "run/manifest.json", STR(manifest));
    scratch_write(s, "run/events.jsonl", STR("{\"event\":\"record.loss\",\"context\":{}}\n"));
    look(s, "");
}

static void a_missing_transcript_is_told(void **state)
{
    struct scratch *s = *state;
    struct err e;
    CLEANUP(validator) struct validator *o = NULL;
    struct validator_opts some = { .checks = 1u << VALIDATOR_SEQUENCE };
    write_run(s);
    assert_int_equal(unlink(scratch_path(s, "run/transcript.jsonl")), 0);
    look(s, "0: bundle: missing\n"
            "events.jsonl:0: bundle: a prompt was rendered, but no conversation was started\n"
            "agent.log:1: bundle: 'main #1 user_message' is not in the transcript\n");
    assert_int_equal(validator_look(scratch_path(s, "run"), &some, &o, &e), -ERR_INPUT);
    assert_int_equal(unlink(scratch_path(s, "run/manifest.json")), 0);
    assert_int_equal(validator_look(scratch_path(s, "run"), &(struct validator_opts) { 0 }, &o, &e),
                     -ERR_INPUT);
    assert_int_equal(validator_look(scratch_path(s, "none"), &some, &o, &e), -ERR_INPUT);
    assert_int_equal(validator_look(scratch_path(s, "run/agent.log"), &some, &o, &e), -ERR_PARSE);
    some.checks = 1u << VALIDATOR_BUNDLE;
    assert_int_equal(validator_look(scratch_path(s, "run/agent.log"), &some, &o, &e), -ERR_USAGE);
    assert_int_equal(symlink("agent.log", scratch_path(s, "run/transcript.jsonl")), 0);
    assert_int_equal(validator_look(scratch_path(s, "run"), &(struct validator_opts) { 0 }, &o, &e),
                     -ERR_INPUT);
}

/* An unpacked debug bundle: checksums, no events. */
static void a_bundle_has_checksums(void **state)
{
    struct scratch *s = *state;
    static const char sums[] =
        "{\"files\":[\"transcript.jsonl\"],\"prompt\":{\"adapter\":\"a\"},\"integrity\":"
        "{\"algorithm\":\"sha256\",\"checksums\":{\"transcript.jsonl\":"
        "\"%s\"}}}";
    write_run(s);
    (void)unlink(scratch_path(s, "run/events.jsonl"));
    (void)unlink(scratch_path(s, "run/agent.log"));
    scratch_write(s, "run/transcript.jsonl", STR(LOG_ENTRY("1")));
    char hash[SHA256_HEX];
    sha256_hex(STR(LOG_ENTRY("1")), hash);
    scratch_write(s, "run/manifest.json", str_of(changed(s, sums, "%s", hash)));
    look(s, "");
    scratch_write(s, "run/manifest.json", str_of(changed(s, sums, "%s", "0000")));
    look(s, arena_printf(s->arena,
                         "manifest.json:0: bundle: the checksum of transcript.jsonl is %s, not "
                         "0000\n",
                         hash));
}

/* What the record writes, as it writes it. */
static void our_own_are_clean(void **state)
{
    struct scratch *s = *state;
    struct rundir dir;
    struct loss loss = { 0 };
    struct logfile agent;
    struct transcript t;
    CLEANUP(redactor) struct redactor *r = redactor_new();
    redactor_compile(r);
    assert_int_equal(rundir_create(&dir, scratch_path(s, "run"), NULL, NULL), 0);
    assert_int_equal(logfile_init(&agent, &dir, "agent.log", r, &loss, NULL), 0);
    assert_int_equal(transcript_init(&t, &dir, r, &agent, &loss, NULL), 0);
    transcript_start(&t, "p", "a");
    for (int i = 0; i < ENTRY_TYPE_MAX; i++) {
        struct json *detail =
            scratch_json(s, STR("{\"tool_call_id\":\"x\",\"text\":\"one\\ntwo\"}"));
        struct transcript_entry entry = { .type = i, .detail = detail, .raw = STR("{}") };
        entry.source = i % 2 == 0 ? "subagent:\\x" : NULL;
        entry.source = i == ENTRY_TOOL_USE || i == ENTRY_TOOL_RESULT ? NULL : entry.source;
        transcript_add(&t, &entry);
    }
    transcript_stop(&t);
    scratch_write(s, "run/manifest.json", STR(manifest));
    scratch_write(s, "run/events.jsonl", str_of(changed(s, events, "c1", "x")));
    look(s, "");
    transcript_done(&t);
    logfile_done(&agent);
    rundir_done(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_good_one_is_clean),
        SCRATCH_TEST(a_second_conversation_begins_anew),
        SCRATCH_TEST(each_fault_is_found_where_it_is),
        SCRATCH_TEST(a_check_can_be_asked_for_alone),
        SCRATCH_TEST(calls_and_results_belong_together),
        SCRATCH_TEST(a_tool_must_have_been_called_and_answered),
        SCRATCH_TEST(the_adapter_may_be_given),
        SCRATCH_TEST(log_records_are_read_too),
        SCRATCH_TEST(other_files_are_no_transcripts),
        SCRATCH_TEST(findings_have_a_bound),
        SCRATCH_TEST(the_record_tells_of_the_same_transcript),
        SCRATCH_TEST(a_missing_transcript_is_told),
        SCRATCH_TEST(a_bundle_has_checksums),
        SCRATCH_TEST(our_own_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
