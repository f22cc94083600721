/* SPDX-License-Identifier: MIT
 *
 * A Responses answer as events. Servers differ in how much of the event family they send: some give
 * every delta, some only the finished items, some only the last event with everything in it. So
 * each piece of content is followed by its place (output_index, content_index), and what a later,
 * fuller event brings is reported only if nothing came before.
 */
#include "llm/responses_priv.h"

/* Items beyond this are not followed: a stream that has them is none that a model made. */
enum { PIECES_MAX = 100000 };

/* Where a piece stands in its item: one of its contents, or the item as such. */
#define WHOLE_ITEM INT64_C(-1)

static struct responses_piece *find_piece(struct responses_reading *s, int64_t item,
                                          int64_t content)
{
    for (size_t i = s->pieces.n; i > 0; i--) { /* the newest is the likeliest */
        struct responses_piece *p = &s->pieces.items[i - 1];
        if (p->item == item && p->content == content) {
            return p;
        }
    }
    return NULL;
}

/* The piece, begun as a new block if it is not there; NULL beyond the limit. */
static struct responses_piece *get_piece(struct llm_read *rd, int64_t item, int64_t content)
{
    struct responses_reading *s = rd->state;
    struct responses_piece *p = find_piece(s, item, content);
    if (p == NULL && s->pieces.n < PIECES_MAX) {
        p = LLM_ADD(rd->memory, &s->pieces);
        *p = (struct responses_piece) { .item = item, .content = content, .block = rd->blocks++ };
    }
    return p;
}

static struct str text_of(const struct json *v, const char *key)
{
    return json_str(json_get(v, key), STR_EMPTY);
}

/* --- pieces --- */

static void say(struct llm_read *rd, struct responses_piece *p, enum llm_event_kind kind,
                struct str text)
{
    if (p == NULL || text.len == 0) {
        return;
    }
    struct responses_reading *s = rd->state;
    s->refused = s->refused || kind == LLM_EV_REFUSAL;
    p->said = true;
    llm_emit_text(rd, kind, p->block, text);
}

/* The whole of what deltas should have said. */
static void say_once(struct llm_read *rd, struct responses_piece *p, enum llm_event_kind kind,
                     struct str text)
{
    if (p != NULL && !p->said) {
        say(rd, p, kind, text);
    }
}

static void begin_call(struct llm_read *rd, struct responses_piece *p, const struct json *item)
{
    struct responses_reading *s = rd->state;
    if (p == NULL || p->call) {
        return;
    }
    p->call = true;
    p->custom = str_eqc(text_of(item, "type"), "custom_tool_call");
    s->calls = true;
    struct str id = text_of(item, "call_id");
    llm_emit(rd, &(struct llm_event) {
                     .kind = LLM_EV_CALL_BEGIN,
                     .block = p->block,
                     .id = id.len > 0 ? id : text_of(item, "id"),
                     .name = text_of(item, "name"),
                     .ns = text_of(item, "namespace"),
                     .custom = p->custom,
                 });
}

static void call_data(struct llm_read *rd, struct responses_piece *p, struct str text)
{
    if (p == NULL || !p->call || p->ended || text.len == 0) {
        return;
    }
    p->said = true;
    llm_emit(rd,
             &(struct llm_event) {
                 .kind = LLM_EV_CALL_DATA, .block = p->block, .text = text, .custom = p->custom });
}

static void end_call(struct llm_read *rd, struct responses_piece *p, const struct json *item)
{
    begin_call(rd, p, item);
    if (p == NULL || p->ended) {
        return;
    }
    if (!p->said) {
        call_data(rd, p, text_of(item, p->custom ? "input" : "arguments"));
    }
    p->ended = true;
    llm_emit(rd, &(struct llm_event) {
                     .kind = LLM_EV_CALL_END, .block = p->block, .custom = p->custom });
}

/* Parts of a summary are paragraphs of one thought. */
static void think(struct llm_read *rd, struct responses_piece *p, int64_t part, struct str id,
                  struct str text)
{
    if (p == NULL || text.len == 0) {
        return;
    }
    if (p->said && part != p->part) {
        say(rd, p, LLM_EV_THINKING, STR("\n\n"));
    }
    p->part = part;
    p->said = true;
    llm_emit(rd, &(struct llm_event) {
                     .kind = LLM_EV_THINKING, .block = p->block, .id = id, .text = text });
}

