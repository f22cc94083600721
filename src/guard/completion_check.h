/* SPDX-License-Identifier: MIT
 *
 * struct completion: whether the task is done when the agent says that it is.
 *
 *   completion_new(&opts, &c, e);
 *   completion_check(c, &claim, on_verdict, me, &x);    after each turn of the agent
 *   completion_free(c);
 *
 * Kinds, as tasks write them: {files: […]}, {command: […], timeout: 60s} (exit 0), {schema: …}, a
 * predicate on the session {session: {slice: plan, min: 1, where: {/status: done}, every: true}},
 * {all: […]}, {any: […]}; several members of one map must all hold. At most max_rounds (10 unless
 * the task says otherwise) further turns. Feedback for the agent is wrapped in <blocker> lines.
 *
 * Checks run one after the other, those that cost nothing first: files, session, schema, command,
 * then `all` and `any`, then those in C. `all` ends with the first that does not hold and tells
 * that one, `any` with the first that does; an empty one holds. Nothing that goes wrong in a check
 * makes a task complete.
 *
 * A predicate counts the items of a slice, or those whose values at the pointers of `where` are the
 * given ones: at least `min` (1, or 0 where there is a `max`), at most `max`; with `every`, no item
 * may be another. A schema is held against the structured output, or against JSON in the text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

struct completion;
struct completion_check;
struct helper_host;
struct state_store;

#define COMPLETION_ROUNDS 10

/* What the agent says. */
struct completion_claim {
    struct str text;
    const struct json *output; /* structured; NULL: none */
    const char *stop_reason;   /* "end_turn", "structured_output" …; NULL: unknown */
};

struct completion_verdict {
    bool complete;
    struct str feedback; /* for the agent; empty: nothing to say, so that no further round helps */
    struct str why;      /* for the record: which checks did not hold */
};

struct completion_callback {
    const char *name;
    /* true: complete. `feedback` may be set otherwise. */
    bool (*check)(void *arg, const struct completion_claim *claim, struct str *feedback);
    void *arg;
};

struct completion_opts {
    const struct json *rules; /* of the task: a map; NULL: none */
    const struct completion_callback *callbacks;
    size_t n_callbacks;
    const struct helper_host *host;
    struct state_store *session;
    bool (*exists)(void *arg, struct str path); /* in the workspace */
    void *arg;
    const char *root; /* of the workspace, as tools see it; NULL: the host's cwd, or /workspace */
    const char *file; /* what messages call the task; NULL: they name no place */
};

#define COMPLETION_TEXT_MAX 8192 /* of the feedback; longer is cut and says so */

/* At definition time host, session and exists are NULL: the rules are read and judged.
 * ERR_CONFIG for what makes no sense. */
int completion_new(const struct completion_opts *o, struct completion **ret,
                   struct err *e) MUST_USE;
struct completion *completion_free(struct completion *c); /* accepts NULL, returns NULL */
bool completion_wanted(const struct completion *c);       /* is anything to be checked? */
int64_t completion_rounds(const struct completion *c);

/* `judged` comes exactly once, at once (then *ret is NULL) or later, unless cancelled. */
void completion_check(struct completion *c, const struct completion_claim *claim,
                      void (*judged)(void *arg, const struct completion_verdict *v), void *arg,
                      struct completion_check **ret);
void completion_cancel(struct completion_check *x);
