/* SPDX-License-Identifier: MIT
 *
 * A canonical request as the body of a Gemini call. Contents of foreign requests are joined, since
 * here turns alternate and all results of a turn's calls stand in one content.
 */
#include <ctype.h>

#include "llm/gemini_priv.h"

struct out {
    struct arena *a;
    const struct llm_request *r;
    struct llm_losses *losses;
    bool own; /* read from this format */
    struct json *contents;
};

/* --- parts --- */

static void write_media(struct arena *a, const struct llm_media *m, struct json *v)
{
    bool inlined = m->data.len > 0;
    struct json *blob = llm_set_object(a, v, inlined ? "inlineData" : "fileData");
    llm_put_str(a, blob, "mimeType", m->mime);
    llm_put_str(a, blob, "displayName", m->name);
    if (inlined) {
        llm_set_str(a, blob, "data", m->data);
    } else {
        llm_set_str(a, blob, "fileUri", m->url);
    }
}

static void write_call(struct out *o, const struct llm_part *p, struct json *v)
{
    struct json *call = llm_set_object(o->a, v, "functionCall");
    llm_put_str(o->a, call, "id", p->call.id);
    llm_set_str(o->a, call, "name", p->call.name);
    if (!o->own || (p->spelling & GEMINI_NO_ARGS) == 0) {
        llm_put(o->a, call, "args", llm_call_input(o->a, &p->call));
    }
}

/* Text of a tool stands under "output" or "error", as Google's own clients have it. */
static struct json *response_of(struct out *o, const struct llm_result *res)
{
    if (res->value != NULL) {
        return res->value;
    }
    struct json *v = json_object(o->a);
    llm_set_str(o->a, v, res->is_error ? "error" : "output",
                llm_join_text(o->a, res->parts, res->n_parts, "\n"));
    return v;
}

static void write_result(struct out *o, const struct llm_part *p, struct json *v)
{
    const struct llm_result *res = &p->result;
    struct json *response = llm_set_object(o->a, v, "functionResponse");
    llm_put_str(o->a, response, "id", res->call_id);
    llm_set_str(o->a, response, "name", res->name.len > 0 ? res->name : STR("unknown"));
    llm_put(o->a, response, "response",
            (res->spelling & GEMINI_NO_RESPONSE) != 0 ? NULL : response_of(o, res));
    if ((res->spelling & GEMINI_MEDIA_PARTS) == 0) {
        return;
    }
    struct json *list = llm_set_array(o->a, response, "parts");
    for (size_t i = 0; i < res->n_parts; i++) {
        struct json *part = json_object(o->a);
        write_media(o->a, &res->parts[i].media, part);
        llm_put_rest(o->a, part, res->parts[i].extra);
        json_push(o->a, list, part);
    }
}

/* Models before the third generation take no media inside of a response: it stands beside it. */
static void write_result_media(struct out *o, const struct llm_result *res, struct json *parts)
{
    for (size_t i = 0; i < res->n_parts && (res->spelling & GEMINI_MEDIA_PARTS) == 0; i++) {
        if (res->parts[i].kind == LLM_PART_MEDIA) {
            struct json *v = json_object(o->a);
            write_media(o->a, &res->parts[i].media, v);
            json_push(o->a, parts, v);
        }
    }
}

static void write_part(struct out *o, const struct llm_part *p, struct json *parts)
{
    struct json *v = json_object(o->a);
    switch (p->kind) {
    case LLM_PART_OTHER:
        json_push(o->a, parts, p->extra);
        return;
    case LLM_PART_MEDIA:
        if (p->text.len == 0) {
            write_media(o->a, &p->media, v);
            break;
        }
        llm_set_str(o->a, v, "text", p->text);
        break;
    case LLM_PART_CALL:
        write_call(o, p, v);
        break;
    case LLM_PART_RESULT:
        write_result(o, p, v);
        break;
    case LLM_PART_TEXT:
    case LLM_PART_REFUSAL:
    case LLM_PART_THINKING:
        llm_set_str(o->a, v, "text", p->text);
        if (p->kind == LLM_PART_THINKING) {
            llm_set_bool(o->a, v, "thought", true);
        }
        break;
    }
    llm_put_str(o->a, v, "thoughtSignature", p->signature);
    llm_put_rest(o->a, v, p->extra);
    json_push(o->a, parts, v);
    if (p->kind == LLM_PART_RESULT) {
        write_result_media(o, &p->result, parts);
    }
}

