/* SPDX-License-Identifier: MIT
 *
 * The sandbox of a run: from settings and profile to a policy, opened as soon as it is known what
 * to show, so that it comes up while the rest is prepared, and closed when phase execute is over.
 *
 *   (before)   confine_warm(run)        namespaces, if it is clear that they will be needed
 *   admit      confine_admit()          the policy; is there anything to confine at all?
 *   configure  whoever wants a listener inside calls confine_listen()
 *   prepare    whoever makes a view of the workspace fills in run->confine.view
 *              confine_start(run)       opens it
 *   execute    confine_await(run, …)    when programs may be started, or when the view stands
 *              confine_place(run)       for proc_opts.place; NULL: without a sandbox
 *   (after)    confine_close(run, then) by machine.c, before any later phase;
 *              confine_wait(run, then)  and before the run is over
 *   finish     confine_report(run, …)   for the manifest
 *
 * Programs that cinch starts for the agent (tools, checks) go into the same sandbox, with a layer
 * of their own each:
 *
 *   run_txns_open(run, &t, e);  txn_begin(t, &x, e);           run_priv.h, workspace/txn.h
 *   place = sandbox_place(confine_sandbox(run), run_txn_layer(run, a, x));
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
typedef void confine_take_fn(struct run *run, const int *fds, size_t n);

struct confinement {
    struct sandbox_policy policy; /* mode SANDBOX_OFF: there is none */
    /* path NULL: the workspace itself, where it is. */
    struct sandbox_view view;
    confine_take_fn *on_listener; /* takes the sockets */
    int spare;                    /* the one outside; 0: none */
    bool both;                    /* it is needed beside the one inside, not in place of it */
    int port;
    const char **denied; /* attempts that were seen; NULL-terminated, in the arena */
    size_t n_denied;

    struct sandbox *box;
    struct proc_place place;
    bool shown;     /* confine_start() is over */
    bool open;      /* programs go inside */
    bool closing;   /* confine_close() is over */
    int copies_fd;  /* where transactions have copies, without overlays; 0: nowhere */
    struct err why; /* it failed before it was shown; code ERR_OK: it did not */
    struct sandbox_report report;
    void (*waiting)(struct run *run); /* for the view to stand, or to fail; NULL: nobody */
    void (*then)(struct run *run);
    struct container *container; /* of the agent, when its adapter is an image; run/image.h */
    const struct json *image;    /* what the engine says of it; NULL: not known yet */
};

/* Of the listener inside; beyond the ports that the kernel hands out by itself. Where the network
 * may be lost it is a port that is free outside, too, and kept. */
#define CONFINE_PORT 61161

/* Attempts that are listed; a program that tries a thousand times has one problem. */
#define CONFINE_DENIED_MAX 100

/* What confine_await() waits for. Programs may be asked for before the view stands: they wait
 * inside. Not where something may be lost, which they would have to know. */
enum confine_until { CONFINE_ENTER, CONFINE_STANDS };

/* Has the settings, and no record yet. What goes wrong is told by confine_start(). */
void confine_warm(struct run *run);
int confine_admit(struct run *run, struct err *e) MUST_USE;
/* Will programs have a network of their own? Then 127.0.0.1:*ret_port is all that they reach, and
 * what listens there is given to `take` when the sandbox stands; where it is us who ask the model,
 * with one for us. 0: they will not. */
int confine_listen(struct run *run, confine_take_fn *take, int *ret_port, struct err *e) MUST_USE;
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
/* Files of the run that the agent is told about: to read, to write; NULL-terminated. */
const char *const *confine_own_read(struct run *run);
const char *const *confine_own_write(struct run *run);
/* The listener of the container, which is the callee's. */
void confine_take_listener(struct run *run, int fd);
/* The container is gone. */
void confine_container_closed(struct run *run);
/* Who the agent is inside; NULL: whoever we are. */
const char *confine_user(const struct run *run);

/* Nobody shall enter any more. True: somebody is still inside, then() comes when all are dead.
 * Else it goes away while the run goes on. */
bool confine_close(struct run *run, void (*then)(struct run *run));
/* True: it is not gone yet, then() comes when nothing is left of it. */
bool confine_wait(struct run *run, void (*then)(struct run *run));
void confine_done(struct run *run);
void confine_report(struct run *run, struct summary *s);
