/* SPDX-License-Identifier: MIT
 *
 * Sub-tests of ProjectScylla: subtests/t1/05-mojo.yaml, up to four directories above the test or in
 * shared/ there. What a sub-test names is looked for beside `subtests`:
 *
 *   resources.claude_md.blocks   blocks/B02-*.md            → instructions
 *   resources.skills             skills/CATEGORY/NAME/      → skills
 *   resources.agents             agents/L2/NAME.md          → agents
 *   resources.mcp_servers        {name, source}             → tools, as npx -y @SOURCE/NAME
 *   resources.tools              all, or names              → eval.tools_enabled, policies
 *   system_prompt_mode           none, default, custom      → agent.system_prompt
 *   agent_teams                                             → env.set
 */
#pragma once

#include "base/json.h"

/* The layer of settings of a sub-test, and its file. `dir` is the test's, `tier` "T1", `id` "05",
 * "05-mojo" or "mojo". ERR_INPUT when there is none, or when something that it names is missing;
 * ERR_UNSUPPORTED for inherit_best_from. */
struct scylla_subtest_name {
    const char *dir, *tier, *id;
};
int scylla_subtest_load(struct arena *a, const struct scylla_subtest_name *name, struct json **ret,
                        const char **ret_file, struct err *e) MUST_USE;
/* The tree of a sub-test that was read; `root` is the directory of blocks, skills and agents. */
int scylla_subtest_layer(struct arena *a, const struct json *tree, const char *file,
                         const char *root, struct json **ret, struct err *e) MUST_USE;
