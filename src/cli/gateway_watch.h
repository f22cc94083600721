/* SPDX-License-Identifier: MIT
 *
 * struct gateway_watch: what `cinch gateway` shows while it works. With --format json one line for
 * each event on stdout, in the form of events.jsonl; on a terminal a status line on stderr; and a
 * ledger file, renewed at most once a second.
 *
 *   gateway_watch_new(&opts, &w, e);
 *   account_opts.port = gateway_watch_port(w);  gateway_opts.port = gateway_watch_events(w);
 *   gateway_watch_start(w, account, gateway);
 *   …
 *   gateway_watch_end(w, e);                    the last state of the ledger
 *   gateway_watch_free(w);                      before the account
 *
 * A reader that does not keep up never holds the gateway back: beyond a bound, lines are dropped
 * and counted.
 */
#pragma once

#include "cli/cli.h"
#include "gateway/account.h"
#include "gateway/gateway.h"

struct gateway_watch;
struct loop;
struct redactor;

struct gateway_watch_opts {
    struct cli *cli;
    struct loop *loop;
    const char *ledger; /* path; NULL: none is written */
    const struct redactor *redactor;
};

int gateway_watch_new(const struct gateway_watch_opts *o, struct gateway_watch **ret,
                      struct err *e) MUST_USE;
struct account_port gateway_watch_port(struct gateway_watch *w);
struct gateway_port gateway_watch_events(struct gateway_watch *w);
/* Both are borrowed until gateway_watch_end(). */
void gateway_watch_start(struct gateway_watch *w, const struct account *acc,
                         const struct gateway *g);
/* ERR_OUTPUT when the ledger could not be written. */
int gateway_watch_end(struct gateway_watch *w, struct err *e) MUST_USE;
struct gateway_watch *gateway_watch_free(struct gateway_watch *w); /* accepts NULL, returns NULL */
