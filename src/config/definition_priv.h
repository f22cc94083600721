/* SPDX-License-Identifier: MIT
 *
 * Between definition.c (prompt, output contract), definition_skill.c (skills and packages) and
 * definition_guard.c (policies, feedback, completion).
 */
#pragma once

#include "config/definition.h"

/* --- definition_skill.c --- */

int definition_open_skills(struct definition *d, struct err *e) MUST_USE;
/* Engine, mode, inputs; after the prompt was rendered, which says what is wanted. */
int definition_bind_skills(struct definition *d, struct err *e) MUST_USE;
/* The package's prompt around the goal. */
int definition_package_prompt(struct definition *d, const struct definition_place *place,
                              struct buf *out, struct err *e) MUST_USE;

/* --- definition_guard.c --- */

/* ERR_CONFIG for a policy, a provider or a check that makes no sense. */
int definition_check_guards(struct definition *d, struct err *e) MUST_USE;

/* --- definition.c --- */

void definition_warn(struct definition *d, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Whether a section, shown or not, has `name` in its list `key`. */
bool definition_mentioned(const struct definition *d, const char *key, struct str name);
