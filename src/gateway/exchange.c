/* SPDX-License-Identifier: MIT
 *
 * One request and its answer: what kind of request it is, who may ask it, and the end of it. What
 * lies between is in attempt.c (filters and upstream), passthrough.c and translate.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/macro.h"
#include "gateway/account.h"
#include "gateway/admit.h"
#include "gateway/gateway_priv.h"
#include "gateway/proxy.h"
#include "gateway/target.h"

/* --- admission --- */

static void set_refusal(struct exchange *x, int status, enum llm_error_kind kind,
                        struct str message)
{
    x->refusal = (struct refusal) { .status = status, .kind = kind, .message = message };
}

static void refuse_later(struct exchange *x)
{
    set_refusal(x, 503, LLM_ERR_OVERLOADED, STR("too much is under way; try again"));
    x->refusal.retry_after = NSEC_PER_SEC;
}

static const struct gateway_mount *find_mount(const struct gateway *g, struct str path)
{
    for (size_t i = 0; i < g->opts.n_mounts; i++) {
        struct str at = str_of(g->opts.mounts[i].path);
        if (str_starts(path, at) && (path.len == at.len || path.ptr[at.len] == '/')) {
            return &g->opts.mounts[i];
        }
    }
    return NULL;
}

static enum exchange_kind kind_of(struct exchange *x)
{
    struct str rest = x->head->target;
    struct str path = str_split(&rest, '?');
    bool reads = str_eqc(x->head->method, "GET") || str_eqc(x->head->method, "HEAD");
    if (str_eqc(x->head->method, "CONNECT")) {
        return EXCHANGE_TUNNEL;
    }
    if (path.ptr[0] != '/') {
        return EXCHANGE_PROXY;
    }
    x->fault = target_fault(x->head->target);
    if (x->fault != NULL) {
        return EXCHANGE_UNKNOWN;
    }
    if (reads && str_eqc(path, "/healthz")) {
        return EXCHANGE_HEALTH;
    }
    if (reads && str_eqc(path, "/metrics")) {
        return EXCHANGE_METRICS;
    }
    const struct gateway_mount *mount = find_mount(x->g, path);
    if (mount != NULL && !target_has_slash(path, STR_EMPTY)) {
        x->upstream = mount->upstream;
        return EXCHANGE_MOUNT;
    }
    x->endpoint = llm_endpoint_of(x->head->method, x->head->target);
    if (x->endpoint.call == LLM_CALL_MODELS || x->endpoint.shared) {
        x->endpoint.format = respond_format(x->head); /* "/v1/models" is everybody's */
    }
    enum gateway_endpoints group = gateway_endpoint_group(x->endpoint.call);
    if ((group & ~x->g->opts.endpoints) != 0) {
        x->closed = gateway_endpoint_name(group);
    }
    if (target_has_slash(x->head->target, x->endpoint.model)) {
        x->fault = "the path has an encoded slash outside of the name of a model";
    }
    return x->endpoint.call == LLM_CALL_NONE || x->fault != NULL ? EXCHANGE_UNKNOWN
                                                                 : EXCHANGE_MODEL;
}

static bool is_proxy(const struct exchange *x)
{
    return x->kind == EXCHANGE_PROXY || x->kind == EXCHANGE_TUNNEL;
}

static bool may_use_proxy(const struct exchange *x)
{
    const struct gateway_opts *o = &x->g->opts;
    return admit_proxy_token(x->head, str_of(o->token)) ||
           (o->proxy_token != NULL && admit_proxy_token(x->head, str_of(o->proxy_token)));
}

static void check_token(struct exchange *x)
{
    const char *token = x->g->opts.token;
    bool open = x->kind == EXCHANGE_HEALTH || x->kind == EXCHANGE_UNKNOWN;
    x->trusted = token == NULL || x->shown;
    if (x->trusted || open) {
        return;
    }
    if (is_proxy(x)) {
        x->trusted = may_use_proxy(x);
        if (!x->trusted) {
            set_refusal(x, 407, LLM_ERR_AUTH,
                        STR("the proxy needs the gateway's token as password\n"));
        }
        return;
    }
    x->trusted = admit_token(x->head, str_of(token));
    if (!x->trusted) {
        set_refusal(x, 401, LLM_ERR_AUTH, STR("wrong or missing gateway token"));
    }
}

