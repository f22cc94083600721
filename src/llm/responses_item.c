/* SPDX-License-Identifier: MIT
 *
 * Items of a Responses request: messages, calls and their outputs, reasoning. An item of a kind
 * that the canonical form does not have becomes a part OTHER that holds it whole.
 */
#include "llm/responses_priv.h"
#include "llm/store.h"

/* Where in the request we are, for messages. */
struct place {
    struct arena *a;
    size_t item;
};

static int wrong(const struct place *p, const char *key, const char *must, struct err *e)
{
    return LLM_BAD(e, "input[%zu]%s: %s", p->item, key, must);
}

/* --- content --- */

static bool read_image(struct llm_fields *f, struct llm_media *ret)
{
    struct str url = llm_take_str(f, "image_url");
    ret->kind = LLM_MEDIA_IMAGE;
    if (!llm_media_from_data_url(url, ret)) {
        ret->url = url;
    }
    return url.len > 0;
}

static bool read_file(struct llm_fields *f, struct llm_media *ret)
{
    struct str url = llm_take_str(f, "file_url");
    struct str data = llm_take_str(f, "file_data");
    ret->name = llm_take_str(f, "filename");
    if (data.len > 0) {
        bool known = url.len == 0 && llm_media_from_data_url(data, ret);
        ret->kind = LLM_MEDIA_DOCUMENT; /* whatever the type says: it must be a file again */
        return known;
    }
    ret->kind = LLM_MEDIA_DOCUMENT;
    ret->url = url;
    return url.len > 0;
}

static bool read_audio(struct llm_fields *f, struct llm_media *ret)
{
    struct llm_fields audio;
    if (!llm_open(f, "input_audio", &audio)) {
        return false;
    }
    struct str format = llm_take_str(&audio, "format");
    ret->kind = LLM_MEDIA_AUDIO;
    ret->data = llm_take_str(&audio, "data");
    ret->mime = str_of(arena_printf(f->a, "audio/%.*s", STR_ARG(format)));
    llm_close(f, "input_audio", &audio);
    return format.len > 0 && ret->data.len > 0;
}

static bool read_words(struct llm_fields *f, const char *key, struct llm_part *ret)
{
    bool there = json_is(json_get(f->object, key), JSON_STRING);
    ret->text = llm_take_str(f, key);
    return there;
}

/* False where the piece is of an unknown kind or shape: it then stays as it is. */
static bool read_known(struct llm_fields *f, struct llm_part *ret)
{
    struct str type = llm_take_str(f, "type");
    if (str_eqc(type, "input_text") || str_eqc(type, "output_text")) {
        ret->kind = LLM_PART_TEXT;
        ret->spelling = str_eqc(type, "input_text") ? RESPONSES_INPUT_TEXT : RESPONSES_OUTPUT_TEXT;
        return read_words(f, "text", ret);
    }
    if (str_eqc(type, "refusal")) {
        ret->kind = LLM_PART_REFUSAL;
        return read_words(f, "refusal", ret);
    }
    ret->kind = LLM_PART_MEDIA;
    if (str_eqc(type, "input_image")) {
        return read_image(f, &ret->media);
    }
    if (str_eqc(type, "input_file")) {
        return read_file(f, &ret->media);
    }
    return str_eqc(type, "input_audio") && read_audio(f, &ret->media);
}

struct content {
    const struct llm_part *parts;
    size_t n;
    bool plain; /* a string */
};

/* A string, or a list of typed pieces. */
static int read_content(const struct place *p, const struct json *content, const char *key,
                        struct content *ret, struct err *e)
{
    bool plain = json_is(content, JSON_STRING);
    if (!plain && !json_is(content, JSON_ARRAY)) {
        return wrong(p, key, "must be a string or a list", e);
    }
    size_t n = plain ? 1 : json_len(content);
    struct llm_part *parts = arena_array(p->a, n, sizeof *parts);
    if (plain) {
        parts[0].text = json_str(content, STR_EMPTY);
    }
    for (size_t i = 0; i < n && !plain; i++) {
        struct json *v = json_item(content, i);
        struct llm_fields f;
        if (!json_is(v, JSON_OBJECT)) {
            return wrong(p, key, "must hold objects", e);
        }
        llm_fields_init(&f, p->a, v);
        if (read_known(&f, &parts[i])) {
            parts[i].extra = llm_rest(&f);
        } else {
            parts[i] = (struct llm_part) { .kind = LLM_PART_OTHER, .extra = v };
        }
    }
    *ret = (struct content) { parts, n, plain };
    return 0;
}

