/* SPDX-License-Identifier: MIT
 *
 * Events as a Responses answer. Every block is an item of its own: a text is a message with one
 * content, a thought a reasoning item with one summary. A stream tells each item three times, as it
 * opens, as it grows and as it is, and all of them once more at the end: clients rely on any of it.
 */
#include "llm/responses_priv.h"
#include "llm/store.h"

/* --- items --- */

static const char *id_prefix(const struct llm_block *b)
{
    switch (b->kind) {
    case LLM_PART_THINKING:
        return "rs_";
    case LLM_PART_CALL:
        return b->custom ? "ctc_" : "fc_";
    case LLM_PART_TEXT:
    case LLM_PART_MEDIA:
    case LLM_PART_RESULT:
    case LLM_PART_REFUSAL:
    case LLM_PART_OTHER:
        break;
    }
    return "msg_";
}

/* The items of all blocks that have begun; a new one is given its id. */
static struct responses_item *sync_items(struct llm_write *w, uint32_t number)
{
    struct responses_writing *s = w->state;
    struct responses_item *found = NULL;
    for (size_t i = s->items.n; i < w->answer.blocks.n; i++) {
        struct llm_block *b = &w->answer.blocks.items[i];
        struct responses_item *item = LLM_ADD(w->memory, &s->items);
        item->block = b->number;
        bool own = b->kind == LLM_PART_THINKING && b->id.len > 0;
        item->id = own ? b->id : llm_make_id(w, id_prefix(b));
        if (b->kind == LLM_PART_CALL && b->id.len == 0) {
            b->id = llm_make_id(w, "call_");
        }
    }
    for (size_t i = 0; i < s->items.n; i++) {
        found = s->items.items[i].block == number ? &s->items.items[i] : found;
    }
    return found;
}

static struct json *text_part(struct arena *a, const struct llm_block *b, struct str text)
{
    struct json *v = json_object(a);
    if (b->kind == LLM_PART_REFUSAL) {
        llm_set_cstr(a, v, "type", "refusal");
        llm_set_str(a, v, "refusal", text);
        return v;
    }
    bool thought = b->kind == LLM_PART_THINKING;
    llm_set_cstr(a, v, "type", thought ? "summary_text" : "output_text");
    llm_set_str(a, v, "text", text);
    if (!thought) {
        (void)llm_set_array(a, v, "annotations");
        (void)llm_set_array(a, v, "logprobs");
    }
    return v;
}

/* The item as it is when it opens (`status` "in_progress", nothing in it) or as it is now. */
static struct json *item_json(struct arena *a, const struct llm_block *b,
                              const struct responses_item *item, const char *status)
{
    bool full = strcmp(status, "in_progress") != 0;
    struct str text = full ? buf_str(&b->text) : STR_EMPTY;
    struct json *v = json_object(a);
    llm_set_str(a, v, "id", item->id);
    if (b->kind == LLM_PART_CALL) {
        llm_set_cstr(a, v, "type", b->custom ? "custom_tool_call" : "function_call");
        llm_set_cstr(a, v, "status", status);
        llm_set_str(a, v, "call_id", b->id);
        llm_set_str(a, v, "name", b->name);
        llm_put_str(a, v, "namespace", b->ns);
        bool nothing = full && !b->custom && text.len == 0;
        llm_set_str(a, v, b->custom ? "input" : "arguments", nothing ? STR("{}") : text);
        return v;
    }
    if (b->kind == LLM_PART_THINKING) {
        llm_set_cstr(a, v, "type", "reasoning");
        struct json *summary = llm_set_array(a, v, "summary");
        if (text.len > 0) {
            json_push(a, summary, text_part(a, b, text));
        }
        if (full) {
            llm_put_str(a, v, "encrypted_content", buf_str(&b->signature));
        }
        return v;
    }
    llm_set_cstr(a, v, "type", "message");
    llm_set_cstr(a, v, "status", status);
    llm_set_cstr(a, v, "role", "assistant");
    struct json *content = llm_set_array(a, v, "content");
    if (full) {
        json_push(a, content, text_part(a, b, text));
    }
    return v;
}

/* --- the response --- */

