/* SPDX-License-Identifier: MIT
 *
 * Driver `codex-app-server`: Codex as a partner in a dialogue (codex app-server, seen with
 * 0.166.0). JSON-RPC without its version member, one message a line. One thread, any number of
 * turns; the requests of a stage are open one at a time, while Codex may ask and tell at any time.
 *
 * Lines that are no messages are counted and passed over.
 */
#include "adapters/codex_priv.h"

#include <stdlib.h>

/* --- sending --- */

static void send_message(struct codex *c, const struct json *message)
{
    CLEANUP(buf) struct buf line = BUF_INIT(2 * BUF_TEXT);
    if (json_write(message, JSON_COMPACT, &line, NULL) == 0 &&
        buf_append_c(&line, '\n', NULL) == 0) {
        c->port.send(c->port.owner, buf_str(&line));
    } else {
        codex_give_up(c, "a message for Codex is too large");
    }
}

int64_t codex_send_request(struct codex *c, const char *method, struct json *params)
{
    struct arena *a = c->scratch;
    struct json *m = json_object(a);
    int64_t id = ++c->requests;
    json_setc(a, m, "id", json_integer(a, id));
    json_setc(a, m, "method", json_cstr(a, method));
    json_setc(a, m, "params", params);
    send_message(c, m);
    return id;
}

void codex_send_result(struct codex *c, const struct json *id, struct json *result)
{
    struct arena *a = c->scratch;
    struct json *m = json_object(a);
    json_setc(a, m, "id", json_copy(a, id));
    json_setc(a, m, "result", result);
    send_message(c, m);
}

void codex_send_error(struct codex *c, const struct json *id, int64_t code, struct str text)
{
    struct arena *a = c->scratch;
    struct json *m = json_object(a);
    struct json *error = json_object(a);
    json_setc(a, error, "code", json_integer(a, code));
    codex_set(c, error, "message", text);
    json_setc(a, m, "id", json_copy(a, id));
    json_setc(a, m, "error", error);
    send_message(c, m);
}

void codex_set(struct codex *c, struct json *object, const char *key, struct str text)
{
    json_setc(c->scratch, object, key, json_string(c->scratch, text));
}

void codex_keep(struct buf *b, struct str text)
{
    buf_reset(b);
    if (buf_append(b, text, NULL) < 0) {
        buf_reset(b);
    }
}

/* --- ends --- */

static void fail(struct codex *c, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
static void fail(struct codex *c, const char *fmt, va_list ap)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (!c->report.failed && buf_vprintf(&text, NULL, fmt, ap) == 0) {
        c->report.failed = true;
        c->report.error = arena_str(c->keep, str_slice(buf_str(&text), 0, 4096));
    }
}

void codex_failed(struct codex *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(c, fmt, ap);
    va_end(ap);
}

void codex_give_up(struct codex *c, const char *fmt, ...)
{
    va_list ap;
    if (c->stage == CODEX_OVER) {
        return;
    }
    va_start(ap, fmt);
    fail(c, fmt, ap);
    va_end(ap);
    c->stage = CODEX_OVER;
    codex_end_turn(c, "error");
}

void codex_end_turn(struct codex *c, const char *stop_reason)
{
    c->request = 0;
    c->turn_due = true;
    c->stop_reason = stop_reason;
}

/* --- calls into the driver --- */

static void enter(struct codex *c)
{
    c->depth++;
}

/* A turn is told last of all: whoever hears of it may say the next thing at once. */
static void leave(struct codex *c)
{
    if (--c->depth > 0) {
        return;
    }
    arena_reset(c->scratch);
    if (c->turn_due) {
        struct driver_turn turn = { .stop_reason = c->stop_reason };
        c->turn_due = false;
        c->port.turn(c->port.owner, &turn);
    }
}

/* --- receiving --- */

static void answered(struct codex *c, const struct jsonrpc_message *m)
{
    int64_t id = json_is(m->id, JSON_INT) ? m->id->integer : 0;
    /* A second answer, or one to something that was never asked, changes nothing. */
    if (c->request != 0 && id == c->request) {
        c->request = 0;
        codex_answer(c, m);
    } else if (id != 0 && codex_steered(c, id, m->kind == JSONRPC_RESULT)) {
        /* done */
    } else if (m->id == NULL && c->request != 0) {
        codex_give_up(c, "Codex could not read '%s': %.*s", codex_stage_name(c->stage),
                      STR_ARG(str_slice(m->text, 0, 400)));
    }
}

