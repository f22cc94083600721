/* SPDX-License-Identifier: MIT
 *
 * Resources of a task: something outside of the workspace that exists for one run (a database, a
 * container, a test account). A program opens each before the first model call; when the result of
 * the run is known, it rolls back what a failed run did and closes the resource, in reverse order.
 * A resource may also be an MCP server, whose tools are offered (run_tools_server.c).
 *
 *   execute    resources_open(run, f)   one after the other; then f(run)
 *              resources_stop(run)      an open() under way is cancelled
 *   (after)    resources_close(run, f)  by phases.c, before phase finish
 *
 * docs/task.md has the protocol. The programs run beside cinch, not in the sandbox, which is gone
 * by the time that the result is known.
 */
#pragma once

#include <stdbool.h>

struct json;
struct run;

/* A failure to open is a cause of the run; f() comes in any case, also before this returns. */
void resources_open(struct run *run, void (*then)(struct run *run));
void resources_stop(struct run *run);
/* The caller has no patience: the program under way is cancelled, the next one is started. */
void resources_hurry(struct run *run);
/* True: programs are running, then() follows. False: there is nothing to do (any more). */
bool resources_close(struct run *run, void (*then)(struct run *run));
/* Variables that the resources set for the agent and its tools; NULL: none. */
const struct json *resources_env(const struct run *run);
