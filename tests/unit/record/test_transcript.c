/* SPDX-License-Identifier: MIT
 *
 * transcript.jsonl and agent.log: numbers, counts, brackets, redaction, reading form.
 */
#include "record/transcript.h"

#include "record/logfile.h"
#include "record/redact.h"
#include "record/rundir.h"
#include "record/write_errors.h"
#include "scratch.h"

struct fixture {
    struct rundir dir;
    struct redactor *redactor;
    struct loss loss;
    struct logfile agent;
    struct transcript t;
};

static void open_transcript(struct fixture *f, struct scratch *s)
{
    *f = (struct fixture) { .redactor = redactor_new() };
    assert_int_equal(redactor_add(f->redactor, STR("KEY"), STR("hunter2-secret"), NULL), 0);
    redactor_compile(f->redactor);
    assert_int_equal(rundir_create(&f->dir, scratch_path(s, "out"), NULL, NULL), 0);
    assert_int_equal(logfile_init(&f->agent, &f->dir, "agent.log", f->redactor, &f->loss, NULL), 0);
    assert_int_equal(transcript_init(&f->t, &f->dir, f->redactor, &f->agent, &f->loss, NULL), 0);
}

static void close_transcript(struct fixture *f)
{
    transcript_done(&f->t);
    logfile_done(&f->agent);
    rundir_done(&f->dir);
    f->redactor = redactor_free(f->redactor);
}

static void add(struct fixture *f, struct scratch *s, enum entry_type type, const char *source,
                const char *text)
{
    struct json *detail = json_object(s->arena);
    json_setc(s->arena, detail, "text", json_cstr(s->arena, text));
    transcript_add(&f->t,
                   &(struct transcript_entry) { .type = type, .source = source, .detail = detail });
}

