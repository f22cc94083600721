/* SPDX-License-Identifier: MIT
 *
 * Shortening a conversation; see api_context.h.
 */
#include "adapters/api_context.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/macro.h"

enum {
    HEAD = 300,         /* bytes of an old text that stay */
    HEAD_NEWEST = 4096, /* the same of a result that the model has not seen yet */
    NOTE = 200,         /* a text that is longer than its head by less is left alone */
};

static struct str shorten(struct arena *a, struct str text, size_t head, const char *what)
{
    struct str kept = str_slice(text, 0, head);
    while (kept.len > 0 && ((unsigned char)text.ptr[kept.len] & 0xC0) == 0x80) {
        kept.len--; /* not inside of a character */
    }
    return str_of(arena_printf(a, "%.*s\n[… %zu bytes of this %s were removed to save context]",
                               STR_ARG(kept), text.len - kept.len, what));
}

static bool is_long(struct str text, size_t head)
{
    return text.len > head + NOTE && !str_has_nul(text);
}

static void count_saved(struct context_trim *t, size_t before, size_t after)
{
    size_t saved = before - after;
    t->bytes = t->bytes > saved ? t->bytes - saved : 0;
}

static void shorten_result(struct arena *a, struct llm_part *part, size_t head,
                           struct context_trim *t)
{
    struct llm_result *r = &part->result;
    struct llm_part *parts = arena_array(a, r->n_parts + 1, sizeof *parts);
    bool changed = false;
    for (size_t i = 0; i < r->n_parts; i++) {
        parts[i] = r->parts[i];
        if (parts[i].kind == LLM_PART_TEXT && is_long(parts[i].text, head)) {
            parts[i].text = shorten(a, parts[i].text, head, "result");
            count_saved(t, r->parts[i].text.len, parts[i].text.len);
            changed = true;
        }
    }
    if (changed) {
        r->parts = parts;
        t->results++;
    }
}

/* Only texts among the arguments: a number or a path is what the call is about. */
static void shorten_call(struct arena *a, struct llm_part *part, struct context_trim *t)
{
    struct llm_call *c = &part->call;
    CLEANUP(buf) struct buf out = BUF_INIT(BUF_TEXT);
    bool changed = false;
    if (!json_is(c->input, JSON_OBJECT)) {
        return;
    }
    struct json *input = json_copy(a, c->input);
    for (size_t i = 0; i < json_len(input); i++) {
        struct json *v = input->object.members[i].value;
        if (json_is(v, JSON_STRING) && is_long(v->string, HEAD)) {
            input->object.members[i].value =
                json_string(a, shorten(a, v->string, HEAD, "argument"));
            changed = true;
        }
    }
    if (changed && json_write(input, JSON_COMPACT, &out, NULL) == 0) {
        count_saved(t, c->text.len > out.len ? c->text.len : out.len, out.len);
        c->input = input;
        c->text = arena_str(a, buf_str(&out));
        t->calls++;
    }
}

/* The parts of one message, until the target is met. */
static void shorten_message(struct arena *a, struct llm_message *m, enum llm_part_kind kind,
                            size_t head, struct context_trim *t)
{
    struct llm_part *parts = NULL;
    for (size_t i = 0; i < m->n_parts && t->bytes > t->target; i++) {
        if (m->parts[i].kind != kind) {
            continue;
        }
        if (parts == NULL) {
            parts = arena_array(a, m->n_parts, sizeof *parts);
            memcpy(parts, m->parts, m->n_parts * sizeof *parts);
            m->parts = parts;
        }
        if (kind == LLM_PART_RESULT) {
            shorten_result(a, &parts[i], head, t);
        } else {
            shorten_call(a, &parts[i], t);
        }
    }
}

/* The first message that belongs to the last `turns` turns of the model. */
static size_t recent_from(const struct llm_message *messages, size_t n, size_t turns)
{
    while (n > 0 && turns > 0) {
        turns -= messages[--n].role == LLM_ASSISTANT;
    }
    return n;
}

bool context_shorten(struct arena *a, struct llm_message *messages, size_t n,
                     struct context_trim *t)
{
    /* How many turns of the model are left alone, and what of all older ones is shortened. */
    static const struct {
        size_t turns;
        enum llm_part_kind kind;
        size_t head;
    } passes[] = {
        { 6, LLM_PART_RESULT, HEAD }, { 6, LLM_PART_CALL, HEAD },
        { 2, LLM_PART_RESULT, HEAD }, { 2, LLM_PART_CALL, HEAD },
        { 1, LLM_PART_RESULT, HEAD }, { 0, LLM_PART_RESULT, HEAD_NEWEST },
    };
    size_t before = t->results + t->calls;
    for (size_t i = 0; i < ARRAY_LEN(passes) && t->bytes > t->target; i++) {
        size_t end = recent_from(messages, n, passes[i].turns);
        for (size_t k = 0; k < end && t->bytes > t->target; k++) {
            shorten_message(a, &messages[k], passes[i].kind, passes[i].head, t);
        }
    }
    return t->results + t->calls > before;
}

static bool contains_folded(struct str text, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.len; i++) {
        if (strncasecmp(text.ptr + i, word, n) == 0) {
            return true;
        }
    }
    return false;
}

bool context_is_overflow(int status, struct str message)
{
    static const char *const words[] = {
        "context length",           "context_length",
        "context window",           "context size",
        "prompt is too long",       "input is too long",
        "input token count",        "too many tokens",
        "maximum number of tokens", "exceeds the available context",
    };
    for (size_t i = 0; (status == 400 || status == 413) && i < ARRAY_LEN(words); i++) {
        if (contains_folded(message, words[i])) {
            return true;
        }
    }
    return false;
}
