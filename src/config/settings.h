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
 * `workspace: dir`, `sandbox: off`, `output: dir`, `secrets: [NAME]`.
 *
 * settings_table.h has one row for each key; most fields here are filled from it.
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
#include "config/layers.h"
#include "sandbox/policy.h"
#include "workspace/workspace.h"

/* Name of the lowest layer: defaults that are recorded in task.json. */
#define SETTINGS_DEFAULT_LAYER "default"
/* Where nothing names an adapter or a command. */
#define SETTINGS_DEFAULT_ADAPTER "basic"

enum tristate { TRI_UNSET, TRI_FALSE, TRI_TRUE };

/* Whose credential the provider sees. */
enum auth_mode {
    AUTH_GATEWAY, /* one that cinch holds */
    AUTH_HOST,    /* the user's own login with the harness */
    AUTH_ENV,     /* variables of the caller's */
};

struct settings_input {
    const char *task_file;   /* file or directory, config/task_format.h; NULL: none */
    const char *config_file; /* the Scylla dictionary (tier_id, test_id, api_keys …); NULL: none */
    struct json *request;    /* layer `request`; NULL: none */
    const struct json *rest; /* list: what stood after "--"; NULL: nothing; needs a request */
    const char *const *adapter_dirs; /* NULL-terminated; more places for profiles */
    const char *site_dir;            /* NULL: /etc/cinch */
    const char *user_dir;            /* NULL: no user layer */
    const char *path; /* searched for programs that are adapters; NULL: PATH of the process */
};

/* How the model is to answer. What is not given is the harness' or the provider's own choice. */
struct sampling {
    double temperature, top_p, presence_penalty, frequency_penalty; /* NAN: not given */
    int64_t max_tokens;                                             /* 0: not given */
    int64_t context;         /* tokens of the model's context window; 0: not said */
    int64_t seed;            /* -1: not given */
    const struct json *stop; /* list of strings, or NULL */
    const char *effort;      /* "none", "minimal" … "max"; NULL: not given */
};

struct workspace_settings {
    enum workspace_kind mode;
    const char *ref;            /* of git; NULL: the tree as it is */
    const struct json *context; /* list of absolute paths; NULL: none */
    const struct json *mounts;  /* list of {source (absolute), target, write}; NULL: none */
    const struct json *roots;   /* list of directories that mounts must be below; NULL: any */
    const char *keep;           /* "keep", "keep-on-failure" or "remove" */
    int64_t max_file;           /* bytes; 0: the default of workspace/diff.h */
    bool savepoints;            /* a turn that fails is rolled back */
};

/* Whether an image is made that has the agent's program in it (image/recipe.h). */
enum image_build {
    IMAGE_BUILD_AUTO, /* if the host's program cannot be used, and the image has none */
    IMAGE_BUILD_NEVER,
    IMAGE_BUILD_ALWAYS,
};

struct sandbox_settings {
    enum sandbox_mode mode;
    const struct json *read, *write, *deny; /* lists of absolute paths; NULL: none */
    enum sandbox_net net;
    const struct json *hosts; /* list of strings, with SANDBOX_NET_HOSTS; else NULL */
    int64_t memory;           /* bytes; 0: no limit */
    int64_t disk;             /* bytes; 0: the default of disk.h */
    int64_t pids;             /* 0: no limit */
    double cpus;              /* 0: no limit */
    enum tristate allow_degraded;
    const char *engine; /* runs images: name or path; NULL: whichever is found */
    const char *image;  /* whose root the agent sees; NULL: the host's programs */
    enum image_build image_build;
};

/* What the run may use up in all; 0: no limit. */
struct budget_settings {
    int64_t tokens_input, tokens_output, tokens_total;
    double usd;
    int64_t calls;     /* of the model */
    bool prompt_bytes; /* reserve a token for each byte of a request */
};

struct throttle_settings {
    int64_t max_attempts;
    nsec base, cap, total;
    int64_t concurrency, per_minute; /* calls at a time, calls a minute; 0: any number */
};

struct gateway_settings {
    const char *upstream;      /* base URL; NULL: not given */
    const struct json *routes; /* list of {model, upstream, format, name, key}; NULL: none. `model`
                                  is a pattern, `key` the name of a variable */
    const struct json *endpoints; /* list of words: files, batches, responses; NULL: none */
    const char *script;           /* absolute path of a scripted model; NULL: none */
    const char *cassette;         /* absolute path of a cassette to replay; NULL: none */
    enum tristate record;         /* into evidence/ */
    double replay_speed;          /* 0: as fast as possible; 1: as it was */
    const char *prices;           /* absolute path of a price table; NULL: the built-in one */
};

