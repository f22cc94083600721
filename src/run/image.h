/* SPDX-License-Identifier: MIT
 *
 * A run whose adapter is an image (image:REFERENCE): the agent runs in a container of an engine
 * (sandbox/container.h), not in our own sandbox; programs that cinch starts itself, tools and
 * checks, stay in ours. Both see the same private copy of the workspace.
 *
 *   prepare    image_start(run)     called by sandbox_session_start(); the container comes up
 *   execute    image_place(run)     where the agent is started; image_entry(run): as what
 *   finish     image_report(run)    what the container holds, for the manifest
 *
 * Its end is part of sandbox_session_close().
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct json;
struct proc_place;
struct run;
struct summary;

/* Below the run's directory while it goes on: the socket that ties the container to us. */
#define IMAGE_DOOR "door"

/* Where the contract has them, inside. */
#define IMAGE_INPUT     "/holon/input"
#define IMAGE_WORKSPACE "/holon/workspace"
#define IMAGE_OUTPUT    "/holon/output"

bool image_wanted(const struct run *run);
/* The workspace as the agent sees it, also when it is no image. */
const char *image_workspace(const struct run *run);

int image_start(struct run *run, struct err *e) MUST_USE;
/* NULL: there is no container. */
const struct proc_place *image_place(struct run *run);
/* What is started, and its arguments; NULL before the image is known. */
const char *image_program(void);
const struct json *image_entry(struct run *run);
void image_report(struct run *run, struct summary *s);
