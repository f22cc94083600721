/* SPDX-License-Identifier: MIT
 *
 * The list of what a translation could not carry over.
 */
#include "llm/dropped.h"

#include <string.h>

#include "base/arena.h"

void llm_losses_init(struct llm_losses *l, struct arena *a)
{
    *l = (struct llm_losses) { .arena = a };
}

void llm_lost(struct llm_losses *l, struct str what, const char *why)
{
    if (l == NULL) {
        return;
    }
    size_t kept = l->n < LLM_LOSSES_MAX ? l->n : LLM_LOSSES_MAX;
    for (size_t i = 0; i < kept; i++) {
        if (str_eqc(what, l->items[i].what) && strcmp(why, l->items[i].why) == 0) {
            return;
        }
    }
    if (l->n < LLM_LOSSES_MAX) {
        l->items[l->n].what = arena_dup(l->arena, what);
        l->items[l->n].why = why; /* a literal */
    }
    l->n++;
}