/* --- items --- */

static int read_message(const struct place *p, struct llm_fields *f, struct llm_message *ret,
                        struct err *e)
{
    struct str role = llm_take_str(f, "role");
    struct content content;
    if (str_eqc(role, "user")) {
        ret->role = LLM_USER;
    } else if (str_eqc(role, "assistant")) {
        ret->role = LLM_ASSISTANT;
    } else if (str_eqc(role, "developer") || str_eqc(role, "system")) {
        ret->role = LLM_SYSTEM;
        ret->developer = str_eqc(role, "developer");
    } else {
        return wrong(p, ".role", "must be user, assistant, system or developer", e);
    }
    int r = read_content(p, llm_take(f, "content"), ".content", &content, e);
    if (r < 0) {
        return r;
    }
    ret->parts = content.parts;
    ret->n_parts = content.n;
    ret->spelling |= content.plain ? RESPONSES_PLAIN : 0;
    ret->extra = llm_rest(f);
    return 0;
}

static int read_call(const struct place *p, struct llm_fields *f, bool custom, struct llm_part *ret,
                     struct err *e)
{
    const char *key = custom ? "input" : "arguments";
    struct llm_call *c = &ret->call;
    struct json *text = llm_take_type(f, key, JSON_STRING);
    ret->kind = LLM_PART_CALL;
    c->id = llm_take_str(f, "call_id");
    c->name = llm_take_str(f, "name");
    c->ns = llm_take_str(f, "namespace");
    c->custom = custom;
    c->text = json_str(text, STR_EMPTY);
    if (c->name.len == 0) {
        return wrong(p, ".name", "must be a string and not empty", e);
    }
    if (text == NULL) {
        return wrong(p, custom ? ".input" : ".arguments", "must be a string", e);
    }
    if (!custom) {
        llm_call_set_text(p->a, c, c->text);
    }
    ret->extra = llm_rest(f);
    return 0;
}

static int read_output(const struct place *p, struct llm_fields *f, bool custom,
                       struct llm_part *ret, struct err *e)
{
    struct content content;
    ret->kind = LLM_PART_RESULT;
    ret->result.call_id = llm_take_str(f, "call_id");
    ret->result.custom = custom;
    if (ret->result.call_id.len == 0) {
        return wrong(p, ".call_id", "must be a string and not empty", e);
    }
    int r = read_content(p, llm_take(f, "output"), ".output", &content, e);
    if (r < 0) {
        return r;
    }
    ret->result.parts = content.parts;
    ret->result.n_parts = content.n;
    ret->result.spelling = content.plain ? RESPONSES_PLAIN : 0;
    ret->extra = llm_rest(f);
    return 0;
}

/* The texts of a list of { "text": … }, with empty lines between them. */
static struct str join_texts(struct arena *a, const struct json *list)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    for (size_t i = 0; i < json_len(list) && json_is(list, JSON_ARRAY); i++) {
        buf_adds(&b, i > 0 ? "\n\n" : "");
        buf_add(&b, json_str(json_get(json_item(list, i), "text"), STR_EMPTY));
    }
    return arena_str(a, buf_str(&b));
}

/* One summary text is the usual case and becomes the thought; anything else stays beside it. */
static void read_reasoning(const struct place *p, struct llm_fields *f, struct llm_part *ret)
{
    const struct json *summary = json_get(f->object, "summary");
    const struct json *only = json_item(summary, 0);
    struct str type = json_str(json_get(only, "type"), STR_EMPTY);
    ret->kind = LLM_PART_THINKING;
    ret->spelling = RESPONSES_ITEM;
    ret->id = llm_take_str(f, "id");
    ret->signature = llm_take_str(f, "encrypted_content");
    ret->text = join_texts(p->a, summary);
    if (json_is(summary, JSON_ARRAY) && json_len(summary) == 1 && json_len(only) == 2 &&
        str_eqc(type, "summary_text") && ret->text.len > 0) {
        (void)llm_take(f, "summary");
        ret->spelling = RESPONSES_SUMMARY;
    }
    if (ret->text.len == 0) {
        ret->text = join_texts(p->a, json_get(f->object, "content"));
    }
    ret->redacted = ret->text.len == 0 && ret->signature.len > 0;
    ret->extra = llm_rest(f);
}

