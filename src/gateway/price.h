/* SPDX-License-Identifier: MIT
 *
 * struct price_table: what tokens cost, as data. The built-in table is prices/<date>.yaml, compiled
 * in; a table of the user's is asked first, model by model. The built-in one is read when a price
 * is looked up that the user's does not list: most starts of a program never ask.
 *
 *   struct price_table *t;
 *   price_load(arena, "my-prices.yaml", &t, e);          NULL: the built-in one alone
 *   struct price_match m;
 *   if (price_find(t, STR("claude-opus-5-5"), &m)) {
 *       int64_t cost = price_cost(m.entry, &usage);      in pico-dollars
 *   }
 *
 * Money is counted in pico-dollars (10^-12 USD), a whole number: one token at 1 USD per million
 * costs 10^6 of them, and 9.2 million dollars fit. So sums are exact in any order.
 *
 * A model without an entry has no price: price_find() says so, and nobody takes that for 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct arena;
struct llm_usage;
struct price_later;

#define PICO_PER_USD ((int64_t)1000000000000)

/* Pico-dollars a token. */
struct price {
    int64_t input, output, cache_read, cache_write;
    int64_t cache_write_long; /* kept for an hour, with Anthropic */
};

struct price_entry {
    const char *const *match; /* NULL-terminated; `*` stands for any text */
    struct price base;
    int64_t above;     /* prompts of more tokens than this cost `high` as a whole; 0: none do */
    struct price high; /* valid if above > 0 */
};

/* Tables are walked by price_find() only; a match tells of the one that it is from. */
struct price_table {
    const char *version; /* "2026-11-15" */
    const char *source;  /* who says so */
    const char *file;    /* "built in", or the file it came from */
    const struct price_entry *entries;
    size_t len;
    const struct price_table *next; /* asked for what this one does not list; NULL: the last */
    struct price_later *later;      /* stands for tables that are not read yet; NULL: none */
};

/* The entry and the table it stands in. */
struct price_match {
    const struct price_entry *entry;
    const struct price_table *table;
};

/* ERR_CONFIG says file:line:column. `text` must live as long as the arena. */
int price_parse(struct arena *a, struct str text, const char *file, struct price_table **ret,
                struct err *e) MUST_USE;
/* The built-in table, behind the one in `file` (NULL: none), which is read at once. The arena is
 * also used by the first price_find() that comes to the built-in one. */
int price_load(struct arena *a, const char *file, struct price_table **ret, struct err *e) MUST_USE;

/* By the name that the provider is asked for; a path before it ("models/", "anthropic/") and
 * upper case do not matter. */
bool price_find(const struct price_table *t, struct str model, struct price_match *ret);

/* The same for who asks again and again, mostly for the model of last time. Starts as all zero;
 * belongs to one table. */
struct price_memo {
    char model[64]; /* "": nothing is remembered */
    bool found;
    struct price_match match;
};
bool price_recall(struct price_memo *m, const struct price_table *t, struct str model,
                  struct price_match *ret);

/* What a call with this usage cost; what was not said is 0. Never negative. */
int64_t price_cost(const struct price_entry *p, const struct llm_usage *usage);
/* The most that a call can cost that sends so many tokens and may get so many. */
int64_t price_ceiling(const struct price_entry *p, int64_t input, int64_t output);
/* How many output tokens this money buys at most, after a prompt of `input` tokens is paid. */
int64_t price_affordable(const struct price_entry *p, int64_t input, int64_t pico);

double price_usd(int64_t pico);
int64_t price_pico(double usd); /* rounded; negative, NaN or too much: clamped to 0 … INT64_MAX */
