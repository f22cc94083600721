/* SPDX-License-Identifier: MIT
 *
 * struct account: budget, throttle, meter and prices of one gateway, as filters of its exchanges.
 *
 *   struct account *acc = account_new(&(struct account_opts) { .limits = …, .prices = table });
 *   struct filter f[] = { account_budget_filter(acc), account_throttle_filter(acc), recorder,
 *                         account_meter_filter(acc) };       in this order
 *   … gateway_open() with them …
 *   account_left(acc), account_meter(acc), account_trouble(acc)
 *   account_free(acc)                                        after the gateway
 *
 * Only model calls are held to the budget; lists of models and token counts pass.
 *
 * What a call is charged:
 *   its response was read to the end and reports usage   that usage
 *   the upstream refused it, or never got all of it      nothing
 *   anything else                                        all that was reserved for it
 * The last is what remains when a response breaks off, when a client left and the rest could not be
 * read, or when there is no usage in it: models bill thoughts that nobody sees, so what was seen
 * says too little. An attempt that got lost after it was sent is charged so, too, and the next one
 * needs a reservation of its own. Charges that were not reported are marked as estimated.
 *
 * Without a limit on tokens or dollars a response without usage is estimated: its prompt by the
 * size of the request, its output by the bytes that came; and so is one that broke off, if the
 * request names no limit for its output.
 *
 * Requests that cannot be metered at all (a response in the background) are refused where tokens or
 * dollars are limited.
 *
 * A refusal by a gateway above this one (X-Cinch-Reason) is a refusal here: it is passed on as it
 * is, never tried again, and both meters have seen what was used before.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/budget.h"
#include "gateway/filter.h"
#include "gateway/meter.h"
#include "gateway/throttle.h"

struct account;

/* A model call that is over. */
struct account_call {
    struct meter_call metered;
    int64_t cost;    /* pico-dollars; -1: not known */
    int status;      /* that the client got; 0: it left before */
    bool complete;   /* it got all of the answer */
    nsec first_byte; /* since the call began; -1: none came */
    nsec took;
    const char *side; /* NULL, or what a side request was for */
};

struct account_throttled {
    const struct throttle_signal *signal;
    int attempts; /* that failed so far */
    nsec delay;   /* before the next one; -1: the call is given up */
};

struct account_refused {
    enum budget_kind why;
    bool above;
    const char *text;
};

/* Told while an exchange is under way; any may be NULL. */
struct account_port {
    void (*on_call)(void *arg, const struct exchange_view *x, const struct account_call *call);
    /* Refused for its cost or the deadline, here or, if `above`, by another gateway, which may not
     * say why: BUDGET_NONE. */
    void (*on_refused)(void *arg, const struct exchange_view *x,
                       const struct account_refused *refused);
    void (*on_throttled)(void *arg, const struct exchange_view *x,
                         const struct account_throttled *t);
    void *arg;
    /* An attempt is about to be sent: what the call is charged if nothing more is ever known of it,
     * earlier attempts included; cost -1: not known. Not for scripts and cassettes. */
    void (*on_sending)(void *arg, const struct exchange_view *x,
                       const struct meter_reserved *reserved);
    /* The call is over, after on_call. */
    void (*on_over)(void *arg, const struct exchange_view *x);
    /* Before a call is admitted: asked again after the time that it returns, 0: it may go on. */
    nsec (*hold)(void *arg, const struct exchange_view *x);
};

struct account_opts {
    struct budget_limits limits;
    bool prompt_bytes; /* reserve one token for each byte of a request: never too low for text */
    struct throttle_policy throttle;  /* of each upstream */
    const struct price_table *prices; /* borrowed; NULL: none */
    struct account_port port;
    uint64_t seed;     /* of the jitter */
    nsec (*now)(void); /* NULL: clock_now() */
};

/* What became of the conversation, for the reason of a run: the strongest of all calls for the
 * budget, the last call's for the others. */
enum account_trouble {
    ACCOUNT_FINE,
    ACCOUNT_BUDGET,       /* refused here or above */
    ACCOUNT_DEADLINE,     /* refused: the time is over */
    ACCOUNT_AUTH,         /* the provider does not accept the credential */
    ACCOUNT_RATE_LIMITED, /* given up: rate limit or quota */
    ACCOUNT_UNREACHABLE,  /* given up: no answer, or server errors */
};

/* Is a request to this endpoint a model call, which is metered and held to the budget? */
bool account_counts(const struct llm_endpoint *ep);

struct account *account_new(const struct account_opts *o);
struct account *account_free(struct account *acc); /* accepts NULL, returns NULL */

bool account_limits_usage(const struct account *acc); /* tokens or dollars, not calls */

struct filter account_budget_filter(struct account *acc);
struct filter account_throttle_filter(struct account *acc);
struct filter account_meter_filter(struct account *acc);

const struct budget *account_budget(const struct account *acc);
const struct meter *account_meter(const struct account *acc);
enum account_trouble account_trouble(const struct account *acc);
/* The upstream of that trouble, NULL: none; and what it said or what failed, for people, "" where
 * nothing is known. */
const struct upstream *account_troubled(const struct account *acc);
const char *account_trouble_text(const struct account *acc);
struct budget_left account_left(const struct account *acc);
/* The limit that the first refused call would have exceeded, here or above; BUDGET_NONE: none. */
enum budget_kind account_exceeded(const struct account *acc);
/* The total deadline became known, or moved. */
void account_set_deadline(struct account *acc, nsec started, nsec deadline);