static int64_t sum(int64_t a, int64_t b)
{
    a = a > 0 ? a : 0;
    b = b > 0 ? b : 0;
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static struct json *usage_json(struct arena *a, const struct llm_usage *u)
{
    struct json *v = json_object(a);
    int64_t input = sum(sum(u->input, u->cache_read), u->cache_write);
    llm_set_int(a, v, "input_tokens", input);
    struct json *in = llm_set_object(a, v, "input_tokens_details");
    llm_set_int(a, in, "cached_tokens", sum(u->cache_read, 0));
    if (u->cache_write > 0) {
        llm_set_int(a, in, "cache_write_tokens", u->cache_write);
    }
    llm_set_int(a, v, "output_tokens", sum(u->output, 0));
    struct json *out = llm_set_object(a, v, "output_tokens_details");
    llm_set_int(a, out, "reasoning_tokens", sum(u->reasoning, 0));
    llm_set_int(a, v, "total_tokens", llm_usage_total(u));
    return v;
}

static bool is_complete(const struct llm_answer *answer)
{
    return answer->stop != LLM_STOP_LENGTH &&
           (answer->stop != LLM_STOP_REFUSAL || llm_answer_has(answer, LLM_PART_REFUSAL));
}

static struct str incomplete_reason(const struct llm_answer *answer)
{
    return answer->stop == LLM_STOP_LENGTH ? STR("max_output_tokens") : STR("content_filter");
}

/* A client that lets the provider store responses refers to their items by id. */
static void store_item(struct llm_write *w, struct str id, const struct json *item)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT * 2);
    const struct llm_request *r = w->opts.request;
    if (w->opts.store != NULL && r != NULL && json_bool(json_get(r->extra, "store"), true) &&
        json_write(item, JSON_COMPACT, &text, NULL) == 0) {
        llm_store_put(w->opts.store, str_of(arena_printf(w->arena, "item:%.*s", STR_ARG(id))),
                      buf_str(&text));
    }
}

static void add_output(struct llm_write *w, struct json *output)
{
    struct responses_writing *s = w->state;
    (void)sync_items(w, 0);
    for (size_t i = 0; i < w->answer.blocks.n; i++) {
        struct llm_block *b = &w->answer.blocks.items[i];
        bool cut = w->answer.stop == LLM_STOP_LENGTH && i + 1 == w->answer.blocks.n;
        for (size_t j = 0; j < b->raw.n; j++) {
            json_push(w->arena, output, json_copy(w->arena, b->raw.items[j]));
        }
        if (b->kind != LLM_PART_OTHER) {
            const char *status = cut ? "incomplete" : "completed";
            struct json *item = item_json(w->arena, b, &s->items.items[i], status);
            json_push(w->arena, output, item);
            store_item(w, s->items.items[i].id, item);
        }
    }
}

/* What the client asked for in short; SDKs read some of these without looking whether they are
 * there. */
static void add_echo(struct arena *a, struct json *v)
{
    static const char *const nothing[] = { "instructions", "max_output_tokens",
                                           "previous_response_id", "temperature", "top_p" };
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
        json_setc(a, v, nothing[i], json_null(a));
    }
    (void)llm_set_object(a, v, "metadata");
    llm_set_bool(a, v, "parallel_tool_calls", true);
    llm_set_bool(a, v, "store", false);
    llm_set_cstr(a, v, "tool_choice", "auto");
    (void)llm_set_array(a, v, "tools");
    struct json *format = llm_set_object(a, llm_set_object(a, v, "text"), "format");
    llm_set_cstr(a, format, "type", "text");
}

static struct json *response_json(struct llm_write *w, const char *status)
{
    struct responses_writing *s = w->state;
    struct arena *a = w->arena;
    const struct llm_answer *answer = &w->answer;
    struct json *v = json_object(a);
    if (s->id.len == 0) {
        s->id = answer->id.len > 0 ? answer->id : llm_make_id(w, "resp_");
    }
    llm_set_str(a, v, "id", s->id);
    llm_set_cstr(a, v, "object", "response");
    llm_set_int(a, v, "created_at", w->opts.created);
    llm_set_cstr(a, v, "status", status);
    json_setc(a, v, "error", json_null(a));
    json_setc(a, v, "incomplete_details", json_null(a));
    llm_set_str(a, v, "model", answer->model);
    struct json *output = llm_set_array(a, v, "output");
    add_echo(a, v);
    json_setc(a, v, "usage", json_null(a));
    if (strcmp(status, "in_progress") == 0) {
        return v;
    }
    add_output(w, output);
    if (strcmp(status, "incomplete") == 0) {
        struct json *details = llm_set_object(a, v, "incomplete_details");
        llm_set_str(a, details, "reason", incomplete_reason(answer));
    }
    if (answer->usage.input >= 0 || answer->usage.output >= 0) {
        json_setc(a, v, "usage", usage_json(a, &answer->usage));
    }
    return v;
}

int responses_write_body(struct llm_write *w, struct json **ret, struct err *e)
{
    (void)e;
    *ret = response_json(w, is_complete(&w->answer) ? "completed" : "incomplete");
    return 0;
}

/* --- the stream --- */

static int send_frame(struct llm_write *w, const char *type, struct json *v, struct err *e)
{
    struct responses_writing *s = w->state;
    llm_set_cstr(w->arena, v, "type", type);
    llm_set_int(w->arena, v, "sequence_number", s->sequence++);
    return llm_write_sse(w, type, v, e);
}

