/* SPDX-License-Identifier: MIT
 *
 * What a tool's answer does to the session: its `state`, a list of changes.
 *
 *   {"op": "append",   "slice": "plan", "value": …}
 *   {"op": "extend",   "slice": "plan", "value": […]}
 *   {"op": "replace",  "slice": "plan", "value": […]}
 *   {"op": "clear",    "slice": "plan"}                          everything
 *   {"op": "clear",    "slice": "plan", "key": "/id", "value": 7} items with 7 at /id
 *   {"op": "dispatch", "event": "StepDone", "value": …}          through the reducers of the task
 *
 * Strict: an unknown operation or member, a member of the wrong type, one that is missing, all are
 * errors that say which change it was. All are checked before the first is applied. Slices that
 * cinch keeps itself (what policies remember, telemetry) are not a tool's to change: it could
 * unlock itself.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"

struct store_txn;

#define TOOL_STATE_OPS_MAX   1024
#define TOOL_STATE_ITEMS_MAX 65536 /* of all lists together */
#define TOOL_STATE_NAME_MAX  128   /* of a slice or an event */
#define TOOL_STATE_KEY_MAX   1024

/* ERR_CONFIG or ERR_LIMIT, for the one who wrote the tool. */
int tool_state_check(const struct json *state, struct err *e) MUST_USE;
/* Checks, then applies; NULL or JSON null: nothing. What was applied before an error (a reducer
 * that misses its key, too many slices) goes with the transaction. */
int tool_state_apply(struct store_txn *t, const struct json *state, struct err *e) MUST_USE;
/* Kept by cinch: "policy:…", ToolInvoked, … */
bool tool_state_reserved(struct str slice);
