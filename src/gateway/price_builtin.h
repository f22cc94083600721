/* SPDX-License-Identifier: MIT
 *
 * The price tables of prices/ as text, made into C by scripts/embed.py at build time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct price_table;

struct builtin_price {
    const char *file; /* "2026-11-15.yaml" */
    const char *text;
    size_t len;
};

extern const struct builtin_price builtin_prices[];
extern const size_t builtin_prices_len;

/* The built-in tables, read when they are asked for the first time. */
struct price_later {
    struct arena *arena;
    struct price_table *table; /* valid if read; NULL: they could not be */
    bool read;
};
const struct price_table *price_later_table(struct price_later *l);
