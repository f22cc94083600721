/* SPDX-License-Identifier: MIT
 *
 * Delays, rates and the breaker; see throttle.h.
 */
#include "gateway/throttle.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "base/err.h"
#include "llm/event.h"

static const char *const words[] = {
    [THROTTLE_NONE] = "none",
    [THROTTLE_RATE_LIMIT] = "rate_limit",
    [THROTTLE_QUOTA_EXHAUSTED] = "quota_exhausted",
    [THROTTLE_TIMEOUT] = "timeout",
    [THROTTLE_SERVER_ERROR] = "server_error",
};

const char *throttle_kind_word(enum throttle_kind kind)
{
    return words[kind];
}

void throttle_init(struct throttle *t, const struct throttle_policy *policy)
{
    *t = (struct throttle) { .policy = *policy };
}

/* --- entering and leaving --- */

/* The rate as a schedule (GCRA): calls are due one interval after another; one may come as much
 * before it is due as a second has room for. */
static nsec interval(const struct throttle_policy *p)
{
    return 60 * NSEC_PER_SEC / p->per_minute;
}

static nsec earliest(const struct throttle *t)
{
    if (t->policy.per_minute <= 0) {
        return 0;
    }
    nsec burst = NSEC_PER_SEC - interval(&t->policy);
    return t->next - (burst > 0 ? burst : 0);
}

static enum throttle_verdict refused(const struct throttle *t, nsec now, enum throttle_kind kind,
                                     struct throttle_gate *ret)
{
    ret->signal = (struct throttle_signal) { kind, t->blocked - now, false };
    return THROTTLE_REFUSED;
}

enum throttle_verdict throttle_enter(struct throttle *t, nsec now, struct throttle_gate *ret)
{
    *ret = (struct throttle_gate) { THROTTLE_WHEN_FREE, THROTTLE_NO_SIGNAL };
    if (now < t->blocked) {
        if (t->resting) {
            return refused(t, now, THROTTLE_SERVER_ERROR, ret);
        }
        if (t->blocked - now > t->policy.total) {
            return refused(t, now, THROTTLE_RATE_LIMIT, ret);
        }
        ret->until = t->blocked;
        return THROTTLE_LATER;
    }
    if (t->probing || (t->policy.concurrency > 0 && t->in_flight >= t->policy.concurrency)) {
        return THROTTLE_LATER;
    }
    if (earliest(t) > now) {
        ret->until = earliest(t);
        return THROTTLE_LATER;
    }
    if (t->policy.per_minute > 0) {
        t->next = (t->next > now ? t->next : now) + interval(&t->policy);
    }
    t->probing = t->resting; /* one call finds out whether the upstream works again */
    t->in_flight++;
    return THROTTLE_GO;
}

static void count_failure(struct throttle *t, nsec now)
{
    t->failures += t->failures < INT_MAX;
    bool too_many = t->policy.breaker > 0 && t->failures >= t->policy.breaker;
    if (t->probing || too_many) {
        t->resting = true;
        t->blocked = now + t->policy.rest;
    }
}

void throttle_report(struct throttle *t, const struct throttle_signal *signal, nsec now)
{
    switch (signal->kind) {
    case THROTTLE_NONE:
        t->failures = 0;
        t->resting = false;
        break;
    case THROTTLE_TIMEOUT:
    case THROTTLE_SERVER_ERROR:
        count_failure(t, now);
        break;
    case THROTTLE_RATE_LIMIT:
    case THROTTLE_QUOTA_EXHAUSTED:
        t->failures = 0; /* it is there, and says so */
        t->resting = false;
        if (signal->retry_after > 0 && now + signal->retry_after > t->blocked) {
            t->blocked = now + signal->retry_after;
        }
        break;
    }
    t->probing = false;
}

void throttle_leave(struct throttle *t)
{
    t->in_flight -= t->in_flight > 0;
    t->probing = false; /* it may have been cancelled before it found out */
}

/* --- failures --- */

