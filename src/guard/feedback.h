/* SPDX-License-Identifier: MIT
 *
 * struct feedback: what an agent is told on the way, beside the result of a tool.
 *
 *   feedback_new(&opts, &f, e);
 *   feedback_after(f, &call, on_text, me, &x);     after every call, ours or native; O(1)
 *   feedback_free(f);
 *
 * Providers, as tasks write them; triggers (any of them is enough): every_n_calls, every_n_seconds,
 * on_file_created (once):
 *   {type: deadline, threshold: 2m, …}      how much time is left
 *   {type: budget, threshold: 0.2, …}       how much of the budget is left
 *   {type: static, text: "…", …}
 *   {type: program, command: […], …}        {summary, observations, suggestions, severity} or text
 *
 * Rendered as
 *   <feedback provider='NAME'>
 *   summary
 *
 *   • category: description
 *
 *   → suggestion
 *   </feedback>
 * blocks joined by a blank line, bounded in length; nothing in a text can end its block early. What
 * was said is in the session's slice "Feedback", a LOG: {provider_name, summary, observations,
 * suggestions, severity, timestamp, call_index, prompt_name, file?}. A session that was taken up
 * goes on where those items end: calls are counted on, and a file is told of once.
 *
 * structured_output, by which an agent gives its answer, is no call in this sense.
 * every_n_seconds is true at once for a provider that never spoke. All providers whose trigger is
 * true speak. A deadline or budget provider speaks only where there is one. A program gets {tool,
 * native, success, call_index, elapsed_s, time_left_s, budget_left} and may print nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

struct helper_host;
struct feedback;
struct feedback_round;
struct state_store;

/* Shares of what was allowed, 0…1; negative: no limit. */
struct feedback_left {
    nsec time;     /* until the deadline; INT64_MAX: there is none */
    nsec elapsed;  /* since the run began */
    double budget; /* the scarcest of tokens, money and calls */
};

struct feedback_call {
    struct str tool;
    const struct json *arguments;
    bool success;
    bool native;
};

struct feedback_callback {
    const char *name;
    int64_t every_n_calls;
    double every_n_seconds;
    /* Text for the agent in `ret`, borrowed until the next call; empty: nothing to say. */
    void (*say)(void *arg, const struct feedback_call *call, struct str *ret);
    void *arg;
};

struct feedback_opts {
    const struct json *providers; /* of the task: a list; NULL: none */
    const struct feedback_callback *callbacks;
    size_t n_callbacks;
    const struct helper_host *host;
    struct state_store *session;
    bool (*exists)(void *arg, struct str path); /* in the workspace */
    struct feedback_left (*left)(void *arg);
    nsec (*now)(void *arg); /* NULL: clock_now() */
    const char *prompt_name;
    void *arg;
    const char *root; /* of the workspace, as tools see it; NULL: the host's cwd, or /workspace */
    /* A provider could not say anything; the call goes on. May be NULL. */
    void (*problem)(void *arg, struct str text);
    const char *file; /* what messages call the task; NULL: they name no place */
};

#define FEEDBACK_TEXT_MAX 4096 /* of one provider; longer is cut and says so */

/* At definition time host, session, exists and left are NULL: the providers are read and judged.
 * ERR_CONFIG for one that makes no sense. */
int feedback_new(const struct feedback_opts *o, struct feedback **ret, struct err *e) MUST_USE;
struct feedback *feedback_free(struct feedback *f); /* accepts NULL, returns NULL */
size_t feedback_len(const struct feedback *f);

/* `say` comes exactly once with all blocks, or with an empty text; at once (then *ret is NULL) or
 * later, unless cancelled. */
void feedback_after(struct feedback *f, const struct feedback_call *call,
                    void (*say)(void *arg, struct str text), void *arg,
                    struct feedback_round **ret);
void feedback_cancel(struct feedback_round *x);
/* All that are under way are cancelled: nobody waits for them any more. */
void feedback_stop(struct feedback *f);
