/* SPDX-License-Identifier: MIT
 *
 * Auxiliary requests carry no tools (but for one) and are recognised by the shape of the JSON that
 * they want or by the words of their system prompt. A request that merely has no tools is an
 * ordinary one (`claude --tools ""`, a plain client).
 */
#include "gateway/auxiliary.h"

#include "base/arena.h"
#include "base/json.h"
#include "gateway/scan.h"
#include "llm/codec.h"

/* A title is not made from more than this; the sum of a long conversation may be. */
#define BODY_MAX ((size_t)4 << 20)
/* Searched at both ends of a part. The longest prompt of a side request that was seen has 5 KB. */
#define END_MAX ((size_t)8 << 10)

/* The whole last message of a request that comes with tools … */
#define WARMUP "Warmup"
/* … and the beginning of one: claude-code 2.1 predicts what its user will type next. */
#define SUGGESTION "[SUGGESTION MODE: "

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
    { "files", true },
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
    "expert at analyzing git history", /* claude-code 2.0: "Files modified by user" */
    /* compaction: the system prompt is the usual one, the wish stands in the last message */
    "summary of the conversation",
    /* from here on: only signs in the text of a request, see auxiliary_init() */
    "\"title\"",
    "\"isnewtopic\"",
    "\"model_choice\"",
    "\"complexity_score\"",
    "\"quota\"",
    "\"warmup\"",
    "[suggestion mode: ",
};
/* What a request with tools must have in its last message to be looked at more closely. */
static const char *const tool_words[] = { "\"warmup\"", "[suggestion mode: " };

enum { COMPACTION = ARRAY_LEN(kinds), WORDS = COMPACTION + 1 };

void auxiliary_init(struct auxiliary *side)
{
    phrases_init(&side->signs, words, ARRAY_LEN(words));
    phrases_init(&side->tool_signs, tool_words, ARRAY_LEN(tool_words));
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

const char *auxiliary_request_kind(const struct llm_request *r, struct str system, struct str last)
{
    if (str_eqc(str_trim(last), WARMUP)) { /* claude-code 2.0: fills the cache for sub-agents */
        return "warmup";
    }
    if (str_starts(str_trim(last), STR(SUGGESTION))) {
        return "suggestion";
    }
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

static bool add_texts(struct buf *b, const struct llm_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (buf_append(b, parts[i].text, NULL) < 0 || buf_append_c(b, '\n', NULL) < 0) {
            return false; /* 64 MiB of system prompt: matched on as far as it goes */
        }
    }
    return true;
}

/* The system prompt, which OpenAI's formats send as messages, and what is added to it later. */
struct str auxiliary_system_text(const struct llm_request *r, struct arena *a)
{
    CLEANUP(buf) struct buf b = BUF_INIT(BUF_TEXT);
    bool room = add_texts(&b, r->system, r->n_system);
    for (size_t i = 0; room && i < r->n_messages; i++) {
        const struct llm_message *m = &r->messages[i];
        room = m->role != LLM_SYSTEM || add_texts(&b, m->parts, m->n_parts);
    }
    return arena_str(a, buf_str(&b));
}

static bool has_sign(const struct auxiliary *side, struct str body, size_t from, size_t to)
{
    struct str part = str_slice(body, from, to);
    if (part.len <= 2 * END_MAX) {
        return phrases_in(&side->signs, part) != 0;
    }
    return phrases_in(&side->signs, str_slice(part, 0, END_MAX)) != 0 ||
           phrases_in(&side->signs, str_slice(part, part.len - END_MAX, part.len)) != 0;
}

static bool may_be_one(const struct auxiliary *side, struct str body, const struct scan *s)
{
    bool few = s->first_to > s->last_from; /* the first two messages are the last ones too */
    return has_sign(side, body, 0, s->talk_at.from) ||
           (!few && has_sign(side, body, s->talk_at.from, s->first_to)) ||
           has_sign(side, body, s->before_from, s->last_from) ||
           has_sign(side, body, s->last_from, s->talk_at.to) ||
           has_sign(side, body, s->talk_at.to, body.len);
}

const char *auxiliary_kind(const struct auxiliary *side, const struct llm_endpoint *where,
                           struct str body, const struct scan *s)
{
    struct llm_request request;
    struct str last = str_slice(body, s->last_from, s->talk_at.to);
    if (body.len == 0 || body.len > BODY_MAX ||
        !(s->tools ? phrases_in(&side->tool_signs, last) != 0 : may_be_one(side, body, s))) {
        return NULL;
    }
    CLEANUP(arena) struct arena *a = arena_new();
    if (llm_request_read(a, where, body, &request, NULL) < 0) {
        return NULL;
    }
    return auxiliary_request_kind(&request, auxiliary_system_text(&request, a),
                                  llm_last_text(a, &request));
}
