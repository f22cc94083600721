/* SPDX-License-Identifier: MIT
 *
 * Anthropic Messages: answers, as events out of the wire and back onto it.
 */
#include "llm/anthropic_priv.h"

/* --- words --- */

static const struct {
    enum llm_stop stop;
    const char *word;
} stops[] = {
    { LLM_STOP_END, "end_turn" },    { LLM_STOP_LENGTH, "max_tokens" },
    { LLM_STOP_TOOL, "tool_use" },   { LLM_STOP_SEQUENCE, "stop_sequence" },
    { LLM_STOP_REFUSAL, "refusal" }, { LLM_STOP_PAUSE, "pause_turn" },
};

static void emit_stop(struct llm_read *rd, const struct json *from)
{
    struct str reason = json_str(json_get(from, "stop_reason"), STR_EMPTY);
    struct str sequence = json_str(json_get(from, "stop_sequence"), STR_EMPTY);
    if (reason.len == 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(stops); i++) {
        if (str_eqc(reason, stops[i].word)) {
            bool named = stops[i].stop == LLM_STOP_SEQUENCE;
            llm_emit_stop(rd, stops[i].stop, named ? sequence : STR_EMPTY);
            return;
        }
    }
    bool full = str_eqc(reason, "model_context_window_exceeded");
    llm_emit_stop(rd, full ? LLM_STOP_LENGTH : LLM_STOP_OTHER, full ? STR_EMPTY : reason);
}

static void emit_usage(struct llm_read *rd, const struct json *usage)
{
    struct llm_usage u = {
        .input = json_int(json_get(usage, "input_tokens"), -1),
        .output = json_int(json_get(usage, "output_tokens"), -1),
        .cache_read = json_int(json_get(usage, "cache_read_input_tokens"), -1),
        .cache_write = json_int(json_get(usage, "cache_creation_input_tokens"), -1),
        .reasoning = -1,
        .cache_write_long =
            json_int(json_get(json_get(usage, "cache_creation"), "ephemeral_1h_input_tokens"), -1),
        .searches =
            json_int(json_get(json_get(usage, "server_tool_use"), "web_search_requests"), -1),
    };
    llm_emit_usage(rd, &u);
}

/* --- reading --- */

static void emit_start(struct llm_read *rd, const struct json *message)
{
    struct llm_event ev = {
        .kind = LLM_EV_START,
        .id = json_str(json_get(message, "id"), STR_EMPTY),
        .model = json_str(json_get(message, "model"), STR_EMPTY),
    };
    llm_emit(rd, &ev);
    emit_usage(rd, json_get(message, "usage"));
}

static void emit_other(struct llm_read *rd, uint32_t block, const struct json *raw)
{
    struct llm_event ev = {
        .kind = LLM_EV_OTHER, .block = block, .format = LLM_ANTHROPIC, .raw = raw
    };
    llm_emit(rd, &ev);
}

static void emit_nonempty(struct llm_read *rd, enum llm_event_kind kind, uint32_t block,
                          const struct json *text)
{
    struct str s = json_str(text, STR_EMPTY);
    if (s.len > 0) {
        llm_emit_text(rd, kind, block, s);
    }
}

/* The input is {} at the start of a streamed call and whole in a body. */
static void emit_call(struct llm_read *rd, uint32_t block, const struct json *content)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT * 2);
    const struct json *input = json_get(content, "input");
    struct llm_event ev = {
        .kind = LLM_EV_CALL_BEGIN,
        .block = block,
        .id = json_str(json_get(content, "id"), STR_EMPTY),
        .name = json_str(json_get(content, "name"), STR_EMPTY),
    };
    llm_emit(rd, &ev);
    if (json_len(input) > 0 && json_write(input, JSON_COMPACT, &text, NULL) == 0) {
        llm_emit_text(rd, LLM_EV_CALL_DATA, block, buf_str(&text));
    }
}

/* A citation of a body as the delta that a stream would have. */
static void emit_citations(struct llm_read *rd, uint32_t block, const struct json *list)
{
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        struct json *raw = json_object(rd->arena);
        llm_set_cstr(rd->arena, raw, "type", "content_block_delta");
        struct json *delta = llm_set_object(rd->arena, raw, "delta");
        llm_set_cstr(rd->arena, delta, "type", "citations_delta");
        json_setc(rd->arena, delta, "citation", json_item(list, i));
        emit_other(rd, block, raw);
    }
}

