/* SPDX-License-Identifier: MIT
 *
 * struct verdict: the result of one scenario on one adapter. Written by a scenario run
 * (ack/scenario_run.h), or by the kit itself when there was nothing to run; read by all reports.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

struct scenario;

enum verdict_status {
    VERDICT_PASSED,
    VERDICT_FAILED,
    VERDICT_SKIPPED,  /* `why` is the true reason */
    VERDICT_EXPECTED, /* failed, and the file of expected failures says so */
    VERDICT_STALE,    /* passed, although it says so: counts as a failure */
    VERDICT_FLAKY,    /* failed, once or in both tries, and the file allows that */
    VERDICT_COUNT,
};

struct verdict {
    const char *adapter;
    const char *version; /* of the harness program; "" when not known. Of a trial: what it said */
    const struct scenario *scenario;
    enum verdict_status status;
    const char
        *why; /* "" when passed; else one finding a line, each with what was wanted and found */
    nsec took;
    double cost_usd; /* of its live runs */
    const char *dir; /* what is left of it; NULL: removed */
};

const char *verdict_word(enum verdict_status s); /* "passed", "failed", … */
bool verdict_is_failure(enum verdict_status s);  /* the kit has failed because of it */
