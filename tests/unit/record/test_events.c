/* SPDX-License-Identifier: MIT
 *
 * events.jsonl: the envelope, the typed events, redaction, and that the schema says what the table
 * says.
 */
#include "record/events.h"

#include "record/redact.h"
#include "record/rundir.h"
#include "record/write_errors.h"
#include "scratch.h"

static const char run_id[] = "01234567-89ab-7cde-8f01-23456789abcd";

struct fixture {
    struct rundir dir;
    struct redactor *redactor;
    struct loss loss;
    struct events ev;
};

static void open_events(struct fixture *f, struct scratch *s)
{
    *f = (struct fixture) { .redactor = redactor_new() };
    assert_int_equal(redactor_add(f->redactor, STR("KEY"), STR("hunter2-secret"), NULL), 0);
    assert_int_equal(redactor_add(f->redactor, STR("WORD"), STR("failure"), NULL), 0);
    redactor_compile(f->redactor);
    assert_int_equal(rundir_create(&f->dir, scratch_path(s, "out"), NULL, NULL), 0);
    struct events_opts opts = { .run_id = run_id, .redactor = f->redactor, .loss = &f->loss };
    assert_int_equal(events_init(&f->ev, &f->dir, &opts, NULL), 0);
}

static void close_events(struct fixture *f)
{
    events_done(&f->ev);
    rundir_done(&f->dir);
    f->redactor = redactor_free(f->redactor);
}

static void the_envelope_is_complete_and_in_order(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_events(&f, s);
    events_started(&f.ev, "command", "/out");
    events_phase(&f.ev, NULL, "admit", 0);
    events_phase(&f.ev, "admit", "execute", 1500 * NSEC_PER_MS);
    struct json *line = scratch_line(s, "out/events.jsonl", 0);
    static const char *const keys[] = { "timestamp", "level",   "logger", "event",
                                        "message",   "context", "seq",    "run_id" };
    assert_int_equal(json_len(line), ARRAY_LEN(keys));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        assert_string_equal(line->object.members[i].key.ptr, keys[i]);
    }
    assert_string_equal(word(line, "/level"), "INFO");
    assert_string_equal(word(line, "/event"), "run.started");
    assert_string_equal(word(line, "/run_id"), run_id);
    line = scratch_line(s, "out/events.jsonl", 2);
    assert_int_equal(json_int(json_get(line, "seq"), 0), 3);
    assert_string_equal(word(line, "/context/from"), "admit");
    assert_int_equal(json_int(json_pointer(line, STR("/context/duration_ms")), 0), 1500);
    close_events(&f);
}

/* Every helper, with a secret in every text it takes from outside. */
static void emit_all(struct fixture *f, struct scratch *s)
{
    static const char secret[] = "x hunter2-secret y";
    struct events *ev = &f->ev;
    const char *const argv[] = { secret, "--key", secret, NULL };
    struct event_prompt p = {
        .ns = secret, .key = secret, .adapter = secret, .session_id = secret
    };
    struct json *tree = scratch_json(s, STR("{\"hunter2-secret\":[\"hunter2-secret\",1]}"));
    struct json *tools = json_array(s->arena);
    json_push(s->arena, tools, tree);
    char id[ID_LEN];
    events_started(ev, secret, secret);
    events_phase(ev, NULL, "admit", 0);
    events_warning(ev, secret);
    events_signal(ev, "SIGINT", 1);
    events_finished(ev, REASON_FAILURE, 1, NSEC_PER_SEC, secret);
    events_recovered(ev, &(struct event_recovery) { .reason = REASON_INTERRUPTED });
    events_spawned(ev, 12, argv, secret);
    events_exited(ev, 12, (struct engine_exit) { ENGINE_SIGNALLED, 9 }, NSEC_PER_SEC);
    events_deadline(ev, "idle", NSEC_PER_SEC);
    events_signal_sent(ev, "SIGTERM", "tree", "deadline");
    events_leaked(ev, 2);
    events_render_start(ev, &p);
    events_render_complete(ev, &p, 1, 0, 18);
    events_call_start(ev, &p, secret, 0);
    events_call_complete(ev, &p, &(struct event_call) { .took = 1, .stop_reason = secret });
    events_prompt_error(ev, &p, "request", REASON_AUTH, secret);
    events_throttled(ev, &p, &(struct event_throttle) { "rate_limit", 1, NSEC_PER_SEC, -1, true });
    events_gateway_opened(ev, secret, argv);
    events_gateway_refused(ev, 0, "calls", secret);
    events_model_call(ev, &(struct event_model_call) { .exchange = 1,
                                                       .format = "chat",
                                                       .model = str_of(secret),
                                                       .upstream = secret,
                                                       .cost_usd = 0.5,
                                                       .first_byte = -1,
                                                       .edits = { "max_tokens" } });
    events_prompt_rendered(ev, &p, str_of(secret), id);
    events_rendered_tools(ev, &p, id, tools);
    events_tool_invoked(ev, &p,
                        &(struct event_tool) { .name = secret,
                                               .params = tree,
                                               .result = tree,
                                               .output = str_of(secret),
                                               .call_id = secret,
                                               .failure = "denied",
                                               .policy = secret,
                                               .took = NSEC_PER_SEC });
    events_executed(ev, &p, &(struct event_executed) { str_of(secret), tree, 1, 2, -1 });
    events_emit(ev, &(struct event) { EVENT_INFO, "cinch.test", "test.own", secret, tree });
}

