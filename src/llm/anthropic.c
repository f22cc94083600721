/* SPDX-License-Identifier: MIT
 *
 * Anthropic Messages: the table, endpoints, requests as clients send them, errors. Written against
 * the public API (anthropic-version 2023-06-01) and what Claude Code really sends: role "system"
 * inside of messages, cache_control everywhere, thinking with and without a budget.
 */
#include "llm/anthropic_priv.h"

#include <stdio.h>

static bool endpoint(struct str method, struct str path, struct str query, struct llm_endpoint *ret)
{
    if (!str_eqc(method, "POST")) {
        return false;
    }
    ret->call = str_eqc(path, "/messages")                ? LLM_CALL_GENERATE
                : str_eqc(path, "/messages/count_tokens") ? LLM_CALL_COUNT
                                                          : LLM_CALL_NONE;
    return ret->call != LLM_CALL_NONE;
}

static int path_of(struct str model, bool stream, struct buf *out, struct err *e)
{
    return buf_append(out, STR("/v1/messages"), e);
}

/* --- parts --- */

/* What cannot be said in our words stays whole. */
static void other(struct arena *a, const struct json *v, struct llm_part *p)
{
    struct llm_fields all;
    llm_fields_init(&all, a, v);
    *p = (struct llm_part) { .kind = LLM_PART_OTHER, .extra = llm_rest(&all) };
}

static bool read_source(struct llm_fields *f, struct llm_part *p)
{
    struct llm_fields s;
    struct llm_media *m = &p->media;
    if (!llm_open(f, "source", &s)) {
        return false;
    }
    if (llm_take_word(&s, "type", "base64")) {
        m->mime = llm_take_str(&s, "media_type");
        m->data = llm_take_str(&s, "data");
    } else if (llm_take_word(&s, "type", "url")) {
        m->url = llm_take_str(&s, "url");
    } else if (llm_take_word(&s, "type", "text")) {
        m->mime = llm_take_str(&s, "media_type");
        p->text = llm_take_str(&s, "data");
    }
    llm_close(f, "source", &s);
    return m->data.len > 0 || m->url.len > 0 || p->text.len > 0;
}

static int read_parts(struct arena *a, const struct json *content, const char *where,
                      struct llm_message *ret, struct err *e);

static int read_result(struct llm_fields *f, const char *where, struct llm_part *p, struct err *e)
{
    struct llm_message inner = { 0 };
    p->result.call_id = llm_take_str(f, "tool_use_id");
    p->result.is_error = llm_take_true(f, "is_error");
    const struct json *content = json_get(f->object, "content");
    if (!json_is(content, JSON_STRING) && !json_is(content, JSON_ARRAY)) {
        p->result.spelling = ANTHROPIC_NO_CONTENT;
        return 0;
    }
    int r = read_parts(f->a, llm_take(f, "content"), where, &inner, e);
    p->result.parts = inner.parts;
    p->result.n_parts = inner.n_parts;
    p->result.spelling = inner.spelling;
    return r;
}

static bool read_media(struct llm_fields *f, struct llm_part *p)
{
    p->kind = LLM_PART_MEDIA;
    p->media.kind = LLM_MEDIA_IMAGE;
    if (llm_take_word(f, "type", "document")) {
        p->media.kind = LLM_MEDIA_DOCUMENT;
        p->media.name = llm_take_str(f, "title");
    }
    (void)llm_take(f, "type");
    return read_source(f, p);
}

static bool read_thinking(struct llm_fields *f, struct str type, struct llm_part *p)
{
    p->kind = LLM_PART_THINKING;
    p->redacted = str_eqc(type, "redacted_thinking");
    p->text = p->redacted ? STR_EMPTY : llm_take_str(f, "thinking");
    p->signature = llm_take_str(f, p->redacted ? "data" : "signature");
    return true;
}

static bool read_call(struct llm_fields *f, struct llm_part *p)
{
    p->kind = LLM_PART_CALL;
    p->call.id = llm_take_str(f, "id");
    p->call.name = llm_take_str(f, "name");
    llm_call_set_input(f->a, &p->call, llm_take_type(f, "input", JSON_OBJECT));
    return p->call.input != NULL && p->call.name.len > 0;
}

