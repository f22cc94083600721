/* SPDX-License-Identifier: MIT
 *
 * Anthropic Messages: requests as they go to the provider. What came from another format is brought
 * into the order that this one insists on: roles alternate, the results of all calls stand at the
 * head of the message after them, system text is not a message.
 */
#include "llm/anthropic_priv.h"
#include "llm/sampling.h"

#define DEFAULT_MAX_TOKENS 32000 /* the member is required; every model since Claude 4 can do it */
#define MIN_BUDGET         1024  /* less is refused */
#define JSON_INSTRUCTION \
    "Respond with a single valid JSON object and nothing else: no prose, no code fence."

struct writer {
    struct arena *a;
    const struct llm_request *r;
    struct llm_losses *losses;
    bool own; /* the request came in this format: as it was, extras included */
};

/* --- parts --- */

/* Only letters, digits, _ and - are accepted; the same replacement in calls and results. */
static struct str clean_id(struct arena *a, struct str id)
{
    char *copy = arena_dup(a, id);
    bool changed = false;
    for (size_t i = 0; i < id.len; i++) {
        char c = copy[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '_' && c != '-') {
            copy[i] = '_';
            changed = true;
        }
    }
    return changed ? str_n(copy, id.len) : id;
}

static struct json *typed(struct arena *a, const char *type)
{
    struct json *v = json_object(a);
    llm_set_cstr(a, v, "type", type);
    return v;
}

static int media(struct writer *w, const struct llm_part *p, struct json **ret, struct err *e)
{
    struct arena *a = w->a;
    const struct llm_media *m = &p->media;
    if (m->kind != LLM_MEDIA_IMAGE && m->kind != LLM_MEDIA_DOCUMENT) {
        return ERR(e, ERR_UNSUPPORTED, "the Anthropic format has no audio or video input");
    }
    struct json *v = typed(a, m->kind == LLM_MEDIA_IMAGE ? "image" : "document");
    struct json *source = llm_set_object(a, v, "source");
    if (m->data.len > 0) {
        llm_set_cstr(a, source, "type", "base64");
        llm_put_str(a, source, "media_type", m->mime);
        llm_put_str(a, source, "data", m->data);
    } else if (m->url.len > 0) {
        llm_set_cstr(a, source, "type", "url");
        llm_put_str(a, source, "url", m->url);
    } else {
        llm_set_cstr(a, source, "type", "text");
        llm_put_str(a, source, "media_type", m->mime);
        llm_put_str(a, source, "data", p->text);
    }
    if (m->kind == LLM_MEDIA_DOCUMENT) {
        llm_put_str(a, v, "title", m->name);
    }
    *ret = v;
    return 0;
}

static int add_parts(struct writer *w, const struct llm_part *parts, size_t n, struct json *list,
                     struct err *e);

static int result(struct writer *w, const struct llm_part *p, struct json **ret, struct err *e)
{
    const struct llm_result *res = &p->result;
    struct json *v = typed(w->a, "tool_result");
    llm_put_str(w->a, v, "tool_use_id", w->own ? res->call_id : clean_id(w->a, res->call_id));
    bool text_only = res->n_parts == 1 && res->parts[0].kind == LLM_PART_TEXT;
    int r = 0;
    if (text_only && (!w->own || (res->spelling & ANTHROPIC_STRING) != 0)) {
        llm_set_str(w->a, v, "content", res->parts[0].text);
    } else if ((res->spelling & ANTHROPIC_NO_CONTENT) == 0 || res->n_parts > 0) {
        r = add_parts(w, res->parts, res->n_parts, llm_set_array(w->a, v, "content"), e);
    }
    if (res->is_error) {
        llm_set_bool(w->a, v, "is_error", true);
    }
    *ret = v;
    return r;
}