/* Begins a block with what it has from the start: nothing much in a stream, all in a body. */
static enum llm_part_kind begin_block(struct llm_read *rd, uint32_t block, const struct json *raw)
{
    const struct json *content = json_get(raw, "content_block");
    struct str type = json_str(json_get(content, "type"), STR_EMPTY);
    if (str_eqc(type, "text")) {
        emit_nonempty(rd, LLM_EV_TEXT, block, json_get(content, "text"));
        emit_citations(rd, block, json_get(content, "citations"));
        return LLM_PART_TEXT;
    }
    if (str_eqc(type, "thinking")) {
        emit_nonempty(rd, LLM_EV_THINKING, block, json_get(content, "thinking"));
        emit_nonempty(rd, LLM_EV_SIGNATURE, block, json_get(content, "signature"));
        return LLM_PART_THINKING;
    }
    if (str_eqc(type, "redacted_thinking")) {
        struct llm_event ev = {
            .kind = LLM_EV_SIGNATURE,
            .block = block,
            .redacted = true,
            .text = json_str(json_get(content, "data"), STR_EMPTY),
        };
        llm_emit(rd, &ev);
        return LLM_PART_THINKING;
    }
    if (str_eqc(type, "tool_use")) {
        emit_call(rd, block, content);
        return LLM_PART_CALL;
    }
    emit_other(rd, block, raw);
    return LLM_PART_OTHER;
}

static void read_start(struct llm_read *rd, const struct json *v)
{
    struct llm_anthropic_reader *state = rd->state;
    struct llm_anthropic_index *i = LLM_ADD(rd->memory, &state->indices);
    i->index = json_int(json_get(v, "index"), 0);
    i->block = rd->blocks++;
    i->kind = begin_block(rd, i->block, v);
}

/* The last block of that index; streams begin blocks in order, so it is nearly always the last. */
static const struct llm_anthropic_index *block_at(struct llm_read *rd, const struct json *v)
{
    const struct llm_anthropic_reader *state = rd->state;
    int64_t index = json_int(json_get(v, "index"), 0);
    for (size_t i = state->indices.n; i > 0; i--) {
        if (state->indices.items[i - 1].index == index) {
            return &state->indices.items[i - 1];
        }
    }
    return NULL;
}

static void read_delta(struct llm_read *rd, const struct json *v)
{
    const struct llm_anthropic_index *i = block_at(rd, v);
    const struct json *delta = json_get(v, "delta");
    struct str type = json_str(json_get(delta, "type"), STR_EMPTY);
    if (i == NULL) {
        return;
    }
    if (str_eqc(type, "text_delta") && i->kind == LLM_PART_TEXT) {
        emit_nonempty(rd, LLM_EV_TEXT, i->block, json_get(delta, "text"));
    } else if (str_eqc(type, "thinking_delta") && i->kind == LLM_PART_THINKING) {
        emit_nonempty(rd, LLM_EV_THINKING, i->block, json_get(delta, "thinking"));
    } else if (str_eqc(type, "signature_delta") && i->kind == LLM_PART_THINKING) {
        emit_nonempty(rd, LLM_EV_SIGNATURE, i->block, json_get(delta, "signature"));
    } else if (str_eqc(type, "input_json_delta") && i->kind == LLM_PART_CALL) {
        emit_nonempty(rd, LLM_EV_CALL_DATA, i->block, json_get(delta, "partial_json"));
    } else {
        emit_other(rd, i->block, v);
    }
}

static void read_stop(struct llm_read *rd, const struct json *v)
{
    const struct llm_anthropic_index *i = block_at(rd, v);
    if (i != NULL && i->kind == LLM_PART_CALL) {
        llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_CALL_END, .block = i->block });
    }
}

