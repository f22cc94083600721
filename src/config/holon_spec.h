/* SPDX-License-Identifier: MIT
 *
 * Holon specs as tasks (docs/guides/holon.md): `version: v1`, `kind: Holon`, or any file with a
 * `goal`.
 *
 *   metadata.name, skills       name, skills
 *   goal (description, issue)   prompt.text, followed by the context files and the files to write
 *   context.env                 env.set
 *   output.artifacts            output.artifacts; `required` is false where it is not given
 *   constraints.timeout         limits.timeout
 *   constraints.max_steps       limits.calls
 *
 * context.workspace is the path of the workspace inside; which directory that is comes from
 * `--workspace`. In the goal, that path and /holon/output are replaced when the prompt is made
 * (run/holon.h). Keys that are not known are reported and ignored, as Holon does.
 */
#pragma once

#include "config/task_format.h"

bool holon_spec_recognise(const struct task_source *src);
int holon_spec_load(struct arena *a, const struct task_source *src, struct json *notes,
                    struct json **ret, struct err *e) MUST_USE;

/* A project configuration (.holon/config.yaml) is not a task; load says so. */
bool holon_config_recognise(const struct task_source *src);
int holon_config_load(struct arena *a, const struct task_source *src, struct json *notes,
                      struct json **ret, struct err *e) MUST_USE;

/* Paths of the contract, as goals name them. */
#define HOLON_WORKSPACE_PATH "/holon/workspace"
#define HOLON_OUTPUT_PATH    "/holon/output"

/* Replaces every occurrence of the path `from` in *text, where it is not part of a longer name, by
 * `to`. ERR_CONFIG when the text becomes too long for a prompt. */
int holon_replace_path(struct arena *a, struct str from, struct str to, struct str *text,
                       struct err *e) MUST_USE;