/* Thoughts of another model are no history for this one, and its checks want its own signatures. */
static bool is_foreign_thought(struct out *o, const struct llm_part *p)
{
    if (o->own || p->kind != LLM_PART_THINKING || p->signature.len > 0) {
        return false;
    }
    llm_lost(o->losses, STR("messages[].content[].thinking"), "gemini takes back its own only");
    return true;
}

/* --- contents --- */

static const char *role_of(struct out *o, const struct llm_message *m)
{
    if (m->role == LLM_SYSTEM) {
        llm_lost(o->losses, STR("messages[].role: system"),
                 "gemini has system text before the conversation only: it speaks as the user");
    }
    if ((m->spelling & GEMINI_FUNCTION_ROLE) != 0) {
        return "function";
    }
    return m->role == LLM_ASSISTANT ? "model" : "user";
}

/* The parts of the content that this message continues; a new one if it cannot. */
static struct json *parts_for(struct out *o, const struct llm_message *m)
{
    size_t n = json_len(o->contents);
    const char *role = role_of(o, m);
    struct json *last = n > 0 ? json_item(o->contents, n - 1) : NULL;
    if (!o->own && last != NULL && str_eqc(json_str(json_get(last, "role"), STR_EMPTY), role)) {
        return json_get(last, "parts");
    }
    struct json *v = json_object(o->a);
    if ((m->spelling & GEMINI_NO_ROLE) == 0) {
        llm_set_cstr(o->a, v, "role", role);
    }
    bool none = m->n_parts == 0 && (m->spelling & GEMINI_NO_PARTS) != 0;
    struct json *parts = none ? NULL : llm_set_array(o->a, v, "parts");
    llm_put_rest(o->a, v, m->extra);
    json_push(o->a, o->contents, v);
    return parts;
}

static void write_message(struct out *o, const struct llm_message *m)
{
    struct json *parts = NULL;
    if (o->own && m->n_parts == 0) {
        (void)parts_for(o, m);
    }
    for (size_t i = 0; i < m->n_parts; i++) {
        if (is_foreign_thought(o, &m->parts[i])) {
            continue;
        }
        parts = parts == NULL ? parts_for(o, m) : parts;
        write_part(o, &m->parts[i], parts);
    }
}

/* Models since the third generation refuse a call without the signature that they gave it. Where it
 * is not known, Google's word for that case stands in its place. */
static bool needs_signatures(struct str model)
{
    static const char *const old[] = { "*gemini-1*", "*gemini-2*", "*gemma*" };
    for (size_t i = 0; i < ARRAY_LEN(old); i++) {
        if (str_glob(str_of(old[i]), model, true)) {
            return false;
        }
    }
    return true;
}

static void sign_calls(struct out *o)
{
    for (size_t i = 0; i < json_len(o->contents) && needs_signatures(o->r->model); i++) {
        const struct json *parts = json_get(json_item(o->contents, i), "parts");
        struct json *first = NULL;
        for (size_t j = 0; j < json_len(parts) && first == NULL; j++) {
            bool call = json_get(json_item(parts, j), "functionCall") != NULL;
            first = call ? json_item(parts, j) : NULL;
        }
        if (first != NULL && json_get(first, "thoughtSignature") == NULL) {
            llm_set_cstr(o->a, first, "thoughtSignature", "skip_thought_signature_validator");
            llm_lost(o->losses, STR("messages[]: thought signature"),
                     "it is not known; gemini skips its check");
        }
    }
}

