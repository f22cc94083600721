/* SPDX-License-Identifier: MIT
 *
 * Gemini answers, both ways. Every chunk of a stream has the shape of a whole answer and brings
 * further parts; there is no mark of the end but the end, and a reason to stop before it. A stream
 * is SSE (?alt=sse) or, without that, one JSON list of chunks.
 */
#include "llm/gemini_priv.h"

static struct str text_of(const struct json *v, const char *key)
{
    return json_str(json_get(v, key), STR_EMPTY);
}

static const struct {
    const char *word;
    enum llm_stop stop;
} reasons[] = {
    { "STOP", LLM_STOP_END },
    { "MAX_TOKENS", LLM_STOP_LENGTH },
    { "SAFETY", LLM_STOP_REFUSAL },
    { "RECITATION", LLM_STOP_REFUSAL },
    { "BLOCKLIST", LLM_STOP_REFUSAL },
    { "PROHIBITED_CONTENT", LLM_STOP_REFUSAL },
    { "SPII", LLM_STOP_REFUSAL },
    { "IMAGE_SAFETY", LLM_STOP_REFUSAL },
    { "IMAGE_PROHIBITED_CONTENT", LLM_STOP_REFUSAL },
    { "IMAGE_RECITATION", LLM_STOP_REFUSAL },
    { "LANGUAGE", LLM_STOP_OTHER },
    { "OTHER", LLM_STOP_OTHER },
    { "MALFORMED_FUNCTION_CALL", LLM_STOP_OTHER },
    { "UNEXPECTED_TOOL_CALL", LLM_STOP_OTHER },
    { "TOO_MANY_TOOL_CALLS", LLM_STOP_OTHER },
};

/* --- reading --- */

static void begin_text(struct llm_read *rd, bool thought)
{
    struct gemini_reading *s = rd->state;
    if (!s->open || s->thought != thought) {
        s->open = true;
        s->thought = thought;
        s->block = rd->blocks++;
    }
}

static void read_text(struct llm_read *rd, const struct json *part)
{
    struct gemini_reading *s = rd->state;
    struct str text = text_of(part, "text");
    bool thought = json_bool(json_get(part, "thought"), false);
    bool signed_part = text_of(part, "thoughtSignature").len > 0;
    if (text.len == 0 && !signed_part) {
        return;
    }
    begin_text(rd, thought);
    if (text.len > 0) {
        llm_emit_text(rd, thought ? LLM_EV_THINKING : LLM_EV_TEXT, s->block, text);
    }
}

static void read_call(struct llm_read *rd, const struct json *call)
{
    struct gemini_reading *s = rd->state;
    const struct json *args = json_get(call, "args");
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    s->calls = true;
    s->open = false;
    s->block = rd->blocks++;
    llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_CALL_BEGIN,
                                       .block = s->block,
                                       .id = text_of(call, "id"),
                                       .name = text_of(call, "name") });
    if (!json_is(args, JSON_OBJECT) || json_write(args, JSON_COMPACT, &text, NULL) < 0) {
        buf_reset(&text);
        buf_adds(&text, "{}");
    }
    llm_emit_text(rd, LLM_EV_CALL_DATA, s->block, buf_str(&text));
}

static void read_part(struct llm_read *rd, const struct json *part)
{
    struct gemini_reading *s = rd->state;
    const struct json *call = json_get(part, "functionCall");
    if (!json_is(part, JSON_OBJECT) || json_len(part) == 0) {
        return;
    }
    if (json_is(call, JSON_OBJECT)) {
        read_call(rd, call);
    } else if (json_is(json_get(part, "text"), JSON_STRING)) {
        read_text(rd, part);
    } else if (json_len(part) == 1 && json_get(part, "thoughtSignature") != NULL) {
        begin_text(rd, s->open && s->thought);
    } else {
        s->open = false;
        llm_emit(rd, &(struct llm_event) {
                         .kind = LLM_EV_OTHER,
                         .block = rd->blocks++,
                         .format = LLM_GEMINI,
                         .raw = part,
                     });
        return;
    }
    struct str signature = text_of(part, "thoughtSignature");
    if (signature.len > 0) {
        llm_emit(rd, &(struct llm_event) {
                         .kind = LLM_EV_SIGNATURE,
                         .block = s->block,
                         .text = signature,
                         .of_content = call != NULL || !s->thought,
                     });
    }
    if (call != NULL) {
        llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_CALL_END, .block = s->block });
    }
}