/* Where a value of the tree comes from. */
struct settings_origin {
    const char *layer; /* "task", "request" …; NULL: nobody says it */
    const char *file;  /* as messages call it */
    const char *dir;   /* where its relative paths start */
};

struct settings {
    struct layers layers;
    struct json *tree; /* merged */
    struct profile_list profiles;
    /* NULL when the adapter is unknown or not given: see settings_adapter() */
    const struct profile *profile;

    /* A project file that was not read, because it belongs to another user; NULL: none. */
    const char *foreign_project;
    const struct json *notes;   /* list of warnings about the task itself; NULL: none */
    const char *config_warning; /* about keys of the config file; NULL: none */
    const char *name;
    const char *adapter;
    const char *model; /* NULL: the harness' own choice */
    const struct json *command;
    const struct json *acp; /* over that section of the profile */
    const struct json *args;
    enum auth_mode auth;
    bool no_system_prompt; /* the harness' own system prompt is left out */
    bool ask;              /* the tool ask_human is offered */
    bool trust_project; /* the harness may obey all files of its own in the workspace, not only the
                           prose; run/project_config.h */

    struct str prompt_text; /* ptr NULL: see prompt_file */
    const char *prompt_file;
    const char *prompt_name;
    enum prompt_delivery delivery;
    struct sampling sampling;

    /* Kept as they were written, shorthands widened; NULL when not given. */
    const struct json *metadata;    /* map; cinch does not look into it */
    const struct json *run_context; /* map of scalars: ids of the caller; record/events.h */
    const struct json *prompt; /* map: text, file, template, ns, key, name, sections, overrides */
    const struct json *params; /* map: variables of the prompt, parameters of a skill package */
    const struct json *skills; /* list of {path, name} */
    const struct json *inputs; /* map: inputs of a skill package */
    const struct json *instructions, *agents;       /* lists of absolute paths */
    const struct json *tools, *policies, *feedback; /* lists; servers of resources are tools, too */
    const struct json *resources;                   /* list */
    const struct json *completion;                  /* map */
    const struct json *session;       /* map: slices, reducers, restore (absolute path) */
    const struct json *output_schema; /* map, or string: absolute path of a file */
    const struct json *artifacts;     /* list of {path, required} */
    int64_t output_repairs;           /* turns to correct an answer that does not fit */

    const char *workspace;
    struct workspace_settings view;
    struct sandbox_settings sandbox;
    struct gateway_settings gateway;
    struct throttle_settings throttle;
    struct budget_settings budget;
    const char *output_dir; /* NULL: a new directory below the user's state */

    nsec timeout, first_output, idle; /* 0: off, but for timeout, which is always set */
    const char *deadline;             /* a time of the clock; NULL: none. See clock_parse() */
    nsec grace, drain;

    const struct json *env_set;  /* names to values */
    const struct json *env_pass; /* names taken from the caller */
    bool env_inherit;
    const struct json *secret_names;
    const struct json *secret_files;
    const struct json *api_keys; /* names to values; never recorded */
    enum home_kind home;
    const char *exit_profile;

    const char *test_id, *tier, *tier_name, *tier_prompt, *subtest;
    int64_t run_number; /* 0: not given */
    enum tristate tools_enabled, delegation_enabled;
    bool tier_strict; /* eval.strict, an alias of `strict`: set if either is */
    bool strict;      /* what would be a warning about the run as a whole is a failure */
};

/* ERR_CONFIG (65) for a wrong file, ERR_USAGE (64) for a wrong request, ERR_INPUT (66) for a file
 * that is missing. An unknown adapter is not an error here. */
int settings_load(struct arena *a, const struct settings_input *in, struct settings *ret,
                  struct err *e) MUST_USE;

/* Could a task file say this? ERR_CONFIG with the place in `file`. Files that it names are not
 * looked for. */
int settings_check_task(struct arena *a, const struct json *task, const char *file,
                        struct err *e) MUST_USE;

/* The profile, or why there is none. */
int settings_adapter(const struct settings *s, struct err *e) MUST_USE;

/* Does the run have a gateway, because the task or the adapter names something behind it? */
bool settings_gateway(const struct settings *s);

/* Which layer gave section.key (key NULL: the section as a whole). */
struct settings_origin settings_origin(const struct settings *s, struct arena *a,
                                       const char *section, const char *key);

/* Adds a layer that is found later (by a skill), below the task, the request and what is enforced.
 * The merged tree and all fields are recomputed. ERR_CONFIG if the layer sets what a skill may not
 * set. */
int settings_add_layer(struct arena *a, struct settings *s, const char *name, const char *source,
                       const struct json *tree, struct err *e) MUST_USE;

/* The normalised task for task.json: the merged tree without secrets. */
struct json *settings_task(struct arena *a, const struct settings *s);
