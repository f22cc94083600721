/* SPDX-License-Identifier: MIT
 *
 * What the files of the door share. Who knows whom: gateway.c owns the connections; a connection
 * speaks HTTP and owns at most one exchange (a request and its answer) or one tunnel; an exchange
 * answers through the connection_* functions and never touches the stream.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "gateway/auxiliary.h"
#include "gateway/body.h"
#include "gateway/gateway.h"
#include "gateway/mask.h"
#include "gateway/prometheus.h"
#include "gateway/proxy.h"
#include "gateway/request_queue.h"
#include "gateway/sampling_edit.h"
#include "gateway/scan.h"
#include "gateway/usage_chunk.h"
#include "gateway/usage_tail.h"
#include "io/loop.h"
#include "io/timer.h"
#include "llm/dropped.h"
#include "llm/store.h"
#include "wire/http.h"

#define LISTENERS_MAX 8
#define SPARE_MAX     256 /* two megabytes, after as many calls at once */

struct connection;
struct exchange;
struct tunnel;
struct listener;

struct gateway {
    struct loop *loop;
    struct gateway_opts opts; /* limits filled in; what it points to is borrowed */
    struct listener *listeners[LISTENERS_MAX];
    int ports[LISTENERS_MAX];       /* where they listen; 0: not on TCP */
    struct connection *connections; /* a list */
    size_t n_connections;
    struct exchange *waiting;  /* for others to end; a list */
    struct exchange *draining; /* their clients left; oldest first; a list */
    size_t n_draining;
    bool closing;               /* nothing is read to its end any more */
    struct body_room room;      /* for their bodies, and of all requests under way */
    struct request_queue turns; /* who waits for room */
    size_t body_bytes;          /* of these bodies, wherever they are */
    size_t released;            /* bytes of bodies since memory was last given back */
    struct timer *rest;         /* after the last one: it is given back */
    uint64_t last_id;
    struct arena *spare[SPARE_MAX]; /* empty ones, for exchanges to come */
    size_t n_spare;
    struct metrics metrics;
    struct llm_store *store, *own_store; /* own_store: NULL if the store is borrowed */
    struct auxiliary side;
    size_t n_models; /* routes that are not fallbacks */
    bool need_scan;  /* routes or filters depend on what stands in a body */
    bool stopping;
    bool only_drains; /* and waits for no connection */
    struct timer *grace;
    void (*on_stopped)(void *arg);
    void *stopped_arg;
};

/* Is that this gateway itself, as a client of this machine, or of this sandbox, sees it? */
bool gateway_is_at(const struct gateway *g, struct str host, int port);
void gateway_tell(struct gateway *g, const struct gateway_event *ev);
void gateway_connection_over(struct gateway *g);
/* The client of an exchange left, or the exchange is over: it joins or leaves the list of those
 * whose responses are read to the end all the same, for what they cost. */
void gateway_join_draining(struct gateway *g, struct exchange *x);
void gateway_leave_draining(struct gateway *g, struct exchange *x);
/* A body is gone. */
void gateway_rest(struct gateway *g);
/* An attempt or exchange is over: who waited for that is asked again. */
void gateway_wake(struct gateway *g);

/* --- connection.c: HTTP to and from one client --- */

void connection_start(struct gateway *g, int fd);
void connection_free_all(struct gateway *g);
/* Closes the oldest connection on which nothing is under way, first of all one that never showed
 * the token. False: all of them are busy. */
bool connection_make_room(struct gateway *g);
void connection_close_idle(struct gateway *g);
void connection_close_models(struct gateway *g); /* all but those that a mount is answering */
struct http *connection_take_parser(struct connection *c); /* with the head that it has read */

/* The answer. `fields` without framing; length -1: not known. After the last of end, cut or refuse
 * the exchange is the connection's no more. */
void connection_head(struct connection *c, int status, const struct http_fields *fields,
                     int64_t length);
void connection_data(struct connection *c, struct str bytes);
bool connection_last(struct connection *c); /* sends the rest; false: that failed, it was cut */
void connection_end(struct connection *c);
void connection_cut(struct connection *c); /* it will never be complete: the client must see that */
bool connection_congested(const struct connection *c);

