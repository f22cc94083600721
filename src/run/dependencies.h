/* SPDX-License-Identifier: MIT
 *
 * Python packages that a skill depends on (runtime.dependencies), installed before the run into a
 * virtual environment of the user's cache and shown to the agent read-only.
 *
 * uv installs wheels only, which runs no code of a package. If there is no wheel, the package is
 * built from source in a sandbox of its own, by another `cinch run` that may write to the new
 * environment and reach the package index, and nothing else. An environment is made under a
 * temporary name and renamed, so one that exists is complete.
 *
 * A failure is a warning that names uv and the package: the agent then runs without them.
 */
#pragma once

#include "base/err.h"

struct run;

/* As a phase: 0: nothing to do (more); 1: it goes on and calls run_phase_done(). */
int dependencies_start(struct run *run, struct err *e) MUST_USE;
void dependencies_interrupt(struct run *run);
void dependencies_done(struct run *run);
/* The environment; NULL: there is none. */
const char *dependencies_dir(const struct run *run);
