/* SPDX-License-Identifier: MIT
 *
 * struct settings: everything that decides a run, resolved from the configuration layers into typed
 * fields, before anything is started.
 *
 *   struct settings_input in = { .task_file = "task.yaml", .request = tree_of_the_command_line };
 *   settings_load(arena, &in, &s, e);
 *
 * The same tree of keys is used by every layer: a task file, a site file and the command line say
 * the same things in the same words (docs/task.md). Shorthands are widened first: `prompt: "text"`,
 * `workspace: dir`, `output: dir`, `secrets: [NAME]`.
 *
 * Relative paths are relative to the file that says them, and to the current directory when they
 * come from the command line; the fields here are absolute. Nothing here touches the output
 * directory.
 */
#pragma once

#include <stdbool.h>

#include "adapters/profile.h"
#include "base/clock.h"
#include "base/json.h"
#include "run/layers.h"

enum tristate { TRI_UNSET, TRI_FALSE, TRI_TRUE };

struct settings_input {
    const char *task_file;   /* NULL: none */
    const char *config_file; /* the Scylla dictionary (tier_id, test_id, api_keys …); NULL: none */
    struct json *request;    /* layer `request`; NULL: none */
    const struct json *rest; /* list: what stood after "--"; NULL: nothing; needs a request */
    const char *const *adapter_dirs; /* NULL-terminated; more places for profiles */
    const char *site_dir;            /* NULL: /etc/cinch */
    const char *user_dir;            /* NULL: no user layer */
};

struct settings {
    struct layers layers;
    struct json *tree; /* merged */
    struct profile_list profiles;
    /* NULL when the adapter is unknown or not given: see settings_adapter() */
    const struct profile *profile;

    const char *name;
    const char *adapter;
    const char *model; /* NULL: the harness' own choice */
    const struct json *command;
    const struct json *args;

    struct str prompt_text; /* ptr NULL: see prompt_file */
    const char *prompt_file;
    const char *prompt_name;
    enum prompt_delivery delivery;

    const char *workspace;
    const char *output_dir; /* NULL: a new directory below the user's state */

    nsec timeout, first_output, idle; /* 0: off, but for timeout, which is always set */
    nsec grace, drain;

    const struct json *env_set;  /* names to values */
    const struct json *env_pass; /* names taken from the caller */
    bool env_inherit;
    const struct json *secret_names;
    const struct json *secret_files;
    const struct json *api_keys; /* names to values; never recorded */
    enum home_kind home;
    const char *exit_profile;

    const char *test_id, *tier, *tier_name, *tier_prompt;
    int64_t run_number; /* 0: not given */
    enum tristate tools_enabled, delegation_enabled;
};

/* ERR_CONFIG (65) for a wrong file, ERR_USAGE (64) for a wrong request, ERR_INPUT (66) for a file
 * that is missing. An unknown adapter is not an error here. */
int settings_load(struct arena *a, const struct settings_input *in, struct settings *ret,
                  struct err *e) MUST_USE;

/* The profile, or why there is none. */
int settings_adapter(const struct settings *s, struct err *e) MUST_USE;

/* The normalised task for task.json: the merged tree without secrets. */
struct json *settings_task(struct arena *a, const struct settings *s);
