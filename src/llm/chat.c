/* SPDX-License-Identifier: MIT
 *
 * OpenAI Chat Completions: the table, endpoints and requests as clients send them. Also what the
 * many compatible servers and their clients add or left behind: reasoning_content, function_call.
 */
#include "llm/chat_priv.h"

#include <stdio.h>

static bool endpoint(struct str method, struct str path, struct str query, struct llm_endpoint *ret)
{
    ret->call = str_eqc(path, "/chat/completions") ? LLM_CALL_GENERATE
                : str_eqc(path, "/embeddings")     ? LLM_CALL_EMBED
                : str_eqc(path, "/completions")    ? LLM_CALL_COMPLETE
                                                   : LLM_CALL_NONE;
    return str_eqc(method, "POST") && ret->call != LLM_CALL_NONE;
}

static int path_of(struct str model, bool stream, struct buf *out, struct err *e)
{
    return buf_append(out, STR("/v1/chat/completions"), e);
}

/* --- parts --- */

static bool read_image(struct llm_fields *f, struct llm_part *p)
{
    struct llm_fields image;
    if (!llm_open(f, "image_url", &image)) {
        return false;
    }
    p->media.kind = LLM_MEDIA_IMAGE;
    struct str url = llm_take_str(&image, "url");
    if (!llm_media_from_data_url(url, &p->media)) {
        p->media.url = url;
    }
    llm_close(f, "image_url", &image);
    return url.len > 0;
}

static bool read_audio(struct llm_fields *f, struct llm_part *p)
{
    struct llm_fields audio;
    if (!llm_open(f, "input_audio", &audio)) {
        return false;
    }
    p->media.kind = LLM_MEDIA_AUDIO;
    p->media.data = llm_take_str(&audio, "data");
    p->media.mime =
        str_of(arena_printf(f->a, "audio/%.*s", STR_ARG(llm_take_str(&audio, "format"))));
    llm_close(f, "input_audio", &audio);
    return p->media.data.len > 0 && p->media.mime.len > strlen("audio/");
}

static bool read_file(struct llm_fields *f, struct llm_part *p)
{
    struct llm_fields file;
    if (!llm_open(f, "file", &file)) {
        return false;
    }
    p->media.name = llm_take_str(&file, "filename");
    bool known = llm_media_from_data_url(llm_take_str(&file, "file_data"), &p->media);
    p->media.kind = llm_media_kind_of(p->media.mime);
    llm_close(f, "file", &file);
    return known && p->media.kind == LLM_MEDIA_DOCUMENT;
}

static void read_part(struct arena *a, const struct json *v, struct llm_part *p)
{
    struct llm_fields f;
    bool known = true;
    llm_fields_init(&f, a, v);
    struct str type = json_str(json_get(v, "type"), STR_EMPTY);
    p->kind = LLM_PART_MEDIA;
    if (str_eqc(type, "text")) {
        p->kind = LLM_PART_TEXT;
        p->text = llm_take_str(&f, "text");
    } else if (str_eqc(type, "refusal")) {
        p->kind = LLM_PART_REFUSAL;
        p->text = llm_take_str(&f, "refusal");
        p->spelling = CHAT_IN_CONTENT;
    } else if (str_eqc(type, "image_url")) {
        known = read_image(&f, p);
    } else if (str_eqc(type, "input_audio")) {
        known = read_audio(&f, p);
    } else if (str_eqc(type, "file")) {
        known = read_file(&f, p);
    } else {
        known = false;
    }
    (void)llm_take(&f, "type");
    p->extra = llm_rest(&f);
    if (!known) {
        llm_fields_init(&f, a, v);
        *p = (struct llm_part) { .kind = LLM_PART_OTHER, .extra = llm_rest(&f) };
    }
}

/* --- messages --- */

struct parts {
    struct arena *a;
    LLM_LIST(struct llm_part) list;
    size_t message; /* its number, for errors */
};

static struct llm_part *add_part(struct parts *p, enum llm_part_kind kind)
{
    struct llm_part *part = LLM_ADD(p->a, &p->list);
    part->kind = kind;
    return part;
}

