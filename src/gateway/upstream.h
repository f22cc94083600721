/* SPDX-License-Identifier: MIT
 *
 * struct upstream: something that answers model requests. A provider over HTTP (upstream_curl.h), a
 * script, a cassette: the gateway sees no difference.
 *
 * One call, as the gateway makes it:
 *
 *   up->ops->start(up, &request, &port, &call, e)     at once; no callback from inside of it
 *       → on_head(status, fields)                     once, before any data
 *       → on_data(bytes)*                             a body in the format of the request
 *       → on_end()                                    the answer is complete …
 *       or on_error(error) at any time                … or there will be none, or no rest of it
 *       on_sent() at most once before all that        the body of the request was read
 *
 * Exactly one of on_end and on_error comes, and nothing after it; the call is then over and must
 * not be touched. All callbacks come from the loop. An answer with status 429 or 500 is an answer
 * (on_head …): on_error is for what never became HTTP. on_error after on_head is a cut stream.
 *
 *   up->ops->cancel(call)                             no callback from here on, the call is over
 *   up->ops->pause(call, true)                        the client is slow: no on_data for a while
 *
 * Who implements one: put `struct upstream` first into a struct of your own, give it your ops. A
 * call is yours too: allocate it in start(), and release it after the last callback or in cancel()
 * (with loop_retire(), as cancel may come from inside a callback). Bytes given to on_data need only
 * live until it returns. While paused, hold back what you have; what you read from elsewhere must
 * be bounded.
 *
 * The request and its strings stay valid until the call is over.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "llm/codec.h"
#include "wire/http.h"

struct upstream;
struct upstream_call;

struct upstream_request {
    struct str method;            /* "POST" */
    struct str target;            /* path and query, "/v1/messages?beta=true" */
    struct llm_endpoint endpoint; /* what the target means */
    struct http_fields
        fields; /* end to end ones, without credentials (but see keeps_key), Host, Content-Length */
    struct str body;   /* whole; may be empty */
    uint64_t exchange; /* number of the exchange in this gateway, from 1, in order of arrival */
    int attempt;       /* from 1: the throttle may try again */
};

enum upstream_error_kind {
    UPSTREAM_CONNECT, /* no connection: refused, no route, no such name */
    UPSTREAM_TLS,     /* its certificate or handshake is bad: not worth a retry */
    UPSTREAM_TIMEOUT, /* too long without an answer, or without a byte of it */
    UPSTREAM_CUT,     /* it closed before the answer was complete */
    UPSTREAM_BROKEN,  /* what came is no HTTP, or too large */
    UPSTREAM_REFUSED, /* a script or cassette has no answer to this request; not worth a retry */
};

struct upstream_error {
    enum upstream_error_kind kind;
    nsec retry_after;    /* -1: not said */
    const char *message; /* for people; borrowed, never holds a credential */
};

struct upstream_port {
    void (*on_head)(void *arg, int status, const struct http_fields *fields);
    void (*on_data)(void *arg, struct str bytes);
    void (*on_end)(void *arg);
    void (*on_error)(void *arg, const struct upstream_error *error);
    void *arg;
    void (*on_sent)(void *arg); /* the body was read to its end; may be NULL, and may come from
                                   inside of start() */
};

struct upstream_ops {
    /* On failure there is no call: the request cannot even be begun (ERR_CONFIG, ERR_SECRET). */
    int (*start)(struct upstream *up, const struct upstream_request *r,
                 const struct upstream_port *port, struct upstream_call **ret, struct err *e);
    void (*cancel)(struct upstream_call *call);
    void (*pause)(struct upstream_call *call, bool paused); /* NULL: gives small answers only */
    void (*free)(struct upstream *up); /* all calls are over; may be called from a callback */
};

struct upstream {
    const struct upstream_ops *ops;
    const char *name;       /* in routes, metrics and records; borrowed */
    bool any_format;        /* answers in whatever format the request has (script, cassette) */
    enum llm_format format; /* else: the one it speaks … */
    unsigned formats;       /* … and further ones, 1u << format each */
    bool local;             /* no provider behind it: it costs nothing and has no credential */
    struct str secret;      /* its credential, which no answer may hand on; empty: none */
    bool keeps_key;         /* clients bring a credential of their own, which it gets as it is */
    bool recorded;          /* its failures are those of a recording: nothing is tried again */
};

bool upstream_speaks(const struct upstream *up, enum llm_format f);
/* Has it the endpoint? Those of OpenAI that no codec reads are at servers of either format. */
bool upstream_serves(const struct upstream *up, const struct llm_endpoint *ep);
const char *upstream_error_word(enum upstream_error_kind kind); /* "connect", "tls", … */