static enum llm_role role_of(struct str type)
{
    if (str_ends(type, STR("_output")) || str_ends(type, STR("_response"))) {
        return LLM_USER;
    }
    return str_ends(type, STR("_call")) ? LLM_ASSISTANT : LLM_SYSTEM;
}

/* The item stays whole; tools that it brings are also listed with the others, as late ones. */
static int read_other(const struct place *p, struct json *item, struct str type,
                      struct llm_message *ret, struct responses_tools *tools, struct err *e)
{
    struct llm_part *part = ARENA_NEW(p->a, struct llm_part);
    *part = (struct llm_part) {
        .kind = LLM_PART_OTHER, .id = type, .extra = item, .spelling = RESPONSES_ITEM
    };
    *ret = (struct llm_message) { .role = role_of(type), .parts = part, .n_parts = 1 };
    if (!json_is(json_get(item, "tools"), JSON_ARRAY)) {
        return 0;
    }
    const char *where = arena_printf(p->a, "input[%zu].tools", p->item);
    return responses_tools_read(tools, json_get(item, "tools"), true, where, e);
}

int responses_item_read(struct arena *a, struct json *item, size_t index, struct llm_message *ret,
                        struct responses_tools *tools, struct err *e)
{
    struct place p = { a, index };
    struct llm_fields f;
    if (!json_is(item, JSON_OBJECT)) {
        return wrong(&p, "", "must be an object", e);
    }
    llm_fields_init(&f, a, item);
    bool typed = json_is(json_get(item, "type"), JSON_STRING);
    struct str type = llm_take_str(&f, "type");
    if (!typed) { /* the easy forms */
        type = json_get(item, "role") != NULL ? STR("message") : STR("item_reference");
    }
    if (str_eqc(type, "message")) {
        ret->spelling = typed ? 0 : RESPONSES_UNTYPED;
        return read_message(&p, &f, ret, e);
    }
    bool custom = str_starts(type, STR("custom_"));
    bool call = str_eqc(type, "function_call") || str_eqc(type, "custom_tool_call");
    bool output = str_eqc(type, "function_call_output") || str_eqc(type, "custom_tool_call_output");
    if (!call && !output && !str_eqc(type, "reasoning")) {
        return read_other(&p, item, type, ret, tools, e);
    }
    struct llm_part *part = ARENA_NEW(a, struct llm_part);
    *ret = (struct llm_message) { .role = output ? LLM_USER : LLM_ASSISTANT,
                                  .parts = part,
                                  .n_parts = 1 };
    if (call) {
        return read_call(&p, &f, custom, part, e);
    }
    if (output) {
        return read_output(&p, &f, custom, part, e);
    }
    read_reasoning(&p, &f, part);
    return 0;
}

/* --- references --- */

static bool is_reference(const struct llm_message *m)
{
    return m->n_parts == 1 && m->parts[0].kind == LLM_PART_OTHER &&
           str_eqc(m->parts[0].id, "item_reference");
}

int responses_resolve(struct arena *a, struct llm_request *r, struct err *e)
{
    struct llm_message *copies = arena_array(a, r->n_messages, sizeof *copies);
    struct responses_tools tools = { .arena = a };
    for (size_t i = 0; i < r->n_messages; i++) {
        copies[i] = r->messages[i];
        if (!is_reference(&copies[i])) {
            continue;
        }
        struct str id = json_str(json_get(copies[i].parts[0].extra, "id"), STR_EMPTY);
        struct str text =
            llm_store_get(r->store, str_of(arena_printf(a, "item:%.*s", STR_ARG(id))));
        struct json *item = NULL;
        if (text.len == 0 || json_parse(a, arena_str(a, text), NULL, &item, NULL) < 0) {
            continue; /* it is refused, with its id */
        }
        copies[i] = (struct llm_message) { 0 };
        int result = responses_item_read(a, item, i, &copies[i], &tools, e);
        if (result < 0) {
            return result;
        }
    }
    r->messages = copies;
    return 0;
}
