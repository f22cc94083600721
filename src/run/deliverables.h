/* SPDX-License-Identifier: MIT
 *
 * What a task asks for besides an answer: files that must exist at the end, a summary, and the
 * agent's way to ask for a human. The same for every adapter.
 *
 *   collect    deliverables_collect(run)   files of the workspace, the agent's own summary
 *   gate       deliverables_gate(run)      is all there that must be?
 *   finish     deliverables_checks(run)    the same as lines for summary.md
 *
 * manifest.json, diff.patch, summary.md and evidence/ are files of every record, so a task that
 * lists them among its artifacts gets them with every adapter.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct run;

/* Written by the agent into $CINCH_ARTIFACTS_DIR (adapter programs: into their output directory):
 * the run ends as needs_human, with the text of the file as the question. */
#define NEEDS_HUMAN_FILE "needs-human.md"

/* artifacts/ of the record; -1 and errno when it is not a directory any more. */
int deliverables_open(const struct run *run);
/* Copies a file below it, following nothing. ERR_OUTPUT also when it exists. */
int deliverables_copy(int from, int artifacts_fd, struct str path, struct err *e) MUST_USE;

void deliverables_collect(struct run *run);
void deliverables_gate(struct run *run);

/* The question that the agent left for a human; NULL: none. */
const char *deliverables_question(struct run *run);

/* NULL-terminated. */
const char *const *deliverables_checks(struct run *run);
