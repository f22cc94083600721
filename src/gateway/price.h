/* SPDX-License-Identifier: MIT
 *
 * struct price_table: what tokens cost, as data. The built-in table is prices/models.txt, compiled
 * in and searched where it is (price_builtin.h); a table of the user's takes precedence, model by
 * model. In both, an exact name wins over a pattern.
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
struct price_builtin;

#define PICO_PER_USD ((int64_t)1000000000000)

/* Pico-dollars a token. */
struct price {
    int64_t input, output, cache_read, cache_write;
    int64_t cache_write_long; /* kept for an hour, with Anthropic */
};

/* How urgent a call is, at the price of the provider's list: `service_tier` of a request. */
enum price_tier { PRICE_STANDARD, PRICE_FLEX, PRICE_PRIORITY, PRICE_ULTRAFAST, PRICE_TIERS };
/* "flex", "priority", "ultrafast"; PRICE_STANDARD for any other word. */
enum price_tier price_tier_of(struct str word);

/* Prompts of more tokens than `above` have this price as a whole. */
struct price_step {
    int64_t above; /* 0: unused */
    struct price price;
};
enum { PRICE_STEPS = 3 };

struct price_entry {
    const char *const *match; /* NULL-terminated; `*` stands for any text; NULL: built in */
    struct price base;
    struct price_step steps[PRICE_STEPS]; /* ascending */
    int64_t search;                       /* pico-dollars for a web search by the provider */
    int64_t fast, us; /* thousandths of these prices with speed: fast, inference_geo: us; 0: none */
    struct price_entry *tiers[PRICE_TIERS]; /* NULL: not listed; the standard one is this entry */
};

/* What a request asks for beyond the standard service. */
struct price_terms {
    enum price_tier tier;
    bool fast, us;
};
/* The prices of a call on these terms. A tier that is not listed has the standard prices. */
struct price_entry price_on(const struct price_entry *p, const struct price_terms *terms);

/* Tables are walked by price_find() only; a match names the one that it is from. */
struct price_table {
    const char *version; /* "2026-11-18" */
    const char *source;  /* where the prices are from */
    const char *file;    /* "built in", or the file it came from */
    const struct price_entry *entries;
    size_t len;
    const struct price_table *next; /* searched for what this one does not list; NULL: the last */
    struct price_builtin *builtin;  /* instead of entries; NULL: a table of the user's */
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
 * also used by price_find(). */
int price_load(struct arena *a, const char *file, struct price_table **ret, struct err *e) MUST_USE;
/* The date of the built-in table, in seconds since 1970; 0: it has none. Prices change: a table is
 * old after this many days. */
int64_t price_builtin_date(void);
enum { PRICE_OLD_DAYS = 60 };

/* By the name that the provider gets; a path before it ("models/", "anthropic/") and upper case do
 * not matter. The built-in table also knows a name without its date, its version or its region:
 * "gpt-5-2025-08-07", "us.anthropic.claude-opus-5-v1:0". */
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
