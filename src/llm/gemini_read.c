/* SPDX-License-Identifier: MIT
 *
 * A Gemini request into the canonical form.
 */
#include "llm/gemini_priv.h"

/* The spelling of a member that is there; the usual one if neither is. */
static const char *key_of(const struct llm_fields *f, const char *camel, const char *snake)
{
    return json_get(f->object, camel) == NULL && json_get(f->object, snake) != NULL ? snake : camel;
}

/* --- parts --- */

static bool read_media(struct llm_fields *f, struct llm_part *ret)
{
    const char *blob = key_of(f, "inlineData", "inline_data");
    const char *file = key_of(f, "fileData", "file_data");
    bool inlined = json_get(f->object, blob) != NULL;
    struct llm_fields m;
    if (!llm_open(f, inlined ? blob : file, &m)) {
        return false;
    }
    ret->kind = LLM_PART_MEDIA;
    ret->media.mime = llm_take_str(&m, key_of(&m, "mimeType", "mime_type"));
    ret->media.kind = llm_media_kind_of(ret->media.mime);
    ret->media.name = llm_take_str(&m, key_of(&m, "displayName", "display_name"));
    if (inlined) {
        ret->media.data = llm_take_str(&m, "data");
    } else {
        ret->media.url = llm_take_str(&m, key_of(&m, "fileUri", "file_uri"));
    }
    llm_close(f, inlined ? "inlineData" : "fileData", &m);
    return ret->media.data.len > 0 || ret->media.url.len > 0;
}

static bool read_call(struct llm_fields *f, struct llm_part *ret)
{
    struct llm_fields c;
    if (!llm_open(f, key_of(f, "functionCall", "function_call"), &c)) {
        return false;
    }
    ret->kind = LLM_PART_CALL;
    ret->call.id = llm_take_str(&c, "id");
    ret->call.name = llm_take_str(&c, "name");
    struct json *args = llm_take_type(&c, "args", JSON_OBJECT);
    ret->spelling |= args == NULL ? GEMINI_NO_ARGS : 0;
    llm_call_set_input(f->a, &ret->call, args == NULL ? json_object(f->a) : args);
    llm_close(f, "functionCall", &c);
    return ret->call.name.len > 0;
}

/* Media beside the response object; false if there is something else among them. */
static bool read_response_parts(struct llm_fields *res, struct llm_result *ret)
{
    const struct json *list = json_get(res->object, "parts");
    size_t n = json_is(list, JSON_ARRAY) ? json_len(list) : 0;
    struct llm_part *parts = arena_array(res->a, n, sizeof *parts);
    for (size_t i = 0; i < n; i++) {
        struct llm_fields f;
        llm_fields_init(&f, res->a, json_item(list, i));
        if (!read_media(&f, &parts[i])) {
            return false;
        }
        parts[i].extra = llm_rest(&f);
    }
    ret->parts = parts;
    ret->n_parts = n;
    ret->spelling = n > 0 ? GEMINI_MEDIA_PARTS : 0;
    if (n > 0) {
        (void)llm_take(res, "parts");
    }
    return true;
}

static bool read_response(struct llm_fields *f, struct llm_part *ret)
{
    struct llm_fields res;
    if (!llm_open(f, key_of(f, "functionResponse", "function_response"), &res)) {
        return false;
    }
    ret->kind = LLM_PART_RESULT;
    ret->result.call_id = llm_take_str(&res, "id");
    ret->result.name = llm_take_str(&res, "name");
    ret->result.value = llm_take_type(&res, "response", JSON_OBJECT);
    ret->result.is_error = json_get(ret->result.value, "error") != NULL;
    bool known = read_response_parts(&res, &ret->result);
    ret->result.spelling |= ret->result.value == NULL ? GEMINI_NO_RESPONSE : 0;
    llm_close(f, "functionResponse", &res);
    return known && ret->result.name.len > 0;
}

static bool read_text(struct llm_fields *f, struct llm_part *ret)
{
    bool thought = false;
    if (!json_is(json_get(f->object, "text"), JSON_STRING)) {
        return false;
    }
    ret->text = json_str(llm_take(f, "text"), STR_EMPTY);
    if (json_bool(json_get(f->object, "thought"), false)) {
        (void)llm_take_bool(f, "thought", &thought);
        ret->kind = LLM_PART_THINKING;
    }
    return true;
}

