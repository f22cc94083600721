/* SPDX-License-Identifier: MIT
 *
 * The list of what a translation could not carry over.
 */
#include "llm/dropped.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"

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

#define LINE_BYTES 1000

struct str llm_losses_line(struct arena *a, const struct llm_losses *l)
{
    CLEANUP(buf) struct buf line = BUF_INIT(BUF_TEXT);
    size_t kept = l->n < LLM_LOSSES_MAX ? l->n : LLM_LOSSES_MAX;
    size_t i = 0;
    for (; i < kept && line.len < LINE_BYTES; i++) {
        buf_addf(&line, "%s%.200s", i > 0 ? ", " : "", l->items[i].what);
    }
    if (i < l->n) {
        buf_addf(&line, ", and %zu more", l->n - i);
    }
    for (size_t j = 0; j < line.len; j++) {
        line.ptr[j] = line.ptr[j] >= ' ' && line.ptr[j] <= '~' ? line.ptr[j] : '?';
    }
    return arena_str(a, buf_str(&line));
}
