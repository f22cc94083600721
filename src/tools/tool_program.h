/* SPDX-License-Identifier: MIT
 *
 * Tools that are programs. A call is one process:
 *
 *   standard input    the arguments, one JSON object and a newline
 *   environment       the run's, the tool's `env`, and CINCH_TOOL_NAME, CINCH_CALL_ID,
 *                     CINCH_TOOL_TIMEOUT_MS and, when the caller sent a valid trace context,
 *                     CINCH_TRACEPARENT
 *   working directory the workspace, as the transaction of the call shows it
 *   standard output   the answer
 *   standard error    kept for the message of a failure
 *
 * An answer is a JSON object of these members and no others, with at least one of the first three:
 *   message  text for the model
 *   value    anything; must fit the tool's output schema
 *   success  false: the call failed, whatever the exit code
 *   state    list of changes to the session (tools/tool_state.h)
 *   exclude_value_from_context  true: the model gets the message only
 * Any other output is plain text: the message, and with an output schema also JSON that is the
 * value. An exit code that is not 0 means failure in all cases. Output that begins with '{' and is
 * no JSON is half an answer, hence none (TOOL_BAD_OUTPUT).
 *
 *   tool_define(a, definition, &tool, e);
 *   tool_program_bind(a, definition, &tool, e);
 *   bridge_add(b, &tool, e);
 */
#pragma once

#include "base/err.h"
#include "tools/tool.h"

struct helper_host;
struct helper_result;

#define TOOL_VALUE_DEPTH 64 /* of what a program prints; deeper is no answer */

/* Takes command, env and sandbox (false: right beside us) of a definition; the tool gets its
 * handler. ERR_CONFIG without a command. Lives in `a`. */
int tool_program_bind(struct arena *a, const struct json *definition, struct tool *t,
                      struct err *e) MUST_USE;
/* The same, with another host than the bridge's for the program; NULL: the bridge's. */
int tool_program_bind_host(struct arena *a, const struct json *definition,
                           const struct helper_host *host, struct tool *t, struct err *e) MUST_USE;

/* An answer that is there already, as a value; false: it is none. */
bool tool_program_answer(const struct json *v, struct arena *a, struct tool_result *ret);

/* What an ended program has said; texts and trees are in `a` or in `r`. */
void tool_program_read(const struct tool *t, struct arena *a, const struct helper_result *r,
                       struct tool_result *ret);