static int send_response(struct llm_write *w, const char *type, struct json *response,
                         struct err *e)
{
    struct json *v = json_object(w->arena);
    json_setc(w->arena, v, "response", response);
    return send_frame(w, type, v, e);
}

static int64_t index_of(struct llm_write *w, const struct responses_item *item)
{
    struct responses_writing *s = w->state;
    return item - s->items.items;
}

static struct json *item_frame(struct llm_write *w, const struct responses_item *item)
{
    struct json *v = json_object(w->arena);
    llm_set_str(w->arena, v, "item_id", item->id);
    llm_set_int(w->arena, v, "output_index", index_of(w, item));
    return v;
}

/* The frame of a piece inside of the item: a content or a part of the summary. */
static struct json *part_frame(struct llm_write *w, const struct llm_block *b,
                               const struct responses_item *item)
{
    struct json *v = item_frame(w, item);
    llm_set_int(w->arena, v, b->kind == LLM_PART_THINKING ? "summary_index" : "content_index", 0);
    return v;
}

static int send_item(struct llm_write *w, const char *type, const struct responses_item *item,
                     struct json *value, struct err *e)
{
    struct json *v = json_object(w->arena);
    llm_set_int(w->arena, v, "output_index", index_of(w, item));
    json_setc(w->arena, v, "item", value);
    return send_frame(w, type, v, e);
}

/* Names of the events that a kind of block needs. */
struct names {
    const char *part_added, *delta, *done, *part_done, *full;
};

static const struct names *names_of(const struct llm_block *b)
{
    static const struct names text = { "response.content_part.added", "response.output_text.delta",
                                       "response.output_text.done", "response.content_part.done",
                                       "text" };
    static const struct names refusal = { "response.content_part.added", "response.refusal.delta",
                                          "response.refusal.done", "response.content_part.done",
                                          "refusal" };
    static const struct names thought = { "response.reasoning_summary_part.added",
                                          "response.reasoning_summary_text.delta",
                                          "response.reasoning_summary_text.done",
                                          "response.reasoning_summary_part.done", "text" };
    static const struct names call = { NULL, "response.function_call_arguments.delta",
                                       "response.function_call_arguments.done", NULL, "arguments" };
    static const struct names custom = { NULL, "response.custom_tool_call_input.delta",
                                         "response.custom_tool_call_input.done", NULL, "input" };
    if (b->kind == LLM_PART_CALL) {
        return b->custom ? &custom : &call;
    }
    return b->kind == LLM_PART_THINKING ? &thought : b->kind == LLM_PART_REFUSAL ? &refusal : &text;
}

static int open_item(struct llm_write *w, const struct llm_block *b, struct responses_item *item,
                     struct err *e)
{
    item->open = true;
    return send_item(w, "response.output_item.added", item,
                     item_json(w->arena, b, item, "in_progress"), e);
}

static int send_delta(struct llm_write *w, const struct llm_block *b, struct responses_item *item,
                      struct str delta, struct err *e)
{
    const struct names *n = names_of(b);
    if (!item->part && n->part_added != NULL) {
        struct json *v = part_frame(w, b, item);
        json_setc(w->arena, v, "part", text_part(w->arena, b, STR_EMPTY));
        int r = send_frame(w, n->part_added, v, e);
        if (r < 0) {
            return r;
        }
    }
    item->part = true;
    struct json *v = b->kind == LLM_PART_CALL ? item_frame(w, item) : part_frame(w, b, item);
    llm_set_str(w->arena, v, "delta", delta);
    if (b->kind == LLM_PART_TEXT) {
        (void)llm_set_array(w->arena, v, "logprobs");
    }
    return send_frame(w, n->delta, v, e);
}

/* The whole of what the deltas said, in the words of the piece and of its part. */
static int close_part(struct llm_write *w, const struct llm_block *b,
                      const struct responses_item *item, struct err *e)
{
    const struct names *n = names_of(b);
    bool call = b->kind == LLM_PART_CALL;
    struct json *v = call ? item_frame(w, item) : part_frame(w, b, item);
    struct str text = buf_str(&b->text);
    bool nothing = call && !b->custom && text.len == 0;
    llm_set_str(w->arena, v, n->full, nothing ? STR("{}") : text);
    if (call && !b->custom) {
        llm_set_str(w->arena, v, "name", b->name);
    }
    if (b->kind == LLM_PART_TEXT) {
        (void)llm_set_array(w->arena, v, "logprobs");
    }
    int r = send_frame(w, n->done, v, e);
    if (r < 0 || n->part_done == NULL) {
        return r;
    }
    v = part_frame(w, b, item);
    json_setc(w->arena, v, "part", text_part(w->arena, b, text));
    return send_frame(w, n->part_done, v, e);
}

