/* SPDX-License-Identifier: MIT
 *
 * Programs that the agent has us run (terminals of the Agent Client Protocol): in the sandbox of
 * the run, in its workspace, with the environment of tools, which knows nothing of the gateway.
 *
 *   agent_terminals_ask(run, &ask, then, arg);     then(arg, &reply) comes once, at once or later
 *   agent_terminals_stop(run);                     all are killed; whoever waits is told
 *
 * What they print, on both streams, is kept up to a limit: the end of it, from the beginning of a
 * character on. They count as helpers of the run, which is not over before they are.
 */
#pragma once

#include <stdbool.h>

#include "adapters/driver.h"

struct run;

/* Programs that are there at the same time. */
#define AGENT_TERMINALS_MAX 64

void agent_terminals_ask(struct run *run, const struct driver_ask *ask,
                         void (*then)(void *arg, const struct driver_reply *reply), void *arg);
void agent_terminals_stop(struct run *run);          /* idempotent */
bool agent_terminals_awaited(const struct run *run); /* somebody waits for the end of one */
