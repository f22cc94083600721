/* SPDX-License-Identifier: MIT
 *
 * Which names a scope reads and writes: jinja2/idtracking.py in C. See template_ast_priv.h for what
 * comes out of it; used by the scope pass only.
 *
 * A frame is a stretch of template with its own variables. It collects its names before its code is
 * resolved. The branches of an `if` share the frame of the `if`, but what one branch does must not
 * be seen by the other: each gets a layer on top, merged back afterwards (tpl_symbols_merge).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "template/template_ast_priv.h"

enum symbol_load { SYMBOL_NONE, SYMBOL_PARAM, SYMBOL_RESOLVE, SYMBOL_ALIAS, SYMBOL_EMPTY };

struct symbol {
    const struct name *name;
    bool has_ref, store, has_slot;
    uint32_t slot;
    enum symbol_load load;
    const struct symbols *alias; /* frame whose slot is copied */
    uint32_t alias_slot;
};

struct symbols {
    struct symbols *parent; /* enclosing frame */
    struct symbols *under;  /* of a layer: what it lies on */
    struct symbols *bottom; /* the frame itself */
    struct func *func;
    struct arena *scratch;
    struct symbol *items;
    size_t len, cap;
    uint32_t *index;
    size_t slots;
};

struct symbols *tpl_symbols_new(struct arena *scratch, struct symbols *parent, struct func *func);
struct symbols *tpl_symbols_layer(struct symbols *under);
void tpl_symbols_read(struct symbols *s, const struct name *name);
void tpl_symbols_write(struct symbols *s, const struct name *name);
uint32_t tpl_symbols_param(struct symbols *s, const struct name *name);
/* Merges the layers of an `if`: body, elifs, else. */
enum { SYMBOLS_BRANCHES = 3 };
void tpl_symbols_merge(struct symbols *s, struct symbols *branches[SYMBOLS_BRANCHES]);
/* The symbol and the frame it belongs to; NULL when no frame knows the name. */
const struct symbol *tpl_symbols_find(const struct symbols *s, const struct name *name,
                                      const struct symbols **ret_frame);