static int close_item(struct llm_write *w, const struct llm_block *b, struct responses_item *item,
                      const char *status, struct err *e)
{
    item->open = false;
    int r = item->part || b->kind == LLM_PART_CALL ? close_part(w, b, item, e) : 0;
    if (r < 0) {
        return r;
    }
    return send_item(w, "response.output_item.done", item, item_json(w->arena, b, item, status), e);
}

/* Texts and thoughts have no end of their own: what comes next ends them. */
static int close_before(struct llm_write *w, const struct responses_item *next, struct err *e)
{
    struct responses_writing *s = w->state;
    for (size_t i = 0; i < s->items.n; i++) {
        struct responses_item *item = &s->items.items[i];
        const struct llm_block *b = &w->answer.blocks.items[i];
        if (!item->open || item == next || (next != NULL && b->kind == LLM_PART_CALL)) {
            continue;
        }
        bool cut = next == NULL && w->answer.stop == LLM_STOP_LENGTH && i + 1 == s->items.n;
        int r = close_item(w, b, item, cut ? "incomplete" : "completed", e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int write_other(struct llm_write *w, const struct llm_event *ev,
                       const struct responses_item *item, struct err *e)
{
    struct json *raw = json_copy(w->arena, ev->raw);
    int r = send_item(w, "response.output_item.added", item, raw, e);
    return r < 0 ? r : send_item(w, "response.output_item.done", item, raw, e);
}

static int write_content(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    struct responses_item *item = sync_items(w, ev->block);
    const struct llm_block *b = llm_block_find(w, ev->block);
    if (item == NULL || b == NULL) {
        return ERR(e, ERR_BUG, "an event without its block");
    }
    if (ev->kind == LLM_EV_SIGNATURE && b->kind != LLM_PART_THINKING) {
        llm_lost(w->opts.losses, STR("answer: signature"), "responses signs its reasoning only");
        return 0;
    }
    int r = item->open ? 0 : close_before(w, item, e);
    if (r == 0 && ev->kind == LLM_EV_OTHER) {
        return write_other(w, ev, item, e);
    }
    if (r == 0 && !item->open && ev->kind != LLM_EV_CALL_END) {
        r = open_item(w, b, item, e);
    }
    if (r < 0 || ev->kind == LLM_EV_SIGNATURE || ev->kind == LLM_EV_CALL_BEGIN) {
        return r;
    }
    if (ev->kind == LLM_EV_CALL_END) {
        return item->open ? close_item(w, b, item, "completed", e) : 0;
    }
    return ev->text.len == 0 ? 0 : send_delta(w, b, item, ev->text, e);
}

static int write_failed(struct llm_write *w, const struct llm_error *error, struct err *e)
{
    struct json *response = response_json(w, "failed");
    const struct json *full = llm_openai_error(w->arena, error);
    struct str code = json_str(json_get(full, "code"), STR("invalid_prompt"));
    struct json *v = llm_set_object(w->arena, response, "error");
    llm_set_str(w->arena, v, "code", code);
    llm_set_str(w->arena, v, "message", error->message);
    return send_response(w, "response.failed", response, e);
}

static int write_start(struct llm_write *w, struct err *e)
{
    int r = send_response(w, "response.created", response_json(w, "in_progress"), e);
    return r < 0 ? r : send_response(w, "response.in_progress", response_json(w, "in_progress"), e);
}

static int write_end(struct llm_write *w, struct err *e)
{
    int r = close_before(w, NULL, e);
    if (r < 0) {
        return r;
    }
    bool complete = is_complete(&w->answer);
    return send_response(w, complete ? "response.completed" : "response.incomplete",
                         response_json(w, complete ? "completed" : "incomplete"), e);
}

int responses_write_event(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    switch (ev->kind) {
    case LLM_EV_START:
        return write_start(w, e);
    case LLM_EV_TEXT:
    case LLM_EV_THINKING:
    case LLM_EV_SIGNATURE:
    case LLM_EV_REFUSAL:
    case LLM_EV_CALL_BEGIN:
    case LLM_EV_CALL_DATA:
    case LLM_EV_CALL_END:
    case LLM_EV_OTHER:
        return write_content(w, ev, e);
    case LLM_EV_ERROR:
        return write_failed(w, &ev->error, e);
    case LLM_EV_END:
        return write_end(w, e);
    case LLM_EV_PING: /* an event, since clients count the time between two of them */
        return send_response(w, "response.in_progress", response_json(w, "in_progress"), e);
    case LLM_EV_USAGE:
    case LLM_EV_STOP:
        break;
    }
    return 0;
}
