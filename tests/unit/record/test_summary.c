/* SPDX-License-Identifier: MIT
 *
 * The three views of a summary, and state.json: order, defaults, redaction, agreement with the
 * schemas.
 */
#include "record/summary.h"

#include <math.h>

#include "record/redact.h"
#include "record/rundir.h"
#include "record/stamp.h"
#include "record/state.h"
#include "scratch.h"

static const char run_id[] = "01234567-89ab-7cde-8f01-23456789abcd";

static void metrics_begin_with_the_ten_fields(void **state)
{
    struct scratch *s = *state;
    struct summary sum = {
        .run_id = run_id,
        .reason = REASON_TIMEOUT,
        .timeout = TIMEOUT_IDLE,
        .error = "nothing happened",
        .engine_exit = { ENGINE_SIGNALLED, 15 },
        .started_wall = 1794774575123000000,
        .ended_wall = 1794774587623000000,
        .duration = 12500 * NSEC_PER_MS,
        .tokens = { .input = 100, .output = 20, .cache_read = 7, .source = TOKENS_STREAM },
        .cost_usd = INFINITY,
    };
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *v = metrics_json(&sum, NULL, s->arena);
    assert_int_equal(json_write(v, JSON_COMPACT, &text, NULL), 0);
    static const char start[] =
        "{\"tokens_input\":107,\"tokens_output\":20,\"tokens_total\":127,\"cost_usd\":0.0,"
        "\"api_calls\":0,\"duration_seconds\":12.5,\"exit_code\":124,\"error\":\"nothing "
        "happened\","
        "\"started_at\":\"2026-11-15T20:29:35.123Z\",\"ended_at\":\"2026-11-15T20:29:47.623Z\","
        "\"ext\":{";
    text.ptr[sizeof start - 1] = '\0';
    assert_string_equal(text.ptr, start);
    assert_int_equal(json_int(json_pointer(v, STR("/ext/engine_exit/signal")), 0), 15);
    assert_string_equal(word(v, "/ext/timeout_kind"), "idle");
    assert_true(json_bool(json_pointer(v, STR("/ext/timed_out")), false));
}

static void a_manifest_has_an_error_only_on_failure(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    struct summary sum = { .run_id = run_id,
                           .adapter = "command",
                           .reason = REASON_SUCCESS,
                           .duration = 12345 * NSEC_PER_MS };
    struct json *v = manifest_json(&sum, &d, NULL, s->arena);
    assert_null(json_get(v, "error"));
    assert_string_equal(word(v, "/status"), "completed");
    assert_string_equal(word(v, "/outcome"), "success");
    assert_string_equal(word(v, "/duration"), "12.3s");
    assert_string_equal(word(v, "/metadata/agent"), "command");
    assert_string_equal(word(v, "/sandbox/requested"), "off");
    assert_true(json_is(json_get(v, "no_changes"), JSON_NULL));
    sum.reason = REASON_INTERRUPTED;
    sum.error = "interrupted by SIGINT";
    v = manifest_json(&sum, &d, NULL, s->arena);
    assert_string_equal(word(v, "/error"), "interrupted by SIGINT");
    assert_string_equal(word(v, "/state"), "canceled");
    assert_true(json_bool(json_get(v, "resumable"), false));
    sum.reason = REASON_NONE;
    v = manifest_json(&sum, &d, NULL, s->arena);
    assert_string_equal(word(v, "/status"), "running");
    assert_true(json_is(json_get(v, "reason"), JSON_NULL));
}

static void a_result_is_bounded(void **state)
{
    struct scratch *s = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    buf_adds(&text, "x"); /* so that the limit falls inside a character */
    while (text.len < RESULT_TEXT_MAX + 100) {
        buf_adds(&text, "\xC3\xA9");
    }
    struct summary sum = {
        .run_id = run_id, .reason = REASON_SUCCESS, .text = buf_str(&text), .passed = FLAG_NO
    };
    struct json *v = result_json(&sum, NULL, s->arena);
    assert_int_equal(json_len(json_get(v, "text")), RESULT_TEXT_MAX - 1);
    assert_true(json_bool(json_get(v, "truncated"), false));
    assert_int_equal(json_int(json_get(v, "text_bytes"), 0), (int64_t)text.len);
    assert_true(json_is(json_get(v, "output"), JSON_NULL));
    assert_false(json_bool(json_get(v, "passed"), true));
    sum.text = (struct str) { NULL, 0 };
    sum.output = scratch_json(s, STR("{\"a\":1}"));
    v = result_json(&sum, NULL, s->arena);
    assert_true(json_is(json_get(v, "text"), JSON_NULL));
    assert_int_equal(json_int(json_pointer(v, STR("/output/a")), 0), 1);
    assert_int_equal(json_int(json_get(v, "repair_level"), -1), 0);
}