static int read_part(struct arena *a, const struct json *v, const char *where, struct llm_part *p,
                     struct err *e)
{
    struct llm_fields f;
    bool known = true;
    int r = 0;
    llm_fields_init(&f, a, v);
    struct str type = json_str(json_get(v, "type"), STR_EMPTY);
    if (str_eqc(type, "text")) {
        p->kind = LLM_PART_TEXT;
        p->text = llm_take_str(&f, "text");
    } else if (str_eqc(type, "image") || str_eqc(type, "document")) {
        known = read_media(&f, p);
    } else if (str_eqc(type, "thinking") || str_eqc(type, "redacted_thinking")) {
        known = read_thinking(&f, type, p);
    } else if (str_eqc(type, "tool_use")) {
        known = read_call(&f, p);
    } else if (str_eqc(type, "tool_result")) {
        p->kind = LLM_PART_RESULT;
        r = read_result(&f, where, p, e);
    } else {
        known = false;
    }
    (void)llm_take(&f, "type");
    p->extra = llm_rest(&f);
    if (!known) {
        other(a, v, p);
    }
    return r;
}

static int read_parts(struct arena *a, const struct json *content, const char *where,
                      struct llm_message *ret, struct err *e)
{
    if (json_is(content, JSON_STRING)) {
        struct llm_part *p = ARENA_NEW(a, struct llm_part);
        *p = (struct llm_part) { .kind = LLM_PART_TEXT, .text = content->string };
        ret->parts = p;
        ret->n_parts = 1;
        ret->spelling = ANTHROPIC_STRING;
        return 0;
    }
    if (!json_is(content, JSON_ARRAY)) {
        return LLM_BAD(e, "%s: must be a string or a list of content blocks", where);
    }
    size_t n = json_len(content);
    struct llm_part *parts = arena_array(a, n, sizeof *parts);
    for (size_t i = 0; i < n; i++) {
        const struct json *item = json_item(content, i);
        if (!json_is(item, JSON_OBJECT)) {
            return LLM_BAD(e, "%s[%zu]: must be an object", where, i);
        }
        int r = read_part(a, item, where, &parts[i], e);
        if (r < 0) {
            return r;
        }
    }
    ret->parts = parts;
    ret->n_parts = n;
    return 0;
}

/* --- messages --- */

static int read_message(struct arena *a, const struct json *v, size_t i, struct llm_message *ret,
                        struct err *e)
{
    struct llm_fields f;
    char where[64];
    llm_fields_init(&f, a, v);
    struct str role = llm_take_str(&f, "role");
    if (str_eqc(role, "user")) {
        ret->role = LLM_USER;
    } else if (str_eqc(role, "assistant")) {
        ret->role = LLM_ASSISTANT;
    } else if (str_eqc(role, "system")) {
        ret->role = LLM_SYSTEM;
    } else {
        return LLM_BAD(e, "messages[%zu].role: must be user, assistant or system", i);
    }
    (void)snprintf(where, sizeof where, "messages[%zu].content", i);
    int r = read_parts(a, llm_take(&f, "content"), where, ret, e);
    ret->extra = llm_rest(&f);
    return r;
}

static int read_system(struct llm_fields *f, struct llm_request *ret, struct err *e)
{
    struct llm_message m = { 0 };
    const struct json *system = json_get(f->object, "system");
    if (!json_is(system, JSON_STRING) && !json_is(system, JSON_ARRAY)) {
        return 0;
    }
    int r = read_parts(f->a, llm_take(f, "system"), "system", &m, e);
    ret->system = m.parts;
    ret->n_system = m.n_parts;
    llm_keep(f, "system", r == 0 && m.n_parts == 0 ? json_array(f->a) : NULL);
    ret->spelling |= m.spelling;
    return r;
}

/* --- tools --- */

static void read_tool(struct arena *a, const struct json *v, struct llm_tool *t)
{
    struct llm_fields f;
    llm_fields_init(&f, a, v);
    struct str type = json_str(json_get(v, "type"), STR_EMPTY);
    if ((json_get(v, "type") != NULL && !str_eqc(type, "custom")) ||
        json_str(json_get(v, "name"), STR_EMPTY).len == 0) {
        t->kind = LLM_TOOL_HOSTED;
        t->name = type;
        t->extra = llm_rest(&f);
        return;
    }
    t->kind = LLM_TOOL_FUNCTION;
    t->spelling = llm_take_word(&f, "type", "custom") ? ANTHROPIC_TYPED : 0;
    t->name = llm_take_str(&f, "name");
    t->description = llm_take_str(&f, "description");
    t->schema = llm_take_type(&f, "input_schema", JSON_OBJECT);
    t->strict = llm_take_true(&f, "strict");
    t->extra = llm_rest(&f);
}

