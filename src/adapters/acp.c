/* SPDX-License-Identifier: MIT
 *
 * Driver `acp`: the Agent Client Protocol, version 1, over standard input and output; one JSON-RPC
 * message a line. We are the client: one request of ours is open at a time (initialize,
 * authenticate, session, mode, model, prompt), while the agent may ask and tell at any time. What
 * is odd about an agent is data of its profile (struct profile_acp).
 *
 * Lines that are no messages are counted and passed over: some agents print to standard output.
 */
#include "adapters/acp_priv.h"

#include <stdlib.h>

/* --- sending --- */

static void send_line(struct acp *p, struct buf *line, int rc)
{
    if (rc == 0 && buf_append_c(line, '\n', NULL) == 0) {
        p->port.send(p->port.owner, buf_str(line));
    } else {
        acp_give_up(p, "a message for the agent is too large");
    }
}

void acp_send_request(struct acp *p, const char *method, const struct json *params)
{
    CLEANUP(buf) struct buf line = BUF_INIT(2 * BUF_TEXT);
    p->request = ++p->requests;
    struct json *id = json_integer(p->scratch, p->request);
    send_line(p, &line, jsonrpc_write_request(id, str_of(method), params, &line, NULL));
}

void acp_send_notification(struct acp *p, const char *method, const struct json *params)
{
    CLEANUP(buf) struct buf line = BUF_INIT(2 * BUF_TEXT);
    send_line(p, &line, jsonrpc_write_notification(str_of(method), params, &line, NULL));
}

void acp_send_result(struct acp *p, const struct json *id, const struct json *result)
{
    CLEANUP(buf) struct buf line = BUF_INIT(2 * BUF_TEXT);
    send_line(p, &line, jsonrpc_write_result(id, result, &line, NULL));
}

void acp_send_error(struct acp *p, const struct json *id, int64_t code, struct str text)
{
    CLEANUP(buf) struct buf line = BUF_INIT(2 * BUF_TEXT);
    send_line(p, &line, jsonrpc_write_error(id, code, text, NULL, &line, NULL));
}

void acp_set(struct acp *p, struct json *object, const char *key, struct str text)
{
    json_setc(p->scratch, object, key, json_string(p->scratch, text));
}

/* --- telling --- */

void acp_entry(struct acp *p, const char *type, const struct json *detail)
{
    if (p->sink.entry != NULL) {
        bool raw = strcmp(type, "unknown") == 0;
        p->sink.entry(p->sink.owner, type, detail, raw ? p->raw : STR_EMPTY);
    }
}

void acp_event(struct acp *p, const char *subtype, const char *key, struct json *value)
{
    struct json *detail = json_object(p->scratch);
    json_setc(p->scratch, detail, "subtype", json_cstr(p->scratch, subtype));
    json_setc(p->scratch, detail, key, value);
    acp_entry(p, "system_event", detail);
}

static void fail(struct acp *p, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
static void fail(struct acp *p, const char *fmt, va_list ap)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (!p->report.failed && buf_vprintf(&text, NULL, fmt, ap) == 0) {
        p->report.failed = true;
        p->report.error = arena_str(p->keep, str_slice(buf_str(&text), 0, 4096));
    }
}

void acp_failed(struct acp *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(p, fmt, ap);
    va_end(ap);
}

void acp_give_up(struct acp *p, const char *fmt, ...)
{
    va_list ap;
    if (p->stage == ACP_OVER) {
        return;
    }
    va_start(ap, fmt);
    fail(p, fmt, ap);
    va_end(ap);
    p->stage = ACP_OVER;
    acp_end_turn(p, "error");
}

void acp_end_turn(struct acp *p, const char *stop_reason)
{
    p->request = 0;
    p->turn_due = true;
    p->stop_reason = stop_reason;
}

/* --- calls into the driver --- */

static void enter(struct acp *p)
{
    p->depth++;
}

/* A turn is told last of all: whoever hears of it may say the next thing at once. */
static void leave(struct acp *p)
{
    if (--p->depth > 0) {
        return;
    }
    arena_reset(p->scratch);
    if (p->turn_due) {
        p->turn_due = false;
        struct driver_turn turn = { .stop_reason = p->stop_reason };
        turn.settle = p->stage == ACP_OVER ? 0 : p->quirks->settle_ms * NSEC_PER_MS;
        p->port.turn(p->port.owner, &turn);
    }
}

/* --- receiving --- */

static void notified(struct acp *p, const struct jsonrpc_message *m)
{
    struct str session = json_str(json_get(m->params, "sessionId"), STR_EMPTY);
    if (!str_eqc(m->method, "session/update")) {
        struct json *detail = json_object(p->scratch);
        acp_set(p, detail, "method", m->method);
        acp_entry(p, "unknown", detail);
        return;
    }
    /* Another conversation than ours is none of our business. */
    if (p->report.session_id.len == 0 || str_eq(session, p->report.session_id)) {
        acp_update(p, json_get(m->params, "update"));
    }
}

