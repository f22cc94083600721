/* SPDX-License-Identifier: MIT
 *
 * The throttle as a filter: waiting for a place, and trying again what failed for a while.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "gateway/account_priv.h"
#include "llm/codec.h"

/* What the filter knows of one exchange. */
struct passage {
    struct throttle *gate;
    struct throttle_call call;
    bool inside;
};

static struct throttle *gate_of(struct account *acc, const struct upstream *up)
{
    size_t i = 0;
    while (i < acc->n_gates && acc->gates[i].upstream != up) {
        i++;
    }
    if (i == acc->n_gates) {
        if (i == ACCOUNT_UPSTREAMS_MAX) {
            return &acc->gates[i - 1].throttle;
        }
        acc->n_gates++;
        acc->gates[i].upstream = up;
        throttle_init(&acc->gates[i].throttle, &acc->opts.throttle);
    }
    return &acc->gates[i].throttle;
}

/* splitmix64: the jitter needs spread, not secrecy. */
static uint64_t next_random(struct account *acc)
{
    uint64_t z = acc->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void refuse(const struct throttle_signal *signal, struct filter_answer *ret)
{
    bool limited = signal->kind == THROTTLE_RATE_LIMIT;
    ret->verdict = FILTER_REFUSE;
    ret->retry_after = signal->retry_after;
    ret->error = (struct llm_error) {
        .kind = limited ? LLM_ERR_RATE : LLM_ERR_OVERLOADED,
        .status = limited ? 429 : 503,
        .message = limited ? STR("The provider asked for a longer pause than calls may wait.")
                           : STR("The provider keeps failing and is left alone for a while."),
    };
}

/* A budget that was used up stays the reason, whatever happens to other calls. */
static void note(struct account *acc, const struct exchange_view *x, enum account_trouble trouble,
                 const char *text)
{
    if (account_is_call(x) && acc->trouble != ACCOUNT_BUDGET && acc->trouble != ACCOUNT_DEADLINE) {
        acc->trouble = trouble;
        acc->troubled = trouble == ACCOUNT_FINE ? NULL : x->upstream;
        if (text != NULL) {
            (void)snprintf(acc->trouble_text, sizeof acc->trouble_text, "%s", text);
        }
    }
}

static void on_attempt(void *arg, const struct exchange_view *x, void **slot,
                       struct filter_answer *ret)
{
    struct account *acc = arg;
    struct passage *p = *slot;
    struct throttle_gate gate;
    if (p == NULL) {
        p = *slot = xcalloc(1, sizeof *p);
        p->gate = gate_of(acc, x->upstream);
    }
    if (p->inside) {
        return;
    }
    nsec now = account_now(acc);
    switch (throttle_enter(p->gate, now, &gate)) {
    case THROTTLE_GO:
        p->inside = true;
        break;
    case THROTTLE_LATER:
        ret->verdict = FILTER_WAIT;
        ret->delay = gate.until == THROTTLE_WHEN_FREE ? FILTER_WHEN_FREE : gate.until - now;
        break;
    case THROTTLE_REFUSED: /* the text of the failure before it stays */
        if (x->fallback) {
            ret->verdict = FILTER_SWITCH;
            break;
        }
        note(acc, x,
             gate.signal.kind == THROTTLE_RATE_LIMIT ? ACCOUNT_RATE_LIMITED : ACCOUNT_UNREACHABLE,
             NULL);
        refuse(&gate.signal, ret);
        break;
    }
}

static struct throttle_signal signal_of_error(const struct upstream_error *error)
{
    switch (error->kind) {
    case UPSTREAM_CONNECT:
    case UPSTREAM_TIMEOUT:
    case UPSTREAM_CUT:
        return (struct throttle_signal) { THROTTLE_TIMEOUT, error->retry_after, true };
    case UPSTREAM_TLS:
    case UPSTREAM_BROKEN:
    case UPSTREAM_REFUSED:
        break;
    }
    return THROTTLE_NO_SIGNAL;
}

static nsec retry_after_of(const struct http_fields *fields)
{
    const struct str *ms = http_find(fields, "retry-after-ms");
    const struct str *plain = http_find(fields, "retry-after");
    nsec t = ms == NULL ? THROTTLE_UNSAID : throttle_retry_after(*ms, true, clock_wall());
    if (t == THROTTLE_UNSAID && plain != NULL) {
        t = throttle_retry_after(*plain, false, clock_wall());
    }
    return t;
}

/* Gemini says it in the body: {error: {details: [{retryDelay: "34.5s"}]}}. */
static nsec retry_delay_of(struct arena *a, struct str body)
{
    struct json *doc;
    int64_t delay;
    if (json_parse(a, body, NULL, &doc, NULL) < 0) {
        return THROTTLE_UNSAID;
    }
    const struct json *details = json_pointer(doc, STR("/error/details"));
    for (size_t i = 0; i < json_len(details); i++) {
        const struct json *v = json_get(json_item(details, i), "retryDelay");
        if (json_is(v, JSON_STRING) && str_to_duration(v->string, &delay)) {
            return delay;
        }
    }
    return THROTTLE_UNSAID;
}

static struct throttle_signal signal_of_answer(const struct exchange_view *x,
                                               const struct filter_outcome *o,
                                               enum account_trouble *ret_trouble)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct llm_error error;
    llm_error_read(a, x->request->endpoint.format, o->status, o->body, &error);
    if (error.kind == LLM_ERR_AUTH || error.kind == LLM_ERR_PERMISSION) {
        *ret_trouble = ACCOUNT_AUTH;
    }
    nsec wait = retry_after_of(o->fields);
    if (wait == THROTTLE_UNSAID && x->request->endpoint.format == LLM_GEMINI) {
        wait = retry_delay_of(a, o->body);
    }
    struct throttle_signal signal = throttle_signal_of(&error, wait);
    const struct str *advice = http_find(o->fields, "x-should-retry");
    signal.retry_safe = signal.retry_safe && (advice == NULL || !str_eqc(*advice, "false"));
    return signal;
}