/* --- items that are complete --- */

static void end_message(struct llm_read *rd, const struct json *item, int64_t index)
{
    const struct json *content = json_get(item, "content");
    for (size_t i = 0; i < json_len(content) && json_is(content, JSON_ARRAY); i++) {
        const struct json *v = json_item(content, i);
        bool refusal = str_eqc(text_of(v, "type"), "refusal");
        struct str text = text_of(v, refusal ? "refusal" : "text");
        if (text.len > 0) {
            say_once(rd, get_piece(rd, index, (int64_t)i), refusal ? LLM_EV_REFUSAL : LLM_EV_TEXT,
                     text);
        }
    }
}

static void end_reasoning(struct llm_read *rd, const struct json *item, int64_t index)
{
    struct responses_reading *s = rd->state;
    struct responses_piece *p = find_piece(s, index, WHOLE_ITEM);
    bool said = p != NULL && p->said;
    const struct json *texts = json_get(item, "summary");
    if (json_len(texts) == 0) {
        texts = json_get(item, "content");
    }
    for (size_t i = 0; !said && i < json_len(texts) && json_is(texts, JSON_ARRAY); i++) {
        p = get_piece(rd, index, WHOLE_ITEM);
        think(rd, p, (int64_t)i, text_of(item, "id"), text_of(json_item(texts, i), "text"));
    }
    struct str signature = text_of(item, "encrypted_content");
    if (signature.len > 0) {
        p = get_piece(rd, index, WHOLE_ITEM);
    }
    if (signature.len > 0 && p != NULL && !p->ended) {
        p->ended = true;
        llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_SIGNATURE,
                                           .block = p->block,
                                           .text = signature,
                                           .id = text_of(item, "id"),
                                           .redacted = !p->said });
    }
}

static void end_item(struct llm_read *rd, const struct json *item, int64_t index)
{
    struct str type = text_of(item, "type");
    if (str_eqc(type, "message")) {
        end_message(rd, item, index);
    } else if (str_eqc(type, "reasoning")) {
        end_reasoning(rd, item, index);
    } else if (str_eqc(type, "function_call") || str_eqc(type, "custom_tool_call")) {
        end_call(rd, get_piece(rd, index, WHOLE_ITEM), item);
    } else if (type.len > 0 && find_piece(rd->state, index, WHOLE_ITEM) == NULL) {
        struct responses_piece *p = get_piece(rd, index, WHOLE_ITEM);
        if (p != NULL) {
            llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_OTHER,
                                               .block = p->block,
                                               .format = LLM_RESPONSES,
                                               .raw = item });
        }
    }
}

/* --- the response object --- */

static void start(struct llm_read *rd, const struct json *response)
{
    llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_START,
                                       .id = text_of(response, "id"),
                                       .model = text_of(response, "model") });
}

/* OpenAI has no count of them: each search is an item. Opening and searching a page is free. */
static int64_t count_searches(const struct json *output)
{
    int64_t n = -1;
    for (size_t i = 0; json_is(output, JSON_ARRAY) && i < json_len(output); i++) {
        const struct json *item = json_item(output, i);
        struct str action = json_str(json_pointer(item, STR("/action/type")), STR("search"));
        if (str_eqc(text_of(item, "type"), "web_search_call") && str_eqc(action, "search")) {
            n = n < 0 ? 1 : n + 1;
        }
    }
    return n;
}

/* input_tokens includes what came from the cache and what was written to it. */
static void usage(struct llm_read *rd, const struct json *response)
{
    const struct json *v = json_get(response, "usage");
    struct llm_usage u = LLM_USAGE_NONE;
    const struct json *in = json_get(v, "input_tokens_details");
    const struct json *out = json_get(v, "output_tokens_details");
    u.input = json_int(json_get(v, "input_tokens"), -1);
    u.output = json_int(json_get(v, "output_tokens"), -1);
    u.cache_read = json_int(json_get(in, "cached_tokens"), -1);
    u.cache_write = json_int(json_get(in, "cache_write_tokens"), -1);
    u.reasoning = json_int(json_get(out, "reasoning_tokens"), -1);
    u.searches = count_searches(json_get(response, "output"));
    int64_t cached =
        (u.cache_read > 0 ? u.cache_read : 0) + (u.cache_write > 0 ? u.cache_write : 0);
    if (u.input >= 0) {
        u.input = u.input > cached ? u.input - cached : 0;
    }
    llm_emit_usage(rd, &u);
}