/* A null stays in extra. */
static int read_content(struct llm_fields *f, struct parts *p, unsigned *spelling, struct err *e)
{
    const struct json *content = json_get(f->object, "content");
    if (json_is(content, JSON_STRING)) {
        add_part(p, LLM_PART_TEXT)->text = llm_take(f, "content")->string;
        *spelling |= CHAT_STRING;
        return 0;
    }
    if (content == NULL || content->type == JSON_NULL) {
        *spelling |= CHAT_NO_CONTENT;
        return 0;
    }
    if (!json_is(content, JSON_ARRAY)) {
        return LLM_BAD(e, "messages[%zu].content: must be a string or a list of parts", p->message);
    }
    (void)llm_take(f, "content");
    for (size_t i = 0; i < json_len(content); i++) {
        if (!json_is(json_item(content, i), JSON_OBJECT)) {
            return LLM_BAD(e, "messages[%zu].content[%zu]: must be an object", p->message, i);
        }
        read_part(p->a, json_item(content, i), add_part(p, LLM_PART_TEXT));
    }
    return 0;
}

static void read_call(struct arena *a, const struct json *v, struct llm_part *part)
{
    struct llm_fields f, inner;
    struct llm_call *c = &part->call;
    llm_fields_init(&f, a, v);
    c->custom = str_eqc(json_str(json_get(v, "type"), STR_EMPTY), "custom");
    const char *key = c->custom ? "custom" : "function";
    part->spelling = llm_take_word(&f, "type", key) ? 0 : CHAT_UNTYPED;
    c->id = llm_take_str(&f, "id");
    if (llm_open(&f, key, &inner)) {
        c->name = llm_take_str(&inner, "name");
        llm_call_set_text(a, c, llm_take_str(&inner, c->custom ? "input" : "arguments"));
        llm_close(&f, key, &inner);
    }
    part->extra = llm_rest(&f);
}

static int read_calls(struct llm_fields *f, struct parts *p, struct err *e)
{
    struct llm_fields legacy;
    const struct json *calls = llm_take_type(f, "tool_calls", JSON_ARRAY);
    for (size_t i = 0; i < json_len(calls); i++) {
        if (!json_is(json_item(calls, i), JSON_OBJECT)) {
            return LLM_BAD(e, "messages[%zu].tool_calls[%zu]: must be an object", p->message, i);
        }
        struct llm_part *part = add_part(p, LLM_PART_CALL);
        read_call(p->a, json_item(calls, i), part);
        if (part->call.name.len == 0) {
            return LLM_BAD(e, "messages[%zu].tool_calls[%zu]: must name a function", p->message, i);
        }
    }
    if (calls != NULL && json_len(calls) == 0) {
        llm_keep(f, "tool_calls", json_array(p->a));
    }
    if (llm_open(f, "function_call", &legacy)) {
        struct llm_part *part = add_part(p, LLM_PART_CALL);
        part->spelling = CHAT_LEGACY;
        part->call.name = llm_take_str(&legacy, "name");
        llm_call_set_text(p->a, &part->call, llm_take_str(&legacy, "arguments"));
        part->extra = llm_rest(&legacy);
        if (part->call.name.len == 0) {
            return LLM_BAD(e, "messages[%zu].function_call: must name a function", p->message);
        }
    }
    return 0;
}

static int read_assistant(struct llm_fields *f, struct parts *p, unsigned *spelling, struct err *e)
{
    static const struct {
        const char *key;
        unsigned spelling;
    } thoughts[] = { { "reasoning_content", 0 }, { "reasoning", CHAT_REASONING } };
    for (size_t i = 0; i < ARRAY_LEN(thoughts); i++) {
        struct str text = llm_take_str(f, thoughts[i].key);
        if (text.len > 0) {
            struct llm_part *part = add_part(p, LLM_PART_THINKING);
            part->text = text;
            part->spelling = thoughts[i].spelling;
        }
    }
    int r = read_content(f, p, spelling, e);
    struct str refusal = llm_take_str(f, "refusal");
    if (refusal.len > 0) {
        add_part(p, LLM_PART_REFUSAL)->text = refusal;
    }
    return r < 0 ? r : read_calls(f, p, e);
}

static int read_result(struct llm_fields *f, bool legacy, struct parts *p, struct err *e)
{
    struct parts inner = { .a = p->a, .message = p->message };
    unsigned spelling = legacy ? CHAT_LEGACY : 0;
    int r = read_content(f, &inner, &spelling, e);
    struct llm_result *result = &add_part(p, LLM_PART_RESULT)->result;
    result->call_id = legacy ? STR_EMPTY : llm_take_str(f, "tool_call_id");
    result->name = legacy ? llm_take_str(f, "name") : STR_EMPTY;
    result->parts = inner.list.items;
    result->n_parts = inner.list.n;
    result->spelling = spelling;
    return r;
}