static void read_error(struct llm_read *rd, const struct json *v)
{
    struct llm_event ev = { .kind = LLM_EV_ERROR, .error = { .kind = LLM_ERR_SERVER } };
    llm_anthropic_error_read(v, &ev.error);
    ev.error.status = llm_error_status(ev.error.kind);
    llm_emit(rd, &ev);
}

int llm_anthropic_read_event(struct llm_read *rd, struct str name, struct str data, struct err *e)
{
    struct json *v = NULL;
    int r = llm_read_json(rd, data, &v, e);
    if (r < 0) {
        return r;
    }
    struct str type = json_str(json_get(v, "type"), name);
    if (str_eqc(type, "content_block_delta")) {
        read_delta(rd, v);
    } else if (str_eqc(type, "content_block_start")) {
        read_start(rd, v);
    } else if (str_eqc(type, "content_block_stop")) {
        read_stop(rd, v);
    } else if (str_eqc(type, "message_start")) {
        emit_start(rd, json_get(v, "message"));
    } else if (str_eqc(type, "message_delta")) {
        emit_usage(rd, json_get(v, "usage"));
        emit_stop(rd, json_get(v, "delta"));
    } else if (str_eqc(type, "message_stop")) {
        llm_emit_end(rd);
    } else if (str_eqc(type, "ping")) {
        llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_PING });
    } else if (str_eqc(type, "error")) {
        read_error(rd, v);
    } else {
        emit_other(rd, LLM_NO_BLOCK, v);
    }
    return 0;
}

int llm_anthropic_read_body(struct llm_read *rd, const struct json *body, struct err *e)
{
    const struct json *content = json_get(body, "content");
    if (str_eqc(json_str(json_get(body, "type"), STR_EMPTY), "error")) {
        read_error(rd, body);
        return 0;
    }
    if (!json_is(content, JSON_ARRAY)) {
        return ERR(e, ERR_PROTO, "the response is not a message: 'content' is missing");
    }
    emit_start(rd, body);
    for (size_t i = 0; i < json_len(content); i++) {
        struct json *raw = json_object(rd->arena);
        llm_set_cstr(rd->arena, raw, "type", "content_block_start");
        json_setc(rd->arena, raw, "content_block", json_item(content, i));
        uint32_t block = rd->blocks++;
        if (begin_block(rd, block, raw) == LLM_PART_CALL) {
            llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_CALL_END, .block = block });
        }
    }
    emit_stop(rd, body);
    llm_emit_end(rd);
    return 0;
}

/* Deltas are nearly all of a stream and hold nothing that is metered. */
bool llm_anthropic_tap_wants(struct str name, struct str data)
{
    static const char *const boring[] = { "content_block_delta", "content_block_stop", "ping",
                                          NULL };
    (void)name; /* what the data say counts */
    return !llm_word_in(llm_type_at_front(data), boring);
}

/* --- writing --- */

static struct json *usage_json(struct arena *a, const struct llm_usage *u, bool start)
{
    struct json *v = json_object(a);
    if (start || u->input >= 0) {
        llm_set_int(a, v, "input_tokens", u->input < 0 ? 0 : u->input);
    }
    if (u->cache_write >= 0) {
        llm_set_int(a, v, "cache_creation_input_tokens", u->cache_write);
    }
    if (u->cache_read >= 0) {
        llm_set_int(a, v, "cache_read_input_tokens", u->cache_read);
    }
    llm_set_int(a, v, "output_tokens", u->output < 0 ? 0 : u->output);
    return v;
}

static void put_stop(struct llm_write *w, struct json *to)
{
    const struct llm_answer *answer = &w->answer;
    const char *word = "end_turn";
    for (size_t i = 0; i < ARRAY_LEN(stops); i++) {
        word = stops[i].stop == answer->stop ? stops[i].word : word;
    }
    llm_set_cstr(w->arena, to, "stop_reason", word);
    json_setc(w->arena, to, "stop_sequence", json_null(w->arena));
    if (answer->stop == LLM_STOP_SEQUENCE && answer->stop_text.len > 0) {
        llm_set_str(w->arena, to, "stop_sequence", answer->stop_text);
    }
}

