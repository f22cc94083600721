/* SPDX-License-Identifier: MIT
 *
 * struct definition: what a task defines beyond plain settings, compiled: the prompt (text,
 * template or sections), the tools it offers, the output contract, skills. One for a run, and the
 * same one for `cinch task check` and `cinch task render`.
 *
 *   definition_open(&d, arena, &settings, e);     before there is a record: files read and compiled
 *   definition_bind(&d, e);                       admit: prompt rendered, inputs found
 *   definition_install(&d, &place, e);            prepare: skills and their inputs
 *   definition_prompt(&d, &place, &text, e);      context: what the agent is asked
 *   definition_done(&d);
 *
 * Everything that is wrong with the task is ERR_CONFIG or ERR_PARSE (65) with file and position, a
 * limit of templates included; what is missing is ERR_INPUT (66). Nothing outside the place is
 * written. All memory is the arena's, but for what definition_done() frees.
 */
#pragma once

#include "config/settings.h"
#include "prompt/section.h"
#include "skill/skill.h"
#include "skill/skill_engine.h"
#include "skill/skill_input.h"

struct schema;

enum { DEFINITION_PROMPT_MAX = 16 << 20 /* bytes; a person can not write more */ };

struct definition_skill {
    struct skill *skill;
    const char *file; /* which layer names it, for messages */
    bool wanted;      /* it is installed: no section names it, or one that is shown does */
};

struct definition {
    struct arena *arena;
    struct settings *settings;
    struct json *warnings;         /* list of sentences for the user */
    struct template_limits limits; /* all 0: the usual ones; definition_open_limited() */

    /* the prompt */
    struct section_tree *sections; /* NULL: the prompt has none */
    int dir_fd;                    /* of the file that says the prompt; for include */
    struct str goal;               /* rendered by definition_bind(); ptr NULL: nobody gave one */
    struct section_rendering rendering;
    struct json *tools; /* list of {name, description, parameters}, as they are offered */

    /* what must come out; NULL: anything */
    const struct json *contract;
    struct schema *schema;
    const struct json *asked;  /* the contract in the form that the harness takes */
    const struct json *strict; /* see structured_options; NULL: not asked in that form */

    /* skills */
    struct definition_skill *skills;
    size_t skills_len;
    const struct skill *package; /* the one that is a task of its own; NULL: none */
    struct skill_engine engine;  /* how packages see the adapter */
    enum skill_mode mode;
    struct skill_values values;
};

/* Reads what the settings name: overrides, the output schema, skills. A package's configuration of
 * the harness becomes a layer of the settings. */
int definition_open(struct definition *d, struct arena *a, struct settings *s,
                    struct err *e) MUST_USE;
/* The same with tighter limits for templates: for whoever reads tasks of strangers. */
int definition_open_limited(struct definition *d, struct arena *a, struct settings *s,
                            const struct template_limits *limits, struct err *e) MUST_USE;
void definition_done(struct definition *d); /* idempotent; also after a failed open */

/* Renders the prompt and binds inputs and parameters of a package. */
int definition_bind(struct definition *d, struct err *e) MUST_USE;

/* Where a run keeps things. `path` is what the agent calls the directory of the run. */
struct definition_place {
    int run_fd;
    const char *run_dir;
    int home_fd;            /* -1: nothing can be installed */
    const char *skills_dir; /* as the agent sees it; NULL: the adapter has none */
};

/* Where skills of a run are, below its home: where the harness looks for them, if it does. */
const char *definition_skills_folder(const struct profile *p);

/* Installs the wanted skills into the adapter's skills folder and copies inputs to uploads/. */
int definition_install(struct definition *d, const struct definition_place *place,
                       struct err *e) MUST_USE;

/* The text for the agent: the goal, the invocation of a package, and the output contract where the
 * harness does not take it by itself. */
int definition_prompt(struct definition *d, const struct definition_place *place, struct str *ret,
                      struct err *e) MUST_USE;

/* Whether the adapter hands the schema to its harness (its driver does, or {output_schema} or
 * {output_schema_file} is in its arguments), so that the prompt need not repeat it. */
bool definition_native_schema(const struct profile *p);