static int read_message(struct arena *a, const struct json *v, size_t i, struct llm_message *ret,
                        struct err *e)
{
    struct llm_fields f;
    struct parts parts = { .a = a, .message = i };
    int r;
    llm_fields_init(&f, a, v);
    struct str role = llm_take_str(&f, "role");
    if (str_eqc(role, "user")) {
        ret->role = LLM_USER;
        r = read_content(&f, &parts, &ret->spelling, e);
    } else if (str_eqc(role, "assistant")) {
        ret->role = LLM_ASSISTANT;
        r = read_assistant(&f, &parts, &ret->spelling, e);
    } else if (str_eqc(role, "tool") || str_eqc(role, "function")) {
        ret->role = LLM_USER;
        r = read_result(&f, str_eqc(role, "function"), &parts, e);
    } else if (str_eqc(role, "system") || str_eqc(role, "developer")) {
        ret->role = LLM_SYSTEM;
        ret->developer = str_eqc(role, "developer");
        r = read_content(&f, &parts, &ret->spelling, e);
    } else {
        return LLM_BAD(e, "messages[%zu].role: must be system, developer, user, assistant or tool",
                       i);
    }
    ret->parts = parts.list.items;
    ret->n_parts = parts.list.n;
    ret->extra = llm_rest(&f);
    return r;
}

/* --- tools --- */

static void read_definition(struct llm_fields *f, struct llm_tool *t)
{
    t->name = llm_take_str(f, "name");
    t->description = llm_take_str(f, "description");
    t->schema = llm_take_type(f, "parameters", JSON_OBJECT);
    t->strict = llm_take_true(f, "strict");
}

/* A grammar is kept as Responses has it, so that it can go there: {type, syntax, definition}. */
static struct json *flat_format(struct arena *a, const struct json *format)
{
    const struct json *grammar = json_get(format, "grammar");
    size_t known =
        (json_get(grammar, "syntax") != NULL) + (json_get(grammar, "definition") != NULL);
    if (known == 0 || json_len(grammar) != known || json_len(format) != 2 ||
        json_get(format, "type") == NULL) {
        return NULL;
    }
    struct json *v = json_copy(a, format);
    (void)json_remove(v, STR("grammar"));
    llm_put_rest(a, v, grammar);
    return v;
}

static void read_custom(struct llm_fields *f, struct llm_fields *inner, struct llm_tool *t)
{
    t->kind = LLM_TOOL_CUSTOM;
    t->name = llm_take_str(inner, "name");
    t->description = llm_take_str(inner, "description");
    struct json *format = llm_take_type(inner, "format", JSON_OBJECT);
    struct json *flat = flat_format(f->a, format);
    t->spelling = flat != NULL ? CHAT_NESTED : 0;
    llm_keep(f, "format", flat != NULL ? flat : format);
}

static void read_tool(struct arena *a, const struct json *v, struct llm_tool *t)
{
    struct llm_fields f, inner;
    llm_fields_init(&f, a, v);
    struct str type = json_str(json_get(v, "type"), STR_EMPTY);
    bool known = str_eqc(type, "function") || str_eqc(type, "custom");
    struct str name = json_str(json_get(json_find(v, type), "name"), STR_EMPTY);
    t->kind = LLM_TOOL_HOSTED;
    t->name = type;
    if (known && name.len > 0 && json_get(v, "format") == NULL) {
        const char *key = str_eqc(type, "custom") ? "custom" : "function";
        (void)llm_take(&f, "type");
        (void)llm_open(&f, key, &inner);
        if (str_eqc(type, "custom")) {
            read_custom(&f, &inner, t);
        } else {
            t->kind = LLM_TOOL_FUNCTION;
            read_definition(&inner, t);
        }
        llm_close(&f, key, &inner);
    }
    t->extra = llm_rest(&f);
}

