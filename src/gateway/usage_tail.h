/* SPDX-License-Identifier: MIT
 *
 * struct usage_tail: the usage of a response that no codec reads, from its last bytes: embeddings
 * and legacy completions of OpenAI, embeddings of Gemini. Vectors are long and the counts come
 * last, so the end is enough.
 *
 *   struct usage_tail t = { 0 };
 *   usage_tail_add(&t, bytes);                 all of the response, in pieces
 *   if (usage_tail_read(&t, &usage)) …         at its end
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "llm/event.h"

enum { USAGE_TAIL = 4096 };

struct usage_tail {
    char bytes[USAGE_TAIL];
    size_t len;
};

void usage_tail_add(struct usage_tail *t, struct str bytes);
/* False: there is no usage in it. Output that is not reported is 0. */
bool usage_tail_read(const struct usage_tail *t, struct llm_usage *ret);
