/* SPDX-License-Identifier: MIT
 *
 * Chat Completions: requests as they go to the provider, in the dialect that compatible servers
 * understand too. What came from another format is taken apart where this one has a message of its
 * own for it: results of tools, system text.
 */
#include "llm/chat_priv.h"
#include "llm/sampling.h"

struct writer {
    struct arena *a;
    const struct llm_request *r;
    struct llm_losses *losses;
    bool own;    /* the request came in this format: as it was, extras included */
    bool thinks; /* the model wants its thoughts back with its calls */
};

/* Thinking models whose providers answer 400 to a message with tool calls that lacks its
 * reasoning_content: DeepSeek ("must be passed back to the API"), Kimi ("is missing in assistant
 * tool call message"), MiMo; GLM takes it. Other servers refuse the member, or ignore it. */
static bool wants_thoughts(const struct llm_request *r)
{
    static const char *const names[] = { "deepseek", "kimi", "mimo", "glm-" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(buf) struct buf glob = BUF_INIT(BUF_TEXT);
        buf_addf(&glob, "*%s*", names[i]);
        if (str_glob(buf_str(&glob), r->model, true)) {
            return !r->reasoning.off && !str_glob(STR("*instruct*"), r->model, true);
        }
    }
    return false;
}

static struct json *typed(struct arena *a, const char *type)
{
    struct json *v = json_object(a);
    llm_set_cstr(a, v, "type", type);
    return v;
}

/* --- parts --- */

static struct json *text(struct arena *a, struct str s)
{
    struct json *v = typed(a, "text");
    llm_put_str(a, v, "text", s);
    return v;
}

static struct json *audio(struct arena *a, const struct llm_media *m, bool own)
{
    struct json *v = typed(a, "input_audio");
    struct json *inner = llm_set_object(a, v, "input_audio");
    struct str format = str_slice(m->mime, strlen("audio/"), m->mime.len);
    llm_set_str(a, inner, "data", m->data);
    llm_set_str(a, inner, "format", !own && str_eqc(format, "mpeg") ? STR("mp3") : format);
    return v;
}

static struct json *file(struct arena *a, const struct llm_media *m)
{
    struct json *v = typed(a, "file");
    struct json *inner = llm_set_object(a, v, "file");
    llm_put_str(a, inner, "filename", m->name);
    llm_set_str(a, inner, "file_data", llm_media_data_url(a, m));
    return v;
}

static int media(struct writer *w, const struct llm_part *p, struct json **ret, struct err *e)
{
    const struct llm_media *m = &p->media;
    if (m->kind == LLM_MEDIA_IMAGE) {
        *ret = typed(w->a, "image_url");
        llm_set_str(w->a, llm_set_object(w->a, *ret, "image_url"), "url",
                    llm_media_data_url(w->a, m));
    } else if (m->data.len == 0 && m->url.len == 0) {
        *ret = text(w->a, p->text);
    } else if (m->kind == LLM_MEDIA_AUDIO && m->data.len > 0) {
        *ret = audio(w->a, m, w->own);
    } else if (m->kind == LLM_MEDIA_DOCUMENT && m->data.len > 0) {
        *ret = file(w->a, m);
    } else {
        return ERR(e, ERR_UNSUPPORTED,
                   "the chat format has no video input, and documents only by value");
    }
    return 0;
}

/* A part of the content; *ret stays NULL for what stands elsewhere in the message. */
static int part(struct writer *w, const struct llm_part *p, struct json **ret, struct err *e)
{
    int r = 0;
    switch (p->kind) {
    case LLM_PART_TEXT:
        *ret = text(w->a, p->text);
        break;
    case LLM_PART_MEDIA:
        r = media(w, p, ret, e);
        break;
    case LLM_PART_REFUSAL:
        if ((p->spelling & CHAT_IN_CONTENT) != 0) {
            *ret = typed(w->a, "refusal");
            llm_put_str(w->a, *ret, "refusal", p->text);
        }
        break;
    case LLM_PART_OTHER:
        *ret = json_object(w->a);
        break;
    case LLM_PART_THINKING:
    case LLM_PART_CALL:
    case LLM_PART_RESULT:
        break;
    }
    if (r == 0 && *ret != NULL) {
        llm_put_rest(w->a, *ret, p->extra);
    }
    return r;
}

