/* SPDX-License-Identifier: MIT
 *
 * struct llm_losses: what a translation could not carry over. A target format that cannot express
 * something either refuses the request (ERR_UNSUPPORTED: the meaning would change) or drops it and
 * says so here; the gateway puts the list into the record.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"

struct arena;

#define LLM_LOSSES_MAX 64 /* further ones are only counted */

struct llm_losses {
    struct arena *arena; /* borrowed */
    size_t n;            /* may exceed LLM_LOSSES_MAX */
    struct {
        const char *what; /* "tools[].cache_control": without numbers, so that it is told once */
        const char *why;  /* "chat has no field for it" */
    } items[LLM_LOSSES_MAX];
};

void llm_losses_init(struct llm_losses *l, struct arena *a);
/* "top_k, tools[]: web_search" for a header field: printable ASCII, cut after some kilobyte. */
struct str llm_losses_line(struct arena *a, const struct llm_losses *l);
/* The same (what, why) is kept once. `l` may be NULL. */
void llm_lost(struct llm_losses *l, struct str what, const char *why);