static struct json *message_json(struct llm_write *w)
{
    struct arena *a = w->arena;
    struct json *m = json_object(a);
    if (w->answer.id.len == 0) {
        w->answer.id = llm_make_id(w, "msg_");
    }
    llm_set_str(a, m, "id", w->answer.id);
    llm_set_cstr(a, m, "type", "message");
    llm_set_cstr(a, m, "role", "assistant");
    llm_set_str(a, m, "model", w->answer.model);
    (void)llm_set_array(a, m, "content");
    json_setc(a, m, "stop_reason", json_null(a));
    json_setc(a, m, "stop_sequence", json_null(a));
    return m;
}

static struct json *event_json(struct llm_write *w, const char *type)
{
    struct json *v = json_object(w->arena);
    llm_set_cstr(w->arena, v, "type", type);
    return v;
}

static int start_message(struct llm_write *w, struct err *e)
{
    struct llm_anthropic_writer *s = w->state;
    if (!s->start_waits) {
        return 0;
    }
    s->start_waits = false;
    struct json *v = event_json(w, "message_start");
    struct json *m = message_json(w);
    json_setc(w->arena, v, "message", m);
    json_setc(w->arena, m, "usage", usage_json(w->arena, &w->answer.usage, true));
    return llm_write_sse(w, "message_start", v, e);
}

static int delta(struct llm_write *w, const char *type, const char *key, struct str text,
                 struct err *e)
{
    struct llm_anthropic_writer *s = w->state;
    struct json *v = event_json(w, "content_block_delta");
    llm_set_int(w->arena, v, "index", s->index);
    struct json *d = llm_set_object(w->arena, v, "delta");
    llm_set_cstr(w->arena, d, "type", type);
    llm_set_str(w->arena, d, key, text);
    return llm_write_sse(w, "content_block_delta", v, e);
}

static int close_block(struct llm_write *w, struct err *e)
{
    struct llm_anthropic_writer *s = w->state;
    if (!s->open) {
        return 0;
    }
    if (s->custom) {
        s->custom = false;
        int r = delta(w, "input_json_delta", "partial_json", STR("\"}"), e);
        if (r < 0) {
            return r;
        }
    }
    s->open = false;
    struct json *v = event_json(w, "content_block_stop");
    llm_set_int(w->arena, v, "index", s->index++);
    return llm_write_sse(w, "content_block_stop", v, e);
}

static int open_block(struct llm_write *w, const struct llm_event *ev, enum llm_part_kind kind,
                      struct json *content, struct err *e)
{
    struct llm_anthropic_writer *s = w->state;
    int r = close_block(w, e);
    if (r < 0) {
        return r;
    }
    s->open = true;
    s->block = ev->block;
    s->kind = kind;
    struct json *v = event_json(w, "content_block_start");
    llm_set_int(w->arena, v, "index", s->index);
    json_setc(w->arena, v, "content_block", content);
    return llm_write_sse(w, "content_block_start", v, e);
}

static bool is_open(const struct llm_write *w, const struct llm_event *ev, enum llm_part_kind kind)
{
    const struct llm_anthropic_writer *s = w->state;
    return s->open && s->block == ev->block && s->kind == kind;
}

static int write_text(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    int r = 0;
    if (!is_open(w, ev, LLM_PART_TEXT)) {
        struct json *content = event_json(w, "text");
        llm_set_cstr(w->arena, content, "text", "");
        r = open_block(w, ev, LLM_PART_TEXT, content, e);
    }
    return r < 0 ? r : delta(w, "text_delta", "text", ev->text, e);
}

static int write_redacted(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    struct json *content = event_json(w, "redacted_thinking");
    llm_set_str(w->arena, content, "data", ev->text);
    int r = open_block(w, ev, LLM_PART_THINKING, content, e);
    return r < 0 ? r : close_block(w, e);
}

/* A signature of words or of a call is Gemini's, and this format has no place for it. */
static bool is_foreign_signature(struct llm_write *w, const struct llm_event *ev)
{
    const struct llm_block *b = llm_block_find(w, ev->block);
    if (ev->kind != LLM_EV_SIGNATURE || b == NULL || b->kind == LLM_PART_THINKING) {
        return false;
    }
    llm_lost(w->opts.losses, STR("answer: signature"), "anthropic signs thoughts only");
    return true;
}