static void answered(struct acp *p, const struct jsonrpc_message *m)
{
    /* A second answer, or one to something that was never asked, changes nothing. */
    if (p->request != 0 && json_is(m->id, JSON_INT) && m->id->integer == p->request) {
        p->request = 0;
        acp_answer(p, m);
    } else if (m->id == NULL && p->request != 0) {
        acp_give_up(p, "the agent could not read '%s': %.*s", acp_stage_name(p->stage),
                    STR_ARG(str_slice(m->text, 0, 400)));
    }
}

static void receive(struct acp *p, struct str line)
{
    struct jsonrpc_message m;
    struct err e = { 0 };
    if (jsonrpc_read(p->scratch, line, NULL, &m, &e) < 0) {
        p->report.unparsable_lines++;
        /* Only what asks can be told that it was not understood. */
        if (e.code == ERR_PROTO && m.id != NULL && m.method.len > 0) {
            acp_send_error(p, m.id, jsonrpc_code_of(&e), str_of(e.msg));
        }
        return;
    }
    p->raw = line;
    switch (m.kind) {
    case JSONRPC_REQUEST:
        acp_request(p, &m);
        break;
    case JSONRPC_NOTIFICATION:
        notified(p, &m);
        break;
    case JSONRPC_RESULT:
    case JSONRPC_ERROR:
        answered(p, &m);
        break;
    }
    p->raw = STR_EMPTY;
}

static void acp_feed(void *self, enum agent_stream stream, struct str bytes)
{
    struct acp *p = self;
    struct str line;
    if (stream != AGENT_STDOUT) {
        return;
    }
    enter(p);
    lines_feed(&p->lines, bytes);
    while (lines_next(&p->lines, &line)) {
        if (p->stage != ACP_OVER && str_trim(line).len > 0) {
            receive(p, line);
            arena_reset(p->scratch);
        }
    }
    /* It may have been the answer that we wait for: nobody would ever know. */
    if (p->lines.overlong > 0) {
        acp_give_up(p, "the agent sent a line of more than %zu MiB", JSONRPC_BYTES_MAX >> 20);
    }
    leave(p);
}

/* --- life --- */

static const char *const *copy_list(struct arena *a, const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL) {
        n++;
    }
    char **copy = arena_array(a, n + 1, sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        copy[i] = arena_dup(a, str_of(list[i]));
    }
    return n == 0 ? NULL : (const char *const *)copy;
}

/* What keeps the agent from obeying files of the workspace. Without it nothing is started. */
static int acp_plan(struct arena *a, const struct launch_spec *spec, struct launch *ret,
                    struct err *e)
{
    struct json *unused;
    int r = expand_tree(a, spec->profile->project.session, &spec->vars, &unused, e);
    return r < 0 ? err_wrap(e, "adapter '%s': project_config.session", spec->profile->name)
                 : driver_plan(a, spec, ret, e);
}

static const struct json *session_meta(struct arena *a, const struct launch_spec *spec)
{
    struct json *meta = NULL;
    const struct json *of = spec->profile->project.session;
    bool wanted = of != NULL && driver_var(spec, "project_trusted").len == 0;
    return wanted && expand_tree(a, of, &spec->vars, &meta, NULL) == 0 ? meta : NULL;
}

static void *acp_open(const struct launch_spec *spec, struct entry_sink sink)
{
    struct acp *p = xcalloc(1, sizeof *p);
    p->keep = arena_new();
    p->scratch = arena_new();
    p->options_arena = arena_new();
    p->sink = sink;
    p->port = spec->port;
    p->quirks = &spec->profile->acp;
    p->tool_prefix = str_of(spec->profile->mcp.prefix);
    p->prompt = arena_str(p->keep, spec->prompt);
    if (spec->profile->tier.prompt != TIER_PROMPT_SYSTEM) { /* else it has it by file */
        p->system_prompt = arena_str(p->keep, driver_var(spec, "system_prompt"));
    }
    p->model = arena_str(p->keep, driver_var(spec, "model"));
    p->effort = arena_str(p->keep, driver_var(spec, "effort"));
    p->resume = arena_str(p->keep, spec->resume);
    p->workspace = arena_str(p->keep, str_of(spec->workspace));
    if (spec->mcp.url != NULL) {
        p->mcp.url = arena_dup(p->keep, str_of(spec->mcp.url));
        p->mcp.token = arena_dup(p->keep, str_of(spec->mcp.token));
    }
    p->mcp.shim = copy_list(p->keep, spec->mcp.shim);
    p->session_meta = session_meta(p->keep, spec);
    p->has_policies = spec->has_policies;
    p->has_feedback = spec->has_feedback;
    lines_init(&p->lines, JSONRPC_BYTES_MAX);
    buf_init(&p->used_model, ACP_NAME_MAX);
    buf_init(&p->message_id, ACP_NAME_MAX);
    buf_init(&p->pending, ACP_TEXT_MAX);
    buf_init(&p->said, ACP_TEXT_MAX);
    buf_init(&p->feedback, ACP_TEXT_MAX);
    p->context_used = -1;
    return p;
}

