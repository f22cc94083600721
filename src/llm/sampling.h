/* SPDX-License-Identifier: MIT
 *
 * Which sampling parameters a provider takes. It depends on the format, on the model and on the
 * mode of the request: a parameter that is fine alone is an error together with thinking. Pure.
 *
 *   struct llm_sampling_mode mode = { .format = LLM_ANTHROPIC, .model = model, .thinks = true };
 *   const char *why = llm_sampling_fault(&mode, &sampling, LLM_TEMPERATURE);
 *   if (why != NULL) …                              it must not be sent, and this is the reason
 */
#pragma once

#include "llm/request.h"

struct llm_losses;

enum llm_sampling_field {
    LLM_TEMPERATURE,
    LLM_MAX_TOKENS,
    LLM_TOP_P,
    LLM_STOP,
    LLM_SEED,
    LLM_PRESENCE_PENALTY,
    LLM_FREQUENCY_PENALTY,
    LLM_SAMPLING_FIELDS
};
const char *llm_sampling_name(enum llm_sampling_field f); /* "temperature", "max_tokens", … */
bool llm_sampling_has(const struct llm_sampling *s, enum llm_sampling_field f);

struct llm_sampling_mode {
    enum llm_format format; /* that the upstream speaks */
    struct str model;       /* that it is asked for */
    bool has_temperature;   /* the request has one of its own, … */
    bool has_top_p;         /* … and this, which stays as it is */
    bool thinks;            /* Anthropic: thinking is on */
    int64_t budget;         /* Anthropic: tokens for thinking; 0: not given */
    struct str effort;      /* OpenAI: of reasoning; empty: not given */
    struct str version;     /* Anthropic: of the API; empty: not known */
};

/* OpenAI's models that reason (o1, o3 …, gpt-5 and later). */
bool llm_is_openai_reasoning(struct str model);
/* Why the field of `s` cannot be sent, for people; NULL: it can. */
const char *llm_sampling_fault(const struct llm_sampling_mode *m, const struct llm_sampling *s,
                               enum llm_sampling_field f);
/* Do models of this name take any value but the default, at servers of Anthropic's format? */
bool llm_takes_sampling(struct str model);

/* The part of `s` that can be sent; the rest is reported as dropped. */
struct llm_sampling llm_sampling_allowed(const struct llm_sampling_mode *m,
                                         const struct llm_sampling *s, struct llm_losses *losses);