/* Gemini 3 and later charge each query, the models before it each response with any. */
static int64_t count_searches(const struct json *response)
{
    const struct json *candidate = json_item(json_get(response, "candidates"), 0);
    const struct json *queries =
        json_pointer(candidate, STR("/groundingMetadata/webSearchQueries"));
    struct str model = text_of(response, "modelVersion");
    bool each = !str_starts(model, STR("gemini-2")) && !str_starts(model, STR("gemini-1"));
    int64_t n = json_is(queries, JSON_ARRAY) ? (int64_t)json_len(queries) : -1;
    return n > 1 && !each ? 1 : n;
}

/* promptTokenCount includes what came from the cache; what tools brought in is counted apart, and
 * so are thoughts beside the candidates. */
static void read_usage(struct llm_read *rd, const struct json *response)
{
    struct llm_usage u = LLM_USAGE_NONE;
    const struct json *v = json_get(response, "usageMetadata");
    u.searches = count_searches(response);
    int64_t prompt = json_int(json_get(v, "promptTokenCount"), -1);
    int64_t tools = json_int(json_get(v, "toolUsePromptTokenCount"), 0);
    int64_t words = json_int(json_get(v, "candidatesTokenCount"), -1);
    u.cache_read = json_int(json_get(v, "cachedContentTokenCount"), -1);
    u.reasoning = json_int(json_get(v, "thoughtsTokenCount"), -1);
    if (prompt >= 0) {
        u.input = prompt > u.cache_read && u.cache_read > 0 ? prompt - u.cache_read : prompt;
        u.input = u.cache_read >= prompt && u.cache_read > 0 ? 0 : u.input;
        u.input += tools > 0 && tools < INT32_MAX ? tools : 0;
    }
    if (words >= 0 || u.reasoning >= 0) {
        bool sane = u.reasoning > 0 && u.reasoning < INT64_MAX / 2 && words < INT64_MAX / 2;
        u.output = (words > 0 ? words : 0) + (sane ? u.reasoning : 0);
    }
    llm_emit_usage(rd, &u);
}

static void read_reason(struct llm_read *rd, struct str word)
{
    struct gemini_reading *s = rd->state;
    enum llm_stop stop = LLM_STOP_OTHER;
    if (word.len == 0 || str_eqc(word, "FINISH_REASON_UNSPECIFIED")) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (str_eqc(word, reasons[i].word)) {
            stop = reasons[i].stop;
        }
    }
    if (stop == LLM_STOP_END && s->calls) {
        stop = LLM_STOP_TOOL;
    }
    s->finished = true;
    bool own_word = stop == LLM_STOP_REFUSAL || stop == LLM_STOP_OTHER;
    llm_emit_stop(rd, stop, own_word ? word : STR_EMPTY);
}

static void read_failure(struct llm_read *rd, const struct json *chunk)
{
    struct llm_event ev = {
        .kind = LLM_EV_ERROR,
        .error = { .kind = LLM_ERR_SERVER, .message = STR("the provider failed") },
    };
    gemini_error_read(chunk, &ev.error);
    llm_emit(rd, &ev);
}

static void read_chunk(struct llm_read *rd, const struct json *v)
{
    struct gemini_reading *s = rd->state;
    if (json_is(json_get(v, "error"), JSON_OBJECT)) {
        read_failure(rd, v);
        return;
    }
    llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_START,
                                       .id = text_of(v, "responseId"),
                                       .model = text_of(v, "modelVersion") });
    const struct json *candidate = json_item(json_get(v, "candidates"), 0);
    const struct json *parts = json_pointer(candidate, STR("/content/parts"));
    for (size_t i = 0; json_is(parts, JSON_ARRAY) && i < json_len(parts); i++) {
        read_part(rd, json_item(parts, i));
    }
    read_usage(rd, v);
    read_reason(rd, text_of(candidate, "finishReason"));
    struct str blocked = text_of(json_get(v, "promptFeedback"), "blockReason");
    if (candidate == NULL && blocked.len > 0) {
        s->finished = true;
        llm_emit_stop(rd, LLM_STOP_REFUSAL, blocked);
    }
}

int gemini_read_event(struct llm_read *rd, struct str name, struct str data, struct err *e)
{
    struct json *v = NULL;
    (void)name;
    int r = llm_read_json(rd, data, &v, e);
    if (r == 0) {
        read_chunk(rd, v);
    }
    return r;
}

