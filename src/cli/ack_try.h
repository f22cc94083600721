/* SPDX-License-Identifier: MIT
 *
 * Trying adapters from the command line: what `cinch ack` and `cinch adapters --probe` share.
 */
#pragma once

#include "ack/kit.h"
#include "cli/cli.h"
#include "cli/option.h"

/* What both begin with: the real engine, as many jobs as there are CPUs, our environment. */
struct kit_opts ack_try_defaults(void);

/* Asks the adapters for their versions, and tries. Works in `dir`, or when that is NULL in a
 * directory of its own, of which only what is kept stays. SIGINT and SIGTERM are heard from the
 * beginning: those adapters that were not asked yet count as not here, and all is skipped. */
int ack_try(struct cli *cli, const char *dir, struct kit_opts *o, struct kit_report *ret,
            struct err *e) MUST_USE;

/* The exit status: 0, 1 when something failed, 130 or 143 when a signal ended it. */
int ack_try_status(const struct kit_report *r);

/* The proof on this machine: the scenarios of the tiers 1 and 2 on the adapters of these names, or
 * on all that are here, and a line for each. Returns 1 when one failed, or when one that was named
 * is not here. */
int ack_prove(struct cli *cli, const struct options *opt, const char *const *names,
              struct err *e) MUST_USE;