static int write_thought(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    int r = 0;
    if (is_foreign_signature(w, ev)) {
        return 0;
    }
    if (ev->redacted) {
        return ev->kind == LLM_EV_SIGNATURE ? write_redacted(w, ev, e) : 0;
    }
    if (!is_open(w, ev, LLM_PART_THINKING)) {
        struct json *content = event_json(w, "thinking");
        llm_set_cstr(w->arena, content, "thinking", "");
        llm_set_cstr(w->arena, content, "signature", "");
        r = open_block(w, ev, LLM_PART_THINKING, content, e);
    }
    if (r < 0) {
        return r;
    }
    return ev->kind == LLM_EV_SIGNATURE ? delta(w, "signature_delta", "signature", ev->text, e)
                                        : delta(w, "thinking_delta", "thinking", ev->text, e);
}

static int begin_call(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    struct llm_anthropic_writer *s = w->state;
    struct json *content = event_json(w, "tool_use");
    llm_set_str(w->arena, content, "id", ev->id.len > 0 ? ev->id : llm_make_id(w, "toolu_"));
    llm_set_str(w->arena, content, "name", ev->name);
    (void)llm_set_object(w->arena, content, "input");
    int r = open_block(w, ev, LLM_PART_CALL, content, e);
    s->custom = ev->custom;
    if (r == 0 && ev->custom) {
        r = delta(w, "input_json_delta", "partial_json", STR("{\"input\":\""), e);
    }
    return r;
}

static int call_data(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    const struct llm_anthropic_writer *s = w->state;
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT * 4);
    if (!is_open(w, ev, LLM_PART_CALL)) {
        return 0;
    }
    if (!s->custom) {
        return delta(w, "input_json_delta", "partial_json", ev->text, e);
    }
    int r = json_write_string(ev->text, &text, e);
    struct str quoted = buf_str(&text);
    return r < 0 ? r
                 : delta(w, "input_json_delta", "partial_json",
                         str_slice(quoted, 1, quoted.len - 1), e);
}

/* Our own kind of content that only this format has: as it was, with the index that fits here. */
static int write_other(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    const struct llm_anthropic_writer *s = w->state;
    struct json *v = json_copy(w->arena, ev->raw);
    const char *type = json_cstring(json_get(v, "type"), "ping");
    if (strcmp(type, "content_block_start") == 0) {
        return open_block(w, ev, LLM_PART_OTHER, json_get(v, "content_block"), e);
    }
    if (strcmp(type, "content_block_delta") == 0) {
        if (!s->open || s->block != ev->block) {
            return 0;
        }
        llm_set_int(w->arena, v, "index", s->index);
    }
    return llm_write_sse(w, type, v, e);
}

static int write_stop(struct llm_write *w, struct err *e)
{
    struct llm_anthropic_writer *s = w->state;
    int r = close_block(w, e);
    if (r < 0 || s->stopped) {
        return r;
    }
    s->stopped = true;
    struct json *v = event_json(w, "message_delta");
    put_stop(w, llm_set_object(w->arena, v, "delta"));
    json_setc(w->arena, v, "usage", usage_json(w->arena, &w->answer.usage, false));
    return llm_write_sse(w, "message_delta", v, e);
}

static int write_end(struct llm_write *w, struct err *e)
{
    int r = write_stop(w, e);
    return r < 0 ? r : llm_write_sse(w, "message_stop", event_json(w, "message_stop"), e);
}

