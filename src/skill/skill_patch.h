/* SPDX-License-Identifier: MIT
 *
 * What cinch adds to the SKILL.md of an installed package: that nobody can be asked, where files
 * go, and what the answer must look like.
 *
 *   struct skill_patch p = { .mode = SKILL_AUTO, .artifacts_dir = "/run/artifacts" };
 *   skill_patch_write(s, &p, text, &out, e);
 *
 * Sections, in this order: runtime, artifacts (only if the package has any), output format, output
 * details, mode. Each begins with a line "<!-- cinch: NAME -->" and is added only when that line is
 * not in the text yet: patching twice is patching once.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "skill/skill_manifest.h"

struct skill;

struct skill_patch {
    enum skill_mode mode;
    const char *artifacts_dir; /* as the harness sees it; NULL: below where it is started */
};

/* Appends the patched text to `out`; the text itself for a plain skill. ERR_CONFIG when the output
 * schema makes a text beyond 256 KiB. */
int skill_patch_write(const struct skill *s, const struct skill_patch *p, struct str text,
                      struct buf *out, struct err *e) MUST_USE;
