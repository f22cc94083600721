/* SPDX-License-Identifier: MIT
 *
 * Closing the record of a run whose owner is gone (kill -9, power, a crash).
 *
 *   struct recover_report report;
 *   recover_run("out", &report, e);    done by `cinch recover` and before a run reuses a directory
 *
 * Torn and damaged lines are taken out of events.jsonl and transcript.jsonl. Model calls that were
 * under way (open_calls.h) become model.call events that are charged what was reserved for them. A
 * run.recovered event and a missing transcript.stop are added, result.json, metrics.json and
 * manifest.json are written from what is known, and state.json at last. The reason is
 * `interrupted` (resumable), unless the run had already decided its own: manifest.json and
 * state.json are believed.
 *
 * It works from any state of the directory, also with files that are missing or garbage, and may
 * itself be interrupted anywhere and done again. A living owner is refused, a finished record is
 * not touched.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/id.h"
#include "record/reason.h"
#include "record/state.h"

struct json;
struct rundir;

enum recover_result {
    RECOVER_NO_RECORD, /* no such directory, or nothing there that looks like a run */
    RECOVER_ALIVE,     /* the owner lives; nothing was done */
    RECOVER_FINISHED,  /* complete already; nothing was done */
    RECOVER_CLOSED,    /* closed now */
};

struct recover_report {
    enum recover_result result;
    /* With RECOVER_CLOSED; pid also with RECOVER_ALIVE when it is known. */
    char run_id[ID_LEN];
    enum reason reason;
    char phase[STATE_PHASE_MAX]; /* "" when it is not known */
    pid_t pid;
    int64_t torn_bytes, dropped_lines;
};

int recover_run(const char *path, struct recover_report *ret, struct err *e) MUST_USE;

/* The same. `model_call` is called for the context of each model.call event, those included that
 * recovery writes for calls under way; then `complete`, once before the verdict is written, for
 * files that only an upper layer can finish. */
struct recover_port {
    void (*model_call)(void *arg, const struct json *context);
    void (*complete)(void *arg, const struct rundir *d);
    void *arg;
};
int recover_run_with(const char *path, const struct recover_port *port, struct recover_report *ret,
                     struct err *e) MUST_USE;