static void stop(struct llm_read *rd, const struct json *response)
{
    struct responses_reading *s = rd->state;
    struct str why = json_str(json_pointer(response, STR("/incomplete_details/reason")), STR_EMPTY);
    if (!str_eqc(text_of(response, "status"), "incomplete")) {
        llm_emit_stop(rd,
                      s->calls     ? LLM_STOP_TOOL
                      : s->refused ? LLM_STOP_REFUSAL
                                   : LLM_STOP_END,
                      STR_EMPTY);
    } else if (why.len == 0 || str_eqc(why, "max_output_tokens")) {
        llm_emit_stop(rd, LLM_STOP_LENGTH, STR_EMPTY);
    } else {
        bool refused = str_eqc(why, "content_filter");
        llm_emit_stop(rd, refused ? LLM_STOP_REFUSAL : LLM_STOP_OTHER, why);
    }
}

static void fail(struct llm_read *rd, const struct json *error)
{
    struct llm_event ev = {
        .kind = LLM_EV_ERROR,
        .error = { .kind = LLM_ERR_SERVER, .message = STR("the response failed") },
    };
    llm_openai_error_read(error, &ev.error);
    llm_emit(rd, &ev);
}

/* The last event of a stream, and the only thing that a body has. */
static void finish(struct llm_read *rd, const struct json *response)
{
    const struct json *output = json_get(response, "output");
    const struct json *error = json_get(response, "error");
    struct str status = text_of(response, "status");
    struct responses_reading *s = rd->state;
    start(rd, response);
    /* After items of their own the list tells nothing new, and some servers number it anew. */
    bool first = s->pieces.n == 0;
    for (size_t i = 0; first && i < json_len(output) && json_is(output, JSON_ARRAY); i++) {
        end_item(rd, json_item(output, i), (int64_t)i);
    }
    usage(rd, response);
    if (json_is(error, JSON_OBJECT) || str_eqc(status, "failed") || str_eqc(status, "cancelled")) {
        fail(rd, error);
        return;
    }
    stop(rd, response);
    llm_emit_end(rd);
}

/* --- the stream --- */

struct frame {
    struct llm_read *rd;
    const struct json *data;
    int64_t item, content;
};

static struct responses_piece *piece_of(const struct frame *f)
{
    return get_piece(f->rd, f->item, f->content);
}

static struct responses_piece *item_of(const struct frame *f)
{
    return get_piece(f->rd, f->item, WHOLE_ITEM);
}

static void on_created(const struct frame *f)
{
    start(f->rd, json_get(f->data, "response"));
}

static void on_finished(const struct frame *f)
{
    finish(f->rd, json_get(f->data, "response"));
}

/* A failed response that does not say why it failed is a failure all the same. */
static void on_failed(const struct frame *f)
{
    const struct json *response = json_get(f->data, "response");
    start(f->rd, response);
    usage(f->rd, response);
    fail(f->rd, json_get(response, "error"));
}

static void on_error(const struct frame *f)
{
    const struct json *error = json_get(f->data, "error");
    fail(f->rd, json_is(error, JSON_OBJECT) ? error : f->data);
}

static void on_item_added(const struct frame *f)
{
    const struct json *item = json_get(f->data, "item");
    struct str type = text_of(item, "type");
    if (str_eqc(type, "function_call") || str_eqc(type, "custom_tool_call")) {
        begin_call(f->rd, item_of(f), item);
    }
}

static void on_item_done(const struct frame *f)
{
    end_item(f->rd, json_get(f->data, "item"), f->item);
}

static void on_text(const struct frame *f)
{
    say(f->rd, piece_of(f), LLM_EV_TEXT, text_of(f->data, "delta"));
}

static void on_text_done(const struct frame *f)
{
    if (text_of(f->data, "text").len > 0) {
        say_once(f->rd, piece_of(f), LLM_EV_TEXT, text_of(f->data, "text"));
    }
}

