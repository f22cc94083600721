/* SPDX-License-Identifier: MIT
 *
 * struct skill_manifest: assets/runner.json of a skill package, which says how the skill is run.
 *
 *   {"id": "pdf-tables",                          the name of the skill and of its directory
 *    "execution_modes": ["auto", "interactive"],  at least one; not given: auto
 *    "version": "1.2.0",
 *    "engines": ["codex"], "unsupported_engines": ["gemini"],
 *    "schemas": {"input": "assets/in.json", "parameter": …, "output": …},
 *    "engine_configs": {"codex": "assets/codex_config.toml"},
 *    "entrypoint": {"prompts": {"common": "…", "codex": "…"}, "result_json_filename": "…"},
 *    "mcp": {"required_servers": ["…"]},
 *    "runtime": {"dependencies": ["pandas"], "default_options": {}},
 *    "artifacts": [{"role": "report", "pattern": "report.md", "required": true}],
 *    "max_attempt": 3}
 *
 * Further keys are left alone. Engines are names, not a closed set: which there are is the business
 * of the profiles.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct json;

enum skill_mode {
    SKILL_AUTO = 1u << 0,        /* nobody is asked */
    SKILL_INTERACTIVE = 1u << 1, /* the skill may end a turn with a question */
};

enum skill_schema_kind { SKILL_INPUT, SKILL_PARAMETER, SKILL_OUTPUT, SKILL_SCHEMA_MAX };

struct skill_manifest {
    const char *id;
    const char *version;                    /* NULL when absent */
    const struct json *engines;             /* list; NULL: all */
    const struct json *unsupported_engines; /* list; NULL: none */
    unsigned modes;                         /* of enum skill_mode */
    int64_t max_attempt;                    /* 0 when absent */
    const char *schemas[SKILL_SCHEMA_MAX];  /* paths in the package; NULL when not declared */
    const struct json *prompts;             /* engine or "common" to template; NULL when absent */
    const char *result_json_filename;       /* NULL when absent */
    const struct json *engine_configs;      /* engine to path; NULL when absent */
    const struct json *required_servers;    /* list; NULL when absent */
    const struct json *dependencies;        /* list; NULL when absent */
    const struct json *default_options;     /* NULL when absent */
    const struct json *artifacts; /* list of {role, pattern, required}; NULL when absent */
    const struct json *all;       /* the whole file */
};

/* ERR_CONFIG "file:line:column: why". Lives in the arena. */
int skill_manifest_parse(struct arena *a, struct str text, const char *file,
                         struct skill_manifest *ret, struct err *e) MUST_USE;

/* Whether the package allows the engine. */
bool skill_manifest_allows(const struct skill_manifest *m, struct str engine);

const char *skill_schema_word(enum skill_schema_kind kind); /* "input", "parameter", "output" */
const char *skill_mode_word(enum skill_mode mode);          /* "auto", "interactive" */
