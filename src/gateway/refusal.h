/* SPDX-License-Identifier: MIT
 *
 * How the gateway says no when the budget is used up or the time is over: an error in the words of
 * the client's own provider, chosen so that harnesses stop at once instead of trying again.
 *
 * What they do not try again was seen on the real programs (claude 2, codex, gemini, opencode): 400
 * without a word about length or context. 401 and 429 are retried by some, 402 by none but not
 * known to all, and a message that looks like "prompt is too long" starts a compaction. The answer
 * also carries `x-should-retry: false`, which the SDKs of Anthropic and OpenAI obey, and
 * `x-cinch-reason: budget` (or `deadline`), by which a gateway below this one knows that it need
 * not try either.
 */
#pragma once

#include "gateway/budget.h"
#include "llm/event.h"
#include "llm/request.h"

enum { REFUSAL_STATUS = 400 };

#define REFUSAL_FIELD "x-cinch-reason"

/* "budget" or "deadline". */
const char *refusal_reason(enum budget_kind why);
/* Fills *ret; its message is in `text`. */
enum { REFUSAL_TEXT = 240 };
void refusal_error(enum llm_format f, const struct budget *b, enum budget_kind why,
                   char text[REFUSAL_TEXT], struct llm_error *ret);
