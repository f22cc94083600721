/* SPDX-License-Identifier: MIT
 *
 * Side requests: what harnesses ask a model besides the conversation. They come without tools and
 * are known by the shape of the wanted JSON or by the words of their system prompt; a request that
 * merely has no tools is an ordinary one (`claude --tools ""`, a plain client).
 */
#include "gateway/script_priv.h"

#include <strings.h>

/* Deeper schemas of titles and routes do not exist. */
enum { SAMPLE_DEPTH = 8 };

/* A JSON schema with this property is asked for … */
static const struct {
    const char *kind;
    const char *property;
} schemas[] = {
    { "title", "title" },           /* claude-code 2.1: session titles */
    { "topic", "isNewTopic" },      /* claude-code 1: new topic? */
    { "route", "model_choice" },    /* gemini-cli 0.61, model auto: which model? */
    { "route", "complexity_score" } /* the same, by number */
};

/* … or the system prompt, or where there is none the message, has these words. */
static const struct {
    const char *kind;
    const char *words;
    bool system_only;
} phrases[] = {
    { "title", "title generator", true },
    { "title", "generate a title for this conversation", false },
    { "title", "generate a concise title", false },
    { "title", "generate a short title", false },
    { "topic", "indicates a new conversation topic", false },
    { "summary", "tasked with summarizing conversations", true },
    { "summary", "summarize this conversation", false },
    { "summary", "summarize the conversation", false },
    { "summary", "detailed prompt for continuing our conversation", false },
    { "summary", "context checkpoint compaction", false },
    { "summary", "state_snapshot", true },
    { "route", "task routing", true },
};

static bool find_nocase(struct str text, const char *words)
{
    size_t n = strlen(words);
    for (size_t i = 0; i + n <= text.len; i++) {
        if ((text.ptr[i] | 0x20) == words[0] && strncasecmp(text.ptr + i, words, n) == 0) {
            return true;
        }
    }
    return false;
}

const char *script_side_kind(const struct llm_request *r, struct str system, struct str last)
{
    if (r->n_tools > 0) {
        return NULL;
    }
    const struct json *properties = json_get(r->output.schema, "properties");
    for (size_t i = 0; properties != NULL && i < ARRAY_LEN(schemas); i++) {
        /* a person's own schema may have a title too, but hardly nothing else */
        if (json_get(properties, schemas[i].property) != NULL && json_len(properties) <= 2) {
            return schemas[i].kind;
        }
    }
    if (str_eqc(str_trim(last), "quota") && r->sampling.max_tokens == 1) {
        return "quota";
    }
    for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
        struct str text = phrases[i].system_only || system.len > 0 ? system : last;
        if (find_nocase(text, phrases[i].words)) {
            return phrases[i].kind;
        }
    }
    /* compaction: the system prompt is the usual one, the wish stands in the last message */
    if (r->n_messages > 2 && find_nocase(last, "summary of the conversation")) {
        return "summary";
    }
    return NULL;
}

/* Gemini writes its types in capitals. */
static bool is_type(struct str type, const char *name)
{
    return type.len == strlen(name) && strncasecmp(type.ptr, name, type.len) == 0;
}

static struct json *sample_at(struct arena *a, const struct json *schema, unsigned depth)
{
    const struct json *fixed = json_get(schema, "const");
    fixed = fixed != NULL ? fixed : json_item(json_get(schema, "enum"), 0);
    struct str type = json_str(json_get(schema, "type"), STR_EMPTY);
    if (json_is(json_get(schema, "type"), JSON_ARRAY)) {
        type = json_str(json_item(json_get(schema, "type"), 0), STR_EMPTY);
    }
    const struct json *properties = json_get(schema, "properties");
    if (fixed != NULL) {
        return json_copy(a, fixed);
    }
    if (type.len == 0 && properties == NULL) {
        return json_cstr(a, "Task");
    }
    if (properties != NULL || is_type(type, "object")) {
        struct json *o = json_object(a);
        for (size_t i = 0; depth < SAMPLE_DEPTH && i < json_len(properties); i++) {
            const struct json_member *m = &properties->object.members[i];
            json_set(a, o, m->key, sample_at(a, m->value, depth + 1));
        }
        return o;
    }
    if (is_type(type, "array")) {
        return json_array(a);
    }
    if (is_type(type, "boolean")) {
        return json_boolean(a, false);
    }
    if (is_type(type, "null")) {
        return json_null(a);
    }
    if (is_type(type, "string")) {
        return json_cstr(a, "Task");
    }
    return json_integer(a, json_int(json_get(schema, "minimum"), 0));
}

struct json *script_sample(struct arena *a, const struct json *schema)
{
    return sample_at(a, schema, 0);
}

struct str script_side_text(const struct llm_request *r, const char *kind, struct arena *a)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    if (r->output.schema != NULL) {
        return json_write(script_sample(a, r->output.schema), JSON_COMPACT, &b, NULL) == 0
                   ? arena_str(a, buf_str(&b))
                   : STR("{}");
    }
    if (strcmp(kind, "topic") == 0) {
        return STR("{\"isNewTopic\":false,\"title\":null}");
    }
    return strcmp(kind, "summary") == 0 ? STR("The work so far went as planned.") : STR("Task");
}
