/* SPDX-License-Identifier: MIT
 *
 * struct scan: the few members of a request body that routing and budgets need, found without
 * building a tree: model, stream, the limit of output, and where the conversation lies. One pass
 * that skips over strings; a prompt of 200 KB costs microseconds. Places in the body are kept, so
 * that a value can be replaced with every other byte left as it is.
 *
 *   struct scan s;
 *   if (!scan_request(body, &s)) …                    not an object, or not safe to judge
 *   scan_set_model(body, &s, STR("other"), &out, e);
 *
 * What another reader of the body could take for something else is refused: a member that matters
 * given twice or in another case (servers in Go do not mind the case), or top-level names and
 * models written with escapes. The rest of the body is only
 * skipped, not validated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "gateway/price.h"

struct scan_place {
    size_t from, to; /* of the value in the body; both 0: not there */
};

struct scan {
    struct str model; /* borrowed, without quotes; empty: none */
    bool stream;
    int64_t max_output; /* 0: not limited */
    struct scan_place model_at;
    struct scan_place max_at;           /* max_tokens, max_completion_tokens, max_output_tokens, or
                                 generationConfig.maxOutputTokens */
    struct scan_place config_at;        /* generationConfig, an object */
    struct scan_place options_at;       /* stream_options, … */
    struct scan_place include_usage_at; /* … and include_usage in it … */
    bool include_usage;                 /* … which is true */
    bool tools;                         /* some are offered */
    int64_t choices; /* responses generated for this one request: n, best_of, candidateCount, the
                        largest of them; 0: none is named, -1: not a whole number above 0 */
    struct price_terms terms;  /* service_tier, speed, inference_geo */
    bool background;           /* the response is generated later and read elsewhere */
    bool prediction;           /* rejected parts of it are billed beyond the limit of output */
    struct scan_place talk_at; /* messages, input or contents */
    size_t first_to;           /* in it: where its second item ends, … */
    size_t before_from;        /* … where the last but one begins, … */
    size_t last_from;          /* … and the last; of a text: its beginning */
};

bool scan_request(struct str body, struct scan *ret);
/* The body with another model, or with another limit of output: appended to `out`. The member is
 * `name` where there is none so far; for Gemini "maxOutputTokens", which goes into
 * generationConfig. */
int scan_set_model(struct str body, const struct scan *s, struct str model, struct buf *out,
                   struct err *e) MUST_USE;
int scan_set_max(struct str body, const struct scan *s, const char *name, int64_t max,
                 struct buf *out, struct err *e) MUST_USE;
/* The body with stream_options.include_usage set to true: appended to `out`. ERR_PARSE where
 * stream_options is neither an object nor null. */
int scan_set_include_usage(struct str body, const struct scan *s, struct buf *out,
                           struct err *e) MUST_USE;