static void check_head(struct exchange *x)
{
    const struct gateway_limits *l = &x->g->opts.limits;
    const struct str *host = http_find(&x->head->fields, "host");
    if (!is_proxy(x) && host != NULL && !admit_host(*host, x->g->opts.hosts)) {
        set_refusal(x, 403, LLM_ERR_PERMISSION, STR("this host is not served here"));
        return;
    }
    if (x->fault != NULL) {
        set_refusal(x, 400, LLM_ERR_INVALID, str_of(x->fault));
        return;
    }
    if (x->closed != NULL) {
        set_refusal(x, 404, LLM_ERR_NOT_FOUND,
                    str_of(arena_printf(x->arena,
                                        "this endpoint is not open: add '%s' to gateway.endpoints",
                                        x->closed)));
        return;
    }
    if (x->kind == EXCHANGE_UNKNOWN) {
        set_refusal(x, 404, LLM_ERR_NOT_FOUND, STR("no such path on this gateway"));
        return;
    }
    check_token(x);
    if (x->refusal.status != 0) {
        return;
    }
    if (is_proxy(x) && x->g->opts.egress == NULL) {
        set_refusal(x, 403, LLM_ERR_PERMISSION, STR("this gateway is no proxy"));
    } else if (x->head->length > (int64_t)l->body) {
        set_refusal(x, 413, LLM_ERR_TOO_LARGE,
                    STR("the request is larger than the gateway allows"));
    } else if (x->head->length > (int64_t)(l->bodies - x->g->body_bytes)) {
        refuse_later(x);
    }
}

static void set_target(struct exchange *x, struct str target)
{
    x->bare = *x->head;
    x->bare.target = target;
    x->head = &x->bare;
}

/* The absolute form of a request to this gateway: some clients ask the proxy for it, too. */
static void take_address(struct exchange *x)
{
    struct str authority, path, host;
    int port;
    if (proxy_split_url(x->head->target, &authority, &path) &&
        proxy_split_authority(authority, 80, &host, &port) && gateway_is_at(x->g, host, port)) {
        set_target(x, str_starts(path, STR("/")) ? path : STR("/"));
    }
}

/* Who shows the token by the path of the address has shown it; from here on it is not there. */
static void take_pass(struct exchange *x)
{
    const char *token = x->g->opts.token;
    struct str target = x->head->target;
    x->shown = token != NULL && admit_pass(&target, str_of(token));
    if (x->shown) {
        set_target(x, target);
    }
}

struct exchange *exchange_new(struct connection *c, struct gateway *g, const struct http_head *head)
{
    struct arena *a = g->n_spare > 0 ? g->spare[--g->n_spare] : arena_new();
    struct exchange *x = ARENA_NEW(a, struct exchange);
    x->g = g;
    x->c = c;
    x->head = head;
    x->arena = a;
    x->done = (struct filter_done) { .usage = LLM_USAGE_NONE, .first_byte = -1 };
    x->view.id = ++g->last_id;
    x->view.began = clock_now();
    take_address(x);
    take_pass(x);
    x->view.client_target = x->head->target;
    x->view.client_fields = head->fields;
    body_init(&x->body, &g->room, g->opts.limits.body);
    body_init(&x->sending, &g->room, g->opts.limits.body + ((size_t)1 << 20));
    buf_init(&x->rewritten, x->sending.max);
    buf_init(&x->gathered, (size_t)1 << 20);
    mask_init(&x->mask, STR_EMPTY, NULL, NULL);
    x->kind = kind_of(x);
    x->view.client = x->endpoint;
    check_head(x);
    return x;
}

bool exchange_wanted(const struct exchange *x)
{
    return x->refusal.status == 0;
}

bool exchange_trusted(const struct exchange *x)
{
    return x->trusted;
}

/* --- the body --- */