/* A part of unknown kind stays whole; its signature, too. */
static void read_part(struct arena *a, struct json *v, struct llm_part *ret)
{
    struct llm_fields f;
    llm_fields_init(&f, a, v);
    if (read_text(&f, ret) || read_media(&f, ret) || read_call(&f, ret) || read_response(&f, ret)) {
        ret->signature = llm_take_str(&f, key_of(&f, "thoughtSignature", "thought_signature"));
        ret->extra = llm_rest(&f);
        return;
    }
    *ret = (struct llm_part) { .kind = LLM_PART_OTHER, .extra = v };
}

static int read_parts(struct arena *a, const struct json *list, const char *where,
                      const struct llm_part **ret, size_t *ret_n, struct err *e)
{
    if (list != NULL && !json_is(list, JSON_ARRAY)) {
        return LLM_BAD(e, "%s.parts: must be a list", where);
    }
    size_t n = json_len(list);
    struct llm_part *parts = arena_array(a, n, sizeof *parts);
    for (size_t i = 0; i < n; i++) {
        if (!json_is(json_item(list, i), JSON_OBJECT)) {
            return LLM_BAD(e, "%s.parts[%zu]: must be an object", where, i);
        }
        read_part(a, json_item(list, i), &parts[i]);
    }
    *ret = parts;
    *ret_n = n;
    return 0;
}

/* --- contents --- */

static int read_content(struct arena *a, const struct json *v, size_t index,
                        struct llm_message *ret, struct err *e)
{
    struct llm_fields f;
    if (!json_is(v, JSON_OBJECT)) {
        return LLM_BAD(e, "contents[%zu]: must be an object", index);
    }
    llm_fields_init(&f, a, v);
    struct str role = llm_take_str(&f, "role");
    if (str_eqc(role, "model")) {
        ret->role = LLM_ASSISTANT;
    } else if (role.len == 0 || str_eqc(role, "user") || str_eqc(role, "function")) {
        ret->role = LLM_USER;
        ret->spelling = role.len == 0               ? GEMINI_NO_ROLE
                        : str_eqc(role, "function") ? GEMINI_FUNCTION_ROLE
                                                    : 0;
    } else {
        return LLM_BAD(e, "contents[%zu].role: must be user or model", index);
    }
    ret->spelling |= json_get(v, "parts") == NULL ? GEMINI_NO_PARTS : 0;
    const char *where = arena_printf(a, "contents[%zu]", index);
    int r = read_parts(a, llm_take(&f, "parts"), where, &ret->parts, &ret->n_parts, e);
    ret->extra = llm_rest(&f);
    return r;
}

static int read_contents(struct llm_fields *f, struct llm_request *ret, struct err *e)
{
    const struct json *list = llm_take(f, "contents");
    if (!json_is(list, JSON_ARRAY)) {
        return LLM_BAD(e, "contents: must be a list");
    }
    size_t n = json_len(list);
    struct llm_message *messages = arena_array(f->a, n, sizeof *messages);
    for (size_t i = 0; i < n; i++) {
        int r = read_content(f->a, json_item(list, i), i, &messages[i], e);
        if (r < 0) {
            return r;
        }
    }
    ret->messages = messages;
    ret->n_messages = n;
    return 0;
}

static int read_system(struct llm_fields *f, struct llm_request *ret, struct err *e)
{
    const char *key = key_of(f, "systemInstruction", "system_instruction");
    struct llm_fields s;
    const struct json *text = llm_take_type(f, key, JSON_STRING);
    if (text != NULL) {
        struct llm_part *part = ARENA_NEW(f->a, struct llm_part);
        part->text = text->string;
        ret->system = part;
        ret->n_system = 1;
        ret->spelling |= GEMINI_PLAIN_SYSTEM;
        return 0;
    }
    if (!llm_open(f, key, &s)) {
        return 0;
    }
    int r = read_parts(f->a, llm_take(&s, "parts"), key, &ret->system, &ret->n_system, e);
    llm_close(f, "systemInstruction", &s); /* its role means nothing, and comes back */
    return r;
}

/* --- tools --- */

/* The schema in the older dialect stays where it was, beside its translation. */
static int read_declaration(struct arena *a, struct json *v, unsigned entry, struct llm_tool *ret,
                            struct err *e)
{
    struct llm_fields f;
    llm_fields_init(&f, a, v);
    ret->kind = LLM_TOOL_FUNCTION;
    ret->spelling = entry;
    ret->name = llm_take_str(&f, "name");
    ret->description = llm_take_str(&f, "description");
    ret->schema = llm_take_type(&f, key_of(&f, "parametersJsonSchema", "parameters_json_schema"),
                                JSON_OBJECT);
    if (ret->schema == NULL && json_is(json_get(v, "parameters"), JSON_OBJECT)) {
        ret->schema = gemini_schema_read(a, json_get(v, "parameters"));
    }
    ret->extra = llm_rest(&f);
    return ret->name.len > 0
               ? 0
               : LLM_BAD(e, "tools[%u].functionDeclarations: each must have a name", entry - 1);
}