static int read_tools(struct llm_fields *f, struct llm_request *ret, struct err *e)
{
    const struct json *list = llm_take_type(f, "tools", JSON_ARRAY);
    size_t n = json_len(list);
    struct llm_tool *tools = arena_array(f->a, n, sizeof *tools);
    for (size_t i = 0; i < n; i++) {
        if (!json_is(json_item(list, i), JSON_OBJECT)) {
            return LLM_BAD(e, "tools[%zu]: must be an object", i);
        }
        read_tool(f->a, json_item(list, i), &tools[i]);
    }
    ret->tools = tools;
    ret->n_tools = n;
    llm_keep(f, "tools", list != NULL && n == 0 ? json_array(f->a) : NULL);
    return 0;
}

static void read_choice(struct llm_fields *f, struct llm_request *ret)
{
    struct llm_fields c;
    bool serial = false;
    if (!llm_open(f, "tool_choice", &c)) {
        return;
    }
    if (llm_take_word(&c, "type", "auto")) {
        ret->choice = LLM_CHOICE_AUTO;
    } else if (llm_take_word(&c, "type", "any")) {
        ret->choice = LLM_CHOICE_ANY;
    } else if (llm_take_word(&c, "type", "none")) {
        ret->choice = LLM_CHOICE_NONE;
    } else if (llm_take_word(&c, "type", "tool")) {
        ret->choice = LLM_CHOICE_TOOL;
        ret->choice_name = llm_take_str(&c, "name");
    }
    if (llm_take_bool(&c, "disable_parallel_tool_use", &serial)) {
        ret->parallel_given = true;
        ret->parallel = !serial;
    }
    llm_close(f, "tool_choice", &c);
}

/* --- the rest of the body --- */

static void read_stops(struct llm_fields *f, struct llm_sampling *s)
{
    const struct json *list = json_get(f->object, "stop_sequences");
    size_t n = json_is(list, JSON_ARRAY) ? json_len(list) : 0;
    struct str *stops = arena_array(f->a, n, sizeof *stops);
    for (size_t i = 0; i < n; i++) {
        if (!json_is(json_item(list, i), JSON_STRING)) {
            return; /* stays in extra, for the provider to complain about */
        }
        stops[i] = json_item(list, i)->string;
    }
    if (n > 0) {
        (void)llm_take(f, "stop_sequences");
        s->stops = stops;
        s->n_stops = n;
    }
}

static void read_sampling(struct llm_fields *f, struct llm_sampling *s)
{
    if (json_int(json_get(f->object, "max_tokens"), 0) > 0) {
        (void)llm_take_int(f, "max_tokens", &s->max_tokens);
    }
    s->has_temperature = llm_take_real(f, "temperature", &s->temperature);
    s->has_top_p = llm_take_real(f, "top_p", &s->top_p);
    s->has_top_k = llm_take_int(f, "top_k", &s->top_k);
    read_stops(f, s);
}

static void read_thinking_config(struct llm_fields *f, struct llm_reasoning *ret)
{
    struct llm_fields t;
    if (!llm_open(f, "thinking", &t)) {
        return;
    }
    if (llm_take_word(&t, "type", "enabled")) {
        ret->given = true;
        if (json_int(json_get(t.object, "budget_tokens"), 0) > 0) {
            (void)llm_take_int(&t, "budget_tokens", &ret->budget);
        }
    } else if (llm_take_word(&t, "type", "adaptive")) {
        ret->given = true;
        ret->budget = -1;
    } else if (llm_take_word(&t, "type", "disabled")) {
        ret->given = true;
        ret->off = true;
    }
    ret->summary = ret->given && !ret->off;
    llm_close(f, "thinking", &t);
}

static bool read_format(struct llm_fields *f, const char *key, struct llm_output *ret)
{
    struct llm_fields format;
    const struct json *v = json_get(f->object, key);
    if (!str_eqc(json_str(json_get(v, "type"), STR_EMPTY), "json_schema") ||
        !json_is(json_get(v, "schema"), JSON_OBJECT) || !llm_open(f, key, &format)) {
        return false;
    }
    (void)llm_take(&format, "type");
    ret->json = true;
    ret->strict = true;
    ret->schema = llm_take(&format, "schema");
    llm_close(f, key, &format);
    return true;
}