/* One text is written as a string, which every server understands, unless the client had a list. */
static int content(struct writer *w, const struct llm_part *parts, size_t n, unsigned spelling,
                   struct json *message, struct err *e)
{
    struct json *list = json_array(w->a);
    const struct llm_part *only = NULL;
    for (size_t i = 0; i < n; i++) {
        struct json *v = NULL;
        bool empty = !w->own && parts[i].kind == LLM_PART_TEXT && parts[i].text.len == 0;
        int r = empty ? 0 : part(w, &parts[i], &v, e);
        if (r < 0) {
            return r;
        }
        if (v != NULL) {
            only = &parts[i];
            json_push(w->a, list, v);
        }
    }
    if (json_len(list) == 0 && (spelling & CHAT_NO_CONTENT) != 0) {
        return 0; /* absent, or a null in extra */
    }
    bool single = json_len(list) == 1 && only->kind == LLM_PART_TEXT && only->extra == NULL;
    if (single && (!w->own || (spelling & CHAT_STRING) != 0)) {
        llm_set_str(w->a, message, "content", only->text);
    } else if (json_len(list) > 0 || w->own) {
        json_setc(w->a, message, "content", list);
    } else {
        json_setc(w->a, message, "content", json_null(w->a));
    }
    return 0;
}

/* --- messages --- */

static struct json *add_message(struct writer *w, struct json *list, const char *role)
{
    struct json *v = json_object(w->a);
    llm_set_cstr(w->a, v, "role", role);
    json_push(w->a, list, v);
    return v;
}

static struct json *call(struct writer *w, const struct llm_part *p)
{
    const struct llm_call *c = &p->call;
    const char *key = c->custom ? "custom" : "function";
    struct json *v = json_object(w->a);
    llm_put_str(w->a, v, "id", c->id);
    if ((p->spelling & CHAT_UNTYPED) == 0) {
        llm_set_cstr(w->a, v, "type", key);
    }
    struct json *inner = llm_set_object(w->a, v, key);
    llm_set_str(w->a, inner, "name", c->name);
    llm_put_str(w->a, inner, c->custom ? "input" : "arguments", c->text);
    llm_put_rest(w->a, v, p->extra);
    return v;
}

static void legacy_call(struct writer *w, const struct llm_part *p, struct json *message)
{
    struct json *v = llm_set_object(w->a, message, "function_call");
    llm_set_str(w->a, v, "name", p->call.name);
    llm_put_str(w->a, v, "arguments", p->call.text);
    llm_put_rest(w->a, v, p->extra);
}

/* Only thoughts that this server has signed can go back to it, as the details that they were. */
static void write_details(struct writer *w, const struct llm_part *p, struct json *message)
{
    struct json *detail = NULL;
    if (p->signature.len == 0 || json_parse(w->a, p->signature, NULL, &detail, NULL) < 0 ||
        !json_is(detail, JSON_OBJECT)) {
        llm_lost(w->losses, STR("messages[]: thinking"),
                 "chat servers do not agree on how to take it back");
        return;
    }
    if (!p->redacted) {
        llm_put_str(w->a, detail, "text", p->text);
    }
    struct json *list = json_get(message, "reasoning_details");
    list = list != NULL ? list : llm_set_array(w->a, message, "reasoning_details");
    json_push(w->a, list, detail);
}

