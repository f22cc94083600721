/* SPDX-License-Identifier: MIT
 *
 * From a complete request to an answer: routing, the filters in order, calls of the upstream, and
 * trying again while the client has seen nothing.
 *
 *   begin → filters' on_request → filters' on_attempt → upstream → filters' on_answer → the client
 *                                 ↑______________ wait ______________|
 */
#include <fnmatch.h>
#include <stdio.h>

#include "base/log.h"
#include "base/macro.h"
#include "gateway/account.h"
#include "gateway/gateway_priv.h"

/* An answer of an error is shown to the filters with this much of its body. */
#define GATHER_MAX ((size_t)64 << 10)
/* What a limit of output and include_usage add to a request, should a budget want them. */
#define LIMIT_LEN ((size_t)128)
/* Of a response whose client left. A token takes some 200 bytes of a stream. */
#define DRAIN_BYTES ((size_t)32 << 20)
#define DRAIN_TIME  (600 * NSEC_PER_SEC)
/* Who waits for others is asked again after this, come what may. */
#define WAIT_MAX (2 * NSEC_PER_SEC)

static void go_on(struct exchange *x);
static void switch_upstream(struct exchange *x, const char *why);
static const struct gateway_route *next_route(const struct exchange *x);

static void refuse(struct exchange *x, int status, enum llm_error_kind kind, const char *message)
{
    exchange_refuse(
        x, NULL, &(struct refusal) { .status = status, .kind = kind, .message = str_of(message) });
}

static void refuse_err(struct exchange *x, const struct err *e)
{
    bool unsupported = e->code == ERR_UNSUPPORTED;
    bool bad = unsupported || e->code == ERR_PARSE || e->code == ERR_LIMIT;
    refuse(x, bad ? 400 : 500, bad ? LLM_ERR_INVALID : LLM_ERR_SERVER, e->msg);
}

/* --- waiting --- */

static void on_timer(void *arg)
{
    struct exchange *x = arg;
    if (x->c == NULL) {
        exchange_finish(x, false);
        return;
    }
    attempt_cancel(x); /* out of the list, if it is in there */
    go_on(x);
}

static bool arm_timer(struct exchange *x, nsec delay, struct err *e)
{
    if (x->timer == NULL && timer_new(x->g->loop, on_timer, x, &x->timer, e) < 0) {
        return false;
    }
    timer_arm(x->timer, clock_now() + delay);
    return true;
}

bool attempt_drain(struct exchange *x)
{
    return arm_timer(x, DRAIN_TIME, NULL);
}

static void unlink_waiting(struct exchange *x)
{
    struct exchange **at = &x->g->waiting;
    while (*at != NULL && *at != x) {
        at = &(*at)->next_waiting;
    }
    if (*at == x) {
        *at = x->next_waiting;
    }
    x->next_waiting = NULL;
    x->is_waiting = false;
}

static void wait_for(struct exchange *x, nsec delay)
{
    struct err e;
    x->state = EXCHANGE_FILTERS;
    if (!arm_timer(x, delay < 0 ? WAIT_MAX : delay, &e)) {
        refuse_err(x, &e);
        return;
    }
    if (delay < 0) {
        struct exchange **at = &x->g->waiting;
        while (*at != NULL) {
            at = &(*at)->next_waiting;
        }
        *at = x;
        x->is_waiting = true;
    }
}

void attempt_wake(struct exchange *x)
{
    timer_cancel(x->timer);
    go_on(x);
}

void attempt_cancel(struct exchange *x)
{
    if (x->timer != NULL) {
        timer_cancel(x->timer);
    }
    if (x->is_waiting) {
        unlink_waiting(x);
    }
    if (x->call != NULL) {
        x->upstream->ops->cancel(TAKE_PTR(x->call));
    }
}

/* --- the answer of the upstream --- */

static void on_failed_attempt(struct exchange *x, const struct filter *f,
                              const struct filter_outcome *o, nsec delay)
{
    x->g->metrics.retries++;
    gateway_tell(x->g, &(struct gateway_event) {
                           .kind = GATEWAY_RETRY,
                           .view = &x->view,
                           .status = o->status,
                           .why = o->error != NULL ? o->error->message : http_reason(o->status),
                           .filter = f->name,
                           .delay = delay,
                       });
    attempt_cancel(x);
    x->sent = false;
    x->next_filter = 0;
    gateway_wake(x->g);
    wait_for(x, delay);
}

