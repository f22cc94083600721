/* SPDX-License-Identifier: MIT
 *
 * Chat Completions: responses as the many compatible servers send them, as events. A response holds
 * one text, one thought, one refusal and any number of calls, whose pieces carry an index. Only the
 * first of several choices is read.
 *
 * Servers differ in all of this, so the reader
 *   - gathers a call until it is complete and reports it in one piece: indices may repeat or be
 *     absent, ids and names may be repeated or empty, arguments may be an object. A call that was
 *     cut off by the output limit is not reported
 *   - takes text and thoughts from a string, a list of parts, `reasoning`, `reasoning_details`, or
 *     <think> tags at the start of the content
 *   - maps every finish reason that it knows, whatever its case; others are LLM_STOP_OTHER
 */
#include <ctype.h>

#include "llm/chat_priv.h"

#define CALLS_BYTES_MAX ((size_t)32 << 20) /* arguments held for one response */
#define PING_BYTES      1024               /* held arguments between two signs of life */

/* --- words --- */

static const struct {
    const char *word;
    enum llm_stop stop;
} reasons[] = {
    { "stop", LLM_STOP_END },
    { "eos", LLM_STOP_END },
    { "eos_token", LLM_STOP_END },
    { "end", LLM_STOP_END },
    { "end_turn", LLM_STOP_END },
    { "complete", LLM_STOP_END },
    { "completed", LLM_STOP_END },
    { "length", LLM_STOP_LENGTH },
    { "max_tokens", LLM_STOP_LENGTH },
    { "max_length", LLM_STOP_LENGTH },
    { "max_output_tokens", LLM_STOP_LENGTH },
    { "model_length", LLM_STOP_LENGTH },
    { "tool_calls", LLM_STOP_TOOL },
    { "tool_call", LLM_STOP_TOOL },
    { "tool_use", LLM_STOP_TOOL },
    { "function_call", LLM_STOP_TOOL },
    { "content_filter", LLM_STOP_REFUSAL },
    { "refusal", LLM_STOP_REFUSAL },
    { "safety", LLM_STOP_REFUSAL },
    { "sensitive", LLM_STOP_REFUSAL },
    { "recitation", LLM_STOP_REFUSAL },
    { "stop_sequence", LLM_STOP_SEQUENCE },
};

/* Words for a response that the server could not finish. */
static const char *const failures[] = { "error", "network_error", "insufficient_system_resource",
                                        NULL };

static bool same_word(struct str s, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i < n && i < s.len; i++) {
        if (tolower((unsigned char)s.ptr[i]) != word[i]) {
            return false;
        }
    }
    return s.len == n;
}

static enum llm_stop stop_of(struct str word)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (same_word(word, reasons[i].word)) {
            return reasons[i].stop;
        }
    }
    return LLM_STOP_OTHER;
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
    /* OpenRouter; Perplexity */
    u.searches = json_int(json_get(json_get(usage, "server_tool_use"), "web_search_requests"),
                          json_int(json_get(usage, "num_search_queries"), -1));
    int64_t cached = (u.cache_read > 0 ? u.cache_read : 0) +
                     (u.cache_write > 0 && u.cache_write < INT32_MAX ? u.cache_write : 0);
    if (u.input >= 0) {
        u.input = u.input > cached ? u.input - cached : 0;
    }
    llm_emit_usage(rd, &u);
}

/* --- errors --- */

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

/* Some servers open with a chunk that names nothing (Azure: the results of its prompt filter). */
static void emit_start(struct llm_read *rd, const struct json *v)
{
    struct llm_event ev = {
        .kind = LLM_EV_START,
        .id = json_str(json_get(v, "id"), STR_EMPTY),
        .model = json_str(json_get(v, "model"), STR_EMPTY),
    };
    if (ev.id.len > 0 || ev.model.len > 0 || json_len(json_get(v, "choices")) > 0) {
        llm_emit(rd, &ev);
    }
}

/* --- text and thoughts --- */

