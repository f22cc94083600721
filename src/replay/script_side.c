/* SPDX-License-Identifier: MIT
 *
 * Side requests: what harnesses ask a model besides the conversation. They come without tools and
 * are known by the shape of the wanted JSON or by the words of their system prompt; a request that
 * merely has no tools is an ordinary one (`claude --tools ""`, a plain client).
 */
#include "gateway/script_priv.h"

#include <strings.h>

#include "gateway/phrases.h"

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
    bool system_only;
} kinds[] = {
    { "title", true },    { "title", false },   { "title", false },   { "title", false },
    { "topic", false },   { "summary", true },  { "summary", false }, { "summary", false },
    { "summary", false }, { "summary", false }, { "summary", true },  { "route", true },
};
static const char *const words[] = {
    "title generator",
    "generate a title for this conversation",
    "generate a concise title",
    "generate a short title",
    "indicates a new conversation topic",
    "tasked with summarizing conversations",
    "summarize this conversation",
    "summarize the conversation",
    "detailed prompt for continuing our conversation",
    "context checkpoint compaction",
    "state_snapshot",
    "task routing",
    /* compaction: the system prompt is the usual one, the wish stands in the last message */
    "summary of the conversation",
    /* from here on: only signs in the text of a request, see script_side_signs() */
    "\"title\"",
    "\"isnewtopic\"",
    "\"model_choice\"",
    "\"complexity_score\"",
    "\"quota\"",
};
enum { COMPACTION = ARRAY_LEN(kinds), WORDS = COMPACTION + 1 };

void script_side_signs(struct phrases *ret)
{
    phrases_init(ret, words, ARRAY_LEN(words));
}

static const char *kind_by_words(const struct llm_request *r, struct str system, struct str last)
{
    struct phrases p;
    phrases_init(&p, words, WORDS);
    bool long_one = r->n_messages > 2;
    uint64_t in_system = phrases_in(&p, system);
    uint64_t in_last = system.len == 0 || long_one ? phrases_in(&p, last) : 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        uint64_t found = kinds[i].system_only || system.len > 0 ? in_system : in_last;
        if ((found >> i & 1u) != 0) {
            return kinds[i].kind;
        }
    }
    return long_one && (in_last >> COMPACTION & 1u) != 0 ? "summary" : NULL;
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
    return kind_by_words(r, system, last);
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
        for (size_t i = 0;
             depth < SAMPLE_DEPTH && json_is(properties, JSON_OBJECT) && i < json_len(properties);
             i++) {
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
