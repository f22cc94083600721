/* SPDX-License-Identifier: MIT
 *
 * Driver `claude-stream`: Claude Code as a partner in a dialogue. Both streams carry one JSON
 * object a line; seen with 2.1.197. One process takes any number of turns: a user line begins one,
 * a `result` line ends it.
 *
 * Whether a turn failed is in `is_error`, never in `subtype`: a provider's refusal comes as
 * "success". Tokens of sub-agents are only in modelUsage, which counts from the start of the
 * process, or from the start of a resumed conversation (2.1.3xx, which then also reports
 * model_usage_since_last_result).
 */
#include <math.h>
#include <stdlib.h>

#include "adapters/claude_priv.h"

/* Reached by a tool that returns a huge file or picture; such a line is then only in the log. */
enum { LINE_MAX_BYTES = 16 << 20 };
/* Text of the last message and the last result. */
enum { TEXT_MAX = LINE_MAX_BYTES };
/* How long a command in the background may keep silent before the turn counts as over, and how long
 * a sub-agent, which begins another turn when it is done and may wait for a slow model or tool. */
#define SHELL_SETTLE (10 * NSEC_PER_SEC)
#define AGENT_SETTLE (600 * NSEC_PER_SEC)

void claude_keep(struct buf *b, struct str text)
{
    buf_reset(b);
    if (buf_append(b, text, NULL) < 0) {
        buf_reset(b);
    }
}

bool claude_send(struct claude *c, const struct json *message)
{
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    if (c->finished || json_write(message, JSON_COMPACT, &out, NULL) < 0 ||
        buf_append_c(&out, '\n', NULL) < 0) {
        return c->finished;
    }
    c->port.send(c->port.owner, buf_str(&out));
    return true;
}

/* --- starting --- */

static void *claude_open(const struct launch_spec *spec, struct entry_sink sink)
{
    struct claude *c = xcalloc(1, sizeof *c);
    c->keep = arena_new();
    c->scratch = arena_new();
    c->sink = sink;
    c->port = spec->port;
    c->prompt = arena_str(c->keep, spec->prompt);
    if (spec->profile != NULL) {
        c->prefix = arena_str(c->keep, str_of(spec->profile->mcp.prefix));
        c->system_style = spec->profile->system_prompt;
    }
    c->system_prompt = arena_str(c->keep, driver_var(spec, "system_prompt"));
    c->schema = spec->output_schema == NULL ? NULL : json_copy(c->keep, spec->output_schema);
    c->has_policies = spec->has_policies;
    c->has_feedback = spec->has_feedback;
    lines_init(&c->lines, LINE_MAX_BYTES);
    buf_init(&c->text, TEXT_MAX);
    buf_init(&c->answer, TEXT_MAX);
    buf_init(&c->error, TEXT_MAX);
    c->report.told = true;
    return c;
}

static void send_user(struct claude *c, struct str text)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct json *m = json_object(a);
    struct json *message = json_object(a);
    json_setc(a, message, "role", json_cstr(a, "user"));
    json_setc(a, message, "content", json_string(a, text));
    json_setc(a, m, "type", json_cstr(a, "user"));
    json_setc(a, m, "message", message);
    json_setc(a, m, "parent_tool_use_id", NULL);
    json_setc(a, m, "session_id", json_cstr(a, ""));
    (void)claude_send(c, m);
}

static void claude_begin(void *self)
{
    claude_initialize(self);
}

static void claude_finish(void *self)
{
    struct claude *c = self;
    if (!c->finished) {
        c->finished = true;
        c->port.close_input(c->port.owner);
    }
}

/* --- results --- */

static int64_t tokens(const struct json *usage, const char *key)
{
    int64_t n = json_int(json_get(usage, key), 0);
    return n > 0 && n < INT64_MAX / 1024 ? n : 0;
}

/* Whether there were any. */
static bool usage_of_models(const struct json *models, struct agent_usage *ret)
{
    for (size_t i = 0; json_is(models, JSON_OBJECT) && i < json_len(models) && i < 1024; i++) {
        const struct json *m = models->object.members[i].value;
        ret->input += tokens(m, "inputTokens");
        ret->output += tokens(m, "outputTokens");
        ret->cache_read += tokens(m, "cacheReadInputTokens");
        ret->cache_write += tokens(m, "cacheCreationInputTokens");
        ret->cost_usd += fmax(json_real(json_get(m, "costUSD"), 0), 0);
    }
    return json_is(models, JSON_OBJECT) && json_len(models) > 0;
}