static void emit_text(struct llm_read *rd, struct str text)
{
    struct llm_chat_reader *s = rd->state;
    if (text.len == 0) {
        return;
    }
    if (!s->has_text) {
        s->has_text = true;
        s->text = rd->blocks++;
    }
    llm_emit_text(rd, LLM_EV_TEXT, s->text, text);
}

static uint32_t thinking_block(struct llm_read *rd)
{
    struct llm_chat_reader *s = rd->state;
    if (!s->has_thinking) {
        s->has_thinking = true;
        s->thinking = rd->blocks++;
    }
    return s->thinking;
}

static void emit_thinking(struct llm_read *rd, struct str text)
{
    if (text.len > 0) {
        llm_emit_text(rd, LLM_EV_THINKING, thinking_block(rd), text);
    }
}

static void emit_refusal(struct llm_read *rd, struct str text)
{
    struct llm_chat_reader *s = rd->state;
    if (text.len == 0) {
        return;
    }
    if (!s->has_refusal) {
        s->has_refusal = true;
        s->refusal = rd->blocks++;
    }
    llm_emit_text(rd, LLM_EV_REFUSAL, s->refusal, text);
}

#define OPEN_TAG  STR("<think>")
#define CLOSE_TAG STR("</think>")

static struct str skip_space(struct str s)
{
    size_t i = 0;
    while (i < s.len && isspace((unsigned char)s.ptr[i])) {
        i++;
    }
    return str_slice(s, i, s.len);
}

/* How many bytes at the end may be the beginning of the tag. */
static size_t partial_tag(struct str s, struct str tag)
{
    for (size_t n = tag.len - 1; n > 0; n--) {
        if (n <= s.len && str_ends(s, str_slice(tag, 0, n))) {
            return n;
        }
    }
    return 0;
}

static void hold_text(struct llm_chat_reader *s, struct str text)
{
    memcpy(s->held, text.ptr, text.len);
    s->n_held = text.len;
}

static struct str with_held(struct llm_read *rd, struct str text)
{
    struct llm_chat_reader *s = rd->state;
    if (s->n_held == 0) {
        return text;
    }
    char *all = arena_alloc(rd->arena, s->n_held + text.len);
    memcpy(all, s->held, s->n_held);
    memcpy(all + s->n_held, text.ptr, text.len);
    struct str joined = str_n(all, s->n_held + text.len);
    s->n_held = 0;
    return joined;
}

/* The beginning of the content: returns what follows an opening tag; empty while undecided. */
static struct str look_for_tag(struct llm_read *rd, struct str text)
{
    struct llm_chat_reader *s = rd->state;
    struct str rest = skip_space(text);
    if (!s->has_thinking && str_starts(rest, OPEN_TAG)) {
        s->tag = CHAT_TAG_INSIDE;
        return str_slice(rest, OPEN_TAG.len, rest.len);
    }
    if (!s->has_thinking && text.len < sizeof s->held && str_starts(OPEN_TAG, rest)) {
        hold_text(s, text);
        return STR_EMPTY;
    }
    s->tag = CHAT_TAG_OVER;
    return text;
}

/* Inside of the tags: reports the thought and returns what follows it. */
static struct str read_tagged(struct llm_read *rd, struct str text)
{
    struct llm_chat_reader *s = rd->state;
    size_t at = str_find(text, CLOSE_TAG);
    if (at < text.len) {
        emit_thinking(rd, str_slice(text, 0, at));
        s->tag = CHAT_TAG_CLOSED;
        return str_slice(text, at + CLOSE_TAG.len, text.len);
    }
    size_t keep = partial_tag(text, CLOSE_TAG);
    emit_thinking(rd, str_slice(text, 0, text.len - keep));
    hold_text(s, str_slice(text, text.len - keep, text.len));
    return STR_EMPTY;
}

