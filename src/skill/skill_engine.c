/* SPDX-License-Identifier: MIT
 *
 * The line that invokes a skill; see skill_engine.h.
 */
#include "skill/skill_engine.h"

#include <string.h>

#define SKILL_NAME "{skill}"

int skill_engine_invoke(const struct skill_engine *engine, const char *skill, const char *skill_dir,
                        struct buf *out, struct err *e)
{
    struct str line = engine->invoke == NULL ? STR_EMPTY : str_of(engine->invoke);
    size_t at = str_find(line, STR(SKILL_NAME));
    if (line.len > 0) {
        struct str after = str_slice(line, at + strlen(SKILL_NAME), line.len);
        return buf_printf(out, e, "%.*s%s%.*s", STR_ARG(str_slice(line, 0, at)),
                          at < line.len ? skill : "", STR_ARG(after));
    }
    return skill_dir == NULL
               ? buf_printf(out, e, "Use the skill named %s.", skill)
               : buf_printf(out, e,
                            "Use the skill named %s: read %s/SKILL.md first and do what it says.",
                            skill, skill_dir);
}