struct throttle_signal throttle_signal_of(const struct llm_error *error, nsec retry_after)
{
    enum throttle_kind kind = THROTTLE_NONE;
    switch (error->kind) {
    case LLM_ERR_RATE:
        kind = THROTTLE_RATE_LIMIT;
        break;
    case LLM_ERR_QUOTA:
        kind = THROTTLE_QUOTA_EXHAUSTED;
        break;
    case LLM_ERR_TIMEOUT:
        kind = THROTTLE_TIMEOUT;
        break;
    case LLM_ERR_SERVER:
    case LLM_ERR_OVERLOADED:
        /* 501 and 505 will be the same next time. */
        kind = error->status == 501 || error->status == 505 ? THROTTLE_NONE : THROTTLE_SERVER_ERROR;
        break;
    case LLM_ERR_INVALID:
    case LLM_ERR_AUTH:
    case LLM_ERR_PERMISSION:
    case LLM_ERR_NOT_FOUND:
    case LLM_ERR_TOO_LARGE:
    case LLM_ERR_CONTEXT:
    case LLM_ERR_MAX:
        break;
    }
    return (struct throttle_signal) { kind, retry_after, kind != THROTTLE_NONE };
}

struct throttle_signal throttle_signal_of_transport(const struct err *e)
{
    bool again = e->code == ERR_TIMEOUT || e->code == ERR_UPSTREAM || e->code == ERR_PROTO;
    return (struct throttle_signal) { again ? THROTTLE_TIMEOUT : THROTTLE_NONE, THROTTLE_UNSAID,
                                      again };
}

static nsec most(nsec a, nsec b)
{
    return a > b ? a : b;
}

/* Twice as long each time, from `from` on. */
static nsec doubled(nsec from, int attempt, nsec most)
{
    nsec t = from;
    for (int i = 1; i < attempt && t < most; i++) {
        t *= 2;
    }
    return t > most ? most : t;
}

/* Anything between 0 and the back-off, but never below the base and never below what the provider
 * asked for: many callers that failed together should not come back together. */
static nsec back_off(const struct throttle_policy *p, int attempt,
                     const struct throttle_signal *signal, uint64_t random)
{
    if (signal->kind == THROTTLE_QUOTA_EXHAUSTED) { /* longer than any rate limit, and no jitter */
        return most(doubled(p->cap, attempt + 1, most(p->cap, p->total)), signal->retry_after);
    }
    nsec grown = doubled(p->base, attempt, p->cap);
    nsec range = most(grown, signal->retry_after);
    nsec delay = range <= 0 ? 0 : (nsec)(random % (uint64_t)range);
    return most(most(delay, p->base < grown ? p->base : grown), signal->retry_after);
}

bool throttle_again(const struct throttle_policy *p, struct throttle_call *call,
                    struct throttle_signal *signal, const struct throttle_moment *at,
                    nsec *ret_delay)
{
    call->attempts++;
    nsec delay = back_off(p, call->attempts, signal, at->random);
    bool again = signal->retry_safe && signal->kind != THROTTLE_NONE &&
                 call->attempts < p->max_attempts && call->waited + delay <= p->total &&
                 (at->deadline == 0 || at->now + delay < at->deadline);
    *ret_delay = again ? delay : 0;
    call->waited += again ? delay : 0;
    signal->retry_safe = again;
    return again;
}

nsec throttle_retry_after(struct str value, bool ms, int64_t wall_now)
{
    const double day = 86400;
    double number;
    value = str_trim(value);
    if (str_to_double(value, &number)) {
        double seconds = ms ? number / 1000 : number;
        if (seconds < 0) {
            return THROTTLE_UNSAID;
        }
        return (nsec)((seconds > day ? day : seconds) * (double)NSEC_PER_SEC);
    }
    struct tm tm = { 0 };
    char text[40];
    if (ms || value.len >= sizeof text) {
        return THROTTLE_UNSAID;
    }
    (void)snprintf(text, sizeof text, "%.*s", STR_ARG(value));
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    if (end == NULL || *end != '\0') {
        return THROTTLE_UNSAID;
    }
    int64_t at = (int64_t)timegm(&tm) * NSEC_PER_SEC;
    int64_t wait = at - wall_now;
    return wait < 0 ? 0 : wait > (int64_t)day * NSEC_PER_SEC ? (int64_t)day * NSEC_PER_SEC : wait;
}
