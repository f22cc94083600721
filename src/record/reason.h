/* SPDX-License-Identifier: MIT
 *
 * enum reason: the one word that says why a run ended, and everything that follows from it: the
 * exit status, the outcome, the terminal state, what Holon's manifest calls its status.
 *
 * The word is the same in result.json, manifest.json, metrics.json and state.json. Three things are
 * kept apart on purpose: `state` (did the machinery finish), `outcome` (what came of the task), and
 * the exit status, of which there are two: the harness' own (struct engine_exit) and ours.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* X(reason, word, exit status of the native profile, outcome, state, Holon status, resumable,
 * meaning) */
/* clang-format off */
#define REASON_LIST(X)                                                                                 \
    X(REASON_SUCCESS, "success", 0, OUTCOME_SUCCESS, STATE_SUCCEEDED, "completed", false,              \
      "the harness finished and all gates passed")                                                     \
    X(REASON_FAILURE, "failure", 1, OUTCOME_FAILURE, STATE_FAILED, "completed", false,                 \
      "the harness failed, or a gate did not pass")                                                    \
    X(REASON_NO_RESULT, "no_result", 1, OUTCOME_FAILURE, STATE_FAILED, "completed", false,             \
      "an adapter program reported success and did nothing")                                           \
    X(REASON_NEEDS_HUMAN, "needs_human", 2, OUTCOME_NEEDS_HUMAN, STATE_SUCCEEDED, "completed", false,  \
      "the harness stopped because a person has to decide")                                            \
    X(REASON_USAGE, "usage", 64, OUTCOME_FAILURE, STATE_FAILED, "failed", false,                       \
      "wrong command line")                                                                            \
    X(REASON_BAD_TASK, "bad_task", 65, OUTCOME_FAILURE, STATE_FAILED, "failed", false,                 \
      "invalid task, profile or configuration")                                                        \
    X(REASON_MISSING_INPUT, "missing_input", 66, OUTCOME_FAILURE, STATE_FAILED, "failed", false,       \
      "an input file or directory is missing")                                                         \
    X(REASON_UNAVAILABLE, "unavailable", 69, OUTCOME_FAILURE, STATE_FAILED, "failed", false,           \
      "adapter or engine unavailable here")                                                            \
    X(REASON_INTERNAL, "internal", 70, OUTCOME_FAILURE, STATE_FAILED, "failed", false,                 \
      "cinch itself failed")                                                                           \
    X(REASON_CANNOT_WRITE_OUTPUT, "cannot_write_output", 73, OUTCOME_FAILURE, STATE_FAILED, "failed",  \
      false, "the output directory cannot be used")                                                    \
    X(REASON_RATE_LIMITED, "rate_limited", 75, OUTCOME_FAILURE, STATE_FAILED, "completed", false,      \
      "the provider refused for now; the same run may succeed later")                                  \
    X(REASON_PROVIDER_UNAVAILABLE, "provider_unavailable", 75, OUTCOME_FAILURE, STATE_FAILED,          \
      "completed", false, "the provider cannot be reached, or keeps failing; try again later")         \
    X(REASON_AUTH, "auth", 77, OUTCOME_FAILURE, STATE_FAILED, "completed", false,                      \
      "a secret is missing or was refused")                                                            \
    X(REASON_BUDGET, "budget", 78, OUTCOME_FAILURE, STATE_FAILED, "completed", false,                  \
      "the budget is used up")                                                                         \
    X(REASON_DISK, "disk", 1, OUTCOME_FAILURE, STATE_FAILED, "completed", false,                       \
      "the disk is full, or the run used more disk space than it may")                                 \
    X(REASON_TIMEOUT, "timeout", 124, OUTCOME_FAILURE, STATE_FAILED, "completed", false,               \
      "a deadline passed")                                                                             \
    X(REASON_NOT_EXECUTABLE, "not_executable", 126, OUTCOME_FAILURE, STATE_FAILED, "failed", false,    \
      "the harness program cannot be executed")                                                        \
    X(REASON_NOT_FOUND, "not_found", 127, OUTCOME_FAILURE, STATE_FAILED, "failed", false,              \
      "the harness program was not found")                                                             \
    X(REASON_INTERRUPTED, "interrupted", 130, OUTCOME_FAILURE, STATE_CANCELED, "failed", true,         \
      "interrupted by Ctrl-C, or cinch died; the run can be resumed")                                  \
    X(REASON_CANCELLED, "cancelled", 130, OUTCOME_FAILURE, STATE_CANCELED, "failed", false,            \
      "cancelled on request; final")                                                                   \
    X(REASON_KILLED, "killed", 130, OUTCOME_FAILURE, STATE_CANCELED, "failed", false,                  \
      "ended without grace by a second signal")                                                        \
    X(REASON_TERMINATED, "terminated", 143, OUTCOME_FAILURE, STATE_CANCELED, "failed", true,           \
      "cinch got SIGTERM; the run can be resumed")
/* clang-format on */

enum reason {
    REASON_NONE, /* not decided yet: the run goes on */
#define X(reason, word, exit, outcome, state, status, resumable, text) reason,
    REASON_LIST(X)
#undef X
        REASON_MAX
};

enum outcome { OUTCOME_SUCCESS, OUTCOME_FAILURE, OUTCOME_NEEDS_HUMAN };
enum run_state { STATE_SUCCEEDED, STATE_FAILED, STATE_CANCELED };

/* How the harness process ended. */
enum engine_end {
    ENGINE_NOT_ENDED, /* never started, or its end is not known */
    ENGINE_EXITED,    /* value: exit code */
    ENGINE_SIGNALLED, /* value: signal number */
};

struct engine_exit {
    enum engine_end end;
    int value;
};

enum exit_profile {
    EXIT_NATIVE, /* the table above */
    EXIT_HOLON,  /* 0 success, 2 needs human, 1 everything else */
    /* the harness' own code (128 + n for signal n), 124 on timeout, 1 when there is none or when
     * the harness said 0 and the run failed all the same */
    EXIT_SCYLLA,
};

const char *reason_word(enum reason r);    /* NULL for REASON_NONE */
const char *reason_meaning(enum reason r); /* NULL for REASON_NONE */
enum reason reason_find(struct str word);  /* REASON_NONE when unknown */
enum reason reason_of_err(enum err_code code);
bool reason_resumable(enum reason r);
const char *reason_outcome(enum reason r); /* "success", "failure", "needs_human" */
const char *reason_state(
    enum reason r); /* "succeeded", "failed", "canceled"; NULL while undecided */
const char *reason_status(
    enum reason r); /* Holon: "completed", "failed"; "running" while undecided */

int reason_exit_status(enum reason r, enum exit_profile profile, struct engine_exit engine);
bool exit_profile_find(const char *word, enum exit_profile *ret); /* "native", "holon", "scylla" */
const char *exit_profile_word(enum exit_profile profile);
