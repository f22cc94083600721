/* SPDX-License-Identifier: MIT
 *
 * Cutting a request down to a smaller output limit, in its own bytes: when less of a budget is left
 * than the request could use, its limit is lowered (or, if it has none, put in), and not one other
 * byte changes.
 *
 *   outlimit_write(LLM_ANTHROPIC, STR("gpt-5"), body, 900, &out, e);
 *
 *   Anthropic  max_tokens                 Responses  max_output_tokens
 *   Chat       max_completion_tokens or max_tokens, whichever is there
 *   Gemini     generationConfig.maxOutputTokens
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "llm/request.h"

/* Appends the changed body. ERR_PARSE when the body is no JSON object; nothing is appended then. */
int outlimit_write(enum llm_format f, struct str model, struct str body, int64_t limit,
                   struct buf *out, struct err *e) MUST_USE;