static void no_text_brings_a_secret_in(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_events(&f, s);
    emit_all(&f, s);
    struct str text = scratch_read(s, "out/events.jsonl");
    assert_int_equal(str_find(text, STR("hunter2")), text.len);
    assert_int_equal(f.ev.seq, 25);
    for (size_t i = 0; i < (size_t)f.ev.seq; i++) {
        struct json *line = scratch_line(s, "out/events.jsonl", i);
        if (!event_is_valid(line)) {
            fail_msg("line %zu is not valid: %s", i + 1, word(line, "/event"));
        }
    }
    /* Words of our own stay, even when a secret is the same word. */
    assert_string_equal(word(scratch_line(s, "out/events.jsonl", 4), "/context/reason"), "failure");
    close_events(&f);
}

static void tool_output_is_cut_between_characters(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_events(&f, s);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    for (int i = 0; i < 1200; i++) {
        buf_adds(&text, "\xC3\xA9");
    }
    struct event_prompt p = { .ns = "n", .key = "k", .adapter = "a" };
    events_tool_invoked(&f.ev, &p, &(struct event_tool) { .name = "t", .output = buf_str(&text) });
    struct json *line = scratch_line(s, "out/events.jsonl", 0);
    assert_int_equal(json_len(json_pointer(line, STR("/context/rendered_output"))), 2000);
    assert_string_equal(word(line, "/context/prompt_name"), "n:k");
    close_events(&f);
}

static void a_call_says_how_it_went(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_events(&f, s);
    struct event_prompt p = { .ns = "n", .key = "k", .adapter = "a" };
    events_tool_invoked(
        &f.ev, &p,
        &(struct event_tool) {
            .name = "t", .failure = "timeout", .took = 1500 * NSEC_PER_MS, .leaked = 2 });
    events_tool_invoked(&f.ev, &p, &(struct event_tool) { .name = "t", .success = true });
    struct json *c = json_get(scratch_line(s, "out/events.jsonl", 0), "context");
    assert_false(json_bool(json_get(c, "success"), true));
    assert_string_equal(json_cstring(json_get(c, "failure"), ""), "timeout");
    assert_int_equal(json_int(json_get(c, "duration_ms"), 0), 1500);
    assert_int_equal(json_int(json_get(c, "leaked"), 0), 2);
    c = json_get(scratch_line(s, "out/events.jsonl", 1), "context");
    assert_true(json_bool(json_get(c, "success"), false));
    assert_true(json_is(json_get(c, "failure"), JSON_NULL));
    assert_true(json_is(json_get(c, "duration_ms"), JSON_NULL));
    close_events(&f);
}

static void a_huge_result_does_not_hide_the_call(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_events(&f, s);
    struct event_prompt p = { .ns = "n", .key = "k", .adapter = "a" };
    size_t n = (size_t)20 << 20;
    char *text = arena_alloc(s->arena, n);
    memset(text, 'x', n);
    struct json huge = { .type = JSON_STRING, .string = { text, n } };
    events_tool_invoked(&f.ev, &p, &(struct event_tool) { .name = "t", .result = &huge });
    struct json *line = scratch_line(s, "out/events.jsonl", 0);
    assert_string_equal(word(line, "/event"), "ToolInvoked");
    assert_non_null(strstr(word(line, "/context/result"), "omitted"));
    close_events(&f);
}

struct heard {
    int count;
    enum event_kind kind;
    bool clean;
};

static void hear(void *arg, enum event_kind kind, const struct json *context)
{
    struct heard *h = arg;
    h->count++;
    h->kind = kind;
    h->clean = strstr(json_cstring(json_get(context, "text"), "hunter2"), "hunter2") == NULL;
}

static void who_listens_hears_what_is_written(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    struct heard h = { 0 };
    open_events(&f, s);
    events_watch(&f.ev, hear, &h);
    events_warning(&f.ev, "x hunter2-secret y");
    assert_int_equal(h.count, 1);
    assert_int_equal(h.kind, EVENT_RUN_WARNING);
    assert_true(h.clean);
    events_watch(&f.ev, NULL, NULL);
    events_warning(&f.ev, "more");
    assert_int_equal(h.count, 1);
    close_events(&f);
}

static void losses_are_told_once(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_events(&f, s);
    struct err why;
    (void)ERR(&why, ERR_OUTPUT, "write 'stdout.log': no space, hunter2-secret");
    loss_note(&f.loss, "stdout.log", &why, 100, 0);
    loss_note(&f.loss, "stdout.log", &why, 100, 0);
    events_warning(&f.ev, "one");
    events_warning(&f.ev, "two");
    assert_int_equal(f.ev.seq, 3);
    struct json *line = scratch_line(s, "out/events.jsonl", 0);
    assert_string_equal(word(line, "/event"), "record.loss");
    assert_string_equal(word(line, "/context/error"),
                        "write 'stdout.log': no space, [REDACTED:KEY]");
    close_events(&f);
}