void exchange_expect(struct exchange *x)
{
    if (x->head->length > 0) {
        body_expect(&x->body, (size_t)x->head->length);
    }
}

char *exchange_space(struct exchange *x, size_t *len)
{
    return body_space(&x->body, len);
}

void exchange_body(struct exchange *x, struct str bytes)
{
    struct err e;
    if (bytes.len > x->g->opts.limits.bodies - x->g->body_bytes) {
        refuse_later(x);
    } else if (body_add(&x->body, bytes, &e) == 0) {
        x->body_len += bytes.len;
        x->g->body_bytes += bytes.len;
        x->g->metrics.bytes_in += bytes.len;
        return;
    } else if (e.code == ERR_LIMIT) {
        set_refusal(x, 413, LLM_ERR_TOO_LARGE,
                    STR("the request is larger than the gateway allows"));
    } else {
        refuse_later(x); /* the disk */
    }
    exchange_start(x);
}

void exchange_drop_body(struct exchange *x)
{
    x->g->body_bytes -= x->body.len;
    x->g->released += x->body.len;
    x->view.client_body = STR_EMPTY;
    body_done(&x->body);
}

/* --- the end --- */

static void destroy(void *arg)
{
    struct exchange *x = arg;
    struct gateway *g = x->g;
    struct arena *a = x->arena; /* x lies in it */
    x->translation = translation_free(x->translation);
    x->timer = timer_free(x->timer);
    x->http = http_free(x->http);
    buf_done(&x->gathered);
    model_list_done(x);
    mask_done(&x->mask);
    if (g->n_spare < SPARE_MAX) {
        arena_reset(a);
        g->spare[g->n_spare++] = a;
    } else {
        (void)arena_free(a);
    }
}

/* As a filter charges it, or else as the upstream reported it. */
static void count_usage(struct exchange *x)
{
    struct llm_usage usage = x->done.usage;
    bool estimated = false;
    for (size_t i = 0; i < x->passed; i++) {
        const struct filter *f = &x->g->opts.filters[i];
        if (f->charged != NULL && f->charged(f->arg, &x->view, &usage, &estimated)) {
            break;
        }
    }
    metrics_usage(&x->g->metrics, &usage, estimated);
}

static void tell_done(struct exchange *x)
{
    struct gateway *g = x->g;
    struct filter_done *d = &x->done;
    g->metrics.in_flight -= x->in_flight ? 1 : 0;
    d->status = x->told_status;
    d->answered = x->status;
    d->ended = d->ended && !x->failed;
    d->took = clock_now() - x->view.began;
    d->attempts = x->view.attempt;
    d->bytes_in = x->body_len;
    for (size_t i = 0; i < x->passed; i++) {
        const struct filter *f = &g->opts.filters[i];
        if (f->on_done != NULL) {
            f->on_done(f->arg, &x->view, &x->slots[i], d);
        }
    }
    if (x->kind == EXCHANGE_MODEL && account_counts(&x->endpoint) && x->refusal.status == 0) {
        metrics_call(&g->metrics, x->endpoint.format, d->status, d->took);
        count_usage(x);
        gateway_tell(g, &(struct gateway_event) { .kind = GATEWAY_CALL,
                                                  .view = &x->view,
                                                  .done = d,
                                                  .losses = x->losses,
                                                  .status = d->status });
    }
}

/* After this only the memory is left, until the present batch of callbacks is over. */
static void retire(struct exchange *x)
{
    if (x->state == EXCHANGE_OVER) {
        return;
    }
    x->ending = true;
    if (x->tap != NULL) {
        llm_tap_end(x->tap);
        x->tap = llm_tap_free(x->tap);
    }
    x->state = EXCHANGE_OVER;
    /* A call that is given up while it is under way may have been sent, whatever we know of it. */
    x->done.sent = x->status == 0 && (x->sent || (x->call != NULL && !x->upstream->local));
    attempt_cancel(x);
    gateway_leave_draining(x->g, x);
    tell_done(x);
    x->c = NULL;
    exchange_drop_body(x);
    body_done(&x->sending);
    buf_done(&x->rewritten);
    x->usage_chunk = usage_chunk_free(x->usage_chunk);
    gateway_rest(x->g);
    gateway_wake(x->g);
    loop_retire(x->g->loop, destroy, x);
}

