/* SPDX-License-Identifier: MIT
 *
 * Questions about a request that no wire format matters to: what the model is to answer to, which
 * turn it is, what it will cost.
 */
#include "llm/request.h"

#include "llm/codec_priv.h"

static bool has_kind(const struct llm_message *m, enum llm_part_kind kind)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        if (m->parts[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static bool is_result(const struct llm_message *m)
{
    return m->role == LLM_USER && has_kind(m, LLM_PART_RESULT);
}

static bool is_user_text(const struct llm_message *m)
{
    return m->role == LLM_USER && has_kind(m, LLM_PART_TEXT) && !has_kind(m, LLM_PART_RESULT);
}

/* --- the text to answer to --- */

static void add_line(struct buf *out, struct str text)
{
    if (text.len == 0) {
        return;
    }
    if (out->len > 0) {
        buf_add(out, STR("\n"));
    }
    buf_add(out, text);
}

static void add_parts(struct buf *out, const struct llm_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (parts[i].kind == LLM_PART_TEXT) {
            add_line(out, parts[i].text);
        }
    }
}

static void add_message(struct arena *a, struct buf *out, const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct llm_part *p = &m->parts[i];
        if (p->kind == LLM_PART_TEXT) {
            add_line(out, p->text);
        } else if (p->kind == LLM_PART_RESULT && p->result.n_parts > 0) {
            add_parts(out, p->result.parts, p->result.n_parts);
        } else if (p->kind == LLM_PART_RESULT && p->result.value != NULL) {
            add_line(out, llm_value_text(a, p->result.value));
        }
    }
}

/* Of the messages before `end` that came after the model's last one, the first that has a result;
 * `end`: none has. */
static size_t first_result(const struct llm_request *r, size_t end)
{
    size_t first = end;
    for (size_t i = end; i > 0 && r->messages[i - 1].role != LLM_ASSISTANT; i--) {
        first = is_result(&r->messages[i - 1]) ? i - 1 : first;
    }
    return first;
}

/* A text that is one element, such as <system-reminder>…</system-reminder>. Kimi Code sends it in a
 * user message of its own, after the prompt. */
static bool is_reminder(const struct llm_message *m)
{
    if (m->n_parts != 1 || m->parts[0].kind != LLM_PART_TEXT) {
        return false;
    }
    struct str text = str_trim(m->parts[0].text);
    return str_starts(text, STR("<")) && str_ends(text, STR(">"));
}

/* The first of the messages before `end` that the model is to answer to. */
static size_t first_open(const struct llm_request *r, size_t end)
{
    size_t first = first_result(r, end);
    if (first < end) {
        return first;
    }
    first = end - 1;
    while (first > 0 && is_reminder(&r->messages[first]) && is_user_text(&r->messages[first - 1])) {
        first--;
    }
    return first;
}

struct str llm_last_text(struct arena *a, const struct llm_request *r)
{
    size_t end = r->n_messages;
    while (end > 0 && !is_result(&r->messages[end - 1]) && !is_user_text(&r->messages[end - 1])) {
        end--;
    }
    if (end == 0) {
        return STR_EMPTY;
    }
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT * 2);
    for (size_t i = first_open(r, end); i < end; i++) {
        add_message(a, &out, &r->messages[i]);
    }
    return arena_str(a, buf_str(&out));
}

/* --- the turn --- */

/* Where the messages after the last words of the user begin. Words that follow a result, before
 * the model has answered to it, are a reminder of the harness (goose, Kimi Code). */
static size_t after_user_text(const struct llm_request *r)
{
    size_t i = r->n_messages;
    while (i > 0 && (!is_user_text(&r->messages[i - 1]) || first_result(r, i - 1) < i - 1)) {
        i--;
    }
    return i;
}

size_t llm_results(const struct llm_request *r)
{
    size_t n = 0;
    for (size_t i = after_user_text(r); i < r->n_messages; i++) {
        const struct llm_message *m = &r->messages[i];
        for (size_t j = 0; j < m->n_parts; j++) {
            n += m->parts[j].kind == LLM_PART_RESULT;
        }
    }
    return n;
}

size_t llm_turn(const struct llm_request *r)
{
    size_t n = 0;
    bool inside = false;
    for (size_t i = after_user_text(r); i < r->n_messages; i++) {
        bool result = is_result(&r->messages[i]);
        n += result && !inside;
        inside = result || (inside && r->messages[i].role == LLM_SYSTEM);
    }
    return n;
}

/* --- finding --- */