/* A CONNECT to ourselves: the requests follow on this very connection. */
void connection_start_over(struct connection *c);
#define CONNECTED STR("HTTP/1.1 200 Connection established\r\n\r\n")
/* For tunnels: the connection carries another protocol from here on. */
void connection_become_tunnel(struct connection *c, struct tunnel *t);
int connection_raw(struct connection *c, struct str bytes);
void connection_hold(struct connection *c, bool hold); /* no reading for a while */
void connection_raw_end(struct connection *c, bool cut);

/* --- endpoints.c: groups of endpoints that are closed unless listed --- */

enum gateway_endpoints gateway_endpoint_group(enum llm_call_kind call); /* 0: always open */
const char *gateway_endpoint_name(enum gateway_endpoints group);
/* The upstream for a request without a model; NULL: none has the endpoint. */
const struct gateway_route *gateway_endpoint_route(const struct gateway *g,
                                                   const struct llm_endpoint *ep);

/* --- respond.c: answers of our own --- */

struct refusal {
    int status; /* 0: none */
    enum llm_error_kind kind;
    struct str message;
    nsec retry_after;   /* 0: not said */
    const char *reason; /* for X-Cinch-Reason; NULL: none */
    const char *limit;  /* for X-Cinch-Limit; NULL: none */
};
/* The format whose errors the client understands, from what it sent. */
enum llm_format respond_format(const struct http_head *head);
void respond_text(struct connection *c, int status, const char *type, struct str body);
void respond_error(struct connection *c, enum llm_format f, const struct refusal *r);
void respond_challenge(struct connection *c, const struct refusal *r); /* 407 */

/* --- exchange.c and friends: one request and its answer --- */

enum exchange_kind {
    EXCHANGE_MODEL, /* generate, count, models */
    EXCHANGE_MOUNT,
    EXCHANGE_HEALTH,
    EXCHANGE_METRICS,
    EXCHANGE_PROXY, /* absolute form: see proxy.c */
    EXCHANGE_TUNNEL,
    EXCHANGE_UNKNOWN, /* 404 */
};

enum exchange_state {
    EXCHANGE_READING,   /* the body comes */
    EXCHANGE_FILTERS,   /* they are being asked, or one of them waits */
    EXCHANGE_CALLING,   /* the upstream works, nothing has come */
    EXCHANGE_GATHERING, /* an error answer, of which the filters shall see the body */
    EXCHANGE_ANSWERING, /* the client gets it */
    EXCHANGE_OVER,
};

struct json;
struct model_list;  /* model_list.c */
struct translation; /* translate.c */

struct exchange {
    struct gateway *g;
    struct connection *c; /* NULL: the client left, and the response is read for what it costs */
    struct http *http;    /* then: the parser that the head is of */
    struct exchange *next_draining;
    const struct http_head *head; /* of the connection's parser, or … */
    struct http_head bare;        /* … that without our address and the pass before its path */
    bool shown;                   /* the token, by that pass */
    const char *closed;           /* the group of endpoints that is not open; NULL: none */
    bool trusted;                 /* it showed the token, wherever, or none is asked for */
    const char *fault;            /* of the path: it is refused; NULL: none */
    struct arena *arena;
    enum exchange_kind kind;
    enum exchange_state state;
    struct refusal refusal; /* decided when the head came; told when that is possible */
    struct llm_endpoint endpoint;
    struct body body;
    size_t body_len; /* stays when the body is gone */
    struct scan scan;
    bool scanned;

    const struct gateway_route *route; /* models */
    struct upstream *upstream;
    struct upstream_call *call;
    struct upstream_request request;
    struct buf rewritten; /* the body for the upstream, where it is not the client's, … */
    struct body sending;  /* … and where it lies once filters have agreed */
    bool sent;            /* the upstream has read all of it */
    struct translation *translation; /* NULL: bytes pass unchanged */
    struct llm_losses *losses;
    struct sampling_report sampling; /* if the view has it */
    struct llm_tap *tap;
    struct model_list *list; /* while it is gathered; NULL: it is not */
    struct usage_tail *tail; /* in place of a tap, where no codec reads the response */
    bool asked_usage;        /* the gateway added include_usage, which the client did not ask for */
    struct usage_chunk *usage_chunk; /* removes what that adds to the response; NULL: nothing */

    struct exchange_view view;
    void *slots[FILTERS_MAX];
    size_t next_filter; /* to be asked */
    size_t passed;      /* filters that are told when all is over */
    bool in_attempts;   /* on_request is done */
    struct timer *timer;
    struct exchange *next_waiting;
    bool is_waiting;

