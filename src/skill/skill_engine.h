/* SPDX-License-Identifier: MIT
 *
 * What a skill package needs to know of the harness that runs it, which the profile of the adapter
 * provides.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct json;

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