static void secrets_stay_out_of_all_views(void **state)
{
    struct scratch *s = *state;
    static const char secret[] = "x hunter2-secret y";
    static const char *const list[] = { secret, NULL };
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    scratch_write(s, "out/artifacts/hunter2-secret.txt", STR("x"));
    CLEANUP(redactor) struct redactor *r = redactor_new();
    assert_int_equal(redactor_add(r, STR("KEY"), STR("hunter2-secret"), NULL), 0);
    redactor_compile(r);
    struct summary sum = {
        .run_id = run_id,
        .adapter = secret,
        .engine = { secret, secret, secret },
        .session_id = secret,
        .reason = REASON_FAILURE,
        .error = secret,
        .text = str_of(secret),
        .output = scratch_json(s, STR("[\"hunter2-secret\"]")),
        .sandbox = { secret, list, list, list, NULL },
        .warnings = list,
    };
    struct json *all = json_array(s->arena);
    json_push(s->arena, all, metrics_json(&sum, r, s->arena));
    json_push(s->arena, all, manifest_json(&sum, &d, r, s->arena));
    json_push(s->arena, all, result_json(&sum, r, s->arena));
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_int_equal(json_write(all, JSON_COMPACT, &text, NULL), 0);
    assert_null(strstr(text.ptr, "hunter2"));
    assert_non_null(strstr(text.ptr, "artifacts/[REDACTED:KEY].txt"));
}

static void earlier_views_are_adopted_as_far_as_they_make_sense(void **state)
{
    struct scratch *s = *state;
    struct summary before = {
        .run_id = run_id,
        .reason = REASON_SUCCESS,
        .session_id = "s-1",
        .engine_exit = { ENGINE_EXITED, 3 },
        .exit_profile = EXIT_HOLON,
        .tokens = { .input = 5, .output = 6, .source = TOKENS_WIRE },
        .cost_usd = 0.25,
        .cost_source = COST_TABLE,
        .api_calls = 2,
        .phases = &(struct summary_phase) { "execute", NSEC_PER_SEC },
        .phase_count = 1,
        .text = STR("answer"),
        .output = scratch_json(s, STR("{\"a\":1}")),
    };
    struct summary after = { .run_id = run_id, .reason = REASON_INTERRUPTED };
    summary_adopt(&after, metrics_json(&before, NULL, s->arena),
                  result_json(&before, NULL, s->arena), s->arena);
    assert_int_equal(after.tokens.input, 5);
    assert_int_equal(after.tokens.source, TOKENS_WIRE);
    assert_true(after.cost_usd == 0.25);
    assert_int_equal(after.cost_source, COST_TABLE);
    assert_int_equal(after.exit_profile, EXIT_HOLON);
    assert_int_equal(after.engine_exit.value, 3);
    assert_string_equal(after.session_id, "s-1");
    assert_str_eq(after.text, "answer");
    assert_int_equal(after.phase_count, 1);
    assert_string_equal(after.phases[0].name, "execute");
    struct summary garbage = { .run_id = run_id };
    summary_adopt(&garbage, scratch_json(s, STR("{\"cost_usd\":\"x\",\"ext\":[1]}")),
                  scratch_json(s, STR("{\"text\":7,\"session_id\":{}}")), s->arena);
    summary_adopt(&garbage, NULL, NULL, s->arena);
    assert_null(garbage.text.ptr);
    assert_null(garbage.session_id);
    assert_int_equal(garbage.phase_count, 0);
}

