/* SPDX-License-Identifier: MIT
 *
 * An adapter whose program does not go: the same profile, or the same command, but a shell starts
 * the program, and sleeps when it has ended. For cinch the shell is the harness: it has answered,
 * its outputs stay open, and it is still there.
 */
#pragma once

#include "ack/scenario_run.h"
#include "sandbox/toolchain_paths.h"

struct hang_fixture {
    const char *adapter_dir;      /* of the changed profile, or NULL */
    const struct json *command;   /* in place of the one that was given; NULL: none was */
    struct toolchain_paths reach; /* the program's own files: the sandbox knows of the shell only */
};

/* Writes below `dir`. `home` is that of the run. ERR_CONFIG when the adapter starts no program. */
int hang_fixture_make(struct arena *a, const struct scenario_run_opts *o, const char *dir,
                      const char *home, struct hang_fixture *ret, struct err *e) MUST_USE;
