/* SPDX-License-Identifier: MIT
 *
 * The Python packages of a skill's runtime.dependencies: the commands of uv that install them into
 * a virtual environment, the key of that environment in a cache, the hosts that an installation
 * needs, and what uv reports when it fails.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

struct json;
struct skill;

/* List of requirements; NULL: the skill has none. */
const struct json *skill_dependencies(const struct skill *s);

/* What decides the content of the environment. The order of the list does not matter. */
struct skill_dependencies_key {
    const char *uv_version;       /* as "uv --version" prints it */
    const char *python;           /* real path of the interpreter; NULL: uv's choice */
    const char *const *variables; /* "NAME=value"; those of uv count (UV_…) */
};
const char *skill_dependencies_key(struct arena *a, const struct skill *s,
                                   const struct skill_dependencies_key *of);

/* Makes an empty environment. It can be renamed afterwards. */
const char *const *skill_uv_venv(struct arena *a, const char *python, const char *dir);
/* Installs into it. wheels_only: without running code of a package. */
const char *const *skill_uv_install(struct arena *a, const struct skill *s, const char *dir,
                                    bool wheels_only);

/* May a package be installed after all if it is built from source? */
bool skill_uv_lacks_wheel(struct str output);
/* Reason of a failure in one line, with the requirements that uv names: "uv could not install
 * pandas>=2: …". */
const char *skill_uv_failure(struct arena *a, const struct skill *s, struct str output);

/* Where uv looks for packages: the variables UV_DEFAULT_INDEX, UV_INDEX, UV_INDEX_URL,
 * UV_EXTRA_INDEX_URL and UV_FIND_LINKS, and the same keys of its configuration file. */
struct skill_uv_sources {
    const char *const *hosts; /* "HOST" or "HOST:PORT"; NULL-terminated */
    const char *const *paths; /* absolute, of files and directories; NULL-terminated */
};
/* config: uv.toml as text; empty: there is none, or it cannot be read. */
void skill_uv_sources(struct arena *a, const char *const *variables, struct str config,
                      struct skill_uv_sources *ret);
