/* SPDX-License-Identifier: MIT
 *
 * What the providers document and answer with status 400; see sampling.h.
 */
#include "llm/sampling.h"

#include "base/macro.h"
#include "llm/codec_priv.h"

static const char *const names[LLM_SAMPLING_FIELDS] = {
    [LLM_TEMPERATURE] = "temperature",
    [LLM_MAX_TOKENS] = "max_tokens",
    [LLM_TOP_P] = "top_p",
    [LLM_STOP] = "stop",
    [LLM_SEED] = "seed",
    [LLM_PRESENCE_PENALTY] = "presence_penalty",
    [LLM_FREQUENCY_PENALTY] = "frequency_penalty",
};

const char *llm_sampling_name(enum llm_sampling_field f)
{
    return names[f];
}

bool llm_sampling_has(const struct llm_sampling *s, enum llm_sampling_field f)
{
    switch (f) {
    case LLM_TEMPERATURE:
        return s->has_temperature;
    case LLM_MAX_TOKENS:
        return s->max_tokens > 0;
    case LLM_TOP_P:
        return s->has_top_p;
    case LLM_STOP:
        return s->n_stops > 0;
    case LLM_SEED:
        return s->has_seed;
    case LLM_PRESENCE_PENALTY:
        return s->has_presence;
    case LLM_FREQUENCY_PENALTY:
        return s->has_frequency;
    case LLM_SAMPLING_FIELDS:
        break;
    }
    return false;
}

/* --- Anthropic --- */

static bool is_claude(struct str model, const char *const *globs, size_t n)
{
    size_t at = str_find(model, STR("claude"));
    for (size_t i = 0; at < model.len && i < n; i++) {
        if (str_glob(str_of(globs[i]), str_slice(model, at, model.len), true)) {
            return true;
        }
    }
    return false;
}

static bool is_compatible_server(struct str model)
{
    return str_find(model, STR("claude")) == model.len;
}

/* Claude models since Opus 4.1 refuse temperature and top_p together. */
static bool takes_both(struct str model)
{
    static const char *const old[] = { "claude-1*",           "claude-2*",
                                       "claude-3*",           "claude-instant*",
                                       "claude-opus-4-0*",    "claude-sonnet-4-0*",
                                       "claude-opus-4-2025*", "claude-sonnet-4-2025*" };
    return is_compatible_server(model) || is_claude(model, old, ARRAY_LEN(old));
}

/* Claude models since Opus 4.7 refuse every value but the default, also without thinking. */
bool llm_takes_sampling(struct str model)
{
    static const char *const old[] = {
        "claude-1*",         "claude-2*",          "claude-3*",         "claude-instant*",
        "claude-opus-4-2*",  "claude-sonnet-4-2*", "claude-opus-4-0*",  "claude-sonnet-4-0*",
        "claude-opus-4-1*",  "claude-sonnet-4-1*", "claude-opus-4-5*",  "claude-sonnet-4-5*",
        "claude-haiku-4-5*", "claude-opus-4-6*",   "claude-sonnet-4-6*"
    };
    return is_compatible_server(model) || is_claude(model, old, ARRAY_LEN(old));
}

static const char *anthropic_temperature_fault(const struct llm_sampling_mode *m, double value)
{
    if (m->version.len > 0 && str_cmp(m->version, STR("2026-10-21")) >= 0) {
        return "this version of Anthropic's API has no such field";
    }
    if (value == 1) {
        return NULL; /* the default */
    }
    if (value > 1) {
        return "anthropic's maximum is 1";
    }
    if (m->thinks) {
        return "anthropic does not take it with thinking";
    }
    if (m->has_top_p && !takes_both(m->model)) {
        return "the request has top_p, and this model does not take both";
    }
    return llm_takes_sampling(m->model) ? NULL : "this Claude model takes only the default";
}

static const char *anthropic_top_p_fault(const struct llm_sampling_mode *m,
                                         const struct llm_sampling *s)
{
    if (m->version.len > 0 && str_cmp(m->version, STR("2026-10-21")) >= 0) {
        return "this version of Anthropic's API has no such field";
    }
    if ((s->has_temperature || m->has_temperature) && !takes_both(m->model)) {
        return "this model does not take it with a temperature";
    }
    if (m->thinks && s->top_p < 0.95) {
        return "anthropic does not take it with thinking";
    }
    return llm_takes_sampling(m->model) ? NULL : "this Claude model takes only the default";
}

