/* SPDX-License-Identifier: MIT
 *
 * From the account's reports to events; see account_event.h.
 */
#include "gateway/account_event.h"

#include "gateway/price.h"
#include "gateway/sampling_edit.h"
#include "llm/dropped.h"

struct event_model_call account_call_event(const struct exchange_view *x,
                                           const struct account_call *c)
{
    const struct meter_call *m = &c->metered;
    struct llm_usage used = meter_usage(m);
    struct event_model_call ev = {
        .exchange = (int64_t)x->id,
        .format = llm_format_name(x->client.format),
        .model = m->model,
        .upstream = x->upstream->name,
        .status = c->status,
        .attempts = m->attempts + x->earlier,
        .complete = c->complete,
        .translated = x->translated,
        .side = c->side,
        .input = used.input,
        .output = used.output,
        .cache_read = m->usage.cache_read,
        .cache_write = m->usage.cache_write,
        .reasoning = m->usage.reasoning,
        .estimated = m->estimated,
        .cost_usd = c->cost < 0 ? -1 : price_usd(c->cost),
        .first_byte = c->first_byte,
        .took = c->took,
    };
    size_t n = x->dropped == NULL ? 0 : x->dropped->n;
    for (size_t i = 0; i < n && i < EVENT_DROPPED_MAX && i < LLM_LOSSES_MAX; i++) {
        ev.dropped[i] = x->dropped->items[i].what;
    }
    for (size_t i = 0; i < EVENT_EDITS_MAX && i < EXCHANGE_EDITS_MAX; i++) {
        ev.edits[i] = x->edits[i];
    }
    if (x->sampling != NULL) {
        ev.unsent = x->sampling->unsent;
    }
    ev.fallback_from = x->failed[0] == NULL ? NULL : x->failed;
    return ev;
}

struct event_throttle account_throttle_event(const struct account_throttled *t)
{
    return (struct event_throttle) {
        .kind = throttle_kind_word(t->signal->kind),
        .attempt = t->attempts,
        .delay = t->delay,
        .retry_after = t->signal->retry_after,
        .retry_safe = t->signal->retry_safe,
    };
}

const char *account_refused_kind(const struct account_refused *r)
{
    return r->above ? "above" : budget_kind_word(r->why);
}