const struct llm_tool *llm_tool_find(const struct llm_request *r, struct str name)
{
    for (size_t i = 0; i < r->n_tools; i++) {
        if (str_eq(r->tools[i].name, name)) {
            return &r->tools[i];
        }
    }
    return llm_tool_flat(r, name);
}

const struct llm_call *llm_call_find(const struct llm_request *r, struct str id)
{
    for (size_t i = r->n_messages; i > 0 && id.len > 0; i--) {
        const struct llm_message *m = &r->messages[i - 1];
        for (size_t j = 0; m->role == LLM_ASSISTANT && j < m->n_parts; j++) {
            const struct llm_part *p = &m->parts[j];
            if (p->kind == LLM_PART_CALL && str_eq(p->call.id, id)) {
                return &p->call;
            }
        }
    }
    return NULL;
}

/* --- what it costs --- */

/* English and code have 3 to 5 bytes a token; other scripts up to two tokens a character. */
/* Eight bytes at a time: whole prompts are counted. */
static int64_t text_tokens(struct str s)
{
    const uint64_t top = UINT64_C(0x8080808080808080);
    int64_t high = 0, other = 0; /* bytes from 0x80 on, and of them those that begin a character */
    for (size_t i = 0; i < s.len; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, s.ptr + i, s.len - i < sizeof word ? s.len - i : sizeof word);
        high += __builtin_popcountll(word & top);
        other += __builtin_popcountll(word & word << 1 & top);
    }
    return ((int64_t)s.len - high + 2) / 3 + other * 2;
}

#define IMAGE_TOKENS   1600 /* the most that Anthropic takes for one; OpenAI: 1105 */
#define MESSAGE_TOKENS 8    /* role and marks around it */
#define BASE64_BYTES   2    /* of a document, a token */
#define TREE_DEPTH     256  /* as deep as json_parse() reads */

static int64_t json_tokens(const struct json *v, size_t depth)
{
    int64_t n = 1;
    if (v == NULL || depth > TREE_DEPTH) {
        return n;
    }
    if (v->type == JSON_STRING) {
        return n + text_tokens(v->string);
    }
    for (size_t i = 0; v->type == JSON_ARRAY && i < v->array.len; i++) {
        n += 1 + json_tokens(v->array.items[i], depth + 1);
    }
    for (size_t i = 0; v->type == JSON_OBJECT && i < v->object.len; i++) {
        const struct json_member *m = &v->object.members[i];
        n += 2 + text_tokens(m->key) + json_tokens(m->value, depth + 1);
    }
    return n;
}

static int64_t media_tokens(const struct llm_part *p)
{
    if (p->media.kind == LLM_MEDIA_IMAGE) {
        return IMAGE_TOKENS;
    }
    return IMAGE_TOKENS + text_tokens(p->text) + (int64_t)(p->media.data.len / BASE64_BYTES);
}

static int64_t part_tokens(const struct llm_part *p)
{
    switch (p->kind) {
    case LLM_PART_MEDIA:
        return media_tokens(p);
    case LLM_PART_CALL:
        return MESSAGE_TOKENS + text_tokens(p->call.name) + text_tokens(p->call.text);
    case LLM_PART_RESULT:
        return MESSAGE_TOKENS + (p->result.value != NULL ? json_tokens(p->result.value, 0) : 0);
    case LLM_PART_OTHER:
        return json_tokens(p->extra, 0);
    case LLM_PART_TEXT:
    case LLM_PART_THINKING:
    case LLM_PART_REFUSAL:
        break;
    }
    return text_tokens(p->text) + text_tokens(p->signature);
}

static int64_t parts_tokens(const struct llm_part *parts, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += 1 + part_tokens(&parts[i]);
        for (size_t j = 0; parts[i].kind == LLM_PART_RESULT && j < parts[i].result.n_parts; j++) {
            sum += 1 + part_tokens(&parts[i].result.parts[j]);
        }
    }
    return sum;
}

int64_t llm_estimate_tokens(const struct llm_request *r)
{
    int64_t sum = MESSAGE_TOKENS + parts_tokens(r->system, r->n_system);
    for (size_t i = 0; i < r->n_messages; i++) {
        sum += MESSAGE_TOKENS + parts_tokens(r->messages[i].parts, r->messages[i].n_parts);
    }
    for (size_t i = 0; i < r->n_tools; i++) {
        const struct llm_tool *t = &r->tools[i];
        sum += MESSAGE_TOKENS + text_tokens(t->name) + text_tokens(t->description);
        sum += json_tokens(t->schema, 0) + (t->extra != NULL ? json_tokens(t->extra, 0) : 0);
    }
    return sum + (r->output.schema != NULL ? json_tokens(r->output.schema, 0) : 0);
}