/* For people: what an attempt came to. */
static const char *failure_of(const struct exchange *x, const struct filter_outcome *o)
{
    return arena_printf(x->arena, "%s",
                        o->error != NULL ? o->error->message : http_reason(o->status));
}

/* Asks the filters about it. False: there will be another attempt. */
static bool judge(struct exchange *x, const struct upstream_error *error)
{
    const struct filter_outcome o = {
        .status = error == NULL ? x->status : 0,
        .fields = error == NULL ? &x->answer_fields : NULL,
        .body = buf_str(&x->gathered),
        .error = error,
        .sent = error != NULL && x->sent,
    };
    for (size_t i = 0; i < x->passed; i++) {
        const struct filter *f = &x->g->opts.filters[i];
        struct filter_answer a = { .verdict = FILTER_PASS };
        if (f->on_answer == NULL) {
            continue;
        }
        f->on_answer(f->arg, &x->view, &x->slots[i], &o, &a);
        if (a.verdict == FILTER_WAIT) {
            on_failed_attempt(x, f, &o, a.delay < 0 ? 0 : a.delay);
            return false;
        }
        if (a.verdict == FILTER_SWITCH && next_route(x) != NULL) {
            switch_upstream(x, failure_of(x, &o));
            return false;
        }
    }
    x->done.served = error == NULL;
    return true;
}

static void deliver_head(struct exchange *x)
{
    if (x->sent) { /* there will be no further attempt */
        x->request.body = STR_EMPTY;
        exchange_drop_body(x);
        body_done(&x->sending);
    }
    struct buf gathered = x->gathered;
    buf_init(&x->gathered, GATHER_MAX);
    if (x->translation != NULL) {
        translate_head(x);
        translate_data(x, buf_str(&gathered));
    } else {
        passthrough_head(x);
        passthrough_data(x, buf_str(&gathered));
    }
    buf_done(&gathered);
}

static void copy_fields(struct exchange *x, const struct http_fields *f)
{
    struct http_field *copy = arena_array(x->arena, f->len + 1, sizeof *copy);
    for (size_t i = 0; i < f->len; i++) {
        copy[i].name = arena_str(x->arena, f->items[i].name);
        copy[i].value = mask_text(x->arena, x->mask.secret, arena_str(x->arena, f->items[i].value));
    }
    x->answer_fields = (struct http_fields) { copy, f->len };
}

/* Nothing that is compressed can be metered, or searched for the key; and it may become any size
 * where it is unpacked. We ask for plain bytes, so no honest provider sends it. */
static bool is_encoded(const struct exchange *x)
{
    const struct str *value = http_find(&x->answer_fields, "content-encoding");
    return x->kind == EXCHANGE_MODEL && value != NULL && value->len > 0 &&
           !http_name_is(*value, "identity");
}

static void on_head(void *arg, int status, const struct http_fields *fields)
{
    struct exchange *x = arg;
    x->status = status;
    copy_fields(x, fields);
    x->encoded = is_encoded(x);
    if (x->encoded && status < 400) {
        refuse(x, 502, LLM_ERR_SERVER,
               arena_printf(x->arena,
                            "upstream '%s': the response is compressed, though the "
                            "gateway asked for plain bytes",
                            x->upstream->name));
        return;
    }
    if (x->c == NULL && status >= 400) {
        exchange_finish(x, false);
    } else if (status >= 400) {
        x->state = EXCHANGE_GATHERING;
    } else if (x->c == NULL || judge(x, NULL)) {
        deliver_head(x);
    }
}

static void on_data(void *arg, struct str bytes)
{
    struct exchange *x = arg;
    x->done.received += bytes.len;
    if (x->c == NULL && (x->drained += bytes.len) > DRAIN_BYTES) {
        exchange_finish(x, false); /* no model writes that much */
        return;
    }
    mask_feed(&x->mask, bytes);
}