static int read_tools(struct llm_fields *f, struct llm_request *ret, struct err *e)
{
    const struct json *tools = llm_take_type(f, "tools", JSON_ARRAY);
    const struct json *functions = llm_take_type(f, "functions", JSON_ARRAY);
    LLM_LIST(struct llm_tool) list = { 0 };
    for (size_t i = 0; i < json_len(tools); i++) {
        if (!json_is(json_item(tools, i), JSON_OBJECT)) {
            return LLM_BAD(e, "tools[%zu]: must be an object", i);
        }
        read_tool(f->a, json_item(tools, i), LLM_ADD(f->a, &list));
    }
    for (size_t i = 0; i < json_len(functions); i++) {
        struct llm_fields one;
        struct llm_tool *t = LLM_ADD(f->a, &list);
        if (!json_is(json_item(functions, i), JSON_OBJECT)) {
            return LLM_BAD(e, "functions[%zu]: must be an object", i);
        }
        llm_fields_init(&one, f->a, json_item(functions, i));
        read_definition(&one, t);
        t->spelling = CHAT_LEGACY;
        t->extra = llm_rest(&one);
        if (t->name.len == 0) {
            return LLM_BAD(e, "functions[%zu]: must have a name", i);
        }
    }
    llm_keep(f, "tools", tools != NULL && json_len(tools) == 0 ? json_array(f->a) : NULL);
    llm_keep(f, "functions",
             functions != NULL && json_len(functions) == 0 ? json_array(f->a) : NULL);
    ret->tools = list.items;
    ret->n_tools = list.n;
    return 0;
}

static bool choice_word(struct str word, enum llm_choice *ret)
{
    static const char *const words[] = {
        [LLM_CHOICE_AUTO] = "auto",
        [LLM_CHOICE_NONE] = "none",
        [LLM_CHOICE_ANY] = "required",
    };
    for (enum llm_choice c = LLM_CHOICE_AUTO; c <= LLM_CHOICE_ANY; c++) {
        if (str_eqc(word, words[c])) {
            *ret = c;
            return true;
        }
    }
    return false;
}

/* {"type": "function", "function": {"name": …}} and nothing else, or NULL. */
static const struct json *named_choice(const struct json *v, const char *type)
{
    const struct json *name = json_get(json_get(v, type), "name");
    bool exact = json_len(v) == 2 && json_len(json_get(v, type)) == 1 &&
                 str_eqc(json_str(json_get(v, "type"), STR_EMPTY), type);
    return exact && json_len(name) > 0 && json_is(name, JSON_STRING) ? name : NULL;
}

static void read_choice(struct llm_fields *f, struct llm_request *ret)
{
    const struct json *v = json_get(f->object, "tool_choice");
    const struct json *legacy = json_get(f->object, "function_call");
    const struct json *custom = named_choice(v, "custom");
    const struct json *name = custom != NULL ? custom : named_choice(v, "function");
    if (choice_word(json_str(v, STR_EMPTY), &ret->choice)) {
        (void)llm_take(f, "tool_choice");
    } else if (name != NULL) {
        (void)llm_take(f, "tool_choice");
        ret->choice = LLM_CHOICE_TOOL;
        ret->choice_name = name->string;
        ret->spelling |= custom != NULL ? CHAT_CUSTOM_CHOICE : 0;
    } else if (choice_word(json_str(legacy, STR_EMPTY), &ret->choice)) {
        (void)llm_take(f, "function_call");
        ret->spelling |= CHAT_LEGACY_CHOICE;
    } else if (json_len(legacy) == 1 && json_is(json_get(legacy, "name"), JSON_STRING)) {
        ret->choice = LLM_CHOICE_TOOL;
        ret->choice_name = json_get(llm_take(f, "function_call"), "name")->string;
        ret->spelling |= CHAT_LEGACY_CHOICE;
    }
    ret->parallel_given = llm_take_bool(f, "parallel_tool_calls", &ret->parallel);
}

/* --- the rest of the body --- */

static void read_stops(struct llm_fields *f, struct llm_request *ret)
{
    const struct json *v = json_get(f->object, "stop");
    bool single = json_is(v, JSON_STRING);
    size_t n = single ? 1 : json_is(v, JSON_ARRAY) ? json_len(v) : 0;
    struct str *stops = arena_array(f->a, n, sizeof *stops);
    for (size_t i = 0; i < n; i++) {
        const struct json *item = single ? v : json_item(v, i);
        if (!json_is(item, JSON_STRING)) {
            return; /* stays in extra, for the provider to complain about */
        }
        stops[i] = item->string;
    }
    if (n > 0) {
        (void)llm_take(f, "stop");
        ret->sampling.stops = stops;
        ret->sampling.n_stops = n;
        ret->spelling |= single ? CHAT_STRING : 0;
    }
}

