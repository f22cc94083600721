/* SPDX-License-Identifier: MIT
 *
 * The checks of the file contract (ack/contract_check.h) as scenarios: contract_manifest,
 * contract_probe and so on, of the tier `specific`. They are tried on adapters that are programs or
 * images of that contract, all by the same few runs, and each has a verdict like any scenario.
 *
 *   contract_scenarios(arena, &list);                 behind those of the table
 *   contract_declare(arena, &adapter, &opts, watch, e);  what the adapter says it can
 *   contract_prepare(arena, &opts, &adapter, dir, &how, e);
 *   opts.engine.contract(arena, &how, &report, e);    all checks
 *
 * An adapter of a name like exec:PATH or image:REFERENCE has no profile of its own to declare
 * capabilities in. The manifest that it leaves when it is asked by --probe does:
 *
 *   {"status": "completed", "outcome": "success", …,
 *    "metadata": {"version": "1.2", "capabilities": ["text_response", "transcript"]}}
 *
 * Without such a list none but the contract is tried on it.
 */
#pragma once

#include "ack/kit.h"

bool contract_applies(const struct profile *p);

void contract_scenarios(struct arena *a, struct scenario_list *list);

/* Asks, and gives the adapter a profile that has what it declares, and its version; nothing for an
 * adapter that no contract applies to. Blocks. ERR_UNAVAILABLE when it is not here or cannot be
 * started: who names a program or an image wants it tried; ERR_CONFIG when it declares what does
 * not exist; ERR_CANCELLED when the watch is interrupted. */
int contract_declare(struct arena *a, struct kit_adapter *adapter, const struct kit_opts *o,
                     struct contract_watch watch, struct err *e) MUST_USE;

/* What every run of it needs: a home, a model, the directories of profiles. `dir` is new. */
int contract_prepare(struct arena *a, const struct kit_opts *o, const struct kit_adapter *adapter,
                     const char *dir, struct contract_opts *ret, struct err *e) MUST_USE;
