/* SPDX-License-Identifier: MIT
 *
 * One run: one task, one adapter, one record. The public face of this layer.
 *
 *   struct run_opts opts = { .settings = input, .runs_dir = dir, .environ = environ };
 *   struct run_summary sum;
 *   int r = run_execute(&opts, &sum, e);
 *
 * Blocks until the run has ended and every process of it is gone. Returns 0 when a record was
 * written, whatever the outcome: the summary has the reason and the exit status. A negative code
 * means that the settings were wrong or the output directory could not be used; nothing was started
 * then. If the request names an output directory that can be used, there is a record all the same,
 * and the summary tells of it; else `output_dir` of the summary is empty.
 *
 * SIGINT, SIGTERM and SIGHUP are handled while it runs: the first interrupts, the second kills.
 *
 * The story of a run is the table in phases.c, and that of its main phase in execute_machine.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "config/settings.h"
#include "guard/completion_check.h"
#include "guard/feedback.h"
#include "guard/guard.h"
#include "record/reason.h"
#include "tools/tool_callback.h"

struct orphans;

/* What a watcher may show while the run goes on. */
struct run_view {
    const char *run_id;
    const char *adapter;
    const char *output_dir;
    const char *phase;
    nsec elapsed;
    uint64_t bytes_out, bytes_err;
    int pid;               /* 0: none */
    int64_t calls, tokens; /* of models, by the gateway */
    double cost_usd;
    nsec time_left;    /* until the deadline of the run; 0: there is none */
    double budget_usd; /* limit; 0: none */
};

struct run_watcher {
    void (*phase)(void *owner, const struct run_view *view);    /* entered a phase */
    void (*progress)(void *owner, const struct run_view *view); /* about ten times a second */
    void (*warning)(void *owner, const char *text);
    void (*event)(void *owner, struct str line);         /* of events.jsonl; also a sign of life */
    void (*entry)(void *owner, const struct json *line); /* of transcript.jsonl */
    bool (*cancel)(void *owner); /* about ten times a second: shall the run be cancelled? */
    void *owner;
    /* The agent gave a sign of life: output, an event of its protocol, a call of a model or a tool,
     * or its processes have worked. Often; must be quick. */
    void (*alive)(void *owner, const struct run_view *view);
};

/* Parts of a task that are C functions; they are called from run_execute(). Lists are borrowed. */
struct run_hook_tool {
    const struct json *definition; /* as in a task, without a command */
    struct tool_callback callback;
};

struct run_hooks {
    const struct run_hook_tool *tools;
    size_t n_tools;
    const struct guard_callback *policies;
    size_t n_policies;
    const struct feedback_callback *feedback;
    size_t n_feedback;
    const struct completion_callback *completion;
    size_t n_completion;
};

struct run_opts {
    struct settings_input settings;
    const char *runs_dir; /* where a run without an output directory makes one */
    bool force;
    bool keep_home;
    bool drop_refused; /* a run that is refused leaves no record in a directory of our choice */
    const char *const *environ;
    bool no_signals; /* SIGINT, SIGTERM and SIGHUP are somebody else's */
    /* Allows to kill what a killed cinch-init leaves (proc/orphans.h); NULL in a library. */
    const struct orphans *orphans;
    struct run_watcher watcher;
    struct run_hooks hooks;
};

enum { RUN_MESSAGE_MAX = 480 };

struct run_summary {
    char run_id[40];
    char output_dir[4096];
    enum reason reason;
    int exit_status;               /* by the exit profile */
    char message[RUN_MESSAGE_MAX]; /* why it failed; empty on success */
    nsec took;
};

int run_execute(const struct run_opts *opts, struct run_summary *ret, struct err *e) MUST_USE;
