/* SPDX-License-Identifier: MIT
 *
 * A canonical request as the body of a Responses call. What was read from this format comes out as
 * it was; what came from another one is given the values that keep its meaning here (strict false,
 * store false).
 */
#include "llm/responses_priv.h"
#include "llm/sampling.h"

struct out {
    struct arena *a;
    const struct llm_request *r;
    struct llm_losses *losses;
    bool own; /* read from this format */
    struct json *input;
};

static struct json *typed(struct arena *a, const char *type)
{
    struct json *v = json_object(a);
    llm_set_cstr(a, v, "type", type);
    return v;
}

/* --- content --- */

static struct json *write_media(struct arena *a, const struct llm_media *m)
{
    if (m->kind == LLM_MEDIA_AUDIO && m->data.len > 0) {
        struct json *v = typed(a, "input_audio");
        struct json *audio = llm_set_object(a, v, "input_audio");
        llm_set_str(a, audio, "data", m->data);
        llm_set_str(a, audio, "format", str_slice(m->mime, strlen("audio/"), m->mime.len));
        return v;
    }
    bool image = m->kind == LLM_MEDIA_IMAGE;
    bool inlined = m->data.len > 0;
    struct json *v = typed(a, image ? "input_image" : "input_file");
    const char *key = image ? "image_url" : inlined ? "file_data" : "file_url";
    llm_set_str(a, v, key, inlined ? llm_media_data_url(a, m) : m->url);
    if (!image) {
        llm_put_str(a, v, "filename", m->name);
    }
    return v;
}

/* With the members that this API requires and others do not have. */
static struct json *write_foreign_media(struct arena *a, const struct llm_media *m)
{
    struct json *v = write_media(a, m);
    if (m->kind == LLM_MEDIA_IMAGE) {
        llm_set_cstr(a, v, "detail", "auto");
    } else if (m->kind == LLM_MEDIA_DOCUMENT && m->data.len > 0 && m->name.len == 0) {
        llm_set_cstr(a, v, "filename", "document");
    }
    return v;
}

/* The words of an assistant of another format: a list would have to have the id of an item. */
static bool is_foreign_text(const struct out *o, const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        if (m->parts[i].kind != LLM_PART_TEXT && m->parts[i].kind != LLM_PART_CALL &&
            m->parts[i].kind != LLM_PART_THINKING) {
            return false;
        }
    }
    return !o->own && m->role == LLM_ASSISTANT;
}

/* A piece of a message's content, or of a result; NULL when it cannot be said. */
static struct json *write_piece(struct out *o, const struct llm_part *p, bool assistant)
{
    struct json *v = NULL;
    if (!o->own && p->kind == LLM_PART_TEXT && p->text.len == 0) {
        return NULL;
    }
    if (p->kind == LLM_PART_TEXT || (p->kind == LLM_PART_MEDIA && p->text.len > 0)) {
        bool output = (p->spelling & RESPONSES_OUTPUT_TEXT) != 0 ||
                      (assistant && (p->spelling & RESPONSES_INPUT_TEXT) == 0);
        v = typed(o->a, output ? "output_text" : "input_text");
        llm_set_str(o->a, v, "text", p->text);
    } else if (p->kind == LLM_PART_REFUSAL) {
        v = typed(o->a, "refusal");
        llm_set_str(o->a, v, "refusal", p->text);
    } else if (p->kind == LLM_PART_MEDIA && (!assistant || o->own)) {
        v = o->own ? write_media(o->a, &p->media) : write_foreign_media(o->a, &p->media);
    } else if (p->kind == LLM_PART_MEDIA) {
        llm_lost(o->losses, STR("messages[].content[]"), "responses takes no media of the model");
        return NULL;
    } else {
        return p->extra;
    }
    llm_put_rest(o->a, v, p->extra);
    return v;
}

static struct json *write_pieces(struct out *o, const struct llm_part *parts, size_t n)
{
    struct json *list = json_array(o->a);
    for (size_t i = 0; i < n; i++) {
        struct json *v = write_piece(o, &parts[i], false);
        if (v != NULL) {
            json_push(o->a, list, v);
        }
    }
    return list;
}

/* --- items --- */

static const char *role_word(const struct llm_message *m, bool own)
{
    if (m->role == LLM_SYSTEM) {
        return m->developer || !own ? "developer" : "system";
    }
    return m->role == LLM_USER ? "user" : "assistant";
}

static struct str join_content(struct arena *a, const struct json *content)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT * 2);
    for (size_t i = 0; i < json_len(content); i++) {
        buf_add(&text, json_str(json_get(json_item(content, i), "text"), STR_EMPTY));
    }
    return arena_str(a, buf_str(&text));
}

