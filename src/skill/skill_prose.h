/* SPDX-License-Identifier: MIT
 *
 * A skill of a repository as text: what a harness may tell the model about it, and nothing that the
 * harness would act on.
 *
 *   skill_prose_install(arena, package, "pdf-tables", skills_fd, e);    <folder>/pdf-tables/…
 *
 * Of the front matter of SKILL.md only name and description are kept: hooks, allowed tools, models,
 * agents and arguments are dropped. Commands that a harness would run while it reads the body
 * (Claude Code: !`command`, and blocks that begin with ```!) are kept as words. The other files of
 * the package are copied as they are: they are data until the agent decides to use them.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct package;

/* SKILL.md with its front matter reduced and its commands disarmed, appended to `ret`. `file` names
 * the text in messages. ERR_CONFIG when it is not a SKILL.md. */
int skill_prose_write(struct arena *a, struct str text, const char *file, struct buf *ret,
                      struct err *e) MUST_USE;

/* Installs the package under `name`. ERR_EXISTS when another skill of that name is installed,
 * ERR_CONFIG when the package has no valid SKILL.md. */
int skill_prose_install(struct arena *a, const struct package *p, const char *name, int skills_fd,
                        struct err *e) MUST_USE;

/* Does a SKILL.md ask the harness to run something by itself, by hooks or commands in its body? */
bool skill_prose_has_commands(struct arena *a, struct str text);