static void on_clean(void *arg, struct str bytes)
{
    struct exchange *x = arg;
    if (x->encoded) {
        return; /* of an error only the status is passed on */
    }
    if (x->state == EXCHANGE_GATHERING) {
        if (x->gathered.len + bytes.len <= GATHER_MAX) {
            buf_add(&x->gathered, bytes);
            return;
        }
        if (!judge(x, NULL)) {
            return;
        }
        deliver_head(x);
    }
    if (x->translation != NULL) {
        translate_data(x, bytes);
    } else {
        passthrough_data(x, bytes);
    }
}

static void on_end(void *arg)
{
    struct exchange *x = arg;
    x->call = NULL;
    x->answer_over = true;
    mask_end(&x->mask);
    if (x->state == EXCHANGE_GATHERING) {
        if (!judge(x, NULL)) {
            return;
        }
        deliver_head(x);
    }
    if (x->state != EXCHANGE_ANSWERING) {
        return; /* refused, or the client left meanwhile */
    }
    if (x->translation != NULL) {
        translate_end(x);
    } else {
        passthrough_end(x);
    }
}

static void tell_upstream_error(struct exchange *x, const struct upstream_error *error)
{
    bool timeout = error->kind == UPSTREAM_TIMEOUT;
    bool ours = error->kind == UPSTREAM_REFUSED;
    const char *text =
        arena_printf(x->arena, "upstream '%s': %s", x->upstream->name, error->message);
    refuse(x,
           ours      ? 400
           : timeout ? 504
                     : 502,
           ours      ? LLM_ERR_INVALID
           : timeout ? LLM_ERR_TIMEOUT
                     : LLM_ERR_SERVER,
           text);
}

static void on_error(void *arg, const struct upstream_error *error)
{
    struct exchange *x = arg;
    x->call = NULL;
    x->g->metrics.upstream_errors++;
    LOG_DEBUG("gateway", "upstream_error", LOG_STR("upstream", x->upstream->name),
              LOG_STR("why", error->message));
    if (x->c == NULL) {
        exchange_finish(x, false);
    } else if (x->state == EXCHANGE_ANSWERING) {
        if (x->translation != NULL) {
            translate_cut(x);
        } else {
            exchange_finish(x, false);
        }
    } else if (judge(x, error)) {
        tell_upstream_error(x, error);
    }
}

static void on_sent(void *arg)
{
    struct exchange *x = arg;
    x->sent = true;
    body_rest(x->sending.len > 0 ? &x->sending : &x->body);
}

/* Once, before the first attempt: what the filters made of the body is what will be sent. */
static int settle_body(struct exchange *x, struct err *e)
{
    if (x->rewritten.len == 0) {
        return 0;
    }
    int rc = body_adopt(&x->sending, &x->rewritten, e);
    x->request.body = body_str(&x->sending);
    return rc;
}

/* What is too short to be one would be found everywhere. */
static struct str secret_of(const struct exchange *x)
{
    enum { SECRET_MIN = 8 };
    return x->upstream->secret.len >= SECRET_MIN ? x->upstream->secret : STR_EMPTY;
}

/* While the upstream works, nobody waits for this. */
static void after_first_start(struct exchange *x)
{
    if (x->scanned && x->view.side == NULL) {
        x->view.side = auxiliary_kind(&x->g->side, &x->endpoint, x->view.client_body, &x->scan);
    }
    for (size_t i = 0; i < x->passed; i++) {
        const struct filter *f = &x->g->opts.filters[i];
        if (f->on_started != NULL) {
            f->on_started(f->arg, &x->view, &x->slots[i]);
        }
    }
    if (x->sending.len > 0 && next_route(x) == NULL) {
        exchange_drop_body(x);
    } else {
        body_rest(&x->body);
    }
}

static void call_upstream(struct exchange *x)
{
    const struct upstream_port port = { on_head, on_data, on_end, on_error, x, on_sent };
    struct err e;
    if (settle_body(x, &e) < 0) {
        refuse_err(x, &e);
        return;
    }
    x->sent = false;
    x->status = 0;
    mask_done(&x->mask);
    mask_init(&x->mask, secret_of(x), on_clean, x);
    x->state = EXCHANGE_CALLING;
    x->view.attempt++;
    x->request.attempt = x->view.attempt;
    buf_reset(&x->gathered);
    x->paused = false;
    if (x->upstream->ops->start(x->upstream, &x->request, &port, &x->call, &e) < 0) {
        x->call = NULL;
        x->view.attempt--;
        if (next_route(x) != NULL) {
            switch_upstream(x, arena_printf(x->arena, "%s", e.msg));
            return;
        }
        refuse(x, 502, e.code == ERR_SECRET ? LLM_ERR_AUTH : LLM_ERR_SERVER, e.msg);
    } else if (x->view.attempt == 1) {
        after_first_start(x);
    }
}