static const char *anthropic_fault(const struct llm_sampling_mode *m, const struct llm_sampling *s,
                                   enum llm_sampling_field f)
{
    switch (f) {
    case LLM_TEMPERATURE:
        return anthropic_temperature_fault(m, s->temperature);
    case LLM_TOP_P:
        return anthropic_top_p_fault(m, s);
    case LLM_MAX_TOKENS:
        return m->thinks && m->budget >= s->max_tokens
                   ? "it is not above the tokens that the request gives to thinking"
                   : NULL;
    case LLM_STOP:
        return NULL;
    case LLM_SEED:
    case LLM_PRESENCE_PENALTY:
    case LLM_FREQUENCY_PENALTY:
    case LLM_SAMPLING_FIELDS:
        break;
    }
    return "anthropic requests have no such field";
}

/* --- OpenAI --- */

bool llm_is_openai_reasoning(struct str model)
{
    if (model.len > 1 && model.ptr[0] == 'o' && model.ptr[1] >= '1' && model.ptr[1] <= '9') {
        return true;
    }
    return str_starts(model, STR("gpt-")) && model.len > 4 && model.ptr[4] >= '5' &&
           model.ptr[4] <= '9';
}

/* OpenAI's reasoning models; other servers ignore what they do not use. */
static bool reasons(const struct llm_sampling_mode *m)
{
    return llm_is_openai_reasoning(m->model) && !str_eqc(m->effort, "none");
}

static const char *responses_fault(const struct llm_sampling_mode *m, enum llm_sampling_field f)
{
    if (f == LLM_MAX_TOKENS) {
        return NULL;
    }
    if (f != LLM_TEMPERATURE && f != LLM_TOP_P) {
        return "responses requests have no such field";
    }
    return reasons(m) ? "this model does not take it while it reasons" : NULL;
}

static const char *chat_fault(const struct llm_sampling_mode *m, const struct llm_sampling *s,
                              enum llm_sampling_field f)
{
    enum { STOPS_MAX = 4 };
    if (f == LLM_MAX_TOKENS || f == LLM_SEED) {
        return NULL;
    }
    if (f == LLM_STOP && s->n_stops > STOPS_MAX) {
        return "chat requests take at most 4 texts";
    }
    return reasons(m) ? "this model does not take it while it reasons" : NULL;
}

static const char *gemini_fault(const struct llm_sampling *s, enum llm_sampling_field f)
{
    enum { STOPS_MAX = 5 };
    return f == LLM_STOP && s->n_stops > STOPS_MAX ? "gemini requests take at most 5 texts" : NULL;
}

const char *llm_sampling_fault(const struct llm_sampling_mode *m, const struct llm_sampling *s,
                               enum llm_sampling_field f)
{
    switch (m->format) {
    case LLM_ANTHROPIC:
        return anthropic_fault(m, s, f);
    case LLM_RESPONSES:
        return responses_fault(m, f);
    case LLM_CHAT:
        return chat_fault(m, s, f);
    case LLM_GEMINI:
        return gemini_fault(s, f);
    case LLM_FORMAT_MAX:
        break;
    }
    return NULL;
}

static void clear_field(struct llm_sampling *s, enum llm_sampling_field f)
{
    switch (f) {
    case LLM_TEMPERATURE:
        s->has_temperature = false;
        break;
    case LLM_MAX_TOKENS:
        s->max_tokens = 0;
        break;
    case LLM_TOP_P:
        s->has_top_p = false;
        break;
    case LLM_STOP:
        s->n_stops = 0;
        break;
    case LLM_SEED:
        s->has_seed = false;
        break;
    case LLM_PRESENCE_PENALTY:
        s->has_presence = false;
        break;
    case LLM_FREQUENCY_PENALTY:
        s->has_frequency = false;
        break;
    case LLM_SAMPLING_FIELDS:
        break;
    }
}

struct llm_sampling llm_sampling_allowed(const struct llm_sampling_mode *m,
                                         const struct llm_sampling *s, struct llm_losses *losses)
{
    struct llm_sampling allowed = *s;
    for (enum llm_sampling_field f = 0; f < LLM_SAMPLING_FIELDS; f++) {
        const char *why = llm_sampling_has(&allowed, f) ? llm_sampling_fault(m, &allowed, f) : NULL;
        if (why != NULL) {
            llm_lost(losses, str_of(names[f]), why);
            clear_field(&allowed, f);
        }
    }
    return allowed;
}