/* What stands before the conversation in other formats is the instruction here. */
static void write_system(struct out *o, size_t leading, struct json *body)
{
    const struct llm_request *r = o->r;
    if ((r->spelling & GEMINI_PLAIN_SYSTEM) != 0 && r->n_system == 1) {
        llm_set_str(o->a, body, "systemInstruction", r->system[0].text);
        return;
    }
    struct json *parts = json_array(o->a);
    for (size_t i = 0; i < r->n_system; i++) {
        write_part(o, &r->system[i], parts);
    }
    for (size_t i = 0; i < leading; i++) {
        for (size_t j = 0; j < r->messages[i].n_parts; j++) {
            write_part(o, &r->messages[i].parts[j], parts);
        }
    }
    if (json_len(parts) > 0) {
        llm_put(o->a, llm_set_object(o->a, body, "systemInstruction"), "parts", parts);
    }
}

/* --- tools --- */

static struct json *write_declaration(struct out *o, const struct llm_tool *t)
{
    struct json *v = json_object(o->a);
    llm_set_str(o->a, v, "name", t->name);
    llm_put_str(o->a, v, "description", t->description);
    if (json_get(t->extra, "parameters") == NULL) {
        llm_put(o->a, v, "parametersJsonSchema", t->schema);
    }
    llm_put_rest(o->a, v, t->extra);
    return v;
}

static void write_tools(struct out *o, struct json *body)
{
    const struct llm_request *r = o->r;
    struct json *list = json_array(o->a);
    struct json *entry = NULL;
    for (size_t i = 0; i < r->n_tools; i++) {
        const struct llm_tool *t = &r->tools[i];
        if (entry == NULL || t->spelling != r->tools[i - 1].spelling) {
            entry = json_object(o->a);
            json_push(o->a, list, entry);
        }
        if (t->kind == LLM_TOOL_HOSTED) {
            llm_put_rest(o->a, entry, t->extra);
            continue;
        }
        if (t->strict) {
            llm_lost(o->losses, STR("tools[].strict"), "gemini has no field for it");
        }
        struct json *functions = json_get(entry, "functionDeclarations");
        if (functions == NULL) {
            functions = llm_set_array(o->a, entry, "functionDeclarations");
        }
        json_push(o->a, functions, write_declaration(o, t));
    }
    if (json_len(list) > 0 || (r->spelling & GEMINI_EMPTY_TOOLS) != 0) {
        llm_put(o->a, body, "tools", list);
    }
}

static void write_choice(struct out *o, struct json *body)
{
    static const char *const modes[] = { [LLM_CHOICE_AUTO] = "AUTO",
                                         [LLM_CHOICE_NONE] = "NONE",
                                         [LLM_CHOICE_ANY] = "ANY",
                                         [LLM_CHOICE_TOOL] = "ANY" };
    const struct llm_request *r = o->r;
    if (r->parallel_given && !r->parallel) {
        llm_lost(o->losses, STR("parallel_tool_calls"), "gemini has no field for it");
    }
    if (r->choice == LLM_CHOICE_DEFAULT || (r->n_tools == 0 && !o->own)) {
        return;
    }
    struct json *config = llm_set_object(o->a, body, "toolConfig");
    struct json *calling = llm_set_object(o->a, config, "functionCallingConfig");
    llm_set_cstr(o->a, calling, "mode", modes[r->choice]);
    if (r->choice == LLM_CHOICE_TOOL) {
        json_push(o->a, llm_set_array(o->a, calling, "allowedFunctionNames"),
                  json_string(o->a, r->choice_name));
    }
}

/* --- generationConfig --- */

static struct str in_capitals(struct arena *a, struct str word)
{
    char *copy = arena_dup(a, word);
    for (size_t i = 0; i < word.len; i++) {
        copy[i] = (char)toupper((unsigned char)copy[i]);
    }
    return str_n(copy, word.len);
}

/* Models of the second generation know a number of tokens instead of a level; the numbers are
 * those of Google's own layer for OpenAI's clients. */
static int64_t budget_of(struct str effort)
{
    if (str_eqc(effort, "minimal") || str_eqc(effort, "low")) {
        return 1024;
    }
    return str_eqc(effort, "medium") ? 8192 : 24576;
}