static void an_event_too_long_leaves_a_note(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    open_events(&f, s);
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    while (text.len < JSONL_LINE_MAX) {
        buf_adds(&text, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    }
    char id[ID_LEN];
    struct event_prompt p = { .ns = "n", .key = "k", .adapter = "a" };
    events_prompt_rendered(&f.ev, &p, buf_str(&text), id);
    struct json *line = scratch_line(s, "out/events.jsonl", 0);
    assert_string_equal(word(line, "/event"), "record.too_long");
    assert_string_equal(word(line, "/context/event"), "PromptRendered");
    close_events(&f);
}

static void damaged_lines_are_recognised(void **state)
{
    struct scratch *s = *state;
    static const char good[] =
        "{\"timestamp\":\"2026-11-15T20:29:35.123Z\",\"level\":\"INFO\",\"logger\":\"cinch.run\","
        "\"event\":\"run.warning\",\"message\":\"m\",\"context\":{\"text\":\"t\"},\"seq\":1,"
        "\"run_id\":\"01234567-89ab-7cde-8f01-23456789abcd\"}";
    assert_true(event_is_valid(scratch_json(s, str_of(good))));
    static const char *const changes[][2] = {
        { "2026-11", "2026-13" },
        { "INFO", "INF0" },
        { "\"seq\":1", "\"seq\":0" },
        { "\"text\"", "\"texx\"" },
        { "\"t\"", "12.5" },
        { "89ab", "89zb" },
        { "message", "massage" },
        { "run.warn", "run..arn" },
        { "\"seq\":1", "\"seq\":1,\"x\":1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        const char *at = strstr(good, changes[i][0]);
        assert_non_null(at);
        const char *text = arena_printf(s->arena, "%.*s%s%s", (int)(at - good), good, changes[i][1],
                                        at + strlen(changes[i][0]));
        if (event_is_valid(scratch_json(s, str_of(text)))) {
            fail_msg("accepted: %s", text);
        }
    }
    assert_false(event_is_valid(scratch_json(s, STR("[]"))));
}

/* schema/event.schema.json, for others, must say what the table says. */
static void the_schema_says_what_the_table_says(void **state)
{
    struct scratch *s = *state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    assert_int_equal(file_read(AT_FDCWD, SCHEMA_DIR "/event.schema.json", BUF_TEXT, &text, NULL),
                     0);
    struct json *defs = json_get(scratch_json(s, buf_str(&text)), "$defs");
    assert_int_equal(json_len(defs), EVENT_KIND_MAX);
    static const char *const types[][2] = { { "s", "string" },  { "i", "integer" },
                                            { "b", "boolean" }, { "o", "object" },
                                            { "a", "array" },   { "z", "null" },
                                            { "n", "number" } };
    for (enum event_kind k = 0; k < EVENT_KIND_MAX; k++) {
        const struct event_kind_info *info = event_kind_info(k);
        struct json *def = json_get(defs, info->name);
        struct str rest = str_of(info->fields);
        size_t count = 0, optional = 0;
        while (rest.ptr != NULL) {
            struct str spec = str_split(&rest, ' ');
            optional += str_ends(spec, STR("?")) ? 1 : 0;
            struct json *property = json_find(json_get(def, "properties"), str_split(&spec, ':'));
            assert_non_null(property);
            CLEANUP(buf) struct buf expected = BUF_INIT(BUF_TEXT);
            CLEANUP(buf) struct buf found = BUF_INIT(BUF_TEXT);
            struct json *type = json_get(property, "type");
            for (size_t i = 0; i < spec.len; i++) {
                for (size_t t = 0; t < ARRAY_LEN(types); t++) {
                    buf_adds(&expected, types[t][0][0] == spec.ptr[i] ? types[t][1] : "");
                }
            }
            for (size_t i = 0; i < json_len(type) && json_is(type, JSON_ARRAY); i++) {
                buf_adds(&found, json_cstring(json_item(type, i), ""));
            }
            buf_adds(&found, json_cstring(type, ""));
            assert_true(str_eq(buf_str(&expected), buf_str(&found)));
            count++;
        }
        assert_int_equal(json_len(json_get(def, "properties")), count);
        assert_int_equal(json_len(json_get(def, "required")), count - optional);
        assert_false(json_bool(json_get(def, "additionalProperties"), true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(the_envelope_is_complete_and_in_order),
        SCRATCH_TEST(no_text_brings_a_secret_in),
        SCRATCH_TEST(tool_output_is_cut_between_characters),
        SCRATCH_TEST(a_call_says_how_it_went),
        SCRATCH_TEST(a_huge_result_does_not_hide_the_call),
        SCRATCH_TEST(who_listens_hears_what_is_written),
        SCRATCH_TEST(losses_are_told_once),
        SCRATCH_TEST(an_event_too_long_leaves_a_note),
        SCRATCH_TEST(damaged_lines_are_recognised),
        SCRATCH_TEST(the_schema_says_what_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
