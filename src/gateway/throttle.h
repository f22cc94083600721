/* SPDX-License-Identifier: MIT
 *
 * Throttling: when a call may go to an upstream, and whether it is tried again after a failure. All
 * decisions, no waiting: the clock and the random number come from the caller, who arms the timers.
 *
 *   struct throttle t;                                        one per upstream
 *   throttle_init(&t, &policy);
 *   struct throttle_call call = { 0 };                        one per call of a client
 *
 *   switch (throttle_enter(&t, now, &gate)) {
 *   case THROTTLE_GO:      send it; throttle_report() after each attempt, throttle_leave() at last
 *   case THROTTLE_LATER:   ask again at gate.until, or when another call left (THROTTLE_WHEN_FREE)
 *   case THROTTLE_REFUSED: the upstream rests longer than anybody would wait: tell the client
 *   }
 *   throttle_signal_of(&error, retry_after)                   what a failure means
 *   if (throttle_again(&t.policy, &call, &signal, &(struct throttle_moment) { … }, &delay))
 *       try again after `delay`: only while no byte of an answer has reached the client
 *
 * A call that is given up passes the provider's own error on; its signal is then no longer
 * retry_safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/str.h"

struct err;
struct llm_error;

enum throttle_kind {
    THROTTLE_NONE, /* not a matter of throttling */
    THROTTLE_RATE_LIMIT,
    THROTTLE_QUOTA_EXHAUSTED, /* waits longer than a rate limit: see throttle.c */
    THROTTLE_TIMEOUT,         /* connecting or waiting took too long, or the connection broke */
    THROTTLE_SERVER_ERROR,
};
const char *throttle_kind_word(enum throttle_kind kind); /* "rate_limit", …; "none" */

struct throttle_policy {
    int max_attempts; /* the first one included */
    nsec base, cap;   /* of one delay: base, twice that … cap */
    nsec total;       /* of all delays of one call */
    int concurrency;  /* calls at a time; 0: any number */
    int per_minute;   /* calls a minute; 0: any number */
    int breaker;      /* failures in a row, of any calls, that make the upstream rest; 0: never */
    nsec rest;
};
#define THROTTLE_DEFAULT                                    \
    ((struct throttle_policy) { .max_attempts = 5,          \
                                .base = 500 * NSEC_PER_MS,  \
                                .cap = 8 * NSEC_PER_SEC,    \
                                .total = 30 * NSEC_PER_SEC, \
                                .breaker = 20,              \
                                .rest = 15 * NSEC_PER_SEC })

struct throttle {
    struct throttle_policy policy;
    int in_flight;
    nsec next;    /* by the rate: when the next call would be due; see throttle.c */
    nsec blocked; /* the provider asked everybody to wait until then; 0: no */
    int failures; /* in a row */
    bool resting; /* the breaker is open until `blocked`, then for one call */
    bool probing; /* that call is on its way */
};

struct throttle_call {
    int attempts; /* that failed */
    nsec waited;
};

#define THROTTLE_UNSAID ((nsec)-1)

struct throttle_signal {
    enum throttle_kind kind;
    nsec retry_after; /* THROTTLE_UNSAID: the provider did not say */
    bool retry_safe;
};
#define THROTTLE_NO_SIGNAL ((struct throttle_signal) { THROTTLE_NONE, THROTTLE_UNSAID, false })

void throttle_init(struct throttle *t, const struct throttle_policy *policy);

/* --- entering and leaving --- */

enum throttle_verdict { THROTTLE_GO, THROTTLE_LATER, THROTTLE_REFUSED };
#define THROTTLE_WHEN_FREE INT64_MAX

struct throttle_gate {
    nsec until;                    /* THROTTLE_LATER */
    struct throttle_signal signal; /* THROTTLE_REFUSED: retry_after says how long */
};
enum throttle_verdict throttle_enter(struct throttle *t, nsec now, struct throttle_gate *ret);
/* How an attempt ended. kind THROTTLE_NONE: the upstream works (whatever it said). */
void throttle_report(struct throttle *t, const struct throttle_signal *signal, nsec now);
/* After each THROTTLE_GO, once: the call is over, and its place is free. A call that is tried again
 * keeps its place while it waits. */
void throttle_leave(struct throttle *t);

/* --- failures --- */

struct throttle_signal throttle_signal_of(const struct llm_error *error, nsec retry_after);
/* No answer came: the connection was refused, broke or took too long. */
struct throttle_signal throttle_signal_of_transport(const struct err *e);

struct throttle_moment {
    nsec now;
    nsec deadline;   /* 0: none */
    uint64_t random; /* any number, for the jitter */
};
/* Counts the failure and says whether to try again, and when. When it says no, signal->retry_safe
 * becomes false. */
bool throttle_again(const struct throttle_policy *p, struct throttle_call *call,
                    struct throttle_signal *signal, const struct throttle_moment *at,
                    nsec *ret_delay);

/* "3", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT" as the value of Retry-After; with `ms` the value of
 * Retry-After-Ms. THROTTLE_UNSAID for anything else. At most a day. */
nsec throttle_retry_after(struct str value, bool ms, int64_t wall_now);
