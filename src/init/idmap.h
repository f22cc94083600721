/* SPDX-License-Identifier: MIT
 *
 * A user namespace that serves only as a table: who owns a file on disk → who owns it as seen
 * through an idmapped mount. One owner and one group change places with the sandbox's; all others
 * stay who they are.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct mounts_shift;

/* Opens the namespace for s->uid … into s->fd. `host` is the host's root, below which /proc is.
 * Needs the privilege to map any user, hence root. Leaves a dead child to be reaped. */
int idmap_open(int host, struct mounts_shift *s, struct err *e) MUST_USE;
