/* SPDX-License-Identifier: MIT
 *
 * The sandbox of a run: from settings and profile to a policy, opened as soon as it is known what
 * to show, so that it comes up while the rest is prepared, and closed when phase execute is over.
 *
 *   (before)   sandbox_session_warm(run)        namespaces, if it is clear that they will be needed
 *   admit      sandbox_session_admit()          the policy; is there anything to confine at all?
 *   configure  whoever wants a listener inside calls sandbox_session_listen()
 *   prepare    whoever makes a view of the workspace fills in run->confine.view
 *              sandbox_session_start(run)       opens it
 *   execute    sandbox_session_await(run, …)    until programs may start, or the view is mounted
 *              sandbox_session_place(run)       for proc_opts.place; NULL: without a sandbox
 *   (after)    sandbox_session_close(run, then) by phases.c, before any later phase;
 *              sandbox_session_wait(run, then)  and before the run has ended
 *   finish     sandbox_session_report(run, …)   for the manifest
 *
 * Programs that cinch starts for the agent (tools, checks) go into the same sandbox, with a layer
 * of their own each:
 *
 *   run_txns_open(run, &t, e);  txn_begin(t, &x, e);           run_priv.h, workspace/txn.h
 *   place = sandbox_place(sandbox_session_sandbox(run), run_txn_layer(run, a, x));
 *                                    without a sandbox they work in txn_copy(x)
 *
 * There is a sandbox also when the adapter starts no program, if the task names programs of its
 * own; then the gateway listens outside, because it is cinch that talks to the model.
 */
#pragma once

#include "base/err.h"
#include "proc/proc.h"
#include "sandbox/sandbox.h"

struct json;
struct run;
struct summary;

/* The sockets, at most two, are the callee's. */
typedef void sandbox_session_take_fn(struct run *run, const int *fds, size_t n);

struct sandbox_session {
    struct sandbox_policy policy; /* mode SANDBOX_OFF: there is none */
    /* path NULL: the workspace itself, where it is. */
    struct sandbox_view view;
    sandbox_session_take_fn *on_listener; /* takes the sockets */
    int spare_fd;                         /* the one outside; -1: none */
    bool both; /* it is needed beside the one inside, not in place of it */
    int port;
    const char **denied; /* attempts that were seen; NULL-terminated, in the arena */
    size_t n_denied;

    struct sandbox *box;
    struct proc_place place;
    bool shown;     /* sandbox_session_start() is over */
    bool open;      /* programs go inside */
    bool closing;   /* sandbox_session_close() is over */
    int copies_fd;  /* where transactions have copies, without overlays; -1: nowhere */
    struct err why; /* it failed before it was shown; code ERR_OK: it did not */
    struct sandbox_report report;
    void (*waiting)(struct run *run); /* for the view to stand, or to fail; NULL: nobody */
    void (*then)(struct run *run);
    struct container *container; /* of the agent, when its adapter is an image; run/image.h */
    const struct json *image;    /* what the engine says of it; NULL: not known yet */
};

/* Of the listener inside; beyond the ports that the kernel hands out by itself. Where the network
 * may be lost it is a port that is free outside, too, and kept. */
#define SANDBOX_SESSION_PORT 61161

/* Attempts that are listed; a program that tries a thousand times has one problem. */
#define SANDBOX_SESSION_DENIED_MAX 100

/* What sandbox_session_await() waits for. Programs may be requested before the view is mounted:
 * they wait inside. That is not done where the sandbox may be degraded, which they would have to
 * know. */
enum sandbox_session_until { SANDBOX_SESSION_ENTER, SANDBOX_SESSION_MOUNTED };

/* Has the settings, and no record yet. What goes wrong is told by sandbox_session_start(). */
void sandbox_session_warm(struct run *run);
int sandbox_session_admit(struct run *run, struct err *e) MUST_USE;
/* Will programs have a network of their own? Then 127.0.0.1:*ret_port is all that they reach, and
 * what listens there is given to `take` when the sandbox stands; where it is us who ask the model,
 * with one for us. 0: they will not. */
int sandbox_session_listen(struct run *run, sandbox_session_take_fn *take, int *ret_port,
                           struct err *e) MUST_USE;
/* Something that the agent tried and was refused, for the manifest. */
void sandbox_session_denied(struct run *run, const char *what);

/* Opens it, or finds that none is wanted. 0: it comes up while the run goes on; 1: what holds has
 * to be known first, run_phase_done() follows. Where there can be none and there must be, the run
 * has failed by the time that sandbox_session_await() is over. */
int sandbox_session_start(struct run *run, struct err *e) MUST_USE;
/* Calls go_on, once, before it returns or later; it finds a cause when there is no sandbox and
 * there must be. One waits at a time. */
void sandbox_session_await(struct run *run, enum sandbox_session_until until,
                           void (*go_on)(struct run *run));
/* The run ends: who waits, waits no longer. */
void sandbox_session_interrupt(struct run *run);

/* The sandbox, to be asked for its directories once it stands; NULL: there is none. */
struct sandbox *sandbox_session_sandbox(const struct run *run);
const struct proc_place *sandbox_session_place(const struct run *run);
/* Files of the run that the agent is told about: to read, to write; NULL-terminated. */
const char *const *sandbox_session_own_read(struct run *run);
const char *const *sandbox_session_own_write(struct run *run);
/* The listener of the container, which is the callee's. */
void sandbox_session_take_listener(struct run *run, int fd);
/* The container is gone. */
void sandbox_session_container_closed(struct run *run);
/* Who the agent is inside; NULL: whoever we are. */
const char *sandbox_session_user(const struct run *run);

/* Nobody shall enter any more. True: somebody is still inside, then() comes when all are dead.
 * Else it goes away while the run goes on. */
bool sandbox_session_close(struct run *run, void (*then)(struct run *run));
/* True: it is not gone yet, then() comes when nothing is left of it. */
bool sandbox_session_wait(struct run *run, void (*then)(struct run *run));
void sandbox_session_done(struct run *run);
void sandbox_session_report(struct run *run, struct summary *s);