    int status;                       /* of the upstream, in this attempt */
    bool answer_over;                 /* the upstream has said that it is complete */
    bool ending;                      /* the tap is being closed */
    bool failed;                      /* the response holds an error */
    bool encoded;                     /* its body is compressed, though we asked for plain bytes */
    size_t drained;                   /* bytes read since the client left */
    struct http_fields answer_fields; /* in the arena */
    struct mask mask;                 /* all bytes of an answer pass it */
    struct buf gathered;
    bool paused;
    bool in_flight;  /* counted as such */
    int told_status; /* of our answer; 0: none yet */
    struct filter_done done;
};

struct exchange *exchange_new(struct connection *c, struct gateway *g,
                              const struct http_head *head);
/* May the body come? False: the refusal is to be told at once. */
bool exchange_wanted(const struct exchange *x);
bool exchange_trusted(const struct exchange *x); /* it showed the token, or none is asked for */
void exchange_expect(struct exchange *x);        /* it comes now */
/* Where the next bytes of the body shall be read to; NULL: nowhere in particular. */
char *exchange_space(struct exchange *x, size_t *len);
void exchange_body(struct exchange *x, struct str bytes); /* may refuse, and thus end it */
void exchange_start(struct exchange *x);                  /* the request is complete */
void exchange_drained(struct exchange *x);
void exchange_abort(struct exchange *x); /* the client is gone */

/* exchange.c, for the files beside it */
void exchange_refuse(struct exchange *x, const char *filter, const struct refusal *r);
void exchange_finish(struct exchange *x, bool complete);
void exchange_release(struct exchange *x);   /* somebody else answers */
void exchange_drop_body(struct exchange *x); /* what the client sent is needed no more */
void exchange_send_head(struct exchange *x, int status, const struct http_fields *fields,
                        int64_t length);
void exchange_send(struct exchange *x, struct str bytes);
/* Is the task's sampling to be set? Not in auxiliary requests. */
bool exchange_wants_sampling(struct exchange *x);
void exchange_set_sampling(struct exchange *x);                 /* it is; for the event */
void exchange_add_edit(struct exchange *x, const char *member); /* of the body; a constant */
void exchange_on_event(void *arg, const struct llm_event *ev);  /* of a tap or reader */

/* attempt.c: filters, upstream calls and trying again */
void attempt_begin(struct exchange *x);
void attempt_wake(struct exchange *x);
void attempt_cancel(struct exchange *x);
bool attempt_drain(struct exchange *x); /* the client left; false: that cannot be bounded in time */

/* passthrough.c: the request for the upstream, and the answer for the client */
int passthrough_prepare(struct exchange *x, struct err *e);
int passthrough_limit(struct exchange *x, int64_t max_output, struct err *e);
/* Adds stream_options.include_usage to a stream of Chat Completions or legacy completions that does
 * not ask for its usage, and removes the additional chunk from what the client gets. */
int passthrough_ask_usage(struct exchange *x, struct err *e);
void passthrough_head(struct exchange *x);
void passthrough_data(struct exchange *x, struct str bytes);
void passthrough_end(struct exchange *x);

/* translate.c: the same between formats */
int translate_prepare(struct exchange *x, struct err *e);
int translate_limit(struct exchange *x, int64_t max_output, struct err *e);
void translate_head(struct exchange *x);
void translate_data(struct exchange *x, struct str bytes);
void translate_end(struct exchange *x);
void translate_cut(struct exchange *x); /* the upstream broke off */
struct translation *translation_free(struct translation *t);

/* models.c: /v1/models and count_tokens without a provider */
void models_answer(struct exchange *x);
const char *models_name(const struct gateway_route *r); /* that the route names; NULL: none */
void models_send(struct exchange *x, const struct json *names);

/* model_list.c: the names of all upstreams */
void model_list_start(struct exchange *x);
void model_list_done(struct exchange *x);

void count_answer(struct exchange *x);

/* --- proxy.c --- */

/* The token was checked. For CONNECT the request is complete; else its body is there. */
void tunnel_start(struct exchange *x);
void tunnel_from_client(struct tunnel *t, struct str bytes);
void tunnel_client_ended(struct tunnel *t);
void tunnel_client_drained(struct tunnel *t);
bool tunnel_moved(struct tunnel *t); /* since the last question */
void tunnel_free(struct tunnel *t);  /* the client is gone */
