/* SPDX-License-Identifier: MIT
 *
 * The keeper of one run's process tree: what cinch-init is after its set-up.
 *
 *  1. It is a child subreaper, hence an ancestor of everything its programs start, whatever they
 *     do.
 *  2. It obeys commands from the control socket and reports on it (init/control.h).
 *     In a sandbox it is the first process of a pid namespace, which is the same and more: it can
 *     kill all others with one call, and they die with it.
 *  3. When the control socket ends, however that came about, it kills the tree.
 *
 * Blocking, one thread; it sleeps in poll() until a command or a SIGCHLD comes.
 */
#pragma once

#include "base/err.h"

struct plan;

/* Serves the control socket until `finish` or end of file; returns after the tree is dead. Signals
 * other than SIGCHLD must be ignored and SIGCHLD blocked already. `entry` is the plan by which it
 * came into a sandbox, whose seals every program gets; NULL: there is none. */
int keeper_run(int control_fd, struct plan *entry, struct err *e) MUST_USE;