static void read_content_text(struct llm_read *rd, struct str text)
{
    struct llm_chat_reader *s = rd->state;
    if (text.len > 0 && s->tag != CHAT_TAG_OVER) {
        text = with_held(rd, text);
    }
    if (text.len > 0 && s->tag == CHAT_TAG_UNDECIDED) {
        text = look_for_tag(rd, text);
    }
    if (text.len > 0 && s->tag == CHAT_TAG_INSIDE) {
        text = read_tagged(rd, text);
    }
    if (text.len > 0 && s->tag == CHAT_TAG_CLOSED) {
        text = skip_space(text);
        s->tag = text.len > 0 ? CHAT_TAG_OVER : CHAT_TAG_CLOSED;
    }
    emit_text(rd, s->tag == CHAT_TAG_OVER ? text : STR_EMPTY);
}

/* No more text follows: what looked like the beginning of a tag is none. */
static void flush_text(struct llm_read *rd)
{
    struct llm_chat_reader *s = rd->state;
    struct str held = str_n(s->held, s->n_held);
    s->n_held = 0;
    if (s->tag == CHAT_TAG_INSIDE) {
        emit_thinking(rd, held);
    } else {
        s->tag = CHAT_TAG_OVER;
        emit_text(rd, held);
    }
}

/* A part of a list; Mistral's thoughts are lists of parts themselves. */
static void read_part(struct llm_read *rd, const struct json *part)
{
    struct str type = json_str(json_get(part, "type"), STR_EMPTY);
    const struct json *thought = json_get(part, "thinking");
    if (json_is(thought, JSON_ARRAY)) {
        for (size_t i = 0; i < json_len(thought); i++) {
            emit_thinking(rd, json_str(json_get(json_item(thought, i), "text"), STR_EMPTY));
        }
    } else if (json_is(thought, JSON_STRING)) {
        emit_thinking(rd, thought->string);
    } else if (str_eqc(type, "refusal")) {
        emit_refusal(rd, json_str(json_get(part, "refusal"), STR_EMPTY));
    } else if (str_eqc(type, "reasoning")) {
        emit_thinking(rd, json_str(json_get(part, "text"), STR_EMPTY));
    } else {
        read_content_text(rd, json_str(json_get(part, "text"), STR_EMPTY));
    }
}

static void read_content(struct llm_read *rd, const struct json *content)
{
    if (json_is(content, JSON_OBJECT)) {
        read_part(rd, content);
        return;
    }
    for (size_t i = 0; json_is(content, JSON_ARRAY) && i < json_len(content); i++) {
        const struct json *part = json_item(content, i);
        if (json_is(part, JSON_STRING)) {
            read_content_text(rd, part->string);
        } else {
            read_part(rd, part);
        }
    }
    read_content_text(rd, json_str(content, STR_EMPTY));
}

/* A signature is kept as the detail it stood in, without its text: the server wants it back so. */
static void emit_signature(struct llm_read *rd, const struct json *detail, bool encrypted)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct json *bare = json_copy(rd->arena, detail);
    (void)json_remove(bare, STR("text"));
    if (json_write(bare, JSON_COMPACT, &text, NULL) < 0) {
        return;
    }
    llm_emit(rd, &(struct llm_event) {
                     .kind = LLM_EV_SIGNATURE,
                     .block = encrypted ? rd->blocks++ : thinking_block(rd),
                     .id = json_str(json_get(detail, "id"), STR_EMPTY),
                     .text = buf_str(&text),
                     .redacted = encrypted,
                 });
}

/* OpenRouter's list; its words repeat those of `reasoning` where both are there. */
static void read_details(struct llm_read *rd, const struct json *list, bool words)
{
    for (size_t i = 0; json_is(list, JSON_ARRAY) && i < json_len(list); i++) {
        const struct json *d = json_item(list, i);
        bool encrypted = json_str(json_get(d, "data"), STR_EMPTY).len > 0;
        if (words) {
            emit_thinking(rd, json_str(json_get(d, "text"), STR_EMPTY));
            emit_thinking(rd, json_str(json_get(d, "summary"), STR_EMPTY));
        }
        if (encrypted || json_str(json_get(d, "signature"), STR_EMPTY).len > 0) {
            emit_signature(rd, d, encrypted);
        }
    }
}