static void acp_close(void *self)
{
    struct acp *p = self;
    for (size_t i = 0; i < ACP_ASKS_MAX; i++) {
        arena_free(p->asks[i].arena);
    }
    acp_calls_free(p);
    lines_done(&p->lines);
    buf_done(&p->used_model);
    buf_done(&p->message_id);
    buf_done(&p->pending);
    buf_done(&p->said);
    buf_done(&p->feedback);
    arena_free(p->options_arena);
    arena_free(p->scratch);
    arena_free(p->keep);
    free(p);
}

static void acp_end(void *self, struct agent_report *ret)
{
    struct acp *p = self;
    acp_flush(p);
    acp_calls_settle(p);
    arena_reset(p->scratch);
    bool cut = p->stage == ACP_PROMPT && !p->interrupted;
    if (!p->report.failed && (cut || (!p->answered && !p->interrupted))) {
        acp_failed(p, "the agent ended before it answered '%s'", acp_stage_name(p->stage));
        p->report.ended_early = true;
    }
    p->report.overlong_lines = p->lines.overlong;
    p->report.text = buf_str(&p->said);
    /* An agent that was told by other means may know its model by another name. */
    bool told = p->quirks->model == ACP_MODEL_NONE && p->model.len > 0;
    p->report.model = told ? p->model : buf_str(&p->used_model);
    p->report.result_seen = p->answered && !p->report.failed;
    p->report.told = true;
    *ret = p->report;
}

/* --- dialogue --- */

static void acp_begin(void *self)
{
    struct acp *p = self;
    enter(p);
    acp_start(p);
    leave(p);
}

static void acp_replied(void *self, const struct driver_reply *reply)
{
    struct acp *p = self;
    enter(p);
    acp_reply(p, reply);
    leave(p);
}

static void acp_say(void *self, struct str text)
{
    struct acp *p = self;
    enter(p);
    if (p->stage == ACP_WAITING) {
        acp_prompt(p, text, false);
    } else if (p->stage == ACP_OVER) {
        acp_end_turn(p, "error"); /* nobody is there to hear it */
    }
    leave(p);
}

static void acp_resumed(void *self)
{
    struct acp *p = self;
    enter(p);
    acp_go_on(p);
    leave(p);
}

static struct driver_wait acp_awaits(void *self)
{
    const struct acp *p = self;
    int64_t ms = p->stage == ACP_SESSION ? p->quirks->session_ms : p->quirks->initialize_ms;
    if (p->stage == ACP_NEW || p->stage >= ACP_PROMPT || p->hushed) {
        return (struct driver_wait) { 0 };
    }
    return (struct driver_wait) { .method = acp_stage_name(p->stage), .limit = ms * NSEC_PER_MS };
}

/* What was asked of us is given up first: an agent waits for that before it ends its turn. */
static void acp_interrupt(void *self)
{
    struct acp *p = self;
    enter(p);
    bool first = !p->interrupted;
    p->interrupted = true;
    if (first && p->stage == ACP_PROMPT) {
        struct json *params = json_object(p->scratch);
        acp_set(p, params, "sessionId", p->report.session_id);
        acp_send_notification(p, "session/cancel", params);
        acp_cancel_asks(p);
    } else if (first && p->hushed) {
        p->hushed = false;
        p->stage = ACP_OVER; /* nothing was asked yet */
        acp_end_turn(p, "interrupted");
    }
    leave(p);
}

static void acp_finish(void *self)
{
    struct acp *p = self;
    enter(p);
    acp_flush(p);
    acp_calls_settle(p);
    p->stage = ACP_OVER;
    p->port.close_input(p->port.owner);
    leave(p);
}

static const struct driver_program_ops program_ops = {
    .plan = acp_plan,
    .feed = acp_feed,
};

static const struct driver_dialogue_ops dialogue_ops = {
    .begin = acp_begin,
    .reply = acp_replied,
    .prompt = acp_say,
    .interrupt = acp_interrupt,
    .finish = acp_finish,
    .offer = driver_ignores_tools,
    .pending = acp_awaits,
    .resume = acp_resumed,
    .set_option = driver_sets_nothing,
};

const struct driver driver_acp = {
    .name = "acp",
    .kind = DRIVER_DIALOGUE,
    .tier_prompt = "text",
    .open = acp_open,
    .end = acp_end,
    .close = acp_close,
    .program = &program_ops,
    .dialogue = &dialogue_ops,
};
