/* SPDX-License-Identifier: MIT
 *
 * Names of a template, each spelling once, so that the scope pass compares numbers and the renderer
 * has the hash at hand. Open addressing; the table itself goes after compiling, the names stay.
 */
#include "template/template_ast_priv.h"

#include <stdlib.h>

static void place(struct name **slots, size_t cap, struct name *n)
{
    size_t i = (size_t)n->hash & (cap - 1);
    while (slots[i] != NULL) {
        i = (i + 1) & (cap - 1);
    }
    slots[i] = n;
}

static void grow(struct name_table *t)
{
    size_t cap = t->cap == 0 ? 64 : t->cap * 2;
    struct name **slots = xcalloc(cap, sizeof *slots);
    for (size_t i = 0; i < t->cap; i++) {
        if (t->slots[i] != NULL) {
            place(slots, cap, t->slots[i]);
        }
    }
    free(t->slots);
    t->slots = slots;
    t->cap = cap;
}

const struct name *tpl_name_intern(struct name_table *t, struct str text)
{
    uint64_t hash = tpl_value_hash_text(text);
    for (size_t i = (size_t)hash & (t->cap - 1); t->cap > 0 && t->slots[i] != NULL;
         i = (i + 1) & (t->cap - 1)) {
        if (t->slots[i]->hash == hash && str_eq(t->slots[i]->text, text)) {
            return t->slots[i];
        }
    }
    if ((t->len + 1) * 2 > t->cap) {
        grow(t);
    }
    struct name *n = ARENA_NEW(t->arena, struct name);
    *n = (struct name) { .text = arena_str(t->arena, text), .hash = hash, .id = t->len++ };
    place(t->slots, t->cap, n);
    return n;
}

void tpl_name_table_done(struct name_table *t)
{
    free(t->slots);
    t->slots = NULL;
    t->cap = 0;
}