struct tools {
    LLM_LIST(struct llm_tool) list;
};

/* One entry holds functions, or tools of the provider's own, each under its name. */
static int read_entry(struct arena *a, struct json *v, unsigned entry, struct tools *ret,
                      struct err *e)
{
    struct llm_fields f;
    size_t before = ret->list.n;
    llm_fields_init(&f, a, v);
    const char *key = key_of(&f, "functionDeclarations", "function_declarations");
    const struct json *list =
        json_len(json_get(v, key)) > 0 ? llm_take_type(&f, key, JSON_ARRAY) : NULL;
    for (size_t i = 0; i < json_len(list); i++) {
        int r = read_declaration(a, json_item(list, i), entry, LLM_ADD(a, &ret->list), e);
        if (r < 0) {
            return r;
        }
    }
    const struct json *rest = llm_rest(&f);
    for (size_t i = 0; i < json_len(rest); i++) {
        struct llm_tool *t = LLM_ADD(a, &ret->list);
        t->kind = LLM_TOOL_HOSTED;
        t->name = rest->object.members[i].key;
        t->spelling = entry;
        t->extra = json_object(a);
        json_set(a, t->extra, t->name, rest->object.members[i].value);
    }
    if (ret->list.n == before) { /* so that it is there again */
        *LLM_ADD(a, &ret->list) = (struct llm_tool) {
            .kind = LLM_TOOL_HOSTED, .name = STR("(nothing)"), .extra = v, .spelling = entry
        };
    }
    return 0;
}

static int read_tools(struct llm_fields *f, struct llm_request *ret, struct err *e)
{
    const struct json *list = llm_take_type(f, "tools", JSON_ARRAY);
    struct tools tools = { 0 };
    for (size_t i = 0; i < json_len(list); i++) {
        if (!json_is(json_item(list, i), JSON_OBJECT)) {
            return LLM_BAD(e, "tools[%zu]: must be an object", i);
        }
        int r = read_entry(f->a, json_item(list, i), (unsigned)i + 1, &tools, e);
        if (r < 0) {
            return r;
        }
    }
    ret->tools = tools.list.items;
    ret->n_tools = tools.list.n;
    ret->spelling |= list != NULL ? GEMINI_EMPTY_TOOLS : 0;
    return 0;
}

static void read_choice(struct llm_fields *f, struct llm_request *ret)
{
    static const struct {
        const char *word;
        enum llm_choice choice;
    } modes[] = {
        { "AUTO", LLM_CHOICE_AUTO },
        { "NONE", LLM_CHOICE_NONE },
        { "ANY", LLM_CHOICE_ANY },
    };
    struct llm_fields config, calling;
    if (!llm_open(f, key_of(f, "toolConfig", "tool_config"), &config)) {
        return;
    }
    const char *key = key_of(&config, "functionCallingConfig", "function_calling_config");
    if (llm_open(&config, key, &calling)) {
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
            if (llm_take_word(&calling, "mode", modes[i].word)) {
                ret->choice = modes[i].choice;
            }
        }
        key = key_of(&calling, "allowedFunctionNames", "allowed_function_names");
        const struct json *names = json_get(calling.object, key);
        struct str name =
            json_len(names) == 1 ? json_str(json_item(names, 0), STR_EMPTY) : STR_EMPTY;
        if (ret->choice == LLM_CHOICE_ANY && name.len > 0) {
            ret->choice = LLM_CHOICE_TOOL;
            ret->choice_name = name;
            (void)llm_take(&calling, key);
        }
        llm_close(&config, "functionCallingConfig", &calling);
    }
    llm_close(f, "toolConfig", &config);
}

/* --- generationConfig --- */