/* Words of other formats that are none here become the nearest one. */
static struct str level_of(struct out *o, struct str effort)
{
    static const char *const known[] = { "minimal", "low", "medium", "high", NULL };
    return in_capitals(o->a, llm_word_in(effort, known) ? effort : STR("high"));
}

static void write_thinking(struct out *o, struct json *config)
{
    const struct llm_reasoning *q = &o->r->reasoning;
    if (!q->given) {
        return;
    }
    struct json *v = llm_set_object(o->a, config, "thinkingConfig");
    const struct json *rest = json_pointer(o->r->extra, STR("/generationConfig/thinkingConfig"));
    if (q->summary) {
        llm_set_bool(o->a, v, "includeThoughts", true);
    }
    bool effort = !o->own && !q->off && q->budget <= 0 && q->effort.len > 0;
    if (effort && str_glob(STR("*gemini-2*"), o->r->model, true)) {
        llm_set_int(o->a, v, "thinkingBudget", budget_of(q->effort));
    } else if ((q->budget != 0 && !effort) || q->off) {
        llm_set_int(o->a, v, "thinkingBudget", q->off ? 0 : q->budget);
    } else if (q->effort.len > 0 && json_get(rest, "thinkingLevel") == NULL &&
               json_get(rest, "thinking_level") == NULL) {
        llm_set_str(o->a, v, "thinkingLevel", level_of(o, q->effort));
    }
}

static void write_output(struct out *o, struct json *config)
{
    const struct llm_output *q = &o->r->output;
    const struct json *rest = json_get(o->r->extra, "generationConfig");
    if (q->json) {
        llm_set_cstr(o->a, config, "responseMimeType", "application/json");
    }
    if (json_get(rest, "responseSchema") == NULL && json_get(rest, "response_schema") == NULL) {
        llm_put(o->a, config, "responseJsonSchema", q->schema);
    }
}

static void put_real(struct out *o, struct json *config, const char *key, bool has, double value)
{
    if (has) {
        llm_put(o->a, config, key, json_number(o->a, value));
    }
}

static void put_int(struct out *o, struct json *config, const char *key, bool has, int64_t value)
{
    if (has) {
        llm_set_int(o->a, config, key, value);
    }
}

static void write_config(struct out *o, struct json *body)
{
    const struct llm_sampling *s = &o->r->sampling;
    struct json *config = json_object(o->a);
    put_real(o, config, "temperature", s->has_temperature, s->temperature);
    put_real(o, config, "topP", s->has_top_p, s->top_p);
    put_int(o, config, "topK", s->has_top_k, s->top_k);
    put_int(o, config, "maxOutputTokens", s->max_tokens > 0, s->max_tokens);
    put_int(o, config, "seed", s->has_seed, s->seed);
    put_real(o, config, "presencePenalty", s->has_presence, s->presence_penalty);
    put_real(o, config, "frequencyPenalty", s->has_frequency, s->frequency_penalty);
    if (s->n_stops > 0) {
        struct json *list = llm_set_array(o->a, config, "stopSequences");
        for (size_t i = 0; i < s->n_stops; i++) {
            json_push(o->a, list, json_string(o->a, s->stops[i]));
        }
    }
    write_thinking(o, config);
    write_output(o, config);
    if (json_len(config) > 0) {
        llm_put(o->a, body, "generationConfig", config);
    }
}

int gemini_write(struct arena *a, const struct llm_request *r, struct llm_losses *losses,
                 struct json **ret, struct err *e)
{
    struct json *body = json_object(a);
    struct out o = { a, r, losses, r->format == LLM_GEMINI, json_array(a) };
    size_t leading = llm_leading_system(r);
    (void)e;
    for (size_t i = leading; i < r->n_messages; i++) {
        write_message(&o, &r->messages[i]);
    }
    if (!o.own) {
        sign_calls(&o);
    }
    llm_put(a, body, "contents", o.contents);
    write_system(&o, leading, body);
    write_tools(&o, body);
    write_choice(&o, body);
    write_config(&o, body);
    llm_put_rest(a, body, r->extra);
    *ret = body;
    return 0;
}
