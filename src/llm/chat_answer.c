/* SPDX-License-Identifier: MIT
 *
 * Chat Completions: answers, as events out of the wire and back onto it. A stream holds one text,
 * one thought, one refusal and any number of calls, whose pieces carry an index. Only the first of
 * several choices is read.
 */
#include "llm/chat_priv.h"

#include "wire/sse.h"

/* --- words --- */

static const struct {
    enum llm_stop stop;
    const char *word;
} stops[] = {
    { LLM_STOP_END, "stop" },           { LLM_STOP_LENGTH, "length" },
    { LLM_STOP_TOOL, "tool_calls" },    { LLM_STOP_REFUSAL, "content_filter" },
    { LLM_STOP_TOOL, "function_call" }, { LLM_STOP_SEQUENCE, "stop" },
};

static void emit_stop(struct llm_read *rd, const struct json *reason)
{
    struct str word = json_str(reason, STR_EMPTY);
    if (word.len == 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(stops); i++) {
        if (str_eqc(word, stops[i].word)) {
            llm_emit_stop(rd, stops[i].stop, STR_EMPTY);
            return;
        }
    }
    llm_emit_stop(rd, LLM_STOP_OTHER, word);
}

static const char *stop_word(struct arena *a, const struct llm_answer *answer)
{
    for (size_t i = 0; i < ARRAY_LEN(stops); i++) {
        if (stops[i].stop == answer->stop) {
            return stops[i].word;
        }
    }
    bool named = answer->stop == LLM_STOP_OTHER && answer->stop_text.len > 0;
    return named ? arena_dup(a, answer->stop_text) : "stop";
}

/* prompt_tokens holds what came from a cache, too. */
static void emit_usage(struct llm_read *rd, const struct json *usage)
{
    const struct json *prompt = json_get(usage, "prompt_tokens_details");
    const struct json *output = json_get(usage, "completion_tokens_details");
    struct llm_usage u = LLM_USAGE_NONE;
    if (!json_is(usage, JSON_OBJECT)) {
        return;
    }
    u.cache_read = json_int(json_get(prompt, "cached_tokens"),
                            json_int(json_get(usage, "prompt_cache_hit_tokens"), -1));
    u.cache_write = json_int(json_get(prompt, "cache_write_tokens"), -1);
    u.output = json_int(json_get(usage, "completion_tokens"), -1);
    u.reasoning = json_int(json_get(output, "reasoning_tokens"), -1);
    u.input = json_int(json_get(usage, "prompt_tokens"), -1);
    int64_t cached = (u.cache_read > 0 ? u.cache_read : 0) +
                     (u.cache_write > 0 && u.cache_write < INT32_MAX ? u.cache_write : 0);
    if (u.input >= 0) {
        u.input = u.input > cached ? u.input - cached : 0;
    }
    llm_emit_usage(rd, &u);
}

/* --- reading --- */

static void read_error(struct llm_read *rd, const struct json *body)
{
    struct llm_event ev = { .kind = LLM_EV_ERROR, .error = { .kind = LLM_ERR_SERVER } };
    llm_openai_error_body_read(body, &ev.error);
    if (ev.error.status == 0) {
        ev.error.status = llm_error_status(ev.error.kind);
    }
    llm_emit(rd, &ev);
}

static bool is_error(const struct json *body)
{
    const struct json *error = json_get(body, "error");
    return json_is(error, JSON_OBJECT) || json_is(error, JSON_STRING);
}

static void emit_start(struct llm_read *rd, const struct json *v)
{
    struct llm_event ev = {
        .kind = LLM_EV_START,
        .id = json_str(json_get(v, "id"), STR_EMPTY),
        .model = json_str(json_get(v, "model"), STR_EMPTY),
    };
    llm_emit(rd, &ev);
}

static void emit_piece(struct llm_read *rd, enum llm_event_kind kind, const struct json *text,
                       bool *has, uint32_t *block)
{
    struct str s = json_str(text, STR_EMPTY);
    if (s.len == 0) {
        return;
    }
    if (!*has) {
        *has = true;
        *block = rd->blocks++;
    }
    llm_emit_text(rd, kind, *block, s);
}

/* The call that a piece belongs to, or NULL for a new one. Some servers send no index, others the
 * same one for every call: a new id is a new call. */
static struct llm_chat_call *find_call(struct llm_chat_reader *s, int64_t index, struct str id)
{
    for (size_t i = s->calls.n; i > 0; i--) {
        struct llm_chat_call *c = &s->calls.items[i - 1];
        if (index >= 0 && c->index != index) {
            continue;
        }
        return id.len > 0 && c->id.len > 0 && !str_eq(c->id, id) ? NULL : c;
    }
    return NULL;
}

static void read_call(struct llm_read *rd, const struct json *v, int64_t index)
{
    struct llm_chat_reader *s = rd->state;
    bool custom = json_is(json_get(v, "custom"), JSON_OBJECT);
    const struct json *f = json_get(v, custom ? "custom" : "function");
    struct str id = json_str(json_get(v, "id"), STR_EMPTY);
    struct llm_chat_call *c = find_call(s, index, id);
    if (c == NULL) {
        c = LLM_ADD(rd->memory, &s->calls);
        *c = (struct llm_chat_call) { .index = index, .block = rd->blocks++ };
        c->id = arena_str(rd->memory, id);
        struct llm_event ev = {
            .kind = LLM_EV_CALL_BEGIN,
            .block = c->block,
            .id = id,
            .name = json_str(json_get(f, "name"), STR_EMPTY),
            .custom = custom,
        };
        llm_emit(rd, &ev);
    }
    struct str text = json_str(json_get(f, custom ? "input" : "arguments"), STR_EMPTY);
    if (text.len > 0) {
        llm_emit(rd, &(struct llm_event) {
                         .kind = LLM_EV_CALL_DATA,
                         .block = c->block,
                         .text = text,
                         .custom = custom,
                     });
    }
}

