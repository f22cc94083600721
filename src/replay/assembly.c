/* SPDX-License-Identifier: MIT
 *
 * Putting a gateway together; see assembly.h.
 */
#include "replay/assembly.h"

#include "gateway/price.h"
#include "replay/cassette_upstream.h"

int assembly_account(struct arena *a, const char *prices, const struct account_opts *o,
                     struct assembly *ret, struct err *e)
{
    struct account_opts opts = *o;
    int r = price_load(a, prices, &ret->prices, e);
    if (r < 0) {
        return r;
    }
    opts.prices = ret->prices;
    ret->account = account_new(&opts);
    return 0;
}

int assembly_record(const char *path, const struct cassette_writer_opts *o, struct assembly *ret,
                    struct err *e)
{
    return cassette_writer_new(path, o, &ret->recorder, e);
}

int assembly_listen(struct loop *l, const struct gateway_opts *o, struct assembly *ret,
                    struct err *e)
{
    struct gateway_opts opts = *o;
    struct filter *f = ret->filters; /* borrowed by the gateway */
    size_t n = 0;
    if (ret->account != NULL) {
        opts.metered = account_limits_usage(ret->account);
        f[n++] = account_budget_filter(ret->account);
        f[n++] = account_throttle_filter(ret->account);
        if (ret->recorder != NULL) {
            cassette_filter(ret->recorder, &f[n++]);
        }
        f[n++] = account_meter_filter(ret->account);
    }
    for (size_t i = 0; i < o->n_filters && n < FILTERS_MAX; i++) {
        f[n++] = o->filters[i];
    }
    opts.filters = f;
    opts.n_filters = n;
    return gateway_open(l, &opts, &ret->gateway, e);
}

uint64_t assembly_close(struct assembly *a, struct err *ret_first)
{
    a->gateway = gateway_free(a->gateway);
    uint64_t lost = a->recorder == NULL ? 0 : cassette_writer_lost(a->recorder, ret_first);
    a->recorder = cassette_writer_free(a->recorder);
    return lost;
}

void assembly_done(struct assembly *a)
{
    (void)assembly_close(a, NULL);
    a->account = account_free(a->account);
}
