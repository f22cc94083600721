/* SPDX-License-Identifier: MIT
 *
 * Chat Completions: events as a response, streamed or whole.
 */
#include "llm/chat_priv.h"

#include "wire/sse.h"

static const char *stop_word(const struct llm_answer *answer)
{
    switch (answer->stop) {
    case LLM_STOP_LENGTH:
        return "length";
    case LLM_STOP_TOOL:
        return "tool_calls";
    case LLM_STOP_REFUSAL: /* a refusal in words is the message's own member */
        return llm_answer_has(answer, LLM_PART_REFUSAL) ? "stop" : "content_filter";
    case LLM_STOP_END:
    case LLM_STOP_SEQUENCE:
    case LLM_STOP_PAUSE:
    case LLM_STOP_OTHER:
    case LLM_STOP_MAX:
        break;
    }
    return "stop";
}

/* --- a stream --- */

/* NULL if nothing is known: better not said than a zero that somebody meters. */
static struct json *usage_json(struct arena *a, const struct llm_usage *u)
{
    struct json *v = json_object(a);
    if (u->input < 0 && u->output < 0) {
        return NULL;
    }
    struct llm_usage prompt = *u;
    prompt.output = 0;
    int64_t output = u->output < 0 ? 0 : u->output;
    int64_t input = llm_usage_total(&prompt);
    llm_set_int(a, v, "prompt_tokens", input);
    llm_set_int(a, v, "completion_tokens", output);
    llm_set_int(a, v, "total_tokens", llm_usage_total(u));
    if (u->cache_read >= 0 || u->cache_write >= 0) {
        struct json *d = llm_set_object(a, v, "prompt_tokens_details");
        llm_set_int(a, d, "cached_tokens", u->cache_read < 0 ? 0 : u->cache_read);
        if (u->cache_write >= 0) {
            llm_set_int(a, d, "cache_write_tokens", u->cache_write);
        }
    }
    if (u->reasoning >= 0) {
        llm_set_int(a, llm_set_object(a, v, "completion_tokens_details"), "reasoning_tokens",
                    u->reasoning);
    }
    return v;
}

static struct json *head(struct llm_write *w, const char *object)
{
    struct arena *a = w->arena;
    struct json *v = json_object(a);
    if (w->answer.id.len == 0) {
        w->answer.id = llm_make_id(w, "chatcmpl-");
    }
    llm_set_str(a, v, "id", w->answer.id);
    llm_set_cstr(a, v, "object", object);
    llm_set_int(a, v, "created", w->opts.created);
    llm_set_str(a, v, "model", w->answer.model);
    return v;
}

static int chunk(struct llm_write *w, struct json *delta, const char *finish, struct err *e)
{
    struct arena *a = w->arena;
    struct json *v = head(w, "chat.completion.chunk");
    struct json *choice = json_object(a);
    json_push(a, llm_set_array(a, v, "choices"), choice);
    llm_set_int(a, choice, "index", 0);
    json_setc(a, choice, "delta", delta);
    llm_set_cstr(a, choice, "finish_reason", finish);
    return llm_write_sse(w, NULL, v, e);
}

static int text_chunk(struct llm_write *w, const char *key, struct str text, struct err *e)
{
    struct json *d = json_object(w->arena);
    llm_set_str(w->arena, d, key, text);
    return chunk(w, d, NULL, e);
}

static size_t call_index(struct llm_write *w, uint32_t block)
{
    struct llm_chat_writer *s = w->state;
    size_t i = 0;
    while (i < s->calls.n && s->calls.items[i] != block) {
        i++;
    }
    return i;
}

static struct json *call_json(struct llm_write *w, struct str id, struct str name, bool custom,
                              struct str text)
{
    const char *key = custom ? "custom" : "function";
    struct json *v = json_object(w->arena);
    llm_set_str(w->arena, v, "id", id.len > 0 ? id : llm_make_id(w, "call_"));
    llm_set_cstr(w->arena, v, "type", key);
    struct json *f = llm_set_object(w->arena, v, key);
    llm_set_str(w->arena, f, "name", name);
    llm_set_str(w->arena, f, custom ? "input" : "arguments", text);
    return v;
}

static int call_chunk(struct llm_write *w, struct json *call, size_t index, struct err *e)
{
    struct json *d = json_object(w->arena);
    llm_set_int(w->arena, call, "index", (int64_t)index);
    json_push(w->arena, llm_set_array(w->arena, d, "tool_calls"), call);
    return chunk(w, d, NULL, e);
}

static int call_begin(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    struct llm_chat_writer *s = w->state;
    *LLM_ADD(w->memory, &s->calls) = ev->block;
    return call_chunk(w, call_json(w, ev->id, ev->name, ev->custom, STR_EMPTY), s->calls.n - 1, e);
}

static int call_data(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    const struct llm_chat_writer *s = w->state;
    const struct llm_block *b = llm_block_find(w, ev->block);
    size_t index = call_index(w, ev->block);
    if (index == s->calls.n || b == NULL) {
        return 0;
    }
    struct json *call = json_object(w->arena);
    struct json *f = llm_set_object(w->arena, call, b->custom ? "custom" : "function");
    llm_set_str(w->arena, f, b->custom ? "input" : "arguments", ev->text);
    return call_chunk(w, call, index, e);
}

