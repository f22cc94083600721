/* SPDX-License-Identifier: MIT
 *
 * The file contract of adapters that are programs or images (driver `contract`): what they find and
 * what they leave. docs/images.md is the contract.
 *
 *   prepare    holon_prepare(run)       the directories, before the sandbox shows them
 *   execute    holon_write_input(run)   spec.yaml, prompts/, context/: to be read, not changed
 *   collect    holon_collect(run)       what was left goes to evidence/adapter/, redacted
 *
 *
 * Runs of other drivers have none of these files: the functions then do nothing. What a goal says
 * about the contract's paths is true for every driver: holon_name_paths().
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct run;

/* Its inputs, below the run's directory while it goes on. */
#define HOLON_INPUT "adapter-input"
/* Where the adapter leaves its files, below the private home. */
#define HOLON_OUTPUT "output"

int holon_prepare(struct run *run, struct err *e) MUST_USE;
int holon_write_input(struct run *run, struct err *e) MUST_USE;
void holon_collect(struct run *run);

/* /holon/output, /holon/workspace and /holon/input/context in a prompt, and the variables for them,
 * become the directories of this run. In an image they are right as they are. */
int holon_name_paths(struct run *run, struct str *prompt, struct err *e) MUST_USE;

/* The directory of the inputs outside; as the adapter sees it; where it leaves its files. */
const char *holon_input_dir(struct run *run);
const char *holon_input(struct run *run);
const char *holon_output(struct run *run);
