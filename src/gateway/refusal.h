/* SPDX-License-Identifier: MIT
 *
 * How the gateway says no when the budget is used up or the time is over: an error in the words of
 * the client's own provider, chosen so that harnesses stop at once instead of trying again.
 *
 * What they do not try again was seen on the real programs (claude 2, codex, gemini, opencode): 400
 * without a word about length or context. 401 and 429 are retried by some, 402 by none but not
 * known to all, and a message that looks like "prompt is too long" starts a compaction. The answer
 * also carries `x-should-retry: false`, which the SDKs of Anthropic and OpenAI obey,
 * `x-cinch-reason: budget` (or `deadline`), by which a gateway below this one knows that it need
 * not try either, and `x-cinch-limit`, which names the limit.
 */
#pragma once

#include "gateway/budget.h"
#include "llm/event.h"
#include "llm/request.h"

enum { REFUSAL_STATUS = 400 };

#define REFUSAL_FIELD "x-cinch-reason"

/* Names the limit: a word of budget_kind_word(). */
#define REFUSAL_LIMIT_FIELD "x-cinch-limit"

/* "budget" or "deadline". */
const char *refusal_reason(enum budget_kind why);
/* Fills *ret for the claim that was refused; its message is in `text`. */
enum { REFUSAL_TEXT = BUDGET_TEXT + 60 };
void refusal_error(enum llm_format f, const struct budget_claim *refused, char text[REFUSAL_TEXT],
                   struct llm_error *ret);
