/* SPDX-License-Identifier: MIT
 *
 * The ledger of a run: what the wire says it used beside what the harness says, and the
 * difference. It is evidence/ledger.json; metrics.json has its sums.
 *
 *   struct ledger_reported reported = { .known = true, .usage = …, … };
 *   struct json *j = ledger_json(arena, meter, &reported);
 *
 * A difference is wire minus harness: positive where the harness told less than it used, which is
 * what side requests, sub-agents and retries that a harness forgets to count look like. What one of
 * the two did not say has no difference: null.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "llm/event.h"

struct arena;
struct json;
struct meter;

struct ledger_reported {
    bool known;             /* the harness said anything at all */
    struct llm_usage usage; /* -1: it did not say */
    int64_t calls;          /* -1: it did not say */
    bool cost_known;
    double cost_usd;
};

struct json *ledger_json(struct arena *a, const struct meter *m,
                         const struct ledger_reported *reported);