/* One answer, or the list that a stream without SSE is. */
int gemini_read_body(struct llm_read *rd, const struct json *body, struct err *e)
{
    bool list = json_is(body, JSON_ARRAY);
    for (size_t i = 0; i < (list ? json_len(body) : 1); i++) {
        const struct json *v = list ? json_item(body, i) : body;
        if (json_get(v, "candidates") == NULL && json_get(v, "error") == NULL &&
            json_get(v, "promptFeedback") == NULL && json_get(v, "usageMetadata") == NULL) {
            return ERR(e, ERR_PROTO, "an answer without candidates");
        }
        read_chunk(rd, v);
    }
    gemini_read_end(rd);
    return 0;
}

void gemini_read_end(struct llm_read *rd)
{
    const struct gemini_reading *s = rd->state;
    if (s->finished) {
        llm_emit_end(rd);
    }
}

/* Usage stands in nearly every chunk, and the last one is not known before it came. */
bool gemini_tap_wants(struct str name, struct str data)
{
    (void)name;
    return llm_may_hide_names(data) || str_find(data, STR("usageMetadata")) < data.len ||
           str_find(data, STR("functionCall")) < data.len ||
           str_find(data, STR("finishReason")) < data.len ||
           str_find(data, STR("blockReason")) < data.len ||
           str_find(data, STR("\"error\"")) < data.len;
}

/* --- writing --- */

static struct str response_id(struct llm_write *w)
{
    struct gemini_writing *s = w->state;
    if (s->id.len == 0) {
        s->id = w->answer.id.len > 0 ? w->answer.id : llm_make_id(w, "");
    }
    return s->id;
}

static const char *reason_of(const struct llm_answer *answer)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) { /* this format's own word, if it is one */
        if (reasons[i].stop == answer->stop && str_eqc(answer->stop_text, reasons[i].word)) {
            return reasons[i].word;
        }
    }
    switch (answer->stop) {
    case LLM_STOP_LENGTH:
        return "MAX_TOKENS";
    case LLM_STOP_REFUSAL:
        return "SAFETY";
    case LLM_STOP_PAUSE:
    case LLM_STOP_OTHER:
        return "OTHER";
    case LLM_STOP_END:
    case LLM_STOP_TOOL:
    case LLM_STOP_SEQUENCE:
    case LLM_STOP_MAX:
        break;
    }
    return "STOP";
}

static int64_t positive(int64_t n)
{
    return n > 0 ? n : 0;
}

static void put_usage(struct llm_write *w, struct json *v)
{
    const struct llm_usage *u = &w->answer.usage;
    struct arena *a = w->arena;
    if (u->input < 0 && u->output < 0) {
        return;
    }
    struct llm_usage prompt = *u;
    prompt.output = 0;
    struct json *usage = llm_set_object(a, v, "usageMetadata");
    llm_set_int(a, usage, "promptTokenCount", llm_usage_total(&prompt));
    llm_set_int(a, usage, "candidatesTokenCount",
                positive(positive(u->output) - positive(u->reasoning)));
    if (u->reasoning >= 0) {
        llm_set_int(a, usage, "thoughtsTokenCount", u->reasoning);
    }
    if (u->cache_read >= 0) {
        llm_set_int(a, usage, "cachedContentTokenCount", u->cache_read);
    }
    llm_set_int(a, usage, "totalTokenCount", llm_usage_total(u));
}

/* A chunk with one candidate; returns its list of parts. */
static struct json *make_chunk(struct llm_write *w, struct json **ret_parts)
{
    struct arena *a = w->arena;
    struct json *v = json_object(a);
    struct json *candidate = json_object(a);
    json_push(a, llm_set_array(a, v, "candidates"), candidate);
    struct json *content = llm_set_object(a, candidate, "content");
    *ret_parts = llm_set_array(a, content, "parts");
    llm_set_cstr(a, content, "role", "model");
    llm_set_int(a, candidate, "index", 0);
    llm_put_str(a, v, "modelVersion", w->answer.model);
    llm_set_str(a, v, "responseId", response_id(w));
    return v;
}

static struct json *call_part(struct llm_write *w, const struct llm_block *b)
{
    struct arena *a = w->arena;
    struct json *v = json_object(a);
    struct json *call = llm_set_object(a, v, "functionCall");
    struct llm_call c = { .custom = b->custom };
    llm_call_set_text(a, &c, buf_str(&b->text));
    llm_put_str(a, call, "id", b->id);
    llm_set_str(a, call, "name", b->name);
    llm_put(a, call, "args", llm_call_input(a, &c));
    llm_put_str(a, v, "thoughtSignature", buf_str(&b->signature));
    return v;
}

static struct json *text_part(struct llm_write *w, enum llm_part_kind kind, struct str text)
{
    struct json *v = json_object(w->arena);
    llm_set_str(w->arena, v, "text", text);
    if (kind == LLM_PART_THINKING) {
        llm_set_bool(w->arena, v, "thought", true);
    }
    return v;
}

