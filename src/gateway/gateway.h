/* SPDX-License-Identifier: MIT
 *
 * struct gateway: the one door for all model traffic of a run, or of a whole machine. An HTTP/1.1
 * server on a loop that passes model requests to upstreams, translates where the formats differ,
 * runs every exchange through its filters, and is the proxy for what else may be reached.
 *
 *  1. bind a listener (io/listener.h) or get one from the sandbox; make upstreams and filters
 *  2. gateway_open(loop, &opts, &g, e) takes the listeners; the rest is borrowed until the end
 *  3. loop_run(); gateway_events come by the port
 *  4. gateway_stop(g, grace, fn, arg): no new connections, what is under way may finish within the
 *     grace; fn when all is over. Or gateway_drain(g, limit, fn, arg), where the clients are gone
 *  5. gateway_free(g) at any time: what is left is cut
 *
 * A client that leaves does not end a model call that is under way and that filters count: the
 * gateway reads the response to its end, so that its usage is known.
 *
 * What is served:
 *   POST /v1/messages, /v1/responses, /v1/chat/completions, /v1beta/models/M:generateContent …
 *                             by the route of the model: unchanged when the upstream speaks the
 *                             client's format, else translated
 *   POST /v1/embeddings, /v1/completions, …:embedContent
 *                             the same, but only unchanged
 *   …/count_tokens, …/input_tokens, :countTokens, /v1/models
 *                             the provider's answer, an estimate, the routes
 *   /v1/files, /v1/batches, /v1/responses/ID …
 *                             unchanged, if `endpoints` opens them
 *   CONNECT host:port, GET http://host/…           if `egress` allows it
 *   /healthz, /metrics                             for whoever watches
 *   mounts                                         other protocols on the same door: /mcp
 *
 * A client shows the token as Authorization: Bearer, x-api-key, x-goog-api-key or ?key=, whatever
 * its format does with a key, or before the path of its address (http://HOST/-/TOKEN); for the
 * proxy as Proxy-Authorization, Basic (any user) or Bearer. /healthz needs none. Refusals have the
 * shape that the client's format gives to errors.
 *
 * Memory is bounded: bodies one by one and together, heads, connections, what waits for a slow
 * client. A body is held until its request was answered or cannot be tried again. Every state of a
 * connection has a deadline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "gateway/filter.h"
#include "gateway/upstream.h"

struct loop;
struct gateway;
struct proxy_rules;
struct llm_losses;
struct llm_sampling;
struct llm_store;

/* The first route whose pattern fits the model is taken. Routes without a pattern are the fallbacks
 * of the route before them: tried in order when it fails, while the client has received nothing. */
struct gateway_route {
    const char *pattern; /* '*' stands for any characters, '?' for one; "*" for every model */
    struct upstream *upstream;
    const char *model; /* that the upstream is asked for; NULL: the one of the request */
};

/* Endpoints that reach the data of the provider's account, or that spend later: only if listed. */
enum gateway_endpoints {
    GATEWAY_FILES = 1u << 0,
    GATEWAY_BATCHES = 1u << 1,
    GATEWAY_RESPONSES = 1u << 2, /* stored ones */
};
/* From words: "files", "batches", "responses". ERR_CONFIG for any other. */
int gateway_endpoint_add(const char *word, unsigned *to, struct err *e) MUST_USE;

/* Something else on the same door. Requests go to it as they are; no filter sees them. */
struct gateway_mount {
    const char *path; /* "/mcp": this path and what is below it */
    struct upstream *upstream;
};

struct gateway_limits { /* 0: the default */
    size_t body;        /* of one request: 64 MiB, then 413 */
    size_t bodies;      /* of all requests under way: 256 MiB, then 503 */
    size_t memory;      /* of them in memory: 6 MiB, then they go to files in `spill_dir` */
    size_t
        connections; /* 512; beyond it the oldest idle one is closed, first of all one without the
                           token; 503 where all are busy */
    nsec head;       /* from the first byte of a head to its last: 10 s, then 408. And for a
                           connection that has not shown the token, to begin one */
    nsec stall;      /* without a byte of a body, or of ours being read: 60 s */
    nsec idle;       /* between requests: 120 s */
};

enum gateway_event_kind {
    GATEWAY_CALL,          /* a model call is over: view, done, losses */
    GATEWAY_RETRY,         /* an attempt failed and is tried again: view, delay, status or why */
    GATEWAY_REFUSED,       /* by the door or a filter: status, why; view if it got that far */
    GATEWAY_EGRESS,        /* a proxied connection is over: host, port, bytes */
    GATEWAY_EGRESS_DENIED, /* host, port, why */
};

struct gateway_event {
    enum gateway_event_kind kind;
    const struct exchange_view *view; /* may be NULL */
    const struct filter_done *done;
    const struct llm_losses *losses; /* of a translation; may be NULL */
    int status;
    const char *why;    /* for people */
    const char *filter; /* that refused or wants to try again; NULL: the door itself */
    nsec delay;
    struct str host;
    int port;
    uint64_t bytes_in, bytes_out; /* from and to the client */
};

struct gateway_port {
    void (*on_event)(void *arg, const struct gateway_event *ev); /* may be NULL */
    void *arg;
};

struct gateway_opts {
    const int *listeners; /* taken over, also on failure */
    size_t n_listeners;
    const char *token;        /* NULL: none is asked for; only where nobody else can connect */
    const char *proxy_token;  /* one that is good for the proxy alone; NULL: there is none */
    const char *const *hosts; /* names in Host besides the loopback ones; NULL-terminated or NULL */
    const struct gateway_route *routes;
    size_t n_routes;
    const struct gateway_mount *mounts;
    size_t n_mounts;
    const struct filter *filters; /* at most FILTERS_MAX */
    size_t n_filters;
    const struct proxy_rules *egress; /* NULL: no proxy */
    struct gateway_limits limits;
    unsigned endpoints; /* enum gateway_endpoints */
    bool metered;       /* tokens or dollars are limited: nothing that cannot be metered is sent */
    /* Set in every request of a conversation, where the upstream takes it; NULL: nothing is set. */
    const struct llm_sampling *sampling;
    bool sampling_strict;    /* refuse requests that cannot have all of it */
    struct llm_store *store; /* for translation: signatures and items; NULL: one of its own */
    const char *spill_dir;   /* for unnamed files; NULL: all bodies stay in memory */
    struct gateway_port port;
};

int gateway_open(struct loop *l, const struct gateway_opts *opts, struct gateway **ret,
                 struct err *e) MUST_USE;
void gateway_stop(struct gateway *g, nsec grace, void (*fn)(void *arg), void *arg);
/* The clients are gone: no new connections; model calls that are under way are read to their end,
 * so that their usage is known. True: fn comes when all is over, after `limit` at the latest; what
 * has not ended then is charged in full. False: nothing is under way, and fn does not come. */
bool gateway_drain(struct gateway *g, nsec limit, void (*fn)(void *arg), void *arg);
/* Ends the wait of gateway_stop() or gateway_drain() now. */
void gateway_give_up(struct gateway *g);
struct gateway *gateway_free(struct gateway *g); /* accepts NULL, returns NULL */

size_t gateway_connections(const struct gateway *g);
size_t gateway_calls(const struct gateway *g); /* model calls under way */
