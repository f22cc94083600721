/* SPDX-License-Identifier: MIT
 *
 * The tables of template_symbols_priv.h. Layers instead of copies keep a template with thousands of
 * `if`s and names linear; slots are handed out by the frame, so that all layers agree on them.
 */
#include "template/template_symbols_priv.h"

static size_t spot(const struct symbols *s, const struct name *name)
{
    return (size_t)(name->id * 0x9e3779b9u) & (s->slots - 1);
}

static struct symbol *own(const struct symbols *s, const struct name *name)
{
    if (s->slots == 0) {
        return NULL;
    }
    for (size_t i = spot(s, name); s->index[i] != 0; i = (i + 1) & (s->slots - 1)) {
        if (s->items[s->index[i] - 1].name == name) {
            return &s->items[s->index[i] - 1];
        }
    }
    return NULL;
}

static void reindex(struct symbols *s)
{
    s->slots = s->slots == 0 ? 16 : s->slots * 2;
    s->index = arena_array(s->scratch, s->slots, sizeof *s->index);
    for (size_t k = 0; k < s->len; k++) {
        size_t i = spot(s, s->items[k].name);
        while (s->index[i] != 0) {
            i = (i + 1) & (s->slots - 1);
        }
        s->index[i] = (uint32_t)k + 1;
    }
}

static struct symbol *make(struct symbols *s, const struct name *name)
{
    struct symbol *found = own(s, name);
    if (found != NULL) {
        return found;
    }
    if (s->len == s->cap) {
        s->cap = s->cap == 0 ? 8 : s->cap * 2;
        struct symbol *more = arena_array(s->scratch, s->cap, sizeof *more);
        if (s->len > 0) {
            memcpy(more, s->items, s->len * sizeof *more);
        }
        s->items = more;
    }
    if ((s->len + 1) * 2 > s->slots) {
        reindex(s);
    }
    size_t i = spot(s, name);
    while (s->index[i] != 0) {
        i = (i + 1) & (s->slots - 1);
    }
    struct symbol *fresh = &s->items[s->len++];
    *fresh = (struct symbol) { .name = name };
    s->index[i] = (uint32_t)s->len;
    return fresh;
}

struct symbols *tpl_symbols_new(struct arena *scratch, struct symbols *parent, struct func *func)
{
    struct symbols *s = ARENA_NEW(scratch, struct symbols);
    *s = (struct symbols) { .parent = parent, .bottom = s, .func = func, .scratch = scratch };
    return s;
}

struct symbols *tpl_symbols_layer(struct symbols *under)
{
    struct symbols *s = tpl_symbols_new(under->scratch, under->parent, under->func);
    s->under = under;
    s->bottom = under->bottom;
    return s;
}

/* The reference to a name in this frame, seen from this layer downward. */
static const struct symbol *frame_ref(const struct symbols *s, const struct name *name)
{
    for (; s != NULL; s = s->under) {
        const struct symbol *found = own(s, name);
        if (found != NULL && found->has_ref) {
            return found;
        }
    }
    return NULL;
}

static bool frame_stores(const struct symbols *s, const struct name *name)
{
    for (; s != NULL; s = s->under) {
        const struct symbol *found = own(s, name);
        if (found != NULL && found->store) {
            return true;
        }
    }
    return false;
}

const struct symbol *tpl_symbols_find(const struct symbols *s, const struct name *name,
                                      const struct symbols **ret_frame)
{
    for (; s != NULL; s = s->parent) {
        const struct symbol *found = frame_ref(s, name);
        if (found != NULL) {
            *ret_frame = s->bottom;
            return found;
        }
    }
    return NULL;
}

static uint32_t slot_of(struct symbols *s, const struct name *name)
{
    struct symbol *home = make(s->bottom, name);
    if (!home->has_slot) {
        home->has_slot = true;
        home->slot = s->func->slots++;
    }
    return home->slot;
}

static struct symbol *define(struct symbols *s, const struct name *name, enum symbol_load load)
{
    uint32_t slot = slot_of(s, name);
    struct symbol *here = make(s, name);
    here->has_ref = true;
    here->slot = slot;
    here->load = load;
    return here;
}

static void alias_to(struct symbol *sym, const struct symbols *frame, uint32_t slot)
{
    sym->load = SYMBOL_ALIAS;
    sym->alias = frame;
    sym->alias_slot = slot;
}

void tpl_symbols_read(struct symbols *s, const struct name *name)
{
    const struct symbols *frame;
    if (tpl_symbols_find(s, name, &frame) == NULL) {
        define(s, name, SYMBOL_RESOLVE);
    }
}

void tpl_symbols_write(struct symbols *s, const struct name *name)
{
    make(s, name)->store = true;
    if (frame_ref(s, name) != NULL) {
        return;
    }
    const struct symbols *frame;
    const struct symbol *outer = tpl_symbols_find(s->parent, name, &frame);
    struct symbol *here = define(s, name, SYMBOL_EMPTY);
    if (outer != NULL) {
        alias_to(here, frame, outer->slot);
    }
}

uint32_t tpl_symbols_param(struct symbols *s, const struct name *name)
{
    struct symbol *here = define(s, name, SYMBOL_PARAM);
    here->store = true;
    return here->slot;
}

static void merge_one(struct symbols *s, const struct symbol *from)
{
    struct symbol *here = make(s, from->name);
    here->store |= from->store;
    if (from->has_ref) {
        here->has_ref = true;
        here->slot = from->slot;
        here->load = from->load;
        here->alias = from->alias;
        here->alias_slot = from->alias_slot;
    }
}

/* How many branches write the name. */
static unsigned writers(struct symbols *branches[SYMBOLS_BRANCHES], const struct name *name)
{
    unsigned n = 0;
    for (size_t b = 0; b < SYMBOLS_BRANCHES; b++) {
        const struct symbol *found = own(branches[b], name);
        n += found != NULL && found->store;
    }
    return n;
}

/* A name that not every branch writes keeps its outer meaning in the others. */
static void settle(struct symbols *s, const struct name *name)
{
    const struct symbols *frame;
    const struct symbol *outer = tpl_symbols_find(s->parent, name, &frame);
    struct symbol *here = make(s, name);
    if (!here->has_ref) { /* the reference is in a layer below */
        here = define(s, name, SYMBOL_RESOLVE);
    }
    if (outer != NULL) {
        alias_to(here, frame, outer->slot);
    } else {
        here->load = SYMBOL_RESOLVE;
    }
}

void tpl_symbols_merge(struct symbols *s, struct symbols *branches[SYMBOLS_BRANCHES])
{
    size_t total = 0;
    for (size_t b = 0; b < SYMBOLS_BRANCHES; b++) {
        total += branches[b]->len;
    }
    const struct name **open = arena_array(s->scratch, total + 1, sizeof(struct name *));
    size_t open_len = 0;
    for (size_t b = 0; b < SYMBOLS_BRANCHES; b++) {
        for (size_t i = 0; i < branches[b]->len; i++) {
            const struct symbol *sym = &branches[b]->items[i];
            if (sym->store && !frame_stores(s, sym->name) &&
                writers(branches, sym->name) < SYMBOLS_BRANCHES) {
                open[open_len++] = sym->name;
            }
        }
    }
    for (size_t b = 0; b < SYMBOLS_BRANCHES; b++) {
        for (size_t i = 0; i < branches[b]->len; i++) {
            merge_one(s, &branches[b]->items[i]);
        }
    }
    for (size_t i = 0; i < open_len; i++) {
        settle(s, open[i]);
    }
}
