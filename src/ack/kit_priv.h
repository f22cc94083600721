/* SPDX-License-Identifier: MIT
 *
 * What the parts of the kit share.
 */
#pragma once

#include "ack/kit.h"

/* The value of a variable; NULL: not set. */
const char *kit_variable(const char *const *env, const char *name);

/* PATH for an adapter: its own directories first. */
const char *kit_path(struct arena *a, const struct kit_adapter *adapter, const char *const *env);

/* How long a trial may take until it is given up; timeouts of its own end it before. */
nsec kit_patience(const struct kit_opts *o, const struct scenario *s);

/* Why this scenario is not tried on that adapter; NULL: it is. In `a`, or as old as the adapter. */
const char *kit_skip(struct arena *a, const struct kit_opts *o, const struct kit_adapter *adapter,
                     const struct scenario *s);
