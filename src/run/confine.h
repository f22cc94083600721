/* SPDX-License-Identifier: MIT
 *
 * The sandbox of a run: from settings and profile to a policy, opened before the agent is started
 * and closed after it has ended.
 *
 *   admit      confine_admit()          the policy; a contradiction is told before anything exists
 *   configure  whoever wants a listener inside calls confine_listen()
 *   prepare    whoever makes a view of the workspace fills in run->confine.view
 *   execute    confine_open(run, go_on) go_on() is called as soon as programs may be started
 *              confine_place(run)       for proc_opts.place; NULL: without a sandbox
 *              confine_close(run, then)
 *   finish     confine_report(run, …)   for the manifest
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
    bool open; /* programs go inside */
    struct sandbox_report report;
    void (*go_on)(struct run *run);
    void (*then)(struct run *run);
};

/* Of the listener inside; beyond the ports that the kernel hands out by itself. */
#define CONFINE_PORT 61161

/* Attempts that are listed; a program that tries a thousand times has one problem. */
#define CONFINE_DENIED_MAX 100

int confine_admit(struct run *run, struct err *e) MUST_USE;
/* Will the agent have a network of its own? Then 127.0.0.1:CONFINE_PORT is all that it reaches, and
 * what listens there is given to `take` when the sandbox stands. */
bool confine_listen(struct run *run, void (*take)(struct run *run, int fd));
/* Something that the agent tried and was refused, for the manifest. */
void confine_denied(struct run *run, const char *what);
/* Opens it, or finds that none is wanted. Calls go_on before it returns where nothing stands in the
 * way, else later; when there can be no sandbox and there must be, the run has failed and go_on
 * finds a cause. */
int confine_open(struct run *run, void (*go_on)(struct run *run), struct err *e) MUST_USE;
const struct proc_place *confine_place(const struct run *run);
/* Who the agent is inside; NULL: whoever we are. */
const char *confine_user(const struct run *run);
/* then() comes when nothing is left of it. */
void confine_close(struct run *run, void (*then)(struct run *run));
void confine_done(struct run *run);
void confine_report(struct run *run, struct summary *s);
