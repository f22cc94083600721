/* SPDX-License-Identifier: MIT
 *
 * struct helper: one program that does something for the run and answers: bytes to its standard
 * input, bounded bytes from its standard output, an end within a time. Tools, policies, feedback
 * and completion checks that are programs are all helpers.
 *
 *   helper_start(&(struct helper_opts){ .host = host, .argv = argv, .input = json,
 *                                       .max_output = 1 << 20, .timeout = 60 * NSEC_PER_SEC,
 *                                       .done = on_done, .arg = me }, &x, e);
 *
 * `done` comes exactly once, from the loop, when nothing of the program and of what it started is
 * left: whatever it wrote to the workspace has been written by then. The helper is gone after it.
 * helper_cancel() makes that happen soon. A program that prints more than it may, or takes longer,
 * is killed with all of its descendants.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "proc/proc.h"

struct arena;
struct helper;
struct json;
struct loop;

/* What all helpers of a run share; filled in by the run, must outlive them. */
struct helper_host {
    struct loop *loop;
    const struct orphans *orphans; /* of proc_opts; NULL: none */
    /* Where programs run, with the layer of a transaction or NULL; false: right beside us. */
    bool (*place)(void *arg, const char *layer, struct proc_place *ret);
    void *arg;
    const char *const *envp; /* NULL-terminated; nothing of the agent's credentials is in it */
    const struct json *inside_env; /* more variables, for those in such a place; NULL: none */
    const char *cwd;               /* the workspace as programs see it */
    /* Where programs work that run beside a sandbox: the workspace as they see it would be the
     * user's own tree. NULL: at cwd. */
    const char *outside_cwd;
    /* The same for programs that judge the agent: nothing that it can write to. NULL: at cwd. */
    const char *judge_cwd;
    /* Makes a new, empty home for one program that runs beside us: HOME, and in place of judge_cwd
     * the working directory. It is removed with the program, or by the run at its end. NULL: the
     * one in envp. */
    int (*new_home)(void *arg, char out[PATH_MAX], struct err *e);
    /* Entries of PATH that were left out because the agent can write there; NULL: none. */
    const char *left_out;
    /* A helper was started; nothing of it is left. NULL: not counted. */
    void (*began)(void *arg);
    void (*over)(void *arg);
};

enum helper_end {
    HELPER_EXITED,      /* value: its code */
    HELPER_SIGNALLED,   /* value: the signal */
    HELPER_TIMEOUT,     /* took too long and was killed */
    HELPER_FLOOD,       /* printed too much and was killed */
    HELPER_CANCELLED,   /* helper_cancel() */
    HELPER_NOT_STARTED, /* no such program and the like */
};

#define HELPER_STDERR_MAX 8192 /* the last bytes of it are kept */

/* Texts live until `done` returns. */
struct helper_result {
    enum helper_end end;
    int value;
    struct str out; /* at most max_output */
    struct str err;
    const char *why; /* one sentence on an end that is not an exit with 0; else NULL */
    uint32_t leaked; /* processes that outlived it and were killed */
    nsec took;
};

struct helper_opts {
    const struct helper_host *host;
    const char *const *argv; /* argv[0] absolute, or looked up along PATH of the host's envp */
    const struct json *env;  /* more variables: names to scalars; NULL: none */
    const char *layer;       /* of a transaction (workspace/txn.h); NULL: the workspace as it is */
    const char *cwd;         /* NULL: the host's */
    bool outside;            /* right beside us, although there is a sandbox */
    struct str input;        /* copied */
    size_t max_output;       /* 0: HELPER_OUTPUT */
    nsec timeout;            /* 0: HELPER_TIME */
    void (*done)(void *arg, const struct helper_result *r);
    void *arg;
};

#define HELPER_OUTPUT (1u << 20)
#define HELPER_TIME   (60 * NSEC_PER_SEC)

/* Fails only for what can be known at once; `done` does not come then. */
int helper_start(const struct helper_opts *o, struct helper **ret, struct err *e) MUST_USE;
void helper_cancel(struct helper *x);

/* Starts a program of a host in its place, for a caller that talks to it longer than a helper does:
 * host, argv, env, layer, cwd and outside are as above, all else is said by `po`. `a` must outlive
 * the call only. */
int helper_spawn(struct arena *a, const struct helper_opts *o, struct proc_opts *po,
                 struct proc **ret, struct err *e) MUST_USE;