/* --- the filters on the way in --- */

static void on_refused(struct exchange *x, const struct filter *f, const struct filter_answer *a)
{
    const struct refusal r = {
        .status = a->error.status != 0 ? a->error.status : llm_error_status(a->error.kind),
        .kind = a->error.kind,
        .message = a->error.message,
        .retry_after = a->retry_after,
        .reason = a->reason,
        .limit = a->limit,
    };
    exchange_refuse(x, f->name, &r);
}

static bool limit_output(struct exchange *x, int64_t max_output)
{
    struct err e;
    int rc = x->translation != NULL ? translate_limit(x, max_output, &e)
                                    : passthrough_limit(x, max_output, &e);
    if (rc < 0) {
        refuse_err(x, &e);
    }
    return rc == 0;
}

/* A translation always asks for it; scripts and cassettes cost nothing. */
static bool ask_usage(struct exchange *x)
{
    struct err e;
    bool own = x->translation == NULL && !x->upstream->local;
    int rc = own ? passthrough_ask_usage(x, &e) : 0;
    if (rc < 0) {
        refuse_err(x, &e);
    }
    return rc == 0;
}

/* Asks one filter. True: go on to the next one. */
static bool ask(struct exchange *x, size_t i)
{
    const struct filter *f = &x->g->opts.filters[i];
    struct filter_answer a = { .verdict = FILTER_PASS };
    if (x->in_attempts && f->on_attempt != NULL) {
        f->on_attempt(f->arg, &x->view, &x->slots[i], &a);
    } else if (!x->in_attempts && f->on_request != NULL) {
        f->on_request(f->arg, &x->view, &x->slots[i], &a);
    }
    if (a.verdict == FILTER_WAIT) {
        wait_for(x, a.delay);
        return false;
    }
    if (a.verdict == FILTER_SWITCH && next_route(x) != NULL) {
        switch_upstream(x, "it is left alone for a while, after failures");
        return false;
    }
    if (a.verdict == FILTER_REFUSE) {
        on_refused(x, f, &a);
        return false;
    }
    x->passed = x->in_attempts || i < x->passed ? x->passed : i + 1;
    return (a.max_output == 0 || limit_output(x, a.max_output)) && (!a.needs_usage || ask_usage(x));
}

static bool is_filtered(const struct exchange *x)
{
    return x->kind == EXCHANGE_MODEL && account_counts(&x->endpoint);
}

static void go_on(struct exchange *x)
{
    size_t n = is_filtered(x) ? x->g->opts.n_filters : 0;
    for (int round = x->in_attempts ? 1 : 0; round < 2; round++) {
        for (; x->next_filter < n; x->next_filter++) {
            if (!ask(x, x->next_filter)) {
                return;
            }
        }
        x->next_filter = 0;
        x->in_attempts = true;
    }
    call_upstream(x);
}

/* --- the start --- */

static const struct gateway_route *find_route(const struct gateway *g, const char *model)
{
    for (size_t i = 0; i < g->opts.n_routes; i++) {
        const char *pattern = g->opts.routes[i].pattern;
        if (pattern == NULL) {
            continue; /* a fallback */
        }
        if (strcmp(pattern, "*") == 0 || fnmatch(pattern, model, 0) == 0) {
            return &g->opts.routes[i];
        }
    }
    return NULL;
}

static struct str url_decoded(struct arena *a, struct str s)
{
    char *out = arena_alloc(a, s.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned byte;
        char hex[3] = { i + 2 < s.len ? s.ptr[i + 1] : 'x', i + 2 < s.len ? s.ptr[i + 2] : 'x', 0 };
        int used = 0;
        if (s.ptr[i] == '%' && i + 2 < s.len && sscanf(hex, "%2x%n", &byte, &used) == 1 &&
            used == 2) {
            out[n++] = (char)byte;
            i += 2;
        } else {
            out[n++] = s.ptr[i];
        }
    }
    return str_n(out, n);
}