static void on_refusal(const struct frame *f)
{
    say(f->rd, piece_of(f), LLM_EV_REFUSAL, text_of(f->data, "delta"));
}

static void on_refusal_done(const struct frame *f)
{
    if (text_of(f->data, "refusal").len > 0) {
        say_once(f->rd, piece_of(f), LLM_EV_REFUSAL, text_of(f->data, "refusal"));
    }
}

static void on_input(const struct frame *f)
{
    call_data(f->rd, item_of(f), text_of(f->data, "delta"));
}

static void on_input_done(const struct frame *f)
{
    struct responses_piece *p = item_of(f);
    if (p != NULL && !p->said) {
        call_data(f->rd, p, text_of(f->data, p->custom ? "input" : "arguments"));
    }
}

static void on_thought(const struct frame *f)
{
    int64_t part = json_int(json_get(f->data, "summary_index"), f->content);
    think(f->rd, item_of(f), part, text_of(f->data, "item_id"), text_of(f->data, "delta"));
}

static void on_thought_done(const struct frame *f)
{
    struct responses_piece *p = item_of(f);
    int64_t part = json_int(json_get(f->data, "summary_index"), f->content);
    if (p != NULL && (!p->said || p->part != part)) {
        think(f->rd, p, part, text_of(f->data, "item_id"), text_of(f->data, "text"));
    }
}

static const struct {
    const char *type;
    void (*on)(const struct frame *f);
} handlers[] = {
    { "response.output_text.delta", on_text },
    { "response.function_call_arguments.delta", on_input },
    { "response.custom_tool_call_input.delta", on_input },
    { "response.reasoning_summary_text.delta", on_thought },
    { "response.reasoning_text.delta", on_thought },
    { "response.refusal.delta", on_refusal },
    { "response.output_text.done", on_text_done },
    { "response.function_call_arguments.done", on_input_done },
    { "response.custom_tool_call_input.done", on_input_done },
    { "response.reasoning_summary_text.done", on_thought_done },
    { "response.reasoning_text.done", on_thought_done },
    { "response.refusal.done", on_refusal_done },
    { "response.output_item.added", on_item_added },
    { "response.output_item.done", on_item_done },
    { "response.created", on_created },
    { "response.completed", on_finished },
    { "response.incomplete", on_finished },
    { "response.done", on_finished },
    { "response.failed", on_failed },
    { "response.cancelled", on_failed },
    { "error", on_error },
};

int responses_read_event(struct llm_read *rd, struct str name, struct str data, struct err *e)
{
    struct json *v = NULL;
    if (str_eqc(str_trim(data), "[DONE]")) { /* some servers say goodbye as Chat does */
        return 0;
    }
    int r = llm_read_json(rd, data, &v, e);
    if (r < 0) {
        return r;
    }
    struct str type = json_str(json_get(v, "type"), name);
    struct frame f = {
        .rd = rd,
        .data = v,
        .item = json_int(json_get(v, "output_index"), 0),
        .content = json_int(json_get(v, "content_index"), 0),
    };
    for (size_t i = 0; i < ARRAY_LEN(handlers); i++) {
        if (str_eqc(type, handlers[i].type)) {
            handlers[i].on(&f);
            return 0;
        }
    }
    if (type.len == 0 && json_is(json_get(v, "error"), JSON_OBJECT)) {
        on_error(&f);
    }
    return 0; /* parts that open and close, annotations, progress of hosted tools */
}

int responses_read_body(struct llm_read *rd, const struct json *body, struct err *e)
{
    const struct json *error = json_get(body, "error");
    if (!json_is(json_get(body, "output"), JSON_ARRAY) && !json_is(error, JSON_OBJECT)) {
        return ERR(e, ERR_PROTO, "a response without output");
    }
    if (json_get(body, "output") == NULL) {
        fail(rd, error);
        return 0;
    }
    finish(rd, body);
    return 0;
}

/* Deltas are most of a stream and never metered. */
bool responses_tap_wants(struct str name, struct str data)
{
    const struct str suffix = STR(".delta");
    struct str type = llm_type_at_front(data);
    (void)name; /* what the data say counts */
    return type.len < suffix.len ||
           !str_eq(str_slice(type, type.len - suffix.len, type.len), suffix);
}
