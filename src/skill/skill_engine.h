/* SPDX-License-Identifier: MIT
 *
 * What a skill package needs to know of the harness that runs it, which the profile of the adapter
 * provides; and how the dependencies of a package are put before a command.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct json;
struct skill;

struct skill_engine {
    const char *name;   /* as packages call the harness: "claude" */
    const char *invoke; /* first line of the prompt, "{skill}" stands for the name of the skill;
                           NULL: a sentence that names the path of SKILL.md */
    const struct json *configs; /* list: where packages keep settings for it; NULL: nowhere */
};

/* The first line of the prompt, without newline: "$pdf-tables", "/pdf-tables", …; a sentence that
 * names `skill_dir` where the engine has no syntax for it. */
int skill_engine_invoke(const struct skill_engine *engine, const char *skill, const char *skill_dir,
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