static bool find_model(struct exchange *x)
{
    if (x->endpoint.model.len > 0) {
        x->view.model = url_decoded(x->arena, x->endpoint.model);
    }
    if (x->endpoint.call == LLM_CALL_MODELS) {
        return true;
    }
    if (x->body.len == 0) {
        refuse(x, 400, LLM_ERR_INVALID, "the request has no body");
        return false;
    }
    if (!x->g->need_scan) {
        return true;
    }
    x->scanned = scan_request(body_str(&x->body), &x->scan);
    if (!x->scanned) {
        refuse(x, 400, LLM_ERR_INVALID,
               "the body is not a JSON object, or has duplicate keys or keys in another case");
        return false;
    }
    if (x->endpoint.format != LLM_GEMINI) {
        x->view.model = arena_str(x->arena, x->scan.model); /* outlives the body */
    }
    x->view.max_output = x->scan.max_output;
    return true;
}

/* Where all of the task's sampling is demanded, a request without it would be for nothing. */
static int check_sampling(const struct exchange *x, struct err *e)
{
    const struct sampling_report *s = x->view.sampling;
    return s == NULL || s->n_unsent == 0 || !x->g->opts.sampling_strict
               ? 0
               : ERR(e, ERR_UNSUPPORTED, "'agent.sampling.%s' cannot be sent: %s", s->unsent[0],
                     s->why[0]);
}

static int prepare(struct exchange *x, struct err *e)
{
    bool same = x->kind == EXCHANGE_MOUNT || x->endpoint.call == LLM_CALL_MODELS ||
                upstream_serves(x->upstream, &x->endpoint);
    if (!same && x->endpoint.call != LLM_CALL_GENERATE) {
        return ERR(e, ERR_UNSUPPORTED, "upstream '%s' has another format and no such endpoint",
                   x->upstream->name);
    }
    if (x->endpoint.call == LLM_CALL_EMBED) {
        x->view.max_output = 1; /* there is no output that could be limited */
    }
    x->view.request = &x->request;
    x->view.upstream = x->upstream;
    x->view.translated = !same;
    x->view.fallback = next_route(x) != NULL;
    /* Without messages a prompt may be a list of token ids; the shortest have two bytes. */
    size_t per_token = x->endpoint.call == LLM_CALL_GENERATE ? 3 : 2;
    x->view.estimate = (int64_t)(x->body_len / per_token) + 1;
    x->request.exchange = x->view.id;
    x->g->metrics.translated += same ? 0 : 1;
    int rc = same ? passthrough_prepare(x, e) : translate_prepare(x, e);
    x->view.body_len = x->request.body.len > x->body_len ? x->request.body.len : x->body_len;
    x->view.body_len += LIMIT_LEN;
    /* A translation asks for one response, and for one that it gets. */
    x->view.choices = same ? x->scan.choices : 1;
    x->view.background = same && x->scan.background;
    x->view.prediction = same && x->scan.prediction;
    x->view.terms = same ? x->scan.terms : (struct price_terms) { 0 };
    return rc < 0 ? rc : check_sampling(x, e);
}

/* --- fallbacks --- */

/* The next upstream of the route; NULL: there is none, or it is too late. */
static const struct gateway_route *next_route(const struct exchange *x)
{
    const struct gateway_opts *o = &x->g->opts;
    const struct gateway_route *next = x->route == NULL ? NULL : x->route + 1;
    bool possible = next != NULL && x->c != NULL && x->told_status == 0 && is_filtered(x);
    return possible && next < o->routes + o->n_routes && next->pattern == NULL ? next : NULL;
}

/* Nothing of the request as it was made for the upstream that failed. */
static void forget_request(struct exchange *x)
{
    size_t max = x->rewritten.max;
    x->translation = translation_free(x->translation);
    x->losses = NULL;
    x->asked_usage = false;
    buf_done(&x->rewritten);
    buf_init(&x->rewritten, max);
    body_done(&x->sending);
    x->view.dropped = NULL;
    x->view.sampling = NULL;
    x->view.max_output = x->scan.max_output;
    memset(x->view.edits, 0, sizeof x->view.edits);
    x->request = (struct upstream_request) { .exchange = x->view.id };
}

