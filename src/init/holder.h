/* SPDX-License-Identifier: MIT
 *
 * The holder of a sandbox: the other thing that cinch-init can be ("cinch-init hold").
 *
 *  1. `leave`, which may be left out: leaves the host's namespaces, before it is known what there
 *     will be to see. `hold`: composes the view (init/view.h), answers `ready` with what it passes
 *     out, or `refused`.
 *  2. `enter`: a keeper of its own pid namespace for each program (init/entry.h, init/keeper.h),
 *     which then talks to the supervisor over a socket of its own.
 *  3. When the control socket ends it kills the keepers and leaves. When it is killed, the keepers
 *     die by the parent-death signal, and each takes its pid namespace along. So nothing survives,
 *     also when the supervisor and the holder are killed at the same instant.
 *
 * Commands are obeyed in order, so all of them may be sent before the first is answered. What is
 * refused is said once, and the rest is ignored: the supervisor decides what becomes of those who
 * wanted to enter.
 *
 * In a container (init/inner_listener.h) the namespaces exist already, and new ones are not
 * allowed: there is one keeper at a time, in the holder's own pid namespace, whose first process
 * is the holder. When the keeper has exited, the holder kills what is left.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

/* Serves the control socket until `finish` or end of file; signals as for keeper_run(). */
int holder_run(int control_fd, bool contained, struct err *e) MUST_USE;
