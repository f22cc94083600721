/* SPDX-License-Identifier: MIT
 *
 * struct run_gateway: the gateway of one run. Shared by gateway_plan.c (what the settings ask for),
 * phase_gateway.c (its life), gateway_child.c (what the harness gets) and gateway_report.c (what it
 * tells the record).
 */
#pragma once

#include "gateway/account.h"
#include "gateway/gateway.h"
#include "gateway/routing.h"
#include "llm/dropped.h"
#include "llm/sampling.h"
#include "llm/store.h"
#include "record/open_calls.h"
#include "replay/assembly.h"
#include "run/run_priv.h"

/* Routes of a task are written by hand; the record lists them. */
enum { ROUTES_MAX = 64 };

#define TOKEN_NAME    "CINCH_GATEWAY_TOKEN"
#define CASSETTE_NAME "evidence/traffic.cassette"
#define STORE_NAME    "evidence/signatures.json"

/* One route, read from the settings. */
struct planned {
    const char *pattern; /* NULL: a fallback of the route before it */
    const char *model;
    struct routing_target target;
    const char *credential; /* NULL: none */
    bool kept;              /* the harness shows its own */
    struct upstream *upstream;
};

struct run_gateway {
    struct err error; /* told by phase admit, when there is a record */
    struct planned routes[ROUTES_MAX];
    struct gateway_route table[ROUTES_MAX];
    size_t len;
    size_t blamed; /* the route whose upstream failed last, for messages */
    const char *withheld[2 * ROUTES_MAX + 1]; /* names of variables with credentials */
    size_t n_withheld;
    struct llm_sampling sampling;     /* of the task, for the gateway to set */
    bool unsent[LLM_SAMPLING_FIELDS]; /* of it: reported as a warning */
    const struct upstream *fallback;  /* the last one that was reported as a warning */
    unsigned endpoints;               /* enum gateway_endpoints */
    const char *token, *url;
    const char *proxy_token; /* for what must not ask the model: tools, terminals; NULL: no proxy */
    const char *pass_url;    /* the address that shows the token; what harnesses get that show their
                             own credential where others show the token */
    struct proxy_rules *egress; /* NULL: there is no proxy */
    struct assembly assembly;
    struct llm_store *store;    /* what translated responses signed, for the requests that follow */
    struct llm_losses reported; /* dropped fields that were reported as warnings */
    struct open_calls open;     /* model calls under way, for recovery */
    struct {
        bool over;    /* the harness has been at rest once, or nothing depends on it */
        nsec since;   /* the first request; 0: there was none */
        nsec cpu;     /* of the harness at the last look */
        int unworked; /* looks since it has used the processor */
    } settling;
    struct timer *patience; /* of a harness that goes on after a refusal */
    struct {
        int64_t refused;  /* by the budget */
        int64_t answered; /* with a status below 400 */
    } calls;
    struct event_throttle throttled; /* the last time; kind NULL: never */
    bool quota_warned;
};

/* What account and gateway tell while they work (gateway_report.c). */
struct account_port gateway_account_port(struct run *run);
struct gateway_port gateway_event_port(struct run *run);
/* What the task wants of the model, for the gateway to set; NULL: nothing, or the adapter sends it
 * itself (gateway_plan.c). */
const struct llm_sampling *gateway_sampling(struct run *run);
/* Signatures of the conversation that is continued, and those of this run for the next one
 * (gateway_report.c). */
void gateway_load_store(struct run *run);
void gateway_save_store(struct run *run);
/* No traffic from here on (phase_gateway.c); idempotent. */
void gateway_close(struct run *run);
