/* SPDX-License-Identifier: MIT
 *
 * The words of a refusal; see refusal.h.
 */
#include "gateway/refusal.h"

#include <stdio.h>

const char *refusal_reason(enum budget_kind why)
{
    return why == BUDGET_TIME ? "deadline" : "budget";
}

void refusal_error(enum llm_format f, const struct budget_claim *refused, char text[REFUSAL_TEXT],
                   struct llm_error *ret)
{
    static const char *const types[LLM_FORMAT_MAX] = {
        [LLM_ANTHROPIC] = "invalid_request_error",
        [LLM_RESPONSES] = "insufficient_quota",
        [LLM_CHAT] = "insufficient_quota",
        [LLM_GEMINI] = "FAILED_PRECONDITION",
    };
    char detail[BUDGET_TEXT];
    (void)snprintf(text, REFUSAL_TEXT, "The gateway refused this call: %s. Do not try again.",
                   budget_describe(refused, detail));
    bool openai = f == LLM_RESPONSES || f == LLM_CHAT;
    *ret = (struct llm_error) {
        .kind = LLM_ERR_QUOTA,
        .status = REFUSAL_STATUS,
        .type = str_of(types[f]),
        .code = openai ? STR("insufficient_quota") : STR_EMPTY,
        .message = str_of(text),
    };
}