static void write_message(struct out *o, const struct llm_message *m, struct json *content,
                          bool first)
{
    struct json *v = json_object(o->a);
    if ((m->spelling & RESPONSES_UNTYPED) == 0) {
        llm_set_cstr(o->a, v, "type", "message");
    }
    llm_set_cstr(o->a, v, "role", role_word(m, o->own));
    if ((m->spelling & RESPONSES_PLAIN) != 0 && m->n_parts == 1) {
        llm_set_str(o->a, v, "content", m->parts[0].text);
    } else if (is_foreign_text(o, m)) {
        llm_set_str(o->a, v, "content", join_content(o->a, content));
    } else {
        llm_put(o->a, v, "content", content);
    }
    if (first) {
        llm_put_rest(o->a, v, m->extra);
    }
    json_push(o->a, o->input, v);
}

static void write_call(struct out *o, const struct llm_part *p)
{
    const struct llm_call *c = &p->call;
    struct json *v = typed(o->a, c->custom ? "custom_tool_call" : "function_call");
    llm_put_str(o->a, v, "call_id", c->id);
    llm_set_str(o->a, v, "name", c->name);
    llm_put_str(o->a, v, "namespace", c->ns);
    struct str text = c->text.len == 0 && !c->custom && !o->own ? STR("{}") : c->text;
    llm_set_str(o->a, v, c->custom ? "input" : "arguments", text);
    llm_put_rest(o->a, v, p->extra);
    json_push(o->a, o->input, v);
}

static void write_result(struct out *o, const struct llm_part *p)
{
    const struct llm_result *res = &p->result;
    struct json *v = typed(o->a, res->custom ? "custom_tool_call_output" : "function_call_output");
    llm_set_str(o->a, v, "call_id", res->call_id);
    bool single = res->n_parts == 1 && res->parts[0].kind == LLM_PART_TEXT;
    bool plain = o->own ? (res->spelling & RESPONSES_PLAIN) != 0 : res->n_parts == 0;
    if (single && (plain || !o->own)) {
        llm_set_str(o->a, v, "output", res->parts[0].text);
    } else if (plain) {
        llm_set_cstr(o->a, v, "output", "");
    } else {
        llm_put(o->a, v, "output", write_pieces(o, res->parts, res->n_parts));
    }
    if (res->is_error) {
        llm_lost(o->losses, STR("messages[].content[].is_error"),
                 "responses has no field for it: the words of the result must tell");
    }
    llm_put_rest(o->a, v, p->extra);
    json_push(o->a, o->input, v);
}

/* A thought is an item that the provider made and signed; one of another provider's it refuses. */
static void write_thought(struct out *o, const struct llm_part *p)
{
    if (!o->own && p->signature.len == 0) {
        llm_lost(o->losses, STR("messages[].content[].thinking"),
                 "responses takes back its own reasoning only");
        return;
    }
    struct json *v = typed(o->a, "reasoning");
    llm_put_str(o->a, v, "id", p->id);
    llm_put_rest(o->a, v, p->extra);
    if (p->text.len == 0 && !o->own) {
        (void)llm_set_array(o->a, v, "summary");
    } else if (p->spelling == 0 || p->spelling == RESPONSES_SUMMARY) { /* 0: not from the wire */
        struct json *summary = llm_set_array(o->a, v, "summary");
        struct json *text = typed(o->a, "summary_text");
        llm_set_str(o->a, text, "text", p->text);
        json_push(o->a, summary, text);
    }
    llm_put_str(o->a, v, "encrypted_content", p->signature);
    json_push(o->a, o->input, v);
}

static bool is_item(const struct llm_part *p)
{
    return p->kind == LLM_PART_CALL || p->kind == LLM_PART_RESULT || p->kind == LLM_PART_THINKING ||
           (p->kind == LLM_PART_OTHER && (p->spelling & RESPONSES_ITEM) != 0);
}

static void write_item(struct out *o, const struct llm_part *p)
{
    if (p->kind == LLM_PART_CALL) {
        write_call(o, p);
    } else if (p->kind == LLM_PART_RESULT) {
        write_result(o, p);
    } else if (p->kind == LLM_PART_THINKING) {
        write_thought(o, p);
    } else {
        json_push(o->a, o->input, p->extra);
    }
}

