/* SPDX-License-Identifier: MIT
 *
 * The conversation of a harness beyond its run. What a harness needs to go on with one lies in its
 * home, which is removed with the run; the profile says which files (`session.files`), the record
 * keeps them below session/harness/, and a run with `session.resume` (--resume DIR) gets them back.
 *
 *   admit    harness_session_admit()  DIR is a record of this adapter and names a conversation
 *   prepare  harness_session_put()    its files, into the new home; not over what is there
 *   execute  harness_session_count()  are the last words written yet?
 *   collect  harness_session_keep()   those of this run, into the record
 *
 * session/harness.json says whose conversation it is, and in which directory it was had. Most
 * harnesses keep conversations by directory, so that a run elsewhere is refused unless the profile
 * says `session.anywhere`.
 *
 * What is kept is clean: text is redacted like every log, and a file that is no text and holds a
 * secret is not kept. Links are neither followed nor kept.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct run;

/* Sets run->exec.resume. ERR_CONFIG when the adapter cannot go on, or another one is meant;
 * ERR_INPUT when there is no such record or it has no conversation. */
int harness_session_admit(struct run *run, struct err *e) MUST_USE;
int harness_session_put(struct run *run, struct err *e) MUST_USE;
/* Lines of these files, in the home, that hold the words as the profile says. */
size_t harness_session_count(struct run *run, struct str words);
/* A failure only warns. */
void harness_session_keep(struct run *run);
/* Files of conversations that were changed in the layer of a shared home, into that home. */
int harness_session_write_back(struct run *run, int layer, int home, struct err *e) MUST_USE;