static void assistant_part(struct writer *w, const struct llm_part *p, struct json *message)
{
    struct json *calls;
    switch (p->kind) {
    case LLM_PART_THINKING:
        if (!w->own && w->thinks && p->signature.len == 0) {
            break; /* see write_thoughts() */
        }
        if (!w->own) {
            write_details(w, p, message);
            break;
        }
        llm_set_str(w->a, message,
                    (p->spelling & CHAT_REASONING) != 0 ? "reasoning" : "reasoning_content",
                    p->text);
        break;
    case LLM_PART_REFUSAL:
        if ((p->spelling & CHAT_IN_CONTENT) == 0) {
            llm_set_str(w->a, message, "refusal", p->text);
        }
        break;
    case LLM_PART_CALL:
        if ((p->spelling & CHAT_LEGACY) != 0) {
            legacy_call(w, p, message);
            break;
        }
        calls = json_get(message, "tool_calls");
        calls = calls != NULL ? calls : llm_set_array(w->a, message, "tool_calls");
        json_push(w->a, calls, call(w, p));
        break;
    case LLM_PART_TEXT:
    case LLM_PART_MEDIA:
    case LLM_PART_RESULT:
    case LLM_PART_OTHER:
        break;
    }
}

/* Without text, calls or a refusal there is nothing to say: servers refuse an empty message. */
static bool is_empty_assistant(const struct json *v)
{
    const struct json *content = json_get(v, "content");
    return json_get(v, "tool_calls") == NULL && json_get(v, "refusal") == NULL &&
           json_get(v, "reasoning_details") == NULL &&
           (content == NULL || content->type == JSON_NULL ||
            (json_is(content, JSON_STRING) && content->string.len == 0));
}

/* Also without a thought: it is the member that is missed. Without calls thoughts are of no use. */
static void write_thoughts(struct writer *w, const struct llm_message *m, struct json *message)
{
    CLEANUP(buf) struct buf thoughts = BUF_INIT(BUF_TEXT);
    bool calls = json_get(message, "tool_calls") != NULL;
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct llm_part *p = &m->parts[i];
        if (p->kind != LLM_PART_THINKING || p->signature.len > 0 || p->redacted) {
            continue;
        }
        if (!calls) {
            llm_lost(w->losses, STR("messages[]: thinking"),
                     "chat servers want it with tool calls only");
        } else if (buf_append(&thoughts, p->text, NULL) < 0) {
            break; /* 64 MiB */
        }
    }
    if (calls && json_get(message, "reasoning_details") == NULL) {
        json_setc(w->a, message, "reasoning_content",
                  json_string(w->a, arena_str(w->a, buf_str(&thoughts))));
    }
}

static int write_assistant(struct writer *w, const struct llm_message *m, struct json *list,
                           struct err *e)
{
    struct json *v = json_object(w->a);
    llm_set_cstr(w->a, v, "role", "assistant");
    int r = content(w, m->parts, m->n_parts, m->spelling, v, e);
    for (size_t i = 0; i < m->n_parts; i++) {
        assistant_part(w, &m->parts[i], v);
    }
    if (!w->own && w->thinks) {
        write_thoughts(w, m, v);
    }
    llm_put_rest(w->a, v, m->extra);
    if (w->own || !is_empty_assistant(v)) {
        json_push(w->a, list, v);
    }
    return r;
}

/* Several messages of the assistant in a row (items of Responses) are one here: the results of all
 * its calls must follow the message that made them. */
static int write_assistant_run(struct writer *w, size_t from, size_t to, struct json *list,
                               struct err *e)
{
    LLM_LIST(struct llm_part) parts = { 0 };
    for (size_t i = from; i < to; i++) {
        const struct llm_message *m = &w->r->messages[i];
        for (size_t j = 0; j < m->n_parts; j++) {
            *LLM_ADD(w->a, &parts) = m->parts[j];
        }
    }
    struct llm_message joined = { .role = LLM_ASSISTANT, .parts = parts.items, .n_parts = parts.n };
    return write_assistant(w, &joined, list, e);
}

/* Results take text only; what else there is follows in a message of the user. */
static int write_result(struct writer *w, const struct llm_part *p, struct json *list,
                        struct json **ret, struct err *e)
{
    const struct llm_result *res = &p->result;
    bool legacy = (res->spelling & CHAT_LEGACY) != 0;
    struct json *v = add_message(w, list, legacy ? "function" : "tool");
    llm_put_str(w->a, v, legacy ? "name" : "tool_call_id", legacy ? res->name : res->call_id);
    *ret = v;
    if (w->own) {
        return content(w, res->parts, res->n_parts, res->spelling, v, e);
    }
    llm_set_str(w->a, v, "content", llm_join_text(w->a, res->parts, res->n_parts, "\n"));
    if (res->is_error) {
        llm_lost(w->losses, STR("messages[].is_error"), "chat cannot mark a result as an error");
    }
    return 0;
}