static void finish_chunk(struct llm_write *w, struct json *v)
{
    struct json *candidate = json_item(json_get(v, "candidates"), 0);
    llm_set_cstr(w->arena, candidate, "finishReason", reason_of(&w->answer));
    put_usage(w, v);
}

int gemini_write_body(struct llm_write *w, struct json **ret, struct err *e)
{
    struct json *parts;
    (void)e;
    *ret = make_chunk(w, &parts);
    for (size_t i = 0; i < w->answer.blocks.n; i++) {
        const struct llm_block *b = &w->answer.blocks.items[i];
        for (size_t j = 0; j < b->raw.n; j++) {
            json_push(w->arena, parts, json_copy(w->arena, b->raw.items[j]));
        }
        if (b->kind == LLM_PART_CALL) {
            json_push(w->arena, parts, call_part(w, b));
        } else if (b->kind != LLM_PART_OTHER) {
            struct json *v = text_part(w, b->kind, buf_str(&b->text));
            llm_put_str(w->arena, v, "thoughtSignature", buf_str(&b->signature));
            json_push(w->arena, parts, v);
        }
    }
    finish_chunk(w, *ret);
    return 0;
}

static int send_chunk(struct llm_write *w, const struct json *v, struct err *e)
{
    struct gemini_writing *s = w->state;
    if (!w->opts.list) {
        return llm_write_sse(w, NULL, v, e);
    }
    int r = buf_append(w->out, s->begun ? STR("\n,\n") : STR("["), e);
    s->begun = true;
    return r < 0 ? r : json_write(v, JSON_COMPACT, w->out, e);
}

static int end_list(struct llm_write *w, struct err *e)
{
    return w->opts.list ? buf_append(w->out, STR("]\n"), e) : 0;
}

static int send_part(struct llm_write *w, struct json *part, struct err *e)
{
    struct json *parts;
    struct json *v = make_chunk(w, &parts);
    json_push(w->arena, parts, part);
    return send_chunk(w, v, e);
}

static int write_signature(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    const struct llm_block *b = llm_block_find(w, ev->block);
    if (b != NULL && b->kind == LLM_PART_CALL) {
        return 0; /* it goes with the call */
    }
    struct json *v = text_part(w, b == NULL ? LLM_PART_TEXT : b->kind, STR_EMPTY);
    llm_set_str(w->arena, v, "thoughtSignature", ev->text);
    return send_part(w, v, e);
}

static int write_end(struct llm_write *w, struct err *e)
{
    struct json *parts;
    struct json *v = make_chunk(w, &parts);
    json_push(w->arena, parts, text_part(w, LLM_PART_TEXT, STR_EMPTY));
    finish_chunk(w, v);
    int r = send_chunk(w, v, e);
    return r < 0 ? r : end_list(w, e);
}

/* A call is told whole: its arguments are an object here. */
static int write_call(struct llm_write *w, uint32_t block, struct err *e)
{
    const struct llm_block *b = llm_block_find(w, block);
    return b == NULL ? 0 : send_part(w, call_part(w, b), e);
}

static int write_error(struct llm_write *w, const struct llm_error *error, struct err *e)
{
    struct llm_error full = *error;
    full.status = full.status == 0 ? llm_error_status(full.kind) : full.status;
    int r = send_chunk(w, gemini_error_write(w->arena, &full), e);
    return r < 0 ? r : end_list(w, e);
}

int gemini_write_event(struct llm_write *w, const struct llm_event *ev, struct err *e)
{
    switch (ev->kind) {
    case LLM_EV_TEXT:
    case LLM_EV_REFUSAL:
        return send_part(w, text_part(w, LLM_PART_TEXT, ev->text), e);
    case LLM_EV_THINKING:
        return send_part(w, text_part(w, LLM_PART_THINKING, ev->text), e);
    case LLM_EV_SIGNATURE:
        return write_signature(w, ev, e);
    case LLM_EV_CALL_END:
        return write_call(w, ev->block, e);
    case LLM_EV_OTHER:
        return send_part(w, json_copy(w->arena, ev->raw), e);
    case LLM_EV_ERROR:
        return write_error(w, &ev->error, e);
    case LLM_EV_END:
        return write_end(w, e);
    case LLM_EV_START:
    case LLM_EV_CALL_BEGIN:
    case LLM_EV_CALL_DATA:
    case LLM_EV_USAGE:
    case LLM_EV_STOP:
    case LLM_EV_PING:
        break;
    }
    return 0;
}
