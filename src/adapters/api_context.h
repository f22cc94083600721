/* SPDX-License-Identifier: MIT
 *
 * Keeping a conversation with a model within its context window. What costs most and is needed
 * least is shortened first: results of old tool calls, then texts that the model itself wrote into
 * old calls, and the newest results only if nothing else helps. Nothing is removed: every call
 * keeps its result, roles alternate as before, and the prompt and the model's own words stay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "llm/request.h"

struct context_trim {
    size_t bytes;          /* of the request, as it is; afterwards an estimate of what it is now */
    size_t target;         /* that it should have */
    size_t results, calls; /* that were shortened by this pass */
};

/* Replaces parts of the messages by shorter ones, made in `a`; returns whether it changed any. What
 * was shortened before is left alone, so that a second pass finds nothing. */
bool context_shorten(struct arena *a, struct llm_message *messages, size_t n,
                     struct context_trim *t);

/* Does a provider say by this that the conversation is too long for the model? */
bool context_is_overflow(int status, struct str message);
