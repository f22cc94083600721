/* SPDX-License-Identifier: MIT
 *
 * Words of verdicts; see verdict.h.
 */
#include "ack/verdict.h"

const char *verdict_word(enum verdict_status s)
{
    static const char *const words[VERDICT_COUNT] = {
        [VERDICT_PASSED] = "passed",     [VERDICT_FAILED] = "failed", [VERDICT_SKIPPED] = "skipped",
        [VERDICT_EXPECTED] = "expected", [VERDICT_STALE] = "stale",   [VERDICT_FLAKY] = "flaky",
    };
    return words[s];
}

bool verdict_is_failure(enum verdict_status s)
{
    return s == VERDICT_FAILED || s == VERDICT_STALE;
}