static void note_usage(struct claude *c, const struct json *line)
{
    const struct json *usage = json_get(line, "usage");
    const struct json *cost = json_get(line, "total_cost_usd");
    struct agent_usage *sum = &c->turns_usage;
    struct agent_usage all = { 0 };
    sum->input += tokens(usage, "input_tokens");
    sum->output += tokens(usage, "output_tokens");
    sum->cache_read += tokens(usage, "cache_read_input_tokens");
    sum->cache_write += tokens(usage, "cache_creation_input_tokens");
    sum->turns += tokens(line, "num_turns");
    const struct json *since = json_get(line, "model_usage_since_last_result");
    bool by_result = json_is(since, JSON_OBJECT);
    if (by_result) {
        (void)usage_of_models(since, &c->results_usage);
        all = c->results_usage;
    } else if (!usage_of_models(json_get(line, "modelUsage"), &all)) {
        all = *sum;
    }
    all.turns = sum->turns;
    all.known = json_is(usage, JSON_OBJECT);
    all.cost_known = json_real(cost, -1) >= 0;
    all.cost_usd = !all.cost_known ? 0 : by_result ? all.cost_usd : json_real(cost, 0);
    c->report.usage = all;
}

static void tell_usage(struct claude *c, const struct json *line)
{
    static const char *const keys[] = { "input_tokens", "output_tokens", "cache_read_input_tokens",
                                        "cache_creation_input_tokens" };
    const struct json *usage = json_get(line, "usage");
    struct json *detail = json_object(c->scratch);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        json_setc(c->scratch, detail, keys[i], json_integer(c->scratch, tokens(usage, keys[i])));
    }
    json_setc(c->scratch, detail, "sdk_entry", json_copy(c->scratch, line));
    claude_entry(c, NULL, "token_usage", detail, STR_EMPTY);
}

/* "API Error: …" is in `result`, the reasons of an aborted turn in `errors`, beside notes in
 * brackets that Claude Code writes for its makers. */
static struct str error_of(struct claude *c, const struct json *line)
{
    const struct json *errors = json_get(line, "errors");
    struct str subtype = json_str(json_get(line, "subtype"), STR("no reason given"));
    struct str text = json_str(json_get(line, "result"), STR_EMPTY);
    for (size_t i = 0; text.len == 0 && i < json_len(errors); i++) {
        struct str next = json_str(json_item(errors, i), STR_EMPTY);
        text = str_starts(next, STR("[")) ? text : next;
    }
    if (text.len == 0 && c->interrupted) {
        return STR("the turn was interrupted");
    }
    return text.len > 0 ? text
                        : str_of(arena_printf(c->scratch, "the turn failed: %.*s",
                                              STR_ARG(str_slice(subtype, 0, 200))));
}

static void note_failure(struct claude *c, const struct json *line, struct str raw)
{
    struct str why = error_of(c, line);
    bool told = str_eq(why, buf_str(&c->error)); /* as a message of its own */
    claude_keep(&c->error, why);
    if (!told) {
        struct json *detail = json_object(c->scratch);
        json_setc(c->scratch, detail, "error", json_string(c->scratch, why));
        json_setc(c->scratch, detail, "sdk_entry", json_copy(c->scratch, line));
        claude_entry(c, NULL, "error", detail, raw);
    }
}

static const char *stop_reason_of(struct claude *c, const struct json *line)
{
    struct str subtype = json_str(json_get(line, "subtype"), STR_EMPTY);
    if (c->interrupted) {
        return "interrupted";
    }
    if (str_eqc(subtype, "error_max_turns")) {
        return "max_turns";
    }
    if (json_is(json_get(line, "structured_output"), JSON_OBJECT)) {
        return "structured_output";
    }
    const char *reason = json_cstring(json_get(line, "stop_reason"), NULL);
    return reason == NULL ? NULL : arena_dup(c->keep, str_slice(str_of(reason), 0, 64));
}

