/* SPDX-License-Identifier: MIT
 *
 * An adapter whose program does not go: the same profile, or the same command, but a shell starts
 * the program, and sleeps when it has ended. For cinch the shell is the harness: it has answered,
 * its outputs stay open, and it is still there.
 */
#pragma once

#include "ack/trial.h"
#include "sandbox/reach.h"

struct linger {
    const char *adapter_dir;    /* where the changed profile is; NULL: there is none */
    const struct json *command; /* in place of the one that was given; NULL: none was */
    struct reach reach;         /* the program's own files: the sandbox knows of the shell only */
};

/* Writes below `dir`. `home` is that of the run. ERR_CONFIG when the adapter starts no program. */
int linger_make(struct arena *a, const struct trial_opts *o, const char *dir, const char *home,
                struct linger *ret, struct err *e) MUST_USE;