static void numbers_have_no_gaps_per_source_and_stop_counts_them(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_transcript(&f, s);
    add(&f, s, ENTRY_ERROR, NULL, "before any start: dropped");
    transcript_start(&f.t, "demo:task", "command");
    add(&f, s, ENTRY_USER_MESSAGE, NULL, "do it");
    add(&f, s, ENTRY_THINKING, "subagent:1", "hm");
    add(&f, s, ENTRY_ASSISTANT_MESSAGE, NULL, "done");
    transcript_stop(&f.t);
    transcript_stop(&f.t);
    transcript_start(&f.t, "demo:task", "command");
    add(&f, s, ENTRY_USER_MESSAGE, NULL, "again");
    transcript_stop(&f.t);
    static const struct {
        const char *event;
        const char *source;
        int number;
    } expected[] = {
        { "transcript.start", "(none)", 0 },     { "transcript.entry", "main", 1 },
        { "transcript.entry", "subagent:1", 1 }, { "transcript.entry", "main", 2 },
        { "transcript.stop", "(none)", 0 },      { "transcript.start", "(none)", 0 },
        { "transcript.entry", "main", 1 },       { "transcript.stop", "(none)", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        struct json *line = scratch_line(s, "out/transcript.jsonl", i);
        assert_true(transcript_is_valid(line));
        assert_string_equal(word(line, "/event"), expected[i].event);
        assert_string_equal(word(line, "/source"), expected[i].source);
        assert_int_equal(json_int(json_get(line, "sequence_number"), 0), expected[i].number);
    }
    assert_null(scratch_line(s, "out/transcript.jsonl", ARRAY_LEN(expected)));
    struct json *stop = scratch_line(s, "out/transcript.jsonl", 4);
    assert_int_equal(json_int(json_get(stop, "total_entries"), 0), 3);
    assert_int_equal(json_int(json_pointer(stop, STR("/entries_by_source/main")), 0), 2);
    assert_int_equal(json_int(json_pointer(stop, STR("/entries_by_type/thinking")), 0), 1);
    assert_int_equal(json_len(json_get(stop, "entries_by_type")), 3);
    close_transcript(&f);
}

static void secrets_stay_out_of_both_files(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_transcript(&f, s);
    transcript_start(&f.t, "hunter2-secret", "hunter2-secret");
    struct json *detail = scratch_json(s, STR("{\"tool_name\":\"hunter2-secret\",\"input\":{"
                                              "\"hunter2-secret\":\"hunter2-secret\"}}"));
    transcript_add(&f.t, &(struct transcript_entry) {
                             .type = ENTRY_TOOL_USE,
                             .source = "subagent:hunter2-secret",
                             .session_id = "hunter2-secret",
                             .detail = detail,
                             .raw = STR("{\"x\":\"hunter2-secret\"}"),
                         });
    transcript_stop(&f.t);
    struct str text = scratch_read(s, "out/transcript.jsonl");
    assert_int_equal(str_find(text, STR("hunter2")), text.len);
    struct json *line = scratch_line(s, "out/transcript.jsonl", 1);
    assert_string_equal(word(line, "/raw"), "{\"x\":\"[REDACTED:KEY]\"}");
    assert_string_equal(word(line, "/session_id"), "[REDACTED:KEY]");
    text = scratch_read(s, "out/agent.log");
    assert_int_equal(str_find(text, STR("hunter2")), text.len);
    assert_true(str_find(text, STR("#1 tool_use [REDACTED:KEY]\n")) < text.len);
    close_transcript(&f);
}

static void raw_is_cut_after_redaction(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_transcript(&f, s);
    CLEANUP(buf) struct buf raw = BUF_INIT(BUF_TEXT);
    while (raw.len < TRANSCRIPT_RAW_MAX - 5) {
        buf_adds(&raw, "x");
    }
    buf_adds(&raw, "hunter2-secret and more");
    transcript_start(&f.t, "p", "a");
    transcript_add(&f.t,
                   &(struct transcript_entry) { .type = ENTRY_UNKNOWN, .raw = buf_str(&raw) });
    transcript_stop(&f.t);
    struct json *line = scratch_line(s, "out/transcript.jsonl", 1);
    assert_int_equal(json_len(json_get(line, "raw")), TRANSCRIPT_RAW_MAX);
    assert_int_equal(json_int(json_get(line, "raw_bytes"), 0), (int64_t)raw.len);
    struct str text = json_str(json_get(line, "raw"), STR_EMPTY);
    assert_true(str_ends(text, STR("x[REDA")));
    assert_true(transcript_is_valid(line));
    close_transcript(&f);
}

static void agent_log_is_readable(void **state)
{
    struct scratch *s = *state;
    struct json *line = scratch_json(
        s, STR("{\"event\":\"transcript.entry\",\"prompt_name\":\"p\",\"adapter\":\"a\","
               "\"entry_type\":\"tool_result\",\"sequence_number\":4,\"source\":\"main\","
               "\"timestamp\":\"2026-11-15T20:29:35.123Z\","
               "\"detail\":{\"tool_name\":\"Bash\",\"output\":\"one\\ntwo\\n\"}}"));
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    transcript_render(line, &text);
    assert_string_equal(text.ptr, "20:29:35.123 main #4 tool_result Bash\n    one\n    two\n");
    json_setc(s->arena, line, "detail", scratch_json(s, STR("{\"subtype\":\"init\",\"n\":1}")));
    buf_reset(&text);
    transcript_render(line, &text);
    assert_string_equal(text.ptr, "20:29:35.123 main #4 tool_result\n"
                                  "    {\"subtype\":\"init\",\"n\":1}\n");
}

static void damaged_lines_are_recognised(void **state)
{
    struct scratch *s = *state;
    static const char good[] =
        "{\"event\":\"transcript.entry\",\"prompt_name\":\"p\",\"adapter\":\"a\",\"entry_type\":"
        "\"error\",\"sequence_number\":4,\"source\":\"main\",\"timestamp\":\"2026-11-15T20:29:35."
        "123Z\","
        "\"detail\":{}}";
    assert_true(transcript_is_valid(scratch_json(s, str_of(good))));
    static const char *const changes[][2] = {
        { "\"error\"", "\"errar\"" },
        { "entry_type", "entry_typo" },
        { ":4,", ":0," },
        { "\"main\"", "\"\"" },
        { "{}", "[]" },
        { "2026-11", "2026-31" },
        { "ript.entry", "ript.e" },
        { "\"a\"", "1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        const char *at = strstr(good, changes[i][0]);
        assert_non_null(at);
        const char *text = arena_printf(s->arena, "%.*s%s%s", (int)(at - good), good, changes[i][1],
                                        at + strlen(changes[i][0]));
        if (transcript_is_valid(scratch_json(s, str_of(text)))) {
            fail_msg("accepted: %s", text);
        }
    }
}

static void the_schema_has_the_same_types(void **state)
{
    struct scratch *s = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_int_equal(
        file_read(AT_FDCWD, SCHEMA_DIR "/transcript.schema.json", BUF_TEXT, &text, NULL), 0);
    struct json *types =
        json_pointer(scratch_json(s, buf_str(&text)), STR("/oneOf/1/properties/entry_type/enum"));
    assert_int_equal(json_len(types), ENTRY_TYPE_MAX);
    for (size_t i = 0; i < ENTRY_TYPE_MAX; i++) {
        assert_string_equal(json_cstring(json_item(types, i), ""), entry_type_word(i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(numbers_have_no_gaps_per_source_and_stop_counts_them),
        SCRATCH_TEST(secrets_stay_out_of_both_files),
        SCRATCH_TEST(raw_is_cut_after_redaction),
        SCRATCH_TEST(agent_log_is_readable),
        SCRATCH_TEST(damaged_lines_are_recognised),
        SCRATCH_TEST(the_schema_has_the_same_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