static struct json *thinking(struct writer *w, const struct llm_part *p)
{
    struct json *v = typed(w->a, p->redacted ? "redacted_thinking" : "thinking");
    if (!w->own && p->signature.len == 0) {
        llm_lost(w->losses, STR("messages[]: thinking"), "anthropic takes only what it signed");
        return NULL;
    }
    if (!p->redacted && !w->own) {
        llm_set_str(w->a, v, "thinking", p->text);
    } else if (!p->redacted) {
        llm_put_str(w->a, v, "thinking", p->text);
    }
    llm_put_str(w->a, v, p->redacted ? "data" : "signature", p->signature);
    return v;
}

static struct json *call(struct writer *w, const struct llm_part *p)
{
    struct json *v = typed(w->a, "tool_use");
    llm_put_str(w->a, v, "id", w->own ? p->call.id : clean_id(w->a, p->call.id));
    llm_put_str(w->a, v, "name", p->call.name);
    json_setc(w->a, v, "input", llm_call_input(w->a, &p->call));
    return v;
}

static int part(struct writer *w, const struct llm_part *p, struct json **ret, struct err *e)
{
    struct json *v = NULL;
    int r = 0;
    switch (p->kind) {
    case LLM_PART_TEXT:
    case LLM_PART_REFUSAL:
        if (w->own || p->text.len > 0) { /* empty blocks are refused */
            v = typed(w->a, "text");
            llm_put_str(w->a, v, "text", p->text);
        }
        break;
    case LLM_PART_MEDIA:
        r = media(w, p, &v, e);
        break;
    case LLM_PART_THINKING:
        v = thinking(w, p);
        break;
    case LLM_PART_CALL:
        v = call(w, p);
        break;
    case LLM_PART_RESULT:
        r = result(w, p, &v, e);
        break;
    case LLM_PART_OTHER:
        v = json_object(w->a);
        break;
    }
    if (r == 0 && v != NULL && w->own) {
        llm_put_rest(w->a, v, p->extra);
    }
    *ret = v;
    return r;
}

static int add_parts(struct writer *w, const struct llm_part *parts, size_t n, struct json *list,
                     struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        struct json *v = NULL;
        int r = part(w, &parts[i], &v, e);
        if (r < 0) {
            return r;
        }
        if (v != NULL) {
            json_push(w->a, list, v);
        }
    }
    return 0;
}

/* --- messages --- */

static int own_message(struct writer *w, const struct llm_message *m, struct json *list,
                       struct err *e)
{
    struct json *v = json_object(w->a);
    json_push(w->a, list, v);
    llm_set_cstr(w->a, v, "role",
                 m->role == LLM_USER        ? "user"
                 : m->role == LLM_ASSISTANT ? "assistant"
                                            : "system");
    int r = 0;
    if ((m->spelling & ANTHROPIC_STRING) != 0 && m->n_parts == 1 &&
        m->parts[0].kind == LLM_PART_TEXT && m->parts[0].extra == NULL) {
        llm_set_str(w->a, v, "content", m->parts[0].text);
    } else {
        r = add_parts(w, m->parts, m->n_parts, llm_set_array(w->a, v, "content"), e);
    }
    llm_put_rest(w->a, v, m->extra);
    return r;
}

static bool is_user(const struct llm_message *m)
{
    return m->role != LLM_ASSISTANT;
}