int llm_anthropic_write_event(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    struct llm_anthropic_writer *s = w->state;
    if (ev->kind == LLM_EV_START || ev->kind == LLM_EV_USAGE) {
        s->start_waits = s->start_waits || ev->kind == LLM_EV_START;
        return 0;
    }
    int r = ev->kind == LLM_EV_ERROR ? 0 : start_message(w, e);
    if (r < 0) {
        return r;
    }
    switch (ev->kind) {
    case LLM_EV_TEXT:
    case LLM_EV_REFUSAL:
        return write_text(w, ev, e);
    case LLM_EV_THINKING:
    case LLM_EV_SIGNATURE:
        return write_thought(w, ev, e);
    case LLM_EV_CALL_BEGIN:
        return begin_call(w, ev, e);
    case LLM_EV_CALL_DATA:
        return call_data(w, ev, e);
    case LLM_EV_CALL_END:
        return is_open(w, ev, LLM_PART_CALL) ? close_block(w, e) : 0;
    case LLM_EV_PING:
        return llm_write_sse(w, "ping", event_json(w, "ping"), e);
    case LLM_EV_OTHER:
        return write_other(w, ev, e);
    case LLM_EV_STOP:
        return write_stop(w, e);
    case LLM_EV_END:
        return write_end(w, e);
    case LLM_EV_ERROR:
        return llm_write_sse(w, "error", llm_anthropic_error(w->arena, &ev->error), e);
    case LLM_EV_START:
    case LLM_EV_USAGE:
        break;
    }
    return 0;
}

/* --- a whole body --- */

static struct json *call_body(struct llm_write *w, const struct llm_block *b)
{
    struct json *v = event_json(w, "tool_use");
    struct llm_call c = { .custom = b->custom };
    llm_call_set_text(w->arena, &c, buf_str(&b->text));
    llm_set_str(w->arena, v, "id", b->id.len > 0 ? b->id : llm_make_id(w, "toolu_"));
    llm_set_str(w->arena, v, "name", b->name);
    json_setc(w->arena, v, "input", llm_call_input(w->arena, &c));
    return v;
}

static struct json *text_body(struct llm_write *w, const struct llm_block *b)
{
    struct json *v = event_json(w, "text");
    llm_set_str(w->arena, v, "text", buf_str(&b->text));
    for (size_t i = 0; i < b->raw.n; i++) {
        struct json *citation = json_pointer(b->raw.items[i], STR("/delta/citation"));
        if (citation != NULL) {
            struct json *list = json_get(v, "citations");
            list = list != NULL ? list : llm_set_array(w->arena, v, "citations");
            json_push(w->arena, list, citation);
        }
    }
    return v;
}

/* A block of a kind that only this format has; its input may have come in pieces. */
static struct json *other_body(struct llm_write *w, const struct llm_block *b)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT * 2);
    struct json *input = NULL;
    struct json *v =
        b->raw.n == 0 ? NULL : json_copy(w->arena, json_get(b->raw.items[0], "content_block"));
    for (size_t i = 1; i < b->raw.n; i++) {
        const struct json *piece = json_pointer(b->raw.items[i], STR("/delta/partial_json"));
        buf_add(&text, json_str(piece, STR_EMPTY));
    }
    if (json_is(v, JSON_OBJECT) && text.len > 0 &&
        json_parse(w->arena, buf_str(&text), NULL, &input, NULL) == 0) {
        json_setc(w->arena, v, "input", input);
    }
    return v;
}

static struct json *block_body(struct llm_write *w, const struct llm_block *b)
{
    struct json *v = NULL;
    switch (b->kind) {
    case LLM_PART_CALL:
        return call_body(w, b);
    case LLM_PART_THINKING:
        v = event_json(w, b->redacted ? "redacted_thinking" : "thinking");
        if (!b->redacted) {
            llm_set_str(w->arena, v, "thinking", buf_str(&b->text));
        }
        llm_set_str(w->arena, v, b->redacted ? "data" : "signature", buf_str(&b->signature));
        return v;
    case LLM_PART_OTHER:
        return other_body(w, b);
    case LLM_PART_TEXT:
    case LLM_PART_REFUSAL:
    case LLM_PART_MEDIA:
    case LLM_PART_RESULT:
        break;
    }
    return text_body(w, b);
}

int llm_anthropic_write_body(struct llm_write *w, struct json **ret, struct err *e)
{
    struct json *m = message_json(w);
    struct json *content = json_get(m, "content");
    for (size_t i = 0; i < w->answer.blocks.n; i++) {
        struct json *v = block_body(w, &w->answer.blocks.items[i]);
        if (v != NULL) {
            json_push(w->arena, content, v);
        }
    }
    put_stop(w, m);
    json_setc(w->arena, m, "usage", usage_json(w->arena, &w->answer.usage, true));
    *ret = m;
    return 0;
}
