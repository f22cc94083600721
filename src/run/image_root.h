/* SPDX-License-Identifier: MIT
 *
 * --image REF: the agent, its tools and checks run in our own sandbox, on the root file system of
 * an image instead of the host's. (An adapter that is an image, image:REF, is run/image.h.)
 *
 *   admit      image_root_admit(run)      is there such a reference, and a sandbox to have it?
 *   prepare    image_root_start(run)      unpacks it, if that was not done before; then finds what
 *                                         to mount beside it so that the harness works, or has an
 *                                         image built that has the harness in it (image/build.h)
 *   execute    image_root_launch(run)     the harness by the path that it has inside
 *   finish     image_root_report(run)     evidence/image.json
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct json;
struct run;

bool image_root_wanted(const struct run *run);
int image_root_admit(struct run *run, struct err *e) MUST_USE;
/* Is the harness to be looked for in the image, or in one that is built? `found`: the host has
 * it. */
bool image_root_brings_program(const struct run *run, bool found);
/* 0: done; 1: it is being unpacked or built, and run_phase_done() follows. */
int image_root_start(struct run *run, struct err *e) MUST_USE;
void image_root_interrupt(struct run *run);
void image_root_done(struct run *run);

/* Variables of the image: a list of "NAME=value"; NULL: there is no image. */
const struct json *image_root_env(const struct run *run);
/* Where a program of the host is inside. */
const char *image_root_inside(struct run *run, const char *path);
/* Changes run->launch.argv and run->paths.executable. */
void image_root_launch(struct run *run);
void image_root_report(struct run *run);
