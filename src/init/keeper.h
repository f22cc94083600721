/* SPDX-License-Identifier: MIT
 *
 * The keeper of one run's process tree: what cinch-init is after its set-up.
 *
 *  1. It is a child subreaper, hence an ancestor of everything its programs start, whatever they
 *     do.
 *  2. It obeys commands from the control socket and reports on it (init/control.h).
 *  3. When the control socket ends, however that came about, it kills the tree.
 *
 * Blocking, one thread; it sleeps in poll() until a command or a SIGCHLD comes.
 */
#pragma once

#include "base/err.h"

/* Serves the control socket until `finish` or end of file; returns after the tree is dead. Signals
 * other than SIGCHLD must be ignored and SIGCHLD blocked already. */
int keeper_run(int control_fd, struct err *e) MUST_USE;
