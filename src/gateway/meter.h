/* SPDX-License-Identifier: MIT
 *
 * struct meter: what went over the wire, call by call and in sum: tokens, money, failures, times.
 *
 *   struct meter *m = meter_new(prices);
 *   meter_add(m, &(struct meter_call) { .model = …, .usage = …, … });    for every call that ended
 *   const struct meter_sum *all = meter_sum(m);
 *   for (size_t i = 0; i < meter_rows(m); i++) { const struct meter_row *r = meter_row(m, i); … }
 *
 * Every call counts: those of sub-agents and the side requests of a harness (titles, topics) as
 * well as failed ones (account.h says what they are charged).
 *
 * A sum of money is known only if every call that used tokens has a price: `unpriced` counts those
 * without.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/str.h"
#include "gateway/price.h"
#include "llm/event.h"

struct meter;

/* Charged without having been reported: what was reserved for a call, or a part of it. */
struct meter_reserved {
    int64_t input, output;
    int64_t cost; /* pico-dollars */
};

struct meter_call {
    struct str model;               /* that the upstream was asked for, or that it said it is */
    struct str upstream;            /* its name */
    struct llm_usage usage;         /* -1 where nothing was said */
    struct meter_reserved reserved; /* beside it */
    struct price_terms terms;       /* on which it was made */
    bool failed;                    /* no complete answer with a status below 400 */
    bool side;                      /* not the conversation itself: a title, a topic, a summary */
    bool local;                     /* answered by a script or a cassette */
    bool estimated;                 /* the usage was not reported, or not all of it */
    int attempts;                   /* that were made at the upstream; 0: none */
    bool moved;                     /* it went on at another upstream, and is counted there */
    nsec first_byte;                /* absolute; 0: none came */
};

struct meter_sum {
    int64_t calls, failed, side, local, estimated;
    int64_t attempts;
    struct llm_usage usage; /* sums; nothing is -1 */
    int64_t cost;           /* pico-dollars, of the calls that have a price */
    int64_t unpriced;       /* calls that used tokens and have none */
    int64_t local_cost;     /* the share that is not billed: scripts and cassettes */
};

enum { METER_ROWS_MAX = 64 /* further models share the last row, named "other" */ };

struct meter_row {
    const char *model;
    const char *upstream;
    const struct price_table *prices; /* the table that has its price; NULL: none */
    struct meter_sum sum;
};

/* What a call is charged in all, reported or not. */
struct llm_usage meter_usage(const struct meter_call *call);

struct meter *meter_new(const struct price_table *prices); /* borrowed; NULL: no prices */
struct meter *meter_free(struct meter *m);                 /* accepts NULL, returns NULL */

/* Returns what it cost, -1 when that is not known. */
int64_t meter_add(struct meter *m, const struct meter_call *call);
/* The same for a call whose cost is known, -1: not known; prices are not looked up. */
void meter_add_priced(struct meter *m, const struct meter_call *call, int64_t cost);
const struct meter_sum *meter_sum(const struct meter *m);
size_t meter_rows(const struct meter *m);
const struct meter_row *meter_row(const struct meter *m, size_t i); /* in order of appearance */
nsec meter_first_byte(const struct meter *m); /* of the first answer to the conversation; 0: none */
/* The first table that priced a call; NULL: none did. */
const struct price_table *meter_prices(const struct meter *m);