static void state_is_read_back(void **state)
{
    struct scratch *s = *state;
    CLEANUP(rundir) struct rundir d;
    assert_int_equal(rundir_create(&d, scratch_path(s, "out"), NULL, NULL), 0);
    struct state before = { .adapter = "command",
                            .phase = "execute",
                            .exit_code = 9,
                            .started_wall = 1794774575123000000,
                            .heartbeat_wall = 1794774576123000000 };
    memcpy(before.run_id, run_id, sizeof run_id);
    owner_self(&before.owner);
    assert_true(owner_is_alive(&before.owner));
    assert_int_equal(state_write(&before, &d, NULL), 0);
    struct state after;
    assert_int_equal(state_read(&after, &d, s->arena, NULL), 0);
    assert_string_equal(after.run_id, run_id);
    assert_string_equal(after.phase, "execute");
    assert_string_equal(after.adapter, "command");
    assert_int_equal(after.reason, REASON_NONE);
    assert_int_equal(after.started_wall, before.started_wall);
    assert_int_equal(after.heartbeat_wall, before.heartbeat_wall);
    assert_int_equal(after.ended_wall, 0);
    assert_true(owner_is_alive(&after.owner));
    after.owner.start++;
    assert_false(owner_is_alive(&after.owner)); /* the same pid, used again */
    after.owner.start--;
    after.owner.boot[0] = after.owner.boot[0] == '0' ? '1' : '0';
    assert_false(owner_is_alive(&after.owner)); /* another boot */
    scratch_write(s, "out/state.json", STR("{\"pid\":-5,\"phase\":\"../x\",\"run_id\":\"y\"}"));
    assert_int_equal(state_read(&after, &d, s->arena, NULL), 0);
    assert_int_equal(after.owner.pid, 0);
    assert_string_equal(after.phase, "");
    assert_string_equal(after.run_id, "");
    scratch_write(s, "out/state.json", STR("{\"pid\":"));
    assert_int_equal(state_read(&after, &d, s->arena, NULL), -ERR_PARSE);
}

static void stamps_are_read_strictly(void **state)
{
    int64_t wall = 0;
    char text[CLOCK_ISO_LEN];
    assert_true(stamp_parse(STR("2026-11-15T20:29:35.123Z"), &wall));
    assert_string_equal(clock_iso(wall, text), "2026-11-15T20:29:35.123Z");
    static const char *const bad[] = { "",
                                       "2026-11-15T20:29:35Z",
                                       "2026-02-30T00:00:00.000Z",
                                       "2026-11-15T24:00:00.000Z",
                                       "2026-11-15 20:29:35.123Z",
                                       "9999-11-15T20:29:35.123Z",
                                       "1960-11-15T20:29:35.123Z" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(stamp_parse(str_of(bad[i]), &wall));
    }
}

/* Four schemas list the reasons. */
static void the_schemas_know_all_reasons(void **state)
{
    struct scratch *s = *state;
    static const struct {
        const char *file, *pointer;
        bool nullable;
    } places[] = {
        { SCHEMA_DIR "/metrics.schema.json", "/properties/ext/properties/reason/enum", false },
        { SCHEMA_DIR "/result.schema.json", "/properties/reason/enum", false },
        { SCHEMA_DIR "/manifest.schema.json", "/properties/reason/enum", true },
        { SCHEMA_DIR "/state.schema.json", "/properties/reason/enum", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
        assert_int_equal(file_read(AT_FDCWD, places[i].file, BUF_TEXT, &text, NULL), 0);
        struct json *words =
            json_pointer(scratch_json(s, buf_str(&text)), str_of(places[i].pointer));
        size_t offset = places[i].nullable;
        assert_int_equal(json_len(words), REASON_MAX - 1 + offset);
        for (enum reason r = REASON_SUCCESS; r < REASON_MAX; r++) {
            assert_string_equal(json_cstring(json_item(words, r - 1 + offset), ""), reason_word(r));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(metrics_begin_with_the_ten_fields),
        SCRATCH_TEST(a_manifest_has_an_error_only_on_failure),
        SCRATCH_TEST(a_result_is_bounded),
        SCRATCH_TEST(secrets_stay_out_of_all_views),
        SCRATCH_TEST(earlier_views_are_adopted_as_far_as_they_make_sense),
        SCRATCH_TEST(state_is_read_back),
        SCRATCH_TEST(stamps_are_read_strictly),
        SCRATCH_TEST(the_schemas_know_all_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