void exchange_finish(struct exchange *x, bool complete)
{
    struct connection *c = x->c;
    if (x->state == EXCHANGE_OVER) {
        return;
    }
    if (c == NULL) {
        retire(x);
        return;
    }
    if (complete && !connection_last(c)) {
        return;
    }
    /* The client has its answer: what is to be counted and written, it need not wait for. */
    x->done.complete = complete;
    retire(x);
    if (complete) {
        connection_end(c);
    } else {
        connection_cut(c);
    }
}

void exchange_release(struct exchange *x)
{
    retire(x);
}

/* Whether the rest of a response is worth reading without a client: it is billed, and a filter
 * wants to know how much. */
static bool is_worth_draining(const struct exchange *x)
{
    return !x->g->closing && x->call != NULL && x->passed > 0 && !x->upstream->local &&
           (x->state == EXCHANGE_CALLING || x->state == EXCHANGE_ANSWERING);
}

void exchange_abort(struct exchange *x)
{
    x->done.cancelled = true;
    if (!is_worth_draining(x) || !attempt_drain(x)) {
        retire(x);
        return;
    }
    x->http = connection_take_parser(x->c);
    x->c = NULL;
    if (x->paused) {
        x->paused = false;
        x->upstream->ops->pause(x->call, false);
    }
    gateway_join_draining(x->g, x);
}

void exchange_refuse(struct exchange *x, const char *filter, const struct refusal *r)
{
    struct connection *c = x->c;
    enum llm_format f = respond_format(x->head);
    struct refusal told = *r;
    CLEANUP(buf) struct buf message = BUF_INIT(BUF_TEXT);
    if (x->state == EXCHANGE_OVER) {
        return;
    }
    if (c == NULL) {
        retire(x);
        return;
    }
    buf_add(&message, r->message);
    buf_adds(&message, "");
    told.message = buf_str(&message);
    x->g->metrics.refused++;
    x->refusal = told;
    x->told_status = r->status;
    x->done.complete = true;
    gateway_tell(x->g, &(struct gateway_event) {
                           .kind = GATEWAY_REFUSED,
                           .view = x->kind == EXCHANGE_MODEL ? &x->view : NULL,
                           .status = r->status,
                           .why = message.ptr,
                           .filter = filter,
                       });
    retire(x);
    if (r->status == 407) {
        respond_challenge(c, &told);
    } else {
        respond_error(c, f, &told);
    }
}

/* --- answering --- */

void exchange_send_head(struct exchange *x, int status, const struct http_fields *fields,
                        int64_t length)
{
    x->state = EXCHANGE_ANSWERING;
    if (x->c == NULL) {
        return;
    }
    x->told_status = status;
    x->done.first_byte = clock_now() - x->view.began;
    connection_head(x->c, status, fields, length);
}

void exchange_send(struct exchange *x, struct str bytes)
{
    if (x->state != EXCHANGE_ANSWERING || bytes.len == 0 || x->c == NULL) {
        return;
    }
    x->done.bytes_out += bytes.len;
    x->g->metrics.bytes_out += bytes.len;
    connection_data(x->c, bytes);
    for (size_t i = 0; i < x->passed && x->state == EXCHANGE_ANSWERING && x->c != NULL; i++) {
        const struct filter *f = &x->g->opts.filters[i];
        if (f->on_data != NULL) {
            f->on_data(f->arg, &x->view, &x->slots[i], bytes);
        }
    }
    if (x->state == EXCHANGE_ANSWERING && x->call != NULL && x->c != NULL && !x->paused &&
        connection_congested(x->c) && x->upstream->ops->pause != NULL) {
        x->paused = true;
        x->upstream->ops->pause(x->call, true);
    }
}

void exchange_drained(struct exchange *x)
{
    if (x->paused && x->call != NULL) {
        x->paused = false;
        x->upstream->ops->pause(x->call, false);
    }
}

