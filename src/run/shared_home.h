/* SPDX-License-Identifier: MIT
 *
 * `home: shared` in a sandbox: the agent sees the user's home and works in it, but what it changes
 * goes to a layer in the run directory. When the run ends, only files of conversations
 * (session.files of the profile) and a login that the user has already (auth.host) are written back
 * from it; all else is dropped with the layer.
 *
 *   prepare   shared_home_open()    makes the layer
 *   collect   shared_home_close()   writes back and removes it
 */
#pragma once

#include "base/err.h"

struct run;

/* In the run directory. */
#define SHARED_HOME_LAYER "home-layer"
#define SHARED_HOME_UPPER SHARED_HOME_LAYER "/upper"

/* *ret is the directory for sandbox_policy.home_layer; NULL: the home is not shared. */
int shared_home_open(struct run *run, const char **ret, struct err *e) MUST_USE;
/* A failure only warns. */
void shared_home_close(struct run *run);
