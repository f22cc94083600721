/* SPDX-License-Identifier: MIT
 *
 * Why a run failed, in the terms of evaluations: what kind of error, in which phase of the
 * conversation, and what the provider had to say. For result.json and prompt.error; the reason and
 * the exit code stay what they are.
 */
#pragma once

struct json;
struct run;

/* "request" (nothing was answered: refused, not started, out of time, stopped), "response" (what
 * came back is no answer), "tool" (tools could not be carried out at all) or "budget". */
const char *run_error_phase(const struct run *run);

/* {type, message, prompt_name, phase, provider_payload, details}; NULL: nothing went wrong. */
struct json *run_error_json(struct run *run);
