/* SPDX-License-Identifier: MIT
 *
 * The prompt that sets a harness to work on a skill: the line that invokes it, then the body.
 *
 *   struct skill_prompt_opts o = { .engine = "codex", .values = &values, .run_dir = "/run",
 *                                  .skill_dir = "/home/.agents/skills/pdf-tables" };
 *   skill_prompt(s, &o, &text, e);
 *
 * Body: the template entrypoint.prompts.<engine> of the package, else entrypoint.prompts.common,
 * else a list of inputs and parameters; then the goal, if one is given. Templates (template.h) see
 *
 *   skill        the manifest as it is, with id, name, description, version and path
 *   skill_id     its name
 *   input        inputs; a file is its absolute path
 *   parameter    parameters
 *   params_json  both, as JSON text
 *   input_file   name of the file in run_dir that holds the same (skill_stage() writes it)
 *   run_dir, skill_dir
 *
 * and may include files of the package. A variable that is not defined is an error, so a template
 * that uses a parameter which may be left out says {{ parameter.x | default('') }}.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct skill;
struct skill_values;

struct skill_prompt_opts {
    const char *engine;
    const char *run_dir;               /* as the harness sees it */
    const char *skill_dir;             /* where the skill is installed, as the harness sees it */
    const struct skill_values *values; /* NULL: none */
    struct str goal;                   /* what the user wants in addition; may be empty */
};

/* Appends to `out`. ERR_CONFIG "assets/runner.json, prompts.codex:3: 'x' is undefined". */
int skill_prompt(const struct skill *s, const struct skill_prompt_opts *o, struct buf *out,
                 struct err *e) MUST_USE;
