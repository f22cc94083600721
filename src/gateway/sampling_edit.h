/* SPDX-License-Identifier: MIT
 *
 * Setting sampling parameters in a request body that is forwarded as it is. Only their values are
 * written, as text; every other byte stays, so that a provider's prompt cache still fits.
 *
 *   struct sampling_report report = { 0 };
 *   sampling_edit(arena, &target, &wish, &out, &report, e)
 *
 * `out` stays empty where nothing could be set. What the provider would refuse in this request
 * (llm/sampling.h) is not set but reported. Stop texts of the request are kept, and those of the
 * wish come after them.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "llm/sampling.h"

struct arena;

struct sampling_report {
    const char *set[LLM_SAMPLING_FIELDS];
    const char *unsent[LLM_SAMPLING_FIELDS + 1]; /* NULL ends */
    const char *why[LLM_SAMPLING_FIELDS];        /* of `unsent` */
    size_t n_set, n_unsent;
};

struct sampling_target {
    struct str body;
    enum llm_format format;
    struct str model;    /* that the upstream is asked for */
    struct str version;  /* the value of anthropic-version; empty: none */
    const char *refused; /* why the upstream takes none of them; NULL: it does */
};

/* For `refused`, by the name of an upstream. */
const char *sampling_refusal(const char *upstream);
/* ERR_PARSE for a body that is not an object, or that has one of the members twice. */
int sampling_edit(struct arena *a, const struct sampling_target *t, const struct llm_sampling *wish,
                  struct buf *out, struct sampling_report *ret, struct err *e) MUST_USE;
/* The same for a request that is translated: what can be sent goes into `s`. */
void sampling_merge(struct arena *a, const struct llm_sampling_mode *m, const char *refused,
                    const struct llm_sampling *wish, struct llm_sampling *s,
                    struct sampling_report *ret);