static int own_user(struct writer *w, const struct llm_message *m, struct json *list, struct err *e)
{
    struct json *v = NULL;
    int r;
    if (m->n_parts == 1 && m->parts[0].kind == LLM_PART_RESULT) {
        r = write_result(w, &m->parts[0], list, &v, e);
    } else {
        v = add_message(w, list, "user");
        r = content(w, m->parts, m->n_parts, m->spelling, v, e);
    }
    llm_put_rest(w->a, v, m->extra);
    return r;
}

/* Everything that is not the text of a result, in the order of the message. */
static size_t rest_of(struct writer *w, const struct llm_message *m, struct llm_part **ret)
{
    size_t max = m->n_parts, n = 0;
    for (size_t i = 0; i < m->n_parts; i++) {
        max += m->parts[i].kind == LLM_PART_RESULT ? m->parts[i].result.n_parts : 0;
    }
    *ret = arena_array(w->a, max, sizeof **ret);
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct llm_part *p = &m->parts[i];
        for (size_t j = 0; p->kind == LLM_PART_RESULT && j < p->result.n_parts; j++) {
            if (p->result.parts[j].kind == LLM_PART_MEDIA) {
                (*ret)[n++] = p->result.parts[j];
            }
        }
        if (p->kind == LLM_PART_MEDIA || p->kind == LLM_PART_TEXT) {
            (*ret)[n++] = *p;
        }
    }
    return n;
}

