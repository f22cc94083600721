/* SPDX-License-Identifier: MIT
 *
 * Skills into the folder where a harness looks for them.
 *
 *   struct skill_install_opts o = { .patch = { .mode = mode, .artifacts_dir = "/run/artifacts" } };
 *   skill_install(s, skills_fd, &o, e);                <folder>/<name>/SKILL.md and all its files
 *
 * All or nothing: the files are written beside their place and renamed into it. Installing the same
 * again changes nothing. Where something else is under the name it is ERR_EXISTS, or replaced when
 * `replace` asks for it, as before another attempt in the same home.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "skill/skill_patch.h"

struct package;
struct skill;

struct skill_install_opts {
    struct skill_patch patch; /* for packages; a plain skill is installed as it is */
    bool replace;
};

/* `skills_fd` is the skills folder; ERR_OUTPUT when it cannot be written to. */
int skill_install(const struct skill *s, int skills_fd, const struct skill_install_opts *o,
                  struct err *e) MUST_USE;

/* The files of a package as they are, under a name that skill_name_ok() takes. */
int skill_install_package(const struct package *p, const char *name, int skills_fd, bool replace,
                          struct err *e) MUST_USE;
