/* SPDX-License-Identifier: MIT
 *
 * Files that the answer of a skill package names (skill/skill_artifact.h), between the workspace
 * and the record.
 */
#pragma once

struct run;

/* Collect, while there is a workspace: copies them to artifacts/, and the answer names the copies.
 * A missing file that is optional is a warning. */
void skill_files_collect(struct run *run);
/* Gate: a missing file that is required fails the run. */
void skill_files_gate(struct run *run);