static void read_thoughts(struct llm_read *rd, const struct json *d)
{
    struct str text = json_str(json_get(d, "reasoning_content"), STR_EMPTY);
    text = text.len > 0 ? text : json_str(json_get(d, "reasoning"), STR_EMPTY);
    emit_thinking(rd, text);
    read_details(rd, json_get(d, "reasoning_details"), text.len == 0);
}

/* --- calls --- */

/* Follows the brackets of JSON text that comes in pieces. */
static void scan_json(struct llm_chat_call *c, struct str text)
{
    for (size_t i = 0; i < text.len && !c->complete; i++) {
        char b = text.ptr[i];
        if (c->escape) {
            c->escape = false;
        } else if (c->in_string) {
            c->escape = b == '\\';
            c->in_string = b != '"';
        } else if (b == '"') {
            c->in_string = true;
        } else if (b == '{' || b == '[') {
            c->depth++;
        } else if ((b == '}' || b == ']') && c->depth > 0) {
            c->depth--;
            c->complete = c->depth == 0;
        }
    }
}

static void hold_arguments(struct llm_read *rd, struct llm_chat_call *c, struct str text)
{
    struct llm_chat_reader *s = rd->state;
    if (text.len == 0 || rd->tapping) {
        return;
    }
    if (c->complete && str_eqc(str_n(c->text, c->len), "{}")) { /* a placeholder for what follows */
        c->len = 0;
        c->complete = false;
    }
    if (text.len > CALLS_BYTES_MAX - s->bytes) {
        s->overflow = true;
        return;
    }
    s->bytes += text.len;
    if (c->cap - c->len < text.len) {
        size_t cap = c->cap * 2 > c->len + text.len ? c->cap * 2 : c->len + text.len + 64;
        char *grown = arena_alloc(rd->memory, cap);
        if (c->len > 0) {
            memcpy(grown, c->text, c->len);
        }
        c->text = grown;
        c->cap = cap;
    }
    memcpy(c->text + c->len, text.ptr, text.len);
    c->len += text.len;
    scan_json(c, text);
    if (s->bytes - s->pinged > PING_BYTES) {
        s->pinged = s->bytes;
        llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_PING });
    }
}

static void begin_call(struct llm_read *rd, const struct llm_chat_call *c)
{
    llm_emit(rd, &(struct llm_event) {
                     .kind = LLM_EV_CALL_BEGIN,
                     .block = c->block,
                     .id = c->id,
                     .name = c->name,
                     .custom = c->custom,
                 });
}

static void deliver_call(struct llm_read *rd, struct llm_chat_call *c)
{
    c->delivered = true;
    if (rd->tapping) {
        return; /* its name was reported when it began */
    }
    flush_text(rd);
    begin_call(rd, c);
    if (c->len > 0) {
        llm_emit(rd, &(struct llm_event) {
                         .kind = LLM_EV_CALL_DATA,
                         .block = c->block,
                         .text = str_n(c->text, c->len),
                         .custom = c->custom,
                     });
    }
    llm_emit(rd, &(struct llm_event) {
                     .kind = LLM_EV_CALL_END, .block = c->block, .custom = c->custom });
}

/* Calls in the order in which they began. Before the end those that are complete; at the end all
 * of them, unless the output limit `cut` them. */
static void deliver_calls(struct llm_read *rd, bool end, bool cut)
{
    struct llm_chat_reader *s = rd->state;
    for (size_t i = 0; i < s->calls.n; i++) {
        struct llm_chat_call *c = &s->calls.items[i];
        if (c->delivered) {
            continue;
        }
        if (!end && !c->complete) {
            return;
        }
        bool last = i + 1 == s->calls.n;
        if (cut && (c->custom ? last : !c->complete)) {
            c->delivered = true;
            continue;
        }
        deliver_call(rd, c);
    }
}

static bool is_id_used(const struct llm_chat_reader *s, struct str id)
{
    for (size_t i = 0; id.len > 0 && i < s->calls.n; i++) {
        if (str_eq(s->calls.items[i].id, id)) {
            return true;
        }
    }
    return false;
}