static void on_result(struct claude *c, const struct json *line, struct str raw)
{
    struct str session = json_str(json_get(line, "session_id"), STR_EMPTY);
    const struct json *structured = json_get(line, "structured_output");
    const struct json *is_error = json_get(line, "is_error");
    bool failed = json_bool(is_error, false);
    if (!json_is(is_error, JSON_BOOL)) {
        claude_entry_garbage(c, raw, "a result without is_error");
        c->report.unparsable_lines++;
        return;
    }
    c->report.session_id =
        session.len > 0 ? arena_str(c->keep, str_slice(session, 0, 256)) : c->report.session_id;
    c->report.failed = failed;
    c->report.result_seen = !failed;
    buf_reset(&c->answer);
    if (failed) {
        note_failure(c, line, raw);
    } else {
        claude_keep(&c->answer, json_str(json_get(line, "result"), STR_EMPTY));
        buf_reset(&c->error);
    }
    if (structured != NULL && !json_is(structured, JSON_NULL)) {
        c->report.structured = json_copy(c->keep, structured);
    }
    note_usage(c, line);
    tell_usage(c, line);
    c->stop_reason = stop_reason_of(c, line);
    c->waits = c->background == CLAUDE_AGENTS;
    c->turn_due = true;
}

/* --- lines --- */

static void on_init(struct claude *c, const struct json *line)
{
    struct str model = json_str(json_get(line, "model"), STR_EMPTY);
    struct str session = json_str(json_get(line, "session_id"), STR_EMPTY);
    struct str version = json_str(json_get(line, "claude_code_version"), STR_EMPTY);
    if (c->report.model.len == 0 && model.len > 0) {
        c->report.model = arena_str(c->keep, str_slice(model, 0, 256));
    }
    if (c->report.session_id.len == 0 && session.len > 0) {
        c->report.session_id = arena_str(c->keep, str_slice(session, 0, 256));
    }
    if (c->report.version.len == 0 && version.len > 0) {
        c->report.version = arena_str(c->keep, str_slice(version, 0, 64));
    }
}

static void on_control_response(struct claude *c, const struct json *line, struct str raw)
{
    const struct json *response = json_get(line, "response");
    bool ok = str_eqc(json_str(json_get(response, "subtype"), STR_EMPTY), "success");
    bool first = str_eqc(json_str(json_get(response, "request_id"), STR_EMPTY), CLAUDE_INITIALIZE);
    if (first && ok && !c->prompted && !c->interrupted) {
        c->prompted = true;
        send_user(c, c->prompt);
    }
    if (ok) {
        return;
    }
    struct str why = json_str(json_get(response, "error"), STR("no reason given"));
    struct json *detail = json_object(c->scratch);
    json_setc(c->scratch, detail, "error", json_string(c->scratch, why));
    claude_entry(c, NULL, "error", detail, raw);
    if (first && !c->prompted) {
        claude_keep(&c->error, str_of(arena_printf(c->scratch, "it refused to begin: %.*s",
                                                   STR_ARG(str_slice(why, 0, 1000)))));
        c->report.failed = true;
        claude_finish(c);
    }
}

static void on_document(struct claude *c, const struct json *doc, struct str raw)
{
    struct str type = json_str(json_get(doc, "type"), STR_EMPTY);
    if (str_eqc(type, "assistant") || str_eqc(type, "user")) {
        claude_message(c, doc, raw);
    } else if (str_eqc(type, "system")) {
        if (str_eqc(json_str(json_get(doc, "subtype"), STR_EMPTY), "init")) {
            on_init(c, doc);
            claude_turn_began(c);
        }
        claude_system(c, doc, raw);
    } else if (str_eqc(type, "result")) {
        on_result(c, doc, raw);
    } else if (str_eqc(type, "control_request")) {
        claude_control_request(c, doc);
    } else if (str_eqc(type, "control_cancel_request")) {
        claude_control_cancel(c, doc);
    } else if (str_eqc(type, "control_response")) {
        on_control_response(c, doc, raw);
    } else if (!str_eqc(type, "stream_event") && !str_eqc(type, "keep_alive")) {
        struct json *detail = json_object(c->scratch);
        json_setc(c->scratch, detail, "sdk_entry", json_copy(c->scratch, doc));
        claude_entry(c, NULL, "unknown", detail, raw);
    }
}

static const struct json_limits line_limits = { .no_positions = true, .max_depth = 128 };

