/* SPDX-License-Identifier: MIT
 *
 * A Responses request into the canonical form: the head of the body, tools, choices. Of objects
 * that are understood in part (text, reasoning) the rest stays in `extra`; the writer puts both
 * together.
 */
#include "llm/responses_priv.h"

/* --- tools --- */

static int read_tool(struct responses_tools *t, struct json *v, struct str ns, bool late,
                     const char *where, struct err *e)
{
    struct llm_fields f;
    llm_fields_init(&f, t->arena, v);
    struct str type = llm_take_str(&f, "type");
    if (type.len == 0) {
        return LLM_BAD(e, "%s: must hold objects with a type", where);
    }
    struct llm_tool *tool = LLM_ADD(t->arena, &t->list);
    tool->ns = ns;
    tool->spelling = late ? RESPONSES_LATE : 0;
    bool function = str_eqc(type, "function");
    if (!function && !str_eqc(type, "custom")) {
        tool->kind = LLM_TOOL_HOSTED;
        tool->name = type;
        tool->extra = v;
        return 0;
    }
    tool->kind = function ? LLM_TOOL_FUNCTION : LLM_TOOL_CUSTOM;
    tool->name = llm_take_str(&f, "name");
    tool->description = llm_take_str(&f, "description");
    if (function) {
        tool->schema = llm_take_type(&f, "parameters", JSON_OBJECT);
        /* Absent means "strict if possible" here, so that a false must not get lost. */
        tool->strict = json_bool(json_get(v, "strict"), false);
        if (tool->strict) {
            (void)llm_take(&f, "strict");
        }
    }
    if (tool->name.len == 0) {
        return LLM_BAD(e, "%s: a tool must have a name", where);
    }
    tool->extra = llm_rest(&f);
    return 0;
}

/* What a namespace says of itself has no place of its own: its first tool carries it, so that the
 * writer finds it again. */
static int read_namespace(struct responses_tools *t, const struct json *v, bool late,
                          const char *where, struct err *e)
{
    struct llm_fields f;
    llm_fields_init(&f, t->arena, v);
    (void)llm_take(&f, "type");
    const struct json *list = llm_take_type(&f, "tools", JSON_ARRAY);
    struct str ns = llm_take_str(&f, "name");
    if (ns.len == 0 || json_len(list) == 0) {
        return LLM_BAD(e, "%s: a namespace must have a name and tools", where);
    }
    size_t first = t->list.n;
    for (size_t i = 0; i < json_len(list); i++) {
        int r = read_tool(t, json_item(list, i), ns, late, where, e);
        if (r < 0) {
            return r;
        }
    }
    struct json *about = llm_rest(&f);
    struct llm_tool *tool = &t->list.items[first];
    struct json *extra =
        tool->extra == NULL ? json_object(t->arena) : json_copy(t->arena, tool->extra);
    json_setc(t->arena, extra, RESPONSES_NAMESPACE, about == NULL ? json_object(t->arena) : about);
    tool->extra = extra;
    return 0;
}

