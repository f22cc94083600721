/* SPDX-License-Identifier: MIT
 *
 * Life of an account, and the budget as a filter; see account.h.
 */
#include "gateway/account.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "gateway/account_priv.h"
#include "llm/codec.h"

struct account *account_new(const struct account_opts *o)
{
    struct account *acc = xcalloc(1, sizeof *acc);
    acc->opts = *o;
    acc->random = o->seed;
    acc->exceeded = BUDGET_NONE;
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

const struct upstream *account_troubled(const struct account *acc)
{
    return acc->troubled;
}

const char *account_trouble_text(const struct account *acc)
{
    return acc->trouble_text;
}

enum budget_kind account_exceeded(const struct account *acc)
{
    return acc->exceeded;
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

bool account_counts(const struct llm_endpoint *ep)
{
    return ep->call == LLM_CALL_GENERATE || ep->call == LLM_CALL_EMBED ||
           ep->call == LLM_CALL_COMPLETE;
}

bool account_is_call(const struct exchange_view *x)
{
    return account_counts(&x->client);
}

bool account_refused_above(const struct http_fields *fields)
{
    return fields != NULL && http_find(fields, REFUSAL_FIELD) != NULL;
}

/* --- the budget --- */

/* The size of a body is a rough measure: an image is long and costs little. And an answer must have
 * room for the thoughts that the request asks for. Both are looked up only when the request does
 * not simply fit: it costs reading the whole of it. */
static void look_closer(const struct account *acc, const struct exchange_view *x,
                        struct budget_ask *ask)
{
    CLEANUP(arena) struct arena *a = arena_new();
    struct llm_request request;
    if (x->client.call != LLM_CALL_GENERATE ||
        llm_request_read(a, &x->client, x->client_body, &request, NULL) < 0) {
        return;
    }
    int64_t tokens = llm_estimate_tokens(&request);
    int64_t thoughts = x->client.format == LLM_ANTHROPIC ? request.reasoning.budget : 0;
    bool smaller = tokens > 0 && tokens < ask->input && !acc->opts.prompt_bytes;
    ask->input = smaller ? tokens : ask->input;
    ask->floor = thoughts > 0 && thoughts < INT64_MAX ? thoughts + 1 : 0;
}

/* Only where money is counted: it costs a look at the whole body. */
static bool asks_long_cache(const struct account *acc, const struct exchange_view *x)
{
    struct str body = x->client_body;
    return acc->opts.limits.cost > 0 && x->client.format == LLM_ANTHROPIC &&
           str_find(body, STR("\"1h\"")) < body.len;
}

/* What the filter knows of one exchange. */
struct reservation {
    struct reservation *next;
    uint64_t exchange;
    struct budget_ask ask;
    struct price_entry dearest; /* that `ask` may point to */
    struct budget_claim claim;
    struct meter_reserved lost; /* charged for attempts that were sent and never answered */
    bool moved;                 /* it was for an upstream that failed: the next needs its own */
    bool again;                 /* the call was counted then */
};

bool account_limits_usage(const struct account *acc)
{
    const struct budget_limits *l = &acc->opts.limits;
    return l->input > 0 || l->output > 0 || l->total > 0 || l->cost > 0;
}

static int64_t times(int64_t count, int64_t price)
{
    int64_t product;
    return __builtin_mul_overflow(count, price, &product) ? INT64_MAX : product;
}

static struct budget_ask ask_of(struct account *acc, const struct exchange_view *x,
                                struct price_entry *dearest)
{
    struct price_match match = { 0 };
    struct budget_ask ask = { .input = acc->opts.prompt_bytes ? (int64_t)x->body_len : x->estimate,
                              .output = x->max_output,
                              .choices = x->choices,
                              .model = x->upstream_model };
    if (price_recall(&acc->memo, acc->opts.prices, x->upstream_model, &match)) {
        *dearest = price_on(match.entry, &x->terms);
        if (asks_long_cache(acc, x)) {
            dearest->base.cache_write = dearest->base.cache_write_long;
            for (size_t i = 0; i < PRICE_STEPS; i++) {
                struct price *step = &dearest->steps[i].price;
                step->cache_write = step->cache_write_long;
            }
        }
        if (acc->opts.limits.cost > 0 && dearest->search > 0) {
            ask.fees = times(account_searches(x), dearest->search);
        }
        ask.price = dearest;
    }
    return ask;
}

static enum budget_verdict reserve(struct account *acc, const struct exchange_view *x,
                                   struct reservation *r)
{
    nsec now = account_now(acc);
    r->ask = ask_of(acc, x, &r->dearest);
    r->ask.again = r->again;
    if (!budget_fits(&acc->budget, &r->ask, now)) {
        look_closer(acc, x, &r->ask);
    }
    return budget_reserve(&acc->budget, &r->ask, now, &r->claim);
}

/* For another attempt: the request cannot be cut down any more. */
static enum budget_verdict reserve_again(struct account *acc, struct reservation *r)
{
    struct budget_ask ask = r->ask;
    int64_t output = r->claim.output;
    ask.again = true;
    ask.output = ask.floor = output;
    enum budget_verdict verdict = budget_reserve(&acc->budget, &ask, account_now(acc), &r->claim);
    r->claim.output = output; /* for the next time, should this have to wait */
    return verdict;
}

static void report_refusal(struct account *acc, const struct exchange_view *x,
                           const struct account_refused *refused)
{
    acc->exceeded = acc->exceeded == BUDGET_NONE ? refused->why : acc->exceeded;
    if (acc->opts.port.on_refused != NULL) {
        acc->opts.port.on_refused(acc->opts.port.arg, x, refused);
    }
}

static void refuse(struct account *acc, const struct exchange_view *x,
                   const struct budget_claim *claim, struct filter_answer *ret)
{
    char text[BUDGET_TEXT];
    ret->verdict = FILTER_REFUSE;
    ret->reason = refusal_reason(claim->why);
    ret->limit = budget_kind_word(claim->why);
    refusal_error(x->client.format, claim, acc->text, &ret->error);
    if (acc->trouble != ACCOUNT_BUDGET) {
        acc->trouble = claim->why == BUDGET_TIME ? ACCOUNT_DEADLINE : ACCOUNT_BUDGET;
    }
    report_refusal(
        acc, x,
        &(struct account_refused) { .why = claim->why, .text = budget_describe(claim, text) });
}

/* What no limit can hold: nobody would ever know what it cost. */
static const char *why_unmeterable(const struct exchange_view *x)
{
    if (x->background) {
        return "A response in the background reports no usage, so it cannot be held to the budget. "
               "Send the request without 'background'.";
    }
    if (x->prediction) {
        return "The rejected part of a predicted output is billed beyond the output limit, so it "
               "cannot be held to the budget. Send the request without 'prediction'.";
    }
    if (x->choices < 0) {
        return "The number of responses (n, best_of, candidateCount) is not a whole number above "
               "0, so the request cannot be held to the budget.";
    }
    return NULL;
}

static bool refuse_unmeterable(const struct account *acc, const struct exchange_view *x,
                               struct filter_answer *ret)
{
    const char *why = account_limits_usage(acc) ? why_unmeterable(x) : NULL;
    if (why != NULL) {
        ret->verdict = FILTER_REFUSE;
        ret->error = (struct llm_error) { .kind = LLM_ERR_INVALID,
                                          .status = REFUSAL_STATUS,
                                          .message = str_of(why) };
    }
    return why != NULL;
}

static void answer_verdict(struct account *acc, const struct exchange_view *x,
                           enum budget_verdict verdict, const struct budget_claim *claim,
                           struct filter_answer *ret)
{
    switch (verdict) {
    case BUDGET_REFUSED:
        refuse(acc, x, claim, ret);
        break;
    case BUDGET_WAIT:
        ret->verdict = FILTER_WAIT;
        ret->delay = FILTER_WHEN_FREE;
        break;
    case BUDGET_GRANTED:
        break;
    }
}

static bool is_held(const struct account *acc, const struct exchange_view *x,
                    struct filter_answer *ret)
{
    const struct account_port *port = &acc->opts.port;
    nsec delay = port->hold == NULL ? 0 : port->hold(port->arg, x);
    if (delay > 0) {
        ret->verdict = FILTER_WAIT;
        ret->delay = delay;
    }
    return delay > 0;
}

static void on_request(void *arg, const struct exchange_view *x, void **slot,
                       struct filter_answer *ret)
{
    struct account *acc = arg;
    struct reservation *kept = *slot;
    struct reservation r = { .again = kept != NULL && kept->again };
    if (!account_is_call(x) || (kept != NULL && !kept->moved) || is_held(acc, x, ret) ||
        refuse_unmeterable(acc, x, ret)) {
        return;
    }
    enum budget_verdict verdict = reserve(acc, x, &r);
    answer_verdict(acc, x, verdict, &r.claim, ret);
    if (verdict == BUDGET_GRANTED) {
        if (kept == NULL) {
            kept = xcalloc(1, sizeof *kept);
            kept->exchange = x->id;
            kept->next = acc->reservations;
            acc->reservations = kept;
        }
        kept->ask = r.ask;
        kept->dearest = r.dearest;
        kept->claim = r.claim;
        kept->moved = false;
        kept->ask.price = r.ask.price == NULL ? NULL : &kept->dearest;
        *slot = kept;
        ret->max_output = r.claim.cut ? r.claim.output : 0;
        ret->needs_usage = account_limits_usage(acc);
    }
}

static void on_attempt(void *arg, const struct exchange_view *x, void **slot,
                       struct filter_answer *ret)
{
    struct account *acc = arg;
    struct reservation *r = *slot;
    if (r != NULL && !r->claim.open) {
        enum budget_verdict verdict = reserve_again(acc, r);
        answer_verdict(acc, x, verdict, &r->claim, ret);
    }
}

/* --- charging --- */

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t prompt_of(const struct llm_usage *u)
{
    struct llm_usage prompt = *u;
    prompt.output = 0;
    return llm_usage_total(&prompt);
}

static bool reports_prompt(const struct llm_usage *u)
{
    return u->input >= 0 || u->cache_read >= 0 || u->cache_write >= 0;
}

/* A response with its frames has rather less tokens than this. */
static int64_t tokens_seen(const struct filter_done *d)
{
    enum { BYTES_PER_TOKEN = 3 };
    return (int64_t)((d->received > d->bytes_out ? d->received : d->bytes_out) / BYTES_PER_TOKEN);
}

static int64_t cost_of(struct account *acc, const struct exchange_view *x,
                       const struct llm_usage *u)
{
    struct price_match match;
    if (!price_recall(&acc->memo, acc->opts.prices, x->upstream_model, &match)) {
        return 0;
    }
    struct price_entry on = price_on(match.entry, &x->terms);
    return price_cost(&on, u);
}

/* All that was reserved, and never less than is known to be used. */
static void charge_reservation(struct account *acc, const struct exchange_view *x,
                               const struct reservation *r, const struct filter_done *d,
                               struct account_bill *ret)
{
    const int64_t *amount = r->claim.amount;
    int64_t prompt = prompt_of(&d->usage);
    ret->estimated = true;
    ret->usage = d->usage;
    ret->usage.output = -1;
    ret->usage.reasoning = -1;
    ret->reserved.input = most(amount[BUDGET_INPUT] - prompt, 0);
    ret->reserved.output = most(most(amount[BUDGET_OUTPUT], d->usage.output), 0);
    ret->reserved.cost =
        most(amount[BUDGET_COST], cost_of(acc, x, &d->usage)) - cost_of(acc, x, &ret->usage);
}

/* Nothing is limited, and nobody said how much the response could be. */
static void estimate(const struct exchange_view *x, const struct filter_done *d,
                     struct account_bill *ret)
{
    int64_t seen = tokens_seen(d);
    seen = x->max_output > 0 && seen > x->max_output ? x->max_output : seen;
    ret->usage = d->usage;
    ret->usage.input = reports_prompt(&d->usage) ? d->usage.input : x->estimate;
    ret->usage.output = most(seen, d->usage.output);
    ret->estimated = true;
}

static struct account_bill bill_of(struct account *acc, const struct exchange_view *x,
                                   const struct reservation *r, const struct filter_done *d)
{
    struct account_bill bill = { .usage = LLM_USAGE_NONE };
    bool answered = d->answered >= 200 && d->answered < 300 && !d->rejected;
    bool lost = d->answered == 0 && d->sent && (d->cancelled || account_limits_usage(acc));
    if (!answered && !lost) {
        bill.usage = d->usage;
    } else if (d->ended && d->usage.output >= 0) {
        bill.usage = d->usage;
        if (!reports_prompt(&bill.usage)) {
            bill.usage.input = r->claim.amount[BUDGET_INPUT];
            bill.estimated = true;
        }
    } else if (account_limits_usage(acc) || (!d->ended && r->ask.output > 0)) {
        charge_reservation(acc, x, r, d, &bill);
    } else {
        estimate(x, d, &bill);
    }
    return bill;
}

static void settle(struct account *acc, const struct exchange_view *x, struct reservation *r,
                   const struct account_bill *bill)
{
    struct llm_usage total = bill->usage;
    total.input = plus(most(total.input, 0), bill->reserved.input);
    total.output = plus(most(total.output, 0), bill->reserved.output);
    budget_settle(&acc->budget, &r->claim, &total,
                  plus(cost_of(acc, x, &bill->usage), bill->reserved.cost));
}

static void add_lost(struct meter_reserved *to, const struct meter_reserved *lost)
{
    to->input = plus(to->input, lost->input);
    to->output = plus(to->output, lost->output);
    to->cost = plus(to->cost, lost->cost);
}

/* The request left and no answer came: it may be worked on, and be billed. */
static void charge_lost(struct account *acc, const struct exchange_view *x, struct reservation *r)
{
    struct account_bill bill = { 0 };
    const struct filter_done nothing = { .usage = LLM_USAGE_NONE };
    charge_reservation(acc, x, r, &nothing, &bill);
    settle(acc, x, r, &bill);
    add_lost(&r->lost, &bill.reserved);
}

/* Another gateway, our upstream, refused for its own budget: what it says is passed on. */
static void refused_above(struct account *acc, const struct exchange_view *x,
                          const struct filter_outcome *o)
{
    CLEANUP(arena) struct arena *a = arena_new();
    CLEANUP(buf) struct buf text = BUF_INIT(BUF_TEXT);
    const struct str *reason = http_find(o->fields, REFUSAL_FIELD);
    const struct str *limit = http_find(o->fields, REFUSAL_LIMIT_FIELD);
    struct llm_error error;
    llm_error_read(a, x->request->endpoint.format, o->status, o->body, &error);
    buf_addf(&text, "upstream gateway '%s': %.*s", x->upstream->name,
             STR_ARG(str_slice(error.message, 0, REFUSAL_TEXT)));
    acc->trouble = str_eqc(*reason, "deadline") ? ACCOUNT_DEADLINE : ACCOUNT_BUDGET;
    report_refusal(
        acc, x,
        &(struct account_refused) { .why = limit == NULL ? BUDGET_NONE : budget_kind_of(*limit),
                                    .above = true,
                                    .text = text.ptr });
}

static void on_answer(void *arg, const struct exchange_view *x, void **slot,
                      const struct filter_outcome *o, struct filter_answer *ret)
{
    struct account *acc = arg;
    struct reservation *r = *slot;
    if (r == NULL) {
        return;
    }
    if (o->error != NULL && o->sent && account_limits_usage(acc)) {
        charge_lost(acc, x, r);
        return;
    }
    if (!account_refused_above(o->fields)) {
        return;
    }
    refused_above(acc, x, o);
}

/* What the failed upstream may bill is charged at its price; the rest is free for the next one. */
static void on_switch(void *arg, const struct exchange_view *x, void **slot)
{
    struct account *acc = arg;
    struct reservation *r = *slot;
    if (r == NULL || r->moved) {
        return;
    }
    r->again = r->again || !r->claim.open;
    budget_release(&acc->budget, &r->claim);
    r->moved = true;
    const struct meter_call call = { .model = x->upstream_model,
                                     .upstream = str_of(x->upstream->name),
                                     .usage = LLM_USAGE_NONE,
                                     .reserved = r->lost,
                                     .terms = x->terms,
                                     .local = x->upstream->local,
                                     .attempts = x->attempt - x->earlier,
                                     .moved = true };
    (void)meter_add(acc->meter, &call);
    r->lost = (struct meter_reserved) { 0 };
}

bool account_reserved(struct account *acc, const struct exchange_view *x,
                      struct meter_reserved *ret)
{
    const struct reservation *r = acc->reservations;
    while (r != NULL && r->exchange != x->id) {
        r = r->next;
    }
    if (r == NULL) {
        return false;
    }
    struct llm_usage prompt = LLM_USAGE_NONE;
    prompt.input = r->claim.amount[BUDGET_INPUT];
    *ret = (struct meter_reserved) { .input = prompt.input, .cost = cost_of(acc, x, &prompt) };
    if (account_limits_usage(acc) || r->ask.output > 0) {
        ret->output = r->claim.amount[BUDGET_OUTPUT];
        ret->cost = r->claim.amount[BUDGET_COST];
    }
    add_lost(ret, &r->lost);
    ret->cost = r->ask.price == NULL ? -1 : ret->cost;
    return true;
}

static void free_reservation(struct account *acc, struct reservation *r)
{
    struct reservation **at = &acc->reservations;
    while (*at != r) {
        at = &(*at)->next;
    }
    *at = r->next;
    free(r);
}

static void on_done(void *arg, const struct exchange_view *x, void **slot,
                    const struct filter_done *d)
{
    struct account *acc = arg;
    struct reservation *r = *slot;
    acc->billed = 0;
    if (r == NULL) {
        return;
    }
    if (d->attempts == 0) {
        budget_release(&acc->budget, &r->claim);
    } else {
        acc->bill = (struct account_bill) { .usage = LLM_USAGE_NONE };
        if (r->claim.open) {
            acc->bill = bill_of(acc, x, r, d);
            settle(acc, x, r, &acc->bill);
        }
        add_lost(&acc->bill.reserved, &r->lost);
        acc->bill.estimated = acc->bill.estimated || r->lost.input > 0;
        acc->billed = x->id;
    }
    free_reservation(acc, r);
    *slot = NULL;
}

struct filter account_budget_filter(struct account *acc)
{
    return (struct filter) { .name = "budget",
                             .arg = acc,
                             .on_request = on_request,
                             .on_attempt = on_attempt,
                             .on_answer = on_answer,
                             .on_switch = on_switch,
                             .on_done = on_done };
}
