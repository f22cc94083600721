/* SPDX-License-Identifier: MIT
 *
 * The table of reasons and the three exit profiles.
 */
#include "record/reason.h"

#include <assert.h>

static const struct {
    const char *word;
    int exit;
    enum outcome outcome;
    enum run_state state;
    const char *status;
    bool resumable;
    const char *meaning;
} reasons[REASON_MAX] = {
#define X(reason, word, exit, outcome, state, status, resumable, text) \
    [reason] = { word, exit, outcome, state, status, resumable, text },
    REASON_LIST(X)
#undef X
};

static const char *const profile_words[] = {
    [EXIT_NATIVE] = "native",
    [EXIT_HOLON] = "holon",
    [EXIT_SCYLLA] = "scylla",
};

const char *reason_word(enum reason r)
{
    return r < REASON_MAX ? reasons[r].word : NULL;
}

const char *reason_meaning(enum reason r)
{
    return r < REASON_MAX ? reasons[r].meaning : NULL;
}

enum reason reason_find(struct str word)
{
    for (enum reason r = REASON_NONE + 1; r < REASON_MAX; r++) {
        if (str_eqc(word, reasons[r].word)) {
            return r;
        }
    }
    return REASON_NONE;
}

enum reason reason_of_err(enum err_code code)
{
    switch (code) {
    case ERR_OK:
        return REASON_SUCCESS;
    case ERR_USAGE:
        return REASON_USAGE;
    case ERR_CONFIG:
    case ERR_PARSE:
        return REASON_BAD_TASK;
    case ERR_INPUT:
        return REASON_MISSING_INPUT;
    case ERR_UNAVAILABLE:
    case ERR_UNSUPPORTED:
        return REASON_UNAVAILABLE;
    case ERR_OUTPUT:
    case ERR_EXISTS:
        return REASON_CANNOT_WRITE_OUTPUT;
    case ERR_SECRET:
        return REASON_AUTH;
    case ERR_NOEXEC:
        return REASON_NOT_EXECUTABLE;
    case ERR_NOTFOUND:
        return REASON_NOT_FOUND;
    case ERR_TIMEOUT:
        return REASON_TIMEOUT;
    case ERR_CANCELLED:
        return REASON_CANCELLED;
    case ERR_DENIED:
        return REASON_FAILURE;
    case ERR_BUDGET:
        return REASON_BUDGET;
    case ERR_UPSTREAM:
        return REASON_RATE_LIMITED;
    case ERR_SYS:
    case ERR_PROTO:
    case ERR_LIMIT:
    case ERR_BUG:
    case ERR_CODE_MAX:
        break;
    }
    return REASON_INTERNAL;
}

bool reason_resumable(enum reason r)
{
    return r < REASON_MAX && reasons[r].resumable;
}

/* A run that is not over has not succeeded: who reads only this field must not take it for done. */
const char *reason_outcome(enum reason r)
{
    if (r == REASON_NONE || r >= REASON_MAX) {
        return "failure";
    }
    switch (reasons[r].outcome) {
    case OUTCOME_SUCCESS:
        return "success";
    case OUTCOME_NEEDS_HUMAN:
        return "needs_human";
    case OUTCOME_FAILURE:
        break;
    }
    return "failure";
}

const char *reason_state(enum reason r)
{
    if (r == REASON_NONE || r >= REASON_MAX) {
        return NULL;
    }
    switch (reasons[r].state) {
    case STATE_SUCCEEDED:
        return "succeeded";
    case STATE_CANCELED:
        return "canceled";
    case STATE_FAILED:
        break;
    }
    return "failed";
}

const char *reason_status(enum reason r)
{
    return r == REASON_NONE || r >= REASON_MAX ? "running" : reasons[r].status;
}

static int scylla_exit_status(enum reason r, struct engine_exit engine)
{
    if (r == REASON_TIMEOUT) {
        return reasons[r].exit;
    }
    switch (engine.end) {
    case ENGINE_SIGNALLED:
        return 128 + engine.value;
    case ENGINE_EXITED:
        if (engine.value != 0 || reasons[r].outcome != OUTCOME_FAILURE) {
            return engine.value;
        }
        break;
    case ENGINE_NOT_ENDED:
        break;
    }
    return 1;
}

int reason_exit_status(enum reason r, enum exit_profile profile, struct engine_exit engine)
{
    assert(r > REASON_NONE && r < REASON_MAX);
    switch (profile) {
    case EXIT_HOLON:
        return reasons[r].outcome == OUTCOME_SUCCESS       ? 0
               : reasons[r].outcome == OUTCOME_NEEDS_HUMAN ? 2
                                                           : 1;
    case EXIT_SCYLLA:
        return scylla_exit_status(r, engine);
    case EXIT_NATIVE:
        break;
    }
    return reasons[r].exit;
}

bool exit_profile_find(const char *word, enum exit_profile *ret)
{
    for (enum exit_profile p = EXIT_NATIVE; p <= EXIT_SCYLLA; p++) {
        if (strcmp(word, profile_words[p]) == 0) {
            *ret = p;
            return true;
        }
    }
    return false;
}

const char *exit_profile_word(enum exit_profile profile)
{
    return profile_words[profile];
}
