/* SPDX-License-Identifier: MIT
 *
 * The sandbox of a run: from settings and profile to a policy, opened as soon as it is known what
 * to show, so that it comes up while the rest is prepared, and closed when phase execute is over.
 *
 *   admit      confine_admit()          the policy; is there anything to confine at all?
 *   configure  whoever wants a listener inside calls confine_listen()
 *   prepare    whoever makes a view of the workspace fills in run->confine.view
 *              confine_start(run)       opens it
 *   execute    confine_await(run, …)    when programs may be started, or when the view stands
 *              confine_place(run)       for proc_opts.place; NULL: without a sandbox
 *   (after)    confine_close(run, then) by machine.c, before any later phase
 *   finish     confine_report(run, …)   for the manifest
 *
 * Programs that cinch starts for the agent (tools, checks) go into the same sandbox, with a layer
 * of their own each:
 *
 *   run_txns_open(run, &t, e);  txn_begin(t, &x, e);           run_priv.h, workspace/txn.h
 *   opts.place = run_txn_place(run, x);                        NULL: without a sandbox,
 *   opts.cwd = opts.place ? run->settings.workspace : txn_copy(x);
 *
 * There is a sandbox also when the adapter starts no program, if the task names programs of its
 * own; then the gateway listens outside, because it is cinch that talks to the model.
 */
#pragma once

#include "base/err.h"
#include "proc/proc.h"
#include "sandbox/sandbox.h"

struct run;
struct summary;

struct confinement {
    struct sandbox_policy policy; /* mode SANDBOX_OFF: there is none */
    /* path NULL: the workspace itself, where it is. */
    struct sandbox_view view;
    /* Takes the socket; -1: there is no network inside, so it has to be made outside. */
    void (*on_listener)(struct run *run, int fd);
    const char **denied; /* attempts that were seen; NULL-terminated, in the arena */
    size_t n_denied;

    struct sandbox *box;
    struct proc_place place;
    bool open;     /* programs go inside */
    bool overlays; /* transactions may be overlays, as far as is known */
    int copies_fd; /* else where their copies are; 0: not asked for */
    struct sandbox_report report;
    void (*waiting)(struct run *run); /* for the view to stand, or to fail; NULL: nobody */
    void (*then)(struct run *run);
};

/* Of the listener inside; beyond the ports that the kernel hands out by itself. */
#define CONFINE_PORT 61161

/* Attempts that are listed; a program that tries a thousand times has one problem. */
#define CONFINE_DENIED_MAX 100

/* What confine_await() waits for. Programs may be asked for before the view stands: they wait
 * inside. Not where something may be lost, which they would have to know. */
enum confine_until { CONFINE_ENTER, CONFINE_STANDS };

int confine_admit(struct run *run, struct err *e) MUST_USE;
/* Will the agent have a network of its own? Then 127.0.0.1:CONFINE_PORT is all that it reaches, and
 * what listens there is given to `take` when the sandbox stands. */
bool confine_listen(struct run *run, void (*take)(struct run *run, int fd));
/* Something that the agent tried and was refused, for the manifest. */
void confine_denied(struct run *run, const char *what);

/* Opens it, or finds that none is wanted. 0: it comes up while the run goes on; 1: what holds has
 * to be known first, run_phase_done() follows. Where there can be none and there must be, the run
 * has failed by the time that confine_await() is over. */
int confine_start(struct run *run, struct err *e) MUST_USE;
/* Calls go_on, once, before it returns or later; it finds a cause when there is no sandbox and
 * there must be. One waits at a time. */
void confine_await(struct run *run, enum confine_until until, void (*go_on)(struct run *run));
/* The run ends: who waits, waits no longer. */
void confine_interrupt(struct run *run);

/* The sandbox, to be asked for its directories once it stands; NULL: there is none. */
struct sandbox *confine_sandbox(const struct run *run);
const struct proc_place *confine_place(const struct run *run);
/* With a layer, see sandbox/sandbox.h; in the run's arena. NULL: there is no sandbox. */
const struct proc_place *confine_place_layer(struct run *run, const char *layer);
/* Who the agent is inside; NULL: whoever we are. */
const char *confine_user(const struct run *run);

/* Whether there is anything to close; then() comes when nothing is left of it. */
bool confine_close(struct run *run, void (*then)(struct run *run));
void confine_done(struct run *run);
void confine_report(struct run *run, struct summary *s);
