/* SPDX-License-Identifier: MIT
 *
 * Shared by account.c (life, budget), account_fees.c, account_throttle.c and account_meter.c.
 */
#pragma once

#include "gateway/account.h"
#include "gateway/refusal.h"

/* Routes have few upstreams; further ones share the last place. */
enum { ACCOUNT_UPSTREAMS_MAX = 32 };

/* What a call is charged; see account.h. */
struct account_bill {
    struct llm_usage usage; /* as reported */
    struct meter_reserved reserved;
    bool estimated;
};

struct reservation; /* account.c */

struct account {
    struct account_opts opts;
    struct budget budget;
    struct meter *meter;
    struct price_memo memo;
    struct {
        const struct upstream *upstream;
        struct throttle throttle;
    } gates[ACCOUNT_UPSTREAMS_MAX];
    size_t n_gates;
    uint64_t random; /* state of the jitter's generator */
    enum account_trouble trouble;
    const struct upstream *troubled; /* NULL: none */
    char trouble_text[200];
    enum budget_kind exceeded; /* by the first refused call, here or above */
    uint64_t billed; /* the exchange that `bill` is of: the budget settles, then the meter counts */
    struct account_bill bill;
    struct reservation *reservations; /* of calls that are admitted and not over; a list */
    char text[REFUSAL_TEXT];          /* of the last refusal: outlives the callback */
};

/* What the call is charged if it is never heard of again; false: it has no reservation. */
bool account_reserved(struct account *acc, const struct exchange_view *x,
                      struct meter_reserved *ret);
/* How many web searches by the provider a response may contain, at most; 0: none is offered. Reads
 * the body if it may offer them. */
int64_t account_searches(const struct exchange_view *x);
nsec account_now(const struct account *acc);
bool account_is_call(const struct exchange_view *x); /* does the budget count it? */
/* Did a gateway above refuse? */
bool account_refused_above(const struct http_fields *fields);