int responses_tools_read(struct responses_tools *t, const struct json *list, bool late,
                         const char *where, struct err *e)
{
    for (size_t i = 0; i < json_len(list); i++) {
        struct json *v = json_item(list, i);
        bool many = str_eqc(json_str(json_get(v, "type"), STR_EMPTY), "namespace");
        int r = many ? read_namespace(t, v, late, where, e)
                     : read_tool(t, v, STR_EMPTY, late, where, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* --- the head of the body --- */

static void read_choice(struct llm_fields *f, struct llm_request *ret)
{
    static const struct {
        const char *word;
        enum llm_choice choice;
    } words[] = {
        { "auto", LLM_CHOICE_AUTO },
        { "none", LLM_CHOICE_NONE },
        { "required", LLM_CHOICE_ANY },
    };
    const struct json *v = json_get(f->object, "tool_choice");
    struct str type = json_str(json_get(v, "type"), STR_EMPTY);
    bool allowed = str_eqc(type, "allowed_tools"); /* which ones stays in the extras */
    struct str word = json_str(allowed ? json_get(v, "mode") : v, STR_EMPTY);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eqc(word, words[i].word)) {
            ret->choice = words[i].choice;
        }
    }
    struct str name = json_str(json_get(v, "name"), STR_EMPTY);
    bool named =
        name.len > 0 && (str_eqc(type, "function") || str_eqc(type, "custom")) && json_len(v) == 2;
    if (named) {
        ret->choice = LLM_CHOICE_TOOL;
        ret->choice_name = name;
        ret->spelling |= str_eqc(type, "custom") ? RESPONSES_CUSTOM : 0;
    }
    if (!allowed && ret->choice != LLM_CHOICE_DEFAULT) {
        (void)llm_take(f, "tool_choice");
    }
}

static void read_reasoning(struct llm_fields *f, struct llm_reasoning *ret)
{
    struct llm_fields q;
    if (!llm_open(f, "reasoning", &q)) {
        return;
    }
    ret->given = true;
    ret->effort = llm_take_str(&q, "effort");
    ret->off = str_eqc(ret->effort, "none");
    ret->summary = json_is(json_get(q.object, "summary"), JSON_STRING);
    (void)llm_take_word(&q, "summary", "auto"); /* "detailed" and "concise" say more than that */
    llm_close(f, "reasoning", &q);
}

static void read_format(struct llm_fields *text, struct llm_output *ret)
{
    struct llm_fields f;
    if (!llm_open(text, "format", &f)) {
        return;
    }
    if (llm_take_word(&f, "type", "json_object")) {
        ret->json = true;
    } else if (json_is(json_get(f.object, "schema"), JSON_OBJECT) &&
               llm_take_word(&f, "type", "json_schema")) {
        ret->json = true;
        ret->schema = llm_take(&f, "schema");
        ret->name = llm_take_str(&f, "name");
        ret->strict = json_bool(json_get(f.object, "strict"), false);
        if (ret->strict) {
            (void)llm_take(&f, "strict");
        }
    }
    llm_close(text, "format", &f);
}

static int read_input(struct arena *a, const struct json *input, struct llm_request *ret,
                      struct responses_tools *tools, struct err *e)
{
    bool plain = json_is(input, JSON_STRING);
    if (input == NULL) { /* a stored prompt, or the conversation alone */
        ret->spelling |= RESPONSES_NO_INPUT;
        return 0;
    }
    if (!plain && !json_is(input, JSON_ARRAY)) {
        return LLM_BAD(e, "input: must be a string or a list of items");
    }
    size_t n = plain ? 1 : json_len(input);
    struct llm_message *messages = arena_array(a, n, sizeof *messages);
    if (plain) {
        struct llm_part *part = ARENA_NEW(a, struct llm_part);
        part->text = json_str(input, STR_EMPTY);
        messages[0] = (struct llm_message) { .role = LLM_USER, .parts = part, .n_parts = 1 };
        ret->spelling |= RESPONSES_PLAIN;
    }
    for (size_t i = 0; i < n && !plain; i++) {
        int r = responses_item_read(a, json_item(input, i), i, &messages[i], tools, e);
        if (r < 0) {
            return r;
        }
    }
    ret->messages = messages;
    ret->n_messages = n;
    return 0;
}

static void read_head(struct llm_fields *f, struct llm_request *ret)
{
    struct llm_sampling *s = &ret->sampling;
    struct llm_fields text;
    ret->model = llm_take_str(f, "model");
    ret->spelling |= llm_take_bool(f, "stream", &ret->stream) ? RESPONSES_STREAM : 0;
    ret->parallel_given = llm_take_bool(f, "parallel_tool_calls", &ret->parallel);
    s->has_temperature = llm_take_real(f, "temperature", &s->temperature);
    s->has_top_p = llm_take_real(f, "top_p", &s->top_p);
    if (json_int(json_get(f->object, "max_output_tokens"), 0) > 0) {
        (void)llm_take_int(f, "max_output_tokens", &s->max_tokens);
    }
    read_choice(f, ret);
    read_reasoning(f, &ret->reasoning);
    if (llm_open(f, "text", &text)) {
        read_format(&text, &ret->output);
        llm_close(f, "text", &text);
    }
    struct json *instructions = llm_take_type(f, "instructions", JSON_STRING);
    if (instructions != NULL) {
        struct llm_part *part = ARENA_NEW(f->a, struct llm_part);
        part->text = json_str(instructions, STR_EMPTY);
        ret->system = part;
        ret->n_system = 1;
    }
}

int responses_read(struct arena *a, const struct llm_endpoint *where, struct json *body,
                   struct llm_request *ret, struct err *e)
{
    struct responses_tools tools = { .arena = a };
    struct llm_fields f;
    (void)where;
    llm_fields_init(&f, a, body);
    read_head(&f, ret);
    struct json *list = llm_take_type(&f, "tools", JSON_ARRAY);
    ret->spelling |= list != NULL ? RESPONSES_EMPTY : 0;
    int r = responses_tools_read(&tools, list, false, "tools", e);
    if (r == 0) {
        r = read_input(a, llm_take(&f, "input"), ret, &tools, e);
    }
    ret->tools = tools.list.items;
    ret->n_tools = tools.list.n;
    ret->extra = llm_rest(&f);
    return r;
}