static void on_line(struct claude *c, struct str line)
{
    struct json *doc = NULL;
    struct err e = { 0 };
    if (str_trim(line).len == 0) {
        return;
    }
    if (json_parse(c->scratch, line, &line_limits, &doc, &e) < 0) {
        c->report.unparsable_lines++;
        claude_entry_garbage(c, line, e.msg);
    } else if (!json_is(doc, JSON_OBJECT)) {
        c->report.unparsable_lines++;
        claude_entry_garbage(c, line, "not an object");
    } else {
        on_document(c, doc, line);
    }
    arena_reset(c->scratch);
}

static void claude_feed(void *self, enum agent_stream stream, struct str bytes)
{
    struct claude *c = self;
    struct str line;
    if (stream != AGENT_STDOUT) {
        return;
    }
    lines_feed(&c->lines, bytes);
    while (lines_next(&c->lines, &line)) {
        on_line(c, line);
    }
    if (c->turn_due && !c->finished) {
        static const nsec settle[] = {
            [CLAUDE_IDLE] = 0,
            [CLAUDE_SHELLS] = SHELL_SETTLE,
            [CLAUDE_AGENTS] = AGENT_SETTLE,
        };
        struct driver_turn turn = { .stop_reason = c->stop_reason,
                                    .settle = settle[c->background] };
        c->turn_due = false;
        c->port.turn(c->port.owner, &turn);
    }
}

/* --- what the run says --- */

static void claude_say(void *self, struct str text)
{
    struct claude *c = self;
    c->report.result_seen = false; /* of the turn that begins */
    c->report.failed = false;
    c->interrupted = false;
    c->background = CLAUDE_IDLE;
    c->waits = false;
    buf_reset(&c->error);
    send_user(c, text); /* the run has told the transcript */
}

static bool claude_change(void *self, enum driver_option option, struct str value)
{
    return claude_tune(self, option, value);
}

static void claude_stop_turn(void *self)
{
    struct claude *c = self;
    c->interrupted = true;
    claude_interrupt(c);
}

static void claude_answered(void *self, const struct driver_reply *reply)
{
    claude_reply(self, reply);
}

/* --- the end --- */

/* The last line may lack its newline. One that is cut short is no JSON; it is left alone, because
 * its rest may come: the run asks at the end of each turn. */
static void take_last_line(struct claude *c)
{
    struct json *doc;
    struct str line = buf_str(&c->lines.partial);
    if (!c->lines.handed_out && line.len > 0 && line.ptr[line.len - 1] == '}' &&
        json_parse(c->scratch, line, &line_limits, &doc, NULL) == 0 &&
        lines_end(&c->lines, &line)) {
        on_line(c, line);
    }
    arena_reset(c->scratch);
}

static void claude_end(void *self, struct agent_report *ret)
{
    struct claude *c = self;
    take_last_line(c);
    c->report.overlong_lines = c->lines.overlong;
    c->report.text = c->answer.len > 0 ? buf_str(&c->answer) : buf_str(&c->text);
    c->report.error = c->report.failed ? buf_str(&c->error) : STR_EMPTY;
    *ret = c->report;
    if (!ret->result_seen && !ret->failed) {
        ret->failed = true; /* whatever its exit code says */
        ret->error = STR("it ended without a result");
    }
}

static void claude_close(void *self)
{
    struct claude *c = self;
    claude_calls_done(c);
    claude_questions_done(c);
    lines_done(&c->lines);
    buf_done(&c->text);
    buf_done(&c->answer);
    buf_done(&c->error);
    arena_free(c->scratch);
    arena_free(c->keep);
    free(c);
}

static const struct driver_program_ops program_ops = {
    .plan = driver_plan,
    .feed = claude_feed,
};

static const struct driver_dialogue_ops dialogue_ops = {
    .begin = claude_begin,
    .reply = claude_answered,
    .prompt = claude_say,
    .interrupt = claude_stop_turn,
    .finish = claude_finish,
    .offer = driver_ignores_tools,
    .pending = driver_nothing_pending,
    .resume = driver_never_paused,
    .sets_model = true,
    .set_option = claude_change,
};

const struct driver driver_claude = {
    .name = "claude-stream",
    .kind = DRIVER_DIALOGUE,
    .tier_prompt = "system",
    .open = claude_open,
    .end = claude_end,
    .close = claude_close,
    .program = &program_ops,
    .dialogue = &dialogue_ops,
};
