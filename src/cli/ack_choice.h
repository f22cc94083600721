/* SPDX-License-Identifier: MIT
 *
 * What `cinch ack` is to try: adapters and scenarios, by options and environment.
 */
#pragma once

#include "ack/kit.h"
#include "cli/cli.h"
#include "cli/option.h"

/* Those of --adapter, --adapter-exec and --adapter-image; else of ACK_ADAPTERS (names with commas
 * between); else all that can be tried without more being said. Not yet probed. Also fills
 * adapter_dirs and reads, as absolute paths. ERR_UNAVAILABLE for a name that nobody knows. */
int ack_choose_adapters(struct cli *cli, const struct options *opt, struct kit_opts *ret,
                        struct err *e) MUST_USE;

/* The same for these names; all when there are none. */
int ack_choose_named(struct cli *cli, const struct options *opt, const char *const *names,
                     struct kit_opts *ret, struct err *e) MUST_USE;

/* Those that fit --scenario, --tier and --capability, the checks of the file contract among them;
 * fills scenarios and known. ERR_USAGE when one of these fits nothing. */
int ack_choose_scenarios(struct cli *cli, const struct options *opt, struct kit_opts *ret,
                         struct err *e) MUST_USE;

/* Takes the checks of the file contract out again, if none of the adapters can be tried by them.
 * ERR_USAGE when nothing is left. */
int ack_choose_contract(struct kit_opts *o, struct err *e) MUST_USE;

/* Those of this tier and of the ones before it. */
int ack_scenarios_up_to(struct arena *a, enum capability_tier tier, struct scenario_list *ret,
                        struct err *e) MUST_USE;

/* --timeout, or ACK_TIMEOUT, or 120 s. */
int ack_choose_timeout(const struct options *opt, nsec *ret, struct err *e) MUST_USE;
