/* SPDX-License-Identifier: MIT
 *
 * enum capability: what an adapter may be able to do, by name. This is the only list of them: the
 * profiles declare from it, the compatibility kit has scenarios for each, the manual explains each.
 *
 *   enum capability c;
 *   if (capability_of(STR("transcript"), &c))
 *       puts(capability_info(c)->meaning);
 *
 * A profile says under `capabilities` what its adapter can, and under `lacks` why it cannot do the
 * rest. Without `capabilities` it is taken to have those of the tiers 1 to 3.
 *
 *   struct capability_set set;
 *   capability_read(json_get(doc, "capabilities"), json_get(doc, "lacks"), file, &set, e);
 *   const char *why = capability_lack(&set, CAPABILITY_TRANSCRIPT);    NULL: it has it
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"

enum capability {
    CAPABILITY_TEXT_RESPONSE,
    CAPABILITY_TOOL_INVOCATION,
    CAPABILITY_STRUCTURED_OUTPUT,
    CAPABILITY_EVENT_EMISSION,
    CAPABILITY_TRANSCRIPT,
    CAPABILITY_RENDERED_TOOLS_EVENT,
    CAPABILITY_PROGRESSIVE_DISCLOSURE,
    CAPABILITY_TRANSACTIONAL_TOOLS,
    CAPABILITY_DEADLINE_ENFORCEMENT,
    CAPABILITY_BUDGET_ENFORCEMENT,
    CAPABILITY_TOOL_POLICIES,
    CAPABILITY_FEEDBACK_PROVIDERS,
    CAPABILITY_TASK_COMPLETION,
    CAPABILITY_NATIVE_TOOLS,
    CAPABILITY_WORKSPACE_ISOLATION,
    CAPABILITY_CUSTOM_ENV_FORWARDING,
    CAPABILITY_NETWORK_POLICY,
    CAPABILITY_SANDBOX_POLICY,
    CAPABILITY_SKILL_INSTALLATION,
    /* Beyond the kit that this one follows. */
    CAPABILITY_CANCELLATION,
    CAPABILITY_CRASH_DETECTION,
    CAPABILITY_HANG_AFTER_RESULT,
    CAPABILITY_PROVIDER_FAULTS,
    CAPABILITY_PROVIDER_LOSS,
    CAPABILITY_WHOLE_ANSWERS,
    CAPABILITY_OPEN_STDIN,
    CAPABILITY_PLAIN_DIRECTORY,
    CAPABILITY_OUTPUT_FLOOD,
    CAPABILITY_CHILD_REAPING,
    CAPABILITY_USAGE_TRUTH,
    CAPABILITY_SUBAGENT_USAGE,
    CAPABILITY_REPLAY,
    CAPABILITY_RESUME,
    CAPABILITY_PARALLEL_RUNS,
    CAPABILITY_LONG_PROMPT,
    CAPABILITY_UNICODE_TEXT,
    CAPABILITY_SLOW_TOOLS,
    CAPABILITY_MANY_TOOLS,
    CAPABILITY_TEXT_EDITS,
    CAPABILITY_PROJECT_CONFIG,
    CAPABILITY_COUNT,
};

enum capability_tier {
    TIER_BASIC = 1,    /* answers */
    TIER_OBSERVED = 2, /* events and transcript */
    TIER_LIMITED = 3,  /* transactions, deadlines, budgets */
    TIER_GUARDED = 4,  /* policies, feedback, completion */
    TIER_SPECIFIC = 5, /* of the adapter's own */
};

struct capability_info {
    const char *name;
    enum capability_tier tier;
    const char *meaning; /* one sentence */
};

const struct capability_info *capability_info(enum capability c);

bool capability_of(struct str name, enum capability *ret); /* false: there is none of that name */
const char *capability_tier_word(enum capability_tier t);  /* "1" … "4", "specific" */
/* Whether an adapter is taken to have it when its profile does not say. */
bool capability_default(enum capability c);

/* What one adapter can. */
struct capability_set {
    bool has[CAPABILITY_COUNT];
    const char *lacks[CAPABILITY_COUNT]; /* why not, as its profile says; NULL: it does not */
    const char *otherwise;               /* why not all the others; NULL: it does not say */
};

/* From `capabilities` (a list of names; NULL: the defaults) and `lacks` (names to reasons; under
 * `otherwise` that of all others) of a profile. ERR_CONFIG for a name that is not in the table, a
 * reason that is no text, and for what stands in both. The reasons belong to the document. */
int capability_read(const struct json *declared, const struct json *lacks, const char *file,
                    struct capability_set *ret, struct err *e) MUST_USE;

/* Why the adapter cannot do it, for people; NULL: it can. */
const char *capability_lack(const struct capability_set *set, enum capability c);
