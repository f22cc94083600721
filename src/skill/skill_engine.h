/* SPDX-License-Identifier: MIT
 *
 * What skill packages know of engines: the names they use, how a skill is invoked, where its
 * configuration stands, and how its dependencies are put before a command. Engines that are not
 * listed work too; they are told where SKILL.md is.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct skill;

/* The name that packages use for an adapter: "claude" for "claude-code", else the same. */
const char *skill_engine_name(const char *adapter);

/* Where a package keeps the engine's configuration unless it says otherwise; NULL: nowhere. */
const char *skill_engine_config_path(const char *engine);

/* The first line of the prompt, without newline: "$pdf-tables", "/pdf-tables", …; a sentence that
 * names `skill_dir` where the engine has no syntax for it. */
int skill_engine_invoke(const char *engine, const char *skill, const char *skill_dir,
                        struct buf *out, struct err *e) MUST_USE;

/* "uv run --with a --with b --", to be put before the command of the harness; NULL-terminated,
 * empty when the package has no dependencies. */
const char *const *skill_runtime_prefix(struct arena *a, const struct skill *s);

/* The command that shows whether that works: exit status 0 within two minutes. When it fails, warn
 * and run without the prefix. NULL when there is nothing to probe. */
const char *const *skill_runtime_probe(struct arena *a, const struct skill *s);

/* Under what the result of the probe can be kept: a hash of the dependencies and of what
 * "uv --version" prints. */
const char *skill_probe_key(struct arena *a, const struct skill *s, const char *uv_version);
