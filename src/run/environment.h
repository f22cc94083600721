/* SPDX-License-Identifier: MIT
 *
 * The environment of the child: clean, explicit, and recorded.
 *
 * In order, later wins: a short list taken from the caller (PATH, LANG, TZ …) or, with inherit, all
 * of it; what keeps programs from waiting for a person (TERM=dumb, pagers and git prompts off); the
 * variables of the evaluation contract (MODEL, TIER, RUN_NUMBER …) and of cinch (CINCH_…); the
 * adapter's; names passed and values set by the task; secrets.
 */
#pragma once

#include "config/secrets.h"
#include "config/settings.h"

/* PATH in an image that sets none. */
#define ENVIRONMENT_IMAGE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct environment_input {
    const struct settings *settings;
    nsec timeout; /* total time of the run */
    const struct secrets *secrets;
    const char *const *caller;
    const struct json *adapter_env; /* names to values */
    const char *const *withheld;    /* names that the child must not get; NULL-terminated */
    const char *run_id;
    const char *home; /* NULL: the caller's */
    const char *prompt_file;
    const char *output_dir;
    const char *config_file;
    const char *artifacts_dir;
    const char *skills_dir;          /* NULL: no skill is installed */
    const char *schema_file;         /* NULL: the answer may be anything */
    const struct json *resource_env; /* names to texts; NULL: none */
    const char *python_env;          /* virtual environment, activated; NULL: none */
    const char *user;                /* of the sandbox; NULL: there is none */
    const char *workspace;           /* as the program sees it */
    /* It runs on another system, which has a PATH, a HOME and users of its own. */
    bool foreign;
    /* The same, but it is our sandbox: variables of its image, a list of "NAME=value"; NULL: the
     * host's system. */
    const struct json *image_env;
};

struct environment {
    char **envp; /* NULL-terminated, in the arena */
    /* for evidence/environment.json: [{name, value, origin}], secrets without value */
    struct json *names;
};

/* Whether the names that the settings pass and set can be names of variables. */
int environment_names(const struct settings *s, struct err *e) MUST_USE;

/* ERR_CONFIG for a name that is none. */
int environment_build(struct arena *a, const struct environment_input *in, struct environment *ret,
                      struct err *e) MUST_USE;
