/* SPDX-License-Identifier: MIT
 *
 * Shared by account.c (life, budget), account_throttle.c and account_meter.c.
 */
#pragma once

#include "gateway/account.h"
#include "gateway/refusal.h"

/* Routes have few upstreams; further ones share the last place. */
enum { ACCOUNT_UPSTREAMS_MAX = 32 };

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
    char text[REFUSAL_TEXT]; /* of the last refusal: outlives the callback */
};

nsec account_now(const struct account *acc);
bool account_is_call(const struct exchange_view *x); /* does the budget count it? */
/* What the wire told; where it told nothing of an answer, an estimate: *ret_estimated. `most` is
 * what the output cannot exceed; 0: not known. */
struct llm_usage account_usage(const struct exchange_view *x, const struct filter_done *d,
                               int64_t most, bool *ret_estimated);
/* Did a gateway above refuse? */
bool account_refused_above(const struct http_fields *fields);