static int write_start(struct llm_write *w, struct err *e)
{
    struct json *d = json_object(w->arena);
    llm_set_cstr(w->arena, d, "role", "assistant");
    llm_set_cstr(w->arena, d, "content", "");
    return chunk(w, d, NULL, e);
}

static int write_stop(struct llm_write *w, struct err *e)
{
    struct llm_chat_writer *s = w->state;
    if (s->stopped) {
        return 0;
    }
    s->stopped = true;
    return chunk(w, json_object(w->arena), stop_word(&w->answer), e);
}

static int write_end(struct llm_write *w, struct err *e)
{
    int r = write_stop(w, e);
    struct json *usage = usage_json(w->arena, &w->answer.usage);
    if (r == 0 && w->opts.include_usage && usage != NULL) {
        struct json *v = head(w, "chat.completion.chunk");
        (void)llm_set_array(w->arena, v, "choices");
        json_setc(w->arena, v, "usage", usage);
        r = llm_write_sse(w, NULL, v, e);
    }
    return r < 0 ? r : sse_write(STR_EMPTY, STR("[DONE]"), w->out, e);
}

int llm_chat_write_event(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    switch (ev->kind) {
    case LLM_EV_START:
        return write_start(w, e);
    case LLM_EV_TEXT:
        return text_chunk(w, "content", ev->text, e);
    case LLM_EV_THINKING:
        return text_chunk(w, "reasoning_content", ev->text, e);
    case LLM_EV_REFUSAL:
        return text_chunk(w, "refusal", ev->text, e);
    case LLM_EV_SIGNATURE:
        llm_lost(w->opts.losses, STR("answer: signature"), "chat has no place for it");
        return 0;
    case LLM_EV_CALL_BEGIN:
        return call_begin(w, ev, e);
    case LLM_EV_CALL_DATA:
        return call_data(w, ev, e);
    case LLM_EV_STOP:
        return write_stop(w, e);
    case LLM_EV_END:
        return write_end(w, e);
    case LLM_EV_ERROR:
        return llm_write_sse(w, NULL, llm_openai_error_body(w->arena, &ev->error), e);
    case LLM_EV_PING:
        return buf_append(w->out, STR(": ping\n\n"), e);
    case LLM_EV_USAGE:
    case LLM_EV_CALL_END:
    case LLM_EV_OTHER:
        break;
    }
    return 0;
}

/* --- a whole body --- */

struct texts {
    struct buf content, thinking, refusal;
    struct json *calls;
};

static void add_block(struct llm_write *w, const struct llm_block *b, struct texts *t)
{
    struct str text = buf_str(&b->text);
    switch (b->kind) {
    case LLM_PART_TEXT:
        buf_add(&t->content, text);
        break;
    case LLM_PART_THINKING:
        buf_add(&t->thinking, text);
        break;
    case LLM_PART_REFUSAL:
        buf_add(&t->refusal, text);
        break;
    case LLM_PART_CALL:
        json_push(w->arena, t->calls, call_json(w, b->id, b->name, b->custom, text));
        break;
    case LLM_PART_MEDIA:
    case LLM_PART_RESULT:
    case LLM_PART_OTHER:
        break;
    }
    if (b->signature.len > 0) {
        llm_lost(w->opts.losses, STR("answer: signature"), "chat has no place for it");
    }
}

static struct json *message_json(struct llm_write *w, const struct texts *t)
{
    struct arena *a = w->arena;
    struct json *m = json_object(a);
    bool words = t->content.len > 0 || (json_len(t->calls) == 0 && t->refusal.len == 0);
    llm_set_cstr(a, m, "role", "assistant");
    json_setc(a, m, "content", words ? json_string(a, buf_str(&t->content)) : NULL);
    json_setc(a, m, "refusal", t->refusal.len > 0 ? json_string(a, buf_str(&t->refusal)) : NULL);
    llm_put_str(a, m, "reasoning_content", buf_str(&t->thinking));
    llm_put(a, m, "tool_calls", json_len(t->calls) > 0 ? t->calls : NULL);
    return m;
}

int llm_chat_write_body(struct llm_write *w, struct json **ret, struct err *e)
{
    struct arena *a = w->arena;
    /* No larger than the answer, which the shell bounds. */
    struct texts t = {
        .content = BUF_INIT(SIZE_MAX / 2),
        .thinking = BUF_INIT(SIZE_MAX / 2),
        .refusal = BUF_INIT(SIZE_MAX / 2),
        .calls = json_array(a),
    };
    for (size_t i = 0; i < w->answer.blocks.n; i++) {
        add_block(w, &w->answer.blocks.items[i], &t);
    }
    struct json *v = head(w, "chat.completion");
    struct json *choice = json_object(a);
    json_push(a, llm_set_array(a, v, "choices"), choice);
    llm_set_int(a, choice, "index", 0);
    json_setc(a, choice, "message", message_json(w, &t));
    json_setc(a, choice, "logprobs", json_null(a));
    llm_set_cstr(a, choice, "finish_reason", stop_word(&w->answer));
    llm_put(a, v, "usage", usage_json(a, &w->answer.usage));
    buf_done(&t.content);
    buf_done(&t.thinking);
    buf_done(&t.refusal);
    *ret = v;
    return 0;
}