void exchange_add_edit(struct exchange *x, const char *member)
{
    for (size_t i = 0; i < EXCHANGE_EDITS_MAX; i++) {
        if (x->view.edits[i] != NULL && strcmp(x->view.edits[i], member) == 0) {
            return;
        }
        if (x->view.edits[i] == NULL) {
            x->view.edits[i] = member;
            return;
        }
    }
}

bool exchange_wants_sampling(struct exchange *x)
{
    if (x->g->opts.sampling == NULL || x->kind != EXCHANGE_MODEL || !x->scanned ||
        x->endpoint.call != LLM_CALL_GENERATE) {
        return false;
    }
    x->view.side = auxiliary_kind(&x->g->side, &x->endpoint, x->view.client_body, &x->scan);
    return x->view.side == NULL;
}

void exchange_set_sampling(struct exchange *x)
{
    x->view.sampling = &x->sampling;
    for (size_t i = 0; i < x->sampling.n_set; i++) {
        exchange_add_edit(x, x->sampling.set[i]);
    }
}

/* Errors that a provider finds before it generates anything; the others may come after it has. */
static bool is_rejection(enum llm_error_kind kind)
{
    return kind != LLM_ERR_SERVER && kind != LLM_ERR_OVERLOADED && kind != LLM_ERR_TIMEOUT;
}

void exchange_on_event(void *arg, const struct llm_event *ev)
{
    struct exchange *x = arg;
    if (ev->kind == LLM_EV_START && ev->model.len > 0 && x->done.answered_by.len == 0) {
        x->done.answered_by = arena_str(x->arena, ev->model);
    }
    if (ev->kind == LLM_EV_USAGE) {
        llm_usage_update(&x->done.usage, &ev->usage);
    } else if (ev->kind == LLM_EV_ERROR) {
        x->failed = true;
        x->done.rejected = x->done.usage.output <= 0 && is_rejection(ev->error.kind);
    } else if (ev->kind == LLM_EV_END) {
        /* some formats have no mark for it but the end of the response itself */
        x->done.ended = !x->ending || x->answer_over;
    }
    for (size_t i = 0; i < x->passed; i++) {
        const struct filter *f = &x->g->opts.filters[i];
        if (f->on_event != NULL) {
            f->on_event(f->arg, &x->view, &x->slots[i], ev);
        }
    }
}

/* --- starting --- */

static void answer_metrics(struct exchange *x)
{
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    struct connection *c = x->c;
    x->g->metrics.spilled = x->g->room.spilled;
    x->g->metrics.draining = x->g->n_draining;
    int rc = metrics_write(&x->g->metrics, x->g->n_connections, &text, NULL);
    x->told_status = rc < 0 ? 500 : 200;
    retire(x);
    respond_text(c, rc < 0 ? 500 : 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&text));
}

static void answer_health(struct exchange *x)
{
    struct connection *c = x->c;
    bool stopping = x->g->stopping;
    retire(x);
    respond_text(c, stopping ? 503 : 200, "application/json",
                 stopping ? STR("{\"status\":\"stopping\"}\n") : STR("{\"status\":\"ok\"}\n"));
}

void exchange_start(struct exchange *x)
{
    if (x->refusal.status != 0) {
        exchange_refuse(x, NULL, &x->refusal);
        return;
    }
    struct err e;
    if (body_close(&x->body, &e) < 0) {
        refuse_later(x);
        exchange_refuse(x, NULL, &x->refusal);
        return;
    }
    x->view.client_body = body_str(&x->body);
    switch (x->kind) {
    case EXCHANGE_HEALTH:
        answer_health(x);
        break;
    case EXCHANGE_METRICS:
        answer_metrics(x);
        break;
    case EXCHANGE_PROXY:
    case EXCHANGE_TUNNEL:
        tunnel_start(x);
        break;
    case EXCHANGE_MODEL:
    case EXCHANGE_MOUNT:
        attempt_begin(x);
        break;
    case EXCHANGE_UNKNOWN:
        break;
    }
}
