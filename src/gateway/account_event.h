/* SPDX-License-Identifier: MIT
 *
 * What an account reports, in the form of the record's events: for events.jsonl of a run and for
 * the output of `cinch gateway`.
 */
#pragma once

#include "gateway/account.h"
#include "record/events.h"

/* Borrows from its arguments. */
struct event_model_call account_call_event(const struct exchange_view *x,
                                           const struct account_call *c);
struct event_throttle account_throttle_event(const struct account_throttled *t);
/* The word for `kind` of gateway.refused: the limit, or "above". */
const char *account_refused_kind(const struct account_refused *r);