/* A piece of a call as the wire has it. */
struct piece {
    int64_t index; /* -1: none */
    bool custom;
    bool sibling; /* an earlier entry of the same list has begun a call */
    struct str id, name, text;
};

/* Does the piece begin another call, although it has the same index or none? */
static bool begins_another(const struct llm_chat_call *c, const struct piece *p)
{
    if (p->id.len > 0 && c->id.len > 0 && !str_eq(p->id, c->id)) {
        return true;
    }
    if (p->name.len == 0 || c->name.len == 0) {
        return false;
    }
    if (p->index < 0 && p->sibling && !(p->id.len > 0 && str_eq(p->id, c->id))) {
        return true;
    }
    /* Without ids: a name after arguments that are complete, or another name. */
    bool more = str_trim(p->text).len > 0;
    return (c->complete && more) || (c->len > 0 && !str_eq(p->name, c->name));
}

static struct llm_chat_call *find_call(struct llm_chat_reader *s, const struct piece *p)
{
    for (size_t i = s->calls.n; i > 0; i--) {
        struct llm_chat_call *c = &s->calls.items[i - 1];
        if (p->index < 0 || c->index == p->index) {
            return begins_another(c, p) ? NULL : c;
        }
    }
    return NULL;
}

static void read_piece(struct llm_read *rd, const struct piece *p)
{
    struct llm_chat_reader *s = rd->state;
    struct llm_chat_call *c = find_call(s, p);
    if (c == NULL) {
        deliver_calls(rd, false, false);
        struct str id = is_id_used(s, p->id) ? STR_EMPTY : arena_str(rd->memory, p->id);
        c = LLM_ADD(rd->memory, &s->calls);
        *c = (struct llm_chat_call) {
            .index = p->index, .block = rd->blocks++, .custom = p->custom, .id = id
        };
        c->name = arena_str(rd->memory, p->name);
        if (rd->tapping) {
            begin_call(rd, c);
        }
    }
    if (c->name.len == 0 && p->name.len > 0) {
        c->name = arena_str(rd->memory, p->name);
    }
    if (c->id.len == 0 && p->id.len > 0 && !is_id_used(s, p->id)) {
        c->id = arena_str(rd->memory, p->id);
    }
    if (!c->delivered) {
        hold_arguments(rd, c, p->text);
    }
}

/* Arguments are JSON text; some servers send the object itself. */
static struct str arguments_of(struct llm_read *rd, const struct json *v)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (!json_is(v, JSON_OBJECT) || rd->tapping) {
        return json_str(v, STR_EMPTY);
    }
    return json_write(v, JSON_COMPACT, &text, NULL) < 0 ? STR_EMPTY
                                                        : arena_str(rd->arena, buf_str(&text));
}

static void read_calls(struct llm_read *rd, const struct json *calls, bool body)
{
    struct llm_chat_reader *s = rd->state;
    size_t before = s->calls.n;
    for (size_t i = 0; json_is(calls, JSON_ARRAY) && i < json_len(calls); i++) {
        const struct json *v = json_item(calls, i);
        bool custom = json_is(json_get(v, "custom"), JSON_OBJECT);
        const struct json *f = json_get(v, custom ? "custom" : "function");
        int64_t index = body ? (int64_t)i : json_int(json_get(v, "index"), -1);
        read_piece(rd, &(struct piece) {
                           .index = index < 0 ? -1 : index,
                           .custom = custom,
                           .sibling = s->calls.n > before,
                           .id = json_str(json_get(v, "id"), STR_EMPTY),
                           .name = json_str(json_get(f, "name"), STR_EMPTY),
                           .text = arguments_of(rd, json_get(f, custom ? "input" : "arguments")),
                       });
    }
}

/* The old way to call: one function, no id. */
static void read_function_call(struct llm_read *rd, const struct json *v)
{
    if (json_is(v, JSON_OBJECT)) {
        read_piece(rd, &(struct piece) {
                           .index = INT64_MAX,
                           .id = STR_EMPTY,
                           .name = json_str(json_get(v, "name"), STR_EMPTY),
                           .text = arguments_of(rd, json_get(v, "arguments")),
                       });
    }
}