/* Adds the parts of the messages [from, to), either their results or everything else. */
static int add_run(struct writer *w, size_t from, size_t to, bool results, struct json *list,
                   struct err *e)
{
    for (size_t i = from; i < to; i++) {
        const struct llm_message *m = &w->r->messages[i];
        if (m->role == LLM_SYSTEM) {
            llm_lost(w->losses, STR("messages[].role: system"),
                     "anthropic has system text at the start only; it is told as the user's");
        }
        for (size_t j = 0; j < m->n_parts; j++) {
            if ((m->parts[j].kind == LLM_PART_RESULT) != results) {
                continue;
            }
            int r = add_parts(w, &m->parts[j], 1, list, e);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

static int foreign_messages(struct writer *w, struct json *list, struct err *e)
{
    const struct llm_message *messages = w->r->messages;
    size_t i = llm_leading_system(w->r);
    while (i < w->r->n_messages) {
        size_t end = i + 1;
        while (end < w->r->n_messages && is_user(&messages[end]) == is_user(&messages[i])) {
            end++;
        }
        struct json *content = json_array(w->a);
        int r = add_run(w, i, end, true, content, e);
        r = r < 0 ? r : add_run(w, i, end, false, content, e);
        if (r < 0) {
            return r;
        }
        if (json_len(content) > 0) {
            struct json *v = json_object(w->a);
            llm_set_cstr(w->a, v, "role", is_user(&messages[i]) ? "user" : "assistant");
            json_setc(w->a, v, "content", content);
            json_push(w->a, list, v);
        }
        i = end;
    }
    return 0;
}

static int write_messages(struct writer *w, struct json *body, struct err *e)
{
    struct json *list = llm_set_array(w->a, body, "messages");
    if (!w->own) {
        return foreign_messages(w, list, e);
    }
    for (size_t i = 0; i < w->r->n_messages; i++) {
        int r = own_message(w, &w->r->messages[i], list, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int write_system(struct writer *w, struct json *body, struct err *e)
{
    const struct llm_request *r = w->r;
    size_t leading = w->own ? 0 : llm_leading_system(r);
    if ((r->spelling & ANTHROPIC_STRING) != 0 && r->n_system == 1 && w->own) {
        llm_set_str(w->a, body, "system", r->system[0].text);
        return 0;
    }
    struct json *list = json_array(w->a);
    int result = add_parts(w, r->system, r->n_system, list, e);
    for (size_t i = 0; i < leading && result == 0; i++) {
        result = add_parts(w, r->messages[i].parts, r->messages[i].n_parts, list, e);
    }
    if (!w->own && r->output.json && r->output.schema == NULL) { /* no such mode without a schema */
        struct json *v = typed(w->a, "text");
        llm_set_cstr(w->a, v, "text", JSON_INSTRUCTION);
        json_push(w->a, list, v);
    }
    if (json_len(list) > 0) {
        json_setc(w->a, body, "system", list);
    }
    return result;
}

/* --- tools --- */

static void write_tools(struct writer *w, struct json *body)
{
    struct arena *a = w->a;
    struct json *list = w->r->n_tools == 0 ? NULL : llm_set_array(a, body, "tools");
    for (size_t i = 0; i < w->r->n_tools; i++) {
        const struct llm_tool *t = &w->r->tools[i];
        struct json *v = json_object(a);
        json_push(a, list, v);
        if (t->kind == LLM_TOOL_HOSTED) {
            llm_put_rest(a, v, t->extra);
            continue;
        }
        if ((t->spelling & ANTHROPIC_TYPED) != 0) {
            llm_set_cstr(a, v, "type", "custom");
        }
        llm_put_str(a, v, "name", t->name);
        llm_put_str(a, v, "description", t->description);
        llm_put(a, v, "input_schema", t->schema);
        if (t->schema == NULL && !w->own) {
            llm_set_cstr(a, llm_set_object(a, v, "input_schema"), "type", "object");
        }
        if (t->strict) {
            llm_set_bool(a, v, "strict", true);
        }
        if (w->own) {
            llm_put_rest(a, v, t->extra);
        }
    }
}

static void write_choice(struct writer *w, struct json *body)
{
    static const char *const words[] = {
        [LLM_CHOICE_AUTO] = "auto",
        [LLM_CHOICE_NONE] = "none",
        [LLM_CHOICE_ANY] = "any",
        [LLM_CHOICE_TOOL] = "tool",
    };
    const struct llm_request *r = w->r;
    bool given = r->parallel_given && (w->own || (!r->parallel && r->n_tools > 0));
    if (r->choice == LLM_CHOICE_DEFAULT && !given) {
        return;
    }
    struct json *v = llm_set_object(w->a, body, "tool_choice");
    if (r->choice != LLM_CHOICE_DEFAULT) {
        llm_set_cstr(w->a, v, "type", words[r->choice]);
    } else if (!w->own) {
        llm_set_cstr(w->a, v, "type", "auto");
    }
    if (r->choice == LLM_CHOICE_TOOL) {
        llm_put_str(w->a, v, "name", r->choice_name);
    }
    if (given && (w->own || r->choice != LLM_CHOICE_NONE)) {
        llm_set_bool(w->a, v, "disable_parallel_tool_use", !r->parallel);
    }
}

/* --- the rest of the body --- */

/* What anthropic refuses is dropped; see sampling.h. A temperature above the maximum becomes it. */
static struct llm_sampling allowed_sampling(struct writer *w, bool thinks)
{
    struct llm_sampling s = w->r->sampling;
    const struct llm_sampling_mode mode = { .format = LLM_ANTHROPIC,
                                            .model = w->r->model,
                                            .thinks = thinks };
    if (w->own) {
        return s;
    }
    if (s.has_temperature && s.temperature > 1) {
        llm_lost(w->losses, STR("temperature"), "anthropic's maximum is 1");
        s.temperature = 1;
    }
    if (thinks && s.has_top_p) {
        llm_lost(w->losses, STR("top_p"), "anthropic does not take it with thinking");
        s.has_top_p = false;
    }
    if (s.has_top_k && (thinks || !llm_takes_sampling(w->r->model))) {
        llm_lost(w->losses, STR("top_k"),
                 thinks ? "anthropic does not take it with thinking"
                        : "this Claude model takes only the default");
        s.has_top_k = false;
    }
    s = llm_sampling_allowed(&mode, &s, w->losses);
    /* with thinking the default is left out, too: it changes nothing */
    s.has_temperature = s.has_temperature && !thinks;
    return s;
}

static void write_max_tokens(struct writer *w, struct json *body)
{
    int64_t max = w->r->sampling.max_tokens;
    if (max > 0 || !w->own) {
        llm_set_int(w->a, body, "max_tokens", max > 0 ? max : DEFAULT_MAX_TOKENS);
    }
}

static void write_sampling(struct writer *w, bool thinks, struct json *body)
{
    struct arena *a = w->a;
    const struct llm_sampling allowed = allowed_sampling(w, thinks);
    const struct llm_sampling *s = &allowed;
    if (s->has_temperature) {
        json_setc(a, body, "temperature", json_number(a, s->temperature));
    }
    if (s->has_top_p) {
        json_setc(a, body, "top_p", json_number(a, s->top_p));
    }
    if (s->has_top_k) {
        llm_set_int(a, body, "top_k", s->top_k);
    }
    struct json *stops = s->n_stops == 0 ? NULL : llm_set_array(a, body, "stop_sequences");
    for (size_t i = 0; i < s->n_stops; i++) {
        json_push(a, stops, json_string(a, s->stops[i]));
    }
}

/* With a budget for thinking, the calls whose results are sent now must follow a thought. */
static bool lacks_thought(const struct json *messages)
{
    for (size_t i = json_len(messages); i > 0; i--) {
        const struct json *m = json_item(messages, i - 1);
        const struct json *content = json_get(m, "content");
        if (!str_eqc(json_str(json_get(m, "role"), STR_EMPTY), "assistant")) {
            continue;
        }
        struct str first = json_str(json_get(json_item(content, 0), "type"), STR_EMPTY);
        struct str last =
            json_str(json_get(json_item(content, json_len(content) - 1), "type"), STR_EMPTY);
        return str_eqc(last, "tool_use") && !str_ends(first, STR("thinking"));
    }
    return false;
}

/* A budget has to be smaller than max_tokens and not too small; without one the effort decides. */
static void write_thinking(struct writer *w, struct json *body)
{
    const struct llm_reasoning *t = &w->r->reasoning;
    int64_t max = json_int(json_get(body, "max_tokens"), DEFAULT_MAX_TOKENS);
    int64_t budget = t->budget;
    if (!t->given) {
        return;
    }
    if (!w->own && budget > 0) {
        budget = budget >= max ? max - 1 : budget;
        budget = budget < MIN_BUDGET ? MIN_BUDGET : budget;
    }
    if (!w->own && !t->off &&
        (max <= MIN_BUDGET || w->r->choice == LLM_CHOICE_ANY || w->r->choice == LLM_CHOICE_TOOL)) {
        llm_lost(w->losses, STR("reasoning"),
                 "anthropic does not think when a call is forced or max_tokens is small");
        return;
    }
    if (!w->own && !t->off && budget > 0 && lacks_thought(json_get(body, "messages"))) {
        llm_lost(w->losses, STR("reasoning"),
                 "anthropic wants the thought before the last call back, and it is not known");
        return;
    }
    struct json *v = llm_set_object(w->a, body, "thinking");
    if (t->off) {
        llm_set_cstr(w->a, v, "type", "disabled");
    } else if (budget > 0) {
        llm_set_cstr(w->a, v, "type", "enabled");
        llm_set_int(w->a, v, "budget_tokens", budget);
    } else if (budget < 0 || !w->own) {
        llm_set_cstr(w->a, v, "type", "adaptive");
    } else {
        llm_set_cstr(w->a, v, "type", "enabled");
    }
}

static struct str effort_word(const struct writer *w)
{
    static const char *const known[] = { "low", "medium", "high", "xhigh", "max", NULL };
    struct str effort = w->r->reasoning.effort;
    if (w->own || effort.len == 0 || llm_word_in(effort, known)) {
        return effort;
    }
    return str_eqc(effort, "minimal") ? STR("low") : STR_EMPTY;
}

static void write_output(struct writer *w, struct json *body)
{
    const struct llm_output *o = &w->r->output;
    struct str effort = w->r->reasoning.off && !w->own ? STR_EMPTY : effort_word(w);
    bool old = (w->r->spelling & ANTHROPIC_FORMAT) != 0;
    struct json *format = NULL;
    if (o->schema != NULL) {
        format = typed(w->a, "json_schema");
        json_setc(w->a, format, "schema", o->schema);
    }
    if (effort.len > 0 || (format != NULL && !old)) {
        struct json *config = llm_set_object(w->a, body, "output_config");
        llm_put_str(w->a, config, "effort", effort);
        llm_put(w->a, config, "format", old ? NULL : format);
    }
    llm_put(w->a, body, "output_format", old ? format : NULL);
}

int llm_anthropic_write(struct arena *a, const struct llm_request *r, struct llm_losses *losses,
                        struct json **ret, struct err *e)
{
    struct writer w = { .a = a, .r = r, .losses = losses, .own = r->format == LLM_ANTHROPIC };
    struct json *body = json_object(a);
    llm_set_str(a, body, "model", r->model);
    int result = write_messages(&w, body, e);
    result = result < 0 ? result : write_system(&w, body, e);
    if (result < 0) {
        return result;
    }
    write_max_tokens(&w, body);
    write_thinking(&w, body);
    const struct json *thinking_type = json_pointer(body, STR("/thinking/type"));
    write_sampling(
        &w, thinking_type != NULL && !str_eqc(json_str(thinking_type, STR_EMPTY), "disabled"),
        body);
    write_tools(&w, body);
    write_choice(&w, body);
    write_output(&w, body);
    if (r->stream) {
        llm_set_bool(a, body, "stream", true);
    }
    if (w.own) {
        llm_put_rest(a, body, r->extra);
    }
    *ret = body;
    return 0;
}
