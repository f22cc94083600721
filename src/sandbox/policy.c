/* SPDX-License-Identifier: MIT
 *
 * The words of a policy, and its default.
 */
#include "sandbox/policy.h"

static const char *const modes[] = {
    [SANDBOX_WORKSPACE_WRITE] = "workspace-write",
    [SANDBOX_READ_ONLY] = "read-only",
    [SANDBOX_OFF] = "off",
};

static const struct {
    const char *word, *meaning;
} guarantees[] = {
#define X(id, word, text) [id] = { word, text },
    SANDBOX_GUARANTEES(X)
#undef X
};

void sandbox_policy_init(struct sandbox_policy *p)
{
    *p = (struct sandbox_policy) { .mode = SANDBOX_WORKSPACE_WRITE };
}

const char *sandbox_mode_word(enum sandbox_mode m)
{
    return modes[m];
}

const char *sandbox_guarantee_word(enum sandbox_guarantee g)
{
    return guarantees[g].word;
}

const char *sandbox_guarantee_meaning(enum sandbox_guarantee g)
{
    return guarantees[g].meaning;
}
