/* SPDX-License-Identifier: MIT
 *
 * struct budget: what a run may spend on models, and what is left of it. Strict: the sum of what
 * was spent and what is promised to calls in flight never exceeds a limit, so any number of calls
 * at once cannot overshoot.
 *
 *   struct budget b;
 *   budget_init(&b, &(struct budget_limits) { .total = 50000, .calls = 10 });
 *
 *   struct budget_ask ask = { .input = estimate, .output = max_tokens, .price = entry };
 *   struct budget_claim claim;
 *   switch (budget_reserve(&b, &ask, now, &claim)) {      before the call
 *   case BUDGET_GRANTED: …  budget_settle(&b, &claim, &usage, cost);      after it, always
 *   case BUDGET_WAIT:    …  ask again when another call has settled
 *   case BUDGET_REFUSED: …  claim.why says which limit; b.refused says it for the whole run
 *   }
 *
 * What a call may cost at most is its estimated prompt, its output limit and the fees of tools that
 * the provider runs. A call whose output
 * limit is larger than what is left is granted less: claim.output is what the request must be cut
 * down to (claim.cut), so that the last part of a budget can be used. Less than BUDGET_MIN_OUTPUT
 * is not worth a call. A call that names no limit is held to the most that a model writes; when
 * less than that is left it is cut to BUDGET_UNSAID_OUTPUT.
 *
 * A call that fails in flight stays one call, whatever is charged for it (account.h). Usage beyond
 * the claim (an estimate that was too low: images) is counted as it is.
 *
 * No clock inside: `now` comes from the caller. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/str.h"

struct llm_usage;
struct price_entry;

enum budget_kind {
    BUDGET_INPUT,  /* prompt tokens, cached ones too */
    BUDGET_OUTPUT, /* output tokens, reasoning included */
    BUDGET_TOTAL,  /* both */
    BUDGET_COST,   /* pico-dollars */
    BUDGET_CALLS,
    BUDGET_KIND_MAX, /* the countable ones end here */
    BUDGET_TIME = BUDGET_KIND_MAX,
    BUDGET_PRICE, /* a limit in dollars, and no price for the model */
    BUDGET_NONE,
};
/* "input_tokens", "output_tokens", "total_tokens", "usd", "calls", "deadline", "price". */
const char *budget_kind_word(enum budget_kind kind);

enum {
    BUDGET_MIN_OUTPUT = 16,
    BUDGET_UNSAID_OUTPUT = 32000, /* every current model accepts this as a limit … */
    BUDGET_MODEL_OUTPUT = 128000, /* … and none writes more than this */
};

/* 0: no limit. */
struct budget_limits {
    int64_t input, output, total, cost, calls;
    nsec deadline; /* absolute, monotonic */
    nsec started;  /* of the period that ends with the deadline: for budget_left() */
};

struct budget {
    int64_t limit[BUDGET_KIND_MAX]; /* 0: none */
    int64_t spent[BUDGET_KIND_MAX];
    int64_t claimed[BUDGET_KIND_MAX]; /* by calls in flight */
    nsec deadline, started;
    enum budget_kind refused; /* the first refusal; BUDGET_NONE: there was none */
    int64_t refusals;
};

struct budget_ask {
    int64_t input;    /* estimate of the prompt */
    int64_t output;   /* the request's own limit; 0: it names none */
    int64_t floor;    /* less output than this makes the request invalid (thinking); may be 0 */
    int64_t fees;     /* pico-dollars that a response may cost beside its tokens (searches) */
    int64_t choices;  /* responses that it asks for, each of which may be that long; 0: one */
    bool again;       /* another attempt of a call that was counted before */
    struct str model; /* for messages; borrowed */
    const struct price_entry *price; /* NULL: unknown */
};

enum budget_verdict { BUDGET_GRANTED, BUDGET_WAIT, BUDGET_REFUSED };

/* What a refused call needs of the limit that it would exceed, and what is left of it. */
struct budget_need {
    int64_t least, most;
    int64_t left, limit;
    int64_t in_flight; /* promised to other calls */
    int64_t fees;      /* of `least` and `most`: beside tokens */
    struct str model;  /* borrowed from the ask */
};

struct budget_claim {
    int64_t amount[BUDGET_KIND_MAX];
    int64_t output; /* granted to each of its responses */
    bool cut;       /* and the request has to be told so: it asked for more, or named no limit */
    bool open;
    enum budget_kind why;    /* BUDGET_REFUSED, BUDGET_WAIT */
    struct budget_need need; /* BUDGET_REFUSED */
};

void budget_init(struct budget *b, const struct budget_limits *limits);
bool budget_limited(const struct budget *b); /* is there any limit but time? */

/* Would it be granted at once, and as it is? */
bool budget_fits(const struct budget *b, const struct budget_ask *ask, nsec now);
enum budget_verdict budget_reserve(struct budget *b, const struct budget_ask *ask, nsec now,
                                   struct budget_claim *ret);
/* Closes the claim; `usage` may be NULL (nothing was metered). Does nothing with a closed claim. */
void budget_settle(struct budget *b, struct budget_claim *claim, const struct llm_usage *usage,
                   int64_t cost);
/* The call never left: the claim is given back, and it was no call. */
void budget_release(struct budget *b, struct budget_claim *claim);

/* What is left, as shares of 1: for notices to the agent. */
struct budget_left {
    double budget; /* the scarcest of all limits; 1: nothing is limited */
    enum budget_kind scarcest;
    double time; /* 1: no deadline */
    nsec until;  /* until the deadline; 0: passed, -1: there is none */
};
struct budget_left budget_left(const struct budget *b, nsec now);
/* Should the agent be told to come to an end? True once a share is at or below `share`. */
bool budget_wrap_up(const struct budget *b, nsec now, double share);

/* Why a call was refused, for people: "the next call could cost up to $0.98 (at least $0.25); $0.01
 * of $0.10 is left". */
enum { BUDGET_TEXT = 280 };
const char *budget_describe(const struct budget_claim *refused, char out[BUDGET_TEXT]);
/* The kind that a word names; BUDGET_NONE: none. */
enum budget_kind budget_kind_of(struct str word);