static int write_results(struct writer *w, const struct llm_message *m, struct json *list,
                         struct err *e)
{
    struct json *v;
    for (size_t i = 0; i < m->n_parts; i++) {
        int r =
            m->parts[i].kind == LLM_PART_RESULT ? write_result(w, &m->parts[i], list, &v, e) : 0;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* What a message of the user holds beside the text of results. */
static int write_user_rest(struct writer *w, const struct llm_message *m, struct json *list,
                           struct err *e)
{
    struct llm_part *rest;
    bool results = false;
    for (size_t i = 0; i < m->n_parts; i++) {
        results = results || m->parts[i].kind == LLM_PART_RESULT;
    }
    size_t n = rest_of(w, m, &rest);
    if (n == 0 && results) {
        return 0;
    }
    return content(w, rest, n, 0, add_message(w, list, "user"), e);
}

static int write_system(struct writer *w, const struct llm_message *m, struct json *list,
                        struct err *e)
{
    /* Only OpenAI's own servers know the role of a developer; the others would refuse it. */
    struct json *v = add_message(w, list, m->developer && w->own ? "developer" : "system");
    int r = content(w, m->parts, m->n_parts, m->spelling, v, e);
    llm_put_rest(w->a, v, m->extra);
    return r;
}

/* One message for all system text at the head: the templates of many models take no second one.
 * Returns how many messages it stands for. */
static size_t write_head(struct writer *w, struct json *list)
{
    size_t n = w->own ? 0 : llm_leading_system(w->r);
    LLM_LIST(struct llm_part) parts = { 0 };
    for (size_t i = 0; i < w->r->n_system; i++) {
        *LLM_ADD(w->a, &parts) = w->r->system[i];
    }
    for (size_t i = 0; i < n; i++) {
        const struct llm_message *m = &w->r->messages[i];
        for (size_t j = 0; j < m->n_parts; j++) {
            *LLM_ADD(w->a, &parts) = m->parts[j];
        }
    }
    if (parts.n > 0) {
        struct json *v = add_message(w, list, "system");
        llm_set_str(w->a, v, "content", llm_join_text(w->a, parts.items, parts.n, "\n\n"));
    }
    return n;
}

/* Results come first, since they must follow the calls at once; then the rest in its order. */
static int write_user_run(struct writer *w, size_t from, size_t to, struct json *list,
                          struct err *e)
{
    int r = 0;
    for (size_t i = from; i < to && r == 0; i++) {
        r = write_results(w, &w->r->messages[i], list, e);
    }
    for (size_t i = from; i < to && r == 0; i++) {
        const struct llm_message *m = &w->r->messages[i];
        r = m->role == LLM_SYSTEM ? write_system(w, m, list, e) : write_user_rest(w, m, list, e);
    }
    return r;
}

static int foreign_messages(struct writer *w, size_t first, struct json *list, struct err *e)
{
    const struct llm_message *messages = w->r->messages;
    int r = 0;
    for (size_t i = first, end; i < w->r->n_messages && r == 0; i = end) {
        bool assistant = messages[i].role == LLM_ASSISTANT;
        end = i + 1;
        while (end < w->r->n_messages && (messages[end].role == LLM_ASSISTANT) == assistant) {
            end++;
        }
        r = assistant ? write_assistant_run(w, i, end, list, e)
                      : write_user_run(w, i, end, list, e);
    }
    return r;
}

static int own_messages(struct writer *w, struct json *list, struct err *e)
{
    int r = 0;
    for (size_t i = 0; i < w->r->n_messages && r == 0; i++) {
        const struct llm_message *m = &w->r->messages[i];
        switch (m->role) {
        case LLM_USER:
            r = own_user(w, m, list, e);
            break;
        case LLM_ASSISTANT:
            r = write_assistant(w, m, list, e);
            break;
        case LLM_SYSTEM:
            r = write_system(w, m, list, e);
            break;
        }
    }
    return r;
}

static int write_messages(struct writer *w, struct json *body, struct err *e)
{
    struct json *list = llm_set_array(w->a, body, "messages");
    size_t first = write_head(w, list);
    return w->own ? own_messages(w, list, e) : foreign_messages(w, first, list, e);
}

/* --- tools --- */

static void write_definition(struct arena *a, const struct llm_tool *t, struct json *v)
{
    llm_set_str(a, v, "name", t->name);
    llm_put_str(a, v, "description", t->description);
    llm_put(a, v, "parameters", t->schema);
    if (t->strict) {
        llm_set_bool(a, v, "strict", true);
    }
}

/* The opposite of flat_format() in chat.c. */
static struct json *nested_format(struct writer *w, const struct llm_tool *t)
{
    struct arena *a = w->a;
    struct json *v = json_copy(a, json_get(t->extra, "format"));
    bool flat = json_get(v, "syntax") != NULL || json_get(v, "definition") != NULL;
    if (!flat || (w->own && (t->spelling & CHAT_NESTED) == 0)) {
        return v;
    }
    struct json *grammar = json_object(a);
    llm_put(a, grammar, "syntax", json_get(v, "syntax"));
    llm_put(a, grammar, "definition", json_get(v, "definition"));
    (void)json_remove(v, STR("syntax"));
    (void)json_remove(v, STR("definition"));
    json_setc(a, v, "grammar", grammar);
    return v;
}

static struct json *custom_tool(struct writer *w, const struct llm_tool *t)
{
    struct arena *a = w->a;
    struct json *v = typed(a, "custom");
    struct json *inner = llm_set_object(a, v, "custom");
    llm_set_str(a, inner, "name", t->name);
    llm_put_str(a, inner, "description", t->description);
    if (json_get(t->extra, "format") != NULL) {
        json_setc(a, inner, "format", nested_format(w, t));
    }
    struct json *extra = json_copy(a, t->extra);
    (void)json_remove(extra, STR("format"));
    llm_put_rest(a, v, extra);
    return v;
}

static void write_tools(struct writer *w, struct json *body)
{
    struct json *tools = json_array(w->a), *functions = json_array(w->a);
    for (size_t i = 0; i < w->r->n_tools; i++) {
        const struct llm_tool *t = &w->r->tools[i];
        struct json *v = json_object(w->a);
        if ((t->spelling & CHAT_LEGACY) != 0) {
            write_definition(w->a, t, v);
            llm_put_rest(w->a, v, t->extra);
            json_push(w->a, functions, v);
            continue;
        }
        if (t->kind == LLM_TOOL_CUSTOM) {
            v = custom_tool(w, t);
        } else if (t->kind == LLM_TOOL_FUNCTION) {
            llm_set_cstr(w->a, v, "type", "function");
            write_definition(w->a, t, llm_set_object(w->a, v, "function"));
        }
        llm_put_rest(w->a, v, t->kind == LLM_TOOL_CUSTOM ? NULL : t->extra);
        json_push(w->a, tools, v);
    }
    llm_put(w->a, body, "tools", json_len(tools) > 0 ? tools : NULL);
    llm_put(w->a, body, "functions", json_len(functions) > 0 ? functions : NULL);
}

static struct json *choice_json(struct writer *w)
{
    static const char *const words[] = {
        [LLM_CHOICE_AUTO] = "auto",
        [LLM_CHOICE_NONE] = "none",
        [LLM_CHOICE_ANY] = "required",
    };
    const struct llm_request *r = w->r;
    bool legacy = (r->spelling & CHAT_LEGACY_CHOICE) != 0;
    if (r->choice != LLM_CHOICE_TOOL) {
        return json_cstr(w->a, words[r->choice]);
    }
    if (legacy) {
        struct json *v = json_object(w->a);
        llm_set_str(w->a, v, "name", r->choice_name);
        return v;
    }
    const struct llm_tool *t = w->own ? NULL : llm_tool_find(r, r->choice_name);
    bool custom =
        (r->spelling & CHAT_CUSTOM_CHOICE) != 0 || (t != NULL && t->kind == LLM_TOOL_CUSTOM);
    const char *key = custom ? "custom" : "function";
    struct json *v = typed(w->a, key);
    llm_set_str(w->a, llm_set_object(w->a, v, key), "name", r->choice_name);
    return v;
}

static void write_choice(struct writer *w, struct json *body)
{
    const struct llm_request *r = w->r;
    bool legacy = (r->spelling & CHAT_LEGACY_CHOICE) != 0;
    if (r->choice != LLM_CHOICE_DEFAULT) {
        json_setc(w->a, body, legacy ? "function_call" : "tool_choice", choice_json(w));
    }
    if (r->parallel_given && (w->own || r->n_tools > 0)) {
        llm_set_bool(w->a, body, "parallel_tool_calls", r->parallel);
    }
}

/* --- the rest of the body --- */

static void put_real(struct arena *a, struct json *body, const char *key, bool has, double value)
{
    if (has) {
        json_setc(a, body, key, json_number(a, value));
    }
}

static void write_stops(struct writer *w, const struct llm_sampling *s, struct json *body)
{
    if (s->n_stops == 1 && (w->r->spelling & CHAT_STRING) != 0) {
        llm_set_str(w->a, body, "stop", s->stops[0]);
        return;
    }
    struct json *list = s->n_stops == 0 ? NULL : llm_set_array(w->a, body, "stop");
    for (size_t i = 0; i < s->n_stops; i++) {
        json_push(w->a, list, json_string(w->a, s->stops[i]));
    }
}

/* The old name is the one that compatible servers know; OpenAI's reasoning models (o1, o3 …, gpt-5
 * and later) refuse it. */
static const char *max_tokens_key(const struct writer *w)
{
    bool old = w->own ? (w->r->spelling & CHAT_LEGACY) != 0 : !llm_is_openai_reasoning(w->r->model);
    return old ? "max_tokens" : "max_completion_tokens";
}

/* OpenAI's reasoning models refuse some of them; see sampling.h. */
static struct llm_sampling allowed_sampling(struct writer *w)
{
    const struct llm_sampling_mode mode = { .format = LLM_CHAT,
                                            .model = w->r->model,
                                            .effort = w->r->reasoning.off
                                                          ? STR("none")
                                                          : w->r->reasoning.effort };
    return w->own ? w->r->sampling : llm_sampling_allowed(&mode, &w->r->sampling, w->losses);
}

static void write_sampling(struct writer *w, struct json *body)
{
    const struct llm_sampling allowed = allowed_sampling(w);
    const struct llm_sampling *s = &allowed;
    if (s->max_tokens > 0) {
        llm_set_int(w->a, body, max_tokens_key(w), s->max_tokens);
    }
    put_real(w->a, body, "temperature", s->has_temperature, s->temperature);
    put_real(w->a, body, "top_p", s->has_top_p, s->top_p);
    put_real(w->a, body, "presence_penalty", s->has_presence, s->presence_penalty);
    put_real(w->a, body, "frequency_penalty", s->has_frequency, s->frequency_penalty);
    if (s->has_seed) {
        llm_set_int(w->a, body, "seed", s->seed);
    }
    if (s->has_top_k && w->own) {
        llm_set_int(w->a, body, "top_k", s->top_k);
    } else if (s->has_top_k) {
        llm_lost(w->losses, STR("top_k"), "chat has no such setting");
    }
    write_stops(w, s, body);
}

#define LOW_BUDGET    4096 /* tokens of thought; where providers draw the lines themselves */
#define MEDIUM_BUDGET 16384

static void write_reasoning(struct writer *w, struct json *body)
{
    static const char *const known[] = {
        "none", "minimal", "low", "medium", "high", "xhigh", NULL
    };
    const struct llm_reasoning *t = &w->r->reasoning;
    struct str effort = t->effort;
    if (w->own) {
        llm_put_str(w->a, body, "reasoning_effort", effort);
        return;
    }
    if (effort.len == 0 && t->budget > 0) {
        effort = t->budget <= LOW_BUDGET      ? STR("low")
                 : t->budget <= MEDIUM_BUDGET ? STR("medium")
                                              : STR("high");
    } else if (effort.len > 0 && !llm_word_in(effort, known)) {
        effort = STR("high"); /* "max" and what may come above it */
    }
    if (t->off) { /* servers without such a switch would refuse the word for it */
        llm_lost(w->losses, STR("reasoning: off"), "chat servers do not agree on a word for it");
        return;
    }
    llm_put_str(w->a, body, "reasoning_effort", effort);
}

static void write_output(struct writer *w, struct json *body)
{
    const struct llm_output *o = &w->r->output;
    if (!o->json) {
        return;
    }
    struct json *v = llm_set_object(w->a, body, "response_format");
    llm_set_cstr(w->a, v, "type", o->schema == NULL ? "json_object" : "json_schema");
    if (o->schema == NULL) {
        return;
    }
    struct json *inner = llm_set_object(w->a, v, "json_schema");
    llm_put_str(w->a, inner, "name", o->name);
    if (o->name.len == 0 && !w->own) {
        llm_set_cstr(w->a, inner, "name", "answer");
    }
    json_setc(w->a, inner, "schema", o->schema);
    if (o->strict) {
        llm_set_bool(w->a, inner, "strict", true);
    }
}

int llm_chat_write(struct arena *a, const struct llm_request *r, struct llm_losses *losses,
                   struct json **ret, struct err *e)
{
    struct writer w = { .a = a, .r = r, .losses = losses, .own = r->format == LLM_CHAT };
    w.thinks = wants_thoughts(r);
    struct json *body = json_object(a);
    llm_set_str(a, body, "model", r->model);
    int result = write_messages(&w, body, e);
    if (result < 0) {
        return result;
    }
    write_tools(&w, body);
    write_choice(&w, body);
    write_sampling(&w, body);
    write_reasoning(&w, body);
    write_output(&w, body);
    if (r->stream) {
        llm_set_bool(a, body, "stream", true);
    }
    if (r->include_usage || (!w.own && r->stream)) { /* other formats always tell it */
        llm_set_bool(a, llm_set_object(a, body, "stream_options"), "include_usage", true);
    }
    if (w.own) {
        llm_put_rest(a, body, r->extra);
    }
    *ret = body;
    return 0;
}