/* --- a response --- */

/* Nothing more follows but usage. */
static void finish_content(struct llm_read *rd, bool cut)
{
    flush_text(rd);
    deliver_calls(rd, true, cut);
}

static void emit_stop(struct llm_read *rd, const struct json *reason)
{
    struct llm_chat_reader *s = rd->state;
    struct str word = json_str(reason, STR_EMPTY);
    if (word.len == 0) {
        return;
    }
    for (size_t i = 0; failures[i] != NULL; i++) {
        if (same_word(word, failures[i])) {
            const char *why =
                arena_printf(rd->arena, "the server gave up: finish_reason %s", failures[i]);
            llm_emit(rd, &(struct llm_event) { .kind = LLM_EV_ERROR,
                                               .error = { .kind = LLM_ERR_SERVER,
                                                          .status = 502,
                                                          .message = str_of(why) } });
            return;
        }
    }
    enum llm_stop stop = stop_of(word);
    finish_content(rd, stop == LLM_STOP_LENGTH);
    if (stop == LLM_STOP_END && s->has_refusal) {
        stop = LLM_STOP_REFUSAL;
    }
    llm_emit_stop(rd, stop, stop == LLM_STOP_OTHER ? word : STR_EMPTY);
}

/* `delta` of a chunk or `message` of a body: the members are the same. */
static void read_delta(struct llm_read *rd, const struct json *d, bool body)
{
    read_thoughts(rd, d);
    read_content(rd, json_get(d, "content"));
    emit_refusal(rd, json_str(json_get(d, "refusal"), STR_EMPTY));
    read_calls(rd, json_get(d, "tool_calls"), body);
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

static int read_done(struct llm_read *rd, struct err *e)
{
    const struct llm_chat_reader *s = rd->state;
    if (!s->has_choice && !rd->tapping) { /* a tap does not look at every chunk */
        return ERR(e, ERR_PROTO, "invalid response: the stream ended without any content");
    }
    finish_content(rd, false);
    llm_emit_end(rd);
    return 0;
}

static int check_bounds(const struct llm_chat_reader *s, struct err *e)
{
    return s->overflow ? ERR(e, ERR_LIMIT, "tool call arguments exceed %zu bytes", CALLS_BYTES_MAX)
                       : 0;
}

int llm_chat_read_event(struct llm_read *rd, struct str name, struct str data, struct err *e)
{
    struct llm_chat_reader *s = rd->state;
    struct json *v = NULL;
    if (str_eqc(str_trim(data), "[DONE]")) {
        return read_done(rd, e);
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
    s->has_choice = s->has_choice || choice != NULL;
    read_delta(rd, json_get(choice, "delta"), false);
    emit_usage(rd, json_get(v, "usage"));
    emit_stop(rd, json_get(choice, "finish_reason"));
    return check_bounds(s, e);
}

int llm_chat_read_body(struct llm_read *rd, const struct json *body, struct err *e)
{
    if (is_error(body)) {
        read_error(rd, body);
        return 0;
    }
    const struct json *choice = first_choice(body);
    if (choice == NULL) {
        return ERR(e, ERR_PROTO, "the response is not a chat completion: it has no 'choices'");
    }
    emit_start(rd, body);
    read_delta(rd, json_get(choice, "message"), true);
    emit_usage(rd, json_get(body, "usage"));
    emit_stop(rd, json_get(choice, "finish_reason"));
    finish_content(rd, false);
    int r = check_bounds(rd->state, e);
    if (r == 0) {
        llm_emit_end(rd);
    }
    return r;
}

/* Some servers close after the last chunk and leave [DONE] out. */
void llm_chat_read_end(struct llm_read *rd)
{
    if (rd->has_stop) {
        finish_content(rd, false);
        llm_emit_end(rd);
    }
}

/* --- the tap --- */

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
           mentions(data, "\"role\"", '"') || mentions(data, "\"refusal\"", '"') ||
           str_find(data, STR("[DONE]")) < data.len;
}