static void read_thinking(struct llm_fields *f, struct llm_reasoning *ret)
{
    static const char *const words[][2] = {
        { "MINIMAL", "minimal" }, { "LOW", "low" }, { "MEDIUM", "medium" }, { "HIGH", "high" }
    };
    struct llm_fields t;
    int64_t budget = 0;
    if (!llm_open(f, key_of(f, "thinkingConfig", "thinking_config"), &t)) {
        return;
    }
    ret->given = true;
    const char *key = key_of(&t, "includeThoughts", "include_thoughts");
    if (json_bool(json_get(t.object, key), false)) { /* a false that was said stays said */
        (void)llm_take_bool(&t, key, &ret->summary);
    }
    key = key_of(&t, "thinkingBudget", "thinking_budget");
    if (json_int(json_get(t.object, key), -2) >= -1 && llm_take_int(&t, key, &budget)) {
        ret->budget = budget;
        ret->off = budget == 0;
    }
    key = key_of(&t, "thinkingLevel", "thinking_level");
    struct str level = json_str(json_get(t.object, key), STR_EMPTY);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (llm_take_word(&t, key, words[i][0]) || str_eqc(level, words[i][1])) {
            ret->effort = str_of(words[i][1]);
        }
    }
    llm_close(f, "thinkingConfig", &t);
}

static void read_stops(struct llm_fields *f, struct llm_sampling *ret)
{
    const char *key = key_of(f, "stopSequences", "stop_sequences");
    const struct json *list = json_get(f->object, key);
    size_t n = json_is(list, JSON_ARRAY) ? json_len(list) : 0;
    struct str *stops = arena_array(f->a, n, sizeof *stops);
    for (size_t i = 0; i < n; i++) {
        if (!json_is(json_item(list, i), JSON_STRING)) {
            return;
        }
        stops[i] = json_item(list, i)->string;
    }
    if (n > 0) {
        (void)llm_take(f, key);
        ret->stops = stops;
        ret->n_stops = n;
    }
}

static void read_output(struct llm_fields *f, struct llm_output *ret)
{
    const char *key = key_of(f, "responseJsonSchema", "response_json_schema");
    ret->json =
        llm_take_word(f, key_of(f, "responseMimeType", "response_mime_type"), "application/json");
    ret->schema = llm_take_type(f, key, JSON_OBJECT);
    if (ret->schema == NULL) {
        key = key_of(f, "responseSchema", "response_schema");
        ret->schema = gemini_schema_read(f->a, json_get(f->object, key));
    }
}

static void read_config(struct llm_fields *body, struct llm_request *ret)
{
    struct llm_sampling *s = &ret->sampling;
    struct llm_fields f;
    if (!llm_open(body, key_of(body, "generationConfig", "generation_config"), &f)) {
        return;
    }
    s->has_temperature = llm_take_real(&f, "temperature", &s->temperature);
    s->has_top_p = llm_take_real(&f, key_of(&f, "topP", "top_p"), &s->top_p);
    s->has_presence =
        llm_take_real(&f, key_of(&f, "presencePenalty", "presence_penalty"), &s->presence_penalty);
    s->has_frequency = llm_take_real(&f, key_of(&f, "frequencyPenalty", "frequency_penalty"),
                                     &s->frequency_penalty);
    s->has_seed = llm_take_int(&f, "seed", &s->seed);
    s->has_top_k = llm_take_int(&f, key_of(&f, "topK", "top_k"), &s->top_k);
    const char *key = key_of(&f, "maxOutputTokens", "max_output_tokens");
    if (json_int(json_get(f.object, key), 0) > 0) {
        (void)llm_take_int(&f, key, &s->max_tokens);
    }
    read_stops(&f, s);
    read_thinking(&f, &ret->reasoning);
    read_output(&f, &ret->output);
    llm_close(body, "generationConfig", &f);
}

/* --- the whole --- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static struct str percent_decode(struct arena *a, struct str s)
{
    char *out = arena_dup(a, s);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        bool code =
            s.ptr[i] == '%' && i + 2 < s.len && hex(s.ptr[i + 1]) >= 0 && hex(s.ptr[i + 2]) >= 0;
        out[n++] = code ? (char)(hex(s.ptr[i + 1]) * 16 + hex(s.ptr[i + 2])) : s.ptr[i];
        i += code ? 2 : 0;
    }
    return str_n(out, n);
}

int gemini_read(struct arena *a, const struct llm_endpoint *where, struct json *body,
                struct llm_request *ret, struct err *e)
{
    struct llm_fields f;
    const struct json *inner = json_get(body, "generateContentRequest");
    bool counts = where->call == LLM_CALL_COUNT && json_is(inner, JSON_OBJECT);
    llm_fields_init(&f, a, counts ? inner : body);
    ret->model = percent_decode(a, where->model);
    ret->stream = where->stream;
    int r = read_contents(&f, ret, e);
    if (r == 0) {
        r = read_system(&f, ret, e);
    }
    if (r == 0) {
        r = read_tools(&f, ret, e);
    }
    if (r < 0) {
        return r;
    }
    read_choice(&f, ret);
    read_config(&f, ret);
    ret->extra = llm_rest(&f);
    return 0;
}