/* As all of JSON-RPC, but for the member that says which version it is. */
static int read_message(struct codex *c, struct str line, struct jsonrpc_message *ret,
                        struct err *e)
{
    static const struct json_limits limits = { .max_bytes = JSONRPC_BYTES_MAX,
                                               .max_depth = JSONRPC_DEPTH_MAX,
                                               .no_positions = true };
    struct json *v;
    *ret = (struct jsonrpc_message) { 0 };
    int r = json_parse(c->scratch, line, &limits, &v, e);
    if (r < 0) {
        return r;
    }
    if (json_is(v, JSON_OBJECT)) {
        json_setc(c->scratch, v, "jsonrpc", json_cstr(c->scratch, "2.0"));
    }
    return jsonrpc_read_value(v, ret, e);
}

static void receive(struct codex *c, struct str line)
{
    struct jsonrpc_message m;
    struct err e = { 0 };
    if (read_message(c, line, &m, &e) < 0) {
        c->report.unparsable_lines++;
        /* Only what asks can be told that it was not understood. */
        if (e.code == ERR_PROTO && m.id != NULL && m.method.len > 0) {
            codex_send_error(c, m.id, jsonrpc_code_of(&e), str_of(e.msg));
        }
        return;
    }
    c->raw = line;
    switch (m.kind) {
    case JSONRPC_REQUEST:
        codex_request(c, &m);
        break;
    case JSONRPC_NOTIFICATION:
        codex_notified(c, &m);
        break;
    case JSONRPC_RESULT:
    case JSONRPC_ERROR:
        answered(c, &m);
        break;
    }
    c->raw = STR_EMPTY;
}

static void codex_feed(void *self, enum agent_stream stream, struct str bytes)
{
    struct codex *c = self;
    struct str line;
    if (stream != AGENT_STDOUT) {
        return;
    }
    enter(c);
    lines_feed(&c->lines, bytes);
    while (lines_next(&c->lines, &line)) {
        if (c->stage != CODEX_OVER && str_trim(line).len > 0) {
            receive(c, line);
            arena_reset(c->scratch);
        }
    }
    /* It may have been the answer that we wait for: nobody would ever know. */
    if (c->lines.overlong > 0) {
        codex_give_up(c, "Codex sent a line of more than %zu MiB", JSONRPC_BYTES_MAX >> 20);
    }
    leave(c);
}

/* --- life --- */

static void *codex_open(const struct launch_spec *spec, struct entry_sink sink)
{
    struct codex *c = xcalloc(1, sizeof *c);
    c->keep = arena_new();
    c->scratch = arena_new();
    c->tools_arena = arena_new();
    c->sink = sink;
    c->port = spec->port;
    c->system_style = spec->profile == NULL ? SYSTEM_PROMPT_APPEND : spec->profile->system_prompt;
    c->prompt = arena_str(c->keep, spec->prompt);
    c->system_prompt = arena_str(c->keep, driver_var(spec, "system_prompt"));
    c->model = arena_str(c->keep, driver_var(spec, "model"));
    c->effort = arena_str(c->keep, driver_var(spec, "effort"));
    c->resume = arena_str(c->keep, spec->resume);
    c->workspace = arena_str(c->keep, str_of(spec->workspace));
    c->schema = spec->output_schema == NULL ? NULL : json_copy(c->keep, spec->output_schema);
    c->has_policies = spec->has_policies;
    c->has_feedback = spec->has_feedback;
    lines_init(&c->lines, JSONRPC_BYTES_MAX);
    buf_init(&c->turn_id, CODEX_ID_MAX);
    buf_init(&c->said, CODEX_TEXT_MAX);
    buf_init(&c->partial, CODEX_TEXT_MAX);
    buf_init(&c->feedback, CODEX_TEXT_MAX);
    c->report.told = true;
    return c;
}

