/* SPDX-License-Identifier: MIT
 *
 * The prompt that sets a harness to work on a skill: the line that invokes it (or the text of the
 * skill, for a harness that loads none), then the body.
 *
 *   struct skill_prompt_opts o = { .engine = &engine, .values = &values, .run_dir = "/run",
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
 * and may include files of the package. What is not given prints as nothing, as it does in the
 * engine that the format comes from; `undefined` receives its name.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "template/template.h"

struct skill;
struct skill_engine;
struct skill_values;

struct skill_prompt_opts {
    const struct skill_engine *engine;
    const char *run_dir;               /* as the harness sees it */
    const char *skill_dir;             /* where the skill is installed, as the harness sees it */
    const struct skill_values *values; /* NULL: none */
    struct str goal;                   /* what the user wants in addition; may be empty */
    struct str text; /* the skill itself, where the harness cannot load it; else empty */
    struct template_undefined undefined; /* may be empty */
};

/* Appends to `out`. ERR_CONFIG "assets/runner.json, prompts.codex:3: …". */
int skill_prompt(const struct skill *s, const struct skill_prompt_opts *o, struct buf *out,
                 struct err *e) MUST_USE;
