/* SPDX-License-Identifier: MIT
 *
 * Files in a workspace that a harness reads by itself: settings, hooks, plugins, MCP servers,
 * environment files. Unless the user trusts the project (agent.project_config: trusted,
 * --trust-project) the harness is started so that it obeys none of them, by what the profile says
 * under `project_config` (docs/adapters.md), and gets only the prose:
 *
 *   admit      project_admit(run)         warns where the profile declares nothing
 *   prepare    project_prose(run)         instructions and skills go to the run's home
 *              project_file(run, …)       values of the profile, merged last into a file
 *              project_locked(run)        what the agent must not change of its own configuration
 *   execute    project_environment(run)   variables of the profile
 *
 * In arguments of a profile {project_trusted} has a value where the project is trusted. What a task
 * brings is not affected: it is installed into the run's home.
 */
#pragma once

#include "adapters/expand.h"
#include "base/err.h"
#include "base/json.h"

struct run;

/* Warns if the harness may obey files of the workspace that the profile does not declare. */
void project_admit(struct run *run);
/* A configuration file of the harness with the profile's values for (un)trusted projects over it.
 */
int project_file(struct run *run, const char *name, const struct json *tree, struct json **ret,
                 struct err *e) MUST_USE;
/* Adds the profile's variables to `env`. */
int project_environment(struct run *run, const struct placeholders *vars, struct json *env,
                        struct err *e) MUST_USE;
/* Copies instructions and skills of the workspace to where the harness finds them. There must be a
 * view of the workspace (run_open_workspace). What cannot be copied is left out with a warning. */
int project_prose(struct run *run, struct err *e) MUST_USE;
/* Moves files of the workspace out of the harness' sight that it would obey and has no switch for,
 * once the view stands and before it is started; moves them back when it has read its configuration
 * (`over`: the run has ended, all of them; idempotent). What the agent made in their place stays.
 * In place nothing is moved, since it would be the user's own tree: the files are hidden by
 * project_masked(). */
bool project_hides(const struct run *run);
int project_hide(struct run *run, struct err *e) MUST_USE;
void project_reveal(struct run *run, bool over);
/* Moves back what a dead run has hidden below `root`, by what its PROJECT_HIDDEN_NOTE says. */
#define PROJECT_HIDDEN_NOTE "work/hidden.json"
void project_recover(int root, const struct json *note);
/* The same as paths of the workspace for the sandbox to cover; NULL-terminated. ERR_DENIED where
 * they are too many. */
int project_masked(struct run *run, const char *const **ret, struct err *e) MUST_USE;
/* Creates what shells read when they start, and the profile's `home_locked`, empty, where policies
 * decide about the agent's calls: project_locked() then contains them. */
int project_lock_shells(struct run *run, struct err *e) MUST_USE;
/* Absolute paths below the run's home that the agent may read and not write; NULL-terminated. */
const char *const *project_locked(struct run *run);