/* Text and media gather in one message item; calls, results and thoughts are items of their own. */
static void write_turn(struct out *o, const struct llm_message *m)
{
    struct json *content = NULL;
    bool first = true;
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct llm_part *p = &m->parts[i];
        if (!is_item(p)) {
            struct json *piece = write_piece(o, p, m->role == LLM_ASSISTANT);
            content = content == NULL ? json_array(o->a) : content;
            if (piece != NULL) {
                json_push(o->a, content, piece);
            }
            continue;
        }
        if (json_len(content) > 0) {
            write_message(o, m, content, first);
            first = false;
        }
        content = NULL;
        write_item(o, p);
    }
    if (json_len(content) > 0 || (m->n_parts == 0 && o->own)) {
        write_message(o, m, content == NULL ? json_array(o->a) : content, first);
    }
}

/* --- tools --- */

static struct json *write_tool(struct out *o, const struct llm_tool *t)
{
    if (t->kind == LLM_TOOL_HOSTED) {
        struct json *whole = t->ns.len > 0 ? json_copy(o->a, t->extra) : t->extra;
        (void)(t->ns.len > 0 && json_remove(whole, STR(RESPONSES_NAMESPACE)));
        return whole;
    }
    bool function = t->kind == LLM_TOOL_FUNCTION;
    struct json *v = typed(o->a, function ? "function" : "custom");
    llm_set_str(o->a, v, "name", t->name);
    llm_put_str(o->a, v, "description", t->description);
    if (function && t->schema != NULL) {
        llm_put(o->a, v, "parameters", t->schema);
    } else if (function && !o->own) {
        struct json *schema = llm_set_object(o->a, v, "parameters");
        llm_set_cstr(o->a, schema, "type", "object");
        (void)llm_set_object(o->a, schema, "properties");
    }
    if (function && (t->strict || !o->own)) { /* absent means here: strict if possible */
        llm_set_bool(o->a, v, "strict", t->strict);
    }
    llm_put_rest(o->a, v, t->extra);
    (void)json_remove(v, STR(RESPONSES_NAMESPACE));
    return v;
}

static struct json *open_namespace(struct arena *a, const struct llm_tool *t, struct json *list)
{
    struct json *v = typed(a, "namespace");
    llm_set_str(a, v, "name", t->ns);
    llm_put_rest(a, v, json_get(t->extra, RESPONSES_NAMESPACE));
    json_push(a, list, v);
    return llm_set_array(a, v, "tools");
}

static void write_tools(struct out *o, struct json *body)
{
    struct json *list = json_array(o->a);
    struct json *inner = list;
    struct str ns = STR_EMPTY;
    for (size_t i = 0; i < o->r->n_tools; i++) {
        const struct llm_tool *t = &o->r->tools[i];
        if ((t->spelling & RESPONSES_LATE) != 0) {
            continue;
        }
        bool opens = !str_eq(ns, t->ns) || json_get(t->extra, RESPONSES_NAMESPACE) != NULL;
        ns = t->ns;
        if (ns.len == 0) {
            inner = list;
        } else if (opens) {
            inner = open_namespace(o->a, t, list);
        }
        json_push(o->a, inner, write_tool(o, t));
    }
    if (json_len(list) > 0 || (o->r->spelling & RESPONSES_EMPTY) != 0) {
        llm_put(o->a, body, "tools", list);
    }
}

static void write_choice(struct out *o, struct json *body)
{
    static const char *const words[] = {
        [LLM_CHOICE_AUTO] = "auto", [LLM_CHOICE_NONE] = "none", [LLM_CHOICE_ANY] = "required"
    };
    const struct llm_request *r = o->r;
    if (r->choice == LLM_CHOICE_DEFAULT || json_get(r->extra, "tool_choice") != NULL) {
        return; /* the extras say it in full */
    }
    if (r->choice != LLM_CHOICE_TOOL) {
        llm_set_cstr(o->a, body, "tool_choice", words[r->choice]);
        return;
    }
    const struct llm_tool *t = o->own ? NULL : llm_tool_find(r, r->choice_name);
    bool custom =
        (r->spelling & RESPONSES_CUSTOM) != 0 || (t != NULL && t->kind == LLM_TOOL_CUSTOM);
    struct json *v = llm_set_object(o->a, body, "tool_choice");
    llm_set_cstr(o->a, v, "type", custom ? "custom" : "function");
    llm_set_str(o->a, v, "name", r->choice_name);
}

/* --- the head of the body --- */

/* OpenAI's reasoning models refuse some of them; see sampling.h. */
static struct llm_sampling allowed_sampling(struct out *o)
{
    const struct llm_sampling_mode mode = { .format = LLM_RESPONSES,
                                            .model = o->r->model,
                                            .effort = o->r->reasoning.off
                                                          ? STR("none")
                                                          : o->r->reasoning.effort };
    return o->own ? o->r->sampling : llm_sampling_allowed(&mode, &o->r->sampling, o->losses);
}