/* The old way to call: one function, no id. */
static void read_function_call(struct llm_read *rd, const struct json *v)
{
    struct json *wrapper = json_object(rd->arena);
    if (json_is(v, JSON_OBJECT)) {
        json_setc(rd->arena, wrapper, "function", json_copy(rd->arena, v));
        read_call(rd, wrapper, INT64_MAX);
    }
}

/* `delta` of a chunk or `message` of a body: the members are the same. */
static void read_delta(struct llm_read *rd, const struct json *d, bool body)
{
    struct llm_chat_reader *s = rd->state;
    const struct json *thought = json_get(d, "reasoning_content");
    if (!json_is(thought, JSON_STRING)) {
        thought = json_get(d, "reasoning");
    }
    emit_piece(rd, LLM_EV_THINKING, thought, &s->has_thinking, &s->thinking);
    emit_piece(rd, LLM_EV_TEXT, json_get(d, "content"), &s->has_text, &s->text);
    emit_piece(rd, LLM_EV_REFUSAL, json_get(d, "refusal"), &s->has_refusal, &s->refusal);
    const struct json *calls = json_get(d, "tool_calls");
    for (size_t i = 0; json_is(calls, JSON_ARRAY) && i < json_len(calls); i++) {
        const struct json *call = json_item(calls, i);
        int64_t index = body ? (int64_t)i : json_int(json_get(call, "index"), -1);
        read_call(rd, call, index < 0 ? -1 : index);
    }
    read_function_call(rd, json_get(d, "function_call"));
}

static const struct json *first_choice(const struct json *v)
{
    const struct json *choices = json_get(v, "choices");
    for (size_t i = 0; json_is(choices, JSON_ARRAY) && i < json_len(choices); i++) {
        if (json_int(json_get(json_item(choices, i), "index"), 0) == 0) {
            return json_item(choices, i);
        }
    }
    return NULL;
}

int llm_chat_read_event(struct llm_read *rd, struct str name, struct str data, struct err *e)
{
    struct json *v = NULL;
    if (str_eqc(str_trim(data), "[DONE]")) {
        llm_emit_end(rd);
        return 0;
    }
    int r = llm_read_json(rd, data, &v, e);
    if (r < 0) {
        return r;
    }
    if (is_error(v) || str_eqc(name, "error")) {
        read_error(rd, v);
        return 0;
    }
    emit_start(rd, v);
    const struct json *choice = first_choice(v);
    read_delta(rd, json_get(choice, "delta"), false);
    emit_usage(rd, json_get(v, "usage"));
    emit_stop(rd, json_get(choice, "finish_reason"));
    return 0;
}

int llm_chat_read_body(struct llm_read *rd, const struct json *body, struct err *e)
{
    if (is_error(body)) {
        read_error(rd, body);
        return 0;
    }
    const struct json *choice = first_choice(body);
    if (choice == NULL) {
        return ERR(e, ERR_PROTO, "the answer is no chat completion: it has no 'choices'");
    }
    emit_start(rd, body);
    read_delta(rd, json_get(choice, "message"), true);
    emit_usage(rd, json_get(body, "usage"));
    emit_stop(rd, json_get(choice, "finish_reason"));
    llm_emit_end(rd);
    return 0;
}

/* Some servers close after the last chunk and leave [DONE] out. */
void llm_chat_read_end(struct llm_read *rd)
{
    if (rd->has_stop) {
        llm_emit_end(rd);
    }
}

/* The first chunk names the model, later ones are wanted for what they carry. Null members are
 * common, so a bare mention is not enough. */
static bool mentions(struct str data, const char *key, char value)
{
    struct str needle = str_of(key);
    struct str rest = data;
    for (;;) {
        size_t at = str_find(rest, needle);
        if (at == rest.len) {
            return false;
        }
        rest = str_slice(rest, at + needle.len, rest.len);
        size_t i = 0;
        while (i < rest.len && (rest.ptr[i] == ':' || (unsigned char)rest.ptr[i] <= ' ')) {
            i++;
        }
        if (i < rest.len && rest.ptr[i] == value) {
            return true;
        }
    }
}

bool llm_chat_tap_wants(struct str name, struct str data)
{
    return name.len > 0 || llm_may_hide_names(data) || mentions(data, "\"usage\"", '{') ||
           mentions(data, "\"finish_reason\"", '"') || mentions(data, "\"error\"", '{') ||
           mentions(data, "\"error\"", '"') || mentions(data, "\"name\"", '"') ||
           mentions(data, "\"role\"", '"') || str_find(data, STR("[DONE]")) < data.len;
}

/* --- writing --- */

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
    return chunk(w, json_object(w->arena), stop_word(w->arena, &w->answer), e);
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
    llm_set_cstr(a, choice, "finish_reason", stop_word(a, &w->answer));
    llm_put(a, v, "usage", usage_json(a, &w->answer.usage));
    buf_done(&t.content);
    buf_done(&t.thinking);
    buf_done(&t.refusal);
    *ret = v;
    return 0;
}
