/* SPDX-License-Identifier: MIT
 *
 * The environment of programs that work beside the agent: policies, feedback, completion checks,
 * tools and tool servers. It is the agent's without what the agent could have prepared: they have a
 * home of their own, search programs and modules only in directories that the agent cannot write,
 * and get no variable that makes an interpreter load further code.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "run/environment.h"

struct run;

struct helper_environment {
    const char *const *envp;   /* with HOME for programs that run outside of the sandbox */
    const char *home;          /* that one */
    bool own_home;             /* each program outside gets a new one below it (helper_home_new) */
    const struct json *inside; /* what differs inside */
    const char *left_out;      /* entries of PATH that were left out; NULL: none */
};

/* Name of the home of helpers that run outside of the sandbox, in the run directory. */
#define HELPER_HOME "helper-home"

/* A new, empty directory below HELPER_HOME, for one program. What an agent without a sandbox left
 * anywhere below it does not matter. */
int helper_home_new(void *run, char out[PATH_MAX], struct err *e) MUST_USE;

int helper_environment_make(struct run *run, struct helper_environment *ret,
                            struct err *e) MUST_USE;
