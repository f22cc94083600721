/* SPDX-License-Identifier: MIT
 *
 * One pass finds the members that matter and their places; then the edits are spliced in, in the
 * order of their places. See sampling_edit.h.
 */
#include "gateway/sampling_edit.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/macro.h"
#include "gateway/cursor.h"
#include "gateway/scan.h"

/* Members of each format. Two names of one field are two spellings of it; the first is written. */
#define SPELLINGS 3
static const char *const spellings[LLM_FORMAT_MAX][LLM_SAMPLING_FIELDS][SPELLINGS] = {
    [LLM_ANTHROPIC] = { [LLM_TEMPERATURE] = { "temperature" },
                        [LLM_MAX_TOKENS] = { "max_tokens" },
                        [LLM_TOP_P] = { "top_p" },
                        [LLM_STOP] = { "stop_sequences" } },
    [LLM_RESPONSES] = { [LLM_TEMPERATURE] = { "temperature" },
                        [LLM_MAX_TOKENS] = { "max_output_tokens" },
                        [LLM_TOP_P] = { "top_p" } },
    [LLM_CHAT] = { [LLM_TEMPERATURE] = { "temperature" },
                   [LLM_MAX_TOKENS] = { "max_completion_tokens", "max_tokens" },
                   [LLM_TOP_P] = { "top_p" },
                   [LLM_STOP] = { "stop" },
                   [LLM_SEED] = { "seed" },
                   [LLM_PRESENCE_PENALTY] = { "presence_penalty" },
                   [LLM_FREQUENCY_PENALTY] = { "frequency_penalty" } },
    [LLM_GEMINI] = { [LLM_TEMPERATURE] = { "temperature" },
                     [LLM_MAX_TOKENS] = { "maxOutputTokens", "max_output_tokens" },
                     [LLM_TOP_P] = { "topP", "top_p" },
                     [LLM_STOP] = { "stopSequences", "stop_sequences" },
                     [LLM_SEED] = { "seed" },
                     [LLM_PRESENCE_PENALTY] = { "presencePenalty", "presence_penalty" },
                     [LLM_FREQUENCY_PENALTY] = { "frequencyPenalty", "frequency_penalty" } },
};

struct found {
    enum llm_format format;
    bool inside; /* Gemini: the members of generationConfig, not those of the body */
    struct scan_place at[LLM_SAMPLING_FIELDS];
    struct scan_place config; /* Gemini: generationConfig */
    struct scan_place mode;   /* thinking, reasoning or reasoning_effort */
};

const char *sampling_refusal(const char *upstream)
{
    /* "Unsupported parameter: temperature", and so for all of them */
    return strcmp(upstream, "chatgpt.com") == 0 ? "the service behind ChatGPT logins takes none"
                                                : NULL;
}

/* --- finding --- */

static bool note_place(struct cursor *c, struct scan_place *place)
{
    if (place->to != 0) {
        return false; /* twice: another reader may take the other one */
    }
    place->from = c->at;
    bool good = cursor_skip_value(c);
    place->to = c->at;
    return good;
}

static struct scan_place *place_of(struct found *f, struct str key)
{
    static const char *const modes[LLM_FORMAT_MAX] = {
        [LLM_ANTHROPIC] = "thinking", [LLM_RESPONSES] = "reasoning", [LLM_CHAT] = "reasoning_effort"
    };
    if (f->format == LLM_GEMINI && !f->inside) {
        bool config = str_eqc(key, "generationConfig") || str_eqc(key, "generation_config");
        return config ? &f->config : NULL;
    }
    if (modes[f->format] != NULL && str_eqc(key, modes[f->format])) {
        return &f->mode;
    }
    for (size_t i = 0; i < LLM_SAMPLING_FIELDS; i++) {
        const char *const *names = spellings[f->format][i];
        for (size_t k = 0; k < SPELLINGS && names[k] != NULL; k++) {
            if (str_eqc(key, names[k])) {
                return &f->at[i];
            }
        }
    }
    return NULL;
}

static bool on_member(struct cursor *c, struct str key, void *arg)
{
    struct found *f = arg;
    struct scan_place *place = place_of(f, key);
    if (place == NULL) {
        return cursor_skip_value(c);
    }
    struct cursor value = *c;
    if (!note_place(c, place)) {
        return false;
    }
    if (place != &f->config || value.text.ptr[value.at] != '{') {
        return true;
    }
    f->inside = true;
    bool good = cursor_each_member(&value, on_member, f);
    f->inside = false;
    return good;
}

/* --- the mode --- */

