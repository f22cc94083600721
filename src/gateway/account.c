/* SPDX-License-Identifier: MIT
 *
 * Life of an account, and the budget as a filter; see account.h.
 */
#include "gateway/account.h"

#include <stdlib.h>

#include "base/arena.h"
#include "gateway/account_priv.h"
#include "llm/codec.h"

struct account *account_new(const struct account_opts *o)
{
    struct account *acc = xcalloc(1, sizeof *acc);
    acc->opts = *o;
    acc->random = o->seed;
    acc->meter = meter_new(o->prices);
    budget_init(&acc->budget, &o->limits);
    return acc;
}

struct account *account_free(struct account *acc)
{
    if (acc != NULL) {
        acc->meter = meter_free(acc->meter);
        free(acc);
    }
    return NULL;
}

const struct budget *account_budget(const struct account *acc)
{
    return &acc->budget;
}

const struct meter *account_meter(const struct account *acc)
{
    return acc->meter;
}

enum account_trouble account_trouble(const struct account *acc)
{
    return acc->trouble;
}

struct budget_left account_left(const struct account *acc)
{
    return budget_left(&acc->budget, account_now(acc));
}

void account_set_deadline(struct account *acc, nsec started, nsec deadline)
{
    acc->budget.started = started;
    acc->budget.deadline = deadline;
}

nsec account_now(const struct account *acc)
{
    return acc->opts.now != NULL ? acc->opts.now() : clock_now();
}

bool account_is_call(const struct exchange_view *x)
{
    return x->client.call == LLM_CALL_GENERATE;
}

bool account_refused_above(const struct http_fields *fields)
{
    return fields != NULL && http_find(fields, REFUSAL_FIELD) != NULL;
}

struct llm_usage account_usage(const struct exchange_view *x, const struct filter_done *d,
                               int64_t most, bool *ret_estimated)
{
    enum { BYTES_PER_TOKEN = 3 }; /* of an answer with its frames: rather too many tokens */
    struct llm_usage u = d->usage;
    *ret_estimated = false;
    if (!d->served || d->status >= 400) {
        return u;
    }
    if (u.input < 0 && u.cache_read < 0 && u.cache_write < 0) {
        u.input = x->estimate;
        *ret_estimated = true;
    }
    if (u.output < 0 || (!d->complete && u.output == 0)) {
        int64_t guess = (int64_t)(d->bytes_out / BYTES_PER_TOKEN);
        u.output = most > 0 && guess > most ? most : guess;
        *ret_estimated = true;
    }
    return u;
}

/* --- the budget --- */

/* The size of a body is a rough measure: an image is long and costs little. And an answer must have
 * room for the thoughts that the request asks for. Both are looked up only when the request does
 * not simply fit: it costs reading the whole of it. */
static void look_closer(const struct exchange_view *x, struct budget_ask *ask)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct llm_request request;
    if (llm_request_read(a, &x->client, x->client_body, &request, NULL) < 0) {
        return;
    }
    int64_t tokens = llm_estimate_tokens(&request);
    int64_t thoughts = x->client.format == LLM_ANTHROPIC ? request.reasoning.budget : 0;
    ask->input = tokens > 0 && tokens < ask->input ? tokens : ask->input;
    ask->floor = thoughts > 0 && thoughts < INT64_MAX ? thoughts + 1 : 0;
}

/* Only where money is counted: it costs a look at the whole body. */
static bool asks_long_cache(const struct account *acc, const struct exchange_view *x)
{
    struct str body = x->client_body;
    return acc->opts.limits.cost > 0 && x->client.format == LLM_ANTHROPIC &&
           str_find(body, STR("\"1h\"")) < body.len;
}

static enum budget_verdict reserve(struct account *acc, const struct exchange_view *x,
                                   struct budget_claim *ret)
{
    nsec now = account_now(acc);
    struct price_match match = { 0 };
    struct price_entry dearest;
    struct budget_ask ask = { .input = x->estimate, .output = x->max_output };
    if (price_recall(&acc->memo, acc->opts.prices, x->upstream_model, &match)) {
        dearest = *match.entry;
        if (asks_long_cache(acc, x)) {
            dearest.base.cache_write = dearest.base.cache_write_long;
            dearest.high.cache_write = dearest.high.cache_write_long;
        }
        ask.price = &dearest;
    }
    if (!budget_fits(&acc->budget, &ask, now)) {
        look_closer(x, &ask);
    }
    return budget_reserve(&acc->budget, &ask, now, ret);
}

static void refuse(struct account *acc, const struct exchange_view *x, enum budget_kind why,
                   struct filter_answer *ret)
{
    ret->verdict = FILTER_REFUSE;
    ret->reason = refusal_reason(why);
    refusal_error(x->client.format, &acc->budget, why, acc->text, &ret->error);
    if (acc->trouble != ACCOUNT_BUDGET) {
        acc->trouble = why == BUDGET_TIME ? ACCOUNT_DEADLINE : ACCOUNT_BUDGET;
    }
    if (acc->opts.port.on_refused != NULL) {
        char text[BUDGET_TEXT];
        acc->opts.port.on_refused(acc->opts.port.arg, x, why,
                                  budget_describe(&acc->budget, why, text));
    }
}

static void on_request(void *arg, const struct exchange_view *x, void **slot,
                       struct filter_answer *ret)
{
    struct account *acc = arg;
    struct budget_claim claim;
    if (!account_is_call(x) || *slot != NULL) {
        return;
    }
    switch (reserve(acc, x, &claim)) {
    case BUDGET_REFUSED:
        refuse(acc, x, claim.why, ret);
        break;
    case BUDGET_WAIT:
        ret->verdict = FILTER_WAIT;
        ret->delay = FILTER_WHEN_FREE;
        break;
    case BUDGET_GRANTED:
        ret->max_output = claim.cut ? claim.output : 0;
        *slot = xmalloc(sizeof claim);
        *(struct budget_claim *)*slot = claim;
        break;
    }
}

static void on_answer(void *arg, const struct exchange_view *x, void **slot,
                      const struct filter_outcome *o, struct filter_answer *ret)
{
    struct account *acc = arg;
    if (*slot == NULL || !account_refused_above(o->fields)) {
        return;
    }
    const struct str *reason = http_find(o->fields, REFUSAL_FIELD);
    acc->trouble = str_eqc(*reason, "deadline") ? ACCOUNT_DEADLINE : ACCOUNT_BUDGET;
    if (acc->opts.port.on_refused != NULL) {
        acc->opts.port.on_refused(acc->opts.port.arg, x, BUDGET_NONE,
                                  "the gateway above has no budget left");
    }
}

static void on_done(void *arg, const struct exchange_view *x, void **slot,
                    const struct filter_done *d)
{
    struct account *acc = arg;
    struct budget_claim *claim = *slot;
    struct price_match match;
    bool estimated;
    if (claim == NULL) {
        return;
    }
    if (d->attempts == 0) {
        budget_release(&acc->budget, claim);
    } else {
        struct llm_usage u = account_usage(x, d, claim->output, &estimated);
        bool priced = price_recall(&acc->memo, acc->opts.prices, x->upstream_model, &match);
        budget_settle(&acc->budget, claim, &u, priced ? price_cost(match.entry, &u) : 0);
    }
    free(claim);
    *slot = NULL;
}

struct filter account_budget_filter(struct account *acc)
{
    return (struct filter) { .name = "budget",
                             .arg = acc,
                             .on_request = on_request,
                             .on_answer = on_answer,
                             .on_done = on_done };
}
