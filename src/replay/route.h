/* SPDX-License-Identifier: MIT
 *
 * struct routes: the table from models to upstreams, together with the upstreams, which it opens
 * and owns.
 *
 *   struct routes *r = routes_new(loop, &(struct routes_opts){ .variable = lookup });
 *   routes_upstream(r, "claude", &(struct routing_words){ .upstream = "https://…" }, e);
 *   routes_upstream(r, "local", &(struct routing_words){ .upstream = "http://127.0.0.1:8000/v1",
 *                                                        .format = "chat" }, e);
 *   routes_add(r, "claude-*", "claude", NULL, e);
 *   routes_add(r, "*", "local", "qwen3:8b", e);              whatever is asked for becomes qwen3:8b
 *   opts.routes = routes_list(r, &opts.n_routes);            for gateway_open()
 *   routes_free(r);                                          after the gateway
 *
 * Where upstreams were given and no routes, routes_list() sends everything to the first one;
 * whoever takes more than one asks routes_given() before.
 */
#pragma once

#include "gateway/gateway.h"
#include "gateway/routing.h"

struct json;
struct loop;
struct redactor;
struct routes;

/* What upstreams need besides their address. */
struct route_opts {
    const char *name;                  /* NULL: that of the target */
    const char *key;                   /* NULL: none is sent */
    const struct json *aliases;        /* of the profile, for scripts; may be NULL */
    const struct json *volatile_rules; /* of the profile, for cassettes; may be NULL */
    const struct json *places;         /* of the run, for cassettes; may be NULL */
    const struct redactor *redactor;   /* may be NULL */
    double replay_speed;               /* of cassettes; 0: at once */
    bool send_once;                    /* see upstream_curl.h: where nothing is tried again */
};

/* The one way to open what stands behind a route. ERR_CONFIG and ERR_INPUT for what cannot be
 * opened. */
int route_open(struct loop *l, const struct routing_target *t, const struct route_opts *o,
               struct upstream **ret, struct err *e) MUST_USE;
/* What a script or cassette had no answer to; empty: nothing was missed. */
struct str route_missed(enum routing_kind kind, const struct upstream *up);

/* --- the routes of a task --- */

/* `gateway` of a task or of a file. */
struct route_settings {
    const char *script, *cassette, *upstream; /* NULL: not given */
    const struct json *routes; /* a list of {model, upstream, name, format, key, fallback} */
};

struct route_entry {
    const char *pattern; /* NULL: a fallback of the entry before it */
    const char *model;   /* that the upstream is asked for; NULL: the one of the request */
    struct routing_words words;
};

/* In the order in which they apply: a script or a cassette answers everything; else the listed
 * routes, then the upstream. ERR_CONFIG for a route without an upstream. */
int route_entries(struct arena *a, const struct route_settings *s, struct route_entry **ret,
                  size_t *ret_n, struct err *e) MUST_USE;

/* `gateway.endpoints`, a list of words, as enum gateway_endpoints. */
int route_endpoints(const struct json *words, unsigned *ret, struct err *e) MUST_USE;

struct routes_opts {
    /* A variable of our environment, or NULL: for keys. */
    const char *(*variable)(void *arg, const char *name);
    void *arg;
    struct route_opts upstreams; /* without name and key */
};

struct routes *routes_new(struct loop *l, const struct routes_opts *o);
struct routes *routes_free(struct routes *r); /* accepts NULL, returns NULL */

/* `name` may be NULL: that of the target is taken. ERR_SECRET when the key that it needs is not
 * set, ERR_CONFIG and ERR_INPUT for what cannot be opened. */
int routes_upstream(struct routes *r, const char *name, const struct routing_words *w,
                    struct err *e) MUST_USE;
/* ERR_CONFIG when there is no upstream of that name. The strings are copied. Without a pattern it
 * is a fallback of the route before it. */
int routes_add(struct routes *r, const char *pattern, const char *upstream, const char *model,
               struct err *e) MUST_USE;
/* A route with an upstream of its own, or one that another route with the same words has. */
int routes_direct(struct routes *r, const char *pattern, const struct routing_words *w,
                  const char *model, struct err *e) MUST_USE;
size_t routes_upstreams(const struct routes *r); /* their number */
bool routes_given(const struct routes *r);       /* is there a route? */
const struct gateway_route *routes_list(struct routes *r, size_t *ret_n);

/* What scripts and cassettes had no answer to, the first of it; empty: nothing was missed. */
struct str routes_missed(const struct routes *r);
