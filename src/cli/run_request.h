/* SPDX-License-Identifier: MIT
 *
 * The command line of `cinch run`, `config` and `task` as a configuration layer: options and the
 * goal or task file become one tree of settings keys, and from there on are treated like any other
 * layer.
 */
#pragma once

#include "cli/option.h"
#include "config/settings.h"
#include "config/settings_table.h"

/* Options that decide a run; the three commands accept the same ones. Made from the table of
 * settings, in the arena. */
const struct option *request_run_options(struct arena *a);
const struct option *request_config_options(struct arena *a);
const struct option *request_task_options(struct arena *a);
/* The option of a row that has one. */
struct option request_option(struct arena *a, const struct setting *s);
extern const struct positional request_positionals[];

/* `task` is the goal or the name of a task file, or NULL. The strings live in the arena or in argv.
 * Reads standard input when the prompt is "-". */
int request_read(struct arena *a, const struct options *opt, const char *task,
                 struct settings_input *ret, struct err *e) MUST_USE;

/* Directories with adapter profiles: the user's, which need not be there, then those of
 * --adapter-dir, which must: ERR_INPUT. NULL-terminated. `opt` may be NULL. */
int request_adapter_dirs(struct arena *a, const struct options *opt, const char *const **ret,
                         struct err *e) MUST_USE;

/* $XDG_CONFIG_HOME/cinch or ~/.config/cinch; NULL when there is no home. */
const char *request_user_dir(struct arena *a);
/* $XDG_STATE_HOME/cinch/runs or ~/.local/state/cinch/runs; below the temporary directory without
 * home. */
const char *request_runs_dir(struct arena *a);