/* Taken along by the thread when it starts; it does not look at them again. */
static void codex_offer(void *self, struct driver_tools tools)
{
    struct codex *c = self;
    arena_reset(c->tools_arena);
    c->tools = NULL;
    struct arena *a = c->tools_arena;
    for (size_t i = 0; i < tools.len; i++) {
        const struct llm_tool *t = &tools.items[i];
        struct json *tool = json_object(a);
        c->tools = c->tools == NULL ? json_array(a) : c->tools;
        json_setc(a, tool, "type", json_cstr(a, "function"));
        json_setc(a, tool, "name", json_string(a, t->name));
        json_setc(a, tool, "description", json_string(a, t->description));
        json_setc(a, tool, "inputSchema",
                  t->schema == NULL ? json_object(a) : json_copy(a, t->schema));
        json_push(a, c->tools, tool);
    }
}

static void codex_close(void *self)
{
    struct codex *c = self;
    codex_asks_done(c);
    codex_items_done(c);
    lines_done(&c->lines);
    buf_done(&c->turn_id);
    buf_done(&c->said);
    buf_done(&c->partial);
    buf_done(&c->feedback);
    arena_free(c->tools_arena);
    arena_free(c->scratch);
    arena_free(c->keep);
    free(c);
}

static void codex_end(void *self, struct agent_report *ret)
{
    struct codex *c = self;
    bool cut = c->stage == CODEX_TURN && !c->interrupted;
    if (!c->report.failed && (cut || (!c->answered && !c->interrupted))) {
        codex_failed(c, "Codex ended before it answered '%s'", codex_stage_name(c->stage));
        c->report.ended_early = true;
    }
    c->report.overlong_lines = c->lines.overlong;
    c->report.text = c->partial.len > 0 ? buf_str(&c->partial) : buf_str(&c->said);
    c->report.result_seen = c->answered && !c->report.failed;
    *ret = c->report;
}

/* --- dialogue --- */

static void codex_begin(void *self)
{
    struct codex *c = self;
    enter(c);
    codex_start(c);
    leave(c);
}

static void codex_replied(void *self, const struct driver_reply *reply)
{
    struct codex *c = self;
    enter(c);
    codex_reply(c, reply);
    leave(c);
}

static void codex_say(void *self, struct str text)
{
    struct codex *c = self;
    enter(c);
    if (c->stage == CODEX_WAITING) {
        codex_turn(c, text);
    } else if (c->stage == CODEX_OVER) {
        codex_end_turn(c, "error"); /* nobody is there to hear it */
    }
    leave(c);
}

static bool codex_tune(void *self, enum driver_option option, struct str value)
{
    struct codex *c = self;
    if (option != DRIVER_OPTION_MODEL) {
        return false; /* its approvals are those of our policies */
    }
    c->turn_model = arena_str(c->keep, value);
    return true;
}

static void codex_stop_turn(void *self)
{
    struct codex *c = self;
    enter(c);
    codex_interrupt(c);
    leave(c);
}

static void codex_finish(void *self)
{
    struct codex *c = self;
    if (c->stage != CODEX_OVER || c->request != -1) {
        c->stage = CODEX_OVER;
        c->request = -1; /* once is enough */
        c->port.close_input(c->port.owner);
    }
}

static struct driver_wait codex_awaits(void *self)
{
    const struct codex *c = self;
    bool starts = c->stage > CODEX_NEW && c->stage <= CODEX_THREAD;
    return starts ? (struct driver_wait) { codex_stage_name(c->stage), DRIVER_START_TIME }
                  : (struct driver_wait) { 0 };
}

static const struct driver_program_ops program_ops = {
    .plan = driver_plan,
    .feed = codex_feed,
};

static const struct driver_dialogue_ops dialogue_ops = {
    .begin = codex_begin,
    .reply = codex_replied,
    .prompt = codex_say,
    .interrupt = codex_stop_turn,
    .finish = codex_finish,
    .offer = codex_offer,
    .pending = codex_awaits,
    .resume = driver_never_paused,
    .sets_model = true,
    .set_option = codex_tune,
};

const struct driver driver_codex = {
    .name = "codex-app-server",
    .kind = DRIVER_DIALOGUE,
    .tier_prompt = "system",
    .open = codex_open,
    .end = codex_end,
    .close = codex_close,
    .program = &program_ops,
    .dialogue = &dialogue_ops,
};
