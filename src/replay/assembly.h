/* SPDX-License-Identifier: MIT
 *
 * struct assembly: a gateway together with what it counts and records by: prices, the account
 * (budget, throttle, meter) and the cassette that it writes. `cinch run` and `cinch gateway` open
 * theirs here, so that both have the same filters in the same order.
 *
 *   struct assembly a = { 0 };
 *   assembly_account(arena, &account_opts, &a, e)     prices, budget, throttle, meter
 *   assembly_record("traffic.cassette", &opts, &a, e) if traffic is recorded
 *   assembly_listen(loop, &gateway_opts, &a, e)       takes the listeners; filters are added
 *   …
 *   assembly_close(&a)                                no traffic from here on; the account stays
 *   assembly_done(&a)
 *
 * Without assembly_account() the gateway counts nothing: a proxy alone, or only mounts.
 */
#pragma once

#include "gateway/account.h"
#include "gateway/gateway.h"
#include "replay/cassette.h"

struct arena;
struct loop;

struct assembly {
    struct price_table *prices;
    struct account *account;
    struct cassette_writer *recorder; /* NULL: nothing is recorded */
    struct filter filters[FILTERS_MAX];
    struct gateway *gateway;
};

/* `prices` names a table of the user's, NULL: the built-in one alone; `o->prices` is filled in. The
 * arena must live as long as the assembly. */
int assembly_account(struct arena *a, const char *prices, const struct account_opts *o,
                     struct assembly *ret, struct err *e) MUST_USE;
int assembly_record(const char *path, const struct cassette_writer_opts *o, struct assembly *ret,
                    struct err *e) MUST_USE;
/* Takes the listeners, also on failure. The filters of `o` come after those of the assembly. */
int assembly_listen(struct loop *l, const struct gateway_opts *o, struct assembly *ret,
                    struct err *e) MUST_USE;
/* How many exchanges are missing in the recording, and why the first one is. */
uint64_t assembly_close(struct assembly *a, struct err *ret_first);
void assembly_done(struct assembly *a); /* idempotent */
