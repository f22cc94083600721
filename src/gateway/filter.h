/* SPDX-License-Identifier: MIT
 *
 * struct filter: one of the things that happen to an exchange between the client and the upstream.
 * The gateway runs its list of filters in order on the way in, and in the same order on the way
 * back; budget, throttle, record and meter are filters. Checking the token is not: who has no token
 * never gets as far.
 *
 *   on_request      the request is complete, nothing was sent: pass, refuse, or wait for a while
 *   on_attempt      it is about to go to the upstream, for the first time or again: the same
 *   on_started      it went there for the first time: the place for what takes a while, since
 *                   nobody waits for it; the last one that sees the body
 *   on_answer       the upstream answered or failed and the client has seen no byte of it: pass it
 *                   on, or try again after a delay
 *   on_data         bytes of the answer, as the client got them
 *   on_event        what the tap understood of it (usage, model, stop, tool names)
 *   on_done         exactly once for each exchange that on_request of this filter passed, whatever
 *                   became of it
 *
 * A filter that is asked to wait is asked again, once its delay is over, until it says something
 * else. on_answer comes once for each attempt that passed on_attempt, unless the client left; a
 * filter that waits there hides the answer from the filters after it.
 *
 *   on_switch       the upstream failed and the exchange goes on at the next one of its route:
 *                   on_request and on_attempt follow, with that one in the view
 *
 * Any of them may be NULL. A filter keeps what it knows of one exchange in *slot, which starts as
 * NULL and is its own; it is released in on_done. Filters of one exchange never run at the same
 * time; many exchanges may be under way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/str.h"
#include "gateway/price.h"
#include "gateway/upstream.h"
#include "llm/event.h"

struct json;
struct llm_losses;
struct sampling_report;

enum { EXCHANGE_EDITS_MAX = 12 };

enum { EXCHANGE_FALLBACKS_MAX = 8 };

/* What a filter may know of an exchange. Borrowed, valid during the callback. */
struct exchange_view {
    uint64_t id;                            /* from 1 */
    const struct upstream_request *request; /* as it goes to the upstream */
    struct str client_target;               /* as the client sent it */
    struct llm_endpoint client;             /* in its own format */
    struct http_fields client_fields;       /* all of them: filters are trusted */
    struct str client_body;                 /* until on_started: then it goes */
    const struct upstream *upstream;
    struct str model;          /* that the client asked for; empty: unknown */
    struct str upstream_model; /* that the upstream was asked for */
    bool translated;
    const struct llm_losses *dropped; /* by the translation; NULL: there is none */
    const struct sampling_report
        *sampling;    /* set by the gateway, and not; NULL: nothing is to be */
    int64_t estimate; /* tokens of input, from the size of the body: never too low for plain text */
    size_t body_len;  /* of the request at most, as the client sent it or as it goes out */
    int64_t max_output; /* of one response, as the request limits it; 0: it does not */
    int64_t choices;    /* responses that it asks for; 0: it does not say, -1: it is not clear */
    bool background;    /* it asks for a response that is read elsewhere */
    bool prediction;    /* it brings text whose rejected parts are billed as output */
    struct price_terms terms;                  /* what it asks for beyond the standard service */
    const char *edits[EXCHANGE_EDITS_MAX + 1]; /* members of the body that the gateway changed;
                                                  NULL ends */
    nsec began;
    int attempt;   /* from 1 */
    bool fallback; /* the route has another upstream, should this one fail */
    int earlier;   /* attempts at upstreams before this one, … */
    const char *failed[EXCHANGE_FALLBACKS_MAX + 1]; /* … their names, NULL ends … */
    const char *failure;                            /* … and what the last of them said */
    const char *side; /* its kind, of a side request (side.h); known once it was sent */
};

enum filter_verdict {
    FILTER_PASS,
    FILTER_REFUSE, /* not in on_answer: what the upstream said is passed on instead */
    FILTER_WAIT,   /* ask again after `delay`; in on_answer: try the upstream again after it */
    FILTER_SWITCH, /* go on at the next upstream of the route; only if the view has a fallback */
};

#define FILTER_WHEN_FREE ((nsec)-1) /* a delay: until an attempt or exchange of another has ended */

struct filter_answer {
    enum filter_verdict verdict;
    nsec delay;             /* FILTER_WAIT */
    int64_t max_output;     /* FILTER_PASS, on_request: the request is cut down to this; 0: no */
    bool needs_usage;       /* FILTER_PASS, on_request: the response has to report its usage */
    struct llm_error error; /* FILTER_REFUSE: told to the client in its own format */
    nsec retry_after;       /* FILTER_REFUSE: for the Retry-After field; 0: none */
    const char *reason;     /* FILTER_REFUSE: for X-Cinch-Reason, and nobody shall retry; or NULL */
    const char *limit;      /* FILTER_REFUSE: for X-Cinch-Limit; or NULL */
};

/* What the upstream did, before the client sees it: either a head or an error. */
struct filter_outcome {
    int status;                         /* 0: there was no answer */
    const struct http_fields *fields;   /* NULL without an answer */
    struct str body;                    /* of an answer with status >= 400: its first 64 KiB */
    const struct upstream_error *error; /* NULL with an answer */
    bool sent; /* without an answer: the whole request left, so the upstream may work on it */
};

struct filter_done {
    int status;             /* that the client got; 0: it left before */
    bool complete;          /* the client got all of it */
    bool cancelled;         /* the client left, or the gateway was closed */
    bool served;            /* an upstream answered (also with an error) */
    int answered;           /* its status in the last attempt; 0: none came */
    bool sent;              /* the last attempt had no answer, but the whole request left */
    bool ended;             /* its response was read to the end, also after the client left, … */
    bool rejected;          /* … or is an error that it reported before it generated anything */
    struct llm_usage usage; /* as the wire told; fields are -1 where it did not. Final if `ended` */
    struct str answered_by; /* model as the answer names it; may be empty */
    uint64_t bytes_in, bytes_out;
    uint64_t received; /* bytes of the upstream's response, also after the client left */
    nsec first_byte;   /* since `began`; -1: none */
    nsec took;
    int attempts;
};

struct filter {
    const char *name;
    void *arg;
    void (*on_request)(void *arg, const struct exchange_view *x, void **slot,
                       struct filter_answer *ret);
    void (*on_attempt)(void *arg, const struct exchange_view *x, void **slot,
                       struct filter_answer *ret);
    void (*on_started)(void *arg, const struct exchange_view *x, void **slot);
    void (*on_answer)(void *arg, const struct exchange_view *x, void **slot,
                      const struct filter_outcome *o, struct filter_answer *ret);
    void (*on_switch)(void *arg, const struct exchange_view *x, void **slot);
    void (*on_data)(void *arg, const struct exchange_view *x, void **slot, struct str bytes);
    void (*on_event)(void *arg, const struct exchange_view *x, void **slot,
                     const struct llm_event *ev);
    void (*on_done)(void *arg, const struct exchange_view *x, void **slot,
                    const struct filter_done *d);
    /* After on_done: what the exchange was charged, and whether that is an estimate; false: the
     * filter does not know. */
    bool (*charged)(void *arg, const struct exchange_view *x, struct llm_usage *ret,
                    bool *ret_estimated);
};

#define FILTERS_MAX 8
