/* SPDX-License-Identifier: MIT
 *
 * The meter as a filter: every model call that is over, priced and told.
 */
#include "gateway/account_priv.h"

/* The price follows the model that was asked for; an answer names its dated version. */
static struct str model_of(const struct exchange_view *x, const struct filter_done *d)
{
    return x->upstream_model.len > 0 ? x->upstream_model : d->answered_by;
}

/* The last filter: nothing holds the attempt back any more. */
static void on_attempt(void *arg, const struct exchange_view *x, void **slot,
                       struct filter_answer *ret)
{
    struct account *acc = arg;
    struct meter_reserved reserved;
    const struct account_port *port = &acc->opts.port;
    if (port->on_sending != NULL && account_is_call(x) && !x->upstream->local &&
        account_reserved(acc, x, &reserved)) {
        port->on_sending(port->arg, x, &reserved);
    }
}

static void count_call(struct account *acc, const struct exchange_view *x,
                       const struct filter_done *d)
{
    struct account_call call = {
        .metered = { .model = model_of(x, d),
                     .upstream = str_of(x->upstream->name),
                     .failed = d->status == 0 || d->status >= 400 || !d->complete,
                     .terms = x->terms,
                     .local = x->upstream->local,
                     .attempts = d->attempts - x->earlier,
                     .first_byte = d->first_byte >= 0 ? x->began + d->first_byte : 0 },
        .status = d->status,
        .complete = d->complete,
        .first_byte = d->first_byte,
        .took = d->took,
        .side = x->side,
    };
    call.metered.side = call.side != NULL;
    if (acc->billed == x->id) {
        call.metered.usage = acc->bill.usage;
        call.metered.reserved = acc->bill.reserved;
        call.metered.estimated = acc->bill.estimated;
    } else { /* without the budget before it, only what was reported is known */
        call.metered.usage = d->usage;
    }
    call.cost = meter_add(acc->meter, &call.metered);
    if (acc->opts.port.on_call != NULL) {
        acc->opts.port.on_call(acc->opts.port.arg, x, &call);
    }
}

static void on_done(void *arg, const struct exchange_view *x, void **slot,
                    const struct filter_done *d)
{
    struct account *acc = arg;
    if (account_is_call(x) && d->attempts > 0) {
        count_call(acc, x, d);
    }
    if (acc->opts.port.on_over != NULL) {
        acc->opts.port.on_over(acc->opts.port.arg, x);
    }
}

static bool charged(void *arg, const struct exchange_view *x, struct llm_usage *ret,
                    bool *ret_estimated)
{
    const struct account *acc = arg;
    const struct meter_call call = { .usage = acc->bill.usage, .reserved = acc->bill.reserved };
    if (acc->billed != x->id) {
        return false;
    }
    *ret = meter_usage(&call);
    *ret_estimated = acc->bill.estimated;
    return true;
}

struct filter account_meter_filter(struct account *acc)
{
    return (struct filter) { .name = "meter",
                             .arg = acc,
                             .on_attempt = on_attempt,
                             .on_done = on_done,
                             .charged = charged };
}