static void switch_upstream(struct exchange *x, const char *why)
{
    struct err e;
    int rc = -1;
    attempt_cancel(x);
    while (rc < 0 && next_route(x) != NULL) {
        for (size_t i = 0; i < x->passed; i++) {
            const struct filter *f = &x->g->opts.filters[i];
            if (f->on_switch != NULL) {
                f->on_switch(f->arg, &x->view, &x->slots[i]);
            }
        }
        size_t n = 0;
        while (n < EXCHANGE_FALLBACKS_MAX && x->view.failed[n] != NULL) {
            n++;
        }
        x->view.failed[n < EXCHANGE_FALLBACKS_MAX ? n : n - 1] = x->upstream->name;
        x->view.failure = why;
        x->view.earlier = x->view.attempt;
        x->g->metrics.fallbacks++;
        forget_request(x);
        x->route = next_route(x);
        x->upstream = x->route->upstream;
        rc = prepare(x, &e);
        why = rc < 0 ? arena_printf(x->arena, "%s", e.msg) : why;
    }
    if (rc < 0) {
        refuse_err(x, &e);
        return;
    }
    x->sent = false;
    x->next_filter = 0;
    x->in_attempts = false;
    gateway_wake(x->g);
    go_on(x);
}

static struct str path_of(struct str target)
{
    return str_split(&target, '?');
}

/* True when the gateway answers by itself. */
static bool answer_here(struct exchange *x)
{
    bool same = upstream_serves(x->upstream, &x->endpoint);
    if (account_counts(&x->endpoint) || (same && !x->upstream->local)) {
        return false;
    }
    if (x->endpoint.call == LLM_CALL_COUNT) {
        count_answer(x);
    } else {
        models_answer(x);
    }
    return true;
}

/* Files, batches, stored responses: they name no model. */
static void begin_unmetered(struct exchange *x)
{
    struct err e;
    bool spends = x->endpoint.call == LLM_CALL_BATCHES && str_eqc(x->head->method, "POST") &&
                  !str_ends(path_of(x->head->target), STR("/cancel"));
    if (spends && x->g->opts.metered) {
        refuse(x, 400, LLM_ERR_INVALID,
               "A batch reports no usage before it is done, so it cannot be held to the budget.");
        return;
    }
    const struct gateway_route *route = gateway_endpoint_route(x->g, &x->endpoint);
    if (route == NULL) {
        refuse(x, 404, LLM_ERR_NOT_FOUND, "no upstream of this gateway has this endpoint");
        return;
    }
    x->upstream = route->upstream;
    if (prepare(x, &e) < 0) {
        refuse_err(x, &e);
        return;
    }
    go_on(x);
}

void attempt_begin(struct exchange *x)
{
    struct err e;
    x->state = EXCHANGE_FILTERS;
    if (x->kind == EXCHANGE_MODEL && gateway_endpoint_group(x->endpoint.call) != 0) {
        begin_unmetered(x);
        return;
    }
    if (x->kind == EXCHANGE_MODEL) {
        if (!find_model(x)) {
            return;
        }
        const char *model = arena_dup(x->arena, x->view.model);
        bool list = x->endpoint.call == LLM_CALL_MODELS && x->view.model.len == 0;
        x->route = list && x->g->n_models == 1 ? &x->g->opts.routes[0] : find_route(x->g, model);
        if (list && (x->route == NULL || x->g->n_models > 1)) {
            models_answer(x);
            return;
        }
        if (x->route == NULL) {
            refuse(x, 404, LLM_ERR_NOT_FOUND,
                   arena_printf(x->arena, "no route for model '%.100s'", model));
            return;
        }
        x->upstream = x->route->upstream;
        if (answer_here(x)) {
            return;
        }
    }
    if (prepare(x, &e) < 0) {
        refuse_err(x, &e);
        return;
    }
    x->in_flight = is_filtered(x);
    x->g->metrics.in_flight += x->in_flight ? 1 : 0;
    go_on(x);
}