static void read_output(struct llm_fields *f, struct llm_request *ret)
{
    struct llm_fields c;
    if (llm_open(f, "output_config", &c)) {
        ret->reasoning.effort = llm_take_str(&c, "effort");
        (void)read_format(&c, "format", &ret->output);
        llm_close(f, "output_config", &c);
    }
    if (!ret->output.json && read_format(f, "output_format", &ret->output)) {
        ret->spelling |= ANTHROPIC_FORMAT;
    }
}

static int read_request(struct arena *a, const struct llm_endpoint *where, struct json *body,
                        struct llm_request *ret, struct err *e)
{
    struct llm_fields f;
    llm_fields_init(&f, a, body);
    ret->model = llm_take_str(&f, "model");
    if (ret->model.len == 0) {
        return LLM_BAD(e, "model: must be a string");
    }
    int r = llm_read_messages(&f, ret, read_message, e);
    r = r < 0 ? r : read_system(&f, ret, e);
    r = r < 0 ? r : read_tools(&f, ret, e);
    if (r < 0) {
        return r;
    }
    ret->stream = llm_take_true(&f, "stream");
    read_choice(&f, ret);
    read_sampling(&f, &ret->sampling);
    read_thinking_config(&f, &ret->reasoning);
    read_output(&f, ret);
    ret->extra = llm_rest(&f);
    return 0;
}

/* --- errors --- */

static const struct {
    enum llm_error_kind kind;
    const char *type;
} kinds[] = {
    { LLM_ERR_INVALID, "invalid_request_error" }, { LLM_ERR_AUTH, "authentication_error" },
    { LLM_ERR_QUOTA, "billing_error" },           { LLM_ERR_PERMISSION, "permission_error" },
    { LLM_ERR_NOT_FOUND, "not_found_error" },     { LLM_ERR_TOO_LARGE, "request_too_large" },
    { LLM_ERR_RATE, "rate_limit_error" },         { LLM_ERR_SERVER, "api_error" },
    { LLM_ERR_TIMEOUT, "timeout_error" },         { LLM_ERR_OVERLOADED, "overloaded_error" },
    { LLM_ERR_CONTEXT, "invalid_request_error" },
};

struct json *llm_anthropic_error(struct arena *a, const struct llm_error *error)
{
    struct json *v = json_object(a);
    const char *type = "api_error";
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        type = kinds[i].kind == error->kind ? kinds[i].type : type;
    }
    llm_set_cstr(a, v, "type", "error");
    struct json *inner = llm_set_object(a, v, "error");
    llm_set_cstr(a, inner, "type", type);
    /* Claude Code knows the full context by these words and compacts. */
    if (error->kind == LLM_ERR_CONTEXT && !llm_says_context(error->message)) {
        llm_set_cstr(a, inner, "message",
                     arena_printf(a, "prompt is too long: %.*s", STR_ARG(error->message)));
    } else {
        llm_set_str(a, inner, "message", error->message);
    }
    return v;
}

void llm_anthropic_error_read(const struct json *body, struct llm_error *ret)
{
    const struct json *error = json_get(body, "error");
    if (!json_is(error, JSON_OBJECT)) {
        llm_openai_error_body_read(body, ret);
        return;
    }
    ret->type = json_str(json_get(error, "type"), STR_EMPTY);
    ret->message = json_str(json_get(error, "message"), STR_EMPTY);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_eqc(ret->type, kinds[i].type)) {
            ret->kind = kinds[i].kind;
            break;
        }
    }
    if (ret->kind == LLM_ERR_INVALID && llm_says_context(ret->message)) {
        ret->kind = LLM_ERR_CONTEXT;
    }
}

const struct llm_codec llm_codec_anthropic = {
    .name = "anthropic",
    .endpoint = endpoint,
    .path = path_of,
    .read = read_request,
    .write = llm_anthropic_write,
    .reader_size = sizeof(struct llm_anthropic_reader),
    .read_event = llm_anthropic_read_event,
    .read_body = llm_anthropic_read_body,
    .tap_wants = llm_anthropic_tap_wants,
    .writer_size = sizeof(struct llm_anthropic_writer),
    .serial = true,
    .write_event = llm_anthropic_write_event,
    .write_body = llm_anthropic_write_body,
    .error_write = llm_anthropic_error,
    .error_read = llm_anthropic_error_read,
};
