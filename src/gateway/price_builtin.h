/* SPDX-License-Identifier: MIT
 *
 * The price tables of prices/ as text, made into C by scripts/embed.py at build time.
 */
#pragma once

#include <stddef.h>

struct builtin_price {
    const char *file; /* "2026-11-15.yaml" */
    const char *text;
    size_t len;
};

extern const struct builtin_price builtin_prices[];
extern const size_t builtin_prices_len;
