/* SPDX-License-Identifier: MIT
 *
 * The session of a run (record/state_store.h) and its files in the run directory:
 *
 *   session/before.jsonl   snapshot at the begin, one line: empty, or what session.restore gave
 *   session/journal.jsonl  every commit as it happens
 *   session/after.jsonl    snapshot at the end, one line; another run may restore it
 *
 *   admit    run_session_open()   run->state is there from now on
 *   collect  run_session_save()
 *   (end)    run_session_close()
 *
 * Every run has a session; files only one whose task says something about tools, guards, completion
 * or the session itself. LOG slices PromptRendered, RenderedTools, ToolInvoked and PromptExecuted
 * are filled from the events of the same names, and reducers of the task may look at those. The
 * value of a successful call is an event of the tool's name, the structured output of a prompt one
 * named `output`, where a reducer asks for them.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct run;
struct rundir;

/* ERR_CONFIG for a session that makes no sense or a snapshot that does not fit it, ERR_INPUT when
 * that cannot be read. Does nothing the second time. */
int run_session_open(struct run *run, struct err *e) MUST_USE;
/* Writes session/after.jsonl; a failure only warns. */
void run_session_save(struct run *run);
void run_session_close(struct run *run); /* idempotent; accepts a run that never opened one */

/* Bytes of its journal; 0: it has none. */
int64_t run_session_journal(const struct run *run);

/* Of a run whose process died: session/after.jsonl from the journal, if it is missing. What cannot
 * be read of the journal is left out, and the file renamed to "<name>.damaged". */
void run_session_recover(const struct rundir *d);