static void write_sampling(struct out *o, struct json *body)
{
    const struct llm_sampling allowed = allowed_sampling(o);
    const struct llm_sampling *s = &allowed;
    const struct {
        bool has;
        struct str name;
    } lost[] = {
        { s->has_top_k, STR("top_k") },
        { s->has_presence, STR("presence_penalty") },
        { s->has_frequency, STR("frequency_penalty") },
        { s->has_seed, STR("seed") },
        { s->n_stops > 0, STR("stop") },
    };
    if (s->max_tokens > 0) {
        llm_set_int(o->a, body, "max_output_tokens", s->max_tokens);
    }
    if (s->has_temperature) {
        llm_put(o->a, body, "temperature", json_number(o->a, s->temperature));
    }
    if (s->has_top_p) {
        llm_put(o->a, body, "top_p", json_number(o->a, s->top_p));
    }
    for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
        if (lost[i].has) {
            llm_lost(o->losses, lost[i].name, "responses has no field for it");
        }
    }
}

/* A number of tokens as the nearest word; the borders are those of the providers' own tables. */
static struct str effort_of(const struct llm_reasoning *q)
{
    if (q->effort.len > 0) {
        return q->effort;
    }
    if (q->off) {
        return STR("none");
    }
    if (q->budget <= 0) {
        return STR_EMPTY;
    }
    return q->budget <= 2048 ? STR("low") : q->budget <= 12288 ? STR("medium") : STR("high");
}

static void write_reasoning(struct out *o, struct json *body)
{
    const struct llm_reasoning *q = &o->r->reasoning;
    if (!q->given) {
        return;
    }
    struct json *v = llm_set_object(o->a, body, "reasoning");
    llm_put_str(o->a, v, "effort", o->own ? q->effort : effort_of(q));
    if (q->summary && json_pointer(o->r->extra, STR("/reasoning/summary")) == NULL) {
        llm_set_cstr(o->a, v, "summary", "auto");
    }
    if (q->budget > 0) {
        llm_lost(o->losses, STR("reasoning.budget"), "responses knows words for effort only");
    }
}

static void write_output(struct out *o, struct json *body)
{
    const struct llm_output *q = &o->r->output;
    if (!q->json) {
        return;
    }
    struct json *format = llm_set_object(o->a, llm_set_object(o->a, body, "text"), "format");
    llm_set_cstr(o->a, format, "type", q->schema != NULL ? "json_schema" : "json_object");
    if (q->schema != NULL) {
        llm_put_str(o->a, format, "name", q->name.len > 0 || o->own ? q->name : STR("output"));
        llm_put(o->a, format, "schema", q->schema);
        if (q->strict || !o->own) {
            llm_set_bool(o->a, format, "strict", q->strict);
        }
    }
}

int responses_write(struct arena *a, const struct llm_request *r, struct llm_losses *losses,
                    struct json **ret, struct err *e)
{
    struct json *body = json_object(a);
    struct out o = { a, r, losses, r->format == LLM_RESPONSES, json_array(a) };
    (void)e;
    llm_put_str(a, body, "model", r->model);
    if (r->stream || (r->spelling & RESPONSES_STREAM) != 0) {
        llm_set_bool(a, body, "stream", r->stream);
    }
    if (r->n_system > 0) {
        llm_set_str(a, body, "instructions", llm_join_text(a, r->system, r->n_system, "\n\n"));
    }
    for (size_t i = 0; i < r->n_messages; i++) {
        write_turn(&o, &r->messages[i]);
    }
    if ((r->spelling & RESPONSES_PLAIN) != 0 && r->n_messages == 1) {
        llm_set_str(a, body, "input", r->messages[0].parts[0].text);
    } else if ((r->spelling & RESPONSES_NO_INPUT) == 0 || r->n_messages > 0) {
        llm_put(a, body, "input", o.input);
    }
    write_tools(&o, body);
    write_choice(&o, body);
    if (r->parallel_given) {
        llm_set_bool(a, body, "parallel_tool_calls", r->parallel);
    }
    write_reasoning(&o, body);
    write_output(&o, body);
    write_sampling(&o, body);
    if (!o.own) { /* the client did not agree to the conversation being stored */
        llm_set_bool(a, body, "store", false);
        bool reasons =
            llm_is_openai_reasoning(r->model) && str_find(r->model, STR("-chat")) == r->model.len;
        if (reasons || (r->reasoning.given && !r->reasoning.off)) {
            json_push(a, llm_set_array(a, body, "include"),
                      json_cstr(a, "reasoning.encrypted_content"));
        }
    }
    llm_put_rest(a, body, r->extra);
    *ret = body;
    return 0;
}