static enum account_trouble trouble_of(const struct throttle_signal *signal)
{
    switch (signal->kind) {
    case THROTTLE_NONE:
        break;
    case THROTTLE_RATE_LIMIT:
    case THROTTLE_QUOTA_EXHAUSTED:
        return ACCOUNT_RATE_LIMITED;
    case THROTTLE_TIMEOUT:
    case THROTTLE_SERVER_ERROR:
        return ACCOUNT_UNREACHABLE;
    }
    return ACCOUNT_FINE;
}

static void tell(struct account *acc, const struct exchange_view *x,
                 const struct throttle_signal *signal, int attempts, nsec delay)
{
    if (acc->opts.port.on_throttled != NULL && signal->kind != THROTTLE_NONE) {
        struct account_throttled t = { signal, attempts, delay };
        acc->opts.port.on_throttled(acc->opts.port.arg, x, &t);
    }
}

/* Another upstream may do better: this one did not answer, is overloaded, does not accept our
 * credential or does not know the model. What is wrong with the request itself would fail there,
 * too. */
static bool is_worth_a_switch(const struct exchange_view *x, const struct filter_outcome *o,
                              const struct throttle_signal *signal)
{
    if (!x->fallback || x->upstream->recorded || account_refused_above(o->fields)) {
        return false;
    }
    if (o->error != NULL) {
        return o->error->kind != UPSTREAM_REFUSED;
    }
    return signal->kind != THROTTLE_NONE || o->status >= 500 || o->status == 401 ||
           o->status == 402 || o->status == 403 || o->status == 404;
}

/* An upstream that has a fallback gets one more try, and only soon. */
static struct throttle_policy policy_for(const struct account *acc, const struct exchange_view *x)
{
    struct throttle_policy p = acc->opts.throttle;
    if (x->fallback) {
        p.max_attempts = p.max_attempts > 2 ? 2 : p.max_attempts;
        p.total = p.total > 5 * NSEC_PER_SEC ? 5 * NSEC_PER_SEC : p.total;
    }
    return p;
}

static void on_answer(void *arg, const struct exchange_view *x, void **slot,
                      const struct filter_outcome *o, struct filter_answer *ret)
{
    struct account *acc = arg;
    struct passage *p = *slot;
    enum account_trouble trouble = ACCOUNT_FINE;
    struct throttle_signal signal = THROTTLE_NO_SIGNAL;
    if (o->error != NULL) {
        signal = signal_of_error(o->error);
        trouble = o->error->kind == UPSTREAM_REFUSED ? ACCOUNT_FINE : ACCOUNT_UNREACHABLE;
    } else if (o->status >= 400 && !account_refused_above(o->fields)) {
        signal = signal_of_answer(x, o, &trouble);
    }
    char failure[sizeof acc->trouble_text];
    const char *text = NULL;
    if (o->error != NULL || o->status >= 400) {
        (void)snprintf(failure, sizeof failure, "upstream '%s': %s", x->upstream->name,
                       o->error != NULL ? o->error->message : http_reason(o->status));
        text = failure;
    }
    nsec now = account_now(acc);
    nsec delay;
    struct throttle_moment at = { now, acc->budget.deadline, next_random(acc) };
    throttle_report(p->gate, &signal, now);
    const struct throttle_policy policy = policy_for(acc, x);
    bool worth = is_worth_a_switch(x, o, &signal);
    if (signal.kind == THROTTLE_NONE || x->upstream->recorded) {
        note(acc, x, trouble, text);
    } else if (throttle_again(&policy, &p->call, &signal, &at, &delay)) {
        ret->verdict = FILTER_WAIT;
        ret->delay = delay;
        tell(acc, x, &signal, p->call.attempts, delay);
    } else {
        note(acc, x, trouble_of(&signal), text);
        tell(acc, x, &signal, p->call.attempts, -1);
    }
    if (worth && ret->verdict == FILTER_PASS) {
        ret->verdict = FILTER_SWITCH;
    }
}

static void on_switch(void *arg, const struct exchange_view *x, void **slot)
{
    struct passage *p = *slot;
    if (p != NULL && p->inside) {
        throttle_leave(p->gate);
    }
    free(p);
    *slot = NULL;
}

static void on_done(void *arg, const struct exchange_view *x, void **slot,
                    const struct filter_done *d)
{
    on_switch(arg, x, slot);
}

struct filter account_throttle_filter(struct account *acc)
{
    return (struct filter) { .name = "throttle",
                             .arg = acc,
                             .on_attempt = on_attempt,
                             .on_answer = on_answer,
                             .on_switch = on_switch,
                             .on_done = on_done };
}