static void read_sampling(struct llm_fields *f, struct llm_request *ret)
{
    struct llm_sampling *s = &ret->sampling;
    if (json_int(json_get(f->object, "max_completion_tokens"), 0) > 0) {
        (void)llm_take_int(f, "max_completion_tokens", &s->max_tokens);
    } else if (json_int(json_get(f->object, "max_tokens"), 0) > 0) {
        (void)llm_take_int(f, "max_tokens", &s->max_tokens);
        ret->spelling |= CHAT_LEGACY;
    }
    s->has_temperature = llm_take_real(f, "temperature", &s->temperature);
    s->has_top_p = llm_take_real(f, "top_p", &s->top_p);
    s->has_top_k = llm_take_int(f, "top_k", &s->top_k);
    s->has_presence = llm_take_real(f, "presence_penalty", &s->presence_penalty);
    s->has_frequency = llm_take_real(f, "frequency_penalty", &s->frequency_penalty);
    s->has_seed = llm_take_int(f, "seed", &s->seed);
    read_stops(f, ret);
}

static void read_output(struct llm_fields *f, struct llm_output *ret)
{
    struct llm_fields format, schema;
    if (!llm_open(f, "response_format", &format)) {
        return;
    }
    if (llm_take_word(&format, "type", "json_object")) {
        ret->json = true;
    } else if (json_is(json_pointer(format.object, STR("/json_schema/schema")), JSON_OBJECT) &&
               llm_take_word(&format, "type", "json_schema") &&
               llm_open(&format, "json_schema", &schema)) {
        ret->json = true;
        ret->name = llm_take_str(&schema, "name");
        ret->schema = llm_take(&schema, "schema");
        ret->strict = llm_take_true(&schema, "strict");
        llm_close(&format, "json_schema", &schema);
    }
    llm_close(f, "response_format", &format);
}

static void read_reasoning(struct llm_fields *f, struct llm_reasoning *ret)
{
    ret->effort = llm_take_str(f, "reasoning_effort");
    ret->given = ret->effort.len > 0;
    ret->off = str_eqc(ret->effort, "none");
}

static int read_request(struct arena *a, const struct llm_endpoint *where, struct json *body,
                        struct llm_request *ret, struct err *e)
{
    struct llm_fields f, options;
    llm_fields_init(&f, a, body);
    ret->model = llm_take_str(&f, "model");
    if (ret->model.len == 0) {
        return LLM_BAD(e, "model: must be a string");
    }
    int r = llm_read_messages(&f, ret, read_message, e);
    r = r < 0 ? r : read_tools(&f, ret, e);
    if (r < 0) {
        return r;
    }
    ret->stream = llm_take_true(&f, "stream");
    if (llm_open(&f, "stream_options", &options)) {
        ret->include_usage = llm_take_true(&options, "include_usage");
        llm_close(&f, "stream_options", &options);
    }
    read_choice(&f, ret);
    read_sampling(&f, ret);
    read_reasoning(&f, &ret->reasoning);
    read_output(&f, &ret->output);
    ret->extra = llm_rest(&f);
    return 0;
}

/* What no other format can answer. */
static const char *unportable(struct arena *a, const struct llm_request *r)
{
    const struct json *modalities = json_get(r->extra, "modalities");
    (void)a;
    if (json_int(json_get(r->extra, "n"), 1) > 1) {
        return "n: several responses to one request are available from chat servers only";
    }
    if (json_bool(json_get(r->extra, "logprobs"), false) ||
        json_int(json_get(r->extra, "top_logprobs"), 0) > 0) {
        return "logprobs: token probabilities are available from chat servers only";
    }
    for (size_t i = 0; json_is(modalities, JSON_ARRAY) && i < json_len(modalities); i++) {
        if (!str_eqc(json_str(json_item(modalities, i), STR_EMPTY), "text")) {
            return "modalities: audio and images as output are available from chat servers only";
        }
    }
    return NULL;
}

const struct llm_codec llm_codec_chat = {
    .name = "chat",
    .endpoint = endpoint,
    .path = path_of,
    .read = read_request,
    .write = llm_chat_write,
    .unportable = unportable,
    .custom_tools = true,
    .reader_size = sizeof(struct llm_chat_reader),
    .read_event = llm_chat_read_event,
    .read_body = llm_chat_read_body,
    .read_end = llm_chat_read_end,
    .tap_wants = llm_chat_tap_wants,
    .writer_size = sizeof(struct llm_chat_writer),
    .write_event = llm_chat_write_event,
    .write_body = llm_chat_write_body,
    .error_write = llm_openai_error_body,
    .error_read = llm_openai_error_body_read,
};
