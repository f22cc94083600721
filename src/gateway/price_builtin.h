/* SPDX-License-Identifier: MIT
 *
 * The built-in price table, prices/models.txt: text, made into C by scripts/embed.py at build time
 * and searched where it is. Nothing is read at start-up; a lookup reads one line.
 *
 *   # version: 2026-11-18
 *   # source: …
 *   NAME =INPUT,OUTPUT[,CACHE_READ[,CACHE_WRITE[,CACHE_WRITE_LONG]]] [>TOKENS=…] [TIER[>TOKENS]=…]
 *        [fast=xFACTOR] [us=xFACTOR] [search=DOLLARS]
 *
 * Lines are sorted by name, byte by byte. Prices are US dollars per million tokens; an empty one is
 * not known. TOKENS: longer prompts have these prices as a whole. TIER: flex, priority, ultrafast.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "gateway/price.h"

struct builtin_price {
    const char *file; /* "models.txt" */
    const char *text;
    size_t len;
};

extern const struct builtin_price builtin_prices[];
extern const size_t builtin_prices_len;

/* "2026-11-18" for "version" from the comments of a table; empty: not there. */
struct str price_text_header(struct str text, const char *key);
/* What follows NAME and a space in the line of `name`; false: there is none. */
bool price_text_find(struct str text, struct str name, struct str *ret);
/* The words of a line; false: they are not well-formed. Tiers are allocated in the arena. */
bool price_text_read(struct arena *a, struct str words, struct price_entry *ret);

/* Entries that were looked up before, and where to put further ones. */
struct price_builtin {
    struct arena *arena;
    struct str text;
    struct price_known *known; /* a list */
};
/* By an exact name, in lower case and without a path. */
const struct price_entry *price_builtin_find(struct price_builtin *b, struct str name);