static struct llm_sampling_mode mode_of(struct arena *a, const struct sampling_target *t,
                                        struct str body, const struct found *f)
{
    struct llm_sampling_mode m = { .format = t->format,
                                   .model = t->model,
                                   .version = t->version,
                                   .has_temperature = f->at[LLM_TEMPERATURE].to != 0,
                                   .has_top_p = f->at[LLM_TOP_P].to != 0 };
    struct json *v = NULL;
    if (f->mode.to == 0 ||
        json_parse(a, str_slice(body, f->mode.from, f->mode.to), NULL, &v, NULL) < 0) {
        return m;
    }
    if (t->format == LLM_ANTHROPIC) {
        m.thinks = json_is(v, JSON_OBJECT) &&
                   !str_eqc(json_str(json_get(v, "type"), STR_EMPTY), "disabled");
        m.budget = json_int(json_get(v, "budget_tokens"), 0);
    } else {
        m.effort = json_str(t->format == LLM_RESPONSES ? json_get(v, "effort") : v, STR_EMPTY);
    }
    return m;
}

/* --- values --- */

/* Those of the request, then those of the wish that it does not have. */
static struct json *joined_stops(struct arena *a, const struct json *own,
                                 const struct llm_sampling *wish)
{
    struct json *list = json_array(a);
    if (json_is(own, JSON_STRING)) {
        json_push(a, list, json_string(a, own->string));
    }
    for (size_t i = 0; json_is(own, JSON_ARRAY) && i < json_len(own); i++) {
        json_push(a, list, json_copy(a, json_item(own, i)));
    }
    for (size_t i = 0; i < wish->n_stops; i++) {
        bool known = false;
        for (size_t k = 0; k < json_len(list); k++) {
            known = known || str_eq(json_str(json_item(list, k), STR_EMPTY), wish->stops[i]);
        }
        if (!known) {
            json_push(a, list, json_string(a, wish->stops[i]));
        }
    }
    return list;
}

static struct json *value_of(struct arena *a, enum llm_sampling_field f,
                             const struct llm_sampling *wish, const struct json *stops)
{
    switch (f) {
    case LLM_TEMPERATURE:
        return json_number(a, wish->temperature);
    case LLM_MAX_TOKENS:
        return json_integer(a, wish->max_tokens);
    case LLM_TOP_P:
        return json_number(a, wish->top_p);
    case LLM_STOP:
        return json_copy(a, stops);
    case LLM_SEED:
        return json_integer(a, wish->seed);
    case LLM_PRESENCE_PENALTY:
        return json_number(a, wish->presence_penalty);
    case LLM_FREQUENCY_PENALTY:
        return json_number(a, wish->frequency_penalty);
    case LLM_SAMPLING_FIELDS:
        break;
    }
    return NULL;
}

/* --- editing --- */

struct edit {
    struct scan_place at;
    struct str text;
};

struct edits {
    struct edit items[LLM_SAMPLING_FIELDS + 1];
    size_t n;
    struct buf added; /* members that the request does not have */
};

static int compare_edits(const void *a, const void *b)
{
    const struct edit *x = a;
    const struct edit *y = b;
    return x->at.from < y->at.from ? -1 : x->at.from > y->at.from;
}

static void plan_edit(struct arena *a, const struct found *f, enum llm_sampling_field field,
                      const char *name, const struct json *value, struct edits *ed)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    (void)!json_write(value, JSON_COMPACT, &text, NULL);
    if (f->at[field].to != 0) {
        ed->items[ed->n++] = (struct edit) { f->at[field], arena_str(a, buf_str(&text)) };
        return;
    }
    buf_addf(&ed->added, "%s\"%s\":%s", ed->added.len > 0 ? "," : "", name, text.ptr);
}

/* New members come right behind the '{' of the body, or of Gemini's configuration. */
static void plan_members(struct arena *a, struct str body, const struct found *f, struct edits *ed)
{
    bool gemini = f->format == LLM_GEMINI;
    bool object = f->config.to != 0 && body.ptr[f->config.from] == '{';
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    if (ed->added.len == 0) {
        return;
    }
    if (gemini && f->config.to != 0 && !object) { /* null */
        buf_addf(&text, "{%s}", ed->added.ptr);
        ed->items[ed->n++] = (struct edit) { f->config, arena_str(a, buf_str(&text)) };
        return;
    }
    struct cursor c = { body, object ? f->config.from : 0 };
    (void)cursor_peek(&c);
    size_t at = ++c.at;
    buf_addf(&text, gemini && !object ? "\"generationConfig\":{%s}" : "%s", ed->added.ptr);
    buf_adds(&text, cursor_peek(&c) == '}' ? "" : ",");
    ed->items[ed->n++] = (struct edit) { { at, at }, arena_str(a, buf_str(&text)) };
}

static int splice_edits(struct str body, struct edits *ed, struct buf *out, struct err *e)
{
    size_t from = 0;
    int rc = 0;
    qsort(ed->items, ed->n, sizeof *ed->items, compare_edits);
    for (size_t i = 0; rc == 0 && i < ed->n; i++) {
        rc = buf_append(out, str_slice(body, from, ed->items[i].at.from), e);
        rc = rc < 0 ? rc : buf_append(out, ed->items[i].text, e);
        from = ed->items[i].at.to;
    }
    return rc < 0 || ed->n == 0 ? rc : buf_append(out, str_slice(body, from, body.len), e);
}

