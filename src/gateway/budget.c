/* SPDX-License-Identifier: MIT
 *
 * Reserving and settling; see budget.h. All sums saturate: numbers come from outside.
 */
#include "gateway/budget.h"

#include <inttypes.h>
#include <stdio.h>

#include "gateway/price.h"
#include "llm/event.h"

static const char *const words[] = {
    [BUDGET_INPUT] = "input_tokens", [BUDGET_OUTPUT] = "output_tokens",
    [BUDGET_TOTAL] = "total_tokens", [BUDGET_COST] = "usd",
    [BUDGET_CALLS] = "calls",        [BUDGET_TIME] = "deadline",
    [BUDGET_PRICE] = "price",        [BUDGET_NONE] = "none",
};

const char *budget_kind_word(enum budget_kind kind)
{
    return words[kind];
}

enum budget_kind budget_kind_of(struct str word)
{
    for (int k = 0; k < BUDGET_NONE; k++) {
        if (str_eqc(word, words[k])) {
            return (enum budget_kind)k;
        }
    }
    return BUDGET_NONE;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t choices_of(const struct budget_ask *ask)
{
    return ask->choices > 1 ? ask->choices : 1;
}

static int64_t said(int64_t n)
{
    return n < 0 ? 0 : n;
}

static int64_t fees_of(const struct budget_ask *ask)
{
    return times(said(ask->fees), choices_of(ask));
}

/* The most that the call can cost with this output. */
static int64_t ceiling_of(const struct budget_ask *ask, int64_t output)
{
    return plus(price_ceiling(ask->price, said(ask->input), output), fees_of(ask));
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void budget_init(struct budget *b, const struct budget_limits *limits)
{
    *b = (struct budget) {
        .limit = { [BUDGET_INPUT] = limits->input,
                   [BUDGET_OUTPUT] = limits->output,
                   [BUDGET_TOTAL] = limits->total,
                   [BUDGET_COST] = limits->cost,
                   [BUDGET_CALLS] = limits->calls },
        .deadline = limits->deadline,
        .started = limits->started,
        .refused = BUDGET_NONE,
    };
}

bool budget_limited(const struct budget *b)
{
    for (int k = 0; k < BUDGET_KIND_MAX; k++) {
        if (b->limit[k] > 0) {
            return true;
        }
    }
    return false;
}

/* What may still be claimed of a limited kind; with `all` also what calls in flight may give
 * back. */
static int64_t room(const struct budget *b, enum budget_kind k, bool all)
{
    if (b->limit[k] == 0) {
        return INT64_MAX;
    }
    int64_t used = all ? b->spent[k] : plus(b->spent[k], b->claimed[k]);
    return used >= b->limit[k] ? 0 : b->limit[k] - used;
}

/* The largest output of each response that fits all limits beside the prompt; negative: not even
 * the prompt does, and *why says which limit is in the way. */
static int64_t output_room(const struct budget *b, const struct budget_ask *ask, bool all,
                           enum budget_kind *why)
{
    int64_t input = said(ask->input);
    int64_t total = room(b, BUDGET_TOTAL, all);
    int64_t best = room(b, BUDGET_OUTPUT, all);
    *why = BUDGET_OUTPUT;
    if (room(b, BUDGET_INPUT, all) < input) {
        *why = BUDGET_INPUT;
        return -1;
    }
    if (total < input) {
        *why = BUDGET_TOTAL;
        return -1;
    }
    if (total != INT64_MAX && total - input < best) {
        *why = BUDGET_TOTAL;
        best = total - input;
    }
    if (b->limit[BUDGET_COST] > 0) {
        int64_t money = room(b, BUDGET_COST, all);
        bool prompt_fits = ceiling_of(ask, 0) <= money;
        int64_t buys = prompt_fits ? price_affordable(ask->price, input, money - fees_of(ask)) : 0;
        if (!prompt_fits || buys < best) {
            *why = BUDGET_COST;
            best = buys;
        }
    }
    return best < 0 ? best : best / choices_of(ask);
}

/* Below this a call is not worth making; a request that wants less itself is served. */
static int64_t floor_of(const struct budget_ask *ask)
{
    int64_t floor = ask->floor > BUDGET_MIN_OUTPUT ? ask->floor : BUDGET_MIN_OUTPUT;
    return ask->output > 0 ? least(floor, ask->output) : floor;
}

static enum budget_kind must_refuse(const struct budget *b, const struct budget_ask *ask, nsec now)
{
    enum budget_kind why;
    if (b->deadline > 0 && now >= b->deadline) {
        return BUDGET_TIME;
    }
    /* A call stays a call, however it ends: there is nothing to wait for. */
    if (!ask->again && room(b, BUDGET_CALLS, false) == 0) {
        return BUDGET_CALLS;
    }
    if (b->limit[BUDGET_COST] > 0 && ask->price == NULL) {
        return BUDGET_PRICE;
    }
    return output_room(b, ask, true, &why) < floor_of(ask) ? why : BUDGET_NONE;
}

/* What the call shall get, if so much can be had. */
static int64_t wanted(const struct budget_ask *ask, int64_t fits)
{
    if (ask->output > 0) {
        return least(ask->output, fits);
    }
    return fits >= BUDGET_MODEL_OUTPUT ? BUDGET_MODEL_OUTPUT : least(fits, BUDGET_UNSAID_OUTPUT);
}

static void grant(struct budget *b, const struct budget_ask *ask, int64_t fits,
                  struct budget_claim *c)
{
    int64_t output = wanted(ask, fits);
    int64_t all = times(output, choices_of(ask));
    c->cut = output < (ask->output > 0 ? ask->output : BUDGET_MODEL_OUTPUT);
    c->output = output;
    c->amount[BUDGET_INPUT] = said(ask->input);
    c->amount[BUDGET_OUTPUT] = all;
    c->amount[BUDGET_TOTAL] = plus(said(ask->input), all);
    c->amount[BUDGET_COST] = ask->price == NULL ? 0 : ceiling_of(ask, all);
    c->amount[BUDGET_CALLS] = ask->again ? 0 : 1;
    c->open = true;
    for (int k = 0; k < BUDGET_KIND_MAX; k++) {
        b->claimed[k] = plus(b->claimed[k], c->amount[k]);
    }
}

bool budget_fits(const struct budget *b, const struct budget_ask *ask, nsec now)
{
    enum budget_kind why;
    int64_t most = ask->output > 0 ? ask->output : BUDGET_MODEL_OUTPUT;
    return must_refuse(b, ask, now) == BUDGET_NONE && output_room(b, ask, false, &why) >= most;
}

/* Of a limit that a call would exceed. */
static struct budget_need need_of(const struct budget *b, const struct budget_ask *ask,
                                  enum budget_kind why)
{
    struct budget_need need = { .model = ask->model };
    int64_t input = said(ask->input);
    int64_t least_output = times(floor_of(ask), choices_of(ask));
    int64_t most_output =
        times(ask->output > 0 ? ask->output : BUDGET_MODEL_OUTPUT, choices_of(ask));
    enum budget_kind limit = why == BUDGET_PRICE ? BUDGET_COST : why;
    if (limit >= BUDGET_KIND_MAX) {
        return need;
    }
    need.limit = b->limit[limit];
    need.left = room(b, limit, true);
    need.in_flight = b->claimed[limit];
    if (why == BUDGET_INPUT) {
        need.least = need.most = input;
    } else if (why == BUDGET_OUTPUT) {
        need.least = least_output;
        need.most = most_output;
    } else if (why == BUDGET_TOTAL) {
        need.least = plus(input, least_output);
        need.most = plus(input, most_output);
    } else if (why == BUDGET_COST) {
        need.least = ceiling_of(ask, least_output);
        need.most = ceiling_of(ask, most_output);
        need.fees = fees_of(ask);
    }
    return need;
}

enum budget_verdict budget_reserve(struct budget *b, const struct budget_ask *ask, nsec now,
                                   struct budget_claim *ret)
{
    *ret = (struct budget_claim) { .why = must_refuse(b, ask, now) };
    if (ret->why != BUDGET_NONE) {
        ret->need = need_of(b, ask, ret->why);
        b->refused = b->refused == BUDGET_NONE ? ret->why : b->refused;
        b->refusals++;
        return BUDGET_REFUSED;
    }
    enum budget_kind why;
    enum budget_kind unused;
    int64_t fits = output_room(b, ask, false, &why);
    /* Calls in flight have claimed more than they will use: cutting this one down to crumbs would
     * be a pity while they may give some back. */
    int64_t enough = wanted(ask, output_room(b, ask, true, &unused));
    if (ask->output <= 0) {
        enough = least(enough, BUDGET_UNSAID_OUTPUT);
    }
    if (fits < enough) {
        ret->why = why;
        return BUDGET_WAIT;
    }
    grant(b, ask, fits, ret);
    return BUDGET_GRANTED;
}

static void unclaim(struct budget *b, struct budget_claim *claim)
{
    for (int k = 0; k < BUDGET_KIND_MAX; k++) {
        b->claimed[k] -= least(claim->amount[k], b->claimed[k]);
    }
    claim->open = false;
}

void budget_settle(struct budget *b, struct budget_claim *claim, const struct llm_usage *usage,
                   int64_t cost)
{
    if (!claim->open) {
        return;
    }
    unclaim(b, claim);
    b->spent[BUDGET_CALLS] = plus(b->spent[BUDGET_CALLS], claim->amount[BUDGET_CALLS]);
    if (usage == NULL) {
        return;
    }
    int64_t input =
        plus(plus(said(usage->input), said(usage->cache_read)), said(usage->cache_write));
    int64_t output = said(usage->output);
    b->spent[BUDGET_INPUT] = plus(b->spent[BUDGET_INPUT], input);
    b->spent[BUDGET_OUTPUT] = plus(b->spent[BUDGET_OUTPUT], output);
    b->spent[BUDGET_TOTAL] = plus(b->spent[BUDGET_TOTAL], plus(input, output));
    b->spent[BUDGET_COST] = plus(b->spent[BUDGET_COST], said(cost));
}

void budget_release(struct budget *b, struct budget_claim *claim)
{
    if (claim->open) {
        unclaim(b, claim);
    }
}

struct budget_left budget_left(const struct budget *b, nsec now)
{
    struct budget_left left = { 1, BUDGET_NONE, 1, -1 };
    for (int k = 0; k < BUDGET_KIND_MAX; k++) {
        if (b->limit[k] == 0) {
            continue;
        }
        double share = (double)room(b, (enum budget_kind)k, true) / (double)b->limit[k];
        if (left.scarcest == BUDGET_NONE || share < left.budget) {
            left.budget = share;
            left.scarcest = (enum budget_kind)k;
        }
    }
    if (b->deadline > 0) {
        nsec whole = b->deadline - b->started;
        left.until = now >= b->deadline ? 0 : b->deadline - now;
        left.time = whole <= 0 || left.until >= whole ? (left.until > 0)
                                                      : (double)left.until / (double)whole;
    }
    return left;
}

bool budget_wrap_up(const struct budget *b, nsec now, double share)
{
    struct budget_left left = budget_left(b, now);
    return left.budget <= share || left.time <= share;
}

/* "$5.00", "$0.0614", "$0.000032": small amounts need more digits. */
static const char *dollars(int64_t pico, char out[24])
{
    const int64_t cent = PICO_PER_USD / 100;
    int digits = pico % cent == 0 || pico >= 100 * cent ? 2 : pico >= cent ? 4 : 6;
    (void)snprintf(out, 24, "$%.*f", digits, price_usd(pico));
    return out;
}

static void describe_cost(const struct budget_need *n, char out[BUDGET_TEXT])
{
    char most[24], least_text[24], left[24], limit[24], fees[24];
    (void)snprintf(
        out, BUDGET_TEXT, "the next call could cost up to %s (at least %s)%s%s%s; %s of %s is left",
        dollars(n->most, most), dollars(n->least, least_text), n->fees > 0 ? ", of which " : "",
        n->fees > 0 ? dollars(n->fees, fees) : "", n->fees > 0 ? " for web searches" : "",
        dollars(n->left, left), dollars(n->limit, limit));
}

const char *budget_describe(const struct budget_claim *refused, char out[BUDGET_TEXT])
{
    const struct budget_need *n = &refused->need;
    char limit[24];
    switch (refused->why) {
    case BUDGET_INPUT:
        (void)snprintf(out, BUDGET_TEXT,
                       "the next call has a prompt of about %" PRId64 " tokens; %" PRId64
                       " of %" PRId64 " input tokens are left",
                       n->most, n->left, n->limit);
        break;
    case BUDGET_OUTPUT:
        (void)snprintf(out, BUDGET_TEXT,
                       "the next call needs at least %" PRId64 " output tokens; %" PRId64
                       " of %" PRId64 " are left",
                       n->least, n->left, n->limit);
        break;
    case BUDGET_TOTAL:
        (void)snprintf(out, BUDGET_TEXT,
                       "the next call could use up to %" PRId64 " tokens (at least %" PRId64
                       "); %" PRId64 " of %" PRId64 " are left",
                       n->most, n->least, n->left, n->limit);
        break;
    case BUDGET_COST:
        describe_cost(n, out);
        break;
    case BUDGET_CALLS:
        (void)snprintf(out, BUDGET_TEXT, "all %" PRId64 " calls are %s", n->limit,
                       n->in_flight > 0 ? "used or in progress" : "used");
        break;
    case BUDGET_TIME:
        (void)snprintf(out, BUDGET_TEXT, "the deadline has passed");
        break;
    case BUDGET_PRICE:
        (void)snprintf(out, BUDGET_TEXT,
                       "model '%.*s' has no price, so the limit of %s cannot be enforced; add the "
                       "model to a price table (gateway.prices)",
                       (int)least((int64_t)n->model.len, 100),
                       n->model.len == 0 ? "" : n->model.ptr, dollars(n->limit, limit));
        break;
    case BUDGET_NONE:
        (void)snprintf(out, BUDGET_TEXT, "nothing is exceeded");
        break;
    }
    return out;
}
