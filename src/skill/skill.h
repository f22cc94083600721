/* SPDX-License-Identifier: MIT
 *
 * struct skill: knowledge that a harness picks up from its skills folder. Either a plain skill (a
 * SKILL.md, alone or in a directory with its files) or a skill package (with assets/runner.json and
 * schemas), which is a task of its own: inputs, parameters and an output contract.
 *
 * What a run does with one, phase by phase:
 *
 *   admit      skill_open("skills/pdf-tables", NULL, &s, e);     directory, .md file or zip archive
 *              skill_admit(s, engine, 0, &mode, e);              engine and mode are allowed
 *              skill_bind(a, s, &request, &values, e);           skill_input.h: values
 *   configure  skill_engine_config(a, s, engine, &tree, &source, e);
 *   prepare    skill_install(s, skills_fd, &opts, e);            skill_install.h
 *              skill_stage(a, &values, run_fd, run_dir, e);      skill_input.h
 *   context    skill_resolve(a, s, run_fd, run_dir, &values, e); skill_input.h
 *              skill_prompt(s, &opts, &text, e);                 skill_prompt.h
 *   execute    skill_runtime_prefix(a, s)                        skill_engine.h
 *   parse      skill_contract(a, s, mode)                        skill_contract.h: the schema
 *              skill_answer_read(a, s, value, &answer)
 *   gate       skill_artifacts(a, s, answer.data, &root, &list, e);      skill_artifact.h
 *   finish     skill_free(s);
 *
 * Opening reads the whole package into memory and checks all of it; nothing is written. Ownership:
 * all that a skill points to lives as long as it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "skill/skill_card.h"
#include "skill/skill_manifest.h"

struct json;
struct package;
struct schema;
struct skill_engine;

enum {
    SKILL_PLAIN_MAX = 10 << 20,   /* bytes of a plain skill in all */
    SKILL_PACKAGE_MAX = 64 << 20, /* bytes of a package in all, unpacked */
    SKILL_ARCHIVE_MAX = 20 << 20, /* bytes of a zip archive */
};

/* A schema of a package. */
struct skill_schema {
    const char *file;        /* for messages; NULL: the package has none */
    const struct json *tree; /* as its author wrote it */
    struct schema *compiled;
};

struct skill {
    struct arena *arena;
    const char *path;                      /* as it was given */
    const char *name;                      /* of its directory in the skills folder */
    bool single;                           /* one .md file, not a directory */
    struct skill_card card;                /* of SKILL.md */
    const struct skill_manifest *manifest; /* NULL: a plain skill */
    const struct package *package;
    struct skill_schema schemas[SKILL_SCHEMA_MAX];
    struct json *warnings; /* list of sentences for the user */
};

/* ERR_INPUT when there is nothing at the path, ERR_CONFIG "file:line:column: why" when it is no
 * good skill. `name` installs it under another name; NULL: the name of its directory, or the stem
 * of its file (of a SKILL.md: the name that it says). */
int skill_open(const char *path, const char *name, struct skill **ret, struct err *e) MUST_USE;
/* The same for a package in memory, which must outlive the skill; `name` is its directory's. */
int skill_open_package(const struct package *p, const char *name, struct skill **ret,
                       struct err *e) MUST_USE;
struct skill *skill_free(struct skill *s); /* accepts NULL, returns NULL */

/* ERR_CONFIG when two of them have the same name. */
int skill_check_names(const struct skill *const *list, size_t len, struct err *e) MUST_USE;

/* Whether the engine of that name may run it, in the mode: ERR_UNAVAILABLE names what the
 * package supports. Mode 0 asks for the first of auto and interactive that is supported. */
int skill_admit(const struct skill *s, const char *engine, unsigned mode, enum skill_mode *ret,
                struct err *e) MUST_USE;

/* The package's configuration for the engine as a layer, and the file it stands in, for
 * provenance. *ret is NULL when there is none. ERR_CONFIG when it does not parse. */
int skill_engine_config(struct arena *a, const struct skill *s, const struct skill_engine *engine,
                        struct json **ret, const char **ret_source, struct err *e) MUST_USE;

static inline void cleanup_skill(struct skill **s)
{
    *s = skill_free(*s);
}