static void report(struct sampling_report *ret, enum llm_sampling_field f, const char *why)
{
    if (why == NULL) {
        ret->set[ret->n_set++] = llm_sampling_name(f);
    } else {
        ret->why[ret->n_unsent] = why;
        ret->unsent[ret->n_unsent++] = llm_sampling_name(f);
    }
}

/* OpenAI's reasoning models refuse the old name, which is the one that other servers know. */
static const char *name_of(const struct sampling_target *t, enum llm_sampling_field f)
{
    bool old = t->format == LLM_CHAT && f == LLM_MAX_TOKENS && !llm_is_openai_reasoning(t->model);
    return spellings[t->format][f][old ? 1 : 0];
}

static struct json *stops_of(struct arena *a, struct str body, const struct found *f,
                             const struct llm_sampling *wish)
{
    struct json *own = NULL;
    const struct scan_place *at = &f->at[LLM_STOP];
    bool given =
        at->to != 0 && json_parse(a, str_slice(body, at->from, at->to), NULL, &own, NULL) == 0;
    return joined_stops(a, given ? own : NULL, wish);
}

int sampling_edit(struct arena *a, const struct sampling_target *t, const struct llm_sampling *wish,
                  struct buf *out, struct sampling_report *ret, struct err *e)
{
    struct str body = t->body;
    struct found found = { .format = t->format };
    struct edits ed = { .added = BUF_INIT(BUF_TEXT) };
    struct cursor c = { .text = body };
    *ret = (struct sampling_report) { 0 };
    if (!cursor_each_member(&c, on_member, &found)) {
        return ERR(e, ERR_PARSE, "the body is not a JSON object, or has duplicate keys");
    }
    struct llm_sampling_mode mode = mode_of(a, t, body, &found);
    struct llm_sampling sent = *wish;
    struct json *stops = stops_of(a, body, &found, wish);
    sent.n_stops = wish->n_stops > 0 ? json_len(stops) : 0;
    for (enum llm_sampling_field f = 0; f < LLM_SAMPLING_FIELDS; f++) {
        if (!llm_sampling_has(wish, f)) {
            continue;
        }
        const char *why = t->refused != NULL ? t->refused : llm_sampling_fault(&mode, &sent, f);
        report(ret, f, why);
        if (why == NULL) {
            plan_edit(a, &found, f, name_of(t, f), value_of(a, f, wish, stops), &ed);
        } else if (f == LLM_TEMPERATURE) {
            sent.has_temperature = false;
        }
    }
    plan_members(a, body, &found, &ed);
    int rc = splice_edits(body, &ed, out, e);
    buf_done(&ed.added);
    return rc;
}

/* --- translated requests --- */

static void merge_field(struct arena *a, enum llm_sampling_field f, const struct llm_sampling *wish,
                        struct llm_sampling *s)
{
    struct str *stops;
    switch (f) {
    case LLM_TEMPERATURE:
        s->has_temperature = true;
        s->temperature = wish->temperature;
        break;
    case LLM_MAX_TOKENS:
        s->max_tokens = wish->max_tokens;
        break;
    case LLM_TOP_P:
        s->has_top_p = true;
        s->top_p = wish->top_p;
        break;
    case LLM_STOP:
        stops = arena_array(a, s->n_stops + wish->n_stops, sizeof *stops);
        for (size_t i = 0; i < s->n_stops; i++) {
            stops[i] = s->stops[i];
        }
        for (size_t i = 0; i < wish->n_stops; i++) {
            stops[s->n_stops + i] = wish->stops[i];
        }
        s->stops = stops;
        s->n_stops += wish->n_stops;
        break;
    case LLM_SEED:
        s->has_seed = true;
        s->seed = wish->seed;
        break;
    case LLM_PRESENCE_PENALTY:
        s->has_presence = true;
        s->presence_penalty = wish->presence_penalty;
        break;
    case LLM_FREQUENCY_PENALTY:
        s->has_frequency = true;
        s->frequency_penalty = wish->frequency_penalty;
        break;
    case LLM_SAMPLING_FIELDS:
        break;
    }
}

void sampling_merge(struct arena *a, const struct llm_sampling_mode *m, const char *refused,
                    const struct llm_sampling *wish, struct llm_sampling *s,
                    struct sampling_report *ret)
{
    struct llm_sampling sent = *wish;
    sent.n_stops += wish->n_stops > 0 ? s->n_stops : 0;
    *ret = (struct sampling_report) { 0 };
    for (enum llm_sampling_field f = 0; f < LLM_SAMPLING_FIELDS; f++) {
        if (!llm_sampling_has(wish, f)) {
            continue;
        }
        const char *why = refused != NULL ? refused : llm_sampling_fault(m, &sent, f);
        report(ret, f, why);
        if (why == NULL) {
            merge_field(a, f, wish, s);
        } else if (f == LLM_TEMPERATURE) {
            sent.has_temperature = s->has_temperature;
        }
    }
}
